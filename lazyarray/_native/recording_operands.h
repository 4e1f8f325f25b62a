/* The operands of a call as they are found, and its key; and from which size on it is recorded. */

#define MOST_OPERANDS 3

enum { FAILED = -1, NONE, WHOLE, VIEW, NUMBER };

/* An operand. WHOLE: a Node or a Leaf of a dense array, seen in this form. VIEW: a device array in its storage, where
`turned` is the lazy array if the device array is that of the storage, whose elements it sees in another shape, and
`brought` whether it is a copy of what stays on the host. NUMBER: a number, and its dtype or its type. `lies`: how, in the
key. References of our own. */
typedef struct { PyObject *item, *array, *storage, *number, *large, *turned, *lies; Form form; int what, brought; } Seen;

static void
forget(Seen *s)
{
    for (PyObject **one = &s->item; one < (PyObject **)&s->what; one++)
        Py_CLEAR(*one);
    s->brought = 0;
}

#define SEE_AS(form, item, where) \
    ((form).shape = Py_NewRef(got(item, where.shape)), (form).fortran = Py_NewRef(got(item, where.fortran)), \
     (form).size = Py_NewRef(got(item, where.size)), (form).dtype = Py_NewRef(got(item, where.dtype)))

/* Of a Node or a Leaf. */
#define OF(item, name) got(item, Py_TYPE(item) == types.Node ? N.name : L.name)

/* How a node lies, where a whole array has a bool and a view its strides: in C order as it was recorded, in Fortran's,
and, seen in another shape, in one or the other; in another order of its axes a tuple of its strides and None. */
enum { AS_RECORDED = 2, FORTRAN, C_SEEN, FORTRAN_SEEN };

static int
same(PyObject *a, PyObject *b)
{
    return a == b ? 1 : PyObject_RichCompareBool(a, b, Py_EQ);
}

