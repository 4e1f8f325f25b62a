"""Who is calling, read from the frames of the stack: whose line it is, and what compiled code asks for a buffer.

A frame belongs to the user unless its module is lazyarray's, Python's own, or a library's that lazyarray serves.

Compiled code has no frame of its own, and some of it must not get what an ndarray's consumers get. f2py copies an
ndarray before a routine overwrites it (``intent(copy)``, the default of LAPACK and BLAS in SciPy), but takes what NumPy
made of any other object for its own: a solver called with a lazy right-hand side would leave its solution there. So the
part in C knows which routine is being called. Where it is not there, and of what else asks in a way of its own
(`numpy.lib.stride_tricks.as_strided` goes beyond the view that it is given), the line that is being executed has to
tell, since NumPy asks for a buffer in the same way whoever called it. It is looked at once; a callee that is a local
variable is looked up each time.
"""
from __future__ import annotations

import builtins
import ctypes
import dis
import linecache
import os
import sys
import warnings
from collections.abc import Iterator
from functools import cache, partial
from types import CodeType, FrameType, ModuleType
from typing import Any

import numpy as np

from .. import _native

# Top-level packages whose frames are not the user's: what happened there was asked for by whoever called them.
SERVED = frozenset({
    "lazyarray", "numpy", "cupy", "cupyx", "cupy_backends", "scipy", "skimage", "cucim", "sklearn", "cuml",
    "pandas", "cudf", "xarray", "dask", "distributed", "torch", "torchvision", "jax", "tensorflow", "wrapt",
    "numba", "numexpr", "sparse", "astropy", "pint", "matplotlib", "seaborn", "PIL", "imageio", "tifffile", "pywt",
    "networkx", "statsmodels", "h5py", "zarr", "numcodecs", "netCDF4", "polars", "pyarrow", "array_api_compat",
    "array_api_extra", "array_api_strict", "IPython", "ipykernel", "matplotlib_inline",
})


def module_of(frame: FrameType) -> str:
    """The name of the module that a frame runs code of."""
    return frame.f_globals.get("__name__") or ""


_PYTHONS = os.path.dirname(os.__file__) + os.sep, "<frozen "


def user_frame() -> FrameType:
    """First frame outside lazyarray, Python and the libraries it serves; else the first one outside lazyarray."""
    frame: FrameType | None = sys._getframe(1)
    outside: FrameType | None = None
    while frame is not None:
        root = module_of(frame).partition(".")[0]
        if root not in SERVED and not (     # a program's own module may be called as one of Python's
                root in sys.stdlib_module_names and frame.f_code.co_filename.startswith(_PYTHONS)):
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


def place_of(filename: str, lineno: int, path: bool = False) -> str:
    """A line as people call it: "program.py:12", and in a notebook "cell 19, line 2".

    `path`: with the whole path of a file.
    """
    number = _cell(filename)
    if number is not None:
        return f"cell {number}, line {lineno}"
    return f"{filename if path else os.path.basename(filename)}:{lineno}"


