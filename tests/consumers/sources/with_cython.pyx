# cython: language_level=3
"""Arguments as extension modules declare them."""
cimport numpy as cnp

import numpy as np

cnp.import_array()


def total(const double[:] values):
    cdef double result = 0
    cdef Py_ssize_t i
    for i in range(values.shape[0]):
        result += values[i]
    return result


def total_2d(const double[:, :] values):
    cdef double result = 0
    cdef Py_ssize_t i, j
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            result += values[i, j]
    return result


def double_in_place(double[:] values):
    cdef Py_ssize_t i
    for i in range(values.shape[0]):
        values[i] *= 2


def contiguous(const double[::1] values):
    return values[0], values.shape[0]


def histogram(const unsigned char[:, :] image):
    counts = np.zeros(256, np.int64)
    cdef cnp.int64_t[:] into = counts
    cdef Py_ssize_t i, j
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            into[image[i, j]] += 1
    return counts


def typed(cnp.ndarray values):
    return values.shape[0], values.sum()


def typed_buffer(cnp.ndarray[double, ndim=1] values):
    cdef double result = 0
    cdef Py_ssize_t i
    for i in range(values.shape[0]):
        result += values[i]
    return result


def number(double value, Py_ssize_t index):
    return value * index
