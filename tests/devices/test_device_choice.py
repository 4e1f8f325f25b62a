"""Which device is chosen, and what is said when CUDA is missing, broken, or without a driver or a GPU.

Each case is a process of its own, in which a package called cupy stands for the installation in question.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

REPORT = """
from lazyarray import devices
import sys
found = devices.why()
assert devices.why() is found or found.device == "none"
print(found.device, found.state, found.reason, found.advice, sep="|")
import numpy as np
if found.device == "simulated":
    d = devices.current()
    print(d.name, float(d.xp.asarray(np.arange(4.0)).sum().get()))
"""

RUNTIME = """
class CUDARuntimeError(RuntimeError):
    def __init__(self, status, text):
        self.status = status
        super().__init__(text)
class runtime:
    CUDARuntimeError = CUDARuntimeError
    driverGetVersion = staticmethod(lambda: {driver})
    runtimeGetVersion = staticmethod(lambda: 13020)
    @staticmethod
    def getDeviceCount():
        {count}
class cuda:
    runtime = runtime
def arange(n):
    {arange}
"""

INSUFFICIENT = "raise CUDARuntimeError(35, 'cudaErrorInsufficientDriver: too old')"
CASES = {
    "missing": ("import sys; sys.modules['cupy'] = None", None, "not installed", "cuda13"),
    "broken": ("", "raise ImportError('libcublas.so.13: cannot open shared object file')", "libcublas", "Uninstall"),
    "broken (not an ImportError)": ("", "1 / 0", "ZeroDivisionError", "Uninstall"),
    "no driver": ("", RUNTIME.format(driver=0, count=INSUFFICIENT, arange="pass"), "no NVIDIA driver", "driver"),
    "wrong driver": ("", RUNTIME.format(driver=12040, count=INSUFFICIENT, arange="pass"), "CUDA 12.4", "Update"),
    "no gpu": (
        "", RUNTIME.format(driver=13020, count="raise CUDARuntimeError(100, 'no device')", arange="pass"),
        "no GPU", "nvidia-smi",
    ),
    "no gpu (none counted)": (
        "", RUNTIME.format(driver=13020, count="return 0", arange="pass"), "no GPU", "nvidia-smi",
    ),
    "broken (cannot start)": (
        "", RUNTIME.format(driver=13020, count="raise CUDARuntimeError(999, 'unknown error')", arange="pass"),
        "unknown error", "nvidia-smi",
    ),
    "broken (cannot compile)": (
        "", RUNTIME.format(driver=13020, count="return 1", arange="raise RuntimeError('libnvrtc not found')"),
        "libnvrtc not found", "[ctk]",
    ),
}  # fmt: skip


def run(code, tmp_path=None, **environment):
    path = [str(ROOT)] if tmp_path is None else [str(tmp_path), str(ROOT)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), **environment}
    environment = {key: value for key, value in environment.items() if value is not None}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("case", CASES)
def test_the_diagnosis_says_what_is_wrong_and_what_to_do(case, tmp_path):
    before, package, reason, advice = CASES[case]
    if package is not None:
        (tmp_path / "cupy").mkdir()
        (tmp_path / "cupy" / "__init__.py").write_text(package)
    done = run(before + "\n" + REPORT, tmp_path, LAZYARRAY_DEVICE=None)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.strip().splitlines()
    device, state, said, advised = first.split("|")
    assert (device, state) == ("simulated", case.split(" (")[0])
    assert reason in said and advice in advised
    assert second == "simulated 6.0"


# -- the warning -------------------------------------------------------------------------------------------------------

USE = """
import warnings
import numpy as np, lazyarray
from lazyarray.devices.cuda import driver as cuda_driver
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("{filter}")
    for _ in range(2):
        x = lazyarray.asarray(np.arange(4.0))    # the user's line
        float(x.sum())
for w in caught:
    print(w.category.__name__, w.filename, w.lineno, w.message, sep="|")
