"""Each example runs as it stands, in an empty folder."""
from __future__ import annotations

import json

import pytest
from example_runs import ROOT, run

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))



# These have tests of their own, here or beside what they show.
ELSEWHERE = {"cupy_paper", "demo", "dask_stack", "monai_transforms", "resize"}


@pytest.mark.parametrize("path", [p for p in EXAMPLES if p.stem not in ELSEWHERE], ids=lambda path: path.stem)
def test_an_example_runs(path, tmp_path):
    assert run(path, tmp_path)


def test_the_demo_copies_once_each_way(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    pytest.importorskip("skimage")
    text = run(ROOT / "examples" / "demo.py", tmp_path, "--chrome", "record.json")
    assert "\n1 upload (" in text and ", 1 materialisation (" in text and "fallback" not in text
    records = json.loads((tmp_path / "record.json").read_text())["traceEvents"]
    copies = [record for record in records if record["cat"] in ("upload", "materialise")]
    with Image.open(tmp_path / "demo.png") as picture:
        size = (*reversed(picture.size), len(picture.getbands()))
    assert [(copy["cat"], tuple(copy["args"]["shape"])) for copy in copies] == [("upload", size), ("materialise", size)]
    assert [copy["args"]["bytes"] for copy in copies] == [size[0] * size[1] * size[2]] * 2


def test_the_demo_has_help(tmp_path):
    pytest.importorskip("skimage")
    assert "--output" in run(ROOT / "examples" / "demo.py", tmp_path, "--help")
