/* Who asks, and under which settings: what is looked at before a copy is begun, as `callees`, `options` and `trace` do. */

#define SITES 256       /* a power of 2 */

static PyObject *asks;
static PyObject *text_write_tracking, *text_flags, *text_carray;
static PyObject *usual_options;     /* the last that were */

/* Instructions that ask for nothing but a buffer, whatever their locals are; the code objects are kept. */
static struct { PyObject *code; int at; } sites[SITES];

/* Whether an attribute is true; -1: an error. */
static int
is_true_at(PyObject *object, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(object, name);
    int answer = value == NULL ? -1 : PyObject_IsTrue(value);
    Py_XDECREF(value);
    return answer;
}

/* Whether who asks is none of those that `callees` tells from others; -1: an error. */
static int
plainly_asked(void)
{
    PyFrameObject *frame = PyEval_GetFrame();
    if (frame == NULL)
        return 0;
    PyObject *code = (PyObject *)PyFrame_GetCode(frame);
    int at = PyFrame_GetLasti(frame), plain = 1;
    size_t place = ((uintptr_t)code / 16 + (size_t)at) % SITES;
    if (sites[place].code != code || sites[place].at != at) {
        Py_INCREF(frame);
        PyObject *answer = PyObject_CallOneArg(asks, (PyObject *)frame);
        Py_DECREF(frame);
        long who = answer == NULL ? -1 : PyLong_AsLong(answer);
        Py_XDECREF(answer);
        if (who == -1 && PyErr_Occurred())
            plain = -1;
        else if (who > 0)
            plain = 0;
        else if (who == 0) {    /* there, always */
            PyObject *before = sites[place].code;
            sites[place].code = Py_NewRef(code);
            sites[place].at = at;
            Py_XDECREF(before);
        }
    }
    Py_DECREF(code);
    return plain;
}

/* Whether writes are tracked as usual; -1: an error. As `options.current` says, whose records never change. */
static int
tracks_as_usual(void)
{
    PyObject *options = options_here(), *value;
    if (options == NULL)
        return -1;
    int usual = options == usual_options;
    if (!usual) {
        value = PyObject_GetAttr(options, text_write_tracking);
        usual = value == NULL ? -1 : PyUnicode_Check(value) && PyUnicode_CompareWithASCIIString(value, "auto") == 0;
        Py_XDECREF(value);
        if (usual > 0)
            Py_XSETREF(usual_options, Py_NewRef(options));
    }
    Py_DECREF(options);
    return usual;
}

/* Whether an outline, if there is one, is C-contiguous, aligned and writable; -1: an error. */
static int
is_carray(PyObject *outline)
{
    if (outline == Py_None)
        return 1;
    PyObject *flags = PyObject_GetAttr(outline, text_flags);
    int answer = flags == NULL ? -1 : is_true_at(flags, text_carray);
    Py_XDECREF(flags);
    return answer;
}
