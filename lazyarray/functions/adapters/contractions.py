"""Einstein sums as products of two operands after each other, planned once for each string of subscripts.

The device library's function reads its subscripts anew at each call, which takes 170 us, more than all that it launches
for small arrays. A plan says how the axes of two operands are turned, so that they are stacks of matrices whose product
is what is left. The library's own function does the rest: ellipses, diagonals, axes of length 1 that are broadcast,
dtypes other than those that cuBLAS multiplies.
"""
from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from ... import devices
from .. import memory_order

__all__ = ["Contraction", "contracted", "contractions", "labels_of"]


class Contraction(NamedTuple):
    """Two operands become one.

    `summed`: the axes of each that are summed over first, because neither the other one nor what comes later has them;
    `labels` of what is left of each. Of these both have and keep the `stack`, and both lose the `depth`; each keeps its
    `own`.
    """

    summed: tuple[list[int], list[int]]
    labels: tuple[str, str]
    stack: str
    own: tuple[str, str]
    depth: str


#: Operands that NumPy takes at most, in all of its releases.
_MOST = 31


@functools.lru_cache(512)
def labels_of(subscripts: str, ndims: tuple[int, ...]) -> tuple[list[str], str] | None:
    """The labels of each operand and of the result, digits for the axes of an ellipsis; None of subscripts that are the
    library's: errors, diagonals, and ellipses of several lengths.
    """
    given, arrow, output = [part.replace(" ", "") for part in subscripts.partition("->")]
    terms, dots = given.split(","), given.count("...")
    named = (given + output).replace("...", "").replace(",", "")
    if len(terms) != len(ndims) or not named.isascii() or not (named.isalpha() or dots and not named) or (
            subscripts.count("...") != dots + output.count("...") or arrow and (dots > 0) != ("..." in output)):
        return None
    if not arrow:
        output = "..." * (dots > 0) + "".join(sorted(label for label in set(named) if named.count(label) == 1))
    wide = {ndim - len(term.replace("...", "")) for term, ndim in zip(terms, ndims) if "..." in term} or {0}
    axes = "".join(map(str, range(10)))[:max(wide)] if len(wide) == 1 and 0 <= min(wide) <= 10 else None
    if axes is None:
        return None
    terms, output = [term.replace("...", axes) for term in terms], output.replace("...", axes)
    if any(len(term) != ndim or len(set(term)) < ndim for term, ndim in zip(terms, ndims)) or (
            len(set(output)) < len(output) or not set(output).issubset("".join(terms))):
        return None
    return terms, output


@functools.lru_cache(512)
def contractions(subscripts: str, ndims: tuple[int, ...]) -> tuple[list[str], str, list[Contraction]] | None:
    """The labels of each operand and of the result, and the contractions from left to right; None of subscripts that
    are the library's, errors included.
    """
    found = labels_of(subscripts, ndims)
    if found is None or not 2 <= len(ndims) <= _MOST:
        return None
    terms, output = found
    steps, a = [], terms[0]
    for i, b in enumerate(terms[1:], 2):
        kept = set(output).union(*terms[i:])
        gone_of_a, gone_of_b = set(a) - kept - set(b), set(b) - kept - set(a)
        summed = _axes(a, gone_of_a), _axes(b, gone_of_b)
        a, b = _only(a, set(a) - gone_of_a), _only(b, set(b) - gone_of_b)
        stack, depth = _only(a, kept & set(b)), _only(a, set(b) - kept)
        own = _only(a, set(a) - set(b)), _only(b, set(b) - set(a))
        steps.append(Contraction(summed, (a, b), stack, own, depth))
        a = stack + own[0] + own[1]
    return terms, output, steps


def _only(labels: str, chosen: set[str]) -> str:
    return "".join([label for label in labels if label in chosen])


def _axes(labels: str, chosen: set[str]) -> list[int]:
    return [axis for axis, label in enumerate(labels) if label in chosen]


