"""The twins of `scipy.special`: nearly all are ufuncs, which NumPy's own protocol brings to the device."""
from __future__ import annotations

from .twin_conditions import one_dtype
from .twins import Tolerance, Twin, none, twins

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
    **twins(*_SPECIAL, "log_softmax softmax logsumexp", dtypes="fd", conditions=(one_dtype("a b x"),)),
    **twins(*_SPECIAL, "lambertw", dtypes="dD"),
    **twins(*_SPECIAL, "multigammaln polygamma", dtypes="?bhilqBHILQd"),
    **twins(*_SPECIAL, "sinc zeta", dtypes="fd"),
    **none(*_SPECIAL, "binom rel_entr xlog1py", "it gives infinities and NaN elsewhere", kind="ufunc"),
    **none(*_SPECIAL, "gammasgn", "it gives numbers at poles, where SciPy has NaN since 1.15", kind="ufunc"),
    **none(*_SPECIAL, "i0e i1e", "it gives NaN for very large values", kind="ufunc"),
    **none(*_SPECIAL, "lpmv yn", "it is wrong for some orders", kind="ufunc"),
    **none(*_SPECIAL, "sph_harm_y spherical_yn", "it is wrong for some orders"),
}

UNTOUCHED: tuple[tuple[str, str, str], ...] = ()
"""(Module, why nothing stands in their places, functions)."""
