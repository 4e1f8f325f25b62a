"""What a call was met with says what the next ones become, whatever the sizes: results are NumPy's, strides too."""
from __future__ import annotations

import sys

import numpy as np
import pytest

import lazyarray
import lazyarray.numpy
from lazyarray import _native

pytestmark = pytest.mark.skipif(_native.recording is None, reason="nothing is recorded")
DTYPES = ("f8", "f4", "i4", "c16")
UFUNCS = (np.add, np.multiply, np.greater, np.maximum)


@pytest.fixture(autouse=True)
def all_on_device():
    before = _native.recording.small(0)
    yield
    _native.recording.small(before)


def form(random, values, sizes):
    """One of the ways to get an array of some of these lengths, or of ones in their place, from `values`."""
    shape = tuple(int(n) if random.random() < 0.8 else 1 for n in sizes[random.integers(0, len(sizes)):])
    kind = random.integers(0, 6)
    if kind == 0:
        return values(shape)
    if kind == 1:
        return values(shape[::-1]).transpose()
    if kind == 2:
        steps = tuple(slice(0, 2 * n, 2) if random.random() < 0.5 else slice(1, n + 1) for n in shape)
        return values(tuple(2 * n + 1 for n in shape))[steps]
    if kind == 3:
        axes = tuple(random.permutation(len(shape)))
        return values(tuple(shape[i] for i in axes)).transpose(tuple(np.argsort(axes)))
    if kind == 4 and shape:
        return np.broadcast_to(values(shape[1:]), shape)
    return values((*shape[:1], 3, *shape[1:]))[:, 1] if shape else values(shape)


@pytest.mark.parametrize("seed", range(60))
def test_results_are_numpys(seed):
    random = np.random.default_rng(seed)
    for _ in range(12):
        sizes = random.choice([2, 3, 4, 5, 7], random.integers(1, 4), replace=bool(random.integers(0, 2)))
        start = int(random.integers(0, 1 << 30))
        ufunc, wait = UFUNCS[random.integers(0, len(UFUNCS))], random.integers(0, 3)
        dtypes = random.choice(DTYPES, 2)
        if ufunc is np.greater and "c16" in dtypes:
            ufunc = np.add
        operands = []
        for lazy in (False, True):
            same = np.random.default_rng(start)

            def values(shape, dtype, lazy=lazy, same=same):
                made = same.integers(1, 9, shape).astype(dtype)
                return lazyarray.asarray(made) if lazy else made

            two = [form(same, lambda shape, dtype=dtype: values(shape, dtype), sizes) for dtype in dtypes]
            operands.append([x * 1 if wait == k else x for k, x in enumerate(two)])
        try:
            wanted = ufunc(*operands[0])
        except ValueError:
            with pytest.raises(ValueError):
                ufunc(*operands[1])
            continue
        found = ufunc(*operands[1])
        assert (found.shape, found.strides, found.dtype) == (wanted.shape, wanted.strides, wanted.dtype)
        np.testing.assert_array_equal(np.asarray(found), wanted)
        if wanted.ndim and wanted.size > 1 and wanted.dtype == operands[0][0].dtype and (
                operands[0][0].shape == wanted.shape and operands[0][0].flags.writeable):
            for x, y in operands:
                x -= y if np.can_cast(y.dtype, x.dtype, "same_kind") else 1
            np.testing.assert_array_equal(np.asarray(operands[1][0]), operands[0][0])


def calls(work, name):
    """How often a function of the package of this name is called by `work`."""
    found = []

    def called(frame, event, arg):
        if event == "call" and frame.f_code.co_name == name and "lazyarray" in frame.f_code.co_filename:
            found.append(frame.f_code)

    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(None)
    return len(found)


STATEMENTS = {
    "a column and rows": lambda w, p: w[:, None] * p,
    "columns": lambda w, p: p[:, 0] * p[:, 2] + w,
    "two dtypes": lambda w, p: p.astype("f4") + w[:, None],
    "rows turned": lambda w, p: (p.T * w).T,
    "waiting": lambda w, p: (w + 1)[:, None] * (p * 2),
    "a part": lambda w, p: p[:, 1:] + w[:, None],
    "in place": lambda w, p: p.__imul__(w[:, None]),
    "a choice": lambda w, p: np.where(w[:, None] > 1, p, 0.0),
}


@pytest.mark.one_device("with several, all is looked at")
@pytest.mark.parametrize("work", STATEMENTS.values(), ids=STATEMENTS)
def test_new_sizes_are_known(work):
    def run(n):
        w, p = lazyarray.asarray(np.arange(n) * 1.0), lazyarray.asarray(np.ones((n, 3)))
        work(lazyarray.block_until_ready(w.copy()), lazyarray.block_until_ready(p.copy()))

    for n in (4001, 4002):
        run(n)
    assert calls(lambda: run(5003), "_general") == 0


@pytest.mark.one_device("with several, all is looked at")
def test_arange_of_any_length_is_known():
    lazyarray.numpy.arange(1000)
    assert calls(lambda: lazyarray.numpy.arange(1234), "steps_of_range") == 0
    for n in (0, 1, 2, 77, 1234):
        found = lazyarray.numpy.arange(n)
        assert found.dtype == np.arange(n).dtype
        np.testing.assert_array_equal(np.asarray(found), np.arange(n))


