"""Test-suites of other packages, in processes of their own."""
from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def start(folder, arguments, **settings):
    """Run pytest with the plugin in a process of its own."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("PYTEST_", "LAZYARRAY_SUITE"))}
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "pytest", "-p", "lazyarray.testing.suite", "-p", "no:cacheprovider", "-q",
               "--tb=short", *arguments]
    memory = {"NPY_AVAILABLE_MEM": "1 GB", "SCIPY_AVAILABLE_MEM": "1G"}     # what asks for more is skipped
    return subprocess.run(command, cwd=folder, env={**environment, "PYTHONPATH": path, **memory, **settings},
                          capture_output=True, text=True, timeout=1500, check=False)


def skip_without(suite):
    """Skip where the tests of a package are not installed: some distributors leave them out."""
    for end in range(1, suite.count(".") + 2):
        name = ".".join(suite.split(".")[:end])
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
