"""Alignment of DNA pairs: Gotoh's affine gaps by antidiagonals, batched traceback, identity, substitution table, shuffled scores with a Gumbel fit, k-mer distances. N: bases."""
import numpy
import numpy as np

DEFAULT = 100
PAIRS, MATCH, TRANSITION, TRANSVERSION, OPEN, EXTEND = 640, 5, -2, -4, 9, 1
LOW = -(1 << 28)


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(301)
    first = rng.integers(0, 4, (PAIRS, N)).astype(numpy.uint8)
    second = numpy.full((PAIRS, N), 4, numpy.uint8)
    size = numpy.zeros(PAIRS, numpy.int32)
    for p in range(PAIRS):
        s = first[p].copy()
        hit = rng.random(N) < 0.02 + 0.2 * p / PAIRS
        s[hit] = rng.integers(0, 4, hit.sum())
        for _ in range(1 + p % 4):
            at, n = rng.integers(5, N - 20), rng.integers(1, 8)
            s = numpy.delete(s, slice(at, at + n))
            at, n = rng.integers(5, len(s) - 5), rng.integers(1, 6)
            s = numpy.insert(s, at, rng.integers(0, 4, n))
        s = s[:N]
        second[p, :len(s)] = s
        size[p] = len(s)
    return dict(first=first, second=second, size=size, shuffle=numpy.stack([rng.permutation(N) for _ in range(PAIRS)]).astype(numpy.int32))


def scores():
    table = np.full((5, 5), TRANSVERSION, dtype=np.int32)
    table[[0, 2, 1, 3], [2, 0, 3, 1]] = TRANSITION          # A<->G, C<->T
    table[np.arange(5), np.arange(5)] = MATCH
    table[4, :] = table[:, 4] = 0
    return table


def gotoh(a, b, size, table, trace=True):
    """Global scores (and, if asked, the moves by antidiagonal) of all pairs at once."""
    pairs, n = a.shape
    m = b.shape[1]
    reversed_b = b[:, ::-1]
    H2 = np.full((pairs, n + 1), LOW, dtype=np.int32)
    H1, E1, F1 = H2.copy(), H2.copy(), H2.copy()
    H1[:, 0] = 0
    moves = np.zeros((n + m + 1, pairs, n + 1), dtype=np.uint8) if trace else None
    final = np.zeros(pairs, dtype=np.int32)
    for d in range(1, n + m + 1):
        lo, hi = max(0, d - m), min(n, d)
        H, E, F = np.full_like(H1, LOW), np.full_like(H1, LOW), np.full_like(H1, LOW)
        # a gap in the first sequence: j grows, i stays
        top = min(hi, d - 1)
        opened, kept = H1[:, lo:top + 1] - OPEN, E1[:, lo:top + 1] - EXTEND
        np.maximum(opened, kept, out=E[:, lo:top + 1])
        e_long = kept > opened
        # a gap in the second: i grows
        base = max(lo, 1)
        opened, kept = H1[:, base - 1:hi] - OPEN, F1[:, base - 1:hi] - EXTEND
        np.maximum(opened, kept, out=F[:, base:hi + 1])
        f_long = kept > opened
        H[:] = np.maximum(E, F)
        choice = np.where(E >= F, 1, 2).astype(np.uint8)
        if top >= base:
            i = slice(base - 1, top)                       # j - 1 = d - i - 1 counted from the end
            match = H2[:, i] + table[a[:, i], reversed_b[:, m - d + base:m - d + top + 1]]
            better = match >= H[:, base:top + 1]
            H[:, base:top + 1] = np.where(better, match, H[:, base:top + 1])
            choice[:, base:top + 1][better] = 0
        if trace:
            choice[:, lo:top + 1] |= e_long.astype(np.uint8) << 2
            choice[:, base:hi + 1] |= f_long.astype(np.uint8) << 3
            moves[d] = choice
        if d >= n:
            final = np.where(size == d - n, H[:, n], final)
        H2, H1, E1, F1 = H1, H, E, F
    return final, moves


