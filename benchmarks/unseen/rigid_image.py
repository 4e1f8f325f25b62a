"""Register overlapping noisy frames of one scene by windowed phase correlation with subpixel refinement, find the
rotation of one frame from its polar spectrum, and build a mosaic; N is the side of a frame in pixels."""
import numpy as np

DEFAULT = 384

FRAMES = 6
UP = 20


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(4242)
    M = 2 * N
    k = numpy.fft.fftfreq(M)
    k2 = k[:, None] ** 2 + k[None, :] ** 2
    spec = numpy.fft.fft2(rng.standard_normal((M, M))) * numpy.exp(-k2 / (2 * 0.09 ** 2)) / (k2 + 1e-4) ** 0.4
    scale = numpy.fft.ifft2(spec).real.std()
    spec /= scale
    shifts = numpy.concatenate([numpy.zeros((1, 2)), rng.uniform(-0.11 * N, 0.11 * N, (FRAMES - 1, 2))])
    c = N // 2
    frames = []
    for dy, dx in shifts:
        moved = numpy.fft.ifft2(spec * numpy.exp(2j * numpy.pi * (k[:, None] * dy + k[None, :] * dx))).real
        frames.append(moved[c:c + N, c:c + N] + 0.05 * rng.standard_normal((N, N)))
    scene = numpy.fft.ifft2(spec).real
    ang = numpy.deg2rad(7.3)
    yy, xx = numpy.indices((N, N)) - (N - 1) / 2
    ys = numpy.cos(ang) * yy - numpy.sin(ang) * xx + M / 2 + 0.137
    xs = numpy.sin(ang) * yy + numpy.cos(ang) * xx + M / 2 + 0.381
    iy, ix = numpy.floor(ys).astype(int), numpy.floor(xs).astype(int)
    fy, fx = ys - iy, xs - ix
    turned = ((1 - fy) * ((1 - fx) * scene[iy, ix] + fx * scene[iy, ix + 1])
              + fy * ((1 - fx) * scene[iy + 1, ix] + fx * scene[iy + 1, ix + 1]))
    turned = turned + 0.05 * rng.standard_normal((N, N))
    return numpy.array(frames), turned, shifts


def cross_power(a, b, window):
    fa = np.fft.fft2((a - a.mean()) * window)
    fb = np.fft.fft2((b - b.mean()) * window)
    r = fa * np.conj(fb)
    mag = np.abs(r)
    return r / (mag + 0.01 * mag.mean())


def parabola(left, mid, right):
    return 0.5 * (left - right) / (left - 2.0 * mid + right)


def phase_shift(a, b, window):
    """Offset (dy, dx) with b(x) = a(x + d), to a small fraction of a pixel, by an upsampled DFT around the peak."""
    n0, n1 = a.shape
    r = cross_power(a, b, window)
    corr = np.fft.ifft2(r).real
    peak = int(np.argmax(corr))
    py, px = peak // n1, peak % n1
    py -= n0 if py > n0 // 2 else 0
    px -= n1 if px > n1 // 2 else 0
    k0, k1 = np.fft.fftfreq(n0), np.fft.fftfreq(n1)
    off = np.arange(-UP - 2, UP + 3) / UP
    low = np.exp(-0.5 * (k0[:, None] ** 2 + k1[None, :] ** 2) / 0.15 ** 2)
    ey = np.exp(2j * np.pi * np.outer(py + off, k0))
    ex = np.exp(2j * np.pi * np.outer(k1, px + off))
    fine = (ey @ (r * low) @ ex).real / (n0 * n1)
    p = int(np.argmax(fine[1:-1, 1:-1]))
    iy, ix = p // (len(off) - 2) + 1, p % (len(off) - 2) + 1
    sy = parabola(fine[iy - 1, ix], fine[iy, ix], fine[iy + 1, ix])
    sx = parabola(fine[iy, ix - 1], fine[iy, ix], fine[iy, ix + 1])
    return py + float(off[iy] + sy / UP), px + float(off[ix] + sx / UP), float(corr.max())


def bilinear(img, ys, xs):
    """Sample img at (ys, xs); also a mask of samples inside it."""
    h, w = img.shape
    inside = (ys >= 0) & (ys <= h - 1) & (xs >= 0) & (xs <= w - 1)
    iy = np.clip(np.floor(ys).astype(np.int64), 0, h - 2)
    ix = np.clip(np.floor(xs).astype(np.int64), 0, w - 2)
    fy, fx = ys - iy, xs - ix
    top = img[iy, ix] * (1 - fx) + img[iy, ix + 1] * fx
    bottom = img[iy + 1, ix] * (1 - fx) + img[iy + 1, ix + 1] * fx
    return np.where(inside, top * (1 - fy) + bottom * fy, 0.0), inside


def polar_spectrum(img, window, radii, angles):
    mag = np.log1p(np.abs(np.fft.fftshift(np.fft.fft2((img - img.mean()) * window))))
    n = img.shape[0]
    ys = n // 2 + radii[:, None] * np.sin(angles)[None, :]
    xs = n // 2 + radii[:, None] * np.cos(angles)[None, :]
    p, _ = bilinear(mag, ys, xs)
    return p - p.mean(axis=1, keepdims=True)


def main(asarray, N, given):
    frames, turned, shifts = map(asarray, given)
    hann = np.hanning(N)
    window = np.outer(hann, hann)
    found, quality = [], []
    for i in range(FRAMES):
        dy, dx, c = phase_shift(frames[0], frames[i], window)
        found.append((dy, dx))
        quality.append(c)
    est = np.array(found)

    # rotation of the turned frame, from circular correlation of polar spectra
    radii = np.arange(N // 24, N // 6) + 0.37
    angles = (np.arange(720) + 0.13) * (np.pi / 720)
    pa, pb = (polar_spectrum(f, window, radii, angles) for f in (frames[0], turned))
    ring = np.fft.irfft(np.sum(np.fft.rfft(pa, axis=1) * np.conj(np.fft.rfft(pb, axis=1)), axis=0), 720)
    ring = ring / np.sqrt(np.sum(pa ** 2) * np.sum(pb ** 2))
    j = int(np.argmax(ring))
    step = j + float(parabola(ring[j - 1], ring[j], ring[(j + 1) % 720]))
    rotation = ((step + 360) % 720 - 360) * 180.0 / 720

    # mosaic on a canvas around frame 0, feathered by the window
    pad = N // 8
    side = N + 2 * pad
    y, x = np.meshgrid(np.arange(side) - pad, np.arange(side) - pad, indexing="ij")
    total, weight, square = np.zeros((side, side)), np.zeros((side, side)), np.zeros((side, side))
    seen = np.zeros((side, side), dtype=np.int32)
    for i, (dy, dx) in enumerate(found):
        val, inside = bilinear(frames[i], y - dy, x - dx)
        feather, _ = bilinear(window + 0.01, y - dy, x - dx)
        total += feather * val
        square += feather * val ** 2
        weight += feather
        seen[inside] += 1
    covered = weight > 0
    mosaic = np.divide(total, np.where(covered, weight, 1.0))
    var = np.where(covered, square / np.where(covered, weight, 1.0) - mosaic ** 2, 0.0)
    return dict(shifts=est[1:], error=float(np.abs(est - shifts).max()) < 0.1, quality=np.array(quality), rotation=rotation,
                ring=ring, mosaic=mosaic, coverage=np.bincount(seen.ravel()), spread=var[seen >= 2].mean(),
                tail=np.percentile(mosaic[covered], np.array([1.0, 50.0, 99.0])))
