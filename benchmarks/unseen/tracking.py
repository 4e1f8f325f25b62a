"""Following many targets: Kalman filters in a batch, gates, assignment by auction with scaling, track birth and death, a backward smoother, scores, a dense assignment. N: targets."""
import numpy
import numpy as np

DEFAULT = 400
FRAMES, CLUTTER, DETECT, SIDE = 24, 140, 0.93, 2600.0


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(4106)
    x = numpy.empty((FRAMES, N, 4))
    x[0, :, :2] = rng.uniform(0.1 * SIDE, 0.9 * SIDE, (N, 2))
    x[0, :, 2:] = rng.normal(0, 6, (N, 2))
    for t in range(1, FRAMES):
        x[t, :, 2:] = x[t - 1, :, 2:] + rng.normal(0, 0.6, (N, 2))
        x[t, :, :2] = x[t - 1, :, :2] + 0.5 * (x[t - 1, :, 2:] + x[t, :, 2:])
    seen = numpy.full((FRAMES, N + CLUTTER, 2), numpy.nan)
    for t in range(FRAMES):
        got = x[t, rng.random(N) < DETECT, :2]
        got = got + rng.normal(0, 3.0, got.shape)
        junk = rng.uniform(0, SIDE, (rng.integers(CLUTTER // 2, CLUTTER), 2))
        z = numpy.concatenate([got, junk])
        seen[t, :len(z)] = z[rng.permutation(len(z))]
    return dict(truth=x, seen=seen, cost=rng.random((220, 220)))


def auction(value, eps_list, grain=1e-3):
    """Jacobi auction: rows bid for columns, value to be large (one eps only unless it is square); returns the column of each row and the prices.

    Counted in whole grains, so that sums are exact and ties are ties.
    """
    rows, cols = value.shape
    real, value = value, np.rint(value / grain)
    price = np.zeros(cols)
    bids = 0
    ids = np.arange(rows)
    for eps in eps_list:
        eps = round(eps / grain)
        owner = np.full(cols, -1)
        mine = np.full(rows, -1)
        for _ in range(3000):
            free = np.flatnonzero(mine < 0)
            if free.size == 0:
                break
            net = value[free] - price
            best = net.argmax(axis=1)
            pick = np.arange(len(free))
            top = net[pick, best]
            net[pick, best] = -np.inf
            offer = price[best] + top - net.max(axis=1) + eps
            # the largest offer for each column wins it
            high = np.full(cols, -np.inf)
            np.maximum.at(high, best, offer)
            wins = offer >= high[best]
            # of equal offers the last row
            holder = np.full(cols, -1, dtype=np.int32)
            np.maximum.at(holder, best[wins], free[wins])
            taken = np.flatnonzero(holder >= 0)
            lost = owner[taken]
            mine[lost[lost >= 0]] = -1
            owner[taken] = holder[taken]
            mine[holder[taken]] = taken
            price[taken] = high[taken]
            bids += int(free.size)
    return mine, price * grain, bids, real[ids, mine].sum()


class Filters:
    """A batch of constant-velocity Kalman filters."""

    def __init__(self, z):
        n = len(z)
        self.x = np.concatenate([z, np.zeros((n, 2))], axis=1)
        self.P = np.tile(np.diag(np.array([9.0, 9.0, 60.0, 60.0])), (n, 1, 1))
        self.F = np.eye(4) + np.eye(4, k=2)
        q = 0.6 ** 2
        self.Q = q * np.kron(np.array([[0.25, 0.5], [0.5, 1.0]]), np.eye(2)) + 1e-6 * np.eye(4)
        self.R = 9.0 * np.eye(2)

    def predict(self):
        self.x = self.x @ self.F.T
        self.P = self.F @ self.P @ self.F.T + self.Q

    def gate(self, z):
        S = self.P[:, :2, :2] + self.R
        inverse = np.linalg.inv(S)
        d = z[None, :, :] - self.x[:, None, :2]
        maha = np.einsum("tki,tij,tkj->tk", d, inverse, d)
        return maha, np.log(np.linalg.det(S)), inverse

    def update(self, which, z, inverse):
        P = self.P[which]
        K = P[:, :, :2] @ inverse[which]
        r = z - self.x[which, :2]
        self.x[which] += np.matmul(K, r[:, :, None])[:, :, 0]
        A = np.eye(4) - K @ np.eye(2, 4)
        self.P[which] = A @ P @ A.transpose(0, 2, 1) + K @ self.R @ K.transpose(0, 2, 1)
        return r

    def add(self, z):
        fresh = Filters(z)
        self.x = np.concatenate([self.x, fresh.x])
        self.P = np.concatenate([self.P, fresh.P])

    def keep(self, mask):
        self.x, self.P = self.x[mask], self.P[mask]


def smoother(xs, Ps, F, Q):
    """Rauch, Tung and Striebel backward over (frames, tracks, 4)."""
    x, P = xs[-1], Ps[-1]
    out, spread = [x], [P]
    for t in range(len(xs) - 2, -1, -1):
        ahead = F @ Ps[t] @ F.T + Q
        C = np.linalg.solve(ahead, F @ Ps[t]).transpose(0, 2, 1)
        x = xs[t] + np.einsum("nij,nj->ni", C, x - xs[t] @ F.T)
        P = Ps[t] + C @ (P - ahead) @ C.transpose(0, 2, 1)
        out.append(x)
        spread.append(P)
    return np.stack(out[::-1]), np.stack(spread[::-1])


def ospa(a, b, cut=30.0):
    d = np.minimum(np.sqrt(((a[:, None] - b[None]) ** 2).sum(axis=2)), cut)
    if d.shape[0] > d.shape[1]:
        d = d.T
    small, large = d.shape
    mine = auction(-d, (0.5,))[0]
    return (d[np.arange(small), mine].sum() + cut * (large - small)) / large


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    truth, seen = asarray(data["truth"]), asarray(data["seen"])
    z = seen[0][~np.isnan(seen[0, :, 0])]
    bank = Filters(z)
    age, missed = np.ones(len(z), dtype=np.int32), np.zeros(len(z), dtype=np.int32)
    number = np.arange(len(z))
    born = len(z)
    score, alive, matched, gaps = [], [], [], []
    log_x, log_P, log_id = [], [], []
    bids = 0
    for t in range(1, FRAMES):
        z = seen[t][~np.isnan(seen[t, :, 0])]
        bank.predict()
        maha, logdet, inverse = bank.gate(z)
        gain = np.where(maha < 13.8, 20.0 - 0.5 * (maha + logdet[:, None]), -200.0)
        # a private column for every track that stays without
        stay = np.where(np.eye(len(gain), dtype=bool), 0.0, -100.0)
        mine, price, made, total = auction(np.concatenate([gain, stay], axis=1), (0.5,))
        bids += made
        hit = mine < len(z)
        which = np.flatnonzero(hit)
        r = bank.update(which, z[mine[which]], inverse)
        gaps.append(np.sqrt((r ** 2).sum(axis=1)).mean())
        missed = np.where(hit, 0, missed + 1)
        age += hit
        used = np.zeros(len(z), dtype=bool)
        used[mine[which]] = True
        stays = (missed < 4) & ~((age < 3) & (missed > 0))
        bank.keep(stays)
        age, missed, number = age[stays], missed[stays], number[stays]
        fresh = z[~used]
        bank.add(fresh)
        age = np.concatenate([age, np.ones(len(fresh), dtype=np.int32)])
        missed = np.concatenate([missed, np.zeros(len(fresh), dtype=np.int32)])
        number = np.concatenate([number, born + np.arange(len(fresh))])
        born += len(fresh)
        firm = age >= 4
        alive.append(int(firm.sum()))
        matched.append(total)
        log_x.append(bank.x.copy())
        log_P.append(bank.P.copy())
        log_id.append(number.copy())
        if t % 4 == 0 and alive[-1] > 0:
            score.append(ospa(bank.x[firm][:, :2], truth[t, :, :2]))
    # smooth what lived through the last half
    first = FRAMES // 2 - 1
    common = log_id[first]
    for ids in log_id[first:]:
        common = np.intersect1d(common, ids)
    xs, Ps = [], []
    for ids, x, P in zip(log_id[first:], log_x[first:], log_P[first:]):
        at = np.searchsorted(ids, common)
        xs.append(x[at])
        Ps.append(P[at])
    xs, Ps = np.stack(xs), np.stack(Ps)
    smooth, spread = smoother(xs, Ps, bank.F, bank.Q)
    true = truth[first + 1:, None, :, :2]
    gone = np.setdiff1d(log_id[first], common)
    speed = np.linalg.norm(smooth[..., 2:], axis=-1)
    turn = np.diff(np.unwrap(np.arctan2(smooth[..., 3], smooth[..., 2]), axis=0), axis=0)
    calm = np.nanmean(np.where(speed[1:] > 3.0, np.abs(turn), np.nan))
    far = np.sqrt(((xs[:, :, None, :2] - true) ** 2).sum(axis=3))
    owner = far.mean(axis=0).argmin(axis=1)
    path = truth[first + 1:, owner]
    before = np.sqrt(((xs - path)[..., :2] ** 2).sum(axis=2))
    after = np.sqrt(((smooth - path)[..., :2] ** 2).sum(axis=2))
    nees = np.einsum("tni,tni->tn", smooth - path, np.linalg.solve(spread, (smooth - path)[..., None])[..., 0])
    cost = asarray(data["cost"])
    col, price, rounds, worth = auction(-cost, (0.05, 0.01), 1e-5)
    dual = price.sum() + (-cost - price).max(axis=1).sum()
    return dict(alive=np.asarray(alive), score=np.stack(score), matched=np.stack(matched), gaps=np.stack(gaps), bids=bids, born=born, common=common, smooth=smooth, before=np.median(before, axis=1),
                after=np.median(after, axis=1), nees=np.median(nees), col=col, worth=worth, slack=dual - worth, rounds=rounds, gone=gone, speed=speed.mean(axis=1), calm=calm, age=age, final=bank.x)
