"""LDM peers with valid messages that make no sense, at both ports of a node and beside a whole hub.

Random stories print their seed; `DOWNBURST_SEED` replays one.
"""

import os
import random
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import RunningHub, Starter, until
from kit.ldm import absurd
from kit.ldm.hub import ask, described, holds, hub_at, serve, sources, stored
from kit.ldm.wire import EXP, HEREIS, HIYA, IDS, NGRID, OK, Asked, Product, Serving, Wire, connected, klass
from kit.node import HubNode
from kit.patience import wait_for
from kit.ports import free_port

STORIES = 150
HOST = r"^(127\.0\.0\.1|localhost)$"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubNode]:
    """A hub with two feeds of LDM's."""
    with hub_at(tmp_path / "hub") as made:
        yield made


def test_whatever_peers_claim_the_node_lives_and_other_feeds_hold_what_they_held(hub: HubNode) -> None:
    seed = int(os.environ.get("DOWNBURST_SEED", time.time_ns()))
    print(f"replay: DOWNBURST_SEED={seed} pytest -k test_whatever_peers_claim")
    rng = random.Random(seed)
    address = serve(hub, accept=[{"feeds": "IDS|DDPLUS", "pattern": ".*", "host": HOST}])
    hub.put("NGRID", "before", b"1")
    for _ in range(STORIES):
        with connected(address) as wire, suppress(OSError, AssertionError):
            if rng.random() < 0.7:
                wire.reply(wire.call(HIYA, klass([(IDS, ".*")])))
            for _ in range(rng.randrange(6)):
                wire.send(absurd.message(rng))
    sound = Product.of("sound", b"pushed", feed=IDS)
    with connected(address) as wire:
        push(wire, sound, feeds=IDS)
        wait_for(
            "a sound product is taken", lambda: hub.do("deliveries", feed="TEXT", product_id="sound")["products"]
        )
    assert described(hub, "sound", "TEXT")["created_us"] == sound.created_us
    hub.put("NGRID", "after", b"2")
    assert stored(hub) == 2, "nothing got into a feed that the peer may not push to"


def test_a_source_s_upstream_puts_nothing_into_feeds_that_it_was_not_asked_for(hub: HubNode) -> None:
    upstream = Serving()
    union = Product.of("union", b"of all types", feed=0xFFFF_FFFF)
    upstream.put(union, Product.of("grid", b"of another type"), Product.of("last", b"sound", feed=IDS))
    ask(hub, upstream.address, feeds="IDS|DDPLUS")
    wait_for("the last one", lambda: hub.do("deliveries", feed="TEXT", product_id="last")["products"])
    assert (stored(hub), stored(hub, "TEXT")) == (0, 2)
    assert sources(hub)[0]["dropped"] == 1
    upstream.close()


def test_a_product_of_all_types_goes_by_the_rights_of_its_sender(hub: HubNode) -> None:
    address = serve(hub, accept=[{"feeds": "IDS|DDPLUS", "pattern": ".*", "host": HOST}])
    with connected(address) as wire:
        push(wire, Product.of("a", b"claims every type", feed=0xFFFF_FFFF), feeds=IDS)
        holds(hub, 1, "TEXT")
    assert stored(hub) == 0


def test_a_product_that_no_feed_can_hold_is_refused_before_a_byte_is_kept(hub: HubNode, tmp_path: Path) -> None:
    hub.feed("NGRID", duplicate_rule="signature", ldm_feed_type="NGRID", max_product_bytes=1_000_000)
    address = serve(hub, accept=[{"feeds": "NGRID", "pattern": ".*", "host": HOST}])
    large = Product.of("large", bytes(2_000_000))
    own = Product.of("downburst:heartbeat:1", os.urandom(900_000))
    with connected(address) as wire:
        push(wire, large, own, Product.of("small", b"1"))
        holds(hub, 1)
    spool = list(tmp_path.rglob("ldm/spool/*"))
    assert spool == [], "it is completely removed"
    faults = [hub.wait_event(event="fault")["sentence"]]
    assert "it has 2000000 bytes, and feed NGRID takes at most 1000000" in faults[0]


def test_a_violation_names_peer_and_value_and_comes_once_a_minute(hub: HubNode) -> None:
    address = serve(hub, accept=[{"feeds": "NGRID", "pattern": ".*", "host": HOST}])
    for micros in (-1, 1_000_000):
        with connected(address) as wire:
            wire.reply(wire.call(HIYA, klass([(NGRID, ".*")])))
            wire.call(HEREIS, absurd.description(micros=micros, size=0))
            assert wire.record() == b"", "its connection ends"
    told = hub.wait_event(event="ldm-violation")
    assert (told["peer"], told["source"], told["site"]) == (told["peer"], None, "near")
    assert "and -1 µs, which no clock from 1970 to 2038 shows" in told["sentence"]
    hub.put("NGRID", "later", b"1")
    assert [one for one in hub.events if one.get("event") == "ldm-violation"][1:] == []


