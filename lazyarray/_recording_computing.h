/* The computing of a chain, as `fusion.graph` has it: its walk, the look for its program, and what becomes of results. */

#define MOST_NODES 48       /* more than MOST_STEPS; what is larger is left to Python */
#define MOST_INPUTS 96
#define MOST_CODES 256

/* The nodes of one kernel, operands first, and what was found out on the way to them: `graph.Order` says what it means.
   What is in it is borrowed until `hold`. */
typedef struct {
    int nodes, inputs, codes;
    PyObject *node[MOST_NODES], *argument[MOST_INPUTS], *mode[MOST_INPUTS], *source[MOST_INPUTS];
    struct { PyObject *step; int number; } code[MOST_CODES];    /* a step, or without one the number of an operand */
    PyObject *shape, *fortran;      /* that strided inputs are walked in, or NULL */
} Chain;

enum { WALKED, OTHER, TOO_LONG, FAILED = -1 };

/* The number of an input, a new one unless it is known: two leaves of one array are one. -1: there is no room. */
static int
input_of(Chain *chain, PyObject *argument, PyObject *mode, PyObject *source)
{
    if (source != NULL)
        for (int i = 0; i < chain->inputs; i++)
            if (chain->argument[i] == argument && chain->mode[i] == mode && chain->source[i] != NULL
                    && (chain->source[i] == source
                        || (Py_TYPE(source) == leaf_type && Py_TYPE(chain->source[i]) == leaf_type)))
                return i;
    if (chain->inputs == MOST_INPUTS)
        return -1;
    chain->argument[chain->inputs] = argument;
    chain->mode[chain->inputs] = mode;
    chain->source[chain->inputs] = source;
    return chain->inputs++;
}

/* OTHER: `*other`, borrowed, has to be computed before. */
static int
walk(Chain *chain, PyObject *node, PyObject **other)
{
    if (got(node, N.strided) == Py_True) {
        if (chain->shape == NULL) {
            chain->shape = got(node, N.shape);
            chain->fortran = got(node, N.fortran);
        }
        else {
            int alike = chain->fortran == got(node, N.fortran) ? same(chain->shape, got(node, N.shape)) : 0;
            if (alike < 0)
                return FAILED;
            if (!alike) {
                *other = node;
                return OTHER;
            }
        }
    }
    PyObject *operands = got(node, N.operands);
    if (!PyTuple_CheckExact(operands) || PyTuple_GET_SIZE(operands) >= MOST_CODES)
        return TOO_LONG;
    Py_ssize_t count = PyTuple_GET_SIZE(operands);
    int found[MOST_INPUTS];
    if (count > MOST_INPUTS)
        return TOO_LONG;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *operand = PyTuple_GET_ITEM(operands, i);
        if (Py_TYPE(operand) == leaf_type)
            found[i] = input_of(chain, got(operand, L.array), got(operand, L.mode), operand);
        else if (Py_TYPE(operand) != node_type)
            found[i] = input_of(chain, operand, text_value, NULL);
        else {
            int known = 0;
            while (known < chain->nodes && chain->node[known] != operand)
                known++;
            if (known < chain->nodes) {
                found[i] = -1 - known;
                continue;
            }
            int alike = same(got(operand, N.size), got(node, N.size));
            if (alike < 0)
                return FAILED;
            if (got(operand, N.array) != Py_None)
                found[i] = input_of(chain, got(operand, N.array), alike ? text_flat : text_strided, operand);
            else {
                *other = operand;
                int next = alike ? walk(chain, operand, other) : OTHER;
                if (next != WALKED)
                    return next;
                found[i] = -chain->nodes;
                continue;
            }
        }
        if (found[i] < 0)
            return TOO_LONG;
    }
    if (chain->nodes == MOST_NODES || chain->codes + count + 1 > MOST_CODES)
        return TOO_LONG;
    chain->code[chain->codes++].step = got(node, N.step);
    for (Py_ssize_t i = 0; i < count; i++) {
        chain->code[chain->codes].step = NULL;
        chain->code[chain->codes++].number = found[i];
    }
    chain->node[chain->nodes++] = node;
    return WALKED;
}

/* The nodes of one kernel that gives `node`. What can't be of that kernel is computed before. */
static int
gather(Chain *chain, PyObject *node)
{
    for (;;) {
        PyObject *other = NULL;
        chain->nodes = chain->inputs = chain->codes = 0;
        chain->shape = NULL;
        int found = walk(chain, node, &other);
        if (found != OTHER)
            return found;
        Py_INCREF(other);
        PyObject *done = PyObject_CallMethodNoArgs(other, text_compute);
        Py_DECREF(other);
        if (done == NULL)
            return FAILED;
        Py_DECREF(done);
    }
}

/* From here on Python code may run, and let go of operands; `drop_chain` ends it. */
static void
hold(const Chain *chain)
{
    for (int i = 0; i < chain->nodes; i++)
        Py_INCREF(chain->node[i]);
    for (int i = 0; i < chain->inputs; i++) {
        Py_INCREF(chain->argument[i]);
        Py_XINCREF(chain->source[i]);
    }
}

