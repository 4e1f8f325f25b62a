/* Copies of large arrays into the pool's page-locked memory, begun before Python has a look at anything: where the host
   has written much, what Python needs is in no cache of the processor's, and takes as long as the link for four megabytes.
*/

static PyObject *pool, *small, *trackers;
static PyObject *text_returned, *text_complete, *text_pop, *text_append;
static PyTypeObject *mapping_type, *tracker_type, *filling_type;

/* Where the slots are: of Mapping. */
static struct { Py_ssize_t size, region, address, pid; } P;

typedef struct {
    PyObject_HEAD
    Fetcher *fetcher;       /* NULL when nothing is under way */
    PyObject *stream, *source, *returned, *mapping, *mirror, *writes;
    void *handle;
} Filling;

/* Whether a slot is this number. */
static int
is_number(PyObject *object, Py_ssize_t offset, uint64_t wanted)
{
    PyObject *value = got(object, offset);
    if (!PyLong_CheckExact(value))
        return 0;
    uint64_t found = PyLong_AsUnsignedLongLong(value);
    if (found == (uint64_t)-1 && PyErr_Occurred())
        PyErr_Clear();
    return found == wanted;
}

/* Give a mapping back to where it was taken from; an exception stays the one that is raised. */
static void
mapping_back(PyObject *returned, PyObject *mapping)
{
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    PyObject *none = PyObject_CallMethodOneArg(returned, text_append, mapping);
    if (none == NULL)
        PyErr_WriteUnraisable(returned);
    Py_XDECREF(none);
    PyErr_Restore(kind, value, trace);
}

/* Whether the kernel tracks pages in the process whose number this is, as `tracking.kernel`. */
static int
tracks_pages(PyObject *pid)
{
    PyObject *tracker = PyDict_GetItemWithError(trackers, pid);
    if (tracker == NULL)
        PyErr_Clear();
    return tracker != NULL && Py_TYPE(tracker) == tracker_type;
}

/* The mapping that was given back last, if it is for so many bytes and all of it is locked, as `Pool.take` has it: a new
   reference; else NULL, perhaps with an exception. */
static PyObject *
mapping_for(PyObject *returned, size_t nbytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    PyObject *mapping = PyObject_CallMethodNoArgs(returned, text_pop);
    if (mapping == NULL) {
        if (PyErr_ExceptionMatches(PyExc_IndexError))
            PyErr_Clear();
        return NULL;
    }
    int fits = Py_TYPE(mapping) == mapping_type && got(mapping, P.region) != Py_None
        && is_number(mapping, P.size, (nbytes + page - 1) / page * page) && is_number(mapping, P.pid, (uint64_t)getpid())
        && tracks_pages(got(mapping, P.pid))
        ? is_true_at(got(mapping, P.region), text_complete) : 0;
    if (fits > 0)
        return mapping;
    mapping_back(returned, mapping);
    Py_DECREF(mapping);
    return NULL;
}

/* Begin the copy: 0, or the driver's error, after which nothing is under way. No part goes from one locked piece to the
   next. */
static int
parts_begun(Fetcher *fetcher, uint64_t target, uint64_t source, size_t nbytes, void *handle)
{
    size_t piece = (size_t)fetcher->piece, at = 0;
    int error = 0;
    Py_BEGIN_ALLOW_THREADS      /* it waits where very much is queued */
    while (at < nbytes && !error) {
        size_t part = nbytes - at < piece ? nbytes - at : piece;
        error = fetcher->copy((void *)(uintptr_t)(target + at), source + at, part, handle);
        if (!error)
            at += part;
    }
    if (error && at)
        (void)fetcher->wait(handle);        /* whoever copies it in another way hears of what is wrong */
    Py_END_ALLOW_THREADS
    return error;
}

static Filling *
new_filling(PyObject *stream, PyObject *source, PyObject *returned, PyObject *mapping, void *handle)
{
    Filling *self = PyObject_New(Filling, filling_type);
    if (self == NULL)
        return NULL;
    self->fetcher = NULL;
    self->stream = Py_NewRef(stream);
    self->source = Py_NewRef(source);
    self->returned = Py_NewRef(returned);
    self->mapping = Py_NewRef(mapping);
    self->mirror = self->writes = NULL;
    self->handle = handle;
    return self;
}

/* The storage has a mirror, which is to be filled, and tells of writes from now on. 1: it has; 0: somebody has used it
   meanwhile; -1: an exception. */
static int
mirror_there(Filling *self, PyObject *storage, size_t nbytes)
{
    PyObject *size = PyLong_FromSize_t(nbytes);
    self->mirror = size == NULL ? NULL : PyObject_CallOneArg(small, size);
    Py_XDECREF(size);
    if (self->mirror == NULL)
        return -1;
    int done = is_untouched(storage, self->stream);     /* a finaliser may have run, up to here */
    if (done > 0 && ((self->writes = PyObject_GetAttr(storage, text_writes)) == NULL
                     || PyObject_SetAttr(storage, text_mirror, self->mirror) < 0))
        done = -1;
    return done;
}

