/* Lazy arrays, storages and nodes, made slot by slot; and who knows of them. */

static PyObject *
made_array(PyObject *storage, PyObject *meta, PyObject *array, PyObject *base)
{
    if (types.LazyNdarray == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "lazyarray is not imported yet");
        return NULL;
    }
    PyObject *x = types.LazyNdarray->tp_new(types.LazyNdarray, no_arguments, NULL);
    if (x != NULL) {
        put(x, X.storage, storage);
        put(x, X.meta, meta);
        put(x, X.array, array);
        put(x, X.base, base);
        put(x, X.leaf, Py_None);
        put(x, X.host, Py_None);
    }
    return x;
}

static PyObject *
made_storage(PyObject *device, PyObject *root, PyObject *stream, PyObject *pending, PyObject *root_view)
{
    PyObject *storage = types.Storage->tp_new(types.Storage, no_arguments, NULL);
    if (storage != NULL) {
        put(storage, S.device, device);
        put(storage, S.root, root);
        put(storage, S.stream, stream);
        put(storage, S.loans, no_arguments);
        put(storage, S.foreign, Py_False);
        put(storage, S.clean, pending == Py_None ? Py_True : Py_False);
        put(storage, S.pending, pending);
        put(storage, S.readers, Py_None);
        put(storage, S.root_view, root_view);
        put(storage, S.used, now);
    }
    return storage;
}

static PyObject *
made_leaf(PyObject *array, PyObject *storage, PyObject *mode)
{
    PyObject *leaf = types.Leaf->tp_alloc(types.Leaf, 0);
    if (leaf != NULL) {
        put(leaf, L.array, array);
        put(leaf, L.storage, storage);
        put(leaf, L.mode, mode);
    }
    return leaf;
}

/* How a dense array lies. */
typedef struct { PyObject *shape, *fortran, *size, *dtype; } Form;

