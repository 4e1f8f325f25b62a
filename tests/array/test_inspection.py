"""Whoever looks does no harm.

Debuggers, tracebacks with variables, profilers and walkers of the garbage collector's objects print, compare, copy and
pickle whatever they find, at any moment.
"""
from __future__ import annotations

import contextlib
import copy
import copyreg
import ctypes
import dataclasses
import gc
import importlib.machinery
import io
import json
import operator
import os
import pickle
import pprint
import reprlib
import subprocess
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest
import wrapt

import lazyarray
from lazyarray.errors.inspection import Unique
from lazyarray.storage import views

ROOT = Path(__file__).parents[2]
PACKAGE = str(Path(lazyarray.__file__).parent) + os.sep


TEXTS = {"repr": repr, "str": str, "format": format, "sizeof": sys.getsizeof}
"""What answers about any object."""

OTHERS = {
    "==": lambda o: o == o, "!=": lambda o: o != o, "== None": lambda o: o == None,  # noqa: E711
    "bool(==)": lambda o: bool(o == o), "in": lambda o: o in [None, object()],
    "hash": hash, "copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda o: pickle.dumps(o, 4),
}
"""What may be refused, with an exception."""

PLAIN = (str, bytes, int, float, complex, bool, type(None), type, types.ModuleType, types.FunctionType,
         types.BuiltinFunctionType, types.FrameType, types.CodeType, types.TracebackType, types.GeneratorType)


#: CuPy's classes of which a copy gives back, as it dies, what the original still needs.
OWNERS = "Function Module Event Stream ExternalStream Memory MemoryPointer PooledMemory PinnedMemory ufunc".split()


@pytest.fixture(autouse=True)
def cupy_copied_nothing(monkeypatch):
    """Have copies of the owners of CuPy's refused, and told: no copy of an object of ours may come to one."""
    told = []

    def refuse(owner):
        told.append(type(owner).__name__)
        raise TypeError("a copy of it would give back what it has")

    modules = [module for name, module in sys.modules.items() if name.split(".")[0] in ("cupy", "cupy_backends")]
    kinds = {kind for module in modules for name in OWNERS if isinstance(kind := vars(module).get(name), type)}
    if not modules:
        kinds = {type(lazyarray.device().xp.add)}
    for kind in kinds:
        monkeypatch.setitem(copyreg.dispatch_table, kind, refuse)
    return told


def is_cupys(thing):
    """Whether it is an object of CuPy's or of its stand-ins: what its copies release is no business of ours."""
    return (type(thing).__module__.partition(".")[0] in ("cupy", "cupy_backends", "cupyx")
            or type(thing).__name__ in ("SimulatedUfunc", "Namespace", "Parts"))


def look(thing):
    """Do to an object what lookers do. The names of what failed that must not."""
    failed = []
    for name, ask in TEXTS.items():
        try:
            ask(thing)
        except lazyarray.TransferError:     # forbidden, by a call that is looked at
            pass
        except Exception as error:  # noqa: BLE001  any is a finding
            failed.append(f"{name} of a {type(thing).__name__}: {error!r}")
    for ask in OTHERS.values():
        with contextlib.suppress(Exception):
            ask(thing)
    return failed


class Looker:
    """A profiler that looks at the variables of the library's frames, each kind of object once at each place."""

    def __init__(self):
        self.failed: set[str] = set()
        self.seen: set[tuple] = set()
        self.kinds: set[type] = set()
        self.busy = threading.local()

    def __call__(self, frame, event, argument):
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE) or getattr(self.busy, "yes", False):
            return
        self.busy.yes = True
        try:
            for name, value in [*frame.f_locals.items(), ("returned", argument)]:
                key = (code, frame.f_lineno, event, name, type(value))
                if type(value) in PLAIN or key in self.seen or is_cupys(value):
                    continue
                self.seen.add(key)
                self.kinds.add(type(value))
                self.failed.update(f"{code.co_qualname}, {name}: {text}" for text in look(value))
        finally:
            self.busy.yes = False

    @contextlib.contextmanager
    def looking(self):
        sys.setprofile(self)
        threading.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


