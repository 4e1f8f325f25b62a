/* The computing of a chain: what it waits for, and what becomes of its results. */

/* Whether all sources were written on the current stream, as far as identity tells, and (`with_partners`: others compute
on streams of their own) no other library holds one. */
static int
are_here(const Chain *chain, PyObject *stream, int with_partners)
{
    for (int i = 0; i < chain->inputs; i++) {
        PyObject *source = chain->source[i];
        if (source == NULL)
            continue;
        PyObject *home = Py_TYPE(source) == types.Leaf ? got(source, L.storage) : NULL;
        if (home == NULL ? got(source, N.stream) != stream
                         : Py_TYPE(home) != types.Storage || got(home, S.stream) != stream
                           || (with_partners && is_held(home)))
            return 0;
    }
    return 1;
}

/* A node has its array. */
static int
settle(PyObject *node, PyObject *array, PyObject *stream, PyObject *shape, PyObject *fortran)
{
    if (got(node, N.array) != Py_None)      /* a finalizer had it computed, and may have changed what was read */
        return 0;
    int alike = got(node, N.fortran) == fortran ? same(got(node, N.shape), shape) : 0;
    if (alike < 0)
        return -1;
    PyObject *seen = alike ? Py_NewRef(array) : PyObject_CallFunctionObjArgs(
        py.reformed, array, got(node, N.shape), got(node, N.fortran), NULL);
    if (seen == NULL)
        return -1;
    if (got(node, N.array) != Py_None) {    /* as above */
        Py_DECREF(seen);
        return 0;
    }
    put(node, N.stream, stream);
    put(node, N.array, seen);
    PyObject *home = home_of(node);
    if (home != NULL && Py_TYPE(home) == types.Storage && got(home, S.pending) == node)
        fill(home, node);
    Py_XDECREF(home);
    Py_DECREF(seen);
    put(node, N.operands, no_arguments);
    put(node, N.large, no_arguments);
    return 0;
}

/* The clock goes on; -1: an error. */
static int
tick(void)
{
    PyObject *next = PyNumber_Add(now, unit);
    if (next == NULL)
        return -1;
    Py_SETREF(now, next);
    return 0;
}

PyDoc_STRVAR(tick_doc, "tick()\n--\n\nThe time, on a clock that goes on with each call, and with each program that is computed.");

static PyObject *
ticked(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return tick() < 0 ? NULL : Py_NewRef(now);
}

/* What runs a program on so many elements, or None: a new reference. A program knows its kernel where there is one for all
sizes that 31 bits count, and one device in use. */
static PyObject *
kernel_for(PyObject *device, PyObject *program, PyObject *size)
{
    PyObject *kernel = PyObject_GetAttr(program, text.kernel);
    if (kernel == NULL)
        return NULL;
    int quick = kernel == Py_None || PyLong_AsSsize_t(size) >= limits.WIDE ? 0 : is_sole(device);
    if (quick > 0)
        return kernel;
    Py_DECREF(kernel);
    if (quick < 0)
        return NULL;
    return PyObject_CallMethodObjArgs(device, text.kernel, program, size, NULL);
}

/* What a kernel gives, by its launch in C if it has one. */
static PyObject *
run_by(PyObject *kernel, PyObject *arguments, PyObject *shape, PyObject *fortran)
{
    PyObject *launch = PyObject_GetAttr(kernel, text.launch), *results = NULL;
    if (launch == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        launch = Py_NewRef(Py_None);
    }
    if (launch != NULL && launch != Py_None)
        results = PyObject_CallFunctionObjArgs(launch, arguments, shape, fortran, NULL);
    if (launch == Py_None || results == Py_None)
        Py_XSETREF(results, PyObject_CallFunctionObjArgs(kernel, arguments, shape, fortran, NULL));
    Py_XDECREF(launch);
    return results;
}

/* Whether something that is known of integers was asked for of an index, or follows from what was: 1 or 0; -1: an error. */
static int
is_asked_for(PyObject *known)
{
    PyObject *const marks[] = {text.derived, text.looked, text.asked, text.takings};
    int asked = 0;
    for (int i = 0; !asked && i < 4; i++)
        asked = PyDict_Contains(known, marks[i]);
    return asked;
}

/* Whether it is known how far the integers of a source reach, and was asked for, or there are numbers alone: 1 or 0; -1: an
error. */
static int
reaches_are_known(const Chain *chain)
{
    int known = 0, sources = 0;
    for (int i = 0; !known && i < chain->inputs; i++) {
        PyObject *source = chain->source[i];
        if (source == NULL)
            continue;
        sources++;
        if (Py_TYPE(source) != types.Leaf) {
            known = got(source, N.bounds) != Py_None;
            continue;
        }
        PyObject *home = got(source, L.storage);
        PyObject *facts = Py_TYPE(home) == types.Storage ? PyObject_GetAttr(home, text.facts) : Py_NewRef(Py_None);
        known = facts == NULL ? -1 : PyTuple_CheckExact(facts) ? PyDict_Contains(PyTuple_GET_ITEM(facts, 1), text.bounds) : 0;
        if (known > 0)
            known = is_asked_for(PyTuple_GET_ITEM(facts, 1));
        Py_XDECREF(facts);
    }
    return known || sources > 0 ? known : 1;
}

