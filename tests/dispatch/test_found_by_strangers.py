"""What programs of somebody who had read the contract alone found, each with NumPy's answer beside it."""
from __future__ import annotations

import ctypes
import operator
import pickle
import sys

import numpy as np
import pytest

import lazyarray
import lazyarray.numpy as xnp

pytestmark = pytest.mark.filterwarnings("ignore")

LARGE = 60_000      # elements that no rule keeps on the host


def objects(asarray):
    made = np.empty(2, object)
    made[0], made[1] = asarray([1.0, 2.0]), asarray([3.0, 4.0])
    return made


def both_outputs(asarray):
    y = asarray([3.5, 40.25])
    return np.modf(y, out=(y, y)), y


def overlapping_outputs(asarray):
    y = asarray([30, 40, 50])
    np.divmod(y[1:], 7, out=(y[:-1], y[1:]))
    return y


def one_memory(asarray, outs, *inputs):
    """Two outputs that are one array of the host, or the array and its alias: the first is written last."""
    x = asarray(np.arange(4.0) + 0.5)
    outs = outs(x, np.asarray(x))
    (np.divmod if inputs else np.modf)(x, *inputs, out=outs)
    return tuple(np.asarray(out) for out in outs)


def written_ahead(asarray, dtype, size, view=lambda x: x):
    """Each element is of what was written while those before it were read."""
    x, steps = asarray(np.ones(size, dtype)), []
    for i, value in enumerate(view(x)[:-1]):
        if i % 50 < 3:
            view(x)[i + 1] += value
        steps.append(value)
    return x, np.array(steps)


def beside_an_output(asarray, dtype):
    """The second output is of what the first one is written to, and the device has no such dtype."""
    x, y = asarray([1.5, -2.25]), asarray(np.zeros(2, dtype))
    np.modf(x, out=(x, y))
    return x, y


def assigned(asarray, index, make):
    x = asarray(np.arange(4, dtype="u8"))
    x[index] = make(asarray)
    return x


def mixed_products(asarray, count):
    wide, narrow = asarray([[100, 3], [2, 1]]), asarray(np.array([[200, 100], [9, 50]], "u1"))
    return np.linalg.multi_dot([wide, *[narrow] * count])


def resized(asarray, held=lambda x: None, size=5, **flags):
    x = asarray([1, 2, 3])
    x.setflags(**flags)
    kept = held(x)
    x.resize(size)
    return x[:3], x.shape, x.flags.writeable, kept is None


def permuted(asarray, by):
    x = asarray(np.arange(12.0).reshape(3, 4))
    by(x, axis=1, out=x)
    return x


def unpickled(asarray, make):
    buffers: list = []
    text = pickle.dumps(asarray(np.arange(3.0)), 5, buffer_callback=buffers.append)
    x = pickle.loads(text, buffers=[make(buffer) for buffer in buffers])
    return x, x.flags.writeable


