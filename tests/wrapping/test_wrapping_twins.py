"""GPU functions that fail, run in steps, on several devices and streams; and those left to the host."""
from __future__ import annotations

import asyncio
import contextlib
import threading
import warnings

import numpy as np
import pytest

import lazyarray
from lazyarray import HostFallbackWarning, lazy
from lazyarray.wrapping.decorator import run

device = lazyarray.device()
xp = device.xp
simulated = pytest.mark.skipif(device.name != "simulated", reason="asks the simulated device to misbehave")


def lazy_of(values):
    return lazyarray.asarray(np.array(values, float))


def on_device(values):
    return device.from_foreign(lazyarray.asdevice(np.array(values, float)))


def values(obj):
    return lazyarray.asnumpy(obj).tolist()


MAKERS = {"lazy": lazy_of, "host": lambda v: np.array(v, float), "device": on_device}


def refuses(x, out=None):
    raise ValueError("not on a Tuesday")


def doubled(x, out=None):
    if out is None:
        return x * 2
    out[...] = x * 2
    return out


# -- the host twin ---------------------------------------------------------------------------

class TestHostTwin:
    @pytest.mark.parametrize("kind", MAKERS)
    @pytest.mark.parametrize("how", [{}, {"pure": True}, {"writes": ("out",)}], ids=["default", "pure", "writes"])
    def test_it_takes_the_call_that_the_device_refuses(self, kind, how):
        x = MAKERS[kind]([1, 2])
        with lazyarray.trace() as t, pytest.warns(HostFallbackWarning, match="refuses runs on the host: ValueError on"
                                                  " the device: not on a Tuesday") as told:
            found = lazy(refuses, host=doubled, **how)(x)
        assert values(found) == [2, 4] and told[0].filename == __file__
        assert lazyarray.is_lazy(found) is (kind != "device")
        assert [(e.name, e.filename) for e in t.fallbacks] == [(f"{__name__}.refuses", __file__)]

    def test_it_is_warned_of_once(self):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for _ in range(3):
                lazy(refuses, host=doubled)(lazy_of([1]))
        assert len(said) == 1

    @pytest.mark.parametrize("kind", MAKERS)
    @pytest.mark.parametrize("how", [{}, {"writes": ("out",)}], ids=["default", "named"])
    @pytest.mark.filterwarnings("ignore::lazyarray.HostFallbackWarning")
    def test_what_it_modifies_is_seen(self, kind, how):
        x, out = lazy_of([1, 2]), MAKERS[kind]([0, 0])
        alias = np.asarray(out) if kind == "lazy" else None
        assert lazy(refuses, host=doubled, **how)(x, out) is out
        assert values(out) == [2, 4] and (alias is None or alias.tolist() == [2, 4])
        assert values(out + 1 if kind != "host" else out) == ([3, 5] if kind != "host" else [2, 4])

    @pytest.mark.parametrize("kind", MAKERS)
    @pytest.mark.parametrize("how", [{}, {"writes": ("x",)}], ids=["default", "named"])
    @pytest.mark.filterwarnings("ignore::lazyarray.HostFallbackWarning")
    def test_it_sees_nothing_of_what_was_half_done(self, kind, how):
        def half(x):
            x[0] = 100
            raise RuntimeError("in the middle")

        def whole(x):
            x += 1

        x = MAKERS[kind]([1, 2, 3])
        lazy(half, host=whole, **how)(x[1:])
        assert values(x) == [1, 3, 4]

    @pytest.mark.filterwarnings("ignore::lazyarray.HostFallbackWarning")
    def test_views_and_given_back_arguments(self):
        x, h = lazy_of([1, 2, 3]), np.array([1.0, 2, 3])
        one, (two,) = lazy(refuses, host=lambda x: (x[1:], [x]))(x)
        assert two is x
        one[0] = 50
        assert values(x) == [1, 50, 3]
        one, (two,) = lazy(refuses, host=lambda x: (x[1:], [x]))(h)
        one[0] = 50
        assert two is h and h.tolist() == [1, 50, 3] and lazyarray.is_lazy(one)
        assert one.base is h
        lazy(refuses, host=lambda x: x[::-2])(h)[1] = 7
        assert h.tolist() == [7, 50, 3]

    @pytest.mark.parametrize("array", [
        np.array(["b", "a"]), np.longdouble([2, 1]), np.array([2, 1], object), np.ma.array([2, 1], mask=[0, 1]),
        np.array([2, 1], ">i4"),
    ], ids=lambda a: f"{type(a).__name__} of {a.dtype}")
    @pytest.mark.parametrize("make", [lazyarray.asarray, lambda a: a])
    @pytest.mark.filterwarnings("ignore::lazyarray.HostFallbackWarning")
    def test_what_the_device_can_not_hold(self, array, make):
        if make is lazyarray.asarray and isinstance(array, np.ma.MaskedArray):
            return      # its mask is lost on the way, as in NumPy
        calls = []
        lazy(calls.append, host=lambda x: x[::-1])(make(array))
        assert not calls

    @pytest.mark.filterwarnings("ignore::lazyarray.HostFallbackWarning")
    def test_a_keyword_that_the_device_function_lacks(self):
        f = lazy(lambda x: x * 2, host=lambda x, *, scale=2: x * scale)
        assert values(f(lazy_of([1]))) == [2] and values(f(lazy_of([1]), scale=5)) == [5]

    @pytest.mark.filterwarnings("ignore::lazyarray.HostFallbackWarning")
    def test_a_function_that_is_missing(self):
        found = run(None, (lazy_of([1]),), {}, name="lib.f", host=doubled)
        assert values(found) == [2] and lazyarray.is_lazy(found)
        with pytest.raises(NotImplementedError, match="lib.f: there is no such device function"):
            run(None, (lazy_of([1]),), {}, name="lib.f")

    def test_its_own_error_is_raised(self):
        def worse(x):
            raise KeyError("nor here")

        with pytest.raises(KeyError, match="nor here"):
            lazy(refuses, host=worse)(lazy_of([1]))

    def test_without_one_the_device_functions_error_is_raised(self):
        with pytest.raises(ValueError, match="not on a Tuesday"):
            lazy(refuses)(lazy_of([1]))

    @pytest.mark.parametrize("fault", device.faults)
    def test_faults_of_the_device_are_not_hidden(self, fault):
        def fails(x):
            raise fault.__new__(fault)

        with pytest.raises(fault):
            lazy(fails, host=doubled)(lazy_of([1]))

    def test_no_transfers_is_obeyed_and_names_the_line(self):
        line = r"test_wrapping_twins\.py:\d+: lazy"
        with lazyarray.no_transfers(), pytest.raises(lazyarray.TransferError, match=line):
            lazy(refuses, host=doubled)(np.ones(3))
        x = lazy_of([1])
        with lazyarray.no_transfers(), pytest.raises(lazyarray.TransferError, match="refuses runs on the host"):
            lazy(refuses, host=doubled)(x)


