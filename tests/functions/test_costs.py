"""What a call costs beside the device's own function: waits for the device, and kernels, each of which is launched."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray
from lazyarray import devices
from lazyarray.functions import index_bounds, views
from lazyarray.functions.adapters import common

RNG = np.random.default_rng(3)
SQUARE, TALL, LINE = RNG.random((60, 60)) + 60 * np.eye(60), RNG.random((60, 4)), RNG.random(60)
POSITIVE = SQUARE @ SQUARE.T
STACK = RNG.random((5, 4, 4)) + 4 * np.eye(4)
INDEX, MANY = RNG.integers(-60, 60, (60, 3)), RNG.integers(-60, 60, 5000)


def on_device(values):
    """Values that the device has computed: nothing is known of them."""
    values = np.array(values)
    if values.dtype.kind in "iu":       # of integers that others make, something may be known
        return lazyarray.asarray(values.astype(float)).astype(values.dtype)
    return lazyarray.asarray(values).copy()


def waits(call):
    with lazyarray.trace() as t:
        result = call()
    return len(t.synchronisations) + len(t.materialisations), result


ONE_WAIT = {
    "solve": lambda a: np.linalg.solve(a(SQUARE), a(LINE)),
    "solve a stack": lambda a: np.linalg.solve(a(STACK), a(STACK)),
    "solve a stack for a vector": lambda a: np.linalg.solve(a(STACK), a(LINE[:4])),
    "inv": lambda a: np.linalg.inv(a(SQUARE)), "cholesky": lambda a: np.linalg.cholesky(a(POSITIVE)),
    "eigvalsh": lambda a: np.linalg.eigvalsh(a(POSITIVE)), "cond": lambda a: np.linalg.cond(a(SQUARE)),
    "lstsq": lambda a: np.linalg.lstsq(a(TALL), a(LINE), None)[0],
    "residuals": lambda a: np.linalg.lstsq(a(TALL), a(TALL), None)[1],
    "lstsq of many": lambda a: np.linalg.lstsq(a(TALL.T), a(STACK[0]), None)[0],
    "take": lambda a: np.take(a(SQUARE), a(INDEX), 1), "take of many": lambda a: np.take(a(LINE), a(MANY)),
    "take_along_axis": lambda a: np.take_along_axis(a(SQUARE), a(INDEX), 1),
    "allclose": lambda a: np.allclose(a(SQUARE), a(POSITIVE)),
    "array_equal": lambda a: np.array_equal(a(LINE), a(LINE)),
    "digitize": lambda a: np.digitize(a(LINE), a(np.arange(0, 1, 0.1))),
    "extract": lambda a: np.extract(a(LINE) > 0.5, a(LINE)),
    "choose": lambda a: np.choose(a(np.arange(60) % 2), [a(LINE), a(-LINE)]),
}


@pytest.mark.together
@pytest.mark.parametrize("call", ONE_WAIT.values(), ids=list(ONE_WAIT))
def test_one_wait_is_enough(call):
    found, result = waits(lambda: call(on_device))
    assert found == 1
    np.testing.assert_allclose(np.asarray(result), call(np.array), rtol=1e-9, atol=1e-12)


NO_WAIT = {
    "take by a host's index": lambda x: np.take(x, np.arange(-3, 3)),
    "take_along_axis by a host's index": lambda x: np.take_along_axis(x, np.arange(-3, 3), 0),
    "take by argsort": lambda x: np.take(x, np.argsort(x)), "x.take": lambda x: x.take(np.flatnonzero(x > 0.5)),
    "take_along_axis by argsort": lambda x: np.take_along_axis(x.reshape(6, 10), np.argsort(x.reshape(6, 10), 0), 0),
    "putmask": lambda x: np.putmask(x, x > 0.5, -x),
    "place": lambda x: np.place(x, x > 0.5, 0.0), "fill_diagonal": lambda x: np.fill_diagonal(x.reshape(6, 10), 2.0),
    "put": lambda x: np.put(x, np.argsort(x)[:5], [1.0, 2.0]),
}


@pytest.mark.together
@pytest.mark.parametrize("call", NO_WAIT.values(), ids=list(NO_WAIT))
def test_what_is_known_to_be_right_is_not_waited_for(call):
    plain, x = LINE.copy(), on_device(LINE)
    found, result = waits(lambda: call(x))
    assert found == 0
    expected = call(plain)
    np.testing.assert_array_equal(np.asarray(x), plain)
    if expected is not None:
        np.testing.assert_array_equal(np.asarray(result), expected)


@pytest.mark.together
def test_an_index_is_checked_once_for_all_functions_that_take_it():
    x, index = on_device(LINE), on_device(INDEX[:, 0])
    found, _ = waits(lambda: (np.take(x, index), x.take(index), x[index], np.take_along_axis(x, index, 0),
                              np.put(x, index, 1.0)))
    assert found == 1
    with pytest.raises(IndexError):
        np.take(on_device(LINE[:9]), index)


@pytest.mark.parametrize("where", [on_device, lazyarray.asarray, np.array, list],
                         ids=["device", "both", "host", "list"])
@pytest.mark.parametrize("index", [[0, 60], [-61, 0], [2**40, 0]], ids=str)
@pytest.mark.parametrize("repeated", [1, 5000])
def test_an_index_that_is_out_of_range_is_found(index, repeated, where):
    plain, x, index = LINE.copy(), on_device(LINE), np.repeat(np.array(index), repeated)
    for call in (np.take, lambda a, i: a.take(i), lambda a, i: np.put(a, i, 1.0),
                 lambda a, i: np.take_along_axis(a, i if hasattr(i, "dtype") else np.array(i), 0)):
        with pytest.raises(IndexError):
            call(plain, index)
        with pytest.raises(IndexError):
            call(x, where(index))
    np.testing.assert_array_equal(np.asarray(x), plain)     # what comes before is put


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
@pytest.mark.parametrize("dtype", ["i1", "u2", "i8", "u8", "?"])
def test_take(axis, mode, dtype):
    x, index = RNG.random((4, 5)).T.copy().T, RNG.integers(0, 4, (2, 3)).astype(dtype)
    expected = np.take(x, index, axis, mode=mode) if dtype != "u8" else np.take(x, index.astype(int), axis, mode=mode)
    result = np.take(lazyarray.asarray(x), lazyarray.asarray(index), axis, mode=mode)
    assert result.strides == expected.strides
    np.testing.assert_array_equal(np.asarray(result), expected)


@pytest.mark.filterwarnings("ignore:Implicit casting")
def test_take_into_an_output():
    x, index = on_device(LINE), on_device(np.array([3, -1]))
    for out in (np.zeros(2), lazyarray.asarray(np.zeros(2))):
        assert np.take(x, index, out=out) is out and x.take(index, 0, out) is out
        np.testing.assert_array_equal(np.asarray(out), LINE[[3, -1]])
    other, given = np.zeros(2, int), lazyarray.asarray(np.zeros(2, int))
    np.take(LINE, [3, -1], out=other), np.take(x, index, out=given)
    np.testing.assert_array_equal(np.asarray(given), other)
    assert given.dtype == int
    with pytest.raises(ValueError):
        np.take(x, index, out=lazyarray.asarray(np.zeros(3)))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("length", [1, 3, 7])
@pytest.mark.parametrize("known", [True, False])
def test_take_along_an_axis(axis, length, known):
    x = RNG.random((3, 4, 5))
    shape = [*x.shape]
    shape[axis] = length
    index = RNG.integers(0 if known else -x.shape[axis], x.shape[axis], shape)
    expected = np.take_along_axis(x, index, axis)
    for a in (on_device(x), on_device(x.transpose(2, 0, 1)).transpose(1, 2, 0)):
        np.testing.assert_array_equal(np.asarray(np.take_along_axis(a, on_device(index), axis)), expected)
    broadcast = index[tuple([slice(None) if i == axis % 3 else slice(1) for i in range(3)])]
    np.testing.assert_array_equal(np.asarray(np.take_along_axis(on_device(x), on_device(broadcast), axis)),
                                  np.take_along_axis(x, broadcast, axis))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n", [3, 60])
def test_what_is_not_finite_is_found_in_arrays_of_any_size(n, bad):
    device = devices.current()
    values = np.full((n, n), 1e308)
    array = device.xp.asarray(values)
    assert common.are_finite(array, "check")       # although the sum is not
    values[1, 2] = bad
    assert not common.are_finite(device.xp.asarray(values), "check")


def test_indexes_get_numpys_type_without_a_copy():
    xp = devices.current().xp
    for shape in ((), (4,), (2, 3)):
        given = xp.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape).astype("q"))
        found = common.intp_result(given)
        assert found.dtype.char == common.intp.char and found.shape == shape
        np.testing.assert_array_equal(found.get(), given.get())
    same = xp.arange(3)
    assert common.intp_result(same) is same


@pytest.mark.parametrize("dtype", ["?", "i2", "f2", "f8", "c8"])
@pytest.mark.parametrize("make", [np.zeros_like, np.ones_like, np.empty_like])
def test_new_arrays_like_others(make, dtype):
    for plain in (np.zeros((3, 4), dtype), np.zeros((3, 4), dtype, "F"), np.zeros((2, 3, 4), dtype).transpose(2, 0, 1),
                  np.zeros((), dtype), np.zeros((0, 3), dtype)):
        result, expected = make(lazyarray.asarray(plain)), make(plain)
        assert result.strides == expected.strides and result.dtype == expected.dtype
        if make is not np.empty_like:
            np.testing.assert_array_equal(np.asarray(result), expected)


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("shape", [(4, 4), (7, 3), (3, 7), (3, 3, 3)])
@pytest.mark.parametrize("value", [2.5, [1.0, 2.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]])
def test_diagonals_are_filled(shape, value, wrap):
    for turned in (False, True):
        plain = np.zeros(shape[::-1] if turned else shape)
        x = on_device(plain)
        a, b = (plain.T, x.T) if turned else (plain, x)
        np.fill_diagonal(a, value, wrap), np.fill_diagonal(b, value, wrap)
        np.testing.assert_array_equal(np.asarray(x), plain)


def test_views_are_those_of_the_general_way(monkeypatch):
    x = on_device(RNG.random((4, 6)))
    calls = [lambda: np.flip(x), lambda: np.flip(x, 0), lambda: np.flip(x, (0, 1)), lambda: np.moveaxis(x, 0, 1),
             lambda: np.broadcast_to(x, (2, 4, 6)), lambda: np.array_split(x, 3, axis=1), lambda: np.split(x, (1, 3)),
             lambda: np.squeeze(x), lambda: np.expand_dims(x, (0, 2)), lambda: np.rot90(x, axes=(0, 1))]

    def parts(found):
        return [(p.strides, p.shape, p.flags.writeable, p.base is x or p is x, np.asarray(p).tolist())
                for p in (found if isinstance(found, list) else [found])]

    quick = [parts(call()) for call in calls]
    monkeypatch.setattr(views, "_are_plain", lambda given: False)
    assert quick == [parts(call()) for call in calls]


def test_the_range_of_results_is_asked_of_their_arguments_alone():
    a = np.ones((2, 3))
    for x in (a, on_device(a), [[1, 2, 3], [4, 5, 6]]):
        assert index_bounds.GREATEST[np.argsort](x) == 2 and index_bounds.GREATEST[np.argsort](x, None) == 5
        assert index_bounds.GREATEST[np.nonzero](x) == (1, 2) and index_bounds.GREATEST[np.flatnonzero](x) == 5
        assert index_bounds.GREATEST[np.searchsorted](x) == 6 and index_bounds.GREATEST[np.digitize](0, x) == 6


@pytest.mark.parametrize("values", [lambda x: x[2:4], lambda x: x[2:3], lambda x: x[::-1], lambda x: x])
@pytest.mark.parametrize("turned", [False, True])
def test_what_is_put_may_lie_in_the_array(values, turned):
    index, mask = np.array([4, 2, 0, -1, 2]), np.array([[1, 0], [1, 1], [0, 1]])
    for put, where in ((np.put, index), (np.place, mask), (np.putmask, mask)):
        plain = np.arange(6).reshape(2, 3) if turned else np.arange(6).reshape(3, 2)
        x = on_device(plain)
        target, lazy = (plain.T, x.T) if turned else (plain, x)
        put(target, where, values(target.ravel()).copy()), put(lazy, on_device(where), values(lazy.ravel()))
        np.testing.assert_array_equal(np.asarray(x), plain)
    plain, x = np.array([2, 0, 1]), on_device(np.array([2, 0, 1]))
    np.put(plain, plain.copy(), [5, 6, 7]), np.put(x, x, [5, 6, 7])
    np.testing.assert_array_equal(np.asarray(x), plain)


@pytest.mark.parametrize("rcond", [-1, 0, None, 1e-20, 0.9])
def test_the_rank_of_least_squares_is_numpys(rcond):
    """Of a matrix whose least singular value is 1.6e-16 of the greatest: between LAPACK's precision and NumPy's eps."""
    matrix = np.eye(6, 4) * [4, 2, 1, 4 * 1.6e-16]      # it is found without rounding, on any processor
    ranks = [int(np.linalg.lstsq(make(matrix), make(np.eye(6)[0]), rcond)[2]) for make in (np.array, lazyarray.asarray)]
    assert ranks[0] == ranks[1]
