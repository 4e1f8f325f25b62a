"""Which NumPy function runs how: tables keyed by function object, pairwise disjoint, together all overridable ones.

- `VIEWS`: the result is a view; NumPy does the arithmetic on metas (`views`).
- `ADAPTED`: a device version, which has NumPy's parameters and meaning (`adapters`).
- `COMPOSED`: NumPy's own code runs, and each call in it is sent to the device (`numpy_code`).
- `LAZY`: answered above the device: metadata, text, writes by position (`metadata`), new arrays
  (`creation`).
- `HOST_ONLY`: NumPy does it on the host, for the reason given.

`ASSIGNING` does what is one assignment to a view, and is asked before those. `WRITES` names the parameters that a
function modifies, `ARRAY_0D` the functions that return a 0-d array where others return a scalar. `UFUNCS` and
`UFUNC_HOST_ONLY` do for ufuncs what the tables above do for functions.
"""
from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from . import metadata, numpy_code, views
from .adapters import ADAPTED as _ADAPTED
from .adapters import fourier
from .adapters import ufunc as _ufunc_adapters
from .adapters.common import newest

__all__ = ["ADAPTED", "ADDS_UP_IN_OUT", "ARRAY_0D", "ASSIGNING", "COMPARISONS", "COMPOSED", "FILES", "HOST_ONLY",
           "IGNORES_OUT", "LAZY", "OUT_CASTS", "OUT_OR_DTYPE", "PAIRWISE", "SAME", "TAKES_MEANS", "UFUNCS",
           "UFUNC_BY_KIND", "UFUNC_HOST_ONLY", "VIEWS", "WRITES"]

_Function = Callable[..., Any]

#: The NumPy release that brought a function; it is in the tables from then on.
_SINCE = {"cumulative_sum": "2.1.0", "cumulative_prod": "2.1.0", "unstack": "2.1.0", "matvec": "2.2.0",
          "vecmat": "2.2.0", "_slice": "2.3.0"}
#: Names that some releases have and others don't: deprecated, or helpers.
_PASSING = frozenset({"fix", "real", "imag"})


def _named(names: str, home: Any = np) -> list[_Function]:
    """NumPy's functions of these names; a name that this NumPy should have and has not is an AttributeError."""
    found = []
    for name in names.split():
        if name in _SINCE and newest < _SINCE[name]:
            continue
        if name in _PASSING and not hasattr(home, name):
            continue
        found.append(getattr(home, name))
    return found


VIEWS: dict[_Function, _Function] = views.VIEWS
LAZY: dict[_Function, _Function] = {**metadata.LAZY, **numpy_code.CALLING}
ADAPTED: dict[_Function, _Function] = _ADAPTED
ASSIGNING: dict[_Function, Callable[..., bool]] = metadata.ASSIGNING
COMPOSED: dict[_Function, _Function] = numpy_code.COMPOSED

#: Functions that the device library has under the same name, with NumPy's parameters and meaning.
SAME: frozenset[_Function] = frozenset(_named("cumsum cumprod cumulative_sum cumulative_prod"))


COMPARISONS = frozenset({np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal})


class _HostOnly(Mapping[_Function, str]):
    """Function -> reason. Modules whose functions all run on the host are imported only if somebody lists them."""

    def __init__(self, functions: dict[_Function, str], modules: dict[str, str]) -> None:
        self._functions, self._modules = functions, modules

    def __getitem__(self, func: _Function) -> str:
        reason = self._functions.get(func) or self._modules.get(getattr(func, "__module__", ""))
        if reason is None:
            raise KeyError(func)
        return reason

    def __iter__(self) -> Iterator[_Function]:
        from numpy.testing.overrides import get_overridable_numpy_array_functions

        yield from self._functions
        for name in self._modules:
            importlib.import_module(name)
        yield from (f for f in get_overridable_numpy_array_functions() if f.__module__ in self._modules)

    def __len__(self) -> int:
        return sum(1 for _ in self)


_FEW = "it computes a few coefficients only"
_DATES = "dates are not supported on the device"
_STRINGS = "strings are not supported on the device"

#: Functions that are called for the values on the host. So it is no fallback that they read them there, as `np.asarray`
#: and `x.tofile` do.
FILES = frozenset(_named("save savez savez_compressed savetxt"))

HOST_ONLY: Mapping[_Function, str] = _HostOnly(
    {
        np.apply_along_axis: "it calls a Python function for each slice",
        np.geomspace: "the device has no such function",
        np.linalg.eig: "the eigenvalues have another order on the device",
        np.linalg.eigvals: "the eigenvalues have another order on the device",
        **dict.fromkeys(_named("poly roots polymul polydiv polyder polyint"), _FEW),
        **dict.fromkeys(FILES, "it writes a file"),
        **dict.fromkeys(_named("busday_count busday_offset is_busday datetime_as_string"), _DATES),
    },
    {
        "numpy.char": _STRINGS,
        "numpy.strings": _STRINGS,
        "numpy.lib.recfunctions": "structured arrays are not supported on the device",
        "numpy.polynomial.polynomial": _FEW,
    },
)

_OUT = ("out",)


class _Writes(dict[_Function, tuple[str, ...]]):
    """Function -> names of the parameters that it modifies; those of modules that nobody need have imported by name."""

    _BY_NAME = {"assign_fields_by_name": ("dst",), "recursive_fill_fields": ("output",)}

    def get(self, func: Any, default: Any = None) -> Any:
        if getattr(func, "__module__", "") == "numpy.lib.recfunctions":
            return self._BY_NAME.get(func.__name__, default)
        return super().get(func, default)


