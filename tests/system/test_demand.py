"""Circuits on demand by a whole hub beside greedy flows: each train of products gets a circuit of its own."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from kit.capabilities import needs
from kit.circuit_hub import SITE, Shown
from kit.demand_trains import Trains
from kit.patience import wait_for

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.alone]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    needs("root", "netns", "veth", "bridge", "htb", "vxlan")
    with ExitStack() as stack:
        yield stack


def reserved_s(order: Shown) -> float:
    ended, ordered = (np.datetime64(order[name].rstrip("Z").split("+")[0]) for name in ("ended_at", "ordered_at"))
    return float((ended - ordered) / np.timedelta64(1, "s"))


def test_each_train_rides_a_circuit_that_is_given_back(stack: ExitStack, tmp_path: Path) -> None:
    trains = Trains.beside(stack, tmp_path)
    routed_s = trains.p99_s(trains.play(1, seconds=3, every_s=11))
    trains.offer()
    trains.play(1, seconds=3, every_s=11)
    trains.wait_step("ended")
    carried = trains.play(3, seconds=4, every_s=12)
    last = trains.wait_step("ended")
    orders = trains.orders()
    print(f"p99 {trains.p99_s(carried):.3f} s, routed {routed_s:.3f} s; {[order['outcome'] for order in orders]}")
    assert 3 <= len(orders) <= 5
    assert {order["step"] for order in orders} == {"ended"}
    assert last["products"] > 0
    assert max(order["setup_s"] for order in orders) <= 3
    trains.hub.wait_untouched()


def test_a_circuit_that_is_killed_gives_the_feed_back_within_two_seconds(stack: ExitStack, tmp_path: Path) -> None:
    trains = Trains.beside(stack, tmp_path)
    trains.offer()
    with ThreadPoolExecutor(1) as player:
        # The train lasts longer than all of the following, so that nothing but the loss ends the circuit's use.
        playing = player.submit(trains.play, 1, seconds=20, every_s=20)
        order = trains.wait_step("up")
        wait_for("a plan on the circuit", trains.is_riding, 10)
        links = trains.lab.output("far", ["ip", "-br", "link", "show", "type", "vxlan"]).split()
        killed_s = time.monotonic()
        trains.lab.output("far", ["ip", "link", "del", links[0].split("@")[0]])
        wait_for("a plan on the routed path", lambda: not trains.is_riding(), 10)
        took_s = time.monotonic() - killed_s
        print(f"back on the routed path after {took_s:.2f} s")
        playing.result()
    found = wait_for("an end", lambda: [one for one in trains.orders() if one["step"] == "failed"])
    assert found[0]["order"] == order["order"]
    assert took_s <= 2


@pytest.mark.nightly
def test_thirty_trains_keep_the_prediction_and_lose_nothing(stack: ExitStack, tmp_path: Path) -> None:
    trains = Trains.beside(stack, tmp_path)
    routed_s = trains.p99_s(trains.play(2, seconds=20, every_s=60))
    trains.offer()
    trains.play(2, seconds=20, every_s=60)
    # The next train would go on riding the last circuit.
    trains.wait_step("ended", 120)
    count = len(trains.orders())
    carried = trains.play(30, seconds=20, every_s=60)
    trains.wait_step("ended", 120)
    orders, plan = trains.orders()[count:], trains.hub.plan()
    predicted_s, hold_s = (plan["figures"][name] for name in ("on_demand_p99_ms", "on_demand_hold_s"))
    p99_s = trains.p99_s(carried)
    print(f"p99 {p99_s:.3f} s, predicted {predicted_s / 1e3:.3f} s, routed {routed_s:.3f} s; hold {hold_s:.3g} s")
    for order in orders:
        print(order["order"], order["ordered_at"], f"{reserved_s(order):.1f} s", order["reason"], order["outcome"])
    assert len(orders) == 30
    assert {order["step"] for order in orders} == {"ended"}
    assert p99_s <= 1.2 * predicted_s / 1e3
    assert p99_s <= 0.5 * routed_s
    allowed_s = 1.1 * sum(20 + hold_s + order["setup_s"] for order in orders)
    assert sum(map(reserved_s, orders)) <= allowed_s
    assert all(order["site"] == SITE for order in orders)
    trains.hub.wait_untouched()
