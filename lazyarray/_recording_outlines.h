/* Views of lazy arrays, as `wrap.view_of`, `wrap.reshaped` and `wrap.turned` make them: NumPy itself does the arithmetic,
on outlines. */

/* A view of the storage of `x`, whose outline is given away; NULL with an error without one. */
static PyObject *
made_view(PyObject *x, PyObject *outline)
{
    PyObject *result = NULL;
    if (outline != NULL) {
        PyObject *base = Py_NewRef(got(x, X.base) == Py_None ? x : got(x, X.base));
        result = made_array(got(x, X.storage), outline, Py_None, base);
        Py_DECREF(base);
        Py_DECREF(outline);
    }
    return result;
}

/* Whether the slots of a lazy array are there; a TypeError if not. */
static int
is_array(PyObject *x)
{
    if (array_type != NULL && PyObject_TypeCheck(x, array_type))
        return 1;
    PyErr_Format(PyExc_TypeError, "a view is of a lazy array, not of a %.100s", Py_TYPE(x)->tp_name);
    return 0;
}

PyDoc_STRVAR(view_of_doc, "view_of(x, outline, /)\n--\n\nA view of the storage of a lazy array.");

static PyObject *
view_of(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2) {
        PyErr_SetString(PyExc_TypeError, "view_of takes a lazy array and an outline");
        return NULL;
    }
    return is_array(args[0]) ? made_view(args[0], Py_NewRef(args[1])) : NULL;
}

/* The outline of a lazy array, made on first need: a reference of our own. */
static PyObject *
outline_of(PyObject *x)
{
    PyObject *outline = got(x, X.outline);
    return outline == Py_None ? PyObject_CallOneArg(make_outline, x) : Py_NewRef(outline);
}

PyDoc_STRVAR(turned_doc, "turned(x, /)\n--\n\nA view of a lazy array with its axes reversed.");

static PyObject *
turned(PyObject *Py_UNUSED(module), PyObject *x)
{
    PyObject *outline = is_array(x) ? outline_of(x) : NULL;
    if (outline == NULL)
        return NULL;
    PyObject *other = PyObject_GetAttr(outline, text_turned);
    Py_DECREF(outline);
    return made_view(x, other);
}

/* Whether all are Python's integers: what a shape is made of, most often. */
static int
are_integers(PyObject *numbers)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(numbers); i++)
        if (!PyLong_CheckExact(PyTuple_GET_ITEM(numbers, i)))
            return 0;
    return 1;
}

PyDoc_STRVAR(reshaped_doc, "reshaped(x, shape, /)\n--\n\n"
"A view of a lazy array in C order in another shape, a tuple of integers, or of one such tuple; else None.");

static PyObject *
reshaped(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2 || !PyTuple_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "reshaped takes a lazy array and a tuple");
        return NULL;
    }
    PyObject *x = args[0], *shape = args[1];
    if (PyTuple_GET_SIZE(shape) == 1 && PyTuple_CheckExact(PyTuple_GET_ITEM(shape, 0)))
        shape = PyTuple_GET_ITEM(shape, 0);
    else if (PyTuple_GET_SIZE(shape) == 0)
        Py_RETURN_NONE;
    if (!are_integers(shape))
        Py_RETURN_NONE;
    PyObject *outline = is_array(x) ? outline_of(x) : NULL;
    if (outline == NULL)
        return NULL;
    PyObject *other = NULL;
    Py_buffer buffer;
    if (PyObject_GetBuffer(outline, &buffer, PyBUF_STRIDED_RO) < 0) {
        PyErr_Clear();      /* of few dtypes */
        other = Py_NewRef(Py_None);
    }
    else {
        int packed = is_packed(&buffer, 0);
        PyBuffer_Release(&buffer);
        other = packed ? PyObject_CallMethodOneArg(outline, text_reshape, shape) : Py_NewRef(Py_None);   /* no copy */
    }
    Py_DECREF(outline);
    return other == Py_None ? other : made_view(x, other);
}
