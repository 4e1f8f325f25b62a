"""Operands of the parity tests: the arrays that a recipe may name, by dtype and layout.

A recipe (see recipes.py) names its operands: ``x`` is a 3 by 4 array of the dtype under test in the layout
under test, ``v`` a vector, ``m`` a square matrix, and so on.  The same recipe is run on ndarrays and on lazy
arrays; ``Operands`` makes both, from the same seeded values, with a *factory* that turns a base ndarray into
the array to test.  A view of a layout is taken after the factory, so a strided lazy array is a view of a
lazy array.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

LAYOUTS = ("C", "F", "strided", "negative", "0-d", "empty", "broadcast")

#: What the device holds.  The first ten are the everyday ones and lead each selection.
DEVICE_DTYPES = ("f8", "i8", "f4", "?", "c16", "u1", "i4", "f2", "c8", "u8", "i1", "i2", "u2", "u4")

STRUCT = np.dtype([("a", "i4"), ("b", "f8")])

#: What lives on the host and still is a lazy array (contract, point 6).
HOST_DTYPES = ("M8[s]", "m8[s]", "S3", "U3", "O", "struct", "g", "T", ">f4", "G")


def dtype_of(code: str) -> np.dtype:
    """The dtype that a code of the tables above stands for."""
    if code == "struct":
        return STRUCT
    if code == "T":
        return np.dtypes.StringDType()
    return np.dtype(code)


#: name -> (logical shape, kind of values)
TYPED: dict[str, tuple[tuple[int, ...], str]] = {
    "x": ((3, 4), "any"),
    "y": ((3, 4), "any"),
    "t": ((2, 3, 4), "any"),
    "u": ((2, 3, 4), "any"),
    "v": ((6,), "any"),
    "w": ((6,), "any"),
    "m": ((4, 4), "any"),
    "n": ((4, 4), "any"),
    "k": ((4, 3), "any"),
    "row": ((4,), "any"),
    "col": ((3, 1), "any"),
    "s": ((), "any"),
    "p": ((3, 4), "positive"),
    "q": ((3, 4), "positive"),
    "pv": ((6,), "positive"),
    "unit": ((3, 4), "unit"),
    "nans": ((3, 4), "nans"),
    "nv": ((6,), "nans"),
    "few": ((3, 4), "few"),
    "fv": ((12,), "few"),
    "sv": ((6,), "sorted"),
    "spd": ((4, 4), "spd"),
    "stack": ((2, 4, 4), "spd"),
}

#: The same values as plain ndarrays in both runs: mixed operands.
HOSTED = {"hx": "x", "hy": "y", "hv": "v", "hw": "w", "hm": "m", "hrow": "row", "hp": "p"}


#: The same values as arrays of the device library, where the device holds the dtype.
ON_DEVICE = {"dx": "x", "dy": "y", "dv": "v"}


def _values(rng: np.random.Generator, shape: tuple[int, ...], kind: str, dtype: np.dtype) -> np.ndarray:
    # Multiples of 1/8 of small size: sums are exact in every float dtype from float32 on, so that a
    # difference in a result is a difference of the algorithm and not of the order of additions.
    size = int(np.prod(shape))
    if kind == "few":
        real = rng.integers(0, 3, size).astype("f8")
    elif kind == "positive":
        real = rng.integers(1, 6, size).astype("f8")
    elif kind == "unit":
        real = rng.integers(-7, 8, size) / 8
    else:
        real = rng.permutation(np.arange(-max(size // 2, 1) * 3, size * 3, 3)[: max(size, 1)])[:size] / 8
    if kind == "sorted":
        real = np.sort(real)
    code = dtype.kind
    if code in "iu" and kind == "any":
        real = real * 8
        if code == "u":
            real = real - real.min(initial=0)
    flat = _as_dtype(rng, real, kind, dtype)
    array = flat.reshape(shape)
    if kind == "spd" and code in "fc" and size and len(shape) > 1:
        array = array @ np.swapaxes(array.conj(), -1, -2) / 8 + 4 * np.eye(shape[-1])
        array = array.astype(dtype)
    return array


def _as_dtype(rng: np.random.Generator, real: np.ndarray, kind: str, dtype: np.dtype) -> np.ndarray:
    code = dtype.kind
    if code == "b":
        return real.astype("i8") % 2 == 0 if kind != "positive" else real > 2
    if code in "fiu":
        flat = real.astype(dtype) if code == "f" else np.trunc(real).astype("i8").astype(dtype)
        if kind == "sorted":
            flat = np.sort(flat)    # unsigned ones wrapped around
        if kind == "nans" and code == "f" and flat.size > 3:
            flat[[0, 1, 2]] = np.nan, -0.0, -np.inf
            if flat.size > 7:
                flat[[5, 7]] = np.nan, np.inf
        return flat
    if code == "c":
        imag = np.zeros_like(real) if kind in ("sorted", "few") else rng.integers(-9, 9, real.size) / 8
        flat = (real + 1j * imag).astype(dtype)
        if kind == "nans" and flat.size > 3:
            flat[[0, 1]] = complex(np.nan, 1), complex(1, np.nan)
        return flat
    if code in "mM":
        flat = (real * 8).astype("i8").astype(dtype)
        if kind == "nans" and flat.size > 3:
            flat[0] = np.dtype(dtype).type("NaT")
        return flat
    numbers = [int(value * 8) for value in real]
    if code in "SU":
        return np.array([str(value)[:3] for value in numbers] or [""], "U3").astype(dtype)[: real.size]
    if code == "O":
        return np.array([*numbers, None], dtype=object)[:-1]
    if code == "T":
        return np.array([str(value) for value in numbers] or [""], "U9").astype(dtype)[: real.size]
    return np.array([(value, value / 2) for value in numbers], dtype=dtype)


def shape_in(layout: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that an operand has in a layout: only 0-d and empty differ."""
    if layout == "0-d":
        return ()
    if layout == "empty":
        return tuple(0 if axis == 0 or length == shape[0] else length for axis, length in enumerate(shape))
    return shape


