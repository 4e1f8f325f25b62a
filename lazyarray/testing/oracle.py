"""The oracle: does a function do to lazy arrays what it does to NumPy's?"""
from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

import lazyarray
from lazyarray.functions.pytree import leaves
from lazyarray.testing.copies import assert_copies
from lazyarray.testing.specimens import STATES, Built, Specimen, State

# What two correct implementations of one operation may differ by, relative to the value, by the real dtype's size.
TOLERANCE = {2: 4e-3, 4: 4e-6, 8: 4e-14}


@dataclasses.dataclass(frozen=True)
class Oracle:
    """Runs a function with NumPy arrays and with lazy arrays, and compares. `check` has the default settings.

    Parameters
    ----------
    rtol, atol : float, optional
        Tolerance for floating-point and complex dtypes, as in `numpy.isclose`. The default is a few units in the last
        place of the value and of the array's largest value.
    states : tuple of {'device', 'host', 'both'}
        The states of lazy arrays to run the function with: where they are current. Specimens have a state of their own.
    lazy : bool, optional
        If given, whether array results must (True) or must not (False) be lazy.
    uploads, materialisations : int, optional
        If given, the number of copies in the run with lazy arrays; see `assert_copies`.
    factory : callable, optional
        Function that converts an ndarray to a lazy array. The default is `lazyarray.asarray`.

    Examples
    --------
    >>> exact = check.using(rtol=0, atol=0, states=("device",), materialisations=0)
    >>> exact(np.cumsum, np.arange(6).reshape(2, 3), axis=1)
    """

    rtol: float | None = None
    atol: float | None = None
    states: tuple[State, ...] = STATES
    lazy: bool | None = None
    uploads: int | None = None
    materialisations: int | None = None
    factory: Callable[[np.ndarray], Any] | None = None

    def using(self, **changes: Any) -> Oracle:
        """The same oracle with other settings."""
        return dataclasses.replace(self, **changes)

    def __call__(self, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
        """Compare ``func(*args, **kwargs)`` with NumPy arrays and with lazy arrays.

        Parameters
        ----------
        func : callable
            Called once with NumPy arrays, and once with lazy arrays for each state. It must not depend on anything that
            its other calls change, such as a global random generator.
        *args, **kwargs
            Its arguments. Every ndarray or `Specimen`, also in lists, tuples and dicts, is replaced by a new array for
            each call. An object that is given twice is replaced by one array. The given objects are never modified.

        Raises
        ------
        AssertionError
            If the two runs differ. The message says how, and for which state of the arguments.
        """
        with lazyarray.options(small_on_host=False):
            self._check_states(func, args, kwargs)

    def _check_states(self, func: Callable[..., Any], args: Any, kwargs: Any) -> None:
        for state in self.states:
            # Both sides are made anew for each state: a run and the comparison write to them.
            wanted, want = self._run(func, args, kwargs, lambda a: a.copy(order="K"), None)
            found, got = self._run(func, args, kwargs, self.factory or lazyarray.asarray, state)
            try:
                self._compare_outcomes(want, got, [b.array for b in wanted], [b.array for b in found])
                self._compare_arguments(wanted, found, "after the call, ")
                self._poke(want, got)
                self._compare_arguments(wanted, found, "after writing to the result, ")
            except AssertionError as error:
                name = getattr(func, "__name__", func)
                raise AssertionError(f"{name} (arguments current on {state!r}): {error}") from got.error
            if all(wanted.specimens):  # these have their own states
                break

    def _run(self, func: Callable[..., Any], args: Any, kwargs: Any, factory: Callable[[np.ndarray], Any],
             state: State | None) -> tuple[_Made, _Outcome]:
        made = _Made(factory, state)
        args, kwargs = made.replace(args), made.replace(kwargs)
        counted = state is not None and (self.uploads is not None or self.materialisations is not None)
        with assert_copies(self.uploads, self.materialisations) if counted else contextlib.nullcontext():
            try:
                return made, _Outcome(value=func(*args, **kwargs))
            except Exception as error:  # noqa: BLE001  any exception is an outcome to compare
                return made, _Outcome(error=error)

    def _compare_outcomes(self, want: _Outcome, got: _Outcome, plain: list[Any], lazy: list[Any]) -> None:
        if type(want.error) is not type(got.error):
            raise AssertionError(f"NumPy's arrays give {want}, lazy ones {got}")
        if want.error is None:
            self._compare(want.value, got.value, "the result", plain, lazy)

    def _compare_arguments(self, wanted: _Made, found: _Made, when: str) -> None:
        for n, (want, got) in enumerate(zip(wanted, found, strict=True)):
            if got.alias is not None:  # first: to read the array itself may refresh the alias
                self._compare_values(want.array, got.alias, f"{when}the alias of array {n}")
            self._compare_values(want.array, got.array, f"{when}array {n} of the arguments")
            self._compare_values(want.base, got.base, f"{when}the storage of array {n}")

    def _compare(self, want: Any, got: Any, where: str, plain: list[Any], lazy: list[Any]) -> None:
        if isinstance(want, np.ndarray):
            if _position(want, plain) != _position(got, lazy):
                raise AssertionError(f"{where} is argument {_position(want, plain)} for NumPy's arrays, "
                                     f"{_position(got, lazy)} for lazy ones (None: a new array)")
            self._compare_kinds(want, got, where)
            if want.flags.writeable != got.flags.writeable:
                raise AssertionError(f"{where}: flags.writeable is {got.flags.writeable}, not {want.flags.writeable}")
            if self.lazy is not None and lazyarray.is_lazy(got) != self.lazy:
                raise AssertionError(f"{where} is {'not ' * self.lazy}lazy: {type(got).__name__}")
            self._compare_values(want, got, where)
        elif isinstance(want, np.generic):
            self._compare_kinds(want, got, where)
            self._compare_values(want, got, where)
        elif isinstance(want, (tuple, list)):
            if type(want) is not type(got) or len(want) != len(got):
                raise AssertionError(f"{where} is {got!r}, not {want!r}")
            for n, (w, g) in enumerate(zip(want, got, strict=True)):
                self._compare(w, g, f"{where}[{n}]", plain, lazy)
        elif isinstance(want, dict):
            if type(want) is not type(got) or list(want) != list(got):
                raise AssertionError(f"{where} is {got!r}, not {want!r}")
            for key, w in want.items():
                self._compare(w, got[key], f"{where}[{key!r}]", plain, lazy)
        elif type(want) is not type(got):
            raise AssertionError(f"{where} is a {type(got).__name__}, not a {type(want).__name__}")
        elif isinstance(want, (float, complex)):
            self._compare_values(np.asarray(want), np.asarray(got), where)
        elif isinstance(want, (bool, int, str, bytes)) and want != got:
            raise AssertionError(f"{where} is {got!r}, not {want!r}")

    def _compare_kinds(self, want: Any, got: Any, where: str) -> None:
        if not isinstance(got, type(want)):
            raise AssertionError(f"{where} is a {type(got).__name__}, not a {type(want).__name__}")
        if want.dtype != got.dtype:
            raise AssertionError(f"{where} has dtype {got.dtype}, not {want.dtype}")
        if want.shape != got.shape:
            raise AssertionError(f"{where} has shape {got.shape}, not {want.shape}")

    def _compare_values(self, want: Any, got: Any, where: str) -> None:
        want, got = np.asarray(want), np.asarray(got)
        if want.dtype != got.dtype or want.shape != got.shape:
            raise AssertionError(f"{where} is {got.dtype}{got.shape}, not {want.dtype}{want.shape}")
        different = ~self._same(want, got)
        if different.any():
            first = (*map(int, np.argwhere(different)[0]),)
            raise AssertionError(f"{where} differs in {np.count_nonzero(different)} of {want.size} elements, first at "
                                 f"{first}: {got[first]!r}, not {want[first]!r}")

    def _same(self, want: np.ndarray, got: np.ndarray) -> np.ndarray:
        if want.dtype.names:
            return np.logical_and.reduce([self._same(want[name], got[name]) for name in want.dtype.names])
        if want.dtype.kind not in "fc":
            same = np.asarray(want == got)
            return same | ((want != want) & (got != got)) if want.dtype.kind in "mMO" else same
        size = want.real.dtype.itemsize
        rtol = TOLERANCE.get(size, TOLERANCE[8]) if self.rtol is None else self.rtol
        atol = self.atol
        if atol is None:
            finite = np.abs(want[np.isfinite(want)]).astype("f8")
            atol = rtol / 4 * float(finite.max()) if finite.size else 0.0
        if want.dtype.kind == "c":
            return (np.isclose(want.real, got.real, rtol, atol, equal_nan=True)
                    & np.isclose(want.imag, got.imag, rtol, atol, equal_nan=True))
        with np.errstate(all="ignore"):
            return np.isclose(want, got, rtol, atol, equal_nan=True)

    def _poke(self, want: _Outcome, got: _Outcome) -> None:
        """Write to every array in the results, so that what they share with the arguments shows there."""
        for w, g in zip(_arrays(want.value), _arrays(got.value), strict=True):
            if w.dtype.kind in "biufc" and w.flags.writeable:
                with np.errstate(all="ignore"):
                    g[...] = w[...] = ~w if w.dtype.kind == "b" else w + 1


check = Oracle()


@dataclasses.dataclass(frozen=True)
class _Outcome:
    value: Any = None
    error: Exception | None = None

    def __str__(self) -> str:
        return f"{self.value!r}" if self.error is None else f"{type(self.error).__name__}: {self.error}"


class _Made(list[Built]):
    """The arrays made for one run, in the order in which the arguments name them."""

    def __init__(self, factory: Callable[[np.ndarray], Any], state: State | None) -> None:
        self.factory, self.state = factory, state
        self.specimens: list[bool] = []  # for each array: was it given as a specimen?
        self._by_id: dict[int, Built] = {}
        self._bases: dict[int, Any] = {}

    def replace(self, value: Any) -> Any:
        if isinstance(value, Specimen) or type(value) is np.ndarray:
            built = self._by_id.get(id(value))
            if built is None:
                built = self._by_id[id(value)] = self._build(value)
                self.append(built)
                self.specimens.append(isinstance(value, Specimen))
            return built.array
        if type(value) in (list, tuple):
            return type(value)(map(self.replace, value))
        if type(value) is dict:
            return {key: self.replace(v) for key, v in value.items()}
        return value

    def _build(self, value: Specimen | np.ndarray) -> Built:
        if isinstance(value, Specimen):
            return value.build(self.factory, self._bases, alone=self.state is None)
        array = self.factory(value.copy(order="K"))
        if self.state == "host":
            array = self.factory(np.zeros_like(value))
            np.asarray(array)[...] = value
        elif self.state == "both":
            np.asarray(array)
        if not value.flags.writeable:
            array.flags.writeable = False
        return Built(array, array)


def _position(array: Any, arrays: list[Any]) -> int | None:
    return next((n for n, a in enumerate(arrays) if a is array), None)


def _arrays(value: Any) -> list[Any]:
    return [leaf for leaf in leaves(value) if isinstance(leaf, np.ndarray)]
