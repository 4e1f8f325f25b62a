/* Members of LazyNdarray that NumPy does at once where all is on the host; what is not is left to Python. */

enum { REFLECTED = 1, IN_PLACE = 2, ASSIGNS = 4, BROADCASTS = 8, MULTIPLIES = 16, INDEXES = 32, COMPUTES = 64, VALUES = 128,
       LENGTHENS = 256, MAKES = 512, POWERS = 1024, SEES = 2048, PACKED = 4096, COPIES = 8192 };

/* `cost`: what `cost_of` says of `callee`, and `reduces`: whether it is in the table of reductions; -1 before it was asked.
`ufunc`: that of an operator, None of another member, NULL before it was asked. */
typedef struct { PyObject_HEAD vectorcallfunc call; PyObject *callee, *otherwise, *ufunc; int kind, cost, reduces; } Member;

/* Whether anybody listens to events here: 1 or 0; -1: an error. */
static int
is_heard(void)
{
    PyObject *here, *process = PyDict_GetItemWithError(py.trace, text._process);
    if (process == NULL && !PyErr_Occurred())
        PyErr_SetObject(PyExc_KeyError, text._process);
    if (process == NULL || PyContextVar_Get(py.listeners, NULL, &here) < 0)
        return -1;
    int heard = (PyTuple_Check(here) && PyTuple_GET_SIZE(here) > 0) || (PyTuple_Check(process) && PyTuple_GET_SIZE(process) > 0);
    Py_DECREF(here);
    return heard;
}


/* How many calls on the host are under way in this thread: a signal handler, or a finaliser, may come within. */
static PER_THREAD long under_way = 0;

/* ``callee(*arguments, **names)``, with an event if somebody listens. */
static PyObject *
computed_on_host(PyObject *callee, PyObject *told, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    int heard = told == NULL ? 0 : is_heard();
    if (heard < 0)
        return NULL;
    PyObject *token = heard ? PyObject_CallOneArg(py.begin_on_host, told) : NULL;
    if (heard && token == NULL)
        return NULL;
    if (told != NULL)
        note_hosted();
    under_way++;
    PyObject *result = PyObject_Vectorcall(callee, arguments, count, names);
    under_way--;
    if (told != NULL && small_bytes > small_set && result != NULL && note_hosts_work(told, arguments, count, result) < 0)
        Py_CLEAR(result);
    if (token != NULL && result != NULL) {
        PyObject *ended = PyObject_CallFunctionObjArgs(py.end_on_host, token, result, NULL);
        if (ended == NULL)
            Py_CLEAR(result);
        Py_XDECREF(ended);
    }
    Py_XDECREF(token);
    return result;
}

/* Whether all bytes of a storage are current on the host alone, and nobody but lazy arrays looks at them: what the host writes there then
changes nothing of what is known of them. No Python code runs. -1: an error. */
static int
is_hosts_alone(PyObject *x)
{
    PyObject *storage = storage_by_now(x), *dirty, *mirror = NULL, *sending = NULL, *nbytes = NULL;
    if (Py_TYPE(storage) == types.HostStorage)
        return 1;
    if (Py_TYPE(storage) != types.Storage || got(x, X.host) == Py_None || got(storage, S.host) != Py_True || got(storage, S.clean) != Py_False
            || got(storage, S.pending) != Py_None || is_held(storage) || is_read(storage))
        return 0;
    Py_INCREF(storage);
    int alone = (dirty = PyObject_GetAttr(storage, text.host_dirty)) == NULL || (mirror = PyObject_GetAttr(storage, text.mirror)) == NULL
        || (sending = PyObject_GetAttr(storage, text.sending)) == NULL || (nbytes = PyObject_GetAttr(storage, text._nbytes)) == NULL ? -1
        : Py_TYPE(dirty) == types.Ranges && Py_TYPE(sending) == types.Ranges && Py_TYPE(mirror) == types.Mirror
            && got(mirror, M.lent) == Py_False && got(dirty, B._starts) == Py_None && got(dirty, B.start) == zero;
    if (alone > 0 && (alone = same(got(dirty, B.stop), nbytes)) > 0 && (alone = same(got(sending, B.start), got(sending, B.stop))) > 0)
        alone = is_set_to(storage, text.incoming, Py_None);
    Py_XDECREF(nbytes);
    Py_XDECREF(sending);
    Py_XDECREF(mirror);
    Py_XDECREF(dirty);
    Py_DECREF(storage);
    return alone;
}

/* Whether the host may write a lazy array without telling anybody. -1: an error. */
static int
is_hosts(PyObject *x)
{
    if (is_light(x))
        return 1;
    if (is_hosts_alone(x) <= 0)
        return PyErr_Occurred() ? -1 : 0;
    const int others = others_run();    /* one of them may take the bytes to the device meanwhile */
    return others < 0 ? -1 : !others;   /* `written_on_host` looks once more */
}

/* The ndarray of the array that a statement writes at places that others name: as large as the host takes. */
static PyObject *
replaced_target(PyObject *x, Found *found)
{
    PyObject *host = PyArray_CheckExact(x) ? x : of_host_alone(x, PY_SSIZE_T_MAX);
    if (host == NULL)
        host = on_host_to_write(x);
    return host != NULL && note_source(found, x, host) ? host : NULL;
}

/* The array that an `out=` is, if no storage has to be told of what is written there; NULL, perhaps with an error, if it is
something else. */
static PyObject *
output_of_host(PyObject *out)
{
    if (PyTuple_CheckExact(out) && PyTuple_GET_SIZE(out) == 1)
        out = PyTuple_GET_ITEM(out, 0);
    if (run.credit > 0 && Py_TYPE(out) == types.LazyNdarray && lighten(out) < 0)
        return NULL;
    return PyArray_CheckExact(out) || (Py_TYPE(out) == types.LazyNdarray && is_hosts(out) > 0) ? out : NULL;
}

/* Take an object out of a list, once, whatever error there is. */
static void
take_out(PyObject *list, PyObject *item)
{
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++)
        if (PyList_GET_ITEM(list, i) == item) {
            PyList_SetSlice(list, i, i + 1, NULL);
            break;
        }
    PyErr_Restore(kind, value, trace);
}

/* `computed_on_host`, where `written` is written (NULL: nothing): no other thread gives it a storage meanwhile, as
`handles.held_on_host` has it. NotImplemented: one has, or is about to. */
static PyObject *
written_on_host(PyObject *written, PyObject *callee, PyObject *told, PyObject *const *arguments, Py_ssize_t count,
                PyObject *names)
{
    if (written == NULL || PyArray_CheckExact(written))
        return computed_on_host(callee, told, arguments, count, names);
    PyObject *home = Py_XNewRef(home_of_light(written)), *result = NULL;
    if (home == NULL || home == Py_None) {      /* with a storage, which may be the host's alone */
        int alone = home == NULL ? -1 : is_hosts_alone(written);
        Py_XDECREF(home);
        return alone < 0 ? NULL : alone > 0 ? computed_on_host(callee, told, arguments, count, names) : Py_NewRef(Py_NotImplemented);
    }
    if (PyList_Append(py.written, home) == 0) {
        int elsewhere = got(home, H.storage) != Py_None ? 1 : PySequence_Contains(py.promoted, home);
        if (elsewhere == 0)
            result = computed_on_host(callee, told, arguments, count, names);
        else if (elsewhere > 0)
            result = Py_NewRef(Py_NotImplemented);
        take_out(py.written, home);
    }
    Py_DECREF(home);
    return result;
}

