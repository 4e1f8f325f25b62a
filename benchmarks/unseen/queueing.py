"""Three queues in tandem by Lindley's recursion over customers, vectorised over replications, with output analysis.

N is the number of customers of each of the 300 replications.
"""
import numpy as np

DEFAULT = 4000
REPS = 300
LAM = 0.8                       # arrivals per unit of time
T975 = 1.9679                   # Student t, 299 degrees of freedom
T975_19 = 2.0930


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(1234)
    return rng.random((N, REPS)), rng.random((3, N, REPS))


def service_times(u):
    """Station 0 exponential, station 1 hyper-exponential, station 2 Erlang-like triangular."""
    s = np.empty_like(u)
    s[0] = -np.log1p(-u[0]) / 1.0
    p = 0.2
    fast = u[1] >= p
    v = np.where(fast, (u[1] - p) / (1 - p), u[1] / p)
    s[1] = -np.log1p(-v) * np.where(fast, 0.6, 2.0)
    low = u[2] < 0.5
    s[2] = np.where(low, np.sqrt(0.5 * u[2]), 1.0 - np.sqrt(0.5 * (1.0 - u[2]))) * 2.0
    return s


def station(arrive, service, depart, wait):
    """One FIFO server: departures and waits, a row per customer."""
    free = np.zeros(arrive.shape[1])
    begin = np.empty_like(free)
    for n in range(arrive.shape[0]):
        np.maximum(arrive[n], free, out=begin)
        np.subtract(begin, arrive[n], out=wait[n])
        np.add(begin, service[n], out=free)
        depart[n] = free


def mean_ci(x, t):
    m = x.mean(axis=-1)
    half = t * x.std(axis=-1, ddof=1) / np.sqrt(x.shape[-1])
    return np.stack((m, m - half, m + half), axis=-1)


def autocorrelation(x, lags):
    """Mean over replications of the autocorrelation along axis 0, through the FFT."""
    n = x.shape[0]
    d = x - x.mean(axis=0)
    f = np.fft.rfft(d, n=2 * n, axis=0)
    acf = np.fft.irfft(f * f.conj(), axis=0)[:lags]
    return (acf / acf[0]).mean(axis=1)


def main(asarray, N, given):
    u_arr, u_srv = [asarray(a) for a in given]
    gaps = -np.log1p(-u_arr) / LAM
    service = service_times(u_srv)
    arrive = np.cumsum(gaps, axis=0)

    depart = np.empty_like(service)
    wait = np.empty_like(service)
    stream = arrive
    for k in range(3):
        station(stream, service[k], depart[k], wait[k])
        stream = depart[k]

    warm = N // 5
    sojourn = depart[2] - arrive
    per_rep = wait[:, warm:].mean(axis=1)               # (station, replication)
    ci = mean_ci(per_rep, T975)
    sojourn_ci = mean_ci(sojourn[warm:].mean(axis=0), T975)

    # batch means within single replications: 20 batches, coverage of the grand mean
    nb = 20
    length = (N - warm) // nb
    batches = sojourn[warm:warm + nb * length].reshape(nb, length, REPS).mean(axis=1)
    bci = mean_ci(batches.T, T975_19)
    grand = sojourn_ci[0]
    ratio = (np.diff(batches, axis=0) ** 2).mean() / batches.var(axis=0, ddof=1).mean()
    covered = ((bci[:, 1] < grand) & (grand < bci[:, 2])).mean()

    # utilisation and Little's law over the horizon of every replication
    horizon = depart[2, -1]
    busy = service.sum(axis=1) / horizon
    in_system = sojourn.sum(axis=0) / horizon
    little = in_system - (N / horizon) * sojourn.mean(axis=0)

    # number in system seen by arrivals in a few replications
    seen = np.stack([np.arange(N) - np.searchsorted(depart[2, :, r].copy(), arrive[:, r].copy()) for r in range(0, REPS, 30)])
    seen_dist = np.bincount(seen.ravel(), minlength=40)[:40] / seen.size

    # station 0 is M/M/1
    rho = LAM / 1.0
    theory = rho / (1.0 - rho)
    idle = (wait[0, warm:] == 0).mean()
    edges = np.concatenate((np.arange(0.0, 20.0, 0.5), np.array([25.0, 30.0, 50.0, 1000.0])))
    counts, _ = np.histogram(wait[0, warm:], bins=edges)
    tail = counts[::-1].cumsum()[::-1] / counts.sum()
    exact = rho * np.exp(-(1.0 - rho) * edges[1:-1])

    # control variates: arrival gaps and service times have known means
    ctrl = np.stack((gaps.mean(axis=0) - 1 / LAM, service[0].mean(axis=0) - 1.0,
                     service[1].mean(axis=0) - 0.88, service[2].mean(axis=0) - 1.0))
    y = sojourn[warm:].mean(axis=0)
    cc = ctrl - ctrl.mean(axis=1, keepdims=True)
    coef = np.linalg.solve(cc @ cc.T, cc @ (y - y.mean()))
    adjusted = y - coef @ ctrl
    reduction = adjusted.var() / y.var()

    # transient: mean wait by customer number, smoothed over a moving window
    curve = np.cumsum(sojourn.mean(axis=1))
    w = 50
    welch = (curve[w:] - curve[:-w]) / w
    gap_out = np.diff(depart, axis=1)
    return {
        "ci": ci, "sojourn_ci": sojourn_ci, "theory_mm1": theory, "coverage": covered, "von_neumann": ratio,
        "busy": busy.mean(axis=1), "little": np.abs(little).max() < 1e-9, "in_system": in_system.mean(), "idle": idle,
        "seen": seen_dist, "hist": counts, "tail_error": np.abs(tail[1:] - exact).max(), "cv_coef": coef,
        "cv_ci": mean_ci(adjusted, T975), "reduction": reduction, "welch": welch[::40],
        "percentiles": np.percentile(sojourn[warm:], [50, 90, 99]), "acf": autocorrelation(wait[0, warm:], 30),
        "scv_out": (gap_out.var(axis=1) / gap_out.mean(axis=1) ** 2).mean(axis=1),
        "cross": np.corrcoef(per_rep), "worst": int(np.argmax(y)),
    }
