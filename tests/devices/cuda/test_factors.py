"""Solutions and inverses by factors, whose statuses are fetched while what follows is issued: values, forms, errors."""
from __future__ import annotations

import ctypes
import itertools
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import lazyarray
from lazyarray.devices.cuda.factors import Factorizer

RANDOM = np.random.default_rng(0)
LENGTHS = [1, 2, 5, 31, 32, 33, 70, 300]
STACKS = [(), (1,), (3,), (2, 3), (600,)]
KINDS = {"f": (2e-4, 1e-6), "d": (1e-10, 1e-13), "F": (2e-4, 1e-6), "D": (1e-10, 1e-13)}


def matrices(shape, kind):
    values = RANDOM.random(shape) + (1j * RANDOM.random(shape) if kind in "FD" else 0)
    return values.astype(kind)


def forms(array):
    yield array
    yield np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2)
    if array.ndim > 2:
        yield np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 0, -1)), -1, 0)


def agree(function, *arrays):
    """Of lazy arrays it gives what NumPy gives, or raises."""
    try:
        wanted = function(*arrays)
    except (ValueError, np.linalg.LinAlgError) as error:
        with pytest.raises(type(error)):
            function(*map(lazyarray.asarray, arrays))
        return
    found = function(*map(lazyarray.asarray, arrays))
    assert isinstance(found, lazyarray.LazyNdarray)
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    relative, absolute = KINDS[np.result_type(*arrays).char]
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=relative, atol=absolute)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "stack"), [(n, stack) for n, stack in itertools.product(LENGTHS, STACKS)
                                          if n * len(stack) * max(stack, default=1) < 4000])
def test_values_and_forms(kind, n, stack):
    a = matrices((*stack, n, n), kind) + n * np.eye(n, dtype=kind)
    for form in forms(a):
        agree(np.linalg.inv, form)
    for shape in ((n,), (n, 3), (*stack, n, 1), (*stack, n, 4), (3, n, 2)):
        for form in forms(matrices(shape, kind)) if len(shape) > 1 else [matrices(shape, kind)]:
            agree(np.linalg.solve, a, form)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "stack"), [
    (1, (3,)), (2, (2, 3)), (5, (40,)), (31, (4,)), (33, (2,)), (4, ()), (40, ())])
def test_determinants(kind, n, stack):
    a = matrices((*stack, n, n), kind) - matrices((*stack, n, n), kind)
    if stack:
        a[0, ..., 0, :] = 0     # singular, one of them at least
    for form in forms(a):
        for function in (np.linalg.det, np.linalg.slogdet):
            wanted, found = function(form), function(lazyarray.asarray(form))
            for one, other in zip(*((found, wanted) if function is np.linalg.slogdet else ([found], [wanted]))):
                assert one.dtype == other.dtype and one.shape == other.shape
                np.testing.assert_allclose(np.asarray(one), other, rtol=2e-3 if kind in "fF" else 1e-9, atol=1e-6)


