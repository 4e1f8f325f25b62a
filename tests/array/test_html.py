"""HTML of lazy arrays and of traces: true, bounded in what it copies, well-formed, and read in light and dark."""
from __future__ import annotations

import base64
import re
import shutil
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
import zlib
from pathlib import Path

import numpy as np
import pytest

import lazyarray
from lazyarray.array.html import MOST_BYTES, data_uri, thumbnail
from lazyarray.events import html as reports_html
from lazyarray.events import markup, report
from lazyarray.events.trace import Event
from lazyarray.storage import handles, residency

RNG = np.random.default_rng(0)
NAMED = np.zeros(9, [("<b>&'\"", int), ("y", float, (2,)), ("z", "U5")])

SPECIMENS = {
    "0-d": np.array(3.5),
    "1-d": np.arange(1000),
    "short": np.arange(4.0),
    "empty": np.zeros((0, 3)),
    "empty 5-d": np.zeros((2, 0, 3, 1, 1)),
    "large": np.zeros((3000, 4000)),
    "row": np.ones((1, 5000), "f4"),
    "cube": np.arange(2400).reshape(2, 30, 40),
    "32-d": np.zeros((2,) * 10 + (1,) * 22, np.int8),
    "complex": RNG.random((70, 80)) * 1j,
    "float16": RNG.random((70, 80)).astype("f2"),
    "long double": RNG.random((70, 80)).astype("g"),
    "big-endian": RNG.random((70, 80)).astype(">f8"),
    "bool": np.eye(100, dtype=bool),
    "uint64": np.full((70, 80), 2**64 - 1, "u8"),
    "nan": np.where(np.eye(20) > 0, np.nan, 1e308),
    "all nan": np.full((9, 9), np.nan),
    "inf": np.full((9, 9), np.inf),
    "constant": np.full((300, 200), 7.0),
    "rgb": (RNG.random((100, 130, 3)) * 255).astype("u1"),
    "rgba": RNG.random((300, 64, 4)),
    "rgb of integers": RNG.integers(0, 9, (64, 64, 3)),
    "structured": NAMED,
    "structured 2-d": np.zeros((8, 8), "i4,f8"),
    "many fields": np.zeros(2, [(f"f{i}", "i1") for i in range(300)]),
    "objects": np.array([{}, [1, 2], "<script>alert(1)</script>", None], object),
    "strings": np.array([["a & b", "<i>\n\x1f\x00x"]]),
    "dates": np.arange("2020-01-01", "2020-02-01", dtype="M8[D]"),
    "void": np.zeros(3, "V5"),
}


def parsed(html):
    """The element tree: markup that XML takes is closed and quoted everywhere."""
    return ET.fromstring(html)


def text_of(html):
    return " ".join(" ".join(parsed(html).itertext()).split())


def cells(html, number=-1):
    """The texts of one of the tables, row by row."""
    table = parsed(html).findall(".//table")[number]
    return [["".join(cell.itertext()) for cell in row] for row in table.findall("tr")]


def facts(html):
    return dict(cells(html, 0))


def pixels_of(html):
    """The thumbnail's pixels, decoded here from the PNG."""
    (image,) = parsed(html).findall(".//img")
    return decoded(image.get("src"))


def decoded(uri):
    png = base64.b64decode(uri.removeprefix("data:image/png;base64,"), validate=True)
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at:at + 4])
        name, data = png[at + 4:at + 8], png[at + 8:at + 8 + length]
        assert struct.unpack(">I", png[at + 8 + length:at + 12 + length])[0] == zlib.crc32(name + data)
        chunks[name] = data
        at += 12 + length
    width, height, depth, kind = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, kind, list(chunks)) == (8, 6, [b"IHDR", b"IDAT", b"IEND"])
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 4 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 4)


# -- every array -----------------------------------------------------------------------------

