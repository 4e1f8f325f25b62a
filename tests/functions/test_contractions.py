"""Einstein sums by plans of products: values, which texts they are for, and that nothing else is read then."""
from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lazyarray
from lazyarray.functions.adapters.contractions import contractions

LENGTHS = dict(zip("abcdefg", (1, 2, 3, 4, 2, 5, 3)))


def operands(text, dtype="d"):
    random = np.random.default_rng(0)
    terms = text.replace(" ", "").partition("->")[0].split(",")
    found = [random.random([LENGTHS[label] for label in term]) for term in terms]
    return [(x + 1j * x[..., ::-1] if np.dtype(dtype).kind == "c" and x.ndim else x).astype(dtype) for x in found]


def agree(text, arrays, **kwargs):
    wanted = np.einsum(text, *arrays, **kwargs)
    found = np.einsum(text, *map(lazyarray.asarray, arrays), **kwargs)
    assert isinstance(found, (lazyarray.LazyNdarray, lazyarray.LazyScalar))
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    if not kwargs:      # other paths give other orders
        assert getattr(found, "strides", ()) == wanted.strides
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-4 if wanted.dtype.char in "fF" else 1e-12)


PLANNED = ["ab,bc->ac", "ab,bc", "abc,abd->acd", "ab,ab->a", "ab,ab->", "b,c->bc", "b,c->cb", "ab,cd->dbca",
           "ab,abc,abd->bcd", "ab,abc,ac->a", "abc,c->ab", "bca,ca", "a,b,c,d->dcba", ",b->b", "b,->b", "abc,def->f",
           " ab , bc -> ca ", "bcd,cf,d->bf", "fbc,fcd,fde->fbe", "c,c,c->c", "b,b,b->"]


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("text", PLANNED)
def test_values(text, dtype):
    arrays = operands(text, dtype)
    assert contractions(text, tuple([x.ndim for x in arrays])) is not None
    agree(text, arrays)
    agree(text, [x.T.copy().T for x in arrays])
    agree(text, [x[::-1] if x.ndim else x for x in arrays])
    for optimize in (True, "greedy", "optimal"):
        agree(text, arrays, optimize=optimize)


@given(st.lists(st.lists(st.sampled_from("abcdefg"), max_size=4, unique=True), min_size=2, max_size=5), st.randoms())
def test_any_text(terms, random):
    labels = sorted(set().union(*terms))
    output = random.sample(labels, random.randint(0, len(labels)))
    text = ",".join(map("".join, terms)) + random.choice(["", "->" + "".join(output)])
    agree(text, operands(text))
    agree(text, operands(text), optimize=random.choice([True, "greedy", "optimal"]))


def test_several_operands_go_two_by_two(monkeypatch):
    whole = []
    monkeypatch.setattr(lazyarray.device().xp, "einsum", lambda *args, **kwargs: whole.append(args))
    agree("cpi,cij,cpj->p", operands("cge,ceb,cgb->g"), optimize=True)
    assert not whole


@pytest.mark.parametrize(("text", "arrays"), [
    ("aa,ab,bc->c", [np.ones((2, 2)), np.ones((2, 3)), np.ones((3, 2))]),
    ("...a,ab,bc", [np.ones((4, 2)), np.ones((2, 3)), np.ones((3, 2))]),
    ("ab,bc,cd->aad", [np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 2))]),
    ("ab,ab,b->", [np.ones((1, 3)), np.ones((2, 3)), np.ones(3)])])
def test_several_operands_that_are_left_to_numpy(text, arrays):
    try:
        np.einsum(text, *arrays, optimize=True)
    except ValueError as error:
        with pytest.raises(ValueError, match=re.escape(str(error))):
            np.einsum(text, *map(lazyarray.asarray, arrays), optimize=True)
    else:
        agree(text, arrays, optimize=True)


@pytest.mark.parametrize(("text", "ndims"), [
    ("ab", (2,)), ("aa,ab", (2, 2)), ("ab,bc->aac", (2, 2)), ("ab,bc->ad", (2, 2)), ("...a,...ab", (3, 2)),
    ("...a,ab->ab", (2, 2)), ("a,ab->...b", (1, 2)), (". ..a,ab", (2, 2)), ("...a...,ab", (2, 2)), ("...a,ab", (0, 2)),
    ("...,...", (11, 11)), ("ab,b - >a", (2, 1)), ("0a,ab->0b", (2, 2)),
    ("ab,bc", (2, 3)), ("ab,bc", (2, 2, 2)), ("a$,$b", (2, 2)), ("ab,bc->", (1, 2)), ("a1,1b", (2, 2)),
    ("a\u00e9,\u00e9b", (2, 2)), (",".join("a" * 32), (1,) * 32)])
def test_what_is_left_to_the_library(text, ndims):
    assert contractions(text, ndims) is None


@pytest.mark.parametrize("text", [
    "...a,ab", "...ab,bc->...ac", "a...,a...->...", "...ab,...bc", "ab...,bc->...ca", "...,...a", "...ab,...cb->...ac"])