@pytest.mark.parametrize("special", [np.nan, np.inf])
@pytest.mark.parametrize(("n", "stack"), [(4, (3,)), (40, (3,)), (100, ()), (300, ()), (1, ())])
def test_determinants_of_what_is_not_finite(n, stack, special):
    a = matrices((*stack, n, n), "d")
    a[(1,) * len(stack)][n // 2, n // 2] = special
    others = [0, 2] if stack else []
    with np.errstate(all="ignore"):
        wanted = *np.linalg.slogdet(a), np.linalg.det(a)
        found = *np.linalg.slogdet(lazyarray.asarray(a)), np.linalg.det(lazyarray.asarray(a))
    for one, other in zip(found, wanted):
        one, other = np.atleast_1d(one), np.atleast_1d(other)
        np.testing.assert_allclose(one[others], other[others], rtol=1e-9)
        assert np.isfinite(one[len(others) // 2]) == np.isfinite(other[len(others) // 2])


@pytest.mark.parametrize("kind", "FD")
@pytest.mark.parametrize(("n", "stack"), [(1, (3,)), (4, (3,)), (40, (3,)), (100, ()), (300, ())])
def test_signs_of_complex_nan(n, stack, kind):
    a = matrices((*stack, n, n), kind)
    a[(1,) * len(stack)][n // 2, 0] = np.nan
    with np.errstate(all="ignore"):
        wanted, found = np.linalg.slogdet(a), np.linalg.slogdet(lazyarray.asarray(a))
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(np.asarray(one), other, rtol=2e-3, atol=1e-6)


def where_nan(function, a):
    """Where the result is NaN; LAPACK's libraries differ in whether they raise an error."""
    try:
        return np.isnan(np.asarray(function(a))).tolist()
    except np.linalg.LinAlgError:
        return None


@pytest.mark.parametrize("place", [(0, 0), (0.5, 0.5), (0.99, 0), (0, 0.99)])
@pytest.mark.parametrize(("n", "stack"), [(4, (3,)), (40, (3,)), (100, ()), (300, ()), (1, ()), (20, ())])
def test_nan_is_not_passed_over(n, stack, place):
    a, b = matrices((*stack, n, n), "d"), matrices((*stack, n, n), "d")
    a[(1,) * len(stack)][tuple(int(part * n) for part in place)] = np.nan
    with np.errstate(all="ignore"):
        for function in (np.linalg.inv, lambda x: np.linalg.solve(x, b), lambda x: np.linalg.solve(x, b[..., :1]),
                         np.linalg.det, lambda x: np.linalg.slogdet(x)[1]):
            expected, found = function(a), np.asarray(function(lazyarray.asarray(a)))
            assert np.array_equal(np.isnan(found), np.isnan(expected))
        for expected, found in zip(np.linalg.qr(a), np.linalg.qr(lazyarray.asarray(a)), strict=True):
            assert np.array_equal(np.isnan(np.asarray(found)), np.isnan(expected))
        spd = a @ a.swapaxes(-1, -2)    # NaN along a row and a column
        assert where_nan(np.linalg.cholesky, lazyarray.asarray(spd)) == where_nan(np.linalg.cholesky, spd)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "stack"), [
    (1, ()), (4, ()), (32, ()), (40, ()), (1, (3,)), (5, (2, 3)), (33, (4,)), (300, (2,)), (3, (2000,))])
def test_cholesky_factors(kind, n, stack):
    a = matrices((*stack, n, n), kind)
    a = a @ a.conj().swapaxes(-1, -2) + n * np.eye(n, dtype=kind)
    upper = np.triu(np.ones((n, n), bool), 1)
    for form in forms(a):
        agree(np.linalg.cholesky, form)
    agree(np.linalg.cholesky, np.where(upper, np.nan, a).astype(kind))     # which nobody reads
    if kind in "FD":        # of what LAPACK reads the real parts alone
        agree(np.linalg.cholesky, a + (1j * np.eye(n)).astype(kind))
        agree(np.linalg.cholesky, np.where(np.eye(n) == 1, a + 1j * np.nan, a).astype(kind))
    x = lazyarray.asarray(a)
    with lazyarray.trace() as events:
        np.linalg.cholesky(x)
    assert len([e for e in events if e.kind == "synchronise"]) == 1 and np.array_equal(x, a)
    for row, column, value in ((0, 0, -1), (n - 1, 0, np.nan), (n - 1, n - 1, np.inf), (n - 1, 0, np.inf), (0, 0, 0)):
        bad = a.copy()
        bad[..., row, column].flat[-1:] = value
        if not stack:
            bad[row, column] = value
        with np.errstate(all="ignore"):
            agree(np.linalg.cholesky, bad)


def test_the_operands_stay_what_they_are():
    a, b = matrices((4, 3, 3), "d") + 3 * np.eye(3), matrices((4, 3, 2), "d")
    x, y = lazyarray.asarray(a), lazyarray.asarray(b)
    np.linalg.solve(x, y)
    np.linalg.solve(x.swapaxes(1, 2), y)
    np.linalg.inv(x)
    assert np.array_equal(x, a) and np.array_equal(y, b)


@pytest.mark.parametrize("count", [1, 7, 5000])
def test_one_singular_matrix_is_an_error(count):
    a = np.zeros((count, 3, 3)) + np.eye(3)
    a[-1, 1, 1] = 0
    for case in (a, a.astype("f"), a[-1]):
        with pytest.raises(np.linalg.LinAlgError, match="Singular"):
            np.linalg.inv(lazyarray.asarray(case))
        with pytest.raises(np.linalg.LinAlgError, match="Singular"):
            np.linalg.solve(lazyarray.asarray(case), np.ones((3, 1)))


def test_nan_is_no_singular_matrix():
    a = np.zeros((4, 3, 3)) + np.eye(3)
    a[2, 1, 1] = np.nan
    wanted = np.isnan(np.linalg.inv(a)).any(axis=(1, 2))
    assert np.array_equal(np.isnan(np.linalg.inv(lazyarray.asarray(a))).any(axis=(1, 2)), wanted)


def test_one_wait_that_is_told():
    a = lazyarray.asarray(matrices((5, 4, 4), "d") + 4 * np.eye(4))
    with lazyarray.trace() as events:
        np.linalg.inv(a)
    event, = events
    assert event.kind == "synchronise" and "singular" in event.reason


def test_threads_that_solve_at_once():
    a = matrices((50, 6, 6), "d") + 6 * np.eye(6)
    b = [matrices((50, 6, 3), "d") for _ in range(4)]
    wrong = []

    def work(i):
        for _ in range(20):
            found = np.linalg.solve(lazyarray.asarray(a), lazyarray.asarray(b[i]))
            if not np.allclose(np.asarray(found), np.linalg.solve(a, b[i])):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.one_device("of what lies on another device no factors are known")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "stack"), [(4, ()), (31, ()), (4, (3,)), (33, (2,)), (33, ())])
