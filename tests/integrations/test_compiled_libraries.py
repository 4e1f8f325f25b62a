"""``enable("cv2")`` and ``enable("torch")``: compiled functions that require ndarrays accept lazy arrays meanwhile."""
from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import lazyarray
from lazyarray.integrations.routing.router import is_router

ROOT = Path(__file__).parents[2]
IMAGE = np.random.default_rng(0).random((40, 50))


@pytest.fixture(autouse=True)
def nothing_enabled():
    lazyarray.disable()
    yield
    lazyarray.disable()


class TestOpenCV:
    @pytest.fixture
    def cv2(self):
        return pytest.importorskip("cv2")

    def test_a_block(self, cv2):
        x, before = lazyarray.asarray(IMAGE), cv2.GaussianBlur
        with pytest.raises(cv2.error):
            cv2.GaussianBlur(x, (5, 5), 1.0)
        with lazyarray.enabled("cv2"), lazyarray.trace() as t:
            found = cv2.GaussianBlur(x, (5, 5), 1.0)
        assert type(found) is np.ndarray and np.array_equal(found, before(IMAGE, (5, 5), 1.0))
        assert [event.reason for event in t.materialisations] == ["cv2.GaussianBlur takes only ndarrays"]
        with pytest.raises(cv2.error):
            cv2.GaussianBlur(x, (5, 5), 1.0)
        lazyarray.disable("cv2")
        assert cv2.GaussianBlur is before and not any(map(is_router, vars(cv2).values()))

    def test_results_that_are_arguments_stay_lazy_and_see_what_was_written(self, cv2):
        canvas, plain = lazyarray.asarray(np.zeros((9, 9), np.uint8)), np.zeros((9, 9), np.uint8)
        lazyarray.enable("cv2")
        assert cv2.circle(canvas, (4, 4), 2, 255, -1) is canvas
        cv2.circle(plain, (4, 4), 2, 255, -1)
        assert np.array_equal(np.asarray(canvas), plain) and int(canvas.sum()) == int(plain.sum())
        target = lazyarray.asarray(np.zeros_like(IMAGE))
        assert cv2.blur(lazyarray.asarray(IMAGE), (3, 3), dst=target) is target
        assert np.array_equal(np.asarray(target), cv2.blur(IMAGE, (3, 3)))

    def test_host_arrays_and_other_threads_are_left_alone(self, cv2):
        x, failed = lazyarray.asarray(IMAGE), []

        def elsewhere():
            try:
                cv2.blur(x, (3, 3))
            except cv2.error as error:
                failed.append(error)

        with lazyarray.enabled("cv2", numpy=True), lazyarray.trace() as t:
            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join()
            assert np.array_equal(cv2.blur(IMAGE, (3, 3)), cv2.blur(IMAGE.copy(), (3, 3)))
        assert len(failed) == 1 and not t.events

    def test_a_name_that_was_imported_before(self, cv2):
        code = ("import lazyarray, numpy as np\nfrom cv2 import blur\nlazyarray.enable('cv2')\n"
                "print(blur(lazyarray.asarray(np.ones((9, 9))), (3, 3)).sum())\nlazyarray.disable()\n"
                "try:\n    blur(lazyarray.asarray(np.ones((9, 9))), (3, 3))\nexcept Exception as error: print('error')")
        found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        assert found.stdout.split() == ["81.0", "error"]

    def test_it_is_waited_for(self, cv2):
        code = ("import sys, lazyarray, numpy as np\nlazyarray.enable('cv2')\n"
                "assert 'cv2' not in sys.modules\nimport cv2\n"
                "print(cv2.blur(lazyarray.asarray(np.ones((9, 9))), (3, 3)).sum())")
        found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        assert found.stdout.split() == ["81.0"]


def test_a_program_without_lazy_arrays_gets_no_device():
    for library in ("h5py", "scipy"):
        pytest.importorskip(library)
    code = ("import numpy as np, lazyarray, h5py, scipy.optimize\nfrom lazyarray import devices\n"
            "with h5py.File('nowhere', 'w', driver='core', backing_store=False) as file:\n"
            "    found = np.empty(3)\n    file.create_dataset('a', data=np.arange(3.0)).read_direct(found)\n"
            "scipy.optimize.minimize(lambda x: (x ** 2).sum(), found, method='L-BFGS-B')\n"
            "np.random.default_rng(0).permutation(found)\nassert not devices.is_chosen()\n"
            "lazyarray.asarray(found)\nassert devices.is_chosen()")
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_torch():
    torch = pytest.importorskip("torch")
    x = lazyarray.asarray(np.arange(5.0))
    with pytest.raises(TypeError):
        torch.from_numpy(x)
    with lazyarray.enabled("torch"):
        tensor = torch.from_numpy(x)
        tensor += 1
    assert np.array_equal(np.asarray(x), np.arange(5.0) + 1), "they share memory, as with an ndarray"
    assert torch.from_numpy(np.ones(3)).shape == (3,)
