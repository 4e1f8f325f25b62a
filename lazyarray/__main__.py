"""``python -m lazyarray`` shows versions, the device and how fast it copies, and what to install if no GPU was found.

``python -m lazyarray measure`` measures the constants that decide where small computations run. ``python -m lazyarray
run program.py arguments`` runs a program without changes, with calls of SciPy and scikit-image sent to the device;
``run --trace program.py`` shows what each line of it copies, and how long it takes.
"""
from __future__ import annotations

import argparse
import contextlib
import os
import platform
import re
import runpy
import sys
import types
from collections.abc import Callable, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path

import numpy as np

import lazyarray
from lazyarray import _native, devices
from lazyarray.errors import NotOnDevice
from lazyarray.events.report import align
from lazyarray.graph import cost_model
from lazyarray.integrations.profile import Profile
from lazyarray.integrations.routing import enable
from lazyarray.storage.mirror import dirty_tracking

# Large enough that the rate is the copy's own, small enough for any device
RATE_BYTES = 64 << 20
RATE_REPEATS = 3

NO_CUPY = "to use an NVIDIA GPU: pip install 'lazy-ndarray[cuda13]', or [cuda12], the version that nvidia-smi shows"
NO_CUCIM = ("to run scikit-image on a GPU: pip install 'lazy-ndarray[cucim]' for CUDA 13; "
            "pip install 'lazy-ndarray[cuda12]' cucim-cu12 for CUDA 12")


def versions() -> list[tuple[str, str]]:
    """Name and version of lazyarray and of what it stands on."""
    return [
        ("lazyarray", f"{lazyarray.__version__} ({os.path.dirname(lazyarray.__file__)})"),
        ("Python", platform.python_version()),
        ("NumPy", np.__version__),
        ("wrapt", metadata.version("wrapt")),
        ("system", f"{platform.system()} {platform.release()} {platform.machine()}"),
    ]


def advised(name: str, state: str, advice: str = "") -> list[tuple[str, str]]:
    """A row, and a second one if there is something to do."""
    return [(name, state), *([("  what to do", advice)] if advice else [])]


def device() -> list[tuple[str, str]]:
    """Which device is used, why, and what to do for a better one."""
    found = devices.why()
    driver = devices.driver()
    return [*advised("device", f"{found.device} (CUDA: {found.state})"), *advised("why", found.reason, found.advice),
            *advised("driver", driver or "none found")]


def libraries() -> list[tuple[str, str]]:
    """What is installed of the libraries that compute on the device, and of those that are sent there."""
    on_cuda = devices.why().device == "cuda"
    rows = _distributions("CuPy", "cupy", "" if on_cuda else NO_CUPY)
    rows += _distributions("cuCIM", "cucim", NO_CUCIM)
    if on_cuda and rows[-1][0] == "cuCIM":
        try:
            devices.current().library("cucim.skimage")
        except NotOnDevice as error:
            rows += [("  what to do", str(error))]
    for title, name, extra in (("SciPy", "scipy", "skimage"), ("scikit-image", "scikit-image", "skimage")):
        rows += _distributions(title, name, f"pip install 'lazy-ndarray[{extra}]'")
    return rows


def _distributions(title: str, prefix: str, advice: str) -> list[tuple[str, str]]:
    """A library that goes by several names, one for each version of CUDA."""
    found = sorted({(name, distribution.version) for distribution in metadata.distributions()
                    if re.fullmatch(prefix + r"(-cu(da)?\d+x?)?", name := distribution.metadata["Name"] or "")})
    if not found:
        return advised(title, "not installed", advice)
    return advised(title, ", ".join(version if name == prefix else f"{version} ({name})" for name, version in found),
                   f"uninstall all but one: pip uninstall {found[0][0]}" if len(found) > 1 else "")


def compiled() -> list[tuple[str, str]]:
    """Whether the parts in C are there."""
    if not _native.missing:
        return [("compiled parts", "all")]
    reasons = ", ".join(f"{name} ({reason})" for name, reason in _native.missing.items())
    return advised("compiled parts", f"missing: {reasons}; each operation is computed at once, and calls take longer",
                   "install a wheel, or install a C compiler (such as gcc) and lazy-ndarray again; "
                   "in a checkout: pip install -e .")


def write_tracking() -> list[tuple[str, str]]:
    """How writes through host aliases are found."""
    why_not = dirty_tracking.why_no_pages()
    if why_not is None:
        return [("write tracking", "by pages: only what other code wrote is uploaded again")]
    return [*advised("write tracking", "none: everything that other code may have written is uploaded again"),
            *advised("why", why_not, "use Linux 6.7 or later on x86-64 or ARM; in a container, allow the system calls "
                                     "userfaultfd and ioctl")]


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


def show(*sections: Callable[[], list[tuple[str, str]]]) -> None:
    """Print some of the above, with an empty line after each."""
    for section in sections:
        print("\n".join(align([(f"{name}:", value) for name, value in section()])), end="\n\n")


def measure() -> None:
    """Measure the constants of the model of `lazyarray.graph.cost_model`, and say how to put them in force."""
    found = cost_model.measured(devices.current())
    for title, costs in (("in force", cost_model.costs()), ("measured here", found)):
        print(f"{title}:")
        print("\n".join(align([(f"  {name}:", value) for name, value in places(costs)])), end="\n\n")
    print(f"to use the measured values:\n  export {cost_model.VARIABLE}={found.text()}")


