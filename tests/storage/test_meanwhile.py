"""What happens while work is recorded or computed: other threads write and compute, and finalizers do both."""
from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from recorded import base, pending

import lazyarray
from lazyarray.dispatch import ufunc as ufuncs
from lazyarray.graph.record import call_cache, loops, ufunc
from lazyarray.storage import coherence, handles, state, statements, transfer
from lazyarray.storage.mirror.dirty_tracking import why_no_pages


def elsewhere(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()


class TestWhileItIsRecorded:
    """Its operands know it before anybody holds it."""

    @pytest.mark.together
    @pytest.mark.parametrize("call, known", [
        (lambda x, row: x + 1, lambda x, row: x + 1), (lambda x, row: x + row, lambda x, row: x + row),
        (lambda x, row: np.sqrt(x.T), lambda x, row: np.sqrt(x.T)),
    ], ids=["the quick way", "the general way", "a view"])
    @pytest.mark.parametrize("times", [1, 3])
    def test_an_operand_is_written_by_another_thread(self, call, known, times):
        """While it is recorded, those that read `x` are many by now, and are looked through."""
        plain, line = base((3, 4)), base((4,)) * 10
        x, row = lazyarray.asarray(plain), lazyarray.asarray(line)

        def write():
            x[...] = 100

        for _ in range(times - 1):      # calls that were met before have a way of their own
            call(x, row)
        x._self_storage.readers = None
        others = [x * i for i in range(30)]     # and one that is gone: at the 32nd they are looked through

        class Gone:     # as the weak reference of one that is gone
            asked = 0

            def __call__(self):
                self.asked += 1
                if self.asked == 1:
                    elsewhere(write)

        x._self_storage.readers.insert(0, Gone())
        found = call(x, row)
        assert np.array_equal(others[3], plain * 3)
        assert not pending(found) and (np.asarray(x) == 100).all()
        expected = known(plain, line)
        assert found.shape == expected.shape and found.strides == expected.strides and found.dtype == expected.dtype
        assert np.array_equal(found, expected)
        assert np.array_equal(found * 2, expected * 2)

    def test_an_operand_is_computed_by_another_thread_in_the_quick_way(self, monkeypatch):
        x = lazyarray.asarray(base((3, 4)))
        x * 3 + 2
        waits = x * 3
        rule = loops.rules[np.add, x.dtype, int]

        def scalar(value):
            elsewhere(lambda: handles.device_of(waits))
            return rule.step.scalar(value)

        monkeypatch.setattr(rule, "scalars", (None, scalar))
        found = ufuncs.quick(np.add, (waits, 2))
        monkeypatch.undo()
        self.check_written(waits, found, base((3, 4)) * 3, base((3, 4)) * 3 + 2)

    @pytest.mark.together
    @pytest.mark.parametrize("count", [0, 2])
    def test_an_operand_is_computed_by_another_thread_in_the_general_way(self, monkeypatch, count):
        x, row = lazyarray.asarray(base((3, 4))), lazyarray.asarray(np.arange(8.0)[::2])
        waits = x * 3
        others = [waits + i for i in range(count)]
        real = ufunc.recorded
        call_cache.known.clear()       # in place: a call that was met before has a way of its own

        def recorded(given):
            elsewhere(lambda: handles.device_of(waits))
            return real(given)

        monkeypatch.setattr(ufunc, "recorded", recorded)
        found = ufuncs.quick(np.subtract, (waits, row))
        monkeypatch.undo()
        self.check_written(waits, found, base((3, 4)) * 3, base((3, 4)) * 3 - np.arange(8.0)[::2])
        for i, other in enumerate(others):
            assert np.array_equal(other, base((3, 4)) * 3 + i)

    def check_written(self, waits, found, before, expected):
        assert not pending(waits) and pending(found)
        assert np.array_equal(waits, before)
        waits[...] = 0
        assert np.array_equal(found, expected) and found.dtype == expected.dtype
        assert not np.asarray(waits).any()


def meanwhile(monkeypatch, what):
    """Have something done, once, when the device is next asked for its stream: a finalizer may run there."""
    device = lazyarray.device()
    real, done = device.stream, []

    def stream():
        if not done:
            done.append(True)
            what()
        return real()

    monkeypatch.setattr(device, "stream", stream, raising=False)
    return done


class TestWhileItIsComputed:
    """Finalizers run in the thread that computes, which has the lock."""

    def test_it_is_computed(self, monkeypatch):
        x = lazyarray.asarray(base((3, 4)))
        held = x * 2
        last = held + 1
        node = last._self_storage.pending
        done = meanwhile(monkeypatch, node.compute)
        assert np.array_equal(handles.value_of(last[0, 0]), 3) and done
        monkeypatch.undo()
        assert np.array_equal(last, base((3, 4)) * 2 + 1) and np.array_equal(held, base((3, 4)) * 2)

    @pytest.mark.together
    def test_it_is_computed_while_an_operand_is(self, monkeypatch):
        """The operand is computed first, by a kernel of its own."""
        small, x = lazyarray.asarray(base((4,))), lazyarray.asarray(base((3, 4)))
        last = x + small * 2
        node = last._self_storage.pending
        done = meanwhile(monkeypatch, node.compute)
        array = node.compute()
        monkeypatch.undo()
        assert done and array is node.array
        assert np.array_equal(last, base((3, 4)) + base((4,)) * 2)

    @pytest.mark.together
    def test_it_is_computed_before_it_is_reduced(self, monkeypatch):
        small, x = lazyarray.asarray(base((4,))), lazyarray.asarray(base((3, 4)))
        last = x + small * 2
        node = last._self_storage.pending
        done = meanwhile(monkeypatch, node.compute)
        found = last.sum()
        monkeypatch.undo()
        assert done and found == (base((3, 4)) + base((4,)) * 2).sum()

    def test_what_it_reads_is_written(self, monkeypatch):
        x = lazyarray.asarray(base((3, 4)))
        held = x * 2
        last = held + 1
        node, on_the_way = last._self_storage.pending, held._self_storage.pending

        def write():
            x[...] = 100

        done = meanwhile(monkeypatch, write)
        node.compute()
        monkeypatch.undo()
        assert done and on_the_way.array is not None and (np.asarray(x) == 100).all()
        assert np.array_equal(last, base((3, 4)) * 2 + 1) and np.array_equal(held, base((3, 4)) * 2)
        assert np.array_equal(last - held, np.ones((3, 4)))


class TestInCycles:
    """The collector clears weak references to all of a cycle before it calls its finalizers."""

    @pytest.mark.parametrize("look, known", [
        (np.asarray, lambda x: x), (lambda x: np.asarray(x[1:]), lambda x: x[1:]),
        (lambda x: np.asarray(x + 1), lambda x: x + 1), (lambda x: x.tolist(), lambda x: x),
        (lambda x: float(x.sum()), lambda x: x.sum()), (lambda x: handles.device_of(x).tolist(), lambda x: x),
        (lambda x: float(x[0, 0]), lambda x: x[0, 0]), (lambda x: np.asarray(np.add(x, 1, out=x)), lambda x: x + 1),
        (lambda x: np.asarray([np.asarray(x * 2), np.asarray(x)]), lambda x: np.asarray([x * 2, x])),
    ])
    @pytest.mark.parametrize("steps", [1, 3])
    def test_a_finalizer_asks_for_recorded_work(self, look, known, steps):
        found = []

        class Writer:
            def __init__(self, work):
                self.work, self.itself = work, self

            def __del__(self):
                found.append(look(self.work))

        def work(x):
            for _ in range(steps):
                x = x * 2 + 1
            return x

        Writer(work(lazyarray.asarray(base((3, 4)))))
        gc.collect()
        value, = found
        assert np.array_equal(value, known(work(base((3, 4)))))

    def test_and_then_writes_to_it(self):
        found = []

        class Writer:
            def __init__(self, work):
                self.work, self.itself = work, self

            def __del__(self):
                more = self.work + 1
                self.work[0] = 7
                found.extend([np.asarray(self.work), np.asarray(more)])

        Writer(lazyarray.asarray(base((3, 4))) * 2)
        gc.collect()
        written, more = found
        expected = base((3, 4)) * 2
        assert np.array_equal(more, expected + 1)
        expected[0] = 7
        assert np.array_equal(written, expected)


#: What is done over and over, and in finalisers, too; how often, and how many objects later the collector runs at most.
EVERYWHERE = {
    "a lock is made": (40, 20, "made.pop()._self_storage.lock"),
    "device memory is known": (180, 60, """
x = lazyarray.asarray(np.arange(30.0))
y = lazyarray.asarray(lazyarray.asdevice(x))
y[3] = 7
assert float(x[3]) == 7
made[:] = [*made[-20:], x]"""),
    "large memory is taken": (40, 20, """
mirror_pool.pool.look_after(idle=-1)
assert not np.asarray(lazyarray.asarray(np.zeros(17 << 20, np.uint8)))[0]"""),
}


@pytest.mark.parametrize("what", EVERYWHERE)
def test_finalisers_run_everywhere(what):
    """One never waits for a lock that its own thread holds."""
    count, most, work = EVERYWHERE[what]
    code = f"""
import gc
import numpy as np, lazyarray
from lazyarray.storage.mirror import pinned_pool as mirror_pool

made = [lazyarray.asarray(np.arange(3.0)) for _ in range(1 << 12)]

def work():
    {work.strip().replace(chr(10), chr(10) + "    ")}

class Last:
    def __del__(self):
        work()

work()      # what is imported then is there
gc.freeze()
for i in range({count}):
    gc.collect()
    cycle = Last()
    cycle.me = cycle
    del cycle
    gc.set_threshold(gc.get_count()[0] + i % {most})
    work()
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, timeout=120, capture_output=True, text=True)
    assert "Exception" not in done.stderr


class TestReadersThatAreLeftOut:
    """`state.cut`, while others use the list."""

    class Waits:
        array = None

    def references(self, n):
        nodes = [self.Waits() for _ in range(n)]
        return nodes, [weakref.ref(node) for node in nodes]

    def test_after_an_interrupt_the_next_one_does_it(self):
        nodes, refs = self.references(3)
        interrupts = [KeyboardInterrupt]

        def gone():
            if interrupts:
                raise interrupts.pop()

        readers = [refs[0], gone, *refs[1:]]
        with pytest.raises(KeyboardInterrupt):
            state.cut(readers)
        assert readers == [refs[0], gone, *refs[1:]]
        nodes[1].array = 1
        state.cut(readers)
        assert readers == [refs[0], refs[2]]

    @pytest.mark.parametrize("meanwhile", ["append", "cut", "cut and append"])
    def test_what_others_append_stays(self, meanwhile):
        nodes, refs = self.references(4)
        nodes[1].array = 1
        asked = []

        def gone():     # as a finaliser, or another thread
            if not asked:
                asked.append(1)
                if "cut" in meanwhile:
                    state.cut(readers)
                if "append" in meanwhile:
                    readers.append(refs[3])

        readers = [refs[0], refs[1], gone, refs[2]]
        state.cut(readers)
        assert readers == [refs[0], refs[2]] + [refs[3]] * ("append" in meanwhile)


def test_a_statement_sees_what_other_threads_write_at_one_time(monkeypatch):
    """What was found to be written is sent, not what has been written since: no element is half of two writes."""
    x = lazyarray.asarray(np.arange(6.0))
    lazyarray.block_until_ready(x + 1)
    alias = np.asarray(x)
    alias[0] = 50       # differs from 0.0 in fewer bytes than 78.125 does
    upload = transfer.upload

    def late(*args, **kwargs):
        monkeypatch.setattr(transfer, "upload", upload)
        alias[::2] = 78.125
        upload(*args, **kwargs)
    monkeypatch.setattr(transfer, "upload", late)
    np.testing.assert_array_equal(lazyarray.asnumpy(x * 1), [50, 1, 2, 3, 4, 5])
    np.testing.assert_array_equal(lazyarray.asnumpy(x * 1), [78.125, 1, 78.125, 3, 78.125, 5])


def test_an_alias_that_is_written_between_two_looks_of_a_statement(monkeypatch):
    """What the statement writes was made before: so the write of the alias came after it."""
    x = lazyarray.asarray(np.arange(6.0))
    lazyarray.block_until_ready(x + 1)
    alias = np.asarray(x)
    look = coherence.written_meanwhile

    def looked(*args):
        found = look(*args)
        alias[0] = 50
        return found
    monkeypatch.setattr(coherence, "written_meanwhile", looked)
    x[::-1] += x[0:6]
    np.testing.assert_array_equal(x, [50, 5, 5, 5, 5, 5])
    np.testing.assert_array_equal(alias, [50, 5, 5, 5, 5, 5])


class TestWhileTheDeviceWritesSomeElements:
    """What an alias writes beside them stays, also where pages are found that were written, not the bytes in them."""

    @pytest.mark.together
    @pytest.mark.parametrize("size", [600, 40_000])
    def test_an_alias_is_written(self, size, monkeypatch):
        monkeypatch.setattr(coherence, "others_run", lambda: True)
        x = lazyarray.asarray(np.zeros((6, size))) + 0
        alias = np.asarray(x)[4:]
        storage, meta = x._self_storage, handles.meta_of(x)

        def work(target):
            target[1, 3] = 5
            alias[0] = 7
            target[0, 2] = 6
            alias[1, ::2] = 8

        for _ in range(3):
            storage.write_device(meta, None, work)
        alias[1, 1] = 9
        expected = np.zeros((6, size))
        expected[1, 3], expected[0, 2], expected[4], expected[5, ::2], expected[5, 1] = 5, 6, 7, 8, 9
        for found in (x, x + 0, np.asarray(x)):
            assert np.array_equal(np.asarray(found), expected)
        assert np.array_equal(alias, expected[4:])

    @pytest.mark.together
    @pytest.mark.skipif(why_no_pages() is not None, reason="needs the kernel's write tracking")
    def test_writes_are_found_by_pages_afterwards(self, monkeypatch):
        monkeypatch.setattr(coherence, "others_run", lambda: True)
        x = lazyarray.asarray(np.zeros((6, 40_000))) + 0
        alias = np.asarray(x)[4:]
        assert not x._self_storage.mirror.compares
        x[x > 1] = 2
        np.add.at(x, ([0, 1], [2, 3]), 1)
        assert not x._self_storage.mirror.compares
        alias[0, 0] = 3
        assert float((x + 0)[4, 0]) == 3

    @pytest.mark.together
    def test_what_is_in_a_tuple_or_a_list_is_held_too(self):
        """Else one thread has the array that it writes, and waits for the positions; another the other way round."""
        arrays = [lazyarray.asarray(np.arange(6.0)) * 1 for _ in range(4)]
        for x in arrays:
            x[0] = 1
        first, second, third, fourth = arrays

        def locks():
            return [x._self_storage.lock.held for x in arrays]

        assert statements.held((first, (second, [third]), 5), locks) == [1, 1, 1, 0] and locks() == [0] * 4


@pytest.mark.parametrize("write", [lambda x: x.__setitem__([400, 401], 3), lambda x: x.__setitem__(x > 7, 3),
                                   lambda x: np.add.at(x, ([400, 401], slice(None)), 2),
                                   lambda x: np.put(x, [320_000], 3)])
def test_what_an_alias_writes_while_the_writes_of_device_pointers_are_looked_for_is_kept(write, monkeypatch):
    """All before had been sent, and what is written is not known by its place: the row was lost, on both sides."""
    x, plain = lazyarray.asarray(np.ones((800, 800))), np.ones((800, 800))
    handle = lazyarray.asdevice(x)
    alias = np.asarray(x)
    fetched, written = coherence._fetched, []

    def meanwhile(storage, view, stale):
        found = fetched(storage, view, stale)
        if not written:
            written.append(view)
            alias[0] = 5
        return found

    monkeypatch.setattr(coherence, "_fetched", meanwhile)
    write(x)
    monkeypatch.undo()
    assert written
    plain[0] = 5
    write(plain)
    assert np.array_equal(alias, plain) and np.array_equal(np.asarray(x * 1), plain) and handle.shape == plain.shape
