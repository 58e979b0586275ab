"""A connection to the sites' port that says what it likes: a stranger's, or that of an enrolled site that lies."""

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
    """Reads only when told."""

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
        """Says a valid hello with a credential."""
        self.say(frame(HELLO, [[1], "stranger", [1, [site, secret]], []]))
        return self

    def enrol(self, token: str) -> str:
        """Says a valid hello with a token as its site's administrator got it; returns the credential's secret."""
        secret = secrets.token_urlsafe(32)
        proof = [0, [token.rsplit(".", 1)[1], sha256(secret.encode()).hexdigest()]]
        self.say(frame(HELLO, [[1], "stranger", proof, []]))
        return secret

    def frames(self, seconds: float = 10.0) -> Iterator[tuple[int, Any]]:
        """What the hub says, frame by frame, until it hangs up; messages are read, what else there is are bytes."""
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
        """Reads until the hub hangs up; returns what it said."""
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


def header(kind: int, length: int) -> bytes:
    """What a message begins with."""
    return struct.pack(">BI", kind, length)


HELLO, REFUSED, FEED_START, RECEIPTS, CLOCK_REQUEST, FRONTIER = 1, 3, 5, 16, 17, 19
BINARY, BINARY_END = 32, 40
