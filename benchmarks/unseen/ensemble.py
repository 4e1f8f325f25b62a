"""Stochastic ensemble Kalman filter for the Lorenz-96 model with Gaspari-Cohn localisation and
multiplicative inflation; N is the number of state variables on the ring."""
import numpy as np

DEFAULT = 600

FORCING = 8.0
DT = 0.05
MEMBERS = 40
CYCLES = 60
SPACING = 2
OBS_STD = 1.0
RADIUS = 5.0


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(1996)

    def deriv(x):
        return (numpy.roll(x, -1) - numpy.roll(x, 2)) * numpy.roll(x, 1) - x + FORCING

    x = FORCING + rng.standard_normal(N)
    truth = numpy.empty((CYCLES, N))
    for step in range(200 + CYCLES):
        k1 = deriv(x)
        k2 = deriv(x + 0.5 * DT * k1)
        k3 = deriv(x + 0.5 * DT * k2)
        k4 = deriv(x + DT * k3)
        x = x + DT / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        if step >= 200:
            truth[step - 200] = x
    m = len(range(0, N, SPACING))
    obs = truth[:, ::SPACING] + OBS_STD * rng.standard_normal((CYCLES, m))
    start = truth[0] + 1.5 * rng.standard_normal((MEMBERS, N))
    noise = OBS_STD * rng.standard_normal((CYCLES, MEMBERS, m))
    noise -= noise.mean(axis=1, keepdims=True)
    return truth, obs, start, noise


def tendency(x):
    return (np.roll(x, -1, axis=-1) - np.roll(x, 2, axis=-1)) * np.roll(x, 1, axis=-1) - x + FORCING


def rk4(x, dt):
    k1 = tendency(x)
    k2 = tendency(x + 0.5 * dt * k1)
    k3 = tendency(x + 0.5 * dt * k2)
    k4 = tendency(x + dt * k3)
    return x + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


def gaspari_cohn(dist, c):
    """Compactly supported fifth-order correlation function, zero beyond 2c."""
    r = np.abs(dist) / c
    taper = np.zeros_like(r)
    near = r <= 1.0
    far = (r > 1.0) & (r < 2.0)
    a = r[near]
    taper[near] = (((-0.25 * a + 0.5) * a + 0.625) * a - 5.0 / 3.0) * a ** 2 + 1.0
    b = r[far]
    taper[far] = ((((b / 12.0 - 0.5) * b + 0.625) * b + 5.0 / 3.0) * b - 5.0) * b + 4.0 - 2.0 / (3.0 * b)
    return taper


def ring_distance(i, j, n):
    d = np.abs(i[:, None] - j[None, :])
    return np.minimum(d, n - d).astype(np.float64)


def analysis(ens, y, eps, where, rho_xy, rho_yy, R):
    members = ens.shape[0]
    anom = ens - ens.mean(axis=0)
    hx = anom[:, where]
    pht = rho_xy * (anom.T @ hx) / (members - 1)
    hpht = rho_yy * (hx.T @ hx) / (members - 1)
    innovations = y + eps - ens[:, where]
    weights = np.linalg.solve(hpht + R, innovations.T)
    return ens + (pht @ weights).T, np.trace(hpht)


def main(asarray, N, given):
    truth, obs, ens, noise = map(asarray, given)
    where = np.arange(0, N, SPACING)
    grid = np.arange(N)
    rho_xy = gaspari_cohn(ring_distance(grid, where, N), RADIUS)
    rho_yy = rho_xy[where]
    R = OBS_STD ** 2 * np.eye(len(where))

    rmse_f = np.zeros(CYCLES)
    rmse_a = np.zeros(CYCLES)
    spread = np.zeros(CYCLES)
    consistency = np.zeros(CYCLES)
    inflation = 1.08
    ranks = np.zeros(MEMBERS + 1, dtype=np.int64)
    for cycle in range(CYCLES):
        if cycle > 0:
            ens = rk4(ens, DT)
        mean = ens.mean(axis=0)
        ens = mean + inflation * (ens - mean)
        rmse_f[cycle] = np.sqrt(np.mean((mean - truth[cycle]) ** 2))

        innov = obs[cycle] - mean[where]
        ens, tr = analysis(ens, obs[cycle], noise[cycle], where, rho_xy, rho_yy, R)
        consistency[cycle] = np.dot(innov, innov) / (tr + len(where) * OBS_STD ** 2)

        mean = ens.mean(axis=0)
        rmse_a[cycle] = np.sqrt(np.mean((mean - truth[cycle]) ** 2))
        spread[cycle] = np.sqrt(ens.var(axis=0, ddof=1).mean())
        if cycle >= CYCLES // 2:
            below = (ens < truth[cycle]).sum(axis=0)
            ranks += np.bincount(below, minlength=MEMBERS + 1)

    final = ens.mean(axis=0)
    return dict(mean=final, spread_final=ens.std(axis=0, ddof=1), rmse_forecast=rmse_f,
                rmse_analysis=rmse_a, spread=spread, consistency=consistency, rank_histogram=ranks,
                late_rmse=rmse_a[CYCLES // 2:].mean(),
                correlation=np.corrcoef(final, truth[-1])[0, 1])
