"""LazyNdarray: the face. Each member is a few lines; what it does is in `array/methods.py` and beside it."""
from __future__ import annotations

import abc
import functools
import operator
import sys
import warnings
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import devices
from ..dispatch import advanced_indexing, basic_indexing, convert, function, plain_call, small_arrays, small_runs, ufunc
from ..errors.inspection import once_made
from ..events.callers import assigns_an_item
from ..functions import views as functions_views
from ..functions.text import printable
from ..graph.record.ufunc import bind
from ..storage import foreign_streams, handles
from ..storage.handles import ArrayHandle
from . import attributes, function_methods, methods, operators, protocols, small_members
from .flags_and_flat import LazyFlags, LazyFlatIter
from .scalar import LazyScalar

if TYPE_CHECKING:
    from .typed import Reduction

    class _Typed(ArrayHandle):
        """What `_complete` adds is ndarray's to type checkers, whose reductions are of any type.

        A base of theirs alone: annotations in the class itself would be seen, and an ndarray has none.
        """

        all: Reduction[LazyNdarray, LazyScalar]     # type: ignore[assignment]
        any: Reduction[LazyNdarray, LazyScalar]     # type: ignore[assignment]
        argmax: Reduction[LazyNdarray, LazyScalar]     # type: ignore[assignment]
        argmin: Reduction[LazyNdarray, LazyScalar]     # type: ignore[assignment]
        max: Reduction[LazyNdarray, LazyScalar]     # type: ignore[assignment]
        mean: Reduction[LazyNdarray, LazyScalar]     # type: ignore[assignment]
        min: Reduction[LazyNdarray, LazyScalar]     # type: ignore[assignment]
        prod: Reduction[LazyNdarray, LazyScalar]     # type: ignore[assignment]
        std: Reduction[LazyNdarray, LazyScalar]     # type: ignore[assignment]
        sum: Reduction[LazyNdarray, LazyScalar]     # type: ignore[assignment]
        var: Reduction[LazyNdarray, LazyScalar]     # type: ignore[assignment]
else:
    _Typed = ArrayHandle


