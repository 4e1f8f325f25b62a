/* What a call becomes whose rule is known: a result computed at once, or nodes. */

/* A list of one array from a kernel's call in C, if it has one, or in Python. */
static PyObject *
launched(PyObject *rule, PyObject *kernel, PyObject *arguments, const Form *form)
{
    PyObject *launch = got(rule, R.launch), *results = NULL;
    if (launch != Py_None) {
        Py_INCREF(launch);
        results = PyObject_CallFunctionObjArgs(launch, arguments, form->shape, form->fortran, NULL);
        Py_DECREF(launch);
        if (results != Py_None && results != NULL)
            return results;
        if (results == NULL)
            return NULL;
        Py_DECREF(results);
    }
    return PyObject_CallFunctionObjArgs(kernel, arguments, form->shape, form->fortran, NULL);
}

/* The lazy array of a step on leaves and numbers which read memory that others hold, computed now, with its axes in the order
`back`, or None. None where it is to be recorded all the same; NotImplemented without a kernel: the device's own function does it. */
static PyObject *
computed_now(PyObject *rule, PyObject *operands, const Form *form, PyObject *back, PyObject *device, Py_ssize_t size)
{
    PyObject *kernel = got(rule, R.kernel), *stream = NULL, *arguments = NULL, *results = NULL, *result = NULL, *storage = NULL;
    PyObject *meta = NULL, *claimed = NULL;
    int with_partners = PyObject_IsTrue(py.partners);
    if (with_partners < 0)
        return NULL;
    if (size > limits.LONGEST)
        Py_RETURN_NONE;
    Py_INCREF(kernel);
    if (kernel == Py_None)
        Py_SETREF(kernel, PyObject_CallFunctionObjArgs(py.compiled, rule, operands, form->size, device, NULL));
    if (kernel == NULL)
        return NULL;
    if (kernel == Py_None) {        /* the device's own function takes twice as long for large ones */
        result = Py_NewRef(size >= limits.LONG ? Py_None : Py_NotImplemented);
        goto end;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(operands);
    if ((stream = PyObject_CallMethodNoArgs(device, text.stream)) == NULL || (arguments = PyList_New(count)) == NULL)
        goto end;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *operand = PyTuple_GET_ITEM(operands, i);
        if (Py_TYPE(operand) == types.Leaf) {
            PyObject *home = AT(operand, L.storage);
            if (Py_TYPE(home) != types.Storage || AT(home, S.stream) != stream || AT(home, S.clean) != Py_True
                    || (with_partners && is_held(home))) {
                result = Py_NewRef(Py_None);
                goto end;
            }
            operand = AT(operand, L.array);
        }
        PyList_SET_ITEM(arguments, i, Py_NewRef(operand));
    }
    if ((results = launched(rule, kernel, arguments, form)) == NULL) {
        tell_failed(device);
        goto end;
    }
    if (!PyList_CheckExact(results) || PyList_GET_SIZE(results) != 1) {
        PyErr_SetString(PyExc_TypeError, "a kernel of one step gives a list of one array");
        goto end;
    }
    PyObject *array = PyList_GET_ITEM(results, 0);
    if (back != Py_None && (meta = made_meta(form->shape, form->fortran, form->dtype)) == NULL)
        goto end;
    if ((storage = made_storage(device, array, stream, Py_None, meta == NULL ? Py_None : meta)) == NULL
            || (claimed = PyObject_CallMethodObjArgs(device, text.claim, array, storage, NULL)) == NULL)
        goto end;
    if (meta != NULL)
        Py_SETREF(meta, PyObject_CallMethodOneArg(meta, text.transpose, back));
    if (meta != NULL || back == Py_None)
        result = made_array(storage, meta == NULL ? Py_None : meta, meta == NULL ? array : Py_None, Py_None);
end:
    Py_XDECREF(storage);
    Py_XDECREF(meta);
    Py_XDECREF(claimed);
    Py_DECREF(kernel);
    Py_XDECREF(stream);
    Py_XDECREF(arguments);
    Py_XDECREF(results);
    return result;
}

