/* Pages that foreign code wrote go to the device as they are found: what `dirty_upload` says, in one call.

Python's part between two looks, and before the first copy, takes as long as the link takes for megabytes.
*/
#include <errno.h>
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

/* Look, arm, and send, turn by turn; wait for it if nothing is left. */
static void
send_all(Written *work, waiter finish, const int64_t *turns)
{
    int64_t low = 0, first = turns[0], growth = turns[1], most = turns[2], leap = turns[3], size = first;
    while (low < work->nbytes && !work->error) {
        int64_t high = size < work->nbytes - low ? low + size : work->nbytes;
        int64_t sum = send_turn(work, low, high);
        if (sum < 0)
            break;
        low = high;
        if (sum < first)
            size *= leap;
        else
            size = low < most / growth ? low * growth : most;
    }
    if (work->issued && (work->error || work->refused || !work->left.count)) {
        int error = finish(work->stream);
        if (!work->error)
            work->error = error;
    }
}

/* Raise what an error of the driver's is in Python. */
static void
raise_error(PyObject *failed, int code)
{
    PyObject *error = PyObject_CallFunction(failed, "i", code);
    if (error != NULL && PyExceptionInstance_Check(error))
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    else if (error != NULL)
        PyErr_Format(PyExc_RuntimeError, "error %d of the driver", code);
    Py_XDECREF(error);
}

PyDoc_STRVAR(copy_written_doc,
"copy_written(functions, failed, pages, target, stream, sizes, turns, outcome, /)\n--\n\n"
"Copy what was written in page-locked memory to the device, each part as it is found and armed again.\n\n"
"The interpreter is free meanwhile. What was sent has arrived on return, unless something is left.\n\n"
"Parameters\n----------\n"
"functions : tuple of int\n    Addresses of cuMemcpyHtoDAsync and cuStreamSynchronize.\n"
"failed : callable\n    Gives the exception for an error of the driver's.\n"
"pages : tuple of int\n    The descriptor to ask for written pages, the address of the first one, and bytes.\n"
"target, stream : int\n    The device address, and the stream.\n"
"sizes : tuple of int\n    Memory is locked in pieces of so many bytes; ranges of up to so many are not sent.\n"
"turns : tuple of int\n    Bytes of the first turn; how many times as large each is as all before, at most how large,\n"
"    and how many times as large as the one before where fewer bytes than in the first were written in that.\n"
"outcome : list\n    Gets a tuple, as `lazyarray.devices.Device.copy_written` says.");

static PyObject *
copy_written(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long copy, finish, start, target, stream;
    long long nbytes, piece, small, turns[4];
    int descriptor;
    PyObject *failed, *outcome;
    if (!PyArg_ParseTuple(args, "(KK)O(iKL)KK(LL)(LLLL)O!", &copy, &finish, &failed, &descriptor, &start, &nbytes, &target,
                          &stream, &piece, &small, turns, turns + 1, turns + 2, turns + 3, &PyList_Type, &outcome))
        return NULL;
    if (!copy || !finish || nbytes < 0 || piece <= 0 || turns[0] <= 0 || turns[1] <= 0 || turns[2] <= 0 || turns[3] <= 0) {
        PyErr_SetString(PyExc_ValueError, "addresses of functions, and numbers above 0, are needed");
        return NULL;
    }
    const int64_t sizes[] = {turns[0], turns[1], turns[2], turns[3]};
    Written work = {(copier)(uintptr_t)copy, (void *)(uintptr_t)stream, start, target, nbytes, piece, small, descriptor,
                    {NULL, 0, 0}, {NULL, 0, 0}, 0, 0, 0};
    Py_BEGIN_ALLOW_THREADS
    send_all(&work, (waiter)(uintptr_t)finish, sizes);
    Py_END_ALLOW_THREADS
    PyObject *told = Py_BuildValue("iiNN", work.error, work.refused, bytes_of(&work.found), bytes_of(&work.left));
    int lost = told == NULL || PyList_Append(outcome, told) < 0;
    Py_XDECREF(told);
    PyMem_RawFree(work.found.pairs);
    PyMem_RawFree(work.left.pairs);
    if (!lost && work.error)
        raise_error(failed, work.error);
    if (lost || work.error)
        return NULL;
    Py_RETURN_NONE;
}
