"""The agent's two sides of HTTPS: requests of allowed certificates come in, replies go out with the hub's own."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable

import httpx

from downburst.foundation.errors import Refused
from downburst.settings.circuits import NsiProviderSettings
from downburst.supervision import attempt, start
from downburst_circuits.nsi.soap.names import ACTION
from downburst_circuits.provider_agent.agent import ProviderAgent
from downburst_circuits.providers.listener import Listener, Report


class RequestListener(Listener):
    """Takes requests of other networks."""

    what, setting = "request", "circuits.provider"

    def __init__(self, settings: NsiProviderSettings, agent: ProviderAgent, report: Report) -> None:
        super().__init__(settings, report)
        self._subjects = frozenset(settings.subjects)
        self._agent = agent

    async def answer(self, message: bytes, subject: str) -> tuple[str, bytes]:
        """Answers a request; only certificates with a listed subject may ask."""
        if subject not in self._subjects:
            raise Refused(
                f"the certificate's subject {subject[:200]!r} may not reserve here; the setting "
                "circuits.provider.subjects lists those that may"
            )
        found = await self._agent.answer(message, subject)
        return ("500 Internal Server Error" if found.is_fault else "200 OK"), found.body

    def begin(self, serving: Callable[[], Awaitable[None]], client: str) -> asyncio.Task[None]:
        """Serves one client; an unknown error is counted."""
        return start("circuits.nsi-request", attempt("circuits.nsi-request", serving, what=client))


class HttpsPost:
    """Posts replies to requesters whose server has a certificate of the authorities; files are read each time."""

    def __init__(self, settings: NsiProviderSettings) -> None:
        self._settings = settings

    async def __call__(self, address: str, name: str, body: bytes) -> str:
        """Posts a message; returns the reason if it was not taken."""
        headers = {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": f'"{ACTION}{name}"'}
        try:
            async with (
                asyncio.timeout(TOTAL_S),
                httpx.AsyncClient(
                    verify=_tls(self._settings), timeout=TOTAL_S, follow_redirects=False, trust_env=False
                ) as client,
                # The body of the answer says nothing that its status does not.
                client.stream("POST", address, content=body, headers=headers) as answer,
            ):
                return "" if answer.status_code // 100 == 2 else f"HTTP {answer.status_code}"
        except TimeoutError:
            return f"no answer within {TOTAL_S:.0f} s"
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, OSError, ValueError) as error:
            return str(error)[:200] or type(error).__name__


def _tls(settings: NsiProviderSettings) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(settings.authorities))
    context.load_cert_chain(settings.certificate, settings.key, password=lambda: "")
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


TOTAL_S = 20.0