NUMBERS = [0, 3, -7, 2.5, float("nan"), True, False, 300, 1 << 40, 1 << 63, 1 << 70]
DTYPES_ASKED = [None, float, int, bool, np.float32, np.dtype("i2"), "u1", "c8", ">f4", "M8[s]", "S3"]


@pytest.mark.filterwarnings("ignore::lazyarray.HostFallbackWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("small", [0, 95_000])
@pytest.mark.parametrize("dtype", DTYPES_ASKED, ids=str)
def test_what_is_filled_is_numpys(dtype, small):
    _native.recording.small(small)
    lnp = lazyarray.numpy
    like = np.ones((300, 40), "f4")[:, ::2]
    lazy = lazyarray.asarray(np.ones((300, 40), "f4"))[:, ::2]
    more = {} if dtype is None else {"dtype": dtype}
    calls = [(name, shape, ()) for name in ("zeros", "ones") for shape in (0, 5, (3, 4), (150, 120), (2, 0, 3), 50_000)]
    calls += [("full", shape, (value,)) for shape in (4, (150, 120)) for value in NUMBERS]
    calls += [(name, None, ()) for name in ("zeros_like", "ones_like")] + [("full_like", None, (v,)) for v in NUMBERS]
    for name, shape, given in calls:
        first, second = (like, lazy) if shape is None else (shape, shape)
        for _ in range(2):
            try:
                wanted = getattr(np, name)(first, *given, **more)
            except (TypeError, ValueError, OverflowError) as error:
                with pytest.raises(type(error)):
                    getattr(lnp, name)(second, *given, **more)
                continue
            found = getattr(lnp, name)(second, *given, **more)
            assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), (name, shape, given)
            assert wanted.size < 2 or found.strides == wanted.strides, (name, shape, given)
            np.testing.assert_array_equal(np.asarray(found), wanted, err_msg=str((name, shape, given)))


@pytest.mark.one_device("with several, all is looked at")
def test_filling_is_known():
    lnp = lazyarray.numpy
    for n in (1000, 2000, 3001):
        x = lnp.zeros((n, 3), dtype=np.float32)
        made = [lnp.full(n, 2.5), lnp.full((n, 2), -1), lnp.full_like(x, 0.5), lnp.zeros_like(x[:, ::2])]
    assert calls(lambda: [lnp.full(4001, 1.5), lnp.full((77, 2), 5), lnp.full_like(x, 9.0), lnp.zeros_like(x[1:])],
                 "_full") == 0
    assert [float(np.asarray(one).flat[-1]) for one in made] == [2.5, -1, 0.5, 0]


@pytest.mark.parametrize("small", [0, 95_000])
@pytest.mark.parametrize("args", [(), (4,), (0,), (1, 7), (7, 1, -2), (2.5,), (0, 1, 0.1), (1, 7, 2, "f4"), (4, None),
                                  (np.float32(3.5), 9), (30_000,)], ids=str)
def test_ranges_by_name(args, small):
    _native.recording.small(small)
    like = lazyarray.asarray([1.0])
    for more in ({}, {"stop": 9}, {"start": 2}, {"start": 2, "stop": 8}, {"step": 3}, {"dtype": "i2"},
                 {"dtype": float, "stop": 12}, {"start": 3, "step": 2, "stop": 20}):
        for make in (lazyarray.numpy.arange, lambda *args, **kwargs: np.arange(*args, **kwargs, like=like)):
            try:
                wanted = np.arange(*args, **more)
            except (TypeError, ValueError) as error:
                with pytest.raises(type(error)):
                    make(*args, **more)
                continue
            found = make(*args, **more)
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(np.asarray(found), wanted)


SQUARES = [(3, 3), (40, 40), (3, 3, 3), (3, 4, 3)]
WRITES = {
    "out": lambda t, e: np.add(e, 0, out=t), "in place": lambda t, e: t.__iadd__(e),
    "assigned": lambda t, e: t.__setitem__(Ellipsis, e), "with an axis more": lambda t, e: t[None].__setitem__(0, e),
    "where": lambda t, e: np.copyto(t, e),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_a_transposed_place_of_the_same_shape(shape, write):
    """What is read along one order of the axes is written along another, and the shape does not tell them apart."""
    values = np.arange(float(np.prod(shape))).reshape(shape)
    wide = np.arange(2.0 * values.size).reshape(*shape[:-1], 2 * shape[-1])
    sources = {
        "reversed": lambda a, w: a[..., ::-1] + 1, "every other": lambda a, w: abs(w[..., ::2]) * 2,
        "a row": lambda a, w: a * 0 + w[(0,) * (len(shape) - 1)][:shape[-1]], "dense": lambda a, w: a * 2,
        "a part": lambda a, w: np.where(w[..., shape[-1]:] > 9, a, -1.0),
    }
    for source in sources.values():
        for _ in range(2):
            v, h = lazyarray.asarray(np.ones(shape)) * 1, np.ones(shape)
            write(v.T, source(lazyarray.asarray(values), lazyarray.asarray(wide)).T)
            write(h.T, source(values, wide).T)
            np.testing.assert_array_equal(np.asarray(v), h)
