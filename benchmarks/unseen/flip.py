"""Water in a box: FLIP/PIC particles on a staggered (MAC) grid, pressure by preconditioned conjugate gradients, bilinear
sampling, velocity extrapolation; a dam breaks over an obstacle.  N: cells along a side; 4 particles to a full cell."""

import numpy as np

DEFAULT = 64
GRAVITY, BLEND = -9.81, 0.95
U_AT, V_AT = (0.0, 0.5), (0.5, 0.0)


def inputs(N):
    import numpy

    rng = numpy.random.default_rng(1986)
    sub = (numpy.arange(2 * N) + 0.5) / (2 * N)
    x, y = (a.ravel() for a in numpy.meshgrid(sub, sub, indexing="ij"))
    wet = ((x < 0.35) & (y < 0.65)) | (y < 0.12)
    wet &= (x > 1 / N) & (x < 1 - 1 / N) & (y > 1 / N) & ~((numpy.abs(x - 0.62) < 0.08) & (y < 0.22))
    pos = numpy.stack([x[wet], y[wet]], axis=1)
    return pos + rng.uniform(-0.2, 0.2, pos.shape) / (2 * N), 40


def corners(pos, shape, offset, n):
    """Indices of the four nodes about every particle, and their weights, on a grid whose node (0, 0) lies at `offset` cells."""
    g = pos * n - np.array(offset)
    g = np.clip(g, 0.0, np.array(shape) - 1.001)
    base = np.floor(g).astype(np.int64)
    f = g - base
    wx, wy = np.stack([1 - f, f]).transpose(2, 0, 1)
    i, j = (base[:, c] + np.array([0, 1])[:, None] for c in (0, 1))
    index = i[:, None, :] * shape[1] + j[None, :, :]
    weight = wx[:, None, :] * wy[None, :, :]
    return index.reshape(4, -1), weight.reshape(4, -1)


def sample(field, pos, offset, n):
    index, weight = corners(pos, field.shape, offset, n)
    return (field.ravel()[index] * weight).sum(axis=0)


def splat(values, pos, shape, offset, n):
    index, weight = corners(pos, shape, offset, n)
    size = shape[0] * shape[1]
    mass = np.bincount(index.ravel(), weights=weight.ravel(), minlength=size)
    total = np.bincount(index.ravel(), weights=(weight * values).ravel(), minlength=size)
    known = mass > 1e-8
    return np.where(known, total / np.where(known, mass, 1.0), 0.0).reshape(shape), known.reshape(shape)


