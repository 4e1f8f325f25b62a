"""How processes end and begin: no hang, no crash, and nothing is said at exit."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lazyarray

ROOT = Path(__file__).parents[2]
ON_CUDA = lazyarray.device().name == "cuda"

START = """
import atexit, gc, os, sys, threading, time
import numpy as np, lazyarray
x = lazyarray.asarray(np.arange(100_000.0))     # more than counts as small
"""

#: What a process has under way when it ends.
ENDS = {
    "work that waits": "y = x * 2 + 1; z = y.sum()",
    "work that was recorded to read what is written": "y = x * 2; x += 1",
    "a copy in flight": "y = x + 1; lazyarray.prefetch(y)",
    "a copy in flight, and its array gone": "lazyarray.prefetch(x + 1)",
    "aliases": "a = np.asarray(x); a[3] = 7; b = memoryview(a); y = x + 1; c = np.asarray(y[::2])",
    "an alias that outlives its array": "a = np.asarray(x); del x; a[0] = 1",
    "device pointers": "d = lazyarray.asdevice(x); e = lazyarray.asdevice(x[::2])",
    "a kept upload": "w = np.ones(100_000); w.flags.writeable = False\n"
                     "f = lazyarray.lazy(lambda a: a + 1, pure=True); f(w); f(w)",
    "a cycle": "class Node: pass\nn = Node(); n.me, n.array, n.sum = n, x * 2, x.sum()",
    "a cycle that is read as it goes": "class Node:\n    def __del__(self): self.value = float(self.array[1]) + "
                                       "np.asarray(self.array)[2]\nn = Node(); n.me, n.array = n, x * 2",
    "an array that is read as modules go": "class Last:\n    def __del__(self): self.array.tolist()\n"
                                           "sys.last = Last(); sys.last.array = x * 2",
    "a handler that computes": "atexit.register(lambda: float((x * 2).sum()))",
    "a thread that computes": "def run():\n    while True:\n        float((x * 2 + 1).sum()); np.asarray(x + 1)\n"
                              "threading.Thread(target=run, daemon=True).start(); time.sleep(0.2)",
    "an open trace": "t = lazyarray.trace(); t.__enter__(); np.asarray(x)",
    "a block without copies": "n = lazyarray.no_transfers(); n.__enter__(); y = x * 2",
    "a library enabled": "lazyarray.enable('scipy')",
    "a stream": "s = lazyarray.device().new_stream(); s.__enter__(); y = x * 2 + 1; lazyarray.prefetch(y)",
    "garbage that was never collected": "gc.disable()\n"
                                        "for i in range(50):\n    l = [x * i]; l.append(l); np.asarray(l[0])",
}


def run(program, **environment):
    """Run a program, text or a file, in a fresh process, which has to end well, and in silence."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    given = [program] if program.endswith(".py") else ["-c", program]
    done = subprocess.run([sys.executable, "-X", "faulthandler", *given], capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": path} | environment, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, ""), f"exit status {done.returncode}: {done.stderr}"
    return done.stdout


@pytest.mark.parametrize("name", ENDS)
def test_a_process_ends_with(name):
    run(START + ENDS[name])


@pytest.mark.skipif(ON_CUDA, reason="how long the device takes is simulated")
@pytest.mark.parametrize("name", [name for name in ENDS if "work" in name or "flight" in name or "stream" in name])
def test_a_process_ends_while_the_device_is_busy_with(name):
    run(START + ENDS[name], LAZYARRAY_SIMULATED_DELAY="1")


FORKED = START + """
y, z, w, a = x * 2, x + 1, x + 5, np.asarray(x)
kept, total = np.asarray(z), float(w.sum())
a[1] = 9
child = os.fork()
if not child:
    # What the host has is there, and is computed with; what the device alone has ends with an error that says why.
    assert np.asarray(x)[1] == 9 and np.asarray(z)[2] == 3 and float((z * 2)[2]) == 6
    try:
        np.asarray(w)
    except lazyarray.DeviceUnavailableError as error:
        assert "fork" in str(error)
    else:
        sys.exit("nobody can have it")
    {leave}
_, status = os.waitpid(child, 0)
assert status == 0, status
assert float(y[1]) == 2.0 and float((x * 2)[1]) == 18.0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("leave", [
    "sys.exit(0)", "os._exit(0)", "os.execv(sys.executable, [sys.executable, '-c', "
    "'import numpy, lazyarray; float(lazyarray.asarray(numpy.ones(3)).sum())'])"], ids=["exit", "_exit", "exec"])
def test_a_forked_process(leave):
    run("import warnings; warnings.simplefilter('ignore')\n" + FORKED.format(leave=leave))


POOL = """
import multiprocessing, warnings
import numpy as np, lazyarray

def twice(x):
    return x * 2 + np.asarray(x)[0]

if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)
    given = [lazyarray.asarray(np.arange(5.0) + i) for i in range(3)]
    waiting = given[0] * 3
    with multiprocessing.get_context({method!r}).Pool(2) as pool:
        found = pool.map(twice, given)
    assert all(lazyarray.is_lazy(y) and np.array_equal(y, np.asarray(x) * 2 + np.asarray(x)[0])
               for x, y in zip(given, found))
    assert float(waiting[1]) == 3.0
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_pools(method, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(POOL.format(method=method))
    run(str(program))


SUBINTERPRETER = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
other = interpreters.create(*{how})
text = "try:\\n    import lazyarray\\nexcept ImportError as error:\\n"
text += "    assert 'sub-interpreter' in str(error), error\\n"
text += "else:\\n    raise SystemExit('imported')"
failed = interpreters.run_string(other, text)
assert failed is None, failed
interpreters.destroy(other)
"""


@pytest.mark.parametrize("first", ["", "import numpy, lazyarray\n"], ids=["alone", "beside"])
def test_subinterpreters_are_refused(first):
    how = "('legacy',)" if sys.version_info >= (3, 13) else "()"
    run(first + SUBINTERPRETER.format(how=how))


@pytest.mark.skipif(not hasattr(os, "fork") or ON_CUDA, reason="a child may not use CUDA that its parent has used")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_of_a_process_whose_threads_are_at_work():
    """It waits for no lock that a thread had when it was forked."""
    program = START + """
import faulthandler, warnings
warnings.simplefilter("ignore")
np.asarray(x)
held, done = threading.Event(), threading.Event()
def run():
    with x._self_storage.lock:      # as within any statement
        held.set()
        done.wait()
thread = threading.Thread(target=run)
thread.start()
held.wait()
child = os.fork()
if not child:
    faulthandler.dump_traceback_later(10, exit=True)
    os._exit(0 if np.asarray(x)[2] == 2 else 3)
status = os.waitpid(child, 0)[1]
done.set()
thread.join()
assert np.asarray(x)[2] == 2
sys.exit(os.waitstatus_to_exitcode(status))
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120, cwd=ROOT)
