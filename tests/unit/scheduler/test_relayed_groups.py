"""Groups behind relays: one copy for all of a relay's sites, its pace, its leg, and the sites that stay out."""

import time
from dataclasses import replace

import numpy as np
import pytest

from downburst.domain.plans import Leg, Transport
from downburst.domain.relays import FanOut
from downburst.domain.tcp.rates import CongestionControl
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.legs import by_relay, followed, legs_of, paced
from downburst_scheduler.models.candidates import Evaluated, compare
from downburst_scheduler.models.offers import RelayOffer
from downburst_scheduler.models.parts import Part, asked_of, copies
from downburst_scheduler.models.population import alike, count_of
from downburst_scheduler.models.rates import PathFacts, connection_bps, segments_of, whole
from downburst_scheduler.models.situation import SiteFacts
from downburst_scheduler.models.transports import relayed
from unit.scheduler.feeds import live, sites, steady

CAMPUS = RelayOffer("campus")
OFF = "multicast is switched off in this hub's settings"


def behind(name: str, offer: RelayOffer = CAMPUS, **other: object) -> SiteFacts:
    return SiteFacts(name=name, relay=offer, **other)  # type: ignore[arg-type]


def campus(count: int = 4, offer: RelayOffer = CAMPUS, **other: object) -> tuple[SiteFacts, ...]:
    return tuple(behind(f"{offer.relay}-{number}", offer, **other) for number in range(1, count + 1))


def multicast(*wanted: SiteFacts, arrivals: Arrivals | None = None, **hub: object) -> Evaluated:
    found = compare(arrivals or steady(), live(*wanted, **hub)).candidates
    return next(one for one in found if one.transport is Transport.MULTICAST)


def test_sites_behind_a_relay_get_one_copy_where_the_hub_has_no_multicast() -> None:
    best = compare(steady(), live(*campus(), *sites(2), no_multicast=OFF)).best
    assert (best.transport, best.feasible) == (Transport.MULTICAST, True)
    (group,) = best.groups
    assert (group.relay, group.sites) == (CAMPUS, ("campus-1", "campus-2", "campus-3", "campus-4"))
    assert best.unicast_sites == ("site-1", "site-2")
    assert best.reason == ("one copy at up to 400 Mb/s for the 4 sites behind relay campus, 2 sites by unicast")
    assert best.outcome is not None
    assert best.outcome.egress_bps == pytest.approx(3 * 1.6e6 * 1.05, rel=0.03), "one copy, and one for each other"


def test_the_network_has_a_group_for_the_others() -> None:
    deaf = campus(3, no_multicast="it received no multicast")
    found = multicast(*deaf, *sites(5))
    assert [(part.relay, len(part.sites)) for part in found.groups] == [(CAMPUS, 3), (None, 5)]
    assert found.reason == "one group of 5 sites, one copy at up to 400 Mb/s for the 3 sites behind relay campus"
    assert found.outcome is not None
    assert found.outcome.egress_bps == pytest.approx(2 * 1.6e6 * 1.05, rel=0.03)


def test_a_group_of_the_network_that_reaches_all_is_cheaper_than_one_more_copy() -> None:
    found = multicast(*campus(3), *sites(5))
    assert [part.relay for part in found.groups] == [None]


def test_a_relay_that_sends_by_unicast_costs_one_copy_as_well() -> None:
    group, unicast = (
        multicast(*campus(4, RelayOffer("campus", fan_out, core_bps=20e6)), no_multicast=OFF) for fan_out in FanOut
    )
    assert [part.relay and part.relay.fan_out for part in unicast.groups] == [FanOut.UNICAST]
    assert unicast.outcome is not None
    assert group.outcome is not None
    assert unicast.outcome.egress_bps == group.outcome.egress_bps


def test_each_relay_has_a_group_of_its_own_and_a_single_site_gets_a_copy() -> None:
    valley = RelayOffer("valley", FanOut.GROUP)
    found = multicast(*campus(3), *campus(2, valley), *campus(1, RelayOffer("alone")), no_multicast=OFF)
    assert [part.relay.relay for part in found.groups if part.relay] == ["campus", "valley"]
    assert found.unicast_sites == ("alone-1",)


def test_the_pace_is_that_of_the_core_and_of_the_slowest_line() -> None:
    narrow = RelayOffer("campus", core_bps=20e6)
    assert multicast(*campus(3, narrow), no_multicast=OFF).groups[0].rate_bps == 20e6
    slow = (*campus(3, narrow), behind("late", narrow, access_bps=5e6))
    (group,) = multicast(*slow, no_multicast=OFF).groups
    assert (group.rate_bps, group.limited) == (5e6, True)
    shared = multicast(*campus(3), *campus(3, RelayOffer("valley")), no_multicast=OFF, egress_bps=100e6)
    assert [part.rate_bps for part in shared.groups] == [45e6, 45e6]


def test_a_core_that_is_slower_than_the_feed_carries_no_group() -> None:
    found = multicast(*campus(3, RelayOffer("campus", core_bps=1e6)), no_multicast=OFF)
    assert (found.feasible, found.reason) == (False, OFF)


def test_sites_that_did_not_receive_the_relays_group_and_those_that_want_little_get_copies() -> None:
    out = behind("deaf", no_relay_group="deaf received no multicast")
    little = behind("little", share=0.01)
    found = multicast(*campus(3), out, little, no_multicast=OFF)
    assert found.unicast_sites == ("deaf", "little")
    pinned = multicast(*campus(3), out, little, no_multicast=OFF, insists_on_multicast=True)
    assert pinned.unicast_sites == ("deaf",)


