"""What a GPU function returns: device arrays become lazy ones, in the storage that they belong to.

A result that nobody else holds gets a storage of its own. One that lies in an argument is a view of it: of a lazy
array's storage, or of the caller's own NumPy array, whose memory then is the host side of a storage. One that somebody
holds (a function that keeps what it returns, in a cache or on an object) shares its memory, as `lazyarray.asarray` of a
device array does: it may be written behind our back, so its host copy is not trusted.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..functions.kinds import PLAIN
from ..functions.pytree import leaves, replace
from ..settings.options import current as current_options
from ..storage import handles, views
from ..storage.storage import Storage, adopted
from .ownership import Found, is_new

if TYPE_CHECKING:
    from ..devices import Device
    from ..storage.handles import ArrayHandle


def at_once(result: Any, arguments: Any) -> Any:
    """A result, as `options` has it: where lazy arrays are switched off, NumPy's arrays and scalars in their place.

    Lazy arrays among the arguments stay.
    """
    if current_options().lazy:
        return result
    given = set(map(id, leaves(arguments)))

    def fetch(obj: Any) -> Any:
        if not handles.is_lazy(obj) or id(obj) in given:
            return obj
        return handles.value_of(obj) if handles.is_scalar(obj) else handles.alias_of(obj, "options(lazy=False)")

    return replace(result, fetch)


class Copied:
    """An argument of which the function gets a copy on the device.

    Attributes
    ----------
    passed : numpy.ndarray or LazyNdarray
        What the caller passed.
    array : device array
        What the function gets for it.
    block, before : device array or None
        The bytes that `array` lies in, and those that they were, where it has to be found out whether the function
        modifies them. `before` of a small one is a NumPy array, with the elements that `array` had.
    targets : list of (numpy.ndarray or LazyNdarray, device array)
        What to copy back if it does. Without any, it must not.
    shared : Shared or None
        The memory that it has in common with other arguments.
    kept : bool
        `array` serves other calls, too.
    """

    __slots__ = ("passed", "array", "block", "before", "targets", "shared", "kept", "_storage")

    def __init__(self, passed: Any, array: Any, block: Any = None, before: Any = None,
                 targets: list[tuple[np.ndarray, Any]] | None = None, shared: Shared | None = None,
                 kept: bool = False) -> None:
        self.passed, self.array, self.kept = passed, array, kept
        self.block, self.before, self.targets, self.shared = block, before, targets or [], shared
        self._storage: Storage | None = None

    def view(self, device: Device, array: Any) -> ArrayHandle | None:
        """The view of what the caller passed that a device array within the copy stands for; None of any other."""
        low, high = device.extent(self.array)
        start, stop = device.extent(array)
        if not low <= start < stop <= high:
            return None
        if any(n != 1 and own != given for n, own, given in zip(
                self.array.shape, self.array.strides, self.passed.strides)):
            # Its elements do not lie as those that were passed, which have too many gaps: it can't be their view.
            own = array.copy()
            return handles.new_array(Storage(device, own), None, own)
        offset = device.first(array) - low
        if self.kept:       # what others read is not written through a result
            if self._storage is None:
                block, first = device.block(self.array)
                self._storage = adopted(device, self.passed, device.view(
                    block.copy(), self.array.shape, self.array.dtype, self.array.strides, first))
            array = device.view(self._storage.block, array.shape, array.dtype, array.strides, offset)
        if handles.is_lazy(self.passed):
            whole = handles.meta_of(self.passed)
            meta = views.meta(array.shape, array.dtype, array.strides, views.extent(whole)[0] + offset)
            meta.flags.writeable = False
            return handles.view_of(self.passed, meta)
        if self.shared is not None:
            self._storage, low = self.shared.storage(device), device.extent(self.shared.block)[0]
            offset = device.first(array) - low
        elif self._storage is None:
            self._storage = adopted(device, self.passed, self.array)
        meta = views.meta(array.shape, array.dtype, array.strides, offset)
        meta.flags.writeable = self.passed.flags.writeable
        return handles.new_array(self._storage, meta, array, self.passed[...].base)


class Shared:
    """The memory of host arrays that overlap, and its copy on the device: what is a view of one is a view of all.

    Parameters
    ----------
    memory : numpy.ndarray
        All bytes of them; it keeps their owners alive.
    block : device array
        The copy.
    """

    __slots__ = ("memory", "block", "_storage")

    def __init__(self, memory: np.ndarray, block: Any) -> None:
        self.memory, self.block = memory, block
        self._storage: Storage | None = None

    def storage(self, device: Device) -> Storage:
        """The one storage of this memory."""
        if self._storage is None:
            self._storage = adopted(device, self.memory, self.block)
        return self._storage


def in_place(device: Device, host: np.ndarray) -> ArrayHandle:
    """A lazy array of a host array's own memory, which its owner may write at any time."""
    storage = adopted(device, host)
    offset = host.__array_interface__["data"][0] - storage.mirror.address
    meta = views.meta(host.shape, host.dtype, host.strides, offset)
    meta.flags.writeable = host.flags.writeable
    return handles.new_array(storage, meta, None, host[...].base)


