"""``cupy.testing``: decorators that run a test with NumPy and with CuPy, and for several dtypes."""
from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .comparisons import on_host

Test = Callable[..., Any]

SIGNED, UNSIGNED = tuple("bhilq"), tuple("BHILQ")
FLOATS, COMPLEX = tuple("efd"), tuple("FD")


def _both(name: str, sp_name: str | None, scipy_name: str | None, test: Test, args: Any, kwargs: Any) -> Any:
    """What a test returns, or the exception that it raises, with NumPy and with CuPy."""
    found = []
    for device in (False, True):
        given = dict(kwargs)
        given[name] = sys.modules["cupy"] if device else np
        if sp_name or scipy_name:
            package = importlib.import_module("cupyx.scipy" if device else "scipy")
            if sp_name:
                given[sp_name] = importlib.import_module(f"{package.__name__}.sparse")
            if scipy_name:
                given[scipy_name] = package
        try:
            found.append((test(*args, **given), None))
        except Exception as error:  # noqa: BLE001  which one, the caller compares
            found.append((None, error))
    return found


def _comparing(compare: Callable[..., Any]) -> Callable[..., Any]:
    """A family of decorators: ``compare(x, y, *options)`` checks what the two runs returned."""
    def make(*options: Any, name: str = "xp", type_check: bool = True, accept_error: Any = False,
             sp_name: str | None = None, scipy_name: str | None = None, contiguous_check: bool = True,
             strides_check: bool = False, **named: Any) -> Callable[[Test], Test]:
        named.pop("_check_sparse_format", None)

        def decorate(test: Test) -> Test:
            @functools.wraps(test)
            def run(*args: Any, **kwargs: Any) -> None:
                (host, host_error), (device, device_error) = _both(name, sp_name, scipy_name, test, args, kwargs)
                if host_error or device_error:
                    _same_error(host_error, device_error, accept_error)
                    return
                hosts, devices = ((x if isinstance(x, (tuple, list)) else [x]) for x in (host, device))
                assert len(hosts) == len(devices)
                for x, y in zip(hosts, devices):
                    x, y = on_host(x), on_host(y)
                    if type_check:
                        assert np.asarray(x).dtype == np.asarray(y).dtype, "dtypes differ"
                    if strides_check:
                        assert x.strides == y.strides, "strides differ"
                    compare(y, x, *options, **named)

            return _without(run, name, sp_name, scipy_name)

        return decorate

    return make


def _same_error(host: Exception | None, device: Exception | None, accepted: Any) -> None:
    if host is None or device is None:
        raise AssertionError(f"Only {'CuPy' if host is None else 'NumPy'} raises an error") from (host or device)
    if accepted is False or accepted is None:
        raise device
    kinds = Exception if accepted is True else accepted
    if not (isinstance(host, kinds) and isinstance(device, kinds)):
        raise AssertionError(f"NumPy raises {host!r}, CuPy {device!r}") from device


def _without(run: Test, *names: str | None) -> Test:
    """Hide parameters that a decorator gives, or pytest would look for fixtures of their names."""
    signature = inspect.signature(run)
    kept = [parameter for key, parameter in signature.parameters.items() if key not in names]
    run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    return run


def _equal(device: Any, host: Any) -> None:
    assert np.all(device == host), f"{device!r} is not {host!r}"


def numpy_cupy_raises(name: str = "xp", sp_name: str | None = None, scipy_name: str | None = None,
                      accept_error: Any = Exception) -> Callable[[Test], Test]:
    """A test that must raise the same error with both."""
    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> None:
            (_, host), (_, device) = _both(name, sp_name, scipy_name, test, args, kwargs)
            if host is None and device is None:
                raise AssertionError("Neither NumPy nor CuPy raises an error")
            _same_error(host, device, accept_error)

        return _without(run, name, sp_name, scipy_name)

    return decorate


def for_dtypes_combination(types: Iterable[Any], names: Any = ("dtype",), full: Any = None) -> Callable[[Test], Test]:
    """Run a test for each combination of dtypes."""
    names = [names] if isinstance(names, str) else list(names)
    kinds = [np.dtype(kind).type for kind in types]

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> None:
            for chosen in itertools.product(kinds, repeat=len(names)):
                try:
                    test(*args, **kwargs, **dict(zip(names, chosen)))
                except Exception:           # any: it is raised again
                    print(", ".join(f"{key} is {kind}" for key, kind in zip(names, chosen)))
                    raise

        return _without(run, *names)

    return decorate


