"""Rows copied by one kernel: taken from positions, put at positions, those of several arrays joined, rolled or padded.

CuPy does these with general kernels and as much Python around them: of arrays of a few KiB, taking takes 26 us, putting
50, rolling 34 and joining three 50 (one launch for each array), where a launch takes 10. Words are copied as they are:
nothing here depends on the dtype, and the few functions are compiled together.
"""
from __future__ import annotations

import functools
import math
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ....errors.inspection import Unique
from ...operations import PADDINGS, in_place_of
from ..products import one_step
from .boolean_mask import WORDS
from .elementwise import Kernels, Launcher, functions

__all__ = ["MOST_AXES", "MOST_PARTS", "SOURCE", "Rows"]

#: Of a block; and blocks at most, each of which goes on in steps of all.
THREADS, MOST_BLOCKS = 256, 1 << 13
#: Axes that positions are along, and arrays that are joined, at most.
MOST_AXES, MOST_PARTS = 3, 8

_TEXT = """
// Where a row is, in words. Positions out of range wrap around, so that no other memory is read or written. Without an
// array the row's number is the position.
__device__ inline long long lz_place(const long long row, const void* at, const bool wide, const long long length,
    const long long step) {
  if (at == 0) return row * step;
  long long p = wide ? static_cast<const long long*>(at)[row] : static_cast<const int*>(at)[row];
  if (p < 0) p += length;
  if (p < 0 || p >= length) {
    p %= length;
    if (p < 0) p += length;
  }
  return p * step;
}

// Division of 32 bits takes a fifth of the time.
__device__ inline long long lz_row(const long long i, const long long total, const long long words) {
  if (words == 1) return i;
  return total >> 32 ? i / words : (unsigned int)i / (unsigned int)words;
}

// Which of n rows belongs to place k, which may be before the first or behind the last; -1: none.
__device__ inline long long lz_within(const long long k, const long long n, const unsigned int mode) {
  if (k >= 0 && k < n) return k;
  if (mode == EDGE) return k < 0 ? 0 : n - 1;
  if (mode == WRAP) return k < 0 ? k + n : k - n;
  if (mode == REFLECT) return k < 0 ? -k : 2 * (n - 1) - k;
  if (mode == SYMMETRIC) return k < 0 ? -1 - k : 2 * n - 1 - k;
  return -1;
}
"""

# Positions lie in lines and columns: how many elements of each array lie between one line and the next, and between
# columns.
_GRID = ", const long long columns, const unsigned int wide" + "".join(
    f", const void* at{k}, const long long length{k}, const long long step{k}, const long long down{k}, "
    f"const long long along{k}" for k in range(MOST_AXES))
_PLACE = " + ".join(f"lz_place(line * down{k} + column * along{k}, at{k}, wide >> {k} & 1u, length{k}, step{k})"
                    for k in range(MOST_AXES))
_LINE = "const long long line = lz_row(row, rows, columns), column = row - line * columns;"

_CHOICE = "\n  ".join([
    f"if (part == {k}) {{ from = from{k}; begin = end{k - 1}; end = end{k}; width = width{k}; pitch = pitch{k}; "
    f"each = each{k}; }}" for k in range(1, MOST_PARTS)])
_PARTS = "".join(f", const WORD* from{k}, const long long end{k}, const long long width{k}, const long long pitch{k}, "
                 f"const long long each{k}" for k in range(MOST_PARTS))