CALLS = {
    "a Python number of no kind": lambda a: np.multiply(1, a(np.full(LARGE, 58, "u8")), casting="equiv"),
    "a Python number as it is": lambda a: np.multiply(1.0, a(np.full(LARGE, 58.0)), casting="no"),
    "real part, reversed": lambda a: (a(np.arange(LARGE) + 1j) * 2)[::-1].real[:5] + 1,
    "imaginary part, reversed": lambda a: (a(np.arange(LARGE) * 1j) * 2)[::-1].imag[:5] + 1,
    "imaginary part, two axes": lambda a: (a(np.arange(LARGE).reshape(200, -1) * 1j) * 2)[:, ::-1].imag[3, :5] + 1,
    "concatenated objects": lambda a: np.concatenate(objects(a)), "stacked objects": lambda a: np.stack(objects(a)),
    "objects side by side": lambda a: np.column_stack(objects(a)), "objects in a row": lambda a: np.hstack(objects(a)),
    "both outputs": both_outputs, "overlapping outputs": overlapping_outputs,
    "outputs of two shapes": lambda a: np.modf(a([3.5, 4]), out=(a(np.zeros((2, 2))), a(np.zeros(2)))),
    "outputs of a larger shape": lambda a: np.modf(a([3.5, 4]), out=(a(np.zeros((2, 2))), a(np.zeros((2, 2))))),
    "an output of long doubles": lambda a: beside_an_output(a, "g"),
    "an output of objects": lambda a: beside_an_output(a, object),
    "an output of text": lambda a: beside_an_output(a, "U4"),
    "a time as an integer": lambda a: assigned(a, 1, lambda a: np.timedelta64(5, "s")),
    "times as integers": lambda a: assigned(a, slice(None, None, -1), lambda a: a(np.arange(9).astype("m8[s]")).sum()),
    "a time everywhere": lambda a: assigned(a, ..., lambda a: a(np.arange(9).astype("m8[s]"))[7]),
    "records and nothing": lambda a: a(np.zeros(3, "i4,f8")) == None,       # noqa: E711  it is an operand
    "records and no number": lambda a: a(np.zeros(3, "i4,f8")) != 3,
    "a product in place, cast and shape are wrong": lambda a: operator.imatmul(
        a(np.ones((4, 4), bool)), a(np.ones(4, "i4"))),
    "a product in place with a number": lambda a: operator.imatmul(a(np.ones((4, 4), bool)), np.uint8(0)),
    "the greatest but NaN, from NaN on": lambda a: np.nanmax(a([1.0, np.nan, 2.0]), initial=np.nan),
    "the least but NaN, from NaN on": lambda a: np.nanmin(a(np.ones((200, 300))), axis=0, initial=np.nan),
    "one output": lambda a: np.modf(a([3.5, 4]), out=(a(np.zeros((2, 2))), None)),
    "three matrices": lambda a: mixed_products(a, 2), "five matrices": lambda a: mixed_products(a, 4),
    "an unequal chain": lambda a: np.linalg.multi_dot([a(np.full((m, n), 9, "u1")) for m, n in (
        (2, 7), (7, 3), (3, 9), (9, 1), (1, 5))]),
    "resized": resized, "resized, an alias held": lambda a: resized(a, lambda x: np.asarray(x)[1:]),
    "resized, an alias gone": lambda a: resized(a, lambda x: np.asarray(x).sum() > 99 or None),
    "resized, read-only": lambda a: resized(a, write=False),
    "unpickled, read-only": lambda a: unpickled(a, bytes), "unpickled": lambda a: unpickled(a, bytearray),
    "no imaginary part": lambda a: a(np.arange(24.0).reshape(2, 3, 4))[:, ::2].T.imag.strides,
    "no imaginary part, F": lambda a: a(np.arange(24.0).reshape(2, 3, 4)).T.imag.strides,
    "equal strings": lambda a: (lambda x: np.array_equal(x, x, equal_nan=True))(a(np.array(["a", "b"]))),
    "equal objects": lambda a: (lambda x: np.array_equal(x, x, equal_nan=True))(a(np.array([None, 1], object))),
    "a seed": lambda a: np.random.default_rng(a([5])[0]).random(3),
    "seeds": lambda a: np.random.default_rng(a([1, 2])).random(3),
    "a permutation of a number": lambda a: np.asarray(np.random.default_rng(0).permutation(a([5])[0])),
    "an old permutation of a number": lambda a: np.asarray(np.random.RandomState(0).permutation(a([5])[0])),
    "a permutation": lambda a: np.asarray(np.random.default_rng(0).permutation(a(np.arange(5.0)))),
    "permuted into it": lambda a: permuted(a, np.random.default_rng(0).permuted),
    "shuffled": lambda a: permuted(a, lambda x, axis, out: np.random.default_rng(0).shuffle(x, axis)),
    "chosen by probabilities": lambda a: np.random.default_rng(0).choice(2, 5, p=a(np.float32([0.1, 0.9]))),
    "chosen of a number": lambda a: np.random.default_rng(0).choice(a([5])[0], 5),
    "an order that is none": lambda a: np.add(a(np.ones(LARGE)), 1, order="Z"),
    "an order of another kind": lambda a: np.sin(a(np.ones(LARGE)), order=7),
    "a flag that is none": lambda a: np.sin(a(np.ones(LARGE)), subok=3),
    "sorted along no axis": lambda a: a([3, 1, 2]).sort(None),
    "parted along no axis": lambda a: a([3, 1, 2]).partition(1, axis=None),
    "one host array as both outputs": lambda a: one_memory(a, lambda x, host: (host.copy(),) * 2, 2),
    "an array and its alias": lambda a: one_memory(a, lambda x, host: (x, host), 2),
    "an alias and its array, reversed": lambda a: one_memory(a, lambda x, host: (x[::-1], host)),
    "an alias and its array": lambda a: one_memory(a, lambda x, host: (host, x)),
    "one output of two, and its order": lambda a: [np.modf(a(np.ones((2, 3)))[:, ::order].T, out=(
        None, a(np.zeros((3, 2)))))[0].strides for order in (1, -1)],
    "where nothing is reduced": lambda a: np.gcd.reduce(
        a([[4, 6], [6, 9]]), axis=0, initial=-5, where=a([[True, False], [True, False]])),
    "a reduction of truth values into integers": lambda a: np.gcd.reduce(a([True, False]), out=a(np.array(0))),
    "an accumulation of truth values into integers": lambda a: np.gcd.accumulate(a([True, False]), out=a([0, 0])),
    "a sum in halves": lambda a: np.sum(a([70000, -70000, 3]), dtype="f2", keepdims=True),
    "sums in halves": lambda a: a([[70000.0, -70000, 3], [1, 2, 3]]).sum(axis=1, dtype="f2"),
    "within complex bounds": lambda a: np.clip(a([1 + 0j, 2]), a([complex(0, np.nan), 1]), a([2, complex(
        np.inf, np.nan)])),
    "rounded into integers": lambda a: np.round(a([15, 26]), -1, out=a([0, 0])),
    "rounded into integers, one place": lambda a: a([15, 26]).round(1, out=a([0, 0])),
    "the truth of a large number": lambda a: np.logical_and(a([3, 0]), 2**64),
    "the truth of a number": lambda a: np.logical_xor(a(np.ones(LARGE)), 2**62),
}


