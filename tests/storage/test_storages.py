"""One block of device memory has one storage: what lies in the same memory knows of each other's writes."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray
from lazyarray import devices
from lazyarray.storage import handles
from lazyarray.storage.storage import Storage

PLAIN = np.arange(6.0).reshape(2, 3)


def apart(x, y):
    """Whether neither of two arrays sees what is written to the other, by views, aliases or recorded work."""
    before, held = x.tolist(), np.asarray(x)
    doubled = x * 2
    y[...] = -77
    return x.tolist() == held.tolist() == before and doubled.tolist() == (np.array(before) * 2).tolist()


COPIES = {
    "an index without dimensions": lambda x: x[np.array(1)],
    "a lazy one": lambda x: x[lazyarray.asarray(np.array(1))],
    "of bytes": lambda x: x[np.array(1, np.uint8)],
    "beside an ellipsis": lambda x: x[..., np.array(1)],
    "beside a slice": lambda x: x[:, lazyarray.asarray(np.array(1))],
    "beside a number": lambda x: x[np.array(1), ..., 0],
    "beside a list": lambda x: x[np.array(0), [0, 2]],
    "two": lambda x: x[np.array(1), np.array(1), None],
    "0-d masks are not supported on the device": lambda x: x[np.array(True)],
    "True": lambda x: x[True],
    "a mask": lambda x: x[x > -1],
    "take": lambda x: np.take(x, np.array(1), axis=0),
    "reduce along no axis": lambda x: np.add.reduce(x, axis=()),
    "sum along no axis": lambda x: np.sum(x, axis=()),
    "accumulate of one row": lambda x: np.add.accumulate(x[:1], axis=0),
    "positive": np.positive,
    "conjugate": np.conjugate,
    "copy": np.copy,
    "round": np.round,
    "repeat": lambda x: np.repeat(x, 1, axis=0),
    "tile": lambda x: np.tile(x, 1),
    "concatenate": lambda x: np.concatenate([x]),
    "pad": lambda x: np.pad(x, 0),
    "roll": lambda x: np.roll(x, 0),
    "delete": lambda x: np.delete(x, [], axis=0),
    "compress": lambda x: np.compress([True, True], x, axis=0),
    "where": lambda x: np.where(x > -1, x, x),
    "choose": lambda x: np.choose(np.zeros((2, 3), int), [x]),
    "select": lambda x: np.select([x > -1], [x]),
    "sort": lambda x: np.sort(x, axis=0),
    "cumsum": lambda x: np.cumsum(x[:1], axis=0),
}


@pytest.mark.parametrize("see", [lambda x: x, lambda x: x + 0, lambda x: x.T.copy().T, lambda x: x[::-1][::-1]],
                         ids=["computed", "pending", "Fortran", "view"])
@pytest.mark.parametrize("copy", COPIES)
def test_what_numpy_copies_is_a_copy(copy, see):
    x = see(lazyarray.asarray(PLAIN))
    y = COPIES[copy](x)
    expected = COPIES[copy](see(PLAIN.copy()))
    assert (y.dtype, y.shape, y.tolist()) == (expected.dtype, expected.shape, expected.tolist())
    assert not np.shares_memory(x, y)
    assert apart(x, y)


TOGETHER = {
    "nonzero": np.nonzero,
    "where": lambda x: np.where(x > 1),
    "unravel_index": lambda x: np.unravel_index(np.arange(4), x.shape),
    "frexp": np.frexp,
    "divmod": lambda x: np.divmod(x, 2),
    "gradient": np.gradient,
    "meshgrid": lambda x: np.meshgrid(x[0], x[1]),
    "qr": np.linalg.qr,
    "unique": lambda x: np.unique(x, return_inverse=True, return_counts=True),
}


@pytest.mark.parametrize("call", TOGETHER)
def test_results_of_one_call_do_not_lose_each_others_writes(call):
    first, second, *_ = TOGETHER[call](lazyarray.asarray(PLAIN))
    was = second.tolist()
    held = np.asarray(first), np.asarray(second)
    held[0][...] = 5            # written on the host,
    second += 1                 # and on the device
    assert (first + 0).tolist() == held[0].tolist() == np.full(first.shape, 5).tolist()
    assert second.tolist() == held[1].tolist() == (np.array(was) + 1).tolist()


@pytest.mark.together
@pytest.mark.parametrize("parts", [lambda d: (d[1:], d), lambda d: (d, d[1:]), lambda d: (d[:4], d[2:]),
                                   lambda d: (d[::2], d[1::2]), lambda d: (d[3:], d[::-1])])
def test_shared_device_memory_has_one_storage_whichever_part_comes_first(parts):
    device = lazyarray.asdevice(lazyarray.asarray(np.arange(6.0))).copy()
    plain = np.arange(6.0)
    x, y = map(lazyarray.asarray, parts(device))
    a, b = parts(plain)
    doubled, alias = x * 2, np.asarray(x)
    before = a * 2
    y[...] = -1
    b[...] = -1
    assert doubled.tolist() == before.tolist()
    assert x.tolist() == alias.tolist() == a.tolist()
    alias[0] = a[0] = 9
    assert y.tolist() == b.tolist()
    assert x._self_storage is y._self_storage


@pytest.mark.skipif(devices.current().name != "simulated", reason="the check is the simulated device's")
def test_a_second_storage_over_the_same_memory_is_an_error():
    x = lazyarray.asarray(PLAIN)
    array = handles.device_of(x)
    for again in (array, array[1:], array.T, array.reshape(-1)[::2]):
        with pytest.raises(RuntimeError, match="second storage"):
            Storage(devices.current(), again)
    del x
    Storage(devices.current(), array)       # the first is gone


@lazyarray.lazy
def parts_of_both(a, b):
    return a[3:], b[:3]


def test_results_that_lie_in_overlapping_arguments_see_each_others_writes():
    plain = np.arange(12.0)
    x, y = parts_of_both(plain[:6], plain[3:9])
    doubled = y * 2
    x[...] = -1
    assert doubled.tolist() == [6, 8, 10]
    assert x.tolist() == y.tolist() == plain[3:6].tolist() == [-1] * 3
    plain[4] = 7
    assert x.tolist() == y.tolist() == [-1, 7, -1]


def test_a_device_array_may_be_assigned_to_nothing():
    x = lazyarray.asarray(PLAIN)
    x[0:0] = lazyarray.asdevice(lazyarray.asarray(np.zeros(3)))
    with pytest.raises(ValueError, match="broadcast"):
        x[0:0] = lazyarray.asdevice(lazyarray.asarray(np.zeros(4)))
    assert x.tolist() == PLAIN.tolist()
