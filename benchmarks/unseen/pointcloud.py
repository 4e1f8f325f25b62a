"""A laser scan: voxel thinning, grid-hashed nearest neighbours in 3-D, normals by batched eigh, ground plane by RANSAC, clusters by pointer jumping, boxes, point-to-plane ICP. N: points."""
import numpy
import numpy as np

DEFAULT = 16000
NEAR, TRIALS, ICP = 10, 48, 7


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(4109)

    def scene(n):
        ground = numpy.stack([rng.uniform(-20, 20, n // 2), rng.uniform(-20, 20, n // 2), rng.normal(0, 0.02, n // 2)], axis=1)
        ground[:, 2] += 0.03 * ground[:, 0]
        parts = [ground]
        each = (n - n // 2) // 9
        for k in range(9):
            c = numpy.array([-14 + 14 * (k % 3), -14 + 14 * (k // 3), 1.0])
            u = rng.normal(size=(each, 3))
            if k % 2:
                u = u / numpy.abs(u).max(axis=1, keepdims=True) * numpy.array([1.5 + 0.2 * k, 1.2, 0.9])
            else:
                u = u / numpy.linalg.norm(u, axis=1, keepdims=True) * (1.0 + 0.05 * k)
            p = c + u
            p[:, 2] += 0.03 * c[0] + 0.2
            parts.append(p)
        return numpy.concatenate(parts) + rng.normal(0, 0.01, (n // 2 + 9 * each, 3))
    a, b = scene(N), scene(N)
    t = 0.02
    R = numpy.array([[numpy.cos(t), -numpy.sin(t), 0], [numpy.sin(t), numpy.cos(t), 0], [0, 0, 1]]) @ numpy.array([[1, 0, 0], [0, numpy.cos(0.01), -numpy.sin(0.01)], [0, numpy.sin(0.01), numpy.cos(0.01)]])
    return dict(a=a, b=b @ R.T + numpy.array([0.15, -0.1, 0.06]), draws=rng.random((TRIALS, 3)), bright=rng.integers(0, 256, len(a)).astype(numpy.uint8))


def voxels(p, extra, size):
    """The mean of the points (and of extra) in each occupied voxel."""
    low = p.min(axis=0)
    ijk = np.floor((p - low) / size).astype(np.int64)
    dims = ijk.max(axis=0) + 1
    key = (ijk[:, 0] * dims[1] + ijk[:, 1]) * dims[2] + ijk[:, 2]
    _, inverse, count = np.unique(key, return_inverse=True, return_counts=True)
    mean = np.stack([np.bincount(inverse, weights=p[:, k]) for k in range(3)], axis=1) / count[:, None]
    return mean, np.bincount(inverse, weights=extra) / count, count


class Grid:
    def __init__(self, points, size):
        self.points, self.size = points, size
        self.low = points.min(axis=0) - 1.5 * size
        ijk = self.cells(points)
        self.dims = ijk.max(axis=0) + 3
        key = self.key(ijk)
        self.order = np.argsort(key, kind="stable")
        self.sorted = key[self.order]
        self.most = int(np.unique(key, return_counts=True)[1].max())
        near = np.arange(-1, 2)
        self.shift = np.stack(np.meshgrid(near, near, near, indexing="ij"), axis=-1).reshape(27, 3)

    def cells(self, p):
        return np.floor((p - self.low) / self.size).astype(np.int64)

    def key(self, ijk):
        return (ijk[..., 0] * self.dims[1] + ijk[..., 1]) * self.dims[2] + ijk[..., 2]

    def nearest(self, q, k, block=2048):
        """The k nearest within one cell's size: places and squared distances, inf where there are fewer."""
        where, far = [], []
        for lo in range(0, len(q), block):
            part = q[lo:lo + block]
            cells = np.clip(self.cells(part)[:, None, :] + self.shift, 0, self.dims - 1)
            key = self.key(cells)
            begin = np.searchsorted(self.sorted, key.ravel(), side="left").reshape(key.shape)
            count = np.searchsorted(self.sorted, key.ravel(), side="right").reshape(key.shape) - begin
            best = np.full((len(part), k), np.inf)
            index = np.zeros((len(part), k), dtype=np.int64)
            # candidates are packed to the left: place s of every query
            ends = np.cumsum(count, axis=1)
            most = int(ends[:, -1].max())
            slot = np.broadcast_to(np.arange(most), (len(part), most))
            cell = (slot[:, :, None] >= ends[:, None, :-1]).sum(axis=2) if most * len(part) < 60000 else self.which(ends, most)
            start = np.take_along_axis(begin, cell, axis=1)
            before = np.take_along_axis(ends - count, cell, axis=1)
            good = slot < ends[:, -1:]
            at = self.order[np.clip(start + slot - before, 0, len(self.order) - 1)]
            d2 = ((self.points[at] - part[:, None, :]) ** 2).sum(axis=2)
            d2 = np.where(good & (d2 <= self.size ** 2), d2, np.inf)
            if most > k:
                first = np.argsort(d2, axis=1, kind="stable")[:, :k]
                best, index = np.take_along_axis(d2, first, axis=1), np.take_along_axis(at, first, axis=1)
            else:
                best[:, :most], index[:, :most] = d2, at
            where.append(index)
            far.append(best)
        return np.concatenate(where), np.concatenate(far)

    def which(self, ends, most):
        """The cell that each slot falls in, by counting where cells end."""
        steps = np.zeros((len(ends), most + 1))
        rows = np.broadcast_to(np.arange(len(ends))[:, None], ends[:, :-1].shape)
        np.add.at(steps, (rows, np.minimum(ends[:, :-1], most)), 1.0)
        return np.cumsum(steps[:, :most], axis=1).astype(np.int64)


def normals(points, where, far):
    ok = np.isfinite(far)
    n = ok.sum(axis=1)
    around = points[where]
    weight = ok / n[:, None]
    mean = (around * weight[:, :, None]).sum(axis=1)
    d = (around - mean[:, None]) * ok[:, :, None]
    C = np.einsum("nki,nkj->nij", d, d) / n[:, None, None] + 1e-6 * np.diag(np.array([1.0, 2.0, 3.0]))
    w, V = np.linalg.eigh(C)
    normal = V[:, :, 0]
    view = np.array([0.0, 0.0, 8.0]) - points
    normal = normal * np.where((normal * view).sum(axis=1) < 0, -1.0, 1.0)[:, None]
    return normal, w[:, 0] / w.sum(axis=1), n


def plane(points, draws):
    pick = (draws * len(points)).astype(int)
    p = points[pick]
    n = np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0])
    n /= np.linalg.norm(n, axis=1, keepdims=True) + 1e-12
    n *= np.where(n[:, 2:] < 0, -1, 1)
    off = (n * p[:, 0]).sum(axis=1)
    height = np.abs(points @ n.T - off)
    votes = (height < 0.08).sum(axis=0)
    k = int(votes.argmax())
    inside = height[:, k] < 0.08
    for _ in range(4):
        c = points[inside].mean(axis=0)
        d = points[inside] - c
        w, V = np.linalg.eigh(d.T @ d)
        n = V[:, 0] * np.sign(V[2, 0])
        inside = np.abs((points - c) @ n) < 0.1
    return n, c, inside, votes


def components(n, i, j):
    label = np.arange(n, dtype=np.int32)
    rounds = 0
    while True:
        new = label.copy()
        np.minimum.at(new, i, label[j])
        np.minimum.at(new, j, label[i])
        np.minimum.at(new, label, new.copy())
        for _ in range(3):
            new = new[new]
        rounds += 1
        if bool((new == label).all()):
            return label, rounds
        label = new


def icp(target, normal, grid, source, rounds):
    R, t = np.eye(3), np.zeros(3)
    errors = []
    for _ in range(rounds):
        p = source @ R.T + t
        where, far = grid.nearest(p, 1)
        d = np.sqrt(far[:, 0])
        ok = d < min(grid.size, 3 * float(np.median(d[np.isfinite(d)])) + 0.05)
        p, q, n = p[ok], target[where[ok, 0]], normal[where[ok, 0]]
        r = ((q - p) * n).sum(axis=1)
        weight = 1 / (1 + (r / 0.05) ** 2)
        J = np.concatenate([np.cross(p, n), n], axis=1)
        A = (J * weight[:, None]).T @ J
        x = np.linalg.solve(A + 1e-6 * np.eye(6), J.T @ (weight * r))
        a = x[:3]
        angle = np.linalg.norm(a) + 1e-15
        k = a / angle
        K = np.zeros((3, 3))
        K[0, 1], K[0, 2], K[1, 2] = -k[2], k[1], -k[0]
        K -= K.T.copy()
        turn = np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * (K @ K)
        R, t = turn @ R, turn @ t + x[3:]
        errors.append(np.sqrt((weight * r * r).sum() / weight.sum()))
    return R, t, np.stack(errors), ok.mean()


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    a, b, bright = asarray(data["a"]), asarray(data["b"]), asarray(data["bright"])
    p, glow, count = voxels(a, bright, 0.22)
    grid = Grid(p, 0.6)
    where, far = grid.nearest(p, NEAR)
    normal, bend, found = normals(p, where, far)
    up, centre, ground, votes = plane(p, asarray(data["draws"]))
    rest = np.flatnonzero(~ground)
    q = p[rest]
    small = Grid(q, 0.6)
    to, d2 = small.nearest(q, NEAR)
    i, k = np.nonzero(np.isfinite(d2))
    label, rounds = components(len(q), i, to[i, k])
    names, group, size = np.unique(label, return_inverse=True, return_counts=True)
    low, high = np.full((len(names), 3), np.inf), np.full((len(names), 3), -np.inf)
    np.minimum.at(low, group, q)
    np.maximum.at(high, group, q)
    big = np.flatnonzero(size >= 15)
    mean = np.stack([np.bincount(group, weights=q[:, c]) for c in range(3)], axis=1) / size[:, None]
    d = q - mean[group]
    C = np.zeros((len(names), 3, 3))
    np.add.at(C, group, d[:, :, None] * d[:, None, :])
    shape = np.linalg.eigvalsh(C[big] / size[big][:, None, None])
    # height map of the thinned cloud
    height = (p - centre) @ up
    gx, gy = np.clip(((p[:, 0] + 21) / 1.5).astype(int), 0, 27), np.clip(((p[:, 1] + 21) / 1.5).astype(int), 0, 27)
    top = np.full((28, 28), np.nan)
    chart = np.full((28, 28), -np.inf)
    np.maximum.at(chart, (gx, gy), height)
    top = np.where(np.isfinite(chart), chart, top)
    source, _, _ = voxels(b, bright[:1] * np.ones(len(b)), 0.3)
    R, t, errors, used = icp(p, normal, grid, source, ICP)
    sharp = np.histogram(bend, bins=24, range=(0.0, 0.34))[0]
    outlier = np.sqrt(np.where(np.isfinite(far), far, 0.36)).mean(axis=1)
    noisy = outlier > outlier.mean() + 2 * outlier.std()
    return dict(p=p, glow=glow, count=np.bincount(count), normal=np.abs(normal), bend=bend, found=found, up=up, votes=votes, ground=ground, size=size[big], low=low[big], high=high[big], shape=shape, rounds=rounds,
                top=np.nanmean(top, axis=0), R=R, t=t, errors=errors, used=used, sharp=sharp, noisy=noisy.sum())
