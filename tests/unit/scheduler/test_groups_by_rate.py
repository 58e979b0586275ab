"""Groups by rate as plans make them: the published partitions, the choice between one group and several, repair."""

import pytest

from downburst.domain.feeds import Feed, FeedClass
from downburst.domain.plans import Transport
from downburst_scheduler.legs import repair_of
from downburst_scheduler.models.candidates import Comparison, Situation, compare
from downburst_scheduler.models.groups import grouped_sites
from downburst_scheduler.models.parts import GROUP_SHARE_OF_EGRESS, Part, asked_of, missed_by
from downburst_scheduler.models.population import alike
from downburst_scheduler.models.repair import Repair
from downburst_scheduler.models.situation import SiteFacts
from downburst_scheduler.models.sizing import Objective
from downburst_scheduler.models.sweeps import LossCurve, Sweep
from unit.scheduler.feeds import arrivals, steady

BIG = arrivals((0.0, 125e6), span_s=3_600)
"""A product of 125 MB."""
PUBLISHED = LossCurve((600e6, 800e6), (0.0026, 0.1104))


def sites(*rates_bps: float) -> list[SiteFacts]:
    return [SiteFacts(access_bps=rate, name=f"s{number}") for number, rate in enumerate(rates_bps)]


def grouped(rates_bps: list[float], *, egress_bps: float, most: int) -> tuple[Part, ...]:
    """The groups of a product of 125 MB where groups may take `egress_bps` together."""
    situation = Situation(sites(*rates_bps), egress_bps=egress_bps / GROUP_SHARE_OF_EGRESS, multicast_rate_bps=1e9)
    return grouped_sites(asked_of(BIG, situation), alike(situation.sites), limit_bps=None, most=most)


@pytest.mark.parametrize(
    ("egress_bps", "most", "paces_mbps", "mean_s"),
    [(1e9, 1, [10], 100.0), (110e6, 2, [10, 100], 55.0), (100e6, 2, [10, 90], 55.6), (1e9, 4, [10, 100], 55.0)],
)
def test_the_published_partitions_come_out_of_the_plans_own_groups(
    egress_bps: float, most: int, paces_mbps: list[float], mean_s: float
) -> None:
    parts = grouped([10e6] * 10 + [100e6] * 10, egress_bps=egress_bps, most=most)
    assert [(part.rate_bps or 0) / 1e6 for part in parts] == pytest.approx(paces_mbps)
    took_s = [(len(part.sites), part.outcome.latencies.quantile_s(0.5)) for part in parts if part.outcome]
    mean = sum(count * seconds for count, seconds in took_s) / sum(count for count, _ in took_s)
    assert mean == pytest.approx(mean_s, rel=0.02)


FOUR = (20e6, 20e6, 4e6, 4e6)
PRODUCTS = steady(products=100, size_bytes=1_000_000, every_s=4.0)
"""2 Mb/s: a product takes 0.4 s at 20 Mb/s, and 2 s at 4 Mb/s."""


def chosen(objective_s: float, *rates_bps: float) -> Comparison:
    return compare(
        PRODUCTS,
        Situation(sites(*rates_bps), multicast_rate_bps=40e6, objective=Objective(0.99, objective_s)),
    )


@pytest.mark.parametrize(
    ("objective_s", "paces_mbps"), [(10.0, [4]), (1.0, [4, 20]), (0.1, [4, 20])], ids=["kept", "by some", "by none"]
)
def test_several_groups_are_made_where_one_misses_the_objective(objective_s: float, paces_mbps: list[float]) -> None:
    found = chosen(objective_s, *FOUR)
    assert found.best.transport is Transport.MULTICAST
    assert [(part.rate_bps or 0) / 1e6 for part in found.best.groups] == pytest.approx(paces_mbps)


def test_a_fast_site_alone_gets_copies_beside_the_slow_group() -> None:
    found = chosen(1.0, 20e6, 4e6, 4e6, 4e6)
    assert [part.sites for part in found.best.groups] == [("s1", "s2", "s3")]
    assert found.best.unicast_sites == ("s0",)
    assert "1 site by unicast" in found.best.reason


