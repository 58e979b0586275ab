"""Alarms in a separate process: the hub's facts arrive over the bus, and a silent hub raises an alarm itself."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from downburst.bus.local import LocalBus
from downburst.domain.alarms import Alarm, AlarmKind, Receiver, ReceiverKind, Severity
from downburst.domain.backlog import FeedBacklog
from downburst.domain.events import ActionFailed, BacklogSeen, LegChanged, LinkedFiles, SiteBacklog, SiteProgress
from downburst.domain.feeds import Feed
from downburst.domain.plans import Transport
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Subscription
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import Failure, NotFound, PartAway
from downburst.ledger import Ledger
from downburst.live.state import Damage, LiveState, RetentionWarning, SiteSession
from downburst.parts import questions
from downburst.parts.names import Part
from downburst.parts.questions import answer_for_good
from downburst.settings.alarms import AlarmSettings
from downburst.supervision import FAULTS, start
from downburst_alarms.hub_facts import HubFacts, LiveFacts
from downburst_alarms.remote import RemoteAlarms, RemoteFacts, answers_of_hub, answers_of_watch
from downburst_alarms.watch import HUB_SILENT_S, AlarmWatch
from factories import settings

SITE, FEED = "unl.edu", "NGRID"
OWN = Receiver("mine", ReceiverKind.WEBHOOK, "http://site/hook?secret", owner=SITE)
OPS = Receiver("ops", ReceiverKind.WEBHOOK, "http://ops/hook?secret")


class Teller:
    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    async def tell(self, receiver: Receiver, alarm: Alarm, now: datetime) -> None:
        del now
        if receiver.name == "broken":
            raise Failure("the receiver broken is away")
        self.told.append((receiver.address, alarm.key))


class Service:
    """The alarm service on a hub's bus; `live` is the hub's current state."""

    def __init__(self, ledger: Ledger, clock: FakeClock, directory: Path) -> None:
        self.ledger, self.clock, self.live, self.teller = ledger, clock, LiveState(), Teller()
        self.bus, self.silent = LocalBus(), dict[Part, float]()
        self.facts = LiveFacts(self.live, directory, silent=lambda: self.silent)
        wanted = AlarmSettings(disk_free_share=0, look_s=0.01, end_after_s=0)
        self.watch = AlarmWatch(
            ledger,
            self.bus,
            RemoteFacts(self.bus),
            clock=clock,
            settings=settings(directory, alarms=wanted),
            teller=self.teller,
            say=self._say,
        )

    async def _say(self, _sentence: str, _next_step: str) -> None: ...

    @asynccontextmanager
    async def hub(self) -> AsyncIterator[None]:
        """The hub's side. While it answers, it may take long, as on a machine with other work."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(questions, "SIGN_S", 60.0)
            async with answering(self.bus, Part.HUB, answers_of_hub(self.facts)):
                yield

    async def open_alarms(self) -> dict[str, Alarm]:
        return {alarm.key: alarm for alarm in await self.ledger.read(lambda tx: tx.alerting.alarms.open())}


