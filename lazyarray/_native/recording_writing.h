/* Writing in place: what one kernel gives goes to the memory of a view, which the same elements of operands may be.

Only where nothing but the order of the work counts: the array is current on the device alone, and was written on the
current stream. What is otherwise is left to Python, `Storage.write_device` for one. From the first look at the array to
the last note about it no other thread writes it, and if an interrupt comes it is before the launch, or after all notes.
*/

enum { NOT_WRITTEN, WRITTEN, LEFT };    /* LEFT: nothing was done, for it would take longer than what Python does then */

/* -- the array that is written ------------------------------------------------------------------------------------- */

/* What is written: elements of a storage, at a meta; how often the storage had been written when it was first seen; and if that
is known (`reaches`), how far its integers reach then. */
typedef struct { PyObject *storage, *meta, *stream, *writes, *lock; int reaches; Reach reach; } Place;

/* Whether attributes of two objects are equal: 1 or 0; -1: an error. */
static int
is_alike(PyObject *one, PyObject *name, PyObject *other, PyObject *others_name)
{
    PyObject *first = PyObject_GetAttr(one, name), *second = first == NULL ? NULL : PyObject_GetAttr(other, others_name);
    int alike = second == NULL ? -1 : same(first, second);
    Py_XDECREF(second);
    Py_XDECREF(first);
    return alike;
}

/* Whether the bytes are current on the device alone; -1: an error. */
static int
is_on_device_alone(PyObject *storage)
{
    int alone = is_set_to(storage, text.mirror, Py_None);
    return alone == 0 ? is_set_to(storage, text.device_only, Py_True) : alone;
}

/* Whether nobody else uses the memory of a storage on a stream of his own: it is not held, or by a library that computes on
ours; -1: an error. */
static int
is_in_order(PyObject *storage)
{
    if (!is_held(storage))
        return 1;
    int partners = PyObject_IsTrue(py.partners);
    if (partners != 0)
        return partners < 0 ? -1 : 0;
    int ours = is_ours(storage);
    if (ours != 0 || got(storage, S.foreign) != Py_False)
        return ours;
    return is_given(PyObject_CallOneArg(py.all_ended, storage), Py_True);   /* a holder is gone: it is forgotten */
}

/* Whether the bytes are current on the device alone, were written on this stream, and no other stream uses them; -1: an error. */
static int
is_open(PyObject *storage, PyObject *stream)
{
    if (got(storage, S.clean) != Py_True || got(storage, S.pending) != Py_None)
        return 0;
    int ordered = is_in_order(storage);
    if (ordered <= 0)
        return ordered;
    PyObject *written = Py_NewRef(got(storage, S.stream));
    int alike = same(written, stream);
    Py_DECREF(written);
    int alone = alike > 0 ? is_on_device_alone(storage) : alike;
    if (alone <= 0)
        return alone;
    PyObject *joined = PyObject_GetAttr(storage, text.joined);
    int read = joined == NULL ? -1 : !PyTuple_CheckExact(joined) || PyTuple_GET_SIZE(joined) > 0;
    Py_XDECREF(joined);
    return read < 0 ? -1 : !read;
}

/* Whether no two elements of an ndarray share bytes, by their strides; and whether NumPy lets them be written, unasked. */
static int
is_writable(PyArrayObject *meta)
{
    const int ndim = PyArray_NDIM(meta), flags = PyArray_FLAGS(meta);
    npy_intp reach = PyArray_ITEMSIZE(meta), last = 0;
    if (!(flags & NPY_ARRAY_WRITEABLE) || ((unsigned)flags & 1u << 31))
        return 0;
    if (flags & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS))
        return 1;
    for (int done = 0; done < ndim; done++) {       /* from the shortest stride on */
        int next = -1;
        for (int i = 0; i < ndim; i++) {
            npy_intp stride = PyArray_STRIDE(meta, i), found = stride < 0 ? -stride : stride;
            if (PyArray_DIM(meta, i) > 1 && found > last) {
                npy_intp best = next < 0 ? 0 : PyArray_STRIDE(meta, next);
                if (next < 0 || found < (best < 0 ? -best : best))
                    next = i;
                else if (found == (best < 0 ? -best : best))
                    return 0;
            }
            else if (PyArray_DIM(meta, i) > 1 && found == 0)
                return 0;
        }
        if (next < 0)
            break;
        last = PyArray_STRIDE(meta, next) < 0 ? -PyArray_STRIDE(meta, next) : PyArray_STRIDE(meta, next);
        if (last < reach)
            return 0;
        reach += last * (PyArray_DIM(meta, next) - 1);
    }
    return 1;
}

/* The whole of a lazy array as a place: 1, or 0 if it is for Python, or -1 with an error. `leave_place` is called in any case.
As long as the place has the storage, nobody takes that away from the lazy array. */
static int
find_place(Place *place, PyObject *x)
{
    PyObject *storage = got(x, X.storage), *profiler = PyDict_GetItemWithError(py.trace, text.ranges);
    *place = (Place){.storage = Py_NewRef(storage)};
    if (profiler == NULL && PyErr_Occurred())
        return -1;
    if (Py_TYPE(storage) != types.Storage || (profiler != NULL && profiler != Py_None))
        return 0;
    place->meta = meta_of_lazy(x);
    return place->meta == NULL ? -1 : PyArray_Check(place->meta) && got(x, X.storage) == storage;
}

/* The first look at a place, before what is written is read: the same answers. `whole`: it is only taken over. */
static int
see_place(Place *place, int whole)
{
    PyObject *storage = place->storage, *meta = place->meta;
    if (whole)
        return (place->writes = PyObject_GetAttr(storage, text.writes)) == NULL ? -1 : 1;
    if (!is_writable((PyArrayObject *)meta) || PyArray_SIZE((PyArrayObject *)meta) == 0)
        return 0;
    int alone = is_alone(got(storage, S.device));
    if (alone <= 0)
        return alone;
    if ((place->stream = PyObject_CallMethodNoArgs(got(storage, S.device), text.stream)) == NULL
            || (place->writes = PyObject_GetAttr(storage, text.writes)) == NULL)
        return -1;
    return is_open(storage, place->stream);
}

/* Whether a place was not written since it was first seen; else what was read may be what was there before. */
static int
is_unwritten(const Place *place)
{
    PyObject *writes = PyObject_GetAttr(place->storage, text.writes);
    int alike = writes == NULL ? -1 : same(writes, place->writes);
    Py_XDECREF(writes);
    return alike;
}

