"""Rules that other packages' own test-suites taught: a lazy array in place of an ndarray changes nothing."""
from __future__ import annotations

import array
import hashlib
import operator
import pickle
import sys
import warnings
import weakref
from collections import deque
from functools import partial

import numpy as np
import pytest

import lazyarray
from lazyarray.dispatch.ufunc_general import LOOPS

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


def said(call, *arrays):
    """What a call gives, and the warnings that come with it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", lazyarray.HostFallbackWarning)
        found = outcome(call, *arrays)
    return found, [(w.category, str(w.message), w.filename) for w in caught]


def assert_said(call, *arrays):
    assert said(call, *(lazyarray.asarray(a.copy()) for a in arrays)) == said(call, *(a.copy() for a in arrays))


@pytest.mark.together
def test_operators_on_two_arrays_without_dimensions_are_computed_once(monkeypatch):
    one, two = lazyarray.asarray(np.float64(3)), lazyarray.asarray(np.float64(2))
    assert one * two == 6       # NumPy's loop is known from now on
    key, calls = (np.multiply, np.dtype(float), np.dtype(float)), []
    multiply, dtypes = LOOPS[key]
    monkeypatch.setitem(LOOPS, key, (lambda *args: (calls.append(args), multiply(*args))[1], dtypes))
    assert one * two == 6 and len(calls) == 1
    assert type(one * two) is lazyarray.LazyScalar and len(calls) == 2


@pytest.mark.parametrize("name", ["median", "nanmedian", "percentile", "quantile", "nanpercentile", "nanquantile"])
@pytest.mark.parametrize("dtype", [float, object])
def test_scratch_memory_is_given_to_numpy_where_it_is_allowed(name, dtype):
    function = getattr(np, name) if "median" in name else partial(getattr(np, name), q=0.5)
    arrays = [np.array(3, dtype)]
    if name in ("median", "percentile", "quantile") or dtype is float:
        arrays.append(np.array([3, 1, 2], dtype))
    for a in arrays:
        x = lazyarray.asarray(a)
        assert function(x, overwrite_input=True) == function(a.copy(), overwrite_input=True)
    x = lazyarray.asarray(np.array([3, 1, 2], object))
    assert np.median(x, None, None, True) == 2


CLASSES = [np.dtypes.Float32DType, np.dtypes.Float64DType, np.dtypes.Int64DType, np.dtypes.ObjectDType,
           np.dtypes.StrDType, np.dtypes.DateTime64DType, np.dtype, type]


@pytest.mark.parametrize("kind", CLASSES)
def test_a_class_of_dtypes_is_taken_for_its_plain_dtype(kind):
    a = np.arange(6.0).reshape(2, 3)
    for call in (lambda x: np.add(x, x, dtype=kind), lambda x: np.add(x, x, dtype=kind, out=np.empty_like(x)),
                 lambda x: np.add(x, x, signature=(kind, None, None), casting="unsafe"),
                 lambda x: np.add(x, x, signature=(kind,) * 3, casting="unsafe", out=np.empty_like(x)),
                 lambda x: np.add.reduce(x, dtype=kind), lambda x: np.add.accumulate(x, dtype=kind),
                 lambda x: np.add.reduceat(x, [0, 1], dtype=kind), lambda x: x.sum(dtype=kind),
                 lambda x: x.astype(kind), lambda x: np.asarray(x, kind), lambda x: np.zeros_like(x, dtype=kind)):
        assert_same(call, a)


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="out=... came with NumPy 2.4")
def test_an_ellipsis_among_outputs_is_refused():
    for call in (lambda x: np.add(x, 1, out=(...,)), lambda x: np.divmod(x, 1, out=(None, ...)),
                 lambda x: np.add.reduce(x, out=(...,))):
        assert_same(call, np.arange(3.0))


def test_a_sum_in_a_class_of_dtypes_stays_on_the_device():
    x = lazyarray.asarray(np.arange(3.0))
    with lazyarray.no_transfers():
        for total in (x.sum(dtype=np.dtypes.Float32DType), np.add.reduce(x, dtype=np.dtypes.Float32DType),
                      np.add(x, x, dtype=np.dtypes.Float32DType, casting="same_kind")):
            assert total.dtype == np.float32


@pytest.mark.parametrize("shape", [(), (2,), (0,)], ids=str)
@pytest.mark.parametrize("dtype", ["i,O", "O,i", "V1", "V3", "V0", "i4,f8", [("a", "M8[s]")], [(("title", "n"), "i4")],
                                   {"names": ["b", "a"], "formats": ["i1", "i1"], "offsets": [3, 0]},
                                   np.dtype("i1,f8", align=True)], ids=repr)
def test_what_numpy_makes_of_records_has_their_dtype(dtype, shape):
    a = np.zeros(shape, dtype)
    x = lazyarray.asarray(a)
    asarray = np.asarray
    for alias in (np.asarray(x), asarray(x), np.array(x), np.asanyarray(x)):
        assert repr(alias.dtype) == repr(a.dtype) and alias.shape == shape
    try:
        want = memoryview(a)
    except ValueError:
        return
    if sys.version_info >= (3, 12):
        got = memoryview(x)
        assert (got.format, got.shape, bytes(got), bytes(x)) == (want.format, want.shape, bytes(want), bytes(a))


WRITES = {
    "element": lambda a: a.__setitem__((0, 1), 5),
    "all": lambda a: a.__setitem__(..., 5),
    "mask": lambda a: a.__setitem__(np.array([True, False]), 5),
    "in place": lambda a: a.__iadd__(1),
    "out": lambda a: np.add(a, 1, out=a),
    "fill": lambda a: a.fill(5),
    "copyto": lambda a: np.copyto(a, 5),
    "view": lambda a: a.T[0].__setitem__(0, 5),
    "flat": lambda a: a.flat.__setitem__(1, 5),
    "sort": lambda a: a[::-1].sort(),
    "flag": lambda a: a.flags.writeable,
    "allowed": lambda a: (setattr(a.flags, "writeable", True), a.__setitem__(0, 5))[1],
    "read": lambda a: (a + 1, np.array(a), a[0], a.T, a.copy(), a.sum(), a.reshape(-1))[1],
}


def at_looks():
    """Whether this NumPy's `ufunc.at` looks whether it may write: not all releases do."""
    closed = np.zeros(2)
    closed.flags.writeable = False
    try:
        np.add.at(closed, 0, 1)
    except ValueError:
        return True
    return False


