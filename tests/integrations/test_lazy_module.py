"""Whole modules of GPU functions: what is in them, and how each is taken to treat its arguments."""
from __future__ import annotations

import inspect
import pickle
import sys
import types

import numpy as np
import pytest

import lazyarray
from lazyarray import HostFallbackWarning, lazy_module
from lazyarray.integrations.lazy_module import LazyModule
from lazyarray.wrapping.decorator import LazyFunction

device = lazyarray.device()
xp = device.xp

SOURCE = {
    "gpu_lib": '''"""A library of GPU functions."""
import numpy
import math
from lazyarray import device
xp = device().xp
LIMIT = 3
made = 0
class Kind: pass
class Trouble(Exception): pass
def double(x, out=None):
    """Doubles."""
    if out is None: return x * 2
    out[...] = x * 2
    return out
def spoil(x): x += 1
def fails(x): raise NotImplementedError("later")
def __getattr__(name):
    if name == "late":
        global made
        made += 1
        return lambda x: x - 1
    raise AttributeError(name)
def __dir__(): return [*globals(), "late"]
''',
    "gpu_lib.sub": "from gpu_lib import double\nnames = ['a']\n",
    "gpu_lib.sub.deeper": "def square(x): return x * x\n",
}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """An importable package of device functions, its submodules not imported."""
    root = tmp_path_factory.mktemp("libraries")
    for name, text in SOURCE.items():
        folder = root.joinpath(*name.split("."))
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(text)
    sys.path.insert(0, str(root))
    yield __import__("gpu_lib")
    sys.path.remove(str(root))
    for name in [name for name in sys.modules if name.partition(".")[0] == "gpu_lib"]:
        del sys.modules[name]


def lazy_of(values):
    return lazyarray.asarray(np.array(values, float))


class TestModule:
    def test_functions_are_lazy_and_say_what_they_are(self, library):
        lib = lazy_module(library)
        assert isinstance(lib.double, LazyFunction) and lib.double is lib.double
        assert lib.double.__doc__ == "Doubles." and str(inspect.signature(lib.double)) == "(x, out=None)"
        found = lib.double(np.ones(2))
        assert lazyarray.is_lazy(found) and found.tolist() == [2, 2]

    def test_what_is_no_function_stays(self, library):
        lib = lazy_module(library)
        assert lib.Kind is library.Kind and lib.LIMIT == 3 and lib.math is sys.modules["math"] and lib.numpy is np
        with pytest.raises(lib.Trouble):
            raise library.Trouble

    def test_submodules_are_imported_when_they_are_asked_for(self, library):
        lib = lazy_module(library)
        assert isinstance(lib, types.ModuleType) and "gpu_lib.sub.deeper" not in sys.modules
        assert isinstance(lib.sub, LazyModule) and lib.sub.names is library.sub.names
        assert lib.sub.deeper.square(lazy_of([3])).tolist() == [9]
        assert lazyarray.is_lazy(lib.sub.double(np.ones(1)))

    def test_nothing_is_looked_up_before_it_is_asked_for(self, library):
        lib = lazy_module(library)
        before = library.made
        assert "late" in dir(lib) and library.made == before
        assert lib.late(lazy_of([1])).tolist() == [0] and library.made == before + 1

    @pytest.mark.parametrize("name", ["nothing", "__nothing__", "_nothing"])
    def test_what_is_not_there(self, library, name):
        with pytest.raises(AttributeError, match=name):
            getattr(lazy_module(library), name)
        assert not hasattr(lazy_module(library).sub, name)

    def test_the_module_is_left_alone(self, library):
        before = {name: id(thing) for name, thing in vars(library).items()}
        lib = lazy_module(library)
        lib.double(np.ones(1))
        lib.double = None
        assert before.items() <= {name: id(thing) for name, thing in vars(library).items()}.items()

    def test_it_is_shown_and_described(self, library):
        lib = lazy_module(library)
        assert repr(lib).startswith("<lazy <module 'gpu_lib'") and lib.__name__ == "gpu_lib"
        assert lib.__doc__ == "A library of GPU functions."
        assert {"double", "Kind", "LIMIT"} <= set(dir(lib))

    def test_it_is_pickled_by_name(self, library):
        lib = lazy_module(library, writes=("out",), host=np)
        found = pickle.loads(pickle.dumps(lib.sub))
        assert found.__name__ == "gpu_lib.sub" and isinstance(found, LazyModule)
        function = pickle.loads(pickle.dumps(lib.double))
        assert function == lib.double and function._self_parts == lib.double._self_parts

    def test_by_name(self, library):
        assert lazy_module(library.__name__)._lazy_parts[0] is library
        assert lazy_module(library, host="math")._lazy_parts[2].__name__ == "math"
        with pytest.raises(ModuleNotFoundError, match="no_such_module"):
            lazy_module("no_such_module")

    @pytest.mark.parametrize("other", [3, np.add, dict, len, None])
    def test_what_is_no_module_is_refused(self, other):
        with pytest.raises(TypeError, match="takes a module or the name of one"):
            lazy_module(other)

    def test_contradictions_are_told(self, library):
        with pytest.raises(TypeError, match="not pure"):
            lazy_module(library, pure=True, writes=("out",))


