"""Rivers from a height map: filled sinks, D8 directions, accumulated flow, Strahler orders, basins, wetness, erosion.

N: cells a side.
"""
import numpy as np

DEFAULT = 400
CELL = 30.0
DY = (-1, -1, -1, 0, 0, 1, 1, 1)
DX = (-1, 0, 1, -1, 1, -1, 0, 1)
LONG = (2**0.5, 1.0, 2**0.5, 1.0, 1.0, 2**0.5, 1.0, 2**0.5)


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(365)
    k = numpy.hypot(*numpy.meshgrid(numpy.fft.fftfreq(N), numpy.fft.fftfreq(N)))
    rough = numpy.fft.ifft2(numpy.fft.fft2(rng.normal(size=(N, N))) * numpy.maximum(k, 0.5 / N)**-1.7).real
    y, x = numpy.mgrid[0:N, 0:N] / N
    z = 400 + 60 * rough / rough.std() + 180 * x + 90 * (y - 0.5)**2
    rain = rng.gamma(2.0, 0.5, (24, 1, 1)) * (1 + 0.5 * numpy.sin(3 * x + 2 * y))
    return z, rain[:, ::8, ::8].copy()


def around(z, outside):
    h, w = z.shape
    p = np.pad(z, 1, constant_values=outside)
    return np.stack([p[1 + dy:1 + dy + h, 1 + dx:1 + dx + w] for dy, dx in zip(DY, DX)])


def fill_sinks(z, slope=1e-3):
    """Planchon and Darboux: water everywhere, lowered until it drains to the border."""
    water = np.full_like(z, 1e9)
    water[0], water[-1], water[:, 0], water[:, -1] = z[0], z[-1], z[:, 0], z[:, -1]
    for rounds in range(10**5):
        new = np.minimum(water, np.maximum(z, around(water, 1e9).min(axis=0) + slope))
        if rounds % 8 == 7 and bool((new == water).all()):
            return water, rounds
        water = new


def directions(z):
    h, w = z.shape
    drop = (z - around(z, 1e9)) / (CELL * np.array(LONG))[:, None, None]
    which = drop.argmax(axis=0)
    slope = np.take_along_axis(drop, which[None], axis=0)[0]
    offset = np.array([dy * w + dx for dy, dx in zip(DY, DX)])
    cell = np.arange(h * w).reshape(h, w)
    edge = np.pad(np.zeros((h - 2, w - 2), dtype=bool), 1, constant_values=True)
    to = np.where(edge | (slope <= 0), cell, cell + offset[which])
    return to.ravel(), np.where(edge, 0.0, slope).ravel(), which


def levels(to):
    """Steps to the outlet, and the outlet, by pointers that double."""
    far, jump = (to != np.arange(len(to))).astype(np.int64), to
    while bool((far[jump] > 0).any()):
        far, jump = far + far[jump], jump[jump]
    return far, jump


def by_level(far):
    """Cells in order from the farthest, and where each distance begins."""
    order = np.argsort(-far, kind="stable")
    return order, [0] + np.cumsum(np.bincount(far)[::-1]).tolist()


def accumulate(to, order, bounds):
    flow = np.ones(len(to))
    for a, b in zip(bounds[:-2], bounds[1:-1]):
        cells = order[a:b]
        np.add.at(flow, to[cells], flow[cells])
    return flow


def strahler(to, order, bounds, stream):
    rank = stream.astype(float)
    for a, b in zip(bounds[:-2], bounds[1:-1]):
        cells = order[a:b][stream[order[a:b]]]
        if len(cells) == 0:
            continue
        down, where = np.unique(to[cells], return_inverse=True)
        best = np.zeros(len(down))
        np.maximum.at(best, where, rank[cells])
        ties = np.bincount(where, weights=(rank[cells] == best[where]).astype(float))
        rank[down] = np.maximum(rank[down], best + (ties > 1))
    return rank.astype(int)


def main(asarray, N, given):
    z, rain = (asarray(g) for g in given)
    water, rounds = fill_sinks(z)
    to, slope, which = directions(water)
    far, outlet = levels(to)
    order, bounds = by_level(far)
    area = accumulate(to, order, bounds) * CELL**2
    stream = area > 60 * CELL**2
    rank = strahler(to, order, bounds, stream)

    # a storm: each hour's rain, with a delay by the distance to the outlet
    storm = np.repeat(np.repeat(rain, 8, axis=1), 8, axis=2)[:, :N, :N].reshape(len(rain), -1)
    basin, number, size = np.unique(outlet, return_inverse=True, return_counts=True)
    largest = outlet == basin[int(size.argmax())]
    delay = far[largest] // 12
    hydrograph = np.zeros(25 + int(delay.max()))
    for hour in range(24):
        amount = np.bincount(delay, weights=np.maximum(storm[hour][largest] - 0.3, 0.0))
        hydrograph[hour:hour + len(amount)] += amount

    wetness = np.log(area / CELL / np.maximum(slope, 1e-3))
    _, drain = levels(np.where(stream, np.arange(N * N), to))      # height above the nearest stream
    above = water.ravel() - water.ravel()[drain]
    relief = np.full(len(basin), -np.inf)
    np.maximum.at(relief, number, water.ravel())
    relief -= water.ravel()[basin]

    surface, lowered = water.ravel().copy(), []                    # stream-power erosion, directions kept
    run = np.where(np.isin(which, np.array([0, 2, 5, 7])), 2**0.5, 1.0).ravel() * CELL
    for step in range(60):
        eroded = np.minimum(2e-2 * np.sqrt(area) * np.maximum(slope, 0.0), 0.3 * (surface - surface[to]))
        surface -= eroded
        slope = (surface - surface[to]) / run
        lowered.append(eroded.mean())
    concavity = np.polyfit(np.log(area[stream]), np.log(np.maximum(slope[stream], 1e-5)), 1)
    return dict(rounds=rounds, lakes=np.count_nonzero(water - z > 0.01), volume=(water - z).sum(), area=area,
                longest=far.max(), directions=np.bincount(which.ravel(), minlength=8), ranks=np.bincount(rank[stream]),
                sizes=np.sort(size)[::-1][:10], relief=np.sort(relief)[::-1][:10],
                hydrograph=hydrograph, concavity=concavity,
                wetness=np.percentile(wetness, [10, 50, 90]), above=np.histogram(above, bins=np.arange(0, 120.0, 10))[0],
                lowered=np.stack(lowered), hypsometry=np.sort(surface)[::N * N // 20])
