"""Aliases of arrays that are nothing but their ndarray, and get a storage later."""
from __future__ import annotations

import gc
import os
import random
import sys
import time

import numpy as np
import pytest
from fault_points import ERRORS, Fault, monitored

import lazyarray
import lazyarray.numpy as xnp
from lazyarray import _native
from lazyarray.dispatch import small_runs
from lazyarray.storage import handles
from lazyarray.storage.mirror import aliases

pytestmark = [pytest.mark.skipif(_native.recording is None, reason="without the part in C no array stays on the host"),
              pytest.mark.one_device("what is small is of one device")]


#: By day, each so many-th point.
STEP = 1 if os.environ.get("LAZYARRAY_NIGHTLY") == "1" else 5


@pytest.fixture(autouse=True)
def small(small_on_host, monkeypatch):
    small_on_host(95_000)
    monkeypatch.setattr(handles, "others_run", lambda: False)      # xdist's threads do not write these


def light(values):
    x = xnp.array(values.tolist())
    assert handles.is_light(x)
    return x


def test_an_alias_makes_no_storage():
    x = light(np.arange(6.0))
    alias = np.asarray(x)
    assert handles.is_light(x) and type(alias) is np.ndarray and alias.flags.writeable
    alias[2] = 9
    assert x[2] == 9
    x[3] = 8
    x += 1
    assert alias[2] == 10 and alias[3] == 9


def known():
    """The aliases that are known, and not of arrays with a storage."""
    return [one for one in gc.get_objects() if type(one) is aliases.Early and one() is not None]


@pytest.mark.parametrize("promote", [True, False])
def test_what_is_asked_for_again_and_again_is_one_memory(promote):
    x = light(np.arange(6.0))
    kept = [np.asarray(x if i % 2 else x[:]) for i in range(5)]
    assert handles.is_light(x)
    if promote:
        x._self_storage
        assert not handles.is_light(x)
    for i, alias in enumerate(kept):
        alias[i] = 50 + i
        assert all(other[i] == 50 + i for other in kept) and x[i] == 50 + i
    assert float((x + 0).sum()) == sum(range(50, 55)) + 5
    xp = lazyarray.device().xp
    assert xp.asnumpy(lazyarray.asdevice(x)).tolist() == [50, 51, 52, 53, 54, 5]
    kept[0][5] = 1
    assert xp.asnumpy(lazyarray.asdevice(x)).tolist() == [50, 51, 52, 53, 54, 1]


def test_ten_thousand_are_forgotten_in_little_time():
    x = light(np.arange(10_000.0))
    kept = [np.asarray(x[i:i + 1]) for i in range(10_000)]
    assert len(known()) == len(kept)
    start = time.perf_counter()
    kept.clear()
    assert time.perf_counter() - start < 1.0        # a look at all of them for each took 5
    assert not known()


@pytest.mark.parametrize("written", ["before", "after", "both"])
def test_the_device_sees_what_an_alias_writes(written):
    x = light(np.arange(6.0))
    alias = np.asarray(x)
    if written != "after":
        alias[0] = 7
    large = lazyarray.asarray(np.ones((20_000, 6))) * x
    if written != "before":
        alias[1] = 9
        large = large * 0 + x
    assert np.array_equal(large[5], alias) and np.array_equal(x, alias)
    lazyarray.asdevice(x)[2] = 70
    x += 1
    assert alias[0] == (8 if written != "after" else 1)


