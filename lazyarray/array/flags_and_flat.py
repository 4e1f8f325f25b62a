"""`x.flags` and `x.flat` of a lazy array."""
from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dispatch import function
from ..dispatch.assigned_values import converted, for_dtype
from ..dispatch.host_fallback import on_host
from ..errors import NotOnDevice, TransferError
from ..errors.inspection import once_made
from ..storage import handles, views
from ..storage.storage import Storage
from ..storage.writeable import may_write, shown, writeable

if TYPE_CHECKING:
    from ..storage.handles import ArrayHandle

_NAMES = {
    "C": "c_contiguous", "C_CONTIGUOUS": "c_contiguous", "CONTIGUOUS": "c_contiguous",
    "F": "f_contiguous", "F_CONTIGUOUS": "f_contiguous", "FORTRAN": "f_contiguous",
    "O": "owndata", "OWNDATA": "owndata", "W": "writeable", "WRITEABLE": "writeable",
    "A": "aligned", "ALIGNED": "aligned", "X": "writebackifcopy", "WRITEBACKIFCOPY": "writebackifcopy",
    "B": "behaved", "BEHAVED": "behaved", "CA": "carray", "CARRAY": "carray", "FA": "farray", "FARRAY": "farray",
    "FNC": "fnc", "FORC": "forc",
}
_OWNDATA = 0x0004


class LazyFlags:
    """Memory layout of a lazy array, as it is when it is asked for: `numpy.ndarray.flags`, with `owndata` true where
    NumPy's would be. What is set is set of the array, and not seen here, as with NumPy.
    """

    __slots__ = ("_array", "_flags", "owndata")
    __hash__ = None

    def __init__(self, array: ArrayHandle) -> None:
        for name, value in zip(self.__slots__, (array, handles.meta_of(array).flags, array._self_base is None)):
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if name in ("_array", "_flags", "owndata"):
            raise AttributeError(name)
        if name == "writeable":
            return shown(self._flags.num)
        value = getattr(self._flags, name)
        if name == "num" and self.owndata:
            value |= _OWNDATA
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "writeable":
            set_writeable(self._array, bool(value))
        else:
            setattr(handles.detached(self._array).flags, name, value)

    def __getitem__(self, key: str) -> Any:
        name = _NAMES.get(key)
        if name is None:
            raise KeyError("Unknown flag")
        return getattr(self, name)

    def __setitem__(self, key: str, value: Any) -> None:
        name = _NAMES.get(key)
        if name is None:
            raise KeyError("Unknown flag")
        setattr(self, name, value)

    def __eq__(self, other: object) -> bool:
        num = getattr(other, "num", None)
        return NotImplemented if num is None else self.num == num

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle or copy flags")      # as NumPy's

    @once_made("_flags")
    def __repr__(self) -> str:
        text = repr(self._flags)
        return text.replace("OWNDATA : False", f"OWNDATA : {self.owndata}")

    __str__ = __repr__


def set_writeable(x: ArrayHandle, value: bool) -> None:
    """Set the WRITEABLE flag; not to True where the array that `x` is a view of is read-only."""
    base = x._self_base
    if value and base is not None and not writeable(handles.meta_of(base) if handles.is_array(base) else base):
        raise ValueError("cannot set WRITEABLE flag to True of this array")
    handles.detached(x).flags.writeable = value


