"""Terrain on a raster: fractal surface, pits filled, flow directions and accumulation, stream order, basins, slope and shade, least-cost paths, views along rays, erosion, a fire automaton. N: side."""
import numpy
import numpy as np

DEFAULT = 264
CELL, TICKS = 30.0, 50
STEPS = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)]


def inputs(N=DEFAULT):
    rng = numpy.random.default_rng(4110)
    return dict(noise=rng.normal(size=(N, N)), chance=rng.random((16, N, N)).astype(numpy.float32), wet=rng.random((N, N)).astype(numpy.float32))


def surface(noise):
    n = len(noise)
    ky, kx = np.fft.fftfreq(n)[:, None], np.fft.rfftfreq(n)[None, :]
    k = np.sqrt(ky ** 2 + kx ** 2)
    k[0, 0] = 1.0
    amplitude = np.where(k < 0.18, k ** -1.9, 0.18 ** -1.9 * np.exp(-((k - 0.18) / 0.06) ** 2))
    amplitude[0, 0] = 0.0
    z = np.fft.irfft2(np.fft.rfft2(noise) * amplitude, s=(n, n))
    y, x = np.meshgrid(np.linspace(-1, 1, n), np.linspace(-1, 1, n), indexing="ij")
    z = (z - z.mean()) / z.std() * 140 + 250 * (1 - 0.6 * x * x) + 90 * y
    return z - z.min()


def shifted(a, dy, dx, fill):
    """The neighbour's value at every cell, fill beyond the edge."""
    out = np.full_like(a, fill)
    h, w = a.shape
    out[max(0, -dy):h - max(0, dy), max(0, -dx):w - max(0, dx)] = a[max(0, dy):h - max(0, -dy), max(0, dx):w - max(0, -dx)]
    return out


def fill_pits(z, slope=1e-3, limit=900):
    """Planchon and Darboux: from a flood down to the ground."""
    water = np.full_like(z, 1e9)
    for edge in ((0, slice(None)), (-1, slice(None)), (slice(None), 0), (slice(None), -1)):
        water[edge] = z[edge]
    for sweep in range(limit):
        padded = np.pad(water, 1, constant_values=np.inf)
        low = np.full_like(z, np.inf)
        for dy, dx in STEPS:
            np.minimum(low, padded[1 + dy:1 + dy + len(z), 1 + dx:1 + dx + len(z)], out=low)
        new = np.minimum(water, np.maximum(z, low + slope))
        if sweep % 8 == 7 and bool((new == water).all()):
            break
        water = new
    return water, sweep


def directions(z):
    drops = np.stack([(z - shifted(z, dy, dx, np.nan)) / np.hypot(dy, dx) for dy, dx in STEPS])
    drops = np.where(np.isnan(drops), -1e9, drops)
    d = drops.argmax(axis=0).astype(np.uint8)
    fall = np.take_along_axis(drops, d[None].astype(np.int64), axis=0)[0]
    n = len(z)
    dy, dx = np.array([s[0] for s in STEPS]), np.array([s[1] for s in STEPS])
    cell = np.arange(n * n).reshape(n, n)
    down = np.where(fall > 0, cell + dy[d] * n + dx[d], cell)
    return d, down.ravel(), fall


def accumulate(down, z, weight):
    """Every round passes what each cell has newly got to the cell below it."""
    total, moving = weight.copy(), weight.copy()
    own = down == np.arange(len(down))
    rounds = 0
    while True:
        moving = np.bincount(down, weights=np.where(own, 0.0, moving), minlength=len(down))
        if rounds % 8 == 7 and not bool((moving > 0).any()):
            break
        total += moving
        rounds += 1
    return total, rounds


def strahler(down, stream, rounds=60):
    order = stream.astype(np.int32)
    n = len(down)
    feeds = stream & (down != np.arange(n))
    for r in range(rounds):
        most = np.zeros(n, dtype=np.int32)
        np.maximum.at(most, down[feeds], order[feeds])
        same = feeds & (order == most[down])
        two = np.bincount(down[same], minlength=n) >= 2
        new = np.where(stream, np.maximum(1, most + two), 0).astype(np.int32)
        if bool(np.array_equal(new, order)):
            break
        order = new
    return order, r


def basins(down):
    root = down.copy()
    for _ in range(16):
        root = root[root]
    names, label, size = np.unique(root, return_inverse=True, return_counts=True)
    return label.reshape(root.shape), size


