/* Steps whose results are needed by themselves, computed at the call: `recording.at_once`. */

/* How often a result of this form has to be needed by itself before the next is computed at once. */
static long
least_alone(PyObject *form)
{
    return PyLong_AsSsize_t(OF(form, size)) < long_size ? most_alone : most_alone_long;
}

/* A step on leaves and numbers, computed now by its kernel; else None or NotImplemented, as `recording.at_once`. */
static PyObject *
computed_now(PyObject *rule, PyObject *operands, PyObject *form, PyObject *device, long alone)
{
    PyObject *kernel = got(rule, R.kernel), *stream, *arguments = NULL, *results = NULL, *result = NULL, *storage;
    int with_partners = PyObject_IsTrue(partners);
    if (with_partners < 0)
        return NULL;
    Py_ssize_t size = PyLong_AsSsize_t(OF(form, size));
    if (kernel == Py_None && got(rule, R.program) != Py_None && alone % ASKED && alone < most_at_once && !with_partners
            && size < long_size) {
        PyObject *number = PyLong_FromLong(alone + 1);      /* no kernel yet, and it was asked for lately */
        if (number == NULL)
            return NULL;
        put(rule, R.alone, number);
        Py_DECREF(number);
        return Py_NewRef(Py_NotImplemented);
    }
    if (kernel == Py_None || with_partners || size > longest)
        return PyObject_CallFunctionObjArgs(at_once, rule, operands, form, device, NULL);
    Py_INCREF(kernel);
    stream = PyObject_CallMethodNoArgs(device, text_stream);
    if (stream == NULL)
        goto end;
    Py_ssize_t count = PyTuple_GET_SIZE(operands);
    arguments = PyList_New(count);
    if (arguments == NULL)
        goto end;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *operand = PyTuple_GET_ITEM(operands, i);
        if (Py_TYPE(operand) == leaf_type) {
            if (Py_TYPE(AT(operand, L.storage)) != storage_type || AT(AT(operand, L.storage), S.stream) != stream) {
                result = Py_NewRef(Py_None);
                goto end;
            }
            operand = AT(operand, L.array);
        }
        PyList_SET_ITEM(arguments, i, Py_NewRef(operand));
    }
    PyObject *number = PyLong_FromLong(alone > most_at_once ? least_alone(form) : alone + 1);
    if (number == NULL)
        goto end;
    put(rule, R.alone, number);
    Py_DECREF(number);
    PyObject *launch = got(rule, R.launch);
    if (launch != Py_None) {
        Py_INCREF(launch);
        results = PyObject_CallFunctionObjArgs(launch, arguments, OF(form, shape), OF(form, fortran), NULL);
        Py_DECREF(launch);
        if (results == Py_None)
            Py_CLEAR(results);
        else if (results == NULL)
            goto end;
    }
    if (results == NULL)
        results = PyObject_CallFunctionObjArgs(kernel, arguments, OF(form, shape), OF(form, fortran), NULL);
    if (results == NULL)
        goto end;
    if (!PyList_CheckExact(results) || PyList_GET_SIZE(results) != 1) {
        PyErr_SetString(PyExc_TypeError, "a kernel of one step gives a list of one array");
        goto end;
    }
    storage = made_storage(device, PyList_GET_ITEM(results, 0), stream, Py_None, Py_None);
    if (storage == NULL)
        goto end;
    result = made_array(storage, Py_None, PyList_GET_ITEM(results, 0), Py_None);
    Py_DECREF(storage);
end:
    Py_DECREF(kernel);
    Py_XDECREF(stream);
    Py_XDECREF(arguments);
    Py_XDECREF(results);
    return result;
}
