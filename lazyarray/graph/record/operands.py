"""What recorded work reads: the operands of a call as nodes, leaves and numbers, and the order of its result.

A lazy array that is computed already is a leaf if nobody but us can change its bytes: a whole array or any view. One
that isn't is its node, if it is the whole of that in any shape or order; other views have it computed.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _native, devices
from ...devices.base import HOLDABLE
from ...devices.program import Step, step_of
from ...errors.own_threads import others_run
from ...functions import memory_order
from ...functions.kinds import NUMBERS
from ...storage import facts, handles, transfer, upload_cache, views
from ...storage.state import all_ended
from ...storage.storage import Storage
from ..memory_bound import LARGE
from ..node import MOST_STEPS, Leaf, Node
from .memory_order import Form, broadcast, form_of, is_flat, order_of

__all__ = ["LARGE_RESULT", "Operands", "fits", "leaf_of", "is_strided", "ready_array", "seen_in", "whole"]

#: Results from this size on are asked whether the device could hold them.
LARGE_RESULT = 1 << 30


class Operands:
    """The operands of one call, gathered one after the other.

    Attributes
    ----------
    kinds : list
        The dtype of each, or the type of a Python number.
    items : list
        Of nodes, leaves and numbers.
    metas : list
        Of the arrays among them, for their shapes and strides; None for numbers.
    as_given : bool
        None of them had to be computed, to be read in the result's form.
    """

    __slots__ = ("function", "device", "place", "kinds", "items", "metas", "sources", "steps", "large", "nodes",
                 "size", "result", "as_given", "unreadable", "allowed")

    def __init__(self, function: Any = None) -> None:
        self.function = function    # NumPy's, whose operands these are
        self.device: Any = None
        self.place: int | None = None       # which of several devices
        self.kinds: list[Any] = []
        self.items: list[Any] = []
        self.metas: list[Any] = []
        self.sources: list[Any] = []
        self.steps = 0
        self.large: tuple[Any, ...] = ()
        self.nodes: list[Node] = []     # new ones
        self.size = 0
        self.result: Any = None
        self.as_given = True
        self.unreadable: list[int] = []     # places of those that can't be read as they wait
        self.allowed = False        # whether an upload is one that was put off

    def add(self, x: Any) -> bool:
        """Take one more operand; False if it is none for recorded work."""
        kind = type(x)
        if kind is handles.array_type:
            host = None if _native.recording is None or not _native.recording.is_light(x) else x._self_host
            if host is None or (device := devices.current()).spread or not host.ndim or (
                    not handles.stays_light(x, host)):
                return self._add_array(x)
            self.device, self.allowed = device, True
            return self._add_host(host)     # it stays there
        if kind is handles.scalar_type:
            if x._self_value is not None:
                return self._add_number(x._self_value, x._self_value.dtype)
            storage = x._self_storage
            if (node := storage.pending) is not None:
                return self._add_node(node, handles.meta_of(x), x)
            array = handles.device_of(x)
            if not storage.clean:
                return False
            self._append(array.dtype, Leaf(array, storage, "strided"), array, x)
            return self.is_on(storage.device, array)
        if isinstance(x, np.generic):
            return self._add_number(x, x.dtype)
        if kind is np.ndarray:
            return self._add_host(x)
        return kind in NUMBERS and self._add_number(x, kind)

    def _add_number(self, x: Any, kind: Any) -> bool:
        self._append(kind, x, None, None)
        return True

    def _add_host(self, x: np.ndarray) -> bool:
        """A host array, which is copied to the device once it is sure that it is needed there."""
        if x.dtype not in HOLDABLE:
            return False
        if not x.ndim:
            return self._add_number(x[()], x.dtype)
        self._append(x.dtype, None, x, x)
        return True

    def _uploaded(self) -> bool:
        for position, item in enumerate(self.items):
            if item is None:
                place = self.device.sole if self.place is None and self.device.spread else self.place
                with self.device.on(place):
                    host = views.each_once(self.sources[position])
                    storage = _copy_of(self.device, host, self.function, self.allowed)
                one = host if host.nbytes <= upload_cache.SMALL else True
                self.items[position] = leaf = Leaf(storage.root, storage, "flat", one if host.nbytes < LARGE else None)
                self.metas[position] = storage.root
                self.count(leaf)
        return True

    def _append(self, kind: Any, item: Any, meta: Any, source: Any) -> None:
        self.kinds.append(kind)
        self.items.append(item)
        self.metas.append(meta)
        self.sources.append(source)

    def _add_array(self, x: Any) -> bool:
        storage = x._self_storage
        node = storage.pending
        if node is not None:
            meta = x._self_meta
            found = (node, meta) if meta is storage.root_view else seen_in(node, meta)
            if found is not None:
                if found[0] is not node:
                    self.nodes.append(found[0])
                return self._add_node(*found, x)
            node.compute()
        found, mirror = leaf_of(x), storage.mirror
        if found is None and type(storage) is Storage and not (storage.foreign or storage.loans) and (
                (mirror is None or not mirror.held) and storage.device.usable() is None
                and not others_run()):      # else all are brought at one time
            handles.device_of(x, f"host operand of {getattr(self.function, '__name__', 'a function')}")
            found = leaf_of(x)
        if found is None:       # who holds memory of it may write there
            return False
        self._append(found.array.dtype, found, found.array, x)
        self.count(found)
        return self.is_on(storage.device, found.array)

    def is_on(self, device: Any, array: Any = None, place: int | None = None) -> bool:
        """Whether an operand is on the device where the others are."""
        self.device = device
        if device.several:
            place = device.device_of(array) if array is not None else place
            if self.place is not None and place != self.place:
                return False
            self.place = place
        return True

    def count(self, leaf: Leaf) -> None:
        """Note what a leaf keeps alive, if that is much."""
        storage = leaf.storage
        nbytes = leaf.array.nbytes if leaf.array is storage.root else storage.nbytes
        if nbytes >= LARGE:
            self.large = (*self.large, (id(storage), nbytes))

    def _add_node(self, node: Node, meta: Any, x: Any) -> bool:
        self._append(node.step.output, node, meta, x)
        self.steps += node.steps
        if node.large:
            self.large = (*self.large, *node.large)
        return self.is_on(node.device, None, node.number())

    def computed(self, position: int) -> bool:
        """Have the operand at this place computed, and take it as a leaf; False if it is none."""
        self.as_given = False
        x, item = self.sources[position], self.items[position]
        node = x._self_storage.pending
        if node is not None:
            node.compute()
        leaf = leaf_of(x)
        if leaf is None:
            return False
        self.items[position], self.metas[position] = leaf, leaf.array
        self.steps -= item.steps
        self.count(leaf)
        return True

    def keep(self, count: int) -> None:
        """Leave out operands behind the first ones."""
        del self.kinds[count:], self.items[count:], self.metas[count:], self.sources[count:]

    # -- the result ----------------------------------------------------------------------------

    def shape(self) -> tuple[int, ...] | None:
        """The shape of the result, None if there is none."""
        found: tuple[int, ...] | None = None
        for meta in self.metas:
            if meta is not None:
                if found is None:
                    found = meta.shape
                elif found != meta.shape:
                    found = broadcast(found, meta.shape)
                    if found is None:
                        return None
        return found

    def form(self, shape: tuple[int, ...], order: tuple[int, ...] | str | None = "K") -> Form | None:
        """The memory order of a result of this shape, NumPy's "K"; None if an operand can't be read.

        Settles how each array is read. In an order that is neither C's nor Fortran's, the node has its axes in that
        order, and so has each leaf.
        """
        if order == "K":
            order = order_of([o for o in self.metas if o is not None])
        form = form_of(shape, order)    # type: ignore[arg-type]
        for position, meta in enumerate(self.metas):
            if meta is not None and not self._settled(position, meta, shape, order):  # type: ignore[arg-type]
                return None
            item = self.items[position]
            if form.order is not None and type(item) is Leaf:
                item.array = memory_order.along(item.array, form.order)
        return form

    def _settled(self, position: int, meta: Any, shape: tuple[int, ...], order: tuple[int, ...] | None) -> bool:
        item = self.items[position]
        flat = is_flat(meta, shape, order)
        if type(item) is Node:
            if flat or order is None and not item.fortran and item.shape == meta.shape != shape and (
                    meta.flags.c_contiguous):
                return True
            if not self.computed(position):
                return False
            self.unreadable.append(position)
            item = self.items[position]
            flat = is_flat(self.metas[position], shape, order)
        item.mode = "flat" if flat else "strided"
        return True

    def settle(self, casts: tuple[Step | None, ...] | None, scalars: tuple[Any, ...], itemsize: int, least: int,
               order: tuple[int, ...] | str | None = "K", more: int = 1) -> bool:
        """Make everything ready for `made`: the numbers, the order of the result, and the casts.

        False if the result is smaller than `least` bytes, or must be left to the general way.
        """
        shape = self.shape()
        if shape is None:
            return False
        self.size = size = math.prod(shape)
        if not size or not fits(self.device, size * itemsize):
            return False
        if size * itemsize < least and any(type(item) is Leaf for item in self.items):
            return False        # small, and not of what waits already
        items = self.items
        for position, meta in enumerate(self.metas):
            if meta is None:
                try:
                    items[position] = scalars[position](items[position])
                except OverflowError:       # beyond the dtype: compared by value, or refused
                    return False
        self.steps += more + (len(casts) if casts else 0)
        while self.steps > MOST_STEPS:
            longest = max((i for i, o in enumerate(items) if type(o) is Node), key=lambda i: items[i].steps)
            if not self.computed(longest):
                return False
        if order == "K":        # as the operands are given: the copy of a host array may lie otherwise
            order = order_of([o for o in self.metas if o is not None])
        form = self.form(shape, order) if self._uploaded() else None
        if form is None:
            return False
        self.result = form
        for position, cast in enumerate(casts or ()):
            if cast is not None and self.metas[position] is not None:
                items[position] = self.made(cast, (items[position],))
        return True

    def made(self, step: Step, items: tuple[Any, ...]) -> Node:
        """A node of the result's form."""
        form, size = self.result, self.size
        node = Node(self.device, step, items, form.shape, form.fortran, self.steps,
                    frozenset(self.large) if self.large else (), any(is_strided(item, size) for item in items), size)
        node.place = self.place
        self.nodes.append(node)
        return node


