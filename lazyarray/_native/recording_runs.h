/* Runs of calls of which all arrays are small, one at least on the device alone.

A kernel takes some microseconds whatever it computes, and one element on the host takes NumPy one. What comes of small arrays of the
device is on the device, too: a program that goes on with nothing else is better off on the host. So after some such calls in a row the
arrays of the next are fetched. Numbers of calls decide, never a time: what is computed where is the same in each run of a program. */

/* Calls in a row before arrays are fetched; after each time that it was in vain twice as many, up to these. */
#define SHORTEST_RUN 16
#define LONGEST_RUN 4096
/* So many calls on the host make up for a small array that is sent to the device; `fetch_run` says how many do for one that is fetched. */
#define SENT 4
/* So many more may be sent or fetched than calls on the host make up for: at first, and at most. Limits that were not varied. */
#define CREDIT 128
#define MOST_CREDIT 256
/* So many operators of numbers in a row before the values are fetched: at first, and at most, twice as many after each time. */
#define ENOUGH 16
#define MOST_NUMBERS 128

/* The run that is under way: how many calls it has, and how many of them since arrays were fetched in vain; `needed`: so many, and those
of the next are fetched. From then on (`credit` > 0) those of each call are, for as long as there are enough calls on the host for what is
fetched and sent: `hosted` calls since, and `spent` that would make up for it. Without a run, `balance` is the one less the other. Where
too much was sent, so many next calls (`away`) leave to the device what both sides have, see `is_devices`. Since the last call with a large
array: `ones`, elements and rows, see `note_one`; `numbers`, operators of lazy scalars that the device has, of which `enough` in a row have
their values fetched. */
static struct { long length, since, needed, credit, hosted, spent, balance, away, ones, numbers, enough; } run
    = {.needed = SHORTEST_RUN, .enough = ENOUGH};

/* The storage of an array that was to be nothing but its ndarray, see `lighten`, while a row of it was in use, as in ``x[i] += 1``: the next time
that one is taken it may be. To be compared alone: it may be gone. */
static const void *to_lighten;

static void
forget_runs(void)
{
    forget_waits();
    run.length = run.since = run.credit = run.hosted = run.spent = run.balance = run.away = run.ones = run.numbers = 0;
    run.needed = SHORTEST_RUN;
    run.enough = ENOUGH;
    to_lighten = NULL;
}

/* Arrays are fetched no more. */
static void
leave_host(void)
{
    if (run.credit > 0 && run.hosted > 2 * run.spent)
        run.needed = SHORTEST_RUN;
    else if (run.credit > 0 && run.needed < LONGEST_RUN)
        run.needed *= 2;
    run.since = run.credit = run.hosted = run.spent = 0;
}

/* What both sides have is left to the device for some calls. */
static void
go_away(void)
{
    run.credit = 1;     /* this was in vain */
    leave_host();
    run.balance = 0;
    run.away = run.needed;
}

/* A small array is sent to the device. */
static void
note_sent(void)
{
    if (run.credit > 0) {
        run.spent += SENT;
        run.credit -= SENT;
        if (run.credit <= 0)
            go_away();
    }
    else if ((run.balance -= SENT) < -CREDIT)
        go_away();
}

/* The bytes of a storage; -1: they are not known, or there is an error. */
static Py_ssize_t
bytes_of_storage(PyObject *storage)
{
    PyObject *root = got(storage, S.root_view);
    if (PyArray_Check(root))
        return PyArray_NBYTES((PyArrayObject *)root);
    PyObject *nbytes = PyObject_GetAttr(storage, text._nbytes);     /* of one that was made on the host */
    const Py_ssize_t n = nbytes == NULL || !PyLong_Check(nbytes) ? -1 : PyLong_AsSsize_t(nbytes);
    Py_XDECREF(nbytes);
    return n;
}

