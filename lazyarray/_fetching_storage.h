/* What a storage has to be for its first alias to be made in C. */

/* Where the slots are: of Storage. */
static struct { Py_ssize_t device, root, stream, loans, foreign, quiet, root_view; } S;

static PyTypeObject *storage_type;
static PyObject *undo;
static PyObject *text_mirror, *text_writes;

/* Whether a storage's bytes are on the device alone, and nobody else's; -1: an error. */
static int
is_untouched(PyObject *storage, PyObject *stream)
{
    PyObject *loans = got(storage, S.loans);
    if (got(storage, S.quiet) != Py_True || got(storage, S.foreign) != Py_False || !PyTuple_CheckExact(loans)
            || PyTuple_GET_SIZE(loans) > 0 || (stream != NULL && got(storage, S.stream) != stream))
        return 0;
    PyObject *mirror = PyObject_GetAttr(storage, text_mirror);
    Py_XDECREF(mirror);
    return mirror == NULL ? -1 : mirror == Py_None;
}

/* The storage is as it was; an exception stays the one that is raised. */
static void
undone(PyObject *storage)
{
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    PyObject *none = PyObject_CallOneArg(undo, storage);
    if (none == NULL)
        PyErr_WriteUnraisable(undo);
    Py_XDECREF(none);
    PyErr_Restore(kind, value, trace);
}
