"""Faults in the overview: in the order to look at them, and from their begin to their end."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from downburst.domain.alarms import AlarmKind, Severity
from downburst.domain.events import NodeChanged, SessionChanged
from downburst.domain.faults import Fault
from downburst.domain.feeds import Feed
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Subscription
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import Failure, LedgerAway
from downburst.ledger import Ledger, Transaction
from downburst.ledger.storage.outage import Outage
from downburst.parts.names import Part
from downburst.parts.presence import Presence
from downburst.supervision.probes import Probes
from downburst_api.overview.wrong import Wrong, in_order
from unit.api.conftest import Asked

KILLED = "the node ended by signal 9: a user killed it"


@pytest.fixture
def site(hub: Asked, clock: FakeClock) -> Asked:
    """A hub with one site that is connected."""
    with hub.runtime.ledger.transaction() as tx:
        tx.feeds.add(Feed("NGRID"))
        tx.sites.add(Site("a.edu"))
        tx.subscriptions.add(Subscription(0, "a.edu", "NGRID"))
    hub.runtime.live.apply(SessionChanged("a.edu", "connected", clock.now(), "192.0.2.1:5"))
    return hub


async def wrong(hub: Asked) -> list[tuple[str, str]]:
    """Severity and sentence, as page and command show them."""
    faults: list[dict[str, Any]] = (await hub.ask("GET", "/v1/overview"))["faults"]
    assert all(fault["next"] for fault in faults)
    return [(fault["severity"], fault["sentence"]) for fault in faults]


def one(clock: FakeClock, sentence: str, kind: AlarmKind | None, age_s: float, **more: Any) -> Wrong:
    about = {name: more.pop(name, None) for name in ("feed", "site")}
    fault = Fault(clock.now() - timedelta(seconds=age_s), sentence, **about)
    return Wrong(fault, more.pop("severity", Severity.CRITICAL), kind, **more)


def test_what_follows_comes_behind_its_cause_and_nothing_lighter_before_either(clock: FakeClock) -> None:
    found = [
        one(clock, "a warning", AlarmKind.CLOCK, 1, site="a.edu", severity=Severity.WARNING),
        one(clock, "over", None, 2, is_over=True),
        one(clock, "nothing comes out", AlarmKind.HEARTBEAT, 3, feed="NGRID", site="a.edu"),
        one(clock, "nothing comes out elsewhere", AlarmKind.HEARTBEAT, 4, feed="NGRID", site="b.edu"),
        one(clock, "can't store", AlarmKind.SITE_DISK, 50, feed="NGRID", site="a.edu"),
        one(clock, "the ledger is away", None, 99, of_hub=True),
    ]
    assert [each.fault.sentence for each in in_order(found)] == [
        "the ledger is away",
        "nothing comes out elsewhere",
        "can't store",
        "nothing comes out",
        "over",
        "a warning",
    ]


def test_a_missed_objective_is_behind_all_that_may_be_its_cause(clock: FakeClock) -> None:
    late = one(clock, "late", AlarmKind.OBJECTIVE, 1, feed="NGRID", site="a.edu")
    for site in ("a.edu", "b.edu"):
        found = [late, one(clock, "cause", AlarmKind.SITE_DOWN, 60, site=site)]
        assert in_order(found)[0].fault.sentence == "cause"
    slight = one(clock, "slight", AlarmKind.CLOCK, 60, site="a.edu", severity=Severity.WARNING)
    assert in_order([slight, late])[0] == late


async def test_a_node_that_ended_is_first_until_it_is_back_and_its_sites_are(site: Asked, clock: FakeClock) -> None:
    at = clock.now()
    site.node.running = False
    site.runtime.live.apply(NodeChanged(at, running=False, restarts=1, reason=KILLED))
    # The journal holds the fault as well, as history.
    await site.runtime.ledger.write(
        lambda tx: tx.measured.faults.add(Fault(at, f"{KILLED}; restarted", next_step="none"))
    )
    clock.advance(2)
    first, site_away = await wrong(site)
    assert first == ("critical", f"{KILLED}, so no products are received or sent")
    assert (site_away[0], "the hub's node is not running" in site_away[1]) == ("information", True)
    site.node.running = True
    site.runtime.live.apply(NodeChanged(clock.now(), running=True, restarts=1))
    site.runtime.live.apply(SessionChanged("a.edu", "connected", clock.now(), "192.0.2.1:5"))
    ((severity, sentence),) = await wrong(site)
    assert (severity, sentence.startswith(f"{KILLED}; it has been running again since")) == ("warning", True)
    clock.advance(10)
    assert await wrong(site) == []


async def test_a_node_that_ends_again_and_again_stays_wrong_for_a_while(site: Asked, clock: FakeClock) -> None:
    for restarts in (1, 2, 3):
        site.runtime.live.apply(NodeChanged(clock.now(), running=False, restarts=restarts, reason=KILLED))
        site.runtime.live.apply(NodeChanged(clock.now(), running=True, restarts=restarts))
        site.runtime.live.apply(SessionChanged("a.edu", "connected", clock.now(), "192.0.2.1:5"))
        clock.advance(60)
    ((severity, sentence),) = await wrong(site)
    assert (severity, "ended 3 times in 10 min" in sentence, KILLED in sentence) == ("warning", True, True)
    clock.advance(8 * 60)
    assert await wrong(site) == []


async def test_a_site_that_is_away_for_longer_than_a_restart_is_a_warning_at_once(
    site: Asked, clock: FakeClock
) -> None:
    cut = "the connection was cut"
    site.runtime.live.apply(SessionChanged("a.edu", "closed", clock.now(), "192.0.2.1:5", reason=cut))
    for seconds, severity in ((9, "information"), (1, "warning")):
        clock.advance(seconds)
        ((found, sentence),) = await wrong(site)
        assert (found, cut in sentence) == (severity, True)


async def test_an_overview_goes_on_without_the_ledger_and_names_it_first(
    site: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await site.ask("GET", "/v1/overview")
    patiences: list[float] = []

    async def away(_ledger: Ledger, _work: Callable[[Transaction], Any], *, patience_s: float = 10.0) -> Any:
        patiences.append(patience_s)
        raise LedgerAway("nothing listens there; start the server")

    monkeypatch.setattr(Ledger, "outage", property(lambda _: Outage(12.0, "nothing listens there; start the server")))
    with monkeypatch.context() as broken:
        broken.setattr(Ledger, "read", away)
        during = await site.ask("GET", "/v1/overview")
    assert [one["site"] for one in during["sites"]] == [one["site"] for one in before["sites"]]
    (fault,) = during["faults"]
    assert (fault["severity"], fault["next"]) == ("critical", "restore the server; the hub continues by itself")
    assert "nothing listens there" in fault["sentence"]
    assert "products are still received and sent" in fault["sentence"]
    assert set(patiences) == {0.0}, "a page that is open waits for nothing"
    monkeypatch.undo()
    assert await wrong(site) == []


async def test_a_probe_that_goes_on_failing_is_wrong_unless_its_cause_is_named(
    site: Asked, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails() -> None:
        raise Failure("the disk is full; free some space")

    seconds = [0.0]
    site.runtime.probes = Probes({"store": fails}, now_s=lambda: seconds[0])
    await site.runtime.probes.look()
    assert await wrong(site) == [], "once is no trouble"
    seconds[0] = 5.0
    await site.runtime.probes.look()
    ((severity, sentence),) = await wrong(site)
    assert (severity, "the disk is full" in sentence) == ("critical", True)
    site.node.running = False
    assert [sentence for _, sentence in await wrong(site)] == [
        "the node is not running, so no products are received or sent"
    ]


async def test_a_silent_part_of_another_process_is_wrong_with_its_remedy(site: Asked) -> None:
    seconds = [0.0]
    presence = Presence([Part.CIRCUITS], lambda: seconds[0])
    site.runtime.probes = Probes(presence.probes(), now_s=lambda: seconds[0])
    await site.runtime.probes.look()
    await site.ask("GET", "/healthz")
    for seconds[0] in (20.0, 25.0):
        await site.runtime.probes.look()
    problem = await site.problem("GET", "/healthz", 503, "probe-failed")
    assert problem["probes"]["circuit-service"] == "no sign of life from the circuit service for 25 s"
    ((severity, sentence),) = await wrong(site)
    assert (severity, "its probe of the circuit-service fails" in sentence) == ("critical", True)
    (fault,) = (await site.ask("GET", "/v1/overview"))["faults"]
    assert fault["next"].startswith("start it again: downburst circuit-service; if it runs, check Kafka")
