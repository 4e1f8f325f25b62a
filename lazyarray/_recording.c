/* The quick way of `recording.py`, in C: what a small operation costs is the price of asking for names.

It does what `recording.quick` and `wrap.new_array` do, on the same objects, and leaves to them whatever is not plain:
another type, a view, a cast, a first call. Instances are reached through the offsets of their __slots__, so the classes
themselves stay where they are written, in Python. Without this module everything works, and takes longer.
*/
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

/* Where the slots are: of LazyNdarray, Storage, Leaf, Node and Rule. */
static struct { Py_ssize_t storage, outline, array, base, leaf; } X;
static struct { Py_ssize_t device, root, stream, loans, foreign, quiet, pending, readers, root_view; } S;
static struct { Py_ssize_t array, storage, shape, fortran, size, dtype, steps, large, template; } L;
static struct {
    Py_ssize_t device, step, operands, shape, fortran, steps, large, strided, size, dtype, storage, readers, array, stream,
        place, passed, template, rule;
} N;
static struct { Py_ssize_t step, casts, choose, itemsize, alone, program, kernel, launch; } R;
static struct { Py_ssize_t scalar, output; } P;    /* of Step */

static PyTypeObject *array_type, *storage_type, *leaf_type, *node_type, *rule_type, *step_type;
static PyObject *rules, *scopes, *options_names, *waiting_names, *partners;
static PyObject *general, *planned, *ready, *at_once, *template_of, *note_large, *prune, *look_after;
static PyObject *text_defer_from, *text_default, *text_view, *text_young, *text_watcher, *text_limit, *text_append,
    *text_stream, *text_shape, *text_size, *text_dtype, *text_flags, *text_c_contiguous, *text_f_contiguous;
static PyObject *no_arguments, *zero;
static long most_steps, most_readers, most_alone, most_at_once;
static Py_ssize_t long_size;
static int forked = 0;

#define ASKED 8     /* calls after which it is asked again whether there is a kernel */

#define AT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

/* A slot that never was filled counts as None. */
static inline PyObject *
got(PyObject *object, Py_ssize_t offset)
{
    PyObject *value = AT(object, offset);
    return value == NULL ? Py_None : value;
}

static inline void
put(PyObject *object, Py_ssize_t offset, PyObject *value)
{
    PyObject *before = AT(object, offset);
    AT(object, offset) = Py_NewRef(value);
    Py_XDECREF(before);
}

static PyObject *
made_array(PyObject *storage, PyObject *outline, PyObject *array, PyObject *base)
{
    if (array_type == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "lazyarray is not imported yet");
        return NULL;
    }
    PyObject *x = array_type->tp_new(array_type, no_arguments, NULL);
    if (x != NULL) {
        put(x, X.storage, storage);
        put(x, X.outline, outline);
        put(x, X.array, array);
        put(x, X.base, base);
        put(x, X.leaf, Py_None);
    }
    return x;
}

static PyObject *
made_storage(PyObject *device, PyObject *root, PyObject *stream, PyObject *pending, PyObject *root_view)
{
    PyObject *storage = storage_type->tp_new(storage_type, no_arguments, NULL);
    if (storage != NULL) {
        put(storage, S.device, device);
        put(storage, S.root, root);
        put(storage, S.stream, stream);
        put(storage, S.loans, no_arguments);
        put(storage, S.foreign, Py_False);
        put(storage, S.quiet, pending == Py_None ? Py_True : Py_False);
        put(storage, S.pending, pending);
        put(storage, S.readers, Py_None);
        put(storage, S.root_view, root_view);
    }
    return storage;
}

PyDoc_STRVAR(new_array_doc, "new_array(storage, outline, array=None, base=None)\n--\n\n"
"A LazyNdarray of `outline` in `storage`; `array`: its device array, `base`: what it is a view of.");

