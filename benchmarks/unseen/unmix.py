"""Taking mixtures apart: FastICA on mixed signals, NMF (Kullback-Leibler, multiplicative) on their spectrogram, and
canonical correlations between two sets of channels with a permutation test.

N is the number of samples in time.
"""

import numpy as np

DEFAULT = 65536
SOURCES, CHANNELS, WINDOW, HOP, RANK = 5, 8, 256, 64, 8


def inputs(N):
    import numpy

    rng = numpy.random.default_rng(1999)
    t = numpy.arange(N) / 4000.0
    s = numpy.stack(
        [
            numpy.sin(2 * numpy.pi * 220 * t) * (numpy.sin(2 * numpy.pi * 1.1 * t) > 0),
            2 * ((130 * t) % 1) - 1,
            numpy.sign(numpy.sin(2 * numpy.pi * 57 * t + 0.4)),
            rng.laplace(size=N),
            numpy.sin(2 * numpy.pi * (300 * t + 90 * t**2)) ** 3,
        ]
    )
    s /= s.std(axis=1, keepdims=True)
    A = rng.normal(size=(CHANNELS, SOURCES))
    x = A @ s + 0.05 * rng.normal(size=(CHANNELS, N))
    shared = rng.normal(size=(3, N // 8))
    left = rng.normal(size=(10, 3)) @ shared + 1.5 * rng.normal(size=(10, N // 8))
    right = rng.normal(size=(7, 3)) @ shared + 1.5 * rng.normal(size=(7, N // 8))
    shuffle = numpy.stack([rng.permutation(N // 8) for _ in range(25)])
    return {
        "s": s,
        "A": A,
        "x": x,
        "left": left.T.copy(),
        "right": right.T.copy(),
        "shuffle": shuffle,
        "start": rng.normal(size=(SOURCES, SOURCES)),
        "W0": rng.uniform(0.2, 1, (WINDOW // 2 + 1, RANK)),
        "H0": rng.uniform(0.2, 1, (RANK, (N - WINDOW) // HOP + 1)),
    }


# ---- independent components


def whiten(x, k):
    mean = x.mean(axis=1, keepdims=True)
    C = np.cov(x)
    w, E = np.linalg.eigh(C)
    w, E = w[::-1][:k], E[:, ::-1][:, :k]
    white = (E / np.sqrt(w)).T
    return white @ (x - mean), white, w


def decorrelate(W):
    """(W W^T)^(-1/2) W"""
    u, _, vt = np.linalg.svd(W, full_matrices=False)
    return u @ vt


def fastica(z, W, rounds=40):
    n = z.shape[1]
    W = decorrelate(W)
    moves = []
    for _ in range(rounds):
        g = np.tanh(W @ z)
        new = decorrelate(g @ z.T / n - (1 - g * g).mean(axis=1)[:, None] * W)
        moves.append(np.max(np.abs(np.abs(np.einsum("ij,ij->i", new, W)) - 1)))
        W = new
    return W, np.stack(moves)


def match(est, true):
    """Order and sign of the estimates by their correlations with the true sources, greedily."""
    k = len(true)
    R = np.corrcoef(est, true)[:k, k:]
    left = np.abs(R)
    order, sign = [0] * k, [1.0] * k
    for _ in range(k):
        i, j = divmod(int(left.argmax()), k)
        order[j], sign[j] = i, float(np.sign(R[i, j]))
        left[i, :] = -1
        left[:, j] = -1
    return est[order] * np.array(sign)[:, None], np.abs(R)


def amari(P):
    P = np.abs(P)
    k = len(P)
    rows = (P / P.max(axis=1, keepdims=True)).sum(axis=1) - 1
    cols = (P / P.max(axis=0, keepdims=True)).sum(axis=0) - 1
    return (rows.sum() + cols.sum()) / (2 * k * (k - 1))


# ---- factors of the spectrogram


def stft(x):
    frames = np.lib.stride_tricks.sliding_window_view(x, WINDOW)[::HOP]
    return np.fft.rfft(frames * np.hanning(WINDOW), axis=1).T


def istft(S, n):
    """Overlap-add with the squared window as weights."""
    w = np.hanning(WINDOW)
    frames = np.fft.irfft(S.T, n=WINDOW, axis=1) * w
    at = (np.arange(len(frames)) * HOP)[:, None] + np.arange(WINDOW)
    y = np.bincount(at.ravel(), weights=frames.ravel(), minlength=n)
    norm = np.bincount(at.ravel(), weights=np.tile(w * w, len(frames)), minlength=n)
    return y / np.maximum(norm, 1e-3)


def nmf_kl(V, W, H, rounds=60, sparse=0.02, eps=1e-9):
    trace = []
    for r in range(rounds):
        Q = V / (W @ H + eps)
        H = H * (W.T @ Q) / (W.sum(axis=0)[:, None] + sparse)
        Q = V / (W @ H + eps)
        W = W * (Q @ H.T) / H.sum(axis=1)
        scale = W.sum(axis=0)
        W = W / scale
        H = H * scale[:, None]
        if r % 10 == 9:
            L = W @ H + eps
            trace.append((V * np.log((V + eps) / L) - V + L).sum())
    return W, H, np.stack(trace)


# ---- canonical correlations


def cca(X, Y):
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    (Qx, Rx), (Qy, Ry) = np.linalg.qr(X), np.linalg.qr(Y)
    U, c, Vt = np.linalg.svd(Qx.T @ Qy, full_matrices=False)
    a, b = np.linalg.solve(Rx, U), np.linalg.solve(Ry, Vt.T)
    return c, X @ a, Y @ b


def main(asarray, N, given):
    g = {k: asarray(v) for k, v in given.items()}
    z, white, variances = whiten(g["x"], SOURCES)
    W, moves = fastica(z, g["start"])
    est, R = match(W @ z, g["s"])
    P = W @ white @ g["A"]
    mixed = (g["x"][0] - g["x"][0].mean()) / g["x"][0].std()
    S = stft(mixed)
    V = np.abs(S)
    B, H, trace = nmf_kl(V, g["W0"], g["H0"])
    masks = B.T[:, :, None] * H[:, None, :]
    masks /= masks.sum(axis=0) + 1e-9
    parts = np.stack([istft(S * m, N) for m in masks])
    inner = slice(WINDOW, -WINDOW)
    residual = np.sqrt(np.mean((parts.sum(axis=0) - mixed)[inner] ** 2))
    energy = np.sort((parts**2).mean(axis=1))[::-1]
    centroid = (np.fft.rfftfreq(WINDOW, 1 / 4000.0)[:, None] * B).sum(axis=0)
    c, a, b = cca(g["left"], g["right"])
    chance = np.stack([cca(g["left"][order], g["right"])[0] for order in g["shuffle"]])
    p = (chance[:, :1] >= c).mean(axis=0)
    loadings = np.abs(np.corrcoef(a[:, :3].T, g["left"].T)[:3, 3:])
    kurtosis = ((est - est.mean(axis=1, keepdims=True)) ** 4).mean(axis=1) / est.var(axis=1) ** 2 - 3
    return dict(
        variances=variances,
        settled=moves[-1] < 1e-6,
        R=np.sort(R, axis=1),
        amari=amari(P),
        sources=est[:, ::16],
        kurtosis=kurtosis,
        trace=trace,
        error=np.sqrt(((est - g["s"]) ** 2).mean(axis=1)),
        complete=residual < 1e-6,
        energy=energy,
        centroid=centroid,
        basis=B,
        canonical=c,
        p=p,
        loadings=loadings,
    )
