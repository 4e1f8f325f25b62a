"""Dask: chunks stay lazy, names of tasks follow the content, and results travel between processes."""
from __future__ import annotations

import configparser
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lazyarray
from lazyarray.integrations.content_hash import digest
from lazyarray.storage import handles
from lazyarray.testing import assert_copies

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
pytestmark = pytest.mark.filterwarnings("ignore")

from dask.base import tokenize  # noqa: E402  after Dask is known to be there
from dask.sizeof import sizeof  # noqa: E402

PLAIN = np.random.default_rng(0).random((40, 30))
ROW = np.random.default_rng(1).random(100)


@pytest.fixture(autouse=True)
def one_thread():
    """What another thread copies, only a trace of the process hears."""
    with dask.config.set(scheduler="synchronous"):
        yield


def test_registered_when_dask_is_imported_and_not_before():
    code = (
        "import sys, lazyarray\n"
        "assert not any(name.split('.')[0] in ('dask', 'distributed') for name in sys.modules)\n"
        "assert not hasattr(lazyarray.LazyNdarray, '__dask_tokenize__')\n"
        "import dask.array as da\n"
        "x = lazyarray.asarray([1.0, 2.0])\n"
        "print(type((x + da.ones(2, chunks=1)).compute()).__name__, x.__dask_tokenize__()[0])\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["LazyNdarray", "LazyNdarray"] and not found.stderr


# -- what functions of chunks give -----------------------------------------------------------------

def added(block):
    return block + np.roll(block, 1, 0)


NOTHING_MOVES = {
    "itself": lambda d: d,
    "arithmetic": lambda d: (d + 1) * d - d / 2,
    "ufunc": lambda d: np.sin(d) ** 2,
    "comparison": lambda d: (d > 0.5) & (d < 0.7),
    "with a lazy array": lambda d, x: x - d / x,
    "astype": lambda d: d.astype("f4"),
    "clip": lambda d: d.clip(0.2, 0.8),
    "sum": lambda d: d.sum(),
    "sum along an axis": lambda d: d.sum(axis=0),
    "mean": lambda d: d.mean(),
    "mean along an axis": lambda d: d.mean(axis=1),
    "mean, dimensions kept": lambda d: d - d.mean(axis=(0, 1), keepdims=True),
    "std along an axis": lambda d: d.std(axis=0),
    "var along an axis": lambda d: d.var(axis=1),
    "max": lambda d: d.max(),
    "min along an axis": lambda d: d.min(axis=0),
    "any": lambda d: (d > 0.5).any(axis=0),
    "all": lambda d: (d > 0.5).all(),
    "nansum": lambda d: da.nansum(d),
    "nanmean": lambda d: da.nanmean(d, axis=0),
    "nanstd": lambda d: da.nanstd(d, axis=0),
    "median": lambda d: da.median(d, axis=0),
    "cumsum": lambda d: d.cumsum(axis=0),
    "topk": lambda d: da.topk(d, 3, axis=0),
    "ptp": lambda d: da.ptp(d, axis=0),
    "reduction": lambda d: da.reduction(
        d, chunk=lambda a, axis, keepdims: a.sum(axis=axis, keepdims=keepdims),
        aggregate=lambda a, axis, keepdims: a.sum(axis=axis, keepdims=keepdims), dtype="f8"),
    "T": lambda d: d.T,
    "dot": lambda d: d.T.dot(d),
    "matmul": lambda d: d.T @ d,
    "tensordot": lambda d: da.tensordot(d, d, axes=([0], [0])),
    "einsum": lambda d: da.einsum("ij,ik->jk", d, d),
    "outer": lambda d: da.outer(d[0], d[1]),
    "cov": lambda d: da.cov(d),
    "concatenate": lambda d: da.concatenate([d, d], axis=1),
    "np.concatenate": lambda d, x: np.concatenate([d, x]),
    "stack": lambda d: da.stack([d, d]),
    "block": lambda d: da.block([[d, d], [d, d]]),
    "rechunk": lambda d: d.rechunk((7, 11)),
    "slices": lambda d: d[3:25:2, 1:],
    "negative step": lambda d: d[::-1],
    "integer": lambda d: d[3],
    "mask": lambda d: d[d > 0.5],
    "assignment": lambda d: (d.__setitem__((slice(0, 5),), 0.0), d)[1],
    "where": lambda d: da.where(d > 0.5, d, 0),
    "reshape": lambda d: d.reshape(1200),
    "ravel": lambda d: d.ravel(),
    "flip": lambda d: da.flip(d, 0),
    "roll": lambda d: da.roll(d, 3, axis=0),
    "pad": lambda d: da.pad(d, 2, mode="edge"),
    "tile": lambda d: da.tile(d, (2, 1)),
    "diff": lambda d: da.diff(d, axis=0),
    "gradient": lambda d: da.gradient(d, axis=0),
    "coarsen": lambda d: da.coarsen(np.mean, d, {0: 2, 1: 2}),
    "histogram": lambda d: da.histogram(d, bins=5, range=(0, 1))[0],
    "bincount": lambda d: da.bincount((d * 4).astype(int).ravel(), minlength=5),
    "qr": lambda d: abs(da.linalg.qr(d.rechunk((10, 30)))[1]),
    "svd": lambda d: da.linalg.svd(d.rechunk((10, 30)))[1],
    "norm": lambda d: da.linalg.norm(d),
    "fft": lambda d: da.fft.fft(d.rechunk((10, 30)), axis=1),
    "map_blocks": lambda d: d.map_blocks(lambda block: block * 2),
    "map_overlap": lambda d: d.map_overlap(added, depth=1, boundary="reflect"),
    "map_overlap with nothing beyond": lambda d: d.map_overlap(lambda block: block * 2, depth=1, boundary="none"),
    "map_overlap with zeros beyond": lambda d: d.map_overlap(added, depth=1, boundary=0),
    "apply_gufunc": lambda d: da.apply_gufunc(lambda a: a.mean(axis=-1), "(i)->()", d.rechunk((10, 30))),
    "blockwise": lambda d: da.blockwise(np.multiply, "ij", d, "ij", d, "ij", dtype="f8"),
    "ones_like": lambda d: da.ones_like(d) + d,
    "allclose": lambda d: da.allclose(d, d),
}


LITTLE_MOVES = {
    "a list of rows": (lambda d: d[[1, 5, 30, 2]], 108, 0),
    "an array of columns": (lambda d: d[:, np.array([3, 1, 29])], 108, 0),
    "points": (lambda d: d.vindex[[1, 2, 35], [3, 4, 5]], 9, 0),
    "take": (lambda d: da.take(d, [1, 2, 3], axis=0), 9, 0),
    "compress": (lambda d: da.compress(np.arange(40) % 2 == 0, d, axis=0), 540, 0),
    "assignment by a mask": (lambda d: (d.__setitem__(d > 0.5, 0.0), d)[1], 0, 0),
    "isin": (lambda d: da.isin((d * 4).astype(int), [1, 2]), 192, 0),
    "digitize": (lambda d: da.digitize(d, np.array([0.2, 0.5])), 192, 0),
    "constant pad": (lambda d: da.pad(d, 2, mode="constant"), 72, 0),
    "triu": (lambda d: da.triu(d[:30]), 900, 0),
    "quantile": (lambda d: da.quantile(d, [0.1, 0.5], axis=0), 16, 0),
    "percentile along an axis": (lambda d: da.percentile(d, [10, 50], axis=0), 16, 0),
    "beside host chunks": (lambda d: d + da.from_array(PLAIN, chunks=10), PLAIN.nbytes, 0),
    "concatenated with host chunks": (
        lambda d: da.concatenate([da.from_array(PLAIN, chunks=10), d]), PLAIN.nbytes, 0),
    "with scalars": (lambda d, x: x.sum() - d * x.max(), 0, 0),     # their values are in the names of the tasks
    "std": (lambda d: d.std(), 0, 8),                   # the degrees of freedom, a float64: are they negative?
    # Dask keeps the partial results of these in structured arrays, which live on the host: an element of each
    # reduced row of a chunk, and its position.
    "argmax along an axis": (lambda d: d.argmax(axis=0), 480, 12 * 20 * 8 * 2),
    "argmin": (lambda d: d.argmin(), 480, 12 * 4 * 8),
}


def arguments(function, d, x):
    return (d, x) if function.__code__.co_argcount == 2 else (d,)


def computed(function, chunks=10, plain=PLAIN):
    """(what Dask computes of NumPy's chunks, the same of lazy ones not yet computed, a trace of how that was made)."""
    wanted = function(*arguments(function, da.from_array(plain, chunks=chunks), plain)).compute()
    x = lazyarray.asarray(plain)
    with lazyarray.trace() as building:
        result = function(*arguments(function, da.from_array(x, chunks=chunks), x))
    return np.asarray(wanted), result, building


@pytest.mark.parametrize("function", NOTHING_MOVES.values(), ids=NOTHING_MOVES)
def test_nothing_is_copied(function):
    wanted, result, building = computed(function)
    assert not building.nbytes, building
    with lazyarray.no_transfers():
        got = result.compute()
    assert lazyarray.is_lazy(got)
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-6)


