"""Where arrays are and what memory they take, said without a copy and without computing anything."""
from __future__ import annotations

import gc

import numpy as np
import pytest

import lazyarray
import lazyarray.numpy as xnp
from lazyarray import memory_info, where

GLOBAL = lazyarray.asarray(np.ones(7))


class TestWhere:
    @pytest.mark.together
    def test_sides(self):
        x = lazyarray.asarray(np.ones((4, 5)))
        place = f"{lazyarray.device().name}:{lazyarray.device().number()}"
        assert where(x) == ("device", place, "", 0) and str(where(x)) == place
        alias = np.asarray(x)
        assert where(x).side == "both" and str(where(x)) == f"{place} and host"
        del alias
        x += 1
        assert where(x).side == "device"
        assert where(x[1:]).side == "device" and where(lazyarray.asdevice(x)).side == "device"

    def test_what_is_on_the_host(self):
        for obj in (np.ones(3), 5, [1, 2], None, lazyarray.asarray(["a"]), np.float64(3)):
            assert where(obj) == ("host", "", "", 0) and str(where(obj)) == "host"
        assert where(xnp.hanning(10)).side == "host"

    def test_scalars(self):
        s = GLOBAL.sum()
        assert where(s).side in ("device", "pending")
        assert float(s) == 7 and where(s).side in ("both", "host")

    def test_numpys_where_is_another_function(self):
        with pytest.raises(TypeError, match=r"numpy\.where"):
            where(GLOBAL > 0, 1, 2)

    def test_nothing_is_copied_or_computed(self):
        x = lazyarray.asarray(np.ones(10)) * 2
        with lazyarray.trace() as t, lazyarray.no_transfers():
            for _ in range(3):
                assert where(x).side == "pending"
                memory_info(by_array=True)
        assert not t.events


class TestExpressions:
    """Text that computes the same, if it is run with the same variables."""

    x = lazyarray.asarray(np.linspace(0.5, 2, 12).reshape(3, 4))

    @pytest.mark.together
    @pytest.mark.parametrize("text", [
        "np.sqrt(x * 2 + 1)", "(x + 1) * (x - 2)", "x - (y - x)", "-x / -y", "(x / y) / x", "x / (y / x)",
        "-(x + y)", "np.where(x > 1, x, -1)", "(x * y) ** 2", "abs(x) * 1.5", "~(x > 1)", "(x > 1) & (y < 2)",
        "x * x * x", "np.maximum(x, y) + np.exp(-x)", "(x % 2) // y", "x * 1e-30 + 3",
    ])
    def test_what_is_shown_gives_the_value(self, text):
        x = lazyarray.asarray(np.linspace(0.5, 2, 12).reshape(3, 4))
        y = lazyarray.asarray(np.linspace(1, 3, 4))
        found = eval(text)
        host = {"x": np.linspace(0.5, 2, 12).reshape(3, 4), "y": np.linspace(1, 3, 4)}
        shown = _shown(found, x, y)
        names = {name: getattr(np, name) for name in dir(np) if not name.startswith("_")}
        np.testing.assert_allclose(np.asarray(found), eval(shown, names | host), rtol=1e-14, err_msg=shown)

    @pytest.mark.one_device("arrays of the module and of the test lie together")
    def test_the_names_are_the_programs(self):
        image = lazyarray.asarray(np.ones((3, 3)))
        text = where(image * GLOBAL[:3] + 1).deferred
        assert text == "image * float64[3] + 1"
        assert where(GLOBAL + 2).deferred == "GLOBAL + 2"
        flipped = image[::-1]
        assert where(flipped * 2).deferred == "flipped * 2"
        del flipped
        assert where(image[::-1] * 2).deferred == "float64[3,3] * 2", "another order is not the image"

    def test_shared_operations_count_once(self):
        x = self.x
        s = x * 2
        assert where(s + s).operations == 2
        assert str(where(s)).endswith("1 operation")

    def test_long_chains_are_cut(self):
        x = self.x
        y = x
        for _ in range(35):
            y = np.sqrt(y * 1.25 + x)
        found = where(y)
        assert len(found.deferred) < 400 and "..." in found.deferred and found.operations > 20

    def test_arrays_of_numbers(self):
        assert where(xnp.arange(10) * 2).deferred.endswith("* 2")


def _shown(found, x, y):
    location = where(found)
    assert location.side == "pending" and location.operations > 0
    return location.deferred


class TestMemory:
    @pytest.mark.together
    def test_device_memory_and_mirrors(self):
        gc.collect()
        before = memory_info()
        big = lazyarray.asarray(np.ones(1_000_000))
        view = big[::2]
        assert memory_info().device - before.device == 8_000_000
        alias = np.asarray(big)
        after = memory_info(by_array=True)
        assert after.mirrors - before.mirrors >= 8_000_000
        (mine,) = [a for a in after.arrays if a.name in ("big", "view")]
        assert (mine.shape, mine.dtype, mine.side, mine.device) == ((1_000_000,), np.float64, "both", 8_000_000)
        assert mine.mirror >= 8_000_000 and after.page_locked <= after.page_locked_limit
        del big, view, alias, mine, after
        assert memory_info().device == before.device

    def test_pending_work_takes_none(self):
        deferred = lazyarray.asarray(np.ones(1000)) * 2
        (found,) = [a for a in memory_info(by_array=True).arrays if a.name == "deferred"]
        assert (found.side, found.device, found.mirror, found.shape) == ("pending", 0, 0, (1000,))
        assert where(deferred).side == "pending"

    def test_arrays_are_listed_if_asked_for(self):
        kept = [lazyarray.asarray(np.ones(n)) for n in (10, 1000, 100)]     # noqa: F841
        assert memory_info().arrays == ()
        sizes = [a.device + a.mirror for a in memory_info(by_array=True).arrays]
        assert sizes == sorted(sizes, reverse=True) and len(sizes) >= 3

    def test_the_text(self):
        shown = lazyarray.asarray(np.ones(10))  # noqa: F841
        text = str(memory_info(by_array=True))
        assert text.splitlines()[0].startswith("device") and "page-locked" in text and "shown" in text
        assert "<table" in memory_info(by_array=True)._repr_html_()
