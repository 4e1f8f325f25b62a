"""Pytest plugin: what the device twin of each function gives, in the calls that a host library's own tests make.

Every call of a function that has a device function of the same name runs twice, once on the host, whose result the test
goes on with, and once on the device, on copies of the same arrays. What the two gave is compared and recorded; no test
fails for it. ``python tests/tools/twins.py verdicts scipy FILES`` holds them
against the tables; `tests/integrations/test_twins.py` holds the tables to the verdicts::

    LAZYARRAY_TWINS=scipy.ndimage LAZYARRAY_TWINS_REPORT=/tmp/twins \\
        python -m pytest -p twins -p no:cacheprovider --pyargs scipy.ndimage

``LAZYARRAY_TWINS``
    The modules of the host library whose functions are looked at, with commas between.
``LAZYARRAY_TWINS_BOUNDED``
    ``1``: only the functions of the tables, within the bounds that are set there.
``LAZYARRAY_TWINS_ONLY``, ``LAZYARRAY_TWINS_REPEATS``
    A regular expression for the names of functions, and how many calls of one kind (default 5).
``LAZYARRAY_TWINS_REPORT``
    Records are written to files whose names begin so, one for each process of pytest-xdist.
"""
from __future__ import annotations

import base64
import copy
import glob
import importlib
import inspect
import itertools
import json
import lzma
import os
import re
import sys
import threading
import time
import types
import warnings
from collections import Counter
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wrapt

import lazyarray
from lazyarray import devices
from lazyarray.errors import NotOnDevice
from lazyarray.integrations.routing.twin import Parameters, table

DEVICE_PACKAGES = {"scipy": "cupyx.scipy", "skimage": "cucim.skimage"}
REPEATS = int(os.environ.get("LAZYARRAY_TWINS_REPEATS", "5"))
"""Calls of one kind (same function, dtypes, dimensions and options) that are looked at in one process."""

OF_NUMBERS = {
    "scipy.special.beta", "scipy.special.round", "scipy.interpolate.barycentric_interpolate",
    "scipy.interpolate.krogh_interpolate", "scipy.interpolate.pchip_interpolate",
}
"""Functions that the tests call with numbers and lists: they are called with arrays of them too."""

LARGEST = 1 << 27
"""Bytes of arguments over which a call is not looked at: a few tests ask for more than the memory holds four times."""

here = threading.local()


def device_path(path: str) -> str:
    """Where the twin of a module of the host library is."""
    package, _, rest = path.partition(".")
    return f"{DEVICE_PACKAGES[package]}.{rest}"


def candidates(path: str) -> dict[str, tuple[Any, Any]]:
    """Name -> function of the host library and of the device's, of all names that both have."""
    host = importlib.import_module(path)
    device = lazyarray.device().library(device_path(path))
    found = {}
    for name in getattr(host, "__all__", None) or dir(host):
        mine, theirs = getattr(host, name, None), getattr(device, name, None)
        if name.startswith("_") or isinstance(mine, (type, types.ModuleType)) or not callable(mine):
            continue
        if theirs is None or isinstance(theirs, (type, types.ModuleType)) or not callable(theirs):
            continue
        found[name] = mine, theirs
    for twin in table(path.partition(".")[0]).values():
        if twin.module == path and twin.device.startswith("lazyarray."):
            found[twin.name] = getattr(host, twin.name), twin.function
    return found


