"""A value that is put into an array of another dtype becomes NumPy's value, error or warning, however it is put there.

NumPy's rules differ by the dtype, by the kind of value (a Python number, a NumPy scalar, an array without dimensions,
text) and by the way of writing, so the table is of all of them together, and NumPy itself is the answer.
"""
from __future__ import annotations

import array
import collections
import operator
import warnings

import numpy as np
import pytest

import lazyarray


def put_into(x, index, value):
    x[index] = value
    return x


def changed(change):
    def way(make, value):
        x = make((2,))
        change(x, value)
        return x
    return way


FIRST = np.array([True, False])
WAYS = {
    "an element": lambda make, v: put_into(make((2,)), 0, v),
    "one of rows": lambda make, v: put_into(make((2, 2)), (0, 1), v),
    "a slice": lambda make, v: put_into(make((2,)), slice(0, 1), v),
    "an ellipsis": lambda make, v: put_into(make(()), ..., v),
    "an empty tuple": lambda make, v: put_into(make(()), (), v),
    "nothing": lambda make, v: put_into(make((2,)), slice(0, 0), v),
    "an index without dimensions": lambda make, v: put_into(make((2,)), np.array(0), v),
    "a list": lambda make, v: put_into(make((2,)), [0], v),
    "lists": lambda make, v: put_into(make((2, 2)), ([0], [0]), v),
    "a row by a list": lambda make, v: put_into(make((2, 2)), [0], v),
    "a column by a list": lambda make, v: put_into(make((2, 2)), (slice(None), [0]), v),
    "a mask": lambda make, v: put_into(make((2,)), FIRST, v),
    "a row by a mask": lambda make, v: put_into(make((2, 2)), FIRST, v),
    "True": lambda make, v: put_into(make((2,)), True, v),
    "within a list": lambda make, v: put_into(make((2,)), slice(0, 2), [v, 1]),
    "within a list, by a list": lambda make, v: put_into(make((2,)), [0, 1], [v, 1]),
    "fill": changed(lambda x, v: x.fill(v)),
    "put": changed(lambda x, v: np.put(x, [0], v)),
    "place": changed(lambda x, v: np.place(x, FIRST, v)),
    "putmask": changed(lambda x, v: np.putmask(x, FIRST, v)),
    "copyto": changed(np.copyto),
    "copyto, unsafe": changed(lambda x, v: np.copyto(x, v, casting="unsafe")),
    "put_along_axis": changed(lambda x, v: np.put_along_axis(x, np.array([0]), v, 0)),
    "fill_diagonal": lambda make, v: (lambda x: (np.fill_diagonal(x, v), x)[1])(make((2, 2))),
    "an element of flat": changed(lambda x, v: x.flat.__setitem__(-1, v)),
    "a slice of flat": changed(lambda x, v: x.flat.__setitem__(slice(None), v)),
    "flat": changed(lambda x, v: setattr(x, "flat", v)),
    "full_like": lambda make, v: np.full_like(make((2,)), v),
    "insert": lambda make, v: np.insert(make((2,)), 0, v),
    "append": lambda make, v: np.append(make((2,)), v),
}

nan, inf = float("nan"), float("inf")
VALUES = {
    "nan": nan, "inf": inf, "200": 200, "-1": -1, "300.5": 300.5, "2**70": 2 ** 70, "1j": 1j, "text": "7", "None": None,
    "float64 nan": np.float64(nan), "float32 inf": np.float32(inf), "uint8 200": np.uint8(200),
    "int64 200": np.int64(200), "int64 -1": np.int64(-1), "float64 300.5": np.float64(300.5),
    "float64 1e300": np.float64(1e300), "complex128": np.complex128(1 + 2j), "bool": np.True_,
}


def alone(value):
    return lazyarray.asarray(np.array([value, value]))[0]


def known(value):
    s = alone(value)
    s.item()
    return s


def pending(value):
    x = lazyarray.asarray(np.array([value, value]))
    return np.max(x | x if value.dtype.kind == "b" else x + x.dtype.type(0))


#: How a value is given -> what NumPy gets for it, and what lazyarray gets; all but the first are of NumPy's scalars.
KINDS = {
    "as it is": (lambda v: v, lambda v: v),
    "on the device": (lambda v: v, alone),
    "fetched": (lambda v: v, known),
    "pending": (lambda v: v, pending),
    "without dimensions": (np.array, lambda v: lazyarray.asarray(np.array(v))),
    "of one": (lambda v: np.array([v]), lambda v: lazyarray.asarray(np.array([v]))),
}


