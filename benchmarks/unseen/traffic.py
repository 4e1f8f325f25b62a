"""Car-following traffic on a ring road with a signal, a slow zone and loop detectors (Intelligent Driver Model)."""
import numpy as np

DEFAULT = 4000           # vehicles
STEPS = 240
DT = 0.5


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(99)
    length = 22.0 * N
    x = numpy.sort((numpy.arange(N) + rng.uniform(-0.3, 0.3, N)) * 22.0 % length)
    truck = rng.uniform(size=N) < 0.15
    v0 = numpy.where(truck, 22.0, rng.normal(32.0, 2.5, N))
    return {"x": x, "v": rng.uniform(8.0, 12.0, N), "truck": truck, "v0": v0, "length": length,
            "headway": rng.normal(1.4, 0.15, N), "detectors": numpy.linspace(0.0, length, 9)[:-1] + 50.0}


class Road:
    def __init__(self, asarray, data):
        self.length = data["length"]
        self.x = asarray(data["x"])
        self.v = asarray(data["v"])
        truck = asarray(data["truck"])
        self.v0 = asarray(data["v0"])
        self.T = asarray(data["headway"])
        self.size = np.where(truck, 12.0, 4.5)
        self.amax = np.where(truck, 0.7, 1.2)
        self.root = 2.0 * np.sqrt(self.amax * 1.8)
        self.slow = (0.55 * self.length, 0.62 * self.length)
        self.signal = 0.25 * self.length

    def acceleration(self, red):
        lead = np.roll(self.x, -1)
        lead[-1] += self.length
        gap = lead - self.x - np.roll(self.size, -1)
        dv = self.v - np.roll(self.v, -1)
        if red:
            # the first vehicle upstream of the signal sees a standing obstacle there
            to_line = (self.signal - self.x) % self.length
            first = to_line.argmin()
            if to_line[first] < gap[first]:
                gap[first] = to_line[first]
                dv[first] = self.v[first]
        gap = np.maximum(gap, 0.5)
        pos = self.x % self.length
        inside = (pos > self.slow[0]) & (pos < self.slow[1])
        want = np.where(inside, np.minimum(self.v0, 14.0), self.v0)
        star = 2.0 + np.maximum(0.0, self.v * self.T + self.v * dv / self.root)
        free = 1.0 - (self.v / want)**4
        return np.clip(self.amax * (free - (star / gap)**2), -8.0, 2.0)

    def step(self, red):
        a = self.acceleration(red)
        v = np.maximum(self.v + a * DT, 0.0)
        moved = 0.5 * (self.v + v) * DT
        self.v = v
        self.x = self.x + moved
        return moved, a


def crossings(before, moved, detectors, length):
    """How many vehicles pass each detector in this step."""
    ahead = (detectors[:, None] - before[None, :]) % length
    return np.sum(ahead < moved[None, :], axis=1)


def edie(positions, speeds, length, cells):
    """Edie's density and flow on a space-time grid, from the recorded trajectories."""
    frames = positions.shape[0]
    cell = np.floor((positions % length) / length * cells).astype(int)
    frame = np.arange(frames)[:, None] // 20
    nframes = -(-frames // 20)
    flat = (frame * cells + cell).ravel()
    count = np.bincount(flat, minlength=nframes * cells).reshape(nframes, cells)
    total = np.bincount(flat, weights=speeds.ravel(), minlength=nframes * cells).reshape(nframes, cells)
    area = 20.0 * length / cells
    return count / area, total / area


def main(asarray, N, data):
    road = Road(asarray, data)
    detectors = asarray(data["detectors"])
    counts = np.zeros((STEPS, len(detectors)), dtype=np.int64)
    positions = np.empty((STEPS // 5, N))
    speeds = np.empty((STEPS // 5, N))
    mean_speed = np.zeros(STEPS)
    stopped = np.zeros(N)
    fuel = np.zeros(N)
    for n in range(STEPS):
        red = (n // 60) % 4 == 1
        before = road.x
        moved, a = road.step(red)
        counts[n] = crossings(before, moved, detectors, road.length)
        mean_speed[n] = road.v.mean()
        stopped[road.v < 0.5] += DT
        fuel += DT * np.maximum(0.0, 0.4 + 0.02 * road.v + 0.3 * a * road.v)
        if n % 5 == 4:
            positions[n // 5] = road.x
            speeds[n // 5] = road.v
        if n > 100 and mean_speed[n] < 0.05:
            break                                   # gridlock
    density, flow = edie(positions, speeds, road.length, 24)
    speed = flow / np.maximum(density, 1e-9)
    jam = speed < 5.0
    busy = density > np.median(density)
    slope = np.polyfit(density[busy], flow[busy], 1)
    per_minute = counts[:(STEPS // 120) * 120].reshape(-1, 120, len(detectors)).sum(axis=1)
    gaps = np.diff(road.x, append=road.x[:1] + road.length)
    return {"x": road.x, "v": road.v, "mean_speed": mean_speed, "per_minute": per_minute, "stopped": stopped,
            "density": density, "flow": flow, "jam": jam.mean(axis=0), "branch": slope,
            "min_gap": gaps.min(), "fuel": fuel, "steps": n, "capacity": flow.max(), "worst": int(stopped.argmax())}