def _cell(filename: str) -> int | None:
    """The number of the cell whose code has this name, if IPython compiled it."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    known = shell.compile.format_code_name(filename) if shell is not None else None
    number = known[1].removeprefix("In[").removesuffix("]") if known and known[0] == "Cell" else ""
    return int(number) if number.isdigit() else None


def warn_user(message: str, category: type[Warning]) -> bool:
    """Warn at the user's line; whether the warning was given, as far as the filters let it.

    A filter that makes errors of warnings in general says nothing about where code runs: only one that names the
    category, or this message, makes an exception of it. Under any other one it is not given.
    """
    frame = user_frame()
    lineno, module = frame.f_lineno, module_of(frame) or "<unknown>"
    if _error_in_general(message, category, module, lineno):
        return False
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        lineno,
        module=module,
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )
    return True


def _error_in_general(text: str, given: type[Warning], module: str, lineno: int) -> bool:
    """Whether the first filter that matches a warning is "error", and names neither its category nor its words."""
    filters = warnings._get_filters() if hasattr(warnings, "_get_filters") else warnings.filters  # Python 3.14 has one
    for action, message, category, place, line in filters:
        if (
            issubclass(given, category)
            and (message is None or message.match(text))
            and (place is None or place.match(module))
            and line in (0, lineno)
        ):
            return action == "error" and message is None and category is not given
    return False


# -- what compiled code asks for ---------------------------------------------------------------

_LOADS = ("LOAD_FAST", "LOAD_DEREF", "LOAD_NAME", "LOAD_GLOBAL")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
#: Of Python 3.11 the one before a call does it, once it is specialised.
_CALLS = ("CALL", "PRECALL")

FORTRAN, STRIDES, BYTES, TENSOR, ROW, NDARRAY = 1, 2, 3, 4, 5, 6

#: (id of a code object, instruction) -> (the code object, the answer or the names that lead to a local callee).
_sites: dict[tuple[int, int], tuple[CodeType, int | tuple[str, ...]]] = {}
_MOST_SITES = 4096
_OPTIMIZED = 0x01       # `inspect.CO_OPTIMIZED`, without the import


#: How many modules there were when routines of f2py were looked for.
_modules = 0


def watch_routines(module: ModuleType) -> None:
    """Know from now on when a routine of a module made by f2py is called, however the call is written."""
    if _native.recording is not None:
        for kind in {type(value) for value in vars(module).values() if type(value).__name__ == "fortran"}:
            _native.recording.watch_routines(kind)


def _watch_new() -> None:
    """Watch the routines of modules that were imported since, by whatever means."""
    global _modules
    _modules = len(sys.modules)
    for module in list(sys.modules.values()):
        # Not of a subclass, which may load itself when it is looked at.
        if type(module) is ModuleType and "__f2py_numpy_version__" in vars(module):
            watch_routines(module)


def who_asks(frame: FrameType, ndarrays: bool = False) -> int:
    """What the call is that `frame` is at, or 0.

    FORTRAN: of a routine made by f2py. STRIDES: within as_strided. BYTES: of a type of Python's for plain memory.
    TENSOR: of a tensor type of torch's, such as `torch.FloatTensor`. ROW: of `torch.asarray`. With `ndarrays` also
    NDARRAY, of `numpy.asarray` or ``asanyarray``; not of ``array``, which mostly copies, in an order that may depend on
    the array's own, and does not say in which.
    """
    if len(sys.modules) != _modules:
        _watch_new()
    if _native.recording is not None and (routine := _native.recording.routine_called(frame)) is not None:
        return FORTRAN if _copies(routine) else 0
    code, at = frame.f_code, frame.f_lasti
    known = _sites.get((id(code), at))
    if known is None:
        if len(_sites) >= _MOST_SITES:
            _sites.clear()
        known = _sites[id(code), at] = code, _look(frame)
    answer = known[1]
    if type(answer) is not int:
        answer = _known(_follow(variable(frame, answer[0]), answer[1:]))
    return 0 if answer == NDARRAY and not ndarrays else answer


def assigns_an_item(frame: FrameType) -> bool:
    """Whether `frame` is at ``a[index] = x``: then it is not itself that asks `x` for an attribute, but `a` does.

    netCDF4's variables take what has a memoryview for its ``data`` to be an ndarray, and then refuse one that is not;
    of all else they make one. (Where Python code asks, that is a frame of its own.)
    """
    return dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith(("STORE_SUBSCR", "STORE_SLICE"))


def _look(frame: FrameType) -> int | tuple[str, ...]:
    if frame.f_code is np.lib.stride_tricks.as_strided.__code__:
        return STRIDES
    loads = _callee(frame.f_code, frame.f_lasti)
    if not loads:
        return 0
    names = tuple([name for _, name in loads])
    if not loads[0][0].startswith(("LOAD_GLOBAL", "LOAD_NAME")):
        return names
    name = names[0]
    root = frame.f_globals.get(name, getattr(builtins, name, None))
    if not frame.f_code.co_flags & _OPTIMIZED:      # of a module or class: its locals are a namespace, not a copy
        root = frame.f_locals.get(name, root)
    return _known(_follow(root, names[1:]))


if sys.version_info >= (3, 12):
    _get_var = ctypes.pythonapi.PyFrame_GetVar
    _get_var.restype, _get_var.argtypes = ctypes.py_object, (ctypes.py_object, ctypes.py_object)

    def variable(frame: FrameType, name: str) -> Any:
        """A local variable. Not by ``f_locals``: before Python 3.13 the frame keeps what it then holds alive."""
        try:
            return _get_var(frame, name)
        except NameError:
            return None
else:
    def variable(frame: FrameType, name: str) -> Any:
        """A local variable, without leaving all of them alive in the frame's copy of them."""
        copies = frame.f_locals
        found = copies.get(name)
        if sys.getrefcount(copies) == 3:    # the frame's, ours, and the argument: no program asked for it
            copies.clear()
        return found


