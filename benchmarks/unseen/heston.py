"""Option prices in the Heston model: Monte Carlo by Andersen's quadratic-exponential scheme (with martingale
correction) against the Fourier-cosine (COS) method of Fang and Oosterlee; implied volatilities, Asian and barrier options.
N: paths (every one has an antithetic twin)."""

import numpy as np

DEFAULT = 40000
STEPS = 32

# r, maturity, spot, kappa, theta, sigma (vol of vol), rho, v0
MARKET = dict(r=0.02, T=1.0, s0=100.0, kappa=1.8, theta=0.06, sigma=0.7, rho=-0.65, v0=0.05)


def inputs(N):
    import numpy

    rng = numpy.random.default_rng(1993)
    uv = rng.random((STEPS, N))
    zx = rng.standard_normal((STEPS, N))
    strikes = numpy.linspace(70.0, 140.0, 15)
    return uv, zx, strikes


# ---- normal distribution without scipy ------------------------------------------------------------------------

A = [
    -3.969683028665376e01,
    2.209460984245205e02,
    -2.759285104469687e02,
    1.383577518672690e02,
    -3.066479806614716e01,
    2.506628277459239e00,
]
B = [
    -5.447609879822406e01,
    1.615858368580409e02,
    -1.556989798598866e02,
    6.680131188771972e01,
    -1.328068155288572e01,
    1.0,
]
C = [
    -7.784894002430293e-03,
    -3.223964580411365e-01,
    -2.400758277161838e00,
    -2.549732539343734e00,
    4.374664141464968e00,
    2.938163982698783e00,
]
D = [7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e00, 3.754408661907416e00, 1.0]


def horner(c, x):
    y = c[0]
    for k in c[1:]:
        y = y * x + k
    return y


def norm_ppf(u):
    """Acklam's rational approximation."""
    tail = np.minimum(u, 1 - u)
    q = u - 0.5
    middle = horner(A, q * q) * q / horner(B, q * q)
    t = np.sqrt(-2 * np.log(np.maximum(tail, 1e-300)))
    outer = horner(C, t) / horner(D, t)
    return np.where(tail < 0.02425, np.copysign(outer, q), middle)


def norm_cdf(x):
    """Complementary error function by Numerical Recipes' Chebyshev fit (1.2e-7)."""
    z = np.abs(x) / np.sqrt(2.0)
    t = 1 / (1 + 0.5 * z)
    poly = horner(
        [
            0.17087277,
            -0.82215223,
            1.48851587,
            -1.13520398,
            0.27886807,
            -0.18628806,
            0.09678418,
            0.37409196,
            1.00002368,
            -1.26551223,
        ],
        t,
    )
    erfc = t * np.exp(-z * z + poly)
    return np.where(x >= 0, 1 - 0.5 * erfc, 0.5 * erfc)


# ---- Monte Carlo ----------------------------------------------------------------------------------------------


def qe_variance(v, u, dt, m):
    ekt = np.exp(-m["kappa"] * dt)
    mean = m["theta"] + (v - m["theta"]) * ekt
    s2 = v * m["sigma"] ** 2 * ekt * (1 - ekt) / m["kappa"] + m["theta"] * m["sigma"] ** 2 * (1 - ekt) ** 2 / (
        2 * m["kappa"]
    )
    psi = s2 / mean**2
    # quadratic branch
    ip = 2 / np.minimum(psi, 1.5)
    b2 = ip - 1 + np.sqrt(ip * (ip - 1))
    a = mean / (1 + b2)
    quadratic = a * (np.sqrt(b2) + norm_ppf(u)) ** 2
    # exponential branch
    big = np.maximum(psi, 1.5)
    p = (big - 1) / (big + 1)
    beta = (1 - p) / mean
    exponential = np.where(u <= p, 0.0, np.log((1 - p) / np.maximum(1 - u, 1e-16)) / beta)
    return np.where(psi <= 1.5, quadratic, exponential), (psi <= 1.5, a, b2, p, beta)


def simulate(uv, zx, m):
    dt = m["T"] / STEPS
    k, sg, rho = m["kappa"], m["sigma"], m["rho"]
    g1 = g2 = 0.5
    K1 = g1 * dt * (k * rho / sg - 0.5) - rho / sg
    K2 = g2 * dt * (k * rho / sg - 0.5) + rho / sg
    K3, K4 = g1 * dt * (1 - rho**2), g2 * dt * (1 - rho**2)
    Amart = K2 + 0.5 * K4
    v = np.full(uv.shape[1], m["v0"])
    x = np.zeros_like(v)
    low, total = np.zeros_like(v), np.zeros_like(v)
    share = []
    for u, z in zip(uv, zx):
        new, (quad, a, b2, p, beta) = qe_variance(v, u, dt, m)
        K0q = -Amart * b2 * a / (1 - 2 * Amart * a) + 0.5 * np.log(1 - 2 * Amart * a)
        K0e = -np.log(p + beta * (1 - p) / (beta - Amart))
        K0 = np.where(quad, K0q, K0e) - (K1 + 0.5 * K3) * v
        x += m["r"] * dt + K0 + K1 * v + K2 * new + np.sqrt(np.maximum(K3 * v + K4 * new, 0)) * z
        v = new
        np.minimum(low, x, out=low)
        total += np.exp(x)
        share.append(quad.mean())
    return m["s0"] * np.exp(x), v, m["s0"] * np.exp(low), m["s0"] * total / STEPS, np.stack(share)


