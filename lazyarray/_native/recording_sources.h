/* Lazy arrays of steps without operands. */

/* Whether work is put off here, and arrays are lazy: 1 or 0; -1: an error. */
static int
is_put_off(void)
{
    PyObject *options = options_here();
    PyObject *least = options == NULL ? NULL : PyObject_GetAttr(options, text.defer_from);
    PyObject *lazy = least == NULL ? NULL : PyObject_GetAttr(options, text.lazy);
    int answer = lazy == NULL ? -1 : least == Py_None ? 0 : PyObject_IsTrue(lazy);
    Py_XDECREF(options);
    Py_XDECREF(least);
    Py_XDECREF(lazy);
    return answer;
}

/* Whether the devices are one that can be used: 1 or 0; -1: an error. */
static int
is_usable(PyObject *device)
{
    int alone = is_alone(device);
    if (alone <= 0)
        return alone;
    PyObject *reason = PyObject_CallMethodNoArgs(device, text.usable);
    Py_XDECREF(reason);
    return reason == NULL ? -1 : reason == Py_None;
}

PyDoc_STRVAR(counted_doc, "counted(*args)\n--\n\n"
"``arange(n)``, which most calls are, where it was recorded before and is not large; else None.");

static PyObject *
counted(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (forked || nargs != 1 || !PyLong_CheckExact(args[0]) || types.Node == NULL)
        Py_RETURN_NONE;
    PyObject *found = PyDict_GetItemWithError(py.counts, args[0]);      /* (step, template) */
    PyObject *device = PyDict_GetItemWithError(py.devices, text._current), *result = NULL;
    if (found == NULL || device == NULL || device == Py_None)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    Py_INCREF(found);
    Py_INCREF(device);
    int possible = is_put_off();
    if (possible > 0)
        possible = is_usable(device);
    if (possible > 0) {
        PyObject *step = PyTuple_GET_ITEM(found, 0), *template = PyTuple_GET_ITEM(found, 1), *node = NULL;
        const Form form = {PyObject_GetAttr(template, text.shape), Py_False, args[0], got(step, P.output), template};
        if (form.shape != NULL)
            node = made_node(device, step, no_arguments, &form, 1, no_arguments, Py_False);
        if (node != NULL)
            result = array_of(node, Py_None);
        Py_XDECREF(node);
        Py_XDECREF(form.shape);
    }
    else if (possible == 0)
        result = Py_NewRef(Py_None);
    Py_DECREF(found);
    Py_DECREF(device);
    return result;
}
