"""Every kind of caller requests every route, and the outcomes match the table in the documentation."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from downburst.domain.access import SCOPES_OF, AccessToken, Role, hashed
from downburst.domain.feeds import Feed
from downburst.domain.sites import Site
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst.settings.access import AccessSettings
from downburst_api.app import create_app
from downburst_api.border.route_rules import RULES
from downburst_api.overview import stream
from factories import runtime
from unit.api.access_table import CALLERS, MAY, NOBODY, NOT, OWN, PUBLISHED, markdown, rows

ROOT = Path(__file__).resolve().parents[3]
SITE, OTHER = "unl.edu", "other.edu"


@dataclass
class Callers:
    client: httpx.AsyncClient
    published: httpx.AsyncClient

    def of(self, caller: str) -> httpx.AsyncClient:
        return self.published if caller == PUBLISHED else self.client

    async def is_let_through(self, caller: str, method: str, path: str, site: str = SITE) -> bool:
        """True if the guard admits the request, whatever the route then answers to meaningless arguments."""
        filled = path.replace("{site}", site).replace("{feed}", "NGRID").replace("{user}", "nemo")
        for number in ("{number}", "{subscription}", "{resend}", "{circuit}"):
            filled = filled.replace(number, "9")
        filled = filled.replace("{port}", "p").replace("{upstream}", "u").replace("{product_id}", "x")
        headers = {} if caller in (NOBODY, PUBLISHED) else {"Authorization": f"Bearer dba_{caller}"}
        answer = await self.of(caller).request(method, filled, headers=headers)
        body = answer.json() if answer.headers.get("content-type") == "application/problem+json" else {}
        return not (answer.status_code == 401 or "needs" in body)


@pytest.fixture
async def callers(
    tmp_path: Path, ledger: Ledger, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callers]:
    with ledger.transaction() as tx:
        tx.feeds.add(Feed("NGRID"))
        for name in (SITE, OTHER):
            tx.sites.add(Site(name))
        for role in Role:
            site = SITE if role is Role.SITE else None
            tx.access.tokens.add(_token(role, site, clock))
    made, _ = runtime(tmp_path / "hub", ledger, clock)
    open_made, _ = runtime(tmp_path / "open", ledger, clock, access=AccessSettings(without_login="latency"))
    monkeypatch.setattr(stream, "overviews", _no_overviews)
    transports = [httpx.ASGITransport(create_app(one), raise_app_exceptions=False) for one in (made, open_made)]
    async with (
        httpx.AsyncClient(transport=transports[0], base_url="http://hub") as client,
        httpx.AsyncClient(transport=transports[1], base_url="http://hub") as published,
    ):
        yield Callers(client, published)


async def _no_overviews(*_: object) -> AsyncIterator[None]:
    """A live stream that ends immediately; the real one never ends, so no test could wait for it."""
    return
    yield


def _token(role: Role, site: str | None, clock: FakeClock) -> AccessToken:
    now = clock.now()
    scopes = tuple(SCOPES_OF[role])
    secret = hashed(f"dba_{role}")
    return AccessToken(0, role, secret, role, scopes, site, now, "test", now + timedelta(days=1))


@pytest.mark.parametrize("caller", CALLERS)
async def test_every_route_lets_through_whom_the_table_says(callers: Callers, caller: str) -> None:
    for method, path, _, verdicts in rows():
        wanted = verdicts[caller] in (MAY, OWN)
        assert await callers.is_let_through(caller, method, path) is wanted, f"{caller}: {method} {path}"


async def test_a_site_gets_at_nothing_of_another_site(callers: Callers) -> None:
    tried = 0
    for method, path, _, verdicts in rows():
        if verdicts["site"] == OWN and "{site}" in path:
            tried += 1
            assert not await callers.is_let_through("site", method, path, OTHER), f"{method} {path}"
        elif verdicts["site"] == OWN and path != "/v1/feeds":
            tried += 1
            assert await callers.is_let_through("site", method, f"{path}?site={SITE}"), f"{method} {path}"
            assert not await callers.is_let_through("site", method, f"{path}?site={OTHER}"), f"{method} {path}"
            assert not await callers.is_let_through("site", method, f"{path}?site={SITE}&site={OTHER}")
    assert tried >= 10


def test_the_documentation_has_the_table() -> None:
    written = (ROOT / "docs" / "access.md").read_text()
    assert markdown() in written, "make it anew: cd tests && ../.venv/bin/python -m unit.api.write_access_table"


def test_who_may_change_anything_is_signed_in() -> None:
    for (method, path), rule in RULES.items():
        if method != "GET" and rule.scope is None:
            assert path.startswith(("/v1/session", "/v1/access-requests", "/v1/measurements/archive/")), path


async def test_what_is_no_route_is_refused_before_anything_else(callers: Callers) -> None:
    for method, path, status in (
        ("GET", "/v1/nothing", 404),
        ("POST", "/v1/overview", 405),
        ("OPTIONS", "/v1/feeds", 405),
        ("GET", "/v1", 404),
        ("POST", "/anything", 405),
        ("GET", "/v1/../v1/overview", 401),
        ("GET", "//v1/overview", 404),
    ):
        answer = await callers.client.request(method, f"http://hub{path}")
        assert answer.status_code == status, (method, path, answer.text)


def test_verdicts_are_told_apart() -> None:
    found = {verdict for *_, verdicts in rows() for verdict in verdicts.values()}
    assert found == {MAY, OWN, NOT}
