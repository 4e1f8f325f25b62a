"""`lazyarray.numpy` makes what NumPy makes: dtype, shape, values, errors; on the device where it can."""
from __future__ import annotations

import array as python_array
import importlib
import inspect
import io
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import lazyarray
import lazyarray.numpy as xnp
from lazyarray.numpy import creation

ROOT = Path(__file__).parents[2]
DTYPES = [None, "?", "i1", "u1", "i4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", "M8[s]", "U3", "O", "g"]
BIG = 2**31 + 11

# What is called, as text with `np` for the namespace. Those of DEVICE are made without a copy.
DEVICE = """
np.zeros(3)
np.zeros((2, 3), 'i4')
np.zeros((2, 3), order='F')
np.zeros(())
np.zeros(0, dtype='u1')
np.ones((2, 2), dtype=bool)
np.ones(3, device='cpu')
np.full((2, 2), 7)
np.full(3, 2.5, dtype='f4')
np.full(3, 1 + 2j)
np.full((2, 3), True)
np.full(2, np.float32(1.5))
np.zeros_like([1, 2])
np.ones_like([[1.0, 2.0]], dtype='i2')
np.full_like([1, 2], 3.5)
np.full_like([1, 2], 3.5, dtype=float, shape=(2, 2))
np.zeros_like(np.ones((2, 3), order='F'))
np.arange(5)
np.arange(2, 9, 3)
np.arange(9, 2, -3)
np.arange(5.0)
np.arange(0.1, 3, 0.3)
np.arange(10, dtype='u1')
np.arange(0, 300, dtype='u1')
np.arange(-5, 5, dtype='i2')
np.arange(0, 5, 0.5, dtype=int)
np.arange(3, step=2)
np.arange(5, None, 1)
np.arange(2**60, 2**60 + 5)
np.arange(-2**61, 2**61, 2**59)
np.arange(2.0**53, 2.0**53 + 20, 3)
np.arange(0, 2000, 0.7, dtype='f4')
np.arange(0, 300, dtype='f2')
np.arange(2**61, 2**61 + 9, 2, dtype='u8')
np.arange(np.int64(3))
np.arange(np.float32(0.1), np.float32(2), np.float32(0.3))
np.arange(1, 0)
np.arange(True)
np.linspace(0, 1)
np.linspace(-3, 7, 11)
np.linspace(0.1, 0.7, 13, endpoint=False)
np.linspace(0, 10, 7, dtype=int)
np.linspace(0, 10, 7, dtype='f4')
np.linspace(-1, 1, 1)
np.linspace(0, 1, 0)
np.linspace(0, 5e-324, 4)
np.linspace(0, 1, 5, retstep=True)
np.linspace(np.float32(0), np.float32(1), 9)
np.linspace(0, 1, 4, dtype='c8')
np.linspace(1, 2, 3, axis=-1)
np.logspace(0, 3, 4)
np.logspace(0, 1, 5, base=2)
np.logspace(0, 1, 5, dtype='f4')
np.geomspace(1, 1000, 4)
np.geomspace(-1, -1000, 5)
np.geomspace(1, 256, 9, dtype='f4')
np.geomspace(2, 3, 4, endpoint=False)
np.eye(3)
np.eye(3, 4, k=1, dtype='i4')
np.eye(3, k=-1, order='F')
np.identity(3)
np.tri(3)
np.tri(3, 4, k=-1, dtype='i2')
np.indices((2, 3))
np.indices((2, 3), dtype='f4', sparse=True)
np.indices(())
np.fft.fftfreq(8)
np.fft.fftfreq(7, 0.1)
np.fft.rfftfreq(8, d=0.3)
np.fromfunction(lambda i, j: i * 10 + j, (2, 3), dtype=int)
""".strip().splitlines()