/* Whether a storage, of which `x` sees some, has more than small arrays have, with its elements as `bytes_of` counts them, but not too much for
the host. -1: an error. */
static int
is_medium(PyObject *x, PyObject *storage)
{
    Py_INCREF(storage);
    const Py_ssize_t nbytes = bytes_of_storage(storage);
    Py_DECREF(storage);
    PyObject *meta = nbytes < 0 || nbytes > limits.GIVEN ? NULL : meta_of_lazy(x);
    int medium = 0;
    if (meta != NULL && PyArray_Check(meta) && PyArray_ITEMSIZE((PyArrayObject *)meta) > 0)
        medium = times(nbytes / PyArray_ITEMSIZE((PyArrayObject *)meta), element_bytes((PyArrayObject *)meta)) > small_bytes;
    Py_XDECREF(meta);
    return PyErr_Occurred() ? -1 : medium;
}

/* Whether both sides have an array of this storage because it is large, or was fetched for a run: 1 or 0; -1: an error. */
static int
is_on_both(PyObject *storage)
{
    if (Py_TYPE(storage) != types.Storage || got(storage, S.host) == Py_None || got(storage, S.clean) != Py_True)
        return 0;
    const Py_ssize_t nbytes = bytes_of_storage(storage);
    if (nbytes > small_bytes || PyErr_Occurred())
        return nbytes > small_bytes ? 1 : -1;
    PyObject *fetched = PyObject_GetAttr(storage, text.fetched);
    const long at = fetched == NULL ? -1 : PyLong_AsLong(fetched);
    Py_XDECREF(fetched);
    return PyErr_Occurred() ? -1 : at >= 0;
}

/* Whether a call on the host is left to the device: it has all arrays, too, and too many results had to be sent there. -1: an error. */
static int
is_devices(const Found *found)
{
    int both = 0;
    for (int i = 0; run.away > 0 && run.credit <= 0 && i < found->count && both >= 0; i++) {
        PyObject *x = found->sources[i], *storage = Py_TYPE(x) == types.LazyNdarray ? storage_by_now(x) : Py_None;
        if (storage == Py_None || got(storage, S.clean) != Py_True)     /* that of the host alone would have to be sent */
            return 0;
        both = both > 0 ? both : is_on_both(storage);
    }
    run.away -= both > 0;
    return both;
}

/* Bytes of the elements of an array that the device has, or that waits; -1: an error. */
static Py_ssize_t
bytes_on_device(PyObject *x, PyObject *storage)
{
    PyObject *node = got(storage, S.pending), *meta = AT(x, X.meta);
    if ((meta == NULL || meta == Py_None) && Py_TYPE(node) == types.Node && PyTuple_CheckExact(got(node, N.shape))) {
        PyObject *shape = got(node, N.shape);
        Py_ssize_t nbytes = 8;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); i++) {
            Py_ssize_t n = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
            nbytes = n < 0 ? -1 : times(nbytes, n);
        }
        return nbytes;
    }
    if ((meta = meta_of_lazy(x)) == NULL)
        return -1;
    Py_ssize_t nbytes = PyArray_Check(meta) ? bytes_of((PyArrayObject *)meta) : PY_SSIZE_T_MAX;
    Py_DECREF(meta);
    return nbytes;
}

/* Whether so many bytes of an array are small: see `has_small`. */
static inline int
is_small(Py_ssize_t nbytes, Py_ssize_t most)
{
    steps.seen = steps.seen > nbytes ? steps.seen : nbytes;
    return nbytes <= most ? 1 : nbytes <= small_bytes ? 2 : 0;
}

