"""Station temperatures: gaps, climatology, anomalies, trends, Barnes grids, EOFs, heat waves, composites.

N: stations.
"""
import numpy as np

DEFAULT = 300
YEARS = 20


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(77)
    days = YEARS * 365
    lat, lon, t = rng.uniform(35, 60, N), rng.uniform(-10, 30, N), numpy.arange(days)
    modes = numpy.stack([numpy.cos(numpy.radians(4 * (lon - 10))), numpy.sin(numpy.radians(7 * (lat - 47))),
                         numpy.cos(numpy.radians(9 * lon)) * numpy.cos(numpy.radians(8 * lat))])
    series = numpy.empty((3, days))
    for k, rho in enumerate((0.97, 0.9, 0.8)):
        e = rng.normal(size=days + 300) * numpy.sqrt(1 - rho**2)
        series[k] = numpy.convolve(e, rho**numpy.arange(301), mode="valid")
    temp = 30 - 0.5 * lat + 0.3 * (lat - 25) * -numpy.cos(2 * numpy.pi * (t[:, None] - 15) / 365)
    temp = temp + (series * numpy.array([3.5, 2.5, 1.5])[:, None]).T @ modes + 0.035 * t[:, None] / 365
    temp += rng.normal(0, 1.2, temp.shape)
    temp[rng.uniform(size=temp.shape) < 0.04] = numpy.nan
    for s in range(0, N, 5):
        temp[700 * (s % 9):700 * (s % 9) + 200, s] = numpy.nan
    temp[rng.integers(0, days, 200), rng.integers(0, N, 200)] += 45
    return temp.astype(numpy.float32), lat, lon


def clean(temp):
    """Spikes far from the day's neighbours become gaps; short gaps are filled in time."""
    before, after = np.roll(temp, 1, axis=0), np.roll(temp, -1, axis=0)
    spike = (np.abs(temp - before) > 20) & (np.abs(temp - after) > 20)
    temp = np.where(spike, np.nan, temp)
    known, out = ~np.isnan(temp), temp.copy()
    day = np.arange(len(temp), dtype=float)
    for s in range(temp.shape[1]):
        ok = known[:, s]
        where = day[ok]
        place = np.clip(np.searchsorted(where, day), 1, len(where) - 1)
        short = ~ok & (where[place] - where[place - 1] <= 4)
        out[short, s] = np.interp(day[short], where, temp[ok, s])
    return out, spike.sum()


def climatology(temp, harmonics=3):
    """Mean year of each station from harmonics fitted to the means of the days of the year."""
    mean = np.nanmean(temp.reshape(YEARS, 365, -1), axis=0)
    t = 2 * np.pi * np.arange(365)[:, None] / 365
    k = np.arange(1, harmonics + 1)
    design = np.concatenate([np.ones((365, 1)), np.cos(k * t), np.sin(k * t)], axis=1)
    coef, *_ = np.linalg.lstsq(design, mean, rcond=None)
    return design @ coef, coef


def great_circle(lat1, lon1, lat2, lon2):
    a, b, c, d = np.radians(lat1)[:, None], np.radians(lon1)[:, None], np.radians(lat2)[None], np.radians(lon2)[None]
    h = np.sin((a - c) / 2)**2 + np.cos(a) * np.cos(c) * np.sin((b - d) / 2)**2
    return 2 * 6371.0 * np.arcsin(np.sqrt(h))


def barnes(values, known, lat, lon, glat, glon, radius=400.0):
    """Two passes of Gaussian weights, the second on what the first has missed; one row of values a month."""
    filled = np.where(known, values, 0.0)
    to_grid, to_self = great_circle(glat, glon, lat, lon), great_circle(lat, lon, lat, lon)

    def analyse(v, distance, r):
        w = np.exp(-(distance / r)**2)
        return (v @ w.T) / np.maximum(known.astype(float) @ w.T, 1e-9)
    grid = analyse(filled, to_grid, radius)
    left = np.where(known, filled - analyse(filled, to_self, radius), 0.0)
    return grid + analyse(left, to_grid, 0.6 * radius)


