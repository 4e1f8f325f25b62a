"""The benchmarks run, on small data; what they measure is for a GPU."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lazyarray
from benchmarks import __main__ as command
from benchmarks import calls, chains, many, memory, plain, programs, table1, timing
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
    modules = {name for name, value in vars(plain).items() if type(value) is type(np)}
    assert modules == {"np"}


def test_plain_programs_copy_nothing_but_numbers():
    for program in programs.programs(SMALL):
        lazy = [lazyarray.asarray(x) for x in program.arguments]
        with lazyarray.trace() as record:
            timing.compute(program.run(*lazy))
        assert not record.fallbacks, f"{program.name}: {record}"
        assert not record.uploads and all(event.nbytes <= 8 for event in record.materialisations), record


def test_chains():
    found = chains.figures(2500)
    wanted = asked(found)
    assert wanted["x * 2, float32: of the bandwidth of a copy"] == ">= 0.85"
    assert wanted[f"softplus, float32: {timing.peer()} / lazyarray"] == ">= 10"
    assert wanted[f"1,024 elements: six operators, lazyarray / {timing.peer()}"] == "<= 0.6"
    assert len(names(found)) > 60


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


def test_many():
    names(many.figures(count=50, number=5, rounds=1))


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
