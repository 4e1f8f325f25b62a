"""A satellite constellation: Kepler's equation, J2 and drag by RK4, elements, ground-station passes, conjunctions."""
import numpy as np

DEFAULT = 400           # satellites
MU = 398600.4418
RE = 6378.137
J2 = 1.08262668e-3
OMEGA = 7.2921159e-5


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(2024)
    elements = numpy.column_stack([
        RE + rng.uniform(450.0, 900.0, N), rng.uniform(0.001, 0.02, N), numpy.radians(rng.uniform(30.0, 98.0, N)),
        rng.uniform(0, 2 * numpy.pi, N), rng.uniform(0, 2 * numpy.pi, N), rng.uniform(0, 2 * numpy.pi, N)])
    ballistic = rng.uniform(0.005, 0.03, N)
    stations = numpy.radians(numpy.array([[78.2, 15.4], [-33.9, 18.4], [40.7, -74.0], [1.35, 103.8], [64.8, -147.7]]))
    return elements, ballistic, stations


def kepler(M, e, tol=1e-12):
    """Newton's iteration for the eccentric anomalies."""
    E = M + e * np.sin(M)
    for _ in range(20):
        delta = (E - e * np.sin(E) - M) / (1.0 - e * np.cos(E))
        E -= delta
        if np.max(np.abs(delta)) < tol:
            break
    return E


def rotation(angle, axis):
    c, s = np.cos(angle), np.sin(angle)
    R = np.zeros(angle.shape + (3, 3))
    i, j = [k for k in range(3) if k != axis]
    R[..., axis, axis] = 1.0
    R[..., i, i] = c
    R[..., j, j] = c
    sign = -1.0 if axis == 1 else 1.0
    R[..., i, j] = -sign * s
    R[..., j, i] = sign * s
    return R


def to_state(elements):
    a, e, inc, raan, argp, M = elements.T
    E = kepler(M, e)
    r_pf = np.stack([a * (np.cos(E) - e), a * np.sqrt(1 - e**2) * np.sin(E), np.zeros_like(a)], axis=-1)
    n = np.sqrt(MU / a**3)
    edot = n / (1.0 - e * np.cos(E))
    v_pf = np.stack([-a * np.sin(E) * edot, a * np.sqrt(1 - e**2) * np.cos(E) * edot, np.zeros_like(a)], axis=-1)
    R = rotation(raan, 2) @ rotation(inc, 0) @ rotation(argp, 2)
    return np.concatenate([np.einsum("nij,nj->ni", R, r_pf), np.einsum("nij,nj->ni", R, v_pf)], axis=1)


def to_elements(state):
    r, v = state[:, :3], state[:, 3:]
    rn = np.linalg.norm(r, axis=1)
    h = np.cross(r, v)
    hn = np.linalg.norm(h, axis=1)
    evec = np.cross(v, h) / MU - r / rn[:, None]
    e = np.linalg.norm(evec, axis=1)
    a = 1.0 / (2.0 / rn - np.sum(v * v, axis=1) / MU)
    inc = np.arccos(np.clip(h[:, 2] / hn, -1.0, 1.0))
    raan = np.arctan2(h[:, 0], -h[:, 1]) % (2 * np.pi)
    node = np.stack([np.cos(raan), np.sin(raan), np.zeros_like(raan)], axis=1)
    argp = np.arccos(np.clip((node * evec).sum(axis=1) / e, -1.0, 1.0))
    argp = np.where(evec[:, 2] < 0, 2 * np.pi - argp, argp)
    return np.stack([a, e, inc, raan, argp], axis=1)


def derivative(state, ballistic):
    r, v = state[:, :3], state[:, 3:]
    r2 = np.sum(r**2, axis=1, keepdims=True)
    rn = np.sqrt(r2)
    z2 = r[:, 2:3]**2 / r2
    factor = 1.5 * J2 * MU * RE**2 / (r2 * r2 * rn)
    acc = -MU * r / (r2 * rn) - factor * r * (1.0 - 5.0 * z2)
    acc[:, 2:] -= 2.0 * factor * r[:, 2:]
    rho = 6.0e-13 * np.exp(-(rn - RE - 450.0) / 62.0)
    rel = v.copy()
    rel[:, 0] += OMEGA * r[:, 1]
    rel[:, 1] -= OMEGA * r[:, 0]
    speed = np.sqrt((rel * rel).sum(axis=1, keepdims=True))
    acc -= 0.5e3 * rho * ballistic[:, None] * speed * rel
    return np.concatenate([v, acc], axis=1)


def rk4(state, dt, ballistic):
    k1 = derivative(state, ballistic)
    k2 = derivative(state + 0.5 * dt * k1, ballistic)
    k3 = derivative(state + 0.5 * dt * k2, ballistic)
    k4 = derivative(state + dt * k3, ballistic)
    return state + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


def elevations(r, stations, t):
    """Elevation of each satellite above each station's horizon: (stations, satellites)."""
    lat = stations[:, 0]
    lon = stations[:, 1] + OMEGA * t
    up = np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)
    los = r[None, :, :] - RE * up[:, None, :]
    return np.arcsin(np.einsum("sni,si->sn", los, up) / np.linalg.norm(los, axis=2))


def closest_pairs(r, limit):
    gap = np.linalg.norm(r[:, None, :] - r[None, :, :], axis=-1)
    i, j = np.triu_indices(len(r), k=1)
    d = gap[i, j]
    return np.count_nonzero(d < limit), d.min()


def main(asarray, N, data):
    elements, ballistic, stations = (asarray(d) for d in data)
    state = to_state(elements)
    steps, dt = 80, 40.0
    visible = np.zeros((steps, len(stations), N), dtype=bool)
    lit = np.zeros((steps, N), dtype=bool)
    close, nearest = [], np.inf
    sun = np.array([0.8, 0.55, 0.24])
    sun /= np.linalg.norm(sun)
    for n in range(steps):
        state = rk4(state, dt, ballistic)
        r = state[:, :3]
        visible[n] = elevations(r, stations, (n + 1) * dt) > np.radians(10.0)
        along = r @ sun
        away = np.linalg.norm(r - along[:, None] * sun, axis=1)
        lit[n] = (along > 0) | (away > RE)
        if n % 10 == 9:
            count, smallest = closest_pairs(r, 500.0)
            close.append(count)
            nearest = min(nearest, float(smallest))
    rises = visible[1:] & ~visible[:-1]
    passes = rises.sum(axis=(0, 2))
    per_sat = visible.any(axis=1).sum(axis=0) * dt
    final = to_elements(state)
    change = final[:, :5] - elements[:, :5]
    change[:, 2:] = (change[:, 2:] + np.pi) % (2 * np.pi) - np.pi
    fit = np.linalg.lstsq(np.stack([np.cos(elements[:, 2]), np.ones(N)], axis=1), change[:, 3], rcond=None)[0]
    energy = 0.5 * np.sum(state[:, 3:]**2, axis=1) - MU / np.linalg.norm(state[:, :3], axis=1)
    return {"state": state, "elements": final, "node_rate": fit, "passes": passes, "contact": per_sat,
            "coverage": visible.any(axis=2).mean(axis=0), "eclipse": 1.0 - lit.mean(axis=0),
            "close": np.array([int(c) for c in close]), "nearest": nearest, "energy": energy}
