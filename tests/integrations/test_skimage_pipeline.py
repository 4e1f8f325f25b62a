"""Pipelines of scikit-image: whatever the number of stages, one copy there and one back."""
from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest

import lazyarray
from lazyarray.settings.enabled import unrouted
from lazyarray.testing import assert_copies

skimage = pytest.importorskip("skimage")
data = pytest.importorskip("skimage.data")
from skimage import feature, filters, measure, morphology, restoration, segmentation, transform, util  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::lazyarray.HostFallbackWarning")


@pytest.fixture(scope="module")
def coins():
    return data.coins()[:160, :200]


@pytest.fixture(autouse=True)
def enabled():
    with lazyarray.enabled("skimage", numpy=True), lazyarray.options(min_bytes=1000):
        yield


def on_host(function, *args):
    """What scikit-image gives by itself."""
    with unrouted():
        return function(*args)


def smooth(image):
    return filters.gaussian(image, sigma=1.5)


def sharpen(image):
    return filters.unsharp_mask(image, radius=2, amount=1.5)


def edges(image):
    return filters.sobel(image)


def threshold(image):
    return image > filters.threshold_otsu(image)


def half(image):
    return transform.resize(image, tuple(n // 2 for n in image.shape), anti_aliasing=True)


def number(image):
    return measure.label(image)


STAGES = [smooth, sharpen, edges, half, threshold, number]


def chain(image, stages):
    for stage in stages:
        image = stage(image)
    return image


@pytest.mark.parametrize("count", range(1, len(STAGES) + 1))
def test_one_upload_and_one_materialisation_whatever_the_number_of_stages(coins, count):
    with assert_copies(uploads=1, materialisations=1, fallbacks=0):
        found = np.asarray(chain(coins, STAGES[:count]))
    wanted = on_host(chain, coins, STAGES[:count])
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_the_same_from_a_lazy_first_argument(coins):
    x = lazyarray.asarray(coins)
    with lazyarray.enabled("skimage"), assert_copies(uploads=0, materialisations=1, fallbacks=0):
        found = np.asarray(chain(x, STAGES))
    np.testing.assert_array_equal(found, on_host(chain, coins, STAGES))


def test_thirty_stages_cost_what_one_costs(coins):
    with assert_copies(uploads=1, materialisations=1):
        np.asarray(chain(coins, [smooth, sharpen, edges] * 10))


def test_nothing_is_fetched_before_somebody_looks(coins):
    x = lazyarray.asarray(coins)
    with lazyarray.no_transfers():
        labels = chain(x, STAGES)
        regions = measure.regionprops(labels, intensity_image=half(x))
    assert labels.dtype == on_host(chain, coins, STAGES).dtype and isinstance(regions, list)


def test_a_threshold_is_compared_where_it_is(coins):
    x = lazyarray.asarray(coins)
    with lazyarray.no_transfers():
        level = filters.threshold_otsu(x)
        mask = x > level
    assert lazyarray.is_lazy(level) and mask.dtype == bool
    assert level == on_host(filters.threshold_otsu, coins)
    np.testing.assert_array_equal(mask, coins > on_host(filters.threshold_otsu, coins))


@pytest.mark.parametrize("name, stage", [
    ("denoise_bilateral", lambda image: restoration.denoise_bilateral(image)),
    ("denoise_tv_bregman", lambda image: restoration.denoise_tv_bregman(image)),
    ("denoise_nl_means", lambda image: restoration.denoise_nl_means(image, fast_mode=True)),
    ("area_closing", lambda image: morphology.area_closing(image)),
    ("local_binary_pattern", lambda image: feature.local_binary_pattern(util.img_as_ubyte(image), 8, 1)),
    ("felzenszwalb", lambda image: segmentation.felzenszwalb(image)),
    ("random_noise", lambda image: util.random_noise(image, rng=0)),
])
def test_a_host_stage_in_the_middle_costs_its_own_input_and_output(coins, name, stage):
    before, after = [smooth, sharpen], [smooth, edges]
    with assert_copies(uploads=2, materialisations=2, fallbacks=1) as trace:
        found = np.asarray(chain(coins, [*before, stage, *after]))
    assert trace.fallbacks[0].name.endswith(name)
    there, back = trace.materialisations[0], trace.uploads[1]
    assert there.shape == back.shape == coins.shape
    np.testing.assert_allclose(found, on_host(chain, coins, [*before, stage, *after]), rtol=1e-9, atol=1e-12)


def test_a_host_stage_is_told_of(coins):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        restoration.denoise_bilateral(lazyarray.asarray(coins))
    assert [w.category for w in told] == [lazyarray.HostFallbackWarning] and "cuCIM" in str(told[0].message)


# -- regions -----------------------------------------------------------------------------------------

PROPERTIES = ("label area bbox centroid coords eccentricity euler_number extent image inertia_tensor moments_hu "
              "num_pixels orientation perimeter slice solidity intensity_mean intensity_max centroid_weighted").split()


@pytest.fixture
def labels(coins):
    return on_host(chain, coins, [smooth, threshold, number])


def test_regions_have_scikit_image_s_properties(coins, labels):
    found = measure.regionprops(lazyarray.asarray(labels), intensity_image=lazyarray.asarray(coins))
    wanted = on_host(measure.regionprops, labels, coins)
    assert len(found) == len(wanted)
    for f, w in zip(found, wanted):
        assert type(f) is type(w)
        for name in PROPERTIES:
            np.testing.assert_array_equal(getattr(f, name), getattr(w, name), strict=True, err_msg=name)


def test_all_that_is_asked_of_regions_costs_the_label_image_once(labels):
    x = lazyarray.asarray(labels)
    with lazyarray.no_transfers():
        regions = measure.regionprops(x)
    with assert_copies(uploads=0, materialisations=1, nbytes=labels.nbytes):
        largest = max(regions, key=lambda region: region.area)
        [(region.centroid, region.orientation, region.perimeter, region.coords) for region in regions]
    with lazyarray.no_transfers():
        thumbnail = transform.resize(x[largest.slice], (8, 8), preserve_range=True)
    assert thumbnail.shape == (8, 8)


def test_a_pipeline_of_regions_is_one_upload_and_one_materialisation(coins):
    with assert_copies(uploads=1, materialisations=1):
        regions = measure.regionprops(chain(coins, STAGES))
        areas = [region.area for region in regions]
    assert areas == [region.area for region in on_host(lambda: measure.regionprops(chain(coins, STAGES)))]


@pytest.mark.parametrize("name", ["feret_diameter_max", "image_convex", "solidity", "moments_hu"])
def test_what_a_region_computes_with_scikit_image_itself_stays_on_the_host(labels, name):
    """Its own calls, of names imported within its functions too, are of small arrays of the host."""
    found = max(lazy_regions(labels), key=areas_key)
    plain = max(on_host(measure.regionprops, labels), key=areas_key)
    assert not lazyarray.is_lazy(getattr(found, name))
    assert np.array_equal(getattr(found, name), getattr(plain, name))


def lazy_regions(labels):
    return measure.regionprops(lazyarray.asarray(labels))


def areas(regions):
    return [region.area for region in regions]


@pytest.mark.parametrize("look", [
    len, areas, bool, lambda r: areas(sorted(r, key=lambda region: region.area)), lambda r: r[-1].bbox,
    lambda r: areas(r[1:3]), lambda r: areas([*r]), lambda r: len([None] + r), lambda r: len(r + [None]),
    lambda r: len(r * 2), lambda r: areas(reversed(r)), lambda r: areas(copy.copy(r)), lambda r: r == [],
    lambda r: [] == r, lambda r: r != r[:], lambda r: r.index(r[2]), lambda r: r[0] in r, lambda r: areas(list(r)),
    lambda r: r.append(None) or len(r), lambda r: areas([r.pop(), r.pop(0)]), lambda r: len(np.array(r, object)),
    lambda r: repr(r), lambda r: areas(pickle.loads(pickle.dumps(r))), lambda r: r.sort(key=areas_key) or r[0].area,
    lambda r: r.__setitem__(0, None) or len(r), lambda r: r.__delitem__(0) or len(r), lambda r: len(extended([1], r)),
    lambda r: r.count(r[0]), lambda r: len({region.label for region in r}), lambda r: r.clear() or len(r),
    lambda r: isinstance(r, list), lambda r: len(added([1], r)), lambda r: max(r, key=areas_key).label,
    lambda r: len(list(zip(*[r]))), lambda r: len(r.copy()), lambda r: r.reverse() or r[0].label,
])
def test_regions_are_a_list_to_all_who_look(labels, look):
    found = look(lazy_regions(labels))
    assert found == look(on_host(measure.regionprops, labels)) or "object at 0x" in str(found)


def areas_key(region):
    return region.area


def extended(items, regions):
    items.extend(regions)
    return items


def added(items, regions):
    items += regions
    return items


def test_regions_are_those_of_the_label_image_when_it_was_asked(labels):
    x, y = lazyarray.asarray(labels), labels.copy()
    found, wanted = measure.regionprops(x), on_host(measure.regionprops, y)
    for image in (x, y):
        image[:60] = 0              # written to before anybody looks: scikit-image has the boxes by then, no more
    assert [region.bbox for region in found] == [region.bbox for region in wanted]
    assert [region.image.sum() for region in found] == [region.image.sum() for region in wanted]


def test_labels_that_somebody_else_holds_are_fetched_once(labels):
    """A profiler that looks at the frames of a function holds its arrays a moment longer."""
    x = lazyarray.asarray(labels)
    held = lazyarray.device().from_foreign(lazyarray.asdevice(x))
    regions = measure.regionprops(x)
    with lazyarray.trace() as record:
        found = areas(regions)
    assert [event.nbytes for event in record.materialisations if event.nbytes > 1] == [labels.nbytes]
    assert found == areas(on_host(measure.regionprops, labels)) and held.nbytes == labels.nbytes


@pytest.mark.together
@pytest.mark.parametrize("meanwhile", [lambda x: None, lambda x: x + 1, lambda x: x[0]], ids=["", "used", "looked at"])
@pytest.mark.parametrize("kept", [True, False])
def test_what_gpu_code_writes_to_the_labels_meanwhile(labels, kept, meanwhile):
    x, y = lazyarray.asarray(labels), labels.copy()
    handle = lazyarray.device().from_foreign(lazyarray.asdevice(x))
    found, wanted = measure.regionprops(x), on_host(measure.regionprops, y)
    for image in (handle, y):
        image[:60] = 0
    if not kept:
        del handle, image
    meanwhile(x)
    assert [region.bbox for region in found] == [region.bbox for region in wanted]
    assert [region.image.sum() for region in found] == [region.image.sum() for region in wanted]


def test_a_finaliser_that_looks_while_regions_are_found(labels):
    found, within = lazy_regions(labels), []
    look = found._unseen.look

    def looked():
        regions = look()
        if not within:
            within.append(None)
            within.append(areas(found))
        return regions

    found._unseen.look = looked
    wanted = areas(on_host(measure.regionprops, labels))
    assert areas(found) == wanted and within == [None, wanted]


def test_regions_see_what_is_written_to_the_label_image(labels):
    x, y = lazyarray.asarray(labels), labels.copy()
    for image in (x, y):
        for region in on_host(measure.regionprops, image) if image is y else measure.regionprops(image):
            if region.area < 50:
                image[tuple(region.coords.T)] = 0
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("dtype, shape", [(float, (4, 4)), (bool, (4, 4)), (int, (4,)), (int, (2, 2, 2, 2))])
def test_what_scikit_image_refuses_is_refused_at_once(dtype, shape):
    image = np.ones(shape, dtype)
    with pytest.raises(TypeError) as wanted:
        on_host(measure.regionprops, image)
    with pytest.raises(TypeError) as found:
        measure.regionprops(lazyarray.asarray(image))
    assert str(found.value) == str(wanted.value)


@pytest.mark.parametrize("options", [
    {"spacing": (2, 3)}, {"offset": (5, 7)}, {"cache": False},
    {"extra_properties": [lambda image: image.sum()]}, {"intensity_image": np.ones((3, 3))},
], ids=lambda options: next(iter(options)))
def test_options_of_regions(labels, options):
    def outcome(labels):
        try:
            return [(region.centroid, region.coords.tolist()) for region in measure.regionprops(labels, **options)]
        except ValueError as error:
            return str(error)

    assert outcome(lazyarray.asarray(labels)) == on_host(outcome, labels)


# -- pyramids ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("function", [transform.pyramid_gaussian, transform.pyramid_laplacian])
def test_the_levels_of_a_pyramid_stay_on_the_device(coins, function):
    x = lazyarray.asarray(coins)
    with lazyarray.no_transfers():
        levels = function(x, max_layer=3)
        assert iter(levels) is levels
        levels = list(levels)
    wanted = on_host(lambda: list(function(coins, max_layer=3)))
    assert [level.shape for level in levels] == [level.shape for level in wanted]
    for found, level in zip(levels, wanted):
        np.testing.assert_allclose(found, level, rtol=1e-9, atol=1e-12)


def test_a_pyramid_refuses_when_its_first_level_is_asked_for(coins):
    levels = transform.pyramid_gaussian(lazyarray.asarray(coins), downscale=0.5)
    with pytest.raises(ValueError, match="scale factor must be greater than 1"):
        next(levels)
