"""The page of questions and messages has what users can get from lazyarray, and what it shows is what they get."""
from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "lazyarray"
PAGE = re.sub(r"[`*\s]+", " ", (ROOT / "docs" / "faq.rst").read_text())
#: Where messages are written that are not NumPy's own, word for word.
FILES = ["devices/__init__.py", "devices/cuda/diagnosis.py", "errors/namesake.py", "graph/cost_model.py",
         "settings/options.py", "storage/mirror/mirror.py", "wrapping/decorator.py", "integrations/lazy_module.py",
         "integrations/routing/enable.py", "integrations/hints.py"]
#: Advice, of which the page has its own words, and what is no trouble.
ELSEWHERE = ("To ", "Check ", "Unset ", "Update ", "Install ", "Set ", "LAZYARRAY_DEVICE=simulated asks")


def constant_parts(node):
    """The texts between the values of a message."""
    if isinstance(node, ast.JoinedStr):
        return [part for value in node.values for part in constant_parts(value)]
    if isinstance(node, ast.BinOp):
        return constant_parts(node.left) + constant_parts(node.right)
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def messages():
    """The phrases, by file and line, of what these files raise, warn of or return as a reason."""
    for name in FILES:
        for node in ast.walk(ast.parse((PACKAGE / name).read_text())):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                arguments = node.exc.args
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("warn_user", "missing", "Diagnosis"):
                arguments = node.args
            else:
                continue
            parts = [re.sub(r"[`*\s]+", " ", part) for argument in arguments for part in constant_parts(argument)
                     if not part.startswith(ELSEWHERE)]
            phrases = [" ".join(words[:6]) for part in parts for phrase in re.split(r"[.;:,()']", part)
                       if len(words := phrase.split()) > 2]
            if phrases:
                yield pytest.param(phrases, id=f"{name}:{node.lineno}")


@pytest.mark.parametrize("phrases", list(messages()))
def test_every_message_is_on_the_page(phrases):
    assert any(phrase in PAGE for phrase in phrases), f"docs/faq.rst has none of {phrases}"
