/* Rows that one index names, taken and written: ``x[i]`` and ``x[i] = value``, where the device has both arrays, and it is known
how far the positions reach. What is otherwise is for `dispatch/advanced_indexing.py`. */

/* Whether an index is an array of positions, or a scalar on the device, that lie within a length, as far as that is known:
1 or 0; -1: an error. */
static int
is_within(PyObject *index, Py_ssize_t length, Reach *reach)
{
    const int known = reach_of(index, reach);
    if (Py_TYPE(index) == types.LazyScalar)
        reach->distinct = 1;
    return known > 0 ? reach->low >= -length && reach->high < length : known;
}

/* The device array of such positions: a new reference; NULL, perhaps without an error: they are for Python. */
static PyObject *
positions_within(PyObject *index, Py_ssize_t length, PyObject *stream, Reach *reach)
{
    int own;
    PyObject *array = is_within(index, length, reach) > 0 ? array_on_device(index, stream, 0, &own) : NULL;
    const int is_array = Py_TYPE(index) == types.LazyNdarray;
    if (array != NULL && (is_set_to(array, text.ndim, zero) != !is_array || is_contiguous(array) <= 0))
        Py_CLEAR(array);
    return array;
}

/* Where an index has its one lazy array or scalar: along an axis of what `part`, a basic index, leaves; NULL: of all. That has
so many axes at least. */
typedef struct { PyObject *part; Py_ssize_t axis, least; } Along;

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
    if ((along->part = PyTuple_New(count)) == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_GET_ITEM(index, i), *one = item == found ? PySlice_New(NULL, NULL, NULL) : Py_NewRef(item);
        if (one == NULL)
            return NULL;
        PyTuple_SET_ITEM(along->part, i, one);
    }
    return found;
}

/* The one lazy array of an index that is whole numbers, then slices that see all and this; or the scalar of `scalar_of_index`: a
borrowed reference. NULL, perhaps with an error: it is another index. */
static PyObject *
one_of_index(PyObject *index, Along *along)
{
    *along = (Along){NULL, 0, 1};
    if (!PyTuple_CheckExact(index) && Py_TYPE(index) == types.LazyNdarray)
        return index;
    PyObject *found = scalar_of_index(index, along);
    if (found != NULL || PyErr_Occurred() || !PyTuple_CheckExact(index))
        return found;
    Py_ssize_t numbers = 0;
    while (numbers < PyTuple_GET_SIZE(index) && PyLong_CheckExact(PyTuple_GET_ITEM(index, numbers)))
        numbers++;
    along->least = PyTuple_GET_SIZE(index) - numbers;
    for (Py_ssize_t i = 0; i < along->least; i++) {
        PyObject *item = PyTuple_GET_ITEM(index, numbers + i);
        const PySliceObject *slice = (PySliceObject *)item;
        if (found == NULL && Py_TYPE(item) == types.LazyNdarray) {
            found = item;
            along->axis = i;
            if (i > 0 && numbers > 0)       /* the axes of the array come first then */
                return NULL;
        }
        else if (!PySlice_Check(item) || slice->start != Py_None || slice->stop != Py_None || slice->step != Py_None)
            return NULL;
    }
    if (found != NULL && numbers > 0 && (along->part = PyTuple_GetSlice(index, 0, numbers)) == NULL)
        return NULL;
    return found;
}

/* What an index leaves of a meta before its array or scalar counts: a new reference in place of the meta. 0: it is for Python, as
is what does not lie in C order, unless that is a vector; -1: an error. */
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
    return PyArray_NDIM(left) >= along->least && (PyArray_NDIM(left) == 1 || PyArray_IS_C_CONTIGUOUS(left));
}

