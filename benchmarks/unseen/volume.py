"""Volume rendering of a CT-like field: trilinear samples along rays, transfer function, gradient shading, early termination, shadows, bilateral filter. N: voxels a side."""
import numpy
import numpy as np

DEFAULT = 72
WIDTH, HEIGHT, VIEWS = 160, 120, 2


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(1988)
    z, y, x = numpy.mgrid[-1:1:N * 1j, -1:1:N * 1j, -1:1:N * 1j]
    v = 0.05 * rng.random((N, N, N))
    r = numpy.sqrt(x ** 2 + (y / 0.8) ** 2 + (z / 0.9) ** 2)
    v += 0.35 * (r < 0.85) + 0.45 * ((r > 0.72) & (r < 0.8))
    for _ in range(9):
        c = rng.uniform(-0.45, 0.45, 3)
        v += rng.uniform(0.2, 0.6) * numpy.exp(-((x - c[0]) ** 2 + (y - c[1]) ** 2 + (z - c[2]) ** 2) / rng.uniform(0.004, 0.02))
    v[(x > 0.1) & (y < -0.1)] = 0
    return dict(field=v.astype(numpy.float32), jitter=rng.random((VIEWS, HEIGHT * WIDTH)).astype(numpy.float32))


def blur(v):
    for axis in range(3):
        v = 0.25 * np.roll(v, 1, axis) + 0.5 * v + 0.25 * np.roll(v, -1, axis)
    return v


class Volume:
    def __init__(self, field):
        self.n = field.shape[0]
        self.field = field
        gradient = np.stack(np.gradient(field), axis=-1)[..., ::-1]
        self.channels = np.concatenate([field[..., None], gradient], axis=-1).reshape(-1, 4)

    def sample(self, p, table):
        """Trilinear values of the table's columns at places in -1..1; zero outside."""
        g = (p + 1) * (0.5 * (self.n - 1))
        inside = ((g >= 0) & (g <= self.n - 1.001)).all(axis=1)
        g = np.clip(g, 0, self.n - 1.001)
        i = g.astype(np.int32)
        f = g - i
        base = (i[:, 2] * self.n + i[:, 1]) * self.n + i[:, 0]
        out = np.zeros((len(p), table.shape[1]), dtype=np.float32)
        for dz in (0, 1):
            wz = f[:, 2] if dz else 1 - f[:, 2]
            for dy in (0, 1):
                wy = f[:, 1] if dy else 1 - f[:, 1]
                for dx in (0, 1):
                    wx = f[:, 0] if dx else 1 - f[:, 0]
                    out += (wx * wy * wz)[:, None] * table[base + (dz * self.n + dy) * self.n + dx]
        return out * inside[:, None]


class Transfer:
    """Colour and opacity by value: four control points, tabulated."""

    def __init__(self, size=256):
        x = np.linspace(0, 1.2, size)
        points = np.array([0.0, 0.25, 0.45, 0.7, 0.95, 1.2])
        levels = np.array([[0, 0, 0, 0], [0.1, 0.05, 0.02, 0], [0.8, 0.45, 0.3, 1.2], [0.9, 0.3, 0.2, 4.0], [1, 0.95, 0.85, 25.0], [1, 1, 1, 40.0]])
        self.table = np.stack([np.interp(x, points, levels[:, k]) for k in range(4)], axis=1).astype(np.float32)
        self.scale = (size - 1) / 1.2

    def __call__(self, value):
        return self.table[np.clip((value * self.scale).astype(np.int32), 0, len(self.table) - 1)]


def shadows(volume, transfer, step):
    """Light that falls along the y axis: the transmittance down to every voxel."""
    alpha = transfer(volume.field)[..., 3]
    depth = np.cumsum(alpha, axis=1) - 0.5 * alpha
    return blur(np.exp(-depth * step * 0.5))


def camera(angle, height=0.5, far=3.2):
    eye = np.array([far * float(np.sin(angle)), height, far * float(np.cos(angle))])
    forward = -eye / np.linalg.norm(eye)
    right = np.cross(forward, np.array([0.0, 1.0, 0.0]))
    right /= np.linalg.norm(right)
    up = np.cross(right, forward)
    u, v = np.meshgrid(np.linspace(-0.45, 0.45, WIDTH), np.linspace(0.34, -0.34, HEIGHT))
    d = forward + u.reshape(-1, 1) * right + v.reshape(-1, 1) * up
    return eye.astype(np.float32), (d / np.linalg.norm(d, axis=1, keepdims=True)).astype(np.float32)


