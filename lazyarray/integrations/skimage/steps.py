"""What is done on the device before and after a function of cuCIM, so that its result is scikit-image's.

cuCIM computes with images of 8 and 16 bits in single precision, scikit-image in double; so they are made double before.
How depends on what scikit-image does first: scale an image to [0, 1] (`scaled`), keep its values (`kept`), or one of
both as ``preserve_range`` says (`ranged`).
"""
from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any

import numpy as np

from ... import devices
from ..routing.conditions import Condition, only_if
from ..routing.twin import Twin

__all__ = ["Prepared"]

Before = Callable[[dict[str, Any]], None]
"""Changes the arguments of a call, given by name, device arrays among them."""

After = Callable[[Any, dict[str, Any]], Any]
"""The result, from the device's and the arguments."""

SMALL = frozenset("?bBhH")
"""Dtypes that cuCIM computes with in single precision."""

_NO_ARRAYS = frozenset({bool, int, float, str, type(None)})


@dataclass(frozen=True)
class Prepared(Twin):
    """A twin with steps before and after it, on the device."""

    before: Before | None = None
    after: After | None = None

    @cached_property
    def function(self) -> Callable[..., Any]:
        plain = self.plain_function
        signature = inspect.signature(plain)

        @wraps(plain)
        def prepared(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            if self.before is not None:
                self.before(bound.arguments)
            result = plain(*bound.args, **bound.kwargs)
            return result if self.after is None else self.after(result, bound.arguments)

        return prepared

    @property
    def plain_function(self) -> Callable[..., Any]:
        """cuCIM's own."""
        found: Callable[..., Any] = Twin.function.func(self)    # type: ignore[attr-defined]
        return found


# -- before ------------------------------------------------------------------------------------

def is_small(value: Any) -> bool:
    """Whether a device array has a dtype that cuCIM would compute with in single precision."""
    if type(value) in _NO_ARRAYS:
        return False
    dtype: Any = getattr(value, "dtype", None)
    return isinstance(value, devices.current().array_type) and dtype.char in SMALL


def to_unit(array: Any) -> Any:
    """A device array scaled as scikit-image scales images of its dtype, in double precision."""
    return devices.current().library("cucim.skimage.util").img_as_float64(array)


def _converting(convert: Callable[[Any], Any], names: tuple[str, ...]) -> Before:
    """Convert the images of small dtypes among these arguments, or the first argument."""
    def step(given: dict[str, Any]) -> None:
        for name in names or [next(iter(given))]:
            if is_small(given.get(name)):
                given[name] = convert(given[name])

    return step


def scaled(*names: str) -> Before:
    """Images that scikit-image scales to [0, 1] or [-1, 1]; without names, the first argument."""
    return _converting(to_unit, names)


def kept(*names: str) -> Before:
    """Images whose values scikit-image keeps; without names, the first argument."""
    return _converting(lambda image: image.astype(np.float64), names)


def doubled(*names: str) -> Before:
    """Images of integers, of any width, whose values scikit-image keeps in double precision."""
    def step(given: dict[str, Any]) -> None:
        for name in names:
            if isinstance(given[name], devices.current().array_type) and given[name].dtype.kind in "biu":
                given[name] = given[name].astype(np.float64)

    return step


def ranged(given: dict[str, Any]) -> None:
    """An image that is scaled unless ``preserve_range`` is true."""
    (kept if given.get("preserve_range") else scaled)("image")(given)


def interpolated(given: dict[str, Any]) -> None:
    """As `ranged`; but nearest neighbours are taken of the image as it is, by default of a boolean one."""
    options = {**given, **(given.get("kwargs") or {})}
    if is_small(given["image"]) and options.get("order") != 0 and given["image"].dtype.char != "?":
        (kept if options.get("preserve_range") else scaled)("image")(given)


def warped(given: dict[str, Any]) -> None:
    """As `interpolated`, with cuCIM's transform in the place of scikit-image's."""
    interpolated(given)
    if is_homography(given["inverse_map"]):
        device = devices.current()
        make = device.library("cucim.skimage.transform").ProjectiveTransform
        given["inverse_map"] = make(matrix=device.xp.asarray(given["inverse_map"].params.tolist()))     # nine numbers


def thresholds_of_canny(given: dict[str, Any]) -> None:
    """Thresholds are in units of the image's dtype."""
    image = given["image"]
    if is_small(image):
        limit = largest_of(image.dtype)
        for name in ("low_threshold", "high_threshold"):
            if given.get(name) is not None and not given.get("use_quantiles"):
                given[name] = given[name] / limit
        scaled("image")(given)


def range_of_sauvola(given: dict[str, Any]) -> None:
    """The dynamic range is that of the image's dtype."""
    image = given["image"]
    if is_small(image):
        if given.get("r") is None:
            given["r"] = 0.5 * (largest_of(image.dtype) - least_of(image.dtype))
        kept("image")(given)


def range_of_similarity(given: dict[str, Any]) -> None:
    """The data range is that of the images' dtype."""
    image = given["im1"]
    if is_small(image) and image.dtype == given["im2"].dtype:
        if given.get("data_range") is None:
            given["data_range"] = largest_of(image.dtype) - least_of(image.dtype)
        kept("im1", "im2")(given)


def largest_of(dtype: np.dtype) -> float:
    """The largest value that an image of a small dtype can have."""
    return 1.0 if dtype.kind == "b" else float(np.iinfo(dtype).max)


def least_of(dtype: np.dtype) -> float:
    """The least value that an image of a small dtype can have."""
    return float(np.iinfo(dtype).min) if dtype.kind == "i" else 0.0


# -- after -------------------------------------------------------------------------------------

def as_booleans(result: Any, given: dict[str, Any]) -> Any:
    """A mask of booleans, where cuCIM gives numbers."""
    return result.astype(bool, copy=False)


def as_list(result: Any, given: dict[str, Any]) -> Any:
    """A list of the items of an array."""
    return list(result)


def last_is_float(result: Any, given: dict[str, Any]) -> Any:
    """A pair whose second item is a Python number."""
    return result[0], float(result[1])


def shifts(result: Any, given: dict[str, Any]) -> Any:
    """An array of shifts, where cuCIM gives a tuple."""
    kind = np.float32 if given["reference_image"].dtype.char in "efF" else np.float64
    return (devices.current().xp.asarray(list(result[0]), dtype=kind), *result[1:])


def labels(result: Any, given: dict[str, Any]) -> Any:
    """Labels are as wide as indexes, unless the image is boolean."""
    if given["label_image"].dtype.kind == "b":
        return result
    if isinstance(result, tuple):
        return (result[0].astype(np.intp), *result[1:])
    return result.astype(np.intp)


# -- conditions --------------------------------------------------------------------------------

def dimensions(name: str, most: int, but: str = "") -> Condition:
    """An argument may have so many dimensions, unless its dtype is among those of `but`."""
    def condition(given: dict[str, Any]) -> str | None:
        value = given[name]
        fits = np.ndim(value) <= most or value.dtype.char in but
        return None if fits else f"cuCIM does not support {np.ndim(value)} dimensions"

    return condition


def wider_than_filter(given: dict[str, Any]) -> str | None:
    """No axis is shorter than the reach of the Gaussian, which truncates it at four standard deviations."""
    shape = np.shape(given["image"])
    sigmas = np.broadcast_to(given.get("sigma", 1), len(shape))
    if any(length <= int(4 * sigma + 0.5) for length, sigma in zip(shape, sigmas)):
        return "cuCIM gives other results where an axis is shorter than the filter"
    return None


def linear(given: dict[str, Any]) -> str | None:
    """Nearest neighbours fall either way at ties, scikit-image warns of order 2, and has splines of its own beyond."""
    order = {**given, **given.get("kwargs", {})}.get("order")
    if order is None and getattr(given.get("image"), "dtype", None) == np.bool_:
        order = 0       # what both take for a mask
    return None if order is None or order == 1 else f"cuCIM interpolates differently with order={order}"


def keeps_dtype(given: dict[str, Any]) -> str | None:
    """A range of numbers makes an image one of floating point."""
    if isinstance(given.get("out_range"), (tuple, list)) and given["image"].dtype.char in SMALL:
        return "cuCIM returns single precision for this out_range"
    return None


def no_negative_axis(given: dict[str, Any]) -> str | None:
    """With a negative axis of channels, both libraries leave a part of the result unset."""
    axis = given.get("channel_axis")
    return None if axis is None or axis >= 0 else "a negative channel_axis is not supported on the device"


_CALLBACK = "functions that are passed as arguments are called with host arrays"


def numpy_function(name: str) -> Condition:
    """A function among the arguments is NumPy's own, which takes device arrays."""
    return only_if(lambda value: value is None or getattr(value, "__module__", None) == "numpy", _CALLBACK, name)


def is_homography(value: Any) -> bool:
    """Whether something is one of scikit-image's transforms that a matrix describes."""
    kind = type(value)
    return kind.__module__.startswith("skimage.") and kind.__name__ in (
        "AffineTransform", "EuclideanTransform", "ProjectiveTransform", "SimilarityTransform")


#: Where a point comes from is an array or a matrix.
maps_by_array = only_if(lambda value: not callable(value) or is_homography(value), _CALLBACK, "inverse_map")

#: scikit-image warns where it has to guess the range.
says_data_range = only_if(lambda limits, image: limits is not None or image.dtype.char in "Bfd",
                          "scikit-image guesses the data range, with a warning", "data_range", "im1")


def no_callable(name: str) -> Condition:
    """An argument that may be a function is none."""
    return only_if(lambda value: not callable(value), _CALLBACK, name)
