"""Which bytes were written: the kernel's page tracking, what stands in for it, and when."""
from __future__ import annotations

import ctypes
import gc
import mmap
import os
import platform
import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from lazyarray.errors import LazyArrayError
from lazyarray.storage.mirror import dirty_tracking as tracking
from lazyarray.storage.mirror import pages as mirror_memory
from lazyarray.storage.mirror import pinned_pool
from lazyarray.storage.mirror.byte_ranges import Ranges
from lazyarray.storage.mirror.mirror import DIRECT_FROM, PAGES_FROM, Mirror

PAGE = mmap.PAGESIZE
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

needs_pages = pytest.mark.skipif(tracking.why_no_pages() is not None, reason=f"{tracking.why_no_pages()}")


def filled(nbytes, tracking="auto", value=1):
    mirror = Mirror.reserve(nbytes, tracking)
    with mirror.filling(Ranges.span(0, nbytes)) as memory:
        memory[:] = value
    return mirror


def lend_all(mirror, **kwargs):
    return mirror.lend((mirror.nbytes,), np.dtype("u1"), (1,), 0, **kwargs)


@pytest.fixture
def no_kernel(monkeypatch):
    """Forget what this process found out about the kernel, so that a test can spoil it."""
    monkeypatch.setattr(tracking, "trackers", {})


def falls_back():
    """Mirrors work without the kernel's tracking: all that was lent counts as written."""
    assert tracking.kernel() is None
    assert tracking.why_no_pages()
    mirror = filled(4 * PAGES_FROM)
    alias = lend_all(mirror)
    assert mirror.collect() == Ranges.span(0, mirror.nbytes)
    del alias
    assert mirror.collect() == Ranges.span(0, mirror.nbytes)
    assert not mirror.lent
    small = filled(100)
    alias = lend_all(small)
    alias[7] = 9
    assert small.collect() == Ranges.span(7, 8)
    with pytest.raises(LazyArrayError, match="pages"):
        Mirror.reserve(100, "pages")
    return tracking.why_no_pages()


# -- why it may be missing -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["darwin", "win32", "freebsd14"])
def test_other_systems_have_none(no_kernel, monkeypatch, name):
    monkeypatch.setattr(sys, "platform", name)
    assert name in falls_back()


def test_unknown_machines_have_none(no_kernel, monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "vax")
    assert "vax" in falls_back()


def test_32_bit_processes_have_none(no_kernel, monkeypatch):
    monkeypatch.setattr(sys, "maxsize", (1 << 31) - 1)
    falls_back()


def test_system_call_numbers():
    # From the kernel's tables; 282 is that of every machine that came after the generic table.
    assert tracking._SYSCALL["x86_64"] == 323
    assert tracking._SYSCALL["aarch64"] == tracking._SYSCALL["riscv64"] == 282


def test_a_kernel_without_the_system_call(no_kernel, monkeypatch):
    monkeypatch.setitem(tracking._SYSCALL, platform.machine(), 100_000)
    assert "not implemented" in falls_back()


@needs_pages
def test_a_kernel_without_asynchronous_mode(no_kernel, monkeypatch):
    monkeypatch.setattr(tracking, "_WP_ASYNC", 1 << 50)
    falls_back()


@needs_pages
def test_a_kernel_without_the_scan(no_kernel, monkeypatch):
    monkeypatch.setattr(tracking, "_PAGEMAP_SCAN", tracking._PAGEMAP_SCAN + 1)
    falls_back()


@needs_pages
@pytest.mark.parametrize("lie", [[], [np.array([[0, 1]])]])
def test_a_kernel_that_fails_its_self_test(no_kernel, monkeypatch, lie):
    monkeypatch.setattr(tracking.Kernel, "written", lambda self, start, stop, rows: lie)
    assert "self-test" in falls_back()


def test_no_pagemap(no_kernel, monkeypatch):
    real = os.open

    def refuse(path, *args, **kwargs):
        if "pagemap" in str(path):
            raise PermissionError(13, "hidden", path)
        return real(path, *args, **kwargs)
    monkeypatch.setattr(os, "open", refuse)
    falls_back()