static PyObject *
new_array(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    PyObject *given[4] = {NULL, NULL, Py_None, Py_None};
    static const char *const known[] = {"storage", "outline", "array", "base"};
    if (count > 4) {
        PyErr_SetString(PyExc_TypeError, "new_array takes at most 4 arguments");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        given[i] = args[i];
    Py_ssize_t named = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    for (Py_ssize_t i = 0; i < named; i++) {
        int place = 0;
        while (place < 4 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), known[place]) != 0)
            place++;
        if (place == 4 || place < count) {
            PyErr_Format(PyExc_TypeError, "new_array got an unexpected argument %R", PyTuple_GET_ITEM(names, i));
            return NULL;
        }
        given[place] = args[count + i];
    }
    if (given[0] == NULL || given[1] == NULL) {
        PyErr_SetString(PyExc_TypeError, "new_array needs a storage and an outline");
        return NULL;
    }
    return made_array(given[0], given[1], given[2], given[3]);
}

/* -- operands ------------------------------------------------------------------------------------------- */

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

/* A view of all that a node gives, in one order or the other. 1: it is one, 0: not, -1: an error. */
static int
seen_whole(PyObject *node, PyObject *outline, Operand *o)
{
    PyObject *dtype = PyObject_GetAttr(outline, text_dtype), *size = NULL, *flags = NULL, *c = NULL, *f = NULL;
    int found = -1;
    if (dtype == NULL || (size = PyObject_GetAttr(outline, text_size)) == NULL
            || (flags = PyObject_GetAttr(outline, text_flags)) == NULL
            || (c = PyObject_GetAttr(flags, text_c_contiguous)) == NULL)
        goto end;
    int alike = dtype == got(node, N.dtype) ? same(size, got(node, N.size)) : 0;
    if (alike > 0 && c != Py_True) {
        f = PyObject_GetAttr(flags, text_f_contiguous);
        alike = f == NULL ? -1 : f == Py_True;
    }
    found = alike;
    if (alike > 0) {
        o->shape = PyObject_GetAttr(outline, text_shape);
        if (o->shape == NULL) {
            found = -1;
            goto end;
        }
        if (PyTuple_GET_SIZE(o->shape) == 0)
            found = 0;
        o->item = Py_NewRef(node);
        o->fortran = Py_NewRef(c == Py_True ? Py_False : Py_True);
        o->size = Py_NewRef(size);
        o->dtype = Py_NewRef(dtype);
        o->template = Py_NewRef(Py_None);
    }
end:
    Py_XDECREF(dtype);
    Py_XDECREF(size);
    Py_XDECREF(flags);
    Py_XDECREF(c);
    Py_XDECREF(f);
    return found;
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
        Py_INCREF(node);
        int found = seen_whole(node, got(x, X.outline), o);
        Py_DECREF(node);
        return found;
    }
    PyObject *leaf = got(x, X.leaf);
    if (leaf != Py_None && AT(leaf, L.array) == got(x, X.array) && got(storage, S.quiet) == Py_True
            && got(storage, S.foreign) == Py_False && PyTuple_CheckExact(got(storage, S.loans))
            && PyTuple_GET_SIZE(got(storage, S.loans)) == 0)
        Py_INCREF(leaf);
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
    PyObject *stack, *options, *value;
    if (PyContextVar_Get(scopes, NULL, &stack) < 0)
        return -2;
    if (PyTuple_CheckExact(stack) && PyTuple_GET_SIZE(stack) > 0)
        options = PyTuple_GET_ITEM(PyTuple_GET_ITEM(stack, PyTuple_GET_SIZE(stack) - 1), 1);
    else
        options = PyDict_GetItemWithError(options_names, text_default);
    value = options == NULL ? NULL : PyObject_GetAttr(options, text_defer_from);
    Py_DECREF(stack);
    if (value == NULL) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_RuntimeError, "there are no options");
        return -2;
    }
    *kept = value;
    if (value == Py_None)
        return -1;
    return PyLong_AsSsize_t(value);
}

