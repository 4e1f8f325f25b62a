"""Whose line of code it was: the first stack frame outside lazyarray and the libraries that it serves."""
from __future__ import annotations

import linecache
import sys
from types import FrameType

# Top-level packages whose frames are not the user's: what happened there was asked for by whoever called them.
SERVED = frozenset({
    "lazyarray", "numpy", "cupy", "cupyx", "cupy_backends", "scipy", "skimage", "cucim", "sklearn", "cuml",
    "pandas", "cudf", "xarray", "dask", "distributed", "torch", "torchvision", "jax", "tensorflow", "wrapt",
    "numba", "numexpr", "sparse", "astropy", "pint", "matplotlib", "seaborn", "PIL", "imageio", "tifffile", "pywt",
    "networkx", "statsmodels", "h5py", "zarr", "numcodecs", "netCDF4", "polars", "pyarrow", "array_api_compat",
    "array_api_extra", "array_api_strict", "IPython", "ipykernel", "matplotlib_inline",
})


def user_frame() -> FrameType:
    """First frame outside lazyarray and the libraries it serves; else the first one outside lazyarray."""
    frame: FrameType | None = sys._getframe(1)
    outside: FrameType | None = None
    while frame is not None:
        root = frame.f_globals.get("__name__", "").partition(".")[0]
        if root not in SERVED:
            return frame
        if outside is None and root != "lazyarray":
            outside = frame
        last = frame
        frame = frame.f_back
    return outside if outside is not None else last


def user_line() -> tuple[str, int, str]:
    """File, line number and text of the line that `user_frame` is at."""
    frame = user_frame()
    filename, lineno = frame.f_code.co_filename, frame.f_lineno
    return filename, lineno, linecache.getline(filename, lineno, frame.f_globals).strip()
