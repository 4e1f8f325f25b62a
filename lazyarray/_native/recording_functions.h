/* Plain calls of functions on the device: lazy arrays, numbers and words, and a result in new memory.

What an adapter of `functions` needs is that: device arrays in place of lazy ones. Around it there are some lookups and
one new storage, which take longer in Python than the device's function itself. What is not plain is left to Python.
*/

#define MOST_GIVEN 32
#define MOST_BEFORE 6

/* Whether work is put off here, and arrays are lazy: 1 or 0; -1: an error. */
static int
is_put_off(void)
{
    PyObject *options = options_here();
    PyObject *least = options == NULL ? NULL : PyObject_GetAttr(options, text.defer_from);
    PyObject *lazy = least == NULL ? NULL : PyObject_GetAttr(options, text.lazy);
    int answer = lazy == NULL ? -1 : least == Py_None ? 0 : PyObject_IsTrue(lazy);
    Py_XDECREF(options);
    Py_XDECREF(least);
    Py_XDECREF(lazy);
    return answer;
}

/* Whether the devices are one that can be used: 1 or 0; -1: an error. */
static int
is_usable(PyObject *device)
{
    int alone = is_alone(device);
    if (alone <= 0)
        return alone;
    return is_given(PyObject_CallMethodNoArgs(device, text.usable), Py_None);
}

/* The current device, if it is the only one and can be used: borrowed; NULL without an error if it is not. */
static PyObject *
usable_device(void)
{
    PyObject *device = PyDict_GetItemWithError(py.devices, text._current);
    if (device == NULL || device == Py_None || forked)
        return NULL;
    return is_usable(device) > 0 ? device : NULL;
}

/* The device array that a lazy array is of a storage which was written on this stream, as far as it is known: a new reference.
NULL without an error: it is not ready there, or only Python knows. */
static PyObject *
ready_on_device(PyObject *x, PyObject *storage, PyObject *stream)
{
    const int light = got(x, X.storage) == Py_None;     /* it is an ndarray, in memory that the storage has taken over */
    PyObject *meta = light ? got(x, X.host) : got(x, X.meta), *array;
    int partners = PyObject_IsTrue(py.partners);
    if (partners < 0 || Py_TYPE(storage) != types.Storage || (partners && is_held(storage)) || got(storage, S.clean) != Py_True || got(storage, S.pending) != Py_None
            || got(storage, S.stream) != stream || !PyArray_Check(meta) || PyArray_SIZE((PyArrayObject *)meta) == 0)
        return NULL;
    PyArrayObject *owner = light ? owner_of(meta) : NULL;
    if (light && !(PyArray_FLAGS(owner) & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS)))
        return NULL;
    Py_INCREF(storage);
    Py_INCREF(meta);
    if (!light && meta == got(storage, S.root_view))
        array = got(storage, S.root) == Py_None ? NULL : Py_NewRef(got(storage, S.root));
    else
        array = device_view_from(storage, meta, light ? (Py_ssize_t)PyArray_DATA(owner) : limits.ORIGIN);
    if (array != NULL && (got(storage, S.clean) != Py_True || got(storage, S.stream) != stream))    /* another thread has been at it */
        Py_CLEAR(array);
    if (array != NULL) {
        put(storage, S.used, now);
        if (!light && got(x, X.storage) == storage && got(x, X.meta) == meta)
            put(x, X.array, array);
    }
    Py_DECREF(meta);
    Py_DECREF(storage);
    return array;
}

