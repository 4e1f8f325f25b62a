"""Memory that somebody else holds, or has held for a while, is written in place as quickly as our own."""
from __future__ import annotations

import threading

import numpy as np
import pytest

import lazyarray
from lazyarray import _native
from lazyarray.dispatch import ufunc_general
from lazyarray.storage import foreign_streams
from lazyarray.storage.state import all_ended

pytestmark = pytest.mark.together

DEVICE = lazyarray.device()
SIZE = 4096


def shared(values):
    """A lazy array around memory that the other one holds."""
    held = DEVICE.xp.asarray(values)
    return lazyarray.asarray(held), held


def lent(values):
    x = lazyarray.asarray(DEVICE.xp.asarray(values)).copy()
    return x, lazyarray.asdevice(x)


def no_longer_lent(values):
    x, _ = lent(values)
    return x, None


def from_the_host(values):
    """Lent after it was made of a host array, so that there is a copy of it on the host."""
    x = lazyarray.asarray(values.copy())
    lazyarray.asdevice(x)
    return x, None


MADE = {made.__name__: made for made in (shared, lent, no_longer_lent, from_the_host)}

#: What is written to `x`, of SIZE elements, with `y`, a mask, positions and the same memory in two dimensions.
STATEMENTS = (
    "x += y", "x *= 1.5", "np.maximum(x, y, out=x)", "np.add(x, y, out=x[:])", "x[3] = 7", "x[5:900] = y[5:900]",
    "x[::2] = 0", "x[:] = y * 2 + x", "m[1:-1] += m[2:]", "m[:, 1:] -= m[:, :-1]", "m.T[3] = 1", "x[i] = 0",
    "x[i] += 1", "x[i] = y[i]", "x[mask] = 0", "x[mask] += y[mask]", "np.add.at(x, i, y[i])", "x.sort()", "x.fill(3)",
    "x[1:] += x[:-1]", "np.copyto(x, y, where=mask)", "x += x", "x[i] = y[::-1][i]")


@pytest.fixture(params=[False, True], ids=["alone", "beside another library"])
def partner(request):
    """With a library that computes on a stream of its own, or without."""
    if request.param:
        foreign_streams.partners.append(idle := lambda device: None)
        yield
        foreign_streams.partners.remove(idle)
    else:
        yield


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_all_see_what_is_written(made, statement, partner):
    generator = np.random.default_rng(0)
    values, other = generator.random(SIZE), generator.random(SIZE)
    i, mask = generator.permutation(SIZE)[:700], generator.random(SIZE) < 0.3
    x, held = made(values)
    y = lazyarray.asarray(DEVICE.xp.asarray(other))
    theirs = {"np": np, "x": x, "y": y, "m": x.reshape(64, 64),
              "i": lazyarray.asarray(i), "mask": lazyarray.asarray(mask)}
    ours = {"np": np, "x": values, "y": other, "m": values.reshape(64, 64), "i": i, "mask": mask}
    for turn in range(4):
        before, expected_before = x * 2 + 1, values * 2 + 1
        exec(statement, ours)
        exec(statement, theirs)
        np.testing.assert_allclose(np.asarray(before), expected_before)
        if held is not None:
            np.testing.assert_allclose(DEVICE.xp.asnumpy(held), ours["x"])
            held[turn] = -turn
            values[turn] = -turn
        np.testing.assert_allclose(np.asarray(theirs["x"].sum()), ours["x"].sum())
        if turn > 1:
            np.testing.assert_allclose(np.asarray(theirs["x"]), ours["x"])


@pytest.mark.skipif(_native.recording is None, reason="without the part in C all take the general way")
@pytest.mark.parametrize("statement", ["x += y", "np.maximum(x, y, out=x)", "m[1:-1] += y.reshape(64, 64)[2:]"])
@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_operators_are_kernels(made, statement, monkeypatch, request):
    # Beside PyTorch, say, what is held is written in the general way.
    partners = foreign_streams.partners[:]
    foreign_streams.partners.clear()
    request.addfinalizer(lambda: foreign_streams.partners.extend(partners))
    x, held = made(np.arange(SIZE * 1.0))
    y = lazyarray.asarray(DEVICE.xp.asarray(np.ones(SIZE)))
    given = {"np": np, "x": x, "y": y, "m": x.reshape(64, 64)}
    for _ in range(40):
        exec(statement, given)
    if hasattr(DEVICE, "kernels"):
        DEVICE.kernels.wait()
    exec(statement, given)
    if DEVICE.several:
        pytest.skip("with several devices in use Python looks where each array is")

    def general(*args):
        raise AssertionError("the general way")

    monkeypatch.setattr("lazyarray.dispatch.ufunc.elementwise", general)
    monkeypatch.setattr(ufunc_general, "elementwise", general)
    exec(statement, given)
    assert held is None or held is not None and x._self_storage.loans


def test_holders_that_are_gone_are_forgotten():
    for made in (no_longer_lent, from_the_host):
        x, _ = made(np.arange(SIZE * 1.0))
        assert x._self_storage.loans
        x += 1
        x += 1
        assert not x._self_storage.loans
        np.testing.assert_array_equal(np.asarray(x), np.arange(SIZE) + 2.0)


