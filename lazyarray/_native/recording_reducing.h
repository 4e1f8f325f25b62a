/* Reductions of whole arrays and of recorded work, by kernels that calls like these have had before.

What is asked for is an array, axes as whole numbers, and `keepdims`. The first call of a kind is left to Python, which says
what the next ones go by (`graph/record/reductions.py`). */

/* A call: (kernel, what sums are divided by, lengths of the result, axes that turn the operand, axes that turn the result, the
greatest place that it can give), as Python says; axes that turn nothing are None. */
enum { KERNEL, DIVISOR, LENGTHS, TURN, TURNED, GREATEST, OF_REDUCTION };

#define MOST_REDUCTIONS 4096

/* Whether an axis is None, a whole number or a tuple of these. */
static int
is_plain_axis(PyObject *axis)
{
    int plain = axis == Py_None || PyLong_CheckExact(axis) || PyTuple_CheckExact(axis);
    for (Py_ssize_t i = 0; plain && PyTuple_CheckExact(axis) && i < PyTuple_GET_SIZE(axis); i++)
        plain = PyLong_CheckExact(PyTuple_GET_ITEM(axis, i));
    return plain;
}

/* Add to a key what a kernel goes by of an array that it reads: how it lies, or (`flat`) from where packs can be loaded. */
static int
add_layout(PyObject *key, PyObject *array, int flat)
{
    PyObject *names[] = {text.shape, text.strides};
    int failed = 0;
    if (flat) {
        uint64_t address;
        PyObject *place = address_of(array, text.data, text.ptr, &address) < 0 ? NULL : PyLong_FromLong((long)(address % 16));
        failed = place == NULL || PyList_Append(key, place) < 0;
        Py_XDECREF(place);
    }
    for (int i = 0; !flat && !failed && i < 2; i++) {
        PyObject *one = PyObject_GetAttr(array, names[i]);
        failed = one == NULL || PyList_Append(key, one) < 0;
        Py_XDECREF(one);
    }
    return failed ? -1 : 0;
}

/* The lazy result of a device array in new memory. */
static PyObject *
lazy_result(PyObject *array, PyObject *entry, PyObject *device, PyObject *stream)
{
    PyObject *turned = PyTuple_GET_ITEM(entry, TURNED), *most = PyTuple_GET_ITEM(entry, GREATEST), *lazy = NULL;
    PyObject *seen = turned == Py_None ? Py_NewRef(array) : PyObject_CallMethodOneArg(array, text.transpose, turned);
    if (seen != NULL)
        lazy = lazy_of_new(seen, device, stream, PyTuple_GET_SIZE(PyTuple_GET_ITEM(entry, LENGTHS)) == 0);
    if (lazy != NULL && most != Py_None && told(PyObject_CallFunctionObjArgs(py.note_greatest, lazy, most, NULL)) < 0)
        Py_CLEAR(lazy);
    Py_XDECREF(seen);
    return lazy;
}

/* What a call of this kind goes by: borrowed; NULL without an error: it is for Python. `program`: with its arguments and their
form, of recorded work; None for an array that is there. */
static PyObject *
reduction_of(PyObject *parts, PyObject *x, PyObject *program, PyObject *arguments, PyObject *form)
{
    PyObject *key = PyList_AsTuple(parts), *entry = key == NULL ? NULL : PyDict_GetItemWithError(py.reductions, key);
    if (entry == NULL && key != NULL && !PyErr_Occurred()) {
        PyObject *made = PyObject_CallFunctionObjArgs(py.reduction_of, key, x, program, arguments, form, NULL);
        if (made != NULL && made != Py_None) {
            if (PyDict_GET_SIZE(py.reductions) >= MOST_REDUCTIONS)
                PyDict_Clear(py.reductions);
            if (PyDict_SetItem(py.reductions, key, made) == 0)
                entry = PyDict_GetItemWithError(py.reductions, key);
        }
        Py_XDECREF(made);
    }
    Py_XDECREF(key);
    return entry == NULL || !PyTuple_CheckExact(entry) || PyTuple_GET_SIZE(entry) != OF_REDUCTION ? NULL : entry;
}

