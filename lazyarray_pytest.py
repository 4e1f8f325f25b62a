"""The pytest plugin of lazyarray: it adds options and fixtures, and imports lazyarray when a test asks for one of them.

It is a module of its own beside the package, because pytest imports it at every start on a machine with lazyarray:
``lazyarray.anything`` would import lazyarray and NumPy first.
"""
from __future__ import annotations

from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options that ``pytest --help`` shows."""
    group = parser.getgroup("lazyarray", "tests with lazy arrays, and without a GPU")
    group.addoption("--simulated-cupy", action="store_true",
                    help="let `import cupy` find lazyarray's simulated device; tests that need more of a GPU are skipped")
    group.addoption("--lazyarray", metavar="PACKAGE", nargs="?", const="",
                    help="pass lazy arrays for the ndarrays that tests pass to functions of this package, and report")
    group.addoption("--lazyarray-results", action="store_true", help="make the ndarrays lazy that they return, too")
    group.addoption("--lazyarray-methods", metavar="NAMES", default="",
                    help="methods of the package's classes that get lazy arrays too: fit,predict")
    group.addoption("--lazyarray-report", metavar="FILE", help="write what --lazyarray found to a JSON file")
    group.addoption("--lazyarray-untraced", action="store_true", help="do not count copies and fallbacks")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """The simulated CuPy is there before conftest files and test modules are imported."""
    if early_config.known_args_namespace.simulated_cupy:
        from lazyarray.testing.pytest_plugin import SimulatedCupy

        SimulatedCupy.start(early_config)


def pytest_configure(config: pytest.Config) -> None:
    """Start what the options ask for."""
    if config.getoption("lazyarray", None) is not None:
        from lazyarray.testing.pytest_plugin import start_suite

        start_suite(config)


@pytest.fixture
def simulated_cupy() -> Any:
    """The module ``cupy`` of `lazyarray.testing.simulated_cupy`, which is in place during the test."""
    from lazyarray.testing import simulated_cupy

    with simulated_cupy() as cupy:
        yield cupy


@pytest.fixture
def lazy_check() -> Any:
    """`lazyarray.testing.check`: run a function with NumPy arrays and with lazy arrays, and compare."""
    from lazyarray.testing import check

    return check


@pytest.fixture
def lazy_copies() -> Any:
    """`lazyarray.testing.assert_copies`: a context manager that asserts the number and bytes of copies."""
    from lazyarray.testing import assert_copies

    return assert_copies


@pytest.fixture(params=["device", "host", "both", "aliased"])
def lazy_array(request: pytest.FixtureRequest) -> Any:
    """A function that converts anything to a lazy array.

    The test runs once for each state of that array: current on the device, on the host, on both, and with an alias that
    is held.
    """
    import numpy as np

    from lazyarray.testing import Specimen

    def make(values: Any, dtype: Any = None) -> Any:
        source = np.array(values, dtype, order="C")
        aliased = request.param == "aliased"
        return Specimen(source, source.shape, state="both" if aliased else request.param, aliased=aliased).lazy()

    return make