# ---- Fourier --------------------------------------------------------------------------------------------------


def char_fn(w, T, m):
    """Characteristic function of log(S_T / S_0), the formulation without branch trouble (Albrecher et al.)."""
    k, sg, rho = m["kappa"], m["sigma"], m["rho"]
    xi = k - 1j * sg * rho * w
    d = np.sqrt(xi**2 + sg**2 * (w * w + 1j * w))
    g = (xi - d) / (xi + d)
    e = np.exp(-d * T)
    c = k * m["theta"] / sg**2 * ((xi - d) * T - 2 * np.log((1 - g * e) / (1 - g)))
    return np.exp(1j * w * m["r"] * T + c + m["v0"] / sg**2 * (xi - d) * (1 - e) / (1 - g * e))


def cos_calls(strikes, T, m, terms=256, width=14.0):
    mean = (m["r"] - 0.5 * m["theta"]) * T
    spread = width * float(np.sqrt(m["theta"] * T + m["sigma"] ** 2 * 0.02))
    lo, hi = mean - spread / 2, mean + spread / 2
    n = np.arange(terms)
    w = n * np.pi / (hi - lo)
    x = np.log(m["s0"] / strikes)[:, None]
    # payoff coefficients of the put (bounded), then put-call parity
    a, b = lo + x, hi + x
    c, d = a, np.zeros_like(a)
    wk = n * np.pi / (b - a)
    cosd, sind = np.cos(wk * (d - a)), np.sin(wk * (d - a))
    chi = (cosd * np.exp(d) - np.exp(c) + wk * sind * np.exp(d)) / (1 + wk**2)
    psi = np.where(n == 0, d - c, sind / np.where(n == 0, 1.0, wk))
    U = 2 / (b - a) * (psi - chi)
    phi = char_fn(w.astype(complex), T, m) * np.exp(-1j * w * lo)
    weights = np.where(n == 0, 0.5, 1.0)
    put = strikes * np.exp(-m["r"] * T) * ((phi.real * weights) * U).sum(axis=1)
    return put + m["s0"] - strikes * np.exp(-m["r"] * T)


def implied(price, K, T, m, rounds=40):
    lo, hi = np.full_like(price, 0.01), np.full_like(price, 2.0)
    for _ in range(rounds):
        mid = 0.5 * (lo + hi)
        d1 = (np.log(m["s0"] / K) + (m["r"] + 0.5 * mid**2) * T) / (mid * np.sqrt(T))
        model = m["s0"] * norm_cdf(d1) - K * np.exp(-m["r"] * T) * norm_cdf(d1 - mid * np.sqrt(T))
        lo, hi = np.where(model < price, mid, lo), np.where(model < price, hi, mid)
    return 0.5 * (lo + hi)


def main(asarray, N, given):
    uv, zx, K = map(asarray, given)
    m, discount = MARKET, float(np.exp(-MARKET["r"] * MARKET["T"]))
    runs = [simulate(uv, zx, m), simulate(1 - uv, -zx, m)]
    S, V, low, mean = (np.stack([r[i] for r in runs]) for i in range(4))
    pay = discount * np.maximum(S[..., None] - K, 0).mean(axis=0)
    mc, error = pay.mean(axis=0), pay.std(axis=0, ddof=1) / np.sqrt(pay.shape[0])
    exact = cos_calls(K, m["T"], m)
    surface = np.stack([cos_calls(K, t, m) for t in (0.25, 0.5, 1.0, 2.0, 5.0)])
    vols = np.stack([implied(p, K, t, m) for p, t in zip(surface, (0.25, 0.5, 1.0, 2.0, 5.0))])
    asian = discount * np.maximum(mean.reshape(-1, 1) - K, 0).mean(axis=0)
    barrier = discount * (np.maximum(S[..., None] - K, 0) * (low > 80.0)[..., None]).mean(axis=(0, 1))
    return {
        "mc": mc,
        "error": error,
        "cos": exact,
        "z": (mc - exact) / error,
        "vols": vols,
        "asian": asian,
        "barrier": barrier,
        "forward": discount * S.mean() / m["s0"],
        "variance": np.quantile(V.ravel(), np.linspace(0.05, 0.95, 10)),
        "share": runs[0][4],
        "surface": surface,
    }
