"""Fields on the sphere: Gauss-Legendre nodes, Legendre tables by recursion, spherical harmonic transforms, spectra, filters, a barotropic Rossby-Haurwitz wave. N: truncation."""
import numpy
import numpy as np

DEFAULT = 47
STEPS, RADIUS, OMEGA = 54, 6.371e6, 7.292e-5


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(4102)
    n = numpy.arange(N + 1)
    power = (1.0 + n) ** -1.5
    c = rng.normal(size=(N + 1, N + 1)) + 1j * rng.normal(size=(N + 1, N + 1))
    c[0] = c[0].real
    m, l = numpy.meshgrid(n, n, indexing="ij")
    c = numpy.where(l >= m, c * power[l], 0)
    return dict(rough=c.astype(numpy.complex128), lon=rng.uniform(0, 2 * numpy.pi, 700), lat=numpy.arcsin(rng.uniform(-1, 1, 700)))


def gauss(n):
    """Nodes and weights by Newton's steps on the Legendre polynomial."""
    x = np.cos(np.pi * (np.arange(1, n + 1) - 0.25) / (n + 0.5))
    for _ in range(6):
        p0, p1 = np.ones(n), x.copy()
        for k in range(2, n + 1):
            p0, p1 = p1, ((2 * k - 1) * x * p1 - (k - 1) * p0) / k
        slope = n * (x * p1 - p0) / (x * x - 1)
        x = x - p1 / slope
    return x, 2.0 / ((1 - x * x) * slope ** 2)


def legendre(x, top):
    """Normalised associated Legendre functions, table[m, l, point] with l to top + 1."""
    table = np.zeros((top + 1, top + 2, x.size))
    s = np.sqrt(1 - x * x)
    table[0, 0] = np.sqrt(0.5)
    for m in range(1, top + 1):
        table[m, m] = -np.sqrt((2 * m + 1) / (2 * m)) * s * table[m - 1, m - 1]
    for m in range(top + 1):
        table[m, m + 1] = np.sqrt(2 * m + 3) * x * table[m, m]
    for l in range(2, top + 2):
        m = np.arange(0, min(l - 1, top + 1))
        a = np.sqrt((4.0 * l * l - 1) / (l * l - m * m))
        b = np.sqrt(((l - 1.0) ** 2 - m * m) / (4.0 * (l - 1) ** 2 - 1))
        table[m, l] = a[:, None] * (x * table[m, l - 1] - b[:, None] * table[m, l - 2])
    return table


