"""Making and unmaking lazy arrays: what is inside one, and where a result belongs.

A lazy array is (storage, meta); a scalar is the same with no dimensions. The classes
themselves are made in `array/array.py`, which binds them here, so that everything between the
storage and the face can make them without knowing them.

`wrap` is the one place that decides aliasing: a device array that lies inside the memory
of an argument, or inside memory that others were handed, is a view of that storage.
"""
from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native, devices
from ..devices.base import owner_of
from ..errors import NotOnDevice
from ..errors.interrupts import holding
from ..errors.own_threads import others_run
from ..events import trace
from ..settings.options import current as current_options
from . import exports, foreign_streams, transfer, upload_cache, views
from .mirror.aliases import Early, lend_early
from .state import making_lock, small_limit, tick
from .statements import held
from .storage import Storage
from .writeable import writeable

if TYPE_CHECKING:
    from ..devices import Device
    from ..events.event import Kind

if TYPE_CHECKING:
    _Proxy = np.ndarray     # so that it may go where a program says ndarray, as `isinstance` allows
    _Number = np.number
else:
    _Number = object

    class _Proxy:
        """The base of the class, which may get further ones (Python refuses that to a class whose base is `object`)."""

        __slots__ = ("__weakref__",)


class _Known:
    """A base whose module is NumPy's: libraries that do not import NumPy look for one (``sympy.sympify``)."""

    __slots__ = ()
    __module__ = "numpy"


class ArrayHandle(_Proxy, _Known):
    """What a lazy array is made of: one view of one storage. `LazyNdarray` gives it its members."""

    __slots__ = ("_self_storage", "_self_meta", "_self_array", "_self_base", "_self_leaf", "_self_host", "_self_home")


class ScalarHandle(_Number):
    """What a lazy scalar is made of: a storage of one element, or its value. `LazyScalar` gives it its members."""

    # No proxy: libraries ask `hasattr(s, "__len__")` or for `Iterable`, and a proxy has every special method.
    __slots__ = ("_self_storage", "_self_meta", "_self_array", "_self_base", "_self_value", "__weakref__")


class Home:
    """What a small lazy array that is nothing but an ndarray yet shares with its views: see `completed`.

    `sent`: how often the device has needed its bytes, once it has, see `stays_light`. `lent`: the aliases of it, once
    there was one, see `lent_light`.
    """

    __slots__ = ("array", "storage", "sent", "lent")


array_type = None
scalar_type = None
_new = object.__new__
#: Sets a field at once; an assignment would ask the class of arrays first, which programs' assignments are for.
_set = object.__setattr__


def bind(array: type, scalar: type) -> None:
    """Tell which classes wrap arrays and scalars (called once, by `array/array.py`)."""
    global array_type, scalar_type, _new
    array_type, scalar_type, _new = array, scalar, array.__new__


class HostStorage:
    """Bytes that the device can't read as elements of their dtype: a plain ndarray with the storage's verbs.

    The device has no such dtype, or the array is a view with elements at other places than multiples of their size.
    The meta of such an array is the array itself.
    """

    __slots__ = ("device", "reads", "__weakref__")

    state = "host"
    pending = readers = None
    place = contextlib.nullcontext
    clean = False
    stream = None
    loans = ()
    mirror = None
    nbytes = 0

    def __init__(self, device: Device) -> None:
        self.device = device
        self.reads = 0

    def before_change(self) -> None:
        """Nothing is recorded that reads host arrays."""

    def read_device(self, view: np.ndarray, array: Any = None, why: str = "operand") -> Any:
        raise NotOnDevice(self.refusal(view.dtype))

    def write_device(self, view: np.ndarray, array: Any = None, overwrite: bool = False) -> Any:
        raise NotOnDevice(self.refusal(view.dtype))

    def lend_device(self, view: np.ndarray, why: str) -> Any:
        raise NotOnDevice(self.refusal(view.dtype))

    def refusal(self, dtype: np.dtype) -> str:
        """Why the device can't have these bytes."""
        if self.device.can_hold(dtype):
            return "the array is a view of memory on the host"
        return f"dtype {dtype} is not supported on the device"

    def read_host(self, view: np.ndarray, why: str) -> np.ndarray:
        return view.view()

    def expose_host(self, view: np.ndarray, why: str) -> np.ndarray:
        return view.view()

    def expose_again(self, view: np.ndarray, why: str) -> np.ndarray:
        return view

    def is_aliased(self, meta: np.ndarray) -> bool:
        """Whether somebody has an alias of `meta`, beside the array whose meta it is, and who asks."""
        # References: the array's, that of who asks, ours and the call's; to the owner the meta's and the last two.
        owner = meta.base
        return sys.getrefcount(meta) > 4 or owner is not None and sys.getrefcount(owner) > 3

    def prefetch(self, view: np.ndarray) -> None:
        """It is on the host."""

    def pin_host(self, view: np.ndarray, why: str) -> int:
        return view.ctypes.data


