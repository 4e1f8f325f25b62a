/* Recorded work that the host computes, as `fusion.on_host.value` does it. What is left to Python: places and steps that
were not met before, what is broadcast, and programs that have told NumPy what to do about errors of numbers.
*/

#define MOST_TAKEN 8    /* operands of a step, with the places */

/* What is known by now, and what puts NumPy's warnings back in force, if they were turned off. */
typedef struct { int count; PyObject *token, *node[MOST_NODES], *array[MOST_NODES]; } Host;

/* Whether the host computes a node sooner, as `placement.on_host` says; -1: an error. */
static int
is_sooner(PyObject *node)
{
    double c[6];
    PyObject *itemsize = PyObject_GetAttr(got(node, N.dtype), text_itemsize), *answer;
    long long each = itemsize == NULL ? -1 : PyLong_AsLongLong(itemsize), size = PyLong_AsLongLong(got(node, N.size));
    long steps = PyLong_AsLong(got(node, N.steps));
    Py_XDECREF(itemsize);
    if (PyErr_Occurred())
        return -1;
    PyObject *costs = PyDict_GetItemWithError(placement_names, text_costs);
    if (costs != NULL && PyTuple_Check(costs) && PyTuple_GET_SIZE(costs) == 6 && steps > 0) {
        for (int i = 0; i < 6; i++)
            c[i] = PyFloat_AsDouble(PyTuple_GET_ITEM(costs, i));
        if (PyErr_Occurred())
            return -1;
        double nbytes = (double)(size * each);
        return steps * (c[0] + nbytes / c[1]) <= c[2] + c[4] + nbytes / c[3] + nbytes / c[5];
    }
    answer = PyObject_CallFunction(sooner, "Ll", size * each, steps);
    int found = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    return found;
}

/* The first places, kept or made now: `Places`. */
static PyObject *
first_places(PyObject *places, PyObject *size)
{
    PyObject *found = PyDict_GetItemWithError(places, size);
    return found != NULL ? Py_NewRef(found) : PyErr_Occurred() ? NULL : PyObject_GetItem(places, size);
}

/* (function, whether it may warn) of a node's step: a reference of our own. */
static PyObject *
host_function(PyObject *node)
{
    PyObject *step = got(node, N.step), *found = PyDict_GetItemWithError(host_functions, step);
    Py_XINCREF(found);
    if (found == NULL && !PyErr_Occurred())
        found = PyObject_CallOneArg(host_learn, step);
    if (found != NULL && (!PyTuple_CheckExact(found) || PyTuple_GET_SIZE(found) != 2)) {
        PyErr_SetString(PyExc_TypeError, "what the host does for a step is a pair");
        Py_CLEAR(found);
    }
    return found;
}

/* Warnings are off from here on, until the value is there. */
static int
silence(Host *h)
{
    if (h->token == NULL && (h->token = PyContextVar_Set(errors, ignoring)) == NULL)
        return -1;
    return 0;
}

/* As long as the node has elements, and of its dtype? A new reference, `found` is given away. */
static PyObject *
of_form(PyObject *node, PyObject *found, int alone)
{
    PyObject *output = got(got(node, N.step), P.output), *dtype = PyObject_GetAttr(found, text_dtype);
    int alike = dtype == NULL ? -1 : same(dtype, output);
    Py_XDECREF(dtype);
    if (alike > 0 && alone) {
        PyObject *size = PyObject_GetAttr(found, text_size);
        int whole = size == NULL ? -1 : same(size, got(node, N.size));
        Py_XDECREF(size);
        if (whole == 0)     /* of numbers alone */
            Py_SETREF(found, PyObject_CallFunctionObjArgs(host_filled, got(node, N.size), found, output, NULL));
        alike = whole < 0 ? -1 : 1;
    }
    if (alike <= 0)
        Py_CLEAR(found);
    return found;
}

/* The value of a node, 1-D: a new reference. NULL without an error: the host can't. */
static PyObject *
host_array(PyObject *node, Host *h)
{
    for (int i = 0; i < h->count; i++)
        if (h->node[i] == node)
            return Py_NewRef(h->array[i]);
    if (got(node, N.array) != Py_None || h->count >= MOST_NODES)    /* on the device by now */
        return NULL;
    PyObject *known = host_function(node);
    if (known == NULL)
        return NULL;
    PyObject *operands = Py_NewRef(got(node, N.operands)), *function = PyTuple_GET_ITEM(known, 0), *found = NULL;
    PyObject *taken[2 + MOST_TAKEN] = {function, node}, **arguments = taken + 2;
    Py_ssize_t count = 0;
    int alone = 1, indexed = got(got(node, N.step), P.indexed) == Py_True;
    if (Py_TYPE(function) == places_type) {
        found = first_places(function, got(node, N.size));
        goto end;
    }
    if (function == Py_None || PyTuple_GET_SIZE(operands) + indexed > MOST_TAKEN)
        goto end;
    for (; count < PyTuple_GET_SIZE(operands); count++) {
        PyObject *operand = PyTuple_GET_ITEM(operands, count);
        if (Py_TYPE(operand) == node_type) {
            arguments[count] = host_array(operand, h);
            alone = 0;
        }
        else    /* bytes that are on the device, if no number */
            arguments[count] = PyObject_TypeCheck(operand, generic_type) ? Py_NewRef(operand) : NULL;
        if (arguments[count] == NULL)
            goto end;
    }
    if (function == host_filled) {
        if (count == 1)
            found = PyObject_CallFunctionObjArgs(function, got(node, N.size), arguments[0],
                                                 got(got(node, N.step), P.output), NULL);
        goto end;
    }
    if (indexed && (arguments[count] = first_places(host_places, got(node, N.size))) == NULL)
        goto end;
    count += indexed;
    if ((alone || PyTuple_GET_ITEM(known, 1) == Py_True) && silence(h) < 0)     /* single integers warn, too */
        goto end;
    int strided = got(node, N.strided) == Py_True;
    found = strided ? PyObject_Vectorcall(host_broadcast, taken, 2 + count, NULL)
                    : PyObject_Vectorcall(function, arguments, count, NULL);
    if (found != NULL)
        found = of_form(node, found, alone && !strided);
end:
    for (Py_ssize_t i = 0; i < count; i++)
        Py_DECREF(arguments[i]);
    Py_DECREF(operands);
    Py_DECREF(known);
    if (found != NULL && h->count < MOST_NODES) {
        h->node[h->count] = Py_NewRef(node);
        h->array[h->count++] = Py_NewRef(found);
    }
    return found;
}

