"""The package is installed by pip where there is no compiler, and works there without its parts in C."""
from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """

import numpy as np, lazyarray
from lazyarray import _native
assert "site" in lazyarray.__file__, lazyarray.__file__
assert all(getattr(_native, name) is None for name in ("recording", "small_copies", "launch", "staging"))
x = lazyarray.asarray(np.arange(12.0).reshape(3, 4))
alias = np.asarray(x)
alias[0] = 7
y = np.sqrt(x * 2 + 1)
y[y > 4] = 0
assert lazyarray.is_lazy(y) and np.array_equal(y, np.where(np.sqrt(alias * 2 + 1) > 4, 0, np.sqrt(alias * 2 + 1)))
assert lazyarray.asarray([]).shape == (0,) and (x[:0] + 1).shape == (0, 4)
twice = lazyarray.lazy(lambda a: a * 2, pure=True)
assert float(twice(x).sum()) == 2 * alias.sum() == float(np.sum(x + x))
"""


@pytest.mark.skipif(None in map(importlib.util.find_spec, ("pip", "setuptools")), reason="needs pip and setuptools")
def test_without_a_compiler(tmp_path):
    source, site, elsewhere = tmp_path / "source", tmp_path / "site", tmp_path / "elsewhere"
    elsewhere.mkdir()
    # Not what was compiled here, nor what a build before has left.
    ignored = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(ROOT / "lazyarray", source / "lazyarray", ignore=ignored)
    for name in ("setup.py", "setup.cfg", "pyproject.toml", "README.rst", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, source)
    nothing = shutil.which("false")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"CC": nothing, "CXX": nothing, "LDSHARED": nothing}
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-cache-dir",
                    "--no-build-isolation", "--disable-pip-version-check", f"--target={site}", str(source)],
                   env=environment, check=True, capture_output=True, timeout=300)
    assert not list(site.rglob("*.so")) and (site / "lazyarray" / "py.typed").exists()
    found = subprocess.run([sys.executable, "-c", PROGRAM], cwd=elsewhere, env=environment | {"PYTHONPATH": str(site)},
                           capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode == 0 and not found.stderr, found.stderr


def all_of(terminal):
    """What was written to a terminal that all writers have closed: it may come in pieces."""
    said = b""
    with contextlib.suppress(OSError):      # there is no more
        while more := os.read(terminal, 100_000):
            said += more
    return said


@pytest.mark.skipif(shutil.which("make") is None or sys.platform != "linux", reason="needs make, and Linux")
@pytest.mark.parametrize("seen", [True, False])
def test_make_shows_what_takes_long_on_a_terminal(seen):
    """What pip does: on a terminal it shows its progress, in a log it says nothing."""
    inside, outside = os.openpty()
    command = ["make", "--dry-run", "--always-make", "demo", f"PYTHON={sys.executable}"]
    try:
        with open(outside, "wb", closefd=False) as terminal:
            target = terminal if seen else subprocess.PIPE
            done = subprocess.run(command, cwd=ROOT, stdout=target, timeout=60, check=True)
        os.close(outside)
        said = all_of(inside) if seen else done.stdout
    finally:
        os.close(inside)
    assert b"pip install" in said and (b"--quiet" in said) != seen