# -- making ----------------------------------------------------------------------------------

def new_array(storage: Storage | HostStorage, meta: np.ndarray | None, array: Any = None,
              base: Any = None, /) -> ArrayHandle:
    """A LazyNdarray of `meta` in `storage`; `array`: its device array, `base`: what it is a view of."""
    x = _new(array_type)
    x._self_storage = storage
    x._self_meta = meta
    x._self_array = array
    x._self_base = base
    x._self_leaf = x._self_host = None
    return x


if _native.recording is not None:
    new_array = _native.recording.new_array


def new_scalar(storage: Storage | None, meta: np.ndarray | None, array: Any = None,
               source: Any = None, value: np.generic | None = None) -> ScalarHandle:
    """A LazyScalar of the one element of a storage that nobody else can reach; `value`: it, if it is on the host.

    `source`: a weak reference to the storage of which it is an element, or None.
    """
    s = object.__new__(scalar_type)
    s._self_storage = storage
    s._self_meta = meta
    s._self_array = array
    s._self_base = source
    s._self_value = value
    return s


def scalar_of_value(value: np.generic) -> ScalarHandle | np.generic:
    """A LazyScalar whose value is on the host; it goes to the device as a kernel argument.

    A value that the device can't hold is NumPy's own scalar: a string that only looks like a str is none to
    ``str.join``, and a date none to NumPy's own parser.
    """
    if not devices.current().can_hold(value.dtype):
        return value
    return new_scalar(None, None, value=value)


def view_of(x: ArrayHandle, meta: np.ndarray) -> ArrayHandle:
    """A view of the storage of `x`."""
    base = x._self_base
    return new_array(x._self_storage, meta, None, x if base is None else base)


def looked_at(x: ArrayHandle, way: Callable[[np.ndarray], np.ndarray], dtype: np.dtype) -> ArrayHandle:
    """A view of the memory of `x` that `way` makes of an ndarray, with this dtype.

    Where the device could not read the elements, it is the alias on the host that NumPy would hand out.
    """
    storage = x._self_storage
    if type(storage) is not Storage:
        return view_of(x, way(meta_of(x)))
    if storage.device.can_hold(dtype):
        meta = way(meta_of(x))
        if storage.holds(meta):
            return view_of(x, meta)
    alias = way(alias_of(x, f"viewed as {dtype}"))
    return new_array(HostStorage(storage.device), alias, None, x)


def turned(x: ArrayHandle) -> ArrayHandle:
    """A view of a lazy array with its axes reversed."""
    return view_of(x, meta_of(x).T)


def reshaped(x: ArrayHandle, shape: tuple[Any, ...]) -> ArrayHandle | None:
    """A view of a lazy array in C order in another shape, a tuple of integers, or of one such tuple; else None."""
    if len(shape) == 1 and type(shape[0]) is tuple:
        shape = shape[0]
    elif not shape:
        return None
    for n in shape:
        if type(n) is not int:
            return None
    meta = meta_of(x)
    return view_of(x, meta.reshape(shape)) if meta.flags.c_contiguous else None      # NumPy needs no copy