/* -- nodes ---------------------------------------------------------------------------------------------- */

static int
note_reader(PyObject *read, Py_ssize_t offset, PyObject *ref)
{
    PyObject *readers = got(read, offset);
    if (readers == Py_None) {
        readers = PyList_New(1);
        if (readers == NULL)
            return -1;
        PyList_SET_ITEM(readers, 0, Py_NewRef(ref));
        put(read, offset, readers);
        Py_DECREF(readers);
        return 0;
    }
    if (!PyList_CheckExact(readers)) {
        PyErr_SetString(PyExc_TypeError, "readers are a list");
        return -1;
    }
    Py_INCREF(readers);
    int failed = PyList_Append(readers, ref);
    if (!failed && PyList_GET_SIZE(readers) > most_readers) {
        PyObject *done = PyObject_CallOneArg(prune, readers);
        failed = done == NULL ? -1 : 0;
        Py_XDECREF(done);
    }
    Py_DECREF(readers);
    return failed;
}

/* Let it be looked after, as `waiting.note` does. */
static int
note_young(PyObject *ref)
{
    PyObject *young = PyDict_GetItemWithError(waiting_names, text_young);
    PyObject *watcher = PyDict_GetItemWithError(waiting_names, text_watcher);
    PyObject *limit = PyDict_GetItemWithError(waiting_names, text_limit);
    if (young == NULL || watcher == NULL || limit == NULL) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_RuntimeError, "fusion.waiting has lost a name");
        return -1;
    }
    Py_INCREF(young);
    PyObject *done = PyObject_CallMethodOneArg(young, text_append, ref);
    Py_ssize_t length = PyObject_Size(young);
    Py_DECREF(young);
    if (done == NULL)
        return -1;
    Py_DECREF(done);
    if (watcher == Py_None || length > PyLong_AsSsize_t(limit)) {
        done = PyObject_CallNoArgs(look_after);
        if (done == NULL)
            return -1;
        Py_DECREF(done);
    }
    return 0;
}

static PyObject *
made_node(PyObject *device, PyObject *step, PyObject *operands, const Operand *form, long steps, PyObject *large)
{
    PyObject *node = node_type->tp_alloc(node_type, 0);
    PyObject *count = node == NULL ? NULL : PyLong_FromLong(steps);
    if (count == NULL) {
        Py_XDECREF(node);
        return NULL;
    }
    PyObject *dtype = got(step, P.output);
    put(node, N.device, device);
    put(node, N.step, step);
    put(node, N.operands, operands);
    put(node, N.shape, form->shape);
    put(node, N.fortran, form->fortran);
    AT(node, N.steps) = count;
    put(node, N.large, large);
    put(node, N.strided, Py_False);
    put(node, N.size, form->size);
    put(node, N.dtype, dtype);
    put(node, N.storage, Py_None);
    put(node, N.readers, Py_None);
    put(node, N.array, Py_None);
    put(node, N.stream, Py_None);
    put(node, N.place, Py_None);
    put(node, N.passed, zero);
    put(node, N.rule, Py_None);
    PyObject *template;
    if (dtype == form->dtype && form->template != Py_None)
        template = Py_NewRef(form->template);
    else
        template = PyObject_CallFunctionObjArgs(template_of, form->shape, form->fortran, dtype, NULL);
    if (template == NULL) {
        Py_DECREF(node);
        return NULL;
    }
    AT(node, N.template) = template;
    return node;
}

