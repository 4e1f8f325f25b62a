"""Latent Dirichlet allocation by variational Bayes: topics of a set of documents, hyperparameters, perplexity."""
import numpy as np

DEFAULT = 260           # documents
TOPICS = 10


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(99)
    vocab = 500
    topics = rng.dirichlet(numpy.full(vocab, 0.05), TOPICS)
    share = rng.dirichlet(numpy.linspace(0.1, 0.6, TOPICS), N)
    length = rng.poisson(140, N) + 20
    counts = numpy.stack([rng.multinomial(n, p) for n, p in zip(length, share @ topics)])
    start = rng.gamma(100.0, 0.01, (TOPICS, vocab))
    return counts.astype(numpy.int32), start, rng.uniform(size=N) < 0.15, topics


def digamma(x):
    """Recurrence up to 6 and the asymptotic series."""
    shift = np.zeros_like(x)
    y = x.copy()
    for _ in range(6):
        small = y < 6.0
        shift -= np.where(small, 1.0 / y, 0.0)
        y += small
    r = 1.0 / (y * y)
    return shift + np.log(y) - 0.5 / y - r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r / 132))))


def trigamma(x):
    shift, y = np.zeros_like(x), x.copy()
    for _ in range(6):
        small = y < 6.0
        shift += np.where(small, 1.0 / y**2, 0.0)
        y += small
    r = 1.0 / y**2
    return shift + 1 / y + r / 2 + r / y * (1 / 6 - r * (1 / 30 - r * (1 / 42 - r / 30)))


def gammaln(x):
    """Lanczos, g = 7."""
    coef = (676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905,
            -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7)
    z, t = x - 1.0, x + 6.5
    series = 0.99999999999980993
    for i, c in enumerate(coef):
        series = series + c / (z + i + 1)
    return 0.5 * np.log(2 * np.pi) + (z + 0.5) * np.log(t) - t + np.log(series)


def dirichlet_mean_log(a):
    return digamma(a) - digamma(a.sum(axis=-1, keepdims=True))


def e_step(counts, alpha, elog_beta, rounds=20, tol=1e-3):
    gamma = np.ones((counts.shape[0], alpha.size)) * alpha + counts.sum(axis=1, keepdims=True) / alpha.size
    beta = np.exp(elog_beta)
    used = 0
    for _ in range(rounds):
        theta = np.exp(dirichlet_mean_log(gamma))
        norm = theta @ beta + 1e-100
        new = alpha + theta * ((counts / norm) @ beta.T)
        change = float(np.abs(new - gamma).mean())
        gamma, used = new, used + 1
        if change < tol:
            break
    theta = np.exp(dirichlet_mean_log(gamma))
    norm = theta @ beta + 1e-100
    stats = beta * (theta.T @ (counts / norm))
    return gamma, stats, norm, used


def bound(counts, norm, gamma, alpha, lam, eta):
    elog = dirichlet_mean_log(gamma)
    docs = np.sum(counts * np.log(norm))
    docs += np.sum((alpha - gamma) * elog) + np.sum(gammaln(gamma)) - np.sum(gammaln(gamma.sum(axis=1)))
    docs += len(gamma) * (gammaln(alpha.sum()) - gammaln(alpha).sum())
    words = np.sum((eta - lam) * dirichlet_mean_log(lam)) + np.sum(gammaln(lam)) - np.sum(gammaln(lam.sum(axis=1)))
    k, v = lam.shape
    prior = np.array([eta * v, eta])
    g = gammaln(prior)
    return docs + words + k * (g[0] - v * g[1])


def update_alpha(alpha, gamma):
    """One damped Newton step with the diagonal-plus-rank-one Hessian."""
    n = gamma.shape[0]
    mean_log = dirichlet_mean_log(gamma).sum(axis=0)
    grad = n * (digamma(alpha.sum()[None]) - digamma(alpha)) + mean_log
    q = -n * trigamma(alpha)
    b = np.sum(grad / q) / (1 / (n * trigamma(alpha.sum()[None])) + np.sum(1 / q))
    step = (grad - b) / q
    for damp in (1.0, 0.5, 0.25, 0.1, 0.05, 0.01):
        new = alpha - damp * step
        if bool((new > 1e-3).all()):
            return new
    return alpha


def main(asarray, N, given):
    counts, lam, held, true = (asarray(v) for v in given)
    train, test = counts[~held].astype(float), counts[held].astype(float)
    alpha, eta = np.full(TOPICS, 0.3), 0.05
    trace, used = [], []
    for sweep in range(30):
        elog_beta = dirichlet_mean_log(lam)
        gamma, stats, norm, n = e_step(train, alpha, elog_beta)
        trace.append(bound(train, norm, gamma, alpha, lam, eta))
        lam = eta + stats
        used.append(n)
        if sweep >= 5:
            alpha = update_alpha(alpha, gamma)
    beta = lam / lam.sum(axis=1, keepdims=True)
    # completion: fit to the even words of unseen documents, judge by the odd ones
    even = np.arange(counts.shape[1]) % 2 == 0
    g_test, *_ = e_step(np.where(even, test, 0.0), alpha, dirichlet_mean_log(lam), rounds=60, tol=1e-5)
    mix = (g_test / g_test.sum(axis=1, keepdims=True)) @ beta
    odd = np.where(even, 0.0, test)
    perplexity = np.exp(-(odd * np.log(mix / mix[:, ~even].sum(axis=1, keepdims=True))).sum() / odd.sum())
    root, root_true = np.sqrt(beta), np.sqrt(true)
    hellinger = np.sqrt(np.maximum(1.0 - root @ root_true.T, 0.0))
    theta = gamma / gamma.sum(axis=1, keepdims=True)
    entropy = -(theta * np.log(theta)).sum(axis=1)
    return {"bound": np.stack(trace), "alpha": alpha, "perplexity": perplexity,
            "top_mass": np.sort(beta, axis=1)[:, -8:], "match": hellinger.min(axis=1), "rounds": np.array(used),
            "entropy": np.quantile(entropy, [0.1, 0.5, 0.9]), "usage": theta.mean(axis=0),
            "correlation": np.corrcoef(theta, rowvar=False),
            "dominant": np.bincount(theta.argmax(axis=1), minlength=TOPICS)}
