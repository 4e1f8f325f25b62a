"""Make every call of the table that this machine has the library for, and print the table.

    python -m tests.consumers [--write]

With --write the table goes into docs/libraries.rst, provided that every call did what its record says.
"""
from __future__ import annotations

import argparse
import importlib.metadata
import os
import sys
import textwrap

import pytest

os.environ.setdefault("LAZYARRAY_DEVICE", "simulated")


def main() -> int:
    """Run, print, write."""
    parser = argparse.ArgumentParser(prog="python -m tests.consumers", description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="put the table into docs/libraries.rst")
    write = parser.parse_args().write

    from . import table
    from .records import all_records

    records, failed, skipped = all_records(), [], set()
    for number, record in enumerate(records):
        if sys.stderr.isatty():
            print(f"\r{number + 1}/{len(records)} {record.library:20}", end="", file=sys.stderr)
        try:
            record.check()
        except pytest.skip.Exception as reason:
            skipped.add(str(reason))
        except Exception as error:  # noqa: BLE001  whatever went wrong is said below
            failed.append(f"{record.library} {record.call}: {type(error).__name__}: {error}"[:600])
    print(table.table(records))
    for line in (*failed, *sorted(skipped)):
        print(line, file=sys.stderr)
    if failed:
        return 1
    if write:
        table.write(records, _versions(records))
    return 0


def _versions(records: list) -> str:
    packages = importlib.metadata.packages_distributions()
    names = dict.fromkeys(name for record in records for name in record.needs)
    found = dict.fromkeys(packages[top][0] for top in (name.partition(".")[0] for name in names) if top in packages)
    text = f"Python {sys.version_info.major}.{sys.version_info.minor}, " + ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in ("numpy", *(n for n in found if n != "numpy")))
    return textwrap.fill(text, 105, break_on_hyphens=False, break_long_words=False)


if __name__ == "__main__":
    sys.exit(main())
