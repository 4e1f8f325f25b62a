"""Convolutional codes: encoding, puncturing, interleaving, a channel, soft and hard Viterbi decoding of many frames at once.

Also the trellis' distance spectrum with its union bound, and a tail-biting variant. N: data bits of a frame.
"""
import numpy as np

DEFAULT = 300
FRAMES = 160
MEMORY = 6
POLY = (0o171, 0o133)
PUNCTURE = {"1/2": [[1], [1]], "2/3": [[1, 1], [1, 0]], "3/4": [[1, 1, 0], [1, 0, 1]]}


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(802)
    return rng.integers(0, 2, (FRAMES, N)), rng.normal(size=(FRAMES, 2 * (N + MEMORY))), rng.permutation(2 * (N + MEMORY))


def parity(x):
    x = x ^ (x >> 4)
    x = x ^ (x >> 2)
    return (x ^ (x >> 1)) & 1


class Trellis:
    """State: the last MEMORY bits, the newest on top. Each state has two predecessors."""

    def __init__(self):
        self.states = 1 << MEMORY
        s = np.arange(self.states)
        self.bit = s >> (MEMORY - 1)                        # the input that led to a state
        low = (s << 1) & (self.states - 1)
        self.before = np.stack([low, low | 1], axis=1)      # (state, 2)
        register = (self.bit[:, None] << MEMORY) | self.before
        self.out = np.stack([parity(register & g) for g in POLY], axis=-1)      # (state, 2, 2)
        self.sign = 1.0 - 2.0 * self.out
        self.word = self.out[:, :, 0] * 2 + self.out[:, :, 1]


def encode(bits):
    """Zero-terminated code words, (frames, 2 (N + MEMORY))."""
    frames, n = bits.shape
    padded = np.pad(bits, ((0, 0), (MEMORY, MEMORY)))
    code = np.zeros((frames, n + MEMORY, 2), dtype=bits.dtype)
    for d in range(MEMORY + 1):
        shifted = padded[:, MEMORY - d:MEMORY - d + n + MEMORY]
        for k, g in enumerate(POLY):
            if (g >> (MEMORY - d)) & 1:
                code[:, :, k] ^= shifted
    return code.reshape(frames, -1)


