"""SciPy's LAPACK leaves lazy arguments as they are, however it is called."""
from __future__ import annotations

import concurrent.futures
import functools
import itertools
import operator
import subprocess
import sys

import numpy as np
import pytest

import lazyarray

lapack = pytest.importorskip("scipy.linalg.lapack")
MATRIX = np.asfortranarray(np.arange(16.0).reshape(4, 4) % 7 + 5 * np.eye(4))
RIGHT = np.ones((4, 1))


class Solver:
    of_class = lapack.dgesv

    def __init__(self):
        self.solve = lapack.dgesv


def in_a_pool(a):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(lapack.dgesv, a, RIGHT).result()


def callback(a):
    """Within a routine, in a frame of its own: nothing is copied there for the routine's sake."""
    alias = np.asarray(a)
    alias[0, 0] += 0
    return lapack.dgesv(a, RIGHT)


FORMS = {
    "a function of a module": lambda a: lapack.dgesv(a, RIGHT), "an attribute": lambda a: Solver().solve(a, RIGHT),
    "a class's": lambda a: Solver.of_class(a, RIGHT), "an entry": lambda a: {"solve": lapack.dgesv}["solve"](a, RIGHT),
    "map": lambda a: next(map(lapack.dgesv, [a], [RIGHT])),
    "starmap": lambda a: next(itertools.starmap(lapack.dgesv, [(a, RIGHT)])),
    "partial": lambda a: functools.partial(lapack.dgesv, a)(RIGHT),
    "methodcaller": lambda a: operator.methodcaller("dgesv", a, RIGHT)(lapack),
    "getattr": lambda a: getattr(lapack, "dge" + "sv")(a, RIGHT),
    "a loop": lambda a: [solve(a, RIGHT) for solve in (lapack.dgesv,)][0],
    "two lines": lambda a: (lapack
                            .dgesv(a, RIGHT)),
    "keywords": lambda a: Solver().solve(b=RIGHT, a=a), "a thread": in_a_pool, "after an alias": callback,
}


@pytest.mark.parametrize("small_on_host", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_a_routine_does_not_overwrite_what_it_copies_of_an_ndarray(form, small_on_host):
    plain = MATRIX.copy(order="F")
    wanted = FORMS[form](plain)
    with lazyarray.options(small_on_host=small_on_host):
        for x in (lazyarray.asarray(MATRIX.copy(order="F")), lazyarray.asarray(MATRIX.copy(order="F")) + 0):
            found = FORMS[form](x)
            np.testing.assert_array_equal(x, plain)
            for one, other in zip(found, wanted):
                np.testing.assert_array_equal(one, other)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="there are buffers of classes from Python 3.12 on")
def test_other_code_gets_an_alias_within_a_routine():
    """Of what a routine calls, and of what a thread does meanwhile."""
    x = lazyarray.asarray(np.zeros(3))
    got = []

    class Right:
        def __array__(self, dtype=None, copy=None):
            np.asarray(x)[...] = 7
            got.append(x)
            return RIGHT.copy()
    lapack.dgesv(lazyarray.asarray(MATRIX), Right())
    assert got
    np.testing.assert_array_equal(x, [7, 7, 7])


def test_modules_that_load_themselves_are_left_alone():
    """What is looked through for routines are modules that are there."""
    code = """
import importlib.util, sys
import numpy as np
import lazyarray

spec = importlib.util.find_spec("wave")
loader = importlib.util.LazyLoader(spec.loader)
spec.loader = loader
module = sys.modules["wave"] = importlib.util.module_from_spec(spec)
loader.exec_module(module)
np.asarray(lazyarray.asarray(np.ones(3)))
assert "Wave_read" not in object.__getattribute__(module, "__dict__")
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
