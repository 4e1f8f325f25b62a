"""The parts in C: they are there where a compiler is, keep nothing, and say what is wrong with their arguments."""
from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from recorded import compiled, growth

import lazyarray
from lazyarray import _native
from lazyarray.array import operators
from lazyarray.dispatch import advanced_indexing, plain_call, small_arrays, small_runs
from lazyarray.dispatch import ufunc as ufuncs
from lazyarray.functions import views
from lazyarray.graph.record import loops, ufunc
from lazyarray.storage import handles

ROOT = Path(__file__).parents[2]
HEADERS = Path(sysconfig.get_path("include"), "Python.h")


@pytest.mark.skipif(shutil.which("cc") is None or not HEADERS.exists(), reason="no compiler")
def test_they_are_there():
    parts = _native.recording, _native.launch, _native.staging, _native.small_copies
    assert None not in parts, "python setup.py build_ext --inplace"
    assert ufuncs.quick is _native.recording.recorded and handles.new_array is _native.recording.new_array


PROGRAM = """
import sys, warnings
for name in {hidden}:
    sys.modules["lazyarray._native." + name] = None     # then an import of it fails
import numpy as np, lazyarray, lazyarray.numpy as lnp
from lazyarray import _native
assert _native.recording is None

def program(xp, asarray):
    x, y = asarray(np.arange(12.0).reshape(3, 4)), asarray(np.linspace(-1, 1, 4))
    z = ((x + y) * 2 - 1) / (x + 1)
    yield from (z, np.sqrt(x * 2 + 1), x.T[::2] @ z, x[1:] - x[:-1], np.where(x > y, x, -y), x.astype("i4") + y)
    z += x.T.reshape(3, 4)
    z[1:, ::2] *= np.float32(3)
    z[z > 40] = -1
    yield from (z, z.sum(0), z.std(), abs(z).max(axis=1), np.clip(z, -3, 9).round(2), (z * 2).T.copy() < 5)
    n = xp.arange(30).reshape(5, 6).T * 3 - xp.ones((6, 1)) + xp.full(5, 0.5)
    n[2] = xp.linspace(0, 1, 5)
    np.add(n, 1, out=n)
    yield from (n, n[n > 3], np.concatenate([n, n * 2]), float(n[0, 0]) + n.mean(), np.power(n, 2), 3 - xp.arange(4))
    view = n[1:3]
    view -= n[3:5] ** 2
    np.asarray(n)[0] = 7
    yield from (n, view.reshape(-1) * n[0, 0], np.argsort(n, axis=None, kind="stable"), np.linalg.norm(n), x.max() * x)

for defer_from in (0, 100, None):
    with lazyarray.options(defer_from=defer_from):
        for i, (found, expected) in enumerate(zip(program(lnp, lazyarray.asarray), program(np, np.array), strict=True)):
            state = getattr(getattr(found, "_self_storage", None), "pending", None)
            assert state is None, i
            found = np.asarray(found)
            assert (found.dtype, found.shape) == (np.asarray(expected).dtype, np.shape(expected)), i
            assert np.allclose(found, expected, rtol=1e-13, atol=1e-13), (i, found, expected)
"""


@pytest.mark.parametrize("hidden", [
    ["recording"], ["recording", "first_download", "dirty_upload", "launch", "staging"]], ids=["recording", "all"])