/* A node is computed as it is by itself. */
static int
compute_alone(PyObject *node)
{
    return done(node, text.compute);
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

/* 1 if one device alone is in use, as far as is known, 0 if several are, -1 with an error. */
static int
is_sole(PyObject *device)
{
    return is_set_to(device, text.several, Py_False);
}

/* The same, where something is made or computed: the current device is looked at. */
static int
is_alone(PyObject *device)
{
    return is_set_to(device, text.spread, Py_False);
}

/* Whether the elements of a buffer lie in memory one after the other, in some order of its axes. */
static int
is_dense(const Py_buffer *buffer)
{
    Py_ssize_t expected = buffer->itemsize;
    while (expected < buffer->len) {
        int axis = 0;
        while (axis < buffer->ndim && (buffer->shape[axis] == 1 || buffer->strides[axis] != expected))
            axis++;
        if (axis == buffer->ndim)
            return 0;
        expected *= buffer->shape[axis];
    }
    return expected == buffer->len;
}

/* Whether a view has all elements of its storage, one after the other, in C's order (1), in Fortran's (2), or in another one of its
axes (3); 0: it has not, -1: an error. NumPy's arrays are buffers, whose form is there at once; of its attributes each is an object. */
static int
sees_all(PyObject *meta, PyObject *root_view)
{
    Py_buffer one, all;
    PyObject *dtype = PyObject_GetAttr(meta, text.dtype), *other = PyObject_GetAttr(root_view, text.dtype);
    int found = dtype == NULL || other == NULL ? FAILED : dtype == other;
    Py_XDECREF(dtype);
    Py_XDECREF(other);
    if (found <= 0)
        return found;
    if (PyObject_GetBuffer(meta, &one, PyBUF_STRIDED_RO) < 0) {
        PyErr_Clear();      /* of few dtypes */
        return 0;
    }
    found = PyObject_GetBuffer(root_view, &all, PyBUF_STRIDED_RO) == 0;
    if (found) {
        if (one.buf != all.buf || one.len != all.len || one.len == 0 || one.ndim == 0
                || (!is_packed(&all, 0) && !is_packed(&all, 1)))
            found = 0;
        else
            found = is_packed(&one, 0) ? 1 : is_packed(&one, 1) ? 2 : is_dense(&one) ? 3 : 0;
        PyBuffer_Release(&all);
    }
    PyErr_Clear();
    PyBuffer_Release(&one);
    return found;
}

/* Recorded work, seen as a whole: as it was recorded, or all of it in another shape, or another order of the axes. */
static int
see_node(PyObject *x, PyObject *storage, Seen *s)
{
    PyObject *node = s->item, *meta = got(x, X.meta);
    int fortran = got(node, N.fortran) == Py_True, alike = 0, order;
    if (Py_TYPE(node) != types.Node || got(node, N.place) != Py_None || meta == Py_None)
        return NONE;
    if (meta == got(storage, S.root_view)) {
        SEE_AS(s->form, node, N);
        s->lies = PyLong_FromLong(fortran ? FORTRAN : AS_RECORDED);
        return WHOLE;
    }
    if ((order = sees_all(meta, got(storage, S.root_view))) <= 0)
        return order;
    SEE_AS(s->form, node, N);
    Py_INCREF(meta);        /* until 3.11 the collector may run within */
    Py_SETREF(s->form.shape, PyObject_GetAttr(meta, text.shape));
    Py_DECREF(meta);
    if (s->form.shape == NULL)
        return FAILED;
    if (order == 3) {
        PyObject *strides = PyObject_GetAttr(meta, text.strides);
        Py_SETREF(s->form.fortran, Py_NewRef(Py_None));
        s->lies = strides == NULL ? NULL : PyTuple_Pack(2, strides, Py_None);
        Py_XDECREF(strides);
        return s->lies == NULL ? FAILED : WHOLE;
    }
    if (order == 1 && !fortran)
        alike = same(s->form.shape, got(node, N.shape));
    Py_SETREF(s->form.fortran, Py_NewRef(order == 1 ? Py_False : Py_True));
    s->lies = PyLong_FromLong(order == 2 ? FORTRAN_SEEN : alike ? AS_RECORDED : C_SEEN);
    return alike < 0 ? FAILED : WHOLE;
}

/* The device array that an ndarray, in memory from `origin` on, shows of a storage whose bytes are there: a new reference. */
static PyObject *
device_view_from(PyObject *storage, PyObject *meta, Py_ssize_t origin)
{
    PyObject *block = PyObject_GetAttr(storage, text._block), *shape = NULL, *dtype = NULL, *strides = NULL, *offset = NULL;
    PyObject *array = NULL;
    if (block == Py_None)
        Py_SETREF(block, PyObject_GetAttr(storage, text.block));
    if (block != NULL && (shape = PyObject_GetAttr(meta, text.shape)) != NULL
            && (dtype = PyObject_GetAttr(meta, text.dtype)) != NULL && (strides = PyObject_GetAttr(meta, text.strides)) != NULL
            && (offset = PyLong_FromSsize_t((Py_ssize_t)PyArray_DATA((PyArrayObject *)meta) - origin)) != NULL)
        array = PyObject_CallMethodObjArgs(got(storage, S.device), text.view, block, shape, dtype, strides, offset, NULL);
    Py_XDECREF(block);
    Py_XDECREF(shape);
    Py_XDECREF(dtype);
    Py_XDECREF(strides);
    Py_XDECREF(offset);
    return array;
}

/* The same of a meta other than the root's. */
static PyObject *
device_view_of(PyObject *storage, PyObject *meta)
{
    return device_view_from(storage, meta, limits.ORIGIN);
}

/* The storage of a lazy array, if there is one by now; borrowed, or None. */
static PyObject *
storage_by_now(PyObject *x)
{
    PyObject *storage = got(x, X.storage), *home = got(x, X.home);
    return storage == Py_None && home != Py_None ? got(home, H.storage) : storage;
}

/* The last of the ndarrays that look at the memory of the next. */
static PyArrayObject *
owner_of(PyObject *array)
{
    PyArrayObject *owner = (PyArrayObject *)array;
    PyObject *base;
    while ((base = PyArray_BASE(owner)) != NULL && PyArray_CheckExact(base))
        owner = (PyArrayObject *)base;
    return owner;
}

/* A set of one large input: (identity of its storage, its bytes). */
static PyObject *
large_input(PyObject *storage, Py_ssize_t nbytes)
{
    PyObject *one = Py_BuildValue("((Nn))", PyLong_FromVoidPtr(storage), nbytes), *set = one == NULL ? NULL : PyFrozenSet_New(one);
    Py_XDECREF(one);
    return set;
}

/* A device array that is ready, of a view or of a scalar (without a meta). */
static int
see_held_view(PyObject *x, PyObject *storage, Seen *s, PyObject *array, PyObject *meta, int ours)
{
    PyObject *root = got(storage, S.root), *root_view = got(storage, S.root_view);
    if (ours && array != Py_None)
        s->array = Py_NewRef(array);
    else if (ours && meta != Py_None && root != Py_None && root_view != Py_None && meta != root_view) {
        int all = sees_all(meta, root_view);
        if (all < 0)
            return FAILED;
        if (all == 1 || all == 2) {
            s->array = Py_NewRef(root);
            s->turned = Py_NewRef(x);
        }
    }
    if (ours && s->array == NULL && meta != Py_None && meta != root_view && PyArray_Check(meta)
            && PyTuple_CheckExact(got(storage, S.loans)) && PyTuple_GET_SIZE(got(storage, S.loans)) == 0) {
        if ((s->array = device_view_of(storage, meta)) == NULL)
            return FAILED;
        if (got(storage, S.clean) != Py_True)       /* another thread has moved it: the block is not of these bytes */
            Py_CLEAR(s->array);
        else if (got(x, X.meta) == meta && got(x, X.storage) == storage)        /* else it has changed `x` */
            put(x, X.array, s->array);
    }
    if (s->array == NULL && (s->array = PyObject_CallOneArg(py.ready_array, x)) == NULL)
        return FAILED;
    int alone = s->array == Py_None ? 0 : is_sole(got(storage, S.device));
    if (alone <= 0)
        return alone;
    s->storage = Py_NewRef(storage);
    const int is_root = s->array == got(storage, S.root);
    PyObject *bytes = PyObject_GetAttr(is_root ? s->array : storage, is_root ? text.nbytes : text._nbytes);
    if (bytes == Py_None)
        Py_SETREF(bytes, PyObject_GetAttr(storage, text.nbytes));
    Py_ssize_t nbytes = bytes == NULL ? -1 : PyLong_AsSsize_t(bytes);
    Py_XDECREF(bytes);
    if (nbytes < 0)
        return FAILED;
    if (nbytes >= limits.LARGE && (s->large = large_input(storage, nbytes)) == NULL)
        return FAILED;
    PyObject *seen = s->turned != NULL ? meta : s->array;
    Py_INCREF(seen);
    s->form.dtype = PyObject_GetAttr(seen, text.dtype);
    s->form.shape = s->form.dtype == NULL ? NULL : PyObject_GetAttr(seen, text.shape);
    s->lies = s->form.shape == NULL ? NULL : PyObject_GetAttr(seen, text.strides);
    Py_DECREF(seen);
    return s->form.dtype == NULL || s->form.shape == NULL || s->lies == NULL ? FAILED : VIEW;
}

/* The same, with references of our own: another thread may give `x` another meta. */
static int
see_view(PyObject *x, PyObject *storage, Seen *s, PyObject *array, PyObject *meta, int ours)
{
    Py_INCREF(array);
    Py_INCREF(meta);
    int what = see_held_view(x, storage, s, array, meta, ours);
    Py_DECREF(meta);
    Py_DECREF(array);
    return what;
}

static int
see_number(PyObject *number, Seen *s)
{
    s->number = Py_NewRef(number);
    s->form.dtype = PyObject_TypeCheck(number, types.generic) ? (PyObject *)PyArray_DescrFromScalar(number)
                                                              : Py_NewRef(Py_TYPE(number));
    return s->form.dtype == NULL ? FAILED : NUMBER;
}

/* Whether the bytes of a storage are there, and what is known of who else holds them still holds: 1 or 0; -1: an error. */
static int
is_ours(PyObject *storage)
{
    PyObject *loans = got(storage, S.loans);
    int ours = got(storage, S.clean) == Py_True && got(storage, S.foreign) == Py_False && PyTuple_CheckExact(loans);
    Py_INCREF(loans);
    for (Py_ssize_t i = 0; ours > 0 && i < PyTuple_GET_SIZE(loans); i++) {
        PyObject *holder = PyObject_CallNoArgs(PyTuple_GET_ITEM(loans, i));
        ours = holder == NULL ? FAILED : holder != Py_None;     /* gone: that is for Python to note */
        Py_XDECREF(holder);
    }
    Py_DECREF(loans);
    return ours > 0 ? got(storage, S.clean) == Py_True && got(storage, S.foreign) == Py_False : ours;
}

/* Give an array that is an ndarray alone its storage, if other views of that have one. -1: an error. */
static int
is_completed(PyObject *x, PyObject **storage)
{
    PyObject *home = got(x, X.home), *slots[] = {text._self_storage, text._self_meta};
    if (home == Py_None || got(home, H.storage) == Py_None)
        return 0;
    for (int i = 0; i < 2; i++) {
        PyObject *found = PyObject_GetAttr(x, slots[i]);
        if (found == NULL)
            return -1;
        Py_DECREF(found);
    }
    *storage = got(x, X.storage);
    return 1;
}

/* A host array, or one that is nothing else: once it is sure that it is read, `bring` makes a copy on the device. */
static int
see_host(PyObject *x, PyObject *host, Seen *s)
{
    PyObject *strides;
    if (!PyArray_CheckExact(host) || PyArray_NDIM((PyArrayObject *)host) == 0 || PyArray_SIZE((PyArrayObject *)host) == 0)
        return NONE;
    s->brought = 1;
    s->item = Py_NewRef(x);
    Py_INCREF(host);
    s->form.dtype = PyObject_GetAttr(host, text.dtype);
    s->form.shape = s->form.dtype == NULL ? NULL : PyObject_GetAttr(host, text.shape);
    strides = s->form.shape == NULL ? NULL : PyObject_GetAttr(host, text.strides);
    Py_DECREF(host);
    s->lies = strides == NULL ? NULL : PyTuple_Pack(1, strides);
    Py_XDECREF(strides);
    return s->lies == NULL ? FAILED : VIEW;
}

/* Have such arrays among the operands on the device: 1, or 0 if one is not to stay as it is; -1: an error. */
static int
bring(PyObject *ufunc, Seen *given, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        Seen *s = &given[i];
        if (!s->brought || s->array != NULL)
            continue;
        PyObject *storage = PyObject_CallFunctionObjArgs(py.brought, s->item, ufunc, NULL);
        if (storage == NULL || Py_TYPE(storage) != types.Storage) {
            Py_XDECREF(storage);
            return storage == NULL ? -1 : 0;
        }
        s->storage = storage;
        s->array = Py_NewRef(got(storage, S.root));
    }
    return 1;
}