if at_looks():
    WRITES["at"] = lambda a: np.add.at(a, 0, 1)


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("dtype", ["f8", "f2", "O"])
def test_writing_what_broadcast_arrays_made_warns_as_in_numpy(write, dtype):
    def call(wide, narrow):
        same, spread = np.broadcast_arrays(wide, narrow)
        WRITES[write](spread)
        WRITES[write](spread)
        return WRITES[write](same)

    assert_said(call, np.zeros((2, 3), dtype), np.arange(3).astype(dtype))


def test_an_error_made_of_that_warning_comes_each_time():
    _, spread = np.broadcast_arrays(np.zeros((2, 3)), lazyarray.asarray(np.zeros(3)))
    for _ in range(2):
        with warnings.catch_warnings(), pytest.raises(DeprecationWarning):
            warnings.simplefilter("error")
            spread[0] = 1
    assert not spread.any()


@pytest.mark.parametrize("view", [lambda a: np.broadcast_to(a, (3, 2, 3)), np.diagonal, lambda a: np.diagonal(a)[:1]])
def test_what_may_not_be_written_of_it_stays_so(view):
    x = lazyarray.asarray(np.zeros(3))
    spread, _ = np.broadcast_arrays(x, np.zeros((2, 3)))
    c = view(spread)
    for _ in range(2):
        for write in (lambda: c.__setitem__(..., 7), lambda: c.__iadd__(1), lambda: c.fill(2), lambda: np.copyto(c, 3),
                      c.sort):
            with pytest.raises(ValueError):
                write()
        assert not c.flags.num & 0x400
    assert x.tolist() == [0, 0, 0]


@pytest.mark.parametrize("index", [0, (0, 0), np.array([0, 1]), np.array([[True, False, True], [False, False, True]])],
                         ids=repr)
@pytest.mark.parametrize("value", [np.array(["q"]), np.array(["1", "q", "2"]), ["q"], "q", object(), {}, 1j,
                                   np.array([{}]), [1, "a"]], ids=lambda value: str(value).partition(" at ")[0])
def test_where_nothing_may_be_copied_numpy_still_says_what_is_wrong_with_a_value(index, value):
    a = np.zeros((2, 3))
    x, where = lazyarray.asarray(a), lazyarray.asarray(index) if isinstance(index, np.ndarray) else index
    with pytest.raises((TypeError, ValueError)) as numpys:
        a[index] = value
    with lazyarray.no_transfers(), pytest.raises(numpys.type) as ours:
        x[where] = value
    assert type(ours.value) is type(numpys.value)
    if value is not None and not isinstance(value, (list, dict)):
        assert str(ours.value) == str(numpys.value)


