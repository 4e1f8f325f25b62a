"""polars: its constructors and expressions take lazy arrays and scalars.

Before it checks whether an object is an instance of `numpy.ndarray`, polars looks for ``numpy.`` in the names of its
class and of that class's bases. `NDArrayOperatorsMixin` has that name, and adds nothing that lazy arrays do not define.

polars remembers by the class of a number how to read it, from the first that it sees: lazy integers after a lazy float
would become floats. So it gets NumPy's scalars.
"""
from __future__ import annotations

from types import ModuleType

from numpy.lib.mixins import NDArrayOperatorsMixin

from lazyarray.array.array import LazyNdarray
from lazyarray.integrations.scalars import opening, put_in_place

#: Module of polars -> the functions through which values get into it.
_ENTRIES = {
    "polars._utils.construction.series": ("sequence_to_pyseries",),
    "polars._utils.construction.dataframe": ("dict_to_pydf", "sequence_to_pydf"),
    "polars.convert.general": ("from_dicts",),
    "polars.functions.lit": ("lit",),
}


def register(polars: ModuleType) -> None:
    """Have polars ask lazy arrays whether they are NumPy's, and see numbers in lazy scalars."""
    LazyNdarray.__bases__ += (NDArrayOperatorsMixin,)
    put_in_place("polars", _ENTRIES, opening)
