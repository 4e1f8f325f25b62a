"""Reading and writing by index is NumPy's: the result, its type, what it shares, what raises, and what is left then.

Indexes, arrays and values are drawn at random, from a seed; a failure names the seed and the statement.
"""
from __future__ import annotations

import random
import warnings

import numpy as np
import pytest

import lazyarray

#: There a result may lie in memory in another order, and to cast NaN, what is negative or too large to integers is
#: undefined, as in C.
ON_CUDA = lazyarray.device().name == "cuda"
DTYPES = ("f8", "i8", "i1", "u1", "u8", "f4", "f2", "c16", "?", "O", "U3", ">i4")
LAYOUTS = {
    "C": lambda a: a, "F": lambda a: a.T, "part": lambda a: a[1:], "reversed": lambda a: a[::-1],
    "strided": lambda a: a[..., ::2], "of rows": lambda a: a.reshape(-1, 1, a.shape[-1]),
}
STATES = ("device", "host", "both", "aliased", "pending", "scratched")


class Either:
    """Something that is made once for NumPy, and once for lazyarray."""

    def __init__(self, text, plain, lazy=None):
        self.text, self.plain, self.lazy = text, plain, lazy or plain

    def __repr__(self):
        return self.text


def just(value, text=None):
    return Either(text or repr(value), lambda: value)


def array(values, text=None):
    values = np.asarray(values)
    return Either(text or f"A({values!r})", values.copy, lambda: lazyarray.asarray(values))


def scalar(value):
    value = np.asarray(value)[()]

    def known():
        s = lazyarray.asarray(np.array([value]))[0]
        hash(s)
        return s

    makers = {
        "S": lambda: lazyarray.asarray(np.array([value]))[0],
        "known S": known,
        "max S": lambda: np.max(lazyarray.asarray(np.array([value])) + 0) if value.dtype.kind in "iuf" else known(),
    }
    name = random_of.choice(tuple(makers))
    return Either(f"{name}({value!r})", lambda: value, makers[name])


random_of = random.Random()


# -- what is drawn -----------------------------------------------------------------------------

def draw_array(state):
    dtype = random_of.choice(DTYPES)
    shape = random_of.choice(((5,), (2, 3), (3, 4), (2, 3, 2), (4, 0), (1, 1), (3, 2)))
    layout = random_of.choice(tuple(LAYOUTS))
    values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    see = LAYOUTS[layout] if shape != (4, 0) else LAYOUTS["C"]

    def lazy():
        base = lazyarray.asarray(values)
        if state == "host" and not values.dtype.hasobject:
            np.asarray(base)[...] = values
        elif state == "both":
            np.asarray(base)
        elif state == "pending":
            base = np.positive(base) if numeric(values.dtype) else base
        elif state == "scratched" and numeric(values.dtype):
            base[...] = base + 0        # a write that is recorded, or not
        return base, see(base)

    def plain():
        base = values.copy()
        return base, see(base)

    return Either(f"{dtype} {shape} {layout} {state}", plain, lazy), values.dtype