class Water:
    def __init__(self, pos, n):
        self.n, self.h = n, 1.0 / n
        self.pos, self.vel = pos.copy(), np.zeros_like(pos)
        solid = np.zeros((n, n), dtype=bool)
        solid[[0, -1], :] = True
        solid[:, 0] = True
        c = (np.arange(n) + 0.5) / n
        solid |= (np.abs(c - 0.62) < 0.08)[:, None] & (c < 0.22)
        self.solid = solid
        wide = np.pad(solid, 1, constant_values=True)
        self.wall_u = wide[:-1, 1:-1] | wide[1:, 1:-1]  # (n + 1, n) faces
        self.wall_v = wide[1:-1, :-1] | wide[1:-1, 1:]
        self.iterations = []

    def to_grid(self):
        n = self.n
        self.u, ku = splat(self.vel[:, 0], self.pos, (n + 1, n), U_AT, n)
        self.v, kv = splat(self.vel[:, 1], self.pos, (n, n + 1), V_AT, n)
        cell = np.clip((self.pos * n).astype(np.int64), 0, n - 1)
        self.count = np.bincount(cell[:, 0] * n + cell[:, 1], minlength=n * n).reshape(n, n)
        self.fluid = (self.count > 0) & ~self.solid
        self.known = ku, kv

    def walls(self):
        self.u[self.wall_u], self.v[self.wall_v] = 0.0, 0.0

    def divergence(self):
        return np.where(self.fluid, np.diff(self.u, axis=0) + np.diff(self.v, axis=1), 0.0)

    def project(self, tol=1e-9, limit=200):
        fluid = self.fluid.astype(float)
        around = np.pad((~self.solid).astype(float), 1)
        degree = around[:-2, 1:-1] + around[2:, 1:-1] + around[1:-1, :-2] + around[1:-1, 2:]
        inv = np.where(self.fluid, 1.0 / np.maximum(degree, 1.0), 0.0)

        def apply(p):
            q = np.pad(p, 1)
            return fluid * (degree * p - q[:-2, 1:-1] - q[2:, 1:-1] - q[1:-1, :-2] - q[1:-1, 2:])

        excess = 0.05 * np.maximum(self.count / 4.0 - 1.5, 0.0) * fluid  # crowded cells drift apart
        r = -self.divergence() + excess
        p, z = np.zeros_like(r), inv * r
        d, rz = z, np.vdot(r, z)
        start = float(np.abs(r).max()) + 1e-30
        for it in range(limit):
            if float(np.abs(r).max()) < tol * start:
                break
            Ad = apply(d)
            a = rz / np.vdot(d, Ad)
            p = p + a * d
            r = r - a * Ad
            z = inv * r
            rz, old = np.vdot(r, z), rz
            d = z + rz / old * d
        self.iterations.append(it)
        self.u[1:-1] -= np.where(self.wall_u[1:-1], 0.0, np.diff(p, axis=0))
        self.v[:, 1:-1] -= np.where(self.wall_v[:, 1:-1], 0.0, np.diff(p, axis=1))
        return p

    @staticmethod
    def extrapolate(a, known, rounds=3):
        """Average outwards into the faces that no particle reaches."""
        for _ in range(rounds):
            w = np.pad(known.astype(float), 1)
            s = np.pad(np.where(known, a, 0.0), 1)
            total, count = (b[:-2, 1:-1] + b[2:, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] for b in (s, w))
            fresh = ~known & (count > 0)
            a = np.where(fresh, total / np.maximum(count, 1.0), a)
            known = known | fresh
        return a

    def at(self, pos, u, v):
        return np.stack([sample(u, pos, U_AT, self.n), sample(v, pos, V_AT, self.n)], axis=1)

    def step(self, dt):
        self.to_grid()
        old_u, old_v = self.u.copy(), self.v.copy()
        self.v += dt * GRAVITY
        self.walls()
        p = self.project()
        self.u = self.extrapolate(self.u, self.known[0])
        self.v = self.extrapolate(self.v, self.known[1])
        self.walls()
        pic = self.at(self.pos, self.u, self.v)
        self.vel = BLEND * (self.vel + pic - self.at(self.pos, old_u, old_v)) + (1 - BLEND) * pic
        self.pos = self.pos + dt * self.at(self.pos + 0.5 * dt * pic, self.u, self.v)
        self.push_out()
        return p

    def push_out(self):
        rim = 1.01 * self.h
        self.pos = np.clip(self.pos, rim, np.array([1 - rim, 1 - 0.01 * self.h]))
        x, y = self.pos.T
        left, right, top = x - 0.54, 0.70 - x, 0.22 - y
        inside = (left > 0) & (right > 0) & (top > 0)
        up, west = inside & (top < np.minimum(left, right)), left < right
        self.pos[:, 1] = np.where(up, 0.2201, y)
        self.pos[:, 0] = np.where(inside & ~up, np.where(west, 0.5399, 0.7001), x)


def main(asarray, N, given):
    water, steps = Water(asarray(given[0]), N), given[1]
    log = []
    for _ in range(steps):
        fastest = float(np.sqrt((water.vel**2).sum(axis=1).max()))
        p = water.step(min(0.008, 1.5 * water.h / max(fastest, 1e-6)))
        kinetic = 0.5 * (water.vel**2).sum(axis=1).mean()
        log.append(
            [
                float(kinetic),
                float(-GRAVITY * water.pos[:, 1].mean()),
                float(water.pos[:, 0].max()),
                float(np.abs(water.divergence()).max()),
            ]
        )
    water.to_grid()
    curl = np.diff(water.v, axis=0)[:, 1:-1] - np.diff(water.u, axis=1)[1:-1]
    surface = np.where(water.fluid, np.arange(N) + 1, 0).max(axis=1)
    return {
        "pos": water.pos,
        "vel": water.vel,
        "log": np.array(log)[:, :3],
        "clean": (np.array(log)[:, 3] < 0.5).all(),
        "pressure": p,
        "surface": surface,
        "curl": curl,
        "cells": water.fluid.sum(),
        "most": int(max(water.iterations)) < 200,
        "speed": np.histogram(np.hypot(*water.vel.T), bins=12, range=(0.0, 4.0))[0],
    }
