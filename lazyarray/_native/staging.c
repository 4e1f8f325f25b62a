/* Copies in C and without the interpreter: uploads of pageable memory, by several threads (`staged_upload.py` says what
   they do, `_native/staging_moving.h` how they move it), and of written pages (`_native/staging_written.h`); and copies to memory
   that is locked meanwhile (`_native/staging_filling.h`).

CUDA is not needed to compile this: the driver's functions are called through their addresses.
*/
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <string.h>

#include "staging_moving.h"

#define MOST 64     /* threads */

typedef int (*copier)(uint64_t, const void *, size_t, void *);
typedef int (*recorder)(void *, void *);
typedef int (*waiter)(void *);
typedef int (*asker)(void **);
typedef int (*chooser)(void *);

/* What the threads of a crew share; `share` does a share of it, with the CUDA context that its thread has by now. */
typedef struct Work {
    void (*share)(struct Work *, void **context);
} Work;

/* An upload. Part `i` goes through the buffer `i % buffers`. */
typedef struct {
    Work work;
    copier copy;
    recorder record;
    waiter wait;
    chooser use;
    void *context, *stream;
    const char *start;
    uint64_t target;
    const int64_t *ends;        /* of the parts: the start and the stop of each */
    int64_t parts, taken;
    int64_t issued;             /* copies of that many parts are under way, or over */
    char *moved;                /* of each part: whether its buffer has it */
    const uint64_t *places;     /* of the buffers: the address and the event of each */
    int64_t buffers;
    int error;
} Upload;

/* Who waits for work wakes up without a lock: one after the other, eight threads would take as long as 30 MiB. */
typedef struct {
    PyObject_HEAD
    sem_t begun;        /* posted once for each thread that may take part */
    int busy, closed;
    int places;         /* for more threads, while there is work */
    int inside;         /* threads that look for a place or have one */
    Work *work;
} Crew;

#define GET(variable) __atomic_load_n(&(variable), __ATOMIC_SEQ_CST)
#define SET(variable, value) __atomic_store_n(&(variable), value, __ATOMIC_SEQ_CST)

static void *
buffer_of(const Upload *upload, int64_t part)
{
    return (void *)(uintptr_t)upload->places[2 * (part % upload->buffers)];
}

static void *
event_of(const Upload *upload, int64_t part)
{
    return (void *)(uintptr_t)upload->places[2 * (part % upload->buffers) + 1];
}

/* Move a part that the calling thread has taken. Its buffer is free, but for a copy that may be under way. */
static void
move(Upload *upload, int64_t part)
{
    int error = upload->wait(event_of(upload, part));
    if (error) {
        SET(upload->error, error);
        return;
    }
    int64_t low = upload->ends[2 * part], high = upload->ends[2 * part + 1];
    move_out(buffer_of(upload, part), upload->start + low, (size_t)(high - low));
    SET(upload->moved[part], 1);
}

/* Move parts as long as there are any. */
static void
help(Upload *upload)
{
    for (;;) {
        int64_t part = __atomic_fetch_add(&upload->taken, 1, __ATOMIC_SEQ_CST);
        if (part >= upload->parts)
            return;
        while (part - GET(upload->issued) >= upload->buffers && !GET(upload->error))
            sched_yield();      /* the part before in this buffer is not yet issued */
        if (GET(upload->error))
            return;
        move(upload, part);
    }
}

static void
share_upload(Work *work, void **context)
{
    Upload *upload = (Upload *)work;
    if (*context != upload->context && upload->use(upload->context) == 0)
        *context = upload->context;
    if (*context == upload->context)    /* else the others do it */
        help(upload);
}

/* Issue the copies, each when its part has been moved, all from this thread: the driver lets one at a time in, and those
   that wait for it wait for long. A part that nobody has taken yet is moved here. */