def fits(device: Any, nbytes: int) -> bool:
    """Whether the device could hold so many bytes at all: that memory has run out is told at the call, as in NumPy."""
    return nbytes < LARGE_RESULT or nbytes <= device.total_memory()


def is_strided(item: Any, size: int) -> bool:
    return item.mode == "strided" if type(item) is Leaf else type(item) is Node and item.size != size


def brought(x: Any, function: Any) -> Storage | None:
    """The copy on the device of a host array, or of one that is nothing but that and stays so; None if it does not."""
    device, light = devices.current(), type(x) is handles.array_type
    host = x._self_host if light else x
    if device.spread or host is None or 0 in host.strides or host.dtype not in HOLDABLE or (
            device.usable() is not None or light and not handles.stays_light(x, host)):
        return None
    return _copy_of(device, host, function, light)


def _copy_of(device: Any, host: np.ndarray, function: Any, allowed: bool) -> Storage:
    """The storage of a copy on the device, made now or before. `allowed`: the upload was put off."""
    why = f"host operand of {function.__name__}"
    found: Storage | None = upload_cache.kept(device, host, why, allowed=allowed)
    if found is None:
        if host.dtype.kind in "iu" and host.nbytes <= upload_cache.COPIED:
            host = host.copy("K")       # what is looked at is what is sent, whoever writes meanwhile
        found = Storage(device, transfer.to_device(device, host, why, allowed=allowed))
        facts.note_copy(found, host)
    return found


