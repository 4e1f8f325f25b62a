/* What `_native/recording.c` knows of the Python modules, each thing by its name there: `graph/record/ufunc.py` hands over
   classes, objects and limits; where the slots of the classes are is asked of these. */
#include "address.h"
#include "slots.h"

typedef PyTypeObject *Type;
typedef PyObject *Object;

#define TYPES LazyNdarray, LazyScalar, Storage, Leaf, Node, Rule, Step, Known, generic, Home, HostStorage, Meta, Ranges, Mirror
#define OBJECTS errors, tells_of_errors, scopes, options, partners, devices, sources, rules, known, \
    meta_memory, programs, general, ready, ready_array, along, compiled, note_large, cut, new_program, \
    unfused, joined, reformed, seen_on_host, wrote_on_host, written, promoted, host_result, given_back, trace, listeners, begin_on_host, \
    end_on_host, on_host, learned, costs, no_value, changing, device_of, meta_of, brought, plain, note_many, \
    refused, entries, entry_of, after, given, weak, loops, of_new_memory, device_operand, reductions, reducing, reduction_of, note_greatest, norm, \
    direct, operators, powers, power, overlap, seeing, all_ended, bounds_of, with_bounds, order_of_rows, note_range, note_computed, keep_range, range_of, cast, casts, takes, take_of, getitem, uploaded, fetch_taken, fetch_run, give_to_host, threads_started, own_threads, arange, empty, zeros, full, full_like, zeros_like, ones_like, add, maximum, minimum, addend
#define LIMITS MOST_STEPS, MOST_READERS, LONG, LONGEST, SMALL, LARGE, LARGE_RESULT, ORIGIN, WIDE, TAKEN, ON_BOTH, GIVEN, GIVEN_EACH
#define TEXTS defer_from, default_options, view, stream, shape, size, dtype, compute, order, kernel, value, \
    flat, strided, table, nbytes, _nbytes, strides, several, spread, read_late, transpose, usable, _current, lazy, _process, out, at, outer, reduceat, overwrite_input, where, \
    __call__, __get__, __doc__, __wrapped__, acquire, ranges, mirror, device_only, joined, lock, _lock, reads, writes, written, \
    device_view, assign, failed, data, ptr, _self_storage, _self_meta, launch, prepare, join_all, _c_contiguous, _f_contiguous, ndim, claim, xp, array_type, type, refusal, compacts, _block, block, axis, keepdims, has_own_memory, facts, bounds, distinct, takings, looked, derived, asked, take_at, put_at, ufunc_at, numbered, positions, are_apart, small_on_host, check_indices, taken, astype, reshape, fetched, host_dirty, sending, incoming

static struct { Type TYPES; } types;
static struct { Object OBJECTS; } py;
static struct { Py_ssize_t LIMITS; } limits;
static struct { Object TEXTS; } text;

/* Of LazyNdarray and LazyScalar, which have names of their own for all. */
#define X_SLOTS storage, meta, array, base, leaf, host, home
#define V_SLOTS storage, array, value, meta, base
/* Of Storage, Leaf, Node, Rule, Known and Step. */
#define S_SLOTS device, root, stream, loans, foreign, clean, pending, readers, root_view, host, used
#define L_SLOTS array, storage, mode, host, shape, fortran, size, dtype, steps, large
#define N_SLOTS device, step, operands, shape, fortran, steps, large, strided, size, dtype, storage, readers, array, stream, \
    place, passed, described, bounds
#define R_SLOTS step, casts, scalars, choose, itemsize, program, kernel, launch
#define K_SLOTS rule, modes, strided, shape, fortran, order, back, last, steps, any_strided, form
#define P_SLOTS output
#define H_SLOTS array, storage
#define B_SLOTS start, stop, _starts    /* of Ranges */
#define M_SLOTS lent, _lends

static struct { Py_ssize_t X_SLOTS; } X;
static struct { Py_ssize_t V_SLOTS; } V;
static struct { Py_ssize_t S_SLOTS; } S;
static struct { Py_ssize_t L_SLOTS; } L;
static struct { Py_ssize_t N_SLOTS; } N;
static struct { Py_ssize_t R_SLOTS; } R;
static struct { Py_ssize_t K_SLOTS; } K;
static struct { Py_ssize_t P_SLOTS; } P;
static struct { Py_ssize_t H_SLOTS; } H;
static struct { Py_ssize_t B_SLOTS; } B;
static struct { Py_ssize_t M_SLOTS; } M;

static PyObject *no_arguments, *zero;

/* What a storage is stamped with when it is used: a clock, and what it goes on by. */
static PyObject *now, *unit;
static int forked = 0;

/* The bytes up to which arrays are small ones, which may stay on the host, 0: none are; and what was set, which is less while a program
waits for the device at each step, see `note_work`. */
static Py_ssize_t small_bytes = 0, small_set = 0;