/* The device array of a lazy array or scalar: a new reference. NULL without an error: it is a scalar on the host, or is
empty, or it is small and on the host, unless it is `wanted` here. `own`: whether it is the memory of the lazy array. */
static PyObject *
array_on_device(PyObject *x, PyObject *stream, int wanted, int *own)
{
    const int is_array = Py_TYPE(x) == types.LazyNdarray;
    PyObject *storage = is_array ? storage_by_now(x) : got(x, V.storage), *array, *size;
    *own = 1;
    if (is_array && (wanted || (Py_TYPE(storage) == types.Storage && got(storage, S.host) != Py_True))
            && (got(x, X.array) == Py_None || got(x, X.storage) == Py_None)) {
        if ((array = ready_on_device(x, storage, stream)) != NULL)
            return array;
        if (PyErr_Occurred())
            return NULL;
    }
    storage = got(x, is_array ? X.storage : V.storage);
    if (is_array && (storage == Py_None || (Py_TYPE(storage) == types.Storage && got(storage, S.host) == Py_True
                                            && (got(x, X.array) == Py_None || got(storage, S.clean) != Py_True || !wanted)))) {
        PyObject *pair = wanted ? PyObject_CallOneArg(py.device_operand, x) : NULL;
        if (pair == NULL)
            return NULL;
        array = Py_NewRef(PyTuple_GET_ITEM(pair, 0));
        *own = PyTuple_GET_ITEM(pair, 1) == Py_True;
        Py_DECREF(pair);
        goto check;
    }
    if (Py_TYPE(storage) != types.Storage)
        return NULL;
    if (is_array && Py_TYPE(got(storage, S.pending)) == types.Node) {
        PyObject *node = Py_NewRef(got(storage, S.pending));
        Py_INCREF(storage);
        const int failed = compute_alone(node) < 0;
        array = failed || got(x, X.storage) != storage ? NULL : ready_on_device(x, storage, stream);
        Py_DECREF(storage);
        Py_DECREF(node);
        if (array != NULL || PyErr_Occurred())
            return array;
        if ((storage = got(x, X.storage)) == Py_None || Py_TYPE(storage) != types.Storage)      /* another thread has changed it */
            return NULL;
    }
    array = got(x, Py_TYPE(x) == types.LazyNdarray ? X.array : V.array);
    if (array != Py_None && got(storage, S.clean) == Py_True && got(storage, S.stream) == stream) {
        put(storage, S.used, now);
        Py_INCREF(array);
    }
    else if (Py_TYPE(x) == types.LazyScalar && got(x, V.value) != Py_None)
        return NULL;
    else if ((array = PyObject_CallOneArg(py.device_of, x)) == NULL)
        return NULL;
check:
    if ((size = PyObject_GetAttr(array, text.size)) == NULL || PyObject_TypeCheck(array, types.generic)
            || same(size, zero) != 0)
        Py_CLEAR(array);
    Py_XDECREF(size);
    return array;
}

/* What a call is given as the device gets it; `small`: with what the host has of small arrays, `numbers`: with NumPy's scalars in
lists. `held`: the storages, which nobody takes away from the arrays while the others are asked for. */
typedef struct { PyObject *sources, *arrays, *stream, *held; int small, numbers; } Given;

/* From now on nobody takes the storage away from a lazy array. */
static int
hold_storage(PyObject *x, Given *given)
{
    PyObject *storage = Py_TYPE(x) == types.LazyNdarray ? storage_by_now(x) : Py_None;
    return storage == Py_None ? 0 : PyList_Append(given->held, storage);
}

static void
drop_given(Given *given)
{
    Py_XDECREF(given->sources);
    Py_XDECREF(given->arrays);
    Py_XDECREF(given->stream);
    Py_XDECREF(given->held);
}

/* 1: a number, a word or the like, as it is; 0: it is something else; -1: an error. */
static int
is_plain(PyObject *object)
{
    return PySet_Contains(py.plain, (PyObject *)Py_TYPE(object));
}

static int
is_sequence(PyObject *object)
{
    return PyTuple_CheckExact(object) || PyList_CheckExact(object);
}

/* Whether all items of a list or a tuple are plain; -1: an error. */
static int
are_plain(PyObject *sequence)
{
    int all = 1;
    for (Py_ssize_t i = 0; all > 0 && i < PySequence_Fast_GET_SIZE(sequence); i++)
        all = is_plain(PySequence_Fast_GET_ITEM(sequence, i));
    return all;
}

