/* Lazy arrays of steps that read no memory: ``arange``, ``zeros``, ``full`` and their kin, once they were recorded before. */

/* Which array is to be made, by the first argument: of so many places, of a shape, or of the form of another one. */
enum { OF_COUNT, OF_SHAPE, OF_LIKE };

/* How a function makes arrays of a dtype: (the device, the step, its operands, one of the above). */
enum { DEVICE, STEP, OPERANDS, KIND, OF_SOURCE };

/* The dtype that a call asks for, after so many arguments, borrowed: None if it says nothing; NULL without an error: the call is for
Python. */
static PyObject *
dtype_asked_for(PyObject *args, PyObject *kwargs, Py_ssize_t before)
{
    const Py_ssize_t count = PyTuple_GET_SIZE(args), named = PyDict_GET_SIZE(kwargs);
    if (count < before || count + named > before + 1)
        return NULL;
    return count > before ? PyTuple_GET_ITEM(args, before) : named == 1 ? PyDict_GetItemWithError(kwargs, text.dtype) : Py_None;
}

/* What a step that fills with a number of Python's is given, of its dtype: a new tuple; NULL, perhaps with an error: it is for
Python, as what a dtype can't hold. */
static PyObject *
filling(PyObject *step, PyObject *value)
{
    const char *kinds = PyFloat_CheckExact(value) ? "fc" : PyBool_Check(value) ? "biufc" : "iufc";
    if (!is_of_kind(got(step, P.output), kinds))
        return NULL;
    PyObject *number = PyObject_CallOneArg((PyObject *)((PyArray_Descr *)got(step, P.output))->typeobj, value), *operands;
    if (number == NULL) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError) || PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Clear();
        return NULL;
    }
    operands = PyTuple_Pack(1, number);
    Py_DECREF(number);
    return operands;
}

/* Whether an array like this one is in C's order: its axes lie in turn, if not beside each other. */
static int
is_like_c(PyArrayObject *array)
{
    npy_intp before = NPY_MAX_INTP;
    for (int axis = 0; axis < PyArray_NDIM(array); axis++) {
        const npy_intp step = PyArray_STRIDE(array, axis) < 0 ? -PyArray_STRIDE(array, axis) : PyArray_STRIDE(array, axis);
        if (PyArray_DIM(array, axis) < 2 || step == 0 || step >= before)
            return PyArray_IS_C_CONTIGUOUS(array);
        before = step;
    }
    return 1;
}

/* The meta of a lazy array in C's order, which is no small one of the host's, a new reference; NULL without an error: it is no lazy
array, or one for Python. */
static PyObject *
prototype_of(PyObject *x)
{
    if (types.LazyNdarray == NULL || Py_TYPE(x) != types.LazyNdarray || Py_TYPE(got(x, X.storage)) != types.Storage)
        return NULL;
    PyObject *meta = meta_with_storage(x);
    if (meta != NULL && (!is_like_c((PyArrayObject *)meta) || PyArray_NBYTES((PyArrayObject *)meta) <= small_bytes))
        Py_CLEAR(meta);
    return meta;
}

/* The shape that a call asks for, a new reference, and the number of elements, which is not 0; NULL, perhaps with an error: it is
for Python. */
static PyObject *
shape_asked_for(PyObject *given, PyObject *prototype, Py_ssize_t *size)
{
    PyObject *shape = prototype != NULL ? PyObject_GetAttr(prototype, text.shape)
        : PyLong_CheckExact(given) ? PyTuple_Pack(1, given) : PyTuple_CheckExact(given) ? Py_NewRef(given) : NULL;
    *size = 1;
    for (Py_ssize_t i = 0; shape != NULL && i < PyTuple_GET_SIZE(shape); i++) {
        PyObject *one = PyTuple_GET_ITEM(shape, i);
        int beyond = 0;
        const long long n = PyLong_CheckExact(one) ? PyLong_AsLongLongAndOverflow(one, &beyond) : -1;
        if (n < 1 || n > limits.LARGE_RESULT / *size)
            Py_CLEAR(shape);
        else
            *size *= n;
    }
    return shape;
}

/* A small array, made by NumPy, which stays on the host; NULL, perhaps with an error: it is for Python. */
static PyObject *
made_small(PyObject *func, PyObject *args, PyObject *kwargs)
{
    PyObject *array, *lazy;
    const int stays = truth_of(option_here(text.small_on_host));
    /* Zeros need not be sent to the device. Who writes to them pays for the memory, as in ``np.empty``. */
    if (stays <= 0 || (array = PyObject_Call(func == py.empty ? py.zeros : func, args, kwargs)) == NULL)
        return NULL;
    lazy = host_array(NULL, array);
    Py_DECREF(array);
    if (lazy == Py_None)
        Py_CLEAR(lazy);
    return lazy;
}

static PyObject *sourced(PyObject *module, PyObject *const *given, Py_ssize_t nargs);

