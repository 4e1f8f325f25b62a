"""A small language model at work: prefill, decoding with a cache of keys and values, nucleus sampling, scoring, heads.

Pre-norm transformer blocks with rotary positions, grouped queries and gated feed-forward layers. N: width of the model.
"""
import numpy as np

DEFAULT = 128
LAYERS, HEADS, GROUPS, VOCAB, BATCH, PROMPT, NEW = 4, 8, 4, 1500, 8, 72, 56


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(77)
    hd = N // HEADS

    def w(*shape):
        return rng.normal(size=shape) / numpy.sqrt(shape[-2])
    embed = rng.normal(size=(VOCAB, N))
    wq, wk = w(LAYERS, N, N) * 1.6, w(LAYERS, N, GROUPS * hd) * 1.6
    wv, wo = w(LAYERS, N, GROUPS * hd), w(LAYERS, N, N)
    w1, w2, w3 = w(LAYERS, N, 3 * N), w(LAYERS, 3 * N, N), w(LAYERS, N, 3 * N)
    gains = rng.uniform(0.7, 1.3, (2 * LAYERS + 1, N))
    prompt, lengths = rng.zipf(1.3, (BATCH, PROMPT)) % VOCAB, rng.integers(PROMPT // 2, PROMPT + 1, BATCH)
    return embed, wq, wk, wv, wo, w1, w2, w3, gains, prompt, lengths, rng.uniform(size=(NEW, BATCH))


def rms_norm(x, gain):
    return x * gain / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def rotary(x, position):
    """Turns pairs of features by angles that grow with the position; x is (batch, heads, time, features)."""
    half = x.shape[-1] // 2
    angle = position[:, None, :, None] * 10000.0 ** (-np.arange(half) / half)
    c, s = np.cos(angle), np.sin(angle)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * c - b * s, a * s + b * c], axis=-1)


class Model:
    def __init__(self, embed, *layers):
        self.embed, self.gains, self.layers = embed, layers[-1], list(zip(*layers[:-1]))

    def split(self, x, heads):
        return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)

    def forward(self, tokens, position, cache, start, visible):
        """Runs new tokens through all blocks; visible is (batch, new, total). Returns logits and attention."""
        x = self.embed[tokens]
        b, t, n = x.shape
        stop, maps = start + t, []
        for i, (wq, wk, wv, wo, w1, w2, w3) in enumerate(self.layers):
            h = rms_norm(x, self.gains[2 * i])
            q = rotary(self.split(h @ wq, HEADS), position)
            cache[i, 0, :, :, start:stop] = rotary(self.split(h @ wk, GROUPS), position)
            cache[i, 1, :, :, start:stop] = self.split(h @ wv, GROUPS)
            k = np.repeat(cache[i, 0, :, :, :stop], HEADS // GROUPS, axis=1)
            v = np.repeat(cache[i, 1, :, :, :stop], HEADS // GROUPS, axis=1)
            score = np.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1])
            maps.append(softmax(np.where(visible[:, None], score, -1e30)))
            mixed = (maps[-1] @ v).transpose(0, 2, 1, 3).reshape(b, t, n)
            x = x + mixed @ wo
            h = rms_norm(x, self.gains[2 * i + 1])
            gate = h @ w1
            x = x + (gate / (1.0 + np.exp(-gate)) * (h @ w3)) @ w2
        return rms_norm(x, self.gains[-1]) @ self.embed.T / np.sqrt(n), maps


def nucleus(logits, u, temperature=0.9, top=0.85):
    """Samples from the smallest set of tokens with probability above top."""
    p = softmax(logits / temperature)
    order = np.argsort(-p, axis=1)
    ranked = np.take_along_axis(p, order, axis=1)
    cum = np.cumsum(ranked, axis=1)
    ranked[cum - ranked > top] = 0.0
    cdf = np.cumsum(ranked, axis=1)
    pick = (cdf < u[:, None] * cdf[:, -1:]).sum(axis=1)
    return order[np.arange(len(pick)), pick], np.count_nonzero(ranked, axis=1)


def main(asarray, N, given):
    *weights, prompt, lengths, uniform = (asarray(g) for g in given)
    model, total = Model(*weights), PROMPT + NEW
    cache = np.zeros((LAYERS, 2, BATCH, GROUPS, total, N // HEADS))
    # prompts are padded on the left; padding is never seen
    column = np.arange(total)
    real = column >= (PROMPT - lengths)[:, None]
    position = np.maximum(column - (PROMPT - lengths)[:, None], 0)
    causal = np.tri(total, dtype=bool)
    visible = (causal[None] & real[:, None, :]) | np.eye(total, dtype=bool)

    logits, maps = model.forward(prompt, position[:, :PROMPT], cache, 0, visible[:, :PROMPT, :PROMPT])
    tokens = np.pad(prompt, ((0, 0), (0, NEW)))
    last, kept, logp, seen = logits[:, -1], [], np.zeros(BATCH), np.zeros((BATCH, VOCAB))
    np.add.at(seen, (np.arange(BATCH)[:, None], prompt), real[:, :PROMPT].astype(float))
    for step in range(NEW):
        t = PROMPT + step
        adjusted = last - 0.4 * np.minimum(seen, 3.0)
        if step % 4 == 3:
            new, size = adjusted.argmax(axis=1), np.ones(BATCH, dtype=int)
        else:
            new, size = nucleus(adjusted, uniform[step])
        kept.append(size)
        logp += np.log(softmax(last)[np.arange(BATCH), new])
        tokens[:, t] = new
        seen[np.arange(BATCH), new] += 1.0
        last = model.forward(new[:, None], position[:, t:t + 1], cache, t, visible[:, t:t + 1, :t + 1])[0][:, 0]

    # the whole text again at once, for scores and what the heads look at
    fresh = np.zeros_like(cache)
    full, maps = model.forward(tokens, position, fresh, 0, visible)
    full -= full.max(axis=-1, keepdims=True)
    full -= np.log(np.exp(full).sum(axis=-1, keepdims=True))
    score = np.take_along_axis(full[:, :-1], tokens[:, 1:, None], axis=2)[..., 0]
    score *= real[:, :-1]
    agrees = bool(np.allclose(score[:, PROMPT - 1:].sum(axis=1), logp)) and bool(np.allclose(fresh, cache))
    weights = np.stack(maps)
    entropy = -(weights * np.log(np.maximum(weights, 1e-300))).sum(axis=-1)
    distance = np.abs(column[:, None] - column[None, :]).astype(float)
    reach = np.einsum("lbhqk,qk,bq->lh", weights, distance, real.astype(float)) / real.sum()
    heads = (entropy * real[None, :, None, :]).sum(axis=(1, 3)) / real.sum()
    counts = np.unique(tokens[:, PROMPT:], return_counts=True)[1]
    return dict(tokens=tokens, kept=np.stack(kept), logp=logp, agrees=agrees, last=last, entropy=heads, reach=reach,
                perplexity=np.exp(-score.sum(axis=1) / (real[:, :-1].sum(axis=1))),
                distinct=len(counts), most=counts.max(), keys=np.linalg.norm(cache[:, 0], axis=-1).mean(axis=(1, 2)))
