/* Calls of views and broadcast operands that were met before: `recording_known.seen` and `of_known`, in C.

What is not plain is left to Python: casts, NumPy's scalars, results that lie neither in C's nor in Fortran's order,
several devices. Also where a view begins, for `views.offset_of`.
*/

#define MOST_OPERANDS 2

/* An operand as it was found: a Node, a Leaf, or a device array in its storage; or a number. `turned`: the lazy array,
where the device array is that of the storage, whose elements it sees in another shape. References of our own. */
typedef struct { PyObject *node, *leaf, *array, *storage, *number, *large, *turned; } Seen;

static void
forget(Seen *s)
{
    Py_CLEAR(s->node);
    Py_CLEAR(s->leaf);
    Py_CLEAR(s->array);
    Py_CLEAR(s->storage);
    Py_CLEAR(s->number);
    Py_CLEAR(s->large);
    Py_CLEAR(s->turned);
}

static Py_ssize_t
bytes_of(PyObject *object)
{
    PyObject *value = PyObject_GetAttr(object, text_nbytes);
    Py_ssize_t nbytes = value == NULL ? -1 : PyLong_AsSsize_t(value);
    Py_XDECREF(value);
    return nbytes;
}

/* Three more parts of a key, which are given away. */
static int
add_parts(PyObject **key, Py_ssize_t *length, PyObject *dtype, PyObject *shape, PyObject *lies)
{
    key[(*length)++] = dtype;
    key[(*length)++] = shape;
    key[(*length)++] = lies;
    return dtype == NULL || shape == NULL || lies == NULL ? -1 : 1;
}

/* A view of recorded work, as `recording_known._lies`. */
static int
seen_node(PyObject *x, PyObject *storage, Seen *s, PyObject **key, Py_ssize_t *length)
{
    PyObject *node = s->node, *outline = got(x, X.outline);
    if (got(node, N.place) != Py_None || outline == Py_None)
        return 0;
    int fortran = got(node, N.fortran) == Py_True;
    if (outline == got(storage, S.root_view))
        return add_parts(key, length, Py_NewRef(got(node, N.dtype)), Py_NewRef(got(node, N.shape)),
                         PyLong_FromLong(fortran ? 3 : 2));
    Operand whole = {NULL};
    Py_INCREF(outline);
    int found = seen_whole(node, outline, &whole), alike = 0;
    if (found > 0) {
        int turned = whole.fortran == Py_True;
        if (!turned && !fortran)
            alike = same(whole.shape, got(node, N.shape));
        found = alike < 0 ? -1 : add_parts(key, length, Py_NewRef(whole.dtype), Py_NewRef(whole.shape),
                                           PyLong_FromLong(turned ? 5 : alike ? 2 : 4));
    }
    drop(&whole);
    Py_DECREF(outline);
    return found;
}

/* Whether a view has all elements of its storage's array, one after the other: who reads them so needs no view of the
device's. 1 or 0, and -1 with an error. */
static int
sees_all(PyObject *outline, PyObject *root_view)
{
    Py_buffer one, all;
    PyObject *dtype = PyObject_GetAttr(outline, text_dtype), *other = PyObject_GetAttr(root_view, text_dtype);
    int alike = dtype == other;
    Py_XDECREF(dtype);
    Py_XDECREF(other);
    if (dtype == NULL || other == NULL)
        return -1;
    if (!alike)
        return 0;
    if (PyObject_GetBuffer(outline, &one, PyBUF_STRIDED_RO) < 0) {
        PyErr_Clear();
        return 0;
    }
    if (PyObject_GetBuffer(root_view, &all, PyBUF_STRIDED_RO) < 0) {
        PyBuffer_Release(&one);
        PyErr_Clear();
        return 0;
    }
    alike = one.buf == all.buf && one.len == all.len && one.len > 0 && (is_packed(&one, 0) || is_packed(&one, 1))
        && (is_packed(&all, 0) || is_packed(&all, 1));
    PyBuffer_Release(&one);
    PyBuffer_Release(&all);
    return alike;
}

