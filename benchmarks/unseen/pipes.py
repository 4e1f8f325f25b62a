"""A town's water: heads and flows in a looped network by the global gradient method, a day with a tank and a pump, the age of
the water, the finding of a leak, fire flows. N: junctions.
"""
import numpy as np

DEFAULT = 110
POWER = 1.852               # Hazen-Williams


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(31)
    xy = rng.random((N + 2, 2)) * 2000
    xy[N], xy[N + 1] = (0, 0), (1900, 1700)                 # the source and the tank
    d = numpy.hypot(*(xy[:, None] - xy).transpose(2, 0, 1))
    pipes = set()
    for i in range(1, N + 2):
        j = int(d[i, :i].argmin())
        pipes.add((j, i))
    for i in range(N + 2):
        for j in numpy.argsort(d[i])[1:4].tolist():
            pipes.add((min(i, j), max(i, j)))
    pipes = numpy.array(sorted(pipes))
    size = rng.choice([0.15, 0.2, 0.25, 0.3, 0.4], len(pipes), p=[.3, .3, .2, .1, .1])
    size[(pipes >= N).any(axis=1)] = 0.5
    hours = numpy.arange(24)
    pattern = 0.6 + 0.5 * numpy.exp(-(hours - 8) ** 2 / 6) + 0.7 * numpy.exp(-(hours - 19) ** 2 / 8)
    return dict(pipes=pipes, length=1.2 * d[pipes[:, 0], pipes[:, 1]] + 5, size=size, rough=rng.uniform(90, 140, len(pipes)),
                ground=10 + 0.01 * xy[:N].sum(axis=1) * rng.uniform(0.5, 1, N), demand=rng.uniform(2e-4, 2e-3, N), pattern=pattern, noise=0.02 * rng.normal(size=N))


class Network:
    def __init__(self, n, pipes, length, size, rough):
        self.n, self.a, self.b = n, pipes[:, 0], pipes[:, 1]
        self.m = len(pipes)
        self.resistance = 10.67 * length / (rough ** POWER * size ** 4.871)
        self.volume = length * np.pi * size ** 2 / 4
        full = np.zeros((self.m, n + 2))
        row = np.arange(self.m)
        full[row, self.a] = 1.0
        full[row, self.b] = -1.0
        self.inner, self.outer = full[:, :n], full[:, n:]

    def solve(self, demand, fixed, Q=None, tol=1e-10, limit=60):
        """Todini's method. Q is positive from a to b."""
        Q = np.full(self.m, 0.02) if Q is None else Q
        push = self.outer @ fixed
        for it in range(limit):
            flow = np.maximum(np.abs(Q), 1e-5)
            loss = self.resistance * flow ** (POWER - 1)        # head loss by unit of flow
            D = 1.0 / (POWER * loss)
            F = loss * Q
            # node balances of the linearised pipes
            right = demand + self.inner.T @ (Q - D * (F - push))
            H = np.linalg.solve((self.inner.T * D) @ self.inner, -right)
            new = Q - D * (F - push - self.inner @ H)
            change = float(np.abs(new - Q).sum() / np.abs(new).sum())
            Q = new
            if change < tol:
                break
        return H, Q, it


def age(network, Q, heads, source_age):
    """Mean age at the nodes from upstream to downstream: nodes in the order of falling heads."""
    up = np.where(Q >= 0, network.a, network.b)
    down = np.where(Q >= 0, network.b, network.a)
    travel = np.minimum(network.volume / np.maximum(np.abs(Q), 1e-7) / 3600, 48.0)
    by = np.argsort(down, kind="stable")
    end = np.searchsorted(down[by], np.arange(len(heads) + 1))
    edges = end.tolist()
    out = source_age.copy()
    for node in np.argsort(-heads, kind="stable").tolist():
        into = by[edges[node]:edges[node + 1]]
        if into.size:
            q = np.abs(Q[into])
            out[node] = (q * (out[up[into]] + travel[into])).sum() / np.maximum(q.sum(), 1e-12)
    return out


def sensitivity(network, Q):
    """d head / d demand at all nodes."""
    D = 1.0 / (POWER * network.resistance * np.maximum(np.abs(Q), 1e-5) ** (POWER - 1))
    return -np.linalg.inv((network.inner.T * D) @ network.inner)


