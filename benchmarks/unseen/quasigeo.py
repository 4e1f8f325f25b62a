"""Two-layer quasi-geostrophic turbulence on a beta plane: pseudo-spectral, exponential filter, adaptive third-order Adams-Bashforth, drifting tracers. N: points a side."""
import numpy
import numpy as np

DEFAULT = 128
STEPS, TRACERS = 120, 20000


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(8)
    return dict(q=rng.normal(0, 1e-1, (2, N, N)), where=rng.uniform(0, 2 * numpy.pi, (TRACERS, 2)))


class Model:
    beta, drag, kd, depth, shear = 4.0, 0.4, 6.0, 0.25, 1.0

    def __init__(self, q):
        n = q.shape[-1]
        self.n = n
        self.k = np.fft.rfftfreq(n, 1 / n)[None, :]
        self.l = np.fft.fftfreq(n, 1 / n)[:, None]
        self.k2 = self.k ** 2 + self.l ** 2
        F1, F2 = self.kd ** 2 / (1 + self.depth), self.depth * self.kd ** 2 / (1 + self.depth)
        S = np.zeros(self.k2.shape + (2, 2))
        S[..., 0, 0], S[..., 0, 1] = -self.k2 - F1, F1
        S[..., 1, 0], S[..., 1, 1] = F2, -self.k2 - F2
        S[0, 0] = np.eye(2)
        self.invert = np.linalg.inv(S)
        self.invert[0, 0] = 0
        self.U = np.array([self.shear, 0.0])
        self.Qy = self.beta + np.array([F1, -F2]) * self.shear
        wave = np.sqrt(self.k2) * 2 / n
        self.filter = np.where(wave < 0.65, 1.0, np.exp(-23.6 * (np.maximum(wave, 0.65) - 0.65) ** 4))
        self.qh = np.fft.rfft2(q)
        self.qh[:, 0, 0] = 0
        self.past = []
        self.t, self.dt = 0.0, 0.004

    def psi(self, qh):
        return np.einsum("lkij,jlk->ilk", self.invert, qh)

    def velocity(self, ph):
        u = np.fft.irfft2(-1j * self.l * ph, s=(self.n, self.n))
        v = np.fft.irfft2(1j * self.k * ph, s=(self.n, self.n))
        return u + self.U[:, None, None], v

    def tendency(self):
        ph = self.psi(self.qh)
        u, v = self.velocity(ph)
        q = np.fft.irfft2(self.qh, s=(self.n, self.n))
        dq = -1j * self.k * np.fft.rfft2(u * q) - 1j * self.l * np.fft.rfft2(v * q)
        dq -= self.Qy[:, None, None] * 1j * self.k * ph
        dq[1] += self.drag * self.k2 * ph[1]
        return dq, u, v, ph

    def step(self):
        dq, u, v, ph = self.tendency()
        self.past = [dq] + self.past[:2]
        if len(self.past) == 1:
            add = dq
        elif len(self.past) == 2:
            add = 1.5 * self.past[0] - 0.5 * self.past[1]
        else:
            add = (23 * self.past[0] - 16 * self.past[1] + 5 * self.past[2]) / 12
        self.qh = (self.qh + self.dt * add) * self.filter
        self.t += self.dt
        return u, v, ph


def bilinear(f, x, y, n):
    """Periodic interpolation of f[y, x] at places in cells."""
    i, j = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
    a, b = x - i, y - j
    i, j, i1, j1 = i % n, j % n, (i + 1) % n, (j + 1) % n
    return (1 - b) * ((1 - a) * f[j, i] + a * f[j, i1]) + b * ((1 - a) * f[j1, i] + a * f[j1, i1])


def advect(place, u, v, dt, n):
    h = 2 * np.pi / n
    x, y = place[:, 0] / h, place[:, 1] / h
    ux, vy = bilinear(u, x, y, n), bilinear(v, x, y, n)
    xm, ym = x + 0.5 * dt * ux / h, y + 0.5 * dt * vy / h
    step = np.stack([bilinear(u, xm, ym, n), bilinear(v, xm, ym, n)], axis=1)
    return place + dt * step


def spectrum(ph, model):
    """Kinetic energy of each layer by whole wavenumber."""
    density = model.k2 * np.abs(ph) ** 2 / model.n ** 4
    density[:, :, 1:-1] *= 2
    ring = np.rint(np.sqrt(model.k2)).astype(np.int64).ravel()
    return np.stack([np.bincount(ring, weights=density[k].ravel(), minlength=model.n)[:model.n // 2] for k in range(2)]) / 2


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    model = Model(asarray(data["q"]) * 20)
    place = asarray(data["where"])
    first = place.copy()
    log, times, halved = [], [], 0
    for n in range(STEPS):
        u, v, ph = model.step()
        place = advect(place, u[0], v[0], model.dt, N)
        if n % 10 == 9:
            speed = float(np.sqrt(u ** 2 + v ** 2).max())
            courant = speed * model.dt * N / (2 * np.pi)
            if courant > 0.6:
                model.dt /= 2
                model.past = []
                halved += 1
            elif not np.isfinite(speed):
                raise FloatingPointError("unstable")
            ke = 0.5 * (u ** 2 + v ** 2).mean(axis=(1, 2))
            pe = 0.5 * ((ph[0] - ph[1]) * (ph[0] - ph[1]).conj()).real.sum() * model.kd ** 2 / N ** 4
            log.append(np.concatenate([ke, pe[None], (u[0] * v[0]).mean()[None]]))
            times.append(model.t)
    spread = place - first
    moved = (spread ** 2).mean(axis=0) - spread.mean(axis=0) ** 2
    cells = np.floor(place % (2 * np.pi) / (2 * np.pi) * 16).astype(int)
    crowd = np.bincount(cells[:, 1] * 16 + cells[:, 0], minlength=256).reshape(16, 16)
    q = np.fft.irfft2(model.qh, s=(N, N))
    jets = u.mean(axis=2)
    flux = (v * (q - q.mean(axis=2, keepdims=True))).mean(axis=2)
    skew = ((q - q.mean()) ** 3).mean() / q.std() ** 3
    return dict(log=np.stack(log), times=np.array(times), halved=halved, moved=moved, crowd=crowd.std(), q=q[0], jets=jets, flux=flux, spectrum=spectrum(ph,
                model), skew=skew)
