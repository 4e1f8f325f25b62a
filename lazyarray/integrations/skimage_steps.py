"""What is done on the device before and after a function of cuCIM, so that its result is scikit-image's.

cuCIM computes with images of 8 and 16 bits in single precision, scikit-image in double; so they are made double before.
How, is said by what scikit-image does first: scale an image to [0, 1] (`scaled`), keep its values (`kept`), or the one
or the other as ``preserve_range`` says (`ranged`).
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any

import numpy as np

from .. import devices
from .twins import Condition, Twin

__all__ = ["Prepared"]

Before = Callable[[dict[str, Any]], None]
"""Changes the arguments of a call, given by name, device arrays among them."""

After = Callable[[Any, dict[str, Any]], Any]
"""The result, from the device's and the arguments."""

SMALL = frozenset("?bBhH")
"""Dtypes that cuCIM computes with in single precision."""

_NO_ARRAYS = frozenset({bool, int, float, str, type(None)})

_of_small: set[Before | None] = set()
"""Steps that change nothing where no argument has such a dtype."""


@dataclass(frozen=True)
class Prepared(Twin):
    """A twin with steps before and after it, on the device."""

    before: Before | None = None
    after: After | None = None

    @cached_property
    def function(self) -> Callable[..., Any]:
        plain = self.plain_function
        signature = inspect.signature(plain)
        often_plain = self.after is None and self.before in _of_small

        @wraps(plain)
        def prepared(*args: Any, **kwargs: Any) -> Any:
            if often_plain and not (any_small(args) or any_small(kwargs.values())):
                return plain(*args, **kwargs)       # to bind the arguments takes as long as all else
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

def of_small(step: Before) -> Before:
    """Note that a step changes nothing where no argument has a small dtype."""
    _of_small.add(step)
    return step


def is_small(value: Any) -> bool:
    """Whether a device array has a dtype that cuCIM would compute with in single precision."""
    if type(value) in _NO_ARRAYS:
        return False
    dtype: Any = getattr(value, "dtype", None)
    return isinstance(value, devices.current().array_type) and dtype.char in SMALL


def any_small(values: Iterable[Any]) -> bool:
    """Whether `is_small` is true of one of them."""
    array_type = devices.current().array_type
    for value in values:
        if type(value) not in _NO_ARRAYS and isinstance(value, array_type) and value.dtype.char in SMALL:
            return True
    return False


def to_unit(array: Any) -> Any:
    """A device array scaled as scikit-image scales images of its dtype, in double precision."""
    return devices.current().library("cucim.skimage.util").img_as_float64(array)


def scaled(*names: str) -> Before:
    """Images that scikit-image scales to [0, 1] or [-1, 1]."""
    def step(given: dict[str, Any]) -> None:
        for name in names:
            if is_small(given.get(name)):
                given[name] = to_unit(given[name])

    return of_small(step)


def kept(*names: str) -> Before:
    """Images whose values scikit-image keeps."""
    def step(given: dict[str, Any]) -> None:
        for name in names:
            if is_small(given.get(name)):
                given[name] = given[name].astype(np.float64)

    return of_small(step)


def doubled(*names: str) -> Before:
    """Images of integers, of any width, whose values scikit-image keeps in double precision."""
    def step(given: dict[str, Any]) -> None:
        for name in names:
            if isinstance(given[name], devices.current().array_type) and given[name].dtype.kind in "biu":
                given[name] = given[name].astype(np.float64)

    return step


@of_small
def ranged(given: dict[str, Any]) -> None:
    """An image that is scaled unless ``preserve_range`` is true."""
    (kept if given.get("preserve_range") else scaled)("image")(given)


@of_small
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


@of_small
def thresholds_of_canny(given: dict[str, Any]) -> None:
    """Thresholds are in units of the image's dtype."""
    image = given["image"]
    if is_small(image):
        limit = largest_of(image.dtype)
        for name in ("low_threshold", "high_threshold"):
            if given.get(name) is not None and not given.get("use_quantiles"):
                given[name] = given[name] / limit
        scaled("image")(given)


@of_small
def range_of_sauvola(given: dict[str, Any]) -> None:
    """The dynamic range is that of the image's dtype."""
    image = given["image"]
    if is_small(image):
        if given.get("r") is None:
            low = float(np.iinfo(image.dtype).min) if image.dtype.kind == "i" else 0.0
            given["r"] = 0.5 * (largest_of(image.dtype) - low)
        kept("image")(given)