/* What NumPy has written is told, if another thread has used the array on the device meanwhile. -1: an error. */
static int
tell_if_used(PyObject *written)
{
    if (written == NULL || PyArray_CheckExact(written) || is_light(written))
        return 0;
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    int alone = is_hosts_alone(written);
    PyObject *told = alone == 0 ? PyObject_CallOneArg(py.wrote_on_host, written) : alone < 0 ? NULL : Py_NewRef(Py_None);
    if (told == NULL) {
        Py_XDECREF(kind);
        Py_XDECREF(value);
        Py_XDECREF(trace);
        return -1;
    }
    Py_DECREF(told);
    PyErr_Restore(kind, value, trace);
    return 0;
}

/* `written_on_host`, with lazy arrays in place of NumPy's. */
static PyObject *
lazily_on_host(PyObject *written, PyObject *callee, PyObject *told, PyObject *const *arguments, Py_ssize_t count,
               PyObject *names, Found *found)
{
    PyObject *result = written_on_host(written, callee, told, arguments, count, names);
    if (result == Py_NotImplemented)
        return result;
    if (tell_if_used(written) < 0)
        Py_CLEAR(result);
    return result == NULL ? NULL : given_back(result, found);
}

/* Whether NumPy raises to this power by a multiplication or a root. */
static int
is_plain_power(PyObject *exponent)
{
    double power = PyFloat_CheckExact(exponent) ? PyFloat_AS_DOUBLE(exponent)
        : PyLong_CheckExact(exponent) ? PyLong_AsDouble(exponent) : 9;
    if (power == -1 && PyErr_Occurred())
        PyErr_Clear();
    return power == 2 || power == 1 || power == 0.5 || power == 0;
}

/* What NumPy's operator does instead of raising to this power, if it does: borrowed, or NULL. */
static PyObject *
instead_of_power(PyObject *x, PyObject *exponent)
{
    const double power = PyFloat_CheckExact(exponent) ? PyFloat_AS_DOUBLE(exponent) : 0;
    int over = 0, which = power == 0.5 ? 2 : -1;
    if (PyLong_CheckExact(exponent)) {
        const long number = PyLong_AsLongAndOverflow(exponent, &over);
        which = over ? -1 : number == 2 ? 0 : number == -1 ? 1 : -1;
    }
    PyObject *dtype = which < 0 ? NULL : dtype_of_lazy(x);
    const char kind = dtype != NULL && PyArray_DescrCheck(dtype) ? ((PyArray_Descr *)dtype)->kind : 0;
    Py_XDECREF(dtype);
    return kind == 0 || strchr(which == 0 ? "biufc" : "fc", kind) == NULL ? NULL : PyTuple_GET_ITEM(py.powers, which);
}

/* Whether a lazy array has one dimension; -1: an error. */
static int
is_vector(PyObject *x)
{
    if (Py_TYPE(x) != types.LazyNdarray)
        return 0;
    PyObject *array = got(x, X.array) != Py_None ? got(x, X.array) : got(x, X.host) != Py_None ? got(x, X.host) : got(x, X.meta);
    PyObject *shape = array == Py_None ? Py_NewRef(Py_None) : PyObject_GetAttr(array, text.shape);
    int one = shape == NULL ? -1 : PyTuple_CheckExact(shape) && PyTuple_GET_SIZE(shape) == 1;
    Py_XDECREF(shape);
    return one;
}

/* An operator of lazy arrays, numbers and scalars, as its ufunc: recorded, written in place, or by the device's own function. A new
reference; NULL, perhaps without an error: it is for Python. */
static PyObject *
operated(Member *member, PyObject *const *args, Py_ssize_t count)
{
    if (member->ufunc == NULL && py.operators != NULL) {
        PyObject *known = PyDict_GetItemWithError(py.operators, member->callee);
        member->ufunc = Py_NewRef(known == NULL ? Py_None : known);
    }
    if (member->ufunc == NULL || member->ufunc == Py_None || count < 1 || count > 2 || Py_TYPE(args[0]) != types.LazyNdarray
            || (count == 2 && PySet_Contains(py.direct, (PyObject *)Py_TYPE(args[1])) <= 0))
        return NULL;
    if (((PyUFuncObject *)member->ufunc)->core_enabled && count == 2) {     /* a product of vectors is recorded */
        int vectors = is_vector(args[0]) > 0 ? is_vector(args[1]) : 0;
        if (vectors || PyErr_Occurred())
            return NULL;
    }
    PyObject *ufunc = member->ufunc, *other = member->kind & POWERS && count == 2 ? instead_of_power(args[0], args[1]) : NULL;
    PyObject *inputs = PyErr_Occurred() ? NULL : count == 1 || other != NULL ? PyTuple_Pack(1, args[0])
        : member->kind & REFLECTED ? PyTuple_Pack(2, args[1], args[0]) : PyTuple_Pack(2, args[0], args[1]);
    if (inputs == NULL)
        return NULL;
    PyObject *given[] = {other != NULL ? other : ufunc, inputs, args[0]}, *result;
    if (member->kind & IN_PLACE)
        result = updated(NULL, given, 3);
    else
        result = ((PyUFuncObject *)given[0])->core_enabled ? looped(NULL, given, 2) : recorded(NULL, given, 2);
    Py_DECREF(inputs);
    if (result == Py_None)
        Py_CLEAR(result);
    return result;
}

/* The lazy array that sees what `part` does of `meta`, the meta of `x`: a new reference. NULL without an error: it is no view,
or `x` has another meta by now. */
static PyObject *
seen_of(PyObject *x, PyObject *meta, PyObject *part)
{
    if (part == meta)
        return Py_NewRef(x);
    if (!PyArray_Check(part) || got(x, X.meta) != meta || AT(x, X.storage) == NULL)
        return NULL;
    PyObject *storage = Py_NewRef(AT(x, X.storage)), *base = Py_NewRef(got(x, X.base) == Py_None ? x : got(x, X.base));
    PyObject *view = Py_TYPE(part) == Py_TYPE(meta) ? Py_NewRef(part)
        : PyObject_CallMethodOneArg(part, text.view, (PyObject *)Py_TYPE(meta));
    PyObject *result = view == NULL ? NULL : made_array(storage, view, Py_None, base);
    Py_XDECREF(view);
    Py_DECREF(storage);
    Py_DECREF(base);
    return result;
}

/* The meta of a lazy array that has a storage: a new reference; NULL, perhaps without an error: it is none. */
static PyObject *
meta_with_storage(PyObject *x)
{
    if (types.LazyNdarray == NULL || Py_TYPE(x) != types.LazyNdarray || AT(x, X.storage) == NULL)
        return NULL;
    PyObject *meta = meta_of_lazy(x);
    if (meta != NULL && !PyArray_Check(meta))
        Py_CLEAR(meta);
    return meta;
}

/* Whether an argument says how an array is seen in numbers alone. */
static int
is_plain_way(PyObject *item)
{
    if (!PyTuple_CheckExact(item) && !PyList_CheckExact(item))
        return item == Py_None || PyBool_Check(item) || PyLong_CheckExact(item);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(item); i++)
        if (!PyLong_CheckExact(PySequence_Fast_GET_ITEM(item, i)))
            return 0;
    return 1;
}

