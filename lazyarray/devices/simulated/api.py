"""What CuPy offers, and what its parts of SciPy and cuCIM offer: names, parameters and defaults.

``tests/tools/cupy_facts.py`` and ``library_facts.py`` write ``cupy_api.json`` and ``library_api.json``. In both,
``FUNCTIONS`` maps a module to signatures, and each signature to the functions that have it; ``UFUNCS`` maps a module to
kinds of universal functions ("inputs outputs methods", the methods beside ``__call__`` and ``outer``). CuPy's table
also has the types and constants that are NumPy's own (``SHARED``), the methods of ``cupy.ndarray`` by signature
(``METHODS``), its other public names (``ATTRIBUTES``) and its double-underscore ones (``SPECIAL``); that of the
libraries has their ``CLASSES``.
"""
from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["Facts", "names_of", "table"]

Facts = str | tuple[int, int, str]
"""The parameters of a function, or inputs, outputs and methods of a universal function."""


@cache
def table(name: str) -> dict[str, Any]:
    """The table "cupy_api" or "library_api"."""
    return json.loads(Path(__file__).with_name(f"{name}.json").read_text(encoding="utf-8"))


@cache
def names_of(name: str, module: str) -> dict[str, Facts]:
    """What a table says of the functions of a module, by name."""
    facts, found = table(name), dict[str, Facts]()
    for signature, names in facts["FUNCTIONS"].get(module, {}).items():
        found |= dict.fromkeys(names.split(), signature)
    for kind, names in facts["UFUNCS"].get(module, {}).items():
        nin, nout, methods = kind.split(" ", 2)
        found |= dict.fromkeys(names.split(), (int(nin), int(nout), methods))
    return found
