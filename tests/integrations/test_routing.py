"""Calls of host libraries that run on the device, while somebody has asked for it: where, for whom, and with what."""
from __future__ import annotations

import asyncio
import copy
import importlib
import inspect
import json
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import timeit
import types
from pathlib import Path

import numpy as np
import pytest

import lazyarray
from lazyarray.functions import tables
from lazyarray.integrations.routing import enable as enable_module
from lazyarray.integrations.routing.router import Router, is_router
from lazyarray.settings import enabled

pytest.importorskip("scipy")

import scipy.fft
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.sparse.linalg
import scipy.special
import scipy.stats
from scipy.ndimage import gaussian_filter as imported_before

ROOT = Path(__file__).parents[2]
held = [imported_before]     # not a name in a module, so never replaced


@pytest.fixture(autouse=True)
def _everything_is_put_back():
    lazyarray.disable()     # other tests have had blocks
    before = places()
    yield
    lazyarray.disable()
    after = places()
    assert {place for place in before if place in after and after[place] is not before[place]} == set()
    assert not tables.FOREIGN_UFUNCS


def places():
    """Every function of SciPy in every module's namespace, by its place."""
    return {
        (module_name, name): value
        for module_name, module in list(sys.modules.items()) if isinstance(module, types.ModuleType)
        for name, value in list(vars(module).items())
        if callable(value) and str(getattr(value, "__module__", "")).startswith("scipy.")
        or isinstance(value, np.ufunc) or is_router(value)
    }


@pytest.fixture
def image():
    return np.random.default_rng(0).random((48, 40))


@pytest.fixture
def lazy(image):
    return lazyarray.asarray(image)


