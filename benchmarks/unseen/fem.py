"""Finite elements for the heat equation: a distorted plate with a hole, element matrices, assembly to CSR by sorting, Robin edges, conductivity that varies with temperature, preconditioned CG. N: nodes a side."""
import numpy
import numpy as np

DEFAULT = 104
STEPS, DT, HOT, COLD = 4, 0.004, 3.0, 0.0


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(305)
    x, y = numpy.meshgrid(numpy.linspace(0, 1, N), numpy.linspace(0, 1, N), indexing="ij")
    inner = numpy.zeros((N, N), bool)
    inner[1:-1, 1:-1] = True
    step = 1 / (N - 1)
    x = x + inner * rng.uniform(-0.2, 0.2, x.shape) * step
    y = y + inner * rng.uniform(-0.2, 0.2, y.shape) * step
    k = numpy.arange(N * N).reshape(N, N)
    a, b, c, d = k[:-1, :-1].ravel(), k[1:, :-1].ravel(), k[1:, 1:].ravel(), k[:-1, 1:].ravel()
    triangles = numpy.concatenate([numpy.stack([a, b, c], 1), numpy.stack([a, c, d], 1)])
    nodes = numpy.stack([x.ravel(), y.ravel()], axis=1)
    middle = nodes[triangles].mean(axis=1)
    keep = ((middle - 0.5) ** 2).sum(axis=1) > 0.15 ** 2
    used, renumbered = numpy.unique(triangles[keep], return_inverse=True)
    return dict(nodes=nodes[used], triangles=renumbered.reshape(-1, 3).astype(numpy.int32), source=rng.normal(0, 1, (6, 2)) * 0.2 + 0.5)


def geometry(nodes, triangles):
    p = nodes[triangles]                                   # element, corner, axis
    edge = np.roll(p, -1, axis=1) - np.roll(p, 1, axis=1)
    d1, d2 = p[:, 1] - p[:, 0], p[:, 2] - p[:, 0]
    area = 0.5 * (d1[:, 0] * d2[:, 1] - d1[:, 1] * d2[:, 0])
    grads = np.stack([edge[..., 1], -edge[..., 0]], axis=2) / (-2 * area[:, None, None])
    return area, grads


class Csr:
    """Sparsity of the mesh once, values many times."""

    def __init__(self, triangles, n):
        rows = np.repeat(triangles, 3, axis=1).ravel().astype(np.int64)
        cols = np.tile(triangles, (1, 3)).ravel().astype(np.int64)
        self.n = n
        key = rows * n + cols
        unique, self.slot = np.unique(key, return_inverse=True)
        self.rows, self.cols = np.divmod(unique, n)
        self.start = np.searchsorted(self.rows, np.arange(n))
        self.diagonal = np.flatnonzero(self.rows == self.cols)

    def assemble(self, local):
        values = np.zeros(self.cols.shape)
        np.add.at(values, self.slot.ravel(), local.ravel())
        return values

    def apply(self, values, x):
        return np.bincount(self.rows, weights=values * x[self.cols], minlength=self.n)

    def rowsum(self, values):
        return np.add.reduceat(values, self.start)


def boundary(triangles, n):
    """Edges that only one triangle has."""
    ends = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]).astype(np.int64)
    key = ends.min(axis=1) * n + ends.max(axis=1)
    unique, counts = np.unique(key, return_counts=True)
    single = unique[counts == 1]
    return single // n, single % n


