"""Every limit under many simultaneous requests: the admitted number never exceeds the limit."""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
import pytest

from downburst.domain.access import Role, User
from downburst.domain.sites import Site
from downburst.foundation.errors import TooMany
from downburst.ledger import Transaction
from downburst.network.addresses import network_of
from downburst_api.app import create_app
from downburst_api.border import hashing
from downburst_api.border.budgets import Budget
from downburst_api.overview import stream
from downburst_api.sessions import routes as sessions
from unit.api.conftest import Asked

PASSWORD = "four words are long"
AT_ONCE = 60


@dataclass
class Crowd:
    """Many clients that ask at the same time."""

    app: Any
    hub: Asked
    seen: Counter[int] = field(default_factory=Counter)
    """Statuses of all answers so far."""

    async def ask(
        self, method: str, path: str, *, peer: str = "192.0.2.1", times: int = AT_ONCE, **given: Any
    ) -> Counter[int]:
        """The statuses of `times` requests, all begun before the first has ended."""
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False, client=(peer, 4711))
        async with httpx.AsyncClient(transport=transport, base_url="http://hub", timeout=60) as client:

            async def one() -> int:
                answer = await client.request(method, path, **given)
                if answer.status_code == 429:
                    assert int(answer.headers["retry-after"]) >= 1
                self.seen[answer.status_code] += 1
                return answer.status_code

            return Counter(await asyncio.gather(*(one() for _ in range(times))))


async def until(probe: Callable[[], bool]) -> None:
    """Lets all other tasks run until a condition holds."""
    while not probe():  # noqa: ASYNC110 - there is no one event for it
        await asyncio.sleep(0.001)


@pytest.fixture
def crowd(hub: Asked) -> Crowd:
    return Crowd(create_app(hub.runtime), hub)


async def bearer(hub: Asked, role: str, **given: Any) -> dict[str, str]:
    made = await hub.ask("POST", "/v1/access-tokens", 201, json={"name": role, "role": role} | given)
    return {"Authorization": f"Bearer {made['token']}"}


class Judge:
    """Replaces argon2; counts judged passwords and how many were judged at the same time."""

    def __init__(self) -> None:
        self.judged = 0
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()

    def __call__(self, password: str, kept: str | None) -> bool:
        with self._lock:
            self.judged += 1
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        with self._lock:
            self._at_once -= 1
        return kept == f"hash of {password}"


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Judge:
    made = Judge()
    monkeypatch.setattr(sessions, "is_password", made)
    return made


async def test_finding_08_many_wrong_passwords_at_once_are_judged_no_more_often_than_one_after_the_other(
    crowd: Crowd, judge: Judge
) -> None:
    await crowd.hub.runtime.ledger.write(lambda tx: tx.access.users.add(User("anna", Role.VIEWER, None, "hash of x")))
    wrong = {"user": "anna", "password": "not the password"}
    total: Counter[int] = Counter()
    for _ in range(6):
        total += await crowd.ask("POST", "/v1/session", json=wrong)
    assert judge.judged <= 8, total
    assert total == Counter({401: judge.judged, 429: 6 * AT_ONCE - judge.judged})
    assert judge.most_at_once == 1


async def test_finding_08_nor_of_many_names_from_one_address(crowd: Crowd, judge: Judge) -> None:
    for number in range(12):
        await crowd.ask("POST", "/v1/session", times=8, json={"user": f"user{number}", "password": "wrong"})
    assert judge.judged == 30


