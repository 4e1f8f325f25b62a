"""Loops of random statements show in each of sixty rounds what they show with NumPy's arrays: fuzz_hot.py."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SEEDS = 2000 if os.environ.get("LAZYARRAY_NIGHTLY") == "1" else 48


@pytest.mark.skipif(sys.version_info < (3, 12), reason="a memoryview of a proxy needs Python 3.12")
def test_random_loops():
    """In processes of their own: what is learned is left alone there, unlike in the process that runs the tests."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "LAZYARRAY_DEVICE": "simulated", "PYTHONPATH": path}
    command = [sys.executable, str(ROOT / "tests" / "fuzz" / "fuzz_hot.py"), "0", str(SEEDS)]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    assert "totals" in done.stdout
