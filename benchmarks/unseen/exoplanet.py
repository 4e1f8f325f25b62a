"""Transit search in a light curve: running-median detrending, sigma clipping, box least squares over trial
periods, and a refined folded transit; N is the number of cadences."""
import numpy as np

DEFAULT = 16000

HALF = 50          # half width of the running median, cadences
NBIN = 160         # phase bins of the periodogram


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(2018)
    cadence = 0.0204
    t = cadence * numpy.arange(int(N * 1.1)) + rng.uniform(0, 0.002, int(N * 1.1))
    gap = (t > 0.42 * t[-1]) & (t < 0.42 * t[-1] + 0.09 * t[-1])
    t = t[~gap][:N]
    period, epoch, duration, depth = 4.3127, 1.733, 0.19, 0.0031
    trend = 1.0 + 0.01 * numpy.sin(2 * numpy.pi * t / 11.7) + 0.004 * numpy.cos(2 * numpy.pi * t / 4.9 + 1)
    phase = (t - epoch + 0.5 * period) % period - 0.5 * period
    dip = depth * numpy.clip((0.5 * duration - numpy.abs(phase)) / 0.03, 0, 1)
    flux = trend * (1 - dip) + 0.0008 * rng.standard_normal(t.size)
    bad = rng.choice(t.size, t.size // 100, replace=False)
    flux[bad] += rng.uniform(0.006, 0.03, bad.size)
    err = 0.0008 * rng.uniform(0.8, 1.3, t.size)
    return t, flux * 12345.0, err * 12345.0


def running_median(y, half):
    n = y.shape[0]
    idx = np.arange(n)[:, None] + np.arange(-half, half + 1)[None, :]
    idx = np.clip(idx, 0, n - 1)
    out = np.empty_like(y)
    for start in range(0, n, 2000):
        out[start:start + 2000] = np.median(y[idx[start:start + 2000]], axis=1)
    return out


def sigma_clip(y, upper, lower, rounds=6):
    keep = np.ones(y.shape, dtype=bool)
    for _ in range(rounds):
        centre = np.median(y[keep])
        sigma = 1.4826 * np.median(np.abs(y[keep] - centre))
        new = (y < centre + upper * sigma) & (y > centre - lower * sigma)
        if int(new.sum()) == int(keep.sum()):
            break
        keep = new
    return keep, sigma


def bls(t, y, w, periods, widths):
    """Signal residue of the best box (Kovacs et al. 2002) for every trial period."""
    power = np.zeros(len(periods))
    where = np.zeros(len(periods), dtype=np.int64)
    width_of = np.zeros(len(periods), dtype=np.int64)
    wy = w * y
    for k, period in enumerate(periods):
        phase = t / period
        phase -= np.floor(phase)
        b = np.minimum((phase * NBIN).astype(np.int64), NBIN - 1)
        r = np.bincount(b, weights=w, minlength=NBIN)
        s = np.bincount(b, weights=wy, minlength=NBIN)
        cr = np.concatenate([np.zeros(1), np.cumsum(np.concatenate([r, r]))])
        cs = np.concatenate([np.zeros(1), np.cumsum(np.concatenate([s, s]))])
        rr = np.stack([cr[q:q + NBIN] - cr[:NBIN] for q in widths])
        ss = np.stack([cs[q:q + NBIN] - cs[:NBIN] for q in widths])
        sr = np.where((ss < 0) & (rr > 0.005), ss ** 2 / np.maximum(rr * (1 - rr), 1e-9), 0.0)
        top = np.argmax(sr)
        power[k] = sr.ravel()[top]
        width_of[k], where[k] = top // NBIN, top % NBIN
    return np.sqrt(power), where, width_of


def main(asarray, N, given):
    t, flux, err = map(asarray, given)
    trend = running_median(flux, HALF)
    y = flux / trend - 1.0
    sigma_y = err / trend
    keep, scatter = sigma_clip(y, 3.5, 8.0)
    t, y, sigma_y = t[keep], y[keep], sigma_y[keep]
    t0 = float(t[0])
    t = t - t0

    w = sigma_y ** -2
    w /= w.sum()
    y = y - np.sum(w * y)
    freq = 1.0 / 9.0 + np.arange(700) * ((1.0 / 1.5 - 1.0 / 9.0) / 699)
    periods = 1.0 / freq
    widths = [3, 5, 7, 10, 14]
    power, where, width_of = bls(t, y, w, periods.tolist(), widths)

    # refine on a finer grid about the best peak
    best = int(np.argmax(power))
    f0, df = float(freq[best]), float(freq[1] - freq[0])
    fine = 1.0 / (f0 + df * np.linspace(-1.0, 1.0, 81))
    fpower, fwhere, fwidth = bls(t, y, w, fine.tolist(), widths)
    k = int(np.argmax(fpower))
    period = float(fine[k])
    q = widths[int(fwidth[k])]
    centre = (float(fwhere[k]) + 0.5 * q) / NBIN * period

    # fold and bin around mid-transit
    phase = (t - centre + 0.5 * period) % period - 0.5 * period
    inside = np.abs(phase) < 0.4 * q / NBIN * period
    outside = np.abs(phase) > 1.0 * q / NBIN * period
    depth = np.average(y[outside], weights=w[outside]) - np.average(y[inside], weights=w[inside])
    snr = depth / np.std(y[outside]) * np.sqrt(inside.sum())
    order = np.argsort(phase)
    folded = y[order]
    m = folded.size // 40
    binned = folded[:40 * m].reshape(40, m)
    number = np.floor((t - centre) / period + 0.5).astype(np.int64)
    number -= number.min()
    hits = np.bincount(number[inside])
    depths = -np.bincount(number[inside], weights=y[inside]) / np.maximum(hits, 1)
    sde = (power.max() - power.mean()) / power.std()
    return dict(trend=trend, kept=keep.sum(), scatter=scatter, power=power, period=period, epoch=centre + t0,
                depth=depth, snr=snr, sde=sde, width=q, binned=binned.mean(axis=1), phase=phase[order][::37],
                median_binned=np.median(binned, axis=1), hits=hits, depths=depths, fine_power=fpower,
                mean_flux=np.mean(flux))
