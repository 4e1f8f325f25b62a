"""Finalisers that compute, run by a collector that comes anywhere in a statement.

Before Python 3.12 it comes within the setting of context variables, too, as that of `numpy.errstate`. These seeds ended
the process then.
"""
from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import gc
import random
import numpy as np
import lazyarray

device = lazyarray.device()
draw = random.Random({seed})

def on_device(values):
    return lazyarray.asarray(device.xp.asarray(values)).copy()

class Cycle:
    def __init__(self):
        self.itself = self

    def __del__(self):
        ended[0] += 1
        np.add(written, 1, out=written)

STATEMENTS = [compile(text, text, "exec") for text in (
    "x += 1", "x[...] = np.where(x > y, x, z)", "np.add(x, y, out=x)", "z = x * y + 1", "x[1:] = y[:-1]",
    "np.asarray(x)", "z = np.sqrt(np.abs(x))", "float(x[0])")]

for turn in range(60):
    n, ended = draw.choice([4, 5, 33, 1000]), [0]
    plain = {{"np": np, "x": np.arange(n) % 7.0, "y": np.arange(n) % 7.0 + 1, "z": np.arange(n) % 7.0 + 2}}
    lazy = {{"np": np, **{{name: on_device(plain[name]) for name in "xyz"}}}}
    written = on_device(np.zeros(n))
    before = gc.get_threshold()
    gc.set_threshold(draw.choice([3, 10, 37]))
    with lazyarray.options(**draw.choice([dict(), dict(small_on_host=False), dict(defer_from=None)])):
        for _ in range(60):
            for _ in range(draw.randint(0, 3)):
                Cycle()
            statement = draw.choice(STATEMENTS)
            for names in (plain, lazy):
                exec(statement, names)
                names["x"][...] = np.minimum(names["x"], 50.0)
    gc.set_threshold(*before)
    gc.collect()
    assert all(np.allclose(np.asarray(lazy[name]), plain[name], rtol=1e-14) for name in "xyz")
    assert np.asarray(written).tolist() == [float(ended[0])] * n and ended[0] > 20
"""


@pytest.mark.parametrize("seed", [3, 7, 8])
def test_the_process_survives(seed):
    done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", CODE.format(seed=seed)],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