OTHER = """
np.array([[1, 2], [3, 4]])
np.array([1, 2], dtype='f4', ndmin=3)
np.array(5)
np.array([1, 2], copy=None)
np.array(np.eye(3), order='F')
np.array([np.arange(3), np.ones(3)])
np.array([np.arange(3)[1], np.arange(3)[2]])
np.array([[1, 'a'], [None, 2]], dtype=object)
np.asarray([1, 2])
np.asarray([1, 2], 'f4', order='F')
np.asarray(np.arange(6).reshape(2, 3), order='F')
np.asarray(3.5)
np.asarray('text')
np.asarray(range(4))
np.asanyarray([1, 2])
np.ascontiguousarray(np.arange(6).reshape(2, 3).T)
np.ascontiguousarray(5)
np.asfortranarray([[1, 2], [3, 4]])
np.asarray_chkfinite([1.0, 2.0])
np.require([1, 2], 'f4', ['F'])
np.copy([1, 2])
np.copy(np.eye(2, order='F'))
np.frombuffer(b'abcd', dtype='u1')
np.frombuffer(bytearray(8), dtype='i2', offset=2)
np.fromiter((i * i for i in range(4)), dtype=int)
np.fromstring('1 2 3', sep=' ')
np.loadtxt(io.StringIO('1 2\\n3 4'))
np.loadtxt(io.StringIO('1 2\\n3 4'), unpack=True)
np.genfromtxt(io.StringIO('1,2\\n3,4'), delimiter=',')
np.meshgrid([1, 2], [3, 4, 5])
np.meshgrid([1, 2], [3, 4, 5], indexing='ij', sparse=True)
np.meshgrid(np.arange(2), [3, 4])
np.diag([1, 2, 3])
np.diag([[1, 2], [3, 4]], 1)
np.diagflat([[1, 2], [3, 4]])
np.vander([1, 2, 3])
np.tril([[1, 2], [3, 4]])
np.triu([[1, 2], [3, 4]], k=1)
np.ix_([0, 1], [2, 3])
np.tril_indices(3)
np.triu_indices(3, 1)
np.diag_indices(3)
np.mask_indices(3, np.triu)
np.hanning(5)
np.kaiser(5, 2.0)
np.mgrid[0:3, 0:2]
np.ogrid[0:3, 0:2]
np.linspace([0, 1], [2, 3], 4)
np.linspace(np.arange(2), [2, 3], 4, axis=1)
np.linspace(0, 1 + 1j, 4)
np.geomspace(1, 16j, 3)
np.logspace([0, 1], [2, 3], 3)
np.arange(0, 2, dtype=bool)
np.arange('2020-01', '2020-04', dtype='M8[M]')
np.arange(0, 3, dtype='c8')
np.full(2, [1, 2])
np.full(2, 'ab')
np.full(2, None)
np.full((2,), np.arange(2))
np.zeros(2, dtype=[('a', 'i4'), ('b', 'f8')])
np.full_like(['a', 'b'], 'c')
np.identity(2, dtype='O')
np.eye(2, dtype='g')
np.indices((2, 2), dtype=object)
np.unstack(np.zeros((2, 2))) if hasattr(np, 'unstack') else np.zeros(1)
np.clip(np.arange(5), 1, 3)
np.clip(np.arange(5), min=1)
np.clip(np.arange(5), a_min=1, a_max=None)
np.clip(np.arange(5), None, 3, out=np.zeros(5, int))
np.astype(np.arange(3), 'f4')
""".strip().splitlines()

REFUSED = """
np.zeros()
np.zeros(-1)
np.zeros('a')
np.zeros(3, dtype='nonsense')
np.zeros(3, order='X')
np.zeros(3, device='gpu')
np.zeros(3, nonsense=1)
np.ones((2, -3))
np.full(2)
np.full(2, 'a', dtype=int)
np.full((2, 2), [1, 2, 3])
np.full(2, 300, dtype='u1')
np.zeros_like()
np.zeros_like([1], device='gpu')
np.arange()
np.arange(0, 3, 0)
np.arange(0, float('nan'))
np.arange(0, float('inf'))
np.arange(1e30)
np.arange(300, 302, dtype='u1')
np.arange(-1, 3, dtype='u1')
np.arange(None)
np.arange(5, dtype=bool)
np.arange(3, device='gpu')
np.linspace(0, 1, -1)
np.linspace(0, 1, 2.5)
np.linspace(0, 1, 3, axis=5)
np.linspace('a', 1)
np.linspace(0)
np.geomspace(0, 1)
np.eye(-1)
np.eye(2.5)
np.eye(2, order='X')
np.identity('a')
np.tri('a')
np.indices(3)
np.indices((2, -1))
np.fft.fftfreq(2.5)
np.fft.fftfreq(0)
np.fft.fftfreq(3, device='gpu')
np.asarray([1, 2], copy=False)
np.asarray([1, 2], device='gpu')
np.asarray([[1], [2, 3]])
np.asarray(['a'], dtype=int)
np.asarray_chkfinite([1.0, float('nan')])
np.array([1], order='X')
np.array()
np.frombuffer(b'abc', dtype='i4')
np.frombuffer(5)
np.loadtxt('/no/such/file')
np.from_dlpack(5)
np.meshgrid([1], indexing='ab')
np.diag(5)
np.astype(np.arange(3), 'nonsense')
np.astype(np.arange(3), 'f4', device='gpu')
np.clip()
""".strip().splitlines()


