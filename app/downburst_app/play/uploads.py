"""PUTs over persistent connections, with as little work per product as HTTP allows.

A general client spends a millisecond on each request, too much for bursts of hundreds of small products a second.
Framing and parsing are h11's; this adds sockets and a pool of idle connections.
"""

import asyncio
import ssl
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import h11

from downburst.foundation.errors import BadInput


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and text of a response."""

    status: int
    text: str


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[str, int], Awaitable[Streams]]


class Uploads:
    """Connections to one hub; each carries one request at a time and is reused."""

    def __init__(self, hub: str, *, connect: Connect | None = None) -> None:
        parts = urlsplit(hub)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadInput(f"{hub!r} is not the address of a hub; write for example http://127.0.0.1:7371")
        self._host = parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._path = parts.path.rstrip("/")
        self._host_header = parts.netloc.rpartition("@")[2]
        self._connect = connect or (_open_tls if parts.scheme == "https" else asyncio.open_connection)
        self._idle: list[_Connection] = []

    async def put(self, path: str, *, headers: Mapping[str, str], pieces: AsyncIterable[bytes] | bytes) -> Answer:
        """Sends one request; raises `ConnectionError` or `TimeoutError` when the hub does not answer."""
        connection = self._idle_connection() or await self._open()
        try:
            async with asyncio.timeout(ANSWER_S):
                request = h11.Request(
                    method="PUT", target=self._path + path, headers=[("Host", self._host_header), *headers.items()]
                )
                answer = await connection.exchange(request, pieces)
        except BaseException:
            connection.close()
            raise
        if connection.reusable:
            self._idle.append(connection)
        else:
            connection.close()
        return answer

    def close(self) -> None:
        """Closes all idle connections."""
        while self._idle:
            self._idle.pop().close()

    def _idle_connection(self) -> "_Connection | None":
        """An idle connection that the hub has not closed."""
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed_by_hub:
                return connection
            connection.close()
        return None

    async def _open(self) -> "_Connection":
        try:
            async with asyncio.timeout(CONNECT_S):
                return _Connection(*await self._connect(self._host, self._port))
        except OSError as error:
            raise ConnectionError(str(error)) from error


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._state = h11.Connection(h11.CLIENT)
        self.reusable = False

    @property
    def closed_by_hub(self) -> bool:
        return self._reader.at_eof()

    async def exchange(self, request: h11.Request, pieces: AsyncIterable[bytes] | bytes) -> Answer:
        self.reusable = False
        try:
            try:
                await self._send(request, pieces)
            except (ConnectionError, BrokenPipeError):
                # A hub that refuses a body does not read it to the end; its answer may have arrived all the same.
                return await self._receive()
            answer = await self._receive()
        except h11.RemoteProtocolError as error:
            raise ConnectionError(f"the answer was cut off: {error}") from error
        if self._state.our_state is h11.DONE and self._state.their_state is h11.DONE:
            self._state.start_next_cycle()
            self.reusable = True
        return answer

    def close(self) -> None:
        self._writer.close()

    async def _send(self, request: h11.Request, pieces: AsyncIterable[bytes] | bytes) -> None:
        self._write(request)
        if isinstance(pieces, bytes):
            self._write(h11.Data(data=pieces))
        else:
            async for piece in pieces:
                self._write(h11.Data(data=piece))
                await self._writer.drain()
        self._write(h11.EndOfMessage())
        await self._writer.drain()

    def _write(self, event: h11.Event) -> None:
        data = self._state.send(event)
        if data:
            self._writer.write(data)

    async def _receive(self) -> Answer:
        status, text = 0, bytearray()
        while True:
            event = self._state.next_event()
            if event is h11.NEED_DATA:
                self._state.receive_data(await self._reader.read(READ_BYTES))
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                text += event.data
            elif isinstance(event, h11.EndOfMessage):
                return Answer(status, text.decode(errors="replace"))
            elif isinstance(event, h11.ConnectionClosed):
                raise ConnectionError("the hub closed the connection")


async def _open_tls(host: str, port: int) -> Streams:
    return await asyncio.open_connection(host, port, ssl=ssl.create_default_context())


CONNECT_S = 5.0
ANSWER_S = 600.0
READ_BYTES = 65_536
