"""CUDA source of one kernel for a program of element-wise steps."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .cuda_snippets import HELPERS, snippet, type_of

if TYPE_CHECKING:
    from ..fusion.program import Program

__all__ = ["THREADS", "VECTOR", "Body", "body", "dtype_of", "source", "vector_length", "walk_values"]

#: Bytes that a thread loads at once.
VECTOR = 16
#: In a block.
THREADS = 256

_HEADERS = """#include <cupy/complex.cuh>
#if __has_include(<cupy/float16.cuh>)
#include <cupy/float16.cuh>
#endif
#if __has_include(<cupy/bfloat16.cuh>)
#include <cupy/bfloat16.cuh>
#endif
#include <cupy/carray.cuh>
#include <cupy/atomics.cuh>
#include <cupy/math_constants.h>
"""

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
    """Text that computes one element, for any kernel.

    Attributes
    ----------
    head : str
        What stands before the kernel: headers, helpers and a function for each step.
    inputs : list of str
        Parameters of the kernel: ``p0`` ... (pointers) and ``x1`` ... (numbers), by the number of the input.
    walk : list of str
        Parameters that say where strided inputs have their elements; `walk_values` gives their values.
    load : str
        Sets ``x0`` ... for the element whose index in the result's memory order is ``at``.
    steps : str
        Sets ``t0`` ... from those.
    results : tuple of str
        Names of the program's outputs among them.
    """

    head: str
    inputs: list[str]
    walk: list[str]
    load: str
    steps: str
    results: tuple[str, ...]


def body(program: Program, xp: Any, index: str, flat: str = "p{i}[at]") -> Body | None:
    """Text of one element; None if CuPy has no snippet for a step.

    `index`: the C type of ``at``. `flat`: how an input in the result's own order is read.
    """
    found = _steps(program, xp)
    if found is None:
        return None
    head, called = found
    count = len(program.inputs)
    inputs, load = [], ""
    strided = [i for i, operand in enumerate(program.inputs) if operand.mode == "strided"]
    for i, operand in enumerate(program.inputs):
        t = type_of(operand.dtype)
        if operand.mode == "value":
            inputs.append(f"const {t} x{i}")
        else:
            inputs.append(f"const {t}* __restrict__ p{i}")
            read = flat.format(i=i) if operand.mode == "flat" else f"*(const {t}*)((const char*)p{i} + o{i})"
            load += f"      const {t} x{i} = {read};\n"
    walk = [f"const {index} d{axis}" for axis in range(1, program.ndim)]
    walk += [f"const long long s{i}_{axis}" for i in strided for axis in range(program.ndim)]
    names = {i: f"x{i}" for i in range(count)}
    steps = ""
    for position, (step, operands) in enumerate(program.steps):
        names[count + position] = f"t{position}"
        arguments = [names[o] for o in operands]
        if getattr(step, "indexed", False):
            arguments.append("(long long)at")
        steps += f"      const {type_of(step.output)} t{position} = {called[position]}({', '.join(arguments)});\n"
    return Body(head, inputs, walk, _offsets(program, index, strided) + load, steps,
                tuple(names[number] for number in program.outputs))


def _steps(program: Program, xp: Any) -> tuple[str, list[str]] | None:
    """Headers, helpers and a function for each step; and the functions' names."""
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
        parameters = [f"const {type_of(d)} {n}" for n, d in zip(names, step.inputs)]
        if getattr(step, "indexed", False):
            parameters.append("const long long at")
        output = type_of(step.output)
        lines = (f"__device__ __forceinline__ {output} step{position}({', '.join(parameters)}) {{\n"
                 f" {types} typedef {output} out0_type;\n  {output} out0;\n  {text};\n  return out0;\n}}\n")
        steps.append(f"namespace room{room} {{\n{lines}}}\n" if room else lines)
        called.append(f"room{room}::step{position}" if room else f"step{position}")
    # Preambles of two ufuncs may define the same helper (gcd and lcm do), so each has a namespace of its own.
    lines = {room: text.splitlines(keepends=True) for text, room in preambles.items()}
    included = [line for text in lines.values() for line in text if line.lstrip().startswith("#include")]
    rooms = [f"namespace room{room} {{\n{''.join(line for line in text if line not in included)}\n}}\n"
             for room, text in lines.items()]
    return "".join([_HEADERS, *included, _PACK, HELPERS, *rooms, *steps]), called