def test_factors_are_kept_until_their_matrices_are_written(kind, n, stack, monkeypatch):
    made = []
    device = lazyarray.device()
    factors = device.factors

    def count(a):
        made.append(a)
        return factors(a)

    a = (matrices((*stack, n, n), kind) / n + np.eye(n)).astype(kind)
    b = matrices((*stack, n, 2), kind)
    x = lazyarray.asarray(a)
    lazyarray.asdevice(x)
    if factors(lazyarray.asdevice(lazyarray.asarray(a.astype("D")))) is None:
        pytest.skip("the library's own functions do all of it here")
    monkeypatch.setattr(device, "factors", count)
    turned = x.swapaxes(-1, -2)
    with lazyarray.trace() as events:
        for one in (x, turned):
            agree_with(np.linalg.solve(np.asarray(one), b), np.linalg.solve(one, lazyarray.asarray(b)))
            agree_with(np.linalg.inv(np.asarray(one)), np.linalg.inv(one))
            agree_with(np.linalg.det(np.asarray(one)), np.linalg.det(one))
            agree_with(np.linalg.slogdet(np.asarray(one))[1], np.linalg.slogdet(one)[1])
    assert len(made) == 1 and sum(e.kind == "synchronise" for e in events) == 1
    x[..., 0, 0] *= 2
    a[..., 0, 0] *= 2
    agree_with(np.linalg.solve(a, b), np.linalg.solve(x, lazyarray.asarray(b)))
    assert len(made) == 2
    x[..., 0, :] = 0
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError):
            np.linalg.inv(x)


@pytest.mark.one_device("of what lies on another device no factors are known")
@pytest.mark.parametrize("kind", "dD")
@pytest.mark.parametrize("n", [3, 31, 70])
def test_what_is_solved_with_a_cholesky_factor_waits_for_nothing(kind, n):
    a = matrices((n, n), kind)
    a, b = a @ a.conj().T + n * np.eye(n), matrices((n, 2), kind)
    lower = np.linalg.cholesky(lazyarray.asarray(a))
    plain, right = np.linalg.cholesky(a), lazyarray.asarray(b)
    with lazyarray.trace() as events:
        found = [np.linalg.solve(lower, right), np.linalg.solve(lower.T, right), np.linalg.solve(lower, right[:, 0]),
                 np.linalg.inv(lower), np.linalg.inv(lower.T), np.linalg.det(lower), *np.linalg.slogdet(lower)]
    assert not events.synchronisations
    for one, wanted in zip(found, [np.linalg.solve(plain, b), np.linalg.solve(plain.T, b),
                                   np.linalg.solve(plain, b[:, 0]), np.linalg.inv(plain), np.linalg.inv(plain.T),
                                   np.linalg.det(plain), *np.linalg.slogdet(plain)]):
        agree_with(wanted, one)
    lower[0, -1] = 1        # it is no triangle any more
    plain[0, -1] = 1
    agree_with(np.linalg.solve(plain, b), np.linalg.solve(lower, right))
    lower[0] = 0
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.solve(lower, right)


def agree_with(wanted, found):
    relative, absolute = KINDS[np.asarray(wanted).dtype.char]
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=relative, atol=absolute)


@pytest.mark.parametrize("more", [0, 5])
def test_least_squares_of_full_and_of_lesser_rank(more):
    a = matrices((40, 6), "d")
    a[:, 5] = a[:, 0] if more else a[:, 5]
    b = matrices((40,), "d")
    wanted, found = np.linalg.lstsq(a, b), np.linalg.lstsq(lazyarray.asarray(a), lazyarray.asarray(b))
    assert int(found[2]) == wanted[2] == (5 if more else 6)
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-9, atol=1e-12)


