"""What foreign code wrote in page-locked memory goes to the device in one call: on a driver made of memory."""
from __future__ import annotations

import errno
import gc
import mmap
import os
import weakref

import numpy as np
import pytest
from late_driver import MB, Late
from simulated_sending import Sender

import lazyarray
from lazyarray import _native
from lazyarray.devices.cuda.copies.dirty_upload import SMALL
from lazyarray.devices.cuda.copies.pinned import PIECE
from lazyarray.storage import dirty_upload, foreign_streams, handles
from lazyarray.storage.mirror.byte_ranges import Ranges
from lazyarray.storage.mirror.dirty_tracking import Pages, kernel
from lazyarray.storage.mirror.pages import mapped

if _native.staging is None or kernel() is None:
    pytest.skip("the part in C was not compiled, or the kernel tells of no written pages", allow_module_level=True)

PAGE = mmap.PAGESIZE
TURNS = dirty_upload.AT_ONCE


class Refused(Exception):
    """An error of the driver's."""


class Memory:
    """Armed host memory, the same bytes as the device would have them, and a driver between the two."""

    def __init__(self, nbytes):
        self.host, mapping = mapped(nbytes)
        self.host[:] = np.arange(nbytes) % 251
        self.device, self.late = self.host.copy(), Late()
        self.pages = Pages(self.host, mapping, kernel())
        self.pages.arm(Ranges(0, nbytes))

    def send(self, turns=TURNS, piece=PIECE, small=SMALL, descriptor=None):
        found, address, nbytes = self.pages.scanned_by(self.host.nbytes)
        driver, outcome = self.late.driver, []
        try:
            _native.staging.copy_written(
                (driver.copy, driver.finish), Refused, (found if descriptor is None else descriptor, address, nbytes),
                self.device.ctypes.data, 5, (piece, small), turns, outcome)
        except Refused as error:
            assert error.args == (outcome[0][0],) != (0,)
        else:
            assert outcome[0][0] == 0
        assert len(outcome) == 1
        return outcome[0]


def ranges(pairs):
    return list(Ranges.of_pairs(np.frombuffer(pairs, np.int64)))


@pytest.mark.parametrize("nbytes", [PAGE, MB + 5, 7 * MB + 100, 40 * MB])
@pytest.mark.parametrize("turns", [TURNS, (PAGE, 1, PAGE, 1), (3 * PAGE, 3, MB, 2)])
def test_all_that_was_written_arrives_once(nbytes, turns):
    if nbytes // turns[2] > 1000:
        turns = tuple(64 * n if n >= PAGE else n for n in turns)
    memory = Memory(nbytes)
    assert memory.send(turns) == (0, 0, b"", b"")
    memory.host[:] = 3
    error, refused, found, left = memory.send(turns, small=0)
    assert (error, refused, left) == (0, 0, b"") and ranges(found) == [(0, nbytes)]
    assert (memory.device == 3).all()
    assert memory.send(turns) == (0, 0, b"", b""), "they are armed again"


@pytest.mark.parametrize("small", [0, SMALL])
def test_pages_here_and_there(small):
    memory = Memory(33 * MB)
    wanted = memory.device.copy()
    places = [0, 5 * PAGE, 7 * MB, 16 * MB - PAGE, 16 * MB, 33 * MB - PAGE]
    for at in places:
        memory.host[at + 7] = wanted[at + 7] = 255
    memory.host[20 * MB:22 * MB] = wanted[20 * MB:22 * MB] = 254
    error, refused, found, left = memory.send(small=small)
    assert (error, refused) == (0, 0)
    one_by_one = Ranges.union([Ranges(at, at + PAGE) for at in places])
    assert list(one_by_one | Ranges(20 * MB, 22 * MB)) == ranges(found)
    assert ranges(left) == (list(one_by_one) if small else [])
    for low, high in ranges(left):
        memory.device[low:high] = memory.host[low:high]
    memory.late.synchronize(5)
    assert np.array_equal(memory.device, wanted)


def test_what_is_left_is_waited_for_together():
    memory = Memory(8 * MB)
    memory.host[:4 * MB] = 1
    memory.host[6 * MB] = 1
    memory.send()
    assert memory.late.done == 0 < len(memory.late.issued)


def test_no_copy_goes_from_one_piece_to_the_next():
    memory = Memory(5 * MB)
    memory.host[PAGE:] = 9
    memory.send((8 * MB, 1, 8 * MB, 1), piece=MB)
    start, target = memory.host.ctypes.data, memory.device.ctypes.data
    assert [(from_ - start, n) for _, from_, n in memory.late.issued] == [
        (PAGE, MB - PAGE), (MB, MB), (2 * MB, MB), (3 * MB, MB), (4 * MB, MB)]
    assert all(from_ - start == to - target for to, from_, _ in memory.late.issued)


