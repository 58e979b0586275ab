"""The calendar that programs subscribe to: read back by RFC 5545's rules, and the token in its address."""

import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from downburst.domain.access import SCOPES_OF, AccessToken, Role, Scope, hashed
from downburst.domain.circuits import Circuit, CircuitEnd, CircuitRequest, CircuitState
from downburst.domain.sites import Site
from downburst.ledger.repositories.circuits import Revision
from downburst_api.app import create_app
from downburst_api.circuits.icalendar import LONGEST_OCTETS, calendar_text
from downburst_api.circuits.service import FINISHED_SHOWN
from unit.api.conftest import Asked
from unit.api.test_circuits import FAR, PORT, TAGS, WISH

PATH = "/v1/circuits.ics"
BEGIN = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)
"""An hour before clocks change in Europe."""
ENDS = (CircuitEnd("hub-eth0", vlan=100), CircuitEnd("unl-eth1", "unl.edu"))
Event = dict[str, str]


@dataclass
class Calendar:
    """A calendar as a program reads it."""

    head: dict[str, str]
    events: list[Event]


def read(text: str) -> Calendar:
    assert text.endswith("END:VCALENDAR\r\n")
    lines = text.removesuffix("\r\n").split("\r\n")
    assert max(len(line.encode()) for line in lines) <= LONGEST_OCTETS
    assert not any("\n" in line or "\r" in line for line in lines)
    whole: list[str] = []
    for line in lines:
        if line.startswith(" "):
            whole[-1] += line[1:]
        else:
            whole.append(line)
    assert whole[:2] == ["BEGIN:VCALENDAR", "VERSION:2.0"]
    head: dict[str, str] = {}
    events: list[Event] = []
    inside: Event | None = None
    for line in whole[1:-1]:
        name, _, value = line.partition(":")
        if line == "BEGIN:VEVENT":
            inside = {}
            events.append(inside)
        elif line == "END:VEVENT":
            assert inside is not None
            assert {"UID", "DTSTAMP", "DTSTART", "DTEND", "STATUS", "SEQUENCE"} <= inside.keys()
            inside = None
        else:
            target = head if inside is None else inside
            assert name not in target
            target[name] = value
    return Calendar(head, events)


def unescaped(value: str) -> str:
    letters = iter(value)
    return "".join(
        letter if letter != "\\" else {"n": "\n"}.get(following := next(letters), following) for letter in letters
    )


def circuit(**given: object) -> Circuit:
    request = CircuitRequest("r", "model output", ticket="NOC-4711", requested_by="eve")
    made = Circuit(17, request, ENDS, 500_000_000, 0, BEGIN, BEGIN + timedelta(hours=2), created_at=BEGIN)
    return replace(made, **given)  # type: ignore[arg-type]


def only(one: Circuit, revision: Revision | None = None) -> Event:
    return read(calendar_text("c", [one], {one.number: revision} if revision else {})).events[0]


def test_a_circuit_is_an_event_in_utc_whatever_clocks_do() -> None:
    event = only(circuit(state=CircuitState.ACTIVE), Revision(42, BEGIN + timedelta(minutes=5)))
    assert (event["DTSTART"], event["DTEND"]) == ("20260329T003000Z", "20260329T023000Z")
    assert (event["DTSTAMP"], event["LAST-MODIFIED"]) == ("20260329T003500Z",) * 2
    assert (event["SEQUENCE"], event["STATUS"]) == ("42", "CONFIRMED")
    assert unescaped(event["SUMMARY"]) == "Circuit 17 to unl.edu: 500 Mb/s out, 0 b/s in"
    told = unescaped(event["DESCRIPTION"]).split("\n")
    assert told[0] == "active"
    assert {"hub: port hub-eth0, tag 100", "ticket NOC-4711", "requested by eve", "model output"} <= set(told)


def test_the_status_follows_the_state() -> None:
    wanted = {"held": "TENTATIVE", "admitted": "CONFIRMED", "failed": "CONFIRMED", "cancelled": "CANCELLED"}
    states = {state.value: only(circuit(state=state))["STATUS"] for state in CircuitState}
    assert {state: told for state, told in states.items() if state in wanted} == {
        state: told for state, told in wanted.items() if state in states
    }
    assert set(states.values()) == {"TENTATIVE", "CONFIRMED", "CANCELLED"}


def test_the_identity_stays_and_that_of_another_circuit_differs() -> None:
    first = only(circuit())
    changed = only(circuit(rate_out_bps=1_000_000, state=CircuitState.DOWN, reason="cut"), Revision(9, BEGIN))
    assert first["UID"] == changed["UID"]
    assert only(circuit(number=18))["UID"] != first["UID"]
    assert only(circuit(created_at=BEGIN + timedelta(microseconds=1)))["UID"] != first["UID"]


def test_a_circuit_without_an_end_is_shown_for_years_and_says_so() -> None:
    event = only(circuit(end=None))
    assert event["DTEND"] == "20310328T003000Z"
    assert "until it is cancelled" in unescaped(event["DESCRIPTION"])


