"""Dask's own array tests that it runs on CuPy, on lazy chunks: those fail alone that ask for the exact type of what
Dask makes with NumPy's functions, with the right values.
"""
from __future__ import annotations

import os
import re
from xml.etree import ElementTree

import pytest
from suite_runs import ROOT, skip_without, start

QUICK = ["gufunc", "overlap", "slicing"]
MODULES = [*QUICK, "core", "creation", "linalg", "percentile", "random", "reductions", "routines"]

_SCALAR = "the meta of a result without axes is numpy.array(scalar), where a function returns a NumPy scalar"
_LIKE = "numpy.asarray(a, like=x) is a itself, or shares its memory, where a is an ndarray"
_RANDOM = "random numbers of Dask are drawn by NumPy's generators, on the host"
_EMPTY = "Dask fills an array from numpy.empty"
#: Test -> (how many of its cases fail, why).
TYPES = {
    "test_basic": (16, _SCALAR),
    "test_arg_reductions": (4, _SCALAR),
    "test_nanarg_reductions": (2, _SCALAR),
    "test_percentiles_with_scaler_percentile": (4, _SCALAR),
    "test_percentiles_with_unknown_chunk_sizes": (1, _RANDOM),
    "test_random_all_RandomState": (5, _RANDOM),
    "test_random_all_direct_calls": (1, _RANDOM),
    "test_random_all_Generator": (12, _RANDOM),
    "test_random_shapes": (3, _RANDOM),
    "test_cupy_unsupported": (1, "what CuPy lacks is there"),
    "test_asanyarray": (5, _LIKE),
    "test_array_like": (12, _LIKE),
    "test_diagonal": (1, _EMPTY),
    "test_unique_kwargs": (7, _EMPTY + ", a structured one"),
    "test_unique_rand": (8, _EMPTY + ", a structured one"),
    "test_lstsq": (4, "Dask states that the rank is an ndarray"),
}
_ABOUT_TYPES = re.compile(r"assert <class 'numpy.ndarray'> (is|==) <class 'lazyarray|different type|DID NOT RAISE"
                          r"|= isinstance\(array")


def outcomes(modules, folder):
    """(test -> messages of its cases that failed), and how many passed."""
    report = folder / "report.xml"
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "support"), *filter(None, [os.environ.get("PYTHONPATH")])])
    found = start(folder, ["-c", os.devnull, "-p", "lazy_cupy", "-W", "ignore", f"--junitxml={report}", "--pyargs",
                           *(f"dask.array.tests.test_cupy_{name}" for name in modules)],
                  PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", PYTHONPATH=path,
                  LAZYARRAY_DEVICE="simulated")     # CUDA's device needs the module that takes another one's name here
    assert found.returncode in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED), found.stdout + found.stderr
    failed, passed = {}, 0
    for case in ElementTree.parse(report).iter("testcase"):
        for failure in case.findall("failure"):
            failed.setdefault(case.get("name").partition("[")[0], []).append(failure.get("message"))
        passed += not list(case)
    return failed, passed


@pytest.fixture(autouse=True)
def _needs_dask_s_tests():
    skip_without("dask.array.tests.test_cupy_core")


def test_what_cupy_s_chunks_pass_lazy_ones_do(tmp_path):
    failed, passed = outcomes(QUICK, tmp_path)
    assert not failed and passed > 40


@pytest.mark.skipif(os.environ.get("LAZYARRAY_NIGHTLY") != "1", reason="runs in the nightly tests")
def test_what_fails_asks_for_an_exact_type(tmp_path):
    failed, passed = outcomes(MODULES, tmp_path)
    assert {test: len(messages) for test, messages in failed.items()} == {test: n for test, (n, _) in TYPES.items()}
    for test, messages in failed.items():
        assert all(map(_ABOUT_TYPES.search, messages)), (test, messages)
    assert passed >= 280