/* The device array of `turned`, as it was seen: a new reference; None: it is no longer that. */
static PyObject *
ready_again(const Seen *s)
{
    PyObject *array = PyObject_CallOneArg(py.ready_array, s->turned), *shape, *strides;
    if (array == NULL || array == Py_None)
        return array;
    int alike = (shape = PyObject_GetAttr(array, text.shape)) == NULL ? -1 : same(shape, s->form.shape);
    Py_XDECREF(shape);
    if (alike > 0) {
        alike = (strides = PyObject_GetAttr(array, text.strides)) == NULL ? -1 : same(strides, s->lies);
        Py_XDECREF(strides);
    }
    if (alike > 0 && got(s->turned, X.storage) == s->storage)
        return array;
    Py_DECREF(array);
    return alike < 0 ? NULL : Py_NewRef(Py_None);
}

/* The leaf of a copy of what stays on the host knows what of. */
static void
note_host(PyObject *leaf, const Seen *s)
{
    if (!s->brought)
        return;
    PyObject *host = Py_TYPE(s->item) == types.LazyNdarray ? got(s->item, X.host) : s->item;
    const Py_ssize_t nbytes = PyArray_Check(host) ? PyArray_NBYTES((PyArrayObject *)host) : limits.LARGE;
    put(leaf, L.host, nbytes <= limits.SMALL ? host : nbytes < limits.LARGE ? Py_True : Py_None);
}

/* The operand of a node: what was found, read in this mode (NULL: as it is), with its axes in this order (or None). NULL
without an error: somebody may write it by now. */
static PyObject *
as_read(const Seen *s, PyObject *mode, PyObject *scalar, PyObject *order)
{
    if (s->what == NUMBER)
        return PyObject_CallOneArg(scalar, s->number);
    if (s->what == WHOLE && (mode == NULL || Py_TYPE(s->item) == types.Node))
        return Py_NewRef(s->item);
    int flat = same(mode, text.flat);
    if (flat < 0)
        return NULL;
    if (s->what == WHOLE && flat && order == Py_None)
        return Py_NewRef(s->item);
    PyObject *array = Py_NewRef(s->what == WHOLE ? AT(s->item, L.array) : s->array), *leaf = NULL;
    if (s->turned != NULL && (!flat || order != Py_None))       /* along the axes that it is seen in */
        Py_SETREF(array, ready_again(s));
    if (array != NULL && array != Py_None && order != Py_None)
        Py_SETREF(array, PyObject_CallFunctionObjArgs(py.along, array, order, NULL));
    if (array != NULL && array != Py_None)
        leaf = made_leaf(array, s->what == WHOLE ? AT(s->item, L.storage) : s->storage, mode);
    if (leaf != NULL)
        note_host(leaf, s);
    Py_XDECREF(array);
    return leaf;
}

/* The large inputs of two operands: a union of sets, one of which is most often an empty tuple, or has all of the other one;
then it is that set. `a` is given away. */
static PyObject *
union_of(PyObject *a, PyObject *b)
{
    PyObject *both = NULL;
    if (a == b || b == no_arguments)
        return a;
    Py_INCREF(b);       /* what is computed meanwhile lets go of its own */
    int within = a == no_arguments ? 1 : PyObject_RichCompareBool(a, b, Py_LE);
    if (within > 0)
        both = Py_NewRef(b);
    else if (within == 0 && (within = PyObject_RichCompareBool(b, a, Py_LE)) >= 0)
        both = within ? Py_NewRef(a) : PyNumber_Or(a, b);
    Py_DECREF(a);
    Py_DECREF(b);
    return both;
}

/* Whether the kernel of a rule takes these operands: arrays that it reads in the order of memory, and Python's numbers. NumPy's
have dtypes, as arrays have, and the kernel may be one of arrays. */
static int
are_flat(const Seen *given, PyObject *operands)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(operands); i++) {
        PyObject *operand = PyTuple_GET_ITEM(operands, i);
        if (Py_TYPE(operand) == types.Leaf ? same(got(operand, L.mode), text.flat) != 1 : !is_real_number(&given[i]))
            return 0;
    }
    return 1;
}

/* A node that casts an operand; `item` is given away. */
static PyObject *
cast_node(PyObject *device, PyObject *step, PyObject *item, const Form *form, long steps, PyObject *large,
          PyObject *strided)
{
    PyObject *operands = PyTuple_Pack(1, item), *node = NULL;
    if (operands != NULL)
        node = made_node(device, step, operands, form, steps, large, strided);
    Py_XDECREF(operands);
    Py_DECREF(item);
    return node;
}

static int
is_of_kind(PyObject *dtype, const char *kinds)
{
    return PyArray_DescrCheck(dtype) && strchr(kinds, ((PyArray_Descr *)dtype)->kind) != NULL;
}