/* From here on other threads' statements wait: the same answers, 0 also if another thread is at one, or has been. No lock is
waited for: whoever has it may wait for one that this thread has. */
static int
lock_place(Place *place)
{
    PyObject *lock = PyObject_GetAttr(place->storage, text._lock);
    if (lock == Py_None)
        Py_SETREF(lock, PyObject_GetAttr(place->storage, text.lock));
    PyObject *held = lock == NULL ? NULL : PyObject_CallMethodOneArg(lock, text.acquire, Py_False);
    if (held != Py_True) {
        Py_XDECREF(lock);
        Py_XDECREF(held);
        return held == NULL ? -1 : 0;
    }
    Py_DECREF(held);
    place->lock = lock;
    return is_unwritten(place);
}

static int
leave_place(Place *place)
{
    int failed = place->lock == NULL ? 0 : unlocked(place->lock);
    Py_CLEAR(place->lock);
    Py_CLEAR(place->stream);
    Py_CLEAR(place->writes);
    Py_CLEAR(place->meta);
    Py_CLEAR(place->storage);
    return failed;
}

/* What a statement reads besides, each storage once: nobody writes to it from then on until the statement is over. */
#define MOST_READ (MOST_OPERANDS + 1)       /* a value, and positions along three axes */
typedef struct { Place at[MOST_READ]; int count; } Reads;

static int
note_read(Reads *reads, const Place *written, PyObject *x)
{
    PyObject *storage = Py_TYPE(x) == types.LazyNdarray ? got(x, X.storage) : Py_None;
    for (int i = 0; i < reads->count; i++)
        if (reads->at[i].storage == storage)
            return 0;
    if (Py_TYPE(storage) != types.Storage || storage == written->storage || reads->count == MOST_READ)
        return 0;
    Place *read = &reads->at[reads->count++];
    *read = (Place){.storage = Py_NewRef(storage)};
    return (read->writes = PyObject_GetAttr(storage, text.writes)) == NULL ? -1 : 0;
}

static int
leave_reads(Reads *reads)
{
    int failed = 0;
    while (reads->count > 0)
        failed |= leave_place(&reads->at[--reads->count]);
    return failed;
}

/* Begin to write what was read: the same answers. `whole`: it is only taken over. */
static int
open_place(Place *place, Reads *reads, int whole)
{
    int done = lock_place(place);
    for (int i = 0; done > 0 && i < reads->count; i++) {
        PyObject *storage = reads->at[i].storage;
        done = lock_place(&reads->at[i]);
        /* What the host has written since is no write that is counted. */
        if (done > 0 && got(storage, S.pending) == Py_None && got(storage, S.clean) != Py_True)
            done = 0;
    }
    if (done > 0 && !whole && (done = is_open(place->storage, place->stream)) > 0)
        done = is_unwritten(place);     /* by a signal handler of this thread, which has the lock, within that look */
    return done;
}

#define FEW_STEPS 4

/* Whether a value waits, and is much work: to find out how far that reaches takes as long as to write it. */
static int
is_long(PyObject *value)
{
    PyObject *storage = home_of_lazy(value), *node = Py_TYPE(storage) == types.Storage ? got(storage, S.pending) : Py_None;
    return Py_TYPE(node) == types.Node && PyLong_AsLong(got(node, N.steps)) > FEW_STEPS;
}

/* How far the integers of a place reach once a value is there, too, as far as that is known of both: 0, or -1 with an error. */
static int
keep_reach(Place *place, PyObject *value)
{
    PyArray_Descr *dtype = PyArray_DESCR((PyArrayObject *)place->meta);
    Reach one = {0, 0, 0}, other = one;
    if (strchr("iu", dtype->kind) == NULL)
        return 0;
    if (Py_TYPE(value) == types.LazyScalar && got(value, V.value) != Py_None)
        value = got(value, V.value);
    int known = find_reach(place->storage, (PyObject *)dtype, &one);
    if (known > 0 && (PyLong_CheckExact(value) || (PyArray_IsScalar(value, Integer) && !PyArray_IsScalar(value, Timedelta)
                                                   && !PyType_HasFeature(Py_TYPE(value), Py_TPFLAGS_HEAPTYPE)))) {
        known = size_of(value, &other.low);
        other.high = other.low;
    }
    else if (known > 0 && Py_TYPE(value) == types.LazyNdarray && PyArray_Check(got(value, X.host)) && got(value, X.storage) == Py_None)
        known = reach_on_host((PyArrayObject *)got(value, X.host), &other);
    else if (known > 0)
        known = is_long(value) ? 0 : reach_of(value, &other);
    if (known > 0 && PyDataType_ELSIZE(dtype) < (npy_intp)sizeof(Py_ssize_t)) {     /* what does not fit is cast to another number */
        const Py_ssize_t half = (Py_ssize_t)1 << (8 * PyDataType_ELSIZE(dtype) - 1);
        known = dtype->kind == 'i' ? other.low >= -half && other.high < half : other.low >= 0 && other.high - half < half;
    }
    else if (known > 0 && dtype->kind == 'u')
        known = other.low >= 0;
    place->reaches = known > 0;
    place->reach = (Reach){one.low < other.low ? one.low : other.low, one.high > other.high ? one.high : other.high, 0, one.asked};
    return known < 0 ? -1 : 0;
}

/* From now on nothing is known of a storage but how far its integers reach, and what `more` names, if it is not NULL; -1: an error. */
static int
note_bounds(PyObject *storage, Py_ssize_t low, Py_ssize_t high, PyObject *dtype, PyObject *more)
{
    PyObject *writes = PyObject_GetAttr(storage, text.writes);
    PyObject *facts = writes == NULL ? NULL : Py_BuildValue("(O{O:(nnO)})", writes, text.bounds, low, high, dtype);
    const int failed = facts == NULL || (more != NULL && PyDict_SetItem(PyTuple_GET_ITEM(facts, 1), more, Py_True) < 0)
        || PyObject_SetAttr(storage, text.facts, facts) < 0;
    Py_XDECREF(facts);
    Py_XDECREF(writes);
    return failed ? -1 : 0;
}

