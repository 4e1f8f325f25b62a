"""Objects in a lidar sweep: ground removal on a height grid, occupied voxels, connected components by label propagation,
and a bounding box per object; N is the number of points."""
import numpy as np

DEFAULT = 600000

CELL = 1.0         # ground grid, metres
VOXEL = 0.4
EXTENT = 60.0


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(64)
    ng = int(0.6 * N)
    r = EXTENT * numpy.sqrt(rng.random(ng)) * 0.98
    th = rng.uniform(0, 2 * numpy.pi, ng)
    gx, gy = r * numpy.cos(th), r * numpy.sin(th)
    gz = 0.6 * numpy.sin(gx / 17) + 0.4 * numpy.cos(gy / 23) + 0.02 * rng.standard_normal(ng)
    nobj = 45
    cx, cy = rng.uniform(-40, 40, nobj), rng.uniform(-40, 40, nobj)
    size = numpy.stack([rng.uniform(1, 5, nobj), rng.uniform(0.8, 3, nobj), rng.uniform(1.2, 4, nobj)], axis=1)
    yaw = rng.uniform(0, numpy.pi, nobj)
    no = N - ng
    which = rng.integers(0, nobj, no)
    local = rng.uniform(-0.5, 0.5, (no, 3))
    side = rng.integers(0, 3, no)
    local[numpy.arange(no), side] = numpy.where(rng.random(no) < 0.5, -0.5, 0.5)
    local *= size[which]
    ox = cx[which] + numpy.cos(yaw[which]) * local[:, 0] - numpy.sin(yaw[which]) * local[:, 1]
    oy = cy[which] + numpy.sin(yaw[which]) * local[:, 0] + numpy.cos(yaw[which]) * local[:, 1]
    oz = 0.6 * numpy.sin(cx[which] / 17) + 0.4 * numpy.cos(cy[which] / 23) + 0.5 * size[which, 2] + local[:, 2]
    xyz = numpy.concatenate([numpy.stack([gx, gy, gz], 1), numpy.stack([ox, oy, oz], 1)])
    xyz += 0.01 * rng.standard_normal(xyz.shape)
    perm = rng.permutation(N)
    return xyz[perm], rng.gamma(2.0, 20.0, N)[perm]


def ground_height(xyz, n):
    """Lowest point of each cell, holes filled from neighbours, then an opening (erosion, dilation)."""
    ij = np.clip(np.floor((xyz[:, :2] + EXTENT) / CELL).astype(np.int64), 0, n - 1)
    cell = ij[:, 0] * n + ij[:, 1]
    low = np.full(n * n, np.inf)
    np.minimum.at(low, cell, xyz[:, 2])
    low = low.reshape(n, n)
    for _ in range(200):
        empty = np.isinf(low)
        if not empty.any():
            break
        p = np.pad(low, 1, mode="constant", constant_values=np.inf)
        around = np.stack([p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:]])
        ok = np.isfinite(around)
        count = ok.sum(axis=0)
        fill = np.where(ok, around, 0.0).sum(axis=0) / np.maximum(count, 1)
        take = empty & (count > 0)
        low[take] = fill[take]
    for op in (np.minimum, np.maximum):
        for axis in (0, 1):
            p = np.concatenate([low[:1], low, low[-1:]]) if axis == 0 else \
                np.concatenate([low[:, :1], low, low[:, -1:]], axis=1)
            a, b, c = (p[k:k + n] if axis == 0 else p[:, k:k + n] for k in range(3))
            low = op(op(a, b), c)
    return low, cell


def neighbour_pairs(code, dims):
    """Index pairs of occupied voxels touching by face, edge or corner."""
    first, second = [], []
    for dx in (-1, 0, 1):
        for dy in (-1, 0, 1):
            for dz in (-1, 0, 1):
                step = (dx * dims[1] + dy) * dims[2] + dz
                if step <= 0:
                    continue
                where = np.minimum(np.searchsorted(code, code + step), len(code) - 1)
                found = np.flatnonzero(code[where] == code + step)
                first.append(found)
                second.append(where[found])
    return np.concatenate(first), np.concatenate(second)


def components(n, i, j):
    label = np.arange(n, dtype=np.int32)
    rounds = 0
    while True:
        rounds += 1
        new = label.copy()
        m = np.minimum(label[i], label[j])
        np.minimum.at(new, i, m)
        np.minimum.at(new, j, m)
        new = new[new]
        if np.array_equal(new, label):
            return label, rounds
        label = new


def main(asarray, N, given):
    xyz, intensity = map(asarray, given)
    n = int(2 * EXTENT / CELL)
    ground, cell = ground_height(xyz, n)
    height = xyz[:, 2] - ground.ravel()[cell]
    is_ground = height < 0.3
    pts, inten = xyz[~is_ground], intensity[~is_ground]

    origin = np.array([-EXTENT - 1.0, -EXTENT - 1.0, -4.0])
    v = np.floor((pts - origin) / VOXEL).astype(np.int64) + 1
    dims = [int(d) + 2 for d in v.max(axis=0)]
    code, inverse, occupancy = np.unique((v[:, 0] * dims[1] + v[:, 1]) * dims[2] + v[:, 2],
                                         return_inverse=True, return_counts=True)
    i, j = neighbour_pairs(code, dims)
    label, rounds = components(len(code), i, j)
    roots, compact = np.unique(label, return_inverse=True)
    which = compact[inverse]
    k = len(roots)

    npts = np.bincount(which, minlength=k)
    nvox = np.bincount(compact, minlength=k)
    centre = np.stack([np.bincount(which, weights=pts[:, a], minlength=k) / npts for a in range(3)], axis=1)
    bright = np.bincount(which, weights=inten, minlength=k) / npts
    lo, hi = np.full((k, 3), np.inf), np.full((k, 3), -np.inf)
    for a in range(3):
        np.minimum.at(lo[:, a], which, pts[:, a])
        np.maximum.at(hi[:, a], which, pts[:, a])

    order = np.lexsort(np.stack([np.arange(k), -nvox, -npts]))
    order = order[npts[order] >= 100]
    dx, dy = pts[:, 0] - centre[which, 0], pts[:, 1] - centre[which, 1]
    sxx, sxy, syy = (np.bincount(which, weights=w, minlength=k) / npts for w in (dx * dx, dx * dy, dy * dy))
    long_axis = 0.5 * (sxx + syy) + np.sqrt(0.25 * (sxx - syy) ** 2 + sxy ** 2)
    by_label = np.argsort(which * 2 ** 20 + np.arange(len(which)))
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(npts)])[:-1]
    first_points = pts[by_label[starts[order]]]
    size = (hi - lo)[order]
    return dict(ground=ground, ground_points=is_ground.sum(), voxels=len(code), pairs=len(i), objects=len(order),
                clusters=k, lower=lo[order], upper=hi[order], size=size, volume=np.prod(size, axis=1), points=npts[order],
                nvox=nvox[order], centre=centre[order], brightness=bright[order], long_axis=long_axis[order],
                first=first_points, occupancy=np.bincount(occupancy)[:40], point_label=which,
                mean_height=height[~is_ground].mean())
