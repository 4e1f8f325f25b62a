"""Shallow water on a bumpy bed: MUSCL with a minmod limiter, hydrostatic reconstruction, HLL fluxes, Heun's steps, friction, wet and dry cells. N: side."""
import math

import numpy
import numpy as np

DEFAULT = 128
G, DRY = 9.81, 1e-4


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(8)
    y, x = (numpy.mgrid[:N, :N] + 0.5) * 100 / N
    bed = 0.02 * x
    for _ in range(6):
        cy, cx, h, w = rng.uniform(10, 90), rng.uniform(45, 90), rng.uniform(0.8, 2.2), rng.uniform(5, 10)
        bed = bed + h * numpy.exp(-((y - cy) ** 2 + (x - cx) ** 2) / w ** 2)
    surface = numpy.where(x < 30, 5.0, 1.5)
    return dict(bed=bed, depth=numpy.maximum(surface - bed, 0), roughness=0.02 + 0.02 * rng.random((N, N)))


def minmod(a, b):
    return np.where(a * b > 0, np.where(np.abs(a) < np.abs(b), a, b), 0.0)


def slopes(q):
    """Limited slope in the last axis, zero in the border cells."""
    d = np.diff(q, axis=-1)
    s = np.zeros_like(q)
    s[..., 1:-1] = minmod(d[..., :-1], d[..., 1:])
    return s


def hll(hl, ul, vl, hr, ur, vr):
    sl = np.minimum(np.minimum(ul - np.sqrt(G * hl), ur - np.sqrt(G * hr)), 0)
    sr = np.maximum(np.maximum(ul + np.sqrt(G * hl), ur + np.sqrt(G * hr)), 0)
    width = np.maximum(sr - sl, 1e-12)
    ql, qr = hl * ul, hr * ur
    fluxes = []
    for left, right, a, b in ((ql, qr, hl, hr), (ql * ul + 0.5 * G * hl ** 2, qr * ur + 0.5 * G * hr ** 2, ql, qr)):
        fluxes.append((sr * left - sl * right + sl * sr * (b - a)) / width)
    fluxes.append(np.where(fluxes[0] > 0, vl, vr) * fluxes[0])
    return fluxes


def sweep(h, u, v, z, dx):
    """Rates of h, hu, hv from the fluxes in the last axis; walls at both ends."""
    def ghost(q, sign=1.0):
        out = np.empty(q.shape[:-1] + (q.shape[-1] + 4,))
        out[..., 2:-2] = q
        out[..., 0], out[..., 1] = sign * q[..., 1], sign * q[..., 0]
        out[..., -1], out[..., -2] = sign * q[..., -2], sign * q[..., -1]
        return out
    h, u, v, z = ghost(h), ghost(u, -1.0), ghost(v), ghost(z)
    eta = h + z
    sh, su, sv, se = slopes(h), slopes(u), slopes(v), slopes(eta)
    for s in (sh, su, sv, se):
        s[h < 10 * DRY] = 0
    hl, hr = (h + 0.5 * sh)[..., 1:-2], (h - 0.5 * sh)[..., 2:-1]
    zl, zr = (eta + 0.5 * se)[..., 1:-2] - hl, (eta - 0.5 * se)[..., 2:-1] - hr
    ul, ur = (u + 0.5 * su)[..., 1:-2], (u - 0.5 * su)[..., 2:-1]
    vl, vr = (v + 0.5 * sv)[..., 1:-2], (v - 0.5 * sv)[..., 2:-1]
    top = np.maximum(zl, zr)
    hls, hrs = np.maximum(hl + zl - top, 0), np.maximum(hr + zr - top, 0)
    f0, f1, f2 = hll(hls, ul, vl, hrs, ur, vr)
    fl = f1 + 0.5 * G * (hl ** 2 - hls ** 2)         # flux seen by the cell on the left
    fr = f1 + 0.5 * G * (hr ** 2 - hrs ** 2)
    centre = -0.5 * G * (hr[..., :-1] + hl[..., 1:]) * (zl[..., 1:] - zr[..., :-1])
    return -np.diff(f0, axis=-1) / dx, (fr[..., :-1] - fl[..., 1:] + centre) / dx, -np.diff(f2, axis=-1) / dx


def velocity(h, q):
    return np.where(h > DRY, q / np.maximum(h, DRY), 0.0)


def rates(state, z, dx):
    h, u, v = state[0], velocity(state[0], state[1]), velocity(state[0], state[2])
    ax, bx, cx = sweep(h, u, v, z, dx)
    ay, by, cy = sweep(h.T, v.T, u.T, z.T, dx)
    return np.stack([ax + ay.T, bx + cy.T, cx + by.T])


def main(asarray, N=DEFAULT, data=None, steps=100, cfl=0.4):
    data = data or inputs(N)
    z, h, manning = (asarray(data[k]) for k in ("bed", "depth", "roughness"))
    dx = 100 / N
    state = np.stack([h, np.zeros_like(h), np.zeros_like(h)])
    arrival = np.full((N, N), np.nan)
    gauges = np.array([[N // 2, N // 4], [N // 2, N // 2], [N // 4, 3 * N // 4]])
    time, times, volume, energy, record = 0.0, [], [], [], []
    initially = h > 0.01
    highest = np.where(initially, h + z, 0.0)
    for it in range(steps):
        u, v = velocity(state[0], state[1]), velocity(state[0], state[2])
        speed = np.sqrt(G * state[0]) + np.maximum(np.abs(u), np.abs(v))
        dt = cfl * dx / max(float(speed.max()), 1e-6)
        first = state + dt * rates(state, z, dx)
        first[0] = np.maximum(first[0], 0)
        state = 0.5 * (state + first + dt * rates(first, z, dx))
        state[0] = np.maximum(state[0], 0)
        h = state[0]
        wet = h > DRY
        u, v = velocity(h, state[1]), velocity(h, state[2])
        drag = 1 + dt * G * manning ** 2 * np.hypot(u, v) / np.where(wet, h, 1.0) ** (4 / 3)
        state[1:] /= drag
        state[1:, ~wet] = 0
        time += dt
        deep = h > 0.01
        highest[deep] = np.maximum(highest[deep], (h + z)[deep])
        arrival[deep & ~initially & np.isnan(arrival)] = time
        if it % 5 == 4:
            times.append(time)
            volume.append(float(h.sum()) * dx * dx)
            energy.append(float((0.5 * h * (u ** 2 + v ** 2) + 0.5 * G * h * (h + 2 * z)).sum()) * dx * dx)
            record.append((h + z)[gauges[:, 0], gauges[:, 1]])
    vorticity = np.gradient(v, dx, axis=1) - np.gradient(u, dx, axis=0)
    vorticity[~wet] = 0
    flooded = ~np.isnan(arrival)
    hist, _ = np.histogram(arrival[flooded], bins=20, range=(0.0, math.ceil(time)))
    froude = np.where(wet, np.hypot(u, v) / np.sqrt(G * np.maximum(h, DRY)), 0.0)
    return dict(state=np.asarray(state), highest=np.asarray(highest), times=np.asarray(times), volume=np.asarray(volume),
                energy=np.asarray(energy), record=np.asarray(np.stack(record)), vorticity=np.asarray(vorticity), hist=np.asarray(hist),
                flooded=np.asarray(float(flooded.mean())), froude=np.asarray([float(f) for f in np.percentile(froude[wet], [50, 90, 99])]))