def test_what_is_written_all_over_goes_in_few_copies():
    memory = Memory(64 * MB)
    memory.host[:] = 9
    memory.send()
    assert [n / MB for _, _, n in memory.late.issued] == [1, 1, 2, 4, 8, 16, 16, 16]


@pytest.mark.parametrize("refused", [0, 1, 2])
def test_after_an_error_of_the_drivers_what_was_found_is_told(refused):
    memory = Memory(32 * MB)
    memory.host[:] = 1
    memory.late.refused = refused
    error, why, found, _ = memory.send()
    assert (error, why) == (700, 0) and len(memory.late.issued) == memory.late.done == refused
    unseen = memory.pages.written(Ranges(0, 32 * MB), False)
    assert Ranges.of_pairs(np.frombuffer(found, np.int64)) | unseen == Ranges(0, 32 * MB)
    assert not Ranges.of_pairs(np.frombuffer(found, np.int64)) & unseen


def test_an_error_at_the_end():
    memory = Memory(MB)
    memory.host[:] = 1
    memory.late.unfinished = 719
    assert memory.send()[:2] == (719, 0)


def test_a_descriptor_that_tells_nothing():
    memory = Memory(MB)
    memory.host[:] = 1
    null = os.open("/dev/null", os.O_RDONLY)
    try:
        assert memory.send(descriptor=null) == (0, errno.ENOTTY, b"", b"")
    finally:
        os.close(null)
    assert not memory.late.issued


def arguments(functions=(1, 1), nbytes=1, piece=1, leap=1, outcome=None):
    return functions, Refused, (0, 0, nbytes), 1, 1, (piece, 1), (1, 1, 1, leap), [] if outcome is None else outcome


@pytest.mark.parametrize("wrong", [{"functions": (0, 1)}, {"functions": (1, 0)}, {"nbytes": -1}, {"piece": 0},
                                   {"leap": 0}])
def test_numbers_that_make_no_sense(wrong):
    with pytest.raises(ValueError):
        _native.staging.copy_written(*arguments(**wrong))


def test_the_outcome_is_a_list():
    with pytest.raises(TypeError):
        _native.staging.copy_written(*arguments(outcome=()))
    with pytest.raises(TypeError):
        _native.staging.copy_written()


def test_it_serves_again_and_again():
    memory = Memory(8 * MB)
    for value in range(5):
        memory.host[value * MB:] = value
        assert ranges(memory.send(small=0)[2]) == [(value * MB, 8 * MB)]
        assert np.array_equal(memory.host, memory.device)


