"""Sources of WIS2: addresses of brokers, and bounds."""

from dataclasses import replace

import pytest

from downburst.domain.bridges import Broker, Wis2Source
from downburst.foundation.errors import BadInput, BadName

SOURCE = Wis2Source("dwd", "WIS2", (Broker("mqtts://broker.example"),), ("cache/a/wis2/de-dwd/data/core/#",))


@pytest.mark.parametrize(
    ("url", "host", "port", "encrypted", "path"),
    [
        ("mqtts://broker.example", "broker.example", 8883, True, None),
        ("mqtt://127.0.0.1:1884", "127.0.0.1", 1884, False, None),
        ("wss://broker.example", "broker.example", 443, True, "/mqtt"),
        ("ws://[::1]:9001/ws", "::1", 9001, False, "/ws"),
    ],
)
def test_the_address_of_a_broker_has_its_usual_ports(
    url: str, host: str, port: int, encrypted: bool, path: str | None
) -> None:
    broker = Broker(url)
    assert (broker.host, broker.port, broker.is_encrypted, broker.websocket_path) == (host, port, encrypted, path)
    assert (broker.user, broker.password) == ("everyone", "everyone")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "broker.example",
        "http://broker.example",
        "mqtts://",
        "mqtt://a:0",
        "mqtt://a:99999",
        "mqtt://a?x",
        "wss://[a",
    ],
)
def test_other_addresses_are_refused_with_an_example(url: str) -> None:
    with pytest.raises(BadInput, match="mqtts://globalbroker"):
        Broker(url)


def test_a_password_is_given_apart_and_shown_nowhere() -> None:
    with pytest.raises(BadInput, match="apart"):
        Broker("mqtts://user:secret@broker.example")
    assert "secret" not in repr(Broker("mqtts://broker.example", "user", "secret"))
    with pytest.raises(BadInput, match="MQTT"):
        Broker("mqtts://broker.example", mqtt=4)


def test_a_source_is_bounded() -> None:
    for wrong in (
        {"name": "DWD"},
        {"brokers": ()},
        {"brokers": SOURCE.brokers * 2},
        {"filters": ()},
        {"filters": SOURCE.filters * 201},
        {"bytes_per_day": 0},
    ):
        with pytest.raises(BadInput):
            replace(SOURCE, **wrong)
    with pytest.raises(BadName):
        replace(SOURCE, feed="a b")
