/* How a kernel walks inputs by their strides: what `launch_plan.plan` chooses, found by what the choice goes by, whatever the sizes. */

#define MOST_AXES 8
#define MOST_WALKED 16
/* Elements from which on indexes take 64 bits; and places along an axis below which there are no tiles. */
#define WIDE ((int64_t)1 << 31)
#define LEAST_TILED 16
#define STENCIL 3

/* What a form goes by of the inputs that are walked: the bytes of their elements, what is written (an input, or -1), which others
are arrays, and how many elements a pack has. */
typedef struct { int count, place[MOST_WALKED], target; Py_ssize_t itemsize[MOST_WALKED], pack; uint64_t flat; } Walkers;

/* The key of a form, and the value of its parameter. */
typedef struct { char key[2 + 2 * MOST_WALKED]; Py_ssize_t key_size, size; char bytes[8 * MOST_WALKED * MOST_AXES + 12 * MOST_AXES]; } Walk;

enum { SAME, ALONG, ANY, FLAT };

/* The lengths of a tuple: how many, or -1: they are too many, perhaps with an error. */
static int
numbers_of(PyObject *tuple, int64_t *found)
{
    const Py_ssize_t count = PyTuple_CheckExact(tuple) ? PyTuple_GET_SIZE(tuple) : MOST_AXES + 1;
    for (Py_ssize_t i = 0; i < count && count <= MOST_AXES; i++)
        if ((found[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i))) == -1 && PyErr_Occurred())
            return -1;
    return count <= MOST_AXES ? (int)count : -1;
}

/* The strides of an array that is broadcast to a shape of so many axes, in the order of the result's memory: 1, or 0: it has more axes,
-1: an error. */
static int
strides_of(PyObject *array, int ndim, int fortran, int64_t *strides)
{
    int64_t lengths[MOST_AXES], own[MOST_AXES];
    PyObject *shape = PyObject_GetAttr(array, text_shape), *steps = shape == NULL ? NULL : PyObject_GetAttr(array, text_strides);
    const int count = steps == NULL ? -1 : numbers_of(shape, lengths);
    const int fits = count >= 0 && count <= ndim && numbers_of(steps, own) == count;
    Py_XDECREF(shape);
    Py_XDECREF(steps);
    if (!fits)
        return PyErr_Occurred() ? -1 : 0;
    for (int axis = 0; axis < ndim; axis++) {
        const int place = axis - (ndim - count);
        strides[fortran ? ndim - 1 - axis : axis] = place < 0 || lengths[place] == 1 ? 0 : own[place];
    }
    return 1;
}

/* Join the axes that all inputs walk as one: how many there are then. */
static int
joined(int64_t *lengths, int ndim, int64_t (*strides)[MOST_AXES], int count)
{
    int kept = 0;
    for (int axis = 0; axis < ndim; axis++) {
        if (lengths[axis] == 1)
            continue;
        int as_one = kept > 0;
        for (int i = 0; as_one && i < count; i++)
            as_one = strides[i][kept - 1] == strides[i][axis] * lengths[axis];
        if (as_one)
            lengths[kept - 1] *= lengths[axis];
        else
            lengths[kept++] = lengths[axis];
        for (int i = 0; i < count; i++)
            strides[i][kept - 1] = strides[i][axis];
    }
    if (kept == 0) {
        lengths[0] = 1;
        for (int i = 0; i < count; i++)
            strides[i][0] = 0;
    }
    return kept ? kept : 1;
}

/* Whether there may be tiles, which are chosen by the lengths: that is for Python. */
static int
may_have_tiles(const Walkers *w, const int64_t *lengths, int ndim, int64_t (*strides)[MOST_AXES], const int *read)
{
    int reaching = 0;
    if (ndim < 2 || ndim > 3)
        return 0;
    for (int axis = ndim - 2; axis >= 0; axis--)
        for (int i = 0; i < w->count; i++)
            if (read[i] != FLAT && w->place[i] != w->target && strides[i][axis] == w->itemsize[i]
                    && strides[i][ndim - 1] != 0 && strides[i][ndim - 1] != w->itemsize[i])
                return lengths[axis] >= LEAST_TILED && lengths[ndim - 1] >= LEAST_TILED;
    for (int i = 0; i < w->count; i++)
        reaching += read[i] != FLAT && w->place[i] != w->target && strides[i][ndim - 1] != 0 && strides[i][ndim - 2] != 0;
    return reaching >= STENCIL;
}

