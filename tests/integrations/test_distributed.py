"""Dask's `distributed`: what travels between processes, what is spilled, and a cluster on this machine."""
from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lazyarray
from lazyarray.testing import assert_copies

pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore:.*runs on the host")

from distributed.protocol import deserialize, serialize  # noqa: E402
from distributed.protocol.pickle import dumps, loads  # noqa: E402

PLAIN = np.random.default_rng(0).random((300, 200))

ARRAYS = {
    "plain": lambda x: x,
    "transposed": lambda x: x.T,
    "every other row": lambda x: x[::2],
    "backwards": lambda x: x[::-1, ::-1],
    "empty": lambda x: x[:0],
    "0-d": lambda x: x[3, 3:4].reshape(()),
    "broadcast": lambda x: np.broadcast_to(x[0], (10, 200)),
    "complex": lambda x: x + 1j,
    "half": lambda x: x.astype("f2"),
    "masks": lambda x: x > 0.5,
    "strings": lambda x: lazyarray.asarray(np.array(["a", "bb"])),
    "objects": lambda x: lazyarray.asarray(np.array([1, None, "x"], dtype=object)),
    "records": lambda x: lazyarray.asarray(np.zeros(3, "f4,i2")),
    "dates": lambda x: lazyarray.asarray(np.arange(3).astype("M8[s]")),
}


def sent(header, frames):
    """What arrives on the other side of a socket."""
    return pickle.loads(pickle.dumps(header)), [bytes(frame) for frame in frames]


@pytest.mark.parametrize("serializers", [None, ("cuda", "dask", "pickle"), ("pickle",)], ids=["dask", "cuda", "pickle"])
@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_what_is_sent_arrives(make, serializers):
    x = make(lazyarray.asarray(PLAIN))
    header, frames = serialize(x, serializers=serializers, on_error="raise")
    if header["serializer"] != "cuda":
        header, frames = sent(header, frames)
    got = deserialize(header, frames)
    assert lazyarray.is_lazy(got) and got.dtype == x.dtype and got.shape == x.shape
    assert np.asarray(got).tolist() == np.asarray(x).tolist()
    if x.flags.forc or serializers != ("pickle",):      # NumPy's pickles of others are of a copy
        assert got.flags.writeable == x.flags.writeable
    if got.size and got.flags.writeable and got.ndim:
        got[0] = got[-1]        # the frames are nobody's


@pytest.mark.parametrize("family", ["dask", "pickle"])
def test_the_bytes_are_copied_to_the_host_once_and_uploaded_where_they_are_needed(family):
    x = lazyarray.asarray(PLAIN) * 2
    with assert_copies(0, 1, nbytes=PLAIN.nbytes):
        header, frames = serialize(x, serializers=(family,), on_error="raise")
        serialize(x, serializers=(family,), on_error="raise")
    assert header["serializer"] == family
    assert sum(len(memoryview(frame).cast("B")) for frame in frames) < PLAIN.nbytes + 1000
    with assert_copies(0, 0):
        got = deserialize(*sent(header, frames))
    with assert_copies(1, 0, nbytes=PLAIN.nbytes):
        got += 1
    np.testing.assert_array_equal(np.asarray(got), PLAIN * 2 + 1)


def test_frames_are_the_host_copy_itself():
    x = lazyarray.asarray(PLAIN)
    _, (frame,) = serialize(x, on_error="raise")
    assert np.shares_memory(np.frombuffer(frame), np.asarray(x))
    del x
    others = [np.asarray(lazyarray.asarray(PLAIN) * 0) for _ in range(3)]
    np.testing.assert_array_equal(np.frombuffer(frame).reshape(PLAIN.shape), PLAIN)
    assert not any(other.any() for other in others)


def test_collections_and_scalars():
    x = lazyarray.asarray(PLAIN)
    header, frames = serialize([x, {"key": x[0]}, x.sum()], on_error="raise")
    first, second, total = deserialize(*sent(header, frames))
    np.testing.assert_array_equal(np.asarray(first), PLAIN)
    np.testing.assert_array_equal(np.asarray(second["key"]), PLAIN[0])
    assert total == x.sum() and type(total) is np.float64


def test_opened_without_a_device(monkeypatch):
    header, frames = sent(*serialize(lazyarray.asarray(PLAIN), on_error="raise"))
    pickled = dumps(lazyarray.asarray(PLAIN))
    monkeypatch.setattr(type(lazyarray.device()), "usable", lambda self: "there is no GPU here")
    for got in (deserialize(header, frames), loads(pickled)):
        assert lazyarray.is_lazy(got)
        np.testing.assert_allclose(float((got * 2).sum()), PLAIN.sum() * 2)


def test_device_memory_goes_as_it_is():
    x = lazyarray.asarray(PLAIN)
    if lazyarray.device().name != "cuda":
        header, _ = serialize(x, serializers=("cuda", "dask"), on_error="raise")
        assert header["serializer"] == "dask"
        return
    x = x * 2
    with lazyarray.no_transfers():
        header, frames = serialize(x.T, serializers=("cuda",), on_error="raise")
        got = deserialize(header, frames)
        assert got.shape == x.T.shape and frames[0].nbytes == PLAIN.nbytes
        same = deserialize(*serialize(x, serializers=("cuda",), on_error="raise"))
    np.testing.assert_array_equal(np.asarray(got), PLAIN.T * 2)
    alias = np.asarray(x)
    same[0, 0] = 7      # opened in the process that it comes from, it shares the memory
    assert alias[0, 0] == x[0, 0] == 7 and got[0, 0] == PLAIN[0, 0] * 2


