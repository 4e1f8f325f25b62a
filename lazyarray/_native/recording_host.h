/* Small arrays that are current on the host: NumPy computes there, at once, and what it gives stays there.

Such a lazy array is nothing but its ndarray (`_self_host`) at first. Its storage and its meta are made when somebody asks
for them (`handles.completed`), as one of bytes that the host alone has. Views of one memory share a Home, which has that
storage then. From then on the ndarray counts for as long as the storage says that all its bytes are current there. */

#define MOST_ARGUMENTS 10

/* What does more for each element than an addition is done with so many times fewer bytes than small arrays have at most, but for
what `dispatch/cheap_on_host.py` lists. */
#define COSTLY 8
/* A product of matrices takes so many multiplications in the time of an addition of arrays; and of a matrix so many times more bytes are
read in the time in which the device has got one product of it and gone on with that: on an H200's host ``A @ v``, with v's norm, took 7 us
with 0.1 MB, 17 with 0.5 and 22 with 1, and 65 on the device. */
#define PRODUCTS 16

/* What a call found in its arguments: lazy arrays and plain ndarrays, and the replacements that it made. `most`: the bytes that
the result may have; `given`: those of an argument. */
typedef struct { PyObject *sources[2 * MOST_ARGUMENTS], *hosts[2 * MOST_ARGUMENTS], *made[2 * MOST_ARGUMENTS]; int count, kept; Py_ssize_t most, given; } Found;

/* By what the most bytes of a function's arrays are divided: 1 for one as cheap as an addition; -1: an error. */
static inline int
cost_of(PyObject *callee)
{
    PyObject *cost = py.costs == NULL ? NULL : PyDict_GetItemWithError(py.costs, callee);
    return cost != NULL ? (int)PyLong_AsLong(cost) : PyErr_Occurred() ? -1 : COSTLY;
}

/* The bytes that an argument of a call may have. `cost`: what `cost_of` said. `multiplies`: it is a product of matrices. */
static inline Py_ssize_t
most_given(int cost, int multiplies)
{
    return (multiplies ? PRODUCTS * small_set : small_bytes) / (cost > 0 ? cost : 1);
}

/* Begin to look at the arguments of a call. */
static inline int
begin(Found *found, int cost, int multiplies)
{
    found->count = found->kept = 0;
    found->most = most_given(cost, 0);
    found->given = most_given(cost, multiplies);
    return cost < 0 ? -1 : 0;
}

/* What the host alone has would have to be sent first, and what a program makes of that mostly comes back: to the ufunc of such arrays so
many times more bytes are small. */
#define ALONE 3

static void
allow_more(Found *found, PyObject *const *args, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++)
        if ((Py_TYPE(args[i]) == types.LazyNdarray && storage_by_now(args[i]) != Py_None)
                || (Py_TYPE(args[i]) == types.LazyScalar && got(args[i], V.value) == Py_None))
            return;
    found->given = found->most = found->most < small_bytes / ALONE ? found->most * ALONE : small_bytes;
}

static void
let_go(Found *found)
{
    for (int i = 0; i < found->kept; i++)
        Py_DECREF(found->made[i]);
    for (int i = 0; i < found->count; i++) {
        Py_DECREF(found->sources[i]);
        Py_DECREF(found->hosts[i]);
    }
}

/* Bytes of an element, or of what is computed of it: of integers float64 may come, and masks stand beside numbers. */
static inline Py_ssize_t
element_bytes(PyArrayObject *array)
{
    Py_ssize_t itemsize = PyArray_ITEMSIZE(array);
    int number = PyArray_TYPE(array);
    return number == NPY_BOOL ? 4 : itemsize < 8 && number < NPY_FLOAT ? 8 : itemsize;
}

static inline Py_ssize_t
bytes_of(PyArrayObject *array)
{
    return PyArray_SIZE(array) * element_bytes(array);
}