def conjugate(mesh, A, b, x, fixed, tol=1e-12):
    inverse = np.where(fixed, 0.0, 1 / A[mesh.diagonal])
    r = np.where(fixed, 0.0, b - mesh.apply(A, x))
    z = inverse * r
    p = z.copy()
    rz = r @ z
    target = tol ** 2 * float(rz) + 1e-300
    for k in range(800):
        q = np.where(fixed, 0.0, mesh.apply(A, p))
        alpha = rz / (p @ q)
        x = x + alpha * p
        r -= alpha * q
        np.multiply(inverse, r, out=z)
        fresh = r @ z
        if k % 4 == 3 and float(fresh) < target:
            break
        p *= fresh / rz
        p += z
        rz = fresh
    return x


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    nodes, triangles = asarray(data["nodes"]), asarray(data["triangles"])
    n = nodes.shape[0]
    area, grads = geometry(nodes, triangles)
    mesh = Csr(triangles, n)
    # mass: consistent; the heat sources: Gaussians, by the mid-edge rule
    mass = mesh.assemble((np.ones((3, 3)) + np.eye(3)) * area[:, None, None] / 12)
    half = np.array([[0.5, 0.5, 0], [0, 0.5, 0.5], [0.5, 0, 0.5]])
    quad = np.einsum("qc,ecd->eqd", half, nodes[triangles])
    bumps = asarray(data["source"])
    heat = np.exp(-((quad[:, :, None, :] - bumps) ** 2).sum(axis=-1) / 0.004).sum(axis=-1)
    load = np.zeros(n)
    np.add.at(load, triangles, (heat @ half) * (area[:, None] / 3))
    load *= 40
    left, right = nodes[:, 0] < 1e-9, nodes[:, 0] > 1 - 1e-9
    fixed = left & (nodes[:, 1] > 0.25)
    # Robin: h (u - COLD) on the edge x = 1, and a flux through the hole
    e0, e1 = boundary(triangles, n)
    length = np.hypot(*(nodes[e1] - nodes[e0]).T)
    robin = right[e0] & right[e1]
    hole = ((0.5 * (nodes[e0] + nodes[e1]) - 0.5) ** 2).sum(axis=1) < 0.2 ** 2
    lumped = np.bincount(np.concatenate([e0[robin], e1[robin]]), weights=np.tile(5.0 * length[robin] / 2, 2), minlength=n)
    flux_in = np.bincount(np.concatenate([e0[hole], e1[hole]]), weights=np.tile(2.0 * length[hole] / 2, 2), minlength=n)
    load += flux_in + lumped * COLD
    u = np.where(fixed, HOT * np.sin(np.pi * nodes[:, 1]), 1.0)
    gram = np.einsum("eid,ejd->eij", grads, grads) * area[:, None, None]
    total, track, hottest = [], [], []
    for step in range(STEPS):
        mean_u = u[triangles].mean(axis=1)
        kappa = 1 + 0.3 * np.tanh(mean_u)
        stiffness = mesh.assemble(gram * kappa[:, None, None])
        stiffness[mesh.diagonal] += lumped
        A = mass + 0.5 * DT * stiffness
        b = mesh.apply(mass, u) - 0.5 * DT * mesh.apply(stiffness, u) + DT * load
        u = conjugate(mesh, A, b, u, fixed)
        total.append(mesh.apply(mass, u).sum())
        hottest.append(u.max())
        track.append(np.quantile(u, np.array([0.05, 0.25, 0.5, 0.75, 0.95])))
    # the steady state by Picard iterations
    steady = u
    for _ in range(1):
        stiffness = mesh.assemble(gram * (1 + 0.3 * np.tanh(steady[triangles].mean(axis=1)))[:, None, None])
        stiffness[mesh.diagonal] += lumped
        steady = conjugate(mesh, stiffness, load, steady, fixed)
    # recovered gradients: element gradients averaged to the nodes by area, and the error that their jump tells
    gradient = np.einsum("ec,ecd->ed", u[triangles], grads)
    weight = np.bincount(triangles.ravel(), weights=np.repeat(area, 3), minlength=n)
    smooth = np.stack([np.bincount(triangles.ravel(), weights=np.repeat(area * gradient[:, d], 3), minlength=n) / weight for d in range(2)], axis=1)
    estimate = np.sqrt(area * ((smooth[triangles].mean(axis=1) - gradient) ** 2).sum(axis=1))
    share = np.cumsum(np.sort(estimate ** 2)[::-1])
    marked = int(np.searchsorted(share, 0.5 * share[-1]))
    lumps = mesh.rowsum(mass)
    spread = np.sqrt((lumps * (u - (lumps @ u) / lumps.sum()) ** 2).sum() / lumps.sum())
    residual = mesh.apply(stiffness, steady) - load
    reaction = np.where(fixed, residual, 0.0).sum()
    line = np.flatnonzero(nodes[:, 1] < 1e-9)
    line = line[np.argsort(nodes[line, 0])]
    section = np.interp(np.linspace(0, 1, 21), nodes[line, 0], u[line])
    quality = 4 * np.sqrt(3.0) * area / ((np.roll(nodes[triangles], -1, axis=1) - nodes[triangles]) ** 2).sum(axis=(1, 2))
    return dict(u=u, steady=steady, total=np.stack(total), track=np.stack(track), hottest=np.stack(hottest), smooth=smooth, estimate=estimate,
                marked=float(marked), reaction=float(reaction), lumps=lumps, spread=spread, section=section, quality=np.histogram(quality, bins=15, range=(0, 1))[0],
                perimeter=float(length.sum()), nonzeros=float(mesh.cols.size))
