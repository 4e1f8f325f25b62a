"""Arguments that mean nothing: what NumPy raises for them is raised, of the same type."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray

pytestmark = pytest.mark.filterwarnings("ignore")


def cycle():
    found: list = []
    found.append(found)
    return found


def twice():
    found: list = [0]
    found += [found, found]
    return found


def named():
    found: dict = {}
    found["a"] = found
    return found


TAKES_ANYTHING = {
    "==": lambda x, c: x == c,
    "+": lambda x, c: x + c,
    "in": lambda x, c: c in x,
    "index": lambda x, c: x[c],
    "index in a tuple": lambda x, c: x[c, None],
    "assigned": lambda x, c: x.__setitem__(slice(None), c),
    "assigned to an element": lambda x, c: x.__setitem__(0, c),
    "assigned by a list": lambda x, c: x.__setitem__([0], c),
    "assigned by it": lambda x, c: x.__setitem__(c, 1),
    "flat": lambda x, c: x.flat[c],
    "assigned to flat": lambda x, c: x.flat.__setitem__(0, c),
    "fill": lambda x, c: x.fill(c),
    "take": np.take,
    "where": lambda x, c: np.where(x > 0, 1, c),
    "put": lambda x, c: np.put(x, c, 1),
    "values of put": lambda x, c: np.put(x, [0], c),
    "concatenate": lambda x, c: np.concatenate([x, c]),
    "concatenate of it": lambda x, c: np.concatenate([c, [x]]),
    "split": np.split,
    "reshape": lambda x, c: x.reshape(c),
    "broadcast_to": np.broadcast_to,
    "axis": lambda x, c: np.sum(x, axis=c),
    "result_type": np.result_type,
    "like": lambda x, c: np.array(c, like=x),
    "shape": lambda x, c: np.zeros_like(x, shape=c),
    "full_like": np.full_like,
    "insert": lambda x, c: np.insert(x, 0, c),
    "add.at": lambda x, c: np.add.at(x, c, 1),
    "clip": lambda x, c: np.clip(x, c, 1),
    "searchsorted": np.searchsorted,
    "isin": np.isin,
}


def outcome(call):
    try:
        result = call()
    except RecursionError:
        raise
    except Exception as error:  # noqa: BLE001  whatever it is, its type is compared
        return type(error)
    return result if isinstance(result, bool) else None


@pytest.mark.parametrize("make", [cycle, twice, named, lambda: [[1], [1, 2]], lambda: [None, object()]],
                         ids=["cycle", "twice", "named", "ragged", "objects"])
@pytest.mark.parametrize("call", TAKES_ANYTHING)
def test_lists_and_dicts_that_make_no_array_are_refused_as_by_numpy(call, make):
    plain = np.arange(3.0)
    for lazy in (lazyarray.asarray(plain), lazyarray.asarray(plain) + 0):
        assert outcome(lambda: TAKES_ANYTHING[call](lazy, make())) == outcome(
            lambda: TAKES_ANYTHING[call](plain.copy(), make()))


TAKES_WHOLE_NUMBERS = {
    "item": lambda x, n: x.item(n),
    "item, two": lambda x, n: x.item(0, n),
    "item, a tuple": lambda x, n: x.item((0, n)),
    "zeros_like": lambda x, n: np.zeros_like(x, shape=(n, 2)).shape,
    "zeros_like, a number": lambda x, n: np.zeros_like(x, shape=n).shape,
    "full_like": lambda x, n: np.full_like(x, 1, shape=(2, n)).shape,
    "zeros": lambda x, n: np.zeros((n,), like=x).shape,
    "fft": lambda x, n: np.fft.fft(x, n=n).shape,
    "rfftn": lambda x, n: np.fft.rfftn(x, s=(n, 2), axes=(0, 1)).shape,
    "vander": lambda x, n: np.vander(x[0], N=n).shape,
    "partition": lambda x, n: np.partition(x, n),
    "argpartition": lambda x, n: np.argpartition(x, n),
    "the method partition": lambda x, n: x.partition(n),
    "sort": lambda x, n: np.sort(x, axis=n).tolist(),
    "the method sort": lambda x, n: x.sort(axis=n),
    "argsort": lambda x, n: np.argsort(x, axis=n).tolist(),
    "index": lambda x, n: x[n],
    "index of a row": lambda x, n: x[0, n],
    "index beside a list": lambda x, n: x[[0, 1], n],
    "assigned to": lambda x, n: x.__setitem__((0, n), 1),
    "reshape": lambda x, n: x.reshape(n, 2).shape,
}
NUMBERS = [0, 1, -1, 4, -7, 6, 2 ** 70, 1.5, 2.0, True, np.True_, "ab", None, [1], [[1]], (), (1, 1), np.int8(1),
           np.array(1), np.array([1]), np.array(1.0), 1j]


@pytest.mark.parametrize("n", NUMBERS, ids=repr)
@pytest.mark.parametrize("shape", [(4, 4), (1, 0)], ids=str)
@pytest.mark.parametrize("call", TAKES_WHOLE_NUMBERS)
def test_what_is_no_whole_number_is_refused_as_by_numpy(call, shape, n):
    plain = np.ones(shape)
    expected = outcome(lambda: TAKES_WHOLE_NUMBERS[call](plain, n))
    assert outcome(lambda: TAKES_WHOLE_NUMBERS[call](lazyarray.asarray(plain), n)) == expected
    if isinstance(n, np.ndarray):
        assert outcome(lambda: TAKES_WHOLE_NUMBERS[call](lazyarray.asarray(plain), lazyarray.asarray(n))) == expected


@pytest.mark.parametrize("shape", [(0,), (1, 0, 1), (2, 3), (2, 0)], ids=str)
@pytest.mark.parametrize("axis", [-4, -1, 0, 1, 6])
def test_an_axis_is_judged_also_where_nothing_is_sorted(shape, axis):
    for call in (lambda x: x.sort(axis=axis), lambda x: np.sort(x, axis=axis), lambda x: np.argsort(x, axis=axis),
                 lambda x: x.argsort(axis=axis), lambda x: np.sort(x, axis=axis, kind="stable")):
        assert outcome(lambda: call(lazyarray.asarray(np.ones(shape)))) == outcome(lambda: call(np.ones(shape)))


KEYWORDS_OF_SORT = [
    {"descending": True}, {"descending": False}, {"descending": None}, {"descending": True, "stable": True},
    {"descending": True, "kind": "stable"}, {"descending": [], "axis": 0}, {"descending": "yes"}, {"stable": 1},
    {"stable": np.arange(3)}, {"descending": np.arange(3)}, {"stable": np.array(True)}, {"kind": "nonsense"},
    {"kind": "stable", "stable": True}, {"kind": 3}, {"axis": 5, "descending": True}, {"nonsense": 1}]


@pytest.mark.parametrize("keywords", KEYWORDS_OF_SORT, ids=repr)
@pytest.mark.parametrize("host", [np.array([[1.0, np.nan, 3, 2], [0, 5, 4, 4]]), np.array([3, 1, 2], "u1"),
                                  np.zeros((0, 3)), np.array(["b", "c", "a"])], ids=["f8", "u1", "empty", "text"])
@pytest.mark.parametrize("sort", ["x.sort", "x.argsort", "np.sort", "np.argsort"])
def test_keywords_of_sorting(sort, host, keywords):
    """Whatever release of NumPy is there: `descending` came with 2.5."""
    place, name = sort.split(".")

    def result(make):
        x = make(host)
        given = {k: make(v) if isinstance(v, np.ndarray) else v for k, v in keywords.items()}
        try:
            found = getattr(np, name)(x, **given) if place == "np" else getattr(x, name)(**given)
        except (TypeError, ValueError) as error:
            return type(error), np.asarray(x).astype(str).tolist()
        return found is None, np.asarray(x if found is None else found).astype(str).tolist()
    assert result(lazyarray.asarray) == result(np.array)


@pytest.mark.parametrize("dtype", ["f8", "f4", "u8", "i8", "i1", "?", "c16"])
@pytest.mark.parametrize("make_counts", [np.array, lazyarray.asarray])
@pytest.mark.parametrize("shape", ["scalar", (), (1,), (3,)])
def test_counts_of_repeat(dtype, make_counts, shape):
    """NumPy takes a scalar of any dtype, and an array only if its dtype can be cast safely."""
    def result(make, make_counts):
        x = make([1.0, 2.0, 3.0])
        counts = make_counts(np.full(3 if shape == "scalar" else shape, 2, dtype))
        counts = counts[0] if shape == "scalar" else counts
        try:
            return np.repeat(x, counts).tolist(), x.repeat(counts).tolist()
        except (TypeError, ValueError) as error:
            return type(error)
    assert result(lazyarray.asarray, make_counts) == result(np.array, np.array)


@pytest.mark.parametrize("stream", [None, 1])
@pytest.mark.parametrize("device", ["cpu", np.str_("cpu"), "gpu", None, 3, b"cpu", np.arange(3)], ids=repr)
def test_names_of_devices(device, stream):
    def result(x):
        try:
            return x.to_device(device, stream=stream) is x
        except (TypeError, ValueError) as error:
            return type(error)
    assert result(lazyarray.asarray([1.0, 2.0])) == result(np.array([1.0, 2.0]))


BESIDE_THE_POINT = {
    "complex weights of histogramdd": lambda a: np.histogramdd(a(np.arange(3.0)), 3, weights=a(np.arange(3) * 1j)),
    "complex weights of histogram2d": lambda a: np.histogram2d(
        a(np.arange(5000.0)), a(np.arange(5000.0)), 3, weights=a(np.arange(5000) * 1j)),
    "too few weights": lambda a: np.histogramdd(a(np.arange(3.0)), 3, weights=a(np.arange(2.0))),
    "norm of no dimension": lambda a: np.linalg.norm(a(np.float64(2)), 1, 0),
    "norm along no axis": lambda a: np.linalg.norm(a(np.ones((5, 2))), np.inf, 7),
    "an empty list": lambda a: np.inner(a(np.zeros((0, 0), "f2")), []),
    "a list": lambda a: np.inner(a(np.ones(3, "f4")), [1, 2, 3]),
    "booleans": lambda a: np.einsum("i,j,k->", a(np.array([1, 1, 0, 1], bool)), a(np.ones(3)), a(np.ones(2)),
                                    optimize=True),
}
if hasattr(np, "matvec"):
    BESIDE_THE_POINT["a vector of no dimension"] = lambda a: np.matvec(a(np.ones((3, 1))), a(np.float64(2)))
    BESIDE_THE_POINT["no vector on the left"] = lambda a: np.vecmat(a(np.float64(2)), a(np.ones((1, 3))))


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("call", BESIDE_THE_POINT.values(), ids=list(BESIDE_THE_POINT))
@pytest.mark.filterwarnings("ignore::lazyarray.HostFallbackWarning")
def test_what_numpy_refuses_or_takes(call, small):
    def result(make):
        try:
            found = call(make)
        except Exception as error:  # noqa: BLE001  NumPy's is compared
            return type(error)
        return np.asarray(found).tolist(), np.asarray(found).dtype
    with lazyarray.options(small_on_host=small):
        assert result(lazyarray.asarray) == result(np.array)