/* NumPy tells of errors as before; an error that is set stays. */
static int
put_back(PyObject *token)
{
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    int failed = PyContextVar_Reset(errors, token);
    if (kind != NULL)
        PyErr_Restore(kind, value, trace);
    return failed;
}

PyDoc_STRVAR(on_host_doc, "on_host(node, /)\n--\n\n"
"A new 1-D array of what a node gives, where the host is to compute it, else None; see `fusion.on_host.value`.");

static PyObject *
on_host(PyObject *Py_UNUSED(module), PyObject *node)
{
    PyObject *told, *found = NULL, *known;
    Host h = {0, NULL};
    if (array_type == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "lazyarray is not imported yet");
        return NULL;
    }
    if (PyContextVar_Get(errors, NULL, &told) < 0)
        return NULL;
    Py_XDECREF(told);
    if (Py_TYPE(node) != node_type || told != usual_errors || PyLong_AsLong(got(node, N.steps)) > MOST_NODES)
        return PyObject_CallOneArg(host_value, node);
    int worth = is_sooner(node);
    if (worth > 0)
        found = host_array(node, &h);
    for (int i = 0; i < h.count; i++) {
        Py_DECREF(h.node[i]);
        Py_DECREF(h.array[i]);
    }
    if (h.token != NULL) {
        int failed = put_back(h.token);
        Py_DECREF(h.token);
        if (failed)
            Py_CLEAR(found);
    }
    if (found == NULL || (known = host_function(node)) == NULL) {
        Py_XDECREF(found);
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    }
    if (Py_TYPE(PyTuple_GET_ITEM(known, 0)) != ufunc_type || got(node, N.strided) == Py_True)   /* else it is new */
        Py_SETREF(found, PyObject_CallOneArg(host_own, found));
    Py_DECREF(known);
    return found;
}

/* What `on_host` gives, if the node is not computed by now, while nobody else computes: `Node.on_host`. */
static PyObject *
on_host_alone(PyObject *module, PyObject *node)
{
    PyObject *lock = acquired(Py_NewRef(graph_lock));
    if (lock == NULL)
        return NULL;
    PyObject *found = got(node, N.array) == Py_None ? on_host(module, node) : Py_NewRef(Py_None);
    if (unlocked(lock) < 0)
        Py_CLEAR(found);
    Py_DECREF(lock);
    return found;
}

static PyObject *
reversed(PyObject *shape)
{
    Py_ssize_t ndim = PyTuple_GET_SIZE(shape);
    PyObject *found = PyTuple_New(ndim);
    for (Py_ssize_t i = 0; found != NULL && i < ndim; i++)
        PyTuple_SET_ITEM(found, i, Py_NewRef(PyTuple_GET_ITEM(shape, ndim - 1 - i)));
    return found;
}

/* As `placing.private` sees the bytes of a node, which are given away. */
static PyObject *
as_lying(PyObject *array, PyObject *node, PyObject *storage, PyObject *view)
{
    PyObject *done = PyObject_CallMethodOneArg(array, text_setflags, Py_False), *shape, *found = NULL;
    Py_XDECREF(done);
    if (done == NULL)
        goto end;
    if (view != got(storage, S.root_view)) {
        found = PyObject_CallFunctionObjArgs(host_seen, array, storage, view, NULL);
        goto end;
    }
    int fortran = got(node, N.fortran) == Py_True;
    shape = fortran ? reversed(got(node, N.shape)) : Py_NewRef(got(node, N.shape));
    if (shape == NULL)
        goto end;
    found = PyObject_CallMethodOneArg(array, text_reshape, shape);
    Py_DECREF(shape);
    if (found != NULL && fortran)
        Py_SETREF(found, PyObject_GetAttr(found, text_turned));
end:
    Py_DECREF(array);
    return found;
}

PyDoc_STRVAR(private_doc, "private(storage, view, /)\n--\n\n"
"A read-only array of a view of pending bytes, if the host is to compute it, else None; see `placing.private`.");

static PyObject *
private(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2 || array_type == NULL || !PyObject_TypeCheck(args[0], storage_type)) {
        PyErr_SetString(PyExc_TypeError, "private takes a storage and a view");
        return NULL;
    }
    PyObject *node = got(args[0], S.pending);
    if (node == Py_None)
        Py_RETURN_NONE;
    Py_INCREF(node);
    PyObject *array = Py_TYPE(node) == node_type ? on_host_alone(module, node) : Py_NewRef(Py_None);
    if (array != NULL && array != Py_None)
        array = as_lying(array, node, args[0], args[1]);
    Py_DECREF(node);
    return array;
}
