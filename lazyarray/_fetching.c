/* The first alias of a small array for who asks for a buffer, in C: what it costs is the price of asking for names.

`getbuffer` does what `protocols.buffer` and `fetching.first_alias` do, where there is nothing to find out, and leaves all
else to them. Only what comes before the copy is begun, and after it is over, is here: the device takes as long as Python
to do what comes in between, which is `fetching.prepare`. Without this module everything works, and takes longer.

The class of arrays has its `__buffer__`, for which the interpreter makes a memoryview and more; so does this not, whose
consumers hold the alias itself. A class that is derived from it goes the usual way.
*/
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <stdint.h>
#include <string.h>

#include "_fetching_asking.h"
#include "_fetching_copies.h"

/* Where the slots are: of LazyNdarray, Storage and Mirror. */
static struct { Py_ssize_t storage, outline; } X;
static struct { Py_ssize_t device, root, stream, loans, foreign, quiet, root_view; } S;
static struct { Py_ssize_t valid, lent, live, first_copy; } M;

static PyTypeObject *storage_type, *mirror_type;
static getbufferproc otherwise;
static PyObject *prepare, *undo, *coming, *rlock, *making_lock;
static PyObject *text_mirror, *text_own_lock, *text_lock, *text_locked, *text_acquire, *text_release, *text_fetcher,
    *text_c_contiguous;
static Py_ssize_t pages_from;

/* A lock that a thread has acquired, which is nobody's yet. */
static PyObject *spare;
static unsigned long spare_owner;

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

/* Acquire a lock that we have; NULL with an exception if it can't be done. */
static PyObject *
acquired(PyObject *lock)
{
    PyObject *done = lock == NULL ? NULL : PyObject_CallMethodNoArgs(lock, text_acquire);
    if (done == NULL)
        Py_CLEAR(lock);
    Py_XDECREF(done);
    return lock;
}

/* Have a lock at hand that this thread has acquired, for the next storage that has none. */
static void
make_spare(void)
{
    unsigned long here = PyThread_get_thread_ident();
    if (PyErr_Occurred() || (spare != NULL && spare_owner == here))
        return;
    PyObject *lock = acquired(PyObject_CallNoArgs(rlock));
    if (lock == NULL)
        PyErr_Clear();      /* one is made when it is needed, and then it is told */
    Py_XSETREF(spare, lock);
    spare_owner = here;
}

/* The lock of a storage, acquired: a new one if there is none, and nobody is about to make one, as its `lock` does. */
static PyObject *
lock_of(PyObject *storage)
{
    PyObject *lock = PyObject_GetAttr(storage, text_own_lock);
    if (lock == NULL || lock != Py_None)
        return acquired(lock);
    Py_DECREF(lock);
    int mine = spare != NULL && spare_owner == PyThread_get_thread_ident();
    if (mine) {
        lock = spare;
        spare = NULL;
    }
    else if ((lock = PyObject_CallNoArgs(rlock)) == NULL)
        return NULL;
    PyObject *busy = PyObject_CallMethodNoArgs(making_lock, text_locked);
    PyObject *now = busy == NULL ? NULL : PyObject_GetAttr(storage, text_own_lock);
    int done = now == NULL ? -1 : busy == Py_False && now == Py_None;
    if (done > 0 && PyObject_SetAttr(storage, text_own_lock, lock) < 0)
        done = -1;
    Py_XDECREF(busy);
    Py_XDECREF(now);
    if (done > 0)
        return mine ? lock : acquired(lock);
    Py_DECREF(lock);
    return done < 0 ? NULL : acquired(PyObject_GetAttr(storage, text_lock));
}

