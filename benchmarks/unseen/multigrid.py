"""Poisson on the unit square: V-cycles with red-black Gauss-Seidel on strided slices, then SOR and Jacobi to compare. N: cells a side (a power of two)."""
import numpy
import numpy as np

DEFAULT = 1024


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(3)
    x = numpy.linspace(0, 1, N + 1)
    X, Y = numpy.meshgrid(x, x, indexing="ij")
    f = 2 * numpy.pi ** 2 * numpy.sin(numpy.pi * X) * numpy.sin(numpy.pi * Y)
    for cx, cy, q in zip(rng.uniform(0.2, 0.8, 4), rng.uniform(0.2, 0.8, 4), (1, -1, 2, -2)):
        f += 200 * q * numpy.exp(-((X - cx) ** 2 + (Y - cy) ** 2) / 0.002)
    return dict(f=f, left=numpy.sin(numpy.pi * x), top=x * (1 - x))


def smooth(u, f, h, sweeps=2):
    for _ in range(sweeps):
        for a, b in ((1, 1), (2, 2), (1, 2), (2, 1)):
            u[a:-1:2, b:-1:2] = 0.25 * (u[a - 1:-2:2, b:-1:2] + u[a + 1::2, b:-1:2] + u[a:-1:2, b - 1:-2:2] + u[a:-1:2, b + 1::2]
                                        + h * h * f[a:-1:2, b:-1:2])
    return u


def residual(u, f, h):
    r = np.zeros_like(u)
    r[1:-1, 1:-1] = f[1:-1, 1:-1] + (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]) / h ** 2
    return r


def restrict(r):
    n = (r.shape[0] - 1) // 2
    c = np.zeros((n + 1, n + 1))
    c[1:-1, 1:-1] = (4 * r[2:-2:2, 2:-2:2]
                     + 2 * (r[1:-3:2, 2:-2:2] + r[3:-1:2, 2:-2:2] + r[2:-2:2, 1:-3:2] + r[2:-2:2, 3:-1:2])
                     + r[1:-3:2, 1:-3:2] + r[3:-1:2, 1:-3:2] + r[1:-3:2, 3:-1:2] + r[3:-1:2, 3:-1:2]) / 16
    return c


def prolong(c):
    n = 2 * (c.shape[0] - 1)
    u = np.zeros((n + 1, n + 1))
    u[::2, ::2] = c
    u[1::2, ::2] = 0.5 * (c[:-1] + c[1:])
    u[:, 1::2] = 0.5 * (u[:, :-2:2] + u[:, 2::2])
    return u


def vcycle(u, f, h):
    n = u.shape[0] - 1
    if n <= 4:
        return smooth(u, f, h, 10)
    u = smooth(u, f, h)
    coarse = restrict(residual(u, f, h))
    u += prolong(vcycle(np.zeros_like(coarse), coarse, 2 * h))
    return smooth(u, f, h)


def sor(u, f, h, omega, sweeps):
    i, j = np.indices(u.shape)
    red = (i + j) % 2 == 0
    red[0], red[-1], red[:, 0], red[:, -1] = False, False, False, False
    black = (i + j) % 2 == 1
    black[[0, -1]], black[:, [0, -1]] = False, False
    norms = []
    for _ in range(sweeps):
        for colour in (red, black):
            target = np.zeros_like(u)
            target[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] + h * h * f[1:-1, 1:-1])
            u[colour] += omega * (target[colour] - u[colour])
        norms.append(np.abs(target - u)[1:-1, 1:-1].max())
    return u, norms


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    f, left, top = (asarray(data[k]) for k in ("f", "left", "top"))
    h = 1.0 / N
    u, norms = np.zeros_like(f), []
    u[0, :], u[:, -1] = left, top
    norm0 = float(np.linalg.norm(residual(u, f, h)))
    for cycle in range(20):
        u = vcycle(u, f, h)
        norms.append(float(np.linalg.norm(residual(u, f, h))) / norm0)
        if norms[-1] < 1e-7:
            break
    # a coarser problem by two plain methods
    k = N // 64
    fc = f[::k, ::k].copy()
    start = np.zeros_like(fc)
    start[0], start[:, -1] = left[::k], top[::k]
    s, sor_norms = sor(start.copy(), fc, h * k, 2 / (1 + numpy.sin(numpy.pi / 64)), 60)
    jac = start.copy()
    for it in range(200):
        new = jac.copy()
        new[1:-1, 1:-1] = 0.25 * (jac[2:, 1:-1] + jac[:-2, 1:-1] + jac[1:-1, 2:] + jac[1:-1, :-2] + (h * k) ** 2 * fc[1:-1, 1:-1])
        if it % 50 == 49 and np.max(np.abs(new - jac)) < 1e-6:
            break
        jac, new = new, jac
    gy, gx = np.gradient(-u, h)
    field = np.hypot(gx, gy)
    peak = np.unravel_index(np.argmax(u), u.shape)
    flux = np.sum(gy[-1]) * h - np.sum(gy[0]) * h + np.sum(gx[:, -1]) * h - np.sum(gx[:, 0]) * h
    quartiles = np.percentile(field, [25, 50, 75])
    line = u[N // 2]
    crossings = np.count_nonzero(np.sign(line[1:]) != np.sign(line[:-1]))
    return dict(u=np.asarray(u), norms=np.asarray(norms), sor=np.asarray(s), sor_norms=np.asarray(sor_norms), jacobi=np.asarray(jac), flux=np.asarray(flux),
                field=np.asarray(field), peak=np.asarray([int(p) for p in peak]), quartiles=np.asarray(quartiles), crossings=np.asarray(crossings))
