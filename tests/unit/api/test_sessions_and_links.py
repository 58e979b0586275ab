"""Signing in and out, links, tokens, and the protection of browsers."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from downburst.domain.access import LinkKind, hashed
from downburst.domain.feeds import Feed
from downburst.domain.sites import Site
from downburst.foundation import passwords
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst_api.app import create_app
from factories import AUTHORIZATION, runtime

Client = httpx.AsyncClient
PASSWORD = "four words are long"
UPSTREAM_TOKEN = f"dbt1.{64 * 'a'}.very-secret"
FROM_HERE = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture(autouse=True)
def _quick_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces argon2, which is not under test here; tests/unit/foundation/test_passwords.py has the real one."""

    def is_password(password: str, kept: str | None) -> bool:
        return kept == f"hash of {password}"

    monkeypatch.setattr("downburst_api.sessions.routes.is_password", is_password)
    monkeypatch.setattr("downburst_api.sessions.routes.hash_password", _hash)


def _hash(password: str) -> str:
    assert len(password) >= passwords.SHORTEST
    return f"hash of {password}"


@pytest.fixture
async def clients(tmp_path: Path, ledger: Ledger, clock: FakeClock) -> AsyncIterator[Any]:
    """Makes clients: browsers, each with its own cookies, or commands, which present a token."""
    with ledger.transaction() as tx:
        tx.feeds.add(Feed("NGRID"))
        for name in ("unl.edu", "other.edu"):
            tx.sites.add(Site(name, allow=("NGRID",) if name == "unl.edu" else ("*",)))
    made, node = runtime(tmp_path / "hub", ledger, clock)
    await node.refresh()
    app, opened = create_app(made), []

    def client(peer: str = "192.0.2.1", **given: Any) -> Client:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=(peer, 4711))
        opened.append(httpx.AsyncClient(transport=transport, base_url="http://hub:7371", **given))
        return opened[-1]

    yield client
    for one in opened:
        await one.aclose()


async def asked(client: Client, method: str, path: str, expect: int, **request: Any) -> Any:
    answer = await client.request(method, path, **request)
    assert answer.status_code == expect, answer.text
    return answer.json() if answer.content else None


async def invited(clients: Any, role: str, *, user: str = "anna", site: str | None = None) -> Client:
    """A browser in which a user with this role has just accepted an invitation."""
    local: Client = clients(headers=AUTHORIZATION)
    browser: Client = clients()
    wanted = {"user": user, "role": role} | ({"site": site} if site else {})
    made = await asked(local, "POST", "/v1/users", 201, json=wanted)
    link = made["fragment"].removeprefix("#invitation=")
    await asked(browser, "POST", "/v1/session/link", 201, json={"link": link, "password": PASSWORD})
    browser.headers.update(FROM_HERE)
    return browser


async def test_the_first_administrator_is_made_once(clients: Any, ledger: Ledger) -> None:
    with ledger.transaction() as tx:
        tx.access.links.add(hashed("dbl_first"), LinkKind.FIRST, lifetime=timedelta(days=1))
    browser, second = clients(), clients()
    wanted = {"link": "dbl_first", "user": "root", "password": PASSWORD}
    await asked(browser, "POST", "/v1/session/link", 400, json={"link": "dbl_first", "password": PASSWORD})
    made = await asked(browser, "POST", "/v1/session/link", 201, json=wanted)
    assert (made["user"], made["role"]) == ("root", "admin")
    assert (await asked(browser, "GET", "/v1/users", 200))[0]["user"] == "root"
    problem = await asked(second, "POST", "/v1/session/link", 403, json=wanted | {"user": "thief"})
    assert "used already" in problem["detail"]
    problem = await asked(second, "POST", "/v1/session/link", 403, json=wanted | {"link": "dbl_guessed"})
    assert "unknown" in problem["detail"]


