"""CUDA's text run on the host, by a C++ compiler: what a kernel does is tested where there is no GPU.

The threads of a block are coroutines. From one barrier to the next its warps run one after the other, in an order that
changes, as that of the blocks does: what lacks a barrier, or counts on an order, gives wrong values. `Emulator` stands
for as much of CuPy as launches such kernels.
"""
from __future__ import annotations

import ctypes
import math
import re
import shutil
import subprocess
import types

import numpy as np
import pytest

SHIM = r"""
#include <algorithm>
#include <cstring>
#include <random>
#include <type_traits>
#include <ucontext.h>
#include <vector>

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)
#define __forceinline__ inline
struct dim { unsigned int x; };
static int fault;       // 1: a barrier that not all threads come to, 2: an address that is not aligned
struct alignas(16) uint4 {
  unsigned int x, y, z, w;
  uint4() {}
  uint4(const uint4& other) { *this = other; }
  uint4& operator=(const uint4& other) {
    if ((size_t)&other % 16 || (size_t)this % 16) fault = 2;
    x = other.x, y = other.y, z = other.z, w = other.w;
    return *this;
  }
};
static dim blockIdx, threadIdx, blockDim, gridDim;

static ucontext_t scheduler;
static std::vector<ucontext_t> threads;
enum { READY, WAITING, OVER };
static std::vector<int> states;
static unsigned long long lanes[1024];

static void pause(int state) {
  states[threadIdx.x] = state;
  swapcontext(&threads[threadIdx.x], &scheduler);
}
static void __syncthreads() { pause(WAITING); }
static void __threadfence() {}
static double __dadd_rn(double a, double b) { return a + b; }
static double __dmul_rn(double a, double b) { return a * b; }
static int __popc(unsigned int bits) { return __builtin_popcount(bits); }
template <typename T> T __ldcg(const T* from) { return *from; }
template <typename T> T written(T* to, T n) {
  const T before = *to;
  *to = n;
  return before;
}
template <typename T> T atomicAdd(T* to, T n) { return written<T>(to, *to + n); }
template <typename T> T atomicMax(T* to, T n) { return written(to, std::max(*to, n)); }
template <typename T> T atomicMin(T* to, T n) { return written(to, std::min(*to, n)); }
template <typename T> T atomicAnd(T* to, T n) { return written<T>(to, *to & n); }
template <typename T> T atomicOr(T* to, T n) { return written<T>(to, *to | n); }
template <typename T> T atomicXor(T* to, T n) { return written<T>(to, *to ^ n); }
template <typename T> T atomicCAS(T* to, T old, T n) { return written(to, *to == old ? n : *to); }
template <typename T> T __shfl_up_sync(unsigned int, T value, unsigned int distance) {
  const unsigned int me = threadIdx.x;
  lanes[me] = value;
  pause(READY);         // the warp alone
  if (me % 32 >= distance) value = lanes[me - distance];
  pause(READY);
  return value;
}

template <typename T> std::remove_cv_t<T> parameter(void** table, int i) {
  std::remove_cv_t<T> value;
  memcpy(&value, table[i], sizeof value);
  return value;
}

static void (*body)(void**);
static void** table;
static void thread() { body(table); states[threadIdx.x] = OVER; }

// Runs 32 threads until all wait for the others of the block, or are over.
static int run_warp(unsigned int first, std::mt19937& random) {
  std::vector<unsigned int> turns(32);
  for (unsigned int i = 0; i < 32; ++i) states[turns[i] = first + i] = READY;
  while (states[first] == READY) {
    std::shuffle(turns.begin(), turns.end(), random);
    for (unsigned int i : turns) {
      threadIdx.x = i;
      swapcontext(&scheduler, &threads[i]);
    }
    for (unsigned int i : turns) if (states[i] != states[first]) fault = 1;
    if (fault == 1) break;
  }
  return states[first];
}

static int launch(unsigned int blocks, unsigned int count, unsigned int seed) {
  std::mt19937 random(seed);
  std::vector<unsigned int> warps(count / 32), places(blocks);
  std::vector<std::vector<char>> stacks(count, std::vector<char>(1 << 14));
  for (unsigned int i = 0; i < warps.size(); ++i) warps[i] = 32 * i;
  for (unsigned int i = 0; i < blocks; ++i) places[i] = i;
  std::shuffle(places.begin(), places.end(), random);
  blockDim.x = count;
  gridDim.x = blocks;
  fault = 0;
  for (unsigned int place : places) {
    blockIdx.x = place;
    threads.assign(count, ucontext_t());
    states.assign(count, READY);
    for (unsigned int i = 0; i < count; ++i) {
      getcontext(&threads[i]);
      threads[i].uc_stack.ss_sp = stacks[i].data();
      threads[i].uc_stack.ss_size = stacks[i].size();
      threads[i].uc_link = &scheduler;
      makecontext(&threads[i], thread, 0);
    }
    for (int state = WAITING; state == WAITING && fault != 1;) {
      std::shuffle(warps.begin(), warps.end(), random);
      state = run_warp(warps[0], random);
      for (unsigned int i = 1; i < warps.size(); ++i) if (run_warp(warps[i], random) != state) fault = 1;
    }
    if (fault == 1) break;
  }
  return fault;
}
"""
_KERNEL = re.compile(r'extern "C" __global__ void __launch_bounds__\(\w+\) (\w+)\((.*?)\) \{', re.DOTALL)


