"""Circuits on demand over the API: offers, providers and orders, the use of a day, rights, and each refusal."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from downburst.domain.circuits.signs import CircuitsChanged
from downburst.domain.ordering import DemandOrder, OrderStep, OrderTimes, OrderUse
from downburst.foundation.clock import FakeClock
from unit.api.conftest import Asked

OFFER = "/v1/circuit-offers/campus"
PROVIDER = "/v1/circuit-providers/surf"
ORDERS = "/v1/circuit-orders"
WANTED: dict[str, Any] = {"hub_port": "ae1", "ports": ["unl-ae1"], "rates_bps": [100_000_000, 500_000_000]}
FILES = {
    "certificate": "/etc/nsi/hub.pem",
    "key": "/etc/nsi/hub.key",
    "authorities": "/etc/nsi/ca.pem",
}
SURF: dict[str, Any] = {
    "url": "https://nsi.example.net/provider",
    "provider_nsa": "urn:ogf:network:example.net:2026:nsa",
    "requester_nsa": "urn:ogf:network:hub.example:2026:nsa",
    "dialect": "p2ps",
    **FILES,
}


@pytest.fixture
async def ported(hub: Asked) -> Asked:
    """A hub with a port and a site's port."""
    await hub.ask("POST", "/v1/sites", 201, json={"site": "unl.edu"})
    for number, port in enumerate(({"port": "ae1"}, {"port": "unl-ae1", "site": "unl.edu"}), start=1):
        place = {"interface": "eth0", "underlay": f"192.0.2.{number}"}
        await hub.ask("POST", "/v1/ports", 201, json=port | place | {"rate_bps": 10**9})
    await changes(hub)
    return hub


async def changes(hub: Asked) -> int:
    """The announced changes since the last look."""
    hub.runtime.bus.publish(CircuitsChanged(-1))
    found = 0
    while (event := await hub.events.next()) != CircuitsChanged(-1):
        found += event == CircuitsChanged()
    return found


def ordered(hub: Asked, clock: FakeClock, **fields: Any) -> DemandOrder:
    times = OrderTimes(clock.now(), clock.now() + timedelta(minutes=5))
    order = DemandOrder(0, "campus", "NGRID", "unl.edu", 100_000_000, "a burst is due", times)
    with hub.runtime.ledger.transaction() as tx:
        return tx.planning.orders.add(replace(order, **fields))


async def test_an_offer_is_put_changed_listed_and_removed(ported: Asked, clock: FakeClock) -> None:
    made = await ported.ask("PUT", OFFER, json=WANTED)
    assert made == {
        "offer": "campus",
        "provider": "linux",
        **WANTED,
        "price": None,
        "setup_s": 60.0,
        "least_hold_s": 0.0,
        "circuit_hours_a_day": None,
        "orders_a_day": None,
        "created_at": "2026-01-01T00:00:00Z",
        "measured": None,
        "used_today": {"circuit_hours": 0.0, "orders": 0},
    }
    assert await ported.ask("GET", "/v1/circuit-offers") == {"offers": [made]}
    clock.advance(60)
    full = {"price": 0.5, "setup_s": 1, "least_hold_s": 30, "circuit_hours_a_day": 2.5, "orders_a_day": 0}
    changed = await ported.ask("PUT", OFFER, json=WANTED | full)
    assert changed == made | full == await ported.ask("GET", OFFER)
    assert await ported.ask("PUT", OFFER, json=WANTED) == made, "values that are left out take their default"
    await ported.ask("DELETE", OFFER, 204)
    assert await ported.ask("GET", "/v1/circuit-offers") == {"offers": []}
    assert await changes(ported) == 4
    kept = await ported.ask("GET", "/v1/audit", params={"kind": "circuit offer"})
    assert [one["action"] for one in kept["items"]] == ["removed", "changed", "changed", "added"]
    for method in ("GET", "DELETE"):
        problem = await ported.problem(method, OFFER, 404, "not-found")
        assert "`downburst circuits offers list` shows all" in problem["detail"]
    assert await changes(ported) == 0


async def test_a_port_stays_while_an_offer_names_it(ported: Asked) -> None:
    await ported.ask("PUT", OFFER, json=WANTED)
    before = await ported.ask("GET", "/v1/ports")
    for port in ("ae1", "unl-ae1"):
        problem = await ported.problem("DELETE", f"/v1/ports/{port}", 409, "already-there")
        assert (
            problem["detail"] == f"port {port!r} is named by offers of circuits: campus; change or remove them first"
        )
    assert await ported.ask("GET", "/v1/ports") == before
    await ported.ask("DELETE", OFFER, 204)
    await ported.ask("DELETE", "/v1/ports/unl-ae1", 204)


