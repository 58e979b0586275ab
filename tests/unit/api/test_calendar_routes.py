"""The calendar of the page: resources, the circuits of a window with their directions, maintenance; rates in use."""

from typing import Any

import pytest

from downburst.domain.circuits import CircuitUse
from downburst.domain.events import TrafficSeen
from downburst.domain.sites import Site
from downburst.domain.topology.bookings import BookedTest
from downburst.foundation.clock import to_us
from downburst.foundation.errors import PartAway
from downburst_contract.desk.calendar import Calendar
from kit.played_api import TOPOLOGY
from unit.api.conftest import Asked
from unit.api.test_topology_routes import PORTS

WISH: dict[str, Any] = {"sites": [{"site": "unl.edu"}], "rate_out_bps": 600_000_000, "begin": "+1h", "end": "+2h"}


@pytest.fixture
async def booked(hub: Asked) -> Asked:
    with hub.runtime.ledger.transaction() as tx:
        tx.sites.add(Site("unl.edu"))
    for port in PORTS:
        await hub.ask("POST", "/v1/ports", 201, json=port)
    await hub.ask("PUT", "/v1/topology", json=TOPOLOGY)
    await hub.ask("POST", "/v1/circuits", 201, json=WISH)
    return hub


async def test_resources_are_links_hosts_and_ports_with_a_rate_in_each_direction(booked: Asked) -> None:
    shown = await booked.ask("GET", "/v1/calendar?end=%2B1d")
    kinds = [(one["kind"], one["name"], one["a"], one["z"], one["owner"]) for one in shown["resources"]]
    assert kinds == [
        ("link", "unl", "chic", "unl-eth1", None),
        ("link", "up", "hub-eth0", "chic", None),
        ("host", "hub-1", "", "", None),
        ("port", "hub-eth0", "hub-1", "", None),
        ("port", "unl-eth1", "", "", "unl.edu"),
    ]
    rates = (shown["resources"][0]["rate_out_bps"], shown["resources"][0]["rate_in_bps"])
    assert rates == (1_000_000_000, 500_000_000)
    assert shown["left_out"] is False


async def test_ports_of_senders_and_of_other_networks_say_so(booked: Asked) -> None:
    of_sender = {"port": "cloud-eth0", "rate_bps": 10**9, "sender": "cloud", "interface": "eth0"}
    for port in (of_sender, {"port": "gate", "rate_bps": 10**9, "underlay": "192.0.2.9"}):
        await booked.ask("POST", "/v1/ports", 201, json=port)
    domains = [*TOPOLOGY["domains"], {"name": "geant", "ports": ["gate"]}]
    await booked.ask("PUT", "/v1/topology", json=TOPOLOGY | {"domains": domains})
    shown = (await booked.ask("GET", "/v1/calendar?end=%2B1d"))["resources"]
    told = {one["name"]: (one["owner"], one["sender"]) for one in shown if one["kind"] == "port"}
    assert (told["cloud-eth0"], told["gate"], told["hub-eth0"]) == ((None, "cloud"), ("geant", None), (None, None))
    (kept,) = [one for one in (await booked.ask("GET", "/v1/topology"))["domains"] if one["name"] == "geant"]
    assert kept["ports"] == ["gate"]


async def test_a_circuit_has_its_resources_by_direction(booked: Asked) -> None:
    shown = await booked.ask("GET", "/v1/calendar?end=%2B1d")
    assert Calendar.model_validate(shown, extra="forbid").model_dump(mode="json") == shown
    (one,) = shown["reservations"]
    names = [resource["key"] for resource in shown["resources"]]
    assert {names[place] for place in one["along"]} == {"hub-eth0", "host hub-1", "link up", "link unl"}
    assert [names[place] for place in one["against"]] == ["unl-eth1"]
    assert (one["state"], one["rate_out_bps"], one["near_out_bps"]) == ("admitted", 600_000_000, 600_000_000)
    assert one["sites"] == ["unl.edu"]


