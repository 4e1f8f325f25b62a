"""What the options of the pytest plugin do. ``lazyarray_pytest.py``, which pytest loads, imports this when asked to."""
from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Any

import pytest

from lazyarray.testing.cupy_modules.missing import NotSimulatedError
from lazyarray.testing.cupy_modules.modules import simulated_cupy


class SimulatedCupy:
    """``--simulated-cupy``: the simulated CuPy for a whole run."""

    def __init__(self) -> None:
        self.block = simulated_cupy()
        self.block.__enter__()
        self.needed: collections.Counter[str] = collections.Counter()

    @classmethod
    def start(cls, config: pytest.Config) -> None:
        """Put it in place until pytest ends."""
        plugin = cls()
        config.pluginmanager.register(plugin, "lazyarray-simulated-cupy")
        config.add_cleanup(lambda: plugin.block.__exit__(None, None, None))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[Any]) -> Iterator[Any]:
        """A test that needs what is not simulated is skipped."""
        report = yield
        error = call.excinfo.value if call.excinfo is not None else None
        if isinstance(error, NotSimulatedError):
            self.needed[error.name] += 1
            report.outcome, report.longrepr = "skipped", (str(item.path), item.location[1], str(error))
        return report

    def pytest_report_header(self) -> str:
        """A line at the top."""
        return "lazyarray: cupy is simulated"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """What the skipped tests need, and how many of them."""
        if self.needed:
            terminalreporter.section("not simulated: these tests need CuPy and a GPU")
            for name, number in self.needed.most_common():
                terminalreporter.write_line(f"{number:5} {name}")
