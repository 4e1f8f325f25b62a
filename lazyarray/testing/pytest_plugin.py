"""Pytest fixtures for `lazyarray.testing`. They are available once lazyarray is installed (through an entry point).

Every pytest run on a machine with lazyarray imports this module, so it imports nothing large.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def lazy_check() -> Any:
    """`lazyarray.testing.check`: run a function with NumPy arrays and with lazy arrays, and compare."""
    from lazyarray.testing import check

    return check


@pytest.fixture
def lazy_copies() -> Callable[..., Any]:
    """`lazyarray.testing.assert_copies`: a context manager that asserts the number and bytes of copies."""
    from lazyarray.testing import assert_copies

    return assert_copies


@pytest.fixture(params=["device", "host", "both", "aliased"])
def lazy_array(request: pytest.FixtureRequest) -> Callable[..., Any]:
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
