"""The members of `numpy.ndarray`, by kind: tables, and the functions that become members.

Nothing here depends on the class it ends up in: a member takes `x`, and reaches its storage and
its meta through `handles`.
"""
from __future__ import annotations

import math
import operator
import pickle
import sys
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dispatch import function, small_arrays
from ..dispatch.host_fallback import on_host
from ..errors import NotOnDevice
from ..functions import memory_order
from ..functions.adapters.order import sort_in_place
from ..graph.record import functions
from ..storage import handles, views
from ..storage.handles import detached
from ..storage.statements import held
from ..storage.storage import Storage
from ..storage.writeable import may_write, writeable
from .flags_and_flat import set_writeable
from .protocols import is_given

if TYPE_CHECKING:
    from ..storage.handles import ArrayHandle, ScalarHandle

#: Members whose value is read on the host; each copies the view's bytes once.
ON_HOST = ("tolist", "tobytes", "tofile")


def read_on_host(name: str) -> Callable[..., Any]:
    """A member that reads the bytes on the host."""
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(handles.host_of(self, f"ndarray.{name}"), name)(*args, **kwargs)
    method.__doc__ = f"`numpy.ndarray.{name}` of the lazy array."
    return method


# -- shape and layout: metas do it ----------------------------------------------------------

def reshape(x: ArrayHandle, *shape: Any, order: str | None = "C", copy: bool | None = None) -> ArrayHandle:
    """`numpy.ndarray.reshape`: a view where NumPy makes one, else a copy on the same side."""
    if order == "C" and copy is None and (result := handles.reshaped(x, shape)) is not None:
        return result
    if len(shape) == 1:
        shape = shape[0]
    elif not shape:
        raise TypeError("reshape() takes exactly 1 argument (0 given)")
    shape = plain_ints(shape)
    order = views.order_of(order, "C")
    meta = None if copy else views.reshaped(handles.meta_of(x), shape, order)
    if meta is not None:
        return handles.view_of(x, meta)
    if copy is not None and not copy:
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    # In C or F order the copy is contiguous, and any shape is a view of it.
    fnc = handles.meta_of(x).flags.fnc
    packed = copy_array(x, "F" if order == "F" or order == "A" and fnc else "C")
    return handles.view_of(packed, views.reshaped(handles.meta_of(packed), shape, order))


def plain_ints(shape: Any) -> Any:
    """A shape without lazy scalars in it."""
    if isinstance(shape, (tuple, list)):
        return tuple([operator.index(s) if handles.is_lazy(s) else s for s in shape])
    return operator.index(shape) if handles.is_scalar(shape) else shape


def transpose(x: ArrayHandle, *axes: Any) -> ArrayHandle:
    """`numpy.ndarray.transpose`: a view."""
    return handles.view_of(x, handles.meta_of(x).transpose(*axes))


def view(x: ArrayHandle, dtype: Any = np._NoValue, type: type | None = None) -> Any:
    """`numpy.ndarray.view`: a view with another dtype (None is float64); with another class, an alias on the host."""
    import builtins
    if type is None and isinstance(dtype, builtins.type) and issubclass(dtype, np.ndarray):
        dtype, type = np._NoValue, dtype
    if type is not None and type is not np.ndarray and type is not handles.array_type:
        alias = handles.alias_of(x, "viewed as another class")
        return alias.view(type) if dtype is np._NoValue else alias.view(dtype, type)
    meta = handles.meta_of(x)
    if dtype is np._NoValue:
        return handles.view_of(x, meta.view())
    dtype = np.dtype(views.no_array(dtype))
    return handles.looked_at(x, lambda array: array.view(dtype), dtype)


def getfield(x: ArrayHandle, dtype: Any, offset: int = 0) -> ArrayHandle:
    """`numpy.ndarray.getfield`: a view of a part of each element."""
    dtype = views.no_array(dtype)
    return handles.looked_at(x, lambda array: array.getfield(dtype, offset), np.dtype(dtype))


