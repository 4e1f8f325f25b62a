/* The lock of a storage, as `Storage.lock` has it: made when it is first needed. */

static PyObject *rlock, *making_lock;
static PyObject *text_own_lock, *text_lock, *text_locked;

/* A lock that a thread has acquired, which is nobody's yet. */
static PyObject *spare;
static unsigned long spare_owner;

/* Have a lock at hand that this thread has acquired, for the next storage that has none. */
static void
make_spare(void)
{
    unsigned long here = PyThread_get_thread_ident();
    if (PyErr_Occurred() || (spare != NULL && spare_owner == here))
        return;
    PyObject *lock = acquired(PyObject_CallNoArgs(rlock));
    if (lock == NULL)
        PyErr_Clear();      /* one is made when it is needed, and then it is told */
    Py_XSETREF(spare, lock);
    spare_owner = here;
}

/* The lock of a storage, acquired: a new one if there is none, and nobody is about to make one, as its `lock` does. */
static PyObject *
lock_of(PyObject *storage)
{
    PyObject *lock = PyObject_GetAttr(storage, text_own_lock);
    if (lock == NULL || lock != Py_None)
        return acquired(lock);
    Py_DECREF(lock);
    int mine = spare != NULL && spare_owner == PyThread_get_thread_ident();
    if (mine) {
        lock = spare;
        spare = NULL;
    }
    else if ((lock = PyObject_CallNoArgs(rlock)) == NULL)
        return NULL;
    PyObject *busy = PyObject_CallMethodNoArgs(making_lock, text_locked);
    PyObject *now = busy == NULL ? NULL : PyObject_GetAttr(storage, text_own_lock);
    int done = now == NULL ? -1 : busy == Py_False && now == Py_None;
    if (done > 0 && PyObject_SetAttr(storage, text_own_lock, lock) < 0)
        done = -1;
    Py_XDECREF(busy);
    Py_XDECREF(now);
    if (done > 0)
        return mine ? lock : acquired(lock);
    Py_DECREF(lock);
    return done < 0 ? NULL : acquired(PyObject_GetAttr(storage, text_lock));
}