/* The ndarray of a lazy array whose bytes are current on the host: borrowed; NULL if there is none, perhaps with an error.
`most`: how many bytes it may have, see `bytes_of`. */
static PyObject *
on_host_up_to(PyObject *x, Py_ssize_t most)
{
    PyObject *host = got(x, X.host), *storage = storage_by_now(x);
    if (storage != Py_None && (Py_TYPE(storage) != types.Storage || got(storage, S.host) == Py_None))
        return NULL;
    if (host == Py_None && storage != Py_None) {
        Py_INCREF(storage);
        PyObject *meta = meta_of_lazy(x);
        if (meta == NULL || (PyArray_Check(meta) && bytes_of((PyArrayObject *)meta) > most)) {
            Py_XDECREF(meta);
            Py_DECREF(storage);
            return NULL;
        }
        PyObject *seen = PyObject_CallOneArg(py.seen_on_host, x);
        /* else another thread has changed `x`, or where its bytes are */
        int still = seen != NULL && seen != Py_None && got(storage, S.host) != Py_None && storage_by_now(x) == storage
            && got(x, X.meta) == meta;
        Py_DECREF(storage);
        Py_DECREF(meta);
        if (still)
            put(x, X.host, seen);
        Py_XDECREF(seen);
        if (!still)
            return NULL;
        host = got(x, X.host);
    }
    return host == Py_None || bytes_of((PyArrayObject *)host) > most ? NULL : host;
}

/* The same of an array of which a small part is to be written: of as many bytes as the host takes. */
static PyObject *
on_host_to_write(PyObject *x)
{
    PyObject *host = on_host_up_to(x, PY_SSIZE_T_MAX);
    return host == NULL || PyArray_NBYTES((PyArrayObject *)host) > limits.GIVEN ? NULL : host;
}

/* The same of a small array. */
static inline PyObject *
on_host(PyObject *x)
{
    return on_host_up_to(x, small_bytes);
}

/* The ndarray of a lazy array that no device can have, of strings or dates, which its meta is: borrowed; NULL: it is another one, or has
more bytes. */
static PyObject *
of_host_alone(PyObject *x, Py_ssize_t most)
{
    PyObject *storage = storage_by_now(x), *host = Py_TYPE(storage) == types.HostStorage ? got(x, X.meta) : Py_None;
    return PyArray_CheckExact(host) && bytes_of((PyArrayObject *)host) <= most ? host : NULL;
}

/* The same of one whose elements are taken or assigned. What holds objects is for Python: arrays among them are not ours. */
static PyObject *
of_host_alone_without_objects(PyObject *x)
{
    PyObject *host = of_host_alone(x, PY_SSIZE_T_MAX);
    return host == NULL || PyDataType_REFCHK(PyArray_DESCR((PyArrayObject *)host)) ? NULL : host;
}

/* Whether no storage knows of the bytes: they may be written without telling anybody. */
static inline int
is_light(PyObject *x)
{
    return storage_by_now(x) == Py_None;
}

/* Whether an ndarray's memory is its own, to be written: what has no owner among ndarrays is copied. One that is found to be
read-only later is so for the time of a call alone, see `handles.completed`. */
static inline int
owns(PyArrayObject *array)
{
    return PyArray_BASE(array) == NULL && PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEABLE);
}

/* Whether what was found is what counts still: Python code may have run since, and other threads. */
static int
counts_still(const Found *found)
{
    for (int i = 0; i < found->count; i++) {
        PyObject *x = found->sources[i], *storage;
        if (Py_TYPE(x) != types.LazyNdarray)
            continue;
        storage = storage_by_now(x);
        if (Py_TYPE(storage) == types.HostStorage && got(x, X.meta) == found->hosts[i])
            continue;
        if (got(x, X.host) != found->hosts[i]
                || (storage != Py_None && (Py_TYPE(storage) != types.Storage || got(storage, S.host) == Py_None)))
            return 0;
    }
    return 1;
}

/* -- arguments --------------------------------------------------------------------------------------------------- */

