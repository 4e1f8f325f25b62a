"""X-ray tomography: projections by rotation, ramp-filtered backprojection, SIRT with positivity, total-variation denoising, ring removal. N: side."""
import numpy
import numpy as np

DEFAULT = 112
ANGLES, SIRT, TV = 90, 4, 60
ELLIPSES = ((1, .69, .92, 0, 0, 0), (-.8, .66, .87, 0, -.02, 0), (-.2, .11, .31, .22, 0, -18), (-.2, .16, .41, -.22, 0, 18),
            (.1, .21, .25, 0, .35, 0), (.1, .05, .05, 0, .1, 0), (.1, .05, .05, 0, -.1, 0), (.1, .05, .02, -.08, -.6, 0), (.1, .02, .05, .06, -.6, 0))


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(32)
    return dict(noise=rng.normal(0, 1, (ANGLES, N)), gain=1 + 0.02 * rng.normal(size=N))


def phantom(N):
    y, x = np.mgrid[1:-1:N * 1j, -1:1:N * 1j]
    image = np.zeros((N, N))
    for value, a, b, x0, y0, deg in ELLIPSES:
        c, s = float(np.cos(np.deg2rad(deg))), float(np.sin(np.deg2rad(deg)))
        inside = (((x - x0) * c + (y - y0) * s) / a) ** 2 + (((y - y0) * c - (x - x0) * s) / b) ** 2 <= 1
        image[inside] += value
    return image


def sample(image, y, x):
    n = image.shape[0]
    iy, ix = np.floor(y).astype(np.int64), np.floor(x).astype(np.int64)
    fy, fx = y - iy, x - ix
    ok = (iy >= 0) & (iy < n - 1) & (ix >= 0) & (ix < n - 1)
    iy, ix = np.where(ok, iy, 0), np.where(ok, ix, 0)
    out = (image[iy, ix] * (1 - fy) * (1 - fx) + image[iy, ix + 1] * (1 - fy) * fx
           + image[iy + 1, ix] * fy * (1 - fx) + image[iy + 1, ix + 1] * fy * fx)
    return np.where(ok, out, 0.0)


def radon(image, theta):
    n = image.shape[0]
    r = np.arange(n) - (n - 1) / 2
    sino = np.zeros((len(theta), n))
    for i, th in enumerate(theta):
        c, s = np.cos(th), np.sin(th)
        sino[i] = sample(image, r[:, None] * c + r[None, :] * s + (n - 1) / 2, r[None, :] * c - r[:, None] * s + (n - 1) / 2).sum(axis=0)
    return sino


def backproject(sino, theta, n):
    r = np.arange(n) - (n - 1) / 2
    out = np.zeros((n, n))
    for i in range(len(theta)):
        t = r[None, :] * np.cos(theta[i]) + r[:, None] * np.sin(theta[i])
        out += np.interp(t.ravel(), r, sino[i], left=0, right=0).reshape(n, n)
    return out * np.pi / len(theta)


def ramp_filter(sino, window="hann"):
    n = sino.shape[1]
    size = max(64, 2 ** (2 * n - 1).bit_length())
    k = np.concatenate([np.arange(1, size // 2 + 1, 2), np.arange(size // 2 - 1, 0, -2)])
    f = np.zeros(size)
    f[0] = 0.25
    f[1::2] = -1 / (np.pi * k) ** 2
    H = 2 * np.real(np.fft.fft(f))
    if window == "hann":
        H *= np.fft.fftshift(np.hanning(size))
    padded = np.pad(sino, ((0, 0), (0, size - n)))
    return np.real(np.fft.ifft(np.fft.fft(padded, axis=1) * H, axis=1))[:, :n] / 2


def remove_rings(sino, width=9):
    profile = np.median(sino, axis=0)
    return sino - profile + np.convolve(np.pad(profile, width // 2, mode="edge"), np.ones(width) / width, mode="valid")


def tv_denoise(image, weight=0.02, steps=TV, tol=2e-5):
    p = np.zeros((2,) + image.shape)
    g = np.zeros_like(p)
    history = []
    for i in range(steps):
        d = -p.sum(axis=0)
        d[1:] += p[0, :-1]
        d[:, 1:] += p[1, :, :-1]
        out = image + d
        g[0, :-1] = np.diff(out, axis=0)
        g[1, :, :-1] = np.diff(out, axis=1)
        norm = np.sqrt((g ** 2).sum(axis=0))
        energy = (d ** 2).sum() + weight * norm.sum()
        p -= 0.25 * g
        p /= 1 + 0.25 / weight * norm
        history.append(float(energy) / image.size)
        if i > 0 and abs(history[-1] - history[-2]) < tol * history[0]:
            break
    return out, history


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    noise, gain = asarray(data["noise"]), asarray(data["gain"])
    theta = np.linspace(0, np.pi, ANGLES, endpoint=False)
    truth = phantom(N)
    sino = radon(truth, theta)
    counts = 2e4 * np.exp(-sino * 2 / N) * gain
    counts = np.maximum(np.rint(counts + np.sqrt(counts) * noise), 1.0)
    measured = -np.log(counts / 2e4) * N / 2
    measured = remove_rings(measured)
    fbp = backproject(ramp_filter(measured), theta, N)
    r = np.arange(N) - (N - 1) / 2
    disk = r[:, None] ** 2 + r[None, :] ** 2 <= (N / 2) ** 2
    rows = np.maximum(radon(disk.astype(float), theta), 1.0)
    cols = np.maximum(backproject(np.ones_like(measured), theta, N), 1e-6)
    x, residuals = np.where(disk, np.maximum(fbp, 0), 0.0), []
    for k in range(SIRT):
        diff = measured - radon(x, theta)
        x += backproject(diff / rows, theta, N) / cols
        np.clip(x, 0, None, out=x)
        x[~disk] = 0
        residuals.append(np.linalg.norm(diff) / np.linalg.norm(measured))
    final, energies = tv_denoise(x)
    rmse = [np.sqrt(np.mean((a - truth)[disk] ** 2)) for a in (fbp, x, final)]
    hist, edges = np.histogram(final[disk], bins=64, range=(0.01, 1.2))
    return dict(sino=np.asarray(sino), measured=np.asarray(measured), fbp=np.asarray(fbp), sirt=np.asarray(x), final=np.asarray(final),
                residuals=np.asarray(residuals), rmse=np.asarray(rmse), hist=np.asarray(hist), edges=np.asarray(edges), mass=np.asarray(final.sum() / truth.sum()))
