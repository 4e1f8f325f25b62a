"""Calls of scikit-image whose results are no arrays: the regions of a label image, and the levels of a pyramid.

cuCIM's properties of regions differ from scikit-image's (single precision, zeros for what is not defined, tuples for
arrays), and it computes them region by region, so scikit-image itself computes them. It needs the label image for
that, and only once somebody looks: until then nothing is copied, and then the label image is, once, however many
regions there are and whatever is asked of them.
"""
from __future__ import annotations

import dataclasses
import functools
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...dispatch import host_fallback
from ...errors.interrupts import holding
from ...settings import enabled
from ...storage import handles, state
from ...storage.storage import Storage
from ..routing import router
from ..routing.twin import Twin
from .steps import Prepared, as_list

# -- regions -----------------------------------------------------------------------------------

_Host = Callable[..., Any]


def regions(twin: Twin, host: _Host, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """`skimage.measure.regionprops` of a lazy label image: a list that is filled when it is looked at."""
    rest = {**dict(zip(("label_image", "intensity_image", "cache"), args)), **kwargs}
    labels, intensity = rest.pop("label_image", None), rest.pop("intensity_image", None)
    look = functools.partial(_on_host, host, twin.host, labels, intensity, rest)
    if rest.keys() - {"cache"} or len(args) > 3 or not _can_wait(labels, intensity):
        return look()
    with enabled.unrouted():
        host(np.ones((1,) * labels.ndim, labels.dtype))     # it refuses some dtypes and dimensions
    return Regions(_Unseen(labels, look, host))


def _can_wait(labels: Any, intensity: Any) -> bool:
    """Whether the label image is on the device only, and its partner fits it."""
    if not (handles.is_lazy(labels) and handles.is_array(labels) and labels.size):
        return False
    storage = labels._self_storage
    if type(storage) is not Storage or storage.state != "device":
        return False
    shape = getattr(intensity, "shape", None)
    return intensity is None or shape is not None and shape[:labels.ndim] == labels.shape and (
        len(shape) - labels.ndim in (0, 1))


def _on_host(host: _Host, name: str, labels: Any, intensity: Any, rest: dict[str, Any]) -> Any:
    """The regions, which hold on to the host's arrays: those are live."""
    why = "region properties are not supported on the device"
    return host_fallback.on_host(router.without_routing(host), (labels, intensity), rest, why, aliases=True, name=name)


class _Unseen:
    """What is needed to find the regions later as they are now."""

    def __init__(self, labels: Any, look: Callable[[], list[Any]], host: _Host) -> None:
        self.labels, self.look, self.host = labels, look, host
        self.kept = labels.copy()       # on the device; the label image may be written to before anybody looks
        self.writes = labels._self_storage.writes
        self.lock = threading.RLock()       # a finaliser within may look, too

    def found(self) -> list[Any]:
        """The regions of the label image as it was, with the label image as it is: as from a call that did not wait."""
        storage = self.labels._self_storage
        unheld = state.all_ended(storage) and not storage.foreign      # first: what has ended counts as a write
        untouched = unheld and storage.state == "device" and storage.writes == self.writes
        if untouched or bool((self.labels == self.kept).all()):
            return self.look()
        with enabled.unrouted():
            then = self.host(np.asarray(self.kept))
        alias = np.asarray(self.labels)
        for region in then:
            region._label_image = alias
        return then


class Regions(list):
    """A list of regions, which are found when it is first looked at."""

    def __init__(self, unseen: _Unseen) -> None:
        super().__init__()
        self._unseen: _Unseen | None = unseen

    def _fill(self) -> None:
        unseen = self._unseen
        if unseen is None:
            return
        with holding(unseen.lock):
            if self._unseen is not None:
                # Not `extend`: a finaliser that looked meanwhile has filled it.
                list.__setitem__(self, slice(None), unseen.found())
                self._unseen = None

    def __reduce_ex__(self, protocol: Any) -> Any:
        return list, (list(self),)


def _looking(name: str) -> Callable[..., Any]:
    plain = getattr(list, name)

    @functools.wraps(plain)
    def method(*args: Any, **kwargs: Any) -> Any:
        for regions in args:
            if type(regions) is Regions:
                regions._fill()
        return plain(*args, **kwargs)

    return method


def _added(self: Regions, other: Any) -> Any:
    return NotImplemented if not isinstance(other, list) else [*other, *self]


# C code reads the items of a list without asking, but for these methods.
for _name in ("__len__ __iter__ __getitem__ __setitem__ __delitem__ __contains__ __reversed__ __add__ __iadd__ __mul__ "
              "__rmul__ __imul__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __repr__ append clear copy count extend "
              "index insert pop remove reverse sort").split():
    setattr(Regions, _name, _looking(_name))
Regions.__radd__ = _added       # type: ignore[attr-defined]


# -- levels of a pyramid -------------------------------------------------------------------------

_listed: weakref.WeakKeyDictionary[_Host, _Host] = weakref.WeakKeyDictionary()


def levels(twin: Twin, host: _Host, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Any]:
    """The levels that a generator gives: all are computed when the first one is asked for."""
    if host not in _listed:
        @functools.wraps(host)
        def listed(*args: Any, **kwargs: Any) -> list[Any]:
            return list(host(*args, **kwargs))

        _listed[host] = listed
    assert isinstance(twin, Prepared)
    yield from router.run(dataclasses.replace(twin, adapter="", after=as_list), _listed[host], args, kwargs)
