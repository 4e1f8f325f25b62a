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
from .ufunc_call import IN_PLACE, PLANS, elementwise


def call(x, ufunc, method, inputs, kwargs):
    """`__array_ufunc__`: NotImplemented if an operand's type knows better."""
    if method == "__call__":
        if not kwargs:
            result = _quick(ufunc, inputs)
        elif len(kwargs) == 1 and len(inputs) == 2 and "out" in kwargs:
            result = _quick_in_place(ufunc, inputs, kwargs["out"])
        else:
            result = None
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

def _ready(x):
    """The device array of a lazy array if nothing has to be done to use it here, else None."""
    array = x._self_array
    if array is not None:
        storage = x._self_storage
        device = storage.device
        if storage.quiet and storage.stream == device.stream() and (device.count == 1 or device.on_current(array)):
            return array
    return None


def _quick(ufunc, inputs):
    """The result of a plain call whose plan is known and whose operands are ready, else None."""
    array_type = wrap._array_type
    x = inputs[0]
    if type(x) is not array_type:
        return None
    if len(inputs) == 2:
        y = inputs[1]
        a = x._self_array
        if a is None:
            return None
        if type(y) is array_type:
            b = y._self_array
            if b is None:
                return None
            plan = PLANS.get((ufunc, a.dtype, b.dtype))
            if plan is None or a.shape != b.shape or _ready(y) is None:
                return None
        else:
            plan = PLANS.get((ufunc, a.dtype, type(y)))
            if plan is None:
                return None
            plan, scalar = plan
            try:
                b = scalar(y)
            except OverflowError:       # beyond the dtype: compared by value, or refused
                return None
        if _ready(x) is None:
            return None
        result = plan(a, b)
    elif len(inputs) == 1:
        a = _ready(x)
        plan = None if a is None else PLANS.get((ufunc, a.dtype))
        if plan is None:
            return None
        result = plan(a)
    else:
        return None
    if not result.ndim:
        return None
    storage = x._self_storage
    return wrap.new_array(Storage(storage.device, result, storage.stream), None, result)


def _quick_in_place(ufunc, inputs, outs):
    """``x += y`` where the device ufunc may write straight into `x`: nothing else looks at it, and `y` is not a part."""
    x, y = inputs
    if type(x) is not wrap._array_type or outs[0] is not x or len(outs) != 1:
        return None
    a = _ready(x)
    if a is None or x._self_storage.mirror is not None or x._self_outline is not None and not (
            x._self_outline.flags.writeable):
        return None
    if type(y) is wrap._array_type:
        plan = IN_PLACE.get((ufunc, a.dtype, y.dtype))
        if plan is None or y._self_storage is x._self_storage and y is not x:
            return None
        b = _ready(y)
        if b is None or b.shape != a.shape:
            return None
    else:
        plan = IN_PLACE.get((ufunc, a.dtype, type(y)))
        if plan is None:
            return None
        try:
            b = a.dtype.type(y)
        except OverflowError:
            return None
    plan(a, b, a)
    return x
