"""What foreign code wrote in page-locked memory goes to the device in one call: on a driver made of memory."""
from __future__ import annotations

import errno
import mmap
import os
from types import SimpleNamespace

import numpy as np
import pytest
from test_staging import MB, Late

import lazyarray
from lazyarray import sending, speedups, wrap
from lazyarray.devices.cuda_copies import PIECE
from lazyarray.devices.cuda_pieces import SMALL
from lazyarray.devices.cuda_written import upload_written
from lazyarray.mirror_memory import mapped
from lazyarray.ranges import Ranges
from lazyarray.tracking import Pages, kernel

if speedups.staging is None or kernel() is None:
    pytest.skip("the part in C was not compiled, or the kernel tells of no written pages", allow_module_level=True)

PAGE = mmap.PAGESIZE
TURNS = MB, 2, 32 * MB, 32


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
        outcome = []
        error = speedups.staging.send_written(
            (self.late.driver.copy, self.late.driver.synchronize), (found if descriptor is None else descriptor, address,
             nbytes), self.device.ctypes.data, 5, (piece, small), turns, outcome)
        assert [told[0] for told in outcome] == [error]
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


@pytest.mark.parametrize("arguments", [
    ((0, 1), (0, 0, 1), 1, 1, (1, 1), (1, 1, 1, 1), []), ((1, 1), (0, 0, -1), 1, 1, (1, 1), (1, 1, 1, 1), []),
    ((1, 1), (0, 0, 1), 1, 1, (0, 1), (1, 1, 1, 1), []), ((1, 1), (0, 0, 1), 1, 1, (1, 1), (1, 1, 1, 0), [])])
def test_numbers_that_make_no_sense(arguments):
    with pytest.raises(ValueError):
        speedups.staging.send_written(*arguments)


class Refused(Exception):
    pass


class TestOfAStorage:
    """`sending.at_once`, on a simulated device that sends as CUDA's does."""

    NBYTES = 16 * MB

    @pytest.fixture
    def sent(self, monkeypatch):
        """What was asked for, and how to go wrong."""
        device, late = lazyarray.device(), Late()
        if device.name == "cuda":
            pytest.skip("CUDA sends by itself")
        calls = SimpleNamespace(count=0, ranges=0, late=late, raised=None)
        copies = SimpleNamespace(driver=late.driver, stream=lambda: SimpleNamespace(ptr=1), error=lambda code: Refused(code),
                                 runtime=SimpleNamespace(streamPerThread=2, setDevice=lambda number: None))
        region = SimpleNamespace(complete=True, release=lambda: None)
        ordinary = device.upload_ranges

        def upload(pages, given, block, turns, outcome):
            calls.count += 1
            held = np.zeros(pages[2], np.uint8)
            target = SimpleNamespace(data=SimpleNamespace(ptr=held.ctypes.data, device_id=0))
            try:
                done = upload_written(copies, pages, region, target, turns, outcome)
            finally:
                if outcome and not outcome[0][0]:
                    small = Ranges.of_pairs(np.frombuffer(outcome[0][3], np.int64))
                    late.synchronize(1)
                    for low, high in Ranges.of_pairs(np.frombuffer(outcome[0][2], np.int64)) - small:
                        ordinary(held, block, [(low, high)])
            if calls.raised is not None:
                raise calls.raised
            return done

        def upload_ranges(source, target, pairs):
            calls.ranges += 1
            ordinary(source, target, pairs)

        monkeypatch.setattr(device, "upload_written", upload)
        monkeypatch.setattr(device, "upload_ranges", upload_ranges)
        return calls

    def array(self):
        x = lazyarray.asarray(np.zeros(self.NBYTES // 4, np.float32)) + 1
        wrap.device_of(x)
        return x, np.asarray(x)

    def test_a_whole_array(self, sent):
        x, alias = self.array()
        for value in (2, 3):
            alias[:] = value
            assert float((x * 2).min()) == 2 * value == float((x * 2).max())
        assert sent.count == 4 and sent.ranges == 0     # of each reduction
        assert float(x.sum()) == 3 * x.size and sent.late.issued

    def test_a_few_pages(self, sent):
        x, alias = self.array()
        alias[::MB] = 5
        assert np.array_equal(lazyarray.asnumpy(x[::MB // 2].copy()), [5, 1] * 4)
        float((x * 1).sum())
        alias[7] = 6
        assert float(x.max()) == 6
        assert sent.ranges >= 1

    @pytest.mark.parametrize("wrong", ["driver", "interrupt", "interrupt before"])
    def test_nothing_is_lost_where_it_goes_wrong(self, sent, wrong):
        x, alias = self.array()
        alias[:] = 4
        if wrong == "driver":
            sent.late.refused = 0
        else:
            sent.raised = KeyboardInterrupt()
        if wrong == "interrupt before":
            sending_before = lazyarray.device().upload_written

            def before(*args):
                raise KeyboardInterrupt

            lazyarray.device().upload_written = before
        with pytest.raises(Refused if wrong == "driver" else KeyboardInterrupt):
            wrap.device_of(x)
        if wrong == "interrupt before":
            lazyarray.device().upload_written = sending_before
        sent.raised, sent.late.refused = None, None
        assert float(x.min()) == 4 == float(x.max())
        assert np.array_equal(alias, np.full(x.size, 4, np.float32))

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
            wrap.device_of(x)
        assert sent.count == 0 and [(event.kind, event.nbytes) for event in told.events] == [("upload", 4096)]

    def test_the_turns_are_whole_pages(self):
        assert sending.TURN_AT_ONCE % PAGE == 0
