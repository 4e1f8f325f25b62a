"""The warning that a function runs on the host: once for each function, at the user's line."""
from __future__ import annotations

import warnings

from lazyarray.callers import user_frame
from lazyarray.errors import HostFallbackWarning
from lazyarray.options import current

_warned: set[str] = set()


def warn_fallback(name: str, reason: str) -> None:
    """Warn that `name` runs on the host for `reason`: once per name and process, at the user's line.

    A filter that makes errors of warnings in general says nothing of where code runs: only one that names
    `HostFallbackWarning`, or this message, makes an exception of it. Under any other one it is not given.
    """
    if name in _warned or not current().warn_fallbacks:
        return
    frame = user_frame()
    message, lineno = f"{name} runs on the host: {reason}", frame.f_lineno
    module = frame.f_globals.get("__name__") or "<unknown>"
    if _error_in_general(message, module, lineno):
        return
    warnings.warn_explicit(
        message,
        HostFallbackWarning,
        frame.f_code.co_filename,
        lineno,
        module=module,
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )
    _warned.add(name)  # not before: under an "error" filter the line above raises, and must do so again


def _error_in_general(text: str, module: str, lineno: int) -> bool:
    """Whether the first filter that matches a fallback's warning is "error", and names neither it nor its words."""
    filters = warnings._get_filters() if hasattr(warnings, "_get_filters") else warnings.filters  # Python 3.14 has one
    for action, message, category, place, line in filters:
        if (
            issubclass(HostFallbackWarning, category)
            and (message is None or message.match(text))
            and (place is None or place.match(module))
            and line in (0, lineno)
        ):
            return action == "error" and message is None and category is not HostFallbackWarning
    return False


def reset_warnings() -> None:
    """Let every function warn of its host fallback once more (for tests)."""
    _warned.clear()
