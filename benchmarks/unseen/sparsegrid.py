"""Sparse grids: Smolyak's quadrature with Clenshaw and Curtis, hierarchical hats with refinement by surplus, Gauss rules
of Golub and Welsch for a polynomial chaos with Sobol' indices. N: level of the quadrature.
"""
import numpy as np

DEFAULT = 7
DIM = 5


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(88)
    c = rng.uniform(0.3, 1.0, (4, DIM))
    return c * numpy.array([[4.0], [2.5], [2.0], [3.0]]) / c.sum(axis=1, keepdims=True) * 2, rng.random((4, DIM)), rng.random((1000, 3)), rng.random((20000, DIM))


def genz(kind, x, c, w):
    """Oscillating, product peak, gaussian, continuous; x is (points, DIM)."""
    if kind == 0:
        return np.cos(2 * np.pi * w[0] + x @ c)
    if kind == 1:
        return np.prod(1.0 / (1.0 + (c * (x - w)) ** 2), axis=1)
    if kind == 2:
        return np.exp(-((c * (x - w)) ** 2).sum(axis=1))
    return np.exp(-(c * np.abs(x - w)).sum(axis=1))


def clenshaw(level):
    """Nodes in [0, 1] as numbers on the finest grid of cosines, and weights."""
    if level == 0:
        return np.array([0.5]), np.array([1.0])
    n = 2 ** level
    theta = np.pi * np.arange(n + 1) / n
    j = np.arange(1, n // 2 + 1)
    b = np.where(j == n // 2, 1.0, 2.0)
    w = 1.0 - (b / (4.0 * j * j - 1) * np.cos(2 * np.outer(theta, j))).sum(axis=1)
    w *= 2.0 / n
    w[0] *= 0.5
    w[-1] *= 0.5
    return 0.5 * (1 - np.cos(theta)), 0.5 * w


def levels(dim, total):
    """All vectors of levels with the given sum."""
    if dim == 1:
        return [(total,)]
    return [(k,) + rest for k in range(total + 1) for rest in levels(dim - 1, total - k)]


def binomial(n, k):
    out = 1
    for i in range(k):
        out = out * (n - i) // (i + 1)
    return out


class Smolyak:
    """The combination of tensor rules with the equal points of different rules joined."""

    def __init__(self, dim, level):
        rules = [clenshaw(k) for k in range(level + 1)]
        fine = 2 ** level
        places = [np.array([fine // 2]) if k == 0 else np.arange(2 ** k + 1) * (fine // 2 ** k) for k in range(level + 1)]
        keys, weights = [], []
        for q in range(max(0, level - dim + 1), level + 1):
            sign = (-1) ** (level - q) * binomial(dim - 1, level - q)
            for vector in levels(dim, q):
                key, w = np.zeros(1, dtype=np.int64), np.full(1, float(sign))
                for k in vector:
                    key = (key[:, None] * (fine + 1) + places[k]).ravel()
                    w = np.outer(w, rules[k][1]).ravel()
                keys.append(key)
                weights.append(w)
        key, where = np.unique(np.concatenate(keys), return_inverse=True)
        self.weight = np.bincount(where, weights=np.concatenate(weights))
        digits = np.stack([key // (fine + 1) ** (dim - 1 - i) % (fine + 1) for i in range(dim)], axis=1)
        self.points = 0.5 * (1 - np.cos(np.pi * digits / fine))


class Hats:
    """Piecewise linear hierarchical functions in three dimensions, zero on the border, refined where surpluses are large."""

    def __init__(self, f):
        self.f = f
        self.level, self.index = np.ones((1, 3), dtype=np.int64), np.ones((1, 3), dtype=np.int64)
        self.surplus = f(self.centres(self.level, self.index))

    def centres(self, level, index):
        return index / 2.0 ** level

    def evaluate(self, x, chunk=500):
        out = np.empty(len(x))
        for s in range(0, len(x), chunk):
            part = x[s:s + chunk, None, :]
            hat = 1.0 - np.abs(part * 2.0 ** self.level - self.index)
            out[s:s + chunk] = np.prod(np.maximum(hat, 0.0), axis=2) @ self.surplus
        return out

    def code(self, level, index):
        """One number for each node: its place on the grid of level 12."""
        at = index << (12 - level)
        return (at[:, 0] * 4096 + at[:, 1]) * 4096 + at[:, 2]

    def refine(self, tol, newest):
        """Children in all directions of the newest nodes with a large surplus, if they are not there yet."""
        chosen = newest[np.abs(self.surplus[newest]) > tol]
        if chosen.size == 0:
            return chosen
        ls, ks = [], []
        for d in range(3):
            for side in (-1, 1):
                level, index = self.level[chosen].copy(), self.index[chosen].copy()
                level[:, d] += 1
                index[:, d] = 2 * index[:, d] + side
                ls.append(level)
                ks.append(index)
        level, index = np.concatenate(ls), np.concatenate(ks)
        code, first = np.unique(self.code(level, index), return_index=True)
        first = first[~np.isin(code, self.code(self.level, self.index))]
        level, index = level[first], index[first]
        x = self.centres(level, index)
        # by sum of levels: a node's surplus needs those of all coarser nodes
        total = level.sum(axis=1)
        for t in np.unique(total).tolist():
            now = total == t
            extra = self.f(x[now]) - self.evaluate(x[now])
            self.level = np.concatenate([self.level, level[now]])
            self.index = np.concatenate([self.index, index[now]])
            self.surplus = np.concatenate([self.surplus, extra])
        return np.arange(len(self.surplus) - first.size, len(self.surplus))

    def integral(self):
        return (self.surplus * 0.5 ** self.level.sum(axis=1)).sum()


def gauss(n):
    """Legendre's rule on [0, 1] from the eigenvectors of the recurrence."""
    k = np.arange(1.0, n)
    off = k / np.sqrt(4 * k * k - 1)
    x, v = np.linalg.eigh(np.diag(off, 1) + np.diag(off, -1))
    return 0.5 * (x + 1), v[0] ** 2


def legendre(x, top):
    """Orthonormal on [0, 1], (top + 1,) + x.shape."""
    t, out = 2 * x - 1, [np.ones_like(x)]
    out.append(t)
    for n in range(1, top):
        out.append(((2 * n + 1) * t * out[n] - n * out[n - 1]) / (n + 1))
    return np.stack([p * np.sqrt(2 * n + 1) for n, p in enumerate(out[:top + 1])])


def chaos(f, top=4):
    """Coefficients of the tensor basis, and Sobol' indices of the first order and in total."""
    x, w = gauss(top + 2)
    grid = np.stack([g.ravel() for g in np.meshgrid(*[x] * DIM, indexing="ij")], axis=1)
    values = f(grid).reshape((x.size,) * DIM)
    P = legendre(x, top) * w
    for _ in range(DIM):                                    # each turn takes the first axis to the last
        values = np.tensordot(values, P, axes=(0, 1))
    square = values ** 2
    orders = np.stack(np.meshgrid(*[np.arange(top + 1)] * DIM, indexing="ij"))
    active = orders > 0
    many = active.sum(axis=0)
    variance = square[many > 0].sum()
    first = np.stack([square[(many == 1) & active[d]].sum() for d in range(DIM)]) / variance
    total = np.stack([square[active[d]].sum() for d in range(DIM)]) / variance
    return values.ravel()[0], variance, first, total


def main(asarray, N, given):
    c, w, probe, cloud = (asarray(v) for v in given)
    results, plain = [], []
    for level in range(1, N + 1):
        rule = Smolyak(DIM, level)
        results.append(np.stack([genz(k, rule.points, c[k], w[k]) @ rule.weight for k in range(4)]))
    results = np.stack(results)
    for k in range(4):
        v = genz(k, cloud, c[k], w[k])
        plain.append(np.stack([v.mean(), v.std() / np.sqrt(v.size)]))
    error = np.abs(results[:-1] - results[-1])

    def bump(x):
        return 64 * np.prod(x * (1 - x), axis=1) * (1 + np.tanh(8 * (x.sum(axis=1) - 1.4)))

    hats, newest, sizes = Hats(bump), np.arange(1), []
    for _ in range(8):
        newest = hats.refine(1.2e-2, newest)
        sizes.append(len(hats.surplus))
        if newest.size == 0:
            break
    guess = hats.evaluate(probe)
    wrong = np.abs(guess - bump(probe))
    depth = np.bincount(hats.level.sum(axis=1))
    means, parts = [], []
    for k in range(3):
        mean, variance, first, total = chaos(lambda x: genz(k, x, c[k], w[k]))
        means.append(np.stack([mean, variance]))
        parts.append(np.stack([first, total]))
    return dict(results=results, error=error[:3], points=len(rule.points), negative=(rule.weight < 0).sum(), weight=rule.weight.sum(),
                plain=np.stack(plain), sizes=np.array(sizes), guess=guess, worst=wrong.max(), integral=hats.integral(), depth=depth,
                means=np.stack(means), parts=np.stack(parts))