/* The leaf of a whole array in C order, or in Fortran's, that is nobody else's, kept with it: a new reference; NULL without an
error: it is for Python, `operands.whole`. */
static PyObject *
whole_leaf(PyObject *x, PyObject *storage)
{
    PyObject *array = Py_NewRef(got(x, X.array) != Py_None ? got(x, X.array) : got(storage, S.root)), *leaf = NULL, *shape = NULL;
    PyObject *size = NULL, *dtype = NULL, *bytes = NULL, *large = NULL, *fortran = NULL;
    Py_ssize_t nbytes;
    PyObject *meta = Py_XNewRef(AT(x, X.meta));     /* not filled yet: of one that was made on the host, perhaps of a part */
    if (meta == NULL || (meta != Py_None && meta != got(storage, S.root_view))
            || array == Py_None || PyTuple_GET_SIZE(got(storage, S.loans)) > 0 || is_sole(got(storage, S.device)) <= 0
            || (fortran = fortran_of(array)) == NULL || (shape = PyObject_GetAttr(array, text.shape)) == NULL
            || !PyTuple_CheckExact(shape) || PyTuple_GET_SIZE(shape) == 0 || (bytes = PyObject_GetAttr(array, text.nbytes)) == NULL
            || (nbytes = PyLong_AsSsize_t(bytes)) <= 0 || (size = PyObject_GetAttr(array, text.size)) == NULL
            || (large = nbytes >= limits.LARGE ? large_input(storage, nbytes) : Py_NewRef(no_arguments)) == NULL
            || (dtype = PyObject_GetAttr(array, text.dtype)) == NULL)
        goto end;
    if ((leaf = made_leaf(array, storage, text.flat)) == NULL)
        goto end;
    put(leaf, L.shape, shape);
    put(leaf, L.fortran, fortran);
    put(leaf, L.size, size);
    put(leaf, L.dtype, dtype);
    put(leaf, L.steps, zero);
    put(leaf, L.large, large);
    if (got(storage, S.clean) == Py_True && got(x, X.storage) == storage && AT(x, X.meta) == meta) {
        put(x, X.array, array);
        put(x, X.leaf, leaf);
    }
    else
        Py_CLEAR(leaf);
end:
    Py_XDECREF(large);
    Py_XDECREF(bytes);
    Py_XDECREF(dtype);
    Py_XDECREF(size);
    Py_XDECREF(shape);
    Py_XDECREF(meta);
    Py_DECREF(array);
    return leaf;
}