def outcome(way, make, value):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            result = way(make, value)
            result = result.dtype, repr(result.tolist())
        except Exception as error:  # noqa: BLE001  whatever it is, its type is compared
            result = type(error)
    return result, {w.category for w in said} - {lazyarray.HostFallbackWarning}


@pytest.mark.parametrize("dtype", ["i1", "u1", "i8", "f4", "c8", "?"])
@pytest.mark.parametrize("way", WAYS)
def test_a_value_is_converted_or_refused_as_numpy_does(way, dtype):
    for text, value in VALUES.items():
        for kind, (of_numpy, of_ours) in KINDS.items():
            if not isinstance(value, np.generic) and kind != "as it is":
                continue
            expected = outcome(WAYS[way], lambda shape: np.zeros(shape, dtype), of_numpy(value))
            got = outcome(WAYS[way], lambda shape: lazyarray.asarray(np.zeros(shape, dtype)), of_ours(value))
            if RuntimeWarning in expected[1] and (way == "nothing" or lazyarray.device().name != "simulated"):
                continue        # the device casts what NumPy warns of in its own way, and warns of nothing
            assert got == expected, f"{text}, {kind}"


def test_a_scalar_that_always_fits_stays_on_the_device():
    plain, plain_counts = np.arange(4.0), np.arange(4)
    x, counts = lazyarray.asarray(plain), lazyarray.asarray(plain_counts)

    def write(x, counts):
        x[0] = x.sum()
        x[1:3] = counts.max()
        counts[0] = counts.argmax()
        x[counts > 2] = x.min() + 1
        (x > 1)[0] = x.max()

    write(plain, plain_counts)
    with lazyarray.no_transfers():
        write(x, counts)
    assert x.tolist() == plain.tolist()
    assert counts.tolist() == plain_counts.tolist()


PARTLY = {
    "a list": lambda x: put_into(x, slice(None), [1.0, 2.0, nan, 4.0, 5.0]),
    "a list, by a list": lambda x: put_into(x, [0, 1, 2, 3, 4], [1.0, 2.0, nan, 4.0, 5.0]),
    "text in a list": lambda x: put_into(x, slice(2), [1, "a"]),
    "objects": lambda x: put_into(x, slice(None), np.array([1, 2, None, 4, 5], object)),
    "put": lambda x: np.put(x, [0, 10 ** 6], 5),
    "the method put": lambda x: x.put([0, 10 ** 6], [5, 6]),
    "put, of a list": lambda x: np.put(x, [0, 1], [1, nan]),
    "flat": lambda x: x.flat.__setitem__([0, 10 ** 6], 3),
    "flat, by a mask": lambda x: x.flat.__setitem__(np.ones(7, bool), 3),
    "place": lambda x: np.place(x, x < 10, [1, nan]),
    "an index out of range": lambda x: put_into(x, [0, 9], 1),
    "another shape": lambda x: put_into(x, slice(None), [1, 2]),
}


@pytest.mark.parametrize("state", ["device", "aliased", "pending"])
@pytest.mark.parametrize("way", PARTLY)
def test_a_write_that_fails_leaves_what_numpy_leaves(way, state):
    plain = np.zeros(5, "u2")
    x = lazyarray.asarray(plain)
    alias = np.asarray(x) if state == "aliased" else None
    x = x + np.uint16(0) if state == "pending" else x
    with pytest.raises(Exception) as expected:
        PARTLY[way](plain)
    before = x * 2
    with pytest.raises(expected.type):
        PARTLY[way](x)
    assert x.tolist() == plain.tolist()
    assert before.tolist() == [0] * 5
    if alias is not None:
        assert alias.tolist() == plain.tolist()


def test_what_goes_to_one_element_last_stays_also_beside_masks_and_numbers():
    plain = np.zeros((2, 3, 2))
    x = lazyarray.asarray(plain)
    for a in (plain, x):
        a[1, [True, False, False], [1, 1]] = np.array([5.0, 6.0])
        a[[False, True], 1, [0, 0, 1]] = [7.0, 8.0, 9.0]
    assert x.tolist() == plain.tolist()
    for a in (plain, x):
        with pytest.raises(ValueError, match="shape mismatch|broadcast"):
            a[0, None, 1, [[0, 0, 0], [0, 0, 0]]] = np.arange(4.0)
    assert x.tolist() == plain.tolist()


