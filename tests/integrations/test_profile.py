"""The profile of a program: for each line its copies and times, and advice that is true."""
from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import lazyarray
from lazyarray.integrations.profile import Profile

ROOT = Path(__file__).parents[2]
#: Lines that are named in the assertions are marked.
PROGRAM = """\
import sys
import time
import numpy as np
import lazyarray

w = np.random.default_rng(0).random((300, 300))
fresh = [np.full((300, 300), float(i)) for i in range(12)]
x = lazyarray.asarray(np.ones((300, 300)))
for i in range(20):
    x = x + lazyarray.asarray(w)        # same
for i in range(12):
    x = x + lazyarray.asarray(fresh[i])     # other
for i in range(30):
    x[i, 0] = 1
    float(x[i, 0])      # single
np.linalg.eig(x)        # fallback
time.sleep(0.25)        # host
print("arguments", sys.argv[1:])
if "fail" in sys.argv:
    sys.exit(3)
"""


def marked(text):
    return 1 + [text in line for line in PROGRAM.splitlines()].index(True)


def run(tmp_path, *arguments, after=()):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return subprocess.run([sys.executable, "-m", "lazyarray", "run", *arguments, str(path), *after],
                          env=os.environ | {"PYTHONPATH": str(ROOT)}, cwd=tmp_path, capture_output=True, text=True,
                          timeout=300)


def rows(text):
    """Number of the line -> what stands after it."""
    return {int(number): rest for number, rest in re.findall(r"^program\.py:(\d+)  +(.*)$", text, re.MULTILINE)}


def advice(text):
    return {int(number): rest for number, rest in re.findall(r"^- program\.py:(\d+):? (.*)$", text, re.MULTILINE)}


class TestCommand:
    def test_lines_and_advice(self, tmp_path):
        done = run(tmp_path, "--enable", "scipy", "--trace", after=("a", "--trace"))
        assert done.returncode == 0 and done.stdout == "arguments ['a', '--trace']\n"
        found, said = rows(done.stderr), advice(done.stderr)
        assert re.search(r"^line +ms +device ms +host ms +to device +to host +fallbacks +code$", done.stderr, re.M)
        assert "20 (13.7 MiB)" in found[marked("# same")] and "30 (240 B)" in found[marked("# single")]
        ms = float(found[marked("# host")].split()[0])
        assert 200 < ms < 2000 and "time.sleep(0.25)" in found[marked("# host")]
        assert said[marked("# same")] == ("w is uploaded 20 times with the same values. Make it lazy once, before the "
                                          "loop: w = lazyarray.asarray(w)")
        assert said[marked("# single")].startswith("copies one value at a time, 30 times")
        assert said[marked("# fallback")].startswith("ran numpy.linalg.eig on the host: ")
        assert sorted(said) == sorted(map(marked, ("# same", "# single", "# fallback"))), "nothing else"

    def test_as_a_web_page(self, tmp_path):
        done = run(tmp_path, "--trace=report.html")
        assert done.returncode == 0 and "report.html" in done.stderr
        page = (tmp_path / "report.html").read_text()
        ET.fromstring(re.sub(r"<!DOCTYPE html>|<meta[^>]*>", "", page))
        assert "w is uploaded 20 times" in page and f"program.py:{marked('# same')}" in page and "<svg" in page

    def test_a_program_that_fails_is_reported_too(self, tmp_path):
        done = run(tmp_path, "--trace", after=("fail",))
        assert done.returncode == 3 and marked("# same") in rows(done.stderr)

    def test_without_the_option_there_is_no_report(self, tmp_path):
        done = run(tmp_path)
        assert done.returncode == 0 and not rows(done.stderr)