def test_losses_of_the_members_own_paths_are_not_the_groups() -> None:
    found = multicast(*campus(3, loss=0.05), no_multicast=OFF)
    assert found.groups[0].outcome is not None
    assert found.groups[0].outcome.repair_share == 0.0


def test_the_leg_of_a_group_names_its_relay() -> None:
    valley = RelayOffer("valley", FanOut.GROUP)
    best = compare(steady(), live(*campus(4, valley), no_multicast=OFF)).best
    (leg,) = legs_of(best, unicast_leg=1, groups=(Leg(8, Transport.MULTICAST, (), "239.0.0.8", 5_008, 50),))
    assert (leg.relay, leg.fan_out, leg.sites) == (
        "valley",
        FanOut.GROUP,
        tuple(f"valley-{n}" for n in range(1, 5)),
    )


def test_a_leg_is_followed_behind_its_relay_alone_and_keeps_a_rate_that_is_measured_a_little_different() -> None:
    part = Part(Transport.MULTICAST, ("a", "b"), relay=CAMPUS)
    plain = Leg(8, Transport.MULTICAST, ("a", "b"), "239.0.0.8", 5_008, 50_000_000)
    standing = by_relay(plain, part)
    assert followed([part], [standing]) == [standing]
    assert followed([part], [plain]) == [None]
    assert followed([replace(part, relay=None)], [standing]) == [None]
    assert followed([replace(part, relay=RelayOffer("valley"))], [standing]) == [None]
    assert followed([replace(part, relay=RelayOffer("campus", core_bps=9e6))], [standing]) == [standing]
    assert followed([replace(part, relay=RelayOffer("campus", FanOut.UNICAST))], [standing]) == [None]
    assert paced(standing, 49_500_000) == standing
    assert paced(standing, 40_000_000).rate_bps == 40_000_000


ON_RELAY = PathFacts(0.068, edge=PathFacts(0.002, 0.001, congestion=CongestionControl.RENO))


def test_a_site_on_a_relay_is_predicted_over_both_segments() -> None:
    assert segments_of(PathFacts(0.07)) == (PathFacts(0.07),)
    core, edge = segments_of(replace(ON_RELAY, access_bps=1e8))
    assert (core.edge, core.round_trip_s, edge.round_trip_s, edge.access_bps) == (None, 0.068, 0.002, 1e8)
    assert connection_bps(replace(ON_RELAY, access_bps=1e8)) == pytest.approx(85e6)
    site = SiteFacts(name="unl.edu", round_trip_s=0.068, edge=ON_RELAY.edge, access_bps=8e6)
    asked = asked_of(steady(), live(site))
    part = copies(asked, asked.served, egress_bps=1e9)
    alone = relayed(asked.for_copies, [segments_of(site)], egress_bps=1e9)
    assert part.outcome is not None
    assert part.outcome.latencies.quantile_s(0.5) == pytest.approx(alone.latencies.quantile_s(0.5))
    assert part.outcome.latencies.quantile_s(0.5) > 0.1 + 0.035, "the size over the line, and both ways"


def test_packets_of_a_group_and_measured_latencies_are_those_of_the_whole_way() -> None:
    way = whole(replace(ON_RELAY, loss=0.01))
    assert way.edge is None
    assert way.round_trip_s == pytest.approx(0.07)
    assert way.loss == pytest.approx(1 - 0.99 * 0.999)
    assert whole(PathFacts(0.07)) == PathFacts(0.07)
    near, far = (multicast(*campus(3, edge=PathFacts(away_s)), no_multicast=OFF) for away_s in (0.0, 0.2))
    assert far.quantile_ms(0.5) > near.quantile_ms(0.5) + 90


def test_sites_on_relays_and_direct_ones_share_the_egress() -> None:
    wanted = [SiteFacts(name=f"r{n}", round_trip_s=0.02, edge=PathFacts(0.01)) for n in range(2)]
    asked = asked_of(steady(), live(*wanted, *sites(2, round_trip_s=0.03)))
    part = copies(asked, asked.served, egress_bps=16e6)
    assert part.outcome is not None
    assert part.outcome.egress_bps == pytest.approx(asked.for_copies.mean_bps * 4)
    assert len(part.sites) == 4


def test_many_sites_behind_relays_are_taken_together_by_relay_and_the_worst_edge_stands_for_all() -> None:
    many = [
        behind(f"s{n}", RelayOffer(f"r{n % 4}"), edge=PathFacts(0.002 + 1e-5 * (n % 9), 1e-5 * (n % 3)))
        for n in range(570)
    ]
    kinds = alike(many)
    assert len(kinds) < 60
    assert count_of(kinds) == 570
    for one in kinds:
        assert {site.relay for site in one.members} == {one.facts.relay}
        assert one.facts.edge is not None
        assert one.facts.edge.round_trip_s == max(site.edge.round_trip_s for site in one.members if site.edge)


def test_planning_thirty_feeds_for_570_sites_of_twenty_relays_takes_under_two_seconds() -> None:
    random = np.random.default_rng(1)
    many = [
        behind(
            f"s{n}", RelayOffer(f"r{n % 20}"), round_trip_s=float(random.uniform(0.01, 0.2)),
            edge=PathFacts(float(random.uniform(0.001, 0.02))) if n % 3 else None,
        )
        for n in range(570)
    ]  # fmt: skip
    window = steady(products=300, every_s=1.0)
    begin = time.process_time()
    for _ in range(30):
        compare(window, live(*many, no_multicast=OFF))
    spent_s = time.process_time() - begin
    print(f"30 feeds: {spent_s:.2f} s of one core")
    assert spent_s < 2
