"""Traces of a product: its place, its holders and the reasons for its absence, from a hub with real sites."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

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
    # The site reports its completion a moment before its receipt comes.
    _wait_for(hub, "nam.grib2", "here", "stored")
    stored = until("its receipt", lambda: _with_a_receipt(_states(hub, "nam.grib2")["here"]))
    states = _states(hub, "nam.grib2")
    assert states["picky"]["state"] == "not-subscribed"
    assert "it does not match '^other'" in states["picky"]["reason"]
    assert "the NOT pattern 'grib2$' excludes it" in states["choosy"]["reason"]
    assert (states["never"]["state"], "ever enrolled" in states["never"]["reason"]) == ("waiting", True)
    _stages_are_known(hub, stored)
    _file_names_lead_back(starter, hub)

    here.send_signal(signal.SIGTERM)
    here.wait(20)
    until("the hub saw it go", lambda: not _connected(hub, "here"))
    _put(hub, "nam2.grib2", b"while it was away")
    away = _wait_for(hub, "nam2.grib2", "here", "waiting")
    assert "the site is offline since" in away["reason"]
    assert _states(hub, "nam.grib2")["here"]["state"] == "stored"
    token_file = starter.home / "sites/here/token"
    starter.receiver(hub, "here", token_file.read_text())
    late = _wait_for(hub, "nam2.grib2", "here", "stored")
    assert "backfill lane" in late["reason"] or late["receipt"] is None


@pytest.mark.all
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
    factors = delivery["factors"]
    assert [one["ms"] for one in factors] == sorted((one["ms"] for one in factors), reverse=True), factors
    assert {one["factor"] for one in factors} >= {"origin", "queue", "transport", "disk", "clock"}, factors
    assert {one["factor"]: one["ms"] for one in factors}["transport"] == stages["transfer"]
    arrived = hub.command("why", "nam.grib2", "here")
    assert arrived.returncode == 0, arrived.stderr
    listed = [line.split()[2] for line in arrived.stdout.splitlines() if " ms  " in line or " s  " in line]
    # `why` asks the tracer too, and the file may have been reported since.
    assert {one["factor"] for one in factors} <= set(listed) <= {*LATER, *(one["factor"] for one in factors)}, listed
    why = hub.command("why", "nam.grib2", "choosy")
    assert why.returncode == 0, why.stderr
    assert "choosy: not-subscribed: its subscription does not include this id of NGRID: the NOT pattern" in why.stdout
    unknown = hub.command("trace", "no.such.product")
    assert (unknown.returncode, unknown.stderr.count("\n")) == (2, 1)


def _file_names_lead_back(starter: Starter, hub: RunningHub) -> None:
    (name,) = until("the file is in", lambda: list(starter.received("here")))
    found = hub.ask("GET", "/v1/products/trace", params={"product": str(Path("/somewhere/received") / name)})
    assert (found["read_as"], found["products"][0]["product_id"]) == ("file", "nam.grib2")


LATER = ("tcp", "action")
PRODUCTS = 91


@pytest.mark.all
def test_every_product_is_traced_to_its_file_however_late_that_stood(starter: Starter) -> None:
    hub = starter.hub()
    hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    token = _site(hub, "here")
    site = starter.receiver(hub, "here", token)
    until("the site is connected", lambda: _connected(hub, "here"))
    ids = [f"product {number}" for number in range(PRODUCTS)]
    for product in ids:
        _put(hub, product, product.encode())
    _all_traced(hub, ids)
    # A file where the feed's directory should be: no product gets its file until it is gone.
    obstacle = starter.home / "sites" / "here" / "received" / "NGRID"
    written = {path.name for path in obstacle.iterdir()}
    assert len(written) == PRODUCTS
    obstacle.rename(obstacle.with_name("put aside"))
    obstacle.touch()
    for product in ("held up 1", "held up 2"):
        _put(hub, product, b"content")
        unreported = _unreported(hub, product)
        step = "nothing to do; look again in some seconds"
        assert (unreported["next_action"], unreported["cause"]) == (step, None), "it is not known to be missing"
    obstacle.unlink()
    _all_traced(hub, ["held up 1", "held up 2"])
    # A receiver that ends between the receipt and the file reports the file when it is back.
    obstacle.rename(obstacle.with_name("put aside too"))
    obstacle.touch()
    _put(hub, "held up 3", b"content")
    _unreported(hub, "held up 3")
    site.send_signal(signal.SIGKILL)
    site.wait(20)
    obstacle.unlink()
    starter.receiver(hub, "here", token)
    _all_traced(hub, ["held up 3"])
    # Files that local software removes were written all the same.
    for path in obstacle.iterdir():
        path.unlink()
    _all_traced(hub, [*ids, "held up 1", "held up 2", "held up 3"])


def _unreported(hub: RunningHub, product: str) -> dict[str, Any]:
    """The trace of a product whose receipt came without its file."""

    def there() -> dict[str, Any] | None:
        delivery = _states(hub, product)["here"]
        said = "its file is not yet reported (normally within 2.0 s)" in delivery["reason"]
        return delivery if said else None

    return until(f"the receipt of {product}", there)


def _all_traced(hub: RunningHub, products: list[str]) -> None:
    """Waits until each of them has the time of its file."""
    missing = set(products)

    def traced() -> bool:
        for product in sorted(missing):
            delivery = _states(hub, product)["here"]
            stages = {stage["stage"]: stage["ms"] for stage in delivery["timing"]["stages"]}
            if delivery["state"] == "stored" and stages.get("action") is not None:
                assert "not yet reported" not in delivery["reason"]
                missing.discard(product)
        return not missing

    try:
        until("all files are reported", traced)
    except AssertionError:
        pytest.fail(f"{len(missing)} of {len(products)} lack their file: {_states(hub, min(missing))['here']}")
