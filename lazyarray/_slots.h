/* What the modules in C share: slots of Python's classes, reached by their offsets, and the settings in force. */

static PyObject *scopes, *options_names, *text_default;

#define AT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

/* A slot that never was filled counts as None. */
static inline PyObject *
got(PyObject *object, Py_ssize_t offset)
{
    PyObject *value = AT(object, offset);
    return value == NULL ? Py_None : value;
}

static inline void
put(PyObject *object, Py_ssize_t offset, PyObject *value)
{
    PyObject *before = AT(object, offset);
    AT(object, offset) = Py_NewRef(value);
    Py_XDECREF(before);
}

/* The offset of a slot, -1 with an error if there is no such slot. */
static inline Py_ssize_t
offset_of(PyTypeObject *type, const char *name)
{
    PyObject *found = PyObject_GetAttrString((PyObject *)type, name);
    Py_ssize_t offset = -1;
    if (found != NULL && Py_TYPE(found) == &PyMemberDescr_Type)
        offset = ((PyMemberDescrObject *)found)->d_member->offset;
    else if (found != NULL)
        PyErr_Format(PyExc_TypeError, "%R has no slot %s", type, name);
    Py_XDECREF(found);
    return offset;
}

/* The settings in force here: a new reference. */
static inline PyObject *
options_here(void)
{
    PyObject *stack, *options;
    if (PyContextVar_Get(scopes, NULL, &stack) < 0)
        return NULL;
    if (PyTuple_CheckExact(stack) && PyTuple_GET_SIZE(stack) > 0)
        options = PyTuple_GET_ITEM(PyTuple_GET_ITEM(stack, PyTuple_GET_SIZE(stack) - 1), 1);
    else
        options = PyDict_GetItemWithError(options_names, text_default);
    Py_XINCREF(options);
    Py_DECREF(stack);
    if (options == NULL && !PyErr_Occurred())
        PyErr_SetString(PyExc_RuntimeError, "there are no options");
    return options;
}