/* An array that is ready, as `recording_known._leaf`. */
static int
seen_array(PyObject *x, PyObject *storage, Seen *s, PyObject **key, Py_ssize_t *length)
{
    PyObject *leaf = got(x, X.leaf), *loans = got(storage, S.loans);
    int ours = got(storage, S.quiet) == Py_True && got(storage, S.foreign) == Py_False && PyTuple_CheckExact(loans)
        && PyTuple_GET_SIZE(loans) == 0;
    if (ours && Py_TYPE(leaf) == leaf_type && AT(leaf, L.array) == got(x, X.array)) {
        s->leaf = Py_NewRef(leaf);
        s->large = Py_NewRef(got(leaf, L.large));
        return add_parts(key, length, Py_NewRef(got(leaf, L.dtype)), Py_NewRef(got(leaf, L.shape)),
                         Py_NewRef(got(leaf, L.fortran)));
    }
    PyObject *outline = got(x, X.outline), *root = got(storage, S.root), *root_view = got(storage, S.root_view);
    if (ours && got(x, X.array) != Py_None)
        s->array = Py_NewRef(got(x, X.array));
    else if (ours && outline != Py_None && root != Py_None && root_view != Py_None && outline != root_view) {
        int all = sees_all(outline, root_view);
        if (all < 0)
            return -1;
        if (all) {
            s->array = Py_NewRef(root);
            s->turned = Py_NewRef(x);
        }
    }
    if (s->array == NULL && (s->array = PyObject_CallOneArg(ready_array, x)) == NULL)
        return -1;
    if (s->array == Py_None)
        return 0;
    PyObject *count = PyObject_GetAttr(got(storage, S.device), text_count);
    long devices = count == NULL ? -1 : PyLong_AsLong(count);
    Py_XDECREF(count);
    if (devices != 1)
        return devices < 0 ? -1 : 0;
    Py_ssize_t nbytes = bytes_of(s->array == got(storage, S.root) ? s->array : storage);
    if (nbytes < 0)
        return -1;
    if (nbytes < large_bytes)
        s->large = Py_NewRef(no_arguments);
    else {
        PyObject *one = Py_BuildValue("((Nn))", PyLong_FromVoidPtr(storage), nbytes);
        s->large = one == NULL ? NULL : PyFrozenSet_New(one);
        Py_XDECREF(one);
        if (s->large == NULL)
            return -1;
    }
    PyObject *form = Py_NewRef(s->turned != NULL ? got(x, X.outline) : s->array);
    int found = add_parts(key, length, PyObject_GetAttr(form, text_dtype), PyObject_GetAttr(form, text_shape),
                          PyObject_GetAttr(form, text_strides));
    Py_DECREF(form);
    return found;
}

/* One operand, and its part of the key. 1: it is one, 0: Python looks at it, -1: an error. */
static int
seen_operand(PyObject *x, Seen *s, PyObject **key, Py_ssize_t *length)
{
    if (is_real_number(x)) {
        s->number = Py_NewRef(x);
        key[(*length)++] = Py_NewRef(Py_TYPE(x));
        return 1;
    }
    if (Py_TYPE(x) != array_type || Py_TYPE(got(x, X.storage)) != storage_type)
        return 0;
    s->storage = Py_NewRef(got(x, X.storage));
    PyObject *node = got(s->storage, S.pending);
    if (node == Py_None)
        return seen_array(x, s->storage, s, key, length);
    if (Py_TYPE(node) != node_type)
        return 0;
    s->node = Py_NewRef(node);
    s->large = Py_NewRef(got(node, N.large));
    return seen_node(x, s->storage, s, key, length);
}

/* Whether all operands are smaller than what is recorded, as `recording._general` asks; -1: an error. */
static int
all_small(PyObject *inputs, Py_ssize_t least)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); i++) {
        PyObject *x = PyTuple_GET_ITEM(inputs, i), *array;
        if (Py_TYPE(x) != array_type)
            continue;
        if (least == 0 || (array = got(x, X.array)) == Py_None)
            return 0;
        Py_INCREF(array);
        Py_ssize_t nbytes = bytes_of(array);
        Py_DECREF(array);
        if (nbytes < 0 || nbytes >= least)
            return nbytes < 0 ? -1 : 0;
    }
    return 1;
}