if sys.version_info >= (3, 12):     # lazy arrays have buffers
    CALLS["resized, a buffer held"] = lambda a: resized(a, memoryview)


def outcome(call, asarray):
    try:
        found = call(asarray)
    except Exception as error:  # noqa: BLE001  any error is NumPy's to give
        return type(error)
    return found


def compare(wanted, found):
    if isinstance(wanted, tuple):
        assert len(wanted) == len(found)
        for one, other in zip(wanted, found):
            compare(one, other)
    elif isinstance(wanted, np.ndarray):
        assert (wanted.dtype, wanted.shape) == (found.dtype, found.shape)
        np.testing.assert_array_equal(np.asarray(found), wanted)
    else:
        assert wanted == found


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_the_call_gives_what_numpy_gives(call):
    compare(outcome(call, np.array), outcome(call, lazyarray.asarray))


@pytest.mark.parametrize("dtype", ["f4", "i8", None])
def test_full_of_nothing_is_nan_or_refused(dtype):
    def call(full):
        return full(LARGE, None, dtype=dtype)
    compare(outcome(call, np.full), outcome(call, lazyarray.numpy.full))


@pytest.mark.parametrize("make", [
    lambda xp, a, b, c: xp.array([a, b], dtype="u8"), lambda xp, a, b, c: xp.asarray([a, c], "i8"),
    lambda xp, a, b, c: xp.array([[a, b], [b, b]], dtype="u8"), lambda xp, a, b, c: xp.array([c, a], "f4"),
    lambda xp, a, b, c: xp.array([[a[0], c[0]], [b[1], a[1]]], dtype="i8"), lambda xp, a, b, c: xp.array([a, b]),
    lambda xp, a, b, c: np.asarray([a, b], dtype="u8", like=a)])
def test_each_array_of_a_list_is_cast_by_itself(make):
    """Not by way of the dtype that they have in common, which is double for the two kinds of whole numbers."""
    plain = np.array([2**63 - 1, 2**53 + 1]), np.array([1, 2], np.uint64), np.array([1.5, 2.5])
    compare(make(np, *plain), make(lazyarray.numpy, *map(lazyarray.asarray, plain)))


@pytest.mark.parametrize("call", [
    lambda a: np.clip(a(np.array([1, 2], "u1")), 1e300, 300), lambda a: a(np.array([1, 2], "i4")).clip(1e12, 2**31 - 1),
    lambda a: np.clip(a(np.array([1, 2], "i1")), np.array([300, 300]), 200), lambda a: a(LARGE).clip(-1, 2),
    lambda a: np.clip(a(np.arange(3)), np.float64("inf"), 2**63), lambda a: np.clip(a(np.arange(3)), -2**70, 2**70),
    lambda a: np.clip(a(np.arange(3, dtype="u1")), 0, 1), lambda a: np.clip(a(np.arange(3, dtype="u1")), 300, None)])
def test_a_bound_that_no_element_can_pass_is_left_out(call):
    compare(outcome(call, np.array), outcome(call, lazyarray.asarray))


@pytest.mark.parametrize("number", [np.inf, np.nan, 1e300, 2.5])
def test_numbers_of_a_list_that_no_integer_is(number):
    def call(asarray):
        xp = np if asarray is np.array else lazyarray.numpy
        return xp.array([asarray(np.array([number])).sum(), asarray(np.ones(3)).sum()], dtype="i4")
    wanted = outcome(call, np.array)
    assert (type(wanted) is np.ndarray) == (number == 2.5)
    compare(wanted, outcome(call, lazyarray.asarray))


def test_what_is_made_of_a_list_has_c_order():
    plain = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    x = lazyarray.asarray(plain)
    for make in (lazyarray.numpy.array, lazyarray.numpy.asarray, lambda items: np.asarray(items, like=x)):
        y = make([x, x])
        flat = y.ravel()
        y += 1
        assert y.flags.c_contiguous and np.array_equal(flat, np.array([plain, plain]).ravel() + 1)


@pytest.mark.parametrize("value", [[5.0], np.array([[5.0]])])
@pytest.mark.parametrize("lazily", [True, False])
def test_full_like_of_a_value_with_more_dimensions(value, lazily):
    def call(asarray):
        given = asarray(np.asarray(value)) if lazily else value
        return np.full_like(asarray(np.zeros((300, 300))), given, shape=())
    compare(outcome(call, np.array), outcome(call, lazyarray.asarray))