SECCOMP = """
import ctypes, struct, sys
sys.path.insert(0, {root!r})
from lazyarray.storage.mirror import dirty_tracking as tracking
number = tracking._SYSCALL[{machine!r}]
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
filter = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(program))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.c_char_p(filter), 0, 0):
    print("no seccomp")
else:
    print(tracking.why_no_pages())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux's")
@pytest.mark.skipif(platform.machine() not in tracking._SYSCALL, reason="no system call to forbid")
def test_a_sandbox_that_forbids_the_system_call():
    script = SECCOMP.format(root=ROOT, machine=platform.machine())
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    if "no seccomp" in done.stdout:
        pytest.skip("this system allows no seccomp filter")
    assert done.returncode == 0, done.stderr
    assert "userfaultfd" in done.stdout and "not permitted" in done.stdout


@needs_pages
def test_the_kernel_refusing_later_costs_precision_only(monkeypatch):
    mirror = filled(8 * PAGE, "pages")
    alias = lend_all(mirror)
    alias[3] = 4

    def refuse(*args):
        raise OSError(12, "out of memory")
    monkeypatch.setattr(tracking.Kernel, "_ioctl", refuse)
    assert mirror.collect() == Ranges.span(0, mirror.nbytes)
    assert mirror.collect() == Ranges.span(0, mirror.nbytes)
    other = filled(8 * PAGE, "pages")
    alias = lend_all(other)
    assert other.collect() == Ranges.span(0, other.nbytes)


def test_more_mappings_than_a_process_should_have(monkeypatch):
    monkeypatch.setattr(mirror_memory, "MOST", len(mirror_memory._uses))
    mirror = filled(4 * PAGES_FROM)
    alias = lend_all(mirror)
    alias[5] = 3
    assert mirror.collect().covers(Ranges.span(5, 6))


@pytest.mark.skipif(sys.platform != "linux", reason="not for this kernel")
@pytest.mark.skipif(platform.machine() not in tracking._SYSCALL, reason="not for this machine")
def test_a_kernel_that_has_it_passes():
    # Else every test of pages would be skipped without a word.
    version = tuple(int(part) for part in re.match(r"(\d+)\.(\d+)", platform.release()).groups())
    reason = tracking.why_no_pages()
    if reason is not None and (version < (6, 7) or "permitted" in reason or "ermission" in reason):
        pytest.skip(reason)
    assert reason is None


# -- pages ---------------------------------------------------------------------------------


@needs_pages
def test_only_written_pages_are_named():
    mirror = filled(64 * PAGE, "pages")
    alias = lend_all(mirror)
    alias.sum()
    assert not mirror.collect()
    alias[5 * PAGE + 3] = 9
    alias[20 * PAGE:22 * PAGE + 1] = 8
    assert list(mirror.collect()) == [(5 * PAGE, 6 * PAGE), (20 * PAGE, 23 * PAGE)]
    assert not mirror.collect()
    alias[5 * PAGE] = 1
    assert list(mirror.collect()) == [(5 * PAGE, 6 * PAGE)]


@needs_pages
def test_more_written_ranges_than_one_scan_names():
    pages = 1000
    mirror = filled(pages * PAGE, "pages")
    alias = lend_all(mirror)
    alias[::2 * PAGE] = 7
    assert list(mirror.collect()) == [(i * PAGE, (i + 1) * PAGE) for i in range(0, pages, 2)]
    assert not mirror.collect()


@needs_pages
def test_what_lies_between_lent_ranges_is_not_named():
    mirror = filled(64 * PAGE, "pages")
    rows = mirror.lend((4, 10), np.dtype("u1"), (16 * PAGE, 1), 100)
    with mirror.filling(Ranges.span(8 * PAGE, 9 * PAGE)) as memory:
        memory[8 * PAGE:9 * PAGE] = 3
    rows[2] = 5
    assert list(mirror.collect()) == [(32 * PAGE + 100, 32 * PAGE + 110)]


@needs_pages
def test_what_the_device_fills_is_armed_meanwhile():
    pinned_pool.pool.look_after(idle=-1)
    nbytes = DIRECT_FROM + 3 * PAGE
    whole = Ranges.span(0, nbytes)
    mapping = None
    for value in (1, 2, 3):         # the second time in memory that is armed, and was written
        mirror = Mirror.reserve(nbytes)
        assert mirror.can_fill_directly(whole)
        assert mapping is None or mirror.mapping is mapping
        mapping = mirror.mapping
        done = []

        def begin(target, value=value, done=done):
            target[:] = value       # before it is armed, as memory that the kernel does not watch
            return lambda: done.append(True)

        mirror.begin_directly(whole, begin)()
        mirror.validate(whole)
        assert mirror.full and done == [True]
        alias = lend_all(mirror)
        assert not mirror.collect() and alias[5] == value
        alias[PAGE] = 9
        assert not mirror.can_fill_directly(whole), "somebody may write beside it"
        assert list(mirror.collect()) == [(PAGE, 2 * PAGE)]
        if value == 2:
            alias[::PAGE] = 4       # and not collected
        del alias, mirror, begin


@needs_pages
def test_what_we_fill_ourselves_is_not_armed():
    pinned_pool.pool.look_after(idle=-1)
    nbytes = DIRECT_FROM
    mirror = filled(nbytes)
    alias = lend_all(mirror)
    mapping = mirror.mapping
    del alias, mirror
    mirror = Mirror.reserve(nbytes)
    before = faults()
    with mirror.filling(Ranges.span(0, nbytes)) as memory:
        memory[:] = 1
    assert mirror.mapping is mapping and faults() - before < nbytes // PAGE // 4


@needs_pages
def test_many_lent_runs_cost_a_call_or_two(monkeypatch):
    """The rows of a part of an image: each has pages of its own."""
    mirror = filled(400 * 4 * PAGE)
    calls = []
    ioctl = tracking.Kernel._ioctl
    monkeypatch.setattr(tracking.Kernel, "_ioctl", lambda self, *args: calls.append(args) or ioctl(self, *args))
    alias = mirror.lend((400, PAGE), np.dtype("u1"), (4 * PAGE, 1), PAGE)
    assert len(calls) < 10
    alias[7, 5] = alias[300, 9] = 2
    assert list(mirror.collect()) == [(29 * PAGE, 30 * PAGE), (1201 * PAGE, 1202 * PAGE)]
    with mirror.filling(Ranges.span(0, PAGE)) as memory:        # between the runs
        memory[:PAGE] = 9
        alias[3, 3] = 4
    assert list(mirror.collect()) == [(13 * PAGE, 14 * PAGE)]
    del alias
    mirror.collect()
    with mirror.filling(Ranges.of_view((400, PAGE), (4 * PAGE, 1), 1, PAGE)) as memory:
        memory[:] = 5
    assert len(calls) < 30
    assert lend_all(mirror)[PAGE] == 5 and not mirror.collect()


@needs_pages
def test_our_own_filling_is_not_named_and_keeps_what_lies_beside():
    mirror = filled(4 * PAGE, "pages")
    alias = lend_all(mirror)
    alias[10] = 2
    alias[3 * PAGE] = 2
    inner = Ranges.span(PAGE // 2, 2 * PAGE)
    with mirror.filling(inner) as memory:
        memory[PAGE // 2:2 * PAGE] = 9
    assert list(mirror.collect()) == [(0, PAGE // 2), (3 * PAGE, 4 * PAGE)]
    with mirror.filling(inner) as memory:
        memory[PAGE // 2:2 * PAGE] = 8
    assert not mirror.collect()
    alias[PAGE] = 1
    assert list(mirror.collect()) == [(PAGE, 2 * PAGE)]


@needs_pages
def test_a_filling_takes_back_what_was_found_before():
    mirror = filled(2 * PAGE, "pages")
    alias = lend_all(mirror)
    alias[10] = 2
    for part in (Ranges.span(PAGE // 2, PAGE), Ranges.span(0, PAGE // 2)):
        with mirror.filling(part):
            pass
    assert not mirror.collect()


@needs_pages
def test_what_we_fill_while_nothing_is_lent_is_not_named_later():
    mirror = filled(2 * PAGE, "pages")
    lend_all(mirror)
    mirror.collect()
    with mirror.filling(Ranges.span(0, 2 * PAGE)) as memory:
        memory[:] = 5
    alias = lend_all(mirror)
    assert not mirror.collect()
    alias[PAGE] = 4
    assert mirror.collect() == Ranges.span(PAGE, 2 * PAGE)


@needs_pages
def test_exact_tracking_on_demand():
    mirror = filled(4 * PAGE, "pages")
    alias = lend_all(mirror)
    alias[10] = 2
    mirror.track_exactly()
    assert mirror.collect() == Ranges.span(0, PAGE)
    alias[20] = 3
    alias[22] = 3
    assert list(mirror.collect()) == [(20, 21), (22, 23)]
    later = filled(4 * PAGE, "pages")
    later.track_exactly()
    alias = lend_all(later)
    alias[5] = 5
    assert later.collect() == Ranges.span(5, 6)


@pytest.mark.parametrize("when", ["before it is lent", "while it is lent"])
def test_exact_tracking_of_small_memory(when):
    mirror = filled(1000)
    if when == "before it is lent":
        mirror.track_exactly()
    alias = lend_all(mirror)
    mirror.track_exactly()
    alias[5:25:4] = 7
    assert list(mirror.collect()) == [(i, i + 1) for i in range(5, 25, 4)]
    mirror.track_exactly()
    alias[5] = 8
    assert mirror.collect() == Ranges.span(5, 6)


def test_exact_tracking_of_what_is_not_lent_touches_nothing():
    mirror = Mirror.reserve(64 << 20)
    before = faults()
    mirror.track_exactly()
    assert faults() - before < 100


def faults():
    resource = pytest.importorskip("resource")
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt


@needs_pages
def test_our_own_filling_meets_no_protected_pages():
    # A fault for each of 256 pages would take longer than the filling.
    nbytes = 256 * PAGE
    mirror = filled(nbytes, "pages")
    alias = lend_all(mirror)
    value = np.arange(nbytes, dtype=np.uint8)
    before = faults()
    with mirror.filling(Ranges.span(0, nbytes)) as memory:
        memory[:] = value
    assert faults() - before < 100
    address = mirror.bytes.ctypes.data
    del alias, mirror, memory
    again = Mirror.reserve(nbytes, "pages")
    assert again.bytes.ctypes.data == address
    before = faults()
    with again.filling(Ranges.span(0, nbytes)) as memory:
        memory[:] = value
    assert faults() - before < 100


@needs_pages
def test_writes_during_a_filling_beside_it_are_found():
    mirror = filled(2 * PAGE, "pages")
    alias = lend_all(mirror)
    with mirror.filling(Ranges.span(100, 200)) as memory:
        memory[100:200] = 5
        alias[300] = 6      # another thread's, say
    assert mirror.collect().covers(Ranges.span(300, 301))


@needs_pages
def test_huge_pages_stay_in_one_piece_when_we_fill():
    nbytes = 32 << 20
    mirror = filled(nbytes)
    alias = lend_all(mirror)
    with mirror.filling(Ranges.span(0, nbytes)) as memory:
        memory[:] = 2
    alias[17 << 20] = 1
    written = mirror.collect()
    assert len(written) == 1 and written.covers(Ranges.span(17 << 20, (17 << 20) + 1))
    assert written.nbytes <= 2 << 20


def vm_flags(address):
    """The flags of the mapping at an address; None if there is none."""
    found = None
    with open("/proc/self/smaps") as smaps:
        for line in smaps:
            if area := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
                found = int(area[1], 16) <= address < int(area[2], 16)
            elif found and line.startswith("VmFlags:"):
                return line.split()[1:]
    return None


@needs_pages
def test_registration_ends_with_the_mapping():
    pinned_pool.pool.look_after(idle=-1)
    mirror = filled(mirror_memory.HUGE_FROM + PAGE)
    address = mirror.bytes.ctypes.data
    assert "uw" not in vm_flags(address), "not registered before it is lent"
    alias = lend_all(mirror)
    assert "uw" in vm_flags(address)
    del alias, mirror
    gc.collect()
    pinned_pool.pool.look_after(idle=0)
    assert "uw" not in (vm_flags(address) or ())
    fresh = mmap.mmap(-1, mirror_memory.HUGE_FROM + PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    assert "uw" not in vm_flags(np.frombuffer(fresh, np.uint8).ctypes.data)


@needs_pages
def test_recycled_memory_remembers_nothing():
    nbytes = 50 * PAGE
    for _ in range(5):
        mirror = filled(nbytes, "pages")
        alias = lend_all(mirror)
        assert not mirror.collect()
        alias[7 * PAGE] += 1
        assert list(mirror.collect()) == [(7 * PAGE, 8 * PAGE)]
        alias[8 * PAGE] += 1
        del alias, mirror


# -- every tracker -------------------------------------------------------------------------

SIZES = [pytest.param(3000, "auto", id="compared"), pytest.param(3 * PAGE, "pages", id="pages", marks=needs_pages)]


@pytest.mark.parametrize("nbytes, how", SIZES)
def test_no_write_is_lost_while_another_thread_fills_and_collects(nbytes, how):
    """A thread writes its half through an alias, without a lock, while we fill the other half."""
    mirror = filled(nbytes, how, value=0)
    half = nbytes // 2 // 8 * 8
    alias = mirror.lend((half // 8,), np.dtype("u8"), (8,), 0)
    everything = lend_all(mirror)
    device = mirror.bytes.copy()
    stop = threading.Event()

    def foreign():
        generator = np.random.default_rng(1)
        while not stop.is_set():
            for i in generator.integers(0, len(alias), 50).tolist():
                alias[i] += 1

    sys.setswitchinterval(1e-5)
    thread = threading.Thread(target=foreign)
    thread.start()
    try:
        end = time.monotonic() + 0.5
        rounds = 0
        while time.monotonic() < end:
            rounds += 1
            theirs = Ranges.span(half, nbytes)
            with mirror.filling(theirs) as memory:
                memory[half:] = rounds % 251
            device[half:] = rounds % 251
            for low, high in mirror.collect():
                device[low:high] = mirror.bytes[low:high]
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(0.005)
    for low, high in mirror.collect():
        device[low:high] = mirror.bytes[low:high]
    assert alias.any()
    np.testing.assert_array_equal(device, everything)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("nbytes, how", SIZES)
def test_fork(nbytes, how):
    mirror = filled(nbytes, how)
    alias = lend_all(mirror)
    idle = filled(nbytes, how)
    alias[0] = 2

    def child():
        alias[nbytes - 1] = 3
        written = mirror.collect()
        assert written.covers(Ranges.span(0, 1)) and written.covers(Ranges.span(nbytes - 1, nbytes))
        with mirror.filling(Ranges.span(0, 100)) as memory:
            memory[:100] = 7
        del memory
        again = lend_all(mirror)
        again[200] = 3
        assert mirror.collect().covers(Ranges.span(200, 201))
        for other in (idle, filled(nbytes, how)):
            held = lend_all(other)
            assert not other.collect(), "a mirror first lent in the child is tracked there"
            held[5] = 6
            assert other.collect().covers(Ranges.span(5, 6))

    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            child()
            code = 0
        except BaseException as error:  # noqa: BLE001 (whatever it is must not return into pytest)
            sys.stderr.write(f"in the child: {error!r}\n")
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    written = mirror.collect()
    assert written.covers(Ranges.span(0, 1)) and not written.covers(Ranges.span(nbytes - 1, nbytes))
    assert not mirror.collect(), "what the child did is not the parent's"
    alias[nbytes - 1] = 4
    assert mirror.collect().covers(Ranges.span(nbytes - 1, nbytes)), "still tracked after a fork"


@needs_pages
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_reuses_memory_leaves_the_parent_alone():
    nbytes = 40 * PAGE
    mirror = filled(nbytes, "pages")
    alias = lend_all(mirror)
    mirror.collect()
    lend_all(filled(nbytes, "pages"))   # kept, with the parent's arrangements
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            mirrors = [filled(nbytes, "pages") for _ in range(3)]
            held = [lend_all(m) for m in mirrors]
            held[0][0] = 3
            code = 0 if [m.collect().nbytes for m in mirrors] == [PAGE, 0, 0] else 2
        finally:
            os._exit(code)
    alias[9 * PAGE] = 1
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert list(mirror.collect()) == [(9 * PAGE, 10 * PAGE)]


@pytest.mark.parametrize("nbytes, how", SIZES)
def test_writes_by_the_kernel_and_by_address(nbytes, how):
    mirror = filled(nbytes, how)
    alias = lend_all(mirror)
    with open("/dev/zero", "rb", buffering=0) as zero:
        assert os.readv(zero.fileno(), [memoryview(alias)[40:60], memoryview(alias)[2500:2600]]) == 120
    written = mirror.collect()
    assert written.covers(Ranges.span(40, 60)) and written.covers(Ranges.span(2500, 2600))
    ctypes.memset(alias.ctypes.data + 1000, 77, 5)
    assert mirror.collect().covers(Ranges.span(1000, 1005))
    # The alias is gone before the write, as in any call of this form.
    ctypes.memset(lend_all(mirror).ctypes.data + 1100, 77, 5)
    assert mirror.collect().covers(Ranges.span(1100, 1105))
    read_only = lend_all(mirror, writeable=False)
    ctypes.memset(read_only.ctypes.data + 1200, 77, 5)
    assert mirror.collect().covers(Ranges.span(1200, 1205))


EXIT = """
import sys
sys.path.insert(0, {root!r})
import numpy as np
from lazyarray.storage.mirror.mirror import Mirror
from lazyarray.storage.mirror.byte_ranges import Ranges
class Cycle: pass
for nbytes in (100, 1 << 18, 1 << 26):
    mirror = Mirror.reserve(nbytes)
    with mirror.filling(Ranges.span(0, nbytes)) as memory:
        memory[:] = 1
    knot = Cycle()
    knot.me, knot.mirror, knot.alias = knot, mirror, mirror.lend((nbytes,), np.dtype("u1"), (1,), 0)
    globals()[f"kept{{nbytes}}"] = mirror.lend((5,), np.dtype("u1"), (1,), 0)
