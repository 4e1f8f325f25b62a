"""JAX: its functions take lazy arrays and scalars where they take NumPy's.

JAX looks an argument's class up in three tables: what shape and dtype it has, which value with one of JAX's own dtypes
it stands for, and how its bytes get to JAX's devices. Each entry of ours is NumPy's, on a host alias; shape and dtype
alone copy nothing. ``jax.dlpack.from_dlpack(x)`` shares memory instead, and then must not be followed by writes to `x`.
The tables have no public name: should a version of JAX move them, its import says so.
"""
from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from lazyarray.array import LazyNdarray
from lazyarray.scalar import LazyScalar


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
