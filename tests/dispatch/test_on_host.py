"""Recorded work that the host computes: with NumPy's values, laid out as NumPy does."""
from __future__ import annotations

import warnings

import numpy as np
import pytest
from recorded import growth

import lazyarray
import lazyarray.numpy as lazy
from lazyarray.graph import cost_model, host_execution
from lazyarray.storage import handles, views


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch):
    monkeypatch.setattr(cost_model, "_costs", cost_model.Costs())
    with lazyarray.options(defer_from=16 << 20):
        yield


def shared(xp):
    y = xp.arange(12).reshape(3, 4) + 1
    return (y * y.reshape(3, 4)) - y


def long_chain(xp):
    x = xp.arange(30)
    for i in range(1, 9):
        x = (x + i) * (1 if i % 2 else 3) - xp.arange(30)
    return x


MADE = {
    "places": lambda xp: xp.arange(1000), "places of floats": lambda xp: xp.arange(7.0),
    "places of single floats": lambda xp: xp.arange(9, dtype="f4"), "many places": lambda xp: xp.arange(50_000),
    "of few bytes": lambda xp: xp.arange(3, 90, 4, dtype="u1"), "spaced": lambda xp: xp.linspace(-1, 2, 33),
    "one value": lambda xp: xp.full((4, 5), -0.0), "not a number": lambda xp: xp.full(3, np.nan, "f4"),
    "in Fortran order": lambda xp: xp.ones((4, 5), order="F") * 2.5,
    "turned": lambda xp: xp.arange(24).reshape(4, -1).T * 2,
    "three axes": lambda xp: xp.arange(24).reshape(2, 3, 4).T - 1,
    "axes of one": lambda xp: xp.arange(6).reshape(1, 6, 1).T * 3, "a row": lambda xp: xp.arange(6).reshape(1, 6).T * 3,
    "shared": shared, "a long chain": long_chain, "divided": lambda xp: xp.arange(5) / 0,
    "divided whole": lambda xp: xp.arange(5) // 0, "too large": lambda xp: xp.full(4, 1e300) * 1e300,
    "a choice": lambda xp: np.where(xp.arange(9) > 4, xp.linspace(0, 1, 9), 2.0),
    "broadcast": lambda xp: xp.arange(12).reshape(3, 4) * xp.arange(4),
    "cast": lambda xp: xp.arange(9).astype("f4") / 3, "a mask": lambda xp: (xp.arange(9) > 2) & (xp.arange(9) < 7),
    "turned back": lambda xp: (xp.arange(12).reshape(3, 4).T * 2).T + 1,
}
each = pytest.mark.parametrize("make", MADE.values(), ids=MADE)


def expected_of(make):
    with np.errstate(all="ignore"):
        return make(np)


def read(x):
    """What who reads it on the host gets."""
    return handles.host_of(x, "a test")


@each
def test_who_reads_it_gets_what_numpy_has(make):
    expected = expected_of(make)
    x = make(lazy)
    with warnings.catch_warnings(), np.errstate(all="warn"), lazyarray.no_transfers():
        warnings.simplefilter("error")
        for _ in range(2):
            found = read(x)
            assert type(found) is np.ndarray and not found.flags.writeable
            assert (found.dtype, found.shape, found.strides) == (expected.dtype, expected.shape, expected.strides)
            assert found.tobytes() == expected.tobytes()
    assert x._self_storage.state == "pending"


@each
def test_views_of_it(make):
    expected, x = expected_of(make), make(lazy)
    for view in (lambda a: a[1:], lambda a: a[..., ::-1], lambda a: a.T, lambda a: a[:0], lambda a: a.view("u1")):
        try:
            plain = view(expected)
        except ValueError:      # the last axis is not contiguous
            continue
        found = read(view(x))
        assert (found.dtype, found.shape) == (plain.dtype, plain.shape) and found.tobytes() == plain.tobytes()
        assert found.strides == plain.strides or not plain.size


