"""GPU code runs on the simulated CuPy as on CuPy, as far as a program can tell that does not measure time."""
from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lazyarray
from lazyarray.testing import NotSimulatedError, simulated_cupy
from lazyarray.testing.cupy_modules import names

ROOT = Path(__file__).parents[2]


@pytest.fixture
def cupy():
    with simulated_cupy() as module:
        yield module


def loaded():
    return {name: module for name, module in sys.modules.items() if name.partition(".")[0] in ("cupy", "cupyx")}


def test_modules_are_there_within_the_block_and_not_after_it():
    before, finders = loaded(), list(sys.meta_path)
    with simulated_cupy() as cupy:
        import cupyx.scipy.ndimage as ndimage
        from cupy import asarray
        from cupy.cuda import Device, Event, MemoryPool, Stream, get_current_stream, runtime
        from cupyx.scipy import signal

        assert sys.modules["cupy"] is cupy and importlib.util.find_spec("cupy").name == "cupy"
        assert ndimage.gaussian_filter(asarray([1.0, 2.0]), 1).dtype == "float64"
        assert signal.convolve(asarray([1.0, 2.0]), asarray([1.0])).get().tolist() == [1, 2]
        assert Device().id == 0 and runtime.getDeviceCount() >= 1
        assert isinstance(get_current_stream(), Stream) and Stream.null.ptr == 0
        assert MemoryPool().used_bytes() >= 0 and Event().done
    assert loaded() == before and sys.meta_path == finders


def test_modules_that_were_there_come_back():
    stand_in = type(sys)("cupy")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "cupy", stand_in)
        with simulated_cupy() as cupy:
            assert cupy is not stand_in
        assert sys.modules["cupy"] is stand_in


def test_an_error_within_the_block_leaves_nothing_behind():
    before = loaded()
    with pytest.raises(ZeroDivisionError), simulated_cupy(kernels={"k": print}):
        1 / 0
    assert loaded() == before
    with simulated_cupy() as cupy, pytest.raises(NotSimulatedError):
        cupy.RawKernel("", "k")((1,), (1,), ())


def test_arrays_say_that_they_are_cupys(cupy):
    kind = type(cupy.zeros(3))
    assert kind is cupy.ndarray and (kind.__module__, kind.__name__) == ("cupy", "ndarray")
    assert cupy.get_array_module(cupy.zeros(3)) is cupy and cupy.get_array_module(np.zeros(3)) is np


def test_nothing_becomes_a_numpy_array_by_itself(cupy):
    x = cupy.arange(3.0)
    for convert in (np.asarray, np.array, lambda x: np.zeros(3) + x, lambda x: np.linalg.norm(np.asarray(x)),
                    lambda x: cupy.sqrt(np.zeros(3)), lambda x: x + np.zeros(3)):
        with pytest.raises(TypeError):
            convert(x)
    assert type(cupy.asnumpy(x)) is type(x.get()) is np.ndarray


def test_each_public_name_of_cupys_can_be_imported(cupy):
    for path, listed in names.modules().items():
        module = importlib.import_module(path)
        assert set(dir(module)) >= listed
        for name in listed:
            getattr(module, name)


def test_no_other_name_can(cupy):
    for name in ("matvec", "isnat", "spacing", "loader"):
        assert not hasattr(cupy, name)
    with pytest.raises(ImportError):
        from cupy import nonsense  # noqa: F401
    with pytest.raises(ModuleNotFoundError, match="No module named 'cupy._core'"):
        importlib.import_module("cupy._core")


def test_the_array_has_the_public_members_of_cupys():
    real = pytest.importorskip("cupy", minversion="14", exc_type=ImportError)
    theirs = {name for name in dir(real.ndarray) if not name.startswith("_")}
    with simulated_cupy() as cupy:
        assert cupy is not real
        ours = {name for name in dir(cupy.ndarray) if not name.startswith("_")}
    assert theirs == ours
    assert lazyarray.devices.why().device == "cuda" or not hasattr(lazyarray.device().array_type, "cstruct")


