"""The tutorial on testing a library, step by step: its files, its changes, its commands and what they print."""
from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "testing_tutorial.rst"
BLOCK = re.compile(r"^\.\. code-block:: (\w+)\n((?:[ ]+:.*\n)*)\n((?:[ ]+.*\n|\n)+)", re.MULTILINE)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

#: Start of a line of a file -> of the line that takes its place.
CHANGES = {"if type(x) is not np.ndarray:": "if not isinstance", "padded = np.pad(np.array": "padded = np.pad(x"}


def blocks():
    """(language, caption, text) of each block of the page."""
    for language, options, text in BLOCK.findall(PAGE.read_text()):
        caption = re.search(r":caption: (.+)", options)
        yield language, caption[1] if caption else "", textwrap.dedent(text).strip() + "\n"


def change(file, line):
    """Put a line in place of the one that it replaces, as a reader does."""
    before = next(old for old, new in CHANGES.items() if line.startswith(new))
    text, count = re.subn(rf"(?m)^( +){re.escape(before)}.*$", lambda found: found[1] + line.strip(), file.read_text())
    assert count == 1
    file.write_text(text)


def run(command, folder):
    """What a command prints; the plugin is named since it may not be installed."""
    words = command.split()
    assert words[:3] == ["python", "-m", "pytest"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    found = subprocess.run([sys.executable, "-m", "pytest", "-p", "lazyarray_pytest", "-p", "no:cacheprovider",
                            "-p", "no:randomly", *words[3:]], cwd=folder, capture_output=True, text=True, check=False,
                           env={**environment, "PYTHONPATH": str(ROOT), "COLUMNS": "80"})
    return found.stdout + found.stderr


def test_the_tutorial(tmp_path):
    pytest.importorskip("hypothesis")
    outputs = 0
    for language, caption, text in blocks():
        name, _, changed = caption.partition(", ")
        if changed:
            change(tmp_path / name, text)
        elif language == "python3":
            (tmp_path / name).write_text(text)
        elif text.startswith("$ "):
            command, expected = text[2:].split("\n", 1)
            printed = run(command, tmp_path)
            same = doctest.OutputChecker().check_output(expected, printed, FLAGS)
            assert same, f"{expected}\n--- printed:\n{printed}"
            outputs += 1
    assert outputs == 5
