/* What is done while a context variable has a value. */

/* Set a variable, or set it back (with `token`), while the collector is off. Before Python 3.12 it runs within, and a finaliser that
sets a variable, too, has the memory freed that is being copied here. */
static PyObject *
set_undisturbed(PyObject *variable, PyObject *value, PyObject *token)
{
    const int collects = PyGC_Disable();
    PyObject *done = token == NULL ? PyContextVar_Set(variable, value)
        : PyContextVar_Reset(variable, token) < 0 ? NULL : Py_NewRef(Py_None);
    if (collects)
        PyGC_Enable();
    return done;
}

PyDoc_STRVAR(with_variable_doc, "with_variable(variable, value, work, /, *arguments)\n--\n\n"
"``work(*arguments)``, called while a context variable has a value; the collector runs neither as it is set nor as it is set back.");

static PyObject *
with_variable(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs < 3 || !PyContextVar_CheckExact(args[0]))
        return mistaken("with_variable takes a context variable, its value and a function");
    PyObject *token = set_undisturbed(args[0], args[1], NULL), *kind, *value, *trace;
    if (token == NULL)
        return NULL;
    PyObject *result = PyObject_Vectorcall(args[2], args + 3, nargs - 3, NULL);
    PyErr_Fetch(&kind, &value, &trace);
    PyObject *done = set_undisturbed(args[0], NULL, token);
    Py_DECREF(token);
    if (done == NULL || kind != NULL)
        Py_CLEAR(result);
    Py_XDECREF(done);
    if (kind != NULL)
        PyErr_Restore(kind, value, trace);
    return result;
}
