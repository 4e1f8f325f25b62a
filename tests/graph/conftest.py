"""Each test of recorded work begins with calls whose results nobody has needed by themselves."""
from __future__ import annotations

import pytest

from lazyarray.graph.record import loops


@pytest.fixture(autouse=True)
def nothing_alone():
    for rule in loops.rules.values():
        if rule is not None:
            rule.alone = 0
