"""CUDA source of kernels for a program of element-wise steps."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from .launch_plan import VECTOR, WIDE, Form, dtype_of, general, vector_length, walk_bytes
from .snippets import HELPERS, snippet, type_of

if TYPE_CHECKING:
    from ...program import Operand, Program

__all__ = ["VECTOR", "Body", "body", "dtype_of", "lengths_in", "source", "strides_in", "vector_length", "walk_values"]

_COMPLEX = "#include <cupy/complex.cuh>\n#define LZ_COMPLEX\n"
_HALF = """#if __has_include(<cupy/float16.cuh>)
#include <cupy/float16.cuh>
#endif
#define LZ_HALF
"""
_HEADERS = """#include <cupy/carray.cuh>
#include <cupy/math_constants.h>
"""

#: What is read of no place that goes by the element: numbers, and tables, of which steps take elements.
_GIVEN = ("value", "table")

#: Programs that hold more values of an element at a time are computed element by element: with four inputs and four
#: costly functions of float64, all elements at once take 88 registers of each thread, not 64, and 1.12 times the time.
_HELD = 2

# Loads and stores of a pack are written as one word: not every release of the compiler joins those of its elements.
_PACK = """
template <typename T, int N> struct alignas(sizeof(T) * N) Pack { T v[N]; };
template <int B> struct Word;
template <> struct Word<1> { typedef unsigned char type; };
template <> struct Word<2> { typedef unsigned short type; };
template <> struct Word<4> { typedef unsigned int type; };
template <> struct Word<8> { typedef uint2 type; };
template <> struct Word<16> { typedef uint4 type; };
template <typename T, int N> __device__ inline Pack<T, N> lz_load(const T* __restrict__ from) {
  typedef typename Word<sizeof(T) * N>::type word;
  const word w = *reinterpret_cast<const word*>(from);
  Pack<T, N> pack;
  memcpy(&pack, &w, sizeof(w));
  return pack;
}
template <typename T, int N> __device__ inline void lz_store(T* __restrict__ to, const Pack<T, N>& pack) {
  typename Word<sizeof(T) * N>::type w;
  memcpy(&w, &pack, sizeof(w));
  *reinterpret_cast<typename Word<sizeof(T) * N>::type*>(to) = w;
}
"""


class Body(NamedTuple):
    """Text that computes one element, for any kernel."""

    #: What stands before the kernels: headers, helpers, a function for each step and the type of `walk`.
    head: str
    #: Parameters of the kernel: ``p0`` ... (pointers) and ``x1`` ... (numbers), by the number of the input.
    inputs: list[str]
    #: Parameters that say where strided inputs have their elements; `walk_values` returns their values.
    walk: list[str]
    #: Sets ``o0`` ..., where strided inputs have the element whose index in the result's memory order is ``at``.
    offsets: str
    #: Sets ``x0`` ... for that element.
    load: str
    #: Sets ``t0`` ... from those.
    steps: str
    #: Names of the program's outputs among them.
    results: tuple[str, ...]


def body(program: Program, xp: Any, index: str, flat: str = "p{i}[at]") -> Body | None:
    """Text of one element; None if CuPy has no snippet for a step.

    `index`: the C type of ``at``, "unsigned int" (below 2 ** 31) or "long long". `flat`: how an input in the result's
    own order is read.
    """
    found = _steps(program, xp, True)
    if found is None:
        return None
    form = general(program, index == "long long")
    load = ""
    for i, operand in enumerate(program.inputs):
        if operand.mode not in _GIVEN:
            t = type_of(operand.dtype)
            read = flat.format(i=i) if operand.mode == "flat" else f"*(const {t}*)((const char*)p{i} + o{i})"
            load += f"      const {t} x{i} = {read};\n"
    steps, results = _computed(program, found[1])
    return Body(found[0] + _declared(form, "Walk"), _inputs(program), ["const Walk w"] if form.ndim else [],
                _offsets(program, form, "at"), load, steps, results)


def walk_values(program: Program, arguments: list[Any], shape: tuple[int, ...], fortran: bool) -> list[bytes]:
    """The values of `Body.walk` for a `Launcher`. Indexes are as wide as the size of the shape needs."""
    strides = [strides_in(array, shape, fortran) for operand, array in zip(program.inputs, arguments)
               if operand.mode == "strided"]
    if not strides:
        return []
    lengths = lengths_in(shape, fortran)
    return [walk_bytes(lengths, strides, math.prod(lengths) >= WIDE)]


def lengths_in(shape: tuple[int, ...], fortran: bool) -> list[int]:
    """A shape in its array's memory order; without axes it counts as one."""
    return list(shape[::-1] if fortran else shape) or [1]


