"""One call of a GPU function, with lazy, host or device arrays.

Its parts: `arguments` (to the device, and back where it was modified), `results` and `ownership`
(where a result belongs, and who holds it), `host_twin`; `fast_call` is the commonest call.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import devices
from ..errors import NotOnDevice
from ..errors.interrupts import from_handler
from ..functions.kinds import DEVICE, GPU, HOST, LAZY
from ..settings.options import current as current_options
from ..storage import places
from . import fast_call, generators
from .arguments import Arguments, Rules, opened
from .host_twin import on_host
from .parameters import rules_of
from .results import Results, at_once

Writes = tuple[str, ...] | None


def run(function: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: dict[str, Any], *, name: str,
        writes: Writes = (), host: Callable[..., Any] | None = None, signature: Callable[..., Any] | None = None,
        reason: str = "there is no such device function") -> Any:
    """One call of a function on device arrays, with lazy, host or device arrays.

    Parameters
    ----------
    function : callable or None
        The device function; None if there is none, so that `host` runs.
    args, kwargs : tuple, dict
        What it is called with.
    name : str
        How it is called in events, warnings and errors.
    writes : tuple of str or None
        The parameters that it modifies. None: it may modify any array that it is given.
    host : callable, optional
        The same function on NumPy arrays.
    signature : callable, optional
        Whose parameters `writes` names, if not those of `function`.
    reason : str
        Why there is no device function.

    Returns
    -------
    Any
        What the function returns, with lazy arrays in place of device arrays; as it is, if device arrays are
        all the arrays that the caller passed.
    """
    return call(function, args, kwargs, name, rules_of(signature or function or host, writes), host, reason)


def call(function: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: dict[str, Any], name: str, rules: Rules,
         host: Callable[..., Any] | None = None, reason: str = "") -> Any:
    """`run`, once it is known how the arguments are treated."""
    device = devices.current()
    arguments = None
    here = False        # what the host function raises is raised
    try:
        if function is None:
            raise NotOnDevice(reason)
        if host is not None and (unusable := device.usable()) is not None:
            raise NotOnDevice(unusable)
        if device.count == 1 or places.one_alone(device, (*args, *kwargs.values())):
            result = fast_call.run(device, function, args, kwargs, name, rules, host is not None)
            if result is not fast_call.SLOW:
                return result if current_options().lazy else at_once(result, (args, kwargs))
        arguments = Arguments(device, name, args, kwargs, rules)
        if host is None:
            return function(*args, **kwargs) if arguments.only_device else _on_device(function, arguments, False)
        here = small(arguments)
        if not here:
            return _on_device(function, arguments, True)
    except device.faults as error:
        device.failed(error)
        raise
    except NotOnDevice as error:
        if host is None:
            raise NotImplementedError(f"{name}: {error}") from None
        reason = str(error)
    except Exception as error:      # contract, point 4: whatever the device refuses, the host twin decides
        if host is None or from_handler(error):
            raise
        reason = f"{type(error).__name__} on the device: {error}"
    if here:
        return host(*args, **kwargs)    # type: ignore[misc]
    arguments = Arguments(device, name, args, kwargs, rules) if arguments is None else arguments
    return at_once(on_host(host, arguments, reason), (args, kwargs))


def small(arguments: Arguments) -> bool:
    """Whether all arrays are on the host, and have fewer bytes than it takes to go to the device."""
    limit = current_options().min_bytes
    return bool(limit) and arguments.kinds & (1 << HOST | 1 << LAZY | 1 << DEVICE | 1 << GPU) == 1 << HOST and sum(
        array.nbytes for array, _, _ in arguments.of_kind(HOST)) < limit


def _on_device(function: Callable[..., Any], arguments: Arguments, has_twin: bool) -> Any:
    device = arguments.device
    going_on = False
    try:
        with arguments.place():
            device_args, device_kwargs = arguments.convert(has_twin)
            results = Results(device, arguments.sources, arguments.back, arguments.copied)

            def run() -> list[Any]:
                try:
                    box = [function(*device_args, **device_kwargs)]
                except device.faults:
                    raise
                except Exception:       # whatever it was, the caller's arrays are as they were; it is raised again
                    arguments.restore()
                    raise
                if not generators.is_stepped(box[0]):
                    results.look(box)
                return box

            box = opened([arguments], run, has_twin=has_twin)
            if generators.is_stepped(box[0]):
                going_on = True
                return generators.drive(box[0], arguments)
            result = box[0] if arguments.only_device else results.wrap(box[0])
            arguments.close(results.wrap)
            return at_once(result, (arguments.args, arguments.kwargs))
    finally:
        if not going_on:
            device_args = device_kwargs = box = results = None      # so that who still holds a loan is the function
            arguments.let_go()