class Placed(np.ndarray):
    """A host array that tells its address as a device array does."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data, memset_async=lambda value, size: ctypes.memset(
            self.ctypes.data, value, size))


def placed(make):
    return lambda *args, **kwargs: make(*args, **kwargs).view(Placed)


class Cublas:
    """What the factorizer calls, of addresses; matrices have their columns together."""

    CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_SIDE_LEFT, CUBLAS_DIAG_NON_UNIT = 0, 1, 0, 0

    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)

    def at(self, table, count, rows, columns):
        addresses = np.ctypeslib.as_array((ctypes.c_uint64 * count).from_address(table))
        kept = [(ctypes.c_byte * (rows * columns * self.dtype.itemsize)).from_address(int(a)) for a in addresses]
        return [np.frombuffer(memory, self.dtype).reshape(columns, rows).T for memory in kept]

    def factorize(self, handle, n, table, lead, pivots, statuses, count):
        found = np.ctypeslib.as_array((ctypes.c_int32 * (count * n)).from_address(pivots)).reshape(count, n)
        status = np.ctypeslib.as_array((ctypes.c_int32 * count).from_address(statuses))
        for i, a in enumerate(self.at(table, count, n, n)):
            status[i] = 0
            for k in range(n):
                row = k + int(np.abs(a[k:, k]).argmax())
                found[i, k] = row + 1
                a[[k, row]] = a[[row, k]]
                if a[k, k] == 0:
                    status[i] = status[i] or k + 1
                    continue
                a[k + 1:, k] /= a[k, k]
                a[k + 1:, k + 1:] -= np.outer(a[k + 1:, k], a[k, k + 1:])

    def substitute(self, handle, how, n, columns, table, lead, pivots, of_x, lead_of_x, status, count):
        found = np.ctypeslib.as_array((ctypes.c_int32 * (count * n)).from_address(pivots)).reshape(count, n)
        for a, x, rows in zip(self.at(table, count, n, n), self.at(of_x, count, n, columns), found):
            whole = (np.tril(a, -1) + np.eye(n)) @ np.triu(a)
            for k in range(n - 1, -1, -1):
                whole[[k, rows[k] - 1]] = whole[[rows[k] - 1, k]]
            x[...] = np.linalg.solve(whole.T if how else whole, x)

    def invert(self, handle, n, table, lead, pivots, of_x, lead_of_x, statuses, count):
        for x in self.at(of_x, count, n, n):
            x[...] = np.eye(n)
        self.substitute(handle, 0, n, n, table, lead, pivots, of_x, n, 0, count)

    def triangle(self, handle, side, part, how, diagonal, n, columns, one, a, lead, x, lead_of_x):
        assert (side, part, diagonal, lead, lead_of_x) == (0, 1, 0, n, n)
        assert np.frombuffer((ctypes.c_byte * self.dtype.itemsize).from_address(one), self.dtype) == 1
        matrix, = self.at(np.array([a], np.uint64).ctypes.data, 1, n, n)
        right, = self.at(np.array([x], np.uint64).ctypes.data, 1, n, columns)
        right[...] = np.linalg.solve(np.triu(matrix).T if how else np.triu(matrix), right)

    def __getattr__(self, name):
        assert name[0] == ("z" if self.dtype.kind == "c" else "d")
        return {"getrfBatched": self.factorize, "getrsBatched": self.substitute, "getriBatched": self.invert,
                "trsm": self.triangle}[name[1:]]


class Cusolver(Cublas):
    """The same of one matrix, by its address."""

    def factorize_one(self, handle, rows, n, a, lead, workspace, pivots, status):
        assert rows == n == lead and workspace
        table = np.array([a], np.uint64)
        self.factorize(handle, n, table.ctypes.data, n, pivots, status, 1)

    def substitute_one(self, handle, how, n, columns, a, lead, pivots, x, lead_of_x, status):
        table, right = np.array([a], np.uint64), np.array([x], np.uint64)
        self.substitute(handle, how, n, columns, table.ctypes.data, lead, pivots, right.ctypes.data, lead_of_x, 0, 1)

    def __getattr__(self, name):
        assert name[0] == ("z" if self.dtype.kind == "c" else "d")
        return {"getrf_bufferSize": lambda *arguments: 8, "getrf": self.factorize_one,
                "getrs": self.substitute_one}[name[1:]]


@pytest.mark.parametrize("kind", "dD")
@pytest.mark.parametrize(("n", "stack"), [(5, ()), (5, (3,)), (5, (2, 3)), (33, ())])
def test_what_the_libraries_are_asked_for(kind, n, stack):
    """Without a GPU: NumPy in the place of CuPy."""
    names = {name: getattr(np, name) for name in ("abs", "sign", "where", "log")}
    handles = SimpleNamespace(get_cublas_handle=lambda: 0, get_cusolver_handle=lambda: 0)

    def copy(x, elements, y, statuses):
        y[...] = x
        statuses[np.isnan(x).reshape(-1, elements).any(axis=1)] = 1

    xp = SimpleNamespace(ndarray=placed(np.empty), arange=placed(np.arange), eye=placed(np.eye), **names,
                         ElementwiseKernel=lambda *text: copy, cuda=SimpleNamespace(device=handles))
    make = Factorizer(xp, lambda: Cublas(kind), lambda: Cusolver(kind), lambda: "stream")
    a, b = matrices((*stack, n, n), kind) - 0.3, matrices((*stack, n, 2), kind)
    given = a.copy().view(Placed)
    np.testing.assert_allclose(make(given).solution(b.view(Placed)), np.linalg.solve(a, b), rtol=1e-9)
    np.testing.assert_allclose(make(given).solution(b.view(Placed), turned=True),
                               np.linalg.solve(a.swapaxes(-1, -2), b), rtol=1e-9)
    np.testing.assert_allclose(make(given).inverse(), np.linalg.inv(a), rtol=1e-9)
    for found, wanted in zip(make(given).determinants(), np.linalg.slogdet(a)):
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
    if not stack:
        lower = np.tril(a) + np.eye(n)
        triangle = make.triangular(lower.astype(kind).view(Placed))
        np.testing.assert_allclose(triangle.solution(b.view(Placed)), np.linalg.solve(lower, b), rtol=1e-7)
        np.testing.assert_allclose(triangle.solution(b.view(Placed), turned=True), np.linalg.solve(lower.T, b),
                                   rtol=1e-7)
        np.testing.assert_allclose(triangle.inverse(), np.linalg.inv(lower), rtol=1e-6, atol=1e-9)
        for found, wanted in zip(triangle.determinants(), np.linalg.slogdet(lower)):
            np.testing.assert_allclose(found, wanted, rtol=1e-9)
    given[..., 0, :] = 0
    factors, count = make(given), a.size // n ** 2
    assert (np.ravel(factors.statuses) > 0).tolist() == [True] * count + [False] * count
    with np.errstate(all="ignore"):     # which the device does not tell of
        singular = factors.determinants()
    for found, wanted in zip(singular, np.linalg.slogdet(np.asarray(given))):
        np.testing.assert_array_equal(found, wanted)
    given = a.copy().view(Placed)
    given[..., -1, 0].flat[-1:] = np.nan
    if not stack:
        given[-1, 0] = np.nan
    assert np.ravel(make(given).statuses)[count:].tolist() == [0] * (count - 1) + [1]
    assert make(np.zeros((2, 257, 257), kind)) is None


@pytest.mark.parametrize("function", [
    lambda x, b: np.linalg.solve(x, b), lambda x, b: np.linalg.solve(x, b[..., :1]), lambda x, b: np.linalg.inv(x),
    lambda x, b: np.linalg.cholesky(x), lambda x, b: np.linalg.qr(x).R, lambda x, b: np.linalg.svd(x).S,
    lambda x, b: np.linalg.eigvalsh(x), lambda x, b: np.linalg.eigh(x).eigenvalues],
    ids=["solve", "one column", "inv", "cholesky", "qr", "svd", "eigvalsh", "eigh"])
@pytest.mark.parametrize("n, stack", [(4, (3,)), (40, ()), (300, (2,))])
def test_without_checks_nobody_waits(function, n, stack):
    a, b = matrices((*stack, n, n), "d"), matrices((*stack, n, 400), "d")
    a = a @ a.swapaxes(-1, -2) + n * np.eye(n)
    x, y, singular = lazyarray.asarray(a) * 1, lazyarray.asarray(b) * 1, lazyarray.asarray(a * 0) * 1
    with lazyarray.options(check_linalg=False):
        with lazyarray.trace() as events:
            found, rubbish = function(x, y), function(singular, y)
        assert not events.synchronisations and not events.materialisations and not events.fallbacks
        assert rubbish.shape == found.shape
    np.testing.assert_allclose(np.asarray(found), function(a, b), rtol=1e-8, atol=1e-10)
    if function(x, y).shape == b.shape:
        with pytest.raises(np.linalg.LinAlgError):
            function(singular, y)
