"""Attributes that NumPy's arrays do not have, and those that can't be set; CuPy's `get`."""
from __future__ import annotations

import pickle
import pydoc
import warnings

import numpy as np
import pytest

import lazyarray
from lazyarray import _native


def outcome(call):
    try:
        call()
    except (AttributeError, TypeError) as error:
        return type(error), str(error)
    return None


NAMES = ["foo", "_typ", "_self_foo", "__wrapped__", "__dict__", "size", "ndim", "T", "base", "flags", "nbytes",
         "itemsize", "ctypes", "sum", "reshape", "__len__", "__class__", "__doc__", "__array_priority__"]


@pytest.mark.parametrize("name", NAMES)
def test_what_cannot_be_set_raises_the_error_of_ndarray(name):
    x, a = lazyarray.asarray([1.0, 2.0]), np.array([1.0, 2.0])
    for y in (x, x + 1, x[:1]):
        assert outcome(lambda y=y: setattr(y, name, 3)) == outcome(lambda: setattr(a, name, 3)) is not None
        assert outcome(lambda y=y: delattr(y, name)) == outcome(lambda: delattr(a, name)) is not None
    assert x.sum() == 3 and len(x) == 2


@pytest.mark.parametrize("name", ["shape", "dtype", "strides", "real", "imag", "flat", "data"])
def test_what_can_be_set_cannot_be_deleted(name):
    x, a = lazyarray.asarray([1.0, 2.0]), np.array([1.0, 2.0])
    assert outcome(lambda: delattr(x, name)) == outcome(lambda: delattr(a, name)) is not None


def test_nothing_of_an_array_can_be_deleted():
    x = lazyarray.asarray([1.0, 2.0])
    for name in lazyarray.LazyNdarray.__slots__:
        with pytest.raises(AttributeError):
            delattr(x, name)
    assert x.tolist() == [1.0, 2.0]


MAKERS = {
    "plain": lambda: np.arange(6.0).reshape(2, 3),
    "fortran": lambda: np.asfortranarray(np.arange(6, dtype="i2").reshape(2, 3)),
    "view": lambda: np.arange(12, dtype="f4").reshape(3, 4)[::-1, ::2],
    "0-d": lambda: np.array(2.5),
    "empty": lambda: np.empty((0, 3)),
    "read-only": lambda: np.broadcast_to(np.arange(3), (2, 3)),
    "host-only": lambda: np.array(["a", "bc"]),
}


@pytest.mark.parametrize("order", "CFA")
@pytest.mark.parametrize("kind", MAKERS)
def test_get_copies_to_the_host(kind, order):
    a = MAKERS[kind]()
    x = lazyarray.asarray(a)
    got = x.get(order=order)
    assert type(got) is np.ndarray and got.dtype == a.dtype and got.shape == a.shape
    np.testing.assert_array_equal(got, a)
    assert got.flags.f_contiguous if order == "F" else got.flags.forc
    assert got.flags.writeable and got.flags.owndata
    got[...] = got[::-1].copy() if a.ndim else 7
    np.testing.assert_array_equal(x, a)     # a copy


def test_get_of_what_waits_and_of_a_scalar():
    x = lazyarray.asarray([1.0, 2.0])
    np.testing.assert_array_equal((x * 2 + 1).get(), [3.0, 5.0])
    for s in (x.sum(), x[0] + x[1]):
        got = s.get()
        assert type(got) is np.ndarray and got.shape == () and got == 3.0


def test_get_takes_what_cupy_takes():
    x = lazyarray.asarray([1.0, 2.0])
    out = np.zeros(2)
    assert x.get(out=out) is out and out.tolist() == [1.0, 2.0]
    stream = lazyarray.device().new_stream()
    assert x.get(stream, "C", None, False).tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match="Only numpy.ndarray"):
        x.get(out=[0.0, 0.0])
    with pytest.raises(TypeError, match="float32 array cannot be obtained from float64"):
        x.get(out=np.zeros(2, "f4"))
    with pytest.raises(ValueError, match="Shape mismatch"):
        x.get(out=np.zeros(3))


def test_get_copies_from_the_device_once():
    x = lazyarray.asarray(np.arange(10.0)) * 2
    with lazyarray.trace() as t:
        x.get(), x.get(), np.asarray(x)
    assert len(t.events) == 1


def test_asnumpy_of_cupy_copies_nothing_on_the_device():
    cupy = pytest.importorskip("cupy")
    x = lazyarray.asarray(np.arange(6.0).reshape(2, 3)) * 2
    got = cupy.asnumpy(x, order="F")
    assert type(got) is np.ndarray and got.flags.f_contiguous and got[1, 2] == 10
    assert cupy.asnumpy(x.sum()) == 30
    np.asarray(x)
    with lazyarray.no_transfers():
        cupy.asnumpy(x)
    assert cupy.asnumpy([1, 2]).tolist() == [1, 2]


