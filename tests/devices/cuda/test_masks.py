"""``x[mask]`` with one mask: what the device's selection gives is what NumPy gives, with the same events and errors."""
from __future__ import annotations

import threading

import numpy as np
import pytest

import lazyarray

DTYPES = "?bBhHiIlLefdFD"
DEVICE = lazyarray.device()
#: Around the borders of what a kernel's block takes.
SIZES = (1, 15, 16, 17, 255, 257, 1023, 1024, 1025, 4096, 5000, 2048 * 1024 - 1, 2048 * 1024 + 5)


@pytest.fixture
def selected(monkeypatch):
    """What the device finds of masks; it is asked about those of small arrays too, and its kernels are there."""
    found = []
    of_mask = DEVICE.selected

    def noted(mask):
        result = of_mask(mask)
        if result is None:
            DEVICE.kernels.wait()
            result = of_mask(mask)
        assert result is not None
        found.append(result)
        return result

    monkeypatch.setattr(DEVICE, "selected", noted)
    return found


def numbers(shape, dtype):
    generator = np.random.default_rng(0)
    values = generator.normal(size=shape) * 50
    if np.dtype(dtype).kind == "c":
        values = values + 1j * generator.normal(size=shape)
    return (abs(values) if np.dtype(dtype).kind == "u" else values).astype(dtype)


def check(selected, values, mask, x=None, lazy_mask=None):
    """`x` (of `values`) by `lazy_mask` (of `mask`): by the device's selection, with nothing on the host."""
    x = lazyarray.asarray(values) if x is None else x
    lazy_mask = lazyarray.asarray(mask) if lazy_mask is None else lazy_mask
    selected.clear()
    with lazyarray.trace() as events:
        found = x[lazy_mask]
    assert len(selected) == 1
    assert [(event.kind, event.reason, event.shape, event.dtype, event.nbytes) for event in events] == [
        ("synchronise", "boolean-mask size", values.shape, values.dtype, 0)]
    expected = values[mask]
    assert type(found) is lazyarray.LazyNdarray and found.flags.c_contiguous and found.flags.writeable
    assert (found.shape, found.dtype, found.strides) == (expected.shape, expected.dtype, expected.strides)
    assert np.asarray(found).tobytes() == expected.tobytes()


@pytest.mark.parametrize("share", [0, 0.001, 0.4, 1])
def test_sizes(selected, share):
    for size in SIZES:
        check(selected, numbers(size, "f"), np.random.default_rng(size).random(size) < share)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(selected, dtype):
    mask = np.random.default_rng(1).random(3001) < 0.5
    for row in ((), (3,), (8,)):
        check(selected, numbers((3001, *row), dtype), mask)


@pytest.mark.parametrize("row", [1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 32, 33, 63, 64, 65, 100, 1000])
def test_rows(selected, row):
    mask = np.random.default_rng(1).random(2050) < 0.5
    for dtype in "Bhfd":
        check(selected, numbers((2050, row), dtype), mask)


def test_few_rows_that_are_wide(selected):
    for mask in ([1, 0, 1, 1, 0], [0, 0, 0, 0, 1], [0] * 5):
        check(selected, numbers((5, 300, 1001), "f"), np.array(mask, bool))


def test_many_rows_of_which_some_neighbours_are_taken(selected):
    values = numbers((200_000, 8), "f")
    for first, last in ((0, 1000), (100_000, 101_025), (199_999, 200_000)):
        mask = np.zeros(200_000, bool)
        mask[first:last] = True
        check(selected, values, mask)


def test_masks_of_several_axes(selected):
    mask = np.random.default_rng(1).random((12, 9, 50)) < 0.3
    check(selected, numbers((12, 9, 50), "d"), mask)
    check(selected, numbers((12, 9, 50, 3), "h"), mask)
    check(selected, mask, mask)


@pytest.mark.parametrize("first", [1, 2, 3, 4, 8])
def test_views(selected, first):
    """Their addresses are multiples of their elements' size only."""
    mask = np.random.default_rng(1).random(4000) < 0.5
    for dtype in "Bhfd":
        values = numbers(4000, dtype)
        rows = numbers((4000, 4), dtype)
        x, y, lazy_mask, other = (lazyarray.asarray(a) for a in (values, rows, mask, mask))
        check(selected, values[first:], mask[first:], x[first:], lazy_mask[first:])
        check(selected, values[first:], mask[:-first], x[first:], lazy_mask[:-first])
        check(selected, rows[first:], mask[first:], y[first:], other[first:])      # of one that was used, more is known


