"""A hub among LDMs: it requests, serves and accepts pushes, over TCP, with peers that share no code with it."""

import hashlib
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.ldm.hub import ask, described, holds, hub_at, products, serve, sources, stored
from kit.ldm.wire import (
    ALTERNATE,
    BADPATTERN,
    DONT_SEND,
    EXP,
    FEEDME,
    HEREIS,
    HIYA,
    IDS,
    IS_ALIVE,
    NGRID,
    NULLPROC,
    OK,
    PROGRAM,
    RECLASS,
    Asked,
    Product,
    Serving,
    Wire,
    connected,
    klass,
    take_class,
)
from kit.node import HubNode
from kit.patience import wait_for


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubNode]:
    """A hub with two feeds of LDM's."""
    with hub_at(tmp_path / "hub") as made:
        yield made


@pytest.fixture
def upstream() -> Iterator[Serving]:
    """An LDM that serves."""
    made = Serving()
    yield made
    made.close()


def test_what_an_ldm_sends_is_stored_once_with_who_made_it_and_when(hub: HubNode, upstream: Serving) -> None:
    made = Product.of("SDUS54 KFWD", b"a product", origin="nws.gov_v_relay.ucar.edu", sequence=77)
    large = Product.of("large", os.urandom(3_000_001))
    upstream.put(made, large, made)
    ask(hub, upstream.address)
    holds(hub, 2)
    found = described(hub, "SDUS54 KFWD")
    assert found["created_us"] == made.created_us
    assert found["origin"] == "nws.gov_v_127.0.0.1"
    assert described(hub, "large")["size"] == 3_000_001
    wait_for("the duplicate", lambda: sources(hub)[0]["duplicates"] == 1)
    assert sources(hub)[0]["mode"] == "primary"
    assert upstream.requests[0][0] == [(NGRID, ".*")]


def test_a_restart_goes_on_behind_what_was_stored(hub: HubNode, upstream: Serving) -> None:
    first, later = products("first", 20), products("later", 20)
    upstream.put(*first)
    ask(hub, upstream.address)
    holds(hub, 20)
    hub.stop()
    upstream.put(*later)
    hub.start()
    ask(hub, upstream.address)
    holds(hub, 40)
    assert upstream.requests[0][1] is None
    assert upstream.requests[1][1] == first[-1].signature
    assert sources(hub)[0]["duplicates"] == 0


def test_a_killed_hub_loses_and_doubles_nothing(hub: HubNode, upstream: Serving) -> None:
    sent = products("p", 400)
    upstream.put(*sent[:200])
    ask(hub, upstream.address)
    wait_for("some products", lambda: stored(hub) > 50)
    hub.kill()
    upstream.put(*sent[200:])
    hub.start()
    ask(hub, upstream.address)
    holds(hub, 400)


def test_two_upstreams_bring_a_product_once_and_one_is_enough(hub: HubNode, upstream: Serving) -> None:
    second = Serving()
    both = products("both", 50)
    upstream.put(*both)
    second.put(*both)
    ask(hub, upstream.address, second.address)
    wait_for("both asked", lambda: len(upstream.requests) == len(second.requests) == 1)
    assert [upstream.requests[0][2], second.requests[0][2]] == [0xFFFF_FFFF, ALTERNATE]
    holds(hub, 50)
    upstream.close()
    wait_for("that one is away", lambda: not sources(hub)[0]["connected"])
    alone = products("alone", 10)
    second.put(*alone, both[0])
    holds(hub, 60)
    wait_for("what is known is declined", lambda: second.declined >= 1)
    wait_for("why", lambda: "can't be reached" in sources(hub)[0]["reason"])
    second.close()


def test_refusals_are_told_in_words(hub: HubNode, upstream: Serving) -> None:
    def denied(wire: Wire, xid: int, _: bytes) -> bool:
        wire.answer(xid, struct.pack(">I", RECLASS) + klass([]))
        return False

    upstream.reply = denied
    ask(hub, upstream.address)
    assert "ask its administrator for an ALLOW line" in wait_for("why", lambda: sources(hub)[0]["reason"])
    hub.wait_event(event="ldm-source", state="refused")
    hub.wait_told("refuses FEEDME")


def test_a_smaller_class_is_taken(hub: HubNode, upstream: Serving) -> None:
    asked: list[bytes] = []

    def reclass(wire: Wire, xid: int, _: bytes) -> bool:
        wire.answer(xid, struct.pack(">I", RECLASS) + klass([(NGRID, "^A")]))
        again = wire.record()
        asked.append(again[40:])
        wire.answer(struct.unpack(">I", again[:4])[0], struct.pack(">II", OK, 1))
        return True

    upstream.reply = reclass
    upstream.put(Product.of("A", b"1"))
    ask(hub, upstream.address)
    holds(hub, 1)
    assert take_class(asked[0])[0] == [(NGRID, "^A")]