/* The lazy array of a call with this rule. `found`, a Known, says how the operands are read, and what form the result has;
without it (NULL) they are whole arrays of that form, and numbers. None: it is not to be recorded. NULL without an error:
the general way does it. */
static PyObject *
become(PyObject *rule, PyObject *found, const Seen *given, Py_ssize_t count, const Form *form, Py_ssize_t least, int in_place)
{
    PyObject *nodes[MOST_OPERANDS + 2], *operands = NULL, *large = Py_NewRef(no_arguments), *device = NULL, *result = NULL;
    PyObject *order = found == NULL ? Py_None : got(found, K.order), *casts = got(rule, R.casts), *scalars = got(rule, R.scalars);
    PyObject *step = got(rule, R.step), *last = found == NULL ? Py_None : got(found, K.last);
    PyObject *modes = found == NULL ? NULL : got(found, K.modes), *strided = found == NULL ? NULL : got(found, K.strided);
    int made = 0, leaves = 0, held = 0;
    long steps = found == NULL ? 1 : PyLong_AsLong(got(found, K.steps));
    if (Py_TYPE(step) != types.Step || !PyTuple_CheckExact(scalars) || PyTuple_GET_SIZE(scalars) < count)
        goto end;
    for (Py_ssize_t i = 0; i < count; i++) {
        const Seen *s = &given[i];
        if (s->what == NUMBER)
            continue;
        if (s->what == WHOLE && Py_TYPE(s->item) == types.Node) {
            steps += PyLong_AsLong(got(s->item, N.steps));
            device = got(s->item, N.device);
        }
        else {
            PyObject *storage = s->what == WHOLE ? AT(s->item, L.storage) : s->storage;
            held = held || (Py_TYPE(storage) == types.Storage && is_held(storage));
            device = got(storage, S.device);
            leaves++;
        }
        if (s->what == WHOLE || s->large != NULL)
            large = union_of(large, s->what == WHOLE ? OF(s->item, large) : s->large);
        if (large == NULL)
            return NULL;
    }
    if (device == NULL || steps > limits.MOST_STEPS)
        goto end;
    if (PyTuple_GET_SIZE(form->shape) == 0 && is_of_kind(got(step, P.output), "b")) {
        result = Py_NewRef(Py_None);    /* whoever asks whether it is true gets it from the operands' values */
        goto end;
    }
    if (found != NULL || (least > 0 && leaves)) {
        Py_ssize_t nbytes = PyLong_AsSsize_t(form->size) * (found != NULL ? PyDataType_ELSIZE((PyArray_Descr *)form->dtype)
                                                                          : PyLong_AsSsize_t(got(rule, R.itemsize)));
        if (leaves && nbytes < least) {     /* small, and not of what waits already */
            result = Py_NewRef(Py_None);
            goto end;
        }
        if (found != NULL && nbytes >= limits.LARGE_RESULT)
            goto end;
    }
    if ((operands = hidden(PyTuple_New(count))) == NULL)
        goto end;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *operand = as_read(&given[i], modes == NULL ? NULL : PyTuple_GET_ITEM(modes, i),
                                    PyTuple_GET_ITEM(scalars, i), order);
        if (operand == NULL) {
            if (given[i].what == NUMBER && PyErr_ExceptionMatches(PyExc_OverflowError)) {
                PyErr_Clear();      /* beyond the dtype: compared by value, or refused */
                result = Py_NewRef(Py_None);
            }
            goto end;
        }
        if (casts != Py_None && given[i].what != NUMBER && PyTuple_GET_ITEM(casts, i) != Py_None) {
            operand = cast_node(device, PyTuple_GET_ITEM(casts, i), operand, form, steps, large, PyTuple_GET_ITEM(strided, i));
            if (operand == NULL)
                goto end;
            nodes[made++] = Py_NewRef(operand);
        }
        PyTuple_SET_ITEM(operands, i, operand);
    }
    shown(operands);
    PyObject *any_strided = found == NULL ? Py_False : got(found, K.any_strided);
    Py_ssize_t size = steps == 1 ? PyLong_AsSsize_t(form->size) : 0;
    /* Recorded integers know what they are made of, and so the bounds of an index. */
    if (held && !in_place && steps == 1 && !is_of_kind(got(step, P.output), "iu")
            && (found == NULL || (size >= limits.LONG && any_strided == Py_False && are_flat(given, operands)))) {
        result = computed_now(rule, operands, form, found == NULL ? Py_None : got(found, K.back), device, size);
        if (result == Py_NotImplemented)
            Py_SETREF(result, Py_NewRef(Py_None));
        else if (result == Py_None)
            Py_CLEAR(result);
        if (result != NULL || PyErr_Occurred())
            goto end;
    }
    if ((nodes[made] = made_node(device, step, operands, form, steps, large, any_strided)) == NULL)
        goto end;
    if (last != Py_None) {
        nodes[made + 1] = cast_node(device, last, Py_NewRef(nodes[made]), form, steps, large, Py_False);
        if (nodes[++made] == NULL)
            goto end;
    }
    made++;
    for (Py_ssize_t i = 0; i < count; i++) {        /* since it was seen: who writes it does not know of these nodes */
        const Seen *s = &given[i];
        PyObject *home = s->what == VIEW ? s->storage : s->what == WHOLE && Py_TYPE(s->item) == types.Leaf ? AT(s->item, L.storage) : NULL;
        if (home != NULL && Py_TYPE(home) == types.Storage && got(home, S.clean) != Py_True)
            goto end;
    }
    result = array_of_nodes(nodes, made, found == NULL ? Py_None : got(found, K.back), in_place);
