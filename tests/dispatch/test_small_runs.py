"""What small arrays of the device are computed with one after the other goes on on the host."""
from __future__ import annotations

import subprocess
import sys
import threading

import handlers
import numpy as np
import pytest

import lazyarray
import lazyarray.numpy as xnp
from lazyarray import _native

pytestmark = [pytest.mark.skipif(_native.recording is None, reason="without the part in C no array stays on the host"),
              pytest.mark.one_device("what is small is of one device")]

VALUES = np.random.default_rng(5).random((4000, 4)) + 0.5


@pytest.fixture(autouse=True)
def small():
    before = _native.recording.small(4096)      # which forgets what other tests have begun
    yield
    _native.recording.small(before)


def large():
    return lazyarray.asarray(VALUES) * 1.0


def kinds(work):
    with lazyarray.trace() as seen:
        work()
    return [event.kind for event in seen.events]


def turned(np, rows, count):
    q, turns = rows[0] / np.sqrt(rows[0] @ rows[0]), np.empty((count, 4))
    for k in range(count):
        p = rows[k]
        w = p[0] * q[0] - p[1:] @ q[1:]
        q = np.concatenate((w.reshape(1), p[0] * q[1:] + q[0] * p[1:] + np.cross(p[1:], q[1:])))
        q /= np.sqrt(q @ q)
        turns[k] = q
    return turns


def descended(np, rows, count):
    alpha, f = np.zeros((6, 40)), np.zeros((6, 40))
    for i in range(count):
        new = np.clip(alpha[:, i % 40] - (f[:, i % 40] - 1.0) / rows[i, 0], 0.0, 2.0)
        delta = new - alpha[:, i % 40]
        alpha[:, i % 40] = new
        f += delta[:, None] * rows[i, :4].repeat(10)
    return np.stack((alpha, f))


@pytest.mark.parametrize("program", [turned, descended])
def test_the_results_are_numpys_and_the_device_has_nothing_to_do(program):
    rows = large()
    found = []
    seen = kinds(lambda: found.append(program(xnp, rows, 600)))
    assert np.allclose(np.asarray(found[0]), program(np, VALUES, 600), rtol=1e-9, atol=1e-12)
    late = kinds(lambda: program(xnp, rows, 600)[:1])
    for events in (seen, late):
        assert events.count("kernel") + events.count("materialise") + events.count("synchronise") < 300
        assert events.count("host") > 4000
    assert seen[-400:].count("materialise") == 0


def test_arrays_are_fetched_after_some_calls_each_once():
    rows = large()
    x, y = rows[3], rows[7]
    for _ in range(40):
        seen = kinds(lambda: x + y)
        if "materialise" in seen:
            break
        assert "host" not in seen
    else:
        raise AssertionError("never fetched")
    for _ in range(20):
        assert kinds(lambda: x * y - 1.0) == ["host", "host"]
    assert np.array_equal(np.asarray(x * y), VALUES[3] * VALUES[7])


def test_a_large_array_ends_a_run():
    rows = large()
    x, y = rows[3], rows[7]
    for _ in range(10):
        for _ in range(12):
            assert not {"host", "materialise"} & {*kinds(lambda: x + y)}
        xnp.sqrt(rows)


def test_parts_of_what_is_too_large_stay():
    big = lazyarray.asarray(np.ones((1 << 19, 2))) * 1.0        # 8 MiB
    x, y = big[3], big[7]
    for _ in range(200):
        assert not {"host", "materialise"} & {*kinds(lambda: x + y)}


@pytest.mark.parametrize("how", ["no_transfers", "options"])
def test_not_where_it_is_not_wanted(how):
    rows = large()
    x, y = rows[3], rows[7]
    with lazyarray.no_transfers() if how == "no_transfers" else lazyarray.options(small_on_host=False):
        results = [x + y for _ in range(100)]
        assert not any(_native.recording.on_host(z) is not None for z in results)
    assert all(np.array_equal(np.asarray(z), VALUES[3] + VALUES[7]) for z in results)


