// Arguments as extension modules declare them.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

namespace py = pybind11;

double total(py::array_t<double, py::array::c_style | py::array::forcecast> values) {
    double result = 0;
    for (py::ssize_t i = 0; i < values.size(); ++i) result += values.data()[i];
    return result;
}

double total_of_buffer(py::buffer values) {
    py::buffer_info info = values.request();
    double result = 0;
    for (py::ssize_t i = 0; i < info.shape[0]; ++i)
        result += *reinterpret_cast<double *>(static_cast<char *>(info.ptr) + i * info.strides[0]);
    return result;
}

void double_in_place(py::array_t<double> values) {
    auto v = values.mutable_unchecked<1>();
    for (py::ssize_t i = 0; i < v.shape(0); ++i) v(i) *= 2;
}

py::ssize_t dimensions(py::array values) { return values.ndim(); }

PYBIND11_MODULE(with_pybind11, m) {
    m.def("total", &total);
    m.def("total_of_buffer", &total_of_buffer);
    m.def("double_in_place", &double_in_place, py::arg("values"));
    m.def("double_noconvert", &double_in_place, py::arg("values").noconvert());
    m.def("dimensions", &dimensions);
    m.def("number", [](double value, py::ssize_t index) { return value * index; });
}
