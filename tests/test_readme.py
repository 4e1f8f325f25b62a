"""What the README shows runs, and the commands that it names exist."""
from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.rst"


def blocks():
    """(line number, code) of each ``.. code-block:: python``."""
    pattern = r"^\.\. code-block:: python\n(?:[ ]+:.*\n)*\n((?:[ ]+.*\n|\n)+)"
    text = README.read_text()
    for match in re.finditer(pattern, text, re.MULTILINE):
        yield text[: match.start(1)].count("\n"), textwrap.dedent(match.group(1))


def test_there_is_an_example():
    assert list(blocks())


@pytest.mark.parametrize(("line", "code"), list(blocks()), ids=lambda value: value if isinstance(value, int) else "")
def test_a_block_runs(line, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile("\n" * line + code, str(README), "exec"), {"__name__": "__main__"})


def test_the_make_targets_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z-]+)", README.read_text()))
    assert {"demo", "test"} <= named <= targets
