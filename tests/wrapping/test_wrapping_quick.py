"""Calls with one NumPy array that is only read, which take a way of their own: as all others, in all that is seen."""
from __future__ import annotations

import gc

import numpy as np
import pytest

import lazyarray
from lazyarray import HostFallbackWarning, lazy
from lazyarray.storage import upload_cache

device = lazyarray.device()

IMAGE = np.arange(24.0, dtype=np.float32).reshape(4, 6)
ARRAYS = {"C": IMAGE.copy(), "F": np.asfortranarray(IMAGE), "reversed": IMAGE.copy()[::-1],
          "columns": IMAGE.copy()[:, ::2], "gaps": np.zeros((4, 600), np.float32)[:, ::100], "one": np.array(3.0),
          "whole": np.arange(5, dtype=np.int8), "empty": np.zeros((0, 3))}
WRITES = {"pure": {"pure": True}, "out": {"writes": ("out",)}}


def plus(x, y=1, out=None):
    return x + y


@pytest.mark.parametrize("how", WRITES)
@pytest.mark.parametrize("kind", ARRAYS)
def test_values_dtype_and_shape(kind, how):
    x, function = ARRAYS[kind], lazy(plus, **WRITES[how])
    for found in (function(x), function(x=x), function(1, x), function(1, y=x)):
        assert lazyarray.is_lazy(found)
        assert found.dtype == (x + 1).dtype and found.shape == x.shape
        np.testing.assert_array_equal(lazyarray.asnumpy(found), x + 1)


@pytest.mark.parametrize("kind", ["C", "F", "reversed", "columns"])
def test_the_function_gets_the_same_order(kind):
    x = ARRAYS[kind]
    assert lazy(lambda x: x.strides, pure=True)(x) == x.strides


def test_one_event_with_the_name_of_the_function():
    x = np.ones((50, 4))
    with lazyarray.trace() as t:
        y = lazy(plus, pure=True)(x)
        z = lazy(plus, pure=True)(y, x)     # the copy is still there
    assert [(e.kind, e.nbytes, e.shape, e.reason) for e in t] == [
        ("upload", x.nbytes, x.shape, f"operand of {__name__}.plus")]
    assert (np.asarray(z) == 3).all()
    with lazyarray.no_transfers(), pytest.raises(lazyarray.TransferError, match="operand of"):
        lazy(plus, pure=True)(x + 1)


def test_an_array_that_is_there_twice_is_copied_once():
    x = np.ones(50)
    with lazyarray.trace() as t:
        y = lazy(plus, pure=True)(x, x)
    assert len(t.uploads) == 1 and (np.asarray(y) == 2).all()


def test_two_arrays_and_those_that_are_read_only():
    x, y = np.ones(50), np.full(50, 3.0)
    y.flags.writeable = False
    add = lazy(plus, pure=True)
    with lazyarray.trace() as t:
        found = [add(x, y), add(y, x), add(y)]
    assert [np.asarray(f)[0] for f in found] == [4, 4, 4] and len(t.uploads) == 2


def test_results_that_are_arguments_or_views_of_them():
    x = np.arange(6.0)
    assert lazy(lambda x: x, pure=True)(x) is x
    same, pair = lazy(lambda x: (x, x * 2), pure=True)(x)
    assert same is x and np.asarray(pair).tolist() == (x * 2).tolist()
    view = lazy(lambda x: x[1:4], pure=True)(x)
    x[2] = 50
    assert np.asarray(view).tolist() == [1, 50, 3]
    np.asarray(view)[0] = 7
    assert x[1] == 7
    kept = []
    held = lazy(lambda x: kept.append(x + 1) or kept[0], pure=True)(x)
    kept[0][...] = 5
    assert np.asarray(held).tolist() == [5] * 6


def test_an_argument_that_is_written_is_copied_back():
    x, out = np.arange(3.0), np.zeros(3)

    def into(x, out=None):
        out[...] = x * 2
        return out

    assert lazy(into, writes=("out",))(x, out) is out and out.tolist() == [0, 2, 4]
    lazy_out = lazyarray.asarray(np.zeros(3))
    assert lazy(into, writes=("out",))(x, out=lazy_out) is lazy_out
    assert np.asarray(lazy_out).tolist() == [0, 2, 4]


def test_a_generator_keeps_the_copy():
    def steps(x, y):
        for i in range(3):
            yield x * i + y

    x, y = np.ones(4), lazyarray.asarray(np.arange(4.0))
    with lazyarray.trace() as t:
        going = lazy(steps, pure=True)(x, y)
        found = [next(going)]
        x[...] = 100
        found += list(going)
    assert len(t.uploads) == 1
    assert [np.asarray(f).tolist() for f in found] == [[i + j for j in range(4)] for i in range(3)]
    first = next(lazy(lambda x: (part for part in (x[:2], x)), pure=True)(x))
    np.asarray(first)[0] = -1
    assert x[0] == -1


def test_few_bytes_stay_on_the_host():
    def there(x):
        return "device"

    function = lazy(there, pure=True, host=lambda x: "host")
    x = np.ones(10)
    with lazyarray.options(min_bytes=81):
        assert function(x) == "host" and function(lazyarray.asarray(x)) == "device"
    with lazyarray.options(min_bytes=80):
        assert function(x) == "device"


def test_errors_and_what_the_device_can_not_hold():
    def refuses(x):
        raise ValueError("not on a Tuesday")

    x = np.ones(3)
    with pytest.raises(ValueError, match="Tuesday"):
        lazy(refuses, pure=True)(x)
    with pytest.warns(HostFallbackWarning, match="Tuesday"):
        found = lazy(refuses, pure=True, host=lambda x: x + 1)(x)
    assert np.asarray(found).tolist() == [2, 2, 2]
    words = np.array(["a", "b"])
    assert lazy(lambda x: x is words, pure=True)(words)
    with pytest.warns(HostFallbackWarning, match="dtype <U1 is not supported on the device"):
        assert lazy(lambda x: refuses(x), pure=True, host=lambda x: x[0])(words) == "a"


@pytest.mark.skipif(device.name != "simulated", reason="limits the simulated memory")
def test_lack_of_memory():
    upload_cache.forget_all()
    gc.collect()
    add = lazy(lambda x: x[:2] + 1, pure=True, host=plus)
    with device.limited(100_000):
        kept = np.ones(1500)
        kept.flags.writeable = False
        first = lazyarray.asnumpy(add(kept))
        assert first[0] == 2 and lazyarray.asnumpy(add(np.ones(11_400))).tolist() == [2, 2]     # the other gives way
        with pytest.raises(MemoryError):
            add(np.ones(14_000))
    upload_cache.forget_all()


def test_lazy_arrays_switched_off():
    with lazyarray.options(lazy=False):
        found = lazy(plus, pure=True)(np.ones(3))
    assert type(found) is np.ndarray and found.tolist() == [2, 2, 2]


def test_a_method_and_its_function_have_other_first_parameters():
    class Into:
        def put(self, x, out):
            out[...] = x
            return out

    one, x = Into(), np.arange(3.0)
    for call in (lazy(one.put, writes=("out",)), lambda *a: lazy(Into.put, writes=("out",))(one, *a),
                 lazy(one.put, writes=("out",))):
        out = np.zeros(3)
        assert call(x, out) is out and out.tolist() == [0, 1, 2]

    def fill(first, *rest):
        for array in rest:
            array[...] = first

    outs = [np.zeros(3) for _ in range(3)]
    lazy(fill, writes=("rest",))(x, *outs)
    assert [out.tolist() for out in outs] == 3 * [[0, 1, 2]]
