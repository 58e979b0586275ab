"""Results of pScheduler as its HTTP archiver posts them: their figures, and what is refused."""

import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from downburst.domain.measurements import Unit, plain_host
from downburst.foundation.errors import BadInput
from downburst.recordings.perfsonar import read_result

GOLDEN = Path(__file__).parents[2] / "golden" / "pscheduler"
NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)


def recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text())
    return found


def test_a_one_way_delay_is_the_median_with_the_error_of_the_clocks() -> None:
    found = read_result("unl", recorded("latency"), NOW)
    assert (found.point, found.kind, found.refused) == ("unl", "latency", "")
    assert (found.source, found.destination) == ("ps.unl.edu", "192.0.2.9")
    assert found.at == datetime(2026, 6, 1, 11, 55, tzinfo=UTC)
    assert found.figure is not None
    assert found.figure.value == pytest.approx(42_100)
    assert found.figure.unit is Unit.MICROSECONDS
    assert found.figure.error == pytest.approx(820)
    assert found.figure.lost_share == pytest.approx(0.02)
    assert found.figure.more["max_us"] == pytest.approx(55_250)
    assert found.figure.note == ""


def test_a_round_trip_needs_no_clock() -> None:
    found = read_result("unl", recorded("rtt"), NOW)
    assert found.figure is not None
    assert found.figure.value == pytest.approx(84_200)
    assert (found.figure.error, found.figure.lost_share) == (0.0, 0.2)
    assert found.at == datetime(2026, 6, 1, 11, 50, tzinfo=UTC)


def test_a_rate_is_that_of_the_receiver_and_a_missing_source_the_first_participant() -> None:
    body = recorded("throughput")
    found = read_result("unl", body, NOW)
    assert found.figure is not None
    assert (found.figure.value, found.figure.unit) == (938_500_000, Unit.BITS_PER_SECOND)
    assert found.figure.more == {"retransmits": 12}
    assert (found.source, found.destination) == ("ps.unl.edu", "192.0.2.9")
    body["test"]["spec"]["reverse"] = True
    body["participants"] = [{"participant": "[2001:db8::1]:8443"}]
    back = read_result("unl", body, NOW)
    assert (back.source, back.destination) == ("192.0.2.9", "2001:db8::1")


@pytest.mark.parametrize(
    ("shift_ms", "error_ms", "said"),
    [
        (-50.0, 0.8, "Negative: a clock is further from the other than the test claims."),
        (0.0, 30.0, "One-way delay not known: the clocks' error is more than half of it."),
        (0.0, None, "The test does not name the error of its clocks."),
    ],
)
def test_a_delay_that_its_clocks_spoil_is_shown_with_a_note(
    shift_ms: float, error_ms: float | None, said: str
) -> None:
    body = recorded("latency")
    histogram = body["result"]["histogram-latency"]
    body["result"]["histogram-latency"] = {str(float(key) + shift_ms): count for key, count in histogram.items()}
    body["result"]["max-clock-error"] = error_ms
    figure = read_result("unl", body, NOW).figure
    assert figure is not None
    assert figure.value == pytest.approx((42.1 + shift_ms) * 1000)
    assert figure.note == said


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("test", "type"), "trace", "results of trace are not read here; latency, latencybg, rtt, throughput are"),
        (("result", "succeeded"), False, "the test failed: no\\s route"),
        (("result", "histogram-latency"), {}, "no packet arrived"),
        (("result", "histogram-latency"), {"x": 1}, "which is no number"),
        (("result", "histogram-latency"), {"nan": 1}, "should be a number"),
        (("result", "histogram-latency"), {"1": -1}, "should be a number"),
        (("result", "histogram-latency"), {str(n): 1 for n in range(20_001)}, "at most 20000 are read"),
        (("result", "max-clock-error"), 1e300, "max-clock-error is 1e"),
        (("result", "packets-lost"), True, "packets-lost is True"),
        (("test", "spec", "bucket-width"), 0, "bucket-width is 0"),
        (("schedule", "start"), "yesterday", "no time of ISO 8601"),
        (("schedule", "start"), "2020-01-01T00:00:00Z", "check the test point's clock"),
        (("schedule", "start"), "0001-01-01T00:00:00+23:00", "check the test point's clock"),
        (("schedule",), None, "no start"),
    ],
)
def test_a_result_without_a_figure_names_the_reason(place: tuple[str, ...], value: object, said: str) -> None:
    body = recorded("latency")
    body["result"]["error"] = "no\n  route"
    inner = body
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    found = read_result("unl", body, NOW)
    assert found.figure is None
    assert said.replace("\\s", "") in found.refused
    assert "\n" not in found.refused


@pytest.mark.parametrize("body", [None, [], 7, {}, {"test": {}}, {"test": {"type": "rtt"}}, {"test": [], "id": "x"}])
def test_a_body_of_something_else_is_refused(body: object) -> None:
    with pytest.raises(BadInput, match="no result of pScheduler"):
        read_result("unl", body, NOW)


def test_hostile_values_anywhere_do_no_harm() -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    hostile: list[object] = [None, True, -1, 10**400, -1e308, "", "x" * 5000, [], {}, [[]], {"a": {}}, "PT9S", "NaN"]
    hostile.append("a\x00\ud800\x1b[2J")

    def spoiled(value: Any) -> Any:
        if dice.random() < 0.1:
            return dice.choice(hostile)
        if isinstance(value, dict):
            return {key: spoiled(one) for key, one in value.items()}
        return [spoiled(one) for one in value] if isinstance(value, list) else value

    for _ in range(2000):
        body = spoiled(recorded(dice.choice(["latency", "rtt", "throughput"])))
        try:
            found = read_result("unl", body, NOW)
        except BadInput:
            continue
        assert (found.figure is None) == bool(found.refused)
        assert len(found.refused) < 600
        assert all(text.isprintable() for text in (found.refused, found.kind, found.run))


def test_hosts_have_one_spelling() -> None:
    for given, plain in (
        ("PS.Example.edu.", "ps.example.edu"),
        ("[2001:DB8:0::1]:443", "2001:db8::1"),
        ("2001:db8:0:0::1", "2001:db8::1"),
        ("192.0.2.1:8443", "192.0.2.1"),
    ):
        assert plain_host(given) == plain
    for given in ("", "a b", "http://x/", "x/y", "-", "a" * 300, "[::1", "x:99999999"):
        with pytest.raises(BadInput):
            plain_host(given)
