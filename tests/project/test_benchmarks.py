"""The benchmarks run, on small data; what they measure is for a GPU."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lazyarray
from benchmarks import (
    __main__ as command,
)
from benchmarks import (
    calls,
    chains,
    cold,
    lines,
    many,
    memory,
    plain,
    programs,
    report,
    several,
    sharing,
    spilling,
    sweep,
    table1,
    threads,
    timing,
)
from lazyarray import numpy as namespace
from lazyarray.graph import cost_model
from lazyarray.storage import pending_on_host

ROOT = Path(__file__).parents[2]
SMALL = programs.Sizes(side=64, picture=64, points=500, steps=3, rounds=1)


def names(figures):
    found = [figure["what"] for figure in figures]
    assert len(set(found)) == len(found), "one name for two figures"
    assert all(np.isfinite(figure["value"]) and figure["value"] >= 0 for figure in figures)
    return found


def asked(figures):
    return {figure["what"]: timing.asked(figure) for figure in figures if timing.asked(figure)}


@pytest.fixture(scope="module")
def of_programs():
    pytest.importorskip("scipy")
    pytest.importorskip("skimage")
    return programs.figures(SMALL._replace(side=512))


def test_programs_give_numpys_results_and_say_what_is_asked(of_programs):
    peer = timing.peer()
    assert asked(of_programs) == {
        "four filters: of device time, an upload and a page-locked copy": "<= 1.2",
        "four filters: of device time and two page-locked copies": "<= 1.2",
        "four filters: a round trip around each / lazyarray": ">= 8",
        "convolve2d: moved by hand / lazyarray": ">= 1.5",
    } | {f"{program.name}: {peer} / lazyarray": ">= 1.5" for program in programs.programs(SMALL)}
    assert len(names(of_programs)) == 11 + 4 * 5 + 3


def test_a_program_with_another_result_is_not_timed():
    program = next(programs.programs(SMALL))
    wrong = program._replace(run=lambda image: image + (1 if lazyarray.is_lazy(image) else 0))
    with pytest.raises(AssertionError, match="from NumPy's"):
        programs.plainly(timing.Figures(), wrong, 1)
    other = program._replace(run=lambda image: image.astype("f8") if lazyarray.is_lazy(image) else image)
    with pytest.raises(AssertionError, match="float64, not float32"):
        programs.plainly(timing.Figures(), other, 1)


def test_the_plain_programs_know_only_numpy():
    modules = {name for name, value in vars(plain).items() if type(value) is type(np) and not name.startswith("@")}
    assert modules == {"np"}


def test_plain_programs_copy_nothing_but_numbers():
    for program in programs.programs(SMALL):
        lazy = [lazyarray.asarray(x) for x in program.arguments]
        with lazyarray.trace() as record:
            timing.compute(program.run(*lazy))
        assert not record.fallbacks, f"{program.name}: {record}"
        assert not record.uploads and all(event.nbytes <= 8 for event in record.materialisations), record


@pytest.mark.together
def test_chains():
    found = chains.figures(2500)
    wanted = asked(found)
    assert wanted["x * 2, float32: of the bandwidth of a copy"] == ">= 0.85"
    assert wanted[f"softplus, float32: {timing.peer()} / lazyarray"] == ">= 10"
    assert wanted[f"1,024 elements: six operators, lazyarray / {timing.peer()}"] == "<= 0.6"
    assert len(names(found)) > 60


@pytest.mark.together
def test_calls():
    wanted = asked(calls.figures(number=40, rounds=1))
    assert wanted["recording an operator"] == "<= 2.5"


def test_programs_take_no_more_device_memory_than_the_devices_own():
    found = memory.figures(SMALL, 1000)
    wanted = [figure for figure in found if figure["what"].endswith(f"in times of {timing.peer()}'s")]
    assert len(wanted) == 5 and {figure["target"] for figure in wanted} == {1.05}
    assert not [figure for figure in wanted if timing.missed(figure)]
    names(found)


def test_a_chain_takes_as_much_memory_however_long_it_is():
    x = lazyarray.asarray(np.ones(5000, np.float32))
    peaks = [memory.peak_bytes(lambda n=n: memory.chain(x, n)) for n in (4, 12, 36)]
    assert x.nbytes <= peaks[0] == peaks[1] == peaks[2] <= 2 * x.nbytes + 1024     # a step's operand and its result


def test_what_is_looked_at_is_computed_where_the_model_says(monkeypatch):
    made, compute = [], pending_on_host.private
    monkeypatch.setattr(pending_on_host, "private", lambda *given: made.append(compute(*given)) or made[-1])
    for constants, state in (({"launch": 1.0}, "pending"), ({"launch": 1e-12, "copy_call": 1e-12}, "device")):
        monkeypatch.setattr(cost_model, "_costs", cost_model.Costs(**constants))
        result = table1.work(namespace, 2000)
        with lazyarray.no_transfers():
            assert timing.looked_at(result) is result
        assert result._self_storage.state == state and (made.pop() is None) == (state == "device")
        np.testing.assert_array_equal(result, table1.work(np, 2000))


def test_threads():
    names(threads.figures(threads=2, requests=2, size=100, turns=1, side=8, decomposed=1))


def test_many():
    names(many.figures(count=50, number=5, rounds=1))


def test_spilling():
    found = spilling.figures(16 << 20)
    names(found)
    assert {figure["what"]: figure["value"] for figure in found}["right results"] == 1


def test_memory_that_is_shared():
    found = sharing.figures(large=1000, copied=1 << 20, number=5, rounds=1)
    differences = [figure for figure in found if "above" in figure["what"]]
    assert len(names([figure for figure in found if figure not in differences])) >= 10 and len(differences) == 3
    assert asked(found)[f"softplus of held memory: {timing.peer()} / lazyarray"] == ">= 3.5"


def test_several_devices():
    device = lazyarray.device()
    with device.with_count(2) if device.name == "simulated" else device.on(0):
        found = asked(several.figures(arrays=2, elements=1000, rounds=1))
    assert ("softplus of many arrays, one GPU / two GPUs" in found) == (device.name == "simulated" or device.count > 1)


def test_dask_on_several_devices():
    pytest.importorskip("distributed")
    pytest.importorskip("skimage")
    found = {figure["what"]: figure["value"] for figure in several.dask_figures(chunks=3, side=32, rounds=1)}
    assert len(found) == 3 and found["the same values"] == 1


def test_a_figure_says_whether_it_is_missed():
    found = timing.Figures()
    found.note("most", 2, "us", most=1)
    found.note("least", 2, "times", least=1.0)
    found.note("neither", 2, "ms")
    assert [timing.missed(figure) for figure in found] == [True, False, False]
    assert [timing.asked(figure) for figure in found] == ["<= 1", ">= 1", ""]


def test_every_kind_is_known_to_the_command():
    assert set(command.SIMULATED) <= set(command.KINDS)
    found = subprocess.run([sys.executable, "-m", "benchmarks", "--help"], cwd=ROOT, capture_output=True, text=True,
                           check=True)
    assert all(name in found.stdout for name in ("--only", "--check", *command.KINDS))


@pytest.fixture(scope="module")
def chosen():
    return list(sweep.calls())


class TestSweep:
    def test_every_table_is_in_it(self, chosen):
        labels = {call.label for call in chosen}
        assert len(labels) > 500
        for part in ("np.sum(x", "np.linalg.inv(", "np.fft.fft(", "np.add(x", "np.add.reduce(", "x.sum(", "x + y",
                     "np.where(", "np.sort(", "np.concatenate("):
            assert any(label.startswith(part) for label in labels), part
        assert any(call.writes for call in chosen) and not any("tolist" in label for label in labels)

    @pytest.mark.filterwarnings("ignore")
    def test_both_libraries_make_the_same_calls(self, chosen):
        for call in chosen[::5]:
            for size in (20, 200):
                both = sweep.Sweep(size, "f8").pair(call)
                try:
                    theirs = timing.compute(both["theirs"]())
                except (AttributeError, TypeError, ValueError, NotImplementedError):
                    continue        # the device library lacks it, or part of it
                ours = timing.compute(both["ours"]())
                ours, theirs = (r if isinstance(r, tuple | list) else [r] for r in (ours, theirs))
                assert [np.shape(part) for part in ours] == [np.shape(part) for part in theirs], call.label

    @pytest.mark.filterwarnings("ignore")
    def test_rows_figures_and_the_worst(self):
        found = list(sweep.rows(60, (20, 2000), each=0.0, some=lambda call: call.label.startswith("np.sum(x")))
        wanted = {(code, size) for code in ("f4", "f8") for size in (20, 2000)}
        assert {(row.dtype, row.size) for row in found} == wanted
        assert all(row.ours > 0 and row.theirs > 0 for row in found)
        kept = sweep.figures(found)
        names(kept)
        assert kept[0]["what"] == "all calls, 2e+01 elements: median" and timing.asked(kept[0]) == "<= 0.9"
        ratios = sorted((row.ratio for row in found), reverse=True)
        assert [figure["value"] for figure in sweep.worst(kept, 2)] == pytest.approx(ratios[:2], rel=1e-3)

    def test_a_call_that_takes_its_square_is_not_timed_where_it_takes_too_long(self):
        seconds = {10**4: 1e-3, 10**5: 0.1}
        between = {size: FakeSweep(seconds[size]) for size in seconds}
        assert not sweep.fits_in_time(None, "f4", 10**6, 10**3, 1e-5, between)
        between = {size: FakeSweep(size * 1e-9) for size in seconds}
        assert sweep.fits_in_time(None, "f4", 10**6, 10**3, 1e-6, between)

    def test_no_time_is_left(self):
        assert list(sweep.rows(0.0, (20,), ("f4",))) == []

    def test_what_the_report_says_of_it(self, tmp_path, monkeypatch):
        pytest.importorskip("matplotlib")
        monkeypatch.setattr(timing, "RESULTS", tmp_path)
        assert report.sweep_lines() == []
        found = [sweep.Row(f"np.sum(x, axis={k})", "f4", size, 10.0 + k, 10.0)
                 for k in range(30) for size in (1000, 10**6)]
        kept = timing.keep("sweep", sweep.figures(found))
        kept.rename(tmp_path / "sweep-cuda-2026-01-01.json")
        text = "\n".join(report.sweep_lines())
        assert "``np.sum(x, axis=29)``" in text and "3.9" in text and text.count("np.sum") == sweep.WORST
        monkeypatch.setattr(report, "DRAWN", {"speed-sweep": report.DRAWN["speed-sweep"]})
        assert [path.name for path in report.draw(tmp_path)] == ["speed-sweep.svg"]


class FakeSweep:
    """A sweep that has measured already."""

    def __init__(self, seconds):
        self.found = seconds

    def pair(self, call):
        return {}

    def seconds(self, both):
        return self.found


def test_seconds_to_the_first_result(tmp_path):
    path = tmp_path / "square.py"
    path.write_text("import numpy as np\nDEFAULT = 8\ninputs = np.arange\n\n\n"
                    "def main(asarray, n, x):\n    return {'y': np.square(asarray(x))}\n")
    found = cold.figures([str(path)], runs=2)
    assert len(names(found)) == 3 * 3 + 2
    assert set(asked(found).values()) == {"<= 1.1"} and "square, lazyarray: warm" in names(found)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="lines are timed from Python 3.12 on")
def test_lines_of_a_program(tmp_path, capsys):
    path = tmp_path / "roots.py"
    path.write_text("""import time
