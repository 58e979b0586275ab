"""A new key excludes a site that may no longer read a multicast leg; the others lose nothing."""

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kit.node import HubNode, Play, Subscribe
from kit.patience import wait_for

pytestmark = pytest.mark.system
LEG = 70


class Tap:
    """Listens to the group like any host on the network, and records the key of each datagram, with its time."""

    def __init__(self, group: str, port: int) -> None:
        self.heard: list[tuple[float, int]] = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((group, port))
        member = struct.pack("4s4s", socket.inet_aton(group), socket.inet_aton("127.0.0.1"))
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        self._socket.settimeout(0.2)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def keys_since(self, moment: float) -> set[int]:
        """The keys named by datagrams since then."""
        return {key for at, key in list(self.heard) if at >= moment}

    def wait_for_more(self, datagrams: int) -> None:
        """Waits until this number of further datagrams was heard."""
        before = len(self.heard)
        wait_for(f"{datagrams} datagrams", lambda: len(self.heard) >= before + datagrams)

    def close(self) -> None:
        """Stops listening."""
        self._ended.set()
        self._thread.join(timeout=5)
        self._socket.close()

    def _listen(self) -> None:
        while not self._ended.is_set():
            try:
                datagram = self._socket.recv(65_536)
            except TimeoutError:
                continue
            self.heard.append((time.monotonic(), datagram[1]))


@contextmanager
def tapped(node: HubNode) -> Iterator[Tap]:
    group, port = node.group(LEG)
    tap = Tap(group, port)
    try:
        yield tap
    finally:
        tap.close()


def test_a_revoked_site_can_not_read_on_a_second_later(node: HubNode, subscribe: Subscribe) -> None:
    """The revoked site received the first key and no other."""
    names = ["one", "two", "revoked"]
    node.feed("NGRID")
    sites = [subscribe(name, "NGRID") for name in names]
    node.wait_connected(*names)
    node.multicast("NGRID", version=2, leg=LEG, rate_bps=100_000_000, sites=names)
    for name in names:
        node.wait_event(event="leg", leg=LEG, site=name, state="joined")
    play = Play(node, "NGRID", seed=3).start()
    with tapped(node) as tap:
        tap.wait_for_more(40)
        first = tap.keys_since(0)
        node.credentials["revoked"] = []
        revoked_at = time.monotonic()
        node.tell_sites()
        node.wait_event(event="session", site="revoked", state="closed")
        tap.wait_for_more(40)
        wait_for("a second", lambda: tap.keys_since(revoked_at + 1.0))
        tap.wait_for_more(40)
        assert len(first) == 1
        assert len(tap.keys_since(revoked_at + 1.0)) == 1
        assert not tap.keys_since(revoked_at + 1.0) & first
    play.finish()
    assert node.drained()
    for site in sites[:2]:
        assert site.wait_received(len(play.acknowledged)) == play.acknowledged
    assert not [
        event for event in node.events_named("leg") if event["site"] != "revoked" and event["state"] == "left"
    ]


def test_a_site_that_leaves_and_is_revoked_a_moment_later_can_not_read_on_a_second_later(
    node: HubNode, subscribe: Subscribe
) -> None:
    """A site that leaves is excluded together with others of the next ten seconds, unless one of them is urgent."""
    names = ["one", "leaving"]
    node.feed("NGRID")
    sites = [subscribe(name, "NGRID") for name in names]
    node.wait_connected(*names)
    node.multicast("NGRID", version=2, leg=LEG, rate_bps=100_000_000, sites=names)
    for name in names:
        node.wait_event(event="leg", leg=LEG, site=name, state="joined")
    play = Play(node, "NGRID", seed=7).start()
    with tapped(node) as tap:
        tap.wait_for_more(20)
        first = tap.keys_since(0)
        node.sites["leaving"] = []
        node.tell_sites()
        node.wait_event(event="leg", leg=LEG, site="leaving", state="left")
        node.credentials["leaving"] = []
        revoked_at = time.monotonic()
        node.tell_sites()
        wait_for("a second", lambda: tap.keys_since(revoked_at + 1.0))
        tap.wait_for_more(20)
        assert not tap.keys_since(revoked_at + 1.0) & first
    play.finish()
    assert node.drained()
    assert sites[0].wait_received(len(play.acknowledged)) == play.acknowledged


def test_a_site_is_on_a_leg_only_as_long_as_its_allow_list_covers_the_feed(
    node: HubNode, subscribe: Subscribe
) -> None:
    node.feed("NGRID")
    node.feed("TEXT")
    node.allow["narrow"] = ["TEXT"]
    names = ["wide", "narrow"]
    sites = [subscribe(name, "NGRID") for name in names]
    node.wait_connected(*names)
    node.multicast("NGRID", version=2, leg=LEG, rate_bps=100_000_000, sites=names)
    node.wait_event(event="leg", leg=LEG, site="wide", state="joined")
    play = Play(node, "NGRID", seed=5).start()
    with tapped(node) as tap:
        play.wait_for_more(20)
        assert not [event for event in node.events_named("leg") if event["site"] == "narrow"]
        node.allow["narrow"] = ["NGRID"]
        node.tell_sites()
        node.wait_event(event="leg", leg=LEG, site="narrow", state="joined")
        tap.wait_for_more(20)
        given = tap.keys_since(0)
        node.allow["narrow"] = ["TEXT"]
        narrowed_at = time.monotonic()
        node.tell_sites()
        node.wait_event(event="leg", leg=LEG, site="narrow", state="left")
        wait_for("a second", lambda: tap.keys_since(narrowed_at + 1.0))
        tap.wait_for_more(20)
        assert not tap.keys_since(narrowed_at + 1.0) & given
    play.finish()
    assert node.drained()
    assert sites[0].wait_received(len(play.acknowledged)) == play.acknowledged
    assert len(sites[1].received()) < len(play.acknowledged)
