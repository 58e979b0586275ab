"""Alarms, silences and receivers over the api."""

from downburst.alarms import AlarmKind, Condition
from factories import Told
from unit.api.conftest import Asked

SILENT = Condition(AlarmKind.SILENCE, "nothing has come into NGRID for 58 s", "look at the source", "NGRID")
AWAY = Condition(AlarmKind.SITE_DOWN, "unl.edu is away", "look there", site="unl.edu")


async def raised(hub: Asked, *conditions: Condition) -> None:
    for condition in conditions:
        await hub.runtime.ledger.write(lambda book, one=condition: book.alarms.raise_(one))  # type: ignore[misc]


async def test_what_is_wrong_is_listed_and_on_the_page(hub: Asked) -> None:
    await raised(hub, SILENT, AWAY)
    found = (await hub.ask("GET", "/v1/alarms"))["items"]
    assert [(one["alarm"], one["kind"], one["feed"], one["site"]) for one in found] == [
        (1, "silence", "NGRID", None),
        (2, "site-down", None, "unl.edu"),
    ]
    assert [one["alarm"] for one in (await hub.ask("GET", "/v1/alarms?site=unl.edu"))["items"]] == [2]
    faults = (await hub.ask("GET", "/v1/overview"))["faults"]
    assert [(fault["sentence"], fault["next"]) for fault in faults] == [(SILENT.sentence, SILENT.next_step)]


async def test_ended_alarms_come_in_pages(hub: Asked) -> None:
    await raised(hub, *[AWAY] * 5)
    await hub.runtime.ledger.write(lambda book: book.alarms.end([1, 2, 3, 4], book.clock.now()))
    assert [one["alarm"] for one in (await hub.ask("GET", "/v1/alarms"))["items"]] == [5]
    page = await hub.ask("GET", "/v1/alarms?ended=true&limit=3")
    assert [one["alarm"] for one in page["items"]] == [5, 4, 3]
    page = await hub.ask("GET", f"/v1/alarms?ended=true&limit=3&after={page['next']}")
    assert ([one["alarm"] for one in page["items"]], page["next"]) == ([2, 1], None)


async def test_a_silence_says_who_and_until_when(hub: Asked) -> None:
    await raised(hub, AWAY)
    made = await hub.ask("POST", "/v1/silences", 201, json={"minutes": 60, "site": "unl.edu", "reason": "new disk"})
    assert (made["by"], made["reason"]) == ("local", "new disk")
    assert (await hub.ask("GET", "/v1/alarms"))["items"][0]["silenced_until"] == made["until"]
    await hub.ask("DELETE", f"/v1/silences/{made['number']}", 204)
    assert (await hub.ask("GET", "/v1/alarms"))["items"][0]["silenced_until"] is None
    await hub.problem("DELETE", f"/v1/silences/{made['number']}", 404, "not-found")


async def test_a_receiver_from_its_making_to_its_end(hub: Asked) -> None:
    wanted = {"receiver": "chat", "kind": "webhook", "address": "https://chat.example/secret", "kinds": ["silence"]}
    await hub.ask("POST", "/v1/alarm-receivers", 201, json=wanted)
    await hub.problem("POST", "/v1/alarm-receivers", 409, "already-there", json=wanted)
    (found,) = await hub.ask("GET", "/v1/alarm-receivers")
    assert (found["receiver"], found["kinds"], found["feeds"]) == ("chat", ["silence"], [])
    await hub.ask("POST", "/v1/alarm-receivers/chat/test", 204)
    assert isinstance(hub.runtime.alarms, Told)
    assert hub.runtime.alarms.tests == ["chat"]
    assert "secret" not in (await hub.client.get("/v1/audit")).text
    await hub.ask("DELETE", "/v1/alarm-receivers/chat", 204)
    await hub.problem("POST", "/v1/alarm-receivers/chat/test", 404, "not-found")


async def test_an_address_that_does_not_fit_is_refused(hub: Asked) -> None:
    for kind, address in (("mail", "https://x/"), ("webhook", "ops@example.edu"), ("alertmanager", "ftp://x/")):
        wanted = {"receiver": "x", "kind": kind, "address": address}
        await hub.problem("POST", "/v1/alarm-receivers", 400, "bad-request", json=wanted)
