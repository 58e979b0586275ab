"""Groups on circuits that join several sites: conditions for their choice, their rate, and their legs."""

from dataclasses import replace

import pytest

from downburst.domain.circuits import (
    Circuit,
    CircuitCarriage,
    CircuitEnd,
    CircuitRequest,
    CircuitState,
    Direction,
    Measured,
    Replication,
)
from downburst.domain.plans import Leg, Transport
from downburst_scheduler.legs import followed, legs_of, paced
from downburst_scheduler.models.candidates import Evaluated, compare
from downburst_scheduler.models.offers import CircuitOffer, CircuitOffers
from downburst_scheduler.models.parts import Part
from downburst_scheduler.models.situation import SiteFacts
from factories import SOME_TIME
from unit.scheduler.feeds import live, steady

M = 1_000_000


def joined(name: str, *, replicated: bool = True, **other: object) -> SiteFacts:
    """A site that receives no multicast of the network, on circuit 17 with two others."""
    offer = CircuitOffer(17, 50 * M, sites=3, replicated=replicated, group_bps=50 * M)
    facts = {"circuit": offer, "no_multicast": f"{name} received no multicast"} | other
    return SiteFacts(name=name, **facts)  # type: ignore[arg-type]


def candidates(*sites: SiteFacts) -> dict[Transport, Evaluated]:
    return {one.transport: one for one in compare(steady(), live(*sites)).candidates}


def test_a_group_rides_on_a_circuit_where_the_network_carries_none() -> None:
    comparison = compare(steady(), live(joined("a"), joined("b"), joined("c")))
    best = comparison.best
    assert (best.transport, best.feasible) == (Transport.MULTICAST, True)
    assert best.groups[0].circuits == (("a", 17), ("b", 17), ("c", 17))
    assert (best.circuit_sites, best.unicast_sites, best.routed_bps) == ((), (), 0.0)
    assert best.reason == "one group of 3 sites on circuit 17 at 48.3 Mb/s"


def test_where_the_hub_makes_the_copies_a_group_saves_nothing_and_costs_its_reserve() -> None:
    sites = [joined(name, replicated=False) for name in "abc"]
    found = candidates(*sites)
    group, copies = found[Transport.MULTICAST], found[Transport.STATIC_CIRCUIT]
    assert group.feasible
    assert copies.score_bps < group.score_bps
    replicated = candidates(*(joined(name) for name in "abc"))
    assert replicated[Transport.MULTICAST].score_bps < replicated[Transport.STATIC_CIRCUIT].score_bps


def test_who_is_not_on_the_circuit_gets_copies() -> None:
    group = candidates(joined("a"), joined("b"), SiteFacts(name="d", no_multicast="d received no multicast"))
    assert group[Transport.MULTICAST].unicast_sites == ("d",)
    assert group[Transport.MULTICAST].reason.endswith(", 1 site by unicast")
    out = joined("b", no_circuit_group="b received no multicast")
    assert "a group needs at least 2 sites" in candidates(joined("a"), out)[Transport.MULTICAST].reason


def test_a_circuit_that_is_narrower_than_the_feed_carries_no_group() -> None:
    narrow = CircuitOffer(17, M, sites=3, replicated=True, group_bps=M)
    option = candidates(joined("a", circuit=narrow), joined("b", circuit=narrow))[Transport.MULTICAST]
    assert not option.feasible


def test_a_copy_to_each_site_has_a_part_of_what_the_network_replicates() -> None:
    ends = (CircuitEnd("hub-eth0"), CircuitEnd("a-eth1", "a"), CircuitEnd("b-eth1", "b"))
    circuit = Circuit(17, CircuitRequest("r"), ends, 500 * M, 0, SOME_TIME, None, state=CircuitState.ACTIVE)
    rows = [Measured(17, site, Direction.OUT, SOME_TIME, 450 * M, 500 * M) for site in "ab"]
    by_hub = CircuitOffers([circuit], rows).to("a")
    replicated = CircuitCarriage(replication=Replication.UNDERLAY)
    by_network = CircuitOffers([replace(circuit, carriage=replicated)], rows).to("a")
    assert by_hub is not None
    assert by_network is not None
    assert by_network.payload_bps == pytest.approx(by_hub.payload_bps / 2)
    assert by_network.group_frames_bps == pytest.approx(450e6 * 1_414 / 1_464)


def test_a_leg_on_a_circuit_is_followed_on_that_circuit_alone() -> None:
    on_17 = Part(Transport.MULTICAST, ("a", "b"), circuits=(("a", 17), ("b", 17)))
    standing = Leg(8, Transport.MULTICAST, ("a", "b"), "239.0.0.8", 5_008, 50 * M, (("a", 17), ("b", 17)))
    assert followed([on_17], [standing]) == [standing]
    assert followed([on_17], [replace(standing, circuits=())]) == [None]
    assert followed([replace(on_17, circuits=())], [standing]) == [None]


def test_a_rate_that_was_measured_a_little_different_is_no_other_plan() -> None:
    leg = Leg(8, Transport.MULTICAST, ("a", "b"), "239.0.0.8", 5_008, 50 * M, (("a", 17), ("b", 17)))
    assert paced(leg, 49_500_000) == paced(leg, 53 * M) == leg
    assert paced(leg, 40 * M).rate_bps == 40 * M
    assert paced(replace(leg, circuits=()), 49_500_000).rate_bps == 49_500_000


def test_the_leg_of_a_group_names_its_circuit_and_riding_alone_needs_no_other_leg() -> None:
    best = compare(steady(), live(joined("a"), joined("b"), joined("c"))).best
    group = Leg(8, Transport.MULTICAST, (), "239.0.0.8", 5_008, 50 * M)
    (leg,) = legs_of(best, unicast_leg=1, groups=(group,))
    assert (leg.leg, leg.sites, leg.rate_bps) == (8, ("a", "b", "c"), 50 * M)
    assert leg.circuits == (("a", 17), ("b", 17), ("c", 17))
