"""Checks conditions periodically, begins and ends alarms, and has receivers notified once of each."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from downburst.bus.port import Bus
from downburst.domain.alarms import Alarm, AlarmKind, Condition, Receiver
from downburst.domain.events import HandlerFailed, LdmViolated, SiteViolated, TrafficSeen
from downburst.domain.latency import LatencyKind
from downburst.foundation.clock import Clock, from_us
from downburst.foundation.errors import Failure, PartAway
from downburst.ledger import Ledger, Transaction
from downburst.ledger.repositories.latency.selection import Selection
from downburst.live.state import SiteSession
from downburst.settings.hub import Settings
from downburst.supervision import keep, side_by_side
from downburst.supervision.remote_faults import RemoteFaults
from downburst_alarms.conditions import conditions, silent_hub
from downburst_alarms.gaps import Gaps, gaps_of_history
from downburst_alarms.hub_facts import Facts, HubFacts
from downburst_alarms.notices import Teller
from downburst_alarms.notifier import Notifier, Say
from downburst_alarms.situation import LedgerFacts, Situation
from downburst_alarms.violations import ViolationWatch


class AlarmWatch:
    """One hub's alarms."""

    def __init__(  # noqa: PLR0913
        self, ledger: Ledger, bus: Bus, facts: Facts, *, clock: Clock, settings: Settings, teller: Teller, say: Say
    ) -> None:
        self._ledger = ledger
        self._bus = bus
        self._facts = facts
        self._clock = clock
        self._settings = settings
        self._notifier = Notifier(ledger, teller, clock=clock, say=say)
        self._started_at = clock.now()
        self._gaps: dict[str, Gaps] = {}
        self._arrivals_known_to: datetime | None = None
        self._over_since: dict[str, datetime] = {}
        self._frontiers: dict[tuple[str, str], tuple[int, datetime]] = {}
        self._violations = ViolationWatch(watched=timedelta(seconds=settings.alarms.violation_s))
        self._remote = RemoteFaults()
        self._looked_s = self._hub_heard_s = clock.monotonic_s()

    async def run(self) -> None:
        """Checks without end."""
        minutes = await self._ledger.read(lambda tx: tx.measured.traffic.minutes())
        self._gaps = gaps_of_history(minutes, self._settings.alarms.silence_pauses)
        every_s = self._settings.alarms.look_s
        await side_by_side(
            keep("alarms.traffic", self._follow),
            keep("alarms.look", self.look, every_s=every_s),
            keep("alarms.violations", self._follow_violations),
            keep("alarms.remote-faults", self._follow_others),
            # In a separate task, so that an unresponsive receiver does not delay the checks.
            keep("alarms.tell", self.tell, every_s=every_s),
        )

    async def tell_as_a_test(self, receiver: Receiver) -> None:
        """Sends a receiver an alarm that is none; raises the cause of a failure."""
        await self._notifier.tell_as_a_test(receiver)

    async def tell(self) -> None:
        """Notifies receivers of alarms that are new to them."""
        await self._notifier.tell()

    def seen(self, event: TrafficSeen) -> None:
        """Records a second of arrivals."""
        at = self._arrivals_known_to = from_us(event.to_us)
        for feed in event.feeds:
            if feed.products:
                self._gaps.setdefault(feed.feed, Gaps(self._settings.alarms.silence_pauses)).arrived(at)

    async def prove(self) -> None:
        """Raises `Failure` if the last check, or the last round of receivers, is too long ago."""
        for what, done_s in (("evaluated", self._looked_s), ("notified", self._notifier.toured_s)):
            silent_s = self._clock.monotonic_s() - done_s
            if silent_s > PROOF_S + 2 * self._settings.alarms.look_s:
                raise Failure(f"alarms were not {what} for {silent_s:.0f} s; the hub's log says why")

    async def look(self) -> None:
        """Checks once."""
        now = self._clock.now()
        try:
            facts = await self._facts.of_hub(now)
        except PartAway:
            await self._look_without_hub()
        else:
            self._hub_heard_s = self._clock.monotonic_s()
            situation = await self._ledger.read(lambda tx: self._situation(tx, facts, now))
            wrong = {one.key: one for one in conditions(situation, self._settings.alarms)}
            await self._ledger.write(lambda tx: self._keep(tx, wrong, now))
        self._looked_s = self._clock.monotonic_s()

    def violated(self, event: SiteViolated | LdmViolated) -> None:
        """Records an impossible value reported by a site or an LDM peer."""
        self._violations.seen(event)

    async def _follow_violations(self) -> None:
        # In a separate subscription: a site with a thousand of them displaces nothing else from a queue.
        with self._bus.subscribe(SiteViolated, LdmViolated, limit=QUEUE) as events:
            async for event in events:
                if isinstance(event, SiteViolated | LdmViolated):
                    self.violated(event)

    def failed(self, event: HandlerFailed) -> None:
        """Records an unexpected error of a handler in another process of this hub."""
        self._remote.seen(event, self._clock.now())

    async def _follow_others(self) -> None:
        with self._bus.subscribe(HandlerFailed, limit=QUEUE) as events:
            async for event in events:
                if isinstance(event, HandlerFailed):
                    self.failed(event)

    async def _follow(self) -> None:
        with self._bus.subscribe(TrafficSeen, limit=QUEUE) as events:
            async for event in events:
                if isinstance(event, TrafficSeen):
                    self.seen(event)

    async def _look_without_hub(self) -> None:
        """Checks a silent hub: only its silence can be judged, and other alarms remain unchanged."""
        silent_s = self._clock.monotonic_s() - self._hub_heard_s
        if silent_s < HUB_SILENT_S:
            return
        condition = silent_hub(silent_s)

        def begin(tx: Transaction) -> None:
            if all(alarm.key != condition.key for alarm in tx.alerting.alarms.open()):
                tx.alerting.alarms.raise_(condition)

        await self._ledger.write(begin)

    def _situation(self, tx: Transaction, facts: HubFacts, now: datetime) -> Situation:
        return Situation(
            now=now,
            started_at=self._started_at,
            ledger=self._ledger_facts(tx, now),
            hub=facts,
            gaps=self._gaps,
            arrivals_known_to=self._arrivals_known_to,
            standstills=self._standstills(facts.sessions, now),
            remote_faults=self._remote.recent(now),
            violations=self._violations.by_site(),
            peer_violations=self._violations.by_peer(),
        )

    def _ledger_facts(self, tx: Transaction, now: datetime) -> LedgerFacts:
        minute = int(now.timestamp() // 60)
        objectives = tx.alerting.objectives.all()
        minutes = [self._settings.alarms.objective_minutes, *(one.minutes for one in objectives if one.minutes)]
        since = minute - round(max(minutes)) + 1
        return LedgerFacts(
            credentials=tx.enrolment.credentials.usable(),
            feeds=tx.feeds.all(),
            sites=tx.sites.all(),
            subscriptions=tx.subscriptions.all(),
            objectives=objectives,
            latencies=tx.measured.latency.sheet(
                Selection(since_minute=since, kind=LatencyKind.DISTRIBUTION), step_minutes=1
            ),
            circuits=tx.circuits.begun(),
            plans=tx.planning.plans.all_current(),
            standing=frozenset(alarm.key for alarm in tx.alerting.alarms.open()),
        )

    def _standstills(self, sessions: Mapping[str, SiteSession], now: datetime) -> dict[tuple[str, str], datetime]:
        """By site and feed with a backlog, the time since which nothing more was settled."""
        found: dict[tuple[str, str], tuple[int, datetime]] = {}
        for site, session in sessions.items():
            for progress in session.progress.values() if session.connected and not session.stand_by else ():
                if progress.pending:
                    before = self._frontiers.get((site, progress.feed))
                    stands = before is not None and before[0] == progress.settled_to
                    since = before[1] if before is not None and stands else now
                    found[site, progress.feed] = (progress.settled_to, since)
        self._frontiers = found
        return {key: since for key, (_, since) in found.items()}

    def _keep(self, tx: Transaction, wrong: Mapping[str, Condition], now: datetime) -> None:
        """Begins new alarms, updates the figures of open ones, and ends those without a cause for a while."""
        known = {alarm.key: alarm for alarm in tx.alerting.alarms.open()}
        lately = now - timedelta(hours=self._settings.alarms.prediction_again_h)
        said = tx.alerting.alarms.keys_begun(AlarmKind.PREDICTION, since=lately)
        for key, condition in wrong.items():
            if key not in known:
                if key not in said:
                    tx.alerting.alarms.raise_(condition)
            elif _has_changed(known[key], condition):
                tx.alerting.alarms.update(known[key], condition)
        over = {key: self._over_since.get(key, now) for key in known.keys() - wrong.keys()}
        ended = {key for key, since in over.items() if (now - since) >= self._ends_after}
        if ended:
            tx.alerting.alarms.end((known[key].number for key in ended), now)
        self._over_since = {key: since for key, since in over.items() if key not in ended}

    @property
    def _ends_after(self) -> timedelta:
        return timedelta(seconds=self._settings.alarms.end_after_s)


def _has_changed(alarm: Alarm, condition: Condition) -> bool:
    return alarm.sentence != condition.sentence or condition.severity.rank < alarm.severity.rank


QUEUE = 1024
HUB_SILENT_S = 30.0
"""Longer than a hub's restart."""
PROOF_S = 60.0
"""Longer than the others wait for an unresponsive receiver."""