class LazyFlatIter:
    """`x.flat`: the elements in C order, by index and one after the other; reading copies, writing reaches `x`."""

    __slots__ = ("_base", "_index")
    __hash__ = None

    def __init__(self, base: ArrayHandle) -> None:
        if base.ndim > 32:
            _ = np.broadcast_to(np.False_, base.shape).flat     # NumPy's error
        self._base = base
        self._index = 0

    @property
    def base(self) -> ArrayHandle:
        return self._base

    @property
    def index(self) -> int:
        return self._index

    @property
    def __class__(self) -> type:
        return np.flatiter

    @property
    def coords(self) -> tuple[int, ...]:
        shape = self.base.shape
        if self.index >= self.base.size:
            return tuple([n if i == 0 else 0 for i, n in enumerate(shape)])
        return tuple([int(i) for i in np.unravel_index(self.index, shape)])

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> LazyFlatIter:
        storage = self.base._self_storage
        if type(storage) is Storage and self.base.size and not (storage.loans or storage.foreign):
            storage.read_host(handles.meta_of(self.base), "iterated over")     # each element will be looked at
        return self

    def __next__(self) -> Any:
        i = self._index
        if i >= self.base.size:
            raise StopIteration
        self._index = i + 1
        shape = self.base.shape
        value = self.base[tuple([int(k) for k in np.unravel_index(i, shape)])] if shape else self.base[()]
        return handles.value_of(value, "iterated over") if handles.is_scalar(value) else value

    def __getitem__(self, key: Any) -> Any:
        self._index = 0     # NumPy goes to elements with the iterator itself, and back
        if not _is_usual(key, self.base.size):
            return on_host(_read_flat, (self.base, key), {}, _UNUSUAL, name="numpy.flatiter.__getitem__")
        flat = _flat_view(self.base)
        if flat is None:
            flat = function.run(np.ravel, (self.base,), {})
        result = flat[slice(None) if key is Ellipsis else key]
        return result.copy() if handles.is_array(result) else result

    def __setitem__(self, key: Any, value: Any) -> None:
        if not may_write(handles.meta_of(self.base)):
            raise ValueError("underlying array is read-only")
        one = isinstance(key, (int, np.integer))
        if type(key) is not list and not (isinstance(key, np.ndarray) and key.dtype.kind in "iu"):
            self._index = 0
        if not _is_usual(key, self.base.size) or one and np.ndim(value):
            self._set_by_numpy(key, value, _UNUSUAL)
            return
        if _overlaps(self.base, value) and not (
                type(key) is slice and key == slice(None) and handles.is_array(value)
                and views.same_place(handles.meta_of(self.base), handles.meta_of(value))):
            self._set_by_numpy(key, value, "values that lie in the array itself, which are written one by one")
            return
        try:
            self._set(slice(None) if key is Ellipsis else key, value, one)
        except (NotOnDevice, IndexError, TypeError, ValueError, OverflowError) as error:
            try:
                self._set_by_numpy(key, value, str(error))      # its error; it may have written some by then
            except TransferError:
                raise error from None

    def _set_by_numpy(self, key: Any, value: Any, reason: str) -> None:
        on_host(_write_flat, (self.base, key, value), {}, reason, name="numpy.flatiter.__setitem__",
                positions=(0,), names=())

    def _set(self, key: Any, value: Any, one: bool) -> None:
        base = self.base
        size, dtype = base.size, handles.meta_of(base).dtype
        flat = _flat_view(base)
        if one:
            value = for_dtype(value, dtype) if handles.is_scalar(value) else value
            if not handles.is_lazy(value):
                blank = np.empty(1, dtype)
                blank.flat[0] = value       # which NumPy converts in its own way here
                value = blank[0]
        else:
            if handles.is_scalar(value):
                value = handles.value_of(value, "assigned to flat")
            if not handles.is_array(value):
                value = converted(value, dtype, by_arrays=True)
            if not value.size:
                return      # NumPy does not even look at the index
            # The values are repeated or cut to fit, as NumPy's flat assignment does.
            where = np.arange(size)[handles.host_of(key, "an index of flat") if handles.is_lazy(key) else key].ravel()
            value = function.run(np.resize, (value.ravel(), (where.size,)), {}) if handles.is_array(value) else (
                np.resize(value.ravel(), where.size))
        if type(key) is slice and key == slice(None):
            base[...] = value.reshape(base.shape)
        elif flat is not None:
            flat[key if one or isinstance(key, slice) else where] = value
        elif one:
            if not -size <= key < size:
                raise IndexError(f"index {key} is out of bounds for size {size}")
            base[tuple([int(k) for k in np.unravel_index(key % size, base.shape)])] = value
        else:
            base[np.unravel_index(where, base.shape)] = value

    def copy(self) -> ArrayHandle:
        """The elements as a new one-dimensional array."""
        return self.base.flatten()

    def __delitem__(self, key: Any) -> None:
        raise TypeError("Cannot delete iterator elements")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The elements on the host: live where they lie in this order, else a copy, which is read-only."""
        in_order = handles.meta_of(self.base).flags.c_contiguous
        array = handles.alias_of(self.base.reshape(-1) if in_order else self.base.flatten(), "np.asarray")
        if not in_order:
            array.flags.writeable = False
        return np.array(array, dtype, copy=copy)

    def _compared(self, compare: Callable[[Any, Any], Any], other: Any) -> Any:
        return compare(self.copy(), other.copy() if type(other) is LazyFlatIter else other)

    __eq__ = functools.partialmethod(_compared, operator.eq)
    __ne__ = functools.partialmethod(_compared, operator.ne)
    __lt__ = functools.partialmethod(_compared, operator.lt)
    __le__ = functools.partialmethod(_compared, operator.le)
    __gt__ = functools.partialmethod(_compared, operator.gt)
    __ge__ = functools.partialmethod(_compared, operator.ge)


def _flat_view(x: ArrayHandle) -> ArrayHandle | None:
    meta = views.reshaped(handles.meta_of(x), -1)
    return None if meta is None else handles.view_of(x, meta)


def _overlaps(x: ArrayHandle, value: Any) -> bool:
    """Whether values to assign may lie in the memory of `x`, on either side: NumPy's iterators copy none of them
    beforehand, so that what has been written is read again."""
    storage, meta = x._self_storage, handles.meta_of(x)
    if handles.is_array(value):
        other = handles.meta_of(value)
        return (type(storage) is not Storage or value._self_storage is storage) and views.overlap(meta, other)
    if type(value) is not np.ndarray:
        return False
    if type(storage) is not Storage:
        return views.overlap(meta, value)
    mirror = storage.mirror
    return mirror is not None and mirror.lent and views.overlap(mirror.bytes, value)


_UNUSUAL = "an index of flat that means something else for a vector"


def _is_usual(key: Any, size: int) -> bool:
    """Whether an index of `flat` means what it means for a vector; iterators have their own view of the others."""
    if isinstance(key, (bool, np.bool_)):
        return False
    if key is Ellipsis or isinstance(key, (int, np.integer, slice)):
        return True
    if type(key) is list:
        return all(type(i) is int for i in key)
    if not isinstance(key, np.ndarray):
        return False
    return key.dtype.kind in "iu" and key.ndim > 0 or key.dtype == bool and key.shape == (size,)


def _read_flat(array: np.ndarray, key: Any) -> Any:
    return array.flat[key]


def _write_flat(array: np.ndarray, key: Any, value: Any) -> None:
    array.flat[key] = value
