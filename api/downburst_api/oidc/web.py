"""Requests to the provider, bounded in time and size; its answers are JSON objects."""

import asyncio
import json
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from downburst_api.oidc.refusals import Refusal, SignInRefused

Document = dict[str, Any]


class Web:
    """Asks the provider's server. Certificates are verified, and redirects are not followed."""

    def __init__(self, *, ca_file: Path | None = None, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._authorities = ssl.create_default_context()
        if ca_file is not None:
            self._authorities.load_verify_locations(ca_file)
        self._transport = transport

    async def get(self, url: str) -> Document:
        """The document at an address; raises `SignInRefused` for any answer but one of status 200."""
        status, document = await self._ask(httpx.Request("GET", url, headers=_HEADERS), auth=None)
        if status != httpx.codes.OK:
            raise _away(url, f"answers with status {status}")
        return document

    async def post(self, url: str, form: Mapping[str, str], auth: httpx.Auth | None) -> tuple[int, Document]:
        """Status and document of the answer to a form."""
        return await self._ask(httpx.Request("POST", url, data=dict(form), headers=_HEADERS), auth=auth)

    async def _ask(self, request: httpx.Request, auth: httpx.Auth | None) -> tuple[int, Document]:
        url = str(request.url)
        try:
            # A connection for each request: sign-ins are rare, and a kept one may be dead.
            async with asyncio.timeout(ANSWER_S), self._client() as client:
                answer = await client.send(request, stream=True, auth=auth)
                try:
                    body = await _body(answer)
                finally:
                    await answer.aclose()
        except TimeoutError:
            raise _away(url, f"did not answer within {ANSWER_S:.0f} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _away(url, f"can't be reached: {str(error)[:200] or type(error).__name__}") from None
        return answer.status_code, _document(body, url)

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            verify=self._authorities,
            transport=self._transport,
            trust_env=False,
            follow_redirects=False,
            timeout=ANSWER_S,
        )


async def _body(answer: httpx.Response) -> bytes:
    """The bytes as sent: no compression was offered, so that a small answer can't become a large one."""
    body = bytearray()
    async for piece in answer.aiter_raw():
        body += piece
        if len(body) > MOST_BYTES:
            raise _away(str(answer.request.url), f"answers with more than {MOST_BYTES} bytes")
    return bytes(body)


def _document(body: bytes, url: str) -> Document:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise _away(url, "answers with something other than a JSON object")
    return document


def _away(url: str, fault: str) -> SignInRefused:
    return SignInRefused(Refusal.UNREACHABLE, f"{httpx.URL(url).host} {fault}")


ANSWER_S = 8.0
"""Longer than a login server needs under load, shorter than a browser's or proxy's patience."""
MOST_BYTES = 512 * 1024
"""A hundred keys with certificates are below 400 KiB."""
_HEADERS = {"User-Agent": "downburst", "Accept": "application/json", "Accept-Encoding": "identity"}
