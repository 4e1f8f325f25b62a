/* The launch of a kernel on dense arrays and numbers, in C: `cuda_kernels.Kernel` says what it does. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "_launch_kernel.h"
#include "_launch_reduction.h"

#define PACK 16         /* bytes that addresses are multiples of where packs are loaded */

typedef struct {
    PyObject_HEAD
    Kernel kernel;
    PyObject *dtypes;                       /* of the outputs */
    int told;
    Py_ssize_t elements;                    /* of a block */
} Launch;

static PyObject *text_c, *text_f;

static int
visit(Launch *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->dtypes);
    return kernel_visit(&self->kernel, visit, arg);
}

static int
clear(Launch *self)
{
    Py_CLEAR(self->dtypes);
    kernel_clear(&self->kernel);
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
    if (PyTuple_GET_SIZE(dtypes) < 1 || elements < 1) {
        PyErr_SetString(PyExc_ValueError, "a launch has at least one output, and elements in a block");
        return -1;
    }
    if (kernel_init(&self->kernel, function, launch, owner, ndarray, stream, sizes, threads,
                    PyTuple_GET_SIZE(dtypes) + 2) < 0)
        return -1;
    self->elements = elements;
    self->told = told;
    Py_XSETREF(self->dtypes, Py_NewRef(dtypes));
    return 0;
}

/* The outputs, or None for whoever asks to do it: an address that packs can't be loaded from, another kind of number, an
   error of CUDA's (a thread that has no context yet, for one), which comes again there. */
static PyObject *
call(Launch *self, PyObject *args, PyObject *kwargs)
{
    PyObject *arguments, *shape, *outputs = NULL;
    int fortran;
    Room rooms[MOST];
    void *parameters[MOST];
    if (kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "a launch takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O!O!p", &PyList_Type, &arguments, &PyTuple_Type, &shape, &fortran))
        return NULL;
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
    uint64_t places;
    int count = self->kernel.inputs, done = inputs_of(&self->kernel, arguments, rooms, parameters, &places);
    if (done < 0)
        return NULL;
    if (done == 0)
        Py_RETURN_NONE;
    if (self->told && places % PACK)
        Py_RETURN_NONE;
    Py_ssize_t made = PyTuple_GET_SIZE(self->dtypes);
    outputs = PyList_New(made);
    if (outputs == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < made; i++, count++) {
        PyObject *with[] = {shape, PyTuple_GET_ITEM(self->dtypes, i), Py_None, Py_None, fortran ? text_f : text_c};
        PyObject *array = PyObject_Vectorcall(self->kernel.ndarray, with, 5, NULL);
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
    int error = launched(&self->kernel, (unsigned)blocks, parameters);
    if (error && PyErr_Occurred())
        goto failed;
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
    PyObject *reduction = PyType_FromSpec(&reduction_spec);
    if (module == NULL || type == NULL || PyModule_AddObjectRef(module, "Launch", type) < 0
            || reduction == NULL || PyModule_AddObjectRef(module, "Reduction", reduction) < 0
            || PyModule_AddIntMacro(module, MOST) < 0 || PyModule_AddIntMacro(module, AFTER) < 0
            || PyModule_AddIntConstant(module, "INTERFACE", 4) < 0)
        Py_CLEAR(module);
    Py_XDECREF(type);
    Py_XDECREF(reduction);
    return module;
}
