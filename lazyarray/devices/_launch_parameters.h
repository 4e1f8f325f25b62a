/* What `_launch.c` keeps of a kernel, and how the arguments of a call become its parameters. */
#include <stdint.h>
#include <string.h>

#define MOST 64         /* parameters */
#define ROOM 16         /* bytes of one: complex128 */
#define PACK 16         /* bytes that addresses are multiples of where packs are loaded */

typedef int (*launcher)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

typedef struct {
    PyObject_HEAD
    void *function;
    launcher launch;
    PyObject *ndarray, *stream, *dtypes;    /* the class of arrays, what gives the current stream, of the outputs */
    PyObject *owner;                        /* what keeps the function loaded */
    PyObject *strided, *plans;              /* numbers of inputs that are walked, and what launches for their strides */
    PyObject *walk;                         /* the last parameter, as bytes, or None */
    int inputs, told;
    Py_ssize_t elements, threads, blocks;
    unsigned char sizes[MOST];              /* of each input: 0 of an array, else the bytes of a number */
} Launch;

static PyObject *text_data, *text_ptr, *text_c, *text_f, *text_shape, *text_strides;

/* An integer attribute of an attribute or, with no `inner`, of the object itself. */
static int
address_of(PyObject *object, PyObject *name, PyObject *inner, uint64_t *found)
{
    PyObject *value = PyObject_GetAttr(object, name);
    if (value != NULL && inner != NULL)
        Py_SETREF(value, PyObject_GetAttr(value, inner));
    if (value == NULL)
        return -1;
    *found = PyLong_AsUnsignedLongLong(value);
    Py_DECREF(value);
    return *found == (uint64_t)-1 && PyErr_Occurred() ? -1 : 0;
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

typedef union { char bytes[ROOM]; uint64_t address; int64_t number; int flag; } Room;

/* The parameters that inputs become, 1; 0: another kind of number, -1: an error. `places`: all addresses, or-ed;
   `aligned`: which inputs packs can be loaded from, one bit for each. */
static int
inputs_of(const Launch *self, PyObject *arguments, Room *rooms, void **parameters, uint64_t *places, uint64_t *aligned)
{
    if (PyList_GET_SIZE(arguments) != self->inputs) {
        PyErr_Format(PyExc_TypeError, "%d arguments, not %zd", self->inputs, PyList_GET_SIZE(arguments));
        return -1;
    }
    for (int i = 0; i < self->inputs; i++) {
        PyObject *argument = Py_NewRef(PyList_GET_ITEM(arguments, i));
        int failed = 0, fits = 1;
        if (self->sizes[i] == 0) {
            failed = address_of(argument, text_data, text_ptr, &rooms[i].address);
            *places |= rooms[i].address;
            *aligned |= (uint64_t)(rooms[i].address % PACK == 0) << i;
        }
        else
            fits = number_of(argument, self->sizes[i], rooms[i].bytes);
        Py_DECREF(argument);
        if (failed || !fits)
            return failed ? -1 : 0;
        parameters[i] = &rooms[i];
    }
    return 1;
}

/* What a plan is found by: all that the walk through inputs and the choice of a form depend on. */
static PyObject *
key_of(const Launch *self, PyObject *arguments, PyObject *shape, int fortran, uint64_t aligned)
{
    Py_ssize_t count = PyTuple_GET_SIZE(self->strided);
    PyObject *key = PyTuple_New(3 + 2 * count);
    if (key == NULL)
        return NULL;
    PyTuple_SET_ITEM(key, 0, Py_NewRef(shape));
    PyTuple_SET_ITEM(key, 1, PyBool_FromLong(fortran));
    PyTuple_SET_ITEM(key, 2, PyLong_FromUnsignedLongLong(aligned));
    int failed = PyTuple_GET_ITEM(key, 2) == NULL;
    for (Py_ssize_t i = 0; !failed && i < count; i++) {
        PyObject *array = PyList_GET_ITEM(arguments, PyLong_AsSsize_t(PyTuple_GET_ITEM(self->strided, i)));
        PyObject *lengths = PyObject_GetAttr(array, text_shape);
        PyObject *strides = lengths == NULL ? NULL : PyObject_GetAttr(array, text_strides);
        PyTuple_SET_ITEM(key, 3 + 2 * i, lengths);
        PyTuple_SET_ITEM(key, 4 + 2 * i, strides);
        failed = strides == NULL;
    }
    if (failed)
        Py_CLEAR(key);
    return key;
}

/* The elements of a shape, -1 with an error. */
static int64_t
size_of(PyObject *shape)
{
    int64_t size = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); i++) {
        int64_t length = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i));
        if (length < 0) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "a length is less than 0");
            return -1;
        }
        size *= length;
    }
    return size;
}
