"""Details of NumPy's functions: each call gives with lazy arrays what it gives with ndarrays, or raises the same."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray

pytestmark = pytest.mark.filterwarnings("ignore")
needs_buffers = pytest.mark.skipif(not hasattr(memoryview, "__buffer__"),
                                   reason="classes in Python offer no buffers before 3.12")


def seen(value):
    """Kind, dtype, shape and values of a result, in plain objects."""
    if isinstance(value, np.ma.MaskedArray):
        return "masked", value.dtype, value.tolist(), value.fill_value
    if isinstance(value, np.ndarray):
        return "array", value.dtype, value.shape, np.asarray(value).tolist()
    if isinstance(value, np.generic):
        return "scalar", value.dtype, value.item()
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [seen(v) for v in value]
    return value


def outcome(call, make):
    try:
        return seen(call(make))
    except Exception as error:      # noqa: BLE001  whichever NumPy raises
        return type(error).__name__


def check(call):
    # By its text, in which NaN equals NaN.
    assert repr(outcome(call, lazyarray.asarray)) == repr(outcome(call, np.array))


def assigned(key, values, shape=(2, 3), order="C", dtype=float):
    """A call that assigns `values(x)` to ``x.flat[key]`` of a new array and returns the array."""
    def call(make):
        x = make(np.asarray(np.arange(1, 7).reshape(shape), dtype, order=order))
        x.flat[key] = values(x)
        return x
    return call


EMPTY = {"list": lambda x: [], "array": lambda x: np.zeros(0), "lazy": lambda x: lazyarray.asarray(np.zeros((0, 3)))}


@pytest.mark.parametrize("key", [slice(None), slice(1, 4), ..., [0, 2], [100], np.array([1, 2]), 0], ids=repr)
@pytest.mark.parametrize("dtype", [float, "M8[D]", object])
@pytest.mark.parametrize("values", EMPTY)
def test_no_values_assigned_to_flat_change_nothing(key, dtype, values):
    check(assigned(key, EMPTY[values], dtype=dtype))


def test_flat_itself_takes_no_values():
    def call(make):
        x = make(np.arange(4.0) + 1)
        x.flat = []
        return x
    check(call)


OVERLAPPING = {
    "itself": lambda x: x, "reversed": lambda x: x[::-1], "a row": lambda x: x[0], "transposed": lambda x: x.T,
    "an alias": np.asarray, "part of an alias": lambda x: np.asarray(x)[1:], "converted": lambda x: x.astype("f4"),
    "a view of another dtype": lambda x: x.view("i8") if x.dtype == float else x[::-1],
}


@pytest.mark.parametrize("key", [slice(None), slice(None, None, 2), slice(None, None, -1), ..., [3, 0, 2]], ids=repr)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [float, object])
@pytest.mark.parametrize("values", OVERLAPPING)
def test_values_in_the_array_itself_are_assigned_to_flat_one_by_one(key, order, dtype, values):
    check(assigned(key, OVERLAPPING[values], order=order, dtype=dtype))


@pytest.mark.parametrize("dtype", ["f2", "f4", "c8", "f8"])
@pytest.mark.parametrize("number", [1e5, -1e5, 1e30, 1e300, np.inf, np.nan, 70000, 10**30])
def test_is_close_to_a_number_that_the_dtype_may_not_hold(dtype, number):
    def call(make):
        x = make(np.arange(3, dtype=dtype))
        return np.isclose(x, number), np.allclose(x, number), np.isclose(number, x), np.isclose(x, x * 0 + number)
    check(call)


MEANS = {
    "complex": np.array([1.5 + 0j]), "wider": np.array([1.5]), "narrower": np.array([1.5], "f2"), "number": 1.5,
    "complex number": 1.5 + 1j, "scalar": np.float64(1.5), "more axes": np.zeros((3, 4)), "no axes": np.array(1.0),
    "of another shape": np.zeros(3), "of nothing": np.zeros((3, 0)), "integers": np.array([1]), "list": [1.5],
}


@pytest.mark.parametrize("function", [np.std, np.var, np.nanstd, np.nanvar], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize("shape", [(4,), ()])
@pytest.mark.parametrize("mean", MEANS)
def test_a_mean_that_is_given_decides_about_dtype_and_shape(function, dtype, shape, mean):
    def call(make, given=MEANS[mean]):
        found = function(make(np.full(shape, 3, dtype)), mean=make(given) if type(given) is np.ndarray else given)
        return found.dtype, found.shape, np.round(complex(found) if found.ndim == 0 else np.asarray(found), 5)
    check(call)


CALLS = {
    "the order of the prototype by default": lambda make: [
        (y.flags.c_contiguous, y.flags.f_contiguous, y.shape)
        for x in (make(np.ones((2, 3))), make(np.ones((2, 3), order="F"))) for order in (None, "c", "F", "a", "K", b"F")
        for y in (np.zeros_like(x, order=order), np.ones_like(x, order=order), np.full_like(x, 2, order=order),
                  np.empty_like(x, order=order))],
    "an order that there is not": lambda make: np.zeros_like(make(np.ones(3)), order="X"),
    "an order of another type": lambda make: np.zeros_like(make(np.ones(3)), order=3),
    "indexed by a class": lambda make: make(np.ones((3, 3)))[np.int64],
    "indexed by a class and a number": lambda make: make(np.ones((3, 3)))[np.int64, 0],
    "indexed by a class and a list": lambda make: make(np.ones((3, 3)))[np.int64, [0]],
    "assigned by a class": lambda make: make(np.ones((3, 3))).__setitem__((np.int64, 0), 1),
    "a scalar without a copy": lambda make: np.nan_to_num(make(np.arange(3)).max(), copy=False),
    "a floating scalar without a copy": lambda make: np.nan_to_num(make(np.arange(3.0)).max(), copy=False),
    "a scalar": lambda make: np.nan_to_num(make(np.arange(3.0)).max()),
    "an array without a copy": lambda make: np.nan_to_num(make(np.array([np.nan, 1])), copy=False),
}


#: Calls of functions in C that ask for a buffer.
BUFFERS = {
    "compared as a text says": lambda make: np.char.compare_chararrays(*[make(np.array(["a", "b"]))] * 2, "==", True),
    "records as bytes": lambda make: np.frombuffer(make(np.ones(3, [("a", "i1"), ("b", "f8")])), "u1"),
    "texts as bytes": lambda make: np.frombuffer(make(np.array(["ab", "c"])), "u1"),
    "every other date as bytes": lambda make: np.frombuffer(make(np.arange(4).astype("M8[D]"))[::2], "i8"),
    "one number as bytes": lambda make: np.frombuffer(make(np.array(2.0))),
    "no numbers as bytes": lambda make: np.frombuffer(make(np.zeros(0))),
    "objects as bytes": lambda make: np.frombuffer(make(np.array([None])), "u1"),
}


@needs_buffers
@pytest.mark.parametrize("call", BUFFERS.values(), ids=list(BUFFERS))
def test_a_function_that_reads_a_buffer_gives_what_numpy_gives(call):
    check(call)


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_the_call_gives_what_numpy_gives(call):
    check(call)


@pytest.mark.parametrize("dtype", [">f8", "M8[s]"])
def test_the_device_gets_a_copy_of_a_view_that_it_can_hold_of_memory_that_it_can_not(dtype):
    host = np.arange(3).astype(dtype)
    found = lazyarray.asdevice(lazyarray.asarray(host).view("u8"))
    assert lazyarray.asnumpy(found).tolist() == host.view("u8").tolist()


MASKED = {
    name: (lambda make, name=name: getattr(np.ma, name)(make(np.array([0.5, 1.0, 0.0]))))
    for name in ("sqrt", "log", "exp", "cos", "tan", "arccos", "conjugate", "absolute", "floor", "negative", "asarray",
                 "asanyarray", "masked_invalid", "cumsum", "anom", "sort", "ravel", "ediff1d", "copy")
} | {
    "power": lambda make: np.ma.power(make([0.0, 1.0]), 2),
    "divide": lambda make: np.ma.divide(make([0.0, 1.0]), make([0.0, 2.0])),
    "add": lambda make: np.ma.add(make([0.0, 1.0]), np.ma.array([1.0, 2.0], mask=[0, 1])),
    "where": lambda make: np.ma.where(make([0.0, 1.0]) > 0, make([0.0, 1.0]), 0),
    "a masked array": lambda make: np.ma.array(make([0.0, 1.0]), mask=make([True, False])),
    "integers": lambda make: np.ma.exp(make([0, 1])),
    "without dimensions": lambda make: np.ma.exp(make(np.array(1.0))),
}


@pytest.mark.parametrize("call", MASKED.values(), ids=list(MASKED))
def test_masked_results_are_of_plain_data(call):
    def used(make):
        x = call(make)
        if not isinstance(x, np.ma.MaskedArray):
            return x
        return x, x.filled(7), repr(x), x + 1, x.data, x.baseclass is np.ndarray, x.copy(), x.sum()
    check(used)


@needs_buffers
@pytest.mark.parametrize("alias_of", [np.frombuffer, np.asarray, memoryview, lambda x: np.asarray(memoryview(x))])
def test_what_is_written_through_a_buffer_is_found_after_a_device_write(alias_of):
    x = lazyarray.asarray(np.arange(4.0))
    alias = alias_of(x)
    np.subtract(x, x, out=x)
    np.add(alias, 1, out=np.asarray(alias))
    assert (x + 0).tolist() == np.asarray(x).tolist() == [1, 1, 1, 1]


@needs_buffers
def test_a_buffer_is_held_while_it_is_looked_at_and_no_longer():
    x = lazyarray.asarray(np.arange(4.0))
    view = memoryview(x)
    x += 1
    assert view.tolist() == [1, 2, 3, 4]
    view.release()
    alias = np.asarray(x)
    del x
    assert alias.tolist() == [1, 2, 3, 4]


#: What takes a dtype. (NumPy's functions in C that ask no array, such as `numpy.promote_types`, ask any object for its
#: dtype, a lazy array too.)
DTYPE = {
    "view": lambda x, d: x.view(d), "astype": lambda x, d: x.astype(d), "getfield": lambda x, d: x.getfield(d),
    "a copy in it": np.astype, "sum": lambda x, d: x.sum(dtype=d), "sum by position": lambda x, d: np.sum(x, 0, d),
    "mean": lambda x, d: np.mean(x, 0, d), "cumsum": lambda x, d: np.cumsum(x, 0, d),
    "prod": lambda x, d: np.prod(x, dtype=d, axis=(0,)), "add": lambda x, d: np.add(x, 1, dtype=d),
    "reduce": lambda x, d: np.add.reduce(x, dtype=d), "zeros_like": np.zeros_like, "full_like": lambda x, d: (
        np.full_like(x, 1, d)), "concatenate": lambda x, d: np.concatenate([x, x], dtype=d),
    "set": lambda x, d: setattr(x, "dtype", d), "asarray": lambda x, d: lazyarray.asarray(x, d),
    "made": lambda x, d: np.zeros(3, d, like=x),
}


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize("call", DTYPE.values(), ids=list(DTYPE))
def test_an_array_is_no_dtype(call, lazy):
    dtype = np.ones(3, "i8")
    with pytest.raises(TypeError):
        call(lazyarray.asarray(np.ones(3)), lazyarray.asarray(dtype) if lazy else dtype)


@needs_buffers
@pytest.mark.parametrize("flags", range(0, 256, 4))
@pytest.mark.parametrize("order", ["C", "F", "A"])
@pytest.mark.parametrize("read_only", [True, False])
def test_a_buffer_has_what_is_asked_for_or_the_error_is_numpys(flags, order, read_only):
    def call(make):
        x = make(np.arange(16.0).reshape(4, 4))
        x = x.T if order == "F" else x[:, ::2] if order == "A" else x
        x.flags.writeable = not read_only
        view = x.__buffer__(flags | 1) if flags % 8 else x.__buffer__(flags)
        return view.nbytes, view.readonly
    check(call)


@pytest.mark.parametrize("dtype, count", [("f4", 4), ("f4", 3), ("f8", 4), ("?", 9), ("i8", 3)])
@pytest.mark.parametrize("how", [
    lambda x: x.view(), lambda x: x.view(None), lambda x: x.view(dtype=None), lambda x: x.view("u1"),
    lambda x: x.view(np.ndarray), lambda x: x.view(None, np.ndarray), lambda x: x.view(np.int8, np.ndarray)])
def test_a_view_as_none_is_one_of_float64(dtype, count, how):
    x, found = np.arange(count).astype(dtype), []
    for array in x, lazyarray.asarray(x):
        try:
            view = how(array)
            found.append((view.dtype, np.asarray(view).tobytes()))
        except ValueError as error:
            found.append(str(error))
    assert found[0] == found[1]
