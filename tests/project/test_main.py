"""``python -m lazyarray`` says what was found and how fast it copies."""
from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import lazyarray
from lazyarray import __main__ as command
from lazyarray.devices import Diagnosis
from lazyarray.devices.cuda import driver
from lazyarray.errors import NotOnDevice
from lazyarray.graph import cost_model

ROOT = Path(__file__).parents[2]


def report(root=ROOT, **settings):
    """What the command prints: the text, and the rows by their names."""
    found = subprocess.run([sys.executable, "-m", "lazyarray"], env=os.environ | {"PYTHONPATH": str(root)} | settings,
                           cwd=root, capture_output=True, text=True, timeout=300, check=True)
    assert found.stderr == ""
    return found.stdout, dict(re.findall(r"^([\w -]+): +(.+)$", found.stdout, re.MULTILINE))


def test_the_report():
    _, rows = report()
    assert rows["lazyarray"].split()[0] == lazyarray.__version__ and rows["NumPy"] == np.__version__
    assert rows["device"].startswith(lazyarray.device().name) and rows["why"] and rows["driver"]
    assert rows["write tracking"].startswith(("by pages", "none"))
    for direction in ("uploads", "materialisations"):
        assert re.fullmatch(r"[\d,]+ MB/s", rows[direction]) and rows[direction] != "0 MB/s"
    for library in ("CuPy", "cuCIM", "SciPy", "scikit-image"):
        assert re.match(r"\d+\.|not installed", rows[library]), library


def test_the_version():
    found = subprocess.run([sys.executable, "-m", "lazyarray", "--version"], env=os.environ | {"PYTHONPATH": str(ROOT)},
                           capture_output=True, text=True, timeout=300, check=True)
    assert found.stdout == f"lazyarray {lazyarray.__version__}\n"


def test_a_build_without_a_compiler_says_so(tmp_path):
    shutil.copytree(ROOT / "lazyarray", tmp_path / "lazyarray", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    text, rows = report(tmp_path, LAZYARRAY_DEVICE="simulated")
    assert rows["compiled parts"].startswith("missing: recording (not compiled)")
    assert "install a C compiler" in text.partition("compiled parts")[2]


def test_every_part_that_is_missing_comes_with_its_way_out(monkeypatch):
    """As on a machine with neither libraries nor write tracking."""
    monkeypatch.setattr(command.metadata, "distributions", lambda: iter(()))
    monkeypatch.setattr(command.dirty_tracking, "why_no_pages", lambda: "userfaultfd: Operation not permitted")
    monkeypatch.setattr(command._native, "missing", {"recording": "not compiled"})
    monkeypatch.setattr(command.devices, "why", lambda: Diagnosis("simulated", "missing", "no CuPy", "Install CuPy."))
    rows = [*command.device(), *command.libraries(), *command.compiled(), *command.write_tracking()]
    advice = {before: text for (before, _), (name, text) in itertools.pairwise(rows) if name.strip() == "what to do"}
    assert set(advice) == {"why", "CuPy", "cuCIM", "SciPy", "scikit-image", "compiled parts"}
    assert all("pip install" in advice[name] for name in ("CuPy", "cuCIM", "SciPy", "scikit-image", "compiled parts"))
    assert advice["why"].startswith("use Linux 6.7")


def test_two_packages_of_cupy_are_one_too_many(monkeypatch):
    names = ["cupy-cuda12x", "cupy-cuda13x", "cupyimg", "cucim-cu13", "scikit-image"]
    found = [types.SimpleNamespace(metadata={"Name": name}, version="14.0") for name in names]
    monkeypatch.setattr(command.metadata, "distributions", lambda: iter(found))
    rows = dict(command.libraries())
    assert rows["CuPy"] == "14.0 (cupy-cuda12x), 14.0 (cupy-cuda13x)"
    assert rows["cuCIM"] == "14.0 (cucim-cu13)" and rows["scikit-image"] == "14.0"
    assert ("  what to do", "uninstall all but one: pip uninstall cupy-cuda12x") in command.libraries()


def test_a_cucim_that_does_not_import_comes_with_its_way_out(monkeypatch):
    def library(path):
        raise NotOnDevice(f"{path} does not import (no libnvjpeg): install cucim-cu13")

    found = types.SimpleNamespace(metadata={"Name": "cucim-cu13"}, version="26.10")
    monkeypatch.setattr(command.metadata, "distributions", lambda: iter([found]))
    monkeypatch.setattr(command.devices, "why", lambda: Diagnosis("cuda", "works", "CUDA works"))
    monkeypatch.setattr(command.devices, "current", lambda: types.SimpleNamespace(library=library))
    rows = command.libraries()
    assert rows[:3] == [("CuPy", "not installed"), ("cuCIM", "26.10 (cucim-cu13)"),
                        ("  what to do", "cucim.skimage does not import (no libnvjpeg): install cucim-cu13")]


def test_the_driver_is_described(monkeypatch, tmp_path):
    monkeypatch.setattr(driver, "is_present", lambda: True)
    monkeypatch.setattr(driver, "version", lambda: 13020)
    monkeypatch.setattr(driver, "VERSION_FILE", tmp_path / "version")
    assert driver.describe() == "for CUDA 13.2"
    (tmp_path / "version").write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build  (dvs-builder@U22)\n")
    assert driver.describe() == "580.159.03, for CUDA 13.2"
    monkeypatch.setattr(driver, "version", lambda: None)
    assert driver.describe() == "580.159.03, without the library libcuda.so.1"


@pytest.mark.parametrize("arguments", [[], ["measure"]])
def test_without_the_device_that_was_asked_for_it_ends_with_the_advice(arguments):
    code = (  # the driver's absence is what most machines of developers have; here it is said to be so on all
        "import sys, runpy\nfrom lazyarray import devices\n"
        "gone = devices.Diagnosis('none', 'no driver', 'there is no driver', 'Install the NVIDIA driver.')\n"
        "devices.why = lambda: gone\n"
        f"sys.argv[1:] = {arguments}\nrunpy.run_module('lazyarray', run_name='__main__', alter_sys=True)\n")
    found = subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(ROOT)},
                           capture_output=True, text=True, timeout=300, check=False)
    assert found.returncode == 1 and found.stderr == ""
    assert re.search("what to do: +Install the NVIDIA driver", found.stdout)