@functools.cache
def _base(name: str, code: str, layout: str) -> np.ndarray:
    shape, kind = TYPED[name]
    shape = shape_in(layout, shape)
    rng = np.random.default_rng(zlib.crc32(f"{name} {code}".encode()))
    dtype = dtype_of(code)
    if layout == "broadcast" and shape and kind not in ("spd", "sorted"):
        shape = shape[1:]
    values = _values(rng, shape, kind, dtype)
    if layout == "strided" and shape:
        base = np.zeros(tuple(2 * length for length in shape), dtype)
        base[tuple(slice(1, None, 2) for _ in shape)] = values
        return base
    if layout == "negative" and shape:
        return np.ascontiguousarray(values[tuple(slice(None, None, -1) for _ in shape)])
    return np.asfortranarray(values) if layout == "F" else values


def typed(factory: Callable[[np.ndarray], Any], name: str, code: str, layout: str) -> Any:
    """One typed operand, fresh."""
    array = factory(_base(name, code, layout).copy(order="K"))
    shape, kind = TYPED[name]
    if not shape or layout in ("C", "F", "0-d", "empty"):
        return array
    if layout == "strided":
        return array[tuple(slice(1, None, 2) for _ in shape)]
    if layout == "negative":
        return array[tuple(slice(None, None, -1) for _ in shape)]
    if kind in ("spd", "sorted"):
        return array
    return np.broadcast_to(array, shape)


def _mask(layout: str) -> np.ndarray:
    shape = shape_in(layout, (3, 4))
    return (np.arange(int(np.prod(shape))) % 3 != 1).reshape(shape)