def traceback(moves, a, b, size):
    pairs, n = a.shape
    rows = np.arange(pairs)
    i, j = np.full(pairs, n), size.astype(np.int64)
    state = np.zeros(pairs, dtype=np.int64)
    left, right = [], []
    for step in range(n + b.shape[1]):
        live = (i + j) > 0
        if step % 32 == 0 and not bool(live.any()):
            break
        code = moves[i + j, rows, i]
        state = np.where(state == 0, code & 3, state)
        state = np.where(i == 0, 1, np.where(j == 0, 2, state))
        go_i, go_j = live & (state != 1), live & (state != 2)
        left.append(np.where(go_i, a[rows, np.maximum(i - 1, 0)], 4))
        right.append(np.where(go_j, b[rows, np.maximum(j - 1, 0)], 4))
        longer = np.where(state == 1, (code >> 2) & 1, (code >> 3) & 1)
        state = np.where((state > 0) & (longer > 0), state, 0)
        i = i - go_i
        j = j - go_j
    return np.stack(left, axis=1), np.stack(right, axis=1)


def kmers(s, k, valid):
    code = np.zeros((s.shape[0], s.shape[1] - k + 1), dtype=np.int64)
    for t in range(k):
        code = code * 4 + (s[:, t:s.shape[1] - k + 1 + t] & 3)
    ok = np.arange(code.shape[1])[None, :] + k <= valid[:, None]
    flat = (np.arange(len(s))[:, None] * 4 ** k + code)[ok]
    return np.bincount(flat, minlength=len(s) * 4 ** k).reshape(len(s), 4 ** k)


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    a, b, size = asarray(data["first"]), asarray(data["second"]), asarray(data["size"])
    table = scores()
    score, moves = gotoh(a, b, size, table)
    x, y = traceback(moves, a, b, size)
    both = (x < 4) & (y < 4)
    same = both & (x == y)
    identity = same.sum(axis=1) / np.maximum(both.sum(axis=1), 1)
    counts = np.zeros((4, 4), dtype=np.int32)
    np.add.at(counts, (x[both], y[both]), 1)
    gap = ((x == 4) ^ (y == 4)).astype(np.int8)
    openings = (np.diff(gap, axis=1, prepend=np.zeros((len(gap), 1), dtype=np.int8)) == 1).sum(axis=1)
    gaps = gap.sum(axis=1)
    # Jukes-Cantor and Kimura distances
    p = np.clip(1 - identity, 0, 0.7)
    jukes = -0.75 * np.log(1 - 4 / 3 * p)
    ts = (both & (x != y) & ((x & 1) == (y & 1))).sum(axis=1) / np.maximum(both.sum(axis=1), 1)
    tv = p - np.minimum(ts, p)
    kimura = -0.5 * np.log(np.maximum(1 - 2 * ts - tv, 1e-3)) - 0.25 * np.log(np.maximum(1 - 2 * tv, 1e-3))
    # what chance alone gives: the first of each pair shuffled
    shuffled = np.take_along_axis(a, asarray(data["shuffle"]), axis=1)
    null, _ = gotoh(shuffled, b, size, table, trace=False)
    beta = null.std() * np.sqrt(6) / np.pi
    mode = null.mean() - 0.5772156649 * beta
    z = (score - mode) / beta
    evalue = -np.log10(np.maximum(-np.expm1(-np.exp(-z)), 1e-300))
    whole = np.full(len(a), a.shape[1])
    ka, kb = kmers(a, 5, whole), kmers(b, 5, size)
    shared = np.minimum(ka, kb).sum(axis=1)
    jaccard = shared / np.maximum(ka, kb).sum(axis=1)
    cosine = np.einsum("ij,ij->i", ka, kb) / np.sqrt((ka ** 2).sum(axis=1) * (kb ** 2).sum(axis=1))
    gram = (ka > 0).astype(np.float32) @ (kb > 0).astype(np.float32).T
    nearest = gram.argmax(axis=1)
    return dict(score=np.asarray(score), identity=np.asarray(identity), counts=np.asarray(counts), openings=np.asarray(openings), gaps=np.asarray(gaps),
                jukes=np.asarray(jukes), kimura=np.asarray(kimura), null=np.asarray(null), z=np.asarray(z), evalue=np.asarray(evalue),
                jaccard=np.asarray(jaccard), cosine=np.asarray(cosine), found=float((nearest == np.arange(len(a))).mean()))
