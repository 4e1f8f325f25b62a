"""The recipes themselves are sound: run on ndarrays twice, each gives the same answer twice."""

from __future__ import annotations

import itertools

import parity
import pytest
import recipes
import recipes_members
import recipes_ufuncs
from parity_compare import difference

CASES = {
    "functions": lambda: [recipes.cases_of(func) for func in recipes.RECIPES],
    "ufuncs": lambda: [cases for _, cases in recipes_ufuncs.groups()],
    "members": lambda: [recipes_members.cases_of(name) for name in recipes_members.MEMBERS],
}


@pytest.mark.parametrize("table", sorted(CASES))
def test_numpy_agrees_with_itself(table):
    library = parity.Library.numpy()
    found = list(itertools.chain.from_iterable(parity.failures(cases, library) for cases in CASES[table]()))
    assert not found, parity.report(found)


@pytest.mark.parametrize("table", sorted(CASES))
def test_most_recipes_are_answered(table):
    """A recipe that only ever raises tests little: on float64 most have a result."""
    cases = list(itertools.chain.from_iterable(CASES[table]()))
    numeric = [case for case in cases if not case.label.startswith(("np._", "np.is", "rf.", "np.strings", "np.char"))]
    raised = [case.label for case in numeric if parity.raises(case, "f8", "C")]
    assert len(raised) < 0.4 * len(numeric), raised
    undefined = [case.label for case in cases if parity.raises(case, "f8", "C") in (NameError, SyntaxError, KeyError)]
    assert not undefined


def test_the_selection_meets_every_dtype_and_layout():
    chosen = set(itertools.chain.from_iterable(parity.selection(number, 12) for number in range(12)))
    assert {code for code, _ in chosen} == {*parity.DEVICE_DTYPES, *parity.HOST_DTYPES}
    assert {layout for _, layout in chosen} == {*parity.LAYOUTS}


def test_a_difference_is_seen():
    """The oracle itself: each kind of wrong answer is told."""
    import numpy as np

    one = np.arange(3.0)
    assert difference(one, one.copy()) is None
    assert difference(one, one.astype("f4")).startswith("dtype")
    assert difference(one, one[:2]).startswith("shape")
    assert difference(one, one + 1e-12, "elementwise").startswith("values")
    assert difference(one, one + 1e-15, "reduction") is None
    assert difference(one[0], one[0].item()).startswith("type")
    assert difference(one[0], one[:1].reshape(())).startswith("type")
    assert difference((one,), [one]).startswith("type")
    assert difference(np.array([0.0]), np.array([-0.0])).startswith("values")
    frozen = one.copy()
    frozen.flags.writeable = False
    assert difference(one, frozen).startswith("writeable")