/* The lazy array of a new node, which its operands know from here on. */
static PyObject *
array_of(PyObject *node, PyObject *rule, long steps)
{
    PyObject *ref = PyWeakref_NewRef(node, NULL), *storage = NULL, *outline = NULL, *home = NULL, *result = NULL;
    if (ref == NULL)
        return NULL;
    PyObject *operands = AT(node, N.operands);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(operands); i++) {
        PyObject *operand = PyTuple_GET_ITEM(operands, i);
        int failed = 0;
        if (Py_TYPE(operand) == leaf_type)
            failed = Py_TYPE(AT(operand, L.storage)) == storage_type
                ? note_reader(AT(operand, L.storage), S.readers, ref) : 0;
        else if (Py_TYPE(operand) == node_type) {
            failed = note_reader(operand, N.readers, ref);
            if (steps == 2 && got(operand, N.rule) != Py_None)
                put(AT(operand, N.rule), R.alone, zero);
        }
        if (failed)
            goto end;
    }
    if (steps == 1) {
        put(node, N.rule, rule);
        if (note_young(ref) < 0)
            goto end;
    }
    outline = PyObject_CallMethodNoArgs(AT(node, N.template), text_view);
    if (outline == NULL)
        goto end;
    storage = made_storage(AT(node, N.device), Py_None, Py_None, node, outline);
    if (storage == NULL)
        goto end;
    home = PyWeakref_NewRef(storage, NULL);
    if (home == NULL)
        goto end;
    put(node, N.storage, home);
    int counted = PyObject_IsTrue(AT(node, N.large));
    if (counted > 0) {
        PyObject *done = PyObject_CallOneArg(note_large, node);
        counted = done == NULL ? -1 : 0;
        Py_XDECREF(done);
    }
    if (counted < 0)
        goto end;
    result = made_array(storage, outline, Py_None, Py_None);
end:
    Py_XDECREF(home);
    Py_XDECREF(storage);
    Py_XDECREF(outline);
    Py_DECREF(ref);
    return result;
}

/* A step on leaves and numbers, computed now by its kernel; else None or NotImplemented, as `recording.at_once`. */
static PyObject *
computed_now(PyObject *rule, PyObject *operands, PyObject *form, PyObject *device, long alone)
{
    PyObject *kernel = got(rule, R.kernel), *stream, *arguments = NULL, *results = NULL, *result = NULL, *storage;
    int with_partners = PyObject_IsTrue(partners);
    if (with_partners < 0)
        return NULL;
    Py_ssize_t size = PyLong_AsSsize_t(OF(form, size));
    if (kernel == Py_None && got(rule, R.program) != Py_None && alone % ASKED && alone < most_at_once && !with_partners
            && size <= long_size) {
        PyObject *number = PyLong_FromLong(alone + 1);      /* no kernel yet, and it was asked for lately */
        if (number == NULL)
            return NULL;
        put(rule, R.alone, number);
        Py_DECREF(number);
        return Py_NewRef(Py_NotImplemented);
    }
    if (kernel == Py_None || with_partners || size > long_size)
        return PyObject_CallFunctionObjArgs(at_once, rule, operands, form, device, NULL);
    Py_INCREF(kernel);
    stream = PyObject_CallMethodNoArgs(device, text_stream);
    if (stream == NULL)
        goto end;
    Py_ssize_t count = PyTuple_GET_SIZE(operands);
    arguments = PyList_New(count);
    if (arguments == NULL)
        goto end;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *operand = PyTuple_GET_ITEM(operands, i);
        if (Py_TYPE(operand) == leaf_type) {
            if (Py_TYPE(AT(operand, L.storage)) != storage_type || AT(AT(operand, L.storage), S.stream) != stream) {
                result = Py_NewRef(Py_None);
                goto end;
            }
            operand = AT(operand, L.array);
        }
        PyList_SET_ITEM(arguments, i, Py_NewRef(operand));
    }
    PyObject *number = PyLong_FromLong(alone > most_at_once ? most_alone : alone + 1);
    if (number == NULL)
        goto end;
    put(rule, R.alone, number);
    Py_DECREF(number);
    PyObject *launch = got(rule, R.launch);
    if (launch != Py_None) {
        Py_INCREF(launch);
        results = PyObject_CallFunctionObjArgs(launch, arguments, OF(form, shape), OF(form, fortran), NULL);
        Py_DECREF(launch);
        if (results == Py_None)
            Py_CLEAR(results);
        else if (results == NULL)
            goto end;
    }
    if (results == NULL)
        results = PyObject_CallFunctionObjArgs(kernel, arguments, OF(form, shape), OF(form, fortran), NULL);
    if (results == NULL)
        goto end;
    if (!PyList_CheckExact(results) || PyList_GET_SIZE(results) != 1) {
        PyErr_SetString(PyExc_TypeError, "a kernel of one step gives a list of one array");
        goto end;
    }
    storage = made_storage(device, PyList_GET_ITEM(results, 0), stream, Py_None, Py_None);
    if (storage == NULL)
        goto end;
    result = made_array(storage, Py_None, PyList_GET_ITEM(results, 0), Py_None);
    Py_DECREF(storage);
