"""Row limits as tenants meet them: many simultaneous requests leave as many rows as the limit allows."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from sqlalchemy import Table, func, select

from downburst.domain.access import Role, User
from downburst.domain.feeds import Feed
from downburst.domain.sites import Site
from downburst.ledger import Transaction
from downburst.ledger.storage import limits
from downburst.ledger.storage.limits import Newest
from downburst.ledger.tables.access import access_requests, access_tokens, audit, login_links, login_sessions
from downburst.ledger.tables.alarms import alarm_receivers, silences, site_receivers
from downburst.ledger.tables.processes import answers
from downburst.ledger.tables.sites import resends, subscriptions, tokens
from downburst_api.app import create_app
from downburst_api.sessions import routes as sessions
from factories import AUTHORIZATION
from unit.api.conftest import Asked
from unit.tenancy.test_races import Crowd, bearer

MOST, TIMES = 4, 11
SITE = "/v1/sites/unl.edu"
PASSWORD = "four words are long"


@dataclass(frozen=True, slots=True)
class Asking:
    """Requests that each add a row."""

    table: Table
    path: str
    body: Callable[[int], dict[str, Any]] = lambda _: {}
    who: str = "site"
    key: bool = False
    """True if each has an Idempotency-Key of its own."""
    peer: Callable[[int], str] = lambda _: "192.0.2.1"
    at_once: int = TIMES
    """Passwords of one user are judged three at a time, and more are told to wait."""


ASKING: Mapping[str, Asking] = {
    "SUBSCRIPTIONS_OF_SITE": Asking(
        subscriptions, f"{SITE}/subscriptions", lambda n: {"feed": "NGRID", "pattern": f"^{n}"}
    ),
    "PENDING_TOKENS_OF_SITE": Asking(tokens, f"{SITE}/tokens"),
    "WINDOWS_OF_SITE": Asking(silences, f"{SITE}/silences", lambda n: {"minutes": 5, "reason": f"{n}"}),
    "SILENCES_OF_MAKER": Asking(silences, "/v1/silences", lambda _: {"minutes": 5, "feed": "NGRID"}, "operator"),
    "RESENDS_OF_SITE": Asking(
        resends, f"{SITE}/subscriptions", lambda n: {"feed": "NGRID", "pattern": f"^{n}", "start": "2h"}
    ),
    "RECEIVERS": Asking(
        alarm_receivers,
        "/v1/alarm-receivers",
        lambda n: {"receiver": f"noc{n}", "kind": "mail", "address": "noc@unl.edu"},
        "operator",
    ),
    "RECEIVERS_OF_SITE": Asking(
        site_receivers,
        f"{SITE}/alarm-receivers",
        lambda n: {"receiver": f"noc{n}", "kind": "mail", "address": "noc@unl.edu"},
    ),
    "ACCESS_TOKENS_OF_MAKER": Asking(
        access_tokens, "/v1/access-tokens", lambda n: {"name": f"{n}", "role": "viewer"}, "local"
    ),
    "SESSIONS_OF_USER": Asking(
        login_sessions, "/v1/session", lambda _: {"user": "anna", "password": PASSWORD}, "nobody", at_once=3
    ),
    "LINKS_OF_USER": Asking(login_links, "/v1/session/links", who="local"),
    "REQUESTS": Asking(
        access_requests,
        "/v1/access-requests",
        lambda n: {"site": f"s{n}.edu", "organisation": "University", "contact": "ops@unl.edu"},
        "nobody",
        peer=lambda n: f"192.0.2.{n}",
    ),
    "KEYS_OF_TENANT": Asking(
        answers, "/v1/silences", lambda _: {"minutes": 5, "feed": "NGRID"}, "operator", key=True
    ),
    "CHANGES_OF_TENANT": Asking(audit, f"{SITE}/silences", lambda n: {"minutes": 5, "reason": f"{n}"}),
}


@pytest.fixture
async def crowd(hub: Asked, monkeypatch: pytest.MonkeyPatch) -> Crowd:
    monkeypatch.setattr(sessions, "is_password", lambda password, kept: kept == f"hash of {password}")

    def fill(tx: Transaction) -> None:
        tx.feeds.add(Feed("NGRID"))
        tx.sites.add(Site("unl.edu", allow=("NGRID",)))
        tx.access.users.add(User("anna", Role.VIEWER, None, f"hash of {PASSWORD}"))

    await hub.runtime.ledger.write(fill)
    return Crowd(create_app(hub.runtime), hub)


@pytest.mark.parametrize("name", ASKING)
async def test_requests_at_once_make_no_more_rows_than_the_limit(
    name: str, crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking, limit = ASKING[name], getattr(limits, name)
    headers = await _headers(crowd.hub, asking.who)
    before = await _rows(crowd, asking.table)
    monkeypatch.setattr(limits, name, replace(limit, most=MOST))
    seen: Counter[int] = Counter()
    for first in range(0, TIMES, asking.at_once):
        some = range(first, min(first + asking.at_once, TIMES))
        seen += sum(await asyncio.gather(*(_ask(crowd, asking, headers, n) for n in some)), Counter())
    assert await _rows(crowd, asking.table) == before + MOST
    assert seen == ({201: TIMES} if isinstance(limit, Newest) else {201: MOST, 409: TIMES - MOST})


async def test_what_a_refused_request_began_is_undone(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RESENDS_OF_SITE", replace(limits.RESENDS_OF_SITE, most=1))
    wish = {"feed": "NGRID", "start": "2h"}
    await crowd.hub.ask("POST", f"{SITE}/subscriptions", 201, json=wish)
    problem = await crowd.hub.problem("POST", f"{SITE}/subscriptions", 409, "limit-reached", json=wish)
    assert problem["detail"] == (
        "site 'unl.edu' has 1 waiting resends and backfills, and the limit is 1; "
        "wait until one ends, or cancel one: downburst resends cancel NUMBER"
    )
    assert (problem["limit"], problem["most"], problem["count"]) == ("resends-of-site", 1, 1)
    assert len(await crowd.hub.ask("GET", f"{SITE}/subscriptions")) == 1
    await crowd.hub.ask("POST", f"{SITE}/subscriptions", 201, json={"feed": "NGRID"})


async def test_tokens_that_were_ended_make_room_and_enrol_nobody(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PENDING_TOKENS_OF_SITE", replace(limits.PENDING_TOKENS_OF_SITE, most=2))
    for _ in range(2):
        await crowd.hub.ask("POST", f"{SITE}/tokens", 201)
    problem = await crowd.hub.problem("POST", f"{SITE}/tokens", 409, "limit-reached")
    assert "downburst sites end-tokens SITE" in problem["detail"]
    assert await crowd.hub.ask("DELETE", f"{SITE}/tokens") == {"site": "unl.edu", "ended": 2}
    assert await crowd.hub.ask("DELETE", f"{SITE}/tokens") == {"site": "unl.edu", "ended": 0}
    await crowd.hub.ask("POST", f"{SITE}/tokens", 201)


async def _headers(hub: Asked, who: str) -> dict[str, str]:
    match who:
        case "nobody":
            return {}
        case "local":
            return dict(AUTHORIZATION)
        case "site":
            return await bearer(hub, "site", site="unl.edu")
        case _:
            return await bearer(hub, who)


async def _ask(crowd: Crowd, asking: Asking, headers: dict[str, str], number: int) -> Counter[int]:
    own = {"Idempotency-Key": f"key {number}"} if asking.key else {}
    return await crowd.ask(
        "POST",
        asking.path,
        times=1,
        peer=asking.peer(number),
        json=asking.body(number),
        headers=headers | own,
    )


async def _rows(crowd: Crowd, table: Table) -> int:
    return await crowd.hub.runtime.ledger.read(
        lambda tx: tx.access.audit._connection.scalar(select(func.count()).select_from(table)) or 0
    )
