"""Small arrays that are current on the host stay there: NumPy computes, and nothing else about a program changes."""
from __future__ import annotations

import operator
import threading
import warnings

import numpy as np
import parity
import pytest
import recipes
import recipes_members
import recipes_ufuncs

import lazyarray
import lazyarray.numpy as xnp
from lazyarray import _native
from lazyarray.storage import handles
from lazyarray.testing import assert_copies

pytestmark = pytest.mark.skipif(_native.recording is None, reason="without the part in C no array stays on the host")

LARGE = (1000, 6)


@pytest.fixture(autouse=True)
def _small_arrays_stay(monkeypatch):
    """As it is outside of the tests."""
    monkeypatch.setattr(parity, "SMALL_STAY", True)
    before = _native.recording.small(8192)
    yield
    _native.recording.small(before)


def small(values=None):
    return lazyarray.asarray(np.arange(6.0) if values is None else np.array(values))


def large():
    return lazyarray.asarray(np.ones(LARGE))


def state(x):
    return x._self_storage.state


# -- what NumPy gives -------------------------------------------------------------------------------------------------

CASES = {**dict(recipes_ufuncs.groups()), **{recipes.name_of(func): recipes.cases_of(func) for func in recipes.RECIPES},
         **{f"ndarray.{name}": recipes_members.cases_of(name) for name in recipes_members.MEMBERS}}
#: In the tests of every day some of them: C decides about all in the same few ways.
SOME = sorted(CASES)[::6]


@pytest.mark.parametrize("name", SOME)
def test_it_is_numpys_answer(name):
    found = parity.failures(CASES[name], parity.Library.lazyarray())
    assert not found, parity.report(found)