@pytest.mark.parametrize(("function", "up", "down"), LITTLE_MOVES.values(), ids=LITTLE_MOVES)
def test_what_is_copied_is_small(function, up, down):
    wanted, result, building = computed(function)
    with lazyarray.trace() as trace:
        got = result.compute()
    assert building.nbytes <= 16, building
    assert sum(event.nbytes for event in trace.uploads) <= up, trace
    assert sum(event.nbytes for event in trace.materialisations) <= down, trace
    assert lazyarray.is_lazy(got) and not trace.fallbacks
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-6)


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "nearest", "midpoint"])
@pytest.mark.parametrize("q", [50, [10, 50, 99]], ids=["one", "several"])
def test_percentiles_of_chunks(q, method):
    wanted, result, _ = computed(lambda d: da.percentile(d, q, method=method), chunks=20, plain=ROW)
    got = result.compute()
    assert lazyarray.is_lazy(got)
    np.testing.assert_allclose(np.asarray(got), wanted)


@pytest.mark.parametrize("function", [
    lambda d: da.linalg.inv(d.T @ d + da.eye(30, chunks=10)), lambda d: da.linalg.solve(
        d.T @ d + da.eye(30, chunks=10), d[0]), lambda d: da.unique((d * 4).astype(int)), lambda d: da.nonzero(
        d > 0.5)[0], lambda d: da.apply_along_axis(np.sum, 0, d)], ids=["inv", "solve", "unique", "nonzero", "along"])