def variables(frame: FrameType) -> Iterator[tuple[str, Any]]:
    """The names and values of a frame's variables, the global ones first, without leaving any of them alive."""
    code = frame.f_code
    yield from [(name, value) for name, value in list(frame.f_globals.items()) if name.isidentifier()]
    if not code.co_flags & _OPTIMIZED:
        if frame.f_locals is not frame.f_globals:
            yield from list(frame.f_locals.items())
        return
    for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
        if name.isidentifier() and (value := variable(frame, name)) is not None:
            yield name, value


def called(frame: FrameType) -> str | None:
    """The name of what a frame is calling, "" if that can't be seen; None if it is at an attribute or an operator."""
    code = frame.f_code
    if not any(i.offset == frame.f_lasti and i.opname.startswith(_CALLS) for i in dis.get_instructions(code)):
        return None
    loads = _callee(code, frame.f_lasti)
    return loads[-1][1] if loads else ""


def _callee(code: CodeType, at: int) -> list[tuple[str, str]]:
    """The instructions that load ``name`` or ``module.name`` of the call at `at`, which begins where they do."""
    loads: list[tuple[str, str]] = []
    instructions = [i for i in dis.get_instructions(code) if i.offset <= at and i.positions is not None]
    if not instructions or not instructions[-1].opname.startswith(_CALLS):
        return loads
    call = instructions[-1].positions
    for i in instructions[:-1]:
        place = i.positions
        if (place.lineno, place.col_offset) != (call.lineno, call.col_offset) or place.end_lineno is None:
            continue
        if i.opname.startswith(_LOADS) and isinstance(i.argval, str):
            loads = [(i.opname, i.argval)]      # a loop or branch may begin there too: the last one counts
        elif i.opname.startswith(_ATTRIBUTES) and loads:
            loads.append((i.opname, i.argval))
        elif i.opname.startswith("CALL"):
            loads = []                          # what is called is itself the result of a call
    return loads


def _follow(found: Any, names: tuple[str, ...]) -> Any:
    for name in names:
        if not isinstance(found, ModuleType):
            return None     # whatever else has attributes may compute them
        found = vars(found).get(name)
    return found


def _known(callee: Any) -> int:
    while type(callee) is partial:
        callee = callee.func
    if callee is memoryview or callee is bytes or callee is bytearray:
        return BYTES
    if callee is np.asarray or callee is np.asanyarray:
        return NDARRAY
    if type(callee).__name__ in ("_TensorMeta", "tensortype"):
        return TENSOR
    if getattr(callee, "__name__", None) == "asarray" and getattr(callee, "__module__", None) == "torch":
        return ROW
    return FORTRAN if type(callee).__name__ == "fortran" and _copies(callee) else 0


@cache
def _copies(routine: Any) -> bool:
    """Whether a routine has arguments to be copied (unless overwritten by request); others it writes in place."""
    return "overwrite_" in (routine.__doc__ or "")