def strides_in(array: Any, shape: tuple[int, ...], fortran: bool) -> list[int]:
    """Strides in bytes of an array that is broadcast to `shape`, in the result's memory order."""
    strides = array.strides
    if array.shape != shape:
        missing = len(shape) - array.ndim
        strides = [0] * missing + [0 if length == 1 else stride for length, stride in zip(array.shape, strides)]
    return list(strides[::-1] if fortran else strides) or [0]


def source(program: Program, xp: Any, forms: dict[str, Form]) -> str | None:
    """CUDA source of a kernel for each form, by name; None if CuPy has no snippet for a step."""
    found = _steps(program, xp, False)
    if found is None:
        return None
    text = found[0]
    for name, form in forms.items():
        text += (_tiles if form.tile else _packs)(program, found[1], form, name)
    return text


def _steps(program: Program, xp: Any, everything: bool) -> tuple[str, list[str]] | None:
    """Headers, helpers and a function for each step; and the functions' names.

    `everything`: also headers that the steps have no need of.
    """
    preambles: dict[str, int] = {}
    steps, called = [], []
    for position, (step, _) in enumerate(program.steps):
        found = snippet(step, xp)
        if found is None:
            return None
        text, preamble = found
        room = preambles.setdefault(preamble, len(preambles) + 1) if preamble else 0
        names = [f"in{i}" for i in range(len(step.inputs))]
        types = "".join(f" typedef {type_of(d)} {n}_type;" for n, d in zip(names, step.inputs))
        parameters = [f"const {type_of(d)}{'*' if step.takes and n == 'in0' else ''} {n}"
                      for n, d in zip(names, step.inputs)]
        if step.indexed:
            parameters.append("const long long at")
        output = type_of(step.output)
        written = (f"__device__ __forceinline__ {output} step{position}({', '.join(parameters)}) {{\n"
                   f" {types} typedef {output} out0_type;\n  {output} out0;\n  {text};\n  return out0;\n}}\n")
        steps.append(f"namespace room{room} {{\n{written}}}\n" if room else written)
        called.append(f"room{room}::step{position}" if room else f"step{position}")
    # Preambles of two ufuncs may define the same helper (gcd and lcm do), so each has a namespace of its own.
    lines = {room: text.splitlines(keepends=True) for text, room in preambles.items()}
    included = [line for text in lines.values() for line in text if line.lstrip().startswith("#include")]
    rooms = [f"namespace room{room} {{\n{''.join(line for line in text if line not in included)}\n}}\n"
             for room, text in lines.items()]
    needed = "".join([*included, *rooms, *steps, *_inputs(program)])
    # Reading headers is most of the compiler's work: that of complex numbers takes as long as a chain of operators.
    headers = [header for header, word in ((_COMPLEX, "complex"), (_HALF, "float16")) if everything or word in needed]
    return "".join([*headers, _HEADERS, *included, _PACK, HELPERS, *rooms, *steps]), called


def _computed(program: Program, called: list[str]) -> tuple[str, tuple[str, ...]]:
    """Text that sets ``t0`` ... from ``x0`` ..., and the names of the outputs."""
    count = len(program.inputs)
    names = {i: f"p{i}" if operand.mode == "table" else f"x{i}" for i, operand in enumerate(program.inputs)}
    text = ""
    for position, (step, operands) in enumerate(program.steps):
        names[count + position] = f"t{position}"
        arguments = [names[o] for o in operands]
        if step.indexed:
            arguments.append("(long long)at")
        text += f"      const {type_of(step.output)} t{position} = {called[position]}({', '.join(arguments)});\n"
    return text, tuple([names[number] for number in program.outputs])


def _held(program: Program) -> int:
    """Values of an element that a thread holds at a time, at most; numbers are the same for all."""
    count, steps = len(program.inputs), len(program.steps)
    last = dict.fromkeys((i for i, operand in enumerate(program.inputs) if operand.mode not in _GIVEN), -1)
    last |= {operand: position for position, (_, operands) in enumerate(program.steps)
             for operand in operands if operand >= count or operand in last}
    last |= dict.fromkeys(program.outputs, steps)
    return max(sum(made <= position < end for made, end in ((number - count, last[number]) for number in last))
               for position in range(-1, steps))