class LazyNdarray(_Typed):
    """An array on the device that can be used in place of a `numpy.ndarray`.

    It has every member of ndarray, with NumPy's dtypes, shapes, views and errors. Computations run on
    the device. The bytes are copied to the host only when code that can't use the device reads them.
    `trace` records each copy, and `no_transfers` forbids copies.

    Parameters
    ----------
    wrapped : device array
        A CuPy array (or one of the simulated device), which is shared, not copied. For anything else
        use `asarray`.

    Examples
    --------
    >>> import numpy as np, lazyarray
    >>> x = lazyarray.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> isinstance(x, np.ndarray), type(x).__name__
    (True, 'LazyNdarray')
    >>> np.sqrt(x.T + 1)[0]
    array([1.41421356, 2.        ])
    """

    __slots__ = ()

    __array_priority__ = 0.0
    __hash__ = None
    #: For `numpy.ma`, whose results remember the class of the data in their operands, and make views of that class.
    _baseclass = np.ndarray

    def __init__(self, wrapped: Any) -> None:
        device = devices.current()
        array = foreign_streams.from_foreign(device, wrapped)
        if array is None:
            raise TypeError(f"LazyNdarray wraps device arrays, not {type(wrapped).__name__}; use lazyarray.asarray")
        shared = handles.share(device, array)
        for name in ArrayHandle.__slots__:
            setattr(self, name, getattr(shared, name))

    # -- identity ------------------------------------------------------------------------------

    #: ``numpy.ndarray``, by C alone: a signal handler that raised in Python code here would do so in the middle of
    #: NumPy's C code, which asks for this without a look at errors.
    __class__: Any = property(functools.partial(getattr, np, "ndarray"))

    @property
    def __wrapped__(self) -> Any:
        """The device array. You may write to it: lazyarray reads the memory again afterwards."""
        return convert.lend(self, "__wrapped__")

    if not TYPE_CHECKING:       # to which every name would be one then
        def __getattr__(self, name: str) -> Any:
            if name.startswith("_self_"):
                return handles.completed(self, name)
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        setter = _SETTERS.get(name)
        if setter is None:
            setattr(np.empty(0), name, value)   # raises ndarray's own error
            raise AttributeError(f"attribute {name!r} of 'numpy.ndarray' objects is not writable")
        setter(self, value)

    def __delattr__(self, name: str) -> None:
        delattr(np.empty(0), name)      # raises ndarray's own error: none of its attributes can be deleted

    def __dir__(self) -> list[str]:
        return dir(np.ndarray)

    # -- attributes ----------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        if (host := self._self_host) is not None:
            return host.shape
        array, meta = self._self_array, self._self_meta     # in this order: `spilling` sets the second one first
        return array.shape if meta is None else meta.shape

    @shape.setter
    def shape(self, value: Any) -> None:
        if hasattr(np.ndarray, "_set_shape"):
            warnings.warn("Setting the shape on a NumPy array has been deprecated in NumPy 2.5. Use numpy.reshape, "
                          "with copy=False if needed.", DeprecationWarning, stacklevel=3)      # over `__setattr__`
        attributes.set_meta("shape")(self, value)

    @property
    def dtype(self) -> np.dtype[Any]:
        if (host := self._self_host) is not None:
            return host.dtype
        array, meta = self._self_array, self._self_meta     # in this order: `spilling` sets the second one first
        return array.dtype if meta is None else meta.dtype

    @dtype.setter
    def dtype(self, value: Any) -> None:
        attributes.set_meta("dtype")(self, value)

    @property
    def strides(self) -> tuple[int, ...]:
        return handles.meta_of(self).strides

    @strides.setter
    def strides(self, value: Any) -> None:
        attributes.set_meta("strides")(self, value)

    @property
    def ndim(self) -> int:
        if (host := self._self_host) is not None:
            return host.ndim
        array, meta = self._self_array, self._self_meta     # in this order: `spilling` sets the second one first
        return array.ndim if meta is None else meta.ndim

    @property
    def size(self) -> int:
        if (host := self._self_host) is not None:
            return host.size
        array, meta = self._self_array, self._self_meta     # in this order: `spilling` sets the second one first
        return array.size if meta is None else meta.size

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return handles.meta_of(self).nbytes

    @property
    def base(self) -> Any:
        return self._self_base

    @property
    def T(self) -> LazyNdarray:
        return _turned(self)

    @property
    def mT(self) -> LazyNdarray:
        return handles.view_of(self, handles.meta_of(self).mT)

    @property
    def data(self) -> memoryview:
        if assigns_an_item(sys._getframe(1)):
            raise AttributeError("data")
        return handles.alias_of(self, "ndarray.data").data

    @property
    def device(self) -> str:
        return "cpu"

    flags = property(LazyFlags)
    real = property(attributes.get_real, attributes.set_part(attributes.get_real))
    imag = property(attributes.get_imag, attributes.set_part(attributes.get_imag))
    flat = property(LazyFlatIter, attributes.set_flat)
    ctypes = property(attributes.get_ctypes)

    # -- NumPy's protocols ---------------------------------------------------------------------

    __array__ = protocols.array
    __array_interface__ = property(protocols.array_interface)
    __cuda_array_interface__ = property(protocols.cuda_array_interface)
    __dlpack__ = protocols.dlpack
    __dlpack_device__ = protocols.dlpack_device

    __array_ufunc__ = ufunc.array_ufunc

    def __array_function__(self, func: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...],
                           kwargs: dict[str, Any]) -> Any:
        return function.call(func, types, args, kwargs)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        if return_scalar and np.ndim(array) == 0:
            return array[()]
        return array if handles.is_lazy(array) else handles.from_host(np.asarray(array), "__array_wrap__", eager=False)

    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        from .. import numpy as namespace
        return namespace.at_version(api_version)

    def __array_finalize__(self, obj: Any, /) -> None:
        """Nothing is left to do for an array made from `obj`."""

    def __cupy_get_ndarray__(self) -> Any:
        return convert.lend(self, "a function of the device library")

    def __cupy_override_elementwise_kernel__(self, kernel: Any, /, *args: Any, **kwargs: Any) -> Any:
        return protocols.elementwise_kernel(kernel, args, kwargs)

    def __cupy_override_reduction_kernel__(self, kernel: Any, /, *args: Any, **kwargs: Any) -> Any:
        return kernel(convert.lend(self, "a function of the device library"), *args, **kwargs)

    __array_struct__ = property(protocols.array_struct)

    if sys.version_info >= (3, 12):
        __buffer__ = protocols.buffer
        __release_buffer__ = protocols.release_buffer

    # -- Python's protocols --------------------------------------------------------------------

    __getitem__ = basic_indexing.getitem
    __setitem__ = basic_indexing.setitem
    __iter__ = basic_indexing.iterate
    __contains__ = operators.contains

    def __delitem__(self, index: Any) -> None:
        raise ValueError("cannot delete array elements")

    def __len__(self) -> int:
        if (host := self._self_host) is not None:
            return len(host)
        shape = self.shape
        if not shape:
            raise TypeError("len() of unsized object")
        return shape[0]

    def __bool__(self) -> bool:
        return bool(self._one("__bool__"))

    def __int__(self) -> int:
        return int(self._one("__int__"))

    def __float__(self) -> float:
        return float(self._one("__float__"))

    def __complex__(self) -> complex:
        return complex(self._one("__complex__"))

    def __index__(self) -> int:
        return self._one("__index__").__index__()

    def _one(self, why: str) -> np.ndarray:
        """The array on the host if NumPy converts its one element, else one without memory, to raise NumPy's error."""
        if (host := small_members.on_host(self)) is not None:
            return host
        meta = handles.meta_of(self)
        if meta.size == 1 and (why != "__index__" or meta.ndim == 0 and meta.dtype.kind in "iu"):
            return handles.host_of(self, why)
        return np.broadcast_to(np.zeros((), meta.dtype), meta.shape)

    if sys.version_info < (3, 12):      # later, `bytes` takes the buffer, as it does of an ndarray
        def __bytes__(self) -> bytes:
            return bytes(handles.host_of(self, "bytes"))

    @once_made("_self_storage")
    def __repr__(self) -> str:
        return repr(printable(self))

    @once_made("_self_storage")
    def __str__(self) -> str:
        return str(printable(self))

    def _repr_html_(self) -> str:
        from . import html  # only notebooks ask
        return html.html(self)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        # Not `_repr_pretty_`, which IPython does not look for: by its __class__ this is an ndarray.
        from . import html
        return {"text/plain": html.plain(self)}

    @once_made("_self_storage")
    def __format__(self, spec: str) -> str:
        if self.ndim == 0:
            return format(handles.host_of(self, "format"), spec)
        if spec:
            raise TypeError("unsupported format string passed to numpy.ndarray.__format__")
        return str(self)

    def __sizeof__(self) -> int:
        if not hasattr(self, "_self_storage"):      # it is being made
            return object.__sizeof__(self)
        # Of NumPy's own object, with the bytes that an ndarray owns: what caches go by.
        return np.empty((0,) * self.ndim).__sizeof__() + (self.nbytes if self._self_base is None else 0)

    def __copy__(self) -> LazyNdarray:
        return methods.copy_array(self, "K")

    def __deepcopy__(self, memo: Any) -> Any:
        if self.dtype.hasobject:
            return handles.host_result(handles.host_of(self, "deepcopy").__deepcopy__(memo))
        return methods.copy_array(self, "K")

    def __reduce__(self) -> tuple[Any, ...]:
        return protocols.reduce(self)

    def __reduce_ex__(self, protocol: int) -> tuple[Any, ...]:
        return protocols.reduce(self, protocol)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        host = np.empty(0)
        host.__setstate__(state)
        opened = protocols.restore(host)
        self._self_storage, self._self_meta = opened._self_storage, opened._self_meta
        self._self_array = self._self_leaf = self._self_host = self._self_home = None

    @classmethod
    def __class_getitem__(cls, item: Any) -> Any:
        return np.ndarray[item]

    # -- operators -----------------------------------------------------------------------------

    __divmod__ = operators.binary(np.divmod, "__rdivmod__")
    __rdivmod__ = operators.reflected(np.divmod, "__divmod__")
    __pow__ = operators.power
    __rpow__ = operators.reflected_power
    __ipow__ = operators.in_place_power
    __matmul__ = operators.binary(np.matmul, "__rmatmul__")
    __rmatmul__ = operators.reflected(np.matmul, "__matmul__")
    __imatmul__ = operators.in_place_matmul

    # -- methods -------------------------------------------------------------------------------

    reshape = methods.reshape
    transpose = methods.transpose
    view = methods.view
    getfield = methods.getfield
    setfield = methods.setfield
    setflags = methods.setflags
    resize = methods.resize
    copy = methods.copy_array
    astype = methods.astype
    flatten = methods.flatten
    ravel = methods.ravel
    byteswap = methods.byteswap
    sort = methods.sort
    partition = methods.partition
    fill = methods.fill
    compress = methods.compress
    conj = methods.conj
    conjugate = methods.conjugate
    item = methods.item
    dump = methods.dump
    dumps = methods.dumps
    to_device = methods.to_device
    get = methods.get       # CuPy's: its errors recommend it


