"""Connections to exactly the addresses that were checked: a name is resolved once, not again for the connection."""

import asyncio
import socket
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from contextlib import aclosing

import httpcore
import httpx

from downburst.foundation.errors import Failure
from downburst.network.addresses import is_public

Resolve = Callable[[str, int], Iterable[str]]
"""The IP addresses of a host's name; blocks, raises OSError or UnicodeError."""


class NotPublic(Failure):
    """A name resolves to an address that is not on the public network."""


def addresses_of(host: str, port: int) -> list[str]:
    """The addresses of a name from the system's resolver, without duplicates."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


class PublicTransport(httpx.AsyncBaseTransport):
    """Sends to public addresses only, without proxies; raises `NotPublic`. TLS and the header Host keep the name."""

    def __init__(self, resolve: Resolve = addresses_of, allowed: Callable[[str], bool] = is_public) -> None:
        context = httpx.create_ssl_context()
        self._pool = httpcore.AsyncConnectionPool(ssl_context=context, network_backend=_Pinned(resolve, allowed))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Sends one request; the answer's body is read on demand."""
        url = request.url
        asked = httpcore.Request(
            request.method,
            httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        try:
            answer = await self._pool.handle_async_request(asked)
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as error:
            raise httpx.TransportError(str(error) or type(error).__name__) from None
        body = _Body(answer.stream) if isinstance(answer.stream, AsyncIterable) else None
        return httpx.Response(answer.status, headers=answer.headers, stream=body, extensions=answer.extensions)

    async def aclose(self) -> None:
        """Ends the connections."""
        await self._pool.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, stream: AsyncIterable[bytes]) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            yield part

    async def aclose(self) -> None:
        async with aclosing(self._stream):  # type: ignore[type-var]
            return


class _Pinned(httpcore.AsyncNetworkBackend):
    """Resolves, checks every address, and connects to the first that answers."""

    def __init__(self, resolve: Resolve, allowed: Callable[[str], bool]) -> None:
        self._resolve = resolve
        self._allowed = allowed
        self._plain = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failed: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in await self._checked(host, port, timeout):
            try:
                return await self._plain.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed

    async def _checked(self, host: str, port: int, timeout_s: float | None) -> list[str]:
        try:
            async with asyncio.timeout(timeout_s):
                found = list(await asyncio.to_thread(self._resolve, host, port))
        except TimeoutError:
            raise httpcore.ConnectTimeout(f"the name {host} was not resolved in time") from None
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(str(error)) from None
        if not all(map(self._allowed, found)):
            raise NotPublic(f"{host} resolves to an address that is not public")
        return found[:MOST_TRIED]


MOST_TRIED = 3
"""The number of addresses tried for a name; each may take the whole time limit of a connection."""
