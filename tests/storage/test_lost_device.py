"""A kernel that reads out of bounds: CUDA fails from then on. One clear error, and what the host has stays readable."""
from __future__ import annotations

import contextlib
import gc
import os
import pickle
import random
import subprocess
import sys
from pathlib import Path

import faults
import numpy as np
import pytest

import lazyarray

ON_CUDA = lazyarray.device().name == "cuda"
simulated = pytest.mark.skipif(ON_CUDA, reason="in a process that goes on: the simulated device can be mended")

SIZE = 50_000
VALUES = np.arange(float(SIZE))


@pytest.fixture(params=[3, SIZE])
def size(request):
    return request.param


def made(size):
    """Arrays by where they are current, with what NumPy has in them."""
    found = {name: lazyarray.asarray(VALUES[:size]) + k for k, name in enumerate(["device", "both", "written"])}
    for x in found.values():
        lazyarray.block_until_ready(x)
    np.asarray(found["both"])
    alias = np.asarray(found["written"])
    alias[1] = 50
    found["alias"] = alias
    found["waits"] = lazyarray.asarray(VALUES[:size]) * 2
    return found


USES = {
    "np.asarray(x)": np.asarray,
    "print": str,
    "float(x.sum())": lambda x: float(x.sum()),
    "x + 1": lambda x: np.asarray(x + 1),
    "x[1:]": lambda x: np.asarray(x[1:]),
    "float(x[1])": lambda x: float(x[1]),
    "x.tolist()": lambda x: x.tolist(),
    "x.copy()": lambda x: np.asarray(x.copy()),
    "x += 1": lambda x: np.asarray(x.__iadd__(1)),
    "x[1] = 2": lambda x: np.asarray((x.__setitem__(1, 2), x)[1]),
    "x[x > 1]": lambda x: np.asarray(x[x > 1]),
    "np.sort(x)": lambda x: np.asarray(np.sort(x)),
    "x.sort()": lambda x: np.asarray((x.sort(), x)[1]),
    "pickle": lambda x: pickle.dumps(x, 4),
    "@lazy": lambda x: np.asarray(lazyarray.lazy(lambda a: a + 1, pure=True)(x)),
    "prefetch": lambda x: (lazyarray.prefetch(x), np.asarray(x)),
    "block_until_ready": lambda x: np.asarray(lazyarray.block_until_ready(x)),
}


@simulated
@pytest.mark.filterwarnings("ignore::lazyarray.HostFallbackWarning")
@pytest.mark.parametrize("name", ["device", "waits"])
@pytest.mark.parametrize("use", USES)
def test_what_only_the_device_had_is_lost(name, use, size):
    arrays = made(size)
    device = lazyarray.device()
    with device.broken():
        for _ in range(2):      # the first to see it, and those who come later
            with pytest.raises(lazyarray.DeviceUnavailableError) as caught:
                USES[use](arrays[name])
            for part in ("cudaErrorIllegalAddress", "current on the host", "restart"):
                assert part in str(caught.value)


@simulated
@pytest.mark.filterwarnings("ignore::lazyarray.HostFallbackWarning")
@pytest.mark.parametrize("known", [False, True])
def test_what_the_host_has_stays_readable(known, size, tmp_path):
    arrays = made(size)
    written = VALUES[:size] + 2
    written[1] = 50
    with lazyarray.device().broken():
        if known:
            with pytest.raises(lazyarray.DeviceUnavailableError):
                np.asarray(arrays["device"])
        assert np.array_equal(np.asarray(arrays["both"]), VALUES[:size] + 1)
        assert np.array_equal(np.asarray(arrays["written"]), written)
        assert repr(arrays["both"]) and arrays["both"].tolist() == (VALUES[:size] + 1).tolist()
        np.save(tmp_path / "saved.npy", arrays["written"])
        assert np.array_equal(np.load(tmp_path / "saved.npy"), written)
        assert np.array_equal(np.asarray(pickle.loads(pickle.dumps(arrays["both"], 4))), VALUES[:size] + 1)
        arrays["alias"][2] = written[2] = 51        # and foreign code goes on writing
        assert np.array_equal(np.asarray(arrays["written"]), written)
        if known:       # what is computed comes from the host
            assert float(arrays["both"].sum()) == (VALUES[:size] + 1).sum()
            arrays["written"] += 1
            assert np.array_equal(arrays["alias"], written + 1)


@simulated
def test_a_failed_write_leaves_the_host_alone(size):
    """The first that fails is a write of the device: then the alias shows what was there before."""
    arrays = made(size)
    seen = arrays["alias"].copy()
    with lazyarray.device().broken():
        with pytest.raises(lazyarray.DeviceUnavailableError):
            arrays["written"] *= arrays["device"]
        assert np.array_equal(arrays["alias"], seen)