def _complete() -> None:
    """Add the members that come from tables."""
    for name, func in function_methods.VIA_FUNCTION.items():
        if name not in vars(LazyNdarray):
            setattr(LazyNdarray, name, function_methods.via_function(name, func))
    for name in methods.ON_HOST:
        setattr(LazyNdarray, name, methods.read_on_host(name))
    for name, func in operators.BINARY.items():
        setattr(LazyNdarray, f"__{name}__", operators.binary(func, f"__r{name}__"))
        setattr(LazyNdarray, f"__r{name}__", operators.reflected(func, f"__{name}__"))
        setattr(LazyNdarray, f"__i{name}__", operators.in_place(func, f"__r{name}__"))
    for name, (func, mirrored) in operators.COMPARISONS.items():
        setattr(LazyNdarray, f"__{name}__", operators.comparison(func, mirrored))
    for name, func in operators.UNARY.items():
        setattr(LazyNdarray, f"__{name}__", operators.unary(func))
    for name in ("_set_shape", "_set_dtype"):
        if hasattr(np.ndarray, name):       # NumPy 2.5's ways to set what can no longer be assigned
            setattr(LazyNdarray, name, attributes.set_meta(name.removeprefix("_set_")))
    _named()
    small_members.complete(LazyNdarray)


def _named() -> None:
    """Give members their names, by which `pickle` finds them, and let signatures name the classes.

    The modules below this one, where the functions are, can't import the classes.
    """
    parts = []
    for face in (LazyNdarray, LazyScalar):
        for name, member in vars(face).items():
            if isinstance(member, FunctionType):
                member.__name__, member.__qualname__ = name, f"{face.__name__}.{name}"
            parts += [member.fget, member.fset] if isinstance(member, property) else [member]
    for func in (convert.asarray, *parts):
        if callable(func) and not isinstance(func, type):
            annotations = getattr(func, "__annotations__", {})
            for name, text in annotations.items():
                annotations[name] = text.replace("ArrayHandle", "LazyNdarray").replace("ScalarHandle", "LazyScalar")


