"""A hypothesis state machine: any mixture of reads and writes through any doors, against plain NumPy.

Each **door** is a pair: an object over the library's memory, and a plain ndarray that models it. Doors of the library:
lazy arrays, **aliases** (host arrays, as foreign code holds them) and **handles** (device arrays, as GPU code holds
them). Doors that share memory in the model share it in the library too, which only writes through one and reads
through another can show. So no rule copies more than its own action needs: a machine that compared everything after
each step would never see what happens to data that is current on one side only.

Two things are beyond any library and are ruled out here, by `Machine.synced` and `Machine.published`: a write through a
held alias reaches a held device array only when the lazy array is used in between, and so does the reverse.

`Control` runs the machine on plain NumPy, which shows that the machine itself is right; `test_testing.py` plants bugs.
"""
from __future__ import annotations

import contextlib
import copy
import ctypes
import dataclasses
import functools
import gc
import io
import operator
import pickle
import sys
import threading
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from poison import poisoned

import lazyarray
from lazyarray.storage import places
from lazyarray.testing import DEVICE_DTYPES


class Control:
    """Plain NumPy in the library's place, and the verbs in which the machine speaks of a library."""

    precise_tracking = True  # False: what a live alias covers counts as written by it
    has_device = False

    def array(self, values):
        return values.copy()

    def alias(self, x, door):
        return ALIASES[door](x)

    def handle(self, x, door):
        return x[...]

    def born(self, values):
        """An array of GPU code, and what the library makes of it."""
        return values, values[...]

    def adopt(self, handle):
        return handle[...]

    def fetch(self, handle):
        return handle.copy()

    def beside(self, handle):
        """A context in which GPU code works on the device of a handle."""
        return contextlib.nullcontext()

    def asnumpy(self, x):
        return np.asarray(x)

    def prefetch(self, x):
        """Where all is on the host there is nothing to fetch."""

    def wait(self):
        """Nor is there anything under way."""

    def is_lazy(self, x):
        return isinstance(x, np.ndarray)


class Library(Control):
    """lazyarray itself."""

    has_device = True

    def array(self, values):
        return lazyarray.asarray(values)

    def handle(self, x, door):
        with self.beside(x):
            return HANDLES[door](x)

    def born(self, values):
        handle = lazyarray.device().xp.asarray(values)
        return handle, lazyarray.asarray(handle)

    def adopt(self, handle):
        return lazyarray.asarray(handle)

    def fetch(self, handle):
        return handle.get()

    def beside(self, handle):
        device = lazyarray.device()
        number = places.of(device, handle)
        return contextlib.nullcontext() if number is None else device.on(number)

    def asnumpy(self, x):
        return lazyarray.asnumpy(x)

    def prefetch(self, x):
        lazyarray.prefetch(x)

    def wait(self):
        lazyarray.device().synchronize()

    def is_lazy(self, x):
        return lazyarray.is_lazy(x)


def only(owner, *names):
    """An object that has the named attributes of another one, and nothing else to be recognised by."""
    members = {name: property(lambda self, name=name: getattr(self.owner, name)) for name in names}
    made = type("Only", (), members)()
    made.owner = owner
    return made


def from_pointer(x):
    """An array over the address that ``x.ctypes`` names, as ctypes code makes one."""
    require(x.flags.c_contiguous and x.flags.writeable and x.nbytes and x.dtype.kind in "iufc")
    return np.frombuffer((ctypes.c_char * x.nbytes).from_address(x.ctypes.data), x.dtype).reshape(x.shape)


ALIASES = {
    "asarray": np.asarray,
    "asanyarray of a list's item": lambda x: np.asanyarray([x][0])[...],
    "__array__": lambda x: x.__array__(),
    "__array_interface__": lambda x: np.asarray(only(x, "__array_interface__")),
    "from_dlpack": lambda x: np.from_dlpack(x, device="cpu"),
    "data": lambda x: np.asarray(x.data),
    "ctypes": from_pointer,
}
if sys.version_info >= (3, 12):
    ALIASES["memoryview"] = lambda x: np.asarray(memoryview(x))

