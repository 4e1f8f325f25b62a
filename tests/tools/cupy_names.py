"""Write ``lazyarray/testing/cupy_modules/names.json``: the public modules of CuPy, and their public names.

Run it with the CuPy release whose names are wanted; no GPU is needed::

    python tests/tools/cupy_names.py > lazyarray/testing/cupy_modules/names.json

Modules that do not import without CUDA's libraries are read as text. Only names are taken, and the values of integer
constants of ``cupy.cuda.runtime``.
"""
from __future__ import annotations

import ast
import importlib
import json
import multiprocessing
import sys
import types
import warnings
from pathlib import Path
from typing import Any

IGNORED = {"annotations", "contextlib", "numpy", "os", "sys", "warnings", "threading", "atexit", "functools", "cupy",
           "cupyx", "ctypes", "gc", "weakref", "collections", "runtime_module", "scipy", "math", "re", "shutil"}
"""What modules import for themselves."""

ASKED_FOR = {"cupy.cuda": "cublas cufft curand cusolver cusparse jitify", "cupy.random": "Generator",
             "cupyx": "cusparse lapack",
             "cupyx.scipy": "fft fftpack interpolate linalg ndimage signal sparse spatial special stats"}
"""What modules import when it is asked for."""


def text_names(path: str) -> list[str]:
    """The names that a module's top level binds, in branches too."""
    names: list[str] = []

    def collect_from(body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names.extend((alias.asname or alias.name).split(".")[0] for alias in node.names if alias.name != "*")
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names.append(node.name)
            elif isinstance(node, ast.Assign):
                names.extend(target.id for target in node.targets if isinstance(target, ast.Name))
            for part in ("body", "orelse"):
                if isinstance(node, (ast.If, ast.Try)):
                    collect_from(getattr(node, part))

    with open(path, encoding="utf-8") as file:
        collect_from(ast.parse(file.read()).body)
    return names


def public(names: list[str], module: Any) -> str:
    """Those that a user may write, without modules of other packages."""
    found = {name for name in names if not name.startswith("_") and name not in IGNORED}
    found.update(ASKED_FOR.get(getattr(module, "__name__", ""), "").split())
    for name in list(found):
        value = vars(module).get(name) if module else None
        if isinstance(value, types.ModuleType) and not value.__name__.startswith(("cupy", "cupyx")):
            found.discard(name)
    return " ".join(sorted(found))


def read(name: str, file: str) -> tuple[str, dict[str, int]]:
    """The names of a module that was imported alone, and its integer constants."""
    warnings.simplefilter("ignore")
    try:
        module = importlib.import_module(name)
    except ImportError:
        return public(text_names(file) if file.endswith(".py") else [], None), {}
    return public([*vars(module), *getattr(module, "__all__", [])], module), {
        key: int(value) for key, value in vars(module).items() if isinstance(value, int) and not key.startswith("_")}


def collect() -> dict[str, Any]:
    """All names. Each module is read in a process of its own, where only it has imported others."""
    warnings.simplefilter("ignore")
    import cupy
    import cupyx

    found = {}
    for package in (cupy, cupyx):
        root = Path(package.__path__[0])
        for path in root.rglob("*"):
            parts = path.relative_to(root.parent).parts
            if path.suffix in (".py", ".so", ".pyd"):
                name = ".".join((*parts[:-1], path.name.partition(".")[0])).removesuffix(".__init__")
                if not any(part.startswith("_") for part in name.split(".")):
                    found[name] = str(path)
    context = multiprocessing.get_context("spawn")
    with context.Pool(2, maxtasksperchild=1) as pool:
        facts = dict(zip(found, pool.starmap(read, found.items(), chunksize=1)))
    return {"VERSION": cupy.__version__, "MODULES": {name: text for name, (text, _) in sorted(facts.items())},
            "RUNTIME": " ".join(f"{key}={value}" for key, value in sorted(facts["cupy.cuda.runtime"][1].items()))}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(collect(), indent=1) + "\n")
