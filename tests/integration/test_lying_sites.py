"""A whole hub beside a site that lies: its session ends, an alarm names it, and other sites notice nothing."""

import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import RunningHub, Starter, until
from kit.stranger import FEED_START, FRONTIER, REFUSED, Client, frame, receipt

LATE = 2**62


@pytest.fixture
def hub(starter: Starter, monkeypatch: pytest.MonkeyPatch) -> RunningHub:
    for name, value in (("LOOK_S", "0.5"), ("END_AFTER_S", "1")):
        monkeypatch.setenv(f"DOWNBURST_ALARMS__{name}", value)
    hub = starter.hub()
    hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    return hub


def test_finding_01_a_claim_beyond_all_numbers_ends_one_session_and_touches_no_other_site(
    hub: RunningHub, starter: Starter
) -> None:
    starter.receiver(hub, "honest", token_of(hub, "honest"))
    until("the honest site is let in", lambda: is_connected(hub, "honest"))
    liar = Client(hub.sites).secure()
    secret = liar.enrol(token_of(hub, "liar"))
    epoch = epoch_told_to(liar)
    put(hub, 1)
    until("the first product is stored at the honest site", lambda: stored(hub, "honest") == 1)
    for settled_to in (2**64 - 1, 2**63, 2**63 - 1, 10**9):
        liar.say(frame(FRONTIER, ["NGRID", epoch, settled_to, 0, None, None]))
        reason = refusal(liar)
        assert str(settled_to) in reason, reason
        liar.close()
        liar = Client(hub.sites).secure().hello("liar", secret)
        epoch_told_to(liar)
    liar.close()
    put(hub, 2)
    until("the second product is stored at the honest site", lambda: stored(hub, "honest") == 2)
    alarm = until("an alarm names the liar", lambda: next(iter(alarms(hub, "liar")), None))
    assert f"`settled_to` of a frontier is {2**64 - 1}" in alarm["sentence"]
    assert alarms(hub, "honest") == []
    starter.receiver(hub, "new", token_of(hub, "new"))
    until("the site that is new is let in", lambda: is_connected(hub, "new"))
    put(hub, 3)
    until("a site that is new has what came since", lambda: stored(hub, "new") == 1)
    assert hub.stop() == 0


def test_finding_02_a_receipt_of_no_clock_costs_no_other_site_its_figures(hub: RunningHub, starter: Starter) -> None:
    starter.receiver(hub, "honest", token_of(hub, "honest"))
    until("the honest site is let in", lambda: is_connected(hub, "honest"))
    token = token_of(hub, "liar")
    for number, stamp in enumerate((LATE, -1, -(2**63), 2**63 - 1), start=1):
        liar = Client(hub.sites).secure()
        if number == 1:
            secret = liar.enrol(token)
        else:
            liar.hello("liar", secret)
        epoch = epoch_told_to(liar)
        put(hub, number)
        # Stored, live, by unicast: the latencies of this second are of both sites.
        liar.say(receipt("NGRID", epoch, 1, stamps=(10**15, stamp, 10**15, 10**15)))
        assert f"`hub_stored` of a receipt is the stamp {stamp}" in refusal(liar)
        until(f"product {number} is counted at the honest site", partial(has_stored, hub, "honest", number))
        liar.close()
    until("an alarm names the liar", lambda: alarms(hub, "liar"))
    assert alarms(hub, "honest") == []
    assert list((hub.directory / "batches").glob("*.bad")) == []