/* `host`: the ndarray of it. Both are held: another thread may take them away from the argument, and that from a list. */
static int
note_source(Found *found, PyObject *x, PyObject *host)
{
    if (found->count == 2 * MOST_ARGUMENTS)
        return 0;
    found->hosts[found->count] = Py_NewRef(host);
    found->sources[found->count++] = Py_NewRef(x);
    return 1;
}

/* What NumPy gets in place of an argument: borrowed, kept by `found` if it is new. NULL: this call is not for the host,
or there is an error. */
static PyObject *
replaced(PyObject *given, Found *found, int depth)
{
    PyTypeObject *type = Py_TYPE(given);
    if (type == types.LazyNdarray) {
        PyObject *host = of_host_alone(given, small_bytes);     /* what it costs does not matter: the device can't have it */
        if (host == NULL)
            host = on_host_up_to(given, found->given);
        return host != NULL && note_source(found, given, host) ? host : NULL;
    }
    if (type == &PyFloat_Type || type == &PyLong_Type || given == Py_None || type == &PyBool_Type || type == &PyUnicode_Type
            || type == &PyComplex_Type || type == &PySlice_Type || type == &PyType_Type || given == Py_Ellipsis
            || type == &PyBytes_Type || PyArray_DescrCheck(given) || given == py.no_value)
        return given;
    if (type == types.LazyScalar) {
        PyObject *value = got(given, V.value);
        if (value == Py_None || found->kept == 2 * MOST_ARGUMENTS)
            return NULL;
        return found->made[found->kept++] = Py_NewRef(value);       /* two threads may both fetch it */
    }
    if (PyArray_CheckExact(given))
        return bytes_of((PyArrayObject *)given) <= found->given && note_source(found, given, given) ? given : NULL;
    if (PyArray_CheckScalar(given) && PyObject_TypeCheck(given, types.generic))
        return given;
    int is_tuple = type == &PyTuple_Type;
    if ((!is_tuple && type != &PyList_Type) || depth > 3)
        return NULL;
    PyObject *copy = NULL;
    Py_ssize_t length = Py_SIZE(given);
    if (length > 4096)
        return NULL;
    for (Py_ssize_t i = 0; i < Py_SIZE(given) && i < length; i++) {
        PyObject *item = is_tuple ? PyTuple_GET_ITEM(given, i) : PyList_GET_ITEM(given, i), *other;
        if (PyFloat_CheckExact(item) || PyLong_CheckExact(item))
            continue;
        Py_INCREF(item);        /* of a list, from which another thread may take it */
        other = Py_XNewRef(replaced(item, found, depth + 1));
        Py_DECREF(item);
        if (other == item) {
            Py_DECREF(other);
            continue;
        }
        if (other == NULL || found->kept == 2 * MOST_ARGUMENTS) {
            Py_XDECREF(other);
            Py_XDECREF(copy);
            return NULL;
        }
        if (copy == NULL && (copy = is_tuple ? PyTuple_GetSlice(given, 0, length) : PyList_GetSlice(given, 0, length)) == NULL) {
            Py_DECREF(other);
            return NULL;
        }
        if (is_tuple && copy == given) {    /* a slice of all of a tuple is the tuple itself */
            Py_DECREF(copy);
            if ((copy = PyTuple_New(length)) == NULL) {
                Py_DECREF(other);
                return NULL;
            }
            for (Py_ssize_t k = 0; k < length; k++)
                PyTuple_SET_ITEM(copy, k, Py_NewRef(PyTuple_GET_ITEM(given, k)));
        }
        if (is_tuple) {
            PyObject *before = PyTuple_GET_ITEM(copy, i);
            PyTuple_SET_ITEM(copy, i, other);
            Py_DECREF(before);
        }
        else if (PyList_SetItem(copy, i, other) < 0) {
            PyErr_Clear();      /* another thread has shortened the list: for Python */
            Py_DECREF(copy);
            return NULL;
        }
    }
    if (copy == NULL)
        return given;
    if (found->kept == 2 * MOST_ARGUMENTS) {
        Py_DECREF(copy);
        return NULL;
    }
    return found->made[found->kept++] = copy;
}

