"""Statistics of word sequences: Zipf's law, n-gram counts by sorting, Kneser-Ney smoothing, collocations, burstiness.

N: thousands of tokens.
"""
import numpy as np

DEFAULT = 200
VOCABULARY = 4000


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(1913)
    n, classes = N * 1000, 12
    chain = rng.dirichlet(numpy.full(classes, 0.3), classes)
    kind = numpy.argsort(rng.uniform(size=VOCABULARY)) % classes
    weight = 1.0 / (numpy.arange(VOCABULARY) + 2.7)
    cdf = numpy.cumsum(chain, axis=1)
    words, state = numpy.empty(n, dtype=numpy.int32), 0
    members = [numpy.flatnonzero(kind == c) for c in range(classes)]
    tables = [numpy.cumsum(weight[m]) / weight[m].sum() for m in members]
    draws, steps = rng.uniform(size=n), rng.uniform(size=n)
    for i in range(n):
        state = min(int(numpy.searchsorted(cdf[state], steps[i])), classes - 1)
        words[i] = members[state][min(int(numpy.searchsorted(tables[state], draws[i])), len(members[state]) - 1)]
    pairs = rng.integers(0, VOCABULARY, (30, 2))                  # fixed phrases
    at = rng.choice(n // 2 - 1, 3000, replace=False) * 2
    words[at[:, None] + numpy.arange(2)] = pairs[rng.integers(0, 30, 3000)]
    return words, rng.uniform(size=(40, 300))


def count(keys):
    """Distinct keys, ascending, and how often each occurs: a sort and the places where it changes."""
    keys = np.sort(keys)
    starts = np.flatnonzero(np.concatenate([np.ones(1, dtype=bool), keys[1:] != keys[:-1]]))
    return keys[starts], np.diff(np.append(starts, len(keys)))


def lookup(keys, values, wanted):
    """Values at the wanted keys, and nought for those that don't occur."""
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, values[place], 0)


def discounts(counts):
    """Chen and Goodman's three discounts, from the counts of counts."""
    n1, n2, n3, n4 = (float((counts == k).sum()) for k in (1, 2, 3, 4))
    y = n1 / (n1 + 2 * n2)
    return np.array([0.0, 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / max(n3, 1.0)])


