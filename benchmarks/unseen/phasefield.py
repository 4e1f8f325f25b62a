"""Cahn-Hilliard spinodal decomposition and Allen-Cahn coarsening with semi-implicit Fourier steps and structure factors.

N is the number of grid points along each side of the periodic square.
"""
import numpy as np

DEFAULT = 128


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(5)
    c0 = 0.05 * rng.standard_normal((N, N))
    c0 += -0.1 - c0.mean()
    x = (numpy.arange(N) + 0.5) / N - 0.5
    rad = numpy.hypot(x[:, None], x[None, :])
    drop = numpy.tanh((0.35 - rad) * N / 3.0)
    return c0, drop


class Spectrum:
    """Wave numbers and the binning of |k| into shells."""

    def __init__(self, n, dx):
        kx = 2 * np.pi * np.fft.fftfreq(n, dx)
        ky = 2 * np.pi * np.fft.rfftfreq(n, dx)
        self.n = n
        self.kx, self.ky = kx[:, None], ky[None, :]
        self.k2 = self.kx ** 2 + self.ky ** 2
        ix = np.rint(np.fft.fftfreq(n) * n).astype(np.int64)
        iy = np.arange(n // 2 + 1)
        r2 = ix[:, None] ** 2 + iy[None, :] ** 2
        self.shell = np.floor(np.sqrt(r2) + 0.5).astype(np.int64)
        # the half spectrum counts twice except for its first and last column
        weight = np.full(n // 2 + 1, 2.0)
        weight[0] = 1.0
        if n % 2 == 0:
            weight[-1] = 1.0
        self.weight = np.broadcast_to(weight, r2.shape)
        self.dealias = (np.abs(ix)[:, None] <= n // 3) & (iy[None, :] <= n // 3)

    def structure_factor(self, fhat):
        power = (fhat.real ** 2 + fhat.imag ** 2) / self.n ** 2
        power[0, 0] = 0.0
        nb = self.n // 2
        s = self.shell.ravel()
        num = np.bincount(s, weights=(power * self.weight).ravel())
        den = np.bincount(s, weights=self.weight.ravel())
        return num[:nb] / den[:nb]


def free_energy(sp, c, chat, kappa, cell):
    gx = np.fft.irfft2(1j * sp.kx * chat, s=c.shape)
    gy = np.fft.irfft2(1j * sp.ky * chat, s=c.shape)
    bulk = 0.25 * (c * c - 1.0) ** 2
    return (bulk + 0.5 * kappa * (gx * gx + gy * gy)).sum() * cell


def cahn_hilliard(sp, c, dt, steps, kappa, stab, every):
    chat = np.fft.rfft2(c)
    denom = 1.0 + dt * (stab * sp.k2 + kappa * sp.k2 ** 2)
    energies, factors, interface = [], [], []
    work = np.empty_like(c)
    for step in range(steps):
        np.multiply(c, c, out=work)
        work -= 1.0 + stab
        work *= c
        what = np.fft.rfft2(work)
        what *= sp.dealias
        chat -= dt * sp.k2 * what
        chat /= denom
        c = np.fft.irfft2(chat, s=c.shape)
        if (step + 1) % every == 0:
            energies.append(free_energy(sp, c, chat, kappa, 1.0))
            factors.append(sp.structure_factor(chat))
            positive = c > 0
            edges = (positive != np.roll(positive, 1, axis=0)).sum() + (positive != np.roll(positive, 1, axis=1)).sum()
            interface.append(edges)
    return c, np.stack(energies), np.stack(factors), np.stack(interface)


def allen_cahn(sp, phi, dt, steps, eps2, every):
    """Strang splitting: exact reaction half steps around an exact heat step."""
    heat = np.exp(-dt * eps2 * sp.k2)
    decay = np.exp(-dt)
    area = []
    for step in range(steps):
        phi = phi / np.sqrt(decay + (1.0 - decay) * phi ** 2)
        phi = np.fft.irfft2(heat * np.fft.rfft2(phi), s=phi.shape)
        phi = phi / np.sqrt(decay + (1.0 - decay) * phi ** 2)
        if (step + 1) % every == 0:
            area.append(0.5 * (1.0 + phi).sum())
    return phi, np.stack(area)


def main(asarray, N, given):
    c0, drop = map(asarray, given)
    sp = Spectrum(N, 1.0)
    dt, every, steps = 0.1, 50, 600
    c, energy, sk, interface = cahn_hilliard(sp, c0, dt, steps, 1.0, 2.0, every)
    k = 2 * np.pi / N * np.arange(sk.shape[1])
    k1 = (sk * k).sum(axis=1) / sk.sum(axis=1)
    length = 2 * np.pi / k1

    # dynamic scaling: S(k) k1^2 against k / k1, on a common axis
    xs = np.linspace(0.3, 2.5, 23)
    scaled = np.stack([np.interp(xs, k / k1[i], sk[i] * k1[i] ** 2 / sk[i].sum()) for i in range(len(k1))])
    slope = np.polyfit(np.log(dt * every * np.arange(4, len(k1) + 1)), np.log(length[3:]), 1)

    # pair correlation along the axes
    dev = c - c.mean()
    corr = np.fft.irfft2(np.abs(np.fft.rfft2(dev)) ** 2, s=c.shape) / dev.size
    corr /= corr[0, 0]
    g = 0.5 * (corr[0, :N // 2] + corr[:N // 2, 0])
    zero = int(np.argmax(g < 0))

    # a droplet under motion by curvature loses area at the rate 2 pi eps^2 (times the mobility)
    phi, area = allen_cahn(sp, drop, 0.2, 300, 1.0, 30)
    rate = np.diff(area) / (0.2 * 30)
    hist, _ = np.histogram(c, bins=np.linspace(-1.3, 1.3, 27))
    return {
        "c": c, "mass_drift": np.abs(c.mean() - c0.mean()) < 1e-12, "energy": energy,
        "monotone": (np.diff(energy) < 0).all(), "interface": interface, "structure": sk[:, :N // 4], "length": length,
        "scaled": scaled[-4:], "exponent": slope[0], "pair": g, "first_zero": zero + g[zero] / (g[zero - 1] - g[zero]),
        "phi": phi, "area": area, "rate_over_theory": rate / (-2 * np.pi), "hist": hist,
    }