class TestSmallInputs:
    @pytest.fixture(autouse=True)
    def limit(self):
        with lazyarray.options(min_bytes=1000):
            yield

    def left(self, *args):
        """Whether a call is left to the host."""
        calls = []

        def on_host(*args):
            calls.append(args)
            return "host"

        with lazyarray.trace() as t:
            found = lazy(lambda *args: "device", host=on_host)(*args)
        assert (found == "host") is bool(calls)
        if calls:
            assert all(a is b for a, b in zip(calls[0], args)) and not t.events
        return bool(calls)

    def test_by_the_bytes_of_all_arrays(self):
        assert self.left(np.ones(10)) and self.left([np.ones(60)], {"k": np.ones(60)})
        assert not self.left(np.ones(125)) and not self.left([np.ones(60)], {"k": np.ones(70)})

    @pytest.mark.parametrize("kind", ["lazy", "device"])
    def test_not_if_anything_is_on_the_device(self, kind):
        assert not self.left(np.ones(3), MAKERS[kind]([1]))

    def test_not_if_there_is_no_array(self):
        assert not self.left(3)

    def test_not_without_a_twin(self):
        assert lazyarray.is_lazy(lazy(lambda x: x * 2)(np.ones(3)))

    def test_not_by_default(self):
        with lazyarray.options(min_bytes=0):
            assert not self.left(np.ones(3))


def test_without_lazy_arrays_a_program_gets_numpys():
    with lazyarray.options(lazy=False):
        found, total = lazy(lambda x: (x * 2, x.sum()))(np.ones(3))
        assert type(found) is np.ndarray and found.tolist() == [2, 2, 2] and type(total) is np.float64
        x = lazy_of([1])
        assert lazy(lambda x: x)(x) is x
        assert type(asyncio.run(lazy(_later)(np.ones(1)))) is np.ndarray


# -- in steps --------------------------------------------------------------------------------

async def _later(x):
    await asyncio.sleep(0)
    return x + 1


def counting(x):
    """Adds what is sent; gives the array doubled, and in the end tripled."""
    while True:
        sent = yield x * 2
        if sent is None:
            return x * 3
        x += sent


