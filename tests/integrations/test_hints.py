"""What is said where a library's function runs on the host although the device has it: once, and what to enable."""
from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import lazyarray
from lazyarray import NotEnabledWarning
from lazyarray.events import trace
from lazyarray.integrations import hints

pytest.importorskip("skimage.filters")
import scipy.ndimage
import scipy.special
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


def test_programs_without_these_libraries_look_at_nothing():
    code = ("import numpy as np, lazyarray; from lazyarray.events import trace; "
            "np.asarray(lazyarray.asarray([1.0])); import sys; "
            "print(trace.before_host_use, 'lazyarray.integrations.hints' in sys.modules)")
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["None", "False"]
