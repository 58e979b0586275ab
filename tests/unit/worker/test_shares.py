"""A node's own part of feeds, sites and plans."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from downburst.domain.feeds import Feed, FeedClass
from downburst.domain.plans import Leg, Transport
from downburst.domain.senders import DEAD_S, Assignment
from downburst.domain.sites import Site
from downburst.ledger import Ledger
from downburst_worker.shares import LEFT_S, HubShare, SenderShare, Share
from factories import multicast, plan, unicast


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    opened = Ledger.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}")
    with opened.transaction() as tx:
        for feed in ("A", "B"):
            tx.feeds.add(Feed(name=feed, feed_class=FeedClass.GRID))
        for site in ("oslo", "rome"):
            tx.sites.add(Site(name=site))
        for name in ("one", "two"):
            tx.fleet.senders.register(name, address=f"{name}:1", public_key="04")
    return opened


def assign(ledger: Ledger, *wanted: tuple[str, str, str]) -> int:
    with ledger.transaction() as tx:
        return tx.fleet.assignments.replace([Assignment(*one) for one in wanted])


async def looked(ledger: Ledger, sender: str | None) -> Share:
    share = HubShare(ledger) if sender is None else SenderShare(ledger, sender, f"{sender}:1")
    await share.look()
    return share


async def test_the_hub_serves_all_while_nothing_is_placed(ledger: Ledger) -> None:
    hub = await looked(ledger, None)
    (line,) = hub.tell_sites({"sites": [{"site": "oslo"}]})["sites"]
    assert line == {"site": "oslo", "nodes": [], "nodes_version": 0}
    made = plan("A", multicast(7, "oslo"))
    assert hub.own_part(made) == made


async def test_a_sender_has_the_feeds_that_it_serves_and_tells_of_the_others(ledger: Ledger) -> None:
    version = assign(ledger, ("A", "oslo", "one"), ("B", "oslo", "two"))
    one = await looked(ledger, "one")
    with ledger.transaction(writes=False) as tx:
        assert [feed.name for feed in one.own_feeds(tx.feeds.all())] == ["A"]
    told = one.tell_sites({"sites": [{"site": "oslo"}, {"site": "rome"}]})["sites"]
    assert told[0]["nodes"] == [{"address": "one:1", "feeds": ["A"]}, {"address": "two:1", "feeds": ["B"]}]
    assert told[1]["nodes"] == [{"address": "one:1", "feeds": []}, {"address": "two:1", "feeds": []}]
    assert {line["nodes_version"] for line in told} == {version}
    assert not await one.look(), "nothing changed"


async def test_a_version_says_the_same_while_a_sender_is_not_heard_and_when_it_is(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site takes each version once, so a version without a sender would leave it unserved until the next one."""
    version = assign(ledger, ("A", "oslo", "one"))
    hub = await looked(ledger, None)
    now_s = time.monotonic()
    for after_s in (0.4 * DEAD_S, 0.8 * DEAD_S, 1.2 * DEAD_S):
        monkeypatch.setattr(time, "monotonic", lambda after_s=after_s: now_s + after_s)
        await hub.look()
    assert hub.placement.is_empty, "it has not beaten for so long"
    (line,) = hub.tell_sites({"sites": [{"site": "oslo"}]})["sites"]
    assert line["nodes"] == [{"address": "one:1", "feeds": ["A"]}]
    assert line["nodes_version"] == version


