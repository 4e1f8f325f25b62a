"""Elements that are asked for are fetched as they are; who sees what is written in place; positions in any order."""
from __future__ import annotations

import sys
import threading

import numpy as np
import pytest
from recorded import base, lazies, same

import lazyarray
from lazyarray import _native
from lazyarray.graph.node import Node
from lazyarray.storage import handles, transfer

ON_CUDA = lazyarray.device().name == "cuda"
rng = np.random.default_rng(8)

pytestmark = [pytest.mark.one_device("with several, elements are copied by their devices"),
              pytest.mark.skipif(_native.recording is None, reason="the part in C records it")]


def station(arrive, service, depart, wait, free, begin):
    """One server of a queue: four statements a customer."""
    for n in range(arrive.shape[0]):
        np.maximum(arrive[n], free, out=begin)
        np.subtract(begin, arrive[n], out=wait[n])
        np.add(begin, service[n], out=free)
        depart[n] = free


def of_a_station(made, customers=6):
    arrive, service = (rng.random((customers, 300)).cumsum(axis=0) for _ in range(2))
    plain = [arrive, service, *(np.zeros((customers, 300)) for _ in range(2)), *(np.zeros(300) for _ in range(2))]
    return plain, [made(x) for x in plain]


def on_device(x):
    return lazyarray.asarray(lazyarray.device().xp.asarray(x)).copy()


def test_the_statements_of_a_loop():
    plain, found = of_a_station(on_device)
    station(*plain)
    station(*found)
    for one, other in zip(found, plain):
        assert same(one, other)


def held_view(x):
    return x[2:]


def held_alias(x):
    return np.asarray(x)


def held_transposed(x):
    return x.T


def held_memoryview(x):
    return x.data


@pytest.mark.parametrize("hold", [held_view, held_alias, held_transposed, held_memoryview])
@pytest.mark.parametrize("change", [lambda x: x.__iadd__(3), lambda x: np.negative(x, out=x),
                                    lambda x: np.maximum(x, 5.0, out=x), lambda x: np.copyto(x, 4.0)])
def test_who_holds_part_of_it_sees_what_is_written(hold, change):
    plain = base()
    x, = lazies(plain)
    plain = plain.copy()
    held, also = hold(x), hold(plain)
    for _ in range(4):
        change(x)
        change(plain)
        assert np.array_equal(np.asarray(held), np.asarray(also))
    assert same(x, plain)


def test_the_device_array_of_somebody_is_written():
    array = lazyarray.device().xp.asarray(base())
    x = lazyarray.asarray(array)
    x += 1
    x *= 2
    assert same(lazyarray.asarray(array), (base() + 1) * 2)


def test_what_read_it_before_has_what_was_there():
    x, y = lazies(base(), base()[::-1].copy())
    before = x * y
    part, scalar = x[3:5] * 2, x[1]
    x += 1
    x -= y
    assert same(before, base() * base()[::-1])
    assert same(part, base()[3:5] * 2)
    assert float(scalar) == base()[1]
    assert same(x, base() + 1 - base()[::-1])


def test_a_failed_statement_leaves_it_as_it_was():
    x, = lazies(base())
    with pytest.raises(TypeError):
        x += 1j
    with pytest.raises(ValueError):
        np.add(x, np.ones(x.shape[-1] + 1), out=x)
    assert same(x, base())