/* Whether an argument has small arrays only; those that the host lacks come into `waiting`, if that is a list, and are counted. 0: it
has others, 2: some that are too large for what is to be computed of them; -1: an error. */
static int
has_small(PyObject *given, Py_ssize_t most, PyObject *waiting, int *count, int depth)
{
    PyTypeObject *type = Py_TYPE(given);
    if (type == types.LazyNdarray || type == types.LazyScalar) {
        Py_ssize_t nbytes = 8;
        int lacks = type == types.LazyScalar ? got(given, V.value) == Py_None : 1;
        if (type == types.LazyNdarray) {
            PyObject *host = got(given, X.host), *storage = storage_by_now(given);
            PyObject *alone = of_host_alone(given, small_bytes);
            if (alone != NULL)
                return is_small(bytes_of((PyArrayObject *)alone), most);
            if (storage == Py_None ? !PyArray_Check(host) : Py_TYPE(storage) != types.Storage)     /* or it is not made yet */
                return 0;
            if (storage == Py_None || got(storage, S.host) != Py_None)
                lacks = storage != Py_None && run.away > 0 && run.credit <= 0 ? is_on_both(storage) : 0;
            nbytes = lacks < 0 ? -1 : storage == Py_None || (!lacks && host != Py_None) ? bytes_of((PyArrayObject *)host) : bytes_on_device(given, storage);
        }
        if (nbytes < 0 || (lacks && waiting != NULL && PyList_Append(waiting, given) < 0))
            return -1;
        *count += lacks;
        return is_small(nbytes, most);
    }
    if (PyArray_Check(given))
        return is_small(bytes_of((PyArrayObject *)given), most);
    const int is_tuple = type == &PyTuple_Type;
    if ((!is_tuple && type != &PyList_Type) || depth > 1)
        return 1;
    int small = 1;
    for (Py_ssize_t i = 0; small == 1 && i < Py_SIZE(given) && i < 64; i++) {
        PyObject *item = Py_NewRef(is_tuple ? PyTuple_GET_ITEM(given, i) : PyList_GET_ITEM(given, i));
        small = has_small(item, most, waiting, count, depth + 1);
        Py_DECREF(item);
    }
    return small;
}

/* A call is made on the host. */
static inline void
note_hosted(void)
{
    if (run.credit > 0) {
        run.length++;
        run.hosted++;
        run.credit += run.credit < MOST_CREDIT;
    }
    else if (run.balance < MOST_CREDIT)
        run.balance++;
    else if (run.needed > SHORTEST_RUN) {   /* the host does what there is to do: what was in vain was long ago */
        run.needed /= 2;
        run.balance = 0;
    }
}

/* Whether the program may have started a thread that runs still, as `errors.own_threads` has it; -1: an error. */
static int
others_run(void)
{
    PyObject *count = PyObject_CallNoArgs(py.threads_started);
    const long started = count == NULL ? -1 : PyLong_AsLong(count);
    Py_XDECREF(count);
    return started == -1 && PyErr_Occurred() ? -1 : started > (long)PySet_Size(py.own_threads);
}

/* Whether recorded work reads a storage: of such as is gone a weak reference is left. */
static int
is_read(PyObject *storage)
{
    PyObject *readers = got(storage, S.readers);
    int read = readers != Py_None && !PyList_CheckExact(readers);
    for (Py_ssize_t i = 0; !read && readers != Py_None && i < PyList_GET_SIZE(readers); i++) {
        PyObject *reader = referent(PyList_GET_ITEM(readers, i));
        read = reader != NULL;
        Py_XDECREF(reader);
    }
    return read;
}

/* Whether the meta of an array is that of all bytes of its storage; -1: an error. */
static int
is_whole(PyObject *meta, PyObject *storage)
{
    if (meta == NULL || !PyArray_Check(meta) || !(PyArray_FLAGS((PyArrayObject *)meta) & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS)))
        return 0;
    const Py_ssize_t nbytes = bytes_of_storage(storage);
    return nbytes < 0 && PyErr_Occurred() ? -1 : nbytes == PyArray_NBYTES((PyArrayObject *)meta);
}

/* Whether an array, its leaf and who holds the storage in C now are all that refer to that. */
static int
is_known_here_alone(PyObject *x, PyObject *storage, PyObject *leaf)
{
    return Py_REFCNT(storage) == 2 + (leaf != Py_None && got(x, X.leaf) == leaf && Py_REFCNT(leaf) == 1 && AT(leaf, L.storage) == storage);
}

/* Whether the elements of an array are of those dtypes of which aliases need no storage: `_PLAIN` of `storage/handles.py`. */
static int
is_lent_light(PyObject *meta)
{
    const PyArray_Descr *dtype = PyArray_DESCR((PyArrayObject *)meta);
    return strchr("?bBhHiIlLqQfdFD", dtype->type) != NULL && PyArray_ISNBO(dtype->byteorder);
}