_COPY = f"""
// Of each of `outer` parts, which begin `above` words one after the other, the rows. All parts' first rows come first.
extern "C" __global__ void __launch_bounds__(THREADS) take_BYTES(const WORD* from, WORD* to, const long long rows,
    const long long words, const long long outer, const long long above{_GRID}) {{
  const long long total = rows * outer * words;
  for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < total; i += (long long)gridDim.x * THREADS) {{
    const long long one = lz_row(i, total, words), row = lz_row(one, total, outer);
    {_LINE}
    to[i] = from[(one - row * outer) * above + {_PLACE} + i - one * words];
  }}
}}

// from: null for one value, of the bytes low and high and `each` words. Else `each` is the number of words from one row
// of it to the next, and `aside` from one part to the next. order: which row of it belongs to each row, or null.
extern "C" __global__ void __launch_bounds__(THREADS) put_BYTES(WORD* to, const WORD* from, const long long each,
    const long long aside, const int* order, const unsigned long long low, const unsigned long long high,
    const long long rows, const long long words, const long long outer, const long long above{_GRID}) {{
  const long long total = rows * outer * words;
  const unsigned long long bytes[2] = {{low, high}};
  for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < total; i += (long long)gridDim.x * THREADS) {{
    const long long one = lz_row(i, total, words), word = i - one * words;
    const long long part = outer == 1 ? 0 : lz_row(one, total, rows), row = one - part * rows;
    {_LINE}
    WORD value;
    if (from == 0) memcpy(&value, reinterpret_cast<const char*>(bytes) + word % each * sizeof(WORD), sizeof(WORD));
    else value = from[part * aside + (order == 0 ? row : order[row]) * each + word];
    to[part * above + {_PLACE} + word] = value;
  }}
}}

// Each array has every so manyth block. end: where in a row of the result that of each array ends. An array in C order
// has no width. Others are walked in lines of `width` words: each from one to the next, and pitch from one line to the
// next.
extern "C" __global__ void __launch_bounds__(THREADS) join_BYTES(WORD* to, const long long rows,
    const long long words, const unsigned int arrays{_PARTS}) {{
  const unsigned int part = blockIdx.x % arrays;
  const WORD* from = from0;
  long long begin = 0, end = end0, width = width0, pitch = pitch0, each = each0;
  {_CHOICE}
  const long long own = end - begin, total = rows * own, all = (long long)(gridDim.x / arrays) * THREADS;
  to += begin;
  for (long long i = (long long)(blockIdx.x / arrays) * THREADS + threadIdx.x; i < total; i += all) {{
    const long long row = lz_row(i, total, own);
    long long at = i;
    if (width != 0) {{
      const long long line = lz_row(i, total, width);
      at = line * pitch + (i - line * width) * each;
    }}
    to[row * words + i - row * own] = from[at];
  }}
}}

// Parts of `length` rows, each of which comes `shift` places further on; `above`, `step` and `along`: words from one
// part, one row, one column to the next.
extern "C" __global__ void __launch_bounds__(THREADS) roll_BYTES(const WORD* from, WORD* to, const long long total,
    const long long columns, const long long length, const long long shift, const long long above,
    const long long step, const long long along) {{
  for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < total; i += (long long)gridDim.x * THREADS) {{
    const long long one = lz_row(i, total, columns), part = lz_row(one, total, length);
    const long long row = one - part * length - shift;
    to[i] = from[part * above + (row < 0 ? row + length : row) * step + (i - one * columns) * along];
  }}
}}

// An array of n0 * n1 * n2 rows of `words`, and its place among the m1 * m2 rows that belong to each of the first axis.
// Around it, by `mode`, come its own rows, or the bytes low and high.
extern "C" __global__ void __launch_bounds__(THREADS) pad_BYTES(const WORD* from, WORD* to, const long long total,
    const long long words, const long long n0, const long long n1, const long long n2, const long long m1,
    const long long m2, const long long b0, const long long b1, const long long b2, const unsigned int mode,
    const unsigned long long low, const unsigned long long high) {{
  const unsigned long long bytes[2] = {{low, high}};
  for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < total; i += (long long)gridDim.x * THREADS) {{
    const long long row = lz_row(i, total, words), one = lz_row(row, total, m2), two = lz_row(one, total, m1);
    const long long x = lz_within(two - b0, n0, mode), y = lz_within(one - two * m1 - b1, n1, mode);
    const long long z = lz_within(row - one * m2 - b2, n2, mode);
    if (x < 0 || y < 0 || z < 0) memcpy(&to[i], bytes, sizeof(WORD));
    else to[i] = from[((x * n1 + y) * n2 + z) * words + i - row * words];
  }}
}}
"""

