"""What is possible for a feed, at what price, and in whose words it is not."""

import pytest

from downburst.model import Transport
from downburst_scheduler.options import HubInput, Option, SiteInput, megabits, options
from downburst_scheduler.queueing import Path
from downburst_scheduler.traffic import Arrivals
from unit.scheduler.feeds import arrivals, steady

NOTHING = Arrivals.of_trace([])


def sites(count: int, **path: float) -> tuple[SiteInput, ...]:
    return tuple(SiteInput(f"site-{number}", Path(**path)) for number in range(1, count + 1))


def found(played: Arrivals, wanted: tuple[SiteInput, ...], hub: HubInput | None = None) -> dict[Transport, Option]:
    return {option.transport: option for option in options(played, wanted, hub or HubInput())}


def test_circuits_that_nobody_reserved_are_refused_with_the_reason() -> None:
    options_found = found(steady(), sites(5))
    static, dynamic = options_found[Transport.STATIC_CIRCUIT], options_found[Transport.DYNAMIC_CIRCUIT]
    assert (static.feasible, static.reason) == (False, "no circuit is reserved to its sites")
    assert (dynamic.feasible, dynamic.reason) == (False, "this version makes no circuits on demand")


def test_every_site_gets_a_copy_or_they_share_one() -> None:
    both = found(steady(), sites(5))
    assert both[Transport.UNICAST].price_bps == pytest.approx(5 * 1.6e6, rel=0.01)
    group = both[Transport.MULTICAST]
    assert group.prediction is not None
    assert group.prediction.egress_bps == pytest.approx(1.6e6, rel=0.06)
    assert group.price_bps == pytest.approx(group.prediction.egress_bps + 1.6e6), "one copy is kept in reserve"


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ((), "needs at least 2 sites that can join and there is none"),
        (sites(1), "needs at least 2 sites that can join and there is 1"),
        ((*sites(1), SiteInput("b", no_multicast="b heard no group")), "there is 1 (b heard no group)"),
        (
            tuple(SiteInput(name, no_multicast=f"{name} is deaf") for name in "abcde"),
            "there is none (a is deaf, b is deaf, c is deaf, and 2 more)",
        ),
    ],
)
def test_a_group_of_less_than_two_is_refused(wanted: tuple[SiteInput, ...], says: str) -> None:
    option = found(steady(), wanted)[Transport.MULTICAST]
    assert not option.feasible
    assert says in option.reason


def test_a_hub_without_multicast_says_so() -> None:
    option = found(steady(), sites(5), HubInput(no_multicast="multicast is switched off"))[Transport.MULTICAST]
    assert (option.feasible, option.reason) == (False, "multicast is switched off")


def test_those_who_can_share_a_group_and_the_rest_get_copies() -> None:
    wanted = (*sites(3), SiteInput("deaf", no_multicast="deaf heard no group"))
    option = found(steady(), wanted)[Transport.MULTICAST]
    assert option.multicast_sites == ("site-1", "site-2", "site-3")
    assert option.unicast_sites == ("deaf",)
    assert option.reason == "one group of 3 sites, 1 site by unicast (deaf heard no group)"
    assert option.prediction is not None
    assert option.prediction.egress_bps == pytest.approx(2 * 1.6e6, rel=0.06)


def test_who_takes_little_stays_on_unicast_and_a_member_is_not_moved_by_a_share_near_the_limit() -> None:
    def with_share(share: float, *, in_group: bool) -> tuple[str, ...]:
        little = SiteInput("little", Path(share=share), in_group=in_group)
        return found(steady(), (*sites(3), little))[Transport.MULTICAST].unicast_sites

    assert with_share(0.29, in_group=False) == ("little",)
    assert with_share(0.31, in_group=False) == ()
    assert with_share(0.29, in_group=True) == ()
    assert with_share(0.19, in_group=True) == ("little",)


def test_who_takes_little_joins_when_copies_do_not_fit() -> None:
    tight = HubInput(egress_bps=2.5e6, multicast_rate_bps=2.2e6)
    wanted = (*sites(3), *(SiteInput(f"little-{number}", Path(share=0.25)) for number in range(4)))
    option = found(steady(), wanted, tight)[Transport.MULTICAST]
    assert option.feasible
    assert len(option.multicast_sites) == 7


def test_a_group_of_those_who_take_little_is_only_made_when_an_operator_insists() -> None:
    refused = found(steady(), sites(5, share=0.1))[Transport.MULTICAST]
    assert not refused.feasible
    assert refused.reason == "only 0 sites of 5 would keep at least 30% of what a group carries"
    assert found(steady(), sites(5, share=0.1), HubInput(insists=True))[Transport.MULTICAST].feasible


def test_what_exceeds_the_egress_is_refused_with_both_figures() -> None:
    unicast = found(steady(), sites(10), HubInput(egress_bps=10e6))[Transport.UNICAST]
    assert not unicast.feasible
    assert unicast.reason == "it needs 16.1 Mb/s of egress on average and 10.0 Mb/s are free"


def test_a_feed_above_the_pace_of_groups_is_refused() -> None:
    option = found(steady(), sites(5), HubInput(multicast_rate_bps=1e6))[Transport.MULTICAST]
    assert not option.feasible
    assert "1.67 Mb/s on average and the group's rate is 1.00 Mb/s" in option.reason


def test_without_arrivals_there_are_options_but_no_figures() -> None:
    both = found(NOTHING, sites(3))
    assert all(both[transport].feasible for transport in (Transport.UNICAST, Transport.MULTICAST))
    assert all(option.prediction is None for option in both.values())


def test_products_without_bytes_are_products() -> None:
    both = found(arrivals((0.0, 0), (1.0, 0)), sites(3))
    assert both[Transport.UNICAST].prediction is not None


@pytest.mark.parametrize(
    ("rate_bps", "shown"),
    [(61_500_000, "61.5 Mb/s"), (3.463e9, "3463 Mb/s"), (1_600_000, "1.60 Mb/s"), (12_345, "12.3 kb/s")],
)
def test_rates_for_people_have_three_digits(rate_bps: float, shown: str) -> None:
    assert megabits(rate_bps) == shown
