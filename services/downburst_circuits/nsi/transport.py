"""Requests over HTTPS with our certificate: one at a time, in bounded time, with bounded answers."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import httpx

from downburst.domain.ordering.providers import Certificate, Provider
from downburst.foundation.errors import BadInput
from downburst_circuits.nsi.provider import check_provider
from downburst_circuits.nsi.refusals import Kind, Problem, Unsent
from downburst_circuits.nsi.soap.hardened import MESSAGE_BYTES_MAX


@dataclass(frozen=True, slots=True)
class Posted:
    """The answer of HTTP."""

    status: int
    body: bytes


class Exchange(Protocol):
    """The way to a provider."""

    async def post(self, action: str, body: bytes) -> Posted | Problem:
        """Sends a message. A problem means that its outcome is unknown, unless it was unsent."""


class HttpExchange:
    """The way by HTTP."""

    def __init__(self, provider: Provider, client: httpx.AsyncClient, tls: ssl.SSLContext | None) -> None:
        self._provider = provider
        self._client = client
        self._tls = tls

    async def post(self, action: str, body: bytes) -> Posted | Problem:
        """Sends a message; the problem names the provider and the remedy."""
        headers = {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": action, "Accept-Encoding": "identity"}
        try:
            async with (
                asyncio.timeout(TOTAL_S),
                self._client.stream("POST", self._provider.url, content=body, headers=headers) as answer,
            ):
                return await self._bounded(answer)
        except TimeoutError:
            return self._unreachable(f"did not answer within {TOTAL_S:.0f} s; check the way there")
        except (httpx.HTTPError, ssl.SSLError, OSError) as error:
            broke = isinstance(error, httpx.ReadError | httpx.WriteError | httpx.RemoteProtocolError)
            found = self._problem(error, await self._alert() if broke else "")
            return Unsent(found.kind, found.sentence) if isinstance(error, _UNCONNECTED) else found

    async def _bounded(self, answer: httpx.Response) -> Posted | Problem:
        """As sent: a compressed answer could be of any size."""
        body = bytearray()
        async for piece in answer.aiter_raw(65_536):
            body += piece
            if len(body) > MESSAGE_BYTES_MAX:
                sentence = f"provider {self._provider.name} answered with more than {MESSAGE_BYTES_MAX} bytes"
                return Problem(Kind.UNKNOWN, f"{sentence}; ask its operator")
        return Posted(answer.status_code, bytes(body))

    async def _alert(self) -> str:
        """The alert of a handshake without a request.

        With TLS 1.3 a server refuses the client's certificate after the handshake, and resets a connection on which a
        request is under way: the alert is lost.
        """
        url = httpx.URL(self._provider.url)
        if self._tls is None:
            return ""
        try:
            async with asyncio.timeout(ALERT_S):
                reader, writer = await asyncio.open_connection(url.host, url.port or 443, ssl=self._tls)
                try:
                    await reader.read(1)
                finally:
                    # Without the farewell of TLS: its answer would come after this look.
                    writer.transport.abort()
        except (TimeoutError, ssl.SSLError, OSError) as error:
            return str(error)
        return ""

    def _problem(self, error: Exception, alert: str) -> Problem:
        text = " ".join([alert, *(str(one) for one in _chain(error))])
        name = self._provider.name
        if "CERTIFICATE_VERIFY_FAILED" in text:
            remedy = "check its certificate, and the file with its authorities"
            return Problem(Kind.CERTIFICATE, f"the certificate of provider {name} can't be verified: {remedy}")
        if any(word in text for word in _OUR_CERTIFICATE):
            remedy = "check its expiry, and ask the provider's operator to accept it"
            return Problem(Kind.CERTIFICATE, f"provider {name} does not accept the hub's certificate: {remedy}")
        reason = str(error) or type(error).__name__
        return self._unreachable(f"can't be reached ({reason[:200]}); check its URL and the way there")

    def _unreachable(self, words: str) -> Problem:
        return Problem(Kind.UNREACHABLE, f"provider {self._provider.name} {words}")


@asynccontextmanager
async def http_exchange(provider: Provider) -> AsyncIterator[HttpExchange]:
    """The way to a provider by its record; raises one sentence if the record or its files can't be used."""
    check_provider(provider)
    tls = None if provider.certificate is None else _tls(provider.name, provider.certificate)
    timeout = httpx.Timeout(READ_S, connect=CONNECT_S)
    limits = httpx.Limits(max_connections=1)
    async with httpx.AsyncClient(
        verify=tls or True, timeout=timeout, limits=limits, follow_redirects=False, trust_env=False
    ) as client:
        yield HttpExchange(provider, client, tls)


def _tls(name: str, files: Certificate) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=str(files.authorities))
        context.load_cert_chain(str(files.certificate), str(files.key), password=_no_password)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise BadInput(
            f"provider {name}: the files {files.certificate}, {files.key} and {files.authorities} can't be used for "
            f"TLS: {error}; give a certificate, its key without password, and the authorities, all in PEM"
        ) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _no_password() -> str:
    """Without it, a key with a password would ask for it on the terminal."""
    return ""


def _chain(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


TOTAL_S = 45.0
"""Shorter than `reservation.SETTLE_US`. The first request after the start of PolyNSI takes five seconds."""
READ_S, CONNECT_S, ALERT_S = 40.0, 10.0, 2.0
_UNCONNECTED = (httpx.ConnectError, httpx.ConnectTimeout)
"""TCP or the handshake of TLS failed, before any byte of the message."""
_OUR_CERTIFICATE = ("ALERT_CERTIFICATE", "CERTIFICATE_REQUIRED", "ALERT_UNKNOWN_CA", "ALERT_BAD_CERTIFICATE",
                    "ALERT_HANDSHAKE_FAILURE", "ALERT_ACCESS_DENIED")  # fmt: skip
