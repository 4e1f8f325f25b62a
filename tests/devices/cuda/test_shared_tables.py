"""What threads share is made once and kept for as long as somebody uses it: two threads meet where it would hurt."""
from __future__ import annotations

import ast
import contextlib
import threading
import types
import weakref
from pathlib import Path

import numpy as np
import pytest
from emulated_kernels import Array, Emulator

import lazyarray
from lazyarray.devices.cuda.copies import pinned as cuda_pinned
from lazyarray.devices.cuda.copies.copies import Copies
from lazyarray.devices.cuda.device import CudaDevice
from lazyarray.devices.cuda.driver import StreamOnDevice, here
from lazyarray.devices.cuda.kernels import boolean_mask, reduction
from lazyarray.devices.cuda.kernels.elementwise import Kernels, Launcher
from lazyarray.storage import exports, handles

DEVICES = Path(lazyarray.__file__).parent / "devices"


def in_thread(work, seconds=20.0):
    """Have another thread do it meanwhile; give what it gave, or None if it has to wait for the calling one."""
    found = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    thread.join(seconds)
    return found[0] if found else None


# -- addresses ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("path", sorted((DEVICES / "cuda").rglob("*.py")), ids=lambda p: p.name)
def test_no_address_is_taken_of_what_nobody_holds(path):
    """``f().data.ptr`` is an address in memory that may be somebody else's before the address is used."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and node.attr == "ptr":
            owner = node.value
            while isinstance(owner, ast.Attribute):
                owner = owner.value
            assert not isinstance(owner, ast.Call), f"{path.name}:{node.lineno}: keep what the call gives, too"


class Cupy:
    """Launches nothing, and looks whether what a launch was given is still there."""

    ndarray = Array

    def __init__(self):
        self.alive, self.watched = [], []
        self.cuda = types.SimpleNamespace(
            get_current_stream=lambda: types.SimpleNamespace(ptr=7),
            driver=types.SimpleNamespace(launchKernel=self._launch, CUDADriverError=ValueError))

    def array(self):
        made = Array((4,), np.dtype("f4"))
        self.watched.append(weakref.ref(made))
        return made

    def _launch(self, *_):
        self.alive.append([ref() is not None for ref in self.watched])


def test_an_array_that_is_given_to_a_launch_lives_until_it_is_over():
    cupy = Cupy()
    launch = Launcher(cupy, types.SimpleNamespace(ptr=1), ["Q", "q", "Q"])
    launch(1, 32, [cupy.array(), 3, cupy.array()])
    assert cupy.alive == [[True, True]] and not any(ref() for ref in cupy.watched)


def test_the_counters_of_a_selection_live_until_its_kernel_was_launched(tmp_path):
    """Another thread may forget them as soon as they were given."""
    cupy, made, alive = Emulator(tmp_path), [], []

    def counters():
        turn = Array.of(np.zeros(1, np.uint32))
        made.append(weakref.ref(turn))
        return turn

    usual = cupy.cuda.driver.launchKernel
    cupy.cuda.driver.launchKernel = lambda *given: alive.append(made[-1]() is not None) or usual(*given)
    kernels = Kernels(cupy, 1)
    selected = boolean_mask.Selections(kernels, counters, cupy).of
    values, mask = np.arange(3000, dtype="f4"), np.arange(3000) % 7 == 0
    assert selected(Array.of(mask)) is None, "it is being compiled"
    kernels.wait()
    assert selected(Array.of(mask)).take(Array.of(values), 1).get().tolist() == values[mask].tolist()
    assert alive[0], "its memory might have been somebody else's"


# -- tables ------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("known", [0, reduction._STREAMS], ids=["empty", "full"])
def test_threads_that_meet_at_the_first_use_of_a_stream_get_the_same_counters(known):
    both = threading.Barrier(2)

    def zeros(n, dtype):
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.3)      # both are here, unless only one may be
        return Array((n,), np.dtype(dtype))

    kernels = types.SimpleNamespace(cupy=types.SimpleNamespace(zeros=zeros), driver=None)
    reductions = reduction.Reductions(kernels, 1)
    reductions.turns.update((f"stream {i}", object()) for i in range(known))
    found = []
    threads = [threading.Thread(target=lambda: found.append(reductions.counters("null"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert found[0] is found[1] is reductions.turns["null"] and len(reductions.turns) <= reduction._STREAMS


def test_the_region_around_an_address_is_found_while_others_come_and_go(monkeypatch):
    """A region that goes between two looks at the tables moves all those behind it."""
    cuda = types.SimpleNamespace(runtime=types.SimpleNamespace(CUDARuntimeError=ValueError), get_current_stream=None)
    copies = Copies(types.SimpleNamespace(cuda=cuda), fetches=types.SimpleNamespace(begin=None, end=None))
    regions = [copies.region(1000 * i, 500) for i in range(5)]
    usual = cuda_pinned.bisect.bisect

    def bisect(*given):
        found = usual(*given)
        monkeypatch.undo()
        in_thread(regions[0].release, 0.3)
        return found

    monkeypatch.setattr(cuda_pinned.bisect, "bisect", bisect)
    assert copies.find(2000, 2500) is regions[2]


def test_a_storage_is_known_while_another_is_entered(monkeypatch):
    device = lazyarray.device()
    x = lazyarray.asarray(np.arange(10.0))
    array = lazyarray.asdevice(x)
    exports.register(x._self_storage)
    other = lazyarray.asarray(np.arange(20.0))
    handles.device_of(other)
    insort, found = exports.bisect.insort, []

    def slowly(entries, entry, **how):
        found.append(threading.Thread(target=lambda: found.append(exports.find(device, array))))
        found[0].start()
        found[0].join(0.3)
        insort(entries, entry, **how)

    monkeypatch.setattr(exports.bisect, "insort", slowly)
    exports.register(other._self_storage)
    found[0].join(20)
    assert found[1] is not None and found[1][0] is x._self_storage


# -- streams -----------------------------------------------------------------------------------------------------------

def test_the_default_stream_of_a_thread_is_no_later_thread_s():
    """The system gives a thread the number of one that has ended, whose work may still be under way."""
    stream = types.SimpleNamespace(ptr=2)
    found = {in_thread(lambda: StreamOnDevice(stream, 0, here.name)) for _ in range(20)}
    assert len(found) == 20
    assert StreamOnDevice(stream, 0, here.name) == StreamOnDevice(stream, 0, here.name) not in found


@pytest.mark.parametrize(("earlier", "later", "done"), [
    ("mine", "mine", []), ("plain", "mine", ["recorded on plain", "mine waits"]),
    ("mine", "plain", ["recorded on mine", "plain waits"]), ("other", "mine", ["all is waited for"]),
    ("other", "plain", ["all is waited for"]), ("mine", "other", ["recorded on mine", "the host waits"]),
    ("plain", "other", ["recorded on plain", "the host waits"]),
])
def test_the_default_stream_of_another_thread_is_never_taken_for_one_s_own(earlier, later, done):
    said = []

    def stream(name):
        return types.SimpleNamespace(ptr=3 if name == "plain" else 2, record=lambda event: said.append(
            f"recorded on {name}"), wait_event=lambda event: said.append(f"{name} waits"))

    event = types.SimpleNamespace(synchronize=lambda: said.append("the host waits"))
    device = types.SimpleNamespace(
        several=False, on=lambda number: contextlib.nullcontext(), xp=types.SimpleNamespace(cuda=types.SimpleNamespace(
            Event=lambda disable_timing: event)),
        _runtime=types.SimpleNamespace(deviceSynchronize=lambda: said.append("all is waited for")))
    streams = {"mine": StreamOnDevice(stream("mine"), 0, here.name), "plain": StreamOnDevice(stream("plain"), 0, None),
               "other": StreamOnDevice(stream("other"), 0, in_thread(lambda: here.name))}
    CudaDevice.order(device, streams[earlier], streams[later])
    assert said == done


def test_a_write_that_comes_while_a_stream_waits_for_the_one_before_is_waited_for_too(monkeypatch):
    device, n = lazyarray.device(), 4096
    with device.delayed() if device.name == "simulated" else contextlib.nullcontext():
        x = lazyarray.asarray(np.zeros(n))
        x[...] = 1
        one, other = device.new_stream(), device.new_stream()
        usual = device.wait

        def write():
            with other:
                y = lazyarray.asarray(np.zeros(n))
                for _ in range(50):
                    y = y + 1
                x[...] = y
            return True

        def wait(stream):
            monkeypatch.undo()
            usual(stream)
            assert in_thread(write)     # when this stream waits for what was written before, and has not yet said so

        with one:
            monkeypatch.setattr(device, "wait", wait)
            x._self_storage.join()      # as whatever reads the array does
        with one:
            assert (np.asarray(x * 1) == 50).all()
