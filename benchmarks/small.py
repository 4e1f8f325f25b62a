"""Plain programs of small arrays: NumPy's time against that on lazy arrays, with NumPy and with ``lazyarray.numpy``.

``python -m benchmarks --only small`` checks each result against NumPy's before it is timed. The work stays on the host,
so that the ratios are much the same without a GPU. Each program takes the namespace and what makes its arrays.
"""
from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy

import lazyarray
import lazyarray.numpy

from . import timing

#: What is asked for: so many times NumPy's time.
MOST = 1.5


def lorenz(np: Any, asarray: Callable[..., Any]) -> Any:
    """A Runge-Kutta stepper of three equations, its right side built of elements."""
    def slope(state: Any) -> Any:
        x, y, z = state
        return np.array([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])

    state, h = asarray(numpy.array([1.0, 1.0, 1.0])), 0.01
    for _ in range(60):
        k1 = slope(state)
        k2 = slope(state + h / 2 * k1)
        k3 = slope(state + h / 2 * k2)
        k4 = slope(state + h * k3)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return state


def oscillators(np: Any, asarray: Callable[..., Any]) -> Any:
    """Leapfrog steps of a chain of 200 masses, in place."""
    x, v = asarray(numpy.sin(numpy.linspace(0, 3, 200))), asarray(numpy.zeros(200))
    for _ in range(150):
        force = -2 * x
        force[1:] += x[:-1]
        force[:-1] += x[1:]
        v += 0.05 * force
        x += 0.05 * v
    return x, (v ** 2).sum() / 2


def kalman(np: Any, asarray: Callable[..., Any]) -> Any:
    """A Kalman filter of one target."""
    noise = numpy.random.default_rng(0)
    F, H = np.eye(4) + np.eye(4, k=2), np.eye(2, 4)
    Q, R = 0.01 * np.eye(4), np.eye(2)
    x, P = np.zeros(4), 10 * np.eye(4)
    z = asarray(numpy.cumsum(noise.normal(size=(60, 2)), axis=0))
    loglik = 0.0
    for k in range(len(z)):
        x, P = F @ x, F @ P @ F.T + Q
        y, S = z[k] - H @ x, H @ P @ H.T + R
        K = np.linalg.solve(S, H @ P).T
        x, P = x + K @ y, (np.eye(4) - K @ H) @ P
        loglik -= 0.5 * (y @ np.linalg.inv(S) @ y + np.linalg.slogdet(S)[1])
    return x, P, loglik


def tree(np: Any, asarray: Callable[..., Any]) -> Any:
    """Nearest neighbours in a tree of boxes over 256 points."""
    points = asarray(numpy.random.default_rng(1).random((256, 3)))

    def build(part: Any, depth: int) -> Any:
        if len(part) <= 16:
            return part
        order = np.argsort(part[:, depth % 3])
        half = len(part) // 2
        return part[order[half], depth % 3], build(part[order[:half]], depth + 1), build(part[order[half:]], depth + 1)

    def nearest(node: Any, point: Any, depth: int, best: float) -> float:
        if not isinstance(node, tuple):
            return min(best, float(np.min(np.sum((node - point) ** 2, axis=1))))
        split, low, high = node
        ahead = point[depth % 3] - split
        first, second = (low, high) if ahead < 0 else (high, low)
        best = nearest(first, point, depth + 1, best)
        return nearest(second, point, depth + 1, best) if ahead ** 2 < best else best

    root = build(points, 0)
    asked = asarray(numpy.random.default_rng(2).random((30, 3)))
    return np.array([nearest(root, point, 0, numpy.inf) for point in asked])


def newton(np: Any, asarray: Callable[..., Any]) -> Any:
    """Newton's method and the eigenvalues of small matrices."""
    A = asarray(numpy.random.default_rng(3).normal(size=(6, 6)))
    M, x, found = A @ A.T + 6 * np.eye(6), np.ones(6), []
    for k in range(30):
        gradient = M @ x + x ** 3 - (k + 1)
        hessian = M + np.diag(3 * x ** 2)
        x = x - np.linalg.solve(hessian, gradient)
        found.append(np.linalg.eigvalsh(hessian)[-1] + np.linalg.norm(x))
    return x, np.array(found)


