"""The arguments of one call of a GPU function, on their way to the device and, where it modified them, back."""
from __future__ import annotations

import contextlib
import ctypes
import weakref
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import byte_bounds

from ..devices.base import HERE
from ..dispatch import host_fallback
from ..errors import NotOnDevice
from ..functions.kinds import CONTAINER, DEVICE, GENERIC, GPU, HOST, LAZY, OTHER, SCALAR, SUBCLASS, kind_of
from ..functions.pytree import Copies, leaves, replace
from ..storage import handles, places, transfer, upload_cache
from ..storage.storage import Storage, write_all
from ..storage.writeable import may_write
from .results import Copied, Shared

if TYPE_CHECKING:
    from ..devices import Device

#: What becomes of an argument. WRITTEN: the function is known to modify it; MAYBE: it may.
READ, WRITTEN, MAYBE = 0, 1, 2

_NO_ARRAYS = frozenset({OTHER, GENERIC, CONTAINER})
_DEVICE, _OTHERS = 1 << DEVICE | 1 << GPU, 1 << LAZY | 1 << HOST | 1 << SUBCLASS


class Rules(NamedTuple):
    """How the arguments of a function are treated.

    Attributes
    ----------
    role : callable
        Position or name of an argument -> READ, WRITTEN or MAYBE.
    hosts : bool
        Host arrays go to the device. Otherwise the function gets them as they are.
    numbers : bool
        A `LazyScalar` becomes a number, as a NumPy program would give it: a kernel that is given an array without
        dimensions for a number takes its address for the value. Otherwise it becomes such an array.
    """

    role: Callable[[int | str], int]
    hosts: bool = True
    numbers: bool = True


#: Bytes up to which the only host array is compared on the host, whether the function modified it: one small copy takes
#: less time than a copy on the device, and the kernels that compare it there.
SMALL = 1 << 16