/* Let an array be nothing but its ndarray again, if it was fetched for the host to go on with it and nobody else knows of its storage: what
the device has of it is given up, and the host writes it without telling anybody: an element in 0.14 us instead of 1.3. -1: an error. */
static int
lighten(PyObject *x)
{
    PyObject *storage = got(x, X.storage), *leaf = got(x, X.leaf), *fetched, *writes = NULL, *mirror = NULL;
    if (Py_TYPE(storage) != types.Storage || got(storage, S.host) == Py_None || got(x, X.base) != Py_None || is_held(storage)
            || got(storage, S.pending) != Py_None)
        return 0;
    Py_INCREF(storage);
    int alone = is_whole(AT(x, X.meta), storage);
    if (alone <= 0) {
        Py_DECREF(storage);
        return alone;
    }
    alone = (fetched = PyObject_GetAttr(storage, text.fetched)) == NULL || (writes = PyObject_GetAttr(storage, text.writes)) == NULL
            || (mirror = PyObject_GetAttr(storage, text.mirror)) == NULL ? -1 : same(fetched, writes);
    /* What lent aliases will be asked for more: it must be of those that need no storage for them, see `lent_light`. */
    if (alone > 0 && mirror != Py_None)
        alone = Py_TYPE(mirror) == types.Mirror && got(mirror, M.lent) == Py_False
            && (got(mirror, M._lends) == zero || bytes_of_storage(storage) <= small_bytes || is_lent_light(AT(x, X.meta)));
    if (alone > 0 && (alone = PyObject_IsTrue(py.partners)) >= 0)
        alone = !alone;
    if (alone > 0) {        /* NumPy may be writing the array in another thread */
        const int others = others_run();
        alone = others < 0 ? -1 : !others;
    }
    PyObject *host = alone > 0 && is_known_here_alone(x, storage, leaf) ? on_host_to_write(x) : NULL, *copy = NULL, *before[4];
    if (host != NULL && PyArray_CHKFLAGS((PyArrayObject *)host, NPY_ARRAY_WRITEABLE))
        copy = PyArray_NewCopy((PyArrayObject *)host, NPY_KEEPORDER);
    Py_XDECREF(mirror);
    Py_XDECREF(writes);
    Py_XDECREF(fetched);
    /* From here on no Python code runs, and nobody else gets a reference. */
    if (copy != NULL && got(x, X.storage) == storage && is_known_here_alone(x, storage, leaf) && AT(x, X.host) == host && !is_read(storage)
            && got(x, X.home) == Py_None) {
        Py_ssize_t const slots[] = {X.storage, X.meta, X.leaf, X.array};
        for (int i = 0; i < 4; i++) {
            before[i] = AT(x, slots[i]);
            AT(x, slots[i]) = i < 2 ? NULL : Py_NewRef(Py_None);
        }
        PyObject *view = AT(x, X.host);
        AT(x, X.host) = copy;
        Py_CLEAR(AT(x, X.home));
        for (int i = 0; i < 4; i++)
            Py_XDECREF(before[i]);
        copy = view;
    }
    Py_XDECREF(copy);
    Py_DECREF(storage);
    return alone < 0 || PyErr_Occurred() ? -1 : 0;
}

/* How many of these are still to come before a storage of so many bytes is copied for them, below 0: none; or -1 with an error. The copy of
one that has more than `ON_BOTH` takes as long as many of them do: then so many count, a quarter of them of this storage. */
static long
ones_to_come(PyObject *storage, Py_ssize_t nbytes)
{
    if (nbytes <= limits.ON_BOTH)
        return limits.TAKEN - run.ones;
    const int goes_on = run.ones < 0;       /* others are on the host already */
    PyObject *taken = PyObject_GetAttr(storage, text.taken), *next;
    const long count = taken == NULL ? -1 : PyLong_AsLong(taken) + 1;
    Py_XDECREF(taken);
    if ((count <= 0 && PyErr_Occurred()) || (next = PyLong_FromLong(count)) == NULL)
        return -1;
    const int failed = PyObject_SetAttr(storage, text.taken, next);
    Py_DECREF(next);
    const long of_any = goes_on ? -1 : nbytes / limits.GIVEN_EACH - run.ones, of_this = nbytes / limits.GIVEN_EACH / 4 - count;
    return failed ? -1 : of_any > of_this ? of_any : of_this;
}

