"""Games of Othello on 64-bit boards, many at a time: moves by shifts, evaluation, popcounts, opening statistics.

N: games at a time.
"""
import numpy as np

DEFAULT = 4000
SHIFTS = (1, 7, 8, 9)
INNER, CORNERS = 0x7E7E7E7E7E7E7E7E, 0x8100000000000081


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(1997)
    weights = numpy.array([[120, -20, 20, 5], [-20, -40, -5, -5], [20, -5, 15, 3], [5, -5, 3, 3]])
    weights = numpy.pad(weights, (0, 4), mode="symmetric").ravel().astype(float)
    return weights, rng.integers(0, 2**63, (2, 64), dtype=numpy.uint64), rng.gumbel(0.0, 6.0, (70, N))


def popcount(b):
    m1, m2, m4 = np.array([0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F], dtype=np.uint64)
    b = b - ((b >> np.uint64(1)) & m1)
    b = (b & m2) + ((b >> np.uint64(2)) & m2)
    b = (b + (b >> np.uint64(4))) & m4
    return ((b * np.uint64(0x0101010101010101)) >> np.uint64(56)).astype(np.int64)


def bits(b):
    return ((b[..., None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).astype(np.int64)


def lines():
    for s in SHIFTS:
        yield np.left_shift, np.uint64(s), s
        yield np.right_shift, np.uint64(s), s


def legal(own, other):
    empty = ~(own | other)
    moves = np.zeros_like(own)
    for shift, by, s in lines():
        mask = other if s == 8 else other & np.uint64(INNER)
        t = mask & shift(own, by)
        for _ in range(5):
            t |= mask & shift(t, by)
        moves |= empty & shift(t, by)
    return moves


def flipped(own, other, move):
    out = np.zeros_like(own)
    for shift, by, s in lines():
        mask = other if s == 8 else other & np.uint64(INNER)
        t = mask & shift(move, by)
        for _ in range(5):
            t |= mask & shift(t, by)
        out |= np.where((shift(t, by) & own) != 0, t, np.uint64(0))
    return out


def frontier(own, empty):
    near = np.zeros_like(own)
    for shift, by, s in lines():
        near |= shift(empty if s == 8 else empty & np.uint64(INNER), by)
    return popcount(near & own)


def rotate(b):
    """A quarter turn, by the grid of bits."""
    turned = np.rot90(bits(b).reshape(-1, 8, 8), axes=(1, 2)).reshape(-1, 64).astype(np.uint64)
    return (turned << np.arange(64, dtype=np.uint64)).sum(axis=1)


def hashes(own, other, table):
    """Zobrist's keys: tables of the two sides, xored over the squares by halving."""
    keys = np.where(bits(own) > 0, table[0], np.where(bits(other) > 0, table[1], np.uint64(0)))
    while keys.shape[1] > 1:
        half = keys.shape[1] // 2
        keys = keys[:, :half] ^ keys[:, half:]
    return keys[:, 0]


def main(asarray, N, given):
    weights, zobrist, luck = (asarray(g) for g in given)
    own = np.full(N, (1 << 28) | (1 << 35), dtype=np.uint64)
    other = np.full(N, (1 << 27) | (1 << 36), dtype=np.uint64)
    black = np.ones(N, dtype=bool)                # whether the side to move is black
    passed, done = np.zeros(N, dtype=int), np.zeros(N, dtype=bool)
    lead, mobility, edge, distinct, heat = [], [], [], [], np.zeros(64)
    trait = np.linspace(0.0, 1.0, N)              # how much black cares for mobility, not squares
    for ply in range(66):
        moves = legal(own, other)
        able = moves != 0
        passed = np.where(able, 0, passed + 1)
        done |= passed >= 2
        if done.all():
            break
        jitter = luck[ply][:, None] * np.cos(np.arange(64) * (1.0 + luck[ply][:, None]))
        care = np.where(black, trait, 0.3)[:, None]
        choice = np.where(bits(moves) > 0, weights * (1 - care) + jitter, -np.inf).argmax(axis=1)
        move = np.where(able & ~done, np.left_shift(np.uint64(1), choice.astype(np.uint64)), np.uint64(0))
        gain = flipped(own, other, move)
        own, other = own | move | gain, other & ~gain
        heat += np.bincount(choice[able & ~done], minlength=64)
        if ply == 9:
            keys, counts = np.unique(hashes(own, other, zobrist), return_counts=True)
        own, other, black = other, own, ~black    # the other side moves
        diff = popcount(own) - popcount(other)
        lead.append(np.where(black, diff, -diff))
        mobility.append(popcount(moves).mean())
        edge.append(frontier(own, ~(own | other)).mean())
        distinct.append(len(np.unique(np.stack([own, other], axis=1), axis=0)))

    score, lead = lead[-1], np.stack(lead)
    blacks, whites = np.where(black, own, other), np.where(black, other, own)
    corner = popcount(blacks & np.uint64(CORNERS)) - popcount(whites & np.uint64(CORNERS))
    table = np.zeros((9, 3))
    np.add.at(table, (corner + 4, np.sign(score) + 1), 1.0)
    around = lowest = blacks
    for _ in range(4):
        around = rotate(around)
        lowest = np.minimum(lowest, around)
    when = np.stack([np.corrcoef(lead[k], score)[0, 1] for k in range(20, len(lead) - 1, 5)])
    return dict(score=score, wins=np.bincount(np.sign(score) + 1, minlength=3), corners=table, heat=heat,
                mobility=np.stack(mobility), frontier=np.stack(edge), openings=np.sort(counts)[::-1][:10],
                distinct=np.array(distinct), trait=np.stack([part.mean() for part in np.array_split(score, 10)]),
                whole=bool((around == blacks).all()), shapes=len(np.unique(lowest)),
                changes=np.mean(np.diff(np.sign(lead), axis=0) != 0, axis=1),
                foresight=when, plies=lead.shape[0],
                empties=np.bincount(popcount(~(own | other)), minlength=65))
