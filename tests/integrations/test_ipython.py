"""The magics, in a shell of IPython; and what they switch, with and without one."""
from __future__ import annotations

import contextlib
import io
import re
import threading
import warnings

import numpy as np
import pytest

import lazyarray
from lazyarray import options

pytestmark = pytest.mark.usefixtures("restored_defaults")


@pytest.fixture
def shell(monkeypatch, tmp_path):
    interactiveshell = pytest.importorskip("IPython.core.interactiveshell")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))     # no history, no profile of the user's
    before = warnings.filters[:]
    shell = interactiveshell.InteractiveShell.instance(history_load_length=0, colors="nocolor")
    warnings.filters[:] = before
    shell.history_manager.enabled = False
    run(shell, "%load_ext lazyarray\nimport lazyarray, numpy as np")
    yield shell
    run(shell, "%unload_ext lazyarray")
    interactiveshell.InteractiveShell.clear_instance()


def run(shell, code):
    """What a cell printed."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        result = shell.run_cell(code)
    run.success = result.success
    return text.getvalue()


def rows(text, kind):
    """The cells of the table's rows of this kind, without the number of the IPython cell."""
    found = [re.sub(r"^cell \d+, ", "", line).split() for line in text.splitlines()]
    return [row for row in found if kind in row[1:3] and row[0] != "1"]


