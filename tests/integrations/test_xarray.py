"""xarray: what a DataArray holds stays lazy, and comes to the host when its values are asked for."""
from __future__ import annotations

import io
import pickle

import numpy as np
import pytest

import lazyarray
from lazyarray.testing import assert_copies

xr = pytest.importorskip("xarray")
pytestmark = pytest.mark.filterwarnings("ignore")

PLAIN = np.random.default_rng(0).random((12, 8, 6))
PLAIN[2, 3, 1] = np.nan


def weather(array):
    coordinates = {"time": np.arange(12), "lat": np.linspace(-70, 70, 8), "lon": np.linspace(0, 300, 6),
                   "season": ("time", list("aaabbbcccddd"))}
    return xr.DataArray(array, coordinates, ("time", "lat", "lon"), name="t")


def inside(result):
    return result.variable._data


NOTHING_MOVES = {
    "arithmetic": lambda d: (d * 2 + 1) / d - d.isel(time=0),
    "ufunc": lambda d: np.sqrt(d),
    "comparison": lambda d: (d > 0.5) & (d < 0.7),
    "isel": lambda d: d.isel(time=3),
    "isel, slice": lambda d: d.isel(lat=slice(1, 5)),
    "sel": lambda d: d.sel(lat=10, method="nearest"),
    "sel, slice": lambda d: d.sel(lat=slice(-50, 50)),
    "getitem": lambda d: d[2:5, ::2],
    "mean": lambda d: d.mean("time"),
    "mean of two": lambda d: d.mean(("lat", "lon")),
    "std": lambda d: d.std("time"),
    "max": lambda d: d.max("lon"),
    "median": lambda d: d.median("time"),
    "count": lambda d: d.count("time"),
    "cumsum": lambda d: d.cumsum("time"),
    "rolling": lambda d: d.rolling(time=3).construct("window").mean("window"),
    "coarsen": lambda d: d.drop_vars("season").coarsen(time=3).mean(),
    "transpose": lambda d: d.transpose("lon", "lat", "time"),
    "stack": lambda d: d.stack(place=("lat", "lon")),
    "where": lambda d: d.where(d > 0.5),
    "isnull": lambda d: d.isnull(),
    "clip": lambda d: d.clip(0.2, 0.8),
    "astype": lambda d: d.astype("f4").round(1),
    "shift": lambda d: d.shift(time=1),
    "roll": lambda d: d.roll(time=1),
    "diff": lambda d: d.diff("time"),
    "pad": lambda d: d.pad(time=1),
    "concat": lambda d: xr.concat([d, d], "time"),
    "merge": lambda d: xr.merge([d, d.rename("u")]).u,
    "broadcast": lambda d: xr.broadcast(d.isel(time=0), d)[0],
    "apply_ufunc": lambda d: xr.apply_ufunc(lambda a, b: a * b, d, d),
    "apply_ufunc over a dimension": lambda d: xr.apply_ufunc(
        lambda a: a.mean(axis=-1), d, input_core_dims=[["time"]]),
    "expand_dims": lambda d: d.expand_dims("x"),
    "copy": lambda d: d.copy(),
    "Dataset": lambda d: xr.Dataset({"a": d, "b": d * 2}).mean("time").b,
    "assign_coords": lambda d: d.assign_coords(lon=d.lon - 180),
    "in place": lambda d: d.__iadd__(1),
}

# Constants and positions come from the host: a few bytes go up, nothing comes down.
LITTLE_GOES_UP = {
    "isel, list": lambda d: d.isel(time=[1, 4]),
    "sel, points": lambda d: d.sel(lat=xr.DataArray([10, 20], dims="p"), lon=xr.DataArray([0, 60], dims="p"),
                                   method="nearest"),
    "fillna": lambda d: d.fillna(0),
    "where, other": lambda d: d.where(d > 0.5, 0),
    "xr.where": lambda d: xr.where(d > 0.5, d, 0),
    "quantile": lambda d: d.quantile([0.1, 0.9], "time"),
    "argmax": lambda d: d.fillna(0).argmax("time"),
    "groupby": lambda d: d.groupby("season").mean(),
    "anomalies": lambda d: d.groupby("season") - d.groupby("season").mean(),
    "rolling mean": lambda d: d.rolling(time=3).mean(),
    "differentiate": lambda d: d.differentiate("lat"),
    "integrate": lambda d: d.integrate("lat"),
    "weighted": lambda d: d.weighted(np.cos(np.deg2rad(d.lat))).mean(("lat", "lon")),
    "dot": lambda d: xr.dot(d.fillna(0), d.fillna(0), dim="time"),
    "cov": lambda d: xr.cov(d.fillna(0), d.fillna(0), "time"),
    "sortby": lambda d: d.sortby("lat", ascending=False),
    "reindex": lambda d: d.reindex(time=np.arange(14)),
    "assignment": lambda d: (d.__setitem__({"time": 0}, 0), d)[1],
    "assignment by label": lambda d: (d.loc.__setitem__({"time": slice(2, 3)}, 9), d)[1],
}

