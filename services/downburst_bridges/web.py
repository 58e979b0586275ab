"""Questions to services of others by HTTP and HTTPS, within bounds."""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path

import httpx

from downburst.foundation.errors import Failure


class Web:
    """Asks servers. Certificates are verified, and redirects are not followed.

    Names are resolved before each request: only public addresses are asked unless private ones are allowed.
    """

    def __init__(self, *, allows_private: bool, ca_file: Path | None = None) -> None:
        self._allows_private = allows_private
        authorities = ssl.create_default_context()
        if ca_file is not None:
            authorities.load_verify_locations(ca_file)
        self._client = httpx.AsyncClient(
            verify=authorities,
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(SILENCE_S, connect=CONNECT_S),
            headers={"User-Agent": "downburst", "Accept-Encoding": "identity", "Accept": "application/json"},
        )

    async def get(self, url: str, parameters: Mapping[str, str]) -> bytes:
        """The body of an answer with status 200; raises `Failure` with one sentence about any other outcome."""
        asked = httpx.URL(url, params=dict(parameters))
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self._get(asked)
        except TimeoutError:
            raise Failure(f"{asked.host} took longer than {ANSWER_S:.0f} s for an answer") from None
        except httpx.HTTPError as error:
            raise Failure(f"{asked.host} can't be asked: {str(error) or type(error).__name__}") from None

    async def close(self) -> None:
        """Ends all connections."""
        await self._client.aclose()

    async def _get(self, url: httpx.URL) -> bytes:
        address = await self._address_of(url)
        headers = {"Host": url.netloc.decode()}
        request = self._client.build_request(
            "GET", url.copy_with(host=address), headers=headers, extensions={"sni_hostname": url.host}
        )
        answer = await self._client.send(request, stream=True)
        try:
            if answer.is_redirect:
                there = answer.headers["location"][:200]
                raise Failure(f"{url.host} redirects to another address: {there}; use that")
            if answer.status_code != httpx.codes.OK:
                raise Failure(f"{url.host} answers with status {answer.status_code}")
            return await _body(answer, url.host)
        finally:
            await answer.aclose()

    async def _address_of(self, url: httpx.URL) -> str:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise Failure(f"{url.host} has no address: {error.strerror or error}") from None
        allowed = (str(one[4][0]) for one in found if may_ask(str(one[4][0]), allows_private=self._allows_private))
        address = next(allowed, None)
        if address is None:
            raise Failure(f"{url.host} is in a private network, which this source may not ask")
        return address


async def _body(answer: httpx.Response, host: str) -> bytes:
    body = bytearray()
    async for piece in answer.aiter_raw():
        body += piece
        if len(body) > MOST_BYTES:
            raise Failure(f"{host} answers with more than {MOST_BYTES // 1_000_000} MB")
    return bytes(body)


def may_ask(text: str, *, allows_private: bool) -> bool:
    """True for an address of the public internet, or any but a group's if private ones are allowed.

    The rules are those of the node's downloads (crate `fetch`, `may_connect`).
    """
    address: ipaddress.IPv4Address | ipaddress.IPv6Address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if address.is_multicast or address.is_unspecified or address == BROADCAST:
        return False
    if allows_private:
        return True
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global
    has_ipv4 = address.sixtofour is not None or address.teredo is not None
    return address in GLOBAL_UNICAST and address.is_global and not has_ipv4


BROADCAST = ipaddress.IPv4Address("255.255.255.255")
GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
CONNECT_S = 10.0
SILENCE_S = 60.0
ANSWER_S = 120.0
MOST_BYTES = 32_000_000
"""500 notifications of 8,192 bytes, indented for people."""
