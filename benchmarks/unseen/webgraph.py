"""A web graph in CSR arrays made by hand: PageRank, components, breadth-first levels, and a Laplacian solve.

N: pages.
"""
import numpy as np

DEFAULT = 40000


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(77)
    m = 7 * N
    src = rng.integers(0, N, m)
    far = (N * rng.power(0.45, m)).astype(numpy.int64)
    near = (src + rng.geometric(0.05, m)) % N
    dst = numpy.where(rng.uniform(size=m) < 0.5, far, near)
    keep = (rng.uniform(size=N) < 0.92)[src] & (src % 17 != 3)           # some pages have no links
    src, dst = src[keep], dst[keep]
    return src.astype(numpy.int32), dst.astype(numpy.int32), rng.integers(1, 5, len(src)), rng.integers(0, 4, N)


class CSR:
    def __init__(self, row, col, val, n):
        key = row.astype(np.int64) * n + col
        key, inverse = np.unique(key, return_inverse=True)
        self.val = np.bincount(inverse, weights=val, minlength=len(key))
        self.row, self.col, self.n = key // n, key % n, n
        count = np.bincount(self.row, minlength=n)
        self.ptr = np.concatenate([np.zeros(1, dtype=count.dtype), np.cumsum(count)])
        self.busy = np.flatnonzero(count)
        self.starts = self.ptr[:-1][self.busy]

    def __matmul__(self, x):
        y = np.zeros(x.shape)
        if x.ndim == 1:
            y[self.busy] = np.add.reduceat(self.val * x[self.col], self.starts)
        else:
            y[self.busy] = np.add.reduceat(self.val[:, None] * x[self.col], self.starts, axis=0)
        return y

    @property
    def T(self):
        return CSR(self.col, self.row, self.val, self.n)

    def sums(self):
        return np.bincount(self.row, weights=self.val, minlength=self.n)


def pagerank(A, jump, damping=0.85, tol=1e-10):
    """One or several rankings (columns of jump); dangling pages jump."""
    out = A.sums()
    dangling = out == 0
    inv = np.where(dangling, 0.0, 1.0 / np.maximum(out, 1.0))
    back, x, history = A.T, jump.copy(), []
    for _ in range(150):
        scaled = x * (inv if x.ndim == 1 else inv[:, None])
        lost = x[dangling].sum(axis=0)
        new = damping * (back @ scaled + lost * jump) + (1 - damping) * jump
        history.append(float(np.abs(new - x).sum(axis=0).max()))
        x = new
        if history[-1] < tol:
            break
    return x, np.array(history)


def components(row, col, n):
    label = np.arange(n, dtype=float)
    while True:
        new = label.copy()
        np.minimum.at(new, row, label[col])
        np.minimum.at(new, col, label[row])
        new = new[new.astype(np.int64)]
        if bool(np.array_equal(new, label)):
            return label.astype(np.int64)
        label = new


def levels(A, start):
    level, front, depth = np.full(A.n, -1), np.arange(A.n) == start, 0
    while bool(front.any()):
        level[front] = depth
        reached = np.zeros(A.n, dtype=bool)
        reached[A.col[front[A.row]]] = True
        front = reached & (level < 0)
        depth += 1
    return level


def conjugate_gradients(apply, b, diagonal, tol=1e-9):
    x, r, z = np.zeros_like(b), b.copy(), b / diagonal
    p, rz, target = z.copy(), r @ z, tol * float(np.linalg.norm(b))
    for it in range(1, 400):
        q = apply(p)
        a = rz / (p @ q)
        x += a * p
        r -= a * q
        if float(np.linalg.norm(r)) < target:
            break
        z = r / diagonal
        rz, old = r @ z, rz
        p *= rz / old
        p += z
    return x, it


def main(asarray, N, given):
    src, dst, weight, topic = (asarray(g) for g in given)
    A = CSR(src, dst, weight, N)
    rank, history = pagerank(A, np.full(N, 1.0 / N))
    member = (topic[:, None] == np.arange(4)).astype(float)
    themed, _ = pagerank(A, member / member.sum(axis=0), tol=1e-8)
    off = A.row != A.col
    S = CSR(np.concatenate([A.row[off], A.col[off]]), np.concatenate([A.col[off], A.row[off]]),
            np.tile(A.val[off], 2), N)
    names, size = np.unique(components(A.row, A.col, N), return_counts=True)
    level = levels(S, int(rank.argmax()))
    # known values on some pages spread by the Laplacian
    degree, fixed = S.sums(), (np.arange(N) % 50 == 0) * 5.0
    diag = degree + fixed + 0.01
    b = fixed * np.cos(topic * 1.3)
    spread, its = conjugate_gradients(lambda v: diag * v - (S @ v), b, diag)
    inlinks = np.bincount(A.col, minlength=N)
    slope = np.polyfit(np.log(inlinks[inlinks > 0]), np.log(rank[inlinks > 0]), 1)
    top = np.argsort(-rank)[:50]
    block = np.bincount(topic[A.row] * 4 + topic[A.col], weights=A.val).reshape(4, 4)
    return dict(rank=rank, history=len(history), themed=themed[top], top=np.sort(rank[top]),
                size=np.sort(size)[::-1][:5], components=len(names), levels=np.bincount(level[level >= 0]),
                unreached=int((level < 0).sum()), spread=spread, iterations=its, slope=slope, block=block,
                gini=1 - 2 * np.mean(np.cumsum(np.sort(rank))), degree=np.percentile(degree, [10, 50, 90, 99]))