@pytest.mark.parametrize("name", SPECIMENS)
def test_any_array_has_well_formed_html_and_few_bytes_are_copied(name):
    array = SPECIMENS[name]
    x = lazyarray.asarray(array)
    with lazyarray.trace() as t:
        html = x._repr_html_()
    tree = parsed(html)
    found = facts(html)
    assert found["shape"] == markup.clipped(str(array.shape), 100)
    assert found["dtype"] == markup.clipped(str(array.dtype), 100)
    assert found["bytes"].split(" (")[0] == report.format_bytes(array.nbytes)
    assert t.nbytes <= MOST_BYTES and len(t) <= 2 and not t.uploads
    assert not {element.tag for element in tree.iter()} & {"script", "style", "link"}
    assert not [element for element in tree.iter() if "id" in element.keys()]
    assert len(html) < 60_000


@pytest.mark.parametrize("name", SPECIMENS)
def test_what_is_current_on_the_host_is_looked_at_there(name):
    x = lazyarray.asarray(SPECIMENS[name])
    alias = np.asarray(x)
    with lazyarray.trace() as t:
        again = x._repr_html_()
    assert not len(t)
    assert alias.size == 0 or "on the device" not in facts(again)["where"] or "on the host" in facts(again)["where"]


def test_the_html_is_the_same_on_both_sides():
    for name in ("large", "rgb", "rgba", "nan", "cube", "1-d", "complex", "constant"):
        x = lazyarray.asarray(SPECIMENS[name])
        on_device = x._repr_html_()
        np.asarray(x)
        assert on_device.replace("(simulated)", "").replace("(cuda)", "") == x._repr_html_().replace(
            " and on the host", "").replace("(simulated)", "").replace("(cuda)", ""), name


def test_dtype_and_field_names_are_text():
    html = lazyarray.asarray(NAMED)._repr_html_()
    assert "<b>&'" not in html and cells(html)[0][1] == "<b>&'\""
    html = lazyarray.asarray(SPECIMENS["objects"])._repr_html_()
    assert "<script" not in html and "<script>alert(1)</script>" in cells(html)[1]


def test_numpys_print_options_hold():
    x = lazyarray.asarray([1 / 3, 2 / 3])
    with np.printoptions(precision=2):
        assert cells(x._repr_html_())[1] == ["", "0.33", "0.67"]
    with np.printoptions(formatter={"float": lambda value: f"[{value:.1f}"}):
        assert cells(x._repr_html_())[1] == ["", "[0.3", "[0.7"]


# -- where it is -----------------------------------------------------------------------------

class TestWhere:
    def where(self, x):
        return facts(x._repr_html_())["where"]

    def test_device_both_and_host(self):
        x = lazyarray.asarray(np.zeros((10, 10)))
        name = lazyarray.where(x).device.replace(":", " ") if lazyarray.device().count > 1 else lazyarray.device().name
        assert self.where(x) == f"on the device ({name})"
        alias = np.asarray(x)
        assert self.where(x) == f"on the device ({name}) and on the host"
        x += 1      # what is held on the host is brought up to date
        assert alias[0, 0] == 1 and "and on the host" in self.where(x)
        del alias
        x += 1
        assert self.where(x) == f"on the device ({name})"

    def test_born_on_the_host(self):
        x = handles.host_result(np.zeros(5))
        assert self.where(x) == "on the host"
        x._self_storage.read_device(handles.meta_of(x))
        assert "and on the host" in self.where(x)

    def test_what_the_device_cannot_hold(self):
        assert self.where(lazyarray.asarray(["a"])) == "on the host (the device holds no such dtype)"

    def test_a_view_is_where_its_own_bytes_are(self):
        x = lazyarray.asarray(np.zeros((100, 100)))
        np.asarray(x[:3])
        assert "host" in self.where(x[:3]) and "host" in self.where(x[1, ::2])
        assert "host" not in self.where(x) and "host" not in self.where(x[2:4])

    @pytest.mark.together
    def test_memory_that_gpu_code_holds_is_only_trusted_there(self):
        x = lazyarray.asarray(np.zeros(10))
        np.asarray(x)
        lent = lazyarray.asdevice(x)
        lent += 5
        html = x._repr_html_()
        assert "host" not in facts(html)["where"] and cells(html)[1][1] == "5."

    def test_deferred_work_is_shown_and_stays_deferred(self):
        x = lazyarray.asarray(np.arange(100.0).reshape(10, 10))
        y = np.sqrt(x * 2 + 1)
        for _ in range(2):
            html = y._repr_html_()
            assert facts(html)["where"] == "deferred: sqrt(x * 2 + 1), 3 operations"
            assert cells(html)[1][1] == "1." and "<img" in html
        assert lazyarray.where(y).side == "pending"
        np.asarray(y)
        assert "deferred" not in self.where(y)

    def test_on_several_devices_it_names_which(self):
        if lazyarray.device().count == 1:
            if lazyarray.device().name != "simulated":
                pytest.skip("one GPU")
            with lazyarray.device().with_count(2), lazyarray.device().on(1):
                assert self.where(lazyarray.asarray(np.zeros(3))) == "on the device (simulated 1)"


