"""The twins of `scipy.signal`: what works on signals; designing filters is the host's work."""
from __future__ import annotations

from .twin_conditions import dimensions, floats_unless, no_more_than, not_empty, one_dtype, positive_int
from .twins import Tolerance, Twin, none, twins

_SIGNAL = "scipy.signal", "cupyx.scipy.signal"
_RECURSIVE = Tolerance(single=1e-3, double=1e-7)
"""Recursive filters carry each error on, and the device computes them in blocks."""

_LOW_ORDER = no_more_than("a", 3, "a recursion of a higher order than 2 loses digits on the device; use sosfilt")

_TRANSFORMED = Tolerance(single=1e-4, double=1e-11)

SIGNAL: dict[str, Twin] = {
    **twins(*_SIGNAL, "convolve correlate", conditions=(floats_unless("method", "direct"),), tolerance=_TRANSFORMED),
    **twins(*_SIGNAL, "convolve2d correlate2d upfirdn", arrays=("in1", "in2", "h")),
    **twins(*_SIGNAL, "fftconvolve oaconvolve", tolerance=_TRANSFORMED, conditions=(not_empty("in1 in2"),)),
    **twins(*_SIGNAL, "czt zoom_fft", tolerance=_TRANSFORMED),
    **twins(*_SIGNAL, "medfilt medfilt2d order_filter wiener"),
    **twins(*_SIGNAL, "lfilter", dtypes="fdFD", arrays=("b", "a"), lacks={"zi": None}, tolerance=_RECURSIVE,
            conditions=(dimensions("b a", 1), one_dtype("b a x"), _LOW_ORDER)),
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
    **none(*_SIGNAL, "argrelextrema", "its comparator is a function of NumPy's"),
    **none(*_SIGNAL, "cspline2d", "it is wrong with smoothing, and SciPy's tests try nothing else"),
    **none(*_SIGNAL, "gausspulse", "SciPy's tests do not try it on arrays"),
    **none(*_SIGNAL, "find_peaks peak_prominences peak_widths",
           "it gives other infinities, and other dtypes where there are no peaks"),
    **none(*_SIGNAL, "hilbert2", "it gives other values than SciPy's since 1.17"),
    **none(*_SIGNAL, "lombscargle", "its normalisations are other ones than SciPy's since 1.15"),
    **none(*_SIGNAL, "sepfir2d", "it reads filters that are not contiguous in memory as if they were"),
    **none(*_SIGNAL, "spline_filter symiirorder2", "it is off by a millionth and more"),
    **none(*_SIGNAL, "vectorstrength", "the phase of what has none differs"),
}

_DESIGN = "a handful of coefficients is the host's work"

UNTOUCHED = (
    ("scipy.signal", _DESIGN,
     "abcd_normalize band_stop_obj bilinear bilinear_zpk bode buttap butter buttord cheb1ap cheb1ord cheb2ap cheb2ord "
     "cheby1 cheby2 check_COLA check_NOLA choose_conv_method cont2discrete correlation_lags czt_points dbode dfreqresp "
     "dimpulse dlsim dstep ellip ellipap ellipord findfreqs firls firwin firwin2 freqresp freqs freqs_zpk freqz "
     "freqz_sos freqz_zpk gammatone gauss_spline get_window group_delay iircomb iirdesign iirfilter iirnotch iirpeak "
     "impulse invres invresz kaiser_atten kaiser_beta kaiserord lfilter_zi lfiltic lp2bp lp2bp_zpk lp2bs lp2bs_zpk "
     "lp2hp lp2hp_zpk lp2lp lp2lp_zpk lsim max_len_seq minimum_phase normalize place_poles residue residuez "
     "savgol_coeffs sos2tf sos2zpk sosfilt_zi sosfreqz ss2tf ss2zpk step sweep_poly tf2sos tf2ss tf2zpk unique_roots "
     "unit_impulse zpk2sos zpk2ss zpk2tf"),
    ("scipy.signal.windows", _DESIGN,
     "boxcar triang parzen bohman blackman nuttall blackmanharris flattop bartlett barthann hamming kaiser "
     "kaiser_bessel_derived gaussian general_gaussian general_cosine general_hamming chebwin cosine hann exponential "
     "tukey taylor get_window lanczos"),
)
"""(Module, why nothing stands in their places, functions)."""
