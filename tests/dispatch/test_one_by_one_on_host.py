"""Elements and rows, taken and assigned one by one, of arrays that are too large to be small, but not for the host."""
from __future__ import annotations

import ast
import collections
import subprocess
import sys
from pathlib import Path

import numpy
import numpy as np
import pytest

import lazyarray
import lazyarray.numpy as xnp
from lazyarray import _native
from lazyarray.dispatch import small_runs
from lazyarray.dispatch.small_runs import GIVEN, GIVEN_EACH
from lazyarray.storage.handles import is_light
from lazyarray.storage.state import ON_BOTH

pytestmark = [pytest.mark.skipif(_native.recording is None, reason="without the part in C no array stays on the host"),
              pytest.mark.one_device("what is small is of one device")]

N = 2000        # 16,000 bytes, beside 4,096 of small ones


@pytest.fixture(autouse=True)
def small():
    before = _native.recording.small(4096)      # which forgets what other tests have begun
    yield
    _native.recording.small(before)


def counted(work):
    with lazyarray.trace() as seen:
        result = work()
    return result, collections.Counter(event.kind for event in seen.events)


def recurrence(np, n, count=300):
    x = np.zeros(n)
    for i in range(1, count):
        x[i] = 0.5 * x[i - 1] + 1
    return x


def tridiagonal(np, n, count=300):
    a, d, cp, dp = np.ones(n), np.ones(n), np.empty(n), np.empty(n)
    cp[0], dp[0] = 0.3, d[0]
    for i in range(1, count):
        den = 4 - a[i] * cp[i - 1]
        cp[i] = 1 / den
        dp[i] = (d[i] - a[i] * dp[i - 1]) / den
    return np.stack((cp[:count], dp[:count]))


def numbers(np, n, count=300):
    x = np.zeros(n)
    for i in range(count):
        x[i] = i * 0.5
    return x


def counts(np, n, count=300):
    x = np.zeros(n, int)
    for i in range(count):
        x[i % 7] += 1
    return x


