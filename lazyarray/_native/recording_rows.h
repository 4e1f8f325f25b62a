/* Rows that positions name, taken and written: ``x[i]`` and ``x[i, j] = value``, where the device has the array, and it is known how
far the positions reach. What is otherwise is for `dispatch/advanced_indexing.py`. */

/* Arrays of positions that an index has at most; and bytes of one that the host has, which is looked at at each use. */
#define MOST_ALONG 3
#define MOST_LOOKED_AT (64 << 10)

/* What a look at positions of the host has found, if there was one: how far they reach, the first of them, a number that tells them
from others, and whether they are a vector, and each is as far from the one before. */
typedef struct { int done, even; Reach reach; Py_ssize_t first; npy_uint64 mark; } Looked;

/* Where an index has its arrays, and whole numbers between and behind them, or one lazy scalar: along the axes from `axis` on of what
`part`, a basic index, leaves; NULL: of all. That has so many axes at least. */
typedef struct { PyObject *part; Py_ssize_t axis, least, count; PyObject *index[MOST_ALONG]; Looked looked[MOST_ALONG]; } Along;

/* The one lazy scalar on the device of an index that is nothing but this and whole numbers, a borrowed reference; NULL, perhaps
with an error: it is another index. */
static PyObject *
scalar_of_index(PyObject *index, Along *along)
{
    const Py_ssize_t count = PyTuple_CheckExact(index) ? PyTuple_GET_SIZE(index) : 1;
    PyObject *found = NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_CheckExact(index) ? PyTuple_GET_ITEM(index, i) : index;
        if (found == NULL && Py_TYPE(item) == types.LazyScalar && got(item, V.value) == Py_None)
            found = item;
        else if (!PyLong_CheckExact(item))
            return NULL;
    }
    if (found == NULL || count == 1)
        return found;
    if ((along->part = hidden(PyTuple_New(count))) == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_GET_ITEM(index, i), *one = item == found ? PySlice_New(NULL, NULL, NULL) : Py_NewRef(item);
        if (one == NULL)
            return NULL;
        PyTuple_SET_ITEM(along->part, i, one);
    }
    shown(along->part);
    return found;
}

static int
is_whole_slice(PyObject *item)
{
    const PySliceObject *slice = (PySliceObject *)item;
    return PySlice_Check(item) && slice->start == Py_None && slice->stop == Py_None && slice->step == Py_None;
}

/* The arrays of an index that is whole numbers, then slices that see all and these beside each other, with whole numbers between and
behind them; or the scalar of `scalar_of_index`. How many there are; 0: it is another index; -1: an error. */
static Py_ssize_t
find_along(PyObject *index, Along *along)
{
    *along = (Along){.least = 1};
    const int is_array = Py_TYPE(index) == types.LazyNdarray || PyArray_CheckExact(index);
    PyObject *one = is_array ? index : scalar_of_index(index, along);
    if (one != NULL) {
        along->index[along->count++] = one;
        return 1;
    }
    if (PyErr_Occurred() || !PyTuple_CheckExact(index))
        return -!!PyErr_Occurred();
    Py_ssize_t numbers = 0;
    while (numbers < PyTuple_GET_SIZE(index) && PyLong_CheckExact(PyTuple_GET_ITEM(index, numbers)))
        numbers++;
    along->least = PyTuple_GET_SIZE(index) - numbers;
    for (Py_ssize_t i = 0; i < along->least; i++) {
        PyObject *item = PyTuple_GET_ITEM(index, numbers + i);
        if ((Py_TYPE(item) == types.LazyNdarray || PyArray_CheckExact(item) || (PyLong_CheckExact(item) && along->count > 0))
                && along->count < MOST_ALONG) {
            if (along->count == 0)
                along->axis = i;
            /* Behind numbers and slices the axes of the arrays come first. */
            if (i != along->axis + along->count || (i > along->count && numbers > 0))
                return along->count = 0;
            along->index[along->count++] = item;
        }
        else if (!is_whole_slice(item))
            return along->count = 0;
    }
    if (along->count > 0 && numbers > 0 && (along->part = PyTuple_GetSlice(index, 0, numbers)) == NULL)
        return -1;
    return along->count;
}

/* A few positions on the host, a vector or in C order: borrowed; NULL, perhaps with an error: they are not there, or are none. */
static PyArrayObject *
few_on_host(PyObject *index)
{
    PyArrayObject *array = PyArray_CheckExact(index) ? (PyArrayObject *)index
        : Py_TYPE(index) == types.LazyNdarray ? (PyArrayObject *)on_host(index) : NULL;
    if (array == NULL)
        return NULL;
    const Py_ssize_t size = PyArray_ITEMSIZE(array);
    return (PyArray_NDIM(array) == 1 || (PyArray_NDIM(array) > 1 && PyArray_IS_C_CONTIGUOUS(array))) && PyArray_SIZE(array) > 0
        && PyArray_DESCR(array)->kind == 'i' && (size == 4 || size == 8) && PyArray_ISBEHAVED_RO(array)
        && PyArray_NBYTES(array) <= MOST_LOOKED_AT ? array : NULL;
}

/* The vector of positions that a list of whole numbers is: a new reference; the object itself if it is anything else. NULL: an error. */
static PyObject *
positions_in(PyObject *item)
{
    npy_intp count = PyList_CheckExact(item) ? PyList_GET_SIZE(item) : 0;
    PyObject *array = count < 1 || count > MOST_LOOKED_AT / (npy_intp)sizeof(npy_intp) ? NULL : PyArray_SimpleNew(1, &count, NPY_INTP);
    for (npy_intp i = 0; array != NULL && i < count; i++) {
        Py_ssize_t one = -1;
        if (i >= PyList_GET_SIZE(item) || !PyLong_CheckExact(PyList_GET_ITEM(item, i)) || size_of(PyList_GET_ITEM(item, i), &one) <= 0)
            Py_CLEAR(array);
        else
            ((npy_intp *)PyArray_DATA((PyArrayObject *)array))[i] = one;
    }
    return array != NULL ? array : PyErr_Occurred() ? NULL : Py_NewRef(item);
}

