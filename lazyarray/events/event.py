"""What an event is."""

from typing import Any, Literal, NamedTuple

__all__ = ["Event", "Kind"]

Kind = Literal["upload", "materialise", "peer copy", "fallback", "synchronise", "host", "spill"]


class Event(NamedTuple):  # 0.1 ms of an import; with annotations as text 0.2, as a dataclass 0.8
    """One copy (upload, materialisation, peer copy), fallback or synchronisation, or one call with small arrays.

    A "spill" is an array that moves to the host because the device is full, or back when it is used again.

    Attributes
    ----------
    kind : {"upload", "materialise", "peer copy", "fallback", "synchronise", "host", "spill"}
    name : str
        The function that caused it, or "".
    nbytes : int
        Bytes that were copied; 0 for what is no copy.
    shape : tuple of int or None
        Shape of the array.
    dtype : numpy.dtype or None
        Data type of the array.
    reason : str
        Why it happened.
    filename, lineno, code : str, int, str
        The line of your code: the first stack frame outside lazyarray and the libraries that it supports.
    thread : int
        Identifier of the thread (`threading.get_ident`).
    start : float
        Start time, on the clock of `time.perf_counter`.
    seconds : float
        Duration.
    """

    kind: Kind
    name: str
    nbytes: int
    shape: tuple[int, ...] | None
    dtype: Any
    reason: str
    filename: str
    lineno: int
    code: str
    thread: int
    start: float
    seconds: float
