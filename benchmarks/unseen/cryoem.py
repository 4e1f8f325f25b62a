"""Cryo-EM class averaging: CTF phase flip, rotation by polar Fourier correlation, shifts, Wiener average, FRC."""
import numpy as np

DEFAULT = 64            # particle images
BOX = 40


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(8)
    ax = numpy.arange(BOX) - BOX // 2
    yy, xx = numpy.meshgrid(ax, ax, indexing="ij")
    blobs = numpy.array([[6.0, 1.0, 2.4, 1.0], [-5.0, 4.0, 2.0, 0.8], [1.0, -8.0, 1.8, 1.2], [-2.0, 9.0, 1.5, 0.7]])
    angle = rng.uniform(0, 2 * numpy.pi, N)
    shift = rng.normal(0.0, 1.2, (N, 2))
    images = numpy.zeros((N, BOX, BOX))
    for x0, y0, s, a in blobs:
        cx = numpy.cos(angle) * x0 - numpy.sin(angle) * y0 + shift[:, 0]
        cy = numpy.sin(angle) * x0 + numpy.cos(angle) * y0 + shift[:, 1]
        images += a * numpy.exp(-((xx - cx[:, None, None])**2 + (yy - cy[:, None, None])**2) / (2 * s * s))
    defocus = rng.uniform(0.8, 2.2, N)
    f = numpy.fft.fftfreq(BOX)
    k2 = f[:, None]**2 + f[None, :]**2
    ctf = -numpy.sin(60.0 * defocus[:, None, None] * k2 + 0.1)
    images = numpy.fft.ifft2(numpy.fft.fft2(images) * ctf).real
    images += rng.normal(0.0, 0.08, images.shape)
    start = numpy.exp(-((xx - 5)**2 + (yy - 1)**2) / 12.0) + numpy.exp(-((xx - 1)**2 + (yy + 7)**2) / 12.0)
    return {"images": images, "defocus": defocus, "start": start, "half": rng.permutation(N) % 2}


def frequencies(n):
    f = np.fft.fftfreq(n)
    return f[:, None], f[None, :]


def interpolate(stack, rows, cols):
    """Bilinear samples of each image of a stack; rows and cols are (n, ...) or (...)."""
    n = stack.shape[-1]
    rows = np.clip(rows, 0.0, n - 1.001)
    cols = np.clip(cols, 0.0, n - 1.001)
    i = rows.astype(int)
    j = cols.astype(int)
    a = rows - i
    b = cols - j
    k = np.arange(len(stack)).reshape((-1,) + (1,) * (i.ndim - 1))
    return ((1 - a) * (1 - b) * stack[k, i, j] + a * (1 - b) * stack[k, i + 1, j]
            + (1 - a) * b * stack[k, i, j + 1] + a * b * stack[k, i + 1, j + 1])


def rotate(stack, angles):
    n = stack.shape[-1]
    c = n // 2
    y, x = np.mgrid[:n, :n] - c
    cos = np.cos(angles)[:, None, None]
    sin = np.sin(angles)[:, None, None]
    rows = c + sin * x + cos * y
    cols = c + cos * x - sin * y
    mask = x**2 + y**2 < (c - 1)**2
    return interpolate(stack, rows, cols) * mask


def translate(stack, shifts):
    fy, fx = frequencies(stack.shape[-1])
    ramp = np.exp(-2j * np.pi * (fy * shifts[:, 0, None, None] + fx * shifts[:, 1, None, None]))
    return np.fft.ifft2(np.fft.fft2(stack) * ramp).real


def polar(stack, nr=14, na=72):
    n = stack.shape[-1]
    r = np.linspace(2.0, n / 2 - 3.0, nr)
    phi = 2.0 * np.pi * np.arange(na) / na
    rows = n // 2 + r[:, None] * np.sin(phi)
    cols = n // 2 + r[:, None] * np.cos(phi)
    p = interpolate(stack, np.broadcast_to(rows, (len(stack), nr, na)), np.broadcast_to(cols, (len(stack), nr, na)))
    return p * np.sqrt(r)[:, None]


