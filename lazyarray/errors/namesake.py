"""PyPI's package ``lazyarray`` is another project, whose module has the name of this package: see `refuse`."""
from __future__ import annotations

import os
import sys
from collections.abc import Iterable

__all__ = ["refuse"]

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def refuse(folders: Iterable[str] | None = None) -> None:
    """Raise ImportError if the other project's module can be imported too: only one of the two could ever be found.

    Parameters
    ----------
    folders : iterable of str, optional
        Where to look; by default where Python does, ``sys.path``.

    Raises
    ------
    ImportError
        If a folder has a ``lazyarray.py`` that defines the other project's class `larray`.
    """
    for folder in sys.path if folders is None else folders:
        path = os.path.join(folder, "lazyarray.py")
        if os.path.isfile(path) and os.access(path, os.R_OK) and _defines_larray(path):
            raise ImportError(
                f"Two projects with the module name lazyarray are installed: lazy-ndarray ({HERE}), which keeps NumPy "
                f"arrays on the GPU, and the project lazyarray on PyPI ({path}), which has the class larray. Python "
                "finds only one of them. Uninstall the one that you do not use (pip uninstall lazyarray, or pip "
                "uninstall lazy-ndarray), or install them into two virtual environments.", name="lazyarray", path=path)


def _defines_larray(path: str) -> bool:
    with open(path, encoding="utf-8", errors="replace") as file:
        return "\nclass larray" in file.read()