@pytest.mark.skipif(lazyarray.device().name == "cuda", reason="there is a GPU")
def test_cuda_is_asked_for_where_there_is_none():
    environment = os.environ | {"PYTHONPATH": str(ROOT), "LAZYARRAY_DEVICE": "cuda"}
    found = subprocess.run([sys.executable, "-m", "lazyarray"], env=environment, capture_output=True, text=True,
                           timeout=300, check=False)
    assert (found.returncode, found.stderr) in ((1, ""), (0, "")), found.stderr
    assert found.returncode == 0 or re.search("^device: +none", found.stdout, re.MULTILINE)


@pytest.mark.parametrize(("arguments", "says"), [
    (["--enable", "numpy, scipyy", "program.py"], r"--enable: Unknown library 'scipyy'\. .* Did you mean 'scipy'\?"),
    (["program.py", "its arguments"], "no such file: program.py"),
    (["--trace=missing/report.html", "program.py"], "--trace: no such folder: .*/missing"),
    (["--trace=.", "program.py"], r"--trace: \. is a folder; name a file"),
])
def test_a_mistake_in_the_command_is_no_traceback(arguments, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        command.main(["run", *arguments])
    assert caught.value.code == 2 and re.search(f"error: .*{says}$", capsys.readouterr().err.rstrip())


def run(program, *arguments, folder, root=ROOT):
    """Run a program's text in a folder."""
    (folder / "program.py").write_text(program)
    return subprocess.run([sys.executable, "-m", "lazyarray", "run", *arguments], cwd=folder, capture_output=True,
                          text=True, timeout=300, check=False,
                          env=os.environ | {"PYTHONPATH": str(root), "LAZYARRAY_ENABLE": "scipy"})


@pytest.mark.skipif(os.name != "posix" or os.getuid() == 0, reason="root may write anywhere")
def test_a_report_in_a_folder_without_permission_is_refused_before_the_program_runs(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    done = run("print('ran')", "--trace=closed/report.html", "program.py", folder=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and "no permission to write" in done.stderr


def test_a_program_that_changes_the_folder_gets_its_report_where_it_was_started(tmp_path):
    (tmp_path / "other").mkdir()
    text = "import os, lazyarray\nos.chdir('other')\nlazyarray.asarray([1.0] * 99_999)      # here\nprint(__file__)\n"
    done = run(text, "--trace=report.html", "program.py", folder=tmp_path)
    assert done.stdout == f"{tmp_path / 'program.py'}\n", "as without lazyarray"
    assert "# here" in (tmp_path / "report.html").read_text() and not [*(tmp_path / "other").iterdir()]
    assert f"profile of program.py: {tmp_path / 'report.html'}" in done.stderr


def test_a_report_that_can_not_be_written_any_more_is_printed(tmp_path):
    (tmp_path / "reports").mkdir()
    text = "import os, lazyarray\nos.rmdir('reports')\nlazyarray.asarray([1.0] * 99_999)      # here\n"
    done = run(text, "--trace=reports/report.html", "program.py", folder=tmp_path)
    assert done.returncode == 0 and "report.html could not be written: No such file" in done.stderr
    assert "# here" in done.stderr


@pytest.mark.parametrize("arguments", [["program.py"], ["-m", "program"]])
def test_a_traceback_begins_with_the_program(arguments, tmp_path):
    done = run("def f():\n    1 / 0\nf()\n", "--trace", *arguments, folder=tmp_path)
    assert done.returncode == 1
    frames = re.findall(r'^  File "(.+)", line (\d+), in (.+)$', done.stderr, re.MULTILINE)
    path = str(tmp_path / "program.py")
    assert frames == [(path, "3", "<module>"), (path, "2", "f")]
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_a_syntax_error_is_shown_as_python_shows_it(tmp_path):
    done = run("x = = 1\n", "program.py", folder=tmp_path)
    plain = subprocess.run([sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True, check=False)
    assert done.returncode == plain.returncode == 1 and done.stderr == plain.stderr


def test_the_rows_of_a_profile_are_the_program_s(tmp_path):
    """Also while its modules are looked for, and for a program that is installed."""
    text = "import time\ntime.sleep(0.1)     # here\n"
    done = run(text, "--trace", "-m", "program", folder=tmp_path)
    assert "# here" in done.stderr and "__main__.py" not in done.stderr and "runpy" not in done.stderr
    done = run("", "--trace", "-m", "timeit", "-n", "1", "-r", "1", "import time; time.sleep(0.1)", folder=tmp_path)
    assert done.returncode == 0 and "__main__.py" not in done.stderr and "runpy" not in done.stderr


@pytest.mark.parametrize(("variable", "value", "arguments", "says"), [
    ("LAZYARRAY_COSTS", "lunch=1", [], r"LAZYARRAY_COSTS has no 'lunch'; it may set .*"),
    ("LAZYARRAY_COSTS", "launch=soon", ["measure"], r"LAZYARRAY_COSTS: 'launch=soon' is not .*"),
    ("LAZYARRAY_COSTS", "lunch=1", ["run", __file__], r"LAZYARRAY_COSTS has no 'lunch'; it may set .*"),
    ("LAZYARRAY_SIMULATED_DEVICES", "two", [], "LAZYARRAY_SIMULATED_DEVICES must be a whole number, not 'two'"),
    ("LAZYARRAY_SIMULATED_LIMIT", "1GB", ["measure"], "LAZYARRAY_SIMULATED_LIMIT must be a whole number, not '1GB'"),
    ("LAZYARRAY_ENABLE", "scipyy", [], r"LAZYARRAY_ENABLE: Unknown library 'scipyy'\. .* Did you mean 'scipy'\?"),
])
def test_a_mistake_in_the_environment_is_one_line(variable, value, arguments, says):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "LAZYARRAY_DEVICE": "simulated", variable: value}
    found = subprocess.run([sys.executable, "-m", "lazyarray", *arguments], env=environment, capture_output=True,
                           text=True, timeout=300, check=False)
    assert found.returncode in (1, 2) and found.stdout == ""
    assert re.fullmatch(rf"(python -m lazyarray: error: )?{says}\n", found.stderr), found.stderr


def test_what_is_measured_can_be_put_in_force():
    def run(**settings):
        environment = os.environ | {"PYTHONPATH": str(ROOT)} | settings
        return subprocess.run([sys.executable, "-m", "lazyarray", "measure"], env=environment, capture_output=True,
                              text=True, timeout=300, check=True).stdout

    names = cost_model.Costs._fields
    found = run()
    assert all(found.count(f"  {name}:") == 2 for name in names), "in force and measured"
    line = re.search(r"export (LAZYARRAY_COSTS)=(.+)", found)
    constants = cost_model.Costs.of_text(line[2])
    in_force = run(**{line[1]: line[2]}).partition("measured here")[0]
    for name, value in constants._asdict().items():
        assert re.search(rf"{name}: +{re.escape(f'{value:.3g}')} ", in_force), name