CALLS = {
    "operator": lambda x, y: x * 2 + y, "power": lambda x, y: x ** 2 - y ** 0.5,
    "compare": lambda x, y: (x > 2) & (y == 1),
    "ufunc": lambda x, y: np.hypot(np.sin(x), y), "reduce": lambda x, y: np.add.reduce(x), "outer": np.multiply.outer,
    "method": lambda x, y: x.reshape(2, 3).sum(axis=0), "mean": lambda x, y: x.mean() * y, "index": lambda x, y: x[1:4],
    "mask": lambda x, y: x[x > 2], "array index": lambda x, y: x[np.array([5, 0, 0])], "element": lambda x, y: x[3] + y,
    "concatenate": lambda x, y: np.concatenate([x, y]), "where": lambda x, y: np.where(x > 2, x, y),
    "matrices": lambda x, y: np.tile(np.outer(x, y), (20, 1, 1)) @ np.tile(np.eye(6), (20, 1, 1)),
    "matrix": lambda x, y: np.outer(x, y) @ x, "solve": lambda x, y: np.linalg.solve(np.eye(6) + np.outer(x, y), y),
    "fft": lambda x, y: np.fft.irfft(np.fft.rfft(x)), "einsum": lambda x, y: np.einsum("i,i->", x, y),
    "sort": lambda x, y: np.sort(-x), "divmod": lambda x, y: divmod(x, y), "tuple": lambda x, y: np.nonzero(x),
    "named": lambda x, y: np.linalg.slogdet(np.diag(x + 1)), "pad": lambda x, y: np.pad(x, 2),
    "out": lambda x, y: np.add(x, y, out=np.empty_like(x)),
    "masked": lambda x, y: np.sqrt(x, where=x > 2, out=y.copy()),
    "repeat": lambda x, y: np.repeat(x, 3), "tile": lambda x, y: np.tile(x, (2, 2)),
    "list": lambda x, y: np.stack([x, [1] * 6]),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_host_computes_and_nothing_is_copied(name):
    x, y = np.arange(6.0), np.ones(6)
    expected = CALLS[name](x, y)
    with assert_copies(uploads=0, materialisations=0, fallbacks=0):
        found = CALLS[name](small(x), small(y))
    for want, got in zip(*(part if isinstance(part, tuple) else (part,) for part in (expected, found)), strict=True):
        assert np.array_equal(want, np.asarray(got)) and np.shape(want) == np.shape(got) and want.dtype == got.dtype
        assert isinstance(got, np.generic) or lazyarray.is_lazy(got) and state(got) == "host"
    assert type(expected) is type(found) or type(expected) is np.ndarray


def test_errors_are_numpys_and_come_at_the_call():
    x = small()
    with pytest.warns(RuntimeWarning, match="divide by zero") as caught:
        1 / x
    assert caught[0].filename == __file__
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        np.log(x)
    for call in (lambda a: a[7], lambda a: a + np.ones(4), lambda a: np.concatenate([a, np.ones((2, 2))]),
                 lambda a: a.reshape(4), lambda a: operator.iadd(a, 1j), lambda a: a @ np.ones(5)):
        with pytest.raises(Exception) as wanted:
            call(np.arange(6.0))
        with pytest.raises(type(wanted.value)) as found:
            call(x)
        assert str(found.value) == str(wanted.value)


def test_scalars_are_numpys_own():
    x = small()
    assert type(x.sum()) is np.float64 and type(x[2]) is np.float64 and type(np.max(x)) is np.float64
    assert [type(value) for value in x] == [np.float64] * 6


# -- what stays, and what is uploaded ---------------------------------------------------------------------------------

def test_it_is_uploaded_once_when_a_large_array_needs_it():
    x, y = small(), large()
    with assert_copies(uploads=1, materialisations=0, nbytes=48):
        z = y + x
        w = y * x
    with assert_copies(uploads=0, materialisations=0):      # it is current on the host, which computes
        u = x + 1
    assert state(u) == "host" and np.asarray(z + w)[0, 1] == 3.0


def test_what_only_the_device_has_stays_there():
    y = large()
    mean = y.mean(axis=0)
    with assert_copies(uploads=1, materialisations=0):
        z = np.exp(mean) + small()          # only the small array moves
    assert state(z) in ("device", "pending")
    np.asarray(mean)
    with assert_copies(uploads=0, materialisations=0):      # fetched by the program: from here on the host has it
        assert state(mean + 1) == "host"


def test_a_small_view_is_the_hosts_while_all_of_the_array_is_there():
    y = large()
    y.tolist()      # which the host copies
    with assert_copies(uploads=0, materialisations=0):
        row, element, part = y[3] * 2, y[5, 2], y[[4, 1]] + y[7]
    assert state(row) == state(part) == "host" and type(element) is np.float64
    y += 1      # on the device, which has it alone from here on
    with assert_copies(uploads=0, materialisations=0):
        row = y[3] * 2
    assert state(row) in ("device", "pending") and np.asarray(row).tolist() == [4.0] * 6


@pytest.mark.parametrize("kept", [False, True])
def test_a_small_view_of_what_the_host_does_not_have_or_is_too_large_to_keep_is_the_devices(kept):
    y = lazyarray.asarray(np.ones((100_000, 6))) if kept else large()
    if kept:
        y.tolist()
    with assert_copies(uploads=0, materialisations=0):
        row = y[3] * 2
    assert state(row) in ("device", "pending")


def test_what_is_written_into_a_small_view_is_seen_on_both_sides():
    y, wanted = large(), np.ones(LARGE)
    for a in (y, wanted):
        row = a[3]
        row *= 4
        a[5:7] = a[3]
        a[:, 2] = 7
    assert np.array_equal(np.asarray(y * 2), wanted * 2) and np.array_equal(np.asarray(y), wanted)


def test_the_second_time_an_array_has_memory_on_the_device():
    x, y = small(), large()
    z = y + x
    with assert_copies(uploads=0, materialisations=0):      # made of the copy that is kept
        w = y * x
        x += 1
        assert x.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    v = y + x       # what the host wrote since
    assert np.asarray(z)[0, 1] == 2.0 and np.asarray(w)[0, 5] == 5.0 and np.asarray(v)[0, 5] == 7.0


def test_costly_functions_are_done_with_fewer_bytes():
    x = small(np.ones(1000))
    assert state(x + 1) == state(np.sqrt(x)) == state(x ** 2) == state(x ** 0.5) == "host"
    for call in (np.sin, np.sort, np.fft.fft, lambda a: a ** 1.5):
        assert state(call(x)) in ("device", "pending") and state(call(x[:50])) == "host"


@pytest.mark.parametrize("call", [
    lambda a, b: np.dot(a, b.T), lambda a, b: a.dot(b.T), lambda a, b: a @ b.T, np.inner, np.outer,
    lambda a, b: np.linalg.matmul(a, b.T), lambda a, b: np.tensordot(a, b, ([1], [1])),
    lambda a, b: np.einsum("ik,jk->ij", a, b)], ids=range(8))
def test_large_products_of_small_arrays_are_the_devices(call):
    rng = np.random.default_rng(0)
    plain = rng.random((900, 8)), rng.random((700, 8))
    small = [xnp.asarray(p.copy()) * 1 for p in plain]
    with lazyarray.trace() as t:
        found = call(*small)
    assert not [event for event in t if event.kind == "host"], t
    np.testing.assert_allclose(np.asarray(found), call(*plain), rtol=1e-12)


def test_large_results_are_the_devices():
    x = small(np.ones(1000))
    above = x[:, None] > 0
    for call in (lambda: x[:, None] * x, lambda: np.outer(x, x), lambda: x[:, None] @ x[None], lambda: np.diag(x),
                 lambda: np.repeat(x, 1000), lambda: np.tile(x, 99), lambda: np.where(above, x, 1),
                 lambda: np.pad(x, 5000),
                 lambda: np.multiply.outer(x, x), lambda: np.einsum("i,j->ij", x, x), lambda: np.fft.fft(x, 99999)):
        with lazyarray.trace() as t:
            result = call()
        assert not t.host_calls and not t.materialisations and result.nbytes > 8192


def test_new_arrays_of_numbers_are_on_the_host_if_they_are_small():
    with assert_copies(uploads=0, materialisations=0):
        made = [xnp.zeros(3), xnp.ones((2, 2), int), xnp.arange(10), xnp.linspace(0, 1, 5), xnp.eye(3),
                xnp.full(2, 7.0), xnp.array([1.0, 2.0]),
                xnp.zeros_like(small()), xnp.array([small(), small()]), xnp.identity(2)]
        results = [x + 1 for x in made]
    assert all(state(x) == "host" and lazyarray.is_lazy(x) for x in results)
    assert state(xnp.zeros(100_000)) == "pending"


def test_no_transfers_allows_what_the_library_put_off():
    x, y = small(), large()
    with lazyarray.no_transfers():
        z = y + x * 2
        x += 1
        w = y + x
    assert np.asarray(z)[0, 1] == 3.0 and np.asarray(w)[0, 1] == 3.0
    alias = np.asarray(x)
    alias[0] = 9
    with lazyarray.no_transfers(), pytest.raises(lazyarray.TransferError):      # this the program wrote
        y + x


def test_the_trace_tells():
    x = small()
    with lazyarray.trace() as t:
        y = np.sqrt(x) + 1
    assert [(event.kind, event.name) for event in t] == [("host", "numpy.sqrt"), ("host", "operator.add")]
    assert t.events[0].reason == "computed on the host: small" and t.events[0].filename == __file__
    assert t.events[1].shape == y.shape and t.nbytes == 0 and "2 calls on the host" in t.summary()


@pytest.mark.parametrize("call", [
    np.linalg.eig, np.linalg.svd, np.linalg.slogdet, lambda x: np.unique(x, return_counts=True),
    lambda x: np.split(x, 2), np.meshgrid, np.modf, np.nonzero])
def test_several_results_are_told_as_one_is(call):
    """Also those in a list, or with names."""
    x = small([[2.0, 1], [1, 3]])
    with lazyarray.trace() as t:
        call(x)
    (event,) = t.of_kind("host")
    assert event.nbytes == 0 and event.dtype is not None



def test_an_option_puts_them_on_the_device():
    with lazyarray.options(small_on_host=False):
        x = small()
        assert state(x) == "device" and state(xnp.zeros(3)) in ("device", "pending")
        np.asarray(x)
    with lazyarray.trace() as t:
        x + 1
    assert not t.host_calls


# -- coherence --------------------------------------------------------------------------------------------------------

def test_views_share_memory():
    x = small()
    view, turned = x[2:5], x.reshape(2, 3).T
    view += 10
    x[0] = -1
    assert x.tolist() == [-1, 1, 12, 13, 14, 5] and turned[0, 0] == -1 and turned[2, 1] == 5
    assert view.base is x and turned.base is x and np.shares_memory(x, view)
    y = large() + x                 # all are uploaded as one
    view *= 2
    assert np.asarray(y)[0].tolist() == [0, 2, 13, 14, 15, 6]
    assert np.asarray(large() + x)[0].tolist() == [0, 2, 25, 27, 29, 6] and turned[1, 0] == 1


def test_writes_on_either_side_are_seen_on_the_other():
    x, y = small(), large()
    view = x[1:3]
    alias = np.asarray(x)
    np.add(y[0], x, out=x)          # on the device, since one operand is there alone
    assert x.tolist() == view.base.tolist() == alias.tolist() == [1, 2, 3, 4, 5, 6] and view.tolist() == [2, 3]
    alias[1] = 50
    assert (x + 0).tolist()[1] == 50 and view[0] == 50 and np.asarray(y + x)[0, 1] == 51
    x -= 1                          # on the host again, where all of it is current
    assert alias.tolist() == [0, 49, 2, 3, 4, 5] and np.asarray(y + x)[0, 1] == 50


@pytest.mark.parametrize("write", [
    lambda x: operator.iadd(x, 1), lambda x: x.sort(), lambda x: x.fill(3), lambda x: np.copyto(x, 5),
    lambda x: np.put(x, [0, 2], 8), lambda x: np.add.at(x, [0, 0], 1), lambda x: np.multiply(x, 3, out=x),
    lambda x: np.cumsum(x, out=x), lambda x: operator.setitem(x, slice(2), 0), lambda x: operator.setitem(x, x > 2, 0),
    lambda x: np.putmask(x, x > 1, 9), lambda x: x.partition(2), lambda x: np.nan_to_num(x, copy=False),
    lambda x: setattr(x, "shape", (2, 3)), lambda x: np.fill_diagonal(x.reshape(2, 3), 7), lambda x: x.put([1], 4)])
@pytest.mark.parametrize("used", ["never", "on the device", "viewed", "aliased"])
def test_writes_in_place(used, write):
    values = [3.0, 1, 4, 1, 5, 9]
    x, y, kept = small(values), large(), None
    if used == "on the device":
        y + x
    elif used != "never":
        kept = x[:] if used == "viewed" else np.asarray(x)
    expected = np.array(values)
    with assert_copies(uploads=0, materialisations=0):
        write(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)     # of the shape
        write(expected)
    assert x.tolist() == expected.tolist() and (kept is None or np.ravel(kept).tolist() == expected.ravel().tolist())
    assert np.asarray(y + x.reshape(-1))[5].tolist() == (expected.reshape(-1) + 1).tolist()


def test_a_device_pointer_ends_it():
    x = small()
    pointer = lazyarray.asdevice(x)
    pointer += 1
    assert (x + 0).tolist() == [1, 2, 3, 4, 5, 6]
    pointer *= 2
    assert x.tolist() == [2, 4, 6, 8, 10, 12]
    del pointer
    x.tolist()
    with assert_copies(uploads=0, materialisations=0):
        x = x + 1
    assert state(x) == "host"


def test_flags_and_forms_can_be_set():
    x = small()
    x.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        x += 1
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1
    y = small()
    y.resize((3, 3), refcheck=False)
    assert y.shape == (3, 3) and (y + 1)[1, 2] == 6 and y[2, 2] == 0


def test_looking_at_it_changes_nothing():
    x = small()
    assert repr(x) == repr(np.arange(6.0)) and x.flags.owndata and x.base is None and x.strides == (8,)
    assert len(x) == 6 and x.nbytes == 48 and 3.0 in x and list(x) == list(range(6)) and x.flat[2] == 2
    with assert_copies(uploads=0, materialisations=0):
        x + 1


def test_threads_that_write_and_upload_agree():
    x, y, stop = small(np.zeros(6)), large(), threading.Event()

    def upload():
        while not stop.is_set():
            y + x

    thread = threading.Thread(target=upload)
    thread.start()
    try:
        for _ in range(300):
            x += 1
    finally:
        stop.set()
        thread.join()
    assert x.tolist() == [300] * 6 and np.asarray(y + x)[0].tolist() == [301] * 6


def test_what_is_at_most_small_is_said_by_the_cost_model():
    from lazyarray.graph.cost_model import Costs

    assert Costs().small() == 95_000 and Costs(launch=1e-7).small() == 0


@pytest.mark.parametrize("shape", [0, (0, 3), (2, 0)])
def test_nothing_is_sent_of_an_array_without_elements(shape, monkeypatch):
    """CUDA refuses to copy a byte to where there is no memory."""
    x = xnp.zeros(shape)
    kind = type(lazyarray.device())
    monkeypatch.setattr(kind, "upload_ranges", lambda *args: pytest.fail("something was sent"))
    pointer = lazyarray.asdevice(x)
    assert pointer.shape == x.shape and np.asarray(x + 1).shape == x.shape
    y = small()
    assert (y[:0] + lazyarray.asarray(np.ones((5, 0)))).shape == (5, 0)


def test_what_both_sides_have_is_written_where_it_need_not_be_sent_again():
    x, y = large(), xnp.zeros((200, 5))         # 48 kB on both sides, and 8 on the host alone
    z = small()
    for array in (x, y, z):
        array[...] = 3
        array += 1
    assert state(x) == "device" and state(y) == state(z) == "host"
    assert np.asarray(x)[0, 0] == np.asarray(y)[0, 0] == 4


def test_when_the_host_is_short_of_memory_what_the_device_has_too_goes():
    from lazyarray.storage import spilling

    x = lazyarray.asarray(np.ones((1000, 100)))
    x.tolist()      # which the host copies
    row = x[3]
    assert state(row + 1) == "host" and x._self_storage.state == "both"
    spilling.relieve_host(1)
    while x._self_storage.state == "both":      # others may have been the first
        spilling.relieve_host(1 << 30)
    assert x._self_storage.state == "device" and state(row + 1) in ("device", "pending")
    x += 1
    alias = np.asarray(x)       # another mirror
    alias[3, 0] = 7
    assert np.asarray(row * 2)[:2].tolist() == [14.0, 4.0] and np.asarray(x[4] + 1)[0] == 3.0


def test_a_read_only_result_of_a_host_function_can_be_used_everywhere():
    host = np.arange(6.0)
    host.flags.writeable = False
    x = lazyarray.lazy(lambda a: host)(large())
    np.testing.assert_array_equal(np.asarray(lazyarray.asarray(x) + large()[0]), host + 1)
    y = handles.host_result(host)
    lazyarray.asdevice(y)
    y += 1
    assert np.array_equal(np.asarray(y), np.arange(6.0) + 1) and host[1] == 1


def test_what_numpy_writes_meanwhile_stays_writable():
    """NumPy says that an array is read-only for as long as a call that writes it back in the end (``np.take``)."""
    x = small()
    host = _native.recording.on_host(x)
    host.flags.writeable = False
    thread = threading.Timer(0.05, host.setflags, (True,))
    thread.start()
    lazyarray.asdevice(x)
    thread.join()
    assert x.flags.writeable and np.asarray(x).flags.writeable
    x[0] = 5
    assert x[0] == 5


# -- zeros that the device writes --------------------------------------------------------------------------------------

@pytest.mark.parametrize("make", [xnp.zeros, xnp.empty, lambda shape: xnp.zeros_like(xnp.ones(shape))],
                         ids=["zeros", "empty", "zeros_like"])
@pytest.mark.parametrize("write", [
    lambda x, y: operator.setitem(x, (slice(1, 3), ...), y), lambda x, y: operator.iadd(x[1:3], y),
    lambda x, y: np.add(y, 1, out=x[1:3]), lambda x, y: np.add.at(x, np.array([1, 2]), y),
    lambda x, y: operator.setitem(x.T, (slice(None), slice(1, 3)), y.T)])
def test_zeros_that_the_device_writes_are_not_sent(make, write):
    y = (large() * 3)[:2]
    np.zeros((5, 6))        # whose memory ``empty`` gets: what is not of zeros has to be sent
    x = make((5, 6))
    view = x[:2]
    with lazyarray.trace() as t:
        write(x, y)
    assert not [e for e in t if e.kind == "upload" and e.nbytes > 16], t      # but for an index
    assert state(x) in ("device", "pending")
    if make is not xnp.empty:
        plain = np.zeros((5, 6))
        write(plain, np.full((2, 6), 3.0))
        assert np.array_equal(x, plain) and np.array_equal(view, plain[:2])
    x[0] = 7
    assert view[0].tolist() == [7] * 6


@pytest.mark.parametrize("see", [repr, np.asarray, np.array, lambda x: x.tolist(), bytes, lambda x: x[0].item(), id],
                         ids=["repr", "asarray", "array", "tolist", "bytes", "item", "nothing"])
@pytest.mark.parametrize("change", [
    lambda x: operator.iadd(x, 1), lambda x: operator.setitem(x, slice(0, 3), 7), lambda x: x.fill(2),
    lambda x: np.copyto(x, 5), lambda x: x.sort(), lambda x: operator.setitem(x, x > 2, 0)])
def test_what_the_device_has_written_is_there_for_the_host_afterwards(see, change):
    x, plain = xnp.zeros(10), np.zeros(10)
    view, early = x[2:8], np.asarray(xnp.zeros(3))
    x[...] = (large() * 3)[:2].reshape(-1)[:10]
    plain[...] = 3
    see(x)
    for array in (x, view):
        assert float((array * 2).max()) == 6 and array.sum() == 3 * array.size and (array == 3).all()
    alias = np.asarray(x)
    change(x)
    change(plain)
    assert np.array_equal(alias, plain) and np.array_equal(view, plain[2:8]) and np.array_equal(x + 0, plain)
    assert not early.any()


def test_what_is_not_zero_is_sent():
    y = (large() * 3)[:1]
    for value in (1.0, -0.0, np.nan):
        x = xnp.zeros((3, 6))
        x[2, 5] = value
        alias = np.asarray(x) if value == 1 else None
        x[:1] = y
        plain = np.zeros((3, 6))
        plain[2, 5] = value
        plain[:1] = 3
        np.testing.assert_array_equal(np.asarray(x), plain)
        assert np.signbit(np.asarray(x)[2, 5]) == np.signbit(plain[2, 5])
        assert alias is None or np.array_equal(alias, plain)


def test_many_small_arrays_are_put_together_and_sent_once():
    parts = [xnp.arange(100.0) + i for i in range(50)]
    with lazyarray.trace() as t:
        x = xnp.concatenate(parts)
        y = np.stack(parts, axis=1) + large()[0, 0]
    assert len([e for e in t if e.kind == "upload"]) <= 2, t
    plain = [np.arange(100.0) + i for i in range(50)]
    assert np.array_equal(x, np.concatenate(plain)) and np.array_equal(y, np.stack(plain, axis=1) + 1)
    assert x._self_storage.nbytes == 40000


def test_a_view_of_many_pieces_sends_all_of_a_small_array():
    x, y = xnp.ones((16, 6, 6)), lazyarray.asarray(np.ones((80, 16, 4, 4))) * 1
    with lazyarray.trace() as t:
        for i in range(3):
            x[:, i:i + 4, i:i + 4] += y[i]
    assert len([e for e in t if e.kind == "upload"]) == 1, t
    plain = np.ones((16, 6, 6))
    for i in range(3):
        plain[:, i:i + 4, i:i + 4] += 1
    assert np.array_equal(x, plain)
