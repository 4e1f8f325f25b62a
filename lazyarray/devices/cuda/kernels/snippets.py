"""CUDA's text of one step: CuPy's own snippet for that ufunc and those dtypes; so a fused result is the unfused one.

What CUDA's compiler might contract across steps (a product and a sum into one fused multiply-add, which rounds once) is
written with intrinsics that are never contracted, see `_EXACT`; within a step it may, as it does in CuPy's kernel.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...program import Step

__all__ = ["COMPLEX_DIVISION", "FLOAT_DIVISION", "HELPERS", "routine", "snippet", "type_of"]

#: What `_EXACT` and `_HALVES` call. ``LZ_COMPLEX`` and ``LZ_HALF`` are defined where those headers are included.
HELPERS = """
__device__ inline float lz_add(float a, float b) { return __fadd_rn(a, b); }
__device__ inline double lz_add(double a, double b) { return __dadd_rn(a, b); }
__device__ inline float lz_sub(float a, float b) { return __fsub_rn(a, b); }
__device__ inline double lz_sub(double a, double b) { return __dsub_rn(a, b); }
__device__ inline float lz_mul(float a, float b) { return __fmul_rn(a, b); }
__device__ inline double lz_mul(double a, double b) { return __dmul_rn(a, b); }
// Where a position along an axis is. What is out of range wraps around, so that no other memory is read.
__device__ inline long long lz_position(long long p, const long long length) {
  if (p < 0) p += length;
  if (p < 0 || p >= length) {
    p %= length;
    if (p < 0) p += length;
  }
  return p;
}
#ifdef LZ_COMPLEX
template <typename T> __device__ inline complex<T> lz_add(complex<T> a, complex<T> b) {
  return complex<T>(lz_add(a.real(), b.real()), lz_add(a.imag(), b.imag()));
}
template <typename T> __device__ inline complex<T> lz_sub(complex<T> a, complex<T> b) {
  return complex<T>(lz_sub(a.real(), b.real()), lz_sub(a.imag(), b.imag()));
}
#endif
#ifdef LZ_HALF
__device__ inline half lz_half(const float16 a) { half b; memcpy(&b, &a, 2); return b; }
__device__ inline float16 lz_float16(const half a) { float16 b; memcpy(&b, &a, 2); return b; }
#endif
"""

#: Steps that end or begin with what the compiler would contract with its neighbour.
_EXACT = {(name, char): f"out0 = {call}" for name, chars, call in (
    ("add", "fdFD", "lz_add(in0, in1)"), ("subtract", "fdFD", "lz_sub(in0, in1)"),
    ("multiply", "fd", "lz_mul(in0, in1)"), ("square", "fd", "lz_mul(in0, in0)")) for char in chars}

#: NumPy's whole numbers wrap around. In C those with a sign may be taken never to: ``x + 1 > x`` in one kernel is true
#: then. So these are computed without a sign, and so wide that nothing is promoted to a type with one, as `uint16` is.
_WRAPPING = {
    "add": "{in0} + {in1}", "subtract": "{in0} - {in1}", "multiply": "{in0} * {in1}", "square": "{in0} * {in0}",
    "negative": "0 - {in0}", "absolute": "in0 < 0 ? 0 - {in0} : {in0}",
}

#: What negates 16 bits is done in 32 that the compiler may not look into. It makes ``neg.s16`` of it otherwise, whose
#: result ptxas 13.2 compares without extending its sign: with -32768 among the values, ``(-x == y).all()`` was wrong on
#: an H100 and an H200. (ptxas 13.5 extends it.)
_OPAQUE = 'unsigned int wrapped = {}; asm("" : "+r"(wrapped)); out0 = (out0_type)wrapped'


def _wrapping(text: str, dtype: np.dtype) -> str:
    """The text of a whole number without a sign, which is to be cast to this dtype."""
    unsigned = "unsigned long long" if dtype.itemsize == 8 else "unsigned int"
    return text.format(in0=f"({unsigned})in0", in1=f"({unsigned})in1")


def _whole(name: str, dtype: np.dtype) -> str:
    text = _wrapping(_WRAPPING[name], dtype)
    return _OPAQUE.format(text) if name == "negative" and dtype.itemsize < 4 else f"out0 = (out0_type)({text})"


#: Steps that the compiler makes a branch of where their text has one: here it selects.
_SELECTED = {
    ("maximum", "d"): "const double most = max(in0, in1); out0 = (isnan(in0) | isnan(in1)) ? out0_type(NAN) : most",
    ("minimum", "d"): "const double least = min(in0, in1); out0 = (isnan(in0) | isnan(in1)) ? out0_type(NAN) : least",
}

#: Steps of float16 that the GPU does as such. CuPy computes them as float32 and rounds, which takes three to ten times
#: the instructions and gives the same: 24 bits hold a sum or a product of 11 bits closely enough to be rounded twice
#: (S. Figueroa, When is double rounding innocuous?, 1995). `test_cuda_halves.py` compares all pairs of halves.
_HALVES = {name: f"out0 = lz_float16({intrinsic}({', '.join(f'lz_half({x})' for x in operands)}))"
           for operands, intrinsics in (
               (("in0",), {"absolute": "__habs", "negative": "__hneg"}), (("in0", "in0"), {"square": "__hmul_rn"}),
               (("in0", "in1"), {"add": "__hadd_rn", "subtract": "__hsub_rn", "multiply": "__hmul_rn",
                                 "maximum": "__hmax_nan", "minimum": "__hmin_nan", "fmax": "__hmax", "fmin": "__hmin"}))
           for name, intrinsic in intrinsics.items()}

#: NumPy's dtype characters and CUDA's types, as CuPy pairs them.
_TYPES = {
    "?": "bool", "b": "signed char", "B": "unsigned char", "h": "short", "H": "unsigned short", "i": "int",
    "I": "unsigned int", "l": "long long", "L": "unsigned long long", "q": "long long", "Q": "unsigned long long",
    "e": "float16", "f": "float", "d": "double", "F": "complex<float>", "D": "complex<double>",
}


def type_of(dtype: np.dtype) -> str:
    """CUDA's name of a dtype."""
    if dtype.kind in "iu":
        return _TYPES[np.dtype(f"{dtype.kind}{dtype.itemsize}").char]
    return _TYPES[dtype.char]