end:
    Py_DECREF(kernel);
    Py_XDECREF(stream);
    Py_XDECREF(arguments);
    Py_XDECREF(results);
    return result;
}

/* The storages' `large` of two operands: a union of sets, one of which is most often an empty tuple. */
static PyObject *
union_of(PyObject *a, PyObject *b)
{
    int one = PyObject_IsTrue(a), other = PyObject_IsTrue(b);
    if (one < 0 || other < 0)
        return NULL;
    return other && one ? PyNumber_Or(a, b) : Py_NewRef(other ? b : a);
}

PyDoc_STRVAR(quick_doc, "quick(ufunc, inputs, /)\n--\n\n"
"The result of a plain call, recorded or computed at once, or None if it can't be; see `recording.quick`.");

static PyObject *
quick(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2 || !PyTuple_CheckExact(args[1]) || PyTuple_GET_SIZE(args[1]) < 1) {
        PyErr_SetString(PyExc_TypeError, "quick takes a ufunc and a tuple of operands");
        return NULL;
    }
    if (forked || array_type == NULL)
        Py_RETURN_NONE;
    PyObject *ufunc = args[0], *inputs = args[1];
    PyObject *bytes = NULL, *operands = NULL, *large = NULL, *node = NULL, *result = NULL, *rule = NULL;
    Operand given[2] = {{NULL}, {NULL}}, *a = NULL, *b = NULL, *form;
    Py_ssize_t least = least_bytes(&bytes), count = PyTuple_GET_SIZE(inputs);
    if (least < 0) {
        Py_XDECREF(bytes);
        if (least == -1)
            Py_RETURN_NONE;
        return NULL;
    }
    PyObject *x = PyTuple_GET_ITEM(inputs, 0), *y = count == 2 ? PyTuple_GET_ITEM(inputs, 1) : NULL;
    for (int i = 0; i < 2; i++) {
        PyObject *z = i ? y : x;
        if (z == NULL || Py_TYPE(z) != array_type)
            continue;
        int found = operand_of(z, &given[i]);
        if (found < 0)
            goto end;
        if (!found)
            goto generally;
        *(i ? &b : &a) = &given[i];
    }
    form = a != NULL ? a : b;
    if (form == NULL || count > 2)
        goto generally;
    long steps = PyLong_AsLong(OF(form->item, steps)) + 1;
    if (a != NULL && b != NULL) {
        int alike = a->fortran == b->fortran ? same(a->shape, b->shape) : 0;
        if (alike < 0)
            goto end;
        if (!alike)
            goto generally;
        rule = rule_for(ufunc, a->dtype, b->dtype);
        steps += PyLong_AsLong(OF(b->item, steps));
    }
    else if (count == 1)
        rule = rule_for(ufunc, a->dtype, NULL);
    else if (!is_real_number(a == NULL ? x : y))
        goto generally;
    else
        rule = a == NULL ? rule_for(ufunc, (PyObject *)Py_TYPE(x), b->dtype)
                         : rule_for(ufunc, a->dtype, (PyObject *)Py_TYPE(y));
    Py_XINCREF(rule);
    if (rule == NULL && PyErr_Occurred())
        goto end;
    if (rule == NULL || Py_TYPE(rule) != rule_type || got(rule, R.casts) != Py_None || got(rule, R.choose) != Py_None
            || steps > most_steps)
        goto generally;
    int leaves = (a != NULL && Py_TYPE(a->item) == leaf_type) + (b != NULL && Py_TYPE(b->item) == leaf_type);
    if (least > 0 && leaves && PyLong_AsSsize_t(form->size) * PyLong_AsSsize_t(got(rule, R.itemsize)) < least) {
        result = Py_NewRef(Py_None);    /* small, and not of what waits already */
        goto end;
    }
    PyObject *step = got(rule, R.step);
    if (Py_TYPE(step) != step_type)
        goto generally;
    if (count == 2 && (a == NULL || b == NULL)) {
        PyObject *scalar = got(step, P.scalar), *number;
        number = scalar == Py_None ? Py_NewRef(a == NULL ? x : y) : PyObject_CallOneArg(scalar, a == NULL ? x : y);
        if (number == NULL) {
            if (PyErr_ExceptionMatches(PyExc_OverflowError)) {  /* beyond the dtype: compared by value, or refused */
                PyErr_Clear();
                result = Py_NewRef(Py_None);
            }
            goto end;
        }
        operands = a == NULL ? PyTuple_Pack(2, number, b->item) : PyTuple_Pack(2, a->item, number);
        Py_DECREF(number);
    }
    else
        operands = count == 1 ? PyTuple_Pack(1, a->item) : PyTuple_Pack(2, a->item, b->item);
    if (operands == NULL)
        goto end;
    PyObject *device = Py_TYPE(form->item) == node_type ? AT(form->item, N.device)
                                                        : AT(AT(form->item, L.storage), S.device);
    if (steps == 1 && leaves == (a != NULL) + (b != NULL)) {
        long alone = PyLong_AsLong(got(rule, R.alone));
        if (alone > most_alone) {
            result = computed_now(rule, operands, form->item, device, alone);
            if (result == Py_NotImplemented)        /* by the device's own function */
                Py_SETREF(result, Py_NewRef(Py_None));
            else if (result == Py_None)
                Py_CLEAR(result);
            if (result != NULL || PyErr_Occurred())
                goto end;
        }
    }
    large = a != NULL && b != NULL ? union_of(OF(a->item, large), OF(b->item, large)) : Py_NewRef(OF(form->item, large));
    if (large == NULL)
        goto end;
    node = made_node(device, step, operands, form, steps, large);
    if (node != NULL)
        result = array_of(node, rule, steps);
    goto end;
