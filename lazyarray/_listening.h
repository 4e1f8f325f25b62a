/* Who listens to copies: what the modules in C that make some have to know. */

static PyObject *listening, *trace_names, *text_process;

/* Whether nobody listens to copies, or forbids them; -1: an error. As `trace.heard`. */
static int
unheard(void)
{
    PyObject *here, *process;
    if (PyContextVar_Get(listening, NULL, &here) < 0)
        return -1;
    int none = here != NULL && PyTuple_CheckExact(here) && PyTuple_GET_SIZE(here) == 0;
    Py_XDECREF(here);
    if (!none)
        return 0;
    process = PyDict_GetItemWithError(trace_names, text_process);
    if (process == NULL)
        return PyErr_Occurred() ? -1 : 0;
    return PyTuple_CheckExact(process) && PyTuple_GET_SIZE(process) == 0;
}
