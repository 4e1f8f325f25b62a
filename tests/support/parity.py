"""The oracle of the parity tests: run one recipe on ndarrays and on lazy arrays, and say what differs.

Compared are the raised type, the structure of the result, dtype, shape, writeability and values of each
array in it, whether it is lazy, which operand it *is* or shares memory with, every operand afterwards, and
the number of copies.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from operands import DEVICE_DTYPES, HOST_DTYPES, HOST_UNTYPED, HOSTED, KNOWN, LAYOUTS, TYPED, Operands
from parity_compare import array_difference, difference, leaves, show

#: Whether small arrays stay on the host in this run: see `tests/conftest.py`.
SMALL_STAY = os.environ.get("LAZYARRAY_TEST_SMALL") == "1"

Compare = Callable[[Any, Any, tuple], "str | None"]


def _bind(*args: Any, **kwargs: Any) -> tuple[tuple, dict]:
    return args, kwargs


NAMES = {"np": np, "_bind": _bind}


@dataclasses.dataclass(frozen=True)
class Case:
    """One recipe of one function, ufunc method or member.

    ``host`` is the reason why this argument combination may run on the host although the function has a
    device version; ``func`` is None for a program, which is evaluated whole; ``lazy`` says whether the arrays
    and scalars that come out are lazy ones; ``parameters`` is how many small arrays the function itself makes
    on the host (bin edges, positions) for the device.
    """

    label: str
    code: types.CodeType
    func: Callable | None = None
    host: str | None = None
    kind: str = "elementwise"
    compare: Compare | None = None
    lazy: bool = True
    parameters: int = 0

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
        made += self.parameters + ("like=" in self.label)
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


_FLOATS = {"f2": "f4", "f4": "f4", "c8": "f4"}
_LOOPS = {"?": "f2", "i1": "f2", "u1": "f2", "f2": "f2", "i2": "f4", "u2": "f4", "f4": "f4", "c8": "f4"}
#: Functions that give double precision what they computed in single: the logarithm of 2 is a double.
_MIXED = frozenset({np.emath.logn})


def _kind(case: Case, code: str) -> str:
    """The kind of tolerance, with the dtype of the loop where the result's own says more than it knows."""
    if case.kind in ("exact", "extreme", "unset") or not (case.writes_out or case.func in _MIXED):
        return case.kind
    loop = (_LOOPS if isinstance(case.func, np.ufunc) or case.func in _MIXED else _FLOATS).get(code)
    return f"{case.kind} in {loop}" if loop else case.kind


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
        operands.arguments = sum(hasattr(item, "dtype") for item in leaves([args, kwargs]))
        with watch or warnings.catch_warnings():
            return case.func(*args, **kwargs)
    except Exception as error:  # noqa: BLE001  whatever NumPy raises is the expected result
        return _Error(error)


def _aliasing(want: Any, got: Any, wanted: list, gotten: list, kind: str, liked: bool) -> str | None:
    """Whether each result is, or shares memory with, the same operands: told by writing into it."""
    for one, other in zip(leaves(want), leaves(got), strict=True):
        if not isinstance(one, np.ndarray):
            continue
        for number, (left, right) in enumerate(zip(wanted, gotten, strict=True)):
            # With like= a host array becomes a lazy one, which it cannot be.
            if (one is left) != (other is right) and not (liked and type(right) is np.ndarray):
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
            problem = array_difference(one, other, kind)
            if problem:
                return f"operand {number}: {problem}"
    return None


#: Reasons for which a call of plain float64 arrays may go to the host: the device library has no such thing,
#: or it is a case so rare that NumPy's own answer is worth the copy.
DELIBERATE = re.compile(
    r"is (reduced|accumulated) in order|\w+\.(at|reduceat) (is|of)|initial=|bins given by|weight|boolean axis"
    r"|is a host array|index is not of integers|no axes or no points|an array as base=|^mode="
    r"|a function that pads|several axes|NaN in rows|of infinities or NaN|of a singular matrix"
    r"|(sum|mean|variance|range|borders)s? of (float64|nothing)|degrees of freedom|around a given mean"
    r"|0-d|array without elements|product with an empty list|products with an empty list|of an empty|so few axes"
    r"|of empty (or boolean )?arrays|where= (without|for)|keepdims= is|requires integers|mean= has another"
    r"|(value|out=) has another|of another (shape|kind|length|dtype)|differ in length|the numbers of points|truth value"
    r"|these keywords|these dimensions|not (an? )?(integers?|array)|axis= is None|not a Python number"
    r"|^\w+ with (axis|axes|keepdims)|out of (range|bounds)|cast to|^dtype \S+ is not supported"
    r"|arguments are invalid|NumPy shall judge|signature=|None among the sizes|tolerance|start from -0\.0"
    r"|size is negative|this shape|through zero|infinite steps|memory order"
    r"|vectors of two dimensions|outer needs|table too long|sorter|the target is|columns|not one-dimensional"
    r"|means something else|other than float64"
)


