"""Brokers as other programs name them: by an address, or by host, port and transport."""

import hashlib
import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from downburst.domain.bridges.sources import EVERYONE, PORTS, Broker
from downburst.foundation.errors import BadInput
from downburst.wis2.imports.files import Spot


@dataclass(frozen=True, slots=True)
class StatedBroker:
    """A broker with the place of its password, which itself is not kept."""

    spot: Spot
    broker: Broker
    password_from: str | None
    """File, line and name of the password; None: it is everyone's, or not in these files."""
    digest: bytes = field(default=b"", repr=False)
    """Of the password: brokers of a source share one."""

    @property
    def needs_password(self) -> bool:
        """False for the user and password of Global Brokers."""
        return self.password_from is not None or self.broker.user != EVERYONE

    @property
    def password_file(self) -> str:
        """The file into which the user writes the password."""
        return f"{re.sub(r'[^A-Za-z0-9.-]', '-', f'{self.broker.user}-{self.broker.host}')[:LONGEST_NAME]}.password"

    def options(self, *, mqtt: bool = True) -> list[str]:
        """The options of the command line that belong to its user."""
        named = ["--user", self.broker.user, "--password-file", self.password_file] if self.needs_password else []
        return named + (["--mqtt", str(self.broker.mqtt)] if mqtt and self.broker.mqtt != MQTT_5 else [])

    def document(self) -> dict[str, object]:
        """The broker for people; the password is named, not shown."""
        shown: dict[str, object] = {"url": self.broker.url, "user": self.broker.user, "mqtt": self.broker.mqtt}
        if self.needs_password:
            place = self.password_from or "not in these files"
            shown |= {"password_from": place, "password_file": self.password_file}
        return shown


@dataclass(frozen=True, slots=True)
class Signed:
    """User and password as a file states them beside an address."""

    user: str | None = None
    password: str | None = None
    password_at: str = ""
    """File, line and name of the password."""


def broker_of_url(spot: Spot, url: str, signed: Signed, mqtt: int = 5) -> StatedBroker:
    """The broker of an address, whose own user and password count if there are none beside it."""
    signed_in, parts, port = _split(url)
    own_user, _, own_password = signed_in.partition(":")
    user = signed.user or unquote(own_user) or EVERYONE
    password = signed.password if signed.password is not None else unquote(own_password) or None
    if parts.scheme in {"mqtt", "ws"} and port in TLS_PORTS:
        parts = parts._replace(scheme=f"{parts.scheme}s")
    path = parts.path if parts.scheme in {"ws", "wss"} and parts.path not in {"", "/"} else ""
    if parts.scheme in {"ws", "wss"} and not path:
        path = DEFAULT_PATH
    at = signed.password_at if signed.password is not None else f"{spot} (in the address)"
    return _stated(spot, Broker(_url(parts.scheme, parts.hostname or "", port, path), user, mqtt=mqtt), password, at)


def broker_of_parts(
    spot: Spot, host: str, port: str | None, transport: str | None, signed: Signed, mqtt: int = 5
) -> StatedBroker:
    """The broker of a host; as in wis2downloader, ports 443 and 8883 speak TLS and others do not."""
    if "://" in host:
        return broker_of_url(spot, host, signed, mqtt)
    written = (port or "443").strip()
    if not written.isdecimal() or not 0 < int(written[:6]) < 65536:
        raise BadInput(NO_PORT)
    number = int(written)
    plain = {"websockets": "ws", "tcp": "mqtt"}.get((transport or "websockets").strip().lower())
    if plain is None:
        raise BadInput("the transport of the broker is neither tcp nor websockets")
    scheme = f"{plain}s" if number in TLS_PORTS else plain
    url = _url(scheme, host.strip(), number, DEFAULT_PATH if plain == "ws" else "")
    return _stated(spot, Broker(url, signed.user or EVERYONE, mqtt=mqtt), signed.password, signed.password_at)


def mqtt_version(text: str | None) -> int:
    """5 or 311 of the notations in use: `5`, `MQTTv5`, `3.1.1`, `4` (its number on the wire), `MQTTv311`."""
    digits = re.sub(r"[^0-9]", "", text or "")
    if digits not in VERSIONS:
        raise BadInput("the version of MQTT is neither 5 nor 3.1.1")
    return VERSIONS[digits]


def _stated(spot: Spot, broker: Broker, password: str | None, at: str) -> StatedBroker:
    is_everyone = password is None or (broker.user == EVERYONE and password == EVERYONE)
    if password is None or is_everyone:
        return StatedBroker(spot, broker, None)
    return StatedBroker(spot, broker, at, hashlib.blake2b(password.encode(errors="replace")).digest())


def _split(url: str) -> tuple[str, SplitResult, int | None]:
    """User and password, the address without them, and its port; a password may hold any character, as @ or #."""
    scheme, _, rest = url.strip().partition("://")
    signed_in, _, place = rest.rpartition("@")
    try:
        parts = urlsplit(f"{scheme}://{place}")
    except ValueError:
        raise BadInput("the address of the broker can't be read") from None
    try:
        return signed_in, parts, parts.port
    except ValueError:
        raise BadInput(NO_PORT) from None


def _url(scheme: str, host: str, port: int | None, path: str) -> str:
    if not _HOST.fullmatch(host):
        raise BadInput("the address of the broker names no host")
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}{'' if port in {None, PORTS.get(scheme)} else f':{port}'}{path}"


LONGEST_NAME = 200
MQTT_5 = 5
TLS_PORTS = {443, 8883}
"""wis2downloader and pywis-pubsub use TLS on these and on no others."""

DEFAULT_PATH = "/mqtt"
"""Of the library that both use, paho."""

VERSIONS = {"": 5, "5": 5, "50": 5, "311": 311, "4": 311}
NO_PORT = "the port of the broker is no number from 1 to 65535"
_HOST = re.compile(r"[A-Za-z0-9._:-]{1,253}")
