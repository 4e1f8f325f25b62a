"""Arrays with labels, and arrays in chunks."""
from __future__ import annotations

import numpy as np

from .records import Library

xarray = Library("xarray")
dask = Library("Dask", "dask dask.array")
distributed = Library("distributed")


def labelled(image):
    import xarray as xr

    rows, columns = image.shape
    coordinates = {"y": np.arange(rows) * 0.5, "x": np.arange(columns) * 2.0}
    return xr.DataArray(image, coordinates, ("y", "x"), name="light")


@xarray("``DataArray(x)``: arithmetic, ufuncs, ``isel``, ``sel``, ``transpose``, ``where``, ``clip``",
        copies="none")
def test_xarray_elements(image):
    light = labelled(image)
    return [light * 2 - 1, np.sqrt(light), light > 0.5, light.isel(y=3), light.sel(x=slice(4, 20)), light.T,
            light.sel(y=2.2, method="nearest"), light.where(light > 0.5), light.clip(0.2, 0.8), light[2:5, ::2],
            light.stack(place=("y", "x")), light.shift(y=1), light.pad(x=1), light.astype("f4").round(1)]


@xarray("``mean(dim)``, ``std``, ``max``, ``median``, ``count``, ``cumsum``, ``diff``, ``coarsen``, ``rolling``",
        copies="none")
def test_xarray_reductions(image):
    light = labelled(image)
    return [light.mean("y"), light.std("x"), light.max("y"), light.median("x"), light.count("y"), light.cumsum("x"),
            light.diff("y"), light.coarsen(y=4).mean(), light.rolling(y=3).construct("window").mean("window")]


@xarray("``concat``, ``merge``, ``broadcast``, ``apply_ufunc``, ``Dataset``", copies="none")
def test_xarray_together(image):
    import xarray as xr

    light = labelled(image)
    both = xr.Dataset({"light": light, "twice": light * 2})
    return [xr.concat([light, light + 1], "y"), xr.merge([light, (light * 2).rename("more")]).more, both.twice,
            xr.apply_ufunc(lambda a: a.mean(axis=-1), light, input_core_dims=[["y"]]), both.mean("y").light,
            xr.broadcast(light.isel(y=0), light)[0]]


@xarray("``chunk()`` and ``compute()``", copies="none", needs="dask.array")
def test_xarray_chunks(image):
    return [(labelled(image).chunk(y=12) * 2).mean("y").compute()]


@xarray("``values``, ``to_numpy()``, ``to_pandas()``, ``to_dict()``, pickles", copies="each once")
def test_xarray_values(image):
    import pickle

    light = labelled(image)
    return [light.values, light.to_numpy(), light.to_pandas(), light.to_dict()["data"],
            pickle.loads(pickle.dumps(light)), light.to_series()]


@xarray("``to_netcdf``", copies="each once", needs="netCDF4")
def test_xarray_netcdf(image, folder):
    import xarray as xr

    labelled(image).to_netcdf(folder / "a.nc")
    with xr.open_dataarray(folder / "a.nc") as light:
        return light.load()


@xarray("``to_zarr``", copies="each once", needs="zarr")
def test_xarray_zarr(image, folder):
    import xarray as xr

    labelled(image).to_zarr(folder / "a.zarr")
    with xr.open_zarr(folder / "a.zarr") as found:
        return found.light.load()


@xarray("``interp``, ``apply_ufunc(vectorize=True)``, ``dt``", copies="in between", needs="scipy")
def test_xarray_on_the_host(image, dates):
    import xarray as xr

    light = labelled(image)
    return [light.interp(x=[1.0, 3.0]), xr.DataArray(dates, dims="t").dt.month, xr.apply_ufunc(
        np.median, light, input_core_dims=[["y"]], vectorize=True)]


@xarray("``plot()``, ``plot.hist()``", copies="each once", needs="matplotlib")
def test_xarray_plot(image):
    from matplotlib.figure import Figure

    figure = Figure()
    first, second = figure.subplots(2)
    light = labelled(image)
    mesh = light.plot(ax=first, add_colorbar=False)
    counts, _, _ = light.plot.hist(ax=second)
    return mesh.get_array(), counts


@dask("``from_array(x)``, arithmetic, reductions, ``tensordot``, ``einsum``, ``map_blocks``, ``map_overlap``, "
      "``linalg.svd``, ``fft``", copies="none")
def test_dask(image):
    import dask.array as da

    d = da.from_array(image, chunks=16)
    results = [d * 2 - d.mean(axis=0), np.sqrt(d), da.einsum("ij,kj->ik", d, d), d.std(axis=1), da.concatenate(
        [d, d[::-1]]), d.map_blocks(np.cumsum, axis=0), d.map_overlap(np.diff, axis=1, append=0.0, depth=0),
        da.linalg.svd(d.rechunk((16, 64)))[1], abs(da.fft.fft(d.rechunk((16, 64))))]
    return [result.compute() for result in results]


@dask("``percentile``, ``argmax``, fancy indexes, ``unique``", copies="in between")
def test_dask_in_between(image, i):
    import dask.array as da

    d = da.from_array(image, chunks=16)
    return [da.percentile(d[0], [10, 50]).compute(), d.argmax(axis=0).compute(), d[i].compute(), da.unique(
        (d * 4).astype(int)).compute()]


@distributed("what is sent between processes, and spilled", copies="each once")
def test_distributed(x, image, words):
    from distributed.protocol import deserialize, serialize

    return [deserialize(*serialize(a, on_error="raise")) for a in (x, image, image[::2, ::-1], words)]
