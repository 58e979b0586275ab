"""The pace of sources and the health of connections."""

from datetime import timedelta

import pytest

from downburst.domain.bridges import Standing
from downburst.domain.bridges.health import SILENT, BrokerHealth, outlet_health, subscription_health
from downburst.domain.bridges.pace import KEPT, Latencies, Pace
from factories import SOME_TIME


def test_messages_are_counted_over_the_last_minute() -> None:
    pace = Pace()
    assert pace.per_s(SOME_TIME) == 0
    for number in range(120):
        pace.count(SOME_TIME + timedelta(seconds=number // 4))
    assert pace.per_s(SOME_TIME + timedelta(seconds=30)) == 2
    assert pace.per_s(SOME_TIME + timedelta(seconds=74)) == pytest.approx(60 / 60)
    assert pace.per_s(SOME_TIME + timedelta(hours=1)) == 0


def test_a_clock_that_was_set_back_loses_no_message_and_keeps_no_more_than_a_minute() -> None:
    pace = Pace()
    for step in (0, 10, 5, 5, 11):
        pace.count(SOME_TIME + timedelta(seconds=step))
    assert pace.per_s(SOME_TIME + timedelta(seconds=11)) == pytest.approx(5 / 60)
    for number in range(10_000):
        pace.count(SOME_TIME + timedelta(seconds=number))
    assert len(pace._seconds) <= 61


def test_the_delay_is_that_of_the_last_notification() -> None:
    pace = Pace()
    assert pace.delay_s is None
    for late_s in (400, 2.5):
        pace.heard(SOME_TIME, SOME_TIME + timedelta(seconds=late_s))
    assert pace.delay_s == 2.5


def test_quantiles_are_nearest_ranks_of_the_last_products() -> None:
    latencies = Latencies()
    assert latencies.quantile(0.5) is None
    latencies.add(7)
    assert latencies.quantile(0.0) == latencies.quantile(0.5) == latencies.quantile(0.99) == 7
    for seconds in range(1, KEPT + 1):
        latencies.add(seconds)
    assert (len(latencies), latencies.quantile(0.5), latencies.quantile(0.99)) == (KEPT, 500, 990)


CONNECTED = Standing(SOME_TIME, bound=2, fault="")


@pytest.mark.parametrize(
    ("standing", "hours", "health", "sentence"),
    [
        (Standing(), 0, BrokerHealth.ERROR, "not connected yet"),
        (Standing(fault="the broker refuses user a: not authorized"), 0, BrokerHealth.ERROR, "refuses user a"),
        (Standing(SOME_TIME, bound=0, last_at=SOME_TIME, fault=""), 0, BrokerHealth.ERROR, "bound to 0 of 2 topics"),
        (Standing(SOME_TIME, bound=1, last_at=SOME_TIME, fault=""), 0, BrokerHealth.ERROR, "bound to 1 of 2 topics"),
        (CONNECTED, 0, BrokerHealth.GOOD, "connected"),
        (CONNECTED, 0.9, BrokerHealth.GOOD, "connected"),
        (CONNECTED, 1, BrokerHealth.WARNING, "no message for 1 h"),
        (CONNECTED, 3.5, BrokerHealth.WARNING, "no message for 3 h"),
        (CONNECTED, 75, BrokerHealth.WARNING, "no message for 3 d"),
    ],
)
def test_silence_is_a_warning_and_a_missing_topic_an_error(
    standing: Standing, hours: float, health: BrokerHealth, sentence: str
) -> None:
    found = subscription_health(standing, 2, SOME_TIME + timedelta(hours=hours))
    assert found.health is health
    assert sentence in found.sentence


def test_a_message_ends_the_silence() -> None:
    at = SOME_TIME + 3 * SILENT
    heard = Standing(SOME_TIME, bound=2, last_at=at, fault="")
    assert subscription_health(heard, 2, at).health is BrokerHealth.GOOD


def test_a_publisher_may_be_silent_and_its_refusal_is_an_error() -> None:
    assert outlet_health(CONNECTED, "").health is BrokerHealth.GOOD
    refused = outlet_health(CONNECTED, "the broker refuses it: not authorized (135)")
    assert (refused.health, refused.sentence[-5:]) == (BrokerHealth.ERROR, "(135)")
    assert (
        outlet_health(Standing(fault="broker.example takes no connection at port 8883"), "").health
        is BrokerHealth.ERROR
    )