#: Floor division and remainder of floats, and C's fmod (`lz_rest`), whose loop the compiler would repeat for each
#: element of a thread: 52 us for a million float64, where CuPy's rounded quotient takes 13. A rounded quotient of less
#: than 2 to the power of 50 (21 in float32), without its fraction, is the true one or one too far from zero; what that
#: leaves is a multiple of the smaller unit of both numbers, less than the divisor: nothing is rounded. NumPy divides
#: the rounded difference of the dividend and the remainder: it has the true quotient too, but not of larger ones.
FLOAT_DIVISION = """
__device__ inline float lz_most(float) { return 2097152.0f; }
__device__ inline double lz_most(double) { return 1125899906842624.0; }
__device__ inline float lz_fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ inline double lz_fma(double a, double b, double c) { return __fma_rn(a, b, c); }
// Whether the quotient, towards zero, is not too large; and that, and what it leaves.
template <typename T> __device__ inline bool lz_parts(T a, T b, T& q, T& m) {
  q = trunc(a / b);
  if (!(fabs(q) < lz_most(a))) return false;
  m = a;
  if (q != 0) {
    m = lz_fma(-q, b, a);
    if ((m < 0 && a > 0) || (m > 0 && a < 0)) {
      m = lz_add(m, (T)copysign(b, a));
      q = lz_sub(q, (T)copysign((T)1, q));
    }
    m = copysign(m, a);
  }
  return true;
}
template <typename T> __device__ __noinline__ T lz_slow_rest(T a, T b) { return fmod(a, b); }
template <typename T> __device__ inline T lz_rest(T a, T b) {
  T q, m;
  return lz_parts(a, b, q, m) ? m : lz_slow_rest(a, b);
}
template <typename T> __device__ __noinline__ T lz_slow_divide(T a, T b, T& m) {
  m = fmod(a, b);
  if (b == 0) return a / b;
  T q = lz_sub(a, m) / b;
  if (m != 0) { if ((b < 0) != (m < 0)) { m = lz_add(m, b); q = lz_sub(q, (T)1); } }
  else m = copysign((T)0, b);
  if (q == 0) return copysign((T)0, a / b);
  T f = floor(q);
  if (lz_sub(q, f) > (T)0.5) f = lz_add(f, (T)1);
  return f;
}
template <typename T> __device__ inline T lz_divide(T a, T b, T& m) {
  T q;
  if (!lz_parts(a, b, q, m)) return lz_slow_divide(a, b, m);
  if (m != 0) { if ((b < 0) != (m < 0)) { m = lz_add(m, b); q = lz_sub(q, (T)1); } }
  else m = copysign((T)0, b);
  return q != 0 ? q : copysign((T)0, a) * copysign((T)1, b);
}
"""

#: Quotients of complex numbers: Smith's algorithm, as NumPy has it.
COMPLEX_DIVISION = """
template <typename T> __device__ inline void lz_quotient(T ar, T ai, T br, T bi, T& re, T& im) {
  if (fabs(br) >= fabs(bi)) {
    if (br == 0 && bi == 0) { re = ar / fabs(br); im = ai / fabs(br); return; }
    const T ratio = bi / br;
    const T scale = (T)1 / (br + bi * ratio);
    re = (ar + ai * ratio) * scale;
    im = (ai - ar * ratio) * scale;
  } else {
    const T ratio = br / bi;
    const T scale = (T)1 / (bi + br * ratio);
    re = (ar * ratio + ai) * scale;
    im = (ai * ratio - ar) * scale;
  }
}
"""

