"""A pulse-Doppler radar with an array: pulse compression, MTI, Doppler FFT, CFAR by summed areas and by order statistics, peaks, MVDR and MUSIC bearings, alpha-beta tracks. N: range cells."""
import numpy
import numpy as np

DEFAULT = 1536
FRAMES, PULSES, ANTENNAS, CHIRP, TARGETS = 6, 64, 8, 48, 4
GUARD, TRAIN = 2, 6


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(307)
    t = numpy.arange(CHIRP) / CHIRP
    chirp = numpy.exp(1j * numpy.pi * 20 * (t - 0.5) ** 2)
    cube = (rng.normal(size=(FRAMES, PULSES, N, ANTENNAS)) + 1j * rng.normal(size=(FRAMES, PULSES, N, ANTENNAS))) * 0.5
    clutter = (rng.normal(size=(N, 1)) + 1j * rng.normal(size=(N, 1))) * 3 * numpy.exp(-numpy.arange(N) / 150)[:, None]
    cube += clutter * numpy.exp(1j * numpy.pi * numpy.sin(0.1) * numpy.arange(ANTENNAS))
    p, m = numpy.arange(PULSES)[:, None, None], numpy.arange(ANTENNAS)
    for k in range(TARGETS):
        start, speed, bearing = 70 + k * (N - 180) // TARGETS, (-1) ** k * (6 + 5 * k), -0.7 + 0.43 * k
        for f in range(FRAMES):
            at = start + (-1) ** k * (2 + k) * f
            echo = numpy.exp(2j * numpy.pi * speed / PULSES * p) * chirp[:, None] * numpy.exp(1j * numpy.pi * numpy.sin(bearing + 0.02 * f) * m)
            cube[f, :, at:at + CHIRP] += (0.5 + 0.1 * k) * echo
    return dict(cube=cube.astype(numpy.complex64), chirp=chirp.astype(numpy.complex64))


def compress(cube, chirp):
    n = cube.shape[1]
    size = 1 << (n + len(chirp) - 1).bit_length()
    window = np.hamming(len(chirp)).astype(np.float32)
    H = np.conj(np.fft.fft(chirp * window, n=size))
    S = np.fft.fft(cube, n=size, axis=1)
    S *= H[:, None]
    return np.fft.ifft(S, axis=1)[:, :n] / np.float32(float(window.sum()))


def area_sum(a, r):
    """Sum of the (2 r + 1) square around each cell, the edges wrapped in Doppler and mirrored in range."""
    p = np.pad(np.pad(a, ((r + 1, r), (0, 0)), mode="wrap"), ((0, 0), (r + 1, r)), mode="reflect")
    s = p.cumsum(axis=0).cumsum(axis=1)
    w = 2 * r + 1
    return s[w:, w:] - s[:-w, w:] - s[w:, :-w] + s[:-w, :-w]


def cell_average(power, factor):
    outer, inner = area_sum(power, GUARD + TRAIN), area_sum(power, GUARD)
    count = (2 * (GUARD + TRAIN) + 1) ** 2 - (2 * GUARD + 1) ** 2
    noise = (outer - inner) / count
    return power > factor * noise, noise


def ordered_statistic(power, factor):
    half = 8
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(power, ((0, 0), (half, half)), mode="symmetric"), 2 * half + 1, axis=1)
    level = np.sort(windows, axis=-1)[..., 8]
    return power > factor * level, level


def local_peaks(power):
    top = np.ones(power.shape, dtype=bool)
    for i in (-1, 0, 1):
        for j in (-1, 0, 1):
            if i or j:
                top &= power > np.roll(power, (i, j), axis=(0, 1))
    top[:, :3] = False
    top[:, -3:] = False
    return top


def refine(db, i, j):
    """Parabolas through the peak and its neighbours, in both directions."""
    d = db.shape[0]
    centre = db[i, j]
    up, down = db[(i - 1) % d, j], db[(i + 1) % d, j]
    left, right = db[i, j - 1], db[i, j + 1]
    di = 0.5 * (up - down) / (up - 2 * centre + down)
    dj = 0.5 * (left - right) / (left - 2 * centre + right)
    return i + np.clip(di, -0.5, 0.5), j + np.clip(dj, -0.5, 0.5)