/* A new meta of a dense array, as `storage/views.py` makes them. */
static PyObject *
made_meta(PyObject *shape, PyObject *fortran, PyObject *dtype)
{
    npy_intp lengths[NPY_MAXDIMS], none[NPY_MAXDIMS] = {0};
    const Py_ssize_t ndim = PyTuple_CheckExact(shape) ? PyTuple_GET_SIZE(shape) : NPY_MAXDIMS + 1;
    int empty = 0;
    if (ndim > NPY_MAXDIMS || !PyArray_DescrCheck(dtype))
        return mistaken("a meta has a shape and a dtype");
    for (Py_ssize_t i = 0; i < ndim; i++) {
        lengths[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
        if (lengths[i] < 0)
            return PyErr_Occurred() ? NULL : mistaken("a meta has lengths of 0 at least");
        empty |= lengths[i] == 0;
    }
    Py_INCREF(dtype);       /* given away */
    PyObject *meta = PyArray_NewFromDescr(types.Meta, (PyArray_Descr *)dtype, (int)ndim, lengths, empty ? none : NULL,
                                          (void *)limits.ORIGIN,
                                          NPY_ARRAY_WRITEABLE | (fortran == Py_True ? NPY_ARRAY_F_CONTIGUOUS : 0), NULL);
    if (meta != NULL && PyArray_SetBaseObject((PyArrayObject *)meta, Py_NewRef(py.meta_memory)) < 0)
        Py_CLEAR(meta);
    return meta;
}

/* Whether the elements of a device array lie in Fortran's order: Py_False, as those do that lie in C's, or Py_True, borrowed; NULL,
perhaps without an error: they lie in neither. */
static PyObject *
fortran_of(PyObject *array)
{
    PyObject *const names[] = {text._c_contiguous, text._f_contiguous}, *const orders[] = {Py_False, Py_True};
    for (int i = 0; i < 2; i++) {
        PyObject *laid = PyObject_GetAttr(array, names[i]);
        Py_XDECREF(laid);
        if (laid == NULL || laid == Py_True)
            return laid == NULL ? NULL : orders[i];
    }
    return NULL;
}

/* The meta of a storage that was made of a device array in C order or Fortran's, kept with it: a borrowed reference; NULL without
an error: it is for Python, `StorageState.root_meta`. */
static PyObject *
meta_of_root(PyObject *storage)
{
    PyObject *root = Py_NewRef(got(storage, S.root)), *shape = NULL, *dtype = NULL, *meta = NULL;
    PyObject *fortran = root == Py_None ? NULL : fortran_of(root);
    if (fortran != NULL && (shape = PyObject_GetAttr(root, text.shape)) != NULL && (dtype = PyObject_GetAttr(root, text.dtype)) != NULL
            && (meta = made_meta(shape, fortran, dtype)) != NULL && got(storage, S.root_view) == Py_None)
        put(storage, S.root_view, meta);
    Py_XDECREF(meta);
    Py_XDECREF(dtype);
    Py_XDECREF(shape);
    Py_DECREF(root);
    return PyErr_Occurred() || got(storage, S.root_view) == Py_None ? NULL : got(storage, S.root_view);
}

/* The meta of a lazy array, a new reference, as `handles.meta_of` gives it. */
static PyObject *
meta_of_lazy(PyObject *x)
{
    PyObject *meta = AT(x, X.meta), *storage = got(x, X.storage);
    if (meta != NULL && meta != Py_None)
        return Py_NewRef(meta);
    if (meta == Py_None && Py_TYPE(storage) == types.Storage) {
        Py_INCREF(storage);
        meta = got(storage, S.root_view) != Py_None ? got(storage, S.root_view) : meta_of_root(storage);
        if (meta != NULL && AT(x, X.meta) == Py_None && got(x, X.storage) == storage)
            put(x, X.meta, meta);
        Py_DECREF(storage);
        if (PyErr_Occurred())
            return NULL;
        if (got(x, X.meta) != Py_None)
            return Py_NewRef(got(x, X.meta));
    }
    return PyObject_CallOneArg(py.meta_of, x);
}

/* A node of this form, of its step's dtype. */
static PyObject *
made_node(PyObject *device, PyObject *step, PyObject *operands, const Form *form, long steps, PyObject *large,
          PyObject *strided)
{
    PyObject *node = types.Node->tp_alloc(types.Node, 0), *dtype = got(step, P.output), *count = PyLong_FromLong(steps);
    if (node == NULL || count == NULL) {
        Py_XDECREF(node);
        Py_XDECREF(count);
        return NULL;
    }
    AT(node, N.steps) = count;
    put(node, N.device, device);
    put(node, N.step, step);
    put(node, N.operands, operands);
    put(node, N.shape, form->shape);
    put(node, N.fortran, form->fortran);
    put(node, N.large, large);
    put(node, N.strided, strided);
    put(node, N.size, form->size);
    put(node, N.dtype, dtype);
    put(node, N.storage, Py_None);
    put(node, N.readers, Py_None);
    put(node, N.array, Py_None);
    put(node, N.stream, Py_None);
    put(node, N.place, Py_None);
    put(node, N.passed, zero);
    put(node, N.bounds, Py_None);
    int described = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(operands); i++) {
        PyObject *operand = PyTuple_GET_ITEM(operands, i);
        described &= Py_TYPE(operand) == types.Node ? got(operand, N.described) == Py_True : Py_TYPE(operand) != types.Leaf;
    }
    put(node, N.described, described ? Py_True : Py_False);
    return node;
}

/* -- who reads what ------------------------------------------------------------------------------------------------ */