class TestElements:
    """``float(x[i])``, ``if x[i, j] > 0`` and what else asks for the value of one element."""

    @pytest.mark.skipif(ON_CUDA, reason="C launches the kernels of programs")
    @pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1", "?", "c16"])
    def test_no_kernel_is_needed(self, launched, dtype):
        plain = rng.integers(0, 2, (40, 50)).astype(dtype)
        x = on_device(plain)
        handles.device_of(x)
        launched.clear()
        for i in range(6):
            assert x[i, 3].item() == plain[i, 3]
            assert bool(x[i, -1]) == bool(plain[i, -1])
        assert not launched

    def test_it_is_what_it_was_when_it_was_taken(self):
        plain = rng.random((40, 50))
        x = on_device(plain)
        taken = [x[i, 2] for i in range(4)]
        x[1, 2] = 7.0
        x[2:3] = 8.0
        x += 1
        assert [float(one) for one in taken] == list(plain[:4, 2])
        assert [float(x[i, 2]) for i in range(4)] == [plain[0, 2] + 1, 8.0, 9.0, plain[3, 2] + 1]

    def test_its_value_is_asked_for_and_then_it_is_an_operand(self):
        plain = rng.random(4000)
        x = on_device(plain)
        one = x[7]
        assert float(one) == plain[7]
        assert same(x * one, plain * plain[7])
        assert float(one + one) == 2 * plain[7]

    def test_an_event_tells_of_the_copy(self):
        x = on_device(rng.random(4000))
        one = x[7]
        with lazyarray.trace() as trace:
            float(one)
            float(one)
        assert [(event.kind, event.nbytes) for event in trace.events] == [("materialise", 8)]

    @pytest.mark.parametrize("write", [lambda x: x.__iadd__(1), lambda x: np.subtract(x, -1, out=x),
                                       lambda x: x.__setitem__(7, -1.0)])
    @pytest.mark.parametrize("where", [(Node, "copied"), (transfer, "to_host")], ids=["before it is read", "as it is"])
    def test_what_is_written_meanwhile_is_not_seen(self, where, write, monkeypatch):
        plain = rng.random(4000)
        x = on_device(plain)
        one, other, work = x[7], x[8], getattr(*where)

        def disturbed(*args, **kwargs):
            found = work(*args, **kwargs) if where[0] is Node else None
            monkeypatch.undo()
            write(x)
            return work(*args, **kwargs) if found is None else found

        monkeypatch.setattr(*where, disturbed)
        assert float(one) == plain[7] and float(other) == plain[8]
        assert float(x[7]) != plain[7]

    def test_one_thread_counts_while_another_reads(self):
        """At least as many statements as were done when it was taken, at most as many as were begun."""
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            for turn in range(24):
                x, begun, done, wrong = on_device(np.zeros(4, "i8")), [0], [0], []

                def write():
                    for _ in range(100):
                        begun[0] += 1
                        x.__iadd__(1) if turn % 2 else np.subtract(x, -1, out=x)
                        done[0] += 1

                writer = threading.Thread(target=write)
                writer.start()
                while writer.is_alive():
                    least, one, most = done[0], x[0], begun[0]
                    if not least <= int(one) <= most:
                        wrong.append((least, int(one), most))
                writer.join()
                assert not wrong and int(x[3]) == 100
        finally:
            sys.setswitchinterval(before)


    def test_no_other_thread_sees_half_of_add_at(self):
        """It ran on the host, the long way that NumPy goes for a dtype that is equal and not its own."""
        before, small = sys.getswitchinterval(), _native.recording.small(95_000)
        sys.setswitchinterval(1e-5)
        try:
            x, wrong = on_device(np.zeros(400, "i8")), []
            writer = threading.Thread(target=lambda: [np.add.at(x, np.arange(400), 1) for _ in range(150)])
            writer.start()
            while writer.is_alive():
                first, last = x[0], x[399]
                if int(first) > int(last):
                    wrong.append((int(first), int(last)))
            writer.join()
            assert not wrong and int(x[5]) == 150
        finally:
            sys.setswitchinterval(before)
            _native.recording.small(small)


@pytest.mark.parametrize("count", [3, 700])
@pytest.mark.parametrize("places", [5000, 70_000])
def test_positions_in_any_order(count, places):
    """Those that name none twice, and those that do, of which the last value counts."""
    plain = rng.random(places)
    x = on_device(plain)
    several = rng.permutation(places)[:count]
    for index in (several, several - places, np.append(several, several[:1]), np.append(several, several[-1] - places),
                  np.append(several, [0, places - 1]), several.astype("i4"), several.reshape(1, -1)):
        for position in (index, lazyarray.asarray(index), index.tolist()):
            values = rng.random(np.shape(position))
            plain[index] = values
            x[position] = on_device(values)
            assert same(x, plain)
