"""Waiting and timing: deferred work is computed before the clock is read, and nothing is copied for it."""
from __future__ import annotations

import asyncio
import collections
import dataclasses
import functools
import threading
import time
import types

import numpy as np
import pytest

import lazyarray
from lazyarray import benchmark, block_until_ready, where

Pair = collections.namedtuple("Pair", "a b")


@dataclasses.dataclass
class Box:
    inside: object


def object_array(y):
    made = np.empty((2, 1), object)
    made[1, 0] = y
    return made


def record_with_an_object(y):
    made = np.zeros(2, [("number", int), ("obj", object)])
    made["obj"][1] = y
    return made


def closure(y):
    return lambda: y


def data_array(y):
    return pytest.importorskip("xarray").DataArray(y, dims="x")


def dataset(y):
    return pytest.importorskip("xarray").Dataset({"y": ("x", y)})


def pending():
    x = lazyarray.asarray(np.arange(100.0))
    y = np.sqrt(x * 2 + 1)
    assert where(y).side == "pending"
    return y


class TestBlockUntilReady:
    @pytest.mark.parametrize("pack", [
        lambda y: y, lambda y: [y], lambda y: (1, (y, "a")), lambda y: {"k": {"l": [y]}}, lambda y: Pair(y, None),
        lambda y: Box(Box(y)), lambda y: [y.sum(), y, 3, np.ones(2), None, lazyarray.asarray(["text"])],
    ])
    def test_what_is_deferred_in_any_container_is_computed_and_the_argument_returned(self, pack):
        y = pending()
        obj = pack(y)
        with lazyarray.no_transfers():
            assert block_until_ready(obj) is obj
        assert where(y).side == "device"
        assert np.array_equal(np.asarray(y), np.sqrt(np.arange(100.0) * 2 + 1))

    @pytest.mark.parametrize("pack", [
        data_array, dataset, lambda y: collections.deque([y]), lambda y: types.SimpleNamespace(y=y), object_array,
        record_with_an_object, lambda y: record_with_an_object(y)[1], lambda y: lazyarray.asarray(object_array(y)),
        lambda y: {"k": y}.values(), lambda y: {"k": y}.items(), lambda y: iter([y]), lambda y: [1, {"k": {y.sum()}}],
        closure, lambda y: Box(collections.ChainMap({"k": y})),
    ])
    def test_all_deferred_work_is_computed_for_objects_whose_contents_are_not_known(self, pack):
        y, other = pending(), pending()
        obj = pack(y)
        with lazyarray.no_transfers(), lazyarray.trace() as t:
            assert block_until_ready(obj) is obj
        assert where(y).side == where(other).side == "device"
        assert [event.reason for event in t.synchronisations] == ["block_until_ready"]
        assert np.array_equal(np.asarray(y), np.sqrt(np.arange(100.0) * 2 + 1))

    @pytest.mark.parametrize("obj", [
        3, 1.5, 2j, True, None, "text", b"bytes", bytearray(2), np.float64(2), np.str_("text"), np.arange(3),
        np.array(["text"]), np.zeros(2, [("a", int)]), np.zeros(2, [("a", int)])[0], np.dtype(int), np.float64, int,
        Ellipsis, slice(2), range(3), [1, (2, {"k": np.ones(2)})],
    ], ids=repr)
    def test_nothing_is_computed_for_numbers_text_and_numpy_arrays(self, obj):
        y = pending()
        with lazyarray.trace() as t:
            assert block_until_ready(obj) is obj
        assert where(y).side == "pending" and not t.synchronisations

    def test_a_container_that_lies_in_itself_hides_nothing(self):
        y, other = pending(), pending()
        loop = [y]
        loop.append(loop)
        assert block_until_ready(loop) is loop
        assert (where(y).side, where(other).side) == ("device", "pending")

    def test_several_arguments(self):
        y, z = pending(), pending()
        assert block_until_ready(y, z) == (y, z) if False else [a is b for a, b in zip(block_until_ready(y, z), (y, z))]
        assert where(y).side == where(z).side == "device" and block_until_ready() == ()

    def test_only_the_arguments_are_computed(self):
        y, z = pending(), pending()
        block_until_ready(y)
        assert where(z).side == "pending"

    def test_views_scalars_and_device_arrays(self):
        y = pending()
        block_until_ready(y.reshape(10, 10)[2:].T)
        assert where(y).side == "device"
        block_until_ready(lazyarray.asdevice(y), y.max())

    def test_other_libraries_arrays_are_waited_for(self):
        class Array:
            waited = 0

            def block_until_ready(self):
                self.waited += 1

        other = Array()
        block_until_ready([other])
        assert other.waited == 1

    def test_a_wait_is_an_event(self):
        with lazyarray.trace() as t:
            block_until_ready(pending())
            block_until_ready(np.ones(3), 5)
        assert [event.reason for event in t.synchronisations] == ["block_until_ready"]

    def test_work_on_another_stream_is_waited_for(self):
        device = lazyarray.device()
        if device.name == "cuda":
            with device.new_stream():
                y = lazyarray.asarray(np.ones(1000)) * 2
                block_until_ready(y)
            assert float(y.sum()) == 2000
        else:
            with device.delayed():
                with device.new_stream():
                    y = lazyarray.asarray(np.ones(1000)) + 0
                    y._self_storage.fill()
                block_until_ready(y)
                assert lazyarray.asdevice(y).get()[5] == 1

    @pytest.mark.together
    @pytest.mark.parametrize("number", [0, 1])
    def test_work_on_another_stream_or_device_is_waited_for_in_any_object(self, number):
        device = lazyarray.device()
        if device.name == "cuda":
            pytest.skip("only the simulated device knows what was waited for")
        with device.with_count(2), lazyarray.device(number), device.new_stream() as stream:
            y = lazyarray.asarray(np.ones(1000)) + 0
            y._self_storage.fill()
            with lazyarray.device(0):
                assert not stream.done
                block_until_ready(types.SimpleNamespace(y=y))
                assert stream.done

    def test_a_lost_device_is_not_asked_for_objects_without_deferred_work(self, monkeypatch):
        device = lazyarray.device()
        monkeypatch.setattr(type(device), "lost", "a kernel failed")
        obj = types.SimpleNamespace()
        assert block_until_ready(obj) is obj


