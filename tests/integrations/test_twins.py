"""The tables of twins: every function with a namesake on the device is in one, and what a table says is so."""
from __future__ import annotations

import importlib
import inspect
import json
import os
import types
from pathlib import Path

import numpy as np
import pytest
from suite_runs import skip_without, start

import lazyarray
from lazyarray.integrations.routing.twin import Parameters, Twin, dtypes_of
from lazyarray.integrations.scipy import twins as scipy_twins

pytest.importorskip("scipy")

MODULES = (
    "fft", "interpolate", "linalg", "ndimage", "signal", "signal.windows", "sparse", "sparse.csgraph", "sparse.linalg",
    "spatial", "spatial.distance", "special", "stats",
)
FUNCTIONS = {path: twin for path, twin in scipy_twins.TWINS.items() if twin.kind != "class"}
LISTED = {path: twin for path, twin in FUNCTIONS.items() if not twin.reason}


_DESIGN = "it computes a few coefficients only"

_OF_TWO = "it is of two vectors, and gives a number"
_SPARSE_RESULT = "it makes sparse matrices, or is about them"
UNTOUCHED: dict[str, str] = {
    f"{module}.{name}": reason
    for module, reason, names in (
        ("scipy.ndimage", "it takes no arrays of data", "generate_binary_structure iterate_structure"),
        ("scipy.fft", "it takes no arrays", "fftfreq rfftfreq next_fast_len"),
        ("scipy.linalg", "it takes no arrays", "dft hadamard helmert hilbert"),
        ("scipy.interpolate", "it makes or takes a spline, whose calls are routed",
         "make_interp_spline make_lsq_spline splantider splder"),
        ("scipy.spatial.distance", _OF_TWO,
         "canberra chebyshev cityblock correlation cosine euclidean hamming jensenshannon minkowski russellrao "
         "sqeuclidean"),
        ("scipy.sparse", _SPARSE_RESULT,
         "block_array block_diag bmat diags diags_array eye eye_array find get_index_dtype hstack identity issparse "
         "isspmatrix isspmatrix_coo isspmatrix_csc isspmatrix_csr isspmatrix_dia kron kronsum matrix_transpose "
         "permute_dims rand random random_array safely_cast_index_arrays spdiags swapaxes tril triu vstack"),
        ("scipy.sparse.linalg", _SPARSE_RESULT,
         "aslinearoperator factorized matrix_power norm spilu splu spsolve spsolve_triangular"),
        ("scipy.sparse.csgraph", _SPARSE_RESULT, "connected_components"),
        ("scipy.signal", _DESIGN,
         "abcd_normalize band_stop_obj bilinear bilinear_zpk bode buttap butter buttord cheb1ap cheb1ord cheb2ap "
         "cheb2ord "
         "cheby1 cheby2 check_COLA check_NOLA choose_conv_method cont2discrete correlation_lags czt_points dbode "
         "dfreqresp "
         "dimpulse dlsim dstep ellip ellipap ellipord findfreqs firls firwin firwin2 freqresp freqs freqs_zpk freqz "
         "freqz_sos freqz_zpk gammatone gauss_spline get_window group_delay iircomb iirdesign iirfilter iirnotch "
         "iirpeak "
         "impulse invres invresz kaiser_atten kaiser_beta kaiserord lfilter_zi lfiltic lp2bp lp2bp_zpk lp2bs lp2bs_zpk "
         "lp2hp lp2hp_zpk lp2lp lp2lp_zpk lsim max_len_seq minimum_phase normalize place_poles residue residuez "
         "savgol_coeffs sos2tf sos2zpk sosfilt_zi sosfreqz ss2tf ss2zpk step sweep_poly tf2sos tf2ss tf2zpk "
         "unique_roots "
         "unit_impulse zpk2sos zpk2ss zpk2tf"),
        ("scipy.signal.windows", _DESIGN,
         "boxcar triang parzen bohman blackman nuttall blackmanharris flattop bartlett barthann hamming kaiser "
         "kaiser_bessel_derived gaussian general_gaussian general_cosine general_hamming chebwin cosine hann "
         "exponential "
         "tukey taylor get_window lanczos"),
    )
    for name in names.split()
}
"""Functions with a namesake on the device that run as ever, and why: nothing stands in their places."""


def namesakes(part):
    """The public functions of a module of SciPy's that the device has by the same name."""
    host = importlib.import_module(f"scipy.{part}")
    device = lazyarray.device().library(f"cupyx.scipy.{part}")
    for name in host.__all__:
        function, theirs = getattr(host, name, None), getattr(device, name, None)
        if callable(function) and not isinstance(function, type) and theirs is not None and not isinstance(
                theirs, (type, types.ModuleType)) and not name.startswith("_"):
            yield f"scipy.{part}.{name}"