def cost_distance(cost, seeds, limit=500):
    far = np.full(cost.shape, np.inf)
    far[seeds] = 0.0
    half = [0.5 * np.hypot(dy, dx) * CELL * (cost + shifted(cost, dy, dx, 1e6)) for dy, dx in STEPS]
    h, w = far.shape
    border = np.pad(far, 1, constant_values=np.inf)
    far = border[1:-1, 1:-1]
    old, way = far.copy(), np.empty_like(cost)
    for sweep in range(limit):
        for (dy, dx), price in zip(STEPS, half):
            np.add(border[1 + dy:1 + dy + h, 1 + dx:1 + dx + w], price, out=way)
            np.minimum(far, way, out=far)
        if sweep % 8 == 7:
            if bool(np.array_equal(old, far)):
                break
            old[...] = far
    return far.copy(), sweep


def descend(far, start, steps):
    """Walkers go down the cost surface, all at once."""
    n = far.shape[1]
    options = np.stack([far] + [shifted(far, dy, dx, np.inf) for dy, dx in STEPS])
    to = np.array([0] + [dy * n + dx for dy, dx in STEPS])
    nxt = np.arange(far.size) + to[options.argmin(axis=0).ravel()]
    walk = [start]
    for _ in range(steps):
        walk.append(nxt[walk[-1]])
    return np.stack(walk)


def views(z, y0, x0, rays=360, reach=70):
    """Along each ray a cell is seen when no slope before it is greater: running maxima by doubling."""
    t = np.linspace(0, 2 * np.pi, rays, endpoint=False)[:, None]
    r = np.arange(1, reach + 1)
    y, x = y0 + 0.437 + r * np.sin(t), x0 + 0.391 + r * np.cos(t)
    inside = (y >= 0) & (y < z.shape[0] - 1) & (x >= 0) & (x < z.shape[1] - 1)
    yi, xi = np.where(inside, np.floor(y), 0).astype(np.int32), np.where(inside, np.floor(x), 0).astype(np.int32)
    angle = np.where(inside, (z[yi, xi] - z[y0, x0] - 2.0) / (r * CELL), -np.inf)
    top = angle.copy()
    step = 1
    while step < reach:
        top[:, step:] = np.maximum(top[:, step:], top[:, :-step].copy())
        step *= 2
    before = np.concatenate([np.full((rays, 1), -np.inf), top[:, :-1]], axis=1)
    seen = inside & (angle >= before)
    chart = np.zeros(z.shape, dtype=np.int32)
    np.add.at(chart, (yi[seen], xi[seen]), 1)
    return chart > 0, seen.sum(axis=1)


def fire(fuel, slope, chance, start):
    """States: 0 bare, 1 fuel, 2 burning, 3 burnt."""
    state = fuel.astype(np.uint8)
    state[start] = 2
    age = np.zeros(state.shape, dtype=np.uint8)
    lit = []
    wind = [0.05, 0.12, 0.3, 0.05, 0.34, 0.02, 0.05, 0.12]
    for t in range(TICKS):
        burning = (state == 2).astype(np.float32)
        safe = np.ones(state.shape, dtype=np.float32)
        for (dy, dx), w in zip(STEPS, wind):
            push = np.clip(w * (1 + 2.0 * slope[0] * -dy + 2.0 * slope[1] * -dx), 0, 0.95)
            safe *= 1 - push * shifted(burning, dy, dx, 0)
        catch = (state == 1) & (np.roll(chance[t % 16], (3 * t, 5 * t), axis=(0, 1)) > safe)
        age += burning.astype(np.uint8)
        state[age >= 3] = 3
        state[catch] = 2
        lit.append(np.count_nonzero(state == 2))
    return state, np.stack([np.asarray(c) for c in lit])


def erode(z, down, area, rounds=40):
    """Stream power on fixed flow paths, and slopes that creep."""
    flat = z.ravel().copy()
    n = len(z)
    for _ in range(rounds):
        fall = np.maximum(flat - flat[down], 0) / CELL
        cut = np.minimum(0.02 * np.sqrt(area) * fall, 0.3 * fall * CELL)
        flat -= cut
        ground = flat.reshape(n, n)
        p = np.pad(ground, 1, mode="edge")
        ground += 0.04 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * p[1:-1, 1:-1])
    return flat.reshape(n, n)


