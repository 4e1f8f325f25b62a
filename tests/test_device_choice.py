"""Which device is chosen, and what is said when CUDA is missing, broken, or without a driver or a GPU.

Each case is a process of its own, in which a package called cupy stands for the installation in question.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

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
    "missing": ("import sys; sys.modules['cupy'] = None", None, "not installed", "cupy-cuda13x"),
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


# The arithmetic of memory in devices/cuda.py makes no call to CUDA: with CuPy installed it is tested on host memory.

ON_HOST_MEMORY = """
import weakref, numpy as np
try:
    import cupy
except ImportError:
    raise SystemExit("no cupy")
from lazyarray.devices.cuda import CudaDevice
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