def _offsets(program: Program, index: str, strided: list[int]) -> str:
    """Text that sets ``o0`` ..., where strided inputs have the element `at`, in bytes."""
    if not strided:
        return ""
    text = f"      {index} rest = at;\n" + "".join(f"      long long o{i} = 0;\n" for i in strided)
    for axis in range(program.ndim - 1, 0, -1):
        text += f"      {{ const {index} c = rest % d{axis}; rest /= d{axis};"
        text += "".join(f" o{i} += c * s{i}_{axis};" for i in strided) + " }\n"
    return text + "".join(f"      o{i} += rest * s{i}_0;\n" for i in strided)


def walk_values(program: Program, arguments: list[Any], shape: tuple[int, ...], fortran: bool) -> list[int]:
    """The values of `Body.walk`: the shape in memory order but its first length, and strides in bytes."""
    if not program.ndim:
        return []
    values = list(shape[-2::-1] if fortran else shape[1:])
    for operand, array in zip(program.inputs, arguments):
        if operand.mode == "strided":
            missing = len(shape) - array.ndim
            strides = [0] * missing + [0 if length == 1 else stride
                                       for length, stride in zip(array.shape, array.strides)]
            values += strides[::-1] if fortran else strides
    return values


def source(program: Program, xp: Any, wide: bool) -> str | None:
    """CUDA source of two kernels, ``vector`` and ``single``; None if CuPy has no snippet for a step.

    `wide`: indexes take 64 bits.
    """
    index = "long long" if wide else "unsigned int"
    one = body(program, xp, index)
    many = body(program, xp, index, "a{i}.v[k]")
    if one is None or many is None:
        return None
    return one.head + _kernel(program, many, one, index, "vector", vector_length(program)) + _kernel(
        program, one, one, index, "single", 1)


def vector_length(program: Program) -> int:
    """Elements that a thread takes at once."""
    sizes = [operand.dtype.itemsize for operand in program.inputs if operand.mode == "flat"]
    sizes += [dtype_of(program, number).itemsize for number in program.outputs]
    return max(VECTOR // max(sizes), 1)


def dtype_of(program: Program, number: int) -> np.dtype:
    """The dtype of an operand by its number."""
    count = len(program.inputs)
    return program.inputs[number].dtype if number < count else program.steps[number - count][0].output


def _kernel(program: Program, many: Body, one: Body, index: str, name: str, length: int) -> str:
    """A kernel that takes `length` elements a thread at once with `many`, what is left at the end with `one`."""
    outputs = [type_of(dtype_of(program, number)) for number in program.outputs]
    parameters = [*one.inputs, *(f"{t}* __restrict__ q{k}" for k, t in enumerate(outputs)), f"const {index} n",
                  *one.walk]
    text = f'extern "C" __global__ void __launch_bounds__({THREADS}) {name}({", ".join(parameters)}) {{\n'
    text += f"  const {index} base = (({index})blockIdx.x * {THREADS} + threadIdx.x) * {length};\n"
    if length > 1:
        text += f"  if (base + {length} <= n) {{\n"
        for i, operand in enumerate(program.inputs):
            if operand.mode == "flat":
                t = type_of(operand.dtype)
                text += f"    const Pack<{t}, {length}> a{i} = lz_load<{t}, {length}>(p{i} + base);\n"
        text += "".join(f"    Pack<{t}, {length}> b{k};\n" for k, t in enumerate(outputs))
        text += f"    #pragma unroll\n    for (int k = 0; k < {length}; ++k) {{\n"
        text += f"      const {index} at = base + k;\n" + many.load + many.steps
        text += "".join(f"      b{k}.v[k] = {result};\n" for k, result in enumerate(many.results)) + "    }\n"
        text += "".join(f"    lz_store<{t}, {length}>(q{k} + base, b{k});\n" for k, t in enumerate(outputs))
        text += "    return;\n  }\n"
    text += f"  for ({index} at = base; at < n && at < base + {length}; ++at) {{\n" + one.load + one.steps
    text += "".join(f"      q{k}[at] = {result};\n" for k, result in enumerate(one.results))
    return text + "  }\n}\n"
