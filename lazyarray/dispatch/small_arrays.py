"""Small arrays that are current on the host: NumPy computes at once, and its results stay on the host.

A call is decided by three facts, none of which depends on time: every array among its arguments is small (`limit`), all
of them are current on the host, and the result is small, too. Operators, ufuncs, methods and most functions are decided
in C (`_native/recording_host.h`). This file has the rest: which functions may be called so (`ON_HOST`), those whose
results can be larger than their arguments (`GROWING`), and calls that write into an argument.
"""
from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native, devices
from ..errors.own_threads import others_run
from ..events import trace
from ..events.trace import begin, end
from ..functions import tables, written_parameters
from ..functions.creation import MAKING
from ..functions.pytree import replace
from ..functions.views import VIEWS
from ..graph import cost_model
from ..settings.options import current as current_options
from ..storage import handles, transfer, upload_cache, views
from ..storage.handles import is_light, small_on_host
from ..storage.state import small_limit as limit
from ..storage.statements import within
from .cheap_on_host import COSTLY, COSTS, cost_of
from .host_fallback import name_of

if TYPE_CHECKING:
    from ..devices import Device

__all__ = ["GROWING", "ON_HOST", "fetched", "for_native", "form_of", "is_light", "limit", "made", "measured", "on_host",
           "quick_array", "run", "run_ufunc", "to_hold", "to_write", "writing"]

_native_run = None if _native.recording is None else _native.recording.run_on_host
#: The ndarray of a lazy array that is small (or ``on_host(x, True)``) and current on the host, or None.
on_host: Callable[..., np.ndarray | None] = (
    (lambda x, any_size=False: None) if _native.recording is None else _native.recording.on_host)
REASON = "computed on the host: small"


def begin_on_host(callee: Callable[..., Any]) -> Any:
    """Announce that NumPy is about to compute; for C, which asks only if somebody listens."""
    return begin("host", 0, None, None, REASON, name_of(callee))


def end_on_host(token: Any, result: Any) -> None:
    """NumPy has computed `result`; of an answer without arrays, such as a shape, nothing is told."""
    first = result[0] if isinstance(result, (tuple, list)) and result else result
    if token is not None and (result is None or isinstance(first, (np.ndarray, np.generic))):
        if first is not None:
            token.fields.update(shape=first.shape, dtype=first.dtype)
        end(token)


def given_back(result: Any, items: tuple[Any, ...]) -> Any:
    """A named tuple like `result`, of `items`."""
    return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)


# -- functions whose results may be larger than their arguments: how many elements they have at most ------------------

def _size(x: Any) -> int:
    return x.size if isinstance(x, (np.ndarray, np.generic)) else np.size(x)


def _ints(x: Any) -> int:
    """The product of whole numbers."""
    return math.prod(map(operator.index, x)) if isinstance(x, (tuple, list)) else operator.index(x)


def _squared(x: Any, k: int = 0) -> int:
    return (_size(x) + abs(operator.index(k))) ** 2 if np.ndim(x) < 2 else _size(x)


def _repeated(a: Any, repeats: Any, axis: Any = None) -> int:
    if isinstance(repeats, (int, np.integer)):
        return _size(a) * max(operator.index(repeats), 1)
    # There is one for each element of the axis, or one for all.
    return _size(a) // max(_size(repeats), 1) * max(int(np.sum(repeats)), 1)


