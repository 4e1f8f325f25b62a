"""Hidden Markov model: Baum-Welch with scaled forward-backward, Viterbi, posterior decoding; DTW of the decoded signal. N: length of the sequence."""
import numpy
import numpy as np

DEFAULT = 2000
EM, K, M = 3, 5, 12


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(23)
    A = 0.9 * numpy.eye(K) + 0.1 * rng.dirichlet(numpy.ones(K), K)
    A /= A.sum(axis=1, keepdims=True)
    B = rng.dirichlet(0.4 * numpy.ones(M), K)
    s, states, obs = 0, [], []
    for _ in range(N):
        s = rng.choice(K, p=A[s])
        states.append(s)
        obs.append(rng.choice(M, p=B[s]))
    A0 = 0.6 * numpy.eye(K) + 0.4 * rng.dirichlet(5 * numpy.ones(K), K)
    return dict(obs=numpy.array(obs), states=numpy.array(states), A=A0 / A0.sum(1, keepdims=True), B=0.7 * B + 0.3 * rng.dirichlet(numpy.ones(M), K))


def forward(obs, pi, A, B):
    T = len(obs)
    alpha, scale = np.zeros((T, K)), np.zeros(T)
    alpha[0] = pi * B[:, obs[0]]
    scale[0] = alpha[0].sum()
    alpha[0] /= scale[0]
    for t in range(1, T):
        alpha[t] = (alpha[t - 1] @ A) * B[:, obs[t]]
        scale[t] = alpha[t].sum()
        alpha[t] /= scale[t]
    return alpha, scale


def backward(obs, A, B, scale):
    beta = np.zeros((len(obs), K))
    beta[-1] = 1.0
    for t in range(len(obs) - 2, -1, -1):
        beta[t] = A @ (B[:, obs[t + 1]] * beta[t + 1]) / scale[t + 1]
    return beta


def viterbi(obs, pi, A, B):
    T = len(obs)
    logA, logB = np.log(A + 1e-300), np.log(B + 1e-300)
    delta = np.log(pi) + logB[:, obs[0]]
    psi = np.zeros((T, K), dtype=np.int64)
    for t in range(1, T):
        trellis = delta[:, None] + logA
        psi[t] = np.argmax(trellis, axis=0)
        delta = np.max(trellis, axis=0) + logB[:, obs[t]]
    path = np.zeros(T, dtype=np.int64)
    path[-1] = np.argmax(delta)
    for t in range(T - 2, -1, -1):
        path[t] = psi[t + 1, path[t + 1]]
    return path, np.max(delta)


def dtw(a, b):
    n, m = len(a), len(b)
    cost = np.abs(a[:, None] - b[None, :])
    D = np.full((n + 1, m + 1), np.inf)
    D[0, 0] = 0
    for d in range(2, n + m + 1):
        i = np.arange(max(1, d - m), min(n, d - 1) + 1)
        j = d - i
        D[i, j] = cost[i - 1, j - 1] + np.minimum(np.minimum(D[i - 1, j], D[i, j - 1]), D[i - 1, j - 1])
    return D[n, m], D[1:, 1:].diagonal()


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    obs, states, A, B = (asarray(data[k]) for k in ("obs", "states", "A", "B"))
    pi = np.ones(K) / K
    onehot = (obs[:, None] == np.arange(M)[None, :]).astype(float)
    loglik, previous = [], -np.inf
    for it in range(EM):
        alpha, scale = forward(obs, pi, A, B)
        beta = backward(obs, A, B, scale)
        ll = np.log(scale).sum()
        loglik.append(ll)
        gamma = alpha * beta
        gamma /= gamma.sum(axis=1, keepdims=True)
        weighted = B[:, obs[1:]].T * beta[1:] / scale[1:, None]
        xi = A * np.einsum("ti,tj->ij", alpha[:-1], weighted)
        pi = (gamma[0] + 1e-12) / (gamma[0] + 1e-12).sum()
        A = xi / xi.sum(axis=1, keepdims=True)
        B = gamma.T @ onehot + 1e-3
        B /= B.sum(axis=1)[:, None]
        if abs(ll - previous) < 1e-6 * abs(ll):
            break
        previous = ll
    path, score = viterbi(obs, pi, A, B)
    agree = np.mean(path == gamma.argmax(axis=1))
    table = np.zeros((K, K))
    np.add.at(table, (states, path), 1)
    relabel = table.argmax(axis=0)
    accuracy = np.mean(relabel[path] == states)
    changes = np.flatnonzero(np.diff(path)) + 1
    edges = np.concatenate([np.array([0]), changes, np.array([len(path)])])
    durations = np.diff(edges)
    dwell = np.bincount(path[edges[:-1]], weights=durations, minlength=K) / np.maximum(np.bincount(path[edges[:-1]], minlength=K), 1)
    w, v = np.linalg.eigh((A + A.T) / 2)
    kernel = np.hanning(9) / np.hanning(9).sum()
    smooth = np.convolve(gamma @ np.arange(K), kernel, mode="same")
    every = max(2, N // 1000)
    warp, along = dtw(smooth[::every], states[::every].astype(float))
    return dict(loglik=np.asarray(loglik), A=np.asarray(A), B=np.asarray(B), gamma=np.asarray(gamma), path=np.asarray(path), score=np.asarray(score),
                agree=np.asarray(agree), accuracy=np.asarray(accuracy), dwell=np.asarray(dwell), w=np.asarray(w), warp=np.asarray(warp), along=np.asarray(along))
