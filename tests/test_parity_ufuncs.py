"""Every ufunc and every ufunc method gives NumPy's answer on lazy arrays, with no more copies than needed."""

from __future__ import annotations

import os

import parity
import pytest
import recipes_ufuncs

from lazyarray import functions

NIGHTLY = os.environ.get("LAZYARRAY_NIGHTLY") == "1"
GROUPS = dict(recipes_ufuncs.groups())


@pytest.mark.parametrize("name", sorted(GROUPS))
def test_ufunc_gives_numpys_answer(name):
    ufunc_name, _, method = name.partition(".")
    ufunc = recipes_ufuncs.UFUNCS[ufunc_name]
    found = parity.failures(
        GROUPS[name],
        parity.Library.lazyarray(),
        nightly=NIGHTLY,
        on_device=functions.ufunc_on_device(ufunc, method or "__call__"),
    )
    assert not found, parity.report(found)