/* What a function or method that gives views, `callee`, gives of its first argument, by what NumPy makes of the meta: a lazy
array, or a list or tuple of such. `kind`: PACKED if it copies what is not in C order, and where a keyword says so. NULL,
perhaps without an error: it is for Python. */
static PyObject *
seen_by(PyObject *callee, int kind, PyObject *const *args, Py_ssize_t count, PyObject *kwargs)
{
    PyObject *given[MOST_ARGUMENTS], *name, *value, *result = NULL;
    Py_ssize_t place = 0;
    if (count < 1 || count > MOST_ARGUMENTS || ((kind & PACKED) && kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0))
        return NULL;
    for (Py_ssize_t i = 1; i < count; i++) {
        given[i] = args[i];
        if (!is_plain_way(args[i]))
            return NULL;
    }
    while (kwargs != NULL && PyDict_Next(kwargs, &place, &name, &value))
        if (!is_plain_way(value))
            return NULL;
    PyObject *x = args[0], *meta = meta_with_storage(x), *part = NULL;
    given[0] = NULL;
    if (meta != NULL && PyArray_NDIM((PyArrayObject *)meta) > 0
            && (!(kind & PACKED) || PyArray_IS_C_CONTIGUOUS((PyArrayObject *)meta)))
        /* NumPy's functions in Python ask a class of its own for each function that they call */
        given[0] = PyFunction_Check(callee) ? PyArray_View((PyArrayObject *)meta, NULL, &PyArray_Type) : Py_NewRef(meta);
    if (given[0] != NULL)
        part = PyObject_VectorcallDict(callee, given, count, kwargs);
    if (part != NULL && part == given[0])
        Py_SETREF(part, Py_NewRef(meta));
    if (part != NULL && is_sequence(part)) {
        const Py_ssize_t length = PySequence_Fast_GET_SIZE(part);
        result = PyList_New(0);
        for (Py_ssize_t i = 0; result != NULL && i < length; i++) {
            PyObject *one = seen_of(x, meta, PySequence_Fast_GET_ITEM(part, i));
            if (one == NULL || PyList_Append(result, one) < 0)
                Py_CLEAR(result);
            Py_XDECREF(one);
        }
        if (result != NULL && PyTuple_CheckExact(part))
            Py_SETREF(result, PyList_AsTuple(result));
    }
    else if (part != NULL)
        result = seen_of(x, meta, part);
    Py_XDECREF(part);
    Py_XDECREF(given[0]);
    Py_XDECREF(meta);
    return result;
}

/* The same of a call of NumPy's function. */
static PyObject *
seen_by_function(PyObject *func, PyObject *args, PyObject *kwargs)
{
    PyObject *known = PyDict_GetItemWithError(py.seeing, func);
    return known == NULL ? NULL
        : seen_by(PyTuple_GET_ITEM(known, 0), PyTuple_GET_ITEM(known, 1) == Py_True ? PACKED : 0,
                  &PyTuple_GET_ITEM(args, 0), PyTuple_GET_SIZE(args), kwargs);
}

/* ``x[index]`` where that is a view: a new reference; NULL, perhaps without an error: it is for Python. */
static PyObject *
view_of_part(PyObject *x, PyObject *index)
{
    const int is_tuple = PyTuple_CheckExact(index);
    const Py_ssize_t count = is_tuple ? PyTuple_GET_SIZE(index) : 1;
    int sees = 0, numbers = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = is_tuple ? PyTuple_GET_ITEM(index, i) : index;
        if (!is_plain_item(item))
            return NULL;
        numbers |= PyLong_CheckExact(item);
        sees |= !PyLong_CheckExact(item);
    }
    PyObject *meta = meta_with_storage(x), *part = NULL, *result = NULL;
    if (meta != NULL && (sees || count < PyArray_NDIM((PyArrayObject *)meta)))
        part = PyObject_GetItem(meta, index);
    /* A small row, or a short part of one. With rows of 58 to 81 kB of a table of 12 MB some functions were the host's and some the device's,
and the table was sent to and fro (stereo); columns of 29 kB of masks had theirs fetched for a vector that was sent each time (climate). */
    if (part != NULL && numbers && (!PyArray_Check(part) || bytes_of((PyArrayObject *)part) <= small_bytes / (sees ? 4 : 2))
            && note_taken(x, meta, 0) < 0)
        Py_CLEAR(part);
    if (part != NULL)
        result = seen_of(x, meta, part);
    Py_XDECREF(part);
    Py_XDECREF(meta);
    return result;
}

/* Whether ``x[index]`` makes a new array, of a small one: it takes by arrays or lazy scalars. -1: an error. */
static int
takes_of_small(PyObject *x, PyObject *index)
{
    const int is_tuple = PyTuple_CheckExact(index);
    const Py_ssize_t count = is_tuple ? PyTuple_GET_SIZE(index) : 1;
    int takes = 0, lacking = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = is_tuple ? PyTuple_GET_ITEM(index, i) : index;
        takes |= Py_TYPE(item) == types.LazyNdarray || Py_TYPE(item) == types.LazyScalar || PyArray_Check(item);
    }
    if (!takes || small_bytes == 0 || Py_TYPE(x) != types.LazyNdarray)
        return 0;
    takes = has_small(x, small_bytes, NULL, &lacking, 0);
    return takes < 0 ? -1 : takes == 1;
}

/* Whether ``x[index] = value`` writes to all or a part of a small array, none of a large one's memory. -1: an error. */
static int
writes_to_small(PyObject *x)
{
    PyObject *storage = small_bytes == 0 || Py_TYPE(x) != types.LazyNdarray ? NULL : storage_by_now(x);
    if (storage == NULL || Py_TYPE(storage) != types.Storage)
        return storage == Py_None;      /* nothing but its ndarray, if that is made */
    Py_INCREF(storage);
    const Py_ssize_t nbytes = bytes_of_storage(storage);
    Py_DECREF(storage);
    const int medium = nbytes >= 0 && nbytes <= small_bytes ? is_medium(x, storage) : 1;
    return PyErr_Occurred() ? -1 : !medium;
}

#include "recording_rows.h"

/* Whether the host has all bytes of the storage of a lazy array. */
static inline int
has_on_host(PyObject *x)
{
    PyObject *storage = types.LazyNdarray == NULL || Py_TYPE(x) != types.LazyNdarray ? Py_None : storage_by_now(x);
    return Py_TYPE(storage) == types.Storage && got(storage, S.host) != Py_None;
}

/* A whole number of NumPy's, or a lazy scalar that is known to be one, as Python's; another object as it is: a new reference. */
static PyObject *
as_python_integer(PyObject *item)
{
    PyObject *value = Py_TYPE(item) == types.LazyScalar ? got(item, V.value) : item;
    return PyArray_IsScalar(value, Integer) && !PyArray_IsScalar(value, Timedelta) ? PyNumber_Index(value) : Py_NewRef(item);
}

/* So many elements of a list are looked at. */
#define FEW_IN_LIST 64

