"""Test-suites of other packages, in processes of their own."""
from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def start(folder, arguments, package=None, results=False, report=None, **settings):
    """Run pytest in a process of its own, with lazy arrays in place of the ndarrays that a package gets."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    options = [*([f"--lazyarray={package}"] if package is not None else []),
               *(["--lazyarray-results"] if results else []),
               *([f"--lazyarray-report={report}"] if report else [])]
    command = [sys.executable, "-m", "pytest", "-p", "lazyarray_pytest", "-p", "no:cacheprovider", "-q",
               "--tb=short", *options, *arguments]
    # What asks for more memory is skipped. Plugins of what else is installed take a second to import.
    more = {"NPY_AVAILABLE_MEM": "1 GB", "SCIPY_AVAILABLE_MEM": "1G", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=folder, env={**environment, "PYTHONPATH": path, **more, **settings},
                          capture_output=True, text=True, timeout=1500, check=False)


def skip_without(suite):
    """Skip where the tests of a package are not installed: some distributors leave them out."""
    for end in range(1, suite.count(".") + 2):
        name = ".".join(suite.split(".")[:end])
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
