"""Some elements of recorded work: the same bits as of the whole, which stays recorded."""
from __future__ import annotations

import threading

import numpy as np
import pytest

import lazyarray
import lazyarray.numpy as xnp
from lazyarray.graph.node import lock
from lazyarray.graph.sampling import sampled
from lazyarray.graph.waiting import compute_all, waiting

RNG = np.random.default_rng(5)
A, B = RNG.normal(size=(60, 50)), RNG.normal(size=(60, 50)).astype("f4")
ROW, COLUMN = RNG.normal(size=50), RNG.normal(size=(60, 1))

#: Of lazy arrays of A, B, ROW and COLUMN -> (work, whether all that it reads can be picked from).
WORK = {
    "a chain": (lambda a, b, r, c: np.sqrt(a * a + 1) - b, True),
    "broadcast": (lambda a, b, r, c: (a * r + c) / (b * 2 + 3), True),
    "views": (lambda a, b, r, c: a[::-1] * 2 - a[:, ::-1], True),
    "transposed": (lambda a, b, r, c: (a.T * 2)[::-1].T, False),
    "Fortran order": (lambda a, b, r, c: np.exp(a.copy("F") * 0.5) + 1, True),
    "mixed orders": (lambda a, b, r, c: a.copy("F") * 2 + b, True),
    "where": (lambda a, b, r, c: np.where(a > 0, a, -1), True),
    "casts": (lambda a, b, r, c: (a * 10).astype("i2") % 7 + b.astype(complex) * 1j, True),
    "shared": (lambda a, b, r, c: (s := a * 2) * s + s, True),
    "a view of work": (lambda a, b, r, c: (a * 2 + 1)[::2], None),
    "reshaped work": (lambda a, b, r, c: (a * 2).reshape(50, 60) + 1, False),
    "places": (lambda a, b, r, c: xnp.arange(3000.0).reshape(60, 50) * a, False),
    "a scalar": (lambda a, b, r, c: a * a.sum() + a.max(), True),
}


@pytest.mark.together
@pytest.mark.parametrize("name", WORK)
def test_displays_show_the_values_of_the_work(name):
    work, possible = WORK[name]
    lazy = [lazyarray.asarray(x) for x in (A, B, ROW, COLUMN)]
    x = work(*lazy)
    pending = x._self_storage.pending is not None
    with np.printoptions(threshold=100, precision=17):
        shown = repr(x), str(x)
    if possible:
        assert pending and x._self_storage.pending is not None
        picked = lazyarray.asnumpy(sampled(x._self_storage.pending, lambda array: array[1:3]))
    elif possible is False and pending:
        assert x._self_storage.pending is None, "computed, since that is quicker than to find out more"
    values = np.asarray(x)      # by one kernel: the functions that made what was shown round alike
    with np.printoptions(threshold=100, precision=17):
        assert shown == (repr(values), str(values))
    if possible:
        assert np.array_equal(picked, values[1:3]) and picked.dtype == values.dtype
    want = work(A, B, ROW, COLUMN)
    assert values.dtype == want.dtype
    np.testing.assert_allclose(values, want, rtol=1e-12)    # another library's exp, and order of a sum


def test_what_was_computed_meanwhile_is_read():
    a = lazyarray.asarray(A)
    s = a * 2
    x = s + 1
    s._self_storage.fill()
    with np.printoptions(threshold=10):
        assert repr(x) == repr(A * 2 + 1)


def test_a_write_to_an_operand_comes_after():
    a = lazyarray.asarray(A)
    x = a * 2
    shown = repr(x)
    a[...] = 0
    assert repr(x) == shown and not np.asarray(a).any()


def test_other_threads_compute_and_display():
    """No thread sees anything but the values, whoever is first."""
    failed = []
    a = lazyarray.asarray(A)
    for _ in range(30):
        x = np.sqrt(a * a + 1) * 3
        want = repr(np.sqrt(A * A + 1) * 3)

        def show(x=x, want=want):
            if repr(x) != want:
                failed.append(repr(x))

        threads = [threading.Thread(target=show) for _ in range(3)] + [threading.Thread(target=compute_all)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failed


class TestWaiting:
    def test_all_that_waits_is_known_and_no_more(self):
        compute_all()
        a = lazyarray.asarray(A)
        held = [a + i for i in range(1000)]
        for i in range(1000):
            a - i       # nobody holds it
        found = waiting()
        assert {id(s) for s in found} == {id(x._self_storage) for x in held}
        held[0]._self_storage.fill()
        assert len(waiting()) == 999
        del found, held[:500]
        assert len(waiting()) == 500
        compute_all()
        assert not waiting() and np.array_equal(np.asarray(held[-1]), A + 999)

    def test_another_threads_work_is_known(self):
        made = []
        thread = threading.Thread(target=lambda: made.append(lazyarray.asarray(A) * 2))
        thread.start()
        thread.join()
        assert made[0]._self_storage in waiting()

    def test_a_thread_that_records_meanwhile(self):
        stop, made = threading.Event(), []

        def record():
            a = lazyarray.asarray(A)
            while not stop.is_set():
                made.append(a + len(made))
                if len(made) > 3000:
                    break

        thread = threading.Thread(target=record)
        thread.start()
        for _ in range(50):
            compute_all()
        stop.set()
        thread.join()
        compute_all()
        assert not waiting() and all(x._self_storage.state == "device" for x in made)
        assert lock.acquire(blocking=False) is True
        lock.release()