def heat_waves(hot):
    """Runs of at least three hot days in every column: their number, the longest, and days in them."""
    edge = np.diff(np.pad(hot.T.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    station, start = np.nonzero(edge == 1)
    _, stop = np.nonzero(edge == -1)
    length, n = stop - start, hot.shape[1]
    long, longest = length >= 3, np.zeros(n)
    np.maximum.at(longest, station, length.astype(float))
    days = np.bincount(station[long], weights=length[long], minlength=n)
    return np.bincount(station[long], minlength=n), longest, days, start[long]


def main(asarray, N, given):
    temp, lat, lon = (asarray(g) for g in given)
    temp, spikes = clean(temp.astype(float))
    normal, coef = climatology(temp)
    anomaly = temp - np.tile(normal, (YEARS, 1))
    ends = np.cumsum(np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]))
    months = np.searchsorted(ends, np.arange(365), side="right")
    index = (np.arange(YEARS)[:, None] * 12 + months).ravel()
    ok = ~np.isnan(anomaly)
    monthly, number = np.zeros((YEARS * 12, N)), np.zeros((YEARS * 12, N))
    np.add.at(monthly, index, np.nan_to_num(anomaly))
    np.add.at(number, index, ok.astype(float))
    known = number >= 15
    monthly = np.where(known, monthly / np.maximum(number, 1.0), np.nan)
    yearly = np.nanmean(monthly.reshape(YEARS, 12, N), axis=1)
    i, j = np.triu_indices(YEARS, 1)
    slope = np.median((yearly[j] - yearly[i]) / (j - i)[:, None], axis=0)        # Theil and Sen

    la, lo = np.meshgrid(np.linspace(36, 59, 24), np.linspace(-9, 29, 39), indexing="ij")
    field = barnes(monthly, known, lat, lon, la.ravel(), lo.ravel())
    weight = np.cos(np.radians(la)).ravel()
    mean = np.average(field, axis=1, weights=weight)
    trend = np.polyfit(np.arange(YEARS * 12) / 12, mean, 1)
    t = np.arange(YEARS * 12) - (YEARS * 12 - 1) / 2
    detrended = field - field.mean(axis=0) - np.outer(t, t @ field) / (t @ t)
    u, s, vt = np.linalg.svd(detrended * np.sqrt(weight), full_matrices=False)
    eof = vt[:4].T * s[:4] / np.sqrt(len(u))
    eof = eof * np.sign(eof[np.abs(eof).argmax(axis=0), np.arange(4)])
    pc = detrended * np.sqrt(weight) @ eof[:, 0]
    pc = (pc - pc.mean()) / pc.std()
    lags = np.stack([np.mean(pc[:len(pc) - k] * pc[k:]) for k in range(13)])
    composite = field[pc > 1].mean(axis=0) - field[pc < -1].mean(axis=0)

    filled = np.where(ok, anomaly, 0.0)
    count, longest, days, start = heat_waves(filled > np.percentile(filled, 90, axis=0))
    season, _ = np.histogram(start % 365, bins=12, range=(0, 365))
    top = np.where(ok, temp, -np.inf).reshape(YEARS, 365, N).max(axis=1)
    scale = top.std(axis=0, ddof=1) * np.sqrt(6) / np.pi
    levels = top.mean(axis=0) - scale * (0.5772 + np.log(-np.log(1 - 1 / np.array([2.0, 10.0, 50.0])[:, None])))
    return dict(spikes=spikes, coef=coef[:3], slope=slope, trend=trend, mean=mean, explained=(s**2 / (s**2).sum())[:10],
                eof=eof[:, :2], lags=lags, composite=composite, waves=count, longest=longest, days=days,
                season=season, levels=levels, missing=1 - known.mean())
