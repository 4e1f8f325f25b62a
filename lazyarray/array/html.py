"""What notebooks and IPython show of a lazy array: what it is, where it is, its corners, and a thumbnail of an image.

Nothing here copies more than `MOST_BYTES`, whatever the size of the array: corners are cut out and the thumbnail is
made where the array is, and only they are fetched.
"""
from __future__ import annotations

import base64
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dispatch import location
from ..errors import TransferError
from ..events.markup import LINE, cell, clipped, element, escape, image, table
from ..events.report import format_bytes
from ..storage import handles, residency, transfer
from ..storage.mirror.byte_ranges import Ranges
from ..storage.storage import Storage

if TYPE_CHECKING:
    from ..storage.handles import ArrayHandle

EDGE = 3            # rows and columns shown at each edge
THUMBNAIL = 64      # most pixels of a side
MOST_BYTES = 2 * (2 * EDGE) ** 2 * 16 + 4 * THUMBNAIL**2
"""Two planes of corners of the widest numbers, and a thumbnail of four bytes a pixel."""

WHERE = {"device": "on the device ({device})", "host": "on the host",
         "both": "on the device ({device}) and on the host", "pending": "deferred"}

_PIXELS = frozenset("?BHefd")       # dtypes of colour pictures
_SMALLEST, _LONGEST = 8, 16         # sides of what is taken for an image: at least, and how many times the other
_LOOKED_AT = 8                      # rows and columns averaged in a pixel of the thumbnail, at most
_TEXT, _LINE = 40, 100              # characters of a cell of values, and of one about the array
MORE = "\u2026"
FORBIDDEN = "no values are shown: no_transfers() is in force"


def plain(x: ArrayHandle) -> str:
    """The text that IPython shows: of deferred work the line that HTML has of it, and NumPy's text.

    `repr` is NumPy's text alone, because programs and doctests compare, log and parse it.
    """
    deferred = location.deferred(x)     # asked first: of a small array, `repr` may compute all
    try:
        values = repr(x)
    except TransferError:
        values = FORBIDDEN
    return "\n".join(filter(None, [deferred, values]))


def html(x: ArrayHandle) -> str:
    """The array as one HTML element without ids, scripts or style sheets."""
    meta = handles.meta_of(x)
    storage = x._self_storage
    where = residency.place(storage, meta) if type(storage) is Storage else "host"
    facts = [("shape", str(meta.shape)), ("dtype", str(meta.dtype)), ("bytes", _bytes(meta.nbytes)),
             ("where", location.deferred(x) or _where(x, where))]
    looks = [table([(cell(name, head=True), cell(text, most=_LINE)) for name, text in facts])]
    try:
        with storage.place():
            seen = _look(x)
            picture = _picture(meta)
            if picture and not seen.written:
                looks.append(_image(seen, picture))
            below = _preview(seen, picture == "colour")
    except TransferError:
        below = _note(FORBIDDEN)
    title = element("div", element("b", "LazyNdarray"), "margin:0 0 .3em")
    row = element("div", "".join(looks), "display:flex;flex-wrap:wrap;gap:1em;align-items:flex-start;margin:0 0 .6em")
    return element("div", title + row + below, "text-align:left", **{"class": "lazyarray-array"})


def _where(x: ArrayHandle, where: str) -> str:
    storage = x._self_storage
    if type(storage) is not Storage:
        return f"{WHERE[where]} (the device holds no such dtype)"
    device = storage.device
    name = device.name
    if device.count > 1 and where in ("device", "both"):
        name += f" {device.device_of(storage.block if storage.root is None else storage.root)}"
    return WHERE[where].format(device=name)


def _bytes(nbytes: int) -> str:
    return format_bytes(nbytes) + (f" ({nbytes:,})" if nbytes >= 1024 else "")


def _look(x: ArrayHandle) -> residency.Look:
    storage, meta = x._self_storage, handles.meta_of(x)
    if type(storage) is not Storage:
        return residency.Look(storage, meta, np, meta, Ranges.EMPTY)    # type: ignore[arg-type]
    return residency.look(storage, meta, x._self_array)


# -- the corners -------------------------------------------------------------------------------

