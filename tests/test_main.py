"""``python -m lazyarray`` says what was found and how fast it copies."""
from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

import lazyarray

ROOT = Path(__file__).parent.parent


def test_the_report():
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    found = subprocess.run(
        [sys.executable, "-m", "lazyarray"], env=environment, capture_output=True, text=True, timeout=300, check=True
    )
    rows = dict(re.findall(r"^([\w -]+): +(.+)$", found.stdout, re.MULTILINE))
    assert rows["lazyarray"] == lazyarray.__version__ and rows["NumPy"] == np.__version__
    assert rows["device"].startswith(lazyarray.device().name) and rows["why"]
    assert rows["write tracking"].startswith(("by pages", "none"))
    for direction in ("uploads", "materialisations"):
        assert re.fullmatch(r"[\d,]+ MB/s", rows[direction]) and rows[direction] != "0 MB/s"
    assert found.stderr == ""
