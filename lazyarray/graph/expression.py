"""Recorded work as text, such as ``sqrt(x * 2 + 1)``: read from the nodes, without computing anything."""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors.interrupts import holding
from .node import Leaf, Node, lock

if TYPE_CHECKING:
    from ..storage.storage import Storage

__all__ = ["expression"]

#: Step -> (operator, how strongly it binds).
_OPERATORS = {
    "multiply": ("*", 12), "divide": ("/", 12), "true_divide": ("/", 12), "floor_divide": ("//", 12),
    "remainder": ("%", 12), "matmul": ("@", 12), "add": ("+", 11), "subtract": ("-", 11), "left_shift": ("<<", 10),
    "right_shift": (">>", 10), "bitwise_and": ("&", 9), "bitwise_xor": ("^", 8), "bitwise_or": ("|", 7),
    "less": ("<", 6), "less_equal": ("<=", 6), "greater": (">", 6), "greater_equal": (">=", 6), "equal": ("==", 6),
    "not_equal": ("!=", 6),
}
_SIGNS = {"negative": "-", "positive": "+", "invert": "~"}
_SIGN, _ATOM, _LAST = 13, 20, 0
#: Characters of the text of one operand, beyond which it is left out.
_LONGEST = 120


def expression(storage: Storage, name_of: Callable[[Storage, Any], str | None] = lambda *_: None
               ) -> tuple[str, int] | None:
    """The work that a storage waits for as an expression, and the number of its operations; None if it does not wait.

    Parameters
    ----------
    storage : Storage
    name_of : callable, optional
        Gives the name of a device array in a storage, or None: then its dtype and shape are shown, ``float64[10,3]``.

    Returns
    -------
    (str, int) or None
        An operation that is used several times is counted once.
    """
    with holding(lock):      # nothing is computed meanwhile
        node = storage.pending
        if node is None or node.array is not None:
            return None
        text = _Text(name_of)
        return text.of(node)[0], len(text.known)


class _Text:
    def __init__(self, name_of: Callable[[Storage, Any], str | None]) -> None:
        self.name_of = name_of
        self.known: dict[Any, tuple[str, int]] = {}

    def of(self, item: Any) -> tuple[str, int]:
        """The text of an operand, and how strongly its outermost operator binds."""
        if type(item) is Leaf:
            return self.name(item.storage, item.array), _ATOM
        if type(item) is not Node:
            return _number(item)
        if item.array is not None:
            home = None if item.storage is None else item.storage()
            return self.name(home, item.array), _ATOM
        if item not in self.known:
            found = self.of_node(item)
            self.known[item] = found if len(found[0]) <= _LONGEST else ("...", _ATOM)
        return self.known[item]

    def of_node(self, node: Node) -> tuple[str, int]:
        name = node.step.name.removeprefix("own_")
        parts = [self.of(operand) for operand in node.operands]
        texts = [text for text, _ in parts]
        if name in _OPERATORS and len(parts) == 2:
            sign, strength = _OPERATORS[name]
            left, right = parts
            return (f"{_in(left, strength)} {sign} {_in(right, strength + 1)}", strength)
        if name in _SIGNS and len(parts) == 1:
            return _SIGNS[name] + _in(parts[0], _SIGN), _SIGN
        if name == "square":
            return f"{_in(parts[0], _SIGN + 2)} ** 2", _SIGN + 1
        if name == "astype":
            return f"{_in(parts[0], _ATOM)}.astype({node.step.output})", _ATOM
        if name in ("real", "imag"):
            return f"{_in(parts[0], _ATOM)}.{name}", _ATOM
        if name in ("take", "take_rows"):
            return f"{_in(parts[0], _ATOM)}[{', '.join(texts[1:1 + (len(texts) - 1) // 2])}]", _ATOM
        if name == "take_along":
            return f"take_along_axis({', '.join(texts[:2])})", _ATOM
        if name.startswith("search_"):
            return f"searchsorted({', '.join(texts[:2])}{', side=right' if name == 'search_right' else ''})", _ATOM
        if name == "index":
            return f"arange({node.size})", _ATOM
        if name == "value":
            return f"full({node.shape}, {', '.join(texts)})", _ATOM
        if name == "triangle":
            sign, least = node.operands[-2:]
            return f"{'triu' if sign > 0 else 'tril'}({texts[0]}{f', {sign * least}' if least else ''})", _ATOM
        return f"{name}({', '.join(texts)})", _ATOM

    def name(self, storage: Any, array: Any) -> str:
        found = None if storage is None else self.name_of(storage, array)
        return found or f"{array.dtype}[{','.join(map(str, array.shape))}]"


def _in(part: tuple[str, int], strength: int) -> str:
    return part[0] if part[1] >= strength else f"({part[0]})"


def _number(value: Any) -> tuple[str, int]:
    value = value.item() if isinstance(value, np.generic) else value
    text = repr(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        text = str(int(value))      # as it is mostly written
    return text, _LAST if text.startswith("-") else _ATOM
