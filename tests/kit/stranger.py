"""A connection to the sites' port with arbitrary messages: a stranger's, or that of an enrolled site that lies."""

import secrets
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from typing import Any, Self

import cbor2


class Client:
    """Reads only on request."""

    def __init__(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=10)

    def secure(self) -> Self:
        """Speaks TLS from here on."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self.socket = context.wrap_socket(self.socket)
        return self

    def say(self, content: bytes) -> None:
        """Sends; a hub that hung up is no error."""
        with suppress(OSError):
            self.socket.sendall(content)

    def hello(self, site: str, secret: str) -> Self:
        """Sends a valid hello with a credential."""
        self.say(frame(HELLO, [[1], "stranger", [1, [site, secret]], []]))
        return self

    def enrol(self, token: str) -> str:
        """Sends a valid hello with a token as issued to its site's administrator; returns the credential's secret."""
        secret = secrets.token_urlsafe(32)
        proof = [0, [token.rsplit(".", 1)[1], sha256(secret.encode()).hexdigest()]]
        self.say(frame(HELLO, [[1], "stranger", proof, []]))
        return secret

    def frames(self, seconds: float = 10.0) -> Iterator[tuple[int, Any]]:
        """The hub's frames until it hangs up; messages are decoded, the others are bytes."""
        give_up, said = time.monotonic() + seconds, b""
        while True:
            while len(said) >= 5 and len(said) >= 5 + struct.unpack(">I", said[1:5])[0]:
                end = 5 + struct.unpack(">I", said[1:5])[0]
                kind, body, said = said[0], said[5:end], said[end:]
                yield kind, body if BINARY <= kind < BINARY_END else cbor2.loads(body)
            self.socket.settimeout(max(give_up - time.monotonic(), 0.01))
            try:
                more = self.socket.recv(65_536)
            except (ConnectionError, ssl.SSLError):
                return
            if not more:
                return
            said += more

    def close(self) -> None:
        """Hangs up."""
        self.socket.close()

    def wait_closed(self, seconds: float) -> bytes:
        """Reads until the hub hangs up; returns the bytes read."""
        self.socket.settimeout(seconds)
        said = b""
        with suppress(ConnectionError, ssl.SSLError):
            while more := self.socket.recv(65_536):
                said += more
        return said


def frame(kind: int, body: object) -> bytes:
    """A message."""
    content = cbor2.dumps(body)
    return header(kind, len(content)) + content


def receipt(
    feed: str, epoch: int, sequence: int, *, outcome: int = 0, size: int = 5, stamps: tuple[int, int, int, int]
) -> bytes:
    """The message of one receipt, live by unicast leg 1; `stamps` are created, hub_stored, last_byte, site_stored."""
    created, hub_stored, last_byte, site_stored = stamps
    name = feed.encode()
    group = struct.pack(">B", len(name)) + name + struct.pack(">QIBBBB", epoch, 1, outcome, LIVE, UNICAST, GRID)
    content = NO_CLOCK + group + _varint(1) + _signed(sequence) + _varint(size)
    content += _signed(hub_stored) + _signed(hub_stored - created) + _signed(last_byte)
    content += _signed(site_stored - last_byte) + NO_FLAGS
    return header(RECEIPTS, len(content)) + content


def _signed(number: int) -> bytes:
    """A signed difference on the wire: it wraps at 64 bits, and small ones of both signs are short."""
    number = (number + 2**63) % 2**64 - 2**63
    return _varint((number << 1 ^ number >> 63) % 2**64)


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def header(kind: int, length: int) -> bytes:
    """The header of a message."""
    return struct.pack(">BI", kind, length)


HELLO, REFUSED, FEED_START, CLOCK_REQUEST, FRONTIER, RECEIPTS = 1, 3, 5, 17, 19, 35
LIVE, UNICAST, GRID = 0, 0, 2
NO_CLOCK, NO_FLAGS = b"\0", b"\0"
BINARY, BINARY_END = 32, 40
