"""What foreign code wrote in page-locked memory goes to the device in one call: on a driver made of memory."""
from __future__ import annotations

import contextlib
import errno
import gc
import mmap
import os
import sys
import weakref

import numpy as np
import pytest
from simulated_sending import Sender, Senders
from test_staging import MB, Late

import lazyarray
from lazyarray import compact, sending, sharing, speedups, wrap
from lazyarray.devices.cuda_copies import PIECE
from lazyarray.devices.cuda_pieces import SMALL
from lazyarray.mirror_memory import mapped
from lazyarray.ranges import Ranges
from lazyarray.tracking import Pages, kernel

if speedups.staging is None or kernel() is None:
    pytest.skip("the part in C was not compiled, or the kernel tells of no written pages", allow_module_level=True)

PAGE = mmap.PAGESIZE
TURNS = sending.AT_ONCE


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

    def sender(self, turns=TURNS, piece=PIECE, small=SMALL, descriptor=None):
        found, address, nbytes = self.pages.scanned_by(self.host.nbytes)
        driver = self.late.driver
        return speedups.staging.Sender(
            (driver.copy, driver.finish, driver.context), Refused, None,
            (found if descriptor is None else descriptor, address, nbytes), self.device.ctypes.data, 5, (piece, small),
            turns)

    def send(self, *args, **kwargs):
        outcome = []
        try:
            assert self.sender(*args, **kwargs)(outcome) is True
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


def arguments(functions=(1, 1, 1), nbytes=1, piece=1, leap=1):
    return functions, Refused, None, (0, 0, nbytes), 1, 1, (piece, 1), (1, 1, 1, leap)


@pytest.mark.parametrize("wrong", [{"functions": (0, 1, 1)}, {"functions": (1, 1, 0)}, {"nbytes": -1}, {"piece": 0},
                                   {"leap": 0}])
def test_numbers_that_make_no_sense(wrong):
    with pytest.raises(ValueError):
        speedups.staging.Sender(*arguments(**wrong))


def test_a_sender_takes_a_list():
    memory = Memory(MB)
    memory.host[:] = 1
    sender = memory.sender()
    for wrong in ((), ((),), ([], [])):
        with pytest.raises(TypeError):
            sender(*wrong)
    with pytest.raises(TypeError):
        sender(outcome=[])
    assert not memory.late.issued and sender([]) and (memory.device == 1).all()


def test_a_sender_serves_again_and_again():
    memory = Memory(8 * MB)
    sender = memory.sender(small=0)
    for value in range(5):
        memory.host[value * MB:] = value
        outcome = []
        assert sender(outcome) and ranges(outcome[0][2]) == [(value * MB, 8 * MB)]
        assert np.array_equal(memory.host, memory.device)


def test_a_sender_is_of_one_context():
    memory = Memory(MB)
    sender, outcome = memory.sender(), []
    memory.host[:] = 1
    memory.late.current += 1
    assert sender(outcome) is False and not outcome and not memory.late.issued
    memory.late.current -= 1
    assert sender(outcome) is True and (memory.device == 1).all()