@pytest.mark.parametrize("defer_from", [0, None])
@pytest.mark.parametrize("sum_of", [
    lambda x, b: b + x, lambda x, b: x * 2 + b, lambda x, b: b[:, ::-1] - x, lambda x, b: np.hypot(b, x),
    lambda x, b: np.add(x, b, dtype="f4"), lambda x, b: b.T * x.T[:, :, None]])
def test_a_broadcast_host_operand_decides_about_the_order_as_it_was_given(sum_of, defer_from):
    plain = np.arange(60_000.0).reshape(200, 300)
    given = np.broadcast_to(plain, (2, 200, 300))
    with lazyarray.options(defer_from=defer_from):
        wanted, found = sum_of(plain, given), sum_of(lazyarray.asarray(plain), given)
    assert found.strides == wanted.strides
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-15 if found.itemsize == 8 else 1e-6)


@pytest.mark.parametrize("bins", [
    [5, np.array([0, 0.25, 1])], [np.array([0, 0.25, 1]), 5], (3, 4), [2, [0, 0.25, 1]]], ids=str)
@pytest.mark.parametrize("count", [3, 100_000])
def test_histograms_of_which_some_bins_are_numbers_and_some_edges(bins, count):
    plain = np.random.default_rng(0).random(count)
    x = lazyarray.asarray(plain)
    lazy = [lazyarray.asarray(b) if isinstance(b, np.ndarray) else b for b in bins]
    for given in (bins, lazy):
        np.testing.assert_array_equal(np.histogram2d(x, x, given)[0], np.histogram2d(plain, plain, bins)[0])
        np.testing.assert_array_equal(np.histogramdd((x, x), given)[0], np.histogramdd((plain, plain), bins)[0])


@pytest.mark.filterwarnings("ignore::lazyarray.errors.HostFallbackWarning")
@pytest.mark.parametrize("shape", [(2, 3), (300, 300)], ids=str)
def test_what_is_applied_along_an_axis_may_write(shape):
    def write(part):
        part[...] = 7
        return part.sum()

    plain, x = np.ones(shape), lazyarray.asarray(np.ones(shape))
    np.testing.assert_array_equal(np.apply_along_axis(write, 0, x), np.apply_along_axis(write, 0, plain))
    np.testing.assert_array_equal(x * 2, plain * 2)
    fixed = lazyarray.asarray(np.ones(shape))
    fixed.setflags(write=False)
    np.testing.assert_array_equal(np.apply_along_axis(np.sum, 0, fixed), np.ones(shape).sum(axis=0))
    with pytest.raises(ValueError, match="read-only"):
        np.apply_along_axis(write, 0, fixed)
    assert (fixed == 1).all()


def in_form(values, form, make):
    """The same values, made by `make` from memory in another order."""
    if form == "turned":
        return make(values.T.copy()).T
    if form == "backwards":
        return make(values[::-1].copy())[::-1]
    if form == "every other":
        return make(np.repeat(values, 2, axis=-1))[..., ::2]
    return make(values.copy())


@pytest.mark.parametrize("seed", range(60))
def test_of_values_for_one_element_the_last_in_memory_order_stays(seed):
    random = np.random.default_rng(seed)
    forms = ["plain", "turned", "backwards", "every other"]
    for _ in range(20):
        common, shape = tuple(random.integers(1, 4, random.integers(1, 4))), ((4,), (3, 4), (2, 3, 2))[seed % 3]
        axes = int(random.integers(1, len(shape) + 1))
        index = [(random.integers(-n, n, common), random.choice(forms)) for n in shape[:axes]]
        rest = shape[axes:]
        given = [common + rest, common[1:] + rest, rest][int(random.integers(3))]
        values, form = np.arange(1, 1 + np.prod(given, dtype=int)).reshape(given), random.choice(forms)
        form = form if given else "plain"
        plain, lazy = np.zeros(shape, int), lazyarray.asarray(np.zeros(shape, int))
        with lazyarray.options(small_on_host=False):
            for x, make in ((plain, np.asarray), (lazy, lazyarray.asarray)):
                x[tuple([in_form(i, how, make) for i, how in index])] = in_form(values, form, make)
            np.testing.assert_array_equal(lazy, plain)