"""


def test_a_program_ends_in_peace():
    done = subprocess.run([sys.executable, "-c", EXIT.format(root=ROOT)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(tracking.fill_unwritten is tracking.in_python, reason="needs the compiled parts")
@pytest.mark.parametrize("itemsize", [1, 3, 4, 8, 16, 5000])
@pytest.mark.parametrize("size", [1, 4095, 4096, 4097, 3 * 4096 + 7, 40_000])
def test_filling_in_c_does_what_it_does_in_python(itemsize, size):
    """Many elements are looked at at once, and each by itself where one of them was written, or is not wanted."""
    rng = np.random.default_rng(size * itemsize)
    for written, unwanted in ((0, 0), (1, 0), (0, 1), (5, 5), (size, 0)):
        for phase in {0, itemsize // 2}:
            was = rng.integers(0, 256, size, np.uint8)
            memory, source, wanted = was.copy(), rng.integers(0, 256, size, np.uint8), np.ones(size, np.uint8)
            memory[rng.integers(0, size, written)] += 1
            wanted[rng.integers(0, size, unwanted)] = 0
            results = []
            for fill in (tracking.fill_unwritten, tracking.in_python):
                given = [memory.copy(), was.copy(), source, wanted, np.zeros(size, np.uint8)]
                fill(*given, itemsize, phase)
                results.append(given)
            ours, expected = results
            marks = [given[4] & wanted for given in results]
            assert np.array_equal(ours[0], expected[0]) and np.array_equal(*marks)
            kept = (wanted == 1)
            assert np.array_equal(ours[1][kept], expected[1][kept])
