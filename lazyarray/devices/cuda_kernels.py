"""One kernel for a program of element-wise steps: CUDA source, compilation beside the work, launch.

A step is CuPy's own snippet for that ufunc and those dtypes, so that a fused result is the unfused one. What CUDA's
compiler might contract across steps (a product and a sum into one fused multiply-add, which rounds once) is written
with intrinsics that are never contracted, see `_EXACT`; within a step it may, as it does in CuPy's kernel.

CuPy compiles, and keeps what it compiled on disk.
"""
from __future__ import annotations

import logging
import queue
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..fusion.program import Program

__all__ = ["Kernels", "source"]

#: Bytes that a thread loads at once.
VECTOR = 16
_THREADS = 256
#: Programs that are remembered.
_MOST = 4096

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
__device__ inline float lz_add(float a, float b) { return __fadd_rn(a, b); }
__device__ inline double lz_add(double a, double b) { return __dadd_rn(a, b); }
__device__ inline float lz_sub(float a, float b) { return __fsub_rn(a, b); }
__device__ inline double lz_sub(double a, double b) { return __dsub_rn(a, b); }
__device__ inline float lz_mul(float a, float b) { return __fmul_rn(a, b); }
__device__ inline double lz_mul(double a, double b) { return __dmul_rn(a, b); }
template <typename T> __device__ inline complex<T> lz_add(complex<T> a, complex<T> b) {
  return complex<T>(lz_add(a.real(), b.real()), lz_add(a.imag(), b.imag()));
}
template <typename T> __device__ inline complex<T> lz_sub(complex<T> a, complex<T> b) {
  return complex<T>(lz_sub(a.real(), b.real()), lz_sub(a.imag(), b.imag()));
}
"""

#: Steps that end or begin with what the compiler would contract with its neighbour.
_EXACT = {
    ("add", "f"): "out0 = lz_add(in0, in1)",
    ("add", "d"): "out0 = lz_add(in0, in1)",
    ("add", "F"): "out0 = lz_add(in0, in1)",
    ("add", "D"): "out0 = lz_add(in0, in1)",
    ("subtract", "f"): "out0 = lz_sub(in0, in1)",
    ("subtract", "d"): "out0 = lz_sub(in0, in1)",
    ("subtract", "F"): "out0 = lz_sub(in0, in1)",
    ("subtract", "D"): "out0 = lz_sub(in0, in1)",
    ("multiply", "f"): "out0 = lz_mul(in0, in1)",
    ("multiply", "d"): "out0 = lz_mul(in0, in1)",
    ("square", "f"): "out0 = lz_mul(in0, in0)",
    ("square", "d"): "out0 = lz_mul(in0, in0)",
}

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


def routine(ufunc: Any, inputs: tuple[np.dtype, ...], output: np.dtype) -> str | None:
    """CuPy's snippet for a ufunc's loop, or None if it has none for just these dtypes."""
    for op in ufunc._ops.ops:
        if op.in_types == inputs and op.out_types == (output,) and isinstance(op.routine, str):
            return op.routine
    return None


def source(program: Program, xp: Any, wide: bool) -> str | None:
    """CUDA source of two kernels, ``vector`` and ``single``; None if CuPy has no snippet for a step.

    `wide`: indexes take 64 bits.
    """
    preambles: dict[str, int] = {}
    steps, called = [], []
    for position, (step, _) in enumerate(program.steps):
        room = 0
        if step.name == "astype":
            text = "out0 = (out0_type)in0"
        else:
            ufunc = getattr(xp, step.name)
            text = routine(ufunc, step.inputs, step.output)
            if text is None:
                return None
            text = _EXACT.get((step.name, step.output.char), text)
            if ufunc._preamble:
                room = preambles.setdefault(ufunc._preamble, len(preambles) + 1)
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
    return "".join([_HEADERS, *included, _PACK, *rooms, *steps,
                    _kernel(program, called, index, "vector", vector_length(program)),
                    _kernel(program, called, index, "single", 1)])


def vector_length(program: Program) -> int:
    """Elements that a thread takes at once."""
    sizes = [operand.dtype.itemsize for operand in program.inputs if operand.mode == "flat"]
    sizes += [_dtype(program, number).itemsize for number in program.outputs]
    return max(VECTOR // max(sizes), 1)


def _dtype(program: Program, number: int) -> np.dtype:
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
        t = type_of(_dtype(program, number))
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
    text = f'extern "C" __global__ void __launch_bounds__({_THREADS}) {name}({", ".join(parameters)}) {{\n'
    text += f"  const {index} base = (({index})blockIdx.x * {_THREADS} + threadIdx.x) * {length};\n"
    if length > 1:
        text += f"  if (base + {length} <= n) {{\n" + "".join(loads) + packs
        text += f"    #pragma unroll\n    for (int k = 0; k < {length}; ++k) {{\n"
        text += f"      const {index} at = base + k;\n" + element("VECTOR", "b{k}.v[k]") + "    }\n"
        text += "".join(stores) + "    return;\n  }\n"
    text += f"  for ({index} at = base; at < n && at < base + {length}; ++at) {{\n"
    text += element("SINGLE", "q{k}[at]") + "  }\n}\n"
    head = "#undef VECTOR\n#undef SINGLE\n#define VECTOR(i) a##i.v[k]\n#define SINGLE(i) p##i[at]\n"
    return head + text


class Kernel:
    """A compiled program."""

    def __init__(self, cupy: Any, program: Program, module: Any) -> None:
        self._ndarray = cupy.ndarray
        self._vector = module.get_function("vector")
        self._single = module.get_function("single")
        self._length = vector_length(program)
        count = len(program.inputs)
        self._flat = [i for i in range(count) if program.inputs[i].mode == "flat"]
        self._strided = [i for i in range(count) if program.inputs[i].mode == "strided"]
        self._outputs = [_dtype(program, number) for number in program.outputs]
        self._ndim = program.ndim

    def __call__(self, arguments: list[Any], shape: tuple[int, ...], fortran: bool) -> list[Any]:
        order = "F" if fortran else "C"
        outputs = [self._ndarray(shape, dtype, None, None, order) for dtype in self._outputs]
        n = outputs[0].size
        aligned = True
        for i in self._flat:
            if arguments[i].data.ptr % VECTOR:
                aligned = False
        launched = [*arguments, *outputs, n]
        if self._ndim:
            launched += shape[-2::-1] if fortran else shape[1:]
            for i in self._strided:
                strides = _strides(arguments[i], shape)
                launched += strides[::-1] if fortran else strides
        length = self._length if aligned else 1
        blocks = -(-n // (_THREADS * length))
        (self._vector if aligned else self._single)((blocks,), (_THREADS,), launched)
        return outputs


def _strides(array: Any, shape: tuple[int, ...]) -> list[int]:
    """Strides in bytes of an array that is broadcast to `shape`."""
    missing = len(shape) - array.ndim
    return [0] * missing + [0 if length == 1 else stride for length, stride in zip(array.shape, array.strides)]


class Kernels:
    """The kernels of a process: compiled by a thread of their own, never by who asks."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._failures = (cupy.cuda.compiler.CompileException, cupy.cuda.runtime.CUDARuntimeError,
                          cupy.cuda.driver.CUDADriverError, OSError)
        self._known: dict[tuple[Program, bool], Kernel | None] = {}
        self._jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._worker: threading.Thread | None = None
        self._lock = threading.Lock()
        self._done = threading.Condition(self._lock)
        self._waiting = 0

    def get(self, program: Program, size: int) -> Kernel | None:
        """The kernel of a program, or None: then it is being compiled, or can't be."""
        key = program, size >= 1 << 31
        found = self._known.get(key, self)
        if found is self:
            self._ask(key)
            return None
        return found  # type: ignore[return-value]

    def wait(self) -> None:
        """Wait until everything that was asked for is compiled."""
        with self._done:
            while self._waiting:
                self._done.wait()

    def _ask(self, key: tuple[Program, bool]) -> None:
        with self._lock:
            if key in self._known:
                return
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[key] = None
            self._waiting += 1
            self._jobs.put(key)
            if self._worker is None or not self._worker.is_alive():
                self._worker = threading.Thread(target=self._work, name="lazyarray-compiler", daemon=True)
                self._worker.start()

    def _work(self) -> None:
        while True:
            program, wide = key = self._jobs.get()
            kernel = None
            try:
                text = source(program, self._cupy, wide)
                if text is not None:
                    module = self._cupy.RawModule(code=text, options=("--std=c++17",))
                    module.compile()
                    kernel = Kernel(self._cupy, program, module)
            except self._failures as error:
                # It runs unfused for ever, which is slower and no less right.
                logging.getLogger("lazyarray").warning("a kernel of %d steps was not made: %s", len(program.steps),
                                                       str(error).strip().partition("\n")[0])
            finally:
                with self._done:
                    self._known[key] = kernel
                    self._waiting -= 1
                    self._done.notify_all()