@pytest.mark.parametrize("call", [
    lambda a: np.concatenate([a([1]), a([2.0])], casting="no"), lambda a: np.stack([a([1]), a([2.0])], casting="equiv"),
    lambda a: np.concatenate([a([1]), a([2])], casting="x"),
    lambda a: np.concatenate([a([1]), a([2.0])], casting="safe"),
    lambda a: np.einsum("i,i", a([1.0]), a([2]), casting="no"), lambda a: np.einsum("i,i- >", a([1.0]), a([2.0])),
    lambda a: np.einsum("i , i - >", a([1.0]), a([2.0])), lambda a: np.einsum(" i , i -> ", a([1.0]), a([2.0])),
    lambda a: np.stack([a([[1, 2]]), a([3, 4])]), lambda a: a([True, False]).any() <= 2**64,
    lambda a: 2**70 < a([True, False]).any(), lambda a: a([1, 2]).sum() <= 2**64, lambda a: a([1.0]).sum() == 2**64,
    lambda a: np.broadcast_to(a([1, 2]), (2, 2)).flatten("K"),
    lambda a: a([True]) < 2**70, lambda a: a([True]) == 2**63,
    lambda a: np.less(-2**70, a([False])), lambda a: a([1, 2]) < 2**70, lambda a: a([2.0]) < 2**70,
    lambda a: np.add.accumulate(a([1.0]), dtype=">f8"), lambda a: np.multiply.accumulate(a([1]), dtype=np.dtype(">i8")),
    lambda a: np.add.accumulate(a([1]), dtype="<f8"), lambda a: a([1.0, 2]).reshape(a([2.0, 1])[0], 1),
    lambda a: np.reshape(a([1.0, 2]), a([2.0, 1])[0]), lambda a: a([1, 2]).reshape(a([2, 1])[0], a([2, 1])[1]),
    lambda a: 1j / a([0.0])[0], lambda a: (1j // a([2.0])[0]), lambda a: divmod(1j, a([2.0])[0])])
def test_values_and_errors_that_strangers_missed(call):
    def told(asarray):
        try:
            return np.asarray(call(asarray)).tolist()
        except errors as error:
            return next(kind for kind in errors if isinstance(error, kind))

    errors = TypeError, ValueError, OverflowError, ZeroDivisionError
    with lazyarray.options(small_on_host=False):
        assert told(lambda v: lazyarray.asarray(np.array(v))) == told(np.array)


def test_astype_of_the_same_dtype_copies_what_is_in_no_order():
    x = lazyarray.asarray(np.arange(6).reshape(3, 2))[::2]
    copy = x.astype(int, order="A", copy=False)
    assert copy.strides == (16, 8) and not np.shares_memory(np.asarray(x), np.asarray(copy))
    assert x.astype(int, copy=False) is x


@pytest.mark.parametrize("call", [
    # An arange that wraps around has other values than Python's range.
    lambda np: np.arange(5.0)[np.arange(4, -4, -1, dtype="u4")],
    lambda np: np.arange(5.0)[np.arange(3, 0, -1, dtype="u1")],
    lambda np: np.arange(300.0)[np.arange(120, 140, dtype="i1") - 0],
    lambda np: np.take(np.ones(3), np.arange(2, -2, -1, dtype="u2")),
    # Each element is taken for a truth value before it is compared.
    lambda np: np.minimum.reduce(np.array([-1.0, 0.0]), dtype="?"),
    lambda np: np.maximum.reduce(np.array([-1.0, 0.0]), dtype=bool),
    lambda np: np.maximum.reduce(np.array([[-1, 0], [1, 2]]), axis=1, dtype=bool),
    lambda np: np.minimum.reduce(np.array([[-1, 0], [1, 2]]), axis=1, dtype=bool, initial=True),
    # An initial value that the dtype does not hold.
    lambda np: np.add.reduce(np.array([1, 2]), initial=np.array([np.inf, 1]).max()),
    lambda np: np.add.reduce(np.array([1, 2]), initial=np.array([3, 1]).max()),
    # No unsigned positions of 64 bits.
    lambda np: np.put(np.zeros(5), np.array([1], "u8"), 7), lambda np: np.zeros(5).put(np.array([1], "u8"), 7),
    # Scalars in lists are NumPy's, not Python's.
    lambda np: np.array((6, np.array([-9, 3]).sum()), dtype="u1"),
    lambda np: np.array([np.array([-9, 3]).min(), 6], dtype="u1"),
    lambda np: np.array([np.array([-100800, 3]).min()], dtype="i2"),
    lambda np: np.asarray([np.array([-9, 3]).sum()], "u1"),
    lambda np: np.array((np.array([np.nan, 2.0], "f2").max(), 3), dtype="u1"),
    lambda np: np.array((np.array([1j, 2]).min(), np.array(3)), dtype="i4"),
    lambda np: np.array([np.array([1.5, 2]).sum(), np.array([1.0]).sum()], dtype="f4"),
    lambda np: np.stack([np.array([1.5, 2]).sum(), np.array([1.0]).sum()]),
    lambda np: np.stack([np.array([1, 2]).sum(), np.array([1.0]).sum()]),
    # NumPy does not hand on the strides of an array in C order.
    lambda np: np.lib.stride_tricks.as_strided(
        np.lib.stride_tricks.as_strided(np.arange(20.0), (4, 1), (8, 16)), (2, 2)),
    lambda np: np.lib.stride_tricks.as_strided(np.arange(20.0).reshape(4, 5).T, (2, 2)),
    lambda np: np.lib.stride_tricks.as_strided(np.arange(20.0).reshape(4, 5), (20,)),
    # A count of places that no integer is.
    lambda np: np.bincount(np.array([np.inf], "f4")), lambda np: np.bincount(np.array([np.nan])),
    # More dimensions than arrays have.
    lambda np: np.add.outer(np.ones((1,) * 40), np.ones((1,) * 40)),
    lambda np: np.add.outer(np.arange(3), np.ones((2, 2)))])
@pytest.mark.parametrize("small", [True, False])
def test_what_fuzzers_of_indexes_and_lists_found(call, small):
    def told(namespace):
        try:
            found = call(namespace)
            return None if found is None else (np.asarray(found).dtype, np.asarray(found).tolist())
        except (TypeError, ValueError, OverflowError, IndexError) as error:
            return type(error)

    with lazyarray.options(small_on_host=small):
        assert told(xnp) == told(np)


@pytest.mark.parametrize("size", [24, 24_000])
@pytest.mark.parametrize("kind", ["f2", "f4", "f8"])
@pytest.mark.parametrize("small", [True, False])
def test_zeros_keep_their_order_where_an_array_is_sorted_in_place(size, kind, small):
    plain = np.resize(np.array([2, -0.0, -1, 0.0, 1, 0.0, -0.0, -0.0], kind), size)
    with lazyarray.options(small_on_host=small):
        for view in (lambda a: a, lambda a: a[::-1], lambda a: a.reshape(8, -1).T):
            x, expected = lazyarray.asarray(plain.copy()), plain.copy()
            view(x).sort(kind="stable")
            view(expected).sort(kind="stable")
            assert np.array_equal(np.signbit(x), np.signbit(expected))


@pytest.mark.parametrize("size", [2, LARGE])
def test_an_array_in_an_array_of_objects_is_that_array(size):
    held = np.empty(size, object)
    held[0] = inner = np.zeros(3)
    x = lazyarray.asarray(held)
    assert x[0] is inner and next(iter(x)) is inner and x[:1][0] is inner
    x[0][1] = 5
    assert inner.tolist() == [0, 5, 0]


@pytest.mark.parametrize("make", [lambda x: x[3], lambda x: x.sum(), lambda x: (x * 2)[3], lambda x: (x + 1j)[3].imag,
                                  lambda x: (x > 1)[2], lambda x: x.astype("f4")[0]])
@pytest.mark.skipif(lazyarray._native.recording is None, reason="the class of a scalar is found in C")
def test_nothing_of_python_runs_where_numpy_asks_for_the_class_of_a_scalar(make):
    """What a signal handler raises there is lost, or comes as SystemError."""
    scalar, frames = make(lazyarray.asarray(np.arange(LARGE, dtype=float)) + 0), []
    expected = type(make(np.arange(LARGE, dtype=float)))
    before = sys.gettrace()
    sys.settrace(lambda frame, event, arg: (    # the arrays of the simulated device are Python's
        frames.append(frame.f_code) if "simulated" not in frame.f_code.co_filename else None))
    try:
        found = scalar.__class__
    finally:
        sys.settrace(before)
    assert found is expected and not frames


@pytest.mark.parametrize("dtype", ["i2", "i4", "i8", "f8", "c8"])
@pytest.mark.parametrize("size", [5, 1488, 9001, 12_001])
@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[::-1]], ids=["forwards", "backwards"])
def test_an_iterator_sees_what_is_written_ahead_of_it(dtype, size, view, small_on_host):
    """Also where the array was an ndarray's until then, and the write moves it to the device."""
    small_on_host(95_000)
    compare(written_ahead(np.array, dtype, size, view), written_ahead(lazyarray.asarray, dtype, size, view))


@pytest.mark.parametrize("key", [5, -1, slice(1, 4), ..., [0, 2], np.array([0, 2]), np.arange(12) > 3], ids=str)
def test_an_iterator_of_all_elements_begins_anew_after_an_index(key):
    def indexes(x):
        f, found = x.flat, []
        for use in (lambda: f[key], lambda: f.__setitem__(key, 1), lambda: f == 3):
            next(f), next(f)
            use()
            found.append(f.index)
        return found

    assert indexes(lazyarray.asarray(np.arange(12.0))) == indexes(np.arange(12.0))


@pytest.mark.parametrize("small", [True, False])
def test_flags_stay_as_they_were_asked_for(small):
    def seen(x):
        old, found = x.flags, []
        x.flags.writeable = False
        found += old.writeable, x.flags.writeable, old.num & 0x400, old["W"]
        x.flags.writeable = old.writeable
        x[0] = 3
        old.writeable = False
        x.shape = (12,)
        return [*found, old.writeable, x.flags.writeable, old.f_contiguous, x.flags.f_contiguous, str(old)]

    with lazyarray.options(small_on_host=small):
        assert seen(lazyarray.asarray(np.zeros((3, 4)))) == seen(np.zeros((3, 4)))


@pytest.mark.parametrize("n", [400, 30_000])
@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("view", [lambda x: x[:, 1], lambda x: x[::2, 0], lambda x: x.T[1]],
                         ids=["column", "rows", "turned"])
def test_a_pointer_of_a_view_reaches_what_lies_between_its_elements(n, small, view):
    def reached(x):
        x += 1
        pointer = view(x).ctypes.data_as(ctypes.POINTER(ctypes.c_double))
        found = pointer[1], pointer[2]
        pointer[3] = -1
        return [*found, x[:3].tolist(), float(x.sum())]

    with lazyarray.options(small_on_host=small):
        plain = np.arange(4.0 * n).reshape(n, 4)
        assert reached(lazyarray.asarray(plain.copy())) == reached(plain)


@pytest.mark.parametrize("keywords", [{}, {"dtype": "u1"}, {"dtype": "i4", "offset": 8}, {"count": 2}, {"count": 10**6},
                                      {"offset": 3}, {"dtype": "f4", "count": 3, "offset": 4}], ids=str)
@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[2:], lambda x: x[::2], lambda x: x.reshape(2, -1).T,
                                  lambda x: x.astype("c16")], ids=["whole", "end", "stepped", "turned", "complex"])