SCATTERED = {
    "one": (2, 5), "a slice": (np.s_[1:, ::2], -3), "named twice": ([1, 0, 1], [[1], [2], [3]]),
    "out of range": ([4, -4, 7], 2), "two arrays": (([0, 2, 0, 0], [1, 1, 1, 0]), [9, -9, 5, 1]),
    "an array and a slice": (np.s_[:, [3, 0, 3]], [3, 4, 5]), "all": (..., 2),
}


@pytest.mark.parametrize("operation", ["add", "max", "min"])
@pytest.mark.parametrize(("index", "value"), SCATTERED.values(), ids=SCATTERED)
def test_values_are_scattered_over_elements(cupy, operation, index, value):
    import cupyx

    host = np.arange(12).reshape(3, 4)
    given = np.array(index) % 3 if isinstance(index, list) else index      # CuPy wraps what is out of range
    expected = host.copy()
    {"add": np.add, "max": np.maximum, "min": np.minimum}[operation].at(expected, given, value)
    x, y, other = cupy.asarray(host), cupy.asarray(host), cupy.asarray(host, order="F")
    getattr(x, f"scatter_{operation}")(index, value)
    getattr(cupyx, f"scatter_{operation}")(y, index, cupy.asarray(value))
    getattr(cupyx, f"scatter_{operation}")(slices=index, value=value, a=other)
    assert (x == cupy.asarray(expected)).all() and (y == x).all() and (other == x).all()


def test_dtypes_without_atomic_operations_are_scattered_by_a_mask_alone(cupy):
    import cupyx

    x = cupy.arange(4, dtype="int8")
    cupyx.scatter_add(x, x > 1, 5)
    cupyx.scatter_max(x, x < 1, cupy.asarray([3]))
    assert x.get().tolist() == [3, 1, 7, 8]
    with pytest.raises(TypeError, match="int8"):
        cupyx.scatter_add(x, [0, 1], 1)
    z = cupy.zeros(2, complex)
    z.scatter_add(cupy.asarray([True, False]), 1j)
    assert z.get().tolist() == [1j, 0]


def test_a_reduced_view_has_as_few_dimensions_as_its_strides_allow(cupy):
    x = cupy.arange(24).reshape(2, 1, 3, 4)
    for view, shape in (
            (x, (24,)), (x[..., ::2], (12,)), (x[..., :2], (6, 2)), (x[0, 0, :, 1], (3,)), (x[:, :, 1:], (2, 8)),
            (x.transpose(2, 3, 0, 1), (12, 2)), (x[:0], (0,)), (x[:1, :, :1, :1], (1,)), (x[0, 0, 0, 0], ()),
            (x[0, 0].T, (4, 3))):
        reduced = view.reduced_view()
        assert reduced.shape == shape and reduced.ravel().get().tolist() == view.ravel().get().tolist()
        assert reduced is view or reduced.base is not None and reduced.data.ptr == view.data.ptr
    x.reduced_view()[5] = 100
    assert x[0, 0, 1, 1] == 100
    with pytest.warns(DeprecationWarning, match="reduced_view"):
        assert x.reduced_view("float64").dtype == "float64"


@pytest.mark.parametrize("use", [lambda x: x.mdspan(index_type="int64"), lambda x: x.cstruct])
def test_forms_of_arrays_for_kernels_say_that_they_are_not_simulated(cupy, use):
    with pytest.raises(NotSimulatedError, match=r"cupy\.ndarray\.(mdspan|cstruct).*the array itself"):
        use(cupy.zeros(3))


