"""NumPy's own code of a function runs on lazy arrays: its warnings, its errors, and no copy."""
from __future__ import annotations

import sys
import threading
import types
import warnings

import numpy as np
import pytest

import lazyarray
from lazyarray.functions import numpy_code, tables
from lazyarray.testing import check

NANS = np.where(np.arange(12.0) % 5 == 0, np.nan, np.arange(12.0)).reshape(3, 4)


def test_nothing_is_copied():
    x, y = lazyarray.asarray(NANS), lazyarray.asarray(NANS.T.copy())
    with lazyarray.no_transfers():
        results = (np.nanmean(x, 0), np.nanstd(x), np.isclose(x, 1.0), np.angle(x), np.stack([x, x]), np.pad(x, 1),
                   np.append(x, 3), np.diff(x, prepend=0), np.linalg.matrix_power(x[:, :3], 2), np.kron(x, y),
                   np.meshgrid(x[0], y[0]), np.cov(x), np.vander(x[0], 3), np.delete(x, 1, 0), np.emath.sqrt(x))
    assert all(map(lazyarray.is_lazy, results[0:10]))


def test_host_arrays_and_lists_are_uploaded_once():
    x = lazyarray.asarray(NANS[1])
    for other in (NANS[2], NANS[2].tolist()):
        with lazyarray.trace() as t:
            np.isclose(x, np.asarray(other)), np.union1d(x, other), np.outer(x, other), np.setxor1d(x, other)
        assert [event.kind for event in t.events if event.kind != "synchronise"] in (["upload"], [])


@pytest.mark.parametrize("call", [np.nanmean, lambda x: np.nanvar(x), lambda x: np.nanstd(x, 0),
                                  lambda x: np.polyfit([1, 2], np.nan_to_num(x), 3)])
def test_a_warning_is_given_at_the_line_that_numpy_names(call):
    found = []
    for x in np.full(2, np.nan), lazyarray.asarray(np.full(2, np.nan)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(x)
        found.append([(w.category, str(w.message), w.filename, w.lineno) for w in caught])
    assert found[0] == found[1] != []


@pytest.mark.together
def test_what_the_code_makes_lies_on_the_arrays_device():
    device = lazyarray.device()
    if device.name != "simulated":
        pytest.skip("needs a second device")
    with device.with_count(2):
        with device.on(1):
            x = lazyarray.asarray(NANS)
        with lazyarray.no_transfers():
            results = [np.pad(x, 1), np.append(x, 3), np.delete(x, 1, 0), np.vander(x[0], 3), np.kron(x, x)]
            assert [device.device_of(lazyarray.asdevice(result)) for result in results] == [1] * 5


def test_a_function_of_the_callers_runs_on_the_host():
    def pads(vector, widths, axis, options):
        assert type(vector) is np.ndarray
        vector[:widths[0]] = -1

    with pytest.warns(lazyarray.HostFallbackWarning, match="it calls a Python function"):
        found = np.pad(lazyarray.asarray(NANS[0]), (2, 0), pads)
    assert np.array_equal(found, np.pad(NANS[0], (2, 0), pads), equal_nan=True)


def test_a_scalar_that_it_returns_is_on_the_device():
    """It is none on the host that holds another one, which CuPy's functions would be given."""
    s = np.average(np.arange(5), weights=lazyarray.asarray(np.ones(5)))
    assert lazyarray.is_lazy(s) and lazyarray.where(s).side in ("device", "pending") and s == 2


def test_errors_are_numpys():
    check(np.stack, [np.ones(2), np.ones(3)])
    check(np.trapezoid, np.ones(3), np.ones(4))
    check(np.linalg.matrix_power, np.ones((2, 3)), 2)


def test_what_a_value_is_fetched_for_afterwards_is_a_copy_again():
    x = lazyarray.asarray(NANS)
    with pytest.raises(ValueError, match="same shape"):
        np.stack([x, x[0]])
    assert np.allclose(x, x, equal_nan=True)
    with lazyarray.trace() as t:
        float(np.nanmax(x[1:].sum()))
    assert [event.kind for event in t.events][-1] == "materialise"


def test_numpys_own_functions_stay_as_they_are():
    before = {func: (vars(sys.modules[func.__wrapped__.__module__]), func.__wrapped__.__globals__)
              for func in tables.COMPOSED if isinstance(func.__wrapped__, types.FunctionType)}
    np.nanmean(lazyarray.asarray(NANS))
    for func, (module, globals_) in before.items():
        assert func.__wrapped__.__globals__ is globals_ is module, func
    assert type(np.nanmean(NANS)) is np.float64 and np.lib._function_base_impl.asanyarray is np.asanyarray


def test_threads_find_whole_functions(monkeypatch):
    monkeypatch.setattr(numpy_code, "_made", {})
    x, found, start = lazyarray.asarray(NANS[0]), [], threading.Barrier(4)

    def work():
        start.wait()
        found.append(float(np.trapezoid(np.unwrap(np.nan_to_num(x)))))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [float(np.trapezoid(np.unwrap(np.nan_to_num(NANS[0]))))] * 4