def test_what_a_holder_that_is_gone_has_written_is_seen():
    values = np.arange(SIZE * 1.0)
    x = lazyarray.asarray(values)
    alias = np.asarray(x)
    d = lazyarray.asdevice(x)
    d[:5] = -1
    del d
    y = x + 0
    assert np.asarray(y)[:6].tolist() == [-1] * 5 + [5]
    assert np.asarray(x)[:6].tolist() == alias[:6].tolist() == [-1] * 5 + [5]


def test_positions_that_a_holder_has_changed_are_looked_at_again():
    x, positions = lazyarray.asarray(DEVICE.xp.asarray(np.arange(10.0))), np.array([1, 2, 3])
    for made in MADE.values():
        i, held = made(positions)
        for _ in range(3):
            assert np.asarray(x[i]).tolist() == [1, 2, 3]
        d = lazyarray.asdevice(i) if held is None else held
        d[1] = 10
        with pytest.raises(IndexError):
            x[i]
        d[1] = 9
        del d
        assert np.asarray(x[i]).tolist() == [1, 9, 3]
        i[0] = 11
        with pytest.raises(IndexError):
            x[i] = 0


@pytest.fixture
def small_arrays_stay(small_on_host):
    if _native.recording is None:
        pytest.skip("without the part in C no array stays on the host")
    small_on_host(8192)


@pytest.mark.usefixtures("small_arrays_stay")
def test_who_finds_a_holder_gone_that_another_thread_has_forgotten():
    """It waited for the lock while the other one fetched the bytes: these are trusted from then on."""
    x = lazyarray.asarray(DEVICE.xp.asarray(np.zeros(100)))
    storage = x._self_storage
    lazyarray.asdevice(x)
    with storage.lock:
        waiting = threading.Thread(target=all_ended, args=(storage,))
        waiting.start()
        waiting.join(0.1)
        x.tolist()
        assert not storage.loans
    waiting.join()
    x[1::2] = -5
    assert x.tolist() == [0.0, -5.0] * 50 and storage.mirror.valid


@pytest.mark.usefixtures("small_arrays_stay")
def test_threads_that_lend_read_and_write_parts():
    """One reads its part, and lends all of it again and again; the other writes its own part once."""
    for _ in range(300):
        x = lazyarray.asarray(DEVICE.xp.asarray(np.zeros(100)))
        read, written, begin = x[::2], x[1::2], threading.Barrier(2)

        def reader(read=read, begin=begin):
            begin.wait()
            for _ in range(10):
                lazyarray.asdevice(read)
                read.tolist()

        thread = threading.Thread(target=reader)
        thread.start()
        begin.wait()
        float(written.sum())
        written[...] = -5
        thread.join()
        assert np.asarray(x).tolist() == [0, -5] * 50


@pytest.mark.parametrize("statement", ["t += x", "t *= x; t += x", "np.add(t, x, out=t)", "t -= x.astype('f4')"])
@pytest.mark.parametrize("new", [np.zeros_like, np.ones_like, lambda x: x * 0 + 2, lambda x: x.copy()])
@pytest.mark.parametrize("made", [shared, lent])
def test_what_is_made_of_held_memory_does_not_wait(made, new, statement):
    """The holder may write it as soon as the statement is over."""
    values = np.arange(SIZE * 1.0)
    for _ in range(2):
        x, held = made(values)
        t, plain = new(x), new(values)
        exec(statement, {"np": np, "t": t, "x": x})
        exec(statement, {"np": np, "t": plain, "x": values})
        held[...] = -7
        np.testing.assert_array_equal(np.asarray(t), plain)


@pytest.mark.parametrize("alias_of", [
    np.asarray, np.from_dlpack, lambda x: x.__array__(), lambda x: x.__array__()[:]])
@pytest.mark.parametrize("size", [5, 200_000])
def test_an_alias_outlives_the_lazy_array(alias_of, size):
    """Whoever has the device memory makes a lazy array of it again."""
    for lend in (False, True):
        held = DEVICE.xp.asarray(np.arange(size))
        x = lazyarray.asarray(held)
        alias = alias_of(x)
        if lend:
            held = lazyarray.asdevice(x)
        del x
        y = lazyarray.asarray(held)
        alias[1] = -5
        assert y[1] == -5
        y += 1
        assert alias[1] == -4
        held[2] = 7
        np.asarray(y)
        assert alias[2] == 7


def test_large_writes_beside_a_thread_that_reads():
    """NumPy writes large parts without the interpreter's lock."""
    n = 50_000
    x = lazyarray.asarray(np.zeros(3 * n, np.int16))
    held, alias = lazyarray.asdevice(x), np.asarray(x)
    done = threading.Event()

    def reader():
        while not done.is_set():
            x[2 * n:].sum()

    thread = threading.Thread(target=reader)
    thread.start()
    try:
        mine, expected = alias[:n], np.sort(np.arange(n, dtype=np.int16))
        for _ in range(150):
            mine[...] = np.arange(n, dtype=np.int16)[::-1]
            mine.sort()
            np.testing.assert_array_equal(mine, expected)
    finally:
        done.set()
        thread.join()
    np.testing.assert_array_equal(np.asarray(x[:n] + 0), expected)
    del held
