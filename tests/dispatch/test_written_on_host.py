"""Small arrays that the host alone has are written there at once, and everybody sees it who looks at them later."""
from __future__ import annotations

import random

import numpy as np
import pytest
from handlers import At

import lazyarray
from lazyarray.dispatch import small_arrays
from lazyarray.errors import own_threads


@pytest.fixture(autouse=True)
def small(small_on_host):
    small_on_host(95_000)
    started, own = own_threads.for_native().values()
    runners = range(-started(), 0)      # the threads of a test runner have no part in this
    own.update(runners)
    yield
    own.difference_update(runners)


def hosts_alone(values):
    """A lazy array that the device has had, and the host alone has now."""
    x = lazyarray.asarray(values)
    for _ in range(60):
        x[1:-1] += 1
        values[1:-1] += 1
    assert x._self_storage.state == "host" and not small_arrays.is_light(x)
    return x


STATEMENTS = ["x[1:-1] += 1", "x[::2] *= 3", "x[3] = 7", "x[4:9] = x[1:6]", "x[x > 50] = 2", "x[[1, 5, 1]] += 4",
              "np.add(x, 1, out=x)", "np.add(x[:5], x[5:10], out=x[20:25])", "v[2:4] = 9", "v -= 1", "x[:] = x[::-1]",
              "np.copyto(x[3:6], 8)", "x.sort()", "x[-1], x[0] = x[0], x[-1]"]


@pytest.mark.skipif(lazyarray._native.recording is None, reason="done in C")
@pytest.mark.one_device("with several, more is on the device")
@pytest.mark.parametrize("dtype", ["i8", "f8"])
def test_each_write_takes_no_longer_than_of_a_result(dtype, monkeypatch):
    values = np.arange(3000).astype(dtype)
    x = hosts_alone(values)
    monkeypatch.setattr(small_arrays, "_written", None)
    for statement in STATEMENTS[:5]:
        exec(statement, {"x": x, "np": np})
        exec(statement, {"x": values, "np": np})
    monkeypatch.undo()
    np.testing.assert_array_equal(np.asarray(x), values)
    assert lazyarray.asdevice(x).sum().get() == values.sum()


LOOKS = {
    "the device": lambda x: lazyarray.asdevice(x).get(), "a large array": lambda x: (BIG + x[0])[:3],
    "an alias": lambda x: np.asarray(x).copy(), "a buffer": lambda x: bytes(memoryview(np.asarray(x))),
    "a copy": lambda x: x.copy(), "a sum": lambda x: float(x.sum()), "a view": lambda x: x[2:7] * 1,
    "rows": lambda x: BIG[x[:3].astype(int) % 5] * 1, "nobody": lambda x: None,
}
BIG = np.zeros(40_000)


@pytest.mark.parametrize("seed", range(40))
def test_whoever_looks_sees_what_was_written(seed):
    """Statements, looks of all kinds, aliases and loans that are kept and written, in arbitrary order."""
    draw = random.Random(seed)
    plain = np.arange(draw.choice([1500, 3000, 11_000])).astype(draw.choice(["i8", "f8", "i4"]))
    x = hosts_alone(plain)
    kept = []
    names, plains = {"x": x, "np": np, "v": x[10:20]}, {"x": plain, "np": np, "v": plain[10:20]}
    for _ in range(60):
        kind = draw.random()
        if kind < 0.6:
            statement = draw.choice(STATEMENTS)
            exec(statement, names)
            exec(statement, plains)
        elif kind < 0.85:
            look = LOOKS[draw.choice(sorted(LOOKS))]
            one, other = look(x), look(lazyarray.asarray(plain.copy()))
            np.testing.assert_array_equal(one, other)
        elif kind < 0.9:
            kept.append(draw.choice([np.asarray, lambda x: x[5:30], lambda x: memoryview(np.asarray(x))])(x))
        elif kind < 0.95 and kept:
            kept.pop()
        elif kind < 0.98:
            np.asarray(x)[7:9] = plain[7:9] = draw.randrange(100)
        else:
            lent = lazyarray.asdevice(x)
            with lent.device:
                lent[11:13] = plain[11:13] = draw.randrange(100)
            del lent
    for one in (x, x + 0, np.asarray(x), lazyarray.asdevice(x).get()):
        np.testing.assert_array_equal(np.asarray(one), plain)


@pytest.mark.parametrize("look", sorted(LOOKS))
def test_so_do_handlers_that_look_meanwhile(look):
    for when in range(0, 60, 7):
        plain = np.arange(3000.0)
        x = hosts_alone(plain)
        with At(when, lambda signum, frame: LOOKS[look](x)):
            for statement in STATEMENTS[:5]:
                exec(statement, {"x": x, "np": np})
        for statement in STATEMENTS[:5]:
            exec(statement, {"x": plain, "np": np})
        np.testing.assert_array_equal(lazyarray.asdevice(x).get(), plain)
        np.testing.assert_array_equal(np.asarray(x), plain)