def accepted(reason: str, layout: str, everyday: bool) -> bool:
    """Whether a fallback is a decision, not an accident.

    An error on the device where NumPy has none is an accident, which only arrays of no or one element may
    have.  With everyday arguments even a decision has to be one that is listed.
    """
    if " on the device:" in reason or "no table" in reason:
        return layout in ("0-d", "empty")
    return not everyday or bool(DELIBERATE.search(reason))


def _copies(
    case: Case, code: str, layout: str, want: Any, got_operands: Operands, events: list, on_device: bool
) -> str | None:
    """Whether a call copied more than the contract allows."""
    counts = {kind: sum(event.kind == kind for event in events) for kind in ("upload", "materialise")}
    lazy_made = max(got_operands.arguments, sum(type(item) is not np.ndarray for item in got_operands.made))
    plain = any(not isinstance(item, (np.ndarray, np.generic)) and item is not None for item in leaves(want))
    host_out = "out=h(" in case.label or any(name in ("hof", "hox", "hoacc") for name in case.names)
    on_device = on_device and case.host is None and code in DEVICE_DTYPES
    reasons = [event.reason for event in events if event.kind == "fallback"] if on_device else []
    unwanted = [reason for reason in reasons if not accepted(reason, layout, (code, layout) == ("f8", "C"))]
    if unwanted:
        return f"fallback: to the host ({unwanted[0]})"
    if on_device and not reasons:
        # Python objects as results, and host arrays as out=, have to be read back: that is what they are.
        if counts["materialise"] > (1 if plain or host_out else 0):
            return f"copies: {counts['materialise']} materialisations, expected none"
    elif counts["materialise"] > lazy_made + (case.func is None) and (case.lazy or case.func is None):
        return f"copies: {counts['materialise']} materialisations of {lazy_made} arguments"
    # Small arrays that stay on the host are uploaded when they meet one of the device.
    if counts["upload"] > case.hosted + (lazy_made if SMALL_STAY else 0):
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


def _part_of(result: Any, operand: Any) -> bool:
    """Whether a result is a host operand or a view of one, which no lazy array can be."""
    if type(operand) is not np.ndarray or type(result) is not np.ndarray:
        return False
    return result is operand or np.may_share_memory(result, operand)


