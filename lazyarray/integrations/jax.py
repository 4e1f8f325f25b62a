"""JAX: its functions take lazy arrays and scalars where they take NumPy's.

JAX looks up an argument's class in three tables: its shape and dtype, the value with one of JAX's own dtypes that it
stands for, and how its bytes get to JAX's devices. Our entries are NumPy's, on a host alias; shape and dtype alone copy
nothing. ``jax.dlpack.from_dlpack(x)`` shares memory instead: do not write to `x` after it. The tables are private: a
version of JAX that moves them is reported by a warning of the logger.
"""
from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from lazyarray.array.array import LazyNdarray
from lazyarray.array.scalar import LazyScalar


def register(jax: ModuleType) -> None:
    """Put lazy arrays and scalars into JAX's tables of array types."""
    from jax._src import core, dtypes
    from jax._src.interpreters import pxla

    send = pxla.shard_arg_handlers[np.ndarray]

    def shard_args(arrays: Any, *how: Any) -> Any:
        return send([np.asarray(x) for x in arrays], *how)

    for kind in (LazyNdarray, LazyScalar):
        core.pytype_aval_mappings[kind] = core.pytype_aval_mappings[np.ndarray]
        dtypes.canonicalize_value_handlers[kind] = lambda x: dtypes.canonicalize_value(np.asarray(x))
        pxla.shard_arg_handlers[kind] = shard_args
