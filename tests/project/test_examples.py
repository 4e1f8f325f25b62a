"""Each example runs as it stands, in an empty folder."""
from __future__ import annotations

import contextlib
import difflib
import json
import os
import socket
import subprocess
import sys

import numpy as np
import pytest
from example_runs import ROOT, run

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
GALLERY = ROOT / "docs" / "_static" / "gallery"

# These have tests of their own, here or beside what they show.
ELSEWHERE = {"cupy_paper", "demo", "dask_stack", "filters", "filters_cluster", "monai_transforms", "resize"}


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


@contextlib.contextmanager
def dask(folder, *arguments, **variables):
    """A process of Dask's command."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path} | variables
    with subprocess.Popen([sys.executable, "-m", "dask", *arguments], cwd=folder, env=environment,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


def test_filters_on_one_machine_and_on_a_cluster(tmp_path):
    """As the page on several GPUs starts it: a scheduler, and a worker for each GPU."""
    for module in ("distributed", "skimage"):
        pytest.importorskip(module)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    worker = "worker", address, "--nthreads", "1", "--no-dashboard"
    with (dask(tmp_path, "scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"),
          dask(tmp_path, *worker, CUDA_VISIBLE_DEVICES="0"), dask(tmp_path, *worker, CUDA_VISIBLE_DEVICES="0")):
        found = run(ROOT / "examples" / "filters_cluster.py", tmp_path, address)
    assert found.startswith("lazy: True") and found == run(ROOT / "examples" / "filters.py", tmp_path)


def test_the_programs_differ_in_three_lines():
    here, there = ((ROOT / "examples" / name).read_text().split('"""', 2)[2].splitlines()
                   for name in ("filters.py", "filters_cluster.py"))
    added = [line for line in difflib.ndiff(here, there) if line.startswith("+ ") and line.strip() != "+"]
    assert len(added) == 3, added
