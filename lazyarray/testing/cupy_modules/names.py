"""The public names of CuPy, by module, as ``names.json`` has them."""
from __future__ import annotations

import json
from functools import cache
from pathlib import Path


@cache
def _facts() -> dict[str, dict[str, str] | str]:
    return json.loads(Path(__file__).with_name("names.json").read_text(encoding="utf-8"))


@cache
def modules() -> dict[str, frozenset[str]]:
    """Dotted name of each public module of CuPy -> its names."""
    listed = _facts()["MODULES"]
    assert isinstance(listed, dict)
    return {module: frozenset(names.split()) for module, names in listed.items()}


@cache
def runtime_constants() -> dict[str, int]:
    """The constants of ``cupy.cuda.runtime``."""
    pairs = (text.split("=") for text in str(_facts()["RUNTIME"]).split())
    return {name: int(value) for name, value in pairs}


def version() -> str:
    """The version of CuPy whose names these are."""
    return str(_facts()["VERSION"])
