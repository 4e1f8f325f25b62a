"""The namespace of NumPy, with creation functions that return lazy arrays.

Write ``import lazyarray.numpy as np`` in place of ``import numpy as np`` to create a program's arrays on the device.
Functions that create an array from a shape, numbers, lists or files return a `LazyNdarray`, with the parameters, dtype,
shape and errors of the NumPy function of the same name. If a shape and numbers define the values, they are computed on
the device, and nothing is copied. All other objects are NumPy's own; its functions accept lazy arrays and run on the
device. ``random.default_rng`` returns a generator that draws on the device (`lazyarray.numpy.random`), and
``lib.stride_tricks.as_strided`` a view there.

``x.__array_namespace__()`` returns this module. It conforms to the array API standard, in the versions that the
installed NumPy supports. ``fft.fftfreq``, ``fft.rfftfreq`` and `clip` also have the parameters of the standard that
NumPy does not have.

Examples
--------
>>> import lazyarray
>>> import lazyarray.numpy as xnp
>>> with lazyarray.trace() as t:
...     x = xnp.linspace(0, 1, 5)
...     y = xnp.sum(x * xnp.ones(5))
>>> type(x).__name__, y, len(t.uploads)
('LazyNdarray', np.float64(2.5), 0)
"""
from __future__ import annotations

from importlib import import_module
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING, Any

import numpy as _np

from lazyarray.numpy import creation as _creation
from lazyarray.numpy import fft as fft
from lazyarray.numpy import lib as lib
from lazyarray.numpy import linalg as linalg
from lazyarray.numpy.array_api import astype as astype
from lazyarray.numpy.array_api import at_version as at_version
from lazyarray.numpy.array_api import clip as clip

if TYPE_CHECKING:       # the functions of the table have NumPy's parameters, and results that are ndarrays
    from numpy import *  # noqa: F403

#: NumPy's own, so that they are found at once.
globals().update({name: _value for name, _value in vars(_np).items()
                  if name in _np.__all__ and name not in globals() and not isinstance(_value, _ModuleType)})
globals().update(_creation.FUNCTIONS)

__all__ = sorted({*_np.__all__, *_creation.FUNCTIONS})


def __getattr__(name: str) -> Any:
    if name == "random":        # imported when it is asked for: NumPy's own is, too
        return import_module(f"{__name__}.random")
    try:
        return getattr(_np, name)
    except AttributeError as error:
        text = str(error)
    plain = f"module {_np.__name__!r} has no attribute {name!r}"
    if text == plain and not name.startswith("_"):
        from difflib import get_close_matches  # few programs make a mistake

        # Of these few it is a matter of microseconds: libraries ask with `hasattr` what there is.
        alike = [known for known in __all__ if known[:1] == name[:1] and abs(len(known) - len(name)) < 3]
        text += "".join(f". Did you mean {near!r}?" for near in get_close_matches(name, alike, 1))
    # Without `obj`, of which Python itself would suggest a name once more.
    raise AttributeError(text.replace(repr(_np.__name__), repr(__name__), 1), name=name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_np)})
