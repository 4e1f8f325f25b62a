"""``numpy.bincount``: its values and errors are NumPy's, and nobody waits for a range that is known."""
from __future__ import annotations

import numpy as np
import pytest
from outcomes import told

import lazyarray
import lazyarray.numpy as lnp

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True, params=[True, False], ids=["small on the host", "all on the device"])
def place(request):
    with lazyarray.options(small_on_host=request.param):
        yield


@pytest.mark.parametrize("dtype", "?bBhHiIlL")
@pytest.mark.parametrize("size", [0, 1, 50, 3000])
def test_counts(dtype, size):
    rng = np.random.default_rng(size)
    x = rng.integers(0, 2 if dtype == "?" else 100, size).astype(dtype)
    values = rng.random(size)
    for weights in (None, values, *[values.astype(kind) for kind in "fei?D"], values[:-1], list(values)):
        for least in (0, 5, 150, -1, None, np.int64(7), 2.5, np.array(4)):
            expected = told(lambda least=least, weights=weights: np.bincount(x, weights, least))
            given = lazyarray.asarray(weights) if isinstance(weights, np.ndarray) else weights
            found = told(lambda least=least, given=given: np.bincount(lazyarray.asarray(x), given, least))
            if isinstance(expected, type):
                assert found is expected
                continue
            assert type(found) is lazyarray.LazyNdarray and found.dtype == expected.dtype
            np.testing.assert_allclose(np.asarray(found), expected)


@pytest.mark.parametrize("x", [[3, -1, 2], [[1, 2]], 3, [1.5], np.array([1], "u8"), [2**62]])
def test_what_is_no_place(x):
    expected, found = (told(lambda a=a: np.bincount(a)) for a in (np.asarray(x), lazyarray.asarray(np.asarray(x))))
    assert found is expected if isinstance(expected, type) else np.array_equal(found, expected)


def test_a_write_changes_what_is_known():
    x = lazyarray.asarray(np.arange(40_000) % 7)
    assert len(np.bincount(x)) == 7
    x[3] = 11
    assert len(np.bincount(x)) == 12
    np.asarray(x)[5] = 20
    assert len(np.bincount(x)) == 21


def test_one_wait_at_most():
    x = lazyarray.asarray(np.random.default_rng(0).integers(0, 50, 40_000))
    weights = lazyarray.asarray(np.ones(40_000))
    with lazyarray.trace() as t:
        for _ in range(3):
            np.bincount(x, weights)
    assert len(t.synchronisations) <= 1
    with lazyarray.trace() as t:
        np.bincount(lnp.arange(40_000) % 9, minlength=9)
    assert not t.synchronisations
