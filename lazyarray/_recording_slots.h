/* What `_recording.c` is told: the classes, where their slots are, and the names of the Python modules. */
#include "_slots.h"

/* Where the slots are: of LazyNdarray, Storage, Leaf, Node, Rule, Known, Step and Order. */
static struct { Py_ssize_t storage, outline, array, base, leaf; } X;
static struct { Py_ssize_t device, root, stream, loans, foreign, quiet, pending, readers, root_view; } S;
static struct { Py_ssize_t array, storage, mode, shape, fortran, size, dtype, steps, large, template; } L;
static struct {
    Py_ssize_t device, step, operands, shape, fortran, steps, large, strided, size, dtype, storage, readers, array, stream,
        place, passed, template, rule;
} N;
static struct { Py_ssize_t step, casts, scalars, choose, itemsize, alone, program, kernel, launch; } R;
static struct { Py_ssize_t rule, modes, shape, fortran, template, size, order, nbytes, any_strided; } K;
static struct { Py_ssize_t scalar, output, indexed; } P;    /* of Step */
static struct { Py_ssize_t nodes, sizes, look_at; } B;     /* of Kept */
static struct { Py_ssize_t codes, numbers, modes, arguments, sources, form; } O;
static const Py_ssize_t *const order_slots[] = {&O.codes, &O.numbers, &O.modes, &O.arguments, &O.sources, &O.form};

static PyTypeObject *array_type, *storage_type, *leaf_type, *node_type, *rule_type, *step_type, *order_type, *known_type,
    *kept_type;
static PyTypeObject *generic_type, *ufunc_type, *places_type;
static PyObject *errors, *usual_errors, *tells_of_errors, *ignoring;
static PyObject *rules, *waiting_names, *partners, *programs;
static PyObject *general, *planned, *ready, *ready_array, *at_once, *known, *template_of, *note_large, *kept, *prune,
    *look_after, *new_program, *unfused, *reformed;
static PyObject *templates, *make_outline, *counts, *devices_names;
static PyObject *placement_names, *sooner, *host_functions, *host_learn, *host_places, *host_filled, *host_broadcast,
    *host_own, *host_value, *host_seen, *graph_lock;
static PyObject *text_defer_from, *text_view, *text_young, *text_watcher, *text_limit, *text_append,
    *text_stream, *text_shape, *text_size, *text_dtype, *text_flags, *text_c_contiguous, *text_f_contiguous, *text_nbytes,
    *text_strides, *text_count, *text_compute, *text_join, *text_kernel, *text_learns, *text_value, *text_flat,
    *text_strided, *text_read_late, *text_itemsize, *text_costs,
    *text_turned, *text_reshape, *text_usable, *text_current, *text_lazy, *text_setflags;
static PyObject *no_arguments, *zero;
static long most_steps, most_readers, most_alone, most_at_once, most_alone_long;
static Py_ssize_t long_size, longest, large_bytes, large_result;
static int forked = 0;

#define ASKED 8     /* calls after which it is asked again whether there is a kernel */

#define SLOT(where, type, name, text) \
    if ((where.name = offset_of((PyTypeObject *)type, text)) < 0) return NULL
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
    TYPE(order_type, "Order");
    TYPE(known_type, "Known");
    TYPE(kept_type, "Kept");
    TYPE(generic_type, "generic");
    TYPE(ufunc_type, "ufunc");
    TYPE(places_type, "Places");
    NAME(errors, "errors");
    NAME(usual_errors, "usual_errors");
    NAME(tells_of_errors, "tells_of_errors");
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
    NAME(kept, "kept");
    NAME(prune, "prune");
    NAME(look_after, "look_after");
    NAME(programs, "programs");
    NAME(new_program, "new_program");
    NAME(unfused, "unfused");
    NAME(reformed, "reformed");
    NAME(known, "known");
    NAME(templates, "templates");
    NAME(make_outline, "outline_of");
    NAME(counts, "counts");
    NAME(devices_names, "devices");
    NAME(ignoring, "ignoring");
    NAME(placement_names, "placement");
    NAME(sooner, "sooner");
    NAME(host_functions, "host_functions");
    NAME(host_learn, "host_learn");
    NAME(host_places, "host_places");
    NAME(host_filled, "host_filled");
    NAME(host_broadcast, "host_broadcast");
    NAME(host_own, "host_own");
    NAME(host_value, "host_value");
    NAME(host_seen, "host_seen");
    NAME(graph_lock, "lock");
    NAME(ready_array, "ready_array");
    NUMBER(most_steps, "MOST_STEPS");
    NUMBER(most_readers, "MOST_READERS");
    NUMBER(most_alone, "ALONE");
    NUMBER(most_at_once, "AT_ONCE");
    NUMBER(long_size, "LONG");
    NUMBER(most_alone_long, "LONG_ALONE");
    NUMBER(longest, "LONGEST");
    NUMBER(large_bytes, "LARGE");
    NUMBER(large_result, "LARGE_RESULT");
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
    SLOT(L, leaf_type, mode, "mode");
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
    SLOT(R, rule_type, scalars, "scalars");
    SLOT(R, rule_type, choose, "choose");
    SLOT(R, rule_type, itemsize, "itemsize");
    SLOT(R, rule_type, alone, "alone");
    SLOT(R, rule_type, program, "program");
    SLOT(R, rule_type, kernel, "kernel");
    SLOT(R, rule_type, launch, "launch");
    SLOT(K, known_type, rule, "rule");
    SLOT(K, known_type, modes, "modes");
    SLOT(K, known_type, shape, "shape");
    SLOT(K, known_type, fortran, "fortran");
    SLOT(K, known_type, template, "template");
    SLOT(K, known_type, size, "size");
    SLOT(K, known_type, order, "order");
    SLOT(K, known_type, nbytes, "nbytes");
    SLOT(K, known_type, any_strided, "any_strided");
    SLOT(P, step_type, scalar, "scalar");
    SLOT(P, step_type, output, "output");
    SLOT(P, step_type, indexed, "indexed");
    SLOT(B, kept_type, nodes, "nodes");
    SLOT(B, kept_type, sizes, "sizes");
    SLOT(B, kept_type, look_at, "look_at");
    SLOT(O, order_type, codes, "codes");
    SLOT(O, order_type, numbers, "numbers");
    SLOT(O, order_type, modes, "modes");
    SLOT(O, order_type, arguments, "arguments");
    SLOT(O, order_type, sources, "sources");
    SLOT(O, order_type, form, "form");
    Py_RETURN_NONE;
lacking:
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "bind was not told all names");
    return NULL;
}
