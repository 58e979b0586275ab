"""The bench of the scheduler plays a hub through the real loop."""

from bench.scheduler.planning import Case, rounds_of


def test_a_small_hub_is_planned_and_its_rounds_are_timed() -> None:
    seen = rounds_of(Case(feeds=2, sites=3, products_per_s=1), seed=1)
    assert 0 < seen.median_s <= seen.longest_s
    assert seen.peak_bytes > 10_000_000
