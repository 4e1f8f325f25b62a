"""Reductions at the end of recorded work: one kernel computes the elements and reduces them, and no array is written.

The work stays recorded: who needs the elements later has them computed then. So a chain may be computed twice, which
costs less than to write its result and read it again, but no more than twice: what somebody holds and a reduction has
passed through once is computed and kept the next time. What takes a few steps, and reads no more than it would write,
is passed through some times more.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..devices.operations import position
from ..devices.program import Extent, Operand, Program, Reduction
from ..errors.interrupts import holding
from .node import Leaf, Node, lock, native
from .programs import joined, laid_out

if TYPE_CHECKING:
    from ..devices import Device

__all__ = ["kernel_of", "reading", "reduced"]

#: A node of at most so many steps is computed so many times before it is kept.
_FEW, _PASSES = 6, 4


# -- one after the other -------------------------------------------------------------------------

def _plain(name: str) -> Callable[..., Any]:
    return lambda xp, array, work, freedom: getattr(xp, name)(array, axis=1)


def _position(name: str) -> Callable[..., Any]:
    return lambda xp, array, work, freedom: position(xp, name, array, 1)


def _in_work(name: str) -> Callable[..., Any]:
    return lambda xp, array, work, freedom: getattr(xp, name)(array, axis=1, dtype=work)


def _spread(name: str) -> Callable[..., Any]:
    return lambda xp, array, work, freedom: getattr(xp, name)(
        array.astype(work, copy=False), axis=1, ddof=array.shape[1] - freedom)


def _norm(xp: Any, array: Any, work: np.dtype, freedom: float) -> Any:
    array = array.astype(work, copy=False)
    squares = xp.square(array.real) + xp.square(array.imag) if work.kind == "c" else xp.square(array)
    return xp.sqrt(xp.sum(squares, axis=1))


#: Name -> what does it to the middle axis of a device array, with the device's own functions.
ALONE: dict[str, Callable[..., Any]] = {
    **{name: _in_work(name) for name in ("sum", "prod", "mean")},
    **{name: _plain(name) for name in ("min", "max", "any", "all")},
    **{name: _position(name) for name in ("argmin", "argmax")},
    **{name: _spread(name) for name in ("var", "std")},
    "norm": _norm, "count": lambda xp, array, work, freedom: xp.sum(array != 0, axis=1, dtype=np.dtype(np.intp)),
}


def run(device: Device, program: Program, reduction: Reduction, arguments: list[Any], extent: Extent,
        form: tuple[tuple[int, ...], bool], freedom: float, shape: tuple[int, ...]) -> Any:
    """The reduction of a program's only output by the device's own functions, as a C-contiguous array of this shape."""
    array, = program.run(arguments, form, device.xp)
    array = laid_out(device, array, *form, reduction.source)
    array = (array.T if form[1] else array).reshape(tuple(extent))
    result = ALONE[reduction.name](device.xp, array, reduction.work, freedom)
    return result.astype(reduction.result, copy=False).reshape(shape)


def kernel_of(device: Device, program: Program, reduction: Reduction, extent: Extent, arguments: list[Any],
              form: tuple[tuple[int, ...], bool], known: bool = False) -> Callable[..., Any] | None:
    """`Device.reduction`, also of a device that has no kernels."""
    kernel = device.reduction(program, reduction, extent, arguments, form, known)
    if kernel is not None or device.compiles:
        return kernel
    return lambda arguments, freedom, shape, stream: run(
        device, program, reduction, arguments, extent, form, freedom, shape)


# -- in one kernel -------------------------------------------------------------------------------

def reduced(device: Device, source: Node | Leaf, reduction: Reduction, extent: Extent, freedom: float,
            shape: tuple[int, ...]) -> Any:
    """The result as a C-contiguous device array, and its stream; None where the elements have to be computed first.

    Parameters
    ----------
    source : Node or Leaf
        Recorded work, or an array that is computed; "flat" if it is C-contiguous.
    freedom : float
        What a sum is divided by, for a mean or a variance.
    shape : tuple of int
        Of the result, in memory order.
    """
    if type(source) is Leaf:
        array = source.array
        work = reading(array.dtype, source.mode, array.ndim), [array], [source], reduction, extent, freedom, shape
        if not device.spread:
            return launched(device, *work, (array.shape, False))
        with device.on(device.device_of(array)):
            return launched(device, *work, (array.shape, False))
    with holding(lock):
        with source.there():
            return _of_work(device, source, reduction, extent, freedom, shape)


@functools.lru_cache(1024)
def reading(dtype: np.dtype, mode: str, ndim: int) -> Program:
    """The program that only reads an array."""
    return Program((Operand(dtype, mode),), (), (0,), 0 if mode == "flat" else ndim)


class _Chain(NamedTuple):
    """What one kernel that gives a node is made of, as the part in C finds it.

    `nodes`: operands first; `sources`: where the arrays among the `arguments` come from; `form`: (shape, whether in
    Fortran order) that the kernel walks.
    """

    nodes: list[Node]
    program: Program
    arguments: list[Any]
    sources: list[Leaf | Node]
    form: tuple[tuple[int, ...], bool]


def _of_work(device: Device, source: Node, reduction: Reduction, extent: Extent, freedom: float,
             shape: tuple[int, ...]) -> Any:
    if source.array is not None or source.passed and _is_enough(source):
        return None
    chain = _Chain(*native.needed(source))
    if source.array is not None or source.passed and _read_more(chain, source):
        return None
    again = [n for n in chain.nodes if n.passed and n is not source and _held(n) and _is_dear(n, chain)]
    if again:
        for n in again:
            n.compute()
        chain = _Chain(*native.needed(source))
        if source.array is not None:
            return None
    result = launched(device, chain.program, chain.arguments, chain.sources, reduction, extent, freedom, shape,
                       chain.form)
    if result is not None:
        for n in chain.nodes:
            n.passed += 1
    return result


def _held(node: Node) -> bool:
    return node.storage is not None and node.storage() is not None


def _is_dear(node: Node, chain: _Chain) -> bool:
    """Whether to compute a node again, on the way to another of `order`, is worse than to keep it.

    What it reads is among what all of these read: only if that is much, it is looked up.
    """
    return _is_enough(node) or _read_more(chain, node) and _read_more(_Chain(*native.needed(node)), node)


def _is_enough(node: Node) -> bool:
    """Whether it was computed again often enough, or takes many steps."""
    return node.passed >= _PASSES or node.steps > _FEW


def _read_more(chain: _Chain, node: Node) -> bool:
    """Whether to read what these nodes read takes longer than to read the elements of `node`."""
    read = sum({id(s.array): s.array.nbytes for s in chain.sources}.values())
    return read * 8 > node.size * node.dtype.itemsize * 9


def launched(device: Device, program: Program, arguments: list[Any], sources: list[Any], reduction: Reduction,
              extent: Extent, freedom: float, shape: tuple[int, ...], form: tuple[tuple[int, ...], bool]) -> Any:
    kernel = device.reduction(program, reduction, extent, arguments, form)
    if kernel is None and device.compiles:
        return None
    stream = device.stream()
    crossed = joined(device, sources, stream)
    with device.noting:
        if kernel is None:
            result = run(device, program, reduction, arguments, extent, form, freedom, shape)
        else:
            result = kernel(arguments, freedom, shape, stream)
    for other in crossed:
        device.order(stream, other)     # its memory goes back there, not while this stream still reads it
    return result, stream