/* What was written is noted: 0, or -1 with an error. An exception stays the one that is raised. */
static int
note_written(Place *place)
{
    PyObject *kind, *value, *trace, *storage = place->storage, *writes = NULL, *more = NULL;
    PyErr_Fetch(&kind, &value, &trace);
    int alone = is_set_to(storage, text.mirror, Py_None), failed = alone < 0;
    if (alone > 0) {
        int unread = is_set_to(storage, text.reads, zero);
        failed = unread < 0 || (unread == 0 && PyObject_SetAttr(storage, text.reads, zero) < 0)
            || (writes = PyObject_GetAttr(storage, text.writes)) == NULL || (more = PyNumber_Add(writes, unit)) == NULL
            || PyObject_SetAttr(storage, text.writes, more) < 0;
        put(storage, S.used, now);
        int partners = is_held(storage) ? PyObject_IsTrue(py.partners) : 0;
        failed |= partners < 0;
        if (!partners)
            put(storage, S.clean, Py_True);     /* as before: nothing but this write was under way */
    }
    if (!failed && alone == 0)      /* bytes of it are, or were, on the host */
        failed = told(PyObject_CallMethodOneArg(storage, text.written, place->meta)) < 0;
    if (place->reaches && !failed && kind == NULL)
        failed = note_bounds(storage, place->reach.low, place->reach.high, (PyObject *)PyArray_DESCR((PyArrayObject *)place->meta),
                             place->reach.asked ? text.derived : NULL) < 0;
    Py_XDECREF(writes);
    Py_XDECREF(more);
    if (kind != NULL || !failed)
        PyErr_Restore(kind, value, trace);
    return failed ? -1 : 0;
}

/* The device array of what is written: a new reference. */
static PyObject *
target_of(const Place *place, PyObject *array)
{
    PyObject *root = got(place->storage, S.root);
    if (array != Py_None)
        return Py_NewRef(array);
    if (place->meta != got(place->storage, S.root_view))
        return device_view_of(place->storage, place->meta);
    return root != Py_None ? Py_NewRef(root) : PyObject_CallMethodOneArg(place->storage, text.device_view, place->meta);
}

/* The storage is clean no more: who has begun to read it on another stream until then read before what is written now. */
static int
join_readers(PyObject *storage)
{
    PyObject *joined = PyObject_GetAttr(storage, text.joined);
    int read = joined == NULL ? -1 : PyTuple_CheckExact(joined) && PyTuple_GET_SIZE(joined) > 0;
    Py_XDECREF(joined);
    return read > 0 ? done(storage, text.join_all) : read;
}

/* ``work(target)``, or ``device.put_at(target, *work)`` if that is a tuple of four, ``device.ufunc_at`` with the target behind the
first if it is one of five, and without it ``device.assign(target, value)``: 0, or -1 with an error. */
static int
write_to(Place *place, PyObject *target, PyObject *work, PyObject *value)
{
    PyObject *storage = place->storage, *device = got(storage, S.device), *done = NULL;
    put(storage, S.clean, Py_False);    /* before the look at who reads it: who comes later waits until it is written */
    if (join_readers(storage) < 0)
        goto end;
    if (got(storage, S.readers) != Py_None && told(PyObject_CallOneArg(py.changing, storage)) < 0)
        goto end;
    if (work != NULL && PyTuple_CheckExact(work) && PyTuple_GET_SIZE(work) == 5)
        done = PyObject_CallMethodObjArgs(device, text.ufunc_at, PyTuple_GET_ITEM(work, 0), target, PyTuple_GET_ITEM(work, 1),
                                          PyTuple_GET_ITEM(work, 2), PyTuple_GET_ITEM(work, 3), PyTuple_GET_ITEM(work, 4), NULL);
    else if (work != NULL && PyTuple_CheckExact(work))
        done = PyObject_CallMethodObjArgs(device, text.put_at, target, PyTuple_GET_ITEM(work, 0), PyTuple_GET_ITEM(work, 1),
                                          PyTuple_GET_ITEM(work, 2), PyTuple_GET_ITEM(work, 3), NULL);
    else if (work != NULL)
        done = PyObject_CallOneArg(work, target);
    else
        done = PyObject_CallMethodObjArgs(device, text.assign, target, value, NULL);
end:
    if (done == NULL)
        tell_failed(device);
    Py_XDECREF(done);
    return note_written(place) < 0 || done == NULL ? -1 : 0;
}

static int
assign_to(Place *place, PyObject *target, PyObject *value)
{
    return write_to(place, target, NULL, value);
}

/* -- a chain, and what it is written to ---------------------------------------------------------------------------- */

static int
is_in(const Chain *chain, PyObject *node)
{
    for (int i = 0; i < chain->nodes; i++)
        if (chain->node[i] == node)
            return 1;
    return 0;
}

/* Whether a node that waits and is not of the chain is among those that a list refers to. */
static int
is_read_elsewhere(const Chain *chain, PyObject *readers)
{
    int found = 0;
    if (!PyList_CheckExact(readers))
        return 0;
    for (Py_ssize_t i = 0; !found && i < PyList_GET_SIZE(readers); i++) {
        PyObject *reader = referent(PyList_GET_ITEM(readers, i));
        found = reader != NULL && Py_TYPE(reader) == types.Node && got(reader, N.array) == Py_None && !is_in(chain, reader);
        Py_XDECREF(reader);
    }
    return found;
}

/* Whether two device arrays are the same elements; -1: an error. */
static int
is_same_place(PyObject *one, PyObject *other)
{
    uint64_t first, second;
    int alike = is_alike(one, text.shape, other, text.shape);
    if (alike > 0)
        alike = is_alike(one, text.strides, other, text.strides);
    if (alike <= 0)
        return alike;
    if (address_of(one, text.data, text.ptr, &first) < 0 || address_of(other, text.data, text.ptr, &second) < 0)
        return -1;
    return first == second;
}

/* Whether each thread of a kernel reads no element of what is written but its own; -1: an error. */
static int
reads_its_own(const Chain *chain, PyObject *storage, PyObject *target)
{
    for (int i = 0; i < chain->inputs; i++) {
        PyObject *source = chain->source[i], *array = chain->argument[i];
        if (source == NULL || (array == target && chain->mode[i] != text.table) || (array != got(storage, S.root)
                && (Py_TYPE(source) != types.Leaf || got(source, L.storage) != storage)))
            continue;
        int own = chain->mode[i] == text.table ? 0 : is_same_place(array, target);     /* elements anywhere of that */
        if (own == 0)
            own = truth_of(PyObject_CallMethodObjArgs(got(storage, S.device), text.are_apart, array, target, NULL));
        if (own <= 0)
            return own;
    }
    return 1;
}

