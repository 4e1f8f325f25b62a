"""A bzip-like codec without scalar loops over bytes.

Suffix sorting by doubling, Burrows-Wheeler, move-to-front, zero runs, canonical Huffman, bit packing, Huffman decoding
and inverse transform by pointer jumping. N: bytes.
"""
import numpy as np

DEFAULT = 90000


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(1994)
    letters = numpy.frombuffer(b"etaoinshrdlucmfwypvbgk", dtype=numpy.uint8)
    p = 1.0 / numpy.arange(1, len(letters) + 1)
    words = [bytes(rng.choice(letters, int(rng.integers(1, 9)), p=p / p.sum())) for _ in range(700)]
    q = 1.0 / numpy.arange(1, 701)
    text = b""
    previous = 0
    while len(text) < N:                        # some words like to follow others
        previous = (previous * 7 + 3) % 700 if rng.random() < 0.35 else int(rng.choice(700, p=q / q.sum()))
        text += words[previous] + (b". " if rng.random() < 0.06 else b" ")
    return (numpy.frombuffer(text[:N], dtype=numpy.uint8).copy(),)


def suffix_order(data):
    """Sorted cyclic rotations with a sentinel: ranks of prefixes double in length."""
    n = len(data)
    rank = np.unique(data, return_inverse=True)[1].astype(np.int64)
    k, rounds = 1, 0
    while True:
        key = rank * (n + 1) + np.roll(rank, -k)
        order = np.argsort(key, kind="stable")
        s = key[order]
        fresh = np.zeros(n, dtype=np.int64)
        fresh[1:] = s[1:] != s[:-1]
        rank = np.empty(n, dtype=np.int64)
        rank[order] = np.cumsum(fresh)
        k, rounds = 2 * k, rounds + 1
        if int(rank.max()) == n - 1 or k >= n:
            return order, rounds


def follow(jump, start, count):
    path = np.full(1, start)
    while len(path) < count:
        path = np.concatenate([path, jump[path]])
        jump = jump[jump]
    return path[:count]


def inverse_bwt(last, primary):
    order = np.argsort(last, kind="stable")
    return last[follow(order, order[primary], len(last))]


def move_to_front(x, size):
    """Rank of a symbol: how many others were seen since it was last.

    Before the first time all lower ones are in front.
    """
    n = len(x)
    i = np.arange(n)
    seen = np.empty((size, n), dtype=np.int32)
    for s in range(size):
        where = np.flatnonzero(x == s)
        k = np.searchsorted(where, i)
        seen[s] = np.where(k > 0, np.concatenate([np.full(1, -1 - s), where])[k], -1 - s)
    mine = np.take_along_axis(seen, x[None, :], axis=0)
    return (seen > mine).sum(axis=0)


def zero_runs(codes):
    """Runs of zeros become digits 0 and 1 in bijective base two; other codes move up by one."""
    zero = codes == 0
    edge = np.diff(np.concatenate([np.zeros(1, dtype=np.int8), zero.astype(np.int8), np.zeros(1, dtype=np.int8)]))
    begin, end = np.flatnonzero(edge == 1), np.flatnonzero(edge == -1)
    length = end - begin
    digits = np.floor(np.log2(length + 1.0)).astype(np.int64)
    room = np.where(zero, 0, 1)
    room[begin] = digits
    place = np.cumsum(room) - room
    out = np.empty(int(room.sum()), dtype=np.int64)
    out[place[~zero]] = codes[~zero] + 1
    for d in range(int(digits.max())):
        some = digits > d
        out[place[begin[some]] + d] = ((length[some] + 1) >> d) & 1
    return out


def huffman_lengths(freq):
    weight = np.where(freq > 0, freq.astype(float), np.inf)
    member = np.eye(len(freq), dtype=np.int64)
    for _ in range(int((freq > 0).sum()) - 1):
        a = int(weight.argmin())
        wa = float(weight[a])
        weight[a] = np.inf
        b = int(weight.argmin())
        weight[b] += wa
        member[b] += member[a] + ((member[a] > 0) | (member[b] > 0))
        member[a] = 0
    root = member[b]
    return np.where(freq > 0, root - 1, 0)


def canonical(length):
    order = np.argsort(length, kind="stable")
    order = order[length[order] > 0]
    l = length[order]
    top = int(l.max())
    width = 1 << (top - l)
    start = np.cumsum(width) - width
    code = np.zeros(len(length), dtype=np.int64)
    code[order] = start >> (top - l)
    return code, order, start, top


def pack(sym, code, length):
    l, c = length[sym], code[sym]
    offset = np.cumsum(l) - l
    bits = np.zeros(int(l.sum()), dtype=np.uint8)
    for k in range(int(l.max())):
        on = l > k
        bits[offset[on] + k] = (c[on] >> (l[on] - 1 - k)) & 1
    return np.packbits(bits), len(bits)


def unpack(packed, nbits, order, start, length, top, count):
    bits = np.concatenate([np.unpackbits(packed)[:nbits], np.zeros(top, dtype=np.uint8)]).astype(np.int64)
    window = np.zeros(nbits, dtype=np.int64)
    for k in range(top):
        window = 2 * window + bits[k:k + nbits]
    sym = order[np.searchsorted(start, window, side="right") - 1]
    after = np.minimum(np.arange(nbits) + length[sym], nbits - 1)
    return sym[follow(after, 0, count)]


def main(asarray, N, given):
    text = asarray(given[0])
    data = np.concatenate([text.astype(np.int64) + 1, np.zeros(1, dtype=np.int64)])
    alphabet, sym = np.unique(data, return_inverse=True)
    size = len(alphabet)
    order, rounds = suffix_order(sym)
    last = sym[order - 1]
    primary = int(np.flatnonzero(order == 0)[0])
    codes = move_to_front(last, size)
    packed_runs = zero_runs(codes)
    freq = np.bincount(packed_runs, minlength=size + 1)
    length = huffman_lengths(freq)
    code, by_code, start, top = canonical(length)
    stream, nbits = pack(packed_runs, code, length)

    got = unpack(stream, nbits, by_code, start, length, top, len(packed_runs))
    again = alphabet[inverse_bwt(last, primary)]
    decoded = (again[:-1] - 1).astype(np.uint8)
    return dict(order=order, last=last, codes=np.bincount(codes, minlength=size), freq=freq, length=length, code=code,
                stream=stream, rounds=rounds, exact=bool((decoded == text).all()),
                same=bool((got == packed_runs).all()),
                ratio=nbits / (8.0 * N), kraft=(0.5**length[length > 0]).sum())
