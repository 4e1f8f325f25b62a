"""An alias that can't be refreshed, since the device fails each time: what foreign code writes to it is not lost."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray
from lazyarray.devices.simulated import device
from lazyarray.devices.simulated.hardware import DeviceError

pytestmark = pytest.mark.skipif(lazyarray.device().name != "simulated", reason="these are the simulated device's")


@pytest.fixture
def failing(monkeypatch):
    """A function that lets so many copies to the host fail, those that come next; it returns how many are left."""
    left = [0]
    download = device.SimulatedDevice.download

    def fails(self, source, target):
        if left[0]:
            left[0] -= 1
            raise DeviceError("a fault of the device")
        return download(self, source, target)

    monkeypatch.setattr(device.SimulatedDevice, "download", fails)
    return left


@pytest.mark.parametrize("tracking", ["auto", "none"])
@pytest.mark.parametrize("size", [8, 20_000])       # found by comparison, and by pages
@pytest.mark.parametrize("failures", [1, 2, 3, 4])
@pytest.mark.parametrize("later", ["x + 0", "np.asarray(x)", "x.__iadd__(1)", "x[::2].__imul__(2)"])
def test_a_write_to_an_alias_that_could_not_be_refreshed(failing, tracking, size, failures, later):
    """The device has -7 where the alias shows 3: 50 differs from 3 in one byte, and from -7 in two."""
    with lazyarray.options(write_tracking=tracking):
        x = lazyarray.asarray(np.full(size, 3.0))
        alias, expected = np.asarray(x), np.full(size, 3.0)
        failing[0] = failures
        for _ in range(2):      # two statements, each of which tries twice
            if failing[0]:
                with pytest.raises(DeviceError):
                    x *= -7 / 3
            else:
                x *= -7 / 3
            expected *= -7 / 3
        alias[5] = expected[5] = 50
        eval(later, {"x": x, "np": np})
        eval(later, {"x": expected, "np": np})
        assert failing[0] == 0
        assert np.array_equal(np.asarray(x + 0), expected)
        assert np.array_equal(np.asarray(x), expected)
        assert np.array_equal(alias, expected)
        alias[6] = expected[6] = 51     # and writes are still found
        assert np.array_equal(np.asarray(x + 0), expected)


WRITES = {"x += 1": lambda x: x.__iadd__(1), "a part": lambda x: x[:50].__iadd__(2), "fill": lambda x: x.fill(7),
          "an element": lambda x: x.__setitem__(3, 5), "out=": lambda x: np.add(x, 1, out=x),
          "a mask": lambda x: x.__setitem__(x > 2, 0), "copyto": lambda x: np.copyto(x, 9)}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("size", [100, 20_000])
def test_a_write_whose_refresh_is_forbidden_is_not_done(write, size):
    x = lazyarray.asarray(np.full(size, 3.0)) * 1
    alias = np.asarray(x)
    float(x.sum())
    with lazyarray.no_transfers(), pytest.raises(lazyarray.TransferError, match="refresh of an alias"):
        write(x)
    assert (alias == 3).all() and np.array_equal(np.asarray(x * 1), np.full(size, 3.0))
    expected = np.full(size, 3.0)
    write(x)
    write(expected)
    assert np.array_equal(alias, expected) and np.array_equal(np.asarray(x * 1), expected)
    del alias
    with lazyarray.no_transfers():
        write(x)
    write(expected)
    assert np.array_equal(np.asarray(x), expected)