/* Notes that an element or a row is taken of an array, or (`written`) assigned, that is too large to be a small one, but not for the host:
after many in a row, with no call on a large array between, it is fetched, or given to the host. Then others that the program takes elements
of follow at once, and what was fetched before once there were as many more as make up for the copy. Whether it was; -1: an error. */
static int
note_one(PyObject *x, PyObject *storage, int written)
{
    Py_INCREF(storage);
    const int medium = is_medium(x, storage);
    const Py_ssize_t nbytes = medium > 0 ? bytes_of_storage(storage) : 0;
    long to_come = 0;
    int follows = 0;
    if (medium > 0 && run.ones < 0 && (written || nbytes <= limits.ON_BOTH)) {
        PyObject *fetched = written ? NULL : PyObject_GetAttr(storage, text.fetched);
        follows = written ? got(storage, S.host) != Py_None : fetched != NULL && PyLong_AsLong(fetched) < 0;
        Py_XDECREF(fetched);
    }
    if (medium > 0 && !follows && !PyErr_Occurred()) {
        to_come = ones_to_come(storage, nbytes) - 1;
        run.ones++;
    }
    Py_DECREF(storage);
    if (PyErr_Occurred())
        return -1;
    if (medium <= 0 || (!follows && to_come >= 0))
        return 0;
    PyObject *done = PyObject_CallFunctionObjArgs(py.give_to_host, x, written ? Py_True : Py_False, NULL);
    const long calls = done == NULL ? -1 : PyLong_AsLong(done);
    Py_XDECREF(done);
    if (calls >= 0 && !(follows && written))
        run.ones = (follows ? run.ones : 0) - calls;
    if (calls > 0 && written) {
        to_lighten = got(x, X.storage);
        if (lighten(x) < 0)
            return -1;
    }
    return calls < 0 ? -1 : calls > 0;
}

/* Whether an index with arrays, all of which the host has, names a small part of an array that is larger than small ones, but not too
large for the host. -1: an error. */
static int
names_few(PyObject *x, PyObject *index)
{
    const int is_tuple = PyTuple_CheckExact(index);
    PyObject *storage = Py_TYPE(x) == types.LazyNdarray ? storage_by_now(x) : NULL, *plain, *meta = NULL;
    int few = 0;
    Found found;
    for (Py_ssize_t i = 0; i < (is_tuple ? PyTuple_GET_SIZE(index) : 1); i++) {
        PyObject *item = is_tuple ? PyTuple_GET_ITEM(index, i) : index;
        few |= Py_TYPE(item) == types.LazyNdarray || PyArray_CheckExact(item) || PyList_CheckExact(item);
    }
    if (!few || small_bytes == 0 || storage == NULL || Py_TYPE(storage) != types.Storage)
        return 0;
    if ((few = is_medium(x, storage)) <= 0)
        return few;
    begin(&found, COSTLY, 0);
    few = (plain = replaced(index, &found, 0)) != NULL && (meta = meta_of_lazy(x)) != NULL && PyArray_Check(meta)
        && is_small_part(meta, plain, found.most);
    Py_XDECREF(meta);
    let_go(&found);
    return PyErr_Occurred() ? -1 : few;
}

/* `note_one` of ``x[index]``, where arrays of the host name a few elements. */
static int
note_named(PyObject *x, PyObject *index)
{
    const int few = names_few(x, index);
    PyObject *storage = few > 0 ? storage_by_now(x) : Py_None;
    return few <= 0 || Py_TYPE(storage) != types.Storage ? few < 0 ? -1 : 0 : note_one(x, storage, 0);
}

