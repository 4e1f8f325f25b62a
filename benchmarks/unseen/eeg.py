"""EEG: line noise removed, whitening, FastICA, artefact components rejected, epochs and evoked response, Welch spectra, coherence, Morlet wavelets, cluster statistic by sign flips. N: samples."""
import numpy
import numpy as np

DEFAULT = 150000
CHANNELS, RATE, SOURCES, FLIPS = 24, 250.0, 12, 100


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(1924)
    t = numpy.arange(N) / RATE
    events = numpy.arange(250, N - 300, 260) + rng.integers(0, 40, len(range(250, N - 300, 260)))
    s = rng.laplace(size=(SOURCES, N)) * 0.6
    s[0] = 6 * (rng.random(N) < 0.002)
    s[0] = numpy.convolve(s[0], numpy.hanning(60), mode="same")                   # blinks
    s[1] = 1.5 * numpy.sin(2 * numpy.pi * 10 * t + numpy.cumsum(rng.normal(0, 0.05, N))) * (1 + numpy.sin(0.6 * t))
    s[2] = numpy.roll(s[1], 8) + 0.3 * rng.normal(size=N)
    s[3] = numpy.sign(numpy.sin(2 * numpy.pi * 1.1 * t)) * numpy.abs(numpy.sin(2 * numpy.pi * 1.1 * t)) ** 30 * 5
    wave = numpy.exp(-((numpy.arange(150) - 75) / 15.0) ** 2) * 2.5
    for e in events:
        s[4, e:e + 150] += wave * (0.7 + 0.6 * rng.random())
    mixing = rng.normal(size=(CHANNELS, SOURCES))
    x = mixing @ s + 0.8 * numpy.sin(2 * numpy.pi * 50 * t) + 0.2 * rng.normal(size=(CHANNELS, N)) + numpy.cumsum(rng.normal(0, 0.01, (CHANNELS, N)), axis=1)
    return dict(x=(x * 10).astype(numpy.float32), events=events, W=rng.normal(size=(SOURCES, SOURCES)), flips=rng.choice([-1.0, 1.0], (FLIPS, len(events))))


def clean(x, low=1.0, high=45.0):
    n = x.shape[1]
    f = np.fft.rfftfreq(n, 1 / RATE)
    gain = 1 / (1 + np.exp(-(f - low) * 8)) * (1 / (1 + np.exp((f - high) * 2)))
    gain[np.abs(f - 50) < 1.0] = 0
    x = x - np.linspace(0, 1, n) * (x[:, -1:] - x[:, :1])
    return np.fft.irfft(np.fft.rfft(x, axis=1) * gain, n=n, axis=1)


def whiten(x, k):
    mean = x.mean(axis=1, keepdims=True)
    x = x - mean
    w, V = np.linalg.eigh(x @ x.T / x.shape[1])
    w, V = w[::-1][:k], V[:, ::-1][:, :k]
    V = V * np.sign(V[0])
    K = (V / np.sqrt(w)).T
    return K @ x, K, V * np.sqrt(w), w


def decorrelate(W):
    U, s, Vt = np.linalg.svd(W, full_matrices=False)
    return U @ Vt


def fastica(z, W, rounds=60, tolerance=1e-5):
    """Symmetric FastICA with the log-cosh contrast on every third sample."""
    z = z[:, ::3]
    W = decorrelate(W)
    trace = []
    for _ in range(rounds):
        y = np.tanh(W @ z)
        new = decorrelate(y @ z.T / z.shape[1] - (1 - y ** 2).mean(axis=1)[:, None] * W)
        change = np.abs(np.abs((new * W).sum(axis=1)) - 1).max()
        W = new
        trace.append(change.item())
        if change < tolerance:
            break
    return W, trace


def kurtosis(s):
    c = s - s.mean(axis=1, keepdims=True)
    return (c ** 4).mean(axis=1) / (c ** 2).mean(axis=1) ** 2 - 3


def frames(x, size, hop):
    start = np.arange(0, x.shape[-1] - size + 1, hop)
    return x[..., start[:, None] + np.arange(size)]


