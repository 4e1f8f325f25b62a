"""Recorded work that still waits at the end of a process is computed while kernels can be made.

After the exit handlers Python takes its modules apart, and what compiles kernels can import nothing any more. But
finalisers that run then may read arrays. Handlers that a program registers are called before this one.
"""
from __future__ import annotations

from . import waiting

__all__ = ["compute"]


def compute() -> None:
    """Have the work computed that waits; what fails is left to whoever asks for it."""
    for storage in waiting.waiting():
        device = storage.device
        if device.usable() is not None:
            return
        try:
            storage.fill()
        except device.faults:
            return
