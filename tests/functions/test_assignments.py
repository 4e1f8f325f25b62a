"""`copyto` and `fill_diagonal`, which are one assignment where the call is plain: what NumPy does, errors included."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray

pytestmark = pytest.mark.filterwarnings("ignore")

DTYPES = "f8", "f4", "i8", "i1", "u2", "?", "c16"


@pytest.fixture(autouse=True, params=[True, False], ids=["small on the host", "all on the device"])
def place(request):
    with lazyarray.options(small_on_host=request.param):
        yield


def same(statement, make):
    """`statement` of arrays of NumPy's and lazy ones: the same elements and errors."""
    outcomes = []
    for lazy in (lambda x: x, lazyarray.asarray):
        arrays = {name: lazy(value.copy()) if isinstance(value, np.ndarray) else value
                  for name, value in make().items()}
        error = None
        try:
            result = statement(**arrays)
            assert result is None
        except Exception as raised:  # noqa: BLE001  NumPy's is compared
            error = type(raised)
        outcomes.append((error, {name: np.asarray(value).tolist() for name, value in arrays.items()}))
    assert repr(outcomes[0]) == repr(outcomes[1])


@pytest.mark.parametrize("casting", ["same_kind", "safe", "no", "equiv", "unsafe", "none of these"])
@pytest.mark.parametrize("target", DTYPES)
def test_copyto(target, casting):
    x = (np.arange(12).reshape(3, 4) % 2).astype(target)
    values = [np.ones((3, 4), dtype) for dtype in DTYPES] + [
        np.ones(4, target), np.ones((1, 3, 4), target), np.ones((2, 4), target), np.ones((), target),
        np.ones((3, 1), "f4"), 0, 1.5, True, 300, -1, 1j, "1", None, np.float64(2), np.int8(3), [1, 2, 3, 4],
        np.nan, np.inf, 1e300]
    for value in values:
        same(lambda x, value: np.copyto(x, value, casting), lambda value=value: {"x": x, "value": value})
        same(lambda x, value: np.copyto(x[:, ::2], value, casting=casting),
             lambda value=value: {"x": x, "value": value})


def test_copyto_of_itself_where_and_wrong_calls():
    x = np.arange(12.0).reshape(3, 4)
    for statement in (
            lambda x: np.copyto(x, x), lambda x: np.copyto(x, x[::-1]), lambda x: np.copyto(x[1:], x[:-1]),
            lambda x: np.copyto(x, x[0]), lambda x: np.copyto(x, 0, where=x > 3),
            lambda x: np.copyto(x, x.T), lambda x: np.copyto(x, 1, where=False),
            lambda x: np.copyto(x, 1, "safe", True), lambda x: np.copyto(x),
            lambda x: np.copyto(x, 1, nothing=1), lambda x: np.copyto(dst=x, src=2), lambda x: np.copyto(x[:0], 2),
            lambda x: np.copyto(np.zeros((3, 4)), x)):
        same(statement, lambda: {"x": x})


@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("view", [
    lambda x: x[1:], lambda x: np.broadcast_to(x, (2, 30, 40)), lambda x: x[:, ::-2].T, lambda x: x[:0],
    lambda x: np.lib.stride_tricks.sliding_window_view(x[:, ::2], 3, axis=-1), lambda x: x[0, 0]], ids=range(6))
def test_what_is_read_only_takes_its_own_elements_alone(view, dtype):
    def part_of_itself(v, name):
        setattr(v, name, getattr(v, name))
    for statement in (
            lambda v: np.copyto(v, v), lambda v: np.copyto(v, v[...], "no"), lambda v: np.copyto(v.T, v.T),
            lambda v: np.copyto(v, v, where=True),
            lambda v: np.copyto(v, v[::-1]), lambda v: np.copyto(v, v.copy()), lambda v: np.copyto(v, 1),
            lambda v: v.__setitem__(..., v), lambda v: part_of_itself(v, "real"), lambda v: part_of_itself(v, "imag"),
            lambda v: setattr(v, "real", v)):
        def of_view(x, statement=statement):
            v = view(x)
            if isinstance(v, np.ndarray):
                v.setflags(write=False)
            statement(v)
        same(of_view, lambda: {"x": np.arange(1200).reshape(30, 40).astype(dtype)})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (7, 3), (1, 1), (0, 3), (3,), (3, 3, 3), (2, 3, 4)])
