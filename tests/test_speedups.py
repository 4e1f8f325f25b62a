"""The parts in C: they are there where a compiler is, keep nothing, and say what is wrong with their arguments."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from recorded import compiled, growth

import lazyarray
from lazyarray import recording, recording_steps, speedups, ufuncs, wrap

ROOT = Path(__file__).parent.parent
HEADERS = Path(sysconfig.get_path("include"), "Python.h")
needs_c = pytest.mark.skipif(speedups.recording is None, reason="the part in C was not compiled")


@pytest.mark.skipif(shutil.which("cc") is None or not HEADERS.exists() or speedups.PURE,
                    reason="no compiler, or LAZYARRAY_PURE=1")
def test_they_are_there():
    parts = speedups.recording, speedups.launch, speedups.staging, speedups.fetching, speedups.sending
    assert None not in parts, "python setup.py build_ext --inplace"
    assert recording.quick is speedups.recording.quick and wrap.new_array is speedups.recording.new_array


PROGRAM = """
import numpy as np, lazyarray
from lazyarray import recording, speedups, wrap
assert speedups.recording is None and speedups.launch is None and speedups.fetching is None
assert recording.quick.__module__ == "lazyarray.recording" and wrap.new_array.__module__ == "lazyarray.wrap"
x = lazyarray.asarray(np.arange(5.0))
assert ((x + x) * 2 - 1).tolist() == [-1, 3, 7, 11, 15]
assert np.asarray(x).tolist() == [0, 1, 2, 3, 4]
"""


def test_without_them():
    found = subprocess.run([sys.executable, "-c", PROGRAM], env={**os.environ, "LAZYARRAY_PURE": "1"}, cwd=ROOT,
                           capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode == 0, found.stderr


def arrays():
    return lazyarray.asarray(np.arange(6.0).reshape(2, 3)), lazyarray.asarray(np.ones((2, 3)))


def held(one, other):
    """An operand that is held comes from the same kernel; one of a strided step in another order does not."""
    last = one * other
    wrap.device_of(last)
    assert one._self_storage.state == "device"
    wrap.device_of((last.T + 1).T + one)


def failed(x):
    """Work that can't be computed."""
    device = lazyarray.device()

    def kernel(*args):
        raise MemoryError("no more")

    device.kernel, usual = kernel, device.__dict__.get("kernel")
    try:
        with pytest.raises(MemoryError, match="no more"):
            wrap.device_of(x)
    finally:
        del device.kernel
        if usual is not None:
            device.kernel = usual


@needs_c
@pytest.mark.parametrize("call", [
    lambda x, y: x + y, lambda x, y: x * 2, lambda x, y: 2 - x, lambda x, y: -x, lambda x, y: x < y,
    lambda x, y: abs(-x), lambda x, y: (x + y) * (x + y), lambda x, y: np.sqrt(x * x + y), lambda x, y: x ** 2,
    lambda x, y: wrap.device_of((x + y) * x - 1), lambda x, y: wrap.device_of((x.T * 2 + y[0, 0]).T - y),
    lambda x, y: wrap.device_of((x - y[0]) * 2), lambda x, y: (x * y - 1).sum(), lambda x, y: held(x + y, x * 2),
    lambda x, y: failed(x * y + 1),
    lambda x, y: x[1:] - y, lambda x, y: x.T * 2, lambda x, y: (x + y)[:, None] < x[:, :1], lambda x, y: -x[:, ::2],
    lambda x, y: (x + y).T - x[0, 0], lambda x, y: x[1:, 1:] + x[:-1, 1:],
])
def test_calls_keep_nothing(call):
    x, y = arrays()
    for _ in range(10):     # a kernel is compiled when it is needed again, and keeps its dtypes
        call(x, y)
        compiled()
    rule = recording_steps.rules[np.add, x.dtype, x.dtype] if (np.add, x.dtype, x.dtype) in recording_steps.rules else x
    kept = [rule, x.dtype, x._self_storage, x._self_leaf, x, y, np.add, wrap.outline_of(x)]
    if rule is not x:
        kept.append(rule.step)
    kept = [one for one in kept if one is not None]     # views have no leaf; None is counted too before Python 3.12

    def work():
        for _ in range(200):
            call(x, y)
        x._self_storage.readers = y._self_storage.readers = None

    growth(work, kept, 100)


@needs_c
class TestErrors:
    @pytest.mark.parametrize("given", [(), (1,), (1, 2, 3, 4, 5)])
    def test_new_array(self, given):
        with pytest.raises(TypeError):
            wrap.new_array(*given)

    def test_new_array_by_name(self):
        x = arrays()[0]
        same = wrap.new_array(x._self_storage, outline=None, array=x._self_array, base=y if (y := x[0]) is None else y)
        assert same.shape == x.shape and same.base is y
        with pytest.raises(TypeError, match="other"):
            wrap.new_array(x._self_storage, None, other=1)
        with pytest.raises(TypeError, match="storage"):
            wrap.new_array(x._self_storage, None, storage=x._self_storage)

    @pytest.mark.parametrize("given", [(), (np.add,), (np.add, [1]), (np.add, ())])
    def test_quick(self, given):
        with pytest.raises(TypeError):
            recording.quick(*given)

    def test_of_what_it_calls(self, monkeypatch):
        x, y = arrays()
        assert ufuncs.quick(np.multiply, (x, 3)) is not None
        rule = recording_steps.rules[np.multiply, x.dtype, int]

        class Refused:
            name, function, inputs, output, indexed = "", None, (), x.dtype, False

        def refuse(value):
            raise ValueError("refused")

        from lazyarray.fusion.program import Step
        step = Step(rule.step.name, rule.step.function, rule.step.inputs, rule.step.output, refuse)
        monkeypatch.setattr(rule, "step", step)
        with pytest.raises(ValueError, match="refused"):
            x * 4
        monkeypatch.undo()
        assert (x * 4).sum() == 60

    def test_names_that_are_lacking(self):
        with pytest.raises((TypeError, KeyError)):
            speedups.recording.bind({})
        recording.bind(lazyarray.LazyNdarray, ufuncs.planned)
        x, y = arrays()
        assert (x + y).sum() == 21


@needs_c
def test_a_number_beyond_the_dtype_goes_the_general_way():
    x = lazyarray.asarray(np.arange(3, dtype=np.uint8))
    for part in (x, x[1:], x[1:]):
        part + 1
        with pytest.raises(OverflowError):
            part + 300
        assert (part < 300).all()


@needs_c
def test_where_a_view_begins():
    view = np.arange(6.0).reshape(2, 3)[1:, ::-1]
    assert speedups.recording.address(view) == view.__array_interface__["data"][0]
    with pytest.raises((TypeError, ValueError, BufferError)):
        speedups.recording.address(3)


def test_many_threads_record_on_the_same_arrays():
    from concurrent.futures import ThreadPoolExecutor

    x, y = arrays()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: np.asarray((x + y) * i - x), range(400)))
    for i, result in enumerate(found):
        assert np.array_equal(result, (np.arange(6.0).reshape(2, 3) + 1) * i - np.arange(6.0).reshape(2, 3))


def test_a_bound_that_no_size_reaches():
    x = lazyarray.asarray(np.arange(3.0))
    with lazyarray.options(defer_from=2**70):
        assert recording.quick(np.add, (x, 1)) is None
        assert (x + 1).tolist() == [1, 2, 3] and (x + x).tolist() == [0, 2, 4]
