"""Inverse kinematics of six-joint arms: damped least squares on a batch of targets, then a straight-line motion."""
import numpy as np

DEFAULT = 1000           # targets

# Denavit-Hartenberg: a, alpha, d of a UR5-like arm
DH = [[0.0, 1.5707963267948966, 0.089159], [-0.425, 0.0, 0.0], [-0.39225, 0.0, 0.0],
      [0.0, 1.5707963267948966, 0.10915], [0.0, -1.5707963267948966, 0.09465], [0.0, 0.0, 0.0823]]


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(42)
    goal = rng.uniform(-1.6, 1.6, (N, 6))
    goal[:, 2] = rng.uniform(0.5, 2.0, N)
    guess = goal + rng.normal(0.0, 0.3, (N, 6))
    limits = numpy.array([[-3.1, 3.1]] * 6)
    return dict(goal=goal, guess=guess, limits=limits)


class Arm:
    def __init__(self, dh):
        dh = np.array(dh)
        self.a, self.d = dh[:, 0], dh[:, 2]
        self.ca, self.sa = np.cos(dh[:, 1]), np.sin(dh[:, 1])
        self.n = len(dh)

    def frames(self, q):
        """Transforms base -> each joint: (..., 7, 4, 4)."""
        c, s = np.cos(q), np.sin(q)
        A = np.zeros(q.shape + (4, 4))
        A[..., 0, 0] = c
        A[..., 0, 1] = -s * self.ca
        A[..., 0, 2] = s * self.sa
        A[..., 0, 3] = self.a * c
        A[..., 1, 0] = s
        A[..., 1, 1] = c * self.ca
        A[..., 1, 2] = -c * self.sa
        A[..., 1, 3] = self.a * s
        A[..., 2, 1] = self.sa
        A[..., 2, 2] = self.ca
        A[..., 2, 3] = self.d
        A[..., 3, 3] = 1.0
        T = np.empty(q.shape[:-1] + (self.n + 1, 4, 4))
        T[..., 0, :, :] = np.eye(4)
        for i in range(self.n):
            T[..., i + 1, :, :] = T[..., i, :, :] @ A[..., i, :, :]
        return T

    def jacobian(self, T):
        z = T[..., :-1, :3, 2]
        p = T[..., :-1, :3, 3]
        tip = T[..., -1:, :3, 3]
        J = np.concatenate([np.cross(z, tip - p), z], axis=-1)
        return np.swapaxes(J, -1, -2)


def pose_error(T, target):
    """Position and orientation error as a six-vector."""
    e = np.empty(T.shape[:-2] + (6,))
    e[..., :3] = target[..., :3, 3] - T[..., :3, 3]
    R, G = T[..., :3, :3], target[..., :3, :3]
    e[..., 3:] = 0.5 * np.cross(R, G, axisa=-2, axisb=-2, axisc=-1).sum(axis=-2)
    return e


def solve_batch(arm, q, target, limits, tol=1e-8, most=60):
    q = q.copy()
    damping = np.full(len(q), 1e-2)
    T = arm.frames(q)
    err = pose_error(T[:, -1], target)
    cost = (err**2).sum(axis=1)
    eye = np.eye(6)
    history = []
    for it in range(most):
        J = arm.jacobian(T)
        H = np.einsum("nki,nkj->nij", J, J) + damping[:, None, None] * eye
        g = np.einsum("nki,nk->ni", J, err)
        step = np.linalg.solve(H, g[..., None])[..., 0]
        size = np.abs(step).max(axis=1, keepdims=True)
        step *= np.minimum(1.0, 0.5 / np.maximum(size, 1e-12))
        trial = np.clip(q + step, limits[:, 0], limits[:, 1])
        T_new = arm.frames(trial)
        err_new = pose_error(T_new[:, -1], target)
        cost_new = (err_new**2).sum(axis=1)
        better = cost_new < cost
        q[better] = trial[better]
        T[better] = T_new[better]
        err = np.where(better[:, None], err_new, err)
        cost = np.where(better, cost_new, cost)
        damping = np.clip(np.where(better, damping * 0.3, damping * 4.0), 1e-9, 1e3)
        worst = cost.max()
        history.append(worst)
        if worst < tol:
            break
    return q, cost, np.stack(history), it


