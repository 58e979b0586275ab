"""A leaf joins and another leaves a multipoint circuit that carries a feed: nothing is lost, and the rest goes on."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.busy import Stalls
from kit.capabilities import needs, skip
from kit.circuit_bed import network_of
from kit.circuit_hub import SITE
from kit.leaf_scene import NEAR, NEW, RATE_BPS, LeafHub, Load, leaf_hub

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.alone]

MOST_PAUSE_S = 0.2
MOST_STALLED_S = 0.1
"""Of the machine itself, in a span whose pauses are judged."""
AROUND = 100
"""Products before and after a change, two seconds of them."""


def test_leaves_join_and_leave_while_the_others_carry_the_feed(tmp_path: Path) -> None:
    needs("root", "netns", "veth", "bridge", "htb", "vxlan")
    with leaf_hub(tmp_path) as hub:
        number = hub.reserve(RATE_BPS, to=(SITE, NEAR))["circuit"]
        hub.wait_state(number, "active")
        hub.hub.ask("PUT", "/v1/feeds/CONDUIT/pin", json={"transport": "static-circuit"})
        with Load(hub) as load:
            before = {site: hub.wait_riding(site, number) for site in (SITE, NEAR)}
            _judge(hub, load, (SITE, NEAR), lambda: _join_in_vain(hub, number))
            _judge(hub, load, (SITE, NEAR), lambda: _join(hub, number))
            assert {site: hub.riding(site, number) for site in before} == before, "the same connections"
            _judge(hub, load, (SITE, NEW), lambda: _leave(hub, number))
            assert hub.riding(SITE, number) == before[SITE]
            load.more(AROUND)
        for site in hub.sites.values():
            load.wait_complete(site)
        states = [event["state"] for event in hub.shown(number)["events"]]
        assert set(states[states.index("active") :]) == {"active"}, "it was active throughout"
        hub.hub.ask("DELETE", f"/v1/circuits/{number}")
        hub.wait_state(number, "cancelled")
        hub.wait_untouched()


def _join_in_vain(hub: LeafHub, number: int) -> None:
    """The site does not permit the interface: the hub's end is put back."""
    before = network_of(hub.lab, "hub", hub.interface("hub"))
    hub.hub.ask("PATCH", "/v1/ports/new-eth0", json={"interface": "eth9"})
    refused = hub.refused("POST", f"/v1/circuits/{number}/leaves", json={"site": NEW})
    assert f"circuit {number} stays as it was: the site lets circuits use eth0, not eth9" in refused.json()["detail"]
    hub.hub.ask("PATCH", "/v1/ports/new-eth0", json={"interface": "eth0"})
    assert hub.shown(number)["sites"] == [SITE, NEAR]
    assert network_of(hub.lab, "hub", hub.interface("hub")) == before


def _join(hub: LeafHub, number: int) -> None:
    added = hub.hub.ask("POST", f"/v1/circuits/{number}/leaves", json={"site": NEW})
    assert added["sites"] == [SITE, NEAR, NEW]
    hub.wait_riding(NEW, number)
    rows = [row for row in hub.shown(number)["measurements"] if row["site"] == NEW]
    assert rows, "probes come first"
    assert all(row["enough"] for row in rows)


def _leave(hub: LeafHub, number: int) -> None:
    left = hub.hub.ask("DELETE", f"/v1/circuits/{number}/leaves/{NEAR}")
    assert left["sites"] == [SITE, NEW]
    assert {row["site"] for row in hub.shown(number)["measurements"]} == {SITE, NEW}
    # Its rate is free: the hub's port has room for three copies of this one beside the other circuit.
    tried = hub.hub.ask("POST", "/v1/circuits?dry_run=true", json=_wish(100_000_000 - 2 * RATE_BPS))
    assert tried["done"] is False


def _wish(rate_bps: int) -> dict[str, object]:
    return {"sites": [{"site": NEAR}], "rate_out_bps": rate_bps}


def _judge(hub: LeafHub, load: Load, sites: tuple[str, ...], change: Callable[[], None]) -> None:
    """Makes a change; the sites must not pause for long, from two seconds before to two seconds after it."""
    with Stalls() as stalls:
        since_s = time.time()
        load.more(AROUND)
        change()
        load.more(AROUND)
        until_s = time.time()
    pauses_s = {site: load.longest_pause_s(hub.sites[site], since_s, until_s) for site in sites}
    print(f"longest pauses: {pauses_s}; the machine itself stalled for {stalls.lost_s():.3f} s")
    if stalls.lost_s() > MOST_STALLED_S and max(pauses_s.values()) >= MOST_PAUSE_S:
        skip(f"the machine stalled for {stalls.lost_s():.2f} s: too busy to judge a pause")
    assert max(pauses_s.values()) < MOST_PAUSE_S
