"""pandas: Series, Index, DataFrame and other functions that take arrays and numbers take lazy ones.

Arrays: pandas recognises its own classes by an attribute ``_typ``. An object with ``"npy_extension"`` there is
converted by its ``to_numpy`` wherever pandas accepts arrays, before any compiled code sees it.

Scalars: compiled code silently takes an object without NumPy's struct for no number: a column of means would become
one of objects. There is no place to register such a number, so the few functions through which pandas asks get
NumPy's.
"""
from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from lazyarray.array.array import LazyNdarray
from lazyarray.array.scalar import LazyScalar
from lazyarray.integrations.compiled import on_ndarrays
from lazyarray.integrations.scalars import opened, opening, put_in_place

#: Module of pandas -> its functions that judge one value, whichever argument that is.
_JUDGES = {
    "pandas._libs.lib": ("is_scalar", "is_integer", "is_float", "is_bool", "is_complex"),
    "pandas._libs.missing": ("checknull",),
    "pandas.core.dtypes.cast": ("infer_dtype_from_scalar", "np_can_hold_element"),
    "pandas.core.indexes.base": ("Index.__contains__", "Index._maybe_cast_indexer"),
}
#: Functions through which what an operation with a lazy operand gave gets into a DataFrame.
_MAKERS = {
    "pandas.core.internals.blocks": ("maybe_coerce_values",),
    "pandas.core.ops.array_ops": ("maybe_prepare_scalar_for_op",),
}
#: Functions that hand a number, or a list of them, to compiled code.
_CONVERTERS = {
    "pandas.core.tools.datetimes": ("to_datetime",),
    "pandas.core.tools.numeric": ("to_numeric",),
    "pandas.core.tools.timedeltas": ("to_timedelta",),
}
_NUMBERS = (int, float, complex, np.number, np.bool_)
#: Functions that get arrays and numbers as they are, and insist on NumPy's own.
_INSISTING = {
    "pandas._libs.missing": ("isnaobj",), "pandas._libs.testing": ("assert_almost_equal",),
    "pandas.core.arrays.masked": ("BaseMaskedArray.__init__",),
    "pandas.core.arrays.numpy_": ("NumpyExtensionArray.__init__",),
}
#: Functions that look for numbers among many objects.
_SEEKERS = {"pandas._libs.lib": ("maybe_convert_objects", "infer_dtype")}


def register(pandas: ModuleType) -> None:
    """Have pandas ask lazy arrays for the ndarray, and see numbers in lazy scalars."""

    def to_numpy(self: LazyNdarray, dtype: Any = None, copy: bool = False, na_value: Any = None) -> np.ndarray:
        """The array on the host, for pandas."""
        return np.array(self, dtype) if copy else np.asarray(self, dtype)

    LazyNdarray._typ = "npy_extension"
    LazyNdarray.to_numpy = to_numpy
    for table, kind in ((_JUDGES, _judging), (_SEEKERS, _seeking), (_MAKERS, _making), (_CONVERTERS, opening),
                        (_INSISTING, on_ndarrays)):
        put_in_place("pandas", table, kind)


def _judging(function: Callable[..., Any]) -> Callable[..., Any]:
    def judge(*args: Any, **kwargs: Any) -> Any:
        for value in args:
            if type(value) is LazyScalar:
                args = (*map(opened, args),)
                break
        return function(*args, **kwargs)

    return judge


def _seeking(function: Callable[..., Any]) -> Callable[..., Any]:
    def seek(values: Any, *args: Any, **kwargs: Any) -> Any:
        found = function(values, *args, **kwargs)
        if (type(values) is np.ndarray and values.dtype == object
                and (found.startswith("mixed") if isinstance(found, str) else found.dtype.kind == "O")
                and _has_lazy(values)):
            values = values.copy()
            values.flat = [opened(value) for value in values.flat]
            return function(values, *args, **kwargs)
        return found

    return seek


def _has_lazy(values: np.ndarray) -> bool:
    """Whether a lazy scalar is the first value that is not a number of Python's or NumPy's, if not a missing one.

    pandas takes the values for objects at the first of another kind, and so need not be asked about those behind it.
    """
    for value in values.flat:
        if type(value) is LazyScalar:
            return True
        if not (value is None or isinstance(value, _NUMBERS)):
            return False
    return False


def _making(function: Callable[..., Any]) -> Callable[..., Any]:
    def make(value: Any, *args: Any, **kwargs: Any) -> Any:
        return function(np.asarray(value) if type(value) is LazyNdarray else opened(value), *args, **kwargs)

    return make