def test_a_long_request_makes_no_long_lines(hub: HubNode) -> None:
    address = serve(hub)
    with connected(address) as wire:
        code, _ = Asked(wire).feed_me(*[(NGRID, "\x01" * 240 + f"|{number}") for number in range(31)])
        assert code == OK
        wait_for("it is served", lambda: hub.do("status")["ldm"]["peers"][0]["what"] == "feedme")
        assert len(hub.do("status")["ldm"]["peers"][0]["class"]) < 1_000


@pytest.fixture
def whole(starter: Starter, monkeypatch: pytest.MonkeyPatch) -> tuple[RunningHub, str]:
    """A whole hub that serves LDMs, and its address for them."""
    door = f"127.0.0.1:{free_port()}"
    settings = {"ALARMS__LOOK_S": "0.5", "ALARMS__END_AFTER_S": "1", "LDM__LISTEN": f'["{door}"]'}
    for name, value in settings.items():
        monkeypatch.setenv(f"DOWNBURST_{name}", value)
    hub = starter.hub()
    hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID", "ldm_feed_type": "NGRID", "duplicate_rule": "signature"})
    hub.ask("POST", "/v1/feeds", 201, json={"feed": "TEXT"})
    accept = {"feeds": "NGRID|EXP", "host": HOST, "pattern": ".*"}
    hub.ask("POST", "/v1/ldm/accepts", 201, json=accept)
    return hub, door


def test_a_hostile_ldm_peer_is_named_and_no_site_and_no_other_feed_notices(
    whole: tuple[RunningHub, str], starter: Starter
) -> None:
    hub, door = whole
    hub.ask("POST", "/v1/sites", 201, json={"site": "honest"})
    hub.ask("POST", "/v1/sites/honest/subscriptions", 201, json={"feed": "TEXT"})
    starter.receiver(hub, "honest", str(hub.ask("POST", "/v1/sites/honest/tokens", 201)["token"]))
    until("the honest site is let in", lambda: site(hub)["connected"])
    hub.ask("PUT", "/v1/feeds/TEXT/products/before", 201, content=b"1")
    until("it has the first product", lambda: site(hub)["stored"] == 1)
    seed = int(os.environ.get("DOWNBURST_SEED", time.time_ns()))
    print(f"replay: DOWNBURST_SEED={seed} pytest -k test_a_hostile_ldm_peer")
    rng = random.Random(seed)
    for _ in range(STORIES):
        with connected(door) as wire, suppress(OSError, AssertionError):
            wire.reply(wire.call(HIYA, klass([(NGRID | EXP, ".*")])))
            wire.send(absurd.message(rng))
            wire.call(HEREIS, absurd.described(rng) + bytes(64))
    with connected(door) as wire:
        wire.reply(wire.call(HIYA, klass([(NGRID, ".*")])))
        wire.call(HEREIS, absurd.description(micros=-1, size=0))
        assert wire.record() == b""
    named = until("an alarm names the peer", lambda: alarms(hub))
    assert {one["kind"] for one in named} == {"peer-violation"}, named
    assert all("127.0.0.1" in one["sentence"] or "localhost" in one["sentence"] for one in named)
    hub.ask("PUT", "/v1/feeds/TEXT/products/after", 201, content=b"2")
    until("the honest site has what came since", lambda: site(hub)["stored"] == 2)
    feeds = {one["feed"]: one for one in hub.ask("GET", "/v1/overview")["feeds"]}
    assert feeds["TEXT"]["products"] == 2, feeds["TEXT"]
    assert hub.ask("GET", "/healthz", 200)
    assert {one["kind"] for one in alarms(hub)} == {"peer-violation"}
    assert hub.stop() == 0


def site(hub: RunningHub) -> dict[str, Any]:
    """The only site, as the overview shows it."""
    (found,) = hub.ask("GET", "/v1/overview")["sites"]
    return dict(found)


def alarms(hub: RunningHub) -> list[dict[str, Any]]:
    return list(hub.ask("GET", "/v1/alarms")["items"])


def push(wire: Wire, *products: Product, feeds: int = NGRID) -> None:
    assert wire.reply(wire.call(HIYA, klass([(feeds, ".*")])))[:4] == struct.pack(">I", OK)
    for one in products:
        wire.call(HEREIS, one.encoded() + (one.content or b"") + bytes(-one.size % 4))
