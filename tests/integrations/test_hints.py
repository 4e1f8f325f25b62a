"""What is said where a library's function runs on the host although the device has it: once, and what to enable."""
from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import lazyarray
from lazyarray import NotEnabledWarning
from lazyarray.events import trace
from lazyarray.integrations import hints
from lazyarray.integrations.routing.twin import TABLES, table

pytest.importorskip("skimage.filters")
import scipy.fft
import scipy.linalg
import scipy.ndimage
import scipy.special
import scipy.stats
import skimage.filters

#: Before Python 3.12 a class can't offer the buffer protocol.
BUFFER = memoryview if sys.version_info >= (3, 12) else np.array

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(lazyarray.device().name == "cuda", reason="cuCIM may be missing there")


def image():
    return lazyarray.asarray(np.random.default_rng(0).random((20, 20)))


def said(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [(w.category, str(w.message), w.lineno) for w in found]


def test_the_first_trip_of_each_library_is_told_with_what_to_enable():
    x = image()
    ((category, text, line),) = said(lambda: skimage.filters.gaussian(x, 2))
    assert category is NotEnabledWarning and text.startswith("skimage.filters.gaussian ran on the host")
    assert text.endswith("call lazyarray.enable('skimage')")
    assert line == test_the_first_trip_of_each_library_is_told_with_what_to_enable.__code__.co_firstlineno + 2
    assert not said(lambda: (skimage.filters.gaussian(x + 1), skimage.filters.sobel(x + 2)))
    ((_, text, _),) = said(lambda: scipy.ndimage.gaussian_filter(x + 1, 1))
    assert "scipy.ndimage.gaussian_filter" in text and "lazyarray.enable('scipy')" in text
    assert trace.before_host_use is None, "nothing is looked at any more"


def test_what_it_says_is_true():
    x = image()
    ((_, text, _),) = said(lambda: skimage.filters.gaussian(x, 2))
    (library,) = [name for name in ("scipy", "skimage") if f"enable({name!r})" in text]
    with lazyarray.enabled(library), lazyarray.no_transfers():
        assert lazyarray.is_lazy(skimage.filters.gaussian(x, 2))


@pytest.mark.parametrize("look", [np.asarray, BUFFER, lambda x: np.array_equal(np.asarray(x[3:]), x), str])
@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[2:, ::2].T], ids=["whole", "view"])
def test_it_is_said_of_arrays_that_the_host_has_already(look, view):
    """As in a notebook, where an image is drawn before it is filtered."""
    x = view(image())
    kept = look(x)
    ((category, text, _),) = said(lambda: skimage.filters.gaussian(x, 2))
    assert category is NotEnabledWarning and text.startswith("skimage.filters.gaussian ran on the host")
    assert not said(lambda: skimage.filters.gaussian(x, 2))
    del kept


@pytest.mark.parametrize("kind", ["PPoly", "BPoly", "BSpline", "RegularGridInterpolator"])
@pytest.mark.parametrize("made_of", ["lazy arrays", "host arrays"])
def test_it_is_said_of_classes(kind, made_of):
    interpolate = pytest.importorskip("scipy.interpolate")
    line = np.arange(5.0)
    arguments = {"BSpline": (np.arange(9.0), line, 3), "RegularGridInterpolator": ((line,), line)}.get(
        kind, (np.ones((2, 3)), np.arange(4.0)))
    if made_of == "lazy arrays":
        arguments = tuple([lazyarray.asarray(a) * 1 if isinstance(a, np.ndarray) else a for a in arguments])
        found = said(lambda: getattr(interpolate, kind)(*arguments))
    else:
        instance = getattr(interpolate, kind)(*arguments)
        found = said(lambda: instance(lazyarray.asarray(np.linspace(1.0, 2, 9)) * 1))
    ((category, text, _),) = found
    assert category is NotEnabledWarning and text.startswith(f"scipy.interpolate.{kind} ran on the host")


def test_nothing_is_said_where_nothing_is_to_be_said():
    x = image()
    current = np.asarray(x)
    assert not said(lambda: (np.asarray(x), BUFFER(x), x.tolist(), str(x)))
    assert not said(lambda: skimage.filters.gaussian(np.asarray(x), 2)), "the program's own choice"
    assert not said(lambda: skimage.filters.gaussian(np.ones((9, 9)), 2))
    assert not said(lambda: (x + 1).tolist())
    assert not said(lambda: np.asarray(x + 1))
    assert not said(lambda: scipy.ndimage.generic_filter(x + 1, max, 3)), "no twin takes such calls"
    with lazyarray.enabled("skimage", "scipy"):
        assert not [w for w in said(lambda: skimage.filters.frangi(x + 1)) if w[0] is NotEnabledWarning]
        skimage.filters.gaussian(x + 1, 2)
    with lazyarray.options(warn_fallbacks=False):
        assert not said(lambda: skimage.filters.gaussian(x + 1, 2))
    del current


def test_filters():
    x = image()
    with warnings.catch_warnings():
        warnings.simplefilter("error")      # of whoever wants no warnings in general: not this one
        skimage.filters.gaussian(x, 2)
        warnings.simplefilter("ignore", NotEnabledWarning)
        skimage.filters.gaussian(x + 1, 2)
    hints.forget()
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotEnabledWarning)
        for _ in range(2):
            with pytest.raises(NotEnabledWarning):
                skimage.filters.gaussian(image(), 2)
    assert np.array_equal(np.asarray(x + 0), np.asarray(image())), "the array is as it was"


