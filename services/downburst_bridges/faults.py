"""The reason for which a broker takes no connection, as a sentence; pure."""

import socket
import ssl

from paho.mqtt.client import WebsocketConnectionError

from downburst.domain.bridges import Broker


def fault_of(broker: Broker, error: BaseException | None) -> str:
    """A sentence for the error of an attempt to connect."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _of_certificate(broker.host, error)
    if isinstance(error, ssl.SSLError) or (broker.is_encrypted and isinstance(error, ConnectionResetError)):
        return f"{broker.host} speaks no TLS at port {broker.port}, or another version of it"
    if isinstance(error, socket.gaierror):
        return f"the name {broker.host} is unknown; check the address"
    if isinstance(error, WebsocketConnectionError):
        return f"{broker.host} has no WebSocket of MQTT at port {broker.port} and path {broker.websocket_path}"
    return f"{broker.host} takes no connection at port {broker.port}"


def _of_certificate(host: str, error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code in UNKNOWN_AUTHORITY:
        return f"the certificate of {host} is of an unknown authority; name its file in the setting bridges_ca_file"
    if error.verify_code in OTHER_NAME:
        return f"the certificate of {host} is for another name; use the name in the certificate"
    if error.verify_code == EXPIRED:
        return f"the certificate of {host} has expired, or this host's clock is wrong"
    return f"the certificate of {host} is refused: {error.verify_message}"


UNKNOWN_AUTHORITY = frozenset({2, 18, 19, 20, 21})
"""Verification results of OpenSSL (x509_vfy.h): no issuer, or a self-signed one, is known here."""
OTHER_NAME = frozenset({62, 64})
EXPIRED = 10
