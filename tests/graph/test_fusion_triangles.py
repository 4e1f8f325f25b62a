"""``triu`` and ``tril``, recorded: values, forms, and what they are part of."""
from __future__ import annotations

import itertools

import numpy as np
import pytest
from recorded import compiled

import lazyarray

RANDOM = np.random.default_rng(0)
SHAPES = [(3, 4), (4, 3), (1, 1), (2, 3, 4), (2, 2, 3, 3), (2, 0, 3), (7,), (300, 200), (), (70000, 2)]
PLACES = [0, 1, -1, 2, -3, 100, -100, 10**19, True, np.int64(1)]


def forms(array):
    yield array
    yield np.asfortranarray(array)
    yield array[..., ::2]
    yield array.swapaxes(0, -1) if array.ndim else array


def agree(function, array, k):
    try:
        wanted = function(array, k)
    except (ValueError, TypeError, OverflowError) as error:
        with pytest.raises(type(error)):
            function(lazyarray.asarray(array), k)
        return
    for _ in range(2):
        found = function(lazyarray.asarray(array), k)
        assert isinstance(found, lazyarray.LazyNdarray) and found.shape == wanted.shape
        assert found.dtype == wanted.dtype and found.flags.c_contiguous == wanted.flags.c_contiguous
        np.testing.assert_array_equal(np.asarray(found), wanted)


@pytest.mark.filterwarnings("ignore::lazyarray.errors.HostFallbackWarning")
@pytest.mark.parametrize("function", [np.triu, np.tril])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_and_forms(function, shape):
    for kind in "?bHqefdD":
        values = (RANDOM.random(shape) * 10 - 5).astype(kind)
        for k in PLACES:
            agree(function, values, k)
        for form in forms(values) if shape else [values]:
            agree(function, form, 1)


@pytest.mark.together
def test_one_kernel_with_what_is_around():
    plain = RANDOM.random((300, 300))
    for _ in range(3):
        x = lazyarray.asarray(plain)
        whole = np.tril(np.triu(-(x * 2), -5) + 1, 7) * 3
        assert lazyarray.where(whole).side == "pending"
        wanted = np.tril(np.triu(-(plain * 2), -5) + 1, 7) * 3
        for axis in (None, 0, 1):
            np.testing.assert_allclose(np.asarray(whole.sum(axis=axis)), wanted.sum(axis=axis), rtol=1e-10)
        np.testing.assert_array_equal(np.asarray(whole), wanted)
        compiled()


def test_it_is_told_as_it_was_written():
    x = lazyarray.asarray(np.ones((300, 300)))
    told = []
    with lazyarray.options(defer_from=0):
        for y in (np.triu(x * 2), np.tril(x * 2, -3), np.triu(x * 2, 4) + 1):
            text = str(lazyarray.where(y))      # here, where the names are
            told.append(text.split("deferred: ")[1].rsplit(", ", 1)[0])
    assert told == ["triu(x * 2)", "tril(x * 2, -3)", "triu(x * 2, 4) + 1"]


def test_in_place_of_itself():
    plain = RANDOM.random((40, 40))
    x = lazyarray.asarray(plain)
    for k, whole in itertools.product((0, 3), (slice(None), Ellipsis)):
        x[whole] = np.triu(x, k)
        plain[whole] = np.triu(plain, k)
        np.testing.assert_array_equal(np.asarray(x), plain)
