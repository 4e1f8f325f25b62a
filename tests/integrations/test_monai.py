"""MONAI's transforms with lazy arrays: what they return, what it costs, and that nothing stays behind."""
from __future__ import annotations

import copy
import pickle
import runpy
import sys
import threading
from importlib.util import find_spec

import numpy as np
import pytest

import lazyarray
from lazyarray.testing import assert_copies

torch = pytest.importorskip("torch")
monai = pytest.importorskip("monai")
from monai import transforms as mt  # noqa: E402
from monai.data import MetaTensor  # noqa: E402

ON_CUDA = lazyarray.device().name == "cuda"
PLACE = "cuda" if ON_CUDA else "cpu"
pytestmark = pytest.mark.filterwarnings("ignore")
IMAGE = (np.random.default_rng(0).random((1, 16, 20)) * 3 - 1).astype("f4")
VOLUME = np.random.default_rng(1).random((2, 8, 9, 10)).astype("f4")
LABELS = (IMAGE > 0.5).astype("f4")

#: On the device from end to end: no array is copied, only single numbers.
ON_DEVICE = {
    "ScaleIntensity": (), "ScaleIntensityFixedMean": (), "ShiftIntensity": (3.0,), "StdShiftIntensity": (1.5,),
    "NormalizeIntensity": (), "ThresholdIntensity": (0.3,), "ScaleIntensityRange": (-1, 2, 0.0, 1.0, True),
    "AdjustContrast": (1.5,), "ScaleIntensityRangePercentiles": (5, 95, 0.0, 1.0), "MaskIntensity": (LABELS,),
    "SavitzkyGolaySmooth": (5, 2), "MedianSmooth": (1,), "GaussianSmooth": (1.0,), "GaussianSharpen": (),
    "HistogramNormalize": (), "GibbsNoise": (0.5,), "KSpaceSpikeNoise": (((0, 5, 5),),), "DetectEnvelope": (),
    "ClipIntensityPercentiles": (5, 95), "Flip": (0,), "Rotate90": (), "Rotate": (0.5,), "Zoom": (1.3,),
    "Resize": ((9, 11),), "Spacing": ((2.0, 1.5),), "Affine": (0.3,), "GridDistortion": (4, [(1.1, 1, 0.9, 1)] * 2),
    "Pad": ([(0, 0), (2, 3), (1, 1)],), "SpatialPad": ((20, 24),), "BorderPad": (2,), "DivisiblePad": (8,),
    "CenterSpatialCrop": ((6, 7),), "CenterScaleCrop": (0.5,), "SpatialCrop": ((8, 8), (6, 6)),
    "CropForeground": (), "ResizeWithPadOrCrop": ((10, 30),), "EnsureType": (), "ToNumpy": (),
    "CastToType": (np.float64,), "Transpose": ((0, 2, 1),), "SqueezeDim": (), "RepeatChannel": (2,), "SplitDim": (),
    "Identity": (), "LabelToMask": ([1],), "Activations": (True,), "AsDiscrete": (None, None, 0.5),
    "LabelToContour": (), "SobelGradients": (), "ImageFilter": ("sobel", 3), "MapLabelValue": ([0, 1], [5, 7]),
    "Lambda": (lambda a: a * 2,),
    "RandGaussianNoise": (1.0,), "RandShiftIntensity": (1.0, None, False, 1.0), "RandScaleIntensity": (0.5, 1.0),
    "RandAdjustContrast": (1.0,), "RandFlip": (1.0,), "RandRotate90": (1.0,), "RandRotate": (0.4, 0.0, 0.0, 1.0),
    "RandZoom": (1.0,), "RandSpatialCrop": ((5, 6),), "RandGaussianSmooth": ((0.5, 1.0),) * 2,
    "RandBiasField": (3, (0.0, 0.1), 1.0), "Rand2DElastic": ((4, 4), (1, 2), 1.0), "RandAffine": (1.0, 0.3),
    "RandHistogramShift": (), "RandCoarseDropout": (2, 3), "RandAxisFlip": (1.0,), "RandStdShiftIntensity": (1.0,),
    "RandGibbsNoise": (1.0,), "RandScaleCrop": (0.5,), "RandSpatialCropSamples": ((4, 4), 2),
    "RandWeightedCrop": ((5, 5), 2, LABELS), "RandCropByPosNegLabel": ((6, 6), LABELS, 1.0, 1.0, 2),
}
#: In part on the host, as MONAI has them.
ON_HOST = {
    "GridSplit": ((2, 2),), "GridPatch": ((8, 8),), "AddCoordinateChannels": ((0, 1),), "BoundingRect": (),
    "KeepLargestConnectedComponent": (), "RemoveSmallObjects": (2,), "LabelFilter": ([1],), "FillHoles": (),
    "DistanceTransformEDT": (), "FgBgToIndices": (), "ForegroundMask": (),
}
OF_LABELS = {"LabelToMask", "MapLabelValue", "BoundingRect", "KeepLargestConnectedComponent", "RemoveSmallObjects",
             "LabelFilter", "FillHoles", "DistanceTransformEDT", "FgBgToIndices", "AsDiscrete", "LabelToContour"}
