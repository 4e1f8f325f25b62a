"""Extension modules: arguments as Cython, pybind11 and nanobind declare them."""
from __future__ import annotations

from .building import built
from .records import Library, Refused

cython = Library("Cython")
pybind11 = Library("pybind11")
nanobind = Library("nanobind")

NO_BUFFER = Refused("TypeError", "buffer|bytes-like")
NO_STRUCT = Refused("TypeError", "expected numpy.ndarray, got LazyNdarray")


@cython("``const double[:]``, ``const double[:, :]``, ``const double[::1]``", copies="each once",
before_buffers=NO_BUFFER)
def test_memoryviews(x, matrix, gray):
    module = built("cython")
    return (module.total(x), module.total(x[::3]), module.total_2d(matrix), module.total_2d(matrix.T),
            module.contiguous(x),
            module.histogram(gray))


@cython("``double[:]``, written into", copies="each once", before_buffers=NO_BUFFER)
def test_written_memoryviews(x, y):
    module = built("cython")
    module.double_in_place(x)
    module.double_in_place(y[::2])
    return x.sum(), y + 1


@cython("``cnp.ndarray``, ``cnp.ndarray[double]``", refused=NO_STRUCT)
def test_ndarray_arguments(x):
    module = built("cython")
    return module.typed(x), module.typed_buffer(x)


@cython("``double``, ``Py_ssize_t`` of lazy scalars", copies="none")
def test_numbers(x, i):
    return built("cython").number(x[0], i[0])


@pybind11("``py::array_t<double>``, also written into", copies="each once")
def test_array_t(x, y, i):
    module = built("pybind11")
    module.double_in_place(y)
    return module.total(x), module.total(x[::2]), module.total(i), y + 1


@pybind11("``py::buffer``", copies="each once", before_buffers=Refused("TypeError", "Buffer|buffer"))
def test_py_buffer(x):
    return built("pybind11").total_of_buffer(x), built("pybind11").total_of_buffer(x[::2])


@pybind11("``py::array``", refused=Refused("TypeError", "numpy.ndarray"))
def test_py_array(x):
    return built("pybind11").dimensions(x)


@pybind11("``py::array_t`` with ``noconvert()``", refused=Refused("TypeError", r"NDArray\[numpy.float64\]"))
def test_noconvert(x):
    built("pybind11").double_noconvert(x)
    return x.sum()


@pybind11("``double``, ``py::ssize_t`` of lazy scalars", copies="none")
def test_pybind11_numbers(x, i):
    return built("pybind11").number(x[0], i[0])


@nanobind("``nb::ndarray<const double>``, ``nb::ndarray<nb::numpy>``", copies="each once")
def test_nb_ndarray(x):
    module = built("nanobind")
    return module.total(x), module.total(x[::2]), module.dimensions(x)


@nanobind("``nb::ndarray<double>``, written into", copies="each once")
def test_written_nb_ndarray(x, y):
    module = built("nanobind")
    module.double_in_place(x)
    module.double_in_place(y[::2])
    return x.sum(), y + 1


@nanobind("``double``, ``Py_ssize_t`` of lazy scalars", copies="none")
def test_nanobind_numbers(x, i):
    return built("nanobind").number(x[0], i[0])
