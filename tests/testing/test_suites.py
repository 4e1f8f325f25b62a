"""Other packages' own test-suites pass with lazy arrays in place of ndarrays, but for the tests that are listed.

Each suite runs in a process of its own, twice: with results as they come, and with results made lazy too. What fails
runs again with plain copies in place of the lazy arrays: what fails then too does not bear having its arguments
replaced. What else fails is listed in dropin_exceptions.py.
"""
from __future__ import annotations

import configparser
import json
import os
import re
import subprocess
import sys

import pytest
from dropin_exceptions import KNOWN, LEFT_OUT, known
from suite_runs import ROOT, skip_without, start

NIGHTLY = os.environ.get("LAZYARRAY_NIGHTLY") == "1"
#: By day once is enough: what differs before 3.12 are buffers, which these suites hardly ask for.
OLD = sys.version_info < (3, 12)
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
        not NIGHTLY and (CUDA or OLD or suite in LONG), reason="runs in the nightly tests (LAZYARRAY_NIGHTLY=1)"))
    for suite in SUITES
]



def run(folder, suite, results):
    """The report of a run of a suite."""
    report = folder / "report.json"
    without = [f"-k=not ({' or '.join(LEFT_OUT[suite])})"] if suite in LEFT_OUT else []
    found = start(folder, ["--lazyarray-untraced", "--pyargs", *without, suite], SUITES[suite], results, report)
    assert found.returncode in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED), found.stdout + found.stderr
    content = json.loads(report.read_text())
    outcomes = {name.removeprefix(f"{suite}::"): outcome for name, outcome in content["tests"].items()}
    return {**content, "tests": outcomes, "output": found.stdout}


def those(report, wanted):
    return {test for test, outcome in report["tests"].items() if outcome == wanted}



@pytest.mark.parametrize("results", [False, True], ids=["arguments", "results"])
@pytest.mark.parametrize("suite", PARAMETERS)
def test_a_suite_passes_with_lazy_arrays(suite, results, tmp_path):
    pytest.importorskip("hypothesis", reason="the tests of NumPy need it")
    skip_without(suite)
    report = run(tmp_path, suite, results)
    assert report["arrays"] > 100, "hardly anything was replaced, so nothing was tested"
    listed = known(suite, results)
    unknown = sorted(set(listed) - set(report["tests"]))
    assert not unknown, f"listed, but there are no such tests: {unknown}"

    broken = those(report, "failed")
    needless = sorted(those(report, "unsuitable") & set(listed))
    assert not needless, f"these fail with copies too, so they need no entry: {needless}"
    repaired = sorted(set(listed) - broken)
    assert not repaired, f"these pass: take them out of tests/support/dropin_exceptions.py: {repaired}"
    new = sorted(broken - set(listed))
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

results = os.environ["RESULTS"] == "1"
untouched = np.arange(3.0)


def test_arguments_and_results():
    result = renamed(untouched)
    assert isinstance(result, np.ndarray) and type(result) is np.ndarray
    assert lazyarray.is_lazy(result)


def test_creation():
    assert lazyarray.is_lazy(np.ones(3)) == results


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
    assert lazyarray.is_lazy(function(a))


def test_functions_stay_what_they_are():
    assert isinstance(np.add, np.ufunc) and np.add.nin == 2 and np.linalg.inv.__name__ == "inv"
    assert isinstance(int, type) and type("A", (), {}).__name__ == "A" and type(3) is int


def test_compiled_helpers_take_ndarrays_only():
    assert isinstance(_vec_string, types.BuiltinFunctionType)
"""


@pytest.mark.parametrize("results", [False, True])
def test_the_plugin(results, tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    found = start(tmp_path, ["test_it.py"], "numpy", results, RESULTS=str(int(results)))
    assert found.returncode == 0, found.stdout + found.stderr


# A package with something to report, and its tests

PACKAGE = """
import numpy as np


def doubled(x):
    return x * 2


def by_hand(x):
    return np.array([2 * value for value in np.asarray(x)])


def on_the_host(x):
    return np.geomspace(x[0] + 1, x[1] + 1, 4)


def of_one_class(x):
    return "ndarray" if x.__class__.__module__ == "numpy" and type(x) is np.ndarray else "another"


class Model:
    def fit(self, x):
        self.mean = x.mean(axis=0)
        return self

    def predict(self, x):
        return self.shifted(x)

    def shifted(self, x):
        return x - self.mean
"""

PACKAGE_TESTS = """
import numpy as np
import pytest

import package
from package import Model, doubled