def wrap(device: Device, array: Any, sources: Sequence[Any] = (), scalar: bool = True,
         fresh: bool = False) -> ArrayHandle | ScalarHandle:
    """The lazy array of a device array, a view of the storage it lies in if that is known.

    Parameters
    ----------
    sources : sequence of lazy arrays
        The arguments of the call whose result this is.
    scalar : bool
        A result without dimensions is a LazyScalar (a snapshot), as where NumPy returns a scalar.
    fresh : bool
        NumPy's result is a new array: where the device gives an argument back, or a view of one, it is copied.
    """
    if fresh:
        known = (device.root(array) is not array or any(array is x._self_array for x in sources)) and (
            _home(device, array, sources) is not None) or upload_cache.is_kept(device, array)
    elif array.ndim or not scalar:
        found = inside(device, array, sources)
        return _of_new_memory(device, array) if found is None else found
    else:
        known = _home(device, array, sources) is not None or exports.owner(device, array) is not None or (
            upload_cache.is_kept(device, array))
    if known:
        array = array.copy("K")
    return new_scalar(Storage(device, array), None, array) if not array.ndim and scalar else _of_new_memory(
        device, array)


def fresh(device: Device, array: Any) -> ArrayHandle | ScalarHandle:
    """The lazy array of a device array that nobody else holds, in memory that is new."""
    if array.ndim:
        return new_array(Storage(device, array), None, array)
    return new_scalar(Storage(device, array), None, array)


def _of_new_memory(device: Device, array: Any) -> ArrayHandle:
    """The lazy array of a device array in memory that no argument lies in.

    Results of one call may be views of one new array, as those of ``nonzero`` are, element by element in turn. They
    share a storage: one over each would copy the bytes of the others with its own.
    """
    if upload_cache.is_kept(device, array):
        array = array.copy("K")
    root = device.root(array)
    if root is array or not array.size:
        return new_array(Storage(device, array), None, array)
    storage = exports.owner(device, array)
    if storage is None:
        whole = array.nbytes == root.nbytes     # as a transposed result: it may be fetched as it lies there
        storage = Storage(device, array if whole else root)
        exports.own(storage)
        if whole:
            return new_array(storage, None, array)
    meta = views.meta(array.shape, array.dtype, array.strides,
                            device.first(array) - device.extent(storage.block)[0])
    return new_array(storage, meta, array)


def inside(device: Device, array: Any, sources: Sequence[Any], held: bool = True) -> ArrayHandle | None:
    """The view that a device array is, of an argument or, if it is `held`, of memory that others hold; None if its
    memory is new.
    """
    for x in sources:
        if array is x._self_array and is_array(x):
            return x        # the function gave back its argument
    home = _home(device, array, sources, held)
    if home is None:
        return None
    storage, offset, source = home
    meta = views.meta(array.shape, array.dtype, array.strides, offset)
    if source is None:
        return new_array(storage, meta, array)
    if not writeable(meta_of(source)):
        meta.flags.writeable = False
    base = source._self_base
    return new_array(storage, meta, array, source if base is None else base)


def _home(device: Device, array: Any, sources: Sequence[Any], held: bool = True) -> tuple[Storage, int, Any] | None:
    """(storage, offset, source or None) of memory that is known, None if it is new."""
    if array.size == 0:
        return None
    start, stop = device.extent(array)
    for x in sources:
        storage = x._self_storage
        if type(storage) is Storage and (storage.root is not None or storage._block is not None
                                         or storage.pending is not None):
            low, high = device.extent(storage.block)
            if low <= start and stop <= high:
                return storage, device.first(array) - low, x
    found = exports.find(device, array) if held else None
    return None if found is None else (*found, None)


