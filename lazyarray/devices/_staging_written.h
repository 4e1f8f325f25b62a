/* Pages that foreign code wrote go to the device as they are found: what `sending` says, in one call.

Python's part between two looks, and before the first copy, takes as long as the link takes for megabytes.
*/
#include <errno.h>
#include <structmember.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PAGEMAP_SCAN 0xC0606610UL       /* see Documentation/admin-guide/mm/pagemap.rst */
#define WP_MATCHING 1
#define CHECK_WPASYNC 2
#define PAGE_IS_WRITTEN 2
#define ROWS 256

typedef struct { uint64_t start, end, categories; } Row;

typedef struct {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages, category_inverted, category_mask,
        category_anyof_mask, return_mask;
} Scan;

/* Byte ranges, as pairs of numbers. */
typedef struct { int64_t *pairs; Py_ssize_t count, room; } Pairs;

static int
add_pair(Pairs *to, int64_t low, int64_t high)
{
    if (to->count && to->pairs[2 * to->count - 1] == low) {
        to->pairs[2 * to->count - 1] = high;
        return 0;
    }
    if (to->count == to->room) {
        Py_ssize_t room = to->room ? 2 * to->room : 64;
        int64_t *larger = PyMem_RawRealloc(to->pairs, (size_t)room * 2 * sizeof(int64_t));
        if (larger == NULL)
            return -1;
        to->pairs = larger;
        to->room = room;
    }
    to->pairs[2 * to->count] = low;
    to->pairs[2 * to->count + 1] = high;
    to->count++;
    return 0;
}

static PyObject *
bytes_of(const Pairs *pairs)
{
    return PyBytes_FromStringAndSize((const char *)pairs->pairs, pairs->count * (Py_ssize_t)(2 * sizeof(int64_t)));
}

typedef struct {
    copier copy;
    void *stream;
    uint64_t start, target;     /* addresses of the host's memory, and of the device's */
    int64_t nbytes, piece, small;
    int descriptor;
    Pairs found, left;          /* all that was written; what of it was not sent */
    int issued, error, refused;
} Written;

/* Send a range, part by part: no copy may go from one locked piece to the next. */
static void
send_range(Written *work, int64_t low, int64_t high)
{
    while (low < high && !work->error) {
        int64_t end = (low / work->piece + 1) * work->piece, stop = end < high ? end : high;
        work->error = work->copy(work->target + (uint64_t)low, (void *)(uintptr_t)(work->start + (uint64_t)low),
                                 (size_t)(stop - low), work->stream);
        work->issued = 1;
        low = stop;
    }
}

/* Look at a part, which arms it again, and send what was written there; the bytes that were, or -1. */
static int64_t
send_turn(Written *work, int64_t low, int64_t high)
{
    Row rows[ROWS];
    int64_t sum = 0;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t at = work->start + (uint64_t)low, stop = (work->start + (uint64_t)high + page - 1) / page * page;
    while (at < stop) {
        Scan scan = {sizeof(Scan), WP_MATCHING | CHECK_WPASYNC, at, stop, 0, (uint64_t)(uintptr_t)rows, ROWS, 0, 0,
                     PAGE_IS_WRITTEN, 0, PAGE_IS_WRITTEN};
        int count = ioctl(work->descriptor, PAGEMAP_SCAN, &scan);
        if (count < 0) {
            work->refused = errno;
            return -1;
        }
        for (int i = 0; i < count; i++) {
            int64_t first = (int64_t)(rows[i].start - work->start), last = (int64_t)(rows[i].end - work->start);
            if (last > work->nbytes)
                last = work->nbytes;
            sum += last - first;
            int small = last - first <= work->small;
            if (add_pair(&work->found, first, last) < 0 || (small && add_pair(&work->left, first, last) < 0)) {
                work->refused = ENOMEM;
                return -1;
            }
            if (!small)
                send_range(work, first, last);
        }
        at = scan.walk_end;
    }
    return sum;
}

/* -- for Python ------------------------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    Written work;               /* as it begins */
    waiter finish;
    asker get;
    void *context;
    int64_t first, growth, most, leap;      /* of the turns */
    pid_t process;
    PyObject *failed, *current;
} Sender;

/* Look, arm, and send, turn by turn; wait for it if nothing is left. */
static void
send_all(const Sender *self, Written *work)
{
    int64_t low = 0, size = self->first;
    while (low < work->nbytes && !work->error) {
        int64_t high = size < work->nbytes - low ? low + size : work->nbytes;
        int64_t sum = send_turn(work, low, high);
        if (sum < 0)
            break;
        low = high;
        if (sum < self->first)
            size *= self->leap;
        else
            size = low < self->most / self->growth ? low * self->growth : self->most;
    }
    if (work->issued && (work->error || work->refused || !work->left.count)) {
        int error = self->finish(work->stream);
        if (!work->error)
            work->error = error;
    }
}

