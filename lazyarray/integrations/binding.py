"""Which parameters the arguments of a call belong to: found once for each way in which a function is called."""
from __future__ import annotations

import inspect
from typing import Any

__all__ = ["Parameters", "Way"]

Arguments = tuple[tuple[Any, ...], dict[str, Any]]

_MANY = frozenset({inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD})


class Way:
    """A number of arguments by position, and names of others: enough to tell which parameters they belong to.

    Parameters
    ----------
    places : dict
        Parameter -> where its argument is among those by position and then those by name; in the parameters' order.
    by_position : frozenset of str
        The parameters whose arguments are passed on by position.
    """

    __slots__ = ("places", "_first", "_rest")

    def __init__(self, places: dict[str, int], by_position: frozenset[str]) -> None:
        self.places = places
        self._first = [place for name, place in places.items() if name in by_position]
        self._rest = [(name, place) for name, place in places.items() if name not in by_position]

    def named(self, values: tuple[Any, ...]) -> dict[str, Any]:
        """The arguments of a call by the names of their parameters."""
        return {name: values[place] for name, place in self.places.items()}

    def anew(self, values: tuple[Any, ...]) -> Arguments:
        """What `Parameters.anew` makes of `named`."""
        return tuple([values[place] for place in self._first]), {name: values[place] for name, place in self._rest}


class Parameters:
    """Those of a function."""

    def __init__(self, signature: inspect.Signature) -> None:
        self.signature = signature
        self._by_position = frozenset(
            name for name, parameter in signature.parameters.items()
            if parameter.kind is parameter.POSITIONAL_ONLY
            or parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD)
        self._takes_many = any(parameter.kind in _MANY for parameter in signature.parameters.values())
        self._ways: dict[tuple[int | str, ...], Way] = {}

    def way(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Way | None:
        """The way of a call; None where a parameter takes many arguments. TypeError if it is none."""
        key = (len(args), *kwargs)
        known = self._ways.get(key)
        if known is None and not self._takes_many:
            count = len(args)
            bound = self.signature.bind(*range(count), **{name: count + i for i, name in enumerate(kwargs)})
            known = self._ways[key] = Way(bound.arguments, self._by_position)
        return known

    def named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments of any call by the names of their parameters. TypeError if the function takes no such call."""
        return self.signature.bind(*args, **kwargs).arguments

    def default(self, name: str) -> Any:
        """What a parameter is if nothing is said of it."""
        return self.signature.parameters[name].default

    def anew(self, given: dict[str, Any]) -> Arguments:
        """A call's arguments: by position what has no default, and by name the rest, whose order may differ."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for name, value in given.items():
            if name in self._by_position:
                args.append(value)
            elif not self._takes_many:
                kwargs[name] = value
            else:
                kind = self.signature.parameters[name].kind
                if kind is inspect.Parameter.VAR_POSITIONAL:
                    args.extend(value)
                elif kind is inspect.Parameter.VAR_KEYWORD:
                    kwargs.update(value)
                else:
                    kwargs[name] = value
        return tuple(args), kwargs
