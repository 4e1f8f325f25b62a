/* The launch of a kernel on dense arrays and numbers, in C: `cuda_kernels.Kernel` says what it does.

CUDA is not needed to compile this: `cuLaunchKernel` is called through its address, which who makes a `Launch` brings.
*/
#define PY_SSIZE_T_CLEAN
#include <Python.h>
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
    int inputs, told;
    Py_ssize_t elements, threads;
    unsigned char sizes[MOST];              /* of each input: 0 of an array, else the bytes of a number */
} Launch;

static PyObject *text_data, *text_ptr, *text_c, *text_f;

static int
visit(Launch *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->ndarray);
    Py_VISIT(self->stream);
    Py_VISIT(self->dtypes);
    Py_VISIT(self->owner);
    return 0;
}

static int
clear(Launch *self)
{
    Py_CLEAR(self->ndarray);
    Py_CLEAR(self->stream);
    Py_CLEAR(self->dtypes);
    Py_CLEAR(self->owner);
    return 0;
}

static void
dealloc(Launch *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static int
init(Launch *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"function", "launch", "owner", "ndarray", "stream", "sizes", "dtypes", "elements", "threads",
                            "told", NULL};
    unsigned long long function, launch;
    PyObject *owner, *ndarray, *stream, *sizes, *dtypes;
    Py_ssize_t elements, threads;
    int told;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "KKOOOO!O!nnp", names, &function, &launch, &owner, &ndarray, &stream,
                                     &PyTuple_Type, &sizes, &PyTuple_Type, &dtypes, &elements, &threads, &told))
        return -1;
    Py_ssize_t inputs = PyTuple_GET_SIZE(sizes);
    if (inputs + PyTuple_GET_SIZE(dtypes) + 2 > MOST || PyTuple_GET_SIZE(dtypes) < 1) {
        PyErr_Format(PyExc_ValueError, "a launch has at least one output, and at most %d parameters", MOST);
        return -1;
    }
    if (elements < 1 || threads < 1 || function == 0 || launch == 0) {
        PyErr_SetString(PyExc_ValueError, "elements, threads and addresses are greater than 0");
        return -1;
    }
    for (Py_ssize_t i = 0; i < inputs; i++) {
        long size = PyLong_AsLong(PyTuple_GET_ITEM(sizes, i));
        if (size < 0 || size > ROOM) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_ValueError, "a number has at most %d bytes", ROOM);
            return -1;
        }
        self->sizes[i] = (unsigned char)size;
    }
    self->function = (void *)(uintptr_t)function;
    self->launch = (launcher)(uintptr_t)launch;
    self->inputs = (int)inputs;
    self->elements = elements;
    self->threads = threads;
    self->told = told;
    Py_XSETREF(self->owner, Py_NewRef(owner));
    Py_XSETREF(self->ndarray, Py_NewRef(ndarray));
    Py_XSETREF(self->stream, Py_NewRef(stream));
    Py_XSETREF(self->dtypes, Py_NewRef(dtypes));
    return 0;
}

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

/* The outputs, or None for whoever asks to do it: an address that packs can't be loaded from, another kind of number, an
   error of CUDA's (a thread that has no context yet, for one), which comes again there. */
