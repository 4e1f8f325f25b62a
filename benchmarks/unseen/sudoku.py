"""Sudokus by the thousand.

Candidates as bit masks, naked and hidden singles, locked candidates, a breadth-first search with guesses; difficulty
statistics. N: puzzles.
"""
import numpy as np

DEFAULT = 260
FULL = 511


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(81)
    r, c = numpy.mgrid[0:9, 0:9]
    base = (3 * (r % 3) + r // 3 + c) % 9
    out = numpy.zeros((N, 81), numpy.int8)
    for k in range(N):
        rows = (3 * rng.permutation(3)[:, None] + rng.permuted(numpy.tile(numpy.arange(3), (3, 1)), axis=1)).ravel()
        cols = (3 * rng.permutation(3)[:, None] + rng.permuted(numpy.tile(numpy.arange(3), (3, 1)), axis=1)).ravel()
        grid = (rng.permutation(9) + 1)[base[rows][:, cols]]
        if rng.random() < 0.5:
            grid = grid.T
        out[k] = numpy.where(rng.permutation(81) < rng.integers(28, 38), grid.ravel(), 0)
    return (out,)


class Rules:
    def __init__(self):
        r, c = (v.ravel() for v in np.meshgrid(np.arange(9), np.arange(9), indexing="ij"))
        box = r // 3 * 3 + c // 3
        self.units = np.concatenate([np.argsort(k * 81 + np.arange(81)).reshape(9, 9) for k in (r, c, box)])
        same = (r[:, None] == r) | (c[:, None] == c) | (box[:, None] == box)
        np.fill_diagonal(same, False)
        self.peers = np.nonzero(same)[1].reshape(81, 20)
        m = np.arange(512)
        self.count = sum((m >> k) & 1 for k in range(9)).astype(np.int8)
        self.digit = np.zeros(512, dtype=np.int8)
        self.digit[1 << np.arange(9)] = np.arange(1, 10)
        # for each box and line which cross: the three shared cells, the rest of the box, the rest of the line
        shared, in_box, in_line = [], [], []
        line_of = np.stack([r, c + 9])
        cells = np.arange(81)
        for b in range(9):
            for line in range(18):
                hit = (box == b) & ((line_of[0] == line) | (line_of[1] == line))
                if int(hit.sum()) == 3:
                    on_line = (line_of[0] == line) | (line_of[1] == line)
                    shared.append(cells[hit])
                    in_box.append(cells[(box == b) & ~hit])
                    in_line.append(cells[on_line & ~hit])
        self.shared, self.in_box, self.in_line = np.stack(shared), np.stack(in_box), np.stack(in_line)


def union(masks):
    total = masks[..., 0].copy()
    for k in range(1, masks.shape[-1]):
        total |= masks[..., k]
    return total


def singles(state, rules):
    """Naked singles leave their peers; a digit with one place in a unit takes it."""
    fixed = np.where(rules.count[state] == 1, state, 0)
    state = state & ~union(fixed[:, rules.peers])
    cells = state[:, rules.units]                       # batch, unit, nine
    once = np.zeros_like(cells[..., 0])
    twice = np.zeros_like(once)
    for k in range(9):
        twice |= once & cells[..., k]
        once |= cells[..., k]
    hidden = cells & (once & ~twice)[..., None]
    for block in range(3):                              # a cell has one row, one column and one box
        unit = rules.units[9 * block:9 * block + 9].ravel()
        h = hidden[:, 9 * block:9 * block + 9].reshape(len(state), 81)
        state[:, unit] = np.where(h > 0, state[:, unit] & h, state[:, unit])
    return state, bool((once == FULL).all())


def locked(state, rules):
    here, box, line = union(state[:, rules.shared]), union(state[:, rules.in_box]), union(state[:, rules.in_line])
    pointing, claiming = here & ~box, here & ~line
    for k in range(len(rules.shared)):
        state[:, rules.in_line[k]] &= ~pointing[:, k:k + 1]
        state[:, rules.in_box[k]] &= ~claiming[:, k:k + 1]
    return state


def propagate(state, rules, work):
    rounds = 0
    while True:
        before = state.copy()
        state, _ = singles(state, rules)
        rounds += 1
        if bool((state == before).all()):
            state = locked(state, rules)
            work[0] += 1
            if bool((state == before).all()):
                return state, rounds


def verdict(state, rules):
    n = rules.count[state]
    broken = (n == 0).any(axis=1) | (union(state[:, rules.units]) != FULL).any(axis=1)
    solved = (n == 1).all(axis=1) & ~broken
    return n, broken, solved


def main(asarray, N, given):
    puzzle = asarray(given[0]).astype(np.int64)
    rules = Rules()
    state = np.where(puzzle > 0, 1 << np.maximum(puzzle - 1, 0), FULL).astype(np.int16)
    owner = np.arange(N)
    answer = np.zeros((N, 81), dtype=np.int8)
    depth, nodes, frontier, rounds, work = np.full(N, -1), np.zeros(N), [], [], [0]
    for level in range(60):
        state, r = propagate(state, rules, work)
        rounds.append(r)
        n, broken, solved = verdict(state, rules)
        nodes += np.bincount(owner, minlength=N)
        who, first = np.unique(owner[solved], return_index=True)
        answer[who] = rules.digit[state[solved][first]]
        depth[who] = level
        keep = ~broken & ~solved & (depth[owner] < 0)
        frontier.append(int(keep.sum()))
        if frontier[-1] == 0:
            break
        state, owner, n = state[keep], owner[keep], n[keep]
        choice = np.where(n > 1, n, 10).argmin(axis=1)
        row = np.arange(len(state))
        mask = state[row, choice]
        lowest = mask & -mask
        yes, no = state.copy(), state
        yes[row, choice] = lowest
        no[row, choice] = mask & ~lowest
        state, owner = np.concatenate([yes, no]), np.concatenate([owner, owner])
        order = np.argsort(owner, kind="stable")
        state, owner = state[order], owner[order]
    sorted_units = np.sort(answer[:, rules.units], axis=-1)
    valid = (sorted_units == np.arange(1, 10)).all(axis=(1, 2))
    kept = ((answer == puzzle) | (puzzle == 0)).all(axis=1)
    clues = (puzzle > 0).sum(axis=1)
    table = np.zeros((12, 12))
    np.add.at(table, (np.clip(clues - 27, 0, 11), np.clip(depth, 0, 11)), 1.0)
    return dict(answer=answer, valid=valid, kept=kept.all(), depth=depth, nodes=nodes,
                frontier=np.array(frontier), rounds=np.array(rounds), work=np.array(work),
                table=table, correlation=np.corrcoef(clues, np.log(nodes))[0, 1])
