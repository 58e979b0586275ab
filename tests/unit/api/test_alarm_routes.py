"""Alarms, silences and receivers over the api."""

from dataclasses import replace

from downburst.domain.alarms import AlarmKind, Condition
from factories import Told
from unit.api.conftest import Asked

SILENT = Condition(AlarmKind.SILENCE, "no product has come into NGRID for 58 s", "look at the source", "NGRID")
AWAY = Condition(AlarmKind.SITE_DOWN, "unl.edu is away", "look there", site="unl.edu")


async def raised(hub: Asked, *conditions: Condition) -> None:
    for condition in conditions:
        await hub.runtime.ledger.write(lambda tx, one=condition: tx.alerting.alarms.raise_(one))  # type: ignore[misc]


async def test_what_is_wrong_is_listed_and_on_the_page(hub: Asked) -> None:
    await raised(hub, SILENT, AWAY)
    found = (await hub.ask("GET", "/v1/alarms"))["items"]
    assert [(one["alarm"], one["severity"], one["kind"], one["feed"], one["site"]) for one in found] == [
        (2, "critical", "site-down", None, "unl.edu"),
        (1, "warning", "silence", "NGRID", None),
    ]
    assert [one["alarm"] for one in (await hub.ask("GET", "/v1/alarms?site=unl.edu"))["items"]] == [2]
    faults = (await hub.ask("GET", "/v1/overview"))["faults"]
    assert [(fault["sentence"], fault["next"]) for fault in faults] == [(SILENT.sentence, SILENT.next_step)]


async def test_ended_alarms_come_in_pages(hub: Asked) -> None:
    await raised(hub, *[AWAY] * 5)
    await hub.runtime.ledger.write(lambda tx: tx.alerting.alarms.end([1, 2, 3, 4], tx.clock.now()))
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


async def test_a_silence_of_one_alarm_is_about_no_other(hub: Asked) -> None:
    slow = Condition(AlarmKind.OBJECTIVE, "NGRID reaches unl.edu late", "look", "NGRID", "unl.edu")
    of_circuits = [Condition(AlarmKind.CIRCUIT, "down", "look", site="unl.edu", subject=number) for number in "12"]
    await raised(hub, slow, replace(slow, kind=AlarmKind.STALLED), *of_circuits)
    silenced = {"objective": 1, "circuit": 3}
    for kind, number in silenced.items():
        made = await hub.ask("POST", "/v1/silences", 201, json={"minutes": 60, "alarm": number})
        assert (made["kind"], made["site"], made["by"]) == (kind, "unl.edu", "local")
    found = (await hub.ask("GET", "/v1/alarms"))["items"]
    assert {one["alarm"] for one in found if one["silence"]} == set(silenced.values())
    twice = {"minutes": 60, "alarm": 1, "site": "unl.edu"}
    await hub.problem("POST", "/v1/silences", 400, "bad-request", json=twice)
    await hub.problem("POST", "/v1/silences", 404, "not-found", json={"minutes": 60, "alarm": 99})


async def test_a_receiver_hears_of_all_but_information_unless_it_says_otherwise(hub: Asked) -> None:
    usual, all_of_them = ["critical", "warning"], ["critical", "warning", "information"]
    for name, given, expected in (
        ("usual", {}, usual),
        ("kinds", {"kinds": ["prediction"]}, all_of_them),
        ("night", {"severities": ["critical"]}, ["critical"]),
        ("all", {"severities": []}, all_of_them),
    ):
        wanted = {"receiver": name, "kind": "mail", "address": "ops@example.edu", **given}
        made = await hub.ask("POST", "/v1/alarm-receivers", 201, json=wanted)
        assert made["severities"] == expected, name


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
