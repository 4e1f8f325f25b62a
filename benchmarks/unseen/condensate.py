"""Gross-Pitaevskii equation in a rotating anisotropic trap: ground state by imaginary time, then real time by Strang splitting. N: grid."""
import numpy
import numpy as np

DEFAULT = 128
RELAX, STEPS = 60, 80


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(31)
    L = 16.0
    x = (numpy.arange(N) - N / 2) * L / N
    X, Y = numpy.meshgrid(x, x, indexing="ij")
    psi = numpy.exp(-(X ** 2 + 1.5 * Y ** 2) / 4) * (1 + 0.05 * rng.normal(size=(N, N))) + 0j
    return dict(x=x, psi=psi, L=L)


class Grid:
    def __init__(self, x, L, N):
        self.dx = L / N
        k = 2 * np.pi * np.fft.fftfreq(N, d=self.dx)
        self.X, self.Y = np.meshgrid(x, x, indexing="ij")
        self.KX, self.KY = np.meshgrid(k, k, indexing="ij")
        self.T = 0.5 * (self.KX ** 2 + self.KY ** 2)

    def integrate(self, f):
        return np.sum(f) * self.dx ** 2

    def normalise(self, psi):
        return psi / np.sqrt(self.integrate(np.abs(psi) ** 2))

    def gradient(self, psi):
        hat = np.fft.fft2(psi)
        return np.fft.ifft2(1j * self.KX * hat), np.fft.ifft2(1j * self.KY * hat)


def potential(grid, wx, wy, depth):
    V = 0.5 * (wx ** 2 * grid.X ** 2 + wy ** 2 * grid.Y ** 2)
    r = np.hypot(grid.X - 1.0, grid.Y)
    return V + depth * np.exp(-2 * r ** 2)


def energies(grid, psi, V, g):
    n = np.abs(psi) ** 2
    px, py = grid.gradient(psi)
    kinetic = 0.5 * grid.integrate(np.abs(px) ** 2 + np.abs(py) ** 2)
    trap = grid.integrate(V * n)
    interaction = 0.5 * g * grid.integrate(n ** 2)
    Lz = grid.integrate(np.real(np.conj(psi) * -1j * (grid.X * py - grid.Y * px)))
    return kinetic, trap, interaction, Lz


def main(asarray, N=DEFAULT, data=None, steps=STEPS):
    data = data or inputs(N)
    x, psi = asarray(data["x"]), asarray(data["psi"])
    grid = Grid(x, data["L"], N)
    g, dt = 80.0, 0.004
    V = potential(grid, 1.0, 1.3, 4.0)
    psi = grid.normalise(psi)
    expT = np.exp(-grid.T * dt)
    mu_old, mus = 0.0, []
    for it in range(RELAX):
        psi = psi * np.exp(-0.5 * dt * (V + g * np.abs(psi) ** 2))
        psi = np.fft.ifft2(np.fft.fft2(psi) * expT)
        psi = psi * np.exp(-0.5 * dt * (V + g * np.abs(psi) ** 2))
        norm = grid.integrate(np.abs(psi) ** 2)
        psi /= np.sqrt(norm)
        if it % 10 == 9:
            mu = float(-np.log(norm) / (2 * dt))
            mus.append(mu)
            if abs(mu - mu_old) < 1e-5 * abs(mu):
                break
            mu_old = mu
    ground = np.abs(psi) ** 2
    # kick, remove the obstacle, imprint a vortex, evolve in real time
    phase = np.arctan2(grid.Y - 0.3, grid.X + 0.2)
    psi = grid.normalise(psi * np.exp(1j * (phase + 0.5 * grid.X)))
    psi0 = psi.copy()
    V = potential(grid, 1.0, 1.3, 0.0)
    expT = np.exp(-1j * grid.T * dt)
    expT[np.abs(grid.KX) + np.abs(grid.KY) > 1.6 * np.max(np.abs(grid.KX))] = 0
    centre, width, table, overlap = np.zeros((steps, 2)), np.zeros((steps, 2)), [], np.zeros(steps, dtype=complex)
    for it in range(steps):
        psi *= np.exp(-0.5j * dt * (V + g * np.abs(psi) ** 2))
        psi = np.fft.ifft2(np.fft.fft2(psi) * expT)
        psi *= np.exp(-0.5j * dt * (V + g * np.abs(psi) ** 2))
        n = np.abs(psi) ** 2
        centre[it, 0], centre[it, 1] = grid.integrate(grid.X * n), grid.integrate(grid.Y * n)
        width[it] = np.sqrt(np.stack([grid.integrate(grid.X ** 2 * n), grid.integrate(grid.Y ** 2 * n)]) - centre[it] ** 2)
        overlap[it] = np.vdot(psi0, psi) * grid.dx ** 2
        if it % 10 == 0:
            table.append(energies(grid, psi, V, g))
    px, py = grid.gradient(psi)
    jx, jy = np.imag(np.conj(psi) * px), np.imag(np.conj(psi) * py)
    momentum = np.fft.fftshift(np.abs(np.fft.fft2(psi)) ** 2)
    shell = np.sqrt(np.fft.fftshift(grid.KX) ** 2 + np.fft.fftshift(grid.KY) ** 2)
    spectrum, edges = np.histogram(shell.ravel(), bins=24, range=(0, 12), weights=momentum.ravel())
    return dict(psi=np.asarray(psi), ground=np.asarray(ground), mu=np.asarray(mus), centre=np.asarray(centre), width=np.asarray(width),
                energies=np.asarray(table), overlap=np.asarray(overlap), current=np.asarray(np.stack([jx, jy])), spectrum=np.asarray(spectrum))