async def test_a_feed_that_goes_to_another_sender_stays_open_until_the_last_receipts_came(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    assign(ledger, ("A", "oslo", "one"))
    one = await looked(ledger, "one")
    assign(ledger, ("A", "oslo", "two"))
    assert await one.look()
    with ledger.transaction(writes=False) as tx:
        feeds = tx.feeds.all()
    assert [feed.name for feed in one.own_feeds(feeds)] == ["A"]
    assert not await one.look()
    later_s = time.monotonic() + LEFT_S
    monkeypatch.setattr(time, "monotonic", lambda: later_s)
    assert await one.look()
    assert list(one.own_feeds(feeds)) == []
    assert not await one.look()


async def test_a_group_has_the_one_sender_that_serves_all_of_it(ledger: Ledger) -> None:
    made = plan("A", multicast(7, "oslo", "rome"), unicast(1))
    assign(ledger, ("A", "oslo", "one"), ("A", "rome", "one"))
    one, two, hub = [await looked(ledger, sender) for sender in ("one", "two", None)]
    assert one.own_part(made) == made
    assert two.own_part(made) is None
    left = hub.own_part(made)
    assert left is not None
    assert {leg.transport for leg in left.legs} == {Transport.UNICAST}
    one.fenced = True
    assert one.own_part(made) == left, "another one may send to the group by now"
    assign(ledger, ("A", "oslo", "one"), ("A", "rome", "two"))
    one.fenced = False
    assert await one.look()
    assert one.own_part(made) == left, "it is being brought together"


async def test_a_sender_serves_sites_by_its_own_circuits_and_the_others_by_the_routed_path(ledger: Ledger) -> None:
    riding = Leg(9, Transport.STATIC_CIRCUIT, ("oslo", "rome"), circuits=(("oslo", 17), ("rome", 18)))
    assign(ledger, ("A", "oslo", "one"), ("A", "rome", "two"))
    one = await looked(ledger, "one")
    made = plan("A", unicast(1), riding)
    assert one.own_part(made) == plan("A", unicast(1))
    assert one.has([17])
    assert not one.has([17]), "the plans are sent once for each change"
    own = Leg(9, Transport.STATIC_CIRCUIT, ("oslo",), circuits=(("oslo", 17),))
    assert one.own_part(made) == plan("A", unicast(1), own)
    assert one.has([17, 18])
    assert one.own_part(made) == made


async def test_a_group_on_a_circuit_is_sent_where_that_begins(ledger: Ledger) -> None:
    group = Leg(7, Transport.MULTICAST, ("oslo", "rome"), circuits=(("oslo", 17), ("rome", 17)))
    assign(ledger, ("A", "oslo", "one"), ("A", "rome", "one"))
    one = await looked(ledger, "one")
    assert one.own_part(plan("A", group, unicast(1))) == plan("A", unicast(1))
    one.has([17])
    assert one.own_part(plan("A", group, unicast(1))) == plan("A", group, unicast(1))


async def test_the_hubs_part_of_plans_does_not_depend_on_its_circuits(ledger: Ledger) -> None:
    hub = await looked(ledger, None)
    assert not hub.has([17])


async def test_versions_rise_with_each_change_and_not_without(ledger: Ledger) -> None:
    first = assign(ledger, ("A", "oslo", "one"))
    assert assign(ledger, ("A", "oslo", "one")) == first
    assert assign(ledger, ("A", "oslo", "two")) > first
    with ledger.transaction() as tx:
        gone = tx.fleet.assignments.version()
        tx.fleet.senders.remove("two")
    hub = await looked(ledger, None)
    assert hub.placement.is_empty, "an absent sender serves no site"
    assert hub.placement.version == gone


async def test_a_key_is_signed_once_and_a_sender_with_another_key_waits_again(ledger: Ledger) -> None:
    asked: list[str] = []

    async def ask(do: str, **fields: object) -> dict[str, str]:
        assert do == "certify"
        asked.append(str(fields["public_key"]))
        return {"certificate": "c", "authority": "a"}

    hub = await looked(ledger, None)
    await hub.certify_others(ask)
    await hub.look()
    await hub.certify_others(ask)
    assert asked == ["04", "04"], "two senders, once each"
    with ledger.transaction() as tx:
        assert tx.fleet.senders.register("one", address="one:1", public_key="04").certificate == "c"
        other = tx.fleet.senders.register("one", address="one:1", public_key="05")
    assert other.certificate is None
    assert replace(other, beats=0) != other
