"""What the newest results say: the tables of the page on performance, and the plots.

``python -m benchmarks.report`` or ``make report`` makes them. The tables stand between two comments of
``docs/performance.rst``; the plots, which need matplotlib, in ``docs/_static``.
"""
from __future__ import annotations

import argparse
import collections
import json
import statistics
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import sweep, timing

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "performance.rst"
STATIC = ROOT / "docs" / "_static"
BEGIN = ".. the next lines are made by `python -m benchmarks.report`\n"
END = ".. the end of what the report makes\n"

#: Kind of results -> the figures that the first table shows, and what it calls them.
HEADLINES: dict[str, dict[str, str]] = {
    "copies": {
        "np.asarray(x), 1024 MiB, of the page-locked rate":
            "``np.asarray(x)``, 1 GiB: fraction of the page-locked rate",
        "np.asarray(x), 1024 MiB, of cupy.asnumpy": "``np.asarray(x)``, 1 GiB: speedup over ``cupy.asnumpy``",
        "asarray(ndarray), 1024 MiB, of cupy.asarray":
            "upload of an ndarray, 1 GiB: speedup over ``cupy.asarray``",
        "a written mirror to the device, 1024 MiB, of the page-locked rate":
            "upload of what was written on the host, 1 GiB: fraction of the page-locked rate",
        "both, with prefetch, of the longer of the two":
            "two copies and kernels at the same time: time relative to the longer of both",
        "np.asarray(x), 1 KiB, of the time of cupy.asnumpy":
            "``np.asarray(x)``, 1 KiB: time relative to ``cupy.asnumpy``",
    },
    "chains": {
        "x * 2, float32: CuPy / lazyarray": "``x * 2``, 1e8 float32: speedup over CuPy",
        "x * 2, float32: of the bandwidth of a copy": "``x * 2``, 1e8 float32: fraction of the bandwidth of a copy",
        "softplus, float32: CuPy / lazyarray": "softplus, 1e8 float32: speedup over CuPy",
        "softplus, float32: cupy.fuse / lazyarray": "softplus, 1e8 float32: speedup over ``cupy.fuse``",
        "softplus, float32: of the time of torch.compile": "softplus, 1e8 float32: time relative to ``torch.compile``",
        "((x - mu) ** 2).mean(), float32: CuPy / lazyarray":
            "``((x - mu) ** 2).mean()``, 1e8 float32: speedup over CuPy",
        "1,024 elements: one operator, lazyarray / CuPy": "one operator on 1,024 elements: time relative to CuPy",
        "1,024 elements: six operators, lazyarray / CuPy": "six operators on 1,024 elements: time relative to CuPy",
    },
    "programs": {
        "four filters: of device time, an upload and a page-locked copy":
            "four cuCIM filters: time relative to the device time, an upload and a page-locked copy",
        "four filters: of device time and two page-locked copies":
            "four cuCIM filters: time relative to the device time and two page-locked copies",
        "four filters: a round trip around each / lazyarray":
            "four cuCIM filters: speedup over a round trip for each",
        "convolve2d: moved by hand / lazyarray": "``convolve2d``, NumPy to NumPy: speedup over explicit copies",
        "kappa-sigma clipping: CuPy / lazyarray":
            "kappa-sigma clipping in plain NumPy: speedup over CuPy arrays",
        "Gaussian mixture, E-step: CuPy / lazyarray": "E-step of a Gaussian mixture: speedup over CuPy arrays",
        "heat equation: CuPy / lazyarray": "heat equation: speedup over CuPy arrays",
        "k-means: CuPy / lazyarray": "k-means: speedup over CuPy arrays",
    },
    "memory": {
        "a chain of 12 operators: peak, in outputs":
            "a chain of 12 operators: peak device memory, in multiples of its output",
    },
    "calls": {
        "recording an operator": "recording an operator, in microseconds",
        "np.sum of a small lazy array, in times of np.sum of a device array":
            "``np.sum`` of a small array: time relative to CuPy",
    },
    "many": {"host memory of one of many results": "host memory of one lazy array, in bytes"},
}