/* The operand of a node: what was found, to be read in this mode. */
static PyObject *
as_read(Seen *s, PyObject *mode, PyObject *scalar)
{
    if (s->node != NULL)
        return Py_NewRef(s->node);
    if (s->number != NULL)
        return PyObject_CallOneArg(scalar, s->number);
    int flat = same(mode, text_flat);
    if (flat < 0)
        return NULL;
    if (s->leaf != NULL && flat)
        return Py_NewRef(s->leaf);
    if (s->turned != NULL && !flat) {       /* along the axes that it is seen in */
        Py_SETREF(s->array, PyObject_CallOneArg(ready_array, s->turned));
        if (s->array == NULL || s->array == Py_None)
            return NULL;
    }
    PyObject *leaf = leaf_type->tp_alloc(leaf_type, 0);
    if (leaf != NULL) {
        put(leaf, L.array, s->leaf != NULL ? AT(s->leaf, L.array) : s->array);
        put(leaf, L.storage, s->storage);
        put(leaf, L.mode, mode);
    }
    return leaf;
}

/* The storages' `large` of two operands: a union of sets, one of which is most often an empty tuple. */
static PyObject *
union_of(PyObject *a, PyObject *b)
{
    int one = PyObject_IsTrue(a), other = PyObject_IsTrue(b);
    if (one < 0 || other < 0)
        return NULL;
    if (!other || !one)
        return Py_NewRef(other ? b : a);
    Py_INCREF(a);       /* what is computed meanwhile lets go of its own */
    Py_INCREF(b);
    PyObject *both = PyNumber_Or(a, b);
    Py_DECREF(a);
    Py_DECREF(b);
    return both;
}

/* Whether one kernel reads all arrays among the operands in the order of memory. */
static int
are_flat(PyObject *operands)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(operands); i++) {
        PyObject *operand = PyTuple_GET_ITEM(operands, i);
        if (Py_TYPE(operand) == node_type || (Py_TYPE(operand) == leaf_type && same(got(operand, L.mode), text_flat) != 1))
            return 0;
    }
    return 1;
}

/* A large result of arrays that are ready, computed at the call as `quick` has those of whole arrays. NULL without an
error: it is to be recorded. */
static PyObject *
known_at_once(PyObject *found, PyObject *rule, PyObject *operands, PyObject *device)
{
    long alone = PyLong_AsLong(got(rule, R.alone));
    PyObject *form = alone > most_alone_long ? leaf_type->tp_alloc(leaf_type, 0) : NULL;
    if (form == NULL)
        return NULL;
    put(form, L.shape, got(found, K.shape));
    put(form, L.fortran, got(found, K.fortran));
    put(form, L.size, got(found, K.size));
    PyObject *result = computed_now(rule, operands, form, device, alone);
    Py_DECREF(form);
    if (result == Py_None || result == Py_NotImplemented)
        Py_CLEAR(result);
    return result;
}