def call(text, namespace):
    return eval(text, {"np": namespace, "io": io})


def compare(mine, theirs, text=""):
    if type(theirs) in (list, tuple):
        assert type(mine) is type(theirs) and len(mine) == len(theirs)
        for a, b in zip(mine, theirs):
            compare(a, b, text)
        return
    if not isinstance(theirs, np.ndarray):
        np.testing.assert_equal(mine, theirs)
        return
    assert type(mine) is lazyarray.LazyNdarray
    assert (mine.dtype, mine.shape, mine.flags.writeable) == (theirs.dtype, theirs.shape, theirs.flags.writeable)
    # Index arrays may lie as the device has them (docs/limits.rst): NumPy's are columns of one array, a GPU's are not.
    if theirs.size > 1 and (is_simulated() or "mask_indices" not in text):
        assert mine.strides == theirs.strides
    np.testing.assert_array_equal(np.asarray(mine), theirs)


def is_simulated():
    return lazyarray.device().name == "simulated"


@pytest.mark.parametrize("text", DEVICE)
def test_made_on_the_device(text):
    theirs = call(text, np)
    with lazyarray.trace() as t:
        mine = call(text, xnp)
        for array in mine if type(mine) is tuple else [mine]:
            if lazyarray.is_lazy(array):
                lazyarray.asdevice(array)
    assert not t.events, t
    if "space" in text and not is_simulated():
        for ours, numpys in zip(*((mine, theirs) if type(mine) is tuple else ([mine], [theirs]))):
            np.testing.assert_allclose(np.asarray(ours), numpys, rtol=1e-6)
    else:
        compare(mine, theirs)


@pytest.mark.parametrize("text", OTHER)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_made_as_numpy_makes_it(text):
    compare(call(text, xnp), call(text, np), text)


@pytest.mark.parametrize("text", REFUSED)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_errors_are_numpys(text):
    if text == "np.asarray([1, 2], copy=False)":
        kind = ValueError
    else:
        try:
            call(text, np)
        except Exception as error:  # noqa: BLE001  any error of theirs is expected of ours
            kind = type(error)
        else:
            pytest.skip("this NumPy allows it")
    with pytest.raises(kind):
        call(text, xnp)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("text", [
    "zeros(3, dtype)", "ones((2, 2), dtype)", "full(3, 1, dtype)", "eye(2, dtype=dtype)", "tri(2, dtype=dtype)",
    "zeros_like([1, 2], dtype=dtype)", "arange(2, dtype=dtype)", "linspace(0, 1, 2, dtype=dtype)",
    "asarray([0, 1], dtype)", "array([0, 1], dtype)", "identity(2, dtype)",
])
def test_every_dtype(text, dtype):
    def run(namespace):
        return eval(f"namespace.{text}", {"namespace": namespace, "dtype": dtype})
    try:
        theirs = run(np)
    except Exception as error:  # noqa: BLE001  any error of theirs is expected of ours
        with pytest.raises(type(error)):
            run(xnp)
    else:
        compare(run(xnp), theirs)


class TestLikeness:
    @pytest.mark.parametrize("name", sorted(set(creation.FUNCTIONS) - {"mgrid", "ogrid"}))
    def test_signatures_are_numpys(self, name):
        try:
            theirs = inspect.signature(getattr(np, name))
        except ValueError:
            pytest.skip("NumPy does not tell")
        mine = getattr(xnp, name)
        assert inspect.signature(mine) == theirs
        assert mine.__name__ == name and mine.__doc__

    def test_everything_else_is_numpys(self):
        lazyarray.disable()     # routers stay in NumPy until then
        own = {*creation.FUNCTIONS, "astype", "clip", "fft", "lib", "linalg", "random"}
        for name in dir(np):
            if not name.startswith("_") and name not in own:
                assert getattr(xnp, name) is getattr(np, name)
        assert set(np.__all__) <= set(xnp.__all__) and set(dir(np)) <= set(dir(xnp))

    def test_submodules_can_be_imported(self):
        from lazyarray.numpy import fft, linalg
        assert linalg.norm is np.linalg.norm and fft.fft is np.fft.fft
        assert set(dir(np.fft)) <= set(dir(fft)) and set(dir(np.linalg)) <= set(dir(linalg))
        names = {}
        exec("from lazyarray.numpy import *", names)
        assert names["zeros"] is xnp.zeros and names["sum"] is np.sum
        with pytest.raises(AttributeError):
            xnp.no_such_name

    def test_like_decides(self):
        class Mine:
            def __array_function__(self, func, types, args, kwargs):
                return func.__name__

        assert xnp.zeros(3, like=Mine()) == "zeros"
        assert lazyarray.is_lazy(xnp.arange(3, like=np.zeros(1)))
        with pytest.raises(TypeError):
            xnp.zeros(3, like=5)

    def test_subclasses_pass_through_asanyarray(self):
        masked = np.ma.masked_array([1, 2], [True, False])
        assert xnp.asanyarray(masked) is masked
        assert lazyarray.is_lazy(xnp.asarray(masked))


