"""A molten salt: Ewald sums (real space in blocks, reciprocal space by structure factors) against particle-mesh Ewald with B-splines and FFT; Born-Mayer relaxation by FIRE, structure. N: ions."""
import numpy
import numpy as np

DEFAULT = 512
ALPHA, CUT, KMAX, MESH, ORDER, RELAX = 0.30, 10.5, 9, 32, 4, 14
COULOMB, BORN, RHO = 14.3996, 1200.0, 0.32


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(4108)
    side = int(round(N ** (1 / 3)))
    g = numpy.stack(numpy.meshgrid(*[numpy.arange(side)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    q = numpy.where(g.sum(axis=1) % 2 == 0, 1.0, -1.0)
    box = 2.82 * side
    return dict(pos=(g + 0.5) * 2.82 + rng.normal(0, 0.22, g.shape), q=q, box=numpy.array(box), lattice=(g + 0.5) * 2.82)


def erfc(x):
    """Abramowitz and Stegun 7.1.26 is too rough here: a Chebyshev fit, good to 1.2e-7."""
    z = np.abs(x)
    t = 1.0 / (1.0 + 0.5 * z)
    poly = np.zeros_like(z)
    for c in (0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196, 1.00002368):
        poly *= t
        poly += c
    tail = t * np.exp(-z * z - 1.26551223 + t * poly)
    return np.where(x >= 0, tail, 2.0 - tail)


def real_space(pos, q, box, alpha, block=128):
    n = len(pos)
    energy, force, virial = 0.0, np.empty_like(pos), 0.0
    for lo in range(0, n, block):
        hi = min(lo + block, n)
        d = pos[lo:hi, None, :] - pos[None, :, :]
        d -= box * np.rint(d / box)
        r2 = np.einsum("ijk,ijk->ij", d, d)
        r2[np.arange(hi - lo), np.arange(lo, hi)] = 1e12
        r = np.sqrt(r2)
        near = r < min(CUT, box / 2)
        qq = COULOMB * q[lo:hi, None] * q[None, :]
        e = erfc(alpha * r)
        pair = np.where(near, qq * e / r, 0.0)
        slope = np.where(near, qq * (e / r + 2 * alpha / np.sqrt(np.pi) * np.exp(-alpha ** 2 * r2)) / r2, 0.0)
        unlike = near & (q[lo:hi, None] * q[None, :] < 0)
        wall = np.where(unlike, BORN * np.exp(-r / RHO), 0.0)
        energy += 0.5 * float((pair + wall).sum())
        total = slope + wall / (RHO * r)
        force[lo:hi] = (total[:, :, None] * d).sum(axis=1)
        virial += 0.5 * float((total * np.where(near, r2, 0.0)).sum())
    return energy, force, virial


def self_energy(q, alpha, box):
    return -COULOMB * float(alpha / np.sqrt(np.pi) * (q ** 2).sum() + np.pi * q.sum() ** 2 / (2 * box ** 3 * alpha ** 2))


def reciprocal(pos, q, box, alpha):
    """Structure factors by powers of one exponential along every axis."""
    n = len(pos)
    base = np.exp(2j * np.pi * pos / box)
    power = np.ones((2 * KMAX + 1, n, 3), dtype=complex)
    for k in range(1, KMAX + 1):
        power[KMAX + k] = power[KMAX + k - 1] * base
        power[KMAX - k] = power[KMAX + k].conj()
    ky, kz = (a.ravel() for a in np.meshgrid(np.arange(-KMAX, KMAX + 1), np.arange(-KMAX, KMAX + 1), indexing="ij"))
    energy, force = 0.0, np.zeros((n, 3))
    scale = 2 * np.pi / box
    shells, values = [], []
    for kx in range(0, KMAX + 1):
        k2 = kx * kx + ky * ky + kz * kz
        ok = (k2 > 0) & (k2 <= KMAX * KMAX)
        y, z = ky[ok], kz[ok]
        wave = power[KMAX + kx, :, 0] * power[y + KMAX, :, 1] * power[z + KMAX, :, 2]
        S = wave @ q
        kk = scale ** 2 * k2[ok]
        weight = (1.0 if kx == 0 else 2.0) * 2 * np.pi / box ** 3 * np.exp(-kk / (4 * alpha ** 2)) / kk * COULOMB
        energy += float((weight * np.abs(S) ** 2).sum())
        push = 2 * weight[:, None] * (wave * S.conj()[:, None]).imag * q
        kvec = scale * np.stack([np.full_like(y, kx), y, z]).astype(float)
        force += (kvec @ push).T
        shells.append(k2[ok])
        values.append(np.abs(S) ** 2)
    return energy, force, np.concatenate(shells), np.concatenate(values)


def spline(w):
    """Cardinal B-splines of order four at w in [0, 1), and their slopes: (n, 4)."""
    M3 = np.stack([0.5 * (1 - w) ** 2, 0.5 + w * (1 - w), 0.5 * w ** 2], axis=-1)
    v = w[..., None]
    M4 = np.empty(w.shape + (4,))
    M4[..., 0:1] = (1 - v) ** 3 / 6
    M4[..., 1:2] = (3 * v ** 3 - 6 * v ** 2 + 4) / 6
    M4[..., 2:3] = (-3 * v ** 3 + 3 * v ** 2 + 3 * v + 1) / 6
    M4[..., 3:4] = v ** 3 / 6
    padded = np.concatenate([np.zeros_like(v), M3, np.zeros_like(v)], axis=-1)
    return M4, padded[..., :4] - padded[..., 1:]


def influence(box, alpha):
    k = np.fft.fftfreq(MESH, 1.0 / MESH)
    grid = np.arange(1, ORDER)
    M = np.array([1 / 6, 4 / 6, 1 / 6])
    b = 1.0 / np.abs((M * np.exp(2j * np.pi * np.outer(k, grid - 1) / MESH)).sum(axis=1)) ** 2
    kx, ky, kz = np.meshgrid(k, k, k[:MESH // 2 + 1], indexing="ij", sparse=True)
    k2 = (2 * np.pi / box) ** 2 * (kx ** 2 + ky ** 2 + kz ** 2)
    k2[0, 0, 0] = 1.0
    G = 4 * np.pi * np.exp(-k2 / (4 * alpha ** 2)) / k2 * b[:, None, None] * b[:, None] * b[:MESH // 2 + 1]
    G[0, 0, 0] = 0.0
    return COULOMB * G * MESH ** 3 / box ** 3


def mesh_ewald(pos, q, box, G):
    u = (pos / box % 1.0) * MESH
    base = np.floor(u).astype(np.int64)
    M, dM = spline(u - base)
    cells = (base[:, :, None] + np.arange(-1, 3)) % MESH
    flat = (cells[:, 0, :, None, None] * MESH + cells[:, 1, None, :, None]) * MESH + cells[:, 2, None, None, :]
    share = np.einsum("n,ni,nj,nk->nijk", q, M[:, 0], M[:, 1], M[:, 2])
    Q = np.zeros(MESH ** 3)
    np.add.at(Q, flat.ravel(), share.ravel())
    F = np.fft.rfftn(Q.reshape(MESH, MESH, MESH))
    phi = np.fft.irfftn(F * G, s=(MESH, MESH, MESH), axes=(0, 1, 2))
    energy = 0.5 * float((Q * phi.ravel()).sum())
    here = phi.ravel()[flat]
    force = np.empty_like(pos)
    force[:, 0] = np.einsum("nijk,ni,nj,nk->n", here, dM[:, 0], M[:, 1], M[:, 2])
    force[:, 1] = np.einsum("nijk,ni,nj,nk->n", here, M[:, 0], dM[:, 1], M[:, 2])
    force[:, 2] = np.einsum("nijk,ni,nj,nk->n", here, M[:, 0], M[:, 1], dM[:, 2])
    force *= -(q * MESH / box)[:, None]
    return energy, force - force.mean(axis=0)


def rdf(pos, q, box, bins=40):
    d = pos[:, None] - pos[None]
    d -= box * np.round(d / box)
    r = np.sqrt((d ** 2).sum(axis=2))
    upper = np.triu_indices(len(pos), 1)
    r, like = r[upper], (q[:, None] * q)[upper] > 0
    edges = np.linspace(0, box / 2, bins + 1)
    shell = 4 / 3 * np.pi * np.diff(edges ** 3)
    same = np.histogram(r[like], bins=edges)[0]
    other = np.histogram(r[~like], bins=edges)[0]
    ideal = len(pos) ** 2 / 4 * shell / box ** 3
    return same / ideal, other / ideal


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    pos, q, box = asarray(data["pos"]), asarray(data["q"]), float(data["box"])
    ions = len(pos)
    e_real, f_real, virial = real_space(pos, q, box, ALPHA)
    e_self = self_energy(q, ALPHA, box)
    e_rec, f_rec, shell, strength = reciprocal(pos, q, box, ALPHA)
    G = influence(box, ALPHA)
    e_pme, f_pme = mesh_ewald(pos, q, box, G)
    gap = np.sqrt(((f_pme - f_rec) ** 2).mean()) / np.sqrt((f_rec ** 2).mean())
    perfect = asarray(data["lattice"])
    salt = real_space(perfect, q, box, ALPHA)[0] + e_self + reciprocal(perfect, q, box, ALPHA)[0]
    nearest = BORN * float(np.exp(np.array(-2.82 / RHO))) * 3 * ions
    madelung = -(salt - nearest) * 2.82 / (COULOMB * ions / 2)
    count = np.bincount(shell, minlength=KMAX * KMAX + 1)
    S = np.bincount(shell, weights=strength, minlength=KMAX * KMAX + 1)[1:] / np.maximum(count[1:], 1) / ions
    # down the slope with FIRE
    x, v, dt, alpha, uphill = pos.copy(), np.zeros_like(pos), 0.01, 0.1, 0
    path = []
    for step in range(RELAX):
        e1, f1, _ = real_space(x, q, box, ALPHA)
        e2, f2 = mesh_ewald(x, q, box, G)
        f = f1 + f2
        path.append(np.stack([np.asarray(e1 + e2 + e_self), np.sqrt((f ** 2).sum(axis=1)).max()]))
        if float((f * v).sum()) >= 0:
            v = (1 - alpha) * v + alpha * f * (np.linalg.norm(v) / (np.linalg.norm(f) + 1e-12))
            uphill += 1
            if uphill > 4:
                dt, alpha = min(dt * 1.1, 0.06), alpha * 0.99
        else:
            v *= 0.0
            dt, alpha, uphill = dt * 0.5, 0.1, 0
        v += dt * f
        np.clip(v * dt, -0.1, 0.1, out=f)
        x += f
    same, other = rdf(x % box, q, box)
    running = np.cumsum(other * np.diff(np.linspace(0, box / 2, 41) ** 3) * (4 / 3 * np.pi) * (ions / 2) / box ** 3)
    dipole = np.tensordot(q, x, axes=1)
    quadrupole = np.tensordot(q[:, None] * (x - box / 2), x - box / 2, axes=(0, 0))
    quadrupole -= np.trace(quadrupole) / 3 * np.eye(3)
    neutral = np.allclose(q.sum(), 0.0) and np.allclose((f_real + f_rec).sum(axis=0), 0.0, atol=1e-6)
    work = np.trapezoid(np.stack(path)[:, 1], dx=0.01)
    moved = np.sqrt(((x - perfect) ** 2).sum(axis=1))
    return dict(energy=np.asarray([e_real, e_rec, e_self, e_pme]), virial=virial, force=f_real + f_rec, gap=gap, madelung=madelung, S=S, path=np.stack(path), same=same, other=other, running=running,
                dipole=dipole, quadrupole=quadrupole, neutral=float(neutral), work=work, moved=moved, spread=np.percentile(moved, np.array([10, 50, 90])))