def arrays():
    base = np.arange(1.0, 25.0).reshape(4, 6)
    return {
        "x": base, "v": base[1:, ::2], "f": np.asfortranarray(base), "i": np.arange(12).reshape(3, 4),
        "c": base[0] * (1 + 2j), "b": base > 7, "z": np.array(3.5), "e": np.empty((0, 3)),
        "o": np.array([1, "a", None]),
        "s": np.array([(1, 2.0), (3, 4.0)], "i4,f8"), "t": np.array(["ab", "c"]), "l": np.arange(20_000.0),
    }


CALLS = """
x[0]; x[1:, ::2]; x[..., None]; x[0, 1]; x[[0, 2]]; x[x > 4]; x[99]; x[1.5]; x["a"]; x[0, 0, 0]; x[i]; x[None, 0]
z[()]; e[0]; x.T; x.reshape(6, 4); x.reshape(5, 5); x.reshape(-1); x.ravel(); f.ravel("K"); x.view("i4")
x.view("i3"); x.swapaxes(0, 1); x.transpose(1, 0); x.transpose(5); x.squeeze(); x.squeeze(0); x.diagonal(); x.mT
c.real; c.imag; x.flat[3]; x.flags; np.flip(x); np.broadcast_to(x, (2, 4, 6)); np.broadcast_to(x, (5, 5))
np.broadcast_arrays(x, x[0]); np.split(x, 2); np.split(x, 3); np.atleast_3d(x); np.moveaxis(x, 0, 1)
np.expand_dims(x, 0); np.rot90(x); np.lib.stride_tricks.sliding_window_view(x, 2, 0)
np.lib.stride_tricks.as_strided(x, (2,), (8,)); np.shares_memory(x, x.T); np.may_share_memory(x, v)
np.result_type(x, i); x + 1; x * x + 2; (x + v.sum()) * 2; x + f; x + i[:, :1]; np.exp(x); x + "a"
x + np.ones((7, 7)); np.add(x, 1, out=x); x @ x.T; x @ x; np.add(x, 1, out=i); np.add.reduce(x)
np.add.accumulate(x); np.add.at(x, 0, 1); np.add.at(x, 99, 1); np.hypot.outer(x[0], x[1]); x.sum(); x.sum(axis=0)
x.sum(axis=5); x.mean(); x.std(axis=1); x.argmax(); x.max(); (x * 2).sum(); b.any(); np.median(x); e.max()
float(x.sum()); float(x); int(i.sum()); x.sum() + 1; hash(x.max()); bool(x); bool(x.max() > 2); x.max().item()
f"{x.mean():.2f}"; x.__setitem__(0, 1); x.__setitem__((0, 0), x[1, 1]); x.__setitem__([0, 1], v[0, 0])
x.__setitem__(99, 1); x.__setitem__(0, "a"); x.__setitem__(slice(None), x[::-1]); x.__setitem__(x > 3, 0)
i.__setitem__(0, np.nan); x.fill(2); x.sort(); x.fill("a"); x.__iadd__(1); x.__iadd__(x[0]); x.__imul__(np.ones(7))
v.__iadd__(1); np.copyto(x, 1); np.copyto(x, "a"); np.put(x, [0], 1); np.put(x, [99], 1); np.concatenate([x, f])
np.stack([x, x]); np.concatenate([x, z]); np.where(x > 3, x, 0); np.sort(x, 0); np.argsort(x); np.take(x, 99)
np.linalg.inv(x[:, :4]); np.linalg.inv(x); np.linalg.norm(x); np.fft.fft(x); np.einsum("ij,ij->i", x, x)
np.dot(x, x.T); np.pad(x, 1); np.zeros_like(x); np.full_like(x, "a"); np.arange(5); np.histogram(x)
np.interp(x, x[0], x[1]); np.percentile(x, 50); np.unique(i); np.nan_to_num(x); np.asarray(x); np.asarray(x)[0]
np.array(v); memoryview(x); bytes(x); x.tolist(); x.tobytes(); x.data; x.ctypes; x.__array_interface__
x.astype("f4"); x.astype("U3"); x.copy(); copy.copy(v); copy.deepcopy(x); pickle.dumps(x); x.byteswap(); x.item(3)
x.setflags(write=False); o[0]; o + o; s["f0"]; s[0]; t[0]; t == "ab"; o.sum(); s["nothing"]; repr(x); str(v)
x._repr_html_(); format(x, "5"); repr(l); l + 1; (l + 1)[3]; l[l > 7]; l.sum(); np.asarray(l)[5]
l.__setitem__(slice(5), 1); np.cumsum(l); l[5:][::2].copy(); repr(l * 2); (l * 2)._repr_html_()
lazyarray.asdevice(x); lazyarray.asarray(lazyarray.asdevice(x)); x.__wrapped__; lazyarray.prefetch(l)
lazyarray.asnumpy(x); x.astype("M8[s]")
"""