generally:
    result = PyObject_CallFunctionObjArgs(general, ufunc, inputs, bytes, NULL);
end:
    drop(&given[0]);
    drop(&given[1]);
    Py_XDECREF(bytes);
    Py_XDECREF(rule);
    Py_XDECREF(operands);
    Py_XDECREF(large);
    Py_XDECREF(node);
    return result;
}

PyDoc_STRVAR(plain_doc, "plain(ufunc, inputs, /)\n--\n\n"
"The result of a plain call, recorded or by a plan, or None; see `ufuncs.quick`.");

static PyObject *
plain(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *result = quick(module, args, nargs);
    if (result != Py_None || planned == NULL)
        return result;
    Py_DECREF(result);
    return PyObject_CallFunctionObjArgs(planned, args[0], args[1], NULL);
}

PyDoc_STRVAR(source_doc, "source(device, step, template, size, /)\n--\n\n"
"The lazy array of a step without operands, in C order; see `recording.source`.");

static PyObject *
source(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 4 || array_type == NULL || Py_TYPE(args[1]) != step_type) {
        PyErr_SetString(PyExc_TypeError, "source takes a device, a step, a template and a size");
        return NULL;
    }
    Operand form = {NULL, PyObject_GetAttr(args[2], text_shape), Py_False, args[3], got(args[1], P.output), args[2]};
    if (form.shape == NULL)
        return NULL;
    PyObject *result = NULL, *node = made_node(args[0], args[1], no_arguments, &form, 1, no_arguments);
    if (node != NULL)
        result = array_of(node, Py_None, 1);
    Py_XDECREF(node);
    Py_DECREF(form.shape);
    return result;
}