/* The device array that a kernel gives; NULL, perhaps without an error. */
static PyObject *
reduced_by(PyObject *entry, PyObject *arguments, PyObject *device, PyObject *stream)
{
    PyObject *with[] = {arguments, PyTuple_GET_ITEM(entry, DIVISOR), PyTuple_GET_ITEM(entry, LENGTHS), stream};
    PyObject *turn = PyTuple_GET_ITEM(entry, TURN);
    if (turn != Py_None) {
        PyObject *seen = PyObject_CallMethodOneArg(PyList_GET_ITEM(arguments, 0), text.transpose, turn);
        if (seen == NULL || PyList_SetItem(arguments, 0, seen) < 0)
            return NULL;
    }
    PyObject *result = PyObject_Vectorcall(PyTuple_GET_ITEM(entry, KERNEL), with, 4, NULL);
    if (result == NULL)
        tell_failed(device);
    return result;
}

/* The reduction of an array whose bytes are there: a new reference; NULL, perhaps without an error. */
static PyObject *
reduced_array(PyObject *parts, PyObject *x, PyObject *storage, PyObject *device, PyObject *stream)
{
    PyObject *array = Py_NewRef(got(x, X.array)), *result = NULL, *entry, *arguments, *dtype;
    if (got(storage, S.clean) != Py_True || got(storage, S.stream) != stream || got(x, X.storage) != storage) {
        Py_DECREF(array);
        return NULL;
    }
    if (array == Py_None)
        Py_SETREF(array, ready_on_device(x, storage, stream));
    if (array == NULL)
        return NULL;
    put(storage, S.used, now);
    if ((dtype = PyObject_GetAttr(array, text.dtype)) == NULL || PyList_Append(parts, dtype) < 0
            || add_layout(parts, array, 1) < 0 || add_layout(parts, array, 0) < 0 || (arguments = list_of(&array, 1)) == NULL) {
        Py_XDECREF(dtype);
        Py_DECREF(array);
        return NULL;
    }
    Py_DECREF(dtype);
    Py_DECREF(array);
    if ((entry = Py_XNewRef(reduction_of(parts, x, Py_None, arguments, Py_None))) != NULL) {
        /* since it was looked at, Python code has run */
        const int same_still = got(storage, S.clean) == Py_True && got(storage, S.stream) == stream;
        PyObject *found = same_still ? reduced_by(entry, arguments, device, stream) : NULL;
        if (found != NULL)
            result = lazy_result(found, entry, device, stream);
        Py_XDECREF(found);
    }
    Py_XDECREF(entry);
    Py_DECREF(arguments);
    return result;
}

/* Whether a node, and all that it is computed from in one kernel, goes through a reduction for the first time. */
static int
is_first_pass(const Chain *chain)
{
    for (int i = 0; i < chain->nodes; i++)
        if (same(got(chain->node[i], N.passed), zero) <= 0)
            return 0;
    return 1;
}

/* The reduction of recorded work, which stays recorded; the same. The caller holds the graphs' lock. */
static PyObject *
reduced_chain(PyObject *parts, PyObject *x, PyObject *node, PyObject *device, PyObject *stream)
{
    PyObject *shape, *fortran, *program, *arguments = NULL, *form = NULL, *entry = NULL, *found = NULL, *result = NULL;
    Chain chain;
    int partners = PyObject_IsTrue(py.partners), failed;
    if (partners < 0 || got(node, N.array) != Py_None || got(node, N.place) != Py_None || tick() < 0 || gather(&chain, node) == FAILED)
        return NULL;
    if (got(node, N.array) != Py_None || got(node, N.device) != device || !is_first_pass(&chain) || PyErr_Occurred()
            || !are_here(&chain, stream, partners))
        return NULL;
    const int last = chain.nodes - 1;
    hold(&chain);
    form_of(&chain, node, &shape, &fortran);
    failed = (program = program_of(&chain, &last, 1, 0)) == NULL || PyList_Append(parts, program) < 0
        || PyList_Append(parts, got(node, N.shape)) < 0 || PyList_Append(parts, got(node, N.fortran)) < 0
        || PyList_Append(parts, shape) < 0 || PyList_Append(parts, fortran) < 0;
    for (int i = 0; !failed && i < chain.inputs; i++)
        failed = chain.source[i] != NULL && add_layout(parts, chain.argument[i], chain.mode[i] != text.strided) < 0;
    if (!failed && (arguments = list_of(chain.argument, chain.inputs)) != NULL && (form = PyTuple_Pack(2, shape, fortran)) != NULL
            && (entry = Py_XNewRef(reduction_of(parts, x, program, arguments, form))) != NULL
            && (found = reduced_by(entry, arguments, device, stream)) != NULL
            && (result = lazy_result(found, entry, device, stream)) != NULL) {
        for (int i = 0; i < chain.nodes; i++)
            put(chain.node[i], N.passed, unit);
    }
    Py_XDECREF(found);
    Py_XDECREF(entry);
    Py_XDECREF(form);
    Py_XDECREF(arguments);
    Py_XDECREF(program);
    Py_DECREF(shape);
    Py_DECREF(fortran);
    drop_chain(&chain);
    return result;
}