/* Whether a lazy array is a part of recorded work, not all of it seen otherwise. */
static int
is_part_of(PyObject *x, PyObject *node)
{
    PyObject *meta = got(x, X.meta);
    return Py_TYPE(node) == types.Node && got(node, N.place) == Py_None && PyArray_Check(meta)
        && PyArray_SIZE((PyArrayObject *)meta) != PyLong_AsSsize_t(got(node, N.size));
}

/* A lazy array in its storage. Of recorded work that is seen in part all is computed. */
static int
see_array(PyObject *x, PyObject *storage, Seen *s)
{
    PyObject *leaf, *meta;
    if (got(storage, S.pending) != Py_None) {
        s->item = Py_NewRef(got(storage, S.pending));
        const int what = see_node(x, storage, s);
        if (what != NONE || !is_part_of(x, s->item))
            return what;
        if (compute_alone(s->item) < 0)
            return FAILED;
        forget(s);
        if (got(storage, S.pending) != Py_None)
            return NONE;
    }
    put(storage, S.used, now);
    int ours = is_ours(storage);
    if (ours < 0)
        return FAILED;
    leaf = got(x, X.leaf);
    meta = got(x, X.meta);
    if (leaf != Py_None && ours && AT(leaf, L.storage) == storage && AT(leaf, L.array) == got(x, X.array))
        Py_INCREF(leaf);
    else if (leaf == Py_None && meta != Py_None && meta != got(storage, S.root_view))
        leaf = Py_NewRef(Py_None);
    else if ((leaf = ours ? whole_leaf(x, storage) : NULL) == NULL
             && (PyErr_Occurred() || (leaf = PyObject_CallOneArg(py.ready, x)) == NULL))
        return FAILED;
    if (Py_TYPE(leaf) == types.Leaf) {
        s->item = leaf;
        SEE_AS(s->form, leaf, L);
        s->lies = Py_NewRef(s->form.fortran);
        return WHOLE;
    }
    Py_DECREF(leaf);
    if (got(storage, S.pending) != Py_None || got(x, X.storage) != storage)     /* since then */
        return NONE;
    return see_view(x, storage, s, got(x, X.array), got(x, X.meta), ours);
}