/* Let a storage or a node know one that reads it. No other thread runs between the looks and what follows from them. */
static int
note_reader(PyObject *read, PyObject *ref)
{
    Py_ssize_t offset = Py_TYPE(read) == types.Node ? N.readers : S.readers;
    if (got(read, offset) == Py_None) {
        PyObject *first = PyList_New(0);
        if (first == NULL)
            return -1;
        if (got(read, offset) == Py_None)       /* else a finaliser noted one meanwhile */
            put(read, offset, first);
        Py_DECREF(first);
    }
    PyObject *readers = got(read, offset);
    if (!PyList_CheckExact(readers)) {
        PyErr_SetString(PyExc_TypeError, "readers are a list");
        return -1;
    }
    Py_INCREF(readers);
    int failed = PyList_Append(readers, ref);
    Py_ssize_t length = PyList_GET_SIZE(readers);
    if (!failed && length > limits.MOST_READERS && (length & (length - 1)) == 0)       /* not at each new one of many */
        failed = told(PyObject_CallOneArg(py.cut, readers));
    Py_DECREF(readers);
    return failed;
}

PyDoc_STRVAR(note_reader_doc, "note_reader(read, ref, /)\n--\n\nLet a storage or a node know one that reads it.");

static PyObject *
noted_reader(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2 || types.Node == NULL
            || (Py_TYPE(args[0]) != types.Node && !PyObject_TypeCheck(args[0], types.Storage)))
        return mistaken("note_reader takes a storage or a node, and a reference");
    return note_reader(args[0], args[1]) < 0 ? NULL : Py_NewRef(Py_None);
}

/* The operands of a new node know it from here on. */
static int
introduce(PyObject *node, PyObject *ref)
{
    PyObject *operands = Py_NewRef(AT(node, N.operands));      /* a node that is computed meanwhile lets go of them */
    int failed = 0;
    for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(operands); i++) {
        PyObject *operand = PyTuple_GET_ITEM(operands, i);
        if (Py_TYPE(operand) == types.Leaf && PyObject_TypeCheck(AT(operand, L.storage), types.Storage))
            failed = note_reader(AT(operand, L.storage), ref);
        else if (Py_TYPE(operand) == types.Node) {
            failed = note_reader(operand, ref);
            if (!failed && got(operand, N.array) != Py_None)
                failed = told(PyObject_CallMethodOneArg(operand, text.read_late, ref));
        }
    }
    Py_DECREF(operands);
    return failed;
}

/* -- what waits ---------------------------------------------------------------------------------------------------- */

/* Weak references to the storages that wait to be computed, and to some that no longer do. A program that measures time
   asks for them: what was recorded and not computed would not count. */
static PyObject *waiting;
#define FEW_WAITING 64
static Py_ssize_t waiting_most = FEW_WAITING;       /* how many there may be until those are left out that wait no more */

static int
still_waits(PyObject *ref)
{
    PyObject *storage = referent(ref);
    int waits = storage != NULL && got(storage, S.pending) != Py_None;
    Py_XDECREF(storage);
    return waits;
}

/* Leave out those that wait no more. */
static int
sift_waiting(void)
{
    Py_ssize_t length = PyList_GET_SIZE(waiting), left = 0;
    PyObject **items = ((PyListObject *)waiting)->ob_item;
    for (Py_ssize_t i = 0; i < length; i++)
        if (still_waits(items[i])) {
            PyObject *item = items[left];
            items[left++] = items[i];
            items[i] = item;
        }
    waiting_most = 2 * left > FEW_WAITING ? 2 * left : FEW_WAITING;
    return PyList_SetSlice(waiting, left, length, NULL);
}

/* Note one more. Of many that wait Python looks what they keep alive, and may have some computed. */
static int
note_waiting(PyObject *ref)
{
    if (PyList_GET_SIZE(waiting) >= waiting_most) {
        if (sift_waiting() < 0)
            return -1;
        if (PyList_GET_SIZE(waiting) >= FEW_WAITING / 2 && told(PyObject_CallNoArgs(py.note_many)) < 0)
            return -1;
    }
    return PyList_Append(waiting, ref);
}

PyDoc_STRVAR(waiting_doc, "waiting()\n--\n\nThe storages whose bytes are recorded and not computed, the oldest first.");

