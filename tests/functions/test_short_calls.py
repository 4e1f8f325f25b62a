"""Calls that have a short way give what NumPy's do: one number taken, ``clip`` in place, constant borders."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray
from lazyarray.testing import assert_copies


@pytest.fixture(autouse=True, params=[True, False], ids=["small on host", "on the device"])
def _where(request):
    with lazyarray.options(small_on_host=request.param):
        yield


def agree(call, *plain):
    """Of lazy arrays it gives what NumPy gives, in its layout, and leaves them as NumPy does; or the same error."""
    lazy = [lazyarray.asarray(a.copy()) for a in plain]
    plain = [a.copy() for a in plain]
    try:
        wanted = call(*plain)
    except (ValueError, IndexError, TypeError, OverflowError) as error:
        with pytest.raises(type(error)) as found:
            call(*lazy)
        assert str(found.value) == str(error)
    else:
        found = call(*lazy)
        assert found.dtype == wanted.dtype and (np.asarray(found).strides == wanted.strides or not wanted.size)
        np.testing.assert_array_equal(np.asarray(found), wanted)
        np.testing.assert_array_equal(np.signbit(np.asarray(found).real), np.signbit(wanted.real))
    for one, other in zip(lazy, plain):
        np.testing.assert_array_equal(np.asarray(one), other)


X = np.arange(-20.0, 22).reshape(6, 7)


@pytest.mark.parametrize("index", [0, 3, 5, 6, -1, -7, 41, 42])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, 2])
@pytest.mark.parametrize("x", [X, X.T, X[:, ::2], X[2], X.astype("i2"), X > 0], ids=range(6))
def test_one_number_is_taken(x, axis, index):
    agree(lambda a: np.take(a, index, axis=axis), x)
    agree(lambda a: a.take(index, axis), x)


def test_what_is_taken_is_no_view():
    x = lazyarray.asarray(X.copy())
    row, one = np.take(x, 2, axis=0), np.take(x[3], 4)
    x[:] = 0
    assert row.tolist() == X[2].tolist() and one == X[3, 4]


@pytest.mark.parametrize("low, high", [(-3, 5), (None, 4), (0, None), (-2.5, 2.5), (5, -5), (np.nan, 3)])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1", "c16"])
def test_clip_in_place(low, high, dtype):
    if dtype == "c16" and low is not None and low != low:
        pytest.skip("NumPy orders complex NaN by its parts")
    x = abs(X).astype(dtype)

    def into(a, b):
        found = np.clip(a, low, high, out=b)
        assert found is b
        return found

    agree(lambda a: into(a, a), x)
    agree(into, x, np.zeros_like(x))
    agree(into, x, np.zeros((6, 7), order="F", dtype=dtype))
    agree(lambda a: into(a[1:], a[:-1]), x)
    agree(lambda a: into(a[:, 1:], a[:, :-1]), x)
    agree(lambda a: into(a, a[::-1]), x)
    agree(into, x, np.zeros((6, 7), "f4"))
    agree(into, x, np.zeros((5, 7), dtype))


def test_clip_in_place_copies_nothing():
    with lazyarray.options(small_on_host=False):
        x = lazyarray.asarray(X.copy()) * 2
        with assert_copies(0, 0):
            np.clip(x, -5, 5, out=x)
        x.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            np.clip(x, -1, 1, out=x)
        assert np.array_equal(x, np.clip(X * 2, -5, 5))


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "c16", "i4", "?"])
@pytest.mark.parametrize("width", [1, 0, (2, 1), ((0, 1), (2, 0))])
@pytest.mark.parametrize("value", [0, 1, -3, 2.5, -0.0, 0.0, np.inf, np.nan, True, np.float32(2)])
def test_constant_borders(dtype, width, value):
    if dtype in ("i4", "?") and not np.isfinite(value):
        pytest.skip("undefined")
    for x in (X.astype(dtype), X.astype(dtype)[:0], X.T.astype(dtype)):
        agree(lambda a, x=x: np.pad(a, width, mode="constant", constant_values=value), x)


def test_what_is_taken_of_what_stays_on_the_host():
    records = lazyarray.asarray(np.zeros(3, [("a", "i4"), ("b", "f8")]))
    taken = np.take(records, 1)
    records["a"][1] = 7
    assert tuple(taken) == (0, 0.0)
    inner = lazyarray.asarray(np.arange(3.0))
    objects = np.empty(2, object)
    objects[1] = inner
    assert np.take(lazyarray.asarray(objects), 1) is inner


@pytest.mark.parametrize("make", [
    lambda a: [a([True])[0], a([300])[0]], lambda a: [a([1j])[0], a([1.5])[0]], lambda a: [a([1.5]).sum(), 2]])
def test_lists_of_scalars_that_stay_objects(make):
    import lazyarray.numpy as xnp

    found, wanted = xnp.array(make(xnp.array), object), np.array(make(np.array), object)
    assert found.tolist() == wanted.tolist() and found.dtype == object
    assert [type(item).__name__ for item in np.asarray(found)] == [type(item).__name__ for item in wanted]
