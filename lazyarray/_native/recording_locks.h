/* A lock that is held within a ``with`` statement, whenever a signal handler raises.

From Python 3.14 on a handler may run between the call of `__enter__` and the block, where nothing calls `__exit__`: a lock that
is entered itself would stay held. What is entered here is an object of its own, which nobody but the statement refers to: it
goes when the statement is left so, and lets go of the lock. */

typedef struct { PyObject_HEAD PyObject *lock; int held; } Holding;

static PyTypeObject *holding_type;

PyDoc_STRVAR(holding_doc, "holding(lock, /)\n--\n\n"
"A context in which a lock is held. It is for one ``with`` statement, and kept by nobody else.");

static PyObject *
holding(PyObject *Py_UNUSED(module), PyObject *lock)
{
    Holding *made = PyObject_New(Holding, holding_type);
    if (made != NULL) {
        made->lock = Py_NewRef(lock);
        made->held = 0;
    }
    return (PyObject *)made;
}

static PyObject *
holding_enter(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *done = PyObject_CallMethodNoArgs(((Holding *)self)->lock, text_acquire);
    if (done == NULL)
        return NULL;
    ((Holding *)self)->held = 1;
    Py_DECREF(done);
    Py_RETURN_NONE;
}

static PyObject *
holding_exit(PyObject *self, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(nargs))
{
    ((Holding *)self)->held = 0;
    return PyObject_CallMethodNoArgs(((Holding *)self)->lock, text_release);
}

static void
holding_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject *lock = ((Holding *)self)->lock;
    if (((Holding *)self)->held && unlocked(lock) < 0)
        PyErr_WriteUnraisable(lock);
    Py_DECREF(lock);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef holding_methods[] = {
    {"__enter__", holding_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))holding_exit, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot holding_slots[] = {
    {Py_tp_dealloc, holding_dealloc},
    {Py_tp_methods, holding_methods},
    {0, NULL},
};

static PyType_Spec holding_spec = {
    "lazyarray._native.recording.Holding", sizeof(Holding), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, holding_slots,
};
