/* Rows that one index names, taken and written: ``x[i]`` and ``x[i] = value``, where the device has both arrays, and it is known
how far the positions reach. What is otherwise is for `dispatch/advanced_indexing.py`. */

typedef struct { Py_ssize_t low, high; int distinct; } Reach;

/* How far the integers of a storage reach, which are there or wait, as `storage/facts.py` keeps it: 1; 0: that is not known;
-1: an error. */
static int
find_reach(PyObject *storage, PyObject *dtype, Reach *reach)
{
    if (is_held(storage) || (got(storage, S.clean) != Py_True && got(storage, S.pending) == Py_None))
        return 0;
    PyObject *facts = PyObject_GetAttr(storage, text.facts), *bounds = NULL;
    PyObject *writes = facts == NULL ? NULL : PyObject_GetAttr(storage, text.writes);
    int known = writes == NULL ? -1 : PyTuple_CheckExact(facts) && PyTuple_GET_SIZE(facts) == 2
        ? same(writes, PyTuple_GET_ITEM(facts, 0)) : 0;
    if (known > 0) {
        PyObject *found = PyTuple_GET_ITEM(facts, 1);
        bounds = Py_XNewRef(PyDict_GetItemWithError(found, text.bounds));
        known = bounds == NULL ? -!!PyErr_Occurred() : PyTuple_CheckExact(bounds) && PyTuple_GET_SIZE(bounds) == 3
            ? same(dtype, PyTuple_GET_ITEM(bounds, 2)) : 0;
        reach->distinct = known > 0 ? PyDict_Contains(found, text.distinct) : 0;
    }
    if (known > 0) {
        reach->low = PyLong_AsSsize_t(PyTuple_GET_ITEM(bounds, 0));
        reach->high = PyLong_AsSsize_t(PyTuple_GET_ITEM(bounds, 1));
        if (PyErr_Occurred()) {     /* beyond the length of any array */
            known = PyErr_ExceptionMatches(PyExc_OverflowError) ? 0 : -1;
            if (!known)
                PyErr_Clear();
        }
        reach->distinct = reach->distinct > 0 && reach->low >= 0;
    }
    Py_XDECREF(bounds);
    Py_XDECREF(writes);
    Py_XDECREF(facts);
    return known;
}

/* Whether an index is an array of positions that lie within a length, as far as that is known: 1 or 0; -1: an error. */
static int
is_within(PyObject *index, Py_ssize_t length, Reach *reach)
{
    PyObject *storage = Py_TYPE(index) == types.LazyNdarray ? got(index, X.storage) : Py_None, *dtype;
    int fits = 0;
    if (Py_TYPE(storage) != types.Storage || got(index, X.base) != Py_None)
        return 0;
    Py_INCREF(storage);
    if (got(storage, S.pending) != Py_None) {       /* before it is computed: it does not know then what of */
        PyObject *noted = PyObject_CallOneArg(py.note_range, index);
        Py_XDECREF(noted);
        if (noted == NULL) {
            Py_DECREF(storage);
            return -1;
        }
    }
    if ((dtype = dtype_of_lazy(index)) != NULL && PyArray_DescrCheck(dtype) && strchr("iu", ((PyArray_Descr *)dtype)->kind) != NULL)
        fits = find_reach(storage, dtype, reach);
    Py_XDECREF(dtype);
    Py_DECREF(storage);
    return PyErr_Occurred() ? -1 : fits > 0 && reach->low >= -length && reach->high < length;
}

/* The device array of such positions: a new reference; NULL, perhaps without an error: they are for Python. */
static PyObject *
positions_within(PyObject *index, Py_ssize_t length, PyObject *stream, Reach *reach)
{
    int own;
    PyObject *array = is_within(index, length, reach) > 0 ? array_on_device(index, stream, 0, &own) : NULL;
    if (array != NULL && (is_set_to(array, text.ndim, zero) != 0 || is_contiguous(array) <= 0))
        Py_CLEAR(array);
    return array;
}

