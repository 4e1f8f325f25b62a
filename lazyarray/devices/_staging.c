/* One thread's share of an upload of pageable memory, in C and without the interpreter: `cuda_staging` says what it does.

CUDA is not needed to compile this: the driver's functions are called through their addresses.
*/
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

typedef int (*copier)(uint64_t, const void *, size_t, void *);
typedef int (*recorder)(void *, void *);
typedef int (*waiter)(void *);

PyDoc_STRVAR(send_doc,
"send(functions, taken, parts, buffers, target, start, stream, /)\n--\n\n"
"Move parts of memory to page-locked buffers, and have each copied to the device; the interpreter is free meanwhile.\n\n"
"Parameters\n----------\n"
"functions : tuple of int\n    Addresses of cuMemcpyHtoDAsync, cuEventRecord and cuEventSynchronize.\n"
"taken : writable buffer of one int64\n    How many parts were taken, by all threads that have the same one.\n"
"parts : buffer of int64\n    The start and the stop of each, from 0 on.\n"
"buffers : buffer of uint64\n    The address of each buffer, and the event that says when the device has read it.\n"
"target, start, stream : int\n    The device address, the host address, and the stream.\n\n"
"Returns\n-------\nint\n    0, or the driver's error; then the others take no more parts.");

static PyObject *
send(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long copy, record, wait, target, start, stream;
    Py_buffer taken, parts, buffers;
    if (!PyArg_ParseTuple(args, "(KKK)w*y*y*KKK", &copy, &record, &wait, &taken, &parts, &buffers, &target, &start,
                          &stream))
        return NULL;
    int64_t count = parts.len / 16, turns = buffers.len / 16, turn = 0;
    int error = 0;
    PyObject *result = NULL;
    if (taken.len != 8 || parts.len % 16 || buffers.len % 16 || (turns == 0 && count) || !copy || !record || !wait) {
        PyErr_SetString(PyExc_ValueError, "a counter, pairs of numbers and addresses are needed");
        goto end;
    }
    const int64_t *ends = parts.buf;
    const uint64_t *places = buffers.buf;
    Py_BEGIN_ALLOW_THREADS
    while (!error) {
        int64_t part = __atomic_fetch_add((int64_t *)taken.buf, 1, __ATOMIC_RELAXED);
        if (part >= count)
            break;
        int64_t low = ends[2 * part], high = ends[2 * part + 1];
        void *buffer = (void *)(uintptr_t)places[2 * turn], *event = (void *)(uintptr_t)places[2 * turn + 1];
        error = ((waiter)(uintptr_t)wait)(event);
        if (error)
            break;
        memcpy(buffer, (const char *)(uintptr_t)start + low, (size_t)(high - low));
        error = ((copier)(uintptr_t)copy)(target + (uint64_t)low, buffer, (size_t)(high - low), (void *)(uintptr_t)stream);
        if (!error)
            error = ((recorder)(uintptr_t)record)(event, (void *)(uintptr_t)stream);
        turn = turn + 1 < turns ? turn + 1 : 0;
    }
    if (error)
        __atomic_fetch_add((int64_t *)taken.buf, count, __ATOMIC_RELAXED);
    Py_END_ALLOW_THREADS
    result = PyLong_FromLong(error);
end:
    PyBuffer_Release(&taken);
    PyBuffer_Release(&parts);
    PyBuffer_Release(&buffers);
    return result;
}

static PyMethodDef methods[] = {{"send", send, METH_VARARGS, send_doc}, {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "lazyarray.devices._staging", PyDoc_STR("Uploads of pageable memory, in C."), -1, methods,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit__staging(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && PyModule_AddIntConstant(module, "INTERFACE", 5) < 0)
        Py_CLEAR(module);
    return module;
}