def test_what_is_seen_of_a_buffer_that_is_a_lazy_array_is_a_view(keywords, view):
    def seen(np, x):
        found = np.frombuffer(view(x), **keywords)
        x[3], found[1] = 99, 7
        return found, x

    for size in (6, LARGE):
        given = np.arange(float(size))
        lazy = lazyarray.asarray(given.copy())
        wanted = outcome(lambda _: seen(np, given), None)
        compare(wanted, outcome(lambda _: seen(xnp, lazy), None))


@pytest.mark.parametrize("code", ["1j * s", "1j + s", "1j - s", "1j / s", "1j ** s", "s * 1j", "s - 1j",
                                  "(2 + 0j) ** s", "1j == s"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16", "i4"])
@pytest.mark.parametrize("known", [True, False])
def test_what_a_complex_number_and_a_scalar_give_is_as_weak_as_of_numpys(code, dtype, known):
    """NumPy's float64 is a Python float, of which Python makes a Python complex number: with float32 a complex64."""
    values = np.full(20_000, 2.5).astype(dtype)
    s = (lazyarray.asarray(values) * values.dtype.type(1))[7]
    if known:
        complex(s)
    wanted, found = eval(code, {"s": values[7]}), eval(code, {"s": s})
    assert (type(found) is complex) == (type(wanted) is complex)
    np.testing.assert_allclose(complex(found), complex(wanted), rtol=1e-3 if dtype == "f2" else 1e-6)
    for other in ("f2", "f4", "c8"):
        assert (np.ones(2, other) * found).dtype == (np.ones(2, other) * wanted).dtype


@pytest.mark.parametrize("small", [0, 95_000])
@pytest.mark.parametrize("dtype", [[("a", "f8"), ("b", "i4")], "2f8"])
@pytest.mark.parametrize("make", [xnp.array, xnp.asarray, xnp.asanyarray])
def test_a_tuple_of_scalars_is_one_element_of_a_structured_dtype(make, dtype, small, small_on_host):
    small_on_host(small)
    numbers = (lazyarray.asarray(np.full(20_000, 2.5)) * 1)[7:9]
    s, t, a, b = numbers[0], numbers[1] + 1, np.float64(2.5), np.float64(3.5)
    for given, plain in (((s, t), (a, b)), ([(s, t)], [(a, b)]), ([(s, t), (t, s)], [(a, b), (b, a)]),
                         ([(s, 1), (t, 2)], [(a, 1), (b, 2)])):
        found, wanted = np.asarray(make(given, dtype)), np.array(plain, dtype)
        assert found.dtype == wanted.dtype and found.shape == wanted.shape
        assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize("size", [100, 13_000])
@pytest.mark.parametrize("call", [
    lambda x, o: x.any(dtype=bool, out=o), lambda x, o: x.all(None, None, o), lambda x, o: x.any(dtype="f8", out=o),
    lambda x, o: x.argsort(out=o), lambda x, o: np.argsort(x, out=o), lambda x, o: x.any(out=o)])
def test_an_output_is_written_where_numpy_writes_it(size, call):
    told = []
    for asarray in (np.array, lazyarray.asarray):
        x, o = asarray(np.ones(size)), asarray(np.zeros((), bool))
        try:
            told.append((call(x, o) is o, bool(o)))
        except TypeError as error:
            told.append((TypeError, str(error).partition(" got")[0], bool(o)))
    assert told[0] == told[1]


@pytest.mark.parametrize("name", ["split", "array_split", "hsplit", "vsplit"])
@pytest.mark.parametrize("n", [6, 200])
def test_parts_of_a_host_array_at_lazy_positions_are_views_of_it(name, n):
    host = np.arange(float(n * n)).reshape(n, n)
    positions = lazyarray.block_until_ready(lazyarray.asarray(np.array([1, 4])) + 0)
    parts = getattr(np, name)(host, positions)
    wanted = getattr(np, name)(host, [1, 4])
    assert [type(part) for part in parts] == [np.ndarray] * 3
    for part, other in zip(parts, wanted):
        part += 1
        assert np.array_equal(part, other)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("kind", [lambda: np.ma.array(2.0, mask=False), lambda: np.ma.array([2.0, 4.0], mask=[0, 1]),
                                  lambda: np.matrix([[2.0, 4.0]])])
@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
                                operator.mod, operator.pow, operator.lt, operator.eq, divmod])
