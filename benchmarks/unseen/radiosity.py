"""Light in a room by radiosity.

A room with blocks cut into patches; form factors with shadows; progressive shooting, a Jacobi solution and a direct
one; lamps dimmed by a controller; tone mapping. N: patches along the longest wall.
"""
import numpy as np

DEFAULT = 16
ROOM = (6.0, 4.0, 2.8)
BLOCKS = ((1.0, 0.8, 0.0, 2.2, 1.7, 1.1), (3.6, 2.2, 0.0, 4.5, 3.2, 1.6), (2.6, 0.2, 0.9, 3.3, 0.6, 2.0))


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(17)
    day = 0.5 + 0.5 * numpy.sin(numpy.linspace(0, numpy.pi, 120)) + rng.normal(0, 0.03, 120)
    return numpy.array(BLOCKS), rng.uniform(0.25, 0.85, (64, 3)), day.clip(0.05)


def rectangle(corner, u, v, nu, nv, normal):
    """Centres, normals and areas of the patches of a rectangle."""
    s, t = np.meshgrid((np.arange(nu) + 0.5) / nu, (np.arange(nv) + 0.5) / nv, indexing="ij")
    centre = corner + s.reshape(-1, 1) * u + t.reshape(-1, 1) * v
    area = np.linalg.norm(np.cross(u, v)) / (nu * nv)
    return centre, np.tile(normal, (nu * nv, 1)), np.full(nu * nv, 1.0) * area


def box_faces(lo, hi, size, outward):
    """Six faces; normals point out of a block and into the room."""
    faces, ext = [], [b - a for a, b in zip(lo, hi)]
    for axis, i, j in ((0, 1, 2), (1, 0, 2), (2, 0, 1)):
        u, v = ext[i] * np.eye(3)[i], ext[j] * np.eye(3)[j]
        nu, nv = max(1, round(ext[i] / size)), max(1, round(ext[j] / size))
        for side in (0, 1):
            corner = np.array(lo) + side * ext[axis] * np.eye(3)[axis]
            normal = np.eye(3)[axis] * (1.0 if (side == 1) == outward else -1.0)
            faces.append(rectangle(corner, u, v, nu, nv, normal))
    return faces


def shadows(p, q, blocks):
    """Slab test of each segment p-q against each block."""
    start, d = p[:, None, :], q[None, :, :] - p[:, None, :]
    d = np.where(np.abs(d) < 1e-9, 1e-9, d)
    free = np.ones(d.shape[:2], dtype=bool)
    for b in blocks:
        t0, t1 = (b[:3] - start) / d, (b[3:] - start) / d
        enter, leave = np.minimum(t0, t1).max(axis=-1), np.maximum(t0, t1).min(axis=-1)
        free &= (leave - enter < 1e-6) | (enter > 1 - 1e-4) | (leave < 1e-4)
    return free


def form_factors(x, n, area, blocks, chunk=128):
    F = np.empty((len(x), len(x)))
    for lo in range(0, len(x), chunk):
        part = slice(lo, lo + chunk)
        d = x[None, :, :] - x[part, None, :]
        r2 = np.sum(d * d, axis=2) + 1e-12
        ci = np.einsum("ijk,ik->ij", d, n[part])
        cj = -np.einsum("ijk,jk->ij", d, n)
        seen = (ci > 1e-9) & (cj > 1e-9)
        kernel = np.where(seen, ci * cj / (r2 * (np.pi * r2 + area)), 0.0)
        F[part] = kernel * area * shadows(x[part], x, blocks)
    total = F.sum(axis=1)
    return F / np.maximum(total, 1.0)[:, None], total


def shoot(F, area, emit, rho, shots):
    """Progressive refinement: the patch with most unshot light shoots."""
    B, unshot, path, left = emit.copy(), emit.copy(), [], []
    for _ in range(shots):
        power = unshot.sum(axis=1) * area
        left.append(power.sum())
        path.append(k := int(power.argmax()))
        gain = rho * np.outer(F[:, k], unshot[k])
        unshot[k] = 0.0
        unshot, B = unshot + gain, B + gain
    return B, np.array(path), np.array(left)


def jacobi(F, emit, rho, tol):
    B = emit.copy()
    for it in range(1, 201):
        old, B = B, emit + rho * (F @ B)
        if float(np.abs(B - old).max() / B.max()) < tol:
            break
    return B, it


def tone(B):
    """Reinhard's operator on luminance, gamma, eight bits."""
    lum = B @ np.array([0.2126, 0.7152, 0.0722])
    scaled = 0.18 * lum / np.exp(np.mean(np.log(lum + 1e-4)))
    ratio = scaled * (1 + scaled / 16) / (1 + scaled) / (lum + 1e-9)
    return np.clip(B * ratio[:, None], 0, 1)**(1 / 2.2)


def main(asarray, N, given):
    blocks, paint, day = (asarray(g) for g in given)
    size = ROOM[0] / N
    faces = box_faces([0.0] * 3, ROOM, size, False)
    for b in blocks.tolist():
        faces += box_faces(b[:3], b[3:], size * 0.7, True)
    x, n, area = (np.concatenate(parts) for parts in zip(*faces))
    face = np.repeat(np.arange(len(faces)), [len(f[2]) for f in faces])
    rho = paint[face]
    F, closure = form_factors(x, n, area, blocks)
    near = [(face == 5) & (np.hypot(x[:, 0] - cx, x[:, 1] - 1.83) < 0.63) for cx in (1.5, 4.5)]
    window = (face == 0) & (np.abs(x[:, 1] - 2.0) < 1.2) & (x[:, 2] > 1.0)
    colours = np.array([[12.0, 9.5, 6.0], [12.0, 9.5, 6.0], [6.0, 7.5, 9.0]])
    fade = 1 + 0.1 * np.sin(x @ np.array([3.1, 1.7, 0.9]))          # no two patches alike
    sources = [np.outer(np.where(on, fade, 0.0), colour) for on, colour in zip(near + [window], colours)]
    rough, path, left = shoot(F, area, sum(sources), rho, 300)
    B, rounds = jacobi(F, sum(sources), rho, 1e-9)
    direct = np.linalg.solve(np.eye(len(x)) - rho[:, 1:2] * F, np.stack([s[:, 1] for s in sources], axis=1))
    # light at the desks for each source, and dimming through a day
    desks = (face == 11) | (face == 17)
    fall = (F @ direct)[desks].mean(axis=0)
    level, history = np.array([0.5, 0.5]), []
    for sun in day:
        lux = fall[0] * level[0] + fall[1] * level[1] + fall[2] * sun
        level = np.clip(level + 0.8 * (1.1 - lux) / (fall[0] + fall[1]), 0.05, 1.0)
        history.append(np.append(level, lux))
    shade = tone(B)
    per_face = np.stack([np.bincount(face, weights=B[:, c] * area) for c in range(3)]) / np.bincount(face, weights=area)
    floor, gap = (F @ B)[face == 4], np.abs(rough - B).mean() / B.mean()
    return dict(patches=len(x), closure=np.percentile(closure, [5, 25, 50, 75, 95]), radiosity=B, gap=gap,
                rough=rough.sum(axis=0), first=path[:8], unshot=left[::20], rounds=rounds, desk=fall,
                history=np.stack(history), shade=shade, per_face=per_face, bright=np.histogram(shade[:, 1], 16, (0, 1))[0],
                uniformity=np.percentile(floor, 35, axis=0) / floor.mean(axis=0))