#: Float32 arithmetic in another order, and interpolation at coordinates that differ by that.
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4} if ON_CUDA else {"rtol": 1e-5, "atol": 1e-6}


def made(name, arguments):
    transform = getattr(mt, name)(*arguments)
    if hasattr(transform, "set_random_state"):
        transform.set_random_state(3)
    return transform


def flat(result):
    if isinstance(result, dict):
        return [leaf for key in result for leaf in flat(result[key])]
    return [leaf for item in result for leaf in flat(item)] if isinstance(result, (list, tuple)) else [result]


def host(array):
    return lazyarray.asnumpy(array.cpu() if isinstance(array, torch.Tensor) else array)


def assert_same(found, expected, **tolerance):
    found, expected = flat(found), flat(expected)
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        assert lazyarray.is_lazy(a)
        assert (a.shape, a.dtype) == (tuple(b.shape), host(b).dtype)
        np.testing.assert_allclose(host(a), host(b), **(tolerance or TOLERANCE))


def assert_few(record):
    """No picture was copied; MONAI computes matrices of coordinates on the host, and asks for single numbers."""
    assert max((event.nbytes for event in record.materialisations), default=0) <= 128, record.table()
    assert not record.uploads, record.table()


def image_for(name):
    if name in OF_LABELS:
        return LABELS
    return np.abs(IMAGE) if name == "ForegroundMask" else IMAGE


# One transform.

@pytest.mark.parametrize("name", ON_DEVICE)
def test_a_transform_takes_and_returns_lazy_arrays_without_copying_one(name):
    image = image_for(name)
    x, plain = lazyarray.asarray(image), image.copy()
    expected = made(name, ON_DEVICE[name])(plain)
    transform = made(name, ON_DEVICE[name])
    with lazyarray.enabled("monai"), lazyarray.trace() as record:
        found = transform(x)
    assert_same(found, expected)
    # On CUDA torch uploads what a transform is made of (kernels, masks, grids) past us.
    assert_few(record)
    assert not record.fallbacks
    np.testing.assert_allclose(host(x), plain, **TOLERANCE)     # some of them write into what they are given


@pytest.mark.parametrize("name", ON_HOST)
def test_a_transform_that_works_on_the_host_in_part_gives_lazy_arrays_too(name):
    image = image_for(name)
    expected = made(name, ON_HOST[name])(image.copy())
    with lazyarray.enabled("monai"):
        found = made(name, ON_HOST[name])(lazyarray.asarray(image))
    assert_same(found, expected)


@pytest.mark.parametrize("transform", [
    mt.Flip((0, 2)), mt.Zoom(0.7), mt.Resize((5, 6, 7), mode="trilinear"), mt.Spacing((2.0, 1.0, 0.5)),
    pytest.param(mt.Orientation("SAR"), marks=pytest.mark.skipif(find_spec("nibabel") is None, reason="no nibabel")),
    mt.Rotate90(1, (1, 2)), mt.NormalizeIntensity(channel_wise=True), mt.GaussianSmooth(1.0),
    mt.SpatialPad((12, 12, 12)), mt.CenterSpatialCrop((4, 4, 4)), mt.EnsureType(), mt.Affine((0.1, 0.2, 0.3)),
], ids=lambda t: type(t).__name__)
def test_volumes(transform):
    expected = transform(VOLUME.copy())
    x = lazyarray.asarray(VOLUME)
    with lazyarray.enabled("monai"), lazyarray.trace() as record:
        found = transform(x)
    assert_few(record)
    assert_same(found, expected)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "int16", "int64", "float16", "float64", "bool"])
