"""Where arrays are: of one array its side, and of all the memory that they take."""
from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

from .. import devices
from ..events.callers import user_frame, variables
from ..events.markup import cell, element, escape, table
from ..events.report import align, format_bytes
from ..graph.expression import expression
from ..storage import handles, residency
from ..storage.mirror.pinned_pool import limit, pool
from ..storage.spilling import moved
from ..storage.storage import Storage

__all__ = ["ArrayMemory", "Location", "MemoryInfo", "deferred", "memory_info", "where"]

Side = Literal["device", "host", "both", "pending"]


class Location(NamedTuple):
    """Where the values of an array are current.

    Attributes
    ----------
    side : {"device", "host", "both", "pending"}
        "pending": they are not computed yet.
    device : str
        The device that has them, or will compute them, such as "cuda:0"; "" if the array is on the host alone.
    deferred : str
        Of pending work the expression, such as ``sqrt(x * 2 + 1)``; otherwise "".
    operations : int
        How many operations it has.
    """

    side: Side
    device: str = ""
    deferred: str = ""
    operations: int = 0

    def __str__(self) -> str:
        if self.side == "pending":
            return f"deferred: {self.deferred}, {_counted(self.operations)}" if self.deferred else "deferred"
        return {"host": "host", "device": self.device, "both": f"{self.device} and host"}[self.side]


def where(x: Any, *others: Any) -> Location:
    """Return where the values of an array are: on the device, on the host, on both, or not computed yet.

    Nothing is copied or computed. (NumPy's function ``where(condition, x, y)`` is `numpy.where`.)

    Parameters
    ----------
    x : LazyNdarray, LazyScalar, device array, array_like
        A NumPy array is on the host.

    Returns
    -------
    Location
        ``str`` of it is a line of text. Names in it are those of your variables, where they can be found.

    Raises
    ------
    TypeError
        If there is more than one argument.

    Notes
    -----
    Where the host holds an alias of the array, bytes may have been written there that nobody has looked at yet. Until
    then they count as they did before.

    Examples
    --------
    >>> import numpy as np, lazyarray
    >>> x = lazyarray.asarray(np.linspace(0, 1, 100_000))
    >>> lazyarray.where(x).side
    'device'
    >>> y = np.sqrt(x * 2 + 1)
    >>> print(lazyarray.where(y))
    deferred: sqrt(x * 2 + 1), 3 operations
    >>> host = np.asarray(y)
    >>> lazyarray.where(y).side, lazyarray.where(host).side
    ('both', 'host')
    >>> lazyarray.where(lazyarray.asarray([1.0, 2.0, 3.0])).side        # a small one, until the device needs it
    'host'
    """
    if others:
        raise TypeError("lazyarray.where(x) takes one array, and returns where it is. NumPy's function is numpy.where; "
                        "it accepts lazy arrays")
    device = devices.current()
    if isinstance(x, device.array_type):
        return Location("device", _device_name(device.device_of(x)))
    storage = x._self_storage if handles.is_lazy(x) else None
    if type(storage) is not Storage:
        return Location("host")
    side = residency.place(storage, handles.meta_of(x))
    if handles.is_scalar(x) and x._self_value is not None:
        side = "both"
    if side == "host":
        return Location("host")
    if side == "pending":
        text, operations = expression(storage, _Names(user_frame()).name) or ("", 0)
        number = storage.pending.number() if storage.pending is not None else None
        return Location("pending", _device_name(device.number() if number is None else number), text, operations)
    array = storage.block if storage.root is None else storage.root
    return Location(side, _device_name(device.device_of(array)))    # type: ignore[arg-type]


def deferred(x: Any) -> str:
    """The line that displays show of pending work: ``deferred: sqrt(x * 2 + 1), 3 operations``; "" of other arrays."""
    found = where(x)
    return str(found) if found.side == "pending" else ""


def _device_name(number: int) -> str:
    device = devices.current()
    return f"{device.name}:{number}"


def _counted(operations: int) -> str:
    return f"{operations} operation" + "s" * (operations != 1)


class _Names:
    """The names of lazy arrays among a program's variables."""

    def __init__(self, frame: Any) -> None:
        self._found: dict[int, list[tuple[str, Any]]] = {}
        for name, value in variables(frame):
            if not name.startswith("_") and handles.is_lazy(value):
                self._found.setdefault(id(value._self_storage), []).append((name, value))

    def name(self, storage: Any, array: Any) -> str | None:
        """The name of the lazy array that a device array in a storage belongs to; the local one, if there are several.

        A view is not called by the name of the whole, nor the whole by that of a view.
        """
        for name, value in reversed(self._found.get(id(storage), [])):
            meta = handles.meta_of(value)
            if meta.shape == array.shape and meta.strides == array.strides and (
                    meta is storage.root_view and array is storage.root or meta.dtype == array.dtype
                    and storage.device.first(storage.device_view(meta)) == storage.device.first(array)):
                return name
        return None

    def any(self, storage: Any) -> str:
        """The name of any array in a storage, or ""."""
        return self._found.get(id(storage), [("", None)])[-1][0]


# -- memory ------------------------------------------------------------------------------------

