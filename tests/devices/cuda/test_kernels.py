"""Kernels that a user writes take lazy arrays, unmodified or decorated, and what they write is seen.

On the simulated device by kernels that take and refuse what CuPy's do; on CUDA by CuPy's.
"""
from __future__ import annotations

import importlib
import pickle
from importlib import metadata

import numpy as np
import pytest

import lazyarray
from lazyarray.integrations import cupy as registration
from lazyarray.integrations import numba as numba_registration

device = lazyarray.device()
on_cuda = device.name == "cuda"
only_cuda = pytest.mark.skipif(not on_cuda, reason="needs CUDA and CuPy's own kernels")

RAW = r"""
extern "C" __global__ void add(const double* x, double* y, double amount, int n)
{ int i = blockDim.x * blockIdx.x + threadIdx.x; if (i < n) y[i] = x[i] + amount; }
"""


def add_to(x, y, amount, n):
    y[:int(n)] = x[:int(n)] + amount


class Kernels:
    """The same kernels on either device: a pair (in CUDA C, in Python) each."""

    def __init__(self, cupy, jit):
        self.cupy, self.jit = cupy, jit

    def _made(self, kind, *text, body):
        return kind(*text) if on_cuda else kind(*text, body=body)

    @property
    def twice(self):
        return self._made(self.cupy.ElementwiseKernel, "T x", "T y", "y = 2 * x", "twice", body=lambda x: x * 2)

    @property
    def both(self):
        return self._made(self.cupy.ElementwiseKernel, "T x, T a", "T y, T z", "y = x + a; z = x - a", "both",
                          body=lambda x, a: (x + a, x - a))

    @property
    def squares(self):
        text = ("T x", "T y", "x * x", "a + b", "y = a", "0", "squares") if on_cuda else ("T x", "T y", "", "squares")
        return self._made(self.cupy.ReductionKernel, *text, body=lambda x, axis=None: (x * x).sum(axis=axis))

    @property
    def raw(self):
        return self._made(self.cupy.RawKernel, RAW, "add", body=add_to)

    @property
    def module(self):
        return self.cupy.RawModule(code=RAW) if on_cuda else self.cupy.RawModule(RAW, {"add": add_to})

    @property
    def jitted(self):
        if not on_cuda:
            return self.jit.rawkernel()(add_to)
        from jit_kernels import add

        return self.jit.rawkernel()(add)


def real_modules():
    return importlib.import_module("cupy"), importlib.import_module("cupyx.jit")


@pytest.fixture(scope="module")
def kernels():
    if on_cuda:
        return Kernels(*real_modules())
    from simulated_kernels import modules

    cupy, jit = modules()
    registration.register(cupy)
    registration.register(jit)
    return Kernels(cupy, jit)


@pytest.fixture(params=["unmodified", "decorated"])
def decorate(request):
    return lazyarray.lazy if request.param == "decorated" else lambda kernel: kernel


def lazy_of(values):
    return lazyarray.asarray(np.array(values, float))


def launches(kernels, decorate):
    """Each way to launch what adds a number: (x, y, amount, n) -> None."""
    raw, module = decorate(kernels.raw), decorate(kernels.module.get_function("add"))
    jitted = decorate(kernels.jitted)
    return {
        "raw": lambda *args: raw((1,), (32,), args),
        "module": lambda *args: module((1,), (32,), args),
        "jit": lambda *args: jitted((1,), (32,), args),
        "jit[...]": lambda *args: jitted[1, 32](*args),
    }


LAUNCHES = ["raw", "module", "jit", "jit[...]"]
# A kernel that may write to its arguments gets them where they are.
pytestmark = [pytest.mark.together,
              pytest.mark.filterwarnings("ignore:cupyx.jit.rawkernel is experimental:FutureWarning")]