HANDLES = {
    "asdevice": lambda x: lazyarray.asdevice(x),
    "__wrapped__": lambda x: x.__wrapped__,
    "the device library": lambda x: lazyarray.device().xp.asarray(x),
}
# A simulated device does not show itself to libraries that would take its addresses for those of a GPU.
ON_CUDA = lazyarray.device().name == "cuda"
if ON_CUDA:
    HANDLES["__cuda_array_interface__"] = lambda x: lazyarray.device().from_foreign(only(x, "__cuda_array_interface__"))
    HANDLES["__dlpack__"] = lambda x: lazyarray.device().from_foreign(only(x, "__dlpack__", "__dlpack_device__"))

DTYPES = ["i4", "f8", "u1", "f4", "?", "c16", "i8"]
HOST_DTYPES = ["M8[s]", "O", "g", "S3", "i4,f8", ">i4"]
SMALL = [(3,), (2, 3), (4, 1, 2), (), (0,), (1, 6), (2, 0)]
# Big enough for the mirror to be tracked page by page, and for one row to be less than a page.
LARGE = [(130, 140), (40000,)]

VIEWS = {
    "a[1:]": lambda a: a[1:],
    "a[:-1]": lambda a: a[:-1],
    "a[::-1]": lambda a: a[::-1],
    "a[::2]": lambda a: a[::2],
    "a[..., 1:]": lambda a: a[..., 1:],
    "a[..., ::-2]": lambda a: a[..., ::-2],
    "a[0]": lambda a: a[0],
    "a[..., 0]": lambda a: a[..., 0],
    "a[-1, ...]": lambda a: a[-1, ...],
    "a[None]": lambda a: a[None],
    "a[...]": lambda a: a[...],
    "a[()]": lambda a: a[()],
    "T": lambda a: a.T,
    "swapaxes": lambda a: a.swapaxes(0, -1),
    "reshape(-1)": lambda a: a.reshape(-1),
    "reshape reversed": lambda a: a.reshape(a.shape[::-1]),
    "ravel": lambda a: a.ravel(),
    "np.ravel F": lambda a: np.ravel(a, order="F"),
    "squeeze": np.squeeze,
    "flip": np.flip,
    "diagonal": lambda a: a.diagonal(),
    "real": lambda a: a.real,
    "imag": lambda a: a.imag,
    "broadcast_to": lambda a: np.broadcast_to(a, (2, *a.shape)),
    "atleast_2d": np.atleast_2d,
    "split": lambda a: np.array_split(a, 2)[1],
    "view": lambda a: a.view(),
    "bytes": lambda a: a.view("u1") if a.dtype.kind in "iu" else a[..., None],
    "astype same": lambda a: a.astype(a.dtype, copy=False),
    "sliding": lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, axis=-1),
    "flags read-only": lambda a: _read_only(a.view()),
}


def _read_only(view):
    view.setflags(write=False)
    return view


COPIES = {
    "copy": lambda a: a.copy(),
    "copy.copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda a: pickle.loads(pickle.dumps(a, 4)),
    "flatten": lambda a: a.flatten(),
    "astype": lambda a: a.astype("f8"),
    "fancy": lambda a: a[[0, -1]],
    "take": lambda a: np.take(a, [0, 0], axis=0),
    "mask": lambda a: a[a == a],
    "concatenate": lambda a: np.concatenate([a, a]),
    "sort": lambda a: np.sort(a, axis=-1),
    "where": lambda a: np.where(a == a, a, 0),
    "zeros_like": np.zeros_like,
}