async def test_a_cookie_is_kept_from_pages_and_from_other_hosts(clients: Any) -> None:
    await invited(clients, "operator")
    browser = clients()
    answer = await browser.post("/v1/session", json={"user": "anna", "password": PASSWORD})
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("downburst_7371=dbs_")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Secure" not in cookie
    assert "session" not in answer.json()
    over_tls = await browser.post("https://hub/v1/session", json={"user": "anna", "password": PASSWORD})
    assert "Secure" in over_tls.headers["set-cookie"]
    assert over_tls.headers["strict-transport-security"]


async def test_a_user_signs_in_and_out(clients: Any, clock: FakeClock) -> None:
    browser = await invited(clients, "viewer")
    assert (await asked(browser, "GET", "/v1/session", 200))["user"] == "anna"
    await asked(browser, "GET", "/v1/overview", 200)
    assert await asked(browser, "DELETE", "/v1/session", 200) == {"continue_at": None}
    assert (await asked(browser, "GET", "/v1/session", 200))["user"] is None
    await asked(browser, "GET", "/v1/overview", 401)
    given = {"user": "anna", "password": PASSWORD, "bearer": True}
    session = (await asked(browser, "POST", "/v1/session", 201, json=given))["session"]
    command = clients(headers={"Authorization": f"Bearer {session}"})
    await asked(command, "GET", "/v1/overview", 200)
    clock.advance(337 * 3600)
    await asked(command, "GET", "/v1/overview", 401)


async def test_a_change_from_another_page_is_refused(clients: Any) -> None:
    browser = await invited(clients, "operator")
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
        await asked(browser, "DELETE", "/v1/feeds/NGRID", 403, headers=headers)
        await asked(browser, "POST", "/v1/session", 403, headers=headers, json={"user": "a", "password": "b"})
    del browser.headers["Sec-Fetch-Site"]
    await asked(browser, "DELETE", "/v1/feeds/NGRID", 403)
    await asked(browser, "DELETE", "/v1/feeds/NGRID", 403, headers={"Origin": "http://evil.example"})
    await asked(browser, "DELETE", "/v1/feeds/NGRID", 204, headers={"Origin": "http://hub:7371"})


async def test_wrong_passwords_become_slow(clients: Any, clock: FakeClock) -> None:
    await invited(clients, "viewer")
    browser = clients()
    wrong = {"user": "anna", "password": "not the password"}
    for _ in range(8):
        await asked(browser, "POST", "/v1/session", 401, json=wrong)
    answer = await browser.post("/v1/session", json={"user": "anna", "password": PASSWORD})
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "60")
    clock.advance(61)
    await asked(browser, "POST", "/v1/session", 201, json={"user": "anna", "password": PASSWORD})


async def test_nobody_learns_which_names_exist(clients: Any) -> None:
    await invited(clients, "viewer")
    browser = clients()
    sentences = {
        (await asked(browser, "POST", "/v1/session", 401, json={"user": name, "password": "wrong"}))["detail"]
        for name in ("anna", "nobody")
    }
    assert len(sentences) == 1


async def test_an_address_that_guesses_tokens_is_held_off(clients: Any) -> None:
    guesser, other = clients(peer="192.0.2.66"), clients(peer="192.0.2.7")
    for number in range(30):
        await asked(guesser, "GET", "/v1/feeds", 401, headers={"Authorization": f"Bearer dba_{number}"})
    await asked(guesser, "GET", "/v1/feeds", 429, headers={"Authorization": "Bearer dba_31"})
    await asked(other, "GET", "/v1/feeds", 401, headers={"Authorization": "Bearer dba_31"})


async def test_losing_a_right_ends_sessions_at_once(clients: Any) -> None:
    browser, local = await invited(clients, "operator"), clients(headers=AUTHORIZATION)
    await asked(browser, "GET", "/v1/overview", 200)
    await asked(local, "PATCH", "/v1/users/anna", 200, json={"role": "viewer"})
    await asked(browser, "GET", "/v1/overview", 401)
    await asked(browser, "POST", "/v1/session", 201, json={"user": "anna", "password": PASSWORD})
    await asked(browser, "DELETE", "/v1/feeds/NGRID", 403)
    await asked(local, "PATCH", "/v1/users/anna", 200, json={"active": False})
    await asked(browser, "GET", "/v1/overview", 401)
    await asked(browser, "POST", "/v1/session", 401, json={"user": "anna", "password": PASSWORD})


