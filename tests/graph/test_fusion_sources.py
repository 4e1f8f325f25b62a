"""Arrays that a few numbers describe: they are recorded, and take no memory where only what comes of them is held."""
from __future__ import annotations

import numpy as np
import pytest
from recorded import kernels, pending, same

import lazyarray
import lazyarray.numpy as lnp
from lazyarray.graph import cost_model


@pytest.fixture(autouse=True)
def on_the_device(monkeypatch):
    """The model of costs has all of it computed there."""
    monkeypatch.setattr(cost_model, "_costs", cost_model.Costs(launch=1e-12, copy_call=1e-12))


RANGES = [
    (10,), (3, 17), (5, 40, 3), (40, 5, -3), (0.5, 9), (1, 2, 0.1), (10, -3, -0.7), (0, 1e6, 99991.3), (-5, 5, 1),
    (1e300, 1.5e300, 1e298), (np.float32(1), np.float32(3), np.float32(0.1)), (-0.0, 3), (2**60, 2**60 + 5),
    (np.int32(3), np.int32(9)), (0.1, 0.9, 1e-2),
]
SPACINGS = [(0, 1), (1, 0), (-3.5, 2, 7), (0, 10, 11), (5, 5, 9), (0, 1e-323, 50), (0, np.inf, 4), (1, 2, 2),
            (np.float32(0), np.float32(1), 9), (1e308, -1e308, 6)]
VALUES = [0, 1, -0.0, 0.1, np.nan, -3, True, 2 + 1j, np.float32(0.1), 300]
DTYPES = [None, "i1", "u1", "i4", "i8", "u8", "f2", "f4", "f8"]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
class TestValues:
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("arguments", RANGES, ids=str)
    def test_arange(self, arguments, dtype):
        self.compare(np.arange, lnp.arange, *arguments, dtype=dtype)

    @pytest.mark.parametrize("keywords", [{}, {"endpoint": False}, {"dtype": "i4"}, {"dtype": "f4"}, {"dtype": "c8"},
                                          {"retstep": True}], ids=str)
    @pytest.mark.parametrize("arguments", SPACINGS, ids=str)
    def test_linspace(self, arguments, keywords):
        if np.inf in arguments and keywords.get("dtype") == "i4":
            return      # what infinity is as a whole number, C leaves open
        self.compare(np.linspace, lnp.linspace, *arguments, **keywords)

    @pytest.mark.parametrize("dtype", [*DTYPES, "c16", "?"])
    @pytest.mark.parametrize("value", VALUES, ids=str)
    def test_full(self, value, dtype):
        for shape in ((3, 4), 5, (), (2, 0), [2, 3]):
            for order in "CF":
                self.compare(np.full, lnp.full, shape, value, dtype, order)
        if value == 0:
            self.compare(np.zeros, lnp.zeros, (3, 4), dtype or float)
            self.compare(np.ones, lnp.ones, (3, 4), dtype)

    @staticmethod
    def compare(plain, lazy, *args, **kwargs):
        try:
            expected = plain(*args, **kwargs)
        except (TypeError, ValueError, OverflowError) as error:
            with pytest.raises(type(error)):
                lazy(*args, **kwargs)
            return
        found = lazy(*args, **kwargs)
        with lazyarray.options(defer_from=None):
            at_once = lazy(*args, **kwargs)
        if isinstance(expected, tuple):
            assert found[1] == expected[1] or expected[1] != expected[1]
            expected, found, at_once = expected[0], found[0], at_once[0]
        assert found.strides == expected.strides == at_once.strides
        assert not pending(at_once)
        np.testing.assert_array_equal(np.asarray(found), np.asarray(at_once))
        assert np.array_equal(np.signbit(np.asarray(found).real), np.signbit(np.asarray(at_once).real))
        assert same(found, expected)