/* The dtype of a lazy array or scalar, whose bytes are not asked for; NULL without an error: it is a scalar on the host. */
static PyObject *
dtype_of_lazy(PyObject *x)
{
    const int is_array = Py_TYPE(x) == types.LazyNdarray;
    PyObject *array = got(x, is_array ? X.array : V.array), *host = is_array ? got(x, X.host) : Py_None, *meta, *dtype;
    if (!is_array && got(x, V.storage) == Py_None)
        return NULL;
    if (array != Py_None || host != Py_None)
        return PyObject_GetAttr(array != Py_None ? array : host, text.dtype);
    if ((meta = PyObject_CallOneArg(py.meta_of, x)) == NULL)
        return NULL;
    dtype = PyObject_GetAttr(meta, text.dtype);
    Py_DECREF(meta);
    return dtype;
}

PyDoc_STRVAR(scalar_class_doc, "scalar_class(scalar, /)\n--\n\n"
"The class of NumPy's scalars of its dtype. NumPy asks for it in places where an error of a signal handler would be lost, and\n"
"no handler runs in here.");

static PyObject *
scalar_class(PyObject *Py_UNUSED(module), PyObject *x)
{
    if (types.LazyScalar == NULL || Py_TYPE(x) != types.LazyScalar)
        return mistaken("scalar_class takes a lazy scalar");
    PyObject *value = Py_NewRef(got(x, V.value)), *storage = got(x, V.storage), *dtype = NULL, *result = NULL;
    PyObject *node = value == Py_None && Py_TYPE(storage) == types.Storage ? got(storage, S.pending) : Py_None;
    if (value != Py_None)
        result = Py_NewRef((PyObject *)Py_TYPE(value));
    else if ((dtype = Py_TYPE(node) == types.Node ? Py_NewRef(got(node, N.dtype)) : dtype_of_lazy(x)) != NULL
             && PyArray_DescrCheck(dtype))
        result = Py_NewRef((PyObject *)((PyArray_Descr *)dtype)->typeobj);
    else if (!PyErr_Occurred())
        mistaken("a lazy scalar has a dtype");
    Py_XDECREF(dtype);
    Py_DECREF(value);
    return result;
}

