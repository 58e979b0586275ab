"""Where is product X, who has it, why not: asked of a whole hub with real sites."""

import json
import os
import signal
from pathlib import Path
from typing import Any

from integration.conftest import RunningHub, Starter, until


def _site(hub: RunningHub, name: str, pattern: str = ".*") -> str:
    hub.ask("POST", "/v1/sites", 201, json={"site": name})
    hub.ask("POST", f"/v1/sites/{name}/subscriptions", 201, json={"feed": "NGRID", "pattern": pattern})
    token: str = hub.ask("POST", f"/v1/sites/{name}/tokens", 201)["token"]
    return token


def _put(hub: RunningHub, product_id: str, content: bytes) -> None:
    hub.ask("PUT", f"/v1/feeds/NGRID/products/{product_id}", 201, content=content)


def _states(hub: RunningHub, product: str) -> dict[str, dict[str, Any]]:
    found = hub.ask("GET", "/v1/products/trace", params={"product": product})
    return {delivery["site"]: delivery for delivery in found["products"][0]["deliveries"]}


def _wait_for(hub: RunningHub, product: str, site: str, state: str) -> dict[str, Any]:
    def there() -> dict[str, Any] | None:
        delivery = _states(hub, product)[site]
        return delivery if delivery["state"] == state else None

    return until(f"{product} is {state} for {site}: {_states(hub, product)[site]}", there)


def _connected(hub: RunningHub, site: str) -> bool:
    overview = hub.ask("GET", "/v1/overview")
    return any(one["site"] == site and one["connected"] for one in overview["sites"])


def test_a_product_is_traced_through_every_state_that_sites_can_be_in(starter: Starter) -> None:
    hub = starter.hub()
    hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    here = starter.receiver(hub, "here", _site(hub, "here"))
    starter.receiver(hub, "picky", _site(hub, "picky", "^other"))
    _site(hub, "never")
    wish = {"feed": "NGRID", "pattern": "^nam", "not_pattern": "grib2$"}
    hub.ask("POST", "/v1/sites", 201, json={"site": "choosy"})
    hub.ask("POST", "/v1/sites/choosy/subscriptions", 201, json=wish)
    until("two sites are connected", lambda: _connected(hub, "here") and _connected(hub, "picky"))
    _put(hub, "nam.grib2", os.urandom(200_000))
    # The site says that it is done with it a moment before its receipt comes.
    _wait_for(hub, "nam.grib2", "here", "stored")
    stored = until("its receipt", lambda: _with_a_receipt(_states(hub, "nam.grib2")["here"]))
    states = _states(hub, "nam.grib2")
    assert states["picky"]["state"] == "not-subscribed"
    assert "it does not match '^other'" in states["picky"]["reason"]
    assert "the NOT pattern 'grib2$' takes it out" in states["choosy"]["reason"]
    assert (states["never"]["state"], "ever enrolled" in states["never"]["reason"]) == ("waiting", True)
    _stages_are_known(hub, stored)
    _file_names_lead_back(starter, hub)

    here.send_signal(signal.SIGTERM)
    here.wait(20)
    until("the hub saw it go", lambda: not _connected(hub, "here"))
    _put(hub, "nam2.grib2", b"while it was away")
    away = _wait_for(hub, "nam2.grib2", "here", "waiting")
    assert "the site is away since" in away["reason"]
    assert _states(hub, "nam.grib2")["here"]["state"] == "stored"
    token_file = starter.home / "sites/here/token"
    starter.receiver(hub, "here", token_file.read_text())
    late = _wait_for(hub, "nam2.grib2", "here", "stored")
    assert "backfill lane" in late["reason"] or late["receipt"] is None


def test_what_left_the_log_before_a_site_came_is_expired_and_listed(starter: Starter) -> None:
    hub = starter.hub()
    hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID", "retention_hours": 0.0003})
    receiver = starter.receiver(hub, "away", _site(hub, "away"))
    until("the site is connected", lambda: _connected(hub, "away"))
    _put(hub, "first", b"1")
    _wait_for(hub, "first", "away", "stored")
    receiver.send_signal(signal.SIGTERM)
    receiver.wait(20)
    until("the hub saw it go", lambda: not _connected(hub, "away"))
    _put(hub, "lost", b"2")
    gone = _wait_for(hub, "lost", "away", "expired")
    assert "ask its origin" in gone["next_action"]
    starter.receiver(hub, "away", (starter.home / "sites/away/token").read_text())
    listed = until("the loss is listed", lambda: hub.ask("GET", "/v1/deliveries", params={"site": "away"})["items"])
    assert [(item["product_id"], item["state"], item["kept"]) for item in listed] == [("lost", "expired", False)]
    printed = hub.command("deliveries", "--missing", "--site", "away", "--json")
    assert [item["product_id"] for item in json.loads(printed.stdout)] == ["lost"]
    assert _states(hub, "lost")["away"]["state"] == "expired"


def _with_a_receipt(delivery: dict[str, Any]) -> dict[str, Any] | None:
    return delivery if delivery["timing"]["stages"] else None


def _stages_are_known(hub: RunningHub, delivery: dict[str, Any]) -> None:
    stages = {stage["stage"]: stage["ms"] for stage in delivery["timing"]["stages"]}
    assert all(stages[name] is not None for name in ("origin", "queue", "transfer", "store")), delivery
    total = stages["queue"] + stages["transfer"] + stages["store"]
    assert abs(total - delivery["timing"]["distribution_ms"]) < 0.01
    printed = hub.command("trace", "nam.grib2")
    assert printed.returncode == 0, printed.stderr
    for word in ("nam.grib2", "here", "stored", "not-subscribed", "waiting", "downburst sites token never"):
        assert word in printed.stdout.replace("\n", " ")
    why = hub.command("why", "nam.grib2", "choosy")
    assert why.returncode == 0, why.stderr
    assert "choosy: not-subscribed: its subscription does not want this id of NGRID: the NOT pattern" in why.stdout
    unknown = hub.command("trace", "no.such.product")
    assert (unknown.returncode, unknown.stderr.count("\n")) == (2, 1)


def _file_names_lead_back(starter: Starter, hub: RunningHub) -> None:
    (name,) = until("the file stands", lambda: list(starter.received("here")))
    found = hub.ask("GET", "/v1/products/trace", params={"product": str(Path("/somewhere/received") / name)})
    assert (found["read_as"], found["products"][0]["product_id"]) == ("file", "nam.grib2")
