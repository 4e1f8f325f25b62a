"""Tests of other packages that fail with lazy arguments because they look into ndarrays themselves.

What a suite's own tests, run with lazy arrays in place of ndarrays, are known to fail: end of a test's identifier ->
reason. Each reason is something that no object but an `numpy.ndarray` can be.
"""
from __future__ import annotations

_EXACT_TYPE = "it asks whether type(result) is numpy.ndarray; the type of a lazy result is LazyNdarray"
_VIEW_TYPE = "it views an ndarray as type(result), which must be a subclass of ndarray in C"
_C_OUT = "an ndarray method of NumPy in C takes nothing but an ndarray for out="
_C_ARRAY = "__array__ of the test's class returns the lazy array; in C it must return an ndarray"
_C_ARGUMENT = "a function of NumPy in C, without a protocol, takes nothing but ndarrays"
_ITERATOR = "np.broadcast keeps what NumPy made of its operand, and the test asks whether that is the operand"
_REFERENCES = "it counts references to dtypes that NumPy holds"
_FLAGS = "it counts warnings that C floating-point flags give; the device has its own function"
_IDENTITY = "compiled code returns what NumPy made of the output, and the test asks whether that is the output"
_CYTHON = "an argument of a Cython function is declared as numpy.ndarray"
_NO_WORD = "NumPy leaves out=None out of what it tells us, so that where= without out= cannot be warned of"

_LINALG_CASES = (
    "TestSolve::test_generalized_sq_cases", "TestSolve::test_sq_cases", "TestInv::test_generalized_sq_cases",
    "TestInv::test_sq_cases", "TestEig::test_generalized_sq_cases", "TestEig::test_sq_cases",
    "TestSVD::test_generalized_sq_cases", "TestSVD::test_sq_cases", "TestSVDHermitian::test_generalized_herm_cases",
    "TestSVDHermitian::test_herm_cases", "TestPinv::test_generalized_nonsq_cases",
    "TestPinv::test_generalized_sq_cases", "TestPinv::test_nonsq_cases", "TestPinv::test_sq_cases",
    "TestPinvHermitian::test_generalized_herm_cases", "TestPinvHermitian::test_herm_cases")
_CLIP_OUT = (
    "test_clip_with_out_array_outint32", "test_clip_with_out_simple", "test_clip_with_out_simple2",
    "test_clip_with_out_simple_int32", "test_simple_int32_inout[unsafe]", "test_simple_int32_out",
    "test_simple_int64_out", "test_simple_out", "test_type_cast_10", "test_type_cast_12")

#: Suite -> end of a test's identifier -> reason.
EXCEPTIONS: dict[str, dict[str, str]] = {
    "numpy.lib.tests.test_function_base": {"TestBincount::test_gh_28354_array_like": _C_ARRAY},
    "numpy._core.tests.test_numeric": {
        "TestNonzero::test_return_type": _EXACT_TYPE, "TestRequire::test_ensure_array": _EXACT_TYPE,
        **{f"TestClip::{name}": _C_OUT for name in _CLIP_OUT},
        **{f"TestBroadcast::{name}": _ITERATOR for name in (
            "test_broadcast_error_kwargs", "test_broadcast_in_args", "test_broadcast_single_arg")},
    },
    "numpy.linalg.tests.test_linalg": {
        **dict.fromkeys(_LINALG_CASES, _EXACT_TYPE),
        **{f"TestLstsq::{name}": _VIEW_TYPE for name in (
            "test_nonsq_cases", "test_empty_nonsq_cases", "test_sq_cases")},
        "test_xerbla_override": _C_ARGUMENT, "test_blas64_geqrf_lwork_smoketest": _C_ARGUMENT,
    },
    "numpy.fft.tests.test_pocketfft": {},
    "scipy.signal": {},
    "numpy.lib.tests.test_arraysetops": {
        "TestUnique::test_unique_1d": _EXACT_TYPE, "TestSetOps::test_intersect1d_array_like": _C_ARRAY},
    "numpy.lib.tests.test_shape_base": {"TestKron::test_return_type": _EXACT_TYPE},
    "numpy._core.tests.test_indexing": {
        "TestCApiAccess::test_getitem": _C_ARGUMENT, "TestCApiAccess::test_setitem": _C_ARGUMENT,
        "TestIndexing::test_small_regressions": _REFERENCES},
    "numpy._core.tests.test_ufunc": {
        "TestUfunc::test_array_wrap_array_priority": _EXACT_TYPE, "test_ufunc_no_reference_leak": _REFERENCES,
        "TestUfunc::test_reduceat_and_accumulate_out_dtype_resolution_failure": _C_OUT,
        "TestUfunc::test_where_warns": _NO_WORD,
        **{f"TestUfunc::test_ufunc_at_inner_loops[floor_divide-{t}]": _FLAGS for t in "efd"}},
    "scipy.ndimage": {
        "test_label11_inplace[numpy]": _CYTHON, "test_label_output_typed[numpy]": _CYTHON,
        "test_binary_erosion37[numpy]": _IDENTITY,
        **{f"test_get_output_basic[{t}]": _IDENTITY for t in (
            "None", "complex128", "complex64", "dtype6", "f4", "float32_0", "float32_1", "float")}},
    "numpy.lib.tests.test_stride_tricks": {"test_subclasses": _EXACT_TYPE},
    "scipy.linalg.tests.test_basic": {"TestInv::test_overwrite_a[True]": _IDENTITY},
}
