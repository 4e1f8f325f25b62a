"""What programs found that were written from the contract alone: each is what NumPy does."""
from __future__ import annotations

import pickle
import sys
import warnings

import numpy as np
import numpy.lib.recfunctions as rf
import pytest

import lazyarray


@pytest.fixture(autouse=True, params=[0, 1000, 95_000])
def small(request, small_on_host):
    small_on_host(request.param)


class Kept(np.ndarray):
    def __new__(cls, a):
        return super().__new__(cls, a.shape, a.dtype, buffer=a)


KEEPING = {
    "ndarray": lambda x: np.ndarray(x.shape, x.dtype, x), "a part": lambda x: np.ndarray((3,), x.dtype, x),
    "a subclass": Kept, "records": lambda x: np.recarray(x.shape, dtype=[("a", x.dtype)], buf=x)["a"],
}


@pytest.mark.skipif(sys.version_info < (3, 12), reason="there are no buffers of classes in Python")
@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("size", [4, 200, 20_000])
@pytest.mark.parametrize("keep", KEEPING.values(), ids=KEEPING)
def test_memory_that_numpys_constructor_keeps(keep, size, computed):
    """It lets go of the buffer at once, and keeps the array itself."""
    x = lazyarray.asarray(np.arange(float(size)))
    if computed:
        x = x * 1
    host = keep(x)
    x += 3
    assert host[1] == 4
    host[0] = 77
    assert float(x[0]) == 77
    x *= 2
    assert host[1] == 8
    host[1] = 5
    assert float((x + 1)[1]) == 6
    with pytest.raises(ValueError, match="cannot resize"):
        x.resize(2 * size)
    assert host[0] == 154


@pytest.mark.skipif(sys.version_info < (3, 12), reason="there are no buffers of classes in Python")
def test_read_only_memory_that_numpys_constructor_keeps():
    x = lazyarray.asarray(np.arange(6.0))
    x.setflags(write=False)
    assert not np.ndarray((6,), float, x).flags.writeable


@pytest.mark.filterwarnings("ignore::lazyarray.HostFallbackWarning")
def test_fields_of_the_elements_of_an_array():
    h = np.arange(12.0).reshape(3, 4)
    x = lazyarray.asarray(h.copy())
    x += 0
    found, wanted = rf.unstructured_to_structured(x), rf.unstructured_to_structured(h)
    found["f1"] = wanted["f1"] = 7
    found[0] = wanted[0] = (1, 2, 3, 4)
    np.testing.assert_array_equal(np.asarray(found), wanted)
    found[...] = wanted[...] = 3
    np.testing.assert_array_equal(np.asarray(found), wanted)
    assert found.dtype == wanted.dtype


@pytest.mark.parametrize("size", [5, 20, 60, 100, 2000])
def test_an_array_that_a_function_returns_is_the_same(size):
    x = lazyarray.asarray(np.arange(float(size)))
    found = np.real_if_close(x)
    assert found is x
    found[3] = -99
    assert float(x[3]) == -99


@pytest.mark.parametrize("dtype, number", [("f4", 1j), ("f2", 1j), ("f4", 1), ("i4", 2.0), ("f4", np.float64(2)),
                                           ("c8", 1.5)])
def test_dtypes_of_linspace(dtype, number):
    h = np.array([3, -2, 7], dtype)
    x = lazyarray.asarray(h)
    for found, wanted in ((np.linspace(x, number, 3), np.linspace(h, number, 3)),
                          (np.linspace(number, x, 3), np.linspace(number, h, 3))):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-3 if dtype == "f2" else 1e-6)


def test_views_of_views_of_what_was_made_on_the_host():
    h = np.arange(600.0).reshape(20, 30)
    x = lazyarray.asarray(h.copy())
    for _ in range(3):
        found, wanted = x[2:-1, ::-2] * 2 + x[:17, 15:], h[2:-1, ::-2] * 2 + h[:17, 15:]
        np.testing.assert_array_equal(np.asarray(found), wanted)
        part, host = x[3:][::2, 1:], h[3:][::2, 1:]
        part += 1
        host += 1
        part[0, 0] = host[0, 0] = -5
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert part.flags.writeable and part.base is x and part.strides == host.strides
        np.testing.assert_array_equal(np.asarray(x), h)
    x.setflags(write=False)
    assert not x[1:].flags.writeable


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("dtype", ["f8", "m8[s]", "M8[D]", "S3", "O", "i4,f8"])
@pytest.mark.parametrize("shape", [(4, 4), (4, 1)])
def test_what_was_pickled_can_be_written_as_numpys_can(shape, dtype, protocol):
    h = np.zeros(shape, dtype)
    for view in (np.diagonal, lambda a: np.broadcast_to(a[0], (2, shape[1])), lambda a: a):
        wanted = pickle.loads(pickle.dumps(view(h), protocol))
        found = pickle.loads(pickle.dumps(view(lazyarray.asarray(h)), protocol))
        assert found.flags.writeable == wanted.flags.writeable
