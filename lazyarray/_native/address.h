/* Where a device array lies, as its attributes say. */
#include <stdint.h>

/* An integer attribute of an attribute or, with no `inner`, of the object itself. */
static inline int
address_of(PyObject *object, PyObject *name, PyObject *inner, uint64_t *found)
{
    PyObject *value = PyObject_GetAttr(object, name);
    if (value != NULL && inner != NULL)
        Py_SETREF(value, PyObject_GetAttr(value, inner));
    if (value == NULL)
        return -1;
    *found = PyLong_AsUnsignedLongLong(value);
    Py_DECREF(value);
    return *found == (uint64_t)-1 && PyErr_Occurred() ? -1 : 0;
}
