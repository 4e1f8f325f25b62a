/* Waits for the device, in which the host could have computed.

A program that looks at a number at each step, and does little between, is better off on the host with arrays that are larger than those
of a program that goes on. Numbers of bytes and of calls decide, never a time. */

/* While a program waits for the device, the host could have added up arrays of so many times the bytes of a small one (an H200's: some 45
us). So where it waits again and again, and does less than that between with arrays that are larger than small ones, these count as small. */
#define WAIT 12
/* So many waits in a row before they do; after each time that it was in vain twice as many, up to these. */
#define PATIENCE 16
#define MOST_PATIENCE 4096

/* Since the last wait: `work`, the bytes of all calls' largest arrays, less those that a small one may have, for additions' time. In this row
of waits: `largest`, the most such bytes of a call. `seen`: the bytes of the largest array of the call that is looked at. `served`: numbers
that the host had at once since the limit was raised. */
static struct { Py_ssize_t work, largest, seen; long waits, patience, served; } steps = {.patience = PATIENCE};

/* Arrays up to what was set count as small again. */
static void
lower_limit(void)
{
    if (steps.served > 4 * steps.patience)
        steps.patience = PATIENCE;
    else if (steps.patience < MOST_PATIENCE)
        steps.patience *= 2;
    small_bytes = small_set;
}

/* A call on arrays larger than small ones are by what was set: it takes as long as an addition of so many bytes. */
static void
note_work(double nbytes)
{
    const Py_ssize_t most = 4 * WAIT * small_set, bytes = nbytes < (double)most ? (Py_ssize_t)nbytes : most;
    steps.work += bytes - small_set;
    steps.work = steps.work < most ? steps.work : most;
    steps.largest = steps.largest > bytes ? steps.largest : bytes;
    if (steps.work > WAIT * small_set) {
        steps.waits = steps.largest = 0;
        if (small_bytes > small_set && steps.work > 2 * WAIT * small_set)
            lower_limit();
    }
}

/* The program waits for the device. */
static void
note_wait(void)
{
    if (steps.work > 0 && steps.work <= WAIT * small_set && ++steps.waits > steps.patience) {
        small_bytes = small_bytes > steps.largest ? small_bytes : steps.largest;
        steps.waits = steps.largest = steps.served = 0;
    }
    steps.work = 0;
}

/* The host has a number of an array at once. */
static inline void
note_number(void)
{
    steps.served++;
    steps.work = 0;
}

/* The host has computed `result`, while arrays count as small that are larger than was set. -1: an error. */
static int
note_hosts_work(PyObject *callee, PyObject *const *arguments, Py_ssize_t count, PyObject *result)
{
    Py_ssize_t largest = 0;
    if (PyArray_CheckScalar(result) || PyLong_Check(result) || PyFloat_Check(result)) {
        note_number();
        return 0;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        const Py_ssize_t nbytes = PyArray_Check(arguments[i]) ? bytes_of((PyArrayObject *)arguments[i]) : 0;
        largest = largest > nbytes ? largest : nbytes;
    }
    const int cost = cost_of(callee);
    if (cost > 0 && (double)largest * cost > (double)small_set)
        note_work((double)largest * cost);
    return cost < 0 ? -1 : 0;
}

static void
forget_waits(void)
{
    steps.work = steps.largest = steps.waits = steps.served = 0;
    steps.patience = PATIENCE;
}
