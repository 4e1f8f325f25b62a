"""What CuPy has of SciPy, and cuCIM of scikit-image: read from a table that ``tests/tools_library_facts.py`` wrote."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["CLASSES", "FUNCTIONS", "UFUNCS", "VERSIONS"]

_facts: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))

#: The releases whose facts these are.
VERSIONS: dict[str, str] = _facts["VERSIONS"]
#: Module -> signature -> the functions that have it.
FUNCTIONS: dict[str, dict[str, str]] = _facts["FUNCTIONS"]
#: Module -> (inputs, outputs, methods beside ``__call__`` and ``outer``) -> universal functions.
UFUNCS: dict[str, dict[tuple[int, int, str], str]] = {
    module: {(int(kind[0]), int(kind[1]), kind[2]): names
             for kind, names in ((text.split(" ", 2), names) for text, names in kinds.items())}
    for module, kinds in _facts["UFUNCS"].items()}
#: Module -> its classes.
CLASSES: dict[str, str] = _facts["CLASSES"]
