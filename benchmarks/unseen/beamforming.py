"""Microphone arrays: short-time spectra, delay-and-sum, Capon and MUSIC maps, and a beamformed signal.

N: thousands of samples of each microphone.
"""
import numpy as np

DEFAULT = 400
RATE, SOUND, FRAME, HOP = 16000.0, 343.0, 512, 256
MICS = 12


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(440)
    n = N * 1000
    ring = numpy.arange(MICS) * 2 * numpy.pi / MICS
    place = 0.12 * numpy.column_stack([numpy.cos(ring), numpy.sin(ring)]) * rng.uniform(0.6, 1.0, (MICS, 1))
    f = numpy.fft.rfftfreq(n, 1 / RATE)
    sound = numpy.zeros((MICS, n))
    t = numpy.arange(n) / RATE
    for k, angle in enumerate((0.7, 2.4, -1.3)):
        envelope = numpy.clip(numpy.sin(2 * numpy.pi * (1.3 + 0.4 * k) * t + k), 0, None)
        s = envelope * numpy.cumsum(rng.normal(size=n))
        spec = numpy.fft.rfft(s) * (f > 250) * (f < 5500)
        s = numpy.fft.irfft(spec, n)
        s /= s.std()
        if k == 0:
            first = s
        delay = -(place @ numpy.array([numpy.cos(angle), numpy.sin(angle)])) / SOUND
        sound += numpy.fft.irfft(numpy.fft.rfft(s) * numpy.exp(-2j * numpy.pi * f * delay[:, None]), n)
    sound += rng.normal(0, 0.15, sound.shape)
    return place, sound, first


def stft(x):
    """Frames along the last axis but one, bins along the last."""
    count = 1 + (x.shape[-1] - FRAME) // HOP
    where = np.arange(count)[:, None] * HOP + np.arange(FRAME)
    return np.fft.rfft(x[..., where] * np.hanning(FRAME + 1)[:-1], axis=-1)


def istft(spec, n):
    frames = np.fft.irfft(spec, FRAME, axis=-1)
    out = np.zeros(n)
    for half in range(2):                     # even frames tile the time axis, and odd ones do
        some = frames[half::2].ravel()
        out[half * HOP:half * HOP + len(some)] += some
    return out


def steering(place, freq, angles):
    look = np.stack([np.cos(angles), np.sin(angles)])
    delay = -(place @ look) / SOUND                                       # mics, angles
    return np.exp(-2j * np.pi * freq[:, None, None] * delay.T[None])      # bins, angles, mics


def peaks(spectrum, count, apart=8):
    """Largest local maxima on the circle, each at least some cells from greater ones."""
    left = spectrum.copy()
    n, found = len(left), []
    for _ in range(count):
        k = int(left.argmax())
        a, b, c = (float(spectrum[(k + d) % n]) for d in (-1, 0, 1))
        found.append(k + 0.5 * (a - c) / (a - 2 * b + c))
        left[np.arange(k - apart, k + apart + 1) % n] = -np.inf
    return np.sort(np.array(found))


def capon_weights(cov, target):
    """Bins, mics: the distortionless weights for one steering vector a bin."""
    solved = np.linalg.solve(cov, target[..., None])[..., 0]
    return solved / np.einsum("fm,fm->f", target.conj(), solved)[:, None]


def snr(reference, estimate):
    gain = (reference * estimate).sum() / (reference**2).sum()
    return 10 * np.log10(((gain * reference)**2).sum() / ((estimate - gain * reference)**2).sum())


def main(asarray, N, given):
    place, sound, clean = (asarray(g) for g in given)
    n = sound.shape[1]
    spec = stft(sound)                                                     # mics, frames, bins
    freq = np.fft.rfftfreq(FRAME, 1 / RATE)
    use = (freq > 400) & (freq < 4000)
    X, f = spec[:, :, use].transpose(2, 0, 1).copy(), freq[use]            # bins, mics, frames
    frames = X.shape[2]
    cov = X @ X.conj().transpose(0, 2, 1) / frames
    cov += 1e-2 * np.trace(cov, axis1=1, axis2=2)[:, None, None] * np.eye(MICS) / MICS

    angles = np.arange(360) * (2 * np.pi / 360)
    A = steering(place, f, angles)
    plain = np.einsum("fam,fmn,fan->fa", A.conj(), cov, A, optimize=True).real / MICS**2
    capon = 1.0 / ((A.conj() @ np.linalg.inv(cov)) * A).sum(axis=2).real
    values, vectors = np.linalg.eigh(cov)
    music = 1.0 / (np.abs(A.conj() @ vectors[:, :, :MICS - 3])**2).sum(axis=2)
    maps = np.stack([(m / m.sum(axis=1, keepdims=True)).sum(axis=0) for m in (plain, capon, music)])
    found = np.stack([peaks(m, 3) for m in maps])

    # blind count of sources by the description length
    v = values[:, ::-1]
    cost = []
    for k in range(MICS - 1):
        rest = v[:, k:]
        ratio = np.log(rest).mean(axis=1) - np.log(rest.mean(axis=1))
        cost.append(-frames * (MICS - k) * ratio + 0.5 * k * (2 * MICS - k) * np.log(frames))
    order = np.stack(cost, axis=1).argmin(axis=1)

    # steer at the first source, all bins
    target = float(found[2, 0]) * 2 * np.pi / 360
    full = spec.transpose(2, 0, 1)
    every = full @ full.conj().transpose(0, 2, 1) / frames
    every += (1e-3 + 2e-2 * np.trace(every, axis1=1, axis2=2).real / MICS)[:, None, None] * np.eye(MICS)
    aim = steering(place, freq, np.array([target]))[:, 0]
    weight = capon_weights(every, aim)
    quality, outputs = [], []
    for w in (np.where(np.arange(MICS) == 0, 1.0, 0.0) * np.ones((len(freq), 1)), aim / MICS, weight):
        y = np.einsum("fm,mtf->tf", w.conj(), spec)
        signal = istft(y, n)
        outputs.append(signal)
        quality.append(snr(clean[FRAME:-2 * FRAME], signal[FRAME:-2 * FRAME]))
    pattern = np.abs(np.einsum("fm,fam->fa", weight[use].conj(), A))
    # tracking: the steered power in blocks of time, smoothed, and the direction of each block
    blocks = X[:, :, :frames // 12 * 12].reshape(len(f), MICS, -1, 12)
    power = np.stack([(np.abs(A[::4].conj() @ blocks[::4, :, b])**2).sum(axis=(0, 2)) for b in range(blocks.shape[2])])
    power = 0.25 * np.roll(power, 1, axis=1) + 0.5 * power + 0.25 * np.roll(power, -1, axis=1)
    loud = 10 * np.log10((outputs[2][:n // 800 * 800].reshape(-1, 800)**2).mean(axis=1) + 1e-9)
    return dict(maps=maps, found=found, order=np.bincount(order, minlength=MICS), quality=np.stack(quality),
                white=np.median(1 / (np.abs(weight)**2).sum(axis=1)), pattern=pattern.mean(axis=0),
                directions=np.bincount(power.argmax(axis=1) // 30, minlength=12),
                loudness=np.percentile(loud, [10, 50, 90]), eigenvalues=np.median(v, axis=0), signal=outputs[2][::10])