KEYWORDS = {
    "dot": [{"b": np.eye(2)}, {"other": np.eye(2)}], "put": [{"ind": [0], "v": [1]}, {"indices": [0], "values": [5]}],
    "choose": [{"choices": [1, 2]}], "swapaxes": [{"axis1": 0, "axis2": 1}], "compress": [{"condition": [True]}],
    "fill": [{"value": 3}], "conj": [{"out": None}, {"where": True}], "conjugate": [{"out": None}],
    "partition": [{"kth": 1}], "setfield": [{"val": 1, "dtype": int}, {"value": 1, "dtype": int}],
    "resize": [{"new_shape": (2, 2)}, {"order": "C"}], "take": [{"indices": [0]}], "repeat": [{"repeats": 2}],
    "searchsorted": [{"v": 1}], "std": [{"correction": 1}], "clip": [{"a_min": 0}, {"min": 0.5}],
    "sort": [{"descending": True}, {"stable": True}, {"unheard_of": True}], "argsort": [{"descending": True}],
    "nonzero": [{"a": 1}], "item": [{"args": 1}], "transpose": [{"axes": (1, 0)}],
}


@pytest.mark.parametrize("name", KEYWORDS)
def test_members_have_the_keywords_of_an_ndarrays(name):
    for keywords in KEYWORDS[name]:
        for a in (np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1, 0], [0, 1]])):
            assert_same(lambda x: getattr(x, name)(**keywords), a)


@pytest.mark.parametrize("shape", [
    (), ((),), (None,), ("hi",), (-1,), ([2, 2],), ((2.0, 2),), (2.0,), (np.array([2, 2]),), (np.int64(3),),
    (None, None), (True,), ((2, -1),), (np.array(3),), (9,), ((1, 9),), (3, 3), (12,), (2**62,)], ids=repr)
def test_resize_takes_the_shapes_that_an_ndarrays_does(shape):
    for a in (np.arange(9.0).reshape(3, 3), np.array([[4.0]]), np.array(5.0)):
        assert_same(lambda x: x.resize(*shape, refcheck=False) or x.shape, a)
    x, a = (make(np.arange(6.0)) for make in (lazyarray.asarray, np.array))
    for y in (x[1:3], a[1:3]):
        y.resize((2, 1))        # of as many elements a view remains one
        y += 10
    assert x.tolist() == a.tolist()
    for y in (x[::2], a[::2]):
        with pytest.raises(ValueError, match="single-segment"):
            y.resize(3)
    with pytest.raises(TypeError):
        x.resize(3, refcheck="hi")


def test_an_array_that_weak_references_know_is_not_resized():
    for x in (np.arange(3.0), lazyarray.asarray(np.arange(3.0))):
        known = weakref.ref(x)
        with pytest.raises(ValueError, match="references"):
            x.resize(5, refcheck=False)
        assert known() is x


def test_the_array_of_flat_is_live_where_the_elements_lie_in_order():
    x = lazyarray.asarray(np.arange(6.0).reshape(2, 3))
    np.asarray(x.flat)[0] = 7
    assert x[0, 0] == 7
    for y in (x, x.T, x[:, :2]):
        assert np.asarray(y.flat).flags.writeable == y.flags.c_contiguous
        assert np.asarray(y.flat, np.int8).tolist() == y.ravel().tolist()


def test_flat_is_changed_in_no_other_way_than_an_ndarrays():
    def change(name):
        return lambda x: setattr(x.flat, name, 1)
    a = np.arange(3.0)
    for call in (change("index"), change("base"), change("unheard_of"), lambda x: x.flat.__delitem__(0)):
        assert_same(call, a)
    assert_same(lambda x: x.flat, np.ones((1,) * 33))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes written in Python have no buffers before")
def test_who_asks_for_another_layout_gets_numpys_error():
    a = np.arange(10.0)
    for x in (a, lazyarray.asarray(a)):
        with pytest.raises(ValueError, match="not C-contiguous"):
            hashlib.md5(x[::2])
    get = pytest.importorskip("numpy._core._multiarray_tests").get_buffer_info
    read_only = a.copy()
    read_only.flags.writeable = False
    for base in (a, a.reshape(2, 5), a.reshape(2, 5).T, a[::2], read_only, np.array(1.0)):
        for flags in (["SIMPLE"], ["WRITABLE"], ["C_CONTIGUOUS"], ["F_CONTIGUOUS"], ["ANY_CONTIGUOUS"], ["STRIDES"],
                      ["FULL"], ["FULL_RO"], ["RECORDS"], ["CONTIG"], ["FULL_RO", "C_CONTIGUOUS"]):
            x = lazyarray.asarray(base if base.base is None else np.array(a))
            if base.base is not None:
                x = np.lib.stride_tricks.as_strided(x, base.shape, base.strides)
            if not base.flags.writeable:
                x.flags.writeable = False
            found, expected = (outcome(lambda y, flags=flags: repr(get(y, flags)), y)[0] for y in (x, base))
            assert found == expected, (base.shape, base.strides, flags)


