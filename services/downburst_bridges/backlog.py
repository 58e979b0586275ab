"""Products of a source that are to be fetched: the next ones in memory, all of them in the ledger; pure.

Most notifications go from the intake to their download without a look at the ledger. A centre is *hidden* while the
ledger may have products of it that are not in memory: after a start, and where more came than is kept here.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from downburst.domain.bridges import Notice


@dataclass(slots=True)
class Backlog:
    """The products of a source by centre; centres take turns."""

    _queues: dict[str, dict[str, Notice]] = field(default_factory=dict)
    """By centre and data id; the centre whose turn is next comes first."""
    _hidden: set[str] = field(default_factory=set)
    _at_work: dict[str, Notice] = field(default_factory=dict)
    """By data id, until the end is recorded."""
    _busy: Counter[str] = field(default_factory=Counter)
    """Downloads by centre."""
    _downloads: int = 0
    """Of all centres."""
    _again: set[str] = field(default_factory=set)
    """Data ids of which a later notification came while an earlier one was at work."""

    def hide(self, centres: Iterable[str]) -> None:
        """Has these centres looked up in the ledger."""
        self._hidden.update(centres)

    def add(self, notices: Iterable[Notice]) -> None:
        """Takes products that the ledger has just got."""
        for one in notices:
            queue = self._queues.setdefault(one.centre, {})
            if one.data_id in queue or (one.centre not in self._hidden and len(queue) < MOST_OF_CENTRE):
                queue[one.data_id] = one
            else:
                self._hidden.add(one.centre)

    def drop(self, notices: Iterable[Notice]) -> None:
        """Forgets products in whose place the ledger has notifications that bring none, as a deletion."""
        for one in notices:
            self._queues.get(one.centre, {}).pop(one.data_id, None)

    def to_read(self) -> list[str]:
        """The hidden centres of which little is left here. What comes during the read is added beside it."""
        short = [one for one in self._hidden if len(self._queues.get(one, ())) < LEAST_OF_CENTRE]
        self._hidden.difference_update(short)
        return short

    def found(self, centre: str, notices: list[Notice]) -> None:
        """Takes the oldest products of a centre from the ledger, at most `READ_AHEAD`."""
        if len(notices) >= READ_AHEAD:
            self._hidden.add(centre)
        queue = self._queues.setdefault(centre, {})
        for one in notices:
            working = self._at_work.get(one.data_id)
            if working is None:
                queue.setdefault(one.data_id, one)
            elif working.last.id != one.last.id:
                self._again.add(one.data_id)

    def begin(self) -> list[Notice]:
        """The products to fetch now. A centre whose servers are slow has no more than its share of downloads."""
        begun = []
        while self._downloads < AT_ONCE and len(self._at_work) < MOST_AT_WORK:
            centre = next((one for one, queue in self._queues.items() if queue and self._has_room(one)), None)
            if centre is None:
                break
            queue = self._queues[centre] = self._queues.pop(centre)
            data_id = next(iter(queue))
            notice = queue.pop(data_id)
            if data_id in self._at_work:
                self._again.add(data_id)
                continue
            self._at_work[data_id] = notice
            self._busy[centre] += 1
            self._downloads += 1
            begun.append(notice)
        return begun

    def fetched(self, notice: Notice) -> None:
        """Its download has ended, and leaves its place to the next one."""
        self._busy[notice.centre] -= 1
        self._downloads -= 1

    def ended(self, notice: Notice, *, settled: bool) -> None:
        """Its end is recorded; not `settled`: it is to be tried again, or a later notification took its place.

        A read of the ledger that has begun may still show it as coming: this comes after the read.
        """
        del self._at_work[notice.data_id]
        if not settled or notice.data_id in self._again:
            self._again.discard(notice.data_id)
            self._hidden.add(notice.centre)

    def _has_room(self, centre: str) -> bool:
        return self._busy[centre] < AT_ONCE_OF_CENTRE


AT_ONCE = 192
AT_ONCE_OF_CENTRE = 48
"""Far more than the node asks a host for (5): what waits there is fetched without a turn of this process."""
MOST_AT_WORK = 400
"""Those whose end is not recorded yet are among them; fewer than `READ_AHEAD`, so that a read finds others."""
READ_AHEAD = 500
MOST_OF_CENTRE = 500
"""Notifications of at most 8 KiB."""
LEAST_OF_CENTRE = 50