/* An argument, a new reference; NULL without an error: the call is not plain. `steers`: it says how, not what. `within`: an item,
which may be a list of numbers, such as the widths of an axis. */
static PyObject *
bare(PyObject *object, int steers, int within, Given *given)
{
    int plain = is_plain(object);
    if (plain)
        return plain < 0 ? NULL : Py_NewRef(object);
    if (Py_TYPE(object) == types.LazyNdarray || Py_TYPE(object) == types.LazyScalar) {
        int own;
        PyObject *array = steers || hold_storage(object, given) < 0 ? NULL : array_on_device(object, given->stream, given->small, &own);
        if (array != NULL && (PyList_Append(given->arrays, array) < 0 || (own && PyList_Append(given->sources, object) < 0)))
            Py_CLEAR(array);
        return array;
    }
    if (!is_sequence(object))
        return within && given->numbers && PyObject_TypeCheck(object, types.generic) ? Py_NewRef(object) : NULL;
    if (within)
        return are_plain(object) > 0 ? Py_NewRef(object) : NULL;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(object), before = PyList_GET_SIZE(given->arrays);
    PyObject *items = hidden(PyList_New(count)), *found;
    for (Py_ssize_t i = 0; items != NULL && i < count; i++) {
        PyObject *item = i < PySequence_Fast_GET_SIZE(object) ? Py_NewRef(PySequence_Fast_GET_ITEM(object, i)) : NULL;
        PyObject *one = item == NULL ? NULL : bare(item, steers, 1, given);
        Py_XDECREF(item);
        if (one == NULL)
            Py_CLEAR(items);
        else
            PyList_SET_ITEM(items, i, one);
    }
    if (items == NULL)
        return NULL;
    shown(items);
    if (PyList_GET_SIZE(given->arrays) == before)       /* a sequence of numbers is an array to NumPy */
        found = steers ? Py_NewRef(object) : NULL;
    else
        found = PyTuple_CheckExact(object) ? PyList_AsTuple(items) : Py_NewRef(items);
    Py_DECREF(items);
    return found;
}

static int
is_contiguous(PyObject *array)
{
    return is_set_to(array, text._c_contiguous, Py_True);
}

/* Whether a result lies as its rule wants it anyway: it and what it is made of are in C order. -1: an error. */
static int
is_laid_out(PyObject *result, PyObject *arrays)
{
    int all = is_contiguous(result);
    for (Py_ssize_t i = 0; all > 0 && i < PyList_GET_SIZE(arrays); i++)
        all = is_contiguous(PyList_GET_ITEM(arrays, i));
    return all;
}

/* What device code raised is for Python to find out again, and for NumPy to word: 0; -1: it is a fault of the device's or what
a signal handler raised, and stays raised. */
static int
is_refusal(PyObject *device)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    PyObject *error = raised(), *reason = PyObject_CallMethodOneArg(device, text.refusal, error);
    Py_DECREF(error);
    Py_XDECREF(reason);
    return reason == NULL ? -1 : 0;
}

/* The lazy array, or with `scalar` the lazy scalar, of a device array in memory that nobody else has: a new reference. */
static PyObject *
lazy_of_new(PyObject *result, PyObject *device, PyObject *stream, int scalar)
{
    PyObject *storage = made_storage(device, result, stream, Py_None, Py_None), *claimed = NULL, *lazy = NULL;
    if (storage != NULL && (claimed = PyObject_CallMethodObjArgs(device, text.claim, result, storage, NULL)) != NULL)
        lazy = scalar ? made_scalar(storage, result, Py_None) : made_array(storage, Py_None, result, Py_None);
    Py_XDECREF(claimed);
    Py_XDECREF(storage);
    return lazy;
}

/* The lazy array of a device array in new memory, or the lazy scalar if it has no axes and is to be one (`scalar`): a new
reference, NULL without an error if it is not new. */
static PyObject *
lazy_of(PyObject *result, PyObject *device, PyObject *arrays, PyObject *stream, int scalar)
{
    PyObject *own, *lazy = NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(arrays); i++)
        if (PyList_GET_ITEM(arrays, i) == result)
            return NULL;
    if (scalar && (scalar = is_set_to(result, text.ndim, zero)) < 0)
        return NULL;
    own = PyObject_CallMethodOneArg(device, text.has_own_memory, result);
    if (own == Py_True)
        lazy = lazy_of_new(result, device, stream, scalar);
    Py_XDECREF(own);
    return lazy;
}

PyDoc_STRVAR(new_result_doc, "new_result(device, result, arrays, scalar, /)\n--\n\n"
"The lazy array, or with `scalar` the lazy scalar, of a device array in new memory that is none of `arrays`, a list; else None.");

static PyObject *
new_result(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 4 || !PyList_Check(args[2]) || types.LazyNdarray == NULL)
        return mistaken("new_result takes a device, a device array, a list and a bool");
    PyObject *stream = PyObject_CallMethodNoArgs(args[0], text.stream), *result = NULL;
    if (stream != NULL)
        result = lazy_of(args[1], args[0], args[2], stream, args[3] == Py_True);
    Py_XDECREF(stream);
    return result != NULL || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}

/* What an error of the device's makes of a call: NumPy's own answer, or the error. */
static PyObject *
refused(PyObject *device, PyObject *func, PyObject *args, PyObject *kwargs)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return NULL;
    PyObject *error = raised(), *result = PyObject_CallFunctionObjArgs(py.refused, device, error, func, args, kwargs, NULL);
    Py_DECREF(error);
    return result;
}

