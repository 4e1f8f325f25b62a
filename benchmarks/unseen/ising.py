"""Metropolis Ising model on a checkerboard: cooling through T_c, susceptibility, heat capacity, correlations. N: spins per side."""
import numpy
import numpy as np

DEFAULT = 256
SWEEPS, WARM = 12, 4
TEMPERATURES = (3.2, 2.8, 2.5, 2.35, 2.25, 2.1, 1.8)


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(99)
    spins = rng.choice([-1, 1], size=(N, N)).astype(numpy.int8)
    return dict(spins=spins, uniforms=rng.random((SWEEPS, 2, N, N)))


def neighbour_sum(spins):
    return np.roll(spins, 1, axis=0) + np.roll(spins, -1, axis=0) + np.roll(spins, 1, axis=1) + np.roll(spins, -1, axis=1)


def sweep(spins, beta, mask, u, field):
    accepted = 0
    for parity in range(2):
        nb = neighbour_sum(spins)
        dE = 2 * spins * (nb + field)
        flip = (dE <= 0) | (u[parity] < np.exp(-beta * dE))
        flip &= mask if parity == 0 else ~mask
        spins[flip] *= -1
        accepted += np.count_nonzero(flip)
    return accepted


def energy(spins, field):
    bonds = spins * (np.roll(spins, 1, axis=0) + np.roll(spins, 1, axis=1))
    return -bonds.sum() - field * spins.sum()


def correlation(spins):
    s = spins - spins.mean()
    power = np.abs(np.fft.rfft2(s)) ** 2
    C = np.fft.irfft2(power, s=s.shape) / s.size
    return C[0, :s.shape[1] // 2] / C[0, 0]


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    spins, uniforms = asarray(data["spins"]), asarray(data["uniforms"])
    field = 0.01
    ii, jj = np.indices((N, N))
    black = (ii + jj) % 2 == 0
    M = np.zeros((len(TEMPERATURES), SWEEPS - WARM))
    E = np.zeros_like(M)
    rate, lengths, curves = [], [], []
    for k, T in enumerate(TEMPERATURES):
        beta = 1.0 / T
        accepted = 0
        for s in range(SWEEPS):
            # other random numbers at every temperature: shift those from the file
            u = np.roll(uniforms[s], (17 * k, 29 * k), axis=(1, 2))
            accepted += sweep(spins, beta, black, u, field)
            if s >= WARM:
                M[k, s - WARM] = spins.mean()
                E[k, s - WARM] = energy(spins, field) / spins.size
        rate.append(accepted / (SWEEPS * N * N))
        C = correlation(spins)
        below = np.nonzero(C < np.exp(-1))[0]
        lengths.append(int(below[0]) if below.size else N // 2)
        curves.append(C)
        if abs(float(M[k, -1])) > 0.98:
            break
    T = np.array(TEMPERATURES)
    chi = M.var(axis=1) * N * N / T
    heat = E.var(axis=1) * N * N / T ** 2
    same_right = spins == np.roll(spins, -1, axis=1)
    same_down = spins == np.roll(spins, -1, axis=0)
    walls = (~same_right).sum() + (~same_down).sum()
    blocks = spins.reshape(N // 8, 8, N // 8, 8).sum(axis=(1, 3))
    renormalised = np.sign(blocks)
    hist, _ = np.histogram(blocks, bins=16, range=(-64, 64))
    binder = 1 - np.mean(M ** 4, axis=1) / (3 * np.mean(M ** 2, axis=1) ** 2)
    return dict(spins=np.asarray(spins), M=np.asarray(M), E=np.asarray(E), rate=np.array(rate), lengths=np.asarray(lengths), chi=np.asarray(chi),
                heat=np.asarray(heat), walls=np.asarray(walls), renormalised=np.asarray(renormalised), hist=np.asarray(hist),
                binder=np.asarray(binder), C=np.array(curves))
