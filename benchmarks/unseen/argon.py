"""Lennard-Jones liquid: velocity Verlet, minimum image, cut-off masks, Berendsen thermostat, pressure, g(r), diffusion. N: atoms."""
import numpy
import numpy as np

DEFAULT = 216
STEPS = 60


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(2)
    side = int(numpy.ceil(round(N ** (1 / 3), 6)))
    L = (N / 0.8) ** (1 / 3)
    grid = (numpy.arange(side) + 0.5) * L / side
    pos = numpy.stack(numpy.meshgrid(grid, grid, grid), axis=-1).reshape(-1, 3)[:N]
    return dict(pos=pos + rng.normal(0, 0.03, (N, 3)), vel=rng.normal(0, 1.0, (N, 3)), L=L)


def forces(pos, L, rc):
    rij = pos[:, np.newaxis, :] - pos[np.newaxis, :, :]
    rij -= L * np.round(rij / L)
    r2 = np.sum(rij * rij, axis=-1)
    np.fill_diagonal(r2, np.inf)
    near = r2 < rc * rc
    inv2 = np.zeros_like(r2)
    inv2[near] = 1.0 / r2[near]
    inv6 = inv2 ** 3
    shift = 4 * (rc ** -12 - rc ** -6)
    potential = 0.5 * np.sum((4 * inv6 * (inv6 - 1) - shift) * near)
    magnitude = 24 * inv6 * (2 * inv6 - 1) * inv2
    force = np.sum(magnitude[..., np.newaxis] * rij, axis=1)
    virial = 0.5 * np.sum(magnitude[near] * r2[near])
    return force, potential, virial, near


def pair_distribution(pos, L, edges):
    i, j = np.triu_indices(len(pos), k=1)
    d = pos[i] - pos[j]
    d = d - L * np.rint(d / L)
    r = np.linalg.norm(d, axis=1)
    counts, _ = np.histogram(r[r < edges[-1]], bins=edges)
    return counts


def main(asarray, N=DEFAULT, data=None, steps=STEPS):
    data = data or inputs(N)
    pos, vel, L = asarray(data["pos"]), asarray(data["vel"]), data["L"]
    rc, dt, target, tau = 2.5, 0.004, 0.9, 0.05
    vel -= vel.mean(axis=0)
    vel *= np.sqrt(target / (np.sum(vel ** 2) / (3 * N - 3)))
    unwrapped = pos.copy()
    origin, v0 = pos.copy(), vel.copy()
    edges = np.linspace(0, L / 2, 61)
    rdf = np.zeros(60)
    frames = 0
    log = {k: [] for k in ("E", "T", "P", "msd", "vacf", "pairs")}
    F, U, W, near = forces(pos, L, rc)
    for step in range(steps):
        vel += 0.5 * dt * F
        move = dt * vel
        pos = (pos + move) % L
        unwrapped += move
        F, U, W, near = forces(pos, L, rc)
        vel += 0.5 * dt * F
        kinetic = 0.5 * np.sum(vel ** 2)
        T = 2 * kinetic / (3 * N - 3)
        if step < steps // 2:
            scale = np.sqrt(1 + dt / tau * (target / T - 1))
            vel *= scale
        log["E"].append((U + kinetic) / N)
        log["T"].append(T)
        log["P"].append((N * T + W / 3) / L ** 3)
        log["msd"].append(np.mean(np.sum((unwrapped - origin) ** 2, axis=1)))
        log["vacf"].append(np.sum(vel * v0) / np.sum(v0 * v0))
        log["pairs"].append(near.sum() // 2)
        if step >= steps // 2 and step % 10 == 0:
            rdf += pair_distribution(pos, L, edges)
            frames += 1
    shells = 4 / 3 * np.pi * (edges[1:] ** 3 - edges[:-1] ** 3)
    g = rdf / frames / (0.5 * N * (N - 1) / L ** 3 * shells)
    r = 0.5 * (edges[1:] + edges[:-1])
    first = r[np.argmax(g)]
    coordination = np.cumsum(4 * np.pi * r ** 2 * g * N / L ** 3)[np.searchsorted(r, 1.5)]
    q = 2 * np.pi / L * np.arange(1, 20)
    S = 1 + 4 * np.pi * N / L ** 3 * np.array([np.sum(r ** 2 * (g - 1) * np.sinc(k * r / np.pi)) * (r[1] - r[0]) for k in q])
    msd = np.array(log["msd"])
    t = dt * np.arange(1, steps + 1)
    fit = np.polyfit(t[steps // 2:], msd[steps // 2:], 1)
    speeds = np.sqrt((vel ** 2).sum(axis=1))
    hist, _ = np.histogram(speeds, bins=15, range=(0, 4), density=True)
    neighbours = near.sum(axis=1)
    crowded = np.argsort(-neighbours * N + np.arange(N))[:10]
    temperature = np.convolve(np.array(log["T"]), np.ones(5) / 5, "valid")
    return dict(pos=np.asarray(pos), vel=np.asarray(vel), g=np.asarray(g), first=np.asarray(first), coordination=np.asarray(coordination), S=np.asarray(S),
                E=np.asarray(log["E"]), P=np.asarray(log["P"]), vacf=np.asarray(log["vacf"]), pairs=np.asarray(log["pairs"]), diffusion=np.asarray(fit / 6),
                speeds=np.asarray(hist), crowded=np.asarray(crowded), temperature=np.asarray(temperature), msd=np.asarray(msd))