class TestTyped:
    def test_a_result_is_lazy(self, kernels, decorate):
        with lazyarray.trace() as t:
            found = decorate(kernels.twice)(lazy_of([1, 2]))
            assert lazyarray.is_lazy(found) and len(t.uploads) == 1
        assert found.tolist() == [2, 4]

    def test_several_results_and_numbers(self, kernels, decorate):
        y, z = decorate(kernels.both)(lazy_of([1, 2]), 1.0)
        assert (y.tolist(), z.tolist()) == ([2, 3], [0, 1])
        y, z = decorate(kernels.both)(lazy_of([1, 2]), lazy_of([1, 2]).sum())
        assert (y.tolist(), z.tolist()) == ([4, 5], [-2, -1])

    @pytest.mark.parametrize("which", ["positional", "several", "reduction"])
    def test_outputs(self, kernels, decorate, which):
        x, y, z = lazy_of([1, 2]), lazy_of([0, 0]), lazy_of([0, 0])
        held, part = np.asarray(y), np.asarray(y[:1])
        if which == "positional":
            assert decorate(kernels.twice)(x, y) is y
            expected = [2, 4]
        elif which == "several":
            found = decorate(kernels.both)(x, x, y, z)
            assert found[0] is y and found[1] is z
            expected = [2, 4]
        else:
            y = lazy_of(0.0)
            held = np.asarray(y)
            assert decorate(kernels.squares)(x, out=y) is y
            expected = 5
        assert held.tolist() == expected == y.tolist()      # the alias too, before anybody asked
        if which != "reduction":
            assert part.tolist() == expected[:1]

    def test_reductions(self, kernels, decorate):
        x = lazy_of([[1, 2], [3, 4]])
        assert decorate(kernels.squares)(x) == 30 and decorate(kernels.squares)(x, axis=0).tolist() == [10, 20]

    def test_views(self, kernels, decorate):
        x, y = lazy_of(np.arange(8)), lazy_of(np.zeros(8))
        decorate(kernels.twice)(x[::-2], y[1::2])
        assert y.tolist() == [0, 14, 0, 10, 0, 6, 0, 2]

    def test_inputs_are_not_taken_to_be_modified(self, kernels):
        x, y = lazy_of([1, 2]), lazy_of([0, 0])
        np.asarray(x)
        kernels.twice(x, y)
        with lazyarray.no_transfers():
            np.asarray(x)

    def test_device_arrays_give_device_arrays(self, kernels, decorate):
        d = device.from_foreign(lazyarray.asdevice(np.ones(2)))
        assert isinstance(decorate(kernels.twice)(d), device.array_type)

    def test_a_decorated_kernel_takes_host_arrays(self, kernels):
        out = np.zeros(2)
        assert lazyarray.lazy(kernels.twice)(np.ones(2), out) is out and out.tolist() == [2, 2]

    def test_an_unmodified_kernel_refuses_host_arrays_as_before(self, kernels):
        with pytest.raises(TypeError):
            kernels.twice(np.ones(2))
        with pytest.raises(TypeError):
            kernels.twice(lazy_of([1, 2]), np.ones(2))


@pytest.mark.parametrize("how", LAUNCHES)
class TestRaw:
    def test_what_it_writes_is_seen(self, kernels, decorate, how):
        x, y = lazy_of([1, 2, 3]), lazy_of([0, 0, 0])
        held = np.asarray(y)
        launches(kernels, decorate)[how](x, y, np.float64(10), np.int32(2))
        assert held.tolist() == [11, 12, 0] == y.tolist()
        held[0] = 5                                     # and what the host writes is seen by the kernel
        launches(kernels, decorate)[how](y, x, np.float64(0), np.int32(3))
        assert x.tolist() == [5, 12, 0]

    def test_an_array_of_one_element_is_an_address(self, kernels, decorate, how):
        x, y = lazy_of([1]), lazy_of([0])
        launches(kernels, decorate)[how](x, y, np.float64(1), np.int32(1))
        assert y.tolist() == [2]

    def test_a_lazy_scalar_is_a_value(self, kernels, decorate, how):
        x, y = lazy_of([1, 2]), lazy_of([0, 0])
        launches(kernels, decorate)[how](x, y, x.max(), np.int32(2))
        assert y.tolist() == [3, 4]

    def test_mixed_with_device_arrays(self, kernels, decorate, how):
        x, y = lazy_of([1, 2]), device.from_foreign(lazyarray.asdevice(np.zeros(2)))
        launches(kernels, decorate)[how](x, y, np.float64(1), np.int32(2))
        assert lazyarray.asnumpy(y).tolist() == [2, 3]

    def test_a_decorated_kernel_takes_host_arrays(self, kernels, how):
        y = np.zeros(2)
        launches(kernels, lazyarray.lazy)[how](np.ones(2), y, np.float64(1), np.int32(2))
        assert y.tolist() == [2, 2]

    def test_an_unmodified_kernel_refuses_host_arrays_as_before(self, kernels, how):
        with pytest.raises(TypeError):
            launches(kernels, lambda k: k)[how](lazy_of([1, 2]), np.zeros(2), np.float64(1), np.int32(2))

    def test_nothing_is_copied(self, kernels, decorate, how):
        x, y = lazy_of([1, 2, 3]), lazy_of([0, 0, 0])
        launch = launches(kernels, decorate)[how]
        with lazyarray.no_transfers():
            for _ in range(3):
                launch(x, y, np.float64(1), np.int32(3))
        with lazyarray.trace() as t:
            np.asarray(y)
            np.asarray(y)
        assert len(t.materialisations) == 1             # nobody can write to it behind our back

    def test_on_a_stream_of_its_own(self, kernels, how):
        stream = device.new_stream()
        x, y = lazy_of([1, 2]), lazy_of([0, 0])
        raw = kernels.raw
        raw((1,), (32,), (x, y, np.float64(1), np.int32(2)), stream=stream)
        raw((1,), (32,), (y, x, np.float64(1), np.int32(2)))
        assert x.tolist() == [3, 4]