def calls():
    return [call.strip() for line in CALLS.strip().splitlines() for call in line.split(";")]


def outcome(call, names):
    """What a call gave, for comparison, and what is left of the arrays."""
    names = {name: lazyarray.asarray(value) for name, value in names.items()}
    names |= {"held": np.asarray(names["v"]), "pending": names["x"] + 1}
    try:
        result = eval(call, {**globals(), **names})
    except Exception as error:  # noqa: BLE001  any exception is an outcome
        result = type(error)
    return plain(result), {name: plain(value) for name, value in names.items()}


def plain(value):
    if isinstance(value, np.ndarray):
        return value.shape, str(value.dtype), value.tolist() if value.dtype.hasobject else np.array(value).tobytes()
    if isinstance(value, (tuple, list)):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        return type(value.dtype).__name__, str(value)
    return value if isinstance(value, (bytes, type)) else type(value).__name__


def test_looking_at_every_frame_of_the_library_changes_nothing():
    looker = Looker()
    for call in calls():
        want = outcome(call, arrays())
        with looker.looking():
            got = outcome(call, arrays())
        assert got == want, call
    assert not looker.failed, "\n".join(sorted(looker.failed))
    assert {views.Meta, lazyarray.LazyNdarray, lazyarray.LazyScalar} <= looker.kinds


def of_package(kind):
    return str(kind.__module__).split(".")[0] == "lazyarray"


def reachable():
    """Every object that the garbage collector, or what it knows of, has of the library's."""
    found, seen = [], set()
    todo = [module for name, module in list(sys.modules.items()) if name.split(".")[0] == "lazyarray"]
    todo += [o for o in gc.get_objects() if of_package(type(o))]
    while todo:
        thing = todo.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        found.append(thing)
        if type(thing) in (dict, list, tuple, set, frozenset, np.ndarray, types.ModuleType) or of_package(type(thing)):
            todo += [o for o in gc.get_referents(thing) if not issubclass(type(o), PLAIN[:-4])]
    return [o for o in found if not issubclass(type(o), PLAIN)]


def test_looking_at_every_object_of_the_library_changes_nothing(cupy_copied_nothing):
    made = {name: lazyarray.asarray(value) for name, value in arrays().items()}
    aliases = [np.asarray(made["x"]), np.asarray(made["l"])]
    other = lazyarray.asarray(arrays()["l"])
    pending = other * 2 + other[::-1]
    scalar, handle = made["x"].sum(), lazyarray.asdevice(made["f"])
    with lazyarray.trace() as trace:
        aliases[0][0, 0] = 7
        written = made["x"] + 1
    found = reachable()
    kinds = {type(o).__name__ for o in found}
    assert {"Meta", "Storage", "Node", "Mirror", "LazyScalar", "LazyNdarray"} <= kinds
    looks = [failed for o in found if not isinstance(o, (dict, list, tuple, set)) and not is_cupys(o)
             for failed in look(o)]
    assert not looks, "\n".join(sorted(set(looks)))
    assert not cupy_copied_nothing
    assert np.asarray(written)[0, 0] == 8 and float(scalar) == 300 and handle.get().sum() == 300 and len(trace.events)
    want = np.arange(20_000.0)
    assert np.array_equal(np.asarray(pending), want * 2 + want[::-1])
    aliases[1][5] = -1
    assert (made["l"] * 2)[5] == -2


def test_other_threads_may_look_while_calls_run():
    x = lazyarray.asarray(np.arange(5000.0))
    over, failed = threading.Event(), []

    def looking():
        while not over.is_set():
            for o in gc.get_objects():
                if type(o) in (lazyarray.LazyNdarray, lazyarray.LazyScalar) or type(o).__name__ in (
                        "Storage", "Mirror", "Node"):
                    failed.extend(look(o))

    thread = threading.Thread(target=looking)
    thread.start()
    try:
        for n in range(40):
            y = (x + n)[1:]
            np.asarray(y)[0] = -1
            y += 1
            assert y[0] == 0 and y[-1] == 5000 + n and float(y[1:].sum()) == sum(range(3, 5001)) + n * 4998
            assert (y[1:3] * 2)[0] == 2 * (3 + n)
    finally:
        over.set()
        thread.join()
    assert not failed, failed[0]


