"""Seismic network: band-pass, STA/LTA triggers, AIC onset picks, location by grid search and Gauss-Newton."""
import numpy as np

DEFAULT = 72
SAMPLES = 30000
RATE = 100.0


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(23)
    stations = numpy.column_stack([rng.uniform(0, 100, N), rng.uniform(0, 100, N), rng.uniform(0, 1.5, N)])
    hypo = numpy.array([37.0, 58.0, 9.0])
    origin, v = 120.0, 6.0
    t = numpy.arange(SAMPLES) / RATE
    traces = rng.normal(0.0, 1.0, (N, SAMPLES))
    traces += 0.5 * numpy.sin(2 * numpy.pi * 0.2 * t) + rng.normal(0, 3, (N, 1))
    dist = numpy.sqrt(((stations - hypo)**2).sum(axis=1))
    for i in range(N):
        for speed, amp, f in ((v, 12.0, 8.0), (v / 1.73, 24.0, 5.0)):
            tau = t - origin - dist[i] / speed
            on = tau > 0
            traces[i, on] += amp * (30.0 / dist[i]) * numpy.sin(2 * numpy.pi * f * tau[on]) * numpy.exp(-tau[on] / 2.5)
    traces[3, 8000:8040] += 60.0                # a glitch
    traces[7] *= 0.0                            # a dead channel
    return stations, traces


def bandpass(x, low, high, order=4):
    n = x.shape[-1]
    f = np.fft.rfftfreq(n, 1.0 / RATE)
    gain = np.zeros_like(f)
    f1 = f[1:]
    gain[1:] = 1.0 / np.sqrt((1.0 + (low / f1)**(2 * order)) * (1.0 + (f1 / high)**(2 * order)))
    return np.fft.irfft(np.fft.rfft(x, axis=-1) * gain, n, axis=-1)


def sta_lta(x, nsta, nlta):
    energy = np.cumsum(x**2, axis=1)
    sta = np.zeros_like(x)
    lta = np.zeros_like(x)
    sta[:, nsta:] = (energy[:, nsta:] - energy[:, :-nsta]) / nsta
    lta[:, nlta:] = (energy[:, nlta:] - energy[:, :-nlta]) / nlta
    sta[:, :nlta] = 0.0
    floor = 1e-10 * max(float(energy[:, -1].max()), 1.0)
    return sta / np.maximum(lta, floor)


def trigger_windows(ratio, on, off):
    """Start and end of each trigger of one channel."""
    above = ratio > on
    edge = np.diff(above.astype(np.int8), prepend=0)
    starts = np.flatnonzero(edge == 1)
    quiet = np.flatnonzero(ratio < off)
    place = np.searchsorted(quiet, starts)
    ends = quiet[np.minimum(place, len(quiet) - 1)]
    keep = np.ones(len(starts), dtype=bool)
    keep[1:] = starts[1:] > ends[:-1]
    return starts[keep], ends[keep]


def aic(windows):
    """Akaike picker: index of the minimum for each row."""
    n = windows.shape[1]
    k = np.arange(1, n - 1)
    s1 = np.cumsum(windows, axis=1)
    s2 = np.cumsum(windows**2, axis=1)
    left = s2[:, 1:-1] / (k + 1) - (s1[:, 1:-1] / (k + 1))**2
    m = n - 1 - k
    right = (s2[:, -1:] - s2[:, 1:-1]) / m - ((s1[:, -1:] - s1[:, 1:-1]) / m)**2
    left = np.maximum(left, 1e-9)
    right = np.maximum(right, 1e-9)
    value = (k + 1) * np.log(left) + (m - 1) * np.log(right)
    value[:, :20] = np.inf
    value[:, -20:] = np.inf
    return value.argmin(axis=1) + 1


def grid_search(stations, t, v):
    gx = np.linspace(0.0, 100.0, 41)
    gz = np.linspace(0.0, 20.0, 11)
    nodes = np.stack(np.meshgrid(gx, gx, gz, indexing="ij"), axis=-1).reshape(-1, 3)
    travel = np.linalg.norm(nodes[:, None, :] - stations[None, :, :], axis=-1) / v
    resid = t - travel
    t0 = np.median(resid, axis=1)
    misfit = np.abs(resid - t0[:, None]).mean(axis=1)
    best = misfit.argmin()
    return nodes[best], t0[best], misfit


def gauss_newton(stations, t, x0, t0, v, steps=20):
    model = np.concatenate([x0, t0.reshape(1)])
    for step in range(steps):
        delta = model[:3] - stations
        dist = np.sqrt(np.sum(delta**2, axis=1))
        r = t - model[3] - dist / v
        w = 1.0 / np.maximum(1.0, np.abs(r) / 0.1)
        G = np.ones((len(t), 4))
        G[:, :3] = delta / (dist * v)[:, None]
        sol, _, rank, sv = np.linalg.lstsq(G * w[:, None], r * w, rcond=None)
        model = model + sol
        if np.linalg.norm(sol) < 1e-7:
            break
    cov = np.linalg.inv(G.T @ (w[:, None] * G)) * np.mean(w * r**2)
    return model, cov, r, step


def main(asarray, N, data):
    stations, traces = map(asarray, data)
    traces = traces - traces.mean(axis=1, keepdims=True)
    alive = traces.std(axis=1) > 1e-6
    stations = stations[alive]
    filtered = bandpass(traces[alive], 2.0, 15.0)
    noise = np.median(np.abs(filtered), axis=1) / 0.6745
    filtered /= noise[:, None]
    ratio = sta_lta(filtered, 50, 1000)

    first, counts = [], []
    for channel in ratio:
        starts, ends = trigger_windows(channel, 6.0, 1.5)
        counts.append(len(starts))
        length = ends - starts
        good = starts[length > 40]
        first.append(int(good[0]) if good.size else -1)
    first = np.array(first)
    picked = first > 200
    rough = np.median(first[picked])
    picked &= np.abs(first - rough) < 2500

    rows = np.flatnonzero(picked)
    window = np.arange(-200, 150)
    cut = filtered[rows[:, None], first[rows][:, None] + window]
    onset = (first[rows] - 200 + aic(cut)) / RATE
    node, t0, misfit = grid_search(stations[rows], onset, 6.0)
    model, cov, r, steps = gauss_newton(stations[rows], onset, node, t0, 6.0)

    peak = np.abs(filtered).max(axis=1)[rows]
    dist = np.linalg.norm(stations[rows] - model[:3], axis=1)
    slope = np.polyfit(np.log10(dist), np.log10(peak), 1)
    return {"triggers": np.array(counts), "picks": onset, "node": node, "misfit": np.sort(misfit)[:20],
            "hypocentre": model, "sigma": np.sqrt(np.diag(cov)), "residual_rms": np.sqrt((r**2).mean()),
            "steps": steps, "attenuation": slope, "used": rows.size, "max_ratio": ratio.max(axis=1)}
