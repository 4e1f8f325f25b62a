"""What ``dir(lazyarray)`` shows, what is there without an import of its own, and what errors of names say."""
from __future__ import annotations

import inspect
import subprocess
import sys
import traceback
from pathlib import Path
from typing import get_args

import pytest

import lazyarray
from lazyarray.devices import Device
from lazyarray.integrations.routing.names import Library
from lazyarray.integrations.routing.twin import COMPILED, TABLES, WHOLE, table

ROOT = Path(__file__).parents[2]


def test_dir_is_the_public_api():
    assert dir(lazyarray) == sorted([*lazyarray.__all__, "numpy", "testing", "__version__"])
    assert all(hasattr(lazyarray, name) for name in dir(lazyarray))


def test_packages_are_there_without_an_import_of_their_own():
    code = ("import sys, lazyarray; before = 'lazyarray.testing' in sys.modules; "
            "print(before, lazyarray.numpy.zeros(2).shape, lazyarray.testing.check.__class__.__name__)")
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.split(maxsplit=1) == ["False", "(2,) Oracle\n"]


@pytest.mark.parametrize("name", ["array", "zeros", "random", "float64", "linalg"])
def test_numpys_names_point_to_the_namespace(name):
    with pytest.raises(AttributeError, match=rf"lazyarray\.numpy\.{name}$"):
        getattr(lazyarray, name)
    assert hasattr(lazyarray.numpy, name)


def test_the_package_with_the_name_of_numpys_function_says_where_that_is():
    from lazyarray import array

    with pytest.raises(TypeError, match=r"^lazyarray\.array is a package; use lazyarray\.numpy\.array$"):
        array([1, 2], dtype=float)
    assert inspect.ismodule(array) and array.array.LazyNdarray is lazyarray.LazyNdarray


@pytest.mark.parametrize(("wrong", "right"), [("zeroes", "zeros"), ("linespace", "linspace"), ("float46", "float64")])
def test_a_misspelt_name_of_numpys_gets_the_nearest(wrong, right):
    with pytest.raises(AttributeError) as caught:
        getattr(lazyarray.numpy, wrong)
    text = f"module 'lazyarray.numpy' has no attribute {wrong!r}. Did you mean {right!r}?"
    assert str(caught.value) == text and caught.value.name == wrong
    shown = traceback.format_exception_only(caught.value)
    assert "".join(shown).count("Did you mean") == 1


@pytest.mark.parametrize("name", ["xyzzy", "_zeros", "__zeros__"])
def test_what_is_near_to_no_name_of_numpys_gets_none(name):
    with pytest.raises(AttributeError, match=rf"^module 'lazyarray\.numpy' has no attribute '{name}'$"):
        getattr(lazyarray.numpy, name)
    assert not hasattr(lazyarray.numpy, name)


def test_what_numpy_says_of_names_that_it_had_is_said():
    with pytest.raises(AttributeError, match="NumPy 2.0 release"):
        lazyarray.numpy.float_


def test_other_names_are_plain_errors_with_a_suggestion():
    with pytest.raises(AttributeError, match="no attribute 'enabel'$") as caught:
        lazyarray.enabel
    assert caught.value.name == "enabel" and caught.value.obj is lazyarray


def test_signatures_name_public_classes():
    """What `help` shows: of functions, and of the members of the classes."""
    members = [(f"{owner.__name__}.{name}", member) for owner in (lazyarray, lazyarray.testing, lazyarray.LazyNdarray,
                                                                 lazyarray.LazyScalar, Device)
               for name, member in vars(owner).items()]
    parts = [(name, part) for name, member in members
             for part in ((member.fget, member.fset) if isinstance(member, property) else (member,))]
    shown = {name: str(inspect.signature(part)) for name, part in parts
             if callable(part) and not isinstance(part, type) and hasattr(part, "__annotations__")}
    assert "-> 'LazyNdarray'" in shown["lazyarray.asarray"] and "LazyNdarray.reshape" in shown
    assert {name: text for name, text in shown.items() if "Handle" in text} == {}


@pytest.mark.parametrize("change", [lazyarray.options, lazyarray.options.set])
def test_a_misspelt_option_gets_the_nearest_name(change):
    with pytest.raises(TypeError, match=r"^Unknown option 'bulk_read'\. Supported: .*\. Did you mean 'bulk_reads'\?$"):
        change(bulk_read=3)
    with pytest.raises(TypeError, match=r"^Unknown option 'xyzzy'\. Supported: .*write_tracking\.$"):
        change(xyzzy=3)


class TestLibraries:
    def test_the_names_that_type_checkers_know_are_those_that_are_taken(self):
        modules = {twin.module for library in TABLES for twin in table(library).values()}
        above = {module[:i] for module in modules for i, char in enumerate(module) if char == "."}
        assert set(get_args(Library)) == modules | above | {*TABLES, *WHOLE, *COMPILED}
        for name in get_args(Library):
            lazyarray.enabled(name)

    @pytest.mark.parametrize(("wrong", "right"), [
        ("scipyy", "scipy"), ("skimge.filters", "skimage.filters"), ("scipy.ndimag", "scipy.ndimage"),
        ("opencv", "cv2"), ("scikit-image", "skimage"), ("pytorch", "torch"), ("SciPy", "scipy"), ("Torch", "torch"),
    ])
    def test_mistakes_get_the_nearest_name(self, wrong, right):
        for use in (lazyarray.enable, lazyarray.disable, lazyarray.enabled):
            with pytest.raises(ValueError, match=rf"Unknown library '{wrong}'.* Did you mean '{right}'\?$"):
                use(wrong)

    @pytest.mark.parametrize("name", ["xyzzy", "numba"])
    def test_what_is_near_to_nothing_gets_the_list(self, name):
        with pytest.raises(ValueError, match=rf"Unknown library '{name}'\. Supported: .*scipy.*torch\.$"):
            lazyarray.enable(name)
