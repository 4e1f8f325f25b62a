"""Many little fits: Gauss-Newton and Levenberg-Marquardt on decay curves, Nelder-Mead, splines by a tridiagonal solve, smoothing, bootstrap. N: points in all."""
import numpy
import numpy as np

DEFAULT = 2000
CURVES = 20


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(27)
    n = N // CURVES
    t = numpy.sort(rng.uniform(0, 10, (CURVES, n)), axis=1)
    truth = numpy.column_stack([rng.uniform(1, 3, CURVES), rng.uniform(0.3, 1.2, CURVES), rng.uniform(0.1, 0.5, CURVES)])
    y = truth[:, :1] * numpy.exp(-truth[:, 1:2] * t) + truth[:, 2:] + rng.normal(0, 0.03, t.shape)
    return dict(t=t, y=y, truth=truth, picks=rng.integers(0, n, (200, n)))


def model(p, t):
    return p[0] * np.exp(-p[1] * t) + p[2]


def jacobian(p, t):
    e = np.exp(-p[1] * t)
    return np.column_stack([e, -p[0] * t * e, np.ones_like(t)])


def levenberg(t, y, p, limit=25):
    lam = 1e-2
    r = y - model(p, t)
    cost = r @ r
    for n in range(limit):
        J = jacobian(p, t)
        A, g = J.T @ J, J.T @ r
        step = np.linalg.solve(A + lam * np.diag(np.diag(A)), g)
        trial = p + step
        new = y - model(trial, t)
        new_cost = new @ new
        if new_cost < cost:
            done = cost - new_cost < 1e-12 * cost
            p, r, cost = trial, new, new_cost
            lam /= 5
            if done:
                break
        else:
            lam *= 4
    J = jacobian(p, t)
    cov = np.linalg.inv(J.T @ J) * cost / (len(t) - 3)
    return p, np.sqrt(np.diag(cov)), float(cost), n


def nelder_mead(f, x0, limit=60):
    k = len(x0)
    simplex = np.vstack([x0, x0 + 0.2 * np.eye(k)])
    values = np.array([float(f(p)) for p in simplex])
    for _ in range(limit):
        order = np.argsort(values)
        simplex, values = simplex[order], values[order]
        if values[-1] - values[0] < 1e-9:
            break
        centre = simplex[:-1].mean(axis=0)
        reflected = centre + (centre - simplex[-1])
        fr = float(f(reflected))
        if fr < values[0]:
            expanded = centre + 2 * (centre - simplex[-1])
            fe = float(f(expanded))
            simplex[-1], values[-1] = (expanded, fe) if fe < fr else (reflected, fr)
        elif fr < values[-2]:
            simplex[-1], values[-1] = reflected, fr
        else:
            contracted = centre + 0.5 * (simplex[-1] - centre)
            fc = float(f(contracted))
            if fc < values[-1]:
                simplex[-1], values[-1] = contracted, fc
            else:
                simplex[1:] = simplex[0] + 0.5 * (simplex[1:] - simplex[0])
                values[1:] = np.array([float(f(p)) for p in simplex[1:]])
    return simplex[int(values.argmin())], float(values.min())


def spline(x, y, q):
    """Natural cubic spline through (x, y) at q."""
    h = np.diff(x)
    n = len(x)
    A = np.zeros((n, n))
    b = np.zeros(n)
    i = np.arange(1, n - 1)
    A[0, 0] = A[-1, -1] = 1
    A[i, i - 1], A[i, i], A[i, i + 1] = h[:-1], 2 * (h[:-1] + h[1:]), h[1:]
    b[1:-1] = 6 * (np.diff(y)[1:] / h[1:] - np.diff(y)[:-1] / h[:-1])
    m = np.linalg.solve(A, b)
    j = np.clip(np.searchsorted(x, q) - 1, 0, n - 2)
    left, right = x[j + 1] - q, q - x[j]
    return ((m[j] * left ** 3 + m[j + 1] * right ** 3) / (6 * h[j]) + (y[j] / h[j] - m[j] * h[j] / 6) * left
            + (y[j + 1] / h[j] - m[j + 1] * h[j] / 6) * right)


def savgol(y, half=4, degree=2):
    A = np.vander(np.arange(-half, half + 1).astype(float), degree + 1)
    c = np.linalg.pinv(A)[-1]
    return np.convolve(np.pad(y, half, mode="edge"), c[::-1], mode="valid")


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    T, Y, truth, picks = (asarray(data[k]) for k in ("t", "y", "truth", "picks"))
    fits, errors, costs, iterations, simplexes, smooth, shapes, half, polys, r2 = ([] for _ in range(10))
    grid = np.linspace(0, 10, 101)
    for t, y in zip(T, Y):
        guess = np.array([float(y.max() - y.min()), 0.5, float(y.min())])
        p, e, cost, n = levenberg(t, y, guess)
        fits.append(p)
        errors.append(e)
        costs.append(cost)
        iterations.append(n)
        best, value = nelder_mead(lambda q: np.abs(y - model(q, t)).sum(), p)
        simplexes.append(value)
        s = savgol(y)
        smooth.append(s)
        poly = np.polyfit(t - t.mean(), np.log(np.maximum(y - p[2], 1e-2)), 3)
        polys.append(np.polyval(poly, grid - t.mean())[::10])
        knots = np.linspace(t[0], t[-1], 12)
        shapes.append(spline(knots, np.interp(knots, t, s), grid[5:-5]))
        half.append(float(np.interp(np.array([0.0]), np.sort(y[:20].mean() / 2 - s), t)[0]))
        r2.append(1 - cost / ((y - y.mean()) ** 2).sum())
    fits, errors = np.stack(fits), np.stack(errors)
    pulls = (fits - truth) / errors
    t, y = T[0], Y[0]
    boot = np.zeros((len(picks), 3))
    for k in range(len(picks)):
        tb, yb = t[picks[k]], y[picks[k]]
        p = fits[0].copy()
        for _ in range(4):
            J = jacobian(p, tb)
            p = p + np.linalg.lstsq(J, yb - model(p, tb), rcond=None)[0]
        boot[k] = p
    interval = np.percentile(boot, [16, 84], axis=0)
    residual = Y - fits[:, :1] * np.exp(-fits[:, 1:2] * T) - fits[:, 2:]
    centred = residual - residual.mean(axis=1, keepdims=True)
    auto = np.array([float((row[1:] * row[:-1]).sum() / (row ** 2).sum()) for row in centred])
    runs = np.count_nonzero(np.diff(np.sign(centred), axis=1), axis=1)
    outliers = np.argwhere(np.abs(centred) > 2.5 * centred.std(axis=1, keepdims=True))
    area = ((Y[:, 1:] + Y[:, :-1]) / 2 * np.diff(T, axis=1)).sum(axis=1)
    peaks = [np.correlate(row - row.mean(), centred[0], mode="same").max() for row in Y]
    return dict(fits=np.asarray(fits), errors=np.asarray(errors), costs=np.asarray(costs), simplexes=np.asarray(simplexes), smooth=np.asarray(np.stack(smooth)),
                shapes=np.asarray(np.stack(shapes)), half=np.asarray(half), polys=np.asarray(np.stack(polys)), r2=np.asarray([float(v) for v in r2]),
                pulls=np.asarray(pulls), interval=np.asarray(interval), auto=np.asarray(auto), runs=np.asarray(runs), outliers=np.asarray(outliers),
                area=np.asarray(area), peaks=np.asarray([float(v) for v in peaks]), iterations=np.asarray(iterations))