async def test_finding_08_the_queue_for_the_only_hashing_slot_is_short_and_shared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue, go = hashing.Hashing(), asyncio.Event()
    begun = 0

    async def held(work: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        nonlocal begun
        begun += 1
        await go.wait()
        return work(*arguments, **named)

    monkeypatch.setattr(asyncio, "to_thread", held)
    attackers = [queue.run("192.0.2.1", f"name{number}", str) for number in range(100)]
    waiting = [asyncio.ensure_future(one) for one in attackers]
    await asyncio.sleep(0)
    honest = asyncio.ensure_future(queue.run("198.51.100.1", "anna", str, "in"))
    await asyncio.sleep(0)
    refused = [one for one in waiting if one.done()]
    assert len(waiting) - len(refused) == hashing.MOST_BY_ADDRESS
    assert all(isinstance(one.exception(), TooMany) for one in refused)
    assert begun == 1
    go.set()
    assert await honest == "in"
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_a_good_password_is_not_counted_against_its_user(crowd: Crowd, judge: Judge) -> None:
    user = User("anna", Role.VIEWER, None, f"hash of {PASSWORD}")
    await crowd.hub.runtime.ledger.write(lambda tx: tx.access.users.add(user))
    for _ in range(40):
        answers = await crowd.ask("POST", "/v1/session", times=1, json={"user": "anna", "password": PASSWORD})
        assert answers == Counter({201: 1})


async def test_wrong_tokens_at_once_ask_the_ledger_no_more_than_their_limit(crowd: Crowd) -> None:
    asked = 0
    read = crowd.hub.runtime.ledger.read

    async def counted(work: Callable[[Transaction], Any], **named: Any) -> Any:
        nonlocal asked
        asked += 1
        return await read(work, **named)

    crowd.hub.runtime.gate._ledger = _With(counted)  # type: ignore[assignment]
    statuses = await asyncio.gather(
        *(
            crowd.ask("GET", "/v1/feeds", times=1, headers={"Authorization": f"Bearer dba_{number}"})
            for number in range(AT_ONCE)
        )
    )
    assert sum(statuses, Counter()) == Counter({401: 30, 429: AT_ONCE - 30})
    assert asked == 30


@dataclass
class _With:
    read: Callable[..., Awaitable[Any]]


async def test_a_source_with_many_connections_is_not_many_guesses(crowd: Crowd) -> None:
    headers = await bearer(crowd.hub, "operator")
    crowd.hub.runtime.gate.forget()
    assert await crowd.ask("GET", "/v1/feeds", headers=headers) == Counter({200: AT_ONCE})


async def test_requests_for_access_at_once(crowd: Crowd) -> None:
    wanted = {"site": "unl.edu", "organisation": "University", "contact": "ops@unl.edu"}
    assert await crowd.ask("POST", "/v1/access-requests", times=20, json=wanted) == Counter({201: 6, 429: 14})


async def test_requests_without_a_login_at_once(crowd: Crowd) -> None:
    found = await crowd.ask("GET", "/v1/session", times=700)
    assert found == Counter({200: 600, 429: 100})


async def test_an_address_of_ipv6_is_a_network_of_64_bits(crowd: Crowd) -> None:
    wanted = {"site": "unl.edu", "organisation": "University", "contact": "ops@unl.edu"}
    peers = [f"2001:db8::{number:x}" for number in range(10)]
    found = await asyncio.gather(
        *(crowd.ask("POST", "/v1/access-requests", times=1, peer=peer, json=wanted) for peer in peers)
    )
    assert sum(found, Counter()) == Counter({201: 6, 429: 4})
    assert network_of("2001:db8:0:1::1") != network_of("2001:db8:0:2::1")
    assert network_of("::ffff:192.0.2.1") == "192.0.2.1"


class Listeners:
    """Live streams that end when the test releases them."""

    def __init__(self) -> None:
        self.open = 0
        self.most = 0
        self.end = asyncio.Event()

    async def overviews(self, *_: object) -> AsyncIterator[None]:
        self.open += 1
        self.most = max(self.most, self.open)
        await self.end.wait()
        self.open -= 1
        return
        yield


async def test_finding_18_live_lines_of_one_viewer(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    listeners = Listeners()
    monkeypatch.setattr(stream, "overviews", listeners.overviews)
    headers = await bearer(crowd.hub, "viewer")
    asking = asyncio.create_task(crowd.ask("GET", "/v1/events", times=400, headers=headers))
    await until(lambda: listeners.open == 16 and crowd.seen[429] == 384)
    listeners.end.set()
    assert await asking == Counter({200: 16, 429: 384})
    assert listeners.most == 16
    listeners.end.clear()
    again = asyncio.create_task(crowd.ask("GET", "/v1/events", times=16, headers=headers))
    await until(lambda: listeners.open == 16)
    listeners.end.set()
    assert await again == Counter({200: 16}), "what ended is free again"


async def test_finding_18_live_lines_from_one_address(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    listeners = Listeners()
    monkeypatch.setattr(stream, "overviews", listeners.overviews)
    viewers = [await bearer(crowd.hub, "viewer") for _ in range(6)]
    asking = [asyncio.create_task(crowd.ask("GET", "/v1/events", times=16, headers=one)) for one in viewers]
    await until(lambda: listeners.open == 64 and crowd.seen[429] == 32)
    listeners.end.set()
    assert sum(await asyncio.gather(*asking), Counter()) == Counter({200: 64, 429: 32})


async def test_uploads_at_once(crowd: Crowd) -> None:
    await crowd.hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    limits = crowd.hub.runtime.settings.limits.model_copy(update={"uploads": 4})
    app = create_app(with_limits(crowd.hub, limits))
    headers = await bearer(crowd.hub, "operator", scopes=["ingest"])
    gate = asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield b"begin"
        await gate.wait()

    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://hub", headers=headers
    ) as client:
        asking = [
            asyncio.create_task(client.put(f"/v1/feeds/NGRID/products/{number}", content=slowly()))
            for number in range(10)
        ]
        await until(lambda: sum(one.done() for one in asking) == 6)
        gate.set()
        found = Counter([(await one).status_code for one in asking])
    assert found == Counter({201: 4, 429: 6})


async def test_bytes_of_bodies_at_once(crowd: Crowd) -> None:
    headers = await bearer(crowd.hub, "viewer")
    gate = asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield b"{"
        await gate.wait()

    transport = httpx.ASGITransport(crowd.app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://hub", headers=headers) as client:
        asking = [asyncio.create_task(client.post("/v1/session/links", content=slowly())) for _ in range(40)]
        await until(lambda: sum(one.done() for one in asking) == 8)
        gate.set()
        statuses = Counter([(await one).status_code for one in asking])
    assert statuses[429] == 8, "32 MiB are 32 bodies of an unknown length"


async def test_a_sites_receivers_of_alarms_at_once(crowd: Crowd) -> None:
    await crowd.hub.runtime.ledger.write(lambda tx: tx.sites.add(Site("unl.edu")))
    headers = await bearer(crowd.hub, "site", site="unl.edu")
    found = await asyncio.gather(
        *(
            crowd.ask(
                "POST",
                "/v1/sites/unl.edu/alarm-receivers",
                times=1,
                headers=headers,
                json={"receiver": f"noc{number}", "kind": "mail", "address": "noc@unl.edu"},
            )
            for number in range(30)
        )
    )
    assert sum(found, Counter()) == Counter({201: 10, 409: 20})


async def test_a_key_of_a_request_is_used_once(crowd: Crowd) -> None:
    headers = await bearer(crowd.hub, "operator") | {"Idempotency-Key": "k"}
    found = await crowd.ask("POST", "/v1/feeds", times=20, headers=headers, json={"feed": "NGRID"})
    assert found[201] >= 1
    assert set(found) <= {201, 409}
    (one,) = (await crowd.hub.ask("GET", "/v1/audit?kind=feed"))["items"]
    assert one["subject"] == "NGRID"


async def test_a_one_time_link_is_used_once(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "hash_password", lambda password: f"hash of {password}")
    made = await crowd.hub.ask("POST", "/v1/users", 201, json={"user": "anna", "role": "viewer"})
    link = made["fragment"].removeprefix("#invitation=")
    found = await crowd.ask("POST", "/v1/session/link", times=20, json={"link": link, "password": PASSWORD})
    assert found[201] == 1, found


def test_budgets_hold_what_they_say() -> None:
    budget = Budget(3, what="things")
    with budget.held("a", 2), pytest.raises(TooMany):
        budget.take("a", 2)
    assert budget.of("a") == 0
    budget.take("a", 3)
    budget.take("b", 3)
    budget.give_back("a", 3)
    assert (budget.of("a"), budget.of("b")) == (0, 3)


def with_limits(hub: Asked, limits: Any) -> Any:
    """The same hub with other limits."""
    settings = hub.runtime.settings.model_copy(update={"limits": limits})
    return replace(hub.runtime, settings=settings)