def test_no_buffer_goes_beside_the_pickle_of_an_array_that_is_not_contiguous():
    x = lazyarray.asarray(np.arange(12.0).reshape(3, 4))
    for y in (x, x.T, x[1:], x[:, :2], x[::2], x[:0]):
        for make in (np.array, lambda y: y):
            buffers = []
            a = np.array(x)[:, :2] if y.shape == (3, 2) and make is np.array else make(y)
            pickled = pickle.dumps(a, 5, buffer_callback=buffers.append)
            opened = pickle.loads(pickled, buffers=buffers)
            assert opened.tolist() == y.tolist() and bool(buffers) == a.flags.forc


def test_the_size_of_an_object_counts_the_bytes_that_it_owns():
    for make in (np.array, lazyarray.asarray):
        x = make(np.ones((10, 10)))
        assert sys.getsizeof(x) > x.nbytes > sys.getsizeof(x[...])


@pytest.mark.parametrize(("ufunc", "shapes"), [
    (np.matmul, [(2, 3, 3), (2, 3, 1), (2, 3, 3)]), (np.matmul, [(0, 1, 1), (0, 1, 1), (1, 1, 1)]),
    (np.matmul, [(1, 3, 3), (3, 3), (2, 3, 3)]), (np.matmul, [(2, 3, 3), (2, 3, 3), (3, 3, 3)]),
    (np.vecdot, [(2, 3), (2, 3), (3,)]), (np.vecdot, [(3,), (3,), (2,)]), (np.matmul, [(3,), (3,), (1,)])])
def test_core_dimensions_are_not_broadcast_to_the_output(ufunc, shapes):
    assert_same(lambda x, y, out: ufunc(x, y, out=out), *map(np.ones, shapes))


def test_as_many_choices_as_numpy_takes():
    for n in (63, 64):
        assert_same(lambda x: x.choose([0, x] + [2] * (n - 2)), np.ones((2, 2), np.intp))


def test_an_index_of_a_scalar_may_be_an_array():
    for index in (np.array([], int), np.array([0]), (), (...,), ..., None, 0, ((),)):
        assert_same(lambda x: x[0][index], np.arange(3.0))


def test_datasets_of_hdf5_are_read_and_written_directly(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "data.h5", "w") as file:
        dataset = file.create_dataset("x", data=np.arange(6.0).reshape(2, 3))
        assert_same(lambda out: dataset.read_direct(out), np.zeros((2, 3)))
        assert_same(lambda out: dataset.read_direct(out, np.s_[0], np.s_[:, 1]), np.zeros((3, 2)))
        dataset.write_direct(lazyarray.asarray(np.ones((2, 3))) * 7)
        assert dataset[...].tolist() == [[7.0] * 3] * 2


def test_compiled_helpers_of_scipy_get_ndarrays():
    interpolate = pytest.importorskip("scipy.interpolate")
    distance = pytest.importorskip("scipy.spatial.distance")
    group_columns = pytest.importorskip("scipy.optimize._numdiff").group_columns
    assert_same(group_columns, np.eye(4))
    x, y = np.random.default_rng(0).random((2, 60))
    z = np.sin(3 * x) * y
    assert_same(lambda x, y, z: np.concatenate(interpolate.bisplrep(x, y, z, s=0.1)[:3]), x, y, z)
    assert_same(lambda x, out: distance.cdist(x, x, out=out), z.reshape(20, 3), np.zeros((20, 20)))
    order = np.argsort(x)
    if hasattr(interpolate, "make_splrep"):
        assert_same(lambda x, y: interpolate.make_splrep(x, y, s=0.1, k=3).c, x[order], y[order])


class Masked(np.ndarray):
    """Decides itself about calls that it is the mask of."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return "asked", type(kwargs["where"]).__name__, np.array(inputs[0]).tolist()


class Stranger:
    """Is no array, and refuses."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return NotImplemented


def test_a_mask_has_a_say_in_a_ufunc():
    for x in (np.arange(3), lazyarray.asarray(np.arange(3))):
        assert np.negative(x, where=np.array([True, False, True]).view(Masked)) == ("asked", "Masked", [0, 1, 2])
        with pytest.raises(TypeError):
            np.negative(x, where=Stranger())