/* An index with what `becomes` gives, a new reference, in place of each of its items: a new reference; NULL: an error. */
static PyObject *
index_of(PyObject *index, PyObject *(*becomes)(PyObject *item))
{
    if (!PyTuple_CheckExact(index))
        return becomes(index);
    const Py_ssize_t count = PyTuple_GET_SIZE(index);
    PyObject *made = NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_GET_ITEM(index, i), *other = becomes(item);
        if (other != NULL && other != item && made == NULL && (made = hidden(PyTuple_New(count))) != NULL)
            for (Py_ssize_t k = 0; k < count; k++)
                PyTuple_SET_ITEM(made, k, Py_NewRef(PyTuple_GET_ITEM(index, k)));
        if (other == NULL || (other != item && made == NULL)) {
            Py_XDECREF(other);
            Py_XDECREF(made);
            return NULL;
        }
        if (made != NULL)
            Py_SETREF(((PyTupleObject *)made)->ob_item[i], other);
        else
            Py_DECREF(other);
    }
    return made == NULL ? Py_NewRef(index) : shown(made);
}

/* From the lowest to the highest position so many numbers are marked at most, to find out whether one comes twice. */
#define MOST_MARKED 65536

static npy_int64
number_at(const char *at, int wide)
{
    return wide ? *(const npy_int64 *)at : *(const npy_int32 *)at;
}

/* Whether no two of so many positions, all within a reach, are the same. */
static int
come_once(const char *at, Py_ssize_t count, Py_ssize_t step, int wide, const Reach *reach)
{
    unsigned char seen[MOST_MARKED / 8];
    const npy_int64 most = reach->high - reach->low;
    if (most >= MOST_MARKED)
        return 0;
    memset(seen, 0, most / 8 + 1);
    for (Py_ssize_t i = 0; i < count; i++, at += step) {
        const npy_int64 place = number_at(at, wide) - reach->low;
        /* Beyond where another thread has written it meanwhile, without the interpreter's lock. */
        if (place < 0 || place > most || seen[place / 8] >> place % 8 & 1)
            return 0;
        seen[place / 8] |= (unsigned char)(1 << place % 8);
    }
    return 1;
}

/* Look at so many positions, those of a vector or of an array in C order. */
static Looked
look_through(const char *at, Py_ssize_t count, Py_ssize_t step, int wide, int is_vector)
{
    const char *first = at;
    npy_int64 before = 0, distance = 0;
    int rises = 1;
    Looked found = {.done = 1, .even = is_vector};
    for (Py_ssize_t i = 0; i < count; i++, at += step) {
        const npy_int64 one = number_at(at, wide);
        const npy_int64 next = (npy_int64)((npy_uint64)one - (npy_uint64)before);
        /* A sum, so that no element waits for the one before. */
        const npy_uint64 mixed = ((npy_uint64)one ^ ((npy_uint64)i * 0x9e3779b97f4a7c15u)) * 0xff51afd7ed558ccdu;
        found.mark += mixed ^ mixed >> 32;
        if (i == 0)
            found.first = found.reach.low = found.reach.high = (Py_ssize_t)one;
        else {
            found.reach.low = one < found.reach.low ? (Py_ssize_t)one : found.reach.low;
            found.reach.high = one > found.reach.high ? (Py_ssize_t)one : found.reach.high;
            rises &= one > before;
            found.even &= i == 1 || next == distance;
        }
        distance = next;
        before = one;
    }
    if (found.reach.low >= 0 || found.reach.high < 0)
        found.reach.distinct = rises || (found.even && count > 1 && distance != 0) || come_once(first, count, step, wide, &found.reach);
    return found;
}

/* What was looked at last, the bytes of more than a few positions, and what was found: it holds for as long as they are the same.
``x[i]`` of 6,160 positions took 97 us of the thread where they were looked through each time, and 35 since (simulated device). */
#define LEAST_KEPT 64
#define LOOKS_KEPT 8
static struct { char *bytes; const char *at; Py_ssize_t count; int wide, is_vector; Looked found; } looks[LOOKS_KEPT];
static int next_look;

/* Look at such positions. */
static Looked
look_at(PyArrayObject *array)
{
    const int is_vector = PyArray_NDIM(array) == 1, wide = PyArray_ITEMSIZE(array) == 8;
    const Py_ssize_t count = PyArray_SIZE(array), size = PyArray_ITEMSIZE(array);
    const Py_ssize_t step = is_vector ? PyArray_STRIDE(array, 0) : size;
    const char *at = PyArray_BYTES(array);
    int k = 0;
    if (count < LEAST_KEPT || step != size)
        return look_through(at, count, step, wide, is_vector);
    while (k < LOOKS_KEPT && (looks[k].at != at || looks[k].count != count || looks[k].wide != wide || looks[k].is_vector != is_vector))
        k++;
    if (k < LOOKS_KEPT && memcmp(looks[k].bytes, at, count * size) == 0)
        return looks[k].found;
    if (k == LOOKS_KEPT)
        next_look = (k = next_look) + 1 < LOOKS_KEPT ? next_look + 1 : 0;
    char *bytes = PyMem_RawRealloc(looks[k].bytes, count * size);
    if (bytes == NULL) {
        looks[k].at = NULL;
        return look_through(at, count, step, wide, is_vector);
    }
    memcpy(bytes, at, count * size);        /* what is looked at is what is kept, whoever writes meanwhile */
    looks[k].bytes = bytes;
    looks[k].at = at;
    looks[k].count = count;
    looks[k].wide = wide;
    looks[k].is_vector = is_vector;
    return looks[k].found = look_through(bytes, count, size, wide, is_vector);
}

/* Whether positions of the device are not looked at: 1 or 0; -1: an error. */
static int
are_unchecked(void)
{
    const int checked = truth_of(option_here(text.check_indices));
    return checked < 0 ? -1 : !checked;
}

