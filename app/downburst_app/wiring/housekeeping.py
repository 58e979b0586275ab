"""A hub's upkeep of its disk and ledger: the reserve, old history, checks for damage."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

from downburst.foundation.clock import Clock
from downburst.ledger import Ledger, Transaction
from downburst.settings.hub import Settings
from downburst.supervision import keep
from downburst.supervision.disk import Reserve
from downburst_app.wiring.ledger_watch import read_through

Run = Callable[[], Awaitable[None]]


class Housekeeping:
    """The tasks that keep disk and ledger in order."""

    def __init__(
        self,
        settings: Settings,
        ledger: Ledger,
        reserve: Reserve,
        *,
        clock: Clock,
        say: Callable[[str], Awaitable[None]],
    ) -> None:
        self._settings = settings
        self._ledger = ledger
        self._reserve = reserve
        self._clock = clock
        self._say = say

    def runs(self) -> Iterator[tuple[str, Run]]:
        """The tasks by name."""
        hold = partial(asyncio.to_thread, self._hold_room)
        yield "hub.reserve", partial(keep, "hub.reserve", hold, every_s=RESERVE_S)
        yield "hub.housekeeping", partial(keep, "hub.house", self._forget_history, every_s=HOUSEKEEPING_S)
        if self._settings.scrub_hours > 0:
            yield "hub.ledger-scrub", partial(read_through, self._settings, self._say)

    def _hold_room(self) -> None:
        self._ledger.hold_journal_room()
        self._reserve.hold()

    async def _forget_history(self) -> None:
        """Deletes history beyond its retention."""
        oldest = int(self._clock.now().timestamp() // 60 - self._settings.history_days * 24 * 60)
        audited = self._clock.now() - timedelta(days=self._settings.access.audit_days)
        measured = self._clock.now() - timedelta(days=self._settings.measurement_days)
        await self._ledger.write(partial(_forget, oldest_minute=oldest, audited=audited, measured=measured))
        await self._ledger.write(partial(_forget_notices, days=self._settings.history_days))
        await self._ledger.write(forget_outgoing)


def _forget(tx: Transaction, *, oldest_minute: int, audited: datetime, measured: datetime) -> None:
    tx.measured.traffic.forget_before(oldest_minute)
    tx.measured.egress.forget_before(oldest_minute)
    tx.access.audit.forget_before(audited)
    tx.measured.measurements.forget_before(measured)


def _forget_notices(tx: Transaction, *, days: float) -> None:
    now = tx.clock.now()
    tx.wis2.notices.give_up_waiting(now - NOTICES_KEPT, "its centre had no bytes left for two days: raise its limit")
    tx.wis2.notices.forget_before(now - NOTICES_KEPT)
    tx.wis2.days.forget_before((now - timedelta(days=days)).astimezone(UTC).date())


def forget_outgoing(tx: Transaction) -> None:
    """Gives up announcements after a day, when their products may be gone; forgets them a day later."""
    now = tx.clock.now()
    tx.wis2.outbox.expire(now - OUTGOING_WAIT, "its broker was away for a day: its product may be gone")
    tx.wis2.outbox.forget_before(now - NOTICES_KEPT)


OUTGOING_WAIT = timedelta(days=1)
NOTICES_KEPT = timedelta(days=2)
"""Caches of WIS2 keep products for a day."""
HOUSEKEEPING_S = 3600.0
RESERVE_S = 60.0
