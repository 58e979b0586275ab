"""A hub or its node is killed between an order and its end: nothing is left, and nothing is ordered twice."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from kit.capabilities import needs
from kit.demand_trains import Trains
from kit.patience import wait_for

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.alone]

STEPS = ("ordered", "up", "releasing")
STANDING = ("provisioning", "verifying", "active", "degraded", "down", "failed")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    needs("root", "netns", "veth", "bridge", "htb", "vxlan")
    with ExitStack() as stack:
        yield stack


@pytest.mark.nightly
@pytest.mark.parametrize("process", ["hub", "node"])
@pytest.mark.parametrize("step", STEPS)
def test_after_a_kill_the_hosts_have_what_the_calendar_knows(
    stack: ExitStack, tmp_path: Path, process: str, step: str
) -> None:
    trains = Trains.beside(stack, tmp_path, flows=0)
    trains.offer()
    hub = trains.hub.hub
    with ThreadPoolExecutor(1) as player:
        playing = player.submit(trains.play, 1, seconds=4, every_s=4, again=True)
        wait_for(f"an order that is {step}", lambda: reached(trains, step), 60)
        if process == "hub":
            hub.kill_api()
            hub.start()
        else:
            assert hub.kill_node()
            wait_for("a node that runs again", hub.node_pids)
        wait_for("circuits as the calendar has them", lambda: tunnels(trains) == standing(trains), 5)
        playing.result()
    wait_for("the end of all orders", lambda: not open_orders(trains), 60)
    trains.hub.wait_untouched()
    asked = [one["request_id"] for one in hub.ask("GET", "/v1/circuits?finished=true&limit=100")]
    assert len(asked) == len(set(asked)), "no order was sent twice"
    assert len(asked) <= len(trains.orders())


def reached(trains: Trains, step: str) -> bool:
    """True from the moment on at which the newest order has come to this step."""
    orders = trains.orders()
    if not orders or orders[-1]["step"] not in STEPS:
        return bool(orders)
    return STEPS.index(orders[-1]["step"]) >= STEPS.index(step)


def open_orders(trains: Trains) -> list[str]:
    return [order["step"] for order in trains.orders() if order["step"] in STEPS]


def standing(trains: Trains) -> int:
    """The circuits that have or are to have a tunnel."""
    listed = trains.hub.hub.ask("GET", "/v1/circuits?limit=100")
    return sum(one["state"] in STANDING for one in listed)


def tunnels(trains: Trains) -> int:
    """The tunnels on the hub's host."""
    return len(json.loads(trains.lab.output("hub", ["ip", "-j", "link", "show", "type", "vxlan"]) or "[]"))