def test_spilled_and_brought_back(tmp_path):
    from distributed.spill import SpillBuffer
    arrays = {f"key-{i}": lazyarray.asarray(PLAIN + i) for i in range(4)}
    buffer = SpillBuffer(str(tmp_path), target=int(PLAIN.nbytes * 2.5))
    for key, x in arrays.items():
        buffer[key] = x
    assert len(buffer.memory) == 2 and len(buffer.disk) == 2
    for i, key in enumerate(arrays):
        got = buffer[key]
        assert lazyarray.is_lazy(got)
        np.testing.assert_array_equal(np.asarray(got), PLAIN + i)


def test_what_lies_on_both_sides_is_spilled_sooner(tmp_path):
    from distributed.spill import SpillBuffer
    buffer = SpillBuffer(str(tmp_path), target=int(PLAIN.nbytes * 2.5))
    for i in range(2):
        x = lazyarray.asarray(PLAIN + i)
        np.asarray(x)
        buffer[f"key-{i}"] = x
    assert len(buffer.memory) == 1


# -- a cluster ---------------------------------------------------------------------------------------

def test_workers_in_this_process_compute_scatter_and_persist():
    da = pytest.importorskip("dask.array")
    from distributed import Client, LocalCluster, wait
    plain = PLAIN[:40, :30]
    x = lazyarray.asarray(plain)
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None)
    with cluster, Client(cluster) as client:
        with lazyarray.trace(process=True) as trace:
            d = da.from_array(x, chunks=10)
            got = ((d - d.mean(axis=0)) ** 2).sum(axis=1).compute()
        assert lazyarray.is_lazy(got)
        np.testing.assert_allclose(np.asarray(got), ((plain - plain.mean(axis=0)) ** 2).sum(axis=1))
        # The graph takes the array along once, and each chunk goes to the device of the worker that works on it.
        assert sum(event.nbytes for event in trace.materialisations) == plain.nbytes, trace
        assert sum(event.nbytes for event in trace.uploads) == plain.nbytes, trace

        future = client.submit(np.sort, client.scatter(x))
        assert lazyarray.is_lazy(future.result())
        np.testing.assert_array_equal(np.asarray(future.result()), np.sort(plain))
        kept = (d * 2).persist()
        wait(kept)
        assert lazyarray.is_lazy(kept.blocks[0, 0].compute())
        assert client.submit(lambda a: a.sum(), x).result() == pytest.approx(plain.sum())


EXAMPLE = Path(__file__).parents[2] / "examples" / "dask_stack.py"


BETWEEN_GPUS = """
import numpy as np
import lazyarray
from dask_cuda import LocalCUDACluster
from distributed import Client, wait

def total(x):
    with lazyarray.trace() as events:
        found = float(x.sum())
    return found, x.sum().dtype.name, [event.kind for event in events if event.nbytes >= x.nbytes]

if __name__ == "__main__":
    with LocalCUDACluster(n_workers=2, threads_per_worker=1, dashboard_address=None, protocol="ucx") as cluster, (
            Client(cluster)) as client:
        client.wait_for_workers(2)
        here, there = client.scheduler_info()["workers"]
        x = client.submit(lazyarray.numpy.full, 10**6, 2.0, workers=[here])
        wait(x)
        print("found", client.submit(total, x, workers=[there]).result())
"""


@pytest.mark.skipif(lazyarray.device().name != "cuda" or lazyarray.device().count < 2, reason="needs two GPUs")
def test_an_array_goes_from_one_gpu_to_another(tmp_path):
    for library in ("dask_cuda", "distributed_ucxx"):
        pytest.importorskip(library)
    program = tmp_path / "program.py"
    program.write_text(BETWEEN_GPUS)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120, check=False,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert "found (2000000.0, 'float64', [])" in done.stdout, done.stdout + done.stderr


def run_example(folder, *arguments):
    path = [str(EXAMPLE.parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    # Dask's own profiler holds a function's frame for a moment, and with it arrays, longer than the function: as
    # whoever holds device memory, it may have written there, for all that is known, and one looks once more.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path), "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "0"}
    return subprocess.run([sys.executable, str(EXAMPLE), *arguments], cwd=folder, env=environment, text=True,
                          capture_output=True, timeout=300, check=False)


def test_a_stack_on_a_cluster_that_loses_a_worker(tmp_path):
    skimage_io = pytest.importorskip("skimage.io")
    if lazyarray.device().name == "cuda":
        pytest.importorskip("cucim")       # without it the filters run on the host, and frames are copied there
    found = run_example(tmp_path, "--frames", "9", "--workers", "2", "--kill")
    assert found.returncode == 0, found.stdout + found.stderr
    text = found.stdout
    assert re.search(r"worker \d+ killed after 3 of 9 frames", text), text
    assert "the same as in one process: True" in text and "what came back is lazy: True" in text, text
    # Each frame is uploaded once, where it is examined, and its labels are fetched once; nothing else is copied.
    moved = re.findall(r"^ *(\d+) x (\w+) +(\d+) bytes", text, re.MULTILINE)
    whole = str(9 * 192 * 192 * 4)
    assert sorted(moved) == [("9", "fallback", "0"), ("9", "materialise", whole), ("9", "upload", whole)], text
    assert skimage_io.imread(tmp_path / "dask_stack.png").std() > 10


def test_the_example_has_help(tmp_path):
    pytest.importorskip("skimage")
    assert "--kill" in run_example(tmp_path, "--help").stdout
