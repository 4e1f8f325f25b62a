"""A JPEG-like codec: YCbCr, chroma subsampling, 8 x 8 cosine transforms, quantisation at several qualities, zigzag and run lengths, entropy, decoding, deblocking, PSNR and SSIM. N: side."""
import numpy
import numpy as np

DEFAULT = 512
QUALITIES = (10, 25, 40, 55, 70, 80, 90, 95)


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(303)
    y, x = numpy.mgrid[:N, :N] / N
    red = 120 + 80 * numpy.sin(9 * x * x + 4 * y) + 40 * ((x - 0.4) ** 2 + (y - 0.6) ** 2 < 0.06)
    green = 110 + 70 * numpy.cos(30 * x * y) + 50 * (numpy.abs(x - y) < 0.05)
    blue = 140 - 90 * y + 30 * numpy.sin(60 * x) * (y > 0.5)
    image = numpy.stack([red, green, blue], axis=2) + rng.normal(0, 4, (N, N, 3))
    return dict(image=numpy.clip(image, 0, 255).astype(numpy.uint8))


LUMA = [16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51, 87, 80, 62,
        18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99]


def tables(quality):
    scale = 5000 / quality if quality < 50 else 200 - 2 * quality
    luma = np.clip(np.floor((np.array(LUMA).reshape(8, 8) * scale + 50) / 100), 1, 255)
    chroma = np.full((8, 8), 99.0)
    chroma[:4, :4] = np.array([[17, 18, 24, 47], [18, 21, 26, 66], [24, 26, 56, 99], [47, 66, 99, 99]])
    return luma, np.clip(np.floor((chroma * scale + 50) / 100), 1, 255)


def dct_matrix():
    k = np.arange(8)
    D = np.cos(np.pi / 16 * np.outer(k, 2 * k + 1)) / 2
    D[0] *= np.sqrt(0.5)
    return D


def zigzag():
    i, j = np.indices((8, 8))
    s = i + j
    key = s * 8 + np.where(s % 2 == 0, j, i)
    return np.argsort(key.ravel())


