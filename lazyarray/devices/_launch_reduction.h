/* The launch of a kernel that computes elements and reduces them: `cuda_reductions.Ready` says what it does. */

typedef struct {
    PyObject_HEAD
    Kernel kernel;
    PyObject *dtype, *walk;                 /* of the result; bytes, or NULL */
    PyObject *parts, *byte, *turns;         /* shape and dtype of the memory for parts; stream -> counters */
    unsigned blocks;
    int64_t extent[3];
    int grid[3];                            /* group, high, splits */
} Reduction;

#define AFTER 11        /* parameters after those of the inputs */

static int
reduction_visit(Reduction *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->dtype);
    Py_VISIT(self->walk);
    Py_VISIT(self->parts);
    Py_VISIT(self->byte);
    Py_VISIT(self->turns);
    return kernel_visit(&self->kernel, visit, arg);
}

static int
reduction_clear(Reduction *self)
{
    Py_CLEAR(self->dtype);
    Py_CLEAR(self->walk);
    Py_CLEAR(self->parts);
    Py_CLEAR(self->byte);
    Py_CLEAR(self->turns);
    kernel_clear(&self->kernel);
    return 0;
}

static void
reduction_dealloc(Reduction *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    reduction_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static int
reduction_init(Reduction *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"function", "launch", "owner", "ndarray", "stream", "sizes", "dtype", "blocks", "threads",
                            "extent", "grid", "parts", "byte", "turns", "walk", NULL};
    unsigned long long function, launch;
    PyObject *owner, *ndarray, *stream, *sizes, *dtype, *parts, *byte, *turns, *walk;
    Py_ssize_t blocks, threads;
    long long extent[3];
    int grid[3];
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "KKOOOO!Onn(LLL)(iii)O!OO!S", names, &function, &launch, &owner,
                                     &ndarray, &stream, &PyTuple_Type, &sizes, &dtype, &blocks, &threads, &extent[0],
                                     &extent[1], &extent[2], &grid[0], &grid[1], &grid[2], &PyTuple_Type, &parts, &byte,
                                     &PyDict_Type, &turns, &walk))
        return -1;
    if (blocks < 1 || blocks > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "a grid has blocks, and fewer than 2 ** 31");
        return -1;
    }
    if (kernel_init(&self->kernel, function, launch, owner, ndarray, stream, sizes, threads, AFTER) < 0)
        return -1;
    self->blocks = (unsigned)blocks;
    for (int i = 0; i < 3; i++) {
        self->extent[i] = extent[i];
        self->grid[i] = grid[i];
    }
    Py_XSETREF(self->dtype, Py_NewRef(dtype));
    Py_XSETREF(self->parts, Py_NewRef(parts));
    Py_XSETREF(self->byte, Py_NewRef(byte));
    Py_XSETREF(self->turns, Py_NewRef(turns));
    Py_XSETREF(self->walk, Py_NewRef(walk));
    return 0;
}

/* A new array, and its address. */
static PyObject *
new_array(Kernel *kernel, PyObject *shape, PyObject *dtype, uint64_t *address)
{
    PyObject *with[] = {shape, dtype};
    PyObject *array = PyObject_Vectorcall(kernel->ndarray, with, 2, NULL);
    if (array != NULL && address_of(array, text_data, text_ptr, address) < 0)
        Py_CLEAR(array);
    return array;
}

/* The result, or None for whoever asks to do it: the stream has no counters yet, another kind of number, an error of
   CUDA's. */
static PyObject *
reduction_call(Reduction *self, PyObject *args, PyObject *kwargs)
{
    PyObject *arguments, *shape, *stream, *result = NULL, *parts = NULL, *turns = NULL;
    double divisor;
    Room rooms[MOST];
    void *parameters[MOST];
    uint64_t places;
    if (kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "a launch takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O!dO!O", &PyList_Type, &arguments, &divisor, &PyTuple_Type, &shape, &stream))
        return NULL;
    int done = inputs_of(&self->kernel, arguments, rooms, parameters, &places);
    if (done < 0)
        return NULL;
    int shared = self->grid[2] > 1;
    if (done && shared) {
        turns = Py_XNewRef(PyDict_GetItemWithError(self->turns, stream));
        if (turns == NULL && PyErr_Occurred())
            return NULL;
        done = turns != NULL;
    }
    if (!done)
        Py_RETURN_NONE;
    int count = self->kernel.inputs;
    Room *room = &rooms[count];
    result = new_array(&self->kernel, shape, self->dtype, &room[0].address);
    if (result == NULL)
        goto failed;
    room[1] = room[2] = room[0];
    if (shared) {
        parts = new_array(&self->kernel, self->parts, self->byte, &room[1].address);
        if (parts == NULL || address_of(turns, text_data, text_ptr, &room[2].address) < 0)
            goto failed;
    }
    for (int i = 0; i < 3; i++) {
        room[3 + i].number = self->extent[i];
        room[6 + i].flag = self->grid[i];
    }
    room[9].real = divisor;
    for (int i = 0; i < 10; i++)
        parameters[count + i] = &room[i];
    parameters[count + 10] = PyBytes_AS_STRING(self->walk);     /* a kernel without a walk does not look */
    int error = launched(&self->kernel, self->blocks, parameters);
    if (error && PyErr_Occurred())
        goto failed;
    Py_XDECREF(parts);
    Py_XDECREF(turns);
    if (!error)
        return result;
    Py_DECREF(result);
    Py_RETURN_NONE;
failed:
    Py_XDECREF(result);
    Py_XDECREF(parts);
    Py_XDECREF(turns);
    return NULL;
}

PyDoc_STRVAR(reduction_doc,
"Reduction(function, launch, owner, ndarray, stream, sizes, dtype, blocks, threads, extent, grid, parts, byte, turns, "
"walk)\n--\n\n"
"Makes the result of a kernel that reduces and launches it.\n\n"
"Parameters\n----------\n"
"function, launch : int\n    Addresses of the CUfunction and of cuLaunchKernel.\n"
"owner : object\n    Kept, and with it the function's code.\n"
"ndarray, stream : callable\n    The class of device arrays, and what gives the current stream.\n"
"sizes : tuple of int\n    Of each input: 0 of an array, else the bytes of a number.\n"
"dtype : numpy.dtype\n    Of the result.\n"
"blocks, threads : int\n    Of the grid, and of a block.\n"
"extent, grid : tuple of int\n    (outer, length, inner), and (group, high, splits).\n"
"parts, byte : tuple of int, numpy.dtype\n    Of the memory for parts, where there are several blocks for a result.\n"
"turns : dict\n    Stream -> the counters of such blocks; a stream that is not there is left to the caller.\n"
"walk : bytes\n    How strided inputs are walked.");

static PyType_Slot reduction_slots[] = {
    {Py_tp_doc, (void *)reduction_doc}, {Py_tp_init, reduction_init}, {Py_tp_call, reduction_call},
    {Py_tp_dealloc, reduction_dealloc}, {Py_tp_traverse, reduction_visit}, {Py_tp_clear, reduction_clear},
    {Py_tp_new, PyType_GenericNew}, {0, NULL},
};

static PyType_Spec reduction_spec = {
    "lazyarray.devices._launch.Reduction", sizeof(Reduction), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    reduction_slots,
};