def _setters() -> dict[str, Callable[[LazyNdarray, Any], None]]:
    """What sets the slots, and the attributes that ndarray lets a program assign."""
    return {name: member.fset if isinstance(member, property) else member.__set__
            for name, member in (vars(ArrayHandle) | vars(LazyNdarray)).items()
            if isinstance(member, property) and member.fset is not None or name in ArrayHandle.__slots__}


class _Doc:
    """The docstring, of the class and of its instances, which can't be set."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    def __get__(self, instance: Any, owner: Any) -> str | None:
        return self.text

    def __set__(self, instance: Any, value: Any) -> None:
        raise AttributeError("attribute '__doc__' is read-only")


_turned = small_members.member(operator.attrgetter("T"), handles.turned)
_complete()
_SETTERS = _setters()
operators.direct.add(LazyNdarray)
_MATCHES = 1 << 5   # Py_TPFLAGS_SEQUENCE: an instance matches sequence patterns
if np.ndarray.__flags__ & _MATCHES:     # since NumPy 2.5, without being a `collections.abc.Sequence`
    abc.ABCMeta("_Sequences", (), {"__abc_tpflags__": _MATCHES}).register(LazyNdarray)
LazyNdarray.__module__ = LazyScalar.__module__ = "lazyarray"
for _face in (LazyNdarray, LazyScalar):
    _face.__doc__ = _Doc(_face.__doc__)
handles.bind(LazyNdarray, LazyScalar)
bind(LazyNdarray, small_arrays.for_native() | plain_call.for_native() | ufunc.for_native() | operators.for_native()
     | functions_views.for_native() | advanced_indexing.for_native() | small_runs.for_native())
small_arrays.measured()