def share(device: Device, array: Any) -> ArrayHandle:
    """A lazy array of device memory that somebody else holds too; nothing is copied."""
    found = exports.find(device, array) if array.size else None
    if found is not None:
        storage, offset = found
        return new_array(storage, views.meta(array.shape, array.dtype, array.strides, offset), array)
    if not array.size:
        return new_array(Storage(device, array), None, array)
    # A loan of it to ourselves, as it were: all views of the storage hold the loan, so that whatever else holds the
    # memory is somebody else's. When nothing does, nobody writes it behind our back any more.
    # It is a loan of the whole array that this one is a view of, of which other views may come.
    root = device.root(array)
    own, token = device.lend(root)
    storage = Storage(device, own)
    storage.loans = (exports.Held(device, token),)
    storage.clean = not foreign_streams.partners
    exports.register(storage)
    if root is array:
        return new_array(storage, storage.root_meta(), own)
    return new_array(storage, views.meta(array.shape, array.dtype, array.strides,
                                            device.first(array) - device.extent(storage.block)[0]))


def taken(device: Device, array: Any) -> ArrayHandle:
    """A lazy array that has the memory of a device array, which nobody uses any more, for its own.

    If others may use the memory nevertheless, it is shared: arrays of theirs, lazy ones, or another library's.
    """
    if array.size and (exports.find(device, array) is not None or exports.held_besides(device, array)):
        return share(device, array)
    return _of_new_memory(device, array)


def _counted_bytes(array: np.ndarray) -> int:
    """The bytes of an array as those of small arrays are counted, see `element_bytes` in C."""
    kind, itemsize = array.dtype.kind, array.itemsize
    return array.size * (4 if kind == "b" else max(itemsize, 8) if kind in "iu" else itemsize)


def from_host(array: np.ndarray, why: str = "asarray", eager: bool = True) -> ArrayHandle:
    """A lazy array with a copy of a host array: on the device if it can hold the dtype and `eager`.

    A small array, or a result of a host function (`eager` false), is not uploaded before the device needs it. Of few
    integers both sides have a copy: the host looks for the bounds of an index.
    """
    device = devices.current()
    if not device.can_hold(array.dtype):
        return new_array(HostStorage(device), np.array(array, subok=False))
    if _counted_bytes(array) <= small_limit() and (
            small := small_on_host(np.array(array, order="K", copy=True, subok=False))) is not None:
        return small
    if not eager or device.usable() is not None:
        return new_array(*Storage.from_host(device, array))
    if array.dtype.kind in "iu" and array.nbytes <= upload_cache.COPIED and small_limit() and (
            current_options().small_on_host):
        return new_array(*Storage.on_both(device, array, why))
    on_device = transfer.to_device(device, array, why)
    return new_array(Storage(device, on_device), None, on_device)


def host_result(array: np.ndarray) -> ArrayHandle:
    """A lazy array of a host function's result, which nobody else holds."""
    if (small := small_on_host(array)) is not None:
        return small
    device = devices.current()
    if not device.can_hold(array.dtype):
        return new_array(HostStorage(device), array)
    return new_array(*Storage.from_host(device, array))


def adopted_result(array: np.ndarray) -> Any:
    """`host_result` of what NumPy computed for C, which is small no more, or of a dtype for the host."""
    if array.base is not None:
        device = devices.current()
        if type(array.base) is np.ndarray and not device.can_hold(array.dtype):
            return view_of(new_array(HostStorage(device), array.base), array)   # NumPy made that in between
        array = array.copy("K")
    result = host_result(array)
    if not array.flags.writeable:       # as what `numpy.imag` gives of real numbers
        result.setflags(write=False)
    return result


def zeros(shape: Any, dtype: Any) -> ArrayHandle:
    """A lazy array of zeros, on the device if it can be."""
    device = devices.current()
    nbytes = math.prod(shape if type(shape) is tuple else (shape,)) * np.dtype(dtype).itemsize
    if nbytes <= small_limit() or not device.can_hold(np.dtype(dtype)) or device.usable() is not None:
        return host_result(np.zeros(shape, dtype))
    array = device.xp.zeros(shape, dtype)
    return new_array(Storage(device, array), None, array)