def rows(np, n, count=300):
    x = np.zeros((n // 4, 4))
    for i in range(count):
        x[i, :3] = (i, 2, 3)
    return x


def numpys_integers(np, n, count=300):
    """As an index from an array is, from ``argmax``, or from a loop over one."""
    x, places = np.zeros(n), numpy.random.default_rng(0).permutation(n)[:count]
    for i in places:
        x[i] = x[places[0]] * 0.5 + x[np.uint8(i % 200)] + i
        x[i:i + np.int32(2)] += 1
    return x


def several_places(np, n, count=300):
    """A stiffness matrix: rows and columns of the nodes of one element after the other."""
    side = int(n ** 0.5)
    x, made = np.zeros((side, side)), numpy.random.default_rng(0)
    for _ in range(count):
        nodes = made.integers(0, side, 3)
        x[nodes[:, None], nodes] += 0.5
        x[nodes, nodes[0]] *= 0.9
    return x


def added_at_places(np, n, count=300):
    x, made = np.zeros(n, int), numpy.random.default_rng(0)
    for _ in range(count):
        np.add.at(x, made.integers(0, n, 20), made.integers(0, 9, 20))
        np.maximum.at(x, [1, 2, 1], 3)
    return x


def multiples(np, n, count=300):
    """A sieve."""
    x = np.ones(min(n, 20 * N), bool)       # of larger ones the first slices are not short
    for i in range(2, count // 3):
        if x[i]:
            x[i * i::i] = False
    return x


def marks(np, n, count=300):
    """A flood fill, in bytes: small ones are as many as numbers of 8 bytes would be."""
    x = np.zeros(n, "u1")
    for i in range(count):
        if x[i * 7 % count] == 0:
            x[i] = 2
    return x


def parts_of_rows(np, n, count=300):
    x = np.ones((n // 4, 4))
    for i in range(1, min(count, len(x))):
        x[i, 1:] = x[i - 1, :-1] * 0.5 + numpy.array(x[i, 1:])      # which lends an alias, for a moment
    return x


PROGRAMS = [recurrence, tridiagonal, numbers, counts, rows, numpys_integers, several_places, added_at_places, multiples,
            marks, parts_of_rows]
#: Loops of which not each has an element taken before the first is assigned, and is fetched more than once then.
MORE = {"multiples": 60, "marks": 10, "parts_of_rows": 10}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [N, ON_BOTH // 8, ON_BOTH // 8 + 1])
def test_values_are_numpys(program, n):
    assert np.array_equal(program(xnp, n), program(np, n))


def copies_of_all():
    """(fetched, sent) by each program, of which one takes half as many steps more."""
    found = []
    for program in PROGRAMS:
        for n in (N, ON_BOTH // 8):
            for count in (300, 450):
                _native.recording.small(4096)
                result, seen = counted(lambda program=program, n=n, count=count: program(xnp, n, count))
                assert np.array_equal(result, program(np, n, count))
                found.append((program.__name__, seen["materialise"], seen["upload"]))
    return found


def test_the_loop_goes_on_on_the_host():
    """Each array is fetched once, and nothing is sent, however long the loop is. (In a process of one thread: another
    might take what the host writes to the device meanwhile.)
    """
    text = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n" \
        "import test_one_by_one_on_host as tests; print(tests.copies_of_all())"
    made = subprocess.run([sys.executable, "-W", "ignore", "-c", text], capture_output=True, text=True, timeout=300)
    assert made.returncode == 0, made.stderr
    for name, fetched, sent in ast.literal_eval(made.stdout):
        # The first rows are sent, and the first places and what is added there.
        assert 0 < fetched <= MORE.get(name, 4) and sent <= (34 if "places" in name else 17), name


def test_an_array_that_is_too_large_stays():
    found, seen = counted(lambda: counts(xnp, GIVEN // 8 + 1))
    assert seen["materialise"] == 0 and lazyarray.where(found).side == "device"
    assert np.array_equal(found, counts(np, GIVEN // 8 + 1))


#: Rows of 960 bytes, of an array of which as many as `ENOUGH` make up for the copy.
ROWS, LENGTH = 2 * ON_BOTH // 960, 120
ENOUGH = ROWS * LENGTH * 8 // GIVEN_EACH


def larger():
    """A new array that is larger than what the host may have beside the device, there alone, and its values."""
    plain = np.arange(float(ROWS * LENGTH)).reshape(ROWS, LENGTH)
    return lazyarray.asarray(lazyarray.device().xp.asarray(plain), donate=True), plain


def sum_of_rows(x, count):
    total = 0.0
    for i in range(count):
        total = total + x[i] * 0.5
    return total


@pytest.mark.parametrize(("count", "fetched"), [(ENOUGH - 10, 0), (ENOUGH + 10, 1), (ROWS, 1)])
def test_a_larger_one_is_fetched_after_as_many_rows_as_make_up_for_the_copy(count, fetched, monkeypatch):
    monkeypatch.setattr(small_runs, "others_run", lambda: False)       # xdist's threads do not write it
    x, plain = larger()
    total = sum_of_rows(x, count)
    assert (lazyarray.where(x).side == "both") == bool(fetched)
    assert np.array_equal(total, sum_of_rows(plain, count))


def test_larger_ones_of_each_of_which_few_rows_are_taken_stay():
    """However many they are: of each so many have to be taken themselves."""
    arrays = [larger()[0] for _ in range(6)]
    total = 0.0
    for k in range(6 * (ENOUGH // 4 - 2)):
        total = total + arrays[k % 6][k] * 0.5
    assert {lazyarray.where(x).side for x in arrays} == {"device"}
    assert np.array_equal(total, sum(larger()[1][k] * 0.5 for k in range(6 * (ENOUGH // 4 - 2))))


def test_larger_ones_stay_where_large_calls_come_between():
    x, plain = larger()
    y = lazyarray.asarray(plain)
    for k in range(2 * ENOUGH):
        y[:] += x[k]
    assert lazyarray.where(x).side == "device"


def test_a_larger_table_is_filled_row_by_row_on_the_host():
    """Its rows are computed from those before, as in sequence alignment; the device gets it when it needs it."""
    def fill(np, count):
        table = np.zeros((ROWS, LENGTH))
        for i in range(1, count):
            table[i, 1:] = np.maximum(table[i - 1, 1:], table[i - 1, :-1] + i % 3)
        return table

    for count in (ENOUGH // 2, ENOUGH, ROWS):
        found, seen = counted(lambda count=count: fill(xnp, count))
        assert np.array_equal(found, fill(np, count))
        total = found.sum(axis=0)
        assert np.array_equal(total, fill(np, count).sum(axis=0)) and seen["materialise"] <= 8


def test_nothing_is_fetched_where_no_array_is_small():
    _native.recording.small(0)
    x, seen = counted(lambda: counts(xnp, N))
    assert lazyarray.where(x).side == "device" and seen["materialise"] == 0


def test_a_call_on_a_large_array_ends_it():
    """A boundary that is set before each step is set on the device."""
    x, plain = lazyarray.asarray(np.ones(N)), np.ones(N)

    def steps():
        nonlocal x, plain
        for k in range(60):
            for each in (x, plain):
                each[0], each[-1] = k, 2.0
                each[1:-1] = (each[2:] + each[:-2]) * 0.5
    _, seen = counted(steps)
    assert seen["materialise"] == seen["upload"] == 0
    assert np.allclose(x, plain)


def test_it_is_sent_once_when_the_device_needs_it():
    def program(np, calls=4):
        x = np.zeros(N)
        found = []
        for call in range(calls):
            for i in range(100):
                x[i] = x[i - 1] * 0.5 + call
            found.append(float((x * x).sum()))
        return found
    found, seen = counted(lambda: program(xnp))
    assert np.allclose(found, program(np))
    assert seen["upload"] <= 4 and seen["materialise"] <= 12


def test_results_of_the_device_are_assigned_there():
    large = lazyarray.asarray(np.arange(6e5).reshape(300, 2000))
    x = xnp.zeros(N)

    def program():
        for i in range(300):
            x[i] = large[i].sum()
    _, seen = counted(program)
    assert seen["materialise"] == seen["upload"] == 0
    assert np.array_equal(x[:300], np.asarray(large).sum(axis=1))


def test_aliases_and_pointers_see_what_is_written():
    x = xnp.zeros(N)
    alias = np.asarray(x)
    for i in range(100):
        x[i] = x[i - 1] + 1
        assert alias[i] == i + 1
        if i % 10 == 0:
            alias[-1] = i
            assert x[-1] == i
    x *= 2
    assert alias[3] == 8
    handle = lazyarray.asdevice(x)
    for i in range(50):
        x[i] = 7.0
    handle[60] = 5
    assert float(x[60]) == 5 and float(x[49]) == 7 and alias[60] == 5


def test_no_transfers_leaves_it_on_the_device():
    x = xnp.zeros(N)
    x += 1
    with lazyarray.no_transfers():
        for i in range(100):
            x[i] = 3.0
    assert lazyarray.where(x).side == "device"
    assert float(x.sum()) == N + 200


def test_rows_with_gaps_that_are_written_in_place_take_no_account_of_each():
    """The union of what was written took longer with each row."""
    n = 9000
    x, plain = lazyarray.asarray(np.ones((n, 4))), np.ones((n, 4))
    for k in range(n):
        row = x[k, :3]
        row -= 1.0
    plain[:, :3] -= 1
    assert len(x._self_storage.host_dirty) <= 65
    assert np.array_equal(x, plain) and np.array_equal(np.asarray(x * 1.0), plain)


def test_the_same_solver_again_and_again_takes_no_more_copies():
    """What was sent was set against calls that compute, not against elements: each sixth call was the device's."""
    def solve(np, x):
        k = np.abs(x) ** 1.5
        k = k / (1 + k ** 1.2) ** 0.4
        cp = np.empty(len(k))
        cp[0] = k[0] / 4
        for i in range(1, len(k)):
            cp[i] = k[i] / (4 - k[i - 1] * cp[i - 1])
        return cp
    x, plain, seen = xnp.full(500, 3.0), np.full(500, 3.0), []
    for _ in range(30):
        x, kinds = counted(lambda: solve(xnp, x))
        plain = solve(np, plain)
        seen.append(kinds["materialise"] + kinds["upload"])
    assert np.allclose(x, plain) and max(seen[2:]) <= max(seen[:2])


@pytest.mark.parametrize("n", [200, 2000])
def test_elements_of_rows_have_the_whole_array_fetched(n):
    """Of points that are looked at one after the other each is a row; only the 17th of them was fetched, for good."""
    points = (lazyarray.asarray(np.arange(2.0 * n).reshape(n, 2)) * 1.0).copy()
    rows, total = list(points)[:150], 0.0

    def program():
        nonlocal total
        for a, b in zip(rows, rows[1:]):
            if (a[0] - b[0]) * a[1] < b[1]:
                total += 1
    _, seen = counted(program)
    assert seen["materialise"] <= 15 and total == 149


def test_reduceat_of_small_arrays_is_the_hosts():
    v, at = xnp.arange(400.0), xnp.arange(0, 400, 4)
    found, seen = counted(lambda: np.add.reduceat(v, at))
    assert seen["upload"] == 0 and lazyarray.where(found).side == "host"
    assert np.array_equal(found, np.add.reduceat(np.arange(400.0), np.arange(0, 400, 4)))
    found, seen = counted(lambda: np.add.reduceat(v.reshape(200, 2), [0, 5], axis=0))
    assert seen["upload"] == 0 and found.shape == (2, 2)


@pytest.mark.parametrize("make", [xnp.array, xnp.asarray, xnp.asanyarray], ids=lambda f: f.__name__)
@pytest.mark.parametrize("value", [0.5, 3, True, 2j, [1, 2], (1.0, [2.0][0]), np.float32(2), np.bool_(True)], ids=repr)
@pytest.mark.parametrize("dtype", [None, "f4", float], ids=str)
def test_what_is_made_of_numbers_stays_on_the_host(make, value, dtype):
    if isinstance(value, complex) and dtype is not None:
        return
    options = {} if dtype is None else {"dtype": dtype}
    found, seen = counted(lambda: make(value, **options))
    want = np.array(value, **options)
    assert type(found) is lazyarray.LazyNdarray and found.dtype == want.dtype and np.array_equal(found, want)
    assert found.shape == want.shape and seen["upload"] == 0 and lazyarray.where(found).side == "host"


def test_numbers_that_are_computed_with_again_and_again_are_fetched():
    """A lazy scalar with numbers alone: 17 steps on, with no call on a large array between, the rest is the host's."""
    large = lazyarray.asarray(np.linspace(0, 1, 100_000))

    def program(x, count=300):
        q, found = x.mean(), []
        for _ in range(count):
            q = q * 0.99 + 0.01
            found.append(q)
        return found
    found, seen = counted(lambda: program(large))
    assert seen["materialise"] <= 2 and type(found[-1]) is np.float64 and isinstance(found[0], lazyarray.LazyScalar)
    assert np.allclose([float(q) for q in found], [float(q) for q in program(np.linspace(0, 1, 100_000))])


def test_numbers_beside_large_arrays_stay():
    large, total = lazyarray.asarray(np.linspace(0, 1, 100_000)), 0.0

    def program():
        nonlocal total
        for _ in range(60):
            total = total + (large * 2).sum() * 0.5
    _, seen = counted(program)
    assert seen["materialise"] == 0 and isinstance(total, lazyarray.LazyScalar)
    assert np.isclose(float(total), 60 * np.linspace(0, 1, 100_000).sum())


@pytest.mark.parametrize(("function", "most"), [
    (np.add, 4096), (np.exp, 4096), (np.log1p, 4096), (np.sin, 1536), (np.cumsum, 2048), (np.sort, 1360),
    (np.around, 4096), (np.linalg.norm, 4096), (np.median, 1360)], ids=lambda v: getattr(v, "__name__", v))
def test_what_takes_longer_is_the_hosts_with_fewer_bytes(function, most):
    """Ufuncs of what the host alone has with three times as many as others."""
    for size, side in ((most // 8, "host"), (most // 8 + 8, "device")):
        x = lazyarray.asarray(np.ones(size))
        found, seen = counted(lambda x=x: function(x, x) if function is np.add else function(x))
        assert ("upload" in seen or lazyarray.where(found).side in ("device", "pending")) is (side == "device"), seen
        assert np.allclose(found, function(np.ones(size), *[np.ones(size)] * (function is np.add)), rtol=1e-6)


def test_of_what_the_device_has_too_fewer_bytes_are_the_hosts():
    for size, where in ((64, "host"), (72, "device")):
        x = lazyarray.asarray(np.ones(size))
        lazyarray.asdevice(x)
        np.asarray(x)
        assert lazyarray.where(np.sin(x)).side in ((where,) if where == "host" else ("device", "pending"))


def test_powers_and_indexes_that_are_no_plain_integers():
    x, plain = lazyarray.asarray(np.arange(12.0).reshape(3, 4)), np.arange(12.0).reshape(3, 4)
    for index in (np.int64(1), (np.int8(-1), np.uint64(2)), (slice(np.int16(0), np.int64(2)), np.int32(1)),
                  (np.int64(2), None, Ellipsis), (np.bool_(True), 1), np.bool_(False),
                  (np.int64(0), slice(None, None, np.int64(2)))):
        assert np.array_equal(x[index], plain[index]) and np.shape(x[index]) == plain[index].shape
        x[index] = plain[index] = 5
        assert np.array_equal(x, plain)
    for index in (np.int64(3), np.timedelta64(1, "s"), np.float64(1), (np.int64(0), np.int64(4)), np.uint64(2 ** 63),
                  np.str_("a")):
        with pytest.raises(Exception) as expected:
            plain[index]
        with pytest.raises(expected.type) as found:
            x[index]
        assert str(found.value) == str(expected.value)


def assigned_one_by_one(n):
    """Whether the array is nothing but its ndarray then. (The values are right, whoever else looks at it.)"""
    x, plain = xnp.ones(n) * 2, np.ones(n) * 2
    for i in range(60):
        x[i], plain[i] = x[i + 1] * 3, plain[i + 1] * 3
    light = is_light(x)
    row = x[5:9]
    alias = np.asarray(x)
    x[6], plain[6] = -1.0, -1.0
    assert alias[6] == row[1] == -1
    alias[7] = plain[7] = -2
    x *= 2
    plain *= 2
    assert row[2] == alias[7] == -4 and np.array_equal(x, plain)
    return light


def carved(energy, light=None):
    """Rows that are written in turn, where each step lends two aliases."""
    found = energy.copy()
    for i in range(1, len(found)):
        left, right = np.r_[np.inf, found[i - 1, :-1]], np.r_[found[i - 1, 1:], np.inf]
        found[i] += np.minimum(np.minimum(left, found[i - 1]), right)
        if light is not None:
            light.append(is_light(found))
    return found


def light_beside_aliases():
    """How often the table became nothing but its ndarray, or got a storage again; and if it was that at last."""
    plain = np.random.default_rng(0).random((400, 400))
    lazy, light = lazyarray.asarray(plain), []
    for _ in range(3):
        light = [False]
        found = carved(lazy, light)
    assert np.array_equal(found, carved(plain))
    return sum(one != other for one, other in zip(light, light[1:])), light[-1]


def test_what_is_assigned_one_by_one_is_nothing_but_its_ndarray():
    """From then on the host writes it without telling anybody. Who looks at it has a storage made again, for good."""
    for n in (N, ON_BOTH // 8):
        assigned_one_by_one(n)
    text = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n" \
        "import test_one_by_one_on_host as tests; tests._native.recording.small(4096)\n" \
        "print([tests.assigned_one_by_one(n) for n in (tests.N, tests.ON_BOTH // 8)])\n" \
        "tests._native.recording.small(95_000); print(tests.light_beside_aliases())"
    made = subprocess.run([sys.executable, "-W", "ignore", "-c", text], capture_output=True, text=True, timeout=300)
    assert made.returncode == 0, made.stderr
    light, beside = map(ast.literal_eval, made.stdout.splitlines())
    assert light == [True, True] and beside == (1, True), "all of it is copied at each step"


def test_views_of_what_is_assigned_one_by_one_keep_its_storage():
    x = xnp.ones((N // 4, 4)) * 2
    row = x[3]
    for i in range(60):
        x[i, 1] = i
        row[2] = i
    assert not is_light(x) and row[2] == x[3, 2] == 59 and x[3, 1] == row[1] == 3


PRODUCTS = {"@": lambda np, a, v: a @ v, "from the left": lambda np, a, v: v @ a, "dot": lambda np, a, v: np.dot(a, v),
            "method": lambda np, a, v: a.dot(v), "matmul": lambda np, a, v: np.matmul(a, v),
            "columns": lambda np, a, v: (a @ v[:, None])[:, 0]}


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS)
@pytest.mark.parametrize("side", [30, 85], ids=str)
def test_products_of_a_matrix_with_small_vectors_are_the_hosts(product, side):
    """What is read once for a small result may be 16 times as large."""
    a = np.random.default_rng(0).random((side, side))
    lazy = lazyarray.asarray(a)

    def program(np, a, steps=200):
        v = np.ones(side)
        for _ in range(steps):
            w = product(np, a, v)
            v = w / np.sqrt((w * w).sum())
        return v
    found, seen = counted(lambda: program(xnp, lazy))
    assert np.allclose(found, program(np, a))
    assert seen["materialise"] <= 4 and lazyarray.where(found).side == "host"
    _, seen = counted(lambda: program(xnp, lazy))
    assert seen["materialise"] == seen["upload"] == 0


def test_products_of_larger_matrices_or_of_such_that_change_are_the_devices():
    large = lazyarray.asarray(np.full((95, 95), 0.01))      # 72,200 bytes; 16 times 4,096 are 65,536
    v = xnp.ones(95)
    for _ in range(60):
        v = large @ v + 1
    assert lazyarray.where(large).side == "device" and lazyarray.where(v).side in ("device", "pending")
    weights, plain = lazyarray.asarray(np.full((60, 60), 0.01)), np.full((60, 60), 0.01)

    def program():
        nonlocal weights, plain
        for step in range(60):
            x = np.cos(np.arange(60.0) + step)
            y = weights @ lazyarray.asarray(x)
            weights = weights - 0.01 * xnp.multiply.outer(y, x)
            plain = plain - 0.01 * np.multiply.outer(plain @ x, x)
    _, seen = counted(program)
    assert seen["materialise"] == 0 and lazyarray.where(weights).side != "host" and np.allclose(weights, plain)


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize(("count", "side"), [(20, "host"), (400, "device")])
def test_what_numpy_adds_slowly_is_the_hosts_with_few_positions(rows, count, side):
    """Rows, or positions by two indexes, take it 10 to 40 nanoseconds each, and others 1.5."""
    made = np.random.default_rng(0)
    at, values = made.integers(0, 100, count), made.random((count, 3) if rows else count)
    index = at if rows else (at, at % 3)
    x, plain = xnp.zeros((100, 3)), np.zeros((100, 3))
    np.add.at(x, index, values)
    np.add.at(plain, index, values)
    assert lazyarray.where(x).side == side and np.allclose(x, plain)
    x, plain = xnp.zeros(100), np.zeros(100)
    np.add.at(x, at, values.ravel()[:count])
    np.add.at(plain, at, values.ravel()[:count])
    assert lazyarray.where(x).side == "host" and np.allclose(x, plain)


def test_what_is_repeated_as_often_as_counts_say_is_the_hosts():
    """A bound by the greatest count sent what is small."""
    counts = np.ones(100, int)
    counts[3] = 100
    found, seen = counted(lambda: np.repeat(xnp.arange(100.0), xnp.asarray(counts)))
    assert set(seen) == {"host"} and lazyarray.where(found).side == "host"
    assert np.array_equal(found, np.repeat(np.arange(100.0), counts))
    found = np.repeat(xnp.ones((10, 3)), [1, 2, 3], axis=1)
    assert found.shape == (10, 6) and lazyarray.where(found).side == "host"


@pytest.mark.parametrize("n", [300, N, ON_BOTH // 8 + 1])
@pytest.mark.parametrize("made", ["light", "uploaded", "computed", "assigned"])
def test_iterators_see_what_is_written_meanwhile(n, made):
    def program(np, x):
        found = []
        if made == "computed":
            x = x * 1.0
        for i in range(30 if made == "assigned" else 0):
            x[i] = 0.5
        for i, value in enumerate(x):
            found.append(float(value))
            if i < 40:
                x[i + 1] = value + 1        # on the host
            if i == 50:
                x *= 3                      # of larger ones on the device
            if i == 60:
                np.asarray(x)[61] = 7.0
            if i == 80:
                x[90:100] = 2.5
        return found
    plain = np.arange(float(n))
    lazy = xnp.arange(float(n)) if made == "light" else lazyarray.asarray(plain)
    if made == "light":
        lazy = lazy + 0.0
    assert program(numpy, lazy) == program(numpy, plain.copy())
