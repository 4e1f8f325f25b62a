"""ruff finds nothing, by the settings in setup.cfg."""
from __future__ import annotations

import configparser
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="ruff is not installed; `make test` brings it")
def test_ruff():
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "setup.cfg")
    arguments = [f"--{name}={value}" for name, value in settings["ruff"].items()]
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--output-format=concise", *arguments]
    folders = [name for name in ("lazyarray", "tests", "examples", "benchmarks") if (ROOT / name).is_dir()]
    found = subprocess.run([*command, *folders], cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, "\n" + found.stdout + found.stderr
