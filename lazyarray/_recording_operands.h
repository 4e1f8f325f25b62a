/* The operands of a plain call, its rule, and from which size on it is recorded. */

/* An operand of a plain call: a Node or a Leaf, and the form in which it is seen. All are references of our own. */
typedef struct { PyObject *item, *shape, *fortran, *size, *dtype, *template; } Operand;

static void
drop(Operand *o)
{
    Py_CLEAR(o->item);
    Py_CLEAR(o->shape);
    Py_CLEAR(o->fortran);
    Py_CLEAR(o->size);
    Py_CLEAR(o->dtype);
    Py_CLEAR(o->template);
}

#define SEEN(o, where) \
    ((o)->shape = Py_NewRef(got((o)->item, where.shape)), (o)->fortran = Py_NewRef(got((o)->item, where.fortran)), \
     (o)->size = Py_NewRef(got((o)->item, where.size)), (o)->dtype = Py_NewRef(got((o)->item, where.dtype)), \
     (o)->template = Py_NewRef(got((o)->item, where.template)))

static int
same(PyObject *a, PyObject *b)
{
    return a == b ? 1 : PyObject_RichCompareBool(a, b, Py_EQ);
}

/* Whether the elements of a buffer lie in memory one after the other, in C's order or (`fortran`) in Fortran's. */
static int
is_packed(const Py_buffer *buffer, int fortran)
{
    Py_ssize_t expected = buffer->itemsize;
    for (int i = 0; i < buffer->ndim; i++) {
        int axis = fortran ? i : buffer->ndim - 1 - i;
        if (buffer->shape[axis] != 1 && buffer->strides[axis] != expected)
            return buffer->len == 0;
        expected *= buffer->shape[axis];
    }
    return 1;
}

/* A view of all that a node gives, in one order or the other. 1: it is one, 0: not, -1: an error. NumPy's arrays are
buffers, whose form is there at once; of its attributes each is an object. */
static int
seen_whole(PyObject *node, PyObject *outline, Operand *o)
{
    Py_buffer buffer;
    PyObject *dtype = PyObject_GetAttr(outline, text_dtype);
    Py_XDECREF(dtype);      /* the outline has it */
    if (dtype == NULL)
        return -1;
    if (dtype != got(node, N.dtype))
        return 0;
    if (PyObject_GetBuffer(outline, &buffer, PyBUF_STRIDED_RO) < 0) {
        PyErr_Clear();
        return 0;
    }
    Py_ssize_t size = PyLong_AsSsize_t(got(node, N.size));
    int whole = buffer.ndim > 0 && buffer.itemsize > 0 && buffer.len == size * buffer.itemsize;
    int c = whole && is_packed(&buffer, 0), f = whole && !c && is_packed(&buffer, 1);
    PyBuffer_Release(&buffer);
    if (!c && !f)
        return 0;
    o->shape = PyObject_GetAttr(outline, text_shape);
    if (o->shape == NULL)
        return -1;
    o->item = Py_NewRef(node);
    o->fortran = Py_NewRef(c ? Py_False : Py_True);
    o->size = Py_NewRef(got(node, N.size));
    o->dtype = Py_NewRef(dtype);
    o->template = Py_NewRef(Py_None);
    return 1;
}

/* 1: `x` is an operand, 0: it is one for the general way, -1: an error. */
static int
operand_of(PyObject *x, Operand *o)
{
    PyObject *storage = got(x, X.storage);
    if (Py_TYPE(storage) != storage_type)
        return 0;
    PyObject *node = got(storage, S.pending);
    if (node != Py_None) {
        if (Py_TYPE(node) != node_type || got(node, N.place) != Py_None)
            return 0;
        if (got(x, X.outline) == got(storage, S.root_view)) {
            o->item = Py_NewRef(node);
            SEEN(o, N);
            return 1;
        }
        if (got(x, X.outline) == Py_None)
            return 0;
        PyObject *outline = Py_NewRef(got(x, X.outline));
        Py_INCREF(node);
        int found = seen_whole(node, outline, o);
        Py_DECREF(node);
        Py_DECREF(outline);
        return found;
    }
    PyObject *leaf = got(x, X.leaf);
    if (leaf != Py_None && AT(leaf, L.array) == got(x, X.array) && got(storage, S.quiet) == Py_True
            && got(storage, S.foreign) == Py_False && PyTuple_CheckExact(got(storage, S.loans))
            && PyTuple_GET_SIZE(got(storage, S.loans)) == 0)
        Py_INCREF(leaf);
    else if (leaf == Py_None && got(x, X.outline) != Py_None && got(x, X.outline) != got(storage, S.root_view))
        return 0;       /* a view */
    else if ((leaf = PyObject_CallOneArg(ready, x)) == NULL)
        return -1;
    if (Py_TYPE(leaf) != leaf_type) {
        Py_DECREF(leaf);
        return 0;
    }
    o->item = leaf;
    SEEN(o, L);
    return 1;
}

/* Of a Node or a Leaf. */
#define OF(item, name) got(item, Py_TYPE(item) == node_type ? N.name : L.name)

static inline int
is_real_number(PyObject *x)
{
    return PyLong_CheckExact(x) || PyFloat_CheckExact(x) || PyComplex_CheckExact(x);
}

/* A borrowed rule; NULL without an error if there is none. */
static PyObject *
rule_for(PyObject *ufunc, PyObject *one, PyObject *other)
{
    PyObject *key = other == NULL ? PyTuple_Pack(2, ufunc, one) : PyTuple_Pack(3, ufunc, one, other);
    if (key == NULL)
        return NULL;
    PyObject *rule = PyDict_GetItemWithError(rules, key);
    Py_DECREF(key);
    return rule;
}

/* The bytes from which on work is recorded; -1: never, -2: an error. */
static Py_ssize_t
least_bytes(PyObject **kept)
{
    PyObject *options = options_here(), *value = options == NULL ? NULL : PyObject_GetAttr(options, text_defer_from);
    Py_XDECREF(options);
    if (value == NULL)
        return -2;
    *kept = value;
    if (value == Py_None)
        return -1;
    Py_ssize_t least = PyLong_AsSsize_t(value);
    if (least >= 0)
        return least;
    if (!PyErr_Occurred() || !PyErr_ExceptionMatches(PyExc_OverflowError))
        return -2;
    PyErr_Clear();      /* more than there can be */
    return PY_SSIZE_T_MAX;
}

/* Whether NumPy raises or calls a function at errors of floating-point numbers; -1: an error. As `recording.quick`. */
static int
told_of_errors(void)
{
    PyObject *what, *answer;
    if (PyContextVar_Get(errors, NULL, &what) < 0)
        return -1;
    Py_XDECREF(what);
    if (what == usual_errors)
        return 0;
    answer = PyObject_CallNoArgs(tells_of_errors);
    int told = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    return told;
}