class TestHow:
    def test_an_unknown_library_may_modify_anything(self, library):
        h = np.ones(2)
        lazy_module(library).spoil(h)
        assert h.tolist() == [2, 2]

    def test_as_it_is_told(self, library):
        h, out = np.ones(2), np.zeros(2)
        lib = lazy_module(library, writes=("out",))
        lib.spoil(h)
        assert lib.double(h, out) is out and out.tolist() == [2, 2] and h.tolist() == [1, 1]
        with lazyarray.trace() as t:
            lazy_module(library, pure=True).double(h)
        assert not t.synchronisations

    def test_a_host_twin(self, library):
        host = types.SimpleNamespace(__name__="host", fails=lambda x: x + 5, more=lambda x: x + 6, Kind=int, LIMIT=4)
        lib = lazy_module(library, host=host)
        with pytest.warns(HostFallbackWarning, match="gpu_lib.fails runs on the host: NotImplementedError"):
            assert lib.fails(lazy_of([1])).tolist() == [6]
        with pytest.warns(HostFallbackWarning, match="gpu_lib.more runs on the host: there is no gpu_lib.more"):
            found = lib.more(lazy_of([1]))
        assert found.tolist() == [7] and lazyarray.is_lazy(found) and lib.LIMIT == 3 and "more" in dir(lib)
        with pytest.raises(NotImplementedError, match="later"):
            lazy_module(library).fails(lazy_of([1]))


class TestKnownLibraries:
    """CuPy and cuCIM modify what is called ``out`` or ``output``."""

    @pytest.fixture(autouse=True)
    def scipy(self):
        pytest.importorskip("scipy")

    ndimage = property(lambda self: lazy_module(device.library("cupyx.scipy.ndimage")))

    def test_inputs_are_not_compared(self):
        image = np.eye(5)
        with lazyarray.trace() as t:
            found = self.ndimage.gaussian_filter(image, 1.0)
        assert lazyarray.is_lazy(found) and len(t.uploads) == 1 and not t.synchronisations

    @pytest.mark.parametrize("make", [lazy_of, np.array])
    def test_outputs_are_written(self, make):
        output = make(np.zeros((3, 3)))
        self.ndimage.uniform_filter(lazy_of(np.ones((3, 3))), 3, output=output)
        assert np.allclose(np.asarray(output), 1)

    def test_a_whole_library(self):
        scipy = lazy_module(device.library("cupyx.scipy"))
        assert lazyarray.is_lazy(scipy.ndimage.sobel(np.eye(4)))
        assert scipy.special.erf(lazy_of([0.0])).tolist() == [0]
        assert lazyarray.is_lazy(scipy.special.erf(np.zeros(2)))

    def test_ufuncs_write_to_what_comes_after_their_inputs(self):
        lazies, out, h = lazy_module(xp), np.zeros(2), np.ones(2)
        with lazyarray.trace() as t:
            lazies.exp(h)
            lazies.add(h, h)
        assert not t.synchronisations and not t.materialisations
        assert lazies.exp(h, out) is out and np.allclose(out, np.e)

    @pytest.mark.parametrize(("call", "expected"), [
        (lambda lib, x: lib.fill_diagonal(x, 5), [[5, 1], [1, 5]]),
        (lambda lib, x: lib.copyto(x, lazy_of([[1, 2], [3, 4]])), [[1, 2], [3, 4]]),
        (lambda lib, x: lib.putmask(x, lazyarray.asarray(np.eye(2, dtype=bool)), lazy_of([7])), [[7, 1], [1, 7]]),
        (lambda lib, x: lib.nan_to_num(lib.divide(x, 0, x), copy=False, posinf=3), [[3, 3], [3, 3]]),
    ], ids=["fill_diagonal", "copyto", "putmask", "nan_to_num"])
    @pytest.mark.parametrize("make", [lazy_of, np.array])
    @pytest.mark.filterwarnings("ignore:divide by zero")
    def test_functions_that_modify_an_input(self, call, expected, make):
        x = make(np.ones((2, 2)))
        alias = np.asarray(x)
        call(lazy_module(xp), x)
        assert alias.tolist() == expected == np.asarray(x).tolist()

    def test_the_host_twin_is_known_where_it_was_tested(self):
        from scipy import ndimage

        assert self.ndimage.gaussian_filter._self_parts[1] is ndimage.gaussian_filter
        assert lazy_module(xp).cumsum._self_parts[1] is np.cumsum
        assert lazy_module(xp).sort._self_parts[1] is None      # its parameters are others

    def test_the_flag_to_overwrite_is_believed(self):
        linalg = lazy_module(device.library("cupyx.scipy.linalg"))
        x = np.triu(np.ones((2, 2)))
        with lazyarray.trace() as t:
            linalg.solve_triangular(x, np.ones(2))
        assert not t.synchronisations
        with lazyarray.trace() as t:
            linalg.solve_triangular(x, np.ones(2), overwrite_b=True)
        assert len(t.synchronisations) == 1
