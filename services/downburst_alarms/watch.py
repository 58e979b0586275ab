"""Looks again and again, begins and ends alarms, and has receivers told once of each."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from downburst.bus.port import Bus
from downburst.domain.alarms import Alarm, AlarmKind, Condition, Receiver, ReceiverKind, Silence
from downburst.domain.events import HandlerFailed, LdmViolated, SiteViolated, TrafficSeen
from downburst.domain.latency import LatencyKind
from downburst.foundation.clock import Clock, from_us
from downburst.foundation.errors import DownburstError, Failure, PartAway
from downburst.ledger import Ledger, Transaction
from downburst.ledger.repositories.latency.selection import Selection
from downburst.live.state import SiteSession
from downburst.settings.hub import Settings
from downburst.supervision import attempt, keep, side_by_side
from downburst.supervision.remote_faults import FaultsElsewhere
from downburst_alarms.conditions import Situation, conditions, silent_hub
from downburst_alarms.gaps import Gaps, gaps_of_history
from downburst_alarms.hub_facts import Facts, HubFacts
from downburst_alarms.notices import Teller
from downburst_alarms.violations import ViolationWatch

Say = Callable[[str, str], Awaitable[None]]


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
        self._teller = teller
        self._say = say
        self._started_at = clock.now()
        self._gaps: dict[str, Gaps] = {}
        self._arrivals_known_to: datetime | None = None
        self._over_since: dict[str, datetime] = {}
        self._frontiers: dict[tuple[str, str], tuple[int, datetime]] = {}
        self._violations = ViolationWatch(watched=timedelta(seconds=settings.alarms.violation_s))
        self._remote = FaultsElsewhere()
        self._repeated_at: datetime | None = None
        self._unreached: set[tuple[str | None, str]] = set()
        self._looked_s = self._toured_s = self._hub_heard_s = clock.monotonic_s()
        self._told: set[tuple[int, bool]] = set()
        """What receivers were told and the ledger did not take a note of yet."""

    async def run(self) -> None:
        """Looks for good."""
        minutes = await self._ledger.read(lambda tx: tx.measured.traffic.minutes())
        self._gaps = gaps_of_history(minutes, self._settings.alarms.silence_pauses)
        every_s = self._settings.alarms.look_s
        await side_by_side(
            keep("alarms.traffic", self._follow),
            keep("alarms.look", self.look, every_s=every_s),
            keep("alarms.violations", self._follow_violations),
            keep("alarms.elsewhere", self._follow_others),
            # Apart, because a receiver that does not answer must not keep anybody from looking.
            keep("alarms.tell", self.tell, every_s=every_s),
        )

    async def tell_as_a_test(self, receiver: Receiver) -> None:
        """Tells a receiver of an alarm that is none; raises why it can't."""
        now = self._clock.now()
        sentence = f"this is a test of the receiver {receiver.name}; no action is needed"
        alarm = Alarm(0, "test", AlarmKind.SITE_DOWN, None, None, "test", sentence, "nothing to do", now)
        try:
            await self._teller.tell(receiver, replace(alarm, ended_at=now), now)
        except Failure as error:
            raise Failure(f"{error.sentence}; correct its address, or repair its server") from error

    def seen(self, event: TrafficSeen) -> None:
        """Takes in a second of arrivals."""
        at = self._arrivals_known_to = from_us(event.to_us)
        for feed in event.feeds:
            if feed.products:
                self._gaps.setdefault(feed.feed, Gaps(self._settings.alarms.silence_pauses)).arrived(at)

    async def prove(self) -> None:
        """Raises `Failure` if it is long ago that it was looked, or receivers told."""
        for what, done_s in (("evaluated", self._looked_s), ("notified", self._toured_s)):
            silent_s = self._clock.monotonic_s() - done_s
            if silent_s > PROOF_S + 2 * self._settings.alarms.look_s:
                raise Failure(f"alarms were not {what} for {silent_s:.0f} s; the hub's log says why")

    async def look(self) -> None:
        """Looks once."""
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

    async def tell(self) -> None:
        """Has receivers told of what they were not told yet."""
        now = self._clock.now()
        waiting, receivers, silences, standing = await self._ledger.read(_to_tell)
        silenced = {alarm.number for alarm in waiting if any(one.covers(alarm, now) for one in silences)}
        to_tell = [alarm for alarm in waiting if alarm.number not in silenced and _news(alarm) not in self._told]
        await self._tell_all(receivers, to_tell, now)
        # Whatever becomes of the note, nobody hears of the same twice.
        self._told |= set(map(_news, to_tell))
        noted = [alarm for alarm in waiting if alarm.number not in silenced or alarm.ended_at is not None]
        if noted:
            await self._ledger.write(partial(_note, alarms=noted))
        self._told.clear()
        self._toured_s = self._clock.monotonic_s()
        if self._repeated_at is None or now - self._repeated_at >= REPEAT:
            self._repeated_at = now
            repeated = [one for one in receivers if one.kind is ReceiverKind.ALERTMANAGER]
            await self._tell_all(repeated, [alarm for alarm in standing if alarm.told_at is not None], now)

    def violated(self, event: SiteViolated | LdmViolated) -> None:
        """Takes in what a site or an LDM peer said that can't be."""
        self._violations.seen(event)

    async def _follow_violations(self) -> None:
        # Apart: a site that says a thousand of them pushes nothing else out of a queue.
        with self._bus.subscribe(SiteViolated, LdmViolated, limit=QUEUE) as events:
            async for event in events:
                if isinstance(event, SiteViolated | LdmViolated):
                    self.violated(event)

    def failed(self, event: HandlerFailed) -> None:
        """Takes in what a handler of another process of this hub did not expect."""
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
        """Of a silent hub nothing is known but that: other alarms stand as they stood."""
        silent_s = self._clock.monotonic_s() - self._hub_heard_s
        if silent_s < HUB_SILENT_S:
            return
        condition = silent_hub(silent_s)

        def begin(tx: Transaction) -> None:
            if all(alarm.key != condition.key for alarm in tx.alerting.alarms.open()):
                tx.alerting.alarms.raise_(condition)

        await self._ledger.write(begin)

    def _situation(self, tx: Transaction, facts: HubFacts, now: datetime) -> Situation:
        minute = int(now.timestamp() // 60)
        objectives = tx.alerting.objectives.all()
        minutes = [self._settings.alarms.objective_minutes, *(one.minutes for one in objectives if one.minutes)]
        since = minute - round(max(minutes)) + 1
        return Situation(
            now=now,
            started_at=self._started_at,
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
            sessions=facts.sessions,
            backlogs=facts.backlogs,
            groups=facts.groups,
            gaps=self._gaps,
            arrivals_known_to=self._arrivals_known_to,
            standing=frozenset(alarm.key for alarm in tx.alerting.alarms.open()),
            retention=facts.retention,
            damages=facts.damages,
            disk_free_bytes=facts.disk_free_bytes,
            disk_bytes=facts.disk_bytes,
            standstills=self._standstills(facts.sessions, now),
            faults=[*facts.faults, *self._remote.recent(now)],
            silent_s=facts.silent_s,
            violations=self._violations.by_site(),
            peer_violations=self._violations.by_peer(),
        )

    def _standstills(self, sessions: Mapping[str, SiteSession], now: datetime) -> dict[tuple[str, str], datetime]:
        """Since when sites that lack something have settled nothing more."""
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
        """Begins what is new, keeps the figures of what goes on, and ends what has been over for a while."""
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

    async def _tell_all(self, receivers: list[Receiver], alarms: list[Alarm], now: datetime) -> None:
        """Each receiver hears its alarms in their order; the failure of one, of whatever kind, is its own."""
        wishes = [(one, [alarm for alarm in alarms if one.wants(alarm)]) for one in receivers]
        await asyncio.gather(*(self._tell_one(one, wanted, now) for one, wanted in wishes if wanted))

    async def _tell_one(self, receiver: Receiver, alarms: list[Alarm], now: datetime) -> None:
        """Ends at the first alarm that the receiver can't be told: the others are kept waiting by one try at most."""
        for alarm in alarms:
            work = partial(self._reach, receiver, alarm, now)
            if not await attempt("alarms.receiver", work, what=f"receiver {receiver.name} of {_owner(receiver)}"):
                return

    async def _reach(self, receiver: Receiver, alarm: Alarm, now: datetime) -> bool:
        who = (receiver.owner, receiver.name)
        retries_s = () if who in self._unreached else RETRIES_S
        for wait_s in (*retries_s, None):
            try:
                await self._teller.tell(receiver, alarm, now)
            except DownburstError as error:
                if wait_s is None:
                    await self._say_unreached(who, error.sentence)
                    return False
                await asyncio.sleep(wait_s)
            else:
                break
        self._unreached.discard(who)
        return True

    async def _say_unreached(self, who: tuple[str | None, str], sentence: str) -> None:
        """Once, until it can be reached."""
        if who not in self._unreached:
            self._unreached.add(who)
            advice = f"correct its address or repair its server, then test it: downburst alarms test {who[1]}"
            await self._say(sentence, advice if who[0] is None else "correct its address, or repair its server")


def _to_tell(tx: Transaction) -> tuple[list[Alarm], list[Receiver], list[Silence], list[Alarm]]:
    receivers = [*tx.alerting.receivers.all(), *tx.alerting.site_receivers.all()]
    return tx.alerting.alarms.to_tell(), receivers, tx.alerting.silences.current(), tx.alerting.alarms.open()


def _note(tx: Transaction, alarms: list[Alarm]) -> None:
    for alarm in alarms:
        tx.alerting.alarms.told(alarm)


def _has_changed(alarm: Alarm, condition: Condition) -> bool:
    return alarm.sentence != condition.sentence or condition.severity.rank < alarm.severity.rank


def _news(alarm: Alarm) -> tuple[int, bool]:
    """What is told of an alarm: its beginning or its end."""
    return alarm.number, alarm.ended_at is not None


def _owner(receiver: Receiver) -> str:
    return f"site {receiver.owner}" if receiver.owner is not None else "the hub"


QUEUE = 1024
HUB_SILENT_S = 30.0
"""A hub that is started again takes less."""
REPEAT = timedelta(seconds=60)
PROOF_S = 60.0
"""A receiver that does not answer keeps the others waiting for less."""
RETRIES_S = (1.0, 4.0)
