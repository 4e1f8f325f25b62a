"""Learning what aliases wrote part by part, so that the first part can be copied while the next is looked at."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from .ranges import EMPTY, Ranges
from .tracking import Pages

if TYPE_CHECKING:
    from .mirror import Mirror


def goes_in_turns(mirror: Mirror) -> bool:
    """Whether parts can be looked at: a comparison with a copy is of the whole, and else nobody knows."""
    return mirror.lent and type(mirror._tracker) is Pages


def pages_of_all(mirror: Mirror) -> tuple[tuple[int, int, int] | None, Any]:
    """What it takes to look at all pages (see `Pages.scanned_by`), and the device's region around them.

    None instead, unless aliases are all of the mirror and nothing is known yet. What is found counts as collected.
    """
    tracker, live = mirror._tracker, mirror._live
    if (type(tracker) is not Pages or not mirror.lent or mirror._dead or mirror._late or mirror._found
            or live is None or not live.is_span(0, mirror.nbytes) or not mirror.valid.is_span(0, mirror.nbytes)):
        return None, None
    return tracker.scanned_by(mirror.nbytes), mirror._mapping.region    # type: ignore[union-attr]


def give_up(mirror: Mirror) -> None:
    """The kernel refuses to look: from now on nobody knows what is written."""
    mirror._give_up()


def collect_in_turns(mirror: Mirror, turns: Iterable[tuple[int, int]]) -> Iterator[Ranges]:
    """What `Mirror.collect` finds, perhaps nothing, turn by turn; each is looked at when it is asked for.

    `turns`: (start, stop) of parts of whole pages that make up the mirror.

    Until it has come to its end nothing counts as found that was not given.
    """
    candidates = mirror._candidates()
    late, mirror._late = mirror._late, EMPTY        # those that die from now on may yet write what was looked at
    try:
        for start, stop in turns:
            part = Ranges(start, stop)
            watched = candidates & part
            found = mirror._found & part
            if watched:
                try:
                    found = mirror._tracker.written(watched, False) | found
                except OSError:
                    mirror._give_up()
                    found = watched
            mirror._found = mirror._found - part
            yield found & mirror.valid
    except BaseException:       # of whoever asks: what was not given is found by the next collect
        mirror._late = mirror._late | late
        raise
    if not (mirror._aliases or mirror._dead or mirror._late) and mirror._pinned is EMPTY:
        if mirror._tracker is not None:
            mirror._tracker.rest()
        mirror.lent = False
