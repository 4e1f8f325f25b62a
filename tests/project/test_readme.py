"""What the README shows runs, what it names exists, and it works on a package index as in the repository."""
from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

import pytest

from lazyarray.functions import tables

ROOT = Path(__file__).parents[2]
README = ROOT / "README.rst"
TEXT = README.read_text()
LINKS = re.findall(r"<([\w/.]+)>`_", TEXT)
PICTURES = re.findall(r"\.\. image:: (\S+)", TEXT)


def blocks():
    """(line number, code) of each ``.. code-block:: python``."""
    pattern = r"^\.\. code-block:: python\n(?:[ ]+:.*\n)*\n((?:[ ]+.*\n|\n)+)"
    for match in re.finditer(pattern, TEXT, re.MULTILINE):
        yield TEXT[: match.start(1)].count("\n"), textwrap.dedent(match.group(1))


def test_it_is_short():
    assert len(TEXT.splitlines()) <= 150


def test_the_example_says_what_is_copied(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for line, code in blocks():
        exec(compile("\n" * line + code, str(README), "exec"), names)
    assert isinstance(names["y"], names["np"].ndarray)
    assert len(names["t"].materialisations) == 1 and not names["t"].uploads


def test_the_make_targets_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z-]+)", TEXT))
    assert {"demo", "test"} <= named <= targets


def test_the_number_of_functions_is_about_right():
    on_device = sum(map(len, (tables.VIEWS, tables.LAZY, tables.ADAPTED, tables.COMPOSED, tables.SAME)))
    assert abs(on_device - int(re.search(r"about (\d+) functions", TEXT)[1])) <= 15


def test_what_is_linked_in_the_repository_exists():
    assert LINKS and PICTURES and [path for path in (*LINKS, *PICTURES) if not (ROOT / path).is_file()] == []


def test_what_an_index_shows_has_no_relative_link(description):
    assert re.findall(r"<(?!https://)[^>]*>`_|:: (?!https://)\S+\.svg", description) == []
    pages = re.findall(r"https://\S+/en/latest/([\w/]+)\.html>", description)
    assert len(pages) == len(LINKS) and all((ROOT / "docs" / f"{page}.rst").is_file() for page in pages)
    pictures = re.findall(r"https://\S+/en/latest/(_static/\S+)", description)
    assert [f"docs/{picture}" for picture in pictures] == PICTURES


@pytest.fixture
def description(monkeypatch):
    """What setup.py hands to a package index."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "distutils"]:
        monkeypatch.delitem(sys.modules, name)      # before Python 3.12 setuptools wants to be the first to bring it
    setuptools = pytest.importorskip("setuptools")
    given = {}
    monkeypatch.setattr(setuptools, "setup", lambda **keywords: given.update(keywords))
    monkeypatch.chdir(ROOT)
    exec(compile((ROOT / "setup.py").read_text(), "setup.py", "exec"), {"__name__": "__main__"})
    assert given["long_description_content_type"] == "text/x-rst"
    return given["long_description"]