def run(libraries: str, module: bool, program: str, arguments: Sequence[str], report: str | None = None) -> None:
    """Run a file, or a module as ``python -m`` does, with libraries enabled, also in processes that it starts.

    `report`: print a profile of the program at its end, or write it to a file of this name, if it is not "". The
    program may change the working directory.
    """
    report = report and os.path.abspath(report)
    os.environ["LAZYARRAY_ENABLE"] = libraries
    lazyarray.disable()
    enable.from_environment()
    sys.argv[:] = [program, *arguments]
    found = None if report is None else Profile()
    try:
        with found or contextlib.nullcontext():
            if module:
                sys.path[0] = os.getcwd()
                runpy.run_module(program, run_name="__main__", alter_sys=True)
            else:
                path = os.path.abspath(program)     # as Python itself names it in tracebacks, and in ``__file__``
                sys.path[0] = os.path.dirname(path)
                runpy.run_path(path, run_name="__main__")
    except BaseException:       # whatever ends the program is shown as Python shows it, and raised on
        sys.excepthook = partial(_show_error, sys.excepthook)
        raise
    finally:        # also of a program that ends with an error, or by `sys.exit`
        if found is not None:
            sys.stdout.flush()
            if not report or not _written(report, found.page(f"{program}: lazyarray profile")):
                print(found, file=sys.stderr)
            else:
                print(f"profile of {program}: {report}", file=sys.stderr)


def _written(path: str, text: str) -> bool:
    """Write a file; whether that was possible. It was when the program began, see `_report`."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        print(f"{path} could not be written: {error.strerror}", file=sys.stderr)
        return False
    return True


def _show_error(show: Callable[..., object], kind: type[BaseException], error: BaseException,
                trace: types.TracebackType | None) -> None:
    """Show a program's error as `show` does, without the frames that run the program."""
    inner = trace
    while inner is not None and inner.tb_frame.f_code.co_filename in _RUNNERS:
        inner = inner.tb_next
    if inner is not None or isinstance(error, SyntaxError):
        error.__traceback__ = trace = inner
    show(kind, error, trace)


_RUNNERS = frozenset({run.__code__.co_filename, runpy.run_path.__code__.co_filename})


def _traced(arguments: Sequence[str]) -> list[str]:
    """The arguments with "--trace=" for "--trace": a file's name follows "=" alone; else the program follows."""
    given = list(arguments)
    for number, text in enumerate(given):
        if text == "--trace":
            given[number] = "--trace="
        elif number and not text.startswith("-") and given[number - 1] != "--enable":
            break       # the program; what follows is its own
    return given


def _names(text: str) -> str:
    """The value of --enable, as it was given: an unknown name in it ends the command, before the program has begun."""
    names = [*filter(None, map(str.strip, text.split(",")))]
    try:
        if names:
            lazyarray.enabled(*names)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _report(text: str) -> str:
    """The value of --trace: a file that can't be written ends the command, before the program has begun."""
    path = os.path.abspath(text)
    folder = os.path.dirname(path)
    if not text or os.access(path, os.W_OK) and not os.path.isdir(path):
        return text
    if not os.path.isdir(folder):
        raise argparse.ArgumentTypeError(f"no such folder: {folder}")
    if os.path.isdir(path):
        raise argparse.ArgumentTypeError(f"{text} is a folder; name a file")
    if os.path.exists(path) or not os.access(folder, os.W_OK | os.X_OK):
        raise argparse.ArgumentTypeError(f"no permission to write {path}")
    return text


def main(arguments: Sequence[str] | None = None) -> None:
    """What the command does."""
    parser = argparse.ArgumentParser(prog="python -m lazyarray", description=(
        "Without a command: which device was found, what it can do, how fast it copies."))
    parser.add_argument("--version", action="version", version=f"lazyarray {lazyarray.__version__}")
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("measure", help="measure what decides where small work runs (some seconds)")
    runs = commands.add_parser("run", help="run a program with calls of SciPy and scikit-image sent to the device, "
                                      "and profile it (--trace)")
    runs.add_argument("--enable", metavar="NAMES", type=_names,
                      default=os.environ.get("LAZYARRAY_ENABLE") or "scipy,skimage,numpy",
                      help="libraries, with commas between; with numpy among them, large host arrays go to the device "
                           "too, and large arrays that the program makes after that (numpy.zeros) are lazy "
                           "(default: LAZYARRAY_ENABLE, else %(default)s)")
    runs.add_argument("--trace", metavar="FILE", type=_report,
                      help="profile the program: show for each line its copies, fallbacks and times, with advice; "
                           "--trace=report.html writes it to a file")
    runs.add_argument("-m", dest="module", action="store_true", help="the program is a module, as for python -m")
    runs.add_argument("program")
    runs.add_argument("arguments", nargs=argparse.REMAINDER, help="the arguments of the program")
    chosen = parser.parse_args(_traced(sys.argv[1:] if arguments is None else arguments))
    try:
        cost_model.Costs.of_text(os.environ.get(cost_model.VARIABLE, ""))
        if chosen.command != "run":     # a program may choose its device itself
            devices.why()
    except ValueError as error:
        parser.exit(2, f"{parser.prog}: error: {error}\n")
    if chosen.command == "run":
        if not chosen.module and not os.path.exists(chosen.program):
            runs.error(f"no such file: {chosen.program}")
        run(chosen.enable, chosen.module, chosen.program, chosen.arguments, chosen.trace)
        return
    usable = devices.why().device != "none"
    if chosen.command is None:
        show(versions, device, libraries, lambda: compiled() + write_tracking())
        if usable:
            show(rates, lambda: places(cost_model.costs())[:1])
    elif usable:
        measure()
    else:
        show(device)
    if not usable:
        sys.exit(1)


if __name__ == "__main__":
    main()
