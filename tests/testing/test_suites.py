"""Other packages' own test-suites pass with lazy arrays in place of ndarrays, but for the tests that are listed.

Each suite runs in a process of its own, twice: with results as they come, and with results made lazy too. What fails
and is not listed in dropin_exceptions.py runs again with plain copies in place of the lazy arrays: what fails
then too does not bear having its arguments replaced. In the nightly run that goes for the listed tests as well.
"""
from __future__ import annotations

import json
import os

import pytest
from dropin_exceptions import KNOWN, LEFT_OUT, known
from suite_runs import skip_without, start

NIGHTLY = os.environ.get("LAZYARRAY_NIGHTLY") == "1"
CUDA = os.environ.get("LAZYARRAY_DEVICE") == "cuda"

# Suite -> package whose functions take lazy arrays
QUICK = {
    "numpy.fft.tests.test_pocketfft": "numpy",
    "numpy.lib.tests.test_function_base": "numpy",
    "numpy._core.tests.test_numeric": "numpy",
}
LONG = {
    "numpy.linalg.tests.test_linalg": "numpy.linalg",
    "scipy.signal.tests.test_filter_design": "scipy.signal",
    "scipy.signal.tests.test_signaltools": "scipy.signal",
    "scipy.interpolate.tests.test_bsplines": "scipy.interpolate",
    "scipy.interpolate.tests.test_fitpack": "scipy.interpolate",
    "scipy.interpolate.tests.test_fitpack2": "scipy.interpolate",
    "scipy.interpolate.tests.test_rbfinterp": "scipy.interpolate",
    "numpy._core.tests.test_multiarray": "numpy",
}
SUITES = QUICK | LONG
PARAMETERS = [
    pytest.param(suite, marks=pytest.mark.skipif(
        not NIGHTLY and (CUDA or suite in LONG), reason="runs in the nightly tests (LAZYARRAY_NIGHTLY=1)"))
    for suite in SUITES
]



def run(folder, suite, arrays, results, tests=()):
    """The report of a run of a suite, or of some of its tests."""
    report = folder / f"{arrays}.json"
    names = [f"{suite}::{test}" for test in tests] or [suite]
    without = [f"-k=not ({' or '.join(LEFT_OUT[suite])})"] if suite in LEFT_OUT and not tests else []
    found = start(folder, ["--pyargs", *without, *names], LAZYARRAY_SUITE=SUITES[suite], LAZYARRAY_SUITE_ARRAYS=arrays,
                  LAZYARRAY_SUITE_RESULTS=str(int(results)), LAZYARRAY_SUITE_REPORT=str(report))
    assert found.returncode in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED), found.stdout + found.stderr
    content = json.loads(report.read_text())
    outcomes = {name.removeprefix(f"{suite}::"): outcome for name, outcome in content["tests"].items()}
    return {**content, "tests": outcomes, "output": found.stdout}


def failed(report):
    return {test for test, outcome in report["tests"].items() if outcome == "failed"}



@pytest.mark.parametrize("results", [False, True], ids=["arguments", "results"])
@pytest.mark.parametrize("suite", PARAMETERS)
def test_a_suite_passes_with_lazy_arrays(suite, results, tmp_path):
    pytest.importorskip("hypothesis", reason="the tests of NumPy need it")
    skip_without(suite)
    report = run(tmp_path, suite, "lazy", results)
    assert report["arrays"] > 100, "hardly anything was replaced, so nothing was tested"
    listed = known(suite, results)
    unknown = sorted(set(listed) - set(report["tests"]))
    assert not unknown, f"listed, but there are no such tests: {unknown}"

    broken = failed(report)
    repaired = sorted(set(listed) - broken)
    assert not repaired, f"these pass: take them out of tests/support/dropin_exceptions.py: {repaired}"

    suspects = sorted(broken if NIGHTLY else broken - set(listed))
    if suspects:
        control = failed(run(tmp_path, suite, "control", results, suspects))
        needless = sorted(control & set(listed))
        assert not needless, f"these fail with copies too, so they need no entry: {needless}"
        new = sorted(set(suspects) - control - set(listed))
        assert not new, f"these fail with lazy arrays only: {new}\n{report['output']}"


@pytest.mark.parametrize("entry", KNOWN, ids=lambda entry: f"{entry.suite}-{entry.tests[0]}")
def test_an_exception_is_of_a_suite_that_runs(entry):
    assert entry.suite in SUITES


# What a test sees of its functions under the plugin
TESTS = """
import os
import types

import numpy as np
import pytest
from numpy import sort as renamed
from numpy._core._multiarray_umath import _vec_string

import lazyarray

kind, results = os.environ["LAZYARRAY_SUITE_ARRAYS"], os.environ["LAZYARRAY_SUITE_RESULTS"] == "1"
untouched = np.arange(3.0)


def test_arguments_and_results():
    result = renamed(untouched)
    assert isinstance(result, np.ndarray) and type(result) is np.ndarray
    assert lazyarray.is_lazy(result) == (kind == "lazy")


def test_creation():
    assert lazyarray.is_lazy(np.ones(3)) == (kind == "lazy" and results)


def test_what_a_function_writes_is_in_the_array_of_the_test():
    a = untouched.copy()
    assert np.negative(untouched, out=a) is a
    assert a.tolist() == [0, -1, -2]
    np.copyto(a, 7)
    assert a.tolist() == [7, 7, 7]
    np.add.at(a, [0, 0], 1)
    assert a.tolist() == [9, 7, 7]


def test_lists_of_lists():
    assert np.block([[untouched, untouched], [untouched, untouched]]).shape == (2, 6)


def test_a_read_only_array_stays_one():
    a = untouched.copy()
    a.flags.writeable = False
    with pytest.raises(ValueError):
        np.copyto(a, 1)


@pytest.mark.parametrize("function", [np.sort, np.linalg.pinv])
def test_parameters(function):
    a = untouched.reshape(1, 3)
    assert lazyarray.is_lazy(function(a)) == (kind == "lazy")


def test_functions_stay_what_they_are():
    assert isinstance(np.add, np.ufunc) and np.add.nin == 2 and np.linalg.inv.__name__ == "inv"
    assert isinstance(int, type) and type("A", (), {}).__name__ == "A" and type(3) is int


def test_compiled_helpers_take_ndarrays_only():
    assert isinstance(_vec_string, types.BuiltinFunctionType)
"""


@pytest.mark.parametrize("results", ["0", "1"])
@pytest.mark.parametrize("arrays", ["lazy", "control"])
def test_the_plugin(arrays, results, tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    found = start(tmp_path, ["test_it.py"], LAZYARRAY_SUITE="numpy", LAZYARRAY_SUITE_ARRAYS=arrays,
                  LAZYARRAY_SUITE_RESULTS=results)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("settings", [{}, {"LAZYARRAY_SUITE": "numpy", "LAZYARRAY_SUITE_ARRAYS": "greedy"}])
def test_wrong_settings_are_refused(settings, tmp_path):
    found = start(tmp_path, ["--collect-only"], **settings)
    assert found.returncode == pytest.ExitCode.USAGE_ERROR and "LAZYARRAY_SUITE" in found.stderr
