"""Settings: blocks, functions, the whole process; threads do not see each other's blocks."""
from __future__ import annotations

import asyncio
import threading

import pytest

from lazyarray import options
from lazyarray.settings.options import Options, current


@pytest.fixture(autouse=True, scope="module")
def _everything_is_deferred():
    """Not here: these tests are about the defaults."""
    before = options.set(defer_from=Options().defer_from)
    yield
    options.set(defer_from=before.defer_from)


def test_a_block_changes_only_what_it_names():
    before = current()
    with options(bulk_reads=7):
        assert current() == before._replace(bulk_reads=7)
    assert current() == before


def test_blocks_nest():
    with options(bulk_reads=7, check_indices=False):
        with options(bulk_reads=8):
            assert (current().bulk_reads, current().check_indices) == (8, False)
        assert current().bulk_reads == 7


def test_a_block_ends_with_an_error():
    with pytest.raises(ZeroDivisionError), options(bulk_reads=7):
        1 / 0
    assert current() == Options()


def test_as_a_decorator():
    @options(bulk_reads=7)
    def inside(depth):
        return current().bulk_reads if depth == 0 else inside(depth - 1)

    assert inside(0) == inside(3) == 7
    assert current().bulk_reads == 4


def test_as_a_decorator_of_a_coroutine():
    @options(bulk_reads=7)
    async def inside():
        await asyncio.sleep(0)
        return current().bulk_reads

    async def main():
        inner, outer = await asyncio.gather(inside(), asyncio.sleep(0, current().bulk_reads))
        return inner, outer, current().bulk_reads

    assert asyncio.run(main()) == (7, 4, 4)


def test_a_generator_is_refused():
    def numbers():
        yield current().bulk_reads

    with pytest.raises(TypeError, match="with block"):
        options(bulk_reads=7)(numbers)


def test_process_wide(restored_defaults):
    before = options.set(bulk_reads=9)
    assert before.bulk_reads == 4
    seen = []
    thread = threading.Thread(target=lambda: seen.append(options.get().bulk_reads))
    thread.start()
    thread.join()
    assert seen == [9] and options.get().bulk_reads == 9
    with options(bulk_reads=2):
        assert current().bulk_reads == 2


def test_threads_do_not_see_each_others_blocks():
    block = options(bulk_reads=7)
    seen, entered, leave = [], threading.Event(), threading.Event()

    def other():
        with block:  # the same object as in the main thread
            entered.set()
            leave.wait(10)
            seen.append(current().bulk_reads)
        seen.append(current().bulk_reads)

    thread = threading.Thread(target=other)
    with block:
        thread.start()
        entered.wait(10)
    assert current().bulk_reads == 4
    leave.set()
    thread.join()
    assert seen == [7, 4]


def test_blocks_may_end_in_any_order():
    first, second = options(bulk_reads=5), options(check_indices=False)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not current().check_indices
    second.__exit__(None, None, None)
    assert current() == Options()


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"no_such": 1}, TypeError),
        ({"check_indices": 1}, TypeError),
        ({"ordered_assignment": None}, TypeError),
        ({"bulk_reads": 1.5}, TypeError),
        ({"bulk_reads": True}, TypeError),
        ({"bulk_reads": 0}, ValueError),
        ({"min_bytes": 1e6}, TypeError),
        ({"min_bytes": -1}, ValueError),
        ({"write_tracking": "always"}, ValueError),
        ({"lazy": "no"}, TypeError),
    ],
)
def test_mistakes_are_told_at_once(changes, error):
    with pytest.raises(error, match=next(iter(changes))):
        options(**changes)
    with pytest.raises(error):
        options.set(**changes)
    assert current() == Options()


def test_settings_are_immutable():
    with pytest.raises(AttributeError):
        current().bulk_reads = 1


def test_repr():
    assert repr(options(bulk_reads=3)) == "options(bulk_reads=3)"