def error_of(call):
    """The class of the error that a call ends in, or None."""
    try:
        call()
    except (TypeError, ValueError, OverflowError) as error:
        return type(error)
    return None


@pytest.mark.parametrize("dtype", ["f8", "i4", "u1", "?"])
@pytest.mark.parametrize("value", [
    range(3), collections.deque([1, 2, 3]), memoryview(b"abc"), bytearray(b"abc"), array.array("d", [1, 2, 3]), [1, 2],
    [[1], [1, 2]], np.array(3), np.array([3]), np.array([3, 4]), range(1), {1: 2}, None, object()],
    ids=lambda value: type(value).__name__)
def test_what_an_array_is_filled_with_is_one_value(value, dtype):
    plain = np.zeros((1, 3), dtype)
    x = lazyarray.asarray(plain.copy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert error_of(lambda: x.fill(value)) == error_of(lambda: plain.fill(value))
    np.testing.assert_array_equal(x, plain)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30, 3.5])
@pytest.mark.parametrize("fetched", [True, False])
def test_a_lazy_scalar_that_becomes_the_real_part_of_integers(value, fetched):
    plain, one = np.zeros(10, "i8"), np.float64(value)
    x, lazy = lazyarray.asarray(plain.copy()), (lazyarray.asarray(np.full(1 << 17, value)) * 1).max()
    if fetched:
        float(lazy)
    with np.errstate(all="ignore"):
        assert error_of(lambda: setattr(x, "real", lazy)) == error_of(lambda: setattr(plain, "real", one))
    np.testing.assert_array_equal(x, plain)


class Length(np.ndarray):
    """Has a unit, and is no number."""

    def __float__(self):
        raise TypeError("a length is no number")


@pytest.mark.parametrize("write", [
    lambda x, value: operator.setitem(x, 0, value), lambda x, value: operator.setitem(x, -1, value), np.ndarray.fill,
    lambda x, value: x.itemset(0, value) if hasattr(x, "itemset") else operator.setitem(x, 0, value)])
def test_a_value_with_a_unit_is_asked_whether_it_is_a_number(write):
    value = np.array(5.0).view(Length)
    for x in (np.zeros(3), lazyarray.asarray(np.zeros(3)), lazyarray.asarray(np.zeros(3)) + 0):
        with pytest.raises(TypeError):
            (type(x).fill if write is np.ndarray.fill else write)(x, value)
        assert not np.asarray(x).any()


NUMBERS = [0, 1, -1, 300, 2**40, -2**70, 2.5, -0.0, 1e300, float("nan"), float("inf"), True, 1j, np.float32(1.5),
           np.int8(-3), np.float64(7), np.uint64(2**63), np.bool_(True)]


def _outcome(work):
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return work()
    except (TypeError, ValueError, OverflowError) as error:
        return type(error)


@pytest.mark.parametrize("view", [slice(None), slice(None, None, -2), (slice(1, 3), slice(None)), "T"], ids=str)
@pytest.mark.parametrize("kind", "?bBhHiIlLefdFD")
def test_a_number_where_a_mask_is_true(kind, view):
    plain = (np.arange(24).reshape(4, 6) * 5 - 7).astype(kind)

    def put(x, number):
        part = x.T if view == "T" else x[view]
        part[part.real * 1 > 20] = number
        return x

    for number in NUMBERS:
        lazy = lazyarray.asarray(plain.copy())
        alias = np.asarray(lazy) if number == 1 else None
        wanted, found = _outcome(lambda: put(plain.copy(), number)), _outcome(lambda: put(lazy, number))
        if isinstance(wanted, type):
            assert found is wanted, number
            continue
        np.testing.assert_array_equal(np.asarray(found), wanted, err_msg=repr(number))
        assert np.array_equal(np.signbit(np.asarray(found).real), np.signbit(wanted.real)), number
        assert alias is None or np.array_equal(alias, wanted)


@pytest.mark.together
@pytest.mark.one_device("what waits is written in place")
def test_such_an_assignment_is_recorded_with_what_comes_before_and_after():
    with lazyarray.options(small_on_host=False):
        x = lazyarray.asarray(np.arange(-500.0, 500)) * 2
        mask = x < -3
        x[mask] = 0
        x[x > 900] = 900
        y = x + 1
        assert x._self_storage.pending is not None and y._self_storage.pending is not None
        plain = np.clip(np.where(np.arange(-500.0, 500) * 2 < -3, 0, np.arange(-500.0, 500) * 2), 0 - 3, 900)
        assert np.array_equal(y, plain + 1) and np.array_equal(x, plain)
        assert np.array_equal(mask, np.arange(-500, 500) < -1.5)
        x.setflags(write=False)
        with pytest.raises(ValueError, match="read-only"):
            x[x > 3] = 1


