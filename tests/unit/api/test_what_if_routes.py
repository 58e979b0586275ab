"""The route of other conditions: bounds, the scheduler's answer, and its refusals."""

from typing import Any

import pytest

from downburst.domain.feeds import Feed
from downburst.domain.plans import OtherConditions, TrafficSpan
from downburst.foundation.errors import NothingToCompare, PartAway, TooMany
from kit.asked_planner import AskedPlanner
from unit.api.conftest import Asked

PATH = "/v1/feeds/NGRID/what-if"


@pytest.fixture
def planner(hub: Asked) -> AskedPlanner:
    with hub.runtime.ledger.transaction() as tx:
        tx.feeds.add(Feed("NGRID"))
    assert isinstance(hub.runtime.planner, AskedPlanner)
    return hub.runtime.planner


async def test_conditions_reach_the_scheduler_and_its_answer_the_client(hub: Asked, planner: AskedPlanner) -> None:
    wanted = {"sites": 104, "egress_bps": 2e8, "objective_ms": 5_000, "setup_s": 10, "traffic": "busiest"}
    answer = await hub.ask("POST", PATH, json=wanted)
    assert answer["tried"] == {"sites": 104, "egress_bps": 2e8, "objective_ms": 5_000, "setup_s": 10}
    assert [one["transport"] for one in answer["then"]["candidates"]] == ["multicast", "unicast"]
    assert answer["flips"] == [{"condition": "sites", "below": True, "at": 3, "transport": "unicast"}]
    answer = await hub.ask("POST", PATH, json={"flips": False})
    assert (answer["flips"], answer["complete"], answer["tried"]) == ([], False, answer["today"])
    other = OtherConditions(104, 2e8, 5_000.0, 10.0, TrafficSpan.BUSIEST)
    assert planner.asked == [("NGRID", other, True), ("NGRID", OtherConditions(), False)]


@pytest.mark.parametrize(
    "wrong",
    [
        *({"sites": sites} for sites in (0, 501, 1.5, None)),
        *({"egress_bps": rate} for rate in (0, 1e12, "200M")),
        *({"objective_ms": latency} for latency in (0, 1e9)),
        *({"setup_s": seconds} for seconds in (0, 1e6)),
        {"traffic": "yesterday"},
        {"fan_out": 5},
    ],
)
async def test_values_out_of_bounds_are_refused(hub: Asked, planner: AskedPlanner, wrong: dict[str, Any]) -> None:
    await hub.problem("POST", PATH, 400, "bad-request", json=wrong)
    assert planner.asked == []


async def test_the_schedulers_refusals_are_problems(hub: Asked, planner: AskedPlanner) -> None:
    await hub.problem("POST", "/v1/feeds/NGRIDS/what-if", 404, "unknown-feed", json={})
    for refusal, status, code in (
        (NothingToCompare("no product of NGRID came yet"), 409, "nothing-to-compare"),
        (TooMany("the scheduler is busy", retry_after_s=15), 429, "too-many"),
        (PartAway("the scheduler does not answer"), 503, "part-away"),
    ):
        planner.refusal = refusal
        problem = await hub.problem("POST", PATH, status, code, json={})
        assert problem["detail"] == refusal.sentence
