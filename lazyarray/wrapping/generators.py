"""Generators and coroutines of GPU functions: they run in steps, and others run in between.

What they were given is opened for each step and closed after it, so that a caller sees what a step wrote, and a step
sees what was written to a lazy array before it. A NumPy argument is uploaded once, when the function is called.
"""
from __future__ import annotations

import types
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

from ..functions.kinds import HOST, LAZY, SCALAR, kind_of
from ..functions.pytree import replace
from ..storage import handles, transfer
from .arguments import Arguments
from .results import Results, at_once

_DRIVERS: dict[type, Callable[[Any, _Steps], Any]] = {}


def is_stepped(result: Any) -> bool:
    """Whether a function returned something that goes on running."""
    return type(result) in _DRIVERS


def drive(result: Any, arguments: Arguments) -> Any:
    """The same with lazy arrays in place of device arrays in all that it gives."""
    return _DRIVERS[type(result)](result, _Steps(arguments))


class _Steps:
    """The steps of one call."""

    def __init__(self, arguments: Arguments) -> None:
        self.arguments = arguments

    def take(self, method: Callable[..., Any], *args: Any) -> tuple[Any, bool]:
        """One step: what it gives, and whether it was the last."""
        arguments = self.arguments
        with arguments.place():
            results = Results(arguments.device, arguments.sources, arguments.back, arguments.copied)

            def step() -> tuple[list[Any], bool]:
                box, last = [], False
                try:
                    box.append(method(*args))
                except StopIteration as stop:
                    box.append(stop.value)
                    stop.value = None
                    last = True
                results.look(box)
                return box, last

            box, last = arguments.opened(step, goes_on=True)
            given = at_once(results.wrap(box[0]), arguments.back.values())
            arguments.close(results.wrap, goes_on=True)
            return given, last

    def to_device(self, value: Any) -> Any:
        """What is sent into a generator, on the device on which its steps run."""
        with self.arguments.place():
            return replace(value, self._to_device)

    def _to_device(self, obj: Any) -> Any:
        kind, why = kind_of(type(obj)), f"sent to {self.arguments.name}"
        if kind == LAZY:
            return handles.operand_of(obj, why)
        if kind == SCALAR:
            return handles.value_of(obj, why)
        if kind == HOST and self.arguments.device.can_hold(obj.dtype):
            return transfer.to_device(self.arguments.device, obj, why)
        return obj

    def end(self) -> None:
        self.arguments.let_go()


def _stepped(inner: Any, steps: _Steps, sent: Callable[[Any], Any]) -> Generator[Any, Any, Any]:
    """Each step of a generator or awaitable; `sent` makes what it is sent of what the caller sends."""
    method, value = inner.send, None
    while True:
        given, last = steps.take(method, value)
        if last:
            return given
        try:
            method, value = inner.send, sent((yield given))
        except GeneratorExit:
            inner.close()
            raise
        except BaseException as error:  # noqa: BLE001  whatever is thrown in is the generator's to judge
            method, value = inner.throw, error


def _generator(inner: Generator[Any, Any, Any], steps: _Steps) -> Generator[Any, Any, Any]:
    try:
        return (yield from _stepped(inner, steps, steps.to_device))
    finally:
        steps.end()


@types.coroutine
def _awaited(inner: Any, steps: _Steps) -> Generator[Any, Any, Any]:
    """What an awaitable gives in the end. What it yields on the way is the event loop's."""
    return (yield from _stepped(inner, steps, lambda value: value))


async def _coroutine(inner: Any, steps: _Steps) -> Any:
    try:
        return await _awaited(inner, steps)
    finally:
        steps.end()


async def _async_generator(inner: AsyncGenerator[Any, Any], steps: _Steps) -> AsyncGenerator[Any, Any]:
    try:
        step = inner.asend(None)
        while True:
            try:
                given = await _awaited(step, steps)
            except StopAsyncIteration:
                return
            try:
                step = inner.asend(steps.to_device((yield given)))
            except GeneratorExit:
                await inner.aclose()
                raise
            except BaseException as error:  # noqa: BLE001  as in a generator
                step = inner.athrow(error)
    finally:
        steps.end()


_DRIVERS.update({
    types.GeneratorType: _generator,
    types.CoroutineType: _coroutine,
    types.AsyncGeneratorType: _async_generator,
})
