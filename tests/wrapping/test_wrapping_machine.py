"""GPU functions beside NumPy's own run of them: whatever is passed, kept, aliased and written, values agree.

Each step does the same with ndarrays and with what stands for them: lazy arrays, views, aliases on the host, ordinary
NumPy arrays and views of them.
"""
from __future__ import annotations

import os

import numpy as np
import pytest

pytest.importorskip("hypothesis")
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import lazyarray

SIZE = 12
NIGHTLY = os.environ.get("LAZYARRAY_NIGHTLY") == "1"


def halves(x, y):
    return x[:len(x) // 2], y[len(y) // 2:]


def added(x, y):
    return x + y


def shifted(x, y):
    x[1:] = x[:-1] + 1
    return x, y[::-1]


def swapped(x, y):
    kept = x + 0
    x[...] = y
    y[...] = kept
    return {"x": x[2:], "fresh": [kept, kept[3:]]}


def entangled(x, y):
    x += 10
    y *= 2
    x -= y
    return x


def into(x, y):
    y += x
    return y


def reshaped(x, y):
    return x[None].T[:, 0], y.reshape(-1, 2)[:, 0]


def total(x, y):
    return (x * y).sum()


def fails_late(x, y):
    if isinstance(x, lazyarray.device().array_type):
        y[1:] = 99
        raise RuntimeError("on the device only")
    y += x
    return y[1:]


#: Function -> what it modifies.
FUNCTIONS = {halves: (), added: (), shifted: ("x",), swapped: ("x", "y"), entangled: ("x", "y"), into: ("y",),
             reshaped: (), total: (), fails_late: ("y",)}
VIEWS = [slice(None), slice(None, None, -1), slice(6, None), slice(None, 6), slice(1, None, 2), slice(None, None, 3)]


def arrays_in(obj):
    if isinstance(obj, dict):
        obj = list(obj.values())
    if isinstance(obj, (list, tuple)):
        return [array for item in obj for array in arrays_in(item)]
    return [obj]


class Machine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.pairs = []         # (NumPy's, ours) of the same

    def add(self, model, ours):
        self.pairs.append((model, ours))
        if len(self.pairs) > 12:
            del self.pairs[3:6]

    @initialize()
    def begin(self):
        for i, make in enumerate([lazyarray.asarray, np.array, lazyarray.asarray]):
            values = np.arange(i, i + SIZE, dtype=float)
            self.add(values, make(values.copy()))

    def pick(self, data, size=None):
        known = [pair for pair in self.pairs if np.ndim(pair[0]) == 1 and (size is None or pair[0].size == size)]
        return data.draw(st.sampled_from(known)) if known else None

    @rule(data=st.data(), view=st.sampled_from(VIEWS))
    def take_a_view(self, data, view):
        model, ours = self.pick(data)
        if model.size >= 6:
            self.add(model[view], ours[view])

    @rule(data=st.data())
    def hand_out_an_alias(self, data):
        model, ours = self.pick(data)
        self.add(model[:], np.asarray(ours))

    @rule(data=st.data(), value=st.integers(-9, 9), at=st.integers(0, 2), plus=st.booleans())
    def write(self, data, value, at, plus):
        model, ours = self.pick(data)
        if plus:
            model += value
            ours += value
        elif model.size > at:
            model[at] = ours[at] = value

    @rule(data=st.data(), function=st.sampled_from(list(FUNCTIONS)), how=st.sampled_from(["default", "named"]),
          in_list=st.booleans())
    def call(self, data, function, how, in_list):
        self.run(self.pick(data, SIZE), self.pick(data, SIZE), function, how, in_list)

    @rule(data=st.data(), function=st.sampled_from(list(FUNCTIONS)), how=st.sampled_from(["default", "named"]),
          in_list=st.booleans(), views=st.sampled_from([
              (slice(6), slice(3, 9)), (slice(None), slice(None, None, -1)), (slice(6, None), slice(6)),
              (slice(None, None, 2), slice(1, None, 2)), (slice(2, 8), slice(2, 8))]))
    def call_with_relatives(self, data, function, how, in_list, views):
        pair = self.pick(data, SIZE)
        if pair is not None:
            self.run(*((pair[0][view], pair[1][view]) for view in views), function, how, in_list)

    def run(self, one, two, function, how, in_list):
        if one is None or two is None:
            return
        options = {} if how == "default" else {"writes": FUNCTIONS[function]}
        options["host"] = function if function is fails_late else None
        expected = function(one[0], two[0])
        if in_list and how == "default":
            wrapped = lazyarray.lazy(lambda both: function(*both), **options | {
                "host": options["host"] and (lambda both: function(*both))})
            found = wrapped([one[1], two[1]])
        else:
            found = lazyarray.lazy(function, **options)(one[1], two[1])
        for i, (model, ours) in enumerate(zip(arrays_in(expected), arrays_in(found), strict=True)):
            if np.size(model) > 2 and i == 0:
                model[2] = ours[2] = -5         # seen in whatever shares it
            assert np.shape(model) == np.shape(ours)
            if model is one[0] or model is two[0]:
                assert ours is one[1] or ours is two[1]
            elif np.ndim(model):
                assert lazyarray.is_lazy(ours)
                self.add(model, ours)
            else:
                assert model == ours

    @rule(data=st.data())
    def let_go(self, data):
        if len(self.pairs) > 3:
            del self.pairs[data.draw(st.integers(3, len(self.pairs) - 1))]

    @rule(data=st.data())
    def look_on_the_device(self, data):
        model, ours = self.pick(data)
        assert (np.add(ours, 1)).tolist() == (model + 1).tolist()

    @invariant()
    def ordinary_arrays_agree(self):
        """Nobody is told when an ndarray is looked at, so it has to be right at any time."""
        for model, ours in self.pairs:
            if not lazyarray.is_lazy(ours):
                assert ours.tolist() == model.tolist()

    def teardown(self):
        for model, ours in self.pairs:
            assert ours.tolist() == model.tolist()


@pytest.mark.filterwarnings("ignore::lazyarray.HostFallbackWarning", "ignore:overflow:RuntimeWarning",
                            "ignore:invalid value:RuntimeWarning")
@pytest.mark.together       # what a function may write to stays where it is
class TestMachine(Machine.TestCase):
    settings = settings(max_examples=2000 if NIGHTLY else 300, stateful_step_count=25, deadline=None)