end:
    while (made > 0)
        Py_XDECREF(nodes[--made]);
    Py_XDECREF(operands);
    Py_XDECREF(large);
    return result;
}

/* A borrowed rule of operands that lie alike, and numbers; NULL without an error if there is none that is plain. */
static PyObject *
plain_rule(PyObject *ufunc, const Seen *given, Py_ssize_t count)
{
    PyObject *key = count == 1 ? PyTuple_Pack(2, ufunc, given[0].form.dtype)
                               : PyTuple_Pack(3, ufunc, given[0].form.dtype, given[1].form.dtype);
    PyObject *rule = key == NULL ? NULL : PyDict_GetItemWithError(py.rules, key);
    Py_XDECREF(key);
    return rule != NULL && Py_TYPE(rule) == types.Rule && got(rule, R.casts) == Py_None && got(rule, R.choose) == Py_None
        ? rule : NULL;
}

/* The form of the result where each operand is a whole array of that form, or a real number; -1: an error. */
static int
in_one_form(const Seen *given, Py_ssize_t count, const Form **form)
{
    *form = NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (given[i].what == WHOLE) {
            int alike = *form == NULL ? 1 : given[i].form.fortran == (*form)->fortran
                ? same(given[i].form.shape, (*form)->shape) : 0;
            if (alike <= 0)
                return alike;
            if (*form == NULL)
                *form = &given[i].form;
        }
        else if (!is_real_number(&given[i]))
            return 0;
    }
    return *form != NULL && (*form)->fortran != Py_None && count < 3;
}

/* What the Python code gets of the operands: for each (its class, Node or Leaf, its dtype, its shape), or None for a number. */
static PyObject *
seen_as(const Seen *given, Py_ssize_t count)
{
    PyObject *seen = hidden(PyTuple_New(count));
    for (Py_ssize_t i = 0; seen != NULL && i < count; i++) {
        PyObject *kind = given[i].what == WHOLE && Py_TYPE(given[i].item) == types.Node ? (PyObject *)types.Node : (PyObject *)types.Leaf;
        PyObject *one = given[i].what == NUMBER ? Py_NewRef(Py_None) : PyTuple_Pack(3, kind, given[i].form.dtype, given[i].form.shape);
        if (one == NULL)
            Py_CLEAR(seen);
        else
            PyTuple_SET_ITEM(seen, i, one);
    }
    return shown(seen);
}

static PyObject *
tuple_of(const Lengths *lengths)
{
    PyObject *tuple = PyTuple_New(lengths->count);
    for (int i = 0; tuple != NULL && i < lengths->count; i++) {
        PyObject *one = PyLong_FromSsize_t(lengths->of[i]);
        if (one == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, one);
    }
    return tuple;
}