@pytest.mark.parametrize("transform", [mt.Flip(0), mt.EnsureType(), mt.ToNumpy(), mt.CenterSpatialCrop((4, 4))],
                         ids=lambda t: type(t).__name__)
def test_dtypes_are_what_they_are_with_numpy(transform, dtype):
    image = (IMAGE * 10).astype(dtype)
    with lazyarray.enabled("monai"):
        found = transform(lazyarray.asarray(image))
    assert_same(found, transform(image.copy()), rtol=0)


@pytest.mark.parametrize("view", [lambda a: a[:, ::2, ::-1], lambda a: a.swapaxes(1, 2),
                                  lambda a: np.broadcast_to(a, (3, 16, 20))], ids=["reversed", "swapped", "broadcast"])
@pytest.mark.parametrize("transform", [mt.ScaleIntensity(), mt.Flip(0), mt.Resize((7, 8))],
                         ids=lambda t: type(t).__name__)
def test_views_and_read_only_arrays(view, transform):
    with lazyarray.enabled("monai"):
        found = transform(view(lazyarray.asarray(IMAGE)))
    assert_same(found, transform(view(IMAGE).copy()))


def test_a_result_that_is_a_view_of_the_input_shares_its_memory():
    x = lazyarray.asarray(IMAGE)
    with lazyarray.enabled("monai"):
        part = mt.SqueezeDim()(x)
        same = mt.EnsureType()(x)
    assert np.shares_memory(part, x) and np.shares_memory(same, x)
    part[0, 0] = 70
    assert x[0, 0, 0] == 70 and same[0, 0, 0] == 70


def test_a_result_is_fetched_once():
    with lazyarray.enabled("monai"):
        found = mt.GaussianSmooth(1.0)(lazyarray.asarray(IMAGE))
    with assert_copies(uploads=0, materialisations=1):
        np.asarray(found)
        np.asarray(found)


@pytest.mark.parametrize("transform", [mt.Resize((4, 4, 4, 4)), mt.Flip(7), mt.CenterSpatialCrop("a"),
                                       mt.Compose([mt.Flip(7)])])
def test_what_monai_refuses_is_refused_as_with_numpy(transform):
    with pytest.raises(Exception) as numpys:
        transform(IMAGE.copy())
    with lazyarray.enabled("monai"), pytest.raises(numpys.type) as ours:
        transform(lazyarray.asarray(IMAGE))
    assert str(ours.value) == str(numpys.value)


def test_what_a_transform_writes_goes_where_it_goes_with_numpy():
    def write(image):
        image[0, 0, 0] = 9
        return image

    for view in (lambda a: a, lambda a: a[:, :, ::-1], lambda a: a[:, ::2]):
        x, plain = lazyarray.asarray(IMAGE), IMAGE.copy()
        transform = mt.Compose([mt.EnsureType(), mt.Lambda(write)])
        with lazyarray.enabled("monai"):
            transform(view(x))
        transform(view(plain).copy() if view(plain).strides[-1] < 0 else view(plain))
        assert np.array_equal(host(x), plain)
    x = lazyarray.asarray(IMAGE)
    x.flags.writeable = False
    with lazyarray.enabled("monai"):
        assert transform(x)[0, 0, 0] == 9
    assert np.array_equal(host(x), IMAGE)


# Chains.

def chain():
    return mt.Compose([
        mt.ScaleIntensity(), mt.Spacing((2.0, 2.0)), mt.ToNumpy(), mt.Lambda(lambda a: np.sqrt(a)), mt.EnsureType(),
        mt.Rotate90(), mt.Spacing((1.0, 1.0)), mt.RandGaussianNoise(1.0, std=0.01), mt.SpatialPad((24, 24)),
        mt.RandFlip(1.0), mt.CastToType(np.float32),
    ]).set_random_state(5)


def test_a_chain_of_mixed_transforms_copies_nothing():
    expected = chain()(IMAGE.copy())
    x = lazyarray.asarray(IMAGE)
    with lazyarray.enabled("monai"), lazyarray.trace() as record:
        found = chain()(x)
    assert_few(record)
    assert_same(found, expected)


