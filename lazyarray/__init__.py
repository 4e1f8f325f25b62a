"""NumPy arrays that stay on the GPU until something needs them on the host.

`asarray` makes a lazy array, and every NumPy function takes it. `trace` shows what was copied and why, `no_transfers`
forbids it, `options` holds the settings, and ``python -m lazyarray`` says which device was found.
"""
from __future__ import annotations

import gc as _gc
import os as _os
import sys as _sys
import types as _types
import typing as _typing

from lazyarray.errors.namesake import refuse as _refuse_namesake
from lazyarray.errors.subinterpreters import refuse as _refuse_subinterpreters

_refuse_namesake()
_refuse_subinterpreters()

# What an import makes stays: to look for garbage in it over and over took up to a quarter of the import's time, and to
# look once at its end a sixth. So it goes to the oldest generation at once, as if it had been looked at.
_collecting = _gc.isenabled()
_gc.disable()
try:
    from lazyarray.array.array import LazyNdarray
    from lazyarray.array.scalar import LazyScalar
    from lazyarray.dispatch.convert import asdevice, asnumpy, device, is_lazy, prefetch
    from lazyarray.errors import (
        DeviceUnavailableError,
        HostFallbackWarning,
        LazyArrayError,
        NotEnabledWarning,
        SimulatedDeviceWarning,
        TransferError,
    )
    from lazyarray.events.trace import no_transfers, trace
    from lazyarray.integrations import on_import as _on_import
    from lazyarray.settings.options import options

    if not _typing.TYPE_CHECKING:       # to them it is the same function, of which they know what it returns
        from lazyarray.dispatch.convert import asarray
finally:
    if _collecting:
        if _gc.get_freeze_count() < 1000:   # else somebody froze some, for a fork; Python itself freezes hundreds
            _gc.freeze()
            _gc.unfreeze()
        _gc.enable()

if _typing.TYPE_CHECKING:
    from lazyarray import numpy as numpy
    from lazyarray.array.conversion import asarray
    from lazyarray.dispatch.benchmark import benchmark
    from lazyarray.dispatch.location import memory_info, where
    from lazyarray.dispatch.ready import block_until_ready
    from lazyarray.integrations.lazy_module import lazy_module
    from lazyarray.integrations.routing.enable import disable, enable, enabled
    from lazyarray.wrapping.decorator import lazy

    testing: _types.ModuleType

__version__ = "0.1.0"

__all__ = [
    "DeviceUnavailableError",
    "HostFallbackWarning",
    "LazyArrayError",
    "LazyNdarray",
    "LazyScalar",
    "NotEnabledWarning",
    "SimulatedDeviceWarning",
    "TransferError",
    "asarray",
    "asdevice",
    "asnumpy",
    "benchmark",
    "block_until_ready",
    "device",
    "disable",
    "enable",
    "enabled",
    "is_lazy",
    "lazy",
    "lazy_module",
    "memory_info",
    "no_transfers",
    "options",
    "prefetch",
    "trace",
    "where",
]

# Imported when they are first asked for: many programs never do, and all pay for an import.
_LATER = {
    "benchmark": "lazyarray.dispatch.benchmark",
    "block_until_ready": "lazyarray.dispatch.ready",
    "disable": "lazyarray.integrations.routing.enable",
    "enable": "lazyarray.integrations.routing.enable",
    "enabled": "lazyarray.integrations.routing.enable",
    "lazy": "lazyarray.wrapping.decorator",
    "lazy_module": "lazyarray.integrations.lazy_module",
    "memory_info": "lazyarray.dispatch.location",
    "where": "lazyarray.dispatch.location",
}
#: Packages that need no import of their own.
_PACKAGES = ("numpy", "testing")


if not _typing.TYPE_CHECKING:      # type checkers know the names, and report others
    def __getattr__(name: str) -> _typing.Any:
        from importlib import import_module

        if name in _LATER:
            found = globals()[name] = getattr(import_module(_LATER[name]), name)
            return found
        if name in _PACKAGES:
            return import_module(f"{__name__}.{name}")
        import numpy

        text = f"module {__name__!r} has no attribute {name!r}"
        if name in numpy.__all__:
            text += f". NumPy's functions are in lazyarray.numpy: lazyarray.numpy.{name}"
        raise AttributeError(text, name=name, obj=_sys.modules[__name__])


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES, "__version__"])


# A package of ours has the name of NumPy's function: who asks for it is told where that is. Imports don't look here.
globals().pop("array", None)

_on_import.activate()     # last of all: what is imported already is registered with at once
if _os.environ.get("LAZYARRAY_ENABLE"):
    from lazyarray.integrations.routing.enable import from_environment as _enable_from_environment

    _enable_from_environment()


def load_ipython_extension(ipython: object) -> None:
    """``%load_ext lazyarray``: the magics ``%%lazy_trace``, ``%lazy_off`` and ``%lazy_on``."""
    from lazyarray.integrations import ipython as magics

    magics.load(ipython)


def unload_ipython_extension(ipython: object) -> None:
    """``%unload_ext lazyarray``."""
    from lazyarray.integrations import ipython as magics

    magics.unload(ipython)
