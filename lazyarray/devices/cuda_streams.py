"""What a stream of CUDA's is known by."""
from __future__ import annotations

from typing import Any


class StreamOnDevice:
    """A stream where its pointer alone does not say which one it is.

    That is so with several devices, and for the per-thread default stream, which has one pointer in all threads.
    """

    __slots__ = ("device_id", "stream", "thread")

    def __init__(self, stream: Any, device_id: int, thread: int) -> None:
        self.stream = stream
        self.device_id = device_id
        self.thread = thread

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, StreamOnDevice)
            and self.stream.ptr == other.stream.ptr
            and self.device_id == other.device_id
            and self.thread == other.thread
        )

    def __hash__(self) -> int:
        return hash((self.stream.ptr, self.device_id, self.thread))
