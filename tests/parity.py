"""The oracle of the parity tests: run one recipe on ndarrays and on lazy arrays, and say what differs.

Compared are the raised type, the structure of the result, dtype, shape, writeability and values of each
array in it, whether it is lazy, which operand it *is* or shares memory with, every operand afterwards, and
the number of copies.

Tolerances
----------
Integers, bools, strings and views are exact.  Floats are compared with a multiple of the spacing of the
result's dtype, by the kind of the function:

========== ======= ========== =======================================================================
kind       factor  relative   reason
========== ======= ========== =======================================================================
exact      0       -          the bytes are moved, not computed
elementwise 8      to element CUDA's libm is documented to about 2 ulp, NumPy's SIMD loops to 4; half
                              precision is computed in single on both sides and rounded once
reduction  64      to largest the order of the additions differs (pairwise, by block, by warp)
fft        256     to largest other factorisations of the length
linalg     4096    to largest other algorithms; the matrices of the tables have condition below 1e3
========== ======= ========== =======================================================================
"""

from __future__ import annotations

import dataclasses
import functools
import re
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from operands import DEVICE_DTYPES, HOST_DTYPES, HOST_UNTYPED, HOSTED, KNOWN, LAYOUTS, TYPED, Operands

FACTORS = {"exact": 0, "elementwise": 8, "reduction": 64, "fft": 256, "linalg": 4096}

Compare = Callable[[Any, Any, tuple], "str | None"]


def _bind(*args: Any, **kwargs: Any) -> tuple[tuple, dict]:
    return args, kwargs


NAMES = {"np": np, "_bind": _bind}


@dataclasses.dataclass(frozen=True)
class Case:
    """One recipe of one function, ufunc method or member.

    ``host`` is the reason why this argument combination may run on the host although the function has a
    device version; ``func`` is None for a program, which is evaluated whole.
    """

    label: str
    code: types.CodeType
    func: Callable | None = None
    host: str | None = None
    kind: str = "elementwise"
    compare: Compare | None = None

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in self.code.co_names if name in KNOWN)

    @property
    def writes_out(self) -> bool:
        """Whether an operand is there to be overwritten."""
        named = any(name[:1] == "o" or name[:2] == "ho" for name in self.names)
        return named or "out" in self.label or (self.func is None and bool(re.search(r"[-+*/%@&|^<>]=", self.label)))

    @property
    def hosted(self) -> int:
        """How many operands are plain host data, each of which may be uploaded once."""
        made = len(re.findall(r"\b(?:a|out)\(", self.label)) if self.func is None else 0
        return made + self.label.count("[") + sum(
            name in HOSTED or name in HOST_UNTYPED or name == "h" or (name[:1] == "l" and name[1:] in TYPED)
            for name in self.names
        )


def split_reason(line: str) -> tuple[str, str | None]:
    """A recipe and the reason behind its ``# host:`` mark."""
    text, mark, reason = line.partition("# host:")
    return text.strip(), reason.strip() if mark else None


def call_case(prefix: str, func: Callable, line: str, **settings: Any) -> Case:
    """A case that calls ``func`` with the arguments that ``line`` writes out."""
    text, reason = split_reason(line)
    label = f"{prefix}({text})"
    return Case(label, compile(f"_bind({text})", label, "eval"), func, reason, **settings)


def program_case(line: str, **settings: Any) -> Case:
    """A case that evaluates ``line``, or executes it and takes what it left in ``r``."""
    text, reason = split_reason(line)
    try:
        code = compile(text, text, "eval")
    except SyntaxError:
        code = compile(text, text, "exec")
    return Case(text, code, None, reason, **settings)


@dataclasses.dataclass(frozen=True)
class Failure:
    """What differed, and how to see it again."""

    label: str
    code: str
    layout: str
    problem: str

    def __str__(self) -> str:
        return f"{self.label}   [{self.code}, {self.layout}]: {self.problem}"


class _Error:
    def __init__(self, error: BaseException) -> None:
        self.error = error