@pytest.mark.parametrize(
    ("given", "status", "said"),
    [
        ({"hub_port": "nowhere"}, 404, "there is no port 'nowhere'"),
        ({"hub_port": "unl-ae1", "ports": ["ae1"]}, 400, "port ae1 is the hub's"),
        ({"hub_port": "x" * 64}, 400, "hub_port: "),
        ({"ports": ["ae1"]}, 400, "ae1 is named for both ends"),
        ({"ports": []}, 400, "ports: "),
        ({"ports": ["unl-ae1"] * 2}, 400, "a port is named twice"),
        ({"ports": ["x"] * 1_001}, 400, "ports: "),
        ({"ports": "unl-ae1"}, 400, "ports: "),
        ({"rates_bps": []}, 400, "rates_bps: "),
        ({"rates_bps": [10**6 + n for n in range(33)]}, 400, "rates_bps: "),
        ({"rates_bps": [999_999]}, 400, "rates_bps.0: "),
        ({"rates_bps": [10**13]}, 400, "rates_bps.0: "),
        ({"rates_bps": [2 * 10**9]}, 400, "lowest rate is above the rate of a port"),
        ({"rates_bps": [5 * 10**8, 10**8]}, 400, "not in ascending order"),
        ({"rates_bps": ["fast"]}, 400, "rates_bps.0: "),
        ({"provider": "surf"}, 404, "there is no provider 'surf'"),
        ({"provider": ""}, 400, "provider: "),
        ({"price": -1}, 400, "price: "),
        ({"price": 1_001}, 400, "price: "),
        ({"setup_s": 86_401}, 400, "setup_s: "),
        ({"setup_s": None}, 400, "setup_s: "),
        ({"least_hold_s": -0.1}, 400, "least_hold_s: "),
        ({"circuit_hours_a_day": 24_001}, 400, "circuit_hours_a_day: "),
        ({"orders_a_day": 1.5}, 400, "orders_a_day: "),
        ({"orders_a_day": 100_001}, 400, "orders_a_day: "),
        ({"colour": "red"}, 400, "colour: "),
    ],
)
async def test_an_impossible_offer_is_refused_and_changes_nothing(
    ported: Asked, given: dict[str, Any], status: int, said: str
) -> None:
    code = {400: "bad-request", 404: "not-found"}[status]
    problem = await ported.problem("PUT", OFFER, status, code, json=WANTED | given)
    assert said in problem["detail"]
    assert await ported.ask("GET", "/v1/circuit-offers") == {"offers": []}
    assert await changes(ported) == 0


@pytest.mark.parametrize("member", ["price", "setup_s", "least_hold_s", "circuit_hours_a_day"])
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
async def test_no_value_is_infinite_or_no_number(ported: Asked, member: str, number: str) -> None:
    body = json.dumps(WANTED)[:-1] + f', "{member}": {number}}}'
    kind = {"content-type": "application/json"}
    await ported.problem("PUT", OFFER, 400, "bad-request", content=body, headers=kind)
    assert await ported.ask("GET", "/v1/circuit-offers") == {"offers": []}


@pytest.mark.parametrize("name", ["-campus", "x" * 64, "cam pus", "%2E%2E", "c%C3%A4mpus"])
async def test_names_have_one_form(ported: Asked, name: str) -> None:
    for path, body in ((f"/v1/circuit-offers/{name}", WANTED), (f"/v1/circuit-providers/{name}", SURF)):
        answer = await ported.client.put(path, json=body)
        assert answer.status_code in (400, 404, 405), answer.text
    assert await ported.ask("GET", "/v1/circuit-offers") == {"offers": []}
    assert await ported.ask("GET", "/v1/circuit-providers") == {"providers": []}


