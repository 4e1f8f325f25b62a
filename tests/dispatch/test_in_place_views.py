"""Statements that write into a view, again and again: the second time they take the short way."""
from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import lazyarray
from lazyarray import _native
from lazyarray.storage import handles
from lazyarray.testing import assert_copies

rng = np.random.default_rng(3)
DEVICE = lazyarray.device()


def on_device(values):
    return lazyarray.asarray(DEVICE.xp.asarray(values)).copy()


def shifted(x, y):
    x[1:] += x[:-1]


def windows(x, y):
    view = sliding_window_view(x[0], 3, writeable=True)
    view *= 2


def several(x, y):
    for i in range(3):
        x[i:i + 3] += y[i]
        x[:, i] -= y[:6, i]
        x[i, ::2] *= x[i + 1, 1::2]


def of_another_view(x, y):
    part, other = x[1:3], x[3:5]
    part += other
    other -= part


def numbers(x, y):
    view = x[1:5, 2:4]
    view += 1
    view *= 2
    x[0] = 3
    x[1, :2] = -1.5 if x.dtype.kind == "f" else 5
    x[::3] = 2**24 + 1


def results(x, y):
    np.add(x[0], y[0], out=x[2])
    np.multiply(x[:2], y[:2], out=x[4:])
    np.add(x[0], y[0], out=x[3:5])


def transposed(x, y):
    view = x.T
    view += y[:6].T
    view[2] += y[1]


STATEMENTS = {call.__name__: call for call in (
    shifted, windows, several, of_another_view, numbers, results, transposed)}


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
@pytest.mark.parametrize("name", STATEMENTS)
def test_they_give_what_numpys_give(name, dtype):
    host, other = (rng.integers(-9, 9, (8, 6)).astype(dtype)[:n] for n in (6, 8))
    host, other = host.copy(), other.copy()
    x, y = lazyarray.asarray(host), lazyarray.asarray(other)
    for _ in range(3):
        with np.errstate(over="ignore"):
            STATEMENTS[name](host, other)
            STATEMENTS[name](x, y)
    assert np.array_equal(np.asarray(x), host)


def test_nothing_is_copied():
    x, y = lazyarray.asarray(np.ones((500, 600))), lazyarray.asarray(np.ones(600))
    with assert_copies(uploads=0, materialisations=0):
        for i in range(4):
            x[i:i + 9] += y
            x[:, i] *= 2
            x[i] = 0


def test_an_alias_sees_what_is_written_into_a_view():
    x, y = lazyarray.asarray(np.ones((6, 8))), lazyarray.asarray(np.ones(8))
    x[1:3] += y
    alias = np.asarray(x)
    x[1:3] += y
    alias[1, 0] = 9
    x[1:3] += y
    assert alias[1].tolist() == [10.0] + [4.0] * 7 and np.array_equal(alias, np.asarray(x * 1))


def test_what_was_recorded_reads_what_was_there():
    x, y = lazyarray.asarray(np.ones((6, 8))), lazyarray.asarray(np.ones(8))
    for _ in range(3):
        before = x * 2
        x[1:3] += y
        assert np.asarray(before)[0, 0] == 2.0
    assert np.asarray(before)[1, 0] == 6.0 and np.asarray(x)[1, 0] == 4.0


@pytest.mark.parametrize("index", [
    lambda a: np.argsort(a), lambda a: np.nonzero(a > 0)[0], lambda a: np.flatnonzero(a > 0)[a[a > 0] > 2],
    lambda a: np.argsort(a)[a > 0], lambda a: np.argsort(a)[[0, 1, 0]], lambda a: np.nonzero(a > 0)[0][[1, 1, 0]],
    lambda a: np.argsort(a) - 3, lambda a: np.arange(5) * 0 + 2])
def test_of_several_values_for_one_place_the_last_one_wins(index):
    host = np.array([3.0, -1.0, 5.0, 2.0, -4.0, 1.0])
    x = lazyarray.asarray(host)
    places, lazy_places = index(host), index(x)
    values = np.arange(1.0, len(places) + 1)
    host[places] = values
    x[lazy_places] = lazyarray.asarray(values)
    assert np.array_equal(np.asarray(x), host)


def test_places_that_are_known_to_be_in_range_of_one_array_may_not_be_of_another():
    x = lazyarray.asarray(np.arange(20.0))
    few = np.argsort(x)[x < 5]
    assert np.asarray(lazyarray.asarray(np.arange(6))[few]).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(IndexError):
        lazyarray.asarray(np.arange(4))[few]


def test_a_scattered_write_into_an_array_that_the_host_alone_has_sends_it_whole():
    import lazyarray.numpy as xnp

    x = xnp.asarray(np.zeros((300, 3, 41)).tolist())        # not uploaded yet, or kept on both sides
    row = lazyarray.asarray(np.ones((300, 3)))
    with lazyarray.trace() as t:
        for i in range(3):
            x[:, :, i] = row
    assert len(t.uploads) <= 1 and not t.materialisations
    wanted = np.zeros((300, 3, 41))
    wanted[:, :, :3] = 1
    assert np.array_equal(np.asarray(x), wanted)


