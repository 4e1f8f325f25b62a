"""Where a program's time goes, line by line: copies, fallbacks, and the time of the host and of the device.

Copies, fallbacks and waits are events, as `lazyarray.trace` records them. The time of a line is sampled: a thread looks
every millisecond which line of the program each thread is executing, and whether the device is computing. So the calls
themselves run as they do without a profile.
"""
from __future__ import annotations

import linecache
import os
import sys
import sysconfig
import threading
import zlib
from time import perf_counter
from types import FrameType
from typing import Any, NamedTuple, Self

import numpy as np

from .. import devices
from ..devices.base import owner_of
from ..events import html
from ..events.callers import SERVED, module_of, place_of, user_frame, variables
from ..events.event import Event
from ..events.markup import cell, element, escape, table
from ..events.report import align, format_bytes, summary
from ..events.trace import trace
from . import advice

__all__ = ["LineProfile", "Profile"]

#: Seconds between two looks.
INTERVAL = 1e-3
#: Lines in a report at most: those with the most time, and all with copies and fallbacks.
MOST_LINES = 60
COLUMNS = ("line", "ms", "device ms", "host ms", "to device", "to host", "fallbacks", "code")
_NUMBERS = range(1, 7)
#: Bytes of an uploaded array whose content is compared with that of the upload before.
_COMPARED = 1 << 20
#: Arrays of which uploads are counted.
_MOST_UPLOADED = 10_000


class LineProfile(NamedTuple):
    """What one line of the program took.

    Attributes
    ----------
    filename, lineno, code : str, int, str
    device : float
        Seconds in which the device was computing, or copying, while this line was executed.
    host : float
        Seconds in which it was not.
    uploads, upload_bytes, materialisations, materialised_bytes, fallbacks : int
        Copies, their bytes, and calls that NumPy ran on the host.
    """

    filename: str
    lineno: int
    code: str
    device: float
    host: float
    uploads: int
    upload_bytes: int
    materialisations: int
    materialised_bytes: int
    fallbacks: int


class _Recorder(trace):
    """A trace that knows which uploads are of the same array with the same values."""

    def __init__(self, process: bool) -> None:
        super().__init__(process=process)
        self.repeated: dict[tuple[Any, ...], advice.Uploaded] = {}

    def record(self, event: Event, source: Any = None) -> None:
        self.events.append(event)
        if event.kind != "upload" or not isinstance(source, np.ndarray):
            return
        checksum = _checksum(source)
        copied = event.reason == ASSIGNED
        place = checksum if copied else source.__array_interface__["data"][0]
        key = event.filename, event.lineno, place, source.shape, source.strides, source.dtype
        known = self.repeated.get(key)
        owner = None if copied else owner_of(source)
        if known is None and len(self.repeated) < _MOST_UPLOADED or known is not None and known.is_gone(owner):
            self.repeated[key] = advice.Uploaded(owner, checksum)
        elif known is not None and known.checksum == checksum:
            known.times += 1
            if known.times == 2:
                known.name, known.argument = _names_of(_assigned(source) if copied else [source])


#: The reason of an upload of values that are assigned to elements: NumPy has copied them, for their dtype.
ASSIGNED = "assigned from the host"
#: Where code lies that is not the program's. That of lazyarray is named since its module may be called "__main__".
_INSTALLED = tuple({path + os.sep for path in (
    *map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")),
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))})


def _is_program(frame: FrameType) -> bool:
    """Whether a frame is the program's: not of what is installed, and of lazyarray."""
    name = frame.f_code.co_filename
    made = name.startswith("<") and not name.startswith("<ipython")     # by `exec`, or Python's own
    return not made and not name.startswith(_INSTALLED) and module_of(frame).partition(".")[0] not in SERVED


def _is_busy(device: Any, streams: list[tuple[int, Any]], frame: FrameType) -> bool:
    """Whether a device computes; `streams`: a number of a device and a stream of it, each."""
    for number, stream in streams:
        with device.on(number):
            if device.busy(stream, frame):
                return True
    return False


def _line_of(frame: FrameType | None) -> tuple[str, int] | None:
    """The line of the program that a thread is at."""
    while frame is not None:
        if _is_program(frame):
            return frame.f_code.co_filename, frame.f_lineno or 0
        frame = frame.f_back
    return None