/* Whether the positions of an index lie within the axes, as far as that is known: 1 or 0; -1: an error. `distinct`: whether no two
are the same. Those of the host are as they were looked at. `unchecked`: those of the device may lie anywhere. */
static int
are_within(Along *along, PyArrayObject *meta, int *distinct, int unchecked)
{
    int known = along->axis + along->count <= PyArray_NDIM(meta);
    *distinct = 0;
    for (Py_ssize_t i = 0; known > 0 && i < along->count; i++) {
        PyObject *index = along->index[i];
        const Py_ssize_t length = PyArray_DIM(meta, along->axis + i);
        Reach reach = {0, 0, 0};
        PyArrayObject *few = few_on_host(index);
        if (few != NULL) {
            if (!along->looked[i].done)
                along->looked[i] = look_at(few);
            reach = along->looked[i].reach;
        }
        else if (PyLong_CheckExact(index)) {
            if ((known = size_of(index, &reach.low)) > 0)
                reach.high = reach.low;
        }
        else {
            known = PyErr_Occurred() ? -1 : reach_of(index, &reach);
            if (unchecked && known >= 0 && Py_TYPE(index) == types.LazyNdarray) {
                known = 1;
                continue;
            }
        }
        known = known > 0 ? reach.low >= -length && reach.high < length : known;
        *distinct |= reach.distinct || Py_TYPE(index) == types.LazyScalar;
    }
    return known;
}

/* So many positions as a range within a length, if they are one: a new reference; NULL, perhaps with an error: they are none. */
static PyObject *
range_of(const Looked *looked, Py_ssize_t count, Py_ssize_t length)
{
    const Reach reach = looked->reach;
    if (!looked->even || reach.low == reach.high || reach.low < -length || reach.high >= length
            || (reach.low < 0 && reach.high >= 0))
        return NULL;
    const Py_ssize_t start = looked->first + (looked->first < 0 ? length : 0);
    const Py_ssize_t step = (reach.high - reach.low) / (count - 1) * (looked->first == reach.low ? 1 : -1);
    return PyObject_CallFunction((PyObject *)&PyRange_Type, "nnn", start, start + count * step, step);
}

/* Whether a device array has its positions one after the other, of 32 or 64 bits with a sign: 1 or 0; -1: an error. */
static int
are_whole_numbers(PyObject *array)
{
    PyObject *dtype = PyObject_GetAttr(array, text.dtype);
    const int plain = dtype == NULL ? -1 : !PyArray_DescrCheck(dtype) ? 0
        : strchr("ilq", ((PyArray_Descr *)dtype)->type) != NULL && PyArray_ISNBO(((PyArray_Descr *)dtype)->byteorder);
    Py_XDECREF(dtype);
    return plain > 0 ? is_contiguous(array) : plain;
}

/* Whether axes come in C's order in memory, some of them perhaps turned round; one of length one in any. What is taken at positions
lies in memory as they do. */
static int
come_in_turn(const Py_ssize_t *lengths, const Py_ssize_t *steps, int ndim)
{
    Py_ssize_t before = PY_SSIZE_T_MAX;
    for (int i = 0; i < ndim; i++) {
        const Py_ssize_t own = steps[i] < 0 ? -steps[i] : steps[i];
        if (lengths[i] != 1 && (own == 0 || own >= before))
            return 0;
        before = lengths[i] == 1 ? before : own;
    }
    return 1;
}

/* The same of a device array; -1: an error. */
static int
are_in_turn(PyObject *array)
{
    PyObject *strides = PyObject_GetAttr(array, text.strides), *shape = strides == NULL ? NULL : PyObject_GetAttr(array, text.shape);
    Py_ssize_t lengths[NPY_MAXDIMS], steps[NPY_MAXDIMS];
    const int ndim = shape == NULL ? -1 : integers_of(shape, lengths);
    const int alike = ndim >= 0 && integers_of(strides, steps) == ndim;
    Py_XDECREF(strides);
    Py_XDECREF(shape);
    return alike ? come_in_turn(lengths, steps, ndim) : -!!PyErr_Occurred();
}

/* What the device takes for the positions of an index along an axis of a length: its array, or with `ranges` a range; a new
reference. NULL, perhaps with an error: they are for Python. */
static PyObject *
position_of(PyObject *index, const Looked *looked, PyObject *device, PyObject *stream, int ranges, Py_ssize_t length)
{
    PyArrayObject *few = few_on_host(index);
    PyObject *array = few == NULL || !ranges || !looked->done ? NULL : range_of(looked, PyArray_SIZE(few), length);
    int own;
    if (array != NULL || PyErr_Occurred())
        return array;
    array = (PyObject *)few == index ? PyObject_CallFunctionObjArgs(py.uploaded, device, index, NULL)
        : array_on_device(index, stream, 1, &own);
    if (array != NULL && is_set_to(array, text.ndim, zero) != (Py_TYPE(index) == types.LazyScalar))
        Py_CLEAR(array);
    const int plain = array == NULL ? 1 : are_whole_numbers(array), in_turn = plain == 0 ? are_in_turn(array) : 1;
    if (plain == 0 && in_turn > 0) {
        Py_SETREF(array, PyObject_CallMethodOneArg(device, text.positions, array));
        if (array == NULL)
            is_refusal(device);
    }
    if (plain < 0 || in_turn <= 0)
        Py_CLEAR(array);
    return array;
}

/* A position along an axis of a length, counted from the beginning: a new reference. */
static PyObject *
place_of(PyObject *number, Py_ssize_t length)
{
    const Py_ssize_t place = PyLong_AsSsize_t(number);
    return place == -1 && PyErr_Occurred() ? NULL : PyLong_FromSsize_t(place < 0 ? place + length : place);
}

/* The shape of positions, an array or a range: a new tuple. */
static PyObject *
shape_of(PyObject *positions)
{
    if (Py_TYPE(positions) != &PyRange_Type)
        return PyObject_GetAttr(positions, text.shape);
    const Py_ssize_t count = PyObject_Length(positions);
    return count < 0 ? NULL : Py_BuildValue("(n)", count);
}

