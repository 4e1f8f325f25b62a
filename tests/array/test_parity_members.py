"""Every member of numpy.ndarray behaves on lazy arrays as it does on ndarrays."""

from __future__ import annotations

import os

import parity
import pytest
import recipes_members

NIGHTLY = os.environ.get("LAZYARRAY_NIGHTLY") == "1"


@pytest.mark.parametrize("name", sorted(recipes_members.MEMBERS))
def test_member_behaves_as_numpys(name):
    found = parity.failures(
        recipes_members.cases_of(name),
        parity.Library.lazyarray(),
        nightly=NIGHTLY,
        on_device=name not in recipes_members.HOST_MEMBERS,
    )
    assert not found, parity.report(found)
