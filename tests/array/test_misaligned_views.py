"""Views with elements at other places than multiples of their size, which a kernel can't read: they are on the host."""
import numpy as np
import pytest

import lazyarray
import lazyarray.errors

pytestmark = pytest.mark.filterwarnings("ignore::lazyarray.HostFallbackWarning", "ignore:Setting the dtype")

MISALIGNED = {
    "complex numbers from an odd element on": lambda a: a[1:-1].view("c16"),
    "bytes shifted by four": lambda a: a.view("i1")[4:-4].view("i8"),
    "rows of nine bytes": lambda a: a.view("i1")[:a.size // 9 * 9].reshape(-1, 9)[:, :8].view("f8"),
    "a part of each element": lambda a: a.getfield("i2", 3)}
ALIGNED = {
    "halves of rows": lambda a: a.view("i1").reshape(-1, 8)[:, :4].view("f4"),
    "an even part of each element": lambda a: a.getfield("i2", 2),
    "complex numbers": lambda a: a[2:].view("c16"),
    "bytes": lambda a: a[1:].view("u1")}


@pytest.mark.parametrize("size", [90, 5400])
@pytest.mark.parametrize("way", [*MISALIGNED.values(), *ALIGNED.values()], ids=[*MISALIGNED, *ALIGNED])
def test_it_is_a_view_as_of_an_ndarray(way, size):
    plain = np.arange(float(size))
    x = lazyarray.asarray(plain) * 1
    view, expected = way(x), way(plain)
    assert lazyarray.is_lazy(view) and view.flags.aligned == expected.flags.aligned
    assert np.array_equal(view + 1, expected + 1) and np.array_equal(np.sum(view), np.sum(expected))
    view[1:3] = expected[1:3] = 7
    assert np.array_equal(np.asarray(x), plain), "a write through the view"
    x[...] = x[::-1].copy()
    plain[...] = plain[::-1].copy()
    assert np.array_equal(view * 1, expected * 1), "a write past the view, on the device"
    view[2:] += view[:-2].copy()
    expected[2:] += expected[:-2].copy()
    assert np.array_equal(x + 0, plain + 0, equal_nan=True), "in place"
    copy = np.copy(view)
    copy[0] = 3
    assert view[0] == expected[0] != 3 and np.array_equal(lazyarray.asdevice(copy).get()[1:], expected[1:])


@pytest.mark.parametrize("way", MISALIGNED.values(), ids=MISALIGNED)
def test_the_way_out_is_named(way):
    view = way(lazyarray.asarray(np.arange(900.0)))
    with pytest.raises(lazyarray.errors.NotOnDevice, match=r"view of memory on the host; use numpy\.asarray"):
        lazyarray.device().xp.asarray(view.__wrapped__)


@pytest.mark.parametrize("way", MISALIGNED.values(), ids=MISALIGNED)
def test_a_device_array_is_assigned(way):
    plain = np.arange(900.0)
    x = lazyarray.asarray(plain) * 1
    view, expected = way(x), way(plain)
    expected[1:3] = 1
    view[1:3] = lazyarray.device().xp.ones_like(lazyarray.asdevice(np.array(expected[1:3])))
    assert np.array_equal(np.asarray(x), plain)


def test_a_dtype_given_to_the_array_itself():
    plain = np.arange(90.0)
    x = lazyarray.asarray(plain) * 1
    y, expected = x[1:-1], plain[1:-1]
    y.dtype = expected.dtype = complex
    y *= 2
    expected *= 2
    assert np.array_equal(np.asarray(x), plain)


def test_memory_of_the_user_that_begins_at_an_odd_place():
    device = lazyarray.device().xp.asarray(np.arange(91.0))
    x = lazyarray.asarray(device[1:])
    view = x.view("c16")
    assert np.array_equal(view + 1, np.arange(1, 91.0).view("c16") + 1)
    view[0] = 5j
    lazyarray.asdevice(x)
    assert device[1] == 0 and device[2] == 5


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("way", [
    *MISALIGNED.values(), lambda a: a.view(">f8"), lambda a: a.view([("a", "f4"), ("b", "f4")])["b"]],
    ids=[*MISALIGNED, "the other order of bytes", "a field"])
def test_what_it_shares(way, small):
    with lazyarray.options(small_on_host=small):
        x = lazyarray.asarray(np.arange(90.0)) * 1
        view, other = way(x), way(lazyarray.asarray(np.arange(90.0)) * 1)
        assert np.shares_memory(x, view) and np.may_share_memory(view, x) and np.shares_memory(view, np.asarray(x))
        assert not np.shares_memory(view, other) and not np.shares_memory(x, other)
        if view.dtype.kind != "c":
            imaginary = view.imag
            with pytest.raises(ValueError, match="read-only"):
                imaginary[...] = 5
            assert not imaginary.any() and not np.shares_memory(imaginary, x)