def examine(case: Case, code: str, layout: str, library: Library, on_device: bool = False) -> str | None:
    """Run a case on both kinds of array and say what differs first, or None."""
    wanted = Operands(np.asarray, code, layout)
    gotten = Operands(library.make, code, layout, library.to_device)
    for name in case.names:
        wanted[name], gotten[name]
    want = _run(case, wanted)
    watch = library.watch() if library.watch else None
    got = _run(case, gotten, watch)
    kind = _kind(case, code)
    if isinstance(want, _Error) or isinstance(got, _Error):
        if not isinstance(got, _Error):
            return f"error: none where NumPy raises {type(want.error).__name__}: {show(want.error)}"
        if not isinstance(want, _Error):
            return f"error: {type(got.error).__name__}: {show(got.error)} where NumPy raises nothing"
        if type(want.error) is not type(got.error):
            return (
                f"error: {type(got.error).__name__} ({show(got.error)}) where NumPy raises "
                f"{type(want.error).__name__} ({show(want.error)})"
            )
        # What an error leaves in out= is nobody's promise: NumPy stops where it was.
        return _side_effects(wanted.made, gotten.made, "unset" if case.writes_out else kind)
    problem = (case.compare(want, got, tuple(wanted.made)) if case.compare else None) or difference(
        want, got, "unset" if case.compare else kind
    )
    if problem:
        return problem
    lazy_in = case.lazy and case.host is None and library.is_lazy and any(library.is_lazy(item) for item in gotten.made)
    if lazy_in:
        eager = [
            type(two).__name__
            for one, two in zip(leaves(want), leaves(got), strict=True)
            if (type(one) is np.ndarray or isinstance(one, np.generic) and code in DEVICE_DTYPES and not SMALL_STAY)
            and one.dtype.kind in "biufc"
            and not library.is_lazy(two)
            and not any(_part_of(two, item) for item in gotten.made)
        ]
        if eager:
            return f"lazy: the result is a {eager[0]}"
    events = list(watch.events) if watch else []
    if kind == "unset":
        return _copies(case, code, layout, want, gotten, events, on_device)
    return (
        _side_effects(wanted.made, gotten.made, kind)
        or (_copies(case, code, layout, want, gotten, events, on_device) if watch else None)
        or _aliasing(want, got, wanted.made, gotten.made, kind, "like=" in case.label)
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


_ALL = DEVICE_DTYPES + HOST_DTYPES

#: Where NumPy itself (2.4 and 2.5) crashes or returns memory that it never wrote, or where C leaves open what it does
#: (conversions of floats that the integer can't hold): start of the label, dtypes, layouts.
UNSOUND: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("np.place(", ("T",), LAYOUTS),
    ("np.lexsort(", ("T",), LAYOUTS),
    *((f"np.logical_{name}.", ("T",), LAYOUTS) for name in ("and", "or", "xor")),
    *((f"{name}, out=", ("O", "T"), LAYOUTS) for name in ("x.any(0", "x.all(0")),
    *((f"np.{name}({x}, axis=0, out=", ("O", "T"), LAYOUTS) for name in ("any", "all") for x in ("x", "hx")),
    ("np.vecmat(m, n, order='F')", ("c8", "c16", "G"), LAYOUTS),
    ("np.fft.hfft(x, n=8, axis=0)", _ALL, ("empty",)),
    ("np.fft.irfft(x, n=8, axis=0)", _ALL, ("empty",)),
    *((f"np.{name}(x, y, out=oi, casting='unsafe'", _ALL, LAYOUTS) for name in ("divide", "power", "float_power",
                                                                                          "floor_divide")),
    ("np.reciprocal(x, out=oi, casting='unsafe'", ("f2", "f4", "f8", "c8", "c16"), LAYOUTS),
    ("x.astype('u1')", ("f2", "f4", "f8", "c8", "c16"), LAYOUTS),
    # Writes over the operand that it goes on reading, once for each repetition of the result.
    ("np.vecdot(m, n, out=m)", _ALL, LAYOUTS),
)
if np.lib.NumpyVersion(np.__version__) < "2.5.0":
    UNSOUND += (("x.flat = 3", ("T",), LAYOUTS),)       # a string assigned to x.flat is padded


def _at_writes_read_only() -> bool:
    array = np.broadcast_to(np.zeros(1), (2,))
    try:
        np.add.at(array, 0, 0.0)
    except ValueError:
        return False
    return True


if _at_writes_read_only():
    # Such a NumPy writes into read-only arrays there, where lazy arrays refuse.
    _UFUNCS = [name for name, ufunc in vars(np._core.umath).items() if isinstance(ufunc, np.ufunc)]
    UNSOUND += tuple((f"np.{name}.at(", _ALL, ("broadcast",)) for name in _UFUNCS)

#: Where NumPy asks nobody, so that no array-like can answer as ndarray does; same columns.
UNASKED: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    # Dispatched on the first argument alone; the second one's `dtype` attribute then makes it a dtype.
    ("np.can_cast('f4', x)", _ALL, LAYOUTS),
    # Dispatched on the elements of its argument, of which there are none.
    *((f"np.roots({name})", _ALL, ("empty",)) for name in ("v", "pv")),
    # An empty index that is no ndarray counts as one of integers, whatever its dtype.
    ("hx[mask] = y[mask]", _ALL, ("empty",)),
    # NumPy reads units, fields and the length of strings wrong from these protocols: lazy arrays leave them out
    # where they can't say what they are, so that the next protocol in line does.
    *((f"type({name}.__array_struct__)", ("M8[s]", "m8[s]", "U3", "struct", "T"), LAYOUTS) for name in "xs"),
    *((label, ("T",), LAYOUTS) for label in ("x.__array_interface__", "sorted(x.__array_interface__")),
)
if sys.version_info < (3, 12):
    # The buffer protocol is for types written in C.
    UNASKED += tuple((f"{start}memoryview(", _ALL, LAYOUTS) for start in ("", "len("))
    UNASKED += (("bytearray(v)", _ALL, LAYOUTS),)


def sound(case: Case, code: str, layout: str) -> bool:
    """Whether NumPy's answer can be relied on, and can be given by others."""
    return not any(
        case.label.startswith(start) and code in codes and layout in layouts
        for start, codes, layouts in UNSOUND + UNASKED
    )


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
                problem = sound(case, code, layout) and examine(case, code, layout, library, on_device)
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