# -- small arrays on the host ------------------------------------------------------------------
#
# A lazy array that NumPy has made on the host is nothing but its ndarray, `_self_host`, until somebody asks for more:
# its class then calls `completed`. All but that is in C, `_native/recording_host.h`.

def completed(x: ArrayHandle, name: str) -> Any:
    """A slot that `x` has not filled yet: its storage, current on the host, or its meta; else AttributeError."""
    if name == "_self_storage":
        home = None if _native.recording is None else _native.recording.home(x)
        if home is None:        # another thread was quicker; or it is being made, and this raises AttributeError
            return object.__getattribute__(x, name)
        storage = _promoted(home, lambda device, array: Storage.over_host(device, array, _lent_of(home)))
        x._self_storage = storage
        x._self_home = None
        return storage
    if name == "_self_meta":
        storage, host = x._self_storage, x._self_host
        if host is None:    # another thread has made it
            return object.__getattribute__(x, name)
        offset = host.__array_interface__["data"][0] - _memory_of(host, storage) if host.size else 0
        meta = views.meta(host.shape, host.dtype, host.strides, offset)
        if not writeable(host) and host.base is not None:       # of its own memory NumPy says so for a call's time
            meta.flags.writeable = False
        _set(x, "_self_meta", meta)
        return meta
    if name == "_self_home":
        return None
    raise AttributeError(name)


def _promoted(home: Home, make: Callable[[Device, np.ndarray], Storage]) -> Storage:
    """The storage of the arrays that share a home, made if there is none yet."""
    if home.storage is None:
        try:
            promoted.append(home)
            for _ in range(1000):
                if home not in written or _native.recording.is_under_way():     # type: ignore[union-attr]
                    break
                time.sleep(1e-3)        # another thread's statement writes it
            made = make(devices.current(), home.array)
            with holding(making_lock):       # several views may be asked at once
                if home.storage is None:
                    home.storage = made
        finally:
            _leave(promoted, [home])
    return home.storage     # type: ignore[no-any-return]


def moved(x: ArrayHandle) -> bool:
    """Whether a small array that is nothing but its ndarray has moved to the device, which is about to write it."""
    if not others_run() and _moved_whole(x, devices.current()):
        return True
    home = _native.recording.home(x)    # type: ignore[union-attr]
    if home is None or home.storage is not None or not home.array.size:
        return False
    x._self_storage = _promoted(home, lambda device, array: _on_device(device, array, _lent_of(home)))
    x._self_home = None
    return x._self_storage.clean    # type: ignore[no-any-return]


def _moved_whole(x: ArrayHandle, device: Device) -> bool:
    """The same of one whose memory nobody else knows: there is none on the host from then on."""
    native = _native.recording
    host = native.lone(x)   # type: ignore[union-attr]
    root = _sent(device, host) if host is not None and host.size else None
    if root is None:
        return False
    storage = _with_bounds(Storage(device, root), host)
    return native.move(x, host, storage, root) and storage.clean    # type: ignore[no-any-return, union-attr]


def _sent(device: Device, array: np.ndarray) -> Any:
    """A copy of a small array on the device, or None where that can't be. Zeros are not sent."""
    if not (array.flags.forc and device.can_hold(array.dtype)) or device.usable() is not None:
        return None
    if transfer.extent_bytes(array).view(bool).any():
        return transfer.to_device(device, array, "written on the device", allowed=True)
    return device.xp.zeros(array.shape, array.dtype, "C" if array.flags.c_contiguous else "F")


def _lent_of(home: Home) -> set[Early]:
    """The aliases of a home's ndarray."""
    try:
        return home.lent
    except AttributeError:      # no call comes in between, in which a handler could make another one
        lent = home.lent = set()
        return lent


def _on_device(device: Device, array: np.ndarray, lent: set[Early]) -> Storage:
    """A storage over the memory of an ndarray, current on the device alone, if that can be."""
    root = None if lent else _sent(device, array)
    made = Storage.over_host(device, array, lent, root)
    return made if root is None else _with_bounds(made, array)


