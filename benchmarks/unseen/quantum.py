"""A simulator of quantum circuits by the state vector: Grover, phase estimation, QAOA for a cut, entropies, sampling.

N: qubits.
"""
import numpy as np

DEFAULT = 16


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(1981)
    edges = numpy.array([(i, j) for i in range(N) for j in range(i) if rng.uniform() < 0.35])
    gates = numpy.linalg.qr(rng.normal(size=(10, N, 2, 2)) + 1j * rng.normal(size=(10, N, 2, 2)))[0]
    return edges, rng.uniform(0.2, 1.0, len(edges)), gates, rng.uniform(size=20000), rng.integers(0, 2**N, 3)


def hadamard():
    return np.array([[1, 1], [1, -1]]) / 2**0.5


class Register:
    """Amplitudes of n qubits; qubit 0 is the greatest bit."""

    def __init__(self, n):
        self.n, self.psi = n, np.zeros(2**n, dtype=complex)
        self.psi[0] = 1.0

    def gate(self, u, k):
        self.psi = np.einsum("ab,ibj->iaj", u, self.psi.reshape(2**k, 2, -1)).reshape(-1)

    def every(self, u):
        for k in range(self.n):
            self.gate(u, k)
        return self

    def pair(self, u, j):             # and j + 1
        self.psi = (u @ self.psi.reshape(2**j, 4, -1)).reshape(-1)

    def controlled_phase(self, angle, j, k):
        t = self.psi.reshape(2**j, 2, 2**(k - j - 1), 2, -1)
        t[:, 1, :, 1] *= np.exp(1j * angle)

    def flip(self, j, k):
        """Controlled not: swaps halves of the half where the control is one."""
        t = self.psi.reshape((2,) * self.n)
        one = (slice(None),) * j + (1,)
        t[one] = np.flip(t[one], axis=k - (k > j)).copy()

    def fourier(self, sign=1.0):
        for k in range(self.n):
            self.gate(hadamard(), k)
            for j in range(k + 1, self.n):
                self.controlled_phase(sign * np.pi / 2**(j - k), k, j)
        self.psi = self.psi.reshape((2,) * self.n).T.reshape(-1)

    def probability(self):
        return self.psi.real**2 + self.psi.imag**2

    def sample(self, uniform):
        cdf = np.cumsum(self.probability())
        return np.minimum(np.searchsorted(cdf, uniform * cdf[-1], side="right"), 2**self.n - 1)

    def entropy(self, cut):
        s = np.linalg.svd(self.psi.reshape(2**cut, -1), compute_uv=False)**2
        return -(s * np.log2(np.maximum(s, 1e-30))).sum()


def grover(n, marked):
    reg, hit = Register(n).every(hadamard()), []
    for _ in range(int(np.pi / 4 * (2**n / len(marked))**0.5) // 2):
        reg.psi[marked] *= -1
        reg.psi = 2 * reg.psi.mean() - reg.psi
        hit.append(reg.probability()[marked].sum())
    return np.stack(hit)


def cut_values(n, edges, weights):
    z = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)[::-1]) & 1)
    value = np.zeros(2**n)
    for (i, j), w in zip(edges.tolist(), weights.tolist()):
        value += 0.5 * w * (1 - z[:, i] * z[:, j])
    return value


def qaoa(n, cost, gammas, betas):
    reg = Register(n).every(hadamard())
    for gamma, beta in zip(gammas, betas):
        reg.psi = reg.psi * np.exp(-1j * gamma * cost)
        reg.every(np.cos(beta) * np.eye(2) - 1j * np.sin(beta) * np.eye(2)[::-1])
    return reg


def main(asarray, N, given):
    edges, weights, gates, uniform, marked = (asarray(g) for g in given)
    found = grover(N, marked)

    reg, size = Register(N), 2**N
    reg.psi = wave = np.exp(2j * np.pi * 1234.37 * np.arange(size) / size) / size**0.5
    reg.fourier(-1.0)
    peak = np.sort(np.argsort(reg.probability())[-4:])
    apart = np.abs(reg.psi - np.fft.fft(wave) / size**0.5).max()

    cost = cut_values(N, edges, weights)
    grid = np.array([[float((qaoa(N, cost, [g], [b]).probability() * cost).sum()) for b in (0.2, 0.35, 0.5, 0.65)]
                     for g in (0.2, 0.4, 0.6)])
    g, b = divmod(int(grid.argmax()), 4)
    ramp = np.linspace(0.15, 1.0, 6)
    deep = qaoa(N, cost, (ramp * (0.3 + 0.2 * g)).tolist(), (ramp[::-1] * (0.3 + 0.1 * b)).tolist())
    shots = deep.sample(uniform)
    values = cost[shots]
    winners, times = np.unique(shots[values >= np.percentile(values, 99)], return_counts=True)

    # random layers: entanglement spreads, outcomes come near to Porter and Thomas's law
    reg, entropy = Register(N), []
    p, m = 0.5 + 0.5j, 0.5 - 0.5j
    sqrt_swap = np.array([[1, 0, 0, 0], [0, p, m, 0], [0, m, p, 0], [0, 0, 0, 1]])
    for depth, layer in enumerate(gates):
        for k in range(N):
            reg.gate(layer[k], k)
        for k in range(depth % 2, N - 1, 2):
            reg.pair(sqrt_swap, k) if depth < 5 else reg.flip(k, k + 1)
        if depth % 3 == 0:
            entropy.append(np.stack([reg.entropy(c) for c in (1, 3, N // 2)]))
    p = reg.probability() * size
    z = 1 - 2 * ((reg.sample(uniform)[:, None] >> np.arange(N)[::-1]) & 1)
    return dict(found=found, peak=peak, apart=bool(apart < 1e-9), grid=grid, best=cost.max(), qaoa=values.mean(),
                ratio=float(values.max() / cost.max()), winners=winners[np.argsort(-times, kind="stable")[:5]],
                entropy=np.stack(entropy), correlations=np.cov(z.T),
                law=np.histogram(p, bins=np.linspace(0, 6, 25))[0], moments=np.stack([p.mean(), (p**2).mean()]))
