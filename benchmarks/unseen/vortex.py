"""Two-dimensional Navier-Stokes, pseudo-spectral, vorticity form: Runge-Kutta 3, two-thirds rule, spectra, a passive tracer. N: cells (side = 8 sqrt(N))."""
import numpy
import numpy as np

DEFAULT = 256
STEPS = 30


def side(N):
    return 2 * int(round(4 * N ** 0.5))


def inputs(N=DEFAULT):
    n = side(N)
    rng = numpy.random.default_rng(21)
    k = numpy.fft.fftfreq(n, 1 / n)
    kx, ky = numpy.meshgrid(k, numpy.arange(n // 2 + 1), indexing="ij")
    kk = numpy.hypot(kx, ky)
    amplitude = kk ** 2 / (1 + (kk / 6) ** 6)
    phase = numpy.exp(2j * numpy.pi * rng.random(kk.shape))
    omega = numpy.fft.irfft2(amplitude * phase, s=(n, n))
    y, x = numpy.mgrid[:n, :n] * 2 * numpy.pi / n
    return dict(omega=8 * omega / omega.std(), tracer=numpy.sin(x) * numpy.cos(2 * y))


class Solver:
    def __init__(self, n, nu=2e-3, drag=0.05):
        self.n = n
        k = np.fft.fftfreq(n) * n
        self.kx = np.arange(n // 2 + 1)[None, :].astype(float)
        self.ky = k[:, None]
        self.k2 = self.kx ** 2 + self.ky ** 2
        self.inv = np.where(self.k2 > 0, 1.0 / np.maximum(self.k2, 1e-30), 0.0)
        kmax = n // 3
        self.keep = (np.abs(self.kx) < kmax) & (np.abs(self.ky) < kmax)
        self.nu, self.drag = nu, drag

    def velocity(self, w):
        psi = w * self.inv
        u = np.fft.irfft2(1j * self.ky * psi, s=(self.n, self.n))
        v = np.fft.irfft2(-1j * self.kx * psi, s=(self.n, self.n))
        return u, v

    def rhs(self, w, c):
        u, v = self.velocity(w)
        wx = np.fft.irfft2(1j * self.kx * w, s=(self.n, self.n))
        wy = np.fft.irfft2(1j * self.ky * w, s=(self.n, self.n))
        dw = -np.fft.rfft2(u * wx + v * wy) - self.nu * self.k2 * w - self.drag * w
        cx = np.fft.irfft2(1j * self.kx * c, s=(self.n, self.n))
        cy = np.fft.irfft2(1j * self.ky * c, s=(self.n, self.n))
        dc = -np.fft.rfft2(u * cx + v * cy) - self.nu * self.k2 * c
        dw[~self.keep] = 0
        dc[~self.keep] = 0
        return dw, dc


def main(asarray, N=DEFAULT, data=None, steps=STEPS):
    data = data or inputs(N)
    omega, tracer = asarray(data["omega"]), asarray(data["tracer"])
    n = side(N)
    solver = Solver(n)
    w, c = np.fft.rfft2(omega), np.fft.rfft2(tracer)
    w *= solver.keep
    dt = 0.25 * 2 * 3.14159 / n / 3.0
    t = 0.0
    energy, enstrophy, cfl = [], [], []
    for step in range(steps):
        a, ac = solver.rhs(w, c)
        w1, c1 = w + dt * a, c + dt * ac
        b, bc = solver.rhs(w1, c1)
        w2, c2 = 0.75 * w + 0.25 * (w1 + dt * b), 0.75 * c + 0.25 * (c1 + dt * bc)
        d, dc = solver.rhs(w2, c2)
        w = w / 3 + 2 / 3 * (w2 + dt * d)
        c = c / 3 + 2 / 3 * (c2 + dt * dc)
        t += dt
        if step % 5 == 0:
            u, v = solver.velocity(w)
            energy.append(0.5 * np.mean(u ** 2 + v ** 2))
            enstrophy.append(0.5 * np.mean(np.fft.irfft2(w, s=(n, n)) ** 2))
            speed = float(np.max(np.hypot(u, v)))
            cfl.append(speed * dt * n / (2 * np.pi))
            dt = min(dt, 0.4 * 2 * np.pi / n / speed)
    u, v = solver.velocity(w)
    omega = np.fft.irfft2(w, s=(n, n))
    shell = np.sqrt(solver.k2).round().astype(int)
    power = np.abs(w) ** 2 * solver.inv
    power[:, 1:-1] *= 2
    spectrum = np.bincount(shell.ravel(), weights=power.ravel(), minlength=n // 2)[:n // 2] / n ** 4
    ks = np.arange(1, n // 6)
    slope = np.polyfit(np.log(ks), np.log(spectrum[1:n // 6]), 1)
    strain = (np.roll(u, -1, axis=1) - np.roll(u, 1, axis=1)) ** 2 + (np.roll(v, -1, axis=1) + np.roll(u, -1, axis=0)) ** 2
    okubo = np.percentile(strain - omega ** 2, [5, 25, 50, 75, 95])
    pdf, edges = np.histogram(omega, bins=30, density=True)
    return dict(omega=np.asarray(omega), tracer=np.asarray(np.fft.irfft2(c, s=(n, n))), energy=np.asarray([float(e) for e in energy]),
                enstrophy=np.asarray([float(e) for e in enstrophy]), cfl=np.asarray(cfl), spectrum=np.asarray(spectrum), slope=np.asarray(slope),
                okubo=np.asarray(okubo), pdf=np.asarray(pdf), edges=np.asarray(edges))
