"""The namespace of the simulated device: CuPy's functions, by name and by parameter, computed by NumPy.

A function exists here where CuPy and NumPy both have it. Names and parameters come from `api`; what is told apart by
hand is in the tables below and in `cupy_differences`.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np

from ...errors.inspection import once_made
from . import api, dlpack, indexing, random
from . import cuda as simulated_cuda
from .array import SimulatedArray
from .cupy_differences import as_cupys, cleared
from .execution import SimulatedArrayBase, as_device, exports, has_array, launch, parts, wrap_new
from .signatures import binder, parameters
from .ufuncs import SimulatedUfunc

WRITES = frozenset({
    "copyto", "place", "put", "putmask", "fill_diagonal", "put_along_axis", "random.shuffle",
})  # fmt: skip
"""Functions that change their first argument.  Others change only ``out``."""

FROM_HOST = frozenset({
    "array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "asarray_chkfinite", "asfarray",
    "result_type", "can_cast", "min_scalar_type", "common_type", "isscalar", "shape", "ndim", "size", "issubdtype",
    "iscomplexobj", "isrealobj", "isfortran", "full", "linspace", "logspace", "geomspace", "arange",
    "interp", "select", "atleast_1d", "atleast_2d", "atleast_3d",
})  # fmt: skip
"""Functions that take host arrays too."""

LIKE_ARRAYS = frozenset({"empty_like", "zeros_like", "ones_like", "full_like"})
"""Functions that look at dtype, shape and layout of an array: of the host's too, but not of a list or number."""

AS_ARRAYS = frozenset({"allclose", "array_equal", "array_equiv", "count_nonzero"})
"""Functions that return a Python value in NumPy and a 0-d array in CuPy."""

AS_TUPLES = frozenset({"linalg.eig", "linalg.eigh", "linalg.qr", "linalg.svd", "linalg.slogdet"})
"""Functions that return a named tuple in NumPy and a plain one in CuPy."""

TAKES_NO_ARRAYS = frozenset({
    "empty", "zeros", "ones", "eye", "identity", "tri", "indices", "fromfunction", "frombuffer", "fromfile",
    "fromiter", "fromstring", "loadtxt", "genfromtxt", "load", "bartlett", "blackman", "hamming", "hanning", "kaiser",
    "diag_indices", "mask_indices", "tril_indices", "triu_indices", "broadcast_shapes", "base_repr", "binary_repr",
    "fft.fftfreq", "fft.rfftfreq", "can_cast", "promote_types", "isdtype", "typename", "mintypecode", "unravel_index",
    "ravel_multi_index", "iterable", "get_printoptions", "set_printoptions", "printoptions", "einsum", "r_", "c_",
})  # fmt: skip
"""Functions that work without an array among their arguments.  All others refuse lists and scalars in its place."""


def _function(path: str, signature: str, numpy_function: Callable[..., Any]) -> Callable[..., Any]:
    """CuPy's function at `path`."""
    name = path.rsplit(".", 1)[-1]
    function = as_cupys(path, numpy_function)
    bind = binder(name, parameters(signature), function)
    changed = path in WRITES
    from_host = path in FROM_HOST or path in LIKE_ARRAYS
    converted = frozenset() if from_host else frozenset(_converted().get(path, ()))
    names = [p.name for p in parameters(signature)]
    makes = bool(converted) or from_host or path in TAKES_NO_ARRAYS or path.startswith("random.")
    needs_array = path in LIKE_ARRAYS or not makes

    def call(*args: Any, **kwargs: Any) -> Any:
        if converted:
            args = (*(_made(value) if name in converted else value for name, value in zip(names, args)),
                    *args[len(names):])
            kwargs = {name: _made(value) if name in converted else value for name, value in kwargs.items()}
        positional, options = bind(args, kwargs)
        if from_host:
            positional = tuple([_uploaded(value) for value in positional])
            options = {key: _uploaded(value) for key, value in options.items()}
        if needs_array and not (positional and type(positional[0]) is SimulatedArray
                                or has_array((*positional, *options.values()))):
            raise TypeError(f"Unsupported type {type(positional[0]) if positional else None}")
        if options.get("out") is not None:
            options["out"] = as_device(options["out"])
            writes: tuple[Any, ...] = (options["out"],)
        elif changed:
            positional = (as_device(positional[0]), *positional[1:])
            writes = positional[:1]
        else:
            writes = ()
        result = launch(function, positional, options, writes)
        for value in positional:
            if type(value) is SimulatedArray and type(result) is SimulatedArray and value._view is result._view:
                return value        # what NumPy returns as it is, CuPy does too
        if path in AS_ARRAYS and not isinstance(result, SimulatedArrayBase):
            return wrap_new(np.asarray(result))
        return tuple(result) if path in AS_TUPLES and isinstance(result, tuple) else result

    call.__name__ = name
    return call


@cache
def _converted() -> dict[str, list[str]]:
    """Function -> the parameters that it makes device arrays of, whatever they are."""
    found: dict[str, list[str]] = {}
    for taken, paths in api.table("cupy_api")["UPLOADS"].items():
        for path in paths.split():
            found[path] = taken.split()
    return found


