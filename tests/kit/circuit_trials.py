"""Effects of circuits on their traffic, measured in a lab: each trial compares with and without in one run.

Tests run small trials; `make bench-circuits` runs full ones.
"""

import random
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from downburst.foundation.file_names import decode
from downburst_scheduler.models.offers import CircuitOffer
from downburst_scheduler.models.queues import waits
from kit.circuit_bed import Bed
from kit.flows import Flows
from kit.namespaces import Lab
from kit.patience import wait_for
from kit.provider import Line
from kit.wire import Lane, Wire


@dataclass(frozen=True)
class Beside:
    """Throughput beside greedy flows, on a line that protects the circuit and on one that does not."""

    protected_bps: float
    exposed_bps: float
    others_bps: float
    """The total of the greedy flows while the circuit is protected."""


@dataclass(frozen=True)
class SmallBuffer:
    """One flow through a small buffer: by itself, and on a circuit that is shaped below the line's rate."""

    unshaped_bps: float
    shaped_bps: float
    unshaped_sent_again: float
    shaped_sent_again: float


@dataclass(frozen=True)
class Latency:
    """The 99th percentile from the put to the file at the site."""

    measured_s: float
    predicted_s: float
    """By the backlog recursion at the circuit's measured rate."""
    routed_s: float
    """Measured on the routed path beside the same flows."""