class TestCopies:
    def test_a_lazy_array_is_given_back(self):
        x = xnp.arange(4)
        assert xnp.asarray(x) is x and xnp.asanyarray(x, dtype=x.dtype) is x
        assert xnp.asarray(x, copy=False) is x
        y = xnp.array(x)
        y[0] = 9
        assert int(x[0]) == 0
        with pytest.raises(ValueError, match="avoid copy"):
            xnp.asarray(x, dtype="f4", copy=False)

    def test_lists_of_lazy_arrays_stay_on_the_device(self):
        x = xnp.arange(4.0)
        with lazyarray.no_transfers():
            y = xnp.asarray([[x, x + 1], [x, x]])
            z = xnp.array([x.sum(), x.max()])
        assert y.shape == (2, 2, 4) and z.tolist() == [6.0, 3.0]
        with pytest.raises(ValueError, match="avoid copy"):
            xnp.asarray([x, x], copy=False)

    def test_a_host_array_is_copied_once(self):
        host = np.arange(4.0)
        for make in (xnp.asarray, xnp.array, xnp.copy, xnp.from_dlpack):
            with lazyarray.trace() as t:
                x = make(host)
                lazyarray.asdevice(x)
            assert len(t.uploads) == 1
            x[0] = 5
            assert host[0] == 0

    def test_a_device_array_is_shared_unless_a_copy_is_asked_for(self):
        d = lazyarray.device().xp.arange(4)
        x = xnp.asarray(d)
        x[0] = 7
        assert int(d[0]) == 7
        y = xnp.array(d)
        y[0] = 1
        assert int(d[0]) == 7

    def test_dlpack_of_a_lazy_array_shares_its_memory(self):
        x = xnp.arange(4)
        y = xnp.from_dlpack(x)
        y[0] = 7
        assert int(x[0]) == 7 and y is not x
        z = xnp.from_dlpack(x, copy=True)
        z[0] = 1
        assert int(x[0]) == 7
        with pytest.raises(BufferError):
            xnp.from_dlpack(np.arange(3), copy=False)

    def test_what_the_host_made_is_uploaded_when_the_device_needs_it(self):
        with lazyarray.trace() as t:
            x = xnp.loadtxt(io.StringIO("1 2\n3 4"))
            assert not t.uploads
            (x + 1).sum()
        assert len(t.uploads) == 1

    def test_prototypes_on_the_host_are_not_copied(self):
        with lazyarray.trace() as t:
            x = xnp.zeros_like(np.ones((3, 4), "f4").T)
        assert not t.events and x.strides == (4, 16)

    def test_a_buffer_is_copied(self):
        buffer = python_array.array("d", [1.0, 2.0])
        x = xnp.frombuffer(buffer)
        buffer[0] = 5.0
        assert x.tolist() == [1.0, 2.0] and x.flags.writeable
        assert not xnp.frombuffer(b"12345678").flags.writeable

    def test_files(self, tmp_path):
        x = xnp.arange(6.0).reshape(2, 3)
        np.save(tmp_path / "x.npy", x)
        compare(xnp.load(tmp_path / "x.npy"), np.arange(6.0).reshape(2, 3))
        np.asarray(x).tofile(tmp_path / "x.bin")
        compare(xnp.fromfile(tmp_path / "x.bin"), np.arange(6.0))

    def test_fromfunction_hands_over_lazy_arrays(self):
        kinds = []
        xnp.fromfunction(lambda i, j: kinds.extend((type(i), type(j))) or i, (2, 2))
        assert kinds == [lazyarray.LazyNdarray] * 2
        assert xnp.fromfunction(lambda i: 5, (2,)) == 5


