"""What to raise for a variable of the environment with a value that can't be used."""
from __future__ import annotations

import sys

__all__ = ["unusable"]


def unusable(text: str) -> BaseException:
    """The error to raise: ValueError, or in ``python -m lazyarray`` the end of the process with one line, this text.

    That command imports the package, which may look at the environment, before any of its own code can handle errors.
    """
    # Python replaces this word by the path of the file as soon as that has been found.
    return SystemExit(text) if getattr(sys, "argv", [])[:1] == ["-m"] else ValueError(text)
