"""What a call gives, an error included."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any


def told(work: Callable[[], Any]) -> Any:
    """A result, or the type of the error."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001  NumPy's is compared
        return type(error)