def slerp_path(T0, T1, count):
    """Positions on a minimum-jerk line, orientations by the axis and angle of the relative rotation."""
    s = np.linspace(0.0, 1.0, count)
    s = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    p = T0[:3, 3] + s[:, None] * (T1[:3, 3] - T0[:3, 3])
    D = T0[:3, :3].T @ T1[:3, :3]
    angle = np.arccos(np.clip((np.trace(D) - 1.0) / 2.0, -1.0, 1.0))
    axis = np.array([D[2, 1] - D[1, 2], D[0, 2] - D[2, 0], D[1, 0] - D[0, 1]]) / (2.0 * np.sin(angle))
    K = np.zeros((3, 3))
    K[0, 1], K[0, 2], K[1, 2] = -axis[2], axis[1], -axis[0]
    K = K - K.T
    th = (s * angle)[:, None, None]
    R = T0[:3, :3] @ (np.eye(3) + np.sin(th) * K + (1.0 - np.cos(th)) * (K @ K))
    path = np.zeros((count, 4, 4))
    path[:, :3, :3] = R
    path[:, :3, 3] = p
    path[:, 3, 3] = 1.0
    return path


def follow(arm, q, path, lam=1e-4):
    """One arm along a path: a few damped steps at each way point, small vectors throughout."""
    joints = np.zeros((len(path), 6))
    worst = 0.0
    for n, target in enumerate(path):
        for _ in range(6):
            T = arm.frames(q)
            e = pose_error(T[-1], target)
            norm = float(np.linalg.norm(e))
            if norm < 1e-9:
                break
            J = arm.jacobian(T)
            q = q + J.T @ np.linalg.solve(J @ J.T + lam * norm * np.eye(6), e)
        worst = max(worst, norm)
        joints[n] = q
    return joints, worst


def main(asarray, N, data):
    goal, guess, limits = asarray(data["goal"]), asarray(data["guess"]), asarray(data["limits"])
    arm = Arm(DH)
    target = arm.frames(goal)[:, -1]
    q, cost, history, its = solve_batch(arm, guess, target, limits)
    solved = cost < 1e-8
    T = arm.frames(q)
    J = arm.jacobian(T)
    sv = np.linalg.svd(J, compute_uv=False)
    manipulability = np.sqrt(np.abs(np.linalg.det(J @ np.swapaxes(J, 1, 2))))
    same = np.all(np.abs((q - goal + np.pi) % (2 * np.pi) - np.pi) < 1e-2, axis=1)
    good = np.flatnonzero(solved)
    start = int(good[np.argmax(manipulability[good])])
    offset = target[start].copy()
    offset[:3, 3] += np.array([0.05, -0.04, 0.03])
    offset[:3, :3] = offset[:3, :3] @ arm.frames(np.array([0.3, 0.0, 0.0, 0.0, 0.0, 0.2]))[1, :3, :3]
    offset[:3, :3] = 0.5 * (offset[:3, :3] + np.linalg.inv(offset[:3, :3]).T)
    u, _, vt = np.linalg.svd(target[start][:3, :3] + 0.3 * (offset[:3, :3] - target[start][:3, :3]))
    offset[:3, :3] = u @ vt
    path = slerp_path(target[start], offset, 54)
    joints, worst = follow(arm, q[start], path)
    speed = np.gradient(joints, 0.04, axis=0)
    reach = np.linalg.norm(T[:, -1, :3, 3], axis=1)
    return {"solved": solved.sum(), "iterations": its, "first_worst": history[:3], "same": same.mean(),
            "tip": T[solved, -1, :3, 3], "singular": sv[solved][:, :4].mean(axis=0),
            "manipulability": manipulability[solved], "joints": joints, "tracked": worst < 1e-6,
            "max_speed": np.abs(speed).max(axis=0), "travel": np.abs(np.diff(joints, axis=0)).sum(axis=0),
            "reach": np.histogram(reach, bins=8, range=(0.0, 1.0))[0]}
