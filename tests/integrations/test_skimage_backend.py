"""scikit-image hands calls to lazyarray, a backend that it finds by entry points: in 0.26's way and in spatch's."""
from __future__ import annotations

import configparser
import os
import subprocess
import sys
import tomllib
import types
import warnings
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
import skimage_listing

import lazyarray
from lazyarray.integrations.skimage import backend as skimage_backend
from lazyarray.integrations.skimage.twins import HOST_ONLY, TWINS

pytest.importorskip("skimage.util._backends", reason="scikit-image 0.26 is the first that dispatches")

ROOT = Path(__file__).parents[2]
PACKAGE = Path(lazyarray.__file__).parent
MSE = "skimage.metrics:mean_squared_error"
GROUPS = ("skimage_backends", "skimage_backend_infos")


def declared(group):
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "setup.cfg")
    name, _, value = settings["options.entry_points"][group].strip().partition(" = ")
    return EntryPoint(name, value, group)


backend = declared("skimage_backends").load()


@pytest.fixture
def images():
    return np.random.default_rng(0).random((2, 20, 30))


def run(code, folder, **environment):
    """Run a program where lazyarray is installed, as far as its metadata go."""
    info = folder / "lazy_ndarray-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lazy-ndarray\nVersion: 0\n")
    points = (f"[{group}]\n{declared(group).name} = {declared(group).value}\n" for group in GROUPS)
    (info / "entry_points.txt").write_text("\n".join(points))
    path = os.pathsep.join([str(folder), str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path} | environment
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# -- whose calls it takes --------------------------------------------------------------------------

def test_it_takes_calls_with_lazy_and_with_device_arrays(images):
    a, b = map(lazyarray.asarray, images)
    assert backend.can_has(MSE, a, b)
    assert backend.can_has(MSE, a, images[1]) and backend.can_has(MSE, images[0], image1=b)
    assert backend.can_has(MSE, lazyarray.asdevice(a), lazyarray.asdevice(b))


class Tensor:
    """Something with device memory that is no array of ours."""
    __cuda_array_interface__ = {"shape": (2,), "typestr": "<f4", "data": (0, False), "version": 3}


@pytest.mark.parametrize("args", [
    (np.ones(3), np.ones(3)), ([1, 2], [3, 4]), (1.0, 2.0), (np.ma.ones(3), np.ones(3)), (Tensor(), Tensor()), (),
], ids=["host arrays", "lists", "numbers", "masked arrays", "other device arrays", "nothing"])
def test_it_leaves_all_other_calls_alone(args):
    assert not backend.can_has(MSE, *args)


def test_it_refuses_lists_even_beside_a_lazy_array(images):
    assert not backend.can_has(MSE, lazyarray.asarray([1.0, 2.0]), [1.0, 2.0])
    assert not backend.can_has(MSE, lazyarray.asarray([1.0, 2.0]), image1=[1.0, 2.0])


def test_it_refuses_functions_without_a_twin(images):
    x = lazyarray.asarray(images[0])
    assert not backend.can_has("skimage.metrics:hausdorff_distance", x, x)      # known, and done on the host
    assert not backend.can_has("skimage.nowhere:nothing", x, x)
    with pytest.raises(LookupError, match="nowhere"):
        backend.get_implementation("skimage.nowhere:nothing")


def test_it_takes_host_arrays_where_it_is_asked_to(images):
    with lazyarray.enabled("skimage", numpy=True), lazyarray.options(min_bytes=1000):
        assert backend.can_has(MSE, *images)
        assert not backend.can_has(MSE, np.ones(3), np.ones(3))     # too small
    with lazyarray.enabled("skimage"):
        assert not backend.can_has(MSE, *images)
    assert not backend.can_has(MSE, *images)


def test_the_question_moves_nothing_and_is_quick(images):
    x = lazyarray.asarray(images[0])
    from timeit import repeat

    with lazyarray.no_transfers():
        for args in ((x, x), tuple(images)):
            assert min(repeat(lambda args=args: backend.can_has(MSE, *args), number=1000, repeat=3)) / 1000 < 50e-6


# -- what they get -----------------------------------------------------------------------------------

def test_a_result_has_the_type_of_its_arguments(images):
    mean_squared_error = backend.get_implementation(MSE)
    wanted = mean_squared_error.__wrapped__(*images)
    lazy = tuple(map(lazyarray.asarray, images))
    with lazyarray.no_transfers():
        found = mean_squared_error(*lazy)
        assert lazyarray.is_lazy(found) and isinstance(found, np.float64)
        on_device = mean_squared_error(*map(lazyarray.asdevice, lazy))
        assert isinstance(on_device, lazyarray.device().array_type) and not on_device.shape
    np.testing.assert_allclose([float(found), float(lazyarray.asnumpy(on_device))], wanted, rtol=1e-12)


def test_an_error_is_scikit_image_s(images):
    mean_squared_error = backend.get_implementation(MSE)
    with pytest.raises(ValueError, match="must have the same dimensions"):
        mean_squared_error(lazyarray.asarray(images[0]), lazyarray.asarray(images[1][:5]))


PROGRAM = """
import sys, warnings
import numpy as np
from skimage.metrics import mean_squared_error, normalized_root_mse
from skimage.util._backends import DispatchNotification, all_backends
assert list(all_backends()) == ["lazyarray"], all_backends()
functions = mean_squared_error, normalized_root_mse
a, b = np.random.default_rng(0).random((2, 40, 50))
with warnings.catch_warnings():
    warnings.simplefilter("error")
    wanted = [function(a, b) for function in functions]
assert [type(value) for value in wanted] == [np.float64, np.float64]
assert not {"cucim", "cupy"} & sys.modules.keys()
import lazyarray
x, y = map(lazyarray.asarray, (a, b))
with lazyarray.no_transfers(), warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    found = [function(x, y) for function in functions]
assert all(map(lazyarray.is_lazy, found)) and {w.category for w in told} == {DispatchNotification}, told
np.testing.assert_allclose(list(map(float, found)), wanted, rtol=1e-12)
with lazyarray.enabled("skimage"), lazyarray.no_transfers(), warnings.catch_warnings():
    warnings.simplefilter("error")              # who has asked for it is not told
    assert lazyarray.is_lazy(mean_squared_error(x, y))
with lazyarray.enabled("skimage", numpy=True), lazyarray.options(min_bytes=1), warnings.catch_warnings():
    warnings.simplefilter("error")
    assert lazyarray.is_lazy(mean_squared_error(a, b)) and lazyarray.is_lazy(mean_squared_error(image0=a, image1=b))
    try:
        mean_squared_error(a, b[:3])            # asked of the backend, refused by it, and not asked again
    except ValueError as error:
        print(error)
"""


def test_scikit_image_finds_it_and_unmodified_calls_run_on_the_device(tmp_path):
    assert "same dimensions" in run(PROGRAM, tmp_path)


def test_installing_it_changes_nothing_even_without_a_device(tmp_path):
    code = """
import warnings
warnings.simplefilter("error")
import numpy as np
from skimage.metrics import mean_squared_error
print(repr(mean_squared_error(np.ones(3), np.zeros(3))), repr(mean_squared_error(np.ones(3, "f4"), np.zeros(3, "f4"))))
"""
    assert run(code, tmp_path, LAZYARRAY_DEVICE="no such device") == "np.float64(1.0) np.float64(1.0)\n"


def test_scikit_image_s_switch_turns_it_off(tmp_path):
    code = """
import warnings
warnings.simplefilter("error")
from skimage.metrics import mean_squared_error
import lazyarray
print(hasattr(mean_squared_error, "__wrapped__"), float(mean_squared_error(*map(lazyarray.asarray, ([1.], [3.])))))
"""
    assert run(code, tmp_path, SKIMAGE_NO_DISPATCHING="1") == "False 4.0\n"


# -- what it says of itself ------------------------------------------------------------------------------

def test_it_names_the_functions_with_a_twin():
    from skimage.util._backends import BackendInformation

    found = declared("skimage_backend_infos").load()()
    assert isinstance(found, BackendInformation) and MSE in found.supported_functions
    assert {name.replace(":", ".") for name in found.supported_functions} == TWINS.keys() - HOST_ONLY.keys()


@pytest.mark.parametrize("part", sorted({twin.module for twin in TWINS.values()}))
def test_every_function_is_there(part):
    names = [name for name in skimage_backend.information().supported_functions if name.startswith(part + ":")]
    for name in names:
        host = getattr(import_module(part), name.partition(":")[2])
        assert skimage_backend.implementation(name).__name__ == host.__name__


# -- spatch ------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def description():
    """What spatch reads: the entry point's module as folders, and what comes after the colon as a file in it."""
    module, _, file = declared("skimage_backends").value.partition(":")
    return tomllib.loads(PACKAGE.parent.joinpath(*module.split("."), file).read_text())


def test_the_file_is_up_to_date():
    path = PACKAGE / "integrations" / "skimage" / "backend.toml"
    assert path.read_text() == skimage_listing.listing(), "tests/tools/skimage_listing.py writes it"


def found_by(name):
    module, _, path = name.partition(":")
    found = import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def test_the_file_says_what_spatch_asks_for(description):
    functions = dict(description["functions"])
    defaults = functions.pop("defaults")
    assert description["name"] == declared("skimage_backends").name and not description["requires_opt_in"]
    assert functions.keys() == set(skimage_backend.information().supported_functions)
    assert found_by(defaults["should_run"]) is skimage_backend.should_run and defaults["uses_context"]
    for name, entry in functions.items():
        assert found_by(entry["function"]).__name__ == name.partition(":")[2]
    mine = {f"{kind.__module__}:{kind.__qualname__}" for kind in (lazyarray.LazyNdarray, lazyarray.LazyScalar)}
    assert mine <= {*description["primary_types"], *description["secondary_types"]}


def asked(*kinds):
    """What spatch tells a backend of a call."""
    return types.SimpleNamespace(types=kinds, dispatch_args=(), name="lazyarray", prioritized=False)


def test_a_call_for_lazy_arrays_gives_one(description, images):
    call = found_by(description["functions"][MSE]["function"])
    lazy = tuple(map(lazyarray.asarray, images))
    context = asked(lazyarray.LazyNdarray, np.ndarray)
    for args in (lazy, (lazy[0], images[1]), tuple(images)):
        assert skimage_backend.should_run(context, *args) is True
        assert lazyarray.is_lazy(call(context, *args))
    assert not skimage_backend.should_run(context, lazy[0], [1, 2])
    assert not skimage_backend.should_run(asked(np.ndarray), *images)


def test_a_call_for_device_arrays_gives_one(description, images):
    call = found_by(description["functions"][MSE]["function"])
    kind = lazyarray.device().array_type
    context = asked(kind, np.ndarray)
    assert skimage_backend.should_run(context, *images)
    assert isinstance(call(context, *images), kind)
    assert isinstance(call(context, lazyarray.asdevice(images[0]), image1=images[1]), kind)


def test_spatch_itself_hands_calls_over(description, images, monkeypatch):
    system = pytest.importorskip("spatch.backend_system", reason="spatch on PyPI is an empty package yet")
    point = declared("skimage_backends")
    monkeypatch.setattr(system.importlib.metadata, "entry_points", lambda group: [point])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        backends = system.BackendSystem("skimage_backends", "SKIMAGE", default_primary_types=["numpy:ndarray"])

    @backends.dispatchable(["image0", "image1"], module="skimage.metrics", qualname="mean_squared_error")
    def mean_squared_error(image0, image1):
        return "on the host"

    a, b = map(lazyarray.asarray, images)
    with lazyarray.no_transfers():
        assert lazyarray.is_lazy(mean_squared_error(a, b))
    assert lazyarray.is_lazy(mean_squared_error(a, images[1]))
    assert mean_squared_error(*images) == "on the host" and mean_squared_error([1], [2]) == "on the host"
    with backends.backend_opts(type=lazyarray.LazyNdarray):
        assert lazyarray.is_lazy(mean_squared_error(*images))
    with backends.backend_opts(disable="lazyarray"):
        assert mean_squared_error(a, b) == "on the host"
