"""The memory order of results: NumPy's, where the device's functions have their own.

NumPy lays a result out after its operands (``order="K"``), so that what is done to a Fortran array gives one. CuPy's
functions give C order, or the order that they computed in. A program can see the difference: ``ravel("K")`` reads in
memory order, ``view`` of another dtype and typed memoryviews of Cython want the last axis to be contiguous. So results
that are laid out otherwise are copied, and ufuncs write into memory that is laid out as NumPy would.

`RULES` says for each function after what its result is laid out:

- "all": its array arguments together, as for a ufunc.
- "copied": its first argument, as a copy of that.
- "packed": in Fortran order if its first argument is in that and no other, else in C order.
- "rounded": as "packed" if there are decimals and no complex numbers, else as "all"; whole numbers as "copied", if
  there is nothing to round.
- "reduced": its first argument without the axes that are reduced.
- "C": nothing; it is in C order.

Other functions return what the device gives them, or see to it themselves (`joined` is for those that concatenate).
"""
from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..storage import views

if TYPE_CHECKING:
    from ..devices import Device


def _named(names: str, home: Any = np) -> list[Callable[..., Any]]:
    return [getattr(home, name) for name in names.split() if hasattr(home, name)]


RULES: dict[Callable[..., Any], str] = {
    **dict.fromkeys(_named(
        "where clip cumsum cumprod cumulative_sum cumulative_prod i0"), "all"),
    **dict.fromkeys([np.sort, np.partition, *_named(
        "fft ifft rfft irfft hfft ihfft fft2 ifft2 fftn ifftn rfft2 irfft2 rfftn irfftn", np.fft)], "copied"),
    **dict.fromkeys(_named("packbits unpackbits"), "packed"), **dict.fromkeys(_named("round around"), "rounded"),
    **dict.fromkeys(_named(
        "sum prod max min amax amin all any mean std var nanmax nanmin median count_nonzero"), "reduced"),
    **dict.fromkeys(_named("argsort argpartition lexsort"), "C"),
}


def order_of(arrays: Sequence[Any]) -> tuple[int, ...] | None:
    """The axes of a result from the outermost to the innermost, as NumPy orders them after these arrays.

    The arrays are anything with a shape and strides. None: C order.
    """
    if all(_in_order(a) for a in arrays):
        return None
    if all(a.shape == arrays[0].shape and a.flags.f_contiguous for a in arrays):
        return tuple(range(arrays[0].ndim - 1, -1, -1))     # also where axes of length 1 would leave it open
    # NumPy itself, on arrays of the same strides with no more than two elements along an axis, of which none is read.
    small = [views.meta(tuple([min(n, 2) for n in a.shape]), np.int8, (*map(abs, a.strides),)) for a in arrays]
    kinds = [["readonly"]] * len(small) + [["writeonly", "allocate", "no_subtype"]]
    made = np.nditer([*small, None], ["zerosize_ok"], kinds, op_dtypes=[np.int8] * len(kinds)).operands[-1]
    return _unless_in_order(views.by_strides(made))


def order_of_contraction(terms: Sequence[str], output: str, arrays: Sequence[Any]) -> tuple[int, ...] | None:
    """The same of ``np.einsum(",".join(terms) + "->" + output, *arrays)``."""
    return _order_of_contraction(tuple(terms), output, tuple([
        (tuple([min(n, 2) for n in a.shape]), tuple([abs(n) for n in a.strides])) for a in arrays]))