def test_tensors_keep_their_metadata_within_a_chain_and_lose_it_at_its_end():
    seen = []
    both = mt.Compose([mt.Spacing((2.0, 2.0)), mt.Lambda(lambda a: (seen.append(a), a)[1])])
    with lazyarray.enabled("monai"):
        found = both(lazyarray.asarray(IMAGE))
    assert type(seen[0]) is MetaTensor and np.diag(seen[0].affine).tolist() == [2, 2, 1, 1]
    assert seen[0].applied_operations[0]["class"] == "SpatialResample"
    assert type(found) is lazyarray.LazyNdarray


def test_resampling_that_monai_puts_off_is_done_at_the_end_of_the_chain():
    lazy = mt.Compose([mt.Spacing((2.0, 2.0)), mt.Rotate90(), mt.Zoom(1.5, keep_size=False)], lazy=True)
    expected = lazy(IMAGE.copy())
    with lazyarray.enabled("monai"):
        assert_same(lazy(lazyarray.asarray(IMAGE)), expected)
        pending = mt.Flip(0, lazy=True)(lazyarray.asarray(IMAGE))
    assert type(pending) is MetaTensor and pending.has_pending_operations


def test_what_monai_chooses_at_random_is_chosen_as_with_numpy():
    chains = [mt.OneOf([mt.Flip(0), mt.ShiftIntensity(2.0), mt.Zoom(1.4)]),
              mt.SomeOf([mt.Flip(0), mt.ShiftIntensity(2.0), mt.Rotate90()], num_transforms=2),
              mt.RandomOrder([mt.Flip(0), mt.ThresholdIntensity(0.2), mt.ShiftIntensity(2.0)])]
    for transform in chains:
        expected = transform.set_random_state(11)(IMAGE.copy())
        with lazyarray.enabled("monai"):
            assert_same(transform.set_random_state(11)(lazyarray.asarray(IMAGE)), expected)


# Transforms whose point is a type.

@pytest.mark.parametrize("transform", [mt.ToTensor(), mt.Compose([mt.Flip(0), mt.ToTensor()])],
                         ids=["alone", "last in a chain"])
def test_to_tensor_gives_a_tensor_on_the_device(transform):
    x = lazyarray.asarray(IMAGE)
    with lazyarray.enabled("monai"), assert_copies(uploads=0, materialisations=0):
        found = transform(x)
    assert type(found) is MetaTensor and found.device.type == PLACE
    assert found.tolist() == transform(IMAGE.copy()).tolist()


def test_to_tensor_shares_memory():
    x = lazyarray.asarray(IMAGE)
    with lazyarray.enabled("monai"):
        found = mt.ToTensor()(x)
    found[0, 0, 0] = 70
    x[0, 0, 1] = 80
    assert x[0, 0, 0] == 70 and found[0, 0, 1] == 80


def test_to_cupy_works_on_device_arrays():
    seen = []
    transform = mt.Compose([mt.ScaleIntensity(), mt.ToCupy(), mt.Lambda(lambda a: (seen.append(a), a * 2)[1])])
    x = lazyarray.asarray(IMAGE)
    with lazyarray.enabled("monai"), assert_copies(uploads=0, materialisations=0):
        found = transform(x)
        alone = mt.ToCupy()(x)
        typed = mt.ToCupy(dtype=np.float64)(x)
    assert isinstance(seen[0], lazyarray.device().array_type)
    assert_same(found, mt.ScaleIntensity()(IMAGE) * 2)
    assert np.shares_memory(alone, x) and typed.dtype == np.float64
    assert_same([alone, typed], [IMAGE, IMAGE.astype(float)])


class Flips:
    """A function of device arrays, as those in ``cucim.core.operations.expose.transform``."""

    def __init__(self):
        self.given = []

    def __call__(self, image, axis=1):
        self.given.append(image)
        return lazyarray.device().xp.flip(image, axis)


def flipping(kind=mt.CuCIM):
    transform = kind("image_flip", axis=2)
    transform.transform = Flips()
    return transform


