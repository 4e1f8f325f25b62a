/* What the modules in C share: what they are told, slots of Python's classes, reached by their offsets, the settings in
   force, and locks. */

static PyObject *scopes, *options_names, *text_default;

#define AT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

/* NULL, with a TypeError of this text. */
static inline void *
mistaken(const char *what)
{
    PyErr_SetString(PyExc_TypeError, what);
    return NULL;
}

/* Whether what was called for what it does has done it: 0; -1: an error. The result is given away. */
static inline int
told(PyObject *result)
{
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

/* An answer as 1 or 0; -1: an error. It is given away. */
static inline int
truth_of(PyObject *answer)
{
    const int truth = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    return truth;
}

/* Whether an answer is this object, which others hold, too: 1 or 0; -1: an error. It is given away. */
static inline int
is_given(PyObject *answer, PyObject *value)
{
    Py_XDECREF(answer);
    return answer == NULL ? -1 : answer == value;
}

/* A new tuple or list that is about to be filled: if Python code runs meanwhile, or the collector, whoever walks the collector's objects
does not find it before it is `shown`. */
static inline PyObject *
hidden(PyObject *made)
{
    if (made != NULL && PyObject_GC_IsTracked(made))
        PyObject_GC_UnTrack(made);
    return made;
}

static inline PyObject *
shown(PyObject *filled)
{
    if (filled != NULL && !PyObject_GC_IsTracked(filled) && !(PyTuple_Check(filled) && PyTuple_GET_SIZE(filled) == 0))
        PyObject_GC_Track(filled);
    return filled;
}

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

/* -- what a module is told -------------------------------------------------------------------------------------- */

typedef struct { PyObject **where; const char *text; } Text;
typedef struct { Py_ssize_t *where; PyObject *type; const char *name; } Slot;

#define COUNT(array) (sizeof (array) / sizeof *(array))

/* Names of attributes, as strings. */
static inline int
interned(const Text *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if ((*texts[i].where = PyUnicode_InternFromString(texts[i].text)) == NULL)
            return -1;
    return 0;
}

/* What `bind` is given, by name; it is kept for good, since that is called once. */
static inline int
bound(PyObject *names, const Text *objects, size_t count)
{
    if (!PyDict_Check(names)) {
        PyErr_SetString(PyExc_TypeError, "bind takes a dict");
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        PyObject *found = PyDict_GetItemString(names, objects[i].text);
        if (found == NULL) {
            PyErr_Format(PyExc_TypeError, "bind was not told %s", objects[i].text);
            return -1;
        }
        *objects[i].where = Py_NewRef(found);
    }
    return 0;
}

/* Where these slots are. */
static inline int
located(const Slot *slots, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if ((*slots[i].where = offset_of((PyTypeObject *)slots[i].type, slots[i].name)) < 0)
            return -1;
    return 0;
}

/* The exception that is raised, with its traceback, and raised no more: a new reference. */
static inline PyObject *
raised(void)
{
    PyObject *kind, *error, *trace;
    PyErr_Fetch(&kind, &error, &trace);
    PyErr_NormalizeException(&kind, &error, &trace);
    if (trace != NULL)
        PyException_SetTraceback(error, trace);
    Py_XDECREF(kind);
    Py_XDECREF(trace);
    return error;
}

/* -- locks ------------------------------------------------------------------------------------------------------ */

static PyObject *text_acquire, *text_release;

/* Acquire a lock that we have; NULL with an exception if it can't be done. */
static inline PyObject *
acquired(PyObject *lock)
{
    PyObject *done = lock == NULL ? NULL : PyObject_CallMethodNoArgs(lock, text_acquire);
    if (done == NULL)
        Py_CLEAR(lock);
    Py_XDECREF(done);
    return lock;
}

/* Release a lock; an exception stays the one that is raised. -1: another one. */
static inline int
unlocked(PyObject *lock)
{
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    PyObject *none = PyObject_CallMethodNoArgs(lock, text_release);
    if (none != NULL)
        PyErr_Restore(kind, value, trace);
    else {
        Py_XDECREF(kind);
        Py_XDECREF(value);
        Py_XDECREF(trace);
    }
    Py_XDECREF(none);
    return none == NULL ? -1 : 0;
}