def child(code, *arguments, **environment):
    """What a program prints that runs in a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | environment
    command = [sys.executable, *arguments] if arguments else [sys.executable, "-c", textwrap.dedent(code)]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert not found.returncode, found.stderr
    return found.stdout.split()


class TestPlaces:
    def test_nothing_is_replaced_until_asked(self):
        assert not any(is_router(value) for value in places().values())

    def test_public_private_and_earlier_names(self):
        with lazyarray.enabled("scipy"):
            assert is_router(imported_before) and imported_before is scipy.ndimage.gaussian_filter
            assert is_router(sys.modules["scipy.ndimage._filters"].gaussian_filter)
            assert is_router(scipy.signal.fftconvolve)
        assert is_router(imported_before) and imported_before is scipy.ndimage.gaussian_filter      # for a later block
        lazyarray.disable()
        assert imported_before is scipy.ndimage.gaussian_filter is held[0]

    def test_only_what_was_asked_for(self):
        with lazyarray.enabled("scipy.fft"):
            assert is_router(scipy.fft.fft) and not is_router(imported_before)

    def test_a_device_library_that_is_imported_meanwhile_gives_back_what_it_found(self, monkeypatch):
        module = types.ModuleType("cucim.made_up")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        with lazyarray.enabled("scipy"):
            module.filtered = scipy.ndimage.gaussian_filter
            assert is_router(module.filtered)
        lazyarray.disable()
        assert module.filtered is scipy.ndimage.gaussian_filter and not is_router(module.filtered)

    def test_a_name_imported_meanwhile_is_put_back_too(self):
        module = sys.modules[__name__]
        with lazyarray.enabled("scipy"):
            module.meanwhile = scipy.ndimage.sobel
        lazyarray.disable()
        assert not is_router(module.meanwhile) and module.meanwhile is scipy.ndimage.sobel
        del module.meanwhile

    def test_a_router_that_outlives_its_block_runs_on_the_host(self, lazy):
        with lazyarray.enabled("scipy"):
            kept = scipy.ndimage.sobel
        assert is_router(kept) and type(kept(lazy)) is np.ndarray

    def test_as_long_as_one_of_two_needs_it(self, lazy):
        lazyarray.enable("scipy.ndimage")
        with lazyarray.enabled("scipy"):
            lazyarray.disable("scipy")
            assert lazyarray.is_lazy(imported_before(lazy, 1))
        assert type(imported_before(lazy, 1)) is np.ndarray
        lazyarray.disable("scipy")
        assert not is_router(imported_before)

    def test_only_the_first_block_searches_the_modules(self, lazy, monkeypatch):
        with lazyarray.enabled("scipy.ndimage"):
            pass
        searched = []
        namespaces = enable_module._namespaces
        monkeypatch.setattr(enable_module, "_namespaces", lambda *less: searched.append(less) or namespaces(*less))
        for _ in range(2):
            with lazyarray.enabled("scipy.ndimage"), lazyarray.enabled("scipy.ndimage"):
                assert lazyarray.is_lazy(imported_before(lazy, 1))
        assert not searched
        assert type(imported_before(lazy, 1)) is np.ndarray

    def test_a_name_that_a_program_gets_between_two_blocks(self, lazy):
        """As the cell of a notebook that imports a function after another cell had a block."""
        module = sys.modules[__name__]
        with lazyarray.enabled("scipy"):
            pass
        module.meanwhile = importlib.import_module("scipy.ndimage").sobel
        try:
            assert type(module.meanwhile(lazy)) is np.ndarray
            with lazyarray.enabled("scipy"):
                assert lazyarray.is_lazy(module.meanwhile(lazy))
        finally:
            lazyarray.disable()
            assert not is_router(module.meanwhile)
            del module.meanwhile

    def test_modules_that_are_imported_between_two_blocks(self):
        code = """
            import lazyarray, numpy as np, scipy.ndimage, sys
            with lazyarray.enabled("scipy"):
                pass
            assert "scipy.signal" not in sys.modules
            from scipy.signal import fftconvolve
            x = lazyarray.asarray(np.ones((4, 4)))
            print(lazyarray.is_lazy(fftconvolve(x, x)))
            with lazyarray.enabled("scipy"):
                print(lazyarray.is_lazy(fftconvolve(x, x)), type(fftconvolve).__name__)
            print(lazyarray.is_lazy(fftconvolve(x, x)))
        """
        assert child(code) == ["False", "True", "Router", "False"]

    def test_disabled_by_another_thread_while_blocks_are_entered(self, lazy):
        """Whoever is in a block has routers, whatever others do at the same time."""
        done = threading.Event()

        def disabling():
            while not done.is_set():
                lazyarray.disable()

        thread = threading.Thread(target=disabling)
        thread.start()
        try:
            for _ in range(50):
                with lazyarray.enabled("scipy.ndimage"):
                    assert lazyarray.is_lazy(imported_before(lazy, 1))
        finally:
            done.set()
            thread.join()

    def test_disabled_in_a_block_it_stays_enabled_outside(self):
        lazyarray.enable("scipy")
        with lazyarray.enabled("scipy.ndimage"):
            pass
        lazyarray.disable("scipy.fft")
        assert is_router(imported_before) and not is_router(scipy.fft.fft)
        lazyarray.disable()
        assert not is_router(imported_before)

    def test_libraries_that_are_imported_later(self):
        code = """
            import sys, lazyarray
            lazyarray.enable("scipy")
            assert "scipy" not in sys.modules
            from scipy.signal import fftconvolve
            import numpy as np
            x = lazyarray.asarray(np.ones((4, 4)))
            print(lazyarray.is_lazy(fftconvolve(x, x)))
            lazyarray.disable()
            print(lazyarray.is_lazy(fftconvolve(x, x)), type(fftconvolve).__name__)
        """
        assert child(code) == ["True", "False", "function"]

    def test_awaited_but_disabled_before_it_came(self):
        code = """
            import lazyarray
            with lazyarray.enabled("scipy"):
                pass
            from scipy.signal import fftconvolve
            print(type(fftconvolve).__name__)
        """
        assert child(code) == ["function"]

    def test_unknown_names(self):
        with pytest.raises(ValueError, match="scipy, skimage"):
            lazyarray.enable("pandas")
        with pytest.raises(ValueError, match=r"scipy\.ndimage"):
            lazyarray.enabled("scipy.optimize")
        with pytest.raises(ValueError, match="scipy"):
            lazyarray.enable()

    @pytest.mark.parametrize("use", [lazyarray.enable, lazyarray.disable, lazyarray.enabled])
    @pytest.mark.parametrize("wrong", [["scipy"], ("scipy", "skimage"), {"scipy"}, None, 3, b"scipy", os.getcwd])
    def test_what_is_neither_a_name_nor_a_module(self, use, wrong):
        with pytest.raises(TypeError, match=rf"not as {type(wrong).__name__}: .* Write enable\('scipy', 'skimage'\)$"):
            use(wrong)

    def test_modules_stand_for_their_names(self):
        with lazyarray.enabled(scipy.ndimage) as block:
            assert repr(block) == "enabled('scipy.ndimage')" and isinstance(scipy.ndimage.sobel, Router)
        lazyarray.enable(scipy.ndimage, "scipy.fft")
        try:
            assert lazyarray.is_lazy(scipy.ndimage.sobel(lazyarray.asarray(np.eye(4))))
        finally:
            lazyarray.disable(scipy.ndimage)
            lazyarray.disable()
        assert not isinstance(scipy.ndimage.sobel, Router)
        with pytest.raises(ValueError, match="Unknown library 'json'"):
            lazyarray.enable(json)


class TestWhoSeesIt:
    def test_other_threads_do_not_see_a_block(self, lazy):
        found = []
        with lazyarray.enabled("scipy"):
            thread = threading.Thread(target=lambda: found.append(lazyarray.is_lazy(imported_before(lazy, 1))))
            thread.start()
            thread.join()
            assert lazyarray.is_lazy(imported_before(lazy, 1))
        assert found == [False]

    def test_all_threads_see_what_is_enabled_for_the_process(self, lazy):
        found = []
        lazyarray.enable("scipy")
        thread = threading.Thread(target=lambda: found.append(lazyarray.is_lazy(imported_before(lazy, 1))))
        thread.start()
        thread.join()
        assert found == [True]

    def test_tasks_see_their_own(self, lazy):
        async def one(ready, go):
            with lazyarray.enabled("scipy"):
                ready.set()
                await go.wait()
                return lazyarray.is_lazy(imported_before(lazy, 1))

        async def other(ready, go):
            await ready.wait()
            found = lazyarray.is_lazy(imported_before(lazy, 1))
            go.set()
            return found

        async def both():
            ready, go = asyncio.Event(), asyncio.Event()
            return await asyncio.gather(one(ready, go), other(ready, go))

        assert asyncio.run(both()) == [True, False]

    def test_a_decorated_function_and_a_decorated_coroutine(self, lazy):
        @lazyarray.enabled("scipy")
        def smooth(x):
            return imported_before(x, 1)

        @lazyarray.enabled("scipy")
        async def smooth_later(x):
            await asyncio.sleep(0)
            return imported_before(x, 1)

        assert lazyarray.is_lazy(smooth(lazy)) and lazyarray.is_lazy(asyncio.run(smooth_later(lazy)))
        assert type(imported_before(lazy, 1)) is np.ndarray

    def test_blocks_add_up(self, lazy):
        with lazyarray.enabled("scipy.fft"), lazyarray.enabled("scipy.ndimage"):
            assert lazyarray.is_lazy(imported_before(lazy, 1)) and lazyarray.is_lazy(scipy.fft.fft(lazy))
        with lazyarray.enabled("scipy.fft", numpy=True), lazyarray.enabled("scipy"):
            assert enabled.current().modules["scipy.fft"] and not enabled.current().modules["scipy.ndimage"]

    def test_many_threads_at_once(self, lazy):
        wrong = []

        def work():
            for _ in range(10):
                with lazyarray.enabled("scipy.ndimage"):
                    if not lazyarray.is_lazy(imported_before(lazy, 1)):
                        wrong.append("on the host")
                if lazyarray.is_lazy(imported_before(lazy, 1)):
                    wrong.append("on the device")

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []


class TestCalls:
    @pytest.mark.parametrize("call", [
        lambda x: scipy.ndimage.gaussian_filter(x, 1.5),
        lambda x: scipy.ndimage.zoom(x, 1.5, order=1),
        lambda x: scipy.signal.convolve2d(x, x[:5, :5], mode="same"),
        lambda x: scipy.fft.dctn(x, workers=2),
        lambda x: scipy.special.erf(x),
        lambda x: scipy.special.logsumexp(x, axis=0),
        lambda x: scipy.ndimage.label(x > 0.5)[0],
    ], ids=["gaussian", "zoom", "convolve2d", "dctn", "erf", "logsumexp", "label"])
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_the_same_as_on_the_host_and_nothing_is_copied(self, call, image, dtype):
        image = image.astype(dtype)
        expected = call(image)
        x = lazyarray.asarray(image)
        with lazyarray.enabled("scipy"), lazyarray.no_transfers():
            found = call(x)
        assert lazyarray.is_lazy(found)
        assert found.dtype == expected.dtype and found.shape == expected.shape
        error = np.abs(np.asarray(found) - expected).max() / max(np.abs(expected).max(), 1)
        assert error < (1e-5 if dtype is np.float32 else 1e-13)

    def test_a_chain_is_uploaded_once_and_fetched_once(self, image):
        with lazyarray.enabled("scipy"), lazyarray.trace() as t:
            x = lazyarray.asarray(image)
            smooth = scipy.ndimage.gaussian_filter(x, 1)
            edges = scipy.ndimage.sobel(smooth) - scipy.ndimage.median_filter(smooth, 3)
            found = np.asarray(scipy.fft.fft2(edges))
        assert (len(t.uploads), len(t.materialisations), len(t.fallbacks)) == (1, 1, 0)
        smooth = scipy.ndimage.gaussian_filter(image, 1)
        edges = scipy.ndimage.sobel(smooth) - scipy.ndimage.median_filter(smooth, 3)
        np.testing.assert_allclose(found, scipy.fft.fft2(edges), rtol=1e-8, atol=1e-8)

    def test_host_arrays_beside_a_lazy_one(self, image, lazy):
        with lazyarray.enabled("scipy"):
            found = scipy.signal.fftconvolve(lazy, image[:3, :3])
        assert lazyarray.is_lazy(found)
        np.testing.assert_allclose(np.asarray(found), scipy.signal.fftconvolve(image, image[:3, :3]))

    def test_host_arrays_alone_stay_on_the_host(self, image):
        with lazyarray.enabled("scipy"), lazyarray.no_transfers():
            assert type(imported_before(image, 1)) is np.ndarray

    def test_an_output_is_written(self, image, lazy):
        out, host_out = lazyarray.asarray(np.zeros((48, 40))), np.zeros((48, 40))
        with lazyarray.enabled("scipy"):
            assert imported_before(lazy, 1, output=out) is out
            assert imported_before(lazy, 1, 0, host_out) is host_out
        np.testing.assert_allclose(np.asarray(out), imported_before(image, 1))
        np.testing.assert_allclose(host_out, imported_before(image, 1))

    def test_an_array_in_a_list(self, image):
        rows, columns = np.mgrid[0:5, 0:5] * 1.5
        with lazyarray.enabled("scipy"), lazyarray.no_transfers(materialisations="error"):
            found = scipy.ndimage.map_coordinates(image, [lazyarray.asarray(rows), columns], order=1)
        assert lazyarray.is_lazy(found)
        np.testing.assert_allclose(np.asarray(found), scipy.ndimage.map_coordinates(image, [rows, columns], order=1))

    def test_what_the_twin_lacks_goes_to_the_host_and_is_told(self, image, lazy):
        with lazyarray.enabled("scipy"), lazyarray.trace() as t, pytest.warns(
                lazyarray.HostFallbackWarning, match="scipy.fft.dct"):
            found = scipy.fft.dct(lazy, orthogonalize=True)
        assert lazyarray.is_lazy(found)
        np.testing.assert_array_equal(np.asarray(found), scipy.fft.dct(image, orthogonalize=True))
        (event,) = t.fallbacks
        assert event.name == "scipy.fft.dct" and "orthogonalize" in event.reason

    def test_a_dtype_that_the_device_lacks(self, image):
        x = lazyarray.asarray(image.astype(np.longdouble))
        with lazyarray.enabled("scipy"):
            found = scipy.fft.fft(x)
        assert found.dtype == np.clongdouble

    def test_errors_are_the_host_library_s(self, image, lazy):
        with pytest.raises(RuntimeError) as expected:
            imported_before(image, 1, mode="nonsense")
        with lazyarray.enabled("scipy"), pytest.raises(RuntimeError) as found:
            imported_before(lazy, 1, mode="nonsense")
        assert str(found.value) == str(expected.value)

    def test_a_function_without_a_twin_is_as_before(self, lazy):
        with lazyarray.enabled("scipy"):
            assert type(scipy.linalg.qr(lazy)[0]) is np.ndarray

    def test_dense_arguments_of_sparse_solvers(self, image):
        matrix = image[:20, :20] @ image[:20, :20].T + 20 * np.eye(20)
        expected, _ = scipy.sparse.linalg.cg(matrix, np.ones(20), rtol=1e-10)
        with lazyarray.enabled("scipy"):
            found, info = scipy.sparse.linalg.cg(lazyarray.asarray(matrix), lazyarray.asarray(np.ones(20)), rtol=1e-10)
        assert info == 0
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)

    def test_inside_another_library(self, image, lazy):
        metrics = pytest.importorskip("skimage.metrics")
        other = np.roll(image, 1)
        _, expected = metrics.structural_similarity(image, other, data_range=1.0, full=True)
        lazy_other = lazyarray.asarray(other)
        # scikit-image is not enabled, and calls scipy.ndimage.uniform_filter five times
        with lazyarray.enabled("scipy"), lazyarray.no_transfers(uploads="error"):
            _, found = metrics.structural_similarity(lazy, lazy_other, data_range=1.0, full=True)
        assert lazyarray.is_lazy(found)
        np.testing.assert_allclose(np.asarray(found), expected)


class TestInterpolators:
    x = np.linspace(0, 1, 20)
    y = np.sin(5 * x)

    @pytest.mark.parametrize("make", [
        lambda x, y: scipy.interpolate.make_interp_spline(x, y), scipy.interpolate.CubicSpline,
        scipy.interpolate.PchipInterpolator, scipy.interpolate.Akima1DInterpolator,
        lambda x, y: scipy.interpolate.BPoly.from_derivatives(x, y[:, None]),
        lambda x, y: scipy.interpolate.RegularGridInterpolator((x,), y, bounds_error=False, fill_value=2.0),
    ], ids=["BSpline", "CubicSpline", "Pchip", "Akima", "BPoly", "RegularGrid"])
    def test_an_instance_is_called(self, make):
        interpolator = make(self.x, self.y)
        where = np.random.default_rng(0).random((50, 1) if "Grid" in type(interpolator).__name__ else 50) * 1.2
        expected = interpolator(where)
        x = lazyarray.asarray(where)
        with lazyarray.enabled("scipy.interpolate"), lazyarray.no_transfers(materialisations="error"):
            found = interpolator(x)
        assert lazyarray.is_lazy(found) and found.dtype == expected.dtype
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)

    def test_what_the_device_gets_wrong_goes_to_the_host(self):
        spline, x = scipy.interpolate.CubicSpline(self.x, self.y), lazyarray.asarray(self.x)
        with lazyarray.enabled("scipy.interpolate"):
            with pytest.warns(lazyarray.HostFallbackWarning, match="derivatives"):
                found = spline(x, 1)
            with pytest.raises(TypeError):
                spline(x, nonsense=1)
        np.testing.assert_array_equal(np.asarray(found), spline(self.x, 1))

    @pytest.mark.parametrize("values, where", ["fd", "Fd", "df"])
    def test_a_grid_in_single_precision_is_scipy_s(self, values, where):
        """CuPy multiplies such values by their weights in single precision, which makes 6e-9; SciPy in double."""
        x, y = np.linspace(1, 4, 11), np.linspace(4, 7, 22)
        grid = scipy.interpolate.RegularGridInterpolator((x, y), (2 * x[:, None]**3 + 3 * y**2).astype(values))
        points = np.array([[2.1, 6.2], [3.3, 5.2]], where)
        with lazyarray.enabled("scipy"), pytest.warns(lazyarray.HostFallbackWarning, match="computes in double"):
            found = np.asarray(grid(lazyarray.asarray(points)))
        np.testing.assert_array_equal(found, grid(points))

    def test_changed_between_two_calls(self):
        spline, x = scipy.interpolate.CubicSpline(self.x, self.y), lazyarray.asarray(self.x)
        with lazyarray.enabled("scipy.interpolate"):
            before = np.asarray(spline(x))
            spline.c *= 2
            np.testing.assert_allclose(np.asarray(spline(x)), 2 * before)

    def test_classes_are_put_back(self):
        owners = [next(kind for kind in cls.__mro__ if "__call__" in vars(kind)) for cls in (
            scipy.interpolate.BSpline, scipy.interpolate.CubicSpline, scipy.interpolate.RegularGridInterpolator)]
        before = [vars(owner)["__call__"] for owner in owners]
        with lazyarray.enabled("scipy"):
            assert all(is_router(vars(owner)["__call__"]) for owner in owners)
        lazyarray.disable()
        assert all(vars(owner)["__call__"] is function for owner, function in zip(owners, before))


class TestHostArrays:
    def test_large_ones_go_too(self, image):
        big = np.tile(image, (10, 10))
        with lazyarray.enabled("scipy", numpy=True), lazyarray.trace() as t:
            found = imported_before(big, 1)
            assert type(imported_before(image, 1)) is np.ndarray
        assert lazyarray.is_lazy(found) and len(t.uploads) == 1
        np.testing.assert_allclose(np.asarray(found), imported_before(big, 1))

    def test_the_limit_is_the_option(self, image):
        with lazyarray.enabled("scipy", numpy=True), lazyarray.options(min_bytes=1000):
            assert lazyarray.is_lazy(imported_before(image, 1))
            assert not lazyarray.is_lazy(imported_before(image[:4, :4], 1))

    def test_ufuncs(self, image):
        big = np.tile(image, (10, 10))
        with lazyarray.enabled("scipy.special", numpy=True):
            found = scipy.special.erf(big)
            assert isinstance(scipy.special.erf, np.ufunc)
        assert lazyarray.is_lazy(found)
        assert type(scipy.special.erf(big)) is np.ndarray
        lazyarray.disable()
        assert type(scipy.special.erf) is np.ufunc and type(scipy.special.erf(big)) is np.ndarray

    def test_what_the_simulated_device_computes_with_is_not_sent_to_it(self, image):
        big = np.tile(image, (10, 10))
        x = lazyarray.asdevice(big)
        with lazyarray.enabled("scipy", numpy=True), lazyarray.no_transfers():
            found = lazyarray.device().library("cupyx.scipy.ndimage").gaussian_filter(x, 1)
        assert isinstance(found, lazyarray.device().array_type)


class TestUfuncs:
    def test_only_where_it_is_enabled(self, image, lazy):
        with lazyarray.enabled("scipy.special"):
            with lazyarray.no_transfers():
                assert lazyarray.is_lazy(scipy.special.gammaln(lazy))
            thread = threading.Thread(target=lambda: found.append(fallbacks(lambda: scipy.special.gammaln(lazy))))
            found: list[int] = []
            thread.start()
            thread.join()
            assert found == [1]
        assert fallbacks(lambda: scipy.special.gammaln(lazy)) == 1

    def test_out_and_where(self, image, lazy):
        out = lazyarray.asarray(np.zeros(image.shape))
        # Not `erf(image, out=..., where=...)`: SciPy 1.17 beside NumPy 2.4 writes outside of its memory there.
        expected = np.where(image > 0.5, scipy.special.erf(image), 0)
        with lazyarray.enabled("scipy.special"), lazyarray.no_transfers():
            assert scipy.special.erf(lazy, out=out, where=lazy > 0.5) is out
        np.testing.assert_allclose(np.asarray(out), expected)


    @pytest.mark.skipif(lazyarray.device().name != "simulated", reason="the device that computes with the host library")
    def test_what_the_device_computes_with_is_not_sent_back_to_it(self):
        """Where the device's functions are looked up for the first time while host arrays are sent to it."""
        code = """
            import importlib, warnings
            import lazyarray, numpy as np, scipy.special
            from lazyarray.integrations.routing import twin as twins
            warnings.simplefilter("ignore")
            x = np.full(8, 0.5)
            device = lazyarray.device()
            with lazyarray.enabled("scipy", numpy=True), lazyarray.options(min_bytes=1):
                for twin in twins.table("scipy").values():
                    if twin.kind != "ufunc" or twin.reason or twin.name in ("wright_bessel", "ellipj"):
                        continue
                    ufunc = getattr(scipy.special, twin.name)
                    with lazyarray.trace() as t:
                        found = ufunc(*[x] * ufunc.nin)
                        direct = twin.function(*[device.xp.asarray(x)] * ufunc.nin)
                    first = direct[0] if ufunc.nout > 1 else direct
                    if t.fallbacks or len(t.events) > ufunc.nin or type(first) is not device.array_type:
                        print(twin.name, len(t.events), type(first), *(f.reason for f in t.fallbacks[:1]))
            print("done")
        """
        assert child(code) == ["done"]


