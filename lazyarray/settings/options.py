"""Settings, one immutable record at a time: for a block, a function, or the whole process.

The value in force lies in one ContextVar, so threads and asyncio tasks do not see each other's blocks. What no block
has changed comes from the process-wide defaults.
"""

from collections.abc import Callable
from contextlib import ContextDecorator
from contextvars import ContextVar, copy_context
from functools import wraps
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypedDict, TypeVar, Unpack, cast, get_args

from ..errors.inspection import once_made

__all__ = ["Options", "current", "options"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
Tracking = Literal["auto", "pages", "none"]


class Changes(TypedDict, total=False):
    """The settings that `options` takes by name: those of `Options`."""

    check_indices: bool
    check_linalg: bool
    ordered_assignment: bool
    warn_fallbacks: bool
    bulk_reads: int
    write_tracking: Tracking
    min_bytes: int
    pool_bytes: int | None
    defer_from: int | None
    lazy: bool
    small_on_host: bool


class _Options(NamedTuple):  # without annotations as text, see `Event`
    check_indices: bool = True
    check_linalg: bool = True
    ordered_assignment: bool = True
    warn_fallbacks: bool = True
    bulk_reads: int = 4
    write_tracking: Tracking = "auto"
    min_bytes: int = 0
    pool_bytes: int | None = None
    defer_from: int | None = 0
    lazy: bool = True
    small_on_host: bool = True


class Options(_Options):
    """The settings. Change them with `options`.

    Attributes
    ----------
    check_indices : bool
        Raise IndexError for integer index arrays that are out of range, as NumPy does. If False, the device library
        decides (CuPy wraps such indexes around), and the host does not have to wait for a check of each index array.
    check_linalg : bool
        Raise LinAlgError where ``numpy.linalg.solve``, ``inv``, ``cholesky`` and decompositions do, as for a singular
        matrix. If False, the result for such a matrix, and for infinities and NaN, is what the device library gives
        (mostly NaN, but any numbers may come), and the host does not have to wait for a check of each matrix. Small
        matrices that the host has are NumPy's, errors included.
    ordered_assignment : bool
        If an index assignment names a position several times, keep the last value, as NumPy does. If False, any of
        the values may be kept, and the indices need not be sorted.
    warn_fallbacks : bool
        Give a `HostFallbackWarning` the first time that a function runs on the host because the device does not support
        it.
    bulk_reads : int
        Number of single elements that are read before the whole array is copied to the host (at least 1).
    write_tracking : {"auto", "pages", "none"}
        How writes to aliases are detected: by the kernel's write tracking where available ("auto"), always in this way
        ("pages", an error where the kernel does not support it), or not at all ("none": all bytes that an alias covers
        are uploaded again).
    min_bytes : int
        A GPU function with a host twin calls the twin if all array arguments are on the host and have fewer bytes
        together (`lazyarray.lazy`, `lazyarray.lazy_module`). 0: never.
    pool_bytes : int or None
        Maximum amount of page-locked host memory, in bytes. Beyond it ordinary memory is used, for which copies are
        slower. None: a quarter of the machine's memory.
    defer_from : int or None
        Element-wise operations whose results have at least this number of bytes are deferred: recorded, and computed by
        one kernel when a value is needed. Smaller ones are deferred only if an operand is. None: nothing is deferred.
    lazy : bool
        If False, `asarray`, the creation functions of `lazyarray.numpy` and GPU functions (`lazyarray.lazy`,
        `lazyarray.lazy_module`) return NumPy arrays, copied at once, and no host arrays are sent to the device. Use it
        to compare a program with and without lazy arrays. Existing lazy arrays stay lazy, and so do results of NumPy
        functions for them.
    small_on_host : bool
        Arrays of a few KiB that are made on the host, or copied to it, are computed with on the host until the device
        needs them; those on the device are fetched after some calls in a row on small arrays alone. If False, arrays
        that are created here are on the device, whatever their size. It is for tests of GPU code with small arrays.
    """

    __slots__ = ()

    def __new__(cls: type[Self], *args: Any, **kwargs: Any) -> Self:
        self = super().__new__(cls, *args, **kwargs)
        self._check()
        return self

    def _check(self) -> None:
        for name in ("check_indices", "check_linalg", "ordered_assignment", "warn_fallbacks", "lazy", "small_on_host"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise TypeError(f"{name} must be True or False, not {value!r}")
        for name, least in (("bulk_reads", 1), ("min_bytes", 0), ("pool_bytes", 0), ("defer_from", 0)):
            value = getattr(self, name)
            if value is None and name in ("pool_bytes", "defer_from"):
                continue
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"{name} must be an int, not {value!r}")
            if value < least:
                raise ValueError(f"{name} must be at least {least}, not {value}")
        if self.write_tracking not in get_args(Tracking):
            raise ValueError(f"write_tracking must be one of {get_args(Tracking)}, not {self.write_tracking!r}")


class Scope(ContextDecorator):
    """Base of what acts for a block or a function, through a stack of (object, value) in a ContextVar.

    Leaving takes out the innermost entry of this object instead of resetting to a token, so that one object may be
    entered again, in several threads and tasks at once, and left in any order.
    """

    _stack: ClassVar[ContextVar[tuple[tuple[Any, Any], ...]]]

    def _value(self) -> Any:
        return None

    def __call__(self, func: _Function) -> _Function:
        """Decorate a function: each of its calls is a block."""
        if isgeneratorfunction(func) or isasyncgenfunction(func):
            raise TypeError(f"{func.__qualname__} is a generator: its caller runs in between; use a with block in it")
        if not iscoroutinefunction(func):
            return super().__call__(func)

        @wraps(func)
        async def inside(*args: Any, **kwargs: Any) -> Any:
            with self:
                return await func(*args, **kwargs)

        return cast(_Function, inside)

    def __enter__(self) -> Self:
        self._stack.set((*self._stack.get(), (self, self._value())))
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stack.set(without(self._stack.get(), self))

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return ``function(*args)``, called in a block. Whoever is interrupted leaves nothing entered."""
        context = copy_context()
        context.run(self.__enter__)
        return context.run(function, *args)


def without(stack: tuple[tuple[Any, Any], ...], owner: object) -> tuple[tuple[Any, Any], ...]:
    """The stack less the innermost entry of `owner`."""
    for position in reversed(range(len(stack))):
        if stack[position][0] is owner:
            return stack[:position] + stack[position + 1 :]
    return stack


_NAMES = frozenset(Options._fields)
default_options = Options()
entered_scopes: ContextVar[tuple[tuple[Any, Any], ...]] = ContextVar("lazyarray.options", default=())


def current() -> Options:
    """The settings in force here: the innermost block's, or else the process-wide defaults.

    Examples
    --------
    >>> from lazyarray.settings.options import current
    >>> current().bulk_reads
    4
    """
    scopes = entered_scopes.get()
    return scopes[-1][1] if scopes else default_options


def _changed(base: Options, changes: Changes) -> Options:
    unknown = sorted(changes.keys() - _NAMES)
    if unknown:
        from difflib import get_close_matches  # few programs make a mistake

        near = get_close_matches(unknown[0], sorted(_NAMES), 1)
        raise TypeError(f"Unknown option {', '.join(map(repr, unknown))}. Supported: {', '.join(sorted(_NAMES))}."
                        + (f" Did you mean {near[0]!r}?" if near else ""))
    return Options(**{**base._asdict(), **changes})


class options(Scope):
    """Change settings for a ``with`` block or a function; `options.set` does so for the whole process.

    Parameters
    ----------
    **changes
        The fields of `Options` to change. The others keep their values from outside the block.

    Raises
    ------
    TypeError
        If an option does not exist, or its value has the wrong type.
    ValueError
        If a value is not allowed.

    Notes
    -----
    A block keeps the settings with which it was entered: `options.set` within it takes effect after it.

    Examples
    --------
    >>> import lazyarray
    >>> with lazyarray.options(bulk_reads=100):
    ...     lazyarray.options.get().bulk_reads
    100
    >>> lazyarray.options.get().bulk_reads
    4
    >>> @lazyarray.options(check_indices=False)
    ... def gather(x, i):
    ...     return x[i]
    """

    _stack = entered_scopes

    def __init__(self, **changes: Unpack[Changes]) -> None:
        _changed(default_options, changes)  # a mistake is told here, not at the first call of a decorated function
        self._changes = changes

    def _value(self) -> Options:
        return _changed(current(), self._changes)

    @once_made("_changes")
    def __repr__(self) -> str:
        return f"options({', '.join(f'{name}={value!r}' for name, value in self._changes.items())})"

    @staticmethod
    def get() -> Options:
        """Return the current settings."""
        return current()

    @staticmethod
    def set(**changes: Unpack[Changes]) -> Options:
        """Change the settings of the whole process, and return the previous ones.

        Examples
        --------
        >>> import lazyarray
        >>> before = lazyarray.options.set(bulk_reads=10)
        >>> lazyarray.options.get().bulk_reads
        10
        >>> _ = lazyarray.options.set(bulk_reads=before.bulk_reads)
        """
        global default_options
        before = default_options
        default_options = _changed(before, changes)
        return before