def _filled(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    # A pattern, so that an out= that was not written, or was written in part, is seen.
    array = np.zeros(shape, dtype)
    if array.dtype.kind in "biufcmM":
        array[...] = 1
    return array


#: name -> ndarray by (dtype, layout): operands that do not take the dtype under test.
UNTYPED: dict[str, Callable[[np.dtype, str], np.ndarray]] = {
    "mask": lambda dtype, layout: _mask(layout),
    "vmask": lambda dtype, layout: np.array([True, False, True, True, False, True]),
    "i": lambda dtype, layout: np.array([2, 0, -1, 1]),
    "i2": lambda dtype, layout: np.array([[0, 1, -2], [2, 0, 1]]),
    "far": lambda dtype, layout: np.array([0, 99]),
    "near": lambda dtype, layout: np.array([0, -7]),
    "along0": lambda dtype, layout: np.array([[0, 2, 1, 1]]),
    "along1": lambda dtype, layout: np.array([[3, 0], [1, 1], [-1, 2]]),
    "weights": lambda dtype, layout: np.arange(12.0).reshape(3, 4) + 1,
    "wrow": lambda dtype, layout: np.array([1.0, 2.0, 0.5, 4.0]),
    "bits": lambda dtype, layout: np.array([[0, 255, 3], [7, 128, 65]], np.uint8),
    "counts": lambda dtype, layout: np.array([0, 3, 1, 1, 7, 3]),
    "shifts": lambda dtype, layout: np.array([0, 1, 2, 3]),
    "ox": lambda dtype, layout: _filled(shape_in(layout, (3, 4)), dtype),
    "of": lambda dtype, layout: _filled(shape_in(layout, (3, 4)), "f8"),
    # Cumulative functions make one dimension of none (and NumPy 2.4 crashes on a 0-d out= of theirs).
    "oacc": lambda dtype, layout: _filled(shape_in(layout, (3, 4)) or (1,), dtype),
    "ofacc": lambda dtype, layout: _filled(shape_in(layout, (3, 4)) or (1,), "f8"),
    "oc": lambda dtype, layout: _filled(shape_in(layout, (3, 4)), "c16"),
    "ob": lambda dtype, layout: _filled(shape_in(layout, (3, 4)), "?"),
    "oi": lambda dtype, layout: _filled(shape_in(layout, (3, 4)), "i8"),
    "orow": lambda dtype, layout: _filled((4,), dtype),
    "orowf": lambda dtype, layout: _filled((4,), "f8"),
    "orowi": lambda dtype, layout: _filled((4,), "i8"),
    "orowb": lambda dtype, layout: _filled((4,), "?"),
    "obad": lambda dtype, layout: _filled((5, 2), dtype),
    "days": lambda dtype, layout: np.array(["2011-07-01", "2011-07-02", "2011-07-18"], "M8[D]"),
    "words": lambda dtype, layout: np.array([["ab cd", " Ef"], ["", "x\ty"]]),
    "raw": lambda dtype, layout: np.array([[b"ab cd", b" Ef"], [b"", b"x\ty"]]),
    "text": lambda dtype, layout: np.array(["ab cd", " Ef", ""], np.dtypes.StringDType()),
    "wi": lambda dtype, layout: np.array([[2, 0], [1, 9]]),
    "rec": lambda dtype, layout: np.array([(1, 2.5), (2, 0.5), (2, 1.5)], [("a", "i8"), ("b", "f8")]),
    "rec2": lambda dtype, layout: np.array([(1, 7), (3, 8)], [("a", "i8"), ("c", "i4")]),
    "same": lambda dtype, layout: np.array([(1, 2), (3, 4)], [("a", "f8"), ("b", "f8")]),
}

#: Host ndarrays in both runs.
HOST_UNTYPED: dict[str, str] = {"hmask": "mask", "hof": "of", "hox": "ox", "hoacc": "oacc", "hi": "i"}


class Operands(dict):
    """The operands of one run, by name, made when a recipe asks for them.

    Parameters
    ----------
    factory
        Makes the array to test of a base ndarray (``numpy.asarray`` for the run that says what is right).
    code, layout
        Dtype and layout under test.
    to_device
        Makes an array of the device library of one of the factory's.
    """

    def __init__(
        self,
        factory: Callable[[np.ndarray], Any],
        code: str,
        layout: str,
        to_device: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__()
        self.factory, self.code, self.layout, self.to_device = factory, code, layout, to_device
        self.made: list[Any] = []
        self.arguments = 0
        self["dt"] = dtype_of(code)
        self["a"] = self._array
        self["h"] = self._host
        self["out"] = self._out

    def __missing__(self, name: str) -> Any:
        dtype = self["dt"]
        if name in TYPED:
            value = self._keep(typed(self.factory, name, self.code, self.layout))
        elif name in UNTYPED:
            value = self._keep(self.factory(UNTYPED[name](dtype, self.layout)))
        elif name in HOSTED:
            value = self._keep(np.array(typed(np.asarray, HOSTED[name], self.code, self.layout)))
        elif name in ON_DEVICE:
            value = typed(self.factory, ON_DEVICE[name], self.code, self.layout)
            if self.to_device is not None and self.code in DEVICE_DTYPES:
                value = self.to_device(value)
        elif name in HOST_UNTYPED:
            value = self._keep(UNTYPED[HOST_UNTYPED[name]](dtype, self.layout))
        elif name[:1] == "l" and name[1:] in TYPED:
            value = typed(np.asarray, name[1:], self.code, self.layout).tolist()
        else:
            raise KeyError(name)
        self[name] = value
        return value

    def _keep(self, array: Any) -> Any:
        self.made.append(array)
        return array

    def _array(self, values: Any, dtype: Any = None) -> Any:
        return self._keep(self.factory(np.array(values, dtype)))

    def _host(self, values: Any, dtype: Any = None) -> np.ndarray:
        return self._keep(np.array(values, dtype))

    def _out(self, shape: tuple[int, ...], dtype: Any = None) -> Any:
        return self._keep(self.factory(_filled(shape, self["dt"] if dtype is None else dtype)))


KNOWN = frozenset(
    (*TYPED, *UNTYPED, *HOSTED, *ON_DEVICE, *HOST_UNTYPED, "dt", "a", "h", "out", *("l" + name for name in TYPED))
)
