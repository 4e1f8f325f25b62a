"""Hueckel and Pariser-Parr-Pople (PPP) SCF and CI-singles of aza-polyenes, -annulenes and -acenes in a loop over molecules.

N is the largest number of atoms in the polyenes and annulenes.
"""
import numpy as np

DEFAULT = 30
BETA0 = -2.40     # eV at 1.397 A
ALPHA_N = -2.0    # eV, site energy of the nitrogen (atom 0) relative to carbon
U = 11.13         # eV, one-centre repulsion
KE2 = 14.397      # e^2 / (4 pi eps0) in eV A


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(3)
    mols = []
    for n in range(4, N + 1, 2):              # polyenes: zig-zag, alternating lengths
        length = numpy.where(numpy.arange(n - 1) % 2 == 0, 1.35, 1.46)
        ang = numpy.where(numpy.arange(n - 1) % 2 == 0, 1, -1) * numpy.pi / 6
        xy = numpy.zeros((n, 2))
        xy[1:, 0] = numpy.cumsum(length * numpy.cos(ang))
        xy[1:, 1] = numpy.cumsum(length * numpy.sin(ang))
        mols.append(xy)
    for n in range(6, N + 1, 4):              # (4m+2)-annulenes: regular polygons
        phi = 2 * numpy.pi * numpy.arange(n) / n
        rad = 1.40 / (2 * numpy.sin(numpy.pi / n))
        mols.append(rad * numpy.stack((numpy.cos(phi), numpy.sin(phi)), axis=1))
    for m in range(2, 6):                     # acenes of m rings
        x = 1.40 * numpy.sqrt(3) / 2 * numpy.arange(2 * m + 1)
        z = numpy.where(numpy.arange(2 * m + 1) % 2 == 0, 0.70, 1.40)
        mols.append(numpy.concatenate((numpy.stack((x, z), 1), numpy.stack((x, -z), 1))))
    return [xy + 0.01 * rng.standard_normal(xy.shape) for xy in mols]


def distances(xy):
    d = xy[:, None, :] - xy[None, :, :]
    return np.sqrt(np.einsum("ijk,ijk->ij", d, d))


def core(r):
    bonded = (r > 0.5) & (r < 1.7)
    h = np.where(bonded, BETA0 * np.exp(-(r - 1.397) / 0.5), 0.0)
    h[0, 0] = ALPHA_N
    return h, bonded


def density(h):
    e, c = np.linalg.eigh(h)
    occ = c[:, :h.shape[0] // 2]
    return e, c, 2.0 * occ @ occ.T


def scf(h, gamma, p, tol=1e-10):
    """Closed-shell PPP with zero-differential overlap; every atom gives one electron."""
    n = h.shape[0]
    d = np.arange(n)
    hc = h.copy()
    hc[d, d] -= gamma.sum(axis=1) - gamma[d, d]          # attraction of the other cores
    for it in range(400):
        fock = hc - 0.5 * p * gamma
        q = p[d, d]
        fock[d, d] += gamma @ q
        e, c, new = density(fock)
        err = np.abs(new - p).max()
        p = 0.3 * p + 0.7 * new
        if err < tol:
            break
    fock = hc - 0.5 * p * gamma
    fock[d, d] += gamma @ p[d, d]
    energy = 0.5 * np.sum(p * (hc + fock)) + np.triu(gamma, 1).sum()
    return energy, e, c, p


def singles(e, c, gamma, xy, keep):
    """CI of single excitations among the `keep` frontier orbitals on both sides, singlets and triplets."""
    n = c.shape[0]
    nocc = n // 2
    k = min(keep, nocc)
    occ, vir = c[:, nocc - k:nocc], c[:, nocc:nocc + k]
    eo, ev = e[nocc - k:nocc], e[nocc:nocc + k]
    ov = occ[:, :, None] * vir[:, None, :]
    ex = np.einsum("mia,mn,njb->iajb", ov, gamma, ov)
    oo = occ[:, :, None] * occ[:, None, :]
    vv = vir[:, :, None] * vir[:, None, :]
    co = np.einsum("mij,mn,nab->iajb", oo, gamma, vv)
    diag = np.diag((ev[None, :] - eo[:, None]).ravel())
    size = k * k
    w_s, x_s = np.linalg.eigh(diag + (2 * ex - co).reshape(size, size))
    w_t = np.linalg.eigvalsh(diag - co.reshape(size, size))
    dip = np.sqrt(2.0) * (ov.reshape(n, size).T @ (xy - xy.mean(axis=0)))
    f = 0.0875 * w_s * ((x_s.T @ dip) ** 2).sum(axis=1)     # 2/3 m_e/hbar^2 eV A^2
    return w_s, w_t, f


def main(asarray, N, given):
    rows, gaps, strengths, orders, idem = [], [], [], [], []
    for xy in map(asarray, given):
        n = xy.shape[0]
        r = distances(xy)
        h, bonded = core(r)

        # Hueckel
        e, c, p = density(h)
        e_huckel = 2 * e[:n // 2].sum()
        delocal = e_huckel - n * BETA0

        # PPP with Mataga-Nishimoto repulsion
        gamma = KE2 / (r + KE2 / U)
        energy, eps, c, p = scf(h, gamma, p)
        w_s, w_t, f = singles(eps, c, gamma, xy, 6)

        i, j = np.nonzero(np.triu(bonded))
        order = p[i, j]
        free_valence = np.sqrt(3.0) - (p * bonded).sum(axis=1)
        q = 1.0 - np.diag(p)
        dipole = q @ xy
        rows.append(np.stack((e_huckel, delocal, energy, order.mean(), order.std(),
                              free_valence.max(), np.abs(q).max(), np.hypot(dipole[0], dipole[1]))))
        gaps.append(np.stack((e[n // 2] - e[n // 2 - 1], eps[n // 2] - eps[n // 2 - 1], w_s[0], w_t[0])))
        strengths.append(f.sum())
        orders.append(np.sort(order)[[0, -1]])
        idem.append(np.abs(p @ p - 2 * p).max() < 1e-7)
    gaps = np.stack(gaps)
    # extrapolate the polyene gap to the infinite chain, E = E0 + k / n
    sizes = np.arange(4, N + 1, 2)
    m = len(sizes)
    design = np.stack((np.ones(m), 1.0 / sizes), axis=1)
    fit = np.linalg.solve(design.T @ design, design.T @ gaps[:m, 2])
    return {"table": np.stack(rows), "gaps": gaps, "strength_sum": np.stack(strengths),
            "order_range": np.stack(orders), "idempotent": np.stack(idem), "gap_infinite": fit,
            "triplet_below": (gaps[:, 3] < gaps[:, 2]).all()}
