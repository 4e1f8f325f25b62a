/* Copies of small arrays to page-locked memory, which `devices/cuda/copies/small_download.py` describes, and bytes from the
   device into memory that foreign code holds, but for what that has written.

CUDA is not needed to compile this: the driver's functions are called through their addresses.
*/
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "address.h"

typedef int (*copier)(void *, uint64_t, size_t, void *);
typedef int (*waiter)(void *);

#define MOST_FREE 8
#define PER_THREAD 2        /* cudaStreamPerThread: another stream in each thread, so that another can't wait for it */
#define NOT_INITIALIZED 3   /* CUDA_ERROR_NOT_INITIALIZED: what the driver says in a forked child */

/* Page-locked memory, and where it is. */
typedef struct { PyObject *memory; void *address; } Room;

typedef struct {
    PyObject_HEAD
    copier copy;
    waiter wait;
    PyObject *stream, *alloc, *failed;      /* callables */
    Py_ssize_t most;                        /* bytes of each room */
    Room rooms[MOST_FREE];                  /* that no copy uses */
    int count, closed;
} Fetcher;

/* A copy under way. */
typedef struct { PyObject *stream; void *handle; Room room; size_t nbytes; } Fetch;

static PyObject *text_data, *text_ptr, *text_nbytes;
static PyTypeObject *copy_type;

static void
give_back(Fetcher *self, Room room)
{
    if (self->count < MOST_FREE && !self->closed)
        self->rooms[self->count++] = room;
    else
        Py_DECREF(room.memory);
}

/* Begin a copy on this stream. 1: it is under way; 0: nothing is, and who asks does it in another way, which knows the
   error; -1: an exception. */
static int
fetch_begun(Fetcher *self, PyObject *array, size_t nbytes, PyObject *stream, Fetch *fetch)
{
    uint64_t source, address, handle;
    if (address_of(array, text_data, text_ptr, &source) < 0 || address_of(stream, text_ptr, NULL, &handle) < 0)
        return -1;
    if (self->closed || handle == PER_THREAD || nbytes == 0 || nbytes > (size_t)self->most)
        return 0;
    if (self->count > 0)    /* taken away until it is over: a finalizer may run in between, and fetch something too */
        fetch->room = self->rooms[--self->count];
    else {
        PyObject *memory = PyObject_CallFunction(self->alloc, "n", self->most);
        if (memory == NULL || address_of(memory, text_ptr, NULL, &address) < 0) {
            Py_XDECREF(memory);
            return -1;
        }
        fetch->room = (Room){memory, (void *)(uintptr_t)address};
    }
    fetch->stream = Py_NewRef(stream);
    fetch->handle = (void *)(uintptr_t)handle;
    fetch->nbytes = nbytes;
    int error;
    Py_BEGIN_ALLOW_THREADS      /* it waits where very much is queued */
    error = self->copy(fetch->room.address, source, nbytes, fetch->handle);
    Py_END_ALLOW_THREADS
    if (!error)
        return 1;
    give_back(self, fetch->room);
    Py_CLEAR(fetch->stream);
    return 0;
}

/* Wait for a copy: 0, or the driver's error. `fetch_over` comes next in any case. */
static int
fetch_waited(Fetcher *self, Fetch *fetch)
{
    int error;
    if (self->closed)
        return NOT_INITIALIZED;
    Py_BEGIN_ALLOW_THREADS
    error = self->wait(fetch->handle);
    Py_END_ALLOW_THREADS
    return error;
}

/* The same when all that is left of a copy is to wait for it; an exception stays the one that is raised. */
static int
fetch_given_up(Fetcher *self, Fetch *fetch)
{
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    int error = fetch_waited(self, fetch);
    PyErr_Restore(kind, value, trace);
    return error;
}

/* The room is free again; after an error it never is, since nobody knows whether something still comes. */
static void
fetch_over(Fetcher *self, Fetch *fetch, int error)
{
    if (!error)
        give_back(self, fetch->room);
    Py_CLEAR(fetch->stream);
}

