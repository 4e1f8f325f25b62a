"""The warning that a function runs on the host: once for each function, at the user's line."""
from __future__ import annotations

from lazyarray.errors import HostFallbackWarning
from lazyarray.events.callers import warn_user
from lazyarray.settings.options import current

_warned: set[str] = set()


def warn_fallback(name: str, reason: str) -> None:
    """Warn that `name` runs on the host for `reason`: once per name and process, at the user's line."""
    if name in _warned or not current().warn_fallbacks:
        return
    if warn_user(f"{name} runs on the host: {reason}", HostFallbackWarning):
        _warned.add(name)  # not before: under an "error" filter the line above raises, and must do so again


def reset_warnings() -> None:
    """Let every function warn of its host fallback once more (for tests)."""
    _warned.clear()
