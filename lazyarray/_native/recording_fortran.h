/* Routines made by f2py, while they are called.

f2py copies an ndarray before a routine overwrites it, and takes what NumPy makes of any other object for its own. So an array has to
know that it is such a routine that asks for its memory. How the call is written says nothing (``self.solve(a, b)``, ``map(solve, ...)``):
each f2py module has a type for its routines, whose slot for calls is one of ours from then on. */

#define MOST_ROUTINE_TYPES 64

static struct { PyTypeObject *type; ternaryfunc call; } routine_types[MOST_ROUTINE_TYPES];
static int routine_type_count = 0;

/* The routine that this thread has called last and that has not returned, and the frame that called it. */
static PER_THREAD PyObject *called_routine, *called_from;

static PyObject *
call_routine(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *before = called_routine, *outer = called_from, *result;
    int i = 0;
    while (routine_types[i].type != Py_TYPE(self))
        i++;
    called_routine = self;
    called_from = Py_XNewRef((PyObject *)PyEval_GetFrame());
    result = routine_types[i].call(self, args, kwargs);
    Py_XDECREF(called_from);
    called_routine = before;
    called_from = outer;
    return result;
}

PyDoc_STRVAR(watch_routines_doc, "watch_routines(type, /)\n--\n\n"
"From now on know when an object of this type, of routines made by f2py, is called. Whether that can be.");

static PyObject *
watch_routines(PyObject *Py_UNUSED(module), PyObject *given)
{
    PyTypeObject *type = (PyTypeObject *)given;
    /* static, so that it is there for good, and without subclasses, which would not be found by their type */
    if (!PyType_Check(given) || (type->tp_flags & (Py_TPFLAGS_HEAPTYPE | Py_TPFLAGS_BASETYPE)) || type->tp_call == NULL)
        Py_RETURN_FALSE;
    for (int i = 0; i < routine_type_count; i++)
        if (routine_types[i].type == type)
            Py_RETURN_TRUE;
    if (routine_type_count == MOST_ROUTINE_TYPES)
        Py_RETURN_FALSE;
    routine_types[routine_type_count].type = type;
    routine_types[routine_type_count++].call = type->tp_call;
    type->tp_call = call_routine;
    Py_RETURN_TRUE;
}

PyDoc_STRVAR(routine_called_doc, "routine_called(frame, /)\n--\n\n"
"The watched routine that a frame of this thread is calling now, in C; None if there is none.");

static PyObject *
routine_called(PyObject *Py_UNUSED(module), PyObject *frame)
{
    return Py_NewRef(called_routine != NULL && called_from == frame ? called_routine : Py_None);
}