/* The form of a known call's result where its operands have these lengths: (the lengths as bytes, shape, size), a new reference.
That of the last such call is kept. */
static PyObject *
form_of_known(PyObject *known, const Lengths *lengths)
{
    const Py_ssize_t nbytes = lengths->count * (Py_ssize_t)sizeof lengths->of[0];
    PyObject *kept = got(known, K.form), *pattern = got(known, K.shape), *shape, *form = NULL;
    if (PyTuple_CheckExact(kept) && PyBytes_GET_SIZE(PyTuple_GET_ITEM(kept, 0)) == nbytes
            && memcmp(PyBytes_AS_STRING(PyTuple_GET_ITEM(kept, 0)), lengths->of, nbytes) == 0)
        return Py_NewRef(kept);
    Py_ssize_t size = 1;
    if ((shape = PyTuple_New(PyTuple_GET_SIZE(pattern))) == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(pattern); i++) {
        const Py_ssize_t code = PyLong_AsSsize_t(PyTuple_GET_ITEM(pattern, i)), n = code < 0 ? lengths->of[-1 - code] : code;
        PyObject *one = PyLong_FromSsize_t(n);
        if (one == NULL || (n > 0 && size > PY_SSIZE_T_MAX / n)) {      /* too large is for Python to say */
            Py_XDECREF(one);
            Py_DECREF(shape);
            return NULL;
        }
        PyTuple_SET_ITEM(shape, i, one);
        size *= n;
    }
    if ((form = Py_BuildValue("(y#Nn)", (const char *)lengths->of, nbytes, shape, size)) != NULL)
        put(known, K.form, form);
    return form;
}

/* Whether the result would be a scalar, and is not to be recorded: of an array without dimensions some functions make another
one, and others than ufuncs of scalars, too. */
static int
is_left_scalar(PyObject *ufunc, PyObject *inputs, const Seen *given, Py_ssize_t count)
{
    int arrays = !PyObject_TypeCheck(ufunc, &PyUFunc_Type);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (given[i].what != NUMBER && PyTuple_GET_SIZE(given[i].form.shape) > 0)
            return 0;
        arrays |= Py_TYPE(PyTuple_GET_ITEM(inputs, i)) == types.LazyNdarray;
    }
    return arrays;
}

/* How many of the operands are found; -1: an error. */
static Py_ssize_t
see_all(PyObject *inputs, Seen *given)
{
    Py_ssize_t found = 0;
    const Py_ssize_t count = PyTuple_GET_SIZE(inputs);
    for (Py_ssize_t i = 0; i < count && i < MOST_OPERANDS; i++)
        forget(&given[i]);
    while (found < count && count <= MOST_OPERANDS) {
        const int what = given[found].what = see(PyTuple_GET_ITEM(inputs, found), &given[found]);
        if (what == FAILED)
            return -1;
        if (what == NONE)
            break;
        found++;
    }
    return found;
}

static int
is_node(const Seen *s)
{
    return s->what == WHOLE && Py_TYPE(s->item) == types.Node;
}

/* The operand of the most steps where all of them and `steps` more are too many; -1: they are not. */
static Py_ssize_t
longest(const Seen *given, Py_ssize_t count, long steps)
{
    long most = 0;
    Py_ssize_t found = -1;
    for (Py_ssize_t i = 0; i < count; i++)
        if (is_node(&given[i])) {
            const long own = PyLong_AsLong(got(given[i].item, N.steps));
            steps += own;
            if (own > most) {
                most = own;
                found = i;
            }
        }
    return steps > limits.MOST_STEPS ? found : -1;
}

/* The operands at these places, a tuple of numbers, are computed: how many were not; -1: an error. */
static int
compute_those(const Seen *given, Py_ssize_t count, PyObject *places)
{
    int computed = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(places); i++) {
        const Py_ssize_t place = PyLong_AsSsize_t(PyTuple_GET_ITEM(places, i));
        if (place >= 0 && place < count && is_node(&given[place])) {
            if (compute_alone(given[place].item) < 0)
                return -1;
            computed++;
        }
    }
    return computed;
}