@functools.lru_cache(1024)
def _order_of_contraction(terms: tuple[str, ...], output: str, forms: tuple[tuple[Any, Any], ...]
                          ) -> tuple[int, ...] | None:
    """NumPy's iterator, as ``np.einsum`` makes it, over arrays with no more than two elements along an axis."""
    labels = output + "".join(sorted(set("".join(terms)) - set(output)))
    axes = [[term.find(label) for label in labels] for term in terms]
    axes.append([i if i < len(output) else -1 for i in range(len(labels))])
    small = [views.meta(shape, np.int8, strides) for shape, strides in forms]
    kinds = [["readonly"]] * len(small) + [["readwrite", "allocate", "no_broadcast", "no_subtype"]]
    made = np.nditer([*small, None], ["zerosize_ok", "reduce_ok", "buffered", "delay_bufalloc", "external_loop"], kinds,
                     op_axes=axes, op_dtypes=[np.int8] * len(kinds)).operands[-1]
    return _unless_in_order(views.by_strides(made))


def order_of_sums(array: Any, axis: int) -> tuple[int, ...] | None:
    """The same of ``np.add.reduceat(array, ..., axis)``."""
    return None if array.ndim < 2 else _order_of_sums(
        tuple([min(n, 2) for n in array.shape]), tuple([abs(n) for n in array.strides]), axis)


@functools.lru_cache(1024)
def _order_of_sums(shape: tuple[int, ...], strides: tuple[int, ...], axis: int) -> tuple[int, ...] | None:
    """NumPy's iterator, which is told nothing of that axis of the array."""
    axes = list(range(len(shape)))
    one = views.meta(tuple([1 if a == axis else n for a, n in enumerate(shape)]), np.int8, strides)
    made = np.nditer([one, None], ["zerosize_ok"], [["readonly"], ["writeonly", "allocate", "no_subtype"]],
                     op_axes=[[-1 if a == axis else a for a in axes], axes], op_dtypes=[np.int8] * 2,
                     itershape=shape).operands[-1]
    return _unless_in_order(views.by_strides(made))


def order_of_indexed(array: np.ndarray, index: tuple[Any, ...]) -> tuple[int, ...] | None:
    """The same of ``array[index]``, where the index has arrays; they may be anything with a shape and a dtype.

    The axes that the arrays index lie outermost, as the arrays do. The others lie as they do in `array`.
    """
    strides = list(map(abs, array.strides))
    if len(index) == 1 and all(map(operator.ge, strides, strides[1:])) and _turned(index[0]) is None:
        return None
    return _order_of_indexed(views.by_strides(array), tuple([min(n, 2) for n in array.shape]), tuple([
        (a.dtype == bool, tuple([min(n, 2) for n in a.shape]), _turned(a)) if hasattr(a, "dtype") else
        a if a is None or a is Ellipsis else type(a) is slice for a in index]))


def _turned(index: Any) -> tuple[int, ...] | None:
    """The axes of an array of positions, the outermost in memory first; None if that is C order, or it has one axis."""
    if getattr(index, "ndim", 0) < 2 or index.dtype == bool or not hasattr(index, "strides"):
        return None
    axes = views.by_strides(index)
    return None if all(map(operator.lt, axes, axes[1:])) else axes


@functools.lru_cache(1024)
def _order_of_indexed(axes: tuple[int, ...], shape: tuple[int, ...], index: tuple[Any, ...]) -> tuple[int, ...] | None:
    """NumPy itself, on an array with no more than two elements along an axis."""
    small = np.zeros([shape[i] for i in axes], np.int8).transpose(np.argsort(axes))
    found = small[tuple([np.ones(a[1], bool) if type(a) is tuple and a[0] else _zeros(*a[1:])
                         if type(a) is tuple else slice(None) if a is True else 0 if a is False else a for a in index])]
    return _unless_in_order(views.by_strides(found))


def _zeros(shape: tuple[int, ...], axes: tuple[int, ...] | None) -> np.ndarray:
    """Positions whose axes lie in memory in this order."""
    if axes is None:
        return np.zeros(shape, np.intp)
    return np.zeros([shape[i] for i in axes], np.intp).transpose(np.argsort(axes))


def _in_order(array: Any) -> bool:
    return array.ndim < 2 or array.flags.c_contiguous


def _dense(array: Any) -> bool:
    """`_in_order` of a device array, whose flags are an object to be made."""
    return array.ndim < 2 or array._c_contiguous


