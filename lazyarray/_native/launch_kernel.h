/* What the launches in C have in common: a kernel, its inputs as parameters, and the call of `cuLaunchKernel`.

CUDA is not needed to compile this: `cuLaunchKernel` is called through its address, which who makes a launch brings.
*/
#include <stdint.h>
#include <string.h>

#include "address.h"

#define MOST 64         /* parameters */
#define ROOM 16         /* bytes of one: complex128 */
#define PACK 16         /* bytes that addresses are multiples of where packs are loaded */

typedef int (*launcher)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

typedef union { char bytes[ROOM]; uint64_t address; int64_t number; double real; int flag; } Room;

typedef struct {
    void *function;
    launcher launch;
    PyObject *ndarray, *stream;             /* the class of arrays, what gives the current stream */
    PyObject *owner;                        /* what keeps the function loaded */
    int inputs;
    Py_ssize_t threads;                     /* of a block */
    unsigned char sizes[MOST];              /* of each input: 0 of an array, else the bytes of a number */
} Kernel;

static PyObject *text_data, *text_ptr;

static int
kernel_visit(Kernel *kernel, visitproc visit, void *arg)
{
    Py_VISIT(kernel->ndarray);
    Py_VISIT(kernel->stream);
    Py_VISIT(kernel->owner);
    return 0;
}

/* -1 with an error if `__init__` has not filled what it fills last. */
static int
is_unmade(PyObject *last)
{
    if (last != NULL)
        return 0;
    PyErr_SetString(PyExc_TypeError, "this launch was not made yet");
    return -1;
}

static void
kernel_clear(Kernel *kernel)
{
    Py_CLEAR(kernel->ndarray);
    Py_CLEAR(kernel->stream);
    Py_CLEAR(kernel->owner);
}

/* `sizes` is a tuple; `more`: parameters after those of the inputs. */
static int
kernel_init(Kernel *kernel, unsigned long long function, unsigned long long launch, PyObject *owner, PyObject *ndarray,
            PyObject *stream, PyObject *sizes, Py_ssize_t threads, Py_ssize_t more)
{
    Py_ssize_t inputs = PyTuple_GET_SIZE(sizes);
    if (inputs + more > MOST) {
        PyErr_Format(PyExc_ValueError, "a launch has at most %d parameters", MOST);
        return -1;
    }
    if (threads < 1 || function == 0 || launch == 0) {
        PyErr_SetString(PyExc_ValueError, "threads and addresses are greater than 0");
        return -1;
    }
    for (Py_ssize_t i = 0; i < inputs; i++) {
        long size = PyLong_AsLong(PyTuple_GET_ITEM(sizes, i));
        if (size < 0 || size > ROOM) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_ValueError, "a number has at most %d bytes", ROOM);
            return -1;
        }
        kernel->sizes[i] = (unsigned char)size;
    }
    kernel->function = (void *)(uintptr_t)function;
    kernel->launch = (launcher)(uintptr_t)launch;
    kernel->inputs = (int)inputs;
    kernel->threads = threads;
    Py_XSETREF(kernel->owner, Py_NewRef(owner));
    Py_XSETREF(kernel->ndarray, Py_NewRef(ndarray));
    Py_XSETREF(kernel->stream, Py_NewRef(stream));
    return 0;
}

/* 1 with an exception if a launch is called with keywords. */
static int
has_keywords(PyObject *kwargs)
{
    if (kwargs == NULL || PyDict_GET_SIZE(kwargs) == 0)
        return 0;
    PyErr_SetString(PyExc_TypeError, "a launch takes no keywords");
    return 1;
}

/* The bytes of a NumPy scalar; 1 if there are as many as expected, 0 if not. */
static int
number_of(PyObject *object, size_t size, char *room)
{
    Py_buffer view;
    if (PyObject_GetBuffer(object, &view, PyBUF_SIMPLE) < 0) {
        PyErr_Clear();
        return 0;
    }
    int fits = (size_t)view.len == size;
    if (fits)
        memcpy(room, view.buf, size);
    PyBuffer_Release(&view);
    return fits;
}

/* The inputs as the first parameters: 1, or 0 if one is another kind of number, or -1 with an exception. `places`: the
   bits that are set in any address; `aligned`: which inputs packs can be loaded from, one bit for each array. */
