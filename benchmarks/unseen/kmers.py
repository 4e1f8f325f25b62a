"""Short and long words of DNA: k-mer spectra, canonical codes, minimizers, mapping of reads, GC skew.

N: bases of the reference.
"""
import numpy as np

DEFAULT = 600000
K, W, READ, READS = 15, 10, 150, 12000


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(77)
    skew = 0.04 * numpy.sign(numpy.sin(2 * numpy.pi * (numpy.arange(N) / N + 0.13)))
    edges = numpy.stack([0.27 - 0 * skew, 0.5 - skew, 0.73 + 0 * skew])
    ref = (rng.uniform(size=N) > edges).sum(axis=0).astype(numpy.uint8)         # A C G T
    ref[N // 3:N // 3 + 2000] = ref[N // 2:N // 2 + 2000]
    ref[N // 4:N // 4 + 300] = numpy.tile(ref[:3], 100)
    start = rng.integers(0, N - READ, READS)
    reads = ref[start[:, None] + numpy.arange(READ)]
    wrong = rng.uniform(size=reads.shape) < 0.02
    reads = numpy.where(wrong, (reads + rng.integers(1, 4, reads.shape)) % 4, reads)
    turned = rng.uniform(size=READS) < 0.5
    reads[turned] = 3 - reads[turned, ::-1]
    return ref, reads.astype(numpy.uint8), start, turned


def words(seq, k):
    """Codes of all words of length k, of both strands, along the last axis."""
    n = seq.shape[-1] - k + 1
    forward = np.zeros((*seq.shape[:-1], n), dtype=np.uint64)
    back = np.zeros_like(forward)
    for i in range(k):
        base = seq[..., i:i + n].astype(np.uint64)
        forward = (forward << np.uint64(2)) | base
        back |= (np.uint64(3) - base) << np.uint64(2 * i)
    return forward, back


def mix(x):
    """Finalizer of splitmix64."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def minimizers(seq, k, w):
    """Hashes, positions and strands of the smallest word of every window, each once; seq is one row a sequence."""
    forward, back = words(seq, k)
    h = mix(np.minimum(forward, back))
    n = h.shape[1] - w + 1
    least, place = h[:, :n].copy(), np.tile(np.arange(n), (len(h), 1))
    for i in range(1, w):
        other = h[:, i:i + n]
        better = other < least
        least = np.where(better, other, least)
        place = np.where(better, np.arange(i, i + n), place)
    new = np.ones(place.shape, dtype=bool)
    new[:, 1:] = place[:, 1:] != place[:, :-1]
    row, window = np.nonzero(new)
    place = place[row, window]
    return least[row, window], row, place, (forward < back)[row, place]


def spectrum(seq, k):
    """Numbers of words by how often they occur, and the entropy of blocks of the sequence."""
    forward, back = words(seq, k)
    code = np.minimum(forward, back).astype(np.int64)
    count = np.bincount(code, minlength=4**k)
    times = np.bincount(np.minimum(count[count > 0], 50), minlength=51)
    blocks = forward[:len(forward) // 500 * 500].reshape(-1, 500) & np.uint64(255)
    key = np.arange(len(blocks))[:, None] * 256 + blocks.astype(np.int64)
    p = np.bincount(key.ravel(), minlength=len(blocks) * 256).reshape(-1, 256) / 500
    return count, times, -(p * np.log2(np.where(p > 0, p, 1.0))).sum(axis=1)


def map_reads(ref, reads, limit=8):
    """Votes of shared minimizers for strand and diagonal; returns position, strand and votes of each read."""
    h, _, place, strand = minimizers(ref[None], K, W)
    order = np.argsort(h, kind="stable")
    h, place, strand = h[order], place[order], strand[order]
    rh, row, rplace, rstrand = minimizers(reads, K, W)
    lo, hi = np.searchsorted(h, rh), np.searchsorted(h, rh, side="right")
    number = np.where(hi - lo <= limit, hi - lo, 0)
    # all pairs of a read's minimizer and its places in the reference
    end = np.cumsum(number)
    pair = np.arange(int(end[-1]))
    seed = np.searchsorted(end, pair, side="right")
    hit = lo[seed] + pair - (end - number)[seed]
    same = rstrand[seed] == strand[hit]
    offset = np.where(same, rplace[seed], READ - K - rplace[seed])
    diagonal = place[hit] - offset + READ
    key = (row[seed] * 2 + same) * (len(ref) + 2 * READ) + diagonal
    key, votes = np.unique(key, return_counts=True)
    owner = key // (len(ref) + 2 * READ)
    best = np.lexsort(np.stack([-key, votes, owner // 2]))
    last = np.searchsorted((owner // 2)[best], np.arange(len(reads)), side="right") - 1
    chosen = best[np.maximum(last, 0)]
    mapped = (last >= 0) & (owner[chosen] // 2 == np.arange(len(reads)))
    return key[chosen] % (len(ref) + 2 * READ) - READ, owner[chosen] % 2 == 1, np.where(mapped, votes[chosen], 0)


def main(asarray, N, given):
    ref, reads, start, turned = (asarray(g) for g in given)
    count, times, entropy = spectrum(ref, 9)
    gc = (ref == 2).astype(int) - (ref == 1)
    skew = np.cumsum(gc)
    windows = np.add.reduceat(gc, np.arange(0, N, 1000))
    place, same, votes = map_reads(ref, reads)
    mapped = votes >= 2
    right = mapped & (np.abs(place - start) <= 3) & (same == ~turned)
    at = np.clip(place[mapped], 0, N - READ)[:, None] + np.arange(READ)
    oriented = np.where(same[mapped, None], reads[mapped], 3 - reads[mapped][:, ::-1])
    wrong = oriented != ref[at]
    depth = np.zeros(N + 1)
    np.add.at(depth, at[:, 0], 1.0)
    np.add.at(depth, at[:, 0] + READ, -1.0)
    depth = np.cumsum(depth)[:-1]
    pile = np.bincount((at * 4 + oriented).ravel(), minlength=4 * N).reshape(N, 4)
    consensus = np.where(pile.sum(axis=1) > 0, pile.argmax(axis=1), ref)
    pairs = np.bincount(ref[:-1].astype(int) * 4 + ref[1:], minlength=16).reshape(4, 4)
    single = np.bincount(ref, minlength=4) / N
    common = np.sort(count)[::-1][:20]
    return dict(times=times, entropy=entropy, origin=skew.argmin(), terminus=skew.argmax(), windows=windows,
                common=common, votes=np.bincount(votes, minlength=40), mapped=int(mapped.sum()), right=int(right.sum()),
                mismatch=wrong.mean(axis=0), depth=np.bincount(depth.astype(int)), deepest=depth.max(),
                consensus=(consensus != ref).sum(), bias=pairs / pairs.sum() / np.outer(single, single))