def test_fetches_that_few_calls_come_after_become_rare():
    rows, fetched = large(), []
    for _ in range(60):
        x = xnp.sqrt(rows)[3]
        for _ in range(18):
            x = x * 1.5
        fetched.append(kinds(lambda x=x: x + 1.0).count("materialise"))
        xnp.sqrt(rows)
    assert not any(fetched[20:])


def recurred(np, rows, out, alpha):
    """Each row of `out` is computed of the row before and of one of `rows`."""
    out[0] = rows[0]
    for t in range(1, len(rows)):
        out[t] = alpha * rows[t] + (1.0 - alpha) * out[t - 1]
    return out


@pytest.mark.parametrize("rows", [large, lambda: lazyarray.asarray(VALUES)], ids=["computed", "given"])
def test_the_host_leaves_off_where_its_results_are_sent(rows):
    rows, length = rows(), 1 << 18      # 8 MiB: too many to be fetched
    seen = kinds(lambda: recurred(xnp, rows, xnp.zeros((length, 4)), 0.3))
    again, found = [], []
    again = kinds(lambda: found.append(recurred(xnp, rows, xnp.zeros((length, 4)), 0.3)[:len(VALUES)]))
    assert np.allclose(np.asarray(found[0]), recurred(np, VALUES, np.zeros((length, 4)), 0.3)[:len(VALUES)], rtol=1e-12)
    assert seen.count("upload") < 400
    assert again.count("upload") < 100


def test_what_is_sent_now_and_then_is_computed_on_the_host():
    rows, out = large(), xnp.zeros((1 << 18, 4))
    q, plain = rows[0] * 1.0, VALUES[0] * 1.0

    def turned_and_kept(q, rows, out):
        for t in range(1, 2000):
            for _ in range(6):
                q = np.sqrt(q * rows[t] + 1.0)
            out[t] = q
        return out
    seen = kinds(lambda: turned_and_kept(q, rows, out))
    assert seen.count("host") > 15_000      # of some 18,000
    assert np.allclose(np.asarray(out[:2000]), turned_and_kept(plain, VALUES, np.zeros((2000, 4))), rtol=1e-12)


def looked_up(np, table, count, renewed=10**9, items=2):
    """A table of the device, of which a few elements are taken at a time, at places that come of those before."""
    at, total = np.arange(6), 0.0
    for k in range(count):
        taken = table[at, at[::-1]] if items == 2 else table[at]
        total = total + taken.sum()
        at = (at * 3 + k + (taken > 1.0).reshape(6, -1)[:, 0]) % table.shape[0]
        if k % renewed == renewed - 1:
            table = np.sqrt(table * table + 1e-9)
    return total


@pytest.mark.parametrize("items", [1, 2])
@pytest.mark.parametrize("renewed", [10**9, 100])
def test_a_table_that_is_looked_into_is_fetched(items, renewed):
    table, plain = large()[:20] @ large()[:20].T * 0.2, VALUES[:20] @ VALUES[:20].T * 0.2
    seen = kinds(lambda: looked_up(xnp, table, 400, renewed, items))
    assert np.allclose(float(looked_up(xnp, table, 400, renewed, items)), looked_up(np, plain, 400, renewed, items))
    assert seen.count("materialise") + seen.count("synchronise") < 100
    assert seen.count("host") > 400 * 5


def followed(np, table, count):
    """Back along a table of positions, each step from where the one before it led."""
    path = np.zeros(count, np.int64)
    path[-1] = np.argmax(table[-1])
    for t in range(count - 2, -1, -1):
        path[t] = table[t % 20, path[t + 1]]
    return path


def test_a_path_is_followed_and_kept_on_the_host():
    table, plain = large()[:20] @ large()[:20].T * 7.0, VALUES[:20] @ VALUES[:20].T * 7.0
    table, plain = table.astype(int) % 20, plain.astype(int) % 20
    found = []
    seen = kinds(lambda: found.append(followed(xnp, table, 400)))
    assert np.array_equal(np.asarray(found[0]), followed(np, plain, 400))
    assert seen.count("materialise") + seen.count("synchronise") + seen.count("upload") < 40