def main(asarray, N=DEFAULT, data=None):
    data = data or inputs(N)
    noise, chance, wet = asarray(data["noise"]), asarray(data["chance"]), asarray(data["wet"])
    z = surface(noise)
    filled, sweeps = fill_pits(z)
    depth = filled - z
    d8, down, fall = directions(filled)
    area, rounds = accumulate(down, filled, np.ones(N * N))
    stream = area > 60
    order, passes = strahler(down, stream)
    label, size = basins(down)
    biggest = np.argsort(-size, kind="stable")[:12]
    height = np.bincount(label, weights=z.ravel()) / size
    # slope, aspect, shade and curvature by Horn's weights
    p = np.pad(z, 1, mode="edge")
    gx = ((p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:]) - (p[:-2, :-2] + 2 * p[1:-1, :-2] + p[2:, :-2])) / (8 * CELL)
    gy = ((p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:]) - (p[:-2, :-2] + 2 * p[:-2, 1:-1] + p[:-2, 2:])) / (8 * CELL)
    slope, aspect = np.arctan(np.hypot(gx, gy)), np.arctan2(gy, -gx)
    shade = np.zeros(z.shape, dtype=np.float32)
    for azimuth, share in ((225, 0.2), (270, 0.2), (315, 0.4), (360, 0.2)):
        a = np.deg2rad(float(azimuth))
        light = np.sin(np.pi / 4) * np.cos(slope) + np.cos(np.pi / 4) * np.sin(slope) * np.cos(a - np.pi / 2 - aspect)
        shade += np.float32(share) * np.clip(light, 0, 1).astype(np.float32)
    wetness = np.log(area.reshape(N, N) * CELL / np.maximum(np.tan(slope), 1e-3))
    roses = np.histogram(aspect, bins=16, range=(-np.pi, np.pi), weights=slope)[0]
    relative = (z - z.min()) / (z.max() - z.min())
    hypsometry = 1 - np.searchsorted(np.sort(relative.ravel()), np.linspace(0, 1, 21)) / z.size
    # landforms by the place above the surroundings, at two scales, from summed areas
    sums = np.pad(np.cumsum(np.cumsum(z, axis=0), axis=1), ((1, 0), (1, 0)))
    place = []
    for r in (4, 12):
        i, j = np.arange(N)[:, None], np.arange(N)[None, :]
        i0, i1, j0, j1 = np.maximum(i - r, 0), np.minimum(i + r + 1, N), np.maximum(j - r, 0), np.minimum(j + r + 1, N)
        mean = (sums[i1, j1] - sums[i0, j1] - sums[i1, j0] + sums[i0, j0]) / ((i1 - i0) * (j1 - j0))
        above = z - mean
        place.append((above - above.mean()) / above.std())
    small, large = place
    steep = slope > np.median(slope)
    kinds = [np.full(z.shape, k, dtype=np.int8) for k in range(1, 6)]
    form = np.select([(small > 1) & (large > 1), (small < -1) & (large < -1), large > 1, large < -1, steep], kinds, np.int8(0))
    lakes = np.where(depth > 1.0, depth, np.nan)
    deep = np.stack([np.nanmax(lakes), np.nanmedian(lakes), np.nansum(lakes) * CELL ** 2])
    relief = np.lib.stride_tricks.sliding_window_view(z, (9, 9))[::3, ::3]
    relief = relief.max(axis=(2, 3)) - relief.min(axis=(2, 3))
    # roads, from the four greatest outlets
    cost = 1 + 25 * np.tan(slope) ** 2 + 3.0 * stream.reshape(N, N)
    outlet = np.argsort(-np.where(down == np.arange(N * N), area, 0), kind="stable")[:4]
    seeds = np.zeros((N, N), dtype=bool)
    seeds.ravel()[outlet] = True
    far, relaxed = cost_distance(cost, seeds)
    start = np.arange(0, N * N, 997)
    walk = descend(far, start, 3 * N)
    used = np.bincount(walk.ravel(), minlength=N * N)
    peak = np.unravel_index(z.argmax(), z.shape)
    seen = np.zeros(z.shape, dtype=bool)
    open_to = []
    for y0, x0 in ((int(peak[0]), int(peak[1])), (N // 3, N // 3), (N // 2, 2 * N // 3), (3 * N // 4, N // 4)):
        now, along = views(z, y0, x0)
        seen |= now
        open_to.append(along.mean())
    fuel = (wet < 0.83) & ~stream.reshape(N, N)
    begin = np.zeros((N, N), dtype=bool)
    begin[N // 2 - 2:N // 2 + 2, N // 5:N // 5 + 4] = True
    state, lit = fire(fuel, (gy, gx), chance, begin)
    worn = erode(filled, down, area)
    return dict(form=form, deep=deep, relief=relief, z=z, depth=depth, fall=fall, d8=np.bincount(d8.ravel(), minlength=8), area=np.sort(area)[::-1][:50], order=np.bincount(order, minlength=6), size=size[biggest], height=height[biggest], shade=shade,
                wetness=wetness, roses=roses, hypsometry=hypsometry, far=far, used=(used > 0).reshape(N, N), seen=seen, open_to=np.stack(open_to), state=state, lit=lit, worn=worn,
                work=np.asarray([sweeps, rounds, passes, relaxed]))