static void
drop_chain(const Chain *chain)
{
    for (int i = 0; i < chain->nodes; i++)
        Py_DECREF(chain->node[i]);
    for (int i = 0; i < chain->inputs; i++) {
        Py_DECREF(chain->argument[i]);
        Py_XDECREF(chain->source[i]);
    }
}

static PyObject *
list_of(PyObject *const *items, int count)
{
    PyObject *list = PyList_New(count);
    for (int i = 0; list != NULL && i < count; i++)
        PyList_SET_ITEM(list, i, Py_NewRef(items[i]));
    return list;
}

/* The codes, then the modes, then the codes of the outputs and a number, as `graph._program` makes a key of them. */
static PyObject *
key_of(const Chain *chain, const int *outputs, int kept, Py_ssize_t ndim)
{
    PyObject *key = PyTuple_New(chain->codes + chain->inputs + kept + 1);
    if (key == NULL)
        return NULL;
    Py_ssize_t place = 0;
    for (int i = 0; i < chain->codes; i++) {
        PyObject *step = chain->code[i].step;
        PyTuple_SET_ITEM(key, place++, step != NULL ? Py_NewRef(step) : PyLong_FromLong(chain->code[i].number));
    }
    for (int i = 0; i < chain->inputs; i++)
        PyTuple_SET_ITEM(key, place++, Py_NewRef(chain->mode[i]));
    for (int i = 0; i < kept; i++)
        PyTuple_SET_ITEM(key, place++, PyLong_FromLong(-1 - outputs[i]));
    PyTuple_SET_ITEM(key, place++, PyLong_FromSsize_t(ndim));
    for (Py_ssize_t i = 0; i < place; i++)
        if (PyTuple_GET_ITEM(key, i) == NULL) {
            Py_DECREF(key);
            return NULL;
        }
    return key;
}

/* The program of a form, a new reference; Python makes those that are not known yet. */
static PyObject *
program_of(const Chain *chain, const int *outputs, int kept)
{
    Py_ssize_t ndim = chain->shape == NULL ? 0 : PyTuple_GET_SIZE(chain->shape);
    PyObject *key = key_of(chain, outputs, kept, ndim);
    PyObject *program = key == NULL ? NULL : PyDict_GetItemWithError(programs, key);
    if (program != NULL)
        Py_INCREF(program);
    else if (key != NULL && !PyErr_Occurred()) {
        PyObject *parts[] = {PyLong_FromLong(chain->codes), PyLong_FromLong(chain->inputs)};
        if (parts[0] != NULL && parts[1] != NULL)
            program = PyObject_CallFunctionObjArgs(new_program, key, parts[0], parts[1], NULL);
        Py_XDECREF(parts[0]);
        Py_XDECREF(parts[1]);
    }
    Py_XDECREF(key);
    return program;
}

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
    if (home != NULL && Py_TYPE(home) == storage_type && got(home, S.pending) == node) {
        put(home, S.root, seen);
        put(home, S.stream, stream);
        put(home, S.readers, got(node, N.readers));
        put(home, S.pending, Py_None);
        put(home, S.quiet, Py_True);        /* last: until then other threads take the slow way */
    }
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

PyDoc_STRVAR(needed_doc, "needed(node, /)\n--\n\n"
"The `graph.Order` of a node, or None: then it is left to Python. The caller holds the lock.");

static PyObject *
needed(PyObject *Py_UNUSED(module), PyObject *node)
{
    if (node_type == NULL || Py_TYPE(node) != node_type)
        Py_RETURN_NONE;
    Chain chain;
    int found = gather(&chain, node);
    if (found == FAILED)
        return NULL;
    if (found == TOO_LONG)
        Py_RETURN_NONE;
    hold(&chain);
    PyObject *parts[6] = {
        PyList_New(chain.codes), PyDict_New(), list_of(chain.mode, chain.inputs),
        list_of(chain.argument, chain.inputs), PyList_New(0),
        chain.shape == NULL ? Py_NewRef(Py_None) : PyTuple_Pack(2, chain.shape, chain.fortran)};
    PyObject *order = order_type->tp_new(order_type, no_arguments, NULL);
    int failed = order == NULL;
    for (int i = 0; i < 6; i++)
        failed |= parts[i] == NULL;
    for (int i = 0; !failed && i < chain.codes; i++) {
        PyObject *step = chain.code[i].step;
        PyObject *code = step != NULL ? Py_NewRef(step) : PyLong_FromLong(chain.code[i].number);
        failed = code == NULL;
        PyList_SET_ITEM(parts[0], i, code);
    }
    for (int i = 0; !failed && i < chain.nodes; i++) {
        PyObject *number = PyLong_FromLong(-1 - i);
        failed = number == NULL || PyDict_SetItem(parts[1], chain.node[i], number) < 0
            || PyList_Append(order, chain.node[i]) < 0;
        Py_XDECREF(number);
    }
    for (int i = 0; !failed && i < chain.inputs; i++)
        failed = chain.source[i] != NULL && PyList_Append(parts[4], chain.source[i]) < 0;
    for (int i = 0; !failed && i < 6; i++)
        put(order, *order_slots[i], parts[i]);
    for (int i = 0; i < 6; i++)
        Py_XDECREF(parts[i]);
    drop_chain(&chain);
    if (failed)
        Py_CLEAR(order);
    return order;
}