def render(volume, transfer, light, angle, jitter, step):
    eye, d = camera(angle)
    # where the rays cross the box
    t1, t2 = (-1 - eye) / d, (1 - eye) / d
    near, far = np.minimum(t1, t2).max(axis=1), np.maximum(t1, t2).min(axis=1)
    near = np.maximum(near, 0)
    colour, through, depth = np.zeros((len(d), 3), dtype=np.float32), np.ones(len(d), dtype=np.float32), np.zeros(len(d), dtype=np.float32)
    t = near + step * jitter
    alive = np.flatnonzero(far > near)
    sun = np.array([0.3, 0.9, 0.3], dtype=np.float32)
    table = np.concatenate([volume.channels, light.reshape(-1, 1)], axis=1)
    samples = 0
    while len(alive) > 0:
        p = eye + t[alive][:, None] * d[alive]
        s = volume.sample(p, table)
        rgba = transfer(s[:, 0])
        normal = s[:, 1:4]
        size = np.sqrt((normal * normal).sum(axis=1)) + 1e-6
        facing = np.abs(normal @ sun) / size
        half = sun - d[alive]
        half /= np.linalg.norm(half, axis=1, keepdims=True)
        gloss = np.abs((normal * half).sum(axis=1) / size) ** 24 * np.minimum(size * 10, 1)
        shade = (0.25 + 0.75 * facing * s[:, 4])[:, None] * rgba[:, :3] + 0.3 * (gloss * s[:, 4])[:, None]
        a = 1 - np.exp(-rgba[:, 3] * step)
        w = through[alive] * a
        colour[alive] += w[:, None] * shade
        depth[alive] += w * t[alive]
        through[alive] *= 1 - a
        t[alive] += step
        samples += len(alive)
        alive = alive[(t[alive] < far[alive]) & (through[alive] > 0.01)]
    return colour.reshape(HEIGHT, WIDTH, 3), through.reshape(HEIGHT, WIDTH), (depth / np.maximum(1 - through, 1e-3)).reshape(HEIGHT, WIDTH), samples


def bilateral(image, depth, reach=2):
    pad, far = np.pad(image, ((reach, reach), (reach, reach), (0, 0)), mode="edge"), np.pad(depth, reach, mode="edge")
    total, weight = np.zeros_like(image), np.zeros(image.shape[:2], dtype=np.float32)
    for dy in range(2 * reach + 1):
        for dx in range(2 * reach + 1):
            near = pad[dy:dy + HEIGHT, dx:dx + WIDTH]
            w = np.exp(-((near - image) ** 2).sum(axis=2) / 0.02 - (far[dy:dy + HEIGHT,
                        dx:dx + WIDTH] - depth) ** 2 / 0.05 - ((dy - reach) ** 2 + (dx - reach) ** 2) / 4.0)
            total += w[:, :, None] * near
            weight += w
    return total / weight[:, :, None]


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    field, jitter = asarray(data["field"]), asarray(data["jitter"])
    volume, transfer = Volume(blur(field)), Transfer()
    step = 1.5 / N
    light = shadows(volume, transfer, 2 / N)
    frames, depths, clear, work = [], [], [], 0
    for k in range(VIEWS):
        image, through, depth, samples = render(volume, transfer, light, 0.6 + 1.1 * k, jitter[k], step)
        image = bilateral(image, depth)
        bright = image @ np.array([0.2126, 0.7152, 0.0722], dtype=np.float32)
        key = np.exp(np.log(bright[through < 0.9] + 1e-4).mean())
        image = image * (0.3 / key)
        image = np.clip(image / (1 + image), 0, 1) ** (1 / 2.2)
        frames.append(image)
        depths.append(depth)
        work += samples
        clear.append((through > 0.99).mean())
    frames = np.stack(frames)
    pixels = (frames * 255 + 0.5).astype(np.uint8)
    histogram = np.stack([np.histogram(pixels[..., c], bins=32, range=(0, 256))[0] for c in range(3)])
    median = (np.cumsum(histogram, axis=1) < 0.9 * pixels[..., 0].size).sum(axis=1)
    gx, gy = np.diff(frames, axis=2), np.diff(frames, axis=1)
    return dict(mean=frames.mean(axis=(1, 2)), median=median, frames=frames, depth=np.stack(depths), samples=work / (VIEWS * WIDTH * HEIGHT),
                clear=np.stack(clear), sharp=np.abs(gx).mean() + np.abs(gy).mean(), light=light.mean(axis=(0, 2)))
