"""Run a host library's own tests with every call made a second time on the device, and say how the two differ.

A pytest plugin; the tests of the library are the questions, its own answers are the truth::

    PYTHONPATH=.:tests python -m pytest -p shadow --shadow skimage:cucim.skimage TESTS --shadow-report FILE

Each public function of the first library that the second one has too is called as the test asks, and once more with
its arrays on the device. A test sees only the host's answer, so the tests pass as ever; what differs is counted, call
by call, and written as JSON: type, shape and largest difference of results, errors that only one side raises,
arguments that were written to. ``--shadow-device numpy`` compares the library with itself (to test this file),
``--shadow-device lazy`` with what a user gets who enables the library and passes lazy arrays; several, with commas
between, are compared side by side.
``python tests/tools/shadow.py FILE ...`` merges reports of several runs and prints them;
``python tests/tools/shadow.py verdicts skimage FILE ...`` writes what they say of each twin that is listed, as JSON.
"""
from __future__ import annotations

import copy
import functools
import importlib
import inspect
import json
import os
import pkgutil
import sys
import time
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np
import pytest

HOLDABLE = frozenset("?bhilqBHILQefdFD")
EXAMPLES = 3
ENOUGH = 60
"""Calls of one function by one test that are compared; a loop asks the same again and again."""
OBJECTS = ("RegionProperties", "ArrayMap", "AffineTransform", "EuclideanTransform", "ProjectiveTransform",
           "SimilarityTransform", "PolynomialTransform")
"""Classes whose instances are compared by their public attributes."""


class Device:
    """What the comparison asks of CuPy; NumPy answers for it where there is none, or lazyarray."""

    def __init__(self, name: str) -> None:
        self.name = name
        xp = importlib.import_module("numpy" if name == "lazy" else name)
        self.array_type = xp.ndarray
        self.put: Callable[[np.ndarray], Any] = xp.asarray
        self.get: Callable[[Any], np.ndarray] = lambda array: array.get()
        if name == "numpy":
            self.put, self.get = np.copy, np.asarray
        elif name == "lazy":
            import lazyarray

            self.array_type = lazyarray.LazyNdarray
            self.put = functools.partial(lazyarray.asarray, copy=True)
            self.get = np.asarray

    def settle(self, value: Any) -> None:
        """Wait for an array, and see whether that fails."""
        if self.is_array(value):
            self.get(value)

    def is_array(self, value: Any) -> bool:
        """Whether a result lies there; a lazy scalar passes for NumPy's own, and is compared as one."""
        return type(value) is self.array_type if self.name == "lazy" else isinstance(value, self.array_type)