class KneserNey:
    """Interpolated trigrams, backed off to continuation bigrams and unigrams."""

    def __init__(self, words):
        w = words.astype(np.int64)
        self.tri, self.c3 = count((w[:-2] * VOCABULARY + w[1:-1]) * VOCABULARY + w[2:])
        self.bi, self.c2 = count(self.tri % VOCABULARY**2)        # how many words go before each pair
        self.uni = np.bincount(self.bi % VOCABULARY, minlength=VOCABULARY)
        self.d3, self.d2 = discounts(self.c3), discounts(self.c2)
        self.ctx3 = self.context(self.tri // VOCABULARY, self.c3, self.d3)
        self.ctx2 = self.context(self.bi // VOCABULARY, self.c2, self.d2)

    @staticmethod
    def context(before, counts, d):
        starts = np.concatenate([np.zeros(1, dtype=np.int64), np.flatnonzero(np.diff(before)) + 1])
        total = np.add.reduceat(counts, starts)
        mass = np.add.reduceat(d[np.minimum(counts, 3)], starts)
        return before[starts], total, mass / total

    def level(self, key, context, lower, keys, counts, d, table):
        names, total, left = table
        c, n, back = lookup(keys, counts, key), lookup(names, total, context), lookup(names, left, context)
        p = np.maximum(c - d[np.minimum(c, 3)], 0.0) / np.maximum(n, 1) + back * lower
        return np.where(n > 0, p, lower)

    def prob(self, a, b, c):
        p1 = (self.uni[c] + 0.5) / (self.uni.sum() + 0.5 * VOCABULARY)
        p2 = self.level(b * VOCABULARY + c, b, p1, self.bi, self.c2, self.d2, self.ctx2)
        pair = a * VOCABULARY + b
        return self.level(pair * VOCABULARY + c, pair, p2, self.tri, self.c3, self.d3, self.ctx3)


def main(asarray, N, given):
    words, luck = (asarray(g) for g in given)
    words, n = words.astype(np.int64), len(words)
    freq = np.bincount(words, minlength=VOCABULARY)
    zipf = np.polyfit(np.log(np.arange(11, 1001)), np.log(np.sort(freq)[::-1][10:1000]), 1)
    _, first = np.unique(words, return_index=True)
    growth = np.cumsum(np.bincount(first, minlength=n))
    heaps = np.polyfit(np.log(np.arange(100, n, 500)), np.log(growth[100::500]), 1)

    train, test = words[:n * 9 // 10], words[n * 9 // 10:]
    model = KneserNey(train)
    bits = -np.log2(model.prob(test[:-2], test[1:-1], test[2:]))
    everything = np.arange(VOCABULARY)
    row = model.prob(np.full(VOCABULARY, int(train[5])), np.full(VOCABULARY, int(train[6])), everything)

    # collocations: log-likelihood ratio and mutual information of neighbours
    pairs, together = count(words[:-1] * VOCABULARY + words[1:])
    a, b = np.divmod(pairs, VOCABULARY)
    k11, k1, k2 = (k.astype(float) for k in (together, freq[a], freq[b]))
    cells = np.stack([k11, k1 - k11, k2 - k11, n - k1 - k2 + k11])
    expected = np.stack([k1 * k2, k1 * (n - k2), (n - k1) * k2, (n - k1) * (n - k2)]) / n
    ratio = 2 * np.where(cells > 0, cells * np.log(np.maximum(cells, 1e-300) / expected), 0.0).sum(axis=0)
    pmi = np.log2(k11 * n / (k1 * k2))
    ratio[pmi <= 0] = 0.0
    top = np.lexsort(np.stack([pairs, -ratio]))[:40]
    entropy = [float(-(c / c.sum() * np.log2(c / c.sum())).sum()) for c in (freq[freq > 0], together, model.c3)]

    # gaps between a word's occurrences, and how bursty the words are
    order = np.argsort(words, kind="stable")
    same = np.diff(words[order]) == 0
    gap, owner = np.diff(order)[same], words[order][1:][same]
    m = np.bincount(owner, minlength=VOCABULARY)
    mean = np.bincount(owner, weights=gap, minlength=VOCABULARY) / np.maximum(m, 1)
    spread = np.sqrt(np.bincount(owner, weights=(gap - mean[owner])**2, minlength=VOCABULARY) / np.maximum(m, 1))
    bursty = ((spread - mean) / (spread + mean + 1e-9))[m >= 20]

    # texts drawn from the model, many at a time, each next word by the inverse of its distribution
    x, y, written = train[:40], train[1:41], []
    for t in range(12):
        table = model.prob(np.repeat(x, VOCABULARY), np.repeat(y, VOCABULARY), np.tile(everything, 40))
        cdf = np.cumsum(table.reshape(40, -1), axis=1)
        x, y = y, np.minimum((cdf < luck[:, t, None] * cdf[:, -1:]).sum(axis=1), VOCABULARY - 1)
        written.append(y)
    return dict(zipf=zipf, heaps=heaps, kinds=np.array([len(model.tri), len(model.bi), len(pairs)]),
                entropy=np.array(entropy), perplexity=2.0**bits.mean(), unsure=np.percentile(bits, [5, 50, 95]),
                mass=row.sum(), discounts=model.d3, words=np.stack([a[top], b[top]]), ratio=ratio[top], pmi=pmi[top].mean(),
                bursty=np.histogram(bursty, bins=10, range=(-0.5, 0.5))[0], texts=np.stack(written, axis=1))
