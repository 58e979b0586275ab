"""Groups: the example of the selection model, brute force, rights, interest, and hopeless sites."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from downburst_scheduler.models.grouping import Group, GroupingRules, Partition, Receiver, divided, grouped, partition

TWENTY = [Receiver(f"s{n:02d}", 10e6 if n < 10 else 100e6) for n in range(20)]


def rates(found: Partition) -> list[tuple[int, float]]:
    return [(len(group.sites), round(group.rate_bps / 1e6, 3)) for group in found.groups]


def test_two_rates_make_two_groups_of_55_s_instead_of_100() -> None:
    one = partition(TWENTY, 125e6, GroupingRules(largest_groups=1, egress_bps=10e6))
    assert (rates(one), one.mean_latency_s) == ([(20, 10.0)], 100.0)
    two = partition(TWENTY, 125e6, GroupingRules(largest_groups=2, egress_bps=110e6))
    assert (rates(two), two.mean_latency_s, two.egress_bps) == ([(10, 10.0), (10, 100.0)], 55.0, 110e6)


def test_where_the_egress_is_short_the_fast_group_gets_what_is_left() -> None:
    found = partition(TWENTY, 125e6, GroupingRules(largest_groups=2, egress_bps=100e6))
    assert rates(found) == [(10, 10.0), (10, 90.0)]
    assert found.mean_latency_s == pytest.approx(55.6, rel=0.001)


def test_sites_that_are_alike_share_one_group() -> None:
    found = partition([Receiver(f"s{n}", 400e6) for n in range(5)], 200e3, GroupingRules(egress_bps=1e9))
    assert [len(group.sites) for group in found.groups] == [5]
    assert found.egress_bps == 400e6


def test_groups_of_one_are_unicast_and_need_no_group() -> None:
    found = partition(TWENTY[:3] + TWENTY[-1:], 125e6, GroupingRules(largest_groups=1, egress_bps=1e9))
    assert sum(len(group.sites) for group in found.groups) == 4
    assert sum(len(group.sites) > 1 for group in found.groups) <= 1
    assert found.mean_latency_s == pytest.approx((3 * 100 + 10) / 4)


def best_of_all(receivers: list[Receiver], size_bytes: float, rules: GroupingRules) -> float:
    count = len(receivers)
    least = float("inf")
    for cuts in range(count):
        for inner in combinations(range(1, count), cuts):
            groups = divided(receivers, (*inner, count), size_bytes, rules.egress_bps)
            if sum(len(group.sites) > 1 for group in groups) <= rules.largest_groups:
                least = min(least, cost(receivers, groups))
    return least


def cost(receivers: list[Receiver], groups: tuple[Group, ...]) -> float:
    weight = {one.site: one.weight for one in receivers}
    return sum(group.latency_s * sum(weight[site] for site in group.sites) for group in groups)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.floats(1e6, 1e9), st.floats(0.1, 10)), min_size=1, max_size=8),
    st.integers(1, 3),
    st.floats(2e6, 2e9),
)
def test_hardly_any_partition_is_better(sites: list[tuple[float, float]], groups: int, egress_bps: float) -> None:
    receivers = [Receiver(f"s{n}", rate, weight=weight) for n, (rate, weight) in enumerate(sorted(sites))]
    rules = GroupingRules(egress_bps, groups)
    found = grouped(receivers, 1e6, rules)
    assert [site for group in found for site in group.sites] == [one.site for one in receivers]
    assert sum(group.rate_bps for group in found) <= egress_bps * (1 + 1e-9)
    assert sum(len(group.sites) > 1 for group in found) <= groups
    assert cost(receivers, found) <= best_of_all(receivers, 1e6, rules) * 1.05


def test_many_sites_are_grouped_in_a_moment_and_nobody_is_forgotten() -> None:
    many = [Receiver(f"s{n:05d}", 10e6 * 1.0003**n) for n in range(20_000)]
    found = partition(many, 1e6, GroupingRules(egress_bps=1e9, largest_groups=3))
    assert sorted(site for group in found.groups for site in group.sites) == [one.site for one in many]
    assert sum(len(group.sites) > 1 for group in found.groups) <= 3
    assert sum(group.rate_bps for group in found.groups) <= 1e9 * (1 + 1e-9)
    slowest = partition(many, 1e6, GroupingRules(egress_bps=1e9, largest_groups=1))
    assert found.mean_latency_s < slowest.mean_latency_s


def test_rights_interest_and_hearing_are_reasons_to_be_alone() -> None:
    odd = [
        Receiver("secret", 1e8, entitled=False),
        Receiver("deaf", 1e8, reachable=False),
        Receiver("picky", 1e8, share=0.05),
    ]
    found = partition([*TWENTY, *odd], 1e6, GroupingRules(mean_bps=1e6))
    assert set(found.alone) == {"secret", "deaf", "picky"}
    assert "not allowed" in found.alone["secret"]
    assert "5%" in found.alone["picky"]
    assert not {"secret", "deaf", "picky"} & {site for group in found.groups for site in group.sites}


def test_bytes_that_cost_nothing_on_a_line_keep_the_picky_in_the_group() -> None:
    found = partition([*TWENTY, Receiver("picky", 1e8, share=0.05)], 1e6, GroupingRules(unwanted_byte_cost=0.0))
    assert not found.alone


def test_the_hopeless_are_put_out_with_the_reason() -> None:
    found = partition([*TWENTY, Receiver("modem", 1e5)], 1e6, GroupingRules(mean_bps=5e6))
    assert found.put_out == {"modem": "modem can take 0.1 Mb/s and the feed brings 5 Mb/s"}
    assert all(group.rate_bps >= 5e6 for group in found.groups)


def test_nobody_makes_no_group() -> None:
    assert partition([], 1e6, GroupingRules()).groups == ()