def draw_item(n, depth=0):
    """One item of an index, for an axis of length `n`, or for none."""
    r = random_of
    i = r.randrange(-n, n) if n else 0
    many = [r.randrange(-n, n) for _ in range(r.choice((0, 1, 2, 3)))] if n else []
    mask = np.array([r.random() < 0.5 for _ in range(n)], bool)
    s = slice(*(r.choice((None, r.randrange(-3, 4))) for _ in range(2)), r.choice((None, 1, 2, -1, -2)))
    makers = [
        lambda: just(i), lambda: just(s), lambda: just(None), lambda: just(Ellipsis), lambda: just(np.int64(i)),
        lambda: scalar(np.int64(i)), lambda: just(np.array(i)), lambda: array(np.array(i)), lambda: just(many),
        lambda: just(np.array(many, np.intp)), lambda: array(np.array(many, np.intp)),
        lambda: array(np.array(many, np.int8)), lambda: just(mask), lambda: array(mask), lambda: just(mask.tolist()),
        lambda: just([many, many]), lambda: just(slice(None)), lambda: just(slice(None)), lambda: just(i),
    ]
    odd = [
        lambda: just(True), lambda: just(np.False_), lambda: just(n + 3), lambda: just(np.array([0, n + 2])),
        lambda: array(np.array([-n - 1])), lambda: just(1.0), lambda: just(np.array([0.5])), lambda: just("a"),
        lambda: just(np.array([0], object)), lambda: just(cycle(), "a cycle"), lambda: just([[0], [0, 1]]),
        lambda: array(np.array(True)), lambda: just(np.array(n + 1)), lambda: just({}), lambda: just(np.zeros((2, 0))),
        lambda: array(np.array(1.5)), lambda: scalar(0.5), lambda: just([None]), lambda: just(np.uint64(i % max(n, 1))),
        lambda: Either("[S]", lambda: [np.int64(i)], lambda: [lazyarray.asarray(np.array([i]))[0]]),
        lambda: Either("[A]", lambda: [np.array([0])], lambda: [lazyarray.asarray(np.array([0]))]),
        lambda: just(()), lambda: just((0, 0)), lambda: just(np.array([], float)), lambda: just([]),
    ]
    return r.choice(odd if r.random() < 0.15 else makers)()


def cycle():
    found = [1]
    found.append(found)
    return found


def draw_index(shape):
    r = random_of
    if r.random() < 0.5:
        item = draw_item(shape[0])
        return Either(f"[{item}]", item.plain, item.lazy)
    if r.random() < 0.1:
        mask = np.arange(np.prod(shape)).reshape(shape) % 3 == 0
        return r.choice((just, array))(mask)
    items = [draw_item(n) for n in shape[:r.randint(1, len(shape) + (r.random() < 0.1))]]
    if r.random() < 0.3:
        items.insert(r.randint(0, len(items)), just(None))
    if r.random() < 0.2 and not any("Ellipsis" in i.text for i in items):
        items.insert(r.randint(0, len(items)), just(Ellipsis))
    return Either(f"{items}", lambda: tuple(i.plain() for i in items), lambda: tuple(i.lazy() for i in items))


NUMBERS = (0, 7, -1, 1.5, float("nan"), float("inf"), 200, 300, 2 ** 63, 2 ** 70, True, 1j, -0.0)


def draw_value(shape, dtype):
    r = random_of
    number = r.choice(NUMBERS)
    kind = r.choice(("f8", "i8", "u1", "c16", "f4", "i1", "?"))
    if r.random() < 0.4:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one = np.array(r.choice((0, 1, 3) if ON_CUDA else (0, 1, 3, -2, 200, np.nan, 1e30))).astype(kind)[()]
        return r.choice((just(number), just(one), scalar(one), just(np.array(one)), array(np.array(one)),
                         array(np.array([one])), just("a"), just(None), just(cycle(), "a cycle"), just([]),
                         just([number]), just([[number]]), just([1, number]), just([1, "a"])))
    full = shape if r.random() < 0.7 else r.choice((shape[1:], (1, *shape), (*shape, 1), (1,) * len(shape), (2,), (3,)))
    values = (np.arange(np.prod(full)) % 5).reshape(full).astype(kind)
    if values.size and r.random() < 0.3 and values.dtype.kind in "fc":
        values.flat[-1] = 1 if ON_CUDA else np.nan
    scalars = Either(f"list of S {values!r}", lambda: list(map(np.asarray(values).dtype.type, values.ravel())),
                     lambda: [lazyarray.asarray(values.ravel())[i] for i in range(values.size)])
    return r.choice((array(values), array(values), just(values), just(values.tolist()), just(values.astype(object)),
                     just(values.astype("U5")), scalars))


# -- what is compared --------------------------------------------------------------------------

def outcome(function):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function()
        except RecursionError:
            raise
        except Exception as error:  # noqa: BLE001  whatever it is, its type is compared
            return type(error)