def test_a_mask_with_no_output_is_no_cause_for_a_warning_on_the_host():
    x = lazyarray.asarray(np.arange(3.0))
    mask = np.array([True, False, True])
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", lazyarray.HostFallbackWarning)
        for call in (np.add, np.spacing, np.float_power, np.nextafter):
            result = call(*(x,) * call.nin, where=mask, out=None)
            assert np.array_equal(result[mask], call(*(np.arange(3.0),) * call.nin)[mask])


@pytest.mark.parametrize("kind", ["S0", "U0", "V0"])
def test_arrays_without_bytes_are_resized(kind):
    x = lazyarray.asarray(np.zeros(5, [("field", kind)]))["field"]
    for shape in (25, (10, 10), (2, 2)):
        x.resize(shape)
        assert (np.empty(x.shape).shape, x.dtype) == (np.empty(shape).shape, np.dtype(kind))


def test_members_have_the_positions_of_an_ndarrays():
    for call in (lambda x: x.any(0, object), lambda x: x.all(0, None, None, True), lambda x: x.any(dtype=float),
                 lambda x: x.all(None, None), lambda x: x.astype(int).choose(x, x + 1),
                 lambda x: x.astype(int).choose(), lambda x: x.astype(int).choose([x, x + 1])):
        assert_same(lambda x: repr(np.array(call(x))), np.array([[1.0, 0.0], [1.0, 1.0]]))


def test_pandas_looks_for_missing_objects():
    pandas = pytest.importorskip("pandas")
    for a in (np.array([1, None, "a", np.nan], object), np.array([[1, None], [2, 3]], object), np.array(None, object)):
        assert_same(pandas.isna, a)


def test_more_bins_than_there_are_indexes_are_refused():
    for n in (2**10, 2**7):
        assert_same(lambda x: np.histogramdd(x, bins=n), np.ones((1, 10)))


class Kept(np.ndarray):
    """A class that a result is of."""


@pytest.mark.parametrize("kinds", [([("f", "i")],) * 2, ("M8[s]", "d"), ("U3", "d"), ("d", "d"), ("O", "d")], ids=repr)
def test_comparisons_keep_the_class_of_the_other_operand(kinds):
    mine, others = (np.zeros(5, dtype) for dtype in kinds)
    for compare in (operator.eq, operator.ne):
        expected = compare(mine, others.view(Kept))
        for result in (compare(lazyarray.asarray(mine), others.view(Kept)),
                       compare(others.view(Kept), lazyarray.asarray(mine))):
            assert type(result) is type(expected) is Kept and result.tolist() == expected.tolist()


@pytest.mark.parametrize("join", [np.concatenate, np.stack])
def test_an_output_and_a_dtype_exclude_each_other(join):
    a, out = np.array([1, 2]), np.zeros(4 if join is np.concatenate else (2, 2), int)
    for dtype in (int, "f4", None):
        for casting in ("no", "same_kind", "unsafe"):
            assert_same(lambda x, out: join((x, x), out=out, dtype=dtype, casting=casting), a, out)
            assert_same(lambda x, out: join((x, x), out=out, dtype=dtype, casting=casting), a, out.astype("f4"))


def test_pandas_compares_within_a_tolerance():
    testing = pytest.importorskip("pandas._testing")
    one = lazyarray.asarray(np.array([1.0, np.nan]))
    testing.assert_almost_equal(one[0], 1 - 1e-9)
    testing.assert_almost_equal(one[1], np.nan)
    with pytest.raises(AssertionError):
        testing.assert_almost_equal(one[0], 1.1)


def test_masked_arrays_of_lazy_ones_have_data():
    a = np.array([-1.0, 0.0, 4.0, np.nan])
    for call in (np.ma.sqrt, np.ma.log, np.ma.abs, np.ma.masked_invalid, np.ma.array, lambda x: np.ma.divide(x, x),
                 lambda x: np.ma.array(x, mask=x < 0) + x, lambda x: np.ma.masked_where(x > 1, x), np.ma.exp):
        with np.errstate(all="ignore"):
            assert_same(lambda x: [call(x).filled(5), call(x).data, np.ma.getmaskarray(call(x))], a)
            assert type(call(lazyarray.asarray(a)).data) is np.ndarray


def test_an_outer_product_of_too_many_dimensions_is_refused():
    for n in (32, 33):
        assert_same(lambda x: np.add.outer(x, x).ndim, np.ones((1,) * n))
