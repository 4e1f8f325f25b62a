"""``cupy.testing``: comparisons, and arrays to test with."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...devices.simulated.execution import as_device, exports, wrap_new

COMPARED = ("assert_allclose assert_array_almost_equal assert_array_almost_equal_nulp assert_array_equal "
            "assert_array_less assert_array_max_ulp").split()


def on_host(value: Any) -> Any:
    """A value with host arrays in place of device arrays, in lists and tuples too."""
    if exports(value):
        return as_device(value).get()
    if hasattr(value, "_host"):         # sparse
        return value._host
    if isinstance(value, (list, tuple)):
        return type(value)([on_host(item) for item in value])
    return value


def _comparing(name: str) -> Callable[..., Any]:
    compare = getattr(np.testing, name)

    def check(x: Any, y: Any, *args: Any, strides_check: bool = False, **kwargs: Any) -> Any:
        x, y = on_host(x), on_host(y)
        result = compare(x, y, *args, **kwargs)
        if strides_check and x.strides != y.strides:
            raise AssertionError(f"strides differ: {x.strides} and {y.strides}")
        return result

    check.__name__ = name
    return check


def _assert_lists_equal(xlist: Any, ylist: Any, err_msg: str = "", verbose: bool = True) -> None:
    if type(xlist) is not type(ylist) or len(xlist) != len(ylist):
        raise AssertionError(f"{type(xlist)} of {len(xlist)} and {type(ylist)} of {len(ylist)} {err_msg}")
    for x, y in zip(xlist, ylist):
        np.testing.assert_array_equal(on_host(x), on_host(y), err_msg, verbose)


def _made(values: np.ndarray, xp: Any, dtype: Any, order: str = "C") -> Any:
    array = np.array(values.astype(dtype), order=order)  # type: ignore[call-overload]
    return array if xp is np else wrap_new(array)


def _counted(values: np.ndarray, xp: Any, dtype: Any, order: str = "C") -> Any:
    dtype = np.dtype(dtype)
    if dtype == "?":
        values = values % 2 == 0
    elif dtype.kind == "c":
        values = values + values * 1j
    return _made(values, xp, dtype, order)


def shaped_arange(shape: tuple[int, ...], xp: Any = None, dtype: Any = np.float32, order: str = "C") -> Any:
    """1, 2, 3 ... in a shape."""
    return _counted(np.arange(1, np.prod(shape, dtype=int) + 1).reshape(shape), xp, dtype, order)


def shaped_reverse_arange(shape: tuple[int, ...], xp: Any = None, dtype: Any = np.float32) -> Any:
    """... 3, 2, 1 in a shape."""
    return _counted(np.arange(np.prod(shape, dtype=int), 0, -1).reshape(shape), xp, dtype)


def shaped_linspace(start: Any, stop: Any, shape: Any, xp: Any = None, dtype: Any = np.float32) -> Any:
    """Evenly spaced numbers along the last axis of a shape."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    values = np.moveaxis(np.linspace(start, stop, shape[-1], dtype=dtype), 0, -1)
    return _counted(np.broadcast_to(values, shape), xp, dtype)


def shaped_random(shape: tuple[int, ...], xp: Any = None, dtype: Any = np.float32, scale: float = 10, seed: int = 0,
                  order: str = "C") -> Any:
    """Random numbers from 0 to `scale` (complex: plus those times 1j); booleans by chance."""
    rng, dtype = np.random.RandomState(seed), np.dtype(dtype)
    values = rng.randint(2, size=shape) if dtype == "?" else np.asarray(rng.rand(*shape) * scale)
    if dtype.kind == "c":
        values = values + 1j * rng.rand(*shape) * scale
    return _made(values, xp, dtype, order)


def generate_matrix(shape: tuple[int, ...], xp: Any = None, dtype: Any = np.float32, *,
                    singular_values: Any = None) -> Any:
    """Random matrices, with the given singular values."""
    if singular_values is None:
        raise TypeError("generate_matrix() missing 1 required keyword-only argument: 'singular_values'")
    rng = np.random.default_rng()
    values = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else 0)
    u, s, vh = np.linalg.svd(values, full_matrices=False)
    values = (u * np.broadcast_to(on_host(singular_values), s.shape)[..., None, :]) @ vh
    return _made(values, xp, dtype)


def members() -> dict[str, Any]:
    """Comparisons and arrays of ``cupy.testing``."""
    return {**{name: _comparing(name) for name in COMPARED}, "assert_array_list_equal": _assert_lists_equal,
            "assert_warns": np.testing.assert_warns, "shaped_arange": shaped_arange,
            "shaped_reverse_arange": shaped_reverse_arange, "shaped_linspace": shaped_linspace,
            "shaped_random": shaped_random, "generate_matrix": generate_matrix}