static PyObject *
list_waiting(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    PyObject *found = sift_waiting() < 0 ? NULL : PyList_New(0);
    for (Py_ssize_t i = 0; found != NULL && i < PyList_GET_SIZE(waiting); i++) {
        PyObject *storage = referent(PyList_GET_ITEM(waiting, i));
        if (storage != NULL && got(storage, S.pending) != Py_None && PyList_Append(found, storage) < 0)
            Py_CLEAR(found);
        Py_XDECREF(storage);
    }
    return found;
}

/* An error of the device's is told to it, which may make another one of it. */
static void
tell_failed(PyObject *device)
{
    PyObject *error = raised(), *told = PyObject_CallMethodOneArg(device, text.failed, error);
    if (told != NULL)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(told);
    Py_DECREF(error);
}

/* -- what becomes of a node ---------------------------------------------------------------------------------------- */

/* The storage that waits for a node has its bytes: `Storage.computed`, without the check. */
static void
fill(PyObject *home, PyObject *node)
{
    put(home, S.root, got(node, N.array));
    put(home, S.stream, got(node, N.stream));
    put(home, S.readers, got(node, N.readers));
    put(home, S.clean, Py_True);
    put(home, S.pending, Py_None);      /* last: until then other threads wait for this one */
}

/* Whether a new node has large inputs that are not those of one of its operands, for which they were counted; nodes that
nobody was given, such as casts, are not. */
static int
has_new_inputs(PyObject *node)
{
    PyObject *large = AT(node, N.large), *operands = got(node, N.operands);
    if (large == no_arguments)
        return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(operands); i++) {
        PyObject *operand = PyTuple_GET_ITEM(operands, i);
        if (Py_TYPE(operand) == types.Node && AT(operand, N.large) == large && got(operand, N.storage) != Py_None)
            return 0;
    }
    return 1;
}

/* A LazyScalar of the one element of a storage, a new reference. */
static PyObject *
made_scalar(PyObject *storage, PyObject *array, PyObject *meta)
{
    PyObject *scalar = types.LazyScalar->tp_alloc(types.LazyScalar, 0);
    if (scalar != NULL) {
        put(scalar, V.storage, storage);
        put(scalar, V.array, array);
        put(scalar, V.meta, meta);
        put(scalar, V.base, Py_None);
        put(scalar, V.value, Py_None);
    }
    return scalar;
}

/* The lazy array of a new node, which its operands know from here on; `back`: the order of its axes, or None. Without
dimensions it is a scalar, as NumPy's results are. */
static PyObject *
array_of(PyObject *node, PyObject *back)
{
    PyObject *ref = PyWeakref_NewRef(node, NULL), *storage = NULL, *meta = NULL, *home = NULL, *result = NULL;
    if (ref == NULL || introduce(node, ref) < 0)
        goto end;
    if ((meta = made_meta(got(node, N.shape), got(node, N.fortran), got(node, N.dtype))) == NULL
            || (storage = made_storage(AT(node, N.device), Py_None, Py_None, node, meta)) == NULL
            || (home = PyWeakref_NewRef(storage, NULL)) == NULL)
        goto end;
    put(node, N.storage, home);
    if (got(node, N.array) != Py_None)      /* since its operands know it: somebody was about to change them */
        fill(storage, node);
    else if (note_waiting(home) < 0)
        goto end;
    if (has_new_inputs(node) && told(PyObject_CallOneArg(py.note_large, node)) < 0)
        goto end;
    if (back != Py_None)
        Py_SETREF(meta, PyObject_CallMethodOneArg(meta, text.transpose, back));
    if (meta != NULL)
        result = PyTuple_GET_SIZE(got(node, N.shape)) > 0 ? made_array(storage, meta, Py_None, Py_None)
                                                          : made_scalar(storage, Py_None, meta);
end:
    Py_XDECREF(home);
    Py_XDECREF(storage);
    Py_XDECREF(meta);
    Py_XDECREF(ref);
    return result;
}

