"""Bundle adjustment: cameras around an object, points seen by some of them, Levenberg-Marquardt with the Schur
complement over the points, Huber loss against wrong matches.  N: number of 3D points."""

import numpy as np

DEFAULT = 2000
CAMS = 20


def inputs(N):
    import numpy

    rng = numpy.random.default_rng(77)
    X = rng.normal(size=(N, 3)) * [1.0, 1.0, 0.6]
    angle = numpy.linspace(0, 2 * numpy.pi, CAMS, endpoint=False)
    centre = numpy.stack([6 * numpy.cos(angle), 6 * numpy.sin(angle), 1.5 * numpy.sin(2 * angle)], axis=1)
    z = -centre / numpy.linalg.norm(centre, axis=1, keepdims=True)
    x = numpy.cross(z, [0.0, 0.0, 1.0])
    x /= numpy.linalg.norm(x, axis=1, keepdims=True)
    R = numpy.stack([x, numpy.cross(z, x), z], axis=1)
    t = -numpy.einsum("cij,cj->ci", R, centre)
    focal = rng.uniform(780, 820, CAMS)
    seen = rng.random((N, CAMS)) < 0.35
    seen[numpy.arange(N), rng.integers(0, CAMS, N)] = True
    seen[numpy.arange(N), rng.integers(0, CAMS, N)] = True
    seen[:, 0] |= seen.sum(axis=1) < 2
    seen[:, 7] |= seen.sum(axis=1) < 2
    pt, cam = numpy.nonzero(seen)
    p = numpy.einsum("mij,mj->mi", R[cam], X[pt]) + t[cam]
    q = p[:, :2] / p[:, 2:]
    uv = focal[cam, None] * q * (1 - 0.05 * (q**2).sum(axis=1, keepdims=True)) + rng.normal(size=(len(pt), 2)) * 0.5
    wrong = rng.random(len(pt)) < 0.02
    uv[wrong] += rng.normal(size=(int(wrong.sum()), 2)) * 40
    start = dict(
        X=X + 0.05 * rng.normal(size=X.shape),
        w=0.01 * rng.normal(size=(CAMS, 3)),
        t=t + 0.03 * rng.normal(size=t.shape),
        focal=numpy.full(CAMS, 800.0),
    )
    return dict(pt=pt, cam=cam, uv=uv, truth=X, R=R, **start)


def skew(v):
    zero = np.zeros_like(v[..., 0])
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=-1).reshape(v.shape[:-1] + (3, 3))


def expm_so3(w):
    """Rodrigues' formula for a stack of rotation vectors."""
    th = np.linalg.norm(w, axis=-1)[..., None, None]
    K = skew(w)
    small = th < 1e-7
    safe = np.where(small, 1.0, th)
    a = np.where(small, 1.0, np.sin(safe) / safe)
    b = np.where(small, 0.5, (1 - np.cos(safe)) / safe**2)
    return np.eye(3) + a * K + b * (K @ K)