def test_a_subclass_stays_one_beside_a_scalar(op, kind, known):
    plain, other = np.float64(3.0), kind()
    if op is operator.pow and type(other) is np.matrix:
        pytest.skip("a matrix has powers of whole numbers alone")
    for turned in (False, True):
        scalar = (lazyarray.asarray(np.arange(20_000.0)) * 1)[3]
        if known:
            float(scalar)
        found = op(other, scalar) if turned else op(scalar, other)
        wanted = op(other, plain) if turned else op(plain, other)
        found, wanted = (x if isinstance(x, tuple) else (x,) for x in (found, wanted))
        for one, two in zip(found, wanted, strict=True):
            assert isinstance(one, type(two)) and np.array_equal(np.ma.filled(one, 7), np.ma.filled(two, 7))


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne])
def test_flat_iterators_are_compared(compare):
    plain = np.arange(6.0).reshape(2, 3)
    x = lazyarray.asarray(plain) + 0
    for other, lazily in ((2, 2), ([0, 1, 2, 5, 4, 3],) * 2, (plain[:, ::-1].flat, x[:, ::-1].flat)):
        assert np.array_equal(np.asarray(compare(x.flat, lazily)), compare(plain.flat, other))
    assert np.array_equal(np.asarray(compare(2, x.flat)), compare(2, plain.flat))