/* A list of few of NumPy's integers, all of one type, as one of Python's; another as it is: a new reference. */
static PyObject *
as_plain_list(PyObject *list)
{
    PyObject *first = PyList_GET_SIZE(list) == 0 || PyList_GET_SIZE(list) > FEW_IN_LIST ? Py_None : PyList_GET_ITEM(list, 0);
    if (!PyArray_IsScalar(first, SignedInteger) || PyArray_IsScalar(first, Timedelta))
        return Py_NewRef(list);
    PyTypeObject *type = Py_TYPE(first);
    PyObject *copy = PyList_GetSlice(list, 0, FEW_IN_LIST);     /* another thread may change the list */
    for (Py_ssize_t i = 0; copy != NULL && i < PyList_GET_SIZE(copy); i++) {
        PyObject *item = PyList_GET_ITEM(copy, i), *plain = Py_TYPE(item) == type ? PyNumber_Index(item) : NULL;
        if (plain == NULL) {
            Py_DECREF(copy);
            return PyErr_Occurred() ? NULL : Py_NewRef(list);
        }
        PyList_SetItem(copy, i, plain);
    }
    return copy;
}

/* An item of an index with Python's integers for NumPy's, which mean the same there: a new reference. */
static PyObject *
as_plain_item(PyObject *item)
{
    if (PyLong_CheckExact(item))
        return Py_NewRef(item);
    if (PyList_CheckExact(item))
        return as_plain_list(item);
    if (!PySlice_Check(item))
        return as_python_integer(item);
    PySliceObject *slice = (PySliceObject *)item;
    PyObject *start = as_python_integer(slice->start), *stop = as_python_integer(slice->stop), *step = as_python_integer(slice->step), *made = NULL;
    if (start != NULL && stop != NULL && step != NULL)
        made = start == slice->start && stop == slice->stop && step == slice->step ? Py_NewRef(item) : PySlice_New(start, stop, step);
    Py_XDECREF(start);
    Py_XDECREF(stop);
    Py_XDECREF(step);
    return made;
}

static PyObject *
member_call(PyObject *self, PyObject *const *args, size_t flagged, PyObject *names)
{
    Member *member = (Member *)self;
    Py_ssize_t count = PyVectorcall_NARGS(flagged), all = count + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
    PyObject *given[MOST_ARGUMENTS + 1], **arguments = given + 1, *result = NULL;
    Found found;
    int fetched = 0, cost = 1;
    const int was_on_host = count > 0 && has_on_host(args[0]);
again:
    found.count = found.kept = 0;
    if (member->cost < 0 && (member->cost = cost_of(member->callee)) < 0)
        goto otherwise;
    cost = (member->kind & POWERS) && count > 1 && is_plain_power(args[1]) ? 1 : member->cost;
    if (count > 0 && Py_TYPE(args[0]) == types.LazyNdarray
            && ((run.credit > 0 && (member->kind & (IN_PLACE | ASSIGNS)))
                || (to_lighten != NULL && (member->kind & INDEXES) && got(args[0], X.storage) == to_lighten))) {
        if (member->kind & INDEXES)
            to_lighten = NULL;
        if (lighten(args[0]) < 0)
            return NULL;
    }
    const int kind = member->kind;
    if (begin(&found, cost, kind & MULTIPLIES) < 0 || count < 1 || all > MOST_ARGUMENTS || small_bytes == 0 || Py_TYPE(args[0]) != types.LazyNdarray)
        goto otherwise;
    if (kind & BROADCASTS)
        allow_more(&found, args, count);
    for (Py_ssize_t i = 0; i < all; i++) {
        if ((kind & (INDEXES | ASSIGNS)) && i == 0) {   /* of what is large a small part may be read, or written */
            if ((arguments[0] = of_host_alone_without_objects(args[0])) == NULL)
                arguments[0] = kind & ASSIGNS ? on_host_to_write(args[0]) : on_host_up_to(args[0], PY_SSIZE_T_MAX);
            if (arguments[0] == NULL || !note_source(&found, args[0], arguments[0]))
                goto otherwise;
        }
        else if ((arguments[i] = replaced(args[i], &found, 0)) == NULL)
            goto otherwise;
    }
    for (Py_ssize_t i = count; i < all; i++)
        if (PyUnicode_Compare(PyTuple_GET_ITEM(names, i - count), text.out) == 0)
            goto otherwise;
    if ((kind & REFLECTED) && all > 1) {
        PyObject *first = arguments[0];
        arguments[0] = arguments[1];
        arguments[1] = first;
    }
    if (((kind & (IN_PLACE | ASSIGNS)) && is_hosts(args[0]) <= 0) || !counts_still(&found) || ((kind & COMPUTES) && is_devices(&found) != 0))
        goto otherwise;
    if (((kind & BROADCASTS) && count == 2 && !is_small_together(arguments[0], arguments[1], found.most))
            || ((kind & MULTIPLIES) && count == 2 && !is_small_product(arguments[0], arguments[1], found.most))
            || ((kind & (INDEXES | ASSIGNS)) && count > 1 && !is_small_part(arguments[0], arguments[1], found.most)))
        goto otherwise;
    Py_INCREF(args[0]);     /* and with it its ndarray, which nothing else may hold */
    PyObject *held = Py_NewRef(got(args[0], X.host));
    const int writes = kind & (IN_PLACE | ASSIGNS);
    result = written_on_host(writes ? args[0] : NULL, member->callee, kind & COMPUTES ? member->callee : NULL, arguments,
                             count, names);
    const int left = writes && result == Py_NotImplemented;
    /* An element that is taken or assigned is a call that the device did not get; a view would be none there. */
    if (result != NULL && !(kind & COMPUTES) && ((kind & ASSIGNS) || !PyArray_Check(result))) {
        note_hosted();
        if (!(kind & ASSIGNS))
            note_number();
    }
    if (writes && !left && tell_if_used(args[0]) < 0)
        Py_CLEAR(result);
    if (left)
        Py_CLEAR(result);
    else if (result != NULL && !(kind & (ASSIGNS | VALUES)))
        result = given_back(result, &found);
    Py_DECREF(held);
    Py_DECREF(args[0]);
    if (left)
        goto otherwise;
    let_go(&found);
    return result;
otherwise:
    let_go(&found);
    if (PyErr_Occurred())
        return NULL;
    int computes = member->kind & (COMPUTES | COPIES);
    if (!fetched && (member->kind & ASSIGNS) && all == 3) {
        if ((computes = writes_to_small(args[0])) == 0 && (fetched = note_assigned(args[0], args[1], args[2])) > 0)
            goto again;
    }
    else if (!fetched && (member->kind & INDEXES) && all == 2) {
        if ((computes = takes_of_small(args[0], args[1])) == 0 && (fetched = note_named(args[0], args[1])) > 0)
            goto again;
    }
    if (computes < 0 || fetched < 0)
        return NULL;
    if (computes && !fetched && (fetched = note_run(args, all, NULL, cost, member->kind & MULTIPLIES)) != 0) {
        if (fetched < 0)
            return NULL;
        goto again;
    }
    if (names == NULL && types.LazyNdarray != NULL && ((result = operated(member, args, count)) != NULL || PyErr_Occurred()))
        return result;
    if ((member->kind & SEES) && names == NULL
            && ((result = seen_by(member->callee, member->kind, args, count, NULL)) != NULL || PyErr_Occurred()))
        return result;
    if ((member->kind & (INDEXES | ASSIGNS)) == INDEXES && count == 2) {
        if ((result = view_of_part(args[0], args[1])) != NULL || PyErr_Occurred()
                || (result = element_taken(args[0], args[1])) != NULL || PyErr_Occurred()
                || (result = rows_taken(args[0], args[1])) != NULL || PyErr_Occurred())
            return result;
        if (small_bytes > 0 && !fetched && !was_on_host && has_on_host(args[0])) {      /* it was fetched, see `note_taken` */
            fetched = 1;
            goto again;
        }
    }
    if ((member->kind & ASSIGNS) && count == 3) {
        if ((result = assigned(args[0], args[1], args[2])) != Py_False) {
            Py_XDECREF(result);
            return result == NULL ? NULL : Py_NewRef(Py_None);
        }
        Py_DECREF(result);
        const int done = rows_written(args[0], args[1], args[2], NULL);
        if (done != 0)
            return done < 0 ? NULL : Py_NewRef(Py_None);
    }
    if (member->reduces < 0)
        member->reduces = py.reducing == NULL ? 0 : PyDict_Contains(py.reducing, member->callee);
    if (member->reduces > 0 && (result = reduced_call(member->callee, args, count, names)) != NULL)
        return result;
    return PyErr_Occurred() ? NULL : PyObject_Vectorcall(member->otherwise, args, flagged, names);
}

