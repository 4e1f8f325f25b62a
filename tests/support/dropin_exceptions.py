"""Tests of other packages that fail with lazy arrays in place of ndarrays, and pass with copies in their place.

`test_suites.py` runs the suites and holds this list to what it finds: a test that is not listed must pass, and one
that is listed must fail, so that an entry goes when its reason does.
"""
from __future__ import annotations

from dataclasses import dataclass

# Something that no object but an ndarray can be, or a question that no other can answer
_C_ARRAY = "__array__ of the test's class returns the lazy array; in C it must return an ndarray"
_C_ARGUMENT = "a function of NumPy in C, without a protocol, takes nothing but ndarrays"
_ITERATOR = "np.broadcast keeps what NumPy made of its operand, and the test asks whether that is the operand"

_ALIAS = "np.array and np.asarray return an ndarray over the lazy array's memory; the test asks for the array itself"
_ELEMENT = "NumPy in C asks an array within a list, if it is no ndarray, for its float, its int or its length"
_OWNER = "the test asks which object the memory is of, or how many refer to it: a lazy array is not that object"
_BESIDE = "the buffer beside a pickle is a copy: what is made of it is another lazy array, with memory of its own"
_SUBCLASS = "Python asks an instance of a subclass of the left operand's class first, and a proxy's class has none"
_ONE_OBJECT = "NumPy has one object for each truth value, and a lazy one is another"
_CONTIGUITY = "a class's __buffer__ gives a memoryview, which knows one set of strides where NumPy has two"
_SCALAR = "NumPy takes the buffer of what is no scalar of its own as memory that needs no copy"
_DESCRIPTION = "NumPy would believe __array_interface__, which has no room for padding: there is none"
_NOWHERE = "an array without elements has no address"

_LONG = "long and long long are equal dtypes of the same size: what is kept for one serves the other"
_WORDS = "x ** 2 is a power, and the error speaks of that, not of a square"
_SORTED = "the order beside a partition's place is not defined: the device sorts"
_WITHOUT_LENGTH = "NumPy's copies of strings without a length have a length of 1"

_ELLIPSIS = "NumPy does not tell __array_ufunc__ of out=..., which asks for an array where a scalar would be returned"


@dataclass(frozen=True)
class Known:
    """Why some tests of one suite fail.

    ``results`` says with which results they do: made lazy too (True), left as they come (False), or both (None).
    """

    suite: str
    reason: str
    tests: tuple[str, ...]
    results: bool | None = None


_MULTIARRAY = "numpy._core.tests.test_multiarray"
_FUNCTION_BASE = "numpy.lib.tests.test_function_base"
_NUMERIC = "numpy._core.tests.test_numeric"