/* Raise what an error of the driver's is in Python. */
static void
raise_error(const Sender *self, int code)
{
    PyObject *error = PyObject_CallFunction(self->failed, "i", code);
    if (error != NULL && PyExceptionInstance_Check(error))
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    else if (error != NULL)
        PyErr_Format(PyExc_RuntimeError, "error %d of the driver", code);
    Py_XDECREF(error);
}

static PyObject *
call_sender(Sender *self, PyObject *args, PyObject *kwargs)
{
    PyObject *outcome;
    void *context = NULL;
    if (kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "a sender takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O!", &PyList_Type, &outcome))
        return NULL;
    if (self->failed == NULL || getpid() != self->process || self->get(&context) != 0 || context != self->context)
        Py_RETURN_FALSE;
    Written work = self->work;
    Py_BEGIN_ALLOW_THREADS
    send_all(self, &work);
    Py_END_ALLOW_THREADS
    PyObject *told = Py_BuildValue("iiNN", work.error, work.refused, bytes_of(&work.found), bytes_of(&work.left));
    int failed = told == NULL || PyList_Append(outcome, told) < 0;
    Py_XDECREF(told);
    PyMem_RawFree(work.found.pairs);
    PyMem_RawFree(work.left.pairs);
    if (!failed && work.error)
        raise_error(self, work.error);
    if (failed || work.error)
        return NULL;
    Py_RETURN_TRUE;
}

PyDoc_STRVAR(sender_doc,
"Sender(functions, failed, current, pages, target, stream, sizes, turns)\n--\n\n"
"Has what was written in page-locked memory copied to the device, each part as it is found and armed again: when it is\n"
"called, with a list, as `lazyarray.devices.base.Sender` says, in the process and CUDA context that it was made in.\n\n"
"The interpreter is free meanwhile. What was sent has arrived on return, unless something is left.\n\n"
"Parameters\n----------\n"
"functions : tuple of int\n    Addresses of cuMemcpyHtoDAsync, cuStreamSynchronize and cuCtxGetCurrent.\n"
"failed, current : callable\n    Gives the exception for an error of the driver's; gives the current stream (a member).\n"
"pages : tuple of int\n    The descriptor to ask for written pages, the address of the first one, and bytes.\n"
"target, stream : int\n    The device address, and the stream.\n"
"sizes : tuple of int\n    Memory is locked in pieces of so many bytes; ranges of up to so many are not sent.\n"
"turns : tuple of int\n    Bytes of the first turn; how many times as large each is as all before, at most how large,\n"
"    and how many times as large as the one before where fewer bytes than in the first were written in that.");

static PyObject *
make_sender(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    unsigned long long copy, finish, get, start, target, stream;
    long long nbytes, piece, small, first, growth, most, leap;
    int descriptor;
    PyObject *failed, *current;
    static char *names[] = {"functions", "failed", "current", "pages", "target", "stream", "sizes", "turns", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "(KKK)OO(iKL)KK(LL)(LLLL)", names, &copy, &finish, &get, &failed,
                                     &current, &descriptor, &start, &nbytes, &target, &stream, &piece, &small, &first,
                                     &growth, &most, &leap))
        return NULL;
    if (!copy || !finish || !get || nbytes < 0 || piece <= 0 || first <= 0 || growth <= 0 || most <= 0 || leap <= 0) {
        PyErr_SetString(PyExc_ValueError, "addresses of functions, and numbers above 0, are needed");
        return NULL;
    }
    Sender *self = (Sender *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->work = (Written){(copier)(uintptr_t)copy, (void *)(uintptr_t)stream, start, target, nbytes, piece, small,
                           descriptor, {NULL, 0, 0}, {NULL, 0, 0}, 0, 0, 0};
    self->finish = (waiter)(uintptr_t)finish;
    self->get = (asker)(uintptr_t)get;
    self->first = first;
    self->growth = growth;
    self->most = most;
    self->leap = leap;
    self->process = getpid();
    self->failed = Py_NewRef(failed);
    self->current = Py_NewRef(current);
    int error = self->get(&self->context);
    if (error) {
        raise_error(self, error);
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static int
visit_sender(Sender *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->failed);
    Py_VISIT(self->current);
    return 0;
}

static int
clear_sender(Sender *self)
{
    Py_CLEAR(self->failed);
    Py_CLEAR(self->current);
    return 0;
}

static void
dealloc_sender(Sender *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear_sender(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef sender_members[] = {
    {"current", T_OBJECT_EX, offsetof(Sender, current), READONLY, PyDoc_STR("What gives the current stream.")},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot sender_slots[] = {
    {Py_tp_doc, (void *)sender_doc}, {Py_tp_new, make_sender}, {Py_tp_call, call_sender}, {Py_tp_dealloc, dealloc_sender},
    {Py_tp_traverse, visit_sender}, {Py_tp_clear, clear_sender}, {Py_tp_members, sender_members}, {0, NULL},
};

static PyType_Spec sender_spec = {
    "lazyarray.devices._staging.Sender", sizeof(Sender), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, sender_slots,
};
