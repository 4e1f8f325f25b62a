"""The twins of SciPy's functions in CuPy, and why other functions that have the name are none.

What the bounds say was found by running SciPy's own tests (1.18) with every call made a second time on the device
(CuPy 14.2, one H200): ``tests/tools/twins.py`` does it, ``benchmarks/results/scipy_twins.json`` has what it found.
"""
from __future__ import annotations

from ..routing.conditions import (
                                  alike,
                                  at_least_two,
                                  dimensions,
                                  exact_spline,
                                  not_homogeneous,
                                  not_negative,
                                  one_dtype,
                                  one_mode,
                                  own_dtype,
                                  sensible_workers,
                                  square,
)
from ..routing.twin import Tolerance, Twin, none, twins
from .device_functions import exponent_is_a_number, metric_is_known
from .signal_twins import SIGNAL, SPECIAL

_CALLBACK = "calls a Python function for each window"

_OURS = f"{__package__}.device_functions"

_NO_HALF = "?bhilqBHILQfdFD"
"""SciPy's ndimage refuses half precision, CuPy's computes with it."""

_SIGNED = "?bhilqBHfdFD"
"""What a negative sum is as an unsigned number of 32 or 64 bits differs."""

_SPLINES = Tolerance(single=1e-3, double=1e-9)
"""For pictures in single precision, places in them are in single precision too: off by up to 1e-4 of a pixel where
there are a thousand of them."""

_NDIMAGE = "scipy.ndimage", "cupyx.scipy.ndimage"
NDIMAGE = {
    **twins(
        *_NDIMAGE,
        "binary_closing binary_dilation binary_erosion binary_fill_holes binary_hit_or_miss binary_opening "
        "binary_propagation black_tophat fourier_ellipsoid fourier_gaussian fourier_shift fourier_uniform "
        "grey_closing grey_dilation grey_erosion grey_opening maximum_filter maximum_filter1d median_filter "
        "minimum_filter minimum_filter1d morphological_gradient morphological_laplace percentile_filter "
        "rank_filter uniform_filter uniform_filter1d white_tophat",
        writes=("output",), dtypes=_NO_HALF, conditions=(own_dtype,),
    ),
    **twins(*_NDIMAGE, "convolve correlate", writes=("output",), dtypes=_SIGNED, arrays=("weights",),
            conditions=(own_dtype, one_mode)),
    # Ours: CuPy's sums are in another order, in which neighbourhoods that mirror each other differ in the last bit.
    **twins(
        _NDIMAGE[0], f"{__package__}.filters",
        "convolve1d correlate1d gaussian_filter gaussian_filter1d gaussian_gradient_magnitude gaussian_laplace laplace "
        "prewitt sobel",
        writes=("output",), dtypes=_NO_HALF,
    ),
    # Whole numbers are rounded in another way.
    **twins(*_NDIMAGE, "map_coordinates rotate shift zoom", writes=("output",), dtypes="fdFD", arrays=("coordinates",),
            conditions=(own_dtype, exact_spline), tolerance=_SPLINES),
    **twins(*_NDIMAGE, "affine_transform", writes=("output",), dtypes="fdFD", arrays=("matrix",),
            conditions=(own_dtype, exact_spline, not_homogeneous), tolerance=_SPLINES),
    **twins(*_NDIMAGE, "spline_filter spline_filter1d", writes=("output",), dtypes="dD", tolerance=_SPLINES,
            conditions=(own_dtype, exact_spline, dimensions("input", 1, 2, 3, 4, 5))),
    **twins(*_NDIMAGE, "value_indices", dtypes=_NO_HALF),
    **twins(_NDIMAGE[0], f"{__package__}.measurements",
            "center_of_mass extrema histogram maximum maximum_position mean median minimum minimum_position "
            "standard_deviation sum sum_labels variance", dtypes=_NO_HALF),
    **twins(*_NDIMAGE, "label", writes=("output",), dtypes=_NO_HALF),
    # Of several nearest points it finds another one.
    **twins(*_NDIMAGE, "distance_transform_edt", dtypes=_NO_HALF,
            lacks={"return_indices": None, "distances": None, "indices": None}),
    **none(*_NDIMAGE, "generic_filter generic_filter1d generic_gradient_magnitude generic_laplace", _CALLBACK,
           writes=("output",)),
    **none(*_NDIMAGE, "labeled_comprehension", _CALLBACK),
    **none(*_NDIMAGE, "find_objects", "returns slices, which needs the labels on the host"),
}

_FFT = "scipy.fft", "cupyx.scipy.fft"
_IN_PLACE = ("workers", "overwrite_x")
FFT = {
    **twins(
        *_FFT,
        "fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft hfft2 ihfft2 hfftn ihfftn",
        ignored=_IN_PLACE, lacks={"plan": None}, conditions=(sensible_workers,),
    ),
    **twins(*_FFT, "dct idct dst idst dctn idctn dstn idstn", ignored=_IN_PLACE, lacks={"orthogonalize": None},
            conditions=(sensible_workers,)),
    **twins(*_FFT, "fftshift ifftshift"),
    **twins(*_FFT, "fht", tolerance=Tolerance(double=1e-10)),
    **none(*_FFT, "ifht", "gives NaN where the transform is singular"),
}