/* Add the shape of an array to that which several are broadcast to: whether they can be; perhaps with an error. */
static int
broadcast_with(PyObject *shape, npy_intp *common, int *ndim)
{
    Py_ssize_t lengths[NPY_MAXDIMS];
    const int own = integers_of(shape, lengths), more = own > *ndim ? own - *ndim : 0;
    if (own < 0)
        return 0;
    memmove(common + more, common, *ndim * sizeof *common);
    for (int i = 0; i < more; i++)
        common[i] = 1;
    *ndim += more;
    for (int i = 0; i < own; i++) {
        npy_intp *all = common + *ndim - own + i;
        if (lengths[i] != *all && lengths[i] != 1 && *all != 1)
            return 0;
        *all = *all == 1 ? lengths[i] : *all;
    }
    return 1;
}

/* The shape that such positions are broadcast to, numbers among them: a new tuple; NULL, perhaps without an error: they can't be.
`alike`: whether each has it. */
static PyObject *
shape_along(PyObject *positions, int *alike)
{
    npy_intp common[NPY_MAXDIMS];
    PyObject *first = NULL;
    int ndim = 0, fits = 1;
    *alike = 1;
    for (Py_ssize_t i = 0; fits > 0 && i < PyList_GET_SIZE(positions); i++) {
        PyObject *one = PyList_GET_ITEM(positions, i), *shape;
        if (PyLong_CheckExact(one))
            continue;
        fits = (shape = shape_of(one)) != NULL && broadcast_with(shape, common, &ndim);
        if (fits && first != NULL)
            *alike &= same(shape, first) > 0;
        if (first == NULL)
            first = Py_XNewRef(shape);
        Py_XDECREF(shape);
    }
    Py_XDECREF(first);
    return PyErr_Occurred() || !fits ? NULL : PyArray_IntTupleFromIntp(ndim, common);
}

/* What the device takes for such positions, which can be broadcast, as a new list; NULL, perhaps without an error: they are for
Python. `ranges`: there may be ranges among them. `alike`: whether they have one shape. */
static PyObject *
positions_of(const Along *along, PyArrayObject *meta, PyObject *device, PyObject *stream, int ranges, int *alike)
{
    PyObject *list = hidden(PyList_New(along->count)), *shape;
    for (Py_ssize_t i = 0; list != NULL && i < along->count; i++) {
        const Py_ssize_t length = PyArray_DIM(meta, along->axis + i);
        const int is_number = PyLong_CheckExact(along->index[i]);
        PyObject *one = is_number ? place_of(along->index[i], length)
            : position_of(along->index[i], &along->looked[i], device, stream, ranges, length);
        if (one != NULL)
            PyList_SET_ITEM(list, i, one);
        else
            Py_CLEAR(list);
    }
    *alike = 1;
    if (shown(list) != NULL && along->count > 1) {
        if ((shape = shape_along(list, alike)) == NULL)
            Py_CLEAR(list);
        Py_XDECREF(shape);
    }
    return list;
}

/* Whether the axes of an array from one on lie in C's order, without gaps. */
static int
are_beside(PyArrayObject *array, Py_ssize_t first)
{
    npy_intp expected = PyArray_ITEMSIZE(array);
    for (int axis = PyArray_NDIM(array) - 1; axis >= first; axis--) {
        if (PyArray_DIM(array, axis) != 1 && PyArray_STRIDE(array, axis) != expected)
            return 0;
        expected *= PyArray_DIM(array, axis);
    }
    return 1;
}

/* What an index leaves of a meta before its array or scalar counts: a new reference in place of the meta. 0: it is for Python, as
is what does not lie in C order, unless its first axes alone do not and these are the ones that count; -1: an error. */
static int
leave_part(const Along *along, PyObject **meta)
{
    if (along->part != NULL) {
        PyObject *part = part_of(*meta, along->part);
        Py_SETREF(*meta, part);
        if (part == NULL)
            return -!!PyErr_Occurred();
    }
    PyArrayObject *left = (PyArrayObject *)*meta;
    return PyArray_NDIM(left) >= along->least
        && (PyArray_IS_C_CONTIGUOUS(left) || (along->axis == 0 && are_beside(left, along->count)));
}

/* How often positions had been written, where the host has none to look at: other threads may write them. */
typedef struct { PyObject *storage, *writes; int few; } Stamp;

/* The stamps of the positions of an index, of which those of the host are looked at: 0; -1: an error. */
static int
stamp_along(Along *along, Stamp *stamps)
{
    for (Py_ssize_t i = 0; i < along->count; i++) {
        PyObject *index = along->index[i];
        PyArrayObject *few = few_on_host(index);
        stamps[i].few = few != NULL;
        if (few != NULL)
            along->looked[i] = look_at(few);
        else if (PyErr_Occurred())
            return -1;
        else if (!PyArray_Check(index) && !PyLong_CheckExact(index)) {
            stamps[i].storage = Py_NewRef(Py_TYPE(index) == types.LazyScalar ? got(index, V.storage) : storage_by_now(index));
            if (Py_TYPE(stamps[i].storage) == types.Storage
                    && (stamps[i].writes = PyObject_GetAttr(stamps[i].storage, text.writes)) == NULL)
                return -1;
        }
    }
    return 0;
}

/* Whether another thread is at a statement that writes a storage, which it notes when all is launched. -1: an error. */
static int
is_written_now(PyObject *storage)
{
    PyObject *lock = PyObject_GetAttr(storage, text._lock), *held;
    if (lock == NULL || lock == Py_None) {
        Py_XDECREF(lock);
        return lock == NULL ? -1 : 0;
    }
    held = PyObject_CallMethodOneArg(lock, text.acquire, Py_False);
    int written = held == NULL ? -1 : held != Py_True;
    if (written == 0 && unlocked(lock) < 0)
        written = -1;
    Py_XDECREF(held);
    Py_DECREF(lock);
    return written;
}