def test_what_runs_on_the_host_is_right_too(function):
    wanted, result, _ = computed(function)
    np.testing.assert_allclose(np.asarray(result.compute()), wanted, rtol=1e-6, atol=1e-9)


def test_the_whole_way_is_one_upload_and_one_materialisation():
    with assert_copies(1, 1, nbytes=PLAIN.nbytes + 240):
        result = (da.from_array(lazyarray.asarray(PLAIN), chunks=10) * 2).sum(axis=0)
        np.asarray(result)


def test_threads_compute_lazy_chunks():
    chunked = da.from_array(lazyarray.asarray(PLAIN), chunks=5)
    with lazyarray.trace(process=True) as trace:
        got = ((chunked - chunked.mean(axis=0)) ** 2).sum().compute(scheduler="threads")
    assert not trace.nbytes and lazyarray.is_lazy(got)
    assert got == pytest.approx(((PLAIN - PLAIN.mean(axis=0)) ** 2).sum())


def test_what_is_computed_is_nobody_elses():
    # Dask promises so, also for a single chunk that lies in the graph.
    chunked = da.from_array(lazyarray.asarray(PLAIN), chunks=-1)
    got = chunked.compute()
    got[:] = 0
    np.testing.assert_array_equal(np.asarray(chunked), PLAIN)


def test_the_kind_of_chunk_is_told():
    chunked = da.from_array(lazyarray.asarray(PLAIN), chunks=10)
    assert "chunktype=lazyarray.LazyNdarray" in repr(chunked + 1)
    assert chunked.sum().compute() == pytest.approx(PLAIN.sum())


def test_store_and_save(tmp_path):
    chunked = da.from_array(lazyarray.asarray(PLAIN), chunks=10) * 2
    for target in (np.zeros(PLAIN.shape), lazyarray.asarray(np.zeros(PLAIN.shape))):
        chunked.store(target, lock=False)
        np.testing.assert_array_equal(np.asarray(target), PLAIN * 2)
    da.to_npy_stack(tmp_path / "stack", chunked)
    np.testing.assert_array_equal(np.asarray(da.from_npy_stack(tmp_path / "stack")), PLAIN * 2)


def test_delayed_functions_take_and_give_lazy_arrays():
    x = lazyarray.asarray(PLAIN)
    doubled = dask.delayed(lambda a: a * 2)(x)
    with lazyarray.no_transfers():
        got = da.from_delayed(doubled, x.shape, meta=x[:0]).sum(axis=0).compute()
    np.testing.assert_allclose(np.asarray(got), PLAIN.sum(axis=0) * 2)


