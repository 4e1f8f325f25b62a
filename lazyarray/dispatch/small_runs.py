"""Small arrays of the device that the host fetches, because a program goes on with nothing else.

What comes of a large array is the device's, and so is what is computed of that. A kernel takes the device some
microseconds, whatever it computes, and NumPy takes one for a few elements. So an array whose elements or rows are taken
one by one is fetched, and one beside which the host's own are needed again and again, and so are the arrays of a call
that comes after many on small arrays. An array that is too large to be small, but not for the host, is fetched, or
given to the host, after many elements or rows of such in a row, with no call on a large array between. Numbers of calls
decide, never times: what a program computes where is the same each time.
"""
from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import TransferError, own_threads
from ..errors.interrupts import holding
from ..errors.own_threads import others_run
from ..settings.options import current as current_options
from ..storage import coherence, handles
from ..storage.state import ON_BOTH, all_ended
from ..storage.storage import Storage

if TYPE_CHECKING:
    from ..storage.handles import ArrayHandle, ScalarHandle

__all__ = ["TAKEN", "fetch_run", "fetch_taken", "for_native", "give_to_host"]

#: Elements and rows that are taken of a small array on the device before it is fetched, and calls in which others would
#: have to be sent to it. A fetch takes as long as some five calls of the device, and who takes one after the other goes
#: on with each of them: on the host, from then on.
TAKEN = 16
#: So many calls on the host make up for a fetch of few bytes, which waits for the device; one more for so many bytes.
_CALLS, _EACH = 12, 16 << 10
#: The most bytes of an array of which a loop takes elements or rows that the host gets, and for how many of them one
#: that was taken makes up where these are more than `ON_BOTH`. (On an H200 4 programs of 5 took 0.03 to 0.8 of the
#: time: ``benchmarks/results/rows-of-large-arrays-cuda-2026-12-01.json``. Other limits were not tried.)
GIVEN, GIVEN_EACH = 64 << 20, 64 << 10
#: The most that the bytes of what is fetched for the first time count as: if the program goes on with that, it pays.
_FIRST = 32


def fetch_taken(x: ArrayHandle, beside: bool) -> None:
    """Have a small array on the host, too, whose elements or rows are taken one by one, or that is used again and again
    beside small arrays that the host alone has; if that is allowed, and it is not a part of a large one, which would be
    written in a longer way from then on.
    """
    storage = x._self_storage
    if current_options().small_on_host and _may_be_fetched(storage):
        with contextlib.suppress(TransferError):        # `no_transfers` is in force
            if beside:
                _fetch(storage, handles.meta_of(x), "small arrays of the host are computed with it again and again")
            else:       # all of it: the next element may be that of another row
                _fetch(storage, coherence.whole_of(storage), "its elements or rows are taken one by one")


def give_to_host(x: ArrayHandle, written: bool) -> int:
    """Have all of an array on the host, too, of which elements and rows are taken and assigned one by one, though it is
    too large to be small; where they are to be `written`, on the host alone.

    How many of them make up for it; 0 if that is not wanted here, or can't be.
    """
    storage = x._self_storage
    if not current_options().small_on_host or others_run() or not _may_be_fetched(storage, GIVEN) or (
            written and _is_lent(storage)):
        return 0
    whole = coherence.whole_of(storage)
    with contextlib.suppress(TransferError):        # `no_transfers` is in force
        _fetch(storage, whole, "its elements or rows are taken and assigned one by one")
        storage.fetched = storage.writes
        storage.taken = 0
        with holding(storage.lock):
            coherence.note_on_host(storage)
        if written:
            storage.wrote_host(whole)
        return _CALLS + storage.nbytes // (_EACH if storage.nbytes <= ON_BOTH else GIVEN_EACH)
    return 0


def fetch_run(lacking: Sequence[ArrayHandle | ScalarHandle], length: int) -> int:
    """Have the arrays of a call on the host, too, which is the last of `length` calls on small arrays, if that does not
    take longer than all of these.

    How many calls on the host make up for it, or for the look at what can't be fetched; 0 if that is not wanted here.
    Of a storage of which one has a part all is: the next call is about another part.
    """
    if not current_options().small_on_host:
        return 0
    scalars = [x for x in lacking if handles.is_scalar(x)]
    storages = {id(x._self_storage): x._self_storage for x in lacking if not handles.is_scalar(x)}
    if not all(map(_may_be_fetched, storages.values())):
        return _CALLS
    calls = _CALLS + sum(storage.nbytes for storage in storages.values()) // _EACH
    if calls > length:
        return 1
    nbytes = [0, 0]     # of what is fetched for the first time, and again
    for storage in storages.values():
        nbytes[storage.fetched >= 0] += storage.nbytes
    with contextlib.suppress(TransferError):        # `no_transfers` is in force
        for storage in storages.values():
            storage.fill()          # all of them, before one is waited for
        for storage in storages.values():
            _fetch(storage, coherence.whole_of(storage), "small arrays are computed with one after the other")
            storage.fetched = storage.writes
        for scalar in scalars:
            handles.value_of(scalar)
    return _CALLS + min(nbytes[0] // _EACH, _FIRST) + nbytes[1] // _EACH


def _may_be_fetched(storage: Any, most: int = ON_BOTH) -> bool:
    return type(storage) is Storage and storage.nbytes <= most and not (
        storage.foreign or storage.compacts or storage.loans and not all_ended(storage))


def _is_lent(storage: Storage) -> bool:
    """Whether somebody has an alias of it: what the host writes there has to be told, each time."""
    if storage.mirror is not None and storage.mirror.lent:
        with holding(storage.lock):
            coherence.collect(storage)      # of those that are gone nothing is left to be looked at then
    return storage.mirror is not None and storage.mirror.lent


def _fetch(storage: Storage, view: Any, why: str) -> None:
    if storage.pending is not None:     # else the host may compute it, and it goes on to wait
        storage.fill()
    storage.read_host(view, why)


def for_native() -> dict[str, Any]:
    """What the part in C calls and goes by."""
    return {"fetch_taken": fetch_taken, "fetch_run": fetch_run, "give_to_host": give_to_host,
            **own_threads.for_native(), "TAKEN": TAKEN, "ON_BOTH": ON_BOTH,
            "GIVEN": GIVEN, "GIVEN_EACH": GIVEN_EACH}