/* `recorded`, from `least` bytes on, as a number and as Python has it. */
static PyObject *
recorded_from(PyObject *ufunc, PyObject *inputs, PyObject *written, Py_ssize_t least, PyObject *bytes)
{
    Seen given[MOST_OPERANDS] = {{0}};
    PyObject *key = NULL, *seen_here = NULL, *sizes = NULL, *rule, *result = NULL;
    const Form *form;
    Lengths lengths;
    Py_ssize_t count = PyTuple_GET_SIZE(inputs), found, too_long;
    int rounds = 0;
again:
    if ((found = see_all(inputs, given)) < 0)
        goto end;
    if (found == count && rounds++ < MOST_OPERANDS && (too_long = longest(given, count, 1)) >= 0) {
        if (compute_alone(given[too_long].item) < 0)
            goto end;
        goto again;
    }
    if (found == count && is_left_scalar(ufunc, inputs, given, count)) {
        result = Py_NewRef(Py_None);
        goto end;
    }
    if (found == count) {
        int plain = written == NULL ? in_one_form(given, count, &form) : 0;
        if (plain < 0)
            goto end;
        if (plain && (rule = Py_XNewRef(plain_rule(ufunc, given, count))) != NULL) {
            result = become(rule, NULL, given, count, form, least, 0);
            Py_DECREF(rule);
            if (result != NULL)
                goto end;
        }
        if (PyErr_Occurred() || ((key = key_of_call(ufunc, given, count, written, &lengths)) == NULL && PyErr_Occurred()))
            goto end;
        PyObject *seen = key == NULL ? NULL : Py_XNewRef(PyDict_GetItemWithError(py.known, key)), *known_form;
        if (seen != NULL && Py_TYPE(seen) == types.Known && rounds++ < MOST_OPERANDS
                && (too_long = longest(given, count, PyLong_AsLong(got(seen, K.steps)))) >= 0) {      /* with its casts */
            Py_DECREF(seen);
            Py_CLEAR(key);
            if (compute_alone(given[too_long].item) < 0)
                goto end;
            goto again;
        }
        if (seen != NULL && Py_TYPE(seen) == types.Known && (known_form = form_of_known(seen, &lengths)) != NULL) {
            rule = got(seen, K.rule);
            PyObject *last = got(seen, K.last) != Py_None ? got(seen, K.last) : got(rule, R.step);
            const Form own = {PyTuple_GET_ITEM(known_form, 1), got(seen, K.fortran), PyTuple_GET_ITEM(known_form, 2), got(last, P.output)};
            int brought = bring(ufunc, given, count);
            result = brought > 0 ? become(rule, seen, given, count, &own, least, written != NULL) : NULL;
            Py_DECREF(known_form);
        }
        if (seen != NULL && PyTuple_CheckExact(seen)) {     /* places */
            const int computed = rounds <= MOST_OPERANDS ? compute_those(given, count, seen) : 0;
            Py_DECREF(seen);
            if (computed < 0)
                goto end;
            if (computed > 0) {
                rounds = MOST_OPERANDS + 1;
                Py_CLEAR(key);
                goto again;
            }
        }
        else
            Py_XDECREF(seen);
        if (result != NULL || PyErr_Occurred()
                || (key != NULL && ((seen_here = seen_as(given, count)) == NULL || (sizes = tuple_of(&lengths)) == NULL)))
            goto end;
    }
    result = PyObject_CallFunctionObjArgs(py.general, ufunc, inputs, bytes, written == NULL ? Py_None : written, key == NULL ? Py_None : key,
                                          seen_here == NULL ? Py_None : seen_here, sizes == NULL ? Py_None : sizes, NULL);
end:
    Py_XDECREF(key);
    Py_XDECREF(seen_here);
    Py_XDECREF(sizes);
    for (Py_ssize_t i = 0; i < count && i < MOST_OPERANDS; i++)
        forget(&given[i]);
    return result;
}

/* Whether a ufunc works on more than elements: no such work is recorded. */
static int
is_generalised(PyObject *ufunc)
{
    return PyObject_TypeCheck(ufunc, &PyUFunc_Type) && ((PyUFuncObject *)ufunc)->core_enabled;
}

PyDoc_STRVAR(recorded_doc, "recorded(ufunc, inputs, written=None, /)\n--\n\n"
"The lazy array of a plain call, recorded or computed at once, or None if it can't be.\n\n"
"`written`: a meta of memory that the result will be written to, in place: then it lies as that does.\n"
"What is not like a call that was met before is left to the general way, in Python, and so are all errors.");

static PyObject *
recorded(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs < 2 || nargs > 3 || !PyTuple_CheckExact(args[1]) || PyTuple_GET_SIZE(args[1]) < 1)
        return mistaken("recorded takes a ufunc, a tuple of operands and a meta");
    if (forked || types.LazyNdarray == NULL || is_generalised(args[0]))
        Py_RETURN_NONE;
    PyObject *bytes = NULL, *result = NULL;
    Py_ssize_t least = least_bytes(&bytes);
    int told = least < 0 ? 0 : told_of_errors();
    if (least == -1 || told > 0)
        result = Py_NewRef(Py_None);
    else if (least >= 0 && told == 0)
        result = recorded_from(args[0], args[1], nargs < 3 || args[2] == Py_None ? NULL : args[2], least, bytes);
    Py_XDECREF(bytes);
    return result;
}