/* -- results ----------------------------------------------------------------------------------------------------- */

static PyObject *
light_array(PyObject *host)
{
    PyObject *x = types.LazyNdarray->tp_alloc(types.LazyNdarray, 0);
    if (x != NULL) {
        AT(x, X.host) = Py_NewRef(host);
        AT(x, X.array) = Py_NewRef(Py_None);
        AT(x, X.base) = Py_NewRef(Py_None);
        AT(x, X.leaf) = Py_NewRef(Py_None);
    }
    return x;
}

/* What a lazy array shares with its views: borrowed. None: it has a storage by now, or is being made. */
static PyObject *
home_of_light(PyObject *x)
{
    PyObject *home = got(x, X.home), *host = got(x, X.host);
    if (home != Py_None || host == Py_None || got(x, X.storage) != Py_None)
        return home;
    if ((home = types.Home->tp_alloc(types.Home, 0)) == NULL)
        return NULL;
    if (got(x, X.home) == Py_None && got(x, X.storage) == Py_None) {       /* as before: finalisers may have run */
        put(home, H.array, (PyObject *)owner_of(host));
        put(home, H.storage, Py_None);
        put(x, X.home, home);
    }
    Py_DECREF(home);
    return got(x, X.home);
}

/* The meta of a view of an ndarray, which is that of a lazy array: as `handles.completed` makes it. */
static PyObject *
meta_of_view(PyObject *x, PyArrayObject *view)
{
    PyObject *meta = AT(x, X.meta), *whole = got(x, X.host);
    if (meta == NULL || !PyArray_Check(meta) || !PyArray_CheckExact(whole) || PyArray_SIZE(view) == 0 || PyArray_BASE(view) == NULL)
        return NULL;
    char *data = PyArray_BYTES((PyArrayObject *)meta) + (PyArray_BYTES(view) - PyArray_BYTES((PyArrayObject *)whole));
    Py_INCREF(PyArray_DESCR(view));     /* given away */
    PyObject *made = PyArray_NewFromDescr(types.Meta, PyArray_DESCR(view), PyArray_NDIM(view), PyArray_DIMS(view), PyArray_STRIDES(view),
                                          data, PyArray_ISWRITEABLE(view) ? NPY_ARRAY_WRITEABLE : 0, NULL);
    if (made != NULL && PyArray_SetBaseObject((PyArrayObject *)made, Py_NewRef(py.meta_memory)) < 0)
        Py_CLEAR(made);
    return made;
}

/* The view of a lazy array that an ndarray is. */
static PyObject *
light_view(PyObject *x, PyObject *host)
{
    PyObject *view = light_array(host), *storage, *home = NULL, *base;      /* made first: finalisers may run */
    if (view == NULL)
        return NULL;
    if (got(x, X.storage) == Py_None && (home = home_of_light(x)) == NULL) {
        Py_DECREF(view);
        return NULL;
    }
    storage = got(x, X.storage);
    base = got(x, X.base);
    if (storage != Py_None) {
        put(view, X.storage, storage);
        PyObject *meta = meta_of_view(x, (PyArrayObject *)host);
        if (meta != NULL)
            put(view, X.meta, meta);
        Py_XDECREF(meta);
    }
    else
        put(view, X.home, home);
    put(view, X.base, base == Py_None ? x : base);
    if (PyErr_Occurred())
        Py_CLEAR(view);
    return view;
}

/* The view of a lazy array that no device can have that an ndarray is. */
static PyObject *
view_of_host_alone(PyObject *x, PyObject *host)
{
    PyObject *base = got(x, X.base), *storage = Py_NewRef(storage_by_now(x)), *given = Py_NewRef(base == Py_None ? x : base);
    PyObject *view = made_array(storage, host, Py_None, given);
    Py_DECREF(given);
    Py_DECREF(storage);
    return view;
}

