/* Copies into memory that is locked piece by piece as it is filled: what `pinned_download.py` says, in one call.

While the driver locks a piece and the device fills those before, the threads of the crew have the kernel clear the next.
*/
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23      /* Linux 5.14 */
#endif
#define PORTABLE 1                  /* CU_MEMHOSTREGISTER_PORTABLE: locked for every GPU */

typedef int (*fetcher)(void *, uint64_t, size_t, void *);
typedef int (*locker)(void *, size_t, unsigned);

/* Of each part, before and afterwards. */
enum { IS_LOCKED, TO_LOCK, NOW_LOCKED, REFUSED, LEFT };

/* A range of memory whose pages are to be there. */
typedef struct { uint64_t start, stop; } Chunk;

typedef struct {
    Work work;
    const Chunk *chunks;
    char *cleared;
    int64_t count, taken;
} Clearing;

/* Have the kernel give the pages of a chunk; their contents are kept. Where it can't, they come as they are locked. */
static void
clear_chunk(Clearing *clearing, int64_t i)
{
    const Chunk *chunk = clearing->chunks + i;
    (void)madvise((void *)(uintptr_t)chunk->start, (size_t)(chunk->stop - chunk->start), MADV_POPULATE_WRITE);
    SET(clearing->cleared[i], 1);
}

static void
share_clearing(Work *work, void **Py_UNUSED(context))
{
    Clearing *clearing = (Clearing *)work;
    for (;;) {
        int64_t i = __atomic_fetch_add(&clearing->taken, 1, __ATOMIC_SEQ_CST);
        if (i >= clearing->count)
            return;
        clear_chunk(clearing, i);
    }
}