static PyObject *
call(Launch *self, PyObject *args, PyObject *kwargs)
{
    PyObject *arguments, *shape, *outputs = NULL;
    int fortran;
    union { char bytes[ROOM]; uint64_t address; int64_t number; int flag; } rooms[MOST];
    void *parameters[MOST];
    if (kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "a launch takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O!O!p", &PyList_Type, &arguments, &PyTuple_Type, &shape, &fortran))
        return NULL;
    if (PyList_GET_SIZE(arguments) != self->inputs) {
        PyErr_Format(PyExc_TypeError, "%d arguments, not %zd", self->inputs, PyList_GET_SIZE(arguments));
        return NULL;
    }
    int64_t size = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); i++) {
        int64_t length = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i));
        if (length < 0) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "a length is less than 0");
            return NULL;
        }
        size *= length;
    }
    int64_t blocks = size / self->elements + (size % self->elements != 0);
    if (size == 0 || blocks > INT32_MAX)
        Py_RETURN_NONE;
    uint64_t places = 0;
    int count = 0;
    for (; count < self->inputs; count++) {
        PyObject *argument = Py_NewRef(PyList_GET_ITEM(arguments, count));
        int failed = 0, fits = 1;
        if (self->sizes[count] == 0) {
            failed = address_of(argument, text_data, text_ptr, &rooms[count].address);
            places |= rooms[count].address;
        }
        else
            fits = number_of(argument, self->sizes[count], rooms[count].bytes);
        Py_DECREF(argument);
        if (failed)
            return NULL;
        if (!fits)
            Py_RETURN_NONE;
        parameters[count] = &rooms[count];
    }
    if (self->told && places % PACK)
        Py_RETURN_NONE;
    Py_ssize_t made = PyTuple_GET_SIZE(self->dtypes);
    outputs = PyList_New(made);
    if (outputs == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < made; i++, count++) {
        PyObject *with[] = {shape, PyTuple_GET_ITEM(self->dtypes, i), Py_None, Py_None, fortran ? text_f : text_c};
        PyObject *array = PyObject_Vectorcall(self->ndarray, with, 5, NULL);
        if (array == NULL)
            goto failed;
        PyList_SET_ITEM(outputs, i, array);
        if (address_of(array, text_data, text_ptr, &rooms[count].address) < 0)
            goto failed;
        parameters[count] = &rooms[count];
    }
    rooms[count].number = size;
    parameters[count] = &rooms[count];
    if (self->told) {
        count++;
        rooms[count].flag = 1;
        parameters[count] = &rooms[count];
    }
    PyObject *current = PyObject_CallNoArgs(self->stream);
    uint64_t stream = 0;
    int lost = current == NULL ? -1 : address_of(current, text_ptr, NULL, &stream);
    if (lost) {
        Py_XDECREF(current);
        goto failed;
    }
    int error;
    Py_BEGIN_ALLOW_THREADS      /* it waits where very much is queued */
    error = self->launch(self->function, (unsigned)blocks, 1, 1, (unsigned)self->threads, 1, 1, 0,
                         (void *)(uintptr_t)stream, parameters, NULL);
    Py_END_ALLOW_THREADS
    Py_DECREF(current);
    if (!error)
        return outputs;
    Py_DECREF(outputs);
    Py_RETURN_NONE;
failed:
    Py_DECREF(outputs);
    return NULL;
}

PyDoc_STRVAR(launch_doc,
"Launch(function, launch, owner, ndarray, stream, sizes, dtypes, elements, threads, told)\n--\n\n"
"Makes the outputs of a kernel and launches it.\n\n"
"Parameters\n----------\n"
"function, launch : int\n    Addresses of the CUfunction and of cuLaunchKernel.\n"
"owner : object\n    Kept, and with it the function's code.\n"
"ndarray, stream : callable\n    The class of device arrays, and what gives the current stream.\n"
"sizes : tuple of int\n    Of each input: 0 of an array, else the bytes of a number.\n"
"dtypes : tuple of numpy.dtype\n    Of the outputs.\n"
"elements, threads : int\n    Of a block.\n"
"told : bool\n    The kernel's last parameter says that packs can be loaded; other addresses are left to the caller.");

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)launch_doc}, {Py_tp_init, init}, {Py_tp_call, call}, {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, visit}, {Py_tp_clear, clear}, {Py_tp_new, PyType_GenericNew}, {0, NULL},
};

static PyType_Spec spec = {
    "lazyarray.devices._launch.Launch", sizeof(Launch), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots,
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "lazyarray.devices._launch", PyDoc_STR("The launch of kernels, in C."), -1, NULL, NULL, NULL,
    NULL, NULL,
};

PyMODINIT_FUNC
PyInit__launch(void)
{
    if ((text_data = PyUnicode_InternFromString("data")) == NULL || (text_ptr = PyUnicode_InternFromString("ptr")) == NULL
            || (text_c = PyUnicode_InternFromString("C")) == NULL || (text_f = PyUnicode_InternFromString("F")) == NULL)
        return NULL;
    PyObject *module = PyModule_Create(&definition), *type = PyType_FromSpec(&spec);
    if (module == NULL || type == NULL || PyModule_AddObjectRef(module, "Launch", type) < 0
            || PyModule_AddIntConstant(module, "INTERFACE", 5) < 0)
        Py_CLEAR(module);
    Py_XDECREF(type);
    return module;
}
