"""CUDA's text of what a reduction does to its elements: what it keeps of them, and how two of those become one.

Each text defines the type ``lz_acc`` and five functions: ``lz_none`` (of no elements), ``lz_take`` (one more element,
with its place along the reduced axis), ``lz_settle`` (after the last element of a thread), ``lz_merge`` and ``lz_give``
(the result). What comes first and what later is settled by the kernel, so a result is the same each time.

Sums of up to 32 bits are added up in double precision, and sums in double precision carry what each addition rounded
away (Knuth's two-sum): both are closer to the exact sum than a sum in the elements' own precision. A variance takes one
pass: a thread adds up differences from the first element that it meets and their squares, which cancels little, since
that element is one of those that the variance is about; what two threads have is joined by Chan's formula. Means stay
differences from such elements, so that nothing is lost beside a large one.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .snippets import type_of

if TYPE_CHECKING:
    from ...program import Reduction

__all__ = ["combiner"]

_TWO_SUM = """
__device__ inline void lz_two(double& s, double& c, double x) {
  const double t = s + x, b = t - s;
  c += (s - (t - b)) + (x - b);
  s = t;
}
"""

_ROOT = """__device__ inline double lz_last(double x, double divisor) { return sqrt(x); }
"""
_SHARE = """__device__ inline double lz_last(double x, double divisor) { return x / divisor; }
"""
_SPREAD = """__device__ inline double lz_last(double x, double divisor) { return sqrt(x / divisor); }
"""
_NOTHING = """__device__ inline double lz_last(double x, double divisor) { return x; }
"""
#: What is done to a result in the end.
_LAST = {"mean": _SHARE, "var": _SHARE, "std": _SPREAD, "norm": _ROOT}


def combiner(reduction: Reduction) -> str:
    """The text for a reduction."""
    source, work, result = map(type_of, (reduction.source, reduction.work, reduction.result))
    head = f"typedef {source} lz_T;\ntypedef {work} lz_W;\ntypedef {result} lz_R;\n"
    return head + _LAST.get(reduction.name, _NOTHING) + _FAMILIES[reduction.name](reduction)


def _up(dtype: np.dtype, name: str) -> str:
    """A real number as a double."""
    return f"(double)(float){name}" if dtype.char == "e" else f"(double){name}"


def _down(dtype: np.dtype, text: str) -> str:
    """A double, rounded to a real dtype, as a double."""
    return {"e": f"(double)(float)float16({text})", "f": f"(double)(float)({text})"}.get(dtype.char, f"({text})")


def _cast(reduction: Reduction) -> str:
    """The element ``v`` in the dtype that is worked in."""
    source, work = reduction.source, reduction.work
    if source == work:
        return "v"
    if work.kind != "c":
        return f"(lz_W){'(float)' if source.char == 'e' else ''}v"
    part = type_of(np.dtype(work.char.lower()))
    if source.kind == "c":
        return f"lz_W(({part})v.real(), ({part})v.imag())"
    return f"lz_W(({part}){'(float)' if source.char == 'e' else ''}v, ({part})0)"


def _given(reduction: Reduction, parts: list[str]) -> str:
    """A result from one or two doubles."""
    if reduction.result.kind == "c":
        part = type_of(np.dtype(reduction.result.char.lower()))
        return f"lz_R({', '.join(f'({part})({p})' for p in parts)})"
    return f"(lz_R)({parts[0]})"


def _sum(reduction: Reduction) -> str:
    work, name = reduction.work, reduction.name
    if work.kind in "iu":
        return _integers("0", "+", reduction)
    real = np.dtype(work.char.lower())
    if name == "norm":
        parts = ["(double)w.real() * w.real() + (double)w.imag() * w.imag()"] if work.kind == "c" else [
            f"{_up(work, 'w')} * {_up(work, 'w')}"]
    elif work.kind == "c":
        parts = ["(double)w.real()", "(double)w.imag()"]
    else:
        parts = [_up(work, "w")]
    careful = real.char == "d"
    numbers = range(len(parts))
    fields = [f"s{i}" for i in numbers] + [f"c{i}" for i in numbers if careful]
    add = "lz_two(a.s{0}, a.c{0}, {1});" if careful else "a.s{0} += {1};"
    takes = " ".join(add.format(i, part) for i, part in enumerate(parts))
    merges = " ".join(add.format(i, f"b.s{i}") + (f" a.c{i} += b.c{i};" if careful else "") for i in numbers)
    totals = "".join(f"  double t{i} = a.s{i};\n" for i in numbers)
    if careful:     # what was rounded away from an infinity is no number
        totals += "".join(f"  if (isfinite(a.s{i} + a.c{i})) t{i} = a.s{i} + a.c{i};\n" for i in numbers)
    results = [f"lz_last({_down(real, f't{i}')}, divisor)" for i in numbers]
    return _TWO_SUM + _text(" ".join(f"double {f};" for f in fields), " ".join(f"a.{f} = 0;" for f in fields),
                            f"const lz_W w = {_cast(reduction)}; {takes}", merges,
                            f"{totals}  return {_given(reduction, results)};")


def _integers(neutral: str, sign: str, reduction: Reduction) -> str:
    # Unsigned, so that what overflows wraps around, as NumPy's does.
    return _text("unsigned long long s;", f"a.s = {neutral};",
                 f"a.s {sign}= (unsigned long long)({_cast(reduction)});", f"a.s {sign}= b.s;", "  return (lz_R)a.s;")


def _prod(reduction: Reduction) -> str:
    if reduction.work.kind in "iu":
        return _integers("1", "*", reduction)
    return _text("double s;", "a.s = 1;", f"const lz_W w = {_cast(reduction)}; a.s *= {_up(reduction.work, 'w')};",
                 "a.s *= b.s;", "  return (lz_R)a.s;")


def _kept(dtype: np.dtype) -> tuple[str, str, str]:
    """The type that an element is compared in, its least and its greatest value."""
    if dtype.kind == "f":
        return ("float" if dtype.char == "e" else type_of(dtype)), "-CUDART_INF", "CUDART_INF"
    if dtype.kind == "b":
        return "int", "0", "1"
    bits = 8 * dtype.itemsize
    if dtype.kind == "u":
        return ("unsigned int" if bits < 32 else type_of(dtype)), "0", f"{(1 << bits) - 1}ull"
    return ("int" if bits < 32 else type_of(dtype)), f"(-{(1 << bits - 1) - 1}ll - 1)", f"{(1 << bits - 1) - 1}ll"


def _extreme(reduction: Reduction) -> str:
    kind, least, greatest = _kept(reduction.source)
    sign, worst = ("<", greatest) if reduction.name == "min" else (">", least)
    nan = " || x != x" if reduction.source.kind == "f" else ""
    return _text(f"{kind} x;", f"a.x = ({kind})({worst});",
                 f"const {kind} x = ({kind})v; if (x {sign} a.x{nan}) a.x = x;",
                 f"const {kind} x = b.x; if (x {sign} a.x{nan}) a.x = x;", "  return (lz_R)a.x;")


def _extremes(reduction: Reduction) -> str:
    """The least and the greatest, as two integers of 64 bits in the bytes of the result."""
    kind, least, greatest = _kept(reduction.source)
    wide = "unsigned long long" if reduction.source.kind == "u" else "long long"
    return _text(f"{kind} x, y;", f"a.x = ({kind})({greatest}); a.y = ({kind})({least});",
                 f"const {kind} x = ({kind})v; if (x < a.x) a.x = x; if (x > a.y) a.y = x;",
                 "if (b.x < a.x) a.x = b.x; if (b.y > a.y) a.y = b.y;",
                 f"  const {wide} both[2] = {{({wide})a.x, ({wide})a.y}};\n  lz_R r;\n  memcpy(&r, both, sizeof(r));\n"
                 "  return r;")


def _position(reduction: Reduction) -> str:
    kind, least, greatest = _kept(reduction.source)
    sign, worst = ("<", greatest) if reduction.name == "argmin" else (">", least)
    better = f"x {sign} a.x || x == a.x && i < a.i"
    if reduction.source.kind == "f":
        better += " || x != x && (a.x == a.x || i < a.i)"
    take = f"if ({better}) {{ a.x = x; a.i = i; }}"
    return _text(f"{kind} x; long long i;", f"a.x = ({kind})({worst}); a.i = 0x7fffffffffffffffll;",
                 f"const {kind} x = ({kind})v; {take}", f"const {kind} x = b.x; const long long i = b.i; {take}",
                 "  return (lz_R)a.i;")


def _test(dtype: np.dtype) -> str:
    """Whether the element ``v`` is other than zero."""
    return "v.real() != 0 || v.imag() != 0" if dtype.kind == "c" else (
        "(float)v != 0" if dtype.char == "e" else "v != 0")


def _count(reduction: Reduction) -> str:
    return _text("unsigned long long s;", "a.s = 0;", f"a.s += ({_test(reduction.source)}) ? 1u : 0u;", "a.s += b.s;",
                 "  return (lz_R)a.s;")


def _truth(reduction: Reduction) -> str:
    sign, neutral = ("&", 1) if reduction.name == "all" else ("|", 0)
    return _text("unsigned int s;", f"a.s = {neutral};", f"a.s {sign}= ({_test(reduction.source)}) ? 1u : 0u;",
                 f"a.s {sign}= b.s;", "  return (lz_R)(a.s != 0);")


def _variance(reduction: Reduction) -> str:
    work = reduction.work
    real = np.dtype(work.char.lower())
    parts = ["(double)w.real()", "(double)w.imag()"] if work.kind == "c" else [_up(work, "w")]
    numbers = range(len(parts))
    fields = ["n", "q", *(f"p{i}" for i in numbers), *(f"m{i}" for i in numbers)]
    first = " ".join(f"if (a.n == 0) a.p{i} = {part};" for i, part in enumerate(parts))
    takes = " ".join(f"const double d{i} = {part} - a.p{i}; a.m{i} += d{i}; a.q += d{i} * d{i};"
                     for i, part in enumerate(parts))
    settle = "if (a.n != 0) { " + " ".join(
        f"const double d{i} = a.m{i} / a.n; a.q -= d{i} * a.m{i}; a.m{i} = d{i};" for i in numbers)
    settle += " if (a.q < 0) a.q = 0; }"
    merge = ("if (b.n == 0) return; if (a.n == 0) { a = b; return; } const double n = a.n + b.n, f = b.n / n; "
             "a.q += b.q; ")
    merge += " ".join(f"const double d{i} = (b.p{i} - a.p{i}) + (b.m{i} - a.m{i}); "
                      f"a.q += d{i} * d{i} * a.n * f; a.m{i} += d{i} * f;" for i in numbers) + " a.n = n;"
    # A sum that overflows makes NumPy's mean infinite, and its variance too.
    give = "  double q = a.q;\n" + "".join(
        f"  if (isinf({_down(real, f'(a.p{i} + a.m{i}) * a.n')}) && q == q) q = CUDART_INF;\n" for i in numbers)
    give += f"  return (lz_R)lz_last({_down(real, 'q')}, divisor);"
    return _text(" ".join(f"double {f};" for f in fields), " ".join(f"a.{f} = 0;" for f in fields),
                 f"const lz_W w = {_cast(reduction)}; {first} a.n += 1; {takes}", merge, give, settle)


def _text(fields: str, none: str, take: str, merge: str, give: str, settle: str = "") -> str:
    return (f"struct lz_acc {{ {fields} }};\n"
            f"__device__ inline void lz_none(lz_acc& a) {{ {none} }}\n"
            f"__device__ __forceinline__ void lz_take(lz_acc& a, const lz_T v, const long long i) {{ {take} }}\n"
            f"__device__ inline void lz_settle(lz_acc& a) {{ {settle} }}\n"
            f"__device__ inline void lz_merge(lz_acc& a, const lz_acc b) {{ {merge} }}\n"
            f"__device__ inline lz_R lz_give(const lz_acc& a, const double divisor) {{\n{give}\n}}\n")


#: Name of a reduction -> what makes its text.
_FAMILIES = {
    "sum": _sum, "mean": _sum, "norm": _sum, "prod": _prod, "min": _extreme, "max": _extreme, "any": _truth,
    "all": _truth, "count": _count, "var": _variance, "std": _variance, "argmin": _position, "argmax": _position,
    "extremes": _extremes,
}
