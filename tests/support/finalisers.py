"""Finalisers that use arrays: of objects in cycles, whenever the garbage collector runs."""
from __future__ import annotations

import numpy as np

import lazyarray

#: What one does with the array that is being asked for around it, in this order.
USES = "written", "asked for", "asked for and held", "written and asked for", "asked for and written"


def in_a_cycle(work):
    """Have something done by a finaliser, as soon as the garbage collector runs."""
    class Last:
        def __del__(self):
            work()

    cycle = Last()
    cycle.me = cycle


class Use:
    """One of `USES` of a lazy array of floats, when it is called for the first time; `wanted`: the array in NumPy."""

    def __init__(self, x, wanted, what):
        self.x, self.wanted, self.what = x, wanted, what
        self.ran, self.held = False, []

    def __call__(self):
        if self.ran:
            return
        self.ran, what = True, self.what
        if what.startswith("written"):
            self.x.fill(5)
            self.wanted[:] = 5
        if "asked" in what:
            alias = np.asarray(self.x)
            alias[7] = self.wanted[7] = 70
            if "held" in what:
                self.held.append(alias)
        if what.endswith("and written"):
            self.x.fill(5)
            self.wanted[:] = 5

    def check(self, alias):
        """What it got is right, and so is `alias`, which was asked for around it; and after writes on either side."""
        x, wanted = self.x, self.wanted
        assert self.ran and self.right(alias)
        alias[9] = wanted[9] = 90
        assert np.array_equal(lazyarray.asnumpy(x * x.dtype.type(1)), wanted)
        assert self.right(np.asarray(x))
        x += x.dtype.type(1)
        wanted += wanted.dtype.type(1)
        assert self.right(np.asarray(x)) and np.array_equal(alias, wanted)

    def right(self, alias):
        return all(np.array_equal(one, self.wanted) for one in (alias, *self.held))
