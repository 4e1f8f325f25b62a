"""Spiking network: leaky integrate-and-fire neurons with conduction delays, STDP on the excitatory synapses, spike statistics. N: neurons."""
import math

import numpy
import numpy as np

DEFAULT = 4000
STEPS, SYNAPSES, MAXDELAY = 1000, 80, 20


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(404)
    excitatory = N * 4 // 5
    post = rng.integers(0, N, (N, SYNAPSES))
    delay = rng.integers(1, MAXDELAY, (N, SYNAPSES))
    delay[excitatory:] = 1
    weight = rng.uniform(0.1, 0.4, (N, SYNAPSES))
    weight[excitatory:] *= -3.0
    return dict(post=post, delay=delay, weight=weight, v0=rng.uniform(-70, -52, N), tau=rng.normal(20, 1.5, N).clip(15, 25),
                noise=rng.normal(0, 1.2, (STEPS, N)), stimulus=(rng.random(N) < 0.1))


def simulate(v, tau, post, delay, weight, noise, stimulus, excitatory, dt=1.0):
    n = len(v)
    rest, reset, threshold, refractory_time = -65.0, -70.0, -50.0, 3
    buffer = np.zeros((MAXDELAY, n))
    refractory = np.zeros(n, dtype=np.int32)
    pre_trace, post_trace = np.zeros(n), np.zeros(n)
    current = np.zeros(n)
    adaptation = np.zeros(n)
    decay_syn, decay_pre, decay_post = math.exp(-dt / 5), math.exp(-dt / 20), math.exp(-dt / 20)
    leak = np.exp(-dt / tau)
    times, cells, rate, sample = [], [], [], []
    for t in range(STEPS):
        slot = t % MAXDELAY
        current *= decay_syn
        current += buffer[slot]
        buffer[slot] = 0
        drive = 15.0 + noise[t] * 4
        if 200 <= t < 240 or 500 <= t < 540:
            drive[stimulus] += 10.0
        v = rest + (v - rest) * leak + (1 - leak) * (drive + 4 * current - adaptation)
        v[refractory > 0] = reset
        refractory[refractory > 0] -= 1
        adaptation *= 0.98
        pre_trace *= decay_pre
        post_trace *= decay_post
        fired = np.flatnonzero(v >= threshold)
        rate.append(fired.size)
        sample.append(v[:5].copy())
        if fired.size == 0:
            continue
        times.append(np.full(fired.size, t))
        cells.append(fired)
        v[fired] = reset
        refractory[fired] = refractory_time
        adaptation[fired] += 1.5
        targets = post[fired]
        np.add.at(buffer, ((t + delay[fired]) % MAXDELAY, targets), weight[fired])
        # depression: a presynaptic spike after the targets' spikes
        exc = fired[fired < excitatory]
        if exc.size:
            weight[exc] = np.clip(weight[exc] - 0.012 * post_trace[post[exc]], 0.0, 0.8)
        pre_trace[fired] += 1.0
        post_trace[fired] += 1.0
        # potentiation: synapses onto those that fired, checked every few steps for speed
        if t % 4 == 0:
            hit = np.zeros(n, dtype=bool)
            hit[fired] = True
            onto = hit[post[:excitatory]]
            w = weight[:excitatory]
            gain = np.broadcast_to(pre_trace[:excitatory, None], w.shape)[onto]
            w[onto] = np.minimum(w[onto] + 0.04 * gain, 0.8)
    return np.concatenate(times), np.concatenate(cells), rate, np.stack(sample), weight


def interval_cv(times, cells, n):
    """Mean and coefficient of variation of the inter-spike intervals of every neuron."""
    order = np.argsort(cells * STEPS + times)
    c, t = cells[order], times[order]
    same = c[1:] == c[:-1]
    owner, gap = c[1:][same], np.diff(t)[same].astype(float)
    count = np.bincount(owner, minlength=n)
    first = np.bincount(owner, weights=gap, minlength=n)
    second = np.bincount(owner, weights=gap ** 2, minlength=n)
    ok = count >= 3
    mean = first[ok] / count[ok]
    var = np.maximum(second[ok] / count[ok] - mean ** 2, 0)
    return mean, np.sqrt(var) / mean


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    post, delay, noise, stimulus, v, tau = (asarray(data[k]) for k in ("post", "delay", "noise", "stimulus", "v0", "tau"))
    weight = asarray(data["weight"]).copy()
    excitatory = N * 4 // 5
    before = weight[:excitatory].mean(axis=1)
    times, cells, rate, sample, weight = simulate(v, tau, post, delay, weight, noise, stimulus, excitatory)
    counts = np.bincount(cells, minlength=N)
    mean_isi, cv = interval_cv(times, cells, N)
    raster = np.zeros((STEPS // 5, N))
    raster[times // 5, cells] = 1
    some = raster[:, :200]
    corr = np.corrcoef(some[:, some.std(axis=0) > 0].T)
    synchrony = (corr.sum() - len(corr)) / (len(corr) * (len(corr) - 1))
    population = np.asarray(rate, dtype=float)
    kernel = np.exp(-0.5 * (np.arange(-15, 16) / 5.0) ** 2)
    smooth = np.convolve(population, kernel / kernel.sum(), mode="same")
    spectrum = np.abs(np.fft.rfft(population - population.mean())) ** 2
    freq = np.fft.rfftfreq(STEPS, 1e-3)
    band = (freq > 2) & (freq < 200)
    peak = freq[band][spectrum[band].argmax()]
    psth = smooth[190:260] / N * 1000
    drift = weight[:excitatory].mean(axis=1) - before
    hist, _ = np.histogram(weight[:excitatory], bins=40, range=(0.0, 0.8))
    return dict(rate=np.asarray(rate), counts=np.asarray(counts), mean_isi=np.asarray(mean_isi), cv=np.asarray(cv), synchrony=np.asarray(float(synchrony)),
                peak=np.asarray(float(peak)), psth=np.asarray(psth), drift=np.asarray(drift), hist=np.asarray(hist), sample=np.asarray(sample[::10]))
