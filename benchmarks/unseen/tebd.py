"""Quench of an Ising chain with matrix product states (TEBD): two-site gates, truncated SVDs, entanglement, correlators; exact check.

N: sites (the check is made on the first eight).
"""
import numpy
import numpy as np

DEFAULT = 14
STEPS = 20


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(1)
    return dict(fields=1.05 + 0.1 * rng.normal(size=N))


def paulis():
    X = np.array([[0, 1], [1, 0]], dtype=complex)
    Z = np.diag(np.array([1, -1])).astype(complex)
    return np.eye(2, dtype=complex), X, Z


def bond_gate(h1, h2, tau, J=1.0):
    I, X, Z = paulis()
    H = -J * np.kron(Z, Z) - h1 * np.kron(X, I) - h2 * np.kron(I, X)
    w, V = np.linalg.eigh(H)
    return (V * np.exp(-1j * tau * w)) @ V.conj().T


class MPS:
    """Vidal's form: Gamma[i] (left, physical, right) and Lambda[i] at the bond left of i."""

    def __init__(self, n, chi):
        self.n, self.chi = n, chi
        up = np.zeros((1, 2, 1), dtype=np.complex128)
        up[0, 0, 0] = 1
        self.gamma = [up.copy() for _ in range(n)]
        self.lam = [np.ones(1) for _ in range(n + 1)]
        self.lost = 0.0

    def apply(self, U, i):
        l, m, r = self.lam[i], self.lam[i + 1], self.lam[i + 2]
        theta = np.tensordot(l[:, None, None] * self.gamma[i] * m, self.gamma[i + 1] * r, axes=(2, 0))
        theta = np.einsum("abcd,lcdr->labr", U.reshape(2, 2, 2, 2), theta)
        a, b = theta.shape[0], theta.shape[3]
        u, s, vh = np.linalg.svd(theta.reshape(a * 2, 2 * b), full_matrices=False)
        keep = min(int((s > 1e-8).sum()), self.chi)
        self.lost += float(np.sum(s[keep:] ** 2))
        s = s[:keep] / np.linalg.norm(s[:keep])
        self.gamma[i] = u[:, :keep].reshape(a, 2, keep) / l[:, None, None]
        self.gamma[i + 1] = vh[:keep].reshape(keep, 2, b) / r
        self.lam[i + 1] = s

    def site(self, op, i):
        t = self.lam[i][:, None, None] * self.gamma[i] * self.lam[i + 1]
        return np.einsum("apb,pq,aqb->", t.conj(), op, t).real

    def correlator(self, op, i, j):
        t = self.lam[i][:, None, None] * self.gamma[i] * self.lam[i + 1]
        E = np.einsum("apb,pq,aqc->bc", t.conj(), op, t)
        for k in range(i + 1, j):
            t = self.gamma[k] * self.lam[k + 1]
            E = np.tensordot(np.tensordot(E, t.conj(), axes=(0, 0)), t, axes=([0, 1], [0, 1]))
        t = self.gamma[j] * self.lam[j + 1]
        return np.einsum("bc,bpd,pq,cqd->", E, t.conj(), op, t).real

    def entropy(self, i):
        p = self.lam[i] ** 2
        p = p[p > 1e-14]
        return -(p * np.log(p)).sum()

    def dense(self):
        psi = self.gamma[0] * self.lam[1]
        for k in range(1, self.n):
            psi = np.tensordot(psi, self.gamma[k] * self.lam[k + 1], axes=1)
        return psi.reshape(-1)


def exact(fields, tau, steps):
    n = len(fields)
    I, X, Z = paulis()
    H = np.zeros((2 ** n, 2 ** n), dtype=complex)
    state = np.arange(2 ** n)
    spins = 1 - 2 * ((state[:, None] >> np.arange(n - 1, -1, -1)) & 1)
    H[state, state] = -(spins[:, :-1] * spins[:, 1:]).sum(axis=1)
    for k in range(n):
        H[state, state ^ (1 << (n - 1 - k))] -= fields[k]
    w, V = np.linalg.eigh(H)
    psi0 = np.zeros(2 ** n, dtype=complex)
    psi0[0] = 1
    psi = V @ (np.exp(-1j * w * tau * steps) * (V.conj().T @ psi0))
    return psi, w[:4], (np.abs(psi) ** 2) @ spins


def run(fields, chi, tau, steps):
    n = len(fields)
    h = np.concatenate([2 * fields[:1], fields[1:-1], 2 * fields[-1:]]) / 2
    full = [bond_gate(h[i], h[i + 1], tau) for i in range(n - 1)]
    halfs = [bond_gate(h[i], h[i + 1], tau / 2) for i in range(n - 1)]
    psi = MPS(n, chi)
    I, X, Z = paulis()
    magnet, S = [], []
    for _ in range(steps):
        for i in range(0, n - 1, 2):
            psi.apply(halfs[i], i)
        for i in range(1, n - 1, 2):
            psi.apply(full[i], i)
        for i in range(0, n - 1, 2):
            psi.apply(halfs[i], i)
        magnet.append(float(psi.site(Z, n // 2)))
        S.append(float(psi.entropy(n // 2)))
    return psi, np.array(magnet), np.array(S)


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    fields = asarray(data["fields"])
    I, X, Z = paulis()
    psi, magnet, S = run(fields, 12, 0.05, STEPS)
    profile = np.array([float(psi.site(Z, i)) for i in range(N)])
    corr = np.array([float(psi.correlator(Z, 2, j)) for j in range(3, N)])
    small, m8, S8 = run(fields[:8], 16, 0.05, STEPS)
    reference, energies, zs = exact(fields[:8], 0.05, STEPS)
    overlap = abs(np.vdot(reference, small.dense())) ** 2
    connected = corr - profile[2] * profile[3:]
    spectrum = np.abs(np.fft.rfft(magnet * np.hanning(len(magnet))))
    return dict(magnet=magnet, S=S, profile=profile, corr=corr, connected=connected, m8=m8, S8=S8, energies=energies, zs=zs, overlap=overlap,
                spectrum=spectrum, lam=psi.lam[N // 2][:6])
