"""CUDA source of one kernel for a program of element-wise steps."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .cuda_snippets import HELPERS, snippet, type_of

if TYPE_CHECKING:
    from ..fusion.program import Program

__all__ = ["THREADS", "VECTOR", "dtype_of", "source", "vector_length"]

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


def source(program: Program, xp: Any, wide: bool) -> str | None:
    """CUDA source of two kernels, ``vector`` and ``single``; None if CuPy has no snippet for a step.

    `wide`: indexes take 64 bits.
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
        parameters = ", ".join(f"const {type_of(d)} {n}" for n, d in zip(names, step.inputs))
        output = type_of(step.output)
        lines = (f"__device__ __forceinline__ {output} step{position}({parameters}) {{\n"
                 f" {types} typedef {output} out0_type;\n  {output} out0;\n  {text};\n  return out0;\n}}\n")
        steps.append(f"namespace room{room} {{\n{lines}}}\n" if room else lines)
        called.append(f"room{room}::step{position}" if room else f"step{position}")
    index = "long long" if wide else "unsigned int"
    # Preambles of two ufuncs may define the same helper (gcd and lcm do), so each has a namespace of its own.
    lines = {room: text.splitlines(keepends=True) for text, room in preambles.items()}
    included = [line for text in lines.values() for line in text if line.lstrip().startswith("#include")]
    rooms = [f"namespace room{room} {{\n{''.join(line for line in text if line not in included)}\n}}\n"
             for room, text in lines.items()]
    return "".join([_HEADERS, *included, _PACK, HELPERS, *rooms, *steps,
                    _kernel(program, called, index, "vector", vector_length(program)),
                    _kernel(program, called, index, "single", 1)])


def vector_length(program: Program) -> int:
    """Elements that a thread takes at once."""
    sizes = [operand.dtype.itemsize for operand in program.inputs if operand.mode == "flat"]
    sizes += [dtype_of(program, number).itemsize for number in program.outputs]
    return max(VECTOR // max(sizes), 1)


def dtype_of(program: Program, number: int) -> np.dtype:
    """The dtype of an operand by its number."""
    count = len(program.inputs)
    return program.inputs[number].dtype if number < count else program.steps[number - count][0].output


def _kernel(program: Program, called: list[str], index: str, name: str, length: int) -> str:
    count = len(program.inputs)
    parameters, loads, singles = [], [], []
    strided = []
    for i, operand in enumerate(program.inputs):
        t = type_of(operand.dtype)
        if operand.mode == "value":
            parameters.append(f"const {t} x{i}")
        else:
            parameters.append(f"const {t}* __restrict__ p{i}")
            if operand.mode == "flat":
                loads.append(f"    const Pack<{t}, {length}> a{i} = lz_load<{t}, {length}>(p{i} + base);\n")
                singles.append(f"const {t} x{i} = SOURCE({i});")
            else:
                strided.append(i)
                singles.append(f"const {t} x{i} = *(const {t}*)((const char*)p{i} + o{i});")
    stores, keeps = [], []
    for k, number in enumerate(program.outputs):
        t = type_of(dtype_of(program, number))
        parameters.append(f"{t}* __restrict__ q{k}")
        stores.append(f"    lz_store<{t}, {length}>(q{k} + base, b{k});\n")
        keeps.append((k, t, number))
    parameters.append(f"const {index} n")
    parameters += [f"const {index} d{axis}" for axis in range(1, program.ndim)]
    parameters += [f"const long long s{i}_{axis}" for i in strided for axis in range(program.ndim)]
    where = ""
    if program.ndim:
        where = f"      {index} rest = at;\n"
        where += "".join(f"      long long o{i} = 0;\n" for i in strided)
        for axis in range(program.ndim - 1, 0, -1):
            where += f"      {{ const {index} c = rest % d{axis}; rest /= d{axis};"
            where += "".join(f" o{i} += c * s{i}_{axis};" for i in strided) + " }\n"
        where += "".join(f"      o{i} += rest * s{i}_0;\n" for i in strided)
    names = {i: f"x{i}" for i in range(count)}
    body = ""
    for position, (step, operands) in enumerate(program.steps):
        names[count + position] = f"t{position}"
        arguments = ", ".join(names[o] for o in operands)
        body += f"      const {type_of(step.output)} t{position} = {called[position]}({arguments});\n"

    def element(read: str, write: str) -> str:
        taken = "".join(f"      {line.replace('SOURCE', read)}\n" for line in singles)
        kept = "".join(f"      {write.format(k=k)} = {names[number]};\n" for k, _, number in keeps)
        return where + taken + body + kept

    packs = "".join(f"    Pack<{t}, {length}> b{k};\n" for k, t, _ in keeps)
    text = f'extern "C" __global__ void __launch_bounds__({THREADS}) {name}({", ".join(parameters)}) {{\n'
    text += f"  const {index} base = (({index})blockIdx.x * {THREADS} + threadIdx.x) * {length};\n"
    if length > 1:
        text += f"  if (base + {length} <= n) {{\n" + "".join(loads) + packs
        text += f"    #pragma unroll\n    for (int k = 0; k < {length}; ++k) {{\n"
        text += f"      const {index} at = base + k;\n" + element("VECTOR", "b{k}.v[k]") + "    }\n"
        text += "".join(stores) + "    return;\n  }\n"
    text += f"  for ({index} at = base; at < n && at < base + {length}; ++at) {{\n"
    text += element("SINGLE", "q{k}[at]") + "  }\n}\n"
    head = "#undef VECTOR\n#undef SINGLE\n#define VECTOR(i) a##i.v[k]\n#define SINGLE(i) p##i[at]\n"
    return head + text