static int
inputs_of(Kernel *kernel, PyObject *arguments, Room *rooms, void **parameters, uint64_t *places,
          uint64_t *aligned)
{
    if (PyList_GET_SIZE(arguments) != kernel->inputs) {
        PyErr_Format(PyExc_TypeError, "%d arguments, not %zd", kernel->inputs, PyList_GET_SIZE(arguments));
        return -1;
    }
    *places = *aligned = 0;
    for (int i = 0; i < kernel->inputs; i++) {
        PyObject *argument = Py_NewRef(PyList_GET_ITEM(arguments, i));
        int done;
        if (kernel->sizes[i] != 0)
            done = number_of(argument, kernel->sizes[i], rooms[i].bytes);
        else if (address_of(argument, text_data, text_ptr, &rooms[i].address) < 0)
            done = -1;
        else {
            *places |= rooms[i].address;
            *aligned |= (uint64_t)(rooms[i].address % PACK == 0) << i;
            done = 1;
        }
        Py_DECREF(argument);
        if (done != 1)
            return done;
        parameters[i] = &rooms[i];
    }
    return 1;
}

/* Launch on the current stream: 0, or an error of CUDA's, or -1 with an exception. */
static int
launched(Kernel *kernel, unsigned blocks, void **parameters)
{
    PyObject *current = PyObject_CallNoArgs(kernel->stream);
    uint64_t stream = 0;
    int error = current == NULL ? -1 : address_of(current, text_ptr, NULL, &stream);
    if (error == 0) {
        Py_BEGIN_ALLOW_THREADS      /* it waits where very much is queued */
        error = kernel->launch(kernel->function, blocks, 1, 1, (unsigned)kernel->threads, 1, 1, 0,
                               (void *)(uintptr_t)stream, parameters, NULL);
        Py_END_ALLOW_THREADS
    }
    Py_XDECREF(current);
    return error;
}

PyDoc_STRVAR(launched_doc, "launched(function, launch, formats, ndarray, stream, blocks, threads, values, /)\n--\n\n"
"Launch a kernel with these values, by the formats of the module `struct`, one character for each: CUDA's status.\n\n"
"A device array may stand for its address, of format Q.");

static PyObject *
launched_with(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 8 || !PyBytes_CheckExact(args[2]) || !PyList_CheckExact(args[7]) || PyBytes_GET_SIZE(args[2]) > MOST
            || PyBytes_GET_SIZE(args[2]) != PyList_GET_SIZE(args[7])) {
        PyErr_Format(PyExc_TypeError, "launched takes a list of at most %d values, and a format for each", MOST);
        return NULL;
    }
    Kernel kernel = {.function = (void *)(uintptr_t)PyLong_AsUnsignedLongLong(args[0]),
                     .launch = (launcher)(uintptr_t)PyLong_AsUnsignedLongLong(args[1]),
                     .ndarray = args[3], .stream = args[4], .threads = PyLong_AsSsize_t(args[6])};
    const long long blocks = PyLong_AsLongLong(args[5]);
    Room rooms[MOST];
    void *parameters[MOST];
    for (Py_ssize_t i = 0; !PyErr_Occurred() && i < PyList_GET_SIZE(args[7]); i++) {
        PyObject *value = PyList_GET_ITEM(args[7], i), *number;
        const char format = PyBytes_AS_STRING(args[2])[i];
        parameters[i] = &rooms[i];
        if (format == 'Q' && PyType_Check(args[3]) && PyObject_TypeCheck(value, (PyTypeObject *)args[3])) {
            address_of(value, text_data, text_ptr, &rooms[i].address);
            continue;
        }
        if (format == 'd') {
            rooms[i].real = PyFloat_AsDouble(value);
            continue;
        }
        if ((number = PyNumber_Index(value)) == NULL)
            break;
        if (format == 'Q')
            rooms[i].address = PyLong_AsUnsignedLongLong(number);
        else if (format == 'q')
            rooms[i].number = PyLong_AsLongLong(number);
        else if (format == 'I' || format == 'i') {
            const uint32_t word = format == 'I' ? (uint32_t)PyLong_AsUnsignedLong(number) : (uint32_t)PyLong_AsLong(number);
            memcpy(rooms[i].bytes, &word, sizeof word);
        }
        else
            PyErr_Format(PyExc_TypeError, "a launch takes no %c", format);
        Py_DECREF(number);
    }
    if (!PyErr_Occurred() && (blocks < 1 || blocks > INT32_MAX || kernel.threads < 1 || !kernel.function || !kernel.launch))
        return PyLong_FromLong(1);      /* CUDA_ERROR_INVALID_VALUE */
    int error = PyErr_Occurred() ? -1 : launched(&kernel, (unsigned)blocks, parameters);
    return PyErr_Occurred() ? NULL : PyLong_FromLong(error);
}
