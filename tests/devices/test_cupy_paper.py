"""Sparse matrices beside lazy arrays, the memory pool, and the benchmark of Table 1."""
from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import lazyarray
from benchmarks import table1
from lazyarray.array import operators

ROOT = Path(__file__).parents[2]
RNG = np.random.default_rng(0)


# -- sparse matrices -------------------------------------------------------------------------

DENSE = RNG.random((30, 40)) * (RNG.random((30, 40)) > 0.8)


@pytest.mark.parametrize("kind", ["csr_array", "csr_matrix", "csc_array", "bsr_array", "coo_array", "coo_matrix"])
@pytest.mark.parametrize("shape", [(40,), (40, 3)])
def test_scipys_sparse_matrix_times_a_lazy_array_fetches_it_once(kind, shape):
    sparse = pytest.importorskip("scipy.sparse")
    matrix, host = getattr(sparse, kind)(DENSE), RNG.random(shape)
    x = lazyarray.asarray(host)
    with lazyarray.trace() as t:
        product = matrix @ x
        again = matrix @ x
    assert np.allclose(product, DENSE @ host) and np.array_equal(product, again)
    assert t.nbytes == x.nbytes and type(product) is np.ndarray
    assert np.allclose(x.T @ matrix.T, host.T @ DENSE.T)


class DeviceMatrix:
    """Takes device arrays only, and has a higher priority, as CuPy's sparse matrices."""

    __array_priority__ = 101

    def __matmul__(self, other):
        if not isinstance(other, lazyarray.device().array_type):
            return NotImplemented
        return other[:2] * 2

    def __rmatmul__(self, other):
        return other * 3

    __add__ = __radd__ = __matmul__

    def __mul__(self, other):
        return NotImplemented if lazyarray.is_lazy(other) else "not an array"


@pytest.fixture
def partner(monkeypatch):
    device = lazyarray.device()
    monkeypatch.setattr(device, "computes_with", lambda kind: kind is DeviceMatrix, raising=False)
    operators.whose_turn.cache_clear()
    yield DeviceMatrix()
    monkeypatch.undo()
    operators.whose_turn.cache_clear()


def test_what_takes_device_arrays_only_is_given_ours(partner):
    x = lazyarray.asarray(np.arange(4.0))
    with lazyarray.no_transfers():
        left, right, total = partner @ x, x @ partner, x + partner
        assert all(map(lazyarray.is_lazy, (left, right, total)))
        assert partner * x == "not an array"
    assert left.tolist() == [0, 2] and right.tolist() == [0, 3, 6, 9] and total.tolist() == [0, 2]
    with pytest.raises(TypeError):
        x -= partner
    with pytest.raises(TypeError):
        partner @ lazyarray.asarray(["a"])      # the device can't hold it


def test_a_view_that_it_returns_is_a_view_of_ours(partner, monkeypatch):
    monkeypatch.setattr(DeviceMatrix, "__matmul__", lambda self, other: other[1:3])
    x = lazyarray.asarray(np.arange(4.0))
    y = partner @ x
    y += 10
    assert x.tolist() == [0, 11, 12, 3]


@pytest.mark.together
class TestSparseOnTheDevice:
    @pytest.fixture
    def sparse(self):
        pytest.importorskip("scipy")
        return lazyarray.device().library("cupyx.scipy.sparse")

    @pytest.mark.parametrize("kind", ["csr_matrix", "csc_matrix", "coo_matrix", "csr_array"])
    def test_a_lazy_array_stays_there(self, sparse, kind):
        matrix = getattr(sparse, kind)(lazyarray.asdevice(DENSE))
        vector, columns = RNG.random(40), RNG.random((40, 3))
        x, y, z = (lazyarray.asarray(a) for a in (vector, columns, DENSE))
        with lazyarray.no_transfers():
            found = [matrix @ x, matrix @ y, x @ matrix.T, y.T @ matrix.T, matrix + z, z + matrix, z - matrix,
                     matrix.dot(x)]
        product, products = DENSE @ vector, DENSE @ columns
        expected = [product, products, product, products.T, 2 * DENSE, 2 * DENSE, 0 * DENSE, product]
        for ours, right in zip(found, expected):
            assert lazyarray.is_lazy(ours) and np.allclose(np.asarray(ours), right)

    def test_host_arrays_are_refused_as_ever(self, sparse):
        matrix = sparse.csr_matrix(lazyarray.asdevice(DENSE))
        with pytest.raises((TypeError, ValueError, AttributeError)):
            matrix @ np.ones(40)

    def test_a_linear_system(self, sparse):
        linalg = lazyarray.lazy_module(lazyarray.device().library("cupyx.scipy.sparse.linalg"))
        dense = DENSE @ DENSE.T + 30 * np.eye(30)
        b = lazyarray.asarray(np.ones(30))
        x, info = linalg.cg(sparse.csr_matrix(lazyarray.asdevice(dense)), b)
        assert info == 0 and lazyarray.is_lazy(x) and np.allclose(dense @ np.asarray(x), 1, atol=1e-3)


