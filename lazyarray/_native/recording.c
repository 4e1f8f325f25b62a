/* Recording, and the computing of what was recorded: what a small operation costs is the price of asking for names.

There is no other way to do either: without this module work is done at once. What is done rarely is in Python, in `graph`:
the general way of a call, which learns what the next calls like it become, programs, what the host
computes. Instances are reached through the offsets of their __slots__, so the classes themselves stay where they are written, in Python.
*/
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <structmember.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>

#include "recording_slots.h"
#include "recording_locks.h"
#include "recording_context.h"
#include "recording_buffers.h"
#include "recording_fortran.h"
#include "recording_nodes.h"
#include "recording_operands.h"
#include "recording_calls.h"
#include "recording_chains.h"
#include "recording_computing.h"
#include "recording_reach.h"
#include "recording_writing.h"
#include "recording_functions.h"
#include "recording_reducing.h"
#include "recording_host.h"
#include "recording_waits.h"
#include "recording_runs.h"
#include "recording_members.h"
#include "recording_sources.h"

PyDoc_STRVAR(new_array_doc, "new_array(storage, meta, array=None, base=None, /)\n--\n\n"
"A LazyNdarray of `meta` in `storage`; `array`: its device array, `base`: what it is a view of.");

static PyObject *
new_array(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs < 2 || nargs > 4)
        return mistaken("new_array takes a storage, a meta, a device array and a base");
    return made_array(args[0], args[1], nargs > 2 ? args[2] : Py_None, nargs > 3 ? args[3] : Py_None);
}

PyDoc_STRVAR(address_doc, "address(view, /)\n--\n\n"
"The address of the first element of an ndarray, whose memory is not looked at; BufferError, ValueError or TypeError "
"if it is no buffer.");

static PyObject *
address(PyObject *Py_UNUSED(module), PyObject *view)
{
    Py_buffer buffer;
    if (PyObject_GetBuffer(view, &buffer, PyBUF_STRIDED_RO) < 0)
        return NULL;
    PyObject *result = PyLong_FromVoidPtr(buffer.buf);
    PyBuffer_Release(&buffer);
    return result;
}

PyDoc_STRVAR(large_doc, "large(nbytes=None, /)\n--\n\n"
"The bytes from which on an input of recorded work counts as large, which become `nbytes` if that is given.");

static PyObject *
large(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    const Py_ssize_t before = limits.LARGE, nbytes = nargs == 1 ? PyLong_AsSsize_t(args[0]) : before;
    if (nbytes == -1 && PyErr_Occurred())
        return NULL;
    limits.LARGE = nbytes;
    return PyLong_FromSsize_t(before);
}

static PyObject *
stop(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    forked = 1;
    Py_RETURN_NONE;
}

#define FAST(function) (PyCFunction)(void (*)(void))function

