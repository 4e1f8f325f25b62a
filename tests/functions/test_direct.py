"""Functions that the device library has itself, and NumPy's own code of them, both give what NumPy does."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray
from lazyarray.functions.direct import DIRECT, Direct

rng = np.random.default_rng(5)
M, N = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
X, Y = rng.normal(size=12), rng.normal(size=12)
HOLES = np.where(M > 0.9, np.nan, M)
COUNTS = np.arange(12).reshape(3, 4)
CUBE = rng.normal(size=(3, 4, 5))

CALLS = {
    "stack": [lambda a: np.stack([a(M), a(N)]), lambda a: np.stack((a(M), a(N)), axis=-1)],
    "vstack": [lambda a: np.vstack((a(X), a(Y))), lambda a: np.vstack([a(M), a(N)])],
    "hstack": [lambda a: np.hstack((a(X), a(Y))), lambda a: np.hstack([a(M[:, :1]), a(N[:, :1])])],
    "dstack": [lambda a: np.dstack((a(X), a(Y))), lambda a: np.dstack([a(M), a(N)])],
    "column_stack": [lambda a: np.column_stack((a(X), a(Y))), lambda a: np.column_stack((a(M), a(N)))],
    "append": [lambda a: np.append(a(M), a(N)), lambda a: np.append(a(M), a(N), axis=1), lambda a: np.append(a(M), 2)],
    "angle": [lambda a: np.angle(a(M + 1j)), lambda a: np.angle(a(M * (1 - 2j)))],
    "tile": [lambda a: np.tile(a(X), 3), lambda a: np.tile(a(M), (2, 1)), lambda a: np.tile(a(X), (2, 2))],
    "resize": [lambda a: np.resize(a(X), 3), lambda a: np.resize(a(M), (7, 2)), lambda a: np.resize(a(M).T, (2, 3))],
    "roll": [lambda a: np.roll(a(M), 2), lambda a: np.roll(a(M), 1, axis=0), lambda a: np.roll(a(M), (1, 2), (0, 1)),
             lambda a: np.roll(a(M)[:, 1:3], -1, 1), lambda a: np.roll(a(M), 5, (0, 1)),
             lambda a: np.roll(a(X), (1, 2)), lambda a: np.roll(a(M), (1, 2), (1, 1)),
             lambda a: np.roll(a(M), 1, -1), lambda a: np.roll(a(M)[::2, ::3], 1)],
    "fftshift": [lambda a: np.fft.fftshift(a(X)), lambda a: np.fft.fftshift(a(M), axes=1),
                 lambda a: np.fft.fftshift(a(M), (1, 0)),
                 lambda a: np.fft.fftshift(a(M), axes=()), lambda a: np.fft.fftshift(a(M)[:, :3], (-1, -1))],
    "ifftshift": [lambda a: np.fft.ifftshift(a(X)), lambda a: np.fft.ifftshift(a(M), axes=(0,)),
                  lambda a: np.fft.ifftshift(a(M)[:, :3])],
    "pad": [lambda a: np.pad(a(M), 1), lambda a: np.pad(a(M), ((1, 0), (2, 3)), "edge"),
            lambda a: np.pad(a(COUNTS), 2, constant_values=0), lambda a: np.pad(a(M), 2, "reflect"),
            lambda a: np.pad(a(M), [(0, 1), (2, 0)], "symmetric"), lambda a: np.pad(a(X), (0, len(X) - 1), "reflect"),
            lambda a: np.pad(a(X), 3 * len(X), "reflect"), lambda a: np.pad(a(M), 1, "reflect", reflect_type="odd")],
    "meshgrid": [lambda a: np.meshgrid(a(X), a(Y)), lambda a: np.meshgrid(a(X), a(Y), a(X), indexing="ij")],
    "real_if_close": [lambda a: np.real_if_close(a(M)), lambda a: np.real_if_close(a(M + 0j))],
    "outer": [lambda a: np.outer(a(X), a(Y)), lambda a: np.outer(a(M), a(Y))],
    "kron": [lambda a: np.kron(a(M), a(N)), lambda a: np.kron(a(X), a(M))],
    "gradient": [lambda a: np.gradient(a(X)), lambda a: np.gradient(a(M), 0.3), lambda a: np.gradient(a(M), 2, 0.5),
                 lambda a: np.gradient(a(M), axis=-1), lambda a: np.gradient(a(M), 0.1, axis=(1,)),
                 lambda a: np.gradient(a(M)[:2, ::2]), lambda a: np.gradient(a(M.astype("f4")), 0.7, axis=0),
                 lambda a: np.gradient(a(M), axis=(1, 0)), lambda a: np.gradient(a(M), edge_order=2),
                 lambda a: np.gradient(a(X), a(np.sort(Y))), lambda a: np.gradient(a(COUNTS)),
                 lambda a: np.gradient(a(M), np.float64(0.3)), lambda a: np.gradient(a(M + 1j))],
    "diff": [lambda a: np.diff(a(X)), lambda a: np.diff(a(M), 2, axis=0), lambda a: np.diff(a(COUNTS))],
    "tensordot": [lambda a: np.tensordot(a(M), a(N), ([0, 1], [0, 1])), lambda a: np.tensordot(a(M), a(N.T), 1)],
    "matrix_power": [lambda a: np.linalg.matrix_power(a(M[:, :3]), 3),
                     lambda a: np.linalg.matrix_power(a(M[:, :3]), 0)],
    "unwrap": [lambda a: np.unwrap(a(4 * X)), lambda a: np.unwrap(a(4 * M), axis=0)],
    "ptp": [lambda a: np.ptp(a(M)), lambda a: np.ptp(a(COUNTS), axis=1)],
    "nanmean": [lambda a: np.nanmean(a(HOLES)), lambda a: np.nanmean(a(HOLES), axis=1, keepdims=True)],
    "nanvar": [lambda a: np.nanvar(a(HOLES)), lambda a: np.nanvar(a(HOLES), 1, ddof=1)],
    "nanstd": [lambda a: np.nanstd(a(HOLES)), lambda a: np.nanstd(a(HOLES), axis=0)],
    "nancumsum": [lambda a: np.nancumsum(a(HOLES)), lambda a: np.nancumsum(a(HOLES), axis=1)],
    "nancumprod": [lambda a: np.nancumprod(a(HOLES)), lambda a: np.nancumprod(a(HOLES), axis=0)],
    "cov": [lambda a: np.cov(a(M)), lambda a: np.cov(a(M), rowvar=False), lambda a: np.cov(a(M[:1])),
            lambda a: np.cov(a(M[0]), a(M[1])), lambda a: np.cov(a(M[0]), a(M[0]))],
    "corrcoef": [lambda a: np.corrcoef(a(M)), lambda a: np.corrcoef(a(M), rowvar=False),
                 lambda a: np.corrcoef(a(M[0]), a(M[1])), lambda a: np.corrcoef(a(M[0]), a(M[0]), rowvar=False)],
}

#: Of the same functions.
MORE = {
    "other orders": [
        lambda a: np.stack([a(M.T), a(N.T)]), lambda a: np.stack([a(M.T), a(N.T)], -1),
        lambda a: np.hstack([a(M).T, a(N).T]),
        lambda a: np.vstack([a(M)[:, ::-1], a(N)]), lambda a: np.dstack([a(M.T), a(N.T)]),
        lambda a: np.roll(a(M.T), 1, 1),
        lambda a: np.roll(a(M.T), (1, 2), (0, 1)), lambda a: np.roll(a(M)[::-1].T, 1, 0), lambda a: np.roll(a(M.T), 1),
        lambda a: np.roll(a(CUBE).transpose(1, 2, 0), -1, 1), lambda a: np.roll(a(CUBE)[:, ::-1], 1, 1),
        lambda a: np.roll(a(CUBE)[:, :2].transpose(2, 0, 1), -1, -1), lambda a: np.fft.fftshift(a(M.T)),
        lambda a: np.stack([a(CUBE).transpose(1, 2, 0), a(CUBE).transpose(1, 2, 0)], 1)],
    "several dtypes": [
        lambda a: np.stack([a(M), a(COUNTS)]), lambda a: np.stack([a(COUNTS), a(COUNTS > 3), a(COUNTS.astype("i2"))]),
        lambda a: np.vstack([a(M.T), a(COUNTS.T)]), lambda a: np.hstack([a(X.astype("f4")), a(Y)]),
        lambda a: np.column_stack((a(X), a(COUNTS).ravel())), lambda a: np.stack([a(M), a(M + 1j)], -1),
        lambda a: np.stack([a(COUNTS.astype("u8")), a(COUNTS)])],
}


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric"])
def test_pad_takes_values_of_its_mode_alone(mode):
    with pytest.raises(ValueError, match="unsupported keyword"):
        np.pad(lazyarray.asarray(M), 1, mode, constant_values=0)


def test_each_function_has_calls():
    assert {function.__name__ for function in DIRECT} == CALLS.keys()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("directly", [True, False], ids=["device library's own", "NumPy's own code"])
@pytest.mark.parametrize("name", [*CALLS, *MORE])
def test_values(monkeypatch, name, directly):
    calls = []
    usual = Direct.applies

    def applies(self, arrays):
        calls.append(self)
        return directly and usual(self, arrays)

    monkeypatch.setattr(Direct, "applies", applies)
    for call in (CALLS | MORE)[name]:
        expected = call(np.array)
        with lazyarray.options(small_on_host=False):
            found = call(lazyarray.asarray)
        several = isinstance(expected, tuple)
        for one, other in zip(found if several else [found], expected if several else [expected], strict=True):
            assert isinstance(one, lazyarray.LazyNdarray) == isinstance(other, np.ndarray)
            if type(other) is bool:
                assert one is other
                continue
            assert one.shape == other.shape and one.dtype == other.dtype
            np.testing.assert_allclose(np.asarray(one), other, rtol=1e-12, atol=1e-12)
            if np.ndim(other) > 1:
                assert one.strides == other.strides
    assert calls or lazyarray.device().count > 1, "it was asked whether the call is plain"