def _preview(seen: residency.Look, colour: bool) -> str:
    """Tables of the corners: of the array, or of its first and its last plane if there are more."""
    shape = seen.view.shape
    if 0 in shape:
        return _note("no elements")
    leading = 0 if colour else max(0, len(shape) - 2)
    places: list[tuple[int, ...]] = [(0,) * leading]
    if set(shape[:leading]) - {1}:
        places.append(tuple([n - 1 for n in shape[:leading]]))
    values = residency.fetched(seen, "values for display", EDGE, 2, places)
    drawn = []
    for number, place in enumerate(places):
        caption = f"[{', '.join([*map(str, place), ':', ':'])}]" if leading else ""
        names, rows = _shown(values[number, ...], shape[leading:], colour)
        drawn.append(element("div", _table(names, rows, caption)))
    return element("div", "".join(drawn), "display:flex;flex-wrap:wrap;gap:1em;overflow-x:auto")


def _shown(values: np.ndarray, shape: tuple[int, ...], colour: bool) -> tuple[list[str], list[list[str]]]:
    """Names of the columns shown of a plane of that shape, and the rows, each with its name first."""
    if not shape:
        return [], [["", *_texts(values)]]
    if len(shape) == 1 and values.dtype.names:
        fields = list(values.dtype.names)
        columns = [_column(values[name]) for name in fields]
        rows = [list(row) for row in zip(*columns)]
        return _opened(fields, len(fields)), _named([_opened(row, len(fields)) for row in rows], shape[0])
    flat = _texts(values)
    if colour:      # the values of a pixel stand in one cell
        flat = [", ".join(flat[i:i + shape[2]]) for i in range(0, len(flat), shape[2])]
    width = values.shape[1] if len(shape) > 1 else values.shape[0]
    across = shape[1] if len(shape) > 1 else shape[0]
    rows = [_gap(flat[i:i + width], across) for i in range(0, len(flat), width)]
    return _numbers(across), _named(rows, shape[0]) if len(shape) > 1 else [["", *rows[0]]]


def _numbers(n: int) -> list[str]:
    """The indexes shown of an axis, with an ellipsis for those that are not."""
    return list(map(str, range(n))) if n <= 2 * EDGE else [*map(str, range(EDGE)), MORE, *map(str, range(n - EDGE, n))]


def _gap(shown: list[str], n: int) -> list[str]:
    """The texts shown of an axis of length `n`, with an ellipsis for those that are not."""
    return [*shown[:EDGE], MORE, *shown[EDGE:]] if n > 2 * EDGE else shown


def _opened(texts: list[str], n: int) -> list[str]:
    """Of `n` texts those that are shown, clipped."""
    texts = [clipped(text, _TEXT) for text in texts]
    return [*texts[:EDGE], MORE, *texts[-EDGE:]] if n > 2 * EDGE else texts


def _named(rows: list[list[str]], n: int) -> list[list[str]]:
    """Rows with their indexes, and with a row of ellipses for those of an axis of length `n` that are not shown."""
    if n > 2 * EDGE:
        rows = [*rows[:EDGE], [MORE] * len(rows[0]), *rows[EDGE:]]
    return [[name, *row] for name, row in zip(_numbers(n), rows)]


def _table(names: list[str], rows: list[list[str]], caption: str) -> str:
    drawn = [[cell(text, head=True, right=True) for text in ["", *names]]] if names else []
    for name, *row in rows:
        drawn.append([cell(name, head=True, right=True)] * bool(names) + [cell(text, right=True) for text in row])
    return table(drawn, caption)


def _column(values: np.ndarray) -> list[str]:
    return _texts(values) if values.ndim == 1 else [clipped(str(value.tolist()), _TEXT) for value in values]


def _texts(values: np.ndarray) -> list[str]:
    """Each value as NumPy prints it among these."""
    values = values.reshape(-1)
    if values.dtype.kind in "biufcmM":
        apart = "\x1f"
        text = np.array2string(values, separator=apart, max_line_width=1 << 30, threshold=values.size + 1)
        found = text[1:-1].split(apart)
        if len(found) == values.size:       # not so if a formatter of the user's says otherwise
            return [clipped(part.strip(" '"), _TEXT) for part in found]
    return [clipped(" ".join(str(value).split()), _TEXT) for value in values]


def _note(text: str) -> str:
    return element("div", escape(text), "font-style:italic")


# -- the thumbnail -----------------------------------------------------------------------------

def _picture(meta: np.ndarray) -> str:
    """"grey", "colour" or "": what kind of image an array of this shape and dtype is taken for."""
    shape, dtype = meta.shape, meta.dtype
    if len(shape) < 2 or min(shape[:2]) < _SMALLEST or max(shape[:2]) > _LONGEST * min(shape[:2]):
        return ""
    if len(shape) == 2:
        return "grey" if dtype.kind in "biufc" and dtype.itemsize <= 16 and dtype.isnative else ""
    return "colour" if len(shape) == 3 and shape[2] in (3, 4) and dtype.isnative and dtype.char in _PIXELS else ""