#: Function -> names of the parameters that it modifies.
WRITES = _Writes({
    **dict.fromkeys(_named(
        "all any amax amin max min sum prod mean std var ptp argmax argmin nansum nanprod nanmax nanmin nanmean nanstd "
        "nanvar nanargmax nanargmin nanmedian nanpercentile nanquantile median percentile quantile cumsum cumprod "
        "cumulative_sum cumulative_prod nancumsum nancumprod take choose compress clip round around fix isposinf "
        "isneginf dot outer einsum trace concatenate stack busday_count busday_offset is_busday"), _OUT),
    **dict.fromkeys(_named("multi_dot", np.linalg), _OUT),
    **dict.fromkeys(fourier.ADAPTED, _OUT),
    np.copyto: ("dst",), np.place: ("arr",), np.put: ("a",), np.putmask: ("a",), np.put_along_axis: ("arr",),
    np.fill_diagonal: ("a",), np.nan_to_num: ("x",),
    np.apply_along_axis: ("arr",),      # by the function that it calls
})

#: Functions that use their first argument, `a`, as scratch memory if they are told to by ``overwrite_input=``.
OVERWRITES: frozenset[_Function] = frozenset(
    _named("median percentile quantile nanmedian nanpercentile nanquantile"))

#: Functions whose result without dimensions is an array; everywhere else it is a scalar.
ARRAY_0D: frozenset[_Function] = frozenset({
    *_named("where select resize isin block i0 tensordot"),
})

#: Functions that cast their result into `out` of another dtype, where others compute in it or refuse it: the rule.
#: Those of "narrower" compute in a wider one.
OUT_CASTS: dict[_Function, str] = {
    **dict.fromkeys(_named("all any isposinf isneginf"), "unsafe"),
    **dict.fromkeys(fourier.ADAPTED, "narrower"),
}

#: Functions that keep in `out` what they add up.
ADDS_UP_IN_OUT: frozenset[_Function] = frozenset(_named("mean std var nanmean nanstd nanvar"))

#: Functions that NumPy composes of means, and warns of those of nothing.
TAKES_MEANS: frozenset[_Function] = frozenset(_named("average cov corrcoef nanmean nanstd nanvar"))

#: Functions that take `out` or a dtype, and refuse both.
OUT_OR_DTYPE: frozenset[_Function] = frozenset({np.concatenate, np.stack})

#: Functions that take `out` and leave it alone: an oversight of NumPy before 2.5 that programs can see.
IGNORES_OUT: frozenset[_Function] = frozenset(
    _named("hfft ifft2 irfft2", np.fft) if newest < "2.5.0" else ())

# -- ufuncs ----------------------------------------------------------------------------------------

_umath = np._core.umath

_SAME_UFUNCS = (
    "absolute add arccos arccosh arcsin arcsinh arctan arctan2 arctanh bitwise_and bitwise_count bitwise_or "
    "bitwise_xor cbrt ceil conjugate copysign cos cosh deg2rad degrees divide exp exp2 expm1 fabs float_power floor "
    "fmax fmin frexp gcd heaviside hypot invert isfinite isinf isnan lcm ldexp log log10 log1p log2 logaddexp "
    "logaddexp2 maximum minimum modf multiply negative "
    "nextafter positive rad2deg radians reciprocal rint sign signbit sin sinh sqrt square subtract tan tanh trunc")

#: Ufunc -> the device's name for it, or adapter(xp, *operands in the dtypes of NumPy's loop).
UFUNCS: dict[np.ufunc, str | _Function] = {
    **{getattr(np, name): name for name in _SAME_UFUNCS.split()}, **_ufunc_adapters.UFUNCS,
}
#: (Ufunc, kind of the numbers in its loop) -> adapter that comes before the name in `UFUNCS`.
UFUNC_BY_KIND: dict[tuple[np.ufunc, str], _Function] = _ufunc_adapters.BY_KIND

#: Ufunc of another library -> what gives the device's function for it here and now, or raises NotOnDevice. Filled
#: while somebody has that library's calls sent to the device.
FOREIGN_UFUNCS: dict[np.ufunc, Callable[[], _Function]] = {}

_STRING_UFUNCS = (
    "_center _expandtabs _expandtabs_length _ljust _lstrip_chars _lstrip_whitespace _partition _partition_index "
    "_replace _rjust _rpartition _rpartition_index _rstrip_chars _rstrip_whitespace _slice _strip_chars "
    "_strip_whitespace _zfill count endswith find index isalnum isalpha isdecimal isdigit islower isnumeric isspace "
    "istitle isupper rfind rindex startswith str_len")

#: Ufunc -> why NumPy does it on the host.
UFUNC_HOST_ONLY: dict[np.ufunc, str] = {
    np.isnat: _DATES,
    **dict.fromkeys(_named("_ones_like real imag", _umath), "NumPy's own helper, for arrays of objects"),
    # Which of them there are differs between releases; `test_completeness` finds one that is not listed.
    **{getattr(_umath, name): _STRINGS for name in _STRING_UFUNCS.split() if hasattr(_umath, name)},
}

#: Ufuncs that the device reduces and accumulates with; `ufunc_methods` says for which dtypes.
PAIRWISE: frozenset[np.ufunc] = frozenset(_named(
    "add multiply maximum minimum fmax fmin logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor gcd "
    "logaddexp logaddexp2"))