/* ``x[index]``, as new memory: a new reference; NULL, perhaps without an error: it is for Python. */
static PyObject *
rows_taken(PyObject *x, PyObject *index)
{
    Along along = {NULL, 0, 1};
    PyObject *storage = NULL, *device = NULL, *result = NULL, *meta = NULL, *stream = NULL, *array = NULL, *positions = NULL;
    PyObject *list = NULL, *writes = NULL, *bounds = NULL, *axis = NULL;
    Reach reach;
    int own;
    if (types.LazyNdarray == NULL || Py_TYPE(x) != types.LazyNdarray || Py_TYPE(got(x, X.storage)) != types.Storage
            || (index = one_of_index(index, &along)) == NULL)
        goto end;
    storage = Py_NewRef(got(x, X.storage));
    device = Py_NewRef(got(storage, S.device));
    if (usable_device() != device || is_alone(device) <= 0 || (meta = meta_with_storage(x)) == NULL || leave_part(&along, &meta) <= 0
            || (axis = PyLong_FromSsize_t(along.axis)) == NULL)
        goto end;
    const int counts = strchr("iu", PyArray_DESCR((PyArrayObject *)meta)->kind) != NULL;
    const int one = Py_TYPE(index) == types.LazyScalar;
    if (one && PyArray_NDIM((PyArrayObject *)meta) > 1)     /* it is a view then */
        goto end;
    if (counts && got(storage, S.pending) != Py_None) {     /* how far it reaches: it does not know later */
        PyObject *noted = PyObject_CallOneArg(py.note_range, x);
        Py_XDECREF(noted);
        if (noted == NULL)
            goto end;
    }
    if ((stream = PyObject_CallMethodNoArgs(device, text.stream)) == NULL
            || (positions = positions_within(index, PyArray_DIM((PyArrayObject *)meta, along.axis), stream, &reach)) == NULL
            || (counts && ((writes = PyObject_GetAttr(storage, text.writes)) == NULL
                           || (bounds = PyObject_CallOneArg(py.bounds_of, x)) == NULL))
            || (array = array_on_device(x, stream, 0, &own)) == NULL || (list = PyList_New(1)) == NULL)
        goto end;
    PyList_SET_ITEM(list, 0, Py_NewRef(positions));
    if (along.part != NULL) {
        if (got(x, X.storage) != storage || got(storage, S.clean) != Py_True || got(storage, S.stream) != stream)
            goto end;
        Py_SETREF(array, device_view_of(storage, meta));
        if (array == NULL || got(storage, S.clean) != Py_True)      /* another thread has moved it */
            goto end;
    }
    PyObject *found = PyObject_CallMethodObjArgs(device, text.take_at, array, list, axis, NULL);
    if (found != NULL)
        result = lazy_of_new(found, device, stream, one);
    else
        is_refusal(device);
    if (result != NULL && counts)
        Py_SETREF(result, PyObject_CallFunctionObjArgs(py.with_bounds, result, x, bounds, writes, NULL));
    Py_XDECREF(found);
end:
    Py_XDECREF(along.part);
    Py_XDECREF(axis);
    Py_XDECREF(list);
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

/* Whether an array has an element, of the same dtype, for each of `view` that positions along an axis name; -1: an error. */
static int
has_one_for_each(PyObject *values, PyArrayObject *view, PyObject *positions, Py_ssize_t axis)
{
    PyObject *dtype = PyObject_GetAttr(values, text.dtype), *shape, *rows, *rest = NULL;
    shape = dtype == NULL ? NULL : PyObject_GetAttr(values, text.shape);      /* none is asked for with an error raised */
    rows = shape == NULL ? NULL : PyObject_GetAttr(positions, text.shape);
    int fits = rows == NULL ? -1
        : PyArray_DescrCheck(dtype) && has_dtype_of(view, (PyArray_Descr *)dtype);
    if (fits > 0) {
        PyObject *front = PyArray_IntTupleFromIntp((int)axis, PyArray_DIMS(view));
        rest = PyArray_IntTupleFromIntp(PyArray_NDIM(view) - (int)axis - 1, PyArray_DIMS(view) + axis + 1);
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

/* Whether ``x[index] = value`` was done, for a number, or an array with a value for each position: 1 or 0; -1: an error. */
static int
rows_assigned(PyObject *x, PyObject *index, PyObject *value)
{
    Along along = {NULL, 0, 1};
    if (forked || types.LazyNdarray == NULL || Py_TYPE(x) != types.LazyNdarray)
        return 0;
    const int is_array = Py_TYPE(value) == types.LazyNdarray || (Py_TYPE(value) == types.LazyScalar && got(value, V.value) == Py_None);
    PyObject *home = got(x, X.storage), *source = !is_array ? Py_None
        : got(value, Py_TYPE(value) == types.LazyNdarray ? X.storage : V.storage);
    if ((is_array && (Py_TYPE(source) != types.Storage || source == home)) || (index = one_of_index(index, &along)) == NULL
            || home_of_lazy(index) == home || Py_TYPE(home_of_lazy(index)) != types.Storage) {
        Py_XDECREF(along.part);
        return -!!PyErr_Occurred();
    }
    Place place;
    Reads reads = {.count = 0};
    Reach reach;
    PyObject *positions = NULL, *given = NULL, *order = NULL, *target = NULL, *keys = NULL, *work = NULL, *axis = NULL, *places = NULL;
    int done = 0, own, open = find_place(&place, x);
    if (open > 0)
        open = leave_part(&along, &place.meta);
    PyArrayObject *meta = (PyArrayObject *)place.meta;
    if (open <= 0
            || (open = is_within(index, PyArray_DIM(meta, along.axis), &reach)) <= 0
            || (axis = PyLong_FromSsize_t(along.axis)) == NULL
            || (places = PyLong_FromSsize_t(PyArray_DIM(meta, along.axis))) == NULL)
        goto end;
    if ((open = compute_first(x, place.storage)) < 0 || (open = see_place(&place, 0)) <= 0
            || (open = note_read(&reads, &place, index)) < 0
            || (is_array && (open = note_read(&reads, &place, value)) < 0)
            || (open = keep_reach(&place, value)) < 0      /* of what is as it was noted */
            || (positions = positions_within(index, PyArray_DIM(meta, along.axis), place.stream, &reach)) == NULL
            || (given = is_array ? array_on_device(value, place.stream, 0, &own)
                : number_for(meta, Py_TYPE(value) == types.LazyScalar ? got(value, V.value) : value)) == NULL
            || (is_array && (open = has_one_for_each(given, meta, positions, along.axis)) <= 0)
            || (order = !is_array || reach.distinct ? Py_NewRef(Py_None)     /* of several values for one, the last counts */
                : PyObject_CallFunctionObjArgs(py.order_of_rows, places, index, positions, NULL)) == NULL
            || (is_array && !reach.distinct && order == Py_None)
            || (open = open_place(&place, &reads, 0)) <= 0)
        goto end;
    done = -1;
    if ((target = target_of(&place, Py_None)) == NULL || (keys = PyList_New(1)) == NULL)
        goto end;
    PyList_SET_ITEM(keys, 0, Py_NewRef(positions));
    if ((work = PyTuple_Pack(4, keys, given, order, axis)) != NULL)
        done = write_to(&place, target, work, NULL) < 0 ? -1 : 1;
    if (done < 0 && PyErr_Occurred())
        done = is_refusal(got(place.storage, S.device));
end:
    if (leave_reads(&reads) | leave_place(&place))
        done = -1;
    Py_XDECREF(along.part);
    Py_XDECREF(work);
    Py_XDECREF(axis);
    Py_XDECREF(places);
    Py_XDECREF(keys);
    Py_XDECREF(target);
    Py_XDECREF(order);
    Py_XDECREF(given);
    Py_XDECREF(positions);
    return PyErr_Occurred() ? -1 : done;
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
    const Form form = {no_arguments, Py_False, unit, got(step, P.output), Py_None};
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
    if (usable_device() != device || is_alone(device) <= 0 || PyObject_IsTrue(py.partners) != 0 || is_held(storage)
            || (meta = meta_with_storage(x)) == NULL || PyArray_NDIM((PyArrayObject *)meta) != count || count == 0
            || (part = part_of(meta, index)) == NULL)
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