SHOWS = {
    "repr": repr, "str": str, "format": "{}".format, "array2string": lambda a: np.array2string(a, threshold=3),
    "html": lambda a: len(getattr(a, "_repr_html_", str)()) * 0,
}
BINARY = [operator.add, np.subtract, operator.mul, np.maximum, operator.lt, operator.eq, np.minimum, operator.and_]
INPLACE = [operator.iadd, operator.isub, operator.imul, operator.iand]
SCALARS = [1, -1, 2, True, 1.5, np.float32(2), np.int8(-1), 2j]
KEYS = [
    Ellipsis, slice(1, None), slice(None, None, -1), 0, -1, 1, (Ellipsis, 0), (slice(None, 1), Ellipsis), [0, -1],
    [0, 0], 99, [0, 99], [-99], np.array([1, 1, 0]), "mask", (), (0, 0), slice(0, 0),
]
SCALAR_READS = [
    lambda a: a.max(), lambda a: np.min(a), lambda a: np.any(a), lambda a: a.all(), lambda a: np.count_nonzero(a),
    lambda a: a[(0,) * a.ndim], lambda a: a[(-1,) * a.ndim], lambda a: np.argmax(a),
    lambda a: np.sum(a) if a.dtype.kind in "biu" else a.flat[0], lambda a: a[(5,) * a.ndim],
]
WRITES = {
    "fill": lambda a, v: a.fill(v),
    "copyto": lambda a, v: np.copyto(a, v, casting="unsafe"),
    "copyto where": lambda a, v: np.copyto(a, v, where=a == a[::-1], casting="unsafe"),
    "put": lambda a, v: np.put(a, [0, -1, 0], v),
    "putmask": lambda a, v: np.putmask(a, a == v, 3),
    "place": lambda a, v: np.place(a, a != v, [v, 1]),
    "fill_diagonal": lambda a, v: np.fill_diagonal(a, v),
    "ufunc.at": lambda a, v: np.add.at(a, [0, 0, -1], v),
    "sort": lambda a, v: a.sort(axis=-1),
    "flat": lambda a, v: operator.setitem(a.flat, slice(0, 2), v),
    "real": lambda a, v: setattr(a, "real", v),
    "put_along_axis": lambda a, v: np.put_along_axis(a, np.zeros((1,) * a.ndim, int), v, axis=0),
    "x[1:] += x[:-1]": lambda a, v: operator.iadd(a[1:], a[:-1]) is None,
    "x += x.T": lambda a, v: operator.iadd(a, a.T) is None,
    "x[::-1] = x": lambda a, v: operator.setitem(a, slice(None, None, -1), a),
    "add out overlapping": lambda a, v: np.add(a[:-1], v, out=a[1:]) is None,
    "cumsum out": lambda a, v: np.cumsum(a[:2], axis=0, out=a[:2]) is None,
    "clip out": lambda a, v: np.clip(a, 0, 1, out=a) is None,
    "multiply where": lambda a, v: np.multiply(a, v, out=a, where=a > 0) is None,
}


@dataclasses.dataclass(eq=False)
class Storage:
    """What is known of a piece of memory that doors share."""

    on_device: bool = True  # False: of a dtype that the device can't hold, like all views of it
    device_wrote: bool = False  # through a handle, and no lazy array over the bytes was used since
    pins: list = dataclasses.field(default_factory=list)  # what must live as long as a raw pointer is in use


@dataclasses.dataclass(eq=False)
class Door:
    kind: str  # "lazy", "alias", "handle"
    model: np.ndarray
    real: Any
    storage: Storage
    origin: Door | None = None  # the lazy array that gave it out, as long as that is alive
    name: str = ""


def values_for(dtype, shape, seed):
    numbers = np.random.default_rng(seed).integers(-4, 5, shape)
    dtype = np.dtype(dtype)
    if dtype.names:
        made = np.zeros(shape, dtype)
        for name in dtype.names:
            made[name] = numbers
        return made
    return numbers.astype(dtype)