/* What launches, once it has written: 1; 0 if it has not; -1: an error. No Python code runs between the launch and the
return. `results`: the arrays of the other outputs. */
static int
launch_into(PyObject *kernel, PyObject *arguments, PyObject *shape, PyObject *fortran, PyObject **results)
{
    PyObject *launch = PyObject_GetAttr(kernel, text.launch), *found = NULL;
    int done = launch == NULL ? -1 : 0;
    for (int turn = 0; done == 0 && launch != Py_None && turn < 2; turn++) {
        if ((found = PyObject_CallFunctionObjArgs(launch, arguments, shape, fortran, NULL)) == NULL)
            done = -1;
        else if (PyList_CheckExact(found))
            done = 1;
        else if (PyTuple_CheckExact(found) && PyTuple_GET_SIZE(found) == 4) {
            /* A simulated device: a function in C, where it writes to, what it writes, and the other outputs. */
            done = told(PyObject_CallFunctionObjArgs(PyTuple_GET_ITEM(found, 0), PyTuple_GET_ITEM(found, 1),
                                                     PyTuple_GET_ITEM(found, 2), NULL)) < 0 ? -1 : 1;
            Py_SETREF(found, Py_NewRef(PyTuple_GET_ITEM(found, 3)));
        }
        else if (turn == 0) {
            int possible = truth_of(PyObject_CallMethodObjArgs(kernel, text.prepare, arguments, shape, fortran, NULL));
            if (possible <= 0) {
                done = possible;
                break;
            }
            Py_CLEAR(found);
        }
    }
    if (done == 1)
        *results = found;
    else
        Py_XDECREF(found);
    Py_XDECREF(launch);
    return done;
}

/* Compute a node, and write its value to a place that is open. The caller holds the graphs' lock.

WRITTEN, or NOT_WRITTEN: then the node has its array, which is to be assigned, or has nothing, if it was not even looked
at; or LEFT, where a step of its own has no kernel yet; or FAILED. */
static int
write_chain(PyObject *node, Place *place, PyObject *target)
{
    PyObject *storage = place->storage, *device = got(storage, S.device), *arguments = NULL, *program = NULL;
    PyObject *kernel = NULL, *results = NULL, *list = NULL, *shape = NULL, *fortran = NULL;
    Chain chain;
    int kept = 0, outputs[MOST_NODES + 1], done = NOT_WRITTEN, written = 0;
    int with_partners = PyObject_IsTrue(py.partners), is_fortran = got(node, N.fortran) == Py_True;
    PyObject *dense = PyObject_GetAttr(target, is_fortran ? text._f_contiguous : text._c_contiguous);
    if (dense == NULL)
        return FAILED;
    const int flat = dense == Py_True;
    Py_DECREF(dense);
    if (with_partners < 0 || tick() < 0 || gather(&chain, node) == FAILED)
        return FAILED;
    if (got(node, N.array) != Py_None || chain.inputs == MOST_INPUTS || got(node, N.device) != device)
        return NOT_WRITTEN;
    /* What somebody holds, or reads elsewhere, is an output, too. */
    for (int i = 0; i < chain.nodes; i++) {
        PyObject *home = home_of(chain.node[i]);
        if (home != NULL || is_read_elsewhere(&chain, got(chain.node[i], N.readers)))
            outputs[kept++] = i;
        Py_XDECREF(home);
    }
    if (chain.shape != NULL || !flat) {
        int alike = chain.shape == NULL ? 1 : chain.fortran == got(node, N.fortran) ? same(chain.shape, got(node, N.shape)) : 0;
        if (alike < 0 || (!alike && !flat))
            return alike;
        if (alike) {    /* else the place is written in the order of memory, along the axes of what is read */
            chain.shape = got(node, N.shape);
            chain.fortran = got(node, N.fortran);
        }
    }
    outputs[kept] = chain.nodes - 1;
    chain.argument[chain.inputs] = target;
    chain.mode[chain.inputs] = flat ? text.flat : text.strided;
    chain.source[chain.inputs++] = NULL;
    hold(&chain);
    form_of(&chain, node, &shape, &fortran);
    if (is_read_elsewhere(&chain, got(storage, S.readers)) || !are_here(&chain, place->stream, with_partners))
        goto end;
    int own = reads_its_own(&chain, storage, target);
    if (own <= 0) {
        done = own < 0 ? FAILED : done;
        goto end;
    }
    done = FAILED;
    if ((program = program_of(&chain, outputs, kept + 1, 1)) == NULL
            || (arguments = list_of(chain.argument, chain.inputs)) == NULL
            || (kernel = kernel_for(device, program, got(node, N.size))) == NULL)
        goto end;
    if (kernel == Py_None && chain.nodes == 1 && kept == 0) {
        done = LEFT;
        goto end;
    }
    /* Looked at once more: others may have recorded what reads it. From here on they wait until it is written. */
    if (kernel != Py_None && got(storage, S.clean) == Py_True && !is_read_elsewhere(&chain, got(storage, S.readers))) {
        put(storage, S.clean, Py_False);
        written = join_readers(storage) < 0 ? -1 : launch_into(kernel, arguments, shape, fortran, &results);
        if (note_written(place) < 0 || written < 0)
            goto end;
    }
    if (!written) {
        if (chain.nodes == 1 && kept == 0) {
            done = LEFT;
            goto end;
        }
        if ((list = PyList_New(kept + 1)) == NULL)
            goto end;
        for (int i = 0; i <= kept; i++)
            PyList_SET_ITEM(list, i, Py_NewRef(chain.node[outputs[i]]));
        results = PyObject_CallFunctionObjArgs(py.unfused, device, program, arguments, shape, fortran, list, NULL);
        if (results == NULL)
            goto end;
    }
    if (!PyList_CheckExact(results) || PyList_GET_SIZE(results) != kept + !written) {
        PyErr_SetString(PyExc_TypeError, "a kernel gives a list of its outputs");
        goto end;
    }
    for (int i = 0; i < kept + !written; i++)
        if (settle(chain.node[outputs[i]], PyList_GET_ITEM(results, i), place->stream, shape, fortran) < 0)
            goto end;
    done = written ? WRITTEN : NOT_WRITTEN;
end:
    Py_XDECREF(results);
    Py_XDECREF(list);
    Py_XDECREF(kernel);
    Py_XDECREF(program);
    Py_XDECREF(arguments);
    Py_XDECREF(shape);
    Py_XDECREF(fortran);
    drop_chain(&chain);
    return done;
}