def fallbacks(call):
    with lazyarray.trace() as t, lazyarray.options(warn_fallbacks=False):
        call()
    return len(t.fallbacks)


class TestRouter:
    def test_it_looks_like_the_function(self):
        with lazyarray.enabled("scipy"):
            router, (original,) = scipy.ndimage.gaussian_filter, held
            assert router == original and hash(router) == hash(original) and {original: 1}[router] == 1
            assert inspect.signature(router) == inspect.signature(original) and inspect.isfunction(router)
            assert router.__name__ == "gaussian_filter" and router.__doc__ == original.__doc__
            assert router.__wrapped__ is original and repr(router) == repr(original)
            assert copy.copy(router) is router and copy.deepcopy([router]) == [router]

    def test_pickles_are_the_function_s(self, lazy):
        with lazyarray.enabled("scipy"):
            data = pickle.dumps(scipy.ndimage.sobel)
            assert pickle.loads(data) is scipy.ndimage.sobel
            kept = scipy.ndimage.sobel
        assert pickle.loads(data) is scipy.ndimage.sobel
        assert pickle.loads(pickle.dumps(kept)) is scipy.ndimage.sobel
        assert b"lazyarray" not in data

    def test_as_a_method_of_a_class(self, image, lazy):
        with lazyarray.enabled("scipy"):
            class Smoother(np.ndarray):
                smooth = scipy.ndimage.gaussian_filter

        np.testing.assert_array_equal(image.view(Smoother).smooth(1), imported_before(image, 1))

    def test_it_costs_a_microsecond_where_nothing_is_lazy(self, image):
        twin = lazyarray.integrations.routing.twin.table("scipy")["scipy.fft.fft"]
        router = Router(lambda *args, **kwargs: None, twin)
        with lazyarray.enabled("scipy"):
            costs = [min(timeit.repeat(lambda: call(image, 1.0, mode="nearest"), number=100, repeat=100)) / 100
                     for call in (router, router.__wrapped__)]
        assert costs[0] - costs[1] < 5e-6       # under 1 on an idle core