class Records:
    """What was found, and the functions that find it."""

    def __init__(self, paths: list[str], report: str) -> None:
        self.report = report
        self.test = ""
        self.next_save = time.monotonic() + 20
        self.tables = {name: twin for path in paths for name, twin in table(path.partition(".")[0]).items()
                       } if os.environ.get("LAZYARRAY_TWINS_BOUNDED") == "1" else None
        self.rows: dict[str, dict[str, Any]] = {}
        self.seen: Counter[tuple[str, str]] = Counter()
        self.known: dict[int, tuple[Any, Any]] = {}
        for path in paths:
            for name, (host, device) in candidates(path).items():
                if not re.fullmatch(os.environ.get("LAZYARRAY_TWINS_ONLY", ".*"), name):
                    continue
                if isinstance(host, np.ufunc) and self.tables is not None:
                    device = through_protocol(host)
                elif self.tables is not None and f"{path}.{name}" in self.tables:
                    device = self.tables[f"{path}.{name}"].function
                while True:
                    self.known[id(host)] = host, self.watched(f"{path}.{name}", host, device)
                    if not isinstance(inner := getattr(host, "__wrapped__", None), types.FunctionType):
                        break
                    host = inner

        for path in paths:
            for twin in table(path.partition(".")[0]).values():
                if twin.module == path and twin.kind == "class":
                    self.watch_instances(twin)

    def watch_instances(self, twin: Any) -> None:
        """Look at the calls of a class's instances too: they have an adapter, which is given lazy arrays here."""
        module, _, name = twin.adapter.partition(":")
        adapter = getattr(importlib.import_module(f"lazyarray.integrations.{module}"), name)
        owner = next(kind for kind in getattr(importlib.import_module(twin.module), twin.name).__mro__
                     if "__call__" in vars(kind))
        host = vars(owner)["__call__"]

        def refuse(*args: Any, **kwargs: Any) -> Any:
            raise NotOnDevice("the adapter went to the host")

        def device(self: Any, *args: Any, **kwargs: Any) -> Any:
            with lazyarray.options(warn_fallbacks=False):
                return adapter(twin, refuse, (self, *map(lazyarray.asarray, args)), kwargs)

        watched = self.watched(f"{twin.host}.__call__", host, device)
        owner.__call__ = lambda self, *args, **kwargs: watched(self, *args, **kwargs)

    def watched(self, path: str, host: Any, device: Any) -> Any:
        """`host`, which also runs `device` and compares."""

        def call(*args: Any, **kwargs: Any) -> Any:
            if path in OF_NUMBERS and not arrays_of((args, kwargs)):
                call(*(in_array(a, host) for a in args), **kwargs)      # the test goes on with what follows
            if getattr(here, "busy", False) or not 0 < arrays_of((args, kwargs)) <= LARGEST:
                return host(*args, **kwargs)
            kind = kind_of(host, args, kwargs)
            self.seen[path, kind] += 1
            if self.seen[path, kind] > REPEATS:
                return host(*args, **kwargs)
            here.busy = True
            try:
                return self.both(path, kind, host, device, args, kwargs)
            finally:
                here.busy = False

        return Watched(host, call)

    def both(self, path: str, kind: str, host: Any, device: Any, args: Any, kwargs: Any) -> Any:
        """Run both, note what they gave, and give the host's."""
        try:
            twin_args, twin_kwargs = (args, kwargs) if self.tables is None else self.bounded(path, host, args, kwargs)
            theirs = upload((twin_args, twin_kwargs), {})
        except NotOnDevice as error:
            self.note(path, kind, f"out of bounds: {error}"[:160], {})
            return host(*args, **kwargs)
        try:
            result, error = host(*args, **kwargs), None
        except Exception as raised:  # noqa: BLE001  whatever it is, the test gets it
            result, error = None, raised
        faults: tuple[Any, ...] = lazyarray.device().faults
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                twin = device(*theirs[0], **theirs[1])
                lazyarray.device().synchronize()
                twin, after = download(twin), download(theirs)
        except faults as raised:
            self.note(path, kind, f"fault: {raised}"[:300], {})
            self.pytest_sessionfinish()
            os._exit(7)  # a device that has failed says nothing more
        except Exception as raised:  # noqa: BLE001  it is what we want to know
            verdict = "both raise" if error is not None else f"refused: {type(raised).__name__}: {raised}"[:160]
            self.note(path, kind, verdict, {})
        else:
            if error is not None:
                self.note(path, kind, f"only the host raises: {type(error).__name__}: {error}"[:160], {})
            else:
                found: dict[str, Any] = {"dtypes": [], "kinds": [], "errors": {}, "largest": largest((args, kwargs))}
                verdict = compare(result, twin, found)
                # What is left of an argument that may be overwritten is nobody's; copies share no memory.
                if not verdict and not re.search(r"overwrite\w*=True", kind) and not share((args, kwargs)):
                    verdict = compare((twin_args, twin_kwargs), after, found, "argument ")
                self.note(path, kind, verdict or "same", found)
        if error is not None:
            raise error
        return result

    def bounded(self, path: str, host: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The arguments that the table would hand to the twin."""
        assert self.tables is not None
        twin = self.tables.get(path.removesuffix(".__call__"))
        if twin is None or twin.adapter and twin.kind != "class":
            raise NotOnDevice("not listed" if twin is None else "it has an adapter")
        try:
            parameters = Parameters(inspect.signature(host))
        except (TypeError, ValueError):
            parameters = None
        return twin.bounded(parameters, args, kwargs)

    def note(self, path: str, kind: str, verdict: str, found: dict[str, Any]) -> None:
        """Add one call to the records."""
        key = f"{path}|{kind}|{verdict}"
        row = self.rows.setdefault(key, {"path": path, "kind": kind, "verdict": verdict, "test": self.test, "calls": 0,
                                         "errors": {}, "dtypes": [], "kinds": []})
        row["calls"] += 1
        for part in ("dtypes", "kinds"):
            row[part] = sorted({*row[part], *found.get(part, ())})
        for dtype, errors in found.get("errors", {}).items():
            row["errors"][dtype] = [max(pair) for pair in zip(errors, row["errors"].get(dtype, errors))]

    def replaced(self, value: Any) -> Any:
        """The watched function in place of a function."""
        known = self.known.get(id(value))
        return value if known is None or known[0] is not value else known[1]

    # Hooks of pytest

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Put the watched functions wherever a module has the others, and into the parameters of tests."""
        for module in list(sys.modules.values()):
            if not isinstance(module, types.ModuleType) or module.__name__.startswith(("lazyarray", "cupy", "cucim")):
                continue
            for name, value in list(vars(module).items()):
                if id(value) in self.known:
                    setattr(module, name, self.replaced(value))
        for item in items:
            if hasattr(item, "callspec"):
                parameters = item.callspec.params
                parameters.update({name: self.replaced(value) for name, value in parameters.items()})

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self.test = item.nodeid.rpartition("/")[2]
        if time.monotonic() > self.next_save:  # a run that is stopped for its time leaves what it has found
            self.pytest_sessionfinish()

    def pytest_sessionfinish(self) -> None:
        path = f"{self.report}.{os.getpid()}.json"
        Path(path).write_text(json.dumps(list(self.rows.values())))
        self.next_save = time.monotonic() + 20


class Watched(wrapt.BaseObjectProxy):
    """A function that is called through another; equal to itself, for libraries that ask which function they have."""

    def __init__(self, wrapped: Any, call: Any) -> None:
        super().__init__(wrapped)
        self._self_call = call

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._self_call(*args, **kwargs)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return copy.copy, (self.__wrapped__,)


def share(arguments: Any) -> bool:
    """Whether two different arrays among arguments lie in the same memory."""
    found: dict[int, np.ndarray] = {}

    def note(value: Any) -> None:
        if isinstance(value, dict):
            value = tuple(value.values())
        if isinstance(value, (tuple, list)):
            for item in value:
                note(item)
        elif isinstance(value, np.ndarray):
            found[id(value)] = value

    note(arguments)
    return any(np.may_share_memory(a, b) for a, b in itertools.combinations(found.values(), 2))


def in_array(value: Any, function: Any) -> Any:
    """An array of a list of numbers, and for a ufunc of a number."""
    if isinstance(value, list) or isinstance(function, np.ufunc) and isinstance(value, (int, float)):
        return np.atleast_1d(np.asarray(value))
    return value


def arrays_of(value: Any) -> int:
    """The bytes of the host arrays among arguments, each with one more, so that an empty one counts."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        return sum(map(arrays_of, value))
    return value.nbytes + 1 if type(value) is np.ndarray else 0


def upload(value: Any, made: dict[int, Any]) -> Any:
    """`value` with device arrays that are copies of its host arrays; one for each host array."""
    if isinstance(value, np.ndarray):
        if type(value) is not np.ndarray or not lazyarray.device().can_hold(value.dtype):
            raise NotOnDevice(f"{type(value).__name__} of {value.dtype}")
        if id(value) not in made:
            made[id(value)] = value, lazyarray.asdevice(value)
        return made[id(value)][1]
    if type(value) in (list, tuple):
        return type(value)(upload(item, made) for item in value)
    if type(value) is dict:
        return {key: upload(item, made) for key, item in value.items()}
    return value


def download(value: Any) -> Any:
    """`value` with host arrays in place of device arrays."""
    if isinstance(value, lazyarray.device().array_type) or lazyarray.is_lazy(value):
        return lazyarray.asnumpy(value)
    if isinstance(value, (list, tuple)):
        items = [download(item) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if type(value) is dict:
        return {key: download(item) for key, item in value.items()}
    return value


def kind_of(function: Any, args: Any, kwargs: Any) -> str:
    """What kind of call this is: the parameters by name, arrays by dtype and dimensions."""
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        given = {str(i): a for i, a in enumerate(args)} | kwargs
    return ", ".join(f"{name}={short(value)}" for name, value in given.items())


def short(value: Any, depth: int = 1) -> str:
    """A few letters for an argument."""
    if isinstance(value, np.ndarray):
        order = "" if value.flags.c_contiguous else "F" if value.flags.f_contiguous else "S"
        size = "" if value.size > 1 else "1" if value.size else "0"
        return f"{value.dtype.str.lstrip('<|=')}[{value.ndim}{order}{size}]"
    if isinstance(value, np.generic):
        return f"{value.dtype.str.lstrip('<|=')}()"
    if isinstance(value, (list, tuple)) and depth:
        kinds = sorted({short(item, depth - 1) for item in value})
        return f"{type(value).__name__}({'|'.join(kinds)})"
    if isinstance(value, dict):
        return "dict(" + ", ".join(f"{key}={short(item)}" for key, item in value.items()) + ")"
    if isinstance(value, (bool, str, type(None))):
        return repr(value)[:40]
    if isinstance(value, int):
        return str(value) if -3 <= value <= 5 else "int"
    if isinstance(value, type):
        return value.__name__
    return type(value).__name__


def compare(host: Any, twin: Any, found: dict[str, Any], where: str = "") -> str:
    """What is not the same in two results, or ""; dtypes, kinds and errors go to `found`."""
    if host is None or isinstance(host, (str, bytes, types.FunctionType)):
        return "" if isinstance(host, types.FunctionType) or (twin is None) == (host is None) else f"{where}kind"
    if isinstance(host, dict):
        if not isinstance(twin, dict) or list(map(str, host)) != list(map(str, twin)):
            return f"{where}keys"
        return next(filter(None, (compare(a, b, found, where) for a, b in zip(host.values(), twin.values()))), "")
    if isinstance(host, (tuple, list)):
        if not isinstance(twin, (tuple, list)) and not (isinstance(host, list) and isinstance(twin, np.ndarray)):
            return f"{where}kind: {type(host).__name__} and {type(twin).__name__}"
        if not where and type(host) is not type(twin) and not hasattr(host, "_fields"):
            found["kinds"].append(f"{type(host).__name__} and {type(twin).__name__}")
        if len(host) != len(twin):
            return f"{where}length"
        return next(filter(None, (compare(a, b, found, where) for a, b in zip(host, twin))), "")
    if not isinstance(host, (np.ndarray, np.generic, int, float, complex)):
        if where or type(host) is type(twin) is slice and host == twin:
            return ""
        return f"kind: {type(host).__name__} and {type(twin).__name__}"
    if not isinstance(twin, (np.ndarray, np.generic, int, float, complex)):
        return f"{where}kind: {type(host).__name__} and {type(twin).__name__}"
    if not where and kind_word(host) != kind_word(twin):
        found["kinds"].append(f"{kind_word(host)} and {kind_word(twin)}")
    a, b = np.asarray(host), np.asarray(twin)
    if a.shape != b.shape:
        return f"{where}shape: {a.ndim}-d and {b.ndim}-d" if a.ndim != b.ndim else f"{where}shape"
    if a.dtype != b.dtype and isinstance(host, (np.ndarray, np.generic)) and isinstance(twin, (np.ndarray, np.generic)):
        found["dtypes"].append(f"{a.dtype.str[1:]} and {b.dtype.str[1:]}")
    if a.dtype.kind not in "fc":
        if np.array_equal(a, b):
            return ""
        return f"{where}values: {np.mean(a != b):.2g} of {a.dtype.str[1:]}" if a.dtype.kind in "biu" else f"{where}kind"
    return differences(a, b, found, where)


def through_protocol(ufunc: np.ufunc) -> Any:
    """A ufunc on device arrays as it is called with lazy ones: NumPy settles the dtypes."""

    def device(*args: Any, **kwargs: Any) -> Any:
        def lazy(value: Any) -> Any:
            return lazyarray.asarray(value) if isinstance(value, lazyarray.device().array_type) else value

        with lazyarray.enabled("scipy"), lazyarray.trace() as record, lazyarray.options(warn_fallbacks=False):
            result = ufunc(*map(lazy, args), **{name: lazy(value) for name, value in kwargs.items()})
        if record.fallbacks:
            raise NotOnDevice(record.fallbacks[0].reason)
        return result

    return device


def largest(value: Any) -> float:
    """The largest magnitude among arguments."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        return max(map(largest, value), default=0.0)
    if isinstance(value, (np.ndarray, np.generic, int, float, complex)) and np.asarray(value).dtype.kind in "biufc":
        sizes = np.abs(np.asarray(value).astype(complex).ravel())
        return float(sizes[np.isfinite(sizes)].max(initial=0.0))
    return 0.0


def kind_word(value: Any) -> str:
    """What a result without or with dimensions is: a Python number, a NumPy scalar, an array."""
    if isinstance(value, np.ndarray):
        return "array" if value.ndim else "0-d array"
    return "scalar" if isinstance(value, np.generic) else type(value).__name__


def differences(a: np.ndarray, b: np.ndarray, found: dict[str, Any], where: str) -> str:
    """The largest error, by dtype: against the largest value of the result, against each value, and against the largest
    value of the result and the arguments."""
    dtype = a.dtype.str[1:]
    with np.errstate(all="ignore"):
        if not np.array_equal(np.isnan(a), np.isnan(b)):
            return f"{where}values: not a number in other places"
        finite = np.isfinite(a) & np.isfinite(b)
        if not np.array_equal(a[~finite & ~np.isnan(a)], b[~finite & ~np.isnan(b)]):
            return f"{where}values: infinite in other places"
        a, b = a[finite].astype(complex if a.dtype.kind == "c" else float), b[finite].astype(
            complex if b.dtype.kind == "c" else float)
        if not a.size:
            return ""
        given = found["largest"]
        gap, size = np.abs(a - b), np.abs(a)
        scaled = float(gap.max() / size.max()) if size.max() else float(gap.max())
        single = float((gap[size > 0] / size[size > 0]).max()) if (size > 0).any() else 0.0
        biggest = max(given, float(size.max()))
        by_arguments = float(gap.max()) / biggest if biggest else float(gap.max())
    errors = found["errors"].setdefault(where + dtype, [0.0, 0.0, 0.0])
    found["errors"][where + dtype] = [max(pair) for pair in zip(errors, (scaled, single, by_arguments))]
    return ""


def pytest_configure(config: pytest.Config) -> None:
    """Read the settings."""
    paths = [name.strip() for name in os.environ.get("LAZYARRAY_TWINS", "").split(",") if name.strip()]
    if not paths:
        raise pytest.UsageError("LAZYARRAY_TWINS names no module, such as LAZYARRAY_TWINS=scipy.ndimage")
    report = os.environ.get("LAZYARRAY_TWINS_REPORT", "twins")
    config.pluginmanager.register(Records(paths, report), "lazyarray-twins")


def merged(prefix: str) -> list[dict[str, Any]]:
    """The records of all processes, those of the same kind and outcome as one."""
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for path in sorted(glob.glob(f"{prefix}.*.json")):
        for row in json.loads(Path(path).read_text()):
            key = row["path"], row["kind"], row["verdict"]
            known = rows.setdefault(key, row)
            if known is row:
                continue
            known["calls"] += row["calls"]
            for part in ("dtypes", "kinds"):
                known[part] = sorted({*known[part], *row[part]})
            for dtype, errors in row["errors"].items():
                known["errors"][dtype] = [max(pair) for pair in zip(errors, known["errors"].get(dtype, errors))]
    return list(rows.values())


def verdicts(rows: list[dict[str, Any]], tables: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Of each twin that is listed: how many calls came out how, and the largest errors.

    ``wrong`` are those whose outcome is another than on the host: values, shapes, dtypes, an error of the host's that
    the device did not raise, an argument that was changed.
    """
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        path = row["path"].removesuffix(".__call__")
        twin = tables.get(path)
        if twin is None or twin.reason:
            continue
        entry = found.setdefault(path, {"same": 0, "both raise": 0, "to the host": 0, "wrong": 0, "errors": {}})
        outcome = row["verdict"].partition(":")[0]
        # Bounds may have become narrower since.
        dtypes = {np.dtype(text).char for text in re.findall(r"[=(|]([biufc]\d+)\[", row["kind"])}
        if outcome in ("refused", "out of bounds", "not holdable") or dtypes - set(twin.dtypes):
            entry["to the host"] += row["calls"]
        elif outcome == "both raise":
            entry[outcome] += row["calls"]
        elif outcome != "same" or not within(row, twin) or row["dtypes"] and twin.kind != "ufunc":
            entry["wrong"] += row["calls"]
            entry.setdefault("wrong calls", []).append(f"{row['verdict'][:80]} {row['dtypes']} {row['kind'][:120]}")
        else:
            entry["same"] += row["calls"]
            for dtype, errors in row["errors"].items():
                if not dtype.startswith("argument"):
                    error = errors[0] if twin.kind == "ufunc" else errors[-1]
                    entry["errors"][dtype] = float(f"{max(error, entry['errors'].get(dtype, 0.0)):.1e}")
    for path, twin in tables.items():       # two names of one function
        for other in [other for other in found if other != path and tables[other].module == twin.module]:
            home = importlib.import_module(twin.module)
            if path not in found and getattr(home, twin.name) is getattr(home, tables[other].name):
                found[path] = found[other]
    return dict(sorted(found.items()))


def within(row: dict[str, Any], twin: Any) -> bool:
    """Whether the errors of some calls are within a twin's tolerance; what it may not change is as it was."""
    for dtype, errors in row["errors"].items():
        error = errors[0] if twin.kind == "ufunc" else errors[-1]
        if dtype.startswith("argument"):        # outputs among them
            if error > (twin.tolerance.of(np.dtype(dtype.split()[1])) if twin.writes or twin.kind == "ufunc" else 0.0):
                return False
        elif error > twin.tolerance.of(np.dtype(dtype)):
            return False
    return True


def as_text(versions: dict[str, str], found: dict[str, Any]) -> str:
    """JSON of verdicts, with a line for each function."""
    lines = ",\n".join(f"  {json.dumps(path)}: {json.dumps(entry)}" for path, entry in found.items())
    return f'{{\n "versions": {json.dumps(versions)},\n "functions": {{\n{lines}\n }}\n}}'


def main() -> None:
    """Print what was found of each function, and all of it packed into text; or the verdicts on several packed ones."""
    if sys.argv[1] == "verdicts":
        tables = table(sys.argv[2])
        packed = [json.loads(lzma.decompress(Path(path).read_bytes())) for path in sys.argv[3:]]
        rows = [row for part in packed for row in part["rows"]]
        print(as_text(packed[-1]["versions"], verdicts(rows, tables)))
        return
    rows = merged(sys.argv[1])
    found: dict[str, Counter[str]] = {}
    for row in rows:
        found.setdefault(row["path"], Counter())[row["verdict"].partition(":")[0]] += row["calls"]
    for path, counts in sorted(found.items()):
        print(path, dict(counts))
    versions = {name: metadata.version(name) for name in ("numpy", "scipy", "scikit-image")}
    versions["device"] = devices.why().reason
    text = lzma.compress(json.dumps({"versions": versions, "rows": rows}).encode(), preset=9)
    print(f"packed {len(rows)} rows, {len(text)} bytes")
    if os.environ.get("OUT"):
        Path(os.environ["OUT"], Path(sys.argv[1]).name + ".json.xz").write_bytes(text)
    print(base64.b85encode(text).decode())


if __name__ == "__main__":
    main()