# -- other kinds of chunks --------------------------------------------------------------------------

@pytest.mark.parametrize("make", [
    lambda: da.ones((20, 3), chunks=5), lambda: da.zeros((20, 3), chunks=5, dtype="i4"), lambda: da.full(
        (20, 3), 7.0, chunks=5), lambda: da.empty((20, 3), chunks=5), lambda: da.arange(20, chunks=5)],
    ids=["ones", "zeros", "full", "empty", "arange"])
def test_dask_makes_lazy_chunks_when_asked(make):
    plain = make()
    assert type(plain._meta) is np.ndarray
    with dask.config.set({"array.backend": "lazyarray"}), lazyarray.no_transfers():
        made = make()
        got = made.compute()
    assert lazyarray.is_lazy(made._meta) and lazyarray.is_lazy(got)
    assert got.dtype == plain.dtype and got.shape == plain.shape
    if made.name.split("-")[0] not in ("empty", "empty_like"):
        np.testing.assert_array_equal(np.asarray(got), plain.compute())


def test_to_the_device_and_back():
    chunked = da.from_array(PLAIN, chunks=10).to_backend("lazyarray")
    assert lazyarray.is_lazy(chunked._meta) and chunked.to_backend("lazyarray") is chunked
    with assert_copies(12, 0):
        got = chunked.sum().compute()
    assert lazyarray.is_lazy(got)
    from dask.array.dispatch import to_cupy_dispatch, to_numpy_dispatch
    x = lazyarray.asarray(PLAIN)
    assert type(to_numpy_dispatch(x)) is np.ndarray
    assert type(chunked.map_blocks(to_numpy_dispatch).compute()) is np.ndarray
    assert to_cupy_dispatch(x) is not x and isinstance(to_cupy_dispatch(x), lazyarray.device().array_type)


def test_dask_finds_the_backend_by_itself():
    # In a program that imports Dask alone, and has lazyarray installed.
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(Path(__file__).parents[2] / "setup.cfg")
    name, _, path = settings["options.entry_points"]["dask.array.backends"].strip().partition(" = ")
    module, _, function = path.partition(":")
    code = (f"import dask.array as da; from importlib import import_module; from dask.array import backends; "
            f"backends.array_creation_dispatch.register_backend({name!r}, import_module({module!r}).{function}()); "
            f"import dask; dask.config.set({{'array.backend': {name!r}}}); print(type(da.ones(3).compute()).__name__)")
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["LazyNdarray"] and not found.stderr


# -- names of tasks --------------------------------------------------------------------------------

