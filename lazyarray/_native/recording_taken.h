/* What positions along the first axes name, recorded: ``x[i]`` and ``x[i, j]``, elements or rows, by the steps of
`graph/record/taken.py`. Those along others come first in memory, unlike what they meet then. */

/* Elements of rows that are recorded at most. Larger ones are taken by a kernel that copies words of 16 bytes; the limit was not varied. */
#define MOST_RECORDED ((npy_intp)1 << 22)

/* What an array in C order is for recorded work, computed if it waits: its device array, and its storage beside; NULL, perhaps
without an error: it is for Python. */
static PyObject *
see_table(PyObject *x, Seen *s)
{
    s->what = see(x, s);
    if (s->what == WHOLE && Py_TYPE(s->item) == types.Node) {
        if (compute_alone(s->item) < 0)
            return NULL;
        forget(s);
        s->what = see(x, s);
    }
    if (s->what == WHOLE && Py_TYPE(s->item) != types.Leaf)
        return NULL;
    PyObject *array = s->what == WHOLE ? AT(s->item, L.array) : s->what == VIEW && !s->brought ? s->array : NULL;
    return array != NULL && fortran_of(array) == Py_False ? array : NULL;
}

/* A number of 64 bits, as an operand: a new reference. */
static PyObject *
operand_of_number(npy_int64 number)
{
    PyArray_Descr *int64 = PyArray_DescrFromType(NPY_INT64);
    PyObject *made = PyArray_Scalar(&number, int64, NULL);
    Py_DECREF(int64);
    return made;
}

/* See a position of an index: a whole number, or an array whose axes come in turn: 1; 0: it is for Python, as are a few that are a
range on the host, which need not be sent; -1: an error. `flat`: whether its elements lie one after the other, in C order. */
static int
see_position(PyObject *index, const Looked *looked, Seen *s, int *flat)
{
    Py_ssize_t lengths[NPY_MAXDIMS], steps[NPY_MAXDIMS];
    *flat = 1;
    if (PyLong_CheckExact(index)) {
        s->what = NUMBER;
        return 1;
    }
    PyArrayObject *few = few_on_host(index);
    const int is_range = few != NULL && (!PyArray_IS_C_CONTIGUOUS(few) || (looked->done ? looked->even : look_at(few).even));
    s->what = Py_TYPE(index) == types.LazyNdarray && !is_range && !PyErr_Occurred() ? see(index, s) : NONE;
    if ((s->what != WHOLE && s->what != VIEW) || (s->brought && few == NULL) || !PyArray_DescrCheck(s->form.dtype)
            || strchr("bhilqBHIL", ((PyArray_Descr *)s->form.dtype)->type) == NULL || PyTuple_GET_SIZE(s->form.shape) == 0)
        return -!!PyErr_Occurred();
    if (s->what == WHOLE || s->brought)
        return s->what != WHOLE || s->form.fortran == Py_False;
    const int ndim = integers_of(s->form.shape, lengths);
    Py_ssize_t expected = PyDataType_ELSIZE((PyArray_Descr *)s->form.dtype);
    if (ndim < 0 || integers_of(s->lies, steps) != ndim)
        return -!!PyErr_Occurred();
    for (int i = ndim - 1; i >= 0; i--) {
        *flat = *flat && (lengths[i] == 1 || steps[i] == expected);
        expected *= lengths[i];
    }
    return *flat || come_in_turn(lengths, steps, ndim);
}