def test_what_needs_a_gpu_says_so_when_it_is_called(cupy):
    import cupyx.jit

    kernels = [
        lambda: cupy.ElementwiseKernel("T x", "T y", "y = x", "mine")(cupy.zeros(3)),
        lambda: cupy.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "mine")(cupy.zeros(3)),
        lambda: cupy.RawKernel("", "mine")((1,), (1,), (cupy.zeros(3),)),
        lambda: cupy.RawModule(code="").get_function("mine")((1,), (1,), ()),
        lambda: cupyx.jit.rawkernel()(mine)[1, 32](cupy.zeros(3)),
    ]
    for kernel in kernels:
        with pytest.raises(NotSimulatedError, match=r"'mine'.*simulated_cupy\(kernels=\{'mine': function\}\)"):
            kernel()
    with pytest.raises(NotSimulatedError, match=r"replace=\{'cupy.cuda.Graph': ...\}"):
        cupy.cuda.Graph()
    assert not isinstance(3, cupy.cuda.Graph)


def mine(x):
    raise AssertionError("this is CUDA's")


def test_functions_stand_for_kernels(cupy):
    def fill(grid, block, args):
        args[0][...] = 7

    with simulated_cupy(kernels={"double": lambda x: x * 2, "fill": fill}):
        kernel = cupy.ElementwiseKernel("T x", "T y", "y = 2 * x", "double")
        assert (kernel.nin, kernel.nout) == (1, 1) and kernel(cupy.arange(3)).get().tolist() == [0, 2, 4]
        x = cupy.zeros(2)
        cupy.RawKernel("", "fill")((1,), (1,), (x,))
        assert x.get().tolist() == [7, 7]
    with pytest.raises(NotSimulatedError):
        kernel(cupy.zeros(3))


def test_any_name_can_be_replaced(cupy):
    class Graph:
        pass

    assert cupy.cuda.Graph is not Graph
    with simulated_cupy(replace={"cupy.cuda.Graph": Graph}):
        assert cupy.cuda.Graph is Graph
    assert cupy.cuda.Graph is not Graph
    with pytest.raises(TypeError, match="no cupy.cuda.Grph"), simulated_cupy(replace={"cupy.cuda.Grph": Graph}):
        pass


