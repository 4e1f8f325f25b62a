"""``xp.random`` of the simulated device: NumPy's distributions, from generators of its own.

The numbers differ from CuPy's of the same seed, as CuPy's differ from NumPy's. NumPy's global state is left alone.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .cupy_differences import as_cupys
from .execution import launch

_LEGACY = frozenset((
    "beta binomial chisquare choice dirichlet exponential f gamma geometric gumbel hypergeometric laplace logistic "
    "lognormal logseries multivariate_normal negative_binomial noncentral_chisquare noncentral_f normal pareto "
    "permutation poisson power rand randint randn random_sample rayleigh shuffle standard_cauchy standard_exponential "
    "standard_gamma standard_normal standard_t tomaxint triangular uniform vonmises wald weibull zipf").split())
_CURRENT = frozenset((
    "beta binomial chisquare dirichlet exponential f gamma geometric hypergeometric integers logseries poisson power "
    "random standard_exponential standard_gamma standard_normal uniform").split())
"""What CuPy's two kinds of generators draw."""


class _Drawing:
    """A generator; what it draws is on the device."""

    _names: frozenset[str] = frozenset()
    _host: Any

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in self._names:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        function = as_cupys(f"random.{name}", getattr(self._host, name))

        def draw(*args: Any, out: Any = None, **kwargs: Any) -> Any:
            found = launch(function, args, kwargs, args[:1] if name == "shuffle" else ())
            if out is None:
                return found
            out[...] = found
            return out

        return draw

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._names})


class RandomState(_Drawing):
    """``xp.random.RandomState``."""

    _names = _LEGACY

    def __init__(self, seed: Any = None, method: int = 100) -> None:
        self.seed(seed)

    def seed(self, seed: Any = None) -> None:
        """Begin anew."""
        self._host = np.random.RandomState(None if seed is None else np.uint32(_number(seed) & 0xFFFFFFFF))


class BitGenerator:
    """Where a generator takes its bits from."""

    def __init__(self, seed: Any = None, *, size: int = -1) -> None:
        self.seed = seed


class XORWOW(BitGenerator):
    """``xp.random.XORWOW``."""


class MRG32k3a(BitGenerator):
    """``xp.random.MRG32k3a``."""


class Philox4x3210(BitGenerator):
    """``xp.random.Philox4x3210``."""


class Generator(_Drawing):
    """``xp.random.Generator``."""

    _names = _CURRENT

    def __init__(self, bit_generator: BitGenerator) -> None:
        self.bit_generator = bit_generator
        seed = bit_generator.seed
        self._host = np.random.default_rng(None if seed is None else _number(seed))


def generator_of(host: np.random.Generator) -> Generator:
    """A generator that takes its bits from NumPy's."""
    found = Generator(XORWOW())
    found._host = np.random.Generator(host.bit_generator)
    return found


def default_rng(seed: Any = None) -> Generator:
    """A generator of the given seed."""
    if isinstance(seed, Generator):
        return seed
    return Generator(seed if isinstance(seed, BitGenerator) else XORWOW(seed))


def _number(seed: Any) -> int:
    if isinstance(seed, int):
        return seed
    return int(np.random.SeedSequence(np.asarray(seed).tolist()).generate_state(1)[0])


_state = RandomState()


def get_random_state() -> RandomState:
    """The generator that the functions of the module draw from."""
    return _state


def set_random_state(rs: RandomState) -> None:
    """Have the functions of the module draw from another generator."""
    global _state
    if not isinstance(rs, RandomState):
        raise TypeError(f"Random state must be an instance of RandomState. Actual: {type(rs)}")
    _state = rs


def drawing(name: str) -> Callable[..., Any] | None:
    """NumPy's function of that name, drawing from the state of this module."""
    function = getattr(np.random, name, None)
    if function is None or not hasattr(np.random.RandomState, name):
        return function

    @functools.wraps(function)
    def draw(*args: Any, **kwargs: Any) -> Any:
        return getattr(_state._host, name)(*args, **kwargs)

    return draw


def members() -> dict[str, Any]:
    """Members of ``xp.random`` beside the distributions."""
    return {
        "RandomState": RandomState, "Generator": Generator, "default_rng": default_rng, "BitGenerator": BitGenerator,
        "XORWOW": XORWOW, "MRG32k3a": MRG32k3a, "Philox4x3210": Philox4x3210, "get_random_state": get_random_state,
        "set_random_state": set_random_state, "reset_states": lambda: set_random_state(RandomState()),
        "seed": lambda seed=None: _state.seed(seed),
    }