def _together(program: Program, called: list[str], form: Form) -> tuple[str, str, tuple[str, ...]]:
    """What takes each step for all elements of a thread before the next; then as `_one_by_one`.

    What a function branches on keeps the compiler from joining what stands behind it. Step by step it loads an
    exponential's constants once for all, and writes nothing twice (a softplus of float32 takes 456 instructions, not
    736; one of float64 7 % less time). But all that is held is held of all elements.
    """
    pack, total = form.pack, form.units * form.pack
    names = {i: f"x{i}" if read == "value" else f"p{i}" if read == "table" else (
        f"a{i}[j / {pack}].v[{0 if read == 'same' else f'j % {pack}'}]") for i, read in enumerate(form.reads)}
    text = ""
    for position, (step, operands) in enumerate(program.steps):
        arguments = [names[o] for o in operands]
        if step.indexed:
            arguments.append(f"(long long)(first + j / {pack} * {form.threads * pack} + j % {pack})")
        text += (f"  {type_of(step.output)} t{position}[{total}];\n"
                 f"  #pragma unroll\n  for (int j = 0; j < {total}; ++j)"
                 f" t{position}[j] = {called[position]}({', '.join(arguments)});\n")
        names[len(form.reads) + position] = f"t{position}[j]"
    return text, f"      const int j = u * {pack} + k;\n", tuple([names[number] for number in program.outputs])


def _one_by_one(program: Program, called: list[str], form: Form) -> tuple[str, str, tuple[str, ...]]:
    """What stands before the elements, what for the one whose number in its pack is ``k``, and names of its results."""
    text = f"      const {_index(form)} at = base + k;\n"
    for i, operand in _read(program):
        if form.reads[i] not in _GIVEN:
            place = "0" if form.reads[i] == "same" else "k"
            text += f"      const {type_of(operand.dtype)} x{i} = a{i}[u].v[{place}];\n"
    steps, results = _computed(program, called)
    return "", text + steps, results


def _inputs(program: Program) -> list[str]:
    # What is written may be read through another pointer: then nothing is promised of either.
    only = "" if program.into else "__restrict__ "
    inputs = [f"const {type_of(operand.dtype)} x{i}" if operand.mode == "value"
              else f"const {type_of(operand.dtype)}* {only}p{i}" for i, operand in enumerate(program.inputs)]
    if program.into:
        inputs[-1] = inputs[-1].removeprefix("const ")
    return inputs


def _read(program: Program) -> list[tuple[int, Operand]]:
    """The inputs that are operands, with their numbers."""
    return list(enumerate(program.inputs))[:len(program.inputs) - program.into]


def _walk(form: Form, i: int) -> int:
    """The input whose walk another one shares."""
    return form.walks[i] if form.walks else i


def _declared(form: Form, name: str) -> str:
    """The type of what `walk_bytes` makes."""
    if not form.ndim:
        return ""
    fields = [f"long long s{i}_{axis};" for i in form.walkers for axis in range(form.ndim)]
    fields += [f"long long d{axis};" if form.wide else f"unsigned int d{axis}, m{axis}, h{axis};"
               for axis in range(1, form.ndim)]
    return f"struct alignas(8) {name} {{ {' '.join(fields)} }};\n"


def _index(form: Form) -> str:
    return "long long" if form.wide else "unsigned int"


def _offsets(program: Program, form: Form, at: str, strided: list[int] | None = None) -> str:
    """Text that sets ``o0`` ..., where strided inputs have the element `at`, in bytes: those inputs, or all."""
    if strided is None:
        strided = form.walkers
    if not strided:
        return ""
    index = _index(form)
    text = f"      {index} rest = {at};\n" + "".join(f"      long long o{i} = 0;\n" for i in strided)
    for axis in range(form.ndim - 1, -1, -1):
        last = axis == form.ndim - 1
        moved = ""
        for i in strided:
            if last and form.reads[i] == "same":
                continue
            known = last and form.reads[i] == "along"
            moved += f" o{i} += (long long)c * {program.inputs[i].dtype.itemsize if known else f'w.s{i}_{axis}'};"
        if not axis:
            text += f"      {{ const {index} c = rest;{moved} }}\n"
            continue
        # The quotient as the upper half of a product: see `walk_bytes`.
        quotient = f"rest / w.d{axis}" if form.wide else f"(__umulhi(rest, w.m{axis}) + rest) >> w.h{axis}"
        text += (f"      {{ const {index} quotient = {quotient}, c = rest - quotient * w.d{axis};"
                 f" rest = quotient;{moved} }}\n")
    return text