print("done", lazyarray.device().name)
"""
DRIVER = ("from lazyarray.devices.cuda import driver as cuda_driver\n"
          "cuda_driver.is_present, cuda_driver.version = lambda: {}, lambda: {}\n")


def used(tmp_path, package=None, before="", filter="always", **environment):
    """What a program that uses lazy arrays is warned of."""
    if package is not None:
        (tmp_path / "cupy").mkdir()
        (tmp_path / "cupy" / "__init__.py").write_text(package)
    code = before + "\n" + USE.format(filter=filter)
    done = run(code, tmp_path, **{"LAZYARRAY_DEVICE": None, **environment})
    *caught, last = done.stdout.splitlines()
    assert last == "done simulated", done.stderr
    return [line.split("|") for line in caught], code.splitlines().index(
        "        x = lazyarray.asarray(np.arange(4.0))    # the user's line") + 1


@pytest.mark.parametrize("case", ["broken", "wrong driver", "no gpu (none counted)"])
def test_where_cupy_is_installed_and_no_device_works_there_is_one_warning(case, tmp_path):
    _, package, reason, advice = CASES[case]
    [(category, filename, lineno, message)], line = used(tmp_path, package)
    assert (category, filename, int(lineno)) == ("SimulatedDeviceWarning", "<string>", line)
    assert reason in message and advice in message and "LAZYARRAY_DEVICE=simulated" in message


@pytest.mark.parametrize(("version", "advice"), [
    (None, "cupy-cuda12x or cupy-cuda13x"), (11080, "Update the driver"), (14000, "lazy-ndarray[cuda13]"),
])
def test_where_there_is_a_driver_and_no_cupy_there_is_one_warning(tmp_path, version, advice):
    before = "import sys; sys.modules['cupy'] = None\n" + DRIVER.format(True, version)
    [(category, _, _, message)], _ = used(tmp_path, before=before)
    assert category == "SimulatedDeviceWarning" and "CuPy is not installed" in message and advice in message


def test_without_cupy_and_a_driver_there_is_none(tmp_path):
    assert used(tmp_path, before="import sys; sys.modules['cupy'] = None\n" + DRIVER.format(False, None))[0] == []


def test_there_is_none_where_the_simulated_device_was_asked_for(tmp_path):
    before = DRIVER.format(True, 13020)
    assert used(tmp_path, "raise ImportError('broken')", before, LAZYARRAY_DEVICE="simulated")[0] == []


def test_who_asks_for_the_diagnosis_is_not_warned_too(tmp_path):
    before = "import lazyarray.devices; lazyarray.devices.why()"
    assert used(tmp_path, "raise ImportError('broken')", before)[0] == []


def test_a_filter_that_makes_errors_of_warnings_in_general_does_not_stop_the_program(tmp_path):
    assert used(tmp_path, "raise ImportError('broken')", filter="error")[0] == []


def test_the_warning_can_be_made_an_error(tmp_path):
    (tmp_path / "cupy").mkdir()
    (tmp_path / "cupy" / "__init__.py").write_text("raise ImportError('broken')")
    code = """
import warnings, lazyarray
warnings.simplefilter("error", lazyarray.SimulatedDeviceWarning)
try: lazyarray.asarray([1.0])
except lazyarray.SimulatedDeviceWarning: print(lazyarray.asarray([1.0]).tolist())
"""
    done = run(code, tmp_path, LAZYARRAY_DEVICE=None)
    assert done.stdout.strip() == "[1.0]", done.stderr


@pytest.mark.parametrize("visible", ["", "7"])
def test_gpus_that_are_hidden_are_named_as_the_reason(tmp_path, visible):
    package = CASES["no gpu"][1]
    [(*_, message)], _ = used(tmp_path, package, CUDA_VISIBLE_DEVICES=visible)
    assert f"CUDA_VISIBLE_DEVICES is {visible!r}" in message and "Unset CUDA_VISIBLE_DEVICES" in message


@pytest.mark.parametrize("program", [True, False])
def test_a_driver_is_known_by_the_program_that_comes_with_it(tmp_path, monkeypatch, program):
    from lazyarray.devices.cuda import driver

    monkeypatch.setattr(driver, "DEVICE_FILE", str(tmp_path / "nvidiactl"))
    monkeypatch.setattr(driver, "LIBRARY", "libcuda-that-is-not-there.so")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not driver.is_present() and driver.version() is None
    if program:
        (tmp_path / "nvidia-smi").write_text("#!/bin/sh\n")
        (tmp_path / "nvidia-smi").chmod(0o755)
    else:
        (tmp_path / "nvidiactl").touch()
    assert driver.is_present()


def test_asking_for_cuda_in_vain_is_an_error_with_the_way_out(tmp_path):
    (tmp_path / "cupy").mkdir()
    (tmp_path / "cupy" / "__init__.py").write_text("raise ImportError('no such library')")
    done = run("from lazyarray import devices\ndevices.current()", tmp_path, LAZYARRAY_DEVICE="cuda")
    assert done.returncode and "DeviceUnavailableError" in done.stderr and "Uninstall" in done.stderr
    assert run(REPORT, tmp_path, LAZYARRAY_DEVICE="cuda").stdout.startswith("none|broken|")


def test_an_unknown_device_is_an_error(tmp_path):
    done = run("from lazyarray import devices\ndevices.current()", LAZYARRAY_DEVICE="abacus")
    assert done.returncode and "'abacus'" in done.stderr and "cuda or simulated" in done.stderr
    assert run(REPORT, LAZYARRAY_DEVICE="abacus").stdout.startswith("none|not asked|")


def test_asking_for_the_simulated_device_does_not_look_for_cupy(tmp_path):
    (tmp_path / "cupy").mkdir()
    (tmp_path / "cupy" / "__init__.py").write_text("import sys; sys.exit('cupy was imported')")
    done = run(REPORT, tmp_path, LAZYARRAY_DEVICE="simulated")
    assert done.stdout.startswith("simulated|not asked|"), done.stderr


def test_importing_the_devices_imports_neither_cupy_nor_the_simulated_one():
    code = "import sys, lazyarray.devices; print([m for m in sys.modules if 'cupy' in m or 'simulated' in m])"
    assert run(code).stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("variable", "value", "code", "printed"),
    [
        ("LAZYARRAY_SIMULATED_DEVICES", "3", "print(d.count)", "3"),
        ("LAZYARRAY_SIMULATED_LIMIT", "10000", "d.xp.zeros(1000)\ntry: d.xp.zeros(9000)\nexcept d.faults: print('OOM')",
         "OOM"),
        ("LAZYARRAY_SIMULATED_DELAY", "1", "a = d.xp.ones(2)\nwith d.new_stream(): print((a + 1).get()[0] == 2)",
         "False"),
    ],
)  # fmt: skip
def test_the_simulated_device_is_set_up_by_the_environment(variable, value, code, printed):
    done = run(f"from lazyarray import devices\nd = devices.current()\n{code}",
               LAZYARRAY_DEVICE="simulated", **{variable: value})  # fmt: skip
    assert done.stdout.strip() == printed, done.stderr


# The arithmetic of memory in `devices/cuda` makes no call to CUDA: with CuPy installed it is tested on host memory.

ON_HOST_MEMORY = """
import weakref, numpy as np
try:
    import cupy