@pytest.mark.parametrize("kind", MAKERS)
class TestSteps:
    def test_a_generator(self, kind):
        x = MAKERS[kind]([1, 2])
        steps = lazy(counting)(x)
        first = next(steps)
        assert values(first) == [2, 4] and lazyarray.is_lazy(first) is (kind != "device")
        if kind == "lazy":
            alias = np.asarray(x)
            assert values(steps.send(x)) == [4, 8] and alias.tolist() == [2, 4]
            alias[0] = 50                  # seen by the next step
            assert values(steps.send(1.0)) == [102, 10] and alias.tolist() == [51, 5]
        else:
            assert values(steps.send(np.float64(1))) == [4, 6] and values(x) == [2, 3]
        with pytest.raises(StopIteration) as end:
            steps.send(None)
        assert values(end.value.value) == [3 * v for v in values(x)]

    def test_errors_and_the_end_of_a_generator(self, kind):
        seen = []

        @lazy
        def patient(x):
            for i in range(3):
                try:
                    yield x + i
                except KeyError:
                    seen.append("caught")
                except GeneratorExit:
                    seen.append("closed")
                    raise

        steps = patient(MAKERS[kind]([1]))
        next(steps)
        assert values(steps.throw(KeyError)) == [2]
        steps.close()
        assert seen == ["caught", "closed"]
        steps = patient(MAKERS[kind]([1]))
        next(steps)
        with pytest.raises(ZeroDivisionError):
            steps.throw(ZeroDivisionError)
        assert [values(v) for v in patient(MAKERS[kind]([1]))] == [[1], [2], [3]]

    def test_a_coroutine(self, kind):
        async def adding(x):
            for _ in range(3):
                x += 1
                await asyncio.sleep(0)
            return x * 2, [x]

        async def several():
            arrays = [MAKERS[kind]([i]) for i in range(3)]
            found = await asyncio.gather(*(lazy(adding)(x) for x in arrays))
            return arrays, found

        arrays, found = asyncio.run(several())
        assert [values(x) for x in arrays] == [[3], [4], [5]]
        assert [values(y) for y, _ in found] == [[6], [8], [10]]
        assert all(same is x for x, (_, [same]) in zip(arrays, found))

    def test_a_coroutine_that_is_cancelled(self, kind):
        ended = []

        @lazy
        async def waiting(x):
            try:
                await asyncio.sleep(10)
            finally:
                ended.append(x.sum() + 0)

        async def main():
            task = asyncio.create_task(waiting(MAKERS[kind]([1])))
            await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            return task.cancelled()

        assert asyncio.run(main()) and len(ended) == 1

    def test_an_async_generator(self, kind):
        @lazy
        async def stream(x):
            for i in range(3):
                await asyncio.sleep(0)
                got = yield x + i
                if got is not None:
                    x += got

        async def main():
            x = MAKERS[kind]([1])
            items = stream(x)
            first = [await items.asend(None), await items.asend(10.0)]
            rest = [item async for item in items]
            closed = stream(x)
            await closed.asend(None)
            await closed.aclose()
            return x, first + rest

        x, found = asyncio.run(main())
        assert values(x) == [11] and [values(item) for item in found] == [[1], [12], [13]]
        assert all(lazyarray.is_lazy(item) is (kind != "device") for item in found)


def test_a_function_that_gives_back_a_generator_is_called_once():
    calls = []

    @lazy(pure=True)
    def begins(x):
        calls.append(1)
        return (x + i for i in range(2))

    assert [values(v) for v in begins(lazy_of([1]))] == [[1], [2]] and calls == [1]


# -- devices and streams ---------------------------------------------------------------------

@simulated
class TestPlaces:
    @pytest.mark.together
    @pytest.mark.parametrize("how", [{}, {"pure": True}], ids=["default", "pure"])
    def test_it_runs_where_the_first_argument_lies(self, how):
        seen = []

        @lazy(**how)
        def where(x, y):
            seen.append((device.number(), device.device_of(xp.zeros(2)), device.device_of(y)))
            return xp.ones(2) + x

        with device.with_count(2):
            with device.on(1):
                x = lazy_of([1, 2])
                d = on_device([1, 2])
            assert values(where(x, np.ones(2))) == [2, 3]
            assert values(where(d, np.ones(2))) == [2, 3]
            assert seen == [(1, 1, 1)] * 2 and device.number() == 0

    @pytest.mark.parametrize("how", [{}, {"pure": True}, {"writes": ("x",)}], ids=["default", "pure", "writes"])
    def test_work_of_other_streams_is_waited_for(self, how):
        add = lazy(lambda x: x + 1, **how)
        with device.delayed():
            with device.new_stream():
                x = lazy_of([1, 2])
                x *= 2
            y = add(x)
            with device.new_stream():
                z = add(y)
                h = add(np.ones(2))
            assert values(y) == [3, 5] and values(z) == [4, 6] and values(h) == [2, 2]

    def test_what_it_wrote_is_waited_for(self):
        def bump(x):
            x += 1

        with device.delayed():
            x = lazy_of([1, 2])
            for how in ({}, {"writes": ("x",)}):
                with device.new_stream():
                    lazy(**how)(bump)(x)
                np.asarray(x)
                with device.new_stream():
                    lazy(**how)(bump)(x)
            assert values(x) == [5, 6]

    def test_out_of_memory_is_raised(self):
        x = lazy_of(np.ones(1000))
        with device.limited(10_000), pytest.raises(MemoryError):
            lazy(lambda x: xp.zeros(10_000), host=doubled)(x)


def test_threads_use_one_function():
    x = lazy_of(np.arange(100))
    double = lazy(lambda x: x * 2)
    errors = []

    def use():
        try:
            for _ in range(50):
                assert values(double(x)) == (np.arange(100) * 2).tolist()
        except BaseException as error:  # noqa: BLE001  told in the main thread
            errors.append(error)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
