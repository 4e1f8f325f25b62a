"""Rigid bodies: inertia from meshes, quaternions, boxes thrown on a slope with penalty contact and friction.

N: boxes.
"""
import numpy as np

DEFAULT = 3000
G = 9.81


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(8)
    size = rng.uniform(0.1, 0.5, (N, 3))
    place = rng.uniform((-5, -5, 1.2), (5, 5, 2.4), (N, 3))
    q = rng.normal(size=(N, 4))
    q /= numpy.linalg.norm(q, axis=1, keepdims=True)
    return size, place, q, rng.normal(0, 1.0, (N, 3)), rng.normal(0, 3.0, (N, 3)), rng.choice([300.0, 700.0, 2500.0], N)


def quat_mul(a, b):
    w1, x1, y1, z1 = np.moveaxis(a, -1, 0)
    w2, x2, y2, z2 = np.moveaxis(b, -1, 0)
    return np.stack([w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2, w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
                     w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2, w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2], axis=-1)


def rotation(q):
    w, x, y, z = q.T
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                     [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                     [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]]).transpose(2, 0, 1)


def spin_quat(q, omega, dt):
    """Advance by the exponential of the body's angular velocity."""
    half = np.linalg.norm(omega, axis=1, keepdims=True) * (0.5 * dt)
    turn = np.concatenate([np.cos(half), 0.5 * dt * np.sinc(half / np.pi) * omega], axis=1)
    q = quat_mul(q, turn)
    return q / np.linalg.norm(q, axis=1, keepdims=True)


def mesh_inertia(corners, faces):
    """Volume and inertia about the origin of closed triangle meshes, summed over tetrahedra to the origin."""
    tri = corners[:, faces]                                          # bodies, faces, 3, xyz
    det = np.linalg.det(tri)
    volume = det.sum(axis=1) / 6.0
    s = tri.sum(axis=2)
    second = (np.einsum("nf,nfki,nfkj->nij", det, tri, tri) + np.einsum("nf,nfi,nfj->nij", det, s, s)) / 120.0
    trace = np.trace(second, axis1=1, axis2=2)
    return volume, trace[:, None, None] * np.eye(3) - second


def tumble(I, q, w, steps, dt):
    """Free spinning: Runge-Kutta on Euler's equations."""
    gap = np.stack([I[:, 1] - I[:, 2], I[:, 2] - I[:, 0], I[:, 0] - I[:, 1]], axis=1) / I

    def rate(w):
        return gap * w[:, [1, 2, 0]] * w[:, [2, 0, 1]]
    flips, last = np.zeros(len(q), dtype=int), w[:, 1] > 0
    for _ in range(steps):
        k1 = rate(w)
        k2 = rate(w + 0.5 * dt * k1)
        k3 = rate(w + 0.5 * dt * k2)
        k4 = rate(w + dt * k3)
        middle = w + dt / 8 * (k1 + k2 + k3 + k4)
        w = w + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        q = spin_quat(q, middle, dt)
        flips += (w[:, 1] > 0) != last
        last = w[:, 1] > 0
    return q, w, flips


def main(asarray, N, given):
    size, place, q, velocity, spin, density = (asarray(g) for g in given)
    signs = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)], dtype=float)
    faces = np.array([[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
                      [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]])
    corners = 0.5 * size[:, None, :] * signs
    volume, tensor = mesh_inertia(corners, faces)
    mass = volume * density
    I = np.diagonal(tensor, axis1=1, axis2=2) * density[:, None]
    stray = np.abs(tensor[:, ~np.eye(3, dtype=bool)]).max()
    tq, tw, flips = tumble(I, q, spin, 100, 0.01)
    before = np.einsum("nij,nj->ni", rotation(q), I * spin)
    after = np.einsum("nij,nj->ni", rotation(tq), I * tw)
    drift = np.linalg.norm(after - before, axis=1) / np.linalg.norm(before, axis=1)

    # thrown on a slope
    normal = np.array([0.25, -0.1, 1.0])
    normal /= np.linalg.norm(normal)
    x, v, w = place.copy(), velocity.copy(), spin.copy()
    stiff, damp, mu, dt = 4.0e3 * mass, 25.0 * mass, 0.4, 0.002
    touched, log = np.zeros(N), []
    for step in range(250):
        R = rotation(q)
        arm = np.einsum("nij,nkj->nki", R, corners)
        depth = -np.einsum("nki,i->nk", arm + x[:, None, :], normal)
        hit = depth > 0
        force, torque = np.zeros((2, N, 3))
        force[:, 2] = -G * mass
        body, corner = np.nonzero(hit)
        if len(body):
            a = arm[body, corner]
            vel = v[body] + np.cross(np.einsum("nij,nj->ni", R[body], w[body]), a)
            vn = vel @ normal
            push = np.maximum(stiff[body] * depth[body, corner] - damp[body] * vn, 0.0)
            slide = vel - vn[:, None] * normal
            speed = np.sqrt((slide**2).sum(axis=1))
            f = push[:, None] * normal - (mu * push / np.maximum(speed, 0.05))[:, None] * slide
            np.add.at(force, body, f)
            np.add.at(torque, body, np.cross(a, f))
        touched += hit.any(axis=1)
        local = np.einsum("nji,nj->ni", R, torque)
        w += dt * (local - np.cross(w, I * w)) / I
        v += dt * force / mass[:, None]
        x += dt * v
        q = spin_quat(q, w, dt)
        if step % 25 == 24:
            moving = 0.5 * mass @ (v * v).sum(axis=1)
            log.append(np.stack([G * mass @ x[:, 2], moving, 0.5 * (I * w * w).sum(), hit.sum() / N]))
    travel = (x - place)[:, :2] @ (normal[:2] / np.hypot(normal[0], normal[1]))
    kind = np.searchsorted(np.unique(density), density)
    by_kind = np.bincount(kind, weights=travel) / np.bincount(kind)
    up = np.abs(rotation(q)[:, 2, :]).argmax(axis=1)
    return dict(volume=volume, inertia=I, stray=float(stray) < 1e-9, flips=np.bincount(flips, minlength=5)[:5],
                drift=drift.max(), log=np.stack(log), travel=np.percentile(travel, [5, 50, 95]), by_kind=by_kind,
                touched=touched.mean(), place=x, attitude=np.abs(q).mean(axis=0), up=np.bincount(up, minlength=3),
                flat=(np.argsort(size, axis=1)[np.arange(N), up] == 0).sum(),
                turn=np.histogram(np.linalg.norm(w, axis=1), bins=np.linspace(0, 12, 13))[0])
