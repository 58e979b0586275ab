"""Predictions against measurements."""

from datetime import UTC, datetime

import pytest

from downburst.model import Leg, Plan, SketchRow, Transport
from downburst_scheduler.accuracy import compared
from factories import sketch_row

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
