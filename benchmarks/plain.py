"""Programs in plain NumPy, as a scientist writes them: nothing here knows of lazyarray, of CuPy or of a GPU."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def kappa_sigma(image: np.ndarray, kappa: float = 3.0, centre: Callable[[Any], Any] = np.median) -> tuple[Any, ...]:
    """Level and noise of an image's background: pixels far from the middle are left out until none is left to go."""
    values = image.ravel()
    while True:
        middle, spread = centre(values), np.std(values)
        kept = values[np.abs(values - middle) < kappa * spread]
        if kept.size == values.size:
            return middle, spread
        values = kept


def e_step(points: np.ndarray, weights: np.ndarray, means: np.ndarray, variances: np.ndarray) -> tuple[Any, ...]:
    """Mean log-likelihood of a Gaussian mixture with diagonal covariances, and each component's share in each point."""
    distances = ((points[:, np.newaxis, :] - means) ** 2 / variances).sum(axis=2)
    log_density = np.log(weights) - 0.5 * (distances + np.log(2 * np.pi * variances).sum(axis=1))
    top = log_density.max(axis=1, keepdims=True)
    log_norm = top + np.log(np.exp(log_density - top).sum(axis=1, keepdims=True))
    return log_norm.mean(), np.exp(log_density - log_norm)


def diffuse(temperature: np.ndarray, steps: int = 100, rate: float = 0.2) -> np.ndarray:
    """The heat equation on a plate whose rim keeps its temperature."""
    u = temperature.copy()
    for _ in range(steps):
        u[1:-1, 1:-1] += rate * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return u


def k_means(points: np.ndarray, centres: np.ndarray, rounds: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Lloyd's algorithm: the centres of the clusters, and the number of the cluster of each point."""
    for _ in range(rounds):
        distances = ((points[:, np.newaxis, :] - centres) ** 2).sum(axis=2)
        labels = distances.argmin(axis=1)
        centres = np.stack([points[labels == k].mean(axis=0) for k in range(len(centres))])
    return centres, labels
