"""Recording of arrays that a few numbers describe: ``arange``, ``linspace``, ``full`` and their kin.

A kernel needs no memory for them: it computes each element from its place. The steps are those of
`functions.numerical_ranges`, so that the values are the same to the bit. Each function gives None where it can't be
recorded.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import devices
from ...devices.base import HOLDABLE
from ...devices.program import Step
from ...functions.kinds import NUMBERS
from ...functions.numerical_ranges import PLAIN, Steps, check_device, range_of, spacing_of, steps_of_range
from ...storage import handles, views
from ..node import Node, least_bytes, native
from .loops import cast, named, rule_of
from .memory_order import Form
from .operands import fits
from .ufunc import recorded, sources

__all__ = ["OF_PROTOTYPES", "QUICK", "SOURCES"]

_int64 = np.dtype(np.int64)
_numbers = (int, float, complex, bool, np.generic)


class _Chain:
    """Steps one after the other, from an element's place or from a number on."""

    __slots__ = ("device", "place", "result", "size", "nodes", "node", "possible")

    def __init__(self, shape: tuple[int, ...], fortran: bool = False, size: int | None = None) -> None:
        self.device = devices.current()
        self.place = self.device.number() if self.device.spread else None
        self.result = Form(shape, fortran, None)
        self.size = math.prod(shape) if size is None else size
        self.nodes: list[Node] = []
        self.node: Node | None = None
        self.possible = True

    def step(self, step: Step | None, *operands: Any) -> None:
        """One step more, on the last result and NumPy scalars; the chain is not possible without it."""
        if step is None or not self.possible:
            self.possible = False
            return
        shape, fortran, _ = self.result
        node = self.node
        self.node = node = Node(self.device, step, operands if node is None else (node, *operands), shape, fortran,
                                len(self.nodes) + 1, (), False, self.size)
        node.place = self.place
        self.nodes.append(node)

    def ufunc(self, ufunc: np.ufunc, *numbers: Any) -> None:
        """A ufunc's step."""
        dtype = self.node.step.output if self.node is not None else None
        rule = rule_of((ufunc, *(dtype,) * (1 + len(numbers))))
        self.step(None if rule is None or rule.casts else rule.step, *numbers)

    def replaced(self, place: int, value: Any) -> None:
        """One element is another."""
        dtype = value.dtype
        self.step(named(self.device, "at_place", _replaced, (dtype, dtype, _int64), dtype, True), value,
                  np.int64(place))

    def cast(self, dtype: np.dtype) -> None:
        if self.node is not None and self.node.step.output != dtype:
            self.step(cast(self.node.step.output, dtype))

    def array(self) -> Any:
        """The lazy array, or None."""
        return recorded(self) if self.possible and self.node is not None else None


def _replaced(array: Any, value: Any, place: Any, at: Any) -> Any:
    return devices.current().xp.where(at == place, value, array)


def _worth(n: int, dtype: np.dtype) -> bool:
    """Whether an array is to be recorded, however small."""
    device = devices.current()
    return n > 1 and dtype in HOLDABLE and device.usable() is None and fits(device, n * dtype.itemsize)


def _index(device: Any, dtype: np.dtype) -> Step | None:
    return named(device, "index", lambda at: at.astype(dtype), (), dtype, True)


# -- equal steps -----------------------------------------------------------------------------

#: What the first argument of a function is, in `_native/recording_sources.h`.
COUNT, SHAPE, LIKE = range(3)
#: Functions and dtypes that are kept: a dtype can be given in many ways.
_MOST_SOURCES = 256


def _keep(chain: _Chain, func: Callable[..., Any], dtype: Any, kind: int) -> None:
    """Let the next such call be one of `sourced`: what was recorded is one step, and the same for all shapes."""
    if chain.possible and chain.place is None and len(chain.nodes) == 1 and len(sources) < _MOST_SOURCES:
        node = chain.nodes[0]
        sources[func, dtype] = chain.device, node.step, node.operands, kind


def _chain_of(steps: Steps) -> _Chain:
    chain = _Chain((steps.n,), False, steps.n)
    chain.step(_index(chain.device, steps.kind))
    for ufunc, *numbers in steps.ufuncs:
        chain.ufunc(ufunc, *numbers)
    if steps.replaced is not None:
        chain.replaced(*steps.replaced)
    chain.cast(steps.target)
    return chain