/* `member_call` of ``x[index]`` and ``x[index] = value``: a loop counts with NumPy's integers as with Python's. */
static PyObject *
indexing_call(PyObject *self, PyObject *const *args, size_t flagged, PyObject *names)
{
    const Py_ssize_t count = PyVectorcall_NARGS(flagged);
    if (names != NULL || count < 2 || count > 3 || types.LazyNdarray == NULL || PyLong_CheckExact(args[1]))
        return member_call(self, args, flagged, names);
    PyObject *plain = index_of(args[1], as_plain_item), *const given[] = {args[0], plain, args[count - 1]};
    PyObject *result = plain == NULL ? NULL : member_call(self, given, count, NULL);
    Py_XDECREF(plain);
    return result;
}

/* -- NumPy's protocols: the functions that NumPy calls --------------------------------------------------------------- */

/* Whether what ``reduceat`` gives of an array is small, whichever the axis is: it has as many elements along that as there are indexes. */
static int
is_small_reduced(PyObject *given, PyObject *indexes, Py_ssize_t most)
{
    const Py_ssize_t count = PyArray_Check(indexes) ? PyArray_SIZE((PyArrayObject *)indexes)
        : PyList_CheckExact(indexes) || PyTuple_CheckExact(indexes) ? Py_SIZE(indexes) : -1;
    if (!PyArray_Check(given) || count < 0)
        return 0;
    PyArrayObject *array = (PyArrayObject *)given;
    Py_ssize_t least = PyArray_SIZE(array) | 1;
    for (int i = 0; i < PyArray_NDIM(array); i++)
        least = PyArray_DIM(array, i) < least ? PyArray_DIM(array, i) : least;
    return times(count, bytes_of(array) / (least > 0 ? least : 1)) <= most;
}

/* Whether a ufunc is one of those that multiply matrices. */
static inline int
is_product(PyObject *ufunc)
{
    return PyObject_TypeCheck(ufunc, &PyUFunc_Type) && ((PyUFuncObject *)ufunc)->core_enabled;
}

/* Whether ``ufunc.at(array, index, value)`` is one that NumPy is quick at, 1.5 nanoseconds for each position, or has few: others take it 12
(two indexes), 38 (rows) and 45 (another dtype). */
static int
is_quick_at(const Found *found, PyObject *const *arguments)
{
    PyArrayObject *array = (PyArrayObject *)arguments[0], *value = (PyArrayObject *)arguments[2];
    const int number = PyArray_TYPE(array), is_array = PyArray_Check(value);
    int quick = PyArray_NDIM(array) == 1 && PyArray_Check(arguments[1]) && PyArray_NDIM((PyArrayObject *)arguments[1]) == 1;
    quick &= is_array ? PyArray_TYPE(value) == number : PyFloat_CheckExact(value) ? number == NPY_DOUBLE : PyLong_CheckExact(value) && number == NPY_LONG;
    for (int i = 1; !quick && i < found->count; i++)
        if (bytes_of((PyArrayObject *)found->hosts[i]) > found->most / COSTLY)
            return 0;
    return 1;
}

/* A call of a ufunc or of one of its methods; NotImplemented: not for the host. */
static PyObject *
ufunc_on_host(PyObject *ufunc, PyObject *method, PyObject *const *inputs, Py_ssize_t count, PyObject *names)
{
    PyObject *arguments[MOST_ARGUMENTS + 1], *callee = NULL, *result = NULL, *written = NULL;
    Py_ssize_t all = count + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
    Found found;
    const int multiplies = is_product(ufunc);
    if (begin(&found, cost_of(ufunc), multiplies) < 0)
        return NULL;
    int plain = PyUnicode_Compare(method, text.__call__) == 0, outer = 0;
    const int puts = !plain && PyUnicode_Compare(method, text.at) == 0;
    if (count < 1 || all > MOST_ARGUMENTS || !PyObject_TypeCheck(ufunc, &PyUFunc_Type) || (puts && names != NULL))
        Py_RETURN_NOTIMPLEMENTED;
    outer = !plain && PyUnicode_Compare(method, text.outer) == 0;
    int masked = 0;
    for (Py_ssize_t i = count; i < all; i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i - count);
        if (PyUnicode_Compare(name, text.out) == 0 && (written = output_of_host(inputs[i])) == NULL)
            goto end;
        masked |= plain && PyUnicode_Compare(name, text.where) == 0;
    }
    if (masked && written == NULL)      /* NumPy took an ``out=None`` away, and would warn of it */
        Py_RETURN_NOTIMPLEMENTED;
    if (puts && ((arguments[1] = replaced_target(inputs[0], &found)) == NULL || (written = output_of_host(inputs[0])) == NULL))
        goto end;
    if (plain && !multiplies)
        allow_more(&found, inputs, count);
    for (Py_ssize_t i = puts; i < all; i++)
        if ((arguments[i + 1] = replaced(inputs[i], &found, 0)) == NULL)
            goto end;
    if (puts && count == 3 && !is_quick_at(&found, arguments + 1))
        goto end;
    if (multiplies && (count != 2 || !is_small_product(arguments[1], arguments[2], found.most)))
        goto end;
    if (count == 2 && ((plain && !multiplies && !is_small_together(arguments[1], arguments[2], found.most))
            || (outer && PyArray_Check(arguments[1]) && PyArray_Check(arguments[2])
                && times(PyArray_SIZE((PyArrayObject *)arguments[1]), PyArray_NBYTES((PyArrayObject *)arguments[2])) > found.most)))
        goto end;
    if (plain ? count != ((PyUFuncObject *)ufunc)->nin
            : PyUnicode_Compare(method, text.reduceat) == 0 && (count < 2 || !is_small_reduced(arguments[1], arguments[2], found.most)))
        goto end;
    callee = plain ? Py_NewRef(ufunc) : PyObject_GetAttr(ufunc, method);
    if (callee != NULL && (!counts_still(&found) || is_devices(&found) != 0)) {
        Py_DECREF(callee);
        goto end;
    }
    if (callee != NULL)
        result = lazily_on_host(written, callee, ufunc, arguments + 1, count, names, &found);
    Py_XDECREF(callee);
    let_go(&found);
    return result;
