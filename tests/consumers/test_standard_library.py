"""Python itself, and what checks types and bytes."""
from __future__ import annotations

import array
import base64
import bisect
import copy
import ctypes
import datetime
import decimal
import functools
import hashlib
import io
import json
import math
import pickle
import random
import shelve
import sqlite3
import statistics
import struct
import typing
import zlib

import numpy as np

from .records import Library, Refused

NO_BUFFER = Refused("TypeError", "bytes-like object")

python = Library("Python", needs="")
pydantic = Library("pydantic")


@python("``bytes(x)``", copies="each once")
def test_bytes(x, image):
    return bytes(x), bytes(image), bytearray(x.tobytes())


@python("``memoryview(x)``", copies="each once", before_buffers=NO_BUFFER)
def test_memoryview(x, image):
    view = memoryview(image)
    view[3, 4] = 17.0
    return view.format, view.shape, view.strides, view.readonly, image[3, 4], memoryview(x)[:5].tolist()


@python("``hashlib.sha256(x)``", copies="each once",
        before_buffers=Refused("TypeError", "supporting the buffer API required"))
def test_hashlib(x):
    return hashlib.sha256(x).hexdigest()


@python("``struct.pack``, ``struct.unpack`` of elements", copies="each once")
def test_struct(x, i):
    return struct.pack("<dq", x[0], i[0]), struct.pack("100d", *x)


@python("``struct.unpack(format, x)``", copies="each once", before_buffers=NO_BUFFER)
def test_struct_from_array(x):
    return struct.unpack("100d", x)


@python("``functools.singledispatch`` on ``np.ndarray``", copies="none")
def test_singledispatch(x):
    @functools.singledispatch
    def kind(value):
        return "something else"

    @kind.register
    def _(value: np.ndarray):
        return "an array"

    @kind.register
    def _(value: float):
        return "a number"

    return kind(x), kind(x.reshape(10, 10)), kind(x.sum())


@python("``json.dumps(x.tolist())``, ``array.array``, ``statistics``, ``math``, ``random``, ``bisect``",
copies="in between")
def test_numbers(x, i):
    return (json.dumps(x.tolist()), array.array("d", x), statistics.stdev(x), math.fsum(x), math.floor(x[0]),
            bisect.bisect(
        np.sort(x), 0.5), random.Random(3).sample(list(i), 3), sum(x), sorted(i), max(x, key=abs), f"{x.mean():.3f}")


@python("``json.dumps({'mean': s})``, ``statistics.mean([s, t])``, ``sqlite3`` of lazy scalars", copies="in between")
def test_numbers_in_containers(x):
    with sqlite3.connect(":memory:") as base:
        rows = base.execute("select ?, typeof(?)", (x[0], x.max())).fetchall()
    return (json.dumps({"mean": np.round(x.mean(), 6), "values": [x[0], (x[1], 3)]}), json.dumps([x.max()], indent=1),
            json.dumps({x[0]: 1}), json.dumps([x[0]], default=str), statistics.mean([x[0], x.sum(), 1.5]),
            statistics.stdev(v for v in (x[0], x[1])), rows)


@python("``hashlib``, ``base64``, ``bytearray`` of a lazy scalar", copies="none",
        before_buffers=Refused("TypeError", "buffer API required|bytes-like|convert", "pass ``np.asarray(s)``"))
def test_bytes_of_scalars(x):
    return hashlib.sha256(x[0]).hexdigest(), base64.b64encode(x.max()), bytearray(x[1]), zlib.crc32((x > 0).sum())


@python("``time.sleep(s)``, ``threading``'s timeouts, ``datetime.fromtimestamp(s)`` of lazy scalars",
        refused=Refused("TypeError", "LazyScalar", "pass ``float(s)``"))
def test_seconds(x):
    return datetime.datetime.fromtimestamp(abs(x[0]), datetime.UTC).isoformat()


@python("``datetime.timedelta(seconds=s)``, ``decimal.Decimal(s)`` of lazy scalars",
        refused=Refused("TypeError", "LazyScalar", "pass ``float(s)``"))
def test_exact_numbers(x):
    return decimal.Decimal(x[0]) + 1


@python("``pickle``, ``copy``, ``shelve``", copies="each once")
def test_pickles(x, image, folder):
    with shelve.open(str(folder / "kept")) as kept:
        kept["x"] = x
    with shelve.open(str(folder / "kept")) as kept:
        stored = kept["x"]
    return pickle.loads(pickle.dumps(image)), copy.deepcopy(x), copy.copy(x), stored, type(pickle.loads(
        pickle.dumps(np.asarray(x)))).__name__


@python("``ctypes``: ``x.ctypes.data``, ``from_buffer``, ``np.ctypeslib``", copies="each once",
before_buffers=NO_BUFFER)
def test_ctypes(x, y):
    (ctypes.c_double * 100).from_buffer(x)[3] = 17.0
    pointer = y.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    pointer[0] = 5.0
    return x[3], y[0] + 1, np.ctypeslib.as_array(pointer, (100,))


@python("``file.write(x)``, ``io.BytesIO``, ``zlib``, ``base64``, ``sqlite3`` blobs", copies="each once",
        before_buffers=NO_BUFFER)
def test_files(x, image, u, folder):
    (folder / "x.bin").write_bytes(x)
    with open(folder / "i.bin", "wb") as file:
        file.write(image)
    database = sqlite3.connect(":memory:")
    database.execute("create table kept (value blob)")
    database.execute("insert into kept values (?)", (u,))
    return ((folder / "x.bin").read_bytes(), (folder / "i.bin").read_bytes(), io.BytesIO(u).getvalue(), zlib.crc32(x),
            base64.b64encode(u), database.execute("select value from kept").fetchone()[0])


@python("``match x: case [first, *rest]``, ``typing.get_type_hints``, ``isinstance(x, np.ndarray)``", copies="none")
def test_types(x, i):
    def hinted(value: np.ndarray) -> np.ndarray:
        return value

    assert all(isinstance(x, kind) for kind in typing.get_type_hints(hinted).values())
    return isinstance(x, np.ndarray), isinstance(x[0], np.floating), isinstance(i[0], np.integer), isinstance(x, list)


@pydantic("``arbitrary_types_allowed``: fields of ``np.ndarray``, ``validate_call``", copies="none")
def test_pydantic(x, y):
    import pydantic

    class Sample(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
        values: np.ndarray
        optional: np.ndarray | None = None

    @pydantic.validate_call(config={"arbitrary_types_allowed": True})
    def shift(values: np.ndarray, by: int) -> np.ndarray:
        return values + by

    sample = Sample(values=x)
    assert sample.values is x
    try:
        Sample(values=[1.0, 2.0])
    except pydantic.ValidationError:
        return shift(sample.values, 2).shape, shift(y, by=1).dtype.name, sample.model_copy().values.shape


@pydantic("``float``, ``int`` fields of lazy scalars; ``list[float]`` of ``x.tolist()``", copies="each once")
def test_pydantic_numbers(x, i):
    import pydantic

    class Summary(pydantic.BaseModel):
        mean: float
        n: int
        values: list[float]

    return Summary(mean=x[0], n=i[0], values=x.tolist()).model_dump_json()


@pydantic("a validator that makes an array, a serialiser that makes a list", copies="each once")
def test_pydantic_annotated(x):
    import pydantic

    values = typing.Annotated[np.ndarray, pydantic.BeforeValidator(np.asanyarray), pydantic.PlainSerializer(
        lambda a: a.tolist())]

    class Sample(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
        values: values

    return Sample(values=x).model_dump_json()