def test_what_is_recorded_is_computed_first(selected):
    values, labels = numbers((5000, 8), "f"), np.arange(5000) % 7
    x, y = lazyarray.asarray(values), lazyarray.asarray(labels)
    with lazyarray.options(defer_from=0):
        check(selected, values, labels == 3, x, y == 3)
        check(selected, values + 1, labels == 3, x + 1, y == 3)
        y += 1
        check(selected, values, labels + 1 == 3, x, y == 3)


def test_what_foreign_code_wrote_is_seen(selected):
    values, mask = numbers((5000, 3), "f"), np.arange(5000) % 3 == 0
    x, lazy_mask = lazyarray.asarray(values), lazyarray.asarray(mask)
    np.asarray(x)[0] = values[0] = 7
    np.asarray(lazy_mask)[1] = mask[1] = True
    assert np.array_equal(x[lazy_mask], values[mask]) and len(selected) == 1


@pytest.mark.parametrize(("kind", "events"), [
    ("the host's", 2), ("a view of the host's", 2), ("the host's in a tuple", 2), ("in a tuple", 1),
    ("the device's", 1)])
def test_masks_of_other_kinds(selected, kind, events):
    """A short one of the host is none of these: where it is true is looked up there."""
    values, mask = numbers((20_000, 3), "f"), np.arange(20_000) % 3 == 0
    lazy_mask = lazyarray.asarray(mask)
    index = {"the host's": mask, "a view of the host's": mask[::-1][::-1], "the host's in a tuple": (mask,),
             "in a tuple": (lazy_mask,), "the device's": lazyarray.asdevice(lazy_mask)}[kind]
    x = lazyarray.asarray(values)
    with lazyarray.trace() as trace:
        found = x[index]
    assert np.array_equal(found, values[mask]) and len(selected) == 1
    assert [event.kind for event in trace] == ["upload", "synchronise"][-events:]


@pytest.mark.parametrize("index", [
    lambda m: (m, 0), lambda m: (m, slice(1, None)), lambda m: (None, m), lambda m: np.bool_(True)])
def test_masks_among_others_take_the_other_way(selected, index):
    values, mask = numbers((5000, 3), "f"), np.arange(5000) % 3 == 0
    x, lazy_mask = lazyarray.asarray(values), lazyarray.asarray(mask)
    assert np.array_equal(x[index(lazy_mask)], values[index(mask)]) and len(selected) <= 1      # for its positions


@pytest.mark.parametrize("index", [lambda m: (m, Ellipsis), lambda m: m.tolist(), lambda m: (0, m)])
def test_one_mask_of_what_else_leaves_the_axes_as_they_are(selected, index):
    values, mask = numbers((1, 20_000, 3), "f"), np.arange(20_000) % 3 == 0
    key = index(mask)
    values = values if type(key) is tuple and type(key[0]) is int else values[0]
    x, lazy_mask = lazyarray.asarray(values), lazyarray.asarray(mask)
    assert np.array_equal(x[index(lazy_mask)], values[key]) and len(selected) == 1


@pytest.mark.together
@pytest.mark.parametrize("change", ["x.T", "x[::2]", "mask[::2]", "x[:0]", "x[:, :0]", "np.asfortranarray(x)"])
def test_other_layouts_take_the_other_way(selected, change):
    def changed(x, mask):
        if change == "mask[::2]":
            return x[:2500], mask[::2]
        x = eval(change, {"x": x, "np": np})
        return x, mask[:len(x)]

    values, mask = numbers((5000, 6), "f"), np.arange(5000) % 3 == 0
    x, lazy_mask = changed(lazyarray.asarray(values), lazyarray.asarray(mask))
    values, mask = changed(values, mask)
    found, expected = x[lazy_mask], values[mask]
    assert found.shape == expected.shape and np.array_equal(found, expected) and len(selected) <= 1     # for positions


def test_what_cannot_be_selected_yet_takes_the_other_way(monkeypatch):
    asked = []
    monkeypatch.setattr(DEVICE, "selected", asked.append)
    values, mask = numbers(50, "f"), np.arange(50) % 3 == 0
    assert np.array_equal(lazyarray.asarray(values)[lazyarray.asarray(mask)], values[mask]) and len(asked) == 1


