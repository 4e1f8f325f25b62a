"""Libraries of device functions: what the simulated device has of CuPy's SciPy and of cuCIM's scikit-image."""
from __future__ import annotations

import numpy as np
import pytest

import lazyarray
from lazyarray.devices.simulated import api, signatures
from lazyarray.errors import NotOnDevice

pytest.importorskip("scipy")

device = lazyarray.device()
simulated_only = pytest.mark.skipif(device.name != "simulated", reason="about what the simulated device imitates")


@pytest.fixture
def image():
    return np.arange(12.0).reshape(3, 4)


def test_a_function_takes_and_gives_device_arrays(image):
    scipy_ndimage = pytest.importorskip("scipy.ndimage")
    smooth = device.library("cupyx.scipy.ndimage").gaussian_filter(lazyarray.asdevice(image), 1.0)
    assert isinstance(smooth, device.array_type)
    np.testing.assert_allclose(lazyarray.asnumpy(smooth), scipy_ndimage.gaussian_filter(image, 1.0))


def test_an_output_is_written_and_returned(image):
    out = device.xp.zeros((3, 4))
    ndimage = device.library("cupyx.scipy.ndimage")
    ndimage.sobel(lazyarray.asdevice(image), output=out)
    assert lazyarray.asnumpy(out).any()


def test_a_keyword_that_the_device_lacks_is_refused(image):
    with pytest.raises(TypeError, match="workers"):
        device.library("cupyx.scipy.fft").fft(lazyarray.asdevice(image), workers=2)


@pytest.mark.parametrize("value", [[1.0, 2.0], np.ones(3), 2.0], ids=["list", "host array", "number"])
def test_what_is_not_on_the_device_is_refused(value):
    with pytest.raises((TypeError, AttributeError)):
        device.library("cupyx.scipy.ndimage").gaussian_filter(value, 1.0)


def test_a_module_that_is_not_there():
    with pytest.raises(NotOnDevice, match="nonsense"):
        device.library("cupyx.scipy.nonsense")


@simulated_only
def test_a_name_that_the_device_lacks():
    assert not hasattr(device.library("cupyx.scipy.stats"), "ttest_ind")


@simulated_only
@pytest.mark.parametrize("path", sorted(api.table("library_api")["FUNCTIONS"]))
def test_every_name_of_the_table_has_parameters(path):
    for name, facts in api.names_of("library_api", path).items():
        assert isinstance(facts, tuple) or not facts or signatures.parameters(facts), name


@simulated_only
def test_what_a_region_gives_is_on_the_device(image):
    pytest.importorskip("skimage")
    measure = device.library("cucim.skimage.measure")
    region = measure.regionprops(measure.label(lazyarray.asdevice(image) > 4))[0]
    assert region.area == 7
    assert isinstance(region.image, device.array_type)


def test_which_array_module(image):
    scipy = pytest.importorskip("scipy")
    library = device.library("cupyx.scipy")
    assert library.get_array_module(lazyarray.asdevice(image)).ndimage is device.library("cupyx.scipy.ndimage")
    assert library.get_array_module(image) is scipy
