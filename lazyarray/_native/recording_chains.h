/* A chain that one kernel computes, the walk from its last node, and its program. */

#define MOST_NODES 64       /* more than MOST_STEPS, and inputs and codes for so many steps of three operands */
#define MOST_INPUTS 128
#define MOST_CODES 256

/* The nodes of one kernel, operands first, and what was found out on the way to them. Inputs are arrays and numbers,
   with how each is read ("flat", "strided", "value") and the leaf or node that an array comes from. Codes are the form of
   the chain: each step, then the numbers of its operands, from 0 on of inputs, from -1 down of nodes. All is borrowed until
   `hold`. */
typedef struct {
    int nodes, inputs, codes;
    PyObject *node[MOST_NODES], *argument[MOST_INPUTS], *mode[MOST_INPUTS], *source[MOST_INPUTS];
    struct { PyObject *step; int number; } code[MOST_CODES];    /* a step, or without one the number of an operand */
    PyObject *shape, *fortran;      /* that strided inputs are walked in, or NULL */
} Chain;

enum { WALKED, OTHER };

static int
is_too_long(void)
{
    PyErr_SetString(PyExc_RuntimeError, "recorded work of more steps than one kernel has");
    return FAILED;
}

/* Whether two leaves of one array, or nodes, are one input. Leaves of two host arrays with the same bytes, of which there is one
copy, are not: programs would depend on values, and on where host arrays lie. */
static int
is_one_input(PyObject *a, PyObject *b)
{
    return a == b || (Py_TYPE(a) == types.Leaf && Py_TYPE(b) == types.Leaf && got(a, L.host) == got(b, L.host)
                      && got(a, L.host) != Py_True);
}

/* The number of an input, a new one unless it is known. -1: there is no room. */
static int
input_of(Chain *chain, PyObject *argument, PyObject *mode, PyObject *source)
{
    if (source != NULL)
        for (int i = 0; i < chain->inputs; i++)
            if (chain->argument[i] == argument && chain->mode[i] == mode && chain->source[i] != NULL
                    && is_one_input(chain->source[i], source))
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
    Py_ssize_t count = PyTuple_GET_SIZE(operands);
    int found[MOST_INPUTS];
    if (count > MOST_INPUTS)
        return is_too_long();
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *operand = PyTuple_GET_ITEM(operands, i);
        if (Py_TYPE(operand) == types.Leaf)
            found[i] = input_of(chain, got(operand, L.array), got(operand, L.mode), operand);
        else if (Py_TYPE(operand) != types.Node)
            found[i] = input_of(chain, operand, text.value, NULL);
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
                found[i] = input_of(chain, got(operand, N.array), alike ? text.flat : text.strided, operand);
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
            return is_too_long();
    }
    if (chain->nodes == MOST_NODES || chain->codes + count + 1 > MOST_CODES)
        return is_too_long();
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
        int failed = done(other, text.compute);
        Py_DECREF(other);
        if (failed)
            return FAILED;
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

/* The codes, then the modes, then the codes of the outputs, and how many axes are walked (-1 and less: the last input is
what the last output is written to). */
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
program_of(const Chain *chain, const int *outputs, int kept, int into)
{
    Py_ssize_t ndim = chain->shape == NULL ? 0 : PyTuple_GET_SIZE(chain->shape);
    PyObject *key = key_of(chain, outputs, kept, into ? -1 - ndim : ndim);
    PyObject *program = key == NULL ? NULL : PyDict_GetItemWithError(py.programs, key);
    if (program != NULL)
        Py_INCREF(program);
    else if (key != NULL && !PyErr_Occurred()) {
        PyObject *parts[] = {PyLong_FromLong(chain->codes), PyLong_FromLong(chain->inputs)};
        if (parts[0] != NULL && parts[1] != NULL)
            program = PyObject_CallFunctionObjArgs(py.new_program, key, parts[0], parts[1], NULL);
        Py_XDECREF(parts[0]);
        Py_XDECREF(parts[1]);
    }
    Py_XDECREF(key);
    return program;
}

/* Where the arrays among the inputs come from. */
static PyObject *
sources_of(const Chain *chain)
{
    PyObject *sources = PyList_New(0);
    for (int i = 0; sources != NULL && i < chain->inputs; i++)
        if (chain->source[i] != NULL && PyList_Append(sources, chain->source[i]) < 0)
            Py_CLEAR(sources);
    return sources;
}

/* The shape that a kernel walks, and whether in Fortran order: that of the nodes that read along its axes. */
static void
form_of(const Chain *chain, PyObject *node, PyObject **shape, PyObject **fortran)
{
    *shape = Py_NewRef(chain->shape != NULL ? chain->shape : got(node, N.shape));
    *fortran = Py_NewRef(chain->shape != NULL ? chain->fortran : got(node, N.fortran));
}

PyDoc_STRVAR(needed_doc, "needed(node, /)\n--\n\n"
"What one kernel that gives a node is made of: (nodes, program of its value alone, arguments, sources of the arrays\n"
"among them, (shape, whether in Fortran order)). What can't be of that kernel is computed before.\n"
"The caller holds the lock.");

static PyObject *
needed(PyObject *Py_UNUSED(module), PyObject *node)
{
    Chain chain;
    if (types.Node == NULL || Py_TYPE(node) != types.Node)
        return PyErr_Format(PyExc_TypeError, "%.100s is no node", Py_TYPE(node)->tp_name);
    if (gather(&chain, node) == FAILED)
        return NULL;
    hold(&chain);
    PyObject *shape, *fortran, *sources = sources_of(&chain), *result = NULL;
    const int last = chain.nodes - 1;
    form_of(&chain, node, &shape, &fortran);
    PyObject *program = sources == NULL ? NULL : program_of(&chain, &last, 1, 0);
    if (program != NULL)
        result = Py_BuildValue("NNNN(OO)", list_of(chain.node, chain.nodes), program,
                               list_of(chain.argument, chain.inputs), sources, shape, fortran);
    else
        Py_XDECREF(sources);
    Py_DECREF(shape);
    Py_DECREF(fortran);
    drop_chain(&chain);
    return result;
}
