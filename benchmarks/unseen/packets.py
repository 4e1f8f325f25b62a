"""Denoising with wavelet packets: periodised Daubechies filters, a full tree, best bases by entropy, thresholds by level.

Signals (Donoho's four and a chirp) with noise, cycle spinning, the stationary transform, and pictures with a 2-D transform.
N: log2 of the length of a signal.
"""
import numpy as np

DEFAULT = 16
DEPTH = 6


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(93)
    n = 1 << N
    t = numpy.arange(n) / n
    at = numpy.array([.1, .13, .15, .23, .25, .40, .44, .65, .76, .78, .81])
    high = numpy.array([4, -5, 3, -4, 5, -4.2, 2.1, 4.3, -3.1, 2.1, -4.2])
    wide = numpy.array([.005, .005, .006, .01, .01, .03, .01, .01, .005, .008, .005])
    blocks = (high * (1 + numpy.sign(t[:, None] - at)) / 2).sum(axis=1)
    bumps = (numpy.abs(high) / (1 + numpy.abs((t[:, None] - at) / wide)) ** 4).sum(axis=1)
    sine = 4 * numpy.sin(4 * numpy.pi * t) - numpy.sign(t - .3) - numpy.sign(.72 - t)
    doppler = numpy.sqrt(t * (1 - t)) * numpy.sin(2.1 * numpy.pi / (t + .05))
    chirp = numpy.sin(numpy.pi * n / 4 * t ** 2)
    clean = numpy.stack([blocks, bumps, sine, doppler, chirp])
    clean = 7 * clean / clean.std(axis=1, keepdims=True)
    side = 1 << (N // 2)
    y, x = numpy.mgrid[:side, :side] / side
    picture = 100 * ((x - .4) ** 2 + (y - .5) ** 2 < .09) + 60 * numpy.sin(40 * x * y) + 40 * (x > .7)
    return clean, clean + rng.normal(size=clean.shape), picture, picture + 20 * rng.normal(size=picture.shape)


def daubechies():
    """The eight taps of db4, orthonormal, and the mirror filter."""
    h = np.array([0.23037781330885523, 0.7148465705525415, 0.6308807679295904, -0.02798376941698385,
                  -0.18703481171888114, 0.030841381835986965, 0.032883011666982945, -0.010597401784997278])
    g = h[::-1] * (-1.0) ** np.arange(h.size)
    return h, g


class Bank:
    def __init__(self):
        self.h, self.g = daubechies()
        self.index = {}

    def windows(self, n):
        if n not in self.index:
            self.index[n] = (2 * np.arange(n // 2)[:, None] + np.arange(self.h.size)) % n
        return self.index[n]

    def split(self, x):
        w = x[..., self.windows(x.shape[-1])]
        return w @ self.h, w @ self.g

    def join(self, low, high):
        n = 2 * low.shape[-1]
        out = np.zeros(low.shape[:-1] + (n,))
        for k in range(self.h.size):
            part = low * self.h[k] + high * self.g[k]
            out[..., k % 2::2] += np.roll(part, k // 2, axis=-1)
        return out


def tree(bank, x):
    """levels[d] is (2^d, n / 2^d): all nodes of a depth."""
    levels = [x[None, :]]
    for _ in range(DEPTH):
        low, high = bank.split(levels[-1])
        levels.append(np.stack([low, high], axis=1).reshape(-1, low.shape[-1]))
    return levels


def entropy(level, total):
    p = level ** 2 / total
    return -(p * np.log(np.where(p > 0, p, 1.0))).sum(axis=-1)


def best_basis(levels):
    """Bottom up: keep a node where it is cheaper than the best of its children. A list of masks."""
    total = (levels[0] ** 2).sum()
    cost = entropy(levels[-1], total)
    keep = [np.ones(cost.size, dtype=bool)]
    for level in levels[-2::-1]:
        mine, theirs = entropy(level, total), cost.reshape(-1, 2).sum(axis=1)
        keep.append(mine <= theirs)
        cost = np.minimum(mine, theirs)
    keep.reverse()
    covered = np.zeros(1, dtype=bool)
    for d, k in enumerate(keep):
        k &= ~covered
        covered = np.repeat(covered | k, 2)
    return keep, cost[0]


def soft(x, t):
    return np.sign(x) * np.maximum(np.abs(x) - t, 0.0)


def rebuild(bank, levels, keep, rule):
    lower = None
    for d in range(DEPTH, -1, -1):
        here = np.where(keep[d][:, None], rule(levels[d], d), 0.0)
        if lower is not None:
            pair = lower.reshape(-1, 2, lower.shape[-1])
            here = here + bank.join(pair[:, 0], pair[:, 1])
        lower = here
    return lower[0]


def sure(x, sigma):
    """Stein's threshold: the argument of the least risk among the sorted coefficients."""
    a = np.sort(np.abs(x) / sigma)
    n = a.size
    squares = np.cumsum(a * a)
    risk = (n - 2.0 * np.arange(1, n + 1) + squares + a * a * np.arange(n - 1, -1, -1)) / n
    return sigma * a[int(risk.argmin())]


def wavelet_denoise(bank, x, sigma, depth):
    details, low = [], x
    for _ in range(depth):
        low, high = bank.split(low)
        details.append(high)
    for high in reversed(details):
        limit = sigma * np.sqrt(2 * np.log(high.size))
        t = sure(high, sigma)
        low = bank.join(low, soft(high, t if float(t) < float(limit) else limit))
    return low


def picture_denoise(bank, noisy, depth=3):
    low, stack = noisy, []
    for _ in range(depth):
        a, d = bank.split(low)
        (ll, lh), (hl, hh) = ([v.swapaxes(0, 1) for v in bank.split(p.swapaxes(0, 1))] for p in (a, d))
        stack.append((lh, hl, hh))
        low = ll
    sigma = np.median(np.abs(stack[0][2])) / 0.6745
    for lh, hl, hh in reversed(stack):
        parts = []
        for band in (lh, hl, hh):
            spread = np.sqrt(np.maximum((band ** 2).mean() - sigma ** 2, 1e-6))
            parts.append(soft(band, sigma ** 2 / spread))
        lh, hl, hh = parts
        a = bank.join(low.swapaxes(0, 1), lh.swapaxes(0, 1)).swapaxes(0, 1)
        d = bank.join(hl.swapaxes(0, 1), hh.swapaxes(0, 1)).swapaxes(0, 1)
        low = bank.join(a, d)
    return low, sigma


def snr(clean, guess):
    return 10 * np.log10((clean ** 2).sum() / ((clean - guess) ** 2).sum())


def main(asarray, N, given):
    clean, noisy, picture, spoiled = (asarray(v) for v in given)
    bank = Bank()
    n = clean.shape[1]
    names, results, costs, sizes, perfect = [], [], [], [], 0.0
    for truth, x in zip(clean, noisy):
        levels = tree(bank, x)
        keep, cost = best_basis(levels)
        exact = rebuild(bank, levels, keep, lambda c, d: c)
        perfect = max(perfect, float(np.abs(exact - x).max()))
        sigma = np.median(np.abs(levels[1][1])) / 0.6745
        limit = sigma * np.sqrt(2 * np.log(n))
        packet = rebuild(bank, levels, keep, lambda c, d: soft(c, 0.7 * limit))
        firm = rebuild(bank, levels, keep, lambda c, d: np.where(np.abs(c) > limit, c, 0.0))
        plain = wavelet_denoise(bank, x, sigma, DEPTH)
        spun = np.zeros(n)
        for s in range(8):
            spun += np.roll(wavelet_denoise(bank, np.roll(x, -s), sigma, DEPTH), s)
        spun /= 8
        names.append(np.stack([snr(truth, v) for v in (x, packet, firm, plain, spun)]))
        results.append(np.stack([packet, plain, spun])[:, ::n // 64])
        costs.append(cost)
        sizes.append(np.stack([k.sum() for k in keep]))
    restored, sigma = picture_denoise(bank, spoiled)
    residual = spoiled - restored
    counts, _ = np.histogram(residual, bins=np.linspace(-80, 80, 33))
    return dict(snr=np.stack(names), results=np.stack(results), cost=np.stack(costs), sizes=np.stack(sizes), perfect=perfect < 1e-9,
                sigma=sigma, restored=restored[::4, ::4], psnr=10 * np.log10(255 ** 2 / ((restored - picture) ** 2).mean()), counts=counts,
                residual=residual.std())
