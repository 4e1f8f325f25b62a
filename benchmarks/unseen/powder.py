"""Rietveld refinement of a powder diffraction pattern of two phases.

Reflections of a tetragonal oxide and a cubic salt, structure factors with thermal motion, pseudo-Voigt profiles with
Caglioti widths, a Chebyshev background; Gauss-Newton with damping; errors, agreement factors. N: points of the pattern.
"""
import numpy as np

DEFAULT = 2400
WAVE = 1.5406
ATOMS = {"Ti": (12.0, 6.5, 7.0, 35.0, 2.9), "O": (4.9, 9.5, 2.3, 30.0, 0.8),        # Gaussians and a constant
         "Na": (6.0, 3.2, 4.2, 11.0, 0.7), "Cl": (11.0, 2.0, 6.4, 21.0, -0.3)}
# parameters: a1, c1, x1, Bm1, Bo1, scale1, a2, B2, scale2, zero, U, V, W, eta


def inputs(N):
    import numpy
    rng = numpy.random.default_rng(808)
    two_theta = numpy.linspace(20.0, 110.0, N)
    start = numpy.array([4.600, 2.952, 0.302, 0.5, 0.5, 1.2, 5.635, 1.0, 0.7, 0.0, 0.06, -0.03, 0.05, 0.4])
    true = numpy.array([4.594, 2.9586, 0.3053, 0.42, 0.61, 1.5, 5.6402, 1.35, 0.9, 0.035, 0.045, -0.022, 0.042, 0.55])
    return two_theta, start, true, rng.normal(size=N)


def reflections(hmax, a, c, limit):
    """One of each set of equivalent indices (Laue class 4/mmm) with its multiplicity."""
    h, k, l = (v.ravel() for v in np.mgrid[0:hmax + 1, 0:hmax + 1, 0:hmax + 1])
    s2 = (h * h + k * k) / a**2 + l * l / c**2
    keep = (h >= k) & (s2 > 0) & (s2 < limit)
    h, k, l = h[keep], k[keep], l[keep]
    mult = 2**((h > 0).astype(int) + (k > 0) + (l > 0) + (h != k))
    order = np.argsort(s2[keep].round(9), kind="stable")
    return np.stack([h, k, l])[:, order], mult[order]


def structure(hkl, sites, s2):
    """Real and imaginary parts from the sites (kind, B, positions)."""
    re = im = 0.0
    for kind, B, xyz in sites:
        phase = 2 * np.pi * np.einsum("ir,ai->ar", hkl, xyz)
        a1, b1, a2, b2, c = ATOMS[kind]
        f = (a1 * np.exp(-b1 * s2) + a2 * np.exp(-b2 * s2) + c) * np.exp(-B * s2)
        re, im = re + f * np.cos(phase).sum(axis=0), im + f * np.sin(phase).sum(axis=0)
    return re * re + im * im


def rutile(x):
    metal = np.array([[0, 0, 0], [0.5, 0.5, 0.5]])
    return metal, metal[[0, 0, 1, 1]] + x * np.array([[1, 1, 0], [-1, -1, 0], [1, -1, 0], [-1, 1, 0]])


def pseudo_voigt(x, width, eta):
    t = (x / width)**2
    gauss = np.sqrt(np.log(2) / np.pi) * np.exp(-4 * np.log(2) * t)
    return 2 / width * (eta / np.pi / (1 + 4 * t) + (1 - eta) * gauss)


def phase_pattern(tt, hkl, mult, s2, F2, scale, zero, widths, eta):
    theta = np.arcsin(np.minimum(WAVE * np.sqrt(s2), 0.999))
    lp = (1 + np.cos(2 * theta)**2) / (np.sin(theta)**2 * np.cos(theta))
    pos = np.rad2deg(2 * theta) + zero
    fwhm = np.sqrt(np.maximum(np.polyval(widths, np.tan(theta)), 1e-3))
    return pseudo_voigt(tt[:, None] - pos[None, :], fwhm, eta) @ (scale * 1e-2 * mult * lp * F2)


