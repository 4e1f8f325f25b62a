"""The examples in the docstrings are true, and what is public has one."""
from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil

import pytest

import lazyarray

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
# Importing these runs a program, or needs what may be missing
LEFT_OUT = {"lazyarray.__main__", "lazyarray.devices.cuda.device"}
MODULES = ["lazyarray"] + [
    module.name
    for module in pkgutil.walk_packages(lazyarray.__path__, "lazyarray.")
    if module.name not in LEFT_OUT and not module.name.startswith("lazyarray.integrations.")
]


@pytest.mark.together
@pytest.mark.usefixtures("as_for_users")
@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    if name.startswith("lazyarray.testing"):
        pytest.importorskip("hypothesis")
    module = importlib.import_module(name)
    # An example is the user's code, also where lazyarray asks whose line it was.
    tests = doctest.DocTestFinder(exclude_empty=True).find(module, extraglobs={"__name__": "__main__"})
    runner, report = doctest.DocTestRunner(optionflags=FLAGS), []
    for test in tests:
        runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)


def test_what_is_public_has_an_example():
    examples = doctest.DocTestParser().get_examples
    things = {name: getattr(lazyarray, name) for name in lazyarray.__all__}
    calls = {name: thing for name, thing in things.items() if inspect.isroutine(thing) or inspect.isclass(thing)}
    without = [name for name, thing in calls.items() if not examples(inspect.getdoc(thing) or "")]
    exceptions = [name for name in without if inspect.isclass(calls[name]) and issubclass(calls[name], Exception)]
    assert sorted(set(without) - set(exceptions)) == []
