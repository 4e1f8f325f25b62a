/* A chain that one kernel computes, as `fusion.graph` finds it: the walk from its last node, and its program. */

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
