"""Arithmetic of scalars is recorded as that of arrays is: one kernel, and values of the time when it was asked for."""
from __future__ import annotations

import operator
import pickle

import numpy as np
import pytest

import lazyarray
import lazyarray.numpy as xnp
from lazyarray import _native

pytestmark = [pytest.mark.together, pytest.mark.skipif(_native.recording is None, reason="the part in C records")]
PLAIN = np.linspace(-2, 3, 50)


@pytest.fixture(autouse=True)
def _on_the_device():
    with lazyarray.options(small_on_host=False):
        yield


def pending(s):
    return s._self_storage is not None and s._self_storage.pending is not None


def test_a_chain_is_one_node_after_the_other_until_somebody_asks():
    x = lazyarray.asarray(PLAIN) + 0
    for _ in range(3):      # when many results wait, all of them are computed: it may be this one's turn once
        s = x.sum() / np.dot(x, x) * 2 - 1
        y = x * s + s
        if pending(s):
            break
    assert type(s) is lazyarray.LazyScalar and pending(s) and s.dtype == np.float64 and s.shape == ()
    wanted = PLAIN.sum() / (PLAIN @ PLAIN) * 2 - 1
    with lazyarray.trace() as t:
        assert float(s) == pytest.approx(wanted, rel=1e-13)
    assert len([e for e in t if e.kind == "materialise"]) == 1
    np.testing.assert_allclose(np.asarray(y), PLAIN * wanted + wanted, rtol=1e-12)


def test_it_has_the_values_of_when_it_was_made():
    x = lazyarray.asarray(PLAIN) + 0
    s, first = x.sum() + 1, x[0] * 2
    x[...] = 7
    x += 1
    assert float(s) == pytest.approx(PLAIN.sum() + 1) and float(first) == -4


def test_it_is_stored_into_elements():
    x, kept = lazyarray.asarray(PLAIN) + 0, xnp.zeros(4)
    s = x.sum()
    kept[1], kept[2] = s * 2, np.sqrt(s)
    kept[3] = x[4] * 1
    np.testing.assert_allclose(np.asarray(kept), [0, 2 * PLAIN.sum(), np.sqrt(PLAIN.sum()), PLAIN[4]], rtol=1e-13)


@pytest.mark.parametrize("kind", "bBhilfdFD")
def test_dtypes_are_numpys(kind):
    plain = np.arange(1, 6).astype(kind)
    x = lazyarray.asarray(plain)
    for one, other in ((x.sum(), plain.sum()), (x[2], plain[2])):
        for of in (lambda s: s + 1, lambda s: s * 2.5, lambda s: s / s, lambda s: np.sqrt(s), lambda s: s ** 2,
                   lambda s: -s if kind != "B" else s, lambda s: abs(s), lambda s: s + np.float32(1), lambda s: s * 1j,
                   lambda s: s - 1, lambda s: np.maximum(s, 2)):
            found, wanted = of(one), of(other)
            assert found.dtype == wanted.dtype and found.shape == ()
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6)


def test_comparisons_ask_the_operands():
    s = (lazyarray.asarray(PLAIN) + 0).sum()
    t = s * 2
    assert s < t and not t <= s and (s == s + 0) and bool(t > 3) and {True: 1}[bool(t != s)]


ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
          "!=": operator.ne}
NUMBERS = (2.5, 3, True, np.float64(2.5), np.float64("nan"), np.float32(3), np.int8(3), np.uint64(2), np.bool_(True),
           2j, np.complex64(3), np.array(3.0), np.array(3), float("inf"), 1 << 70)


@pytest.mark.parametrize("compare", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("kind", ["f8", "f4", "i4", "B", "c16"])
def test_comparisons_with_numbers_are_numpys(compare, kind):
    """On both sides, by the operator and the ufunc; nothing is computed for it but the operand."""
    plain = np.arange(3).astype(kind)
    ufunc = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
             "ne": np.not_equal}[compare.__name__]
    for number in NUMBERS:
        for of in (compare, lambda a, b: compare(b, a), ufunc, lambda a, b: ufunc(b, a)):
            wanted, found = None, None
            try:
                wanted = of(plain.sum(dtype=kind), number)
            except (TypeError, OverflowError) as error:
                wanted = type(error)
            scalar = (lazyarray.asarray(plain) + 0).sum(dtype=kind)
            with lazyarray.trace() as seen:
                try:
                    found = of(scalar, number)
                    held = bool(found)
                    again = bool(of(scalar, number))
                except (TypeError, OverflowError) as error:
                    held = again = type(error)
            assert held == again == wanted, (number, of)
            most = 2 if type(number) in (bool, np.ndarray) else 1       # which are asked more
            assert sum(event.kind == "materialise" for event in seen.events) <= most


def test_what_can_not_be_compared_is_an_error_of_the_ufunc_alone():
    s, other = (lazyarray.asarray(PLAIN) + 0).sum(), np.timedelta64(3, "s")
    for compare in (lambda: np.equal(s, other), lambda: np.equal(other, s), lambda: np.less(s, other)):
        with pytest.raises(TypeError):
            compare()
    assert not s == other and s != other


