"""Protein NMR with non-uniform sampling.

Non-uniform sampling restored by soft thresholds, States processing of 2-D spectra, automatic phase, baseline, peaks,
relaxation rates. N: points of the direct dimension.
"""
import numpy as np

DEFAULT = 512
INDIRECT, PEAKS, DELAYS = 128, 46, (0.02, 0.06, 0.12, 0.2, 0.32, 0.5, 0.8, 1.2)


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(1946)
    fx, fy = rng.uniform(-0.36, 0.36, PEAKS), rng.uniform(-0.4, 0.4, PEAKS)
    amp, R = rng.uniform(0.6, 1.6, PEAKS), rng.uniform(0.9, 3.2, PEAKS)
    wx, wy = rng.uniform(4, 8, PEAKS) / N, rng.uniform(2.0, 3.5, PEAKS) / INDIRECT
    tx, ty = numpy.arange(N), numpy.arange(INDIRECT)
    planes = []
    for delay in DELAYS:
        a = amp * numpy.exp(-R * delay)
        direct = numpy.exp((2j * numpy.pi * fx - wx)[:, None] * tx)
        decay = numpy.exp(-wy[:, None] * ty)
        fid = numpy.stack([(a[:, None] * numpy.cos(2 * numpy.pi * fy[:, None] * ty) * decay).T @ direct,
                           (a[:, None] * numpy.sin(2 * numpy.pi * fy[:, None] * ty) * decay).T @ direct])
        fid = fid + 0.35 * numpy.exp(-tx * 0.7)                 # dead time
        fid += 0.25 * (rng.normal(size=fid.shape) + 1j * rng.normal(size=fid.shape))
        planes.append(fid * numpy.exp(1j * (0.7 + 0.0 * tx)))
    chance = numpy.exp(-1.5 * ty / INDIRECT)
    chance[:8] *= 50
    taken = numpy.sort(rng.choice(INDIRECT, INDIRECT * 5 // 8, replace=False, p=chance / chance.sum()))
    return numpy.stack(planes), taken


def window(n, kind, lb=0.0):
    t = np.arange(n) / n
    if kind == "sine":
        return np.sin(np.pi * (0.5 + 0.48 * t))**2
    return np.exp(-lb * t) * np.where(t > 0.95, np.cos(0.5 * np.pi * (t - 0.95) / 0.05), 1.0)


def phase(spec, p0, p1):
    n = spec.shape[-1]
    return spec * np.exp(1j * (p0 + p1 * (np.arange(n) / n - 0.5)))


def entropy(spec, p0, p1):
    """Chen's measure: entropy of the derivative with a penalty on negative points."""
    re = phase(spec, p0, p1).real
    d = np.abs(np.diff(re, axis=-1))
    h = d / d.sum(axis=-1, keepdims=True)
    negative = np.minimum(re, 0.0)
    return (-(h * np.log(h + 1e-12)).sum(axis=-1) + 900.0 * (negative**2).sum(axis=-1) / (re**2).sum(axis=-1)).mean()


def autophase(spec):
    p0 = np.linspace(-np.pi, np.pi, 25)[:-1]
    best = int(np.stack([entropy(spec, p, 0.0) for p in p0.tolist()]).argmin())
    point, stride = [float(p0[best]), 0.0], [0.15, 0.3]
    value = float(entropy(spec, *point))
    for _ in range(40):                                         # pattern search
        moved = False
        for axis in range(2):
            for sign in (-1, 1):
                trial = list(point)
                trial[axis] += sign * stride[axis]
                score = float(entropy(spec, *trial))
                if score < value - 1e-7:
                    point, value, moved = trial, score, True
                    break
        if not moved:
            stride = [0.5 * s for s in stride]
            if stride[0] < 2e-3:
                break
    return point, value


def baseline(rows, order=5, rounds=6):
    """Polynomials of all rows at once by weighted normal equations; points above the curve lose their weight."""
    n = rows.shape[-1]
    x = np.linspace(-1.0, 1.0, n)
    basis = np.stack([np.cos(k * np.arccos(x)) for k in range(order + 1)])
    w = np.ones_like(rows)
    for _ in range(rounds):
        A = np.einsum("in,rn,jn->rij", basis, w, basis, optimize=True)
        c = np.linalg.solve(A, ((w * rows) @ basis.T)[..., None])[..., 0]
        r = rows - c @ basis
        s = 1.4826 * np.median(np.abs(r), axis=-1, keepdims=True)
        w = np.where(r > 2.0 * s, 1e-3, np.where(r < -3.0 * s, 0.1, 1.0))
    return r


def restore(pair, taken, rounds=30):
    """Iterative soft thresholding along the indirect time: (2, t1, points) with only some t1 measured."""
    z = np.zeros(pair.shape[1:], dtype=complex)
    data = pair[0][taken].real + 1j * pair[1][taken].real
    z[taken] = data
    level = 0.98 * np.abs(np.fft.fft(z, axis=0)).max(axis=0, keepdims=True)
    found = np.zeros_like(z)
    for _ in range(rounds):
        spec = np.fft.fft(z, axis=0)
        size = np.abs(spec)
        found += spec * np.maximum(1.0 - level / np.maximum(size, 1e-12), 0.0)
        back = np.fft.ifft(found, axis=0)
        z[taken] = data - back[taken]
        level = level * 0.88
    back = np.fft.ifft(found, axis=0)
    back[taken] = data
    return back


def local_maxima(s, threshold):
    centre = s[1:-1, 1:-1]
    top = centre > threshold
    for dy in (0, 1, 2):
        for dx in (0, 1, 2):
            if (dy, dx) != (1, 1):
                other = s[dy:dy + centre.shape[0], dx:dx + centre.shape[1]]
                top &= (centre > other) if (dy, dx) > (1, 1) else (centre >= other)
    y, x = np.nonzero(top)
    return y + 1, x + 1


def main(asarray, N, given):
    fids, taken = map(asarray, given)
    apod = window(N, "sine")
    apod[0] *= 0.5
    direct = np.fft.fftshift(np.fft.fft(fids * apod, 2 * N, axis=-1), axes=-1)
    (p0, p1), quality = autophase(direct[0, 0, :4])
    direct = phase(direct, p0, p1)
    keep = slice(N // 8, 2 * N - N // 8)
    direct = direct[..., keep]
    planes = []
    win = window(INDIRECT, "gauss", 2.0)[:, None]
    for pair in direct:
        full = restore(pair, taken) * win
        full[0] *= 0.5
        spec = np.fft.fftshift(np.fft.fft(full, 4 * INDIRECT, axis=0), axes=0).real
        planes.append(baseline(spec))
    planes = np.stack(planes)

    first = planes[0]
    noise = 1.4826 * np.median(np.abs(first - np.median(first)))
    y, x = local_maxima(first, 0.12 * float(first.max()))
    height = first[y, x]
    order = np.argsort(-height, kind="stable")[:PEAKS]
    y, x = y[order], x[order]
    dy, dx = np.arange(-3, 4)[:, None], np.arange(-4, 5)
    rows = np.clip(y[:, None, None] + dy, 0, first.shape[0] - 1)
    cols = np.clip(x[:, None, None] + dx, 0, first.shape[1] - 1)
    volume = planes[:, rows, cols].sum(axis=(2, 3)).T
    rate = -np.polyfit(np.array(DELAYS), np.log(np.maximum(volume, 1e-3 * volume.max())).T, 1)[0]

    return dict(phase=np.array([p0, p1]), quality=quality, noise=noise, position=np.stack([y, x]),
                height=first[y, x] / noise, volume=volume, decay=rate, projection=first.max(axis=0)[::16])