@pytest.mark.parametrize("n", [6, 150])
def test_multi_dot_takes_an_output_in_c_order_alone(n):
    x = lazyarray.asarray(np.ones((n, n)))
    for out in (np.zeros((2 * n, n))[::2], lazyarray.asarray(np.zeros((n, n))).T):
        with pytest.raises(ValueError, match="C-Array"):
            np.linalg.multi_dot([x] * 3, out=out)
    out = lazyarray.asarray(np.zeros((n, n)))
    assert np.linalg.multi_dot([x] * 3, out=out) is out
    assert np.array_equal(np.asarray(out), np.full((n, n), float(n * n)))


DAYS, HOURS = np.array(["1999", "2001"], "M8[ns]"), np.array([1, 24], "m8[h]")


@pytest.mark.parametrize("values, make", [
    (DAYS, lambda pd: pd.Timestamp("2001")), (DAYS, lambda pd: pd.NaT), (HOURS, lambda pd: pd.Timedelta("1D")),
    (HOURS, lambda pd: pd.Timestamp("2001")), (np.array([1, 2]), lambda pd: pd.Timedelta("1D")),
    (np.array([1.5, 2.0]), lambda pd: pd.Timedelta("1D"))])
@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
                                operator.eq, operator.ne, operator.lt, operator.ge])
def test_pandas_scalars_have_their_turn(op, values, make):
    """They are compiled, know ndarrays alone, and refuse all else: ``==`` was one False then."""
    other = make(pytest.importorskip("pandas"))
    for turned in (False, True):
        told = []
        for asarray in (np.array, lazyarray.asarray):
            x = asarray(values)
            try:
                found = op(other, x) if turned else op(x, other)
                told.append((np.shape(found), np.asarray(found).dtype, np.asarray(found).tolist()))
            except TypeError:
                told.append(TypeError)
        assert told[0] == told[1]


def test_pandas_scalars_among_objects():
    pd = pytest.importorskip("pandas")
    periods, intervals = np.empty(2, object), np.array([pd.Interval(0, 1), 1], object)
    periods[:] = list(pd.period_range("2000", periods=2))
    for plain, one in ((periods, periods[0]), (intervals, intervals[0])):
        x = lazyarray.asarray(plain)
        assert np.asarray(x == one).tolist() == [True, False] and np.asarray(one != x).tolist() == [False, True]
        assert one in x


def test_a_class_that_refuses_lazy_arrays_and_ndarrays_is_asked_no_more():
    class Stubborn:
        __array_priority__ = 50
        asked = 0

        def __radd__(self, other):
            Stubborn.asked += 1
            return NotImplemented

        __eq__ = __radd__

    x = lazyarray.asarray(np.arange(LARGE))
    with pytest.raises(TypeError):
        x + Stubborn()
    assert Stubborn.asked <= 3
    assert (x == Stubborn()) is False       # as of an ndarray
    assert (np.arange(LARGE) == Stubborn()) is False


def test_libraries_that_do_not_import_numpy_find_a_class_of_its():
    """As SymPy does for ``Integer(5) * x``, which is the array's turn then."""
    x = lazyarray.asarray(np.arange(LARGE)) + 1
    assert any(kind.__module__ == "numpy" for kind in type(x).__mro__)
    assert type(x).__module__ == "lazyarray"
