"""Local earthquakes: band-pass, STA/LTA picks with AIC refinement, association, grid search and Geiger location, magnitudes, b-value. N: samples a station."""
import numpy
import numpy as np

DEFAULT = 120000
STATIONS, EVENTS, RATE, VP = 20, 14, 50.0, 6.0


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(90)
    site = numpy.concatenate([rng.uniform(-40, 40, (STATIONS, 2)), rng.uniform(-1, 0.2, (STATIONS, 1))], axis=1)
    data = rng.normal(0, 1, (STATIONS, N))
    data += 0.5 * numpy.cumsum(rng.normal(0, 0.1, (STATIONS, N)), axis=1) - 4
    when = (numpy.arange(EVENTS) + 0.3 + 0.4 * rng.random(EVENTS)) * (N / RATE / EVENTS)
    where = numpy.concatenate([rng.uniform(-25, 25, (EVENTS, 2)), rng.uniform(4, 18, (EVENTS, 1))], axis=1)
    size = 1.5 + rng.exponential(0.5, EVENTS)
    for k in range(EVENTS):
        far = numpy.sqrt(((site - where[k]) ** 2).sum(axis=1))
        for s in range(STATIONS):
            for speed, gain in ((VP, 1.0), (VP / 1.73, 1.8)):
                at = int((when[k] + far[s] / speed) * RATE)
                n = min(600, N - at)
                if n > 0:
                    t = numpy.arange(n) / RATE
                    shape = numpy.exp(-t / 1.2) * numpy.sin(2 * numpy.pi * (6 + s % 3) * t + 0.3)
                    data[s, at:at + n] += gain * 10 ** (size[k] - 0.2) * 60 / far[s] ** 1.2 * shape
    return dict(data=data.astype(numpy.float32), site=site, when=when, where=where)


def bandpass(x, low, high):
    n = x.shape[1]
    f = np.fft.rfftfreq(n, 1 / RATE)
    gain = 1 / np.sqrt(1 + (np.maximum(f, 1e-6) / high) ** 8) / np.sqrt(1 + (low / np.maximum(f, 1e-6)) ** 8)
    taper = np.minimum(1.0, np.minimum(np.arange(n), np.arange(n)[::-1]) / (2 * RATE))
    x = (x - x.mean(axis=1, keepdims=True)) * taper
    return np.fft.irfft(np.fft.rfft(x, axis=1) * gain, n=n, axis=1)


def ratio(x, short, long):
    power = np.concatenate([np.zeros((len(x), 1)), np.cumsum(x ** 2, axis=1)], axis=1)
    out = np.zeros_like(x)
    sta = (power[:, long + short:] - power[:, long:-short]) / short
    lta = (power[:, long:-short] - power[:, :-short - long]) / long
    out[:, long:long + sta.shape[1]] = sta / (lta + 1e-9)
    return out


def picks(x, cft, on, off):
    """The starts of the runs above `on` (after a fall below `off`), refined by AIC in a window around them."""
    found = []
    for s in range(len(x)):
        state = np.where(cft[s] > on, 1, np.where(cft[s] < off, -1, 0))
        turns = np.flatnonzero(state)
        last = turns[np.maximum(np.searchsorted(turns, np.arange(len(state)), side="right") - 1, 0)]
        high = state[last] == 1
        starts = np.flatnonzero(high[1:] & ~high[:-1]) + 1
        starts = starts[(starts > 200) & (starts < x.shape[1] - 200)]
        if len(starts) == 0:
            continue
        window = x[s][starts[:, None] + np.arange(-100, 60)]
        n = window.shape[1]
        k = np.arange(1, n)
        c1, c2 = np.cumsum(window, axis=1), np.cumsum(window ** 2, axis=1)
        before = c2[:, :-1] / k - (c1[:, :-1] / k) ** 2
        after = (c2[:, -1:] - c2[:, :-1]) / (n - k) - ((c1[:, -1:] - c1[:, :-1]) / (n - k)) ** 2
        aic = k * np.log(np.maximum(before, 1e-12)) + (n - k - 1) * np.log(np.maximum(after, 1e-12))
        best = aic[:, 5:-5].argmin(axis=1) + 5
        found.append(np.stack([np.full(len(starts), s), (starts - 100 + best)], axis=1))
    return np.concatenate(found)