class TestOfAStorage:
    """`dirty_upload.at_once`, on a simulated device."""

    NBYTES = 16 * MB

    @pytest.fixture
    def sent(self, monkeypatch):
        device = lazyarray.device()
        if device.name == "cuda":
            pytest.skip("CUDA sends by itself")
        sender = Sender(device, small=SMALL)
        monkeypatch.setattr(device, "copy_written", sender)
        monkeypatch.setattr(foreign_streams, "partners", [])        # torch, if it was imported by another test
        return sender

    def array(self):
        x = lazyarray.asarray(np.zeros(self.NBYTES // 4, np.float32)) + 1
        handles.device_of(x)
        return x, np.asarray(x)

    def test_a_whole_array(self, sent):
        x, alias = self.array()
        for value in (2, 3):
            alias[:] = value
            assert float((x * 2).min()) == 2 * value == float((x * 2).max())
        assert sent.count == 4      # of each reduction
        assert float(x.sum()) == 3 * x.size

    def test_where_it_can_not_be_sent_at_once(self, sent):
        x, alias = self.array()
        sent.refuses = True
        alias[:] = 5
        assert float(x.min()) == 5 == float(x.max()) and sent.count == 0

    def test_nothing_is_kept_of_an_array_that_is_gone(self, sent):
        x, alias = self.array()
        alias[:] = 4
        handles.device_of(x)
        storage = weakref.ref(x._self_storage)
        block = weakref.ref(x._self_storage._block)
        del x, alias
        gc.collect()
        assert storage() is None and block() is None

    def test_a_few_pages(self, sent):
        x, alias = self.array()
        alias[::MB] = 5
        assert np.array_equal(lazyarray.asnumpy(x[::MB // 2].copy()), [5, 1] * 4)
        float((x * 1).sum())
        alias[7] = 6
        assert float(x.max()) == 6 and sent.count

    @pytest.mark.together
    @pytest.mark.parametrize("wrong", ["driver", "before", "after"])
    @pytest.mark.parametrize("all_over", [True, False])
    def test_nothing_is_lost_where_it_goes_wrong(self, sent, wrong, all_over):
        x, alias = self.array()
        alias[::1 if all_over else 4096] = 4
        alias[:MB] = 4
        wanted = alias.copy()
        sent.error, sent.interrupt = (700, "") if wrong == "driver" else (0, wrong)
        with pytest.raises(MemoryError if wrong == "driver" else KeyboardInterrupt):
            handles.device_of(x)
        sent.error, sent.interrupt = 0, ""
        assert float(x.min()) == wanted.min()
        assert np.array_equal(lazyarray.asnumpy(x.copy()), wanted) and np.array_equal(alias, wanted)

    def test_the_kernel_refuses(self, sent, monkeypatch):
        x, alias = self.array()
        alias[:] = 4
        null = os.open("/dev/null", os.O_RDONLY)
        try:
            monkeypatch.setattr(type(kernel()), "descriptor", lambda self: null)
            assert float(x.min()) == 4
        finally:
            os.close(null)
        alias[5] = 9        # from now on everything is sent
        assert float(x.max()) == 9

    def test_what_was_recorded_before_reads_what_was_there(self, sent):
        x, alias = self.array()
        y = x * 2
        alias[:] = 7
        assert float(x.min()) == 7 and float(y.max()) == 2

    def test_a_part_that_somebody_holds(self, sent):
        x, alias = self.array()
        del alias
        part = np.asarray(x[:1000])
        float(x.sum())          # the other one is gone
        sent.count = 0
        part[:] = 7
        assert float(x.max()) == 7 and sent.count == 0

    def test_a_pointer_that_somebody_has(self, sent):
        x, alias = self.array()
        pointer = x.__wrapped__
        sent.count = 0
        alias[:] = 7
        assert float(x.min()) == 7 and sent.count == 0 and pointer is not None

    def test_an_event_says_how_many_bytes_there_are(self, sent):
        x, alias = self.array()
        alias[:1024] = 7
        with lazyarray.trace() as told:
            handles.device_of(x)
        assert sent.count == 0 and [(event.kind, event.nbytes) for event in told.events] == [("upload", 4096)]

    @pytest.mark.parametrize("seed", range(30))
    def test_any_mixture_gives_what_numpy_gives(self, sent, monkeypatch, seed):
        """Writes through aliases, some of a part, and on the device; reads of all and of parts, now and later."""
        monkeypatch.setattr(dirty_upload, "AT_ONCE", (PAGE, 1 + seed % 2, 4 * PAGE, 1 + seed % 3))
        rng = np.random.default_rng(seed)
        n = 40 * PAGE // 4 + int(rng.integers(3))       # enough to be found by pages
        x, model = lazyarray.asarray(np.zeros(n, np.float32)) + 1, np.ones(n, np.float32)
        sent.small = int(rng.choice([0, PAGE]))
        held, later = [], []
        monkeypatch.setattr(dirty_upload, "FROM", 0)
        for step in range(60):
            low, high = sorted(rng.integers(0, n + 1, 2)) if rng.random() < 0.7 else (0, n)
            match rng.choice(["hold", "write", "write", "device", "read", "read", "record", "drop", "at once"]):
                case "hold":
                    held.append((np.asarray(x[low:high]) if rng.random() < 0.3 else np.asarray(x)[low:high], low, high))
                case "write" if held:
                    alias, low, high = held[rng.integers(len(held))]
                    at = slice(None) if rng.random() < 0.5 else slice(*sorted(rng.integers(0, high - low + 1, 2)))
                    alias[at] = step
                    model[low:high][at] = step
                case "device":
                    x[low:high] += 1
                    model[low:high] += 1
                case "read":
                    assert float((x[low:high] * 1).sum()) == float(model[low:high].sum())
                    for alias, low, high in held:
                        assert np.array_equal(alias, model[low:high])
                case "record":
                    later.append((x * 2, model * 2))
                case "drop" if held:
                    held.pop(rng.integers(len(held)))
                case "at once":
                    assert np.array_equal(lazyarray.device().xp.asnumpy(handles.device_of(x)), model)
        for found, wanted in later:
            assert np.array_equal(lazyarray.asnumpy(found), wanted)
        assert np.array_equal(lazyarray.asnumpy(x.copy()), model) and sent.count

    def test_the_turns_are_whole_pages(self):
        assert not any(n % PAGE for n in dirty_upload.AT_ONCE[::2])


@pytest.mark.parametrize("nbytes", [1, MB, 16 * MB, 100 * MB + 4096, 1 << 30])
@pytest.mark.parametrize("much", [False, True])
def test_turns_make_up_all_of_a_mirror(nbytes, much):
    turns = list(dirty_upload._turns(nbytes, lambda: much))
    assert [start for start, _ in turns] == [0, *(stop for _, stop in turns[:-1])] and turns[-1][1] == nbytes
    assert all(start % mmap.PAGESIZE == 0 for start, _ in turns)
    assert len(turns) < 5 or much and max(stop - start for start, stop in turns) == dirty_upload.LAST