/* `function` called with `before`, then with what a call is given by position and by name, as a tuple and a dict. */
static PyObject *
call_with(PyObject *function, PyObject *const *before, int least, PyObject *const *operands, Py_ssize_t count, PyObject *names)
{
    PyObject *all[MOST_BEFORE + 2], *result = NULL, *by_place = PyTuple_New(count), *by_name = PyDict_New();
    for (Py_ssize_t i = 0; by_place != NULL && i < count; i++)
        PyTuple_SET_ITEM(by_place, i, Py_NewRef(operands[i]));
    for (Py_ssize_t i = 0; by_name != NULL && names != NULL && i < PyTuple_GET_SIZE(names); i++)
        if (PyDict_SetItem(by_name, PyTuple_GET_ITEM(names, i), operands[count + i]) < 0)
            Py_CLEAR(by_name);
    memcpy(all, before, least * sizeof *all);
    all[least] = by_place;
    all[least + 1] = by_name;
    if (by_place != NULL && by_name != NULL)
        result = PyObject_Vectorcall(function, all, least + 2, NULL);
    Py_XDECREF(by_place);
    Py_XDECREF(by_name);
    return result;
}

/* The entry of a function: (adapter, rule, most arguments by position, parameters that steer, whether results without
axes are scalars, whether nothing else is asked before, what Python does of it, what sees before a call and keeps after it what is
known of a result); None: it is never plain. Borrowed. */
static PyObject *
entry_of(PyObject *func)
{
    PyObject *entry = PyDict_GetItemWithError(py.entries, func);
    if (entry != NULL || PyErr_Occurred())
        return entry;
    /* Python keeps the one that it makes. */
    return told(PyObject_CallOneArg(py.entry_of, func)) < 0 ? NULL : PyDict_GetItemWithError(py.entries, func);
}

enum { ADAPTER, RULE, MOST_POSITIONS, STEERING, SCALAR, AT_FIRST, IN_PYTHON, NOTING, PARTS };

/* What is known before a call of what its result will have: a new reference. */
static PyObject *
seen_before(PyObject *entry, PyObject *func, PyObject *args, PyObject *kwargs)
{
    PyObject *noting = PyTuple_GET_ITEM(entry, NOTING), *before = noting == Py_None ? Py_None : PyTuple_GET_ITEM(noting, 0);
    return before == Py_None ? Py_NewRef(Py_None) : PyObject_CallFunctionObjArgs(before, func, args, kwargs, NULL);
}

/* A result, once what is known of it is kept. `before`: what was known before the call. */
static PyObject *
noted(PyObject *result, PyObject *entry, PyObject *func, PyObject *args, PyObject *kwargs, PyObject *before)
{
    PyObject *noting = PyTuple_GET_ITEM(entry, NOTING), *done;
    if (result != NULL && noting != Py_None && result != Py_NotImplemented) {
        done = PyObject_CallFunctionObjArgs(PyTuple_GET_ITEM(noting, 1), func, args, kwargs, result, before, NULL);
        if (done == NULL)
            Py_CLEAR(result);
        Py_XDECREF(done);
    }
    return result;
}