/* Raise what an error of the driver's is in Python. */
static void
raise_failure(Fetcher *self, PyObject *stream, int error)
{
    PyObject *answer = PyObject_CallFunction(self->failed, "Oi", stream, error);
    if (answer != NULL)
        PyErr_Format(PyExc_RuntimeError, "error %d of the driver", error);
    Py_XDECREF(answer);
}

/* -- for Python ------------------------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    Fetcher *fetcher;       /* NULL when it is over */
    Fetch fetch;
} Copy;

PyDoc_STRVAR(begin_doc, "begin(array, /)\n--\n\n"
"Begin to copy a C-contiguous device array on the current stream: what has the `end`, or None if another way is needed.");

static PyObject *
fetcher_begin(Fetcher *self, PyObject *array)
{
    uint64_t nbytes;
    PyObject *stream = self->stream == NULL ? NULL : PyObject_CallNoArgs(self->stream);
    if (self->stream == NULL)
        PyErr_SetString(PyExc_TypeError, "this fetcher is gone");
    Copy *copy = stream == NULL ? NULL : PyObject_New(Copy, copy_type);
    if (copy == NULL) {
        Py_XDECREF(stream);
        return NULL;
    }
    copy->fetcher = NULL;
    int begun = address_of(array, text_nbytes, NULL, &nbytes);
    if (begun == 0)
        begun = fetch_begun(self, array, nbytes, stream, &copy->fetch);
    Py_DECREF(stream);
    if (begun > 0) {
        copy->fetcher = (Fetcher *)Py_NewRef(self);
        return (PyObject *)copy;
    }
    Py_DECREF(copy);
    if (begun < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(end_doc, "end(memory, /)\n--\n\nWait for the copy, and put it into host memory of as many bytes.");

static PyObject *
copy_end(Copy *self, PyObject *memory)
{
    Py_buffer target;
    if (PyObject_GetBuffer(memory, &target, PyBUF_WRITABLE) < 0)
        return NULL;
    Fetcher *fetcher = self->fetcher;
    if (fetcher == NULL || (size_t)target.len != self->fetch.nbytes) {
        PyErr_SetString(PyExc_ValueError, fetcher == NULL ? "the copy is over" : "the copy has another size");
        PyBuffer_Release(&target);
        return NULL;
    }
    self->fetcher = NULL;
    int error = fetch_waited(fetcher, &self->fetch);
    if (error)
        raise_failure(fetcher, self->fetch.stream, error);
    else
        memcpy(target.buf, self->fetch.room.address, self->fetch.nbytes);
    fetch_over(fetcher, &self->fetch, error);
    PyBuffer_Release(&target);
    Py_DECREF(fetcher);
    if (error)
        return NULL;
    Py_RETURN_NONE;
}

/* Of a copy that nobody wants any more: until it is over, its room is nobody else's. */
static void
copy_dealloc(Copy *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (self->fetcher != NULL) {
        fetch_over(self->fetcher, &self->fetch, fetch_given_up(self->fetcher, &self->fetch));
        Py_DECREF(self->fetcher);
    }
    PyObject_Free(self);
    Py_DECREF(type);
}

static int
fetcher_visit(Fetcher *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->stream);
    Py_VISIT(self->alloc);
    Py_VISIT(self->failed);
    return 0;
}

static int
fetcher_clear(Fetcher *self)
{
    Py_CLEAR(self->stream);
    Py_CLEAR(self->alloc);
    Py_CLEAR(self->failed);
    while (self->count > 0)
        Py_DECREF(self->rooms[--self->count].memory);
    return 0;
}

static void
fetcher_dealloc(Fetcher *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    fetcher_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *
fetcher_made(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    unsigned long long copy, wait;
    PyObject *stream, *alloc, *failed;
    Py_ssize_t most;
    static char *names[] = {"copy", "wait", "stream", "alloc", "failed", "most", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "KKOOOn", names, &copy, &wait, &stream, &alloc, &failed, &most))
        return NULL;
    if (!copy || !wait || most < 1) {
        PyErr_SetString(PyExc_ValueError, "addresses and sizes are greater than 0");
        return NULL;
    }
    Fetcher *self = (Fetcher *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->copy = (copier)(uintptr_t)copy;
    self->wait = (waiter)(uintptr_t)wait;
    self->stream = Py_NewRef(stream);
    self->alloc = Py_NewRef(alloc);
    self->failed = Py_NewRef(failed);
    self->most = most;
    return (PyObject *)self;
}

PyDoc_STRVAR(close_doc, "close()\n--\n\nCall the driver no more: in a forked child. What is page-locked is the parent's.");

static PyObject *
fetcher_close(Fetcher *self, PyObject *Py_UNUSED(ignored))
{
    self->closed = 1;
    self->count = 0;        /* their memory can't be given back here */
    Py_RETURN_NONE;
}

PyDoc_STRVAR(fetcher_doc, "Fetcher(copy, wait, stream, alloc, failed, most)\n--\n\n"
"Copies of small device arrays to page-locked memory, and from there to where they are wanted.\n\n"
"Parameters\n----------\n"
"copy, wait : int\n    Addresses of cuMemcpyDtoHAsync and cuStreamSynchronize.\n"
"stream : callable\n    Gives the current stream.\n"
"alloc : callable\n    Gives page-locked memory of so many bytes, at its `ptr`.\n"
"failed : callable\n    Is called with a stream and an error of the driver's, and raises.\n"
"most : int\n    Bytes of an array.");

static PyMethodDef fetcher_methods[] = {
    {"begin", (PyCFunction)fetcher_begin, METH_O, begin_doc},
    {"close", (PyCFunction)fetcher_close, METH_NOARGS, close_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot fetcher_slots[] = {
    {Py_tp_doc, (void *)fetcher_doc}, {Py_tp_new, fetcher_made}, {Py_tp_dealloc, fetcher_dealloc},
    {Py_tp_traverse, fetcher_visit}, {Py_tp_clear, fetcher_clear}, {Py_tp_methods, fetcher_methods}, {0, NULL},
};

static PyType_Spec fetcher_spec = {
    "lazyarray._native.small_copies.Fetcher", sizeof(Fetcher), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, fetcher_slots,
};

static PyMethodDef copy_methods[] = {
    {"end", (PyCFunction)copy_end, METH_O, end_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot copy_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("A copy under way.")}, {Py_tp_dealloc, copy_dealloc}, {Py_tp_methods, copy_methods},
    {0, NULL},
};

static PyType_Spec copy_spec = {
    "lazyarray._native.small_copies.Copy", sizeof(Copy), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, copy_slots,
};

PyDoc_STRVAR(fill_unwritten_doc, "fill_unwritten(memory, copy, source, wanted, written, itemsize, phase, /)\n--\n\n"
"Copy `source` to `memory`, and to `copy`, which is what `memory` was, where `wanted` is not 0; see `Snapshot.fill`.\n\n"
"All are as many bytes. Elements of `itemsize` bytes, from `phase` on, that have been written since are left as they are,\n"
"are taken into `copy`, and are marked in `written`. No thread that holds the interpreter's lock runs between the look and\n"
"the change; others may, so that only what is new in `source` is written.");

#define MANY_BYTES 4096

/* Write to `to`, and to `was`, the words of `from` that are not those of `was`: whether `to` was that until then. */
static int
fill_words(char *to, char *was, const char *from, Py_ssize_t size)
{
    const Py_ssize_t whole = size - size % (Py_ssize_t)sizeof(uint64_t);
    uint64_t before, after, now;
    for (Py_ssize_t i = 0; i < whole; i += (Py_ssize_t)sizeof before) {
        memcpy(&before, was + i, sizeof before);
        memcpy(&after, from + i, sizeof after);
        if (before == after)
            continue;
        memcpy(&now, to + i, sizeof now);
        if (now != before)
            return 0;
        memcpy(to + i, &after, sizeof after);
        memcpy(was + i, &after, sizeof after);
    }
    for (Py_ssize_t i = whole; i < size; i++)
        if (from[i] != was[i]) {
            if (to[i] != was[i])
                return 0;
            to[i] = was[i] = from[i];
        }
    return 1;
}

static PyObject *
fill_unwritten(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer memory, copy, source, wanted, written;
    Py_ssize_t itemsize, phase;
    if (!PyArg_ParseTuple(args, "w*w*y*y*w*nn", &memory, &copy, &source, &wanted, &written, &itemsize, &phase))
        return NULL;
    Py_ssize_t size = memory.len;
    int fits = copy.len == size && source.len == size && wanted.len == size && written.len == size && itemsize > 0
        && phase >= 0 && phase < itemsize;
    char *to = memory.buf, *was = copy.buf, *marks = written.buf;
    const char *from = source.buf, *asked = wanted.buf;
    for (Py_ssize_t start = phase > 0 ? phase - itemsize : 0; fits && start < size;) {
        /* Most often nobody has written: then many elements are looked at, and copied, at once. */
        Py_ssize_t many = itemsize < MANY_BYTES ? MANY_BYTES - MANY_BYTES % itemsize : itemsize;
        if (start >= 0 && start + many <= size && memchr(asked + start, 0, (size_t)many) == NULL
                && memcmp(to + start, was + start, (size_t)many) == 0
                && (memcmp(from + start, was + start, (size_t)many) == 0
                    || fill_words(to + start, was + start, from + start, many))) {
            start += many;
            continue;
        }
        Py_ssize_t stop = start + many;
        for (; start < stop && start < size; start += itemsize) {
            Py_ssize_t low = start < 0 ? 0 : start, high = start + itemsize < size ? start + itemsize : size;
            size_t length = (size_t)(high - low);
            if (memchr(asked + low, 1, length) == NULL)
                continue;
            if (memcmp(to + low, was + low, length) == 0) {
                for (Py_ssize_t i = low; i < high; i++)
                    if (asked[i] && from[i] != was[i])
                        to[i] = was[i] = from[i];
            }
            else {
                memcpy(was + low, to + low, length);
                memset(marks + low, 1, length);
            }
        }
    }
    PyBuffer_Release(&memory);
    PyBuffer_Release(&copy);
    PyBuffer_Release(&source);
    PyBuffer_Release(&wanted);
    PyBuffer_Release(&written);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "memory of one size, and elements in it, are needed");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"fill_unwritten", fill_unwritten, METH_VARARGS, fill_unwritten_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "lazyarray._native.small_copies", PyDoc_STR("Small copies to the host, in C."), -1, methods, NULL,
    NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit_small_copies(void)
{
    text_data = PyUnicode_InternFromString("data");
    text_ptr = PyUnicode_InternFromString("ptr");
    text_nbytes = PyUnicode_InternFromString("nbytes");
    if (text_data == NULL || text_ptr == NULL || text_nbytes == NULL)
        return NULL;
    PyObject *fetcher_type = PyType_FromSpec(&fetcher_spec);
    copy_type = (PyTypeObject *)PyType_FromSpec(&copy_spec);
    PyObject *module = fetcher_type == NULL || copy_type == NULL ? NULL : PyModule_Create(&definition);
    if (module != NULL && (PyModule_AddObjectRef(module, "Fetcher", fetcher_type) < 0
                           || PyModule_AddIntConstant(module, "INTERFACE", 59) < 0))
        Py_CLEAR(module);
    Py_XDECREF(fetcher_type);
    return module;
}