/* Whether a slice sees few elements of an array; -1: an error. */
static int
sees_few(PyObject *x, PyObject *slice)
{
    Py_ssize_t start, stop, step, bytes = PY_SSIZE_T_MAX;
    PyObject *meta = is_plain_item(slice) ? meta_of_lazy(x) : Py_NewRef(Py_None);
    if (meta != NULL && PyArray_Check(meta) && PyArray_NDIM((PyArrayObject *)meta) > 0 && PySlice_Unpack(slice, &start, &stop, &step) == 0) {
        const Py_ssize_t length = PyArray_DIM((PyArrayObject *)meta, 0);
        bytes = times(bytes_of((PyArrayObject *)meta) / (length | 1), PySlice_AdjustIndices(length, &start, &stop, step));
    }
    Py_XDECREF(meta);
    return PyErr_Occurred() ? -1 : bytes <= small_bytes;
}

/* The same of ``x[index] = value`` of what the device has. What it has of the value, too, does not count. */
static int
note_assigned(PyObject *x, PyObject *index, PyObject *value)
{
    const int is_tuple = PyTuple_CheckExact(index);
    PyObject *storage = Py_TYPE(x) == types.LazyNdarray ? storage_by_now(x) : NULL;
    if (small_bytes == 0 || storage == NULL || Py_TYPE(storage) != types.Storage)
        return 0;
    int lacking = 0, whole_numbers = 0, others = 0;
    for (Py_ssize_t i = 0; i < (is_tuple ? PyTuple_GET_SIZE(index) : 1); i++) {
        PyObject *item = is_tuple ? PyTuple_GET_ITEM(index, i) : index;
        others += !PyLong_CheckExact(item) && !PySlice_Check(item);
        whole_numbers += PyLong_CheckExact(item);
    }
    if (others != 0 && (others = names_few(x, index)) <= 0)
        return others;
    if (whole_numbers == 0 && others == 0 && (run.ones >= 0 || is_tuple || (others = sees_few(x, index)) <= 0))
        return others;      /* between elements and rows a short slice is as one of them */
    const int small = has_small(value, small_bytes, NULL, &lacking, 0);
    return small < 0 ? -1 : small == 1 && lacking == 0 ? note_one(x, storage, 1) : 0;
}

/* Notes that an array is used where the host could have gone on: an element or a row of it is taken, or it is beside arrays that the host
alone has, which are sent to it (`beside`: the bytes up to which it counts as small there, or 0). A small one of which there are many such uses is fetched, once after each write: the next ones are on the
host, and so is what comes of them. Whether it was; -1: an error. */
static int
note_taken(PyObject *x, PyObject *meta, Py_ssize_t beside)
{
    PyObject *storage = got(x, X.storage), *writes = NULL, *taken = NULL, *done = NULL;
    if (Py_TYPE(storage) != types.Storage)
        return 0;
    const int medium = beside || small_bytes == 0 ? 0 : is_medium(x, storage);
    if (medium != 0)
        return medium < 0 ? -1 : note_one(x, storage, 0);
    if (bytes_of((PyArrayObject *)meta) > (beside ? beside : small_bytes))
        return 0;
    Py_INCREF(storage);
    int failed = is_on_device_alone(storage), fetched = 0;
    if (failed > 0) {
        failed = (writes = PyObject_GetAttr(storage, text.writes)) == NULL || (taken = PyObject_GetAttr(storage, text.taken)) == NULL;
        const long first = failed ? 0 : (long)(limits.TAKEN + 2) * PyLong_AsLong(writes);
        long count = failed ? 0 : PyLong_AsLong(taken) - first;
        if (!failed && !PyErr_Occurred() && count <= limits.TAKEN) {
            count = count < 0 ? 1 : count + 1;
            Py_SETREF(taken, PyLong_FromLong(first + count));
            failed = taken == NULL || PyObject_SetAttr(storage, text.taken, taken) < 0;
            if (!failed && (fetched = count > limits.TAKEN))
                failed = (done = PyObject_CallFunctionObjArgs(py.fetch_taken, x, beside ? Py_True : Py_False, NULL)) == NULL;
        }
    }
    Py_XDECREF(done);
    Py_XDECREF(taken);
    Py_XDECREF(writes);
    Py_DECREF(storage);
    return failed || PyErr_Occurred() ? -1 : fetched;
}

