"""Tables and columns."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray

from .records import Library, Refused

pandas = Library("pandas")
polars = Library("polars")
pyarrow = Library("pyarrow")

@pandas("``Series(x)``, ``Series(x, index=)``, ``dtype=``, ``name=``", copies="in between")
def test_series(x, i, b, words, dates):
    import pandas as pd

    return pd.Series(x), pd.Series(x, index=i, name="x"), pd.Series(i, dtype="float32"), pd.Series(b), pd.Series(
        words), pd.Series(dates)


@pandas("``DataFrame({...})``, ``DataFrame(x)``, ``from_records``", copies="each once")
def test_frames(x, i, matrix):
    import pandas as pd

    return pd.DataFrame({"x": x, "i": i}), pd.DataFrame(matrix, columns=list("abcdef")), pd.DataFrame.from_records(
        matrix[:, :2]), pd.DataFrame(matrix.T)


@pandas("``Index(x)``, ``DatetimeIndex``, ``MultiIndex.from_arrays``, ``Categorical``, ``IntervalIndex``, "
        "``to_datetime``, ``to_timedelta``", copies="in between")
def test_indexes(x, i, dates):
    import pandas as pd

    whole = pd.MultiIndex.from_arrays([i[:5], x[:5]])
    return (pd.Index(i), pd.DatetimeIndex(dates), list(whole), pd.Categorical(i).codes, pd.to_datetime(dates),
            list(pd.to_timedelta(i[:3], "s").total_seconds()), pd.Index(np.unique(i)).get_indexer(i[:4]))


@pandas("assignment: ``df[\"c\"] = x``, ``df.loc[mask, \"c\"] = x``, ``df.iloc[i, 0] = x``, ``insert``, ``assign``",
        copies="in between")
def test_assignment(x, y, i, b):
    import pandas as pd

    frame = pd.DataFrame({"a": np.zeros(100)})
    frame["x"] = x
    frame["x"] += y
    frame.loc[b, "x"] = 0
    frame.loc[~b, "a"] = x[~b]
    frame.iloc[i, 0] = y
    frame.insert(0, "i", i)
    return frame.assign(y=y, z=lambda f: f.x * x)


@pandas("``df[mask]``, ``df.loc[x]``, ``take``, ``isin``, ``where``, ``query``, ``reindex``", copies="in between")
def test_selection(x, i, b):
    import pandas as pd

    frame = pd.DataFrame({"x": x, "i": i})
    limit = 0.5
    return (frame[b], frame.loc[i], frame.iloc[i[:7]], frame.take(i), frame.isin(i[:2]), frame.x.where(b, -1),
            frame.query("x > @limit"), frame.reindex(np.unique(i)), frame[x > limit], frame.loc[i[0]], frame.at[i[1],
            "x"])


@pandas("arithmetic and comparison with lazy arrays and scalars, ufuncs", copies="in between")
def test_arithmetic(x, y, matrix):
    import pandas as pd

    series, frame = pd.Series(x), pd.DataFrame(matrix)
    return (series + y, y + series, series * x.mean(), x.mean() * series, series > y, frame - matrix[0],
            np.add(series, y),
            np.exp(frame), frame @ matrix.T, frame.sub(matrix.mean(axis=0)), frame > matrix.mean(),
            series.clip(y.min(), 1))


@pandas("``groupby(x)``, ``merge``, ``pivot_table``, ``cut``, ``value_counts``, ``crosstab``, ``rolling``",
        copies="in between")
def test_grouping(x, y, i, b):
    import pandas as pd

    frame = pd.DataFrame({"x": x, "i": i, "b": b})
    small = pd.DataFrame({"i": i[:6] + 0, "y": y[:6]}).drop_duplicates("i")
    return (frame.groupby("i").x.agg(["mean", "std", "size"]), frame.groupby(i).x.sum(), frame.merge(small, on="i"),
            frame.pivot_table(values="x", index="i", columns="b"), pd.cut(x, 4).codes, pd.cut(x, np.linspace(-3, 3,
            5)).codes,
            pd.Series(i).value_counts().sort_index(), pd.crosstab(i, b), frame.x.rolling(5).mean(),
            frame.groupby("i").agg(
                lambda c: x[0]), pd.concat([pd.Series(x), pd.Series(y)]), frame.describe())


@pandas("numbers: ``DataFrame({\"mean\": [x.mean(), y.mean()]})``, ``df.loc[0, \"a\"] = x.max()``, ``isna``",
        copies="in between")
def test_numbers(x, y, i):
    import pandas as pd

    frame = pd.DataFrame({"mean": [x.mean(), y.mean()], "n": [i.max(), i.min()]})
    rows = pd.DataFrame([{"name": "x", "mean": x.mean()}, {"name": "y", "mean": y.mean()}])
    frame["s"] = x.sum()
    frame.loc[0, "mean"] = x.max()
    return (frame, rows, pd.Series([x[0], None]), pd.Series({"a": x[0], "b": x[1]}), pd.isna((x / 0 * 0)[0]),
            frame * x.std(),
            frame.fillna(x[0]), frame.replace(x.max(), x.min()), pd.api.types.is_float(x[0]),
            pd.Index(i).get_loc(i[-1]) is None)


@pandas("``to_csv``, ``to_parquet``, ``to_json``, ``to_numpy``, ``to_records`` and back", copies="each once",
        needs="pyarrow")
def test_files(x, i, folder):
    import pandas as pd

    frame = pd.DataFrame({"x": x, "i": i})
    frame.to_parquet(folder / "a.parquet")
    frame.to_csv(folder / "a.csv", index=False)
    return (pd.read_parquet(folder / "a.parquet"), pd.read_csv(folder / "a.csv"), frame.to_json(), frame.to_numpy(),
            frame.to_records(index=False).tolist())


@pandas("``Timestamp(s)``, ``Timedelta(s, unit)``, ``Interval(s, t)`` of lazy scalars", refused=Refused(
    "TypeError", "LazyScalar", "pass ``int(s)``"))
def test_dates_of_scalars(i):
    import pandas as pd

    return pd.Timestamp(i[0])


def test_pandas_results_of_lazy_operands_are_pandas_own():
    """A block that stayed lazy would be refused by compiled code, much later."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": np.arange(4.0), "b": np.arange(4)})
    x = lazyarray.asarray(np.arange(4.0))
    s = x.sum()
    for made in (frame * s, s * frame, frame > s, np.multiply(frame, s), np.multiply(s, frame), frame + x[:2], np.add(
            frame, lazyarray.asarray(np.ones((4, 2)))), frame.where(frame > s, s), frame.assign(z=s), frame.apply(
            lambda c: c * s), frame.mask(x[:, None] > x[:2], s)):
        assert [type(block.values) for block in made._mgr.blocks] == [np.ndarray] * len(made._mgr.blocks)
        repr(made)