/* A plain call, or NotImplemented. `first`: before anything else was asked. */
static PyObject *
called(PyObject *func, PyObject *args, PyObject *kwargs, int first)
{
    PyObject *entry = Py_XNewRef(entry_of(func)), *device, *operands[MOST_GIVEN + 1], *names = NULL, *result = NULL, *name, *value;
    PyObject *before = NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(args), named = PyDict_GET_SIZE(kwargs), made = 0, place = 0;
    if (entry == NULL || !PyTuple_CheckExact(entry) || PyTuple_GET_SIZE(entry) != PARTS
            || (first && PyTuple_GET_ITEM(entry, AT_FIRST) != Py_True) || count == 0 || count + named > MOST_GIVEN
            || count > PyLong_AsSsize_t(PyTuple_GET_ITEM(entry, MOST_POSITIONS)) || (device = usable_device()) == NULL) {
        Py_XDECREF(entry);
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_NotImplemented);
    }
    PyObject *steering = PyTuple_GET_ITEM(entry, STEERING);
    Py_INCREF(device);
    Given given = {PyList_New(0), PyList_New(0), PyObject_CallMethodNoArgs(device, text.stream), PyList_New(0), !first,
                   PyTuple_GET_ITEM(entry, IN_PYTHON) != Py_None};
    if (given.sources == NULL || given.arrays == NULL || given.stream == NULL || given.held == NULL)
        goto end;
    for (; made < count; made++) {
        int steers = 0;
        if (steering != Py_None) {
            PyObject *slot = PyLong_FromSsize_t(made);
            steers = slot == NULL ? -1 : PySet_Contains(steering, slot);
            Py_XDECREF(slot);
        }
        operands[made + 1] = steers < 0 ? NULL : bare(PyTuple_GET_ITEM(args, made), steers, 0, &given);
        if (operands[made + 1] == NULL)
            goto end;
    }
    if (named > 0 && (names = hidden(PyTuple_New(named))) == NULL)
        goto end;
    while (named > 0 && PyDict_Next(kwargs, &place, &name, &value)) {
        int steers = steering == Py_None ? 0 : PySet_Contains(steering, name);
        if (steers < 0 || same(name, text.out) != 0 || made - count >= named)
            goto end;
        PyTuple_SET_ITEM(names, made - count, Py_NewRef(name));
        Py_INCREF(value);
        operands[made + 1] = bare(value, steers, 0, &given);
        Py_DECREF(value);
        if (operands[made + 1] == NULL)
            goto end;
        made++;
    }
    if (made != count + named || PyList_GET_SIZE(given.arrays) == 0)
        goto end;
    shown(names);
    if ((before = seen_before(entry, func, args, kwargs)) == NULL)
        goto end;
    PyObject *rest = PyTuple_GET_ITEM(entry, IN_PYTHON);
    if (rest != Py_None) {
        PyObject *const ahead[] = {device, func, args, kwargs, given.sources, given.arrays};
        result = noted(call_with(rest, ahead, MOST_BEFORE, operands + 1, count, names), entry, func, args, kwargs, before);
        goto end;
    }
    PyObject *xp = PyObject_GetAttr(device, text.xp), *found = NULL;
    if (xp != NULL) {
        operands[0] = xp;
        found = PyObject_Vectorcall(PyTuple_GET_ITEM(entry, ADAPTER), operands, count + 1, names);
        PyObject *rule = PyTuple_GET_ITEM(entry, RULE);
        int is_array = found == NULL ? 0 : is_set_to(device, text.array_type, (PyObject *)Py_TYPE(found));
        if (is_array > 0 && rule != Py_None) {
            int laid = PyUnicode_CompareWithASCIIString(rule, "C") == 0 ? is_contiguous(found) : is_laid_out(found, given.arrays);
            PyObject *const ahead[] = {device, rule, found};
            if (laid <= 0)
                Py_SETREF(found, laid < 0 ? NULL : call_with(py.after, ahead, 3, operands + 1, count, names));
        }
        if (found != NULL && is_array > 0)
            result = lazy_of(found, device, given.arrays, given.stream, PyTuple_GET_ITEM(entry, SCALAR) == Py_True);
        if (found != NULL && result == NULL && !PyErr_Occurred())
            result = PyObject_CallFunctionObjArgs(py.given, device, found, given.sources, given.arrays,
                                                  PyTuple_GET_ITEM(entry, SCALAR), NULL);
        if ((result = noted(result, entry, func, args, kwargs, before)) == NULL && PyErr_Occurred())
            result = refused(device, func, args, kwargs);
    }
    Py_XDECREF(found);
    Py_XDECREF(xp);
end:
    while (made > 0)
        Py_DECREF(operands[made--]);
    Py_XDECREF(before);
    Py_XDECREF(names);
    drop_given(&given);
    Py_DECREF(device);
    Py_DECREF(entry);
    return result != NULL || PyErr_Occurred() ? result : Py_NewRef(Py_NotImplemented);
}

PyDoc_STRVAR(tried_doc, "tried(func, args, kwargs, first=False, /)\n--\n\n"
"The result of a plain call of a function on the current device; NotImplemented if it is none. `first`: nothing else has been\n"
"asked, so that it is none either if others may do it, or if the host has one of its arrays.");

static PyObject *
tried(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs < 3 || nargs > 4 || !PyTuple_Check(args[1]) || !PyDict_Check(args[2]))
        return mistaken("tried takes a function, a tuple, a dict and a bool");
    const int first = nargs == 4 && args[3] == Py_True;
    return types.LazyNdarray == NULL ? Py_NewRef(Py_NotImplemented) : called(args[0], args[1], args[2], first);
}