/* `write_chain`, with the graphs' lock. */
static int
write_node(PyObject *node, Place *place, PyObject *target)
{
    PyObject *lock = acquired(PyObject_GetAttr((PyObject *)types.Node, text.lock));
    int done = lock == NULL ? FAILED : write_chain(node, place, target);
    if (done == FAILED)
        tell_failed(got(place->storage, S.device));
    if (lock != NULL && unlocked(lock) < 0)
        done = FAILED;
    Py_XDECREF(lock);
    return done;
}

/* A node is computed, and its value assigned: 1; 0: another thread has computed it, on another stream, or a signal handler has written
to the place meanwhile, which the node may have read before; -1: an error. */
static int
assign_node(PyObject *node, Place *place, PyObject *target)
{
    if (got(node, N.array) == Py_None && compute_alone(node) < 0)
        return -1;
    const int unwritten = is_unwritten(place);
    if (unwritten <= 0 || got(node, N.stream) != place->stream)
        return unwritten < 0 ? -1 : 0;
    PyObject *array = Py_NewRef(got(node, N.array));
    int done = assign_to(place, target, array);
    Py_DECREF(array);
    return done < 0 ? -1 : 1;
}

/* -- what becomes another array ------------------------------------------------------------------------------------ */

#define MOST_LEAVES 32

/* The leaves that refer to the storage of a lazy array, each once: those of recorded work, and its own; -1: too many. */
static Py_ssize_t
count_leaves(PyObject *x, PyObject *storage)
{
    PyObject *found[MOST_LEAVES], *readers = got(storage, S.readers), *own = got(x, X.leaf);
    Py_ssize_t count = 0;
    if (Py_TYPE(own) == types.Leaf && got(own, L.storage) == storage)
        found[count++] = own;
    for (Py_ssize_t i = 0; PyList_CheckExact(readers) && i < PyList_GET_SIZE(readers); i++) {
        PyObject *node = referent(PyList_GET_ITEM(readers, i));
        PyObject *operands = node == NULL || Py_TYPE(node) != types.Node ? no_arguments : got(node, N.operands);
        for (Py_ssize_t k = 0; count >= 0 && k < PyTuple_GET_SIZE(operands); k++) {
            PyObject *leaf = PyTuple_GET_ITEM(operands, k);
            if (Py_TYPE(leaf) != types.Leaf || got(leaf, L.storage) != storage)
                continue;
            Py_ssize_t known = 0;
            while (known < count && found[known] != leaf)
                known++;
            if (known == count)
                count = count == MOST_LEAVES ? -1 : count + 1;
            if (count > 0 && known == count - 1)
                found[known] = leaf;
        }
        Py_XDECREF(node);
    }
    return count;
}

/* Let a lazy array become what was recorded, if it is the whole of its memory, and only recorded work looks at that: 1;
0: it is not; -1: an error. `read`: the place that was read, and `reads` what else was. */
static int
become_recorded(PyObject *x, PyObject *result, Place *read, Reads *reads)
{
    PyObject *storage = got(x, X.storage), *meta = got(x, X.meta), *fresh = got(result, X.storage);
    if (storage != read->storage || Py_TYPE(fresh) != types.Storage || got(x, X.base) != Py_None || meta == Py_None
            || meta != got(storage, S.root_view) || !PyArray_Check(meta)
            || !(PyArray_FLAGS((PyArrayObject *)meta) & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS)))
        return 0;
    if (got(storage, S.pending) == Py_None) {
        int free = got(storage, S.clean) != Py_True || is_held(storage) ? 0 : is_on_device_alone(storage);
        if (free > 0)
            free = is_set_to(storage, text.compacts, Py_None);
        if (free <= 0)
            return free;
    }
    PyObject *view = got(fresh, S.root_view);
    const int whole = got(result, X.meta) == view && PyArray_Check(view);
    int locked = open_place(read, reads, 1);
    if (locked <= 0)
        return locked;
    Py_ssize_t leaves = count_leaves(x, storage);       /* from here on no Python code runs */
    if (leaves < 0 || got(x, X.storage) != storage)
        return 0;
    if (got(storage, S.pending) == Py_None && (got(storage, S.clean) != Py_True || is_held(storage)))
        return 0;       /* before the lock was there, somebody got an alias or a pointer, or the host wrote it */
    Py_CLEAR(read->storage);        /* `x` has it, and perhaps nobody else */
    if (!whole || PyArray_NDIM((PyArrayObject *)view) != PyArray_NDIM((PyArrayObject *)meta)
            || !PyArray_CompareLists(PyArray_STRIDES((PyArrayObject *)view), PyArray_STRIDES((PyArrayObject *)meta),
                                     PyArray_NDIM((PyArrayObject *)meta)))
        return takes_over(x, leaves, fresh);
    Py_INCREF(view);
    put(fresh, S.root_view, meta);      /* so that one thing alone changes in `x` */
    int done = takes_over(x, leaves, fresh);
    if (!done)
        put(fresh, S.root_view, view);
    Py_DECREF(view);
    return done;
}

/* Before a lazy array of integers that wait becomes another one: how far they reach, which its storage alone may know. */
static int
keep_range(PyObject *x, const Place *place)
{
    Reach reach;
    PyObject *dtype = (PyObject *)PyArray_DESCR((PyArrayObject *)place->meta);
    int known = strchr("iu", ((PyArray_Descr *)dtype)->kind) == NULL || got(place->storage, S.pending) == Py_None
        ? 0 : find_reach(place->storage, dtype, &reach);
    PyObject *kept = known > 0 ? PyObject_CallOneArg(py.keep_range, x) : NULL;
    Py_XDECREF(kept);
    return known < 0 || PyErr_Occurred() ? -1 : 0;
}

