"""Pictures cut into regions: mean shift over colours and places, random walks from seeds, components, scores.

N: side of the picture.
"""
import numpy as np

DEFAULT = 56


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(404)
    y, x = numpy.mgrid[:N, :N] / N
    label = numpy.zeros((N, N), dtype=int)
    label[(x - .3) ** 2 + (y - .35) ** 2 < .04] = 1
    label[(numpy.abs(x - .7) < .18) & (numpy.abs(y - .6) < .22)] = 2
    label[y > .85 + .05 * numpy.sin(9 * x)] = 3
    colour = numpy.array([[.2, .3, .6], [.8, .3, .2], [.3, .7, .3], [.6, .6, .5]])
    picture = colour[label] + .1 * (x + y)[:, :, None] + .06 * rng.normal(size=(N, N, 3))
    seeds = numpy.full((N, N), -1)
    for k in range(4):
        at = rng.permutation(numpy.flatnonzero(label == k))[:6]
        seeds.ravel()[at] = k
    return picture, label, seeds


def smooth(picture, passes=2):
    """A bilateral filter of radius one, by shifted copies of a padded picture."""
    for _ in range(passes):
        padded = np.pad(picture, ((1, 1), (1, 1), (0, 0)), mode="edge")
        total, weight = np.zeros_like(picture), np.zeros(picture.shape[:2])
        for dy in range(3):
            for dx in range(3):
                other = padded[dy:dy + picture.shape[0], dx:dx + picture.shape[1]]
                w = np.exp(-((other - picture) ** 2).sum(axis=2) / 0.05)
                total += w[:, :, None] * other
                weight += w
        picture = total / weight[:, :, None]
    return picture


def mean_shift(features, start, width=1.0, limit=40, tol=1e-4):
    """Move each start to the mean of the features around it until all rest."""
    points = start.copy()
    moving = np.arange(len(points))
    square = (features ** 2).sum(axis=1)
    for it in range(limit):
        p = points[moving]
        d2 = (p ** 2).sum(axis=1)[:, None] - 2 * p @ features.T + square
        w = np.exp(-0.5 * d2 / width ** 2)
        new = (w @ features) / w.sum(axis=1, keepdims=True)
        step = np.sqrt(((new - p) ** 2).sum(axis=1))
        points[moving] = new
        moving = moving[step > tol]
        if moving.size == 0:
            break
    return points, it


def merge(points, radius):
    """Modes: greedily, the first point not yet taken claims all within a radius."""
    label = np.full(len(points), -1)
    modes = []
    while (label < 0).any():
        first = int(np.argmax(label < 0))
        near = ((points - points[first]) ** 2).sum(axis=1) < radius ** 2
        take = near & (label < 0)
        label[take] = len(modes)
        modes.append(points[take].mean(axis=0))
    return label, np.stack(modes)


class Lattice:
    """The graph of pixels and their four neighbours with weights from colour differences."""

    def __init__(self, picture, beta=60.0):
        h, w, _ = picture.shape
        number = np.arange(h * w).reshape(h, w)
        self.i = np.concatenate([number[:, :-1].ravel(), number[:-1].ravel()])
        self.j = np.concatenate([number[:, 1:].ravel(), number[1:].ravel()])
        flat = picture.reshape(-1, 3)
        self.weight = np.exp(-beta * ((flat[self.i] - flat[self.j]) ** 2).sum(axis=1)) + 1e-4
        self.size = h * w
        self.degree = np.bincount(self.i, self.weight, self.size) + np.bincount(self.j, self.weight, self.size)

    def laplacian(self, x):
        out = self.degree[:, None] * x
        np.add.at(out, self.i, -self.weight[:, None] * x[self.j])
        np.add.at(out, self.j, -self.weight[:, None] * x[self.i])
        return out

    def walk(self, seeds, many, tol=1e-11, limit=600):
        """Probabilities to meet the seeds of each label first: conjugate gradients on the pixels without seeds."""
        fixed = seeds >= 0
        free = ~fixed
        x = np.zeros((self.size, many))
        x[fixed] = np.eye(many)[seeds[fixed]]
        mask = free[:, None].astype(float)
        r = -self.laplacian(x) * mask
        scale = 1.0 / self.degree[:, None]
        z = scale * r
        p, rz = z.copy(), (r * z).sum(axis=0)
        first = float(np.sqrt(rz.max()))
        for it in range(limit):
            q = self.laplacian(p) * mask
            alpha = rz / (p * q).sum(axis=0)
            x += alpha * p
            r -= alpha * q
            z = scale * r
            new = (r * z).sum(axis=0)
            if float(np.sqrt(new.max())) < tol * first:
                break
            p *= new / rz
            p += z
            rz = new
        return x, it