/* What NumPy gave, an array or a scalar, as the program gets it; `result` is given away. An array in the memory of an
argument is a view of that. */
static PyObject *
one_given_back(PyObject *result, const Found *found)
{
    PyObject *lazy;
    if (!PyArray_CheckExact(result))
        return result;
    PyArrayObject *owner = owner_of(result);
    for (int i = 0; i < found->count; i++) {
        PyObject *x = found->sources[i];
        if (result == found->hosts[i]) {
            Py_DECREF(result);
            return Py_NewRef(x);
        }
    }
    for (int i = 0; i < found->count; i++) {
        PyObject *x = found->sources[i];
        int plain = PyArray_CheckExact(x);
        PyObject *host = found->hosts[i];
        if (host != Py_None && owner == owner_of(host)) {
            if (plain)
                return result;
            lazy = Py_TYPE(storage_by_now(x)) == types.HostStorage ? view_of_host_alone(x, result) : light_view(x, result);
            Py_DECREF(result);
            return lazy;
        }
    }
    if (!owns(owner) || !is_holdable((PyArrayObject *)result) || PyArray_NBYTES(owner) > small_bytes)
        lazy = PyObject_CallOneArg(py.host_result, result);
    else if (owner == (PyArrayObject *)result)
        lazy = light_array(result);
    else {      /* a view of an array that NumPy made in between */
        PyObject *base = light_array((PyObject *)owner);
        lazy = base == NULL ? NULL : light_view(base, result);
        Py_XDECREF(base);
    }
    Py_DECREF(result);
    return lazy;
}

static PyObject *
given_back(PyObject *result, Found *found)
{
    int is_tuple = PyTuple_CheckExact(result);
    if (!is_tuple && !PyList_CheckExact(result)) {
        if (PyTuple_Check(result)) {        /* with names */
            PyObject *items = PySequence_GetSlice(result, 0, Py_SIZE(result)), *lazy = NULL;
            if (items != NULL && PyTuple_CheckExact(items))
                items = given_back(items, found);
            if (items != NULL)
                lazy = PyObject_CallFunctionObjArgs(py.given_back, result, items, NULL);
            Py_XDECREF(items);
            Py_DECREF(result);
            return lazy;
        }
        return one_given_back(result, found);
    }
    Py_ssize_t length = Py_SIZE(result);
    PyObject *lazy = hidden(is_tuple ? PyTuple_New(length) : PyList_New(length));
    for (Py_ssize_t i = 0; lazy != NULL && i < length; i++) {
        PyObject *item = Py_NewRef(is_tuple ? PyTuple_GET_ITEM(result, i) : PyList_GET_ITEM(result, i));
        item = PyTuple_Check(item) || PyList_Check(item) ? given_back(item, found) : one_given_back(item, found);
        if (item == NULL)
            Py_CLEAR(lazy);
        else if (is_tuple)
            PyTuple_SET_ITEM(lazy, i, item);
        else
            PyList_SET_ITEM(lazy, i, item);
        if (item != NULL && Py_TYPE(item) == types.LazyNdarray)
            note_source(found, item, got(item, X.host));       /* the next may lie in the same memory */
    }
    Py_DECREF(result);
    return shown(lazy);
}

/* -- how large a result is at most --------------------------------------------------------------------------------- */

static inline Py_ssize_t
times(Py_ssize_t a, Py_ssize_t b)
{
    return b != 0 && a > PY_SSIZE_T_MAX / b ? PY_SSIZE_T_MAX : a * b;
}

/* Whether the broadcast of two arrays is small. */
static int
is_small_together(PyObject *a, PyObject *b, Py_ssize_t most)
{
    if (!PyArray_Check(a) || !PyArray_Check(b))
        return 1;
    PyArrayObject *one = (PyArrayObject *)a, *two = (PyArrayObject *)b;
    int m = PyArray_NDIM(one), n = PyArray_NDIM(two);
    if (m == 0 || n == 0 || (m == n && PyArray_CompareLists(PyArray_DIMS(one), PyArray_DIMS(two), n)))
        return 1;
    Py_ssize_t size = element_bytes(one) > element_bytes(two) ? element_bytes(one) : element_bytes(two);
    for (int i = 1; i <= m || i <= n; i++) {
        npy_intp k = i <= m ? PyArray_DIM(one, m - i) : 1, l = i <= n ? PyArray_DIM(two, n - i) : 1;
        size = times(size, k > l ? k : l);
    }
    return size <= most;
}

