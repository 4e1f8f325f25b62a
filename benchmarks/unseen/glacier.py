"""Valley glaciers by the shallow-ice approximation.

Shallow-ice flow on a staggered grid, degree-day mass balance, adaptive steps, a warming experiment, outlines and
velocities. N: cells a side.
"""
import numpy as np

DEFAULT = 120
DX, RHO, GRAV, GLEN, YEAR = 100.0, 910.0, 9.81, 3, 3.15576e7
GAMMA = 2.0 * 2.4e-24 * YEAR * (RHO * GRAV)**GLEN / (GLEN + 2)


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(77)
    y, x = numpy.mgrid[0:N, 0:N] / (N - 1.0)
    bed = 1700 + 0 * x
    for px, py, top in ((0.25, 0.3, 1900), (0.7, 0.25, 1600), (0.5, 0.72, 2100), (0.85, 0.75, 1500), (0.15, 0.8, 1400)):
        bed += top * numpy.exp(-((x - px)**2 + (y - py)**2) / 0.018)
    bed += 200 * numpy.cos(9 * x + 2 * y) * numpy.sin(7 * y)
    k = numpy.hypot(*numpy.meshgrid(numpy.fft.fftfreq(N), numpy.fft.fftfreq(N)))
    rough = numpy.fft.ifft2(numpy.fft.fft2(rng.normal(size=(N, N))) * numpy.exp(-(k * 22)**2)).real
    bed += 130 * rough / rough.std()
    months = 9.0 * numpy.sin(2 * numpy.pi * (numpy.arange(12) - 3.5) / 12)
    return bed, months, rng.normal(0, 0.35, 200)


def mass_balance(surface, months, shift):
    """Metres of ice a year: snow by a ramp in temperature, melt by positive degree days of the twelve months."""
    mean = 15.5 - 0.0065 * surface + shift
    temp = mean[None] + months[:, None, None]
    snowy = np.where(temp < 0.0, 1.0, np.where(temp > 2.0, 0.0, 1.0 - temp / 2.0))
    precip = 0.09 + 5e-5 * np.clip(surface - 1500.0, 0.0, 2000.0)
    snow = (snowy * precip).sum(axis=0)
    heat = np.maximum(temp, 0.0).sum(axis=0) * 30.4
    melt_snow = np.minimum(heat * 0.003, snow)
    left = np.maximum(heat - melt_snow / 0.003, 0.0)
    return (snow - melt_snow - left * 0.007) / 0.91


def diffusivity(H, s):
    """On the corners of the cells, by Mahaffy's averages."""
    Hc = 0.25 * (H[1:, 1:] + H[1:, :-1] + H[:-1, 1:] + H[:-1, :-1])
    sx = (s[1:, 1:] - s[1:, :-1] + s[:-1, 1:] - s[:-1, :-1]) / (2 * DX)
    sy = (s[1:, 1:] - s[:-1, 1:] + s[1:, :-1] - s[:-1, :-1]) / (2 * DX)
    slope2 = np.minimum(sx * sx + sy * sy, 0.5)
    return GAMMA * Hc**(GLEN + 2) * slope2


def step(H, bed, balance, dt_max):
    s = bed + H
    D = diffusivity(H, s)
    dt = min(dt_max, 0.11 * DX**2 / max(float(D.max()), 1e-6))
    Dx, Dy = 0.5 * (D[1:] + D[:-1]), 0.5 * (D[:, 1:] + D[:, :-1])
    qx = -Dx * (s[1:-1, 1:] - s[1:-1, :-1]) / DX
    qy = -Dy * (s[1:, 1:-1] - s[:-1, 1:-1]) / DX
    # no ice leaves an empty cell
    qx = np.where(qx > 0, qx * (H[1:-1, :-1] > 0), qx * (H[1:-1, 1:] > 0))
    qy = np.where(qy > 0, qy * (H[:-1, 1:-1] > 0), qy * (H[1:, 1:-1] > 0))
    inner = H[1:-1, 1:-1]
    inner -= dt / DX * (qx[:, 1:] - qx[:, :-1] + qy[1:] - qy[:-1])
    inner += dt * balance[1:-1, 1:-1]
    np.maximum(inner, 0.0, out=inner)
    return dt


def simulate(H, bed, months, shifts, years):
    volume, area, clock, steps, year = [], [], 0.0, 0, 0
    while clock < years - 1e-9:
        if clock >= year:
            balance = mass_balance(bed + H, months, shifts[year])
            volume.append(H.sum())
            area.append((H > 5.0).sum())
            year += 1
        clock += step(H, bed, balance, min(0.5, years - clock))
        steps += 1
    return np.stack(volume) * DX**2 * 1e-9, np.stack(area) * DX**2 * 1e-6, steps


def outlines(ice):
    """Numbers of the glaciers: the smallest cell number spreads among the neighbours until nothing changes."""
    n = ice.size
    label = np.where(ice, np.arange(n).reshape(ice.shape), n)
    while True:
        wide = np.pad(label, 1, constant_values=n)
        new = label.copy()
        for dy in range(3):
            for dx in range(3):
                np.minimum(new, wide[dy:dy + ice.shape[0], dx:dx + ice.shape[1]], out=new)
        new[~ice] = n
        if bool((new == label).all()):
            return new
        label = new


def main(asarray, N, given):
    bed, months, noise = (asarray(v) for v in given)
    H = np.zeros_like(bed)
    first = mass_balance(bed, months, 0.0)
    H[first > 0] = 40.0
    grow_v, grow_a, n1 = simulate(H, bed, months, (0.3 * noise[:60]).tolist(), 60)
    old = H.copy()
    warm = np.linspace(0.0, 2.5, 50) + noise[60:110]
    melt_v, melt_a, n2 = simulate(H, bed, months, warm.tolist(), 50)

    s = bed + old
    gy, gx = np.gradient(s, DX)
    slope = np.sqrt(gx**2 + gy**2)
    speed = 2 * 2.4e-24 * YEAR / (GLEN + 1) * (RHO * GRAV * slope)**GLEN * old**(GLEN + 1)
    ice = old > 5.0
    label = outlines(ice)
    names, size = np.unique(label[ice], return_counts=True)
    largest = label == names[size.argmax()]
    balance = mass_balance(s, months, 0.0)
    bands = np.arange(1500.0, 4500.0, 100.0)
    place = np.searchsorted(bands, s[ice])
    hypsometry = np.bincount(place, minlength=len(bands) + 1)
    by_band = np.bincount(place, weights=balance[ice], minlength=len(bands) + 1) / np.maximum(hypsometry, 1)
    crossing = np.flatnonzero((by_band[1:] > 0) & (by_band[:-1] < 0))
    each = np.bincount(np.searchsorted(names, label[ice]), weights=old[ice]) * DX**2 * 1e-9
    fit = np.polyfit(np.log(slope[old > 10]), np.log(old[old > 10]), 1)
    return dict(thickness=old, remaining=H, grow_volume=grow_v, grow_area=grow_a, melt_volume=melt_v,
                melt_area=melt_a, steps=np.array([n1, n2]), speed=np.percentile(speed[ice], [25, 50, 75, 99]),
                sizes=size, each=each, longest=np.ptp(s[largest]), hypsometry=hypsometry, by_band=by_band,
                line=crossing, scaling=fit, lost=1 - float(H.sum()) / float(old.sum()))