def _image(seen: residency.Look, kind: str) -> str:
    xp, shape = seen.xp, seen.view.shape
    stride = _stride(shape)
    array = seen.pick(lambda array: array[::stride, ::stride])
    with np.errstate(all="ignore"):
        pixels = thumbnail(xp, array, kind == "colour")
    packed = pixels.view(np.uint32)[..., 0]     # four bytes in one value
    if xp is not np:
        packed = transfer.to_host(seen.storage.device, packed, "thumbnail for display")
    pixels = np.ascontiguousarray(packed)[..., None].view(np.uint8)
    height, width = pixels.shape[:2]
    zoom = max(1, 128 // max(height, width))
    rows, columns = shape[:2]
    return image(data_uri(pixels), f"thumbnail of {rows} x {columns} pixels",
                 f"image-rendering:pixelated;border:{LINE};"
                 f"width:{width * zoom}px;height:{height * zoom}px;max-width:none;flex:none")


def _stride(shape: tuple[int, ...]) -> int:
    """Of the rows and columns of an image of that shape, every how many-th is looked at."""
    return max(1, -(-max(shape[:2]) // THUMBNAIL) // _LOOKED_AT)


def thumbnail(xp: Any, array: Any, colour: bool) -> Any:
    """An image as RGBA pixels, uint8, of at most 64 x 64, by the functions of `xp`, where it is.

    A pixel is the mean of at most 8 x 8 of the image's, evenly spaced. Booleans, uint8 and colours are taken as they
    are meant (floats from 0 to 1), other numbers stretched from black, the least, to white. Of complex numbers
    magnitudes are shown. What is not finite is transparent.

    Parameters
    ----------
    xp : module or namespace
        NumPy, or the device's functions.
    array : array of shape (rows, columns) or, if `colour`, (rows, columns, 3 or 4)
    """
    values = array
    counts = []
    for axis in (0, 1):
        factor = -(-max(array.shape[:2]) // THUMBNAIL)
        stride = _stride(array.shape)
        values = values[(slice(None),) * axis + (slice(None, None, stride),)]
        taken = min(-(-factor // stride), values.shape[axis])
        counts.append((values.shape[axis] // taken, taken))
    (rows, down), (columns, across) = counts
    depth = tuple(array.shape[2:])
    values = values[:rows * down, :columns * across]
    if array.dtype.kind == "c":
        values = xp.abs(values)
    values = values.astype(np.float64).reshape((rows, down, columns, across, *depth))
    finite = xp.isfinite(values)
    number = finite.sum(axis=(1, 3))
    values = (xp.where(finite, values, 0) / (down * across)).sum(axis=(1, 3))
    values = values * ((down * across) / xp.maximum(number, 1))
    known = number > 0
    full = _FULL.get(array.dtype.char) if colour or array.dtype.char in "?B" else None
    if full is None:
        low = xp.where(known, values, np.inf).min()
        high = xp.where(known, values, -np.inf).max()
        spread = xp.where(high > low, high / 2 - low / 2, 1)     # halves: the difference could overflow
        values = xp.where(high > low, (values / 2 - low / 2) / spread, 0.5) * 255
    else:
        values = values * (255 / full)
    values = xp.where(known, values, 0)
    values = xp.clip(xp.rint(values), 0, 255).astype(np.uint8)
    pixels = xp.full((rows, columns, 4), 255, dtype=np.uint8)
    pixels[..., :3] = values[..., :3] if colour else values[..., None]
    opaque = known.all(axis=2) if colour else known
    pixels[..., 3] = xp.where(opaque, values[..., 3] if depth == (4,) else 255, 0)
    return pixels


_FULL = {"?": 1, "B": 255, "H": 65535, "e": 1, "f": 1, "d": 1}      # what is white


def data_uri(pixels: np.ndarray) -> str:
    """RGBA pixels, C-contiguous uint8 of shape (height, width, 4), as the address of a PNG picture."""
    height, width = pixels.shape[:2]
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)     # 0: each row as it is, without a filter
    parts = ((b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)), (b"IDAT", zlib.compress(rows, 9)),
             (b"IEND", b""))
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts)
    return "data:image/png;base64," + base64.b64encode(png).decode()