def half_made():
    """Objects that a walker may meet before their makers are done."""
    for module in [m for name, m in list(sys.modules.items()) if name.startswith("lazyarray")]:
        for kind in list(vars(module).values()):
            # The text of a dataclass is Python's own, and raises AttributeError then.
            if (isinstance(kind, type) and kind.__module__ == module.__name__ and not hasattr(kind, "__del__")
                    and not dataclasses.is_dataclass(kind)
                    and not issubclass(kind, (
                        wrapt.FunctionWrapper, wrapt.BoundFunctionWrapper, importlib.machinery.ModuleSpec))):
                with contextlib.suppress(Exception):
                    yield object.__new__(kind)
                with contextlib.suppress(Exception):
                    yield kind.__new__(kind)


def test_what_is_not_complete_yet_can_be_looked_at():
    # What `import lazyarray` brings has a text at any time; of other modules, Python's own AttributeError will do.
    code = "import sys, lazyarray; print(*sorted(m for m in sys.modules if m.startswith('lazyarray')))"
    core = set(run("-c", code).stdout.split())
    failed = [f for o in half_made() if of_package(type(o)) for f in look(o)
              if type(o).__module__ in core or "AttributeError" not in f]
    assert not failed, "\n".join(sorted(set(failed)))


def test_what_gives_something_back_when_it_dies_is_not_copied():
    kinds = {kind for module in [m for name, m in list(sys.modules.items()) if name.startswith("lazyarray")]
             for kind in vars(module).values() if isinstance(kind, type) and hasattr(kind, "__del__")}
    assert kinds
    for kind in kinds:
        if kind.__module__.startswith("lazyarray"):
            assert issubclass(kind, Unique), kind


# -- what C fills ------------------------------------------------------------------------------

CONTAINER_CALLS = {
    "joined": lambda x, m, i, s: np.concatenate((x, s, s[3:])), "stacked": lambda x, m, i, s: np.stack([x, x]),
    "by name": lambda x, m, i, s: np.clip(x, 0, a_max=3), "a product": lambda x, m, i, s: m @ m.T,
    "taken": lambda x, m, i, s: x[i], "put": lambda x, m, i, s: operator.setitem(m, (i % 400, i % 500), 1),
    "added": lambda x, m, i, s: np.add.at(x, i, 1), "turned": lambda x, m, i, s: np.ravel(m.T) + x,
    "a row": lambda x, m, i, s: m[3, i[0]], "small": lambda x, m, i, s: np.sum(s, axis=0, keepdims=True),
    "several": lambda x, m, i, s: (np.unique(s, return_counts=True), np.unique(i, return_counts=True)),
    "a table": lambda x, m, i, s: m[i % 400, i % 500] * 2,
    "views": lambda x, m, i, s: m[:, ::2] + m[:, 1::2],
}


def unfilled():
    """The lists and tuples among what was made last that have room in which nothing is yet: to copy one is a crash."""
    found = []
    for thing in gc.get_objects(generation=0):
        if type(thing) in (list, tuple) and (size := len(thing)):
            start = id(thing) + tuple.__basicsize__
            if type(thing) is list:
                size_of_head = object.__basicsize__ + ctypes.sizeof(ctypes.c_ssize_t)
                start = ctypes.c_void_p.from_address(id(thing) + size_of_head).value
            if None in (ctypes.c_void_p * size).from_address(start)[:]:
                found.append((type(thing).__name__, size))
    return found


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="looks at CPython's objects")
@pytest.mark.parametrize("name", CONTAINER_CALLS)
def test_what_is_not_filled_yet_is_not_found(name, small_on_host):
    small_on_host(95_000)
    x = lazyarray.asarray(np.arange(200_000.0)) * 1
    index, small = lazyarray.asarray(np.arange(30_000) % 400) * 1, lazyarray.asarray(np.arange(50.0))
    found, looked, own = [], [0], os.path.dirname(lazyarray.__file__)

    def look(frame, event, arg):
        if event == "call" and frame.f_code.co_filename.startswith(own):
            looked[0] += 1
            found.extend((*one, frame.f_code.co_name) for one in unfilled())

    for _ in range(4):      # as it is at first, and as it is once it is known
        x.sum(), index.sum()
        gc.collect()
        gc.disable()
        sys.setprofile(look)
        try:
            CONTAINER_CALLS[name](x, x.reshape(400, 500), index, small)
        finally:
            sys.setprofile(None)
            gc.enable()
    assert (looked[0] or name == "small") and not found     # of small arrays no Python code of ours runs, perhaps