def _for_values(values: Iterable[Any], name: str) -> Callable[[Test], Test]:
    kept = list(values)

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> None:
            for value in kept:
                test(*args, **kwargs, **{name: value})

        return _without(run, name)

    return decorate


def _all(no_float16: bool = False, no_bool: bool = False, no_complex: bool = False) -> list[str]:
    return [*(FLOATS[1:] if no_float16 else FLOATS), *SIGNED, *UNSIGNED, *("" if no_bool else "?"),
            *(() if no_complex else COMPLEX)]


def _family(kinds: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """``for_..._dtypes`` and ``for_..._dtypes_combination`` of some dtypes."""
    def one(name: str = "dtype", **choice: Any) -> Any:
        return for_dtypes_combination(kinds(**choice), [name])

    def several(names: Any = ("dtype",), full: Any = None, **choice: Any) -> Any:
        return for_dtypes_combination(kinds(**choice), names)

    return {"": one, "_combination": several}


def _parameterize(*params: Any, **kwargs: Any) -> Callable[[type], type]:
    """A class of tests whose instances have the values of each dict as attributes."""
    import pytest

    def decorate(kind: type) -> type:
        @pytest.fixture(autouse=True, params=params, ids=lambda one: "-".join(f"{k}={v}" for k, v in one.items()))
        def _cupy_testing_param(self: Any, request: Any) -> None:
            vars(self).update(request.param)

        kind._cupy_testing_param = _cupy_testing_param  # type: ignore[attr-defined]
        return kind

    return decorate


def _product(parameter: dict[str, Iterable[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(parameter, values)) for values in itertools.product(*parameter.values())]


def _fix_random() -> Callable[[Any], Any]:
    """Seed the generators before each test: here of a function."""
    def decorate(test: Any) -> Any:
        if isinstance(test, type):
            return test

        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> Any:
            sys.modules["cupy"].random.seed(100)
            return test(*args, **kwargs)

        return run

    return decorate


def _multi_gpu(gpu_num: int) -> Any:
    import pytest

    return pytest.mark.skipif(sys.modules["cupy"].cuda.runtime.getDeviceCount() < gpu_num,
                              reason=f"needs {gpu_num} GPUs")


def members() -> dict[str, Any]:
    """Decorators of ``cupy.testing``."""
    testing = np.testing
    families = {
        "all": _all, "float": lambda no_float16=False: FLOATS[1:] if no_float16 else FLOATS, "signed": lambda: SIGNED,
        "unsigned": lambda: UNSIGNED, "complex": lambda: COMPLEX,
        "int": lambda no_bool=False: [*SIGNED, *UNSIGNED, *("" if no_bool else "?")],
    }
    loops = {f"for_{kind}_dtypes{ending}": loop for kind, kinds in families.items()
             for ending, loop in _family(kinds).items() if (kind, ending) not in (("float", "_combination"),
                                                                                   ("complex", "_combination"))}
    return loops | {
        "for_dtypes": lambda dtypes, name="dtype": for_dtypes_combination(dtypes, [name]),
        "for_dtypes_combination": for_dtypes_combination,
        "for_orders": lambda orders, name="order": _for_values(orders, name),
        "for_CF_orders": lambda name="order": _for_values([None, "C", "F", "c", "f"], name),
        "numpy_cupy_allclose": _comparing(testing.assert_allclose), "numpy_cupy_equal": _comparing(_equal),
        "numpy_cupy_array_equal": _comparing(testing.assert_array_equal),
        "numpy_cupy_array_list_equal": _comparing(testing.assert_array_equal),
        "numpy_cupy_array_less": _comparing(testing.assert_array_less),
        "numpy_cupy_array_almost_equal": _comparing(testing.assert_array_almost_equal),
        "numpy_cupy_array_almost_equal_nulp": _comparing(testing.assert_array_almost_equal_nulp),
        "numpy_cupy_array_max_ulp": _comparing(testing.assert_array_max_ulp),
        "numpy_cupy_raises": numpy_cupy_raises, "parameterize": _parameterize, "product": _product,
        "product_dict": lambda *parameters: [{k: v for one in chosen for k, v in one.items()}
                                             for chosen in itertools.product(*parameters)],
        "fix_random": _fix_random, "multi_gpu": _multi_gpu, "slow": lambda test: test,
    }