DTYPES = ["?", "i1", "u2", "f2", "f4", "f8", "c8", "c16", "i8"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_equal_content_has_one_token_wherever_it_lies(dtype):
    plain = (PLAIN * 100).astype(dtype)
    x = lazyarray.asarray(plain)
    wanted = tokenize(x)
    on_host = handles.from_host(plain, eager=False)
    assert on_host._self_storage.state == "host"
    both_sides = lazyarray.asarray(plain)
    np.asarray(both_sides)
    others = [on_host, both_sides, x.copy(order="F"), x[:], x.T.copy().T, lazyarray.asarray(
        np.concatenate([plain, plain]))[40:], lazyarray.asarray(np.repeat(plain, 2, axis=1))[:, ::2]]
    assert {tokenize(other) for other in others} == {wanted}
    assert tokenize(plain) != wanted        # or lazy chunks would be taken for host chunks


@pytest.mark.parametrize("plain", [
    np.array(["a", "bb"]), np.array([1, "x", None], dtype=object), np.array(["2020-01-01"], "M8[s]"),
    np.zeros(3, "f4,i2"), np.arange(3, dtype=">f8"), np.arange(3, dtype=np.longdouble), np.array([b"x", b"yy"]),
    *([np.array(["a", "a longer string than fits"], np.dtypes.StringDType())] if hasattr(
        np.dtypes, "StringDType") else [])], ids=lambda plain: str(plain.dtype))
def test_tokens_of_what_lives_on_the_host(plain):
    token = tokenize(lazyarray.asarray(plain))
    assert token == tokenize(lazyarray.asarray(plain.copy()))
    for other in (plain[[-1, *range(len(plain))]], plain[:0]):
        assert token != tokenize(lazyarray.asarray(other))


def test_each_bit_counts():
    size = 3 * 64 * 1024 + 5
    plain = np.random.default_rng(2).integers(0, 256, size).astype(np.uint8)
    x = lazyarray.asarray(plain)
    seen = {digest(x)}
    places = [0, 1, 3, 4, 65535, 65536, size - 6, size - 5, size - 1, *range(7, size, 9973)]
    for place in places:
        for bit in (1, 128):
            x[place] ^= np.uint8(bit)
            seen.add(digest(x))
            x[place] ^= np.uint8(bit)
    assert len(seen) == 1 + 2 * len(places)
    assert digest(x) in seen


@pytest.mark.parametrize("change", [
    lambda a: np.negative(a, out=a), lambda a: a.__setitem__([1, 2], -a[[1, 2]]), lambda a: a.__setitem__(
        [0, 1], a[[1, 0]]), lambda a: a.__setitem__(slice(None), a[::-1].copy()), lambda a: a.__setitem__(
        5, -0.0), lambda a: a.__iadd__(2.0 ** -40), lambda a: a.__setitem__([16384 // 2, 0], a[[0, 16384 // 2]])],
    ids=["all signs", "two signs", "two exchanged", "reversed", "zero's sign", "last bits", "between blocks"])
def test_changes_that_sums_would_not_see(change):
    plain = np.random.default_rng(3).random(20000)
    plain[5] = 0.0
    x = lazyarray.asarray(plain)
    before = tokenize(x)
    change(x)
    assert tokenize(x) != before
    x[:] = plain
    assert tokenize(x) == before


def test_shape_and_dtype_count():
    x = lazyarray.asarray(np.zeros(24))
    views = [x, x.reshape(4, 6), x.reshape(6, 4), x.view("i8"), x[:23], x[:0], x[:0].reshape(0, 3)]
    assert len({tokenize(view) for view in views}) == len(views)


@pytest.mark.together
def test_tokens_follow_what_aliases_and_device_code_write():
    x = lazyarray.asarray(PLAIN)
    alias = np.asarray(x)
    tokens = [tokenize(x)]
    alias[3, 4] = -1
    tokens.append(tokenize(x))
    lazyarray.asdevice(x)[5, 6] = -2
    tokens.append(tokenize(x))
    x[7, 8] = -3
    tokens.append(tokenize(x))
    assert len(set(tokens)) == 4
    assert tokens[-1] == tokenize(lazyarray.asarray(np.asarray(x).copy()))


def test_a_token_moves_16_bytes_of_64_kib():
    x = lazyarray.asarray(np.zeros(1 << 17))
    with lazyarray.no_transfers(), lazyarray.trace() as trace:
        da.from_array(x, chunks=1 << 14)
    assert sum(event.nbytes for event in trace.events) == (1 << 20 >> 16) * 16


def test_digests_do_not_depend_on_process_or_version():
    # Names of tasks are kept beyond a process, and compared between machines.
    x = lazyarray.asarray(np.arange(40000, dtype="<i4"))
    assert digest(x) == "b14fef7070381afdb49233dcb79b576a"
    assert digest(x[:0]) == "c804ce198ec337e3dc762bdd1a09aece"


def test_deterministic_tokens_may_be_demanded():
    x = lazyarray.asarray(PLAIN)
    assert tokenize(x, ensure_deterministic=True) == tokenize(x)
    assert tokenize(x.sum(), ensure_deterministic=True) == tokenize(x.sum())


def test_what_changed_is_computed_anew():
    x = lazyarray.asarray(PLAIN)
    first = da.from_array(x, chunks=10)
    x[0, 0] = 100
    second = da.from_array(x, chunks=10)
    assert first.name != second.name
    assert dask.compute(first.max(), second.max()) == (PLAIN.max(), 100)


# -- sizes -----------------------------------------------------------------------------------------

def test_both_sides_are_counted():
    x = lazyarray.asarray(PLAIN)
    assert sizeof(x) == PLAIN.nbytes
    np.asarray(x)
    assert sizeof(x) == 2 * PLAIN.nbytes
    assert sizeof(x[:3]) == 2 * PLAIN[:3].nbytes
    assert sizeof(np.broadcast_to(x[0], (1000, 30))) == 2 * PLAIN[0].nbytes
    assert sizeof(handles.from_host(PLAIN, eager=False)) == PLAIN.nbytes
    assert sizeof(lazyarray.asarray(np.array(["abc", "d"]))) == 2 * 12
    with lazyarray.no_transfers():
        sizeof([x * 2, {"key": x * 3}])