def test_any_text_comes_back_as_it_was_in_lines_that_are_short_enough() -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    letters = "a;,\\\nÄ€𝄞日 :\"'" + "\u0000\r\t"
    for _ in range(200):
        text = "".join(chance.choices(letters, k=chance.randrange(200)))
        event = only(circuit(request=CircuitRequest("r", text or "x")))
        shown = "".join(letter for letter in text if letter == "\n" or letter.isprintable())
        assert shown in unescaped(event["DESCRIPTION"])


@dataclass
class Subscriber:
    hub: Asked
    client: httpx.AsyncClient
    number: int

    async def calendar(self, query: str = "") -> Calendar:
        answer = await self.hub.client.get(f"{PATH}{query}")
        assert answer.headers["content-type"] == "text/calendar; charset=utf-8"
        return read(answer.text)

    def token(self, secret: str, role: Role, *scopes: Scope) -> None:
        with self.hub.runtime.ledger.transaction() as tx:
            now = tx.clock.now()
            chosen = scopes or tuple(SCOPES_OF[role])
            until = now + timedelta(days=1)
            tx.access.tokens.add(AccessToken(0, secret, hashed(secret), role, chosen, None, now, "test", until))


@pytest.fixture
async def subscriber(hub: Asked) -> AsyncIterator[Subscriber]:
    with hub.runtime.ledger.transaction() as tx:
        tx.sites.add(Site("unl.edu"))
    for port in (PORT, FAR):
        await hub.ask("POST", "/v1/ports", 201, json=port | TAGS)
    number = (await hub.ask("POST", "/v1/circuits", 201, json=WISH))["circuit"]
    transport = httpx.ASGITransport(create_app(hub.runtime), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://hub") as client:
        yield Subscriber(hub, client, number)


async def test_a_change_is_a_higher_sequence_and_a_cancelled_circuit_is_shown_for_a_time(
    subscriber: Subscriber,
) -> None:
    hub = subscriber.hub
    first = (await subscriber.calendar()).events
    assert first == (await subscriber.calendar()).events
    hub.runtime.clock.advance(60)  # type: ignore[attr-defined]
    await hub.ask("PATCH", f"/v1/circuits/{subscriber.number}", json={"rate_out_bps": 100_000_000})
    changed = (await subscriber.calendar()).events
    assert [event["UID"] for event in changed] == [event["UID"] for event in first]
    assert int(changed[0]["SEQUENCE"]) > int(first[0]["SEQUENCE"])
    assert changed[0]["DTSTAMP"] > first[0]["DTSTAMP"]
    await hub.ask("DELETE", f"/v1/circuits/{subscriber.number}")
    assert [event["STATUS"] for event in (await subscriber.calendar()).events] == ["CANCELLED"]
    hub.runtime.clock.advance(FINISHED_SHOWN.total_seconds() + 60)  # type: ignore[attr-defined]
    assert (await subscriber.calendar()).events == []


async def test_the_calendar_is_narrowed_by_site_and_port(subscriber: Subscriber) -> None:
    found = await subscriber.calendar("?site=unl.edu&port=unl-eth1")
    assert len(found.events) == 1
    assert found.head["NAME"] == found.head["X-WR-CALNAME"]
    assert unescaped(found.head["NAME"]).endswith(", unl.edu, unl-eth1")
    assert (await subscriber.calendar("?site=ttu.edu")).events == []
    assert (await subscriber.calendar("?port=other")).events == []


async def test_a_token_that_only_reads_may_stand_in_the_address(subscriber: Subscriber) -> None:
    subscriber.token("dba_reader", Role.VIEWER)
    subscriber.token("dba_narrow", Role.OPERATOR, Scope.DETAILS)
    for secret in ("dba_reader", "dba_narrow"):
        answer = await subscriber.client.get(PATH, params={"token": secret})
        assert answer.status_code == 200
        assert len(read(answer.text).events) == 1


async def test_other_tokens_and_other_routes_are_refused_in_a_sentence(subscriber: Subscriber) -> None:
    subscriber.token("dba_reader", Role.VIEWER)
    subscriber.token("dba_operator", Role.OPERATOR)
    subscriber.token("dba_metrics", Role.VIEWER, Scope.METRICS)
    get = subscriber.client.get
    may_change = await get(PATH, params={"token": "dba_operator"})
    assert may_change.status_code == 403
    assert "tokens add calendar --role viewer" in may_change.json()["detail"]
    assert (await get(PATH, params={"token": "dba_metrics"})).status_code == 403
    assert (await get(PATH, params={"token": "dba_unknown"})).status_code == 401
    assert (await get(PATH)).status_code == 401
    assert (await get(f"{PATH}?token=dba_reader&token=dba_reader")).status_code == 401
    assert (await get("/v1/circuits", params={"token": "dba_reader"})).status_code == 401
    header = {"Authorization": "Bearer dba_unknown"}
    assert (await get(PATH, params={"token": "dba_reader"}, headers=header)).status_code == 401
