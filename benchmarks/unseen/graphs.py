"""A social graph held as CSR arrays by hand: PageRank, breadth-first levels, components, cores, triangles, an SIR epidemic on the edges, communities by labels and by Lanczos. N: people."""
import numpy
import numpy as np

DEFAULT = 24000
DAYS, ROOTS, KRYLOV = 60, 8, 30


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(310)
    group = rng.integers(0, 8, N)
    popular = rng.pareto(2.5, N) + 1
    chance = popular / popular.sum()
    a = rng.choice(N, 9 * N, p=chance)
    b = rng.choice(N, 9 * N, p=chance)
    keep = (group[a] == group[b]) | (rng.random(9 * N) < 0.12)
    ring = rng.integers(0, N, N)
    near = (ring + rng.integers(1, 4, N)) % N
    edges = numpy.stack([numpy.concatenate([a[keep], ring]), numpy.concatenate([b[keep], near])])
    return dict(edges=edges.astype(numpy.int32), luck=rng.random((DAYS, N)).astype(numpy.float32), group=group.astype(numpy.int32),
                first=rng.choice(N, 20, replace=False).astype(numpy.int32), vector=rng.normal(size=N))


class Graph:
    def __init__(self, a, b, n):
        """Undirected, no loops, no doubles."""
        lo, hi = np.minimum(a, b).astype(np.int64), np.maximum(a, b).astype(np.int64)
        key = np.unique(lo[lo != hi] * n + hi[lo != hi])
        self.low, self.high = key // n, key % n
        rows = np.concatenate([self.low, self.high])
        cols = np.concatenate([self.high, self.low])
        order = np.argsort(rows * n + cols)
        self.rows, self.cols, self.n = rows[order], cols[order], n
        self.degree = np.bincount(self.rows, minlength=n)
        self.start = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self.degree)])
        self.key = self.rows * n + self.cols

    def apply(self, x):
        """Sum over neighbours."""
        return np.bincount(self.rows, weights=x[self.cols], minlength=self.n)

    def linked(self, a, b):
        key = a * self.n + b
        at = np.minimum(np.searchsorted(self.key, key), len(self.key) - 1)
        return self.key[at] == key


def pagerank(graph, damping=0.85, tol=1e-12):
    n = graph.n
    loose = graph.degree == 0
    out = np.where(loose, 0.0, 1 / np.maximum(graph.degree, 1))
    rank = np.full(n, 1 / n)
    for k in range(100):
        fresh = damping * (graph.apply(rank * out) + rank[loose].sum() / n) + (1 - damping) / n
        change = np.abs(fresh - rank).sum()
        rank = fresh
        if k % 5 == 4 and float(change) < tol:
            break
    return rank


def breadth_first(graph, roots):
    """Levels from several roots, a column each."""
    level = np.full((graph.n, len(roots)), -1, dtype=np.int32)
    level[roots, np.arange(len(roots))] = 0
    for depth in range(1, 40):
        frontier = level == depth - 1
        edge, column = np.nonzero(frontier[graph.rows])
        target = graph.cols[edge]
        fresh = level[target, column] < 0
        if not bool(fresh.any()):
            break
        level[target[fresh], column[fresh]] = depth
    return level


def components(graph):
    label = np.arange(graph.n, dtype=np.int32)
    for _ in range(50):
        before = label.copy()
        np.minimum.at(label, graph.rows, before[graph.cols])
        label = label[label]
        if bool((label == before).all()):
            break
    return label


def cores(graph):
    """The core number of each node, by peeling all the weak nodes of a round together."""
    core = np.zeros(graph.n, dtype=np.int32)
    alive = np.ones(graph.n, dtype=bool)
    degree = graph.degree.copy()
    k = 0
    while bool(alive.any()) and k < 60:
        weak = alive & (degree <= k)
        while bool(weak.any()):
            core[weak] = k
            alive &= ~weak
            cut = weak[graph.rows] & alive[graph.cols]
            degree = degree - np.bincount(graph.cols[cut], minlength=graph.n)
            weak = alive & (degree <= k)
        k += 1
    return core