class Problem:
    """Parameters of a camera: rotation (left increment), translation, focal length, distortion = 8."""

    PC = 8

    def __init__(self, pt, cam, uv, delta=2.0):
        self.pt, self.cam, self.uv, self.delta = pt, cam, uv, delta
        change = np.flatnonzero(np.diff(pt)) + 1  # the observations come sorted by point
        self.starts = np.concatenate([np.zeros(1, dtype=change.dtype), change])

    def project(self, state):
        R, t, f, k, X = state
        Y = np.einsum("mij,mj->mi", R[self.cam], X[self.pt])
        p = Y + t[self.cam]
        q = p[:, :2] / p[:, 2:]
        r2 = np.einsum("mi,mi->m", q, q)[:, None]
        d = 1 + k[self.cam, None] * r2
        return Y, p, q, r2, d, f[self.cam, None] * d * q - self.uv

    def cost(self, state):
        e = np.linalg.norm(self.project(state)[-1], axis=1)
        return np.where(e <= self.delta, 0.5 * e**2, self.delta * (e - 0.5 * self.delta)).sum()

    def linearise(self, state):
        R, t, f, k, X = state
        Y, p, q, r2, d, res = self.project(state)
        m = len(q)
        fm = f[self.cam, None, None]
        dq = np.zeros((m, 2, 3))  # d(q)/d(p)
        dq[:, 0, 0] = dq[:, 1, 1] = 1 / p[:, 2]
        dq[:, :, 2] = -q / p[:, 2:]
        duv = fm * (d[..., None] * np.eye(2) + 2 * k[self.cam, None, None] * q[:, :, None] * q[:, None, :])
        Jp = duv @ dq
        Jc = np.empty((m, 2, self.PC))
        Jc[:, :, :3] = -Jp @ skew(Y)
        Jc[:, :, 3:6] = Jp
        Jc[:, :, 6] = d * q
        Jc[:, :, 7] = f[self.cam, None] * r2 * q
        Jc *= (self.cam > 0)[:, None, None]  # the first camera is held: the gauge
        Jx = Jp @ R[self.cam]
        e = np.linalg.norm(res, axis=1)
        w = np.sqrt(self.delta / np.maximum(e, self.delta))
        return Jc * w[:, None, None], Jx * w[:, None, None], res * w[:, None]

    def step(self, state, lam):
        Jc, Jx, r = self.linearise(state)
        C, P, n = len(state[1]), len(state[4]), self.PC
        U, bc = np.zeros((C, n, n)), np.zeros((C, n))
        JcT = Jc.transpose(0, 2, 1)
        np.add.at(U, self.cam, JcT @ Jc)
        np.add.at(bc, self.cam, (JcT @ r[..., None])[..., 0])
        V = np.add.reduceat(np.einsum("mki,mkj->mij", Jx, Jx), self.starts, axis=0)
        bx = np.add.reduceat(np.einsum("mki,mk->mi", Jx, r), self.starts, axis=0)
        i, j = np.arange(n), np.arange(3)
        U[:, i, i] += lam * U[:, i, i] + 1e-6
        V[:, j, j] += lam * V[:, j, j] + 1e-9
        W = np.zeros((P, C, n, 3))
        W[self.pt, self.cam] = JcT @ Jx
        W = W.reshape(P, C * n, 3)
        Vi = np.linalg.inv(V)
        Y = W @ Vi
        S = -np.tensordot(Y, W, axes=([0, 2], [0, 2]))
        for c in range(C):
            S[c * n : (c + 1) * n, c * n : (c + 1) * n] += U[c]
        rhs = -bc.ravel() + np.einsum("pik,pk->i", Y, bx)
        L = np.linalg.cholesky(S)
        dc = np.linalg.solve(L.T, np.linalg.solve(L, rhs))
        dx = -np.einsum("pij,pj->pi", Vi, bx + np.einsum("pik,i->pk", W, dc))
        return dc.reshape(C, n), dx

    def retract(self, state, dc, dx):
        R, t, f, k, X = state
        return expm_so3(dc[:, :3]) @ R, t + dc[:, 3:6], f + dc[:, 6], k + dc[:, 7], X + dx


def align(A, B):
    """The similarity that takes A to B in the sense of least squares (Umeyama)."""
    a, b = A - A.mean(axis=0), B - B.mean(axis=0)
    U, s, Vt = np.linalg.svd(b.T @ a)
    sign = np.ones(3)
    sign[2] = float(np.sign(np.linalg.det(U) * np.linalg.det(Vt)))
    scale = (s * sign).sum() / (a**2).sum()
    return scale * a @ ((U * sign) @ Vt).T + B.mean(axis=0)


def main(asarray, N, given):
    g = {k: asarray(v) for k, v in given.items()}
    problem = Problem(g["pt"], g["cam"], g["uv"])
    state = (expm_so3(g["w"]) @ g["R"], g["t"], g["focal"], np.zeros(CAMS), g["X"])
    lam, cost = 1e-3, float(problem.cost(state))
    trace = [cost]
    for _ in range(9):
        trial = problem.retract(state, *problem.step(state, lam))
        now = float(problem.cost(trial))
        if now < cost:
            state, cost, lam = trial, now, lam / 3
        else:
            lam *= 8
        trace.append(cost)
    err = np.linalg.norm(problem.project(state)[-1], axis=1)
    X = align(state[4], g["truth"])
    off = np.linalg.norm(X - g["truth"], axis=1)
    RtR = np.abs(np.einsum("cij,ckj->cik", state[0], state[0]) - np.eye(3)).max()
    return dict(
        trace=np.array(trace),
        X=X,
        focal=state[2],
        distortion=state[3],
        median=np.median(err),
        off=off.mean(),
        outliers=(err > 10).sum(),
        hist=np.histogram(err, bins=20, range=(0.0, 4.0))[0],
        per_camera=np.bincount(g["cam"], weights=err, minlength=CAMS),
        orthogonal=RtR < 1e-12,
    )
