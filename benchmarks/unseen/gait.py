"""Step detection and zero-velocity-aided strapdown dead reckoning from a foot-mounted inertial sensor.

N is the number of samples (100 Hz) of the recording.
"""
import numpy as np

DEFAULT = 12000
FS = 100.0
G = 9.81


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(20)
    dt = 1.0 / FS
    t = numpy.arange(N) * dt
    # a stride every 1.1 s or so; 60 % of it is swing
    cadence = 0.9 + 0.05 * numpy.sin(2 * numpy.pi * t / 37.0)
    phase = numpy.cumsum(cadence) * dt
    frac = phase - numpy.floor(phase)
    swing = (frac > 0.4) & (t > 3.0)
    u = numpy.where(swing, (frac - 0.4) / 0.6, 0.0)
    fwd = numpy.where(swing, 14.0 * numpy.sin(2 * numpy.pi * u), 0.0)
    up = numpy.where(swing, 6.0 * numpy.cos(2 * numpy.pi * u), 0.0)
    pitch_rate = numpy.where(swing, -3.0 * numpy.sin(4 * numpy.pi * u), 0.0)
    pitch = numpy.cumsum(pitch_rate) * dt
    yaw_rate = 0.12 * numpy.sin(2 * numpy.pi * t / 50.0) * swing
    acc = numpy.empty((N, 3))
    acc[:, 0] = numpy.cos(pitch) * fwd - numpy.sin(pitch) * (up + G)
    acc[:, 1] = 0.0
    acc[:, 2] = numpy.sin(pitch) * fwd + numpy.cos(pitch) * (up + G)
    gyr = numpy.stack((numpy.zeros(N), pitch_rate, yaw_rate), axis=1)
    acc += 0.05 * rng.standard_normal((N, 3))
    gyr += 0.004 * rng.standard_normal((N, 3)) + numpy.array([0.003, -0.002, 0.004])
    return acc, gyr


def lowpass_taps(fc, n):
    k = np.arange(n) - (n - 1) / 2
    h = np.sinc(2 * fc / FS * k) * np.hamming(n)
    return h / h.sum()


def moving_variance(x, w):
    s1 = np.cumsum(np.concatenate((np.zeros((1, 3)), x)), axis=0)
    s2 = np.cumsum(np.concatenate((np.zeros((1, 3)), x * x)), axis=0)
    m = (s1[w:] - s1[:-w]) / w
    var = ((s2[w:] - s2[:-w]) / w - m * m).sum(axis=1)
    left = w // 2
    return np.pad(var, (left, len(x) - len(var) - left), mode="edge")


def quat_mul(p, q):
    w = p[0] * q[0] - p[1:] @ q[1:]
    v = p[0] * q[1:] + q[0] * p[1:] + np.cross(p[1:], q[1:])
    return np.concatenate((w.reshape(1), v))


def rotate(q, v):
    """Rotate rows of v by rows of q."""
    tmp = 2.0 * np.cross(q[:, 1:], v)
    return v + q[:, :1] * tmp + np.cross(q[:, 1:], tmp)


def main(asarray, N, given):
    acc, gyr = map(asarray, given)
    dt = 1.0 / FS

    # static alignment: gyro bias and initial roll / pitch from the first 2 s
    n0 = int(2 * FS)
    gyr = gyr - gyr[:n0].mean(axis=0)
    a0 = acc[:n0].mean(axis=0)
    roll = np.arctan2(a0[1], a0[2])
    pitch = np.arctan2(-a0[0], np.hypot(a0[1], a0[2]))
    cr, sr, cp, sp = np.cos(roll / 2), np.sin(roll / 2), np.cos(pitch / 2), np.sin(pitch / 2)
    q = np.stack((cr * cp, sr * cp, cr * sp, -sr * sp))

    # band-passed turn rate and its upward zero crossings
    mag = np.sqrt((gyr ** 2).sum(axis=1))
    smooth = np.convolve(mag, lowpass_taps(1.3, 151), mode="same")
    base = np.convolve(mag, lowpass_taps(0.4, 301), mode="same")
    band = smooth - base
    band[:150] = band[-150:] = 0.0
    i = np.flatnonzero((band[:-1] < 0) & (band[1:] >= 0))
    i = i[(i > n0) & (i < N - 160)]
    t_cross = (i + band[i] / (band[i] - band[i + 1])) * dt
    peaks = np.flatnonzero((band[1:-1] > band[:-2]) & (band[1:-1] > band[2:]) & (band[1:-1] > 0.3)) + 1
    steps = []
    for p in peaks.tolist():
        if not steps or p - steps[-1] > 0.6 * FS:
            steps.append(p)
        elif band[p] > band[steps[-1]]:
            steps[-1] = p
    steps = np.array(steps)
    stride_time = np.diff(steps) * dt

    # stance phases
    still = (moving_variance(acc, 11) < 0.5) & (np.abs(gyr).max(axis=1) < 0.3)
    still[:n0] = True

    # orientation: rotation-vector increments, integrated sample by sample
    ang = np.linalg.norm(gyr, axis=1, keepdims=True) * dt
    dq = np.concatenate((np.cos(ang / 2), gyr * dt * 0.5 * np.sinc(ang / (2 * np.pi))), axis=1)
    quat = np.empty((N, 4))
    for k in range(N):
        q = quat_mul(q, dq[k])
        q /= np.sqrt(q @ q)
        quat[k] = q

    # velocity with zero-velocity updates: linear drift removal over each swing
    a_nav = rotate(quat, acc) - np.array([0.0, 0.0, G])
    a_nav[still] = 0.0
    vel = np.cumsum(a_nav, axis=0) * dt
    edge = np.diff(still.astype(np.int8))
    start, stop = np.flatnonzero(edge == -1), np.flatnonzero(edge == 1)
    knots = np.sort(np.concatenate((start, stop)))
    idx = np.arange(N)
    for c in range(3):
        vel[:, c] -= np.interp(idx, knots, vel[knots, c])
    vel[still] = 0.0
    pos = np.cumsum(0.5 * (vel[1:] + vel[:-1]), axis=0) * dt

    m = min(len(start), len(stop))
    stride = pos[stop[:m] - 1] - pos[start[:m] - 1]
    return {
        "steps": steps, "crossings": t_cross, "stride_time_mean": stride_time.mean(),
        "stride_time_sd": stride_time.std(ddof=1), "stance_fraction": still.mean(),
        "n_swings": m, "stride_length": np.hypot(stride[:, 0], stride[:, 1]),
        "distance": np.sqrt((np.diff(pos[:, :2], axis=0) ** 2).sum(axis=1)).sum(),
        "end": pos[-1], "quat_end": quat[-1], "quat_norm": np.abs((quat ** 2).sum(axis=1) - 1).max() < 1e-12,
        "speed_percentiles": np.percentile(np.linalg.norm(vel[~still], axis=1), [10, 50, 90]),
    }