/* Where an index of whole numbers, slices that see all, and one lazy array has that: so many numbers come first, then
slices for so many axes, of what they leave; that has so many axes at least. */
typedef struct { Py_ssize_t numbers, axis, least; } Along;

/* That array, a borrowed reference; NULL: it is another index. */
static PyObject *
one_of_index(PyObject *index, Along *along)
{
    *along = (Along){0, 0, 1};
    if (!PyTuple_CheckExact(index))
        return Py_TYPE(index) == types.LazyNdarray ? index : NULL;
    PyObject *found = NULL;
    while (along->numbers < PyTuple_GET_SIZE(index) && PyLong_CheckExact(PyTuple_GET_ITEM(index, along->numbers)))
        along->numbers++;
    along->least = PyTuple_GET_SIZE(index) - along->numbers;
    for (Py_ssize_t i = 0; i < along->least; i++) {
        PyObject *item = PyTuple_GET_ITEM(index, along->numbers + i);
        const PySliceObject *slice = (PySliceObject *)item;
        if (found == NULL && Py_TYPE(item) == types.LazyNdarray) {
            found = item;
            along->axis = i;
            if (i > 0 && along->numbers > 0)        /* the axes of the array come first then */
                return NULL;
        }
        else if (!PySlice_Check(item) || slice->start != Py_None || slice->stop != Py_None || slice->step != Py_None)
            return NULL;
    }
    return found;
}

/* ``x[index]``, as new memory: a new reference; NULL, perhaps without an error: it is for Python. */
static PyObject *
rows_taken(PyObject *x, PyObject *index)
{
    Along along;
    if (types.LazyNdarray == NULL || (index = one_of_index(index, &along)) == NULL || along.numbers > 0
            || Py_TYPE(x) != types.LazyNdarray || Py_TYPE(got(x, X.storage)) != types.Storage
            || got(index, X.storage) == Py_None)
        return NULL;
    PyObject *storage = Py_NewRef(got(x, X.storage)), *device = Py_NewRef(got(storage, S.device)), *result = NULL;
    PyObject *meta = NULL, *stream = NULL, *array = NULL, *positions = NULL, *list = NULL, *writes = NULL;
    PyObject *bounds = NULL, *axis = NULL;
    Reach reach;
    int own;
    if (usable_device() != device || is_alone(device) <= 0 || (meta = meta_with_storage(x)) == NULL
            || PyArray_NDIM((PyArrayObject *)meta) < along.least || !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)meta)
            || (axis = PyLong_FromSsize_t(along.axis)) == NULL)
        goto end;
    const int counts = strchr("iu", PyArray_DESCR((PyArrayObject *)meta)->kind) != NULL;
    if ((counts && got(storage, S.pending) != Py_None)      /* Python finds out first how far it reaches */
            || (stream = PyObject_CallMethodNoArgs(device, text.stream)) == NULL
            || (positions = positions_within(index, PyArray_DIM((PyArrayObject *)meta, along.axis), stream, &reach)) == NULL
            || (counts && ((writes = PyObject_GetAttr(storage, text.writes)) == NULL
                           || (bounds = PyObject_CallOneArg(py.bounds_of, x)) == NULL))
            || (array = array_on_device(x, stream, 0, &own)) == NULL || (list = PyList_New(1)) == NULL)
        goto end;
    PyList_SET_ITEM(list, 0, Py_NewRef(positions));
    PyObject *found = PyObject_CallMethodObjArgs(device, text.take_at, array, list, axis, NULL);
    if (found != NULL)
        result = lazy_of_new(found, device, stream, 0);
    else
        is_refusal(device);
    if (result != NULL && counts)
        Py_SETREF(result, PyObject_CallFunctionObjArgs(py.with_bounds, result, x, bounds, writes, NULL));
    Py_XDECREF(found);
