"""Each alarm begins once and ends once, and receivers are notified once of each."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import httpx
import pytest

from downburst.bus.local import LocalBus
from downburst.domain.alarms import Alarm, AlarmKind, Receiver, ReceiverKind, Severity, Silence
from downburst.domain.events import FeedTraffic, LdmViolated, SiteProgress, SiteViolated, TrafficSeen
from downburst.domain.feeds import Feed
from downburst.domain.plans import Transport
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Subscription
from downburst.foundation.clock import FakeClock, to_us
from downburst.foundation.errors import Failure, LedgerAway
from downburst.ledger import Ledger
from downburst.live.state import LiveState, SiteSession
from downburst.settings.alarms import AlarmSettings
from downburst_alarms import notifier
from downburst_alarms.conditions import PEERS_NAMED
from downburst_alarms.gaps import MANY
from downburst_alarms.hub_facts import LiveFacts
from downburst_alarms.notices import NetworkTeller, mail, webhook_body
from downburst_alarms.watch import AlarmWatch
from factories import plan, settings

OPS = Receiver("ops", ReceiverKind.WEBHOOK, "http://ops/hook")


class Heard:
    """Receivers that record their notices; those in `away` are unreachable."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, bool]] = []
        self.away: set[str] = set()
        self.tries = 0

    async def tell(self, receiver: Receiver, alarm: Alarm, now: datetime) -> None:
        self.tries += 1
        if receiver.name in self.away:
            raise Failure(f"{receiver.name} is away")
        self.told.append((receiver.name, alarm.kind.value, alarm.ended_at is not None))