def associate(when, station, gap=14.0, least=8):
    """Groups of picks in time where many stations take part, with each station's first pick."""
    order = np.argsort(when, kind="stable")
    when, station = when[order], station[order]
    many = np.searchsorted(when, when + gap) - np.arange(len(when))
    groups, k = [], 0
    while k < len(when):
        n = int(many[k])
        names, first = np.unique(station[k:k + n], return_index=True)
        if len(names) >= least and bool(many[k] >= many[k + 1:k + 4].max() if k + 1 < len(when) else True):
            groups.append((names, when[k:k + n][first]))
            k += n
        else:
            k += 1
    return groups


def locate(site, t, grid):
    """Grid search for the least absolute residual, then Gauss-Newton with a bisquare weight."""
    travel = np.sqrt(((grid[:, None, :] - site[None, :, :]) ** 2).sum(axis=2)) / VP
    origin = np.median(t - travel, axis=1)
    misfit = np.abs(t - travel - origin[:, None]).mean(axis=1)
    k = int(misfit.argmin())
    m = np.concatenate([grid[k], origin[k:k + 1]])
    for _ in range(12):
        d = m[:3] - site
        far = np.sqrt((d ** 2).sum(axis=1))
        r = t - m[3] - far / VP
        scale = np.maximum(np.median(np.abs(r)) * 4.7, 0.05)
        w = np.where(np.abs(r) < scale, (1 - (r / scale) ** 2) ** 2, 0)
        J = np.concatenate([d / far[:, None] / VP, np.ones((len(t), 1))], axis=1)
        A = (J * w[:, None]).T @ J + 1e-4 * np.eye(4)
        dm = np.linalg.solve(A, J.T @ (w * r))
        m = m + dm
        m[2] = np.clip(m[2], 0.5, 30.0)
        if np.abs(dm).max() < 1e-4:
            break
    return m, np.sqrt((w * r * r).sum() / w.sum()), np.linalg.inv(A).diagonal()


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    x, site, when, where = (asarray(data[k]) for k in ("data", "site", "when", "where"))
    x = bandpass(x.astype(np.float64), 2.0, 15.0)
    cft = ratio(x, int(0.4 * RATE), int(8 * RATE))
    noise = np.median(np.abs(x), axis=1) / 0.6745
    p = picks(x, cft, 6.0, 1.5)
    groups = associate(p[:, 1] / RATE, p[:, 0])
    a = np.linspace(-40, 40, 33)
    grid = np.stack(np.meshgrid(a, a, np.linspace(1, 25, 9), indexing="ij"), axis=-1).reshape(-1, 3)
    found, quality, size = [], [], []
    for names, t in groups:
        m, rms, var = locate(site[names], t, grid)
        found.append(m)
        quality.append(np.concatenate([rms[None], np.sqrt(np.abs(var))]))
        at = np.clip((t * RATE).astype(int)[:, None] + np.arange(500), 0, N - 1)
        peak = np.abs(x[names[:, None], at]).max(axis=1)
        far = np.sqrt(((site[names] - m[:3]) ** 2).sum(axis=1))
        size.append(np.median(np.log10(peak / 60) + 1.2 * np.log10(far) + 0.2))
    found, quality, size = np.stack(found), np.stack(quality), np.stack(size)
    late = found[:, 3][:, None] - when[None, :]
    match = np.abs(late).argmin(axis=1)
    good = np.abs(np.take_along_axis(late, match[:, None], axis=1)[:, 0]) < 2
    miss = np.sqrt(((found[:, :3] - where[match]) ** 2).sum(axis=1))
    b = np.log10(np.e) / (size.mean() - size.min() + 0.05)
    return dict(found=found, quality=quality, size=size, miss=miss[good], recall=len(np.unique(match[good])), b=b,
                picks=np.bincount(p[:, 0], minlength=STATIONS), noise=noise, quantiles=np.percentile(cft[:, ::10], [50, 90, 99], axis=1), n=len(groups))