class TestTrace:
    def test_lines_are_numbered_as_in_the_cell(self, shell):
        text = run(shell, "%%lazy_trace\nx = lazyarray.asarray(np.zeros(100))\n\n\ny = np.asarray(x + 1)")
        (upload,), (copy,) = rows(text, "upload"), rows(text, "materialise")
        assert upload[:6] == ["line", "2", "upload", "1", "800", "B"]
        assert copy[:6] == ["line", "5", "materialise", "1", "800", "B"]
        assert "y = np.asarray(x + 1)" in text and "1 upload (800 B" in text

    def test_fallbacks_and_waits_are_shown(self, shell):
        run(shell, "x = lazyarray.asarray(np.eye(3))")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lazyarray.HostFallbackWarning)
            text = run(shell, "%%lazy_trace\nnp.linalg.eig(x);\nx[x > 0];")
        assert rows(text, "fallback")[0][:2] == ["line", "2"] and "numpy.linalg.eig" in text
        assert rows(text, "synchronise")[0][:2] == ["line", "3"]

    def test_a_function_of_another_cell_is_named_by_it(self, shell):
        number = shell.execution_count
        run(shell, "def fetch(x):\n    return np.asarray(x)")
        text = run(shell, "%%lazy_trace\nfetch(lazyarray.asarray([1.0]))\n")
        (line,) = [line for line in text.splitlines() if " materialise " in line and line.startswith("cell ")]
        assert line.startswith((f"cell {number}, line 2", f"cell {number + 1}, line 2"))

    def test_lines_outside_the_magic_are_named_by_their_cell_too(self, shell):
        run(shell, "with lazyarray.trace() as t:\n    x = lazyarray.asarray([1.0])")
        (event,) = shell.user_ns["t"]
        assert re.search(r"\bcell \d+, line 2\b", str(shell.user_ns["t"]))
        text = run(shell, "#\nwith lazyarray.no_transfers():\n    np.asarray(x + 1)")
        assert re.search(r"TransferError: .* at cell \d+, line 3: np\.asarray", text)

    def test_times_and_advice(self, shell):
        text = run(shell, "%%lazy_trace\nw = np.ones((200, 200))\nfor i in range(15):\n"
                          "    y = lazyarray.asarray(w) @ lazyarray.asarray(w)\n    y.max().item()")
        assert re.search(r"^line +ms +device ms +host ms", text, re.MULTILINE)
        assert re.search(r"^- cell \d+, line 4: w is uploaded 30 times with the same values", text, re.MULTILINE)
        assert re.search(r"^- cell \d+, line 5 copies one value at a time, 15 times", text, re.MULTILINE)

    def test_the_last_value_is_shown_and_counted(self, shell):
        text = run(shell, "%%lazy_trace\nx = lazyarray.asarray([1.5, 2.5])\nx * 2")
        assert "array([3., 5.])" in text and rows(text, "materialise")[0][:2] == ["line", "3"]
        assert "array(" not in run(shell, "%%lazy_trace\nx * 2;  # not shown")
        shell.ast_node_interactivity = "none"
        assert "array(" not in run(shell, "%%lazy_trace\nx * 2")
        shell.ast_node_interactivity = "all"
        assert run(shell, "%%lazy_trace\nx * 2\nx * 2").count("array([3., 5.])") == 2

    def test_as_a_line(self, shell):
        text = run(shell, "%lazy_trace -o t y = lazyarray.asarray([1.0, 2.0]); print('a -o b')")
        assert "a -o b" in text and rows(text, "upload")[0][:2] == ["line", "1"]
        assert len(shell.user_ns["t"].uploads) == 1

    def test_the_trace_is_kept_and_files_are_written(self, shell, tmp_path):
        run(shell, f"%%lazy_trace -o found --html {tmp_path}/a.html --svg {tmp_path}/a.svg\n"
                   "x = lazyarray.asarray(np.zeros(5))")
        assert [event.kind for event in shell.user_ns["found"]] == ["upload"]
        assert "line 2" in (tmp_path / "a.html").read_text() and "<svg" in (tmp_path / "a.svg").read_text()

    def test_an_error_is_the_cells_and_what_came_before_is_shown(self, shell):
        text = run(shell, "%%lazy_trace\nx = lazyarray.asarray([1.0])\n1 / 0")
        assert not run.success
        assert text.count("ZeroDivisionError: division by zero") == 1 and "1 upload" in text and "line 3" in text

    @pytest.mark.parametrize(("code", "says"), [
        ("%%lazy_trace x = 1\nx", "options only"), ("%lazy_trace", "nothing to run"), ("%%lazy_trace -z\nx", "-z"),
        ("%%lazy_trace\nawait f()", "with lazyarray.trace()"), ("%%lazy_trace\ndef f(:", "SyntaxError"),
    ])
    def test_mistakes_are_told(self, shell, code, says):
        assert says in run(shell, code) and not run.success

    def test_threads_are_heard_when_asked_for(self, shell):
        code = ("\nimport threading\nthread = threading.Thread(target=lambda: lazyarray.asarray([1.0]))\n"
                "thread.start()\nthread.join()")
        assert "0 uploads" in run(shell, "%%lazy_trace" + code)
        assert "1 upload" in run(shell, "%%lazy_trace -p" + code)

    def test_magics_and_other_transformations_work_inside(self, shell):
        text = run(shell, "%%lazy_trace\nx = lazyarray.asarray([1.0])\n%lazy_off\n%lazy_on\n!echo shouted")
        assert run.success and "lazyarray is on" in text and rows(text, "upload")[0][:2] == ["line", "2"]

    def test_in_a_notebook_it_is_html(self, shell, monkeypatch):
        from IPython.core.displaypub import CapturingDisplayPublisher

        shown = CapturingDisplayPublisher()
        monkeypatch.setattr(shell, "display_pub", shown)
        shell.display_formatter.active_types = ["text/plain", "text/html"]
        run(shell, "%%lazy_trace\nx = lazyarray.asarray(np.zeros(100));")
        (output,) = shown.outputs
        assert "<svg" in output["data"]["text/html"] and "line 2" in output["data"]["text/html"]
        assert "line 2" in output["data"]["text/plain"] and " ms" in output["data"]["text/plain"].splitlines()[0]
        run(shell, "display(x)")
        assert "lazyarray-array" in shown.outputs[-1]["data"]["text/html"]
        assert shown.outputs[-1]["data"]["text/plain"].startswith("array([0.")

    def test_a_scalar_is_shown_as_numpys(self, shell):
        run(shell, "s = lazyarray.asarray([1.0, 2.0]).sum()")
        formatted, _ = shell.display_formatter.format(shell.user_ns["s"])
        assert formatted == {"text/plain": "np.float64(3.0)"}


