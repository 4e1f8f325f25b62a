"""Full waveform inversion of a seismic line: acoustic waves of all shots at once, adjoint state gradient, smoothing and preconditioning, Barzilai-Borwein steps. N: cells across."""
import numpy
import numpy as np

DEFAULT = 150
SHOTS, DEPTH, NT, DT, DX, PEAK, BORDER, ROUNDS = 5, 60, 220, 0.0016, 10.0, 12.0, 12, 2


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(302)
    z, x = numpy.mgrid[:DEPTH, :N]
    smooth = 1800.0 + 18.0 * z
    true = smooth + 250 * numpy.exp(-((z - 22) ** 2 / 30 + (x - N / 2) ** 2 / 200)) - 200 * numpy.exp(-((z - 18) ** 2 / 25 + (x - N / 4) ** 2 / 90))
    return dict(true=true, start=smooth, noise=rng.normal(size=(NT, SHOTS, N)) * 1e-3)


class Survey:
    def __init__(self, nx):
        self.nx = nx
        self.sources = np.linspace(BORDER, nx - BORDER - 1, SHOTS).astype(int)
        self.shots = np.arange(SHOTS)
        t = np.arange(NT) * DT - 1.2 / PEAK
        arg = (np.pi * PEAK * t) ** 2
        self.wavelet = (1 - 2 * arg) * np.exp(-arg)
        edge = np.minimum(np.arange(nx), np.arange(nx)[::-1])
        floor = np.arange(DEPTH)[::-1]
        depth = np.minimum(edge[None, :], floor[:, None])
        self.sponge = np.where(depth < BORDER, np.exp(-(0.06 * (BORDER - depth)) ** 2), 1.0)

    def laplacian(self, p, out):
        out[:] = -5.0 * p
        out[:, 2:-2] += (4 / 3) * (p[:, 1:-3] + p[:, 3:-1]) - (1 / 12) * (p[:, :-4] + p[:, 4:])
        out[:, :, 2:-2] += (4 / 3) * (p[:, :, 1:-3] + p[:, :, 3:-1]) - (1 / 12) * (p[:, :, :-4] + p[:, :, 4:])
        out[:, :2] = out[:, -2:] = 0
        out[:, :, :2] = out[:, :, -2:] = 0
        return out

    def forward(self, speed, keep=False):
        c2 = (speed * DT / DX) ** 2
        now = np.zeros((SHOTS, DEPTH, self.nx))
        before, lap = np.zeros_like(now), np.zeros_like(now)
        record = np.zeros((NT, SHOTS, self.nx))
        history = np.zeros((NT, SHOTS, DEPTH, self.nx)) if keep else None
        for n in range(NT):
            self.laplacian(now, lap)
            if keep:
                history[n] = lap
            lap *= c2
            lap += 2 * now
            lap -= before * self.sponge
            lap[self.shots, 3, self.sources] += self.wavelet[n]
            lap *= self.sponge
            before, now, lap = now, lap, before
            record[n] = now[:, 4, :]
        return record, history

    def adjoint(self, speed, residual, history):
        c2 = (speed * DT / DX) ** 2
        now = np.zeros((SHOTS, DEPTH, self.nx))
        before, lap = np.zeros_like(now), np.zeros_like(now)
        image = np.zeros((DEPTH, self.nx))
        light = np.zeros((DEPTH, self.nx))
        for n in range(NT - 1, -1, -1):
            before[:, 4, :] += residual[n]
            image += np.einsum("szx,szx->zx", before, history[n])
            light += (history[n] ** 2).sum(axis=0)
            self.laplacian(before * c2, lap)
            lap += 2 * before
            lap -= now * self.sponge
            lap *= self.sponge
            now, before, lap = before, lap, now
        return 2 * speed * (DT / DX) ** 2 * image, light


def gaussian(field, sigma):
    r = int(3 * sigma)
    k = np.exp(-np.arange(-r, r + 1) ** 2 / (2 * sigma ** 2))
    k /= k.sum()
    for axis in (0, 1):
        pad = [(0, 0), (0, 0)]
        pad[axis] = (r, r)
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(field, pad, mode="edge"), 2 * r + 1, axis=axis)
        field = windows @ k
    return field


def mute(record, survey, speed):
    """Take away the direct wave: a ramp that opens after it has passed."""
    offset = np.abs(np.arange(survey.nx)[None, :] - survey.sources[:, None]) * DX
    arrival = offset / float(speed[4].mean()) + 2.2 / PEAK
    t = (np.arange(NT) * DT)[:, None, None]
    return record * np.clip((t - arrival) / 0.02, 0.0, 1.0)


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    true, model = asarray(data["true"]), asarray(data["start"]).copy()
    survey = Survey(true.shape[1])
    observed, _ = survey.forward(true)
    observed = observed + asarray(data["noise"]) * np.abs(observed).max()
    observed = mute(observed, survey, model)
    taper = np.clip((np.arange(DEPTH) - 8) / 6, 0, 1)[:, None]
    misfit, last_model, last_grad = [], None, None
    for k in range(ROUNDS):
        synthetic, history = survey.forward(model, keep=True)
        residual = mute(mute(synthetic, survey, model) - observed, survey, model)
        misfit.append(0.5 * (residual ** 2).sum())
        grad, light = survey.adjoint(model, residual, history)
        grad = gaussian(grad * taper / (light / light.max() + 0.02), 2.0)
        if last_grad is None:
            step = 25.0 / np.abs(grad).max()
        else:
            s, y = model - last_model, grad - last_grad
            step = np.clip((s * s).sum() / np.abs((s * y).sum()), 5.0 / np.abs(grad).max(), 40.0 / np.abs(grad).max())
        last_model, last_grad = model, grad
        model = np.clip(model - step * grad, 1500.0, 3500.0)
    final, _ = survey.forward(model)
    residual = mute(final, survey, model) - observed
    misfit.append(0.5 * (residual ** 2).sum())
    spectrum = np.abs(np.fft.rfft(residual, axis=0)).mean(axis=(1, 2))
    inner = (slice(8, -BORDER), slice(BORDER, -BORDER))
    change, wanted = (model - asarray(data["start"]))[inner], (true - asarray(data["start"]))[inner]
    agreement = np.corrcoef(np.stack([change.ravel(), wanted.ravel()]))[0, 1]
    rms = np.sqrt(np.mean((model - true)[inner] ** 2, axis=0))
    energy = np.cumsum(final ** 2, axis=0)
    first = np.argmax(energy > 1e-3 * energy[-1:], axis=0) * DT
    worst = np.unravel_index(np.argmax(np.abs(change)), change.shape)
    return dict(model=np.asarray(model), misfit=np.stack(misfit), grad=np.asarray(last_grad / np.abs(last_grad).max()), spectrum=np.asarray(spectrum),
                agreement=float(agreement), rms=np.asarray(rms), first=np.asarray(first), record=np.asarray(final[:, SHOTS // 2]),
                worst=np.asarray([int(w) for w in worst]))
