"""Warns, while the hub runs, of feeds with logs shorter than the longest outage that sites may have."""

from collections.abc import Awaitable, Callable

from downburst.foundation.clock import Clock
from downburst.ledger import Ledger, Transaction
from downburst.live.state import LiveState, RetentionWarning
from downburst.supervision import keep
from downburst_app.retention.advice import Advice, Retention, advise, volume


class RetentionWatch:
    """Keeps `LiveState.retention_warnings` current and reports new ones."""

    def __init__(
        self,
        ledger: Ledger,
        live: LiveState,
        *,
        clock: Clock,
        outage_hours: float,
        say: Callable[[str, str], Awaitable[None]],
    ) -> None:
        self._ledger = ledger
        self._live = live
        self._clock = clock
        self._outage_hours = outage_hours
        self._say = say
        """Called with the sentence and the next step."""

    async def run(self) -> None:
        """Checks repeatedly; arrivals and retention change slowly."""
        await keep("hub.retention", self.look, every_s=LOOK_S)

    async def look(self) -> None:
        """Checks once."""
        advices = await self._ledger.read(lambda tx: advices_of(tx, outage_hours=self._outage_hours))
        before = self._live.retention_warnings
        now = {it.feed: self._warning(it) for it in advices if it.problem is not None}
        self._live.retention_warnings = {
            feed: RetentionWarning(
                before[feed].since if feed in before else warning.since, warning.problem, warning.step
            )
            for feed, warning in now.items()
        }
        for feed in sorted(now.keys() - before.keys()):
            await self._say(now[feed].problem, now[feed].step)

    def _warning(self, advice: Advice) -> RetentionWarning:
        return RetentionWarning(self._clock.now(), advice.problem or "", advice.step or "")


def advices_of(tx: Transaction, *, outage_hours: float | None) -> list[Advice]:
    """The judgement of each feed's retention from the ledger's minutes."""
    minutes = tx.measured.traffic.minutes()
    until = max((it.minute for it in minutes), default=0)
    return [
        advise(
            Retention(it.name, it.retention_hours, it.retention_bytes),
            volume(minutes, feed=it.name, until_minute=until),
            outage_hours=outage_hours,
        )
        for it in tx.feeds.all()
    ]


LOOK_S = 600.0
"""Between two checks; a month's minutes of many feeds are too much to read every second."""