@pytest.fixture
def x():
    return np.arange(6.0).reshape(3, 2)


def test_doubled(x):
    assert doubled(x).tolist() == (2 * x).tolist()
    assert package.doubled(x).shape == x.shape


def test_by_hand():
    assert package.by_hand(np.arange(3.0)).tolist() == [0, 2, 4]


def test_on_the_host(x):
    assert package.on_the_host(x).shape == (4, 2)


def test_class(x):
    assert package.of_one_class(x) == "ndarray"


def test_fails_anyway():
    assert False


def test_model(x):
    assert np.allclose(Model().fit(x).predict(x), x - x.mean(axis=0))
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text(PACKAGE)
    (tmp_path / "test_it.py").write_text(PACKAGE_TESTS)
    return tmp_path


@pytest.mark.parametrize("workers", [[], ["-p", "xdist", "-n", "2"]], ids=["one process", "xdist"])
def test_the_report(project, workers):
    if workers:
        pytest.importorskip("xdist")
    report = project / "report.json"
    found = start(project, ["-o", "pythonpath=.", "--lazyarray-methods=fit,predict,shifted", *workers], "package",
                  report=report)
    content = json.loads(report.read_text())
    outcomes = {name.rpartition("::")[2]: outcome for name, outcome in content["tests"].items()}
    assert outcomes == {"test_doubled": "passed", "test_by_hand": "passed", "test_on_the_host": "passed",
                        "test_class": "failed", "test_fails_anyway": "unsuitable",
                        "test_model": "passed"}
    assert content["differing"] == ["test_it.py::test_class"]
    rows = content["functions"]
    assert rows["package.doubled"] == {"calls": 2, "lazy": 2, "lost": 0, "copies": 0, "nbytes": 0, "fallbacks": 0}
    assert rows["package.by_hand"]["lost"] == 1 and rows["package.by_hand"]["nbytes"] == 24
    assert rows["package.on_the_host"]["fallbacks"] == 1 and content["hosts"][0][0] == "numpy.geomspace"
    assert rows["package.Model.fit"]["calls"] == rows["package.Model.predict"]["lazy"] == 1
    assert "package.Model.shifted" not in rows, "it was called by the package"
    assert "1 failed, 4 passed, 1 skipped" in found.stdout, found.stdout + found.stderr
    assert "1 tests pass with ndarrays and fail with lazy arrays" in found.stdout
    assert "1 numpy.geomspace: " in found.stdout and "package.by_hand" in found.stdout


def test_without_a_name_the_packages_of_the_folder_are_tested(project):
    found = start(project, ["-o", "pythonpath=.", "-k", "doubled", "--rootdir", str(project)], "")
    assert "1 passed" in found.stdout and "lazy arrays in package" in found.stdout, found.stdout + found.stderr


@pytest.mark.parametrize("package, said", [("nonsense", "there is no such package"), ("", "there is no package in")])
def test_wrong_names_are_refused(package, said, tmp_path):
    found = start(tmp_path, ["--collect-only", "--rootdir", str(tmp_path)], package)
    assert found.returncode == pytest.ExitCode.USAGE_ERROR and said in found.stderr


AT_THE_START = """
import sys


def test_what_is_there():
    assert "lazyarray_pytest" in sys.modules
    assert {"numpy", "lazyarray", "wrapt", "hypothesis", "cupy"}.isdisjoint(sys.modules)
"""


def test_a_run_that_does_not_ask_for_it_imports_neither_lazyarray_nor_numpy(tmp_path):
    (tmp_path / "test_it.py").write_text(AT_THE_START)
    command = [sys.executable, "-m", "pytest", "-p", "lazyarray_pytest", "-q", "test_it.py"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    found = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "1 passed" in found.stdout, found.stdout


def test_the_plugin_is_imported_within_milliseconds():
    command = [sys.executable, "-X", "importtime", "-c", "import pytest, lazyarray_pytest"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stderr
    times = {name.strip(): int(inclusive)
             for inclusive, name in re.findall(r"import time: +\d+ \| +(\d+) \|(.*)", found)}
    assert {"numpy", "lazyarray", "wrapt", "hypothesis", "cupy"}.isdisjoint(times)
    assert times["lazyarray_pytest"] < times["pytest"] / 10, "microseconds"


def test_the_entry_point_is_the_module_that_imports_nothing():
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    assert settings["options.entry_points"]["pytest11"].split() == ["lazyarray_pytest", "=", "lazyarray_pytest"]
    assert "lazyarray_pytest" in settings["options"]["py_modules"].split()