def test_an_array_that_is_not_made_yet_is_no_small_one():
    unmade = object.__new__(lazyarray.LazyNdarray)
    for call in (lambda: unmade == unmade, lambda: np.add(unmade, 1), lambda: unmade.sum()):
        with pytest.raises(AttributeError):
            call()


@pytest.mark.parametrize("name", ["__radd__", "__rsub__", "__rpow__", "__rmatmul__"])
def test_a_reflected_operator_of_nothing(name, small_on_host):
    small_on_host(95_000)
    with pytest.raises(TypeError):
        getattr(lazyarray.asarray(np.arange(5.0)), name)()


# -- metas ------------------------------------------------------------------------------------

OUTLINES = {
    "dense": lambda: views.meta((3, 4), "f8"), "0-d": lambda: views.meta((), "i4", None, 64),
    "empty": lambda: views.meta((0, 3), "f4"), "Fortran": lambda: views.meta((3, 4), "c16", order="F"),
    "backwards": lambda: views.meta((300,), "u1")[::-3], "read-only": lambda: read_only(views.meta((5,), "?")),
    "records": lambda: views.meta((5,), "i4,f8"), "broadcast": lambda: views.meta((10**6, 5), "f8", (0, 8)),
    "10**12 elements": lambda: views.meta((10**6, 10**6), "f8"), "device array's": lambda: lazyarray.asarray(
        np.ones((600, 300)))._self_storage.root_meta(), "dates": lambda: views.meta((5,), "M8[s]"),
}


def read_only(view):
    view.flags.writeable = False
    return view


@pytest.mark.parametrize("name", OUTLINES)
class TestMetas:
    def test_text_says_what_it_is(self, name):
        meta = OUTLINES[name]()
        for text in (repr(meta), str(meta), f"{meta}", np.array_repr(meta), np.array2string(meta),
                     pprint.pformat(meta), repr([meta])):
            assert "meta" in text and str(meta.shape) in text and repr(meta.dtype) in text, text
        assert "meta" in reprlib.repr(meta)

    def test_copies_are_metas_of_the_same(self, name):
        meta = OUTLINES[name]()
        for other in (copy.copy(meta), meta.copy(), copy.deepcopy(meta), pickle.loads(pickle.dumps(meta)),
                      pickle.loads(pickle.dumps(meta, 2))):
            assert type(other) is views.Meta and views.same_place(meta, other) and not other.flags.owndata
            assert other.flags.writeable == meta.flags.writeable

    def test_it_compares_by_identity(self, name):
        meta, other = OUTLINES[name](), OUTLINES[name]()
        for a, b in [(meta, other), (meta, np.zeros(3)), (meta, 3), (meta, None)]:
            assert (a == b) is False and (b == a) is False and (a != b) is True and (b != a) is True
        assert meta == meta and meta in [meta] and meta not in [other]
        assert len({meta, other}) == 2

    def test_nothing_reads_or_writes_it(self, name):
        meta = OUTLINES[name]()
        for call in (lambda o: o + 1, lambda o: 1 + o, lambda o: o + lazyarray.asarray([1.0]), np.sum, np.exp, np.sort,
                     lambda o: o.sum(), lambda o: o.tolist(), lambda o: o.tobytes(), list, float,
                     lambda o: o.fill(1), lambda o: operator.setitem(o, ..., 1), lambda o: operator.iadd(o, 1),
                     lambda o: np.array_equal(o, o), lambda o: np.copyto(o, 1), lambda o: np.concatenate([o, o]),
                     lambda o: np.savetxt(io.StringIO(), o), json.dumps, lambda o: o < 1, lambda o: o.item(0),
                     lambda o: np.zeros(3) + o, np.copy, np.zeros_like,
                     lambda o: np.add(np.zeros(3), 1, out=o), lambda o: o.sort()):
            with pytest.raises(TypeError):
                call(meta)

    def test_its_memory_is_there_nevertheless(self, name):
        meta = OUTLINES[name]()
        if views.REGION is None:
            pytest.skip("no addresses could be reserved")
        array = np.asarray(meta)
        assert type(array) is np.ndarray
        assert repr(array)
        if array.size:
            assert array.reshape(-1)[-1:].tobytes() == bytes(array.itemsize) if array.flags.c_contiguous else True
            with contextlib.suppress(ValueError):
                array[(0,) * array.ndim] = array[(-1,) * array.ndim]
        if array.nbytes < 1 << 20:
            assert bytes(memoryview(np.asarray(array).view())) is not None if array.dtype.kind != "M" else True