@pytest.mark.parametrize("index", [[1, 0, 1], (slice(None), [0, 1]), np.array([True, True])], ids=str)
def test_what_arrays_take_of_an_array_lies_in_memory_as_numpys(index):
    """`reshape` gives a view or a copy after that, and so it decides who sees what is written later."""
    host = np.asfortranarray(np.arange(240.0).reshape(2, 30, 4))
    x = lazyarray.asarray(host)
    found, wanted = x[index], host[index]
    rows, wanted_rows = found.reshape(-1), wanted.reshape(-1)
    found /= 5
    wanted /= 5
    assert found.strides == wanted.strides and np.array_equal(np.asarray(rows), wanted_rows)


def test_what_a_failing_call_has_written_is_seen_through_a_pointer():
    host = np.arange(6.0)
    x = lazyarray.asarray(host)
    pointer = lazyarray.asdevice(x)
    for array in (host, x):
        with pytest.raises(IndexError):
            np.put(array, [0, 60], 3)
    assert np.array_equal(lazyarray.asnumpy(pointer), host)


def test_an_output_of_another_shape_gets_numpys_own_words():
    empty, out = (lazyarray.asarray(np.ones(shape)) for shape in ((0, 1, 1), (1, 1, 1)))
    with pytest.raises(ValueError, match="non-broadcastable"):
        np.matmul(empty, empty, out=out)
    several = lazyarray.asarray(np.zeros((3, 2, 2)))
    np.matmul(lazyarray.asarray(np.eye(2)), lazyarray.asarray(np.eye(2)), out=several)
    assert np.array_equal(np.asarray(several), np.broadcast_to(np.eye(2), (3, 2, 2)))


@pytest.mark.skipif(_native.recording is None, reason="small arrays are kept on the host by the part in C")
@pytest.mark.parametrize("index", [..., slice(None), (slice(None), ...)])
@pytest.mark.parametrize("part", [
    lambda x: x[::-1], lambda x: x[:, ::-1], lambda x: x[:1], lambda x: x[:, 2:3], lambda x: x[1:], lambda x: x[:, :2],
    lambda x: x[:0], lambda x: x[...]])
def test_a_part_that_was_made_on_the_host_is_assigned_to_the_whole(index, part):
    """Such a view has no meta before it is asked for: it is not taken for the whole array."""
    before = _native.recording.small(1 << 20)
    try:
        plain = np.arange(12.0).reshape(3, 4)
        fetched = lazyarray.asarray(plain) * 1
        _native.recording.small(0)
        fetched = fetched + 0
        handles.device_of(fetched)
        _native.recording.small(1 << 20)
        str(fetched)        # which leaves it on both sides
        for x in (lazyarray.asarray(plain.copy()) * 1, fetched):
            expected = plain.copy()
            wrong = []
            for each in (x, expected):
                try:
                    each[index] = part(each)
                except ValueError as error:
                    wrong.append(str(error))
            assert len(wrong) in (0, 2) and len({*wrong}) <= 1 and np.array_equal(np.asarray(x), expected)
    finally:
        _native.recording.small(before)


@pytest.mark.parametrize("seed", range(60))
def test_what_is_seen_in_another_shape_is_written_in_the_order_of_memory(seed):
    """A raveled part is read along its own axes, and what it is written to along those."""
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 6, rng.integers(1, 4)))
    base = rng.integers(0, 20, [2 * n for n in shape]).astype(rng.choice(["f8", "i8", "f4"]))
    part = tuple(slice(1, None, 2) if rng.random() < 0.6 else slice(n) for n in shape)
    order, out = rng.permutation(len(shape)), rng.integers(0, 20, int(np.prod(base[part].shape)) + 5)
    programs = (
        lambda o, f: o.__iadd__(f), lambda o, f: o.__setitem__(..., f), lambda o, f: np.multiply(o, f + o, out=o),
        lambda o, f: o.reshape(base[part].shape).__isub__(f.reshape(base[part].shape)),
        lambda o, f: (f + 1, o.__iadd__(f * 2)))
    for program in programs:
        results = []
        for array in (np.array, on_device):
            x, o = array(base), array(out.astype(base.dtype))
            for values in (x[part].transpose(order).ravel(), x[part].transpose(order).ravel() * 3 - 1):
                program(o[3:-2], values)
            results.append((np.asarray(o).tolist(), np.asarray(values).tolist()))
        assert results[0] == results[1]


@pytest.mark.one_device("what waits is written in place")
def test_a_raveled_part_is_added_by_one_kernel(monkeypatch):
    """Which waits for what it is made of until it is there, and writes nothing else."""
    o, x = on_device(np.zeros(40)), on_device(np.arange(100.0).reshape(10, 10))
    for y in (o, x):
        lazyarray.block_until_ready(y)

    def fail(*args):
        raise AssertionError("it is written in place")

    for _ in range(3):      # the kernel is made
        o[4:34] += x[:, 1:4].ravel()
        lazyarray.block_until_ready(o)
    wait()
    monkeypatch.setattr(DEVICE, "assign", fail)
    o[4:34] += x[:, 1:4].ravel()
    monkeypatch.undo()
    assert np.asarray(o)[4:7].tolist() == [4, 8, 12]


def wait():
    if hasattr(DEVICE, "wait_for_kernels"):
        DEVICE.wait_for_kernels()