/* -- what the module is told ---------------------------------------------------------------------------- */

/* The offset of a slot, -1 with an error if there is no such slot. */
static Py_ssize_t
offset_of(PyObject *type, const char *name)
{
    PyObject *found = PyObject_GetAttrString(type, name);
    if (found == NULL)
        return -1;
    Py_ssize_t offset = -1;
    if (Py_TYPE(found) == &PyMemberDescr_Type)
        offset = ((PyMemberDescrObject *)found)->d_member->offset;
    else
        PyErr_Format(PyExc_TypeError, "%R has no slot %s", type, name);
    Py_DECREF(found);
    return offset;
}

#define SLOT(where, type, name, text) \
    if ((where.name = offset_of((PyObject *)type, text)) < 0) return NULL
#define TYPE(variable, name) \
    if ((variable = (PyTypeObject *)PyDict_GetItemString(names, name)) == NULL || !PyType_Check(variable)) goto lacking; \
    else Py_INCREF(variable)
#define NAME(variable, name) \
    if ((variable = PyDict_GetItemString(names, name)) == NULL) goto lacking; else Py_INCREF(variable)
#define NUMBER(variable, name) \
    if ((value = PyDict_GetItemString(names, name)) == NULL) goto lacking; \
    else if ((variable = PyLong_AsLong(value)) < 0) goto lacking

PyDoc_STRVAR(bind_doc, "bind(names, /)\n--\n\n"
"Tell the module the classes, functions and limits of the Python modules (called once, when all are there).");

