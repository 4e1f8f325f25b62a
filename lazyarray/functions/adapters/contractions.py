"""Einstein sums as products of two operands after each other, planned once for each text.

The device library's function reads its text anew at each call, which takes 170 us, more than all that it launches for
small arrays. A plan says how the axes of two operands are turned, so that they are stacks of matrices whose product is
what is left. What has more to it is the library's: ellipses, diagonals, axes of length 1 that are broadcast, dtypes
other than those that cuBLAS multiplies, orders that are asked for.
"""
from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from ... import devices

__all__ = ["Contraction", "contracted", "contractions"]


class Contraction(NamedTuple):
    """Two operands become one.

    Axes that neither the other operand nor what comes later has are summed over first. Then the axes of the first are
    turned to those that both have and keep (`stack` of them), its own, and those that both have and lose (`depth`);
    of the second to the stack, the lost ones and its own. The result has the stack, the first's and the second's own.
    """

    summed: tuple[list[int], list[int]]
    turned: tuple[list[int], list[int]]
    stack: int
    depth: int


@functools.lru_cache(512)
def contractions(subscripts: str, ndims: tuple[int, ...]
                 ) -> tuple[list[str], list[Contraction], list[int]] | None:
    """The labels of each operand, the contractions from left to right, and how the axes of the last one are turned;
    None of a text that is the library's, errors included.
    """
    given, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = given.split(",")
    labels = sorted(given.replace(",", ""))
    if not arrow:
        output = "".join([label for label in labels if labels.count(label) == 1])
    if len(terms) < 2 or len(terms) != len(ndims) or not "".join(labels).isalpha() or (
            not set(output).issubset(labels) or len(set(output)) < len(output)
            or any(len(term) != ndim or len(set(term)) < ndim for term, ndim in zip(terms, ndims))):
        return None
    steps, a = [], terms[0]
    for i, b in enumerate(terms[1:], 2):
        kept = set(output).union(*terms[i:])
        gone_of_a, gone_of_b = set(a) - kept - set(b), set(b) - kept - set(a)
        summed = _axes(a, gone_of_a), _axes(b, gone_of_b)
        a, b = _only(a, set(a) - gone_of_a), _only(b, set(b) - gone_of_b)
        stack, depth = _only(a, kept & set(b)), _only(a, set(b) - kept)
        own_of_a, own_of_b = _only(a, set(a) - set(b)), _only(b, set(b) - set(a))
        turned = [a.index(label) for label in stack + own_of_a + depth], [
            b.index(label) for label in stack + depth + own_of_b]
        steps.append(Contraction(summed, turned, len(stack), len(depth)))
        a = stack + own_of_a + own_of_b
    return terms, steps, [a.index(label) for label in output]


def _only(labels: str, chosen: set[str]) -> str:
    return "".join([label for label in labels if label in chosen])


def _axes(labels: str, chosen: set[str]) -> list[int]:
    return [axis for axis, label in enumerate(labels) if label in chosen]


def contracted(xp: Any, subscripts: str, operands: list[Any]) -> Any | None:
    """The sum, by a plan; None where there is none."""
    dtype = operands[0].dtype
    if dtype.char not in "fdFD":
        return None
    plan = contractions(subscripts, tuple([operand.ndim for operand in operands]))
    if plan is None:
        return None
    terms, steps, turned = plan
    lengths: dict[str, int] = {}
    for term, operand in zip(terms, operands):
        if operand.dtype != dtype or not operand.size:
            return None
        for label, length in zip(term, operand.shape):
            if lengths.setdefault(label, length) != length:
                return None
    a = operands[0]
    for step, b in zip(steps, operands[1:]):
        a = _product(xp, step, a, b)
    return a if turned == [*range(a.ndim)] else a.transpose(turned)


def _product(xp: Any, step: Contraction, a: Any, b: Any) -> Any:
    summed, turned, stack, depth = step
    a, b = (one.sum(axis=(*gone,)) if gone else one for one, gone in zip((a, b), summed))
    a, b = (one if axes == [*range(one.ndim)] else one.transpose(axes) for one, axes in zip((a, b), turned))
    own = a.shape[stack:a.ndim - depth], b.shape[stack + depth:]
    if not depth:
        return a.reshape(a.shape + (1,) * len(own[1])) * b.reshape(b.shape[:stack] + (1,) * len(own[0]) + own[1])
    of_stack, lost = a.shape[:stack], math.prod(a.shape[a.ndim - depth:])
    a = a.reshape(*of_stack, math.prod(own[0]), lost)
    b = b.reshape(*of_stack, lost, math.prod(own[1]))
    found = devices.current().product(a, b)
    if found is None:
        found = xp.matmul(a, b)
    return found.reshape(of_stack + own[0] + own[1])
