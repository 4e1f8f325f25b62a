"""Settings of every test run: which device, how many examples, and a clean slate for each test."""
from __future__ import annotations

import ast
import gc
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# Before lazyarray chooses a device: the tests mean the same on every machine unless a device is asked for.
os.environ.setdefault("LAZYARRAY_DEVICE", "simulated")
# And before JAX is imported, which would take three quarters of a GPU's memory: other processes run tests there, too.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

try:
    from hypothesis import HealthCheck, settings
except ImportError:  # the tests that need hypothesis skip themselves
    pass
else:
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    settings.register_profile("lazyarray", deadline=None, derandomize=True, suppress_health_check=slow)
    settings.register_profile("nightly", deadline=None, max_examples=2000, suppress_health_check=slow)
    settings.load_profile("nightly" if os.environ.get("LAZYARRAY_NIGHTLY") == "1" else "lazyarray")


#: The arrays that tests make lie on two devices in turn.
TWO_DEVICES = os.environ.get("LAZYARRAY_TEST_TWO_DEVICES") == "1"
if TWO_DEVICES:
    os.environ.setdefault("LAZYARRAY_SIMULATED_DEVICES", "2")

#: What takes longest, or waits until the compiler has all that the tests before it have asked for: it begins first.
_FIRST = {"test_speedups.py", "test_many_arrays.py", "test_machine.py"}


#: A test that names one of these depends on the Python version, or on what is installed beside one of them.
_ON_EACH = re.compile(r"version_info|torch|IPython|ipykernel|notebook|nbclient|sphinx|nvrtc|pyright"
                      r"|(importorskip|find_spec)\(.cupy")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", metavar="K/N", help="the K-th of N parts of the tests, for runs under N versions of "
                     "Python; each has all that depends on the version, or that --whole names")
    parser.addoption("--whole", action="append", default=[], metavar="PATH", help="tests that no other run has")


def _on_each(path: Path) -> tuple[str, ...]:
    """How the names of a file's tests begin that each version has; ("",) if what all of them share depends on it."""
    text = path.read_text()
    if not _ON_EACH.search(text):       # to parse all files takes seconds
        return ()
    found = []
    for node in ast.parse(text).body:
        if _ON_EACH.search(ast.unparse(node)):
            if not isinstance(node, ast.FunctionDef | ast.ClassDef) or not node.name.lower().startswith("test"):
                return ("",)
            found.append(node.name)
    return tuple(found)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name not in _FIRST)
    if share := config.getoption("--share"):
        part, parts = map(int, share.split("/"))
        whole = tuple(config.getoption("--whole"))
        on_each = {path: _on_each(path) for path in {item.path for item in items}}
        left = [item for item in items if not (item.nodeid.partition("::")[2].startswith(on_each[item.path])
                                               or item.nodeid.startswith(whole)
                                               or zlib.crc32(item.nodeid.encode()) % parts == part - 1)]
        config.hook.pytest_deselected(items=left)
        gone = {id(item) for item in left}
        items[:] = [item for item in items if id(item) not in gone]


def pytest_configure(config: pytest.Config) -> None:
    """Where lazyarray is not installed but only on the path (`make gpu-test`), its entry point is missing."""
    import lazyarray_pytest

    if not config.pluginmanager.is_registered(lazyarray_pytest):
        config.pluginmanager.register(lazyarray_pytest)

    config.addinivalue_line("markers", "one_device(reason): what the test says holds while one device alone is in use")
    config.addinivalue_line("markers", "together: what the test says holds of arrays that lie on one device")

    # Small arrays do not stay on the host, unless that is what is to be tested: not those of modules of tests, either.
    from lazyarray import _native

    if _native.recording is not None and os.environ.get("LAZYARRAY_TEST_SMALL") != "1":
        _native.recording.small(0)
    if TWO_DEVICES:
        import in_turn

        in_turn.install()


def pytest_runtest_setup(item: pytest.Item) -> None:
    mark = item.get_closest_marker("one_device")
    if mark is not None and TWO_DEVICES:
        pytest.skip(f"with one device in use: {mark.args[0]}")


@pytest.fixture(autouse=True, scope="session")
def _everything_is_fused() -> Iterator[None]:
    """Arrays of tests are small, and a chain comes once: what holds for others is to be seen on them all the same.
    """
    import lazyarray
    from lazyarray.graph.record import reductions

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reductions, "LOOKED_AT", 0)
        patch.setattr(type(lazyarray.device()), "fused_from", 1)
        yield


@pytest.fixture(autouse=True, scope="module")
def _what_is_there_stays() -> None:
    """A collection of garbage does not look at all that libraries have made: among them it takes half a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _clean_slate(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test depends on those before it. (One fixture: tests are many, and most of them short.)"""
    import lazyarray
    from lazyarray.events import trace
    from lazyarray.events.fallback_warning import reset_warnings
    from lazyarray.storage import upload_cache

    reset_warnings()            # they come once per process
    if hints := sys.modules.get("lazyarray.integrations.hints"):
        hints.forget()
    upload_cache.forget_all()   # copies of host arrays are kept: a test counts its own uploads
    if TWO_DEVICES:
        import in_turn

        with in_turn.test(request.node.nodeid, request.node.get_closest_marker("together") is not None):
            yield
    else:
        yield
        device = lazyarray.device()
        if device.count > 1 and device.several:     # those after it would take the way of several devices
            gc.collect()
            device.use_one()
    assert not trace.heard()    # whoever still listened would change the way that calls take


@pytest.fixture
def small_on_host() -> Iterator[Callable[[int], None]]:
    """Called with a number of bytes: arrays of up to so many stay on the host for the rest of the test, as they do
    outside of the tests.
    """
    from lazyarray import _native

    if _native.recording is None:
        yield lambda nbytes: None
        return
    before = _native.recording.small()
    yield _native.recording.small
    _native.recording.small(before)


@pytest.fixture
def as_for_users(small_on_host: Callable[[int], None]) -> None:
    """Small arrays stay on the host for the test, up to the bytes that they do for users."""
    from lazyarray.graph import cost_model

    small_on_host(cost_model.costs().small())


@pytest.fixture
def restored_defaults() -> Iterator[None]:
    """For tests that change process-wide settings: they are put back."""

    import lazyarray

    before = lazyarray.options.get()
    yield
    lazyarray.options.set(**before._asdict())
    lazyarray.no_transfers.set("allow")
