"""Restricted Hartree-Fock on a made-up cluster: s-type Gaussians scattered around charges, real integrals (the Boys
function by quadrature), DIIS, level shift, MP2 energy, populations and bond orders, a finite-field polarisability.
N: number of basis functions."""

import numpy as np

DEFAULT = 40


def inputs(N):
    import numpy

    rng = numpy.random.default_rng(1951)
    nuclei = numpy.array([[0.0, 0, 0], [2.1, 0.2, 0], [-0.9, 1.9, 0.3], [0.4, -1.2, 1.8]])
    charge = numpy.array([4.0, 2.0, 1.0, 3.0])
    home = numpy.arange(N) % 4
    shell = numpy.arange(N) // 4
    alpha = 0.12 * 2.35**shell * numpy.array([1.0, 1.13, 0.87, 1.31])[home]
    centre = nuclei[home] + rng.normal(size=(N, 3)) * numpy.where(shell % 2 == 0, 0.05, 0.6)[:, None]
    nodes, weights = numpy.polynomial.legendre.leggauss(24)
    return dict(
        nuclei=nuclei,
        charge=charge,
        alpha=alpha,
        centre=centre,
        home=home,
        nodes=0.5 * (nodes + 1),
        weights=0.5 * weights,
    )


def boys0(t, nodes, weights):
    """F0(t) = int_0^1 exp(-t u^2) du: Gauss-Legendre for small t, the complete integral for large t."""
    small = np.minimum(t, 36.0)
    f = np.zeros_like(t)
    for u, w in zip(nodes.tolist(), weights.tolist()):
        f += w * np.exp(-u * u * small)
    return np.where(t < 36.0, f, 0.5 * np.sqrt(np.pi / np.maximum(t, 1.0)))


def one_electron(a, R, nuclei, Z, quad):
    p = a[:, None] + a[None, :]
    mu = a[:, None] * a[None, :] / p
    r2 = ((R[:, None] - R[None]) ** 2).sum(axis=-1)
    norm = (2 * a / np.pi) ** 0.75
    K = norm[:, None] * norm[None, :] * np.exp(-mu * r2)
    S = K * (np.pi / p) ** 1.5
    T = S * mu * (3 - 2 * mu * r2)
    P = (a[:, None, None] * R[:, None] + a[None, :, None] * R[None]) / p[..., None]
    pc2 = ((P[:, :, None, :] - nuclei) ** 2).sum(axis=-1)
    V = -(K * 2 * np.pi / p) * (boys0(p[..., None] * pc2, *quad) @ Z)
    dipole = S * P.transpose(2, 0, 1)
    return S, T, V, dipole, K, p, P


def two_electron(K, p, P, quad):
    """(ij|kl), from the pairs i >= j, spread over the full tensor."""
    n = len(K)
    i, j = np.tril_indices(n)
    k, q, C = K[i, j], p[i, j], P[i, j]
    total = q[:, None] + q[None, :]
    norm = C @ C.T
    d2 = np.maximum(np.diagonal(norm)[:, None] + np.diagonal(norm)[None] - 2 * norm, 0.0)
    pairs = 2 * np.pi**2.5 * np.outer(k / q, k / q) / np.sqrt(total) * boys0(np.outer(q, q) / total * d2, *quad)
    where = np.zeros((n, n), dtype=np.int64)
    where[i, j] = np.arange(len(i))
    where[j, i] = np.arange(len(i))
    return pairs[where.ravel()[:, None], where.ravel()[None, :]].reshape(n, n, n, n)


class DIIS:
    def __init__(self, keep=7):
        self.keep, self.F, self.e = keep, [], []

    def __call__(self, F, error):
        self.F = (self.F + [F])[-self.keep :]
        self.e = (self.e + [error.ravel()])[-self.keep :]
        m = len(self.F)
        if m < 2:
            return F
        E = np.stack(self.e)
        B = np.full((m + 1, m + 1), -1.0)
        G = E @ E.T
        B[:m, :m] = G / G.max()
        B[m, m] = 0.0
        rhs = np.zeros(m + 1)
        rhs[m] = -1.0
        c = np.linalg.solve(B, rhs)[:m]
        return np.einsum("m,mij->ij", c, np.stack(self.F))


