"""Path tracing of spheres: diffuse, mirror and glass materials, a lamp, Russian roulette, samples per pixel, tone mapping. N: image width."""
import numpy
import numpy as np

DEFAULT = 288
SAMPLES, BOUNCES = 6, 4
#          x     y     z     r    red  green blue  kind (0 diffuse, 1 mirror, 2 glass, 3 lamp)
SPHERES = ((0, -1000, 0, 1000, 0.8, 0.8, 0.75, 0), (-1.6, 0.8, 0.5, 0.8, 0.8, 0.3, 0.2, 0), (0.1, 1.0, 1.2, 1.0, 0.9, 0.9, 0.9, 1),
           (1.5, 0.6, -0.6, 0.6, 1, 1, 1, 2), (-0.3, 0.4, -1.2, 0.4, 0.2, 0.4, 0.8, 0), (2.4, 1.1, 2.0, 1.1, 0.3, 0.7, 0.3, 0), (0, 6, -1, 1.8, 7, 6.5, 6, 3))


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(38)
    pixels = N * (3 * N // 4)
    return dict(jitter=rng.random((SAMPLES, pixels, 2)), u=rng.random((SAMPLES, BOUNCES, pixels, 4), dtype=numpy.float32).astype(numpy.float64))


def normalize(v):
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def intersect(origin, direction, scene):
    nearest = np.full(len(origin), np.inf)
    which = np.full(len(origin), -1, dtype=np.int64)
    for k in range(len(scene)):
        oc = origin - scene[k, :3]
        b = np.einsum("ij,ij->i", oc, direction)
        c = np.einsum("ij,ij->i", oc, oc) - scene[k, 3] ** 2
        disc = b * b - c
        root = np.sqrt(np.maximum(disc, 0.0))
        t = np.where(-b - root > 1e-4, -b - root, -b + root)
        hit = (disc > 0) & (t > 1e-4) & (t < nearest)
        nearest[hit] = t[hit]
        which[hit] = k
    return nearest, which


def diffuse(normal, u, v):
    phi, z = 2 * np.pi * u, 2 * v - 1
    r = np.sqrt(np.maximum(1 - z * z, 0))
    ball = np.stack([r * np.cos(phi), r * np.sin(phi), z], axis=1)
    return normalize(normal + 0.999 * ball)


def glass(direction, normal, u, index=1.5):
    cos = -np.sum(direction * normal, axis=1, keepdims=True)
    entering = cos > 0
    n = np.where(entering, normal, -normal)
    eta = np.full_like(cos, index)
    eta[entering] = 1 / index
    cos = np.abs(cos)
    k = 1 - eta ** 2 * (1 - cos ** 2)
    r0 = ((1 - index) / (1 + index)) ** 2
    fresnel = r0 + (1 - r0) * (1 - np.where(entering, cos, np.sqrt(np.maximum(k, 0)))) ** 5
    reflect = direction + 2 * cos * n
    refract = eta * direction + (eta * cos - np.sqrt(np.maximum(k, 0))) * n
    return normalize(np.where((k < 0) | (u[:, None] < fresnel), reflect, refract))


def trace(origin, direction, scene, u):
    kind = scene[:, 7].astype(np.int64)
    colour = np.zeros_like(origin)
    through = np.ones_like(origin)
    active = np.arange(len(origin))
    alive, depth = [], np.full(len(origin), np.nan)
    for bounce in range(u.shape[0]):
        t, which = intersect(origin, direction, scene)
        missed = which < 0
        sky = 0.5 * (direction[:, 1:2] + 1)
        ambient = (1 - sky) * np.array([0.9, 0.9, 0.9]) + sky * np.array([0.3, 0.45, 0.8])
        colour[active[missed]] += 0.5 * through[active[missed]] * ambient[missed]
        if bounce == 0:
            depth = np.where(missed, 0.0, t)
        lamp = ~missed & (kind[which] == 3)
        colour[active[lamp]] += through[active[lamp]] * scene[which[lamp], 4:7]
        go = ~missed & ~lamp
        active, origin, direction, t, which = active[go], origin[go], direction[go], t[go], which[go]
        alive.append(len(active))
        point = origin + t[:, None] * direction
        normal = (point - scene[which, :3]) / scene[which, 3:4]
        r = u[bounce][active]
        material = kind[which]
        new = diffuse(normal, r[:, 0], r[:, 1])
        mirror, clear = material == 1, material == 2
        along = np.einsum("ij,ij->i", direction[mirror], normal[mirror])
        new[mirror] = direction[mirror] - 2 * along[:, None] * normal[mirror]
        new[clear] = glass(direction[clear], normal[clear], r[clear, 2])
        through[active] *= scene[which, 4:7]
        if bounce >= 2:
            keep = np.clip(through[active].max(axis=1), 0.05, 1.0)
            survive = r[:, 3] < keep
            through[active] /= keep[:, None]
            active, point, new = active[survive], point[survive], new[survive]
        origin, direction = point, new
    return colour, depth, alive


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    jitter, u = asarray(data["jitter"]), asarray(data["u"])
    scene = np.array(SPHERES, dtype=np.float64)
    eye = np.array([0.0, 2.2, -6.0])
    h = 3 * N // 4
    y, x = (a.ravel() for a in np.mgrid[0:h, 0:N])
    forward = normalize(np.array([0.2, 0.8, 0.0]) - eye)
    right = 0.55 * normalize(np.cross(np.array([0.0, 1.0, 0.0]), forward))
    up = np.cross(forward, right)
    image, square, rays = np.zeros((h * N, 3)), np.zeros(h * N), []
    for s in range(SAMPLES):
        px = (2 * (x + jitter[s, :, 0]) / N - 1)[:, None]
        py = (1 - 2 * (y + jitter[s, :, 1]) / h)[:, None] * 0.75
        direction = normalize(forward + px * right + py * up)
        colour, depth, alive = trace(np.tile(eye, (h * N, 1)), direction, scene, u[s])
        image += colour
        square += colour.mean(axis=1) ** 2
        rays.append(alive)
    image /= SAMPLES
    variance = square / SAMPLES - image.mean(axis=1) ** 2
    luminance = image @ np.array([0.2126, 0.7152, 0.0722])
    key = np.exp(np.mean(np.log(luminance + 1e-4)))
    mapped = 0.18 / key * image
    mapped = (mapped / (1 + mapped)).clip(0, 1) ** (1 / 2.2)
    picture = (255 * mapped + 0.5).astype(np.uint8).reshape(h, N, 3)
    hist = np.bincount(picture[..., 1].ravel(), minlength=256)
    return dict(image=np.asarray(image.reshape(h, N, 3)), mean=np.asarray(picture.mean(axis=(0, 1))), cdf=np.asarray(np.cumsum(hist) / hist.sum()), key=np.asarray(key),
                depth=np.asarray(depth), rays=np.asarray(np.array([sum(a) for a in rays])), worst=np.asarray(np.sort(variance)[-20:]), noise=np.asarray(np.sqrt(np.maximum(variance, 0)).mean()))
