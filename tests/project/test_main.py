"""``python -m lazyarray`` says what was found and how fast it copies."""
from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

import lazyarray
from lazyarray.graph import cost_model

ROOT = Path(__file__).parents[2]


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


def test_what_is_measured_can_be_put_in_force():
    def run(**settings):
        environment = os.environ | {"PYTHONPATH": str(ROOT)} | settings
        return subprocess.run([sys.executable, "-m", "lazyarray", "measure"], env=environment, capture_output=True,
                              text=True, timeout=300, check=True).stdout

    names = cost_model.Costs._fields
    found = run()
    assert all(found.count(f"  {name}:") == 2 for name in names), "in force and measured"
    line = re.search(r"export (LAZYARRAY_COSTS)=(.+)", found)
    constants = cost_model.Costs.of_text(line[2])
    in_force = run(**{line[1]: line[2]}).partition("measured here")[0]
    for name, value in constants._asdict().items():
        assert re.search(rf"{name}: +{re.escape(f'{value:.3g}')} ", in_force), name