def _parameters(program: Program, form: Form, name: str) -> tuple[str, list[str]]:
    """The head of a kernel, with the types before it, and the types of the outputs."""
    outputs = [type_of(dtype_of(program, number)) for number in program.outputs]
    made = [f"{t}* __restrict__ q{k}" for k, t in enumerate(outputs[:len(outputs) - program.into])]
    parameters = [*_inputs(program), *made, f"const {_index(form)} n"]
    if form.takes_alignment:
        parameters.append("const int aligned")
    if form.ndim:
        parameters.append(f"const Walk_{name} w")
    declared = _declared_tiles(form, f"Walk_{name}") if form.tile else _declared(form, f"Walk_{name}")
    head = f'extern "C" __global__ void __launch_bounds__({form.threads}) {name}({", ".join(parameters)}) {{\n'
    return declared + head, outputs


def _packs(program: Program, called: list[str], form: Form, name: str) -> str:
    """A kernel whose threads take packs. All loads of a thread stand before what is computed, so that none waits."""
    text, outputs = _parameters(program, form, name)
    index, pack, units, stride = _index(form), form.pack, form.units, form.threads * form.pack
    text += (f"  const {index} tile = ({index})blockIdx.x * {form.elements};\n"
             f"  const {index} first = tile + threadIdx.x * {pack};\n"
             f"  const bool whole = {'aligned && ' if form.takes_alignment else ''}tile + {form.elements} <= n;\n")
    whole = part = ""
    for i, operand in _read(program):
        read, t = form.reads[i], type_of(operand.dtype)
        if read in _GIVEN:
            continue
        held = 1 if read == "same" else pack
        text += f"  Pack<{t}, {held}> a{i}[{units}];\n"
        if read == "flat" and pack == 1:
            whole += f"      a{i}[u].v[0] = p{i}[base];\n"
            part += f"      a{i}[u].v[0] = p{i}[base];\n"
        elif read == "flat":
            whole += f"      a{i}[u] = lz_load<{t}, {pack}>(p{i} + base);\n"
            part += (f"      #pragma unroll\n      for (int k = 0; k < {pack}; ++k)"
                     f" if (base + k < n) a{i}[u].v[k] = p{i}[base + k];\n")
        else:   # a row is a multiple of a pack, or a pack is one element: there is no part of one
            place = f"(const {t}*)((const char*)p{i} + o{_walk(form, i)})"
            load = f"      a{i}[u].v[0] = *{place};\n" if held == 1 else (
                f"      a{i}[u] = lz_load<{t}, {held}>({place});\n")
            whole += load
            part += load
    places = _offsets(program, form, "base", sorted({_walk(form, i) for i, _ in _read(program)} & {*form.walkers}))
    loop = f"    #pragma unroll\n    for (int u = 0; u < {units}; ++u) {{\n"
    base = f"      const {index} base = first + u * {stride};\n"
    if whole:
        text += f"  if (whole) {{\n{loop}{base}{places}{whole}    }}\n  }} else {{\n"
        text += f"{loop}{base}      if (base >= n) break;\n{places}{part}    }}\n  }}\n"
    before, here, results = (_together if _held(program) <= _HELD else _one_by_one)(program, called, form)
    text += f"{before}  #pragma unroll\n  for (int u = 0; u < {units}; ++u) {{\n{base}"
    text += "".join(f"    Pack<{t}, {pack}> b{k};\n" for k, t in enumerate(outputs))
    text += f"    #pragma unroll\n    for (int k = 0; k < {pack}; ++k) {{\n{here}"
    text += "".join(f"      b{k}.v[k] = {result};\n" for k, result in enumerate(results)) + "    }\n"
    written = [f"q{k} + base" for k in range(len(outputs))]
    if program.into:
        last = len(program.inputs) - 1
        if form.reads[last] == "flat":
            written[-1] = f"p{last} + base"
        else:       # as where strided inputs are read: there is no part of a pack
            walk = _walk(form, last)
            text += _offsets(program, form, "base", [walk])
            written[-1] = f"({outputs[-1]}*)((char*)p{last} + o{walk})"
    if pack == 1:
        return text + "".join(f"    if (whole || base < n) *({place}) = b{k}.v[0];\n"
                              for k, place in enumerate(written)) + "  }\n}\n"
    text += "    if (whole) {\n"
    text += "".join(f"      lz_store<{t}, {pack}>({place}, b{k});\n"
                    for k, (t, place) in enumerate(zip(outputs, written)))
    text += f"    }} else {{\n      #pragma unroll\n      for (int k = 0; k < {pack}; ++k) if (base + k < n) {{\n"
    text += "".join(f"        ({place})[k] = b{k}.v[k];\n" for k, place in enumerate(written))
    return text + "      }\n    }\n  }\n}\n"


