"""The clause beside a feed's transport: one figure or one rule, never longer than its place in a row."""

import random
from dataclasses import replace

import pytest

from downburst.domain.plans import Candidate, Plan, Transport
from downburst_api.plans.clause import LONGEST, RULES, clause_of
from downburst_scheduler.planner import Because
from factories import multicast, plan, unicast

COPIES = Candidate(Transport.UNICAST, feasible=True, reason="", egress_bps=2.7e9, predicted_p99_ms=74_000)
GROUP = Candidate(Transport.MULTICAST, feasible=True, reason="", egress_bps=24.6e6, predicted_p99_ms=610)
NO_GROUP = Candidate(Transport.MULTICAST, feasible=False, reason="no site hears it")


def of_unicast(*candidates: Candidate, because: str = "cheapest") -> Plan:
    return replace(plan("NGRID", unicast(1, "unl.edu")), candidates=candidates, figures={"because": because})


def of_group(*candidates: Candidate, because: str = "cheapest") -> Plan:
    return replace(plan("NGRID", multicast(1, "unl.edu")), candidates=candidates, figures={"because": because})


def _aiming(objective_ms: float, made: Plan) -> Plan:
    return replace(made, figures={**made.figures, "objective_ms": objective_ms})


@pytest.mark.parametrize(
    ("made", "clause"),
    [
        (of_group(GROUP, COPIES), "24.6 Mb/s, by unicast 2.7 Gb/s"),
        (of_group(replace(GROUP, egress_bps=2.7e9), COPIES), "p99 610.0 ms, by unicast 74.0 s"),
        (of_group(GROUP), "24.6 Mb/s for all sites"),
        (of_group(GROUP, COPIES, because="fastest"), "over the objective, but the fastest: p99 610.0 ms"),
        (of_group(GROUP, because="least-bad"), "no transport is possible; this one is the least bad"),
        (of_unicast(COPIES, replace(GROUP, egress_bps=2.698e9)), "a group would save only 2 Mb/s"),
        (of_unicast(COPIES, replace(GROUP, egress_bps=3e9)), "2.7 Gb/s of copies; a group would save nothing"),
        (of_unicast(COPIES, NO_GROUP), "2.7 Gb/s of copies; no group is possible"),
        (of_unicast(), "not measured yet"),
        (of_unicast(COPIES, because="pinned"), "pinned by an operator"),
        (_aiming(500, of_unicast(COPIES, GROUP)), "a group would miss the objective: p99 610.0 ms"),
    ],
)
def test_the_clause_gives_what_decided(made: Plan, clause: str) -> None:
    assert clause_of(made) == clause


def test_a_dry_run_names_the_transport_that_it_would_use() -> None:
    made = replace(of_unicast(COPIES), figures={"because": "would-change", "would_be": "dynamic-circuit"})
    assert clause_of(made) == "dry run: it would change to dynamic-circuit"


def test_each_rule_of_the_planner_has_a_clause() -> None:
    by_figures = {Because.CHEAPEST, Because.FASTEST, Because.LEAST_BAD, Because.WOULD}
    assert RULES.keys() == {one.value for one in Because} - by_figures


def test_no_clause_is_longer_than_its_place() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)

    def some(transport: Transport) -> Candidate:
        egress_bps = chance.choice([None, 10 ** chance.uniform(0, 12)])
        p99_ms = chance.choice([None, 10 ** chance.uniform(-3, 8)])
        possible = chance.random() < 0.7
        return Candidate(transport, possible, "", egress_bps=egress_bps, predicted_p99_ms=p99_ms)

    for _ in range(2_000):
        candidates = tuple(some(one) for one in Transport)
        because = chance.choice([*Because]).value
        figures = {"because": because, "would_be": chance.choice([*Transport]).value, "objective_ms": 500.0}
        for made in (of_unicast(*candidates), of_group(*candidates)):
            said = clause_of(replace(made, figures=figures))
            assert 0 < len(said) <= LONGEST, said