async def test_a_held_circuit_has_its_expiry_and_an_expired_one_holds_nothing(booked: Asked) -> None:
    wish = WISH | {"rate_out_bps": 100_000_000, "hold_s": 120}
    held = await booked.ask("POST", "/v1/circuits", 201, json=wish)
    shown = await booked.ask("GET", "/v1/calendar?end=%2B1d")
    first = shown["reservations"][0]
    assert (first["circuit"], first["state"], first["held_until"]) == (held["circuit"], "held", held["held_until"])
    await booked.ask("DELETE", f"/v1/circuits/{held['circuit']}")
    shown = await booked.ask("GET", "/v1/calendar?end=%2B1d")
    assert held["circuit"] not in [one["circuit"] for one in shown["reservations"]]


async def test_a_test_with_load_has_its_resources_by_direction(booked: Asked) -> None:
    wanted = {"test": "by-hand", "far": {"site": "unl.edu"}, "rate_out_bps": 200_000_000, "seconds": 30, "by": "ann"}
    number = (await booked.ask("POST", "/v1/test-bookings", 201, json=wanted))["booking"]["number"]
    shown = await booked.ask("GET", "/v1/calendar?end=%2B1d")
    assert Calendar.model_validate(shown, extra="forbid").model_dump(mode="json") == shown
    (one,) = shown["tests"]
    names = [resource["key"] for resource in shown["resources"]]
    assert (one["number"], one["kind"], one["test"], one["circuit"]) == (number, "test", "by-hand", None)
    assert (one["rate_out_bps"], one["rate_in_bps"], one["by"]) == (200_000_000, 0, "ann")
    assert {names[place] for place in one["along"]} == {"hub-eth0", "host hub-1", "link up", "link unl"}
    assert [names[place] for place in one["against"]] == ["unl-eth1"]
    assert (await booked.ask("GET", f"/v1/calendar?begin={one['end']}&end=%2B1d"))["tests"] == []


async def test_without_the_part_that_books_tests_the_calendar_is_shown_all_the_same(
    booked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away() -> list[BookedTest]:
        raise PartAway("the circuits do not answer")

    monkeypatch.setattr(booked.runtime.circuits.tests, "booked", away)
    shown = await booked.ask("GET", "/v1/calendar?end=%2B1d")
    assert (shown["tests"], len(shown["reservations"])) == (None, 1)


async def test_windows_are_half_open(booked: Asked) -> None:
    (one,) = (await booked.ask("GET", "/v1/calendar?end=%2B1d"))["reservations"]
    for begin, end, count in (
        (one["end"], "%2B1h", 0),
        ("now", one["begin"], 0),
        (one["begin"], one["end"], 1),
    ):
        shown = await booked.ask("GET", f"/v1/calendar?begin={begin}&end={end}")
        assert len(shown["reservations"]) == count


async def test_maintenance_names_the_resources_that_it_closes(booked: Asked) -> None:
    shown = await booked.ask("GET", "/v1/calendar?begin=2027-03-01T00:00:00Z&end=%2B1d")
    (closed,) = shown["maintenance"]
    assert (closed["name"], closed["begin"]) == ("fibre-work", "2027-03-01T06:00:00Z")
    assert [shown["resources"][place]["key"] for place in closed["resources"]] == ["link unl"]
    assert (await booked.ask("GET", "/v1/calendar?begin=2027-03-01T08:00:00Z&end=%2B1d"))["maintenance"] == []


@pytest.mark.parametrize(
    "query",
    [
        "end=now",
        "begin=2027-03-02T00:00:00Z&end=2027-03-01T00:00:00Z",
        "end=%2B500d",
        "begin=tomorrow",
        "begin=2027-03-01T00:00:00",
        "end=2",
    ],
)
async def test_a_window_that_can_not_be_is_refused(booked: Asked, query: str) -> None:
    await booked.problem("GET", f"/v1/calendar?{query}", 400, "bad-request")


async def test_the_rates_in_use_are_means_of_minutes(booked: Asked) -> None:
    now_us = to_us(booked.runtime.clock.now())
    for second in range(60):
        use = CircuitUse(1, "unl.edu", 1_000_000, 250_000)
        at_us = now_us - now_us % 60_000_000 + second * 1_000_000
        booked.runtime.live.apply(TrafficSeen(at_us - 1_000_000, at_us, (), (), (), 0, (use,)))
    shown = await booked.ask("GET", "/v1/calendar/circuits/1")
    assert [(one["out_bps"], one["in_bps"]) for one in shown["steps"]] == [(8_000_000.0, 2_000_000.0)]
    assert shown["step_s"] == 60
    await booked.problem("GET", "/v1/calendar/circuits/99", 404, "not-found")
