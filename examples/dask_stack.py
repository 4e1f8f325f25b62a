"""Process a stack of photographs with scikit-image, on a cluster of processes on this machine.

The pipeline is that of cucim_pipeline.py, unchanged: written for NumPy and one image. Each frame is sent to a worker
and uploaded there once. The labels of the objects are copied to the host, where the objects are measured one by one.
The panels are lazy, and so is what Dask computes from all of them. With ``--kill``, one worker is killed in the middle:
other workers compute its frames again, and the results are the same.
"""
from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import dask
import dask.array as da
import numpy as np
from cucim_pipeline import develop
from distributed import Client, LocalCluster, as_completed
from skimage import color, data, io, util

import lazyarray

SIDE = 192          # of a frame, in pixels
PANEL = (SIDE, 3 * SIDE)    # what is made of one: the frame, its edges, and the objects on it


def photographs(count: int) -> np.ndarray:
    """Frames of the sky, of shape (count, SIDE, SIDE), as a telescope sees it that moves on by a part of a frame."""
    sky = color.rgb2gray(data.hubble_deep_field()).astype(np.float32)
    rows = int(np.ceil(np.sqrt(count)))
    down = np.linspace(0, sky.shape[0] - SIDE, rows).astype(int)
    right = np.linspace(0, sky.shape[1] - SIDE, -(-count // rows)).astype(int)
    places = [(top, left) for top in down for left in right][:count]
    return np.stack([sky[top:top + SIDE, left:left + SIDE] for top, left in places])


def examine(frame: np.ndarray) -> tuple[np.ndarray, list[int], list[tuple[str, str, int]]]:
    """What a worker does with a frame: the pipeline, on its device. With it comes what was copied, and where."""
    silent = lazyarray.options(warn_fallbacks=False)    # the trace records them
    with lazyarray.enabled("skimage"), silent, lazyarray.trace() as record:
        panel, regions = develop(lazyarray.asarray(frame), SIDE, host_stage=False)
        areas = [int(region.num_pixels) for region in regions]
    return panel, areas, [(event.kind, event.code, event.nbytes) for event in record.events]


def summary(stack: da.Array) -> list[da.Array]:
    """What is asked of all frames together: the brightest that each place was, and how much the frames differ."""
    return [stack.max(axis=0), stack.std(axis=0), stack.mean()]


def bar(done: int, total: int, begun: float) -> None:
    """Show the progress in one line, in a terminal."""
    if sys.stderr.isatty():
        line = f"\r|{'#' * (40 * done // total):40}| {done}/{total} frames, {time.perf_counter() - begun:.1f} s"
        print(line, end="\n" if done == total else "", file=sys.stderr)


def run_on_cluster(client: Client, frames: np.ndarray, kill: bool) -> tuple[list, list]:
    """(What `examine` gives for each frame, what `summary` gives for the stack)."""
    begun = time.perf_counter()
    futures = client.map(examine, list(frames), pure=False)
    for done, _ in enumerate(as_completed(futures), 1):
        bar(done, len(futures), begun)
        if kill and done == max(len(futures) // 3, 1):
            victim = min(client.run(os.getpid).values())
            os.kill(victim, signal.SIGKILL)
            print(f"worker {victim} killed after {done} of {len(futures)} frames")
    panels = [client.submit(lambda result: result[0], future) for future in futures]
    stack = da.stack([da.from_delayed(panel, PANEL, meta=np.empty((0, 0), np.uint8)) for panel in panels])
    whole = client.gather(client.compute(summary(stack)))
    return client.gather(futures), whole


def run_here(frames: np.ndarray) -> tuple[list, list]:
    """The same in this process."""
    results = [examine(frame) for frame in frames]
    stack = da.stack([da.from_array(panel, chunks=-1) for panel, _, _ in results])
    return results, list(dask.compute(*summary(stack), scheduler="synchronous"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=12, help="number of photographs (%(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="number of processes (%(default)s)")
    parser.add_argument("--kill", action="store_true", help="kill a worker when a third of the frames are done")
    parser.add_argument("--output", type=Path, default=Path("dask_stack.png"), help="PNG file to write (%(default)s)")
    arguments = parser.parse_args()

    frames = photographs(arguments.frames)
    settings = {"n_workers": arguments.workers, "threads_per_worker": 1, "host": "127.0.0.1",
                "dashboard_address": None, "silence_logs": "ERROR"}
    with LocalCluster(**settings) as cluster, Client(cluster) as client:
        begun = time.perf_counter()
        results, whole = run_on_cluster(client, frames, arguments.kill)
        print(f"{len(frames)} frames of {SIDE} x {SIDE} in {time.perf_counter() - begun:.1f} s on {arguments.workers} "
              f"processes, each with a {lazyarray.device().name} device")

    print("what was copied on the workers, by line:")
    times, nbytes = Counter(), Counter()
    for kind, code, size in (event for _, _, record in results for event in record):
        times[kind, code] += 1
        nbytes[kind, code] += size
    for (kind, code), number in times.items():
        print(f"{number:6} x {kind:12} {nbytes[kind, code]:10} bytes  {code}")
    arrays = [panel for panel, _, _ in results] + whole[:2]
    print(f"what came back is lazy: {all(map(lazyarray.is_lazy, arrays))}")
    sizes = [area for _, areas, _ in results for area in areas]
    print(f"{len(sizes)} objects, the largest of {max(sizes)} pixels; mean brightness {float(whole[2]):.4f}")

    here, whole_here = run_here(frames)
    same = all(np.array_equal(a[0], b[0]) and a[1] == b[1] for a, b in zip(results, here)) and all(
        np.allclose(a, b, rtol=1e-6) for a, b in zip(whole, whole_here))
    print(f"the same as in one process: {same}")

    brightest = np.asarray(whole[0])
    pictures = [np.asarray(panel) for panel, _, _ in results] + [brightest]
    io.imsave(arguments.output, util.montage(pictures, padding_width=2), check_contrast=False)
    print(f"{arguments.output}: the frames, and the brightest that each place was")


if __name__ == "__main__":
    main()
