"""How kernels walk their elements: chosen from strides and addresses, without a GPU."""
from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from walks import starts_at_boundaries, walks

from lazyarray.devices.cuda.kernels.elementwise_source import strides_in
from lazyarray.devices.cuda.kernels.launch_plan import VECTOR, Form, collapsed, general, plan, walk_bytes, walk_size
from lazyarray.devices.program import Operand, Program, Step

F4 = np.dtype("f4")


def sum_of(*operands, ndim=2):
    """A sum of operands, each (dtype, mode)."""
    inputs = tuple(Operand(np.dtype(dtype), mode) for dtype, mode in operands)
    steps = tuple((Step("add", None, (F4, F4), F4), (i, i)) for i in range(len(inputs)))
    return Program(inputs, steps, (2 * len(inputs) - 1,), ndim)


def quotient(n, divisor, factor, shift):
    """As a kernel divides."""
    return ((n * factor >> 32) + n) >> shift


@given(st.integers(1, (1 << 31) - 1), st.integers(0, (1 << 31) - 1))
def test_division_by_a_product_is_exact(divisor, n):
    numbers = struct.unpack("=2q3I", walk_bytes([5, divisor], [[0, 0]], False)[:28])
    assert numbers[2] == divisor and 0 <= numbers[3] < 1 << 32
    for m in (n, n // divisor * divisor, max(n // divisor * divisor - 1, 0)):
        assert quotient(m, *numbers[2:]) == m // divisor


def spread(form, found):
    """What was found for those that have a walk of their own, for those that share it too."""
    return {i: found[form.walks[i] if form.walks else i] for i, read in enumerate(form.reads)
            if read not in ("value", "flat")}


def walked(made, count, size):
    """The offset of each element of each strided input, as the kernel of a plan reads them."""
    form, walk, _ = made
    strided = form.walkers
    at = np.arange(size)
    found = {}
    if form.tile:
        numbers = np.frombuffer(walk, "i8").tolist()
        outer, row, rows, columns, down, across = numbers[-6:]
        place = np.indices((size // (rows * columns), rows, columns)).reshape(3, -1)
        order = np.argsort(place[0] * outer + place[1] * row + place[2], kind="stable")
        assert np.array_equal((place[0] * outer + place[1] * row + place[2])[order], at)
        assert made.blocks == size // (rows * columns) * down * across
        height, width, threads = form.tile
        assert height * width == threads * form.units
        assert down * height >= rows > (down - 1) * height and across * width >= columns > (across - 1) * width
        for k, i in enumerate(strided):
            found[i] = (np.array(numbers[3 * k:3 * k + 3]) @ place)[order]
        return spread(form, found)
    assert made.blocks * form.elements >= size > (made.blocks - 1) * form.elements
    strides = np.frombuffer(walk[:8 * len(strided) * form.ndim], "i8").reshape(len(strided), form.ndim)
    rest_of = walk[8 * len(strided) * form.ndim:]
    places = at - at % form.pack if form.pack > 1 else at
    for k, i in enumerate(strided):
        rest, total = places, np.zeros(size, int)
        for axis in range(form.ndim - 1, 0, -1):
            divisor, factor, shift = struct.unpack_from("=3I", rest_of, 12 * (axis - 1))
            q = quotient(rest, divisor, factor, shift)
            total, rest = total + (rest - q * divisor) * strides[k, axis], q
        total = total + rest * strides[k, 0]
        found[i] = total + (at - places) * strides[k, -1]
        if form.reads[i] == "same":
            assert strides[k, -1] == 0
    return spread(form, found)


@pytest.mark.parametrize("case", walks(np, F4))
def test_each_element_is_read_where_it_is(case):
    shape, operands, reads, pack = walks(np, F4)[case]
    program = sum_of(*[(F4, "strided") for _ in operands], (F4, "flat"), ndim=len(shape))
    size = int(np.prod(shape))
    strides = [strides_in(array, shape, False) for array in operands]
    made = plan(program, list(shape) or [1], strides, [*map(starts_at_boundaries, operands), True])
    assert set(made.form.reads[:-1]) == reads and made.form.pack == pack
    assert len(made.walk) == (walk_size(made.form) if made.form.ndim else 0)
    found = walked(made, len(operands), size)
    if made.form.pack > 1:
        for i, offsets in found.items():
            if made.form.reads[i] == "along":
                assert not (offsets[::made.form.pack] % VECTOR).any()
    for i, array in enumerate(operands):
        over = np.broadcast_to(array, shape)
        expected = sum((index * stride for index, stride in zip(np.indices(shape), over.strides)),
                       np.zeros(shape, int)).ravel()
        if made.form.reads[i] == "flat":
            assert np.array_equal(expected, np.arange(size) * array.itemsize)
        else:
            assert np.array_equal(found[i], expected)


def test_what_does_not_begin_at_a_boundary_is_read_element_by_element():
    program = sum_of((F4, "strided"), (F4, "flat"))
    for aligned in ([False, True], [True, False]):
        assert plan(program, [64, 48], [[0, 4]], aligned).form.pack == 1
    assert plan(sum_of((F4, "strided"), (F4, "value")), [64, 48], [[0, 0]], [False, False]).form.pack == 4


def test_indexes_take_64_bits_from_where_they_need_them():
    program = sum_of((F4, "strided"), (F4, "flat"))
    assert not plan(program, [(1 << 31) // 64 - 1, 64], [[0, 4]], [True, True]).form.wide
    wide = plan(program, [(1 << 31) // 64, 64], [[0, 4]], [True, True])
    assert wide.form.wide and len(wide.walk) == 8 * 3
    assert plan(program, [1 << 16, 1 << 15], [[4, 1 << 18]], [True, True]).form.wide


def test_inputs_with_the_same_strides_share_a_walk():
    program = sum_of(*[(F4, "strided")] * 3, (np.dtype("f8"), "strided"), (F4, "flat"))
    one = [400, 4]
    made = plan(program, [64, 47], [one, [400, 8], one, one], [False] * 5)
    assert made.form.walks == (0, 1, 0, 3, 4) and len(made.walk) == 8 * 2 * 3 + 16
    assert made.form.reads == ("along", "any", "along", "any", "flat")


def test_axes_that_all_walk_as_one_are_joined():
    assert collapsed([2, 3, 1, 4], [[48, 16, 9, 4], [0, 0, 0, 0]]) == ([24], [[4], [0]])
    assert collapsed([2, 3, 4], [[48, 16, 4], [0, 16, 4]]) == ([2, 12], [[48, 4], [0, 4]])
    assert collapsed([1, 1], [[8, 4]]) == ([1], [[0]])


def test_the_general_form_takes_a_program_without_axes():
    assert general(sum_of((F4, "strided"), ndim=0), False) == Form(("any",), 1, 1, 8, False)
    assert general(sum_of((F4, "flat"), ndim=2), False) == Form(("flat",), 0, 1, 8, False)
