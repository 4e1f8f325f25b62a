"""Seismic processing: band-pass, AGC, velocity semblance, NMO and stack, Kirchhoff time migration of a zero-offset section. N: traces."""
import numpy
import numpy as np

DEFAULT = 300
NT, DT, DX, NOFF = 500, 0.004, 15.0, 36


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(31)
    x = numpy.arange(N) * DX
    section = numpy.zeros((NT, N))
    for _ in range(12):
        x0, t0, v, a = rng.uniform(0, x[-1]), rng.uniform(0.3, 1.6), rng.uniform(1800, 2600), rng.uniform(0.5, 1.5)
        k = numpy.rint(numpy.sqrt(t0 ** 2 + 4 * (x - x0) ** 2 / v ** 2) / DT).astype(int)
        ok = k < NT
        section[k[ok], numpy.arange(N)[ok]] += a / (1 + ((x[ok] - x0) / 600) ** 2)
    for t0, dip in ((0.5, 0.02), (0.9, -0.05), (1.4, 0.08)):
        k = numpy.rint((t0 + dip * x / 1000) / DT).astype(int)
        section[k.clip(0, NT - 1), numpy.arange(N)] += 1
    offset = 100 + 50.0 * numpy.arange(NOFF)
    gather = numpy.zeros((NT, NOFF))
    for t0, v in ((0.4, 1700), (0.8, 1950), (1.2, 2200), (1.6, 2450)):
        k = numpy.rint(numpy.sqrt(t0 ** 2 + (offset / v) ** 2) / DT).astype(int)
        ok = k < NT
        gather[k[ok], numpy.arange(NOFF)[ok]] += 1
    t = (numpy.arange(51) - 25) * DT
    wave = (1 - 2 * (numpy.pi * 25 * t) ** 2) * numpy.exp(-(numpy.pi * 25 * t) ** 2)
    conv = lambda d: numpy.stack([numpy.convolve(c, wave, mode="same") for c in d.T], axis=1)
    return dict(section=conv(section) + 0.05 * rng.normal(size=(NT, N)), gather=conv(gather) + 0.05 * rng.normal(size=(NT, NOFF)), offset=offset)


def bandpass(data, low, high, taper=4.0):
    f = np.fft.rfftfreq(data.shape[0], DT)
    ramp = np.clip((f - low + taper) / taper, 0, 1) * np.clip((high + taper - f) / taper, 0, 1)
    h = 0.5 - 0.5 * np.cos(np.pi * ramp)
    return np.fft.irfft(np.fft.rfft(data, axis=0) * h[:, None], n=data.shape[0], axis=0)


def agc(data, half):
    nt = data.shape[0]
    energy = np.zeros((nt + 1, data.shape[1]))
    energy[1:] = np.cumsum(data ** 2, axis=0)
    lo = np.maximum(np.arange(nt) - half, 0)
    hi = np.minimum(np.arange(nt) + half + 1, nt)
    rms = np.sqrt((energy[hi] - energy[lo]) / (hi - lo)[:, None])
    return data / (rms + 1e-3 * rms.max())


def nmo(gather, offset, t, velocity, stretch=0.6):
    out = np.zeros_like(gather)
    for j in range(gather.shape[1]):
        tx = np.sqrt(t ** 2 + (offset[j] / velocity) ** 2)
        moved = np.interp(tx, t, gather[:, j].copy(), right=0.0)
        moved[tx - t > stretch * t] = 0.0
        out[:, j] = moved
    return out


def semblance(gather, offset, t, velocities, half=6):
    panel = np.zeros((len(t), len(velocities)))
    box = np.ones(2 * half + 1)
    for i, v in enumerate(velocities):
        flat = nmo(gather, offset, t, v)
        fold = np.maximum(np.count_nonzero(flat, axis=1), 1)
        top = np.convolve(flat.sum(axis=1) ** 2, box, mode="same")
        bottom = np.convolve(fold * (flat ** 2).sum(axis=1), box, mode="same")
        panel[:, i] = top / (bottom + 1e-6 * bottom.max())
    return panel


def migrate(section, t, x, vrms, aperture):
    nt, nx = section.shape
    image = np.zeros((nt, nx))
    hits = np.zeros((nt, nx))
    derivative = np.gradient(section, DT, axis=0)
    for j in range(nx):
        first, last = max(0, j - aperture), min(nx, j + aperture + 1)
        dist = x[first:last] - x[j]
        tt = np.sqrt(t[:, None] ** 2 + 4 * (dist[None, :] / vrms[:, None]) ** 2)
        pos = tt / DT
        k = pos.astype(np.int64)
        inside = k < nt - 1
        k[~inside] = nt - 2
        frac = pos - k
        trace = derivative[:, j]
        value = (1 - frac) * trace[k] + frac * trace[k + 1]
        obliquity = t[:, None] / np.maximum(tt, DT)
        image[:, first:last] += np.where(inside, value * obliquity / np.sqrt(np.maximum(tt, DT)), 0.0)
        hits[:, first:last] += inside
    return image / np.maximum(hits, 1)


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    section, gather, offset = asarray(data["section"]), asarray(data["gather"]), asarray(data["offset"])
    t, x = np.arange(NT) * DT, np.arange(N) * DX
    filtered = agc(bandpass(section, 6.0, 60.0), 60)
    clean = bandpass(gather, 6.0, 60.0)
    velocities = [1500.0 + 50.0 * i for i in range(25)]
    panel = semblance(clean, offset, t, velocities)
    windows = [(60, 140), (160, 240), (260, 340), (360, 440)]
    picks_t, picks_v = [], []
    for a, b in windows:
        best = int(panel[a:b].argmax())
        picks_t.append((a + best // len(velocities)) * DT)
        picks_v.append(velocities[best % len(velocities)])
    vrms = np.interp(t, np.array(picks_t), np.array(picks_v))
    stack = nmo(clean, offset, t, vrms).mean(axis=1)
    interval = np.sqrt(np.maximum(np.diff(vrms ** 2 * t) / DT, 1.0e6))
    image = migrate(filtered, t, x, vrms, 70)
    image *= np.hanning(2 * N)[N // 2:N // 2 + N][None, :] ** 0.25
    spectrum = np.abs(np.fft.rfft(image, axis=0)).mean(axis=1)
    order = np.argsort(-np.abs(image).max(axis=0))[:10]
    return dict(panel=np.asarray(panel), picks=np.asarray(picks_v), vrms=np.asarray(vrms), stack=np.asarray(stack), interval=np.asarray(interval),
                image=np.asarray(image), spectrum=np.asarray(spectrum), order=np.asarray(order), snr=np.asarray(image.std() / np.median(np.abs(image))))