class Record:
    """What was found of one function."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.examples: dict[str, list[str]] = {}
        self.errors: dict[str, float] = {}
        self.written: Counter[str] = Counter()
        self.seconds = [0.0, 0.0]
        self.on_device: Counter[bool] = Counter()

    def add(self, kind: str, example: str = "") -> None:
        self.counts[kind] += 1
        seen = self.examples.setdefault(kind, [])
        if example and len(seen) < EXAMPLES and example not in seen:
            seen.append(example)

    def error(self, dtype: str, size: float) -> None:
        self.errors[dtype] = max(self.errors.get(dtype, 0.0), size)

    def as_dict(self) -> dict[str, Any]:
        kept = {kind: seen for kind, seen in self.examples.items() if seen}
        return {"counts": dict(self.counts), "on_device": [self.on_device[True], self.on_device[False]],
                "errors": self.errors, "written": dict(self.written),
                "seconds": [round(s, 3) for s in self.seconds], "examples": kept}


class Routed:
    """What a router makes of the calls of a function."""

    def __init__(self, twin: Any, function: Callable[..., Any]) -> None:
        self.twin, self.function = twin, function
        self.on_device = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        import lazyarray
        from lazyarray.integrations.routing import router

        with lazyarray.trace() as record:
            try:
                return router.run(self.twin, self.function, args, kwargs)
            finally:
                self.on_device = not record.fallbacks

    @property
    def tolerance(self) -> Any:
        return self.twin.tolerance

    @property
    def writes(self) -> tuple[str, ...]:
        return self.twin.writes


class Unstated:
    """The tolerance where no table says one."""

    ties = 0.0

    def of(self, dtype: np.dtype) -> float:
        """How far results may be apart, of the largest."""
        return {"float16": 1e-2, "float32": 1e-4, "complex64": 1e-4}.get(str(dtype), 1e-8)


class Variant(NamedTuple):
    """One function of those that a host function is compared with."""

    record: Record
    device: Device
    twin: Callable[..., Any]


class Shadow:
    """The wrappers, and what they found."""

    def __init__(self, host: str, twin: str, devices: list[Device]) -> None:
        self.host, self.twin, self.devices = host, twin, devices
        self.records: dict[str, Record] = {}
        self.asked: Counter[tuple[str, str]] = Counter()
        self.inside = False
        self.largest = 0.0
        self.on_device = True
        self.test = ""
        self.device = devices[0]
        self.tolerance: Any = Unstated()

    def install(self) -> None:
        modules = [importlib.import_module(self.host)]
        for info in pkgutil.walk_packages(modules[0].__path__, self.host + ".", onerror=lambda name: None):
            if ".tests" in info.name or "_plugins" in info.name or info.name.split(".")[1] == "conftest":
                continue
            try:
                modules.append(importlib.import_module(info.name))
            except Exception as error:  # noqa: BLE001 an optional part of the library is not there
                print("not imported:", info.name, error, file=sys.stderr)
        functions: dict[int, tuple[str, Callable[..., Any]]] = {}
        variants: dict[int, list[Variant]] = {}
        for device in self.devices:
            found = sorted(self.pairs(device), key=lambda pair: (pair[0].count("."), len(pair[0])))
            for path, function, twin in found:
                known = variants.setdefault(id(function), [])
                if all(variant.device is not device for variant in known):  # the shortest path is the public one
                    path = functions.setdefault(id(function), (path, function))[0]
                    name = f"{path} ({device.name})" if len(self.devices) > 1 else path
                    known.append(Variant(self.records.setdefault(name, Record()), device, twin))
        replaced = {key: self.wrapper(path, function, variants[key]) for key, (path, function) in functions.items()}
        for module in modules:
            for name, value in list(vars(module).items()):
                if id(value) in replaced and inspect.isroutine(value):
                    setattr(module, name, replaced[id(value)])

    def pairs(self, device: Device) -> Iterator[tuple[str, Callable[..., Any], Callable[..., Any]]]:
        """(public path, host function, device function) of every function that both libraries have."""
        if device.name == "lazy":
            yield from self.routed()
            return
        root = importlib.import_module(self.host)
        public = [""] + [i.name[len(self.host):] for i in pkgutil.walk_packages(root.__path__, self.host + ".",
                                                                              onerror=lambda name: None)
                         if i.ispkg and not any(part.startswith("_") for part in i.name.split("."))]
        for suffix in public:
            try:
                module = importlib.import_module(self.host + suffix)
                other = importlib.import_module(self.twin + suffix)
            except ImportError:
                continue
            for name in getattr(module, "__all__", None) or dir(module):
                function, twin = getattr(module, name, None), getattr(other, name, None)
                if not name.startswith("_") and inspect.isroutine(function) and callable(twin):
                    yield f"{self.host}{suffix}.{name}", function, twin

    def routed(self) -> Iterator[tuple[str, Callable[..., Any], Callable[..., Any]]]:
        """The functions in the table of twins, and what a router makes of their calls."""
        from lazyarray.integrations.routing.twin import table

        for path, twin in table(self.host).items():
            function = getattr(importlib.import_module(twin.module), twin.name)
            yield path, function, Routed(twin, function)

    # -- one call --------------------------------------------------------------------------------

    def wrapper(self, path: str, function: Callable[..., Any], variants: list[Variant]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.inside or self.asked[self.test, path] >= ENOUGH:
                return function(*args, **kwargs)
            self.asked[self.test, path] += 1
            arrays = [leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, np.ndarray)]
            reason = self.unfit(arrays)
            if reason:
                for variant in variants:
                    variant.record.add(reason)
                return function(*args, **kwargs)
            self.inside = True
            try:
                return self.all(function, variants, args, kwargs, arrays)
            finally:
                self.inside = False

        return call

    def unfit(self, arrays: list[np.ndarray]) -> str:
        if not arrays:
            return "no array"
        if any(type(a) is not np.ndarray for a in arrays):
            return "subclass"
        if any(a.dtype.char not in HOLDABLE or not a.dtype.isnative for a in arrays):
            return "dtype not holdable"
        return ""

    def all(self, function: Callable[..., Any], variants: list[Variant], args: Any, kwargs: Any,
            arrays: list[np.ndarray]) -> Any:
        """What the function gives, after it has been compared with each variant."""
        where = f"{self.test}: {describe(args, kwargs)}"
        before = {id(a): a.copy() for a in arrays}
        placed: list[dict[int, Any]] = [{} for _ in variants]
        elsewhere = []
        for variant, places in zip(variants, placed):
            try:
                elsewhere.append(tree((args, kwargs), functools.partial(place, variant.device, places)))
            except (TypeError, RecursionError) as error:
                variant.record.add("not convertible", f"{where}: {error}")
                elsewhere.append(None)
        host = outcome(function, args, kwargs, lambda leaf: leaf)
        # What is in the memory for the result says nothing about its scale.
        self.largest = max((largest(was, np.zeros_like(was)) for a in arrays
                            if (was := before[id(a)]).size and a is not host.result), default=0.0)
        for variant, places, given in zip(variants, placed, elsewhere):
            if given is None:
                continue
            self.device = variant.device
            self.tolerance = getattr(variant.twin, "tolerance", None) or Unstated()
            there = outcome(variant.twin, *given, variant.device.settle)
            self.on_device = getattr(variant.twin, "on_device", True)
            variant.record.seconds[0] += host.seconds
            variant.record.seconds[1] += there.seconds
            agree = self.judge(variant.record, where, host, there)
            if host.error is None and there.error is None:
                written = getattr(variant.twin, "writes", ())
                agree &= self.judge_writes(variant.record, where, self.named(function, args, kwargs), written,
                                           host.result, before, places)
            if agree is not None and self.on_device:
                variant.record.on_device[bool(agree)] += 1
        for warning in host.warnings:       # told anew, as if the test had called the function itself
            warnings.warn(warning.message, warning.category, stacklevel=3)
        if host.error is not None:
            raise host.error
        return host.result

    # -- the verdict -----------------------------------------------------------------------------

    def judge(self, record: Record, where: str, host: Outcome, there: Outcome) -> bool | None:
        """Note how two outcomes of a call differ; whether they are the same, or None if neither has a result."""
        result, raised = host.result, host.error
        found, failed = there.result, there.error
        given = host.warnings, there.warnings
        if raised is not None and failed is not None:
            record.add("both raise" if type(raised) is type(failed) else "both raise, other type",
                       "" if type(raised) is type(failed) else f"{where}: {raised!r} is {failed!r}"[:400])
        elif raised is not None:
            record.add("only host raises", f"{where}: {type(raised).__name__}: {raised}"[:400])
        elif failed is not None:
            record.add("device fails", f"{where}: {type(failed).__name__}: {failed}"[:500])
        else:
            names = [{w.category.__name__ for w in ws} - {"DeprecationWarning", "HostFallbackWarning"} for ws in given]
            if names[0] - names[1]:
                record.add("warning missing", f"{where}: {sorted(names[0] - names[1])}")
            if names[1] - names[0]:
                record.add("warning added", f"{where}: {sorted(names[1] - names[0])}")
            differences = list(self.compare(record, result, found, ""))
            for kind, text in differences:
                record.add(kind, f"{where}: {text}"[:400])
            if not differences:
                record.add("same")
                return True
        return None if raised is not None and failed is not None else False

    def compare(self, record: Record, host: Any, there: Any, at: str, hosts: bool = False
                ) -> Iterator[tuple[str, str]]:
        """(kind of difference, what it is) for each place where two results differ.

        `hosts` says that they are parts of objects of the host library's own, which hold the host's arrays.
        """
        numeric = (np.ndarray, np.generic, bool, int, float, complex)
        if isinstance(host, (list, tuple)):
            if not isinstance(there, (list, tuple)):
                if self.device.is_array(there) and len(host) == len(there):
                    yield "structure", f"{at} {type(host).__name__} is a device array {there.shape} {there.dtype}"
                    return
                yield "structure", f"{at} {type(host).__name__} is {type(there).__name__}"
                return
            if len(host) != len(there):
                yield "structure", f"{at} {len(host)} items are {len(there)}"
                return
            if not isinstance(there, type(host)):
                yield "container", f"{at} {type(host).__name__} is {type(there).__name__}"
            for i, (h, d) in enumerate(zip(host, there)):
                yield from self.compare(record, h, d, f"{at}[{i}]", hosts)
        elif isinstance(host, dict):
            if not isinstance(there, dict) or host.keys() != there.keys():
                yield "structure", f"{at} dict is {type(there).__name__}"
                return
            for key in host:
                yield from self.compare(record, host[key], there[key], f"{at}[{key!r}]", hosts)
        elif isinstance(host, numeric) and (isinstance(there, numeric) or self.device.is_array(there)):
            yield from self.compare_values(record, host, there, at, hosts)
        elif host is None or isinstance(host, (str, slice, np.dtype, type)):
            if host != there:
                yield "value", f"{at} {host!r} is {there!r}"
        elif type(host).__name__ in OBJECTS:
            hosts = type(there) is type(host)
            for name in [n for n in dir(host) if not n.startswith("_")]:
                values = [attribute(obj, name) for obj in (host, there)]
                if not any(isinstance(v, Exception) or callable(v) or inspect.ismodule(v) for v in values):
                    yield from self.compare(record, values[0], values[1], f"{at}.{name}", hosts)
                elif isinstance(values[0], Exception) != isinstance(values[1], Exception):
                    yield "attribute", f"{at}.{name}: {values[0]!r:.80} is {values[1]!r:.120}"
        else:
            yield "object", f"{at} {type(host).__name__} is {type(there).__name__}"

    def compare_values(self, record: Record, host: Any, there: Any, at: str, hosts: bool = False
                       ) -> Iterator[tuple[str, str]]:
        h = np.asarray(host)
        lies_there = self.device.is_array(there)
        d = self.device.get(there) if lies_there else np.asarray(there)
        if isinstance(host, np.ndarray) and not lies_there and not hosts:
            yield "host array", f"{at} is {type(there).__name__}"
        if h.shape != d.shape:
            yield "shape", f"{at} {h.shape} is {d.shape}"
            return
        python = not isinstance(host, (np.ndarray, np.generic)) or not (lies_there or isinstance(
            there, (np.ndarray, np.generic)))
        if h.dtype != d.dtype and not (python and h.dtype.kind == d.dtype.kind):
            yield "dtype", f"{at} {h.dtype} is {d.dtype}"
        if python and type(host) is not type(there):
            yield "scalar type", f"{at} {type(host).__name__} is {type(there).__name__}" + (
                f" {d.dtype}" if lies_there else "")
        if h.size == 0 or h.dtype.kind not in "biufc":
            return
        if h.dtype.kind in "biu":
            wrong = int(np.count_nonzero(h != d))
            if self.on_device:
                record.error("exact", wrong / h.size)
            if wrong > self.tolerance.ties * h.size:
                yield "integers", f"{at} {wrong} of {h.size} {h.dtype} differ, by up to {largest(h, d)}"
            return
        odd = np.isfinite(h) != np.isfinite(d)
        odd |= np.isnan(h) != np.isnan(d)
        if odd.any():
            yield "nan or inf", f"{at} {int(odd.sum())} of {h.size}"
        fine = np.isfinite(h) & np.isfinite(d)
        if not fine.any():
            return
        kind = np.complex128 if h.dtype.kind == "c" else np.float64
        difference = np.abs(h[fine].astype(kind) - d[fine].astype(kind)).max()
        scale = np.abs(h[fine].astype(kind)).max()
        scale = max(scale, self.largest * 1e-3) or 1.0      # what should be zero has the rounding of the arguments
        size = float(difference / scale)
        if self.on_device:
            record.error(str(h.dtype), size)
        if size > self.tolerance.of(h.dtype):
            yield "values", f"{at} {h.dtype} differ by {size:.1e} of the largest"

    @staticmethod
    def named(function: Callable[..., Any], args: Any, kwargs: Any) -> dict[Any, Any]:
        """The arguments of a call by the names of parameters, or by number where the function has no signature."""
        try:
            return inspect.signature(function).bind(*args, **kwargs).arguments
        except (TypeError, ValueError):
            return dict(enumerate(args)) | kwargs

    def judge_writes(self, record: Record, where: str, given: dict[Any, Any], declared: tuple[str, ...], result: Any,
                     before: dict[int, np.ndarray], placed: dict[int, Any]) -> bool:
        """Note which arguments were written to; whether both wrote the same to the same ones.

        Bytes that are as they were may have been written again: memory for a result often has the one of the call
        before. So an argument that is declared as written, or is the host's result, is held to its values alone.
        """
        agree = True
        for name, value in given.items():
            if not isinstance(value, np.ndarray) or value.size == 0:
                continue
            was = before[id(value)].tobytes()
            there = self.device.get(placed[id(value)])
            wrote, wrote_there = value.tobytes() != was, there.tobytes() != was
            if not wrote and not wrote_there:
                continue
            record.written[str(name)] += 1
            if wrote != wrote_there and name not in declared and value is not result:
                agree = False
                record.add("writes", f"{where}: {name} is written by {'the host' if wrote else 'the device'} only")
                continue
            for kind, text in self.compare_values(record, value, placed[id(value)], f" {name}"):
                agree = False
                record.add("writes", f"{where}: {kind}:{text}"[:400])
        return agree


class Outcome(NamedTuple):
    """What a call did."""

    result: Any
    error: Exception | None
    warnings: list[warnings.WarningMessage]
    seconds: float


def outcome(function: Callable[..., Any], args: Any, kwargs: Any, get: Callable[[Any], Any]) -> Outcome:
    """What a call does; `get` makes sure of each item of its result that it is computed."""
    start = time.perf_counter()
    result = failed = None
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            result = function(*args, **kwargs)
            if isinstance(result, types.GeneratorType):
                result = list(result)
            for leaf in leaves(result):
                get(leaf)
        except Exception as error:  # noqa: BLE001 it is what is compared
            failed = error
    return Outcome(result, failed, given, time.perf_counter() - start)


def place(device: Device, placed: dict[int, Any], leaf: Any) -> Any:
    """A leaf of the arguments as the device's functions take it."""
    if isinstance(leaf, np.ndarray):
        if id(leaf) not in placed:
            placed[id(leaf)] = device.put(leaf)
        return placed[id(leaf)]
    return copy.deepcopy(leaf) if isinstance(leaf, (np.random.Generator, np.random.RandomState)) else leaf


