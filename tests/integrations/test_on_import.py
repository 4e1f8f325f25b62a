"""What is done when a library is imported: once, after it is whole, and without anybody else noticing."""
from __future__ import annotations

import importlib
import importlib.util
import logging
import subprocess
import sys
import threading
import time
import zipfile

import pytest

from lazyarray.integrations import on_import as module
from lazyarray.integrations.on_import import on_import


@pytest.fixture
def library(tmp_path, monkeypatch):
    """Makes importable libraries from text; they are forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    made = []

    def make(name, text="value = 1\n"):
        path = tmp_path.joinpath(*name.split("."))
        path.mkdir(parents=True, exist_ok=True)
        (path / "__init__.py").write_text(text)
        made.append(name)
        importlib.invalidate_caches()
        return name

    yield make
    for name in [n for n in sys.modules if n.split(".")[0] in {m.split(".")[0] for m in made}]:
        del sys.modules[name]
    for name in made:
        module._waiting.pop(name, None)


def test_it_runs_once_after_the_import_with_the_whole_module(library):
    name = library("whole_lib", "import sys\nfirst = 1\nseen_early = list(getattr(sys, 'seen_calls', []))\nlast = 2\n")
    calls = []
    on_import(name, lambda found: calls.append((found.__name__, found.first, found.last)))
    assert calls == [] and name not in sys.modules
    importlib.import_module(name)
    importlib.import_module(name)
    assert calls == [(name, 1, 2)]


def test_it_runs_at_once_for_what_is_imported_already(library):
    found = importlib.import_module(library("early_lib"))
    calls = []
    on_import("early_lib", calls.append)
    assert calls == [found]


def test_nothing_is_imported_by_asking(library):
    library("never_lib")
    on_import("never_lib", lambda found: None)
    assert "never_lib" not in sys.modules


def test_in_the_order_of_asking(library):
    name, calls = library("ordered_lib"), []
    for number in range(3):
        on_import(name, lambda found, number=number: calls.append(number))
    importlib.import_module(name)
    assert calls == [0, 1, 2]


def test_a_submodule_can_be_waited_for(library):
    library("parent_lib")
    name, calls = library("parent_lib.part"), []
    on_import(name, calls.append)
    parent = importlib.import_module("parent_lib")
    assert calls == []
    assert calls == [importlib.import_module(name)] == [parent.part]


def test_asked_for_in_the_middle_of_its_import_it_waits_for_the_end(library):
    name = library("middle_lib", (
        "from lazyarray.integrations.on_import import on_import\n"
        "calls = []\n"
        "on_import('middle_lib', lambda found: calls.append(found.last))\n"
        "assert calls == []\n"
        "last = 2\n"))
    assert importlib.import_module(name).calls == [2]


def test_a_module_that_replaces_itself(library):
    name = library("replaced_lib", "import sys, types\nnew = types.ModuleType(__name__)\nsys.modules[__name__] = new\n")
    calls = []
    on_import(name, calls.append)
    assert calls == [importlib.import_module(name)] or importlib.import_module("colorsys") and calls


def test_an_import_that_fails_can_be_tried_again(library, tmp_path):
    name, calls = library("failing_lib", "raise ImportError('no driver')\n"), []
    on_import(name, calls.append)
    with pytest.raises(ImportError, match="no driver"):
        importlib.import_module(name)
    assert calls == []
    (tmp_path / name / "__init__.py").write_text("mended = True\n")
    importlib.invalidate_caches()
    assert calls == [importlib.import_module(name)]


def test_a_missing_library_is_missing_as_ever():
    on_import("no_such_library_anywhere", lambda found: None)
    try:
        assert importlib.util.find_spec("no_such_library_anywhere") is None
        with pytest.raises(ModuleNotFoundError, match="No module named 'no_such_library_anywhere'") as error:
            importlib.import_module("no_such_library_anywhere")
        assert error.value.name == "no_such_library_anywhere"
    finally:
        module._waiting.pop("no_such_library_anywhere")


def test_who_only_looks_for_it_imports_nothing(library):
    name, calls = library("looked_lib"), []
    on_import(name, calls.append)
    spec = importlib.util.find_spec(name)
    assert isinstance(spec, importlib.machinery.ModuleSpec) and spec.origin.endswith("__init__.py")
    assert type(spec.loader) is importlib.machinery.SourceFileLoader
    assert calls == [] and name not in sys.modules
    importlib.import_module(name)
    assert len(calls) == 1


def test_the_module_is_as_importlib_makes_it(library):
    name = library("plain_lib")
    plain = importlib.import_module(name)
    del sys.modules[name]
    on_import(name, lambda found: None)
    hooked = importlib.import_module(name)
    assert type(hooked.__spec__) is type(plain.__spec__)
    assert hooked.__spec__ == plain.__spec__
    assert vars(hooked.__spec__).keys() == vars(plain.__spec__).keys()
    assert type(hooked.__loader__) is type(plain.__loader__)
    assert vars(hooked.__loader__) == vars(plain.__loader__)
    assert vars(hooked).keys() == vars(plain).keys()


def test_reloading_runs_nothing_again(library):
    name, calls = library("reloaded_lib"), []
    on_import(name, calls.append)
    found = importlib.import_module(name)
    assert importlib.reload(found) is found
    assert len(calls) == 1


def test_other_finders_are_asked_as_often_as_without(library):
    class Watching:
        def __init__(self):
            self.asked = []

        def find_spec(self, name, path=None, target=None):
            self.asked.append(name)

    name = library("watched_lib")
    on_import(name, lambda found: None)
    before, behind = Watching(), Watching()
    sys.meta_path.insert(0, before)
    sys.meta_path.insert(sys.meta_path.index(module._finder) + 1, behind)
    try:
        importlib.import_module(name)
    finally:
        sys.meta_path.remove(before)
        sys.meta_path.remove(behind)
    assert before.asked.count(name) == behind.asked.count(name) == 1


def test_a_finder_that_came_in_front_of_ours_hides_nothing_for_long(library):
    """Import hooks of others (type checkers, profilers) insert themselves first and answer without asking on."""
    name, calls = library("hidden_lib"), []
    on_import(name, calls.append)

    class First:
        @staticmethod
        def find_spec(wanted, path=None, target=None):
            return importlib.machinery.PathFinder.find_spec(wanted, path, target) if wanted == name else None

    sys.meta_path.insert(0, First)
    try:
        found = importlib.import_module(name)
        importlib.import_module(library("any_other_lib"))
    finally:
        sys.meta_path.remove(First)
    assert calls == [found]


def test_from_a_zip_file(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "lib.zip", "w") as file:
        file.writestr("zipped_lib.py", "value = 1\n")
        file.writestr("zipped_other.py", "value = 2\n")
    monkeypatch.syspath_prepend(tmp_path / "lib.zip")
    calls = []
    on_import("zipped_lib", calls.append)
    on_import("zipped_other", calls.append)
    try:
        assert [importlib.import_module("zipped_lib"), importlib.import_module("zipped_other")] == calls
    finally:
        sys.modules.pop("zipped_lib", None), sys.modules.pop("zipped_other", None)


def test_a_lazily_loaded_module_stays_so(library):
    name, calls = library("lazy_lib"), []
    on_import(name, lambda found: calls.append(found.value))
    spec = importlib.util.find_spec(name)
    spec.loader = importlib.util.LazyLoader(spec.loader)
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found
    spec.loader.exec_module(found)
    importlib.import_module(library("meanwhile_lib"))
    assert calls == []
    assert found.value == 1
    importlib.import_module(library("thereafter_lib"))
    assert calls == [1]


def test_threads_that_import_it_together_find_it_done(library):
    name = library("threaded_lib", "import time\ntime.sleep(.05)\n")
    calls, seen = [], []

    def slowly(found):
        time.sleep(.05)
        calls.append(found)

    on_import(name, slowly)
    gate = threading.Barrier(4)

    def use():
        gate.wait()
        importlib.import_module(name)
        seen.append(len(calls))

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1 and seen == [1] * 4


def test_what_fails_is_told_and_breaks_no_import(library, caplog):
    name, calls = library("breaking_lib"), []

    def fails(found):
        raise AttributeError("this version has no such hook")

    on_import(name, fails)
    on_import(name, calls.append)
    with caplog.at_level(logging.WARNING, "lazyarray"):
        found = importlib.import_module(name)
    assert calls == [found]
    [record] = caplog.records
    assert name in record.message and "this version has no such hook" in record.message
    assert "numpy.asarray" in record.message


# The table of ours.

def test_every_registration_exists():
    for library, path in module.REGISTRATIONS.items():
        assert callable(importlib.import_module(path).register), library


def test_importing_lazyarray_imports_no_library_and_waits_for_each():
    code = ("import sys, lazyarray; from lazyarray.integrations import on_import as o; "
            "assert not [n for n in o.REGISTRATIONS if n in sys.modules]; "
            "assert not [p for p in o.REGISTRATIONS.values() if p in sys.modules]; "
            "assert set(o._waiting) == set(o.REGISTRATIONS), o._waiting")
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("first", ["lazyarray", "libraries"])
def test_the_libraries_import_without_a_complaint(first):
    there = [name for name in module.REGISTRATIONS if importlib.util.find_spec(name.partition(".")[0]) is not None]
    names = ["lazyarray", *there] if first == "lazyarray" else [*there, "lazyarray"]
    code = "".join(f"import {name}; " for name in names) + (
        "from lazyarray.integrations import on_import as o; import sys; "
        f"assert not set({there}) & set(o._waiting), o._waiting; "
        f"assert all(o.REGISTRATIONS[name] in sys.modules for name in {there})")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240)
    assert (done.returncode, "could not make itself known" in done.stderr) == (0, False), done.stderr
