"""What type checkers see of members that are made from tables."""
from __future__ import annotations

from typing import Any, Literal, Protocol, SupportsIndex, TypeVar, overload

__all__ = ["Reduction"]

_Array = TypeVar("_Array", covariant=True)
_Scalar = TypeVar("_Scalar", covariant=True)
_Out = TypeVar("_Out")
_Axis = SupportsIndex | tuple[SupportsIndex, ...]


class Reduction(Protocol[_Array, _Scalar]):
    """A method such as ``sum``: a scalar of all elements; an array along an axis, or if dimensions are kept."""

    @overload
    def __call__(self, axis: None = None, dtype: Any = None, out: None = None, *, keepdims: Literal[False] = False,
                 **others: Any) -> _Scalar: ...

    @overload
    def __call__(self, axis: _Axis, dtype: Any = None, out: None = None, *, keepdims: bool = False,
                 **others: Any) -> _Array: ...

    @overload
    def __call__(self, axis: _Axis | None = None, dtype: Any = None, out: None = None, *, keepdims: Literal[True],
                 **others: Any) -> _Array: ...

    @overload
    def __call__(self, axis: _Axis | None = None, dtype: Any = None, *, out: _Out, keepdims: bool = False,
                 **others: Any) -> _Out: ...