def _run(case: Case, operands: Operands, watch: Any = None) -> Any:
    """The value of a case, or its error."""
    try:
        if case.func is None:
            with watch or warnings.catch_warnings():
                value = eval(case.code, NAMES, operands)
            return operands.get("r") if value is None else value
        args, kwargs = eval(case.code, NAMES, operands)
        with watch or warnings.catch_warnings():
            return case.func(*args, **kwargs)
    except Exception as error:  # noqa: BLE001  whatever NumPy raises is the expected result
        return _Error(error)


def host(value: Any) -> np.ndarray:
    """The host copy of an array of either run."""
    return np.array(value, copy=None, subok=False)


def close(want: np.ndarray, got: np.ndarray, kind: str) -> bool:
    """Whether two arrays of one dtype and shape agree within the tolerance of ``kind``."""
    if want.dtype.names:
        return all(close(want[name], got[name], kind) for name in want.dtype.names)
    if want.dtype.kind not in "fc":
        if want.dtype.kind in "mM":
            return bool(np.array_equal(want, got, equal_nan=True))
        if want.dtype.kind == "O":
            pairs = zip(want.flat, got.flat, strict=True)
            return all(difference(one, other, kind) is None for one, other in pairs)
        return bool((want == got).all())
    same = (want == got) | ((want != want) & (got != got))
    if same.all():
        return kind != "exact" or bool((np.signbit(want.real) == np.signbit(got.real))[want == 0].all())
    if kind == "exact":
        return False
    odd = ~same
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    a, b = want[odd].astype(wide), got[odd].astype(wide)
    finite = np.isfinite(want)
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return False
    scale = np.abs(a) if kind == "elementwise" else np.abs(want[finite].astype(wide)).max(initial=0)
    info = np.finfo(want.dtype)
    factor = FACTORS[kind] * (4 if want.dtype.kind == "c" and kind == "elementwise" else 1)
    return bool((np.abs(a - b) <= factor * float(info.eps) * scale + 4 * float(info.smallest_subnormal)).all())


def _show(value: Any) -> str:
    return repr(value).replace("\n", " ")[:160]


def _array_difference(want: np.ndarray, got: Any, kind: str) -> str | None:
    if not isinstance(got, np.ndarray):
        return f"type: {type(got).__name__} where NumPy gives an ndarray"
    if got.dtype != want.dtype:
        return f"dtype: {got.dtype} where NumPy gives {want.dtype}"
    if got.shape != want.shape:
        return f"shape: {got.shape} where NumPy gives {want.shape}"
    if got.flags.writeable != want.flags.writeable:
        return f"writeable: {got.flags.writeable} where NumPy gives {want.flags.writeable}"
    if kind == "unset":
        return None
    there = host(got)
    if there.dtype != want.dtype or there.shape != want.shape:
        return f"host copy: {there.dtype}{there.shape}, expected {want.dtype}{want.shape}"
    if not close(host(want), there, kind):
        return f"values: {_show(there)} where NumPy gives {_show(want)}"
    return None


def difference(want: Any, got: Any, kind: str = "exact") -> str | None:
    """How two results differ, or None."""
    if isinstance(want, np.ndarray):
        return _array_difference(want, got, kind)
    if isinstance(want, np.generic):
        if not isinstance(got, type(want)):
            return f"type: {type(got).__name__} where NumPy gives the scalar {type(want).__name__}"
        if isinstance(got, np.ndarray):
            return "type: an array where NumPy gives a scalar"
        if got.dtype != want.dtype:
            return f"dtype: scalar {got.dtype} where NumPy gives {want.dtype}"
        if kind != "unset" and not close(np.asarray(want), np.asarray(got), kind):
            return f"values: {_show(got)} where NumPy gives {_show(want)}"
        return None
    if isinstance(want, (tuple, list)):
        if type(got) is not type(want):
            return f"type: {type(got).__name__} where NumPy gives {type(want).__name__}"
        if len(got) != len(want):
            return f"length: {len(got)} where NumPy gives {len(want)}"
        parts = (difference(a, b, kind) for a, b in zip(want, got, strict=True))
        return next((part for part in parts if part), None)
    if isinstance(want, dict):
        if type(got) is not type(want) or list(got) != list(want):
            return f"keys: {_show(got)} where NumPy gives {_show(want)}"
        return difference(list(want.values()), list(got.values()), kind)
    if isinstance(want, (np.flatiter, types.GeneratorType)) or type(want).__name__.endswith("iterator"):
        return difference(list(want), list(got), kind)
    if type(want) is type(np.zeros(1).flags):
        want, got = str(want), str(got)
    if type(got) is not type(want):
        return f"type: {type(got).__name__} where NumPy gives {type(want).__name__}"
    if isinstance(want, memoryview):
        want, got = (want.tobytes(), want.format, want.shape), (got.tobytes(), got.format, got.shape)
    elif isinstance(want, (float, complex)):
        return None if close(np.asarray(want), np.asarray(got), kind) else f"values: {got!r} where NumPy gives {want!r}"
    elif type(want).__eq__ is object.__eq__:
        return None
    return None if want == got else f"values: {_show(got)} where NumPy gives {_show(want)}"