RUN_ON_THE_HOST = {
    "mean of all": lambda d: d.mean(),
    "interp": lambda d: d.interp(lat=[1.0, 2.0]),
    "interpolate_na": lambda d: d.interpolate_na("time"),
    "dropna": lambda d: d.dropna("time"),
    "unstack": lambda d: d.stack(place=("lat", "lon")).unstack("place"),
    "polyfit": lambda d: d.fillna(0).polyfit("time", 1).polyfit_coefficients,
    "vectorised": lambda d: xr.apply_ufunc(np.median, d, input_core_dims=[["time"]], vectorize=True),
    "to pandas and back": lambda d: d.to_series().to_xarray(),
}


@pytest.mark.parametrize("function", NOTHING_MOVES.values(), ids=NOTHING_MOVES)
def test_it_stays_lazy_and_nothing_is_copied(function):
    light = weather(lazyarray.asarray(PLAIN))
    with lazyarray.no_transfers():
        got = function(light)
    assert lazyarray.is_lazy(inside(got))
    xr.testing.assert_allclose(got, function(weather(PLAIN.copy())))


@pytest.mark.parametrize("function", LITTLE_GOES_UP.values(), ids=LITTLE_GOES_UP)
def test_it_stays_lazy_and_only_constants_are_copied(function):
    light = weather(lazyarray.asarray(PLAIN))
    with lazyarray.no_transfers(materialisations="error"), lazyarray.trace() as trace:
        got = function(light)
    assert lazyarray.is_lazy(inside(got))
    assert trace.nbytes < PLAIN.nbytes / 4 and not trace.fallbacks, trace
    xr.testing.assert_allclose(got, function(weather(PLAIN.copy())))


@pytest.mark.parametrize("function", RUN_ON_THE_HOST.values(), ids=RUN_ON_THE_HOST)
def test_what_needs_the_host_gets_it_right(function):
    light = weather(lazyarray.asarray(PLAIN))
    got = function(light)
    xr.testing.assert_allclose(got, function(weather(PLAIN.copy())))


def test_values_are_copied_once():
    light = weather(lazyarray.asarray(PLAIN)) * 2
    with assert_copies(0, 1, nbytes=PLAIN.nbytes):
        for values in (light.values, light.to_numpy(), light.as_numpy().data, np.asarray(light)):
            assert type(values) is np.ndarray
            np.testing.assert_array_equal(values, PLAIN * 2)


def test_writes_are_seen_on_both_sides():
    x = lazyarray.asarray(PLAIN)
    light = weather(x)
    light.values[0, 0, 0] = 5
    assert float(x[0, 0, 0]) == 5 and float((light * 2)[0, 0, 0]) == 10
    light[0, 0, 1] = 6
    assert float(x[0, 0, 1]) == 6 and light.values[0, 0, 1] == 6


def test_printing_a_large_one_fetches_its_corners():
    x = xr.DataArray(lazyarray.asarray(np.zeros((1000, 1000))), dims=("a", "b"))
    with lazyarray.trace() as trace:
        assert "1000" in repr(x) and "1000" in x._repr_html_() and repr(xr.Dataset({"x": x}))
    assert trace.nbytes < 20_000, trace     # 8 MB; the thumbnail in the HTML is most of it


def test_hosts_and_lazy_arrays_mix():
    on_host, lazy = weather(PLAIN), weather(lazyarray.asarray(PLAIN))
    for got in (on_host + lazy, lazy + on_host, lazy - PLAIN):
        assert lazyarray.is_lazy(inside(got))
    xr.testing.assert_allclose(on_host + lazy, weather(PLAIN * 2))
    assert lazy.identical(on_host) and lazy.equals(lazy.copy())


def test_a_lazy_copy_of_what_was_opened(tmp_path):
    pytest.importorskip("netCDF4")
    weather(lazyarray.asarray(PLAIN)).to_netcdf(tmp_path / "a.nc")
    with xr.open_dataarray(tmp_path / "a.nc") as opened:
        lazy = opened.copy(data=lazyarray.asarray(opened.data))
    with lazyarray.no_transfers():
        mean = lazy.mean("time")
    xr.testing.assert_allclose(mean, weather(PLAIN).mean("time"))


def test_pickles_stay_lazy():
    light = weather(lazyarray.asarray(PLAIN))
    got = pickle.loads(pickle.dumps(light))
    assert lazyarray.is_lazy(inside(got)) and got.identical(light)
    buffer = io.BytesIO()
    pickle.dump(xr.Dataset({"a": light}), buffer)
    assert buffer.tell() > PLAIN.nbytes


def test_chunks_of_dask_stay_lazy():
    pytest.importorskip("dask.array")
    from dask.base import tokenize
    light = weather(lazyarray.asarray(PLAIN))
    with lazyarray.trace(process=True) as trace:
        got = ((light.chunk(time=4) * 2).mean("time")).compute()
    assert not trace.nbytes and lazyarray.is_lazy(inside(got))
    xr.testing.assert_allclose(got, (weather(PLAIN) * 2).mean("time"))
    before = tokenize(light)
    light[0, 0, 0] = 3
    assert tokenize(light) != before
