"""Parallel MRI by compressed sensing: coil maps, undersampled k-space, FISTA with Daubechies wavelets on random shifts, total-variation polish. N: pixels a side."""
import numpy
import numpy as np

DEFAULT = 384
COILS, ROUNDS, LEVELS = 6, 24, 3
H4 = [0.48296291314469025, 0.836516303737469, 0.22414386804185735, -0.12940952255092145]


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(33)
    y, x = numpy.mgrid[-1:1:N * 1j, -1:1:N * 1j]
    image = numpy.zeros((N, N))
    for cx, cy, a, b, turn, value in [(0, 0, .69, .92, 0, 1), (0, -.02, .66, .87, 0, -.7), (.22, 0, .11, .31, -.3, -.15), (-.22, 0, .16, .41, .3, -.15),
                                      (0, .35, .21, .25, 0, .25), (0, .1, .046, .046, 0, .3), (-.08, -.6, .046, .023, 0, .3), (.06, -.6, .023, .046, 1.5, .3)]:
        u, v = (x - cx) * numpy.cos(turn) + (y - cy) * numpy.sin(turn), -(x - cx) * numpy.sin(turn) + (y - cy) * numpy.cos(turn)
        image[(u / a) ** 2 + (v / b) ** 2 <= 1] += value
    angle = 2 * numpy.pi * numpy.arange(COILS) / COILS
    maps = numpy.stack([numpy.exp(-((x - 1.1 * numpy.cos(t)) ** 2 + (y - 1.1 * numpy.sin(t)) ** 2) / 1.2 + 1j * (t + 0.7 * x * numpy.sin(t))) for t in angle])
    maps /= numpy.sqrt((numpy.abs(maps) ** 2).sum(axis=0))
    phase = numpy.exp(1j * 0.6 * (x + y * y))
    k = numpy.fft.fft2(maps * image * phase, norm="ortho") + 0.004 * (rng.normal(size=(COILS, N, N)) + 1j * rng.normal(size=(COILS, N, N)))
    far = numpy.abs(numpy.fft.fftfreq(N))
    mask = (rng.random(N) < 0.75 * numpy.exp(-far * 5)) | (far < 0.04)
    k *= mask[None, None, :]
    return dict(k=k.astype(numpy.complex64), mask=mask, maps=maps.astype(numpy.complex64), truth=image.astype(numpy.float32),
                shifts=rng.integers(0, 8, (ROUNDS, 2)))


class Wavelet:
    """Periodic orthogonal wavelets with four taps, in two dimensions."""

    def __init__(self, levels):
        self.levels = levels
        self.low = H4
        self.high = [(-1) ** k * H4[3 - k] for k in range(4)]

    def split(self, x, axis):
        x = np.moveaxis(x, axis, -1)
        lo, hi = np.zeros_like(x[..., ::2]), np.zeros_like(x[..., ::2])
        for k in range(4):
            part = np.roll(x, -k, axis=-1)[..., ::2]
            lo += self.low[k] * part
            hi += self.high[k] * part
        return np.moveaxis(np.concatenate([lo, hi], axis=-1), -1, axis)

    def join(self, c, axis):
        c = np.moveaxis(c, axis, -1)
        half = c.shape[-1] // 2
        out = np.zeros_like(c)
        for k in range(4):
            part = np.zeros_like(c)
            part[..., ::2] = self.low[k] * c[..., :half] + self.high[k] * c[..., half:]
            out += np.roll(part, k, axis=-1)
        return np.moveaxis(out, -1, axis)

    def forward(self, x):
        c = x.copy()
        n = x.shape[0]
        for _ in range(self.levels):
            c[:n, :n] = self.split(self.split(c[:n, :n], 0), 1)
            n //= 2
        return c

    def inverse(self, c):
        x = c.copy()
        for level in range(self.levels - 1, -1, -1):
            n = x.shape[0] >> level
            x[:n, :n] = self.join(self.join(x[:n, :n], 1), 0)
        return x


def soft(c, t):
    size = np.abs(c)
    return c * (np.maximum(size - t, 0) / np.maximum(size, 1e-12))


class Scanner:
    def __init__(self, maps, mask):
        self.maps, self.conj, self.mask = maps, maps.conj(), mask[None, None, :]

    def measure(self, x):
        return np.fft.fft2(self.maps * x, norm="ortho").astype(np.complex64) * self.mask

    def adjoint(self, k):
        return (self.conj * np.fft.ifft2(k * self.mask, norm="ortho").astype(np.complex64)).sum(axis=0)


def fista(scan, k, shifts, weight, rounds):
    wave = Wavelet(LEVELS)
    x = scan.adjoint(k)
    y, t, trace = x, 1.0, []
    keep = x.shape[0] >> LEVELS
    for n in range(rounds):
        r = scan.measure(y) - k
        z = y - scan.adjoint(r)
        a, b = int(shifts[n, 0]), int(shifts[n, 1])
        c = wave.forward(np.roll(z, (a, b), axis=(0, 1)))
        coarse = c[:keep, :keep].copy()
        c = soft(c, weight)
        c[:keep, :keep] = coarse
        new = np.roll(wave.inverse(c), (-a, -b), axis=(0, 1))
        t_next = (1 + np.sqrt(1 + 4 * t * t)) / 2
        y = (new + (t - 1) / t_next * (new - x)).astype(np.complex64)
        change = float(np.linalg.norm(new - x) / np.linalg.norm(x))
        x, t = new, float(t_next)
        trace.append([change, float(np.vdot(r, r).real)])
        if change < 2e-4:
            break
    return x, trace


def smooth(x, weight, rounds):
    """Total variation by Chambolle's dual iteration on the complex image."""
    p = np.zeros((2,) + x.shape, dtype=x.dtype)
    for _ in range(rounds):
        div = p[0] - np.roll(p[0], 1, axis=0) + p[1] - np.roll(p[1], 1, axis=1)
        u = div - x / weight
        g = np.stack([np.roll(u, -1, axis=0) - u, np.roll(u, -1, axis=1) - u])
        size = np.sqrt((np.abs(g) ** 2).sum(axis=0))
        p = (p + 0.24 * g) / (1 + 0.24 * size)
    div = p[0] - np.roll(p[0], 1, axis=0) + p[1] - np.roll(p[1], 1, axis=1)
    return x - weight * div


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    k, mask, maps, truth = (asarray(data[name]) for name in ("k", "mask", "maps", "truth"))
    scan = Scanner(maps, mask)
    zero = scan.adjoint(k)
    peak = np.abs(zero).max()
    x, trace = fista(scan, k, data["shifts"], 0.006 * peak, ROUNDS)
    final = smooth(x, 0.01 * float(peak), 15)
    error = [np.sqrt(((np.abs(v) - truth) ** 2).mean() / (truth ** 2).mean()) for v in (zero, x, final)]
    rows = np.abs(np.fft.fftshift(scan.measure(final)[0])).mean(axis=0)
    body = truth > 0.05
    return dict(final=np.abs(final), error=np.stack(error), trace=np.array(trace), spectrum=rows, lines=mask.sum(), noise=np.abs(final)[~body].std(),
                phase=np.angle(final[body].sum()))
