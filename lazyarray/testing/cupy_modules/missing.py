"""Names of CuPy that the simulated device does not have."""
from __future__ import annotations

from typing import Any, NoReturn


class NotSimulatedError(NotImplementedError):
    """A program called something that CuPy has only with a GPU.

    Attributes
    ----------
    name : str
        What was called, such as ``"cupy.cuda.Graph"``.
    """

    def __init__(self, name: str, advice: str = "") -> None:
        advice = advice or f"give a function or class to use in its place, simulated_cupy(replace={{{name!r}: ...}}),"
        super().__init__(f"{name} is not simulated: it needs CuPy and a GPU. To test the code around it without one, "
                         f"{advice} or run this test only where there is a GPU.")
        self.name = name


class _Missing(type):
    """The class of a stand-in: it can be imported, subclassed and tested for, but not called."""

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotSimulatedError(f"{cls.__module__}.{cls.__name__}")

    def __repr__(cls) -> str:
        return f"<{cls.__module__}.{cls.__name__}, not simulated>"


def missing(module: str, name: str) -> type:
    """The stand-in for a name of a module."""
    return _Missing(name, (), {"__module__": module, "__doc__": "Not simulated: it needs CuPy and a GPU."})