KNOWN = (
    Known(_FUNCTION_BASE, _C_ARRAY, ("TestBincount::test_gh_28354_array_like",), results=True),
    Known(_FUNCTION_BASE, _ELLIPSIS, ("TestLerp::test_linear_interpolation_formula_0d_inputs",)),
    Known(_NUMERIC, _ITERATOR, (
        "TestBroadcast::test_broadcast_error_kwargs", "TestBroadcast::test_broadcast_in_args",
        "TestBroadcast::test_broadcast_single_arg"), results=True),
    Known(_MULTIARRAY, _ALIAS, (
        "TestArrayConstruction::test_array_copy_false", "TestArrayConstruction::test_array_copy_if_needed")),
    Known(_MULTIARRAY, _ALIAS, tuple(f"TestArrayCreationCopyArgument::test_order_mismatch[{case}]" for case in (
        "C-C-arr0", "C-C-arr1", "C-F-arr0", "C-None-arr0", "F-C-arr0", "F-F-arr0", "F-F-arr1", "F-None-arr0",
        "A-C-arr0", "A-C-arr1", "A-F-arr0", "A-F-arr1", "A-None-arr0", "A-None-arr1",
        "K-C-arr0", "K-C-arr1", "K-F-arr0", "K-F-arr1", "K-None-arr0", "K-None-arr1")), results=False),
    Known(_MULTIARRAY, _ELEMENT, (
        "TestAssignment::test_unicode_assignment", "TestAssignment::test_longdouble_assignment",
        "TestCreation::test_structured_void_promotion[arr]")),
    Known(_MULTIARRAY, _C_ARGUMENT, (
        "TestMethods::test_round", "TestMethods::test_dot", "TestMethods::test_conjugate_out"), results=False),
    Known(_MULTIARRAY, _C_ARGUMENT, (
        "TestAsCArray::test_1darray", "TestAsCArray::test_2darray", "TestAsCArray::test_3darray",
        "TestMethods::test_argsort_searchsorted_c_api_compare_error",
        *(f"TestNeighborhoodIter::test_{name}[{kind}]" for name in ("simple2d", "mirror2d", "simple", "mirror",
                                                                   "circular") for kind in ("float", "object")),
        *(f"TestStackedNeighborhoodIter::test_simple_{name}" for name in ("const", "mirror", "circular",
                                                                         "strict_within")),
        "TestWritebackIfCopy::test_view_assign", "TestWritebackIfCopy::test_dealloc_warning",
        "TestWritebackIfCopy::test_view_discard_refcount"), results=True),
    Known(_MULTIARRAY, _SORTED, ("TestMethods::test_partition",), results=False),
    Known(_MULTIARRAY, _OWNER, (
        "TestFlags::test_writeable_pickle", "TestStructured::test_base_attr", "TestResize::test_check_reference",
        "TestResize::test_check_reference_2", "TestCTypes::test_ctypes_as_parameter_holds_reference"), results=True),
    Known(_MULTIARRAY, _BESIDE, ("TestZeroSizeFlexible::test_pickle_with_buffercallback",), results=True),
    Known(_MULTIARRAY, _WITHOUT_LENGTH, ("TestZeroSizeFlexible::test_pickle",), results=True),
    Known(_MULTIARRAY, _ONE_OBJECT, ("TestBool::test_test_interning",), results=True),
    Known(_MULTIARRAY, _SUBCLASS, ("TestBinop::test_ufunc_binop_interaction",), results=True),
    Known(_MULTIARRAY, _LONG, ("TestMatmul::test_result_types", "TestMatmulOperator::test_result_types"),
          results=True),
    Known(_MULTIARRAY, _WORDS, ("TestBinop::test_pow_calls_square_structured_dtype",), results=True),
    Known(_MULTIARRAY, _CONTIGUITY, ("TestNewBufferProtocol::test_relaxed_strides",), results=True),
    Known(_MULTIARRAY, _SCALAR, ("TestArrayCreationCopyArgument::test_scalars",), results=True),
    Known(_MULTIARRAY, _DESCRIPTION, ("test_array_interface_itemsize",), results=True),
    Known(_MULTIARRAY, _NOWHERE, ("TestAlignment::test_various_alignments",), results=True),
    Known("numpy.linalg.tests.test_linalg", _C_ARGUMENT, ("test_blas64_geqrf_lwork_smoketest",)),
)


#: Suite -> words in the names of tests that are not run at all: by the first two the process ends, since a test
#: extension in C reads the struct of what it is given unseen; the third makes some 100,000 calls.
LEFT_OUT = {
    "numpy._core.tests.test_multiarray": ("incref_elide", "count_nonzero_all"),
    # It has the arguments copied that reach far beyond their memory, and then written back there.
    "scipy.interpolate.tests.test_fitpack": ("test_overflow",),
}


def known(suite: str, results: bool) -> dict[str, str]:
    """The tests of a suite that are known to fail, without the module's name, each with its reason."""
    return {
        test: entry.reason
        for entry in KNOWN
        if entry.suite == suite and entry.results in (None, results)
        for test in entry.tests
    }
