"""Arrays to test with: any dtype, shape, memory layout and history, as NumPy's arrays and as lazy ones."""
from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import lazyarray

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

State = Literal["device", "host", "both"]
STATES: tuple[State, ...] = ("device", "host", "both")

DEVICE_DTYPES = (*map(np.dtype, "? i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 c8 c16".split()),)
HOST_DTYPES = (*map(np.dtype, ("M8[s]", "m8[ms]", "S3", "U2", "O", "g", ">i4", [("a", "i4"), ("b", "f8")])),)


@dataclasses.dataclass(frozen=True)
class Layout:
    """How an array lies in its storage: the storage's shape for an array's shape, and the view of that storage."""

    storage_shape: Callable[[tuple[int, ...]], tuple[int, ...]]
    view: Callable[[Any, tuple[int, ...]], Any]


def _sliced(cut: slice) -> Callable[[Any, tuple[int, ...]], Any]:
    return lambda base, shape: base[(..., *(cut,) * len(shape))]


LAYOUTS: dict[str, Layout] = {
    "C": Layout(lambda s: s, lambda b, s: b[...]),
    "F": Layout(lambda s: s[::-1], lambda b, s: b.T),
    "part": Layout(lambda s: tuple([n + 2 for n in s]), _sliced(slice(1, -1))),
    "strided": Layout(lambda s: tuple([2 * n + 1 for n in s]), _sliced(slice(1, None, 2))),
    "reversed": Layout(lambda s: s, _sliced(slice(None, None, -1))),
    "broadcast": Layout(lambda s: (*(1,) * len(s[:1]), *s[1:]), np.broadcast_to),
}


@dataclasses.dataclass
class Built:
    """One side of a specimen: the storage's array, the view of it under test, and what foreign code holds."""

    base: Any
    array: Any
    alias: np.ndarray | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Specimen:
    """An array to test with, which can be created as a NumPy array and as a lazy array.

    Parameters
    ----------
    values : ndarray
        The values of the whole storage, C-contiguous, with the shape that ``LAYOUTS[layout]`` requires. If one call of
        ``check`` gets two specimens with the same ``values`` object, they are views of one storage. Never modified.
    shape : tuple of int
        Shape of the array itself.
    layout : str
        A key of ``LAYOUTS``.
    state : {'device', 'host', 'both'}
        Where the lazy array is current.
    aliased : bool
        Whether a writable alias of the lazy array is held.

    Examples
    --------
    >>> import numpy as np
    >>> specimen = Specimen(np.arange(5.0), (2,), layout="strided")
    >>> specimen.plain()
    array([1., 3.])
    >>> specimen.lazy().strides
    (16,)
    """

    values: np.ndarray
    shape: tuple[int, ...]
    layout: str = "C"
    state: State = "device"
    aliased: bool = False

    def plain(self) -> np.ndarray:
        """A fresh NumPy array of it."""
        return self._view(self.values.copy())

    def lazy(self, factory: Callable[[np.ndarray], Any] | None = None) -> Any:
        """A fresh lazy array of it; uploads the storage once, and more as the state asks.

        An alias, where the specimen asks for one, lives as long as the array returned.
        """
        with lazyarray.options(small_on_host=False):
            built = self.build(factory or lazyarray.asarray, {})
        if built.alias is not None:
            weakref.finalize(built.array, lambda alias: None, built.alias)
        return built.array

    def _view(self, base: Any) -> Any:
        return LAYOUTS[self.layout].view(base, self.shape)

    def build(self, factory: Callable[[np.ndarray], Any], bases: dict[int, Any], alone: bool = False) -> Built:
        """Make it with ``factory``, on a base in ``bases`` if it is there; ``alone``: without state and alias."""
        base = bases.get(id(self.values))
        if base is None:
            if self.state == "host" and not alone:
                # Written through an alias, and to other values than it had, or nobody could tell that it was written.
                base = factory(np.zeros_like(self.values))
                np.asarray(base)[...] = self.values
            else:
                base = factory(self.values.copy())
            bases[id(self.values)] = base
        array = self._view(base)
        if alone:
            return Built(base, array)
        if self.state == "both":
            np.asarray(array)
        return Built(base, array, np.asarray(array) if self.aliased else None)


def specimens(dtype: Any = None, shape: Any = None, layout: Any = None, state: Any = None, aliased: Any = None,
              elements: Any = None) -> SearchStrategy[Specimen]:
    """Return a Hypothesis strategy for `Specimen` objects, which `check` accepts as arguments.

    Parameters
    ----------
    dtype, shape, layout, state, aliased : optional
        A value, or a strategy for it. The defaults are `DEVICE_DTYPES` and `HOST_DTYPES`, up to 3 dimensions of up to 6
        elements, `LAYOUTS`, `STATES`, and with or without an alias.
    elements : strategy or dict, optional
        A strategy for the values, or keyword arguments for `hypothesis.extra.numpy.from_dtype`, which is the default.

    Examples
    --------
    >>> from hypothesis import given
    >>> @given(specimens(dtype=np.dtype("f4"), elements={"min_value": 0, "max_value": 1}))
    ... def test_norm(x):
    ...     check(np.linalg.norm, x)
    """
    from hypothesis import strategies as st
    from hypothesis.extra import numpy as npst

    def either(given: Any, default: Any) -> Any:
        return default if given is None else given if isinstance(given, st.SearchStrategy) else st.just(given)

    @st.composite
    def build(draw: Any) -> Specimen:
        kind = np.dtype(draw(either(dtype, st.sampled_from(DEVICE_DTYPES + HOST_DTYPES))))
        size = draw(either(shape, npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6)))
        size = (size,) if isinstance(size, int) else tuple(size)
        lay = draw(either(layout, st.sampled_from(tuple(LAYOUTS))))
        of = elements if isinstance(elements, st.SearchStrategy) else (
            st.integers(-99, 99) if kind.hasobject else npst.from_dtype(kind, **(elements or {})))
        values = draw(npst.arrays(kind, LAYOUTS[lay].storage_shape(size), elements=of))
        return Specimen(values, size, lay, draw(either(state, st.sampled_from(STATES))),
                        draw(either(aliased, st.booleans())))

    return build()


def lazy_arrays(dtype: Any = None, shape: Any = None, layout: Any = None, state: Any = None, aliased: Any = None,
                elements: Any = None) -> SearchStrategy[Any]:
    """Return a Hypothesis strategy for lazy arrays, with the parameters of `specimens`.

    Examples
    --------
    >>> from hypothesis import given
    >>> @given(lazy_arrays(dtype=np.dtype("f8"), shape=(3,)))
    ... def test_length(x):
    ...     assert len(x) == 3
    """
    return specimens(dtype, shape, layout, state, aliased, elements).map(Specimen.lazy)