def test_they_are_recorded():
    for made in (lnp.arange(5), lnp.arange(0.1, 5, 0.3), lnp.linspace(0, 1), lnp.full((3, 4), 2.5), lnp.zeros(7),
                 lnp.ones((2, 3), "i4", "F"), lnp.arange(5, dtype="f2"), lnp.linspace(0, 9, 5, dtype=int)):
        assert pending(made)
        assert made.flags.owndata and made.base is None and made.flags.writeable
    with lazyarray.options(defer_from=1 << 20):
        assert pending(lnp.arange(5)) and pending(lnp.zeros(1 << 17)), "however small: the host may be who asks"
    with lazyarray.options(defer_from=None):
        assert not pending(lnp.arange(5))


def test_a_range_that_was_made_before():
    for _ in range(2):
        x = lnp.arange(37)
        assert pending(x) and same(x, np.arange(37))
        x[0] = 5
    with lazyarray.options(lazy=False):
        assert type(lnp.arange(37)) is np.ndarray
    with lazyarray.options(defer_from=None):
        assert not pending(lnp.arange(37))
    assert type(lnp.arange(37, like=np.empty(0))) is not np.ndarray
    for arguments in ((37.0,), (True,), (np.int32(37),), (0, 37), (37, 0, -1), (37, None), (0,), (-37,)):
        assert same(lnp.arange(*arguments), np.arange(*arguments))
    assert same(lnp.arange(37, dtype="f4"), np.arange(37, dtype="f4"))
    with pytest.raises(TypeError):
        lnp.arange()


@pytest.mark.skipif(lazyarray.device().name != "simulated", reason="needs another number of devices")
def test_with_several_devices_they_are_made_on_the_current_one():
    with lazyarray.device().with_count(2):
        with lazyarray.device(1):
            x, y = lnp.arange(37), lnp.zeros((2, 3))
        assert pending(x) and pending(y)
        with lazyarray.device(0), lazyarray.no_transfers():
            z, other = x * 2, lnp.arange(37)
        assert pending(z) and pending(other)
        assert [lazyarray.where(a).device for a in (x, y, z, other)] == [f"simulated:{n}" for n in (1, 1, 1, 0)]
        assert same(z + other, np.arange(37) * 3) and same(x, np.arange(37)) and same(y, np.zeros((2, 3)))
        assert lazyarray.where(x).device == "simulated:1"


def test_the_table_of_the_paper_is_one_kernel_with_one_output():
    n = 12_000
    with kernels() as found:
        result = lnp.arange(n).reshape(1000, -1).T * 2
        assert pending(result)
        assert same(result, np.arange(n).reshape(1000, -1).T * 2)
    program, = found
    assert [step.name for step, _ in program.steps] == ["index", "multiply"]
    assert len(program.outputs) == 1 and [operand.mode for operand in program.inputs] == ["value"]


@pytest.mark.one_device("what waits is written in place")
def test_a_grid_is_one_kernel():
    with kernels() as found:
        y = lnp.linspace(-1, 1, 8).reshape(-1, 1) * 1
        z = lnp.zeros((8, 8)) + lnp.arange(64.).reshape(8, 8)
        z *= z
        z += 1
        assert same(z, np.arange(64.).reshape(8, 8) ** 2 + 1)
    assert [len(p.outputs) for p in found] == [1] and len(found[0].steps) == 5
    assert same(z * y, (np.arange(64.).reshape(8, 8) ** 2 + 1) * np.linspace(-1, 1, 8).reshape(-1, 1))


def test_they_are_arrays_as_any_other():
    z = lnp.zeros((4, 5))
    z[1:3, ::2] = 7
    row = z[1]
    z[1, 0] = -1
    assert row[0] == -1 and z.sum() == 7 * 6 - 8
    x = lnp.arange(10)
    view = x[::-1]
    x += 5
    assert same(view, np.arange(5, 15)[::-1])
    assert same(lnp.full((3, 3), -0.0) * lnp.ones(3), np.full((3, 3), -0.0) * np.ones(3))
    total = lnp.full((6,), 2.0) + lnp.ones(6)
    assert same(total, np.full(6, 3.0)) and (lnp.full((6,), 2.0) * 3).sum() == 36