@pytest.mark.together
@simulated
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("operation", [text for text in faults.OPERATIONS if sys.version_info >= (3, 12) or (
    "memoryview" not in text)])
def test_no_statement_shows_the_device_s_own_error(operation):
    """In any state of its arrays it is done, or raises the library's error; then what can be read is of one state."""
    cases = faults.pairs(operation)
    for case, _ in cases if os.environ.get("LAZYARRAY_NIGHTLY") == "1" else random.Random(operation).sample(
            cases, min(3, len(cases))):
        with lazyarray.options(**case.options):
            real, models = faults.scene(case, faults.LAZY), []
            for statements in range(len(faults.OPERATIONS[operation]) + 1):
                model = faults.scene(case, faults.PLAIN)
                with contextlib.suppress(ValueError):       # it may be read-only
                    exec("; ".join(["pass", *faults.OPERATIONS[operation][:statements]]), model)
                models.append(model)
            with lazyarray.device().broken():
                with contextlib.suppress(lazyarray.DeviceUnavailableError, ValueError):
                    exec(operation, real)
                for name, value in faults.own(real).items():
                    if lazyarray.is_lazy(value):
                        with contextlib.suppress(lazyarray.DeviceUnavailableError):
                            found = np.asarray(value)
                            assert any(np.array_equal(found, model[name]) for model in models if name in model), case


@simulated
def test_a_copy_of_what_overlaps_fails_with_the_library_s_error():
    x = lazyarray.asarray(np.arange(8.0))
    x += 0
    with lazyarray.device().broken(), pytest.raises(lazyarray.DeviceUnavailableError):
        x[1:] = x[:-1]


@simulated
@pytest.mark.parametrize("known", [False, True])
def test_finalisers_are_silent(known, size, monkeypatch):
    said = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    monkeypatch.setattr(sys, "excepthook", lambda *error: said.append(error))
    arrays = made(size)
    device = lazyarray.device()
    x = lazyarray.asarray(VALUES[:size])
    with device.new_stream():
        lazyarray.block_until_ready(x + 1)      # read on another stream: its memory waits for that
    y = lazyarray.asarray(VALUES[:size]) + 1
    lazyarray.prefetch(y)
    with device.broken():
        if known:
            with pytest.raises(lazyarray.DeviceUnavailableError):
                np.asarray(arrays["device"])
        arrays.clear()
        del x, y
        gc.collect()
    assert not said


@simulated
def test_other_errors_leave_the_device_usable(monkeypatch):
    from lazyarray.devices.simulated.hardware import DeviceError
    device = lazyarray.device()
    x = made(SIZE)["device"]
    with monkeypatch.context() as patch:
        def fails(*given):
            raise DeviceError("cudaErrorInvalidValue: invalid argument")
        patch.setattr(type(device), "download", fails)
        patch.setattr(type(device), "fetch_end", fails)
        with pytest.raises(DeviceError):
            np.asarray(x[::2])
    assert device.usable() is None
    assert np.array_equal(np.asarray(x[::2]), VALUES[::2])


PROGRAM = """
import gc, sys
import cupy, numpy as np, lazyarray
read = cupy.RawKernel('extern "C" __global__ void f(const double *x, double *y) { y[0] = x[1LL << 40]; }', "f")
values = np.arange(50_000.0)
on_device, both, written = (lazyarray.asarray(values) + k for k in range(3))
lazyarray.block_until_ready(on_device)
np.asarray(both)
alias = np.asarray(written)
alias[1] = 50
y = cupy.zeros(1)
read((1,), (1,), (cupy.zeros(1), y))
for _ in range(2):
    try:
        np.asarray(on_device)
    except lazyarray.DeviceUnavailableError as error:
        assert "cudaErrorIllegalAddress" in str(error) or "CUDA_ERROR_ILLEGAL_ADDRESS" in str(error), error
        assert "restart" in str(error), error
    else:
        sys.exit("no error")
assert np.array_equal(np.asarray(both), values + 1)
assert np.asarray(written)[1] == 50 and float(written[3]) == 5
lazyarray.options(warn_fallbacks=False).__enter__()
assert float(both.sum()) == (values + 1).sum()
del on_device, both, written
gc.collect()
"""


@pytest.mark.skipif(not ON_CUDA, reason="only CUDA has a context that can be lost")
def test_a_kernel_that_reads_out_of_bounds():
    path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": path}, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    # What CuPy's own finalisers say of events and modules is not the library's.
    assert "lazyarray" not in done.stderr, done.stderr