/* What is found under the key becomes a node, and its lazy array. None: it is not to be recorded. NULL without an
error: Python does it. */
static PyObject *
made_known(PyObject *found, Seen *given, Py_ssize_t count, Py_ssize_t least)
{
    PyObject *rule = got(found, K.rule), *modes = got(found, K.modes), *scalars;
    if (Py_TYPE(rule) != rule_type || got(rule, R.casts) != Py_None || got(found, K.order) != Py_None
            || !PyTuple_CheckExact(modes) || PyTuple_GET_SIZE(modes) != count)
        return NULL;
    Py_ssize_t nbytes = PyLong_AsSsize_t(got(found, K.nbytes));
    if (nbytes < 0 || nbytes >= large_result)
        return NULL;
    PyObject *device = NULL, *operands = NULL, *large = Py_NewRef(no_arguments), *node = NULL, *result = NULL;
    PyObject *counting = Py_None;       /* the rule, if it is to count what is needed alone */
    long steps = 1;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (given[i].number != NULL)
            continue;
        if (given[i].node != NULL) {
            steps += PyLong_AsLong(AT(given[i].node, N.steps));
            device = got(given[i].node, N.device);
        }
        else if (nbytes < least) {      /* small, and not of what waits already */
            Py_DECREF(large);
            Py_RETURN_NONE;
        }
        else
            device = got(given[i].storage, S.device);
        Py_SETREF(large, union_of(large, given[i].large));
        if (large == NULL)
            return NULL;
    }
    scalars = got(rule, R.scalars);
    if (device == NULL || steps > most_steps || !PyTuple_CheckExact(scalars) || PyTuple_GET_SIZE(scalars) < count)
        goto end;
    operands = PyTuple_New(count);
    for (Py_ssize_t i = 0; operands != NULL && i < count; i++) {
        PyObject *operand = as_read(&given[i], PyTuple_GET_ITEM(modes, i), PyTuple_GET_ITEM(scalars, i));
        if (operand == NULL) {
            if (given[i].number != NULL && PyErr_ExceptionMatches(PyExc_OverflowError)) {
                PyErr_Clear();      /* beyond the dtype: compared by value, or refused */
                result = Py_NewRef(Py_None);
            }
            goto end;
        }
        PyTuple_SET_ITEM(operands, i, operand);
    }
    if (operands == NULL)
        goto end;
    if (steps == 1 && PyLong_AsSsize_t(got(found, K.size)) >= long_size && got(found, K.any_strided) == Py_False
            && are_flat(operands)) {
        counting = rule;
        result = known_at_once(found, rule, operands, device);
        if (result != NULL || PyErr_Occurred())
            goto end;
    }
    PyObject *step = got(rule, R.step);
    const Operand form = {NULL, got(found, K.shape), got(found, K.fortran), got(found, K.size), got(step, P.output),
                          got(found, K.template)};
    node = made_node(device, step, operands, &form, steps, large);
    if (node != NULL) {
        put(node, N.strided, got(found, K.any_strided));
        result = array_of(node, counting, steps);
    }
end:
    Py_XDECREF(operands);
    Py_XDECREF(large);
    Py_XDECREF(node);
    return result;
}

/* The lazy array of a call that was met before; None if it is not to be recorded. NULL without an error: Python does
it, or knows better. */
static PyObject *
of_known(PyObject *ufunc, PyObject *inputs, Py_ssize_t least)
{
    Py_ssize_t count = PyTuple_GET_SIZE(inputs), length = 1;
    PyObject *parts[1 + 3 * MOST_OPERANDS] = {ufunc}, *key = NULL, *result = NULL;
    Seen given[MOST_OPERANDS] = {{NULL}};
    if (count > MOST_OPERANDS)
        return NULL;
    int small = all_small(inputs, least);
    if (small)
        return small < 0 ? NULL : Py_NewRef(Py_None);
    Py_INCREF(ufunc);
    for (Py_ssize_t i = 0; i < count; i++)
        if (seen_operand(PyTuple_GET_ITEM(inputs, i), &given[i], parts, &length) <= 0)
            goto end;
    key = PyTuple_New(length);
    if (key == NULL)
        goto end;
    for (Py_ssize_t i = 0; i < length; i++)
        PyTuple_SET_ITEM(key, i, Py_NewRef(parts[i]));
    PyObject *found = PyDict_GetItemWithError(known, key);
    if (found != NULL && Py_TYPE(found) == known_type) {
        Py_INCREF(found);
        result = made_known(found, given, count, least);
        Py_DECREF(found);
    }
end:
    Py_XDECREF(key);
    for (Py_ssize_t i = 0; i < length; i++)
        Py_XDECREF(parts[i]);
    for (Py_ssize_t i = 0; i < count; i++)
        forget(&given[i]);
    return result;
}

PyDoc_STRVAR(address_doc, "address(view, /)\n--\n\n"
"The address of the first element of an ndarray, whose memory is not looked at; BufferError, ValueError or TypeError "
"if it is no buffer.");

static PyObject *
address(PyObject *Py_UNUSED(module), PyObject *view)
{
    Py_buffer buffer;
    if (PyObject_GetBuffer(view, &buffer, PyBUF_STRIDED_RO) < 0)
        return NULL;
    PyObject *result = PyLong_FromVoidPtr(buffer.buf);
    PyBuffer_Release(&buffer);
    return result;
}