def to_blocks(plane):
    h, w = plane.shape
    return plane.reshape(h // 8, 8, w // 8, 8).swapaxes(1, 2)


def from_blocks(blocks):
    a, b = blocks.shape[:2]
    return blocks.transpose(0, 2, 1, 3).reshape(a * 8, b * 8)


def soften(plane, sigma=0.6):
    k = np.exp(-0.5 * (np.arange(-2, 3) / sigma) ** 2)
    k /= k.sum()
    h, w = plane.shape
    p = np.pad(plane, 2, mode="symmetric")
    p = sum(float(k[t]) * p[t:t + h] for t in range(5))
    return sum(float(k[t]) * p[:, t:t + w] for t in range(5))


def entropy(symbols):
    counts = np.bincount(symbols)
    p = counts[counts > 0] / symbols.size
    return -(p * np.log2(p)).sum() * symbols.size


def category(v):
    """Bits that the magnitude of v takes, as in JPEG's size categories."""
    m = np.abs(v)
    size = np.zeros_like(m)
    for bit in range(12):
        size += m >= (1 << bit)
    return size


def cost(q, order):
    """Entropy-coded bits of one plane of quantised blocks, and the histogram of zero runs."""
    scan = q.reshape(-1, 64)[:, order].astype(np.int32)
    dc = np.diff(scan[:, 0], prepend=np.zeros(1, dtype=np.int32))
    dc_size = category(dc)
    bits = entropy(dc_size) + dc_size.sum()
    ac = scan[:, 1:]
    block, place = np.nonzero(ac)
    size = category(ac[block, place])
    last = np.concatenate([np.full(1, -1), place[:-1]])
    fresh = np.concatenate([np.ones(1, dtype=bool), block[1:] != block[:-1]])
    run = place - np.where(fresh, -1, last) - 1
    escapes = run // 16
    symbol = (run % 16) * 16 + size
    bits += entropy(symbol) + size.sum() + 11 * escapes.sum() + 4 * len(ac)
    return bits, np.bincount(np.minimum(run, 62), minlength=63)


def deblock(plane, strength):
    out = plane.copy()
    for axis in (0, 1):
        v = out if axis == 0 else out.T
        p1, p0, q0, q1 = v[6:-8:8], v[7:-8:8], v[8::8], v[9::8]
        step = q0 - p0
        smooth = (np.abs(step) < strength) & (np.abs(p1 - p0) < strength / 3) & (np.abs(q1 - q0) < strength / 3)
        delta = np.where(smooth, step / 4, 0.0)
        p0 += delta
        q0 -= delta
    return out


def box(a, r):
    s = np.pad(np.cumsum(np.cumsum(a, axis=0), axis=1), ((1, 0), (1, 0)))
    return (s[r:, r:] - s[:-r, r:] - s[r:, :-r] + s[:-r, :-r]) / r ** 2


def ssim(a, b, r=8):
    ma, mb = box(a, r), box(b, r)
    va, vb, cab = box(a * a, r) - ma ** 2, box(b * b, r) - mb ** 2, box(a * b, r) - ma * mb
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    return ((2 * ma * mb + c1) * (2 * cab + c2) / ((ma ** 2 + mb ** 2 + c1) * (va + vb + c2))).mean()


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    rgb = asarray(data["image"]).astype(np.float64)
    M = np.array([[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]])
    ycc = np.moveaxis(rgb @ M.T, 2, 0)
    luma = soften(ycc[0])
    reference = luma.copy()
    h, w = luma.shape
    chroma = [soften(c).reshape(h // 2, 2, w // 2, 2).mean(axis=(1, 3)) for c in ycc[1:]]
    D, order = dct_matrix(), zigzag()
    planes = [luma - 128.0] + chroma
    spectra = [np.einsum("ui,abij,vj->abuv", D, to_blocks(p), D, optimize=True) for p in planes]
    power = np.stack([(s ** 2).mean(axis=(0, 1)) for s in spectra])
    bits, psnr, similar, filtered, zeros, runs = [], [], [], [], [], []
    picture = None
    for quality in QUALITIES:
        tabs = tables(quality)
        total, empty, back = 0, 0, []
        run_hist = np.zeros(63, dtype=np.int64)
        for k, s in enumerate(spectra):
            table = tabs[min(k, 1)]
            q = np.rint(s / table)
            b, hist = cost(q, order)
            total = total + b
            run_hist += hist
            empty = empty + np.count_nonzero(q == 0)
            back.append(from_blocks(D.T @ (q * table) @ D))
        y = back[0] + 128.0
        smooth = deblock(y, 2.0 + 60.0 / quality ** 0.7)
        cb, cr = [np.kron(c, np.ones((2, 2))) for c in back[1:]]
        picture = np.stack([smooth + 1.402 * cr, smooth - 0.344136 * cb - 0.714136 * cr, smooth + 1.772 * cb], axis=-1)
        picture = np.clip(picture, 0, 255)
        error = np.mean((picture - rgb) ** 2, axis=(0, 1))
        psnr.append(10 * np.log10(255 ** 2 / error))
        similar.append(ssim(reference, y))
        filtered.append(ssim(reference, smooth))
        bits.append(total / (h * w))
        zeros.append(empty / (1.5 * h * w))
        runs.append(run_hist)
    rate, quality = np.stack(bits), np.stack(psnr).mean(axis=1)
    at = np.interp(np.linspace(float(rate.min()), float(rate.max()), 9), rate, quality)
    slope = np.gradient(quality, rate)
    codes = np.floor(picture + 0.37).astype(np.uint8)
    hist = np.stack([np.bincount(codes[..., c].ravel(), minlength=256)[:256] for c in range(3)])
    parity = np.packbits((codes[::4, ::4, 1] & 1).ravel())
    return dict(power=power, bits=rate, psnr=np.stack(psnr), ssim=np.stack(similar), filtered=np.stack(filtered), zeros=np.asarray([float(z) for z in zeros]),
                runs=np.stack(runs), at=at, slope=slope, picture=picture, hist=hist, parity=float(parity.astype(np.float64).mean()))
