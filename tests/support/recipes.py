"""Recipes: argument combinations for every function that NumPy lets others override.

The grammar
-----------
A recipe is one line of Python: the arguments of one call, written as they would be in a program.
``np.sum: "x, axis=0, out=orow"`` calls ``np.sum(x, axis=0, out=orow)``.  The names are operands
(operands.py): ``x`` is a 3 by 4 array of the dtype and layout under test, ``hx`` an ndarray and ``lx`` a list
of the same values, ``a([1, 2])`` makes an array, ``h([1, 2])`` an ndarray, ``dt`` is the dtype.  Each recipe
runs first on ndarrays: what NumPy does, an error included, is what is expected.

A line that ends in ``# host: reason`` may be answered by NumPy on the host although the function has a
device version.  Without the mark that is a failure.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import recipes_host
from parity import NAMES, Case, call_case
from recipes_host import HOST, UNSET
from recipes_linalg import COMPARE, FFT, LINALG, OTHERS, SHIFTS
from recipes_math import ELEMENTWISE, EXTREMES, REDUCTIONS
from recipes_shapes import SHAPES

NAMES.update(recipes_host.NAMES)

#: kind of tolerance -> the tables of that kind (parity.py says what each kind allows)
TABLES: dict[str, tuple[dict[Callable, str], ...]] = {
    "exact": (SHAPES, OTHERS, SHIFTS, HOST),
    "extreme": (EXTREMES,),
    "elementwise": (ELEMENTWISE,),
    "reduction": (REDUCTIONS,),
    "fft": (FFT,),
    "linalg": (LINALG,),
    "unset": (UNSET,),
}

#: function -> (its recipes, kind of tolerance)
RECIPES: dict[Callable, tuple[tuple[str, ...], str]] = {}
for _kind, _tables in TABLES.items():
    for _table in _tables:
        for _func, _lines in _table.items():
            if _func in RECIPES:
                raise ValueError(f"{_func.__qualname__} has recipes in two tables")
            RECIPES[_func] = (tuple(line.strip() for line in _lines.splitlines() if line.strip()), _kind)

#: How many small arrays a function makes on the host for the device: edges, positions, values given as numbers.
PARAMETERS: dict[Callable, int] = {
    np.histogram: 1,
    np.histogram_bin_edges: 1,
    np.histogram2d: 2,
    np.histogramdd: 3,
    np.insert: 1,
    np.delete: 1,
    np.repeat: 1,
    np.roots: 1,
}

#: Functions whose results on a vector are ndarrays: NumPy asks the vector's elements, not the vector, who overrides
#: them, and the elements of a vector that is iterated over are NumPy's own scalars.
ASK_THE_ELEMENTS = frozenset({np.poly, np.roots})


def name_of(func: Callable) -> str:
    """The public dotted name of a function."""
    module = func.__module__.replace("numpy.lib.recfunctions", "rf").replace("numpy.polynomial.polynomial", "npp")
    return f"{module.replace('numpy', 'np', 1)}.{func.__name__}"


def cases_of(func: Callable) -> list[Case]:
    """The cases of one function."""
    lines, kind = RECIPES[func]
    settings = {"kind": kind, "compare": COMPARE.get(func), "parameters": PARAMETERS.get(func, 0),
                "lazy": func not in ASK_THE_ELEMENTS}
    return [call_case(name_of(func), func, line, **settings) for line in lines]