async def test_an_offer_shows_its_set_up_times_and_the_use_of_today(ported: Asked, clock: FakeClock) -> None:
    clock.advance(86_400 - 1_800)
    await ported.ask("PUT", OFFER, json=WANTED)
    ordered(ported, clock)
    long_ago = OrderTimes(clock.now() - timedelta(hours=2), clock.now(), ended_at=clock.now() - timedelta(hours=1))
    ordered(ported, clock, step=OrderStep.ENDED, times=long_ago)
    yesterday = await ported.ask("GET", OFFER)
    assert yesterday["used_today"] == {"circuit_hours": 1.0, "orders": 2}
    clock.advance(3_600)
    assert (await ported.ask("GET", OFFER))["used_today"] == {"circuit_hours": 0.5, "orders": 0}, "from midnight on"
    up = OrderTimes(clock.now(), clock.now(), up_at=clock.now() + timedelta(seconds=3))
    ordered(ported, clock, step=OrderStep.UP, times=up)
    ordered(ported, clock, step=OrderStep.REFUSED)
    ordered(ported, clock, step=OrderStep.WOULD)
    ordered(ported, clock, offer="other")
    clock.advance(360)
    shown = await ported.ask("GET", OFFER)
    assert shown["used_today"] == {"circuit_hours": pytest.approx(0.7), "orders": 2}
    assert shown["measured"] == {"count": 1, "median_s": 3.0, "p90_s": 3.0}
    assert (await ported.ask("GET", "/v1/circuit-offers"))["offers"] == [shown]
    metrics = (await ported.client.get("/metrics")).text.splitlines()
    assert 'downburst_offer_today_orders{offer="campus"} 2' in metrics
    assert 'downburst_offer_setup_median_seconds{offer="campus"} 3.0' in metrics
    (reserved,) = [line for line in metrics if line.startswith("downburst_offer_today_reserved_seconds{")]
    assert float(reserved.rpartition(" ")[2]) == pytest.approx(0.7 * 3_600)


async def test_an_offer_stays_while_an_order_is_open(ported: Asked, clock: FakeClock) -> None:
    await ported.ask("PUT", OFFER, json=WANTED)
    order = ordered(ported, clock)
    problem = await ported.problem("DELETE", OFFER, 409, "already-there")
    assert f"order {order.number}" in problem["detail"]


async def test_a_provider_is_put_changed_listed_and_removed(ported: Asked) -> None:
    made = await ported.ask("PUT", PROVIDER, json=SURF)
    service = "http://services.ogf.org/nsi/2013/12/descriptions/EVTS.A-GOLE"
    assert made == {"provider": "surf", **SURF, "reply_to": None, "service_type": service}
    assert await ported.ask("GET", "/v1/circuit-providers") == {"providers": [made]}
    proxy = {"url": "http://127.0.0.1:8080/", "dialect": "none", "service_type": "urn:x", "reply_to": "https://a/"}
    none = dict.fromkeys(FILES)
    changed = await ported.ask("PUT", PROVIDER, json=SURF | none | proxy)
    assert changed == made | none | proxy == await ported.ask("GET", PROVIDER)
    await ported.ask("PUT", OFFER, json=WANTED | {"provider": "surf"})
    problem = await ported.problem("DELETE", PROVIDER, 409, "already-there")
    assert "needed by offer 'campus'" in problem["detail"]
    await ported.ask("DELETE", OFFER, 204)
    await ported.ask("DELETE", PROVIDER, 204)
    assert await changes(ported) == 5
    for method in ("GET", "DELETE"):
        await ported.problem(method, PROVIDER, 404, "not-found")
    kept = await ported.ask("GET", "/v1/audit", params={"kind": "circuit provider"})
    assert [one["action"] for one in kept["items"]] == ["removed", "changed", "added"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"url": "nsi.example.net"}, "is not https://HOST/PATH"),
        ({"url": "http://nsi.example.net/"}, "without TLS"),
        ({"url": "https://u:p@nsi.example.net/"}, "is not https://HOST/PATH"),
        ({"url": "https://nsi.example.net:99999/"}, "can't be read"),
        ({"url": "x" * 501}, "url: "),
        (dict.fromkeys(FILES), "no certificate of ours"),
        ({"provider_nsa": "urn:x"}, "the provider's NSA 'urn:x'"),
        ({"requester_nsa": "urn:ogf:network:a b"}, "the requester's NSA"),
        ({"provider_nsa": "u" * 256}, "provider_nsa: "),
        ({"dialect": "soap"}, "dialect: "),
        ({"key": None}, "belong together"),
        ({"key": "hub.key"}, "'hub.key' is not an absolute path"),
        ({"certificate": "/etc/\nhub.pem"}, "is not an absolute path"),
        ({"authorities": "/" + "x" * 1_024}, "authorities: "),
        ({"reply_to": "not an address"}, "the replyTo"),
        ({"service_type": "a b"}, "the service type"),
        ({"colour": "red"}, "colour: "),
    ],
)
async def test_an_impossible_provider_is_refused_and_changes_nothing(
    ported: Asked, given: dict[str, Any], said: str
) -> None:
    problem = await ported.problem("PUT", PROVIDER, 400, "bad-request", json=SURF | given)
    assert said in problem["detail"]
    assert await ported.ask("GET", "/v1/circuit-providers") == {"providers": []}
    assert await changes(ported) == 0


