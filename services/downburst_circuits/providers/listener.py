"""Messages of the Connection Service over HTTPS, from clients with a certificate of the named authorities.

The endpoint is small: bounded clients, times and bytes, and a connection carries one message.
"""

import asyncio
import logging
import socket
import ssl
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, ClassVar

from downburst.foundation.errors import BadInput, BadSettings, DownburstError, Refused
from downburst.settings.addresses import split_address
from downburst.settings.circuits import ListenSettings
from downburst.supervision import attempt, start
from downburst_circuits.nsi.soap.hardened import MESSAGE_BYTES_MAX

Heard = Callable[[bytes], Awaitable[bytes]]
"""Takes a message and returns the body of its answer; raises one sentence if it is none of ours."""

Report = Callable[[str], Awaitable[None]]
"""Reports a fault to the operator."""


class Listener(ABC):
    """Listens while it runs; a connection carries one message."""

    what: ClassVar[str]
    """The kind of message, for sentences."""
    setting: ClassVar[str]

    def __init__(self, settings: ListenSettings, report: Report) -> None:
        self._settings = settings
        self._report = report
        self._clients: dict[asyncio.Task[None], str] = {}
        self.address = ("", 0)
        """The host and port, when it listens."""

    @abstractmethod
    async def answer(self, message: bytes, subject: str) -> tuple[str, bytes]:
        """The status and body of HTTP for a message from the holder of a certificate; or raises one sentence."""

    @abstractmethod
    def begin(self, serving: Callable[[], Awaitable[None]], client: str) -> asyncio.Task[None]:
        """Starts the work for one client, under the listener's own name."""

    async def run(self) -> None:
        """Serves until cancelled. Files or an address that can't be used are reported once, and tried again."""
        told = ""
        while True:
            try:
                await self.serve()
            except BadSettings as error:
                if error.sentence != told:
                    await self._report(error.sentence)
                told = error.sentence
                await asyncio.sleep(AGAIN_S)

    async def serve(self) -> None:
        """Serves until cancelled; raises one sentence if the files or the address can't be used."""
        tls = _tls(self._settings, self.setting)
        with _listening(self._settings.listen, f"{self.what}s", self.setting) as listening:
            self.address = listening.getsockname()[:2]
            try:
                while True:
                    connection, peer = await asyncio.get_running_loop().sock_accept(listening)
                    self._admit(tls, connection, str(peer[0]))
            finally:
                clients = list(self._clients)
                for client in clients:
                    client.cancel()
                await asyncio.gather(*clients, return_exceptions=True)

    def _admit(self, tls: ssl.SSLContext, connection: socket.socket, client: str) -> None:
        hosts = list(self._clients.values())
        if len(hosts) >= CLIENTS_MAX:
            self._refused(client, f"{CLIENTS_MAX} clients are connected")
            connection.close()
        elif hosts.count(client) >= CLIENTS_OF_HOST_MAX:
            self._refused(client, f"it has {CLIENTS_OF_HOST_MAX} connections")
            connection.close()
        else:
            task = self.begin(lambda: self._serve(tls, connection, client), client)
            self._clients[task] = client
            task.add_done_callback(self._clients.pop)

    async def _serve(self, tls: ssl.SSLContext, connection: socket.socket, client: str) -> None:
        """Serves one client; a refused one costs one line of the log."""
        with connection:
            try:
                async with asyncio.timeout(CLIENT_S):
                    await self._served(tls, connection, client)
            except TimeoutError:
                self._refused(client, f"it took longer than {CLIENT_S:.0f} s")
            except (OSError, EOFError) as error:
                self._refused(client, str(error)[:200] or type(error).__name__)

    async def _served(self, tls: ssl.SSLContext, connection: socket.socket, client: str) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=LINE_BYTES_MAX)
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol, connection, ssl=tls, ssl_handshake_timeout=HANDSHAKE_S
        )
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        try:
            status, body = await self._answer(reader, client, subject_of(transport.get_extra_info("peercert")))
            # A client that leaves meanwhile does not need the answer: it can ask for what the message has changed.
            with suppress(OSError):
                writer.write(_response(status, body))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        finally:
            transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, client: str, subject: str) -> tuple[str, bytes]:
        try:
            return await self.answer(await _message(reader), subject)
        except DownburstError as error:
            self._refused(client, error.sentence)
            return ("403 Forbidden" if isinstance(error, Refused) else "400 Bad Request"), error.sentence.encode()

    def _refused(self, client: str, reason: str) -> None:
        _LOG.warning("a %s from %s is refused: %s", self.what, client, reason)