def test_what_large_arrays_give_is_kept_where_it_is_computed():
    """One number at a time, in a small array: nobody waits for each."""
    rows = large()

    def summed(np, rows):
        kept = np.zeros(50)
        for k in range(300):
            kept[k % 50] = (rows * k).sum()
            kept[(k + 1) % 50] = kept[k % 50] * 2
        return kept

    found = []
    seen = kinds(lambda: found.append(summed(xnp, rows)))
    assert np.allclose(np.asarray(found[0]), summed(np, VALUES))
    assert seen.count("materialise") + seen.count("synchronise") < 20


def test_a_table_that_is_too_large_stays():
    table, at = lazyarray.asarray(np.tile(VALUES, (40, 1))) * 1.0, xnp.arange(6)        # 5 MB
    for _ in range(100):
        assert not {"host", "materialise"} & {*kinds(lambda: table[at])}


def test_what_arrays_of_the_host_are_computed_with_again_and_again_is_fetched():
    """Whatever comes between: here large arrays do, which end a run. A parameter that nobody writes is fetched once."""
    rows = large()
    scale, plain = rows[:6, 0] * 2.0, VALUES[:6, 0] * 2.0
    rates, total, wanted = xnp.arange(6) * 0.5, 0.0, 0.0
    lazyarray.block_until_ready(scale)
    seen = []
    for k in range(60):
        found = []
        seen += kinds(lambda k=k, found=found: found.append(rates * k + scale))
        total = total + (rows[:, :1] * found[0]).sum()
        wanted = wanted + (VALUES[:, :1] * (np.arange(6) * 0.5 * k + plain)).sum()
    assert seen.count("materialise") == 1 and seen.count("upload") < 20 and seen[-40:] == ["host"] * 40
    assert np.allclose(float(total), wanted)


def test_it_is_fetched_once_after_each_write():
    rows, rates = large(), xnp.arange(6) * 0.5
    scale, plain = rows[:6, 0] * 2.0, VALUES[:6, 0] * 2.0
    for _ in range(4):
        fetched = 0
        lazyarray.block_until_ready(scale)
        for k in range(30):
            found = []
            fetched += kinds(lambda found=found, k=k: found.append(rates * k + scale)).count("materialise")
            assert np.allclose(np.asarray(found[0]), np.arange(6) * 0.5 * k + plain)
            xnp.sqrt(rows)
        assert fetched == 1
        scale += rows[:6, 1]        # on the device: no result of the host's is among them
        plain += VALUES[:6, 1]


def written(np, rows):
    """An array that is written on both sides, with views of it and aliases."""
    x = np.zeros((6, 5))
    view, seen = x[1:, ::2], []
    x += rows[0, 0]
    for k in range(120):
        view[k % 5] += rows[k, 1] * view[(k + 1) % 5].sum()
        x[:, k % 5] = x[:, (k + 2) % 5] / rows[k, :1]
        x[k % 6, k % 5] += 1.0
        x *= 0.5
        if k % 17 == 0:
            seen.append(np.array(x, copy=True))
    return np.stack([*seen, x])


def test_views_see_what_is_written():
    assert np.allclose(np.asarray(written(xnp, large())), written(np, VALUES), rtol=1e-12)


def test_what_a_kept_alias_writes_is_seen():
    rows = large()
    x, plain = xnp.zeros(6), np.zeros(6)
    x += rows[0, 0]
    plain += VALUES[0, 0]
    for k in range(90):
        x += rows[k, 1]
        plain += VALUES[k, 1]
        if k == 60:
            alias = np.asarray(x)
        if k > 60:
            alias[k % 6] = plain[k % 6] = k
            assert np.array_equal(np.asarray(x + 0.0), plain)
    assert np.array_equal(alias, plain) and np.array_equal(np.asarray(x), plain)


def test_a_kernel_that_waits_sees_what_was_there_before():
    """Work that was recorded keeps the storage, which is then not given up."""
    rows = large()
    x, plain = xnp.zeros(6), np.zeros(6)
    x += rows[0, 0]
    plain += VALUES[0, 0]
    kept = []
    for k in range(60):
        x *= 1.01
        plain *= 1.01
        kept.append((rows[:, :1] * x, VALUES[:, :1] * plain))       # a large call: x is sent
        for _ in range(20):
            x += rows[k, 1]
            plain += VALUES[k, 1]
    assert all(np.allclose(np.asarray(lazy), values, rtol=1e-12) for lazy, values in kept)