/* The walk of `launch_plan.walk_bytes`: the strides of inputs with a walk of their own, and what divides by the lengths. */
static void
write_walk(Walk *walk, const int64_t *lengths, int ndim, int64_t (*strides)[MOST_AXES], int count, const int *first, const int *read)
{
    Py_ssize_t at = 0;
    for (int i = 0; i < count; i++)
        if (read[i] != FLAT && first[i] == i) {
            memcpy(walk->bytes + at, strides[i], ndim * sizeof(int64_t));
            at += ndim * sizeof(int64_t);
        }
    for (int axis = 1; axis < ndim; axis++) {
        uint32_t shift = 0;
        while (((int64_t)1 << shift) < lengths[axis])
            shift++;
        const uint64_t rest = ((uint64_t)1 << shift) - (uint64_t)lengths[axis];
        const uint32_t words[] = {(uint32_t)lengths[axis], (uint32_t)((rest << 32) / (uint64_t)lengths[axis] + 1), shift};
        memcpy(walk->bytes + at, words, sizeof words);
        at += sizeof words;
    }
    while (at % 8)
        walk->bytes[at++] = 0;
    walk->size = at;
}

/* Find the walk: 1, or 0: it is for Python, which goes by the sizes, or -1: an error. `size`: how many elements; `aligned`: of each
input whether packs can be loaded from where it begins. */
static int
find_walk(const Walkers *w, PyObject *arguments, PyObject *shape, int fortran, int64_t size, uint64_t aligned, Walk *walk)
{
    int64_t lengths[MOST_AXES], given[MOST_AXES], strides[MOST_WALKED][MOST_AXES];
    int read[MOST_WALKED], first[MOST_WALKED], kept = 0, ndim = numbers_of(shape, given);
    if (ndim < 0 || w->count > MOST_WALKED || size >= WIDE)
        return PyErr_Occurred() ? -1 : 0;
    for (int axis = 0; axis < ndim; axis++)
        lengths[fortran ? ndim - 1 - axis : axis] = given[axis];
    for (int i = 0; i < w->count; i++) {
        const int found = strides_of(PyList_GET_ITEM(arguments, w->place[i]), ndim, fortran, strides[i]);
        if (found <= 0)
            return found;
    }
    ndim = joined(lengths, ndim, strides, w->count);
    const int64_t last = lengths[ndim - 1];
    int packs = ndim == 1 || last % w->pack == 0;
    uint64_t from = w->flat;
    for (int i = 0; i < w->count; i++) {
        const int64_t step = strides[i][ndim - 1];
        read[i] = step == 0 ? SAME : step == w->itemsize[i] ? ALONG : ANY;
        if (w->place[i] == w->target && size == 1)
            read[i] = ALONG;
        if (read[i] == ALONG && ndim == 1)
            read[i] = FLAT;
        packs = packs && read[i] != ANY;
        if (read[i] == ALONG || read[i] == FLAT)
            from |= (uint64_t)1 << w->place[i];
        for (int axis = 0; read[i] == ALONG && axis < ndim - 1; axis++)
            packs = packs && strides[i][axis] % (w->pack * w->itemsize[i]) == 0;
        first[i] = i;
        for (int k = 0; k < i && read[i] != FLAT && first[i] == i; k++)
            if (read[k] == read[i] && memcmp(strides[k], strides[i], ndim * sizeof(int64_t)) == 0)
                first[i] = first[k];
        kept += read[i] != FLAT;
    }
    packs = packs && (aligned & from) == from;
    if (!packs && may_have_tiles(w, lengths, ndim, strides, read))
        return 0;
    walk->key_size = 0;
    walk->key[walk->key_size++] = (char)(kept ? ndim : 0);
    walk->key[walk->key_size++] = (char)packs;
    for (int i = 0; i < w->count; i++) {
        walk->key[walk->key_size++] = (char)read[i];
        walk->key[walk->key_size++] = (char)first[i];
    }
    if (kept)
        write_walk(walk, lengths, ndim, strides, w->count, first, read);
    else
        walk->size = 0;
    return 1;
}