def test_a_package_is_imported_anew_within_the_block(tmp_path, monkeypatch):
    (tmp_path / "needy.py").write_text("try:\n    import cupy\nexcept ImportError:\n    cupy = None\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "cupy", None)
    import needy

    assert needy.cupy is None
    with simulated_cupy(fresh=["needy"]) as cupy:
        import needy as again

        assert again.cupy is cupy
    assert sys.modules["needy"] is needy
    del sys.modules["needy"]


def test_host_arrays_are_taken_where_cupys_functions_convert_them(cupy):
    host = np.arange(4.0)
    assert cupy.fft.fftshift(host).get().tolist() == [2, 3, 0, 1]
    assert float(cupy.around(2.6)) == 3 and cupy.diag([1, 2]).shape == (2, 2)
    assert cupy.asarray(x := cupy.asarray(host)) is x and cupy.array(x, copy=False) is x and cupy.array(x) is not x
    with pytest.raises(TypeError):
        cupy.sum(host)


def test_host_arrays_of_lengths_and_axes_are_as_good_as_tuples(cupy):
    x = cupy.arange(6.0)
    shape, axes = np.array([2, 3]), np.array([1, 0])
    assert x.reshape(shape).shape == cupy.reshape(x, shape).shape == cupy.zeros(shape).shape == (2, 3)
    assert x.reshape(shape).transpose(axes).shape == (3, 2) and cupy.tile(x, np.array([2, 1])).shape == (2, 6)
    assert cupy.fft.fftn(x.reshape(2, 3), axes=axes).shape == cupy.fft.fftshift(x.reshape(2, 3), axes=axes).shape
    assert cupy.atleast_1d(3).shape == (1,) and type(cupy.zeros_like(np.ones(3))) is cupy.ndarray
    with pytest.raises(TypeError):
        cupy.zeros_like([1, 2])


def test_files_hold_device_arrays(cupy, tmp_path):
    cupy.savez(tmp_path / "two.npz", a=cupy.arange(3), b=cupy.zeros(2))
    with cupy.load(tmp_path / "two.npz") as found:
        assert type(found["a"]) is cupy.ndarray and found["a"].get().tolist() == [0, 1, 2]
    cupy.save(tmp_path / "one.npy", cupy.arange(3))
    assert type(cupy.load(tmp_path / "one.npy")) is cupy.ndarray


def test_random_numbers_are_on_the_device_and_numpys_state_is_left_alone(cupy):
    np.random.seed(0)
    expected = np.random.RandomState(0).rand()
    cupy.random.seed(1)
    first = cupy.random.rand(3)
    cupy.random.seed(1)
    assert type(first) is cupy.ndarray and (cupy.random.rand(3) == first).all()
    assert np.random.rand() == expected
    rng = cupy.random.default_rng(3)
    assert rng.integers(0, 5, size=4).shape == (4,) and rng.random(2, dtype="float32").dtype == "float32"
    assert cupy.random.RandomState(1).normal(size=(2, 3), dtype="float32").shape == (2, 3)
    with pytest.raises(AttributeError):
        rng.normal()


def test_sparse_matrices_and_their_classes(cupy):
    sparse = importlib.import_module("cupyx.scipy.sparse")
    matrix = sparse.csr_matrix(cupy.eye(3))
    assert isinstance(matrix, sparse.csr_matrix) and isinstance(matrix, sparse.spmatrix)
    assert isinstance(sparse.csr_matrix, type) and not isinstance(cupy.eye(3), sparse.spmatrix)
    assert (matrix @ cupy.ones(3)).get().tolist() == [1, 1, 1] and cupy.get_array_module(matrix) is cupy


def test_streams_events_and_devices(cupy):
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        start.record()
        cupy.arange(10).sum()
        end.record()
        assert cupy.cuda.get_current_stream() == stream
        end.synchronize()
    assert cupy.cuda.get_elapsed_time(start, end) >= 0 and stream.done
    device = cupy.zeros(1).device
    assert device == cupy.cuda.Device() and device != 0 and int(device.compute_capability) >= 50
    assert cupy.cuda.runtime.getDeviceProperties(0)["name"] and device.mem_info[0] <= device.mem_info[1]
    with cupy.cuda.using_allocator(cupy.cuda.MemoryPool().malloc):
        assert cupy.zeros(3).sum() == 0
        with pytest.raises(ValueError, match="using_allocator"):
            cupy.cuda.set_allocator(None)
    assert cupy.cuda.get_allocator() == cupy.get_default_memory_pool().malloc
    assert np.frombuffer(cupy.cuda.alloc_pinned_memory(16), np.float64).size == 2


def test_cupys_testing_compares_arrays_of_both_sides(cupy):
    testing = importlib.import_module("cupy.testing")
    testing.assert_allclose(cupy.arange(3), np.arange(3))
    with pytest.raises(AssertionError):
        testing.assert_array_equal(cupy.arange(3), [0, 1, 3])

    calls = []

    @testing.for_float_dtypes()
    @testing.numpy_cupy_allclose()
    def same(xp, dtype):
        calls.append(xp.__name__)
        return xp.sqrt(testing.shaped_arange((2, 3), xp, dtype))

    @testing.numpy_cupy_array_equal()
    def other(xp):
        return xp.ones(3) if xp is np else xp.zeros(3)

    @testing.numpy_cupy_raises(accept_error=ValueError)
    def fails(xp):
        xp.zeros(3).reshape(2, 2)

    same(), fails()
    assert calls == ["numpy", "cupy"] * 3
    with pytest.raises(AssertionError):
        other()


def test_fused_functions_memos_and_vectorised_ones(cupy):
    @cupy.fuse()
    def squared(x):
        return x * x

    @cupy.memoize(for_each_device=True)
    def once(n):
        return [n]

    assert squared(cupy.arange(3)).get().tolist() == [0, 1, 4] and cupy.fuse(abs) is abs
    assert once(1) is once(1)
    kept = once(1)
    cupy.clear_memo()
    assert once(1) is not kept
    assert cupy.vectorize(lambda x: x + 1)(cupy.arange(3)).get().tolist() == [1, 2, 3]
    assert cupy.mgrid[:2].get().tolist() == [0, 1] and cupy.r_[cupy.arange(2), 5].get().tolist() == [0, 1, 5]
    assert cupy.newaxis is None


SCRIPT = """
import sys
sys.modules.pop("cupy", None)
{before}
from lazyarray.testing import simulated_cupy
with simulated_cupy() as cupy:
    assert cupy.arange(3).sum().get() == 3
import lazyarray, numpy as np
x = lazyarray.asarray(np.arange(3.0))
assert float(x.sum()) == 3 and lazyarray.device().name == "simulated"
assert (sys.modules.get("cupy") is not None) == {there}
"""


@pytest.mark.parametrize("device", ["simulated", None])
@pytest.mark.parametrize("installed", [False, True], ids=["no CuPy", "CuPy without a GPU"])
def test_with_and_without_cupy(installed, device, tmp_path):
    if installed and importlib.util.find_spec("cupy") is None:
        pytest.skip("CuPy is not installed")
    if os.environ.get("LAZYARRAY_DEVICE") == "cuda":
        pytest.skip("there is a GPU")
    before = "import cupy" if installed else "sys.modules['cupy'] = None     # not to be imported"
    environment = {key: value for key, value in os.environ.items() if key != "LAZYARRAY_DEVICE"}
    environment |= {"PYTHONPATH": str(ROOT), **({"LAZYARRAY_DEVICE": device} if device else {})}
    script = SCRIPT.format(before=before, there=installed)
    found = subprocess.run([sys.executable, "-W", "ignore", "-c", script], env=environment, capture_output=True,
                           text=True, check=False)
    assert found.returncode == 0, found.stderr


TESTS = """
import cupy
import numpy as np
import pytest

KERNEL = cupy.ElementwiseKernel("T x", "T y", "y = x", "mine")


def test_passes():
    assert cupy.asnumpy(cupy.arange(3)).tolist() == [0, 1, 2]


def test_needs_a_gpu():
    KERNEL(cupy.zeros(3))


def test_fails():
    np.asarray(cupy.zeros(3))


def test_has_a_stand_in():
    from lazyarray.testing import simulated_cupy

    with simulated_cupy(kernels={"mine": lambda x: x}):
        KERNEL(cupy.zeros(3))


def test_fixture(simulated_cupy):
    assert simulated_cupy is cupy
"""


def run_pytest(folder, *arguments):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    return subprocess.run([sys.executable, "-m", "pytest", "-p", "lazyarray_pytest", "-p", "no:cacheprovider", "-rs",
                           "--tb=short", *arguments], cwd=folder, capture_output=True, text=True, check=False,
                          env={**environment, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})


def test_the_option_of_pytest(tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    found = run_pytest(tmp_path, "--simulated-cupy", "test_it.py")
    assert "1 failed, 3 passed, 1 skipped" in found.stdout, found.stdout + found.stderr
    assert "1 cupy.ElementwiseKernel 'mine'" in found.stdout and "Implicit conversion" in found.stdout


@pytest.mark.parametrize("suite, choice", [("xarray.tests.test_cupy", ""), ("opt_einsum.tests.test_backends", "cupy")])
def test_tests_of_other_projects_run(suite, choice, tmp_path):
    package = importlib.util.find_spec(suite.partition(".")[0])     # its tests are not for this process to import
    if package is None or not (Path(package.origin).parent / "tests").is_dir():
        pytest.skip(f"{suite} is not installed")
    options = ["-c", os.devnull, "--simulated-cupy", "-W", "ignore", "-k", choice]
    found = run_pytest(tmp_path, *options, "--pyargs", suite)
    assert " passed" in found.stdout and found.returncode == 0, found.stdout


def test_names_are_of_the_release_whose_functions_the_device_has():
    facts = json.loads((Path(lazyarray.__file__).parent / "devices/simulated/cupy_api.json").read_text())
    assert names.version() == facts["VERSION"]
    listed = names.modules()
    for module, functions in facts["FUNCTIONS"].items():
        known = {name for row in functions.values() for name in row.split()}
        assert known - {"show_config"} <= listed[f"cupy.{module}".rstrip(".")], module
