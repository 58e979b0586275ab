"""Feeds, sites, tokens, subscriptions and pins over the api."""

from datetime import datetime, timedelta

import pytest

from downburst.domain.events import FeedsChanged, PinChanged, SitesChanged, SubscriptionsChanged
from downburst.domain.plans import Transport
from downburst.domain.receipts import Batch, Delays, FeedSecond, Settled
from downburst.foundation.clock import FakeClock, to_us
from unit.api.conftest import Asked


async def test_a_feed_from_its_making_to_its_end(hub: Asked) -> None:
    made = await hub.ask("POST", "/v1/feeds", 201, json={"feed": "IDS|DDPLUS", "class": "observation"})
    assert (made["class"], made["objective_ms"], made["unicast_leg"]) == ("observation", 2000.0, 1)
    assert hub.node.fake.feeds["IDS|DDPLUS"]["class"] == "observation"
    assert await hub.events.next() == FeedsChanged()
    path = "/v1/feeds/IDS%7CDDPLUS"
    assert await hub.ask("GET", path) == made
    changed = await hub.ask("PATCH", path, json={"retention_hours": 6})
    assert (changed["retention_hours"], changed["class"]) == (6, "observation")
    whole = await hub.ask("PUT", path, json={"class": "bulk"})
    assert (whole["retention_hours"], whole["unicast_leg"]) == (2.0, 1)
    await hub.ask("DELETE", path, 204)
    assert hub.node.fake.feeds == {}
    assert await hub.ask("GET", "/v1/feeds") == []
    await hub.problem("GET", path, 404, "unknown-feed")


async def test_a_feed_gets_a_deadline_and_its_outcomes_are_told(hub: Asked) -> None:
    made = await hub.ask("POST", "/v1/feeds", 201, json={"feed": "RADAR", "deadline_ms": 500})
    assert (made["deadline_ms"], hub.node.fake.feeds["RADAR"]["deadline_ms"]) == (500, 500)
    assert await hub.ask("GET", "/v1/feeds/RADAR/outcomes") == []
    with hub.runtime.ledger.transaction() as tx:
        for number, epoch in enumerate(("7", "8")):
            report = Settled("RADAR", epoch, "a.edu", 9, stored=5, late_at_hub=3, late_at_site=1)
            tx.measured.batches.load(Batch(f"b{number}", settled=(report,)))
    (told,) = await hub.ask("GET", "/v1/feeds/RADAR/outcomes")
    assert (told["site"], told["stored"], told["late_at_hub"], told["late_at_site"]) == ("a.edu", 10, 6, 2)
    changed = await hub.ask("PATCH", "/v1/feeds/RADAR", json={"deadline_ms": None})
    assert (changed["deadline_ms"], hub.node.fake.feeds["RADAR"]["deadline_ms"]) == (None, None)
    await hub.problem("GET", "/v1/feeds/RADIO/outcomes", 404, "unknown-feed")


async def test_seconds_of_a_feed_are_listed_newest_first_and_as_a_table(hub: Asked) -> None:
    await hub.ask("POST", "/v1/feeds", 201, json={"feed": "RADAR", "deadline_ms": 500})
    now = int(hub.runtime.clock.now().timestamp())
    delays = Delays(2, 4.0, -1.0, 5.0, 1, 0.5, {"40": 1, "n0": 1})
    seconds = [FeedSecond("RADAR", "a.edu", now - ago, 7, 2, 1, 0, 1, 120, delays) for ago in (0, 1, 700)]
    with hub.runtime.ledger.transaction() as tx:
        tx.measured.batches.load(Batch("b", seconds=(*seconds, FeedSecond("RADAR", "b.edu", now - 2))))
    told = await hub.ask("GET", "/v1/feeds/RADAR/seconds")
    assert [(one["second"] - now, one["site"]) for one in told] == [(0, "a.edu"), (-1, "a.edu"), (-2, "b.edu")]
    assert (told[0]["jitter_ms"], told[0]["delay"]["min_ms"], told[0]["delay"]["bound_ms"]) == (0.12, -1.0, 0.5)
    assert (told[2]["jitter_ms"], told[2]["delay"]) == (None, None)
    assert len(await hub.ask("GET", "/v1/feeds/RADAR/seconds?site=a.edu&since=1h")) == 3
    (first,) = await hub.ask("GET", "/v1/feeds/RADAR/seconds?limit=1")
    assert first == told[0]
    await hub.problem("GET", "/v1/feeds/RADIO/seconds", 404, "unknown-feed")


