"""An ensemble of Lorenz systems: Runge-Kutta 4, Poincare section, Lyapunov exponent by rescaling, adaptive Bogacki-Shampine on a pendulum. N: trajectories."""
import numpy
import numpy as np

DEFAULT = 200
STEPS = 800


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(25)
    return dict(start=rng.normal(0, 1, (3, N)) + numpy.array([[0.0], [0.0], [20.0]]), theta=rng.uniform(-2, 2, N), rho=numpy.linspace(20, 30, N))


def lorenz(s, rho, sigma=10.0, beta=8.0 / 3.0):
    x, y, z = s
    return np.stack([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])


def rk4(f, s, dt, *args):
    k1 = f(s, *args)
    k2 = f(s + dt / 2 * k1, *args)
    k3 = f(s + dt / 2 * k2, *args)
    k4 = f(s + dt * k3, *args)
    return s + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def pendulum(s, damping, drive, t):
    d = np.empty_like(s)
    d[0] = s[1]
    d[1] = -np.sin(s[0]) - damping * s[1] + drive * np.cos(2 / 3 * t)
    return d


def main(asarray, N=DEFAULT, data=None, steps=STEPS):
    data = data or inputs(N)
    s, rho = asarray(data["start"]), asarray(data["rho"])
    dt = 0.005
    shadow = s + 1e-6 / np.sqrt(3)
    growth = np.zeros(s.shape[1])
    crossings = np.zeros(s.shape[1], dtype=int)
    last = np.full(s.shape[1], np.nan)
    mean_z, m2 = np.zeros(s.shape[1]), np.zeros(s.shape[1])
    track = []
    for n in range(steps):
        before = s[2] - (rho - 1)
        s = rk4(lorenz, s, dt, rho)
        shadow = rk4(lorenz, shadow, dt, rho)
        after = s[2] - (rho - 1)
        hit = (before < 0) & (after >= 0)
        crossings += hit
        frac = before / np.where(hit, before - after, 1.0)
        last = np.where(hit, s[0] - frac * dt, last)
        delta = s[2] - mean_z
        mean_z += delta / (n + 1)
        m2 += delta * (s[2] - mean_z)
        if n % 10 == 9:
            d = shadow - s
            norm = np.sqrt((d ** 2).sum(axis=0))
            growth += np.log(norm / 1e-6)
            shadow = s + d * (1e-6 / norm)
            track.append(s[:, :4].copy())
    lyapunov = growth / (steps * dt)
    # damped and driven pendula, with one step length for all
    p = np.vstack([asarray(data["theta"]), np.zeros(s.shape[1])])
    t, h, taken, refused = 0.0, 0.05, 0, 0
    k1 = pendulum(p, 0.3, 1.1, t)
    lengths = []
    while t < 6.0 and taken + refused < 400:
        h = min(h, 6.0 - t)
        k2 = pendulum(p + h / 2 * k1, 0.3, 1.1, t + h / 2)
        k3 = pendulum(p + 0.75 * h * k2, 0.3, 1.1, t + 0.75 * h)
        new = p + h * (2 / 9 * k1 + 1 / 3 * k2 + 4 / 9 * k3)
        k4 = pendulum(new, 0.3, 1.1, t + h)
        error = h * np.abs(-5 / 72 * k1 + 1 / 12 * k2 + 1 / 9 * k3 - 1 / 8 * k4)
        worst = float((error / (1e-6 + 1e-5 * np.abs(new))).max())
        if worst <= 1:
            t += h
            p, k1 = new, k4
            taken += 1
            lengths.append(h)
        else:
            refused += 1
        h *= min(3.0, max(0.3, 0.9 * (1 / max(worst, 1e-12)) ** (1 / 3)))
    angle = (p[0] + np.pi) % (2 * np.pi) - np.pi
    track = np.stack(track)
    order = np.lexsort(np.stack([np.round(angle, 3), np.sign(p[1])]))
    return dict(state=np.asarray(s), lyapunov=np.asarray(lyapunov), crossings=np.asarray(crossings), last=np.asarray(last), mean=np.asarray(mean_z),
                std=np.asarray(np.sqrt(m2 / steps)), track=np.asarray(track), pendulum=np.asarray(p), angle=np.asarray(angle[order]),
                steps=np.asarray([taken, refused]), lengths=np.asarray(lengths), share=np.asarray(float((lyapunov > 0).mean())))
