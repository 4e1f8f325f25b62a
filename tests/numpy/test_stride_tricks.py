"""`lazyarray.numpy.lib.stride_tricks`: views of what is on the device, as NumPy's of what is on the host."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray
import lazyarray.numpy as xnp
from lazyarray.testing import assert_copies

as_strided = xnp.lib.stride_tricks.as_strided
PLAIN = np.arange(60.0).reshape(6, 10)


@pytest.mark.parametrize(("part", "arguments"), [
    (np.s_[:], ((3, 4), (80, 16))), (np.s_[1:, 2:], ((2, 2, 3), (80, 8, 8))), (np.s_[:], ()), (np.s_[::2], ((2, 5),)),
    (np.s_[5, 9:], ((3, 2), (-80, -8))), (np.s_[:], ((0, 3), (8, 8))), (np.s_[2], ((4, 10), (0, 8))),
    (np.s_[:], ([2, np.int64(3)], [np.int32(8), 8])), (np.s_[3, 3:], ((), ()))])
def test_values_and_forms(part, arguments):
    x = lazyarray.asarray(PLAIN)[part]
    with assert_copies(0, 0):
        found = as_strided(x, *arguments)
        doubled = found * 2
    wanted = np.lib.stride_tricks.as_strided(PLAIN[part], *arguments)
    assert lazyarray.is_lazy(found) and found.shape == wanted.shape
    assert found.strides == wanted.strides or not found.size        # which no element tells
    assert np.array_equal(found, wanted) and np.array_equal(doubled, wanted * 2)


def test_it_is_a_view():
    x = lazyarray.asarray(PLAIN.copy())
    view = as_strided(x[1:], (2, 2), (160, 8))
    view[:] = -1
    plain = PLAIN.copy()
    np.lib.stride_tricks.as_strided(plain[1:], (2, 2), (160, 8))[:] = -1
    assert np.array_equal(x, plain)
    x[1, 0] = 7
    assert view[0, 0] == 7 and view.base is not None


def test_read_only():
    x = lazyarray.asarray(PLAIN.copy())
    with pytest.raises(ValueError, match="read-only"):
        as_strided(x, (2,), (8,), writeable=False)[0] = 1
    x.flags.writeable = False
    assert not as_strided(x, (2,), (8,)).flags.writeable


@pytest.mark.parametrize("make", [
    lambda: lazyarray.asarray(np.array([{}, None, 1], dtype=object)), lambda: [1.0, 2.0, 3.0], lambda: PLAIN[0]])
def test_what_is_not_on_the_device_is_numpys(make):
    found = as_strided(make(), (2,), (16,))
    assert isinstance(found, np.ndarray) and found.tolist() == [np.asarray(make())[i] for i in (0, 2)]


@pytest.mark.parametrize("arguments", [((2,), (8, 8)), ((-1,), (8,)), ((2.5,), (8,)), (3, 8)])
def test_errors_are_numpys(arguments):
    with pytest.raises((TypeError, ValueError)) as expected:
        np.lib.stride_tricks.as_strided(PLAIN, *arguments)
    with pytest.raises(type(expected.value)):
        as_strided(lazyarray.asarray(PLAIN), *arguments)


def test_beyond_its_memory_it_is_the_host_s():
    x = lazyarray.asarray(PLAIN)
    assert type(as_strided(x[5], (1, 1), (8 * 1000, 8))) is type(as_strided(x, (2,), (8,)))
    assert type(as_strided(x, (2, 10), (8 * 60, 8))) is np.ndarray


def test_the_rest_is_numpys():
    assert xnp.lib.stride_tricks.sliding_window_view is np.lib.stride_tricks.sliding_window_view
    assert xnp.lib.NumpyVersion is np.lib.NumpyVersion and "stride_tricks" in dir(xnp.lib)
    assert dir(xnp.lib.stride_tricks) == dir(np.lib.stride_tricks)
    with pytest.raises(AttributeError):
        xnp.lib.nothing
    from lazyarray.numpy.lib.stride_tricks import sliding_window_view
    assert sliding_window_view is np.lib.stride_tricks.sliding_window_view
