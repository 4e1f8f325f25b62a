"""Python itself, and what checks types and bytes."""
from __future__ import annotations

import functools
import hashlib
import struct

import numpy as np

from .records import Library, Refused

NO_BUFFER = Refused("TypeError", "bytes-like object")

python = Library("Python", needs="")


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
