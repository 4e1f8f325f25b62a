"""Gravity: the pull of prisms, inversion for densities with depth weights and focusing, continuation, Euler's depths.

N: stations along a side of the survey.
"""
import numpy as np

DEFAULT = 20
G = 6.674e-6                # mGal m^2 / kg with lengths in metres, densities in g/cm^3 give 1e3 of this
LAYERS = 7


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(19)
    cells = N + 2
    rho = numpy.zeros((LAYERS, cells, cells))
    a, b = cells // 3, 2 * cells // 3
    rho[1:4, a - 1:a + 2, a - 1:a + 2] = 0.8
    for k in range(1, 5):                                   # a dipping slab
        rho[k, b - 2:b + 2, b - 3 + k:b - 1 + k] = -0.5
    return dict(rho=rho, noise=rng.normal(size=N * N), height=20 + 15 * rng.random(N * N), trend=numpy.array([1.5, 0.4, -0.3]))


def corner(x, y, z):
    r = np.sqrt(x * x + y * y + z * z)
    return x * np.log(y + r) + y * np.log(x + r) - z * np.arctan2(x * y, z * r)


def kernel(station, xs, ys, zs, size):
    """Vertical pull at each station of each prism at unit density: signed sums over eight corners, by layers."""
    layers = []
    for top, bottom in zip(zs[:-1].tolist(), zs[1:].tolist()):
        total = np.zeros((len(station), ys.size * xs.size))
        for sx, dx in ((1.0, size), (-1.0, 0.0)):
            for sy, dy in ((1.0, size), (-1.0, 0.0)):
                for sz, z in ((1.0, bottom), (-1.0, top)):
                    x = (xs + dx)[None, None, :] - station[:, 0, None, None]
                    y = (ys + dy)[None, :, None] - station[:, 1, None, None]
                    depth = z + station[:, 2, None, None]
                    total -= sx * sy * sz * corner(x, y, depth).reshape(len(station), -1)
        layers.append(total)
    return 1e3 * G * np.concatenate(layers, axis=1)


def damped(A, d, W, alpha):
    """min |A x - d|^2 + alpha |W x|^2, solved in the space of the data."""
    B = A / W ** 2
    K = B @ A.T
    K[np.arange(len(d)), np.arange(len(d))] += alpha
    return np.linalg.solve(K, d) @ B


def focus(A, d, depth, sigma, bounds, rounds=4):
    """Reweighted inversion for compact bodies: alpha falls until the misfit is the noise's."""
    x, alpha, log = np.zeros(A.shape[1]), 1.0, []
    W = depth.copy()
    for k in range(rounds):
        for _ in range(12):
            trial = damped(A, d, W, alpha)
            misfit = float((((A @ trial - d) / sigma) ** 2).mean())
            if misfit < 1.0:
                break
            alpha *= 0.4
        x = np.clip(trial, bounds[0], bounds[1])
        log.append([misfit, alpha])
        W = depth / np.sqrt(x * x + 1e-2)
        W *= depth.mean() / W.mean()
        alpha *= 2.0
    return x, np.array(log)


def wavenumbers(n, spacing):
    k = 2 * np.pi * np.fft.fftfreq(n, spacing)
    return np.sqrt(k[:, None] ** 2 + k[None, :] ** 2), k


def continued(field, spacing, height):
    pad = field.shape[0] // 2
    wide = np.pad(field, pad, mode="reflect")
    k, _ = wavenumbers(wide.shape[0], spacing)
    out = np.fft.ifft2(np.fft.fft2(wide) * np.exp(-k * height)).real
    return out[pad:-pad, pad:-pad]


def derivatives(field, spacing):
    pad = field.shape[0] // 2
    wide = np.pad(field, pad, mode="reflect")
    k, _ = wavenumbers(wide.shape[0], spacing)
    gz = np.fft.ifft2(np.fft.fft2(wide) * k).real[pad:-pad, pad:-pad]
    gy, gx = np.gradient(field, spacing)
    return gx, gy, gz


