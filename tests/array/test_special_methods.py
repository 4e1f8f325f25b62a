"""Special methods: Python asks a lazy array, and a lazy scalar, as it asks NumPy's."""
from __future__ import annotations

import collections.abc
import math
import operator
import sys
import time
import typing
import warnings

import numpy as np
import pytest

import lazyarray

HAS_BUFFER = pytest.mark.skipif(sys.version_info < (3, 12), reason="a class in Python has no buffer")

#: What ours have beside NumPy's, on purpose.
OURS = {"__cupy_get_ndarray__", "__cupy_override_elementwise_kernel__", "__cupy_override_reduction_kernel__",
        "__getattr__", "__module__", "__release_buffer__", "__slots__", "__weakref__",
        "__wrapped__", "__firstlineno__", "__static_attributes__", "__arrow_array__", "__dask_tokenize__",
        "__torch_function__",
        "__annotations__"}      # which Python makes for a class that is asked for it: another test may have
if sys.version_info < (3, 12):
    OURS.add("__bytes__")
SPECIAL = {name for kind in (list, float, complex, np.ndarray, np.generic, lazyarray.LazyNdarray, lazyarray.LazyScalar,
                             typing.SupportsRound, typing.SupportsBytes)
           for base in kind.__mro__ for name in vars(base) if name.startswith("__") and name.endswith("__")} | {
    "__enter__", "__exit__", "__aenter__", "__aexit__", "__await__", "__call__", "__missing__", "__mro_entries__",
    "__instancecheck__", "__subclasscheck__", "__fspath__", "__length_hint__", "__next__"}


def outcome(function, x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(x)
        except (AttributeError, TypeError, ValueError, OverflowError) as error:
            return next(k for k in (TypeError, AttributeError, ValueError, OverflowError) if isinstance(error, k))


def enter(x):
    with x:
        pass


@pytest.mark.parametrize("host", [np.arange(3.0), np.arange(4).reshape(2, 2), np.array(7), np.array(2.5 + 0j)])
class TestArrays:
    def test_what_an_ndarray_has_not_a_lazy_array_has_not(self, host):
        x = lazyarray.asarray(host)
        ours = OURS | {"__cuda_array_interface__"} if lazyarray.device().name == "cuda" else OURS
        assert {n for n in SPECIAL if hasattr(x, n) and not hasattr(host, n)} <= ours
        assert {n for n in SPECIAL if hasattr(host, n) and not hasattr(x, n)} == set()

    @pytest.mark.parametrize("function", [
        round, math.floor, math.ceil, math.trunc, bytes, callable,
        pytest.param(lambda x: int.from_bytes(x, "little"), marks=HAS_BUFFER),
        lambda x: isinstance(1, x), lambda x: x(), enter, lambda x: isinstance(x, collections.abc.Reversible),
        lambda x: isinstance(x, typing.SupportsRound), lambda x: isinstance(x, typing.ContextManager)])
    def test_python_asks_both_alike(self, host, function):
        assert outcome(function, lazyarray.asarray(host)) == outcome(function, host)

    def test_reversed(self, host):
        kind = outcome(reversed, host)
        found = outcome(reversed, lazyarray.asarray(host))
        if kind is TypeError:
            assert found is TypeError
        else:
            assert type(found) is reversed and [np.asarray(v).tolist() for v in found] == host[::-1].tolist()


SCALARS = [np.array([0, 1, 3]).astype(dtype) for dtype in ("f8", "f4", "f2", "i8", "u1", "c16", "?")]


@pytest.mark.parametrize("fetched", [False, True])
@pytest.mark.parametrize("host", SCALARS, ids=lambda host: host.dtype.name)
class TestScalars:
    def pair(self, host, fetched):
        s = lazyarray.asarray(host)[2]
        if fetched:
            hash(s)
        return s, host[2]

    def test_attributes_are_those_of_the_dtype(self, host, fetched):
        s, number = self.pair(host, fetched)
        ours = OURS | {"__array_function__", "__array_ufunc__", "__complex__", "__dlpack__", "__dlpack_device__"}
        assert {n for n in SPECIAL if hasattr(s, n) and not hasattr(number, n)} <= ours
        assert {n for n in SPECIAL if hasattr(number, n) and not hasattr(s, n)} == set()

    @pytest.mark.parametrize("function", [
        operator.index, round, lambda s: round(s, 1), math.trunc, math.floor, math.ceil, bytes, range, complex, int,
        float, reversed, lambda s: [1, 2, 3, 4][s], lambda s: "ab" * s,
        pytest.param(lambda s: int.from_bytes(s, "little"), marks=HAS_BUFFER)])
    def test_python_asks_both_alike(self, host, fetched, function):
        s, number = self.pair(host, fetched)
        assert outcome(function, s) == outcome(function, number)

    @pytest.mark.parametrize("index", [
        np.int8(1), 0, (0,), "a", np.array(1), 1.5, slice(None), (), ..., (...,), None, (None, ...), True], ids=repr)
    def test_indexing(self, host, fetched, index):
        def get(s):
            found = s[index]
            return isinstance(found, np.ndarray), found.dtype, found.tolist()

        def error(s):
            try:
                get(s)
            except (IndexError, TypeError) as error:
                return type(error)
        s, number = self.pair(host, fetched)
        assert error(s) == error(number)
        assert error(number) or get(s) == get(number)

    @pytest.mark.parametrize("order", ["nonsense", "C", "f", "K", None, 3, np.array("C")], ids=repr)
    def test_orders_of_copies(self, host, fetched, order):
        s, number = self.pair(host, fetched)
        assert outcome(lambda s: s.copy(order=order), s) == outcome(lambda s: s.copy(order=order), number)

    @pytest.mark.parametrize("shape", [(), (1,)])
    @pytest.mark.parametrize("make", [np.array, lazyarray.asarray])
    @pytest.mark.parametrize("name", ["sum", "max", "mean", "round", "take"])
    def test_out(self, host, fetched, name, make, shape):
        def result(s, out):
            found = getattr(s, name)(*(0,) if name == "take" else (), out=out)
            return isinstance(found, np.ndarray), found.dtype, found.tolist(), out.tolist()
        s, number = self.pair(host, fetched)
        theirs, ours = np.zeros(shape, host.dtype), make(np.zeros(shape, host.dtype))
        expected = outcome(lambda s: result(s, theirs), number)
        assert outcome(lambda s: result(s, ours), s) == expected


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python has words of its own")
def test_a_float_where_c_code_takes_an_integer_or_a_float_says_what_to_pass():
    with pytest.raises(TypeError, match=r"float\(s\)"):
        time.sleep(lazyarray.asarray(np.zeros(3)).sum())
