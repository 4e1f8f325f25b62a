"""Members of `numpy.ndarray` that are the function of the same name."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..dispatch import function, plain_call
from ..dispatch.host_fallback import on_host
from ..functions.kinds import PLAIN

__all__ = ["VIA_FUNCTION", "bounds", "via_function"]

#: Members that are the function of the same name, called with the array first.
VIA_FUNCTION = {
    name: getattr(np, name)
    for name in (
        "all", "any", "argmax", "argmin", "argpartition", "argsort", "choose", "clip", "cumprod", "cumsum",
        "diagonal", "dot", "max", "mean", "min", "nonzero", "prod", "put", "ravel", "repeat", "round",
        "searchsorted", "squeeze", "std", "sum", "swapaxes", "take", "trace", "var",
    )
}

#: Keywords of a function that its member has not.
_UNKNOWN = {"std": ("correction",), "var": ("correction",), "clip": ("a_min", "a_max"), "put": ("ind", "v"),
            "choose": ("choices",), "swapaxes": ("axis1", "axis2")}

#: Keywords of a member -> those of its function.
_RENAMED = {"put": {"indices": "ind", "values": "v"}}


def via_function(name: str, func: Callable[..., Any]) -> Callable[..., Any]:
    """A member that calls the function of the same name."""
    unknown, renamed = _UNKNOWN.get(name, ()), _RENAMED.get(name)
    typed = func in (np.all, np.any)        # the members have a dtype as their second argument, which nobody documents
    same = not unknown and name != "choose"     # each plain call of the member is one of the function

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if same and (result := plain_call.tried(func, (self, *args), kwargs, True)) is not NotImplemented:
            return result
        for keyword in unknown:
            if keyword in kwargs:
                raise TypeError(f"{name}() got an unexpected keyword argument {keyword!r}")
        for given in (*args, *kwargs.values()):
            if type(given) not in PLAIN and function.decides_itself(type(given)):
                # ndarray's methods ask ufuncs, and make results of the operands' classes; no `__array_function__`.
                return on_host(getattr(np.ndarray, name), (self, *args), kwargs, function.TAKES_PART, aliases=True,
                               name=f"numpy.ndarray.{name}", positions=(), names=())
        if renamed and kwargs:
            kwargs = {renamed.get(keyword, keyword): value for keyword, value in kwargs.items()}
        if name == "clip":
            args, kwargs = bounds(*args, **kwargs)
        elif name == "choose" and len(args) > 1:
            args = args,
        elif typed and ("dtype" in kwargs or len(args) > 1):
            return on_host(getattr(np.ndarray, name), (self, *args), kwargs, "the function has no dtype=",
                           positions={3}, names=("out",))
        return function.run(func, (self, *args), kwargs)

    method.__doc__ = f"`numpy.ndarray.{name}` of the lazy array."
    return method


def bounds(min: Any = None, max: Any = None, out: Any = None, **kwargs: Any) -> Any:
    """The arguments of the method `clip` as the function of that name takes them: one bound alone will not do there."""
    return (min, max, out), kwargs
