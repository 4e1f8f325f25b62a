"""Every function, ufunc, method and operator against CuPy's, at three sizes and in two dtypes.

``python -m benchmarks.sweep`` takes the calls from the recipes of the tests (``tests/support/recipes*.py``): for each
name the first that needs nothing but arrays, and the first with an axis. Both libraries run the same call in turn, with
their own arrays; what is kept is the ratio of the medians. A size is left out where the call would take too long or too
much memory, or where the time for all of it is up.
"""
from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import math
import operator
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import lazyarray
from lazyarray.functions import tables

from . import timing

SUPPORT = Path(__file__).parent.parent / "tests" / "support"
SIZES = (10**3, 10**6, 10**8)
DTYPES = ("f4", "f8")
#: What is asked of the median of the ratios, and of each.
MEDIAN, EACH = 0.9, 1.2
#: A call that takes more seconds than this is not timed at larger sizes.
LONGEST = 0.2
#: One that takes more is called three times before it is timed; others twelve times.
_SLOW = 0.01
#: Operands of at most so many elements are made once for all calls.
KEPT = 10**7
WORST = 20

#: Operands that a call may have besides those of the tests' table of typed ones.
_MASKS = {"mask": "x", "vmask": "v"}
_ALLOWED = frozenset({"np", "dt", "divmod", "pow", "abs", "round", "operator"})


class Call(NamedTuple):
    """One call of both libraries.

    Attributes
    ----------
    label : str
        The call as it is written.
    ours, theirs : callable
        Of a mapping of operands, what makes the call with them.
    writes : bool
        Whether it changes its operands.
    """

    label: str
    ours: Callable[[Any], Callable[[], Any]]
    theirs: Callable[[Any], Callable[[], Any]]
    writes: bool


class Row(NamedTuple):
    """What was measured of one call: medians in microseconds."""

    label: str
    dtype: str
    size: int
    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs


# -- the calls -------------------------------------------------------------------------------------

def calls() -> Iterator[Call]:
    """The calls of all functions and ufuncs that run on the device, their methods, and the members of arrays."""
    if str(SUPPORT) not in sys.path:
        sys.path.insert(0, str(SUPPORT))
    import recipes
    import recipes_members
    import recipes_ufuncs

    for func in recipes.RECIPES:
        if func not in tables.HOST_ONLY:
            peer = _at(func.__module__.removeprefix("numpy").lstrip("."), func.__name__)
            yield from _chosen(recipes.cases_of(func), peer)
    for name, cases in recipes_ufuncs.groups():
        ufunc, _, method = name.partition(".")
        if recipes_ufuncs.UFUNCS[ufunc] not in tables.UFUNC_HOST_ONLY:
            peer = _at("", ufunc)
            yield from _chosen(cases, getattr(peer, method, None) if method else peer)
    for name in recipes_members.MEMBERS:
        if name not in recipes_members.HOST_MEMBERS:
            yield from _chosen(recipes_members.cases_of(name), None)


def _at(module: str, name: str) -> Any:
    """The device library's function at NumPy's place, or None."""
    try:
        return operator.attrgetter(".".join(filter(None, (module, name))))(lazyarray.device().xp)
    except AttributeError:
        return None


def _chosen(cases: Sequence[Any], peer: Any) -> Iterator[Call]:
    """The first case that needs arrays alone, and the first of those with an axis."""
    import operands
    import parity

    known = {*operands.TYPED, *_MASKS, *_ALLOWED}
    axis: set[bool] = set()
    for case in cases:
        source = parity.split_reason(case.label)[0]
        names = _names(source, case.func is not None)
        if (case.host is not None or names is None or not names <= known or not names & {*operands.TYPED}
                or (with_axis := "axis" in source) in axis or (case.func is not None and peer is None)
                or not _works(case)):
            continue
        axis.add(with_axis)
        yield Call(source, _caller(case, case.func), _caller(case, peer if case.func is not None else None),
                   case.writes_out)
        if len(axis) == 2:
            return


def _names(source: str, is_call: bool) -> set[str] | None:
    """The names that a recipe loads, less the function that it calls; None if it is more than a line."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    body: Any = tree.body[-1]
    nodes = [*body.value.args, *body.value.keywords] if is_call else tree.body
    stored = {node.id for part in nodes for node in ast.walk(part)
              if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return {node.id for part in nodes for node in ast.walk(part) if isinstance(node, ast.Name)} - stored


def _works(case: Any) -> bool:
    """Whether NumPy computes arrays of it, at the size of the tests."""
    given = Operands(12, "f8", functools.partial(values, np))
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            result = _caller(case, case.func)(given)()
    except Exception:  # noqa: BLE001  the tests have recipes for each of NumPy's errors
        return False
    parts = result if isinstance(result, (tuple, list)) else [result]
    return bool(parts) and all(isinstance(part, (np.ndarray, np.number, np.bool_)) for part in parts)


def _caller(case: Any, function: Any) -> Callable[[Any], Callable[[], Any]]:
    """What makes the call of a case with operands; `function` in the place of the case's own, if that has one."""
    import parity

    def prepared(given: Operands) -> Callable[[], Any]:
        if case.func is not None:
            args, kwargs = eval(case.code, parity.NAMES, given)
            return lambda: function(*args, **kwargs)

        def program() -> Any:
            value = eval(case.code, parity.NAMES, given)
            return given.get("r") if value is None else value

        return program

    return prepared