def _padded(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> int:
    if isinstance(pad_width, dict):
        return _size(array) + 2 * sum(map(_size, pad_width)) * _size(array)
    most = pad_width if type(pad_width) is int else int(np.max(pad_width))
    return math.prod([n + 2 * most for n in np.shape(array)])


def _transformed(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None, *, s: Any = None,
                 axes: Any = None) -> int:
    wanted = s if s is not None else n
    lengths = np.shape(a)
    if wanted is None:
        return 2 * _size(a)
    longest = max(wanted) if isinstance(wanted, (tuple, list)) else operator.index(wanted)
    return 2 * math.prod(max(length, longest) for length in lengths)


def _binned(a: Any, bins: Any = 10, *args: Any, **kwargs: Any) -> int:
    if isinstance(bins, (tuple, list)) and bins and isinstance(bins[0], (int, np.integer)):
        return math.prod(b if isinstance(b, (int, np.integer)) else _size(b) for b in bins)
    if isinstance(bins, str):
        return 0
    return operator.index(bins) if isinstance(bins, (int, np.integer)) else _size(bins)


def _binned_in_two(x: Any, y: Any, bins: Any = 10, *args: Any, **kwargs: Any) -> int:
    return _binned(x, bins) ** (1 if isinstance(bins, (tuple, list)) else 2)


def _counted(x: Any, /, weights: Any = None, minlength: Any = 0) -> int:
    host = on_host(x) if handles.is_lazy(x) else x
    return max(operator.index(minlength), int(np.max(host)) + 1 if _size(host) else 0)


def _summed(*operands: Any, **kwargs: Any) -> int:
    """Of ``einsum``: each index has the length that it has in an operand."""
    text, *arrays = operands
    if not isinstance(text, str) or "." in text:
        return math.prod(map(_size, arrays))
    inputs, arrow, output = text.replace(" ", "").partition("->")
    lengths: dict[str, int] = {}
    for names, array in zip(inputs.split(","), arrays):
        for name, n in zip(names, np.shape(array)):
            lengths[name] = max(n, lengths.get(name, 1))
    names = output if arrow else "".join(name for name in lengths if inputs.count(name) == 1)
    # The work counts too, since all of it is done in one loop; that of more than two operands takes 2.4 ns each time.
    return max(math.prod([lengths.get(name, 1) for name in names]),
               math.prod(lengths.values()) // (16 if len(arrays) < 3 else 4))


def _contracted(a: Any, b: Any, axes: Any = 2) -> int:
    if not isinstance(axes, int):
        first = axes[0] if isinstance(axes[0], (tuple, list)) else (axes[0],)
        inner = math.prod(np.shape(a)[i] for i in first)
    else:
        inner = math.prod(np.shape(a)[np.ndim(a) - axes:])
    elements = (_size(a) // max(inner, 1)) * (_size(b) // max(inner, 1))
    return max(elements, elements * inner // 16)    # as of ``einsum``


def _inner(a: Any, b: Any) -> int:
    """Of ``inner``: each row of one with each of the other."""
    length = max((*np.shape(a)[-1:], 1)[0], 1)
    elements = (_size(a) // length) * (_size(b) // length)
    return max(elements, elements * length // 16)


def _is_small_product(func: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """What C says of products, where it leaves them for another reason, such as what they are written to."""
    if len(args) < 2:
        return False
    first, second = map(np.shape, args[:2])
    if max(len(first), len(second)) > 2:
        elements = math.prod(first[:-1]) * math.prod(second[-1:])       # of stacks of one length, as most are
    else:
        elements = _inner(*args[:2])
    return elements * _itemsize(args) <= limit() // cost_of(func)


def _decomposed(a: Any, *args: Any, **kwargs: Any) -> int:
    return math.prod(np.shape(a)[:-2]) * sum(n * n for n in np.shape(a)[-2:])


def _varied(m: Any, y: Any = None, rowvar: Any = True, *args: Any, **kwargs: Any) -> int:
    rows = np.shape(m)[0 if rowvar else -1] if np.ndim(m) > 1 else 1
    return (2 * rows) ** 2 if y is not None else rows ** 2


def _spaced(start: Any, stop: Any, num: Any = 50, *args: Any, **kwargs: Any) -> int:
    return operator.index(num) * max(_size(start), _size(stop))


def _taken(a: Any, indices: Any, axis: Any = None, *args: Any, **kwargs: Any) -> int:
    return _size(indices) * (1 if axis is None else _size(a) // max(np.shape(a)[axis], 1))


def _together(*arrays: Any, **kwargs: Any) -> int:
    return math.prod(np.broadcast_shapes(*[a.shape for a in arrays if isinstance(a, np.ndarray)]))


def _product(*arrays: Any, **kwargs: Any) -> int:
    return math.prod(map(_size, arrays)) * len(arrays)


_fourier = ("fft ifft rfft irfft hfft ihfft fft2 ifft2 fftn ifftn rfft2 irfft2 rfftn irfftn").split()

def _itemsize(args: tuple[Any, ...]) -> int:
    """Bytes of an element of the result, at most, if the arrays are arguments themselves."""
    dtypes = [host.dtype for a in args
              if isinstance(host := on_host(a) if type(a) is handles.array_type else a, np.ndarray)]
    least = 4 if dtypes and all(dtype.kind in "fb" for dtype in dtypes) else 8      # of integers float64 may come
    return max([least, *[dtype.itemsize for dtype in dtypes]])


#: Function -> how many elements its result has at most, given its arguments.
GROWING: dict[Callable[..., Any], Callable[..., int]] = {
    np.repeat: _repeated, np.tile: lambda A, reps: _size(A) * max(_ints(reps), 1), np.pad: _padded,
    np.kron: _product, np.outer: lambda a, b, out=None: _size(a) * _size(b), np.meshgrid: _product, np.ix_: _product,
    np.linalg.outer: lambda x1, x2, /: _size(x1) * _size(x2),
    np.diag: _squared, np.diagflat: lambda v, k=0: (_size(v) + abs(k)) ** 2, np.tril: _squared, np.triu: _squared,
    np.vander: lambda x, N=None, increasing=False: _size(x) * (_size(x) if N is None else N),
    np.resize: lambda a, new_shape: _ints(new_shape),
    np.histogram: _binned, np.histogram2d: _binned_in_two, np.bincount: _counted,
    np.histogram_bin_edges: _binned, np.histogramdd: lambda sample, bins=10, *args, **kwargs: (
        _binned(sample, bins) ** (1 if isinstance(bins, (tuple, list)) else max(np.ndim(sample), 1) * 3)),
    np.einsum: _summed, np.tensordot: _contracted, np.inner: _inner,
    np.linalg.tensordot: lambda a, b, /, *, axes=2: _contracted(a, b, axes),
    np.linalg.svd: _decomposed, np.linalg.qr: _decomposed, np.cov: _varied, np.corrcoef: _varied,
    np.linspace: _spaced, np.logspace: _spaced, np.geomspace: _spaced, np.take: _taken,
    # The work counts too: 1e6 products take the host 170 us, and CuPy 300 (and its own launches).
    np.convolve: lambda a, v, mode="full": max(_size(a) + _size(v), _size(a) * _size(v) // 128),
    np.correlate: lambda a, v, mode="valid": max(_size(a) + _size(v), _size(a) * _size(v) // 128),
    np.i0: lambda x: _size(x) * 8,      # 100 ns for each element, where a sine takes 7
    np.broadcast_to: lambda array, shape, subok=False: _size(array),        # it has no memory of its own
    np.select: lambda condlist, choicelist, default=0: _together(*condlist, *choicelist),
    np.choose: lambda a, choices, out=None, mode="raise": _together(
        a, *(choices if isinstance(choices, (list, tuple)) else ())),
    np.linalg.multi_dot: lambda arrays, *, out=None: _size(arrays[0]) * _size(arrays[-1]),
    **{getattr(np.fft, name): _transformed for name in _fourier},
    **dict.fromkeys((np.where, np.isclose, np.allclose, np.cross, np.clip, np.take_along_axis), _together),
}
#: Those of them that mostly are told by a look at two shapes, which C does.
_BROADCAST = frozenset((np.where, np.isclose, np.allclose, np.clip, np.cross, np.take_along_axis))
_MULTIPLIED = frozenset((np.dot, np.linalg.matmul, np.linalg.vecdot))
#: Functions that make arrays like others.
_LIKE = frozenset((np.empty_like, np.zeros_like, np.ones_like, np.full_like, np.copy, np.astype))
_LENGTHENED = frozenset(getattr(np.fft, name) for name in _fourier[:6])
#: What C decides about functions that are in the table above, too.
_DECIDED = _BROADCAST | _LENGTHENED
#: Functions that are left to their own ways: they call functions of the program, or NumPy does not say what they take.
_LEFT = frozenset((
    np.apply_over_axes, np.piecewise, np.block, np.lib.stride_tricks.sliding_window_view))


#: Function -> what C knows of it: (what does it for ndarrays, how many arguments by position say nothing of `out`, what
#: makes its result large: `_native/recording_members.h`); True if Python decides, and C only counts its calls
#: (`_native/recording_runs.h`); False if neither. What is not there yet is learned when it is met.
ON_HOST: dict[Callable[..., Any], tuple[Callable[..., Any], int, int] | bool] = {}


def learned(func: Callable[..., Any]) -> tuple[Callable[..., Any], int, int] | bool:
    """The entry of a function in `ON_HOST`, made now if there is none; False of a function that no table has."""
    known = ON_HOST.get(func)
    if known is not None:
        return known
    counts = func in GROWING and func not in MAKING
    if (func in MAKING and func not in _LIKE or func in _LEFT or func in GROWING and func not in _DECIDED
            or not (func in VIEWS or func in tables.ADAPTED or func in tables.COMPOSED or func in tables.LAZY
                    or func in tables.HOST_ONLY and func.__module__ == "numpy.linalg")):
        if not counts:
            return False
        found: Any = True
    else:
        found = _entry(func) or True
    ON_HOST[func] = found
    return found


@functools.cache
def _entry(func: Callable[..., Any]) -> tuple[Callable[..., Any], int, int] | None:
    """What C needs to know of a function; None if that writes into more than `out`."""
    written = tables.WRITES.get(func, ())
    if set(written) - {"out"}:
        return None
    native, most = _native.recording, 99
    if written and (place := written_parameters.position(func, "out")) is not None:
        most = place
    kind = (native.BROADCASTS if func in _BROADCAST else native.MULTIPLIES if func in _MULTIPLIED
            else native.LENGTHENS if func in _LENGTHENED else 0)
    return getattr(func, "_implementation", func), most, kind


def run(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a function that C does not decide about, if it is the host's; else NotImplemented."""
    if not limit():
        return NotImplemented
    for a in (*args, *kwargs.values()) if kwargs else args:
        kind = type(a)
        if (kind is handles.array_type or kind is tuple or kind is list) and _is_on_host(a):
            break
    else:
        return NotImplemented
    entry = learned(func)
    if type(entry) is tuple:
        result = _native_run(func, args, kwargs, entry)
        if result is not NotImplemented:
            return result
    if func in GROWING:
        if not _stays_small(func, args, kwargs, _itemsize(args)):
            return NotImplemented
        if func not in _DECIDED and (entry := _entry(func)) is not None:
            result = _native_run(func, args, kwargs, entry)
            if result is not NotImplemented:
                return result
    elif (func in _LEFT or func in tables.HOST_ONLY and type(entry) is not tuple or func in MAKING and func not in _LIKE
          or func in _MULTIPLIED and not _is_small_product(func, args)):
        return NotImplemented
    positions, names = written_parameters.written_on_host(func, args, kwargs)
    written = [a for i, a in enumerate(args) if i in positions] + [kwargs[name] for name in names if name in kwargs]
    if func is np.nan_to_num and kwargs.get("copy", args[1] if len(args) > 1 else True):
        written = []
    result = writing(func, args, kwargs, written)
    if result is NotImplemented and func in _JOINING and len(args) == 1 and type(args[0]) in (list, tuple):
        return _joined(func, args[0], kwargs)
    return result


def _stays_small(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], itemsize: int) -> bool:
    """Whether the result of a function whose result may be larger than its arguments is small; False, too, where NumPy
    will raise an error.
    """
    growing = GROWING.get(func)
    try:
        elements = 0 if growing is None else growing(*args, **kwargs)
    except (TypeError, ValueError, IndexError, AttributeError, OverflowError):
        return False
    return elements * itemsize <= limit() // cost_of(func)


#: Matrices of a stack. For each NumPy takes 0.2 (solutions, 2 x 2) to 118 microseconds (singular vectors, 32 x 32;
#: NumPy 2.5, one core). In a program that locates earthquakes (`benchmarks/unseen/tremor.py`, H200, 2026-11-28) the
#: device took 110 of 427 ms for systems of 4 x 4, where CuPy, which does not look whether they are singular, took 31;
#: on the host they take as long as CuPy's. The limit itself was not varied.
_FEW_MATRICES = 32


def fetched(device: Device, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
            arrays: Sequence[Any]) -> Any:
    """The result of a function of matrices that waits for the device in any case, where it may as well wait for a few
    small ones; else NotImplemented.

    `arrays`: the device arrays among its arguments.
    """
    if not limit() or not current_options().small_on_host or sum(a.nbytes for a in arrays) > limit() // COSTLY or any(
            math.prod(a.shape[:-2]) > _FEW_MATRICES or not a.size for a in arrays) or not _stays_small(
            func, args, kwargs, max(a.dtype.itemsize for a in arrays)):
        return NotImplemented

    def on_host_side(a: Any) -> Any:
        return handles.host_result(transfer.to_host(device, a, REASON, "synchronise")) if isinstance(
            a, device.array_type) else a

    return run(func, replace(args, on_host_side), replace(kwargs, on_host_side))


#: Functions that put the arrays of a list together.
_JOINING = frozenset((np.concatenate, np.stack, np.vstack, np.hstack, np.dstack, np.column_stack))


def _joined(func: Callable[..., Any], items: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Many small arrays that are all on the host, as one that is not small; else NotImplemented."""
    hosts = [on_host(x) if type(x) is handles.array_type else None for x in items]
    if not hosts or not current_options().small_on_host or any(host is None for host in hosts) or (
            not {"axis", "dtype", "casting"}.issuperset(kwargs) or handles.is_lazy(kwargs.get("axis"))):
        return NotImplemented
    return handles.host_result(func(hosts, **kwargs))


def _is_on_host(x: Any, depth: int = 3) -> bool:
    """Whether `x` is a small array on the host, or a list with one."""
    if type(x) is handles.array_type:
        return on_host(x) is not None
    if depth <= 0 or type(x) not in (list, tuple) or _HOLDING.isdisjoint(map(type, x)) and (
            handles.array_type not in map(type, x)):        # of many numbers in little time
        return False
    return any(_is_on_host(item, depth - 1) for item in x)


_HOLDING = frozenset((list, tuple))


def run_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a call of a ufunc that writes into an argument, if it is the host's; else NotImplemented."""
    if not limit():
        return NotImplemented
    outs = kwargs.get("out", ())
    written = list(outs) if type(outs) is tuple else [outs]
    if method == "at":
        written.append(inputs[0])
    return writing(ufunc if method == "__call__" else getattr(ufunc, method), inputs, kwargs, written)


def writing(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], written: list[Any]) -> Any:
    """``func(*args, **kwargs)`` on the host, if all arrays are small and current there; else NotImplemented.

    `written`: the arguments into which it writes.
    """
    if not limit():
        return NotImplemented
    lazy = [x for x in written if type(x) is handles.array_type]
    if not lazy:
        return _native_run(func, args, kwargs)
    for x in lazy:
        _native.recording.lighten(x)    # type: ignore[union-attr]
        host = on_host(x)
        # What the device has, too, would have to be sent again: such a write counts as costly.
        if host is None or host.nbytes > limit() // COSTLY and not is_light(x) and (
                (storage := x._self_storage).homes > 1 and storage.fetched != storage.writes):
            return NotImplemented
    if others_run():     # one of them may take the bytes to the device meanwhile
        return handles.held_on_host(lazy, _written, func, args, kwargs, lazy)
    return _written(func, args, kwargs, lazy)


def _written(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], lazy: list[Any]) -> Any:
    """`writing`, with the lazy arrays that are written."""
    done: Any = None
    # Noted before it is done, since an interrupt may come as soon as it is; and once more when it is over, since a
    # signal handler may have had the device brought up to date in between.
    noted = [(storage := x._self_storage, storage.will_write_host(handles.meta_of(x))) for x in lazy if not is_light(x)]
    try:
        done = _native_run(func, args, kwargs)
        return done
    finally:
        if done is not NotImplemented:      # after an error too: some of it may be written
            for x in lazy:
                if not is_light(x):
                    handles.wrote_on_host(x)
        else:
            for storage, what in noted:
                storage.not_written_host(what)


_ARRAY = np.array, 99, 0 if _native.recording is None else _native.recording.MAKES


def device_operand(x: Any) -> tuple[Any, bool]:
    """The device array of a lazy array or scalar that is only read, and whether it lies in the memory of `x`.

    A small array that is nothing but an ndarray yet stays one: its bytes are among those that were uploaded before, or
    are kept from now on.
    """
    if is_light(x):
        host, device = on_host(x), devices.current()
        if host is not None and device.can_hold(host.dtype) and handles.stays_light(x, host):
            return upload_cache.operand(device, host, "operand", allowed=True), False
    return handles.operand_of(x), True


def to_write(x: Any, given: Sequence[Any]) -> bool:
    """A statement is about to write these to an array: if the device has one of them, it will do that.

    Whether the array is the device's for it from now on.
    """
    return is_light(x) and any(map(_is_devices, given)) and handles.moved(x)


def _is_devices(v: Any) -> bool:
    """Whether a lazy array or scalar is one that the host does not have."""
    return v._self_value is None if type(v) is handles.scalar_type else handles.is_array(v) and on_host(v) is None


def to_hold(given: Sequence[Any]) -> Sequence[Any]:
    """What a statement that reads these has to hold: nothing that is but an ndarray, where there is one thread."""
    return given if others_run() else [x for x in within(given) if not is_light(x)]


def form_of(x: Any) -> np.ndarray:
    """What has the shape, the dtype and the flags of a lazy array, which need not have a storage for it."""
    host = on_host(x)
    return handles.meta_of(x) if host is None else host


_MADE_OF = frozenset((list, tuple, int, float, complex, bool))


def quick_array(obj: Any, dtype: Any = None) -> Any:
    """``numpy.array`` of a number, or of a list or a tuple in which nothing is the device's alone; else None."""
    if type(obj) not in _MADE_OF and not isinstance(obj, np.generic) or not limit():
        return None
    options = current_options()
    if not options.small_on_host or not options.lazy:
        return None
    result = _native_run(np.array, (obj,) if dtype is None else (obj, dtype), {}, _ARRAY)
    return None if result is NotImplemented else result


# -- new arrays ------------------------------------------------------------------------------------------------------

def _length(*args: Any) -> int:
    start, stop, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
    return math.ceil((stop - start) / step)


#: Function that makes an array of numbers -> how many elements it has.
_MADE: dict[Callable[..., Any], Callable[..., int]] = {
    **dict.fromkeys((np.zeros, np.ones, np.empty, np.full), lambda shape, *args, **kwargs: _ints(shape)),
    np.arange: lambda *args, **kwargs: _length(*args[:3]), np.identity: lambda n, *args, **kwargs: n * n,
    **dict.fromkeys((np.eye, np.tri), lambda N, M=None, *args, **kwargs: N * (N if M is None else M)),
    **dict.fromkeys((np.tril_indices, np.triu_indices), lambda n, k=0, m=None: n * (n if m is None else m)),
    **dict.fromkeys((np.linspace, np.logspace, np.geomspace), lambda start, stop, num=50, *args, **kwargs: num),
    np.indices: lambda dimensions, *args, **kwargs: _ints(dimensions) * len(dimensions),
}
#: What is no array.
_PLAIN = frozenset((int, float, complex, bool, tuple, str, type, type(None)))


def made(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A small lazy array made by NumPy, on the host; None if it is not small, or not made of numbers."""
    if func in _LIKE and args and type(args[0]) is handles.array_type:
        entry = limit() and learned(func)
        result = _native_run(func, args, kwargs, entry) if type(entry) is tuple else NotImplemented
        return None if result is NotImplemented else result
    size = _MADE.get(func)
    if size is None or not (most := limit()) or not current_options().small_on_host:
        return None
    for value in (*args, *kwargs.values()):
        if type(value) not in _PLAIN and (isinstance(value, (np.ndarray, views.Meta)) or handles.is_lazy(value)):
            return None
    try:
        if not 0 <= size(*args, **kwargs) * 8 <= most:
            return None
    except (TypeError, ValueError, ArithmeticError):
        return None
    # Zeros need not be sent to the device. Who writes to them pays for the memory, as in ``np.empty``.
    result = (np.zeros if func is np.empty else func)(*args, **kwargs)
    if type(result) is tuple:       # several, or ``retstep``
        return tuple([small_on_host(part) if isinstance(part, np.ndarray) else part for part in result])
    return small_on_host(result)


def measured() -> None:
    """Let small arrays be those of the cost model."""
    if _native.recording is not None:
        _native.recording.small(cost_model.costs().small())


def for_native() -> dict[str, Any]:
    """What the part in C calls and looks at."""
    return {
        "Home": handles.Home, "HostStorage": handles.HostStorage,
        "seen_on_host": handles.seen_on_host, "wrote_on_host": handles.wrote_on_host,
        "written": handles.written, "promoted": handles.promoted,
        "host_result": handles.adopted_result, "given_back": given_back, "trace": vars(trace),
        "listeners": trace.listeners, "begin_on_host": begin_on_host, "end_on_host": end_on_host, "on_host": ON_HOST,
        "learned": learned,
        "costs": COSTS,
        "no_value": np._NoValue,
    }
