"""Near duplicates among documents: shingles, MinHash signatures, banded buckets and clusters.

N: documents, each a row of token numbers padded with -1.
"""
import numpy as np

DEFAULT = 6000
WIDTH, HASHES, BANDS = 160, 96, 24
GOLD = np.uint64(0x9E3779B97F4A7C15)


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(2024)
    length = rng.integers(WIDTH // 2, WIDTH + 1, N)
    zipf = numpy.minimum((rng.pareto(0.9, (N, WIDTH)) * 3).astype(numpy.int64), 19999)
    family = numpy.where(rng.uniform(size=N) < 0.4, rng.integers(0, N // 8, N), -1)
    for i in range(N):
        if family[i] >= 0 and family[i] < i:
            zipf[i], length[i] = zipf[family[i]], length[family[i]]
            edits = rng.uniform(size=WIDTH) < rng.choice([0.0, 0.01, 0.03, 0.08])
            zipf[i, edits] = rng.integers(0, 20000, edits.sum())
    tokens = numpy.where(numpy.arange(WIDTH) < length[:, None], zipf, -1).astype(numpy.int32)
    salts = rng.integers(1, 2**63, (2, HASHES), dtype=numpy.uint64) | numpy.uint64(1)
    return tokens, salts


def mix(h):
    """The finaliser of splitmix64."""
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


def shingles(tokens, size):
    words = mix((tokens + 1).astype(np.uint64) * GOLD)
    count = WIDTH - size + 1
    h = np.zeros((len(tokens), count), dtype=np.uint64)
    for j in range(size):
        h = mix(h * np.uint64(31) + words[:, j:j + count])
    return h, tokens[:, size - 1:] >= 0


def signatures(h, valid, salts):
    top = np.uint64(0xFFFFFFFFFFFFFFFF)
    out = np.empty((h.shape[0], HASHES), dtype=np.uint64)
    for k in range(HASHES):
        g = h * salts[0, k] + salts[1, k]
        g ^= g >> np.uint64(32)
        out[:, k] = np.where(valid, g, top).min(axis=1)
    return out


def bucket_pairs(sig):
    """Pairs of documents that are neighbours in a sorted bucket of some band."""
    n, rows, found = len(sig), HASHES // BANDS, []
    sizes = np.zeros(64, dtype=np.int64)
    for b in range(BANDS):
        key = np.zeros(n, dtype=np.uint64)
        for c in range(b * rows, (b + 1) * rows):
            key = mix(key ^ sig[:, c])
        order = np.argsort(key, kind="stable")
        ks = key[order]
        starts = np.flatnonzero(np.concatenate([np.ones(1, dtype=bool), ks[1:] != ks[:-1]]))
        extent = np.diff(starts, append=n)
        sizes += np.bincount(np.minimum(extent, 63), minlength=64)
        for gap in (1, 2, 3):
            same = np.flatnonzero(ks[gap:] == ks[:-gap])
            i, j = order[same], order[same + gap]
            found.append(np.minimum(i, j) * n + np.maximum(i, j))
    return *np.divmod(np.unique(np.concatenate(found)), n), sizes


def jaccard(h, valid, i, j):
    """Exact resemblance: sizes of the intersections by merging sorted rows."""
    top = np.uint64(0xFFFFFFFFFFFFFFFF)
    s = np.sort(np.where(valid, h, top), axis=1)
    fresh = (s != top) & (np.diff(s, axis=1, prepend=top) != 0)
    s = np.sort(np.where(fresh, s, top), axis=1)
    card = fresh.sum(axis=1)
    out = np.empty(len(i))
    for lo in range(0, len(i), 512):
        a, b = i[lo:lo + 512], j[lo:lo + 512]
        both = np.sort(np.concatenate([s[a], s[b]], axis=1), axis=1)
        common = ((both[:, 1:] == both[:, :-1]) & (both[:, 1:] != top)).sum(axis=1)
        out[lo:lo + 512] = common / (card[a] + card[b] - common)
    return out, card


def components(n, i, j):
    """Smallest member of each cluster, by hooking and pointer jumping."""
    parent = np.arange(n, dtype=np.int32)
    for rounds in range(1, n):
        low, new = np.minimum(parent[i], parent[j]), parent.copy()
        np.minimum.at(new, parent[i], low)
        np.minimum.at(new, parent[j], low)
        for _ in range(4):
            new = new[new]
        if not bool((new != parent).any()):
            break
        parent = new
    return parent, rounds


def popcount(x):
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return ((x * np.uint64(0x0101010101010101)) >> np.uint64(56)).astype(np.int64)


def main(asarray, N, given):
    tokens, salts = (asarray(v) for v in given)
    h, valid = shingles(tokens, 4)
    sig = signatures(h, valid, salts)
    i, j, sizes = bucket_pairs(sig)
    exact, card = jaccard(h, valid, i, j)
    guess = (sig[i] == sig[j]).mean(axis=1)
    linked = exact >= 0.5
    label, rounds = components(N, i[linked], j[linked])
    names, count = np.unique(label, return_counts=True)
    table = np.zeros((10, 12))
    np.add.at(table, (np.minimum((exact * 10).astype(int), 9), np.minimum((guess * 12).astype(int), 11)), 1.0)
    # the same pairs by one bit of each hash, sixty-four to a word
    word = ((sig[:, :64] & np.uint64(1)) << np.arange(64, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
    apart = popcount(word[i] ^ word[j])
    return dict(pairs=len(i), exact=exact, estimate=guess, error=np.sqrt(np.mean((exact - guess)**2)), cards=card,
                bucket_sizes=sizes, clusters=len(names), largest=np.sort(count)[::-1][:12], rounds=rounds, label=label,
                table=table, apart=apart, kept=(label == np.arange(N)).sum(),
                saved=1.0 - float(card[label == np.arange(N)].sum()) / float(card.sum()))