#: Views of a matrix of 6 x 8.
VIEWS = {"columns": lambda a: a[:, 2:5], "one column": lambda a: a[:, 3], "inner part": lambda a: a[1:-1, 1:-1],
         "each other": lambda a: a[::2, ::3], "backwards": lambda a: a[::-1, ::-2], "transposed": lambda a: a.T,
         "a row backwards": lambda a: a[2, ::-1], "a new axis": lambda a: a[:, None, 1::2]}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("see", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("ask", [np.asarray, lambda x: np.array(x, copy=None)], ids=["asarray", "array"])
def test_an_alias_with_gaps_makes_no_storage_and_is_the_memory(ask, see, order, small_on_host):
    plain = np.arange(48.0).reshape(6, 8)
    x = xnp.asarray(light(plain) * 1) if order == "C" else light(np.ascontiguousarray(plain.T)).T
    alias = ask(see(x))
    assert handles.is_light(x) and np.array_equal(alias, see(plain))
    assert alias.strides == see(x).strides and alias.flags.writeable

    plain = plain.copy()
    alias[...] = alias + 100        # by who has it
    see(plain)[...] += 100
    assert np.array_equal(x, plain)
    see(x)[...] *= 2                # by the host
    see(plain)[...] *= 2
    assert np.array_equal(alias, see(plain))
    small_on_host(0)
    x += 1                          # by the device, beside which the alias lives on
    plain += 1
    assert not handles.is_light(x)
    assert np.array_equal(alias, see(plain)) and np.array_equal(x, plain)
    alias[...] = -alias
    see(plain)[...] *= -1
    assert np.array_equal(lazyarray.device().xp.asnumpy(lazyarray.asdevice(x)), plain), "what lies in the gaps is kept"


def test_what_can_be_made_writable_is_made_so_again():
    """SciPy does so with the columns that index its sparse arrays."""
    alias = np.asarray(light(np.arange(12).reshape(6, 2))[:, 1])
    alias.flags.writeable = False
    alias.flags.writeable = True
    alias[0] = 5


def test_lists_of_views_make_no_storage():
    x = light(np.arange(48.0).reshape(6, 8))
    plain = np.asarray(x).copy()
    for np_of in (np.array, np.stack, lambda parts: np.max(parts, axis=0), lambda parts: np.median(parts, axis=0)):
        found = np_of([x[1:-1, 1:-1], x[:-2, 1:-1], x[2:, 1:-1]])
        assert np.array_equal(found, np_of([plain[1:-1, 1:-1], plain[:-2, 1:-1], plain[2:, 1:-1]]))
    assert handles.is_light(x)


def test_an_alias_of_a_view_and_of_its_base():
    x = light(np.arange(8.0))
    view = x[2:6]
    one, other = np.asarray(view), np.asarray(x)
    one[0] = 50
    assert x[2] == other[2] == 50
    lazyarray.asdevice(x)
    other[3] = 60
    assert view[1] == one[1] == 60
    x *= 2
    assert one.tolist() == [100, 120, 8, 10]
    del one, other
    assert view.tolist() == [100, 120, 8, 10]


def test_nothing_is_kept():
    x = light(np.arange(6.0))
    alias = np.asarray(x)
    assert known()
    part = alias[2:]
    del alias
    gc.collect()
    assert known()              # what was made of it is one still
    part[0] = 5
    assert x[2] == 5
    del part
    gc.collect()
    assert not known() and handles.is_light(x)


def test_an_alias_outlives_its_array():
    alias = np.asarray(light(np.arange(6.0)) + 1)
    assert alias.tolist() == [1, 2, 3, 4, 5, 6]
    alias[0] = 9
    gc.collect()
    assert alias[0] == 9


def test_who_asks_for_other_memory_gets_it():
    x = light(np.arange(6.0).reshape(2, 3))
    if sys.version_info >= (3, 12):
        assert memoryview(x).format == "d" and memoryview(x).shape == (2, 3)
        assert bytes(memoryview(x[:, ::2])) == np.array([0, 2, 3, 5.0]).tobytes()
    assert np.asarray(x.T).flags.f_contiguous and np.asarray(x[:, ::2]).tolist() == [[0, 2], [3, 5]]
    fixed = light(np.arange(3.0))
    fixed.flags.writeable = False
    assert not np.asarray(fixed).flags.writeable and not np.asarray(fixed[1:]).flags.writeable


def _program(draws):
    n = draws.choice([4, 50, 1000])
    plain, lazy = np.arange(float(n)), light(np.arange(float(n)))
    mine, theirs = [], []
    for _ in range(25):
        step = draws.choice("new alias write assign inplace view device drop sum part large add many reshape".split())
        if step == "new":
            plain, lazy = plain * 2 + 1, lazy * 2 + 1
        elif step == "alias":
            mine.append(plain[...]), theirs.append(np.asarray(lazy))
        elif step == "part":
            first = draws.randrange(n // 2)
            mine.append(plain[first:first + 2]), theirs.append(np.asarray(lazy[first:first + 2]))
        elif step in ("write", "add") and mine:
            i, value = draws.randrange(len(mine)), draws.random()
            for each in (mine[i], theirs[i]):
                if step == "add":
                    each += value
                else:
                    each[-1] = value
        elif step == "assign":
            i, value = draws.randrange(n), draws.random()
            plain[i] = lazy[i] = value
        elif step == "inplace":
            plain += 1
            lazy += 1
        elif step == "view":
            plain, lazy = plain[...], lazy[...]
        elif step == "reshape":
            plain, lazy = plain.reshape(2, -1).reshape(-1), lazy.reshape(2, -1).reshape(-1)
        elif step == "device":
            lazyarray.asdevice(lazy)
        elif step == "drop" and mine:
            i = draws.randrange(len(mine))
            del mine[i], theirs[i]
        elif step == "sum":
            assert np.isclose(float(lazy.sum()), float(plain.sum()))
        elif step == "large":
            assert np.array_equal(xnp.zeros((20_000, 4)) + lazy[:4], np.zeros((20_000, 4)) + plain[:4])
        elif step == "many":
            for _ in range(4):
                np.asarray(lazy)
        for one, other in zip(mine, theirs):
            assert np.array_equal(one, other), step
        if draws.random() < 0.5:
            assert np.array_equal(plain, np.array(lazy * 1)), step


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed):
    for more in range(5):
        _program(random.Random(seed * 100 + more))


#: A statement, what comes before it, and which names have to see what is written later.
AT_ANY_POINT = {
    "lent": ("x = light(X)", "a = np.asarray(x)"),
    "a part is lent": ("x = light(X)", "a = np.asarray(x[1:5])"),
    "lent twice": ("x = light(X); b = np.asarray(x)", "a = np.asarray(x)"),
    "gets a storage": ("x = light(X); a = np.asarray(x); a[2] = 20", "lazyarray.asdevice(x)"),
    "is written on the device": ("x = light(X); a = np.asarray(x)", "x += large[:6, 0]"),
    "is an operand": ("x = light(X); a = np.asarray(x); a[2] = 20", "y = large * x"),
    "is let go": ("x = light(X); a = np.asarray(x)", "del a"),
    "an element of many": ("x = many(X); ones(x)", "x[4] = 30.0"),
    "an element of many, lent": ("x = many(X); a = np.asarray(x); ones(x)", "x[4] = 30.0"),
    "an element is taken": ("x = many(X); ones(x)", "v = float(x[3])"),
    "many parts are lent": ("x = many(X); np.asarray(x)", "r = np.array([x[k:k + 2] for k in range(0, 24, 2)])"),
}


def many(values):
    """An array that is too large to be small, on the device."""
    return lazyarray.asarray(np.concatenate((values, np.zeros(15_000)))) * 1.0


def ones(x):
    for k in range(16):
        x[100 + k] = 1.0


@pytest.mark.skipif(lazyarray.device().name != "simulated" or sys.version_info < (3, 12),
                    reason="points are those of the simulated device, and of Python 3.12 and later")
@pytest.mark.parametrize("case", AT_ANY_POINT)
def test_an_interrupt_at_any_point(case, monkeypatch):
    """Afterwards the statement is done or not, and each side and each alias sees what the others write."""
    monkeypatch.setattr(small_runs, "others_run", lambda: False)
    first, statement = (compile(text, "<statement>", "exec") for text in AT_ANY_POINT[case])
    large = lazyarray.asarray(np.ones((20_000, 6)))
    values = np.arange(6.0)

    def made():
        names = {"np": np, "lazyarray": lazyarray, "light": light, "many": many, "ones": ones, "X": values}
        names["large"] = large
        exec(first, names)
        return names

    with monitored():
        passed, after = [], None
        for points in (None, None, passed):
            names = made()
            before = np.array(names["x"])[:6]
            with Fault(sys.maxsize, None, None, points):
                exec(statement, names)
            after = np.array(names["x"])[:6]
        for error in ERRORS.values():
            for number in range(0, len(passed), STEP):
                names = made()
                try:
                    with Fault(number, error):
                        exec(statement, names)
                except error:
                    pass
                x = names["x"]
                found = np.array(x)[:6]
                assert np.array_equal(found, before) or np.array_equal(found, after), (number, found)
                assert np.array_equal(np.asarray(x * 1)[:6], found), (number, "the device has other bytes")
                for name in "ab":
                    if name in names:
                        names[name][1] = 50
                        place = 2 if names[name].size == 4 else 1
                        assert x[place] == 50 and float((x * 1)[place]) == 50, (number, name)
                        x[place] = 60
                        assert names[name][1] == 60, (number, name)
                        x *= 2
                        assert names[name][1] == 120, (number, name)
                        xp = lazyarray.device().xp
                        assert float(xp.asnumpy(lazyarray.asdevice(x))[place]) == 120
                        names[name][1] = 70
                        assert float(xp.asnumpy(lazyarray.asdevice(x))[place]) == 70, (number, name)
                names.clear()
                del x
        gc.collect()
        assert not known()
