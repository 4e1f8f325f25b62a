"""Sound: frames by sliding windows, STFT, mel filters, MFCC, median noise floor, harmonic-percussive masks, phase vocoder, overlap-add, pitch. N: samples / 100."""
import numpy
import numpy as np

DEFAULT = 400
RATE, FFT, HOP = 16000, 512, 128


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(26)
    n = 100 * N
    t = numpy.arange(n) / RATE
    f0 = 220 * 2 ** (numpy.floor(t * 4) % 5 / 12)
    phase = 2 * numpy.pi * numpy.cumsum(f0) / RATE
    wave = sum(numpy.sin(h * phase) / h for h in range(1, 6)) * numpy.exp(-3 * (t * 4 % 1))
    wave[::RATE // 2] += 3
    return dict(wave=(wave + 0.02 * rng.normal(size=n)).astype(numpy.float32))


def hz_to_mel(f):
    return 2595 * np.log10(1 + f / 700)


def mel_bank(bands):
    mel = np.linspace(0, float(hz_to_mel(np.array(RATE / 2))), bands + 2)
    hz = 700 * (10 ** (mel / 2595) - 1)
    freqs = np.fft.rfftfreq(FFT, 1 / RATE)
    up = (freqs - hz[:-2, None]) / (hz[1:-1] - hz[:-2])[:, None]
    down = (hz[2:, None] - freqs) / (hz[2:] - hz[1:-1])[:, None]
    bank = np.maximum(0, np.minimum(up, down))
    return bank * (2 / (hz[2:] - hz[:-2]))[:, None]


def stft(x):
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(x, FFT // 2, mode="reflect"), FFT)[::HOP]
    return np.fft.rfft(frames * np.hanning(FFT), axis=1).T


def istft(S, length):
    window = np.hanning(FFT)
    frames = np.fft.irfft(S.T, n=FFT, axis=1) * window
    out = np.zeros(FFT + HOP * (len(frames) - 1))
    weight = np.zeros_like(out)
    r = FFT // HOP
    parts = frames.reshape(len(frames), r, HOP)
    for i in range(r):
        out[i * HOP:(i + len(frames)) * HOP] += parts[:, i].ravel()
        weight[i * HOP:(i + len(frames)) * HOP] += np.tile((window ** 2)[i * HOP:(i + 1) * HOP], len(frames))
    return (out / np.maximum(weight, 1e-8))[FFT // 2:FFT // 2 + length]


def vocoder(S, rate):
    steps = np.arange(0, S.shape[1] - 1, rate)
    low = np.floor(steps).astype(int)
    alpha = steps % 1.0
    mag = (1 - alpha) * np.abs(S[:, low]) + alpha * np.abs(S[:, low + 1])
    advance = np.linspace(0, np.pi * HOP, S.shape[0])[:, None]
    angle = np.angle(S)
    d = angle[:, 1:] - angle[:, :-1] - advance
    d = d - 2 * np.pi * np.round(d / (2 * np.pi))
    total = np.cumsum(np.concatenate([angle[:, :1], (d + advance)[:, low[:-1]]], axis=1), axis=1)
    return mag * np.exp(1j * total)


def running_median(a, size, axis):
    half = size // 2
    pad = [(0, 0), (0, 0)]
    pad[axis] = (half, half)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(a, pad, mode="reflect"), size, axis=axis)
    return np.median(windows, axis=-1)


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    x = asarray(data["wave"])
    x = x / np.abs(x).max()
    pre = np.append(x[0], x[1:] - 0.97 * x[:-1])
    S = stft(x)
    power = np.abs(S) ** 2
    mel = mel_bank(40) @ power
    db = 10 * np.log10(np.maximum(mel, 1e-10))
    db = np.maximum(db, db.max() - 80)
    n = np.arange(40)
    dct = np.cos(np.pi / 40 * np.outer(np.arange(13), n + 0.5)) * np.sqrt(2 / 40)
    dct[0] /= np.sqrt(2)
    mfcc = dct @ db
    mfcc = (mfcc - mfcc.mean(axis=1, keepdims=True)) / (mfcc.std(axis=1, keepdims=True) + 1e-9)
    floor = np.median(np.abs(S), axis=1, keepdims=True)
    gain = np.maximum(1 - 1.5 * floor / np.maximum(np.abs(S), 1e-9), 0.05)
    clean = istft(S * gain, len(x))
    harmonic = running_median(np.abs(S), 17, 1)
    percussive = running_median(np.abs(S), 17, 0)
    mask = harmonic ** 2 / (harmonic ** 2 + percussive ** 2 + 1e-12)
    tonal = istft(S * mask, len(x))
    fast = istft(vocoder(S, 1.5), int(len(x) / 1.5))
    freqs = np.fft.rfftfreq(FFT, 1 / RATE)
    centroid = (freqs[:, None] * power).sum(axis=0) / power.sum(axis=0)
    cumulative = np.cumsum(power, axis=0)
    rolloff = freqs[np.argmax(cumulative >= 0.85 * cumulative[-1], axis=0)]
    flux = np.maximum(np.diff(db, axis=1), 0).mean(axis=0)
    onset = np.flatnonzero((flux[1:-1] > flux[:-2]) & (flux[1:-1] >= flux[2:]) & (flux[1:-1] > flux.mean() + flux.std())) + 1
    # pitch by autocorrelation
    frames = np.lib.stride_tricks.sliding_window_view(x, 1024)[::512]
    F = np.fft.rfft(frames - frames.mean(axis=1, keepdims=True), n=2048)
    ac = np.fft.irfft(np.abs(F) ** 2)[:, :1024]
    ac = ac / np.maximum(ac[:, :1], 1e-9)
    lags = ac[:, 40:320].argmax(axis=1) + 40
    rows = np.arange(len(lags))
    a, b, c = ac[rows, lags - 1], ac[rows, lags], ac[rows, lags + 1]
    lag = lags + 0.5 * (a - c) / (a - 2 * b + c)
    zero = (np.diff(np.signbit(frames), axis=1)).sum(axis=1) / 1024
    rms = np.sqrt(np.mean(frames ** 2, axis=1))
    pitch = np.where(rms > 0.05, RATE / lag, np.nan)
    quantised = np.sign(x) * np.log1p(255 * np.abs(x)) / np.log(256)
    codes = ((quantised + 1) / 2 * 255 + 0.5).astype(np.uint8)
    return dict(mfcc=np.asarray(mfcc), clean=np.asarray(clean), tonal=np.asarray(tonal), fast=np.asarray(np.abs(fast)), centroid=np.asarray(centroid),
                rolloff=np.asarray(rolloff), onset=np.asarray(onset), pitch=np.asarray(np.nanmedian(pitch)), zero=np.asarray(zero), rms=np.asarray(rms),
                codes=np.asarray(np.bincount(codes, minlength=256)), energy=np.asarray(float((pre ** 2).sum())))