/* Positions as an operand of what has this shape and, for each place in it, `more` axes: a new reference; NULL, perhaps without an
error: they are for Python. `strided`: whether they are read along the axes. */
static PyObject *
position_read(PyObject *index, Seen *s, int flat, PyObject *common, int more, int *strided)
{
    npy_intp lengths[2 * NPY_MAXDIMS];
    if (s->what == NUMBER) {
        const Py_ssize_t number = PyLong_AsSsize_t(index);
        return number == -1 && PyErr_Occurred() ? NULL : operand_of_number(number);
    }
    const int alike = more ? 0 : same(s->form.shape, common);
    if (alike < 0)
        return NULL;
    if (!alike && s->what == WHOLE && Py_TYPE(s->item) == types.Node) {      /* as a node it has another size */
        if (compute_alone(s->item) < 0)
            return NULL;
        forget(s);
        if (see_position(index, &(const Looked){0}, s, &flat) <= 0 || (s->what == WHOLE && Py_TYPE(s->item) != types.Leaf))
            return NULL;
    }
    *strided |= !alike || !flat;
    if (alike)
        return as_read(s, s->what == WHOLE ? NULL : flat ? text.flat : text.strided, NULL, Py_None);
    PyObject *array = s->what == WHOLE ? AT(s->item, L.array) : s->array, *leaf = NULL;
    const int ndim = (int)PyTuple_GET_SIZE(s->form.shape);
    for (int i = 0; i < ndim + more; i++)
        lengths[i] = i < ndim ? (npy_intp)PyLong_AsSsize_t(PyTuple_GET_ITEM(s->form.shape, i)) : 1;
    PyObject *shape = !flat || fortran_of(array) != Py_False ? NULL : PyArray_IntTupleFromIntp(ndim + more, lengths);
    if (shape == NULL)
        return NULL;
    Py_INCREF(array);
    Py_SETREF(array, PyObject_CallMethodOneArg(array, text.reshape, shape));
    if (array != NULL)
        leaf = made_leaf(array, s->what == WHOLE ? AT(s->item, L.storage) : s->storage, text.strided);
    if (leaf != NULL)
        note_host(leaf, s);
    Py_XDECREF(array);
    Py_DECREF(shape);
    return leaf;
}

/* Whether what recorded work reads of a storage is there, and nobody else's. */
static int
is_readable(PyObject *storage)
{
    return Py_TYPE(storage) == types.Storage && got(storage, S.clean) == Py_True && !is_held(storage);
}

/* The form of what is taken, as it lies in memory: the axes of the positions, and then the others of the table. 0: it is too large:
that memory has run out is told at the call. */
static int
form_of_taken(const npy_intp *common, int ndim, const npy_intp *others, int more, Py_ssize_t itemsize, Form *form)
{
    npy_intp lengths[2 * NPY_MAXDIMS];
    const npy_intp rows = PyArray_MultiplyList(common, ndim), each = PyArray_MultiplyList(others, more);
    if (ndim + more > NPY_MAXDIMS || rows <= 0 || rows >= limits.LARGE_RESULT / itemsize || (more && each > MOST_RECORDED / rows))
        return 0;
    memcpy(lengths, common, ndim * sizeof *lengths);
    memcpy(lengths + ndim, others, more * sizeof *lengths);
    form->shape = PyArray_IntTupleFromIntp(ndim + more, lengths);
    form->size = PyLong_FromSsize_t(rows * each);
    form->fortran = Py_False;
    return form->shape != NULL && form->size != NULL;
}