# C's shifts by as many bits as there are, or by fewer than none, are undefined; NumPy shifts everything out.
_SHIFT = """
  const bool beyond = in1 < 0 || (unsigned long long)in1 >= {bits};
  out0 = beyond ? (out0_type)({rest}) : (out0_type)({shifted})"""


def _divide(step: Step, out: str) -> str | None:
    """Floor division ("q"), its remainder ("m") or C's fmod ("rest")."""
    if step.output.char not in "efd":
        return None
    kind = "float" if step.output.char == "e" else type_of(step.output)
    if out == "rest":
        return f"out0 = lz_rest<{kind}>(in0, in1)"
    return f"{kind} m; const {kind} q = lz_divide<{kind}>(in0, in1, m); out0 = {out}"


def _shift(step: Step, by: str) -> str:
    rest = "in0 < 0 ? -1 : 0" if by == ">>" and step.output.kind == "i" else "0"
    shifted = _wrapping("{in0} << in1", step.output) if by == "<<" else "in0 >> in1"
    return _SHIFT.format(bits=8 * step.output.itemsize, rest=rest, shifted=shifted)


def _reciprocal(step: Step) -> str:
    """One divided by a whole number; NumPy has an answer for zero."""
    with np.errstate(all="ignore"):
        of_zero = int(np.reciprocal(np.zeros(64, step.output))[0])
    return f"out0 = in0 == 0 ? (out0_type)0x{of_zero % 2**64:x}ull : (out0_type)(1 / in0)"


def _rest(step: Step) -> str | None:
    """What a division that goes towards zero leaves."""
    if step.output.kind == "f":
        return _divide(step, "rest")
    none = "in1 == 0 || in1 == -1" if step.output.kind == "i" else "in1 == 0"
    return f"out0 = {none} ? 0 : in0 % in1"


#: Threads beyond the last element compute, too, though nothing is written: they read what is there.
_ALONG = """
  long long o = at >> 32 == 0 && in3 >> 32 == 0 ? (unsigned int)at / (unsigned int)in3 : at / in3;
  if (o >= in5) o = 0;
  const long long w = in4 == 1 ? 0 : at % in4;
  out0 = in0[(o * in2 + lz_position(in1, in2)) * in4 + w]"""
def _take(step: Step) -> str:
    """The element of a table that positions along its first axes name, whose lengths come behind them; then, of rows,
    how many elements they have.
    """
    count, at = (len(step.inputs) - 1) // 2, "0"
    for k in range(1, count + 1):
        at = f"({at}) * in{count + k} + lz_position(in{k}, in{count + k})"
    if not step.indexed:
        return f"out0 = in0[{at}]"
    row = f"in{2 * count + 1}"      # numbers of 32 bits are divided several times as fast
    return (f"const long long w = (at | {row}) >> 32 == 0 ? (unsigned int)at % (unsigned int){row} : at % {row};"
            f" out0 = in0[({at}) * {row} + w]")


#: How many of a table's elements lie before a value: those that are less, or those that it is not less than. NaN comes
#: last.
_SEARCH = """
  long long low = 0, high = in2;
  while (low < high) {{
    const long long mid = (low + high) >> 1;
    if ({before}) low = mid + 1; else high = mid;
  }}
  out0 = low"""


def _search(step: Step) -> str:
    less = "{0} < {1}" if step.inputs[0].kind != "f" else "({0} < {1} || ({1} != {1} && {0} == {0}))"
    left = step.name == "search_left"
    return _SEARCH.format(before=less.format("in0[mid]", "in1") if left else f"!({less.format('in1', 'in0[mid]')})")


_LOG2 = """
  const out0_type z = log(in0);
  const {T} c = ({T})1.4426950408889634;
  out0 = out0_type(lz_mul(z.real(), c), lz_mul(z.imag(), c))"""
#: How far an element lies beyond the diagonal of its matrix; numbers of 32 bits are divided several times as fast.
_TRIANGLE = """
  long long beyond;
  if (at >> 32 == 0 && in1 >> 32 == 0 && in2 >> 32 == 0) {
    const unsigned int i = (unsigned int)at, m = (unsigned int)in2;
    beyond = (long long)(i % m) - (long long)(i / m % (unsigned int)in1);
  } else beyond = at % in2 - at / in2 % in1;
  out0 = in3 * beyond >= in4 ? in0 : out0_type(0)"""
_CLOSE = """
  const {T} gap = fabs(lz_sub(in0, in1)), limit = lz_add(in3, lz_mul(in2, fabs(in1)));
  out0 = (gap <= limit && isfinite(in1)) || in0 == in1"""
