"""Legs of a plan, and the addresses of groups."""

from ipaddress import IPv4Network, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from downburst.domain.plans import Leg, Transport
from downburst.settings.multicast import MulticastSettings
from downburst_scheduler.legs import followed, group_address, group_leg, legs_of
from downburst_scheduler.models.candidates import Evaluated
from downburst_scheduler.models.parts import Part

GROUP = group_leg(32, MulticastSettings(), rate_bps=400_000_000)


def part(*sites: str, transport: Transport = Transport.MULTICAST) -> Part:
    return Part(transport, sites)


def chosen(multicast: tuple[str, ...], unicast: tuple[str, ...]) -> Evaluated:
    parts = [part(*multicast)] if multicast else []
    parts += [part(*unicast, transport=Transport.UNICAST)] if unicast else []
    return Evaluated(Transport.MULTICAST, True, "", tuple(parts))


def test_address_and_port_follow_from_the_number() -> None:
    assert (GROUP.group, GROUP.port, GROUP.rate_bps) == ("239.77.0.32", 17_032, 400_000_000)


def test_a_mixed_plan_has_both_legs_with_their_sites_in_order() -> None:
    unicast, group = legs_of(chosen(("c", "b"), ("a",)), unicast_leg=7, groups=[GROUP])
    assert unicast == Leg(7, Transport.UNICAST, ("a",))
    assert (group.leg, group.transport, group.sites, group.group) == (
        32,
        Transport.MULTICAST,
        ("b", "c"),
        "239.77.0.32",
    )


def test_a_group_for_all_leaves_no_unicast_leg_and_no_site_leaves_an_empty_one() -> None:
    assert [leg.leg for leg in legs_of(chosen(("a", "b"), ()), unicast_leg=7, groups=[GROUP])] == [32]
    assert legs_of(chosen((), ()), unicast_leg=7) == (Leg(7, Transport.UNICAST, ()),)


@pytest.mark.parametrize("network", ["239.77.0.0/16", "239.77.0.0/30", "239.77.0.5/32", "ff3e::8000:0/97"])
def test_every_leg_has_a_group_inside_the_network(network: str) -> None:
    inside = ip_network(network)
    groups = [group_address(leg, inside) for leg in range(1, 200_000, 37)]
    assert all(ip_address(group) in inside for group in groups)


@given(st.integers(1, 2**31), st.integers(1, 65_534))
def test_legs_that_are_near_in_number_never_share_a_group(leg: int, distance: int) -> None:
    network = IPv4Network("239.77.0.0/16")
    assert group_address(leg, network) != group_address(leg + distance, network)


def test_a_group_keeps_the_leg_that_most_of_its_sites_hear() -> None:
    slow, fast = (
        Leg(number, Transport.MULTICAST, sites) for number, sites in ((4, ("a", "b")), (5, ("c", "d", "e")))
    )
    assert followed([part("c", "d"), part("a", "b", "e")], [slow, fast]) == [fast, slow]
    assert followed([part("a", "b", "c", "d", "e")], [slow, fast]) == [fast]
    assert followed([part("a", "b"), part("x", "y")], [slow]) == [slow, None]


def test_a_single_group_keeps_its_leg_whoever_joins() -> None:
    assert followed([part("x", "y")], [GROUP]) == [GROUP]
