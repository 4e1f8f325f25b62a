"""Deblurring of pictures: Richardson-Lucy plain, with total variation and blind, beside Wiener's filter.

Judged by PSNR, structural similarity and radial spectra. N: pixels a side.
"""
import numpy as np

DEFAULT = 256


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(77)
    y, x = numpy.mgrid[0:N, 0:N] / N
    img = 30 + 40 * x + 0 * y
    for _ in range(25):
        cx, cy, r, v = rng.uniform(0.05, 0.95, 2).tolist() + [rng.uniform(0.02, 0.12), rng.uniform(20, 160)]
        img = numpy.where(numpy.hypot(x - cx, y - cy) < r, v, img)
    img = numpy.where((numpy.abs(x - 0.5) < 0.3) & (y > 0.8) & (numpy.sin(90 * x) > 0), 220, img)
    for _ in range(60):
        i, j = rng.integers(0, N, 2)
        img[i, j] += 400
    k = numpy.zeros((N, N))
    yy, xx = numpy.mgrid[-N // 2:N - N // 2, -N // 2:N - N // 2]
    for t in numpy.linspace(-4, 4, 41):
        k += numpy.exp(-((xx - t)**2 + (yy - 0.4 * t - 0.03 * t * t)**2) / (2 * 0.9**2))
    k /= k.sum()
    blurred = numpy.fft.ifft2(numpy.fft.fft2(img) * numpy.fft.fft2(numpy.fft.ifftshift(k))).real
    noisy = rng.poisson(numpy.maximum(blurred, 0) * 4) / 4.0
    return img, k, noisy


def filters(kernel):
    """Blur and its adjoint through the FFT; kernel has its centre in the middle."""
    otf, shape = np.fft.rfft2(np.fft.ifftshift(kernel)), kernel.shape

    def blur(v):
        return np.fft.irfft2(np.fft.rfft2(v) * otf, s=shape)

    def adjoint(v):
        return np.fft.irfft2(np.fft.rfft2(v) * np.conj(otf), s=shape)
    return blur, adjoint


def divergence_of_gradient(u):
    gx, gy = np.roll(u, -1, axis=1) - u, np.roll(u, -1, axis=0) - u
    size = np.sqrt(gx * gx + gy * gy + 1e-2)
    return gx / size - np.roll(gx / size, 1, axis=1) + gy / size - np.roll(gy / size, 1, axis=0)


def richardson_lucy(data, kernel, rounds, tv=0.0, truth=None):
    blur, adjoint = filters(kernel)
    u, errors = np.full_like(data, data.mean()), []
    for it in range(rounds):
        ratio = data / np.maximum(blur(u), 1e-6)
        factor = adjoint(ratio)
        if tv:
            factor /= np.maximum(1.0 - tv * divergence_of_gradient(u), 0.1)
        u = u * np.clip(factor, 0.0, 10.0)
        if truth is not None and it % 5 == 4:
            errors.append(np.sqrt(np.mean((u - truth)**2)))
    return (u, np.stack(errors)) if errors else u


def blind(data, guess, rounds, half=12):
    """Turns of picture and kernel; the kernel stays within a small window."""
    c = data.shape[0] // 2
    kernel, u = guess / guess.sum(), data.copy() + 1.0
    window = np.zeros_like(data)
    window[c - half:c + half + 1, c - half:c + half + 1] = 1.0
    for _ in range(rounds):
        blur, adjoint = filters(kernel)
        u = u * adjoint(data / np.maximum(blur(u), 1e-6))
        fu = np.fft.rfft2(u)
        ratio = data / np.maximum(blur(u), 1e-6)
        update = np.fft.fftshift(np.fft.irfft2(np.fft.rfft2(ratio) * np.conj(fu), s=data.shape)) / u.sum()
        kernel = np.maximum(kernel * update, 0.0) * window
        kernel /= kernel.sum()
    return u, kernel


def wiener(data, kernel, noise):
    otf = np.fft.fft2(np.fft.ifftshift(kernel))
    spectrum = np.fft.fft2(data - data.mean())
    power = np.maximum(np.abs(spectrum)**2 / data.size - noise**2, noise**2 * 0.02)
    return data.mean() + np.fft.ifft2(spectrum * np.conj(otf) / (np.abs(otf)**2 + noise**2 / power)).real


def box(v, r):
    """Means of windows from a summed area table."""
    wide = np.pad(v, r, mode="edge")
    table = np.pad(np.cumsum(np.cumsum(wide, axis=0), axis=1), ((1, 0), (1, 0)))
    w = 2 * r + 1
    return (table[w:, w:] - table[:-w, w:] - table[w:, :-w] + table[:-w, :-w]) / w**2


def ssim(a, b, r=4):
    ma, mb = box(a, r), box(b, r)
    va, vb, cab = box(a * a, r) - ma * ma, box(b * b, r) - mb * mb, box(a * b, r) - ma * mb
    c1, c2 = (0.01 * 255)**2, (0.03 * 255)**2
    return np.mean((2 * ma * mb + c1) * (2 * cab + c2) / ((ma**2 + mb**2 + c1) * (va + vb + c2)))


def radial(v, bins=40):
    f = np.fft.fftfreq(v.shape[0])
    k = np.sqrt(f[:, None]**2 + f[None, :]**2)
    which = np.minimum((k / 0.5 * bins).astype(int), bins)
    power = np.abs(np.fft.fft2(v - v.mean()))**2
    return np.bincount(which.ravel(), weights=power.ravel()) / np.bincount(which.ravel())


def main(asarray, N, given):
    truth, kernel, data = map(asarray, given)
    second = data[:-2, 1:-1] + data[2:, 1:-1] + data[1:-1, :-2] + data[1:-1, 2:] - 4 * data[1:-1, 1:-1]
    noise = float(np.median(np.abs(second - np.median(second)))) / 0.6745 / np.sqrt(20.0)
    plain, curve = richardson_lucy(data, kernel, 60, truth=truth)
    smooth, curve_tv = richardson_lucy(data, kernel, 80, tv=0.004, truth=truth)
    at = np.arange(N) - N // 2
    guess = np.exp(-(at[:, None]**2 + at[None, :]**2) / (2 * 3.0**2))
    seen, found = blind(data, guess, 20)
    linear = wiener(data, kernel, noise)
    results = np.stack([data, plain, smooth, seen, linear])
    mse = np.mean((results - truth)**2, axis=(1, 2))
    mx, my = (found * at[None, :]).sum(), (found * at[:, None]).sum()
    moments = [(found * (at[None, :] - mx)**2).sum(), (found * (at[:, None] - my)**2).sum(),
               (found * (at[None, :] - mx) * (at[:, None] - my)).sum()]
    return dict(noise=noise, psnr=10 * np.log10(255.0**2 / mse), ssim=np.stack([ssim(r, truth) for r in results]),
                curve=curve, curve_tv=curve_tv, best=int(curve.argmin()), smooth=smooth,
                linear=linear, kernel_error=np.abs(found - kernel).sum(), moments=np.stack(moments),
                spectra=np.stack([np.log(radial(r)) for r in results]), stars=np.sort(smooth.ravel())[-30:])