_IS = "(in{0}.real() != 0 || in{0}.imag() != 0)"

#: What such a step calls -> the text that it needs.
_CALLED = {"lz_divide": FLOAT_DIVISION, "lz_rest": FLOAT_DIVISION, "lz_quotient": COMPLEX_DIVISION}
#: Steps that are no ufuncs of CuPy's, or mean something else there: name -> what makes their text, or None.
_OWN: dict[str, Callable[[Step], str | None]] = {
    "astype": lambda step: "out0 = (out0_type)in0",
    "where": lambda step: "out0 = in0 ? in1 : in2",
    "real": lambda step: "out0 = in0.real()",
    "imag": lambda step: "out0 = in0.imag()",
    "value": lambda step: "out0 = in0",
    "index": lambda step: "out0 = (out0_type)at",
    "at_place": lambda step: "out0 = at == in2 ? in1 : in0",
    "triangle": lambda step: _TRIANGLE,
    "take": _take, "take_rows": _take, "take_along": lambda step: _ALONG, "search_left": _search,
    "search_right": _search,
    "isclose": lambda step: _CLOSE.format(T=type_of(step.inputs[0])),
    "isclose_or_nan": lambda step: _CLOSE.format(T=type_of(step.inputs[0])) + " || (isnan(in0) && isnan(in1))",
    "own_floor_divide": lambda step: _divide(step, "q"),
    "own_remainder": lambda step: _divide(step, "m"),
    "own_divide": lambda step: ("{T} re, im; lz_quotient<{T}>(in0.real(), in0.imag(), in1.real(), in1.imag(), re, im);"
                                " out0 = out0_type(re, im)").format(T=type_of(np.dtype(step.output.char.lower()))),
    "own_log2": lambda step: _LOG2.format(T=type_of(np.dtype(step.output.char.lower()))),
    "own_reciprocal": _reciprocal,
    "own_fmod": _rest,
    "own_logical_and": lambda step: f"out0 = {_IS.format(0)} && {_IS.format(1)}",
    "own_logical_or": lambda step: f"out0 = {_IS.format(0)} || {_IS.format(1)}",
    "own_logical_xor": lambda step: f"out0 = {_IS.format(0)} != {_IS.format(1)}",
    "own_logical_not": lambda step: f"out0 = !{_IS.format(0)}",
    "own_left_shift": lambda step: _shift(step, "<<"),
    "own_right_shift": lambda step: _shift(step, ">>"),
}


def routine(ufunc: Any, inputs: tuple[np.dtype, ...], output: np.dtype) -> str | None:
    """CuPy's snippet for a ufunc's loop, or None if it has none for just these dtypes."""
    for op in ufunc._ops.ops:
        if op.in_types == inputs and op.out_types == (output,) and isinstance(op.routine, str):
            return op.routine
    if output.kind != "b" or inputs[0].kind not in "iu" or any(d != inputs[0] for d in inputs):
        return None
    # It compares all whole numbers as the widest ones, which changes nothing.
    wide = (np.dtype(f"{inputs[0].kind}8"),) * len(inputs)
    return None if wide == inputs else routine(ufunc, wide, output)


# The lower bound first, and then the upper one, each by its own text.
_CLIP = """
  out0_type inside;
  {{ out0_type &out0 = inside; {maximum}; }}
  {{ const out0_type in0 = inside, in1 = in2; {minimum}; }}"""


def _clip(step: Step, xp: Any) -> tuple[str, str] | None:
    found = {name: snippet(Step(name, step.function, step.inputs[:2], step.output), xp)
             for name in ("maximum", "minimum")}
    if None in found.values():
        return None
    return _CLIP.format(**{name: text for name, (text, _) in found.items()}), found["maximum"][1]   # type: ignore[misc]


def snippet(step: Step, xp: Any) -> tuple[str, str] | None:
    """What sets ``out0`` from ``in0``, ``in1`` ..., and the helpers it needs; None if there is no text for the step."""
    if step.name == "clip":
        return _clip(step, xp)
    own = _OWN.get(step.name)
    if own is not None:
        text = own(step)
        return None if text is None else (text, "".join(needed for name, needed in _CALLED.items() if name in text))
    ufunc = xp._core.core._round_ufunc if step.name == "round" else getattr(xp, step.name)
    text = routine(ufunc, step.inputs, step.output)
    if text is None:
        return None
    if step.output.char == "e" and step.name in _HALVES:
        return _HALVES[step.name], ""
    if step.output.kind in "iu" and step.name in _WRAPPING and (step.name != "absolute" or step.output.kind == "i"):
        return _whole(step.name, step.output), ""
    key = step.name, step.output.char
    return _EXACT.get(key) or _SELECTED.get(key) or text, ufunc._preamble or ""
