"""A hub that is asked over HTTP: `Hub` waits for each answer, `AsyncHub` lets others run."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from downburst_client.call import Call
from downburst_client.errors import BadAddress, BrokenOff, Problem, Unreachable

T = TypeVar("T")


class Hub:
    """One hub. Use it in a `with`, or close it."""

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._address = address.rstrip("/")
        self._http = httpx.Client(timeout=TIMEOUT, headers=_headers(token, headers), transport=transport)

    def send(self, call: Call[T]) -> T:
        """The answer to a call; a refusal is raised as `Problem`."""
        return call.read(self.request(call.method, call.path, **call.request()).content)

    def every(self, call: Call[list[T]]) -> Iterator[T]:
        """All items of a list, page by page."""
        answer = self.request(call.method, call.path, **call.request())
        yield from call.read(answer.content)
        while (following := answer.links.get("next")) is not None:
            answer = self.request("GET", following["url"])
            yield from call.read(answer.content)

    def request(self, method: str, path: str, **request: Any) -> httpx.Response:
        """The plain answer to any request; errors are raised as those of calls are."""
        with _explained(self._address):
            answer = self._http.request(method, self._address + path, **request)
        return _good(answer)

    def close(self) -> None:
        """Ends the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncHub:
    """One hub. Use it in an `async with`, or close it."""

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._address = address.rstrip("/")
        self._http = httpx.AsyncClient(timeout=TIMEOUT, headers=_headers(token, headers), transport=transport)

    async def send(self, call: Call[T]) -> T:
        """The answer to a call; a refusal is raised as `Problem`."""
        return call.read((await self.request(call.method, call.path, **call.request())).content)

    async def every(self, call: Call[list[T]]) -> AsyncIterator[T]:
        """All items of a list, page by page."""
        answer = await self.request(call.method, call.path, **call.request())
        for item in call.read(answer.content):
            yield item
        while (following := answer.links.get("next")) is not None:
            answer = await self.request("GET", following["url"])
            for item in call.read(answer.content):
                yield item

    async def request(self, method: str, path: str, **request: Any) -> httpx.Response:
        """The plain answer to any request; errors are raised as those of calls are."""
        with _explained(self._address):
            answer = await self._http.request(method, self._address + path, **request)
        return _good(answer)

    async def close(self) -> None:
        """Ends the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _headers(token: str | None, headers: Mapping[str, str] | None) -> dict[str, str]:
    return {**({"authorization": f"Bearer {token}"} if token else {}), **(headers or {})}


@contextmanager
def _explained(address: str) -> Iterator[None]:
    try:
        yield
    except (httpx.UnsupportedProtocol, httpx.InvalidURL):
        raise BadAddress(
            f"{address!r} is not the address of a hub; write for example http://127.0.0.1:7371"
        ) from None
    except httpx.ConnectError:
        raise Unreachable(f"no hub answers at {address}") from None
    except httpx.HTTPError as error:
        reason = str(error) or type(error).__name__
        raise BrokenOff(f"the hub at {address} closed the connection: {reason}") from error


def _good(answer: httpx.Response) -> httpx.Response:
    if not answer.is_success:
        raise Problem(answer)
    return answer


TIMEOUT = httpx.Timeout(700.0, connect=5.0)
"""Storing gigabytes takes a hub minutes; connecting takes none."""
