"""Geometry of a bumpy closed triangle mesh (a torus of N by N/2 vertices): normals, angle-defect and cotangent
curvature, Taubin smoothing and statistics of independent shortest-edge collapses; N is the number of vertices around."""
import numpy as np

DEFAULT = 260


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(77)
    nu, nv = N, N // 2
    u, v = numpy.meshgrid(numpy.arange(nu), numpy.arange(nv), indexing="ij")
    a = 2 * numpy.pi * (u + 0.25 * rng.uniform(-1, 1, u.shape)) / nu
    b = 2 * numpy.pi * (v + 0.25 * rng.uniform(-1, 1, u.shape)) / nv
    r = 1.0 + 0.05 * numpy.sin(5 * a) * numpy.cos(3 * b) + 0.004 * rng.standard_normal(u.shape)
    xyz = numpy.stack([(3 + r * numpy.cos(b)) * numpy.cos(a), (3 + r * numpy.cos(b)) * numpy.sin(a),
                       r * numpy.sin(b)], axis=-1).reshape(-1, 3)
    here = u * nv + v
    right = (u + 1) % nu * nv + v
    up = u * nv + (v + 1) % nv
    both = (u + 1) % nu * nv + (v + 1) % nv
    faces = numpy.concatenate([numpy.stack([here, right, both], -1).reshape(-1, 3),
                               numpy.stack([here, both, up], -1).reshape(-1, 3)])
    return xyz, faces[rng.permutation(len(faces))]


def norm(v):
    return np.sqrt(np.einsum("ij,ij->i", v, v))


def edges_of(faces, nvert):
    """Unique undirected edges, the edge of each half-edge, and the number of faces at each edge."""
    half = np.concatenate([faces[:, [1, 2]], faces[:, [2, 0]], faces[:, [0, 1]]])
    lo, hi = half.min(axis=1), half.max(axis=1)
    code, inverse, count = np.unique(lo * nvert + hi, return_inverse=True, return_counts=True)
    return np.stack([code // nvert, code % nvert], axis=1), inverse.reshape(3, -1).T, count


def normals(p, faces):
    a, b, c = p[faces[:, 0]], p[faces[:, 1]], p[faces[:, 2]]
    cr = np.cross(b - a, c - a)
    area = 0.5 * norm(cr)
    vn = np.zeros_like(p)
    for k in range(3):
        np.add.at(vn, faces[:, k], cr)
    vn /= norm(vn)[:, None]
    volume = np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0
    return cr, area, vn, volume


def corners(p, faces):
    """Interior angle and its cotangent at each corner of each face."""
    angle = np.empty(faces.shape, dtype=np.float64)
    cot = np.empty_like(angle)
    for k in range(3):
        o = p[faces[:, k]]
        e1 = p[faces[:, (k + 1) % 3]] - o
        e2 = p[faces[:, (k + 2) % 3]] - o
        dot = np.sum(e1 * e2, axis=1)
        crs = norm(np.cross(e1, e2))
        angle[:, k] = np.arctan2(crs, dot)
        cot[:, k] = dot / crs
    return angle, cot


def smooth(p, edges, rounds, lam=0.5, mu=-0.53):
    i, j = edges[:, 0], edges[:, 1]
    n = p.shape[0]
    degree = np.bincount(i, minlength=n) + np.bincount(j, minlength=n)
    p = p.copy()
    for it in range(rounds):
        for factor in (lam, mu):
            acc = np.zeros_like(p)
            np.add.at(acc, i, p[j])
            np.add.at(acc, j, p[i])
            p += factor * (acc / degree[:, None] - p)
    return p, degree


def collapse(p, faces, edges, length):
    """Collapse, all at once, every edge that is the shortest among the edges at both its ends' neighbours."""
    n = p.shape[0]
    order = np.argsort(length)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    best = np.full(n, len(order), dtype=np.int32)
    for round in range(2):                   # second pass spreads to the one-ring
        key = rank if round == 0 else np.minimum(best[edges[:, 0]], best[edges[:, 1]])
        ring = best.copy()
        np.minimum.at(ring, edges[:, 0], key)
        np.minimum.at(ring, edges[:, 1], key)
        best = ring
    chosen = (best[edges[:, 0]] == rank) & (best[edges[:, 1]] == rank)
    keep, gone = edges[chosen, 0], edges[chosen, 1]
    target = np.arange(n)
    target[gone] = keep
    q = p.copy()
    q[keep] = 0.5 * (p[keep] + p[gone])
    f = target[faces]
    alive = (f[:, 0] != f[:, 1]) & (f[:, 1] != f[:, 2]) & (f[:, 2] != f[:, 0])
    used = np.zeros(n, dtype=bool)
    used[f[alive].ravel()] = True
    renumber = np.cumsum(used) - 1
    return q[used], renumber[f[alive]], int(chosen.sum())


def main(asarray, N, given):
    p, faces = map(asarray, given)
    n = p.shape[0]
    edges, face_edge, count = edges_of(faces, n)
    cr, area, vn, volume = normals(p, faces)
    angle, cot = corners(p, faces)
    gauss = 2 * np.pi - np.bincount(faces.ravel(), weights=angle.ravel(), minlength=n)
    varea = np.bincount(faces.ravel(), weights=(area[:, None] * np.ones(3)).ravel(), minlength=n) / 3
    w = np.bincount(face_edge.ravel(), weights=cot.ravel(), minlength=len(edges)) * 0.5
    diff = w[:, None] * (p[edges[:, 1]] - p[edges[:, 0]])
    lap = np.zeros_like(p)
    np.add.at(lap, edges[:, 0], diff)
    np.subtract.at(lap, edges[:, 1], diff)
    mean_curv = -0.5 * np.sum(lap * vn, axis=1) / varea
    sm, degree = smooth(p, edges, 8)
    length = norm(sm[edges[:, 0]] - sm[edges[:, 1]])
    q, g, history = sm, faces, []
    for _ in range(4):
        e, fe, cnt = edges_of(g, len(q))
        q, g, k = collapse(q, g, e, norm(q[e[:, 0]] - q[e[:, 1]]))
        history.append([k, len(q), len(e), len(g)])
    turned = np.sum(normals(sm, faces)[2] * vn, axis=1)
    return dict(area=area.sum(), volume=volume, euler=n - len(edges) + len(faces), closed=int((count == 2).all()),
                total_curvature=np.abs(gauss).sum(), gauss_bonnet=1.0 + gauss.sum(), normals=vn, gauss=gauss / varea,
                mean_curv=mean_curv, smoothed=sm, smooth_volume=normals(sm, faces)[3], lengths=np.sort(length)[::50],
                quantiles=np.percentile(length, np.array([5.0, 25.0, 50.0, 75.0, 95.0])), degrees=np.bincount(degree),
                turned=turned.mean(), history=np.array(history), left_area=normals(q, g)[1].sum(), left=q)