def leaves(value: Any) -> Iterator[Any]:
    """The arrays, scalars and other objects in a nested result."""
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        yield from leaves(list(value.values()))
    else:
        yield value


def _aliasing(want: Any, got: Any, wanted: list, gotten: list, kind: str) -> str | None:
    """Whether each result is, or shares memory with, the same operands: told by writing into it."""
    for one, other in zip(leaves(want), leaves(got), strict=True):
        if not isinstance(one, np.ndarray):
            continue
        for number, (left, right) in enumerate(zip(wanted, gotten, strict=True)):
            if (one is left) != (other is right):
                return f"identity: result is operand {number}: {other is right} where NumPy says {one is left}"
        if one.size and one.flags.writeable and one.dtype.kind in "biufcSUO":
            one[...] = 1
            other[...] = 1
            problem = _side_effects(wanted, gotten, kind)
            if problem:
                return f"aliasing: after a write into the result, {problem}"
    return None


def _side_effects(wanted: list, gotten: list, kind: str) -> str | None:
    for number, (one, other) in enumerate(zip(wanted, gotten, strict=True)):
        if isinstance(one, np.ndarray):
            problem = _array_difference(one, other, kind)
            if problem:
                return f"operand {number}: {problem}"
    return None


def _copies(case: Case, code: str, want: Any, got_operands: Operands, events: list, on_device: bool) -> str | None:
    """Whether a call copied more than the contract allows."""
    counts = {kind: sum(event.kind == kind for event in events) for kind in ("upload", "materialise", "fallback")}
    lazy_made = sum(type(item) is not np.ndarray for item in got_operands.made)
    plain = any(not isinstance(item, (np.ndarray, np.generic)) and item is not None for item in leaves(want))
    host_out = any(name in ("hof", "hox", "hoacc") for name in case.names)
    if on_device and case.host is None and code in DEVICE_DTYPES:
        if counts["fallback"]:
            reasons = {event.reason for event in events if event.kind == "fallback"}
            return f"fallback: to the host ({'; '.join(map(str, reasons))})"
        # Python objects as results, and host arrays as out=, have to be read back: that is what they are.
        if counts["materialise"] > (1 if plain or host_out else 0):
            return f"copies: {counts['materialise']} materialisations, expected none"
    elif counts["materialise"] > lazy_made:
        return f"copies: {counts['materialise']} materialisations of {lazy_made} arguments"
    if counts["upload"] > case.hosted:
        return f"copies: {counts['upload']} uploads, expected at most {case.hosted}"
    return None


@dataclasses.dataclass(frozen=True)
class Library:
    """What is tested: how to make its arrays, tell them and watch its copies."""

    make: Callable[[np.ndarray], Any]
    is_lazy: Callable[[Any], bool] | None = None
    watch: Callable[[], Any] | None = None
    to_device: Callable[[Any], Any] | None = None

    @classmethod
    def numpy(cls) -> Library:
        """NumPy against itself: shows that the recipes themselves are sound."""
        return cls(np.asarray)

    @classmethod
    def lazyarray(cls) -> Library:
        import lazyarray

        return cls(lazyarray.asarray, lazyarray.is_lazy, lazyarray.trace, lazyarray.asdevice)