static void
issue(Upload *upload)
{
    for (int64_t part = 0; part < upload->parts; part++) {
        while (!GET(upload->moved[part])) {
            if (GET(upload->error))
                return;
            int64_t next = part;
            if (__atomic_compare_exchange_n(&upload->taken, &next, part + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
                move(upload, part);
            else
                sched_yield();
        }
        int64_t low = upload->ends[2 * part], high = upload->ends[2 * part + 1];
        int error = upload->copy(upload->target + (uint64_t)low, buffer_of(upload, part), (size_t)(high - low),
                                 upload->stream);
        if (!error)
            error = upload->record(event_of(upload, part), upload->stream);
        if (error) {
            SET(upload->error, error);
            return;
        }
        SET(upload->issued, part + 1);
    }
}

/* Let so many others share work, until `end_together`, if they have no other. */
static int
begin_together(Crew *self, Work *work, int others)
{
    if (__atomic_exchange_n(&self->busy, 1, __ATOMIC_SEQ_CST))
        return 0;
    self->work = work;
    SET(self->places, others);
    for (int i = 0; i < others; i++)
        sem_post(&self->begun);
    return 1;
}

/* On return nobody is at the work any more. */
static void
end_together(Crew *self)
{
    SET(self->places, 0);       /* who wakes up now comes too late */
    while (GET(self->inside))
        sched_yield();
    SET(self->busy, 0);
}

PyDoc_STRVAR(serve_doc, "serve()\n--\n\nTake a share in each work, until `close`: what a thread of the crew does.");

static PyObject *
serve(Crew *self, PyObject *Py_UNUSED(ignored))
{
    Py_BEGIN_ALLOW_THREADS
    void *context = NULL;
    for (;;) {
        while (sem_wait(&self->begun) != 0)     /* a signal came */
            ;
        if (__atomic_load_n(&self->closed, __ATOMIC_SEQ_CST))
            break;
        /* Inside before it looks: whoever takes the places away waits until nobody is. */
        __atomic_fetch_add(&self->inside, 1, __ATOMIC_SEQ_CST);
        if (__atomic_fetch_sub(&self->places, 1, __ATOMIC_SEQ_CST) > 0)
            self->work->share(self->work, &context);
        __atomic_fetch_sub(&self->inside, 1, __ATOMIC_SEQ_CST);
    }
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

PyDoc_STRVAR(send_doc,
"send(functions, parts, buffers, threads, target, start, stream, /)\n--\n\n"
"Move parts of memory to page-locked buffers, and have each copied to the device, here and by who serves.\n\n"
"On return all parts have been moved; the interpreter is free meanwhile.\n\n"
"Parameters\n----------\n"
"functions : tuple of int\n    Addresses of cuMemcpyHtoDAsync, cuEventRecord, cuEventSynchronize, cuCtxGetCurrent and\n"
"    cuCtxSetCurrent.\n"
"parts : buffer of int64\n    The start and the stop of each, from 0 on.\n"
"buffers : buffer of uint64\n    The address of each, and the event that says when the device has read it.\n"
"threads : int\n    That take part at most, this one among them.\n"
"target, start, stream : int\n    The device address, the host address, and the stream.\n\n"
"Returns\n-------\nint\n    0, or the driver's error; then parts are missing.");

static PyObject *
send(Crew *self, PyObject *args)
{
    unsigned long long copy, record, wait, get, use, target, start, stream;
    long long threads;
    Py_buffer parts, buffers;
    if (!PyArg_ParseTuple(args, "(KKKKK)y*y*LKKK", &copy, &record, &wait, &get, &use, &parts, &buffers, &threads,
                          &target, &start, &stream))
        return NULL;
    PyObject *result = NULL;
    char *moved = NULL;
    if (parts.len % 16 || buffers.len % 16 || buffers.len == 0 || threads < 1 || threads > MOST || !copy || !record
            || !wait || !get || !use) {
        PyErr_SetString(PyExc_ValueError, "pairs of numbers, buffers, threads and addresses are needed");
        goto end;
    }
    if ((moved = PyMem_RawCalloc((size_t)(parts.len / 16) + 1, 1)) == NULL) {
        PyErr_NoMemory();
        goto end;
    }
    Upload upload = {
        {share_upload}, (copier)(uintptr_t)copy, (recorder)(uintptr_t)record, (waiter)(uintptr_t)wait, (chooser)(uintptr_t)use, NULL,
        (void *)(uintptr_t)stream, (const char *)(uintptr_t)start, target, parts.buf, parts.len / 16, 0, 0, moved,
        buffers.buf, buffers.len / 16, 0};
    Py_BEGIN_ALLOW_THREADS
    upload.error = ((asker)(uintptr_t)get)(&upload.context);
    if (!upload.error) {
        int begun = begin_together(self, &upload.work, (int)(upload.parts < threads ? upload.parts : threads) - 1);
        issue(&upload);     /* alone, if the others are at other work */
        if (begun)
            end_together(self);
    }
    Py_END_ALLOW_THREADS
    result = PyLong_FromLong(upload.error);
end:
    PyMem_RawFree(moved);
    PyBuffer_Release(&parts);
    PyBuffer_Release(&buffers);
    return result;
}

#include "staging_filling.h"
#include "staging_written.h"

PyDoc_STRVAR(close_doc, "close()\n--\n\nLet go of who serves.");

static PyObject *
close_crew(Crew *self, PyObject *Py_UNUSED(ignored))
{
    __atomic_store_n(&self->closed, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < MOST; i++)
        sem_post(&self->begun);
    Py_RETURN_NONE;
}

static PyObject *
made(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    if (PyTuple_GET_SIZE(args) || (kwargs != NULL && PyDict_GET_SIZE(kwargs))) {
        PyErr_SetString(PyExc_TypeError, "a crew is made of nothing");
        return NULL;
    }
    Crew *self = (Crew *)type->tp_alloc(type, 0);
    if (self != NULL && sem_init(&self->begun, 0, 0) != 0) {
        PyErr_SetFromErrno(PyExc_OSError);
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static void
dealloc(Crew *self)     /* whoever serves has a reference */
{
    PyTypeObject *type = Py_TYPE(self);
    sem_destroy(&self->begun);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef crew_methods[] = {
    {"serve", (PyCFunction)serve, METH_NOARGS, serve_doc},
    {"send", (PyCFunction)send, METH_VARARGS, send_doc},
    {"fill", (PyCFunction)fill, METH_VARARGS, fill_doc},
    {"close", (PyCFunction)close_crew, METH_NOARGS, close_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("Crew()\n--\n\nThreads that upload: those that call `serve`, and who calls `send`.")},
    {Py_tp_new, made}, {Py_tp_dealloc, dealloc}, {Py_tp_methods, crew_methods}, {0, NULL},
};

static PyType_Spec spec = {"lazyarray._native.staging.Crew", sizeof(Crew), 0, Py_TPFLAGS_DEFAULT, slots};

static PyMethodDef functions[] = {
    {"copy_written", copy_written, METH_VARARGS, copy_written_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "lazyarray._native.staging", PyDoc_STR("Uploads, in C."), -1, functions, NULL, NULL, NULL,
    NULL,
};

PyMODINIT_FUNC
PyInit_staging(void)
{
    PyObject *module = PyModule_Create(&definition), *type = PyType_FromSpec(&spec);
    look_at_processor();
    if (module == NULL || type == NULL || PyModule_AddObjectRef(module, "Crew", type) < 0
            || PyModule_AddIntConstant(module, "INTERFACE", 59) < 0)
        Py_CLEAR(module);
    Py_XDECREF(type);
    return module;
}