def contracted(xp: Any, subscripts: str, operands: list[Any], mixed: bool = False) -> Any | None:
    """The sum by a plan, in NumPy's memory order; None where there is none. `mixed`: of several dtypes, too."""
    dtypes = {operand.dtype for operand in operands}
    dtype = np.result_type(*dtypes) if mixed else operands[0].dtype
    if dtype.char not in "fdFD" or not mixed and len(dtypes) > 1:
        return None
    plan = contractions(subscripts, tuple([operand.ndim for operand in operands]))
    if plan is None:
        return None
    terms, output, steps = plan
    lengths: dict[str, int] = {}
    for term, operand in zip(terms, operands):
        if not operand.size:
            return None
        for label, length in zip(term, operand.shape):
            if lengths.setdefault(label, length) != length:
                return None
    order = memory_order.order_of_contraction(terms, output, operands)
    outermost = output if order is None else "".join([output[i] for i in order])
    operands = [operand.astype(dtype, copy=False) for operand in operands]
    a = operands[0]
    with np.errstate(all="ignore"):     # as in NumPy's own sums, should the device be simulated
        for step, b in zip(steps, operands[1:]):
            a, labels = _product(xp, step, a, b, outermost if step is steps[-1] else "")
    a = memory_order.laid_out(devices.current(), _turned(a, labels, output), order)
    if 1 in a.shape:        # along which turning has left any stride
        a = _turned(a, output, outermost)
        a = _turned(a.reshape(-1).reshape(a.shape), outermost, output)
    return a


def _turned(a: Any, labels: str, wanted: str) -> Any:
    return a if labels == wanted else a.transpose([labels.index(label) for label in wanted])


def _product(xp: Any, step: Contraction, a: Any, b: Any, wanted: str) -> tuple[Any, str]:
    """What two operands become, and its labels; in the order that is `wanted`, if that takes no copy or fewer."""
    summed, (first, second), stack, own, depth = step
    a, b = (one.sum(axis=(*gone,)) if gone else one for one, gone in zip((a, b), summed))
    labels = stack + own[0] + own[1]
    if not depth:
        labels = wanted or labels
        a, b = (_turned(one, have, _only(labels, set(have))).reshape(
            [one.shape[have.index(label)] if label in have else 1 for label in labels])
            for one, have in ((a, first), (b, second)))
        return a * b, labels
    parts = ""
    if wanted != labels and wanted == stack + own[1] + own[0]:      # as it is wanted, if the operands are exchanged
        a, b, first, second, own = b, a, second, first, own[::-1]
    elif wanted != labels and (found := _parts_of(wanted, stack, own)) and math.prod(
            [b.shape[second.index(label)] for label in found]) <= _MOST_PARTS:
        parts = found
    rest = own[1] if not parts else wanted[len(stack + parts + own[0]):]
    a, b = _turned(a, first, stack + own[0] + depth), _turned(b, second, stack + parts + depth + rest)
    count, each = len(stack), len(stack) + len(parts)
    lost = math.prod(b.shape[each:each + len(depth)])
    shape = b.shape[:each] + a.shape[count:count + len(own[0])] + b.shape[each + len(depth):]
    a = a.reshape(*a.shape[:count], *[1] * len(parts), -1, lost)
    b = b.reshape(*b.shape[:each], lost, -1)
    product = devices.current().product(a, b)
    if product is None:
        product = xp.matmul(a, b)
    return product.reshape(shape), stack + parts + own[0] + rest


#: Products up to which the parts of an operand are multiplied one by one, where their product would have to be copied.
#: Of 65,536 complex numbers, 128 take 10.6 us of the device, where one product and two copies take 9.9, and 2,048 take
#: 34 (H100, 2026-11-29; the limit between was not varied).
_MOST_PARTS = 512


def _parts_of(wanted: str, stack: str, own: tuple[str, str]) -> str:
    """What labels of the second operand lie in front of those of the first one, and the others behind them, in the
    result that is wanted; none if that is otherwise.
    """
    if not wanted.startswith(stack) or not own[0]:
        return ""
    front, behind = wanted[len(stack):].partition(own[0])[::2]
    return front if front and set(front + behind) == set(own[1]) else ""