class Arguments:
    """The arrays among the arguments of one call.

    Parameters
    ----------
    device : Device
    name : str
        The function's, for events and errors.
    args, kwargs : tuple, dict
    rules : Rules

    Attributes
    ----------
    kinds : int
        Which kinds there are: bit ``1 << kind`` is set.
    only_device : bool
        Device arrays are all the arrays that there are.
    found : dict
        Identity -> [thing, kind, role], in the order of the arguments.
    sources : list of lazy arrays
        Those whose memory the function gets.
    back : dict
        Identity of what the function gets -> what the caller passed.
    copied : list of Copied
        What the function gets copies of.
    writes : list of (Storage, numpy.ndarray, device array)
        What may be written: a view of a storage, and its array.
    copies : Copies or None
        The containers among the arguments that had to be copied.
    """

    __slots__ = ("device", "name", "args", "kwargs", "rules", "kinds", "only_device", "found", "given", "sources",
                 "back", "copied", "copies", "writes", "_saved", "_tokens")

    def __init__(self, device: Device, name: str, args: tuple[Any, ...], kwargs: dict[str, Any],
                 rules: Rules) -> None:
        self.device, self.name, self.args, self.kwargs, self.rules = device, name, args, kwargs, rules
        self.kinds = 0
        self.found: dict[int, list[Any]] = {}
        for slot, obj in chain(enumerate(args), kwargs.items()) if kwargs else enumerate(args):
            kind = kind_of(type(obj))
            if kind == CONTAINER:
                self.kinds |= 1 << CONTAINER
                for item in leaves(obj):
                    self._note(item, kind_of(type(item)), rules.role(slot))
            elif kind != OTHER:
                self._note(obj, kind, rules.role(slot))
        self.only_device = bool(self.kinds & _DEVICE) and not self.kinds & _OTHERS
        self.given: dict[int, Any] = {}             # identity of what the caller passed -> what the function gets
        self.sources: list[Any] = []
        self.back: dict[int, Any] = {}
        self.copied: list[Copied] = []
        self.copies: Copies | None = None
        self._saved: list[tuple[Any, Any]] = []     # device array, copy of it
        self.writes: list[tuple[Storage, np.ndarray, Any]] = []
        self._tokens: list[tuple[Storage, weakref.ref[Any]]] = []

    def _note(self, obj: Any, kind: int, role: int) -> None:
        if kind not in _NO_ARRAYS and (kind != HOST or self.rules.hosts):
            self.kinds |= 1 << kind
            self.found.setdefault(id(obj), [obj, kind, role])[2] |= role

    def of_kind(self, *kinds: int) -> Iterator[list[Any]]:
        """[thing, kind, role] of each argument of these kinds."""
        return (entry for entry in self.found.values() if entry[1] in kinds)

    # -- to the device ---------------------------------------------------------------------

    def convert(self, has_twin: bool) -> tuple[list[Any], dict[str, Any]]:
        """What the function is called with, while it is `opened`.

        Raises NotOnDevice for what a host twin is better at.
        """
        lazies, hosts = [], []
        for entry in self.found.values():
            obj, kind, _ = entry
            if kind == LAZY:
                if type(obj._self_storage) is Storage:
                    lazies.append(entry)
                elif has_twin:
                    raise NotOnDevice(f"dtype {obj.dtype} is not supported on the device")
                else:
                    self._give(obj, obj._self_meta.view())
            elif kind == SCALAR:
                why = f"a number given to {self.name}"
                self.given[id(obj)] = handles.value_of(obj, why) if self.rules.numbers else handles.operand_of(obj, why)
            elif kind == HOST and self.device.can_hold(obj.dtype):
                hosts.append(entry)
            elif kind in (HOST, SUBCLASS) and has_twin:
                raise NotOnDevice("an argument is an ndarray subclass" if kind == SUBCLASS else
                                  f"dtype {obj.dtype} is not supported on the device")
        stand_ins = self._in_one_memory(lazies, hosts) if any(role for _, _, role in self.found.values()) else []
        for stand_in, entry in stand_ins:
            lazies = [one for one in lazies if one is not entry]
            hosts.append([stand_in, HOST, entry[2]])
        if len(lazies) > 1:     # those that are read-only after those that they may look at
            lazies.sort(key=lambda entry: not may_write(handles.meta_of(entry[0])))
        apart = self.device.several and [obj._self_storage for obj, _, _ in lazies]
        for obj, _, role in lazies:
            if apart and role != READ and apart.count(obj._self_storage) == 1 and self._take_elsewhere(obj, role):
                continue
            self._take_lazy(obj, obj, role)
        if hosts:
            self._take_hosts(hosts, [entry[0] for entry in lazies])
        for stand_in, (obj, _, _) in stand_ins:
            self._give(obj, self.given[id(stand_in)])
        if self.device.count > 1:
            for obj, _, role in self.of_kind(DEVICE):
                if role == READ and not self.device.on_current(obj):
                    self._give(obj, transfer.to_current(self.device, obj, f"operand of {self.name}"))
        if has_twin:
            self._saved += [(array, array.copy()) for _, _, array in self.writes]
            self._saved += [(obj, obj.copy()) for obj, _, role in self.of_kind(DEVICE) if role]
        given = self.given
        if not given:
            return list(self.args), dict(self.kwargs)
        if not self.kinds & 1 << CONTAINER:
            return [given.get(id(a), a) for a in self.args], {k: given.get(id(a), a) for k, a in self.kwargs.items()}
        self.copies = Copies()
        device_args = [replace(a, self._leaf, self.copies) for a in self.args]
        device_kwargs = {k: replace(a, self._leaf, self.copies) for k, a in self.kwargs.items()}
        self.back.update(self.copies.originals)
        return device_args, device_kwargs

    def _in_one_memory(self, lazies: list[list[Any]], hosts: list[list[Any]]) -> list[tuple[np.ndarray, list[Any]]]:
        """Lazy arrays whose host memory is a part of that of another argument, which lies in another storage, each
        with a host array that stands for it: what is written to one is written to the other.
        """
        spans = []
        for entry in lazies:
            mirror = entry[0]._self_storage.mirror
            if mirror is not None and entry[0].size:
                spans.append((mirror.address, mirror.address + mirror.nbytes, entry[0]._self_storage, entry))
        if not spans or len(spans) + len(hosts) < 2:
            return []
        reach = [byte_bounds(entry[0]) for entry in hosts if entry[0].size]
        return [(handles.alias_of(entry[0], f"operand of {self.name}"), entry) for low, high, storage, entry in spans
                if any(low < end and start < high and other is not storage for start, end, other, _ in spans)
                or any(low < end and start < high and not low <= start < end <= high for start, end in reach)]

    def _leaf(self, obj: Any) -> Any:
        return self.given.get(id(obj), obj)

    def _give(self, obj: Any, substitute: Any) -> None:
        self.given[id(obj)] = substitute
        self.back[id(substitute)] = obj

    def _take_lazy(self, obj: Any, x: Any, role: int) -> None:
        """`obj` is the lazy array `x`, or an alias of it."""
        # What is written has to be written there.
        read = handles.operand_of if role == READ or not x.size else handles.device_of
        array = read(x, f"operand of {self.name}")
        meta = handles.meta_of(x)
        if role == READ or not x.size or not may_write(meta) and any(
                x._self_storage is storage for storage, _, _ in self.writes):   # it changes with what is modified
            self.sources.append(x)
        elif may_write(meta):
            self.sources.append(x)
            self.writes.append((x._self_storage, meta, array))
            # Lent, so that it is known whether the function keeps it, to write to it later.
            array, token = self.device.lend(array)
            self._tokens.append((x._self_storage, weakref.ref(token)))
        else:
            array = self._copy(x, array)
        self._give(obj, array)

    def _take_elsewhere(self, x: Any, role: int) -> bool:
        """Give a copy of a lazy array that lies on another device, and that the function may modify; else False."""
        device, why = self.device, f"operand of {self.name}"
        if not x.size or not may_write(handles.meta_of(x)) or places.of(device, x) in (None, device.number()):
            return False
        array = transfer.to_current(device, handles.device_of(x, why), why)
        block, _ = device.block(array)
        self.copied.append(Copied(x, array, block, None if role == WRITTEN else block.copy(), [(x, array)]))
        self._give(x, array)
        return True

    def _copy(self, passed: Any, array: Any) -> Any:
        """A copy of the device array of a read-only argument, which must be unchanged after the call."""
        device = self.device
        before, offset = device.block(array)
        if before.nbytes > 2 * array.nbytes:     # mostly gaps
            array = array.copy()
            before, offset = device.block(array)
        block = before.copy()
        copy = device.view(block, array.shape, array.dtype, array.strides, offset)
        self.copied.append(Copied(passed, copy, block, before))
        return copy

    def _take_hosts(self, hosts: list[list[Any]], lazies: list[Any]) -> None:
        why = f"operand of {self.name}"
        modifying = any(role for _, _, role in self.found.values())
        written, read = [], []
        for obj, _, role in hosts:
            alias = host_fallback.home_on_host(obj, lazies) if modifying and lazies else None
            if alias is not None:
                self._take_lazy(obj, alias, role)
            elif role != READ and len(hosts) == 1 and obj.flags.writeable and obj.size:
                return self._take_group([(0, 0, obj, role)], why, True)
            elif role == READ or not obj.flags.writeable or not obj.size:
                read.append((obj, role))
            else:
                written.append((*byte_bounds(obj), obj, role))
        beside = [(*byte_bounds(obj), obj, READ) for obj, _ in read if obj.size] if written else []
        together = set()        # what is only read has to see what is written to the memory that it shares
        for group in _overlapping(written + beside):
            low = min(entry[0] for entry in group)
            modified = [entry for entry in group if entry[3] != READ]
            if modified and all(_is_aligned(obj, low) for _, _, obj, _ in group):
                self._take_group(group, why, len(hosts) == 1)
                together.update(id(obj) for _, _, obj, _ in group)
            else:       # fields of one array of records, say
                for entry in modified:
                    self._take_group([entry], why)
        for obj, role in read:
            if id(obj) not in together:
                self._take_read(obj, role, why)

    def _take_read(self, obj: np.ndarray, role: int, why: str) -> None:
        """A host array that is not modified, or must not be."""
        device = self.device
        array, kept = upload_cache.argument(device, obj, why)
        if id(array) in self.back:      # equal arguments stay two
            array, kept = transfer.to_device(device, obj, why, layout=True), False
        if role == READ:
            self.copied.append(Copied(obj, array, kept=kept))
        else:
            array = self._copy(obj, array)
        self._give(obj, array)

    def _take_group(self, group: list[tuple[int, int, np.ndarray, int]], why: str, alone: bool = False) -> None:
        """Host arrays that share memory, and of which at least one may be modified; `alone`: there are no others."""
        device = self.device
        if len(group) == 1:
            obj = group[0][2]
            arrays = [transfer.to_device(device, obj, why, layout=True)]
            block, _ = device.block(arrays[0])
            shared = None
        else:
            low, high = min(entry[0] for entry in group), max(entry[1] for entry in group)
            # All of it lies in what these arrays are views of.
            owned = (ctypes.c_ubyte * (high - low)).from_address(low)
            owned.owners = [obj for _, _, obj, _ in group]
            memory = np.frombuffer(owned, np.uint8)
            block = transfer.to_device(device, memory, why)
            shared = Shared(memory, block)
            arrays = [device.view(block, obj.shape, obj.dtype, obj.strides, obj.__array_interface__["data"][0] - low)
                      for _, _, obj, _ in group]
        before = None
        if all(role in (MAYBE, READ) for *_, role in group):
            small = alone and len(group) == 1 and group[0][2].nbytes <= SMALL
            before = np.array(group[0][2]) if small else block.copy()
        targets = [(obj, array) for (_, _, obj, role), array in zip(group, arrays) if role != READ]
        for (_, _, obj, _), array in zip(group, arrays):
            self.copied.append(Copied(obj, array, block, before, targets, shared))
            self._give(obj, array)
            before, targets = None, []      # the first stands for all of them

    # -- while the function runs -----------------------------------------------------------

    def place(self) -> contextlib.AbstractContextManager[Any]:
        """A context in which the device of the largest argument that lies on one is the current one.

        An argument that computes with device arrays, as a sparse matrix of CuPy's, can't be moved: it wins.
        """
        device = self.device
        if device.count == 1:
            return HERE
        number = next((found for obj in (*self.args, *self.kwargs.values()) if device.computes_with(type(obj))
                       and (found := places.of_partner(device, obj)) is not None), None)
        return places.on_one(device, [obj for obj, *_ in self.of_kind(LAZY, DEVICE)], (), number)

    # -- back ------------------------------------------------------------------------------

    def restore(self) -> None:
        """The function has failed, and the host twin is to see what it saw."""
        for array, copy in self._saved:
            self.device.assign(array, copy)

    def close(self, back: Callable[[Any], Any], goes_on: bool = False) -> None:
        """Give the caller what the function did to copies: of arrays, and of containers, with ``back`` of new items."""
        self.copy_back(goes_on)
        if self.copies is not None:
            self.copies.hand_on(back)

    def copy_back(self, goes_on: bool = False) -> None:
        """Copy what the function modified to the arrays on the host, or another device, that it was given as.

        Raises ValueError if it modified what is read-only. If the function `goes_on` in steps, others may write to host
        arrays in between: then it copies the elements that this step has modified, and no others.
        """
        if not self.copied:
            return
        device = self.device
        changed = self._changed([copied for copied in self.copied if copied.before is not None])
        for copied in self.copied:
            if copied.before is not None and not changed[id(copied)]:
                continue
            if copied.before is not None and not copied.targets:
                raise ValueError(f"assignment destination is read-only: {self.name} modifies an argument of shape"
                                 f" {copied.passed.shape}")
            why = f"modified by {self.name}"
            for target, array in copied.targets:
                if handles.is_lazy(target):
                    target[...] = array
                    continue
                now = transfer.to_host(device, array, why)
                if goes_on and copied.before is not None:
                    was = copied.before
                    if type(was) is not np.ndarray:
                        first = device.first(array) - device.first(copied.block)
                        was = transfer.to_host(
                            device, device.view(was, array.shape, array.dtype, array.strides, first), why)
                    changed_elements = _different_bytes(now, was)
                    target[changed_elements] = now[changed_elements]
                else:
                    target[...] = now
                if type(copied.before) is np.ndarray:
                    copied.before = np.array(now)
            if copied.before is not None and type(copied.before) is not np.ndarray:
                device.assign(copied.before, copied.block)

    def _changed(self, unsure: list[Copied]) -> dict[int, bool]:
        """Which of these the function has modified, by their identity."""
        device, why = self.device, "whether arguments were modified"
        changed = {}
        pairs = []
        for copied in unsure:
            if type(copied.before) is np.ndarray:
                now = transfer.to_host(device, copied.array, why, "synchronise")
                changed[id(copied)] = now.tobytes() != copied.before.tobytes()
            else:
                pairs.append(copied)
        if pairs:
            changed.update(zip(map(id, pairs), _differ(device, [(c.block, c.before) for c in pairs], why)))
        return changed

    def let_go(self) -> None:
        """The call is over. What the function still holds of its arguments is a loan: it may write there."""
        self.given.clear()
        self.copies = None
        for storage, token in self._tokens:
            if token() is not None:
                storage.note_loan(token)