def main(asarray, N, given):
    g = {k: asarray(v) for k, v in given.items()}
    net = Network(N, g["pipes"], g["length"], g["size"], g["rough"])
    base, ground = g["demand"], g["ground"]
    H, Q, steps = net.solve(base, np.array([75.0, 72.0]))
    balance = np.abs(net.inner.T @ Q + base).max()

    # a day in half hours: the pump at the source works until the tank is full and begins again when it is low
    level, on, tank_area, Qt = 3.0, True, 60.0, Q
    levels, works, pressure, rounds, supplied = [], [], [], 0, []
    lowest = np.full(N, np.inf)
    for half in range(48):
        demand = base * g["pattern"][half // 2]
        source = 78.0 if on else 70.0
        h, Qt, it = net.solve(demand, np.array([source, 69.0 + level]), Q=Qt, tol=1e-8)
        rounds += it
        ends = net.outer.T @ Qt                              # what leaves the source and the tank
        level = min(max(level - float(ends[1]) * 1800 / tank_area, 0.0), 6.0)
        if on and level > 4.6:
            on = False
        elif not on and level < 2.0:
            on = True
        p = h - ground
        np.minimum(lowest, p, out=lowest)
        levels.append(level)
        works.append(on)
        supplied.append(ends)
        pressure.append(np.stack([p.min(), p.mean(), p.max()]))
    heads = np.concatenate([h, np.array([78.0 if on else 70.0, 69.0 + level])])
    old = age(net, Qt, heads, np.zeros(N + 2))

    # a leak: at the node whose pattern of lost heads fits the measured best, with its size
    place = N // 3
    leak = np.zeros(N)
    leak[place] = 0.01
    wet, Qw, _ = net.solve(base + leak, np.array([75.0, 72.0]), Q=Q)
    sensors = np.argsort(ground, kind="stable")[::max(N // 15, 1)]
    seen = (wet - H + g["noise"])[sensors]
    S = sensitivity(net, Q)[sensors]
    size = (S * seen[:, None]).sum(axis=0) / (S * S).sum(axis=0)
    misfit = ((seen[:, None] - S * size) ** 2).sum(axis=0)
    likely = np.argsort(misfit, kind="stable")[:5]
    cosine = (S.T @ seen) / np.sqrt((S * S).sum(axis=0) * (seen @ seen))

    # fire flow: the most that each tenth node gives before the pressure anywhere falls below ten metres
    fire = []
    for node in range(0, N, max(N // 12, 1)):
        low, high, q = 0.0, 0.25, Q
        for _ in range(9):
            mid = 0.5 * (low + high)
            extra = base.copy()
            extra[node] += mid
            hf, q, _ = net.solve(extra, np.array([75.0, 72.0]), Q=q, tol=1e-7)
            if float((hf - ground).min()) > 10.0:
                low = mid
            else:
                high = mid
        fire.append(low)
    # each of the largest pipes closed in turn
    order = np.argsort(-np.abs(Q), kind="stable")[2:10]
    closed = []
    kept = net.resistance.copy()
    for k in order.tolist():
        net.resistance[k] = kept[k] * 1e4
        hc, _, _ = net.solve(base, np.array([75.0, 72.0]), Q=Q, tol=1e-8)
        net.resistance[k] = kept[k]
        closed.append(np.stack([(hc - ground).min(), ((H - hc) > 0.5).sum().astype(float)]))
    speed = 4 * np.abs(Q) / (np.pi * g["size"] ** 2)
    share = np.histogram(speed, bins=np.array([0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 10.0]), weights=g["length"])[0]
    supplied = np.stack(supplied)
    return dict(H=H, flow=np.abs(Q), steps=steps, balance=balance < 1e-9, levels=np.array(levels), works=np.array(works), pressure=np.stack(pressure), rounds=rounds,
                lowest=lowest, old=old, likely=likely, size=size[likely], cosine=cosine.max(), fire=np.array(fire), closed=np.stack(closed), share=share,
                supplied=supplied, energy=(supplied[:, 0] * 78.0).sum(), low=(lowest < 45).sum())