def _written_by_a_handler(count, number):
    """Whether there is a point of this number where a handler may write an array that is computed with."""
    rows = large()
    x, y = xnp.zeros(6), rows[3, 1]
    x += rows[0, 0]
    for _ in range(count):
        x += y

    def write(signum, frame):
        x[2] = -100.0

    at = handlers.At(number, write)
    with at:
        x += 1.0
        x += 1.0
    found = np.asarray(x)
    assert np.allclose(found[[0, 1, 3, 4, 5]], VALUES[0, 0] + count * VALUES[3, 1] + 2.0)
    if at.ran and "/simulated/" not in at.place and "/devices/program.py" not in at.place:      # a kernel runs there
        assert any(np.isclose(found[2], -100.0 + late) for late in (0.0, 1.0, 2.0)), (at.place, found)
    return at.ran


def test_a_handler_writes_the_array_at_each_point():
    points = 0
    for count in (3, 17, 30):       # recorded, fetched, and nothing but an ndarray again
        number = 0
        while _written_by_a_handler(count, number):
            number += 1
        points += number
    assert points > 3 or lazyarray.device().name == "cuda"


def test_threads_have_runs_of_their_own_arrays():
    rows, failed = large(), []

    def work(seed):
        try:
            for _ in range(3):
                found = turned(xnp, rows[seed:], 150)
                assert np.allclose(np.asarray(found), turned(np, VALUES[seed:], 150), rtol=1e-9)
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_an_array_whose_memory_on_the_device_is_not_made_yet():
    """It waits for what was written to it, in a storage that came from the host."""
    program = ("import numpy, lazyarray, lazyarray.numpy as np\n"
               "big = np.array(numpy.ones((1000, 400))) * 1.0\nf = np.zeros(20)\nlazyarray.where(f)\n"
               "f += big[0, :20]\nlazyarray.where(f)\nfor k in range(24):\n    f += 1\nprint(f.sum())\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.stdout.strip(), done.stderr) == ("500.0", "")


_ALONE = """
import sys
import numpy
import lazyarray
from lazyarray import _native
import lazyarray.numpy as xnp

values = numpy.random.default_rng(5).random((4000, 4)) + 0.5
is_light = _native.recording.is_light

def loop(np, rows, x, kept):
    x += rows[:6, 0]      # it is the device's then
    if kept == "a view":
        kept = x[1:4]
    elif kept == "an alias":
        kept = numpy.asarray(x)
    elif kept == "a pointer" and np is xnp:
        kept = lazyarray.asdevice(x)
    elif kept == "recorded work":
        kept = x[:, None] + rows[:4, 0]
    for k in range(60):
        x += rows[k, 1]
        x[k % 6] = x[(k + 1) % 6] * 0.5
        if k == 40 and isinstance(kept, np.ndarray) and kept.shape == (3,):
            kept[0] = 7.0
    return x, kept

for kept in ("nothing", "a view", "an alias", "a pointer", "recorded work"):
    x, held = loop(xnp, lazyarray.asarray(values) * 1.0, xnp.zeros(6), kept)
    light = is_light(x)
    plain, wanted = loop(numpy, values, numpy.zeros(6), kept)
    assert numpy.allclose(numpy.asarray(x), plain, rtol=1e-12), (kept, x, plain)
    if kept in ("a view", "an alias", "recorded work"):
        assert numpy.allclose(numpy.asarray(held), wanted, rtol=1e-12), (kept, held, wanted)
    if kept == "a pointer":
        assert numpy.allclose(lazyarray.asnumpy(held), plain, rtol=1e-12), (kept, held, plain)
    print(kept, light)
"""


def test_an_array_that_nobody_else_knows_of_is_an_ndarray_again():
    """In a process of one thread; with a view, an alias, a device pointer or recorded work it keeps its storage."""
    done = subprocess.run([sys.executable, "-c", _ALONE], capture_output=True, text=True, timeout=120)
    assert done.stderr == "", done.stderr
    found = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    assert found["nothing"] == "True" and found["a view"] == found["an alias"] == found["a pointer"] == "False", found