def empty(device: Device, shape: tuple[int, ...], dtype: np.dtype, order: tuple[int, ...] | None) -> Any:
    """A new device array whose axes lie in memory in this order."""
    if order is None:
        return device.empty(shape, dtype)
    return back(device.empty(tuple([shape[i] for i in order]), dtype), order)


def along(array: Any, order: tuple[int, ...]) -> Any:
    """A view of an operand with the axes of the result in this order, the outermost first."""
    missing = len(order) - array.ndim
    if array.ndim == 0:
        return array
    return (array[(None,) * missing] if missing else array).transpose(*order)


def back(array: Any, order: tuple[int, ...]) -> Any:
    """A view of what was computed `along` this order, with its axes as they were."""
    return array.transpose(*list(map(int, np.argsort(order))))


def laid_out(device: Device, array: Any, order: tuple[int, ...] | None) -> Any:
    """`array`, or a copy of it if its axes do not lie in memory in this order."""
    if order is None:
        if _dense(array):
            return array
    elif array.transpose(*order).flags.c_contiguous:
        return array
    target = empty(device, array.shape, array.dtype, order)
    device.assign(target, array)
    return target


def after(device: Device, rule: str, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a function, laid out by its rule after the arguments that the device's function was given."""
    if not isinstance(result, device.array_type) or result.ndim < 2:
        return result
    if rule == "C":
        return laid_out(device, result, None)
    arrays = [a for a in (*args, *kwargs.values()) if isinstance(a, device.array_type)]
    if any(result is a for a in arrays):
        return result
    if all(map(_dense, arrays)):
        return laid_out(device, result, None)
    order: tuple[int, ...] | None
    if rule == "rounded":
        decimals, kind = args[1] if len(args) > 1 else kwargs.get("decimals", 0), arrays[0].dtype.kind
        if kind in "iu" and decimals >= 0:      # nothing is rounded
            rule = "copied"
        else:
            rule = "packed" if decimals and kind != "c" else "all"
    if rule == "packed":
        order = tuple(range(result.ndim))[::-1] if arrays[0].flags.fnc else None
    elif rule == "copied":
        order = views.by_strides(arrays[0])
    elif rule == "all":
        order = order_of(arrays)
    else:
        order = _remaining(arrays[0], result.ndim, args[1] if len(args) > 1 else kwargs.get("axis"))
    return laid_out(device, result, order) if order is None or len(order) == result.ndim else result


def joined(device: Device, result: Any, arrays: Sequence[Any]) -> Any:
    """What arrays of as many dimensions were concatenated to, laid out after them.

    NumPy sorts the axes by the strides of all arrays. C order wins where they disagree, and where axes of length 1
    leave it open.
    """
    if result.ndim < 2 or all(map(_dense, arrays)) and _dense(result):
        return result
    order: list[int] = []
    for axis in range(result.ndim):
        place = len(order)
        for i in range(len(order) - 1, -1, -1):
            known = [(abs(a.strides[axis]), abs(a.strides[order[i]])) for a in arrays
                     if a.shape[axis] != 1 and a.shape[order[i]] != 1]
            if not known:
                continue
            if any(own <= other for own, other in known):
                break
            place = i
        order.insert(place, axis)
    return laid_out(device, result, _unless_in_order(tuple(order)))


def _unless_in_order(order: tuple[int, ...]) -> tuple[int, ...] | None:
    return None if order == tuple(range(len(order))) else order


def _remaining(array: Any, ndim: int, axis: Any) -> tuple[int, ...] | None:
    """The order of the axes that a reduction leaves."""
    order = order_of([array])
    if order is None or array.ndim == ndim:
        return order
    gone = np.lib.array_utils.normalize_axis_tuple(axis, array.ndim) if axis is not None else ()
    kept = [i for i in range(array.ndim) if i not in gone]
    return tuple([kept.index(i) for i in order if i in kept])
