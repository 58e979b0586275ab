"""Relays in the ledger: their site records, the ways of sites, the log of tunnels, and the audit."""

from dataclasses import replace

import pytest

from downburst.domain.feeds import Feed
from downburst.domain.plans import Leg, Plan, Transport
from downburst.domain.relays import CoreCircuit, FanOut, Relay, Segment, SiteWay, Tunnel
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Subscription
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import AlreadyThere, BadInput, NotFound
from downburst.ledger import Transaction
from downburst.ledger.repositories.audit import Changes
from factories import SOME_TIME

NEAR, ONWARD = Segment(2_000, 1_000, "cubic", 90_000_000), Segment(None, None, "bbr", 80_000_000)
TUNNEL = Tunnel(
    "oslo", "192.0.2.9:4711", "198.51.100.1:9", "hub:7370", 60.5, 10**9, 4_000, 132_000_000, NEAR, ONWARD, ended=True
)
CAMPUS = Relay("campus", "relay.campus.edu:7379", FanOut.GROUP, ("bergen", "oslo"), ("NGRID",))


@pytest.fixture
def sited(tx: Transaction) -> Transaction:
    tx.feeds.add(Feed("NGRID"))
    for name in ("oslo", "bergen"):
        tx.sites.add(Site(name))
    return tx


def test_a_relay_comes_back_whole_and_has_a_site_record(sited: Transaction, clock: FakeClock) -> None:
    kept = sited.fleet.relays.put(replace(CAMPUS, sites=("oslo", "bergen", "oslo")))
    assert kept == replace(CAMPUS, created_at=clock.now())
    assert sited.fleet.relays.all() == [kept] == [sited.fleet.relays.one("campus")]
    assert sited.sites.one("campus").allow == ("NGRID",)
    spliced = sited.fleet.relays.put(replace(CAMPUS, fan_out=None, feeds=("*",), sites=()))
    assert (spliced.fan_out, spliced.sites, sited.sites.one("campus").allow) == (None, (), ("*",))
    sited.fleet.relays.remove("campus")
    assert (sited.fleet.relays.all(), sited.sites.find("campus")) == ([], None)
    with pytest.raises(NotFound, match="relays list"):
        sited.fleet.relays.remove("campus")


def test_impossible_relays_are_refused_and_change_nothing(sited: Transaction) -> None:
    sited.subscriptions.add(Subscription(0, "oslo", "NGRID"))
    sited.fleet.relays.put(Relay("core", "core.example.edu:7379", sites=()))
    before = sited.fleet.relays.put(replace(CAMPUS, sites=("core", "oslo")))
    refused = {
        "there is no site 'paris'": replace(CAMPUS, sites=("paris",)),
        "there is no feed": replace(CAMPUS, feeds=("NOFEED",)),
        "'oslo' has subscriptions": replace(CAMPUS, name="oslo", sites=()),
        "relay core would be behind itself, by way of campus": Relay(
            "core", "core.example.edu:7379", sites=("campus",)
        ),
    }
    for sentence, relay in refused.items():
        with pytest.raises((NotFound, AlreadyThere, BadInput), match=sentence):
            sited.fleet.relays.put(relay)
    assert sited.fleet.relays.one("campus") == before
    assert sited.sites.find("paris") is None


def test_a_relay_takes_no_subscription(sited: Transaction) -> None:
    sited.fleet.relays.put(CAMPUS)
    with pytest.raises(BadInput, match="'campus' is a relay, which takes no products"):
        sited.subscriptions.add(Subscription(0, "campus", "NGRID"))


def test_the_ways_of_a_site_go_through_relays_that_splice(sited: Transaction) -> None:
    sited.fleet.relays.put(CAMPUS)
    sited.fleet.relays.put(Relay("core", "[2001:db8::1]:7379", sites=("campus",)))
    sited.fleet.relays.put(Relay("local", None, FanOut.GROUP, ("oslo",), ("*",)))
    assert sited.fleet.relays.ways_of("oslo") == (("campus",), ("campus", "core"))
    assert sited.fleet.relays.ways_of("elsewhere") == ()


def test_the_way_of_a_site_is_replaced_and_goes_with_it(sited: Transaction, clock: FakeClock) -> None:
    direct = sited.fleet.ways.put(SiteWay("oslo", (), "the direct way is no slower", direct_bps=10**8))
    assert sited.fleet.ways.find("oslo") == direct == replace(direct, decided_at=clock.now())
    way = SiteWay("oslo", ("campus", "core"), "13 times the rate", 10**9, 10**8, 9 * 10**8, SOME_TIME)
    sited.fleet.ways.put(way)
    sited.fleet.ways.put(SiteWay("gone", (), "no such site"))
    assert sited.fleet.ways.all() == [way]
    over = replace(way, over=CoreCircuit(7, "core", "10.9.0.1"))
    assert sited.fleet.ways.put(over) == over == sited.fleet.ways.find("oslo")
    sited.fleet.ways.put(way)
    assert sited.fleet.ways.all() == [way]
    sited.sites.remove("oslo")
    assert sited.fleet.ways.all() == []


def test_the_log_of_a_relay_comes_back_newest_first(sited: Transaction, clock: FakeClock) -> None:
    sited.fleet.relays.put(CAMPUS)
    sited.fleet.relay_log.add("campus", [TUNNEL, replace(TUNNEL, site=None, ended=False)])
    sited.fleet.relay_log.add("gone", [TUNNEL])
    newest, oldest = sited.fleet.relay_log.newest("campus")
    assert (newest.tunnel.site, oldest.tunnel, oldest.at, oldest.relay) == (None, TUNNEL, clock.now(), "campus")
    assert sited.fleet.relay_log.newest("campus", before=newest.number) == [oldest]


def test_a_leg_of_a_relay_comes_back(sited: Transaction) -> None:
    leg = Leg(7, Transport.MULTICAST, ("oslo",), "239.1.1.7", 7400, 10**7, relay="campus", fan_out=FanOut.GROUP)
    sited.planning.plans.append(Plan("NGRID", 0, (leg,), "one copy for campus", SOME_TIME))
    found = sited.planning.plans.current("NGRID")
    assert found is not None
    assert found.legs == (leg,)


def test_every_change_of_a_relay_is_audited(sited: Transaction) -> None:
    sited.fleet.relays.put(CAMPUS)
    sited.fleet.relays.put(CAMPUS)
    sited.fleet.relays.put(replace(CAMPUS, sites=()))
    sited.fleet.relays.remove("campus")
    changes = sited.access.audit.page(Changes(kind="relay"))
    assert sorted(change.action for change in changes) == ["added", "changed", "removed"]
