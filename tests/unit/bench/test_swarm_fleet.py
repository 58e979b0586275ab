"""Sites without logs are checked against the hub's receipts."""

import json
from collections.abc import Sequence

import numpy as np
import pytest
from bench.harness.stamps import Stamps
from bench.product.fleet import Arrivals, check
from bench.product.swarm_fleet import check_tally, parse_receipts

HUB = Stamps(("F", "G"), "hub", 0, np.array([[0, 1, 9, 0, 5, 5], [0, 2, 9, 0, 6, 6], [1, 1, 9, 0, 7, 7]]))


def printed(rows: Sequence[Sequence[int]], *, not_stored: int = 0) -> bytes:
    summary = {"feeds": ["G", "F"], "sites": ["b", "a"], "rows": len(rows), "not_stored": not_stored}
    return json.dumps(summary).encode() + b"\n" + np.array(rows, dtype="<i8").tobytes()


A_HAS_F = [[1, 1, 2, 9, 0, 6, 36], [1, 1, 1, 9, 0, 5, 25]]
B_HAS_G = [[0, 0, 1, 9, 0, 7, 17]]


def test_receipts_are_read_site_by_site_with_the_latency_of_each() -> None:
    held = parse_receipts(printed([*A_HAS_F, *B_HAS_G]))
    assert {name: stamps.latency_us.tolist() for name, stamps in held.items()} == {"a": [30, 20], "b": [10]}
    check(Arrivals(HUB, held), {"a": ["F"], "b": ["G"]})


@pytest.mark.parametrize("rows", [A_HAS_F[:1] + B_HAS_G, [*A_HAS_F, A_HAS_F[0], *B_HAS_G]], ids=["lacking", "twice"])
def test_a_receipt_that_is_lacking_or_there_twice_fails_the_run(rows: list[list[int]]) -> None:
    with pytest.raises(RuntimeError, match="a does not hold what the hub holds"):
        check(Arrivals(HUB, parse_receipts(printed(rows))), {"a": ["F"], "b": ["G"]})


def test_a_product_that_was_rejected_or_came_twice_fails_the_run() -> None:
    with pytest.raises(RuntimeError, match="2 receipts say"):
        parse_receipts(printed(A_HAS_F, not_stored=2))


@pytest.mark.parametrize("summary", [{"products": 2, "bad": 0}, {"products": 3, "bad": 1}, {}])
def test_the_sites_own_count_has_to_agree(summary: dict[str, int]) -> None:
    check_tally({"products": 3, "bad": 0}, 3)
    with pytest.raises(RuntimeError, match="the hub has 3 receipts"):
        check_tally(summary, 3)