def model(p, tt, lists):
    (hkl1, m1), (hkl2, m2) = lists
    s2 = ((hkl1[0]**2 + hkl1[1]**2) / p[0]**2 + hkl1[2]**2 / p[1]**2) / 4
    metal, oxygen = rutile(p[2])
    F1 = structure(hkl1, [("Ti", p[3], metal), ("O", p[4], oxygen)], s2)
    y = phase_pattern(tt, hkl1, m1, s2, F1, p[5], p[9], p[10:13], p[13])
    s2 = (hkl2**2).sum(axis=0) / p[6]**2 / 4
    corner = np.array([[0, 0, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]])
    F2 = structure(hkl2, [("Na", p[7], corner), ("Cl", p[7], corner + 0.5)], s2)
    return y + phase_pattern(tt, hkl2, m2, s2, F2 * 0.2, p[8], p[9], p[10:13], p[13])


def chebyshev(x, n):
    return np.cos(np.arange(n) * np.arccos(np.clip(x, -1, 1))[:, None])


def refine(p, y, sigma, tt, lists, bg, free, cycles):
    """The background is linear, so it is solved for together with the steps of the free parameters."""
    w, chi, mu, calc = 1 / sigma, [], 1e-3, model(p, tt, lists)
    back = np.linalg.lstsq(bg * w[:, None], (y - calc) * w, rcond=None)[0]
    best = float((((y - calc - bg @ back) * w)**2).sum())
    for _ in range(cycles):
        cols = []
        for i in free:
            step = 1e-5 * max(abs(float(p[i])), 0.1)
            cols.append((model(p + step * (np.arange(p.size) == i), tt, lists) - calc) / step)
        A = np.concatenate([np.stack(cols, axis=1), bg], axis=1) * w[:, None]
        r = (y - calc - bg @ back) * w
        M, g = A.T @ A, A.T @ r
        d = np.sqrt(np.diagonal(M))
        delta = np.linalg.solve(M / np.outer(d, d) + mu * np.eye(len(d)), g / d) / d
        q, b = p.copy(), back + delta[len(free):]
        q[np.array(free)] += delta[:len(free)]
        trial = model(q, tt, lists)
        new = float((((y - trial - bg @ b) * w)**2).sum())
        if new < best:
            p, back, calc, best = q, b, trial, new
        mu *= 0.2 if new <= best else 10
        chi.append(best)
    return p, back, calc, M, chi


def main(asarray, N, given):
    tt, start, true, noise = (asarray(g) for g in given)
    limit = (2 * np.sin(np.deg2rad(56.0)) / WAVE)**2
    rut, (h, m) = reflections(6, 4.6, 2.955, limit), reflections(7, 5.64, 5.64, limit)
    face = np.isin((h % 2).sum(axis=0), np.array([0, 3]))
    lists = (rut, (h[:, face], m[face]))
    bg = chebyshev((tt - 65.0) / 45.0, 6)
    clean = model(true, tt, lists) + bg @ np.array([130.0, -60.0, 25.0, -8.0, 4.0, 1.0])
    y = np.round(np.maximum(clean + np.sqrt(clean) * noise, 0.0))
    sigma, p, chis = np.sqrt(np.maximum(y, 1.0)), start.copy(), []
    for free, cycles in (([5, 8], 3), ([5, 8, 0, 1, 6, 9], 6), ([5, 8, 0, 1, 6, 9, 12, 13], 5), (list(range(14)), 9)):
        p, back, calc, M, chi = refine(p, y, sigma, tt, lists, bg, free, cycles)
        chis += chi
    total = calc + bg @ back
    red = chis[-1] / (N - len(M))
    esd = np.sqrt(np.diagonal(np.linalg.inv(M)) * red)
    r = (y - total) / sigma
    peaks = np.flatnonzero((total[1:-1] > total[2:]) & (total[1:-1] > total[:-2]) & (calc[1:-1] > 30)) + 1
    mass = p[[5, 8]] * np.stack([p[0]**2 * p[1], p[6]**3])**2
    return dict(parameters=p, esd=esd, chi=np.log(np.array(chis)), reduced=red,
                rwp=np.sqrt((r**2).sum() / ((y / sigma)**2).sum()),
                durbin_watson=(np.diff(r)**2).sum() / (r**2).sum(), background=back,
                peaks=tt[peaks], fractions=mass / mass.sum(),
                reflections=np.array([rut[1].size, int(face.sum())]), pattern=total)
