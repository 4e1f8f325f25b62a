"""Rules that other packages' own test-suites taught: a lazy array in place of an ndarray changes nothing."""
from __future__ import annotations

import array
from collections import deque
from functools import partial

import numpy as np
import pytest

import lazyarray

pytestmark = pytest.mark.filterwarnings("ignore::lazyarray.HostFallbackWarning", "ignore::DeprecationWarning")


@pytest.mark.parametrize("like", [np.empty_like, np.zeros_like, np.ones_like])
@pytest.mark.parametrize("order", "CFAK")
@pytest.mark.parametrize("shape", [(), (5,), (5, 6), (5, 6, 7)])
def test_new_arrays_in_another_shape_are_laid_out_as_numpy_does(like, order, shape):
    for a in (np.arange(24.0).reshape(4, 3, 2, order="F"), np.arange(6.0).reshape(2, 3)):
        expected = like(a, order=order, shape=shape)
        assert like(lazyarray.asarray(a), order=order, shape=shape).strides == expected.strides


def outcome(call, *arrays):
    """What a call returns or raises, and what it leaves in the arrays."""
    try:
        result = call(*arrays)
    except Exception as error:  # noqa: BLE001  what NumPy raises is what is wanted
        result = type(error).__name__
    return repr(np.array(result).tolist()), repr([np.array(a).tolist() for a in arrays])


def assert_same(call, *arrays):
    assert outcome(call, *(lazyarray.asarray(a.copy()) for a in arrays)) == outcome(call, *(a.copy() for a in arrays))



@pytest.mark.parametrize("key", [
    (), True, False, ..., None, (1, 2), (1,), [-1, -2], [], [True, 1], [True, True], [1.0, 2.0],
    np.array([[1, 2], [3, 4]]), np.array([], dtype="S"), slice(5, 1, -2), np.int8(3),
    np.arange(9) % 2 == 0, np.zeros(10, bool)], ids=repr)
def test_flat_takes_and_refuses_the_indexes_that_an_ndarrays_flat_does(key):
    a = np.arange(9.0).reshape(3, 3)
    assert_same(lambda x: x.flat[key], a)
    assert_same(lambda x: x.flat.__setitem__(key, 30), a)
    assert_same(lambda x: x.T.flat.__setitem__(key, [30, 31]), a)


class Pair(tuple):
    """A tuple by another name."""


def test_a_tuple_of_any_class_is_a_tuple_of_indexes():
    a = np.arange(12.0).reshape(3, 4)
    for index in (Pair((1, 2)), Pair(([0, 1], [2, 3])), Pair((slice(1, 3),))):
        assert_same(lambda x, index=index: x[index], a)
        assert_same(lambda x, index=index: x.__setitem__(index, -1), a)


@pytest.mark.parametrize("value", [range(3), memoryview(np.arange(3.0)), array.array("d", [1, 2, 3]), deque([1, 2, 3]),
                                   {1: 2}, "1", b"2", None, range(2)], ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("index", [slice(None), [0, 1, 2], np.array([True, True, True])], ids=repr)
def test_whatever_numpy_makes_an_array_of_can_be_assigned(index, value):
    assert_same(lambda x: x.__setitem__(index, value), np.zeros(3))


def test_a_table_too_long_for_its_dtype_is_refused_by_isin():
    test = np.array([-128, 0, 127], np.int8)
    assert_same(lambda x, y: np.isin(x, y, kind="table"), np.array([0, 1], np.int16), test)
    assert_same(lambda x, y: np.isin(x, y, kind="table"), np.array([0, 1]), np.arange(9))


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_medians_warn_once_for_each_slice_of_nan(axis):
    def said(x):
        with pytest.warns(RuntimeWarning) as caught:
            np.nanmedian(x, axis=axis)
        return len([w for w in caught if "All-NaN" in str(w.message)])
    a = np.full((3, 3), np.nan)
    assert said(lazyarray.asarray(a)) == said(a)


def test_a_sum_that_starts_from_a_negative_zero_keeps_it():
    for total in (np.sum, np.add.reduce):
        for n in (0, 1, 20):
            a = np.full(n, -0.0)
            assert_same(lambda x: np.signbit(total(x, initial=-0.0)), a)


def test_signatures_are_numpys_to_judge():
    a = 0.5 * np.arange(3)
    for signature in ("i", ("i4",), "ii->i", ("i4", "i4", "i4"), (None, None, "f4")):
        assert_same(lambda x: np.add(x, 0.5, sig=signature, casting="unsafe"), a)


def test_arrays_of_more_dimensions_than_broadcasting_knows():
    a = np.zeros((1,) * 34 + (2,))
    assert_same(lambda x: (x + 1).shape, a)
    assert_same(lambda x: (x + x).shape, a)


def test_fortran_routines_leave_alone_what_they_leave_alone_of_an_ndarray():
    linalg = pytest.importorskip("scipy.linalg")
    lapack, multiply = linalg.lapack, partial(linalg.blas.dtrmv, lower=1)
    a, b = np.asfortranarray([[4.0, 1.0], [1.0, 3.0]]), np.ones(2)

    def by_local_name(x, y):
        solve = lapack.dposv
        return solve(x, y,
                     lower=True)[1]

    for call in (lambda x, y: lapack.dposv(x, y)[1], by_local_name, lambda x, y: lapack.dposv(*(x, y), **{})[1],
                 lambda x, y: multiply(x, y), lambda x, y: [linalg.blas.dtrmv(x, z) for z in (y,)][0],
                 lambda x, y: linalg.blas.daxpy(x[0], y)):
        assert_same(call, a, b)


def test_other_callers_get_the_array_itself():
    x = lazyarray.asarray(np.zeros(3))
    asarray = np.asarray
    for alias in (np.asarray(x), asarray(x), np.asarray(*(x,))):
        alias += 1
    assert x.tolist() == [3, 3, 3]


def test_strides_reach_beyond_the_view_that_they_are_given():
    as_strided = np.lib.stride_tricks.as_strided
    a = np.arange(10.0)
    assert_same(lambda x: as_strided(np.negative(x)[3:5], (4, 4), (-8, 8)), a)
    assert_same(lambda x: as_strided(x[::2][1:2], (3, 2), (8, 8)).__setitem__((2, 1), -1), a)
    assert_same(lambda x: as_strided(x[3:5], (2, 2), (8, 8), writeable=False).__setitem__(0, 1), a)
    x = lazyarray.asarray(a)
    windows = as_strided(x[3:], (4, 4), (-8, 8))
    x *= 2
    assert windows[3].tolist() == [0, 2, 4, 6]
    windows[3, 0] = 7
    assert (x + 0).tolist()[:2] == [7, 2]


@pytest.mark.parametrize("args", [(0,), (0, None), (None, 1), (0, 1, None), ("a",), (np.zeros((5, 7)),), ()], ids=repr)
@pytest.mark.parametrize("kwargs", [{}, {"max": 1}, {"min": 1}, {"casting": "safe"}, {"a_max": 1}], ids=repr)
def test_the_method_clip_takes_one_bound(args, kwargs):
    for a in (np.array([[1.0, np.inf], [-2.0, 3.0]]), np.arange(3)):
        assert_same(lambda x: x.clip(*args, **kwargs), a)
        assert_same(lambda x: x.ravel()[0].clip(*args, **kwargs), a)