def components(label):
    """Connected parts of equal labels: each pixel takes the least number around it until nothing changes."""
    h, w = label.shape
    number = np.arange(h * w).reshape(h, w)
    across, down = label[:, 1:] == label[:, :-1], label[1:] == label[:-1]
    while True:
        old = number.copy()
        m = np.where(across, np.minimum(number[:, 1:], number[:, :-1]), h * w)
        np.minimum(number[:, 1:], m, out=number[:, 1:])
        np.minimum(number[:, :-1], m, out=number[:, :-1])
        m = np.where(down, np.minimum(number[1:], number[:-1]), h * w)
        np.minimum(number[1:], m, out=number[1:])
        np.minimum(number[:-1], m, out=number[:-1])
        number = number.ravel()[number.ravel()].reshape(h, w)
        if (number == old).all():
            break
    roots, where = np.unique(number, return_inverse=True)
    return where.reshape(h, w), roots.size


def rand_index(a, b):
    table = np.zeros((int(a.max()) + 1, int(b.max()) + 1))
    np.add.at(table, (a.ravel(), b.ravel()), 1.0)
    pairs = lambda n: (n * (n - 1) / 2).sum()
    both, left, right, all_ = pairs(table), pairs(table.sum(axis=1)), pairs(table.sum(axis=0)), a.size * (a.size - 1) / 2
    expected = left * right / all_
    return (both - expected) / (0.5 * (left + right) - expected)


def main(asarray, N, given):
    picture, truth, seeds = (asarray(v) for v in given)
    soft = smooth(picture)
    y, x = np.meshgrid(np.arange(N), np.arange(N), indexing="ij")
    features = np.concatenate([soft / 0.09, np.stack([y, x], axis=2) / (0.22 * N)], axis=2).reshape(-1, 5)
    some = features[::max(N * N // 400, 1)]
    rest, moves = mean_shift(features, some)
    group, modes = merge(rest, 0.5)
    # each pixel goes with the nearest of the points that were moved
    nearest = np.empty(N * N, dtype=np.int64)
    for part in np.array_split(np.arange(N * N), 4):
        f = features[part]
        nearest[part] = ((some ** 2).sum(axis=1) - 2 * f @ some.T).argmin(axis=1)
    shifted = group[nearest].reshape(N, N)
    graph = Lattice(soft)
    chance, steps = graph.walk(seeds.ravel(), 4)
    walked = chance.argmax(axis=1).reshape(N, N)
    doubt = -(chance * np.log(np.clip(chance, 1e-12, None))).sum(axis=1)
    parts, many = components(shifted)
    size = np.bincount(parts.ravel())
    centre = np.stack([np.bincount(parts.ravel(), v.ravel()) / size for v in (y, x)], axis=1)
    mean = np.stack([np.bincount(parts.ravel(), picture[:, :, c].ravel()) / size for c in range(3)], axis=1)
    big = np.argsort(-size, kind="stable")[:6]
    border = (walked[:, 1:] != walked[:, :-1]).sum() + (walked[1:] != walked[:-1]).sum()
    return dict(modes=modes, moves=moves, shifted=rand_index(shifted, truth), walked=rand_index(walked, truth), steps=steps > 5, chance=chance[::7],
                doubt=doubt.mean(), many=many, size=size[big], centre=centre[big], mean=mean[big], border=border,
                accuracy=(walked == truth).mean(), cut=(graph.weight * (walked.ravel()[graph.i] != walked.ravel()[graph.j])).sum())