class TestFromOutside:
    def test_the_environment(self):
        code = """
            import lazyarray, numpy as np, scipy.ndimage
            print(lazyarray.is_lazy(scipy.ndimage.sobel(lazyarray.asarray(np.ones((9, 9))))))
            print(lazyarray.is_lazy(scipy.ndimage.sobel(np.ones((500, 500)))))
        """
        assert child(code, LAZYARRAY_ENABLE="scipy.ndimage") == ["True", "False"]
        assert child(code, LAZYARRAY_ENABLE="scipy.ndimage, numpy") == ["True", "True"]
        assert child(code, LAZYARRAY_ENABLE="") == ["False", "False"]

    def test_with_the_array_api_of_scipy(self):
        code = """
            import lazyarray, numpy as np, scipy.ndimage, scipy.special
            x = lazyarray.asarray(np.ones((9, 9)))
            before = scipy.special.erf, scipy.ndimage.sobel
            with lazyarray.enabled("scipy"), lazyarray.no_transfers():
                print(lazyarray.is_lazy(scipy.special.erf(x)), lazyarray.is_lazy(scipy.ndimage.sobel(x)))
            lazyarray.disable()
            print(before[0] is scipy.special.erf, before[1] is scipy.ndimage.sobel)
        """
        assert child(code, SCIPY_ARRAY_API="1") == ["True"] * 4

    @pytest.fixture
    def program(self, tmp_path):
        path = tmp_path / "unedited.py"
        path.write_text(textwrap.dedent("""
            import sys
            import numpy as np
            from scipy.ndimage import sobel

            if __name__ == "__main__":
                print(type(sobel(np.ones((500, 500)))).__name__, *sys.argv[1:])
        """))
        return path

    def test_a_program_that_is_not_edited(self, program):
        run = ("-m", "lazyarray", "run")
        assert child("", *run, str(program), "-x", "y") == ["LazyNdarray", "-x", "y"]
        assert child("", *run, "--enable", "scipy", str(program)) == ["ndarray"]
        assert child("", str(program)) == ["ndarray"]

    def test_a_module_that_is_not_edited(self, program):
        code = f"""
            import os, runpy, sys
            os.chdir({str(program.parent)!r})
            sys.argv = ["lazyarray", "run", "-m", "unedited", "-x"]
            runpy.run_module("lazyarray", run_name="__main__")
        """
        assert child(code) == ["LazyNdarray", "-x"]


def test_a_copy_of_a_twin_has_no_copy_of_the_devices_function():
    twin = enable_module.table("scipy")["scipy.ndimage.sobel"]
    assert callable(twin.function)
    for other in (copy.copy(twin), copy.deepcopy(twin)):
        assert other == twin and "function" not in vars(other) and other.function is twin.function


def test_modules_are_found_by_their_names():
    for path in sorted({twin.module for twin in lazyarray.integrations.routing.twin.table("scipy").values()}):
        importlib.import_module(path)
        with lazyarray.enabled(path):
            pass
