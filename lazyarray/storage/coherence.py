"""The heart: what of a storage is current where, who wrote what, and what is brought up to date.

A storage has up to two homes. Two sets of bytes say what is where:

``mirror.valid``
    bytes of the mirror that are current.
``host_dirty``
    bytes that are current on the host alone; always a part of ``mirror.valid``.

What is in neither is current on the device alone. Aliases that foreign code holds must show what is current, too: a
device write brings them up to date at once.

At any point an interrupt may end what is under way, and leaves each of these functions done or not done. So they keep
an order: bytes are invalid before they are written, what was found to be written is noted before it is forgotten where
it was found, and what is noted twice does no harm. The caller holds the storage's lock.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors.interrupts import holding
from ..errors.own_threads import others_run
from ..events.trace import begin, end, forbidden
from ..settings.options import current as current_options
from . import dirty_upload, foreign_streams, gathered, transfer, views
from .mirror.byte_ranges import Ranges, copy_ranges, runs_of
from .mirror.dirty_tracking import Pages
from .mirror.mirror import Mirror
from .state import ON_BOTH, StorageState, all_ended, changing, is_watched, loans_lock

_u8 = np.dtype(np.uint8)

#: So many runs of bytes, of so many bytes in all, are copied with the gaps between them, if they are at most so many
#: times as many then: to gather them on the device and to scatter them on the host takes longer than the copy.
MANY, LARGE, FEW_GAPS = 1 << 14, 4 << 20, 4
#: A copy of a few bytes takes as long as one of so many more; and the most that is copied because neighbours were.
EACH, MOST_BULK = 1 << 20, 256 << 20
ONE_BY_ONE = "read ahead: elements beside it were read one by one"
#: Ranges of a view up to which account is kept of each.
FEW_RANGES = 1024
#: Bytes of a storage up to which it is sent, and fetched again, as a whole: account of its parts takes longer.
WHOLE = 256 << 10
#: What is written there one by one is all of it from this part on: pieces of 1.9 MB that are written in place, one by
#: one, took 26 us each, and take 6 from there on (the simulated device).
MUCH = 8
#: The same of a storage whose view has more runs of bytes than this.
SCATTERED, FEW_RUNS = 1 << 20, 64


# -- what aliases wrote ----------------------------------------------------------------------------------

def collect(storage: StorageState, exact: bool = False) -> Ranges:
    """Learn what aliases wrote; `exact`: to the byte."""
    storage._let_go()
    mirror = storage.mirror
    if not mirror.lent:
        return Ranges.EMPTY
    return mirror.collect(exact, storage.note_written)


def written_meanwhile(storage: StorageState, view: np.ndarray) -> Ranges | None:
    """Elements of `view`, which is about to be written, that aliases wrote since the statement began; None: unknown.

    What it writes may be made of what was there before: so these are taken to be written after it. (What is written
    from here on is found, and left, when it has ended.)
    """
    mirror = storage.mirror
    if mirror is None or not storage.lock.held or not mirror.lent or not mirror.compares:
        return None
    found = collect(storage, True)
    if not found:
        return found
    offset = storage._offset(view)
    exact = Ranges.of_view(view.shape, view.strides, view.itemsize, offset)
    found = (found & exact).rounded(view.itemsize, offset % view.itemsize) & exact
    storage.host_dirty = storage.host_dirty | found
    return found


# -- the device is brought up to date --------------------------------------------------------------------

def settle_device(storage: StorageState, span: Ranges, view: np.ndarray, why: str, later: Ranges = Ranges.EMPTY,
                  overwritten: Ranges = Ranges.EMPTY, trusting: bool = False, looked: bool = False) -> None:
    """Make the device current within `span`, but for what aliases wrote `later` and what is about to be `overwritten`.

    `trusting`: what GPU code with a pointer may have written is not fetched. `looked`: what aliases wrote is known as
    far as it comes before this.
    """
    if storage.pending is not None:
        storage.fill()
    mirror = storage.mirror
    if mirror is not None:
        if not overwritten and dirty_upload.applies(storage):
            storage._let_go()
            dirty_upload.as_found(storage, span)
        elif not looked:
            collect(storage)
        if storage.compacts and storage.host_dirty:
            # What an alias wrote may lie in any of the compact arrays that somebody holds.
            upload(storage, storage.host_dirty, view, why)
            storage.compacts.refresh(storage, whole_of(storage))
        needed = (storage.host_dirty & span) - later if storage.host_dirty else storage.host_dirty
        if needed and overwritten and storage.host_dirty.covers(overwritten):
            # A write that is interrupted is done, or not: so of what it overwrites, the host alone has all or nothing.
            needed = needed - overwritten
        if storage.host_dirty and not later and (storage.nbytes <= WHOLE or needed and is_sent_whole(storage, view)):
            needed = storage.host_dirty
            if needed.covers(overwritten):
                needed = needed - overwritten
        if needed:
            upload(storage, needed, view, why)
        if mirror.lent and (storage.loans or storage.foreign) and not trusting:
            distrust(storage, view)
    storage.update_clean()


def upload(storage: StorageState, ranges: Ranges, view: np.ndarray, why: str) -> None:
    """Send bytes that only the host has. Until all have arrived they count as not sent."""
    storage._check_usable()
    block = storage.block
    storage.before_change()
    within, storage.sending = storage.sending, ranges
    try:
        with storage.place():
            storage.join_all()
            ranges = ranges & storage.host_dirty    # a handler or a finaliser may have written there meanwhile
            _send(storage, block, ranges, view, why)
            storage.sent(storage.device.stream())
    finally:
        storage.sending = within
    while True:
        dirty = storage.host_dirty
        left = dirty - ranges
        if storage.host_dirty is dirty:     # nothing comes between, as in `Mirror.invalidate`
            storage.host_dirty = left
            break
    storage.spilled = storage.spilled and bool(storage.host_dirty)
    if storage.placed:
        storage.placed = storage.placed - ranges


def _send(storage: StorageState, block: Any, ranges: Ranges, view: np.ndarray, why: str) -> None:
    """Copy ranges of the mirror to the device; again if a handler or a finaliser has written, which it does on both
    sides: what was being sent is older.
    """
    writes = -1
    while writes != storage.writes:
        writes = storage.writes
        transfer.upload(storage.device, block, storage.mirror, ranges, view, why, storage.placed.covers(ranges),
                        "spill" if storage.spilled else "upload")


def whole_of(storage: StorageState) -> np.ndarray:
    """The meta of all bytes of a storage."""
    return views.meta((storage.nbytes,), _u8)


# -- the device writes -----------------------------------------------------------------------------------

def begin_write(storage: StorageState, view: np.ndarray, overwrite: bool, later: Ranges = Ranges.EMPTY) -> Ranges:
    """Have `view` current on the device, and nobody else reading or trusting it. What aliases wrote after it begins.

    With `overwrite` all of it will be written, so that bytes which only the host has are not uploaded first. `later`:
    what it gave before, if the write begins once more.
    """
    if storage.pending is not None:
        storage.fill()
    if storage.mirror is not None and storage.mirror.lent and forbidden("materialise", ("error",)):
        _refuse_refresh(storage, view)
    clean, storage.clean, storage.host = storage.clean, False, None
    whole = storage.mirror is not None and is_sent_whole(storage, view)
    if storage.readers:     # what is recorded from here on waits for this one to have written
        changing(storage)
    if later is not Ranges.EMPTY:
        later = later & storage.mirror.valid
        storage.note_written(later)
    if not clean:
        written = written_meanwhile(storage, view)
        later = later if written is None else later | written
        span = Ranges.span(0, storage.nbytes) if _is_left(storage) else Ranges.span(*views.extent(view))
        settle_device(storage, span, view, "written on the device", later,
                      _exact(storage, view) if overwrite and storage.mirror is not None and not whole else Ranges.EMPTY,
                      looked=written is not None)
        if storage.host_dirty and not overwrite:    # aliases wrote it while GPU code's writes were fetched (`distrust`)
            later = later | storage.host_dirty & _exact(storage, view)
    storage.join_all()
    if storage.mirror is not None and storage.mirror.valid:     # last: the caller is sure to end the write
        if (whole or _is_unread(storage.mirror)) and not storage.mirror.lent and not storage.host_dirty:
            storage.mirror.invalidate(storage.mirror.valid)
        elif len(exact := _exact(storage, view)) <= FEW_RANGES or storage.mirror.guesses:
            storage.mirror.invalidate(exact - storage.host_dirty)
    return later


def _refuse_refresh(storage: StorageState, view: np.ndarray) -> None:
    """Raise what `no_transfers` raises of a copy that brings aliases up to date: the write is not done then."""
    collect(storage)        # those that are gone need none
    stale = storage.mirror.aliased() & _exact(storage, view)
    if stale:
        begin("materialise", stale.nbytes, view.shape, view.dtype, "refresh of an alias")


def _is_left(storage: StorageState) -> bool:
    """Whether the host goes on no more with what it alone has of a storage: then all of it is sent when the device
    writes a part. Each further write would have to keep account of it, which takes longer.
    """
    dirty, mirror = storage.host_dirty, storage.mirror
    return (bool(dirty) and not mirror.lent and not storage.spilled and dirty.nbytes <= ON_BOTH
            and (storage.placed.covers(dirty) or not forbidden("upload")))


def _is_unread(mirror: Mirror) -> bool:
    """Whether what was written on the device before has not been read on the host since, and what else is current there
    is soon fetched again: to keep account of that takes longer than a write that has none to keep.
    """
    return not mirror.full and mirror.valid.nbytes <= ON_BOTH


def compare_for_now(storage: StorageState) -> Pages | None:
    """The device is about to write some elements of a view, nobody says which: find to the byte what aliases write
    beside them meanwhile, in other threads. A page that was written says nothing of its bytes, and what the device has
    written would take their place. For `Mirror.track_by`; None where nothing has changed.

    All that is lent is copied, and compared twice: in a process of one thread nothing is.
    """
    mirror = storage.mirror
    if mirror is None or not mirror.lent or not others_run() or (pages := mirror.compare_for_now()) is None:
        return None
    collect(storage)        # whole pages, written before this
    return pages


def is_sent_whole(storage: StorageState, view: np.ndarray) -> bool:
    """Whether account of the bytes of a view in a storage takes longer than to send all of it."""
    nbytes = storage.nbytes
    if nbytes <= WHOLE or nbytes > SCATTERED or view.flags.forc:
        return nbytes <= WHOLE
    _, _, levels = runs_of(view.shape, view.strides, view.itemsize, 0)
    return math.prod(n for n, _ in levels) > FEW_RUNS


def much_is_sent(storage: StorageState) -> bool:
    """Whether the next write on the host is one of all of a storage of which small parts are computed there: so much of
    it is current there alone, or so many pieces, that account of them takes longer than to send the rest.
    """
    dirty = storage.host_dirty
    return storage.nbytes <= ON_BOTH and (len(dirty) > FEW_RUNS or dirty.nbytes > storage.nbytes // MUCH)


def has_written(storage: StorageState, view: np.ndarray, later: Ranges, writes: int | None = None) -> bool:
    """The device has written `view`: nothing there is current on the host alone, but what aliases wrote `later`.

    False, and nothing is done, if by `storage.writes` the storage was written on the device, or sent to it, since there
    were so many: a signal handler or a finaliser may have sent what the host alone had, and that over what was written.
    """
    mirror = storage.mirror
    if mirror is None or not storage.host_dirty:
        return writes is None or storage.writes == writes
    exact = _exact(storage, view)
    while True:
        valid, dirty = mirror.valid, storage.host_dirty
        current, alone = valid - (exact - later), (dirty - exact) | later
        if writes is not None and storage.writes != writes:
            return False
        if mirror.valid is valid and storage.host_dirty is dirty:   # nothing comes between, as in `Mirror.invalidate`
            mirror.valid, storage.host_dirty = current, alone
            return True


def end_write(storage: StorageState, view: np.ndarray, failed: bool = False, later: Ranges = Ranges.EMPTY) -> None:
    """The device has written `view`, no other byte; `failed`: it was about to, and may have.

    `later`: what aliases wrote after it.
    """
    storage.stream = storage.device.stream()
    storage.joined = ()
    if foreign_streams.partners and is_watched(storage):
        foreign_streams.let_partners_wait(storage.device)
    storage.reads = 0
    storage.writes += 1
    mirror = storage.mirror
    if mirror is not None and (
            mirror.valid or mirror.lent or storage.incoming is not None or storage.sending is not Ranges.EMPTY):
        exact = _exact(storage, view)
        if storage.host_dirty and not failed:  # what aliases wrote there before is still there, if nothing else is
            has_written(storage, view, later)
        if storage.incoming is not None:
            storage.incoming.ranges -= Ranges.span(*views.extent(view))
        refresh(storage, view, exact)
        if storage.sending is not Ranges.EMPTY and storage.sending & exact:     # else what is being sent would undo it
            transfer.download(storage.device, storage.block, mirror, exact, view, storage._offset(view), "being sent")
    storage.host = None     # a handler or a finaliser that looked meanwhile took what was there for current
    if storage.compacts:
        storage.compacts.refresh(storage, view)
    storage.update_clean()


def _exact(storage: StorageState, view: np.ndarray) -> Ranges:
    return Ranges.of_view(view.shape, view.strides, view.itemsize, storage._offset(view))


# -- the host is brought up to date ----------------------------------------------------------------------

def mirror_of(storage: StorageState) -> Mirror:
    """The mirror of a storage, made if there is none."""
    if storage.mirror is None:
        made = Mirror.reserve(max(storage.block.nbytes, 1), current_options().write_tracking)
        if storage.mirror is None:      # else a finaliser has made one meanwhile
            storage.mirror = made
    return storage.mirror


def settle_host(storage: StorageState, view: np.ndarray, why: str, lend: bool = False) -> None:
    """Make the mirror current where `view` is. `lend`: an alias of it will be lent."""
    if storage.incoming is not None:
        storage.incoming.land(storage)
    mirror = storage.mirror
    if mirror is None:
        if storage.loans:
            all_ended(storage)    # of one whose holder is gone nothing is left to be looked at, byte by byte
        mirror = mirror_of(storage)
    elif mirror.full and not (storage.loans or storage.foreign or storage.compacts):
        return      # whatever aliases wrote, they wrote it here
    if storage.loans or storage.foreign:
        exactly(storage)
        distrust(storage, view)
    elif storage.compacts:
        settle_device(storage, Ranges.EMPTY, view, why)
    else:
        collect(storage)
    if mirror.full:
        return
    offset = storage._offset(view)
    while lacking := missing(mirror, view, offset):
        if storage.host_dirty and len(lacking) > 1:
            settle_device(storage, Ranges.span(*views.extent(view)), view, "before a gather")
        storage._check_usable()
        writes = storage.writes
        try:
            with storage.place(noting=False):
                storage.join()
                storage.reads += 1
                more = lacking if storage.reads == 1 else with_neighbours(storage, view, lacking)
                if more is lacking:
                    transfer.download(storage.device, storage.block, mirror, lacking, view, offset, why, lend)
                else:
                    lacking = more
                    seen = storage.root_view if storage.root_view is not None else whole_of(storage)
                    transfer.download(storage.device, storage.block, mirror, more, seen, 0, f"{why}: {ONE_BY_ONE}")
        except storage.device.faults as error:
            storage.device.failed(error)
            raise
        if storage.writes == writes:
            return
        mirror.invalidate(lacking - storage.host_dirty)  # a signal handler or a finaliser wrote on the device meanwhile


def with_neighbours(storage: StorageState, view: np.ndarray, lacking: Ranges) -> Ranges:
    """The bytes to fetch of a view that lacks some: these, or more if a storage is read in small parts again and again.

    To fetch a few bytes takes as long as to fetch `EACH` more of them: what was spent on small parts since the last
    write is spent once more, on what lies around the next.
    """
    size = min(storage.reads * EACH, MOST_BULK)
    if storage.reads <= current_options().bulk_reads or 2 * lacking.nbytes > min(size, storage.nbytes):
        return lacking
    if storage.loans or storage.foreign or storage.compacts:
        return lacking      # the mirror is not trusted, or not what is read
    start = 0 if storage.nbytes <= size else views.extent(view)[0] // size * size
    span = Ranges.span(start, min(start + size, storage.nbytes)) | Ranges.span(*views.extent(view))
    more = span - storage.mirror.valid
    if len(more) > transfer.MOST_PIECES:
        if storage.host_dirty or storage.mirror.aliased():
            return lacking      # between them lies what may be newer here
        more = span
    storage.reads *= 2
    return more


def note_on_host(storage: StorageState) -> None:
    """Small parts of an array are computed with on the host from here on, if all its bytes are there by now."""
    mirror = storage.mirror
    if (mirror is not None and mirror.full and current_options().small_on_host
            and not (storage.host_dropped or storage.loans or storage.foreign or storage.compacts
                     or storage.pending is not None)):
        storage.host = True


def missing(mirror: Mirror, view: np.ndarray, offset: int) -> Ranges:
    """The bytes of a view that the mirror lacks, with the gaps between them where they are fine and free."""
    if view.size >= MANY and view.nbytes >= LARGE and not view.flags.forc:
        span = Ranges.span(*views.extent(view))
        if span.nbytes <= FEW_GAPS * view.nbytes and not mirror.valid & span:
            _, _, levels = runs_of(view.shape, view.strides, view.itemsize, offset)
            if math.prod(n for _, n in levels) >= MANY:
                return span
    return Ranges.of_view(view.shape, view.strides, view.itemsize, offset) - mirror.valid


def compacted(storage: StorageState, view: np.ndarray, why: str) -> np.ndarray:
    """The compact array of a sparse view: read-only, and refreshed when the view is written."""
    settle_device(storage, Ranges.span(*views.extent(view)), view, why)
    storage.join()
    source = storage.device_view(view)
    if storage.loans or storage.foreign:
        distrust(storage, view)
    if storage.compacts is None:
        storage.compacts = gathered.Compacts()
    storage.clean = False      # until nobody holds a compact array
    return storage.compacts.get(storage, view, source, why)


# -- aliases are brought up to date ----------------------------------------------------------------------

def refresh(storage: StorageState, view: np.ndarray, exact: Ranges) -> None:
    """Bring what aliases hold up to date, in place, after the device may have written `view`, whose bytes are `exact`.

    What aliases wrote meanwhile stays: beside `exact` in any case, within it where writes are found to the byte. (Where
    they are not, which of two writes came last can't be known; of large arrays it can't with NumPy either.)
    """
    mirror = storage.mirror
    few = len(exact) <= FEW_RANGES
    if not mirror.lent:
        # To keep account of very many ranges takes longer than the copy: then of all that lies between them too.
        mirror.invalidate((exact if few else Ranges.span(*views.extent(view))) - storage.host_dirty)
        return
    try:
        while True:
            writes = storage.writes
            mirror.invalidate(exact - storage.host_dirty)
            if not mirror.compares:         # there `fill_unwritten` finds what was written
                mirror.collect(note=lambda written: storage.note_written(written - exact))
            if _refresh_stale(storage, view, exact) and storage.writes == writes:
                return
            # Else a signal handler or a finaliser has written on the device, and what has come may be older; or it has
            # had writes found in another way.
    except BaseException as error:      # a fault of the device, or an interrupt: the mirror has what was there before
        if not mirror.compares:     # around what aliases write from now on they are stale: it is found to the byte
            mirror.track_exactly()
            mirror.collect(note=lambda written: storage.note_written(written - exact))
        storage.device.failed(error)
        raise


def _refresh_stale(storage: StorageState, view: np.ndarray, exact: Ranges) -> bool:
    """Whether what is stale was brought up to date, and need not be looked at once more."""
    mirror = storage.mirror
    stale = mirror.to_refresh() & exact
    if storage.host_dirty:
        stale = stale - storage.host_dirty
    if not stale:
        return True
    if len(stale) > transfer.MOST_PIECES and not storage.host_dirty & exact:     # the rest is the device's, too
        stale = exact if stale.bounds == exact.bounds else exact & Ranges.span(*stale.bounds)
    if mirror.compares:
        return _refresh_compared(storage, view, stale)
    if len(stale) <= transfer.MOST_PIECES or stale is exact:
        transfer.download(storage.device, storage.block, mirror, stale, view, storage._offset(view),
                          "refresh of an alias")
    else:
        _refresh_some(storage, view, stale)
    return True


def _fetched(storage: StorageState, view: np.ndarray, stale: Ranges) -> tuple[int, np.ndarray]:
    """Bytes of a view from the device, with those of `stale`: where the first lies, and an array from there on."""
    device, (start, stop), in_pieces = storage.device, stale.bounds, len(stale) <= transfer.MOST_PIECES
    token = begin("materialise", stale.nbytes if in_pieces else view.nbytes, view.shape, view.dtype,
                  "refresh of an alias")
    if in_pieces:
        found = start, np.empty(stop - start, _u8)
        for low, high in stale:
            device.download(device.view(storage.block, (high - low,), _u8, (1,), low),
                            found[1][low - start:high - start])
    else:
        found = transfer.gathered_bytes(device, storage.block, view, storage._offset(view))
    end(token)
    return found


def _refresh_compared(storage: StorageState, view: np.ndarray, stale: Ranges) -> bool:
    """The same where writes are found by comparison: once the bytes are here, no other thread writes unseen."""
    start, fetched = _fetched(storage, view, stale)
    found = storage.mirror.fill_unwritten(start, fetched, stale, view.itemsize, storage._offset(view))
    if found:
        storage.host_dirty = storage.host_dirty | found
    return found is not None


def _refresh_some(storage: StorageState, view: np.ndarray, stale: Ranges) -> None:
    """The same of many pieces of a view."""
    start, fetched = _fetched(storage, view, stale)
    with storage.mirror.filling(stale) as target:
        copy_ranges(target, 0, fetched, start, stale)


# -- GPU code that holds a pointer -----------------------------------------------------------------------

def exactly(storage: StorageState) -> None:
    """Find what aliases write to the byte from now on, since GPU code may write beside it, unknown to us.

    What they may have written until now is uploaded before GPU code can write: where nobody knows what that is, all of
    it counts as written, and to upload it later would undo what GPU code wrote.
    """
    mirror = storage.mirror
    if mirror is not None and not mirror.is_exact:
        mirror.track_exactly()
        whole = whole_of(storage)
        settle_device(storage, Ranges.span(0, storage.nbytes), whole, "device pointer handed out", trusting=True)


def hand_on(storage: StorageState, view: np.ndarray) -> None:
    """Let GPU code that holds a pointer see what aliases wrote in `view`: it looks without asking.

    What it wrote is fetched when somebody asks next, as ever.
    """
    if storage.loans or storage.foreign:
        with holding(storage.lock):
            settle_device(storage, Ranges.span(*views.extent(view)), view, "an alias was written", trusting=True)
            if foreign_streams.partners:
                foreign_streams.let_partners_wait(storage.device)


def distrust(storage: StorageState, view: np.ndarray) -> None:
    """GPU code that holds a pointer may have written: the device decides, after what aliases wrote.

    Which of two writes to one byte came last can't be known where both were made behind our back.
    A loan whose holder is gone ends here, since it is only now that nothing can follow.
    """
    ended = [ref for ref in storage.loans if ref() is None]
    mirror = storage.mirror
    if mirror is not None:
        collect(storage)
        if storage.host_dirty:
            upload(storage, storage.host_dirty, view, "an alias was written")
        mirror.invalidate(mirror.valid)
        whole = whole_of(storage)
        refresh(storage, whole, Ranges.span(0, storage.nbytes))
        if storage.compacts:
            storage.compacts.refresh(storage, whole)
    if ended:
        with holding(loans_lock):
            storage.loans = _others(storage.loans, ended)       # it may have been lent again
        storage.writes += 1


def _others(loans: tuple, ended: list) -> tuple:
    return tuple([ref for ref in loans if ref not in ended])
