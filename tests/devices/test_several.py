"""Several devices: where arrays are placed, where operations run, and copies from one device to another."""
from __future__ import annotations

import contextlib
import os
import threading

import numpy as np
import pytest

import lazyarray
import lazyarray.numpy as lnp
from lazyarray.storage import handles
from lazyarray.testing import assert_copies

pytestmark = pytest.mark.skipif(os.environ.get("LAZYARRAY_TEST_TWO_DEVICES") == "1",
                                reason="there, copies between devices are no events")

A, B = np.arange(1.0, 7).reshape(2, 3), np.arange(6.0, 0, -1).reshape(2, 3)


@pytest.fixture(autouse=True)
def two():
    device = lazyarray.device()
    if device.name == "simulated":
        with device.with_count(2):
            yield device
    elif device.count < 2:
        pytest.skip("one GPU here")
    else:
        yield device


def on(number, values):
    with lazyarray.device(number):
        return lazyarray.asarray(values)


def place(x):
    return int(lazyarray.where(x).device.rpartition(":")[2])


def test_memory_is_counted_on_each_device():
    before = []
    for number in (0, 1):
        with lazyarray.device(number):
            before.append(lazyarray.memory_info())
    x = on(1, np.zeros(1 << 16))
    lazyarray.block_until_ready(x + 1)
    after = []
    for number in (0, 1):
        with lazyarray.device(number):
            after.append(lazyarray.memory_info())
    assert [a.device - b.device for a, b in zip(after, before)] == [0, x.nbytes]


@pytest.mark.skipif(lazyarray.device().name != "simulated", reason="sets the simulated device's limit")
def test_moves_are_counted_on_each_device(two):
    def spills(number):
        with lazyarray.device(number):
            return lazyarray.memory_info().spills

    lazyarray.block_until_ready(on(1, np.zeros(1 << 18)) + 1)   # what is kept for recorded work knew no limit then
    with two.limited(8 << 20):
        before = spills(0), spills(1)
        with lazyarray.device(1):
            held = [lazyarray.asarray(np.zeros(1 << 18)) + 1 for _ in range(16)]
            lazyarray.block_until_ready(held)
        del held
    assert spills(0) == before[0] and spills(1) >= before[1] + 8



class TestDevice:
    def test_new_arrays_are_placed_there(self):
        x, y = on(0, A), on(1, A)
        with lazyarray.device(1):
            z = np.zeros_like(on(1, A))
            with lazyarray.device(0):
                inner = lazyarray.asarray(B)
            outer = lazyarray.asarray(B)
        assert [place(a) for a in (x, y, z, inner, outer, lazyarray.asarray(A))] == [0, 1, 1, 0, 1, 0]

    def test_as_a_decorator_and_in_this_thread_alone(self):
        @lazyarray.device(1)
        def make():
            found = []
            other = threading.Thread(target=lambda: found.append(place(lazyarray.asarray(A))))
            other.start()
            other.join()
            return place(lazyarray.asarray(A)), *found

        assert make() == (1, 0)

    def test_one_object_is_entered_again(self):
        there = lazyarray.device(1)

        @there
        def make(depth):
            found = [place(lazyarray.asarray(A))]
            with lazyarray.device(0):
                return found + (make(depth - 1) if depth else [place(lazyarray.asarray(A))])

        with there, there:
            assert make(2) == [1, 1, 1, 0] and lazyarray.device().number() == 1
            thread = threading.Thread(target=lambda: make(0))
            thread.start()
            thread.join()
        assert lazyarray.device().number() == 0

    def test_what_runs_in_steps_is_no_function_to_decorate(self):
        def generator():
            yield

        async def coroutine():
            pass

        async def both():
            yield

        for function in (generator, coroutine, both):
            with pytest.raises(TypeError, match="runs in steps"):
                lazyarray.device(1)(function)

    def test_what_an_error_leaves(self):
        with pytest.raises(KeyError), lazyarray.device(1):
            raise KeyError
        assert lazyarray.device().number() == 0

    def test_made_in_a_block_and_entered_in_another(self):
        with lazyarray.device(1):
            later = lazyarray.device(1)
        with later:
            assert place(lazyarray.asarray(A)) == 1

    def test_the_repr_is_the_call(self):
        there = lazyarray.device(1)
        assert repr(there) == "lazyarray.device(1)" and repr(object.__new__(type(there))).startswith("<")

    @pytest.mark.parametrize("wrong", [True, False, np.True_, 1.0, "1", [1]])
    def test_what_is_no_number_of_a_device(self, wrong):
        with pytest.raises(TypeError):
            lazyarray.device(wrong)

    @pytest.mark.parametrize("number", [-1, 99])
    def test_there_is_none_of_that_number(self, number):
        with pytest.raises(ValueError, match=f"no device {number}"):
            lazyarray.device(number)

    def test_a_copy_of_a_number_is_an_array(self):
        x = on(0, np.array(7.0))
        with lazyarray.device(1):
            y = lazyarray.asarray(x, copy=True)
        y[...] = 8
        assert isinstance(y, np.ndarray) and y.shape == () and (place(x), place(y)) == (0, 1) and (x, y) == (7, 8)

    def test_a_copy_moves_an_array(self):
        x = on(0, A)
        with lazyarray.device(1), assert_copies(0, 0, peer_copies=1, nbytes=A.nbytes):
            y = lazyarray.asarray(x, copy=True)
            assert lazyarray.asarray(x) is x
        assert (place(x), place(y)) == (0, 1)
        y += 1
        assert np.array_equal(x, A) and np.array_equal(y, A + 1)


