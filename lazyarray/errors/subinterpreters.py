"""Refuse to be imported in a sub-interpreter, before NumPy is: it fails there in ways of its own, or later."""
from __future__ import annotations

from importlib import import_module

__all__ = ["refuse"]


def refuse() -> None:
    """Raise ImportError in an interpreter that is not the main one of its process."""
    try:
        interpreters = import_module("_interpreters")
    except ImportError:     # before Python 3.13
        interpreters = import_module("_xxsubinterpreters")
    if interpreters.get_current() != interpreters.get_main():
        raise ImportError("lazyarray can't be imported in a sub-interpreter, which NumPy does not support. Import it "
                          "in the main interpreter, or start a process with multiprocessing.")