class Results:
    """The way back of one call.

    Parameters
    ----------
    device : Device
    sources : sequence of lazy arrays
        The lazy arguments.
    back : dict
        Identity of a thing that the function was given -> what the caller passed.
    copied : sequence of Copied
    """

    __slots__ = ("device", "sources", "back", "copied", "found", "_made", "_new", "_roots")

    def __init__(self, device: Device, sources: Sequence[Any], back: dict[int, Any], copied: Sequence[Copied]) -> None:
        self.device, self.sources, self.back, self.copied = device, sources, back, copied
        self.found: Found | None = None
        self._new = False
        self._made: dict[int, Any] = {}
        self._roots: list[tuple[int, int, Storage]] = []

    def look(self, box: list[Any]) -> None:
        """Find out who holds the results: `box` holds what the function returned, and nothing else of ours does."""
        kind = type(box[0])
        if id(box[0]) in self.back:
            return
        if kind is self.device.array_type:
            self._new = is_new(self.device, box)
        elif kind in PLAIN:
            return
        if not self._new:
            self.found = Found(self.device, box)

    def wrap(self, obj: Any) -> Any:
        """`obj` with lazy arrays in place of device arrays, and what the caller passed in place of what was made of it.

        What `look` has not seen is taken to be held by others.
        """
        if self._new:
            return handles.fresh(self.device, obj)
        if id(obj) in self.back:
            return self.back[id(obj)]
        return replace(obj, self._leaf, back=self.back)

    def _leaf(self, obj: Any) -> Any:
        known = self.back.get(id(obj))
        if known is not None:
            return known
        if not isinstance(obj, self.device.array_type):
            return obj
        made = self._made.get(id(obj))
        if made is None:        # one array that is there twice stays one
            made = self._made[id(obj)] = self._array(obj)
        return made

    def _array(self, array: Any) -> Any:
        """One device array as a lazy one; without dimensions it is a scalar, which is a snapshot."""
        device = self.device
        held = self.found is None or self.found.is_held(array)
        if array.ndim == 0:
            array = array.copy() if held or array.base is not None else array
            return handles.new_scalar(Storage(device, array), None, array)
        lazy = handles.inside(device, array, self.sources, held)
        if lazy is not None:
            if lazy._self_array is array:
                lazy._self_array = None     # it may be made of a loan, which ends when nobody has such an array
            return lazy
        for copied in self.copied:
            lazy = copied.view(device, array)
            if lazy is not None:
                return lazy
        return handles.share(device, array) if held else self._of_its_own(array)

    def _of_its_own(self, array: Any) -> Any:
        """A result in new memory. Several in one piece of it are views of one storage."""
        device = self.device
        if len(self.found.arrays) == 1:
            return handles.new_array(Storage(device, array), None, array)
        start, stop = device.extent(array)
        within = next((root for root in self._roots if root[0] <= start and stop <= root[1]), None)
        if within is None:
            root = array if array.base is None else array.base
            within = *device.extent(root), Storage(device, root)
            self._roots.append(within)
        meta = views.meta(array.shape, array.dtype, array.strides, device.first(array) - within[0])
        return handles.new_array(within[2], meta, array)
