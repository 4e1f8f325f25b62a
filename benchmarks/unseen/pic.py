"""Electrostatic particle-in-cell plasma in one dimension: the two-stream instability."""
import numpy as np

DEFAULT = 40000         # particles
CELLS = 128
STEPS = 150


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(314)
    length = 4.0 * numpy.pi
    x = (numpy.arange(N) + 0.5) * length / N
    x = (x + 0.02 * numpy.sin(2 * numpy.pi * x / length)) % length
    v = rng.normal(0.0, 0.1, N)
    v += numpy.where(numpy.arange(N) % 2 == 0, 1.0, -1.0)
    return x, v, length


class Plasma:
    def __init__(self, x, v, length, cells):
        self.x = x
        self.v = v
        self.length = length
        self.cells = cells
        self.dx = length / cells
        self.charge = -length / len(x)
        k = 2.0 * np.pi * np.fft.rfftfreq(cells, d=self.dx)
        self.k = k
        self.inv_k2 = np.zeros_like(k)
        self.inv_k2[1:] = 1.0 / k[1:]**2
        self.smooth = np.cos(0.5 * k * self.dx)**2

    def weights(self):
        s = self.x / self.dx
        left = np.floor(s).astype(np.intp)
        frac = s - left
        left %= self.cells
        right = np.where(left + 1 == self.cells, 0, left + 1)
        return left, right, frac

    def deposit(self, left, right, frac):
        rho = np.bincount(left, weights=1.0 - frac, minlength=self.cells)
        rho += np.bincount(right, weights=frac, minlength=self.cells)
        return rho * (self.charge / self.dx) + 1.0

    def field(self, rho):
        phi_k = np.fft.rfft(rho) * self.smooth * self.inv_k2
        phi = np.fft.irfft(phi_k, n=self.cells)
        E = -(np.roll(phi, -1) - np.roll(phi, 1)) / (2.0 * self.dx)
        return E, phi

    def accelerate(self, dt):
        left, right, frac = self.weights()
        E, phi = self.field(self.deposit(left, right, frac))
        force = (1.0 - frac) * E[left] + frac * E[right]
        self.v -= dt * force
        return E, phi

    def drift(self, dt):
        self.x += dt * self.v
        self.x %= self.length


def growth_rate(t, energy):
    """Slope of log(energy)/2 over the steepest stretch."""
    logs = 0.5 * np.log(energy)
    width = 30
    slopes = []
    for start in range(0, len(t) - width, 5):
        a, b = np.polyfit(t[start:start + width], logs[start:start + width], 1)
        slopes.append(a)
    slopes = np.stack(slopes)
    return slopes.max(), slopes


def phase_space(x, v, length, nx=32, nv=40, vmax=3.0):
    H, xe, ve = np.histogram2d(x, v, bins=[nx, nv], range=[[0.0, length], [-vmax, vmax]])
    return H / H.sum(), 0.5 * (ve[1:] + ve[:-1])


def main(asarray, N, data):
    x, v, length = data
    plasma = Plasma(asarray(x).copy(), asarray(v).copy(), length, CELLS)
    dt = 0.1
    kinetic = np.zeros(STEPS)
    electric = np.zeros(STEPS)
    momentum = np.zeros(STEPS)
    modes = np.zeros((STEPS, 4), dtype=complex)
    plasma.accelerate(-0.5 * dt)
    for n in range(STEPS):
        old = plasma.v.copy()
        E, phi = plasma.accelerate(dt)
        mid = 0.5 * (old + plasma.v)
        kinetic[n] = 0.5 * abs(plasma.charge) * np.sum(mid**2)
        momentum[n] = abs(plasma.charge) * mid.sum()
        electric[n] = 0.5 * plasma.dx * np.dot(E, E)
        modes[n] = np.fft.rfft(E)[1:5] / CELLS
        plasma.drift(dt)

    t = np.arange(STEPS) * dt
    rate, slopes = growth_rate(t, electric)
    f, vc = phase_space(plasma.x, plasma.v, length)
    fv = f.sum(axis=0)
    mean = (fv * vc).sum()
    trapped = np.abs(plasma.v) < 0.5
    total = kinetic + electric
    onset = np.argmax(electric > 0.1 * electric.max())
    return {"kinetic": kinetic, "electric": electric, "drift": np.abs(total - total[0]).max() / total[0] + 1.0,
            "rate": rate, "slopes": slopes, "modes": np.abs(modes), "spread": np.sqrt((fv * (vc - mean)**2).sum()),
            "trapped": trapped.mean(), "onset": t[onset], "phi": phi, "field": E,
            "entropy": -np.sum(f[f > 0] * np.log(f[f > 0]))}