def _declared_tiles(form: Form, name: str) -> str:
    fields = [f"s{i}_{axis}" for i in form.walkers for axis in range(3)]
    return f"struct {name} {{ long long {', '.join([*fields, 'outer, row, rows, columns, down, across'])}; }};\n"


def _tiles(program: Program, called: list[str], form: Form, name: str) -> str:
    """A kernel whose blocks take tiles: inputs whose neighbours are in the next row are turned in shared memory."""
    height, width, threads = form.tile
    text, outputs = _parameters(program, form, name)
    index, lines = _index(form), threads // width
    text += (f"  const int x = threadIdx.x % {width}, y = threadIdx.x / {width};\n"
             f"  const {index} across = ({index})w.across, down = ({index})w.down;\n"
             f"  const {index} line = blockIdx.x / across, outer = line / down;\n"
             f"  const {index} c0 = (blockIdx.x - line * across) * {width}, r0 = (line - outer * down) * {height};\n"
             f"  const {index} rows = ({index})w.rows, columns = ({index})w.columns;\n"
             f"  const bool whole = r0 + {height} <= rows && c0 + {width} <= columns;\n"
             f"  const {index} first = outer * ({index})w.outer + (r0 + y) * ({index})w.row + c0 + x;\n"
             f"  const {index} next = {lines} * ({index})w.row;\n")
    for i in form.walkers:      # a warp goes along an input that is turned, and along the result
        down, across, step = ("x", "y", 2) if form.reads[i] == "tile" else ("y", "x", 1)
        text += (f"  const long long o{i} = (long long)outer * w.s{i}_0 + (long long)(r0 + {down}) * w.s{i}_1"
                 f" + (long long)(c0 + {across}) * w.s{i}_2, e{i} = {lines} * w.s{i}_{step};\n")
    turned = kept = taken = ""
    for i, operand in _read(program):
        read, t = form.reads[i], type_of(operand.dtype)
        if read in _GIVEN:
            continue
        walk = _walk(form, i)
        where = f"p{i}[at]" if read == "flat" else f"*(const {t}*)((const char*)p{i} + (o{walk} + u * e{walk}))"
        if read == "tile":
            # Characters: CUDA's complex numbers have constructors, which shared memory doesn't take.
            text += f"  __shared__ alignas(16) char memory{i}[sizeof({t}) * {height * (width + 1)}];\n"
            text += f"  {t} (*const turned{i})[{width + 1}] = reinterpret_cast<{t} (*)[{width + 1}]>(memory{i});\n"
            turned += f"    turned{i}[y + u * {lines}][x] = {where};\n"
            taken += f"      const {t} x{i} = turned{i}[x][y + u * {lines}];\n"
        else:
            text += f"  Pack<{t}, {form.units}> a{i};\n"
            kept += f"    a{i}.v[u] = {where};\n"
            taken += f"      const {t} x{i} = a{i}.v[u];\n"
    loop = f"  #pragma unroll\n  for (int u = 0; u < {form.units}; ++u) {{\n"
    here = (f"    if (!whole && (r0 + y + u * {lines} >= rows || c0 + x >= columns)) continue;\n"
            f"    const {index} at = first + u * next;\n")
    if turned:
        text += f"{loop}    if (!whole && (r0 + x >= rows || c0 + y + u * {lines} >= columns)) continue;\n"
        text += f"{turned}  }}\n"
    if kept:
        text += f"{loop}{here}{kept}  }}\n"
    steps, results = _computed(program, called)
    text += ("  __syncthreads();\n" if turned else "") + f"{loop}{here}{taken}{steps}"
    written = [f"q{k}[at]" for k in range(len(results))]
    if program.into:
        last = len(program.inputs) - 1
        walk = _walk(form, last)
        written[-1] = (f"p{last}[at]" if form.reads[last] == "flat" else
                       f"*({outputs[-1]}*)((char*)p{last} + (o{walk} + u * e{walk}))")
    return text + "".join(f"      {place} = {result};\n" for place, result in zip(written, results)) + "  }\n}\n"
