"""Each candidate's service for each site, the reason if it is impossible, and its price."""

from dataclasses import replace

import numpy as np
import pytest

from downburst.domain.plans import Transport
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.figures.wording import megabits
from downburst_scheduler.models import wire
from downburst_scheduler.models.candidates import Evaluated, compare
from downburst_scheduler.models.population import alike, count_of, names_of
from downburst_scheduler.models.situation import SiteFacts
from downburst_scheduler.models.sizing import Objective
from unit.scheduler.feeds import arrivals, live, sites, steady

NOTHING = Arrivals.of_trace([])
COPY, GROUP = (one.on(np.array([100_000.0]))[0] / 100_000 for one in (wire.UNICAST, wire.GROUP))
"""Bytes on a link for each byte of a steady product."""


def found(played: Arrivals, wanted: tuple[SiteFacts, ...], **hub: object) -> dict[Transport, Evaluated]:
    return {one.transport: one for one in compare(played, live(*wanted, **hub)).candidates}


def site(name: str, **other: object) -> SiteFacts:
    return SiteFacts(name=name, **other)  # type: ignore[arg-type]


def test_circuits_that_nobody_reserved_are_refused_with_the_reason() -> None:
    judged = found(steady(), sites(5))
    static, dynamic = judged[Transport.STATIC_CIRCUIT], judged[Transport.DYNAMIC_CIRCUIT]
    assert (static.feasible, static.reason) == (False, "no circuit is reserved to its sites")
    assert (dynamic.feasible, dynamic.reason) == (False, "no offer of circuits reaches its sites")


def test_every_site_gets_a_copy_or_they_share_one() -> None:
    both = found(steady(), sites(5))
    assert both[Transport.UNICAST].price_bps == pytest.approx(5 * 1.6e6 * COPY, rel=0.005)
    group = both[Transport.MULTICAST]
    assert group.outcome is not None
    assert group.outcome.egress_bps == pytest.approx(1.6e6 * GROUP, rel=0.005)
    assert group.price_bps == pytest.approx(group.outcome.egress_bps + 1.6e6 * COPY), "one copy is kept in reserve"


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (sites(1), "needs at least 2 sites that can join and there is 1"),
        ((*sites(1), site("b", no_multicast="b received no multicast")), "there is 1 (b received no multicast)"),
        (
            tuple(site(name, no_multicast=f"{name} is deaf") for name in "abcde"),
            "there is none (a is deaf, b is deaf, c is deaf, and 2 more)",
        ),
    ],
)
def test_a_group_of_less_than_two_is_refused(wanted: tuple[SiteFacts, ...], says: str) -> None:
    judged = found(steady(), wanted)[Transport.MULTICAST]
    assert not judged.feasible
    assert says in judged.reason


def test_a_hub_without_multicast_says_so() -> None:
    judged = found(steady(), sites(5), no_multicast="multicast is switched off")[Transport.MULTICAST]
    assert (judged.feasible, judged.reason) == (False, "multicast is switched off")


def test_those_who_can_share_a_group_and_the_rest_get_copies() -> None:
    wanted = (*sites(3), site("deaf", no_multicast="deaf received no multicast"))
    judged = found(steady(), wanted)[Transport.MULTICAST]
    assert [part.sites for part in judged.groups] == [("site-1", "site-2", "site-3")]
    assert judged.unicast_sites == ("deaf",)
    assert judged.reason == "one group of 3 sites, 1 site by unicast (deaf received no multicast)"
    assert judged.outcome is not None
    assert judged.outcome.egress_bps == pytest.approx(1.6e6 * (COPY + GROUP), rel=0.005)


def test_sites_that_never_heard_a_group_are_named_by_the_plan_that_makes_one() -> None:
    wanted = (*sites(2), site("new-1", unheard=True), site("new-2", unheard=True))
    judged = found(steady(), wanted)[Transport.MULTICAST]
    assert judged.reason == (
        "one group of 4 sites, with copies until sites new to multicast receive it (new-1, new-2)"
    )


def test_who_wants_little_gets_copies_and_a_member_is_not_moved_by_a_share_near_the_limit() -> None:
    def alone(share: float, *, in_group: bool) -> tuple[str, ...]:
        little = site("little", share=share, in_group=in_group)
        return found(steady(), (*sites(3), little))[Transport.MULTICAST].unicast_sites

    assert alone(0.32, in_group=False) == ("little",)
    assert alone(0.35, in_group=False) == ()
    assert alone(0.32, in_group=True) == ()
    assert alone(0.19, in_group=True) == ("little",)


def test_what_members_throw_away_is_a_cost() -> None:
    whole, part = (found(steady(), sites(4, share=share))[Transport.MULTICAST].price_bps for share in (1.0, 0.75))
    assert part - whole == pytest.approx(4 * 0.25 * 1.6e6 * GROUP * 0.5, rel=0.01)


def test_who_wants_little_joins_when_copies_do_not_fit() -> None:
    wanted = (*sites(3), *(site(f"little-{number}", share=0.25) for number in range(4)))
    judged = found(steady(), wanted, egress_bps=2.5e6, multicast_rate_bps=2.2e6)[Transport.MULTICAST]
    assert judged.feasible
    assert len(judged.groups[0].sites) == 7


def test_a_group_of_those_who_want_little_is_only_made_when_an_operator_insists() -> None:
    refused = found(steady(), sites(5, share=0.1))[Transport.MULTICAST]
    assert not refused.feasible
    assert refused.reason.startswith("only 0 of 5 sites would benefit from a group (site-1 wants 10% of the feed")
    assert found(steady(), sites(5, share=0.1), insists_on_multicast=True)[Transport.MULTICAST].feasible


