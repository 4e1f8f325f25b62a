"""Word vectors from skip-grams with negative sampling, by hand: subsampling, pairs, negative draws, scattered Adagrad updates; PPMI for comparison. N: words of text."""
import numpy
import numpy as np

DEFAULT = 60000
VOCAB, DIM, WINDOW, NEGATIVE, BATCH, TOPICS = 2000, 48, 3, 5, 4096, 20


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(2013)
    weight = 1 / (5 + numpy.arange(VOCAB)) ** 0.9
    topic = rng.integers(0, TOPICS, VOCAB)
    walk = numpy.repeat(rng.integers(0, TOPICS, N // 12 + 1), 12)[:N]
    text = numpy.zeros(N, dtype=numpy.int64)
    for k in range(TOPICS):
        at = numpy.flatnonzero(walk == k)
        p = weight * numpy.where(topic == k, 12, 0.4)
        text[at] = rng.choice(VOCAB, len(at), p=p / p.sum())
    pairs = 2 * WINDOW * N
    return dict(text=text, topic=topic, keep=rng.random(N), negative=rng.random((pairs // 8, NEGATIVE)), order=rng.random(pairs), start=rng.uniform(-0.5,
                0.5, (VOCAB, DIM)).astype(numpy.float32) / DIM)


def subsample(text, draws, threshold=2e-3):
    count = np.bincount(text, minlength=VOCAB)
    share = count / len(text)
    keep = np.sqrt(threshold / np.maximum(share, 1e-12)) + threshold / np.maximum(share, 1e-12)
    return text[draws < keep[text]], count


def pairs(text):
    """All pairs of words within the window, both ways."""
    centre, around = [], []
    for d in range(1, WINDOW + 1):
        centre += [text[:-d], text[d:]]
        around += [text[d:], text[:-d]]
    return np.concatenate(centre), np.concatenate(around)


def sigmoid(x):
    return 1 / (1 + np.exp(-np.clip(x, -30, 30)))


class SkipGram:
    def __init__(self, start, count, rate=0.15):
        self.inner, self.outer = start.copy(), np.zeros_like(start)
        self.seen_in, self.seen_out = np.full(VOCAB, 1e-2, dtype=np.float32), np.full(VOCAB, 1e-2, dtype=np.float32)
        self.rate = rate
        noise = np.maximum(count, 1) ** 0.75
        self.cumulative = np.cumsum(noise / noise.sum())
        self.losses = []

    def draw(self, u):
        return np.minimum(np.searchsorted(self.cumulative, u.ravel()).reshape(u.shape), VOCAB - 1)

    def scatter(self, table, seen, rows, gradient):
        total = np.zeros_like(table)
        np.add.at(total, rows, gradient)
        times = np.bincount(rows, minlength=len(table))
        total /= np.sqrt(np.maximum(times, 1))[:, None].astype(np.float32)
        touched = times > 0
        seen[touched] += (total[touched] ** 2).mean(axis=1)
        table -= np.where(touched[:, None], self.rate * total / np.sqrt(seen)[:, None], 0)

    def batch(self, centre, around, negative):
        v, u, n = self.inner[centre], self.outer[around], self.outer[negative]
        good = sigmoid((v * u).sum(axis=1))
        bad = sigmoid(np.einsum("bd,bkd->bk", v, n))
        bad[negative == around[:, None]] = 0
        g, b = good - 1, bad
        dv = g[:, None] * u + np.einsum("bk,bkd->bd", b, n)
        du, dn = g[:, None] * v, b[:, :, None] * v[:, None, :]
        self.losses.append(-(np.log(good + 1e-7)).mean() - np.log(1 - bad + 1e-7).sum(axis=1).mean())
        self.scatter(self.inner, self.seen_in, centre, dv)
        self.scatter(self.outer, self.seen_out, np.concatenate([around, negative.ravel()]), np.concatenate([du, dn.reshape(-1, DIM)]))


def normalise(v):
    return v / (np.linalg.norm(v, axis=1, keepdims=True) + 1e-9)


def purity(v, topic, words, k=10):
    """How often the nearest words share the topic, for the commonest words."""
    v = normalise(v)
    s = v[words] @ v[words].T
    np.fill_diagonal(s, -np.inf)
    near = np.argpartition(-s, k, axis=1)[:, :k]
    same = topic[words][near] == topic[words][:, None]
    return same.mean(axis=1)


def ppmi(centre, around, words, rank=DIM):
    """Shifted positive pointwise information of the commonest words, factored."""
    place = np.full(VOCAB, -1)
    place[words] = np.arange(len(words))
    i, j = place[centre], place[around]
    both = (i >= 0) & (j >= 0)
    n = len(words)
    table = np.bincount(i[both] * n + j[both], minlength=n * n).reshape(n, n).astype(float)
    total, rows, cols = table.sum(), table.sum(axis=1, keepdims=True), table.sum(axis=0, keepdims=True)
    with_pairs = table > 0
    m = np.zeros_like(table)
    expected = np.broadcast_to(rows * cols / total, table.shape)
    m[with_pairs] = np.maximum(np.log(table[with_pairs] / expected[with_pairs]), 0)
    w, V = np.linalg.eigh((m + m.T) / 2)
    order = np.argsort(-np.abs(w))[:rank]
    return V[:, order] * np.sqrt(np.abs(w[order])), m


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    text, topic = asarray(data["text"]), asarray(data["topic"])
    text, count = subsample(text, asarray(data["keep"]))
    centre, around = pairs(text)
    order = np.argsort(asarray(data["order"])[:len(centre)])
    centre, around = centre[order], around[order]
    model = SkipGram(asarray(data["start"]), count)
    negative = model.draw(asarray(data["negative"]))
    best, patience = np.inf, 0
    for n, lo in enumerate(range(0, len(centre) - BATCH + 1, BATCH)):
        at = (n * BATCH) % (len(negative) - BATCH + 1)
        model.batch(centre[lo:lo + BATCH], around[lo:lo + BATCH], negative[at:at + BATCH])
        if n % 20 == 19:
            recent = float(np.stack(model.losses[-20:]).mean())
            patience = patience + 1 if recent > best - 1e-3 else 0
            best = min(best, recent)
            model.rate *= 0.9
            if patience > 4:
                break
    words = np.argsort(-count, kind="stable")[:600]
    pure = purity(model.inner, topic, words)
    factored, m = ppmi(centre, around, words)
    v = normalise(factored)
    s = v @ v.T
    np.fill_diagonal(s, -1)
    reference = (topic[words][s.argmax(axis=1)] == topic[words]).mean()
    centres = np.stack([model.inner[words][topic[words] == k].mean(axis=0) for k in range(TOPICS)])
    apart = normalise(centres - centres.mean(axis=0))
    assigned = (normalise(model.inner[words] - centres.mean(axis=0)) @ apart.T).argmax(axis=1)
    spectrum = np.linalg.svd(model.inner - model.inner.mean(axis=0), compute_uv=False)
    return dict(losses=np.stack(model.losses), pure=pure.mean(), reference=reference, information=m.sum(axis=1), accuracy=(assigned == topic[words]).mean(),
                spectrum=spectrum,
                length=np.linalg.norm(model.inner, axis=1), words=words[:50], kept=len(text))