class SCF:
    def __init__(self, S, H, eri, electrons):
        self.S, self.H, self.eri, self.occ = S, H, eri, electrons // 2
        self.eri_k = np.ascontiguousarray(eri.transpose(0, 2, 1, 3))
        s, U = np.linalg.eigh(S)
        good = s > 1e-6
        self.X = U[:, good] / np.sqrt(s[good])
        self.half = (U * np.sqrt(s)) @ U.T

    def fock(self, D):
        n = len(D)
        J = (self.eri.reshape(n * n, n * n) @ D.ravel()).reshape(n, n)
        K = np.tensordot(self.eri_k, D, axes=((2, 3), (0, 1)))
        return self.H + J - 0.5 * K

    def diagonalise(self, F):
        e, C = np.linalg.eigh(self.X.T @ F @ self.X)
        C = self.X @ C
        return e, C, 2 * C[:, : self.occ] @ C[:, : self.occ].T

    def run(self, D=None, limit=60, tol=1e-9, field=None):
        H0 = self.H
        if field is not None:
            self.H = H0 + field
        diis, energies = DIIS(), []
        if D is None:
            D = self.diagonalise(self.H)[2]
        for _ in range(limit):
            F = self.fock(D)
            energies.append(float(0.5 * np.einsum("ij,ij->", D, self.H + F)))
            FDS = F @ D @ self.S
            error = self.X.T @ (FDS - FDS.T) @ self.X
            if float(np.abs(error).max()) < tol:
                break
            e, C, D = self.diagonalise(diis(F, error))
        e, C, D = self.diagonalise(F)
        self.H = H0
        return energies, e, C, D


def mp2(eri, C, e, occ):
    Co, Cv = C[:, :occ], C[:, occ:]
    half = np.einsum("pqrs,pi->iqrs", eri, Co)
    half = np.einsum("iqrs,rj->iqjs", half, Co)
    iajb = np.einsum("iqjs,qa,sb->iajb", half, Cv, Cv, optimize=True)
    eo, ev = e[:occ], e[occ:]
    gap = eo[:, None, None, None] - ev[None, :, None, None] + eo[None, None, :, None] - ev
    t = iajb / gap
    return (t * (2 * iajb - iajb.swapaxes(1, 3))).sum(), np.abs(t).max()


def main(asarray, N, given):
    g = {k: asarray(v) for k, v in given.items()}
    quad = g["nodes"], g["weights"]
    S, T, V, dip, K, p, P = one_electron(g["alpha"], g["centre"], g["nuclei"], g["charge"], quad)
    eri = two_electron(K, p, P, quad)
    scf = SCF(S, T + V, eri, int(g["charge"].sum()))
    energies, e, C, D = scf.run()
    i, j = np.triu_indices(4, 1)
    repulsion = (g["charge"][i] * g["charge"][j] / np.linalg.norm(g["nuclei"][i] - g["nuclei"][j], axis=1)).sum()
    corr, amplitude = mp2(eri, C, e, scf.occ)
    L = scf.half @ D @ scf.half
    lowdin = g["charge"] - np.bincount(g["home"], weights=np.diagonal(L), minlength=4)
    mulliken = g["charge"] - np.bincount(g["home"], weights=(D @ S).diagonal(), minlength=4)
    member = (g["home"][None] == np.arange(4)[:, None]).astype(float)
    bonds = member @ (L * L) @ member.T
    mu = -np.einsum("xij,ij->x", dip, D) + g["charge"] @ g["nuclei"]
    alpha = []
    for x in range(3):
        moments = [np.einsum("xij,ij->x", dip, scf.run(D, field=s * 2e-3 * dip[x])[3]) for s in (1, -1)]
        alpha.append((moments[1] - moments[0]) / 4e-3)
    kinetic = (D * T).sum()
    return {
        "energy": energies[-1] + repulsion,
        "start": np.array(energies[:6]),
        "orbital": e,
        "mp2": corr,
        "amplitude": amplitude,
        "lowdin": lowdin,
        "mulliken": mulliken,
        "bonds": bonds,
        "dipole": mu,
        "alpha": np.stack(alpha),
        "density": D,
        "virial": -(energies[-1] + repulsion - kinetic) / kinetic,
    }