/* Whether a product of matrices is small, and takes few multiplications. */
static int
is_small_product(PyObject *a, PyObject *b, Py_ssize_t most)
{
    if (!PyArray_Check(a) || !PyArray_Check(b))
        return 1;
    PyArrayObject *one = (PyArrayObject *)a, *two = (PyArrayObject *)b;
    int m = PyArray_NDIM(one), n = PyArray_NDIM(two);
    npy_intp inner = m ? PyArray_DIM(one, m - 1) : 1;
    if (m > 1 && n > 1) {       /* one product for each matrix of a stack */
        Py_ssize_t size = times(times(PyArray_DIM(one, m - 2), PyArray_DIM(two, n - 1)), element_bytes(one));
        for (int i = 3; i <= m || i <= n; i++) {
            npy_intp k = i <= m ? PyArray_DIM(one, m - i) : 1, l = i <= n ? PyArray_DIM(two, n - i) : 1;
            size = times(size, k > l ? k : l);
        }
        return size <= most && times(size, inner) / PRODUCTS <= most;
    }
    Py_ssize_t size = inner == 0 ? 0 : times(times(PyArray_SIZE(one) / inner, PyArray_SIZE(two) / inner), element_bytes(one));
    return size <= most && times(size, inner) / PRODUCTS <= most;
}

/* Whether what an index reads is small: each array of whole numbers gives as many elements as it has. */
static int
is_small_part(PyObject *host, PyObject *index, Py_ssize_t most)
{
    PyArrayObject *array = (PyArrayObject *)host;
    if (PyArray_NDIM(array) == 0)
        return 1;
    if (!PyArray_Check(index) && !PyTuple_CheckExact(index))
        return !PyList_CheckExact(index) || PyArray_NDIM(array) == 1
            || times(PyList_GET_SIZE(index), PyArray_NBYTES(array) / (PyArray_DIM(array, 0) | 1)) <= most;
    Py_ssize_t count = PyTuple_CheckExact(index) ? PyTuple_GET_SIZE(index) : 1, size = element_bytes(array), read = 1;
    int axis = 0, taken = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_CheckExact(index) ? PyTuple_GET_ITEM(index, i) : index;
        int is_array = PyArray_Check(item), is_mask = is_array && PyArray_TYPE((PyArrayObject *)item) == NPY_BOOL;
        taken += item == Py_None || item == Py_Ellipsis ? 0 : is_mask ? PyArray_NDIM((PyArrayObject *)item) : 1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_CheckExact(index) ? PyTuple_GET_ITEM(index, i) : index;
        int is_array = PyArray_Check(item), axes = 1, whole = PySlice_Check(item);
        if (item == Py_None)
            continue;
        if (item == Py_Ellipsis)
            axes = PyArray_NDIM(array) - taken, taken = PyArray_NDIM(array), whole = 1;
        else if (is_array && PyArray_TYPE((PyArrayObject *)item) == NPY_BOOL)
            axes = PyArray_NDIM((PyArrayObject *)item), whole = 1;
        else if (is_array || PyList_CheckExact(item)) {
            Py_ssize_t length = is_array ? PyArray_SIZE((PyArrayObject *)item) : PyList_GET_SIZE(item);
            read = read > length ? read : length;
        }
        for (; axes > 0; axes--, axis++)
            if (whole && axis < PyArray_NDIM(array))
                size = times(size, PyArray_DIM(array, axis));
    }
    for (; axis < PyArray_NDIM(array); axis++)
        size = times(size, PyArray_DIM(array, axis));
    return times(size, read) <= most;
}