CALLS = {
    "operator": lambda x, y: x + y, "ufunc": np.arctan2, "comparison": lambda x, y: x < y,
    "matmul": lambda x, y: x @ y.T,
    "divmod": lambda x, y: np.divmod(x, y)[1], "where": lambda x, y: np.where(x > 2, x, y),
    "a list": lambda x, y: np.concatenate([x, y, x]), "stack": lambda x, y: np.stack((x, y)),
    "dot": lambda x, y: x.dot(y.T),
    "einsum": lambda x, y: np.einsum("ij,kj->ik", x, y), "interp": lambda x, y: np.interp(x[0], y[0, ::-1], y[1]),
    "isin": np.isin, "outer": np.outer, "clip": lambda x, y: np.clip(x, y - 1, y + 1), "tensordot": np.tensordot,
    "index": lambda x, y: x[:, (y[0] % 3).astype(int)], "mask": lambda x, y: x[y > 3],
    "take": lambda x, y: x.take(y.astype(int) - 1),
    "a scalar": lambda x, y: x * y.sum(), "where=": lambda x, y: np.sum(x, where=y > 2),
    "a strided operand": lambda x, y: x[:, ::2] - y[:, ::-2], "of other orders": lambda x, y: x.T + y.T,
    "searchsorted": lambda x, y: np.searchsorted(x[0], y), "recorded first": lambda x, y: (x * 2 + 1) / (y - 7),
    "solve": lambda x, y: np.linalg.solve(x[:, :2], y[:, 1]),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("delay", [False, True])
def test_operands_on_two_devices(two, call, first, delay):
    with two.delayed(delay) if two.name == "simulated" else lazyarray.device(0):
        x, y = on(first, A), on(1 - first, B)
        with lazyarray.trace() as t:
            found = call(x, y)
        expected = call(A, B)
        assert not t.fallbacks and not t.uploads and t.peer_copies
        assert found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-14)
        assert np.array_equal(x, A) and np.array_equal(y, B)


def test_operations_run_where_the_largest_operand_lies():
    large, small = on(1, np.ones((50, 50))), on(0, np.ones(50))
    for made in (small + large, large + small, np.where(small > 0, large, small), np.concatenate([small[None], large]),
                 large[small.astype(bool)], large @ small, large * small.sum()):
        assert place(made) == 1
    with lazyarray.trace() as t:
        small + large
    (event,) = t.peer_copies
    assert (event.kind, event.nbytes, event.shape, event.dtype) == ("peer copy", 400, (50,), np.float64)
    assert event.code == "small + large" and event.seconds > 0


def test_what_is_on_one_device_is_not_copied():
    x = on(1, A)
    with assert_copies(0, 0, peer_copies=0):
        y = (x + x * 2).sum(axis=0)[::-1]
        x[0] = x[1]
        z = np.concatenate([x, x])
    assert place(y) == place(z) == place(x) == 1


