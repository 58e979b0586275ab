"""Findings of `doctor` about brokers."""

from datetime import timedelta
from typing import Any

import pytest

from downburst_app.cli.hub.brokers import brokers_found
from factories import SOME_TIME

URL = "mqtts://broker.example"
NOW = SOME_TIME + timedelta(seconds=12)


def broker(**more: Any) -> dict[str, Any]:
    at = SOME_TIME.isoformat()
    return {"url": URL, "connected_at": at, "bound": 2, "refused": [], "last_at": at, "fault": ""} | more


def source(*brokers: dict[str, Any], enabled: bool = True) -> dict[str, Any]:
    return {"bridge": "dwd", "enabled": enabled, "brokers": list(brokers)}


def publisher(refusal: str = "", **more: Any) -> dict[str, Any]:
    products = {"announced": 3, "waiting": 1, "refusal": refusal}
    return {
        "publisher": "synop",
        "centre": "us-unidata",
        "enabled": True,
        "broker": broker(**more),
        "products": products,
    }


def found(*sources: dict[str, Any]) -> list[tuple[str, ...]]:
    return list(brokers_found(sources, [], NOW))


def of_publisher(one: dict[str, Any]) -> tuple[str, ...]:
    (only,) = brokers_found([], [one], NOW)
    return only


def test_a_hub_without_bridges_has_one_line() -> None:
    assert found() == [("ok", "this hub has no sources and no publishers of WIS2")]


def test_a_broker_that_works_has_topics_and_age() -> None:
    ((state, sentence, remedy),) = found(source(broker()))
    assert (state, remedy) == ("ok", "")
    assert sentence == f"source dwd: {URL} is connected, 2 topics bound, last message 12.0 s ago"
    ((_, sentence, _),) = found(source(broker(last_at=None)))
    assert sentence.endswith("no message yet")
    assert found(source(broker(), enabled=False)) == [("ok", "source dwd is switched off")]


AWAY: dict[str, Any] = {"connected_at": None, "bound": 0}


@pytest.mark.parametrize(
    ("fault", "remedy"),
    [
        ("the broker refuses user everyone: not authorized", "--password-file"),
        ("the certificate of broker.example is of an unknown authority; name its file", "bridges_ca_file"),
        ("the certificate of broker.example has expired, or this host's clock is wrong", "renew"),
        ("broker.example speaks no TLS at port 1883, or another version of it", "mqtt://"),
        ("broker.example has no WebSocket of MQTT at port 443 and path /x", "/mqtt"),
        ("broker.example takes no connection at port 8883", "firewalls"),
        ("not connected yet", "some seconds"),
    ],
)
def test_a_broker_that_is_away_has_the_reason_and_a_remedy(fault: str, remedy: str) -> None:
    ((state, sentence, advised),) = found(source(broker(**AWAY, fault=fault)))
    assert (state, sentence) == ("bad", f"source dwd: {URL} is away: {fault}")
    assert remedy in advised


def test_another_broker_that_works_makes_it_less_bad() -> None:
    states = [one[0] for one in found(source(broker(**AWAY, fault="x"), broker()))]
    assert states == ["weak", "ok"]
    states = [one[0] for one in found(source(broker(**AWAY, fault="x"), broker(refused=["a/# (not authorized)"])))]
    assert states == ["bad", "bad"]
    assert found(source(broker(bound=0)))[0][0] == "weak"


def test_a_publisher_has_its_counts_or_its_refusal() -> None:
    state, sentence = of_publisher(publisher())
    assert state == "ok"
    assert (
        sentence == f"publisher synop: {URL} is connected, 3 products announced, 1 waiting, last message 12.0 s ago"
    )
    denied = "the broker refuses it: not authorized (135)"
    for refusal, expected in ((denied, "bad"), ("no client is subscribed at the broker", "weak")):
        state, sentence, remedy = of_publisher(publisher(refusal))
        assert (state, sentence) == (expected, f"publisher synop: {URL} does not announce: {refusal}")
        assert "origin/a/wis2/us-unidata/#" in remedy
    state, sentence, _ = of_publisher(publisher(**AWAY, fault="gone"))
    assert (state, sentence) == ("bad", f"publisher synop: {URL} is away: gone")
    assert list(brokers_found([], [publisher() | {"enabled": False}], NOW)) == [
        ("ok", "publisher synop is switched off")
    ]