/* Release a lock; an exception stays the one that is raised. -1: another one. */
static int
unlocked(PyObject *lock)
{
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    PyObject *none = PyObject_CallMethodNoArgs(lock, text_release);
    if (none == NULL)
        return -1;
    Py_DECREF(none);
    PyErr_Restore(kind, value, trace);
    return 0;
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

/* The alias of a new mirror, while the device copies, and the mirror itself; -1 with an exception. */
static int
alias_of(PyObject *storage, PyObject *root, size_t nbytes, Py_buffer *view, int flags, PyObject **mirror)
{
    PyObject *size = PyLong_FromSize_t(nbytes), *with[] = {storage, root, size};
    PyObject *made = size == NULL ? NULL : PyObject_Vectorcall(prepare, with, 3, NULL);
    int failed = made == NULL;
    if (!failed && (!PyTuple_CheckExact(made) || PyTuple_GET_SIZE(made) != 2
                    || Py_TYPE(PyTuple_GET_ITEM(made, 0)) != mirror_type)) {
        PyErr_SetString(PyExc_TypeError, "a mirror and an alias are needed");
        failed = 1;
    }
    failed = failed || PyObject_GetBuffer(PyTuple_GET_ITEM(made, 1), view, flags) < 0;
    if (!failed && view->len != (Py_ssize_t)nbytes) {
        PyErr_SetString(PyExc_ValueError, "the alias has another size");
        PyBuffer_Release(view);
        failed = 1;
    }
    if (!failed)
        *mirror = Py_NewRef(PyTuple_GET_ITEM(made, 0));
    Py_XDECREF(size);
    Py_XDECREF(made);
    return failed ? -1 : 0;
}

/* What is done while the device copies, and the wait: 0 with the view of the alias, or -1 with an exception. */
static int
view_of(PyObject *storage, PyObject *root, Fetcher *fetcher, Fetch *fetch, Py_buffer *view, int flags)
{
    PyObject *mirror = NULL, *copy = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)fetch->nbytes);
    make_spare();       /* first, so that the garbage collector, if it is due now, runs while the device copies */
    int ready = copy != NULL && alias_of(storage, root, fetch->nbytes, view, flags, &mirror) == 0;
    if (ready) {
        memset(view->buf, 0, fetch->nbytes);    /* so that the memory is there, and near */
        memset(PyBytes_AS_STRING(copy), 0, fetch->nbytes);
    }
    /* Memory that ran out, or an interrupt, is no reason not to wait: nothing may be under way. */
    int error = ready ? fetch_waited(fetcher, fetch) : fetch_given_up(fetcher, fetch);
    if (ready && error) {
        PyBuffer_Release(view);
        raise_failure(fetcher, fetch->stream, error);
        ready = 0;
    }
    else if (ready) {       /* as `Mirror.lend_first` */
        memcpy(view->buf, fetch->room.address, fetch->nbytes);
        memcpy(PyBytes_AS_STRING(copy), fetch->room.address, fetch->nbytes);
        put(mirror, M.first_copy, copy);
        put(mirror, M.valid, got(mirror, M.live));
        put(mirror, M.lent, Py_True);
    }
    fetch_over(fetcher, fetch, error);
    if (!ready)
        undone(storage);
    Py_XDECREF(mirror);
    Py_XDECREF(copy);
    return ready ? 0 : -1;
}

/* With the storage's lock. 1: there is a view; 0: Python has to do it; -1: an exception. */
static int
first_with_lock(PyObject *storage, PyObject *root, PyObject *stream, Fetcher *fetcher, size_t nbytes, Py_buffer *view,
                int flags)
{
    Fetch fetch;
    int fits = is_untouched(storage, stream);       /* perhaps another thread was quicker */
    if (fits <= 0)
        return fits;
    /* Something is there before the bytes are: from now on device code that writes tells of it. */
    if (PyObject_SetAttr(storage, text_mirror, coming) < 0)
        return -1;
    int begun = fetch_begun(fetcher, root, nbytes, stream, &fetch);
    if (begun > 0)
        return view_of(storage, root, fetcher, &fetch, view, flags) < 0 ? -1 : 1;
    undone(storage);
    if (begun < 0 && PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear();      /* it comes again where there is more to say about it */
        begun = 0;
    }
    return begun;
}

/* The view of the first alias of all of an array. 1: there is one; 0: Python has to do it; -1: an exception. */
static int
first(PyObject *x, Py_buffer *view, int flags)
{
    PyObject *storage = got(x, X.storage), *outline = got(x, X.outline), *fetcher, *stream = NULL, *lock;
    if (Py_TYPE(storage) != storage_type || got(storage, S.root_view) != outline || got(storage, S.root) == Py_None)
        return 0;
    uint64_t nbytes;
    int done = is_untouched(storage, NULL);
    if (done <= 0)
        return done;
    Py_INCREF(storage);
    PyObject *root = Py_NewRef(got(storage, S.root));
    fetcher = PyObject_GetAttr(got(storage, S.device), text_fetcher);
    done = fetcher == NULL ? -1 : Py_TYPE(fetcher) == fetcher_type && ((Fetcher *)fetcher)->stream != NULL;
    if (done > 0) {
        stream = PyObject_CallNoArgs(((Fetcher *)fetcher)->stream);
        done = stream == NULL ? -1 : stream == got(storage, S.stream);
    }
    if (done <= 0 || (done = is_carray(got(x, X.outline))) <= 0 || (done = plainly_asked()) <= 0
            || (done = tracks_as_usual()) <= 0 || (done = unheard()) <= 0
            || (done = is_true_at(root, text_c_contiguous)) <= 0 || (done = number_at(root, text_nbytes, &nbytes)) < 0)
        goto end;
    if (nbytes == 0 || nbytes >= (uint64_t)pages_from)
        goto end;           /* with 0 */
    done = -1;
    if ((lock = lock_of(storage)) == NULL)
        goto end;
    done = first_with_lock(storage, root, stream, (Fetcher *)fetcher, (size_t)nbytes, view, flags);
    if (unlocked(lock) < 0) {
        if (done > 0)
            PyBuffer_Release(view);
        done = -1;
    }
    Py_DECREF(lock);
end:
    Py_DECREF(storage);
    Py_DECREF(root);
    Py_XDECREF(fetcher);
    Py_XDECREF(stream);
    return done;
}