def test_sites_of_nearly_the_same_rate_share_a_group() -> None:
    found = chosen(1.0, 20e6, 20.1e6, 4e6, 4.05e6, 4.1e6)
    assert [part.sites for part in found.best.groups] == [("s2", "s3", "s4"), ("s0", "s1")]
    assert [part.rate_bps for part in found.best.groups] == [4e6, 20e6]


@pytest.mark.parametrize(("said", "together"), [("it lost", True), ("", False)], ids=["by losses", "as stated"])
def test_rates_by_losses_that_agree_within_their_error_share_a_group(said: str, together: bool) -> None:
    rates_bps = [20e6, 20e6, 3.92e6, 4.36e6]
    found = [SiteFacts(access_bps=rate, name=f"s{number}", lossy=said) for number, rate in enumerate(rates_bps)]
    situation = Situation(found, multicast_rate_bps=40e6, objective=Objective(0.99, 1.0))
    groups = [part.sites for part in compare(PRODUCTS, situation).best.groups]
    assert (groups == [("s2", "s3"), ("s0", "s1")]) is together


def test_the_mean_miss_of_sites_shows_the_gain_of_some() -> None:
    one, several = chosen(1.0, *([4e6] * 4)).best, chosen(1.0, *FOUR).best
    situation = Situation(objective=Objective(0.99, 1.0))
    assert missed_by(several.parts, situation) == pytest.approx(missed_by(one.parts, situation) / 2, rel=0.05)
    assert missed_by(one.parts, Situation(objective=Objective(0.99, 10.0))) == 0


@pytest.mark.parametrize(("count", "rate_bps"), [(2, 800e6), (3, 800e6), (4, 600e6), (7, 600e6)])
def test_the_published_losses_turn_the_group_of_a_plan_between_3_and_4_sites(count: int, rate_bps: float) -> None:
    """Repair packet by packet, 1 GB, and 900 Mb/s for repair."""
    swept = [SiteFacts(name=f"s{n}", sweep=Sweep(PUBLISHED, None, f"probe {n}")) for n in range(count)]
    situation = Situation(swept, egress_bps=900e6, multicast_rate_bps=800e6, repair=Repair.UNICAST)
    found = compare(arrivals((0.0, 1e9), span_s=3_600), situation)
    group = next(one for one in found.candidates if one.transport is Transport.MULTICAST).groups[0]
    assert group.rate_bps == rate_bps
    assert f"with repair for {count} sites the mean product takes" in group.swept
    assert "at 600 Mb/s with 0.26% lost" in group.swept
    assert "at 800 Mb/s with 11.04% lost" in group.swept


def test_urgent_feeds_are_repaired_packet_by_packet_as_the_node_does() -> None:
    repairs = {one: repair_of(Feed("A", feed_class=one)) for one in FeedClass}
    assert repairs == {
        FeedClass.WARNING: Repair.UNICAST,
        FeedClass.OBSERVATION: Repair.UNICAST,
        FeedClass.GRID: Repair.CODED,
        FeedClass.BULK: Repair.CODED,
    }


@pytest.mark.parametrize("repair", list(Repair))
def test_the_measured_repair_of_a_group_counts_once(repair: Repair) -> None:
    situation = Situation(sites(*[20e6] * 10), multicast_rate_bps=20e6, group_loss=0.05, repair=repair)
    (group,) = grouped_sites(asked_of(PRODUCTS, situation), alike(situation.sites), limit_bps=None)
    assert group.outcome is not None
    assert group.outcome.repair_share == pytest.approx(0.06, abs=0.015)


def test_a_stall_during_a_sweep_is_no_property_of_the_path() -> None:
    stalled = LossCurve((100e6, 200e6, 300e6, 400e6), (0.01, 0.08, 0.01, 0.2))
    assert stalled.convex().losses == pytest.approx((0.01, 0.01, 0.01, 0.2))
    assert PUBLISHED.convex().losses == pytest.approx(PUBLISHED.losses)
    full = LossCurve((10e6, 20e6, 30e6, 40e6), (0.01, 0.01, 1 / 3, 0.5))
    assert full.convex().losses == pytest.approx(full.losses, rel=0.02)