@pytest.mark.parametrize("turned", [False, True])
def test_axes_of_an_ellipsis(text, turned):
    rng = np.random.default_rng(len(text))
    for wide in ((), (3,), (2, 3)):
        arrays = []
        for term in text.partition("->")[0].split(","):
            before, dots, after = term.partition("...")
            lengths = {label: 2 + ord(label) % 5 for label in before + after}
            array = rng.random([*map(lengths.get, before), *(wide if dots else ()), *map(lengths.get, after)])
            arrays.append(np.asfortranarray(array) if turned else array)
        agree(text, arrays)


@pytest.mark.parametrize("shapes", [((1, 3), (2, 3)), ((2, 3), (2, 1)), ((0, 3), (0, 3))])
def test_lengths_that_are_broadcast_and_none(shapes):
    agree("ab,ab->a", [np.ones(shape) for shape in shapes])


def test_lengths_that_do_not_fit():
    with pytest.raises(ValueError):
        np.einsum("ab,bc", lazyarray.asarray(np.ones((2, 3))), lazyarray.asarray(np.ones((2, 3))))


@pytest.mark.parametrize("optimize", [1, 1.0, np.True_, "other"])
def test_values_of_optimize_that_numpy_refuses(optimize):
    x = np.ones((2, 2))
    try:
        np.einsum("ab,bc", x, x, optimize=optimize)
    except (TypeError, KeyError) as error:
        with pytest.raises(type(error)):
            np.einsum("ab,bc", lazyarray.asarray(x), lazyarray.asarray(x), optimize=optimize)


def test_subscripts_of_other_letters():
    x = lazyarray.asarray(np.ones((2, 2)))
    with pytest.raises(ValueError):     # UnicodeEncodeError is one
        np.einsum("a\u00e9,\u00e9b", x, x)


def test_other_dtypes():
    for dtype in ("?", "b", "l", "e"):
        x, y = np.arange(6).reshape(2, 3).astype(dtype), np.arange(12).reshape(3, 4).astype(dtype)
        found = np.einsum("ij,jk", lazyarray.asarray(x), lazyarray.asarray(y))
        wanted = np.einsum("ij,jk", x, y)
        assert found.dtype == wanted.dtype and np.array_equal(found, wanted)
    mixed = np.einsum("ij,jk", lazyarray.asarray(np.ones((2, 3), "f")), lazyarray.asarray(np.ones((3, 2))))
    assert mixed.dtype == float and (np.asarray(mixed) == 3).all()


@pytest.mark.parametrize("text", PLANNED)
def test_the_text_is_read_once(text, monkeypatch):
    arrays = [lazyarray.asarray(x) for x in operands(text)]
    np.einsum(text, *arrays)
    monkeypatch.setattr(lazyarray.device().xp, "einsum", None)
    before = contractions.cache_info().misses
    np.einsum(text, *arrays)
    assert contractions.cache_info().misses == before


@pytest.mark.parametrize("optimize", [True, "greedy", "optimal"])
@pytest.mark.parametrize("single", [False, True])
def test_real_and_complex_operands_in_an_order_of_its_own(optimize, single):
    rng = np.random.default_rng(3)
    operands = rng.random((5, 6, 7)), rng.random(7), rng.random((7, 5)) + 1j * rng.random((7, 5))
    if single:
        operands = [a.astype("F" if a.dtype.kind == "c" else "f") for a in operands]
    expected = np.einsum("mlj,j,jm->ml", *operands, optimize=optimize)
    with lazyarray.trace() as t:
        found = np.einsum("mlj,j,jm->ml", *map(lazyarray.asarray, operands), optimize=optimize)
    assert not t.fallbacks and found.dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4 if single else 1e-12)


@pytest.mark.parametrize("subscripts", ["ij->ij", "ij->ji", "ij", "ji", "ii->i", "...i->i...", "i...->i..."])
def test_a_view_whatever_the_keywords_say(subscripts):
    for kwargs in ({}, {"dtype": "f8"}, {"order": "C"}, {"order": "F"}, {"dtype": "i2", "casting": "unsafe"}):
        x = np.arange(9).reshape(3, 3)
        lazy = lazyarray.asarray(x.copy())
        expected, found = np.einsum(subscripts, x, **kwargs), np.einsum(subscripts, lazy, **kwargs)
        assert (found.dtype, found.shape, found.strides) == (expected.dtype, expected.shape, expected.strides)
        expected[...] = found[...] = 7
        np.testing.assert_array_equal(np.asarray(lazy), x)
    for kwargs in ({"order": "X"}, {"casting": "no idea"}, {"bogus": 1}, {"dtype": "no such"}):
        outcomes = []
        for array in (x, lazy):
            with pytest.raises((TypeError, ValueError)) as caught:
                np.einsum(subscripts, array, **kwargs)
            outcomes.append(caught.type)
        assert outcomes[0] is outcomes[1]
