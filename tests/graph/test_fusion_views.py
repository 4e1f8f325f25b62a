"""Views among the operands of recorded work: they are read where they lie."""
from __future__ import annotations

import itertools

import numpy as np
import pytest
from recorded import base, kernels, lazies, pending, same

import lazyarray

SHAPE = (4, 6)
VIEWS = {
    "transposed": lambda x: x.T, "inner": lambda x: x[1:-1, 2:], "stepped": lambda x: x[::2, ::3],
    "reversed": lambda x: x[::-1, ::-1], "a row": lambda x: x[1], "a column": lambda x: x[:, 2],
    "new axis": lambda x: x[None, :], "broadcast": lambda x: np.broadcast_to(x[0], SHAPE),
    "raveled": lambda x: x.ravel(), "reshaped": lambda x: x.reshape(8, 3),
    "swapped": lambda x: x.reshape(2, 2, 6).transpose(1, 0, 2),
    "three": lambda x: x.reshape(2, 2, 6).transpose(2, 0, 1), "diagonal": lambda x: np.diagonal(x),
    "squeezed": lambda x: x[:, :1].squeeze(), "windows": lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, 1),
    "one": lambda x: x[1:2, 2:3], "whole": lambda x: x[...], "flat slice": lambda x: x.reshape(-1)[3:11],
}


@pytest.mark.parametrize("made", ["computed", "pending"])
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
class TestEachView:
    def test_alone(self, view, made):
        x, = lazies(base(SHAPE))
        plain = base(SHAPE)
        if made == "pending":
            x, plain = x + 1, plain + 1
        with lazyarray.no_transfers():
            y = view(x) * 2 - 1
        assert pending(y)
        assert same(y, view(plain) * 2 - 1)

    def test_with_another(self, view, made):
        plain = base(SHAPE)
        for other in VIEWS.values():
            x, = lazies(plain)
            y = x + 1 if made == "pending" else x
            try:
                expected = view(plain + (made == "pending")) - other(plain) * 3
            except ValueError:
                with pytest.raises(ValueError):
                    view(y) - other(x) * 3
                continue
            found = view(y) - other(x) * 3
            assert pending(found) or not expected.ndim
            assert same(found, expected)

    def test_the_array_is_overwritten_after(self, view, made):
        for write in (lambda x: x.fill(0), lambda x: x[1].fill(-1), lambda x: np.asarray(x).fill(7)):
            x, = lazies(base(SHAPE))
            plain = base(SHAPE)
            if made == "pending":
                x, plain = x + 1, plain + 1
            y = view(x) * 2
            expected = view(plain) * 2
            write(x), write(plain)
            z = view(x) * 2
            assert same(y, expected)
            assert same(z, view(plain) * 2)
            assert same(x, plain)

    def test_the_view_is_overwritten_after(self, view, made):
        x, = lazies(base(SHAPE))
        plain = base(SHAPE)
        if made == "pending":
            x, plain = x + 1, plain + 1
        y, whole, part = x * 2, plain * 2, view(x)
        if part.flags.writeable:
            part[...] = 5
            view(plain)[...] = 5
        assert same(y, whole)
        assert same(x, plain)


@pytest.mark.one_device("what waits is written in place")
def test_a_stencil_is_one_kernel():
    u, plain = lazies(base((6, 7)))[0], base((6, 7))

    def step(u):
        return (u[1:-1, 2:] + u[1:-1, :-2] + u[2:, 1:-1] + u[:-2, 1:-1] - 4 * u[1:-1, 1:-1]) * 0.1

    with kernels() as found:
        change = step(u)
        assert pending(change)
        u[1:-1, 1:-1] += change
        del change
    expected = plain.copy()
    expected[1:-1, 1:-1] += step(plain)
    assert same(u, expected)
    assert [len(p.steps) for p in found if len(p.steps) > 1] == [7]        # beside what puts it in its place, on CUDA
    u, = lazies(plain)
    with kernels() as found:
        u[1:-1, 1:-1] += step(u)        # what is added is held until it has been
    expected = plain.copy()
    expected[1:-1, 1:-1] += step(plain)
    assert same(u, expected)
    assert [(len(p.steps), len(p.outputs)) for p in found if len(p.steps) > 1] == [(7, 2)]