def bearings(snapshots, steering):
    """Bartlett, MVDR and MUSIC spectra of each detection (snapshots: detection, sample, antenna)."""
    R = np.einsum("dsa,dsb->dab", snapshots, snapshots.conj()) / snapshots.shape[1]
    flip = R[:, ::-1, ::-1].conj()
    R = 0.5 * (R + flip)
    m = R.shape[-1]
    load = 0.05 * np.trace(R, axis1=1, axis2=2).real / m
    loaded = R + load[:, None, None] * np.eye(m)
    bartlett = np.einsum("ga,dab,gb->dg", steering.conj(), loaded, steering).real
    solved = np.linalg.solve(loaded, np.broadcast_to(steering.T, (len(R),) + steering.T.shape))
    mvdr = 1 / np.einsum("ga,dag->dg", steering.conj(), solved).real
    lam, U = np.linalg.eigh(loaded)
    noise = U[:, :, :-1]
    leak = np.abs(np.einsum("ga,dak->dgk", steering.conj(), noise)) ** 2
    music = 1 / (leak.sum(axis=2) + 1e-3)
    return bartlett, mvdr, music, lam


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    cube, chirp = asarray(data["cube"]), asarray(data["chirp"])
    slow = np.kaiser(PULSES - 2, 6.0).astype(np.float32)
    angles = np.linspace(-1.2, 1.2, 241)
    steering = np.exp(1j * np.pi * np.sin(angles)[:, None] * np.arange(ANTENNAS))
    estimates, maps, detected, agreed, spectra, noises, eigen = [], [], [], [], [], [], []
    track = None
    for f in range(FRAMES):
        y = compress(cube[f], chirp)
        # a three-pulse canceller, then Doppler
        y = y[:-2] - 2 * y[1:-1] + y[2:]
        D = np.fft.fftshift(np.fft.fft(y * slow[:, None, None], n=PULSES, axis=0), axes=0)
        power = (D.real ** 2 + D.imag ** 2).astype(np.float64).mean(axis=2)
        hot, noise = cell_average(power, 4.0)
        also, level = ordered_statistic(power, 4.0)
        peak = local_peaks(power) & hot
        detected.append(float(peak.sum()))
        agreed.append(float((hot & also).sum()))
        strength = np.where(peak, power / noise, 0.0)
        best = np.argsort(strength.ravel())[::-1][:TARGETS]
        i, j = np.unravel_index(best, power.shape)
        db = 10 * np.log10(power + 1e-12)
        fi, fj = refine(db, i, j)
        offsets = np.arange(-1, 2)
        cells = D[(i[:, None, None] + offsets[:, None]) % PULSES, j[:, None, None] + offsets]
        bartlett, mvdr, music, lam = bearings(cells.reshape(TARGETS, 9, ANTENNAS).astype(np.complex128), steering)
        found = np.stack([angles[s.argmax(axis=1)] for s in (bartlett, mvdr, music)], axis=1)
        measure = np.stack([fj, fi - PULSES // 2, (angles * music ** 4).sum(axis=1) / (music ** 4).sum(axis=1)], axis=1)
        # alpha-beta tracks with the nearest measurement, range only
        measure = measure[np.argsort(measure[:, 0])]
        if track is None:
            track, rate = measure.copy(), np.zeros_like(measure)
            gaps = np.zeros((TARGETS, TARGETS))
        else:
            guess = track + rate
            gaps = np.abs(guess[:, 0][:, None] - measure[:, 0][None, :])
            near = gaps.argmin(axis=1)
            miss = np.take_along_axis(gaps, near[:, None], axis=1)[:, 0] > 15
            innovation = np.where(miss[:, None], 0.0, measure[near] - guess)
            track = guess + 0.6 * innovation
            rate = rate + 0.3 * innovation
        estimates.append(np.concatenate([track, rate], axis=1))
        maps.append(db.reshape(PULSES // 4, 4, -1, 8).max(axis=(1, 3)))
        noises.append(np.stack([np.median(noise), np.median(level), noise.mean()]))
        spectra.append(music / music.max(axis=1, keepdims=True))
        eigen.append(lam[:, ::-1] / lam.sum(axis=1, keepdims=True))
    maps = np.stack(maps)
    change = np.abs(np.diff(maps, axis=0)).mean(axis=(1, 2))
    counts, edges = np.histogram(maps, bins=np.linspace(-40, 60, 41))
    tail = 1 - np.cumsum(counts) / maps.size
    return dict(tracks=np.stack(estimates), maps=maps, detected=np.asarray(detected), agreed=np.asarray(agreed), spectra=np.stack(spectra),
                noises=np.stack(noises), eigen=np.stack(eigen), bearings=found, change=change, tail=tail)
