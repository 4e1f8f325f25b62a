"""Contextual bandits: LinUCB, Thompson sampling, UCB1 and Exp3 on many replications at once."""
import numpy as np

DEFAULT = 155           # rounds
RUNS = 200
ARMS = 8
DIM = 5


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(1234)
    theta = rng.normal(0.0, 1.0, (ARMS, DIM))
    theta /= numpy.linalg.norm(theta, axis=1, keepdims=True)
    context = rng.normal(0.0, 1.0, (N, RUNS, DIM))
    context[..., 0] = 1.0
    return {"theta": theta, "context": context, "noise": rng.normal(0.0, 0.3, (N, RUNS)),
            "normal": rng.normal(size=(N, RUNS, ARMS, DIM)), "uniform": rng.uniform(size=(N, RUNS))}


class Linear:
    """Ridge regression for each run and arm, with the inverse kept by Sherman-Morrison."""

    def __init__(self):
        self.inverse = np.tile(np.eye(DIM), (RUNS, ARMS, 1, 1))
        self.b = np.zeros((RUNS, ARMS, DIM))
        self.pulls = np.zeros((RUNS, ARMS), dtype=int)

    def estimate(self):
        return np.einsum("raij,raj->rai", self.inverse, self.b)

    def update(self, arm, x, reward):
        rows = np.arange(RUNS)
        P = self.inverse[rows, arm]
        Px = np.einsum("rij,rj->ri", P, x)
        gain = Px / (1.0 + np.sum(x * Px, axis=1))[:, None]
        self.inverse[rows, arm] = P - gain[:, :, None] * Px[:, None, :]
        self.b[rows, arm] += reward[:, None] * x
        self.pulls[rows, arm] += 1


class LinUCB(Linear):
    def choose(self, x, t, data):
        mean = np.einsum("rai,ri->ra", self.estimate(), x)
        width = np.sqrt(np.einsum("ri,raij,rj->ra", x, self.inverse, x))
        return np.argmax(mean + 0.6 * width, axis=1)


class Thompson(Linear):
    def choose(self, x, t, data):
        if t % 10 == 0:
            self.root = np.linalg.cholesky(self.inverse)
        draw = self.estimate() + 0.3 * np.matmul(self.root, data["normal"][t][..., None])[..., 0]
        return (draw * x[:, None, :]).sum(axis=-1).argmax(axis=1)


class UCB1:
    def __init__(self):
        self.total = np.zeros((RUNS, ARMS))
        self.pulls = np.zeros((RUNS, ARMS), dtype=int)

    def choose(self, x, t, data):
        if t < ARMS:
            return np.full(RUNS, t)
        mean = self.total / self.pulls
        return (mean + np.sqrt(2.0 * np.log(t + 1.0) / self.pulls)).argmax(axis=1)

    def update(self, arm, x, reward):
        rows = np.arange(RUNS)
        self.total[rows, arm] += reward
        self.pulls[rows, arm] += 1


class Exp3:
    def __init__(self, gamma=0.15):
        self.logw = np.zeros((RUNS, ARMS))
        self.gamma = gamma
        self.pulls = np.zeros((RUNS, ARMS), dtype=int)

    def choose(self, x, t, data):
        w = np.exp(self.logw - self.logw.max(axis=1, keepdims=True))
        self.p = (1.0 - self.gamma) * w / w.sum(axis=1, keepdims=True) + self.gamma / ARMS
        edges = np.cumsum(self.p, axis=1)
        arm = (edges < data["uniform"][t][:, None]).sum(axis=1)
        return np.minimum(arm, ARMS - 1)

    def update(self, arm, x, reward):
        rows = np.arange(RUNS)
        scaled = np.clip((reward + 3.0) / 6.0, 0.0, 1.0)
        self.logw[rows, arm] += self.gamma * scaled / self.p[rows, arm] / ARMS
        self.pulls[rows, arm] += 1


def play(policy, data, rounds):
    regret = np.zeros((rounds, RUNS))
    rows = np.arange(RUNS)
    for t in range(rounds):
        x = data["context"][t]
        means = x @ data["theta"].T
        arm = policy.choose(x, t, data)
        got = means[rows, arm]
        policy.update(arm, x, got + data["noise"][t])
        regret[t] = means.max(axis=1) - got
    return np.cumsum(regret, axis=0)


def bands(total):
    q = np.quantile(total[-1], [0.1, 0.5, 0.9])
    se = total[-1].std(ddof=1) / np.sqrt(total.shape[1])
    return q, se


def knee(curve):
    """The round after which the mean regret's slope stays under a third of its first."""
    slope = np.convolve(np.gradient(curve), np.ones(25) / 25.0, mode="valid")
    over = np.flatnonzero(slope > slope[0] / 3.0)
    return int(over[-1]) + 1 if over.size > 0 else 0


def main(asarray, N, data):
    data = {key: asarray(value) for key, value in data.items()}
    results = {}
    finals = []
    for name, policy in [("linucb", LinUCB()), ("thompson", Thompson()), ("ucb1", UCB1()), ("exp3", Exp3())]:
        total = play(policy, data, N)
        q, se = bands(total)
        mean = total.mean(axis=1)
        results[name + "_regret"] = mean
        results[name + "_quantiles"] = q
        results[name + "_se"] = se
        results[name + "_knee"] = knee(mean)
        results[name + "_share"] = policy.pulls.sum(axis=0) / policy.pulls.sum()
        if isinstance(policy, Linear):
            gap = policy.estimate() - data["theta"]
            results[name + "_error"] = np.sqrt((gap**2).sum(axis=-1)).mean(axis=0)
            sign, logdet = np.linalg.slogdet(policy.inverse)
            results[name + "_logdet"] = logdet.mean(axis=0)
        finals.append(total[-1])
    finals = np.stack(finals)
    order = finals.mean(axis=1).argsort()
    results["order"] = order
    results["wins"] = np.bincount(finals.argmin(axis=0), minlength=4)
    diff = finals[order[0]] - finals[order[1]]
    results["paired_t"] = diff.mean() / (diff.std(ddof=1) / np.sqrt(RUNS))
    results["correlation"] = np.corrcoef(finals)[np.triu_indices(4, 1)]
    return results