def _with_bounds(made: Storage, array: np.ndarray) -> Storage:
    if array.dtype.kind in "iu":        # as `facts` keeps them, while nobody else has the storage
        made.facts = made.writes, {"bounds": (int(array.min()), int(array.max()), array.dtype)}
    return made


_PLAIN = frozenset("?bBhHiIlLqQfdFD")


def lent_light(x: ArrayHandle) -> np.ndarray | None:
    """An alias of an array that is nothing but its ndarray, and stays that; None where it gets a storage for it.

    ``host[:] = x + 1`` took 65 us, most of them for a storage of `x + 1`, and takes 13 (on an H200's host 7). A new row
    each time, ``np.asarray(x[i])``, took 14 with a storage, and takes 6.5; one array each time 4.3, and 6.5 (3.13, the
    simulated device).
    """
    home = _native.recording.home(x) if is_light(x) else None   # type: ignore[union-attr]
    host = x._self_host
    if home is None or home.storage is not None or promoted or others_run():
        return None
    if getattr(home, "sent", 0) or not (     # what is sent again is told from what was written
            host.flags.behaved and home.array.flags.forc and host.size and host.dtype.char in _PLAIN
            and host.dtype.isnative):
        return None
    if trace.before_host_use is not None:
        trace.before_host_use()
    alias = lend_early(host, home.array, _lent_of(home))
    return None if home.storage is not None or promoted else alias      # a handler may have given it one meanwhile


#: The homes of arrays that statements write on the host now, of which the part in C tells, too; and of those that are
#: about to get a storage. Who adds to one looks into the other then: of two threads, one sees what the other will do.
written: list[Any] = []
promoted: list[Any] = []


def _leave(announced: list[Any], homes: list[Any]) -> None:
    """Take out homes, as far as they are in: an interrupt may have come before they were."""
    for home in homes:
        if home in announced:
            announced.remove(home)


def held_on_host(arrays: list[ArrayHandle], statement: Callable[..., Any], *args: Any) -> Any:
    """`statements.held`, where arrays that are nothing but ndarrays stay that: none gets a storage until it is over."""
    home_of = _native.recording.home    # type: ignore[union-attr]
    homes = [home for x in arrays if (home := home_of(x)) is not None]
    if len(homes) == len(arrays):
        try:
            written.extend(homes)
            # In this order: who promotes one gives it its storage first, and then takes it out of the list.
            if {*map(id, homes)}.isdisjoint(map(id, promoted)) and {home.storage for home in homes} == {None}:
                return statement(*args)
        finally:
            _leave(written, homes)
    return held(arrays, statement, *args)


def _memory_of(host: np.ndarray, storage: Any) -> int:
    """The address of a storage's memory that an ndarray lies in, also where that is no longer its mirror; of somebody
    else's memory the mirror may be a part.
    """
    mirror = getattr(storage, "mirror", None)
    if mirror is not None and mirror.address <= host.__array_interface__["data"][0] < mirror.address + mirror.nbytes:
        return mirror.address   # type: ignore[no-any-return]
    return transfer.extent_bytes(owner_of(host)).__array_interface__["data"][0]   # type: ignore[no-any-return]


#: A storage takes as long to make as so many looks for bytes that were uploaded before: operators beside a large array
#: took 66, 160 and 390 us for two, eight and twelve times with a result of 32 kB of the host (320, 360 and 360 with a
#: storage from the second time on; the simulated device).
_FEW_TIMES, _MOST_COMPARED = 8, 96 << 10