/* NONE: it is an operand for the general way. */
static int
see(PyObject *x, Seen *s)
{
    if (PyLong_CheckExact(x) || PyFloat_CheckExact(x) || PyComplex_CheckExact(x) || PyBool_Check(x))
        return see_number(x, s);
    if (Py_TYPE(x) == types.LazyNdarray) {
        PyObject *storage = got(x, X.storage);
        if (storage == Py_None) {
            int completed = is_completed(x, &storage);
            if (completed < 0)
                return FAILED;
            if (!completed)
                return see_host(x, got(x, X.host), s);
        }
        if (Py_TYPE(storage) != types.Storage)
            return NONE;
        Py_INCREF(storage);     /* another thread may give `x` another one */
        int what = see_array(x, storage, s);
        Py_DECREF(storage);
        return what;
    }
    if (Py_TYPE(x) == types.LazyScalar) {
        PyObject *storage = got(x, V.storage), *node;
        if (got(x, V.value) != Py_None)
            return see_number(got(x, V.value), s);
        if (Py_TYPE(storage) != types.Storage)
            return NONE;
        if ((node = got(storage, S.pending)) != Py_None) {
            if (Py_TYPE(node) != types.Node || got(node, N.place) != Py_None)
                return NONE;
            s->item = Py_NewRef(node);
            SEE_AS(s->form, node, N);
            s->lies = PyLong_FromLong(AS_RECORDED);
            return s->lies == NULL ? FAILED : WHOLE;
        }
        if (got(x, V.array) == Py_None && told(PyObject_CallOneArg(py.device_of, x)) < 0)   /* computed since: now it has its array */
            return FAILED;
        if (got(x, V.array) == Py_None || got(storage, S.clean) != Py_True)
            return NONE;
        return see_view(x, storage, s, got(x, V.array), Py_None, 1);
    }
    return PyObject_TypeCheck(x, types.generic) ? see_number(x, s) : see_host(x, x, s);
}

static inline int
is_real_number(const Seen *s)
{
    return s->what == NUMBER && PyType_Check(s->form.dtype) && (Type)s->form.dtype != &PyBool_Type;
}

/* What tells powers apart whose steps are not the same: a number that is 2, less than zero, or neither; NULL: an error. */
static PyObject *
kind_of_power(const Seen *exponent)
{
    static const char *const kinds[] = {"any", "two", "negative"};
    PyObject *two = PyLong_FromLong(2);
    int is_two = two == NULL ? -1 : PyObject_RichCompareBool(exponent->number, two, Py_EQ), is_less = 0;
    if (is_two == 0 && !PyComplex_Check(exponent->number))
        is_less = PyObject_RichCompareBool(exponent->number, zero, Py_LT);
    Py_XDECREF(two);
    return is_two < 0 || is_less < 0 ? NULL : PyUnicode_InternFromString(kinds[is_two ? 1 : is_less ? 2 : 0]);
}