async def test_another_password_ends_every_session(clients: Any) -> None:
    browser, elsewhere = await invited(clients, "viewer"), clients()
    await asked(elsewhere, "POST", "/v1/session", 201, json={"user": "anna", "password": PASSWORD})
    change = {"old": "a wrong one", "new": "another long one"}
    await asked(browser, "PUT", "/v1/session/password", 403, json=change)
    await asked(browser, "PUT", "/v1/session/password", 204, json=change | {"old": PASSWORD})
    await asked(elsewhere, "GET", "/v1/overview", 401)
    await asked(elsewhere, "POST", "/v1/session", 401, json={"user": "anna", "password": PASSWORD})
    await asked(elsewhere, "POST", "/v1/session", 201, json={"user": "anna", "password": "another long one"})


async def test_the_last_administrator_stays(clients: Any) -> None:
    browser = await invited(clients, "admin")
    for request in (("DELETE", {}), ("PATCH", {"json": {"active": False}}), ("PATCH", {"json": {"role": "viewer"}})):
        problem = await asked(browser, request[0], "/v1/users/anna", 403, **request[1])
        assert "only administrator" in problem["detail"]


async def test_a_token_has_what_it_was_given_until_it_ends(clients: Any, clock: FakeClock) -> None:
    local = clients(headers=AUTHORIZATION)
    wanted = {"name": "ingest", "role": "operator", "scopes": ["ingest"], "days": 2}
    made = await asked(local, "POST", "/v1/access-tokens", 201, json=wanted)
    program = clients(headers={"Authorization": f"Bearer {made['token']}"})
    await asked(program, "PUT", "/v1/feeds/NGRID/products/x", 201, content=b"x")
    await asked(program, "DELETE", "/v1/feeds/NGRID", 403)
    await asked(program, "GET", "/metrics", 403)
    clock.advance(2 * 86_400)
    await asked(program, "PUT", "/v1/feeds/NGRID/products/y", 401, content=b"y")
    second = await asked(local, "POST", "/v1/access-tokens", 201, json=wanted)
    program.headers["Authorization"] = f"Bearer {second['token']}"
    await asked(program, "PUT", "/v1/feeds/NGRID/products/y", 201, content=b"y")
    await asked(local, "DELETE", f"/v1/access-tokens/{second['number']}", 200)
    await asked(program, "PUT", "/v1/feeds/NGRID/products/z", 401, content=b"z")
    assert "token" not in (await asked(local, "GET", "/v1/access-tokens", 200))[0]


async def test_a_token_has_no_more_than_its_role(clients: Any) -> None:
    local = clients(headers=AUTHORIZATION)
    wanted = {"name": "x", "role": "viewer", "scopes": ["operate"]}
    await asked(local, "POST", "/v1/access-tokens", 400, json=wanted)
    await asked(local, "POST", "/v1/access-tokens", 400, json={"name": "x", "role": "site"})
    await asked(local, "POST", "/v1/access-tokens", 404, json={"name": "x", "role": "site", "site": "no.edu"})


