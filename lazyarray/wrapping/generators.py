"""Generators and coroutines of GPU functions: they run in steps, and others run in between.

What they were given is opened for each step and closed after it, so that a caller sees what a step wrote, and a step
sees what was written to a lazy array before it. A NumPy argument is uploaded once, when the function is called.
"""
from __future__ import annotations

import sys
import types
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

from .arguments import Arguments, opened
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
        #: What was sent and is not forgotten, with our references to the array that stands for it; 0: of containers.
        self.sent: list[tuple[Arguments, int]] = []

    def take(self, method: Callable[..., Any], *args: Any) -> tuple[Any, bool]:
        """One step: what it gives, and whether it was the last."""
        arguments = self.arguments
        every = [arguments, *[sent for sent, _ in self.sent]]
        with arguments.place():
            results = Results(arguments.device, [x for one in every for x in one.sources],
                              {key: given for one in every for key, given in one.back.items()},
                              [copied for one in every for copied in one.copied])

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

            box, last = opened(every, step, goes_on=True)
            given = at_once(results.wrap(box[0]), results.back.values())
            for one in every:
                one.close(results.wrap, goes_on=True)
        results = args = None       # type: ignore[assignment]  # they refer to what was sent, too
        if self.sent:
            self._forget()
        return given, last

    def to_device(self, value: Any) -> Any:
        """What is sent into a generator, on the device on which its steps run: an argument that comes late."""
        arguments = self.arguments
        known = [one.given for one in (arguments, *[sent for sent, _ in self.sent])]
        for given in known:
            if id(value) in given:      # the array that it was given before
                return given[id(value)]
        role = arguments.rules.role(SENT)
        rules = arguments.rules._replace(role=lambda slot: role)
        late = Arguments(arguments.device, arguments.name, (value,), {}, rules)
        with arguments.place():
            (value,), _ = late.convert(False)
        if not late.given:
            return value            # as it was sent: nothing of it goes to the device
        self.sent.append((late, 0 if late.copies is not None else _references(late) - 1))    # `value` is one
        return value

    def _forget(self) -> None:
        """What was sent is an argument for as long as the generator has it."""
        for entry in self.sent.copy():
            late, before = entry
            if before and _references(late) <= before:
                self.sent.remove(entry)
                late.let_go()

    def end(self) -> None:
        self.arguments.let_go()
        for late, _ in self.sent:
            late.let_go()


#: The slot of what is sent: no parameter.
SENT = ""


def _references(late: Arguments) -> int:
    """References to the one array that stands for what was sent."""
    (array,) = late.given.values()
    return sys.getrefcount(array)


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
            steps.take(inner.close)     # which may write, too
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
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(None, None)      # the event loop would close it beside its steps
        try:
            step = inner.asend(None)
        finally:
            sys.set_asyncgen_hooks(*hooks)
        while True:
            try:
                given = await _awaited(step, steps)
            except StopAsyncIteration:
                return
            try:
                step = inner.asend(steps.to_device((yield given)))
            except GeneratorExit:
                await _awaited(inner.aclose(), steps)
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