@pytest.mark.parametrize("kind", [mt.CuCIM, mt.RandCuCIM])
def test_cucim_takes_lazy_arrays_alone_and_in_a_chain(kind):
    transform = flipping(kind)
    x = lazyarray.asarray(IMAGE)
    with lazyarray.enabled("monai"), lazyarray.trace() as record:
        alone = transform(x)
        chained = mt.Compose([mt.Spacing((2.0, 2.0)), transform, mt.ScaleIntensity(), mt.Spacing((1.0, 1.0))])(x)
        mixed = mt.Compose([mt.ToCupy(), transform, mt.EnsureType(), mt.Rotate90()])(x)
    assert_few(record)
    assert all(isinstance(a, lazyarray.device().array_type) for a in transform.transform.given)
    assert_same(alone, np.flip(IMAGE, 2))
    numpys = mt.Compose([mt.Spacing((2.0, 2.0)), mt.Flip(1), mt.ScaleIntensity()])(IMAGE)
    numpys.affine = torch.diag(torch.tensor([2.0, 2.0, 1.0, 1.0]))      # cuCIM's flip says nothing of coordinates
    assert_same(chained, mt.Spacing((1.0, 1.0))(numpys))
    assert_same(mixed, np.rot90(np.flip(IMAGE, 2), 1, (1, 2)))


@pytest.mark.skipif(not ON_CUDA, reason="cuCIM needs a GPU")
def test_cucims_own_functions():
    pytest.importorskip("cucim")
    x = lazyarray.asarray(np.repeat(IMAGE, 3, 0))
    with lazyarray.enabled("monai"), assert_copies(uploads=0, materialisations=0):
        flipped = mt.CuCIM("image_flip", spatial_axis=(1,))(x)
        scaled = mt.Compose([mt.Flip(0), mt.CuCIM("scale_intensity_range", a_min=-1, a_max=2, b_min=0, b_max=1,
                                                  clip=False), mt.GaussianSmooth(1.0)])(x)
    assert lazyarray.is_lazy(flipped) and lazyarray.is_lazy(scaled)
    expected = mt.Compose([mt.Flip(0), mt.ScaleIntensityRange(-1, 2, 0, 1), mt.GaussianSmooth(1.0)])
    np.testing.assert_allclose(host(scaled), expected(np.repeat(IMAGE, 3, 0)).numpy(), atol=1e-4)


# Dictionaries.

def test_dictionary_transforms():
    data = {"image": IMAGE, "label": LABELS, "name": "a", "spacing": np.array([1.0, 2.0])}
    transform = mt.Compose([
        mt.ScaleIntensityd("image"), mt.Spacingd(["image", "label"], (1.7, 1.3), mode=("bilinear", "nearest")),
        mt.RandFlipd(["image", "label"], 1.0), mt.SpatialPadd(["image", "label"], (20, 20)), mt.EnsureTyped("image"),
        mt.AsDiscreted("label", threshold=0.5), mt.CopyItemsd("image", names="copy")]).set_random_state(0)
    expected = transform(dict(data))
    lazy = {"image": lazyarray.asarray(IMAGE), "label": lazyarray.asarray(LABELS)}
    with lazyarray.enabled("monai"), lazyarray.trace() as record:
        found = transform.set_random_state(0)(data | lazy)
    assert_few(record)
    assert found.keys() == expected.keys()
    for key in ("image", "label", "copy"):
        assert_same(found[key], expected[key])
    assert found["name"] == "a" and found["spacing"] is data["spacing"]


def test_beside_tensors_of_the_callers_only_the_lazy_ones_become_lazy():
    label = MetaTensor(torch.from_numpy(LABELS).to(PLACE))
    with lazyarray.enabled("monai"):
        found = mt.Flipd(["image", "label"], 0)({"image": lazyarray.asarray(IMAGE), "label": label})
    assert lazyarray.is_lazy(found["image"]) and type(found["label"]) is MetaTensor
    assert found["label"].tolist() == np.flip(LABELS, 1).tolist()


# Who is served, and what stays behind.

@pytest.mark.parametrize("data", [IMAGE, torch.from_numpy(IMAGE), MetaTensor(IMAGE)], ids=["ndarray", "tensor", "meta"])
def test_calls_without_a_lazy_array_are_monais_own(data):
    with lazyarray.enabled("monai"), assert_copies(uploads=0, materialisations=0):
        found = mt.Flip(0)(data)
    assert type(found) is type(mt.Flip(0)(data))