async def test_a_sites_administrator_sees_that_site_alone(clients: Any) -> None:
    local = clients(headers=AUTHORIZATION)
    await asked(local, "POST", "/v1/feeds", 201, json={"feed": "SECRET"})
    browser = await invited(clients, "site", site="unl.edu")
    assert [feed["feed"] for feed in await asked(browser, "GET", "/v1/feeds", 200)] == ["NGRID"]
    assert (await asked(browser, "GET", "/v1/sites/unl.edu", 200))["site"] == "unl.edu"
    await asked(browser, "GET", "/v1/sites/other.edu", 403)
    await asked(browser, "GET", "/v1/sites", 403)
    await asked(browser, "GET", "/v1/overview", 403)
    wish = {"feed": "NGRID", "pattern": "^x"}
    kept = await asked(browser, "POST", "/v1/sites/unl.edu/subscriptions", 201, json=wish)
    await asked(browser, "POST", "/v1/sites/unl.edu/subscriptions", 403, json=wish | {"feed": "SECRET"})
    others = await asked(local, "POST", "/v1/sites/other.edu/subscriptions", 201, json=wish)
    await asked(browser, "DELETE", f"/v1/sites/unl.edu/subscriptions/{others['id']}", 404)
    await asked(browser, "DELETE", f"/v1/sites/unl.edu/subscriptions/{kept['id']}", 204)
    assert await asked(browser, "GET", "/v1/latency", 200) == []


async def test_a_link_from_the_shell_signs_a_browser_in_once(clients: Any) -> None:
    local, browser, second = clients(headers=AUTHORIZATION), clients(), clients()
    made = await asked(local, "POST", "/v1/session/links", 201)
    link = made["fragment"].removeprefix("#sign-in=")
    assert (await asked(browser, "POST", "/v1/session/link", 201, json={"link": link}))["user"] == "local"
    await asked(browser, "GET", "/v1/users", 200)
    await asked(second, "POST", "/v1/session/link", 403, json={"link": link})
    token = await asked(local, "POST", "/v1/access-tokens", 201, json={"name": "x", "role": "admin"})
    program = clients(headers={"Authorization": f"Bearer {token['token']}"})
    await asked(program, "POST", "/v1/session/links", 403)


async def test_changes_say_who_made_them_and_what_was_before(clients: Any) -> None:
    browser, local = await invited(clients, "operator"), clients(headers=AUTHORIZATION)
    await asked(browser, "PATCH", "/v1/feeds/NGRID", 200, json={"retention_hours": 6})
    await asked(browser, "PATCH", "/v1/feeds/NGRID", 200, json={"retention_hours": 6})
    found = await asked(local, "GET", "/v1/audit?who=anna&kind=feed", 200)
    assert len(found["items"]) == 1
    change = found["items"][0]
    assert (change["subject"], change["action"], change["peer"]) == ("NGRID", "changed", "192.0.2.1")
    assert (change["before"], change["after"]) == ({"retention_hours": 2.0}, {"retention_hours": 6.0})
    await asked(browser, "DELETE", "/v1/feeds/NGRID", 204)
    gone = (await asked(local, "GET", "/v1/audit?limit=1", 200))["items"][0]
    assert (gone["action"], gone["before"]["name"], gone["after"]) == ("removed", "NGRID", None)
    await asked(browser, "GET", "/v1/audit", 403)


async def test_no_secret_is_in_the_audit(clients: Any) -> None:
    local = clients(headers=AUTHORIZATION)
    secrets = [PASSWORD]
    await invited(clients, "viewer")
    for path, body in (
        ("/v1/access-tokens", {"name": "x", "role": "viewer"}),
        ("/v1/upstreams", {"upstream": "up", "address": "192.0.2.9:7370", "token": UPSTREAM_TOKEN}),
        ("/v1/sites/unl.edu/tokens", {}),
    ):
        made = await asked(local, "POST", path, 201, json=body)
        secrets += [str(made.get("token", UPSTREAM_TOKEN))]
    written = (await local.get("/v1/audit?limit=1000")).text
    assert "access token" in written
    for secret in secrets:
        assert secret not in written
        assert hashed(secret) not in written
        assert _hash(secret) not in written


async def test_browsers_are_told_how_to_protect_the_page(clients: Any) -> None:
    browser = clients()
    for path in ("/", "/v1/session", "/v1/nothing"):
        answer = await browser.get(path)
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert (await browser.get("/v1/session")).headers["cache-control"] == "no-store"
    assert (await browser.get("/v1/overview")).headers["www-authenticate"] == "Bearer"