def test_what_a_site_says_of_a_feed_that_it_may_not_take_counts_nowhere_and_tells_it_nothing(hub: RunningHub) -> None:
    hub.ask("POST", "/v1/feeds", 201, json={"feed": "SECRET"})
    for number in range(1, 4):
        put(hub, number, feed="SECRET")
    put(hub, 1)
    until("the hub knows its feeds", lambda: len(hub.ask("GET", "/v1/status")["feeds"]) == 2)
    secret = next(int(feed["epoch"]) for feed in hub.ask("GET", "/v1/status")["feeds"] if feed["feed"] == "SECRET")
    hub.ask("POST", "/v1/sites", 201, json={"site": "liar", "allow": ["NGRID"]})
    hub.ask("POST", "/v1/sites/liar/subscriptions", 201, json={"feed": "NGRID"})
    liar = Client(hub.sites).secure()
    liar.enrol(str(hub.ask("POST", "/v1/sites/liar/tokens", 201)["token"]))
    epoch = epoch_told_to(liar)
    now_us = time.time_ns() // 1_000
    # Stored, live, by unicast; then rejected; then products of its log; last, a number that the feed did not give.
    for feed, of, number, outcome in (("SECRET", secret, 1, 0), ("SECRET", secret, 2, 2), ("NGRID", epoch, 1, 0)):
        liar.say(receipt(feed, of, number, outcome=outcome, stamps=(now_us, now_us, now_us, now_us)))
    for feed, of, number in (("SECRET", secret, 2), ("SECRET", secret, 10**9), ("NGRID", epoch, 1)):
        liar.say(frame(FRONTIER, [feed, of, number, 0, None, None]))
    until("what it has of its own feed is counted", lambda: stored(hub, "liar") > 0)
    liar_now = until("and how far it is", lambda: settled_site(hub, "liar", "NGRID", 1))
    assert {feed["feed"] for feed in liar_now["feeds"]} == {"NGRID"}, liar_now
    assert liar_now["stored"] == 1, liar_now
    assert liar_now["connected"], "a number of a feed that it may not take is judged"
    assert hub.ask("GET", "/v1/deliveries", params={"feed": "SECRET"})["items"] == []
    assert alarms(hub, "liar") == []
    liar.close()


@pytest.mark.all
def test_finding_01_a_batch_that_lies_there_from_before_stops_no_start(starter: Starter) -> None:
    hub = starter.hub()
    hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    token_of(hub, "honest")
    token_of(hub, "liar")
    assert hub.stop() == 0
    leave_batch(hub.directory / "batches" / "0123456789abcdef-00000001.json")
    hub = starter.hub(data_dir=hub.directory)
    until("the batch is brought in", lambda: stored(hub, "honest") == 4)
    assert stored(hub, "liar") == 0
    faults = hub.ask("GET", "/v1/overview")["faults"]
    assert any("are impossible and were set aside" in fault["sentence"] for fault in faults), faults
    assert hub.stop() == 0


def token_of(hub: RunningHub, site: str) -> str:
    """Registers a site that subscribes to everything; returns its token."""
    hub.ask("POST", "/v1/sites", 201, json={"site": site})
    hub.ask("POST", f"/v1/sites/{site}/subscriptions", 201, json={"feed": "NGRID"})
    return str(hub.ask("POST", f"/v1/sites/{site}/tokens", 201)["token"])


def epoch_told_to(client: Client) -> int:
    return next(int(body[1]) for kind, body in client.frames() if kind == FEED_START)


def refusal(client: Client) -> str:
    return next(str(body[1]) for kind, body in client.frames() if kind == REFUSED)


def settled_site(hub: RunningHub, name: str, feed: str, settled_to: int) -> dict[str, Any] | None:
    """The site as the overview shows it, once it has reached this number in the feed."""
    shown: list[dict[str, Any]] = hub.ask("GET", "/v1/overview")["sites"]
    site = next(one for one in shown if one["site"] == name)
    return site if any((one["feed"], one["settled_to"]) == (feed, settled_to) for one in site["feeds"]) else None


def put(hub: RunningHub, number: int, *, feed: str = "NGRID") -> None:
    hub.ask("PUT", f"/v1/feeds/{feed}/products/{number}", 201, content=str(number).encode())


def stored(hub: RunningHub, site: str) -> int:
    sites = hub.ask("GET", "/v1/overview")["sites"]
    return sum(int(one["stored"]) for one in sites if one["site"] == site)


def is_connected(hub: RunningHub, site: str) -> bool:
    return any(one["connected"] for one in hub.ask("GET", "/v1/overview")["sites"] if one["site"] == site)


def has_stored(hub: RunningHub, site: str, products: int) -> bool:
    return stored(hub, site) == products


def alarms(hub: RunningHub, site: str) -> list[dict[str, Any]]:
    found = hub.ask("GET", "/v1/alarms")
    return [one for one in found["items"] if one["site"] == site and one["kind"] == "site-violation"]


def leave_batch(path: Path) -> None:
    sound = {"feed": "NGRID", "epoch": "7", "site": "honest", "settled_to": 4, "stored": 4, "stored_bytes": 4}
    sound |= {"duplicates": 0, "rejected": 0, "expired": 0}
    lost = {"feed": "NGRID", "epoch": "7", "sequence": 5, "site": "liar", "outcome": "expired", "at_us": 2**62}
    settled = [sound, {**sound, "site": "liar", "settled_to": 2**64 - 1}]
    path.write_text(
        json.dumps({"batch": path.stem, "sketches": [], "exceptions": [lost], "settled": settled}), encoding="utf-8"
    )