end:
    let_go(&found);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_NotImplemented);
}

/* ``ufunc(*inputs, out=x)`` and nothing more, where `updated` does that: a new reference to `x`. NULL, perhaps without an error: it is
for others. */
static PyObject *
put_out(PyObject *ufunc, PyObject *const *inputs, Py_ssize_t count, PyObject *names)
{
    PyObject *out = names != NULL && PyTuple_GET_SIZE(names) == 1 && PyUnicode_Compare(PyTuple_GET_ITEM(names, 0), text.out) == 0
        ? inputs[count] : NULL, *given = NULL;
    if (out == NULL || Py_TYPE(ufunc) != &PyUFunc_Type || !PyTuple_CheckExact(out) || PyTuple_GET_SIZE(out) != 1
            || Py_TYPE(PyTuple_GET_ITEM(out, 0)) != types.LazyNdarray || (given = PyTuple_New(count)) == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++)
        PyTuple_SET_ITEM(given, i, Py_NewRef(inputs[i]));
    PyObject *const asked[] = {ufunc, given, PyTuple_GET_ITEM(out, 0)};
    PyObject *result = updated(NULL, asked, 3);
    Py_DECREF(given);
    if (result == Py_None)
        Py_CLEAR(result);
    return result;
}

/* `__array_ufunc__(x, ufunc, method, *inputs, **kwargs)`. */
static PyObject *
array_ufunc_call(PyObject *self, PyObject *const *args, size_t flagged, PyObject *names)
{
    Py_ssize_t count = PyVectorcall_NARGS(flagged);
    if (count > 3 && small_bytes > 0 && types.LazyNdarray != NULL && PyUnicode_Check(args[2])) {
        const Py_ssize_t all = count - 3 + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
        for (int fetched = 0; ; ) {
            PyObject *result = ufunc_on_host(args[1], args[2], args + 3, count - 3, names);
            if (result != Py_NotImplemented)
                return result;
            Py_DECREF(result);
            if (!fetched && count == 6 && names == NULL && PyUnicode_Compare(args[2], text.at) == 0) {
                const int few = names_few(args[3], args[4]);
                if (few < 0 || (few && (fetched = note_assigned(args[3], args[4], args[5])) < 0))
                    return NULL;
                if (few && fetched)
                    continue;
                if (few)
                    break;
            }
            if (fetched || (fetched = note_run(args + 3, all, NULL, cost_of(args[1]), is_product(args[1]))) == 0)
                break;
            if (fetched < 0)
                return NULL;
        }
    }
    if (count > 3 && names != NULL && types.LazyNdarray != NULL && PyUnicode_Check(args[2]) && PyUnicode_Compare(args[2], text.__call__) == 0) {
        PyObject *result = put_out(args[1], args + 3, count - 3, names);
        if (result != NULL || PyErr_Occurred())
            return result;
    }
    if (count == 6 && names == NULL && types.LazyNdarray != NULL && PyUnicode_Check(args[2])
            && (args[1] == py.add || args[1] == py.maximum || args[1] == py.minimum) && PyUnicode_Compare(args[2], text.at) == 0) {
        const int done = rows_written(args[3], args[4], args[5], args[1]);
        if (done != 0)
            return done < 0 ? NULL : Py_NewRef(Py_None);
    }
    return PyObject_Vectorcall(((Member *)self)->otherwise, args, flagged, names);
}

/* Whether the Fourier transform of an array is small that may be given its length: of vectors it can be told here. */
static int
is_small_lengthened(const Found *found, PyObject *const *arguments, Py_ssize_t count)
{
    PyObject *array = found->hosts[0];
    Py_ssize_t length = -1;
    for (Py_ssize_t i = 1; i < count; i++)
        if (PyLong_CheckExact(arguments[i])) {
            Py_ssize_t n = PyLong_AsSsize_t(arguments[i]);
            PyErr_Clear();
            length = n > length ? n : length;
        }
    if (length >= 0 && PyArray_NDIM((PyArrayObject *)array) != 1)
        return 0;
    return times(PyArray_SIZE((PyArrayObject *)array) > length ? PyArray_SIZE((PyArrayObject *)array) : length, 16) <= found->most;
}

/* A call of a function; NotImplemented: not for the host. `callee`: what does it for ndarrays. `most`: arguments by position, -1 where
`out` may be given; `kind`: what makes its result large. */
static PyObject *
function_on_host(PyObject *func, PyObject *callee, PyObject *args, PyObject *kwargs, Py_ssize_t most, int kind)
{
    PyObject *arguments[MOST_ARGUMENTS + 1], *names = NULL, *result = NULL, *name, *value, *written = NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(args), all = count, place = 0;
    Found found;
    if (begin(&found, cost_of(func), kind & MULTIPLIES) < 0)
        return NULL;
    if (count + (kwargs == NULL ? 0 : PyDict_GET_SIZE(kwargs)) > MOST_ARGUMENTS || (most >= 0 && count > most))
        Py_RETURN_NOTIMPLEMENTED;
    for (Py_ssize_t i = 0; i < count; i++)
        if ((arguments[i + 1] = replaced(PyTuple_GET_ITEM(args, i), &found, 0)) == NULL)
            goto end;
    if (kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0) {
        if ((names = hidden(PyTuple_New(PyDict_GET_SIZE(kwargs)))) == NULL)
            goto end;
        while (PyDict_Next(kwargs, &place, &name, &value)) {
            PyTuple_SET_ITEM(names, all - count, Py_NewRef(name));
            if (most >= 0 && value != Py_None) {
                if (PyUnicode_Compare(name, text.overwrite_input) == 0
                        || (PyUnicode_Compare(name, text.out) == 0 && (written = output_of_host(value)) == NULL))
                    goto end;
            }
            if ((arguments[++all] = replaced(value, &found, 0)) == NULL)
                goto end;
        }
        shown(names);
    }
    int any = kind & MAKES;
    for (int i = 0; i < found.count; i++)
        any |= Py_TYPE(found.sources[i]) == types.LazyNdarray;
    if (!any)
        goto end;
    if ((kind & LENGTHENS) && !is_small_lengthened(&found, arguments + 1, all))
        goto end;
    for (int i = 1; (kind & (BROADCASTS | MULTIPLIES)) && i < found.count && i < 4; i++) {
        PyObject *pair[2] = {found.hosts[i - 1], found.hosts[i]};
        if (!(kind & MULTIPLIES ? is_small_product(pair[0], pair[1], found.most) : is_small_together(pair[0], pair[1], found.most)))
            goto end;
    }
    if (!counts_still(&found) || (!(kind & MAKES) && is_devices(&found) != 0))
        goto end;
    result = lazily_on_host(written, callee, func, arguments + 1, count, names, &found);
    Py_XDECREF(names);
    let_go(&found);
    return result;
end:
    Py_XDECREF(names);
    let_go(&found);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_NotImplemented);
}

/* The same of a function that the table knows. */
static PyObject *
known_on_host(PyObject *func, PyObject *known, PyObject *args, PyObject *kwargs)
{
    PyObject *callee, *result;
    int most, kind;
    if (!PyArg_ParseTuple(known, "Oii", &callee, &most, &kind))
        return NULL;
    Py_INCREF(known);
    result = function_on_host(func, callee, args, kwargs, most, kind);
    Py_DECREF(known);
    return result;
}