class Sphere:
    def __init__(self, top):
        self.top = top
        self.nlat = 3 * top // 2 + 2
        self.nlon = 2 * self.nlat
        self.mu, self.weight = gauss(self.nlat)
        full = legendre(self.mu, top)
        self.table = full[:, :-1].copy()
        self.l = np.arange(top + 1)
        self.m = np.arange(top + 1)
        m, l = self.m[:, None].astype(float), np.arange(top + 2)[None, :].astype(float)
        eps = np.sqrt(np.maximum(l * l - m * m, 0.0) / (4 * l * l - 1 + 2 * (l == 0)))
        # (1 - mu^2) dP/dmu
        slope = np.zeros_like(self.table)
        slope[:, 1:] += ((l[:, 1:-1] + 1) * eps[:, 1:-1])[:, :, None] * full[:, :-2]
        slope -= (l[:, :-1] * eps[:, 1:])[:, :, None] * full[:, 1:]
        slope *= (np.arange(top + 1)[:, None] <= np.arange(top + 1))[:, :, None]
        self.slope = slope
        self.laplace = -(self.l * (self.l + 1.0)) / RADIUS ** 2
        self.inverse = np.where(self.l > 0, 1.0 / np.where(self.l > 0, self.laplace, 1.0), 0.0)
        self.cos2 = 1 - self.mu ** 2

    def analyse(self, grid):
        f = np.fft.rfft(grid, axis=1)[:, :self.top + 1] / self.nlon
        return np.einsum("mlj,j,jm->ml", self.table, self.weight, f, optimize=True) * np.sqrt(2 * np.pi)

    def synthesise(self, spec, table=None):
        f = np.einsum("mlj,ml->jm", self.table if table is None else table, spec) / np.sqrt(2 * np.pi)
        padded = np.zeros((f.shape[0], self.nlon // 2 + 1), dtype=complex)
        padded[:, :self.top + 1] = f
        return np.fft.irfft(padded * self.nlon, n=self.nlon, axis=1)

    def winds(self, zeta):
        """U = u cos(lat), V = v cos(lat) from the vorticity."""
        psi = zeta * self.inverse
        U = -self.synthesise(psi, self.slope) / RADIUS
        V = self.synthesise(1j * self.m[:, None] * psi) / RADIUS
        return U, V

    def tendency(self, zeta):
        U, V = self.winds(zeta)
        absolute = self.synthesise(zeta) + (2 * OMEGA * self.mu)[:, None]
        A, B = U * absolute, V * absolute
        scale = self.weight / (RADIUS * self.cos2)
        fa = np.fft.rfft(A, axis=1)[:, :self.top + 1] / self.nlon
        fb = np.fft.rfft(B, axis=1)[:, :self.top + 1] / self.nlon
        part = np.einsum("mlj,jm->ml", self.table, fa * scale[:, None])
        other = np.einsum("mlj,jm->ml", self.slope, fb * scale[:, None])
        return (other - 1j * self.m[:, None] * part) * np.sqrt(2 * np.pi)


def spectrum(c):
    power = np.abs(c) ** 2
    return power[0] + 2 * power[1:].sum(axis=0)


def evaluate(c, lon, lat):
    top = len(c) - 1
    P = legendre(np.sin(lat), top)[:, :-1]
    f = np.einsum("mlj,ml->mj", P, c) / np.sqrt(2 * np.pi)
    wave = np.exp(1j * np.arange(top + 1)[:, None] * lon)
    parts = (f * wave).real
    return parts[0] + 2 * parts[1:].sum(axis=0)


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    rough, lon, lat = asarray(data["rough"]), asarray(data["lon"]), asarray(data["lat"])
    s = Sphere(N)
    lam = np.linspace(0, 2 * np.pi, s.nlon, endpoint=False)
    ortho = np.einsum("lj,j,kj->lk", s.table[2], s.weight, s.table[2])[2:, 2:]
    field = s.synthesise(rough)
    back = s.analyse(field)
    error = np.abs(back - rough).max()
    area = (s.weight[:, None] * np.ones(s.nlon)) * (2 * np.pi / s.nlon)
    mean_square = (area * field ** 2).sum()
    smooth = rough * np.exp(-((s.l / (0.4 * N)) ** 2))
    dust = evaluate(smooth, lon, lat)
    turned = rough * np.exp(-1j * s.m * 0.7)[:, None]
    moved = evaluate(turned, lon, lat) - evaluate(rough, lon - 0.7, lat)
    # a Rossby-Haurwitz wave with a little noise
    R, K, w = 4, 7.848e-6, 7.848e-6
    cosl, sinl = np.sqrt(s.cos2), s.mu
    psi = -(RADIUS ** 2) * w * sinl[:, None] + RADIUS ** 2 * K * (cosl ** R * sinl)[:, None] * np.cos(R * lam)
    zeta = s.analyse(psi) * s.laplace
    zeta = zeta + 1e-9 * smooth * (s.l > 0)
    dt, k4 = 1200.0, 1.0 / (86400 * s.laplace[-1] ** 2)
    damp = np.exp(-dt * k4 * s.laplace ** 2)
    energy, enstrophy, track = [], [], []
    for n in range(STEPS):
        k1 = s.tendency(zeta)
        k2 = s.tendency(zeta + 0.5 * dt * k1)
        k3 = s.tendency(zeta + 0.75 * dt * k2)
        zeta = zeta + dt / 9 * (2 * k1 + 3 * k2 + 4 * k3)
        zeta *= damp
        per = spectrum(zeta)
        energy.append(-0.5 * (per * s.inverse).sum())
        enstrophy.append(0.5 * per.sum())
        if n % 6 == 5:
            track.append(np.angle(zeta[R, R + 1]))
    U, V = s.winds(zeta)
    u = U / np.sqrt(s.cos2)[:, None]
    speed = np.hypot(u, V / np.sqrt(s.cos2)[:, None])
    final = s.synthesise(zeta)
    jet = np.argmax(u.mean(axis=1))
    bands = np.linspace(-1, 1, 9)
    zonal = np.interp(bands, s.mu[::-1].copy(), u.mean(axis=1)[::-1].copy())
    phase = np.unwrap(np.stack(track))
    warm = final > np.percentile(final, 90)
    return dict(mu=s.mu, weight=s.weight, ortho=ortho, field=field, error=float(error) < 1e-10, parseval=mean_square / spectrum(rough).sum(), spectrum=spectrum(rough), dust=dust,
                moved=np.isclose(moved, 0, atol=1e-9), energy=np.stack(energy), enstrophy=np.stack(enstrophy), phase=phase, final=final, speed=speed.max(), jet=jet, zonal=zonal,
                warm=(area * warm).sum() / (4 * np.pi), bump=back[:6, :6])