/* Whether these are the positions still: 1 or 0; -1: an error. `waiting`: also such as wait to be computed. */
static int
are_still(const Along *along, const Stamp *stamps, int waiting)
{
    for (Py_ssize_t i = 0; i < along->count; i++) {
        PyObject *index = along->index[i], *writes;
        PyArrayObject *few = few_on_host(index);
        if (PyErr_Occurred())
            return -1;
        if (stamps[i].few) {
            if (few == NULL || look_at(few).mark != along->looked[i].mark)
                return 0;
            continue;
        }
        if (PyLong_CheckExact(index))
            continue;
        PyObject *storage = stamps[i].storage;
        if (storage == NULL || Py_TYPE(storage) != types.Storage
                || (got(storage, S.clean) != Py_True && !(waiting && got(storage, S.pending) != Py_None)))
            return 0;
        if ((writes = PyObject_GetAttr(storage, text.writes)) == NULL)
            return -1;
        const int alike = same(writes, stamps[i].writes), written = alike > 0 ? is_written_now(storage) : 0;
        Py_DECREF(writes);
        if (alike <= 0 || written != 0)
            return alike < 0 || written < 0 ? -1 : 0;
    }
    return 1;
}

static void
drop_stamps(Stamp *stamps)
{
    for (int i = 0; i < MOST_ALONG; i++) {
        Py_XDECREF(stamps[i].storage);
        Py_XDECREF(stamps[i].writes);
    }
}

#include "recording_taken.h"

/* `rows_taken` of an index without lists. */
static PyObject *
rows_of_index(PyObject *x, PyObject *index)
{
    Along along = {.least = 1};
    PyObject *storage = NULL, *device = NULL, *result = NULL, *meta = NULL, *stream = NULL, *array = NULL, *positions = NULL;
    PyObject *writes = NULL, *bounds = NULL, *axis = NULL;
    Stamp stamps[MOST_ALONG] = {{NULL, NULL, 0}};
    int own, distinct, alike;
    if (types.LazyNdarray == NULL || Py_TYPE(x) != types.LazyNdarray)
        return NULL;
    storage = Py_NewRef(got(x, X.storage));
    if (Py_TYPE(storage) != types.Storage || find_along(index, &along) <= 0 || stamp_along(&along, stamps) < 0
            || got(x, X.storage) != storage)        /* else a handler has had it lie elsewhere */
        goto end;
    device = Py_NewRef(got(storage, S.device));
    if (usable_device() != device || is_alone(device) <= 0 || (meta = meta_with_storage(x)) == NULL || leave_part(&along, &meta) <= 0
            || (axis = PyLong_FromSsize_t(along.axis)) == NULL)
        goto end;
    /* What is taken of integers may be positions; of fewer bytes they seldom are. */
    const int counts = strchr("iu", PyArray_DESCR((PyArrayObject *)meta)->kind) != NULL && PyArray_ITEMSIZE((PyArrayObject *)meta) >= 4;
    const int one = Py_TYPE(along.index[0]) == types.LazyScalar;
    if (one && PyArray_NDIM((PyArrayObject *)meta) > 1)     /* it is a view then */
        goto end;
    if (counts && got(storage, S.pending) != Py_None        /* how far it reaches: it does not know later */
            && told(PyObject_CallOneArg(py.note_range, x)) < 0)
        goto end;
    int within = (stream = PyObject_CallMethodNoArgs(device, text.stream)) == NULL ? -1
        : are_within(&along, (PyArrayObject *)meta, &distinct, 0);
    const int recordable = !one && along.part == NULL && along.axis == 0;
    int unchecked = within == 0 && recordable ? are_unchecked() : 0;
    if (unchecked > 0)      /* recorded work takes what is out of range from the other end on */
        unchecked = are_within(&along, (PyArrayObject *)meta, &distinct, 1);
    if (within < 0 || unchecked < 0 || (within == 0 && unchecked == 0)
            || (counts && ((writes = PyObject_GetAttr(storage, text.writes)) == NULL
                           || (bounds = PyObject_CallOneArg(py.bounds_of, x)) == NULL)))
        goto end;
    if (recordable && (
            (result = rows_recorded(x, storage, &along, (PyArrayObject *)meta)) != NULL || PyErr_Occurred())) {
        if (result != NULL && are_still(&along, stamps, 1) <= 0)
            Py_CLEAR(result);
        if (result != NULL && counts)
            Py_SETREF(result, PyObject_CallFunctionObjArgs(py.with_bounds, result, x, bounds, writes, NULL));
        goto end;
    }
    if (unchecked || (positions = positions_of(&along, (PyArrayObject *)meta, device, stream, 1, &alike)) == NULL
            || (array = array_on_device(x, stream, along.part == NULL, &own)) == NULL)
        goto end;
    if (along.part != NULL) {
        if (got(x, X.storage) != storage || got(storage, S.clean) != Py_True || got(storage, S.stream) != stream)
            goto end;
        Py_SETREF(array, device_view_of(storage, meta));
        if (array == NULL || got(storage, S.clean) != Py_True)      /* another thread has moved it */
            goto end;
    }
    PyObject *found = PyObject_CallMethodObjArgs(device, text.take_at, array, positions, axis, NULL);
    if (found == NULL)
        is_refusal(device);
    else if (are_still(&along, stamps, 0) > 0)     /* else another thread has written them: Python has it wait */
        result = lazy_of_new(found, device, stream, one);
    if (result != NULL && counts)
        Py_SETREF(result, PyObject_CallFunctionObjArgs(py.with_bounds, result, x, bounds, writes, NULL));
    Py_XDECREF(found);
end:
    drop_stamps(stamps);
    Py_XDECREF(along.part);
    Py_XDECREF(axis);
    Py_XDECREF(bounds);
    Py_XDECREF(writes);
    Py_XDECREF(positions);
    Py_XDECREF(array);
    Py_XDECREF(stream);
    Py_XDECREF(meta);
    Py_XDECREF(device);
    Py_XDECREF(storage);
    return result;
}

/* ``x[index]``, as new memory: a new reference; NULL, perhaps without an error: it is for Python. */
static PyObject *
rows_taken(PyObject *x, PyObject *index)
{
    PyObject *plain = index_of(index, positions_in), *result = plain == NULL ? NULL : rows_of_index(x, plain);
    Py_XDECREF(plain);
    return result;
}