#define LISTED(...) #__VA_ARGS__
#define NAMES(list) LISTED(list)    /* "one, two" */

/* The next of "one, two"; 0 after the last one. */
static int
next_name(const char **names, char *name)
{
    size_t length = strcspn(*names, ",");
    memcpy(name, *names, length);
    name[length] = 0;
    *names += length + strspn(*names + length, ", ");
    return length > 0;
}

static int
find_slots(Py_ssize_t *where, PyTypeObject *type, const char *prefix, const char *names)
{
    char name[64], whole[80];
    while (next_name(&names, name)) {
        PyOS_snprintf(whole, sizeof whole, "%s%s", prefix, name);
        if ((*where++ = offset_of(type, whole)) < 0)
            return -1;
    }
    return 0;
}

/* What is given by these names, borrowed from `given` into `where`. */
static int
find_objects(PyObject **where, PyObject *given, const char *names)
{
    char name[64];
    while (next_name(&names, name))
        if ((*where++ = Py_XNewRef(PyDict_GetItemString(given, name))) == NULL) {
            PyErr_Format(PyExc_TypeError, "bind was not told %s", name);
            return -1;
        }
    return 0;
}

PyDoc_STRVAR(bind_doc, "bind(names, /)\n--\n\n"
"Tell the module the classes, functions and limits of the Python modules (called once, when all are there).");

static PyObject *
bind(PyObject *Py_UNUSED(module), PyObject *given)
{
    PyObject *numbers[sizeof limits / sizeof(Py_ssize_t)];
    Type *found = (Type *)&types;
    if (!PyDict_Check(given))
        return mistaken("bind takes a dict");
    if (find_objects((PyObject **)&types, given, NAMES(TYPES)) < 0 || find_objects((PyObject **)&py, given, NAMES(OBJECTS)) < 0
            || find_objects(numbers, given, NAMES(LIMITS)) < 0)
        return NULL;
    for (size_t i = 0; i < sizeof types / sizeof(Type); i++)
        if (!PyType_Check((PyObject *)found[i]))
            return mistaken("bind takes classes by the names of classes");
    for (size_t i = 0; i < COUNT(numbers); i++)
        if ((((Py_ssize_t *)&limits)[i] = PyLong_AsSsize_t(numbers[i])) < 0)
            return NULL;
    scopes = py.scopes;
    options_names = py.options;
    text_default = text.default_options;
    if (find_slots((Py_ssize_t *)&X, types.LazyNdarray, "_self_", NAMES(X_SLOTS)) < 0
            || find_slots((Py_ssize_t *)&V, types.LazyScalar, "_self_", NAMES(V_SLOTS)) < 0
            || find_slots((Py_ssize_t *)&S, types.Storage, "", NAMES(S_SLOTS)) < 0
            || find_slots((Py_ssize_t *)&L, types.Leaf, "", NAMES(L_SLOTS)) < 0
            || find_slots((Py_ssize_t *)&N, types.Node, "", NAMES(N_SLOTS)) < 0
            || find_slots((Py_ssize_t *)&R, types.Rule, "", NAMES(R_SLOTS)) < 0
            || find_slots((Py_ssize_t *)&K, types.Known, "", NAMES(K_SLOTS)) < 0
            || find_slots((Py_ssize_t *)&P, types.Step, "", NAMES(P_SLOTS)) < 0
            || find_slots((Py_ssize_t *)&H, types.Home, "", NAMES(H_SLOTS)) < 0
            || find_slots((Py_ssize_t *)&B, types.Ranges, "", NAMES(B_SLOTS)) < 0
            || find_slots((Py_ssize_t *)&M, types.Mirror, "", NAMES(M_SLOTS)) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* A setting in force here: a new reference. */
static PyObject *
option_here(PyObject *name)
{
    PyObject *options = options_here(), *value = options == NULL ? NULL : PyObject_GetAttr(options, name);
    Py_XDECREF(options);
    return value;
}

/* A method without arguments, for what it does; -1: an error. */
static int
done(PyObject *object, PyObject *name)
{
    return told(PyObject_CallMethodNoArgs(object, name));
}

/* Whether an attribute is this object; -1: an error. */
static int
is_set_to(PyObject *object, PyObject *name, PyObject *value)
{
    return is_given(PyObject_GetAttr(object, name), value);
}

/* What a weak reference is to: a new reference; NULL if it has gone. */
static PyObject *
referent(PyObject *ref)
{
    PyObject *there = NULL;
#if PY_VERSION_HEX >= 0x030D0000
    if (PyWeakref_GetRef(ref, &there) < 0)
        PyErr_Clear();
#else
    there = PyWeakref_GetObject(ref);
    there = there == NULL || there == Py_None ? NULL : Py_NewRef(there);
#endif
    return there;
}
