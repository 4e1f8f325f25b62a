"""Random programs show with lazy arrays what they show with NumPy's: tests/fuzz, whose README says how to run more."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NIGHTLY = os.environ.get("LAZYARRAY_NIGHTLY") == "1"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="a memoryview of a proxy needs Python 3.12")
@pytest.mark.parametrize("program, seeds", [("fuzz_statements.py", 2000 if NIGHTLY else 40),
                                            ("fuzz_calls.py", 1000 if NIGHTLY else 20),
                                            ("fuzz_hot.py", 2000 if NIGHTLY else 48)])
def test_random_programs(program, seeds):
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "LAZYARRAY_DEVICE": "simulated", "PYTHONPATH": path}
    command = [sys.executable, str(ROOT / "tests" / "fuzz" / program), "0", str(seeds)]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    assert "totals" in done.stdout