def examine(case: Case, code: str, layout: str, library: Library, on_device: bool = False) -> str | None:
    """Run a case on both kinds of array and say what differs first, or None."""
    wanted = Operands(np.asarray, code, layout)
    gotten = Operands(library.make, code, layout, library.to_device)
    for name in case.names:
        wanted[name], gotten[name]
    want = _run(case, wanted)
    watch = library.watch() if library.watch else None
    got = _run(case, gotten, watch)
    kind = case.kind
    if isinstance(want, _Error) or isinstance(got, _Error):
        if not isinstance(got, _Error):
            return f"error: none where NumPy raises {type(want.error).__name__}: {_show(want.error)}"
        if not isinstance(want, _Error):
            return f"error: {type(got.error).__name__}: {_show(got.error)} where NumPy raises nothing"
        if type(want.error) is not type(got.error):
            return (
                f"error: {type(got.error).__name__} ({_show(got.error)}) where NumPy raises "
                f"{type(want.error).__name__} ({_show(want.error)})"
            )
        # What an error leaves in out= is nobody's promise: NumPy stops where it was.
        return _side_effects(wanted.made, gotten.made, "unset" if case.writes_out else kind)
    problem = (case.compare(want, got, tuple(wanted.made)) if case.compare else None) or difference(
        want, got, "unset" if case.compare else kind
    )
    if problem:
        return problem
    lazy_in = library.is_lazy and any(library.is_lazy(item) for item in gotten.made)
    if lazy_in:
        eager = [
            type(two).__name__
            for one, two in zip(leaves(want), leaves(got), strict=True)
            if isinstance(one, (np.ndarray, np.generic))
            and not library.is_lazy(two)
            and not any(two is item for item in gotten.made)
            and code in DEVICE_DTYPES
        ]
        if eager:
            return f"lazy: the result is a {eager[0]}"
    events = list(watch.events) if watch else []
    if kind == "unset":
        return _copies(case, code, want, gotten, events, on_device)
    return (
        _side_effects(wanted.made, gotten.made, kind)
        or (_copies(case, code, want, gotten, events, on_device) if watch else None)
        or _aliasing(want, got, wanted.made, gotten.made, kind)
    )


def selection(number: int, of: int, nightly: bool = False, budget: int = 48) -> Iterable[tuple[str, str]]:
    """The (dtype, layout) pairs of recipe ``number`` of ``of``.

    Nightly all of them.  Otherwise each recipe takes a different slice of the full product, so that the
    recipes of one function together meet every dtype and every layout, and about ``budget`` pairs in all.
    """
    dtypes = DEVICE_DTYPES + HOST_DTYPES
    if nightly:
        return [(code, layout) for code in dtypes for layout in LAYOUTS]
    count = max(5, -(-budget // of))
    # 7 layouts and 24 dtypes have no common factor: the walk below meets every pair before it repeats one.
    walk = range(number * count, (number + 1) * count)
    pairs = [(dtypes[step % len(dtypes)], LAYOUTS[step % len(LAYOUTS)]) for step in walk]
    return [("f8", "C"), *(pair for pair in pairs if pair != ("f8", "C"))]


def failures(
    cases: Iterable[Case],
    library: Library,
    *,
    nightly: bool = False,
    budget: int = 48,
    on_device: bool = False,
    pairs: Iterable[tuple[str, str]] | None = None,
) -> list[Failure]:
    """Every case over its selection of dtypes and layouts."""
    cases = list(cases)
    found = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for number, case in enumerate(cases):
            for code, layout in pairs or selection(number, len(cases), nightly, budget):
                problem = examine(case, code, layout, library, on_device)
                if problem:
                    found.append(Failure(case.label, code, layout, problem))
    return found


def report(found: list[Failure], limit: int = 12) -> str:
    """The text of an assertion."""
    lines = [f"{len(found)} differences from NumPy", *map(str, found[:limit])]
    if len(found) > limit:
        lines.append(f"... and {len(found) - limit} more")
    return "\n".join(lines)


def raises(case: Case, code: str, layout: str) -> type[BaseException] | None:
    """The type of the error that NumPy itself raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        value = _run(case, Operands(np.asarray, code, layout))
    return type(value.error) if isinstance(value, _Error) else None
