"""Maxwell's equations in two dimensions (TM), Yee's grid, perfectly matched layers, a dielectric cylinder and a wall with a slit. N: cells / 200 (10 sqrt(N) rows, twice as many columns)."""
import numpy
import numpy as np

DEFAULT = 100
STEPS = 300
PML = 10


def inputs(N=DEFAULT):
    N = int(10 * N ** 0.5)
    ny, nx = N, 2 * N
    y, x = numpy.mgrid[:ny, :nx]
    eps = numpy.ones((ny, nx))
    eps[(x - 1.4 * N) ** 2 + (y - 0.5 * N) ** 2 < (0.15 * N) ** 2] = 4.0
    metal = numpy.zeros((ny, nx), dtype=bool)
    metal[:, 4 * N // 5:4 * N // 5 + 3] = True
    metal[N // 2 - N // 10:N // 2 + N // 10, 4 * N // 5:4 * N // 5 + 3] = False
    return dict(eps=eps, metal=metal)


def profile(n, half):
    """The layer's conductivity along an axis; `half` for points between cells."""
    depth = np.zeros(n)
    i = np.arange(PML) + half
    s = 0.33 * ((PML - i) / PML) ** 3
    depth[:PML] = s
    depth[-PML:] = s[::-1]
    return depth


def main(asarray, N=DEFAULT, data=None, steps=STEPS):
    data = data or inputs(N)
    eps, metal = asarray(data["eps"]), asarray(data["metal"])
    ny, nx = eps.shape
    N = ny
    Ez, Dz, Iz = np.zeros((ny, nx)), np.zeros((ny, nx)), np.zeros((ny, nx))
    Hx, Hy = np.zeros((ny, nx)), np.zeros((ny, nx))
    Ihx, Ihy = np.zeros((ny, nx)), np.zeros((ny, nx))
    gx, gy = profile(nx, 0), profile(ny, 0)
    fx, fy = profile(nx, 0.5), profile(ny, 0.5)
    gi2, gi3 = 1 / (1 + gx), (1 - gx) / (1 + gx)
    gj2, gj3 = (1 / (1 + gy))[:, None], ((1 - gy) / (1 + gy))[:, None]
    fi1, fi2, fi3 = gx, 1 / (1 + fx[:-1]), (1 - fx[:-1]) / (1 + fx[:-1])
    fj1, fj2, fj3 = gy[:, None], (1 / (1 + fy[:-1]))[:, None], ((1 - fy[:-1]) / (1 + fy[:-1]))[:, None]
    row, col = N // 2, 2 * PML
    dft = np.zeros((3, ny), dtype=complex)
    freqs = np.array([0.03, 0.05, 0.07])
    seismo = np.zeros((steps, 4))
    flux = 0.0
    for t in range(steps):
        Dz[1:, 1:] = gi3[1:] * gj3[1:] * Dz[1:, 1:] + gi2[1:] * gj2[1:] * 0.5 * (
            Hy[1:, 1:] - Hy[1:, :-1] - Hx[1:, 1:] + Hx[:-1, 1:])
        Dz[row - 3:row + 4, col] += np.exp(-0.5 * ((t - 30) / 8) ** 2) * np.sin(2 * np.pi * 0.05 * t)
        Ez[:] = Dz / eps
        Ez[metal] = 0
        Ez[0, :] = Ez[-1, :] = 0
        Ez[:, 0] = Ez[:, -1] = 0
        dft += np.exp(-2j * np.pi * freqs * t)[:, None] * Ez[:, -2 * PML]
        curl = Ez[:-1, :] - Ez[1:, :]
        Ihx[:-1] += curl
        Hx[:-1] = fj3 * Hx[:-1] + fj2 * (0.5 * curl + fi1 * Ihx[:-1])
        curl = Ez[:, 1:] - Ez[:, :-1]
        Ihy[:, :-1] += curl
        Hy[:, :-1] = fi3 * Hy[:, :-1] + fi2 * (0.5 * curl + fj1 * Ihy[:, :-1])
        seismo[t] = Ez[row, ::nx // 4][:4]
        flux += (Ez[:, -2 * PML] * Hy[:, -2 * PML]).sum()
        if t % 50 == 49:
            Iz += Ez ** 2
    energy = 0.5 * (eps * Ez ** 2 + Hx ** 2 + Hy ** 2)
    interior = energy[PML:-PML, PML:-PML]
    far = np.abs(np.fft.fftshift(np.fft.fft(dft * np.hanning(ny), axis=1), axes=1))
    peak = divmod(int(np.argmax(interior)), interior.shape[1])
    arrival = np.argmax(np.abs(seismo) > 0.2 * np.abs(seismo).max(axis=0), axis=0)
    gy_, gx_ = np.gradient(energy)
    return dict(Ez=np.asarray(Ez), Hx=np.asarray(Hx), Hy=np.asarray(Hy), Iz=np.asarray(Iz), far=np.asarray(far), seismo=np.asarray(seismo),
                flux=np.asarray(float(flux)), total=np.asarray(interior.sum()), peak=np.asarray([int(p) for p in peak]), arrival=np.asarray(arrival),
                slope=np.asarray(np.hypot(gy_, gx_)[::7, ::7]))