async def test_put_makes_a_feed_too(hub: Asked) -> None:
    assert (await hub.ask("PUT", "/v1/feeds/NEW", json={}))["class"] == "grid"


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ({"feed": "two words"}, "letters, digits and"),
        ({"feed": "A", "class": "gird"}, "'warning', 'observation', 'grid' or 'bulk'"),
        ({"feed": "A", "retention_hours": 0}, "retention_hours"),
        ({"feed": "A", "deadline_ms": 0}, "deadline_ms"),
        ({"feed": "A", "class": None}, "class can't be null"),
        ({"feed": "A", "tpyo": 1}, "tpyo"),
        ({}, "feed"),
    ],
)
async def test_a_bad_feed_is_refused_with_a_sentence(hub: Asked, body: dict[str, object], part: str) -> None:
    answer = await hub.client.post("/v1/feeds", json=body)
    assert answer.status_code == 400
    assert part in answer.json()["detail"]


async def test_a_body_that_is_no_json_is_refused(hub: Asked) -> None:
    await hub.problem(
        "POST", "/v1/feeds", 400, "bad-request", content=b"{", headers={"content-type": "application/json"}
    )


async def test_a_name_is_taken_once(hub: Asked) -> None:
    for kind, body in (("feeds", {"feed": "A"}), ("sites", {"site": "a"})):
        await hub.ask("POST", f"/v1/{kind}", 201, json=body)
        await hub.problem("POST", f"/v1/{kind}", 409, "already-there", json=body)


async def test_a_site_from_its_making_to_its_end(hub: Asked) -> None:
    body = {"site": "unl.edu", "place": {"text": "Lincoln", "latitude": 40.8, "longitude": -96.7}, "allow": ["NGRID"]}
    made = await hub.ask("POST", "/v1/sites", 201, json=body)
    assert (made["place"], made["allow"], made["multicast"]) == (body["place"], ["NGRID"], True)
    assert await hub.events.next() == SitesChanged()
    attachment = {"port": "ae1", "first_vlan": 10, "last_vlan": 20}
    changed = await hub.ask("PATCH", "/v1/sites/unl.edu", json={"circuit_attachment": attachment, "active": False})
    assert (changed["circuit_attachment"], changed["allow"]) == (attachment, ["NGRID"])
    assert hub.node.fake.sites["unl.edu"]["active"] is False
    cleared = await hub.ask("PATCH", "/v1/sites/unl.edu", json={"circuit_attachment": None})
    assert cleared["circuit_attachment"] is None
    await hub.ask("DELETE", "/v1/sites/unl.edu", 204)
    assert hub.node.fake.sites == {}
    await hub.problem("GET", "/v1/sites/unl.edu", 404, "not-found")


