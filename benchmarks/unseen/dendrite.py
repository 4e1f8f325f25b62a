"""Dendritic solidification by Kobayashi's phase field: anisotropy, latent heat, tips, outline, side arms.

N: cells a side.
"""
import numpy as np

DEFAULT = 160
DX, DT, TAU, EPS, MODES, LATENT = 0.03, 1.0e-4, 3.0e-4, 0.01, 6, 1.6
STEPS = 400


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(31)
    y, x = numpy.mgrid[0:N, 0:N] - (N - 1) / 2
    seed = (x**2 + y**2 < 16.0).astype(float)
    noise = rng.uniform(-0.5, 0.5, (16, N, N))
    return seed, noise


def laplacian(a):
    """Nine points, periodic."""
    n, s, w, e = (np.roll(a, k, axis=i) for i in (0, 1) for k in (1, -1))
    diag = np.roll(n, 1, 1) + np.roll(n, -1, 1) + np.roll(s, 1, 1) + np.roll(s, -1, 1)
    return (4 * (n + s + e + w) + diag - 20 * a) / (6 * DX**2)


def ddx(a):
    return (np.roll(a, -1, axis=1) - np.roll(a, 1, axis=1)) / (2 * DX)


def ddy(a):
    return (np.roll(a, -1, axis=0) - np.roll(a, 1, axis=0)) / (2 * DX)


class Crystal:
    def __init__(self, phi, delta, tilt):
        self.phi, self.T = phi.copy(), np.zeros_like(phi)
        self.delta, self.tilt = delta, tilt

    def step(self, noise):
        phi, T = self.phi, self.T
        px, py = ddx(phi), ddy(phi)
        angle = MODES * (np.arctan2(py, px) - self.tilt)
        eps = EPS * (1 + self.delta * np.cos(angle))
        deps = -EPS * MODES * self.delta * np.sin(angle)
        grow = ddy(eps * deps * px) - ddx(eps * deps * py)
        ex, ey = ddx(eps * eps), ddy(eps * eps)
        m = 0.9 / np.pi * np.arctan(10.0 * (1.0 - T))
        bulk = phi * (1 - phi) * (phi - 0.5 + m + 0.01 * noise)
        dphi = DT / TAU * (grow + eps**2 * laplacian(phi) + ex * px + ey * py + bulk)
        self.phi = phi + dphi
        self.T = T + DT * laplacian(T) + LATENT * dphi


def contour_length(phi):
    """Marching squares: the length of the line phi = 0.5, with the four corners' pattern as a case number."""
    a, b, c, d = phi[:-1, :-1], phi[:-1, 1:], phi[1:, 1:], phi[1:, :-1]
    case = (a > 0.5) * 1 + (b > 0.5) * 2 + (c > 0.5) * 4 + (d > 0.5) * 8

    def cut(p, q):
        gap = q - p
        return np.clip((0.5 - p) / np.where(np.abs(gap) < 1e-12, 1e-12, gap), 0.0, 1.0)
    top, right, bottom, left = cut(a, b), cut(b, c), cut(d, c), cut(a, d)
    corner = [np.hypot(top, left), np.hypot(1 - top, right), np.hypot(1 - bottom, 1 - right), np.hypot(bottom, 1 - left)]
    across, down = np.sqrt(1 + (left - right)**2), np.sqrt(1 + (top - bottom)**2)
    zero = np.zeros_like(a)
    table = [zero, corner[0], corner[1], across, corner[2], corner[0] + corner[2], down, corner[3],
             corner[3], down, corner[1] + corner[3], corner[2], across, corner[1], corner[0], zero]
    return DX * np.choose(case, np.stack(table)).sum(), np.bincount(case.ravel(), minlength=16)


def profile(field, rings, count):
    total = np.bincount(rings, weights=field.ravel(), minlength=count)
    return total / np.maximum(np.bincount(rings, minlength=count), 1)


def tip(phi):
    """Where the line from the middle to the right leaves the solid, by linear interpolation."""
    line = np.split(phi[len(phi) // 2], 2)[1]
    i = int(np.flatnonzero(line > 0.5)[-1])
    f = (line[i] - 0.5) / (line[i] - line[min(i + 1, len(line) - 1)] + 1e-12)
    return (i + f) * DX


def main(asarray, N, given):
    seed, noise = (asarray(g) for g in given)
    y, x = np.meshgrid(np.arange(N) - (N - 1) / 2, np.arange(N) - (N - 1) / 2, indexing="ij")
    r, theta = np.hypot(x, y), np.arctan2(y, x)
    rings = r.astype(int).ravel()
    count = int(rings.max()) + 1
    grown, result = [], {}
    for name, delta, tilt in (("strong", 0.04, 0.0), ("weak", 0.015, np.pi / 12)):
        crystal = Crystal(seed, delta, tilt)
        tips, area, warm, cold = [], [], [], []
        for k in range(STEPS):
            crystal.step(np.roll(noise[k % 16], (7 * k, 3 * k), axis=(0, 1)))
            if k % 20 == 19:
                tips.append(tip(crystal.phi))
                solid = crystal.phi > 0.5
                area.append(np.count_nonzero(solid) * DX**2)
                warm.append(crystal.T[solid].mean())
                cold.append((crystal.T[~solid] < 0.05).mean())
        phi = crystal.phi
        length, cases = contour_length(phi)
        tips = np.array([float(t) for t in tips])
        when = DT * 20 * np.arange(1, len(tips) + 1)
        result[name + "_tips"] = tips
        result[name + "_speed"] = np.polyfit(when[5:], tips[5:], 1)[0]
        result[name + "_area"] = np.array([float(v) for v in area])
        result[name + "_heat"] = np.stack([np.stack(warm), np.stack(cold)])
        result[name + "_outline"] = length
        result[name + "_round"] = 4 * np.pi * area[-1] / length**2
        result[name + "_cases"] = cases
        result[name + "_profile"] = profile(phi, rings, count)[:N // 2]
        result[name + "_T"] = profile(crystal.T, rings, count)[:N // 2]
        sector = np.clip(((theta + np.pi) / (2 * np.pi) * 72).astype(int), 0, 71)
        reach = np.zeros(72)
        solid = phi > 0.5
        np.maximum.at(reach, sector[solid], r[solid] * DX)
        harmonic = np.fft.rfft(reach) / 72
        result[name + "_reach"] = reach
        result[name + "_harmonic"] = np.abs(harmonic[[0, 6, 12, 18]])
        grown.append(phi)
    both = np.corrcoef(grown[0].ravel(), grown[1].ravel())[0, 1]
    spectrum = np.abs(np.fft.fftshift(np.fft.fft2(grown[0] - grown[0].mean())))**2
    power = profile(spectrum, rings, count)[1:N // 2]
    result.update(alike=both, decay=np.polyfit(np.log(np.arange(4, 25.0)), np.log(power[3:24]), 1),
                  enthalpy=float(crystal.T.sum() - LATENT * crystal.phi.sum()), phi=grown[0])
    return result
