"""Run the benchmarks and print what each asks for and what it found: ``python -m benchmarks [--help]``."""
from __future__ import annotations

import argparse

import lazyarray

from . import calls, timing


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a figure misses its target")
    options = parser.parse_args()
    figures = calls.figures()
    width = max(len(figure["what"]) for figure in figures)
    for figure in figures:
        target = f"<= {figure['target']:g}" if figure["target"] is not None else ""
        mark = "" if figure["target"] is None else "ok" if figure["value"] <= figure["target"] else "MISSED"
        print(f"{figure['what']:{width}}  {figure['value']:9.3g} {figure['unit']:6} {target:9} {mark}")
    print(f"device: {lazyarray.device().name}; kept in {timing.keep('calls', figures)}")
    missed = any(f["target"] is not None and f["value"] > f["target"] for f in figures)
    return int(options.check and missed)


if __name__ == "__main__":
    raise SystemExit(main())