def in_one_memory(storages: list[Storage]) -> bool:
    """Whether mirrors of different storages overlap: these are parts of one host array."""
    spans = sorted([(s.mirror.address, s.mirror.nbytes, id(s)) for s in storages])      # type: ignore[union-attr]
    return any(low + nbytes > start and one != other for (low, nbytes, one), (start, _, other) in zip(spans, spans[1:]))


def opened(every: list[Arguments], run: Callable[[], Any], goes_on: bool = False, has_twin: bool = False) -> Any:
    """Return ``run()``, in which a function with these arguments may run, once or, if it `goes_on`, in steps.

    Before it, lazy arrays are brought up to date, and after it others see what was written to them. If it fails,
    what was written before stays written, as it is with NumPy, unless it `has_twin`.
    """
    if goes_on:
        for one in every:
            for x in one.sources:
                handles.device_of(x, f"operand of {one.name}")
    writes = [entry for one in every for entry in one.writes]
    try:
        return write_all(writes, run) if writes else run()
    except every[0].device.faults:
        raise
    except BaseException:       # a coroutine is cancelled by one
        if not has_twin:
            for one in every:
                one.copy_back(goes_on)
        raise


def _different_bytes(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Where two arrays of a shape and dtype have elements of different bytes."""
    rows = [np.ascontiguousarray(a).reshape(-1).view(np.uint8).reshape(a.size, a.itemsize) for a in (one, other)]
    return (rows[0] != rows[1]).any(axis=1).reshape(one.shape)


def _overlapping(spans: list[tuple[int, int, np.ndarray, int]]) -> list[list[tuple[int, int, np.ndarray, int]]]:
    """Those of (start, stop, ...) that overlap, directly or through others, together."""
    groups: list[list[Any]] = []
    stop = 0
    for span in sorted(spans, key=lambda span: span[:2]):
        if not groups or span[0] >= stop:
            groups.append([])
            stop = 0
        groups[-1].append(span)
        stop = max(stop, span[1])
    return groups


def _is_aligned(array: np.ndarray, low: int) -> bool:
    """Whether all elements would be aligned in memory that has `low` at its start."""
    places = (array.__array_interface__["data"][0] - low, *array.strides)
    return not any(place % array.itemsize for place in places)


def _differ(device: Device, pairs: list[tuple[Any, Any]], why: str) -> list[bool]:
    """Whether the bytes of each pair of blocks differ: one wait for the device."""
    flags = []
    for a, b in pairs:
        if a.nbytes % 8 == 0:       # eight at a time
            a, b = (device.view(d, (d.nbytes // 8,), np.dtype(np.uint64), None, 0) for d in (a, b))
        flags.append((a != b).any())
    found = flags[0] if len(flags) == 1 else device.xp.stack(flags)
    return np.atleast_1d(transfer.to_host(device, found, why, "synchronise")).tolist()