def euler(field, index, window=5):
    """Source positions, in units of the spacing, from windows by least squares, kept where the fit is good."""
    gx, gy, gz = derivatives(field, 1.0)
    n, found = field.shape[0], []
    at = np.arange(float(n))
    for i in range(0, n - window + 1, 2):
        for j in range(0, n - window + 1, 2):
            cut = (slice(i, i + window), slice(j, j + window))
            y, x = np.meshgrid(at[cut[0]], at[cut[1]], indexing="ij")
            A = np.stack([gx[cut].ravel(), gy[cut].ravel(), gz[cut].ravel(), np.full(window * window, index)], axis=1)
            b = (x * gx[cut] + y * gy[cut] + index * field[cut]).ravel()
            M = A.T @ A
            p = np.linalg.solve(M + 1e-9 * np.trace(M) * np.eye(4), A.T @ b)
            spread = np.sqrt(((b - A @ p) ** 2).mean())
            found.append(np.stack([p[0], p[1], p[2], spread / np.abs(b).max()]))
    return np.stack(found)


def main(asarray, N, given):
    rho, noise, height, trend = (asarray(given[k]) for k in ("rho", "noise", "height", "trend"))
    spacing = 100.0
    line = (np.arange(N) + 1.5) * spacing
    y, x = np.meshgrid(line, line, indexing="ij")
    station = np.stack([x.ravel(), y.ravel(), height], axis=1)
    edge = np.arange(N + 2) * spacing
    zs = np.cumsum(np.concatenate([np.array([10.0]), 40.0 * 1.3 ** np.arange(LAYERS)]))
    A = kernel(station, edge, edge, zs, spacing)
    clean = A @ rho.ravel()
    sigma = 0.02 * np.abs(clean).max()
    plane = np.stack([np.ones(N * N), x.ravel() / line[-1], y.ravel() / line[-1]], axis=1)
    observed = clean + sigma * noise + plane @ trend
    rim = (x == line[0]) | (x == line[-1]) | (y == line[0]) | (y == line[-1])
    regional = np.linalg.lstsq(plane[rim.ravel()], observed[rim.ravel()], rcond=None)[0]
    d = observed - plane @ regional

    # depth weights by the sensitivities of the columns, singular values of the weighted kernel
    strength = np.sqrt((A * A).sum(axis=0))
    depth = np.sqrt(strength / strength.max())
    B = A / depth
    values, vectors = np.linalg.eigh(B @ B.T)
    values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1]
    part = vectors.T @ d
    alphas = values[0] * np.logspace(-7, 0, 22)
    shrink = values[None, :] / (values[None, :] + alphas[:, None])
    residual = (((1 - shrink) * part) ** 2).sum(axis=1)
    norm = (values * (part / (values + alphas[:, None])) ** 2).sum(axis=1)
    gcv = residual / (N * N - shrink.sum(axis=1)) ** 2
    best = int(gcv.argmin())
    u, v = np.log(residual), np.log(norm)
    du, dv = np.gradient(u), np.gradient(v)
    bend = (du * np.gradient(dv) - dv * np.gradient(du)) / (du * du + dv * dv) ** 1.5
    smooth = (B.T @ (vectors @ (part / (values + alphas[best])))) / depth

    # in units of the largest weighted sensitivity, so that alpha starts near one
    scale = float(np.sqrt(values[0]))
    body, log = focus(A / scale, d / scale, depth, sigma / scale, (-1.0, 1.0))
    model, wide = body.reshape(rho.shape), smooth.reshape(rho.shape)
    heavy, light = model > 0.3, model < -0.2
    middle = 0.5 * (zs[1:] + zs[:-1])
    where = np.stack([np.broadcast_to(v, model.shape) for v in (middle[:, None, None], edge[None, :, None], edge[None, None, :])])
    centre = np.stack([(where * (np.abs(model) * m)).sum(axis=(1, 2, 3)) / np.maximum((np.abs(model) * m).sum(), 1e-12) for m in (heavy, light)])
    field = d.reshape(N, N)
    high = continued(field, spacing, 150.0)
    gx, gy, gz = derivatives(high, spacing)
    tilt = np.arctan2(gz, np.hypot(gx, gy))
    points = euler(high, 2.0)
    good = points[points[:, 3] < np.median(points[:, 3])]
    return dict(clean=clean, regional=regional, gcv=gcv, best=best, bend=bend[2:-2], smooth=smooth[::9], log=log[:, 1], body=body[::5], centre=centre,
                similar=np.corrcoef(np.stack([body, smooth, rho.ravel()])), layers=np.abs(model).sum(axis=(1, 2)), peak=wide.max(), high=high,
                tilt=tilt[2:-2, 2:-2], depth=np.median(good[:, 2]), good=len(good), values=np.log10(values[:40]))
