"""Serialisers write lazy numbers as NumPy's: ``json.dumps({"mean": x.mean()})``.

``numpy.float64`` is a subclass of Python's float, and code that writes floats writes it too; but C code reads the
struct of a float, which a lazy scalar lacks. A serialiser passes what it does not know to a function ``default``. So a
function of ours comes before the user's: it returns NumPy's value of a lazy one, if the serialiser accepts that itself,
and otherwise calls the user's. Data without lazy values are written as before.
"""
from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from lazyarray.integrations.scalars import opened, put_in_place
from lazyarray.storage import handles

_Function = Callable[..., Any]
_Types = tuple[type, ...]


def _default(default: _Function, known: _Types) -> _Function:
    """A function for what a serialiser doesn't know; `known`: the classes that it knows."""
    def call(value: Any) -> Any:
        if handles.is_lazy(value):
            value = opened(value) if handles.is_scalar(value) else np.asarray(value)
            if isinstance(value, known):
                return value
        return default(value)

    return call


# -- json and simplejson: an encoder is made for each call ---------------------------------------

def _in_c(make: _Function) -> _Function:
    """``c_make_encoder(markers, default, encoder, indent, key_separator, item_separator, sort_keys, skipkeys, ...)``"""
    def make_encoder(markers: Any, default: _Function, *rest: Any) -> _Function:
        encode, skips = make(markers, _default(default, (float,)), *rest), rest[5]

        def call(value: Any, *how: Any) -> Any:
            try:
                return encode(_with_keys(value) if skips else value, *how)
            except TypeError:       # keys are handed to no `default`
                changed = _with_keys(value)
                if changed is value:
                    raise
                return encode(changed, *how)

        return call

    return make_encoder


def _in_python(make: _Function) -> _Function:
    """``_make_iterencode(markers, default, encoder, indent, floatstr, ...)``, to which lazy floats are floats."""
    def make_iterencode(markers: Any, default: _Function, encoder: Any, indent: Any, floatstr: _Function,
                        *rest: Any, **more: Any) -> _Function:
        default = _default(default, (float,))
        return make(markers, default, encoder, indent, lambda value: floatstr(opened(value)), *rest, **more)

    return make_iterencode


def _with_keys(value: Any, above: tuple[int, ...] = ()) -> Any:
    """`value` with NumPy's scalars in place of the lazy keys of dicts; itself if there are none."""
    if not isinstance(value, (dict, list, tuple)) or id(value) in above:
        return value
    above += id(value),
    if isinstance(value, dict):
        items = [(opened(key), _with_keys(item, above)) for key, item in value.items()]
        same = all(new is key and item is old for (new, item), (key, old) in zip(items, value.items()))
        return value if same else dict(items)
    items = [_with_keys(item, above) for item in value]
    return value if all(new is old for new, old in zip(items, value)) else items


# -- the others: functions with a parameter `default` --------------------------------------------

def _with_default(known: _Types) -> Callable[[_Function], _Function]:
    """Makes a function that serialises what lazy values stand for; its second argument may be ``default``."""
    def kind(function: _Function) -> _Function:
        def call(value: Any, *args: Any, default: _Function | None = None, **kwargs: Any) -> Any:
            if default is not None:
                return function(value, *args, default=_default(default, known), **kwargs)
            try:
                return function(value, *args, **kwargs)
            except TypeError as error:
                refusal: TypeError | None = error

            def refuse(value: Any) -> Any:
                raise refusal or TypeError

            try:
                return function(value, *args, default=_default(refuse, known), **kwargs)
            finally:
                refusal = None      # its traceback holds this frame

        return call

    return kind


def _orjson(function: _Function) -> _Function:
    """It knows NumPy's values if its option says so, and else asks ``default`` once more."""
    dumps = _with_default((np.generic, np.ndarray))(function)

    def call(value: Any, default: _Function | None = None, option: int | None = None) -> Any:
        return dumps(value, default=default, option=option)

    return call


def _msgpack(packer: Any) -> Any:
    """A class of packers."""
    def refuse(value: Any) -> Any:
        raise TypeError(f"can not serialize {type(value).__name__!r} object")

    class Packer(packer):
        def __init__(self, *args: Any, default: _Function | None = None, strict_types: bool = False,
                     **kwargs: Any) -> None:
            super().__init__(*args, default=_default(default or refuse, () if strict_types else (float,)),
                             strict_types=strict_types, **kwargs)

    return Packer


_ENCODERS: dict[str, _Function] = {"c_make_encoder": _in_c, "_make_iterencode": _in_python}
#: Module -> its functions and classes through which values pass, and what takes their place.
_TABLE: dict[str, dict[str, _Function]] = {
    "json.encoder": _ENCODERS,
    "msgpack": {"Packer": _msgpack},
    "orjson": {"dumps": _orjson},
    "simplejson.encoder": _ENCODERS,
    "ujson": dict.fromkeys(("dumps", "dump", "encode"), _with_default((float,))),
}


def register(module: ModuleType) -> None:
    """Have a serialiser write lazy numbers as NumPy's."""
    for name, kind in _TABLE[module.__name__].items():
        if getattr(module, name, None) is not None:     # parts in C may be missing
            put_in_place(module.__name__.partition(".")[0], {module.__name__: (name,)}, kind)
