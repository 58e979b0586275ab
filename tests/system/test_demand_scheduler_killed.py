"""The scheduler, a process of its own, is killed between an order and its end: nothing is left or ordered twice."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from kit.capabilities import needs
from kit.circuit_hub import CircuitHub
from kit.demand_trains import CIRCUIT_BPS, LINE_BPS, SETTINGS, Trains
from kit.kafka import kafka
from kit.namespaces import Lab
from kit.patience import wait_for
from kit.postgres import postgres
from kit.provider import Line
from kit.whole_hub import WholeHub
from system.test_demand_kills import STEPS, open_orders, reached, standing, tunnels
from system.test_parts_apart import Apart

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.alone]


class Parts:
    """Scheduler and circuit service beside a hub in a lab, over servers on the hub's host."""

    scheduler: Apart

    def __init__(self, stack: ExitStack, directory: Path) -> None:
        needs("root", "netns", "veth", "bridge", "htb", "vxlan")
        self._stack, self._count = stack, 0
        lab = stack.enter_context(Lab(["hub", "far"]))
        with lab.inside("hub"):
            server, broker = stack.enter_context(postgres()), stack.enter_context(kafka())
            url = server.url(server.database())
        # A planner that starts again in mid-train has seen no silence yet; it looks once it has seen one.
        settings = SETTINGS.replace("step_s = 2", "step_s = 60")
        settings += f'apart = true\n[circuits]\napart = true\n[kafka]\nservers = "{broker.address}"\n'
        hub = CircuitHub(
            lab, directory, stack, port_bps=LINE_BPS, settings=settings, ledger_url=url, parts=self._start
        )
        Line(lab, "far", rate_bps=LINE_BPS, vni=None).protect(CIRCUIT_BPS)
        self.trains = Trains(hub, lab)
        self.trains.offer()

    def kill_scheduler(self) -> None:
        """Kills it and starts another; returns when that is at work."""
        self.scheduler.process.kill()
        self.scheduler.process.wait(timeout=10)
        self.scheduler = self._run(self.trains.hub.hub, "scheduler")
        self._wait_at_work()

    def _start(self, hub: WholeHub) -> None:
        self._run(hub, "circuit-service")
        self.scheduler = self._run(hub, "scheduler")
        wait_for("answers about circuits", lambda: hub.answer("DELETE", "/v1/ports/none").status_code == 404, 60)
        self._wait_at_work()

    def _run(self, hub: WholeHub, command: str) -> Apart:
        self._count += 1
        part = Apart(hub, command, f"{command}-{self._count}")
        self._stack.callback(part.process.wait, 30)
        self._stack.callback(part.process.terminate)
        return part

    def _wait_at_work(self) -> None:
        wait_for("a scheduler at work", lambda: self.scheduler.says("at work as scheduler"), 60)


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    with ExitStack() as stack:
        yield Parts(stack, tmp_path)


def test_a_scheduler_that_is_killed_in_mid_train_goes_on_with_its_order(parts: Parts) -> None:
    trains = parts.trains
    with ThreadPoolExecutor(1) as player:
        playing = player.submit(trains.play, 1, seconds=14, every_s=14)
        wait_for("a feed on its circuit", trains.is_riding, 60)
        parts.kill_scheduler()
        wait_for("circuits as the calendar has them", lambda: is_clean(trains), 5)
        playing.result()
    orders = ended(trains)
    assert [order["step"] for order in orders] == ["ended"], orders
    (order,) = orders
    released_s = datetime.fromisoformat(str(order["released_at"])).timestamp()
    assert released_s > max(trains.put_s.values()), "the rest of the train did not wait for the next silence"


@pytest.mark.nightly
def test_a_scheduler_that_is_killed_at_any_step_orders_nothing_twice(parts: Parts) -> None:
    trains = parts.trains
    for step in STEPS:
        before = len(trains.orders())
        with ThreadPoolExecutor(1) as player:
            playing = player.submit(trains.play, 1, seconds=4, every_s=4)
            wait_for("an order", lambda: len(trains.orders()) > before, 60)  # noqa: B023
            wait_for(f"one that is {step}", lambda: reached(trains, step), 60)  # noqa: B023
            parts.kill_scheduler()
            wait_for("circuits as the calendar has them", lambda: is_clean(trains), 5)
            playing.result()
        ended(trains)


def is_clean(trains: Trains) -> bool:
    """True if `ip` and `tc` have a tunnel and a class for each circuit of the calendar, and no other."""
    return tunnels(trains) == standing(trains) == classes(trains)


def classes(trains: Trains) -> int:
    """The classes of circuits on the hub's host; those of the port and of the remaining traffic have low numbers."""
    listed = trains.lab.output("hub", ["tc", "class", "show", "dev", "eth0"]).splitlines()
    return sum(int(line.split()[2].partition(":")[2], 16) >= FIRST_CIRCUIT for line in listed if line)


def ended(trains: Trains) -> list[dict[str, object]]:
    """All orders, once they have ended and left nothing; one followed the other, and each had one circuit."""
    wait_for("the end of all orders", lambda: not open_orders(trains), 60)
    trains.hub.wait_untouched()
    orders = trains.orders()
    for earlier, later in pairwise(orders):
        assert earlier["ended_at"] <= later["ordered_at"]
    asked = [one["request_id"] for one in trains.hub.hub.ask("GET", "/v1/circuits?finished=true&limit=100")]
    assert len(asked) == len(set(asked)), "no order was sent twice"
    assert len(asked) <= len(orders)
    return orders


FIRST_CIRCUIT = 0x10