/* Whether the types of NumPy's protocol are LazyNdarray and nothing else. */
static int
is_ours_alone(PyObject *kinds)
{
    return PyTuple_CheckExact(kinds) && PyTuple_GET_SIZE(kinds) == 1 && PyTuple_GET_ITEM(kinds, 0) == (PyObject *)types.LazyNdarray;
}

static PyObject *sourced(PyObject *module, PyObject *const *given, Py_ssize_t nargs);

/* `__array_function__(x, func, types, args, kwargs)`. */
static PyObject *
array_function_call(PyObject *self, PyObject *const *args, size_t flagged, PyObject *names)
{
    if (PyVectorcall_NARGS(flagged) == 5 && names == NULL && small_bytes > 0 && PyTuple_Check(args[3]) && PyDict_Check(args[4])) {
        PyObject *known = Py_XNewRef(PyDict_GetItemWithError(py.on_host, args[1])), *result = NULL;
        if (known == NULL && !PyErr_Occurred())
            known = PyObject_CallOneArg(py.learned, args[1]);
        for (int fetched = 0; known != NULL && known != Py_False; ) {
            result = PyTuple_Check(known) ? known_on_host(args[1], known, args[3], args[4]) : Py_NewRef(Py_NotImplemented);
            if (result != Py_NotImplemented) {
                Py_DECREF(known);
                return result;
            }
            Py_CLEAR(result);
            const int multiplies = PyTuple_Check(known) && (PyLong_AsLong(PyTuple_GET_ITEM(known, 2)) & MULTIPLIES);
            if (fetched || (fetched = note_run(&PyTuple_GET_ITEM(args[3], 0), PyTuple_GET_SIZE(args[3]), args[4], cost_of(args[1]), multiplies)) <= 0)
                break;
            if (known == Py_True) {     /* it may be the host's by now */
                Py_DECREF(known);
                return PyObject_Vectorcall(((Member *)self)->otherwise, args, flagged, names);
            }
        }
        Py_XDECREF(known);
        if (PyErr_Occurred())
            return NULL;
    }
    if (PyVectorcall_NARGS(flagged) == 5 && names == NULL && types.LazyNdarray != NULL && PyTuple_CheckExact(args[3])
            && PyDict_CheckExact(args[4]) && is_ours_alone(args[2])) {
        PyObject *result = seen_by_function(args[1], args[3], args[4]);
        if (result == NULL && !PyErr_Occurred())
            result = reduced_function(args[1], args[3], args[4]);
        if (result == NULL && !PyErr_Occurred() && (args[1] == py.zeros_like || args[1] == py.ones_like || args[1] == py.full_like)) {
            PyObject *const given[] = {args[1], args[3], args[4]};
            if ((result = sourced(NULL, given, 3)) == Py_None)
                Py_CLEAR(result);
        }
        if (result != NULL || PyErr_Occurred())
            return result;
        result = called(args[1], args[3], args[4], 1);
        if (result != Py_NotImplemented)
            return result;
        Py_DECREF(result);
    }
    return PyObject_Vectorcall(((Member *)self)->otherwise, args, flagged, names);
}

/* -- the type of members --------------------------------------------------------------------------------------------- */

static void
member_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_CLEAR(((Member *)self)->callee);
    Py_CLEAR(((Member *)self)->otherwise);
    Py_CLEAR(((Member *)self)->ufunc);
    type->tp_free(self);
    Py_DECREF(type);
}

static int
member_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Member *)self)->callee);
    Py_VISIT(((Member *)self)->otherwise);
    Py_VISIT(((Member *)self)->ufunc);
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static PyObject *
member_bound(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(owner))
{
    return instance == NULL || instance == Py_None ? Py_NewRef(self) : PyMethod_New(self, instance);
}

/* Its name, its text and all else that can be asked of a function is that of the one in Python. */
static PyObject *
member_attribute(PyObject *self, PyObject *name)
{
    PyObject *otherwise = ((Member *)self)->otherwise;
    if (PyUnicode_Compare(name, text.__wrapped__) == 0)
        return Py_NewRef(otherwise);
    /* not PyObject_GetAttr, which finds what types have as well: `__name__` */
    int special = _PyType_Lookup(&PyBaseObject_Type, name) != NULL && PyUnicode_Compare(name, text.__doc__) != 0;
    if (special || PyUnicode_Compare(name, text.__get__) == 0 || PyUnicode_Compare(name, text.__call__) == 0)
        return PyObject_GenericGetAttr(self, name);
    return PyObject_GetAttr(otherwise, name);
}

static PyMemberDef member_offset[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Member, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot member_slots[] = {
    {Py_tp_dealloc, member_dealloc}, {Py_tp_traverse, member_traverse}, {Py_tp_descr_get, member_bound},
    {Py_tp_getattro, member_attribute}, {Py_tp_call, PyVectorcall_Call}, {Py_tp_members, member_offset}, {0, NULL},
};

static PyType_Spec member_spec = {
    "lazyarray._native.recording.Member", sizeof(Member), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR
        | Py_TPFLAGS_DISALLOW_INSTANTIATION, member_slots,
};

static PyTypeObject *member_type;

PyDoc_STRVAR(member_doc, "member(callee, otherwise, kind=0, /)\n--\n\n"
"A member of LazyNdarray: `callee` with ndarrays where all arrays are small and current on the host, else `otherwise`.\n\n"
"`callee`: \"ufunc\" and \"function\" are NumPy's protocols. `kind`: the sum of REFLECTED and so on.");

static PyObject *
member(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs < 2 || nargs > 3)
        return mistaken("member takes what is called on the host, what is otherwise, and a kind");
    Member *made = (Member *)member_type->tp_alloc(member_type, 0);
    if (made == NULL)
        return NULL;
    made->callee = Py_NewRef(args[0]);
    made->cost = made->reduces = -1;
    made->otherwise = Py_NewRef(args[1]);
    made->kind = nargs > 2 ? (int)PyLong_AsLong(args[2]) : 0;
    made->call = !PyUnicode_Check(args[0]) ? (made->kind & (INDEXES | ASSIGNS)) == 0 ? member_call : indexing_call
        : PyUnicode_CompareWithASCIIString(args[0], "ufunc") == 0 ? array_ufunc_call : array_function_call;
    return (PyObject *)made;
}

/* -- what Python asks ------------------------------------------------------------------------------------------------ */

PyDoc_STRVAR(on_host_doc, "on_host(x, any_size=False, /)\n--\n\n"
"The ndarray of a lazy array whose bytes are current on the host, or None. Of one that is not small: if `any_size`.");

static PyObject *
given_on_host(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs < 1 || nargs > 2)
        return mistaken("on_host takes an array, and whether it may have any size");
    PyObject *x = args[0], *host = types.LazyNdarray == NULL || Py_TYPE(x) != types.LazyNdarray || small_bytes == 0 ? NULL
        : on_host_up_to(x, nargs > 1 && args[1] == Py_True ? PY_SSIZE_T_MAX : small_bytes);
    return host == NULL ? PyErr_Occurred() ? NULL : Py_NewRef(Py_None) : Py_NewRef(host);
}

PyDoc_STRVAR(is_under_way_doc, "is_under_way()\n--\n\nWhether this thread is within a call on the host.");

static PyObject *
is_under_way(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing))
{
    return PyBool_FromLong(under_way > 0);
}