def setfield(x: ArrayHandle, value: Any, dtype: Any, offset: int = 0) -> None:
    """`numpy.ndarray.setfield`."""
    getfield(x, dtype, offset)[...] = value


def setflags(x: ArrayHandle, write: bool | None = None, align: bool | None = None, uic: bool | None = None) -> None:
    """`numpy.ndarray.setflags`; WRITEABLE alone changes anything, as for an ndarray that owns aligned memory."""
    if align is not None or uic is not None:
        handles.meta_of(x).setflags(align=align, uic=uic)
    if write is not None:
        set_writeable(x, bool(write))


def resize(x: ArrayHandle, *new_shape: Any, refcheck: Any = True) -> None:
    """`numpy.ndarray.resize`: in place, new elements are zero; of as many elements, only the shape changes."""
    refcheck = operator.index(refcheck)
    if not new_shape or new_shape[0] is None and len(new_shape) == 1:
        return
    meta = handles.meta_of(x)
    blank = np.empty(0, "V0")
    blank.resize(*new_shape, refcheck=False)    # what shape that is, or NumPy's error
    shape = blank.shape
    if not meta.flags.forc:
        raise ValueError("resize only works on single-segment arrays")
    size, fortran = math.prod(shape), meta.flags.fnc
    if size * meta.itemsize > sys.maxsize:
        raise MemoryError
    detached(x)
    if size == meta.size:
        x._self_leaf = x._self_array = None     # the memory stays, whoever else refers to it
        x._self_meta = views.reshaped(meta, shape, "F" if fortran else "C")
        return
    if not meta.itemsize:        # a field's dtype stays as it is, where an array's gets a size of 1
        x._self_meta, x._self_array = np.empty(shape, [("field", meta.dtype)])["field"], None
        return
    if x._self_base is not None:
        raise ValueError("cannot resize this array: it does not own its data")
    x._self_leaf = x._self_storage.before_change()      # None: recorded work is no reference that a program made
    # NumPy counts the references to the array too, but a method in Python can't tell them from those of its own call.
    given = is_given(x)
    if weakref.getweakrefcount(x) > given or refcheck and (given or
            sys.getrefcount(x._self_storage) > 2 or x._self_storage.is_aliased(meta)):
        raise ValueError("cannot resize an array that references or is referenced\nby another array in this way.\n"
                         "Use the np.resize function or refcheck=False")
    grown = handles.zeros(size, meta.dtype)
    keep = min(size, meta.size)
    if keep:
        flat = x.T.reshape(-1) if fortran else x.reshape(-1)
        grown[:keep] = flat[:keep]
    grown = grown.reshape(shape[::-1]).T if fortran else grown.reshape(shape)
    grown_meta = handles.meta_of(grown)
    if not writeable(meta):
        grown_meta = grown_meta.view()
        grown_meta.flags.writeable = False
    x._self_storage, x._self_meta, x._self_array = grown._self_storage, grown_meta, None
    x._self_host = None


# -- copies ------------------------------------------------------------------------------------

def copy_array(x: ArrayHandle, order: str | None = "C") -> ArrayHandle:
    """`numpy.ndarray.copy`: a copy on the side where the bytes are."""
    order = views.order_of(order, "C")
    storage = x._self_storage
    meta = handles.meta_of(x)
    if type(storage) is not Storage:
        return handles.host_result(meta.copy(order))
    device = storage.device
    if storage.state == "host" or device.usable() is not None:
        return handles.host_result(np.array(handles.host_of(x, "copy"), order=order))
    return _copied(x, meta.dtype, order)


