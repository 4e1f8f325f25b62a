"""Forest fire on a grid.

Fuels, slope and wind, moisture of the day, spotting, regrowth between seasons; a counter-based random generator.
N: cells a side.
"""
import numpy as np

DEFAULT = 220
EMPTY, GRASS, SHRUB, TREE, BURNING, ASH = 0, 1, 2, 3, 4, 5
NEAR = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)]


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(451)
    k = numpy.hypot(*numpy.meshgrid(numpy.fft.fftfreq(N), numpy.fft.fftfreq(N)))

    def field(width):
        f = numpy.fft.ifft2(numpy.fft.fft2(rng.normal(size=(N, N))) * numpy.exp(-(k * width)**2)).real
        return (f - f.mean()) / f.std()
    height = 120 * field(30) + 30 * field(8)
    cover = field(10)
    veg = numpy.select([cover < -1.6, cover < -0.6, cover < 0.1], [EMPTY, GRASS, SHRUB], TREE).astype(numpy.int8)
    return height, veg, rng.integers(0, 2**32, 4, dtype=numpy.uint32), rng.uniform(0.2, 0.8, (3, 2))


class Random:
    """Hash of a cell's number and a counter (lowbias32): the same numbers whatever the order of use."""

    def __init__(self, shape, seed):
        self.cell = np.arange(shape[0] * shape[1], dtype=np.uint32).reshape(shape) * np.uint32(2654435761) ^ seed
        self.counter = 0

    def __call__(self):
        self.counter += 1
        x = self.cell + np.uint32(self.counter * 40503 & 0xffffffff)
        x ^= x >> 16
        x *= np.uint32(0x7feb352d)
        x ^= x >> 15
        x *= np.uint32(0x846ca68b)
        x ^= x >> 16
        return (x >> 8) * (1.0 / (1 << 24))


class Landscape:
    def __init__(self, height, veg, seed, wind):
        self.height, self.veg = height, veg.copy()
        self.rand = Random(veg.shape, seed)
        self.wind = wind
        self.burn_left = np.zeros(veg.shape, dtype=np.int8)
        self.age = np.where(veg == TREE, 30.0, np.where(veg == SHRUB, 8.0, 1.0))
        self.lasts = np.array([0, 1, 2, 4, 0, 0], dtype=np.int8)
        self.moisture = np.full(veg.shape, 0.12)
        self.clock = 0.0
        wide = np.pad(height, 1, mode="edge")
        n, m = veg.shape
        self.push = []
        for dy, dx in NEAR:                       # how much easier fire comes from the neighbour at (dy, dx)
            far = np.sqrt(float(dy * dy + dx * dx))
            rise = (height - wide[1 + dy:1 + dy + n, 1 + dx:1 + dx + m]) / (30.0 * far)
            along = -(dy * wind[0] + dx * wind[1]) / far
            self.push.append(np.exp(0.078 * np.degrees(np.arctan(rise)) * 0.5 + 0.13 * along) / far)

    def ignite(self, y, x, radius=2.5):
        yy, xx = np.meshgrid(np.arange(self.veg.shape[0]), np.arange(self.veg.shape[1]), indexing="ij")
        spot = ((yy - y)**2 + (xx - x)**2 < radius**2) & (self.veg != EMPTY)
        self.set_fire(spot)

    def set_fire(self, where):
        self.burn_left[where] = self.lasts[self.veg[where]]
        self.veg[where] = BURNING

    def weather(self):
        self.clock += 0.25
        day = 0.5 * (1 - np.cos(2 * np.pi * self.clock / 24.0))
        dry = 0.16 - 0.09 * day + 2e-4 * np.clip(-self.height, -200, 200)
        self.moisture += 0.2 * (dry - self.moisture)
        np.clip(self.moisture, 0.03, 0.35, out=self.moisture)

    def step(self):
        """One quarter of an hour; returns the number of cells on fire afterwards."""
        self.weather()
        fire = np.pad((self.veg == BURNING).astype(np.float64), 1)
        n, m = self.veg.shape
        spare = np.ones((n, m))
        for (dy, dx), push in zip(NEAR, self.push):
            spare *= 1.0 - np.minimum(0.30 * push, 0.98) * fire[1 + dy:1 + dy + n, 1 + dx:1 + dx + m]
        flame = np.where(self.veg == GRASS, 1.3, np.where(self.veg == SHRUB, 1.0, np.where(
            self.veg == TREE, 0.7 + 0.01 * np.minimum(self.age, 30), 0.0)))
        damp = np.exp(-9.0 * (self.moisture - 0.08))
        caught = self.rand() < (1.0 - spare) * np.minimum(flame * damp, 1.0)
        torch = (self.veg == BURNING) & (self.rand() < 0.004)
        if bool(torch.any()):                     # brands fly with the wind and start fires where they land
            y, x = np.nonzero(torch)
            reach = 4 + 8 * self.rand()[y, x]
            ty = np.clip(np.rint(y + reach * self.wind[0] / 6), 0, n - 1).astype(np.int64)
            tx = np.clip(np.rint(x + reach * self.wind[1] / 6), 0, m - 1).astype(np.int64)
            dry = (self.moisture[ty, tx] < 0.11) & (flame[ty, tx] > 0)
            caught[ty[dry], tx[dry]] = True
        caught &= (self.veg > EMPTY) & (self.veg < BURNING)
        old = self.veg == BURNING
        self.burn_left[old] -= 1
        self.veg[old & (self.burn_left <= 0)] = ASH
        self.set_fire(caught)
        return int((self.veg == BURNING).sum())

    def regrow(self, years):
        burnt = self.veg == ASH
        self.age += years
        self.age[burnt] = 0.0
        r = self.rand()
        self.veg[burnt & (r < 0.7)] = GRASS
        self.veg[burnt & (r >= 0.7)] = SHRUB
        self.veg[(self.veg == GRASS) & (self.age > 12) & (self.rand() < 0.5)] = SHRUB
        self.veg[(self.veg == SHRUB) & (self.age > 20) & (self.rand() < 0.3)] = TREE


