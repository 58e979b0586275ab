"""Predictions against measurements."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from downburst.domain.latency import LatencyKind, SketchRow
from downburst.domain.plans import Candidate, Leg, Plan, Transport
from downburst.domain.receipts import Batch
from downburst.foundation.clock import to_us
from downburst.ledger import Ledger
from downburst_scheduler.accuracy import Watched, compared, site_floors, watched, with_floor
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.models.floors import Expected, Floor
from downburst_scheduler.models.offers import CircuitOffer
from downburst_scheduler.models.situation import SiteFacts
from factories import SOME_TIME, sketch_row

PLAN = Plan(
    feed="NGRID",
    version=3,
    legs=(Leg(32, Transport.MULTICAST, ("a", "b"), "239.77.0.32", 17_032, 400_000_000),),
    reason="",
    made_at=datetime(2026, 1, 1, tzinfo=UTC),
    figures={"predicted_p50_ms": 10.0, "predicted_p99_ms": 100.0, "because": "cheapest"},
)


def measured(*values_ms: float, transport: Transport = Transport.MULTICAST) -> SketchRow:
    return sketch_row(values_ms, transport=transport)


def test_the_ratio_of_measured_and_predicted_stands_in_the_figures() -> None:
    told = compared(PLAN, [measured(*[20.0] * 98), measured(50.0, 50.0)])
    assert told is not None
    assert told.figures["measured_count"] == 100
    assert told.figures["measured_p50_ms"] == pytest.approx(20, rel=0.02)
    assert told.figures["measured_over_predicted_p50"] == pytest.approx(2.0, rel=0.02)
    assert told.figures["measured_over_predicted_p99"] == pytest.approx(0.5, rel=0.02)
    assert told.figures["predicted_over_measured"] == pytest.approx(2.0, rel=0.02), "of p99"
    assert told.figures["measured_over_predicted_p95"] is None, "p95 was not predicted"
    assert told.figures["because"] == "cheapest"
    assert (told.version, told.legs) == (PLAN.version, PLAN.legs)


def test_what_another_transport_delivered_says_nothing_about_this_plan() -> None:
    assert compared(PLAN, [measured(5.0, transport=Transport.UNICAST)]) is None
    assert compared(PLAN, []) is None


def test_what_was_told_is_not_told_again() -> None:
    told = compared(PLAN, [measured(20.0)])
    assert told is not None
    assert compared(told, [measured(20.0)]) is None
    assert compared(told, [measured(20.0, 21.0)]) is not None


def test_a_negative_median_has_no_ratio_but_is_shown() -> None:
    told = compared(PLAN, [measured(-3.0)])
    assert told is not None
    assert told.figures["measured_p50_ms"] == -3.0
    assert told.figures["measured_negative"] == 1
    assert told.figures["measured_over_predicted_p50"] is None


SMALL = Arrivals(np.linspace(0, 299.5, 600), np.full(600, 1_250.0), 300.0)
"""Ten kilobits each."""
MINUTE = to_us(SOME_TIME) // 60_000_000


def expected_of(plan: Plan, *sites: SiteFacts, repair_share: float = 0.0) -> dict[str, Expected]:
    found = watched(plan, SMALL, sites, egress_bps=8 * 2.0**20, repair_share=repair_share)
    return dict(found.expected) if found is not None else {}


def of_legs(*legs: Leg) -> Plan:
    return Plan("IDS", 1, legs, "", SOME_TIME)


def test_what_the_models_expect_at_a_site_follows_its_leg() -> None:
    sites = [SiteFacts(0.02, name="a"), SiteFacts(0.08, name="b"), SiteFacts(0.02, name="lossy", loss=0.01)]
    copies = expected_of(of_legs(Leg(1, Transport.UNICAST, ("a", "b", "lossy"))), *sites)
    assert {name: one.away_ms for name, one in copies.items()} == {"a": 10.0, "b": 40.0}
    assert copies["a"].own_p99_ms == pytest.approx(1e7 / 2**21), "a third of the egress, down to an octave"
    group = of_legs(Leg(2, Transport.MULTICAST, ("a", "b"), "239.77.0.2", 17_002, 2**20))
    assert expected_of(group, *sites)["b"].own_p50_ms == pytest.approx(1e7 / 2**20)
    assert expected_of(group, *sites, repair_share=0.01) == {}, "who waits for repair waits for the path"


def test_a_circuit_is_no_faster_than_it_is() -> None:
    offer = CircuitOffer(1, 1_000_000)
    plan = of_legs(Leg(3, Transport.STATIC_CIRCUIT, ("a",), circuits=(("a", 1),)))
    found = expected_of(plan, SiteFacts(0.02, name="a", circuit=offer))
    assert found["a"].own_p50_ms == pytest.approx(1e7 / 2**19), "0.88 Mb/s of payload, down to an octave"


def test_without_arrivals_nothing_is_expected() -> None:
    plan, nothing = of_legs(Leg(1, Transport.UNICAST, ("a",))), Arrivals(np.empty(0), np.empty(0), 0.0)
    assert watched(plan, nothing, [SiteFacts(name="a")], egress_bps=1e9, repair_share=0.0) is None


def test_floors_come_from_the_ledgers_minutes_in_which_a_site_kept_up(ledger: Ledger) -> None:
    def row(
        ms: float,
        minute: int,
        kind: LatencyKind = LatencyKind.DISTRIBUTION,
        *,
        feed: str = "IDS",
        site: str = "a",
    ) -> SketchRow:
        return sketch_row([ms] * 100, minute=minute, kind=kind, feed=feed, site=site)

    rows = (
        row(900.0, MINUTE - 9),
        row(70.0, MINUTE),
        row(30.0, MINUTE, LatencyKind.QUEUEING),
        row(800.0, MINUTE + 1),
        row(700.0, MINUTE, feed="OTHER"),
        row(600.0, MINUTE, site="b"),
    )
    with ledger.transaction() as tx:
        tx.measured.batches.load(Batch("1", sketches=rows))
    feeds = [Watched("IDS", frozenset({Transport.UNICAST}), {"a": Expected(10.0, 0.02, 0.04)})]
    with ledger.transaction(writes=False) as tx:
        found = site_floors(tx, feeds, since_minute=MINUTE, was_behind=lambda _, minute: minute == MINUTE + 1)
    floor = found.floor(["a", "b"])
    assert floor is not None
    assert floor.deliveries == 100
    assert floor.p50_ms == pytest.approx(59.98, rel=0.03)
    assert floor.hub_p50_ms == pytest.approx(30.0, rel=0.03)


def test_another_floor_takes_the_place_of_the_one_in_a_plan() -> None:
    seen = Candidate(Transport.UNICAST, feasible=True, reason="", predicted_p50_ms=1.0, predicted_p99_ms=2.0)
    unseen = Candidate(Transport.MULTICAST, feasible=False, reason="no groups")
    busy = with_floor(replace(PLAN, candidates=(seen, unseen)), Floor(71.0, 100.0, 240.0, deliveries=100))
    assert (busy.figures["predicted_p50_ms"], busy.figures["predicted_p99_ms"]) == (81.0, 340.0)
    assert [one.predicted_p99_ms for one in busy.candidates] == [242.0, None]
    quiet = with_floor(busy, Floor(0.5, 1.0, 3.0, deliveries=100))
    assert (quiet.figures["predicted_p50_ms"], quiet.figures["predicted_p99_ms"]) == (10.5, 103.0)
    assert (quiet.candidates[0].predicted_p50_ms, quiet.candidates[0].predicted_p99_ms) == (1.5, 5.0)
    assert quiet.figures["floor_p99_ms"] == 3.0
    assert "predicted_p95_ms" not in quiet.figures, "what was not predicted is none"