def _made(value: Any) -> Any:
    return value if value is None or isinstance(value, SimulatedArray) or exports(value) else namespace.array(value)


def _uploaded(value: Any) -> Any:
    if isinstance(value, np.ndarray) and not exports(value):
        if not value.ndim and value.dtype.kind in "fc":
            value = np.asarray(cleared(value[()]))
        # Of a native dtype as it is: NumPy goes a longer way for arrays of another one that is equal.
        return wrap_new(value.astype(value.dtype if value.dtype.isnative else value.dtype.newbyteorder("=")))
    if type(value) in (list, tuple) and any(isinstance(item, (np.ndarray, list, tuple)) for item in value):
        return type(value)([_uploaded(item) for item in value])
    return value


class NpzFile:
    """What ``load`` returns for a file of several arrays: each is uploaded when it is asked for."""

    def __init__(self, npz_file: Any) -> None:
        self.npz_file = npz_file

    def __enter__(self) -> NpzFile:
        self.npz_file.__enter__()
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.npz_file.__exit__(*exc_info)

    def __getitem__(self, key: str) -> SimulatedArray:
        return namespace.array(self.npz_file[key])

    def close(self) -> None:
        """Close the file."""
        self.npz_file.close()


def _load(file: Any, mmap_mode: Any = None, allow_pickle: bool | None = None) -> Any:
    found = np.load(file, mmap_mode, bool(allow_pickle))
    return NpzFile(found) if isinstance(found, np.lib.npyio.NpzFile) else namespace.array(found)


def _asnumpy(a: Any, stream: Any = None, order: str = "C", out: Any = None, *, blocking: bool = True) -> np.ndarray:
    if exports(a):
        return as_device(a).get(stream, order, out, blocking)
    return np.asarray(a, order=order)  # type: ignore[call-overload]


def _get_array_module(*args: Any) -> Any:
    return namespace if any(isinstance(arg, SimulatedArray) for arg in args) else np


def _from_dlpack(array: Any, *, device: Any = None, copy: Any = None) -> Any:
    return namespace.array(array) if isinstance(array, SimulatedArray) and copy else dlpack.take(array)


class Module:
    """A module of functions on the device. A name is looked up once, then it is an attribute."""

    def __init__(self, path: str, **members: Any) -> None:
        self.__name__ = path
        vars(self).update(members)

    @once_made("__name__")
    def __repr__(self) -> str:
        return f"<module {self.__name__!r} of the simulated device>"

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *(name for name in self._names() if hasattr(self, name))})

    def __getattr__(self, name: str) -> Any:
        value = None if name.startswith("_") else self._find(name)      # `__name__`: it is being made
        if value is None:
            raise AttributeError(name if name == "__name__" else f"module {self.__name__!r} has no attribute {name!r}")
        setattr(self, name, value)
        return value

    def _names(self) -> Iterable[str]:
        """What there may be in the module."""
        raise NotImplementedError

    def _find(self, name: str) -> Any:
        """What has a name, None if there is nothing."""
        raise NotImplementedError


class Namespace(Module):
    """What ``xp`` and its submodules are."""

    def __init__(self, path: str = "", **members: Any) -> None:
        super().__init__(f"simulated.{path}".rstrip("."), **members)
        self._path = path

    def _names(self) -> Iterable[str]:
        return api.names_of("cupy_api", self._path)

    def _find(self, name: str) -> Any:
        path = f"{self._path}.{name}" if self._path else name
        if any(module == path or module.startswith(path + ".") for module in api.table("cupy_api")["FUNCTIONS"]):
            return Namespace(path, **(random.members() if path == "random" else {}))
        theirs: Any = np
        for part in path.split("."):
            theirs = random.drawing(name) if self._path == "random" else getattr(theirs, part, None)
        facts = api.names_of("cupy_api", self._path).get(name)
        if theirs is None or facts is None:
            shared = not self._path and name in api.table("cupy_api")["SHARED"].split()
            return theirs if shared else None
        return _function(path, facts, theirs) if isinstance(facts, str) else SimulatedUfunc(name, theirs, *facts)


cuda = Namespace("cuda", **simulated_cuda.members())
vars(cuda).update(
    runtime=Namespace("cuda.runtime", **simulated_cuda.runtime()),
    memory=Namespace("cuda.memory", **simulated_cuda.members(), **simulated_cuda.errors()),
    nvtx=Namespace("cuda.nvtx", **simulated_cuda.annotations()),
)
namespace = Namespace(
    ndarray=SimulatedArray,
    ufunc=SimulatedUfunc,
    cuda=cuda,
    asnumpy=_asnumpy,
    get_array_module=_get_array_module,
    from_dlpack=_from_dlpack,
    load=_load,
    is_available=lambda: True,
    put=lambda a, ind, v, mode="wrap": indexing.put_flat(as_device(a), ind, v, mode),
    take=lambda a, indices, axis=None, out=None: indexing.take(as_device(a), indices, axis, out),
    get_default_memory_pool=lambda: simulated_cuda.default_pool,
    get_default_pinned_memory_pool=lambda: simulated_cuda.default_pinned_pool,
)
parts.namespace = namespace
