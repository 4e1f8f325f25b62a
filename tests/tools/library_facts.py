"""Write ``lazyarray/devices/simulated/library_api.json``: the functions of CuPy's SciPy and of cuCIM's scikit-image.

Run it with the releases whose facts are wanted; no GPU is needed::

    python tests/tools/library_facts.py lazyarray/devices/simulated/library_api.json

Only names, parameter names and defaults are taken; they say what a caller may write, not how it is done.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any

from cupy_facts import signature_of, ufunc_methods

MODULES = {
    "cupyx.scipy": (
        "fft", "interpolate", "linalg", "ndimage", "signal", "signal.windows", "sparse", "sparse.csgraph",
        "sparse.linalg", "spatial", "spatial.distance", "special", "stats",
    ),
    "cucim.skimage": (
        "color", "exposure", "feature", "filters", "filters.rank", "measure", "metrics", "morphology", "registration",
        "restoration", "segmentation", "transform", "util",
    ),
}  # fmt: skip

def public_names(module: Any) -> list[str]:
    """Names that a module offers: those it says, else those without an underscore."""
    return sorted(name for name in getattr(module, "__all__", None) or dir(module) if not name.startswith("_"))


def collect() -> dict[str, Any]:
    """All facts, as ``lazyarray/devices/simulated/api.py`` says what they are."""
    import cucim
    import cupy

    functions: dict[str, dict[str, list[str]]] = {}
    ufuncs: dict[str, dict[str, list[str]]] = {}
    classes: dict[str, list[str]] = {}
    for package, parts in MODULES.items():
        for path in (f"{package}.{part}" for part in parts):
            module = importlib.import_module(path)
            for name in public_names(module):
                value = getattr(module, name)
                if isinstance(value, type):
                    if issubclass(value, (Exception, Warning)):
                        continue
                    classes.setdefault(path, []).append(name)
                elif isinstance(value, cupy.ufunc):
                    kind = f"{value.nin} {value.nout} {ufunc_methods(value)}"
                    ufuncs.setdefault(path, {}).setdefault(kind, []).append(name)
                elif callable(value) and str(getattr(value, "__module__", path)).startswith(("cupy", "cucim")):
                    signature = signature_of(value)
                    if signature is None:
                        raise SystemExit(f"{path}.{name} has no signature")
                    functions.setdefault(path, {}).setdefault(signature, []).append(name)
    return {
        "VERSIONS": {"cupy": cupy.__version__, "cucim": cucim.__version__},
        "FUNCTIONS": {m: {s: " ".join(n) for s, n in sorted(t.items())} for m, t in sorted(functions.items())},
        "UFUNCS": {m: {k: " ".join(n) for k, n in sorted(t.items())} for m, t in sorted(ufuncs.items())},
        "CLASSES": {m: " ".join(n) for m, n in sorted(classes.items())},
    }


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        facts = collect()
    # To a file: importing these libraries without a GPU prints.
    Path(sys.argv[1]).write_text(json.dumps(facts, indent=1) + "\n")
