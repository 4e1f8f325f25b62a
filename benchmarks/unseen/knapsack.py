"""Integer dynamic programs with backtracking: 0/1 knapsack, bounded knapsack, edit distance along anti-diagonals and
coin change; N is the number of knapsack items and sets the string lengths and amounts."""
import numpy as np

DEFAULT = 300
MOD = 1_000_000_007

def inputs(N):
    import numpy
    rng = numpy.random.default_rng(31415)
    weights = rng.integers(5, 200, N)
    values = weights * 10 + rng.integers(-40, 400, N)
    a = rng.integers(0, 4, 4 * N)
    b = a.copy()
    hit = rng.random(b.size) < 0.15
    b[hit] = rng.integers(0, 4, int(hit.sum()))
    b = b[rng.random(b.size) > 0.06]
    at = numpy.sort(rng.integers(0, b.size, N // 6))
    b = numpy.insert(b, at, rng.integers(0, 4, at.size))
    coins = numpy.array([1, 7, 11, 23, 58, 101, 204, 509])
    copies = rng.integers(1, 6, 40)
    return weights, values, a, b, coins, copies


def knapsack(weights, values, capacity):
    """Best value, chosen items as a mask, and the value of each capacity."""
    n = len(weights)
    best = np.zeros(capacity + 1, dtype=np.int64)
    took = np.zeros((n, capacity + 1), dtype=bool)
    for i in range(n):
        w, v = int(weights[i]), int(values[i])
        trial = best[:-w] + v
        better = trial > best[w:]
        took[i, w:] = better
        best[w:] = np.where(better, trial, best[w:])
    room = capacity
    chosen = np.zeros(n, dtype=bool)
    for i in range(n - 1, -1, -1):
        if took[i, room]:
            chosen[i] = True
            room -= int(weights[i])
    return best, chosen


def split_copies(weights, values, copies):
    """Binary splitting of a bounded knapsack into 0/1 items."""
    owner, mult = [], []
    for i, c in enumerate(copies.tolist()):
        k = 1
        while c > 0:
            k = min(k, c)
            owner.append(i)
            mult.append(k)
            c -= k
            k *= 2
    owner, mult = np.array(owner), np.array(mult)
    return weights[owner] * mult, values[owner] * mult, owner, mult


def edit_table(a, b):
    """Levenshtein table filled diagonal by diagonal."""
    m, n = len(a), len(b)
    d = np.zeros((m + 1, n + 1), dtype=np.int32)
    d[:, 0] = np.arange(m + 1)
    d[0, :] = np.arange(n + 1)
    for s in range(2, m + n + 1):
        i = np.arange(max(1, s - n), min(m, s - 1) + 1)
        j = s - i
        sub = d[i - 1, j - 1] + (a[i - 1] != b[j - 1])
        gap = np.minimum(d[i - 1, j], d[i, j - 1]) + 1
        d[i, j] = np.minimum(sub, gap)
    return d


def edit_script(d, a, b):
    """Numbers of matches, substitutions, deletions, insertions on one optimal path, found on the table of moves."""
    diff, here = (a[:, None] != b[None, :]).astype(np.int32), d[1:, 1:]
    move = np.where(here == d[:-1, :-1] + diff, diff, np.where(here == d[:-1, 1:] + 1, 2, 3)).tolist()
    i, j = len(a), len(b)
    tally, path = [0, 0, 0, 0], []
    while i > 0 or j > 0:
        m = 3 if i == 0 else 2 if j == 0 else move[i - 1][j - 1]
        tally[m] += 1
        path.append(m)
        i -= m != 3
        j -= m != 2
    return tally, path[::-1]


def coin_ways(coins, amount):
    """Number of multisets of coins (mod a prime) for every amount, a strided cumulative sum per coin."""
    ways = np.zeros(amount + 1, dtype=np.int64)
    ways[0] = 1
    for c in coins.tolist():
        rows = -(-(amount + 1) // c)
        table = np.zeros(rows * c, dtype=np.int64)
        table[:amount + 1] = ways
        ways = (np.cumsum(table.reshape(rows, c), axis=0) % MOD).ravel()[:amount + 1]
    return ways


def fewest_coins(coins, amount):
    least = np.full(amount + 1, 10 ** 6, dtype=np.int64)
    last = np.full(amount + 1, -1, dtype=np.int64)
    least[0] = 0
    for k, c in enumerate(coins.tolist()):
        for start in range(c, amount + 1, c):          # one block of c amounts follows from the one below
            stop = min(start + c, amount + 1)
            trial = least[start - c:stop - c] + 1
            better = trial < least[start:stop]
            least[start:stop][better] = trial[better]
            last[start:stop][better] = k
    counts = [0] * len(coins)
    rest = amount
    while rest > 0:
        k = int(last[rest])
        counts[k] += 1
        rest -= int(coins[k])
    return least, counts


def main(asarray, N, given):
    weights, values, a, b, coins, copies = map(asarray, given)
    capacity = int(weights.sum()) // 3
    best, chosen = knapsack(weights, values, capacity)
    w2, v2, owner, mult = split_copies(weights, values, copies)
    best2, chosen2 = knapsack(w2, v2, capacity // 4)
    used = np.bincount(owner, weights=mult * chosen2, minlength=len(copies)).astype(np.int64)

    d = edit_table(a, b)
    tally, path = edit_script(d, a, b)
    amount = 20 * N
    ways = coin_ways(coins, amount)
    least, counts = fewest_coins(coins[1:], amount)
    counts, possible = np.array(counts), least < 10 ** 6
    return dict(best=best, value=values[chosen].sum(), weight=weights[chosen].sum(), items=chosen.sum(),
                best_bounded=best2, value_bounded=(values[:len(used)] * used).sum(), within=(used <= copies).all(),
                distance=d[-1, -1], last_row=d[-1], tally=np.array(tally), path=np.array(path), ways=ways,
                least=least[possible], impossible=np.flatnonzero(~possible), counts=counts,
                paid=(counts * coins[1:]).sum(), histogram=np.bincount(least[possible]))