@asynccontextmanager
async def answering(bus: LocalBus, part: Part, answers: object) -> AsyncIterator[None]:
    task = start("test.answering", answer_for_good(bus, part, answers))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def service(ledger: Ledger, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    monkeypatch.setattr(questions, "SIGN_S", 0.2)
    with ledger.transaction() as tx:
        tx.feeds.add(Feed(FEED))
        tx.sites.add(Site(SITE))
        tx.subscriptions.add(Subscription(0, SITE, FEED))
        for receiver in (OPS, replace(OPS, name="broken")):
            tx.alerting.receivers.add(receiver)
        tx.alerting.site_receivers.add(OWN)
    return Service(ledger, clock, tmp_path)


def filled(live: LiveState, now: datetime) -> None:
    failed = ActionFailed("actions:3", 1, "no such file", "p", 7)
    progress = SiteProgress(FEED, 4, 2, Transport.MULTICAST, 7, trouble="disk full", action_failed=failed)
    live.sessions[SITE] = SiteSession(SITE, True, now, clock_offset_us=5_000_000, progress={FEED: progress})
    live.apply(BacklogSeen((SiteBacklog(SITE, (FeedBacklog(FEED, True, 2, 200, 1_000_000),)),)))
    live.apply(LegChanged(FEED, 7, SITE, "joined", now, after=3))
    live.retention_warnings = {FEED: RetentionWarning(now, "2 h are kept", "keep more")}
    live.damages[FEED] = Damage(now, "segment 3 is damaged")


async def test_the_facts_come_whole(service: Service, clock: FakeClock) -> None:
    filled(service.live, clock.now())
    FAULTS.caught("node.line", KeyError("x"), "a line")
    service.silent = {Part.CIRCUITS: 40.0}
    now = FAULTS.now()
    async with service.hub():
        here, there = await service.facts.of_hub(now), await RemoteFacts(service.bus).of_hub(now)
    for name in set(HubFacts.__slots__) - {"disk_free_bytes"}:
        assert getattr(there, name) == getattr(here, name), name
    assert there.disk_free_bytes
    assert there.faults[0].place == "node.line"
    assert there.silent_s == {"circuit service": 40.0}


async def test_paths_without_anything_to_say_do_not_travel(service: Service, clock: FakeClock) -> None:
    filled(service.live, clock.now())
    session = service.live.sessions[SITE]
    quiet = SiteProgress("QUIET", 9, 0, Transport.UNICAST, 1, late=3, heartbeat_us=5)
    late = replace(quiet, feed="LATE", heartbeat_waits_us=1, heartbeat_waited_us=2)
    full = replace(quiet, feed="FULL", linked=LinkedFiles(bytes=9, free_bytes=1))
    shown = {one.feed: one for one in (quiet, late, full)}
    service.live.sessions[SITE] = replace(session, progress={**session.progress, **shown})
    service.live.apply(BacklogSeen((SiteBacklog("other.edu", (FeedBacklog(FEED, True),)),)))
    async with service.hub():
        told = await RemoteFacts(service.bus).of_hub(clock.now())
    assert set(told.sessions[SITE].progress) == {FEED, "LATE", "FULL"}
    assert told.sessions[SITE].progress["FULL"].linked == full.linked
    assert set(told.backlogs) == {SITE}


async def test_alarms_begin_by_the_hubs_facts_and_end_by_them(service: Service, clock: FakeClock) -> None:
    filled(service.live, clock.now())
    async with service.hub():
        await service.watch.look()
        began = set(await service.open_alarms())
        assert {
            f"site-disk/{FEED}/{SITE}/",
            f"action/{FEED}/{SITE}/",
            f"clock//{SITE}/",
            f"retention/{FEED}//",
        } <= began
        service.live.sessions[SITE] = SiteSession(SITE, True, clock.now())
        await service.watch.look()
        await service.watch.look()
    assert f"clock//{SITE}/" not in await service.open_alarms()


async def test_a_silent_part_is_an_alarm_until_it_is_heard(service: Service) -> None:
    async with service.hub():
        service.silent = {Part.CIRCUITS: 40.0}
        await service.watch.look()
        (alarm,) = [one for one in (await service.open_alarms()).values() if one.kind is AlarmKind.PART_SILENT]
        assert (alarm.subject, alarm.severity) == ("circuit service", Severity.CRITICAL)
        assert "circuit service has given no sign of life since" in alarm.sentence
        assert "downburst circuit-service" in alarm.next_step
        service.silent = {}
        await service.watch.look()
        await service.watch.look()
    assert "part-silent///circuit service" not in await service.open_alarms()


async def test_a_silent_hub_is_an_alarm_and_ends_no_other(service: Service, clock: FakeClock) -> None:
    filled(service.live, clock.now())
    async with service.hub():
        await service.watch.look()
    before = set(await service.open_alarms())
    await service.watch.look()
    assert set(await service.open_alarms()) == before, "a hub that is started again is no alarm"
    clock.advance(HUB_SILENT_S + 1)
    for _ in range(3):
        await service.watch.look()
    after = await service.open_alarms()
    assert set(after) == before | {"part-silent///hub"}
    assert after["part-silent///hub"].severity is Severity.CRITICAL
    await service.watch.prove()
    async with service.hub():
        await service.watch.look()
        await service.watch.look()
    assert set(await service.open_alarms()) == before


async def test_receivers_are_tried_where_they_are_notified(service: Service) -> None:
    asked = service.bus.subscribe()
    remote = RemoteAlarms(service.bus)
    async with answering(service.bus, Part.ALARMS, answers_of_watch(service.watch, service.ledger)):
        for receiver in (OPS, OWN):
            await remote.tell_as_a_test(receiver)
        assert service.teller.told == [(OPS.address, "test"), (OWN.address, "test")]
        with pytest.raises(Failure, match="broken is away"):
            await remote.tell_as_a_test(replace(OPS, name="broken"))
        with pytest.raises(NotFound):
            await remote.tell_as_a_test(replace(OPS, name="nobody"))
    assert "secret" not in repr(asked._waiting), "an address may hold one"
    with pytest.raises(PartAway):
        await remote.tell_as_a_test(OPS)
