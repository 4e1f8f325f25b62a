"""Host memory: aliases, their owners, and which bytes they wrote."""
from __future__ import annotations

import numpy as np
import pytest

from lazyarray.mirror import Mirror
from lazyarray.ranges import Ranges


@pytest.mark.parametrize("tracking", ["auto", "none"])
@pytest.mark.parametrize("nbytes", [8192, 1 << 17])
def test_writes_through_an_alias_are_named(tracking, nbytes):
    mirror = Mirror.reserve(nbytes, tracking)
    with mirror.filling(Ranges.span(0, nbytes)) as memory:
        memory[:] = 1
    assert mirror.full and not mirror.lent
    alias = mirror.lend((nbytes // 8,), np.dtype("f8"), (8,), 0)
    alias[10] = 3
    written = mirror.collect()
    assert written.covers(Ranges.span(86, 88))
    assert mirror.lent
    del alias
    mirror.collect()
    assert not mirror.lent
