"""Strong gravitational lensing by a cluster: convergence, deflection by FFT, critical lines, caustics, arcs."""
import numpy as np

DEFAULT = 1024


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(11)
    nsub = 9
    halos = numpy.empty((nsub + 1, 5))          # x, y, strength, core, ellipticity
    halos[0] = (0.03, -0.05, 14.0, 1.2, 0.18)
    halos[1:, :2] = rng.normal(0.0, 9.0, (nsub, 2))
    halos[1:, 2] = rng.uniform(0.4, 1.6, nsub)
    halos[1:, 3] = rng.uniform(0.1, 0.4, nsub)
    halos[1:, 4] = rng.uniform(0.0, 0.25, nsub)
    sources = numpy.empty((6, 4))               # x, y, radius, flux
    sources[:, :2] = rng.normal(0.0, 4.0, (6, 2))
    sources[:, 2] = rng.uniform(0.3, 0.9, 6)
    sources[:, 3] = rng.lognormal(0.0, 0.5, 6)
    return {"halos": halos, "sources": sources, "fov": 100.0}


def convergence(x, y, halos):
    kappa = np.zeros_like(x)
    for xc, yc, b, core, e in halos:
        dx = x - xc
        dy = y - yc
        r2 = dx**2 / (1.0 + e) + dy**2 * (1.0 + e)
        kappa += 0.5 * b / np.sqrt(r2 + core**2)
    return kappa


def deflection(kappa, dx):
    """Solves laplacian(psi) = 2 kappa with periodic boundaries; returns alpha and the shears."""
    n = kappa.shape[0]
    k = 2.0 * np.pi * np.fft.fftfreq(n, d=dx)
    kx = 2.0 * np.pi * np.fft.rfftfreq(n, d=dx)[np.newaxis, :]
    ky = k[:, np.newaxis]
    k2 = kx**2 + ky**2
    k2[0, 0] = 1.0
    psi = -2.0 * np.fft.rfft2(kappa) / k2
    psi[0, 0] = 0.0
    alpha_x = np.fft.irfft2(1j * kx * psi, s=kappa.shape)
    alpha_y = np.fft.irfft2(1j * ky * psi, s=kappa.shape)
    gamma1 = 0.5 * np.fft.irfft2(-(kx**2 - ky**2) * psi, s=kappa.shape)
    gamma2 = np.fft.irfft2(-(kx * ky) * psi, s=kappa.shape)
    return alpha_x, alpha_y, gamma1, gamma2


def bilinear(image, u, v):
    """The image at the pixel positions u (column), v (row); zero outside."""
    n, m = image.shape
    i = np.floor(v).astype(np.int64)
    j = np.floor(u).astype(np.int64)
    inside = (i >= 0) & (i < n - 1) & (j >= 0) & (j < m - 1)
    i = np.clip(i, 0, n - 2)
    j = np.clip(j, 0, m - 2)
    fv = v - i
    fu = u - j
    value = ((1 - fv) * (1 - fu) * image[i, j] + (1 - fv) * fu * image[i, j + 1]
             + fv * (1 - fu) * image[i + 1, j] + fv * fu * image[i + 1, j + 1])
    return np.where(inside, value, 0.0)


def radial_profile(field, r, edges):
    which = np.digitize(r.ravel(), edges)
    total = np.bincount(which, weights=field.ravel(), minlength=len(edges) + 1)
    count = np.bincount(which, minlength=len(edges) + 1)
    return total[1:-1] / np.maximum(count[1:-1], 1), count[1:-1]


def main(asarray, N, data):
    fov = data["fov"]
    dx = fov / N
    halos = data["halos"]                       # plain host numbers: the loop runs over them
    sources = asarray(data["sources"])

    axis = (np.arange(N) - N / 2 + 0.5) * dx
    x, y = np.meshgrid(axis, axis)
    kappa = convergence(x, y, halos.tolist())
    ax, ay, g1, g2 = deflection(kappa - kappa.mean(), dx)
    mean_kappa = kappa.mean()
    ax += mean_kappa * x
    ay += mean_kappa * y

    beta_x = x - ax
    beta_y = y - ay
    det = (1.0 - kappa)**2 - g1**2 - g2**2
    mu = np.clip(1.0 / np.where(np.abs(det) < 1e-3, np.copysign(1e-3, det), det), -100.0, 100.0)

    # critical line: where the sign of det changes between neighbours
    sign = det > 0
    critical = np.zeros(det.shape, dtype=bool)
    critical[:, :-1] |= sign[:, :-1] != sign[:, 1:]
    critical[:-1, :] |= sign[:-1, :] != sign[1:, :]
    caustic_x = beta_x[critical]
    caustic_y = beta_y[critical]

    # inverse ray shooting onto a coarse source plane
    nsrc = 128
    half = 0.2 * fov
    col = np.floor((beta_x + half) / (2 * half) * nsrc).astype(int)
    row = np.floor((beta_y + half) / (2 * half) * nsrc).astype(int)
    hit = (col >= 0) & (col < nsrc) & (row >= 0) & (row < nsrc)
    rays = np.bincount(row[hit] * nsrc + col[hit], minlength=nsrc * nsrc).reshape(nsrc, nsrc)
    mu_map = rays / (2 * half / nsrc / dx)**2

    # the lensed picture of six Gaussian galaxies
    saxis = (np.arange(512) - 255.5) * (2 * half / 512)
    sx = np.exp(-0.5 * ((saxis[None, :] - sources[:, 0, None]) / sources[:, 2, None])**2)
    sy = np.exp(-0.5 * ((saxis[None, :] - sources[:, 1, None]) / sources[:, 2, None])**2)
    source_plane = np.einsum("k,ki,kj->ij", sources[:, 3], sy, sx)
    pixel = 2 * half / 512
    image = bilinear(source_plane, beta_x / pixel + 255.5, beta_y / pixel + 255.5)
    total_magnification = image.sum() * dx**2 / (source_plane.sum() * pixel**2)

    # Einstein radius: the mean convergence inside is one
    r = np.hypot(x, y)
    edges = np.linspace(0.0, 0.5 * fov, 101)
    profile, count = radial_profile(kappa, r, edges)
    inside = np.cumsum(profile * count) / np.cumsum(count)
    theta_e = np.interp(np.array([-1.0]), -inside, edges[1:])[0]
    arcs = image > 0.25 * image.max()
    mu_arcs = np.abs(mu[arcs])
    return {"kappa_profile": profile, "theta_e": theta_e, "critical_pixels": np.count_nonzero(critical),
            "caustic_extent": np.array([float(caustic_x.min()), float(caustic_x.max()),
                                        float(caustic_y.min()), float(caustic_y.max())]),
            "mu_histogram": np.histogram(np.log10(mu_map[mu_map > 0]), bins=20, range=(-1.0, 2.0))[0],
            "flux": image.sum(axis=0), "magnification": total_magnification,
            "negative_parity": (mu < 0).mean(), "arc_magnification": np.median(mu_arcs),
            "arc_percentiles": np.percentile(mu_arcs, [10, 50, 90])}
