"""Effects of a path's TCP on a feed's rate, measured over a long wire in a lab.

Tests run small trials; `make bench-paths` runs full ones.
"""

import os
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from kit.namespaces import Lab
from kit.node import HubNode, SiteNode
from kit.patience import wait_for
from kit.relay import RelayNode
from kit.wire import Lane, Wire

FEED = "CONDUIT"
PORT, RELAY_PORT = 7370, 7379
LINE_BPS = 100_000_000
LEAST_BUFFER_BYTES = 100_000
PRODUCT_BYTES = 250_000
WAITING = 24
"""Products that always wait: more than sixteen connections take at once."""
GROWTH_S = 6.0
"""The time that connections have to grow before their rate counts: some eighty round trips."""


@dataclass(frozen=True)
class Laid:
    """A path that stands: its wires, and the arguments of a site that uses it."""

    wires: Sequence[Wire]
    hub_address: str
    arguments: Sequence[str] = ()


class AnyPath(Protocol):
    """A path between the hosts `hub` and `far`."""

    @property
    def hosts(self) -> Sequence[str]:
        """The hosts of the lab."""

    def lay(self, lab: Lab, stack: ExitStack, directory: Path, seed: int) -> Laid:
        """Lays the wires; the stack ends them."""


@dataclass(frozen=True)
class LongPath:
    """A path of 100 Mb/s: its round trip, and its loss towards the site."""

    round_trip_ms: float
    loss: float = 0.0
    hosts = ("hub", "far")

    @property
    def lanes(self) -> tuple[Lane, Lane]:
        """Both directions; the buffer holds the bytes in flight, as that of a router of such a path should."""
        delay_ms = self.round_trip_ms / 2
        buffer_bytes = max(round(LINE_BPS / 8 * self.round_trip_ms / 1e3), LEAST_BUFFER_BYTES)
        return (
            Lane(rate_bps=LINE_BPS, delay_ms=delay_ms, loss=self.loss, buffer_bytes=buffer_bytes),
            Lane(rate_bps=LINE_BPS, delay_ms=delay_ms),
        )

    def wire(self, lab: Lab, left: str, right: str, seed: int) -> Wire:
        """A wire that is this path."""
        to_right, to_left = self.lanes
        return Wire(lab, left, right, to_right=to_right, to_left=to_left, seed=seed)

    def lay(self, lab: Lab, stack: ExitStack, _directory: Path, seed: int) -> Laid:
        """One wire."""
        wire = stack.enter_context(self.wire(lab, "hub", "far", seed))
        return Laid([wire], f"{wire.left_address}:{PORT}")


@dataclass(frozen=True)
class TwoSegments:
    """A core and an edge with a host between them, which routes, or relays with this congestion control."""

    core: LongPath
    edge: LongPath
    relay_congestion: str | None
    hosts = ("hub", "middle", "far")

    def lay(self, lab: Lab, stack: ExitStack, directory: Path, seed: int) -> Laid:
        """Two wires and the routes over both, with a relay where one is wanted."""
        core = stack.enter_context(self.core.wire(lab, "hub", "middle", seed))
        edge = stack.enter_context(self.edge.wire(lab, "middle", "far", seed + 1))
        lab.output("middle", ["sysctl", "-qw", "net.ipv4.ip_forward=1"])
        lab.output("hub", ["ip", "route", "add", f"{edge.right_address}/32", "via", core.right_address])
        lab.output("far", ["ip", "route", "add", f"{core.left_address}/32", "via", edge.left_address])
        hub_address = f"{core.left_address}:{PORT}"
        if self.relay_congestion is None:
            return Laid([core, edge], hub_address)
        relay = RelayNode(
            directory / "relay.log",
            to=[hub_address],
            listen=f"{edge.left_address}:{RELAY_PORT}",
            prefix=lab.command("middle", []),
            arguments=["--congestion", self.relay_congestion],
        )
        relay.start()
        stack.callback(relay.stop)
        return Laid([core, edge], hub_address, ["--via", relay.address, "--via-only"])