def seen(x):
    """All that tells one array or scalar from another."""
    if isinstance(x, type):
        return x
    if isinstance(x, np.ndarray):
        return "array", x.dtype, x.shape, repr(x.tolist()), x.flags.writeable
    if isinstance(x, np.generic):
        return "scalar", type(x.item()), x.dtype, repr(x.item())
    return type(x), x


def same(got, expected, what):
    assert seen(got) == seen(expected), what


def draw(seed):
    random_of.seed(seed)
    state = random_of.choice(STATES)
    made, dtype = draw_array(state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (plain_base, plain), (lazy_base, lazy) = made.plain(), made.lazy()
        index = draw_index(plain.shape)
        alias = np.asarray(lazy_base) if state == "aliased" else None
    return made, dtype, index, plain_base, plain, lazy_base, lazy, alias


def numeric(dtype):
    return dtype.kind in "iufc" and dtype.isnative


SEEDS = 25
EACH = 40


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_is_read_by_an_index_is_numpys(seed):
    for n in range(EACH):
        made, dtype, index, plain_base, plain, lazy_base, lazy, alias = draw(f"read {seed} {n}")
        what = f"{seed} {n}: {made} {index}"
        expected = outcome(lambda: plain[index.plain()])
        got = outcome(lambda: lazy[index.lazy()])
        same(got, expected, what)
        if isinstance(expected, type) or not isinstance(expected, np.ndarray):
            continue
        shares = np.shares_memory(plain_base, expected)
        assert np.shares_memory(lazy_base, got) == shares, what
        if shares:
            assert got.strides == expected.strides, what
        elif expected.size:     # a stride along one element is nobody's
            assert [s for s, n in zip(got.strides, got.shape) if n > 1] == [
                s for s, n in zip(expected.strides, expected.shape) if n > 1], what
        # Written to, it is seen where it is shared, and what was recorded before is as it was.
        before = plain_base * 2 if numeric(dtype) else None
        recorded = lazy_base * 2 if numeric(dtype) else None
        expected[...] = got[...] = np.array(3).astype(dtype)
        same(lazy_base, plain_base, what)
        if alias is not None:
            assert alias.tolist() == plain_base.tolist(), what
        if recorded is not None:
            assert recorded.tolist() == before.tolist(), what
        if dtype.kind != "O":
            plain_base[...] = lazy_base[...] = np.array(1).astype(dtype)
            same(got, expected, what)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_is_written_by_an_index_is_numpys(seed):
    for n in range(EACH):
        made, dtype, index, plain_base, plain, lazy_base, lazy, alias = draw(f"write {seed} {n}")
        target = outcome(lambda: plain[index.plain()])
        value = draw_value(getattr(target, "shape", (2,)) if not isinstance(target, type) else (2,), dtype)
        what = f"{seed} {n}: {made} {index} = {value}"
        before = plain_base * 2 if numeric(dtype) else None
        recorded = lazy_base * 2 if numeric(dtype) else None
        expected = outcome(lambda: plain.__setitem__(index.plain(), value.plain()))
        got = outcome(lambda: lazy.__setitem__(index.lazy(), value.lazy()))
        assert got == expected, what
        same(lazy_base, plain_base, what)
        if alias is not None and dtype.kind != "O":
            assert repr(alias.tolist()) == repr(plain_base.tolist()), what
        if recorded is not None:
            assert recorded.tolist() == before.tolist(), what


@pytest.mark.parametrize("dtype", [">i8", ">i4", "<i8", ">u2"])
def test_positions_of_the_other_byte_order(dtype):
    with lazyarray.options(small_on_host=False):
        plain, index = np.arange(8.0), np.array([1, 2, 5], dtype)
        x = lazyarray.asarray(plain)
        assert np.array_equal(x[index], plain[index]) and np.array_equal(x.reshape(4, 2)[index[:2], index[:1] % 2],
                                                                         plain.reshape(4, 2)[index[:2], index[:1] % 2])
        x[index] = 9
        plain[index] = 9
        assert np.array_equal(x, plain)
