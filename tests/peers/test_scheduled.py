"""The scheduler's circuits from a real provider: ordered for a train of products, ridden, extended and given back."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from downburst.domain.ordering.providers import Dialect
from downburst_circuits.nsi.words import Listed
from kit.busy import Stalls
from kit.capabilities import needs
from kit.patience import wait_for
from kit.peers.peer import Peer
from kit.peers.scheduled import Scheduled

pytestmark = pytest.mark.peers

LONG_S, SHORT_S = 90, 20
"""The end of the window is moved when 30 s are left, which is 70 to 80 s after the order."""


@pytest.fixture
def scheduled(peer: Peer, tmp_path: Path) -> Iterator[Scheduled]:
    needs("htb")
    with ExitStack() as stack:
        yield Scheduled(peer, tmp_path, stack)


def test_a_train_rides_a_circuit_that_is_ordered_extended_and_given_back(scheduled: Scheduled) -> None:
    trains, hub = scheduled.trains, scheduled.hub
    extends = scheduled.provider.dialect is not Dialect.NONE
    with ThreadPoolExecutor(1) as player:
        playing = player.submit(trains.play, 1, seconds=LONG_S if extends else SHORT_S, every_s=LONG_S)
        order = scheduled.wait_riding()
        shown = hub.shown(order["circuit"])
        assert (shown["state"], shown["provider"]) == ("active", scheduled.provider.name)
        assert {row["enough"] for row in shown["measurements"]} == {True}, "probes have passed"
        (ordered,) = scheduled.existing()
        before, path_before = hub.carried_bytes(), scheduled.path_bytes()
        wait_for("products on the circuit", lambda: hub.carried_bytes() > before + 5_000_000)
        assert scheduled.path_bytes() > path_before + 4_000_000
        if extends:
            wait_for("an extended window", lambda: ends_us(scheduled) > end_us(ordered), 120)
            assert trains.is_riding()
        playing.result()
    ended = scheduled.wait_over(order)
    assert ended["step"] == "ended"
    assert ended["products"] > 0
    scheduled.assert_nothing_left()
    states = [event["state"] for event in hub.shown(order["circuit"])["events"]]
    print(f"FIGURES {scheduled.peer.name}: set up in {ended['setup_s']:.2f} s; {ended['outcome']}; {states}")
    assert len(scheduled.made()) <= len(trains.orders())


def test_a_path_that_dies_gives_its_feed_back_within_two_seconds(scheduled: Scheduled) -> None:
    """The provider calls it active all the same: at once at SuPA, which then ends it, and for ever at OpenNSA."""
    trains, hub = scheduled.trains, scheduled.hub
    with ThreadPoolExecutor(1) as player:
        playing = player.submit(trains.play, 1, seconds=40, every_s=40)
        order = scheduled.wait_riding()
        before = hub.carried_bytes()
        wait_for("products on the circuit", lambda: hub.carried_bytes() > before + 1_000_000)
        (path,) = scheduled.peer.plane.paths()
        with Stalls() as stalls:
            cut_s = time.monotonic()
            scheduled.peer.plane.cut(path)
            wait_for("a plan on the routed path", lambda: not trains.is_riding(), 20)
            took_s = time.monotonic() - cut_s
        seen = [event["state"] for event in hub.shown(order["circuit"])["events"]]
        playing.result()
    print(f"FIGURES {scheduled.peer.name}: back on the routed path {took_s:.2f} s after the cut; {seen}")
    assert {"degraded", "down", "failed"} & set(seen)
    assert took_s <= 2 + stalls.lost_s()
    assert scheduled.wait_over(order)["step"] == "failed"
    scheduled.assert_nothing_left()


@pytest.mark.parametrize("step", ["ordered", "up"])
def test_a_hub_that_is_killed_with_an_open_order_reserves_once(scheduled: Scheduled, step: str) -> None:
    """The next process goes on with the order, or gives it back: it may have seen no silence of the feed so far."""
    trains, whole = scheduled.trains, scheduled.hub.hub
    with ThreadPoolExecutor(1) as player:
        playing = player.submit(trains.play, 1, seconds=30, every_s=30, again=True)
        order = trains.wait_step(step, 120) if step == "ordered" else scheduled.wait_riding()
        whole.kill_api()
        whole.start()
        seen, most = scheduled.watched_until(lambda: playing.done() and not scheduled.open_orders())
        playing.result()
    over = scheduled.wait_over(order)
    print(f"FIGURES {scheduled.peer.name}: killed when {step}; order {over['step']}: {over['outcome']}")
    scheduled.assert_nothing_left()
    asked = [one["request_id"] for one in whole.ask("GET", "/v1/circuits?finished=true&limit=100")]
    assert len(asked) == len(set(asked)) <= len(trains.orders()), "no order was sent twice"
    assert most <= 1, "a second reservation beside the first"
    assert len(seen) <= len(asked), "more reservations than circuits"


def ends_us(scheduled: Scheduled) -> int:
    """The end of the only reservation, by the provider's own word."""
    (one,) = scheduled.existing()
    return end_us(one)


def end_us(one: Listed) -> int:
    told = max(one.told, key=lambda criteria: criteria.version)
    assert told.end_us is not None
    return told.end_us