def kept(rate, length):
    pattern = np.array(PUNCTURE[rate], dtype=bool)
    period = pattern.shape[1]
    steps = length // 2
    mask = np.tile(pattern.T, (-(-steps // period), 1))[:steps]
    return mask.ravel()


def decode(trellis, llr):
    """Maximum-likelihood bits; llr is (frames, steps, 2), zero where a bit was punctured."""
    frames, steps, _ = llr.shape
    metric = np.full((frames, trellis.states), -1e6)
    metric[:, 0] = 0.0
    choice = np.empty((steps, frames, trellis.states), dtype=bool)
    words = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    for t in range(steps):
        branch = llr[:, t] @ words.T                        # (frames, 4)
        a = metric[:, trellis.before[:, 0]] + branch[:, trellis.word[:, 0]]
        b = metric[:, trellis.before[:, 1]] + branch[:, trellis.word[:, 1]]
        np.greater(b, a, out=choice[t])
        np.maximum(a, b, out=metric)
        metric -= metric.max(axis=1, keepdims=True)
    rows = np.arange(frames)
    state = np.zeros(frames, dtype=np.int64)
    bits = np.empty((frames, steps), dtype=np.int64)
    for t in range(steps - 1, -1, -1):
        bits[:, t] = trellis.bit[state]
        state = trellis.before[state, choice[t, rows, state].astype(np.int64)]
    return bits[:, :steps - MEMORY], metric[:, 0]


def spectrum(trellis, top=24):
    """Numbers of error events by Hamming weight, and of their wrong bits, by powers of the weight's transfer."""
    S, weight = trellis.states, trellis.out.sum(axis=2)
    paths = np.zeros((top + 1, S))
    wrong = np.zeros((top + 1, S))
    leave = S >> 1
    paths[2, leave] = 1.0
    wrong[2, leave] = 1.0
    events, bits = np.zeros(top + 1), np.zeros(top + 1)
    for _ in range(60):
        new, new_wrong = np.zeros_like(paths), np.zeros_like(paths)
        for k in range(2):
            source = trellis.before[:, k]
            for w in range(3):
                to = (weight[:, k] == w) & (source != 0)
                p, q = paths[:, source][:top + 1 - w] * to, wrong[:, source][:top + 1 - w] * to
                new[w:] += p
                new_wrong[w:] += q + p * trellis.bit
        events += new[:, 0]
        bits += new_wrong[:, 0]
        new[:, 0] = 0.0
        new_wrong[:, 0] = 0.0
        paths, wrong = new, new_wrong
        if not paths.any():
            break
    return events, bits


def runs(errors):
    """Lengths of bursts of wrong bits, counting gaps shorter than MEMORY as part of a burst."""
    frame, place = np.nonzero(errors)
    if frame.size == 0:
        return np.zeros(0, dtype=np.int64)
    fresh = np.ones(frame.size, dtype=bool)
    fresh[1:] = (frame[1:] != frame[:-1]) | (np.diff(place) > MEMORY)
    first = np.flatnonzero(fresh)
    last = np.append(first[1:], frame.size) - 1
    return place[last] - place[first] + 1


def main(asarray, N, given):
    bits, noise, order = (asarray(v) for v in given)
    trellis = Trellis()
    code = encode(bits)
    sent = 1.0 - 2.0 * code
    back = np.empty_like(order)
    back[order] = np.arange(order.size)
    steps = N + MEMORY
    out = {}
    for name, rate, ratio in (("strong", "1/2", 1.5), ("medium", "1/2", 0.0), ("two", "2/3", 2.5), ("three", "3/4", 3.5)):
        sigma = np.sqrt(0.5 * 10 ** (-ratio / 10))
        mask = kept(rate, code.shape[1])
        fade = 0.75 + 0.25 * np.cos(2 * np.pi * np.arange(order.size) / 97.0)
        received = (sent[:, order] * fade + sigma * noise)[:, back]
        llr = np.where(mask, 2 * received * fade[back] / sigma ** 2, 0.0).reshape(FRAMES, steps, 2)
        guess, final = decode(trellis, llr)
        errors = guess != bits
        burst = runs(errors)
        out[name] = errors.sum(axis=1)
        out[name + "_metric"] = final
        out[name + "_bursts"] = np.bincount(np.minimum(burst, 40), minlength=41)
        out[name + "_raw"] = ((received < 0) != (code == 1))[:, mask].mean()
    hard = np.sign(sent + np.sqrt(0.75) * 0.8 * noise).reshape(FRAMES, steps, 2)
    guess, final = decode(trellis, hard)
    out["hard"] = (guess != bits).sum(axis=1)
    again = encode(guess)
    out["corrected"] = (again != (hard.reshape(FRAMES, -1) < 0)).sum(axis=1)

    # a few frames of a tail-biting code: go twice around and keep the middle
    few = bits[:8]
    around = np.concatenate([few[:, -MEMORY:], few], axis=1)
    ring = encode(around)[:, 2 * MEMORY:2 * (N + MEMORY)]
    soft = (1.0 - 2.0 * ring + 0.6 * noise[:8, :2 * N]).reshape(8, N, 2)
    twice = np.concatenate([soft, soft, soft[:, :2 * MEMORY]], axis=1)
    guess, _ = decode(trellis, twice)
    half = N // 2
    middle = np.roll(guess[:, half:half + N], half - N, axis=1)
    out["ring"] = (middle != few).sum(axis=1)

    events, wrong = spectrum(trellis)
    d = np.arange(events.size)
    x = np.exp(-d[:, None] * np.array([0.3, 0.5, 0.8])[None])
    out.update(events=events, wrong=wrong, free=int(np.argmax(events > 0)), bound=(wrong[:, None] * x).sum(axis=0),
               ones=code.mean(axis=0)[:40], weight=np.sort(code.sum(axis=1)))
    return out
