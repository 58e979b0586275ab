"""The reason for which a broker takes no connection, as a sentence."""

import socket
import ssl

import pytest
from paho.mqtt.client import WebsocketConnectionError

from downburst.domain.bridges import Broker
from downburst_bridges.faults import fault_of

BROKER = Broker("wss://broker.example/mqtt")


def certificate(code: int, message: str = "") -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "CERTIFICATE_VERIFY_FAILED")
    error.verify_code, error.verify_message = code, message
    return error


@pytest.mark.parametrize(
    ("error", "part"),
    [
        (certificate(20), "is of an unknown authority; name its file in the setting bridges_ca_file"),
        (certificate(18), "unknown authority"),
        (certificate(10), "has expired"),
        (certificate(62), "is for another name"),
        (certificate(23, "certificate revoked"), "is refused: certificate revoked"),
        (ssl.SSLError(1, "WRONG_VERSION_NUMBER"), "speaks no TLS at port 443"),
        (ConnectionResetError(), "speaks no TLS at port 443"),
        (socket.gaierror(-2, "Name or service not known"), "the name broker.example is unknown"),
        (WebsocketConnectionError("x"), "has no WebSocket of MQTT at port 443 and path /mqtt"),
        (ConnectionRefusedError(), "takes no connection at port 443"),
        (None, "takes no connection at port 443"),
    ],
)
def test_each_error_is_a_sentence_about_the_broker(error: BaseException | None, part: str) -> None:
    sentence = fault_of(BROKER, error)
    assert part in sentence
    assert "broker.example" in sentence