/* ``func(x, axis, keepdims=keepdims)`` by a kernel that is known: a new reference; NULL, perhaps without an error: it is for Python. */
static PyObject *
reduced(PyObject *func, PyObject *x, PyObject *axis, PyObject *keepdims)
{
    PyObject *storage, *device, *stream, *parts, *result = NULL, *node, *bytes = NULL;
    if (types.LazyNdarray == NULL || Py_TYPE(x) != types.LazyNdarray || forked || !is_plain_axis(axis) || !PyBool_Check(keepdims))
        return NULL;
    storage = got(x, X.storage);
    if (Py_TYPE(storage) != types.Storage || got(storage, S.host) == Py_True)
        return NULL;
    Py_INCREF(storage);     /* what follows may run Python, and other threads: x may have another one then */
    device = Py_NewRef(got(storage, S.device));
    const int here = usable_device() == device && is_alone(device) > 0;
    const int recorded = here && least_bytes(&bytes) >= 0;      /* else all is left to the device's own functions */
    Py_XDECREF(bytes);
    if (!recorded) {
        Py_DECREF(device);
        Py_DECREF(storage);
        return NULL;
    }
    node = Py_NewRef(got(storage, S.pending));
    stream = PyObject_CallMethodNoArgs(device, text.stream);
    parts = stream == NULL ? NULL : Py_BuildValue("[OOO]", func, axis, keepdims);
    if (parts != NULL && node == Py_None)
        result = reduced_array(parts, x, storage, device, stream);
    else if (parts != NULL && Py_TYPE(node) == types.Node && got(x, X.meta) == got(storage, S.root_view)) {
        PyObject *lock = acquired(PyObject_GetAttr((PyObject *)types.Node, text.lock));
        if (lock != NULL) {
            result = reduced_chain(parts, x, node, device, stream);
            if (unlocked(lock) < 0)
                Py_CLEAR(result);
        }
        Py_XDECREF(lock);
    }
    Py_XDECREF(parts);
    Py_XDECREF(stream);
    Py_DECREF(node);
    Py_DECREF(storage);
    Py_DECREF(device);
    return result;
}

/* A parameter by name: 1 if it is one of these two, else 0. */
static int
take_named(PyObject *name, PyObject *value, PyObject **axis, PyObject **keepdims)
{
    if (PyUnicode_Compare(name, text.axis) == 0)
        *axis = value;
    else if (PyUnicode_Compare(name, text.keepdims) == 0)
        *keepdims = value;
    else
        return 0;
    return 1;
}

/* The call of a method or a function in the table of those that reduce, given as a vector; the same. */
static PyObject *
reduced_call(PyObject *callee, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    PyObject *func = PyDict_GetItemWithError(py.reducing, callee), *axis = count > 1 ? args[1] : Py_None, *keepdims = Py_False;
    if (func == NULL || count < 1 || count > 2)
        return NULL;
    for (Py_ssize_t i = 0; names != NULL && i < PyTuple_GET_SIZE(names); i++)
        if (!take_named(PyTuple_GET_ITEM(names, i), args[count + i], &axis, &keepdims))
            return NULL;
    if (count > 1 && axis != args[1])       /* given twice */
        return NULL;
    return reduced(func, args[0], axis, keepdims);
}

/* The same, given as a tuple and a dict. */
static PyObject *
reduced_function(PyObject *callee, PyObject *args, PyObject *kwargs)
{
    PyObject *func = PyDict_GetItemWithError(py.reducing, callee), *axis = Py_None, *keepdims = Py_False, *name, *value;
    Py_ssize_t count = PyTuple_GET_SIZE(args), place = 0;
    if (func == NULL || count < 1 || count > (func == py.norm ? 1 : 2))     /* before its axis comes the order of a norm */
        return NULL;
    if (count > 1)
        axis = PyTuple_GET_ITEM(args, 1);
    while (PyDict_Next(kwargs, &place, &name, &value))
        if (!take_named(name, value, &axis, &keepdims))
            return NULL;
    return reduced(func, PyTuple_GET_ITEM(args, 0), axis, keepdims);
}