_LINALG = "scipy.linalg", "cupyx.scipy.linalg"
_OVERWRITES = ("overwrite_a", "overwrite_b", "check_finite")
_OVERWRITTEN = ("overwrite_a", "overwrite_b")
_SQUARE = square("a")
LINALG = {
    **twins(*_LINALG, "block_diag companion convolution_matrix khatri_rao leslie fiedler_companion"),
    **twins(*_LINALG, "circulant fiedler hankel toeplitz", conditions=(dimensions("a c r", 1),)),
    **twins(*_LINALG, "lu lu_factor", ignored=_OVERWRITES, lacks={"p_indices": None},
            conditions=(dimensions("a", 2), one_dtype("a"))),
    **twins(*_LINALG, "lu_solve", ignored=_OVERWRITES,
            conditions=(dimensions("b", 1, 2), one_dtype("lu_and_piv", "b"))),
    **twins(*_LINALG, "solve_triangular", ignored=_OVERWRITES,
            conditions=(dimensions("a", 2), dimensions("b", 1, 2), one_dtype("a", "b"), alike("a", "b", 0))),
    **twins(_LINALG[0], _OURS, "det", dtypes="dD", ignored=("overwrite_a",), conditions=(_SQUARE,)),
    **twins(_LINALG[0], _OURS, "cholesky", dtypes="fdFD", ignored=("overwrite_a",), conditions=(_SQUARE,)),
    **twins(_LINALG[0], _OURS, "eigvalsh", dtypes="fdFD", ignored=_OVERWRITTEN, conditions=(_SQUARE,),
            lacks={"b": None, "type": None, "subset_by_index": None, "subset_by_value": None, "driver": None}),
    **twins(_LINALG[0], _OURS, "svdvals", dtypes="fdFD", ignored=("overwrite_a",), conditions=(dimensions("a", 2),)),
    **none(*_LINALG, "bandwidth", "returns two Python numbers, which needs the matrix on the host"),
    **none(*_LINALG, "expm", "is inaccurate for some of SciPy's test matrices"),
}

_INTERPOLATE = "scipy.interpolate", "cupyx.scipy.interpolate"
INTERPOLATE = {
    **twins(*_INTERPOLATE, "interpn", dtypes="?bhilqBHILQdD", tolerance=Tolerance(double=1e-10),
            lacks={"method": ("cubic", "quintic", "pchip", "slinear", "splinef2d")}),
    **twins(*_INTERPOLATE, "krogh_interpolate pchip_interpolate", arrays=("xi", "yi", "x"),
            tolerance=Tolerance(double=1e-10)),
    **twins(*_INTERPOLATE, "barycentric_interpolate", arrays=("xi", "yi", "x"), lacks={"der": None, "rng": None},
            tolerance=Tolerance(double=1e-10)),
    **twins(*_INTERPOLATE, "PPoly BPoly", kind="class", adapter="scipy.interpolators:piecewise"),
    **twins(*_INTERPOLATE, "BSpline", kind="class", adapter="scipy.interpolators:spline"),
    **twins(*_INTERPOLATE, "RegularGridInterpolator", kind="class", adapter="scipy.interpolators:grid"),
}

_STATS = "scipy.stats", "cupyx.scipy.stats"
STATS = {
    **twins(*_STATS, "trim_mean zscore"),
    **twins(_STATS[0], _OURS, "entropy", dtypes="fd", lacks={"nan_policy": None, "keepdims": None}),
    **none(*_STATS, "boxcox_llf", "sums logarithms in another precision and order, and they cancel"),
    **none(*_STATS, "zmap", "gives infinities instead of NaN for constant data"),
}

_SOLVERS = "scipy.sparse.linalg", "cupyx.scipy.sparse.linalg"
SPARSE = {
    # How far they go is what rtol and atol say; a start at the solution gives NaN.
    **twins(*_SOLVERS, "bicgstab cg cgs", dtypes="fdFD", lacks={"x0": None}, conditions=(not_negative("atol"),),
            tolerance=Tolerance(single=1e-3, double=1e-4)),
    **twins(*_SOLVERS, "minres", dtypes="fd", lacks={"x0": None, "check": None, "rtol": None},
            tolerance=Tolerance(single=1e-3, double=1e-4)),
    **none(*_SOLVERS, "eigsh svds lobpcg", "uses another starting vector and other signs of the vectors"),
    **none(*_SOLVERS, "gmres lsmr lsqr", "stops at another iteration, and reports convergence differently"),
}

_REAL = "?bhilqBHILQfd"
_DISTANCE = "scipy.spatial.distance", _OURS
SPATIAL = {
    **twins("scipy.spatial", _OURS, "distance_matrix", dtypes=_REAL, ignored=("threshold",), arrays=("x", "y"),
            conditions=(dimensions("x y", 2), alike("x", "y", -1), exponent_is_a_number)),
    **twins(*_DISTANCE, "cdist", dtypes=_REAL, lacks={"out": None}, arrays=("XA", "XB"),
            conditions=(dimensions("XA XB", 2), alike("XA", "XB", -1), metric_is_known)),
    **twins(*_DISTANCE, "pdist", dtypes=_REAL, lacks={"out": None}, arrays=("X",),
            conditions=(dimensions("X", 2), at_least_two("X"), metric_is_known)),
}

TWINS: dict[str, Twin] = {**NDIMAGE, **FFT, **LINALG, **INTERPOLATE, **STATS, **SPARSE, **SPATIAL, **SIGNAL, **SPECIAL}