@pytest.mark.parametrize("shape", [(1,), (4097,), (60, 70), (2, 3, 400), (3, 4, 5, 60), (2, 3, 4, 5, 6)])
@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f4", "c16"])
def test_positions_are_numpys(shape, dtype):
    values = np.random.default_rng(0).integers(0, 3, shape).astype(dtype)
    for make in (lambda a: a, lambda a: a.T, lambda a: a[::-1]):
        x = make(lazyarray.asarray(values) if dtype == "?" else lazyarray.asarray(values) * 1)
        for _ in range(2):      # by the device's library, until there is a kernel
            for function in (np.nonzero, np.argwhere, np.flatnonzero, lambda a: np.where(a), np.unique):
                found, expected = function(x), function(make(values))
                assert type(found) is type(expected) or lazyarray.is_lazy(found)
                found = [np.asarray(part) for part in (found if type(found) is tuple else [found])]
                np.testing.assert_equal(found, list(expected) if type(expected) is tuple else [expected])
            wait = getattr(getattr(DEVICE, "kernels", None), "wait", None)
            if wait is not None:
                wait()


@pytest.mark.parametrize("shape", [(4,), (6,), (5, 2), (5, 3, 1), (3, 5), ()])
def test_masks_of_other_shapes_are_numpys_errors(selected, shape):
    values, mask = numbers((5, 3), "f"), np.ones(shape, bool)
    x = lazyarray.asarray(values)
    for index in (mask, lazyarray.asarray(mask)):
        try:
            expected = values[mask]
        except IndexError as error:
            with pytest.raises(IndexError) as raised:
                x[index]
            assert str(raised.value) == str(error)
        else:
            assert np.array_equal(x[index], expected)
    assert not selected


def test_only_a_mask_of_the_host_is_a_transfer(selected):
    mask = np.arange(5000) % 3 == 0
    x, lazy_mask = lazyarray.asarray(numbers(5000, "f")), lazyarray.asarray(mask)
    with lazyarray.no_transfers():
        x[lazy_mask]
        with pytest.raises(lazyarray.TransferError):
            x[mask]
    assert len(selected) == 1


def test_threads_and_streams_do_not_get_in_each_others_way(selected):
    values = numbers((40_000, 4), "f")
    x = lazyarray.asarray(values)
    masks = [np.random.default_rng(i).random(40_000) < (i + 1) / 9 for i in range(8)]
    wrong = []

    def work(mask, own):
        for _ in range(20):
            lazy_mask = lazyarray.asarray(mask)     # of one that was used, more is known
            if own:
                with DEVICE.new_stream():
                    found = np.asarray(x[lazy_mask])
            else:
                found = np.asarray(x[lazy_mask])
            if not np.array_equal(found, values[mask]):
                wrong.append(mask)

    x[lazyarray.asarray(masks[0])]
    threads = [threading.Thread(target=work, args=(mask, i % 2)) for i, mask in enumerate(masks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(selected) == 161


@pytest.mark.together
@pytest.mark.parametrize("shape", [(5000,), (5000, 3), (50, 100)])
def test_one_mask_is_counted_once(selected, shape):
    """What is taken, put and looked for again and again, until it is written."""
    values, mask = numbers(shape, "d"), np.arange(5000).reshape(shape[:2] if shape == (50, 100) else 5000) % 3 == 0
    x, y, lazy_mask = lazyarray.asarray(values), lazyarray.asarray(values * 2), lazyarray.asarray(mask)
    expected, other = values.copy(), values * 2
    for turn in range(2):
        with lazyarray.trace() as events:
            x[lazy_mask] -= 1
            x[lazy_mask] = y[lazy_mask] + x[lazy_mask]
            assert len(y[lazy_mask]) == mask.sum()
        expected[mask] -= 1
        expected[mask] = other[mask] + expected[mask]
        assert len(selected) == 1 + turn and [event.kind for event in events] == ["synchronise"]
        np.testing.assert_array_equal(np.asarray(x), expected)
        lazy_mask[:7] ^= True
        mask[:7] ^= True


@pytest.mark.together
def test_a_mask_that_is_counted_on_another_stream(selected):
    stream = DEVICE.new_stream()
    values, mask = numbers(5000, "d"), np.arange(5000) % 3 == 0
    x, lazy_mask = lazyarray.asarray(values), lazyarray.asarray(mask)
    assert np.array_equal(x[lazy_mask], values[mask])
    with stream:
        assert np.array_equal(x[lazy_mask], values[mask])


@pytest.mark.together
@pytest.mark.parametrize("shape", [(5000,), (5000, 3), (50, 100)])
def test_a_mask_that_is_nowhere_true_stays_on_the_device(selected, shape):
    mask = np.zeros(shape[:2] if shape == (50, 100) else 5000, bool)
    x, y, lazy_mask = (lazyarray.asarray(values) for values in (np.ones(shape), np.zeros(shape), mask))
    with lazyarray.trace() as events:
        x[lazy_mask] = y[lazy_mask]
        x[lazy_mask] -= 1
    assert [event.kind for event in events] == ["synchronise"] and len(selected) == 1
    assert np.asarray(x).all()
