// Arguments as extension modules declare them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

double total(nb::ndarray<const double, nb::ndim<1>, nb::device::cpu> values) {
    auto v = values.view();
    double result = 0;
    for (size_t i = 0; i < v.shape(0); ++i) result += v(i);
    return result;
}

void double_in_place(nb::ndarray<double, nb::ndim<1>, nb::device::cpu> values) {
    auto v = values.view();
    for (size_t i = 0; i < v.shape(0); ++i) v(i) *= 2;
}

size_t dimensions(nb::ndarray<nb::numpy> values) { return values.ndim(); }

NB_MODULE(with_nanobind, m) {
    m.def("total", &total);
    m.def("double_in_place", &double_in_place);
    m.def("dimensions", &dimensions);
    m.def("number", [](double value, Py_ssize_t index) { return value * index; });
}