/* Whether others hold the memory of a storage, and may write to it at any time. */
static int
is_held(PyObject *storage)
{
    PyObject *loans = got(storage, S.loans);
    return !PyTuple_CheckExact(loans) || PyTuple_GET_SIZE(loans) > 0 || got(storage, S.foreign) != Py_False;
}

/* The storage of a node, if it is there: a new reference, or NULL. */
static PyObject *
home_of(PyObject *node)
{
    PyObject *ref = got(node, N.storage);
    return ref == Py_None ? NULL : referent(ref);
}

/* Whether a node reads memory that others hold. */
static int
reads_held(PyObject *node)
{
    PyObject *operands = got(node, N.operands);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(operands); i++) {
        PyObject *operand = PyTuple_GET_ITEM(operands, i);
        if (Py_TYPE(operand) == types.Leaf && Py_TYPE(AT(operand, L.storage)) == types.Storage
                && is_held(AT(operand, L.storage)))
            return 1;
        if (Py_TYPE(operand) == types.Node && got(operand, N.array) != Py_None) {    /* computed since it was seen */
            PyObject *home = home_of(operand);
            int held = home != NULL && Py_TYPE(home) == types.Storage && is_held(home);
            Py_XDECREF(home);
            if (held)
                return 1;
        }
    }
    return 0;
}

/* The same of several new nodes, of which the last one gives the array. What reads memory that others hold is computed
at once, unless the caller writes it (`in_place`). */
static PyObject *
array_of_nodes(PyObject *const *nodes, Py_ssize_t count, PyObject *back, int in_place)
{
    int held = 0;
    for (Py_ssize_t i = 0; i < count - 1; i++) {
        PyObject *ref = PyWeakref_NewRef(nodes[i], NULL);
        int failed = ref == NULL ? -1 : introduce(nodes[i], ref);
        Py_XDECREF(ref);
        if (failed)
            return NULL;
    }
    PyObject *result = array_of(nodes[count - 1], back);
    for (Py_ssize_t i = 0; i < count && !in_place; i++)     /* only now: who lends memory computes the readers that are known */
        held = held || reads_held(nodes[i]);
    if (result != NULL && held && done(nodes[count - 1], text.compute) < 0)
        Py_CLEAR(result);
    return result;
}

PyDoc_STRVAR(array_of_doc, "array_of(nodes, back, /)\n--\n\n"
"The lazy array of new nodes, a list, of which the last one gives it, with its axes in the order `back`, if not None.");

static PyObject *
given_array_of(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    Py_ssize_t count = nargs == 2 && PyList_CheckExact(args[0]) ? PyList_GET_SIZE(args[0]) : 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if (Py_TYPE(PyList_GET_ITEM(args[0], i)) != types.Node)
            count = 0;
    if (count == 0)
        return mistaken("array_of takes a list of nodes, and an order of axes");
    return array_of_nodes(((PyListObject *)args[0])->ob_item, count, args[1], 0);
}

/* Give a lazy array another storage, if nothing but it and `others` references refer to the one that it has; whether it has
it. No other thread runs between the look and the change: one that has begun to use the array holds its storage, and one
that has not will find the new one. */
static int
takes_over(PyObject *x, Py_ssize_t others, PyObject *storage)
{
    PyObject *before = AT(x, X.storage), *array = AT(x, X.array), *leaf = AT(x, X.leaf);
    if (before == NULL || Py_TYPE(before) != types.Storage || Py_REFCNT(before) != 1 + others
            || got(x, X.meta) != got(before, S.root_view))
        return 0;
    AT(x, X.leaf) = Py_NewRef(Py_None);
    AT(x, X.array) = Py_NewRef(Py_None);
    AT(x, X.storage) = Py_NewRef(storage);
    put(x, X.host, Py_None);
    Py_XDECREF(leaf);       /* not before: what runs then finds all of it */
    Py_XDECREF(array);
    Py_DECREF(before);
    return 1;
}
