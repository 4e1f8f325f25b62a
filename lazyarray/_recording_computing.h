/* The computing of a chain, as `fusion.graph._compute` does it: what it waits for, and what becomes of its results. */

/* Whether the storage of a node is there: a new reference, NULL if not. */
static PyObject *
home_of(PyObject *node)
{
    PyObject *ref = got(node, N.storage);
    if (ref == Py_None)
        return NULL;
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *home = NULL;
    if (PyWeakref_GetRef(ref, &home) < 0)
        PyErr_Clear();
    return home;
#else
    PyObject *home = PyWeakref_GetObject(ref);
    return home == NULL || home == Py_None ? NULL : Py_NewRef(home);
#endif
}

/* 1 if a stream is the current one, 0 if not, -1 with an error. */
static int
is_current(PyObject *stream, PyObject *current)
{
    return stream == current ? 1 : PyObject_RichCompareBool(stream, current, Py_EQ);
}

/* Have the current stream wait for those that wrote the arrays; 0: a node's stream is another, which is left to Python. */
static int
joined(PyObject *const *sources, int count, PyObject *stream, int with_partners)
{
    for (int i = 0; i < count; i++) {
        PyObject *source = sources[i];
        if (source != NULL && Py_TYPE(source) == node_type) {
            int here = is_current(got(source, N.stream), stream);
            if (here <= 0)
                return here;
        }
    }
    for (int i = 0; i < count; i++) {
        PyObject *source = sources[i];
        if (source == NULL || Py_TYPE(source) != leaf_type)
            continue;
        PyObject *storage = got(source, L.storage);
        if (!with_partners && Py_TYPE(storage) == storage_type && got(storage, S.stream) == stream)
            continue;
        PyObject *done = PyObject_CallMethodNoArgs(storage, text_join);
        if (done == NULL)
            return -1;
        Py_DECREF(done);
    }
    return 1;
}

/* Whether a node waits that reads `node`: 1 or 0. */
static int
is_read(PyObject *node)
{
    PyObject *readers = got(node, N.readers);
    if (!PyList_CheckExact(readers))
        return 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(readers); i++) {
        PyObject *ref = PyList_GET_ITEM(readers, i);
        if (!PyWeakref_Check(ref))
            continue;
#if PY_VERSION_HEX >= 0x030D0000
        PyObject *reader = NULL;
        if (PyWeakref_GetRef(ref, &reader) < 0)
            PyErr_Clear();
#else
        PyObject *reader = PyWeakref_GetObject(ref);
        Py_XINCREF(reader);
#endif
        int waits = reader != NULL && Py_TYPE(reader) == node_type && got(reader, N.array) == Py_None;
        Py_XDECREF(reader);
        if (waits)
            return 1;
    }
    return 0;
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
        reformed, array, got(node, N.shape), got(node, N.fortran), NULL);
    if (seen == NULL)
        return -1;
    put(node, N.stream, stream);
    put(node, N.array, seen);
    PyObject *home = home_of(node);
    if (home != NULL && Py_TYPE(home) == storage_type && got(home, S.pending) == node)
        fill(home, node);
    Py_XDECREF(home);
    Py_DECREF(seen);
    int failed = 0;
    if (is_read(node)) {
        PyObject *ref = PyWeakref_NewRef(node, NULL);
        failed = ref == NULL ? -1 : note_young(ref);
        Py_XDECREF(ref);
    }
    put(node, N.operands, no_arguments);
    put(node, N.large, no_arguments);
    return failed;
}

PyDoc_STRVAR(compute_doc, "compute(node, /)\n--\n\n"
"Compute a node as `graph._compute` does, or return False: then that is to do it. The caller holds the lock.");

static PyObject *
compute(PyObject *Py_UNUSED(module), PyObject *node)
{
    if (node_type == NULL || Py_TYPE(node) != node_type || got(node, N.place) != Py_None)
        Py_RETURN_FALSE;
    Chain chain;
    int found = gather(&chain, node), kept = 0, outputs[MOST_NODES];
    if (found == FAILED)
        return NULL;
    if (got(node, N.array) != Py_None)      /* a finalizer had it computed, while others were */
        Py_RETURN_TRUE;
    if (found == TOO_LONG)
        Py_RETURN_FALSE;
    hold(&chain);
    PyObject *device = Py_NewRef(got(node, N.device)), *program = NULL, *kernel = NULL, *stream = NULL;
    PyObject *results = NULL, *result = NULL, *arguments = list_of(chain.argument, chain.inputs);
    PyObject *shape = Py_NewRef(chain.shape != NULL ? chain.shape : got(node, N.shape));
    PyObject *fortran = Py_NewRef(chain.shape != NULL ? chain.fortran : got(node, N.fortran));
    for (int i = 0; i < chain.nodes; i++) {
        PyObject *home = home_of(chain.node[i]);
        if (home != NULL || i == chain.nodes - 1)
            outputs[kept++] = i;
        Py_XDECREF(home);
    }
    if (arguments == NULL || (program = program_of(&chain, outputs, kept)) == NULL)
        goto end;
    int with_partners = PyObject_IsTrue(partners);
    if (with_partners < 0 || (stream = PyObject_CallMethodNoArgs(device, text_stream)) == NULL)
        goto end;
    int here = joined(chain.source, chain.inputs, stream, with_partners);
    if (here <= 0) {
        if (here == 0)
            result = Py_NewRef(Py_False);
        goto end;
    }
    PyObject *rule = got(node, N.rule);
    if (rule != Py_None) {
        PyObject *learns = PyObject_GetAttr(device, text_learns);
        int counts = learns == NULL ? -1 : PyObject_IsTrue(learns);
        Py_XDECREF(learns);
        PyObject *alone = counts > 0 ? PyLong_FromLong(PyLong_AsLong(got(rule, R.alone)) + 1) : NULL;
        if (counts < 0 || (counts > 0 && alone == NULL))
            goto end;
        if (alone != NULL) {
            put(rule, R.alone, alone);
            Py_DECREF(alone);
        }
    }
    kernel = PyObject_CallMethodObjArgs(device, text_kernel, program, got(node, N.size), NULL);
    if (kernel == NULL)
        goto end;
    if (kernel != Py_None)
        results = PyObject_CallFunctionObjArgs(kernel, arguments, shape, fortran, NULL);
    else {
        PyObject *last = PyList_New(kept);
        for (int i = 0; last != NULL && i < kept; i++)
            PyList_SET_ITEM(last, i, Py_NewRef(chain.node[outputs[i]]));
        if (last != NULL)
            results = PyObject_CallFunctionObjArgs(unfused, device, program, arguments, shape, fortran, last, NULL);
        Py_XDECREF(last);
    }
    if (results == NULL)
        goto end;
    if (!PyList_CheckExact(results) || PyList_GET_SIZE(results) != kept) {
        PyErr_SetString(PyExc_TypeError, "a kernel gives a list of its outputs");
        goto end;
    }
    for (int i = 0; i < kept; i++)
        if (settle(chain.node[outputs[i]], PyList_GET_ITEM(results, i), stream, shape, fortran) < 0)
            goto end;
    result = Py_NewRef(Py_True);
end:
    Py_XDECREF(results);
    Py_XDECREF(kernel);
    Py_XDECREF(stream);
    Py_XDECREF(program);
    Py_XDECREF(arguments);
    Py_DECREF(shape);
    Py_DECREF(fortran);
    Py_DECREF(device);
    drop_chain(&chain);
    return result;
}