def spectra(x, size=512):
    """Welch's power and the coherence and phase of all pairs of channels."""
    part = frames(x, size, size // 2)
    part = (part - part.mean(axis=-1, keepdims=True)) * np.hanning(size)
    F = np.fft.rfft(part, axis=-1)[..., :size // 5]
    S = np.einsum("itf,jtf->fij", F, F.conj()) / F.shape[1]
    power = np.diagonal(S, axis1=1, axis2=2).real
    coherence = np.abs(S) ** 2 / (power[:, :, None] * power[:, None, :])
    f = np.fft.rfftfreq(size, 1 / RATE)[:size // 5]
    return f, power.T, coherence, np.imag(S) / np.sqrt(power[:, :, None] * power[:, None, :])


def morlet(x, freqs, cycles=5.0):
    n = x.shape[-1]
    X = np.fft.fft(x, axis=-1)
    f = np.fft.fftfreq(n, 1 / RATE)
    out = []
    for k in freqs:
        width = k / cycles
        out.append(np.abs(np.fft.ifft(X * (2 * np.exp(-0.5 * ((f - k) / width) ** 2) * (f > 0)), axis=-1)) ** 2)
    return np.stack(out, axis=-2)


def cluster_mass(t, threshold):
    """The largest sum of t over runs above the threshold along the last axis."""
    over = np.where(t > threshold, t, 0.0)
    total = np.cumsum(over, axis=-1)
    best = np.zeros(t.shape[:-1])
    run = np.zeros(t.shape[:-1])
    for k in range(t.shape[-1]):
        run = (run + over[..., k]) * (over[..., k] > 0)
        best = np.maximum(best, run)
    return best, total[..., -1]


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    x, events, W, flips = (asarray(data[k]) for k in ("x", "events", "W", "flips"))
    x = clean(x.astype(np.float64))
    x -= x.mean(axis=0)
    z, K, back, w = whiten(x, SOURCES - 1)
    W, trace = fastica(z, W[:SOURCES - 1, :SOURCES - 1])
    s = W @ z
    k = kurtosis(s)
    f, power, _, _ = spectra(s)
    low = power[:, f < 4].sum(axis=1) / power.sum(axis=1)
    bad = k > k.mean() + 1.2 * k.std()
    s[bad] = 0
    x = back @ (W.T @ s)
    # epochs, without the wildest ones
    epoch = x[:, events[:, None] + np.arange(-50, 200)].transpose(1, 0, 2)
    epoch -= epoch[:, :, :50].mean(axis=2, keepdims=True)
    swing = (epoch.max(axis=2) - epoch.min(axis=2)).max(axis=1)
    keep = swing < np.percentile(swing, 95)
    epoch = epoch[keep]
    evoked = epoch.mean(axis=0)
    gfp = evoked.std(axis=0)
    peak = int(gfp.argmax())
    topography = evoked[:, peak] / np.abs(evoked[:, peak]).max()
    best = int(np.abs(evoked).max(axis=1).argmax())
    # sign flips of the epochs: the cluster statistic of the strongest channel
    one = epoch[:, best] * np.sign(evoked[best, peak])
    signs = np.concatenate([np.ones((1, len(one))), flips[:, keep]])
    mean = signs @ one / len(one)
    sd = np.sqrt(np.maximum((one ** 2).mean(axis=0) - mean ** 2, 1e-12) / len(one))
    mass, area = cluster_mass(mean / sd, 2.5)
    p = (1 + (mass[1:] >= mass[0]).sum()) / (1 + FLIPS)
    f, power, coherence, lagged = spectra(x)
    alpha = (f >= 8) & (f < 12)
    band = coherence[alpha].mean(axis=0)
    network = band > np.percentile(band, 80)
    degree = network.sum(axis=1) - 1
    laplacian = np.diag(degree.astype(float)) - (network & ~np.eye(CHANNELS, dtype=bool))
    tfr = morlet(epoch[:, best], np.array([4.0, 6.0, 8.0, 10.0, 13.0, 18.0, 25.0, 35.0]))
    base = tfr[..., 5:45].mean(axis=(0, 2))
    induced = 10 * np.log10(tfr.mean(axis=0) / base[:, None])
    return dict(w=w, rounds=len(trace), kurtosis=np.sort(k), low=np.sort(low), bad=bad.sum(), evoked=evoked, gfp=gfp, peak=peak, topography=topography,
                kept=keep.sum(), p=p, mass=mass, area=area[0],
                power=np.log10(power), coherence=band, lag=np.abs(lagged[alpha]).max(axis=0), degree=np.sort(degree),
                connectivity=np.linalg.eigvalsh(laplacian), induced=induced)