def test_what_is_compared_can_be_computed_with():
    x = lazyarray.asarray(PLAIN) + 0
    s = x.sum()
    for found in (s > np.float64(3), np.float64(3) < s, np.less(3.0, s)):
        with lazyarray.no_transfers():
            taken = xnp.where(found, x, 0)
            both = found & (s > 2)
            count = found + 1
        assert np.array_equal(taken, PLAIN) and bool(both) and int(count) == 2 and type(found) is lazyarray.LazyScalar


def test_what_else_is_done_with_it():
    s = (lazyarray.asarray(PLAIN) + 0).sum() * 1
    wanted = PLAIN.sum() * 1
    for found in (pickle.loads(pickle.dumps(s * 1)), np.asarray(s * 1), s.copy(), (s * 1).item(), complex(s * 1),
                  np.array([s * 1, 2.0])[0], np.stack([s * 1, s])[1], lazyarray.asdevice(s * 1), (s * 1).astype("f8"),
                  xnp.where(s > 0, s * 1, 0), np.add.reduce([s * 1])):
        assert float(np.real(found.get() if hasattr(found, "get") else found)) == pytest.approx(wanted, rel=1e-13)
    assert f"{s * 1:.3f}" == f"{wanted:.3f}" and int(s * 1) == int(wanted) and hash(s * 1) == hash(np.float64(float(s)))
    assert np.isclose(s * 1, wanted) and round(float(s * 1), 6) == round(float(wanted), 6)


def test_arrays_without_dimensions_stay_arrays_where_numpys_do():
    x = lazyarray.asarray(np.array(2.0)) + 0
    one = lazyarray.asarray(np.array(2.0))
    assert type(x) is lazyarray.LazyScalar
    for made in (one.copy(), one.astype("f4"), np.where(one > 1, one, 0), np.positive(one, out=one)):
        assert type(made) is lazyarray.LazyNdarray and made.shape == ()


def test_long_chains_are_cut():
    s = (lazyarray.asarray(PLAIN) + 0).sum()
    plain = PLAIN.sum()
    for _ in range(300):
        s, plain = s * 0.5 + 0.25, plain * 0.5 + 0.25
    assert float(s) == pytest.approx(plain)


def test_products_of_vectors_are_recorded_whatever_was_multiplied_before():
    x = lazyarray.asarray(PLAIN) + 0
    matrix = lazyarray.asarray(np.ones((50, 50))) + 0
    for before in (lambda: None, lambda: matrix @ matrix, lambda: x @ matrix):
        before()
        y = x * 2 + 1
        for product in (lambda: x @ y, lambda: np.matmul(x, y), lambda: np.dot(x, y), lambda: np.vecdot(x, y)):
            y = x * 2 + 1
            found = product()
            if not lazyarray.device().compiles:     # else the kernel may not be there yet
                assert y._self_storage.pending is not None, "what is multiplied is part of the kernel"
            assert float(found) == pytest.approx(PLAIN @ (PLAIN * 2 + 1))


@pytest.mark.parametrize("seen", [lambda a: a, np.transpose, lambda a: a[:, ::2]])
@pytest.mark.parametrize("dtype", [float, complex])
def test_so_is_a_product_of_what_is_seen_as_vectors(seen, dtype):
    a, b = PLAIN.reshape(5, 10).astype(dtype), PLAIN[::-1].reshape(5, 10) * (2 + (3j if dtype is complex else 0))
    x, z = lazyarray.asarray(a), lazyarray.asarray(b)
    for part in (lambda a: seen(a), lambda a: seen(a).T, lambda a: seen(a)[None], lambda a: seen(a)[:1]):
        y = part(z) * 1
        found = np.vdot(part(x), y)
        if not lazyarray.device().compiles:
            assert y._self_storage.pending is not None, "what is multiplied is part of the kernel"
        assert found == pytest.approx(np.vdot(part(a), part(b))) and found.dtype == dtype
    assert np.vdot(seen(x), seen(z).T) == pytest.approx(np.vdot(seen(a), seen(b).T)), "in C order, whatever the shapes"


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("product", [np.vecdot, np.matmul, np.dot, np.inner, np.linalg.vecdot])
def test_products_of_rows_and_of_matrices_are_no_products_of_vectors(product, dtype):
    a, b = PLAIN[:49].reshape(7, 7).astype(dtype), PLAIN[1:].reshape(7, 7) * (2 + (3j if dtype is complex else 0))
    for small in (True, False):
        with lazyarray.options(small_on_host=small):
            x, y = lazyarray.asarray(a) * 1, lazyarray.asarray(b) * 1
            found, wanted = product(x, y), product(a, b)
            assert found.shape == wanted.shape
            np.testing.assert_allclose(np.asarray(found), wanted)
