"""Sites that an AMT relay serves: members of a group, at the price of a copy through each tunnel."""

from dataclasses import replace
from datetime import timedelta

import pytest

from downburst.domain.events import LegChanged
from downburst.domain.plans import Transport
from downburst.domain.sites import Site
from downburst.foundation.clock import FakeClock
from downburst_scheduler.models.candidates import Evaluated, compare
from downburst_scheduler.models.parts import Part, Tunnels, tunnels_of
from downburst_scheduler.models.population import alike
from downburst_scheduler.models.situation import Costs, SiteFacts
from downburst_scheduler.paths import SitePaths
from unit.scheduler.feeds import live, sites, steady


def with_tunnels(count: int) -> tuple[SiteFacts, ...]:
    return tuple(SiteFacts(name=f"far-{number}", tunnel=True) for number in range(1, count + 1))


def multicast(*wanted: SiteFacts, **hub: object) -> Evaluated:
    found = compare(steady(), live(*wanted, **hub)).candidates
    return next(one for one in found if one.transport is Transport.MULTICAST)


def test_sites_with_tunnels_are_members_and_each_costs_a_copy() -> None:
    native, found = multicast(*sites(8)), multicast(*sites(8), *with_tunnels(2))
    (group,) = found.groups
    assert {"far-1", "far-2"} < set(group.sites)
    assert found.outcome is not None
    assert native.outcome is not None
    assert found.outcome.egress_bps == pytest.approx(native.outcome.egress_bps), "the hub sends once"
    assert found.price_bps == pytest.approx(native.price_bps + 2 * found.outcome.egress_bps)
    assert found.reason == ("one group of 10 sites, 2 copies of 3.45 Mb/s together through AMT tunnels to 2 sites")


def test_a_relay_on_a_line_of_others_costs_what_the_operator_says() -> None:
    wanted = (*sites(8), *with_tunnels(2))
    free = multicast(*wanted, costs=Costs(tunnel=0.0))
    assert free.price_bps == pytest.approx(multicast(*sites(10)).price_bps)
    assert "through AMT tunnels" in free.reason


def test_tunnels_alone_save_the_hub_nothing_and_unicast_is_cheaper() -> None:
    best = compare(steady(), live(*with_tunnels(3))).best
    assert best.transport is Transport.UNICAST
    far = compare(steady(), live(*with_tunnels(5), costs=Costs(tunnel=0.0))).best
    assert far.transport is Transport.MULTICAST, "the relay's line is not the hub's"


def test_sites_with_and_without_a_tunnel_are_not_alike() -> None:
    (one,) = sites(1)
    assert len(alike([one, replace(one, name="far", tunnel=True)])) == 2


def test_groups_without_tunnels_say_nothing_of_them() -> None:
    assert tunnels_of([Part(Transport.MULTICAST, ("a", "b"))]) == Tunnels(0, 0.0)
    assert Tunnels(0, 0.0).said == ""
    assert Tunnels(1, 0.0).said == ", one copy through AMT tunnels to 1 site"


@pytest.mark.parametrize(
    ("interface", "tunnel"), [("", False), ("eth0", False), ("amt", True), ("amt:192.0.2.1", True)]
)
def test_the_interface_of_a_site_says_whether_it_has_a_tunnel(interface: str, tunnel: bool) -> None:
    site = Site("oslo", multicast_interface=interface)
    facts = SitePaths(timedelta(minutes=30)).site(site, "NGRID", [], now=FakeClock().now(), in_group=False)
    assert (site.has_tunnel, facts.tunnel, facts.no_multicast) == (tunnel, tunnel, None)


def test_a_site_that_received_no_multicast_is_tested_by_its_tunnel_without_delay() -> None:
    paths, now = SitePaths(timedelta(minutes=30)), FakeClock().now()
    paths.leg_changed(LegChanged("NGRID", 5, "oslo", "never-heard", now, reason="no multicast reaches eth0"))

    def no_multicast(interface: str) -> str | None:
        site = Site("oslo", multicast_interface=interface)
        return paths.site(site, "NGRID", [], now=now, in_group=False).no_multicast

    assert "received no multicast" in (no_multicast("") or "")
    assert no_multicast("amt") is None
    paths.leg_changed(LegChanged("NGRID", 5, "oslo", "never-heard", now, reason="no AMT relay answers"))
    assert "no AMT relay answers" in (no_multicast("amt") or "")