def test_a_glance_sees_what_an_alias_wrote():
    x = lazyarray.asarray(np.zeros(40000))
    alias = np.asarray(x)
    alias[0] = 9
    with lazyarray.no_transfers():
        assert cells(x._repr_html_())[1][1] == "9."
    assert residency.glance(x._self_storage, handles.meta_of(x)).flags.writeable is False


def test_where_copies_are_forbidden_it_says_so():
    x = lazyarray.asarray(np.zeros((20, 20)))
    with lazyarray.no_transfers():
        html = x._repr_html_()
    assert facts(html)["shape"] == "(20, 20)" and "no_transfers() is in force" in text_of(html)
    assert not parsed(html).findall(".//img")


# -- the corners -----------------------------------------------------------------------------

class TestCorners:
    def test_a_matrix(self):
        x = lazyarray.asarray(np.arange(20_000).reshape(100, 200))
        table = cells(x._repr_html_())
        assert table[0] == ["", "0", "1", "2", "\u2026", "197", "198", "199"]
        assert table[1] == ["0", "0", "1", "2", "\u2026", "197", "198", "199"]
        assert table[4] == ["\u2026"] * 8
        assert table[-1] == ["99", "19800", "19801", "19802", "\u2026", "19997", "19998", "19999"]

    def test_small_ones_are_shown_whole(self):
        assert cells(lazyarray.asarray(np.arange(6).reshape(2, 3))._repr_html_()) == [
            ["", "0", "1", "2"], ["0", "0", "1", "2"], ["1", "3", "4", "5"]]
        assert cells(lazyarray.asarray(np.float64(2.5))._repr_html_()) == [["2.5"]]
        assert cells(lazyarray.asarray(np.arange(3))._repr_html_()) == [["", "0", "1", "2"], ["", "0", "1", "2"]]

    def test_of_more_dimensions_the_first_and_the_last_plane(self):
        array = np.arange(3 * 4 * 50 * 60).reshape(3, 4, 50, 60)
        html = lazyarray.asarray(array)._repr_html_()
        captions = [caption.text for caption in parsed(html).findall(".//caption")]
        assert captions == ["[0, 0, :, :]", "[2, 3, :, :]"]
        assert cells(html, 1)[1][1:4] == ["0", "1", "2"] and cells(html, 2)[-1][-1] == str(array[-1, -1, -1, -1])

    def test_a_pixel_is_one_cell(self):
        html = lazyarray.asarray(np.arange(8 * 40 * 3, dtype="f4").reshape(8, 40, 3))._repr_html_()
        assert cells(html)[1][:3] == ["0", "0., 1., 2.", "3., 4., 5."]

    def test_records_have_a_column_for_each_field(self):
        table = cells(lazyarray.asarray(NAMED)._repr_html_())
        assert table[0] == ["", "<b>&'\"", "y", "z"] and table[1] == ["0", "0", "[0.0, 0.0]", ""]
        assert [row[0] for row in table] == ["", "0", "1", "2", "\u2026", "6", "7", "8"]
        assert cells(lazyarray.asarray(SPECIMENS["many fields"])._repr_html_())[0] == [
            "", "f0", "f1", "f2", "\u2026", "f297", "f298", "f299"]

    def test_of_a_sparse_view_of_a_large_storage_only_the_corners_are_copied(self):
        x = lazyarray.asarray(np.zeros((9, 2 << 20)))[:, ::4]
        assert x.nbytes > 32 << 20
        for _ in range(2):      # not read as a whole the second time either
            with lazyarray.trace() as t:
                x._repr_html_()
            assert t.nbytes <= 36 * 8


