"""An element that a program reads (``float(x[3])``) is fetched from its array: no kernel copies it before."""
from __future__ import annotations

import threading

import handlers
import numpy as np
import pytest

import lazyarray
from lazyarray import _native

needs_c = pytest.mark.skipif(_native.recording is None, reason="calls in C alone are recorded so")
pytestmark = [needs_c, pytest.mark.one_device("what is recorded is of one device")]


def _element(values, index):
    """An array, and one of its elements, recorded."""
    x = lazyarray.asarray(lazyarray.device().xp.asarray(values)).copy()
    x[index]        # the step is made at the first call of a dtype
    return x, x[index]


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f2", "f8", "c16"])
def test_an_element_is_fetched_from_its_array_without_a_kernel(dtype):
    values = (np.arange(30_000).reshape(100, 300) % 90).astype(dtype)
    x, element = _element(values, (7, 41))
    assert element._self_storage.pending is not None
    with lazyarray.trace() as events:
        found = element.item()
    assert found == values[7, 41].item() and type(found) is type(values[7, 41].item())
    assert [e.nbytes for e in events] == [x.itemsize]
    assert element._self_storage.pending is not None, "nothing was computed"
    x[7, 41] = 1
    assert element.item() == found and np.asarray(element) == values[7, 41] and (element == values[7, 41]).item()


def test_a_handler_writes_to_the_array_while_an_element_is_fetched():
    values, number = np.arange(30_000.0), 0
    while True:
        x, element = _element(values, 7)

        def write(signum, frame, x=x):
            x[7] = -1.0
            x[8:] = 3.0

        at = handlers.At(number, write)
        with at:
            found = float(element)
        assert found == 7.0 and float(element) == 7.0, number
        if not at.ran:
            break
        assert float(x[7]) == -1.0
        number += 1
    assert number > 5


def test_threads_write_to_the_array_while_elements_are_fetched():
    x, stop = lazyarray.asarray(lazyarray.device().xp.asarray(np.zeros(30_000))).copy(), threading.Event()

    def write():
        number = 0.0
        while not stop.is_set():
            number += 1.0
            x[...] = number

    thread = threading.Thread(target=write)
    thread.start()
    try:
        last = 0.0
        for _ in range(300):
            element = x[7]
            found = float(element)
            assert found >= last and float(element) == found
            last = found
    finally:
        stop.set()
        thread.join()
