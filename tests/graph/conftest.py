"""What the tests of recorded work ask for by name."""
from __future__ import annotations

import pytest

from lazyarray.devices.program import Program


@pytest.fixture
def launched(monkeypatch):
    """The programs that were computed."""
    found, run = [], Program.run

    def noted(self, *args, **kwargs):
        found.append(self)
        return run(self, *args, **kwargs)

    monkeypatch.setattr(Program, "run", noted)
    return found