def stays_light(x: ArrayHandle, host: np.ndarray) -> bool:
    """Whether `x`, which is nothing but the ndarray `host`, stays so although the device needs its bytes.

    So it is a few times: many arrays are made, used and forgotten, some with bytes that were uploaded before. What is
    needed again gets a storage, and is current on both sides from then.
    """
    home = _native.recording.home(x)    # type: ignore[union-attr]
    if home is None:        # another thread has given it a storage
        return False
    times = getattr(home, "sent", 0)
    if times < _FEW_TIMES and views.each_once(host).nbytes <= _MOST_COMPARED and not _lent_of(home):
        home.sent = times + 1
        return True
    storage = x._self_storage
    if host is home.array and (kept := upload_cache.found(storage.device, host)) is not None:
        storage.take_copy(kept)
    return False


def detached(x: ArrayHandle) -> np.ndarray:
    """The meta of an array that is about to look at its bytes in another way: its ndarray will be made anew."""
    meta = meta_of(x)
    x._self_storage  # noqa: B018  which makes it
    x._self_host = None
    return meta


def seen_on_host(x: ArrayHandle) -> np.ndarray | None:
    """The ndarray of a lazy array whose storage has all its bytes on the host; None if they are no longer there."""
    meta, storage = meta_of(x), x._self_storage
    mirror = storage.mirror
    if mirror is None or storage.host is None:      # another thread was short of memory
        return None
    offset = views.offset_of(meta) if meta.size else 0
    host = np.ndarray(meta.shape, meta.dtype, mirror.bytes, offset, meta.strides)
    if not writeable(meta):
        host.flags.writeable = False
    return host


def wrote_on_host(x: ArrayHandle) -> None:
    """The host has written `x`, all of which was current there."""
    x._self_storage.wrote_host(meta_of(x))


def small_on_host(array: np.ndarray) -> ArrayHandle | None:
    """A lazy array that is a new ndarray, which nobody else holds; None if it is not small."""
    if _native.recording is None or array.nbytes > small_limit() or not current_options().small_on_host:
        return None
    if array.base is None and not array.flags.writeable:
        array = array.copy("K")     # memory of our own is written
    return _native.recording.host_array(array)


# -- unmaking --------------------------------------------------------------------------------

def is_lazy(obj: Any) -> bool:
    """Whether `obj` is a LazyNdarray or a LazyScalar."""
    kind = type(obj)
    return kind is array_type or kind is scalar_type or isinstance(kind, type) and issubclass(
        kind, (array_type, scalar_type))


#: Whether a lazy array is nothing but its ndarray yet: who asks for its storage makes that.
is_light: Callable[[Any], bool] = (lambda x: False) if _native.recording is None else _native.recording.is_light


def is_array(obj: Any) -> bool:
    kind = type(obj)
    return kind is array_type or issubclass(kind, array_type)


def is_scalar(obj: Any) -> bool:
    kind = type(obj)
    return kind is scalar_type or issubclass(kind, scalar_type)


def meta_of(x: ArrayHandle | ScalarHandle) -> np.ndarray:
    """The meta of a lazy array, made on first need where the device array came first."""
    meta = x._self_meta
    if meta is None:
        if x._self_storage is None:     # a scalar whose value is on the host
            return views.meta((), x._self_value.dtype)
        meta = x._self_storage.root_meta()
        _set(x, "_self_meta", meta)
    return meta


def same_place(x: ArrayHandle, y: ArrayHandle) -> bool:
    """Whether two arrays have the same elements of one memory in the same order."""
    if x is y:
        return True
    hosts = x._self_host, y._self_host
    if is_light(x) and is_light(y) and hosts[0] is not None and hosts[1] is not None:
        return views.same_place(*hosts)     # and both stay light
    return x._self_storage is y._self_storage and views.same_place(meta_of(x), meta_of(y))


def device_of(x: ArrayHandle | ScalarHandle, why: str = "operand") -> Any:
    """The device array of a lazy array, current; a NumPy scalar for a LazyScalar known on the host."""
    storage = x._self_storage
    if storage is None:
        return x._self_value
    array = x._self_array
    if array is not None and storage.clean:
        written, current = storage.stream, storage.device.stream()
        if written is current or written == current:
            storage.used = tick()
            return array
    meta = meta_of(x)
    array = storage.read_device(meta, array, why)
    keep(x, meta, array)
    return array