class TestCompleteness:
    @pytest.mark.parametrize("part", MODULES)
    def test_every_namesake_is_a_twin_or_has_a_reason_why_not(self, part):
        ours = {path for path, twin in FUNCTIONS.items() if twin.device.startswith("lazyarray.")}
        module = importlib.import_module(f"scipy.{part}")     # an older one may lack what a newer one has
        known = {path for path in (*FUNCTIONS, *UNTOUCHED)
                 if path.rpartition(".")[0] == module.__name__ and hasattr(module, path.rpartition(".")[2])}
        assert set(namesakes(part)) | (ours & known) == known

    def test_the_tables_are_disjoint(self):
        assert not scipy_twins.TWINS.keys() & UNTOUCHED.keys()

    def test_reasons_are_given(self):
        assert all(twin.reason for path, twin in FUNCTIONS.items() if path not in LISTED)
        assert all(UNTOUCHED.values())


def function_of(twin):
    return getattr(importlib.import_module(twin.module), twin.name)


@pytest.mark.parametrize("path", scipy_twins.TWINS)
class TestEach:
    def test_it_is_at_both_places(self, path):
        twin = scipy_twins.TWINS[path]
        assert twin.host == path and twin.function
        assert isinstance(function_of(twin), type) == (twin.kind == "class")
        assert isinstance(function_of(twin), np.ufunc) == (twin.kind == "ufunc")

    def test_its_bounds_name_parameters(self, path):
        twin = scipy_twins.TWINS[path]
        if twin.kind != "function":
            return
        # SciPy releases differ in which parameters there are: all that any of a group has stand in its bounds.
        try:
            parameters = inspect.signature(function_of(twin)).parameters
        except ValueError:      # compiled, in some releases
            parameters = dict.fromkeys(twin.writes)
        assert set(twin.writes) <= parameters.keys()
        assert twin.dtypes and set(twin.dtypes) <= set("?bhilqBHILQefdFD")


class TestBounds:
    @pytest.fixture
    def twin(self):
        return Twin(
            "numpy.linalg.norm", "nowhere", dtypes="fd", lacks={"ord": ("nuc", 2), "axis": None}, ignored=("keepdims",),
            arrays=("x",), conditions=(lambda given: "it is a small one" if len(given["x"]) < 2 else None,))

    def bound(self, twin, *args, **kwargs):
        return twin.bounded(Parameters(inspect.signature(np.linalg.norm)), args, kwargs)

    def test_what_it_takes(self, twin):
        x = np.ones(3)
        assert self.bound(twin, x) == ((x,), {})
        assert self.bound(twin, x, None, None, keepdims=True) == ((x,), {"ord": None})
        assert self.bound(twin, x, "fro") == ((x,), {"ord": "fro"})

    def test_lists_become_arrays(self, twin):
        (x,), _ = self.bound(twin, [1.0, 2.0])
        assert type(x) is np.ndarray
        (x,), _ = self.bound(twin, [[1.0, 2.0], [3.0, 4.0]])
        assert x.shape == (2, 2)
        (x,), _ = self.bound(twin, ["a", "b"])
        assert x == ["a", "b"]

    @pytest.mark.parametrize("args, kwargs, reason", [
        ((np.ones(3, np.float16),), {}, "float16 is not supported"),
        ((np.ones(3), "nuc"), {}, "ord='nuc' is not supported"),
        ((np.ones(3),), {"axis": 0}, "axis=0 is not supported"),
        ((np.ones(1),), {}, "small"), ((np.ones(3),), {"out": 1}, "out"),
    ])
    def test_what_goes_to_the_host(self, twin, args, kwargs, reason):
        with pytest.raises(lazyarray.errors.NotOnDevice, match=reason):
            self.bound(twin, *args, **kwargs)

    @pytest.mark.parametrize("function, args, kwargs, wanted", [
        (lambda a, /, b, c=3, *, d, e=5: 0, (1, 2), {"d": 4}, ((1, 2), {"d": 4})),
        (lambda a, /, b, c=3, *, d, e=5: 0, (1,), {"e": 7, "d": 4, "b": 2}, ((1, 2), {"d": 4, "e": 7})),
        (lambda a, /, b, c=3, *, d, e=5: 0, (1, 2, 9), {"d": 4}, ((1, 2), {"c": 9, "d": 4})),
        (lambda a=1, /, b=2: 0, (5, 6), {}, ((5,), {"b": 6})),
        (lambda a, *rest, c=3, **more: 0, (1, 2, 8), {"f": 6, "c": 4}, ((1, 2, 8), {"c": 4, "f": 6})),
        (lambda: 0, (), {}, ((), {})),
    ])
    def test_arguments_without_a_default_go_by_position(self, function, args, kwargs, wanted):
        twin = Twin("a.b", "c.d", lacks={"none": None})
        looking = Twin("a.b", "c.d", conditions=(lambda given: None,))
        parameters = Parameters(inspect.signature(function))
        for _ in range(2):      # found, and known
            assert twin.bounded(parameters, args, kwargs) == wanted == looking.bounded(parameters, args, kwargs)
        args, kwargs = tuple(-a for a in args), {name: -value for name, value in kwargs.items()}
        wanted = tuple(-a for a in wanted[0]), {name: -value for name, value in wanted[1].items()}
        assert twin.bounded(parameters, args, kwargs) == wanted == looking.bounded(parameters, args, kwargs)

    @pytest.mark.parametrize("args, kwargs", [((), {}), ((1, 2), {}), ((1,), {"a": 2}), ((), {"a": 1, "c": 3})])
    def test_what_no_parameter_takes(self, args, kwargs):
        parameters = Parameters(inspect.signature(lambda a, *, b=2: 0))
        twin = Twin("a.b", "c.d", lacks={"b": None})
        with pytest.raises(TypeError) as wanted:
            parameters.signature.bind(*args, **kwargs)
        for _ in range(2):
            with pytest.raises(lazyarray.errors.NotOnDevice) as found:
                twin.bounded(parameters, args, kwargs)
            assert str(found.value) == str(wanted.value)

    def test_the_dtypes_of_arrays_wherever_they_are(self):
        x = lazyarray.asarray(np.ones(3, np.float32))
        whole, single = np.ones(2, np.int16), np.float64(2)
        values = (x, [whole, {"key": (np.ones(1, bool).view(np.ma.MaskedArray),)}], x[0], single, 1, "text", None)
        assert dtypes_of(values) == {np.dtype(char) for char in "fh?"}

    def test_a_reason_is_one_for_all_calls(self):
        with pytest.raises(lazyarray.errors.NotOnDevice, match="never"):
            Twin("a.b", "c.d", reason="never").bounded(None, (), {})