/* The distinct lengths of more than one that operands have, in the order in which they come. */
#define MOST_LENGTHS 16
typedef struct { Py_ssize_t of[MOST_LENGTHS]; int count; } Lengths;

/* What a call is known by of the forms of its operands: which lengths are alike, not how large they are. */
#define MOST_PATTERN 512
typedef struct { unsigned char bytes[MOST_PATTERN]; Py_ssize_t count; Lengths lengths; } Pattern;

static void
add_byte(Pattern *p, int byte)
{
    if (p->count < MOST_PATTERN)
        p->bytes[p->count] = (unsigned char)byte;
    p->count++;
}

static void
add_size(Pattern *p, Py_ssize_t n)
{
    for (size_t i = 0; i < sizeof n; i++, n >>= 8)
        add_byte(p, (int)(n & 255));
}

/* 0 and 1 as they are, other lengths by their places among the distinct ones. */
static void
add_length(Pattern *p, Py_ssize_t n)
{
    Lengths *l = &p->lengths;
    int place = 0;
    if (n < 2) {
        add_byte(p, (int)n);
        return;
    }
    while (place < l->count && l->of[place] != n)
        place++;
    if (place == MOST_LENGTHS)
        p->count = MOST_PATTERN;        /* too many */
    else if (place == l->count)
        l->of[l->count++] = n;
    add_byte(p, 2 + place);
}

/* The integers of a tuple of them; how many, -1 if there are too many or one is none. */
static int
integers_of(PyObject *tuple, Py_ssize_t *found)
{
    const Py_ssize_t count = PyTuple_CheckExact(tuple) ? PyTuple_GET_SIZE(tuple) : -1;
    if (count > NPY_MAXDIMS)
        return -1;
    for (Py_ssize_t i = 0; i < count; i++)
        if ((found[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, i))) == -1 && PyErr_Occurred())
            return -1;
    return (int)count;
}

/* Whether strides are those of a new array of this shape, in C's order or (`fortran`) in Fortran's, at lengths of one, too. */
static int
are_new(const Py_ssize_t *shape, const Py_ssize_t *strides, int ndim, Py_ssize_t itemsize, int fortran)
{
    for (int i = 0; i < ndim; i++) {
        const int axis = fortran ? i : ndim - 1 - i;
        if (strides[axis] != itemsize)
            return 0;
        itemsize *= shape[axis];
    }
    return 1;
}

/* The shape of an operand, and its strides, if there are some: where they are not those of a new array they are given as they
are, with the lengths. Only the outermost length says nothing of what lies where, if the strides within are shorter. */
static int
add_form(Pattern *p, int kind, PyObject *shape, PyObject *strides, PyObject *dtype)
{
    Py_ssize_t lengths[NPY_MAXDIMS], steps[NPY_MAXDIMS];
    const int ndim = integers_of(shape, lengths);
    if (ndim < 0 || (strides != NULL && integers_of(strides, steps) != ndim))
        return -1;
    add_byte(p, kind);
    add_byte(p, ndim);
    for (int i = 0; i < ndim; i++)
        add_length(p, lengths[i]);
    if (strides == NULL)
        return 0;
    const Py_ssize_t itemsize = PyArray_DescrCheck(dtype) ? PyDataType_ELSIZE((PyArray_Descr *)dtype) : 0;
    if (are_new(lengths, steps, ndim, itemsize, 0))
        add_byte(p, 'C');
    else if (are_new(lengths, steps, ndim, itemsize, 1))
        add_byte(p, 'F');
    else {
        int outermost = ndim > 0 && kind != 'O';
        for (int i = 0; i < ndim; i++) {
            add_size(p, steps[i]);
            outermost = outermost && steps[i] >= 0 && (i == 0 || steps[i] < steps[0]);
        }
        for (int i = outermost; i < ndim; i++)
            add_size(p, lengths[i]);
    }
    return 0;
}

