"""Extension modules for the tests: compiled once, and kept until their sources, tools or Python change."""
from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

_SOURCES = Path(__file__).parent / "sources"
_KEPT = Path(__file__).parents[2] / ".pytest_cache" / "compiled"
_FLAGS = ["-shared", "-fPIC", "-O0", "-w", "-DNPY_NO_DEPRECATED_API=NPY_2_0_API_VERSION"]


@functools.cache
def built(tool: str) -> ModuleType:
    """The module of ``sources/with_<tool>.*``; the test is skipped where nothing can be compiled."""
    pytest.importorskip(tool if tool != "cython" else "Cython")
    [source] = _SOURCES.glob(f"with_{tool}.*")
    compiler = shutil.which("cc" if tool == "cython" else "c++")
    if compiler is None or not Path(sysconfig.get_path("include"), "Python.h").exists():
        pytest.skip("no compiler, or no headers of Python")
    state = "\0".join([sys.version, np.__version__, importlib.metadata.version(tool), source.read_text(), *_FLAGS])
    name = hashlib.sha256(state.encode()).hexdigest()[:16]
    found = _KEPT / name / f"{source.stem}.so"
    if not found.exists():
        with tempfile.TemporaryDirectory() as folder:
            made = _MAKERS[tool](source, Path(folder), compiler)
            found.parent.mkdir(parents=True, exist_ok=True)
            half = found.with_suffix(f".{os.getpid()}")
            shutil.copy(made, half)
            half.replace(found)     # another process may be making the same
    spec = importlib.util.spec_from_file_location(source.stem, found)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _run(*command: object) -> None:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _compile(compiler: str, sources: list[Path], includes: list[str], made: Path) -> Path:
    standard = ["-std=c++17", "-fvisibility=hidden"] if sources[0].suffix == ".cpp" else []
    _run(compiler, *_FLAGS, *standard, *(f"-I{i}" for i in [sysconfig.get_path("include"), *includes]), *sources,
         "-o", made)
    return made


def _cython(source: Path, folder: Path, compiler: str) -> Path:
    _run(sys.executable, "-m", "cython", source, "-o", folder / "made.c")
    return _compile(compiler, [folder / "made.c"], [np.get_include()], folder / "made.so")


def _pybind11(source: Path, folder: Path, compiler: str) -> Path:
    import pybind11

    return _compile(compiler, [source], [pybind11.get_include()], folder / "made.so")


def _nanobind(source: Path, folder: Path, compiler: str) -> Path:
    import nanobind

    home = Path(nanobind.source_dir())
    includes = [nanobind.include_dir(), str(home.parent / "ext" / "robin_map" / "include")]
    return _compile(compiler, [source, home / "nb_combined.cpp"], includes, folder / "made.so")


_MAKERS = {"cython": _cython, "pybind11": _pybind11, "nanobind": _nanobind}