def _copied(x: ArrayHandle, dtype: np.dtype, order: str) -> ArrayHandle:
    """A copy of `x` on its device: recorded, or else made at once."""
    storage, meta = x._self_storage, handles.meta_of(x)
    if dtype != meta.dtype or functions.lies_exactly(meta, order):
        recorded = functions.astype(x, dtype, order)
        if recorded is not None:
            return recorded     # type: ignore[no-any-return]
    device = storage.device
    # The layout is NumPy's ("K" keeps any order of the axes, which the device library may not).
    layout = views.like(meta, order, dtype)
    with storage.place():
        source = handles.device_of(x)
        if layout.dtype == source.dtype and layout.flags.forc and 1 not in layout.shape:
            array = source.copy("C" if layout.flags.c_contiguous else "F")
        else:
            block = device.empty((layout.nbytes,), np.dtype(np.uint8))
            array = device.view(block, layout.shape, layout.dtype, layout.strides, 0)
            if layout.size:
                device.assign(array, source)
        return handles.new_array(Storage(device, array), None, array)


def astype(x: ArrayHandle, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True,
           copy: bool = True) -> ArrayHandle:
    """`numpy.ndarray.astype`: on the device if it can hold both dtypes."""
    order = views.order_of(order, "K")
    meta = handles.meta_of(x)
    blank = np.empty((0,) * max(meta.ndim, 1), meta.dtype)
    dtype = views.no_array(dtype)
    target = blank.astype(dtype, casting=casting).dtype if meta.dtype.kind != "O" else np.dtype(dtype)
    if target.itemsize == 0 or target.kind in "SUO" or type(x._self_storage) is not Storage or \
            not x._self_storage.device.can_hold(target):
        if type(x._self_storage) is not Storage and not copy:
            result = meta.astype(dtype, order, casting, subok, copy)
            return x if result is meta else handles.host_result(result)
        host = handles.host_of(x, f"astype({target})")
        return handles.host_result(host.astype(dtype, order, casting, subok, True))
    same = target == meta.dtype
    if same and not copy and (order == "K" or (meta.flags.forc if order == "A" else meta.flags[
            "C_CONTIGUOUS" if order == "C" else "F_CONTIGUOUS"])):
        return x
    if meta.dtype.kind == "c" and target.kind not in "cb":
        import warnings
        warnings.warn("Casting complex values to real discards the imaginary part",
                      np.exceptions.ComplexWarning, stacklevel=2)
    device = x._self_storage.device
    if device.usable() is not None:
        return handles.host_result(handles.host_of(x, "astype").astype(dtype, order, casting))
    return _copied(x, target, order)


def flatten(x: ArrayHandle, order: str | None = "C") -> ArrayHandle:
    """`numpy.ndarray.flatten`: a one-dimensional copy."""
    order = views.order_of(order, "C")
    meta = handles.meta_of(x)
    if order == "K":
        axes = memory_order.order_of([meta])
        return flatten(x if axes is None else x.transpose(axes))
    fortran = order == "F" or order == "A" and meta.flags.fnc
    packed = copy_array(x, "F" if fortran else "C")
    meta = views.reshaped(handles.meta_of(packed), -1, "F" if fortran else "C")
    return handles.new_array(packed._self_storage, meta)


def ravel(x: ArrayHandle, order: str | None = "C") -> ArrayHandle:
    """`numpy.ndarray.ravel`: a view where the elements lie in that order, else a copy."""
    if type(order) is not str or order != "C":
        return function.run(np.ravel, (x,), {"order": order})   # type: ignore[no-any-return]
    meta = handles.meta_of(x)
    return handles.view_of(x, views.reshaped(meta, -1)) if meta.flags.c_contiguous else flatten(x)


def byteswap(x: ArrayHandle, inplace: bool = False) -> ArrayHandle:
    """`numpy.ndarray.byteswap`."""
    if inplace:
        if not may_write(handles.meta_of(x)):
            raise ValueError("Cannot byte-swap in-place on a read-only array")
        return held((x,), _swapped, x)  # type: ignore[no-any-return]
    return handles.host_result(handles.host_of(x, "ndarray.byteswap").byteswap())


def _swapped(x: ArrayHandle) -> ArrayHandle:
    x[...] = byteswap(x)
    return x


# -- in place ----------------------------------------------------------------------------------

