/* Memory of the device, allocated without the interpreter: a signal handler that raised within would raise in the midst of
the device library's own code, which takes it for a lack of memory. */

static PyObject *
allocated(PyObject *way, PyObject *size)
{
    Py_ssize_t nbytes = PyLong_AsSsize_t(size), most = PyLong_AsSsize_t(PyTuple_GET_ITEM(way, 3));
    if (PyErr_Occurred())
        return NULL;
    if (nbytes < most) {
        PyObject *memory = PyObject_CallOneArg(PyTuple_GET_ITEM(way, 0), size);
        if (memory != NULL || !PyErr_ExceptionMatches(PyTuple_GET_ITEM(way, 2)))
            return memory;
        PyErr_Clear();
    }
    return PyObject_CallOneArg(PyTuple_GET_ITEM(way, 1), size);
}

static PyMethodDef allocator_method = {"malloc", allocated, METH_O, PyDoc_STR("malloc(nbytes, /)\n--\n\nMemory on the device.")};

PyDoc_STRVAR(allocator_doc, "allocator(allocate, otherwise, full, nbytes, /)\n--\n\n"
"A function that returns ``allocate(n)`` for less than `nbytes` bytes, and ``otherwise(n)`` for more, or after that has\n"
"raised `full`.");

static PyObject *
allocator(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *allocate, *otherwise, *full, *nbytes;
    if (!PyArg_ParseTuple(args, "OOO!O!", &allocate, &otherwise, &PyType_Type, &full, &PyLong_Type, &nbytes))
        return NULL;
    return PyCFunction_New(&allocator_method, args);
}

/* The current stream, where one device alone is visible: a tuple of what gives it, the pointer that each thread's own default stream
has, and what is asked where that is the current one. */
static PyObject *
stream_here(PyObject *way, PyObject *Py_UNUSED(ignored))
{
    PyObject *stream = PyObject_CallNoArgs(PyTuple_GET_ITEM(way, 0));
    PyObject *pointer = stream == NULL ? NULL : PyObject_GetAttr(stream, text_ptr);
    int own = pointer == NULL ? -1 : PyObject_RichCompareBool(pointer, PyTuple_GET_ITEM(way, 1), Py_EQ);
    Py_XDECREF(pointer);
    if (own == 0)
        return stream;
    Py_XDECREF(stream);
    return own < 0 ? NULL : PyObject_CallNoArgs(PyTuple_GET_ITEM(way, 2));
}

static PyMethodDef stream_method = {"stream", stream_here, METH_NOARGS, PyDoc_STR("stream()\n--\n\nThe current stream.")};

PyDoc_STRVAR(streams_doc, "streams(current, per_thread, otherwise, /)\n--\n\n"
"A function that returns ``current()``, and ``otherwise()`` where that has the pointer `per_thread`.");

static PyObject *
streams(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *current, *per_thread, *otherwise;
    if (!PyArg_ParseTuple(args, "OO!O", &current, &PyLong_Type, &per_thread, &otherwise))
        return NULL;
    return PyCFunction_New(&stream_method, args);
}

static PyMethodDef functions[] = {
    {"streams", streams, METH_VARARGS, streams_doc},
    {"allocator", allocator, METH_VARARGS, allocator_doc},
    {"launched", (PyCFunction)launched_with, METH_FASTCALL, launched_doc},
    {NULL, NULL, 0, NULL},
};