def test_what_exceeds_the_egress_is_refused_with_both_figures() -> None:
    unicast = found(steady(), sites(10), egress_bps=10e6)[Transport.UNICAST]
    assert not unicast.feasible
    assert unicast.reason == "it needs 16.8 Mb/s in the busiest minute and the hub has 10.0 Mb/s"


def test_a_feed_above_the_pace_of_groups_is_refused() -> None:
    judged = found(steady(), sites(5), multicast_rate_bps=1e6)[Transport.MULTICAST]
    assert not judged.feasible
    assert "1.72 Mb/s on average and can't go faster than 1.00 Mb/s" in judged.reason


def test_a_group_goes_at_the_pace_of_its_slowest_line() -> None:
    wanted = (*sites(3), site("narrow", access_bps=20e6))
    (group,) = found(steady(), wanted)[Transport.MULTICAST].groups
    assert (group.rate_bps, group.limited) == (20e6, True)


def test_slow_lines_get_a_group_of_their_own_where_one_for_all_would_miss_the_objective() -> None:
    slow = tuple(site(f"slow-{number}", access_bps=4e6) for number in range(2))
    fast = tuple(site(f"fast-{number}", access_bps=100e6) for number in range(8))
    strict = Objective(0.5, 0.1)
    judged = found(steady(), (*slow, *fast), objective=strict)[Transport.MULTICAST]
    assert [sorted({name[:4] for name in part.sites}) for part in judged.groups] == [["slow"], ["fast"]]
    assert [part.rate_bps for part in judged.groups] == [4e6, 100e6]
    assert judged.reason == "groups of 2 sites at 4.00 Mb/s, 8 sites at 100 Mb/s"
    assert len(found(steady(), (*slow, *fast))[Transport.MULTICAST].groups) == 1, "one is cheaper where it is enough"


def test_whose_line_is_too_slow_for_the_feed_falls_behind_and_spoils_nothing() -> None:
    wanted = (*sites(4), site("modem", access_bps=56e3))
    for judged in (found(steady(), wanted)[name] for name in (Transport.UNICAST, Transport.MULTICAST)):
        assert judged.feasible
        assert "modem can take 56.0 kb/s and falls behind by any transport" in judged.reason
        assert "modem" in judged.unicast_sites
        assert judged.quantile_ms(0.99) < 1_000


def test_where_all_lines_are_too_slow_the_figures_say_so() -> None:
    unicast = found(steady(), sites(3, access_bps=1e6))[Transport.UNICAST]
    assert not unicast.feasible
    assert "3 sites can't take 1.60 Mb/s" in unicast.reason


def test_sites_whose_measured_rates_are_too_low_are_named_with_them() -> None:
    unicast = found(steady(), sites(3, access_bps=1e9, forecast_bps=1e6))[Transport.UNICAST]
    assert not unicast.feasible
    assert unicast.reason.endswith("measured rates of the path leave 1.00 Mb/s")
    assert found(steady(), sites(3, access_bps=1e9, forecast_bps=1e8))[Transport.UNICAST].feasible


def test_sites_are_alike_only_with_like_forecasts_and_the_lowest_stands_for_all() -> None:
    many = [site(f"s{n}", access_bps=1e9, forecast_bps=1e6 * (1 + n % 40)) for n in range(570)]
    classes = alike(many)
    assert len(classes) < 570
    assert all(one.facts.forecast_bps == min(m.forecast_bps or 0 for m in one.members) for one in classes)
    assert max(one.facts.forecast_bps or 0 for one in classes) > 20e6


def test_without_arrivals_there_are_candidates_but_no_figures() -> None:
    both = found(NOTHING, sites(3))
    assert all(both[transport].feasible for transport in (Transport.UNICAST, Transport.MULTICAST))
    assert all(one.outcome is None for one in both.values())


def test_products_without_bytes_are_products() -> None:
    assert found(arrivals((0.0, 0), (1.0, 0)), sites(3))[Transport.UNICAST].outcome is not None


def test_many_sites_are_taken_together_by_distance_and_rate_and_none_is_lost() -> None:
    many = [site(f"s{n}", round_trip_s=0.001 * (1 + n), access_bps=1e8 * (1 + n % 7)) for n in range(570)]
    classes = alike(many)
    assert len(classes) < 250
    assert count_of(classes) == 570
    assert sorted(names_of(classes)) == sorted(one.name for one in many)
    assert all(one.facts.access_bps == min(m.access_bps or 0 for m in one.members) for one in classes)


def test_taking_sites_together_changes_a_prediction_by_no_more_than_the_steps() -> None:
    few = [site(f"s{n}", round_trip_s=0.01 + 0.002 * n) for n in range(32)]
    many = [replace(one, name=f"{one.name}-{copy}") for one in few for copy in range(10)]
    exact, coarse = (found(steady(), tuple(some))[Transport.MULTICAST].quantile_ms(0.5) for some in (few, many))
    assert exact == pytest.approx(coarse, rel=0.2)


@pytest.mark.parametrize(
    ("rate_bps", "shown"),
    [(61_500_000, "61.5 Mb/s"), (3.463e9, "3463 Mb/s"), (1_600_000, "1.60 Mb/s"), (12_345, "12.3 kb/s")],
)
def test_rates_for_people_have_three_digits(rate_bps: float, shown: str) -> None:
    assert megabits(rate_bps) == shown
