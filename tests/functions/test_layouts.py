"""Results lie in memory as NumPy's do: their strides are the same, whatever the device's functions make."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray
from lazyarray.functions import memory_order

BASE = np.arange(24.0).reshape(2, 3, 4) + 1
ROW = np.arange(4.0)

#: A function of an array of shape (2, 3, 4), by which it is laid out as NumPy's copies (``order="K"``) are.
LAYOUTS = {
    "C": lambda a: a.copy(),
    "F": lambda a: a.copy(order="F"),
    "swapped": lambda a: a.transpose(0, 2, 1).copy().transpose(0, 2, 1),
    "reversed": lambda a: a[::-1, :, ::-1],
    "reversed F": lambda a: a.copy(order="F")[:, ::-1],
    "every other": lambda a: np.repeat(np.repeat(a, 2, 1), 2, 2)[:, ::2, ::2],
    "one column": lambda a: a[:, :, :1],
}

FUNCTIONS = {
    "add": lambda a: a + a, "of a number": lambda a: 2 * a, "of a row": lambda a: a + ROW[:a.shape[2]],
    "of another order": lambda a: a + BASE.copy(order="F")[:a.shape[0], :, :a.shape[2]],
    "of C": lambda a: a + BASE[:a.shape[0], :, :a.shape[2]], "sqrt": np.sqrt, "comparison": lambda a: a < 5,
    "cast": lambda a: a + 0j, "modf": lambda a: np.modf(a)[0], "divmod": lambda a: np.divmod(a, 2)[1],
    "integers": lambda a: a.astype(int) // 3, "invert": lambda a: ~(a > 3), "logical": lambda a: np.logical_and(a, a),
    "heaviside": lambda a: np.heaviside(a, 1), "power": lambda a: a ** 2, "half": lambda a: a.astype("f2") * 2,
    "outer": lambda a: np.add.outer(a, ROW), "accumulate": lambda a: np.add.accumulate(a, 1),
    "maxima so far": lambda a: np.maximum.accumulate(a, 0), "reduce": lambda a: np.add.reduce(a, 1),
    "reduce two": lambda a: np.maximum.reduce(a, (0, 2), initial=0),
    "reduce others": lambda a: np.logaddexp.reduce(a, 1), "sum": lambda a: a.sum(0),
    "keepdims": lambda a: a.sum(1, keepdims=True), "mean": lambda a: np.mean(a, axis=-1), "std": lambda a: a.std(1),
    "any": lambda a: a.any(2), "nanmax": lambda a: np.nanmax(a, 1), "average": lambda a: np.average(a, axis=1),
    "median": lambda a: np.median(a, 1), "cumsum": lambda a: a.cumsum(1), "cumprod": lambda a: np.cumprod(a, 0),
    "diff": lambda a: np.diff(a, axis=1), "sort": lambda a: np.sort(a, 1), "argsort": lambda a: np.argsort(a, 0),
    "partition": lambda a: np.partition(a, 1, 1), "argpartition": lambda a: np.argpartition(a, 1, 1),
    "where": lambda a: np.where(a > 3, a, 0), "clip": lambda a: a.clip(1, 5), "round": lambda a: a.round(),
    "isclose": lambda a: np.isclose(a, 1), "angle": np.angle, "nan_to_num": np.nan_to_num,
    "fft": lambda a: np.fft.fft(a, axis=1), "rfft": lambda a: np.fft.rfft(a, axis=0), "fftn": np.fft.fftn,
    "concatenate": lambda a: np.concatenate([a, a], 1), "append": lambda a: np.append(a, a, 0),
    "vstack": lambda a: np.vstack([a, a]), "hstack": lambda a: np.hstack([a, a]),
    "choose": lambda a: np.choose((a % 2).astype(int), [a, a]), "select": lambda a: np.select([a > 1], [a]),
    "delete": lambda a: np.delete(a, 1, 1), "insert": lambda a: np.insert(a, 1, 0, 1),
    "delete some": lambda a: np.delete(a, [0, 1], 1), "roll": lambda a: np.roll(a, 1, 1),
    "roll all": lambda a: np.roll(a, 1),
    "shift": lambda a: np.fft.ifftshift(a, 1), "stack": lambda a: np.stack([a, a], 2), "stack rows": np.stack,
    "concatenate rows": np.concatenate, "columns": lambda a: np.column_stack([a[0], a[1]]), "block": lambda a: np.block(
        [[a, a], [a, a]]), "dstack": lambda a: np.dstack([a[0], a[1]]), "lexsort": np.lexsort,
    "pad": lambda a: np.pad(a, 1, "wrap"), "pad nothing": lambda a: np.pad(a, 0, "edge"),
    "bits": lambda a: np.unpackbits(a.astype("u1"), axis=1), "packed": lambda a: np.packbits(a > 3, axis=1),
    "ptp": lambda a: np.ptp(a, 1), "count": lambda a: np.count_nonzero(a > 3, axis=1), "i0": np.i0, "sinc": np.sinc,
    "infinite": np.isposinf, "emath": lambda a: np.emath.sqrt(a - 9), "polyval": lambda a: np.polyval([1, 2], a),
    "complex": np.sort_complex, "nanpercentile": lambda a: np.nanpercentile(a, [10, 50], axis=1),
    "percentile": lambda a: np.percentile(a, [10, 50], axis=1), "vander": lambda a: np.vander(a[0, 0], 3),
    "polyfit": lambda a: np.polyfit(a[:, 0, 0], a[:, 0], 1), "logspace": lambda a: np.logspace(a[0, 0], 2, 3, axis=-1),
    "astype": lambda a: a.astype("f4"), "copy": lambda a: a.copy(order="K"), "like": np.empty_like,
}


def strides(array):
    """Those that matter: where there is one element there is nothing to step over."""
    return [stride for stride, n in zip(array.strides, array.shape) if n > 1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_result_lies_in_memory_as_numpys(function, layout):
    call, lay_out = FUNCTIONS[function], LAYOUTS[layout]
    outcomes = []
    for array in (lay_out(BASE), lay_out(lazyarray.asarray(BASE))):
        try:
            outcomes.append((strides(call(array)), strides(array)))
        except (ValueError, ZeroDivisionError, IndexError) as error:
            outcomes.append(type(error))
    assert outcomes[0] == outcomes[1]


def test_what_numpy_may_be_asked_of_a_result_may_be_asked_of_ours():
    a = np.arange(12.0).reshape(3, 4)
    x = lazyarray.asarray(a)
    for call in (lambda a: np.fft.fft(a, axis=0).view(float), lambda a: a.cumsum(0).view("i4"),
                 lambda a: (2 * a.T).ravel("K"), lambda a: (2 * a.T).reshape(-1, order="A"),
                 lambda a: np.sort(a.T, 0).flatten("A")):
        assert np.allclose(call(x), call(a))


def test_results_in_c_order_are_not_copied(monkeypatch):
    monkeypatch.setattr(memory_order, "empty", None)
    x = lazyarray.asarray(BASE)
    for y in (x + x, np.sqrt(x), x.sum(0), np.where(x > 1, x, 0), x.clip(0, 3), np.concatenate([x, x])):
        assert y.flags.c_contiguous


def test_ufuncs_compute_along_the_order_of_their_operands_and_copy_nothing(monkeypatch):
    monkeypatch.setattr(memory_order, "empty", None)
    row = np.arange(BASE.shape[0], dtype=BASE.dtype)
    for call in (lambda a: a.T * 2, lambda a: a.T + a.T, lambda a: np.sqrt(a.transpose(1, 2, 0)), lambda a: a.T > 1,
                 lambda a: a.T + row, lambda a: row - a.T, lambda a: np.modf(a.T)[1], lambda a: a.T * np.int8(3),
                 lambda a: np.hypot(a.T, a.T.astype("f4")), lambda a: a.T[None] * a.T):
        ours, numpys = call(lazyarray.asarray(BASE)), call(BASE)
        assert ours.strides == numpys.strides and ours.dtype == numpys.dtype and np.allclose(ours, numpys)


@pytest.mark.parametrize("defer_from", [0, None])
@pytest.mark.parametrize("view", [lambda a: a.T, lambda a: a.transpose(1, 2, 0), lambda a: a, lambda a: a[::-1, 1:]])
@pytest.mark.parametrize("compare", [np.less, np.equal, lambda a, n: np.greater(n, a)])
def test_what_is_compared_by_value_lies_as_numpys(compare, view, defer_from):
    plain = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    with lazyarray.options(defer_from=defer_from):
        ours, numpys = compare(view(lazyarray.asarray(plain)), 300), compare(view(plain), 300)
    assert ours.strides == numpys.strides and np.array_equal(ours, numpys)


def test_every_rule_is_of_a_function_that_runs_on_the_device():
    from lazyarray.functions import tables

    assert not [f for f in memory_order.RULES if f not in tables.ADAPTED]
    assert {*memory_order.RULES.values()} == {"all", "copied", "packed", "rounded", "reduced", "C"}


@pytest.mark.parametrize("order", "CFAK")
@pytest.mark.parametrize("make", [
    lambda a: a[:1], lambda a: a[:, :1], lambda a: a.T[:1], lambda a: a.T, lambda a: a[::2, ::-1], lambda a: a[1:1],
    lambda a: a[0], lambda a: a[None, :, 2], lambda a: a[1, 2:3].reshape(()), lambda a: np.broadcast_to(a[0], (2, 4))])
def test_copies_have_the_strides_of_numpys(make, order):
    plain = make(np.arange(12.0).reshape(3, 4))
    lazy = make(lazyarray.asarray(np.arange(12.0).reshape(3, 4)))
    for copy in (lambda x: x.copy(order), lambda x: x.flatten(order)):
        found, wanted = copy(lazy), copy(plain)
        assert np.array_equal(found, wanted) and (found.strides == wanted.strides or not wanted.size)


@pytest.mark.parametrize("axes", [[0, 3, 1, 2], [2, 0, 3, 1], [3, 2, 1, 0]])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (10, 10, 20, 20)])
def test_rounded_integers_lie_as_copies_do(shape, axes):
    plain = np.arange(np.prod(shape)).reshape(shape)
    x, plain = lazyarray.asarray(plain.copy()).transpose(axes), plain.transpose(axes)
    for decimals in (0, 1):
        found, wanted = np.round(x, decimals), np.round(plain, decimals)
        assert found.strides == wanted.strides and np.array_equal(found, wanted)
