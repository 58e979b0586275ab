"""Products that are sent once more, subscriptions that begin in the past, and order, with the real node."""

from pathlib import Path

import pytest

from integration.conftest import RunningHub, Starter, until
from integration.test_hub_api import overview_site, put

FEED = "IDS|DDPLUS"
SITE = "a.example"


@pytest.fixture
def hub(starter: Starter) -> RunningHub:
    running = starter.hub()
    running.ask("POST", "/v1/feeds", 201, json={"feed": FEED, "class": "observation"})
    running.ask("POST", "/v1/sites", 201, json={"site": SITE})
    return running


def subscribe(hub: RunningHub, **wish: object) -> None:
    hub.ask("POST", f"/v1/sites/{SITE}/subscriptions", 201, json={"feed": FEED, **wish})


def connect(starter: Starter, hub: RunningHub) -> None:
    starter.receiver(hub, SITE, hub.ask("POST", f"/v1/sites/{SITE}/tokens", 201)["token"])
    until("the site connects", lambda: overview_site(hub, SITE)["connected"])


def test_files_that_were_lost_at_the_site_come_again_once(starter: Starter, hub: RunningHub) -> None:
    subscribe(hub)
    connect(starter, hub)
    for number in range(6):
        put(hub, f"{'keep' if number % 2 else 'lost'} {number}", b"x" * (number * 40_000))
    until("all files are there", lambda: len(starter.received(SITE)) == 6)
    received = starter.home / "sites" / SITE / "received"
    kept = {path: path.stat().st_mtime_ns for path in received.rglob("*keep*")}
    lost = sorted(received.rglob("*lost*"))
    assert len(lost) == 3
    contents = {path: path.read_bytes() for path in lost}
    for path in lost:
        path.unlink()

    options = ("--site", SITE, "--feed", FEED, "--from", "1h", "--pattern", "^lost", "--wait", "--limit", "60")
    sent = hub.command("resend", *options)
    assert (sent.returncode, sent.stderr) == (0, "")
    assert "is done: 3 products, 240000 bytes" in sent.stdout
    until("the files are back", lambda: len(starter.received(SITE)) == 6)
    assert {path: path.read_bytes() for path in lost} == contents
    assert {path: path.stat().st_mtime_ns for path in kept} == kept, "the others were not touched"
    listed = hub.command("resends", "list", "--json")
    assert '"state": "done"' in listed.stdout


def test_a_resend_waits_for_its_site(starter: Starter, hub: RunningHub) -> None:
    subscribe(hub)
    put(hub, "early", b"before the site came")
    body = {"site": SITE, "feed": FEED, "from": "1h"}
    made = hub.ask("POST", "/v1/resends", 201, json=body)
    assert made["state"] == "waiting"
    connect(starter, hub)
    until("it is done", lambda: hub.ask("GET", f"/v1/resends/{made['id']}")["state"] == "done")
    until("the file is there", lambda: starter.received(SITE))
    assert list(starter.received(SITE).values()) == [b"before the site came"]


def test_a_subscription_from_the_past_brings_what_matched_no_other(starter: Starter, hub: RunningHub) -> None:
    subscribe(hub, pattern="^one")
    connect(starter, hub)
    for name in ("one 1", "two 1", "one 2", "two 2"):
        put(hub, name, name.encode())
    until("the first pattern's are there", lambda: len(starter.received(SITE)) == 2)
    subscribe(hub, start="1h")
    until("all are there", lambda: len(starter.received(SITE)) == 4)
    (backfill,) = hub.ask("GET", "/v1/resends")
    done = until("it is done", lambda: _done(hub, backfill["id"]))
    assert (done["kind"], done["products"]) == ("backfill", 2)


def test_products_that_grew_too_old_expire(starter: Starter, hub: RunningHub, tmp_path: Path) -> None:
    subscribe(hub)
    connect(starter, hub)
    put(hub, "first", b"1")
    until("it is there", lambda: starter.received(SITE))
    hub.ask("PATCH", f"/v1/sites/{SITE}", json={"active": False})
    until("the site is away", lambda: not overview_site(hub, SITE)["connected"])
    put(hub, "second", b"2")
    for wish in hub.ask("GET", f"/v1/sites/{SITE}/subscriptions"):
        hub.ask("DELETE", f"/v1/subscriptions/{wish['id']}", 204)
    subscribe(hub, max_age_s=0.001)
    hub.ask("PATCH", f"/v1/sites/{SITE}", json={"active": True})
    connect(starter, hub)
    until("nothing is awaited", lambda: _settled_to(hub) == 2)
    assert list(starter.received(SITE).values()) == [b"1"]


def _done(hub: RunningHub, number: int) -> dict[str, object] | None:
    found: dict[str, object] = hub.ask("GET", f"/v1/resends/{number}")
    return found if found["state"] == "done" else None


def _settled_to(hub: RunningHub) -> int:
    (site,) = hub.ask("GET", "/v1/overview")["sites"]
    return max((int(feed["settled_to"]) for feed in site["feeds"]), default=0)