class Operands(dict):
    """The arrays that a call names, of about `size` elements each, made by `make` when they are asked for."""

    def __init__(self, size: int, code: str, make: Callable[[str, Operands], Any]) -> None:
        super().__init__(dt=np.dtype(code))
        self.size, self.make = size, make

    def __missing__(self, name: str) -> Any:
        self[name] = array = self.make(name, self)
        return array


#: Elements with values of their own; a larger array repeats them.
_BLOCK = 1 << 20


def values(xp: Any, name: str, given: Operands) -> Any:
    """The operand of this name as an array of `xp`, NumPy or the device library."""
    import operands

    side = max(math.isqrt(given.size), 2)
    shape, kind = operands.TYPED[_MASKS.get(name, name)]
    if len(shape) == 1:
        shape = (side if name == "row" else given.size,)
    else:
        shape = tuple(n if n in (1, 2) else side for n in shape)
    count = math.prod(shape)
    block = np.random.default_rng(len(name)).uniform(1, 5, min(count, _BLOCK))
    if kind == "unit":
        block = (block - 3) / 2
    elif kind == "few":
        block = np.floor(block / 2)
    elif kind != "positive":
        block = block - 3
    if kind == "nans":
        block[::7] = np.nan
    block = block > 0 if name in _MASKS else block.astype(given["dt"])
    found = xp.asarray(block)
    if count > len(block):
        found = xp.tile(found, -(-count // len(block)))[:count].copy()
    found = found.reshape(shape)
    if kind == "sorted":
        found.sort()
    elif kind == "spd" and len(shape) > 1:
        found = (found + found.swapaxes(-1, -2)) / 2 + shape[-1] * 4 * xp.eye(shape[-1], dtype=given["dt"])
    return found


# -- the measurements ------------------------------------------------------------------------------

class Sweep:
    """Both libraries' operands of one dtype and size, and what is timed with them."""

    def __init__(self, size: int, code: str) -> None:
        self.size, self.code = size, code
        self._shared = self._operands()

    def _operands(self) -> tuple[Operands, Operands]:
        theirs = Operands(self.size, self.code, functools.partial(values, lazyarray.device().xp))
        return Operands(self.size, self.code,
                        lambda name, given: lazyarray.asarray(theirs[name].copy(), donate=True)), theirs

    def pair(self, call: Call) -> dict[str, Callable[[], Any]]:
        """The two calls; what they change is their own."""
        ours, theirs = self._operands() if call.writes else self._shared
        return {"theirs": call.theirs(theirs), "ours": call.ours(ours)}

    def seconds(self, both: dict[str, Callable[[], Any]]) -> float:
        """Of the slower of both, once they are warm. The other library's comes first: it may refuse."""
        found = []
        for one in both.values():
            for times in (3, 9):        # a kernel is compiled for what is asked for often
                timing.warm(one, times)
                start = time.perf_counter()
                kept = timing.compute(one())
                lazyarray.device().synchronize()
                took = time.perf_counter() - start
                del kept
                if took > _SLOW:
                    break
            found.append(took)
        return max(found)

    def row(self, call: Call, seconds: float) -> Row:
        """Both timed in turn, for `seconds` each or a few times."""
        both = self.pair(call)
        once = max(self.seconds(both), 1e-7)
        number = max(1, min(50, int(2e-3 / once)))
        rounds = max(5, min(15, int(seconds / (number * once))))
        found = medians(both, number, rounds)
        return Row(call.label, self.code, self.size, 1e6 * found["ours"], 1e6 * found["theirs"])


def medians(both: dict[str, Callable[[], Any]], number: int, rounds: int) -> dict[str, float]:
    """Median seconds a call, of callables timed in turn, `number` calls at a time."""
    synchronize = lazyarray.device().synchronize
    found: dict[str, list[float]] = {name: [] for name in both}
    for _ in range(rounds):
        for name, call in both.items():
            timing.compute(call())
            synchronize()
            start = time.perf_counter()
            for _ in range(number):
                kept = timing.compute(call())
            synchronize()
            found[name].append((time.perf_counter() - start) / number)
            del kept
    return {name: statistics.median(times) for name, times in found.items()}


def rows(seconds: float = 330.0, sizes: Sequence[int] = SIZES, dtypes: Sequence[str] = DTYPES,
         each: float = 0.02, some: Callable[[Call], bool] = lambda call: True,
         refused: dict[str, str] | None = None) -> Iterator[Row]:
    """Measure, the small arrays first, until `seconds` are over; `each`: seconds for one call at one size.

    A call that raises an error with one library's arrays is not compared: `refused` gets the error's words: the error
    itself would keep what lay in the memory of the frames that it went through.
    """
    end = time.perf_counter() + seconds
    chosen = [call for call in calls() if some(call)]
    for code in dtypes:
        took: dict[str, tuple[int, float]] = dict.fromkeys((call.label for call in chosen), (0, 0.0))
        if sizes and sizes[0] <= KEPT:
            _begin(Sweep(sizes[0], code), chosen)
        for size in sizes:
            between: dict[int, Sweep] = {}
            for call in chosen:
                if time.perf_counter() > end - (len(dtypes) - 1 - dtypes.index(code)) * seconds / len(dtypes):
                    break
                if call.label not in took:
                    continue
                known, before = took.pop(call.label)
                try:
                    if known and not fits_in_time(call, code, size, known, before, between):
                        continue
                    one = Sweep(size, code)     # the largest operands are not kept: they would fill the memory
                    row = (one if size > KEPT else between.setdefault(size, one)).row(call, each)
                except Exception as error:  # noqa: BLE001  what CuPy lacks, or has no memory for, is not compared
                    if refused is not None:
                        refused[f"{call.label}, {code}, {size:.0e}"] = f"{type(error).__name__}: {error}"
                    continue
                took[call.label] = size, max(row.ours, row.theirs) / 1e6
                yield row


def _begin(sweep: Sweep, chosen: Sequence[Call]) -> None:
    """Call each a few times: its kernels are compiled side by side, before one after the other is waited for."""
    for call in chosen:
        with contextlib.suppress(Exception):    # it is compared with nothing then: see `rows`
            one = sweep.pair(call)["ours"]
            for _ in range(3):
                timing.compute(one())
    lazyarray.device().wait_for_kernels()


def fits_in_time(call: Call, code: str, size: int, known: int, seconds: float, between: dict[int, Sweep]) -> bool:
    """Whether a call at a larger size is quick enough, from sizes in between: a product may take its square."""
    while known * 10 < size:
        known *= 10
        sweep = between.setdefault(known, Sweep(known, code))
        now = sweep.seconds(sweep.pair(call))
        if now * max(now / seconds, 1.0) > LONGEST:
            return False
        seconds = now
    return seconds * size / known < LONGEST


def figures(found: Sequence[Row]) -> timing.Figures:
    """The medians by size, how many calls are above what is asked of each, and all rows."""
    kept = timing.Figures()
    for size in sorted({row.size for row in found}):
        ratios = [row.ratio for row in found if row.size == size]
        kept.note(f"all calls, {size:.0e} elements: median", statistics.median(ratios), "times", most=MEDIAN)
        kept.note(f"all calls, {size:.0e} elements: above {EACH}", sum(r > EACH for r in ratios) / len(ratios), "part",
                  most=0.0)
    for row in found:
        kept.note(f"{row.label}, {row.dtype}, {row.size:.0e}", row.ratio, "times", most=EACH)
        kept[-1] |= {"ours": float(f"{row.ours:.4g}"), "theirs": float(f"{row.theirs:.4g}"), "size": row.size}
    return kept


def worst(kept: Sequence[dict], count: int = WORST) -> list[dict]:
    """The figures of single calls with the largest ratios."""
    return sorted((figure for figure in kept if "size" in figure), key=lambda figure: -figure["value"])[:count]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweep", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=330.0, help="time for all of it (default: 330)")
    parser.add_argument("--sizes", type=float, nargs="*", default=SIZES, help="elements (default: all three)")
    parser.add_argument("--only", default="", help="part of the calls' names, such as 'sum('")
    options = parser.parse_args()
    refused: dict[str, str] = {}
    found = list(rows(options.seconds, [int(size) for size in options.sizes],
                      some=lambda call: options.only in call.label, refused=refused))
    kept = figures(found)
    for figure in [figure for figure in kept if "size" not in figure] + worst(kept):
        print(f"{figure['what']:70} {figure['value']:8.3g} {figure['unit']}")
    for what, error in refused.items():
        print(f"not compared: {what}: {error}".partition("\n")[0][:160])
    if lazyarray.device().name == "cuda" and not options.only:
        sizes = [] if options.sizes == SIZES else [f"{size:.0e}".replace("+0", "") for size in options.sizes]
        name = "-".join(["sweep", *sizes])
        print(f"{len(found)} measurements kept in {timing.keep(name, kept)}")
    else:
        print(f"{len(found)} measurements, not kept")


if __name__ == "__main__":
    main()
