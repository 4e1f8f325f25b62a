"""A low-density parity-check code over a noisy channel.

Generator by elimination over GF(2), BPSK, sum-product and normalised min-sum decoding of a batch of frames at several
signal-to-noise ratios, and error rates. N: length of the code, a multiple of 4.
"""
import numpy as np

DEFAULT = 900
DV, DC, FRAMES, ITER = 3, 6, 32, 24


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(1963)
    sockets = numpy.repeat(numpy.arange(N), DV)
    checks = rng.permutation(sockets).reshape(-1, DC)
    for _ in range(200):                                    # no variable twice in a check
        s = numpy.sort(checks, axis=1)
        bad = numpy.flatnonzero((s[:, 1:] == s[:, :-1]).any(axis=1))
        if not len(bad):
            break
        for r in bad:
            q, i, j = rng.integers(len(checks)), rng.integers(DC), rng.integers(DC)
            checks[r, i], checks[q, j] = checks[q, j], checks[r, i]
    return checks, rng.integers(0, 2, (FRAMES, N), dtype=numpy.uint8), rng.normal(size=(4, FRAMES, N))


def systematic(H):
    """Reduced row echelon form over GF(2), the columns of its pivots and the others."""
    H = H.copy()
    m, n = H.shape
    row, pivots = 0, []
    for col in range(n):
        if row == m:
            break
        first = int(H[row:, col].argmax())
        if int(H[row + first, col]) == 0:
            continue
        if first:
            H[[row, row + first]] = H[[row + first, row]]
        hit = H[:, col].copy()
        hit[row] = 0
        H ^= hit[:, None] & H[row][None, :]
        pivots.append(col)
        row += 1
    is_pivot = np.zeros(n, dtype=bool)
    is_pivot[np.array(pivots)] = True
    return H[:row], np.flatnonzero(is_pivot), np.flatnonzero(~is_pivot)


def encode(message, echelon, pivots, free):
    word = np.zeros((message.shape[0], echelon.shape[1]), dtype=np.uint8)
    bits = message[:, free]
    word[:, free] = bits
    word[:, pivots] = ((bits.astype(np.float32) @ echelon[:, free].T.astype(np.float32)) % 2).astype(np.uint8)
    return word


def sum_product(v):
    """Check messages by the tanh rule; forward and backward products leave each edge out."""
    t = np.tanh(np.clip(v, -30, 30) / 2)
    ones = np.ones(t.shape[:-1] + (1,))
    fore = np.concatenate([ones, np.cumprod(t, axis=-1)[..., :-1]], axis=-1)
    back = np.concatenate([np.cumprod(t[..., ::-1], axis=-1)[..., -2::-1], ones], axis=-1)
    return 2 * np.arctanh(np.clip(fore * back, -1 + 1e-12, 1 - 1e-12))


def min_sum(v):
    mag = np.abs(v)
    two = np.partition(mag, 1, axis=-1)[..., :2]
    least, second = two[..., :1], two[..., 1:]
    is_least = np.arange(DC) == mag.argmin(axis=-1)[..., None]
    negative = np.signbit(v)
    parity = np.logical_xor(negative.sum(axis=-1, keepdims=True) % 2 == 1, negative)
    return 0.8 * np.where(is_least, second, least) * np.where(parity, -1.0, 1.0)


def decode(llr, checks, by_variable, rule):
    """Flooding schedule; frames whose syndrome vanishes leave the batch."""
    hard = (llr < 0).astype(np.uint8)
    used = np.full(llr.shape[0], ITER)
    active = np.arange(llr.shape[0])
    channel = llr
    messages = channel[:, checks]
    for it in range(ITER):
        out = rule(messages)
        incoming = out.reshape(len(out), -1)[:, by_variable]            # frames, variables, DV
        total = channel + incoming.sum(axis=2)
        messages = total[:, checks] - out
        bits = (total < 0).astype(np.uint8)
        hard[active] = bits
        done = ~np.bitwise_and(bits[:, checks].sum(axis=2), 1).astype(bool).any(axis=1)
        used[active[done]] = it + 1
        if bool(done.any()):
            live = ~done
            active, channel, messages = active[live], channel[live], messages[live]
            if active.size == 0:
                break
    return hard, used


def main(asarray, N, given):
    checks, message, noise = map(asarray, given)
    m = len(checks)
    H = np.zeros((m, N), dtype=np.uint8)
    H[np.arange(m)[:, None], checks] = 1
    echelon, pivots, free = systematic(H)
    word = encode(message, echelon, pivots, free)
    syndrome = (word[:, checks].sum(axis=2) % 2).sum()
    by_variable = np.argsort(checks.ravel(), kind="stable").reshape(N, DV)
    rate = free.size / N
    girth4 = (np.triu(H.astype(np.float32) @ H.T.astype(np.float32), 1) > 1).sum()

    results = {"sum": [], "min": []}
    snr = (1.0, 1.6, 2.2, 2.8)
    raw = []
    for db, eps in zip(snr, noise):
        sigma = (2 * rate * 10**(db / 10))**-0.5
        received = 1.0 - 2.0 * word + sigma * eps
        llr = 2 * received / sigma**2
        raw.append(((llr < 0) != word).mean())
        for name, rule in (("sum", sum_product), ("min", min_sum)):
            hard, used = decode(llr, checks, by_variable, rule)
            wrong = np.count_nonzero(hard != word, axis=1)
            results[name].append(np.stack([wrong.sum(), (wrong > 0).sum(), np.sum(used)]))
    return dict(rank=len(pivots), rate=rate, syndrome=syndrome, short_cycles=girth4, raw=np.stack(raw),
                sum_product=np.stack(results["sum"]), min_sum=np.stack(results["min"]), weight=word.sum(axis=1),
                pivots=np.array(pivots), free=free)