PyDoc_STRVAR(rows_doc, "rows(x, index, /)\n--\n\n"
"``x[index]`` by positions that are known to lie within, or are not looked at, as new memory; None: it is for Python.");

static PyObject *
rows(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2)
        return mistaken("rows takes a lazy array and an index");
    PyObject *result = forked ? NULL : rows_taken(args[0], args[1]);
    return result != NULL || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}

/* Whether an array has an element, of the same dtype, for each of `view` that positions along axes name; -1: an error. */
static int
has_one_for_each(PyObject *values, PyArrayObject *view, PyObject *positions, const Along *along)
{
    const Py_ssize_t axis = along->axis, next = axis + along->count;
    PyObject *dtype = PyObject_GetAttr(values, text.dtype), *shape, *rows, *rest = NULL;
    int alike;
    shape = dtype == NULL ? NULL : PyObject_GetAttr(values, text.shape);      /* none is asked for with an error raised */
    rows = shape == NULL ? NULL : shape_along(positions, &alike);
    int fits = rows == NULL ? -1
        : PyArray_DescrCheck(dtype) && has_dtype_of(view, (PyArray_Descr *)dtype);
    if (fits > 0) {
        PyObject *front = PyArray_IntTupleFromIntp((int)axis, PyArray_DIMS(view));
        rest = PyArray_IntTupleFromIntp(PyArray_NDIM(view) - (int)next, PyArray_DIMS(view) + next);
        if (rest != NULL)
            Py_SETREF(rest, PySequence_Concat(rows, rest));
        if (rest != NULL)
            Py_SETREF(rest, front == NULL ? NULL : PySequence_Concat(front, rest));
        fits = rest == NULL ? -1 : same(shape, rest);
        Py_XDECREF(front);
    }
    Py_XDECREF(rest);
    Py_XDECREF(rows);
    Py_XDECREF(shape);
    Py_XDECREF(dtype);
    return fits;
}

/* Whether positions lie in other memory than a storage has, whose own notes who writes to it if the device has them; -1: an error. */
static int
are_elsewhere(const Along *along, PyObject *storage)
{
    for (Py_ssize_t i = 0; i < along->count; i++) {
        PyObject *index = along->index[i], *home;
        if (PyLong_CheckExact(index))
            continue;
        home = home_of_lazy(index);
        const int few = few_on_host(index) != NULL;
        if (few && PyArray_CheckExact(index)) {     /* what is not its own memory may be that of an alias */
            if (!PyArray_CHKFLAGS((PyArrayObject *)index, NPY_ARRAY_OWNDATA))
                return 0;
            continue;
        }
        if (few) {
            PyObject *light = is_light(index) ? home_of_light(index) : NULL;
            home = light == NULL || light == Py_None ? storage_by_now(index) : got(light, H.storage);
        }
        if (PyErr_Occurred() || home == storage || (!few && Py_TYPE(home) != types.Storage))
            return -!!PyErr_Occurred();
    }
    return 1;
}

static int
note_positions(Reads *reads, const Place *place, const Along *along)
{
    for (Py_ssize_t i = 0; i < along->count; i++)
        if (note_read(reads, place, along->index[i]) < 0)
            return -1;
    return 0;
}

/* Which position is an array, if the others are numbers; else -1. */
static Py_ssize_t
sole_index(const Along *along)
{
    Py_ssize_t lone = -1;
    for (Py_ssize_t i = 0; i < along->count; i++)
        if (!PyLong_CheckExact(along->index[i])) {
            if (lone >= 0)
                return -1;
            lone = i;
        }
    return lone;
}

/* For each position of one array that of several for one element comes last, the number of its value; None: each value counts.
NULL without an error: that is for Python. */
static PyObject *
order_along(const Along *along, PyArrayObject *meta, PyObject *positions)
{
    const Py_ssize_t lone = sole_index(along);
    PyObject *index = lone < 0 ? NULL : along->index[lone], *form;
    if (index == NULL || PyArray_CheckExact(index) || (Py_TYPE(index) == types.LazyNdarray && is_light(index))
            || (form = PyObject_CallOneArg(py.meta_of, index)) == NULL)
        return NULL;
    const int in_turn = PyArray_Check(form) && PyArray_IS_C_CONTIGUOUS((PyArrayObject *)form);      /* else NumPy goes another way */
    Py_DECREF(form);
    if (!in_turn)
        return NULL;
    PyObject *places = PyLong_FromSsize_t(PyArray_DIM(meta, along->axis + lone)), *order = NULL;
    if (places != NULL)
        order = PyObject_CallFunctionObjArgs(py.order_of_rows, places, index, PyList_GET_ITEM(positions, lone), NULL);
    Py_XDECREF(places);
    if (order == Py_None)
        Py_CLEAR(order);
    return order;
}

/* A device array, or one of its elements in another dtype that has them all: steals a reference. */
static PyObject *
widened_to(PyObject *array, PyArray_Descr *wanted, PyObject *device)
{
    PyObject *dtype = array == NULL ? NULL : PyObject_GetAttr(array, text.dtype), *wide = NULL;
    if (dtype == NULL) {
        Py_XDECREF(array);
        return NULL;
    }
    if (!PyArray_DescrCheck(dtype) || PyArray_EquivTypes((PyArray_Descr *)dtype, wanted)
            || !PyArray_CanCastTypeTo((PyArray_Descr *)dtype, wanted, NPY_SAFE_CASTING)) {
        Py_DECREF(dtype);
        return array;
    }
    if ((wide = PyObject_CallMethodOneArg(array, text.astype, (PyObject *)wanted)) == NULL)
        is_refusal(device);
    Py_DECREF(dtype);
    Py_DECREF(array);
    return wide;
}

/* What is given to the device for the values: an array of them, a scalar on the device, or what is made of a number: a new
reference. NULL, perhaps without an error: it is for Python. */
static PyObject *
values_for(const Place *place, PyObject *value, int is_array, int combines)
{
    PyArrayObject *meta = (PyArrayObject *)place->meta;
    int own;
    if (is_array)
        return widened_to(array_on_device(value, place->stream, 1, &own), PyArray_DESCR(meta), got(place->storage, S.device));
    PyObject *number = Py_TYPE(value) == types.LazyScalar ? got(value, V.value) : value;
    if (!combines)
        return number_for(meta, number);
    PyObject *made = PyObject_CallFunctionObjArgs(py.addend, got(place->storage, S.device), PyArray_DESCR(meta), number, NULL);
    if (made == Py_None)
        Py_CLEAR(made);
    return made;
}