@pytest.mark.parametrize("reduce", [lambda a: a, lambda a: a.sum()], ids=["array", "scalar"])
def test_members_have_names_and_texts(reduce):
    """By its name a bound method is pickled, wrapped and shown by `help`."""
    host = reduce(np.ones((3, 3)))
    x = reduce(lazyarray.asarray(np.ones((3, 3))))
    names = {name: getattr(member, "__name__", None) for name in dir(host) if callable(member := getattr(host, name))}
    assert {name: getattr(getattr(x, name), "__name__", None) for name in names} == names
    assert np.array_equal(pickle.loads(pickle.dumps(x.round))(), host.round())
    for owner in (x, lazyarray.LazyNdarray):
        assert pydoc.render_doc(owner.reshape, renderer=pydoc.plaintext).splitlines()[2].startswith("reshape(")


@pytest.mark.parametrize(("name", "value"), [("shape", (3, 2)), ("shape", (-1,)), ("dtype", np.int64),
                                             ("strides", (0, 8)), ("strides", (8, 8))])
@pytest.mark.parametrize("before", [lambda x: x + 1, lambda x: x > 2, lambda x: x.sum(axis=0), lambda x: x @ x.T],
                         ids=["+", ">", "sum", "@"])
@pytest.mark.filterwarnings("ignore:Setting the (shape|dtype|strides):DeprecationWarning")
def test_what_was_assigned_counts_for_what_comes_after_an_operation(name, value, before):
    plain = np.arange(6.0).reshape(2, 3)
    lazy = lazyarray.asarray(plain)
    for _ in range(2):
        held = before(plain), before(lazy)
    setattr(plain, name, value)
    setattr(lazy, name, value)
    for after in (lambda x: x + 1, lambda x: x > 2, lambda x: -x, lambda x: np.sum(x * 1, 0), lambda x: x.sum(),
                  lambda x: x.sum(axis=0), lambda x: (x + x).T, lambda x: x.copy(), lambda x: np.sqrt(abs(x))):
        expected, found = after(plain), after(lazy)
        assert found.shape == expected.shape and found.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(found), expected)
    np.testing.assert_array_equal(np.asarray(held[1]), held[0])


@pytest.mark.parametrize(("shape", "other"), [((2, 2), (1, 2, 2)), ((2,), (1, 2, 2)), ((1,), (1, 1, 1, 1)),
                                              ((2, 2), (2, 2, 2)), ((2, 3), (3, 2)), ((2, 2, 2), (1, 2, 2))])
def test_a_product_in_place_with_a_stack_of_one(shape, other):
    plain = np.arange(np.prod(shape), dtype=float).reshape(shape)
    lazy, factor = lazyarray.asarray(plain), np.arange(np.prod(other), dtype=float).reshape(other)
    try:
        plain @= factor
    except ValueError:
        with pytest.raises(ValueError):
            lazy @= lazyarray.asarray(factor)
    else:
        lazy @= lazyarray.asarray(factor)
    np.testing.assert_array_equal(np.asarray(lazy), plain)


def test_a_shape_is_set_with_numpys_warning():
    plain, warned = np.ones((2, 3)), []
    for x in plain, lazyarray.asarray(plain):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            x.shape = (3, 2)
        assert x.shape == (3, 2)
        warned.append([(one.category, one.filename) for one in found])
    assert warned[0] == warned[1], "it names the program's line"


@pytest.mark.parametrize("small", [0, 4096], ids=["device", "host"])
def test_keywords_that_numpy_takes_as_they_are(small):
    before = None if _native.recording is None else _native.recording.small(small)
    try:
        x = lazyarray.asarray(np.arange(1.0, 5).reshape(2, 2))
        plain = np.asarray(x)
        for ufunc in (np.modf, np.frexp):
            for one, other in zip(ufunc(x, where=True), ufunc(plain, where=True)):
                np.testing.assert_array_equal(np.asarray(one), other)
        np.testing.assert_array_equal(np.asarray(np.divmod(x, 2, where=True)), np.divmod(plain, 2))
        for where in (lazyarray.asarray(np.eye(2, dtype=bool)), False):
            with pytest.raises(ValueError, match="identity"):
                x.sum(initial=None, where=where)
        with pytest.raises(ValueError, match="identity"):
            np.sum(x[:0], 0, initial=None)
    finally:
        if before is not None:
            _native.recording.small(before)