NUMBERS_OF = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]


def assigned_in_turn(make, source, target, less):
    """Whole arrays, rows, what is broadcast, turned and stepped over; of what waits, also where somebody holds it.

    With row 5 as `less`, numbers below zero are assigned, too; with row 6 none.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")     # of lost imaginary parts
        v, o, f = make(np.arange(280).reshape(7, 40) % 101, source), make(np.zeros((7, 40)), target), make(
            np.ones((40, 7)), target)
        twice = v | v if source == "?" else v + v
        o[3] = v[3]
        o[2:5] = twice[0]
        o[:, 3] = twice[:, 1]
        f[...] = twice.T
        seen = o.copy(), f.copy()
        o[...] = v & v if source == "?" else v * v
        f.T[...] = twice
        o[1:4, ::2] = v[:3, ::2]
        held = v[0] | v[1] if source == "?" else v[0] + v[1]
        o[0] = held
        o[1] = held
        o[2] = held | v[less] if source == "?" else held - v[less]
        o[-1], o[5, 3] = v.max(), v[1, 1]
    return (*seen, o, f, twice, held)


@pytest.mark.parametrize("source", NUMBERS_OF)
@pytest.mark.parametrize("target", NUMBERS_OF)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_arrays_are_cast_as_numpy_casts_them(source, target):
    undefined = lazyarray.device().name == "cuda" and source[0] in "fc" and target[0] == "u"    # see limits.rst
    less = 6 if undefined else 5
    wanted = assigned_in_turn(lambda a, dtype: a.astype(dtype), source, target, less)
    found = assigned_in_turn(lambda a, dtype: lazyarray.asarray(a).astype(dtype), source, target, less)
    for one, other in zip(wanted, found):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(np.asarray(other), one)


@pytest.mark.one_device("with several, all is looked at")
@pytest.mark.skipif(lazyarray._native.recording is None, reason="done in C")
@pytest.mark.parametrize("source, target", [("f8", "f4"), ("i8", "u1"), ("f8", "i4"), ("i8", "?"), ("c16", "c8")])
@pytest.mark.parametrize("waits", [True, False])
def test_a_cast_takes_no_longer(source, target, waits, monkeypatch):
    from lazyarray.dispatch import basic_indexing

    x = lazyarray.block_until_ready(lazyarray.asarray(np.zeros((3, 5000), target)))
    v = lazyarray.block_until_ready(lazyarray.asarray(np.arange(5000)).astype(source))
    for _ in range(2):
        x[1] = v + v if waits else v    # the first time its kernel may be compiled yet
        if hasattr(lazyarray.device(), "wait_for_kernels"):
            lazyarray.device().wait_for_kernels()
    monkeypatch.setattr(basic_indexing, "_setitem", None)
    for _ in range(3):
        x[1] = v + v if waits else v
    monkeypatch.undo()
    assert np.array_equal(x[1], (np.arange(5000) * (1 + waits)).astype(source).astype(target)) and not x[0].any()


@pytest.mark.parametrize("dtype, values, inside", [
    ("i2", [70_000, 3], True), ("u1", [-1, 3], True), ("u1", [300.0, 2.0], True), ("i2", [40_000, 3], False),
    ("i4", [2**32 + 3, 1], True), ("i4", [2**31, 1], False), ("u4", [-1, 0], False), ("i2", [2.0, 3.0], True)])
def test_integers_that_are_cast_reach_as_far_as_what_they_become(dtype, values, inside):
    """What an index may be is known of it: a number that does not fit becomes another one."""
    table = lazyarray.asarray(np.arange(5000.0)) * 1
    index = lazyarray.asarray(np.zeros(2000, dtype)) + np.zeros(1, dtype)
    assert np.array_equal(table[index], np.zeros(2000))     # from here on it is known
    numbers = np.resize(values, 2000)
    with np.errstate(invalid="ignore"):
        for value in (lazyarray.asarray(numbers) * 1, lazyarray.asarray(numbers)):
            index[...] = value
            index[7:] = value[7:] + 0
            plain = numbers.astype(dtype)
            if inside:
                assert np.array_equal(table[index], np.arange(5000.0)[plain])
            else:
                with pytest.raises(IndexError):
                    np.asarray(table[index])
