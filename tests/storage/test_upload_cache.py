"""Uploads of host arrays: made once while nobody writes to the array, and again as soon as somebody did."""
from __future__ import annotations

import ctypes
import gc
import mmap
import operator
import threading
import weakref

import numpy as np
import pytest

import lazyarray
from lazyarray.storage import upload_cache, watched_uploads
from lazyarray.storage.mirror.dirty_tracking import kernel

SIZES = {"least": upload_cache.LEAST // 8, "pages": 81_920, "odd": 123_457}
pytestmark = pytest.mark.skipif(kernel() is None, reason="the kernel has no page tracking here")
every_size = pytest.mark.parametrize("size", SIZES.values(), ids=list(SIZES))


@lazyarray.lazy(pure=True)
def total(x):
    return x.sum()


def locked(size, dtype=np.float64):
    array = np.arange(size).astype(dtype)
    array.flags.writeable = False
    return array


def count_of(*arrays):
    """How many uploads it takes to use these arrays once more; what comes out is right."""
    with lazyarray.trace() as t:
        for array in arrays:
            assert float(total(array)) == array.sum()
    return len(t.uploads)


@every_size
def test_a_read_only_array_is_uploaded_once(size):
    array = locked(size)
    assert [count_of(array) for _ in range(3)] == [1, 0, 0]


@every_size
@pytest.mark.parametrize("dtype", ["f4", "i8", "c16", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_any_layout_that_owns_its_memory(size, dtype, order):
    array = np.array(locked(size * 8, dtype).reshape(2, -1), order=order)
    array.flags.writeable = False
    with lazyarray.trace() as t:
        for _ in range(2):
            found = np.asarray(lazyarray.lazy(lambda x: x + 0, pure=True)(array))
            np.testing.assert_array_equal(found, array + 0)
    assert len(t.uploads) == 1


#: Writable arrays: found by their bytes, kept at once, and kept when they come again.
COMPARED = {"tiny": 3, "small": upload_cache.SMALL // 8, "kept": upload_cache.SMALL // 8 + 1,
            "seen": upload_cache.AT_ONCE // 8 + 1, "most": upload_cache.COMPARED // 8}
compared = pytest.mark.parametrize("size", COMPARED.values(), ids=list(COMPARED))


@compared
def test_a_writable_array_is_uploaded_once(size):
    array = np.arange(float(size))
    first = 2 if array.nbytes > upload_cache.AT_ONCE else 1
    assert [count_of(array) for _ in range(4)] == [1] * first + [0] * (4 - first)


@compared
@pytest.mark.parametrize("where", [0, 0.3, 0.999999])
def test_a_write_is_found(size, where):
    array = np.arange(float(size))
    for _ in range(3):
        count_of(array)
    array[int(where * size)] += 0.5
    assert count_of(array) == 1
    assert sum(count_of(array) for _ in range(8)) <= 3 and count_of(array) == 0


@compared
def test_any_layout_is_compared(size):
    base = np.arange(4.0 * size).reshape(2, -1)
    zero = lazyarray.asarray(np.zeros(1))
    for array in (base.T[:size // 2], base[:, ::4], base[::-1, :size // 2], np.asfortranarray(base[:, :size // 2])):
        with lazyarray.trace() as t:
            for _ in range(4):
                np.testing.assert_array_equal(zero + array, array)
        assert len(t.uploads) <= 2


def test_a_larger_array_that_may_be_written_is_uploaded_each_time():
    array = np.arange(float(upload_cache.COMPARED // 8 + 1))
    assert [count_of(array) for _ in range(4)] == [1, 1, 1, 1]
    array = locked(upload_cache.LEAST // 8 - 1)
    assert count_of(np.broadcast_to(array[:1], (upload_cache.LEAST, 8))) == 1


def test_an_array_that_changes_each_time_is_not_kept():
    array = np.zeros(upload_cache.AT_ONCE // 8)
    for i in range(40):
        array[-1] = i
        assert count_of(array) == 1
    assert sum(copy.storage is not None for copy in upload_cache._copies.values()) <= 1


def test_what_is_used_again_before_it_changes_is_kept_at_once():
    """Each statement that makes use of a mask three times uploads it once."""
    array = np.ones(250_000, bool)
    assert count_of(array, array, array) == 2       # one that may be written is kept when it is used again
    for k in range(8):
        array[k] = False
        assert count_of(array, array, array) == 1
    changes = []
    for k in range(8, 40):
        array[k] = False
        changes.append(count_of(array))
    assert changes == [1] * len(changes)


def test_views_of_a_read_only_array_have_a_copy_each():
    array = locked(100_000)
    assert [count_of(array[10:80_010], array[:70_000], array[10:80_010].reshape(2, -1)) for _ in range(2)] == [3, 0]


def test_a_view_that_is_made_anew_is_known_again():
    array = locked(100_000)
    assert [count_of(array[5:]), count_of(array[5:]), count_of(array[6:])] == [1, 0, 1]


def flip_and_write(array, i):
    array.flags.writeable = True
    array[i] += 1
    array.flags.writeable = False


def write_by_address(array, i):
    address = array.__array_interface__["data"][0] + i * array.itemsize
    ctypes.c_double.from_address(address).value += 1


@every_size
@pytest.mark.parametrize("where", [0, 0.3, 0.999999])
@pytest.mark.parametrize("write", [flip_and_write, write_by_address])
def test_a_write_by_the_back_door_is_found(size, where, write):
    array = locked(size)
    count_of(array)
    write(array, int(where * size))
    assert [count_of(array), count_of(array)] == [1, 0]
    write(array, int(where * size))
    assert [count_of(array), count_of(array)] == [1, 0]


@every_size
def test_a_write_through_an_older_view_is_found(size):
    array = np.arange(size, dtype=float)
    older = array[:]
    array.flags.writeable = False
    assert [count_of(array), count_of(array)] == [1, 0]
    older[size // 2] = -3
    assert [count_of(array), count_of(array)] == [1, 0]


@every_size
def test_a_write_is_told_to_all_views(size):
    array = locked(2 * size + 2)
    parts = [array[:size + 1], array[size // 2 + 1:], array[:]]
    assert [count_of(*parts), count_of(*parts)] == [3, 0]
    flip_and_write(array, size // 2 + 1)
    assert count_of(parts[0]) == 1
    assert count_of(*parts[1:]) == 2


def test_neighbours_in_one_page_do_not_hide_each_others_writes():
    arrays = [locked(70_000) for _ in range(8)]     # on the heap, most of them side by side
    count_of(*arrays)
    for array in arrays[::2]:
        flip_and_write(array, 0)
        flip_and_write(array, -1)
    assert count_of(*arrays[1::2]) == 0
    assert count_of(*arrays[::2]) == 4


def test_bytes_never_change():
    data = locked(100_000).tobytes()
    array = np.frombuffer(data)
    assert [count_of(array), count_of(array), count_of(array[3:]), count_of(array[3:])] == [1, 0, 1, 0]


def of_a_writable_base(size, tmp_path):
    view = np.arange(size)[:]
    view.flags.writeable = False
    return view


def of_a_bytearray(size, tmp_path):
    array = np.frombuffer(bytearray(int(size) * 8))
    array.flags.writeable = False
    return array


def of_a_mapping(size, tmp_path):
    return np.frombuffer(mmap.mmap(-1, int(size) * 8, access=mmap.ACCESS_READ))


def of_a_memory_map(size, tmp_path):
    np.arange(size).tofile(tmp_path / "data")
    return np.memmap(tmp_path / "data", float, "r")


@pytest.mark.parametrize(("size", "expected"), [(100_000.0, [1, 0]), (200_000.0, [1, 1])])
@pytest.mark.parametrize("make", [of_a_writable_base, of_a_bytearray, of_a_mapping, of_a_memory_map])
def test_memory_that_others_may_write_is_compared_or_uploaded_each_time(make, size, expected, tmp_path):
    array = make(size, tmp_path)
    assert not array.flags.writeable
    assert [count_of(array), count_of(array)] == expected


def test_the_copy_goes_with_the_array():
    array = locked(100_000)
    count_of(array)
    assert id(array) in watched_uploads._owners
    gone = id(array)
    del array
    gc.collect()
    assert gone not in watched_uploads._owners


def test_a_view_keeps_it():
    array = locked(100_000)
    view = array[2:]
    count_of(view)
    del array
    assert count_of(view) == 0


def test_no_array_is_kept_alive():
    array = locked(100_000)
    count_of(array)
    ref = weakref.ref(array)
    del array
    gc.collect()
    assert ref() is None


def test_memory_that_is_used_again_is_looked_at_again():
    for i in range(50):
        array = np.full(100_000, float(i))
        array.flags.writeable = False
        assert count_of(array) == 1
        del array


def test_those_unused_the_longest_make_room(monkeypatch):
    arrays = [locked(100_000) for _ in range(4)]
    device = lazyarray.device()
    monkeypatch.setattr(type(device), "total_memory", lambda self: 3 * 800_000 / watched_uploads.SHARE)
    assert count_of(*arrays[:3]) == 3
    assert count_of(arrays[0]) == 0
    assert count_of(arrays[3]) == 1       # in the place of arrays[1]
    assert count_of(arrays[0], arrays[2], arrays[3]) == 0
    assert count_of(arrays[1]) == 1


def test_no_more_than_so_many_are_watched(monkeypatch):
    monkeypatch.setattr(watched_uploads, "MOST", 3)
    arrays = [locked(70_000 + i) for i in range(5)]
    assert count_of(*arrays) == 5 and len(watched_uploads._owners) <= 3
    assert count_of(*arrays[2:]) == 0 and count_of(*arrays[:2]) == 2


@pytest.mark.skipif(lazyarray.device().name != "simulated", reason="limits the simulated memory")
def test_what_is_remembered_gives_way_to_what_is_needed():
    device = lazyarray.device()
    with device.limited(100 * 800_000):
        arrays = [locked(100_000) for _ in range(12)]
        count_of(*arrays)
        x = np.ones(9_500_000)
        assert float(total(x)) == 9_500_000
        upload_cache.forget_all()


def test_a_copy_serves_every_stream():
    array = locked(100_000)
    count_of(array)
    device = lazyarray.device()
    for _ in range(3):
        with device.new_stream():
            assert count_of(array) == 0


def test_threads_share_a_copy():
    array = locked(100_000)
    found, errors = [], []

    def use():
        try:
            for _ in range(20):
                found.append(float(total(array)))
        except BaseException as error:  # noqa: BLE001  told in the main thread
            errors.append(error)

    threads = [threading.Thread(target=use) for _ in range(4)]
    with lazyarray.trace(process=True) as t:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors and set(found) == {array.sum()} and len(t.uploads) == 1


def test_a_function_that_may_modify_it_gets_another_copy():
    array = locked(100_000)
    count_of(array)

    @lazyarray.lazy
    def spoil(x):
        x[...] = -1

    with pytest.raises(ValueError, match="assignment destination is read-only"):
        spoil(array)
    assert array[5] == 5 and count_of(array) == 0


# -- every door ----------------------------------------------------------------------------------------

X = np.arange(24.0).reshape(4, 6)
DOORS = {
    "an operator": lambda x, h: x * h,
    "a recorded operator": lambda x, h: (x + 1) * h,
    "a function": lambda x, h: np.concatenate([x, h]),
    "a list": lambda x, h: np.concatenate([x, [[1.0] * 6, [2.0] * 6]]),
    "a list of indexes": lambda x, h: x[:, [4, 2, 1]],
    "a mask": lambda x, h: x[h > 11],
    "an assignment": lambda x, h: operator.setitem(x.copy(), (slice(None), [1, 2]), h[:, :2]),
    "a GPU function": lambda x, h: lazyarray.lazy(lambda a, b: a + b, pure=True)(x, h),
    "out=": lambda x, h: np.add(x, h, out=x.copy()),
    "a ufunc's reduction": lambda x, h: np.add.reduce(x, where=h > 3),
}


@pytest.mark.parametrize("use", DOORS.values(), ids=list(DOORS))
def test_every_way_in_uploads_once_and_sees_writes(use):
    x, h = lazyarray.asarray(X), X[::-1].copy()
    for _ in range(2):
        with lazyarray.trace() as t:
            for _ in range(4):
                found = use(x, h)
        expected = use(X, h)
        if expected is not None:
            np.testing.assert_array_equal(np.asarray(found), expected)
        assert len(t.uploads) <= 2      # the values, and an index or a mask
        h[1, 2] = -7


def test_results_are_no_views_of_what_is_kept():
    x, h = lazyarray.asarray(X), [5.0, 6.0]
    for _ in range(2):
        grids = np.meshgrid(x[0], h, copy=False, sparse=True)
        assert grids[1].tolist() == [[5.0], [6.0]]
        np.add(grids[1], 1, out=grids[1])


def test_a_function_that_breaks_its_promise_harms_no_other():
    h = np.arange(4.0)

    @lazyarray.lazy(pure=True)
    def spoil(x):
        x += 1

    spoil(h)
    assert np.add(lazyarray.asarray(np.zeros(4)), h).tolist() == [0, 1, 2, 3]


def test_what_is_kept_is_bounded(monkeypatch):
    upload_cache.forget_all()
    monkeypatch.setattr(upload_cache, "MOST_COPIES", 10)
    monkeypatch.setattr(upload_cache, "MOST_BYTES", 100_000)
    for i in range(30):
        count_of(np.full(10 * (i + 1), float(i)), np.full(2_000 + i, float(i)))
    copies = upload_cache._copies.values()
    assert len(copies) <= 10 and sum(len(copy.bytes) for copy in copies) == upload_cache._held <= 100_000


def test_a_count_that_an_interrupt_left_wrong_does_no_harm(monkeypatch):
    upload_cache.forget_all()
    monkeypatch.setattr(upload_cache, "_held", 2 * upload_cache.MOST_BYTES)
    for _ in range(3):
        count_of(np.full(50, 3.0))
    assert upload_cache._held <= upload_cache.MOST_BYTES