class TestProfile:
    def test_time_of_the_device_and_of_the_host(self):
        n = 4096 if lazyarray.device().name == "cuda" else 700      # for milliseconds of work in each call
        x = lazyarray.asarray(np.random.default_rng(0).random((n, n)))
        lazyarray.block_until_ready(x @ x)      # the libraries are loaded
        with Profile() as p:
            for _ in range(10):
                lazyarray.block_until_ready(x @ x)      # device
            time.sleep(0.2)     # host
        here = {line.code.rpartition("# ")[2]: line for line in p.lines() if line.filename == __file__}
        assert here["host"].host > 0.15 and here["host"].device == 0
        assert here["device"].device > 0.5 * (here["device"].device + here["device"].host)
        total = sum(line.device + line.host for line in p.lines())
        assert 0.5 * p.seconds < total <= p.seconds * 1.01
        assert p.advice() == [], "there is nothing to be done"

    def test_nothing_is_kept_alive_and_the_thread_ends(self):
        import weakref

        w = np.ones(1000)
        ref = weakref.ref(w)
        with Profile() as p:
            lazyarray.asarray(w)
        del w
        assert ref() is None and len(p.trace.uploads) == 1
        assert "lazyarray-profile" not in {thread.name for thread in threading.enumerate()}

    def test_memory_of_uploaded_arrays_is_free_at_once(self):
        import weakref

        with Profile():
            w = np.ones(1000)
            ref = weakref.ref(w)
            lazyarray.asarray(w)
            del w
            assert ref() is None

    def test_an_argument_is_named_as_what_the_caller_passes(self):
        def add(a, b):
            return a + lazyarray.asarray(b)

        w, kept = np.ones(500), [np.zeros(500)]
        x = lazyarray.asarray(np.ones(500))
        with Profile() as p:
            for _ in range(12):
                x = add(x, w)
        (text,) = p.advice()
        assert text.endswith("w, the argument b of add, is uploaded 12 times with the same values. Make it lazy once, "
                             "before the loop: w = lazyarray.asarray(w)")
        with Profile() as p:
            for _ in range(12):
                x = add(x, kept[0])
        (text,) = p.advice()
        assert text.endswith(": the argument b of add is uploaded 12 times with the same values. Pass a lazy array "
                             "that is made once: lazyarray.asarray(...)")
        w = lazyarray.asarray(w)
        with Profile() as p:
            for _ in range(12):
                x = add(x, w)
        assert not p.advice(), "what it advises helps"

    def test_an_array_that_is_assigned_again_and_again(self):
        w, y = np.full((400, 400), 2.0), lazyarray.asarray(np.zeros((400, 400)))
        with Profile() as p:
            for _ in range(20):
                y[:] = w
            for i in range(20):
                y[:] = np.full((400, 400), float(i))
        (text,) = p.advice()
        assert text.endswith(": w is uploaded 20 times with the same values. Make it lazy once, before the loop: "
                             "w = lazyarray.asarray(w)")
        w = lazyarray.asarray(w)
        with Profile() as p:
            for _ in range(20):
                y[:] = w
        assert not p.advice() and not p.trace.uploads

    def test_changed_values_and_views_are_other_uploads(self):
        w = np.zeros((20, 100))
        with Profile() as p:
            for i in range(20):
                w[0, 0] = i
                lazyarray.asarray(w)
                lazyarray.asarray(w[i])
        assert not [text for text in p.advice() if "is uploaded" in text]

    def test_a_library_that_is_not_enabled(self):
        filters = pytest.importorskip("skimage.filters")
        x = lazyarray.asarray(np.random.default_rng(0).random((40, 40)))
        with Profile() as p, lazyarray.options(warn_fallbacks=False):
            filters.gaussian(x, 2)
        if lazyarray.device().name == "simulated":
            (text,) = p.advice()
            assert re.search(r"test_profile\.py:\d+ left the GPU: skimage\.filters\.gaussian copied 12\.5 KiB to the "
                             r"host\. To run it on the device, call lazyarray\.enable\('skimage'\)$", text)
        with Profile() as p, lazyarray.enabled("skimage"):
            filters.gaussian(x + 1, 2)
        assert not p.advice(), "what it advises helps"

    def test_other_threads(self):
        def work():
            lazyarray.asarray(np.ones(3))

        for process, uploads in ((True, 1), (False, 0)):
            with Profile(process=process) as p:
                thread = threading.Thread(target=work)
                thread.start()
                thread.join()
            assert len(p.trace.uploads) == uploads

    def test_time_of_other_threads(self):
        def work():
            stop = time.perf_counter() + 1      # of which other processes may take most
            while time.perf_counter() < stop:
                lazyarray.block_until_ready(x @ x)      # worker

        n = 4096 if lazyarray.device().name == "cuda" else 700
        x = lazyarray.asarray(np.random.default_rng(0).random((n, n)))
        lazyarray.block_until_ready(x @ x)
        for process in (True, False):
            with Profile(process=process) as p:
                thread = threading.Thread(target=work)
                thread.start()
                thread.join()
            lines = {line.code.rpartition("# ")[2]: line for line in p.lines() if line.filename == __file__}
            assert ("worker" in lines) == process
            if process:
                assert lines["worker"].device > 0.1
                assert float(re.search(r"computed ([\d.]+) ms", p.title)[1]) > 100
            assert ("times of several threads are added up" in str(p)) == process
            assert ("Not included: other threads" in str(p)) == (not process)
            assert "child processes" in str(p) and "child processes" in p._repr_html_()

    def test_repr_and_html(self):
        with Profile() as p:
            lazyarray.asarray(np.ones(3))
        assert re.fullmatch(r"<profile: [\d.]+ ms, of which the device computed [\d.]+ ms>", repr(p))
        ET.fromstring(p._repr_html_())
        assert "1 upload" in str(p) and "1 (24 B)" in str(p)