def test_what_no_feed_takes_is_passed_over_and_said(hub: HubNode, upstream: Serving) -> None:
    upstream.put(Product.of("of another type", b"1", feed=EXP), Product.of("mine", b"2"))
    ask(hub, upstream.address, feeds="ANY")
    holds(hub, 1)
    assert sources(hub)[0]["passed_over"] == 1
    hub.wait_told("feeds set FEED --ldm-feed-type EXP")


def test_an_ldm_is_served_by_priority_and_goes_on_where_it_was(hub: HubNode) -> None:
    address = serve(hub)
    contents = {f"grid {number}": os.urandom(2_001) for number in range(20)}
    for ident, content in contents.items():
        hub.put("NGRID", ident, content, created_us=1_700_000_000_000_000)
    hub.put("TEXT", "a warning", b"storm", created_us=1_700_000_000_000_000)
    with connected(address) as wire:
        asked = Asked(wire)
        assert asked.feed_me((NGRID | IDS, ".*"))[0] == OK
        got = asked.take(21)
    assert got[0].ident == "a warning"
    assert {one.ident: one.content for one in got[1:]} == contents
    assert got[0].signature == hashlib.md5(b"storm", usedforsecurity=False).digest()
    assert (got[0].created_us, got[0].origin, got[1].feed) == (1_700_000_000_000_000, "hub.test", NGRID)
    hub.put("NGRID", "later", b"later")
    with connected(address) as wire:
        asked = Asked(wire)
        asked.feed_me((NGRID | IDS, ".*"), resume=got[10].signature)
        while "later" not in (names := [one.ident for one in asked.got]):
            asked.take(len(names) + 1)
    # The arrival of the warning is uncertain: it was sent a moment before, and had no answer.
    assert [name for name in names if name != "a warning"] == [*(one.ident for one in got[11:]), "later"]


def test_what_was_answered_is_counted_and_remembered(hub: HubNode) -> None:
    address = serve(hub)
    for number in range(5):
        hub.put("NGRID", f"p {number}", b"%d" % number)
    with connected(address) as wire:
        asked = Asked(wire)
        asked.feed_me((NGRID, ".*"))
        asked.take(5)
        record = wire.record()
        assert struct.unpack(">I", record[20:24]) == (NULLPROC,)
        peer = hub.do("status")["ldm"]["peers"][0]
        assert (peer["site"], peer["products"], peer["answered"]) == ("near", 5, 0)
        wire.answer(struct.unpack(">I", record[:4])[0])
        wait_for("the answer", lambda: hub.do("status")["ldm"]["peers"][0]["answered"] == 5)
        assert hub.do("status")["ldm"]["peers"][0]["answered_us"] > 0
    ended = hub.wait_event(event="ldm-peer", state="closed")
    assert (ended["site"], ended["what"]) == ("near", "feedme")


def test_a_killed_hub_knows_how_far_a_peer_came(hub: HubNode) -> None:
    address = serve(hub)
    for number in range(5):
        hub.put("NGRID", f"grid {number}", b"%d" % number)
    hub.put("TEXT", "a warning", b"storm")
    with connected(address) as wire:
        asked = Asked(wire)
        asked.feed_me((NGRID | IDS, ".*"))
        asked.take(6)
        wire.answer(struct.unpack(">I", wire.record()[:4])[0])
        wait_for("the answer", lambda: hub.do("status")["ldm"]["peers"][0]["answered"] == 6)
        warning = asked.got[0].signature
        wait_for("the place", (hub.directory / "data" / "ldm" / "cursors.json").exists)
    hub.kill()
    hub.start()
    hub.put("NGRID", "later", b"later")
    with connected(serve(hub)) as wire:
        asked = Asked(wire)
        asked.feed_me((NGRID | IDS, ".*"), resume=warning)
        assert [one.ident for one in asked.take(1)] == ["later"], "the grids were answered for"


def test_an_alternate_is_asked_for_each_product(hub: HubNode) -> None:
    address = serve(hub)
    for number in range(4):
        hub.put("NGRID", f"p {number}", os.urandom(100 + number))
    with connected(address) as wire:
        asked = Asked(wire)
        asked.feed_me((NGRID, ".*"), mode=ALTERNATE)
        got = asked.take(2, lambda one: one.ident in ("p 1", "p 3"))
    assert [one.ident for one in got] == ["p 1", "p 3"]


def test_descriptions_alone_and_a_live_product(hub: HubNode) -> None:
    address = serve(hub)
    hub.put("NGRID", "before", b"1")
    with connected(address) as wire:
        asked = Asked(wire)
        assert asked.notify_me((NGRID, ".*"))[0] == OK
        assert asked.take(1)[0].ident == "before"
        hub.put("NGRID", "live", b"22")
        live = asked.take(2)[1]
    assert (live.ident, live.size, live.content) == ("live", 2, None)