def test_ufuncs_that_run_on_the_host_say_the_same():
    x = image()
    ((category, text, _),) = said(lambda: scipy.special.gamma(x))
    assert category is lazyarray.HostFallbackWarning
    assert text.startswith("scipy.special.gamma runs") and text.endswith("call lazyarray.enable('scipy')")
    with lazyarray.enabled("scipy"), lazyarray.no_transfers():
        scipy.special.gamma(x)


def test_a_trace_names_the_function():
    with lazyarray.trace() as t, lazyarray.options(warn_fallbacks=False):
        skimage.filters.gaussian(image(), 2)
    (event,) = t.materialisations
    assert event.name == "skimage.filters.gaussian"


def made(size):
    """A lazy array that the host does not have."""
    return lazyarray.asarray(np.random.default_rng(0).random((size, size))) * 1


@pytest.mark.parametrize("name", [
    "color.rgb2gray", "exposure.equalize_hist", "restoration.denoise_tv_chambolle"])
def test_functions_that_a_module_gets_later_are_known(name):
    """Of scikit-image's modules, whose functions are there from the first use on."""
    module, function = name.split(".")
    code = f"""
import importlib, warnings
import numpy as np, lazyarray, skimage.feature, skimage.{module} as module
from lazyarray.integrations.routing.twin import table
warnings.simplefilter("ignore")
for twin in table("skimage").values():
    importlib.import_module(twin.module)
image = lazyarray.asarray(np.random.default_rng(0).random((200, 200, 3))) * 1
with lazyarray.trace() as t:
    skimage.feature.canny(image[..., 0])    # the functions of the library are looked at
    module.{function}(image * 2)
print(*[event.name for event in t.materialisations])
"""
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(found.stdout.split()) == {"skimage.feature.canny", f"skimage.{name}"}


@pytest.mark.parametrize(("name", "call"), [
    ("scipy.fft.fft2", lambda: scipy.fft.fft2(made(200))),
    ("scipy.fft.rfft", lambda: scipy.fft.rfft(made(200))),
    ("scipy.fft.dct", lambda: scipy.fft.dct(made(200))),
    ("scipy.fft.fht", lambda: scipy.fft.fht(made(200), 0.1, 1.0)),
    ("scipy.stats.entropy", lambda: scipy.stats.entropy(made(200))),
    ("scipy.stats.trim_mean", lambda: scipy.stats.trim_mean(made(200), 0.1)),
    ("scipy.linalg.solve_triangular", lambda: scipy.linalg.solve_triangular(made(200), made(200))),
])
def test_decorated_functions_and_multimethods_are_named(name, call):
    with lazyarray.trace() as t, lazyarray.options(warn_fallbacks=False):
        call()
    assert t.materialisations and {event.name for event in t.materialisations} == {name}
    ((category, text, _),) = said(call)
    assert category is NotEnabledWarning and text.startswith(f"{name} ran on the host")
    with lazyarray.enabled("scipy"), lazyarray.trace() as t:
        call()
    assert not [event for event in t.materialisations if event.name], "what it advises helps"


@pytest.mark.parametrize("library", TABLES)
def test_all_functions_of_the_tables_are_found_by_their_code(library):
    for twin in table(library).values():
        function = getattr(importlib.import_module(twin.module), twin.name, None)
        plain = inspect.unwrap(function)
        if twin.reason or not inspect.isfunction(plain) or not plain.__module__.startswith(library):
            continue        # `scipy.special.sinc` is NumPy's, and a fallback
        assert hints._of_code(plain.__code__, plain.__globals__["__name__"], library) is twin
        for code in list(hints._codes(function))[:-1]:
            assert "<locals>" in code.co_qualname, f"{twin.host}: a decorator of a kind that is not known"


def test_a_name_in_another_module_is_another_function():
    """`skimage.filters.rank.median` has no twin, and is not `skimage.filters.median`."""
    rank = pytest.importorskip("skimage.filters.rank")
    code = inspect.unwrap(rank.median).__code__
    assert hints._of_code(code, "skimage.filters.rank.generic", "skimage") is None
    assert hints._of_code(skimage.filters.median.__code__, "skimage.filters._median", "skimage").name == "median"


def test_an_inner_function_that_calls_one_it_is_given_is_no_decorator():
    """As SciPy's optimisers do: to enable the library would not keep them from making a copy."""
    namespace = {"__name__": "scipy.optimize._made", "np": np}
    exec("def solver(function):\n    def inner(x):\n        return function(np.asarray(x))\n    return inner",
         namespace)
    with lazyarray.trace() as t:
        namespace["solver"](scipy.special.logsumexp)(made(200))
    assert [event.name for event in t.materialisations] == [""]


def test_looking_often_costs_little():
    x = made(200)
    seconds = []

    def timed():
        start = time.perf_counter()
        found = hints.of_stack()
        seconds.append(time.perf_counter() - start)
        return found

    with lazyarray.options(warn_fallbacks=False), lazyarray.trace(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "function_of_stack", timed)
        for _ in range(30):
            scipy.stats.entropy(x + 1)
    assert len(seconds) >= 30 and min(seconds) < 30e-6, f"{min(seconds) * 1e6:.0f} us"


def test_programs_without_these_libraries_look_at_nothing():
    code = ("import numpy as np, lazyarray; from lazyarray.events import trace; "
            "np.asarray(lazyarray.asarray([1.0])); import sys; "
            "print(trace.before_host_use, 'lazyarray.integrations.hints' in sys.modules)")
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["None", "False"]