class CallbackListener(Listener):
    """Takes callbacks of providers. They only hurry what the providers' lists would show."""

    what, setting = "callback", "circuits.callbacks"

    def __init__(self, settings: ListenSettings, heard: Heard, report: Report) -> None:
        super().__init__(settings, report)
        self._heard = heard

    async def answer(self, message: bytes, subject: str) -> tuple[str, bytes]:  # noqa: ARG002
        """Takes a message; any certificate of the authorities will do."""
        return "200 OK", await self._heard(message)

    def begin(self, serving: Callable[[], Awaitable[None]], client: str) -> asyncio.Task[None]:
        """Serves one client; an unknown error is counted."""
        return start("circuits.callback", attempt("circuits.callback", serving, what=client))


def subject_of(certificate: Mapping[str, Any] | None) -> str:
    """The subject of a verified certificate, such as `CN=hub,O=Example`, in the order of the certificate."""
    names = {"commonName": "CN", "organizationName": "O", "organizationalUnitName": "OU", "countryName": "C",
             "stateOrProvinceName": "ST", "localityName": "L", "domainComponent": "DC"}  # fmt: skip
    parts = [pair for group in (certificate or {}).get("subject", ()) for pair in group]
    return ",".join(f"{names.get(name, name)}={_escaped(value)}" for name, value in parts)


def _escaped(value: str) -> str:
    """A value that can't pass for two, as in RFC 4514."""
    return "".join(f"\\{char}" if char in ',+"\\<>;=' else char for char in value)


async def _message(reader: asyncio.StreamReader) -> bytes:
    """The body of a request of HTTP/1.1."""
    method, *_ = (await _line(reader)).split(" ")
    headers: dict[str, str] = {}
    while line := await _line(reader):
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
        if len(headers) > HEADERS_MAX:
            raise BadInput(f"the message has more than {HEADERS_MAX} headers")
    if method != "POST":
        raise BadInput("the message is no POST")
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return await _chunks(reader)
    return await reader.readexactly(_size(headers.get("content-length", ""), 10))


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while size := _size((await _line(reader)).partition(";")[0], 16, len(body)):
        body += await reader.readexactly(size)
        await _line(reader)
    for _ in range(HEADERS_MAX):
        if not await _line(reader):
            break
    return bytes(body)


def _size(text: str, base: int, before: int = 0) -> int:
    """A number of bytes, with those before within the limit."""
    digits = "0123456789abcdefABCDEF" if base == 16 else "0123456789"
    text = text.strip()
    if not text or len(text) > SIZE_CHARS_MAX or any(char not in digits for char in text):
        raise BadInput("the length of the message is missing or no number")
    size = int(text, base)
    if before + size > MESSAGE_BYTES_MAX:
        raise BadInput(f"the message is longer than {MESSAGE_BYTES_MAX} bytes")
    return size


async def _line(reader: asyncio.StreamReader) -> str:
    try:
        line = await reader.readuntil(b"\n")
    except asyncio.LimitOverrunError:
        raise BadInput(f"the message has a line of more than {LINE_BYTES_MAX} bytes") from None
    return line.decode("latin-1").rstrip("\r\n")


def _listening(address: str, what: str, setting: str) -> socket.socket:
    host, port = split_address(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        raise BadSettings(
            f"the hub can't listen on {address} for {what} ({error.strerror}); correct the setting {setting}.listen"
        ) from None
    listening.setblocking(False)  # noqa: FBT003
    return listening


def _response(status: str, body: bytes) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/xml; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body


def _tls(settings: ListenSettings, setting: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_cert_chain(settings.certificate, settings.key, password=lambda: "")
        context.load_verify_locations(settings.authorities)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise BadSettings(
            f"the files {settings.certificate}, {settings.key} and {settings.authorities} of the setting "
            f"{setting} can't be used for TLS: {error}; give a certificate, its key without password, and the "
            "authorities of clients, all in PEM"
        ) from None
    return context


_LOG = logging.getLogger("downburst.circuits")
CLIENTS_MAX, CLIENTS_OF_HOST_MAX = 32, 16
CLIENT_S, HANDSHAKE_S = 20.0, 10.0
AGAIN_S = 60.0
LINE_BYTES_MAX, HEADERS_MAX, SIZE_CHARS_MAX = 8_192, 64, 8