/* How far the integers of a place reach once a node is there, if that is known of what is there now, and was asked for: to find
it out takes ten microseconds. 0, or -1 with an error. */
static int
reach_of_update(Place *place, PyObject *node)
{
    PyArray_Descr *dtype = PyArray_DESCR((PyArrayObject *)place->meta);
    Reach one;
    int known = strchr("iu", dtype->kind) == NULL ? 0 : find_reach(place->storage, (PyObject *)dtype, &one);
    PyObject *range = known > 0 && one.asked ? PyObject_CallOneArg(py.range_of, node) : NULL;
    if (range != NULL && PyTuple_CheckExact(range) && PyTuple_GET_SIZE(range) == 2) {
        known = size_of(PyTuple_GET_ITEM(range, 0), &place->reach.low);
        if (known > 0)
            known = size_of(PyTuple_GET_ITEM(range, 1), &place->reach.high);
        place->reaches = known > 0;
        place->reach.asked = 1;
        if (place->meta != got(place->storage, S.root_view)) {      /* of a part: the others are as they were */
            place->reach.low = one.low < place->reach.low ? one.low : place->reach.low;
            place->reach.high = one.high > place->reach.high ? one.high : place->reach.high;
        }
    }
    Py_XDECREF(range);
    return known < 0 || PyErr_Occurred() ? -1 : 0;
}

/* -- ``x += y`` ---------------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(updated_doc, "updated(ufunc, inputs, out, /)\n--\n\n"
"``ufunc(*inputs, out=out)``, written by a kernel, or recorded where nobody can tell: `out`. None: it is for Python.");

static PyObject *
updated(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 3)
        return mistaken("updated takes a ufunc, a tuple of operands and an output");
    PyObject *ufunc = args[0], *inputs = args[1], *x = args[2], *node = NULL, *target = NULL, *result = NULL, *bytes = NULL;
    if (forked || types.LazyNdarray == NULL || Py_TYPE(x) != types.LazyNdarray || !PyTuple_CheckExact(inputs)
            || PyTuple_GET_SIZE(inputs) < 1 || is_generalised(ufunc))
        Py_RETURN_NONE;
    Place place;
    Reads reads = {.count = 0};
    int known = find_place(&place, x), done = FAILED, waits, alone, open;
    Py_ssize_t least = -1;
    if (known <= 0) {
        leave_place(&place);
        return known < 0 ? NULL : Py_NewRef(Py_None);
    }
    PyObject *storage = place.storage, *meta = place.meta;
    int held = is_held(storage);        /* then what is recorded of it can't wait */
    waits = got(storage, S.pending) != Py_None;        /* then it may become what is made of it */
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); i++) {
        PyObject *one = PyTuple_GET_ITEM(inputs, i), *home = Py_TYPE(one) == types.LazyNdarray ? got(one, X.storage) : Py_None;
        held |= Py_TYPE(home) == types.Storage && is_held(home);
        waits |= Py_TYPE(home) == types.Storage && got(home, S.pending) != Py_None;
        if (note_read(&reads, &place, one) < 0)
            goto end;
    }
    if ((alone = waits ? is_sole(got(storage, S.device)) : 0) < 0)      /* with several, what is written stays where it is */
        goto end;
    const int whole = alone && meta == got(storage, S.root_view) && is_writable((PyArrayObject *)meta) && !held;
    PyObject *before = whole ? Py_None : got(storage, S.pending);
    if (before != Py_None) {
        Py_INCREF(before);
        int failed = compute_alone(before);
        Py_DECREF(before);
        if (failed)
            goto end;
    }
    open = see_place(&place, whole);
    least = open > 0 ? least_bytes(&bytes) : -1;
    int told = least < 0 ? 0 : told_of_errors();
    if (open == 0)
        result = Py_NewRef(Py_None);
    if (open <= 0 || least == -2 || told < 0)
        goto end;
    if (whole && keep_range(x, &place) < 0)
        goto end;
    result = least < 0 || told ? Py_NewRef(Py_None) : recorded_from(ufunc, inputs, meta, least, bytes);
    if (result == NULL || result == Py_None)
        goto end;
    if (whole) {
        int become = Py_TYPE(result) == types.LazyNdarray ? become_recorded(x, result, &place, &reads) : 0;
        PyObject *made = become > 0 && Py_TYPE(got(x, X.storage)) == types.Storage
            ? Py_NewRef(got(got(x, X.storage), S.pending)) : Py_NewRef(Py_None);
        if (Py_TYPE(made) == types.Node && reads_held(made) && compute_alone(made) < 0)    /* lent since then */
            become = -1;
        Py_DECREF(made);
        Py_SETREF(result, become < 0 ? NULL : Py_NewRef(become ? x : Py_None));
        goto end;
    }
    PyObject *home = Py_TYPE(result) == types.LazyNdarray ? got(result, X.storage) : Py_None;
    node = Py_TYPE(home) == types.Storage && got(result, X.meta) == got(home, S.root_view) ? Py_NewRef(got(home, S.pending)) : NULL;
    Py_SETREF(result, Py_NewRef(Py_None));      /* nobody holds the node's own array: its value is for the target alone */
    if (node == NULL || Py_TYPE(node) != types.Node)
        goto end;
    if (reach_of_update(&place, node) < 0) {
        Py_CLEAR(result);
        goto end;
    }
    if ((open = open_place(&place, &reads, 0)) == 0)
        goto end;
    if (open < 0 || (target = target_of(&place, got(x, X.storage) == storage && got(x, X.meta) == meta ? got(x, X.array) : Py_None)) == NULL || (done = write_node(node, &place, target)) == FAILED)
        Py_CLEAR(result);
    else if (done != LEFT) {
        int assigned = done == WRITTEN ? 1 : assign_node(node, &place, target);
        Py_SETREF(result, assigned < 0 ? NULL : Py_NewRef(assigned ? x : Py_None));
    }
end:
    Py_XDECREF(target);
    Py_XDECREF(node);
    Py_XDECREF(bytes);
    if (leave_reads(&reads) | leave_place(&place))
        Py_CLEAR(result);
    return result;
}

/* -- ``x[index] = value`` ------------------------------------------------------------------------------------------ */

/* Whether an item of an index is a whole number, a slice of such, a new axis or an Ellipsis. */
static int
is_plain_item(PyObject *item)
{
    if (!PySlice_Check(item))
        return item == Py_None || item == Py_Ellipsis || PyLong_CheckExact(item);
    const PySliceObject *slice = (PySliceObject *)item;
    return (slice->start == Py_None || PyLong_CheckExact(slice->start)) && (slice->stop == Py_None || PyLong_CheckExact(slice->stop))
        && (slice->step == Py_None || PyLong_CheckExact(slice->step));
}