def test_without_them(hidden):
    """Work is done at once, and what comes of it is the same."""
    found = subprocess.run([sys.executable, "-c", PROGRAM.replace("{hidden}", repr(hidden))], cwd=ROOT,
                           capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode == 0, found.stderr


def arrays():
    return lazyarray.asarray(np.arange(6.0).reshape(2, 3)), lazyarray.asarray(np.ones((2, 3)))


def held(one, other):
    """An operand that is held comes from the same kernel; one of a strided step in another order does not."""
    last = one * other
    handles.device_of(last)
    assert one._self_storage.state == "device"
    handles.device_of((last.T + 1).T + one)


def failed(x):
    """Work that can't be computed."""
    device = lazyarray.device()

    def kernel(*args):
        raise MemoryError("no more")

    device.kernel, usual = kernel, device.__dict__.get("kernel")
    try:
        with pytest.raises(MemoryError, match="no more"):
            handles.device_of(x)
    finally:
        del device.kernel
        if usual is not None:
            device.kernel = usual


@pytest.mark.parametrize("call", [
    lambda x, y: x + y, lambda x, y: x * 2, lambda x, y: 2 - x, lambda x, y: -x, lambda x, y: x < y,
    lambda x, y: abs(-x), lambda x, y: (x + y) * (x + y), lambda x, y: np.sqrt(x * x + y), lambda x, y: x ** 2,
    lambda x, y: handles.device_of((x + y) * x - 1), lambda x, y: handles.device_of((x.T * 2 + y[0, 0]).T - y),
    lambda x, y: handles.device_of((x - y[0]) * 2), lambda x, y: (x * y - 1).sum(), lambda x, y: held(x + y, x * 2),
    lambda x, y: failed(x * y + 1),
    lambda x, y: x[1:] - y, lambda x, y: x.T * 2, lambda x, y: (x + y)[:, None] < x[:, :1], lambda x, y: -x[:, ::2],
    lambda x, y: (x + y).T - x[0, 0], lambda x, y: x[1:, 1:] + x[:-1, 1:],
])
def test_calls_keep_nothing(call):
    x, y = arrays()
    for _ in range(10):     # a kernel is compiled when it is needed again, and keeps its dtypes
        call(x, y)
        compiled()
    rule = loops.rules[np.add, x.dtype, x.dtype] if (np.add, x.dtype, x.dtype) in loops.rules else x
    kept = [rule, x.dtype, x._self_storage, x._self_leaf, x, y, np.add, handles.meta_of(x)]
    if rule is not x:
        kept.append(rule.step)
    kept = [one for one in kept if one is not None]     # views have no leaf; None is counted too before Python 3.12

    def work():
        for _ in range(200):
            call(x, y)
        x._self_storage.readers = y._self_storage.readers = None

    growth(work, kept, 100)


class TestErrors:
    @pytest.mark.parametrize("given", [(), (1,), (1, 2, 3, 4, 5)])
    def test_new_array(self, given):
        with pytest.raises(TypeError):
            handles.new_array(*given)

    def test_new_array_with_a_base(self):
        x = arrays()[0]
        y = x[0]
        same = handles.new_array(x._self_storage, None, x._self_array, y)
        assert same.shape == x.shape and same.base is y

    @pytest.mark.parametrize("name, given", [
        *[("recorded", given) for given in ((), (np.add,), (np.add, [1]), (np.add, ()), (np.add, (1,), None, None))],
        *[("array_of", given) for given in ((), ([],), ([], None), ([1], None))], ("compute", (1,)), ("needed", (1,)),
        ("note_reader", (1, 2)), ("note_reader", ()), ("bind", (3,)),
    ])
    def test_what_is_not_meant(self, name, given):
        with pytest.raises(TypeError):
            getattr(_native.recording, name)(*given)

    def test_of_what_it_calls(self, monkeypatch):
        x, y = arrays()
        assert ufuncs.quick(np.multiply, (x, 3)) is not None
        rule = loops.rules[np.multiply, x.dtype, int]

        def refuse(value):
            raise ValueError("refused")

        monkeypatch.setattr(rule, "scalars", (None, refuse))
        with pytest.raises(ValueError, match="refused"):
            x * 4
        monkeypatch.undo()
        assert (x * 4).sum() == 60

    def test_names_that_are_lacking(self):
        with pytest.raises((TypeError, KeyError)):
            _native.recording.bind({})
        ufunc.bind(lazyarray.LazyNdarray, small_arrays.for_native() | plain_call.for_native() | ufuncs.for_native()
                   | operators.for_native() | views.for_native() | advanced_indexing.for_native()
                   | small_runs.for_native())
        x, y = arrays()
        assert (x + y).sum() == 21


def test_a_number_beyond_the_dtype_goes_the_general_way():
    x = lazyarray.asarray(np.arange(3, dtype=np.uint8))
    for part in (x, x[1:], x[1:]):
        part + 1
        with pytest.raises(OverflowError):
            part + 300
        assert (part < 300).all()


def test_where_a_view_begins():
    view = np.arange(6.0).reshape(2, 3)[1:, ::-1]
    assert _native.recording.address(view) == view.__array_interface__["data"][0]
    with pytest.raises((TypeError, ValueError, BufferError)):
        _native.recording.address(3)


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
        assert _native.recording.recorded(np.add, (x, 1)) is None
        assert (x + 1).tolist() == [1, 2, 3] and (x + x).tolist() == [0, 2, 4]
