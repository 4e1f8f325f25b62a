/* Lazy arrays of steps without operands: `recording.source`, and `recording_sources.counted`. */

/* The lazy array of such a step, in C order. */
static PyObject *
made_source(PyObject *device, PyObject *step, PyObject *template, PyObject *size)
{
    Operand form = {NULL, PyObject_GetAttr(template, text_shape), Py_False, size, got(step, P.output), template};
    if (form.shape == NULL)
        return NULL;
    PyObject *result = NULL, *node = made_node(device, step, no_arguments, &form, 1, no_arguments);
    if (node != NULL)
        result = array_of(node, Py_None, 1);
    Py_XDECREF(node);
    Py_DECREF(form.shape);
    return result;
}

PyDoc_STRVAR(source_doc, "source(device, step, template, size, /)\n--\n\n"
"The lazy array of a step without operands, in C order; see `recording.source`.");

static PyObject *
source(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 4 || array_type == NULL || Py_TYPE(args[1]) != step_type) {
        PyErr_SetString(PyExc_TypeError, "source takes a device, a step, a template and a size");
        return NULL;
    }
    return made_source(args[0], args[1], args[2], args[3]);
}

/* Whether work is put off here, and arrays are lazy: 1 or 0; -1: an error. */
static int
is_put_off(void)
{
    PyObject *options = options_here();
    PyObject *least = options == NULL ? NULL : PyObject_GetAttr(options, text_defer_from);
    PyObject *lazy = least == NULL ? NULL : PyObject_GetAttr(options, text_lazy);
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
    PyObject *count = PyObject_GetAttr(device, text_count), *reason;
    long devices = count == NULL ? -1 : PyLong_AsLong(count);
    Py_XDECREF(count);
    if (devices != 1)
        return devices < 0 && PyErr_Occurred() ? -1 : 0;
    reason = PyObject_CallMethodNoArgs(device, text_usable);
    int usable = reason == NULL ? -1 : reason == Py_None;
    Py_XDECREF(reason);
    return usable;
}

PyDoc_STRVAR(counted_doc, "counted(*args)\n--\n\n"
"``arange(n)`` where it was recorded before, else None; see `recording_sources.counted`.");

static PyObject *
counted(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 1 || !PyLong_CheckExact(args[0]) || array_type == NULL)
        Py_RETURN_NONE;
    PyObject *found = PyDict_GetItemWithError(counts, args[0]);
    PyObject *device = PyDict_GetItemWithError(devices_names, text_current);
    if (found == NULL || device == NULL || device == Py_None || !PyTuple_CheckExact(found)
            || PyTuple_GET_SIZE(found) != 2 || Py_TYPE(PyTuple_GET_ITEM(found, 0)) != step_type)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    PyObject *result = NULL;
    Py_INCREF(found);
    Py_INCREF(device);
    int possible = is_put_off();
    if (possible > 0)
        possible = is_usable(device);
    if (possible > 0)
        result = made_source(device, PyTuple_GET_ITEM(found, 0), PyTuple_GET_ITEM(found, 1), args[0]);
    else if (possible == 0)
        result = Py_NewRef(Py_None);
    Py_DECREF(found);
    Py_DECREF(device);
    return result;
}
