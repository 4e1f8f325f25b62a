"""Each test is in a share of the tests, and what depends on the Python version in each."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOME = ["tests/settings", "tests/errors", "tests/storage/test_machine.py", "tests/array/test_attributes.py"]
WHOLE = "tests/settings/test_options.py"


def collected(*arguments):
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *SOME, *arguments]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return {line for line in lines if "::" in line}


def test_the_shares_are_all_of_the_tests():
    one, other = (collected(f"--share={part}/2", f"--whole={WHOLE}") for part in (1, 2))
    assert one | other == collected()
    on_each = one & other
    # A file that names a version, a test that needs CuPy, which is beside one version alone, and what is asked for.
    for kind in ("tests/storage/test_machine.py", "tests/array/test_attributes.py::test_asnumpy_of_cupy", WHOLE):
        assert any(name.startswith(kind) for name in on_each)
        assert not any(name.startswith(kind) for name in (one | other) - on_each)
    for share in (one - on_each, other - on_each):
        assert any(name.startswith("tests/array/test_attributes.py") for name in share)