def best_angle(stack, reference):
    a = np.fft.rfft(polar(stack), axis=-1)
    b = np.fft.rfft(polar(reference[None]), axis=-1)
    corr = np.fft.irfft((a * b.conj()).sum(axis=1), axis=-1)
    na = corr.shape[-1]
    best = corr.argmax(axis=1)
    k = np.arange(len(stack))
    lo, mid, hi = corr[k, (best - 1) % na], corr[k, best], corr[k, (best + 1) % na]
    offset = 0.5 * (lo - hi) / (lo - 2 * mid + hi)
    return 2.0 * np.pi * (best + offset) / na


def best_shift(stack, reference, limit=5):
    n = stack.shape[-1]
    corr = np.fft.ifft2(np.fft.fft2(stack).conj() * np.fft.fft2(reference)).real
    corr = np.fft.fftshift(corr, axes=(1, 2))
    c = n // 2
    window = corr[:, c - limit:c + limit + 1, c - limit:c + limit + 1]
    flat = window.reshape(len(stack), -1)
    flat_best = np.argmax(flat, axis=1)
    return np.stack(np.divmod(flat_best, 2 * limit + 1), axis=1) - limit, flat.max(axis=1)


def frc(a, b):
    n = a.shape[0]
    fy, fx = frequencies(n)
    ring = np.rint(np.hypot(fy, fx) * n).astype(int).ravel()
    A, B = np.fft.fft2(a).ravel(), np.fft.fft2(b).ravel()
    cross = np.bincount(ring, weights=(A * B.conj()).real)
    pa = np.bincount(ring, weights=np.abs(A)**2)
    pb = np.bincount(ring, weights=np.abs(B)**2)
    return (cross / np.sqrt(pa * pb))[:n // 2]


def main(asarray, N, data):
    images = asarray(data["images"])
    defocus = asarray(data["defocus"])
    half = asarray(data["half"])
    reference = asarray(data["start"])
    fy, fx = frequencies(BOX)
    k2 = fy**2 + fx**2
    ctf = -np.sin(60.0 * defocus[:, None, None] * k2 + 0.1)

    images = images - images.mean(axis=(1, 2), keepdims=True)
    images /= images.std(axis=(1, 2), keepdims=True)
    flipped = np.fft.ifft2(np.fft.fft2(images) * np.sign(ctf) * np.exp(-k2 / (2 * 0.22**2))).real

    shifts = np.zeros((N, 2))
    scores = np.zeros(N)
    history = []
    for iteration in range(8):
        centred = translate(flipped, shifts)
        angles = best_angle(centred, reference)
        turned = rotate(centred, angles)
        step, scores = best_shift(turned, reference)
        # the step is in the reference's frame: turn it back into the image's
        back = np.stack([np.cos(angles) * step[:, 0] + np.sin(angles) * step[:, 1],
                         -np.sin(angles) * step[:, 0] + np.cos(angles) * step[:, 1]], axis=1)
        shifts = np.clip(shifts + 0.5 * back, -6.0, 6.0)
        good = scores >= np.percentile(scores, 20)
        new = turned[good].mean(axis=0)
        new -= new.mean()
        change = np.linalg.norm(new - reference) / np.linalg.norm(new)
        history.append(float(change))
        reference = new
        if change < 0.02:
            break

    final = rotate(translate(flipped, shifts), angles)
    even, odd = final[half == 0].mean(axis=0), final[half == 1].mean(axis=0)
    curve = frc(even, odd)
    below = np.flatnonzero(curve < 0.143)
    cutoff = int(below[0]) if below.size else len(curve)
    weight = np.sum(ctf**2, axis=0)
    wiener = np.fft.ifft2(np.fft.fft2(final.sum(axis=0)) / (weight + 0.1 * weight.max())).real
    u, s, vt = np.linalg.svd(final.reshape(N, -1) - final.reshape(N, -1).mean(axis=0), full_matrices=False)
    return {"history": np.array(history), "frc": curve, "cutoff": cutoff, "average": reference,
            "wiener": wiener, "scores": scores, "shifts": shifts, "angles": np.unwrap(np.sort(angles)),
            "variance": s[:8]**2 / np.sum(s**2)}
