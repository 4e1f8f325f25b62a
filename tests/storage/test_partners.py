"""Libraries that hold a lazy array's memory and compute on a stream of their own: each side waits for the other."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray
from lazyarray.dispatch import host_fallback
from lazyarray.storage import foreign_streams

device = lazyarray.device()
pytestmark = pytest.mark.skipif(device.name == "cuda", reason="only the simulated device shows what was not waited for")
PLAIN = np.arange(8.0)


@pytest.fixture
def theirs(monkeypatch):
    """The stream of a library that has told of it."""
    stream = device.new_stream()
    monkeypatch.setattr(foreign_streams, "partners", [lambda asked: stream])
    with device.delayed():
        yield stream


def lent(x):
    return lazyarray.asdevice(x)


def adopted(x):
    return lazyarray.asarray(lent(x))


@pytest.mark.together
def test_what_they_write_is_there_when_we_read(theirs):
    x = lazyarray.asarray(PLAIN)
    held = lent(x)
    with theirs:
        held *= 2
    assert (x + 0).tolist() == (2 * PLAIN).tolist()
    with theirs:
        held += 1
    assert np.asarray(x).tolist() == (2 * PLAIN + 1).tolist()
    with theirs:
        held += 1
    assert x[3] == 8


@pytest.mark.together
def test_what_we_write_is_there_when_they_read(theirs):
    x = lazyarray.asarray(PLAIN)
    held = lent(x)
    for write in (lambda: x.__iadd__(1), lambda: np.add(x, 1, out=x), lambda: x.__setitem__(slice(None), x + 1)):
        write()
        with theirs:
            seen = (held + 0).get()
        assert seen.tolist() == x.tolist()


@pytest.mark.together
@pytest.mark.filterwarnings("ignore::lazyarray.HostFallbackWarning")
def test_what_a_host_function_writes_is_there_when_they_read(theirs):
    x = lazyarray.asarray(PLAIN)
    held, kept = lent(x), []
    for value in (3, 4):
        def writes(alias, value=value):
            alias[:] = value
            kept.append(alias)

        host_fallback.on_host(writes, (x,), {}, "it is a test", aliases=True)
        with theirs:
            seen = (held + 0).get()
        assert seen.tolist() == [value] * 8


def test_arrays_that_came_from_them(theirs):
    with theirs:
        made = device.xp.arange(8.0)
    device.wait(theirs)     # as the exchange of arrays itself does
    x = lazyarray.asarray(made)
    with theirs:
        made *= 3
    assert (x + 0).tolist() == (3 * PLAIN).tolist()
    x += 1
    with theirs:
        seen = (made + 0).get()
    assert seen.tolist() == (3 * PLAIN + 1).tolist()


def test_a_loan_that_has_ended_costs_nothing_more(theirs):
    x = lazyarray.asarray(PLAIN)
    held = lent(x)
    assert not x._self_storage.clean
    del held
    y = x + 1
    assert x._self_storage.clean and y._self_storage.clean


def test_what_nobody_else_holds_waits_for_no_other_library():
    """With torch imported, an operation on an array of ours costs what it costs without."""
    asked = []
    foreign_streams.partners.append(asked.append)       # the list itself: the part in C has it too
    try:
        x = lazyarray.asarray(PLAIN)
        y = np.sqrt(x * 2 + 1)
        assert float(y.sum()) == pytest.approx(np.sqrt(PLAIN * 2 + 1).sum())
        x += 1
        x[2] = 0
        np.asarray(y)
        assert asked == []
        held = lent(x)
        (x + 1).tolist()
        assert asked and held is not None
    finally:
        foreign_streams.partners.remove(asked.append)