def triangles(graph):
    """Edges turned from low degree to high; wedges of each node joined in the flat, by slots."""
    n = graph.n
    place = np.empty(n, dtype=np.int64)
    place[np.argsort(graph.degree * n + np.arange(n))] = np.arange(n)
    up = place[graph.rows] < place[graph.cols]
    rows, cols = graph.rows[up], graph.cols[up]
    out = np.bincount(rows, minlength=n)
    start = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(out)])
    # for each turned edge (u, v), all the w that u points to after v
    rest = start[rows + 1] - np.arange(len(rows)) - 1
    ends = np.cumsum(rest)
    slot = np.arange(int(ends[-1]))
    edge = np.searchsorted(ends, slot, side="right")
    other = edge + 1 + slot - (ends - rest)[edge]
    v, w = cols[edge], cols[other]
    closed = graph.linked(v, w)
    found = np.stack([rows[edge], v, w])[:, closed]
    return np.bincount(found.ravel(), minlength=n)


def sir(graph, first, luck, beta=0.07, recover=0.12):
    state = np.zeros(graph.n, dtype=np.int8)
    state[first] = 1
    since = np.full(graph.n, -1, dtype=np.int16)
    since[first] = 0
    curve, work = np.zeros((DAYS, 3)), np.zeros(graph.n, dtype=np.float32)
    for day in range(DAYS):
        ill = state == 1
        pressure = graph.apply(ill.astype(np.float64))
        chance = 1 - (1 - beta) ** pressure
        caught = (state == 0) & (luck[day] < chance)
        healed = ill & (luck[day] > 1 - recover)
        state += caught
        state[healed] = 2
        since[caught] = day + 1
        np.maximum(work, pressure.astype(np.float32), out=work)
        curve[day] = np.bincount(state, minlength=3)[:3]
    return curve, since, work


def lanczos(graph, start, steps):
    """Top of the spectrum of the normalised adjacency, fully reorthogonalised."""
    scale = 1 / np.sqrt(np.maximum(graph.degree, 1))
    Q = np.zeros((steps + 1, graph.n))
    alpha, beta = np.zeros(steps), np.zeros(steps)
    Q[0] = start / np.linalg.norm(start)
    for k in range(steps):
        w = scale * graph.apply(scale * Q[k])
        alpha[k] = w @ Q[k]
        for _ in range(2):
            w -= Q[:k + 1].T @ (Q[:k + 1] @ w)
        beta[k] = np.linalg.norm(w)
        np.divide(w, beta[k], out=Q[k + 1])
    T = np.diag(alpha) + np.diag(beta[:-1], 1) + np.diag(beta[:-1], -1)
    lam, Y = np.linalg.eigh(T)
    return lam[::-1], (Y[:, ::-1].T @ Q[:steps])


def propagate(graph, rounds=6):
    """Each node takes the commonest label among its neighbours (the lowest if tied)."""
    n = graph.n
    label = np.arange(n)
    for r in range(rounds):
        key, counts = np.unique(graph.rows * n + label[graph.cols], return_counts=True)
        node, mark = key // n, key % n
        order = np.lexsort(np.stack([-mark, counts, node]))
        last = np.flatnonzero(np.diff(node[order], append=np.full(1, n)))
        winner = label.copy()
        winner[node[order][last]] = mark[order][last]
        turn = np.arange(n) % 2 == r % 2
        label = np.where(turn, winner, label)
    return label