WRITES = {
    "+=": (lambda x, y: x.__iadd__(y), lambda x, y: x.__iadd__(y)),
    "out=": (lambda x, y: np.add(y, y, out=x),) * 2,
    "out= of a function": (lambda x, y: np.cumsum(y, axis=0, out=x),) * 2,
    "a slice": (lambda x, y: x.__setitem__(slice(1), y[1]),) * 2,
    "a mask": (lambda x, y: x.__setitem__(y > 3, y[y > 3]),) * 2,
    "indexes": (lambda x, y: x.__setitem__((slice(None), y[0].astype(int) - 4), y),) * 2,
    "copyto": (lambda x, y: np.copyto(x, y, where=y > 2),) * 2, "put": (lambda x, y: np.put(x, [0, 2], y[0, :2]),) * 2,
    "add.at": (lambda x, y: np.add.at(x, (np.array([0, 0]), np.array([1, 1])), y[0, :2]),) * 2,
    "where=": (lambda x, y: np.multiply(x, y, out=x, where=y > 2),) * 2, "fill": (lambda x, y: x.fill(y[0, 0]),) * 2,
    "one element": (lambda x, y: x.__setitem__((0, 0), y[1, 1]),) * 2,
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("first", [0, 1])
def test_what_is_written_stays_where_it_is(write, first):
    x, y, expected = on(first, A), on(1 - first, B), A.copy()
    alias, view = np.asarray(x), x[::-1]
    write[0](x, y)
    write[1](expected, B)
    assert place(x) == first
    assert np.array_equal(x, expected) and np.array_equal(alias, expected) and np.array_equal(view, expected[::-1])
    assert np.array_equal(y, B) and place(y) == 1 - first


@pytest.mark.parametrize("write", [
    lambda x, y: np.add(y, 1, out=x), lambda x, y: np.add(x, y, out=x), lambda x, y: np.multiply(y, y.sum(), out=x),
])
@pytest.mark.parametrize("waits", ["x", "y", "both"])
@pytest.mark.parametrize("first", [0, 1])
def test_recorded_work_that_is_written_in_place_stays_where_it_is(write, waits, first):
    x, y, expected, other = on(first, A), on(1 - first, B), A.copy(), B.copy()
    if waits != "y":
        x, expected = x * 2, expected * 2
    if waits != "x":
        y, other = y * 2, other * 2
    write(x, y)
    write(expected, other)
    assert (place(x), place(y)) == (first, 1 - first)
    assert np.array_equal(x, expected) and np.array_equal(y, other)


def test_two_outputs_on_two_devices():
    x, whole, rest = on(0, A * 7), on(1, np.zeros_like(A)), on(0, np.zeros_like(A))
    np.divmod(x, 4, out=(whole, rest))
    assert np.array_equal(whole, A * 7 // 4) and np.array_equal(rest, A * 7 % 4)
    assert (place(whole), place(rest)) == (1, 0)


class TestAsLongAsOneIsUsed:
    """A program that uses one of several GPUs takes the ways of a machine that has one."""

    def test_work_is_recorded_and_written_as_on_one(self, two):
        x, y = (lazyarray.asarray(np.ones((300, 300))) for _ in range(2))
        z = np.sqrt(x * 2 + y)
        assert lazyarray.where(z).side == "pending" and not two.several
        x += 1
        y[1:, 1:] += z[:-1, :-1]
        y[0] = x[0]
        assert np.add(lnp.arange(300.0), x).sum() > 0 and not two.several
        with lazyarray.device(0):
            assert np.array_equal(lazyarray.asarray(A) * 2, A * 2)
        assert not two.several

    @pytest.mark.parametrize("use", [
        lambda z: z, lambda z: z.sum(), lambda z: np.concatenate([z, z]), lambda z: z * 2, lambda z: z[z > 2],
        lambda z: z.__iadd__(1), lambda z: z.__setitem__(0, 7), lambda z: z[1, 2], str, np.argsort,
        lambda z: z.astype("f4"), lambda z: z.mean(axis=0), lambda z: np.linalg.norm(z),
    ])
    def test_what_was_recorded_before_another_is_used_is_computed_where_its_operands_are(self, two, use):
        expected = np.arange(300.0 * 300).reshape(300, 300)
        z = lazyarray.asarray(expected) * 2 + 1
        expected = expected * 2 + 1
        assert not two.several
        with lazyarray.device(1):
            found, wanted = use(z), use(expected)
            assert place(lazyarray.asarray(A)) == 1
        if lazyarray.is_lazy(found) and found.ndim:
            assert place(found) == 0
        if wanted is not None and not isinstance(wanted, str):
            np.testing.assert_allclose(np.asarray(found), wanted)
        assert two.several and place(z) == 0 and np.array_equal(z, expected)

    @pytest.mark.parametrize("meet, number", [
        (np.add, 0), (lambda x, d: x + d, 0), (lambda x, d: np.concatenate([d, x[0]]), 1),
        (lambda x, d: np.concatenate([x[0, :2], d]), 1), (lambda x, d: np.stack([x[0], d], 1), 0),
        (lambda x, d: x[:, 0][lazyarray.asarray(d) > 3], 0), (lambda x, d: lazyarray.asarray(d) * 2, 1),
    ])
    def test_a_device_array_of_another_is_met(self, two, meet, number):
        ones, plain = np.ones((300, 300)), np.arange(300.0)
        with two.on(1):
            d = two.xp.asarray(plain)
        x = lazyarray.asarray(ones)
        z = x * 2
        found = meet(x, d)
        assert place(found) == number and np.array_equal(found, meet(ones, plain))
        with lazyarray.device(1):
            assert np.array_equal(lazyarray.asarray(d) * 2, plain * 2) and np.array_equal(z, ones * 2)
        assert (place(z), place(lazyarray.asarray(d))) == (0, 1)

    @pytest.mark.parametrize("shape, number", [((300, 300), 0), ((2,), 1)])
    def test_a_gpu_function_is_given_a_device_array_of_another(self, two, shape, number):
        @lazyarray.lazy(pure=True)
        def doubled(x, d):
            assert two.number() == number
            return d * 2

        with two.on(1):
            d = two.xp.asarray(A)
        found = doubled(lazyarray.asarray(np.ones(shape)), d)
        assert place(found) == number and np.array_equal(found, A * 2)

    @pytest.mark.parametrize("first", [
        lambda x, a: x + a, lambda x, a: a * x, lambda x, a: np.where(x > 0, x, a), lambda x, a: x * a[:1] + a,
        lambda x, a: np.arctan2(x, a), lambda x, a: np.concatenate([x, a]), lambda x, a: (x * 2 + 1) @ a,
        lambda x, a: x.sum(axis=0) + a[0], lambda x, a: np.add(x, a, out=x), lambda x, a: x.__setitem__(0, a[0]),
        lambda x, a: x[a > 1], lambda x, a: x[np.arange(3)], lambda x, a: np.linalg.norm(x - a),
    ])
    @pytest.mark.parametrize("state", ["pending", "ready", "alias"])
    def test_the_first_statement_beside_another_device_runs_where_the_array_is(self, two, first, state):
        a, plain = np.arange(90_000.0).reshape(300, 300), np.ones((300, 300)) + 1
        x = lazyarray.asarray(np.ones((300, 300))) + 1
        alias = np.asarray(x) if state == "alias" else None
        if state == "ready":
            lazyarray.asdevice(x)
        assert not two.several
        with lazyarray.device(1):
            found, wanted = first(x, a), first(plain, a)
        if lazyarray.is_lazy(found) and found.ndim:
            assert place(found) == 0
        if wanted is not None:
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-12)
        assert place(x) == 0 and np.array_equal(x, plain) and (alias is None or np.array_equal(alias, plain))

    def test_streams_of_both_times_wait_for_each_other(self, two):
        with two.delayed() if two.name == "simulated" else contextlib.nullcontext():
            x, stream = lazyarray.asarray(np.ones(300_000)), two.new_stream()
            with stream:
                y = x * 2
                lazyarray.asdevice(y)
            with lazyarray.device(1):
                u = lazyarray.asarray(np.ones(300_000)) + y
            with stream:
                v = y + 1
            assert two.several and float(u.sum()) == float(v.sum()) == 900_000

    def test_in_another_thread(self, two):
        x = lazyarray.asarray(np.ones(300_000)) * 2
        found = []

        def work():
            with lazyarray.device(1):
                found.append(lazyarray.asarray(np.ones(300_000)) + 1)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        x += 1
        assert two.several and place(x) == 0 and place(*found) == 1
        assert float(x.sum()) == 900_000 and float(found[0].sum()) == 600_000


def test_a_copy_between_devices_can_be_forbidden():
    x, y = on(0, A), on(1, B)
    with lazyarray.no_transfers():
        with pytest.raises(lazyarray.TransferError, match=r"Blocked device-to-device copy: .*, at .*: x \+ y"):
            x + y
        with lazyarray.no_transfers(peer_copies="allow"):
            z = x + y
    with lazyarray.no_transfers(uploads="error", materialisations="error"):
        z = x + y
    with lazyarray.no_transfers(peer_copies="error"), pytest.raises(lazyarray.TransferError):
        np.concatenate([x, y])
    assert np.array_equal(z, A + B)


def test_how_a_trace_shows_them():
    x, y = on(0, A), on(1, B)
    with lazyarray.trace() as t:
        x + y
    assert t.nbytes == A.nbytes and len(t) == 1
    assert "1 peer copy (48 B, " in t.summary() and "peer copy" in t.table()
    with lazyarray.trace() as t:
        x + y, x - y
    assert "2 peer copies (96 B, " in t.summary()


def test_device_arrays_of_both(two):
    with lazyarray.device(1):
        d = two.xp.asarray(B)
        mask = d > 3
    x = on(0, A)
    with lazyarray.trace() as t:
        found = np.arctan2(x, d), np.stack([x, lazyarray.asarray(d)]), x[mask]
    assert not t.fallbacks and t.peer_copies
    for y, expected in zip(found, (np.arctan2(A, B), np.stack([A, B]), A[B > 3])):
        np.testing.assert_allclose(np.asarray(y), expected, rtol=1e-15)


def test_a_gpu_function_is_given_an_array_without_elements(two):
    @lazyarray.lazy
    def added(x, y):
        x[...] = x + y
        return x

    empty, number = on(0, np.zeros(0)), on(1, np.array(1.0))
    assert added(empty, number).shape == (0,)


def test_a_gpu_function_runs_where_its_largest_argument_lies(two):
    @lazyarray.lazy(pure=True)
    def scaled(x, weights):
        assert two.number() == 1
        return x * weights

    found = scaled(on(0, np.ones(3)), on(1, A))
    assert np.array_equal(found, A) and place(found) == 1


@pytest.mark.parametrize("writes", [None, ("x", "y")])
@pytest.mark.parametrize("first", [0, 1])
def test_what_a_gpu_function_writes_is_copied_back_to_the_other_device(two, first, writes):
    @lazyarray.lazy(**({} if writes is None else {"writes": writes}))
    def swap(x, y):
        assert two.device_of(x) == two.device_of(y) == two.number()
        x[...], y[...] = y.copy(), x.copy()
        return y

    x, y = on(first, A), on(1 - first, 2 * A)
    alias = np.asarray(y)
    with lazyarray.trace() as t:
        found = swap(x, y)
    assert np.array_equal(x, 2 * A) and np.array_equal(y, A) and np.array_equal(alias, A)
    assert np.array_equal(found, A) and (place(x), place(y)) == (first, 1 - first)
    assert [event.kind for event in t.events if event.kind == "peer copy"] == ["peer copy"] * 2


def test_what_a_gpu_function_reads_alone_is_not_copied_back(two):
    @lazyarray.lazy
    def added(x, y):
        x += y

    x, y = on(0, A), on(1, A)
    with lazyarray.trace() as t:
        added(x, y)
    assert np.array_equal(x, 2 * A) and np.array_equal(y, A)
    assert sum(event.kind == "peer copy" for event in t.events) == 1


@pytest.mark.parametrize("sender", [0, 1])
def test_what_is_sent_to_a_generator_comes_to_its_device(two, sender):
    @lazyarray.lazy(writes=("x",))
    def running(x):
        while True:
            x += yield x * 2

    x, more = on(0, A), on(1, A)
    steps = running(x)
    next(steps)
    with lazyarray.device(sender):
        doubled = steps.send(more)
    assert np.array_equal(doubled, 4 * A) and np.array_equal(x, 2 * A) and place(x) == place(doubled) == 0



def test_streams_of_both(two):
    """Work on one device is waited for on the other, and memory that is being copied is not used again before."""
    if two.name != "simulated":
        pytest.skip("a delay can be asked of the simulated device alone")
    with two.delayed():
        with lazyarray.device(1), two.new_stream():
            x = lazyarray.asarray(np.zeros((300, 40)))
            for _ in range(5):
                x += 1
        y = lazyarray.asarray(np.ones((300, 41)))
        with two.new_stream():
            z = y[:, 1:] * x.T.T + x[:, :1]
            x += 1
        assert (np.asarray(z) == 10).all() and (np.asarray(x) == 6).all()
        assert float(x.sum()) == 6 * 300 * 40
        assert (place(x), place(y), place(z)) == (1, 0, 0)


def test_a_scalar_is_read_on_its_device():
    s = on(1, A).sum()
    assert float(s) == 21 and handles.is_scalar(s)
    assert float(s + on(0, A)[0, 0]) == 22


def test_a_scalar_that_gpu_code_gets_was_computed(two):
    """CuPy's functions do not wait for the stream of another device."""
    delayed = two.delayed() if two.name == "simulated" else contextlib.nullcontext()
    with delayed, lazyarray.device(1):
        s = on(0, np.ones(300)).sum()
        array = s.__cupy_get_ndarray__()
        assert two.on_current(array) and float((array + 1).get()) == 301


def test_all_that_have_arrays_are_waited_for_and_timed(two):
    x = on(1, np.ones(1 << 20))
    found = lazyarray.benchmark(lambda: np.sqrt(x * 2 + 1), n_repeat=3, n_warmup=1)
    labels = ["GPU-0", "GPU-1"] if two.name == "cuda" else ["simulated:0", "simulated:1"]
    assert found.gpu_times.shape[1] == 3 and found.device.split(", ")[:2] == labels
    assert [line.split()[0] for line in repr(found).splitlines()[2:5]] == ["CPU", *labels]
    if two.name == "simulated":
        with lazyarray.device(1), two.new_stream() as stream:
            y = lazyarray.asarray(np.ones(1000)) + 0
            y._self_storage.fill()
            with lazyarray.device(0):
                assert not stream.done
                lazyarray.device().synchronize()
                assert stream.done


class Matrix:
    """Computes with device arrays that lie where its values do, as a sparse matrix of CuPy's, and can't be moved."""

    __array_ufunc__ = None

    def __init__(self, values):
        self.data = lazyarray.asdevice(on(1, values))

    def __matmul__(self, other):
        if lazyarray.is_lazy(other):
            return NotImplemented
        assert lazyarray.device().on_current(self.data, other)
        return lazyarray.device().xp.matmul(self.data, other)

    def __rmatmul__(self, other):
        assert lazyarray.device().on_current(self.data, other)
        return lazyarray.device().xp.matmul(other, self.data)


@pytest.fixture
def matrix(monkeypatch, two):
    from lazyarray.array import operators

    monkeypatch.setattr(two, "computes_with", lambda kind: kind is Matrix, raising=False)
    operators.whose_turn.cache_clear()
    yield Matrix(A)
    monkeypatch.undo()
    operators.whose_turn.cache_clear()


def test_what_comes_to_a_partner_is_copied_to_its_device(matrix):
    x = on(0, B)
    with assert_copies(0, 0, peer_copies=2):
        found = matrix @ x.T, x.T @ matrix
    assert [place(one) for one in found] == [1, 1] and place(x) == 0
    assert np.array_equal(found[0], A @ B.T) and np.array_equal(found[1], B.T @ A)


def test_a_function_runs_where_a_partner_lies(matrix):
    product = lazyarray.lazy(lambda one, x: one @ x)
    with lazyarray.device(0):
        found = product(matrix, on(0, np.zeros((3, 100))))
    assert place(found) == 1 and not found.any()


@pytest.mark.parametrize("order", [(1, 0, 2), (0, 2, 1), (2, 1, 0), (0, 1, 2)])
@pytest.mark.parametrize("part", [slice(None), slice(None, None, 2), slice(None, None, -1)])
def test_a_copy_keeps_the_memory_order(order, part):
    values = np.random.default_rng(0).random((4, 6, 8))[:, part].transpose(order)
    x = on(0, np.ascontiguousarray(values.transpose(np.argsort(order)))).transpose(order)
    plain = np.ascontiguousarray(values.transpose(np.argsort(order))).transpose(order)
    y = on(1, np.zeros(plain.size, plain.dtype)).reshape(plain.transpose(np.argsort(order)).shape).transpose(order)
    for found in (x + y, y + x, np.where(y > -1, x, y)):
        assert found.strides == plain.strides and np.array_equal(found, plain)
