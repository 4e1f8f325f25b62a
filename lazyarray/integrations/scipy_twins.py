"""The twins of SciPy's functions in CuPy, and the functions that are none although they have the name."""
from __future__ import annotations

from .twins import Twin, twins

NDIMAGE = twins(
    "scipy.ndimage", "cupyx.scipy.ndimage",
    "affine_transform binary_closing binary_dilation binary_erosion binary_fill_holes binary_hit_or_miss "
    "binary_opening binary_propagation black_tophat center_of_mass convolve convolve1d correlate correlate1d "
    "distance_transform_edt extrema fourier_ellipsoid fourier_gaussian fourier_shift fourier_uniform gaussian_filter "
    "gaussian_filter1d gaussian_gradient_magnitude gaussian_laplace grey_closing grey_dilation grey_erosion "
    "grey_opening histogram label laplace map_coordinates maximum maximum_filter maximum_filter1d maximum_position "
    "mean median median_filter minimum minimum_filter minimum_filter1d minimum_position morphological_gradient "
    "morphological_laplace percentile_filter prewitt rank_filter rotate shift sobel spline_filter spline_filter1d "
    "standard_deviation sum sum_labels uniform_filter uniform_filter1d variance white_tophat zoom",
    writes=("output",),
)
FFT = twins(
    "scipy.fft", "cupyx.scipy.fft",
    "fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft hfft2 ihfft2 hfftn ihfftn "
    "fftshift ifftshift dct idct dst idst dctn idctn dstn idstn fht ifht",
    ignored=("workers",),
)
SPECIAL = twins("scipy.special", "cupyx.scipy.special", "erf erfc gamma gammaln j0 j1", kind="ufunc") | twins(
    "scipy.special", "cupyx.scipy.special", "logsumexp softmax log_softmax")
SIGNAL = twins(
    "scipy.signal", "cupyx.scipy.signal",
    "convolve convolve2d correlate correlate2d fftconvolve oaconvolve medfilt medfilt2d wiener hilbert savgol_filter "
    "lfilter filtfilt sosfilt detrend resample")

INTERPOLATE = twins("scipy.interpolate", "cupyx.scipy.interpolate", "interpn krogh_interpolate pchip_interpolate") | {
    twin.host: twin for twin in (
        Twin("scipy.interpolate.PPoly", "cupyx.scipy.interpolate.PPoly", kind="class",
             adapter="scipy_interpolators:piecewise"),
        Twin("scipy.interpolate.BPoly", "cupyx.scipy.interpolate.BPoly", kind="class",
             adapter="scipy_interpolators:piecewise"),
        Twin("scipy.interpolate.BSpline", "cupyx.scipy.interpolate.BSpline", kind="class",
             adapter="scipy_interpolators:spline"),
        Twin("scipy.interpolate.RegularGridInterpolator", "cupyx.scipy.interpolate.RegularGridInterpolator",
             kind="class", adapter="scipy_interpolators:grid"),
    )
}

TWINS: dict[str, Twin] = NDIMAGE | FFT | SPECIAL | SIGNAL | INTERPOLATE