def _checksum(array: np.ndarray) -> int:
    some = array if array.nbytes <= _COMPARED else array.reshape(-1)[:: -(-array.nbytes // _COMPARED)]
    return id(array) if array.dtype.hasobject else zlib.crc32(some.tobytes())


def _assigned(copy: np.ndarray) -> list[np.ndarray]:
    """What the program may have assigned, of which `copy` is a copy: an array that lazyarray's functions were given."""
    found = []
    program = user_frame()
    frame: FrameType | None = sys._getframe(1)
    while frame is not program and frame is not None:
        found += [value for _, value in variables(frame)
                  if type(value) is np.ndarray and value.shape == copy.shape]
        frame = frame.f_back
    return found


def _names_of(arrays: list[np.ndarray]) -> tuple[str, str]:
    """The variable that is one of these arrays, or ""; and the argument that it was passed as, or "".

    A variable, in the function or in one that called it, can be made lazy before all calls. An argument can't.
    """
    argument = ""
    frame: FrameType | None = user_frame()
    while frame is not None:
        code = frame.f_code
        parameters = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
        name = ""
        for other, value in variables(frame):
            if type(value) is np.ndarray and not other.startswith("_") and any(value is array for array in arrays):
                if other not in parameters:
                    name = other        # the last one: a local variable, if there is one
                elif not argument:
                    argument = f"the argument {other} of {code.co_name}"
        if name:
            return name, argument
        frame = frame.f_back
        while frame is not None and not _is_program(frame):
            frame = frame.f_back
    return "", argument


class Profile:
    """Profile a ``with`` block: its copies, fallbacks and times, for each line of the program.

    ``print`` shows the lines and the advice.

    Parameters
    ----------
    process : bool
        Profile all threads, not only the one that enters the block. The times of a line are then the sums over the
        threads that execute it at the same time.

    Attributes
    ----------
    trace : lazyarray.trace
        The events.
    seconds : float
        How long the block ran.
    span : (float, float)
        When it began and ended, on the clock of `time.perf_counter`.
    """

    def __init__(self, process: bool = True) -> None:
        self.trace = _Recorder(process)
        self.seconds = 0.0
        self._times: dict[tuple[str, int], list[float]] = {}    # line -> [seconds of the device, of the host]
        self._device_seconds = 0.0
        self._process = process
        self._at_once = False   # several threads executed lines at the same time
        self.span = 0.0, 0.0
        self._stop = threading.Event()

    def __enter__(self) -> Self:
        device = devices.current()
        streams = []
        for number in device.in_use():
            with device.on(number):
                streams.append((number, device.stream()))
        self._sampler = threading.Thread(target=self._sample, args=(device, streams, threading.get_ident()),
                                         name="lazyarray-profile", daemon=True)
        self.trace.__enter__()
        self._start = perf_counter()
        self._sampler.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stop.set()
        self._sampler.join()
        stop = perf_counter()
        self.trace.__exit__(*exc_info)
        self.span, self.seconds = (self._start, stop), stop - self._start

    def _sample(self, device: Any, streams: list[tuple[int, Any]], thread: int) -> None:
        last = perf_counter()
        while not self._stop.wait(INTERVAL):
            frames = sys._current_frames()
            if thread not in frames:
                return
            looked_at = [frame for number, frame in frames.items() if number == thread or self._process]
            del frames      # what they hold is the program's to let go of
            lines = [(line, _is_busy(device, streams, frame)) for frame in looked_at if (line := _line_of(frame))]
            del looked_at
            now = perf_counter()
            for line, busy in lines:
                self._times.setdefault(line, [0.0, 0.0])[not busy] += now - last
            self._at_once |= len(lines) > 1
            if any(busy for _, busy in lines):
                self._device_seconds += now - last
            last = now

    # -- what was found ------------------------------------------------------------------------

    def lines(self) -> list[LineProfile]:
        """The lines that took time or copied something, in the order of each file."""
        found: dict[tuple[str, int], list[Any]] = {key: ["", *times, 0, 0, 0, 0, 0]
                                                   for key, times in self._times.items()}
        for event in self.trace.events:
            line = found.setdefault((event.filename, event.lineno), ["", 0.0, 0.0, 0, 0, 0, 0, 0])
            line[0] = event.code
            if event.kind == "upload":
                line[3], line[4] = line[3] + 1, line[4] + event.nbytes
            elif event.kind == "materialise":
                line[5], line[6] = line[5] + 1, line[6] + event.nbytes
            line[7] += event.kind == "fallback"
        return [LineProfile(*key, values[0] or linecache.getline(*key).strip(), *values[1:])
                for key, values in sorted(found.items())]

    def advice(self) -> list[str]:
        """What would make the program faster, in the order of its lines; empty if there is nothing to be done."""
        return advice.of(self.trace.events, self.trace.repeated)

    def _shown(self) -> list[LineProfile]:
        lines = self.lines()
        most = sorted(lines, key=lambda line: -(line.device + line.host))[:MOST_LINES]
        least = 1e-3 * self.seconds
        lines = [line for line in lines if not line.code.startswith("get_ipython().run_")]     # the cell's own magic
        return [line for line in lines if line.uploads or line.materialisations or line.fallbacks
                or line in most and line.device + line.host > least][:5 * MOST_LINES]

    @property
    def title(self) -> str:
        """How long the block ran, and how long of that the device was computing."""
        return f"{self.seconds * 1e3:.1f} ms, of which the device computed {self._device_seconds * 1e3:.1f} ms"

    @property
    def _notes(self) -> str:
        """What the times are of, and what is left out."""
        left = ["child processes"] if self._process else ["other threads", "child processes"]
        if devices.current().name == "cuda":
            left.append("device times of streams other than the one that was current at the beginning")
        return ("The times of several threads are added up. " * self._at_once) + f"Not included: {', '.join(left)}."

    def _row(self, line: LineProfile) -> tuple[str, ...]:
        def copies(number: int, nbytes: int) -> str:
            return f"{number} ({format_bytes(nbytes)})" if number else ""

        return (place_of(line.filename, line.lineno), f"{(line.device + line.host) * 1e3:.1f}",
                f"{line.device * 1e3:.1f}", f"{line.host * 1e3:.1f}", copies(line.uploads, line.upload_bytes),
                copies(line.materialisations, line.materialised_bytes), str(line.fallbacks or ""), line.code)

    def __repr__(self) -> str:
        return f"<profile: {self.title}>"

    def __str__(self) -> str:
        return f"{self.title}\n{summary(self.trace.events)}{self.text()}"

    def text(self) -> str:
        """The table of the lines, the advice, and what the times are of, each after an empty line."""
        rows = [(*row[:-1], row[-1][:70]) for row in (self._row(line) for line in self._shown())]
        parts = []
        if rows:
            parts += ["", *align([COLUMNS, *rows], right=_NUMBERS)]
        if found := self.advice():
            parts += ["", *(f"- {text}" for text in found)]
        parts += ["", self._notes]
        return "".join(f"\n{part}" for part in parts)

    def _repr_html_(self) -> str:
        return self.html(self.title)

    def html(self, title: str) -> str:
        """The report as one HTML element: advice, timeline, the lines, and the reasons of their copies."""
        rows = [[cell(name, head=True, right=number in _NUMBERS) for number, name in enumerate(COLUMNS)]]
        for line in self._shown():
            *texts, code = self._row(line)
            rows.append([cell(texts[0], most=40), *(cell(text, right=True) for text in texts[1:]),
                         cell(code, code=True, most=70)])
        parts = []
        if found := self.advice():
            parts.append(element("ul", "".join(element("li", escape(text), "margin:.2em 0") for text in found),
                                 "margin:.3em 0 .6em;padding-left:1.4em"))
        if len(rows) > 1:
            parts.append(element("div", table(rows), "overflow-x:auto;margin:.5em 0 1em"))
        parts.append(html.report(self.trace.events, self.span))
        parts.append(element("div", escape(self._notes), "margin:.5em 0"))
        head = element("div", element("b", escape(title)), "margin:.2em 0 .5em")
        return element("div", head + "".join(parts), "text-align:left", **{"class": "lazyarray-profile"})

    def page(self, title: str = "lazyarray profile") -> str:
        """The report as a web page of its own, light or dark as the reader's system is."""
        return html.whole(self._repr_html_(), title)
