"""A negative zero keeps its sign: CuPy, which clears memory for whatever equals zero, would lose it."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray
import lazyarray.numpy

WRITTEN = {
    "all": lambda a: a.__setitem__(..., -0.0),
    "one": lambda a: a.__setitem__(1, -0.0),
    "a slice": lambda a: a.__setitem__(slice(1, 2), -0.0),
    "a step": lambda a: a.__setitem__(slice(None, None, 2), -0.0),
    "by a mask": lambda a: a.__setitem__(a > 0, -0.0),
    "by an index": lambda a: a.__setitem__([1, 2], -0.0),
    "fill": lambda a: a.fill(-0.0),
    "flat": lambda a: a.flat.__setitem__(1, -0.0),
    "real": lambda a: setattr(a, "real", -0.0),
    "copyto": lambda a: np.copyto(a, -0.0),
    "copyto where": lambda a: np.copyto(a, -0.0, where=a > 0),
    "put": lambda a: np.put(a, [1], -0.0),
    "putmask": lambda a: np.putmask(a, a > 0, -0.0),
    "place": lambda a: np.place(a, a > 0, [-0.0]),
    "fill_diagonal": lambda a: np.fill_diagonal(a.reshape(2, 2), -0.0),
    "subtract.at": lambda a: np.subtract.at(a, [3], -0.0),
}

MADE = {
    "full_like": lambda a: np.full_like(a, -0.0),
    "pad": lambda a: np.pad(a, 1, constant_values=-0.0),
    "where": lambda a: np.where(a > 5, 1.0, -0.0),
    "where, array": lambda a: np.where(a > 5, a, -0.0),
    "select": lambda a: np.select([a > 5], [a], -0.0),
    "choose": lambda a: np.choose([0, 0, 1, 1], [a, -0.0]),
    "piecewise": lambda a: np.piecewise(a, [a > 0], [-0.0, 1]),
    "nan_to_num": lambda a: np.nan_to_num(a * np.nan, nan=-0.0),
    "append": lambda a: np.append(a, -0.0),
    "insert": lambda a: np.insert(a, 1, -0.0),
    "diff": lambda a: np.diff(a, prepend=-0.0),
    "ediff1d": lambda a: np.ediff1d(a, to_end=-0.0),
    "interp": lambda a: np.interp(a + 9, a.cumsum(), a, right=-0.0),
    "clip": lambda a: np.clip(a, -3, -0.0),
    "max of nothing": lambda a: np.max(a[:0], initial=-0.0),
    "copysign": lambda a: np.copysign(a, -0.0),
    "divide": lambda a: np.divide(a, -0.0),
    "floor_divide": lambda a: np.floor_divide(-0.0, a),
    "mod": lambda a: np.mod(-0.0, a),
    "arctan2": lambda a: np.arctan2(-0.0, -a),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("write", WRITTEN.values(), ids=WRITTEN)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c16"])
def test_written(write, dtype):
    plain = np.array([1, 1, 1, -0.0]).astype(dtype)
    x = lazyarray.asarray(plain)
    write(x)
    write(plain)
    assert np.asarray(x).tobytes() == plain.tobytes()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_made(make, dtype):
    plain = np.array([1, 1, 1, 2], dtype)
    got, wanted = np.asarray(make(lazyarray.asarray(plain))), np.asarray(make(plain))
    assert got.dtype == wanted.dtype and np.signbit(got).tolist() == np.signbit(wanted).tolist()


@pytest.mark.parametrize("value", [-0.0, np.float32(-0.0), complex(-0.0, -0.0), complex(0, -0.0), complex(-0.0, 0)])
def test_made_full(value):
    wanted = np.full((2, 3), value)
    x = lazyarray.asarray(np.ones((2, 3), wanted.dtype))
    x[...] = value
    for got in (lazyarray.numpy.full((2, 3), value), np.full_like(x, value), x):
        assert np.asarray(got).tobytes() == wanted.tobytes()


def test_a_scalar_that_is_known_on_the_host_is_handed_to_device_code_with_its_sign():
    x = lazyarray.asarray(np.array([-0.0, 1.0]))
    for scalar in (x[0], np.modf(x[0])[0]):
        array = lazyarray.asarray(scalar.__wrapped__)
        assert np.signbit(np.asarray(array)) and array.shape == ()
