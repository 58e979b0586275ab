"""Days of trains in virtual time: little paid above the best orders in hindsight, few changes, budgets kept."""

import os
from collections.abc import Sequence

import pytest

from downburst_scheduler.planner import Rules
from unit.scheduler.train_days import Verdict, judged, lived

FIRST_SEED = int(os.environ.get("DOWNBURST_SEED", "1"))
RULES = Rules(dwell_s=1_800.0)
"""Looks are ten minutes apart, so the dwell is three of them."""


@pytest.mark.nightly
@pytest.mark.xfail(
    reason="regret 6.4 % on average, over 10 % in 21 worlds; changes and budgets are kept", strict=True
)
def test_a_hundred_days_of_trains_in_a_hundred_worlds() -> None:
    check([verdict(seed, days=1) for seed in range(FIRST_SEED, FIRST_SEED + 100)])


@pytest.mark.all
def test_five_days_of_trains_in_five_worlds() -> None:
    check([verdict(seed, days=1) for seed in range(FIRST_SEED, FIRST_SEED + 5)])


def verdict(seed: int, *, days: int) -> Verdict:
    found = judged(lived(seed, days, RULES), seed, days)
    print(f"DOWNBURST_SEED={seed}: {found}")
    return found


def check(found: Sequence[Verdict]) -> None:
    """The bounds over all worlds; one in ten may pay more."""
    assert sum(one.regret for one in found) / len(found) <= 0.05
    assert sum(one.regret > 0.10 for one in found) <= max(len(found) // 10, 1)
    assert max(one.excess_per_day for one in found) <= 2
    assert max(one.most_of_budget for one in found) <= 1 + 1e-9
