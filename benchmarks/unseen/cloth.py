"""A square of cloth falls onto a ball and a floor in gusts of wind: mass-spring model, symplectic Euler, strain limiting,
collisions with ball, floor and the cloth itself (spatial hashing).  N: particles a side."""

import numpy as np

DEFAULT = 36


def inputs(N):
    import numpy

    rng = numpy.random.default_rng(8)
    u, v = numpy.meshgrid(numpy.linspace(-1, 1, N), numpy.linspace(-1, 1, N), indexing="ij")
    x = numpy.stack([u + 0.1, v - 0.05, 0.7 + 0.003 * rng.normal(size=u.shape)], axis=-1).reshape(-1, 3)
    return x, rng.normal(size=(200, 3)) * numpy.array([0.8, 0.8, 0.1])


def make_springs(n):
    """Structural, shear and bending springs as index pairs, with their stiffnesses."""
    idx = np.arange(n * n).reshape(n, n)
    families = [(0, 1, 900.0), (1, 0, 900.0), (1, 1, 250.0), (1, -1, 250.0), (0, 2, 40.0), (2, 0, 40.0)]
    a, b, k = [], [], []
    for dy, dx, stiff in families:
        x0, x1 = max(0, -dx), n - max(0, dx)
        p = idx[: n - dy, x0:x1].ravel()
        q = idx[dy:, x0 + dx : x1 + dx].ravel()
        a.append(p)
        b.append(q)
        k.append(np.full(p.size, stiff))
    return np.concatenate(a), np.concatenate(b), np.concatenate(k)


def make_faces(n):
    idx = np.arange(n * n).reshape(n, n)
    p, q, r, s = idx[:-1, :-1].ravel(), idx[:-1, 1:].ravel(), idx[1:, :-1].ravel(), idx[1:, 1:].ravel()
    return np.concatenate([np.stack([p, q, r], 1), np.stack([s, r, q], 1)])