@pytest.mark.parametrize("view", [lambda x: x.T, lambda x: x.reshape(8, 3), lambda x: x[None], np.ravel,
                                  lambda x: x[...]])
def test_the_whole_of_what_waits_goes_on_waiting(view):
    with kernels() as found:
        y = view(lazies(base(SHAPE))[0] + 1) * 2
        z = view(y) - 1
        assert not found and pending(y)
        del y
        assert same(z, view(view(base(SHAPE) + 1) * 2) - 1)
    assert [(len(p.steps), len(p.outputs), p.ndim) for p in found] == [(3, 1, 0)]


CALLS = {
    "a number behind": lambda x: x * 2, "a number before": lambda x: 7 - x, "one operand": lambda x: -x,
    "a comparison": lambda x: x > 3, "another dtype": lambda x: x / 2, "a cast": lambda x: x * 0.5,
    "a square": lambda x: x ** 2, "a power": lambda x: x ** 3, "itself": lambda x: x + x,
    "of the same form": lambda x: x - x * 2, "of another form": lambda x: x + x[:1],
    "a scalar": lambda x: x * np.int8(3),
    "three": lambda x: np.where(x > 2, x, 1), "a bool": lambda x: x + True,
}


@pytest.mark.parametrize("dtype", ["u1", "i8", "f4", "c16"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.filterwarnings("ignore::lazyarray.HostFallbackWarning")
def test_calls_on_the_whole_of_what_waits(call, dtype):
    plain = base((2, 3, 4), dtype) + 1
    for view in (lambda x: x.T, lambda x: x.reshape(6, 4), lambda x: x.reshape(-1),
                 lambda x: x.reshape(4, 6).T, lambda x: x.transpose(1, 0, 2), lambda x: x.reshape(24, 1)):
        with np.errstate(all="ignore"):
            try:
                expected = call(view(plain))
            except TypeError:
                continue
        waits = lazies(base((2, 3, 4), dtype))[0] + 1
        seen = view(waits)
        found = call(seen)
        waits.fill(0)       # what was recorded read it before
        if call is CALLS["a power"] and dtype == "c16" and lazyarray.device().name == "cuda":     # CUDA's, and libm's
            np.testing.assert_allclose(found, expected, rtol=1e-14)
            expected = np.asarray(found)
        assert same(found, expected)
        assert same(seen, view(np.zeros_like(plain)))


def test_a_number_beyond_the_dtype_is_refused_as_by_numpy():
    x = (lazies(base(SHAPE, "u1"))[0] * 1).T
    with pytest.raises(OverflowError):
        x + 300
    with pytest.raises(OverflowError):
        base(SHAPE, "u1").T + 300
    assert np.array_equal(x < 300, base(SHAPE, "u1").T < 300)


def test_what_was_written_in_place_is_not_assigned_to_itself(monkeypatch):
    device, written = lazyarray.device(), []
    assign = device.assign
    monkeypatch.setattr(device, "assign", lambda target, value: (written.append(value), assign(target, value)))
    x, y = lazies(base(SHAPE), base(SHAPE))
    for index in (np.s_[1:], np.s_[1:-1, ::2], np.s_[...], np.s_[1], np.s_[::-1, None]):
        written.clear()
        x[index] += y[index] * 2
        assert len(written) <= 1
    plain = base(SHAPE)
    for index in (np.s_[1:], np.s_[1:-1, ::2], np.s_[...], np.s_[1], np.s_[::-1, None]):
        plain[index] += base(SHAPE)[index] * 2
    assert same(x, plain)
    x[1:] = x[:-1]
    plain[1:] = plain[:-1]
    assert same(x, plain)


def test_a_view_of_what_waits_and_the_array_itself():
    x = lazies(base(SHAPE))[0] + 1
    t = x.T
    y = t * 2
    x += 1
    assert same(t, (base(SHAPE) + 2).T) and same(y, (base(SHAPE) + 1).T * 2)
    z = x.T + x.T
    x[0] = 0
    assert same(z, (base(SHAPE) + 2).T * 2)


def test_two_orders_in_one_chain():
    c, f = lazies(base((5, 5)), np.asfortranarray(base((5, 5)) * 2))
    plain_c, plain_f = base((5, 5)), np.asfortranarray(base((5, 5)) * 2)
    found = ((c + f) * (f - c.T) + (c * 2).T) * (f + 1)
    assert same(found, ((plain_c + plain_f) * (plain_f - plain_c.T) + (plain_c * 2).T) * (plain_f + 1))


def test_results_take_the_order_of_their_operands():
    plain = base((2, 3, 4))
    for axes in itertools.permutations(range(3)):
        for other in (lambda x: 2, lambda x: x, lambda x: x[:1], lambda x: x[0, 0], lambda x: x[::-1]):
            turned = plain.transpose(axes)
            x = lazies(plain)[0].transpose(axes)
            assert same((x + other(x)) * other(x), (turned + other(turned)) * other(turned))
            x = (lazies(plain)[0] * 1).transpose(axes)
            assert same((x + other(x)) * other(x), (turned + other(turned)) * other(turned))


def test_parts_of_complex_numbers_that_wait():
    plain = base(SHAPE) * (1 + 2j)
    x, = lazies(plain)
    with kernels() as found:
        y = (x * 1j)
        size = y.real * y.real + y.imag * y.imag
        assert pending(size)
        del y
        assert same(size, (plain * 1j).real ** 2 + (plain * 1j).imag ** 2)
    assert [(len(p.steps), len(p.outputs)) for p in found] == [(8, 1)]
    y = x * 1j
    part = y.T.imag + 1
    y.imag = 0
    assert same(part, (plain * 1j).T.imag + 1)
    assert np.array_equal(y, (plain * 1j).real)


def test_a_view_of_another_dtype_is_no_part():
    x = lazies(base(SHAPE, "f4"))[0] * 1
    assert same(x.view("i4") + 1, base(SHAPE, "f4").view("i4") + 1)
    x = lazies(base(SHAPE, "f8"))[0] * 1
    assert same(x.view("f4") + 1, base(SHAPE, "f8").view("f4") + 1)


class TestSeveralDevices:
    @pytest.fixture(autouse=True)
    def two(self):
        device = lazyarray.device()
        if device.name == "simulated":
            with device.with_count(2):
                yield device
        elif device.count < 2:
            pytest.skip("needs two devices")
        else:
            yield device

    @pytest.mark.together
    def test_work_is_done_where_its_operands_are(self, two):
        with two.on(1):
            x, = lazies(base(SHAPE))
            assert two.device_of(lazyarray.asdevice(x)) == 1
            x = lazies(base(SHAPE))[0]
        y = x * 2 + x.T.T[::-1]
        z = np.where(y > 3, y, 0).astype("f4").T * 3
        assert pending(z)
        assert two.device_of(lazyarray.asdevice(z)) == 1
        assert same(y, base(SHAPE) * 2 + base(SHAPE)[::-1])

    def test_operands_on_two_devices_are_not_recorded_together(self, two):
        x, = lazies(base(SHAPE))
        with two.on(1):
            y, = lazies(base(SHAPE) + 1)
        for one, other in ((x, y), (x * 1, y), (x, y * 1), (x * 1, y * 1), (x[1:], y[:-1])):
            with lazyarray.options(defer_from=None):
                expected = np.asarray(one) * np.asarray(other)
            assert np.array_equal(np.asarray(one * other), expected)
            assert np.array_equal(np.asarray(np.where(one > 2, one, other)), np.where(
                np.asarray(one) > 2, np.asarray(one), np.asarray(other)))