PyDoc_STRVAR(note_sent_doc, "note_sent(nbytes, /)\n--\n\n"
"An array that was made on the host is sent to the device: where small ones are sent again and again, the device computes more.");

static PyObject *
given_note_sent(PyObject *Py_UNUSED(module), PyObject *nbytes)
{
    const Py_ssize_t n = PyLong_AsSsize_t(nbytes);
    if (n == -1 && PyErr_Occurred())
        return NULL;
    if (n <= small_bytes)
        note_sent();
    Py_RETURN_NONE;
}

PyDoc_STRVAR(note_wait_doc, "note_wait()\n--\n\n"
"The host waits for the device: where it does so again and again, and computes little between, larger arrays count as small.");

static PyObject *
given_note_wait(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing))
{
    note_wait();
    Py_RETURN_NONE;
}

PyDoc_STRVAR(lighten_doc, "lighten(x, /)\n--\n\n"
"Let a small array that is about to be written be nothing but its ndarray again, if the host was to go on with it.");

static PyObject *
given_lighten(PyObject *Py_UNUSED(module), PyObject *x)
{
    if (run.credit > 0 && types.LazyNdarray != NULL && Py_TYPE(x) == types.LazyNdarray && lighten(x) < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(counted_doc, "counted()\n--\n\n"
"Count an operator of numbers of which the device alone has one. Whether there were many in a row, with no call on a large array between.");

static PyObject *
counted(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing))
{
    if (small_bytes == 0 || ++run.numbers <= run.enough)
        Py_RETURN_FALSE;
    run.numbers = 0;
    run.enough *= run.enough < MOST_NUMBERS ? 2 : 1;
    Py_RETURN_TRUE;
}

PyDoc_STRVAR(run_on_host_doc, "run_on_host(func, args, kwargs, entry=None, /)\n--\n\n"
"What a function gives on the host, if all arrays are small and current there; else NotImplemented.\n\n"
"`entry`: of the table `ON_HOST`. Without one it may write into an argument: who calls says so to its storage.");

static PyObject *
run_on_host(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs < 3 || nargs > 4 || !PyTuple_Check(args[1]) || !PyDict_Check(args[2]) || (nargs > 3 && !PyTuple_Check(args[3])))
        return mistaken("run_on_host takes a function, a tuple, a dict and an entry");
    if (nargs > 3 && small_bytes > 0)
        return known_on_host(args[0], args[3], args[1], args[2]);
    return small_bytes == 0 ? Py_NewRef(Py_NotImplemented) : function_on_host(args[0], args[0], args[1], args[2], -1, 0);
}

PyDoc_STRVAR(host_array_doc, "host_array(array, /)\n--\n\n"
"The lazy array of a small ndarray that nobody else holds, or None if it is not small, or not for the device.");

static PyObject *
host_array(PyObject *Py_UNUSED(module), PyObject *array)
{
    PyArrayObject *owner = PyArray_CheckExact(array) && small_bytes > 0 && types.LazyNdarray != NULL ? owner_of(array) : NULL;
    if (owner == NULL || !owns(owner) || PyArray_NBYTES(owner) > small_bytes || !is_holdable((PyArrayObject *)array))
        Py_RETURN_NONE;
    return light_array(array);
}

PyDoc_STRVAR(is_light_doc, "is_light(x, /)\n--\n\nWhether a lazy array has no storage yet that would have to know of writes.");

static PyObject *
given_is_light(PyObject *Py_UNUSED(module), PyObject *x)
{
    return PyBool_FromLong(types.LazyNdarray != NULL && Py_TYPE(x) == types.LazyNdarray && is_light(x));
}

/* The ndarray that a lazy array is nothing but, all of its memory, that nobody else refers to, neither a view of it nor an alias:
borrowed; NULL: it is another one. */
static PyArrayObject *
lone_array(PyObject *x)
{
    if (types.LazyNdarray == NULL || Py_TYPE(x) != types.LazyNdarray || got(x, X.storage) != Py_None)
        return NULL;
    PyObject *host = got(x, X.host), *home = got(x, X.home);
    if (!PyArray_CheckExact(host) || PyArray_BASE((PyArrayObject *)host) != NULL
            || !PyArray_CHKFLAGS((PyArrayObject *)host, NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEABLE)
            || (home != Py_None && (got(home, H.storage) != Py_None || Py_REFCNT(home) > 1)))
        return NULL;
    return Py_REFCNT(host) == 1 + (home != Py_None) ? (PyArrayObject *)host : NULL;
}

PyDoc_STRVAR(lone_doc, "lone(x, /)\n--\n\n"
"A copy of the ndarray that a lazy array is nothing but, if nobody else refers to that, neither a view of it nor an alias; else None.");

static PyObject *
lone(PyObject *Py_UNUSED(module), PyObject *x)
{
    PyArrayObject *host = lone_array(x);
    return host == NULL ? Py_NewRef(Py_None) : PyArray_NewCopy(host, NPY_KEEPORDER);
}

PyDoc_STRVAR(move_doc, "move(x, copy, storage, root, /)\n--\n\n"
"Give a lazy array a storage, with its device array, in the place of an ndarray that is still what `lone` gave, and alone. Whether that\n"
"was so: a signal handler or a finaliser may have written it, or keep it. No Python code runs between the look and the change.");

static PyObject *
move(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 4 || !PyArray_Check(args[1]))
        return mistaken("move takes a lazy array, an ndarray, a storage and a device array");
    PyObject *x = args[0], *before[2];
    PyArrayObject *host = lone_array(x), *copy = (PyArrayObject *)args[1];
    if (host == NULL || PyArray_NBYTES(host) != PyArray_NBYTES(copy)
            || memcmp(PyArray_DATA(host), PyArray_DATA(copy), PyArray_NBYTES(host)) != 0)
        Py_RETURN_FALSE;
    before[0] = AT(x, X.host);
    before[1] = AT(x, X.home);
    AT(x, X.host) = Py_NewRef(Py_None);
    AT(x, X.home) = Py_NewRef(Py_None);
    put(x, X.storage, args[2]);
    put(x, X.array, args[3]);
    put(x, X.meta, Py_None);
    Py_XDECREF(before[1]);      /* not before: what runs then finds all of it */
    Py_XDECREF(before[0]);
    Py_RETURN_TRUE;
}

PyDoc_STRVAR(home_doc, "home(x, /)\n--\n\nThe Home of a lazy array that has no storage yet, or None.");

static PyObject *
home(PyObject *Py_UNUSED(module), PyObject *x)
{
    PyObject *found = types.LazyNdarray == NULL || !PyObject_TypeCheck(x, types.LazyNdarray) ? Py_None : home_of_light(x);
    return Py_XNewRef(found);
}

PyDoc_STRVAR(small_doc, "small(nbytes=None, /)\n--\n\n"
"The most bytes of a small array, as they are now; or what was set before, if `nbytes` is given, which it becomes: with 0 no array is small.");

static PyObject *
small(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs == 0)
        return PyLong_FromSsize_t(small_bytes);
    const Py_ssize_t nbytes = PyLong_AsSsize_t(args[0]), before = small_set;
    if (nbytes < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "a number of bytes is at least 0");
        return NULL;
    }
    forget_runs();      /* what was learned of them was about another limit */
    small_bytes = small_set = nbytes;
    return PyLong_FromSsize_t(before);
}