class TestOffAndOn:
    def test_the_magics_switch_the_whole_process(self, shell):
        assert "NumPy arrays" in run(shell, "%lazy_off")
        seen = []
        thread = threading.Thread(target=lambda: seen.append(lazyarray.is_lazy(lazyarray.asarray([1.0]))))
        thread.start()
        thread.join()
        run(shell, "x = lazyarray.asarray([1.0])")
        assert seen == [False] and type(shell.user_ns["x"]) is np.ndarray
        assert "with lazyarray off" in run(shell, "%%lazy_trace\nx + 1")
        run(shell, "%lazy_on")
        run(shell, "x = lazyarray.asarray([1.0])")
        assert lazyarray.is_lazy(shell.user_ns["x"])

    def test_unloading_takes_the_magics_and_switches_on(self, shell):
        run(shell, "%lazy_off\n%unload_ext lazyarray")
        assert options.get().lazy and "not found" in run(shell, "%lazy_on")
        assert "not found" in run(shell, "%%lazy_trace\n1")
        run(shell, "%load_ext lazyarray")
        assert "lazyarray is on" in run(shell, "%lazy_on")


class TestOption:
    """``options(lazy=False)``, which the magics set."""

    @pytest.mark.parametrize("obj", [[1, 2], (1.0, 2.0), np.arange(6).reshape(2, 3).T, np.float32(3), "text", None, 5],
                             ids=repr)
    @pytest.mark.parametrize("dtype", [None, object])
    def test_asarray_gives_a_new_host_array_of_the_same_value_and_layout(self, obj, dtype):
        lazy = lazyarray.asarray(obj, dtype)
        with options(lazy=False), lazyarray.no_transfers():
            plain = lazyarray.asarray(obj, dtype)
        assert type(plain) is np.ndarray and not (isinstance(obj, np.ndarray) and np.shares_memory(plain, obj))
        assert (plain.dtype, plain.shape, plain.strides) == (lazy.dtype, lazy.shape, lazy.strides)
        assert np.array_equal(plain, np.asarray(lazy))

    def test_device_memory_is_fetched(self):
        d = lazyarray.asdevice(np.arange(3.0))
        with options(lazy=False):
            plain = lazyarray.asarray(d)
            assert type(plain) is np.ndarray and plain.tolist() == [0, 1, 2]
            with pytest.raises(ValueError, match="lazy=False"):
                lazyarray.asarray(d, copy=False)
            with pytest.raises(ValueError, match="copy"):
                lazyarray.asarray([1.0], copy=False)

    def test_a_lazy_array_gives_its_alias(self):
        x = lazyarray.asarray([1.0, 2.0])
        with options(lazy=False):
            plain = lazyarray.asarray(x)
            copied = lazyarray.asarray(x, copy=True)
            assert type(lazyarray.asarray(x.sum())) is np.ndarray
        x += 1
        assert type(plain) is np.ndarray and plain.tolist() == [2, 3] and copied.tolist() == [1, 2]

    def test_what_exists_stays_lazy(self):
        x = lazyarray.asarray([1.0, 2.0])
        with options(lazy=False), lazyarray.no_transfers():
            assert lazyarray.is_lazy(x + 1) and lazyarray.is_lazy(np.sum(x))

    def test_lazyarray_numpy_makes_numpys_arrays(self):
        import lazyarray.numpy as xnp

        makers = [lambda: xnp.zeros((2, 3)), lambda: xnp.arange(5), lambda: xnp.linspace(0, 1, 5), lambda: xnp.eye(2),
                  lambda: xnp.array([[1, 2]]), lambda: xnp.asarray([1.0]), lambda: xnp.full(3, 7),
                  lambda: xnp.hanning(4), lambda: xnp.mgrid[:2, :3], lambda: xnp.diag([1, 2]),
                  lambda: xnp.fromfunction(lambda i, j: i + j, (2, 2)), lambda: xnp.meshgrid([1, 2], [3, 4])[0],
                  lambda: xnp.from_dlpack(np.arange(3)), lambda: xnp.from_dlpack(lazyarray.asdevice(np.arange(3))),
                  lambda: xnp.linspace([0, 1], [2, 3], 3), lambda: xnp.frombuffer(b"abc", np.uint8)]
        for number, make in enumerate(makers):
            lazy = make()
            with options(lazy=False):
                plain = make()
            assert lazyarray.is_lazy(lazy) and type(plain) is np.ndarray, number
            assert plain.dtype == lazy.dtype and np.array_equal(plain, lazy), number

    def test_gpu_functions_run_on_the_device_and_give_numpys_arrays(self):
        calls = []

        @lazyarray.lazy(pure=True)
        def both(d):
            calls.append(type(d))
            return {"twice": d * 2, "sum": [d.sum()], "other": "text"}

        host = np.arange(4.0)
        with options(lazy=False), lazyarray.trace() as t:
            found = both(host)
        assert calls == [lazyarray.device().array_type] and len(t.materialisations) == 2
        assert type(found["twice"]) is np.ndarray and found["twice"].tolist() == [0, 2, 4, 6]
        assert type(found["sum"][0]) in (np.float64, np.ndarray) and found["sum"][0] == 6 and found["other"] == "text"

    def test_gpu_functions_give_device_arrays_to_callers_who_passed_them(self):
        twice = lazyarray.lazy(lambda d: d * 2, pure=True)
        with options(lazy=False):
            assert isinstance(twice(lazyarray.asdevice([1.0])), lazyarray.device().array_type)

    def test_what_was_written_is_written(self):
        @lazyarray.lazy(writes=("out",))
        def fill(out):
            out += 1
            return out

        host, lazy = np.zeros(3), lazyarray.asarray(np.zeros(3))
        with options(lazy=False):
            assert fill(host) is host and fill(lazy) is lazy
        assert host.tolist() == [1, 1, 1] and lazy.tolist() == [1, 1, 1]

    def test_host_arrays_are_not_routed(self):
        ndimage = pytest.importorskip("scipy.ndimage")
        large = np.zeros((512, 512))
        with lazyarray.enabled("scipy", numpy=True):
            assert lazyarray.is_lazy(ndimage.gaussian_filter(large, 1))
            with options(lazy=False), lazyarray.trace() as t:
                assert type(ndimage.gaussian_filter(large, 1)) is np.ndarray
            assert not len(t)

    def test_it_ends_with_its_block(self):
        with options(lazy=False), options(lazy=True):
            assert lazyarray.is_lazy(lazyarray.asarray([1]))
        assert lazyarray.is_lazy(lazyarray.asarray([1]))