/* Begin to copy all of a storage's device array, with its lock. 1: it is under way; 0: Python has to do it; -1: an
   exception. */
static int
filling_begun(Fetcher *fetcher, PyObject *storage, PyObject *root, size_t nbytes, PyObject *stream, PyObject **found)
{
    uint64_t source, handle, target;
    PyObject *data = PyObject_GetAttr(root, text_data), *returned, *mapping;
    int failed = data == NULL || number_at(data, text_ptr, &source) < 0 || number_at(stream, text_ptr, &handle) < 0;
    Py_XDECREF(data);
    if (failed)
        return -1;
    if (fetcher->closed || handle == PER_THREAD || fetcher->piece < 1)
        return 0;
    int done = unheard();       /* an event says how many bytes there are before they are copied */
    if (done <= 0 || (returned = PyObject_GetAttr(pool, text_returned)) == NULL)
        return done == 0 ? 0 : -1;
    mapping = mapping_for(returned, nbytes);
    Filling *self = mapping == NULL ? NULL : new_filling(stream, root, returned, mapping, (void *)(uintptr_t)handle);
    if (self == NULL && mapping != NULL)
        mapping_back(returned, mapping);
    Py_DECREF(returned);
    Py_XDECREF(mapping);
    if (self == NULL)
        return PyErr_Occurred() ? -1 : 0;
    target = PyLong_AsUnsignedLongLong(got(self->mapping, P.address));
    done = target == (uint64_t)-1 && PyErr_Occurred() ? -1 : mirror_there(self, storage, nbytes);
    if (done > 0 && parts_begun(fetcher, target, source, nbytes, self->handle) == 0) {
        self->fetcher = (Fetcher *)Py_NewRef(fetcher);
        *found = (PyObject *)self;
        return 1;
    }
    if (done > 0) {
        undone(storage);
        done = 0;
    }
    Py_DECREF(self);
    return done;
}

/* -- for Python ------------------------------------------------------------------------------------------------- */

/* 0, or the driver's error. Nothing is under way any more, as far as anybody knows. */
static int
filling_waited(Filling *self)
{
    Fetch fetch = {self->stream, self->handle, {NULL, NULL}, 0};
    Fetcher *fetcher = self->fetcher;
    int error = fetcher == NULL ? 0 : fetch_given_up(fetcher, &fetch);
    self->fetcher = NULL;
    Py_XDECREF(fetcher);
    if (error)
        self->mapping = NULL;       /* kept for good: nobody knows whether something still comes */
    return error;
}

PyDoc_STRVAR(wait_doc, "wait()\n--\n\nWait for the copy.");

static PyObject *
filling_wait(Filling *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *fetcher = Py_XNewRef((PyObject *)self->fetcher);
    int error = filling_waited(self);
    if (error)
        raise_failure((Fetcher *)fetcher, self->stream, error);
    Py_XDECREF(fetcher);
    if (error)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(take_doc, "take()\n--\n\nThe mapping that is filled, which is the caller's from now on.");

static PyObject *
filling_take(Filling *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *mapping = self->mapping;
    if (mapping == NULL)
        PyErr_SetString(PyExc_ValueError, "the mapping is somebody's already");
    self->mapping = NULL;
    return mapping;
}

/* Of a copy that nobody wants any more: until it is over, its memory is nobody else's. */
static void
filling_dealloc(Filling *self)
{
    PyTypeObject *type = Py_TYPE(self);
    (void)filling_waited(self);
    if (self->mapping != NULL)
        mapping_back(self->returned, self->mapping);
    Py_XDECREF(self->mapping);
    Py_XDECREF(self->mirror);
    Py_XDECREF(self->writes);
    Py_DECREF(self->returned);
    Py_DECREF(self->source);
    Py_DECREF(self->stream);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyMemberDef filling_members[] = {
    {"mirror", T_OBJECT_EX, offsetof(Filling, mirror), READONLY, PyDoc_STR("That of the storage when it began.")},
    {"writes", T_OBJECT_EX, offsetof(Filling, writes), READONLY, PyDoc_STR("Those of the storage when it began.")},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef filling_methods[] = {
    {"take", (PyCFunction)filling_take, METH_NOARGS, take_doc},
    {"wait", (PyCFunction)filling_wait, METH_NOARGS, wait_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot filling_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("A copy into memory of the pool's, under way.")}, {Py_tp_dealloc, filling_dealloc},
    {Py_tp_members, filling_members}, {Py_tp_methods, filling_methods}, {0, NULL},
};

static PyType_Spec filling_spec = {
    "lazyarray._fetching.Filling", sizeof(Filling), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    filling_slots,
};