/* ``arange(start, stop)`` of whole numbers: what ``arange(stop - start)`` becomes, and a number more. */
static PyObject *
series_from(PyObject *func, PyObject *args, PyObject *kwargs)
{
    Py_ssize_t start = 0, stop = 0, size = 0;
    PyObject *first = PyTuple_GET_ITEM(args, 0), *count, *whole, *result = NULL;
    const int known = PyLong_CheckExact(first) ? size_of(first, &start) > 0 && size_of(PyTuple_GET_ITEM(args, 1), &stop) > 0 : 0;
    if (PyErr_Occurred())
        return NULL;
    if (!known || __builtin_sub_overflow(stop, start, &size) || size < 1 || size > limits.LARGE_RESULT / 8)
        Py_RETURN_NONE;
    if (size * 8 <= small_bytes) {
        result = made_small(func, args, kwargs);
        return result != NULL || PyErr_Occurred() ? result : Py_NewRef(Py_None);
    }
    if ((count = Py_BuildValue("(n)", size)) == NULL)
        return NULL;
    PyObject *const given[] = {func, count, kwargs};
    whole = sourced(NULL, given, 3);
    Py_DECREF(count);
    if (whole == NULL || whole == Py_None || start == 0)
        return whole;
    result = PyNumber_Add(whole, first);
    Py_DECREF(whole);
    if (result != NULL && Py_TYPE(result) == types.LazyNdarray && Py_TYPE(got(result, X.storage)) == types.Storage) {
        PyObject *dtype = dtype_of_lazy(result);
        const int noted = dtype == NULL ? -1 : note_bounds(got(result, X.storage), start, start + size - 1, dtype, text.distinct);
        Py_XDECREF(dtype);
        if (noted < 0)
            Py_CLEAR(result);
    }
    return result;
}

PyDoc_STRVAR(sourced_doc, "sourced(func, args, kwargs, /)\n--\n\n"
"What a function makes of a number, a shape or a prototype: on the host if it is small, recorded if it was recorded before for the\n"
"same dtype and is not large; else None.");

static PyObject *
sourced(PyObject *Py_UNUSED(module), PyObject *const *given, Py_ssize_t nargs)
{
    if (nargs != 3 || !PyTuple_CheckExact(given[1]) || !PyDict_CheckExact(given[2]))
        return mistaken("sourced takes a function, a tuple and a dict");
    const int fills = given[0] == py.full || given[0] == py.full_like;
    PyObject *asked = forked || types.Node == NULL ? NULL : dtype_asked_for(given[1], given[2], 1 + fills), *operands = NULL;
    PyObject *result = NULL, *shape = NULL, *count = NULL, *value = asked == NULL || !fills ? NULL : PyTuple_GET_ITEM(given[1], 1);
    if (asked == NULL || (value != NULL && !PyFloat_CheckExact(value) && !PyLong_CheckExact(value) && !PyBool_Check(value)))
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    if (given[0] == py.arange && PyLong_CheckExact(asked))
        return series_from(given[0], given[1], given[2]);
    PyObject *first = PyTuple_GET_ITEM(given[1], 0), *prototype = prototype_of(first), *source = NULL, *node = NULL, *key, *device, *step;
    const int possible = PyErr_Occurred() ? -1 : is_put_off();
    Py_ssize_t size;
    if (possible <= 0 || (shape = shape_asked_for(first, prototype, &size)) == NULL || PyTuple_GET_SIZE(shape) == 0)
        goto end;
    if (prototype == NULL && size * 8 <= small_bytes) {
        result = made_small(given[0], given[1], given[2]);
        goto end;
    }
    key = PyTuple_Pack(2, given[0], asked != Py_None ? asked : prototype != NULL ? (PyObject *)PyArray_DESCR((PyArrayObject *)prototype)
                       : value != NULL ? (PyObject *)Py_TYPE(value) : asked);
    source = key == NULL ? NULL : Py_XNewRef(PyDict_GetItemWithError(py.sources, key));
    Py_XDECREF(key);
    device = source == NULL ? NULL : PyDict_GetItemWithError(py.devices, text._current);
    if (source == NULL || device != PyTuple_GET_ITEM(source, DEVICE)) {
        if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Clear();      /* a dtype that is no key */
        goto end;
    }
    const long kind = PyLong_AsLong(PyTuple_GET_ITEM(source, KIND));
    step = PyTuple_GET_ITEM(source, STEP);
    if ((prototype != NULL) != (kind == OF_LIKE) || (kind == OF_COUNT && !PyLong_CheckExact(first)) || is_usable(device) <= 0 || size < 2
            || size > limits.LARGE_RESULT / PyDataType_ELSIZE((PyArray_Descr *)got(step, P.output))
            || (count = PyLong_FromSsize_t(size)) == NULL
            || (operands = value != NULL ? filling(step, value) : Py_NewRef(PyTuple_GET_ITEM(source, OPERANDS))) == NULL)
        goto end;
    const Form form = {shape, Py_False, count, got(step, P.output)};
    if ((node = made_node(device, step, operands, &form, 1, no_arguments, Py_False)) != NULL
            && (result = array_of(node, Py_None)) != NULL && kind == OF_COUNT
            && note_bounds(got(result, X.storage), 0, size - 1, got(step, P.output), text.distinct) < 0)
        Py_CLEAR(result);
end:
    Py_XDECREF(prototype);
    Py_XDECREF(operands);
    Py_XDECREF(node);
    Py_XDECREF(count);
    Py_XDECREF(shape);
    Py_XDECREF(source);
    return result != NULL || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}