/* The chunks up to this one are cleared on return; one that nobody has taken yet is cleared here. */
static void
await_cleared(Clearing *clearing, int64_t *done, int64_t upto)
{
    for (; *done < upto; ++*done)
        while (!GET(clearing->cleared[*done])) {
            int64_t next = *done;
            if (__atomic_compare_exchange_n(&clearing->taken, &next, next + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
                clear_chunk(clearing, *done);
            else
                sched_yield();
        }
}

typedef struct {
    fetcher copy;
    locker lock;
    void *stream;
    uint64_t source, start, stop;   /* device address; host addresses */
    uint64_t region, end, piece;    /* host addresses of the region, which is locked in pieces of so many bytes */
    unsigned char *states;
} Filling;

/* The part that begins at `low`: where it ends, and the piece around it. */
static uint64_t
part_at(const Filling *f, uint64_t low, Chunk *piece)
{
    piece->start = low - (low - f->region) % f->piece;
    piece->stop = f->end - piece->start < f->piece ? f->end : piece->start + f->piece;
    return piece->stop < f->stop ? piece->stop : f->stop;
}

/* The chunks of the pieces that are to be locked. The memory is given away; -1: there is none. */
static int64_t
chunks_of(const Filling *f, uint64_t size, Chunk **found)
{
    int64_t count = 0, most = (int64_t)((f->end - f->region) / size) + (int64_t)((f->end - f->region) / f->piece) + 2;
    Chunk *chunks = PyMem_RawMalloc((size_t)most * sizeof(Chunk)), piece;
    if ((*found = chunks) == NULL)
        return -1;
    int64_t i = 0;
    for (uint64_t low = f->start, high; low < f->stop; low = high, i++) {
        high = part_at(f, low, &piece);
        for (uint64_t at = piece.start; f->states[i] == TO_LOCK && at < piece.stop; at += size)
            chunks[count++] = (Chunk){at, piece.stop - at < size ? piece.stop : at + size};
    }
    return count;
}

/* Lock and copy part by part; the driver's error of a copy, or 0. */
static int
fill_parts(Filling *f, Clearing *clearing)
{
    Chunk piece;
    int64_t i = 0, done = 0;
    for (uint64_t low = f->start, high; low < f->stop; low = high, i++) {
        high = part_at(f, low, &piece);
        if (f->states[i] == TO_LOCK) {
            int64_t upto = done;
            while (upto < clearing->count && clearing->chunks[upto].start < piece.stop)
                upto++;
            await_cleared(clearing, &done, upto);
            f->states[i] = f->lock((void *)(uintptr_t)piece.start, (size_t)(piece.stop - piece.start), PORTABLE)
                               ? REFUSED : NOW_LOCKED;      /* the system's limit on locked memory, for one */
        }
        if (f->states[i] == IS_LOCKED || f->states[i] == NOW_LOCKED) {
            int error = f->copy((void *)(uintptr_t)low, f->source + (low - f->start), (size_t)(high - low), f->stream);
            if (error)
                return error;
        }
    }
    return 0;
}

PyDoc_STRVAR(fill_doc,
"fill(functions, source, target, stream, region, chunk, threads, states, /)\n--\n\n"
"Begin to copy from the device into a region that is locked in pieces, each as soon as it is.\n\n"
"Parameters\n----------\n"
"functions : tuple of int\n    Addresses of cuMemcpyDtoHAsync and cuMemHostRegister.\n"
"source : int\n    The device address.\n"
"target : tuple of int\n    The host addresses where the copy begins and ends.\n"
"stream : int\n"
"region : tuple of int\n    The addresses where the region begins and ends, and the bytes of its pieces.\n"
"chunk, threads : int\n    Bytes that a thread has cleared at once, and threads that do at most.\n"
"states : writable buffer of bytes\n    Of each piece that the copy reaches: 0 if it is locked, 1 if it is to be, which\n"
"    becomes 2, or 3 if the driver refuses; 4 if it is left out. Only what is locked is copied.\n\n"
"Returns\n-------\nint\n    0, or the driver's error.");

static PyObject *
fill(Crew *self, PyObject *args)
{
    unsigned long long copy, lock, source, start, stop, stream, region, end, piece, chunk;
    int threads;
    Py_buffer states;
    if (!PyArg_ParseTuple(args, "(KK)K(KK)K(KKK)Kiw*", &copy, &lock, &source, &start, &stop, &stream, &region, &end, &piece,
                          &chunk, &threads, &states))
        return NULL;
    Filling f = {(fetcher)(uintptr_t)copy, (locker)(uintptr_t)lock, (void *)(uintptr_t)stream, source, start, stop, region,
                 end, piece, states.buf};
    Clearing clearing = {{share_clearing}, NULL, NULL, 0, 0};
    Chunk *chunks = NULL;
    PyObject *result = NULL;
    if (!copy || !lock || !piece || !chunk || threads < 1 || threads > MOST || start < region || stop > end || start >= stop
            || (uint64_t)states.len != (stop - 1 - region) / piece - (start - region) / piece + 1) {
        PyErr_SetString(PyExc_ValueError, "functions, a part of a region and a state for each piece are needed");
        goto end;
    }
    int error, begun = 0;
    if (memchr(states.buf, TO_LOCK, (size_t)states.len) != NULL) {
        clearing.count = chunks_of(&f, chunk, &chunks);
        clearing.chunks = chunks;
        if (clearing.count < 0 || (clearing.cleared = PyMem_RawCalloc((size_t)clearing.count, 1)) == NULL) {
            PyErr_NoMemory();
            goto end;
        }
        begun = begin_together(self, &clearing.work, threads - 1);    /* alone, if the others are at other work */
    }
    Py_BEGIN_ALLOW_THREADS
    error = fill_parts(&f, &clearing);
    if (begun) {
        SET(clearing.taken, clearing.count);    /* after an error */
        end_together(self);
    }
    Py_END_ALLOW_THREADS
    result = PyLong_FromLong(error);
end:
    PyMem_RawFree(chunks);
    PyMem_RawFree(clearing.cleared);
    PyBuffer_Release(&states);
    return result;
}
