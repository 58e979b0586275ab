"""Every sent byte is booked once, under the right plan."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as some

from downburst.domain.events import LegTraffic, TrafficSeen
from downburst.domain.feeds import Feed
from downburst.domain.plans import Transport
from downburst_worker.accounts import LegAccounts
from factories import multicast, plan, unicast


def traffic(control_bytes: int, *legs: LegTraffic) -> TrafficSeen:
    return TrafficSeen(0, 1_000_000, (), legs, (), control_bytes)


def leg(number: int, *, sites: int = 1, egress: int = 100, transport: Transport = Transport.UNICAST) -> LegTraffic:
    return LegTraffic(number, "NGRID", egress, 0, 1, 80, sites, 0, transport)


seconds = some.lists(
    some.tuples(
        some.integers(0, 10_000),
        some.lists(some.tuples(some.integers(1, 5), some.integers(0, 9), some.integers(0, 999)), max_size=4),
    ),
    max_size=8,
)


@given(seconds)
def test_no_control_byte_is_lost_or_doubled(played: list[tuple[int, list[tuple[int, int, int]]]]) -> None:
    accounts = LegAccounts()
    booked = sent = 0
    for control, legs in [*played, (0, [(1, 1, 1)])]:
        counted, _ = accounts.count(traffic(control, *(leg(n, sites=s, egress=e) for n, s, e in legs)))
        booked += sum(row.egress_bytes for row in counted)
        sent += control + sum(egress for _, _, egress in legs)
    assert booked == sent


def test_control_bytes_follow_the_sites() -> None:
    counted, _ = LegAccounts().count(traffic(100, leg(1, sites=3), leg(2, sites=1)))
    assert [row.control_bytes for row in counted] == [75, 25]


def test_a_leg_counts_for_the_newest_plan_that_holds_it() -> None:
    accounts = LegAccounts()
    accounts.name_unicast_legs([Feed("NGRID", unicast_leg=1)])
    first, second = plan("NGRID", unicast(1, "a")), plan("NGRID", multicast(2, "a"))
    accounts.adopt(replace(second, version=2))
    accounts.adopt(replace(first, version=1))
    counted, _ = accounts.count(traffic(0, leg(1), leg(2), leg(3)))
    assert [row.version for row in counted] == [2, 2, 2]
    assert accounts.transports == {1: Transport.UNICAST, 2: Transport.MULTICAST}


def test_the_equivalent_of_multicast_is_a_copy_for_each_site() -> None:
    counted, _ = LegAccounts().count(traffic(0, leg(1, sites=4, transport=Transport.MULTICAST), leg(2, sites=4)))
    assert [row.unicast_equivalent_bytes for row in counted] == [320, 80]
