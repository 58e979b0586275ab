"""The stages of a delivery, and the share of each in its time."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from downburst.deliveries import Timing, timing
from downburst.domain.latency import Certainty
from unit.deliveries.cases import PRODUCT, after, receipt


def _ms(timed: Timing) -> dict[str, float | None]:
    return {stage.name: stage.ms for stage in timed.stages}


def test_the_stages_add_up_to_the_whole() -> None:
    timed = timing(PRODUCT, receipt())
    assert _ms(timed) == {"origin": 200.0, "queue": 10.0, "transfer": 60.0, "store": 5.0, "action": 3.0}
    assert (timed.distribution_ms, timed.end_to_end_ms, timed.bound_ms) == (75.0, 275.0, 2.0)
    assert (timed.slow, timed.sentence) == (None, "")


def test_a_wrong_clock_is_taken_out_where_clocks_meet_and_nowhere_else() -> None:
    shift = timedelta(seconds=5)
    right = receipt()
    assert right.last_byte_at is not None
    assert right.site_stored_at is not None
    assert right.action_done_at is not None
    wrong = receipt(
        last_byte_at=right.last_byte_at + shift,
        site_stored_at=right.site_stored_at + shift,
        action_done_at=right.action_done_at + shift,
        clock_offset_us=5_000_000,
    )
    assert timing(PRODUCT, wrong) == timing(PRODUCT, right)


def test_what_a_clock_leaves_unknown_is_said_to_be_unknown() -> None:
    timed = timing(PRODUCT, receipt(clock_offset_us=None, clock_bound_us=None))
    assert _ms(timed) == {"origin": 200.0, "queue": 10.0, "transfer": None, "store": 5.0, "action": 3.0}
    assert (timed.distribution_ms, timed.bound_ms) == (None, None)


def test_without_the_first_byte_queue_and_line_are_one() -> None:
    timed = timing(PRODUCT, receipt(first_byte_at=None, action_done_at=None))
    assert _ms(timed) == {"origin": 200.0, "hub-to-last-byte": 70.0, "store": 5.0, "action": None}


def test_negative_times_are_shown_and_never_blamed() -> None:
    timed = timing(PRODUCT, receipt(last_byte_at=after(-40), site_stored_at=after(-35), action_done_at=None))
    assert timed.distribution_ms == -35.0
    assert timed.slow is None
    certainties = {stage.name: stage.certainty for stage in timed.stages}
    assert (timed.certainty, certainties["transfer"]) == (Certainty.CLOCK, Certainty.CLOCK)
    assert certainties["store"] is Certainty.KNOWN


def test_times_across_clocks_carry_the_bound_and_others_do_not() -> None:
    timed = timing(PRODUCT, receipt(clock_bound_us=50_000))
    bounds = {stage.name: (stage.bound_ms, stage.certainty) for stage in timed.stages}
    assert bounds == {
        "origin": (None, None),
        "queue": (None, Certainty.KNOWN),
        "transfer": (50.0, Certainty.NOT_KNOWN),
        "store": (None, Certainty.KNOWN),
        "action": (None, Certainty.KNOWN),
    }
    assert (timed.distribution_ms, timed.bound_ms, timed.certainty) == (75.0, 50.0, Certainty.NOT_KNOWN)


@pytest.mark.parametrize(
    ("given", "slow", "words"),
    [
        ({"first_byte_at": after(9500), "last_byte_at": after(9610)}, "queue", "it waited 9.5 s in the hub's queue"),
        ({"last_byte_at": after(9610)}, "transfer", "it was 9.6 s ± 2.0 ms on the line (12 MB at 10 Mb/s)"),
        ({"last_byte_at": after(9610), "repaired": True}, "transfer", "parts of it had to be sent again"),
        (
            {"first_byte_at": None, "last_byte_at": after(9610)},
            "hub-to-last-byte",
            "in the hub's queue and on the line",
        ),
        ({"site_stored_at": after(8070)}, "store", "the site took 8.0 s to check it"),
        ({"action_done_at": after(7075)}, "action", "it stood in the site's log for 7.0 s"),
    ],
)
def test_the_slow_stage_is_named(given: dict[str, Any], slow: str, words: str) -> None:
    stored = {"site_stored_at": after(9900)} if "last_byte_at" in given else {}
    timed = timing(PRODUCT, receipt(**{"action_done_at": None} | stored | given), objective_ms=1000.0)
    assert timed.slow == slow
    assert words in timed.sentence


def test_a_product_that_was_old_when_it_came_is_the_sources_affair() -> None:
    old = replace(PRODUCT, created_at=PRODUCT.stored_at - timedelta(minutes=3))
    timed = timing(old, receipt(), objective_ms=1000.0)
    assert (timed.slow, "3.0 min old when it reached the hub" in timed.sentence) == ("origin", True)