/* Keep how far the integers of a node that is to be computed reach, if that follows from its sources: it does not know later
what it was made of. A loop's next indexes are made of those before, which were computed meanwhile. */
static int
note_computed(const Chain *chain, PyObject *node, PyObject *home)
{
    PyObject *dtype = got(node, N.dtype);
    if (Py_TYPE(home) != types.Storage || !PyArray_DescrCheck(dtype) || strchr("iu", ((PyArray_Descr *)dtype)->kind) == NULL)
        return 0;
    int known = reaches_are_known(chain);
    PyObject *noted = known > 0 ? PyObject_CallFunctionObjArgs(py.note_computed, node, home, NULL) : NULL;
    Py_XDECREF(noted);
    return known < 0 || PyErr_Occurred() ? -1 : 0;
}

PyDoc_STRVAR(compute_doc, "compute(node, /)\n--\n\n"
"Compute a node, and with it those on the way to it that somebody holds. The caller holds the lock.");

static PyObject *
compute(PyObject *Py_UNUSED(module), PyObject *node)
{
    Chain chain;
    int kept = 0, outputs[MOST_NODES];
    if (types.Node == NULL || Py_TYPE(node) != types.Node)
        return PyErr_Format(PyExc_TypeError, "%.100s is no node", Py_TYPE(node)->tp_name);
    if (tick() < 0 || gather(&chain, node) == FAILED)
        return NULL;
    if (got(node, N.array) != Py_None)      /* a finalizer had it computed, while others were */
        Py_RETURN_NONE;
    hold(&chain);
    PyObject *device = Py_NewRef(got(node, N.device)), *arguments = list_of(chain.argument, chain.inputs), *last = NULL;
    PyObject *shape, *fortran, *program = NULL, *stream = NULL, *crossed = NULL, *kernel = NULL, *results = NULL, *result = NULL;
    form_of(&chain, node, &shape, &fortran);
    for (int i = 0; i < chain.nodes; i++) {
        PyObject *home = home_of(chain.node[i]);
        if (home != NULL || i == chain.nodes - 1)
            outputs[kept++] = i;
        int noted = home == NULL ? 0 : note_computed(&chain, chain.node[i], home);
        Py_XDECREF(home);
        if (noted < 0)
            goto end;
    }
    int with_partners = PyObject_IsTrue(py.partners);
    if (arguments == NULL || with_partners < 0 || (program = program_of(&chain, outputs, kept, 0)) == NULL
            || (stream = PyObject_CallMethodNoArgs(device, text.stream)) == NULL)
        goto end;
    if (!are_here(&chain, stream, with_partners)) {
        PyObject *sources = sources_of(&chain);
        if (sources != NULL)
            crossed = PyObject_CallFunctionObjArgs(py.joined, device, sources, stream, NULL);
        Py_XDECREF(sources);
        if (crossed == NULL)
            goto end;
    }
    if ((kernel = kernel_for(device, program, got(node, N.size))) == NULL)
        goto end;
    if (kernel != Py_None)
        results = run_by(kernel, arguments, shape, fortran);
    else if ((last = PyList_New(kept)) != NULL) {
        for (int i = 0; i < kept; i++)
            PyList_SET_ITEM(last, i, Py_NewRef(chain.node[outputs[i]]));
        results = PyObject_CallFunctionObjArgs(py.unfused, device, program, arguments, shape, fortran, last, NULL);
    }
    if (results == NULL)
        goto end;
    if (!PyList_CheckExact(results) || PyList_GET_SIZE(results) != kept) {
        PyErr_SetString(PyExc_TypeError, "a kernel gives a list of its outputs");
        goto end;
    }
    for (Py_ssize_t i = 0; crossed != NULL && i < PyList_GET_SIZE(crossed); i++) {
        /* Its memory goes back to that stream, not while this one still reads it. */
        if (told(PyObject_CallMethodObjArgs(device, text.order, stream, PyList_GET_ITEM(crossed, i), NULL)) < 0)
            goto end;
    }
    for (int i = 0; i < kept; i++)
        if (settle(chain.node[outputs[i]], PyList_GET_ITEM(results, i), stream, shape, fortran) < 0)
            goto end;
    result = Py_NewRef(Py_None);
end:
    Py_XDECREF(results);
    Py_XDECREF(last);
    Py_XDECREF(kernel);
    Py_XDECREF(crossed);
    Py_XDECREF(stream);
    Py_XDECREF(program);
    Py_XDECREF(arguments);
    Py_DECREF(shape);
    Py_DECREF(fortran);
    Py_DECREF(device);
    drop_chain(&chain);
    return result;
}