def test_corners_of_any_view_on_any_side():
    hypothesis = pytest.importorskip("hypothesis")
    from hypothesis import strategies as st

    @hypothesis.given(st.lists(st.integers(1, 9), max_size=4), st.data())
    @hypothesis.settings(max_examples=60)
    def check(shape, data):
        array = np.arange(int(np.prod(shape)), dtype=np.int16).reshape(shape)
        x = lazyarray.asarray(array)
        starts, steps = [data.draw(st.integers(0, n - 1)) for n in shape], st.sampled_from([1, 2, -1])
        cut = (*(slice(start, None, data.draw(steps)) for start in starts), ...)
        axes = data.draw(st.permutations(range(len(shape))))
        view, expected = x[cut].transpose(axes), array[cut].transpose(axes)
        if data.draw(st.booleans()):
            np.asarray(x if data.draw(st.booleans()) else view)
        with lazyarray.trace() as t:
            html = view._repr_html_()
        assert t.nbytes <= MOST_BYTES
        first, last = cells(html, 1), cells(html)
        body = first[1:] if expected.ndim else first
        assert body[0][1 if expected.ndim else 0] == str(expected[(0,) * expected.ndim])
        assert last[-1][-1] == str(expected[(-1,) * expected.ndim])
        rows = [row for row in last[1 if expected.ndim > 1 else 0:] if row[0] != "\u2026"]
        if expected.ndim > 1:
            plane = expected[(-1,) * (expected.ndim - 2)]
            for row in rows:
                shown = [text for text in row[1:] if text != "\u2026"]
                whole = plane[int(row[0])].tolist()
                assert shown == [str(v) for v in (whole if len(whole) <= 6 else whole[:3] + whole[-3:])]

    check()


# -- the thumbnail ---------------------------------------------------------------------------

