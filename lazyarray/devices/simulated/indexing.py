"""Indexing on the simulated device, with CuPy's differences from NumPy.

An integer index gives a 0-d view.  Integer arrays that point out of range wrap around.  Where an assignment names an
element twice, which value stays is undefined: here it is the first one, because NumPy's rule is the last.
"""
from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .execution import SimulatedArrayBase, launch, wrap_new
from .hardware import DeviceError


def normalised(index: Any) -> tuple[tuple[Any, ...], bool]:
    """The index as a tuple with an ellipsis, host arrays and lists in it uploaded, and whether any arrays are in it."""
    if type(index) is int or type(index) is slice:
        return (index, Ellipsis), False
    items = list(index) if isinstance(index, tuple) else [index]
    arrays = ellipsis = False
    for i, item in enumerate(items):
        kind = type(item)
        if item is None or kind is slice or kind is int:
            continue
        if item is Ellipsis:
            ellipsis = True
        elif isinstance(item, SimulatedArrayBase):
            arrays = True
        elif np.isscalar(item) and not isinstance(item, (bool, np.bool_)):
            items[i] = int(item)  # type: ignore[arg-type]  # CuPy truncates a float here.
        else:
            array = np.asarray(item)
            if isinstance(item, (list, tuple)) and not array.size:
                array = array.astype(np.int32)
            if array.dtype.kind not in "biu":
                raise IndexError(
                    f"arrays used as indices must be of integer or boolean type (actual: {array.dtype.type})"
                )
            items[i] = wrap_new(array.copy())
            arrays = True
    if not ellipsis:
        items.append(Ellipsis)
    return tuple(items), arrays


def wrapped(shape: tuple[int, ...], index: tuple[Any, ...]) -> tuple[Any, ...]:
    """The index with its integer arrays taken modulo the length of the axis that each of them selects from."""
    used = sum(
        0 if item is None or item is Ellipsis else item.ndim if _is_mask(item) else 1
        for item in index
    )  # fmt: skip
    items = []
    axis = 0
    for item in index:
        if item is Ellipsis:
            axis += len(shape) - used
        elif item is not None:
            if isinstance(item, np.ndarray) and not _is_mask(item) and axis < len(shape) and shape[axis]:
                item = item.astype(np.int64, copy=False) % shape[axis]
            axis += item.ndim if _is_mask(item) else 1
        items.append(item)
    return tuple(items)


def _is_mask(item: Any) -> bool:
    return isinstance(item, np.ndarray) and item.dtype.kind == "b"


def _select(view: np.ndarray, index: tuple[Any, ...]) -> np.ndarray:
    """What index arrays pick, in C order, whatever the order of the array is."""
    found = view[wrapped(view.shape, index)]
    return found if found.flags.c_contiguous else found.copy()


def get(array: Any, index: Any) -> Any:
    """``array[index]``."""
    index, arrays = normalised(index)
    return launch(_select if arrays else operator.getitem, (array, index), {}, ())


def rows(view: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The rows where a mask is true, as a kernel copies them, which does not check their layout."""
    if not (view.flags.c_contiguous and mask.flags.c_contiguous and view.size and mask.ndim
            and mask.shape == view.shape[:mask.ndim] and mask.dtype == bool):
        raise DeviceError(f"rows of {view.shape} by a mask of {mask.shape}")
    return view.reshape(mask.size, *view.shape[mask.ndim:])[np.flatnonzero(mask)]


def assign(view: np.ndarray, value: Any) -> None:
    """Set all of a view."""
    view[...] = value


def _scatter(view: np.ndarray, index: tuple[Any, ...], value: Any) -> None:
    masked = any(map(_is_mask, index))
    index = wrapped(view.shape, index)
    places = np.arange(view.size).reshape(view.shape)[index]
    values = np.asarray(value).astype(view.dtype)
    if masked and values.size and values.shape != places.shape:
        values = np.resize(values, places.shape)    # CuPy does not count what a mask selects
    values = np.broadcast_to(values, places.shape)
    view.flat[places.ravel()[::-1]] = values.ravel()[::-1]


def put(array: Any, index: Any, value: Any) -> None:
    """``array[index] = value``.  A host array as value is refused, unless it is 0-d or goes through index arrays."""
    index, arrays = normalised(index)
    if arrays:
        if not isinstance(value, SimulatedArrayBase):
            value = np.array(value, dtype=array.dtype)
            if not value.ndim and value == 0:
                value = np.zeros((), array.dtype)       # CuPy clears memory: a negative zero loses its sign
            value = wrap_new(value)
        launch(_scatter, (array, index, value), {}, (array,))
        return
    target = launch(operator.getitem, (array, index), {}, ())
    if isinstance(value, SimulatedArrayBase) or hasattr(value, "__cuda_array_interface__"):
        launch(assign, (target, value), {}, (target,))
    else:
        target.fill(value)


def _put_flat(view: np.ndarray, indices: np.ndarray, values: np.ndarray, mode: str) -> None:
    places = np.ravel(indices)[::-1]
    values = np.resize(values, places.shape[::-1])[::-1] if values.size else values
    if not values.size:
        return
    if mode == "raise" and places.size and (places.min() < -view.size or places.max() >= view.size):
        raise IndexError("invalid entry in indices array")
    if mode != "clip" and view.size:
        places, mode = _nearer(places, view.size), "wrap"
    np.put(view, places, values.astype(view.dtype), mode=mode)  # type: ignore[arg-type]


def _nearer(places: np.ndarray, length: int) -> np.ndarray:
    """Places that NumPy's "wrap" soon has within a length, which it adds or subtracts until they are."""
    fits = places.dtype.kind in "iu" and 0 < length <= np.iinfo(places.dtype).max
    return places % places.dtype.type(length) if fits else places


def _length(array: np.ndarray, axis: int | None) -> int:
    """Of an axis, or of the whole; 0 of an axis that there is not."""
    return array.size if axis is None else array.shape[axis] if -array.ndim <= axis < array.ndim else 0


def put_flat(array: Any, indices: Any, values: Any, mode: str = "wrap") -> None:
    """``array.put``."""
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError("clipmode not understood")
    if not isinstance(indices, SimulatedArrayBase):
        indices = wrap_new(np.array(indices))
    if not isinstance(values, SimulatedArrayBase):
        values = wrap_new(np.array(values, dtype=array.dtype))
    launch(_put_flat, (array, indices, values, mode), {}, (array,))


def take(array: Any, indices: Any, axis: int | None = None, out: Any = None) -> Any:
    """``array.take``, which always wraps."""
    if not isinstance(indices, SimulatedArrayBase):
        indices = wrap_new(np.array(indices, dtype=None if np.size(indices) else np.int64))
    return launch(
        lambda a, i, o: np.take(a, _nearer(i, _length(a, axis)), axis, out=o, mode="wrap"),
        (array, indices, out),
        {},
        () if out is None else (out,),
    )