# -- walking ---------------------------------------------------------------------------------------

def leaves(obj: Any) -> Iterator[Any]:
    if isinstance(obj, (list, tuple)):
        for item in obj:
            yield from leaves(item)
    elif isinstance(obj, dict):
        yield from leaves(list(obj.values()))
    else:
        yield obj


def tree(obj: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(obj, (list, tuple)):
        items = [tree(item, change) for item in obj]
        return type(obj)(*items) if hasattr(obj, "_fields") else type(obj)(items)
    if isinstance(obj, dict):
        return {key: tree(value, change) for key, value in obj.items()}
    return change(obj)


def attribute(obj: Any, name: str) -> Any:
    """An attribute, or the exception that reading it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(obj, name)
    except Exception as error:  # noqa: BLE001 it is what is compared
        return error


def largest(h: np.ndarray, d: np.ndarray) -> float:
    kind = np.complex128 if h.dtype.kind == "c" else np.float64
    return float(np.nan_to_num(np.abs(h.astype(kind) - d.astype(kind)), posinf=0).max())


def describe(args: Any, kwargs: Any) -> str:
    def one(value: Any) -> str:
        if isinstance(value, np.ndarray):
            return f"{value.dtype}{list(value.shape)}"
        return repr(value)[:60].replace("\n", " ")

    return ", ".join([*(one(a) for a in args), *(f"{k}={one(v)}" for k, v in kwargs.items())])[:300]


# -- pytest ----------------------------------------------------------------------------------------

_shadow: Shadow | None = None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shadow", help="HOST:TWIN, such as skimage:cucim.skimage")
    parser.addoption("--shadow-device", default="cupy", help="cupy, lazy, numpy, or several with commas")
    parser.addoption("--shadow-report", help="JSON file to write")


def pytest_configure(config: pytest.Config) -> None:
    global _shadow
    pair = config.getoption("--shadow")
    if pair:
        host, twin = pair.split(":")
        _shadow = Shadow(host, twin, [Device(name) for name in config.getoption("--shadow-device").split(",")])
        _shadow.install()


@pytest.fixture(autouse=True)
def _shadow_name(request: pytest.FixtureRequest) -> Iterator[None]:
    if _shadow is not None:
        _shadow.test = request.node.name[:80]
    yield


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = session.config.getoption("--shadow-report")
    if _shadow is None or not path:
        return
    found = {name: record.as_dict() for name, record in sorted(_shadow.records.items()) if record.counts}
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(found, file, indent=1)


# -- reports ---------------------------------------------------------------------------------------

FINE = frozenset({"same", "both raise", "no array", "subclass", "dtype not holdable"})


def merge(paths: list[str]) -> dict[str, dict[str, Any]]:
    """The reports of several runs as one."""
    merged: dict[str, dict[str, Any]] = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        for name, found in report.items():
            into = merged.setdefault(name, {"counts": Counter(), "on_device": [0, 0], "errors": {},
                                            "written": Counter(), "seconds": [0.0, 0.0], "examples": {}})
            into["on_device"] = [a + b for a, b in zip(into["on_device"], found["on_device"])]
            into["counts"].update(found["counts"])
            into["written"].update(found["written"])
            into["seconds"] = [a + b for a, b in zip(into["seconds"], found["seconds"])]
            for dtype, size in found["errors"].items():
                into["errors"][dtype] = max(into["errors"].get(dtype, 0.0), size)
            for kind, seen in found["examples"].items():
                into["examples"][kind] = (into["examples"].get(kind, []) + seen)[:EXAMPLES]
    return dict(sorted(merged.items()))


def show(merged: dict[str, dict[str, Any]], examples: int = 2) -> None:
    """A line for each function, and examples of what differs."""
    for name, found in merged.items():
        counts = found["counts"]
        compared = {kind: n for kind, n in counts.items() if kind not in ("no array", "subclass")}
        if not compared:
            continue
        differs = {kind: n for kind, n in compared.items() if kind not in FINE}
        errors = ", ".join(f"{dtype} {size:.0e}" for dtype, size in found["errors"].items() if size)
        written = f" writes {dict(found['written'])}" if found["written"] else ""
        print(f"{'DIFF' if differs else 'same'} {name} {dict(compared)} [{errors}]{written}")
        for kind in differs:
            for example in found["examples"].get(kind, [])[:examples]:
                print(f"      {kind} | {example}")


def versions() -> dict[str, str]:
    """What the calls were made with."""
    import lazyarray
    from lazyarray import devices

    found = {name: metadata.version(name) for name in ("numpy", "scipy", "scikit-image", "cucim-cu13")}
    return {**found, "device": f"{lazyarray.device().name}: {devices.why().reason}"}


def verdicts(library: str, merged: dict[str, dict[str, Any]], made_with: dict[str, str]) -> str:
    """JSON with a line for each twin that is listed: how many calls came out how.

    ``same`` and ``wrong`` are those that the device ran; ``wrong`` ones differ in what they give, raise or write.
    ``errors`` are the largest differences by dtype, of the largest value; ``exact`` is the largest share of a result's
    integers or booleans that differ.
    """
    from lazyarray.integrations.routing.twin import table

    lines = []
    for path, twin in table(library).items():
        found = merged.get(path)
        if not twin.reason and found is not None:
            counts = found["counts"]
            same, wrong = found["on_device"]
            entry = {"same": same, "both raise": counts["both raise"], "to the host": counts["same"] - same,
                     "wrong": wrong,
                     "errors": {dtype: float(f"{size:.1e}") for dtype, size in found["errors"].items() if size}}
            lines.append(f"  {json.dumps(path)}: {json.dumps(entry)}")
    return '{\n "versions": ' + json.dumps(made_with) + ',\n "functions": {\n' + ",\n".join(lines) + "\n }\n}"


if __name__ == "__main__":
    if sys.argv[1] == "verdicts":
        print(verdicts(sys.argv[2], merge(sys.argv[3:]), versions()))
    else:
        show(merge(sys.argv[1:]))
