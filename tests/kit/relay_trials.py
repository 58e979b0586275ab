"""Relays of a whole hub, measured: the way that the scheduler chooses over a lossy edge, and the copies of a campus.

Tests run these once; `make bench-paths` runs them in turns.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit.capabilities import needs
from kit.namespaces import Lab
from kit.path_trials import CORE, EDGE, LINE_BPS, MOST_LAG_US, LongPath
from kit.patience import wait_for
from kit.relay import RelayNode
from kit.relayed_hub import FEED, PORT, RELAY_PORT, Products, RelayedHub

CAMPUS = ("north", "south", "east", "west")
CAMPUS_PRODUCT_BYTES = 100_000
REVIEWS_OF_BACKLOG = 10


@dataclass(frozen=True)
class LossyEdge:
    """A hub behind a clean core, and a host `middle` before a lossy edge with the site `far`."""

    world: RelayedHub
    hub_address: str
    relay_address: str

    def site(self, **values: Any) -> None:
        """Adds and starts the site."""
        self.world.site("far", "far", self.hub_address, access_rate_bps=LINE_BPS, **values)

    def relay(self) -> RelayNode:
        """Adds and starts the relay before it."""
        return self.world.relay(
            "middle", "middle", self.hub_address, address=self.relay_address, sites=["far"], feeds=[FEED]
        )

    def way(self) -> dict[str, Any]:
        """The way of the site; an empty chain before there is one."""
        found = self.world.hub.ask("GET", "/v1/sites/far/path")["way"]
        return dict(found or {"chain": []})

    def tunnels(self) -> list[dict[str, Any]]:
        """The site's open tunnels in the newest report of the relay."""
        listed = self.world.shown_relay("middle")["tunnels"]
        return [one for one in listed if one["site"] == "far" and not one["ended"]]


@dataclass(frozen=True)
class Latencies:
    """The median latency of a plan."""

    predicted_ms: float
    measured_ms: float


@contextmanager
def lossy_edge(home: Path, *, congestion: str = "reno", edge: LongPath = EDGE) -> Iterator[LossyEdge]:
    """One congestion control everywhere: reno takes the loss of the edge for congestion of the whole path."""
    needs("root", "netns", "veth", "bridge", "tun")
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(["hub", "middle", "far"]))
        for host in ("hub", "middle", "far"):
            lab.output(host, ["sysctl", "-qw", f"net.ipv4.tcp_congestion_control={congestion}"])
        core = stack.enter_context(CORE.wire(lab, "hub", "middle", 1))
        last = stack.enter_context(edge.wire(lab, "middle", "far", 2))
        lab.output("middle", ["sysctl", "-qw", "net.ipv4.ip_forward=1"])
        lab.output("hub", ["ip", "route", "add", f"{last.right_address}/32", "via", core.right_address])
        lab.output("far", ["ip", "route", "add", f"{core.left_address}/32", "via", last.left_address])
        world = RelayedHub(lab, home, stack)
        yield LossyEdge(world, f"{core.left_address}:{PORT}", f"{last.left_address}:{RELAY_PORT}")
        for wire in (core, last):
            wire.stop().needs_small_lag(max_lag_us=MOST_LAG_US)


def led_over_the_relay(scene: LossyEdge, products: Products) -> Latencies:
    """Waits until the site is led over the relay and has no backlog; then the plan's figures after three reviews."""
    world = scene.world
    wait_for("the scheduler's choice of the relay", lambda: scene.way()["chain"] == ["middle"], 120)
    wait_for("the session over the relay", scene.tunnels, 60)
    wait_for("no backlog", lambda: len(world.sites["far"].received()) >= len(world.put) - 5, 120)
    # Thirty seconds, and five reviews: the calibration of predictions forgets the backlog.
    products.more(300)
    latencies = _planned(world)
    # The backlog reaches into more reviews where the scheduler chose the relay late, and into ten at most.
    for _ in range(REVIEWS_OF_BACKLOG):
        if latencies.predicted_ms <= 1.2 * latencies.measured_ms:
            break
        products.more(60)
        latencies = _planned(world)
    return latencies


def _planned(world: RelayedHub) -> Latencies:
    figures = world.plan()["figures"]
    return Latencies(figures["predicted_p50_ms"], figures["measured_p50_ms"])


def latencies_over_the_relay(home: Path) -> Latencies:
    """The site has one connection for products: seven of a hundred Mb/s by the direct way."""
    with lossy_edge(home) as scene:
        scene.site(data_connections=0)
        with Products(scene.world, product_bytes=250_000, every_s=0.1) as products:
            products.more(100)
            scene.relay()
            found = led_over_the_relay(scene, products)
        scene.world.complete()
    return found


@dataclass(frozen=True)
class Campus:
    """Four sites of a campus, behind a relay or not; the hub sends no group of its own."""

    lab: Lab
    world: RelayedHub
    relay: RelayNode | None

    def copies(self, products: Products, count: int) -> float:
        """The copies that leave the hub for these products: its bytes over theirs."""
        put, before = len(self.world.put), self._sent_bytes()
        products.more(count)
        return (self._sent_bytes() - before) / ((len(self.world.put) - put) * CAMPUS_PRODUCT_BYTES)

    def _sent_bytes(self) -> int:
        (link,) = json.loads(self.lab.output("hub", ["ip", "-j", "-s", "link", "show", "eth0"]))
        return int(link["stats64"]["tx"]["bytes"])

    def relayed_sites(self) -> set[str]:
        """The sites that the plan in force has behind the relay."""
        legs = self.world.plan()["legs"]
        return {site for leg in legs if leg["relay"] == "campus" for site in leg["site_names"]}


@contextmanager
def campus(home: Path, *, fan_out: str | None = "group") -> Iterator[Campus]:
    """The scheduler plans one group behind the relay; without a relay each site gets a copy of the hub's."""
    needs("root", "netns", "veth", "bridge")
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(["hub", "relay", *CAMPUS]))
        world = RelayedHub(lab, home, stack, multicast=False)
        hub_address = f"{lab.address('hub')}:{PORT}"
        for host in CAMPUS:
            world.site(host, host, hub_address)
        relay = None
        if fan_out is not None:
            wish = {"sites": [*CAMPUS], "feeds": [FEED], "fan_out": fan_out}
            relay = world.relay("campus", "relay", hub_address, "--interface", "eth0", **wish)
        yield Campus(lab, world, relay)


def wait_fanned_out(scene: Campus) -> None:
    """Waits until the relay hands the feed out to all of its sites."""
    wait_for("a group behind the relay", lambda: scene.relayed_sites() == set(CAMPUS), 120)
    sites = scene.world.sites.values()
    wait_for("all sites in it", lambda: all("a multicast leg is received" in site.log() for site in sites), 60)


def copies_of_a_campus(home: Path, *, fan_out: str | None) -> float:
    """The copies that leave the hub for four sites, with a relay that hands out one or without."""
    with campus(home, fan_out=fan_out) as scene:
        with Products(scene.world, product_bytes=CAMPUS_PRODUCT_BYTES, every_s=0.05) as products:
            if fan_out is not None:
                wait_fanned_out(scene)
            products.more(20)
            copies = scene.copies(products, 100)
        scene.world.complete()
    return copies