@each
def test_it_is_new_each_time(make):
    node, expected = make(lazy)._self_storage.pending, expected_of(make)
    for _ in range(2):
        found = node.on_host()
        if found is not None:
            assert type(found) is np.ndarray and found.ndim == 1 and found.flags.writeable
            assert found.dtype == expected.dtype and found.size == expected.size
            found[...] = 1        # nobody else's


@pytest.mark.parametrize("setting", [{"all": "warn"}, {"divide": "ignore"}, {"all": "raise"}])
def test_what_numpy_is_told_of_errors_stays(setting):
    x = lazy.arange(5) / 0
    y = lazy.arange(5.0) * np.inf
    with warnings.catch_warnings(), np.errstate(**setting):
        warnings.simplefilter("error")
        before = np.geterr()
        for made in (x, y):
            assert np.isnan(read(made)[0])
            assert np.geterr() == before
        if setting["all" if "all" in setting else "divide"] == "raise":
            with pytest.raises(FloatingPointError):
                np.ones(1) / np.zeros(1)


@each
def test_nothing_is_kept(make):
    read(make(lazy))
    node = make(lazy)._self_storage.pending
    kept = node, node.step, node.operands, node.shape, node.size, lazyarray.device()

    def work():
        for _ in range(100):
            read(make(lazy))
            node.on_host()

    growth(work, kept, 50)


def test_an_error_within_leaves_all_as_it_was(monkeypatch):
    x = lazy.arange(7) / 3
    node = x._self_storage.pending

    def failing(*operands):
        raise MemoryError("no more")

    before = np.geterr()
    monkeypatch.setitem(host_execution.functions, node.step, (failing, True))
    for _ in range(2):      # not locked by the first
        with pytest.raises(MemoryError, match="no more"):
            read(x)
        assert np.geterr() == before
    monkeypatch.undo()
    with lazyarray.options(defer_from=16 << 20):
        assert read(x).tolist() == (np.arange(7) / 3).tolist()


def test_what_has_bytes_on_the_device_is_left_to_it():
    x = lazy.arange(5) + lazyarray.asarray(np.arange(5))
    node = x._self_storage.pending
    if node is not None:
        assert node.on_host() is None
    assert read(x).tolist() == [0, 2, 4, 6, 8]


def test_of_other_dtypes_than_was_said_is_left_to_the_device(monkeypatch):
    x = lazy.arange(5) * 2
    node = x._self_storage.pending
    monkeypatch.setitem(host_execution.functions, node.step, (np.true_divide, False))
    assert node.on_host() is None


def test_places_are_kept_and_not_written():
    a, b = host_execution.places[10], host_execution.places[10]
    assert a is b and not a.flags.writeable and a.tolist() == list(range(10))
    many = host_execution.places[1 << 16]
    assert many.flags.writeable and many is not host_execution.places[1 << 16]
    few = host_execution.Places(np.dtype("f4"))
    for n in range(2 * host_execution._MOST):
        assert len(few[n]) == n
    assert len(few) <= host_execution._MOST and few[5].dtype == np.float32


# -- views ---------------------------------------------------------------------------------------

def test_turned_and_reshaped():
    for shape in ((6,), (2, 3), (1, 6, 1), (0, 4)):
        plain = np.arange(float(np.prod(shape))).reshape(shape)
        for x in (lazyarray.asarray(plain), lazyarray.asarray(plain).T):
            turned = handles.turned(x)
            assert turned.base is (x if x.base is None else x.base) and turned.shape == x.shape[::-1]
            for new in ((-1,), ((-1, 1),), (x.size,), ((x.size, 1),)):
                if x.size == 0 and -1 in np.ravel(new):
                    continue
                found = handles.reshaped(x, new)
                if not handles.meta_of(x).flags.c_contiguous:
                    assert found is None
                    continue
                assert found.shape == np.empty(x.shape).reshape(*new).shape
                assert views.offset_of(found._self_meta) == views.offset_of(handles.meta_of(x))
    assert handles.reshaped(x, ()) is None and handles.reshaped(x, (np.int64(0),)) is None