@pytest.mark.parametrize(
    ("hosts", "specs", "code", "kept"),
    [
        (r"^10\.", [(NGRID, ".*")], RECLASS, []),
        (".*", [(NGRID | EXP, ".*")], RECLASS, [(NGRID, ".*")]),
        (".*", [(NGRID, "(")], BADPATTERN, None),
    ],
)
def test_an_ldm_is_told_what_it_may_not(
    hub: HubNode, hosts: str, specs: list[tuple[int, str]], code: int, kept: list[tuple[int, str]] | None
) -> None:
    address = serve(hub)
    hub.ldm_hosts["near"] = hosts
    hub.tell_sites()
    with connected(address) as wire:
        said, rest = Asked(wire).feed_me(*specs)
    assert said == code
    if kept is not None:
        assert take_class(rest)[0] == kept
    if not kept:
        refused = hub.wait_event(event="ldm-peer", state="refused")
        assert refused["reason"]


def test_a_not_pattern_holds_back(hub: HubNode) -> None:
    address = serve(hub)
    hub.sites["near"] = [{"feed": "NGRID", "pattern": "^p", "not_pattern": "secret"}]
    hub.tell_sites()
    for ident in ("p 1", "p secret", "q", "p 2"):
        hub.put("NGRID", ident, ident.encode())
    with connected(address) as wire:
        asked = Asked(wire)
        asked.feed_me((NGRID, ".*"))
        assert [one.ident for one in asked.take(2)] == ["p 1", "p 2"]


def test_what_is_too_old_for_a_site_is_not_sent(hub: HubNode) -> None:
    address = serve(hub)
    every = {"pattern": ".*", "not_pattern": None}
    short = {"feed": "NGRID", **every, "max_age_us": 1}
    hub.sites["near"] = [short, {"feed": "TEXT", **every}]
    hub.tell_sites()
    hub.put("NGRID", "grid", b"old when it is asked for")
    hub.put("TEXT", "text", b"of any age")
    with connected(address) as wire:
        asked = Asked(wire)
        asked.feed_me((NGRID | IDS, ".*"))
        assert [one.ident for one in asked.take(1)] == ["text"]
        wait_for("the count", lambda: hub.do("status")["ldm"]["peers"][0]["too_old"] == 1)
    hub.sites["near"].append({"feed": "NGRID", **every, "max_age_us": 3_600_000_000})
    hub.tell_sites()
    with connected(address) as wire:
        asked = Asked(wire)
        asked.feed_me((NGRID, ".*"))
        assert [one.ident for one in asked.take(1)] == ["grid"], "the longest age counts"


def test_who_loses_a_right_is_cut_off_and_others_are_not(hub: HubNode) -> None:
    address = serve(hub)
    with connected(address) as wire:
        Asked(wire).feed_me((NGRID, ".*"))
        hub.ldm_hosts["other"] = "^elsewhere$"
        hub.sites["other"] = [{"feed": "NGRID", "pattern": ".*", "not_pattern": None}]
        hub.tell_sites()
        assert wire.is_quiet(0.3)
        hub.sites["near"] = []
        hub.tell_sites()
        assert wire.record() == b""
    assert "were changed" in hub.wait_event(event="ldm-peer", state="closed")["reason"]


def test_pushes_are_taken_from_those_who_may(hub: HubNode) -> None:
    accept = [{"feeds": "NGRID", "pattern": "^mine", "host": r"^(127\.0\.0\.1|localhost)$"}]
    address = serve(hub, accept=accept)
    mine, other = Product.of("mine 1", b"pushed"), Product.of("other", b"refused")
    with connected(address) as wire:
        answer = wire.reply(wire.call(HIYA, klass([(NGRID, ".*")])))
        assert struct.unpack(">I", answer[:4]) == (OK,)
        for one in (mine, other):
            wire.call(HEREIS, one.encoded() + (one.content or b"") + bytes(-one.size % 4))
        holds(hub, 1)
    assert described(hub, "mine 1")["created_us"] == mine.created_us
    with connected(address) as wire:
        assert wire.reply(wire.call(HIYA, klass([(EXP, ".*")]))) == struct.pack(">I", DONT_SEND)


def test_rtstats_lines_are_pushed_and_taken(tmp_path: Path, hub: HubNode) -> None:
    address = serve(hub, accept=[{"feeds": "EXP", "pattern": "^rtstats", "host": ".*"}])
    with hub_at(tmp_path / "lower", "lower") as lower:
        collector = {"collector": address, "every_seconds": 1}
        lower.do("ldm", sources=[], rtstats=collector)
        lower.put("NGRID", "a", b"1234")
        lower.put("NGRID", "b", b"56")
        event = hub.wait_event(event="rtstats")
    fields = event["line"].split()
    assert len(fields) == 11
    assert (fields[2], fields[3], fields[4]) == ("hub.test", "NGRID", "hub.test")
    assert (fields[5], fields[6]) == ("2", "6")


