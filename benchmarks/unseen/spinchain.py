"""The random-field Heisenberg chain: sparse action by bit flips, Lanczos ground state, gap by deflation, Krylov time evolution, entanglement, correlations, level spacings. N: spins."""
import numpy
import numpy as np

DEFAULT = 15
KRYLOV, STEPS, SMALL = 60, 20, 10


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(1931)
    return dict(field=rng.uniform(-0.4, 0.4, N), start=rng.normal(size=2 ** N), fields=rng.uniform(-1, 1, (12, SMALL)))


class Chain:
    def __init__(self, n, field, delta=1.0, coupling=1.0):
        self.n, self.dim = n, 2 ** n
        state = np.arange(self.dim)
        self.spin = ((state[None, :] >> np.arange(n)[:, None]) & 1) - 0.5
        self.diagonal = field @ self.spin + coupling * delta * (self.spin[:-1] * self.spin[1:]).sum(axis=0)
        # each bond swaps two unlike neighbours
        self.partner, self.unlike = [], []
        for k in range(n - 1):
            self.unlike.append(np.where(self.spin[k] != self.spin[k + 1], 0.5 * coupling, 0.0))
            self.partner.append(state ^ (3 << k))
        self.count = 0

    def apply(self, v):
        out = self.diagonal * v
        for partner, unlike in zip(self.partner, self.unlike):
            out += unlike * v[partner]
        self.count += 1
        return out

    def dense(self):
        H = np.diag(self.diagonal)
        rows = np.arange(self.dim)
        for partner, unlike in zip(self.partner, self.unlike):
            H[rows, partner] += unlike
        return H


def lanczos(apply, start, rounds, away=None, tolerance=1e-10):
    """Krylov basis with full reorthogonalisation, until the lowest eigenvalue has settled."""
    basis = np.zeros((rounds, len(start)), dtype=start.dtype)
    alpha, beta = np.zeros(rounds), np.zeros(rounds)
    v = start / np.linalg.norm(start)
    lowest = np.inf
    for k in range(rounds):
        basis[k] = v
        w = apply(v)
        alpha[k] = np.vdot(v, w).real
        for _ in range(2):
            w = w - basis[:k + 1].T @ (basis[:k + 1].conj() @ w)
            if away is not None:
                w = w - away * np.vdot(away, w)
        beta[k] = np.linalg.norm(w)
        if tolerance and k % 5 == 4:
            T = np.diag(alpha[:k + 1]) + np.diag(beta[:k], 1) + np.diag(beta[:k], -1)
            e = float(np.linalg.eigvalsh(T)[0])
            if abs(e - lowest) < tolerance:
                break
            lowest = e
        if float(beta[k]) < 1e-12:
            break
        v = w / beta[k]
    k += 1
    T = np.diag(alpha[:k]) + np.diag(beta[:k - 1], 1) + np.diag(beta[:k - 1], -1)
    return T, basis[:k]


def ground(chain, start, away=None, restarts=6):
    v, last = start, np.inf
    for n in range(restarts):
        if away is not None:
            v = v - away * np.vdot(away, v)
        T, basis = lanczos(chain.apply, v, KRYLOV, away)
        w, V = np.linalg.eigh(T)
        v = basis.T @ V[:, 0]
        v /= np.linalg.norm(v)
        energy = float(w[0])
        residual = float(np.linalg.norm(chain.apply(v) - energy * v))
        if residual < 1e-7 or abs(last - energy) < 1e-13:
            break
        last = energy
    return energy, v * np.sign(v[np.abs(v).argmax()]), n


def entropy(v, n, cut):
    s = np.linalg.svd(v.reshape(2 ** (n - cut), 2 ** cut), compute_uv=False)
    p = s[s > 1e-14] ** 2
    return -(p * np.log(p)).sum()


def evolve(chain, v, dt, rounds=14):
    """exp(-i H dt) v in the Krylov space of v."""
    T, basis = lanczos(chain.apply, v, rounds, tolerance=0)
    w, V = np.linalg.eigh(T)
    c = (V * np.exp(-1j * dt * w)) @ V[0]
    return basis.T @ c


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    field, start, fields = (asarray(data[k]) for k in ("field", "start", "fields"))
    chain = Chain(N, field)
    e0, v0, restarts = ground(chain, start)
    e1, v1, _ = ground(chain, np.roll(start, 1), away=v0)
    p = v0 ** 2
    magnetisation = chain.spin @ p
    zz = (chain.spin * p) @ chain.spin.T - magnetisation[:, None] * magnetisation
    structure = np.abs(np.fft.fft2(zz)).diagonal()[:N // 2 + 1] / N
    profile = np.stack([entropy(v0, N, cut) for cut in range(1, N)])
    # a quench from the Neel state
    neel = sum(1 << k for k in range(0, N, 2))
    psi = np.zeros(chain.dim, dtype=complex)
    psi[neel] = 1.0
    before = psi.copy()
    imbalance, echo, grown, energy = [], [], [], []
    stagger = np.where(np.arange(N) % 2 == 0, 1.0, -1.0)
    for step in range(STEPS):
        psi = evolve(chain, psi, 0.25)
        density = np.abs(psi) ** 2
        imbalance.append(2 * (stagger * (chain.spin @ density)).mean())
        echo.append(np.abs(np.vdot(before, psi)) ** 2)
        if step % 4 == 3:
            grown.append(entropy(psi, N, N // 2))
            energy.append(np.vdot(psi, chain.apply(psi)).real)
    # level spacings of short chains, in the sector without magnetisation
    ratios = []
    for strength in (0.5, 4.0):
        total = []
        for h in fields[:6]:
            small = Chain(SMALL, strength * h)
            sector = np.flatnonzero(small.spin.sum(axis=0) == 0)
            e = np.linalg.eigvalsh(small.dense()[sector[:, None], sector])
            gap = np.diff(e[len(e) // 4:3 * len(e) // 4])
            total.append((np.minimum(gap[1:], gap[:-1]) / np.maximum(gap[1:], gap[:-1])).mean())
        ratios.append(np.stack(total).mean())
    return dict(e0=e0, gap=e1 - e0, magnetisation=magnetisation, zz=zz, structure=structure, profile=profile, imbalance=np.stack(imbalance),
                echo=np.stack(echo), grown=np.stack(grown),
                energy=np.stack(energy), norm=np.linalg.norm(psi), ratios=np.stack(ratios), largest=np.sort(p)[::-1][:20], overlap=np.abs(v0 @ v1) < 1e-6)