#: Kinds whose targets are counted.
COUNTED = (*HEADLINES, "table1", "sharing", "small", "spilling", "threads")


def newest(kind: str, device: str = "cuda") -> dict | None:
    """The newest results of a kind."""
    path = max(timing.RESULTS.glob(f"{kind}-{device}-*.json"), default=None)
    return None if path is None else json.loads(path.read_text())


def grid(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """The lines of a simple table in reStructuredText."""
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    rule = " ".join("=" * width for width in widths)
    lines = [" ".join(f"{cell:{width}}" for cell, width in zip(row, widths)).rstrip() for row in (head, *rows)]
    return [rule, lines[0], rule, *lines[1:], rule]


def verdict(figure: dict) -> str:
    """Whether a figure is what is asked."""
    return "**no**" if timing.missed(figure) else "yes" if timing.asked(figure) else ""


def shown(figure: dict) -> str:
    """The value with three digits, or as many as it takes to see that it is missed."""
    short = f"{figure['value']:.3g}"
    same = timing.missed(figure) == timing.missed(figure | {"value": float(short)})
    return short if same else f"{figure['value']:.4g}"


def headlines() -> list[tuple[str, ...]]:
    """The rows of the first table."""
    rows = []
    for kind, labels in HEADLINES.items():
        figures = {figure["what"]: figure for figure in (newest(kind) or {"figures": []})["figures"]}
        for what, label in labels.items():
            if what in figures:
                figure = figures[what]
                rows.append((label, timing.asked(figure), shown(figure), verdict(figure)))
    return rows


def tally() -> tuple[int, int]:
    """How many figures have a target, and how many of them miss it."""
    with_target = [figure for kind in COUNTED for figure in (newest(kind) or {"figures": []})["figures"]
                   if timing.asked(figure)]
    return len(with_target), sum(map(timing.missed, with_target))


def milliseconds(kind: str) -> dict[str, float]:
    """The times in milliseconds of the newest results of a kind, by what they are of."""
    found = newest(kind) or {"figures": []}
    return {figure["what"]: figure["value"] for figure in found["figures"] if figure["unit"] == "ms"}


def papers_table() -> list[tuple[str, ...]]:
    """The rows of the table of CuPy's paper."""
    times = milliseconds("table1")
    sizes = dict.fromkeys(what.partition(", n = ")[2] for what in times)
    return [(f"{float(size):,.0f}", *(f"{times[f'{library}, n = {size}']:.3g}" for library in LIBRARIES[:3]))
            for size in sizes]


def settings() -> str:
    """What the results were measured on."""
    found = [results["setting"] for kind in COUNTED if (results := newest(kind))]
    device = found[0]["device"].partition(": ")[2].partition(",")[0]
    dates = sorted({setting["date"] for setting in found})
    versions = ", ".join(f"{name} {found[-1][key]}" for name, key in
                         (("CuPy", "cupy-cuda13x"), ("NumPy", "numpy"), ("torch", "torch"), ("JAX", "jax"))
                         if key in found[-1])
    return f"{device}, {' to '.join(dict.fromkeys((dates[0], dates[-1])))}; {versions}"


def section() -> str:
    """The text between the comments of the page."""
    asked, missed = tally()
    met = f"{asked - missed} of {asked} targets are met" if missed else f"All {asked} targets are met"
    about = (f"Medians and ratios from one run, after a warm-up ({settings()}). The filters work on images of "
             f"4096 x 4096 pixels. {met}; the tables below have all figures.")
    lines = [BEGIN, *textwrap.wrap(about, 120), "", *grid(("What", "Target", "Measured", "Met"), headlines()), "",
             "The table of the first paper on CuPy, ``arange(n).reshape(1000, -1).T * 2``, in milliseconds:", "",
             *grid(("n", *LIBRARIES[:3]), papers_table()), "", *sweep_lines(), END]
    return "\n".join(lines)


def swept() -> list[dict]:
    """What the sweep over all functions measured: for each size the newest measurements, in whichever run."""
    found: dict[int, list[dict]] = {}
    for path in sorted(timing.RESULTS.glob("sweep*-cuda-*.json"), key=lambda path: path.stem[-len("2026-01-01"):]):
        sizes = collections.defaultdict(list)
        for figure in json.loads(path.read_text())["figures"]:
            if "size" in figure:
                sizes[figure["size"]].append(figure)
        found |= sizes
    return [figure for size in sorted(found) for figure in found[size]]


def sweep_lines() -> list[str]:
    """What the sweep over all functions found: medians, a plot, and the calls that take the longest beside CuPy's."""
    found = swept()
    if not found:
        return []
    rows = [(f"``{figure['what'].partition(', f')[0]}``", f"{figure['size']:,}", figure["what"].split(", ")[-2],
             f"{figure['ours']:.3g}", f"{figure['theirs']:.3g}", f"{figure['value']:.3g}")
            for figure in sweep.worst(found)]
    sizes = collections.defaultdict(list)
    for figure in found:
        sizes[figure["size"]].append(figure["value"])
    medians = "; ".join(f"{statistics.median(ratios):.3g} at {size:,} elements, where {above(ratios):.0%} of "
                        f"{len(ratios)} measurements are above {sweep.EACH}" for size, ratios in sizes.items())
    about = ("``python -m benchmarks.sweep`` times every function, ufunc, method and operator beside CuPy's, in two "
             "dtypes, as far as memory suffices and a call takes less than 0.2 s. The median of the ratios is "
             f"{medians}.")
    image = [".. image:: _static/speed-sweep.svg", f"   :alt: {PLOTS['speed-sweep']}", ""]
    return [*textwrap.wrap(about, 120), "", *image,
            "The calls with the largest ratios, in microseconds:", "",
            *grid(("Call", "Elements", "Dtype", "lazyarray", "CuPy", "Ratio"), rows), ""]


def above(ratios: Sequence[float]) -> float:
    """The part of the ratios that is larger than what is asked of each."""
    return sum(ratio > sweep.EACH for ratio in ratios) / len(ratios)


def with_section(text: str) -> str:
    """The page with what the newest results say."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} lacks the lines {BEGIN!r} and {END!r}")
    return before + section() + after


# -- plots ---------------------------------------------------------------------------------------

LIBRARIES = ("NumPy", "CuPy", "lazyarray", "cupy.fuse", "jax.jit", "torch.compile")

#: Tones that stand out from white and from black.
TONES = {"NumPy": "#8b949e", "CuPy": "#2da44e", "lazyarray": "#e0553d", "cupy.fuse": "#bf8700", "jax.jit": "#a371f7",
         "torch.compile": "#3b82f6"}
GREY = "#80868e"
STYLE = {**dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), GREY),
         **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
         "svg.hashsalt": "lazyarray", "font.size": 9, "savefig.transparent": True}


def plot_chains(axes: Any) -> None:
    """Milliseconds of each expression by each library, on a logarithmic scale."""
    times = milliseconds("chains")
    names = [what.partition(", float32: ")[0] for what in times if what.endswith(", float32: NumPy")]
    for library in LIBRARIES:
        points = [(times[f"{name}, float32: {library}"], row) for row, name in enumerate(names)
                  if f"{name}, float32: {library}" in times]
        if not points:      # it was not installed
            continue
        ours = library == "lazyarray"
        axes.plot(*zip(*points), "D" if ours else "o", color=TONES[library], label=library, zorder=4 if ours else 3)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds, 1e8 float32 elements")
    axes.grid(axis="x", color=GREY, alpha=0.3)
    axes.legend(loc="lower center", bbox_to_anchor=(0.4, 1), ncols=len(LIBRARIES), columnspacing=1, handletextpad=0.2)


def plot_programs(axes: Any) -> None:
    """How many times as fast as on CuPy's arrays each program is, beside what is asked."""
    figures = [figure for figure in newest("programs")["figures"] if "/ lazyarray" in figure["what"]]
    names = [figure["what"].partition(": ")[0] for figure in figures]
    peers = [figure["what"].partition(": ")[2].partition(" / ")[0] for figure in figures]
    for row, figure in enumerate(figures):
        value, least = figure["value"], figure["least"]
        axes.barh(row, value, 0.6, color=TONES["lazyarray"], alpha=0.5 if timing.missed(figure) else 1)
        axes.plot([least, least], [row - 0.4, row + 0.4], color=GREY, linewidth=2, label=None if row else "asked")
        axes.text(max(value, least), row, f"  {value:.3g}", va="center", color=GREY)
    axes.margins(x=0.08)
    axes.set_yticks(range(len(figures)), [f"{name}\nagainst {peer}" for name, peer in zip(names, peers)])
    axes.set_ylim(len(figures) - 0.4, -0.6)
    axes.set_xlabel("times as fast")
    axes.legend(loc="lower right")


def plot_table1(axes: Any) -> None:
    """Milliseconds by the number of elements."""
    times = milliseconds("table1")
    for library in LIBRARIES[:3]:
        points = [(float(what.partition(", n = ")[2]), value) for what, value in times.items()
                  if what.startswith(f"{library}, n")]
        axes.loglog(*zip(*points), "o-", color=TONES[library], label=library)
    axes.set_xlabel("n of arange(n).reshape(1000, -1).T * 2")
    axes.set_ylabel("milliseconds")
    axes.grid(color=GREY, alpha=0.3)
    axes.legend()


def plot_sweep(axes: Any) -> None:
    """The part of all calls that have at most this ratio, by size."""
    found = swept()
    for size, tone in zip(sorted({figure["size"] for figure in found}), ("#3b82f6", "#2da44e", "#e0553d")):
        ratios = sorted(figure["value"] for figure in found if figure["size"] == size)
        axes.plot(ratios, [(k + 1) / len(ratios) for k in range(len(ratios))], color=tone,
                  label=f"{size:.0e} elements, {len(ratios)} calls")
    axes.axvline(sweep.EACH, color=GREY, linewidth=1)
    axes.axvline(sweep.MEDIAN, color=GREY, linewidth=1, linestyle=":")
    axes.set_xscale("log")
    axes.set_xlabel("time relative to CuPy")
    axes.set_ylabel("part of the calls")
    axes.grid(color=GREY, alpha=0.3)
    axes.legend()


#: Name of the file -> what it shows.
PLOTS = {
    "speed-chains": "Times of element-wise expressions by NumPy, CuPy, lazyarray, cupy.fuse, jax.jit and torch.compile",
    "speed-programs": "How many times as fast as their peers whole programs are",
    "speed-sweep": "Part of all functions, methods and operators that take at most so many times as long as with CuPy",
    "speed-table1": "Times of arange, reshape, transpose and multiply by NumPy, CuPy and lazyarray, by size",
}
DRAWN = {"speed-chains": (plot_chains, (8, 2.6)), "speed-programs": (plot_programs, (8, 3.8)),
         "speed-table1": (plot_table1, (6, 3.2)), "speed-sweep": (plot_sweep, (6, 3.2))}


def draw(folder: Path, suffix: str = "svg") -> list[Path]:
    """Make the plots."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    paths = []
    for name, (plot, size) in DRAWN.items():
        if name == "speed-sweep" and not swept():
            continue
        with pyplot.rc_context(STYLE):
            figure, axes = pyplot.subplots(figsize=size, layout="constrained")
            plot(axes)
            paths.append(folder / f"{name}.{suffix}")
            figure.savefig(paths[-1], metadata={"Date": None} if suffix == "svg" else None)
            pyplot.close(figure)
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true", help="make only the table, without matplotlib")
    arguments = parser.parse_args()
    PAGE.write_text(with_section(PAGE.read_text()))
    print(PAGE)
    if not arguments.table:
        print(*draw(STATIC), sep="\n")


if __name__ == "__main__":
    main()
