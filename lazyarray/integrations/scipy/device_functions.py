"""Functions of SciPy on device arrays, where CuPy has none that fits.

CuPy's distances need cuVS, whose fast formulas lose digits; its entropy overwrites its arguments. Of `scipy.linalg` it
has the parts that NumPy lacks; what NumPy has is made of its `linalg` here, where nothing is a matter of choice, as the
signs of singular vectors are, and SciPy gives no warnings.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import devices

METRICS: dict[str, Callable[[Any, float], Any]] = {
    "euclidean": lambda gaps, p: devices.current().xp.sqrt((gaps * gaps).sum(axis=-1)),
    "sqeuclidean": lambda gaps, p: (gaps * gaps).sum(axis=-1),
    "cityblock": lambda gaps, p: gaps.sum(axis=-1),
    "chebyshev": lambda gaps, p: gaps.max(axis=-1),
    "minkowski": lambda gaps, p: (gaps ** p).sum(axis=-1) ** (1 / p),
}
"""What becomes of the absolute differences along the last axis."""

AT_ONCE = 1 << 24
"""Differences that are in memory at the same time."""


def cdist(XA: Any, XB: Any, metric: str = "euclidean", *, p: float = 2.0) -> Any:
    """`scipy.spatial.distance.cdist` of device arrays, for the metrics in `METRICS`."""
    xp = devices.current().xp
    XA, XB = XA.astype(float), XB.astype(float)
    distances = xp.empty((len(XA), len(XB)))
    if metric.lower() == "minkowski":
        metric = {1: "cityblock", 2: "euclidean", math.inf: "chebyshev"}.get(p, metric)
    rows = max(1, AT_ONCE // max(1, XB.size))
    for start in range(0, len(XA), rows):
        gaps = xp.abs(XA[start:start + rows, None, :] - XB[None, :, :])
        distances[start:start + rows] = METRICS[metric.lower()](gaps, p)
    return distances


def pdist(X: Any, metric: str = "euclidean", *, p: float = 2.0) -> Any:
    """`scipy.spatial.distance.pdist` of a device array."""
    return cdist(X, X, metric, p=p)[devices.current().xp.triu_indices(len(X), 1)]


def distance_matrix(x: Any, y: Any, p: float = 2) -> Any:
    """`scipy.spatial.distance_matrix` of device arrays."""
    return cdist(x, y, "minkowski", p=p)


def entropy(pk: Any, qk: Any = None, base: float | None = None, axis: int = 0) -> Any:
    """CuPy's `entropy`, of copies."""
    return devices.current().library("cupyx.scipy.stats").entropy(
        pk.copy(), None if qk is None else qk.copy(), base, axis)


def _linalg(a: Any, check_finite: bool) -> Any:
    """The device's `linalg`, once `a` has passed SciPy's check."""
    xp = devices.current().xp
    if check_finite and not bool(xp.isfinite(a).all()):
        raise ValueError("array must not contain infs or NaNs")
    return xp.linalg


def det(a: Any, check_finite: bool = True) -> Any:
    """`scipy.linalg.det` of a device array."""
    return _linalg(a, check_finite).det(a)


def svdvals(a: Any, check_finite: bool = True) -> Any:
    """`scipy.linalg.svdvals` of a device array."""
    return _linalg(a, check_finite).svd(a, compute_uv=False)


def eigvalsh(a: Any, lower: bool = True, check_finite: bool = True) -> Any:
    """`scipy.linalg.eigvalsh` of a device array."""
    return _linalg(a, check_finite).eigvalsh(a, "L" if lower else "U")


def cholesky(a: Any, lower: bool = False, check_finite: bool = True) -> Any:
    """`scipy.linalg.cholesky` of a device array; which half of the matrix is read is SciPy's choice."""
    factor = _linalg(a, check_finite).cholesky(a if lower else a.conj().T)
    _linalg(factor, True)       # of a matrix that is not positive definite, CuPy gives rubbish
    return factor if lower else factor.conj().T


def metric_is_known(given: dict[str, Any]) -> str | None:
    """A condition: `cdist` and `pdist` here know the metric, and its arguments."""
    metric, more = given.get("metric", "euclidean"), given.get("kwargs", {})
    if not isinstance(metric, str) or metric.lower() not in METRICS:
        return "metrics other than " + ", ".join(METRICS) + " are not supported on the device"
    expected = {"p"} if metric.lower() == "minkowski" else set()
    if more.keys() - expected or not isinstance(more.get("p", 2.0), (int, float)) or not 1 <= more.get("p", 2.0):
        return f"{', '.join(more)} is not supported on the device for the metric {metric}"
    return None


def exponent_is_a_number(given: dict[str, Any]) -> str | None:
    """A condition: the exponent of `distance_matrix` is a number of at least 1."""
    p = given.get("p", 2)
    return None if isinstance(p, (int, float)) and p >= 1 else "exponents below 1 are not supported on the device"