except ImportError:
    raise SystemExit("no cupy")
from lazyarray.devices.cuda.device import CudaDevice
device = CudaDevice(cupy, 1)
host = np.arange(24.0)
start = host.ctypes.data
memory = cupy.cuda.UnownedMemory(start, host.nbytes, host, 0)
root = cupy.ndarray((4, 6), np.float64, cupy.cuda.MemoryPointer(memory, 0))
grid = host.reshape(4, 6)
assert device.allocation(root) == (0, start, host.nbytes) and device.device_of(root) == 0
for d, h in ((root, grid), (root.T, grid.T), (root[::-1, ::2], grid[::-1, ::2]), (root[1:3, 2:4], grid[1:3, 2:4])):
    assert device.extent(d) == np.lib.array_utils.byte_bounds(h), d.strides
    assert device.first(d) == h.ctypes.data
    block, offset = device.block(d)
    assert block.dtype == np.uint8 and device.extent(block) == device.extent(d)
    again = device.view(block, d.shape, d.dtype, d.strides, offset)
    assert (again.shape, again.strides, again.data.ptr) == (d.shape, d.strides, d.data.ptr)
    lent, token = device.lend(d)
    alive = weakref.ref(token)
    del token
    assert (lent.shape, lent.strides, lent.data.ptr) == (d.shape, d.strides, d.data.ptr)
    assert device.allocation(lent) == device.allocation(d)
    part = lent[:1].T
    del lent
    assert alive() is not None
    del part
    assert alive() is None
nothing = root[:0]
block, offset = device.block(nothing)
assert block.shape == (0,) and device.view(block, (0, 6), nothing.dtype, None, offset).shape == (0, 6)
assert device.view(device.block(root)[0], (0, 2), np.dtype("f4"), (8, 4), 16).shape == (0, 2)
assert device.contiguous(root) is root and device.from_foreign(root) is root and device.from_foreign(host) is None
for name in "?bhilqBHILQefdFD":
    assert device.can_hold(np.dtype(name))
for name in (">f8", "S3", "U2", "M8[s]", "O", "V4", "i4,f4", "g", "G"):
    assert not device.can_hold(np.dtype(name)) or np.dtype(name).char in "dD", name
print("fine")
"""


def test_memory_arithmetic_of_the_cuda_device():
    done = run(ON_HOST_MEMORY)
    if "no cupy" in done.stderr:
        pytest.skip("CuPy is not installed")
    assert done.stdout.strip() == "fine", done.stderr