/* `note_taken` of each array of a call of up to `most` bytes that the device alone has, if the host alone has others. */
static int
note_beside(PyObject *const *many, Py_ssize_t count, Py_ssize_t most)
{
    int hosts = 0, fetched = 0;
    for (Py_ssize_t i = 0; i < count; i++)
        hosts |= Py_TYPE(many[i]) == types.LazyNdarray && storage_by_now(many[i]) == Py_None && PyArray_Check(got(many[i], X.host));
    for (Py_ssize_t i = 0; hosts && i < count && fetched >= 0; i++) {
        PyObject *x = many[i], *storage = Py_TYPE(x) == types.LazyNdarray ? got(x, X.storage) : Py_None, *meta;
        if (Py_TYPE(storage) != types.Storage || got(storage, S.pending) != Py_None || got(storage, S.clean) != Py_True)
            continue;
        if ((meta = meta_of_lazy(x)) == NULL)
            return -1;
        const int done = PyArray_Check(meta) ? note_taken(x, meta, most > small_bytes ? most : small_bytes) : 0;
        fetched = done < 0 ? -1 : fetched | done;
        Py_DECREF(meta);
    }
    return fetched;
}

/* What `has_small` said of two arguments, as of one. */
static inline int
worse(int one, int other)
{
    return other < 0 || one == 1 ? other : other == 0 ? 0 : one;
}

/* A call is not for the host as its arrays are now: fetch them, if it is one of a long run. `many`: its arguments; `more`: others by name,
or NULL; `cost`: what `cost_of` said; `multiplies`: it is a product of matrices. 1: it may be for the host by now; -1: an error. */
static int
note_run(PyObject *const *many, Py_ssize_t count, PyObject *more, int cost, int multiplies)
{
    PyObject *waiting = NULL, *name, *value, *answer;
    const Py_ssize_t most = most_given(cost, multiplies);
    if (cost < 0 || small_bytes == 0 || types.LazyNdarray == NULL)
        return cost < 0 ? -1 : 0;
    for (;;) {
        int small = 1, lacking = 0;
        Py_ssize_t place = 0;
        steps.seen = 0;
        for (Py_ssize_t i = 0; small >= 0 && i < count; i++)
            small = worse(small, has_small(many[i], most, waiting, &lacking, 0));
        while (small >= 0 && more != NULL && PyDict_Next(more, &place, &name, &value))
            small = worse(small, has_small(value, most, waiting, &lacking, 0));
        const int begun = waiting != NULL;
        const double bytes = (double)steps.seen * (cost > 0 ? cost : 1) / (multiplies ? PRODUCTS : 1);
        if (!begun && bytes > (double)small_set)
            note_work(bytes);
        if (begun && small == 1 && lacking > 0)
            break;
        Py_XDECREF(waiting);
        if (small != 1 || begun) {
            if (small == 0) {
                leave_host();
                run.length = run.ones = run.numbers = 0;
                run.enough = ENOUGH;
            }
            return small < 0 ? -1 : small == 1;     /* the host has what it lacked a moment ago, or may use it by now */
        }
        if (lacking == 0)
            return 0;
        run.length++;
        run.since++;
        if (run.credit <= 0 && run.since <= run.needed)
            return note_beside(many, count, most);
        if (run.credit <= 0)
            run.credit = CREDIT;
        if ((waiting = PyList_New(0)) == NULL)
            return -1;
    }
    answer = PyObject_CallFunction(py.fetch_run, "Ol", waiting, run.length);
    Py_DECREF(waiting);
    if (answer == NULL)
        return -1;
    long calls = PyLong_AsLong(answer);
    Py_DECREF(answer);
    run.spent += calls;
    run.credit -= calls;
    if (calls == 0)     /* small arrays are not to be on the host here */
        run.since = run.credit = run.hosted = run.spent = 0;
    else if (run.credit <= 0) {
        run.credit = 1;
        leave_host();
    }
    return PyErr_Occurred() ? -1 : calls > 0;
}