class Cloth:
    gravity = 9.81
    centre, radius = (0.0, 0.0, 0.35), 0.3

    def __init__(self, x, n):
        self.n = n
        self.x = x.copy()
        self.v = np.zeros_like(x)
        self.a, self.b, self.k = make_springs(n)
        self.rest = np.linalg.norm(x[self.a] - x[self.b], axis=1)
        self.faces = make_faces(n)
        self.mass = 0.5 / (n * n)
        self.k = self.k * self.mass * 4
        self.ball = np.array(self.centre)
        self.hits = 0

    def scatter(self, index, vec):
        """Sum the vectors at their particles."""
        return np.stack([np.bincount(index, weights=vec[:, c], minlength=len(self.x)) for c in range(3)], axis=1)

    def spring_forces(self):
        d = self.x[self.b] - self.x[self.a]
        length = np.sqrt((d * d).sum(axis=1))
        d /= length[:, None]
        closing = ((self.v[self.b] - self.v[self.a]) * d).sum(axis=1)
        pull = (self.k * (length - self.rest) / self.rest * 0.05 + 0.02 * self.mass * 60 * closing)[:, None] * d
        return self.scatter(self.a, pull) - self.scatter(self.b, pull)

    def wind_forces(self, wind):
        p, q, r = (self.x[self.faces[:, i]] for i in range(3))
        normal = np.cross(q - p, r - p)  # twice the area long
        vel = wind - self.v[self.faces].mean(axis=1)
        area2 = np.linalg.norm(normal, axis=1, keepdims=True)
        f = 0.1 * normal * (normal * vel).sum(axis=1, keepdims=True) / np.maximum(area2, 1e-12) / 6
        out = np.zeros_like(self.x)
        for i in range(3):
            np.add.at(out, self.faces[:, i], f)
        return out

    def limit_strain(self, most=1.08, rounds=2):
        """Jacobi projection of the springs that are too long."""
        for _ in range(rounds):
            d = self.x[self.b] - self.x[self.a]
            length = np.linalg.norm(d, axis=1)
            over = np.maximum(length - most * self.rest, 0.0)
            move = (0.25 * 0.5 * over / length)[:, None] * d
            self.x += self.scatter(self.a, move) - self.scatter(self.b, move)

    def collide(self, dt):
        away = self.x - self.ball
        dist = np.linalg.norm(away, axis=1)
        inside = dist < self.radius + 0.01
        normal = away / dist[:, None]
        vn = (self.v * normal).sum(axis=1, keepdims=True)
        tangential = self.v - vn * normal
        fixed_v = 0.7 * tangential + np.maximum(vn, 0.0) * normal
        self.v = np.where(inside[:, None], fixed_v, self.v)
        self.x = np.where(inside[:, None], self.ball + (self.radius + 0.01) * normal, self.x)
        floor = self.x[:, 2] < 0.005
        self.x[floor, 2] = 0.005
        self.v[floor] *= np.array([0.5, 0.5, 0.0])
        self.hits += int(inside.sum()) + int(floor.sum())

    def self_collide(self, near=0.02):
        """Particles of one hash cell, a few ranks apart, push each other off."""
        cell = np.floor(self.x / (2 * near)).astype(np.int64)
        key = (cell * np.array([73856093, 19349663, 83492791])).sum(axis=1) & 0xFFFFF
        order = np.argsort(key, kind="stable")
        sorted_key = key[order]
        for apart in (1, 2, 3):
            same = sorted_key[apart:] == sorted_key[:-apart]
            i, j = order[:-apart][same], order[apart:][same]
            if i.size == 0:
                continue
            d = self.x[j] - self.x[i]
            length = np.linalg.norm(d, axis=1)
            rows = np.abs(i // self.n - j // self.n) + np.abs(i % self.n - j % self.n)
            push = (
                np.where((length < near) & (rows > 2), 0.5 * (near - length) / np.maximum(length, 1e-9), 0.0)[:, None]
                * d
            )
            self.x += 0.3 * (self.scatter(j, push) - self.scatter(i, push))

    def step(self, dt, wind):
        force = self.spring_forces() + self.wind_forces(wind)
        force[:, 2] -= self.gravity * self.mass
        self.v += dt / self.mass * force
        self.v *= 1 - 0.6 * dt
        before = self.x
        self.x = before + dt * self.v
        self.limit_strain()
        self.v = (self.x - before) / dt
        self.collide(dt)

    def energy(self):
        stretch = np.linalg.norm(self.x[self.b] - self.x[self.a], axis=1) / self.rest - 1
        return [
            float(0.5 * self.mass * (self.v**2).sum()),
            float(self.mass * self.gravity * self.x[:, 2].sum()),
            float(np.abs(stretch).max()),
        ]


def main(asarray, N, given):
    x, gusts = (asarray(v) for v in given)
    cloth = Cloth(x, N)
    kernel = np.hanning(41)
    kernel = kernel / kernel.sum()
    wind = np.stack([np.convolve(gusts[:, c], kernel, mode="same") for c in range(3)], axis=1)
    log = []
    for t in range(180):
        cloth.step(1 / 200, 3 * wind[t])
        if t % 8 == 7:
            cloth.self_collide()
        if t % 15 == 14:
            log.append(cloth.energy())
    centred = cloth.x - cloth.x.mean(axis=0)
    spread = np.linalg.svd(centred, compute_uv=False)
    heights, edges = np.histogram(cloth.x[:, 2], bins=16, range=(0.0, 0.8))
    p, q, r = (cloth.x[cloth.faces[:, i]] for i in range(3))
    area = 0.5 * np.linalg.norm(np.cross(q - p, r - p), axis=1).sum()
    return dict(
        x=cloth.x,
        v=cloth.v,
        log=np.array(log),
        spread=spread,
        heights=heights,
        hits=cloth.hits,
        area=area,
        touching=(np.linalg.norm(cloth.x - cloth.ball, axis=1) < cloth.radius + 0.02).sum(),
    )
