"""Run the benchmarks, print what each asks for and what it found, and keep it: ``python -m benchmarks [--help]``."""
from __future__ import annotations

import argparse
from collections.abc import Callable

import lazyarray

from . import calls, chains, copies, many, memory, programs, sharing, small, table1, timing

KINDS: dict[str, Callable[[], list[dict]]] = {
    "calls": calls.figures, "copies": copies.figures, "chains": chains.figures, "table1": table1.figures,
    "programs": programs.figures, "memory": memory.figures, "many": many.figures,
    "sharing": sharing.figures, "small": small.figures,
}

#: The others say nothing of a simulated device: there they run when they are named, and are not kept.
SIMULATED = ("calls", "small")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", choices=[*KINDS], action="append", metavar="NAME",
                        help="may be given several times; one of " + ", ".join(KINDS))
    parser.add_argument("--check", action="store_true", help="exit with 1 if a figure misses its target")
    options = parser.parse_args()
    on_gpu = lazyarray.device().name == "cuda"
    met = True
    for name in options.only or (KINDS if on_gpu else SIMULATED):
        print(f"\n{name}\n{'-' * len(name)}")
        # What is asked of the device is asked of it for small arrays, too.
        with lazyarray.options(small_on_host=name == "small"):
            found = KINDS[name]()
        met &= timing.show(name, found, kept=on_gpu or name in SIMULATED)
    return int(options.check and not met)


if __name__ == "__main__":
    raise SystemExit(main())