class TestThumbnail:
    @pytest.mark.parametrize("shape", [(64, 64), (65, 65), (8, 128), (2048, 2048), (3000, 4000), (511, 4000), (8, 9)])
    @pytest.mark.parametrize("depth", [(), (3,), (4,)])
    def test_at_most_64_x_64_values_are_moved_in_one_copy(self, shape, depth):
        x = lazyarray.asarray(np.zeros((*shape, *depth), "u1"))
        with lazyarray.trace() as t:
            html = x._repr_html_()
        (event,) = [event for event in t if "thumbnail" in event.reason]
        assert np.prod(event.shape) <= 64 * 64 and max(event.shape) <= 64
        assert pixels_of(html).shape[:2] == event.shape
        ratio = event.shape[0] / event.shape[1] * shape[1] / shape[0]
        assert 0.75 < ratio < 1.34

    @pytest.mark.parametrize("shape", [(7, 100), (8, 129), (100,), (100, 100, 2), (100, 100, 5), (9, 9, 9, 3), (0, 9)])
    def test_what_is_no_image_has_none(self, shape):
        assert not parsed(lazyarray.asarray(np.zeros(shape))._repr_html_()).findall(".//img")

    @pytest.mark.parametrize("dtype", ["i8", "c8", "S3"])
    def test_a_colour_image_has_a_dtype_of_images(self, dtype):
        assert not parsed(lazyarray.asarray(np.zeros((20, 20, 3), dtype))._repr_html_()).findall(".//img")

    def test_bytes_are_shown_as_they_are(self):
        image = RNG.integers(0, 256, (50, 60, 4)).astype(np.uint8)
        assert (pixels_of(lazyarray.asarray(image)._repr_html_()) == image).all()
        grey = pixels_of(lazyarray.asarray(image[..., 0])._repr_html_())
        assert (grey[..., :3] == image[..., :1]).all() and (grey[..., 3] == 255).all()

    def test_numbers_are_stretched_from_black_to_white(self):
        ramp = pixels_of(lazyarray.asarray(np.linspace(-5, 3, 400).reshape(20, 20))._repr_html_())
        assert ramp[0, 0].tolist() == [0, 0, 0, 255] and ramp[-1, -1].tolist() == [255, 255, 255, 255]
        assert (np.diff(ramp[..., 0].ravel().astype(int)) >= 0).all()

    def test_a_pixel_is_the_mean_of_its_block(self):
        image = RNG.random((128, 192))
        expected = image[:126, :192].reshape(42, 3, 64, 3).mean(axis=(1, 3))
        expected = (expected - expected.min()) / np.ptp(expected) * 255
        assert np.abs(pixels_of(lazyarray.asarray(image)._repr_html_())[..., 0] - expected).max() <= 0.51

    def test_what_is_not_finite_is_transparent_and_spoils_nothing(self):
        image = np.add.outer(np.arange(20.0), np.arange(20.0))
        clean = pixels_of(lazyarray.asarray(image)._repr_html_())
        for bad in (np.nan, np.inf, -np.inf):
            image[3, 4] = bad
            found = pixels_of(lazyarray.asarray(image)._repr_html_()).copy()
            assert found[3, 4, 3] == 0
            found[3, 4] = clean[3, 4]
            assert (found == clean).all()

    def test_floats_of_colours_go_from_0_to_1(self):
        image = np.zeros((10, 10, 3), "f4")
        image[..., 0], image[..., 1] = 0.5, 7
        assert pixels_of(lazyarray.asarray(image)._repr_html_())[0, 0].tolist() == [128, 255, 0, 255]

    @pytest.mark.parametrize("value", [0, 7, -1e308, 1e-320, 2**63 - 1])
    def test_a_constant_image_is_grey(self, value):
        found = pixels_of(lazyarray.asarray(np.full((10, 10), value))._repr_html_())
        assert (found == [128, 128, 128, 255]).all()

    def test_the_whole_range_of_floats(self):
        image = np.full((10, 10), -1.7e308)
        image[5:] = 1.7e308
        found = pixels_of(lazyarray.asarray(image)._repr_html_())[..., 0]
        assert (found[:5] == 0).all() and (found[5:] == 255).all()

    def test_both_sides_make_the_same(self):
        device = lazyarray.device()
        for name in ("rgb", "rgba", "nan", "complex", "large", "bool"):
            array = SPECIMENS[name]
            ours = thumbnail(device.xp, lazyarray.asdevice(array), array.ndim == 3)
            with np.errstate(all="ignore"):
                numpys = thumbnail(np, array, array.ndim == 3)
            assert np.abs(lazyarray.asnumpy(ours).astype(int) - numpys).max() <= 1, name

    def test_pillow_reads_the_png(self):
        Image = pytest.importorskip("PIL.Image")
        import io

        pixels = RNG.integers(0, 256, (5, 7, 4)).astype(np.uint8)
        with Image.open(io.BytesIO(base64.b64decode(data_uri(pixels).partition(",")[2]))) as image:
            assert (np.asarray(image) == pixels).all()


# -- traces ----------------------------------------------------------------------------------