class PathBed:
    """A hub and a site at the ends of a path."""

    def __init__(
        self, directory: Path, path: AnyPath, *, congestion: str, connections: int = 0, seed: int = 1
    ) -> None:
        self._directory, self._path, self._seed = directory, path, seed
        self._congestion, self._connections = congestion, connections
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._start(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _start(self, stack: ExitStack) -> None:
        lab = stack.enter_context(Lab(list(self._path.hosts)))
        self._laid = self._path.lay(lab, stack, self._directory, self._seed)
        options = {"tcp_congestion": self._congestion}
        listen = f"0.0.0.0:{PORT}"
        self.hub = HubNode(self._directory / "hub", listen=listen, prefix=lab.command("hub", []), options=options)
        stack.callback(self.hub.stop)
        self.hub.start()
        self.hub.feed(FEED)
        self.hub.data_connections["far"] = self._connections
        self.site = SiteNode(
            self._directory / "far",
            self._laid.hub_address,
            prefix=lab.command("far", []),
            arguments=self._laid.arguments,
        )
        wish = {"feed": FEED, "pattern": ".*", "not_pattern": None}
        self.hub.site("far", wish, token_file=self.site.token_file)
        stack.callback(self.site.stop)
        self.site.start()
        self.hub.wait_connected("far")
        self.site.wait_begun(FEED)

    def rate_bps(self, seconds: float) -> float:
        """The rate of whole products at the site while others wait, once the connections have grown."""
        with Backlog(self):
            time.sleep(GROWTH_S)
            return self.arriving_bps(seconds)

    def arriving_bps(self, seconds: float) -> float:
        """The rate of whole products at the site from now on, over this time."""
        before, began_s = self.settled, time.monotonic()
        time.sleep(seconds)
        return (self.settled - before) * PRODUCT_BYTES * 8 / (time.monotonic() - began_s)

    @property
    def settled(self) -> int:
        """The number of products that the site has reported."""
        return max((int(feed["settled_to"]) for feed in self.session["feeds"]), default=0)

    @property
    def session(self) -> dict[str, Any]:
        """The account of the site's session."""
        (session,) = self.hub.do("status")["sessions"]
        return dict(session)

    def check_wires(self) -> None:
        """Ends the wires; skips the running test if one of them was late."""
        for wire in self._laid.wires:
            wire.stop().needs_small_lag(max_lag_us=MOST_LAG_US)


class Backlog:
    """Keeps products waiting for the site during the block."""

    def __init__(self, bed: PathBed) -> None:
        self._bed, self._over = bed, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._failure: Exception | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        wait_for("the first product at the site", lambda: self._failure or self._bed.settled > 0, 60)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join(timeout=30)
        if self._failure and not error:
            raise self._failure

    def _run(self) -> None:
        try:
            self._put_what_left()
        except Exception as failure:  # noqa: BLE001 - raised where the block ends
            self._failure = failure

    def _put_what_left(self) -> None:
        put = self._bed.settled
        while not self._over.is_set():
            missing = WAITING - (put - self._bed.settled)
            for _ in range(missing):
                put += 1
                self._bed.hub.put(FEED, f"product {put}", os.urandom(PRODUCT_BYTES))
            self._over.wait(0.02)


CORE, EDGE = LongPath(round_trip_ms=68), LongPath(round_trip_ms=2, loss=0.001)
"""A clean core and a lossy edge: the case for which depots were made."""


def rate_over_edge(directory: Path, *, congestion: str, relayed: bool, connections: int, seconds: float) -> float:
    """The rate to a site behind a lossy edge, with a relay before the edge or without, in bits per second."""
    path = TwoSegments(CORE, EDGE, congestion if relayed else None)
    return rate_with(directory, path, congestion=congestion, connections=connections, seconds=seconds)


def rate_with(directory: Path, path: AnyPath, *, congestion: str, connections: int, seconds: float) -> float:
    """The rate to a site with this congestion control and number of connections, in bits per second.

    Data connections are opened beside the first one, which then carries no products but warnings.
    """
    data_connections = 0 if connections == 1 else connections
    with PathBed(directory, path, congestion=congestion, connections=data_connections) as bed:
        if data_connections:
            wait_for("the data connections", lambda: bed.session["data_connections"] == data_connections)
        rate_bps = bed.rate_bps(seconds)
        bed.check_wires()
    return rate_bps


def rate_with_buffer(directory: Path, path: AnyPath, *, send_buffer_bytes: int | None, seconds: float) -> float:
    """The rate of one CUBIC connection with this send buffer, or that of the kernel, in bits per second."""
    with PathBed(directory, path, congestion="cubic") as bed:
        if send_buffer_bytes is not None:
            _profile(bed, mode="static", knobs={"send_buffer_bytes": send_buffer_bytes})
        rate_bps = bed.rate_bps(seconds)
        bed.check_wires()
    return rate_bps


@dataclass(frozen=True)
class Learned:
    """The gain of a profile that the node learned by itself, from the hub's default on."""

    before_bps: float
    after_bps: float
    took_s: float
    congestion: str


def learned(directory: Path, path: AnyPath, *, congestion: str, seconds: float) -> Learned:
    """Has the node learn a profile for a site with one connection; rates over this time before and after."""
    with PathBed(directory, path, congestion=congestion) as bed, Backlog(bed):
        time.sleep(GROWTH_S)
        before_bps, began_s = bed.arriving_bps(seconds), time.monotonic()
        _profile(bed, mode="learn")
        kept = bed.hub.wait_event(600, event="tcp-trial", step="kept")
        took_s = time.monotonic() - began_s
        time.sleep(GROWTH_S)
        after_bps = bed.arriving_bps(seconds)
        bed.check_wires()
    return Learned(before_bps, after_bps, took_s, str(kept["knobs"]["congestion"]))


def windows_until_taken_back(directory: Path, path: AnyPath, *, congestion: str) -> int:
    """Tries a profile that halves the rate of the one connection; the number of windows before it was taken back."""
    with PathBed(directory, path, congestion=congestion) as bed, Backlog(bed):
        time.sleep(GROWTH_S)
        halved_bps = round(bed.arriving_bps(GROWTH_S) / 2)
        _profile(bed, mode="trial", knobs={"pacing_bps": halved_bps})
        ended = bed.hub.wait_event(120, event="tcp-trial", step="taken-back")
        bed.check_wires()
    return int(ended["windows"])


def _profile(bed: PathBed, *, mode: str, knobs: dict[str, Any] | None = None) -> None:
    line = {"name": "far", "prefix": "10.78.0.0/16", "mode": mode, "knobs": knobs or {}, "learnt": None}
    bed.hub.do("tcp-profiles", profiles=[line])


MOST_LAG_US = 5_000
"""A seventieth of the round trip or more: the wire, and not the path, would shape the rates."""