class TestSynchronize:
    def test_all_deferred_work_is_computed(self):
        made = [pending(), pending()]
        thread = threading.Thread(target=lambda: made.append(pending()))
        thread.start()
        thread.join()
        with lazyarray.no_transfers():
            lazyarray.device().synchronize()
        assert [where(x).side for x in made] == ["device"] * 3


class TestBenchmark:
    def test_deferred_work_counts(self):
        x = lazyarray.asarray(np.ones(100_000_000 if lazyarray.device().name == "cuda" else 300_000))
        recorded = min(_timed(lambda: np.sqrt(x * 2 + 1)) for _ in range(20))
        found = benchmark(lambda: np.sqrt(x * 2 + 1), n_repeat=5, n_warmup=2)
        rows = len(lazyarray.device().in_use())
        assert found.total_times.min() > 3 * recorded
        assert (found.total_times >= found.cpu_times).all() and (found.gpu_times > 0).all()
        assert found.cpu_times.shape == found.total_times.shape == (5,) and found.gpu_times.shape == (rows, 5)

    def test_arguments_and_names(self):
        calls = []

        def f(x, *, scale):
            calls.append(where(x).side)
            return x * scale

        found = benchmark(f, pending(), kwargs={"scale": 3}, n_repeat=4, n_warmup=2)
        assert set(calls) == {"device"}, "arguments are computed before"
        assert len(calls) == 2 + 1 + 4 and found.name == "f"
        assert benchmark(len, "abc", n_repeat=1, n_warmup=0, name="length").name == "length"
        with pytest.raises(ValueError, match="n_repeat"):
            benchmark(f, n_repeat=0)
        with pytest.raises(ValueError, match="n_warmup must be at least 0, not -5"):
            benchmark(f, n_warmup=-5)

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("n_warmup", [0, 3])
    def test_a_coroutine_has_not_run(self, n_warmup):
        async def later(x):
            return x + 1

        for f in (later, functools.partial(later), lambda x: later(x)):
            with pytest.raises(TypeError, match=r"returned a coroutine, which has not run yet: .*asyncio\.run"):
                benchmark(f, 1, n_warmup=n_warmup)
        assert benchmark(lambda: asyncio.run(later(1)), n_repeat=1, n_warmup=0).total_times.shape == (1,)

    def test_the_duration_is_bounded(self):
        start = time.perf_counter()
        found = benchmark(time.sleep, 0.05, max_duration=0.1, n_warmup=0, n_repeat=1000)
        assert 1 <= len(found.cpu_times) <= 4 and time.perf_counter() - start < 2

    def test_no_call_is_timed_while_kernels_are_being_compiled(self, monkeypatch):
        compiled = threading.Event()

        def f():        # without its kernel it takes longer
            time.sleep(0 if compiled.is_set() else 0.03)

        monkeypatch.setattr(type(lazyarray.device()), "wait_for_kernels", lambda device: compiled.set())
        assert benchmark(f, n_repeat=5, n_warmup=2).total_times.max() < 0.03

    def test_copies_are_reported(self):
        x = lazyarray.asarray(np.ones(1000))
        report = repr(benchmark(lambda: np.asarray(x + 1), n_repeat=2))
        assert "1 materialisation (7.8 KiB" in report and "0 uploads" in report

    def test_the_report(self):
        found = benchmark(len, "abc", n_repeat=3)
        lines = repr(found).splitlines()
        device = lazyarray.device()
        several = device.in_use()
        label = "GPU-" if device.name == "cuda" else "simulated" if len(several) == 1 else "simulated:"
        labels = [label] if label == "simulated" else [f"{label}{number}" for number in several]
        assert lines[0] == "len: 3 calls" and lines[1].split() == ["mean", "std", "min", "max"]
        assert [line.split()[0] for line in lines[2:-1 - (device.name != "cuda")]] == ["CPU", *labels, "total"]
        assert ("says nothing about a GPU" in repr(found)) == (device.name == "simulated")
        assert "<table" in found._repr_html_() and all(label in found._repr_html_() for label in labels)

    def test_the_plot(self):
        matplotlib = pytest.importorskip("matplotlib")
        matplotlib.use("agg")
        from matplotlib import pyplot

        found = benchmark(lambda: pending(), n_repeat=6, name="softplus")
        ax = found.plot()
        assert ax.get_title() == "softplus" and len(ax.get_legend().get_texts()) == 2 + len(found.gpu_times)
        points = ax.lines[0].get_ydata()
        assert len(points) == 6 and ax.get_ylabel() in ("time (us)", "time (ms)")
        assert found.plot(ax) is ax
        pyplot.close(ax.figure)

    def test_errors_are_the_functions(self):
        with pytest.raises(ZeroDivisionError):
            benchmark(lambda: 1 / 0)


def _timed(call):
    start = time.perf_counter()
    result = call()
    seconds = time.perf_counter() - start
    del result
    return seconds
