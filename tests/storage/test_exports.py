"""Device memory that others hold too, and such as was given away: what is computed with it, and when it is ours."""
from __future__ import annotations

import gc

import numpy as np
import pytest
from recorded import kernels, pending

import lazyarray
from lazyarray.storage import exports, foreign_streams
from lazyarray.storage.storage import Storage
from lazyarray.testing import assert_copies

xp = lazyarray.device().xp


@pytest.fixture(autouse=True)
def _no_other_library(monkeypatch):
    """Torch, if another test has imported it, is asked for its stream wherever others hold memory."""
    partners = list(foreign_streams.partners)
    foreign_streams.partners.clear()
    yield
    foreign_streams.partners.extend(partners)


def new(n=12):
    return xp.arange(float(n))


def is_ours(x):
    return not (x._self_storage.loans or x._self_storage.foreign)


class TestDonated:
    @pytest.mark.parametrize("make", [
        new, lambda: new()[2:], lambda: new().reshape(3, 4), lambda: new().reshape(3, 4).T, lambda: new()[::2],
        lambda: new()[1:][2:].reshape(3, 3), lambda: new().astype("f4"), lambda: xp.zeros((0, 3)), lambda: new()[::-1]])
    def test_what_nobody_else_holds_is_ours(self, make):
        expected, strides = make().get(), make().strides
        c = make()
        with assert_copies(uploads=0, materialisations=0):
            x = lazyarray.asarray(c, donate=True)
        assert is_ours(x)
        with assert_copies(uploads=0, materialisations=1 if expected.size else 0):
            np.testing.assert_array_equal(np.asarray(x), expected)
            np.testing.assert_array_equal(np.asarray(x), expected)
        assert x.dtype == expected.dtype and (x.strides == strides or not x.size)

    @pytest.mark.parametrize("view", [lambda c: c[2:], lambda c: c.reshape(3, 4), lambda c: c.view(), lambda c: [c[:1]],
                                      lambda c: lazyarray.asdevice(lazyarray.asarray(c))])
    def test_what_others_have_views_of_is_shared_with_them(self, view):
        c = new()
        kept = view(c)
        x = lazyarray.asarray(c, donate=True)
        assert not is_ours(x)
        assert float(np.asarray(x)[2]) == 2
        one = kept[0] if type(kept) is list else kept
        one[...] = 7
        assert 7 in np.asarray(x) and 8 in (x + 1).tolist()
        x[...] = 1
        assert (one.get() == 1).all()

    def test_a_view_whose_base_is_alive_is_shared(self):
        base = new()
        x = lazyarray.asarray(base[2:5], donate=True)
        base[3] = 50
        assert x.tolist() == [2, 50, 4] and not is_ours(x)

    def test_memory_of_a_lazy_array_stays_its_own(self):
        x = lazyarray.asarray(np.arange(4.0))
        y = lazyarray.asarray(lazyarray.asdevice(x), donate=True)
        y += 1
        assert x.tolist() == [1, 2, 3, 4]

    def test_whatever_else_is_asked_for(self):
        x = lazyarray.asarray(np.arange(4.0))
        assert lazyarray.asarray(x, donate=True) is x
        assert lazyarray.asarray([1, 2], donate=True).tolist() == [1, 2]
        assert lazyarray.asarray(new(), int, donate=True).dtype == int
        copy = lazyarray.asarray(new(), copy=True, donate=True)
        assert is_ours(copy) and copy[3] == 3

    def test_what_comes_after_it_is_deferred(self):
        x = lazyarray.asarray(new(), donate=True)
        assert pending(x + 1) and pending(np.sqrt(x))


