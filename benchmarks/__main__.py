"""Run the benchmarks and print what each asks for and what it found: ``python -m benchmarks [--help]``."""
from __future__ import annotations

import argparse

import lazyarray

from . import calls, chains, copies, timing


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a figure misses its target")
    options = parser.parse_args()
    met = timing.show("calls", calls.figures())
    if lazyarray.device().name == "cuda":       # these say nothing of a simulated device
        met &= timing.show("copies", copies.figures())
        met &= timing.show("chains", chains.figures())
    return int(options.check and not met)


if __name__ == "__main__":
    raise SystemExit(main())
