"""What is recorded besides operators on arrays of one dtype: casts, functions that are no ufuncs, work in place."""
from __future__ import annotations

import itertools
import operator
import sys

import numpy as np
import pytest
from recorded import base, close, kernels, lazies, pending, same

import lazyarray

DTYPES = ["?", "i1", "u1", "i2", "i4", "i8", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
if lazyarray.device().name == "cuda":       # the library compiles a kernel for each: `test_cuda_steps` has all of them
    DTYPES = ["?", "i1", "i4", "u8", "f2", "f4", "c8"]
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::lazyarray.HostFallbackWarning")


def values(dtype, shape=(3, 4)):
    dtype = np.dtype(dtype)
    found = (np.arange(np.prod(shape)).reshape(shape) % 7 + 1).astype(dtype)
    return found - dtype.type(3) if dtype.kind in "if" else found


class TestCasts:
    @pytest.mark.together
    @pytest.mark.parametrize("one,two", [*itertools.combinations_with_replacement(DTYPES, 2)])
    def test_two_dtypes(self, one, two):
        a, b = values(one), values(two)
        x, y = lazies(a, b)
        for ufunc in (np.add, np.multiply, np.less, np.equal, np.maximum, np.true_divide, np.logical_or):
            for p, q, r, s in ((a, b, x, y), (b, a, y, x), (a, b[1], x, y[1]), (a, b.T[:3, :1], x, y.T[:3, :1])):
                expected = ufunc(p, q)
                found = ufunc(r, s)
                mixed_64 = two == "u8" and one[0] == "i" and ufunc in (np.less, np.equal)      # compared by value
                complex_logical = ufunc is np.logical_or and two[0] == "c"
                assert pending(found) or mixed_64 or complex_logical
                assert same(found, expected)

    @pytest.mark.parametrize("number", [2, -3, 2.5, 1j, True, np.float32(1.5), np.int64(3), np.bool_(True),
                                        np.float64(2)])
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_numbers(self, dtype, number):
        a = values(dtype)
        x, = lazies(a)
        for op in (operator.add, operator.mul, operator.truediv, operator.gt, operator.eq):
            for flip in (False, True):
                def call(v, op=op, flip=flip):
                    return op(number, v) if flip else op(v, number)
                try:
                    expected = call(a)
                except (TypeError, OverflowError) as error:
                    with pytest.raises(type(error)):
                        call(x)
                    continue
                found = call(x)
                assert same(found, expected)

    @pytest.mark.together
    def test_a_chain_of_several_dtypes_is_one_kernel(self):
        a, b, c = base(dtype="f4"), base(dtype="i4"), base() > 5
        x, y, z = lazies(a, b, c)
        with kernels() as found:
            result = (x * y + z) * 0.5 - (y > 3)
            assert pending(result) and not found
            assert same(result, (a * b + c) * 0.5 - (b > 3))
        assert len(found) == 1 and len(found[0].outputs) == 1 and len(found[0].inputs) == 5

    def test_host_arrays_are_copied_once_and_join_in(self):
        x, a, host = lazies(base((4, 6)))[0], base((4, 6)), np.arange(6, dtype="i4")
        calls = [lambda v: (v + 1) * host - v, lambda v: host / v, lambda v: np.where(v > 3, host, v) * 2,
                 lambda v: v.clip(host, 9) + 1, lambda v: v * np.float64(2) + np.array(3), lambda v: v.T * a.T,
                 lambda v: np.power(v, host)]
        for call in calls:
            with lazyarray.trace() as told, kernels() as found:
                result = call(x)
                assert pending(result) and not found
            assert len([event for event in told.events if event.kind == "upload"]) <= 1
            assert close(result, call(a))
        before = x * host
        host[:] = 0
        assert same(before, a * np.arange(6))
        with lazyarray.no_transfers(), pytest.raises(lazyarray.TransferError):
            x * host
        with pytest.raises(ValueError, match="broadcast"):
            x * np.ones(5)

    def test_a_number_beyond_the_dtype(self):
        x, = lazies(base(dtype="i4"))
        with pytest.raises(OverflowError):
            x + 2**40
        assert same(x < 2**40, base(dtype="i4") < 2**40)
        assert same(np.uint8(3) + x, np.uint8(3) + base(dtype="i4"))

    @pytest.mark.parametrize("ufunc", [np.less, np.not_equal])
    @pytest.mark.parametrize("lazily", [False, True])
    def test_a_comparison_with_a_number_beyond_the_dtype_writes_to_its_output(self, ufunc, lazily):
        plain = base((4, 6), "u1")
        x, chosen = lazies(plain, plain > 9)
        for dtype in (bool, float):
            given = np.full((2, 4, 6), 5).astype(dtype)
            out = lazyarray.asarray(given) if lazily else given.copy()
            assert ufunc(x, 300, out=out) is out and ufunc(-1, x, out=out) is out
            assert np.array_equal(np.asarray(out), ufunc(-1, plain, out=given.copy()))
            assert ufunc(x, -1, out=out, where=chosen) is out
            assert np.array_equal(np.asarray(out), np.where(plain > 9, ufunc(plain, -1), ufunc(-1, plain)) + given * 0)
        with pytest.raises(ValueError, match="broadcast"):
            ufunc(x, 300, out=np.zeros(6, bool))
        with pytest.raises(TypeError):
            ufunc(x, 300, out=np.zeros((4, 6), "M8[s]"))
        assert ufunc(x, 300, order="F").flags.f_contiguous

    @pytest.mark.parametrize("target", DTYPES)
    @pytest.mark.parametrize("source", DTYPES)
    def test_astype(self, source, target):
        if source[0] == "c" != target[0]:
            x, = lazies(values(source))
            if target != "?":
                with pytest.warns(np.exceptions.ComplexWarning):
                    assert same((x * 1).astype(target), (values(source) * 1).real.astype(target))
            return
        # What a negative float is as an unsigned integer, C leaves open.
        plain = abs(values(source)) if target[0] == "u" else values(source)
        x, = lazies(plain)
        found = (x + x).astype(target)
        assert pending(found)
        assert same(found, (plain + plain).astype(target))
        assert pending(x.astype(target))
        for order in "KCFA":
            for view in (lambda v: v, lambda v: v.T, lambda v: v[1:, ::2], lambda v: v[::-1], np.ravel):
                assert same(view(x).astype(target, order=order), view(plain).astype(target, order=order))
                assert same(view(x + x).astype(target, order=order), view(plain + plain).astype(target, order=order))
        assert same(np.astype(x, target), plain.astype(target))

    def test_astype_is_a_copy(self):
        x = lazies(base())[0] + 1
        y = x.astype(float)
        x += 1
        assert y[0] == 2 and x[0] == 3
        assert x.astype(float, copy=False) is x


class TestUfuncs:
    @pytest.mark.parametrize("ufunc", [np.floor_divide, np.remainder, np.fmod, np.power, np.left_shift, np.right_shift,
                                       np.logical_and, np.logical_xor, np.arctan2, np.copysign, np.hypot, np.gcd,
                                       np.greater_equal, np.not_equal, np.divide, np.bitwise_and, np.fmax])
    @pytest.mark.parametrize("dtype", ["i4", "i8", "u1", "f2", "f4", "f8", "c16"])
    def test_two_operands(self, ufunc, dtype):
        a, b = values(dtype), values(dtype)[::-1]
        if dtype[0] == "i" and ufunc is np.power:
            b = abs(b)
        x, y = lazies(a, b)
        for p, q, r, s in ((a, b, x, y), (a, 2, x, 2), (a, -2, x, -2), (3, b, 3, y), (a, 70, x, 70)):
            try:
                expected = ufunc(p, q)
            except (TypeError, ValueError, OverflowError) as error:
                with pytest.raises(type(error)):
                    ufunc(r, s)
                continue
            found = ufunc(r, s)
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6 if dtype != "f2" else 1e-2)
            assert (found.dtype, found.strides) == (expected.dtype, expected.strides)

    def test_what_waits(self):
        x, n = lazies(base(), base(dtype="i4"))
        for made in (x // 2, x % 3, x ** 2, x ** 1.5, n ** 2, n << 1, n >> 1, x <= 3, (x > 2) & (x < 5), ~(x > 1),
                     np.logical_not(x), x != 2, np.fmod(x, 2), n // 3, n % 3, np.hypot(x, 3), np.sign(x), np.isnan(x)):
            assert pending(made)

    def test_what_depends_on_values_does_not(self):
        n, = lazies(base(dtype="i4"))
        assert not pending(n ** n)
        with pytest.raises(ValueError, match="negative integer powers"):
            n ** -n
        with pytest.raises(ValueError, match="negative integer powers"):
            n ** -1

    @pytest.mark.parametrize("dtype", ["i4", "u2", "f2", "f4", "f8"])
    def test_squares(self, dtype):
        x, = lazies(values(dtype))
        for two in (2, 2.0, np.float64(2), np.int8(2), True):
            with lazyarray.options(defer_from=None):
                expected = x ** two
            with kernels() as found:
                assert same(x ** two, np.asarray(expected))
            assert two is True or [s.name for p in found for s, _ in p.steps][-1] == "square"
            assert close(expected, values(dtype) ** two)

    @pytest.mark.parametrize("power", [2, -1, 0.5, 2.0, 3, 0, 1, True, 1j, np.int64(2)])
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_powers(self, dtype, power):
        for a in (values(dtype), abs(values(dtype))):
            x, = lazies(a)
            try:
                expected = a ** power
            except (ValueError, OverflowError) as error:
                with pytest.raises(type(error), match=str(error)):
                    x ** power
                continue
            assert close(x ** power, expected)

    def test_divisions_of_floats_are_numpys(self):
        numbers = np.array([0.0, -0.0, 1, -1, 0.1, 3, -7.5, np.inf, -np.inf, np.nan, 1e300, 5e-324])
        a, b = (v.ravel() for v in np.meshgrid(numbers, numbers))
        x, y = lazies(a, b)
        for op in (operator.floordiv, operator.mod):
            assert same(op(x, y), op(a, b))
            assert np.array_equal(np.signbit(np.asarray(op(x, y))), np.signbit(op(a, b)))


CHOICES = {
    "arrays": lambda x, y: np.where(x > 3, x, y), "numbers": lambda x, y: np.where(x > 3, 1, 0),
    "a row": lambda x, y: np.where(x > 3, y[0], x), "a number": lambda x, y: np.where(x > 3, x, 0.0),
    "no bool": lambda x, y: np.where(x, y, 1), "transposed": lambda x, y: np.where((x > 3).T, x.T, y.T),
    "a NumPy number": lambda x, y: np.where(x < 3, np.float32(2), y), "bool": lambda x, y: np.where(x > 3, True, y),
    "a column": lambda x, y: np.where(x[:, :1] > 2, x, y[0]), "nested": lambda x, y: np.where(
        x > 3, np.where(y > 2, x, -1), y),
}
CLIPS = {
    "numbers": lambda x, y: np.clip(x, 2, 5), "low": lambda x, y: np.clip(x, 2, None),
    "high": lambda x, y: x.clip(max=4), "method": lambda x, y: x.clip(1, 3), "arrays": lambda x, y: np.clip(x, y, 6),
    "named": lambda x, y: np.clip(x, min=1, max=y), "turned": lambda x, y: x.clip(4, 2),
    "a row": lambda x, y: x.clip(y[0], y[1]), "floats": lambda x, y: x.clip(1.5, 3.5),
    "transposed": lambda x, y: x.T.clip(1, y.T), "another order": lambda x, y: x.clip(y[::-1], y.T[:1, :1]),
}
ROUNDS = {
    "plain": lambda x, y: np.round(x / 7), "two": lambda x, y: (x / 7).round(2), "whole": lambda x, y: x.round(),
    "tens": lambda x, y: (x * 7.3).round(-1), "named": lambda x, y: np.around(x / 7, decimals=1),
    "view": lambda x, y: np.round(x[::2].T / 3, 1),
}


class TestFunctions:
    @pytest.mark.parametrize("call", [*CHOICES.values(), *CLIPS.values(), *ROUNDS.values()],
                             ids=[*CHOICES, *(f"clip {n}" for n in CLIPS), *(f"round {n}" for n in ROUNDS)])
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_as_numpy(self, call, dtype):
        a, b = values(dtype), values(dtype)[::-1] * values(dtype)[1]
        x, y = lazies(a, b)
        for lazy, plain in (((x, y), (a, b)), ((x * 1, y * 1), (a * 1, b * 1)), ((x + y, y), (a + b, b))):
            try:
                expected = call(*plain)
            except (TypeError, OverflowError, np.exceptions.ComplexWarning) as error:
                with pytest.raises(type(error)):
                    call(*lazy)
                continue
            assert same(call(*lazy), expected)

    @pytest.mark.together
    @pytest.mark.parametrize("call", [*CHOICES.values(), *CLIPS.values(), *ROUNDS.values()],
                             ids=[*CHOICES, *(f"clip {n}" for n in CLIPS), *(f"round {n}" for n in ROUNDS)])
    def test_is_recorded(self, call):
        x, y = lazies(base((4, 6)), base((4, 6)) * 2)
        with kernels() as found:
            result = call(x, y) + 1
            assert pending(result) and not found
            assert same(result, call(base((4, 6)), base((4, 6)) * 2) + 1)
        assert len(found) == 1 + (call is CHOICES["a column"])      # the column is computed once, not for each row

    def test_nan(self):
        a = np.array([np.nan, 1, np.inf, -np.inf, -0.0, 5])
        x, = lazies(a)
        for call in (lambda v: np.clip(v, -1, 2), lambda v: np.clip(v, np.nan, 2), lambda v: np.clip(v, v[::-1], 1),
                     lambda v: np.where(v, 1, 2), lambda v: np.where(np.isnan(v), 0, v), np.round,
                     lambda v: v.round(3)):
            assert same(call(x), call(a))
            assert np.array_equal(np.signbit(np.asarray(call(x))), np.signbit(call(a)))

    def test_mistakes_are_numpys(self):
        x, = lazies(base((4, 6)))
        for call in (lambda v: np.clip(v, 1, 2, min=3), lambda v: np.clip(v, 1, 2, lowest=3),
                     lambda v: np.where(v, v), lambda v: np.where(v, v, v, v), lambda v: np.round(v, "2"),
                     lambda v: np.where(v, v[:2], v), lambda v: v.clip(np.ones(7), 1), lambda v: v.round(1, 2)):
            with pytest.raises((TypeError, ValueError)) as expected:
                call(base((4, 6)))
            with pytest.raises(expected.type) as found:
                call(x)
            assert str(found.value) == str(expected.value)

    def test_out(self):
        x, = lazies(base())
        target = lazyarray.asarray(np.zeros(24))
        assert np.clip(x, 2, 5, out=target) is target and target[0] == 2
        assert np.round(x / 7, 1, target) is target and target[0] == 0.1


IN_PLACE = {
    "add": (operator.iadd, 2), "multiply": (operator.imul, 3), "subtract": (operator.isub, 0.5),
    "power": (operator.ipow, 2), "floor": (operator.ifloordiv, 2), "divide": (operator.itruediv, 4),
}


def same_values(one, other):
    return np.array_equal(np.asarray(one), np.asarray(other))


class TestInPlace:
    @pytest.mark.parametrize("op,number", IN_PLACE.values(), ids=IN_PLACE)
    @pytest.mark.parametrize("dtype", ["i4", "f2", "f4", "f8", "c16"])
    def test_as_numpy(self, op, number, dtype):
        for layout in (lambda v: v, lambda v: v.T, lambda v: v[::2]):
            for other in (lambda v: number, lambda v: v, lambda v: v[:1], lambda v: v * 2, lambda v: v.astype("f8")):
                a = values(dtype)
                x, = lazies(a)
                a, x = layout(a) * 1, layout(x) * 1
                try:
                    op(a, other(a))
                except (TypeError, ValueError) as error:
                    with pytest.raises(type(error)):
                        op(x, other(x))
                    continue
                held = x
                x = op(x, other(x))
                assert held is x
                assert (close if op is operator.ipow else same)(x, a)

    @pytest.mark.one_device("what waits is written in place")
    def test_a_chain_is_one_kernel(self):
        a, b = base(dtype="f4"), base(dtype="f4") + 1
        x, y = lazies(a, b)
        with kernels() as found:
            z = x * 2
            z += y
            z *= x
            z -= 1.5
            np.sqrt(z, out=z)
            assert pending(z) and not found
            assert same(z, np.sqrt((a * 2 + b) * a - np.float32(1.5)))
        assert [(len(p.steps), len(p.outputs)) for p in found] == [(5, 1)]

    @pytest.mark.one_device("what waits is written in place")
    def test_what_was_computed_takes_what_waits(self):
        a = base()
        x, = lazies(a)
        with kernels() as found:
            before = x - 1
            x += x * 2
            after = x + 1
            assert pending(x) and not found
            assert same(after, a * 3 + 1) and same(x, a * 3) and same(before, a - 1)
        assert len(found) == 2

    @pytest.mark.parametrize("look", [
        lambda x: x[2:4], lambda x: x.T, lambda x: x[...], lambda x: x.reshape(4, 6), np.asarray,
        lambda x: lazyarray.asdevice(x), lambda x: x.view("i8"), lambda x: x.flat,
        *[memoryview] * (sys.version_info >= (3, 12)),      # before, Python's classes had no buffers to give
    ])
    @pytest.mark.parametrize("made", ["computed", "pending"])
    def test_whoever_looks_sees_it(self, look, made):
        a = base()
        x, = lazies(a)
        if made == "pending":
            x, a = x * 2, a * 2
        seen, plain = look(x), look(a) if look not in (np.asarray,) else a
        if hasattr(seen, "_self_storage"):
            np.asarray(seen)
        x += x * 1
        a += a * 1
        assert same(x, a)
        if isinstance(seen, memoryview):
            assert seen[3] == a[3]
        elif not hasattr(seen, "_self_storage") and isinstance(seen, lazyarray.device().array_type):
            assert np.array_equal(np.asarray(lazyarray.asarray(seen)), a)
        elif isinstance(seen, np.ndarray):
            assert np.array_equal(np.asarray(seen), a if plain is a or not isinstance(plain, np.ndarray) else plain)
        else:
            assert seen[3] == a[3]
        x[3] = 77
        assert x[3] == 77

    @pytest.mark.parametrize("view", [lambda v: v[1:], lambda v: v.T, lambda v: v[::-1, ::2], lambda v: v[:, 1],
                                      lambda v: v.reshape(-1)[3:7]])
    def test_views_are_written(self, view):
        for dtype in ("f4", "i4", "f8"):
            a = values(dtype)
            x, = lazies(a)
            for other in (lambda v: v * 2, lambda v: view(v) + 1, lambda v: view(v) * view(v)[:1]):
                plain, lazy = view(a), view(x)
                before = x + 0
                try:
                    plain += other(a) if other(a).shape == plain.shape else other(a).ravel()[:1]
                except TypeError:
                    continue
                lazy += other(x) if other(x).shape == lazy.shape else other(x).ravel()[:1]
                assert same(x, a) and not same_values(before, x)
            narrow, wide = view(a.astype("f4")), view(x.astype("f4"))
            np.multiply(view(a), 0.1, out=narrow, casting="same_kind"), np.multiply(view(x) * 1, 0.1, out=wide)
            assert same(wide * 1, narrow * 1)

    def test_read_only(self):
        x = lazies(base())[0] * 1
        x.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            x += x * 2

    def test_what_was_recorded_before_reads_what_was_there(self):
        x, a = lazies(base())[0], base()
        one, two = x * 2, x.reshape(4, 6).T + 1
        x += one
        three = x * 2
        x *= one
        assert same(two, a.reshape(4, 6).T + 1)
        assert same(one, a * 2) and same(three, a * 6) and same(x, a * 3 * a * 2)

    @pytest.mark.one_device("what waits is written in place")
    def test_a_target_that_is_no_operand(self):
        x, y, a = *lazies(base(), base()), base()
        assert np.add(x * 2, 1, out=y) is y
        assert pending(y) and same(y, a * 2 + 1)
        target = lazies(np.zeros(24, "f4"))[0]
        np.add(x * 2, 1, out=target)
        assert same(target, (a * 2 + 1).astype("f4"))
        with pytest.raises(TypeError):
            np.add(x * 2, 1, out=lazies(np.zeros(24, "i4"))[0])
        with pytest.raises(ValueError):
            np.add(x * 2, 1, out=lazies(np.zeros(23))[0])
