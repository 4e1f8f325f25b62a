"""The notebooks in examples/ run from top to bottom, show what they say, and are stored without outputs."""
from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

import lazyarray

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def stored(path):
    return json.loads(path.read_text(encoding="utf-8"))


def source_of(cell):
    return "".join(cell["source"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
class TestStored:
    def test_it_has_no_outputs_and_no_counts(self, path):
        for cell in stored(path)["cells"]:
            if cell["cell_type"] == "code":
                assert cell["outputs"] == [] and cell["execution_count"] is None

    def test_it_is_valid_and_belongs_to_no_machine(self, path):
        notebook = stored(path)
        assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
        assert notebook["metadata"]["kernelspec"]["name"] == "python3"
        names = [cell["id"] for cell in notebook["cells"]]
        assert len(set(names)) == len(names)
        assert all(set(cell["metadata"]) == set() for cell in notebook["cells"])

    def test_it_begins_with_a_title_and_explains_each_step(self, path):
        cells = stored(path)["cells"]
        assert source_of(cells[0]).startswith("# ")
        assert sum(cell["cell_type"] == "markdown" for cell in cells) >= len(cells) / 3


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """The notebooks after a run in a kernel of this Python, by name."""
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    for name in ("ipykernel", "matplotlib", "scipy", "skimage"):
        pytest.importorskip(name)
    folder = tmp_path_factory.mktemp("notebooks")
    settings = {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
                "IPYTHONDIR": str(folder), "LAZYARRAY_DEVICE": lazyarray.device().name, "MPLBACKEND": ""}
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update({name: value for name, value in settings.items() if value})
    os.environ.pop("MPLBACKEND", None)
    found = {}
    try:
        for path in NOTEBOOKS:
            notebook = nbformat.read(path, as_version=4)
            nbformat.validate(notebook)
            nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3",
                                    resources={"metadata": {"path": str(folder)}}).execute()
            found[path.stem] = notebook
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
    return found


def text_of(cell):
    """All that a cell printed, and then what it showed as text. A kernel may send one print in several messages."""
    printed = "".join(output.get("text", "") for output in cell.outputs)
    return "\n".join([printed, *(output.get("data", {}).get("text/plain", "") for output in cell.outputs)])


def cell_with(notebook, code):
    (found,) = [cell for cell in notebook.cells if cell.cell_type == "code" and code in cell.source]
    return found


#: A step that only the host has is told of; and CuPy, when its signal processing is imported, warns of itself.
#: The lesson also shows a function that is not enabled.
WARNINGS = ("HostFallbackWarning: skimage.", "NotEnabledWarning: scipy.signal.convolve2d ",
            "FutureWarning: cupyx.jit.rawkernel is experimental.")


def test_no_cell_warns_or_ends_in_an_error(executed):
    for notebook in executed.values():
        for cell in notebook.cells:
            outputs = cell.get("outputs", ())
            assert not [output for output in outputs if output.output_type == "error"], text_of(cell)
            told = "".join(output.text for output in outputs if output.get("name") == "stderr")
            if told and not told.startswith("\rsoftplus: "):    # a progress bar
                assert told.count("Warning") == 1 and any(text in told for text in WARNINGS)


class TestTiming:
    def test_deferred_work_is_shown_and_stays_deferred(self, executed):
        shown = cell_with(executed["timing"], "brighter = np.sqrt").outputs[0].data
        assert "deferred: sqrt(image * 2 + 1), 3 operations" in shown["text/html"] and "<img" in shown["text/html"]
        assert shown["text/plain"].startswith("deferred: sqrt(image * 2 + 1), 3 operations\narray([[")
        lines = text_of(cell_with(executed["timing"], "print(lazyarray.where(brighter))")).splitlines()
        assert lines[:2] == ["deferred: sqrt(image * 2 + 1), 3 operations", f"{lazyarray.device().name}:0"]

    def test_the_benchmark_and_its_plot(self, executed):
        text = text_of(cell_with(executed["timing"], "measured = lazyarray.benchmark"))
        assert "softplus: 40 calls" in text and "0 uploads, 0 materialisations" in text
        (plot,) = cell_with(executed["timing"], "measured.plot();").outputs
        assert "image/png" in plot.data

    def test_lines_are_named_by_their_cell_and_the_advice_by_its_line(self, executed):
        text = text_of(cell_with(executed["timing"], "%%lazy_trace"))
        number = cell_with(executed["timing"], "%%lazy_trace").execution_count
        assert f"- cell {number}, line 5: weights is uploaded 12 times with the same values." in text
        assert f"- cell {number}, line 9 copies one value at a time, 20 times" in text and "run_cell_magic" not in text

    def test_the_report_on_the_page_is_that_of_the_notebook(self, executed):
        """Its lines, copies and advice; times differ. `python docs/gallery.py timing.ipynb` draws it."""
        kept = (ROOT / "docs" / "_static" / "gallery" / "timing.html").read_text()
        (shown,) = [output.data["text/html"] for output in cell_with(executed["timing"], "%%lazy_trace").outputs
                    if "lazyarray-profile" in output.get("data", {}).get("text/html", "")]
        for part in (r"<li[^>]*>(.*?)</li>", r">(\d+ \([\d.]+ \w+\))<"):       # the advice, and each line's copies
            assert re.findall(part, kept) == re.findall(part, shown) != []

    def test_memory_by_the_names_of_variables(self, executed):
        shown = cell_with(executed["timing"], "lazyarray.memory_info").outputs[0].data["text/html"]
        assert all(f">{name}<" in shown for name in ("image", "brighter", "state"))


class TestLesson:
    def test_both_calls_fail_as_they_do_today(self, executed):
        notebook = executed["lesson"]
        text = text_of(cell_with(notebook, "    cupyx_signal.convolve2d(deltas, gauss)\nexcept"))
        assert text.startswith("TypeError: ")       # CuPy's words for it differ from version to version
        assert "TypeError: Implicit conversion to a NumPy array is not allowed" in text_of(
            cell_with(notebook, "    convolve2d_cpu(deltas_gpu, gauss_gpu)\nexcept"))

    def test_and_work_with_lazy_arrays(self, executed):
        notebook = executed["lesson"]
        uploads = text_of(cell_with(notebook, "\nconvolved = convolve2d_gpu(deltas, gauss)"))
        assert "2 uploads" in uploads and "0 materialisations" in uploads
        fetched = text_of(cell_with(notebook, "\nagain = convolve2d_cpu(deltas_gpu, gauss_gpu)"))
        assert "0 uploads, 2 materialisations" in fetched

    def test_the_corner_takes_8_kib(self, executed):
        text = text_of(cell_with(executed["lesson"], "%%lazy_trace\nplt.imshow(convolved[:32, :32])"))
        assert "0 uploads, 1 materialisation (8.0 KiB" in text and "line 2" in text

    def test_nothing_is_copied_for_numpys_convolve_or_an_enabled_library(self, executed):
        notebook = executed["lesson"]
        assert "0 uploads, 0 materialisations" in text_of(cell_with(notebook, "line = np.convolve(deltas_1d"))
        text = text_of(cell_with(notebook, 'with lazyarray.enabled("scipy"):\n    on_device'))
        assert "0 uploads, 0 materialisations" in text

    def test_clipping_copies_only_the_picture(self, executed):
        text = text_of(cell_with(executed["lesson"], "clipped(smooth.ravel())"))
        assert "\n1 upload (" in text and re.search(r"background \d+\.\d \+- \d+\.\d; \d+ sources", text)
        fetched = re.search(r"(\d+) materialisations? \((\d+) B,", text)
        assert fetched and int(fetched[2]) <= 16

    def test_off_copies_each_result(self, executed):
        on, off = (text_of(cell) for cell in executed["lesson"].cells if "twice = convolve2d_gpu" in cell.source)
        assert "\n1 upload (" in on and "1 materialisation (8 B" in on
        assert "\n2 uploads (" in off and "2 materialisations" in off and "with lazyarray off" in off


class TestPipeline:
    def test_one_upload_and_nothing_until_it_is_looked_at(self, executed):
        notebook = executed["pipeline"]
        assert "1 upload (113.6 KiB" in text_of(cell_with(notebook, "coins = lazyarray.asarray(data.coins())"))
        assert "0 uploads, 0 materialisations" in text_of(cell_with(notebook, "with lazyarray.no_transfers()"))

    def test_the_labels_are_fetched_once(self, executed):
        text = text_of(cell_with(executed["pipeline"], "measure.regionprops("))
        assert "0 uploads, 1 materialisation (454.5 KiB" in text

    def test_a_host_step_takes_its_own_input_and_output(self, executed):
        text = text_of(cell_with(executed["pipeline"], "segmentation.watershed(edges, markers)"))
        assert "2 materialisations" in text and "1 upload (" in text

    def test_off_nothing_is_copied(self, executed):
        text = text_of(cell_with(executed["pipeline"], "host_labels = "))
        assert "0 uploads, 0 materialisations" in text and "with lazyarray off" in text


def test_traces_and_arrays_are_shown_as_html_and_pictures(executed):
    for notebook in executed.values():
        data = [output.data for cell in notebook.cells for output in cell.get("outputs", ()) if "data" in output]
        assert any("image/png" in shown for shown in data)
        html = "".join(shown.get("text/html", "") for shown in data)
        assert "lazyarray-array" in html and "lazyarray-trace" in html and "<svg" in html


def test_imshow_of_a_corner_moves_8_kib(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    x = lazyarray.asarray(np.zeros((2048, 2048)))
    with lazyarray.trace() as t:
        figure, axes = plt.subplots()
        axes.imshow(x[:32, :32])
        figure.savefig(tmp_path / "corner.png")
    plt.close(figure)
    assert [event.nbytes for event in t.materialisations] == [8192] and not t.uploads
