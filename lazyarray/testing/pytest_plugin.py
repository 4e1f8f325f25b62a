"""What the options of the pytest plugin do. ``lazyarray_pytest.py``, which pytest loads, imports this when asked to."""
from __future__ import annotations

import collections
import importlib.util
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

import lazyarray
from lazyarray.testing.cupy_modules.missing import NotSimulatedError
from lazyarray.testing.cupy_modules.modules import simulated_cupy
from lazyarray.testing.suite import TESTERS, Suite


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


class LazySuite:
    """``--lazyarray``: tests run with lazy arrays, and those that fail run again with plain copies."""

    def __init__(self, suite: Suite, report: str | None) -> None:
        self.suite, self.report = suite, report
        self.process = os.getpid()
        self.names: dict[str, str] = {}
        self.outcomes: dict[str, str] = {}
        self.differing: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Put the stand-ins into the test modules."""
        modules = {}
        for item in items:
            module = getattr(item, "module", None)
            if module is not None:
                modules[module.__name__] = module
                self.names[item.nodeid] = "::".join((self.suite.dotted(module), *item.nodeid.split("::")[1:]))
        self.suite.enter(modules, [item.callspec.params for item in items if hasattr(item, "callspec")])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run a test with lazy arrays and, if it fails, with copies."""
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        outcome = _outcome(reports)
        if outcome == "failed":
            with self.suite.with_copies():
                again = runtestprotocol(item, log=False, nextitem=nextitem)
            if _outcome(again) == "failed":
                outcome, reason = "unsuitable", "it fails with plain copies of its arrays too"
                for report in reports:
                    if report.failed:
                        report.outcome, report.longrepr = "skipped", (str(item.path), item.location[1], reason)
            else:
                nodeid = item.nodeid    # without a file where that is outside the root folder
                self.differing.append(self.names.get(nodeid, nodeid) if nodeid.startswith("::") else nodeid)
        if os.getpid() != self.process:  # a test forked and failed in the child, which would run all that is left
            os._exit(1)
        self.outcomes[self.names.get(item.nodeid, item.nodeid)] = outcome
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_report_header(self) -> str:
        """A line at the top that says what is tested."""
        kind = "arguments and results" if self.suite.results else "arguments"
        return f"lazyarray: {', '.join(self.suite.packages)} with lazy arrays as {kind}"

    def content(self) -> dict[str, Any]:
        """What is in the report."""
        return {"tests": self.outcomes, "differing": self.differing, **self.suite.table.content()}

    def add(self, content: dict[str, Any]) -> None:
        """Take in what a worker of pytest-xdist found."""
        self.outcomes.update(content["tests"])
        self.differing += content["differing"]
        self.suite.table.add(content)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the report, or hand it to the process that started this one."""
        self.suite.close()
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["lazyarray"] = json.dumps(self.content())
        elif self.report:
            Path(self.report).write_text(json.dumps(self.content(), indent=1))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        """A worker of pytest-xdist has finished."""
        content = getattr(node, "workeroutput", {}).get("lazyarray")
        if content is not None:
            self.add(json.loads(content))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """The table, and the tests that found a difference."""
        table = self.suite.table
        terminalreporter.section(f"lazy arrays in {', '.join(self.suite.packages)}")
        for line in table.lines():
            terminalreporter.write_line(line)
        terminalreporter.write_line(f"{table.calls:,} calls, {table.arrays:,} arrays replaced")
        unsuitable = list(self.outcomes.values()).count("unsuitable")
        if unsuitable:
            terminalreporter.write_line(f"{unsuitable} tests fail with plain copies of their arrays too: skipped")
        terminalreporter.write_line(f"{len(self.differing)} tests pass with ndarrays and fail with lazy arrays")
        for name in self.differing:
            terminalreporter.write_line(f"  {name}")


def _outcome(reports: list[pytest.TestReport]) -> str:
    """Of a test's three phases the worst counts."""
    outcomes = {report.outcome for report in reports}
    return next(outcome for outcome in ("failed", "skipped", "passed") if outcome in outcomes)


def start_suite(config: pytest.Config) -> None:
    """Read the options, and register what they ask for."""
    option = config.option
    packages = [name.strip() for name in option.lazyarray.split(",") if name.strip()] or _found(config)
    for name in packages:
        try:
            there = importlib.util.find_spec(name) is not None
        except ModuleNotFoundError:
            there = False
        if not there:
            raise pytest.UsageError(f"--lazyarray={name}: there is no such package. Write --lazyarray=PACKAGE, with an "
                                    "equals sign, or --lazyarray as the last argument.")
    # Arrays of tests are small, and stand for large ones.
    lazyarray.options.set(warn_fallbacks=False, small_on_host=False)
    methods = [name.strip() for name in option.lazyarray_methods.split(",") if name.strip()]
    suite = Suite(packages, option.lazyarray_results, methods, not option.lazyarray_untraced)
    config.pluginmanager.register(LazySuite(suite, option.lazyarray_report), "lazyarray-suite")


def _found(config: pytest.Config) -> list[str]:
    """The packages that a run without names means."""
    if config.option.pyargs:
        return sorted({argument.partition(".")[0].partition("::")[0] for argument in config.args})
    folders = [config.rootpath, config.rootpath / "src"]
    found = sorted(path.parent.name for folder in folders for path in folder.glob("*/__init__.py")
                   if path.parent.name not in {*TESTERS, "docs", "examples", "benchmarks"})
    if not found:
        raise pytest.UsageError(f"--lazyarray: there is no package in {config.rootpath}. Write --lazyarray=PACKAGE.")
    return found