def test_a_meta_of_any_size_takes_no_memory():
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    meta = OUTLINES["10**12 elements"]()
    assert not look(meta)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


# -- in processes of their own ---------------------------------------------------------------------

FAILING = """
import numpy as np
import lazyarray

def test_index():
    lazyarray.asarray(np.ones((600, 300)))[1.5]

def test_assignment():
    x = lazyarray.asarray(np.ones((600, 300)))
    x[700] = 1

def test_pending():
    x = lazyarray.asarray(np.ones((600, 300)))
    (x * 2)[700]

def test_shapes():
    x = lazyarray.asarray(np.ones((600, 300)))
    (x * 2).reshape(7, 7)

def test_operands():
    x = lazyarray.asarray(np.ones((600, 300)))
    np.add(x[1:], x[:, 1:] * 2)

def test_linalg():
    np.linalg.inv(lazyarray.asarray(np.ones((600, 300))))

def test_comparison():
    x = lazyarray.asarray(np.ones((600, 300)))
    assert (x == x + 1).all()
"""


def run(*arguments, **variables):
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": path} | variables
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, check=False,
                          timeout=120)


@pytest.mark.parametrize("options", [(), ("-l", "-vv", "--full-trace")], ids=str)
def test_a_failing_test_is_reported(tmp_path, options):
    (tmp_path / "test_it.py").write_text(FAILING)
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(tmp_path))
    assert done.returncode == 1 and "7 failed" in done.stdout, (done.returncode, done.stdout[-300:], done.stderr[-300:])


SHOWN = {
    "traceback": "traceback.TracebackException.from_exception(error, capture_locals=True).format()",
    "every frame": "[repr(v) for f, _ in traceback.walk_tb(error.__traceback__) for v in f.f_locals.values()]",
    "inspect": "[inspect.formatargvalues(*inspect.getargvalues(f.frame)) for f in inspect.getinnerframes(t, 3)]",
    "IPython": "IPython.core.ultratb.VerboseTB(include_vars=True, **options).text(type(error), error, t)",
    "rich": "rich.get_console().print(rich.traceback.Traceback.from_exception(*sys.exc_info(), show_locals=True))",
}


@pytest.mark.parametrize("how", SHOWN)
def test_tracebacks_with_variables(how):
    library = {"IPython": "IPython", "rich": "rich"}.get(how)
    if library is not None:
        pytest.importorskip(library)
    tests = FAILING.replace("def test_", "def case_")
    code = tests + f"""
import inspect, traceback, sys
if {library!r} == "IPython":
    import IPython.core.ultratb
    try:
        IPython.core.ultratb.VerboseTB(color_scheme="NoColor")
        options = dict(color_scheme="NoColor")
    except Exception:
        options = dict(theme_name="nocolor")
if {library!r} == "rich":
    import rich, rich.traceback
for name, case in list(globals().items()):
    if name.startswith("case_"):
        try:
            case()
        except Exception as error:
            t = error.__traceback__
            list({SHOWN[how]} or "")
        else:
            raise SystemExit(name)
print("done")
"""
    done = run("-c", code)
    assert done.returncode == 0 and done.stdout.endswith("done\n"), (done.returncode, done.stderr[-2000:])


@pytest.mark.parametrize("limit", [2 << 30, 8 << 30], ids=["2 GiB", "8 GiB"])
@pytest.mark.skipif(lazyarray.device().name == "cuda", reason="CUDA itself does not start in so little")
def test_a_limited_address_space_is_left_to_the_program(limit):
    pytest.importorskip("resource")
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))
import numpy as np, lazyarray
from lazyarray.storage import views
from lazyarray.errors.inspection import Unique
x = lazyarray.asarray(np.ones((600, 300)))
assert "meta" in repr(x._self_storage.root_meta())
assert x[1:].sum() == 599 * 300
"""
    done = run("-c", code)
    assert done.returncode == 0, done.stderr[-500:]
