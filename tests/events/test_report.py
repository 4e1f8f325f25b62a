"""What the documentation says of speed is what the newest results say."""
from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import report, timing

ROOT = Path(__file__).parents[2]


def test_the_page_says_what_the_newest_results_say():
    text = report.PAGE.read_text()
    assert report.with_section(text) == text, "run `python -m benchmarks.report`"


def test_every_kind_with_results_has_a_row():
    rows = {label for label, *_ in report.headlines()}
    for kind, shown in report.HEADLINES.items():
        assert report.newest(kind) is None or rows & set(shown.values()), f"the figures of {kind} have other names now"


def test_all_kinds_are_counted():
    assert set(report.COUNTED) == set(command.KINDS)


def test_the_plots_exist_and_are_shown():
    shown = set(re.findall(r"docs/_static/(speed-[\w-]+)\.svg", (ROOT / "README.rst").read_text()))
    assert shown and shown < set(report.PLOTS) == set(report.DRAWN)
    drawn = {name for name in report.PLOTS if name != "speed-sweep" or report.swept()}
    for name in drawn:
        assert "<svg" in (report.STATIC / f"{name}.svg").read_text()[:1000]
    pages = "".join(path.read_text() for path in (ROOT / "docs").glob("*.rst"))
    assert all(f"_static/{name}.svg" in pages for name in drawn)


def test_a_page_without_its_place_is_an_error():
    with pytest.raises(ValueError, match="lacks the lines"):
        report.with_section("nothing")


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Two runs of chains, and one of programs and of the paper's table."""
    monkeypatch.setattr(timing, "RESULTS", tmp_path)

    def keep(kind, date, *figures):
        found = timing.Figures()
        for what, value, unit, asked in figures:
            found.note(what, value, unit, **asked)
        setting = {"date": date, "device": "CUDA works: A Card, 1 device(s)", "numpy": "2.5"}
        (tmp_path / f"{kind}-cuda-{date}.json").write_text(json.dumps({"setting": setting, "figures": found}))

    ratio = "softplus, float32: CuPy / lazyarray"
    keep("chains", "2026-01-01", (ratio, 99, "times", {"least": 10}))
    keep("chains", "2026-01-02", (ratio, 9, "times", {"least": 10}),
         *((f"softplus, float32: {library}", 1, "ms", {}) for library in report.LIBRARIES))
    keep("programs", "2026-01-03", ("k-means: CuPy / lazyarray", 2, "times", {"least": 1.5}))
    keep("table1", "2026-01-03", *((f"{library}, n = 1e+04", 0.5, "ms", {}) for library in report.LIBRARIES[:3]))
    return tmp_path


def test_the_newest_results_are_shown_and_a_miss_is_a_miss(results):
    text = report.section()
    assert report.headlines() == [
        ("softplus, 1e8 float32: speedup over CuPy", ">= 10", "9", "**no**"),
        ("k-means: speedup over CuPy arrays", ">= 1.5", "2", "yes"),
    ]
    words = " ".join(text.split())
    assert "1 of 2 targets are met" in words and "A Card, 2026-01-02 to 2026-01-03; NumPy 2.5" in words
    assert "10,000 0.5   0.5  0.5" in text
    assert max(map(len, text.splitlines())) <= 120


def test_a_near_miss_is_seen_to_be_one():
    assert report.shown({"value": 1.996, "least": 2}) == "1.996" and report.shown({"value": 2.004, "least": 2}) == "2"


def test_the_plots_are_drawn_and_drawn_alike(results, tmp_path):
    pytest.importorskip("matplotlib")
    folder = tmp_path / "plots"
    folder.mkdir()
    first = {path: path.read_bytes() for path in report.draw(folder)}
    assert {path.stem for path in first} == set(report.PLOTS) - {"speed-sweep"}      # of which there are no results
    assert {path: path.read_bytes() for path in report.draw(folder)} == first
