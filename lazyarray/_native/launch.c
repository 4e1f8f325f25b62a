/* The launch of a kernel on arrays and numbers, in C: `cuda_kernels.Kernel` says what it does. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "launch_kernel.h"
#include "launch_allocation.h"
#include "launch_reduction.h"

static PyObject *text_c, *text_f, *text_shape, *text_strides;

#include "launch_walk.h"

#ifndef Py_T_OBJECT_EX      /* before Python 3.12 */
#define Py_T_OBJECT_EX T_OBJECT_EX
#define Py_READONLY READONLY
#endif

typedef struct {
    PyObject_HEAD
    Kernel kernel;
    PyObject *dtypes;                       /* of the outputs */
    PyObject *strided, *plans;              /* numbers of inputs that are walked, and what launches for their strides */
    Walkers walkers;                        /* the same inputs */
    PyObject *walk;                         /* the last parameter, as bytes, or None */
    int takes_alignment, walks;             /* whether the last parameter is a walk that goes by the arguments */
    Py_ssize_t elements, blocks;            /* of a block; 0 if their number goes by the elements */
} Launch;

static int
visit(Launch *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->dtypes);
    Py_VISIT(self->plans);
    return kernel_visit(&self->kernel, visit, arg);
}

static int
clear(Launch *self)
{
    Py_CLEAR(self->dtypes);
    Py_CLEAR(self->strided);
    Py_CLEAR(self->plans);
    Py_CLEAR(self->walk);
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
                            "takes_alignment", "strided", "pack", "into", "walk", "blocks", "walks", NULL};
    unsigned long long function, launch;
    PyObject *owner, *ndarray, *stream, *sizes, *dtypes, *strided = NULL, *walk = NULL;
    Py_ssize_t elements, threads, blocks = 0, pack = 1;
    int takes_alignment, into = 0, walks = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "KKOOOO!O!nnp|O!npSnp", names, &function, &launch, &owner, &ndarray,
                                     &stream, &PyTuple_Type, &sizes, &PyTuple_Type, &dtypes, &elements, &threads,
                                     &takes_alignment, &PyTuple_Type, &strided, &pack, &into, &walk, &blocks, &walks))
        return -1;
    if (elements < 1 || blocks < 0 || blocks > INT32_MAX || pack < 1) {
        PyErr_SetString(PyExc_ValueError, "a launch has elements in a block, and no odd blocks");
        return -1;
    }
    if (kernel_init(&self->kernel, function, launch, owner, ndarray, stream, sizes, threads,
                    PyTuple_GET_SIZE(dtypes) + 2) < 0)
        return -1;
    Walkers walkers = {.count = 0, .target = into ? self->kernel.inputs - 1 : -1, .pack = pack};
    for (int i = 0; i < self->kernel.inputs; i++)
        walkers.flat |= (uint64_t)(self->kernel.sizes[i] == 0) << i;
    for (Py_ssize_t i = 0; strided != NULL && i < PyTuple_GET_SIZE(strided); i++) {
        Py_ssize_t number, itemsize;
        if (!PyTuple_Check(PyTuple_GET_ITEM(strided, i))) {
            PyErr_SetString(PyExc_TypeError, "a strided input is a number, and the bytes of its elements");
            return -1;
        }
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(strided, i), "nn", &number, &itemsize))
            return -1;
        if (number < 0 || number >= self->kernel.inputs || itemsize < 1) {
            PyErr_SetString(PyExc_ValueError, "there is no such input");
            return -1;
        }
        walkers.flat &= ~((uint64_t)1 << number);
        if (i < MOST_WALKED) {
            walkers.place[i] = (int)number;
            walkers.itemsize[i] = itemsize;
        }
        walkers.count = (int)i + 1;
    }
    PyObject *plans = PyDict_New(), *numbers = strided == NULL ? PyTuple_New(0) : Py_NewRef(strided);
    if (plans == NULL || numbers == NULL) {
        Py_XDECREF(plans);
        Py_XDECREF(numbers);
        return -1;
    }
    self->elements = elements;
    self->blocks = blocks;
    self->takes_alignment = takes_alignment;
    self->walkers = walkers;
    self->walks = walks;
    Py_XSETREF(self->plans, plans);
    Py_XSETREF(self->strided, numbers);
    Py_XSETREF(self->walk, walk == NULL ? Py_NewRef(Py_None) : Py_NewRef(walk));
    Py_XSETREF(self->dtypes, Py_NewRef(dtypes));
    return 0;
}

