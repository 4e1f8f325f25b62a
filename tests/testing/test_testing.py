"""A test of the testers: the oracle, the state machine and the copy counter catch bugs that were planted for them."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import machine
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

import lazyarray
from lazyarray.testing import (
    DEVICE_DTYPES,
    HOST_DTYPES,
    LAYOUTS,
    STATES,
    Oracle,
    Specimen,
    assert_copies,
    check,
    lazy_arrays,
    specimens,
)


class Scalars(np.ndarray):
    """An ndarray that gives scalars where NumPy does; subclasses would give 0-d arrays."""

    def __array_wrap__(self, array, context=None, return_scalar=False):
        if return_scalar:
            return array[()]
        return array if type(array) is type(self) else array.view(type(self))


    def __repr__(self):
        return repr(self.view(np.ndarray))


class Toy(Scalars):
    """Stands for a lazy array: functions with a planted bug recognise it."""


def toy(values):
    return np.array(values, copy=True, subok=False, order="K").view(Toy)


def is_toy(x):
    return isinstance(x, Toy)


check_toy = Oracle(factory=toy)


def correct_everything(x):
    np.negative(x, out=x)
    return {"copy": x + 1, "view": x[::-1], "same": x, "scalar": x.sum(), "text": str(x.shape), "list": [x.max(), None]}


def stale_alias(x):
    """Does not tell the foreign holder of an alias: computes in new memory and swaps it in."""
    if is_toy(x):
        return np.asarray(x) + 1
    x += 1
    return x


BUGS = {
    "value": lambda x: x.sum() + is_toy(x),
    "one element": lambda x: np.where(np.arange(x.size) == 3, x + is_toy(x), x),
    "dtype": lambda x: (x * 2).astype("f4" if is_toy(x) else "f8"),
    "shape": lambda x: (x * 2)[None] if is_toy(x) else x * 2,
    "scalar instead of array": lambda x: x.max() if is_toy(x) else np.asarray(x.max()),
    "array instead of scalar": lambda x: np.asarray(x.max()) if is_toy(x) else x.max(),
    "Python number": lambda x: float(x.max()) if is_toy(x) else x.max(),
    "error": lambda x: x.sum(axis=5) if is_toy(x) else x.sum(),
    "no error": lambda x: x.sum() if is_toy(x) else x.sum(axis=5),
    "other error": lambda x: [][1] if is_toy(x) else int("no"),
    "tuple": lambda x: [x.min(), x.max()] if is_toy(x) else (x.min(), x.max()),
    "length": lambda x: np.split(x, 2)[is_toy(x):],
    "keys": lambda x: {"b": x} if is_toy(x) else {"a": x},
    "text": lambda x: "toy" if is_toy(x) else "ndarray",
    "NaN": lambda x: np.full(2, np.nan if is_toy(x) else 1.0),
    "read-only": lambda x: machine._read_only(x + 1) if is_toy(x) else x + 1,
    "side effect missing": lambda x: None if is_toy(x) else x.fill(1),
    "side effect too many": lambda x: x.fill(1) if is_toy(x) else None,
    "copy instead of view": lambda x: x[::-1].copy() if is_toy(x) else x[::-1],
    "view instead of copy": lambda x: x[::-1] if is_toy(x) else x[::-1].copy(),
    "copy instead of the argument": lambda x: x.copy() if is_toy(x) else x,
    "view instead of the argument": lambda x: x[...] if is_toy(x) else x,
    "argument instead of a copy": lambda x: x if is_toy(x) else x.copy(),
    "in-place in new memory": stale_alias,
}


@pytest.mark.parametrize("bug", BUGS)
def test_oracle_catches(bug):
    with pytest.raises(AssertionError, match="lambda|stale_alias"):
        check_toy(BUGS[bug], np.arange(6.0))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_oracle_accepts_what_is_right(layout):
    shape = LAYOUTS[layout].storage_shape((2, 3))
    values = np.arange(float(np.prod(shape))).reshape(shape)
    check_toy(correct_everything, Specimen(values, (2, 3), layout, aliased=True))


def test_oracle_sees_a_write_outside_the_view_it_passed():
    def writes_the_base(x):
        if is_toy(x):
            x.base[0] = 99.0

    with pytest.raises(AssertionError, match="storage of array 0"):
        check_toy(writes_the_base, Specimen(np.arange(9.0), (4,), "strided"))


def test_oracle_gives_views_of_one_storage():
    values = np.arange(5.0)

    def overlapping(x, y):
        x += 1
        return y.sum()

    seen = []
    check_toy(lambda x, y: seen.append(np.shares_memory(x, y)), Specimen(values, (5,)),
              Specimen(values, (5,), "reversed"))
    assert seen == [True, True]
    check_toy(overlapping, Specimen(values, (5,)), Specimen(values, (5,), "reversed"))


def test_oracle_gives_one_array_for_one_object():
    x = np.arange(3.0)
    check_toy(lambda a, b: a is b["key"][0], x, {"key": [x]})


def test_oracle_leaves_what_it_was_given_alone():
    x = np.arange(3.0)
    check_toy(lambda a: a.fill(9), x)
    assert x.tolist() == [0, 1, 2]


def test_oracle_tries_each_state():
    seen = []
    Oracle(factory=lambda a: seen.append(a.copy()) or toy(a))(np.sum, np.ones(2))
    assert len(seen) >= len(STATES)


def test_tolerance_can_be_set():
    def slightly_off(x):
        return x * (1 + 1e-9 * is_toy(x))

    with pytest.raises(AssertionError):
        check_toy(slightly_off, np.ones(2))
    check_toy.using(rtol=1e-8)(slightly_off, np.ones(2))


def test_equal_infinities_and_nans_are_equal():
    check_toy(lambda x: x * np.array([np.inf, np.nan, 1]), np.ones(3))
    check_toy(lambda x: x, np.array(["NaT", "2020-01-01"], "M8[D]"))
    check_toy(lambda x: x[1:], np.array([None, np.nan, 3], object))


# The state machine, on NumPy arrays that are wrong in one way.

class Wrong(Scalars):
    """Base of the arrays below; an alias of one is an ndarray over the same memory."""


class CopiesReshape(Wrong):
    def reshape(self, *shape, **kwargs):
        return super().reshape(*shape, **kwargs).copy()


class ZeroDimensionalViews(Wrong):
    def __getitem__(self, key):
        found = super().__getitem__(key)
        return found if isinstance(found, np.ndarray) else super().__getitem__((*np.atleast_1d(key), ...))


class NewObjectInPlace(Wrong):
    def __iadd__(self, other):
        return (self + other).astype(self.dtype)


class WrapsIndexes(Wrong):
    def __setitem__(self, key, value):
        if isinstance(key, list) and self.ndim and len(self):
            key = [k % len(self) for k in key]
        super().__setitem__(key, value)


class FirstDuplicateWins(Wrong):
    def __setitem__(self, key, value):
        if isinstance(key, (list, np.ndarray)) and np.ndim(key) and np.ndim(value) and len(key) == np.shape(value)[0]:
            key, value = key[::-1], np.asarray(value)[::-1]
        super().__setitem__(key, value)


class OverlapsUnbuffered(Wrong):
    def __iadd__(self, other):
        flat, value = self, np.broadcast_to(other, self.shape)
        for i in range(len(flat) if self.ndim else 0):
            flat[i] = flat[i] + value[i]
        return self if self.ndim else super().__iadd__(other)


class WritableDiagonal(Wrong):
    def diagonal(self):
        return np.lib.stride_tricks.as_strided(self, (min(self.shape),), (sum(self.strides),), writeable=True)


class WrongCode(machine.Control):
    def __init__(self, cls):
        self.cls = cls

    def array(self, values):
        return values.copy().view(self.cls)


class AliasIsACopy(machine.Control):
    def alias(self, x, door):
        found = super().alias(x, door)
        copied = found.copy()
        copied.flags.writeable = found.flags.writeable
        return copied


class BigAliasIsACopy(AliasIsACopy):
    def alias(self, x, door):
        return super().alias(x, door) if x.size > 1000 else machine.Control.alias(self, x, door)


class HandleIsACopy(machine.Control):
    def handle(self, x, door):
        return x.copy()


class AliasIsReadOnly(machine.Control):
    def alias(self, x, door):
        return machine._read_only(super().alias(x, door)[...])


PLANTED = [WrongCode(cls) for cls in Wrong.__subclasses__()]
PLANTED += [AliasIsACopy(), BigAliasIsACopy(), HandleIsACopy(), AliasIsReadOnly()]


def run_machine_on(planted, examples=6000):
    class Planted(machine.Machine):
        library = planted

    once = settings(max_examples=examples, stateful_step_count=50, derandomize=True, database=None, deadline=None,
                    phases=[Phase.generate], report_multiple_bugs=False, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(Planted, settings=once)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda p: getattr(p, "cls", type(p)).__name__)
@pytest.mark.filterwarnings("ignore")
def test_machine_catches(planted):
    with pytest.raises(AssertionError):
        run_machine_on(planted)


@pytest.mark.filterwarnings("ignore")
def test_machine_accepts_what_is_right():
    run_machine_on(WrongCode(Wrong), examples=200)


# On lazy arrays.

@pytest.mark.parametrize("dtype", DEVICE_DTYPES + HOST_DTYPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_specimens_are_the_same_array_on_both_sides(dtype, layout):
    shape = LAYOUTS[layout].storage_shape((2, 3))
    values = np.zeros(shape, dtype)
    if not dtype.names:
        values[...] = np.arange(values.size).reshape(shape).astype(dtype)
    for state in STATES:
        specimen = Specimen(values, (2, 3), layout, state, aliased=True)
        plain, lazy = specimen.plain(), specimen.lazy()
        assert lazyarray.is_lazy(lazy)
        assert (lazy.dtype, lazy.shape, lazy.strides) == (plain.dtype, plain.shape, plain.strides)
        assert lazy.flags.writeable == plain.flags.writeable
        assert np.asarray(lazy).tobytes() == plain.tobytes() or dtype.hasobject
        assert repr(lazy) == repr(plain)


@pytest.mark.parametrize("state, uploads, materialisations", [("device", 0, 1), ("both", 0, 0), ("host", 1, 0)])
def test_specimens_are_current_where_they_say(state, uploads, materialisations):
    values = np.arange(1000.0)
    x = Specimen(values, (1000,), state=state).lazy()
    with assert_copies(uploads=0, materialisations=materialisations):
        np.asarray(x)
    y = Specimen(values, (1000,), state=state).lazy()
    with assert_copies(uploads=uploads, materialisations=0):
        y + 1


@settings(max_examples=40, deadline=None)
@given(specimens(dtype=st.sampled_from(["f4", "f8", "i4"]), elements=st.integers(-9, 9)))
def test_check_on_lazy_arrays(x):
    check.using(lazy=None)(lambda a: (a + 1, a.sum(), a[..., ::-1] if a.ndim else a, a.T), x)


def test_check_fails_on_a_function_that_turns_lazy_arrays_away():
    def picky(x):
        if type(x) is not np.ndarray:
            raise TypeError("give me an ndarray")
        return x + 1

    with pytest.raises(AssertionError, match="TypeError: give me an ndarray"):
        check(picky, np.arange(3))


def test_check_counts_copies():
    check.using(states=("device",), uploads=0, materialisations=0, lazy=True)(np.exp, np.arange(3.0))
    with pytest.raises(AssertionError, match="1 materialise, not 0"):
        check.using(states=("device",), materialisations=0)(lambda x: np.asarray(x) + 1, np.arange(3.0))


def test_check_wants_lazy_results_where_asked():
    check.using(lazy=True)(np.exp, np.arange(3.0))
    with pytest.raises(AssertionError, match="not lazy"):
        check.using(lazy=True)(lambda x: np.exp(np.asarray(x)), np.arange(3.0))
    with pytest.raises(AssertionError, match="is lazy"):
        check.using(lazy=False)(np.exp, np.arange(3.0))


def test_strategies_reach_every_corner():
    """Each thing that the strategy promises is found by it."""
    quick = settings(max_examples=2000, database=None, phases=[Phase.generate])
    for wanted in (
        lambda s: s.values.dtype == "M8[s]",
        lambda s: s.layout == "broadcast" and s.aliased,
        lambda s: s.state == "host" and s.plain().size > 3,
        lambda s: s.shape == (),
        lambda s: 0 in s.shape,
        lambda s: s.layout == "strided" and len(s.shape) == 3,
    ):
        find(specimens(), wanted, settings=quick)


def test_lazy_arrays_keep_their_alias():
    x = find(lazy_arrays(dtype="f8", shape=(3,), aliased=True, layout="C"), lambda x: True)
    assert lazyarray.is_lazy(x)
    assert x.shape == (3,)


def test_copies_are_counted_with_their_bytes():
    with assert_copies(uploads=1, materialisations=0, nbytes=80):
        x = lazyarray.asarray(np.arange(10.0))
    with assert_copies(uploads=0, materialisations=1, nbytes=80):
        np.asarray(x)
    with pytest.raises(AssertionError, match="1 upload, not 0"), assert_copies(uploads=0):
        lazyarray.asarray(np.arange(10.0))
    with pytest.raises(AssertionError, match="80 bytes, not 81"), assert_copies(nbytes=81):
        lazyarray.asarray(np.arange(10.0))


def test_an_error_in_the_block_is_not_hidden_by_the_count():
    with pytest.raises(ZeroDivisionError), assert_copies(uploads=99):
        1 // 0


def test_plugin_offers_fixtures(tmp_path):
    test = tmp_path / "test_theirs.py"
    test.write_text(
        "import numpy as np\n"
        "def test_it(lazy_check, lazy_array, lazy_copies):\n"
        "    x = lazy_array([1.0, 2.0])\n"
        "    with lazy_copies(materialisations=0):\n"
        "        y = x + 1 if False else x.shape\n"
        "    assert np.asarray(x).tolist() == [1, 2]\n"
        "    lazy_check(np.sum, np.arange(3.0))\n"
    )
    env = dict(os.environ, PYTHONPATH=str(Path(lazyarray.__file__).parents[1]))
    # The plugin is named: its entry point is there only where lazyarray is installed, which a checkout need not be.
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "lazyarray_pytest",
                           str(test)], capture_output=True, text=True, env=env, cwd=tmp_path, timeout=120, check=False)
    assert "4 passed" in done.stdout, done.stdout + done.stderr