def leaf_of(x: Any) -> Leaf | None:
    """The leaf of a lazy array whose bytes are there; None if they have to be brought up to date first."""
    array = ready_array(x)
    return None if array is None else Leaf(array, x._self_storage, "flat")


def ready_array(x: Any) -> Any:
    """The device array of a lazy array whose bytes are there; None if they have to be brought up to date first.

    Somebody else may change them at any time, if he holds a pointer: then what reads them is computed at once.
    """
    storage = x._self_storage
    if not storage.clean or storage.foreign:
        return None
    if storage.loans:
        all_ended(storage)      # forgets those whose holder is gone
    array = x._self_array
    if array is None:
        meta = handles.meta_of(x)
        array = storage.root if meta is storage.root_view and storage.root is not None else (
            storage.device_view(meta))
        if not storage.clean:       # another thread has moved it: the view may be of new memory
            return None
        handles.keep(x, meta, array)
    return array


def whole(x: Any) -> Leaf | None:
    """The leaf of a lazy array that is dense, complete and ready, kept with it; None if it is not that."""
    storage, meta = x._self_storage, x._self_meta
    if type(storage) is not Storage or meta is not None and meta is not storage.root_view:
        return None
    leaf = leaf_of(x)
    if leaf is None:
        return None
    device, array = storage.device, leaf.array
    c, f = device.contiguity(array)
    if not (c or f) or not array.ndim or not array.size or device.several:
        return None
    leaf.shape, leaf.fortran, leaf.size, leaf.dtype, leaf.steps = array.shape, not c, array.size, array.dtype, 0
    leaf.large = frozenset(((id(storage), array.nbytes),)) if array.nbytes >= LARGE else ()
    x._self_leaf = leaf
    return leaf


def seen_in(node: Node, meta: np.ndarray) -> tuple[Node, np.ndarray] | None:
    """(node, meta) of a view of recorded work: of the whole of it in some order, or of a part of its numbers."""
    dtype = node.step.output
    if meta.size != node.size:
        return None
    if meta.dtype == dtype:
        return (node, meta) if views.is_dense_array(meta) else None
    if dtype.kind != "c" or meta.dtype != np.dtype(dtype.char.lower()) or any(n < 0 for n in meta.strides):
        return None
    offset = views.offset_of(meta)
    whole = views.meta(meta.shape, dtype, meta.strides)
    if not views.is_dense_array(whole):
        return None
    step = _part(dtype, "imag" if offset else "real")
    part = Node(node.device, step, (node,), node.shape, node.fortran, node.steps + 1, node.large, False, node.size)
    part.place = node.place
    return part, whole


def _part(dtype: np.dtype, name: str) -> Step:
    return step_of(name, lambda array: getattr(array, name).copy(), (dtype,), np.dtype(dtype.char.lower()))