/* What the key of a call has of an operand, besides its dtype. */
static int
add_operand(Pattern *p, const Seen *s)
{
    PyObject *lies = s->lies;
    if (s->what == NUMBER) {
        add_byte(p, 'N');
        return 0;
    }
    if (s->what == WHOLE && PyBool_Check(lies))
        return add_form(p, lies == Py_True ? 'f' : 'c', s->form.shape, NULL, NULL);
    if (s->what == WHOLE && PyLong_Check(lies))
        return add_form(p, (int)PyLong_AsLong(lies), s->form.shape, NULL, NULL);
    if (s->what == WHOLE)       /* (strides, None) */
        return add_form(p, 'O', s->form.shape, PyTuple_GET_ITEM(lies, 0), s->form.dtype);
    return s->brought ? add_form(p, 'H', s->form.shape, PyTuple_GET_ITEM(lies, 0), s->form.dtype)
                      : add_form(p, 'V', s->form.shape, lies, s->form.dtype);
}

/* What is written in place, likewise. */
static int
add_written(Pattern *p, PyObject *written, PyObject *dtype)
{
    PyObject *shape = PyObject_GetAttr(written, text.shape), *strides = PyObject_GetAttr(written, text.strides);
    const int failed = shape == NULL || strides == NULL ? -1 : add_form(p, 'W', shape, strides, dtype);
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    return failed;
}

/* The key of a call: the function, of each operand its dtype, and that of what is written in place, if that is not NULL;
the pattern of their forms; last, if a power is a number, of which kind. NULL, perhaps without an error: it has none. */
static PyObject *
key_of_call(PyObject *ufunc, const Seen *given, Py_ssize_t count, PyObject *written, Lengths *lengths)
{
    PyObject *parts[4 + MOST_OPERANDS], *key = NULL;
    Py_ssize_t length = 0;
    Pattern pattern;
    int failed = 0;
    pattern.count = pattern.lengths.count = 0;
    parts[length++] = Py_NewRef(ufunc);
    for (Py_ssize_t i = 0; i < count; i++) {
        parts[length++] = Py_NewRef(given[i].form.dtype);
        failed |= add_operand(&pattern, &given[i]);
    }
    if (written != NULL && !failed && (parts[length] = PyObject_GetAttr(written, text.dtype)) != NULL)
        failed = add_written(&pattern, written, parts[length++]);
    if (!failed && !PyErr_Occurred() && pattern.count <= MOST_PATTERN
            && (parts[length] = PyBytes_FromStringAndSize((char *)pattern.bytes, pattern.count)) != NULL)
        length++;
    else
        failed = 1;
    if (!failed && ufunc == py.power && count == 2 && given[1].what == NUMBER) {
        failed = (parts[length] = kind_of_power(&given[1])) == NULL;
        length += !failed;
    }
    if (!failed && (key = PyTuple_New(length)) != NULL)
        for (Py_ssize_t i = 0; i < length; i++)
            PyTuple_SET_ITEM(key, i, parts[i]);
    else
        for (Py_ssize_t i = 0; i < length; i++)
            Py_DECREF(parts[i]);
    *lengths = pattern.lengths;
    return key;
}

/* The bytes from which on work is recorded; -1: never, -2: an error. */
static Py_ssize_t
least_bytes(PyObject **kept)
{
    PyObject *value = option_here(text.defer_from);
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

/* Whether NumPy raises or calls a function at errors of floating-point numbers; -1: an error. */
static int
told_of_errors(void)
{
    static PyObject *known = NULL;      /* the settings that were asked about last, which never change */
    static int answered = 0;
    PyObject *settings;
    if (PyContextVar_Get(py.errors, NULL, &settings) < 0)
        return -1;
    if (settings == known) {
        Py_DECREF(settings);
        return answered;
    }
    const int answer = truth_of(PyObject_CallNoArgs(py.tells_of_errors));
    if (answer < 0) {
        Py_DECREF(settings);
        return -1;
    }
    answered = answer;
    Py_XSETREF(known, settings);
    return answer;
}
