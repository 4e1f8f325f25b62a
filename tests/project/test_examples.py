"""Each example runs as it stands, in an empty folder."""
from __future__ import annotations

import json

import numpy as np
import pytest
from example_runs import ROOT, run

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
GALLERY = ROOT / "docs" / "_static" / "gallery"

# These have tests of their own, here or beside what they show.
ELSEWHERE = {"cupy_paper", "demo", "dask_stack", "monai_transforms", "resize"}


@pytest.mark.parametrize("path", [p for p in EXAMPLES if p.stem not in ELSEWHERE], ids=lambda path: path.stem)
def test_an_example_runs(path, tmp_path):
    assert run(path, tmp_path)
    for drawn in tmp_path.glob("*.png"):
        assert differ(drawn, GALLERY / f"{path.stem}.png") < 8, "run `python docs/gallery.py`"


def differ(drawn, kept):
    """The mean difference of two pictures of 8 bits, the second of which is smaller and has fewer colours."""
    Image = pytest.importorskip("PIL.Image")
    with Image.open(drawn) as first, Image.open(kept) as second:
        size = second.size
        left, right = (np.asarray(picture.convert("RGB").resize(size), float) for picture in (first, second))
    return np.abs(left - right).mean()


def test_the_demo_copies_once_each_way(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    pytest.importorskip("skimage")
    text = run(ROOT / "examples" / "demo.py", tmp_path, "--chrome", "record.json")
    assert "\n1 upload (" in text and ", 1 materialisation (" in text and "fallback" not in text
    records = json.loads((tmp_path / "record.json").read_text())["traceEvents"]
    copies = [record for record in records if record["cat"] in ("upload", "materialise")]
    assert differ(tmp_path / "demo.png", GALLERY / "demo.png") < 8, "run `python docs/gallery.py`"
    with Image.open(tmp_path / "demo.png") as picture:
        size = (*reversed(picture.size), len(picture.getbands()))
    assert [(copy["cat"], tuple(copy["args"]["shape"])) for copy in copies] == [("upload", size), ("materialise", size)]
    assert [copy["args"]["bytes"] for copy in copies] == [size[0] * size[1] * size[2]] * 2


def test_the_demo_has_help(tmp_path):
    pytest.importorskip("skimage")
    assert "--output" in run(ROOT / "examples" / "demo.py", tmp_path, "--help")