def test_other_calls_are_answered_as_rpc_asks(hub: HubNode) -> None:
    address = serve(hub)
    with connected(address) as wire:
        assert wire.reply(wire.call(NULLPROC)) == b""
        assert wire.reply(wire.call(IS_ALIVE, struct.pack(">I", 99))) == struct.pack(">I", 0)
        wire.call(FEEDME, klass([(NGRID, ".*")]), version=7)
        assert struct.unpack(">8I", wire.record())[5:] == (2, 5, 6), "PROG_MISMATCH, and what is spoken"
    with connected(address) as wire:
        wire.connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        wire.connection.shutdown(socket.SHUT_WR)
        assert wire.record() == b""
    with connected(address) as wire:
        wire.call(HEREIS, Product.of("uninvited", b"x").encoded() + b"x\0\0\0")
        assert wire.record() == b""
    assert hub.process.poll() is None


def test_a_slow_reader_does_not_keep_others_waiting(hub: HubNode) -> None:
    address = serve(hub)
    for number in range(30):
        hub.put("NGRID", f"large {number}", os.urandom(1_000_000))
    with connected(address) as slow, connected(address) as quick:
        Asked(slow).feed_me((NGRID, ".*"))
        asked = Asked(quick)
        asked.feed_me((NGRID, ".*"))
        assert len(asked.take(30)) == 30
        peers = hub.do("status")["ldm"]["peers"]
        assert min(peer["products"] for peer in peers) < 30
        assert len(Asked(slow).take(30)) == 30


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_hub_feeds_a_hub_by_ldm(tmp_path: Path, hub: HubNode, host: str) -> None:
    address = serve(hub, host)
    sent = {f"p {number}": os.urandom(1 + number * 997) for number in range(100)}
    for ident, content in list(sent.items())[:50]:
        hub.put("NGRID", ident, content)
    with hub_at(tmp_path / "lower", "lower") as lower:
        ask(lower, address)
        wait_for("some", lambda: stored(lower) > 5)
        lower.kill()
        lower.start()
        ask(lower, address)
        for ident, content in list(sent.items())[50:]:
            hub.put("NGRID", ident, content)
        holds(lower, 100)
        for ident in sent:
            assert described(lower, ident)["digest"] == described(hub, ident)["digest"]
        assert described(lower, "p 0")["created_us"] == described(hub, "p 0")["created_us"]
        assert described(lower, "p 0")["origin"] == f"hub.test_v_{host}"


def test_odd_upstreams_cost_nothing_but_what_they_send(hub: HubNode, upstream: Serving) -> None:
    hub.feed("NGRID", duplicate_rule="signature", ldm_feed_type="NGRID", max_product_bytes=5_000)
    half, last = Product.of("half", os.urandom(4_000)), Product.of("last", b"whole")
    nil = struct.pack(">ii", 0, 0) + bytes(16) + bytes(4 * 5)

    def odd(wire: Wire, xid: int, _: bytes) -> bool:
        wire.answer(xid, struct.pack(">II", OK, 1))
        if len(upstream.requests) > 1:
            return True
        wire.call(HEREIS, nil)
        too_large = Product.of("too large", os.urandom(6_001))
        wire.call(HEREIS, too_large.encoded() + (too_large.content or b"") + bytes(3))
        body = struct.pack(">10I", 7, 0, 2, PROGRAM, 6, HEREIS, 0, 0, 0, 0) + half.encoded() + (half.content or b"")
        for at in range(0, 2_000, 333):
            piece = body[at : at + 333]
            wire.connection.sendall(struct.pack(">I", len(piece)) + piece)
        return False

    upstream.reply = odd
    upstream.put(half, last)
    ask(hub, upstream.address)
    holds(hub, 2)
    assert described(hub, "half")["size"] == 4_000
    assert len(upstream.requests) == 2, "the half product was asked for again"
    hub.wait_told("too large")


def test_an_upstream_that_never_agrees_is_left_and_asked_again(hub: HubNode, upstream: Serving) -> None:
    def reclass(wire: Wire, xid: int, _: bytes) -> bool:
        for turn in range(9):
            wire.answer(xid, struct.pack(">I", RECLASS) + klass([(NGRID, f"^{turn}")]))
            record = wire.record()
            if not record:
                return False
            (xid,) = struct.unpack(">I", record[:4])
        raise AssertionError("it is followed for ever")

    upstream.reply = reclass
    ask(hub, upstream.address)
    wait_for("the reason", lambda: "did not agree" in (sources(hub)[0]["reason"] or ""))
    upstream.reply = None
    upstream.put(Product.of("at last", b"1"))
    holds(hub, 1)