# Suite -> package whose functions take lazy arrays, with calls of SciPy routed
QUICK = {"scipy.ndimage.tests.test_measurements": "scipy.ndimage", "scipy.fft.tests.test_helper": "scipy.fft"}
LONG = {
    "scipy.fft.tests.test_basic": "scipy.fft",
    "scipy.fft.tests.test_real_transforms": "scipy.fft",
    "scipy.ndimage.tests.test_filters": "scipy.ndimage",
    "scipy.ndimage.tests.test_fourier": "scipy.ndimage",
    "scipy.ndimage.tests.test_interpolation": "scipy.ndimage",
    "scipy.ndimage.tests.test_morphology": "scipy.ndimage",
    "scipy.signal.tests.test_signaltools": "scipy.signal",
    "scipy.signal.tests.test_spectral": "scipy.signal",
    "scipy.signal.tests.test_upfirdn": "scipy.signal",
    "scipy.spatial.tests.test_distance": "scipy.spatial",
    "scipy.stats.tests.test_entropy": "scipy.stats",
}
NIGHTLY = os.environ.get("LAZYARRAY_NIGHTLY") == "1"


@pytest.mark.skipif(lazyarray.device().name != "simulated", reason="twins.py holds CUDA to its tolerances")
@pytest.mark.parametrize("suite", [
    *QUICK,
    *(pytest.param(suite, marks=pytest.mark.skipif(not NIGHTLY, reason="runs in the nightly tests")) for suite in LONG),
])
def test_a_suite_passes_with_its_calls_on_the_device(suite, tmp_path):
    """What the host's functions give, the routed calls give: types, shapes, dtypes, errors, and what is written."""
    skip_without(suite)
    report = tmp_path / "report.json"
    found = start(tmp_path, ["--pyargs", suite, "-m", "not slow", "-k", "not large_data", "--lazyarray-untraced"],
                  {**QUICK, **LONG}[suite], report=report, LAZYARRAY_ENABLE="scipy")
    assert found.returncode in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED), found.stdout + found.stderr
    content = json.loads(report.read_text())
    assert content["arrays"] > 10, "hardly anything was replaced, so nothing was tested"
    assert [test for test, outcome in content["tests"].items() if outcome == "failed"] == [], found.stdout


VERDICTS = Path(__file__).parents[2] / "benchmarks" / "results" / "scipy_twins.json"


@pytest.mark.parametrize("path", [path for path, twin in scipy_twins.TWINS.items() if not twin.reason])
def test_a_twin_is_listed_once_it_has_passed_scipy_s_own_tests(path):
    """`twins.py` wrote the verdicts on CUDA: calls of SciPy's tests that came out the same, and that did not."""
    found = json.loads(VERDICTS.read_text())["functions"].get(path)
    assert found is not None, "nobody has looked at it on CUDA: see tests/tools/twins.py"
    assert found["same"] > 0 and found["wrong"] == 0
    for dtype, error in found["errors"].items():
        assert error <= scipy_twins.TWINS[path].tolerance.of(np.dtype(dtype))