def arange(*args: Any, **kwargs: Any) -> Any:
    if least_bytes() is None:
        return None
    n, head = range_of(*args, **kwargs)
    if not _worth(n, head.dtype):
        return None
    chain = _chain_of(steps_of_range(n, head))
    if head is PLAIN:
        _keep(chain, np.arange, None, COUNT)
    elif (np.arange, None) not in sources and head.dtype == PLAIN.dtype:     # one from another number on is made of it
        _keep(_chain_of(steps_of_range(n, PLAIN)), np.arange, None, COUNT)
    return chain.array()


def linspace(*args: Any, **kwargs: Any) -> Any:
    if least_bytes() is None:
        return None
    steps, step = spacing_of(*args, **kwargs)
    if not _worth(steps.n, steps.target) or steps.kind.kind != "f":
        return None
    array = _chain_of(steps).array()
    retstep = kwargs.get("retstep", args[4] if len(args) > 4 else False)
    return (array, step) if array is not None and retstep else array


# -- one value -------------------------------------------------------------------------------

def _value(value: Any) -> Any:
    return devices.current().without_dimensions(value)


def _full(shape: Any, value: Any, dtype: Any, order: Any, device: Any,
          known: tuple[Callable[..., Any], Any, int] | None = None) -> Any:
    if least_bytes() is None:
        return None
    if device is not None:
        check_device(device)
    shape = tuple(shape) if type(shape) in (tuple, list) else (shape,)
    size = 1
    for n in shape:
        if type(n) is not int or n < 0:
            return None
        size *= n
    if order not in ("C", "F") or not isinstance(value, _numbers):
        return None
    dtype = np.asarray(value).dtype if dtype is None else np.dtype(dtype)
    if not shape or not _worth(size, dtype):
        return None
    one = np.empty((), dtype)
    np.copyto(one, value, casting="unsafe")
    chain = _Chain(shape, order == "F" and len(shape) > 1, size)
    chain.step(named(chain.device, "value", _value, (dtype,), dtype), one[()])
    if known is not None and order == "C":
        _keep(chain, *known)
    return chain.array()


def full(shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", *, device: Any = None) -> Any:
    if handles.is_lazy(fill_value):
        return None
    kind = type(fill_value)
    known = (np.full, kind, SHAPE) if kind in NUMBERS and np.asarray(fill_value).dtype == np.dtype(kind) else None
    return _full(shape, fill_value, dtype, order, device, known if dtype is None else (np.full, dtype, SHAPE))


def zeros(shape: Any, dtype: Any = float, order: Any = "C", *, device: Any = None) -> Any:
    return _full(shape, 0, float if dtype is None else dtype, order, device, (np.zeros, dtype, SHAPE))


def ones(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None) -> Any:
    return _full(shape, 1, float if dtype is None else dtype, order, device, (np.ones, dtype, SHAPE))


def _like(value: Any, func: Any = None) -> Callable[..., Any]:
    def recorder(a: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None, *,
                 device: Any = None) -> Any:
        if not handles.is_lazy(a) or shape is not None or not isinstance(dtype, (type, str, np.dtype, type(None))):
            return None
        meta = handles.meta_of(a)
        if order == "K":
            meta = views.like(meta)
        flags = meta.flags
        if order == "K" and not (flags.c_contiguous or flags.f_contiguous):
            return None
        if order in ("K", "A"):
            order = "C" if flags.c_contiguous or not flags.f_contiguous else "F"
        dtype = meta.dtype if dtype is None else dtype
        return _full(meta.shape, value, dtype, order, device, None if func is None else (func, dtype, LIKE))

    return recorder


def full_like(a: Any, fill_value: Any, *args: Any, **kwargs: Any) -> Any:
    return None if handles.is_lazy(fill_value) else _like(fill_value, np.full_like)(a, *args, **kwargs)


#: NumPy's function -> what records a call of it, of an array whose shape the new one has.
OF_PROTOTYPES: dict[Callable[..., Any], Callable[..., Any]] = {
    np.zeros_like: _like(0, np.zeros_like), np.ones_like: _like(1, np.ones_like), np.full_like: full_like,
}

#: NumPy's function -> what records a call of it.
SOURCES: dict[Callable[..., Any], Callable[..., Any]] = {
    np.arange: arange, np.linspace: linspace, np.full: full, np.zeros: zeros, np.ones: ones,
    **OF_PROTOTYPES,
}

#: Those whose calls `sourced` records, once one was recorded here.
QUICK = frozenset(() if native is None else (
    np.arange, np.empty, np.zeros, np.ones, np.full, np.zeros_like, np.ones_like, np.full_like))