def chain(np: Any, asarray: Callable[..., Any]) -> Any:
    """A string of ufuncs on 500 elements."""
    x = asarray(numpy.linspace(-3, 3, 500))
    total = 0.0
    for k in range(60):
        y = np.exp(-x ** 2 / (k + 1)) * np.cos(3 * x)
        z = np.where(y > 0, np.sqrt(np.abs(y)), np.tanh(y))
        total += np.sum(np.clip(z, -0.5, 0.5) * np.maximum(x, 0)) / np.max(np.abs(z))
    return total


def filtered(np: Any, asarray: Callable[..., Any]) -> Any:
    """An FFT filter, block by block."""
    signal = asarray(numpy.random.default_rng(4).normal(size=700))
    size, taps = 128, np.hanning(33)
    response = np.fft.rfft(taps / taps.sum(), size)
    out = np.zeros(len(signal) + size)
    for start in range(0, len(signal), 96):
        block = signal[start:start + 96]
        out[start:start + size] += np.fft.irfft(np.fft.rfft(block, size) * response, size)
    return out


def bootstrap(np: Any, asarray: Callable[..., Any]) -> Any:
    """Statistics of samples with replacement."""
    random = numpy.random.default_rng(5)
    data, found = asarray(random.normal(5, 2, 200)), []
    for _ in range(50):
        sample = data[random.integers(0, 200, 200)]
        centred = sample - sample.mean()
        found.append([np.median(sample), sample.std(ddof=1), (centred ** 3).mean() / sample.std() ** 3])
    return np.percentile(np.array(found), [5, 50, 95], axis=0)


def life(np: Any, asarray: Callable[..., Any]) -> Any:
    """The game of life on 24 by 24 cells."""
    cells = asarray(numpy.random.default_rng(6).random((24, 24)) < 0.4)
    for _ in range(25):
        alive = cells.astype(int)
        around = sum(np.roll(alive, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)) - alive
        cells = (around == 3) | cells & (around == 2)
    return cells


PROGRAMS = (lorenz, oscillators, kalman, tree, newton, chain, filtered, bootstrap, life)


def check(name: str, found: Any, wanted: Any) -> None:
    """Raise if a result is not NumPy's."""
    for one, other in zip(*((part if isinstance(part, tuple) else (part,)) for part in (found, wanted)), strict=True):
        if not numpy.allclose(numpy.asarray(one), other, rtol=1e-9, atol=1e-12):
            raise AssertionError(f"{name} differs from NumPy's result")


def figures(rounds: int = 25) -> list[dict]:
    """The ratios of the quickest of runs that are taken in turn, which other programs disturb least."""
    found, ratios = timing.Figures(), []
    for program in PROGRAMS:
        ways: dict[str, Callable[[], Any]] = {
            "NumPy": lambda run=program: run(numpy, numpy.array),
            "lazy inputs": lambda run=program: run(numpy, lazyarray.asarray),
            "np = lazyarray.numpy": lambda run=program: run(lazyarray.numpy, lazyarray.asarray)}
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        wanted = ways["NumPy"]()
        for name, way in ways.items():
            check(f"{program.__name__}, {name}", way(), wanted)
        for _ in range(rounds):
            for name, way in ways.items():
                start = time.perf_counter()
                way()
                seconds[name].append(time.perf_counter() - start)
        for name in list(ways)[1:]:
            ratio = min(seconds[name]) / min(seconds["NumPy"])
            ratios.append(ratio)
            what = f"{program.__name__}: {name}, against NumPy's {1e3 * min(seconds['NumPy']):.2f} ms"
            found.note(what, ratio, "times", most=MOST)
    found.note("geometric mean", statistics.geometric_mean(ratios), "times", most=MOST)
    return found


if __name__ == "__main__":
    timing.main("small", figures)