/* The parameters of the device's ``ufunc_at`` beside the array: how many places there are, their numbers, and the values. */
static PyObject *
places_of(PyObject *ufunc, const Along *along, PyArrayObject *meta, PyObject *device, PyObject *keys, PyObject *given)
{
    Py_ssize_t count = 1;
    PyObject *key, *places, *work = NULL;
    for (Py_ssize_t i = 0; i < along->count; i++) {
        if (PyLong_CheckExact(along->index[i]))
            return NULL;
        count *= PyArray_DIM(meta, i);
    }
    if (along->count == 1)
        key = Py_NewRef(PyList_GET_ITEM(keys, 0));
    else {
        PyObject *lengths = PyArray_IntTupleFromIntp((int)along->count, PyArray_DIMS(meta)), *wraps = PyTuple_New(along->count);
        for (Py_ssize_t i = 0; wraps != NULL && i < along->count; i++)
            PyTuple_SET_ITEM(wraps, i, Py_NewRef(Py_True));
        key = lengths == NULL || wraps == NULL ? NULL
            : PyObject_CallMethodObjArgs(device, text.numbered, keys, lengths, wraps, NULL);
        if (key == NULL && lengths != NULL && wraps != NULL)
            is_refusal(device);
        Py_XDECREF(lengths);
        Py_XDECREF(wraps);
    }
    if (key != NULL && (places = PyLong_FromSsize_t(count)) != NULL) {
        work = PyTuple_Pack(5, ufunc, unit, places, key, given);
        Py_DECREF(places);
    }
    Py_XDECREF(key);
    return work;
}

/* The parameters of the device's ``put_at``, as a new tuple; NULL, perhaps without an error: that is for Python. `ordered`: of
several values for one place the last counts. */
static PyObject *
rows_to_put(const Along *along, PyArrayObject *meta, PyObject *keys, PyObject *given, int ordered)
{
    PyObject *work = NULL, *axis = PyLong_FromSsize_t(along->axis);
    PyObject *order = axis == NULL ? NULL : ordered ? order_along(along, meta, keys) : Py_NewRef(Py_None);
    if (order != NULL)
        work = PyTuple_Pack(4, keys, given, order, axis);
    Py_XDECREF(order);
    Py_XDECREF(axis);
    return work;
}

/* Whether a ufunc's ``at`` of arrays like this one is done by the device's ``ufunc_at``. */
static int
is_combined(PyObject *ufunc, PyArrayObject *meta)
{
    return PyArray_IS_C_CONTIGUOUS(meta)
        && strchr(ufunc == py.add ? "fdFDilqILQ" : "fdilqILQ", PyArray_DESCR(meta)->type) != NULL;
}

/* `rows_written` with an index without lists. */
static int
rows_put(PyObject *x, PyObject *index, PyObject *value, PyObject *ufunc)
{
    Along along = {.least = 1};
    if (forked || types.LazyNdarray == NULL || Py_TYPE(x) != types.LazyNdarray)
        return 0;
    const int is_array = Py_TYPE(value) == types.LazyNdarray || (Py_TYPE(value) == types.LazyScalar && got(value, V.value) == Py_None);
    PyObject *home = got(x, X.storage), *source = !is_array ? Py_None
        : got(value, Py_TYPE(value) == types.LazyNdarray ? X.storage : V.storage);
    /* Nobody knows how far its integers reach by the time that they are read. */
    const int light = Py_TYPE(value) == types.LazyNdarray && is_light(value);
    if ((is_array && !light && (Py_TYPE(source) != types.Storage || source == home)) || find_along(index, &along) <= 0
            || (ufunc != NULL && (along.axis > 0 || along.part != NULL)) || are_elsewhere(&along, home) <= 0) {
        Py_XDECREF(along.part);
        return -!!PyErr_Occurred();
    }
    Place place;
    Reads reads = {.count = 0};
    Stamp stamps[MOST_ALONG] = {{NULL, NULL, 0}};
    PyObject *given = NULL, *target = NULL, *keys = NULL, *work = NULL;
    int done = 0, distinct, alike, open = find_place(&place, x);
    if (open > 0)
        open = leave_part(&along, &place.meta);
    PyArrayObject *meta = (PyArrayObject *)place.meta;
    if (open <= 0 || (open = are_within(&along, meta, &distinct, 0)) <= 0
            || (ufunc == NULL && is_array && !distinct && sole_index(&along) < 0)
            || (ufunc != NULL && !is_combined(ufunc, meta))
            || (open = compute_first(x, place.storage)) < 0 || (open = see_place(&place, 0)) <= 0
            || (open = note_positions(&reads, &place, &along)) < 0
            || (is_array && (open = note_read(&reads, &place, value)) < 0)
            /* of what is as it was noted; a maximum is one of both */
            || (ufunc != py.add && !light && (open = keep_reach(&place, value)) < 0)
            || (open = stamp_along(&along, stamps)) < 0 || (open = are_within(&along, meta, &distinct, 0)) <= 0
            || (keys = positions_of(&along, meta, got(place.storage, S.device), place.stream, ufunc == NULL, &alike)) == NULL
            || (ufunc == NULL && is_array && !alike)        /* of those that are broadcast Python knows which are distinct */
            || (open = are_still(&along, stamps, 0)) <= 0
            || (given = values_for(&place, value, is_array, ufunc != NULL)) == NULL
            || (is_array && (open = has_one_for_each(given, meta, keys, &along)) <= 0)
            || (work = ufunc != NULL ? places_of(ufunc, &along, meta, got(place.storage, S.device), keys, given)
                : rows_to_put(&along, meta, keys, given, is_array && !distinct)) == NULL
            || (open = open_place(&place, &reads, 0)) <= 0)
        goto end;
    done = -1;
    if ((target = target_of(&place, Py_None)) != NULL)
        done = write_to(&place, target, work, NULL) < 0 ? -1 : 1;
    if (target != NULL && done < 0 && PyErr_Occurred())
        done = is_refusal(got(place.storage, S.device));
end:
    if (leave_reads(&reads) | leave_place(&place))
        done = -1;
    drop_stamps(stamps);
    Py_XDECREF(along.part);
    Py_XDECREF(work);
    Py_XDECREF(keys);
    Py_XDECREF(target);
    Py_XDECREF(given);
    return PyErr_Occurred() ? -1 : done;
}