def test_a_sender_is_of_one_process():
    memory = Memory(MB)
    sender = memory.sender()
    memory.host[:] = 1
    child = os.fork()
    if not child:
        outcome = []
        os._exit(42 if sender(outcome) is False and not outcome and not memory.late.issued else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
    assert sender([]) and (memory.device == 1).all()


def test_no_sender_without_a_context():
    memory = Memory(MB)
    memory.late.lost = 201
    with pytest.raises(Refused, match="201"):
        memory.sender()


def test_nothing_of_a_sender_is_kept():
    memory = Memory(MB)
    kept = sys.getrefcount(Refused)
    senders = [memory.sender() for _ in range(10)]
    assert sys.getrefcount(Refused) == kept + 10 and all(gc.is_tracked(sender) for sender in senders)
    del senders
    assert sys.getrefcount(Refused) == kept


needs_again = pytest.mark.skipif(speedups.sending is None, reason="the part in C was not compiled")


@contextlib.contextmanager
def _with(x, alias, **attributes):
    """The storage, or another object, has these attributes meanwhile."""
    where = attributes.pop("where", x._self_storage)
    before = {name: getattr(where, name) for name in attributes}
    for name, value in attributes.items():
        setattr(where, name, value)
    try:
        yield alias
    finally:
        for name, value in before.items():
            setattr(where, name, value)


@contextlib.contextmanager
def _told(x, alias):
    with lazyarray.trace():
        yield alias


@contextlib.contextmanager
def _after(x, alias, change):
    kept = change(x, alias)
    yield alias, kept


def _part_is_gone(x, alias):
    part = np.asarray(x[:1000])
    del part


def _mirror(name, value):
    return lambda x, alias: _with(x, alias, where=x._self_storage.mirror, **{name: value})


#: What `sending._sender` looks at.
DISTURBANCES = {
    "the alias is gone": lambda x, alias: contextlib.nullcontext(),
    "a part was lent, and is gone": lambda x, alias: _after(x, alias, _part_is_gone),
    "a pointer is lent": lambda x, alias: _after(x, alias, lambda x, alias: x.__wrapped__),
    "memory of others": lambda x, alias: _with(x, alias, foreign=True),
    "recorded work reads it": lambda x, alias: _with(x, alias, readers=()),
    "a compact array": lambda x, alias: _with(x, alias, compacts=compact.Compacts()),
    "ahead": lambda x, alias: _with(x, alias, ahead=Ranges(0, 4096)),
    "another block": lambda x, alias: _with(x, alias, _block=None),
    "a stream that has waited": lambda x, alias: _with(x, alias, joined=(object(),)),
    "written on another stream": lambda x, alias: _with(x, alias, stream=object()),
    "somebody listens": _told,
    "a library with its own streams": lambda x, alias: _with(x, alias, where=sharing, partners=[lambda device: None]),
    "no mirror": lambda x, alias: _with(x, alias, mirror=None),
    "a part is not valid": _mirror("valid", Ranges(0, 4096)),
    "other parts are lent": _mirror("_live", Ranges(0, 4096)),
    "something is known to be written": _mirror("_found", Ranges(0, 4096)),
    "written by who is gone": _mirror("_late", Ranges(0, 4096)),
    "nothing is lent": _mirror("lent", False),
    "another tracker": _mirror("_tracker", None),
    "never sent": _mirror("sent", None), "no lock": lambda x, alias: _with(x, alias, _lock=None),
    "other pages are armed": lambda x, alias: _with(x, alias, where=x._self_storage.mirror._tracker,
                                                    _armed=Ranges(0, 4096)),
}


def _refused_by(one):
    def call(self, outcome, usual=Sender.__call__):
        return self is not one and usual(self, outcome)

    return call


class TestOfAStorage:
    """`sending.at_once`, on a simulated device."""

    NBYTES = 16 * MB

    @pytest.fixture
    def sent(self, monkeypatch):
        device = lazyarray.device()
        if device.name == "cuda":
            pytest.skip("CUDA sends by itself")
        senders = Senders(device, small=SMALL)
        monkeypatch.setattr(device, "sender", senders)
        monkeypatch.setattr(sharing, "partners", [])        # torch, if it was imported by another test
        return senders

    def array(self):
        x = lazyarray.asarray(np.zeros(self.NBYTES // 4, np.float32)) + 1
        wrap.device_of(x)
        return x, np.asarray(x)

    def test_a_whole_array(self, sent):
        x, alias = self.array()
        for value in (2, 3):
            alias[:] = value
            assert float((x * 2).min()) == 2 * value == float((x * 2).max())
        assert sent.count == 4      # of each reduction
        assert float(x.sum()) == 3 * x.size

    def test_the_same_sender_sends_again(self, sent):
        x, alias = self.array()
        for value in range(2, 7):
            alias[:] = value
            wrap.device_of(x)
            assert float(x.min()) == value
            assert (sent.made == 1) == (speedups.sending is not None)
        assert x._self_storage.mirror.sent[0] is not None and sent.count == 10

    @needs_again
    def test_it_is_sent_before_python_looks_at_anything(self, sent, monkeypatch):
        x, alias = self.array()
        part, device = x[MB:], lazyarray.device()
        alias[:] = 4
        array = wrap.device_of(x)
        looked, read = [], type(x._self_storage).read_device
        monkeypatch.setattr(type(x._self_storage), "read_device",
                            lambda self, view, *args: looked.append(view.shape) or read(self, view, *args))
        for value in (5, 6):
            alias[:] = value
            assert wrap.device_of(x) is array and not looked
            assert device.xp.asnumpy(array).min() == device.xp.asnumpy(array).max() == value
        alias[:] = 7
        assert device.xp.asnumpy(wrap.device_of(part)).min() == 7 and looked == [part.shape]
        small = lazyarray.asarray(np.ones(8)) + 1       # of which nothing was ever sent
        wrap.device_of(small)
        held = np.asarray(small)
        held[:] = 3
        assert np.array_equal(device.xp.asnumpy(wrap.device_of(small)), held) and looked[1:] == [small.shape] * 2

    @needs_again
    @pytest.mark.parametrize("what", DISTURBANCES)
    def test_a_sender_is_looked_for_where_something_has_changed(self, sent, what):
        """Whatever `_sender` looks at counts. It is looked for anew, and none is found where there can be none."""
        x, alias = self.array()
        alias[:] = 4
        wrap.device_of(x)
        storage, count = x._self_storage, sent.count
        assert sending.again(storage) is True and sent.count == count + 1
        with DISTURBANCES[what](x, alias) as kept:
            del alias
            count = sent.count
            assert sending.again(storage) is False and sent.count == count
            del kept
        assert float(x.min()) <= float(x.max())

    def test_where_it_can_not_send_in_this_thread_another_is_looked_for(self, sent, monkeypatch):
        x, alias = self.array()
        alias[:] = 4
        wrap.device_of(x)
        made = sent.made
        if speedups.sending is not None:
            sender = x._self_storage.mirror.sent[0]
            monkeypatch.setattr(type(sender), "__call__", _refused_by(sender))
        alias[:] = 5
        assert float(x.min()) == 5 == float(x.max()) and sent.made >= made + 1

    def test_nothing_is_kept_of_an_array_that_is_gone(self, sent):
        x, alias = self.array()
        alias[:] = 4
        wrap.device_of(x)
        storage = weakref.ref(x._self_storage)
        block = weakref.ref(x._self_storage._block)
        sender = weakref.ref(x._self_storage.mirror.sent[0])
        del x, alias
        gc.collect()
        assert storage() is None and block() is None and sender() is None

    @needs_again
    def test_what_is_no_storage(self, sent):
        for wrong in (None, 3, lazyarray.asarray([1.0])):
            with pytest.raises(TypeError, match="storage"):
                speedups.sending.again(wrong)
        with pytest.raises(TypeError):
            speedups.sending.bind(None)
        with pytest.raises(TypeError, match="Storage"):
            speedups.sending.bind({})

    def test_a_few_pages(self, sent):
        x, alias = self.array()
        alias[::MB] = 5
        assert np.array_equal(lazyarray.asnumpy(x[::MB // 2].copy()), [5, 1] * 4)
        float((x * 1).sum())
        alias[7] = 6
        assert float(x.max()) == 6 and sent.count

    @pytest.mark.parametrize("wrong", ["driver", "before", "after"])
    @pytest.mark.parametrize("all_over", [True, False])
    def test_nothing_is_lost_where_it_goes_wrong(self, sent, wrong, all_over):
        x, alias = self.array()
        alias[::1 if all_over else 4096] = 4
        alias[:MB] = 4
        wanted = alias.copy()
        sent.error, sent.interrupt = (700, "") if wrong == "driver" else (0, wrong)
        with pytest.raises(MemoryError if wrong == "driver" else KeyboardInterrupt):
            wrap.device_of(x)
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
            wrap.device_of(x)
        assert sent.count == 0 and [(event.kind, event.nbytes) for event in told.events] == [("upload", 4096)]

    @pytest.mark.parametrize("seed", range(30))
    def test_any_mixture_gives_what_numpy_gives(self, sent, monkeypatch, seed):
        """Writes through aliases, some of a part, and on the device; reads of all and of parts, now and later."""
        monkeypatch.setattr(sending, "AT_ONCE", (PAGE, 1 + seed % 2, 4 * PAGE, 1 + seed % 3))
        rng = np.random.default_rng(seed)
        n = 40 * PAGE // 4 + int(rng.integers(3))       # enough to be found by pages
        x, model = lazyarray.asarray(np.zeros(n, np.float32)) + 1, np.ones(n, np.float32)
        sent.small = int(rng.choice([0, PAGE]))
        held, later = [], []
        monkeypatch.setattr(sending, "FROM", 0)
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
                    assert np.array_equal(lazyarray.device().xp.asnumpy(wrap.device_of(x)), model)
        for found, wanted in later:
            assert np.array_equal(lazyarray.asnumpy(found), wanted)
        assert np.array_equal(lazyarray.asnumpy(x.copy()), model) and sent.count

    def test_the_turns_are_whole_pages(self):
        assert not any(n % PAGE for n in sending.AT_ONCE[::2])