def compiler():
    return shutil.which("c++") or shutil.which("g++") or pytest.skip("no C++ compiler here")


def compiled(source, folder):
    """The kernels of a source by name, each called with blocks, threads, a seed, and the addresses of parameters."""
    text, names = SHIM + source, []
    for name, parameters in _KERNEL.findall(source):
        kinds = [" ".join(p.replace("__restrict__", "").split()[:-1]) for p in parameters.split(",")]
        values = ", ".join(f"parameter<{kind}>(table, {i})" for i, kind in enumerate(kinds))
        text += (f"static void body_{name}(void** table) {{ {name}({values}); }}\n"
                 f'extern "C" int run_{name}(unsigned int blocks, unsigned int count, unsigned int seed, void** given)'
                 f"{{ body = body_{name}; table = given; return launch(blocks, count, seed); }}\n")
        names.append(name)
    written = folder / f"kernels_{len(list(folder.iterdir()))}.cpp"
    written.write_text(text)
    subprocess.run([compiler(), "-std=c++17", "-O1", "-w", "-ffp-contract=off", "-fno-strict-aliasing", "-shared",
                    "-fPIC", "-o", written.with_suffix(".so"), written], check=True)
    library = ctypes.CDLL(str(written.with_suffix(".so")))
    return {name: getattr(library, f"run_{name}") for name in names}


class Pointer:
    """Stands for CuPy's MemoryPointer, on memory of the host."""

    def __init__(self, memory, ptr):
        self.memory, self.ptr = memory, ptr

    def __add__(self, offset):
        return Pointer(self.memory, self.ptr + offset)


class Array:
    """Stands for CuPy's ndarray. New memory is full of rubbish."""

    def __init__(self, shape, dtype, data=None):
        held = np.lib.stride_tricks.as_strided(np.zeros(1, dtype), shape, (0,) * len(shape))
        self.shape, self.dtype, self.size, self.ndim = held.shape, held.dtype, held.size, held.ndim
        self.nbytes, self.itemsize, self._c_contiguous = held.nbytes, held.itemsize, True
        self.strides = tuple(
            [math.prod(shape[i + 1:]) * self.itemsize for i in range(len(shape))])
        if data is None:
            memory = np.full(max(self.nbytes, 1) + 64, 0xA5, np.uint8)
            data = Pointer(memory, memory.ctypes.data + -memory.ctypes.data % 64)
        self.data = data

    @classmethod
    def of(cls, values, misplaced=0):
        """An array with these values, so many bytes after a multiple of 64."""
        self = cls(values.shape, values.dtype,
                   Array((values.nbytes + misplaced,), np.dtype(np.uint8)).data + misplaced)
        ctypes.memmove(self.data.ptr, np.ascontiguousarray(values).ctypes.data, values.nbytes)
        return self

    def transpose(self, *axes):
        found = Array.of(np.empty(0, self.dtype))
        for name in ("size", "ndim", "nbytes", "itemsize", "data"):
            setattr(found, name, getattr(self, name))
        found.shape, found.strides = ([of[i] for i in axes] for of in (self.shape, self.strides))
        found.shape, found.strides = tuple(found.shape), tuple(found.strides)
        found._c_contiguous = list(axes) == sorted(axes)
        return found

    def get(self):
        """The values, of an array that fills its memory."""
        found = np.empty(self.nbytes, np.uint8)
        ctypes.memmove(found.ctypes.data, self.data.ptr, self.nbytes)
        return np.ndarray(self.shape, self.dtype, found, strides=self.strides)


class Emulator:
    """Stands for CuPy; `launched` are the names of kernels, with their blocks."""

    def __init__(self, folder):
        compiler()      # in the test's thread: kernels may be compiled in others, where a skip is an error
        self.folder, self.launched, self._functions, self.ndarray = folder, [], [], Array
        failures = {name: type(name, (Exception,), {}) for name in (
            "CompileException", "CUDARuntimeError", "CUDADriverError")}
        self.cuda = types.SimpleNamespace(
            compiler=types.SimpleNamespace(**failures), runtime=types.SimpleNamespace(**failures),
            driver=types.SimpleNamespace(**failures, launchKernel=self._launch),
            get_current_stream=lambda: types.SimpleNamespace(ptr=7))

    def RawModule(self, code, options):
        kernels = {}

        def function(name):
            self._functions.append((name, kernels[name]))
            return types.SimpleNamespace(num_regs=20, kernel=types.SimpleNamespace(ptr=len(self._functions) - 1))

        return types.SimpleNamespace(compile=lambda: kernels.update(compiled(code, self.folder)), get_function=function)

    def _launch(self, pointer, blocks, *rest):
        one, deep, threads, *others, shared, stream, table, extra = rest
        assert (one, deep, *others, shared, stream, extra) == (1, 1, 1, 1, 0, 7, 0)
        name, run = self._functions[pointer]
        fault = run(blocks, threads, len(self.launched), ctypes.c_void_p(table))
        assert not fault, f"{name}: " + ("", "some threads wait for others", "an address is not aligned")[fault]
        self.launched.append((name, blocks))

    # What `Copies` does for small arrays.

    def fetch_begin(self, array):
        return array

    def fetch_end(self, copy, memory):
        memory[:] = copy.get().tobytes()