class TestPool:
    def test_cupys_memory_hook_and_our_trace_agree(self):
        cupy = lazyarray.device().xp
        if not hasattr(cupy.cuda, "MemoryHook"):
            pytest.skip("the simulated device has no memory hooks; see the test of its pool")
        asked = []

        class Hook(cupy.cuda.MemoryHook):
            def malloc_postprocess(self, **about):
                asked.append(about["size"])

        arrays = [np.zeros(n, dtype) for n, dtype in ((1, "u1"), (1000, "f4"), (12345, "c16"), (1 << 20, "f8"))]
        with lazyarray.trace() as t, Hook():
            lazies = [lazyarray.asarray(array) for array in arrays]
            uploaded = list(asked)
            for x in lazies:
                np.asarray(x)
                x.tobytes()
        assert uploaded == [event.nbytes for event in t.uploads] == [array.nbytes for array in arrays]
        assert asked == uploaded and [event.nbytes for event in t.materialisations] == uploaded

    @pytest.mark.together
    def test_it_holds_what_the_uploads_say(self):
        """On any device: what an upload takes of the pool is its bytes, in units of 512; a fetch takes nothing."""
        device = lazyarray.device()
        pool = device.xp.get_default_memory_pool()
        with device.limited(1 << 30) if device.name == "simulated" else lazyarray.trace():
            before = pool.used_bytes()
            with lazyarray.trace() as t:
                lazies = [lazyarray.asarray(np.zeros(n)) for n in (1, 100, 5000)]
            assert pool.used_bytes() - before == sum(-(-event.nbytes // 512) * 512 for event in t.uploads)
            for x in lazies:
                np.asarray(x)
            assert pool.used_bytes() - before == sum(-(-event.nbytes // 512) * 512 for event in t.uploads)
            del lazies, x
            assert pool.used_bytes() == before


# -- the example -----------------------------------------------------------------------------

@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What the example prints, by the name of the step, and the picture that it saves."""
    pytest.importorskip("skimage")
    pytest.importorskip("scipy")
    folder = tmp_path_factory.mktemp("paper")
    command = [sys.executable, str(ROOT / "examples" / "cupy_paper.py"), "--output", "steps.svg"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    found = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    steps = found.stdout.partition("what moved")[0]
    lines = [line for line in steps.splitlines() if "largest difference" in line or "left out" in line]
    return {line[:30].strip(): line[31:] for line in lines}, found.stdout, (folder / "steps.svg").read_text()


class TestExample:
    def test_every_step_ran_or_says_why_not(self, printed):
        steps, text, picture = printed
        assert len(steps) == 9 and "what moved, by line:" in text
        assert ET.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"
        left_out = [name for name, said in steps.items() if "left out" in said]
        on_gpu = lazyarray.device().name == "cuda"
        assert left_out == ([] if on_gpu else ["kernels"])

    def test_what_the_device_can_do_copies_no_picture(self, printed):
        steps, _, _ = printed
        for name in ("softplus, by get_array_module", "indexing", "linear algebra", "sorting"):
            moved = sum(float(n) for n in re.findall(r"\(([\d.]+) KiB", steps[name]))
            assert "MiB" not in steps[name] and moved < 10, name     # at most some rows, which the host had
        assert "1 materialisation (512.0 KiB" in steps["SciPy's sparse matrix"]

    def test_it_has_help(self, tmp_path):
        pytest.importorskip("skimage")
        command = [sys.executable, str(ROOT / "examples" / "cupy_paper.py"), "--help"]
        found = subprocess.run(command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True,
                               text=True, check=True)
        assert "--output" in found.stdout and not list(tmp_path.iterdir())


# -- Table 1 ---------------------------------------------------------------------------------

def test_all_three_do_the_same_work():
    results = [call(10_000) for call in table1.candidates().values()]
    host = results[0]
    assert host.shape == (10, 1000) and host[3, 7] == 146
    for result in results[1:]:
        found = lazyarray.asnumpy(result)
        assert isinstance(result, lazyarray.device().array_type | lazyarray.LazyNdarray)
        assert found.dtype == host.dtype and np.array_equal(found, host)


def test_lazy_arrays_copy_nothing_for_it():
    with lazyarray.no_transfers():
        table1.candidates()["lazyarray"](10_000)


def test_the_benchmark_prints_a_row_for_each_size():
    command = [sys.executable, "-m", "benchmarks.table1", "--largest", "1e5", "--seconds", "0.01"]
    results = ROOT / "benchmarks" / "results"
    before = {path: path.read_bytes() for path in results.iterdir()}
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["n", "10,000", "100,000"]
    assert len(lines) == 3 and {path: path.read_bytes() for path in results.iterdir()} == before    # a part is not kept
