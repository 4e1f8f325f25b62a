"""`numpy.lib`, whose `stride_tricks` make views of lazy arrays on the device."""
from __future__ import annotations

import numpy as _np

from lazyarray.numpy.creation import passing as _passing
from lazyarray.numpy.lib import stride_tricks as stride_tricks

__getattr__, __dir__ = _passing(_np.lib)
