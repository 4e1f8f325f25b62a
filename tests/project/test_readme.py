"""What the README shows runs, and the commands that it names exist."""
from __future__ import annotations

import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.rst"


def blocks():
    """(line number, code) of each ``.. code-block:: python``."""
    pattern = r"^\.\. code-block:: python\n(?:[ ]+:.*\n)*\n((?:[ ]+.*\n|\n)+)"
    text = README.read_text()
    for match in re.finditer(pattern, text, re.MULTILINE):
        yield text[: match.start(1)].count("\n"), textwrap.dedent(match.group(1))


def test_there_is_an_example():
    assert list(blocks())


def test_the_blocks_run_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for line, code in blocks():
        exec(compile("\n" * line + code, str(README), "exec"), names)


def test_the_make_targets_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z-]+)", README.read_text()))
    assert {"demo", "test"} <= named <= targets