class Crowded:
    """A hub and a site with a circuit, on a line to the site that greedy flows of a third host fill."""

    def __init__(self, directory: Path, stack: ExitStack, *, line_bps: int, rate_bps: int) -> None:
        lab = stack.enter_context(Lab(["hub", "far", "crowd"]))
        self.bed = Bed(lab, directory, stack, rate_bps=rate_bps)
        self.bed.hub.data_connections["far"] = 1
        self.bed.hub.tell_sites()
        self.line = Line(lab, "far", rate_bps=line_bps, vni=LEASE_VNI)
        self._stack, self._count = stack, 0
        self._stood: dict[str, float] = {}
        self._seen: set[Path] = set()

    def fill(self, flows: int) -> None:
        """Starts this number of flows, which send at full speed."""
        lab = self.bed.lab
        self._stack.enter_context(Flows(lab, "crowd", "far", lab.address("far"), flows=flows))
        before = self.line.carried().other_bytes
        wait_for("a line in use", lambda: self.line.carried().other_bytes > before + 1_000_000)

    def delivered_bps(self, size: int) -> float:
        """Delivery rate of a product of this size at the site, behind a smaller product that opens the way."""
        stood = [self._put(size // 4), self._put(size)]
        wait_for("the products at the site", lambda: all(map(self._stood_s, stood)), 120)
        return size * 8 / (self._stood_s(stood[1]) - self._stood_s(stood[0]))

    def played(self, schedule: Sequence[tuple[float, int]]) -> tuple[list[float], list[float]]:
        """Puts products of these sizes at these times in seconds; returns put time and transit time of each."""
        began_s, put = time.time(), []
        for at_s, size in schedule:
            time.sleep(max(0.0, began_s + at_s - time.time()))
            put.append((time.time(), self._put(size)))
        wait_for("all products at the site", lambda: all(self._stood_s(product) for _, product in put), 120)
        return [at_s for at_s, _ in put], [self._stood_s(product) - at_s for at_s, product in put]

    def line_bps(self, seconds: float) -> tuple[float, float]:
        """Rates of the circuit and of all other traffic over a period, in bits of frames per second."""
        began_s, before = time.monotonic(), self.line.carried()
        time.sleep(seconds)
        took_s, after = time.monotonic() - began_s, self.line.carried()
        circuit, others = after.circuit_bytes - before.circuit_bytes, after.other_bytes - before.other_bytes
        return circuit * 8 / took_s, others * 8 / took_s

    def _put(self, size: int) -> str:
        self._count += 1
        product_id = f"product-{self._count}"
        self.bed.put(product_id, size)
        return product_id

    def _stood_s(self, product_id: str) -> float:
        """The time at which it stood at the site; 0 before that."""
        if product_id not in self._stood:
            root = self.bed.site.directory / "received"
            for path in root.rglob("*"):
                if path.is_file() and path not in self._seen:
                    self._seen.add(path)
                    name = decode(str(path.relative_to(root)))
                    self._stood[name.product_id] = path.stat().st_mtime
        return self._stood.get(product_id, 0.0)


def unicast_beside(crowded: Crowded, *, flows: int, rounds: int, size: int) -> Beside:
    """Products by TCP on the circuit, in turn with protection and without."""
    bed, line = crowded.bed, crowded.line
    assert bed.up()["state"] == "up"
    bed.ride()
    bed.wait_riding()
    crowded.fill(flows)
    protected, exposed, others = [], [], []
    for _ in range(rounds):
        line.protect(bed.rate_bps)
        began_s, before = time.monotonic(), line.carried().other_bytes
        protected.append(crowded.delivered_bps(size))
        others.append((line.carried().other_bytes - before) * 8 / (time.monotonic() - began_s))
        line.expose()
        exposed.append(crowded.delivered_bps(size // 4))
    return Beside(median(protected), median(exposed), median(others))


def multicast_beside(crowded: Crowded, *, flows: int, rounds: int, seconds: float) -> Beside:
    """A multicast leg on the protected circuit, which is not shaped below its rate: the leg is paced by itself."""
    bed = crowded.bed
    assert bed.up(shaped_share=1.0)["state"] == "up"
    bed.hub.multicast("CONDUIT", 1, 8, bed.rate_bps, ["far"], circuit=17)
    bed.hub.wait_event(event="leg", leg=8, state="joined")
    crowded.line.protect(bed.rate_bps)
    crowded.fill(flows)
    bed.put("long enough", int(bed.rate_bps / 8 * (rounds * seconds + 1)))
    before = crowded.line.carried().circuit_bytes
    wait_for("packets on the circuit", lambda: crowded.line.carried().circuit_bytes > before + 500_000)
    found = [crowded.line_bps(seconds) for _ in range(rounds)]
    return Beside(median(circuit for circuit, _ in found), 0.0, median(others for _, others in found))


def latency_beside(crowded: Crowded, *, flows: int, schedule: Sequence[tuple[float, int]]) -> Latency:
    """A feed on the circuit while the routed path is full: its latency beside that of the backlog recursion."""
    bed = crowded.bed
    assert bed.up()["state"] == "up"
    crowded.line.protect(bed.rate_bps)
    probe = bed.rate()
    offer = CircuitOffer(17, min(probe["received_bps"], probe["offered_bps"]))
    bed.ride()
    bed.wait_riding()
    crowded.fill(flows)
    put_s, took_s = crowded.played(schedule)
    service_s = np.array([size * 8 / offer.payload_bps for _, size in schedule])
    away_s = probe["round_trip_us"]["median"] / 2e6
    predicted_s = waits(np.array(put_s) - put_s[0], service_s) + service_s + away_s
    bed.hub.unicast("CONDUIT", 2, 1, ["far"])
    wait_for("no connection on the circuit", lambda: not bed.lab.output("hub", ["ss", "-Htn", "src", "10.9.0.0"]))
    _, routed_s = crowded.played(schedule[: len(schedule) // 3])
    return Latency(*(float(np.percentile(each, 99)) for each in (took_s, predicted_s, routed_s)))


def feed_schedule(seed: int, *, seconds: float, mean_bps: float, mean_bytes: int) -> list[tuple[float, int]]:
    """A feed as the models assume it: products at random times, most of them small and a few large."""
    drawn = random.Random(seed)
    at_s, found = 0.0, []
    while at_s < seconds:
        found.append((at_s, int(mean_bytes * drawn.lognormvariate(-0.5, 1.0)) + 1))
        at_s += drawn.expovariate(mean_bps / (8 * mean_bytes))
    return found


def small_buffer(
    directory: Path,
    stack: ExitStack,
    *,
    line: Lane,
    control: str,
    rounds: int,
    seconds: float,
    shaped_share: float = 0.9,
) -> SmallBuffer:
    """One flow in turn on the line itself and on a circuit of the line's rate, by its acknowledged bytes."""
    lab = stack.enter_context(Lab(["hub", "far"]))
    wire = stack.enter_context(Wire(lab, "hub", "far", to_right=line, to_left=Lane(delay_ms=line.delay_ms)))
    assert line.rate_bps
    bed = Bed(lab, directory, stack, rate_bps=line.rate_bps, port=wire.device)
    lease = bed.lease(shaped_share=shaped_share)
    lease["ends"][0]["underlay"], lease["ends"][1]["underlay"] = wire.left_address, wire.right_address
    lease["rate_in_bps"] = 0
    assert bed.hub.do("circuit-up", circuit=lease)["state"] == "up"
    ways = (wire.right_address, "10.9.0.1")
    found = [[_flow(lab, address, control, seconds) for address in ways] for _ in range(rounds)]
    # A late wire makes bursts, which harm the shaped flow as much as the other: they help to meet no bound.
    wire.stop().needs_small_lag(max_lag_us=5_000)

    def middle(way: int, of: str) -> float:
        return median(row[way][of] for row in found)

    return SmallBuffer(middle(0, "bps"), middle(1, "bps"), middle(0, "sent_again"), middle(1, "sent_again"))


def _flow(lab: Lab, address: str, control: str, seconds: float) -> dict[str, float]:
    with Flows(lab, "hub", "far", address, seconds=seconds, control=control) as flow:
        return flow.told()[0]


LEASE_VNI = 717