def root_of(array):
    """The array that owns the memory of a model."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def same(want, got):
    """Equal in dtype, shape and value; the values that rules make are exact in every dtype."""
    if want.dtype != got.dtype or want.shape != got.shape:
        return False
    if want.dtype.kind in "fc":
        return np.array_equal(want, got, equal_nan=True)
    return bool(np.all(want == got))


def attempt(call, arguments):
    """The result and the exception of a call, one of them None."""
    with np.errstate(all="ignore"):
        try:
            return call(*arguments), None
        except NotNow:
            raise
        except Exception as error:  # noqa: BLE001  any exception is an outcome to compare
            # Its traceback would keep arrays alive for as long as a collection of garbage takes to come.
            error.__traceback__ = error.__context__ = error.__cause__ = None
            return None, error


def tame(*arrays):
    """Whether arithmetic on the values stays exact on any device: small, and nothing that is not a number."""
    return all(np.asarray(a).dtype.kind in "biumMSO" or bool(np.all(np.abs(a) < 1e4))
               for a in arrays if not (isinstance(a, np.ndarray) and a.dtype.names))


class NotNow(Exception):
    """The rule drawn has nothing to act on."""


def require(condition):
    if not condition:
        raise NotNow


def step(**strategies):
    """A rule that does nothing where `require` fails. (Hypothesis's ``assume`` would discard all steps so far.)"""
    def decorate(method):
        @rule(**strategies)
        @functools.wraps(method)
        def run(self, **drawn):
            self.failed = True  # unless it returns: then teardown need not look at the wreck
            with contextlib.suppress(NotNow):
                method(self, **drawn)
            self.failed = False
        return run
    return decorate


index = st.integers(0, 11)
seeds = st.integers(0, 99)


class Machine(RuleBasedStateMachine):
    """The rules. Subclasses set the library, or enter options first."""

    library: Control = Control()
    DOORS = 10

    def __init__(self):
        super().__init__()
        self.doors: list[Door] = []
        self.scalars: list[tuple[Any, Any]] = []
        self.failed = False
        self._poisoned = contextlib.ExitStack()
        self._poisoned.enter_context(poisoned())
        # The moment at which an alias dies matters, and must be the same whenever the same steps are run.
        gc.disable()

    # Picking doors, and keeping them.

    def pick(self, n, *kinds, where=lambda d: True):
        found = [d for d in self.doors if d.kind in kinds and where(d)]
        require(found)
        return found[n % len(found)]

    def keep(self, door):
        if len(self.doors) >= self.DOORS:
            self.drop(next(d for d in self.doors if d is not door.origin))
        self.doors.append(door)

    def drop(self, door):
        if door.kind == "lazy":
            others = [d for d in self.doors if d.origin is door]
            if door.storage.device_wrote:
                self.publish(door.storage)
            for other in others:
                other.origin = None
            # A device array that nobody can ask about any more is out of the library's sight.
            self.doors = [d for d in self.doors if not (d in others and d.kind == "handle")]
        if door in self.doors:
            self.doors.remove(door)
        door.real = None

    # Running one thing on both sides.

    def both(self, call, *doors):
        """Do it to the model and to the library; both results, or None where both raise the same."""
        want, error = attempt(call, [d.model for d in doors])
        got, raised = attempt(call, [d.real for d in doors])
        assert type(error) is type(raised), f"NumPy gives {error!r} {want!r}, the library {raised!r} {got!r}"
        return None if error is not None else (want, got)

    def adopt(self, results, *sources, kind="lazy", name=""):
        """Take a result of `both` as a new door (or a snapshot), after a look at all that costs no copy."""
        if results is None:
            return
        want, got = results
        if not isinstance(want, np.ndarray):
            assert isinstance(got, type(want)), f"{type(got).__name__}, not {type(want).__name__}"
            self.scalars.append((want, got))
            return
        for source in sources:
            assert (want is source.model) == (got is source.real), f"{name}: identity of the result"
            if want is source.model:
                return
        assert isinstance(got, np.ndarray)
        assert kind != "lazy" or self.library.is_lazy(got), f"{name}: the result is a {type(got).__name__}"
        assert (got.shape, got.dtype) == (want.shape, want.dtype), f"{name}: {got.shape} {got.dtype}"
        assert got.flags.writeable == want.flags.writeable, f"{name}: flags.writeable"
        if want.nbytes > 1 << 19:
            return
        shared = [s for s in sources if np.may_share_memory(want, s.model)]
        on_device = want.dtype in DEVICE_DTYPES and all(s.storage.on_device for s in sources)
        storage = shared[0].storage if shared else Storage(on_device)
        origin = next((s.origin for s in shared), None) if kind == "alias" else None
        self.keep(Door(kind, want, got, storage, origin, name))

    # What is beyond a library: two kinds of foreign code that write to one memory with no use of the array between.

    def sync(self, storage):
        """Use each lazy array on the device, and ask for each handle again.

        What was written on the host reaches the device then, be it through an alias or by a function that the device
        lacks. Without tracking, an alias that is dead by now may have written too.
        """
        for d in self.doors:
            if d.kind == "lazy" and d.storage is storage:
                d.real.copy()
        for d in self.doors:
            if d.kind == "handle" and d.storage is storage:
                self.library.handle(d.origin.real, "asdevice")

    def publish(self, storage):
        """Read each lazy array, so that what was written through a device pointer reaches the aliases."""
        if storage.device_wrote:
            for d in self.doors:
                if d.kind == "lazy" and d.storage is storage:
                    np.asarray(d.real)
        storage.device_wrote = False

    def covered(self, door):
        """Whether lazy arrays are alive through which a write to this door can be found out at all."""
        aliases = [d for d in self.doors if d.kind == "alias" and d.storage is door.storage]
        return all(d.origin is not None for d in aliases) and (
            self.library.precise_tracking or not (aliases or door.storage.pins))

    # Rules: making arrays and views of them.

    @initialize(dtype=st.sampled_from(DTYPES), shape=st.sampled_from(SMALL + LARGE), seed=seeds)
    def begin(self, dtype, shape, seed):
        self.make(dtype=dtype, shape=shape, seed=seed)

    @step(dtype=st.sampled_from(DTYPES * 3 + HOST_DTYPES), shape=st.sampled_from(SMALL * 2 + LARGE), seed=seeds)
    def make(self, dtype, shape, seed):
        require(len(self.doors) < self.DOORS or seed % 4 == 0)
        values = values_for(dtype, shape, seed)
        self.keep(Door("lazy", values, self.library.array(values.copy()), Storage(values.dtype in DEVICE_DTYPES),
                       name="new"))

    @step(n=index, view=st.sampled_from(sorted(VIEWS)))
    def view(self, n, view):
        source = self.pick(n, "lazy", "lazy", "alias")
        self.adopt(self.both(VIEWS[view], source), source, kind=source.kind, name=view)

    @step(n=index, how=st.sampled_from(sorted(COPIES)))
    def copied(self, n, how):
        source = self.pick(n, "lazy")
        self.adopt(self.both(COPIES[how], source), source, name=how)

    # Rules: computing.

    @step(n=index, m=index, op=st.sampled_from(BINARY), scalar=st.sampled_from([None, None, *SCALARS]))
    def binary(self, n, m, op, scalar):
        a = self.pick(n, "lazy")
        if scalar is not None:
            require(tame(a.model))
            return self.adopt(self.both(lambda x: op(x, scalar), a), name=op.__name__)
        b = self.pick(m, "lazy", "alias", where=lambda d: fits(d.model.shape, a.model.shape))
        require(tame(a.model, b.model) and not a.model.dtype.kind == b.model.dtype.kind == "c")
        # What has no order is unequal, and an ndarray on the left makes that answer itself.
        require(b.kind == "lazy" or op is not operator.eq or a.model.dtype.kind == b.model.dtype.kind
                or not {a.model.dtype.kind, b.model.dtype.kind} & set("MSV"))
        return self.adopt(self.both(lambda x, y: op(y, x) if n % 2 else op(x, y), a, b), name=op.__name__)

    @step(n=index, read=st.sampled_from(SCALAR_READS))
    def scalar(self, n, read):
        self.adopt(self.both(read, self.pick(n, "lazy")), name="scalar")

    # Rules: writing, through lazy arrays and through what foreign code holds.

    def target(self, n):
        door = self.pick(n, "lazy", "alias")
        if door.kind == "alias":
            self.publish(door.storage)
        return door

    @step(n=index, m=index, op=st.sampled_from(INPLACE), scalar=st.sampled_from([None, None, *SCALARS]))
    def in_place(self, n, m, op, scalar):
        a = self.target(n)
        if scalar is None:
            b = self.pick(m, "lazy", "alias", where=lambda d: fits(d.model.shape, a.model.shape))
            require(tame(a.model, b.model) and not a.model.dtype.kind == b.model.dtype.kind == "c")
            done = self.both(op, a, b)
        else:
            require(tame(a.model))
            done = self.both(lambda x: op(x, scalar), a)
        if done is not None:
            assert done[1] is a.real, "an in-place operator gave another object"

    @step(n=index, m=index, key=st.sampled_from(KEYS), value=st.sampled_from([None, None, 7, 1.5, True, [1, 2]]),
          seed=seeds)
    def assign(self, n, m, key, value, seed):
        a = self.target(n)
        if isinstance(key, str):
            key = np.random.default_rng(seed).random(a.model.shape) < 0.5
        if value is None:
            b = self.pick(m, "lazy", "alias")
            require(tame(b.model))
            # C leaves it open what a negative number is cast to among unsigned integers (docs/limits.rst).
            require(a.model.dtype.kind != "u" or b.model.dtype.kind not in "fc" or not np.any(b.model.real < 0))
            # An ndarray's own assignment words otherwise, and finds in another order, what is wrong with a value that
            # is no ndarray.
            require(a.kind == "lazy" or b.kind == "alias" or not (isinstance(key, (int, tuple)) and b.model.ndim)
                    and a.model.dtype.kind in "biufc" and b.model.dtype.kind in "biufc")
            # And it casts one complex number of an ndarray to a real one, but refuses that of anything else.
            require(a.kind == "lazy" or b.kind == "alias" or b.model.dtype.kind != "c" or a.model.dtype.kind == "c"
                    or not isinstance(key, (int, tuple)))
            # Objects that are arrays can't be compared, least of all one that contains itself.
            require(a.model.dtype != object or not (isinstance(key, (int, tuple)) and b.model.ndim))
            self.both(lambda x, y: operator.setitem(x, key, y), a, b)
        else:
            self.both(lambda x: operator.setitem(x, key, value), a)

    @step(n=index, seed=seeds, count=st.integers(0, 6), beyond=st.sampled_from([0, 0, 1]))
    def assign_many(self, n, seed, count, beyond):
        """Duplicates among the indexes end as NumPy ends them; one that is out of range stops it all."""
        a = self.target(n)
        require(a.model.ndim and tame(a.model))
        span = max(min(len(a.model), 3), 1)
        chosen = np.random.default_rng(seed).integers(-span - beyond, span + beyond, count or (2, 2))
        value = values_for(a.model.dtype, (*chosen.shape, *a.model.shape[1:]), seed)
        self.both(lambda x: operator.setitem(x, chosen, value), a)

    @step(n=index, key=st.sampled_from(KEYS), seed=seeds)
    def lookup(self, n, key, seed):
        a = self.pick(n, "lazy")
        if isinstance(key, str):
            key = np.random.default_rng(seed).random(a.model.shape) < 0.5
        self.adopt(self.both(lambda x: x[key], a), a, name=f"a[{key}]")

    @step(n=index, m=index, k=index, op=st.sampled_from([np.add, np.subtract, np.maximum, np.less, np.bitwise_or]))
    def out(self, n, m, k, op):
        c = self.target(k)
        a = self.pick(n, "lazy", "alias", where=lambda d: fits(d.model.shape, c.model.shape))
        b = self.pick(m, "lazy", "alias", where=lambda d: fits(d.model.shape, c.model.shape))
        require("lazy" in (a.kind, b.kind, c.kind) and tame(a.model, b.model))
        # NumPy itself crashes where long doubles have no loop but objects do.
        require(op is not np.bitwise_or or c.model.dtype != object or a.model.dtype.char != "g")
        done = self.both(lambda x, y, z: op(x, y, out=z), a, b, c)
        if done is not None:
            assert done[1] is c.real, "out= gave another object"

    @step(n=index, how=st.sampled_from(sorted(WRITES)), value=st.integers(-2, 2))
    def write(self, n, how, value):
        a = self.target(n)
        # NumPy's setter of `real` writes into a read-only array that has no dimensions, and `at` into any before 2.5.
        require(tame(a.model) and (a.model.flags.writeable or how != "ufunc.at" and (how != "real" or a.model.ndim)))
        # Of two zeros that differ in their signs nobody says which is the greater one.
        require(how != "clip out" or a.model.dtype.kind not in "fc" or not any(
            np.any(np.signbit(part) & (part == 0)) for part in (a.model.real, a.model.imag)))
        self.both(lambda x: WRITES[how](x, value), a)

    @step(n=index, seed=seeds, how=st.sampled_from(["memmove", "readinto", "byte"]))
    def write_bytes(self, n, seed, how):
        def raw(door):
            # The order of the axes in the memory of a result is not promised: both must have the bytes in order.
            flags = door.model.flags
            return (flags.c_contiguous and door.real.flags.c_contiguous and flags.writeable
                    and door.model.dtype.kind in "iu" and door.model.size)

        if not any(d.kind == "alias" and raw(d) for d in self.doors):
            self.give_alias(self.pick(n, "lazy", where=raw), "asarray")
        a = self.pick(n, "alias", where=raw)
        self.publish(a.storage)
        payload = np.random.default_rng(seed).bytes(a.model.nbytes)
        for array in (a.model, a.real):
            if how == "memmove":
                ctypes.memmove(array.ctypes.data, payload, len(payload))
            elif how == "readinto":
                io.BytesIO(payload).readinto(memoryview(array).cast("B"))
            else:
                array.reshape(-1).view("u1")[seed % array.nbytes] ^= 255

    # Rules: foreign code.

    @step(n=index, door=st.sampled_from(sorted(ALIASES)))
    def alias(self, n, door):
        self.give_alias(self.pick(n, "lazy"), door)

    def give_alias(self, a, door):
        results = self.both(lambda x: ALIASES[door](x) if x is a.model else self.library.alias(x, door), a)
        if results is None:
            return
        want, got = results
        self.publish(a.storage)
        assert not self.library.has_device or type(got) is np.ndarray, type(got)
        assert want.flags.writeable == got.flags.writeable, f"{door}: flags.writeable"
        assert same(want, got), f"alias through {door} is {got!r}, not {want!r}"
        self.keep(Door("alias", want, got, a.storage, a, door))
        if door == "ctypes":  # nothing but the array itself keeps that memory
            a.storage.pins.append((a.real, a.model))

    @step(n=index, door=st.sampled_from(sorted(HANDLES)))
    def handle(self, n, door):
        self.give_handle(n, door)

    def give_handle(self, n, door):
        a = self.pick(n, "lazy", where=lambda d: d.storage.on_device and d.model.dtype in DEVICE_DTYPES
                      and d.model.flags.writeable)
        self.sync(a.storage)
        self.keep(Door("handle", a.model, self.library.handle(a.real, door), a.storage, a, door))

    def any_handle(self, n):
        if not any(d.kind == "handle" for d in self.doors):
            self.give_handle(n, sorted(HANDLES)[n % len(HANDLES)])
        return self.pick(n, "handle")

    @step(dtype=st.sampled_from(DTYPES), shape=st.sampled_from(SMALL * 2 + LARGE), seed=seeds)
    def make_foreign(self, dtype, shape, seed):
        """GPU code made the array, and still holds it."""
        require(len(self.doors) < self.DOORS or seed % 4 == 0)
        values = values_for(dtype, shape, seed)
        handle, real = self.library.born(values.copy())
        lazy = Door("lazy", values, real, Storage(), name="foreign")
        self.keep(lazy)
        self.keep(Door("handle", values, handle, lazy.storage, lazy, "its own"))

    @step(n=index)
    def wrap_handle(self, n):
        """A device array comes back, as the result of GPU code that returns its argument."""
        h = self.any_handle(n)
        self.keep(Door("lazy", h.model[...], self.library.adopt(h.real), h.storage, name="from a handle"))

    @step(n=index, cut=st.sampled_from(["a[...]", "a[::2]", "a[..., 1:]", "T"]))
    def handle_view(self, n, cut):
        h = self.pick(n, "handle", where=lambda d: d.model.ndim > 0)
        self.keep(Door("handle", VIEWS[cut](h.model), VIEWS[cut](h.real), h.storage, h.origin, cut))

    @step(n=index, how=st.sampled_from(["fill", "assign", "add", "where"]), value=st.integers(-2, 2))
    def write_handle(self, n, how, value):
        h = self.any_handle(n)
        require(self.covered(h) and h.model.size and tame(h.model))
        value = h.model.dtype.type(value % 3)
        self.sync(h.storage)
        with self.library.beside(h.real):
            for array in (h.model, h.real):
                if how == "fill":
                    array.fill(value)
                elif how == "assign" and array.ndim:
                    array[-1] = value
                elif h.model.dtype.kind == "b":
                    array |= value
                else:
                    array += value
        h.storage.device_wrote = True
        if any(d.kind == "alias" and d.storage is h.storage for d in self.doors):
            self.publish(h.storage)

    @step(n=index)
    def read_handle(self, n):
        h = self.any_handle(n)
        self.sync(h.storage)
        self.library.handle(h.origin.real, "asdevice")
        got = self.library.fetch(h.real)
        assert same(h.model, got), f"the device array is {got!r}, not {h.model!r}"

    # Rules: letting go.

    @step(n=index, collect=st.booleans())
    def delete(self, n, collect):
        self.drop(self.pick(n, "lazy", "alias", "handle"))
        if collect:
            gc.collect(0)

    @step(n=index, door=st.sampled_from(sorted(ALIASES)), view=st.sampled_from(sorted(VIEWS)), waits=st.booleans())
    def outlive(self, n, door, view, waits):
        """Foreign code's array is all that is left of an array: nothing is written into its memory any more."""
        a = self.pick(n, "lazy")
        part = self.both(VIEWS[view], a)
        if part is not None and isinstance(part[0], np.ndarray) and part[0].nbytes <= 1 << 19:
            shares = np.may_share_memory(part[0], a.model)
            origin = Door("lazy", *part, a.storage if shares else Storage(a.storage.on_device), name=view)
            self.keep(origin)
            self.give_alias(origin, door)
        del part
        self.let_go(a.storage)
        if waits:
            self.library.wait()

    def let_go(self, storage):
        """Drop all lazy arrays of a storage."""
        for door in [d for d in self.doors if d.kind == "lazy" and d.storage is storage]:
            self.drop(door)

    # Rules: looking.

    @step(n=index, how=st.sampled_from(["asarray", "asnumpy", "copy", "equal", "elements", "text", "thread", "device",
                                        "scalars"]))
    def compare(self, n, how):
        if how == "scalars":
            self.compare_scalars()
        else:
            self.compare_door(self.pick(n, "lazy"), how)

    @step(n=index)
    def prefetch(self, n):
        self.library.prefetch(self.pick(n, "lazy").real)

    @step(n=index, first=st.sampled_from(sorted(VIEWS)), second=st.sampled_from(sorted(VIEWS)),
          between=st.sampled_from([None, None, "fill", "real", "device"]),
          door=st.sampled_from([None, *sorted(ALIASES)]))
    def prefetch_parts(self, n, first, second, between, door):
        """Parts that may overlap, with a write between; what foreign code gets then is asked for while both come."""
        a = self.pick(n, "lazy")
        for view, then in ((first, between), (second, None)):
            part = attempt(VIEWS[view], [a.real])[0]
            if isinstance(part, np.ndarray):
                self.library.prefetch(part)
            part = None
            if then == "device":
                self.both(lambda x: x.copy(), a)
            elif then is not None and tame(a.model) and a.model.flags.writeable:
                self.both(lambda x, how=then: WRITES[how](x, 1), a)
        if door is not None:
            self.give_alias(a, door)

    @step(n=index, how=st.sampled_from(sorted(SHOWS)), few=st.booleans())
    def show(self, n, how, few):
        """To look at an array is not to use it: whatever follows is as without."""
        door = self.pick(n, "lazy")
        with np.printoptions(**({"threshold": 5, "edgeitems": 1} if few else {})):
            want, got = SHOWS[how](door.model), SHOWS[how](door.real)
        assert want == got, f"{door.name} is shown as {got}, not {want}"

    def compare_door(self, door, how):
        want, x = door.model, door.real
        if how == "elements" and want.size <= 24:
            assert repr(x.tolist()) == repr(want.tolist())
            assert all(a == b or a != a for a, b in zip(want.flat, x.flat, strict=True))
        elif how == "text" and want.size <= 24:
            assert repr(x) == repr(want)
        elif how == "equal" and want.dtype.kind in "biu":
            assert np.array_equal(x, want) is True
        elif how == "device" and door.storage.on_device and want.dtype in DEVICE_DTYPES and self.library.has_device:
            assert same(want, self.library.handle(x, "asdevice").get())
        else:
            got = []
            read = {"asnumpy": self.library.asnumpy, "copy": lambda x: np.asarray(x.copy())}.get(how, np.asarray)
            if how == "thread":
                thread = threading.Thread(target=lambda: got.append(read(x)))
                thread.start()
                thread.join()
            else:
                got.append(read(x))
            assert same(want, got[0]), f"{door.name} reads {got[0]!r}, not {want!r}"

    def compare_scalars(self):
        for want, got in self.scalars:
            assert want == got or want != want, f"a scalar reads {got!r}, not {want!r}"
            assert repr(want) == repr(got)
        self.scalars.clear()

    @invariant()
    def aliases_are_live(self):
        """Foreign code reads its arrays without asking: they are right at any time, not when somebody looks."""
        failed, self.failed = self.failed, True
        for door in self.doors:
            if door.kind == "alias" and not door.storage.device_wrote:
                assert same(door.model, door.real), f"alias {door.name} is {door.real!r}, not {door.model!r}"
        self.failed = failed

    def teardown(self):
        gc.enable()
        self._poisoned.close()
        if self.failed:
            return
        for door in self.doors:
            if door.kind == "lazy":
                self.compare_door(door, "asarray")
                door.storage.device_wrote = False
        self.aliases_are_live()
        self.compare_scalars()
        for storage in {id(door.storage): door.storage for door in self.doors}.values():
            self.let_go(storage)
        self.library.wait()     # what was under way must not come later
        self.aliases_are_live()


def fits(shape, target):
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False