/* What a plan is found by: bytes that the choice of a form goes by, and then its walk is found as well; or else all that both depend
on, the sizes too. */
static PyObject *
key_of(const Launch *self, PyObject *arguments, PyObject *shape, int fortran, int64_t size, uint64_t aligned, Walk *walk)
{
    const int found = find_walk(&self->walkers, arguments, shape, fortran, size, aligned, walk);
    if (found != 0)
        return found < 0 ? NULL : PyBytes_FromStringAndSize(walk->key, walk->key_size);
    Py_ssize_t count = PyTuple_GET_SIZE(self->strided);
    PyObject *key = PyTuple_New(3 + 2 * count);
    if (key == NULL)
        return NULL;
    PyObject_GC_UnTrack(key);       /* who walks the collector's objects finds it when it is full */
    PyTuple_SET_ITEM(key, 0, Py_NewRef(shape));
    PyTuple_SET_ITEM(key, 1, PyBool_FromLong(fortran));
    PyTuple_SET_ITEM(key, 2, PyLong_FromUnsignedLongLong(aligned));
    int failed = PyTuple_GET_ITEM(key, 2) == NULL;
    for (Py_ssize_t i = 0; !failed && i < count; i++) {
        PyObject *array = PyList_GET_ITEM(arguments, PyLong_AsSsize_t(PyTuple_GET_ITEM(PyTuple_GET_ITEM(self->strided, i), 0)));
        PyObject *lengths = PyObject_GetAttr(array, text_shape);
        PyObject *strides = lengths == NULL ? NULL : PyObject_GetAttr(array, text_strides);
        PyTuple_SET_ITEM(key, 3 + 2 * i, lengths);
        PyTuple_SET_ITEM(key, 4 + 2 * i, strides);
        failed = strides == NULL;
    }
    if (failed)
        Py_CLEAR(key);
    else
        PyObject_GC_Track(key);
    return key;
}

/* The elements of a shape, INT64_MAX for more than that; -1 with an error. */
static int64_t
size_of(PyObject *shape)
{
    int64_t size = 1;
    int many = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); i++) {
        int64_t length = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i));
        if (length < 0) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "a length is less than 0");
            return -1;
        }
        many |= length > 1 && size > INT64_MAX / length;
        if (!many || length == 0)
            size *= length;
    }
    return many && size ? INT64_MAX : size;
}

