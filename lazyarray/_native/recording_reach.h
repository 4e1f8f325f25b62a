/* How far integers reach, as far as that is known: `storage/facts.py` keeps it, and `graph/known_ranges.py` finds it out of what is
recorded. */

/* `asked`: somebody has asked for it of an index. */
typedef struct { Py_ssize_t low, high; int distinct, asked; } Reach;

/* How far the integers of a storage reach, which are there or wait, as `storage/facts.py` keeps it: 1; 0: that is not known;
-1: an error. */
static int
find_reach(PyObject *storage, PyObject *dtype, Reach *reach)
{
    if (is_held(storage) || (got(storage, S.clean) != Py_True && got(storage, S.pending) == Py_None))
        return 0;
    PyObject *facts = PyObject_GetAttr(storage, text.facts), *bounds = NULL;
    PyObject *writes = facts == NULL ? NULL : PyObject_GetAttr(storage, text.writes);
    int known = writes == NULL ? -1 : PyTuple_CheckExact(facts) && PyTuple_GET_SIZE(facts) == 2
        ? same(writes, PyTuple_GET_ITEM(facts, 0)) : 0;
    if (known > 0) {
        PyObject *found = PyTuple_GET_ITEM(facts, 1);
        bounds = Py_XNewRef(PyDict_GetItemWithError(found, text.bounds));
        known = bounds == NULL ? -!!PyErr_Occurred() : PyTuple_CheckExact(bounds) && PyTuple_GET_SIZE(bounds) == 3
            ? same(dtype, PyTuple_GET_ITEM(bounds, 2)) : 0;
        reach->distinct = known > 0 ? PyDict_Contains(found, text.distinct) : 0;
        if ((reach->asked = known > 0 ? is_asked_for(found) : 0) < 0)
            known = -1;
    }
    if (known > 0) {
        reach->low = PyLong_AsSsize_t(PyTuple_GET_ITEM(bounds, 0));
        reach->high = PyLong_AsSsize_t(PyTuple_GET_ITEM(bounds, 1));
        if (PyErr_Occurred()) {     /* beyond the length of any array */
            known = PyErr_ExceptionMatches(PyExc_OverflowError) ? 0 : -1;
            if (!known)
                PyErr_Clear();
        }
        reach->distinct = reach->distinct > 0 && reach->low >= 0;
    }
    Py_XDECREF(bounds);
    Py_XDECREF(writes);
    Py_XDECREF(facts);
    return known;
}

/* The storage of a lazy array, or of a scalar whose value is not on the host: borrowed; else None. */
static PyObject *
home_of_lazy(PyObject *x)
{
    if (Py_TYPE(x) == types.LazyScalar)
        return got(x, V.value) == Py_None ? got(x, V.storage) : Py_None;
    return Py_TYPE(x) == types.LazyNdarray ? got(x, X.storage) : Py_None;
}

/* Whether the elements of a part of a storage, whose integers are of its dtype, are elements of that, not parts of two: 1 or 0;
-1: an error. `distinct` stays where none is seen twice. */
static int
sees_elements(PyObject *x, int *distinct)
{
    PyObject *meta = meta_of_lazy(x);
    if (meta == NULL || !PyArray_Check(meta)) {
        Py_XDECREF(meta);
        return meta == NULL ? -1 : 0;
    }
    const PyArrayObject *view = (PyArrayObject *)meta;
    const Py_ssize_t size = PyArray_ITEMSIZE(view);
    int whole = size > 0 && ((Py_ssize_t)PyArray_DATA(view) - limits.ORIGIN) % size == 0;
    for (int axis = 0; whole && axis < PyArray_NDIM(view); axis++)
        whole = PyArray_STRIDE(view, axis) % size == 0;
    *distinct = *distinct && (PyArray_NDIM(view) == 1 ? PyArray_STRIDE(view, 0) != 0 : PyArray_IS_C_CONTIGUOUS(view));
    Py_DECREF(meta);
    return whole;
}

/* The same of a lazy array or scalar. What waits is looked at before it is computed: it does not know later what of. */
static int
reach_of(PyObject *x, Reach *reach)
{
    PyObject *storage = home_of_lazy(x), *dtype;
    int known = 0;
    if (Py_TYPE(storage) != types.Storage)
        return 0;
    Py_INCREF(storage);
    if (got(storage, S.pending) != Py_None && told(PyObject_CallOneArg(py.note_range, x)) < 0) {
        Py_DECREF(storage);
        return -1;
    }
    if ((dtype = dtype_of_lazy(x)) != NULL && PyArray_DescrCheck(dtype) && strchr("iu", ((PyArray_Descr *)dtype)->kind) != NULL)
        known = find_reach(storage, dtype, reach);
    if (known > 0 && Py_TYPE(x) == types.LazyNdarray && got(x, X.base) != Py_None)
        known = sees_elements(x, &reach->distinct);
    Py_XDECREF(dtype);
    Py_DECREF(storage);
    return PyErr_Occurred() ? -1 : known;
}

/* A whole number as a size: 1; 0: it is beyond; -1: an error. */
static int
size_of(PyObject *number, Py_ssize_t *size)
{
    *size = PyNumber_AsSsize_t(number, PyExc_OverflowError);
    if (*size != -1 || !PyErr_Occurred())
        return 1;
    if (!PyErr_ExceptionMatches(PyExc_OverflowError))
        return -1;
    PyErr_Clear();
    return 0;
}

/* How far the integers of a small ndarray reach: 1; 0: it has none; -1: an error. Other threads may run meanwhile. */
static int
reach_on_host(PyArrayObject *array, Reach *reach)
{
    if (strchr("iu", PyArray_DESCR(array)->kind) == NULL || PyArray_SIZE(array) == 0)
        return 0;
    PyObject *ends[2] = {NULL, NULL};
    Py_ssize_t *where[2] = {&reach->low, &reach->high};
    int known = 1;
    Py_INCREF(array);
    for (int i = 0; known > 0 && i < 2; i++) {
        ends[i] = i == 0 ? PyArray_Min(array, NPY_RAVEL_AXIS, NULL) : PyArray_Max(array, NPY_RAVEL_AXIS, NULL);
        known = ends[i] == NULL ? -1 : size_of(ends[i], where[i]);
        Py_XDECREF(ends[i]);
    }
    Py_DECREF(array);
    return known;
}