def _in_place(x: ArrayHandle, name: str, args: tuple[Any, ...], kwargs: dict[str, Any],
              on_device: Callable[..., Any]) -> None:
    """Run an in-place member on the device, or on a host alias where the device can't."""
    if small_arrays.writing(getattr(np.ndarray, name), (x, *args), kwargs, [x]) is not NotImplemented:
        return
    meta = handles.meta_of(x)
    storage = x._self_storage
    if not may_write(meta):
        np.empty((0,) * meta.ndim).sort(axis=kwargs["axis"])     # a wrong axis comes first
        raise ValueError(f"{name} array is read-only")
    if type(storage) is Storage and storage.device.usable() is None:
        device = storage.device
        try:
            storage.write_device(meta, x._self_array, lambda array: on_device(device.xp, array))
            return
        except Exception as error:  # noqa: BLE001  contract, point 4: whatever the device refuses, NumPy decides
            reason = str(device.refusal(error))
    else:
        reason = "the array has a dtype that is not supported on the device"
    def run(array, *a, **k):
        getattr(array, name)(*a, **k)
    on_host(run, (x, *args), kwargs, reason, name=f"numpy.ndarray.{name}", positions=(0,), names=())


def sort(x: ArrayHandle, axis: int = -1, kind: str | None = None, order: Any = None, *,
         stable: bool | None = None, **newer: Any) -> None:
    """`numpy.ndarray.sort`: in place. `newer`: keywords that releases of NumPy have added, such as ``descending``."""
    operator.index(axis)        # None is refused
    if kind is not None or stable is not None or newer:
        np.empty(0).sort(kind=kind, stable=stable, **newer)     # NumPy's error, if these are wrong

    def on_device(xp, array):
        if order is not None:
            raise NotOnDevice("sorting by fields is not supported on the device")
        for keyword, value in newer.items():
            if value is not None:
                raise NotOnDevice(f"sorting with {keyword}=")
        if array.ndim == 0:
            raise NotOnDevice("0-d arrays are not supported on the device")
        if array.size:
            sort_in_place(xp, array, axis)
        else:
            np.empty((0,) * array.ndim).sort(axis=axis)     # NumPy's error, if the axis is wrong
    _in_place(x, "sort", (), {"axis": axis, "kind": kind, "order": order, "stable": stable, **newer}, on_device)


def partition(x: ArrayHandle, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None) -> None:
    """`numpy.ndarray.partition`: in place; a full sort satisfies it."""
    operator.index(axis)        # None is refused
    if kind != "introselect":
        np.empty(1).partition(0, kind=kind)             # NumPy's error

    def on_device(xp, array):
        if order is not None or array.ndim == 0:
            raise NotOnDevice("fields and 0-d arrays are not supported on the device")
        n, places = array.shape[axis], np.asarray(kth)
        if places.ndim > 1 or places.dtype.kind not in "iu" or places.size and not (
                -n <= places.min() and places.max() < n):
            raise NotOnDevice("kth is not an integer, or out of range")
        sort_in_place(xp, array, axis)
    _in_place(x, "partition", (kth,), {"axis": axis, "kind": kind, "order": order}, on_device)


_ONE_VALUE = (bool, int, float, complex, str, bytes, np.generic)


def fill(x: ArrayHandle, value: Any, /) -> None:
    """`numpy.ndarray.fill`: every element is `value`."""
    meta = handles.meta_of(x)
    if type(x._self_storage) is not Storage:
        may_write(meta)      # it warns at the user's line; NumPy refuses
        keep = meta.dtype.kind == "O" or not handles.is_lazy(value)
        meta.fill(value if keep else handles.host_of(value, "ndarray.fill"))
        return
    # NumPy takes one value, and decides what is one.
    if not (isinstance(value, _ONE_VALUE) or handles.is_lazy(value) and not handles.meta_of(value).ndim):
        one = np.empty((), meta.dtype)
        if handles.is_array(value):        # the values of one that has several don't matter
            value = handles.host_of(value, "ndarray.fill") if value.size == 1 else np.empty(value.shape, value.dtype)
        one.fill(value)     # mostly an error
        value = one[()]
    x[...] = value


