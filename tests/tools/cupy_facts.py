"""Write ``lazyarray/devices/simulated/cupy_api.json``: which names CuPy has, and what their parameters are called.

Run it with the CuPy release whose facts are wanted; no GPU is needed::

    python tests/tools/cupy_facts.py > lazyarray/devices/simulated/cupy_api.json

Only names, parameter names and defaults are taken; they say what a caller may write, not how it is done.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import textwrap
from typing import Any

MODULES = ("", "fft", "linalg", "random", "lib.stride_tricks")
UFUNC_METHODS = ("at", "reduce", "accumulate", "reduceat")


def signature_of(value: Any) -> str | None:
    """The parameters of a function as text, from its signature or, in compiled modules, its first doc line."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        found = re.match(r"[\w.]+\((.*?)\)(?: ->.*)?$", (value.__doc__ or "").split("\n", 1)[0])
        if not found:
            return None
        texts = [re.sub(r"^(?:[\w.]+ )+(?=\w)", "", text.strip()) for text in found[1].split(",")]
        return ", ".join(text for text in texts if text not in ("", "self"))
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in parameters if p.name != "self"]
    return str(inspect.Signature(plain))[1:-1] if all(is_plain(p.default) for p in plain) else ", ".join(
        str(p if is_plain(p.default) else p.replace(default=None)) for p in plain
    )


def is_plain(default: Any) -> bool:
    """Whether a default's text reads back as the same value."""
    return default is inspect.Parameter.empty or isinstance(default, (int, float, str, bool, tuple, type(None)))


def ufunc_methods(ufunc: Any) -> str:
    """Which methods a ufunc supports: those it lacks say so before they look at their argument."""
    found = []
    for method in UFUNC_METHODS:
        arguments = (None,) if method in ("reduce", "accumulate") else (None, None)
        try:
            getattr(ufunc, method)(*arguments)
        except NotImplementedError:
            continue
        except AttributeError:
            found.append(method)
    return " ".join(found)


CONVERSIONS = {"array", "around", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray"}


def converted(function: Any) -> list[str]:
    """The parameters of a function that may be host arrays, lists or numbers: it makes device arrays of them."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError):
        return []
    if not isinstance(tree, ast.FunctionDef):
        return []
    names = {argument.arg for argument in [*tree.args.posonlyargs, *tree.args.args]}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    return sorted({call.args[0].id for call in calls if isinstance(call.args[0], ast.Name)
                   and ast.unparse(call.func).rpartition(".")[2] in CONVERSIONS} & names)


def collect() -> dict[str, Any]:
    """All facts, as ``lazyarray/devices/simulated/api.py`` says what they are."""
    import cupy
    import numpy

    ufunc = type(cupy.add)
    functions: dict[str, dict[str, list[str]]] = {}
    ufuncs: dict[str, list[str]] = {}
    uploads: dict[str, list[str]] = {}
    for dotted in MODULES:
        module = cupy
        for part in filter(None, dotted.split(".")):
            module = getattr(module, part)
        for name in sorted(vars(module)):
            value = getattr(module, name)
            if name.startswith("_") or inspect.ismodule(value) or isinstance(value, type) or not callable(value):
                continue
            if isinstance(value, ufunc):
                ufuncs.setdefault(f"{value.nin} {value.nout} {ufunc_methods(value)}", []).append(name)
                continue
            signature = signature_of(value if not hasattr(value, "_signature") else value.__call__)
            if signature is not None:
                functions.setdefault(dotted, {}).setdefault(signature, []).append(name)
                if inspect.isfunction(value) and (taken := converted(value)):
                    uploads.setdefault(" ".join(taken), []).append(f"{dotted}.{name}".lstrip("."))
    shared = []
    for name in sorted(vars(cupy)):
        value = getattr(cupy, name)
        if not name.startswith("_") and value is getattr(numpy, name, module) and not inspect.ismodule(value):
            if isinstance(value, type) or not callable(value):
                shared.append(name)
    methods: dict[str, list[str]] = {}
    attributes = []
    for name in sorted(dir(cupy.ndarray)):
        if name.startswith("_"):
            continue
        value = getattr(cupy.ndarray, name)
        signature = signature_of(value) if callable(value) else None
        if signature is None:
            attributes.append(name)
        else:
            methods.setdefault(signature, []).append(name)
    special = [n for n in sorted(dir(cupy.ndarray)) if n.startswith("__") and n not in dir(object) and "pyx" not in n]
    return {
        "VERSION": cupy.__version__,
        "FUNCTIONS": {m: {s: " ".join(n) for s, n in sorted(t.items())} for m, t in functions.items()},
        "UFUNCS": {"": {key: " ".join(names) for key, names in sorted(ufuncs.items())}},
        "UPLOADS": {parameters: " ".join(names) for parameters, names in sorted(uploads.items())},
        "SHARED": " ".join(shared),
        "METHODS": {s: " ".join(names) for s, names in sorted(methods.items())},
        "ATTRIBUTES": " ".join(attributes),
        "SPECIAL": " ".join(special),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(collect(), indent=1) + "\n")