@of_small
def range_of_similarity(given: dict[str, Any]) -> None:
    """The data range is that of the images' dtype."""
    image = given["im1"]
    if is_small(image) and image.dtype == given["im2"].dtype:
        if given.get("data_range") is None:
            low = float(np.iinfo(image.dtype).min) if image.dtype.kind == "i" else 0.0
            given["data_range"] = largest_of(image.dtype) - low
        kept("im1", "im2")(given)


def largest_of(dtype: np.dtype) -> float:
    """The largest value that an image of a small dtype can have."""
    return 1.0 if dtype.kind == "b" else float(np.iinfo(dtype).max)


# -- after -------------------------------------------------------------------------------------

def as_dtype(dtype: Any) -> After:
    """An array of another dtype, in which it has the same values."""
    def step(result: Any, given: dict[str, Any]) -> Any:
        return result.astype(dtype, copy=False)

    return step


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

def dtypes(name: str, allowed: str) -> Condition:
    """An argument may have these dtypes only."""
    def condition(given: dict[str, Any]) -> str | None:
        dtype = getattr(given.get(name), "dtype", None)
        return None if dtype is None or dtype.char in allowed else f"cuCIM does {dtype} otherwise"

    return condition


def dimensions(name: str, most: int, but: str = "") -> Condition:
    """An argument may have so many dimensions, unless its dtype is among those of `but`."""
    def condition(given: dict[str, Any]) -> str | None:
        value = given[name]
        return None if np.ndim(value) <= most or value.dtype.char in but else f"cuCIM takes {np.ndim(value)} dimensions"

    return condition


def wider_than_filter(given: dict[str, Any]) -> str | None:
    """No axis is shorter than the reach of the Gaussian, which truncates it at four standard deviations."""
    shape = np.shape(given["image"])
    sigmas = np.broadcast_to(given.get("sigma", 1), len(shape))
    if any(length <= int(4 * sigma + 0.5) for length, sigma in zip(shape, sigmas)):
        return "cuCIM differs where an axis is shorter than the filter"
    return None


def linear(given: dict[str, Any]) -> str | None:
    """Nearest neighbours fall either way at ties, scikit-image warns of order 2, and has splines of its own beyond."""
    order = {**given, **given.get("kwargs", {})}.get("order")
    if order is None and getattr(given.get("image"), "dtype", None) == np.bool_:
        order = 0       # what both take for a mask
    return None if order is None or order == 1 else f"cuCIM interpolates otherwise with order={order}"


def keeps_dtype(given: dict[str, Any]) -> str | None:
    """A range of numbers makes an image one of floating point."""
    if isinstance(given.get("out_range"), (tuple, list)) and given["image"].dtype.char in SMALL:
        return "cuCIM gives single precision for this range"
    return None


def no_negative_axis(given: dict[str, Any]) -> str | None:
    """With a negative axis of channels, both libraries leave a part of the result unset."""
    axis = given.get("channel_axis")
    return None if axis is None or axis >= 0 else "part of the result is left unset with a negative channel_axis"


def numpy_function(name: str) -> Condition:
    """A function among the arguments is NumPy's own, which knows device arrays."""
    def condition(given: dict[str, Any]) -> str | None:
        value = given.get(name)
        if value is None or getattr(value, "__module__", None) == "numpy":
            return None
        return "a function of the caller's is called with host arrays"

    return condition


def is_homography(value: Any) -> bool:
    """Whether something is one of scikit-image's transforms that a matrix describes."""
    kind = type(value)
    return kind.__module__.startswith("skimage.") and kind.__name__ in (
        "AffineTransform", "EuclideanTransform", "ProjectiveTransform", "SimilarityTransform")


def maps_by_array(given: dict[str, Any]) -> str | None:
    """What says where a point comes from is an array or a matrix."""
    value = given["inverse_map"]
    if callable(value) and not is_homography(value):
        return "a function of the caller's is called with host arrays"
    return None


def says_data_range(given: dict[str, Any]) -> str | None:
    """scikit-image warns where it has to guess the range."""
    if given.get("data_range") is None and given["im1"].dtype.char not in "Bfd":
        return "the range of the data is guessed, with a warning"
    return None


def no_callable(name: str) -> Condition:
    """An argument that may be a function is none."""
    def condition(given: dict[str, Any]) -> str | None:
        return "a function of the caller's is called with host arrays" if callable(given.get(name)) else None

    return condition