static PyObject *
bind(PyObject *Py_UNUSED(module), PyObject *names)
{
    PyObject *value;
    TYPE(array_type, "LazyNdarray");
    TYPE(storage_type, "Storage");
    TYPE(leaf_type, "Leaf");
    TYPE(node_type, "Node");
    TYPE(rule_type, "Rule");
    TYPE(step_type, "Step");
    NAME(rules, "rules");
    NAME(scopes, "scopes");
    NAME(options_names, "options");
    NAME(waiting_names, "waiting");
    NAME(partners, "partners");
    NAME(general, "general");
    NAME(planned, "planned");
    NAME(ready, "ready");
    NAME(at_once, "at_once");
    NAME(template_of, "template_of");
    NAME(note_large, "note_large");
    NAME(prune, "prune");
    NAME(look_after, "look_after");
    NUMBER(most_steps, "MOST_STEPS");
    NUMBER(most_readers, "MOST_READERS");
    NUMBER(most_alone, "ALONE");
    NUMBER(most_at_once, "AT_ONCE");
    NUMBER(long_size, "LONG");
    SLOT(X, array_type, storage, "_self_storage");
    SLOT(X, array_type, outline, "_self_outline");
    SLOT(X, array_type, array, "_self_array");
    SLOT(X, array_type, base, "_self_base");
    SLOT(X, array_type, leaf, "_self_leaf");
    SLOT(S, storage_type, device, "device");
    SLOT(S, storage_type, root, "root");
    SLOT(S, storage_type, stream, "stream");
    SLOT(S, storage_type, loans, "loans");
    SLOT(S, storage_type, foreign, "foreign");
    SLOT(S, storage_type, quiet, "quiet");
    SLOT(S, storage_type, pending, "pending");
    SLOT(S, storage_type, readers, "readers");
    SLOT(S, storage_type, root_view, "_root_view");
    SLOT(L, leaf_type, array, "array");
    SLOT(L, leaf_type, storage, "storage");
    SLOT(L, leaf_type, shape, "shape");
    SLOT(L, leaf_type, fortran, "fortran");
    SLOT(L, leaf_type, size, "size");
    SLOT(L, leaf_type, dtype, "dtype");
    SLOT(L, leaf_type, steps, "steps");
    SLOT(L, leaf_type, large, "large");
    SLOT(L, leaf_type, template, "template");
    SLOT(N, node_type, device, "device");
    SLOT(N, node_type, step, "step");
    SLOT(N, node_type, operands, "operands");
    SLOT(N, node_type, shape, "shape");
    SLOT(N, node_type, fortran, "fortran");
    SLOT(N, node_type, steps, "steps");
    SLOT(N, node_type, large, "large");
    SLOT(N, node_type, strided, "strided");
    SLOT(N, node_type, size, "size");
    SLOT(N, node_type, dtype, "dtype");
    SLOT(N, node_type, storage, "storage");
    SLOT(N, node_type, readers, "readers");
    SLOT(N, node_type, array, "array");
    SLOT(N, node_type, stream, "stream");
    SLOT(N, node_type, place, "place");
    SLOT(N, node_type, passed, "passed");
    SLOT(N, node_type, template, "template");
    SLOT(N, node_type, rule, "rule");
    SLOT(R, rule_type, step, "step");
    SLOT(R, rule_type, casts, "casts");
    SLOT(R, rule_type, choose, "choose");
    SLOT(R, rule_type, itemsize, "itemsize");
    SLOT(R, rule_type, alone, "alone");
    SLOT(R, rule_type, program, "program");
    SLOT(R, rule_type, kernel, "kernel");
    SLOT(R, rule_type, launch, "launch");
    SLOT(P, step_type, scalar, "scalar");
    SLOT(P, step_type, output, "output");
    Py_RETURN_NONE;
lacking:
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "bind was not told all names");
    return NULL;
}

static PyObject *
stop(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    forked = 1;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"bind", bind, METH_O, bind_doc},
    {"new_array", (PyCFunction)(void (*)(void))new_array, METH_FASTCALL | METH_KEYWORDS, new_array_doc},
    {"quick", (PyCFunction)(void (*)(void))quick, METH_FASTCALL, quick_doc},
    {"plain", (PyCFunction)(void (*)(void))plain, METH_FASTCALL, plain_doc},
    {"source", (PyCFunction)(void (*)(void))source, METH_FASTCALL, source_doc},
    {"stop", stop, METH_NOARGS, PyDoc_STR("stop()\n--\n\nRecord nothing any more: in a forked child.")},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "lazyarray._recording", PyDoc_STR("The quick way of recording, in C."), -1, methods,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit__recording(void)
{
    static const struct { PyObject **where; const char *text; } texts[] = {
        {&text_defer_from, "defer_from"}, {&text_default, "_default"}, {&text_view, "view"}, {&text_young, "young"},
        {&text_watcher, "watcher"}, {&text_limit, "limit"}, {&text_append, "append"}, {&text_stream, "stream"},
        {&text_shape, "shape"}, {&text_size, "size"}, {&text_dtype, "dtype"}, {&text_flags, "flags"},
        {&text_c_contiguous, "c_contiguous"}, {&text_f_contiguous, "f_contiguous"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if ((*texts[i].where = PyUnicode_InternFromString(texts[i].text)) == NULL)
            return NULL;
    no_arguments = PyTuple_New(0);
    zero = PyLong_FromLong(0);
    PyObject *module = no_arguments == NULL || zero == NULL ? NULL : PyModule_Create(&definition);
    if (module != NULL && PyModule_AddIntConstant(module, "INTERFACE", 3) < 0)
        Py_CLEAR(module);
    return module;
}