# The numbers of elements.
_NUMBERS = f"""
extern "C" __global__ void __launch_bounds__(THREADS) number(long long* to, const long long rows{_GRID}) {{
  for (long long row = (long long)blockIdx.x * THREADS + threadIdx.x; row < rows;
       row += (long long)gridDim.x * THREADS) {{
    {_LINE}
    to[row] = {_PLACE};
  }}
}}
"""

_MODES = "".join(f"#define {mode.upper()} {number}\n" for number, mode in enumerate(PADDINGS))

SOURCE = f"#define THREADS {THREADS}\n{_MODES}{_TEXT}" + "".join(
    _COPY.replace("BYTES", str(size)).replace("WORD", word) for size, word in WORDS.items()) + _NUMBERS


class _Copying(NamedTuple):
    """The compiled kernels, by the bytes of a word."""

    takes: dict[int, Launcher]
    puts: dict[int, Launcher]
    joins: dict[int, Launcher]
    rolls: dict[int, Launcher]
    pads: dict[int, Launcher]
    number: Launcher


def _made(cupy: Any, name: str) -> _Copying:
    grid = "qI" + "Qqqqq" * MOST_AXES
    kinds = (("take", "QQqqqq" + grid), ("put", "QQqqQQQqqqq" + grid), ("join", "QqqI" + "Qqqqq" * MOST_PARTS),
             ("roll", "QQqqqqqqq"), ("pad", "QQqqqqqqqqqqIQQ"))
    names = *[f"{kind}_{size}" for kind, _ in kinds for size in WORDS], "number"
    found = iter(functions(cupy, SOURCE, names))
    copying = [{size: Launcher(cupy, next(found), list(formats)) for size in WORDS} for _, formats in kinds]
    return _Copying(*copying, Launcher(cupy, next(found), list("Qq" + grid)))


def _word(*numbers: int) -> int:
    """The bytes of the widest word that begins and ends at multiples of all these."""
    bits = max(WORDS)
    for number in numbers:
        bits |= number
    return bits & -bits