def season(land, y, x, limit=170):
    land.ignite(y, x)
    curve, arrival = [], np.full(land.veg.shape, -1, dtype=np.int32)
    for t in range(limit):
        count = land.step()
        fresh = (land.veg == BURNING) & (arrival < 0)
        arrival[fresh] = t
        curve.append(count)
        if count == 0:
            break
    land.burn_left[land.veg == BURNING] = 0
    land.veg[land.veg == BURNING] = ASH
    return np.array(curve), arrival


def main(asarray, N, given):
    height, veg, seeds, spots = (asarray(v) for v in given)
    out = {}
    land = Landscape(height, veg, seeds[0], (3.0, 4.5))
    for k, spot in enumerate((spots * N).tolist()):
        curve, arrival = season(land, spot[0], spot[1])
        burnt = arrival >= 0
        out[f"curve{k}"], out[f"arrival{k}"] = curve, arrival
        kinds = np.bincount(veg[burnt].astype(np.int64), minlength=4)
        out[f"kinds{k}"] = kinds
        if int(burnt.sum()) > 50:
            yy, xx = np.nonzero(burnt)
            centred = np.stack([yy - yy.mean(), xx - xx.mean()])
            values = np.linalg.eigvalsh(centred @ centred.T / yy.size)
            out[f"shape{k}"] = np.sqrt(values)
            gy, gx = np.gradient(np.where(burnt, arrival, 0).astype(float))
            inner = burnt & np.roll(burnt, 1, 0) & np.roll(burnt, -1, 0) & np.roll(burnt, 1, 1) & np.roll(burnt, -1, 1)
            speed = 1.0 / np.maximum(np.hypot(gy, gx)[inner], 0.1)
            out[f"speed{k}"] = np.histogram(speed, bins=12, range=(0.0, 10.0))[0]
        land.regrow(15.0)
    out["veg"], out["age"], out["moisture"] = land.veg, land.age.mean(), land.moisture
    return out
