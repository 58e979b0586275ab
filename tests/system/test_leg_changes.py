"""A feed moves between unicast and multicast while products flow; every site sees each product exactly once."""

import time

import pytest

from kit.node import HubNode, Play, Subscribe

pytestmark = pytest.mark.system
NAMES = ["one", "two", "three"]
SILENCE_S = 3.0
"""So long a site waits for something of its leg that it can believe."""


@pytest.mark.smoke
def test_a_feed_moves_to_multicast_and_back_under_load(node: HubNode, subscribe: Subscribe) -> None:
    node.feed("NGRID")
    sites = [subscribe(name, "NGRID") for name in NAMES]
    node.wait_connected(*NAMES)
    play = Play(node, "NGRID", seed=3).start()
    for turn in range(4):
        play.wait_for_more(40)
        leg = 50 + turn
        node.multicast("NGRID", version=2 * turn + 2, leg=leg, rate_bps=300_000_000, sites=NAMES)
        for name in NAMES:
            node.wait_event(event="leg", leg=leg, site=name, state="joined")
        play.wait_for_more(40)
        node.unicast("NGRID", version=2 * turn + 3, leg=90 + turn, sites=NAMES)
    play.finish()
    assert node.drained()
    for site in sites:
        assert site.wait_received(len(play.acknowledged)) == play.acknowledged
        assert site.stop() == 0


def test_a_plan_that_is_told_again_leaves_sites_hearing_their_leg(node: HubNode, subscribe: Subscribe) -> None:
    """A repeated announcement of a leg to its site changes nothing, not even the means to check proofs."""
    node.feed("NGRID")
    sites = [subscribe(name, "NGRID") for name in NAMES]
    node.wait_connected(*NAMES)
    for version in (2, 3):
        node.multicast("NGRID", version=version, leg=62, rate_bps=300_000_000, sites=NAMES)
        for name in NAMES:
            node.wait_event(event="leg", leg=62, site=name, state="joined")
    play = Play(node, "NGRID", seed=5)
    until_s = time.monotonic() + 2 * SILENCE_S
    while time.monotonic() < until_s:
        play.put()
        time.sleep(0.02)
    assert [event for event in node.events_named("leg") if event["state"] != "joined"] == []
    assert node.drained()
    for site in sites:
        assert site.wait_received(len(play.acknowledged)) == play.acknowledged
        assert site.stop() == 0


def test_only_what_matches_arrives_by_multicast_too(node: HubNode, subscribe: Subscribe) -> None:
    node.feed("NGRID")
    site = subscribe("odd", "NGRID", pattern="[13579]$", not_pattern="7$")
    node.wait_connected("odd")
    node.multicast("NGRID", version=2, leg=60, rate_bps=300_000_000, sites=["odd"])
    node.wait_event(event="leg", site="odd", state="joined")
    play = Play(node, "NGRID", seed=4)
    for _ in range(60):
        play.put()
    assert node.drained()
    wanted = {key: value for key, value in play.acknowledged.items() if value[0][-1] in "1359"}
    assert site.wait_received(len(wanted)) == wanted
    assert site.stop() == 0


def test_a_plan_that_is_older_than_the_last_is_refused(node: HubNode) -> None:
    node.feed("NGRID")
    node.unicast("NGRID", version=5, leg=3, sites=[])
    with pytest.raises(AssertionError, match="older than plan 5"):
        node.unicast("NGRID", version=4, leg=4, sites=[])


def test_a_removed_feed_takes_its_legs_with_it(node: HubNode, subscribe: Subscribe) -> None:
    node.feed("NGRID")
    node.feed("TEXT")
    subscribe("one", "NGRID")
    node.wait_connected("one")
    node.multicast("NGRID", version=9, leg=61, rate_bps=300_000_000, sites=["one"])
    node.wait_event(event="leg", site="one", state="joined")
    node.feeds = [feed for feed in node.feeds if feed["feed"] != "NGRID"]
    node.do("feeds", feeds=node.feeds)
    node.wait_event(event="leg", site="one", leg=61, state="left", seconds=30)
    node.feed("NGRID")
    node.unicast("NGRID", version=1, leg=3, sites=["one"])
    assert node.put("TEXT", "still here", b"x")["sequence"] == 1