class TestDisplay:
    """``Out[3]:``, in a terminal; tests/array/test_html.py has what a notebook shows beside it."""

    def test_deferred_work_is_shown_above_its_values_and_stays_deferred(self, shell):
        run(shell, "x = lazyarray.asarray(np.linspace(0, 1, 100_000))\ny = np.sqrt(x * 2 + 1)")
        text = run(shell, "y").partition("]: ")[2]
        assert text.strip() == "deferred: sqrt(x * 2 + 1), 3 operations\n" + repr(shell.user_ns["y"])
        assert run(shell, "print(lazyarray.where(y))") == "deferred: sqrt(x * 2 + 1), 3 operations\n"
        run(shell, "y = lazyarray.block_until_ready(y)")
        assert run(shell, "y").partition("]: ")[2].strip() == repr(shell.user_ns["y"])

    def test_repr_str_and_print_are_numpys(self, shell):
        run(shell, "x = lazyarray.asarray(np.linspace(0, 1, 100_000))\ny = np.sqrt(x * 2 + 1)")
        want = np.sqrt(np.linspace(0, 1, 100_000) * 2 + 1)
        y = shell.user_ns["y"]
        assert (repr(y), str(y), f"{y}") == (repr(want), str(want), f"{want}")
        assert run(shell, "print(y)") == f"{want}\n"

    def test_text_and_html_say_the_same_of_deferred_work_and_of_forbidden_copies(self, shell):
        run(shell, "x = lazyarray.asarray(np.linspace(0, 1, 100_000))\ny = np.sqrt(x * 2 + 1)")
        formats = shell.display_formatter.format
        for scope in (contextlib.nullcontext(), lazyarray.no_transfers()):
            with scope:
                shown, _ = formats(shell.user_ns["y"], include={"text/plain", "text/html"})
                html = shell.user_ns["y"]._repr_html_()
            said, values = shown["text/plain"].split("\n", 1)
            assert re.search(r">(deferred: [^<]+)<", html)[1].partition("sqrt")[0] == said.partition("sqrt")[0]
            assert ("1.73205081" in values) == ("1.73205081" in html)
            assert ("no_transfers() is in force" in values) == ("no_transfers() is in force" in html)