class TestClasses:
    @pytest.mark.parametrize("name", ["twice", "squares", "raw", "module", "jitted"])
    def test_they_are_what_they_were(self, kernels, name):
        kernel = getattr(kernels, name)
        kind = type(kernel)
        if name != "jitted":
            assert (kind.__name__, kind.__module__) == (kind.__mro__[1].__name__, "cupy")
            assert kind.__doc__ == kind.__mro__[1].__doc__ and getattr(kernels.cupy, kind.__name__) is kind

    @only_cuda
    def test_they_are_pickled(self, kernels):
        found = pickle.loads(pickle.dumps(kernels.raw))
        x, y = lazy_of([1]), lazy_of([0])
        found((1,), (1,), (x, y, np.float64(1), np.int32(1)))
        assert type(found) is kernels.cupy.RawKernel and y.tolist() == [2]

    @only_cuda
    def test_what_cupy_knows_of_a_kernel_stays(self, kernels):
        raw = kernels.module.get_function("add")
        assert raw.num_regs > 0 and raw.max_threads_per_block > 0 and raw.code == RAW
        assert kernels.twice.nin == 1 and kernels.twice.name == "twice"


class TestArrayModules:
    """`get_array_module` says numpy of a lazy array, and NumPy's functions leave it on the device."""

    @staticmethod
    def softplus(get_array_module, x):
        xp = get_array_module(x)
        return xp.maximum(0, x) + xp.log1p(xp.exp(-abs(x)))

    @only_cuda
    def test_softplus_stays_on_the_device(self):
        cupy, _ = real_modules()
        x = lazy_of([-1, 0, 1])
        assert cupy.get_array_module(x) is np and cupy.get_array_module(x, cupy.zeros(1)) is cupy
        with lazyarray.no_transfers():
            found = self.softplus(cupy.get_array_module, x)
        np.testing.assert_allclose(np.asarray(found), np.log1p(np.exp([-1, 0, 1])))

    @only_cuda
    def test_the_one_of_cupyx_scipy(self):
        find = importlib.import_module("cupyx.scipy").get_array_module
        x = lazy_of([0.5])
        assert find(x).__name__ == "scipy"
        found = find(x).special.erf(x)
        assert abs(float(found[0]) - 0.5204998778130465) < 1e-12

    def test_either_module_will_do(self):
        x = lazy_of([-1, 0, 1])
        with lazyarray.no_transfers():
            found = [self.softplus(lambda x: np, x), lazyarray.lazy(lambda x: self.softplus(lambda x: device.xp, x))(x)]
        for f in found:
            assert lazyarray.is_lazy(f)
            np.testing.assert_allclose(np.asarray(f), np.log1p(np.exp([-1, 0, 1])))


class TestNumbaCuda:
    @pytest.fixture
    def add(self):
        if not on_cuda:
            from simulated_kernels import numba_dispatcher

            module = numba_dispatcher()
            numba_registration.register(module)
            return module.CUDADispatcher(add_to)
        numba = pytest.importorskip("numba.cuda")
        from jit_kernels import numba_add

        kernel = numba.jit(numba_add)
        try:
            kernel[1, 1](*(device.from_foreign(lazyarray.asdevice(np.ones(1))) for _ in range(2)), 1.0, 1)
        except Exception as error:  # noqa: BLE001  whatever numba's releases raise beside this NumPy
            versions = f"numba-cuda {metadata.version('numba-cuda')} beside NumPy {np.__version__}"
            pytest.skip(f"{versions} does not work, without lazyarray: {type(error).__name__}: {error}")
        return kernel

    @pytest.mark.filterwarnings("ignore:.*Grid size.*")
    def test_what_it_writes_is_seen(self, add, decorate):
        x, y, z = lazy_of([1, 2, 3]), lazy_of([0, 0, 0]), lazy_of([0, 0, 0])
        held = np.asarray(y)
        with lazyarray.no_transfers():
            decorate(add)[1, 32](x, z, 10.0, 2)
        decorate(add)[1, 32](x, y, 10.0, 2)
        assert held.tolist() == [11, 12, 0] == z.tolist()
        held[0] = 5
        decorate(add)[1, 32](y, x, 0.0, 3)
        assert x.tolist() == [5, 12, 0]

    @pytest.mark.filterwarnings("ignore:.*Grid size.*")
    def test_a_lazy_scalar_is_a_value(self, add, decorate):
        x, y = lazy_of([1, 2]), lazy_of([0, 0])
        decorate(add)[1, 32](x, y, x.max(), 2)
        assert y.tolist() == [3, 4]
