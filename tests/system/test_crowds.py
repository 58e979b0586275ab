"""Crowds at the sites' port: ten thousand silent connections, and handshakes that never end."""

import socket
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from kit.node import HubNode, Play, Subscribe
from kit.patience import wait_for

pytestmark = pytest.mark.system

CROWD = 10_000
SLOW = 100
STRANGERS_LIMIT = 512
HANDSHAKE_LIMIT_S = 10
CLIENT_HELLO_BEGINS = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200)


def test_ten_thousand_silent_connections_cost_the_sites_nothing(node: HubNode, subscribe: Subscribe) -> None:
    node.feed("NGRID")
    good = subscribe("good", "NGRID")
    node.wait_connected("good")
    play = Play(node, "NGRID", seed=21).start()
    most = 0
    with ExitStack() as crowd:
        for number in range(CROWD):
            crowd.enter_context(connection(node))
            if number % 500 == 0:
                most = max(most, open_files(node))
        play.wait_for_more(20)
        late = subscribe("late", "NGRID")
        node.wait_connected("late")
        play.wait_for_more(20)
        play.finish()
        assert node.drained()
        assert good.wait_received(len(play.acknowledged)) == play.acknowledged
        assert late.received(), "a site that comes in the middle of a crowd is let in"
        # The clients close refused connections in their own time.
        assert most < 2 * STRANGERS_LIMIT
        assert "to make room" in node.wait_event(event="fault")["sentence"]
    ends = [event for event in node.events_named("session") if event["state"] == "closed"]
    assert not ends, "no site lost its session"


def test_a_handshake_that_never_ends_is_ended(node: HubNode, subscribe: Subscribe) -> None:
    node.feed("NGRID")
    good = subscribe("good", "NGRID")
    node.wait_connected("good")
    # The files that stay open are open before the count: log, receipts, and counters of the host.
    play = Play(node, "NGRID", seed=22)
    play.put()
    good.wait_received(1)
    wait_for("counters of the host", (node.directory / "data" / "counters" / "newest.csv").exists)
    before = open_files(node)
    over = threading.Event()
    with ExitStack() as stack:
        slow = [stack.enter_context(connection(node)) for _ in range(SLOW)]
        drip = threading.Thread(target=drip_into, args=(slow, over), daemon=True)
        drip.start()
        stack.callback(drip.join)
        stack.callback(over.set)
        wait_for("the slow ones to be in", lambda: open_files(node) >= before + SLOW, 10)
        began = time.monotonic()
        for _ in range(20):
            play.put()
        assert good.wait_received(len(play.acknowledged)) == play.acknowledged
        wait_for("their end", lambda: open_files(node) <= before + 2, HANDSHAKE_LIMIT_S + 20)
        assert time.monotonic() - began > HANDSHAKE_LIMIT_S - 5, "a slow path has its time"
    assert "the TLS handshake took too long" in (node.directory / "hub.log").read_text()


def connection(node: HubNode) -> socket.socket:
    host, port = node.address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=30)


def drip_into(connections: list[socket.socket], over: threading.Event) -> None:
    """Sends single bytes at intervals, as a client does that wants to hold a place."""
    for byte in CLIENT_HELLO_BEGINS:
        for client in connections:
            with suppress(OSError):
                client.send(bytes([byte]))
        if over.wait(0.3):
            return


def open_files(node: HubNode) -> int:
    return len(list(Path(f"/proc/{node.process.pid}/fd").iterdir()))