/* What lends the memory of an array: a slot of its class. */
static int
getbuffer(PyObject *x, Py_buffer *view, int flags)
{
    /* Only who wants to know all: others may get what they could not, had they asked a moment later. */
    int done = (flags & PyBUF_FULL_RO) == PyBUF_FULL_RO ? first(x, view, flags) : 0;
    if (done == 0)
        return otherwise(x, view, flags);
    if (done < 0)
        view->obj = NULL;
    return done < 0 ? -1 : 0;
}

/* The offset of a slot, -1 with an error if there is no such slot. */
static Py_ssize_t
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

PyDoc_STRVAR(bind_doc, "bind(names, /)\n--\n\n"
"Tell the module the classes and functions of the Python modules, and have it lend the memory of arrays (called once).");

static PyObject *
bind(PyObject *Py_UNUSED(module), PyObject *names)
{
    PyObject *array = NULL, *storage = NULL, *mirror = NULL, *most = NULL;
    const struct { PyObject **where; const char *name; } objects[] = {
        {&array, "LazyNdarray"}, {&storage, "Storage"}, {&mirror, "Mirror"}, {&most, "PAGES_FROM"},
        {&asks, "asks"}, {&prepare, "prepare"}, {&undo, "undo"}, {&coming, "coming"},
        {&rlock, "RLock"}, {&making_lock, "making_lock"}, {&scopes, "scopes"}, {&options_names, "options"},
        {&listening, "listening"}, {&trace_names, "trace"},
    };
    if (!PyDict_Check(names)) {
        PyErr_SetString(PyExc_TypeError, "bind takes a dict");
        return NULL;
    }
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        PyObject *found = PyDict_GetItemString(names, objects[i].name);
        if (found == NULL) {
            PyErr_Format(PyExc_TypeError, "bind was not told %s", objects[i].name);
            return NULL;
        }
        *objects[i].where = Py_NewRef(found);       /* for good: this is called once */
    }
    if (!PyType_Check(array) || !PyType_Check(storage) || !PyType_Check(mirror) || !PyDict_Check(options_names)
            || !PyDict_Check(trace_names) || (pages_from = PyLong_AsSsize_t(most)) < 0) {
        PyErr_SetString(PyExc_TypeError, "bind was told other kinds of things");
        return NULL;
    }
    storage_type = (PyTypeObject *)storage;
    mirror_type = (PyTypeObject *)mirror;
    const struct { Py_ssize_t *where; PyTypeObject *type; const char *name; } slots[] = {
        {&X.storage, (PyTypeObject *)array, "_self_storage"}, {&X.outline, (PyTypeObject *)array, "_self_outline"},
        {&S.device, storage_type, "device"}, {&S.root, storage_type, "root"}, {&S.stream, storage_type, "stream"},
        {&S.loans, storage_type, "loans"}, {&S.foreign, storage_type, "foreign"}, {&S.quiet, storage_type, "quiet"},
        {&S.root_view, storage_type, "_root_view"}, {&M.valid, mirror_type, "valid"}, {&M.lent, mirror_type, "lent"},
        {&M.live, mirror_type, "_live"}, {&M.first_copy, mirror_type, "_first_copy"},
    };
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        if ((*slots[i].where = offset_of(slots[i].type, slots[i].name)) < 0)
            return NULL;
    PyBufferProcs *procs = ((PyTypeObject *)array)->tp_as_buffer;
    if (procs == NULL || procs->bf_getbuffer == NULL) {
        PyErr_SetString(PyExc_TypeError, "the class has no __buffer__");
        return NULL;
    }
    otherwise = procs->bf_getbuffer;
    procs->bf_getbuffer = getbuffer;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"bind", bind, METH_O, bind_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "lazyarray._fetching", PyDoc_STR("The first alias of a small array, in C."), -1, methods, NULL,
    NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit__fetching(void)
{
    static const struct { PyObject **where; const char *text; } texts[] = {
        {&text_data, "data"}, {&text_ptr, "ptr"}, {&text_nbytes, "nbytes"}, {&text_mirror, "mirror"},
        {&text_own_lock, "_lock"}, {&text_lock, "lock"}, {&text_locked, "locked"}, {&text_acquire, "acquire"},
        {&text_release, "release"}, {&text_fetcher, "fetcher"}, {&text_default, "_default"},
        {&text_write_tracking, "write_tracking"}, {&text_process, "_process"}, {&text_flags, "flags"},
        {&text_carray, "carray"}, {&text_c_contiguous, "_c_contiguous"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if ((*texts[i].where = PyUnicode_InternFromString(texts[i].text)) == NULL)
            return NULL;
    fetcher_type = (PyTypeObject *)PyType_FromSpec(&fetcher_spec);
    copy_type = (PyTypeObject *)PyType_FromSpec(&copy_spec);
    PyObject *module = fetcher_type == NULL || copy_type == NULL ? NULL : PyModule_Create(&definition);
    if (module != NULL && (PyModule_AddObjectRef(module, "Fetcher", (PyObject *)fetcher_type) < 0
                           || PyModule_AddIntConstant(module, "INTERFACE", 7) < 0))
        Py_CLEAR(module);
    return module;
}
