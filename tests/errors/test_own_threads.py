"""Threads of lazyarray's own are not among those that may write arrays meanwhile."""
from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import os, threading, warnings
warnings.simplefilter("ignore")
from lazyarray.errors.own_threads import others_run, own

assert not others_run()
started, over = threading.Event(), threading.Event()

def work(value):
    started.set()
    over.wait()

ours = threading.Thread(target=own(work), args=(1,))
ours.start()
started.wait()
assert not others_run()
pid = os.fork()
if not pid:         # it has no thread
    other = threading.Thread(target=lambda: over.wait())
    other.start()
    os._exit(0 if others_run() else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
theirs = threading.Thread(target=over.wait)
theirs.start()
assert others_run()
over.set()
theirs.join()
ours.join()
assert not others_run()
failing = threading.Thread(target=own(lambda: 1 / 0))
threading.excepthook = lambda args: None
failing.start()
failing.join()
assert not others_run()
"""


def test_who_is_counted():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