/* The meta of what a basic index of plain slices, whole numbers, new axes and an Ellipsis sees: a new reference. NULL
without an error: it is another index, or out of bounds. */
static PyObject *
part_of(PyObject *meta, PyObject *index)
{
    PyObject *plain = NULL, *part = NULL;
    int sees = 0;
    if (!PyTuple_CheckExact(index)) {
        PyObject *one = PyTuple_Pack(1, index);
        part = one == NULL ? NULL : part_of(meta, one);
        Py_XDECREF(one);
        return part;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(index); i++) {
        if (!is_plain_item(PyTuple_GET_ITEM(index, i)))
            return NULL;
        sees |= PyTuple_GET_ITEM(index, i) == Py_Ellipsis;
    }
    if (sees)
        plain = Py_NewRef(index);
    else if ((plain = PyTuple_New(PyTuple_GET_SIZE(index) + 1)) != NULL) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(index); i++)
            PyTuple_SET_ITEM(plain, i, Py_NewRef(PyTuple_GET_ITEM(index, i)));
        PyTuple_SET_ITEM(plain, PyTuple_GET_SIZE(index), Py_NewRef(Py_Ellipsis));
    }
    part = plain == NULL ? NULL : PyObject_GetItem(meta, plain);
    Py_XDECREF(plain);
    if (part == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_IndexError))
        PyErr_Clear();
    if (part != NULL && !PyArray_Check(part))
        Py_CLEAR(part);
    return part;
}

static int
has_dtype_of(PyArrayObject *one, PyArray_Descr *dtype)
{
    return PyArray_DESCR(one) == dtype || PyArray_EquivTypes(PyArray_DESCR(one), dtype);
}

/* Whether the device holds such numbers. */
static inline int
is_holdable(PyArrayObject *array)
{
    int number = PyArray_TYPE(array);
    return ((number >= NPY_BOOL && number <= NPY_DOUBLE) || number == NPY_CFLOAT || number == NPY_CDOUBLE || number == NPY_HALF)
        && PyArray_ISNBO(PyArray_DESCR(array)->byteorder);
}

/* Whether NumPy casts what is assigned without a word: it warns of complex numbers that become real. */
static int
is_castable(PyArrayObject *value, PyArrayObject *part)
{
    return is_holdable(value) && is_holdable(part) && (PyArray_ISCOMPLEX(part) || !PyArray_ISCOMPLEX(value));
}

/* Whether an ndarray has the shape and the dtype of another one (1), or only the shape (2), or is broadcast to it (3), and cast. */
static int
fits_into(PyArrayObject *value, PyArrayObject *part)
{
    const int ndim = PyArray_NDIM(value), most = PyArray_NDIM(part), same_dtype = has_dtype_of(value, PyArray_DESCR(part));
    if (!same_dtype && !is_castable(value, part))
        return 0;
    if (ndim == most && PyArray_CompareLists(PyArray_DIMS(value), PyArray_DIMS(part), ndim) && (same_dtype || PyArray_SIZE(value) > 0))
        return same_dtype ? 1 : 2;
    if (ndim > most || (ndim == 0 && most > 0) || PyArray_SIZE(value) == 0)
        return 0;
    for (int i = 0; i < ndim; i++)
        if (PyArray_DIM(value, i) != 1 && PyArray_DIM(value, i) != PyArray_DIM(part, most - ndim + i))
            return 0;
    return 3;
}

/* What casts the value of a node to a dtype, recorded: a new reference; NULL without an error where that is not known. */
static PyObject *
cast_to(PyObject *node, PyArray_Descr *dtype)
{
    Form form;
    PyObject *made = NULL, *step = PyObject_CallFunctionObjArgs(py.cast, got(node, N.dtype), dtype, NULL);
    if (step == NULL || Py_TYPE(step) != types.Step)
        goto end;
    SEE_AS(form, node, N);
    made = cast_node(got(node, N.device), step, Py_NewRef(node), &form, PyLong_AsLong(got(node, N.steps)) + 1,
                     got(node, N.large), got(node, N.strided));
    Py_DECREF(form.shape);
    Py_DECREF(form.fortran);
    Py_DECREF(form.size);
    Py_DECREF(form.dtype);
end:
    Py_XDECREF(step);
    return made;
}

/* A number as the dtype has it: a new reference; NULL without an error where NumPy might not take it as it is. */
static PyObject *
number_for(PyArrayObject *part, PyObject *value)
{
    const int type = PyArray_TYPE(part);
    if (PyObject_TypeCheck(value, types.generic)) {
        PyArray_Descr *dtype = PyArray_DescrFromScalar(value);
        int alike = dtype == NULL ? 0 : has_dtype_of(part, dtype);
        Py_XDECREF(dtype);
        return alike ? Py_NewRef(value) : NULL;
    }
    int fits = PyFloat_CheckExact(value) ? type == NPY_DOUBLE || type == NPY_CDOUBLE
        : PyLong_CheckExact(value) ? type == NPY_DOUBLE || type == NPY_CDOUBLE || PyTypeNum_ISINTEGER(type)
        : PyBool_Check(value) ? type == NPY_BOOL : 0;
    if (PyLong_CheckExact(value) && type == NPY_FLOAT) {        /* whole numbers that single precision has */
        int over;
        long number = PyLong_AsLongAndOverflow(value, &over);
        fits = !over && number >= -(1L << 24) && number <= 1L << 24;
    }
    if (!fits)
        return NULL;
    PyObject *scalar = PyObject_CallOneArg((PyObject *)PyArray_DESCR(part)->typeobj, value);
    if (scalar == NULL && PyErr_ExceptionMatches(PyExc_OverflowError))
        PyErr_Clear();
    return scalar;
}

/* Compute what waits, and is to be written: how far its integers reach is looked at before. 0, or -1 with an error. */
static int
compute_first(PyObject *x, PyObject *storage)
{
    PyObject *node = Py_NewRef(got(storage, S.pending)), *noted = node == Py_None ? Py_NewRef(node)
        : PyObject_CallOneArg(py.note_range, x);
    const int failed = noted == NULL || (node != Py_None && compute_alone(node) < 0);
    Py_XDECREF(noted);
    Py_DECREF(node);
    return failed ? -1 : 0;
}