def operand_of(x: ArrayHandle | ScalarHandle, why: str = "operand") -> Any:
    """As `device_of`, but on the current device: a copy of what lies on another one. It is only to be read."""
    array = device_of(x, why)
    storage = x._self_storage
    if storage is None or not (device := storage.device).spread:
        return array
    return transfer.to_current(device, array, why)


def keep(x: ArrayHandle | ScalarHandle, meta: np.ndarray, array: Any) -> None:
    """Let a lazy array know its device array, unless another thread has changed the way in which it looks at it."""
    if x._self_meta is meta:
        _set(x, "_self_array", array)
        if x._self_meta is not meta:
            x._self_array = None


def host_of(x: ArrayHandle | ScalarHandle, why: str) -> np.ndarray:
    """A private, read-only host array of a lazy array (a NumPy scalar of a LazyScalar)."""
    if is_scalar(x):
        return value_of(x, why)
    return x._self_storage.read_host(meta_of(x), why)


def alias_of(x: ArrayHandle, why: str) -> np.ndarray:
    """A host array of `x` for foreign code: live, and writable if `x` is."""
    if trace.before_host_use is not None and x._self_storage.mirror is not None:    # else it is copied, with an event
        trace.before_host_use()
    return x._self_storage.expose_host(meta_of(x), why)


def value_of(s: ScalarHandle, why: str = "value of a scalar") -> np.generic:
    """The NumPy scalar of a LazyScalar; fetched once."""
    value = s._self_value
    if value is None:
        if type(s._self_base) is Comparison:
            return s._self_base.value(s, why)
        storage = s._self_storage
        with holding(storage.lock):
            value = s._self_value
            if value is None:
                source = s._self_base
                if source is not None:
                    if (storage_of_all := source()) is not None:
                        storage_of_all.reads += 1
                    s._self_base = None
                kind = "synchronise" if transfer.steering.get() else "materialise"
                with storage.place():
                    value = _element_of(storage, why, kind)
                    if value is None:
                        value = transfer.to_host(storage.device, device_of(s, why), why, kind)[()]
                    s._self_value = value
    return value


def _element_of(storage: Any, why: str, kind: Kind) -> Any:
    """The value of an element whose copy on the device waits: it is fetched from where it is, without a kernel.

    None where it is not such, or somebody writes it: its copy is computed before it is written.
    """
    node = storage.pending
    leaf = None if node is None else node.copied()
    if leaf is None:
        return None
    source, current = leaf.storage, storage.device.stream()
    if not source.clean or source.foreign or source.loans or not (source.stream is current or source.stream == current):
        return None
    writes = source.writes
    value = transfer.to_host(storage.device, leaf.array, why, kind)[()]
    unwritten = node.array is None and source.clean and source.writes == writes     # who writes computes the copy first
    return value if unwritten and not (source.foreign or source.loans) else None


class Comparison:
    """What a scalar is the comparison of. Who asks whether it holds gets it from the operands' values.

    They are fetched once, and serve the next comparison, too; the host's answer is that of the device.
    """

    __slots__ = ("on_host", "operands")

    def __init__(self, on_host: Callable[[Any, Any], Any], *operands: Any) -> None:
        self.on_host, self.operands = on_host, operands

    def value(self, s: ScalarHandle, why: str) -> np.generic:
        """The value of `s`, which is this comparison; it keeps it."""
        value: np.generic = self.on_host(*[value_of(o, why) if is_scalar(o) else o for o in self.operands])
        s._self_value = value
        s._self_base = None
        return value


def as_array(s: ScalarHandle) -> ArrayHandle:
    """A 0-d LazyNdarray with the value of a LazyScalar."""
    if s._self_storage is None:
        return host_result(np.asarray(s._self_value))
    with s._self_storage.place():
        array = device_of(s).copy()
        return new_array(Storage(s._self_storage.device, array), None, array)
