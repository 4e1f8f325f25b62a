"""What the README shows runs, what it names exists, and it works on a package index as in the repository."""
from __future__ import annotations

import importlib.util
import json
import re
import subprocess
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
def description():
    """What setup.py hands to a package index."""
    if importlib.util.find_spec("setuptools") is None:
        pytest.skip("the extra `test` brings setuptools")
    code = """
import json, runpy, setuptools
given = {}
setuptools.setup = lambda **keywords: given.update(keywords)
runpy.run_path("setup.py", run_name="__main__")
print(json.dumps([given["long_description_content_type"], given["long_description"]]))
"""     # a process of its own: before Python 3.12 setuptools wants to be the first to bring distutils
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300)
    kind, text = json.loads(done.stdout)
    assert kind == "text/x-rst"
    return text