/* Whether ``x[index] = value`` was done: a number, a scalar, or an array that is broadcast to a view and cast. What is not is for
Python, errors and warnings included. */
static PyObject *
assigned(PyObject *x, PyObject *index, PyObject *value)
{
    PyObject *part = NULL, *given = NULL, *node = NULL, *target = NULL, *number = NULL;
    PyObject *seen = NULL, *cast = NULL;
    if (forked || types.LazyNdarray == NULL || Py_TYPE(x) != types.LazyNdarray)
        Py_RETURN_FALSE;
    Place place;
    Reads reads = {.count = 0};
    PyObject *storage, *source = Py_None;
    int done = 0, fits = 1, open = find_place(&place, x);
    if (open <= 0 || !is_writable((PyArrayObject *)place.meta) || (part = part_of(place.meta, index)) == NULL)
        goto end;
    storage = place.storage;
    if (got(storage, S.pending) != Py_None && compute_first(x, storage) < 0) {
        open = -1;
        goto end;
    }
    Py_SETREF(place.meta, Py_NewRef(part));
    if ((open = see_place(&place, 0)) < 0 || note_read(&reads, &place, value) < 0 || (open > 0 && keep_reach(&place, value) < 0)) {
        open = -1;
        goto end;
    }
    if (Py_TYPE(value) == types.LazyNdarray && got(value, X.storage) == Py_None) {     /* small, and on the host */
        given = got(value, X.host);
        if (open == 0 || !PyArray_Check(given) || !fits_into((PyArrayObject *)given, (PyArrayObject *)part))
            goto end;
        PyObject *pair = PyObject_CallOneArg(py.device_operand, value);
        number = pair == NULL ? NULL : Py_NewRef(PyTuple_GET_ITEM(pair, 0));
        Py_XDECREF(pair);
        if (number == NULL)
            goto end;
    }
    else if (Py_TYPE(value) == types.LazyNdarray) {
        source = got(value, X.storage);
        if (Py_TYPE(source) != types.Storage)
            goto end;
        /* its own: one that was made on the host has none until it is asked for */
        given = seen = meta_of_lazy(value);
        if (given == NULL || got(value, X.storage) != source || !PyArray_Check(given)
                || !(fits = fits_into((PyArrayObject *)given, (PyArrayObject *)part)))
            goto end;
        if (source == storage) {    /* ``x[1:] += y`` writes a view, and then assigns it to its own place */
            PyArrayObject *one = (PyArrayObject *)given, *other = (PyArrayObject *)part;
            done = fits == 1 && PyArray_DATA(one) == PyArray_DATA(other)
                && PyArray_CompareLists(PyArray_STRIDES(one), PyArray_STRIDES(other), PyArray_NDIM(one));
            PyObject *shared = done ? Py_NewRef(Py_True) : PyObject_CallFunctionObjArgs(py.overlap, given, part, NULL);
            const int apart = shared == Py_False;
            Py_XDECREF(shared);
            if (!apart)         /* or an error */
                goto end;
        }
        if (got(source, S.pending) != Py_None && given == got(source, S.root_view))
            node = Py_NewRef(got(source, S.pending));
        else if (got(source, S.clean) != Py_True)
            goto end;
    }
    else if (Py_TYPE(value) == types.LazyScalar && got(value, V.value) == Py_None) {
        source = got(value, V.storage);
        PyObject *dtype = Py_TYPE(source) != types.Storage || source == storage ? NULL : dtype_of_lazy(value);
        int alike = dtype != NULL && PyArray_DescrCheck(dtype) && has_dtype_of((PyArrayObject *)part, (PyArray_Descr *)dtype);
        Py_XDECREF(dtype);
        if (!alike || (got(source, S.pending) == Py_None && got(source, S.clean) != Py_True))
            goto end;
        if (PyArray_NDIM((PyArrayObject *)part) == 0 && got(source, S.pending) != Py_None)
            node = Py_NewRef(got(source, S.pending));
    }
    else if ((number = number_for((PyArrayObject *)part, Py_TYPE(value) == types.LazyScalar ? got(value, V.value) : value)) == NULL)
        goto end;
    if (open == 0 || (node != NULL && (Py_TYPE(node) != types.Node || got(node, N.place) != Py_None)))
        goto end;
    if (node != NULL && fits == 2 && (cast = cast_to(node, PyArray_DESCR((PyArrayObject *)part))) == NULL && PyErr_Occurred())
        goto end;
    if ((number == NULL && node == NULL && (number = PyObject_CallOneArg(py.device_of, value)) == NULL)
            || (open = open_place(&place, &reads, 0)) <= 0)
        goto end;
    done = -1;
    if ((target = target_of(&place, Py_None)) == NULL)
        goto end;
    if (node != NULL) {
        int found = fits == 1 || cast != NULL ? write_node(cast == NULL ? node : cast, &place, target) : NOT_WRITTEN;
        done = found == FAILED ? -1 : found == WRITTEN ? 1 : assign_node(node, &place, target);
    }
    else
        done = assign_to(&place, target, number) < 0 ? -1 : 1;
end:
    if (leave_reads(&reads) | leave_place(&place))
        done = -1;
    Py_XDECREF(target);
    Py_XDECREF(number);
    Py_XDECREF(cast);
    Py_XDECREF(node);
    Py_XDECREF(seen);
    Py_XDECREF(part);
    return done < 0 || PyErr_Occurred() ? NULL : PyBool_FromLong(done);
}

PyDoc_STRVAR(wrote_doc, "wrote(x, meta, work, /)\n--\n\n"
"Whether ``work(target)`` was called, `target` being the device array of a view of `x`, and what it wrote was noted.");

static PyObject *
wrote(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 3)
        return mistaken("wrote takes a lazy array, a meta and a function");
    if (forked || types.LazyNdarray == NULL || Py_TYPE(args[0]) != types.LazyNdarray || !PyArray_Check(args[1]))
        Py_RETURN_FALSE;
    Place place;
    Reads reads = {.count = 0};
    PyObject *target = NULL;
    int done = 0, open = find_place(&place, args[0]);
    if (open > 0) {
        Py_SETREF(place.meta, Py_NewRef(args[1]));
        open = see_place(&place, 0);
    }
    if (open > 0 && (open = open_place(&place, &reads, 0)) > 0) {
        target = target_of(&place, Py_None);
        done = target == NULL || write_to(&place, target, args[2], NULL) < 0 ? -1 : 1;
    }
    if (leave_place(&place) || open < 0)
        done = -1;
    Py_XDECREF(target);
    return done < 0 || PyErr_Occurred() ? NULL : PyBool_FromLong(done);
}