def event(kind="upload", start=0.0, seconds=0.001, nbytes=100, lineno=1, thread=1, code="x = <y> & 'z'", name=""):
    return Event(kind, name, nbytes, (10,), np.dtype(float), "a <reason>", "/tmp/a.py", lineno, code, thread, start,
                 seconds)


MANY = [event(kind, i * 0.01, 0.004, 1000 * i, i % 7, i % 3) for i, kind in
        enumerate(["upload", "materialise", "fallback", "synchronise"] * 10)]


class TestTraceReport:
    def test_each_line_and_kind_has_a_row(self):
        rows = cells(reports_html.report(MANY))
        assert rows[0] == ["where", "kind", "times", "bytes", "ms", "line", "why"]
        assert len(rows) == 1 + len({(e.lineno, e.kind) for e in MANY})
        assert sum(int(row[2]) for row in rows[1:]) == 40
        lines = [int(row[0].partition(":")[2]) for row in rows[1:]]
        assert lines == sorted(lines)

    def test_it_says_what_was_copied(self):
        assert "10 uploads" in text_of(reports_html.report(MANY)) and "10 fallbacks" in text_of(
            reports_html.report(MANY))
        assert "0 uploads, 0 materialisations" in text_of(reports_html.report([]))

    def test_a_trace_shows_itself_in_a_notebook(self):
        with lazyarray.trace() as t:
            lazyarray.asarray(np.zeros(100))
        assert cells(t._repr_html_())[1][1:4] == ["\u25a0 upload", "1", "800 B"]
        assert "test_html.py:" in t.line_table() and "800 B" in t.line_table()

    def test_code_is_text(self):
        html = reports_html.report([event(code="<b>", name="</svg>")])
        assert cells(html)[1][5] == "<b>" and "</svg>: a <reason>" in cells(html)[1][6]

    def test_of_very_many_lines_those_with_the_most_bytes(self):
        events = [event(lineno=i, nbytes=i) for i in range(1000)]
        html = reports_html.report(events)
        rows = cells(html)
        assert len(rows) == 201 and rows[1][0] == "a.py:800" and "and 800 more" in text_of(html)
        assert "and 800 more" in report.line_table(events)

    def test_a_page_and_a_picture_of_their_own(self, tmp_path):
        with lazyarray.trace() as t:
            lazyarray.asarray(np.zeros(100))
        t.to_html(tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert page.startswith("<!DOCTYPE html>") and 'content="light dark"' in page
        svg = parsed(t.timeline())
        assert svg.tag == "{http://www.w3.org/2000/svg}svg" and "color-scheme:light dark" in svg.get("style")
        assert "Canvas" not in t._repr_html_()      # in a page, the picture has the page's colours


class TestTimeline:
    def drawn(self, events, **options):
        svg = parsed(reports_html.timeline(events, **options))
        return [rect for rect in svg.iter() if rect.tag.endswith("rect")], svg

    def test_a_block_is_where_its_time_is(self):
        rects, svg = self.drawn([event(start=5.0, seconds=1.0), event("materialise", 8.0, 1.0)])
        first, second = ((float(r.get("x")), float(r.get("width"))) for r in rects)
        assert first[1] == pytest.approx(second[1], abs=0.02)
        assert second[0] - first[0] == pytest.approx(3 * first[1], abs=0.05)
        assert second[0] + second[1] <= float(svg.get("width"))

    def test_each_kind_has_a_lane_and_a_colour(self):
        rects, _ = self.drawn([event(kind) for kind in reports_html.COLOURS])
        assert {rect.get("fill") for rect in rects} == set(reports_html.COLOURS.values())
        assert len({rect.get("y") for rect in rects}) == len(reports_html.COLOURS) == 7

    def test_threads_have_lanes_of_their_own_if_they_are_few(self):
        few, _ = self.drawn([event(thread=i) for i in range(4)])
        many, _ = self.drawn([event(thread=i) for i in range(40)])
        assert len({rect.get("y") for rect in few}) == 4 and len({rect.get("y") for rect in many}) == 1

    def test_a_picture_of_very_many_events_stays_small(self):
        events = [event(start=i * 1e-3, seconds=1e-4) for i in range(100_000)]
        text = reports_html.timeline(events)
        assert len(text) < 500_000
        names = [title.text for title in parsed(text).iter() if title.tag.endswith("title")]
        assert sum(int(name.split()[0]) for name in names) == 100_000

    def test_no_time_at_all(self):
        rects, _ = self.drawn([event(seconds=0.0)])
        assert len(rects) == 1 and parsed(reports_html.timeline([])) is not None

    @pytest.mark.parametrize("seconds", [1e-6, 3e-5, 1e-3, 0.0999, 0.2, 1.0, 59.0, 12345.0])
    def test_the_axis_has_a_few_round_numbers(self, seconds):
        unit, divisor, digits, ticks = reports_html.axis_ticks(seconds)
        assert 3 <= len(ticks) <= 11 and ticks[-1] <= seconds * 1.0001
        shown = [f"{tick / divisor:.{digits}f}" for tick in ticks]
        assert len(set(shown)) == len(shown) and all(len(text) <= 6 for text in shown)

    def test_the_whole_time_of_a_cell_can_be_shown(self):
        rects, _ = self.drawn([event(start=5.0, seconds=1.0)], span=(0.0, 10.0))
        assert 50 < float(rects[0].get("width")) < 80


# -- light and dark --------------------------------------------------------------------------

def luminance(colour):
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("ground", ["#ffffff", "#111111", "#1e1e1e"])
@pytest.mark.parametrize("kind", reports_html.COLOURS)
def test_colours_stand_out_from_light_and_dark_pages(kind, ground):
    bright, dark = sorted((luminance(reports_html.COLOURS[kind]), luminance(ground)), reverse=True)
    assert (bright + 0.05) / (dark + 0.05) >= 3


def test_no_other_colour_is_fixed():
    """Text takes the page's colour; grounds and lines are half transparent grey."""
    html = lazyarray.asarray(SPECIMENS["rgb"])._repr_html_() + reports_html.report(MANY)
    html = re.sub(r'src="[^"]*"', "", html)
    for colour in reports_html.COLOURS.values():
        html = html.replace(colour, "")
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b|\b(?:black|white(?!-)|rgb\()", html)
    assert set(re.findall(r"rgba\([^)]*\)", html)) <= {"rgba(128,128,128,.45)", "rgba(128,128,128,.12)"}


CHROMIUM = shutil.which("chromium")


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_shows_it_readably(scheme, tmp_path):
    """Pixels of a screenshot: the page is as light or as dark as the reader wants it, and the text stands out."""
    Image = pytest.importorskip("PIL.Image")
    page = ('<!DOCTYPE html><html><head><meta charset="utf-8"><meta name="color-scheme" content="light dark"></head>'
            f'<body style="margin:0">{lazyarray.asarray(np.arange(12))._repr_html_()}</body></html>')
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
               "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
               f"--user-data-dir={tmp_path / 'profile'}", "--window-size=500,300",
               f"--blink-settings=preferredColorScheme={1 if scheme == 'light' else 0}",
               f"--screenshot={tmp_path / 'shot.png'}", (tmp_path / "page.html").as_uri()]
    subprocess.run(command, capture_output=True, check=True, timeout=120)
    with Image.open(tmp_path / "shot.png") as image:
        shot = np.asarray(image.convert("L")).astype(int)
    ground = np.bincount(shot.ravel()).argmax()
    assert ground > 200 if scheme == "light" else ground < 60
    assert np.abs(shot - ground).max() > 150 and (np.abs(shot - ground) > 100).sum() > 200


def test_the_modules_are_read_only_when_they_are_needed():
    code = ("import sys, lazyarray; "
            "print([n for n in sys.modules if n.endswith('.html') or n == 'lazyarray.events.markup'])")
    root = Path(__file__).parents[2]
    found = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