/* -- ufuncs without a recorded form ---------------------------------------------------------------------------------- */

PyDoc_STRVAR(looped_doc, "looped(ufunc, inputs, /)\n--\n\n"
"The result of a plain call by the device's own function, if its loop is known: of scalars, of ``matmul``; else None.");

static PyObject *
looped(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2 || !PyTuple_CheckExact(args[1]))
        return mistaken("looped takes a ufunc and a tuple of operands");
    PyObject *ufunc = args[0], *inputs = args[1], *device, *operands[MOST_OPERANDS + 1], *result = NULL, *loop = NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(inputs), made = 0;
    if (types.LazyNdarray == NULL || count < 1 || count > MOST_OPERANDS || !PyObject_TypeCheck(ufunc, &PyUFunc_Type)
            || (device = usable_device()) == NULL)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    PyObject *key = hidden(PyTuple_New(count + 1));
    Py_INCREF(device);
    Given given = {PyList_New(0), PyList_New(0), PyObject_CallMethodNoArgs(device, text.stream), PyList_New(0), 1, 0};
    if (key == NULL || given.sources == NULL || given.arrays == NULL || given.stream == NULL || given.held == NULL)
        goto end;
    PyTuple_SET_ITEM(key, 0, Py_NewRef(ufunc));
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *x = PyTuple_GET_ITEM(inputs, i), *kind;
        if (Py_TYPE(x) == types.LazyNdarray || Py_TYPE(x) == types.LazyScalar)
            kind = dtype_of_lazy(x);
        else
            kind = PySet_Contains(py.weak, (PyObject *)Py_TYPE(x)) > 0 ? Py_NewRef(Py_TYPE(x)) : NULL;
        if (kind == NULL)
            goto end;
        PyTuple_SET_ITEM(key, i + 1, kind);
    }
    if ((loop = Py_XNewRef(PyDict_GetItemWithError(py.loops, shown(key)))) == NULL)
        goto end;
    for (; made < count; made++) {
        PyObject *x = PyTuple_GET_ITEM(inputs, made);
        int own;
        if (Py_TYPE(x) != types.LazyNdarray && Py_TYPE(x) != types.LazyScalar)
            operands[made] = Py_NewRef(x);
        else if (hold_storage(x, &given) < 0 || (operands[made] = array_on_device(x, given.stream, 1, &own)) == NULL)
            goto end;
        else if (PyList_Append(given.arrays, operands[made]) < 0) {
            made++;
            goto end;
        }
    }
    if (PyList_GET_SIZE(given.arrays) == 0)
        goto end;
    PyObject *dtypes = PyTuple_GET_ITEM(loop, 1);
    int in_order = 1;
    for (Py_ssize_t i = 0; i < count && in_order > 0; i++) {
        PyObject *x = PyTuple_GET_ITEM(inputs, i);
        if (Py_TYPE(x) == types.LazyNdarray || Py_TYPE(x) == types.LazyScalar) {
            if (((PyUFuncObject *)ufunc)->core_enabled == 0)    /* the results lie in memory as the operands do */
                in_order = is_contiguous(operands[i]);
            continue;
        }
        PyObject *dtype = PySequence_GetItem(dtypes, i);
        PyObject *kind = dtype == NULL ? NULL : PyObject_GetAttr(dtype, text.type);
        Py_SETREF(operands[i], kind == NULL ? NULL : PyObject_CallOneArg(kind, x));
        Py_XDECREF(dtype);
        Py_XDECREF(kind);
        if (operands[i] == NULL) {
            operands[i] = Py_NewRef(Py_None);
            in_order = -1;
        }
    }
    PyObject *found = in_order <= 0 ? NULL : PyObject_Vectorcall(PyTuple_GET_ITEM(loop, 0), operands, count, NULL);
    if (found != NULL) {
        if (is_set_to(device, text.array_type, (PyObject *)Py_TYPE(found)) > 0)
            result = lazy_of(found, device, given.arrays, given.stream, 1);
        if (result == NULL && !PyErr_Occurred())
            result = PyObject_CallFunctionObjArgs(py.of_new_memory, device, found, NULL);
        Py_DECREF(found);
    }
    else if (PyErr_Occurred())
        is_refusal(device);     /* what it refuses the general way runs into again, and knows more */
end:
    while (made > 0)
        Py_DECREF(operands[--made]);
    Py_XDECREF(loop);
    Py_XDECREF(key);
    drop_given(&given);
    Py_DECREF(device);
    return result != NULL || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}
