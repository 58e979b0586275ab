"""Schedules that a source of load plays."""

from pathlib import Path

import pytest
from bench.harness.schedules import Planned, at_random, bursts, steady, together, write


def test_steady_products_keep_their_distance() -> None:
    planned = list(steady("F", 2_000, per_s=100, seconds=2))
    assert len(planned) == 200
    assert [product.at_us for product in planned[:3]] == [0, 10_000, 20_000]
    assert len({product.product_id for product in planned}) == 200


def test_random_products_have_their_number_and_come_in_order_and_again_the_same() -> None:
    planned = list(at_random("F", 90_000, products=500, seconds=10, seed=3))
    moments = [product.at_us for product in planned]
    assert moments == sorted(moments)
    assert 0 <= moments[0] < moments[-1] < 10_000_000
    assert planned == list(at_random("F", 90_000, products=500, seconds=10, seed=3))


def test_bursts_come_all_at_once_and_their_kinds_in_turn() -> None:
    planned = list(bursts("F", ((3, 10), (1, 900)), count=4, every_s=0.5))
    shape = [(product.at_us, product.size_bytes) for product in planned]
    assert shape == [(0, 10)] * 3 + [(500_000, 900)] + [(1_000_000, 10)] * 3 + [(1_500_000, 900)]
    assert len({product.product_id for product in planned}) == 8


def test_schedules_together_stay_in_order(tmp_path: Path) -> None:
    both = list(together([Planned(5, "A", 1, "a")], [Planned(0, "B", 2, "b c"), Planned(9, "B", 2, "d")]))
    assert [product.at_us for product in both] == [0, 5, 9]
    assert write(tmp_path / "schedule", both).read_text() == "0 B 2 b c\n5 A 1 a\n9 B 2 d\n"


@pytest.mark.parametrize("per_s", [1.0, 1e9])
def test_a_rate_of_any_height_gives_the_number_asked(per_s: float) -> None:
    assert len(list(steady("F", 1, per_s=per_s, seconds=50 / per_s))) == 50
