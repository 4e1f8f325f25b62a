"""Recipes of the ufuncs and of their methods (grammar: recipes.py)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.testing.overrides import get_overridable_numpy_ufuncs
from parity import Case, call_case

UNARY = """
x
x, ox
x, out=(of,)
x, out=x
x, where=mask, out=ox
x, ox, where=hmask
x, dtype='f8'
x, dtype='f4', casting='unsafe'
x, casting='no'
x, order='F'
x.T, order='K'
x, subok=False
s
lx
hx, out=ox
x, out=hox
x, obad
x, out=of, casting='unsafe'
x, out=oi, casting='unsafe'
nans
unit
p
x, signature='d->d'
x, sig=(None, 'f8')
x, x, x
x, axis=0
x, where=[True, False, True, True], out=ox
x[:1] if x.ndim else x, out=ox
"""

BINARY = """
x, y
x, row
col, row
x, 2
2, x
x, 2.5
x, 1j
x, s
s, s
x, hy
hx, y
x, dy
x, lrow
lx, y
x, True
x, np.float32(1.5)
x, np.int8(3)
x, weights
x, i
x, mask
x, 300
x, -1
x, v
x, y, ox
x, y, out=(of,)
x, y, out=x
x, y, out=hox
hx, hy, out=ox
x, y, obad
x, y, where=mask, out=ox
x, y, ox, where=hmask
x, y, dtype='f8'
x, y, dtype='f4', casting='unsafe'
x, y, casting='no'
x, y, order='F'
x, y, out=oi, casting='unsafe'
x, y, out=of, casting='same_kind'
nans, y
nans, nans
p, q
unit, p
x, 0
x, y, signature='dd->d'
x, y, sig='ll->l'
x
x, 'a'
x, None  # host: objects
x, y, extra=1
x[::-1] if x.ndim else x, x, out=x
"""

REDUCE = """
x
x, axis=1
x, axis=None
x, axis=(0, 1)
t, (0, 2)
x, 0, 'f8'
x, axis=0, dtype='i8'
x, axis=0, out=orow
x, 0, None, orowf
x, axis=1, keepdims=True
x, initial=2
x, axis=0, initial=None
x, axis=0, where=mask, initial=1
x, axis=1, where=mask
x, 5
x, (0, 0)
x, axis=()
s
lx
hx, out=orow
x, out=h(np.zeros(4), dt)
p
nans
a([], dt if dt.kind in 'biufc' else None)
x, out=obad
"""

ACCUMULATE = (
    "x\nx, 1\nx, axis=0, dtype='f8'\nx, out=ox\nx, 0, None, of\nv\ns\nlx\np, -1\nx, axis=4\nx, out=obad\n"
    "hx, out=ox"
)
REDUCEAT = (
    "v, [0, 3]\nv, a([0, 3, 1])  # host: the positions are read\nx, [0, 2]\nx, [0, 2], axis=1\n"
    "x, [0, 1], 1, 'f8'\nv, far\n"
    "v, [0, 3], out=out((2,))\ns, [0]\nlv, [0, 2]\nhv, a([0, 2])  # host: the positions are read\np, [1, 0]\nv, [1.5]"
)
OUTER = (
    "v, w\nx, v\ns, v\nv, 3\nv, hw\nv, w, out=out((6, 6))\nlv, w\nv, w, dtype='f8'\nv, pv\npv, pv\n"
    "v, w, out=obad\ns, s\nv, w, where=True"
)
AT_UNARY = (
    "v, i\nv, [0, 0, 1]\nx, (a([0, 1]), a([1, 1]))\nv, far\nx, slice(1, None)\nv, vmask\nhv, i\ns, ()\n"
    "lv, [0]\nv, 2"
)
AT_BINARY = (
    "v, i, 2\nv, [0, 0, 1], w[:3] if w.ndim else w\nv, a([0, 0, 1]), 1\nv, far, 1\n"
    "x, (a([0, 1]), a([1, 1])), 2\nx, [0, 2], row\nhv, i, 2\nx, slice(1, None), row\nv, vmask, 3\n"
    "pv, [0, 0, 0], 2\n"
    "v, i, hw[:4] if hw.ndim else hw\nv, i\ns, (), 2\nv, [0, -1], 2.5\nlv, [0], 1\nv, near, 1\nv, 2, 1\n"
    "x, (..., [0, 0]), 1"
)

_MATRIX = (
    "\nx, y, axes=[(0, 1), (0, 1), (0, 1)]\nm, n, axis=0\nm, n, out=m\nm, n, dtype='f8'\nm, n, casting='no'\n"
    "m, n, where=True\nm, 3\ns, s\nm, hm\nhm, m, out=out((4, 4))\nlm, m\nm, n, order='F'\n"
    "m, n, dtype='f4', casting='unsafe'"
)
_FIND = (
    "words, 'b', 0, 99\nraw, b'b', 0, 99\ntext, 'b', 0, 9\nwords, words, 0, 1\nwords, ' ', wi, 99\n"
    "x, 'b', 0, 9\nwords, 'b', 0, 99, out=out((2, 2), 'i8')"
)
_TEXT = "words\n raw\n text\n x\n words[::-1]\n words, where=True\n a('q')"
_PAD = "words, wi + 8, '-'\n raw, 9, b'*'\n text, 9, '-'\n x, 1, 2"

_IS = ("isalpha", "isalnum", "isdigit", "isspace", "islower", "isupper", "istitle", "isdecimal", "isnumeric")
_SEARCH = ("find", "rfind", "count", "index", "rindex", "startswith", "endswith")

#: ufuncs whose arguments are their own: name -> recipes of a plain call
SPECIAL: dict[str, str] = {
    "matmul": (
        "x, k\nm, n\nv, w\nrow, m\nm, row\nt, k\nstack, m\nt, u\nx, y\nx, k, out=out((3, 3))\n"
        "x, k, out=out((3, 3), 'f8')\nm, n, axes=[(0, 1), (0, 1), (1, 0)]"
        + _MATRIX
    ),
    "vecdot": (
        "v, w\nx, y\nx, row\nt, u, axis=1\nx, y, axes=[0, 0, ()]\nx, y, keepdims=True\nx, y, out=out((3,))\n"
        "v, row"
        + _MATRIX
    ),
    "matvec": "x, row\n m, row\n t, row\n x, v\n m, row, out=orow\n m, m, axes=[(0, 1), 0, 0]" + _MATRIX,
    "vecmat": "row, m\n x, m\n row, k\n v, m\n row, m, out=orow" + _MATRIX,
    "ldexp": (
        "x, i\nx, 2\nx, -3\nx, a(3)\nx, shifts, ox\nx, y\ns, 1\nhx, i\nx, lrow\nx, i, where=mask, out=ox\n"
        "nans, i\nx, i, dtype='f8'\nlx, i"
    ),
    "frexp": (
        "x\nnans\nx, ox, oi\nx, out=(of, None)\nx, out=(None, oi)\ns\nlx\nx, out=ox\nhx\nx, dtype='f8'\n"
        "x, where=mask, out=(of, oi)\nx, out=(hof, oi)\np"
    ),
    "modf": (
        "x\nnans\nx, ox, of\nx, out=(of, None)\ns\nlx\nx, out=ox\nhx\nx, dtype='f8'\n"
        "x, where=mask, out=(of, ox)\np"
    ),
    "divmod": (
        "x, y\nx, row\nx, 2\n2, x\nx, 0\nx, 2.5\nx, hy\nx, y, ox, of\nx, y, out=(ox, None)\nx, y, out=ox\n"
        "s, s\nlx, y\nx, y, where=mask, out=(of, ox)\nnans, y\np, q\nx, -1\nx, y, dtype='f8'"
    ),
    "clip": (
        "x, 0, 1\nx, y, p\nx, row, hy\nx, 0, 1, ox\nx, 0, 1, out=x\nnans, 0, 1\nx, s, 2\nlx, 0, 1\n"
        "x, 0, 1, where=mask, out=ox\nx, 0, 1, dtype='f8'\nx, 0.5, 1\nx, 1, 0\nx, 0\nx, np.nan, 1\n"
        "x, 0, 1, casting='unsafe', out=oi\nx, 300, 400"
    ),
    "isnat": "x\n s\n nans\n x, out=ob\n days",
    "str_len": _TEXT + "\n words, out=out((2, 2), 'i8')",
    **dict.fromkeys(_IS, _TEXT + "\n words, out=out((2, 2), '?')"),
    **dict.fromkeys(_SEARCH, _FIND),
    **dict.fromkeys(("_center", "_ljust", "_rjust"), _PAD),
    "_zfill": "words, wi + 8\n text, 9\n x, 1",
    "_expandtabs": "words, wi\n text, 3\n x, 1",
    "_expandtabs_length": "words, wi\n raw, 4\n x, 1",
    **dict.fromkeys(("_lstrip_whitespace", "_rstrip_whitespace", "_strip_whitespace"), _TEXT),
    **dict.fromkeys(("_lstrip_chars", "_rstrip_chars", "_strip_chars"), "words, 'a '\n raw, b'a'\n text, 'a'\n x, 'a'"),
    **dict.fromkeys(("_partition", "_rpartition"), "text, ' '\n words, ' '\n x, x"),
    **dict.fromkeys(("_partition_index", "_rpartition_index"), "words, ' ', wi\n x, x, i"),
    "_replace": "text, 'b', 'c', 9\n words, 'b', 'c', wi\n x, 'a', 'b', 1",
    "_slice": "words, 0, 2, 1\n raw, 1, 9, 2\n text, 0, wi[0], 1\n x, 0, 1, 1",
}

#: What has no reduce and the like: one line shows the error.
METHODLESS = "x"

#: Ufuncs of text.  Their methods are left alone: NumPy 2.5 itself crashes in ``_expandtabs.reduce`` of a string array.
TEXT = frozenset(
    name for name in SPECIAL if name[0] == "_" or name in (*_IS, *_SEARCH, "str_len")
)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def call_lines(ufunc: np.ufunc) -> list[str]:
    """The recipes of a plain call."""
    if ufunc.__name__ in SPECIAL:
        return _lines(SPECIAL[ufunc.__name__])
    if ufunc.nout == 1 and ufunc.nin in (1, 2) and ufunc.signature is None:
        return _lines(UNARY if ufunc.nin == 1 else BINARY)
    raise LookupError(f"{ufunc.__name__} has no recipes")


def methods_of(ufunc: np.ufunc) -> dict[str, list[str]]:
    """method -> its recipes."""
    if ufunc.__name__ in TEXT:
        return {}
    if ufunc.nin == 2 and ufunc.nout == 1 and ufunc.signature is None and ufunc.__name__ not in SPECIAL:
        texts = {"reduce": REDUCE, "accumulate": ACCUMULATE, "reduceat": REDUCEAT, "outer": OUTER, "at": AT_BINARY}
    elif ufunc.nin == 1 and ufunc.nout == 1 and ufunc.__name__ not in SPECIAL:
        texts = {"reduce": METHODLESS, "accumulate": METHODLESS, "reduceat": "x, [0]", "outer": "x, y", "at": AT_UNARY}
    else:
        texts = {"reduce": METHODLESS, "accumulate": METHODLESS, "reduceat": "x, [0]", "outer": "x, y", "at": "v, i, 1"}
    return {method: _lines(text) for method, text in texts.items()}


#: Kinds of tolerance other than "elementwise" (parity_compare.py).
KINDS = {"logaddexp": "logarithm", "logaddexp2": "logarithm", "power": "power", "float_power": "power"}

UFUNCS: dict[str, np.ufunc] = {ufunc.__name__: ufunc for ufunc in get_overridable_numpy_ufuncs()}


def groups() -> Iterator[tuple[str, list[Case]]]:
    """(name, cases) of every ufunc and ufunc method."""
    for name in sorted(UFUNCS):
        ufunc = UFUNCS[name]
        plain = KINDS.get(name, "reduction" if ufunc.signature else "elementwise")
        yield name, [call_case(f"np.{name}", ufunc, line, kind=plain) for line in call_lines(ufunc)]
        for method, lines in methods_of(ufunc).items():
            kind = plain if method == "outer" else "reduction"
            prefix = f"np.{name}.{method}"
            yield f"{name}.{method}", [call_case(prefix, getattr(ufunc, method), line, kind=kind) for line in lines]
