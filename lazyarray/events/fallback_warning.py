"""The warning that a function runs on the host: once for each function, at the user's line."""
from __future__ import annotations

from collections.abc import Callable

from lazyarray.errors import HostFallbackWarning
from lazyarray.events.callers import warn_user
from lazyarray.settings.options import current

_warned: set[str] = set()

#: What there is to be done about the fallback of a function, or "": `integrations/hints.py` adds itself.
remedies: list[Callable[[str], str]] = []


def warn_fallback(name: str, reason: str) -> None:
    """Warn that `name` runs on the host for `reason`: once per name and process, at the user's line."""
    if name in _warned or not current().warn_fallbacks:
        return
    advice = "".join(remedy(name) for remedy in remedies)
    text = f"{name} runs on the host: {reason}" + (f". To run it on the device, {advice}" if advice else "")
    if warn_user(text, HostFallbackWarning):
        _warned.add(name)  # not before: under an "error" filter the line above raises, and must do so again


def reset_warnings() -> None:
    """Let every function warn of its host fallback once more (for tests)."""
    _warned.clear()