def modularity(graph, label):
    label = np.unique(label, return_inverse=True)[1].ravel()
    inside = np.bincount(label[graph.rows], weights=(label[graph.rows] == label[graph.cols]).astype(np.float64))
    total = np.bincount(label, weights=graph.degree.astype(np.float64))
    m2 = len(graph.rows)
    return (inside / m2).sum() - ((total / m2) ** 2).sum()


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    edges, group, first = asarray(data["edges"]), asarray(data["group"]), asarray(data["first"])
    graph = Graph(edges[0], edges[1], len(group))
    degree = graph.degree
    rank = pagerank(graph)
    label = components(graph)
    sizes = np.bincount(np.bincount(label, minlength=graph.n))
    roots = np.argsort(-degree * graph.n + np.arange(graph.n))[:ROOTS]
    level = breadth_first(graph, roots)
    reach = np.stack([np.bincount(level[:, r] + 1, minlength=41) for r in range(ROOTS)])
    closeness = (level >= 0).sum(axis=0) / np.maximum(np.where(level > 0, level, 0).sum(axis=0), 1)
    harmonic = np.where(level > 0, 1 / np.maximum(level, 1), 0.0).sum(axis=1)
    core = cores(graph)
    tri = triangles(graph)
    local = np.where(degree > 1, 2 * tri / np.maximum(degree * (degree - 1), 1), np.nan)
    by_degree = np.array([float(np.nanmean(np.where((degree >= lo) & (degree < hi), local, np.nan))) for lo, hi in ((2, 4), (4, 8), (8, 16), (16, 1 << 20))])
    transitivity = 2 * tri.sum() / (degree * (degree - 1)).sum()
    neighbour = graph.apply(degree.astype(np.float64)) / np.maximum(degree, 1)
    ends = np.stack([degree[graph.rows], degree[graph.cols]]).astype(np.float64)
    assortative = np.corrcoef(ends)[0, 1]
    # power-law exponent by likelihood, with the cut that fits best
    tail = []
    for cut in range(4, 16):
        d = degree[degree >= cut]
        gamma = 1 + d.size / np.log(d / (cut - 0.5)).sum()
        counts = np.cumsum(np.bincount(d)[cut:]) / d.size
        fit = 1 - (np.arange(cut, cut + counts.size) + 0.5) ** (1 - gamma) / (cut - 0.5) ** (1 - gamma)
        tail.append(np.stack([gamma, np.abs(counts - fit).max()]))
    tail = np.stack(tail)
    curve, since, work = sir(graph, first, asarray(data["luck"]))
    attack = np.bincount(core[since >= 0], minlength=60)[:60] / np.maximum(np.bincount(core, minlength=60)[:60], 1)
    # vaccinate the best-ranked tenth: their edges vanish
    safe = rank >= np.percentile(rank, 90)
    open_edges = ~(safe[graph.low] | safe[graph.high])
    thin = Graph(graph.low[open_edges], graph.high[open_edges], graph.n)
    curve2, since2, _ = sir(thin, first, asarray(data["luck"]))
    giant = np.bincount(components(thin), minlength=graph.n).max()
    lam, ritz = lanczos(graph, asarray(data["vector"]), KRYLOV)
    gathered = np.sqrt((ritz[1:6] ** 2).sum(axis=0))
    marks = propagate(graph)
    mixing = np.zeros((8, 8), dtype=np.int32)
    np.add.at(mixing, (group[graph.rows], group[graph.cols]), 1)
    mix = mixing / mixing.sum()
    q = (np.trace(mix) - (mix.sum(axis=0) * mix.sum(axis=1)).sum())
    wanted = np.unique(marks).size
    return dict(rank=rank, sizes=sizes, reach=reach, closeness=closeness, harmonic=harmonic, core=core, tri=tri, by_degree=by_degree,
                transitivity=transitivity, neighbour=neighbour, assortative=assortative, tail=tail, curve=curve, since=since, work=work, attack=attack,
                curve2=curve2, spared=float((since2 < 0).sum() - (since < 0).sum()), giant=giant, top=lam[:3], gathered=gathered,
                modularity=np.stack([modularity(graph, marks), modularity(graph, group)]), mixing=mix, q=q, labels=float(wanted))