def test_large_host_arrays_go_to_the_device_if_asked_to():
    with lazyarray.enabled("monai", numpy=True), lazyarray.options(min_bytes=IMAGE.nbytes):
        with assert_copies(uploads=1, materialisations=0):
            found = mt.Flip(0)(IMAGE)
        small = mt.Flip(0)(IMAGE[:, :4])
    assert_same(found, np.flip(IMAGE, 1))
    assert type(small) is MetaTensor


def calls():
    from monai.data import meta_tensor  # noqa: F401
    from monai.utils import type_conversion

    kinds = {kind: vars(kind)["__call__"] for kind in vars(mt).values()
             if isinstance(kind, type) and "__call__" in vars(kind)}
    functions = {name: getattr(module, name) for module in (type_conversion, monai.utils, mt.utils, mt.intensity.array)
                 for name in ("convert_to_tensor", "convert_to_dst_type", "convert_data_type") if hasattr(module, name)}
    return kinds | functions | {name: getattr(type_conversion, name) for name in ("cp", "has_cp", "cp_ndarray")}


def test_everything_is_put_back():
    lazyarray.disable()
    before = calls()
    with lazyarray.enabled("monai"):
        within = calls()
        with lazyarray.enabled("monai"):
            pass
        assert calls() == within
    assert within != before
    lazyarray.disable()
    assert all(after is before[key] for key, after in calls().items())
    x = lazyarray.asarray(IMAGE)
    assert type(mt.Flip(0)(x)) is MetaTensor


def test_it_decorates_a_chain_too():
    decorated = lazyarray.enabled("monai")(mt.Compose([mt.Flip(0), mt.ScaleIntensity()]))
    assert_same(decorated(lazyarray.asarray(IMAGE)), mt.ScaleIntensity()(np.flip(IMAGE, 1).copy()))


class TestLazy:
    """`lazyarray.lazy` of a transform."""

    def test_output_follows_the_caller(self):
        chain = lazyarray.lazy(mt.Compose([mt.Flip(0), mt.ScaleIntensity()]), pure=True)
        expected = mt.ScaleIntensity()(np.flip(IMAGE, 1).copy())
        x = lazyarray.asarray(IMAGE)
        with lazyarray.no_transfers():
            found = chain(x)
        assert_same(found, expected)
        assert_same(chain(IMAGE), expected)
        device = lazyarray.device()
        there = chain(device.from_foreign(lazyarray.asdevice(x)))
        assert isinstance(there, device.array_type)
        np.testing.assert_allclose(lazyarray.asnumpy(there), expected, **TOLERANCE)
        tensor = torch.as_tensor(IMAGE)
        assert isinstance(chain(tensor), torch.Tensor)

    def test_of_dictionaries(self):
        chain = lazyarray.lazy(mt.Compose([mt.ScaleIntensityd("image"), mt.Flipd("image", 0)]))
        found = chain({"image": IMAGE, "label": 3})
        assert lazyarray.is_lazy(found["image"]) and found["label"] == 3

    def test_it_stays_the_transform(self):
        chain = lazyarray.lazy(mt.Compose([mt.RandFlip(0.5), mt.ScaleIntensity()]))
        assert isinstance(chain, mt.Compose) and len(chain.transforms) == 2
        found = []
        for one in (chain, pickle.loads(pickle.dumps(chain)), copy.deepcopy(chain)):
            one.set_random_state(3)
            found.append(np.asarray(one(lazyarray.asarray(IMAGE))))
        assert (found[0] == found[1]).all() and (found[0] == found[2]).all()
        assert copy.deepcopy(chain).transforms[0] is not chain.transforms[0]

    def test_nothing_stays_enabled(self):
        lazyarray.lazy(mt.Flip(0))(lazyarray.asarray(IMAGE))
        assert type(mt.Flip(0)(lazyarray.asarray(IMAGE))) is MetaTensor

    def test_what_makes_no_sense_is_refused(self):
        for options in ({"writes": ("img",)}, {"host": mt.Flip(0)}):
            with pytest.raises(TypeError, match="modifies no arguments"):
                lazyarray.lazy(mt.Flip(0), **options)

    def test_a_class_of_one_s_own_is_a_function_of_one_s_own(self):
        class Twice(mt.Transform):
            def __call__(self, array):
                assert isinstance(array, lazyarray.device().array_type)
                return array * 2

        found = lazyarray.lazy(Twice())(lazyarray.asarray(IMAGE))
        assert lazyarray.is_lazy(found) and np.allclose(np.asarray(found), IMAGE * 2)


