"""One call of a ufunc: dtypes by NumPy's own rules, work on the device.

`call` is `__array_ufunc__`. NumPy resolves the loop (`ufunc.resolve_dtypes`), so result dtypes,
NEP 50 and casting errors are NumPy's; the device function then gets operands of that loop's dtypes
wherever it would have chosen another one by itself. What was resolved is remembered per ufunc and
operand dtypes in `PLANS`.
"""
from __future__ import annotations

from . import devices, dispatch, host, ufunc_methods, wrap
from .errors import NotOnDevice
from .storage import Storage
from .ufunc_call import PLANS, elementwise


def call(x, ufunc, method, inputs, kwargs):
    """`__array_ufunc__`: NotImplemented if an operand's type knows better."""
    if method == "__call__" and not kwargs:
        result = _quick(ufunc, inputs)
        if result is not None:
            return result
    outs = kwargs.get("out", ())
    subclass = False
    for operand in (*inputs, *outs):
        kind = type(operand)
        who = dispatch.kind_of(kind)
        if who == "foreign" and hasattr(kind, "__array_ufunc__"):
            return NotImplemented
        subclass = subclass or who == "subclass"
    function = ufunc if method == "__call__" else getattr(ufunc, method)
    if subclass:
        return host.on_host(function, inputs, kwargs, "an ndarray subclass takes part", aliases=True)
    try:
        if devices.current().usable() is not None:
            raise NotOnDevice(devices.current().usable())
        if method == "__call__":
            return elementwise(ufunc, inputs, kwargs)
        return ufunc_methods.METHODS[method](ufunc, inputs, kwargs)
    except NotOnDevice as error:
        reason = str(error)
    name = f"numpy.{ufunc.__name__}" if method == "__call__" else f"numpy.{ufunc.__name__}.{method}"
    return host.on_host(function, inputs, kwargs, reason, name=name, positions=(0,) if method == "at" else (),
                        names=("out",))


# -- the quick way: lazy arrays and Python numbers, nothing else ---------------------------------

def _quick(ufunc, inputs):
    """The result of a plain call whose plan is known and whose operands are ready, else None."""
    array_type = wrap._array_type
    if len(inputs) == 2:
        x, y = inputs
        if type(x) is not array_type or type(y) is not array_type:
            return None
        a, b = x._self_array, y._self_array
        if a is None or b is None:
            return None
        plan = PLANS.get((ufunc, a.dtype, b.dtype))
        if plan is None or a.shape != b.shape:
            return None
        storage, other = x._self_storage, y._self_storage
        device = storage.device
        stream = device.stream()
        if not (storage.quiet and other.quiet and storage.stream == stream and other.stream == stream):
            return None
        if device.count > 1 and not device.on_current(a, b):
            return None
        result = plan(a, b)
    elif len(inputs) == 1:
        x, = inputs
        a = x._self_array
        if type(x) is not array_type or a is None:
            return None
        plan = PLANS.get((ufunc, a.dtype))
        if plan is None:
            return None
        storage = x._self_storage
        device = storage.device
        stream = device.stream()
        if not (storage.quiet and storage.stream == stream) or device.count > 1 and not device.on_current(a):
            return None
        result = plan(a)
    else:
        return None
    if not result.ndim:
        return None
    return wrap.new_array(Storage(device, result, stream), None, result)