@polars("``Series(x)``, ``DataFrame({...})``, ``from_numpy``, ``lit``", copies="each once")
def test_polars(x, i, b, matrix, dates):
    import polars as pl

    return (pl.Series("x", x), pl.Series(i), pl.Series(b), pl.Series(dates), pl.DataFrame({"x": x, "i": i}),
            pl.from_numpy(matrix), pl.DataFrame(matrix, schema=list("abcdef")), pl.select(pl.lit(x)).to_series())


@polars("``with_columns(x=x)``, ``filter(mask)``, arithmetic, ``group_by``, ``gather``", copies="in between")
def test_polars_work(x, y, i, b):
    import polars as pl

    frame = pl.DataFrame({"x": x, "i": i}).with_columns(y=y)
    return (frame.filter(pl.Series(b)), frame.group_by("i").agg(pl.col("x").mean()).sort("i"), pl.Series(x) + y,
            pl.Series(x).gather(i), pl.Series(x)[i], frame.to_numpy(), frame.filter(pl.col("x") > 0.5))


@polars("numbers: ``Series([x.mean(), None])``, ``DataFrame([{\"mean\": x.mean()}])``, ``pl.col(\"x\") > x.mean()``",
        copies="each once")
def test_polars_numbers(x, i):
    import polars as pl

    frame = pl.DataFrame({"x": x, "i": i})
    return (pl.Series([x.mean(), None]), pl.Series([i[0], i[1]]), pl.DataFrame([{"mean": x.mean(), "n": i.max()}]),
            frame.filter(pl.col("x") > x.mean()), frame.with_columns(n=i[1], s=x[1]), pl.select(pl.lit(i[0])),
            pl.from_dicts([{"a": [x[0]], "b": i[0]}]), pl.Series(i) * i[1], pl.Series(i) * x[1])


@pyarrow("``pa.array(x)``, ``pa.table({...})``, ``record_batch``, ``chunked_array``", copies="each once")
def test_pyarrow(x, i, b, words, dates):
    import pyarrow as pa

    return (pa.array(x), pa.array(i, pa.int16()), pa.array(b), pa.array(words), pa.array(dates), pa.table({"x": x,
            "i": i}),
            pa.record_batch([x], ["x"]).to_pydict(), pa.chunked_array([x, x]).to_pylist())


@pyarrow("``compute``, ``parquet``, ``feather`` of such a table", copies="each once")
def test_pyarrow_files(x, i, folder):
    import pyarrow as pa
    import pyarrow.compute
    import pyarrow.feather
    import pyarrow.parquet

    table = pa.table({"x": x, "i": i})
    pyarrow.parquet.write_table(table, folder / "a.parquet")
    pyarrow.feather.write_feather(table, str(folder / "a.feather"))
    return (pyarrow.parquet.read_table(folder / "a.parquet"), pyarrow.feather.read_table(str(folder / "a.feather")),
            pyarrow.compute.sum(table["x"]).as_py())


@pyarrow("``pa.Tensor.from_numpy(x)``", refused=Refused("TypeError", "ndarray"))
def test_pyarrow_tensor(matrix):
    import pyarrow as pa

    return pa.Tensor.from_numpy(matrix)


@pyarrow("``pa.array(x, mask=)``", copies="each once")
def test_pyarrow_mask(x, b):
    import pyarrow as pa

    return pa.array(x, mask=b)


@pyarrow("lists of lazy arrays and scalars: ``pa.array([x, y])``, ``pa.table({'x': [x, y]})``, ``from_pylist``, "
         "``pa.scalar(s)``", copies="each once")
def test_pyarrow_lists(x, y, i):
    import pyarrow as pa

    return (pa.array([x, y]), pa.array([x, y], pa.list_(pa.float32())), pa.table({"x": [x, y], "mean": [x[0], x[1]]}),
            pa.Table.from_pylist([{"x": x, "first": i[0]}]), pa.array([i[0], i[1]]), pa.scalar(i[1]).as_py(),
            pa.array([[x], [y]]))


@pyarrow("``Table.from_pandas`` of a column that holds lazy arrays", copies="each once", needs="pandas")
def test_pyarrow_columns(x, y):
    import pandas as pd
    import pyarrow as pa

    return pa.Table.from_pandas(pd.DataFrame({"x": pd.Series([x, y], dtype=object)}))
