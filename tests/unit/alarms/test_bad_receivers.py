"""A receiver that cannot be notified stops no notice to others, and no receiver is notified twice."""

from datetime import UTC, datetime

import httpx
import pytest

from downburst.domain.alarms import Alarm, AlarmKind, Receiver, ReceiverKind
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Subscription
from downburst.foundation.errors import BadInput, LedgerAway
from downburst.settings.alarms import AlarmSettings
from downburst.supervision import FAULTS
from downburst_alarms import notifier
from downburst_alarms.notices import NetworkTeller
from unit.alarms.test_watch import Story, story

__all__ = ["story"]
BROKEN = Receiver("broken", ReceiverKind.WEBHOOK, "http://[", owner="unl.edu")
BROKEN_MAIL = Receiver("mail", ReceiverKind.MAIL, "a@b\nBcc: c@d", owner="unl.edu")


class OverTheNetwork:
    """The real teller over a mock transport, which records the host of each request."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        transport = httpx.MockTransport(self._answer)
        self.tell = NetworkTeller("hub", AlarmSettings(smtp_url="smtp://127.0.0.1:1"), transport).tell

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request.url.host)
        return httpx.Response(200)


async def test_finding_03_a_broken_address_of_a_site_stops_no_alarm_and_repeats_none(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifier, "RETRIES_S", ())
    teller = OverTheNetwork()
    monkeypatch.setattr(story.watch._notifier, "_teller", teller)
    for receiver in (BROKEN, BROKEN_MAIL):
        await story.ledger.write(lambda tx, one=receiver: tx.alerting.site_receivers.add(one))  # type: ignore[misc]
    await story.ledger.write(lambda tx: tx.sites.add(Site("other.edu")))
    await story.ledger.write(lambda tx: tx.subscriptions.add(Subscription(0, "other.edu", "NGRID")))
    story.site(connected=False)
    for _ in range(20):
        await story.after(10)
    await story.after(10)
    assert teller.asked == ["ops"] * len(await story.alarms())
    assert any("broken can't" in said or "`address` is not a URL" in said for said in story.said)
    assert len(story.said) == 2


async def test_finding_03_an_unknown_error_of_one_receiver_is_its_own(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell = story.heard.tell

    async def fails(receiver: Receiver, alarm: Alarm, now: object) -> None:
        if receiver.owner is not None:
            raise RuntimeError("nobody thought of this")
        await tell(receiver, alarm, now)  # type: ignore[arg-type]

    monkeypatch.setattr(story.heard, "tell", fails)
    await story.ledger.write(lambda tx: tx.alerting.site_receivers.add(BROKEN))
    story.site(connected=False)
    for _ in range(8):
        await story.after(10)
    assert [told for told in story.heard.told if told[1] == "site-down"] == [("ops", "site-down", False)]
    (fault,) = FAULTS.all()
    assert (fault.handler, fault.what) == ("alarms.receiver", "receiver broken of site unl.edu")
    assert ("ops", "internal-fault", False) in story.heard.told


async def test_finding_03_what_was_told_and_could_not_be_noted_is_not_told_again(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.site(connected=False)
    story.clock.advance(61)
    await story.watch.look()
    write = story.ledger.write

    async def away(*_: object, **__: object) -> None:
        raise LedgerAway("the ledger is away")

    monkeypatch.setattr(story.ledger, "write", away)
    for _ in range(3):
        with pytest.raises(LedgerAway):
            await story.watch.tell()
    monkeypatch.setattr(story.ledger, "write", write)
    await story.watch.tell()
    assert story.heard.told == [("ops", "site-down", False)]
    (alarm,) = await story.alarms()
    assert alarm.told_at is not None


@pytest.mark.parametrize(
    ("kind", "address"),
    [
        (ReceiverKind.WEBHOOK, "http://["),
        (ReceiverKind.WEBHOOK, "http://h/\r\nX: y"),
        (ReceiverKind.WEBHOOK, "http://h:99999/"),
        (ReceiverKind.WEBHOOK, "http://a%00b/"),
        (ReceiverKind.WEBHOOK, "http://evil.example\\@h/"),
        (ReceiverKind.WEBHOOK, "gopher://h/"),
        (ReceiverKind.ALERTMANAGER, "https:///x"),
        (ReceiverKind.MAIL, "ops@example.edu\nBcc: x@y.z"),
        (ReceiverKind.MAIL, "ops@example.edu, all@example.edu"),
        (ReceiverKind.MAIL, "@example.edu"),
    ],
)
async def test_finding_03_an_address_that_was_let_in_once_is_refused_at_use(kind: ReceiverKind, address: str) -> None:
    teller, alarm = OverTheNetwork(), _alarm()
    with pytest.raises(BadInput, match="`address`"):
        await teller.tell(Receiver("x", kind, address, owner="unl.edu"), alarm, alarm.since)
    assert teller.asked == []


def _alarm() -> Alarm:
    since = datetime(2026, 1, 1, tzinfo=UTC)
    return Alarm(7, "k", AlarmKind.SITE_DOWN, None, "unl.edu", "", "unl.edu is away", "look there", since)