async def test_the_names_of_drivers_are_no_providers(ported: Asked) -> None:
    for name in ("linux", "declared"):
        problem = await ported.problem("PUT", f"/v1/circuit-providers/{name}", 400, "bad-request", json=SURF)
        assert "own nodes" in problem["detail"]


async def test_orders_are_read_in_pages_and_by_their_objects(ported: Asked, clock: FakeClock) -> None:
    begun = clock.now()
    up_at, ended_at = begun + timedelta(seconds=2), begun + timedelta(seconds=60)
    first = ordered(
        ported,
        clock,
        step=OrderStep.ENDED,
        circuit=7,
        outcome="12 products",
        times=OrderTimes(begun, ended_at, up_at, ended_at, ended_at),
        use=OrderUse(0.4, 12, 3.5),
    )
    second = ordered(ported, clock, feed="WARN", site="a.edu", offer="other")
    third = ordered(ported, clock, step=OrderStep.REFUSED, outcome="the port has no rate left")
    numbers = [third.number, second.number, first.number]
    whole = await ported.ask("GET", ORDERS)
    assert [one["order"] for one in whole["orders"]] == numbers
    assert whole["next"] is None
    page = await ported.client.get(ORDERS, params={"limit": 2})
    assert [one["order"] for one in page.json()["orders"]] == numbers[:2]
    rest = await ported.ask("GET", ORDERS, params={"limit": 2, "before": page.json()["next"]})
    assert rest == {"orders": whole["orders"][2:], "next": None} == await ported.ask("GET", page.links["next"]["url"])
    for name, value in (("offer", "other"), ("feed", "WARN"), ("site", "a.edu")):
        found = await ported.ask("GET", ORDERS, params={name: value})
        assert [one["order"] for one in found["orders"]] == [second.number]
    assert await ported.ask("GET", f"{ORDERS}/{first.number}") == {
        "order": first.number,
        "offer": "campus",
        "feed": "NGRID",
        "site": "unl.edu",
        "rate_bps": 100_000_000,
        "reason": "a burst is due",
        "step": "ended",
        "circuit": 7,
        "setup_s": 2.0,
        "outcome": "12 products",
        "ordered_at": "2026-01-01T00:00:00Z",
        "up_at": "2026-01-01T00:00:02Z",
        "until": "2026-01-01T00:01:00Z",
        "released_at": "2026-01-01T00:01:00Z",
        "ended_at": "2026-01-01T00:01:00Z",
        "used_share": 0.4,
        "products": 12,
        "gained_ms": 3.5,
    }
    refused = await ported.ask("GET", f"{ORDERS}/{third.number}")
    assert [refused[name] for name in ("circuit", "up_at", "setup_s", "used_share", "products")] == [None] * 5


@pytest.mark.parametrize(
    "asked", ["?limit=0", "?limit=1001", "?before=0", "?before=x", f"?before={2**60}", f"?feed={'x' * 65}", "/0"]
)
async def test_impossible_questions_for_orders_are_refused(ported: Asked, asked: str) -> None:
    await ported.problem("GET", f"{ORDERS}{asked}", 400, "bad-request")


async def test_an_unknown_order_is_refused(ported: Asked) -> None:
    problem = await ported.problem("GET", f"{ORDERS}/9", 404, "not-found")
    assert problem["detail"] == "there is no order 9; `downburst circuits orders` shows all"


async def test_a_circuit_names_its_provider_with_the_driver_nsi_alone(ported: Asked) -> None:
    circuit: dict[str, Any] = {"sites": [{"site": "unl.edu"}], "rate_out_bps": 10**8}
    for given, status, code, said in (
        ({"provider": "surf"}, 400, "bad-request", "driver linux asks no provider"),
        ({"driver": "declared", "provider": "surf"}, 400, "bad-request", "driver declared asks no provider"),
        ({"driver": "nsi"}, 400, "bad-request", "driver nsi asks a provider"),
        ({"driver": "nsi", "provider": "x" * 64}, 400, "bad-request", "provider: "),
        ({"driver": "nsi", "provider": "surf"}, 404, "not-found", "there is no provider 'surf'"),
    ):
        problem = await ported.problem("POST", "/v1/circuits", status, code, json=circuit | given)
        assert said in problem["detail"]
    assert await ported.ask("GET", "/v1/circuits") == []
    plain = await ported.ask("POST", "/v1/circuits", 201, json=circuit)
    assert (plain["driver"], plain["provider"]) == ("linux", None)
