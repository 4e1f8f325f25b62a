"""Events, guards and reports, by the verbs that the copying code uses; the array's own copies are tested with it."""
from __future__ import annotations

import heapq
import json
import logging
import math
import pickle
import pprint
import random
import runpy
import statistics
import threading
import timeit
import warnings
from copy import deepcopy

import numpy as np
import pytest

import lazyarray
from lazyarray import HostFallbackWarning, TransferError, no_transfers, options, trace
from lazyarray.events.callers import user_line
from lazyarray.events.fallback_warning import reset_warnings, warn_fallback
from lazyarray.events.trace import begin, end

KINDS = ("upload", "materialise", "fallback", "synchronise")


def copy(kind="upload", nbytes=48, shape=(2, 3), dtype="float64", reason="a test", name=""):
    token = begin(kind, nbytes, shape, np.dtype(dtype), reason, name)
    if token is not None:
        end(token)
    return token


class TestTrace:
    def test_nobody_listens(self):
        assert begin("upload", 8, (1,), np.dtype(float), "a test") is None

    def test_an_event_says_what_where_and_how_long(self):
        with trace() as t:
            copy("materialise", name="numpy.save")  # this line
        (event,) = t.events
        assert (event.kind, event.nbytes, event.shape, event.dtype) == ("materialise", 48, (2, 3), np.float64)
        assert (event.reason, event.name, event.thread) == ("a test", "numpy.save", threading.get_ident())
        assert event.filename == __file__ and event.code.startswith("token = begin(kind")
        assert 0 <= event.seconds < 1 and event.start > 0
        with pytest.raises(AttributeError):
            event.nbytes = 0

    def test_by_kind(self):
        with trace() as t:
            for number, kind in enumerate(KINDS):
                for _ in range(number + 1):
                    copy(kind)
        assert (len(t.uploads), len(t.materialisations), len(t.fallbacks), len(t.synchronisations)) == (1, 2, 3, 4)
        assert len(t) == len(list(t)) == 10
        assert t.nbytes == 3 * 48  # fallbacks and waits copy nothing themselves

    def test_nested_traces_both_hear_and_one_hears_once(self):
        with trace() as outer:
            with trace() as inner, inner:
                copy()
            copy()
        assert (len(outer), len(inner)) == (2, 1)

    def test_an_empty_trace_is_true(self):
        assert trace()

    def test_as_a_decorator_it_collects_over_calls(self):
        t = trace()
        function = t(copy)
        function()
        function()
        copy()
        assert len(t) == 2

    def test_other_threads_are_heard_only_by_a_process_trace(self):
        with trace() as here, trace(process=True) as everywhere:
            thread = threading.Thread(target=copy)
            thread.start()
            thread.join()
            copy()
        copy()
        assert (len(here), len(everywhere)) == (1, 2)
        assert len({event.thread for event in everywhere}) == 2

    def test_many_threads_lose_no_event(self):
        with trace(process=True) as t:
            threads = [threading.Thread(target=lambda: [copy() for _ in range(200)]) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert len(t) == 1600

    def test_silence_is_cheap(self):
        # Short rounds, of which one is quick beside other tests.
        cost = min(timeit.repeat(lambda: begin("upload", 8, (1,), None, "a test"), number=1_000, repeat=1_000)) / 1_000
        assert cost < 0.3e-6


class TestLines:
    @pytest.mark.parametrize("library", ["numpy.lib.recfunctions", "scipy", "skimage.io", "lazyarray.storage.transfer"])
    def test_frames_of_served_libraries_are_passed_over(self, library, tmp_path):
        inside = tmp_path / "inside.py"
        inside.write_text("def call(function):\n    return function()\n")
        call = runpy.run_path(str(inside), run_name=library)["call"]
        # runpy empties what it ran, so the name is given back
        call.__globals__["__name__"] = library
        assert call(user_line)[0] == __file__

    def test_a_name_that_only_begins_like_a_library_is_the_users(self, tmp_path):
        inside = tmp_path / "inside.py"
        inside.write_text("def call(function):\n    return function()\n")
        call = runpy.run_path(str(inside))["call"]
        call.__globals__["__name__"] = "numpy_examples"
        assert call(user_line) == (str(inside), 2, "return function()")

    @pytest.mark.parametrize("work", [
        lambda x: np.linalg.qr(x), lambda x: np.linalg.svd(x), lambda x: pickle.dumps(x), lambda x: math.fsum(x[0]),
        lambda x: statistics.mean(x[:, 1]), lambda x: heapq.nlargest(2, x[0]), lambda x: random.sample(list(x[0]), 2),
        lambda x: json.dumps(x, default=lambda a: a.tolist()), lambda x: pprint.pformat(x),
        lambda x: deepcopy(x[0]).tolist()])
    def test_pythons_own_modules_are_not_the_user(self, work):
        """Nor are the contexts of its `contextlib`, by which the library waits."""
        x = lazyarray.asarray(np.random.default_rng(2).random((40, 40))) * 2
        with trace() as t:
            work(x)
        assert t.events and {event.filename for event in t.events} == {__file__}

    def test_a_programs_own_module_may_be_called_as_one_of_pythons(self, tmp_path):
        mine = tmp_path / "statistics.py"
        mine.write_text("def call(function):\n    return function()\n", encoding="utf-8")
        call = runpy.run_path(str(mine), run_name="statistics")["call"]
        assert call(user_line) == (str(mine), 2, "return function()")

    def test_by_line(self):
        with trace() as t:
            for _ in range(3):
                end(begin("upload", 10))
            end(begin("materialise", 100))
        totals = [(line.kind, line.events, line.nbytes) for line in t.by_line()]
        assert totals == [("materialise", 1, 100), ("upload", 3, 30)]
        assert t.by_line()[1].code == 'end(begin("upload", 10))'


class TestReports:
    def test_table(self):
        with trace() as t:
            copy("upload", 1536)
            copy("fallback", 0, shape=(), name="numpy.unwrap", reason="no such device function")
        lines = str(t).splitlines()
        assert lines[0].split() == ["kind", "bytes", "ms", "array", "where", "line", "why"]
        assert "1.5 KiB" in lines[1] and "2x3 float64" in lines[1] and "test_trace.py:" in lines[1]
        assert "0-d float64" in lines[2] and "numpy.unwrap: no such device function" in lines[2]
        assert lines[3].startswith("1 upload (1.5 KiB, ") and lines[3].endswith("0 materialisations, 1 fallback")

    def test_a_long_table_is_cut(self):
        with trace() as t:
            for _ in range(10):
                copy()
        assert "... and 7 more" in t.table(limit=3) and "10 uploads" in t.table(limit=3)

    def test_an_empty_table(self):
        assert str(trace()) == "0 uploads, 0 materialisations"
        assert repr(trace()) == "<trace: 0 uploads, 0 materialisations>"

    def test_chrome(self, tmp_path):
        with trace() as t:
            copy("materialise")
            end(begin("synchronise"))
        t.to_chrome(tmp_path / "trace.json")
        records = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        assert [record["ph"] for record in records] == ["X", "X"]
        first = records[0]
        assert first["cat"] == "materialise" and first["args"]["bytes"] == 48 and first["args"]["shape"] == [2, 3]
        assert first["ts"] == pytest.approx(t.events[0].start * 1e6) and first["dur"] >= 0
        assert {"name", "pid", "tid"} <= first.keys()


GUARDS = [
    # arguments of no_transfers, what an upload does, what a materialisation does
    ({}, "error", "error"),
    ({"level": "error"}, "error", "error"),
    ({"level": "log"}, "log", "log"),
    ({"level": "allow"}, "allow", "allow"),
    ({"uploads": "error"}, "error", "allow"),
    ({"materialisations": "log"}, "allow", "log"),
    ({"level": "error", "uploads": "allow"}, "allow", "error"),
    ({"level": "log", "materialisations": "error"}, "log", "error"),
]


def outcome(kind, caplog):
    caplog.clear()
    with caplog.at_level(logging.WARNING, "lazyarray"):
        try:
            copy(kind)
        except TransferError:
            return "error"
    return "log" if caplog.records else "allow"


class TestGuards:
    @pytest.mark.parametrize(("arguments", "upload", "materialise"), GUARDS)
    def test_levels_and_directions(self, arguments, upload, materialise, caplog):
        with no_transfers(**arguments):
            assert (outcome("upload", caplog), outcome("materialise", caplog)) == (upload, materialise)
            assert (outcome("fallback", caplog), outcome("synchronise", caplog)) == ("allow", "allow")
        assert outcome("upload", caplog) == "allow"

    @pytest.mark.parametrize(("arguments", "upload", "materialise"), GUARDS)
    def test_process_wide_in_every_thread(self, arguments, upload, materialise, caplog, restored_defaults):
        no_transfers.set(**arguments)
        seen = []
        thread = threading.Thread(target=lambda: seen.extend(outcome(kind, caplog) for kind in KINDS[:2]))
        thread.start()
        thread.join()
        assert seen == [upload, materialise]
        no_transfers.set("allow")
        assert begin("upload") is None

    def test_process_wide_settings_add_up(self, caplog, restored_defaults):
        no_transfers.set(uploads="error")
        no_transfers.set(materialisations="log")
        assert (outcome("upload", caplog), outcome("materialise", caplog)) == ("error", "log")
        no_transfers.set(uploads="allow")
        assert (outcome("upload", caplog), outcome("materialise", caplog)) == ("allow", "log")

    def test_the_inner_block_decides(self, caplog, restored_defaults):
        no_transfers.set("error")
        with no_transfers("allow"):
            assert outcome("upload", caplog) == "allow"
            with no_transfers(uploads="log"):
                assert (outcome("upload", caplog), outcome("materialise", caplog)) == ("log", "allow")
        assert outcome("upload", caplog) == "error"

    def test_the_error_names_array_bytes_line_and_way_out(self):
        with no_transfers(), pytest.raises(TransferError) as caught:
            copy("materialise", 1 << 20, (512, 256))
        text = str(caught.value)
        parts = ["Blocked device-to-host copy", "(512, 256)", "float64", "1048576 bytes", "1.0 MiB", "[a test]"]
        parts.append(__file__)
        assert [part for part in parts if part not in text] == []
        assert "with lazyarray.no_transfers(materialisations='allow')" in text

    def test_the_way_out_works(self):
        with no_transfers(), no_transfers(uploads="allow"):
            copy("upload")

    def test_a_forbidden_copy_is_no_event(self):
        with trace() as t, no_transfers(), pytest.raises(TransferError):
            copy()
        assert not t.events

    def test_a_logged_copy_is_an_event_too(self, caplog):
        with trace() as t, no_transfers("log"):
            copy()
        assert len(t) == 1 and "host-to-device copy" in caplog.text and "48 bytes" in caplog.text
        assert "Blocked" not in caplog.text

    def test_as_a_decorator(self):
        with pytest.raises(TransferError):
            no_transfers()(copy)()
        copy()

    @pytest.mark.parametrize("arguments", [{"level": "never"}, {"uploads": "no"}, {"level": copy}])
    def test_mistakes_are_told_at_once(self, arguments):
        with pytest.raises(ValueError, match="a level is one of"):
            no_transfers(**arguments)

    def test_repr(self):
        assert repr(no_transfers(uploads="log")) == "no_transfers(uploads='log')"


class TestFallbackWarnings:
    def test_once_for_each_function_at_the_users_line(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(3):
                warn_fallback("numpy.unwrap", "no such device function")
            warn_fallback("numpy.interp", "periodic")
        assert [str(w.message) for w in caught] == [
            "numpy.unwrap runs on the host: no such device function",
            "numpy.interp runs on the host: periodic",
        ]
        assert all(w.category is HostFallbackWarning and w.filename == __file__ for w in caught)

    def test_resettable(self):
        for _ in range(2):
            with pytest.warns(HostFallbackWarning):
                warn_fallback("numpy.unwrap", "no such device function")
            reset_warnings()

    @pytest.mark.parametrize("named", [
        {"category": HostFallbackWarning}, {"message": ".*runs on the host"},
        {"category": HostFallbackWarning, "module": __name__}])
    def test_as_an_error_it_is_raised_each_time(self, named):
        with warnings.catch_warnings():
            warnings.filterwarnings("error", **named)
            for _ in range(2):
                with pytest.raises(HostFallbackWarning):
                    warn_fallback("numpy.unwrap", "no such device function")

    @pytest.mark.parametrize("category", [Warning, UserWarning])
    def test_errors_in_general_do_not_make_an_exception_of_it(self, category):
        x = lazyarray.asarray([1.0, 2.0], np.float32)
        with warnings.catch_warnings():
            warnings.simplefilter("error", category)
            np.spacing(x)
        with pytest.warns(HostFallbackWarning, match="spacing"):    # and it is still to come elsewhere
            np.spacing(x)

    def test_what_numpy_refuses_is_its_error_alone(self):
        x = lazyarray.asarray([1.0, 2.0])
        with warnings.catch_warnings():
            warnings.simplefilter("error", HostFallbackWarning)
            with pytest.raises(np.exceptions.AxisError):
                np.flip(np.diff(x), axis=3)
            with pytest.raises(np.exceptions.AxisError):
                np.diff(x, axis=3)

    def test_the_option_silences_it(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error", HostFallbackWarning)
            with options(warn_fallbacks=False):
                warn_fallback("numpy.unwrap", "no such device function")


def test_the_exceptions_are_what_they_say():
    assert issubclass(TransferError, RuntimeError) and issubclass(TransferError, lazyarray.LazyArrayError)
    assert issubclass(lazyarray.DeviceUnavailableError, lazyarray.LazyArrayError)
    assert issubclass(HostFallbackWarning, UserWarning)
