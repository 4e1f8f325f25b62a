"""Particle filter: a robot among landmarks by range and bearing; systematic resampling, occupancy map, backward lineage. N: particles."""
import numpy
import numpy as np

DEFAULT = 20000
STEPS = 40


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(66)
    landmarks = rng.uniform(0, 20, (6, 2))
    pose, truth, controls, ranges, bearings = numpy.array([5.0, 5.0, 0.3]), [], [], [], []
    for t in range(STEPS):
        u = numpy.array([0.4, 0.15 * numpy.sin(t / 6)])
        pose = pose + numpy.array([u[0] * numpy.cos(pose[2]), u[0] * numpy.sin(pose[2]), u[1]])
        delta = landmarks - pose[:2]
        ranges.append(numpy.hypot(*delta.T) + rng.normal(0, 0.3, 6))
        bearings.append(numpy.arctan2(delta[:, 1], delta[:, 0]) - pose[2] + rng.normal(0, 0.05, 6))
        truth.append(pose)
        controls.append(u)
    r = numpy.array(ranges)
    r[rng.random(r.shape) < 0.1] = numpy.nan
    start = numpy.c_[rng.uniform(0, 20, (N, 2)), rng.uniform(-numpy.pi, numpy.pi, N)]
    return dict(landmarks=landmarks, truth=numpy.array(truth), controls=numpy.array(controls), ranges=r, bearings=numpy.array(bearings), start=start,
                noise=rng.normal(size=(STEPS, N, 2)).astype(numpy.float32), uniforms=rng.random(STEPS))


def wrap(angle):
    return (angle + np.pi) % (2 * np.pi) - np.pi


def predict(particles, u, noise):
    heading = particles[:, 2]
    step = u[0] * (1 + 0.1 * noise[:, 0])
    particles[:, 0] += step * np.cos(heading)
    particles[:, 1] += step * np.sin(heading)
    particles[:, 2] = wrap(heading + u[1] + 0.03 * noise[:, 1])
    return particles


def log_likelihood(particles, landmarks, z, bearing):
    delta = landmarks[None, :, :] - particles[:, None, :2]
    dist = np.sqrt(np.sum(delta ** 2, axis=-1))
    angle = np.arctan2(delta[..., 1], delta[..., 0]) - particles[:, 2:3]
    seen = ~np.isnan(z)
    lr = np.where(seen, -0.5 * ((np.where(seen, z, 0) - dist) / 0.4) ** 2, 0)
    lb = -0.5 * (wrap(bearing - angle) / 0.1) ** 2
    return np.sum(np.maximum(lr, -20), axis=1) + np.sum(np.maximum(lb, -20), axis=1)


def systematic(weights, u):
    n = len(weights)
    positions = (np.arange(n) + u) / n
    cumulative = np.cumsum(weights)
    cumulative[-1] = 1.0
    return np.searchsorted(cumulative, positions)


def estimate(particles, weights):
    mean = np.average(particles[:, :2], weights=weights, axis=0)
    var = np.average((particles[:, :2] - mean) ** 2, weights=weights, axis=0)
    heading = np.arctan2(np.sum(weights * np.sin(particles[:, 2])), np.sum(weights * np.cos(particles[:, 2])))
    return mean, var, heading


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    landmarks, truth, z, bearings, particles, noise = (asarray(data[k]) for k in ("landmarks", "truth", "ranges", "bearings", "start", "noise"))
    weights = np.ones(N) / N
    steps = len(truth)
    xs, vs, hs, neffs, ancestry = np.zeros((steps, 2)), np.zeros((steps, 2)), np.zeros(steps), [], []
    evidence = 0.0
    resampled = 0
    for t in range(steps):
        particles = predict(particles, data["controls"][t], noise[t])
        logw = np.log(weights) + log_likelihood(particles, landmarks, z[t], bearings[t])
        top = logw.max()
        weights = np.exp(logw - top)
        total = weights.sum()
        evidence += top + np.log(total)
        weights = weights / total + 1e-300
        xs[t], vs[t], hs[t] = estimate(particles, weights)
        neff = 1.0 / np.sum(np.square(weights))
        neffs.append(neff)
        if neff < N / 2:
            index = systematic(weights, data["uniforms"][t])
            particles[:] = particles[index]
            weights.fill(1.0 / N)
            resampled += 1
            ancestry.append(index)
    # occupancy of the last cloud, entropy, how many of the first ancestors survive
    cell = np.clip(np.floor(particles[:, :2] * 2).astype(int), 0, 39)
    occupancy = np.bincount(cell[:, 0] * 40 + cell[:, 1], weights=weights, minlength=1600).reshape(40, 40)
    p = occupancy[occupancy > 0]
    entropy = -np.sum(p * np.log(p))
    lineage = np.arange(N)
    alive = []
    for index in ancestry[::-1]:
        lineage = index[lineage]
        alive.append(len(np.unique(lineage)))
    copies = np.bincount(ancestry[0], minlength=N)
    error = np.sqrt(np.sum((xs - truth[:, :2]) ** 2, axis=1))
    heading_error = np.abs(wrap(hs - truth[:, 2]))
    order = np.argsort(particles[:, 0])
    median = particles[order, 0][np.searchsorted(np.cumsum(weights[order]), 0.5)]
    return dict(x=np.asarray(xs), var=np.asarray(vs), neff=np.asarray(neffs), evidence=np.asarray(evidence), occupancy=np.asarray(occupancy),
                entropy=np.asarray(entropy), alive=np.asarray(alive), copies=np.asarray(np.sort(copies)[::-1][:50]), error=np.asarray(error),
                heading=np.asarray(heading_error), median=np.asarray(median), resampled=np.asarray(resampled), cov=np.asarray(np.cov(particles.T)))