end:
    Py_XDECREF(axis);
    Py_XDECREF(list);
    Py_XDECREF(bounds);
    Py_XDECREF(writes);
    Py_XDECREF(positions);
    Py_XDECREF(array);
    Py_XDECREF(stream);
    Py_XDECREF(meta);
    Py_DECREF(device);
    Py_DECREF(storage);
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
    Along along;
    PyObject *whole = index;
    if (forked || types.LazyNdarray == NULL || (index = one_of_index(index, &along)) == NULL
            || Py_TYPE(x) != types.LazyNdarray || Py_TYPE(got(index, X.storage)) != types.Storage || got(index, X.storage) == got(x, X.storage))
        return 0;
    const int is_array = Py_TYPE(value) == types.LazyNdarray;
    if (is_array && (Py_TYPE(got(value, X.storage)) != types.Storage || got(value, X.storage) == got(x, X.storage)))
        return 0;
    Place place;
    Reads reads = {.count = 0};
    Reach reach;
    PyObject *positions = NULL, *given = NULL, *order = NULL, *target = NULL, *keys = NULL, *work = NULL, *axis = NULL, *places = NULL;
    int done = 0, own, open = find_place(&place, x);
    if (open > 0 && along.numbers > 0) {
        PyObject *numbers = PyTuple_GetSlice(whole, 0, along.numbers), *part = numbers == NULL ? NULL : part_of(place.meta, numbers);
        Py_XDECREF(numbers);
        Py_SETREF(place.meta, part);
        open = part != NULL;        /* else it is for Python, or an error */
    }
    PyArrayObject *meta = (PyArrayObject *)place.meta;
    if (open <= 0 || PyArray_NDIM(meta) < along.least || !PyArray_IS_C_CONTIGUOUS(meta)
            || (open = is_within(index, PyArray_DIM(meta, along.axis), &reach)) <= 0
            || (axis = PyLong_FromSsize_t(along.axis)) == NULL
            || (places = PyLong_FromSsize_t(PyArray_DIM(meta, along.axis))) == NULL)
        goto end;
    PyObject *before = Py_NewRef(got(place.storage, S.pending));
    if (before != Py_None && compute_alone(before) < 0)
        open = -1;
    Py_DECREF(before);
    if (open < 0 || (open = see_place(&place, 0)) <= 0 || (open = note_read(&reads, &place, index)) < 0
            || (is_array && (open = note_read(&reads, &place, value)) < 0)
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

PyDoc_STRVAR(element_doc, "element(storage, array, step, source, /)\n--\n\n"
"The lazy scalar of one element, recorded: what gives the element of a device array of it without axes, which is a view of\n"
"the memory of `storage`. `source`: a weak reference to that, for who counts such. None: it is not to be recorded.");

static PyObject *
element(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 4 || types.Storage == NULL || types.Step == NULL || Py_TYPE(args[0]) != types.Storage
            || Py_TYPE(args[2]) != types.Step)
        return mistaken("element takes a storage, a device array, a step and a weak reference");
    PyObject *storage = args[0], *leaf = NULL, *operands = NULL, *node = NULL, *result = NULL;
    PyObject *bytes = NULL;
    const Py_ssize_t least = least_bytes(&bytes);
    Py_XDECREF(bytes);
    if (least == -2)
        return NULL;
    if (forked || least != 0 ||       /* an element is few bytes */
            is_held(storage) || got(storage, S.clean) != Py_True)
        Py_RETURN_NONE;
    const Form form = {no_arguments, Py_False, unit, got(args[2], P.output), Py_None};
    if ((leaf = made_leaf(args[1], storage, text.flat)) == NULL || (operands = PyTuple_Pack(1, leaf)) == NULL
            || (node = made_node(got(storage, S.device), args[2], operands, &form, 1, no_arguments, Py_False)) == NULL)
        goto end;
    if (got(storage, S.clean) != Py_True)       /* as in `become` */
        result = Py_NewRef(Py_None);
    else if ((result = array_of_nodes(&node, 1, Py_None, 0)) != NULL && Py_TYPE(result) == types.LazyScalar)
        put(result, V.base, args[3]);
end:
    Py_XDECREF(node);
    Py_XDECREF(operands);
    Py_XDECREF(leaf);
    return result;
}