def test_where_lazy_arrays_are_switched_off_results_are_numpys():
    x = lazyarray.asarray(IMAGE)
    with lazyarray.enabled("monai"), lazyarray.options(lazy=False):
        found = mt.Flip(0)(x)
    assert type(found) is np.ndarray and np.array_equal(found, np.flip(IMAGE, 1))


def test_another_thread_has_its_own_setting():
    found = []
    x = lazyarray.asarray(IMAGE)
    with lazyarray.enabled("monai"):
        thread = threading.Thread(target=lambda: found.append(mt.Flip(0)(x)))
        thread.start()
        thread.join()
    assert type(found[0]) is MetaTensor
    lazyarray.enable("monai")
    try:
        thread = threading.Thread(target=lambda: found.append(mt.Flip(0)(x)))
        thread.start()
        thread.join()
    finally:
        lazyarray.disable("monai")
    assert_same(found[1], np.flip(IMAGE, 1))


def test_a_transform_that_fails_leaves_nothing_behind():
    def failing(image):
        raise OSError("no such lesion")

    x = lazyarray.asarray(IMAGE)
    with lazyarray.enabled("monai"):
        with pytest.raises((OSError, RuntimeError)):
            mt.Compose([mt.Flip(0), mt.Lambda(failing)])(x)
        assert_same(mt.Flip(0)(x), np.flip(IMAGE, 1))
    assert type(mt.Flip(0)(x)) is MetaTensor


def test_without_enabling_a_transform_gives_what_monai_makes_of_an_array():
    x = lazyarray.asarray(IMAGE)
    found = mt.ScaleIntensity()(x)
    assert type(found) is MetaTensor
    np.testing.assert_allclose(host(found), mt.ScaleIntensity()(IMAGE).numpy(), **TOLERANCE)


def test_a_tensor_with_metadata_becomes_a_lazy_array_without():
    tensor = MetaTensor(torch.from_numpy(IMAGE).to(PLACE))
    x = lazyarray.asarray(tensor)
    assert type(x) is lazyarray.LazyNdarray and np.array_equal(host(x), IMAGE)
    tensor[0, 0, 0] = 70
    assert (x[0, 0, 0] == 70) == ON_CUDA
    back = MetaTensor(torch.as_tensor(x))
    assert back.device.type == PLACE and back.shape == x.shape


# A network's way through: lazy image, transforms, loader, inferer.

def test_from_a_dataset_through_a_loader():
    from monai.data import DataLoader, Dataset

    data = [{"image": lazyarray.asarray(IMAGE + i), "label": i} for i in range(4)]
    transform = mt.Compose([mt.ScaleIntensityd("image"), mt.Resized("image", (8, 8))])
    with lazyarray.enabled("monai"), assert_copies(uploads=0, materialisations=0):
        batches = list(DataLoader(Dataset(data, transform), batch_size=2))
    expected = [transform({"image": IMAGE + i})["image"] for i in range(4)]
    assert [tuple(batch["image"].shape) for batch in batches] == [(2, 1, 8, 8)] * 2
    found = torch.cat([batch["image"] for batch in batches]).cpu()
    np.testing.assert_allclose(found.numpy(), torch.stack(expected).numpy(), **TOLERANCE)


def test_the_example_copies_once_each_way(tmp_path, monkeypatch, capsys):
    from example_runs import ROOT, run

    pytest.importorskip("skimage")
    text = run(ROOT / "examples" / "monai_transforms.py", tmp_path)
    assert "\n1 upload (5.7 MiB" in text and "(1.2 MiB" in text and text.count("MiB ") == 2 and "fallback" not in text
    assert "LazyNdarray of shape (3, 640, 640)" in text and (tmp_path / "monai.png").stat().st_size > 1e5
    assert float(text.split()[-1]) < (1e-3 if ON_CUDA else 1e-5)
    monkeypatch.setattr(sys, "argv", ["monai_transforms.py", "--help"])
    with pytest.raises(SystemExit):     # in this process: a new one would import torch once more
        runpy.run_path(str(ROOT / "examples" / "monai_transforms.py"), run_name="__main__")
    assert "--seed" in capsys.readouterr().out
