"""Arrays that a kernel is to read along one shape, in every form that kernels have: for NumPy and for a device."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lazyarray.devices.cuda.kernels.launch_plan import VECTOR
from lazyarray.devices.program import Operand, Program, Step


class Walk(NamedTuple):
    """Operands that are read along `shape`; how the kernel for float32 reads them, and the elements of its packs."""

    shape: tuple[int, ...]
    operands: list[Any]
    reads: set[str]
    pack: int


def walks(xp: Any, dtype: np.dtype, seed: int = 0) -> dict[str, Walk]:
    """All of them, by name. In front of each there is another array, dense: the result."""
    random = np.random.default_rng(seed)

    def array(*shape: int) -> Any:
        values = random.uniform(-3, 3, shape) + (1j * random.uniform(-3, 3, shape) if dtype.kind == "c" else 0)
        return xp.asarray((abs(values) if dtype.kind == "u" else values).astype(dtype))

    a, cube, large = array(64, 48), array(20, 24, 32), array(70, 60)
    odd, line, sheet, box = array(33, 47), array(5003), array(131, 262), array(4, 33, 130)
    return {
        "row": Walk(a.shape, [a[0]], {"along"}, 4),
        "column": Walk(a.shape, [a[:, :1]], {"same"}, 4),
        "row and column": Walk(a.shape, [a[0], a[:, :1]], {"along", "same"}, 4),
        "one element": Walk(a.shape, [a[:1, :1]], {"same"}, 4),
        "one element, odd": Walk((33, 47), [odd[:1, :1]], {"same"}, 4),
        "all of it": Walk(a.shape, [a], {"flat"}, 4),
        "inside": Walk((64, 48), [large[1:65, 2:50], large[2:66, 1:49]], {"along"}, 1),
        "stencil": Walk((129, 250), [sheet[i:i + 129, j:j + 250] for i, j in ((1, 1), (1, 2), (0, 1))], {"any"}, 1),
        "stencil in a box": Walk((3, 30, 125), [*(box[i:i + 3, i:i + 30, i:i + 125] for i in (1, 0)), box[0, 1, :125],
                                                box[1:, :30, 1:126]], {"any"}, 1),
        "column and inside": Walk((129, 250), [sheet[:129, 7:8], sheet[:129, 5:255]], {"same", "along"}, 1),
        "rows of a wider one": Walk((64, 48), [large[:64, :48]], {"along"}, 4),
        "odd rows": Walk((64, 47), [a[0, 1:]], {"along"}, 1),
        "odd columns": Walk((33, 47), [odd[:, :1]], {"same"}, 1),
        "every other": Walk((64, 24), [a[:, ::2]], {"any"}, 1),
        "every third of a line": Walk((1668,), [line[::3]], {"any"}, 1),
        "the end of a line": Walk((5002,), [line[1:]], {"flat"}, 1),
        "backwards": Walk((64, 48), [a[:, ::-1]], {"any"}, 1),
        "backwards along a line": Walk((5003,), [line[::-1]], {"any"}, 1),
        "transposed": Walk((48, 64), [a.T], {"tile"}, 1),
        "transposed, large": Walk((257, 131), [array(131, 257).T], {"tile"}, 1),
        "transposed, large, last axes": Walk((2, 130, 259), [array(2, 259, 130).transpose(0, 2, 1)], {"tile"}, 1),
        "transposed, odd": Walk((47, 33), [odd.T], {"tile"}, 1),
        "two transposed": Walk((48, 64), [a.T, array(64, 48).T, array(64, 96)[:, ::2].T], {"tile", "any"}, 1),
        "transposed beside a row": Walk((48, 64), [a.T, array(64)], {"tile", "any"}, 1),
        "few rows transposed": Walk((4, 64), [a.T[:4]], {"any"}, 1),
        "axes turned": Walk((32, 24, 20), [cube.T], {"tile"}, 1),
        "last axes turned": Walk((20, 32, 24), [cube.transpose(0, 2, 1)], {"tile"}, 1),
        "first axes turned": Walk((24, 20, 32), [cube.transpose(1, 0, 2)], {"along"}, 4),
        "first axis last": Walk((24, 32, 20), [cube.transpose(1, 2, 0)], {"tile"}, 1),
        "last axis first": Walk((32, 20, 24), [cube.transpose(2, 0, 1)], {"tile"}, 1),
        "planes": Walk(cube.shape, [cube[0], cube[:, :1, :1]], {"along", "same"}, 4),
        "four axes": Walk((4, 5, 24, 16), [cube.reshape(4, 5, 24, 32)[..., ::2], cube[0, :, :1]], {"any", "same"}, 1),
        "one row": Walk((1, 48), [a[:1, ::-1]], {"any"}, 1),
        "no axes": Walk((), [array()], {"same"}, 4),
    }


def starts_at_boundaries(array: Any) -> bool:
    """Whether a NumPy array begins at a multiple of a pack's bytes from where its base begins."""
    base = array if array.base is None else array.base
    return (array.ctypes.data - base.ctypes.data) % VECTOR == 0


def program_of(xp: Any, dtype: np.dtype, count: int, ndim: int, mode: str = "strided") -> Program:
    """The greatest of `count` operands and a dense one, and whether it is the dense one."""
    inputs = tuple(Operand(dtype, mode) for _ in range(count)) + (Operand(dtype, "flat"),)
    largest = Step("maximum", getattr(xp, "maximum", None), (dtype, dtype), dtype)
    differs = Step("not_equal", getattr(xp, "not_equal", None), (dtype, dtype), np.dtype(bool))
    steps = [(largest, (i - 1 if i == 1 else count + i - 1, i)) for i in range(1, count + 1)]
    last = len(inputs) + len(steps) - 1
    return Program(inputs, (*steps, (differs, (last, count))), (last, last + 1), ndim)