/* Makes outputs and launches, with the parameters of the inputs. */
static PyObject *
outputs_of(Launch *self, PyObject *shape, int fortran, int64_t size, int64_t blocks, Room *rooms, void **parameters, Walk *walk)
{
    Py_ssize_t made = PyTuple_GET_SIZE(self->dtypes);
    int count = self->kernel.inputs;
    PyObject *outputs = PyList_New(0);      /* without room that is not filled: who walks the collector's objects finds it */
    if (outputs == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < made; i++, count++) {
        PyObject *with[] = {shape, PyTuple_GET_ITEM(self->dtypes, i), Py_None, Py_None, fortran ? text_f : text_c};
        PyObject *array = PyObject_Vectorcall(self->kernel.ndarray, with, 5, NULL);
        if (array == NULL)
            goto failed;
        int kept = PyList_Append(outputs, array);
        Py_DECREF(array);
        if (kept < 0 || address_of(array, text_data, text_ptr, &rooms[count].address) < 0)
            goto failed;
        parameters[count] = &rooms[count];
    }
    rooms[count].number = size;
    parameters[count] = &rooms[count];
    count++;
    if (self->walks)
        parameters[count] = walk->bytes;
    else if (self->walk != Py_None)
        parameters[count] = PyBytes_AS_STRING(self->walk);
    else if (self->takes_alignment) {
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

/* The outputs, or None for whoever asks to do it: an address that packs can't be loaded from, strides without a plan,
   another kind of number, an error of CUDA's (a thread that has no context yet, for one), which comes again there. */
static PyObject *
call(Launch *self, PyObject *args, PyObject *kwargs)
{
    PyObject *arguments, *shape;
    int fortran;
    Room rooms[MOST];
    void *parameters[MOST];
    uint64_t places, aligned;
    if (has_keywords(kwargs))
        return NULL;
    if (!PyArg_ParseTuple(args, "O!O!p", &PyList_Type, &arguments, &PyTuple_Type, &shape, &fortran)
            || is_unmade(self->dtypes) < 0)
        return NULL;
    int64_t size = size_of(shape);
    if (size < 0)
        return NULL;
    int fits = inputs_of(&self->kernel, arguments, rooms, parameters, &places, &aligned);
    if (fits < 0)
        return NULL;
    if (!fits || size == 0)
        Py_RETURN_NONE;
    PyObject *plan = Py_NewRef(self), *key;
    Walk walk;
    int walked = PyTuple_GET_SIZE(self->strided) > 0, by_sizes = 0;
    if (walked || (self->takes_alignment && places % PACK)) {
        key = walked ? key_of(self, arguments, shape, fortran, size, aligned, &walk) : Py_NewRef(Py_None);
        by_sizes = key != NULL && PyTuple_CheckExact(key);
        Py_SETREF(plan, key == NULL ? NULL : Py_XNewRef(PyDict_GetItemWithError(self->plans, key)));
        Py_XDECREF(key);
    }
    PyObject *outputs = NULL;
    if (plan != NULL && Py_TYPE(plan) == Py_TYPE(self) && ((Launch *)plan)->kernel.inputs == self->kernel.inputs
            && (((Launch *)plan)->blocks > 0 || !by_sizes)) {
        const Launch *found = (Launch *)plan;
        int64_t blocks = found->blocks ? found->blocks : size / found->elements + (size % found->elements != 0);
        outputs = blocks > INT32_MAX ? Py_NewRef(Py_None)
                                     : outputs_of((Launch *)plan, shape, fortran, size, blocks, rooms, parameters, &walk);
    }
    else if (!PyErr_Occurred())
        outputs = Py_NewRef(Py_None);
    Py_XDECREF(plan);
    return outputs;
}

PyDoc_STRVAR(key_doc, "key(arguments, shape, fortran, /)\n--\n\nWhere in `plans` these arguments look for what launches.");

static PyObject *
key(Launch *self, PyObject *args)
{
    PyObject *arguments, *shape;
    int fortran;
    Room rooms[MOST];
    void *parameters[MOST];
    uint64_t places, aligned;
    if (!PyArg_ParseTuple(args, "O!O!p", &PyList_Type, &arguments, &PyTuple_Type, &shape, &fortran)
            || is_unmade(self->dtypes) < 0)
        return NULL;
    Walk walk;
    const int64_t size = size_of(shape);
    int fits = size < 0 ? -1 : inputs_of(&self->kernel, arguments, rooms, parameters, &places, &aligned);
    if (fits <= 0) {
        if (fits == 0)
            PyErr_SetString(PyExc_TypeError, "a number is of another kind");
        return NULL;
    }
    return key_of(self, arguments, shape, fortran, size, aligned, &walk);
}

PyDoc_STRVAR(launch_doc,
"Launch(function, launch, owner, ndarray, stream, sizes, dtypes, elements, threads, takes_alignment, strided=(), pack=1,\n"
"       into=False, walk=None, blocks=0, walks=False)\n--\n\n"
"Makes the outputs of a kernel and launches it.\n\n"
"Parameters\n----------\n"
"function, launch : int\n    Addresses of the CUfunction and of cuLaunchKernel.\n"
"owner : object\n    Kept, and with it the function's code.\n"
"ndarray, stream : callable\n    The class of device arrays, and what gives the current stream.\n"
"sizes : tuple of int\n    Of each input: 0 of an array, else the bytes of a number.\n"
"dtypes : tuple of numpy.dtype\n    Of the outputs; none if the last input is what is written.\n"
"elements, threads : int\n    Of a block.\n"
"takes_alignment : bool\n"
"    The kernel's last parameter says that packs can be loaded; for other addresses `plans` may have a Launch, by None.\n"
"strided : tuple of (int, int)\n"
"    Inputs that are walked by their strides, and the bytes of their elements: `plans` has a Launch for each kind, by `key`.\n"
"pack : int\n    Elements that are loaded at once where that can be.\n"
"into : bool\n    The last input is what is written.\n"
"walk : bytes\n    The kernel's last parameter: how strided inputs are walked.\n"
"blocks : int\n    How many, if that does not go by the elements.\n"
"walks : bool\n    The last parameter is the walk of the arguments that it is launched with: its key is bytes.");

static PyMethodDef methods[] = {
    {"key", (PyCFunction)key, METH_VARARGS, key_doc},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"plans", Py_T_OBJECT_EX, offsetof(Launch, plans), Py_READONLY, PyDoc_STR("What launches, by `key`: a dict.")},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)launch_doc}, {Py_tp_init, init}, {Py_tp_call, call}, {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, visit}, {Py_tp_clear, clear}, {Py_tp_new, PyType_GenericNew},
    {Py_tp_methods, methods}, {Py_tp_members, members}, {0, NULL},
};

static PyType_Spec spec = {
    "lazyarray._native.launch.Launch", sizeof(Launch), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots,
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "lazyarray._native.launch", PyDoc_STR("The launch of kernels, and what they write to, in C."), -1, functions,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit_launch(void)
{
    if ((text_data = PyUnicode_InternFromString("data")) == NULL || (text_ptr = PyUnicode_InternFromString("ptr")) == NULL
            || (text_c = PyUnicode_InternFromString("C")) == NULL || (text_f = PyUnicode_InternFromString("F")) == NULL
            || (text_shape = PyUnicode_InternFromString("shape")) == NULL
            || (text_strides = PyUnicode_InternFromString("strides")) == NULL)
        return NULL;
    PyObject *module = PyModule_Create(&definition), *type = PyType_FromSpec(&spec);
    PyObject *reduction = PyType_FromSpec(&reduction_spec);
    if (module == NULL || type == NULL || PyModule_AddObjectRef(module, "Launch", type) < 0
            || reduction == NULL || PyModule_AddObjectRef(module, "Reduction", reduction) < 0
            || PyModule_AddIntMacro(module, MOST) < 0 || PyModule_AddIntMacro(module, AFTER) < 0
            || PyModule_AddIntConstant(module, "INTERFACE", 59) < 0)
        Py_CLEAR(module);
    Py_XDECREF(type);
    Py_XDECREF(reduction);
    return module;
}