class TestProfilers:
    """Ranges for a profiler that is attached, such as Nsight Systems."""

    def test_events_and_deferred_work_are_ranges(self, monkeypatch):
        from lazyarray.events import trace

        calls = []
        monkeypatch.setattr(trace, "ranges", (calls.append, lambda: calls.append("end")))
        x = lazyarray.asarray(np.ones(100))
        np.asarray(np.sqrt(x * 2 + 1))
        begun = [text for text in calls if text != "end"]
        assert len(begun) == calls.count("end") == 3
        assert re.fullmatch(r"lazyarray upload asarray, 800 bytes, test_profile\.py:\d+", begun[0])
        assert begun[1] == "lazyarray computes 3 operations, ending with sqrt"
        assert begun[2].startswith("lazyarray materialise ") and calls[:2] == [begun[0], "end"]

    @pytest.mark.parametrize(("name", "attached"), [
        ("NVTX_INJECTION64_PATH", True), ("LAZYARRAY_NVTX", True), ("A", False)])
    def test_only_an_attached_profiler_is_asked(self, name, attached):
        code = ("from lazyarray import devices; from lazyarray.devices.base import Device; import lazyarray\n"
                "from lazyarray.events import trace\n"
                "Device.profiler_ranges = lambda self: (print, lambda: print('end'))\n"
                "lazyarray.asarray([1.0] * 99_999)\nprint(trace.ranges is not None)")
        environment = os.environ | {"PYTHONPATH": str(ROOT), "LAZYARRAY_DEVICE": "simulated", name: "1"}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == str(attached) and ("lazyarray upload" in done.stdout) == attached

    @pytest.mark.skipif(lazyarray.device().name != "cuda", reason="CuPy's ranges are heard where it works")
    @pytest.mark.skipif(shutil.which("cc") is None, reason="needs a compiler")
    def test_a_profiler_hears_them(self, tmp_path):
        """NVTX loads what listens as it does with Nsight Systems."""
        listener, heard = tmp_path / "listener.so", tmp_path / "heard"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", listener, ROOT / "tests/support/nvtx_listener.c"], check=True)
        code = ("import lazyarray, numpy as np\nwith lazyarray.options(small_on_host=False):\n"
                "    x = lazyarray.asarray(np.ones(10_000))\n    np.asarray(np.sqrt(x * 2 + 1))")
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
                                    "NVTX_INJECTION64_PATH": str(listener), "NVTX_LISTENER": str(heard)}
        subprocess.run([sys.executable, "-c", code], env=environment, check=True)
        lines = [line for line in heard.read_text().splitlines() if line == "end" or line.startswith("lazyarray ")]
        begun = [line for line in lines if line != "end"]
        assert begun[0].startswith("lazyarray upload asarray, 80000 bytes")
        assert begun[1] == "lazyarray computes 3 operations, ending with sqrt"
        assert begun[2].startswith("lazyarray materialise ") and lines.count("end") >= len(begun)


class TestProgress:
    @pytest.mark.parametrize("tqdm", [True, False])
    def test_a_bar_after_a_second_on_a_terminal(self, monkeypatch, tqdm):
        import io

        from lazyarray.events import progress

        if tqdm:
            pytest.importorskip("tqdm")
        else:
            monkeypatch.setitem(sys.modules, "tqdm", None)
            monkeypatch.setitem(sys.modules, "tqdm.auto", None)
        monkeypatch.setattr(progress, "PATIENCE", 0.02)
        screen = io.StringIO()
        screen.isatty = lambda: True
        monkeypatch.setattr(sys, "stderr", screen)

        def slow():
            for i in range(5):
                time.sleep(0.015)
                yield i

        assert list(progress.progress(slow(), 5, "counting")) == [0, 1, 2, 3, 4]
        assert "counting" in screen.getvalue() and "%" in screen.getvalue()

    def test_a_long_trace_is_written_with_a_bar(self, monkeypatch, tmp_path):
        import io

        from lazyarray.events import progress

        x = lazyarray.asarray(np.ones(3000))
        with lazyarray.trace() as t:
            for _ in range(5):
                np.asarray(x + 1)
        screen = io.StringIO()
        screen.isatty = lambda: True
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
        monkeypatch.setattr(progress, "PATIENCE", 0.0)
        monkeypatch.setattr(sys, "stderr", screen)
        t.to_chrome(tmp_path / "trace.json")
        assert "trace.json: ####" in screen.getvalue() and screen.getvalue().endswith(" \r")
        assert len(json.loads((tmp_path / "trace.json").read_text())["traceEvents"]) == len(t.events) >= 5

    def test_none_for_what_is_quick_or_not_seen(self, monkeypatch, capsys):
        from lazyarray.events import progress

        list(progress.progress(range(100), 100, "quick"))
        monkeypatch.setattr(progress, "PATIENCE", 0.0)
        list(progress.progress(range(100), 100, "into a file"))
        assert capsys.readouterr() == ("", "")
