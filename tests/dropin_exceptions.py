"""Tests of other packages that fail with lazy arrays in place of ndarrays, and pass with copies in their place.

tests/test_suites.py runs the suites and holds this list to what it finds: a test that is not listed must pass, and one
that is listed must fail, so that an entry goes when its reason does.
"""
from __future__ import annotations

import sys
from dataclasses import dataclass

# Something that no object but an ndarray can be, or a question that no other can answer
_C_ARRAY = "__array__ of the test's class returns the lazy array; in C it must return an ndarray"
_C_ARGUMENT = "a function of NumPy in C, without a protocol, takes nothing but ndarrays"
_ITERATOR = "np.broadcast keeps what NumPy made of its operand, and the test asks whether that is the operand"

# Defects of ours
_TWICE = "an operator on two 0-d lazy arrays is computed twice, so that its warning comes twice"
_READ_ONLY = "np.median of a 0-d lazy array with overwrite_input=True runs on the host, on a read-only array"
_DTYPE_CLASS = "a ufunc given a DType class as dtype= computes as object when it also has out="
_BUFFER_PADDING = "NumPy does not read back the buffer format that it wrote for a 0-d structured array"
_BUFFER_VOID = "NumPy reads the buffer of an array of plain void as a structure without fields"

_HAS_BUFFER = sys.version_info >= (3, 12)  # before, NumPy does not ask Python classes for a buffer


@dataclass(frozen=True)
class Known:
    """Why some tests of one suite fail.

    ``results`` says with which results they do: made lazy too (True), left as they come (False), or both (None).
    """

    suite: str
    reason: str
    tests: tuple[str, ...]
    results: bool | None = None
    when: bool = True


_FUNCTION_BASE = "numpy.lib.tests.test_function_base"
_NUMERIC = "numpy._core.tests.test_numeric"

KNOWN = (
    Known(_FUNCTION_BASE, _C_ARRAY, ("TestBincount::test_gh_28354_array_like",), results=True),
    Known(_FUNCTION_BASE, _DTYPE_CLASS, ("TestLerp::test_linear_interpolation_formula_0d_inputs",)),
    Known(_FUNCTION_BASE, _READ_ONLY, ("TestMedian::test_overwrite_keyword",)),
    Known(_FUNCTION_BASE, _BUFFER_PADDING, ("TestInsert::test_structured_array",), results=True, when=_HAS_BUFFER),
    Known(_NUMERIC, _ITERATOR, (
        "TestBroadcast::test_broadcast_error_kwargs", "TestBroadcast::test_broadcast_in_args",
        "TestBroadcast::test_broadcast_single_arg"), results=True),
    Known(_NUMERIC, _TWICE, ("TestFloatExceptions::test_warnings",), results=True),
    Known(_NUMERIC, _BUFFER_PADDING, (
        "TestFromiter::test_growth_and_complicated_dtypes[0-i,O-data2]",
        "TestFromiter::test_growth_and_complicated_dtypes[1-i,O-data2]"), results=True, when=_HAS_BUFFER),
    Known(_NUMERIC, _BUFFER_VOID, ("TestNonzero::test_count_nonzero_axis_all_dtypes",), results=False,
          when=_HAS_BUFFER),
    Known("numpy.linalg.tests.test_linalg", _C_ARGUMENT, ("test_blas64_geqrf_lwork_smoketest",)),
)


def known(suite: str, results: bool) -> dict[str, str]:
    """The tests of a suite that are known to fail, without the module's name, each with its reason."""
    return {
        test: entry.reason
        for entry in KNOWN
        if entry.suite == suite and entry.when and entry.results in (None, results)
        for test in entry.tests
    }