class ArrayMemory(NamedTuple):
    """The memory of one array and of all its views, which share it.

    Attributes
    ----------
    name : str
        The name of a variable of the caller's that is such an array, or "".
    shape, dtype : tuple of int or None, numpy.dtype or None
        Of the array that was made first; None if it is not known.
    side : str
        As in `Location`.
    device, mirror : int
        Bytes on the device, and of the mirror on the host.
    """

    name: str
    shape: tuple[int, ...] | None
    dtype: np.dtype[Any] | None
    side: str
    device: int
    mirror: int


class MemoryInfo(NamedTuple):
    """The memory that lazy arrays take, in bytes.

    Attributes
    ----------
    device : int
        Memory of lazy arrays on the current device: see `lazyarray.device`. Memory that two of them share counts once.
    mirrors : int
        Host memory of lazy arrays: copies for the host, and arrays that were made there.
    page_locked : int
        Page-locked host memory, in use by mirrors or kept for the next ones.
    page_locked_limit : int
        The most that it may be: ``options(pool_bytes=...)``.
    device_total : int
        Memory of the current device.
    spills, spilled : int
        How many arrays have moved to the host so far because the current device was full, and their bytes in all. An
        array that comes back and moves again counts again.
    arrays : tuple of ArrayMemory
        The arrays with the most memory first; empty if they were not asked for.
    """

    device: int
    mirrors: int
    page_locked: int
    page_locked_limit: int
    device_total: int
    spills: int = 0
    spilled: int = 0
    arrays: tuple[ArrayMemory, ...] = ()

    def _rows(self) -> list[tuple[str, str]]:
        return [("device", f"{format_bytes(self.device)} of {format_bytes(self.device_total)}"),
                ("mirrors", format_bytes(self.mirrors)),
                ("page-locked", f"{format_bytes(self.page_locked)} of at most {format_bytes(self.page_locked_limit)}"),
                *([("moved to the host", f"{self.spills} arrays, {format_bytes(self.spilled)}: the device was full")]
                  if self.spills else [])]

    def _table(self) -> list[tuple[str, ...]]:
        return [("name", "shape", "dtype", "where", "device", "mirror"),
                *((a.name, "" if a.shape is None else str(a.shape), "" if a.dtype is None else str(a.dtype), a.side,
                   format_bytes(a.device), format_bytes(a.mirror)) for a in self.arrays)]

    def __str__(self) -> str:
        lines = align(self._rows())
        if self.arrays:
            lines += ["", *align(self._table(), right=(4, 5))]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = [table([[cell(name, head=True), cell(text)] for name, text in self._rows()])]
        if self.arrays:
            head, *rows = self._table()
            parts.append(table([[cell(text, head=True) for text in head],
                                *([cell(text, right=number > 3) for number, text in enumerate(row)] for row in rows)]))
        return element("div", element("b", escape("Memory of lazy arrays")) + "".join(
            element("div", part, "overflow-x:auto;margin:.4em 0 0") for part in parts), "text-align:left",
            **{"class": "lazyarray-memory"})


def memory_info(by_array: bool = False) -> MemoryInfo:
    """Return the memory that lazy arrays take: on the device, page-locked, and in mirrors on the host.

    All objects of the process are looked through, which takes tens of milliseconds in large programs. Nothing is copied
    or computed.

    Parameters
    ----------
    by_array : bool
        List the arrays, with the names of your variables.

    Returns
    -------
    MemoryInfo
        ``print`` it for a table.

    Notes
    -----
    CuPy's memory pool keeps memory that was freed. ``cupy.get_default_memory_pool().total_bytes()`` has that, too.
    Objects that were frozen by `gc.freeze` are not found.

    Examples
    --------
    >>> import numpy as np, lazyarray
    >>> image = lazyarray.asarray(np.zeros((1000, 1000)))
    >>> info = lazyarray.memory_info(by_array=True)
    >>> info.device >= 8_000_000
    True
    >>> [(a.device, a.mirror) for a in info.arrays if a.name == "image"]
    [(8000000, 0)]
    """
    device = devices.current()
    names = _Names(user_frame()) if by_array else None
    blocks: set[tuple[int, ...]] = set()
    on_device = mirrors = 0
    arrays = []
    for storage in _storages():
        root = storage.root
        there = 0
        if root is not None or storage.state not in ("host", "pending"):
            array = storage.block if root is None else root
            there = array.nbytes if root is None else storage.nbytes
            place = device.allocation(array) if there else ()
            if place not in blocks:
                blocks.add(place)
                on_device += there if place and place[0] == device.number() else 0
        mirror = getattr(storage.mirror, "nbytes", 0)
        mirrors += mirror
        if names is not None:
            view = storage.root_view if storage.root_view is not None else root
            shape, dtype = (None, None) if view is None else (view.shape, view.dtype)
            arrays.append(ArrayMemory(names.any(storage), shape, dtype, storage.state, there, mirror))
    arrays.sort(key=lambda a: -(a.device + a.mirror))
    return MemoryInfo(on_device, mirrors, pool.locked_bytes, limit(), device.total_memory(),
                      *moved.get(device.number(), (0, 0)), tuple(arrays))


def _storages() -> Iterator[Storage]:
    for obj in gc.get_objects():
        if type(obj) is Storage and hasattr(obj, "root"):      # else it could not be made
            yield obj
