"""Record linkage: blocking on phonetic keys, sorted neighbourhoods, bigram Jaccard, Fellegi-Sunter EM and clustering.

N is the number of distinct persons; the file has N + N//2 records, the last N//2 being corrupted copies.
"""
import numpy as np

DEFAULT = 24000
L = 12            # letters kept of a name; 0 is blank, 1 .. 26 are a .. z


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(99)
    p = 1.0 / numpy.arange(1, 27) ** 0.6
    names = rng.choice(26, size=(N, L), p=rng.permutation(p) / p.sum()) + 1
    length = rng.integers(5, L + 1, size=N)
    names[numpy.arange(L) >= length[:, None]] = 0
    dob = rng.integers(0, 20000, size=N)
    postcode = rng.integers(0, 900, size=N)
    income = numpy.exp(rng.normal(10, 0.6, size=N))
    src = rng.choice(N, size=N // 2, replace=False)
    copy, d2, z2, m = names[src], dob[src], postcode[src], len(src)
    typo = numpy.flatnonzero(rng.random(m) < 0.5)              # one letter replaced
    at = (rng.random(typo.size) * length[src][typo]).astype(int)
    copy[typo, at] = rng.integers(1, 27, size=typo.size)
    swap = rng.random(m) < 0.2                                 # two letters exchanged
    copy[swap, 2], copy[swap, 3] = copy[swap, 3], copy[swap, 2].copy()
    d2 = numpy.where(rng.random(m) < 0.1, rng.integers(0, 20000, size=m), d2)
    z2 = numpy.where(rng.random(m) < 0.2, rng.integers(0, 900, size=m), z2)
    i2 = income[src] * numpy.exp(rng.normal(0, 0.05, size=m))
    both = ((names, copy), (dob, d2), (postcode, z2), (income, i2), (numpy.arange(N), src))
    name, *rest = [numpy.concatenate(p) for p in both]
    return [name.astype(numpy.uint8)] + rest


#            a b c d e f g h i j k l m n o p q r s t u v w x y z
PHONETIC = [0, 0, 1, 2, 3, 0, 1, 2, 0, 0, 2, 2, 4, 5, 5, 0, 1, 2, 6, 2, 3, 0, 1, 0, 2, 0, 2]


def soundex(name):
    """First letter and the next two consonant classes, coded as one integer."""
    code = np.array(PHONETIC, dtype=np.int64)[name]
    fresh = code[:, 1:] != code[:, :-1]
    code = np.where(fresh, code[:, 1:], 0)
    key = name[:, 0].astype(np.int64)
    rank = np.cumsum(code > 0, axis=1)
    for r in (1, 2):
        hit = (rank == r) & (code > 0)
        key = key * 7 + (code * hit).sum(axis=1)
    return key


def bigram_table(name):
    a, b = name[:, :-1].astype(np.int32), name[:, 1:].astype(np.int32)
    gram = np.where((a > 0) & (b > 0), (a << 5) | b, 0)
    table = np.zeros((name.shape[0], 32 * 32), dtype=bool)
    table[np.arange(len(name))[:, None], gram] = True
    table[:, 0] = False
    return np.packbits(table.ravel()).reshape(-1, 128)


def neighbours(block, minor, window):
    """Pairs (i < j) of a block that are at most `window` apart in the order of (minor, record number)."""
    n = block.size
    order = np.argsort((block << 40) | (minor << 20) | np.arange(n))
    block = block[order]
    out = []
    for w in range(1, window + 1):
        same = np.flatnonzero(block[w:] == block[:-w])
        i, j = order[same], order[same + w]
        out.append(np.minimum(i, j) * n + np.maximum(i, j))
    return np.concatenate(out)


def em(pattern_count, k, iters=60):
    """Fellegi-Sunter mixture over the 2**k agreement patterns."""
    bits = ((np.arange(1 << k)[:, None] >> np.arange(k)) & 1).astype(float)
    m, u, share = np.full(k, 0.9), np.full(k, 0.2), 0.2
    for _ in range(iters):
        pm = share * np.prod(np.where(bits > 0, m, 1 - m), axis=1)
        pu = (1 - share) * np.prod(np.where(bits > 0, u, 1 - u), axis=1)
        g = pm / (pm + pu)
        wm, wu = pattern_count * g, pattern_count * (1 - g)
        m = np.clip(wm @ bits / wm.sum(), 1e-4, 1 - 1e-4)
        u = np.clip(wu @ bits / wu.sum(), 1e-4, 1 - 1e-4)
        share = wm.sum() / pattern_count.sum()
    return m, u, share, g


def main(asarray, N, given):
    name, dob, postcode, income, truth = map(asarray, given)
    n = name.shape[0]
    sx = soundex(name)
    passes = ((sx, dob, 3), (dob, sx, 6), (sx * 1000 + postcode, dob, 6))
    pairs = np.unique(np.concatenate([neighbours(*p) for p in passes]))
    i, j = pairs // n, pairs % n

    # Jaccard of the bigram sets by population count of packed bits
    packed = bigram_table(name)
    ones = ((np.arange(256)[:, None] >> np.arange(8)) & 1).sum(axis=1)
    size = ones[packed].sum(axis=1)
    inter = np.empty(i.size, dtype=np.int64)
    for sl in [slice(s, s + 20000) for s in range(0, i.size, 20000)]:
        inter[sl] = ones[packed[i[sl]] & packed[j[sl]]].sum(axis=1)
    union = size[i] + size[j] - inter
    jaccard = inter / np.maximum(union, 1)

    agree = np.stack((20 * inter >= 7 * union, dob[i] == dob[j], postcode[i] == postcode[j],
                      np.abs(np.log(income[i] / income[j])) < 0.15, name[i, 0] == name[j, 0]))
    k = agree.shape[0]
    pattern = (agree * (1 << np.arange(k))[:, None]).sum(axis=0)
    count = np.bincount(pattern, minlength=1 << k)
    m, u, share, posterior = em(count, k)
    link = posterior[pattern] > 0.5

    # clusters: propagate the smallest record number along the links
    label = np.arange(n)
    li, lj = i[link], j[link]
    ends = np.concatenate((li, lj))
    done = False
    while not done:
        low = np.minimum(label[li], label[lj])
        node, value = np.divmod(np.sort(ends * n + np.concatenate((low, low))), n)
        head = np.flatnonzero(np.diff(node, prepend=-1))
        new = label.copy()
        new[node[head]] = np.minimum(label[node[head]], value[head])
        done, label = bool((new == label).all()), new
    total = np.zeros(n)
    np.add.at(total, label, income)
    members = np.unique(label, return_counts=True)[1]
    right = truth[i] == truth[j]
    tp = (link & right).sum()
    return {
        "pairs": pairs.size, "pair_sum": pairs.sum(), "jaccard": jaccard, "patterns": count,
        "m": m, "u": u, "share": share, "posterior": posterior, "weights": np.log2(m / u),
        "precision": tp / link.sum(), "recall": tp / (N // 2), "blocking_recall": right.sum() / (N // 2),
        "clusters": members.size, "cluster_sizes": np.bincount(members), "label": label,
        "jaccard_match": jaccard[right].mean(), "jaccard_other": jaccard[~right].mean(),
        "mean_cluster_income": total[total > 0].mean(),
    }