static PyMethodDef methods[] = {
    {"bind", bind, METH_O, bind_doc},
    {"new_array", FAST(new_array), METH_FASTCALL, new_array_doc},
    {"recorded", FAST(recorded), METH_FASTCALL, recorded_doc},
    {"array_of", FAST(given_array_of), METH_FASTCALL, array_of_doc},
    {"compute", compute, METH_O, compute_doc},
    {"tick", ticked, METH_NOARGS, tick_doc},
    {"needed", needed, METH_O, needed_doc},
    {"sourced", FAST(sourced), METH_FASTCALL, sourced_doc},
    {"address", address, METH_O, address_doc},
    {"note_reader", FAST(noted_reader), METH_FASTCALL, note_reader_doc},
    {"tried", FAST(tried), METH_FASTCALL, tried_doc},
    {"new_result", FAST(new_result), METH_FASTCALL, new_result_doc},
    {"looped", FAST(looped), METH_FASTCALL, looped_doc},
    {"updated", FAST(updated), METH_FASTCALL, updated_doc},
    {"wrote", FAST(wrote), METH_FASTCALL, wrote_doc},
    {"scalar_class", scalar_class, METH_O, scalar_class_doc},
    {"element", FAST(element), METH_FASTCALL, element_doc},
    {"rows", FAST(rows), METH_FASTCALL, rows_doc},
    {"waiting", list_waiting, METH_NOARGS, waiting_doc},
    {"holding", holding, METH_O, holding_doc},
    {"buffer_methods", FAST(make_buffer_methods), METH_FASTCALL, buffer_methods_doc},
    {"lost", lost, METH_NOARGS, lost_doc},
    {"watch_routines", watch_routines, METH_O, watch_routines_doc},
    {"routine_called", routine_called, METH_O, routine_called_doc},
    {"member", FAST(member), METH_FASTCALL, member_doc},
    {"on_host", FAST(given_on_host), METH_FASTCALL, on_host_doc},
    {"run_on_host", FAST(run_on_host), METH_FASTCALL, run_on_host_doc},
    {"host_array", host_array, METH_O, host_array_doc},
    {"is_under_way", is_under_way, METH_NOARGS, is_under_way_doc},
    {"note_sent", given_note_sent, METH_O, note_sent_doc},
    {"note_wait", given_note_wait, METH_NOARGS, note_wait_doc},
    {"counted", counted, METH_NOARGS, counted_doc},
    {"lighten", given_lighten, METH_O, lighten_doc},
    {"is_light", given_is_light, METH_O, is_light_doc},
    {"home", home, METH_O, home_doc},
    {"lone", lone, METH_O, lone_doc},
    {"move", FAST(move), METH_FASTCALL, move_doc},
    {"with_variable", FAST(with_variable), METH_FASTCALL, with_variable_doc},
    {"small", FAST(small), METH_FASTCALL, small_doc},
    {"large", FAST(large), METH_FASTCALL, large_doc},
    {"stop", stop, METH_NOARGS, PyDoc_STR("stop()\n--\n\nRecord nothing any more: in a forked child.")},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "lazyarray._native.recording", PyDoc_STR("Recording and computing, in C."), -1, methods,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit_recording(void)
{
    char name[64];
    const char *names = NAMES(TEXTS);
    for (PyObject **where = (PyObject **)&text; next_name(&names, name); where++)
        if ((*where = PyUnicode_InternFromString(name)) == NULL)
            return NULL;
    text_acquire = text.acquire;
    if ((text_release = PyUnicode_InternFromString("release")) == NULL)
        return NULL;
    import_array1(NULL);
    import_umath1(NULL);
    if ((member_type = (PyTypeObject *)PyType_FromSpec(&member_spec)) == NULL
            || (holding_type = (PyTypeObject *)PyType_FromSpec(&holding_spec)) == NULL)
        return NULL;
    no_arguments = PyTuple_New(0);
    zero = PyLong_FromLong(0);
    now = PyLong_FromLong(0);
    unit = PyLong_FromLong(1);
    waiting = PyList_New(0);
    PyObject *module = no_arguments == NULL || zero == NULL || now == NULL || unit == NULL || waiting == NULL ? NULL : PyModule_Create(&definition);
    if (module != NULL && PyModule_AddIntConstant(module, "INTERFACE", 59) < 0)
        Py_CLEAR(module);
    if (module != NULL && (PyModule_AddIntMacro(module, REFLECTED) < 0 || PyModule_AddIntMacro(module, IN_PLACE) < 0
            || PyModule_AddIntMacro(module, ASSIGNS) < 0 || PyModule_AddIntMacro(module, BROADCASTS) < 0
            || PyModule_AddIntMacro(module, MULTIPLIES) < 0 || PyModule_AddIntMacro(module, INDEXES) < 0
            || PyModule_AddIntMacro(module, COMPUTES) < 0 || PyModule_AddIntMacro(module, VALUES) < 0
            || PyModule_AddIntMacro(module, LENGTHENS) < 0 || PyModule_AddIntMacro(module, MAKES) < 0
            || PyModule_AddIntMacro(module, POWERS) < 0 || PyModule_AddIntMacro(module, SEES) < 0 || PyModule_AddIntMacro(module, COPIES) < 0
            || PyModule_AddIntMacro(module, PACKED) < 0))
        Py_CLEAR(module);
    return module;
}
