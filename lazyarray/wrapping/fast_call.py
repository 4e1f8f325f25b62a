"""The commonest calls of a GPU function, without ceremony: lazy arrays that are on the device already, and numbers; or
one NumPy array, which the function only reads, among them.

Whatever else there may be among arguments is for `arguments` to see to. Measured on the simulated device, microseconds
of a call with and without this file, arrays of 1,000 float64: of a pure function 7.8 and 11.2, of one that may modify
its argument 12.8 and 19.5, with ``writes=`` 15.5 and 22.0, with a NumPy array beside a lazy one 13.2 and 18.8.
"""
from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from ..functions.kinds import GENERIC, HOST, LAZY, OTHER, kind_of
from ..settings.options import current as current_options
from ..storage import handles, upload_cache
from ..storage.storage import Storage, write_all
from ..storage.writeable import may_write
from .arguments import READ, Arguments, Rules, in_one_memory
from .generators import drive, is_stepped
from .ownership import is_new
from .results import Copied, Results

if TYPE_CHECKING:
    from ..devices import Device

#: The call is another one.
SLOW = object()


def run(device: Device, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str,
        rules: Rules, has_twin: bool) -> Any:
    """Call a function and return its results as lazy arrays; or return SLOW, and have done nothing."""
    lazies: list[tuple[Any, Any, int]] = []
    modifies = False
    mirrored = []
    host: tuple[Any, np.ndarray] | None = None
    for slot, obj in chain(enumerate(args), kwargs.items()) if kwargs else enumerate(args):
        kind = kind_of(type(obj))
        if kind == LAZY:
            storage = obj._self_storage
            if type(storage) is not Storage:
                return SLOW
            if storage.mirror is not None:
                mirrored.append(storage)
            role = rules.role(slot)
            if role:
                if has_twin or not storage.clean:
                    return SLOW
                meta = handles.meta_of(obj)
                if not meta.size or not may_write(meta):
                    return SLOW
                modifies = True
            lazies.append((slot, obj, role))
        elif kind == HOST:
            # A read-only one may be there already, and of one that is given twice there is one copy.
            if (host is not None or type(obj) is not np.ndarray or not rules.hosts or rules.role(slot) != READ
                    or not obj.flags.writeable or not device.can_hold(obj.dtype)):
                return SLOW
            host = slot, obj
        elif kind != OTHER and kind != GENERIC:
            return SLOW
    if modifies and len(mirrored) > 1 and in_one_memory(mirrored):
        return SLOW
    if host is not None:
        few = has_twin and not lazies and host[1].nbytes < current_options().min_bytes
        if few or modifies or not all(x._self_storage.clean for _, x, _ in lazies):
            return SLOW
    return _call(device, function, args, kwargs, name, rules, lazies, modifies, host)


def _call(device: Device, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str,
          rules: Rules, lazies: list[tuple[Any, Any, int]], modifies: bool, host: tuple[Any, np.ndarray] | None) -> Any:
    device_args = list(args)
    device_kwargs = dict(kwargs) if kwargs else kwargs
    back = {}
    opened: list[Any] = []
    tokens: list[Any] = []
    for slot, x, role in lazies:
        array = handles.device_of(x, name)
        if role:
            opened.append((x._self_storage, handles.meta_of(x), array))
            array, token = device.lend(array)
            tokens.append((x._self_storage, weakref.ref(token)))
            del token
        back[id(array)] = x
        (device_args if type(slot) is int else device_kwargs)[slot] = array
    copied = []
    if host is not None:
        slot, passed = host
        array, kept = upload_cache.argument(device, passed, f"operand of {name}")
        copied.append(Copied(passed, array, kept=kept))
        back[id(array)] = passed
        (device_args if type(slot) is int else device_kwargs)[slot] = array
    array = None
    try:
        if modifies:
            box = write_all(opened, lambda: [function(*device_args, **device_kwargs)])
        else:
            box = [function(*device_args, **device_kwargs)]
        if type(box[0]) is device.array_type:
            if id(box[0]) in back:
                return back[id(box[0])]
            if is_new(device, box):
                return handles.fresh(device, box[0])
        if is_stepped(box[0]):
            arguments = Arguments(device, name, args, kwargs, rules)
            if host is None:
                arguments.convert(False)
            else:       # whose copy the function has
                arguments.sources += [x for _, x, _ in lazies]
                arguments.copied += copied
            arguments.back.update(back)
            arguments.given.update((id(a), a) for a in (*device_args, *device_kwargs.values()))     # kept until the end
            return drive(box[0], arguments)
        results = Results(device, [x for _, x, _ in lazies], back, copied)
        results.look(box)
        return results.wrap(box[0])
    finally:
        if modifies:
            device_args = device_kwargs = box = results = None      # so that who still holds a loan is the function
            for storage, token in tokens:
                if token() is not None:
                    storage.note_loan(token)