def compress(x: ArrayHandle, condition: Any, axis: int | None = None, out: Any = None) -> Any:
    """`numpy.ndarray.compress`."""
    return np.compress(condition, x, axis, out)


def conjugate(x: ArrayHandle, /, *args: Any) -> Any:
    """`numpy.ndarray.conjugate`: the array itself if it is real."""
    dtype = handles.meta_of(x).dtype
    if not args and dtype.kind in "biuf":
        return x
    if dtype.kind not in "biufcO":
        np.empty(0, dtype).conj()       # NumPy refuses what is no number
    return np.conjugate(x, *args)


# -- values ------------------------------------------------------------------------------------

def conj(x: ArrayHandle, /, *args: Any) -> Any:
    """`numpy.ndarray.conj`: the same as `conjugate`."""
    return conjugate(x, *args)


def item(x: ArrayHandle, *args: Any) -> Any:
    """`numpy.ndarray.item`: one element as a Python object."""
    meta = handles.meta_of(x)
    np.broadcast_to(np.False_, meta.shape).item(*args)       # NumPy's error, if there is one
    if len(args) == 1 and isinstance(args[0], tuple):
        args = args[0]
    if not args:
        return handles.host_of(x, "ndarray.item").item()
    index = (*map(operator.index, args),)
    if len(index) == 1 and meta.ndim != 1:
        index = tuple([int(i) for i in np.unravel_index(index[0] % meta.size, meta.shape)]) if meta.ndim else ()
    return handles.host_of(handles.view_of(x, meta[(*index, Ellipsis)]), "ndarray.item").item()


def dump(x: ArrayHandle, file: Any) -> None:
    """`numpy.ndarray.dump`: pickle to a file."""
    if hasattr(file, "write"):
        file.write(dumps(x))
    else:
        with open(file, "wb") as f:
            f.write(dumps(x))


def dumps(x: ArrayHandle) -> bytes:
    """`numpy.ndarray.dumps`: pickled bytes."""
    # NumPy's protocol is 2. Up to 4 the arrays that are read are the same; 5, Python's default from 3.14 on, keeps byte
    # orders that 2 does not.
    return pickle.dumps(x, 4)


def get(x: ArrayHandle | ScalarHandle, stream: Any = None, order: str = "C", out: np.ndarray | None = None,
        blocking: bool = True) -> np.ndarray:
    """A copy on the host, as `cupy.ndarray.get` makes it; ``numpy.asarray(x)`` needs no copy of a copy.

    Parameters
    ----------
    stream : cupy.cuda.Stream, optional
        The stream whose work comes before the copy; the current one if None.
    order : {"C", "F", "A"}
        Memory order of the result. "A" is "F" for arrays in Fortran order, else "C".
    out : numpy.ndarray, optional
        Takes the values, and is returned. It has the shape and the dtype of `x`.
    blocking : bool
        The copy is complete on return in either case.

    Returns
    -------
    numpy.ndarray

    Raises
    ------
    TypeError
        `out` is no array, or has another dtype.
    ValueError
        `out` has another shape.
    """
    if out is not None:
        if not isinstance(out, np.ndarray):
            raise TypeError("Only numpy.ndarray can be obtained from cupy.ndarray")
        if out.dtype != x.dtype:
            raise TypeError(f"{out.dtype} array cannot be obtained from {x.dtype} array")
        if out.shape != x.shape:
            raise ValueError(f"Shape mismatch. Expected shape: {x.shape}, actual shape: {out.shape}")
    with nullcontext() if stream is None else stream:
        host = handles.host_of(x, "get")
    if out is None:
        return np.array(host, order=order)
    out[...] = host
    return out


def to_device(x: ArrayHandle, device: str, /, *, stream: Any = None) -> ArrayHandle:
    """`numpy.ndarray.to_device`: only "cpu" is a name that NumPy knows; the array itself."""
    np.empty(0).to_device(device, stream=stream)        # NumPy's error, if these are wrong
    return x