def _blocks(words: int) -> int:
    return min(-(-words // THREADS), MOST_BLOCKS)


class Rows(Unique):
    """Launches the kernels on the current stream."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels, self._ndarray = kernels, kernels.cupy.ndarray

    def _compiled(self) -> _Copying | None:
        return self._kernels.find(("rows",), _made)

    def take(self, view: Any, positions: Sequence[Any], axis: int = 0) -> Any | None:
        """`Device.take_at`, or None: then the kernels are being compiled, or do not take such arrays."""
        grid, shape = _fit(view, positions, axis), view.shape
        if grid is None or (kernels := self._compiled()) is None:
            return None
        common, front, rest = grid.shape, shape[:axis], shape[axis + len(positions):]
        rows = math.prod(common)
        row = math.prod(rest) * view.itemsize
        result = self._ndarray((*common, *front, *rest), view.dtype)
        steps = _distances(view, row, axis, len(positions))
        word = _word(row, *steps, view.data.ptr)
        words, outer = row // word, math.prod(front)
        begin, axes = _axes(view.shape, positions, steps, word, axis, grid)
        kernels.takes[word](_blocks(rows * outer * words), THREADS, [
            view.data.ptr + begin * word, result, rows, words, outer, steps[0] // word * shape[axis], *axes])
        return in_place_of(result, axis, len(common)) if axis else result

    def put(self, view: Any, positions: Sequence[Any], values: Any, order: Any, axis: int = 0) -> bool:
        """`Device.put_at`, or False as of `take`."""
        grid, shape = _fit(view, positions, axis), view.shape
        if grid is None or values.dtype != view.dtype:
            return False
        common, front, rest = grid.shape, shape[:axis], shape[axis + len(positions):]
        rows = math.prod(common)
        row = math.prod(rest) * view.itemsize
        steps = _distances(view, row, axis, len(positions))
        low = high = each = aside = 0
        if isinstance(values, np.generic):
            if (each := view.itemsize) not in WORDS:
                return False
            memory, word = values.tobytes(), _word(each, *steps, view.data.ptr)
            low, high = (int.from_bytes(memory[part:part + 8], sys.byteorder) for part in (0, 8))
            values = 0
        else:
            if values.shape == (*front, *common, *rest):
                apart = _apart(values, axis, len(common), row, rows)
                if apart is None:
                    return False
                aside, each = apart
            elif axis or values.shape != rest or order is not None or not values._c_contiguous:
                return False
            word = _word(row, *steps, view.data.ptr, values.data.ptr, each, aside)
        if (kernels := self._compiled()) is None:
            return False
        words, outer = row // word, math.prod(front)
        begin, axes = _axes(shape, positions, steps, word, axis, grid)
        kernels.puts[word](_blocks(rows * outer * words), THREADS, [
            view.data.ptr + begin * word, values, each // word, aside // word, 0 if order is None else order, low, high,
            rows, words, outer, steps[0] // word * shape[axis], *axes])
        return True

    def roll(self, view: Any, shift: int, axis: int) -> Any | None:
        """`Device.rolled`, or None as of `take`."""
        shape, strides, size = view.shape, view.strides, view.itemsize
        above, along = one_step(shape[:axis], strides[:axis]), one_step(shape[axis + 1:], strides[axis + 1:])
        if not view.size or above is None or along is None:
            return None
        columns, length, step = math.prod(shape[axis + 1:]), shape[axis], strides[axis]
        if columns == 1 or along == size:       # a row lies beside itself
            word = _word(columns * size, step, above, view.data.ptr)
            columns, along = columns * size // word, word
        else:
            word = _word(size, step, above, along, view.data.ptr)
            if word < size:
                return None
        if (kernels := self._compiled()) is None:
            return None
        result = self._ndarray(shape, view.dtype)
        total = result.nbytes // word
        kernels.rolls[word](_blocks(total), THREADS, [
            view, result, total, columns, length, shift % length, above // word, step // word, along // word])
        return result

    def pad(self, array: Any, pairs: Sequence[Sequence[int]], mode: str, value: np.generic) -> Any | None:
        """`Device.padded`, or None as of `take`. Of more than three axes in a row, the last two alone are padded."""
        lengths, size = array.shape, array.itemsize
        shape = tuple([before + length + behind for (before, behind), length in zip(pairs, lengths)])
        some = [axis for axis, pair in enumerate(pairs) if any(pair)] or [0]
        last = some[-1]
        inner = math.prod(lengths[last + 1:])
        if last > 2:        # the axes in front of the last two as one
            lengths, pairs = (math.prod(lengths[:last - 1]), *lengths[last - 1:]), ((0, 0), *pairs[last - 1:])
        if not array.size or size not in WORDS or (last > 2 and some[0] < last - 1) or (
                kernels := self._compiled()) is None:
            return None
        axes = min(last, 2) + 1
        sides = [*[before for before, _ in pairs[:axes]], 0, 0][:3]
        widths = [*shape[:last + 1][max(last - 1, 1):], 1, 1][:2]
        memory, result = value.tobytes(), self._ndarray(shape, array.dtype)
        low, high = (int.from_bytes(memory[part:part + 8], sys.byteorder) for part in (0, 8))
        kernels.pads[size](_blocks(result.size), THREADS, [
            array, result, result.size, inner, *[*lengths[:axes], 1, 1][:3], *widths, *sides, PADDINGS.index(mode), low,
            high])
        return result

    def number(self, positions: Sequence[Any], lengths: Sequence[int]) -> Any | None:
        """`Device.numbered`, or None as of `take`."""
        fits = len(positions) <= MOST_AXES and all(type(p) is self._ndarray for p in positions)
        grid = _grid_of(positions) if fits else None
        if grid is None or (kernels := self._compiled()) is None:
            return None
        result = self._ndarray(grid.shape, np.int64)
        steps = [math.prod(lengths[k + 1:]) for k in range(len(lengths))]
        _, axes = _axes(lengths, positions, steps, 1, 0, grid)
        kernels.number(_blocks(result.size), THREADS, [result, result.size, *axes])
        return result

    def join(self, arrays: Sequence[Any], axis: int) -> Any | None:
        """`Device.joined`, or None as of `take`."""
        first = arrays[0]
        shape, dtype = list(first.shape), first.dtype
        if not 1 < len(arrays) <= MOST_PARTS:
            return None
        size = first.itemsize
        rows, row = math.prod(shape[:axis]), math.prod(shape[axis + 1:]) * size
        ends, lines, end, bits = [], [], 0, 0
        for array in arrays:
            other, line = array.shape, (0, 0, 0)
            if array.dtype != dtype or other != first.shape and (
                    len(other) != len(shape) or other[:axis] != first.shape[:axis]
                    or other[axis + 1:] != first.shape[axis + 1:]):
                return None
            if not array._c_contiguous:
                found = _lines(other, array.strides, size)
                if found is None:
                    return None
                width, pitch, each = line = found
                bits |= pitch | (width if each == size else size | each)
            nbytes = array.shape[axis] * row
            end += nbytes
            ends.append(end)
            lines.append(line)
            bits |= nbytes | array.data.ptr
        if not end * rows or (kernels := self._compiled()) is None:
            return None
        word = _word(bits)
        if word < size and any(line[0] and line[2] != size for line in lines):
            return None
        shape[axis] = sum([array.shape[axis] for array in arrays])
        result = self._ndarray(tuple(shape), dtype)
        words = end // word
        parts: list[Any] = []
        for array, end, (width, pitch, each) in zip(arrays, ends, lines):
            parts += array, end // word, width // word, pitch // word, 1 if each == size else each // word
        longest = max(array.nbytes for array in arrays) // word
        blocks = min(-(-longest // THREADS), MOST_BLOCKS // len(arrays)) * len(arrays)
        kernels.joins[word](blocks, THREADS, [
            result, rows, words, len(arrays), *parts, *(0, words, 0, 0, 0) * (MOST_PARTS - len(arrays))])
        return result


@functools.lru_cache(1024)
def _lines(shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> tuple[int, int, int] | None:
    """The elements of an array, of `size` bytes each, in C order, as lines: bytes of a line, from one line to the next,
    and from one element to the next; None if they lie in no such way.
    """
    for split in range(len(shape)):
        down, along = one_step(shape[:split], strides[:split]), one_step(shape[split:], strides[split:])
        if down is not None and along is not None:
            return math.prod(shape[split:]) * size, down, along
    return None


class Grid(NamedTuple):
    """The shape that positions are broadcast to, seen as lines of so many columns; and for each array, how many
    elements lie between one line and the next, and between columns. A range is taken for an array of its numbers.
    """

    shape: tuple[int, ...]
    columns: int
    ways: list[tuple[int, int]]


def _fit(view: Any, positions: Sequence[Any], axis: int) -> Grid | None:
    """Where the positions are, if the kernels take them: of an array in C order, or one whose axes behind those of the
    positions are, which are the first then. Neither is empty.
    """
    count = len(positions)
    if count > MOST_AXES or not view.size or not (view._c_contiguous or axis == 0 and _is_beside(view, count)):
        return None
    return _grid_of(positions)


def _grid_of(positions: Sequence[Any]) -> Grid | None:
    """Where positions are, of 32 or 64 bits; None if there are none, or they can't be seen so."""
    forms: list[Any] = []
    even = True
    for p in positions:
        if type(p) is range:
            forms.append(((len(p),), (1,), 1))
        elif type(p) is int:
            forms.append(((), (), 1))
        elif p.dtype.char not in "ilq" or not p.dtype.isnative:
            return None
        else:
            forms.append((p.shape, p.strides, p.itemsize))
            even = even and p._c_contiguous
    shape = forms[0][0]
    if even and 0 not in shape and all(form[0] == shape or not form[1] for form in forms):
        return Grid(shape, 1, [(1 if form[1] else 0, 0) for form in forms])     # most are, and their sizes are many
    return _grid(tuple(forms))


def _is_beside(view: Any, first: int) -> bool:
    """Whether the axes from one on lie in C's order, without gaps."""
    rest = view.shape[first:]
    return math.prod(rest) == 1 or one_step(rest, view.strides[first:]) == view.itemsize    # type: ignore[no-any-return]


@functools.lru_cache(4096)
def _grid(arrays: tuple[tuple[tuple[int, ...], tuple[int, ...], int], ...]) -> Grid | None:
    """`_grid_of` arrays: (shape, strides, bytes of an element)."""
    try:
        shape = np.broadcast_shapes(*[array[0] for array in arrays])
    except ValueError:
        return None
    if 0 in shape:
        return None
    for split in range(len(shape), -1, -1):     # the first is one line for each: what lies evenly
        ways = []
        for own, strides, itemsize in arrays:
            steps = [0] * (len(shape) - len(own)) + [0 if n == 1 else stride for n, stride in zip(own, strides)]
            down, along = (one_step(shape[part], steps[part]) for part in (slice(split), slice(split, None)))
            if down is None or along is None or down % itemsize or along % itemsize:
                break
            ways.append((down // itemsize, along // itemsize))
        else:
            return Grid(shape, math.prod(shape[split:]), ways)
    return None


def _apart(values: Any, axis: int, ndim: int, row: int, rows: int) -> tuple[int, int] | None:
    """Bytes of values from one part to the next, and from one row to the next; None if these are no such, or a row is
    not beside itself.
    """
    if values._c_contiguous:
        return row * rows, row
    shape, strides = values.shape, values.strides
    aside, each, along = [one_step(shape[part], strides[part]) for part in (
        slice(axis), slice(axis, axis + ndim), slice(axis + ndim, None))]
    beside = along == values.itemsize or row == values.itemsize
    return (aside, each) if beside and aside is not None and each is not None else None


def _distances(view: Any, row: int, axis: int, count: int) -> list[int]:
    """Bytes from one row to the next along each axis that positions are along. Strides of axes of length one tell
    nothing: the rows of an array in C order are `row` bytes.
    """
    if not view._c_contiguous:
        return view.strides[:count]     # type: ignore[no-any-return]
    found = [row]
    for length in view.shape[axis + count - 1:axis:-1]:
        found.insert(0, found[0] * length)
    return found


def _axes(shape: Sequence[int], positions: Sequence[Any], steps: Sequence[int], word: int, axis: int,
          grid: Grid) -> tuple[int, list[Any]]:
    """Words to where ranges begin, and parameters: the columns of the grid, which positions have 64 bits, and of each
    axis the positions, its length, its step in words, and their ways; `steps`: these in bytes.
    """
    begin, wide, found = 0, 0, []
    for k, (array, (down, along)) in enumerate(zip(positions, grid.ways)):
        step = steps[k] // word
        if type(array) is range or type(array) is int:
            first, each = (array, 0) if type(array) is int else (array.start, array.step)
            begin += first * step
            found += 0, shape[axis + k], step, down * each, along * each
        else:
            wide |= (array.itemsize == 8) << k
            found += array, shape[axis + k], step, down, along
    return begin, [grid.columns, wide, *found, *(0, 1, 0, 0, 0) * (MOST_AXES - len(positions))]
