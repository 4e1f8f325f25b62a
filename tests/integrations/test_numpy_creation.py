"""Arrays that a program makes by `numpy.zeros` and its like while "numpy" is enabled."""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import lazyarray
from lazyarray.integrations.numpy_creation import LARGE, NAMES, Creator
from lazyarray.storage import transfer

N = LARGE // 8
H = np.arange(float(N))
F = np.asfortranarray(np.ones((4, N), np.float32))


def cleared(x):
    """What was in its memory before may be NaN."""
    x[...] = 0
    return x


CALLS = {
    "zeros": lambda: np.zeros(N), "zeros of a shape": lambda: np.zeros((8, N), np.int16, "F"),
    "by name": lambda: np.zeros(shape=(N, 8), dtype=bool), "ones": lambda: np.ones(N, dtype=np.complex64),
    "empty": lambda: cleared(np.empty((N,))), "full": lambda: np.full((N, 2), 3),
    "full of a kind": lambda: np.full(2 * N, 2.5, "f4"), "ones_like": lambda: np.ones_like(F),
    "full by name": lambda: np.full(fill_value=np.float32(1.5), shape=2 * N), "zeros_like": lambda: np.zeros_like(H),
    "full_like": lambda: np.full_like(F, 7), "empty_like": lambda: cleared(np.empty_like(F)),
    "another shape": lambda: np.zeros_like(F, shape=(N, 9), dtype=np.uint8, order="C"),
}


@pytest.fixture
def something_sent(monkeypatch):
    monkeypatch.setattr(transfer, "sent", True)


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_large_arrays_are_lazy_and_the_same(call, something_sent):
    expected = call()
    with lazyarray.enabled("numpy"):
        found = call()
    assert lazyarray.is_lazy(found) and not lazyarray.is_lazy(expected)
    assert (found.dtype, found.shape, found.strides) == (expected.dtype, expected.shape, expected.strides)
    np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize("call", [
    lambda: np.zeros(N - 1), lambda: np.zeros(N, object), lambda: np.zeros(N, "U5"), lambda: np.zeros(()),
    lambda: np.zeros_like(np.ma.ones(N)), lambda: np.full(3, 1), lambda: np.zeros(N, [("a", float)]),
], ids=["small", "objects", "strings", "0-d", "masked", "full", "records"])
def test_others_are_numpys(call, something_sent):
    with lazyarray.enabled("numpy"):
        found = call()
    assert not lazyarray.is_lazy(found) and type(found) is type(call())


@pytest.mark.parametrize("call", [
    lambda: np.zeros(-1), lambda: np.zeros("x"), lambda: np.zeros(N, "nonsense"), lambda: np.zeros(),
    lambda: np.full(N),
    lambda: np.zeros_like(), lambda: np.zeros(N, order="X"), lambda: np.zeros(N, float, "C", 3),
])
def test_errors_are_numpys(call, something_sent):
    with pytest.raises(Exception) as expected:
        call()
    with lazyarray.enabled("numpy"), pytest.raises(type(expected.value)) as found:
        call()
    assert str(found.value) == str(expected.value)


def test_nothing_changes_before_the_device_is_used(monkeypatch):
    monkeypatch.setattr(transfer, "sent", False)
    with lazyarray.enabled("numpy"):
        assert type(np.zeros(N)) is np.ndarray
        lazyarray.asarray(np.arange(3.0))
        assert lazyarray.is_lazy(np.zeros(N))


def test_outside_a_block_and_in_libraries_they_are_numpys(something_sent):
    with lazyarray.enabled("numpy"):
        assert lazyarray.is_lazy(np.zeros(N))
        assert type(np.tri(1100)) is np.ndarray and type(np.pad(H, 1)) is np.ndarray
        with lazyarray.options(lazy=False):
            assert type(np.zeros(N)) is np.ndarray
        with lazyarray.options(min_bytes=8):
            assert lazyarray.is_lazy(np.zeros(1)) and type(np.zeros(0)) is np.ndarray
    assert type(np.zeros(N)) is np.ndarray


def test_the_functions_are_the_same_to_who_looks_at_them(something_sent):
    lazyarray.disable("numpy")
    originals = {name: getattr(np, name) for name in NAMES}
    lazyarray.enable("numpy")
    try:
        for name, original in originals.items():
            ours = getattr(np, name)
            assert type(ours) is Creator and ours == original and hash(ours) == hash(original) and {original: 1}[ours]
            assert pickle.loads(pickle.dumps(ours)) is ours and ours.__name__ == name and repr(ours) == repr(original)
        x = lazyarray.asarray(np.arange(3.0))
        assert lazyarray.is_lazy(np.zeros(2, like=x)) and lazyarray.is_lazy(np.zeros_like(x))
    finally:
        lazyarray.disable("numpy")
    assert all(getattr(np, name) is original for name, original in originals.items())


def test_results_of_the_device_that_are_put_in_stay_there(something_sent):
    x, expected = lazyarray.asarray(H) + 0, np.zeros((4, N))
    with lazyarray.enabled("numpy"):
        y = np.zeros((4, N))
    with lazyarray.no_transfers():
        for i in range(4):
            y[i] = x * i
        y += 1
    for i in range(4):
        expected[i] = H * i
    np.testing.assert_array_equal(np.asarray(y), expected + 1)


PROGRAM = '''
    import numpy as np
    from numpy import ones
    import scipy.ndimage, lazyarray

    image = np.random.default_rng(0).random((512, 512))
    host = np.zeros((512, 512))                          # before anything is sent: NumPy's own
    smooth = scipy.ndimage.gaussian_filter(image, 2)
    stack, weights = np.zeros((4, 512, 512)), ones(image.shape)
    with lazyarray.trace() as t:
        for i in range(4):
            stack[i] = smooth * i * weights
    print(type(host).__name__, lazyarray.is_lazy(stack), lazyarray.is_lazy(weights))
    print(len(t.materialisations), len(t.uploads), abs(stack.sum() / np.asarray(stack).sum() - 1) < 1e-12)
'''


def test_a_program_that_knows_of_nothing(tmp_path):
    pytest.importorskip("scipy")
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    done = subprocess.run([sys.executable, "-m", "lazyarray", "run", str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["ndarray True True", "0 0 True"]