def test_fill_diagonal(shape, dtype):
    x = np.ones(shape, dtype)
    for value in (0, 2.5, True, np.nan, 300, 1j, np.float32(2), [1, 2], [[7]], np.arange(3.0)):
        for wrap in (False, True, 1):
            same(lambda x, value, wrap=wrap: np.fill_diagonal(x, value, wrap),
                 lambda value=value: {"x": x, "value": value})
            same(lambda x, value, wrap=wrap: np.fill_diagonal(x.T, value, wrap),
                 lambda value=value: {"x": x, "value": value})
    if x.ndim == 2:
        same(lambda x: np.fill_diagonal(x[:, 1:], 5.0), lambda: {"x": x})


def test_what_cannot_be_written():
    for statement in (lambda x: np.copyto(x, 1.0), lambda x: np.fill_diagonal(x, 1.0)):
        messages = []
        for lazy in (lambda x: x, lazyarray.asarray):
            x = lazy(np.zeros((3, 3)))
            x.flags.writeable = False
            with pytest.raises(ValueError, match="read-only") as raised:
                statement(x)
            messages.append(str(raised.value))
        assert messages[0] == messages[1]


@pytest.mark.parametrize("dtype", DTYPES)
def test_put(dtype):
    """An index of range raises once what comes before it is written."""
    rng = np.random.default_rng(3)
    for shape in ((10,), (3, 4), (2, 3, 2), ()):
        x = (rng.random(shape) * 9).astype(dtype)
        for places in ([1, 0, -1, 1], [2, 50, 0, 1], [-50, 0, 1, 2], []):
            for value in (0.5, 3, True, 1j, np.float64(2), np.arange(4).astype(dtype), np.arange(3.0), np.arange(4.0)):
                for index in ("i8", "u1", "u8", "f8"):
                    given = np.array(places).astype(index)
                    same(lambda x, i, v: np.put(x, i, v), lambda v=value, i=given, x=x: {"x": x, "i": i, "v": v})
            whole = np.array(places, int)
            if 50 not in np.abs(places):
                same(lambda x, i: np.put(x, i, x.reshape(-1)[:4]), lambda x=x, i=whole: {"x": x, "i": i})
            same(lambda x, i: np.put(x, i, 1, mode="wrap"), lambda x=x, i=whole: {"x": x, "i": i})


POSITIONS = [3, 4, 10 ** 6]


@pytest.mark.parametrize("statement", [
    lambda x, i: np.put(x, POSITIONS, x[5:8]), lambda x, i: np.put(x, np.array(POSITIONS), x[5:8]),
    lambda x, i: x.put(POSITIONS, x[5:8]), lambda x, i: np.put(v=x[5:8], ind=POSITIONS, a=x),
    lambda x, i: np.put(x[:7], POSITIONS, x[5:8]), lambda x, i: np.put(x[:5], POSITIONS, x[5:8]),
    lambda x, i: np.put(x[::2], POSITIONS, -1), lambda x, i: np.put(x, POSITIONS, x[::-1]),
    lambda x, i: np.put(np.asarray(x), POSITIONS, x[5:8]), lambda x, i: np.put(i, i[3:40], -1),
    lambda x, i: np.put(i, np.append(i[3:5], 10 ** 6), i[3:40]), lambda x, i: np.put(x, POSITIONS, -1),
    lambda x, i: np.putmask(x, x > 3, x[5:7])], ids=range(13))
def test_values_in_the_memory_that_is_written(statement):
    same(statement, lambda: {"x": np.arange(40.0), "i": np.arange(40) * 2})


def test_no_positions_of_a_dtype_that_numpy_refuses_or_takes():
    for places in (np.array([]), np.array([[]]), np.array([], "f4"), np.array([], "U1"), np.array([], object), [], (),
                   [[]]):
        for statement in (
                lambda x, i=places: np.put(x, i, -1), lambda x, i=places: np.put(x, i, -1, mode="clip"),
                lambda x, i=places: x.put(i, -1), lambda x, i=places: None if np.take(x, i, 0).size == 0 else 1):
            same(statement, lambda: {"x": np.arange(4.0)})
