"""A hub whose users may sign in at a provider, and browsers."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from downburst.domain.sites import Site
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst.settings.access import AccessSettings
from downburst_api.app import create_app
from downburst_api.oidc.provider import Provider
from factories import AUTHORIZATION, runtime
from unit.sign_in.provider_stand_in import ProviderStandIn, oidc_settings


@dataclass
class SigningIn:
    """The hub, its provider, and the clients that were opened."""

    provider: ProviderStandIn
    app: Any
    opened: list[httpx.AsyncClient]

    def browser(self, peer: str = "192.0.2.1", **given: Any) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False, client=(peer, 4711))
        self.opened.append(httpx.AsyncClient(transport=transport, base_url="http://hub:7371", **given))
        return self.opened[-1]

    def local(self) -> httpx.AsyncClient:
        return self.browser(headers=AUTHORIZATION)

    async def begun(self, browser: httpx.AsyncClient, at: str = "") -> dict[str, str]:
        """Sends a browser to the provider; the parameters that it brings there."""
        answer = await browser.get("/v1/session/oidc", params={"at": at})
        assert answer.status_code == 303, answer.text
        return self.provider.redirected(answer.headers["location"])

    async def ended(self, browser: httpx.AsyncClient, asked: dict[str, str], **other: str) -> str:
        """Brings a browser back with the provider's answer; the place to which the hub leads it."""
        given = {"state": asked["state"], "code": f"code of {asked['code_challenge']}"} | other
        path = urlsplit(asked["redirect_uri"]).path
        answer = await browser.get(path, params={name: value for name, value in given.items() if value})
        assert answer.status_code == 303, answer.text
        return str(httpx.URL("http://hub:7371/v1/session/oidc/callback").join(answer.headers["location"]))

    async def signed_in(self, browser: httpx.AsyncClient, **claims: Any) -> str:
        self.provider.claims.update(claims)
        return await self.ended(browser, await self.begun(browser))

    async def who(self, browser: httpx.AsyncClient) -> tuple[str | None, str | None, str | None]:
        found = (await browser.get("/v1/session")).json()
        return found["user"], found["role"], found["site"]


@pytest.fixture
async def signing_in(tmp_path: Path, ledger: Ledger, clock: FakeClock) -> AsyncIterator[SigningIn]:
    with ledger.transaction() as tx:
        for name in ("unl.edu", "other.edu"):
            tx.sites.add(Site(name))
    secret = tmp_path / "client-secret"
    secret.write_text("s3cret of/the hub\n")
    settings = oidc_settings(client_secret_file=secret)
    stand_in = ProviderStandIn(clock)
    made, _ = runtime(tmp_path / "hub", ledger, clock, access=AccessSettings(oidc=settings))
    provider = Provider(settings, clock, transport=stand_in.transport())
    scene = SigningIn(stand_in, create_app(made, provider=provider), [])
    yield scene
    for one in scene.opened:
        await one.aclose()


def refused(code: str) -> str:
    return f"http://hub:7371/#sign-in-refused={code}"
