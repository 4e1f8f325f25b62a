/* The launch of a kernel that computes elements and reduces them: `cuda_reductions.Ready` says what it does. */

typedef struct {
    PyObject_HEAD
    Kernel kernel;
    PyObject *dtype, *walk;                 /* of the result; bytes */
    PyObject *turns;                        /* stream -> counters, or None */
    PyObject *parts, *byte;                 /* shape, or None, and dtype of the memory for parts */
    PyObject *otherwise;                    /* does it where this can't */
    unsigned blocks;
    int64_t extent[3], offset;              /* of the parts in the counters' memory, where they have none of their own */
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
    Py_VISIT(self->otherwise);
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
    Py_CLEAR(self->otherwise);
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
                            "numbers", "offset", "parts", "byte", "turns", "walk", "otherwise", NULL};
    unsigned long long function, launch;
    PyObject *owner, *ndarray, *stream, *sizes, *dtype, *parts, *byte, *turns, *walk, *otherwise;
    Py_ssize_t blocks, threads;
    long long extent[3], offset;
    int grid[3];
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "KKOOOO!Onn(LLLiii)LOOOSO", names, &function, &launch, &owner,
                                     &ndarray, &stream, &PyTuple_Type, &sizes, &dtype, &blocks, &threads, &extent[0],
                                     &extent[1], &extent[2], &grid[0], &grid[1], &grid[2], &offset, &parts, &byte,
                                     &turns, &walk, &otherwise))
        return -1;
    if ((parts != Py_None && !PyTuple_Check(parts)) || (turns != Py_None && !PyDict_Check(turns))) {
        PyErr_SetString(PyExc_TypeError, "parts are a tuple or None, turns a dict or None");
        return -1;
    }
    if (blocks < 1 || blocks > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "a grid has blocks, and fewer than 2 ** 31");
        return -1;
    }
    if (kernel_init(&self->kernel, function, launch, owner, ndarray, stream, sizes, threads, AFTER) < 0)
        return -1;
    self->blocks = (unsigned)blocks;
    self->offset = offset;
    for (int i = 0; i < 3; i++) {
        self->extent[i] = extent[i];
        self->grid[i] = grid[i];
    }
    Py_XSETREF(self->dtype, Py_NewRef(dtype));
    Py_XSETREF(self->parts, Py_NewRef(parts));
    Py_XSETREF(self->byte, Py_NewRef(byte));
    Py_XSETREF(self->turns, Py_NewRef(turns));
    Py_XSETREF(self->walk, Py_NewRef(walk));
    Py_XSETREF(self->otherwise, Py_NewRef(otherwise));
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

/* The counters of a stream: 1, or 0 if it has none yet, or -1 with an exception. */
static int
turns_of(Reduction *self, PyObject *stream, PyObject **turns, uint64_t *address)
{
    *turns = Py_XNewRef(PyDict_GetItemWithError(self->turns, stream));
    if (*turns == NULL)
        return PyErr_Occurred() ? -1 : 0;
    return address_of(*turns, text_data, text_ptr, address) < 0 ? -1 : 1;
}

/* The result; made by `otherwise` where a stream has no counters yet, for another kind of number, and after an error of
   CUDA's, which comes again there. */
static PyObject *
reduction_call(Reduction *self, PyObject *args, PyObject *kwargs)
{
    PyObject *arguments, *shape, *stream, *result = NULL, *parts = NULL, *turns = NULL;
    double divisor;
    Room rooms[MOST];
    void *parameters[MOST];
    uint64_t places, aligned;
    if (has_keywords(kwargs))
        return NULL;
    if (!PyArg_ParseTuple(args, "O!dO!O", &PyList_Type, &arguments, &divisor, &PyTuple_Type, &shape, &stream)
            || is_unmade(self->otherwise) < 0)
        return NULL;
    int count = self->kernel.inputs, shared = self->turns != Py_None;
    Room *room = &rooms[count];
    int error = 0, done = inputs_of(&self->kernel, arguments, rooms, parameters, &places, &aligned);
    if (done > 0 && shared)
        done = turns_of(self, stream, &turns, &room[2].address);
    if (done < 0)
        goto end;
    if (done) {
        result = new_array(&self->kernel, shape, self->dtype, &room[0].address);
        if (result == NULL)
            goto end;
        if (!shared)
            room[1] = room[2] = room[0];
        else if (self->parts == Py_None)
            room[1].address = room[2].address + (uint64_t)self->offset;
        else if ((parts = new_array(&self->kernel, self->parts, self->byte, &room[1].address)) == NULL) {
            Py_CLEAR(result);
            goto end;
        }
        for (int i = 0; i < 3; i++) {
            room[3 + i].number = self->extent[i];
            room[6 + i].flag = self->grid[i];
        }
        room[9].real = divisor;
        for (int i = 0; i < AFTER - 1; i++)
            parameters[count + i] = &room[i];
        parameters[count + AFTER - 1] = PyBytes_AS_STRING(self->walk);  /* a kernel without a walk does not look */
        error = launched(&self->kernel, self->blocks, parameters);
        if (error)
            Py_CLEAR(result);
    }
    if (result == NULL && !PyErr_Occurred())
        result = PyObject_Call(self->otherwise, args, NULL);
end:
    Py_XDECREF(parts);
    Py_XDECREF(turns);
    return result;
}

PyDoc_STRVAR(reduction_doc,
"Reduction(function, launch, owner, ndarray, stream, sizes, dtype, blocks, threads, numbers, offset, parts, byte, "
"turns, walk, otherwise)\n--\n\n"
"Makes the result of a kernel that reduces and launches it.\n\n"
"Parameters\n----------\n"
"function, launch : int\n    Addresses of the CUfunction and of cuLaunchKernel.\n"
"owner : object\n    Kept, and with it the function's code.\n"
"ndarray, stream : callable\n    The class of device arrays, and what gives the current stream.\n"
"sizes : tuple of int\n    Of each input: 0 of an array, else the bytes of a number.\n"
"dtype : numpy.dtype\n    Of the result.\n"
"blocks, threads : int\n    Of the grid, and of a block.\n"
"numbers : tuple of int\n    Parameters: outer, length, inner, group, high, splits.\n"
"offset : int\n    Of the memory for parts of results after the start of the counters.\n"
"parts : tuple of int or None\n    Shape of that memory, if it is to be made for each launch.\n"
"byte : numpy.dtype\n    Its dtype.\n"
"turns : dict or None\n    Stream -> counters, if several blocks share a result.\n"
"walk : bytes\n    The last parameter: how strided inputs are walked.\n"
"otherwise : callable\n    Is called with the same arguments where this can't.");

static PyType_Slot reduction_slots[] = {
    {Py_tp_doc, (void *)reduction_doc}, {Py_tp_init, reduction_init}, {Py_tp_call, reduction_call},
    {Py_tp_dealloc, reduction_dealloc}, {Py_tp_traverse, reduction_visit}, {Py_tp_clear, reduction_clear},
    {Py_tp_new, PyType_GenericNew}, {0, NULL},
};

static PyType_Spec reduction_spec = {
    "lazyarray._native.launch.Reduction", sizeof(Reduction), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    reduction_slots,
};