class TestHeld:
    @pytest.fixture
    def held(self):
        c = new()
        return c, lazyarray.asarray(c)

    def test_what_reads_it_is_computed_at_once_and_the_rest_deferred(self, held):
        c, x = held
        first = x * 2
        assert not pending(first)
        rest = np.sqrt(first + 1)
        assert pending(rest)
        c[...] = -1
        np.testing.assert_array_equal(np.asarray(rest), np.sqrt(np.arange(12.0) * 2 + 1))
        assert (x + 0).tolist() == [-1] * 12

    @pytest.mark.together
    @pytest.mark.parametrize("call, programs", [
        (lambda x, y: x * y, 1), (lambda x, y: np.where(x > 3, x, y), 2), (lambda x, y: np.abs(x - 3), 1),
        (lambda x, y: y[::2] + x[::2], 1), (lambda x, y: np.sqrt(y * 2) + x, 1)])
    def test_the_device_is_asked_for_kernels_of_ours(self, held, call, programs):
        c, x = held
        y = lazyarray.asarray(np.ones(12))
        with kernels() as asked:
            found = call(x, y)
            c[...] = 100
        assert len(asked) >= programs
        np.testing.assert_array_equal(np.asarray(found), call(np.arange(12.0), np.ones(12)))

    def test_each_statement_sees_what_the_holder_wrote_before(self, held):
        c, x = held
        plain = np.arange(12.0)
        rng = np.random.default_rng(0)
        results = []
        for turn in range(60):
            what = rng.integers(5)
            if what == 0:
                c[turn % 12] = plain[turn % 12] = turn
            elif what == 1:
                results.append((x * 2 + turn, plain * 2 + turn))
            elif what == 2:
                x += 1
                plain += 1
            elif what == 3:
                results.append((np.maximum(x[::3], turn), np.maximum(plain[::3], turn)))
            else:
                assert np.asarray(x).tolist() == plain.tolist()
        for ours, expected in results:
            np.testing.assert_array_equal(np.asarray(ours), expected)

    def test_it_is_ours_once_the_holder_lets_go(self):
        c = new()
        x = lazyarray.asarray(c)
        assert not pending(x + 1)
        del c
        assert pending(x + 1) and is_ours(x)

    def test_a_temporary_that_was_wrapped_is_ours(self):
        x = lazyarray.asarray(new())
        assert pending(x + 1)

    @pytest.mark.together
    def test_pointers_that_ended_are_not_kept(self):
        x = lazyarray.asarray(np.arange(4.0))
        for _ in range(100):
            lazyarray.asdevice(x)
        assert len(x._self_storage.loans) <= 2
        np.asarray(x)
        for n in range(100):
            lazyarray.asdevice(x)[0] = n
        assert len(x._self_storage.loans) <= 3
        assert np.asarray(x)[0] == 99


class TestByAddress:
    def test_of_many_storages_the_right_one_is_found(self):
        device = lazyarray.device()
        arrays = [new(n) for n in range(1, 60)]
        lazies = [lazyarray.asarray(a) for a in arrays]
        order = np.random.default_rng(0).permutation(len(arrays))
        for k in order:
            part = arrays[k][k // 2:]
            storage, offset = exports.find(device, part)
            assert storage is lazies[k]._self_storage and offset == 8 * (k // 2)
            assert type(storage) is Storage
        del lazies[10:20]
        gc.collect()
        assert exports.find(device, arrays[12]) is None and exports.find(device, arrays[5]) is not None

    def test_memory_that_nobody_knows(self):
        assert exports.find(lazyarray.device(), new()) is None


class TestDeviceFunctions:
    """CuPy's ufuncs ask a lazy array whether it computes itself."""

    def test_operands_are_not_lent(self):
        x, y = (lazyarray.asarray(np.arange(4.0)) for _ in range(2))
        found = xp.add(x, y)
        assert isinstance(found, lazyarray.device().array_type) and found.get().tolist() == [0, 2, 4, 6]
        assert is_ours(x) and is_ours(y) and pending(x + 1)

    @pytest.mark.together
    def test_what_is_written_to_is_seen(self):
        x, y = (lazyarray.asarray(np.arange(4.0)) for _ in range(2))
        alias, waiting = np.asarray(y), y + 10
        assert xp.add(x, 1, out=y) is y
        assert alias.tolist() == [1, 2, 3, 4] and waiting.tolist() == [10, 11, 12, 13]
        assert xp.add(x, x, y) is y and y.tolist() == [0, 2, 4, 6] and is_ours(y)

    def test_beside_device_arrays(self):
        x, d = lazyarray.asarray(np.arange(4.0)), xp.ones(4)
        assert xp.add(x, d, out=d) is d and d.get().tolist() == [1, 2, 3, 4]
        d += x
        assert d.get().tolist() == [1, 3, 5, 7] and is_ours(x)
        quotient, rest = xp.divmod(x, 2.0)
        assert quotient.get().tolist() == [0, 0, 1, 1] and rest.get().tolist() == [0, 1, 0, 1]