class Story:
    def __init__(self, ledger: Ledger, clock: FakeClock, directory: Path) -> None:
        self.ledger, self.clock, self.live, self.heard = ledger, clock, LiveState(), Heard()
        self.said: list[str] = []
        self.watch = AlarmWatch(
            ledger,
            LocalBus(),
            LiveFacts(self.live, directory),
            clock=clock,
            settings=settings(directory, alarms=AlarmSettings(disk_free_share=0, look_s=0.01)),
            teller=self.heard,
            say=self._say,
        )

    async def _say(self, sentence: str, _next_step: str) -> None:
        self.said.append(sentence)

    def site(self, *, connected: bool) -> None:
        self.live.sessions["unl.edu"] = SiteSession("unl.edu", connected, self.clock.now())

    async def after(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await self.watch.look()
        await self.watch.tell()

    async def alarms(self) -> list[Alarm]:
        return await self.ledger.read(lambda tx: tx.alerting.alarms.newest())


@pytest.fixture
def story(ledger: Ledger, clock: FakeClock, tmp_path: Path) -> Story:
    with ledger.transaction() as tx:
        tx.feeds.add(Feed("NGRID"))
        tx.sites.add(Site("unl.edu"))
        tx.subscriptions.add(Subscription(0, "unl.edu", "NGRID"))
        tx.alerting.receivers.add(OPS)
    return Story(ledger, clock, tmp_path / "hub")


async def test_an_alarm_is_told_once_and_its_end_once(story: Story) -> None:
    story.site(connected=False)
    for _ in range(20):
        await story.after(10)
    assert story.heard.told == [("ops", "site-down", False)]
    story.site(connected=True)
    for _ in range(20):
        await story.after(10)
    assert story.heard.told == [("ops", "site-down", False), ("ops", "site-down", True)]
    (alarm,) = await story.alarms()
    assert alarm.ended_at is not None


async def test_a_trouble_that_comes_and_goes_is_one_alarm(story: Story) -> None:
    for number in range(10):
        trouble = None if number % 2 else "its disk is full"
        progress = {"NGRID": SiteProgress("NGRID", number, 1, Transport.UNICAST, 1, trouble)}
        story.live.sessions["unl.edu"] = SiteSession("unl.edu", True, story.clock.now(), progress=progress)
        await story.after(10)
    assert story.heard.told == [("ops", "site-disk", False)]
    assert len(await story.alarms()) == 1


async def test_finding_01_a_site_that_says_what_can_not_be_is_told_once_and_watched_for_an_hour(story: Story) -> None:
    story.site(connected=True)
    for number in range(20):
        story.watch.violated(SiteViolated("unl.edu", story.clock.now(), f"number {number}"))
        story.watch.violated(SiteViolated("nobody.we.know", story.clock.now(), "anything"))
        await story.after(10)
    assert story.heard.told == [("ops", "site-violation", False)]
    (alarm,) = await story.alarms()
    assert (alarm.site, alarm.sentence.split(": ")[-1]) == ("unl.edu", "number 0")
    for _ in range(5):
        await story.after(900)
    assert story.heard.told == [("ops", "site-violation", False), ("ops", "site-violation", True)]


async def test_an_ldm_peer_that_says_what_can_not_be_is_named_and_no_site_is_blamed(story: Story) -> None:
    story.site(connected=True)
    for number in range(20):
        said = LdmViolated("198.51.100.9", story.clock.now(), f"number {number}", source="idd", site="nobody.we.know")
        story.watch.violated(said)
        await story.after(10)
    assert story.heard.told == [("ops", "peer-violation", False)]
    (alarm,) = await story.alarms()
    assert (alarm.site, alarm.subject, alarm.sentence.split(": ")[-1]) == (None, "198.51.100.9", "number 0")
    assert alarm.sentence.startswith("the LDM 198.51.100.9 has reported impossible values since ")


async def test_a_crowd_of_peers_fills_no_page_with_alarms(story: Story) -> None:
    for number in range(1_000):
        story.watch.violated(LdmViolated(f"2001:db8::{number}", story.clock.now(), "anything"))
    await story.after(10)
    assert len(await story.alarms()) == PEERS_NAMED


async def test_a_silence_keeps_quiet_and_what_goes_on_after_it_is_told(story: Story) -> None:
    until = story.clock.now() + timedelta(minutes=10)
    silence = Silence(0, until, "anna", site="unl.edu")
    await story.ledger.write(lambda tx: tx.alerting.silences.add(silence))
    story.site(connected=False)
    await story.after(61)
    assert (story.heard.told, len(await story.alarms())) == ([], 1)
    await story.after(600)
    assert story.heard.told == [("ops", "site-down", False)]


async def test_what_gets_worse_is_told_again_and_to_those_who_want_the_worst_alone(story: Story) -> None:
    night = Receiver("night", ReceiverKind.MAIL, "a@b", severities=(Severity.CRITICAL,))
    chat = Receiver("chat", ReceiverKind.MAIL, "a@b", severities=(Severity.INFORMATION,))
    with story.ledger.transaction() as tx:
        for one in (night, chat):
            tx.alerting.receivers.add(one)
    progress = SiteProgress("NGRID", 7, 3, Transport.UNICAST, 1)
    session = SiteSession("unl.edu", connected=True, since=story.clock.now(), progress={"NGRID": progress})
    story.live.sessions["unl.edu"] = session
    for _ in range(11):
        await story.after(10)
    assert story.heard.told == [("ops", "stalled", False)]
    for _ in range(60):
        await story.after(10)
    assert sorted(story.heard.told[1:]) == [("night", "stalled", False), ("ops", "stalled", False)]
    (alarm,) = await story.alarms()
    assert alarm.severity is Severity.CRITICAL


async def test_predictions_of_a_feed_are_said_once_a_day(story: Story) -> None:
    far = {"predicted_p99_ms": 0.02, "measured_p99_ms": 5_000.0, "measured_count": 500}
    with story.ledger.transaction() as tx:
        kept = tx.planning.plans.append(plan("NGRID"))
    for figures in (far, {}, far, {}):
        with story.ledger.transaction() as tx:
            tx.planning.plans.annotate(replace(kept, figures=figures))
        for _ in range(2):
            await story.after(120)
    (alarm,) = await story.alarms()
    assert (alarm.kind, alarm.ended_at is None) == (AlarmKind.PREDICTION, False)
    assert story.heard.told == [("ops", "prediction", False), ("ops", "prediction", True)]


async def test_what_began_and_ended_in_a_silence_is_not_told(story: Story) -> None:
    silence = Silence(0, story.clock.now() + timedelta(hours=1), "anna", kind=AlarmKind.SITE_DOWN)
    await story.ledger.write(lambda tx: tx.alerting.silences.add(silence))
    story.site(connected=False)
    await story.after(61)
    story.site(connected=True)
    await story.after(5)
    await story.after(31)
    await story.after(7_200)
    assert story.heard.told == []
    assert [alarm.ended_at is not None for alarm in await story.alarms()] == [True]


async def test_a_feed_that_falls_silent_is_told_and_its_return_too(story: Story) -> None:
    for number in range(MANY + 1):
        story.clock.advance(20)
        now_us = to_us(story.clock.now())
        traffic = FeedTraffic("NGRID", 1, 10, (10,), number)
        story.watch.seen(TrafficSeen(now_us - 1_000_000, now_us, (traffic,), (), (), 0))
    for silent_s, told in ((30, []), (9, [("ops", "silence", False)])):
        nothing_until_us = to_us(story.clock.now()) + silent_s * 1_000_000
        story.watch.seen(TrafficSeen(nothing_until_us - 1_000_000, nothing_until_us, (), (), (), 0))
        await story.after(silent_s)
        assert story.heard.told == told


async def test_a_receiver_that_can_not_be_reached_is_said_once_and_keeps_nobody_waiting(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifier, "RETRIES_S", (0.0, 0.0))
    other = Receiver("chat", ReceiverKind.WEBHOOK, "http://chat/")
    await story.ledger.write(lambda tx: tx.alerting.receivers.add(other))
    story.heard.away.add("ops")
    story.site(connected=False)
    await story.after(61)
    assert story.heard.told == [("chat", "site-down", False)]
    assert (story.said, story.heard.tries) == (["ops is away"], 4)
    story.site(connected=True)
    await story.after(5)
    await story.after(31)
    assert len(story.said) == 1


async def test_a_receiver_hears_what_it_wants(story: Story) -> None:
    wants = Receiver("site", ReceiverKind.WEBHOOK, "http://x/", kinds=(AlarmKind.SITE_DOWN,), sites=("other.edu",))
    await story.ledger.write(lambda tx: tx.alerting.receivers.add(wants))
    story.site(connected=False)
    await story.after(61)
    assert story.heard.told == [("ops", "site-down", False)]


async def test_an_alertmanager_is_told_again_so_that_the_alarm_stays(story: Story) -> None:
    receiver = Receiver("am", ReceiverKind.ALERTMANAGER, "http://am/")
    await story.ledger.write(lambda tx: tx.alerting.receivers.add(receiver))
    story.site(connected=False)
    await story.after(61)
    for _ in range(4):
        await story.after(60)
    assert [one for one in story.heard.told if one[0] == "am"].__len__() >= 4
    assert [one for one in story.heard.told if one[0] == "ops"] == [("ops", "site-down", False)]


@pytest.mark.all
async def test_a_ledger_that_is_away_for_long_is_waited_for(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    read, refused = story.ledger.read, 0

    async def away(*_: object, **__: object) -> None:
        nonlocal refused
        refused += 1
        raise LedgerAway("the ledger is away")

    story.site(connected=False)
    running = asyncio.create_task(story.watch.run())
    async with asyncio.timeout(30):
        while story.watch._notifier._repeated_at is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        monkeypatch.setattr(story.ledger, "read", away)
        while refused < 6:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        monkeypatch.setattr(story.ledger, "read", read)
        story.clock.advance(61)
        while not story.heard.told:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert not running.done()
    running.cancel()


async def test_what_goes_over_the_network(clock: FakeClock) -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(500 if request.url.host == "broken" else 200)

    teller = NetworkTeller("hub", AlarmSettings(), httpx.MockTransport(answer))
    now = clock.now()
    alarm = Alarm(7, "k", AlarmKind.SITE_DOWN, None, "unl.edu", "", "unl.edu is away", "look there", now)
    await teller.tell(OPS, alarm, now)
    assert b'"state":"firing"' in asked[0].content
    await teller.tell(Receiver("am", ReceiverKind.ALERTMANAGER, "http://am/"), alarm, now)
    assert str(asked[1].url) == "http://am/api/v2/alerts"
    assert b'"alertname":"Downburst site-down"' in asked[1].content
    with pytest.raises(Failure, match=r"it answered 500$"):
        await teller.tell(Receiver("bad", ReceiverKind.WEBHOOK, "http://broken/"), alarm, now)
    with pytest.raises(Failure, match=r"alarms\.smtp_url names no server"):
        await teller.tell(Receiver("mail", ReceiverKind.MAIL, "ops@example.edu"), alarm, now)
    message = mail("hub", alarm, Receiver("mail", ReceiverKind.MAIL, "ops@example.edu"), AlarmSettings())
    assert message["Subject"] == "[hub] warning: unl.edu is away"
    assert "Next: look there" in message.get_content()
    assert webhook_body("hub", alarm)["ended_at"] is None