/* ``x[i]`` and ``x[i, j]`` by positions that were looked at: a new reference; NULL, perhaps without an error: it is not
to be recorded. Who writes to the positions meanwhile is seen by their stamps. */
static PyObject *
rows_recorded(PyObject *x, PyObject *storage, const Along *along, PyArrayObject *meta)
{
    Seen table = {NULL}, given[MOST_ALONG] = {{NULL}};
    Form form = {NULL};
    PyObject *operands = NULL, *dtypes = NULL, *large = Py_NewRef(no_arguments), *step, *node = NULL, *result = NULL, *bytes = NULL;
    PyObject *places = NULL;
    const Py_ssize_t count = along->count, least = least_bytes(&bytes);
    const int more = PyArray_NDIM(meta) - (int)count;
    const npy_intp *others = PyArray_DIMS(meta) + count;
    int flat[MOST_ALONG], ndim = 0, strided = 0;
    npy_intp common[NPY_MAXDIMS];
    long steps = 1;
    Py_XDECREF(bytes);
    if (least != 0 || told_of_errors() != 0 || more < 0 || !PyArray_IS_C_CONTIGUOUS(meta) || PyArray_SIZE(meta) == 0)
        goto end;
    for (Py_ssize_t i = 0; i < count; i++)
        if (see_position(along->index[i], &along->looked[i], &given[i], &flat[i]) <= 0
                || (given[i].what != NUMBER && !broadcast_with(given[i].form.shape, common, &ndim)))
            goto end;
    if (!form_of_taken(common, ndim, others, more, PyArray_ITEMSIZE(meta), &form) || (places = PyArray_IntTupleFromIntp(ndim, common)) == NULL
            || bring(py.getitem, given, count) <= 0)
        goto end;
    PyObject *array = see_table(x, &table);
    if (array == NULL || (table.what == WHOLE ? AT(table.item, L.storage) : table.storage) != storage
            || (operands = hidden(PyTuple_New(1 + 2 * count + (more ? 1 : 0)))) == NULL
            || (dtypes = hidden(PyTuple_New(1 + count + (more ? 1 : 0)))) == NULL || (node = made_leaf(array, storage, text.table)) == NULL)
        goto end;
    PyTuple_SET_ITEM(operands, 0, node);
    node = NULL;
    PyTuple_SET_ITEM(dtypes, 0, Py_NewRef(PyArray_DESCR(meta)));
    if (table.what == WHOLE || table.large != NULL)
        large = union_of(large, table.what == WHOLE ? got(table.item, L.large) : table.large);
    for (Py_ssize_t i = 0; large != NULL && i < count; i++) {
        Seen *s = &given[i];
        PyObject *one = position_read(along->index[i], s, flat[i], places, more, &strided), *length;
        if (one == NULL || (length = operand_of_number(PyArray_DIM(meta, i))) == NULL) {
            Py_XDECREF(one);
            goto end;
        }
        PyTuple_SET_ITEM(operands, 1 + i, one);
        PyTuple_SET_ITEM(operands, 1 + count + i, length);
        PyTuple_SET_ITEM(dtypes, 1 + i, s->what == NUMBER ? (PyObject *)PyArray_DescrFromType(NPY_INT64) : Py_NewRef(s->form.dtype));
        if (Py_TYPE(one) == types.Node)
            steps += PyLong_AsLong(got(one, N.steps));
        if (s->what == WHOLE || s->large != NULL)
            large = union_of(large, s->what == WHOLE ? OF(s->item, large) : s->large);
    }
    if (more) {
        PyObject *row = operand_of_number(PyArray_MultiplyList(others, more));
        if (row == NULL)
            goto end;
        PyTuple_SET_ITEM(operands, 1 + 2 * count, row);
        PyTuple_SET_ITEM(dtypes, 1 + count, Py_NewRef(Py_None));
    }
    shown(operands);
    shown(dtypes);
    if (large == NULL || steps > limits.MOST_STEPS || (step = PyDict_GetItemWithError(py.takes, dtypes)) == Py_None)
        goto end;
    if (step == NULL) {
        PyObject *made = PyErr_Occurred() ? NULL : PyObject_CallOneArg(py.take_of, dtypes);     /* for the next time */
        Py_XDECREF(made);
        goto end;
    }
    form.dtype = got(step, P.output);
    node = made_node(got(storage, S.device), step, operands, &form, steps, large, strided ? Py_True : Py_False);
    if (node == NULL || !is_readable(storage))
        goto end;
    for (Py_ssize_t i = 0; i < count; i++) {        /* as in `become` */
        PyObject *one = PyTuple_GET_ITEM(operands, 1 + i);
        if (Py_TYPE(one) == types.Leaf && !is_readable(AT(one, L.storage)))
            goto end;
    }
    result = array_of_nodes(&node, 1, Py_None, 0);
end:
    Py_XDECREF(form.shape);
    Py_XDECREF(form.size);
    Py_XDECREF(places);
    Py_XDECREF(node);
    Py_XDECREF(operands);
    Py_XDECREF(dtypes);
    Py_XDECREF(large);
    forget(&table);
    for (int i = 0; i < MOST_ALONG; i++)
        forget(&given[i]);
    return result;
}
