"""Smoothed-particle hydrodynamics of a breaking dam: cell hashing with argsort and searchsorted, ragged neighbour lists, cubic kernel, artificial viscosity, wall forces. N: particles."""
import numpy
import numpy as np

DEFAULT = 3000
STEPS, REBUILD, WIDTH, GRAVITY, RHO0, GAMMA = 60, 5, 2.0, 9.81, 1000.0, 7.0


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(304)
    columns = int(numpy.sqrt(N / 2))
    dx = 0.5 / columns
    rows = N // columns
    i, j = numpy.meshgrid(numpy.arange(columns), numpy.arange(rows), indexing="ij")
    pos = numpy.stack([(i.ravel() + 0.5) * dx, (j.ravel() + 0.5) * dx], axis=1)
    return dict(pos=pos + rng.uniform(-0.05, 0.05, pos.shape) * dx, dx=numpy.array(dx))


def kernel(q, h):
    """Cubic spline in two dimensions and its derivative over r, with q = r / h in [0, 2]."""
    norm = 10 / (7 * np.pi * h * h)
    near, far = 1 - 1.5 * q ** 2 * (1 - q / 2), 0.25 * np.maximum(2 - q, 0) ** 3
    w = norm * np.where(q < 1, near, far)
    dw = norm / h * np.where(q < 1, -3 * q + 2.25 * q ** 2, -0.75 * np.maximum(2 - q, 0) ** 2)
    return w, dw


def neighbours(pos, reach):
    """All pairs (i, j), i != j, nearer than reach."""
    n = len(pos)
    cell = np.floor((pos + 4 * reach) / reach).astype(np.int64)
    ny = int(cell[:, 1].max()) + 3
    key = cell[:, 0] * ny + cell[:, 1]
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    shift = np.array([dx * ny + dy for dx in (-1, 0, 1) for dy in (-1, 0, 1)])
    wanted = key[:, None] + shift
    first = np.searchsorted(ordered, wanted, side="left")
    last = np.searchsorted(ordered, wanted, side="right")
    count = last - first
    # ragged to flat: which (particle, cell) each slot belongs to, and which place in it
    flat = count.ravel()
    ends = np.cumsum(flat)
    total = int(ends[-1])
    slot = np.arange(total)
    owner = np.searchsorted(ends, slot, side="right")
    place = slot - (ends - flat)[owner]
    i = owner // 9
    j = order[first.ravel()[owner] + place]
    close = (((pos[i] - pos[j]) ** 2).sum(axis=1) < reach ** 2) & (i != j)
    return i[close], j[close], np.bincount(i[close], minlength=n)


def pairsum(i, values, n):
    return np.bincount(i, weights=values, minlength=n)


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    pos, dx = asarray(data["pos"]).copy(), float(data["dx"])
    n, h = len(pos), 1.3 * dx
    mass = RHO0 * dx * dx
    vel = np.zeros_like(pos)
    height = float(pos[:, 1].max())
    sound = 10 * np.sqrt(2 * GRAVITY * height)
    stiff = RHO0 * sound ** 2 / GAMMA
    rho = RHO0 * (1 + RHO0 * GRAVITY * (height - pos[:, 1]) / stiff) ** (1 / GAMMA)
    dt = float(0.25 * h / sound)
    front, energy, contacts, smoothed = [], [], [], None
    start = pos.copy()
    acc, drho = np.zeros_like(pos), np.zeros(n)
    for step in range(STEPS):
        if step % REBUILD == 0:
            i, j, degree = neighbours(pos, 2 * h + 0.4 * dx)
            contacts.append(degree.mean())
        # leap-frog: half a kick, a drift
        vel += 0.5 * dt * acc
        pos += dt * vel
        rho += dt * drho
        d = pos[i] - pos[j]
        r = np.sqrt(np.einsum("ij,ij->i", d, d))
        w, dw = kernel(r / h, h)
        if step % 20 == 10:                                # Shepard's filter of the densities
            volume = mass / rho
            top = pairsum(i, w * mass, n) + mass * 10 / (7 * np.pi * h * h)
            bottom = pairsum(i, w * volume[j], n) + volume * 10 / (7 * np.pi * h * h)
            rho = top / bottom
        p = stiff * ((rho / RHO0) ** GAMMA - 1)
        dv = vel[i] - vel[j]
        approach = (d * dv).sum(axis=1)
        mu = h * approach / (r ** 2 + 0.01 * h * h)
        viscous = np.where(approach < 0, -0.1 * sound * mu * 2 / (rho[i] + rho[j]), 0.0)
        pr = p / rho ** 2
        f = -mass * (pr[i] + pr[j] + viscous) * dw / np.maximum(r, 1e-9)
        acc[:, 0] = pairsum(i, f * d[:, 0], n)
        acc[:, 1] = pairsum(i, f * d[:, 1], n) - GRAVITY
        drho = pairsum(i, mass * dw * approach / np.maximum(r, 1e-9), n)
        # walls push back within one spacing
        for axis, (low, high) in enumerate(((0.0, WIDTH), (0.0, 10.0))):
            depth_low = np.maximum(dx - (pos[:, axis] - low), 0) / dx
            depth_high = np.maximum(dx - (high - pos[:, axis]), 0) / dx
            acc[:, axis] += 0.1 * sound ** 2 / dx * (depth_low ** 2 - depth_high ** 2)
            acc[:, axis] -= 0.02 * sound / dx * vel[:, axis] * ((depth_low > 0) | (depth_high > 0))
        vel += 0.5 * dt * acc
        front.append(np.percentile(pos[:, 0], 99.5))
        energy.append(np.stack([0.5 * mass * (vel ** 2).sum(), mass * GRAVITY * pos[:, 1].sum()]))
    # fields on a grid
    gx, gy = np.meshgrid(np.linspace(0, 0.8, 33), np.linspace(0, 1.1, 45), indexing="ij")
    points = np.stack([gx.ravel(), gy.ravel()], axis=1)
    field, weight = np.zeros(len(points)), np.zeros(len(points))
    for lo in range(0, len(points), 256):
        part = points[lo:lo + 256]
        q = np.linalg.norm(part[:, None, :] - pos[None, :, :], axis=2) / (3 * h)
        w, _ = kernel(q, 3 * h)
        weight[lo:lo + 256] = w.sum(axis=1)
        field[lo:lo + 256] = w @ p
    smoothed = np.where(weight > 1e-6, field / np.maximum(weight, 1e-6), np.nan)
    profile, edges = np.histogram(start[:, 1], bins=20, weights=np.hypot(pos[:, 0] - start[:, 0], pos[:, 1] - start[:, 1]))
    return dict(pos=pos, vel=vel, rho=rho, front=np.stack(front), energy=np.stack(energy), contacts=np.stack(contacts), pressure=np.nan_to_num(smoothed),
                wet=float(np.mean(~np.isnan(smoothed))), profile=profile, edges=edges, centre=pos.mean(axis=0), inertia=np.cov(pos.T))
