"""scikit-image: its functions on the device, and the backend that it finds by itself.

The entry point ``lazyarray.integrations.skimage:backend.toml`` names the file of that name in this folder to spatch,
and the attribute `toml` of `backend` to Python.
"""
from __future__ import annotations

from . import backend

__all__ = ["backend"]
