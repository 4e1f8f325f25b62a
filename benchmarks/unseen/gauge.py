"""Lattice QCD without quarks.

SU(3) links on a periodic 4-D lattice, checkerboard Metropolis, Wilson loops, gradient flow, topological charge.
N: sites a side.
"""
import numpy as np

DEFAULT = 4
TIME, SWEEPS, BETA = 6, 14, 5.9


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(1974)
    h = rng.normal(size=(64, 3, 3)) + 1j * rng.normal(size=(64, 3, 3))
    h = h + h.conj().transpose(0, 2, 1)
    h -= numpy.trace(h, axis1=1, axis2=2)[:, None, None] * numpy.eye(3) / 3
    w, v = numpy.linalg.eigh(0.09 * h)
    table = (v * numpy.exp(1j * w)[:, None, :]) @ v.conj().transpose(0, 2, 1)
    table = numpy.concatenate([table, table.conj().transpose(0, 2, 1)])
    shape = (SWEEPS, 4, 2, 2, TIME, N, N, N)
    return table, rng.integers(0, 128, shape), rng.random(shape)


def dagger(u):
    return np.conj(np.swapaxes(u, -1, -2))


def shift(u, axis, by=1):
    """The field at x + by * axis."""
    return np.roll(u, -by, axis=axis)


def staples(U, mu):
    """Sum over the six three-link paths which close a plaquette with the link in direction mu."""
    total = 0
    for nu in range(4):
        if nu == mu:
            continue
        ahead = shift(U[nu], mu)
        up = ahead @ dagger(shift(U[mu], nu)) @ dagger(U[nu])
        down = dagger(shift(ahead, nu, -1)) @ dagger(shift(U[mu], nu, -1)) @ shift(U[nu], nu, -1)
        total = total + up + down
    return total


def retrace(a, b):
    return np.einsum("...ij,...ji->...", a, b).real


def reunitarise(u):
    """Gram-Schmidt on two rows, the third by the cross product."""
    a = u[..., 0, :] / np.sqrt((np.abs(u[..., 0, :])**2).sum(axis=-1, keepdims=True))
    b = u[..., 1, :] - (np.conj(a) * u[..., 1, :]).sum(axis=-1, keepdims=True) * a
    b = b / np.sqrt((np.abs(b)**2).sum(axis=-1, keepdims=True))
    c = np.conj(np.stack([a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1],
                          a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2],
                          a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]], axis=-1))
    return np.stack([a, b, c], axis=-2)


def metropolis(U, table, pick, coin, parity):
    accepted = 0
    for mu in range(4):
        for even in range(2):
            force = staples(U, mu)
            for hit in range(2):
                trial = table[pick[mu, even, hit]] @ U[mu]
                gain = BETA / 3 * (retrace(trial, force) - retrace(U[mu], force))
                take = (coin[mu, even, hit] < np.exp(np.minimum(gain, 0.0))) & (parity == even)
                U[mu] = np.where(take[..., None, None], trial, U[mu])
                accepted = accepted + take.sum()
    return accepted / (8.0 * parity.size)


def plaquettes(U):
    out = {}
    for mu in range(4):
        for nu in range(mu):
            loop = U[mu] @ shift(U[nu], mu) @ dagger(shift(U[mu], nu)) @ dagger(U[nu])
            out[mu, nu] = np.trace(loop, axis1=-2, axis2=-1).real.mean() / 3
    return out


def wilson_loops(U, most=3):
    """Mean R x T loops in the planes with time (axis 0)."""
    line = {(mu, 1): U[mu] for mu in range(4)}
    for mu in range(4):
        for k in range(2, most + 1):
            line[mu, k] = line[mu, k - 1] @ shift(U[mu], mu, k - 1)
    W = np.zeros((most, most))
    for r in range(1, most + 1):
        for t in range(1, most + 1):
            for mu in range(1, 4):
                loop = line[mu, r] @ shift(line[0, t], mu, r) @ dagger(shift(line[mu, r], 0, t)) @ dagger(line[0, t])
                W[r - 1, t - 1] += np.trace(loop, axis1=-2, axis2=-1).real.mean() / 9
    return W


def clover(U, mu, nu):
    a = U[mu] @ shift(U[nu], mu) @ dagger(shift(U[mu], nu)) @ dagger(U[nu])
    left = shift(U[mu], mu, -1)
    b = U[nu] @ dagger(shift(left, nu)) @ dagger(shift(U[nu], mu, -1)) @ left
    corner = shift(shift(U[nu], mu, -1), nu, -1)
    c = dagger(left) @ dagger(corner) @ shift(left, nu, -1) @ shift(U[nu], nu, -1)
    below = shift(U[nu], nu, -1)
    d = dagger(below) @ shift(U[mu], nu, -1) @ shift(below, mu) @ dagger(U[mu])
    Q = a + b + c + d
    F = (Q - dagger(Q)) / 8.0
    return F - np.trace(F, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) / 3


def topology(U):
    F = {(mu, nu): clover(U, mu, nu) for mu in range(4) for nu in range(mu)}
    dense = retrace(F[1, 0], F[3, 2]) - retrace(F[2, 0], F[3, 1]) + retrace(F[3, 0], F[2, 1])
    energy = -sum(retrace(f, f).mean() for f in F.values())
    return -dense.sum() / (4 * np.pi**2), energy


def flow(U, eps=0.04, steps=6):
    """Stout smearing, which is Euler's method for the gradient flow."""
    history = []
    for k in range(steps):
        new = np.empty_like(U)
        for mu in range(4):
            omega = dagger(U[mu] @ staples(U, mu))
            Z = 0.5 * (dagger(omega) - omega)
            Z -= np.trace(Z, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) / 3
            Z *= -eps
            term, total = np.eye(3) + 0j, np.eye(3) + 0j
            for n in range(1, 9):
                term = term @ Z / n
                total = total + term
            new[mu] = total @ U[mu]
        U = reunitarise(new)
        charge, energy = topology(U)
        history.append(np.stack([charge, energy, ((k + 1) * eps)**2 * energy]))
    return U, np.stack(history)


def main(asarray, N, given):
    table, pick, coin = map(asarray, given)
    U = np.zeros((4, TIME, N, N, N, 3, 3), dtype=complex)
    U[..., np.arange(3), np.arange(3)] = 1.0
    parity = sum(np.meshgrid(np.arange(TIME), *[np.arange(N)] * 3, indexing="ij")) % 2
    rate, action = [], []
    for k in range(SWEEPS):
        rate.append(metropolis(U, table, pick[k], coin[k], parity))
        after = sum(plaquettes(U).values()) / 6
        U = reunitarise(U)
        action.append(after)
    W = wilson_loops(U)
    creutz = -np.log(np.abs(W[1:, 1:] * W[:-1, :-1] / (W[1:, :-1] * W[:-1, 1:])))
    smooth, history = flow(U)
    unit = np.abs(smooth @ dagger(smooth) - np.eye(3)).max()
    return dict(rate=np.stack(rate), action=np.stack(action), W=W, creutz=creutz[0, 0],
                history=history, unit=unit < 1e-12, plane=np.stack(list(plaquettes(smooth).values())),
                links=smooth[0, 0, 0, 0])
