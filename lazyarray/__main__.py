"""``python -m lazyarray`` shows versions, the device and how fast it copies, and what to install if no GPU was found.

``python -m lazyarray measure`` measures the constants that decide where small computations run. ``python -m lazyarray
run program.py arguments`` runs a program without changes, with calls of SciPy and scikit-image sent to the device.
"""
from __future__ import annotations

import argparse
import os
import platform
import runpy
import sys
from collections.abc import Sequence
from importlib import metadata

import numpy as np

import lazyarray
from lazyarray import devices
from lazyarray.events.report import align
from lazyarray.graph import cost_model
from lazyarray.integrations.routing import enable
from lazyarray.storage.mirror import dirty_tracking

# Large enough that the rate is the copy's own, small enough for any device
RATE_BYTES = 64 << 20
RATE_REPEATS = 3


def versions() -> list[tuple[str, str]]:
    """Name and version of lazyarray and of what it stands on; CuPy's wheels go by several names."""
    cupy = sorted((name, distribution.version) for distribution in metadata.distributions()
                  if (name := distribution.metadata["Name"] or "").startswith("cupy"))
    return [
        ("lazyarray", lazyarray.__version__),
        ("Python", platform.python_version()),
        ("NumPy", np.__version__),
        ("wrapt", metadata.version("wrapt")),
        *(cupy or [("CuPy", "not installed")]),
        ("system", f"{platform.system()} {platform.release()} {platform.machine()}"),
    ]


def device() -> list[tuple[str, str]]:
    """Which device is used, why, and what to do for a better one."""
    found = devices.why()
    return [("device", f"{found.device} (CUDA: {found.state})"), ("why", found.reason),
            *([("what to do", found.advice)] if found.advice else [])]


def write_tracking() -> list[tuple[str, str]]:
    """How writes through host aliases are found."""
    why_not = dirty_tracking.why_no_pages()
    if why_not is None:
        return [("write tracking", "by pages: only what foreign code wrote is uploaded again")]
    return [("write tracking", "none: everything that foreign code may have written is uploaded again"),
            ("why", why_not)]


def rates() -> list[tuple[str, str]]:
    """The best of a few copies each way, as the library itself records them."""
    host = np.ones(RATE_BYTES, np.uint8)
    with lazyarray.options(write_tracking="none"), lazyarray.no_transfers("allow"), lazyarray.trace() as record:
        for _ in range(RATE_REPEATS):
            np.asarray(lazyarray.asarray(host) + np.uint8(1))
    return [
        (name, f"{max(event.nbytes / max(event.seconds, 1e-9) for event in events) / 1e6:,.0f} MB/s")
        for name, events in (("uploads", record.uploads), ("materialisations", record.materialisations))
    ]


def places(costs: cost_model.Costs) -> list[tuple[str, str]]:
    """Where small work runs, and the constants of the model that says so."""
    most = [costs.largest_on_host(steps) for steps in (1, 4)]
    one, four = ("any size" if n > 1 << 40 else f"{n / 1e6:.3g} MB" if n >= 1e6 else f"{n / 1e3:.3g} kB" for n in most)
    rows = [("CPU placement threshold", f"{one} (1 operation), {four} (4 operations)")]
    units = {"call": "s", "launch": "s", "rate": "bytes/s"}
    return rows + [(name, f"{value:.3g} {units[name.rpartition('_')[2]]}") for name, value in costs._asdict().items()]


def measure() -> None:
    """Measure the constants of the model of `lazyarray.graph.cost_model`, and say how to put them in force."""
    found = cost_model.measured(devices.current())
    for title, costs in (("in force", cost_model.costs()), ("measured here", found)):
        print(f"{title}:")
        print("\n".join(align([(f"  {name}:", value) for name, value in places(costs)])), end="\n\n")
    print(f"to use the measured values:\n  export {cost_model.VARIABLE}={found.text()}")


def run(libraries: str, module: bool, program: str, arguments: Sequence[str]) -> None:
    """Run a file, or a module as ``python -m`` does, with libraries enabled, also in processes that it starts."""
    os.environ["LAZYARRAY_ENABLE"] = libraries
    lazyarray.disable()
    enable.from_environment()
    sys.argv[:] = [program, *arguments]
    if module:
        sys.path[0] = os.getcwd()
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(program))
        runpy.run_path(program, run_name="__main__")


def main(arguments: Sequence[str] | None = None) -> None:
    """What the command does."""
    parser = argparse.ArgumentParser(prog="python -m lazyarray", description=(
        "Without a command: which device was found, what it can do, how fast it copies."))
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("measure", help="measure what decides where small work runs (some seconds)")
    runs = commands.add_parser("run", help="run a program with calls of SciPy and scikit-image sent to the device")
    runs.add_argument("--enable", metavar="NAMES", default=os.environ.get("LAZYARRAY_ENABLE") or "scipy,skimage,numpy",
                      help="libraries, with commas between; with numpy among them, large host arrays go to the device "
                           "too (default: LAZYARRAY_ENABLE, else %(default)s)")
    runs.add_argument("-m", dest="module", action="store_true", help="the program is a module, as for python -m")
    runs.add_argument("program")
    runs.add_argument("arguments", nargs=argparse.REMAINDER, help="the arguments of the program")
    chosen = parser.parse_args(arguments)
    if chosen.command == "run":
        run(chosen.enable, chosen.module, chosen.program, chosen.arguments)
    elif chosen.command == "measure":
        measure()
    else:
        for section in (versions, device, write_tracking, rates, lambda: places(cost_model.costs())[:1]):
            print("\n".join(align([(f"{name}:", value) for name, value in section()])), end="\n\n")


if __name__ == "__main__":
    main()