/* Whether ``x[index] = value``, or ``ufunc.at(x, index, value)`` if there is one, was done, for a number, or an array with a value
for each position: 1 or 0; -1: an error. */
static int
rows_written(PyObject *x, PyObject *index, PyObject *value, PyObject *ufunc)
{
    PyObject *plain = index_of(index, positions_in);
    const int done = plain == NULL ? -1 : rows_put(x, plain, value, ufunc);
    Py_XDECREF(plain);
    return done;
}

/* The lazy scalar of one element, recorded: what gives the element of a device array of it without axes, which is a view of
the memory of a storage. `source`: a weak reference to that. None: it is not to be recorded. */
static PyObject *
element_of(PyObject *storage, PyObject *array, PyObject *step, PyObject *source)
{
    PyObject *leaf = NULL, *operands = NULL, *node = NULL, *result = NULL, *bytes = NULL;
    const Py_ssize_t least = least_bytes(&bytes);
    Py_XDECREF(bytes);
    if (least == -2)
        return NULL;
    if (forked || least != 0 ||       /* an element is few bytes */
            is_held(storage) || got(storage, S.clean) != Py_True)
        Py_RETURN_NONE;
    const Form form = {no_arguments, Py_False, unit, got(step, P.output)};
    if ((leaf = made_leaf(array, storage, text.flat)) == NULL || (operands = PyTuple_Pack(1, leaf)) == NULL
            || (node = made_node(got(storage, S.device), step, operands, &form, 1, no_arguments, Py_False)) == NULL)
        goto end;
    if (got(storage, S.clean) != Py_True)       /* as in `become` */
        result = Py_NewRef(Py_None);
    else if ((result = array_of_nodes(&node, 1, Py_None, 0)) != NULL && Py_TYPE(result) == types.LazyScalar)
        put(result, V.base, source);
end:
    Py_XDECREF(node);
    Py_XDECREF(operands);
    Py_XDECREF(leaf);
    return result;
}

PyDoc_STRVAR(element_doc, "element(storage, array, step, source, /)\n--\n\n"
"The lazy scalar of one element, recorded: what gives the element of a device array of it without axes, which is a view of\n"
"the memory of `storage`. `source`: a weak reference to that, for who counts such. None: it is not to be recorded.");

static PyObject *
element(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 4 || types.Storage == NULL || types.Step == NULL || Py_TYPE(args[0]) != types.Storage
            || Py_TYPE(args[2]) != types.Step)
        return mistaken("element takes a storage, a device array, a step and a weak reference");
    return element_of(args[0], args[1], args[2], args[3]);
}

/* ``x[3, 4]`` of what is on the device alone: a new reference; NULL, perhaps without an error: it is for Python. */
static PyObject *
element_taken(PyObject *x, PyObject *index)
{
    PyObject *meta = NULL, *part = NULL, *stream = NULL, *array = NULL, *key = NULL, *source = NULL, *result = NULL, *bytes = NULL;
    const Py_ssize_t count = PyTuple_CheckExact(index) ? PyTuple_GET_SIZE(index) : 1;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!PyLong_CheckExact(PyTuple_CheckExact(index) ? PyTuple_GET_ITEM(index, i) : index))
            return NULL;
    if (types.LazyNdarray == NULL || Py_TYPE(x) != types.LazyNdarray || Py_TYPE(got(x, X.storage)) != types.Storage)
        return NULL;
    PyObject *storage = Py_NewRef(got(x, X.storage)), *device = Py_NewRef(got(storage, S.device)), *step;
    if (usable_device() != device || is_alone(device) <= 0 || (meta = meta_with_storage(x)) == NULL
            || PyArray_NDIM((PyArrayObject *)meta) != count || count == 0 || (part = part_of(meta, index)) == NULL
            || note_taken(x, meta, 0) < 0 || PyObject_IsTrue(py.partners) != 0 || is_held(storage))
        goto end;
    PyObject *before = Py_NewRef(got(storage, S.pending));
    const int failed = before != Py_None && compute_alone(before) < 0;
    Py_DECREF(before);
    if (failed || got(storage, S.clean) != Py_True || is_on_device_alone(storage) <= 0 || is_set_to(storage, text.reads, zero) <= 0
            || (stream = PyObject_CallMethodNoArgs(device, text.stream)) == NULL || same(got(storage, S.stream), stream) <= 0
            || (bytes = PyObject_GetAttr(storage, text.nbytes)) == NULL || PyLong_AsSsize_t(bytes) > limits.LARGE
            || (key = PyTuple_Pack(2, PyArray_DESCR((PyArrayObject *)part), PyArray_DESCR((PyArrayObject *)part))) == NULL
            || (step = PyDict_GetItemWithError(py.casts, key)) == NULL || Py_TYPE(step) != types.Step
            || tick() < 0 || (array = device_view_of(storage, part)) == NULL || (source = PyWeakref_NewRef(storage, NULL)) == NULL)
        goto end;
    put(storage, S.used, now);
    if (got(storage, S.clean) == Py_True)       /* else another thread has moved it */
        result = element_of(storage, array, step, source);
    if (result == Py_None)
        Py_CLEAR(result);
end:
    Py_XDECREF(source);
    Py_XDECREF(array);
    Py_XDECREF(key);
    Py_XDECREF(bytes);
    Py_XDECREF(stream);
    Py_XDECREF(part);
    Py_XDECREF(meta);
    Py_DECREF(device);
    Py_DECREF(storage);
    return result;
}
