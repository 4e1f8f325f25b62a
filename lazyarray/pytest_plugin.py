"""Pytest fixtures that hand out `lazyarray.testing`. Registered as an entry point: installing lazyarray is enough.

Every pytest run on a machine with lazyarray imports this module, so it imports nothing of weight by itself.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def lazy_check() -> Any:
    """`lazyarray.testing.check`: run a function on NumPy arrays and on lazy arrays, and compare."""
    from lazyarray.testing import check

    return check


@pytest.fixture
def lazy_copies() -> Callable[..., Any]:
    """`lazyarray.testing.assert_copies`: a context manager that asserts the number and bytes of copies."""
    from lazyarray.testing import assert_copies

    return assert_copies


@pytest.fixture(params=["device", "host", "both", "aliased"])
def lazy_array(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """A function that makes a lazy array of anything NumPy takes. The test runs once for each state of such an array:
    current on the device, on the host, on both, and with an alias in foreign hands.
    """
    import numpy as np

    from lazyarray.testing import Specimen

    def make(values: Any, dtype: Any = None) -> Any:
        source = np.array(values, dtype, order="C")
        aliased = request.param == "aliased"
        return Specimen(source, source.shape, state="both" if aliased else request.param, aliased=aliased).lazy()

    return make
