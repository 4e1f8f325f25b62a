"""The twins of `scipy.signal` (what works on signals; designing filters is the host's work) and of `scipy.special`."""
from __future__ import annotations

from ..routing.conditions import dimensions, floats_unless, no_more_than, not_empty, one_dtype, positive_int
from ..routing.twin import Tolerance, Twin, none, twins

_SIGNAL = "scipy.signal", "cupyx.scipy.signal"
_RECURSIVE = Tolerance(single=1e-3, double=1e-7)
"""Recursive filters carry each error on, and the device computes them in blocks."""

_LOW_ORDER = no_more_than("a", 3, "recursive filters of order 3 and more lose digits on the device; use sosfilt")

_TRANSFORMED = Tolerance(single=1e-4, double=1e-11)

SIGNAL: dict[str, Twin] = {
    **twins(*_SIGNAL, "convolve correlate", conditions=(floats_unless("method", "direct"),), tolerance=_TRANSFORMED),
    **twins(*_SIGNAL, "convolve2d correlate2d upfirdn", arrays=("in1", "in2", "h")),
    **twins(*_SIGNAL, "fftconvolve oaconvolve", tolerance=_TRANSFORMED, conditions=(not_empty("in1", "in2"),)),
    **twins(*_SIGNAL, "czt zoom_fft", tolerance=_TRANSFORMED),
    **twins(*_SIGNAL, "medfilt medfilt2d order_filter wiener"),
    **twins(*_SIGNAL, "lfilter", dtypes="fdFD", arrays=("b", "a"), lacks={"zi": None}, tolerance=_RECURSIVE,
            conditions=(dimensions("b a", 1), one_dtype("b", "a", "x"), _LOW_ORDER)),
    **twins(*_SIGNAL, "sosfilt", arrays=("sos",), lacks={"zi": None}, tolerance=_RECURSIVE,
            conditions=(dimensions("sos", 2),)),
    **twins(*_SIGNAL, "filtfilt", arrays=("b", "a"), tolerance=_RECURSIVE, conditions=(_LOW_ORDER,)),
    **twins(*_SIGNAL, "sosfiltfilt", arrays=("sos",), tolerance=_RECURSIVE),
    **twins(*_SIGNAL, "decimate deconvolve savgol_filter", tolerance=Tolerance(single=1e-4, double=1e-10)),
    **twins(*_SIGNAL, "detrend", lacks={"overwrite_data": None}),
    **twins(*_SIGNAL, "hilbert", tolerance=_TRANSFORMED),
    **twins(*_SIGNAL, "resample", dtypes="?bhilqBHILQefd", tolerance=_TRANSFORMED),
    **twins(*_SIGNAL, "resample_poly", dtypes="dD", conditions=(positive_int("up", "down"),)),
    **twins(*_SIGNAL, "stft istft csd welch periodogram spectrogram coherence", tolerance=_TRANSFORMED),
    **twins(*_SIGNAL, "cspline1d cspline1d_eval qspline1d qspline1d_eval qspline2d"),
    **twins(*_SIGNAL, "symiirorder1", dtypes="fdFD", tolerance=Tolerance(double=1e-10)),
    **twins(*_SIGNAL, "chirp sawtooth square"),
    **twins(*_SIGNAL, "argrelmax argrelmin"),
    **none(*_SIGNAL, "argrelextrema", "calls a function of NumPy with device arrays"),
    **none(*_SIGNAL, "cspline2d", "gives wrong results with smoothing"),
    **none(*_SIGNAL, "gausspulse", "is not tested on arrays by SciPy"),
    **none(*_SIGNAL, "find_peaks peak_prominences peak_widths",
           "gives other infinities, and other dtypes if there are no peaks"),
    **none(*_SIGNAL, "hilbert2", "gives other values than SciPy 1.17 and later"),
    **none(*_SIGNAL, "lombscargle", "normalises differently from SciPy 1.15 and later"),
    **none(*_SIGNAL, "sepfir2d", "misreads non-contiguous filters"),
    **none(*_SIGNAL, "spline_filter symiirorder2", "differs by 1e-6 and more"),
    **none(*_SIGNAL, "vectorstrength", "gives another phase where it is undefined"),
}

_SPECIAL = "scipy.special", "cupyx.scipy.special"
_SERIES = Tolerance(single=2e-4, double=1e-11)
"""Some are series and iterations that stop elsewhere."""

SPECIAL: dict[str, Twin] = {
    **twins(
        *_SPECIAL,
        "bdtr bdtrc betainc betaincinv betaln beta boxcox boxcox1p cbrt chdtr chdtrc chdtri cosdg cosm1 cotdg digamma "
        "ellipeinc ellipj ellipk ellipkinc ellipkm1 entr erf erfc erfcinv erfcx erfinv exp1 exp10 exp2 expi expit "
        "expm1 expn exprel fdtr fdtrc fdtri gamma gammainc gammaincc gammainccinv gammaincinv gammaln gdtr gdtrc huber "
        "i0 i1 inv_boxcox inv_boxcox1p j0 j1 k0 k0e k1 k1e kl_div log1p log_expit log_ndtr loggamma logit "
        "nbdtr nbdtrc nbdtri ndtr ndtri pdtr pdtrc pdtri poch pseudo_huber psi radian rgamma round shichi sici sindg "
        "tandg wright_bessel xlogy y0 y1 zetac",
        kind="ufunc", tolerance=_SERIES,
    ),
    **twins(*_SPECIAL, "bdtri", kind="ufunc", tolerance=Tolerance(single=1e-4, double=1e-8)),
    **twins(*_SPECIAL, "log_softmax softmax logsumexp", dtypes="fd", conditions=(one_dtype("a", "b", "x"),)),
    **twins(*_SPECIAL, "lambertw", dtypes="dD"),
    **twins(*_SPECIAL, "multigammaln polygamma", dtypes="?bhilqBHILQd"),
    **twins(*_SPECIAL, "sinc zeta", dtypes="fd"),
    **none(*_SPECIAL, "binom rel_entr xlog1py", "gives infinities and NaN for other arguments", kind="ufunc"),
    **none(*_SPECIAL, "gammasgn", "gives numbers at poles, where SciPy 1.15 and later gives NaN", kind="ufunc"),
    **none(*_SPECIAL, "i0e i1e", "gives NaN for very large values", kind="ufunc"),
    **none(*_SPECIAL, "lpmv yn", "gives wrong results for some orders", kind="ufunc"),
    **none(*_SPECIAL, "sph_harm_y spherical_yn", "gives wrong results for some orders"),
}