class TestStandard:
    def test_it_says_what_numpy_says(self):
        assert xnp.__array_api_version__ == np.__array_api_version__
        info = xnp.__array_namespace_info__()
        assert info.default_device() == xnp.zeros(1).device == "cpu"
        assert info.default_dtypes()["real floating"] == xnp.zeros(1).dtype
        assert xnp.isdtype(xnp.float32, "real floating")

    @pytest.mark.parametrize("version", [None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12", "1999.01"])
    def test_its_versions_are_numpys(self, version):
        try:
            np.empty(0).__array_namespace__(api_version=version)
        except ValueError:
            with pytest.raises(ValueError, match="not supported"):
                xnp.zeros(1).__array_namespace__(api_version=version)
        else:
            assert xnp.zeros(1).__array_namespace__(api_version=version) is xnp
            assert xnp.zeros(1).sum().__array_namespace__(api_version=version) is xnp

    @pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
    def test_frequencies_of_a_dtype(self, name):
        x = getattr(xnp.fft, name)(5, d=2.0, dtype=xnp.float32, device="cpu")
        compare(x, getattr(np.fft, name)(5, 2.0).astype("f4"))

    def test_scalars_have_a_type_too(self):
        s = xnp.astype(xnp.arange(3).sum(), xnp.float32)
        assert s.dtype == np.float32 and lazyarray.is_lazy(s)

    def test_clip_has_the_names_of_the_standard(self):
        assert list(inspect.signature(xnp.clip).parameters)[1:3] == ["min", "max"]
        with pytest.raises(TypeError):
            xnp.clip(xnp.arange(3), 1, min=2)


class TestConsumers:
    """array-api-compat refuses arguments of two namespaces, and each library has a copy of it."""

    COPIES = [
        "array_api_compat", "scipy._lib.array_api_compat", "scipy._external.array_api_compat",
        "sklearn.externals.array_api_compat",
    ]

    @pytest.mark.parametrize("name", COPIES)
    def test_a_lazy_array_beside_a_host_array(self, name):
        try:
            compat = importlib.import_module(name)
        except ImportError:
            pytest.skip(f"there is no {name}")
        x, host = xnp.arange(3.0), np.arange(3.0)
        expected = compat.array_namespace(host)
        for arrays in ((x,), (x, host), (host, x), (x.sum(), host), (x, 1.0, None)):
            assert compat.array_namespace(*arrays) is expected
        assert compat.array_namespace(x, host, use_compat=False) is np
        assert compat.is_array_api_obj(x)
        assert compat.device(x) == "cpu" and compat.size(x) == 3
        assert float(expected.sum(x + host)) == 6.0

    def test_scipy_with_the_standard_switched_on(self):
        pytest.importorskip("scipy")
        code = (
            "import numpy as np, lazyarray, scipy.signal, scipy.stats\n"
            "x, h = lazyarray.asarray(np.arange(20.0)), np.ones(3)\n"
            "assert np.allclose(scipy.signal.convolve(x, h), np.convolve(np.arange(20.0), h))\n"
            "assert np.allclose(scipy.stats.zscore(x), scipy.stats.zscore(np.arange(20.0)))\n"
        )
        environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True, timeout=120)


@pytest.mark.parametrize("given", [
    ([1, 2], []), ([1, 2], [3, 4]), ([True, False, True, False, False], [1]), (np.array([1, 3]), [0]),
    (range(2), (1, 2)), (np.array([], "f8"), [1])], ids=str)
def test_positions_along_axes(given):
    host, found = np.ix_(*given), xnp.ix_(*given)
    assert type(found) is tuple and all(type(x) is lazyarray.LazyNdarray for x in found)
    assert [(x.dtype, x.shape, x.tolist()) for x in found] == [(x.dtype, x.shape, x.tolist()) for x in host]
    lazy = [lazyarray.asarray(x) if isinstance(x, np.ndarray) else x for x in given]
    if any(isinstance(x, np.ndarray) for x in given):
        assert [x.tolist() for x in np.ix_(*lazy)] == [x.tolist() for x in host]


@pytest.mark.parametrize("dtype", [None, "f4", ">f4", "M8[s]", "S3"], ids=str)
def test_creation_is_numpys_while_numpys_own_functions_are_others(dtype):
    """As they are once ``"numpy"`` has been enabled."""
    plain = np.ones((30, 20), "f4")
    calls = {"zeros": (5,), "ones": ((3, 2),), "full": ((3, 2), 0), "zeros_like": (plain,), "ones_like": (plain,),
             "full_like": (plain, 0)}
    wanted = {name: getattr(np, name)(*args, dtype=dtype) for name, args in calls.items()}
    lazy = lazyarray.asarray(plain)
    with lazyarray.enabled("numpy"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, args in calls.items():
            found = getattr(xnp, name)(*[lazy if arg is plain else arg for arg in args], dtype=dtype)
            assert found.dtype == wanted[name].dtype and np.array_equal(found, wanted[name]), name
