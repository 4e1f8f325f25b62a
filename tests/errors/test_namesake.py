"""PyPI's ``lazyarray`` is another project: if both are installed, importing says so, and what to do."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lazyarray
from lazyarray.errors.namesake import refuse

#: The folder that has the package: that of the checkout, or where it is installed.
HOME = Path(lazyarray.__file__).parents[1]
#: As the other project's file begins, whatever its version.
THEIRS = "import numpy\n\n\nclass larray(object):\n    pass\n"


def test_importing_beside_the_other_project_is_an_error_with_the_way_out(tmp_path):
    (tmp_path / "lazyarray.py").write_text(THEIRS)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HOME), str(tmp_path)])}
    code = "try: import lazyarray\nexcept ImportError as error: first = str(error)\n" \
           "try: import lazyarray.numpy\nexcept ImportError as error: assert str(error) == first\nprint(first)"
    found = subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path / os.pardir, text=True,
                           capture_output=True, timeout=120, check=True).stdout
    assert str(tmp_path / "lazyarray.py") in found and "pip uninstall lazyarray" in found


@pytest.mark.parametrize("text", ["", "import lazyarray\nlazyarray.larray = None\n", "# class larray\n"])
def test_a_program_of_that_name_is_not_the_other_project(tmp_path, text):
    (tmp_path / "lazyarray.py").write_text(text)
    refuse([str(tmp_path)])


def test_folders_that_are_not_there_are_passed_over(tmp_path):
    refuse(["", str(tmp_path / "missing"), str(tmp_path / "archive.zip")])
    (tmp_path / "lazyarray.py").mkdir()
    refuse([str(tmp_path)])
    with pytest.raises(ImportError, match="Two projects"):
        (tmp_path / "site").mkdir()
        (tmp_path / "site" / "lazyarray.py").write_text(THEIRS)
        refuse([str(tmp_path), str(tmp_path / "site")])