@pytest.mark.parametrize(
    "body",
    [
        {"site": "UNL"},
        {"site": "a", "place": {"latitude": 91}},
        {"site": "a", "ceiling_mbps_by_hour": [1.0]},
        {"site": "a", "circuit_attachment": {"port": "p", "first_vlan": 9, "last_vlan": 8}},
        {"site": "a", "allow": [""]},
    ],
)
async def test_a_bad_site_is_refused(hub: Asked, body: dict[str, object]) -> None:
    answer = await hub.client.post("/v1/sites", json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json")


async def test_the_number_of_data_connections_is_set_shown_and_told_to_the_node(hub: Asked) -> None:
    made = await hub.ask("POST", "/v1/sites", 201, json={"site": "unl.edu"})
    assert made["data_connections"] is None
    for number in (16, 0, None):
        changed = await hub.ask("PATCH", "/v1/sites/unl.edu", json={"data_connections": number})
        assert changed["data_connections"] == number
        assert hub.node.fake.sites["unl.edu"]["data_connections"] == number
    answer = await hub.client.patch("/v1/sites/unl.edu", json={"data_connections": 17})
    assert answer.status_code == 400
    assert "data_connections" in answer.json()["detail"]
    session = (await hub.ask("GET", "/v1/sites/unl.edu"))["session"]
    assert session == {"data_connections": None, "clock": None, "readings": {}}


async def test_a_token_is_told_once(hub: Asked, clock: FakeClock) -> None:
    await hub.ask("POST", "/v1/sites", 201, json={"site": "unl.edu"})
    made = await hub.ask("POST", "/v1/sites/unl.edu/tokens", 201, json={"hours": 2})
    assert made["token"].startswith(f"dbt1.{hub.node.ca_sha256}.")
    listed = (await hub.ask("GET", "/v1/sites/unl.edu"))["tokens"]
    assert "token" not in listed[0]
    with hub.runtime.ledger.transaction() as tx:
        assert tx.enrolment.tokens.of("unl.edu")[0].expires_at == clock.now() + timedelta(hours=2)
    await hub.problem("POST", "/v1/sites/none/tokens", 404, "not-found")
    await hub.problem("POST", "/v1/sites/unl.edu/tokens", 400, "bad-request", json={"hours": -1})


async def test_a_revoked_credential_leaves_the_node(hub: Asked) -> None:
    await hub.ask("POST", "/v1/sites", 201, json={"site": "unl.edu"})
    with hub.runtime.ledger.transaction() as tx:
        tx.enrolment.tokens.add("unl.edu", "s", lifetime=timedelta(hours=1))
        tx.enrolment.tokens.consume("s", "c" * 64, peer="p")
    await hub.node.refresh()
    (told,) = hub.node.fake.sites["unl.edu"]["credentials"]
    assert (told["sha256"], told["expires_us"], told["replaces"]) == ("c" * 64, None, None)
    await hub.problem("DELETE", f"/v1/sites/unl.edu/credentials?sha256={'d' * 64}", 404, "not-found")
    assert (await hub.ask("DELETE", "/v1/sites/unl.edu/credentials"))["revoked"] == 1
    assert hub.node.fake.sites["unl.edu"]["credentials"] == []


async def test_a_receiver_is_asked_for_another_credential(hub: Asked, clock: FakeClock) -> None:
    await hub.ask("POST", "/v1/sites", 201, json={"site": "unl.edu"})
    route = "/v1/sites/unl.edu/credentials/replacement"
    refused = await hub.problem("POST", route, 404, "not-found")
    assert "downburst sites token unl.edu" in refused["detail"]
    with hub.runtime.ledger.transaction() as tx:
        tx.enrolment.tokens.add("unl.edu", "s", lifetime=timedelta(hours=1), credential_lifetime=timedelta(days=90))
        tx.enrolment.tokens.consume("s", "c" * 64, peer="p")
    (before,) = (await hub.ask("GET", "/v1/sites/unl.edu"))["credentials"]
    assert datetime.fromisoformat(before["renews_at"]) == clock.now() + timedelta(days=60)
    answer = await hub.ask("POST", route, 202)
    assert answer == {"site": "unl.edu", "asked": 1, "connected": False, "renews": None}
    (told,) = hub.node.fake.sites["unl.edu"]["credentials"]
    assert told["renew_us"] == to_us(clock.now())
    made = replaced(hub)
    shown = {one["sha256"]: one for one in (await hub.ask("GET", "/v1/sites/unl.edu"))["credentials"]}
    assert shown["c" * 64]["renews_at"] is None
    assert shown["c" * 64]["replaced_at"] is not None
    assert (shown[made]["replaces"], shown[made]["asked_at"]) == ("c" * 64, None)


def replaced(hub: Asked) -> str:
    """Replaces the credential of the receiver of unl.edu, which presents the new one from now on."""
    with hub.runtime.ledger.transaction() as tx:
        made = tx.enrolment.credentials.replace("unl.edu", "c" * 64, "d" * 64, peer="p", lifetime=timedelta(days=90))
        assert tx.enrolment.credentials.taken("unl.edu", made.sha256)
    return made.sha256


async def test_subscriptions_come_and_go(hub: Asked) -> None:
    await site_and_feed(hub)
    body = {"feed": "NGRID", "pattern": "^SDUS", "not_pattern": "KOUN"}
    made = await hub.ask("POST", "/v1/sites/unl.edu/subscriptions", 201, json=body)
    assert hub.node.fake.sites["unl.edu"]["subscriptions"] == [body]
    assert await hub.ask("GET", "/v1/sites/unl.edu/subscriptions") == [made]
    assert await hub.ask("GET", "/v1/subscriptions") == [made]
    assert SubscriptionsChanged() in [await hub.events.next() for _ in range(3)]
    await hub.ask("DELETE", f"/v1/subscriptions/{made['id']}", 204)
    assert hub.node.fake.sites["unl.edu"]["subscriptions"] == []
    await hub.problem("DELETE", f"/v1/subscriptions/{made['id']}", 404, "not-found")


@pytest.mark.parametrize("field", ["pattern", "not_pattern"])
async def test_a_bad_pattern_is_refused_with_its_position(hub: Asked, field: str) -> None:
    await site_and_feed(hub)
    body = {"feed": "NGRID", field: "a(b"}
    problem = await hub.problem("POST", "/v1/sites/unl.edu/subscriptions", 422, "bad-pattern", json=body)
    assert (problem["position"], problem["field"]) == (2, field)
    assert await hub.ask("GET", "/v1/subscriptions") == []


async def test_the_allow_list_is_held(hub: Asked) -> None:
    await site_and_feed(hub, allow=["OTHER"])
    problem = await hub.problem("POST", "/v1/sites/unl.edu/subscriptions", 403, "refused", json={"feed": "NGRID"})
    assert "its allow list is OTHER" in problem["detail"]
    await hub.problem("POST", "/v1/sites/unl.edu/subscriptions", 404, "unknown-feed", json={"feed": "NONE"})


async def test_a_pin_is_kept_and_said(hub: Asked) -> None:
    await site_and_feed(hub)
    hub.events.offer(FeedsChanged())
    pin = await hub.ask("PUT", "/v1/feeds/NGRID/pin", json={"transport": "unicast", "by": "anna"})
    assert (pin["transport"], pin["by"]) == ("unicast", "anna")
    with hub.runtime.ledger.transaction() as tx:
        kept = tx.planning.pins.find("NGRID")
    assert kept is not None
    assert kept.transport is Transport.UNICAST
    await hub.ask("DELETE", "/v1/feeds/NGRID/pin", 204)
    seen = [await hub.events.next() for _ in range(5)]
    assert seen.count(PinChanged("NGRID")) == 2
    await hub.problem("PUT", "/v1/feeds/NONE/pin", 404, "unknown-feed", json={"transport": "unicast"})
    await hub.problem("PUT", "/v1/feeds/NGRID/pin", 400, "bad-request", json={"transport": "pigeon"})


async def test_a_pin_that_the_feed_can_never_follow_is_refused_with_the_reason(hub: Asked) -> None:
    await site_and_feed(hub)

    async def refusal(transport: str) -> str:
        problem = await hub.problem(
            "PUT", "/v1/feeds/NGRID/pin", 422, "impossible-pin", json={"transport": transport}
        )
        return str(problem["detail"])

    assert await refusal("dynamic-circuit") == (
        "NGRID can't be pinned to dynamic-circuit: no circuit on demand is offered; describe the offer: "
        "downburst circuits offers set"
    )
    await hub.ask("PUT", "/v1/feeds/NGRID/pin", json={"transport": "multicast"})
    await hub.ask("POST", "/v1/sites/unl.edu/subscriptions", 201, json={"feed": "NGRID"})
    assert "no circuit is reserved to unl.edu; reserve one" in await refusal("static-circuit")
    assert "only unl.edu takes it, and a group needs two sites" in await refusal("multicast")
    with hub.runtime.ledger.transaction() as tx:
        kept = tx.planning.pins.find("NGRID")
    assert kept is not None
    assert kept.transport is Transport.MULTICAST, "a refusal changes nothing"
    await hub.ask("POST", "/v1/sites", 201, json={"site": "psu.edu"})
    await hub.ask("POST", "/v1/sites/psu.edu/subscriptions", 201, json={"feed": "NGRID"})
    await hub.ask("PUT", "/v1/feeds/NGRID/pin", json={"transport": "multicast"})


async def test_a_pin_to_circuits_on_demand_counts_offers_between_the_relays_of_a_site(hub: Asked) -> None:
    await site_and_feed(hub)
    await hub.ask("POST", "/v1/sites/unl.edu/subscriptions", 201, json={"feed": "NGRID"})
    for name, behind in (("campus", []), ("depot", ["campus"])):
        await hub.ask("PUT", f"/v1/relays/{name}", json={"address": f"{name}:7379", "sites": behind})
        port = {"port": f"{name}-eth1", "site": name, "rate_bps": 10**8, "interface": "eth1", "underlay": "192.0.2.9"}
        await hub.ask("POST", "/v1/ports", 201, json=port)
    offer = {"hub_port": "depot-eth1", "ports": ["campus-eth1"], "rates_bps": [10**7]}
    await hub.ask("PUT", "/v1/circuit-offers/core", json=offer)
    pinned = {"transport": "dynamic-circuit"}
    problem = await hub.problem("PUT", "/v1/feeds/NGRID/pin", 422, "impossible-pin", json=pinned)
    assert "no circuit on demand is offered to unl.edu" in problem["detail"]
    await hub.ask("PUT", "/v1/relays/campus", json={"address": "campus:7379", "sites": ["unl.edu"]})
    await hub.ask("PUT", "/v1/feeds/NGRID/pin", json=pinned)


async def test_a_pin_to_multicast_is_refused_where_the_settings_switch_it_off(hub: Asked) -> None:
    await site_and_feed(hub)
    hub.runtime.settings = hub.runtime.settings.model_copy(
        update={"multicast": hub.runtime.settings.multicast.model_copy(update={"enabled": False})}
    )
    problem = await hub.problem("PUT", "/v1/feeds/NGRID/pin", 422, "impossible-pin", json={"transport": "multicast"})
    assert "switched off for it in this hub's settings" in problem["detail"]


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/v1/none", 404), ("PATCH", "/v1/feeds", 405)])
async def test_what_is_no_route_is_a_problem_too(hub: Asked, method: str, path: str, status: int) -> None:
    answer = await hub.client.request(method, path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")


async def site_and_feed(hub: Asked, **site: object) -> None:
    await hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    await hub.ask("POST", "/v1/sites", 201, json={"site": "unl.edu", **site})
