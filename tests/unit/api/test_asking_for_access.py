"""A site requests access, is approved or refused, signs in, and changes its own settings."""

from typing import Any

import httpx
import pytest

from downburst.foundation.clock import FakeClock
from downburst_api.app import create_app
from unit.api.conftest import Asked

WANTED = {"site": "unl.edu", "organisation": "University", "contact": "ops@unl.edu", "feeds": ["NGRID"]}
PASSWORD = "four words are long"


@pytest.fixture(autouse=True)
def _quick_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("downburst_api.sessions.routes.hash_password", lambda password: f"hash of {password}")


def stranger(hub: Asked) -> httpx.AsyncClient:
    """A browser without a login."""
    transport = httpx.ASGITransport(create_app(hub.runtime), raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://hub", headers={"Sec-Fetch-Site": "same-origin"})


async def ask(client: httpx.AsyncClient, method: str, path: str, expect: int, **body: Any) -> Any:
    answer = await client.request(method, path, json=body)
    assert answer.status_code == expect, answer.text
    return answer.json() if answer.content else None


async def test_a_site_asks_is_approved_and_comes_in(hub: Asked) -> None:
    await hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    async with stranger(hub) as site:
        asked = await ask(site, "POST", "/v1/access-requests", 201, **WANTED)
        state = await ask(site, "POST", "/v1/access-requests/state", 200, secret=asked["secret"])
        assert (state["state"], state["fragment"]) == ("waiting", None)
        (waiting,) = await hub.ask("GET", "/v1/access-requests")
        assert (waiting["site"], waiting["contact"], "secret_sha256" in waiting) == ("unl.edu", "ops@unl.edu", False)
        await hub.ask("POST", f"/v1/access-requests/{asked['number']}/approval", 200)
        state = await ask(site, "POST", "/v1/access-requests/state", 200, secret=asked["secret"])
        link = state["fragment"].removeprefix("#invitation=")
        who = await ask(site, "POST", "/v1/session/link", 201, link=link, password=PASSWORD)
        assert (who["user"], who["role"], who["site"]) == ("admin@unl.edu", "site", "unl.edu")
        again = await ask(site, "POST", "/v1/access-requests/state", 200, secret=asked["secret"])
        assert again["fragment"] is None, "a password was chosen; whoever has the old page can't choose another one"
        kept = (await site.get("/v1/sites/unl.edu")).json()
        assert (kept["allow"], kept["organisation"]) == (["NGRID"], "University")
        assert "dbt1." in (await ask(site, "POST", "/v1/sites/unl.edu/tokens", 201))["token"]
    await hub.problem("POST", f"/v1/access-requests/{asked['number']}/approval", 409, "already-there")


async def test_a_refusal_says_why(hub: Asked) -> None:
    asked = await hub.ask("POST", "/v1/access-requests", 201, json=WANTED)
    path = f"/v1/access-requests/{asked['number']}"
    await hub.ask("POST", f"{path}/refusal", 200, json={"answer": "ask your national hub"})
    state = await hub.ask("POST", "/v1/access-requests/state", json={"secret": asked["secret"]})
    assert (state["state"], state["answer"], state["fragment"]) == ("refused", "ask your national hub", None)
    assert await hub.ask("GET", "/v1/access-requests") == []
    assert len(await hub.ask("GET", "/v1/access-requests?decided=true")) == 1
    await hub.problem("POST", "/v1/access-requests/state", 403, "refused", json={"secret": "dbq_guessed"})


async def test_nobody_takes_over_a_site_by_asking_for_its_name(hub: Asked) -> None:
    await hub.ask("POST", "/v1/sites", 201, json={"site": "unl.edu"})
    asked = await hub.ask("POST", "/v1/access-requests", 201, json=WANTED | {"feeds": []})
    problem = await hub.problem("POST", f"/v1/access-requests/{asked['number']}/approval", 409, "already-there")
    assert "site 'unl.edu' already exists" in problem["detail"]
    assert await hub.ask("GET", "/v1/users") == []


async def test_what_is_allowed_exists_or_the_request_waits_on(hub: Asked) -> None:
    asked = await hub.ask("POST", "/v1/access-requests", 201, json=WANTED)
    await hub.problem("POST", f"/v1/access-requests/{asked['number']}/approval", 404, "unknown-feed")
    approved = {"allow": ["*"]}
    await hub.ask("POST", f"/v1/access-requests/{asked['number']}/approval", 200, json=approved)
    assert (await hub.ask("GET", "/v1/sites/unl.edu"))["allow"] == ["*"]


async def test_an_address_asks_a_few_times_only(hub: Asked) -> None:
    async with stranger(hub) as site:
        for _ in range(6):
            await ask(site, "POST", "/v1/access-requests", 201, **WANTED)
        await ask(site, "POST", "/v1/access-requests", 429, **WANTED)


async def test_a_site_changes_its_endpoint_and_not_its_rights(hub: Asked) -> None:
    await hub.ask("POST", "/v1/sites", 201, json={"site": "unl.edu", "allow": ["NGRID"]})
    made = await hub.ask("POST", "/v1/access-tokens", 201, json={"name": "x", "role": "site", "site": "unl.edu"})
    async with stranger(hub) as site:
        site.headers["Authorization"] = f"Bearer {made['token']}"
        kept = await ask(site, "PUT", "/v1/sites/unl.edu/endpoint", 200, contact="new@unl.edu", access_rate_bps=1e9)
        assert (kept["contact"], kept["access_rate_bps"], kept["allow"]) == ("new@unl.edu", 1e9, ["NGRID"])
        for right in ({"allow": ["*"]}, {"active": False}, {"multicast": False}, {"data_connections": 16}):
            await ask(site, "PUT", "/v1/sites/unl.edu/endpoint", 400, **right)
        await ask(site, "PATCH", "/v1/sites/unl.edu", 403, allow=["*"])
        window = await ask(site, "POST", "/v1/sites/unl.edu/silences", 201, minutes=30, reason="new disk")
        assert (window["site"], window["kind"]) == ("unl.edu", None)
        await ask(site, "POST", "/v1/sites/other.edu/silences", 403, minutes=30)
        await ask(site, "POST", "/v1/silences", 403, minutes=30)


async def test_finding_07_an_old_request_invites_no_user_of_the_same_name_made_anew(
    hub: Asked, clock: FakeClock
) -> None:
    async with stranger(hub) as site:
        for by_site in (True, False):
            await hub.client.delete("/v1/sites/unl.edu")
            asked = await ask(site, "POST", "/v1/access-requests", 201, **WANTED | {"feeds": []})
            await hub.ask("POST", f"/v1/access-requests/{asked['number']}/approval", 200)
            state = await ask(site, "POST", "/v1/access-requests/state", 200, secret=asked["secret"])
            assert state["fragment"] is not None, "the user that the approval made is invited"
            if by_site:
                await hub.ask("DELETE", "/v1/sites/unl.edu", 204)
                await hub.ask("POST", "/v1/sites", 201, json={"site": "unl.edu"})
            else:
                await hub.ask("DELETE", "/v1/users/admin@unl.edu", 204)
            # The new user is created in the same instant, so the time does not distinguish it from the old one.
            wanted = {"user": "admin@unl.edu", "role": "site", "site": "unl.edu"}
            await hub.ask("POST", "/v1/users", 201, json=wanted)
            state = await ask(site, "POST", "/v1/access-requests/state", 200, secret=asked["secret"])
            assert (state["state"], state["user"], state["fragment"]) == ("approved", None, None)


async def test_a_request_invites_nobody_who_became_more_than_its_site(hub: Asked) -> None:
    asked = await hub.ask("POST", "/v1/access-requests", 201, json=WANTED | {"feeds": []})
    await hub.ask("POST", f"/v1/access-requests/{asked['number']}/approval", 200)
    await hub.ask("PATCH", "/v1/users/admin@unl.edu", 200, json={"role": "admin", "site": None})
    state = await hub.ask("POST", "/v1/access-requests/state", json={"secret": asked["secret"]})
    assert (state["user"], state["fragment"]) == ("admin@unl.edu", None)