import numpy as np
DEFAULT = 3000
inputs = np.arange


class Slow:
    def pause(self):
        time.sleep(0.02)


def root(x):
    return np.sqrt(x)


def main(asarray, n, x):
    Slow().pause()
    time.sleep(0.01)
    return {'y': root(asarray(x)) + 1}
""")
    found = lines.measure(str(path), runs=3, warm=1)
    (ours, one), (theirs, other) = found.items()
    assert ours == "lazyarray" and theirs != ours
    for run in (one, other):
        assert run.whole >= sum(run.lines.values()) * 0.5 and {None, 9, 13, 17, 18, 19} <= run.lines.keys()
        # The line of the call has not the time of the function's.
        assert run.lines[9] >= 0.02 and run.lines[18] >= 0.01 and run.lines[17] < run.lines[9]
    text = lines.table(str(path), found, 2)
    assert text.startswith("roots: lazyarray ") and len(text.splitlines()) == 3
    made = lines.figures([str(path)], runs=1, warm=1)
    assert "roots: lazyarray" in names(made) and "time.sleep(0.02)" in capsys.readouterr().out


@pytest.mark.parametrize("name", cold.PLAIN)
def test_programs_that_are_run_in_new_processes(name):
    one = cold.program(name)
    given = one.inputs(16)
    wanted, found = one.main(np.asarray, 16, given), one.main(lazyarray.asarray, 16, given)
    assert all(np.allclose(np.asarray(found[key]), wanted[key]) for key in wanted)
