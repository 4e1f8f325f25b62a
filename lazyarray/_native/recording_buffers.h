/* The buffer protocol, where a signal handler raises.

NumPy asks for a buffer first, takes no notice of why it gets none, and asks for something else: `KeyboardInterrupt` would be lost.
So it is kept with the place of the call, and raised there by what NumPy asks for next. What lets go of a buffer runs no Python
code, in which a handler could raise: nobody would hear of it. */

#ifdef _MSC_VER
#define PER_THREAD __declspec(thread)
#else
#define PER_THREAD __thread
#endif

/* Of each thread: what another one is asked for takes nothing away. */
static PER_THREAD PyObject *lost_error, *lost_in;
static PER_THREAD int lost_at;

static void
keep_lost(PyObject *error, PyFrameObject *frame)
{
    PyObject *before = lost_error, *place = lost_in;
    lost_error = Py_XNewRef(error);
    lost_in = Py_XNewRef((PyObject *)frame);
    lost_at = frame == NULL ? 0 : PyFrame_GetLasti(frame);
    Py_XDECREF(before);
    Py_XDECREF(place);
}

/* Whether a signal handler raised it, as far as `asked`, a function, knows. */
static int
is_from_handler(PyObject *error, PyObject *asked)
{
    if (!PyErr_GivenExceptionMatches(error, PyExc_Exception))
        return 1;
    return truth_of(PyObject_CallOneArg(asked, error));
}

static PyObject *
buffer_of(PyObject *parts, PyObject *const *args, Py_ssize_t nargs)
{
    if (lost_error != NULL)
        keep_lost(NULL, NULL);
    PyObject *result = PyObject_Vectorcall(PyTuple_GET_ITEM(parts, 0), args, nargs, NULL);
    if (result != NULL)
        return result;
    PyObject *error = raised();
    int from_handler = is_from_handler(error, PyTuple_GET_ITEM(parts, 1));
    if (from_handler > 0)
        keep_lost(error, PyEval_GetFrame());
    if (from_handler >= 0)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_DECREF(error);
    return NULL;
}

static PyObject *
release_buffer(PyObject *Py_UNUSED(none), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2)
        return mistaken("__release_buffer__ takes one argument, a memoryview");
    return PyObject_CallMethodNoArgs(args[1], text_release);
}

static PyMethodDef buffer_methods[] = {
    {"__buffer__", (PyCFunction)(void (*)(void))buffer_of, METH_FASTCALL,
     PyDoc_STR("__buffer__($self, flags, /)\n--\n\nThe memory of an alias; writable if the array is.")},
    {"__release_buffer__", (PyCFunction)(void (*)(void))release_buffer, METH_FASTCALL,
     PyDoc_STR("__release_buffer__($self, view, /)\n--\n\nThe last consumer let go of the alias.")},
};

PyDoc_STRVAR(buffer_methods_doc, "buffer_methods(buffer, from_handler, /)\n--\n\n"
"The methods `__buffer__` and `__release_buffer__`. `buffer`: what gives the memory, `from_handler`: whether an exception is "
"a signal handler's; then `lost` has it.");

static PyObject *
make_buffer_methods(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2)
        return mistaken("buffer_methods takes two functions");
    PyObject *made = hidden(PyTuple_New(2)), *parts = PyTuple_Pack(2, args[0], args[1]);
    for (int i = 0; made != NULL && i < 2; i++) {
        PyObject *function = parts == NULL ? NULL : PyCFunction_New(&buffer_methods[i], parts);
        PyObject *method = function == NULL ? NULL : PyInstanceMethod_New(function);
        Py_XDECREF(function);
        if (method == NULL)
            Py_CLEAR(made);
        else
            PyTuple_SET_ITEM(made, i, method);
    }
    Py_XDECREF(parts);
    return shown(made);
}

PyDoc_STRVAR(lost_doc, "lost()\n--\n\n"
"What a signal handler raised while the last buffer was asked for, and where: (exception, frame, instruction), or None. Once.");

static PyObject *
lost(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    if (lost_error == NULL)
        Py_RETURN_NONE;
    PyObject *error = lost_error, *place = lost_in;
    lost_error = lost_in = NULL;
    PyObject *found = Py_BuildValue("(OOi)", error, place == NULL ? Py_None : place, lost_at);
    Py_DECREF(error);
    Py_XDECREF(place);
    return found;
}
