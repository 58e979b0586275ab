"""The parts that the api works with: the ledger, the present, the bus, the clock, and the node."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from fastapi import Request

from downburst.bus.port import Bus
from downburst.deliveries import FoundDeliveries, ProductFacts, ProductName
from downburst.deliveries.browsing import Browse, Browsed
from downburst.domain.alarms import Receiver
from downburst.domain.bridges.exporting import ExportedFile
from downburst.domain.circuits import Circuit, CircuitAnswer, CircuitChange, CircuitEnd, CircuitState, Port
from downburst.domain.credentials import EnrolmentToken
from downburst.domain.feeds import Feed, FeedLog
from downburst.domain.plans import OtherConditions, WhatIf
from downburst.domain.products import Acknowledgement, Product
from downburst.domain.topology import Topology
from downburst.domain.topology.bookings import BookedTest, BookingAnswer, WantedTest
from downburst.domain.topology.questions import (
    RateAnswer,
    RateQuestion,
    TopologyAnswer,
    WindowAnswer,
    WindowQuestion,
)
from downburst.foundation.clock import Clock
from downburst.ledger import Ledger
from downburst.ledger.repositories.feeds import unknown_feed
from downburst.live.state import LiveState
from downburst.live.traced import TracedSite, TracerQuestion
from downburst.settings.hub import Settings
from downburst.supervision.probes import Probes
from downburst_api.border.authentication import Gate
from downburst_api.metrics.counted import Counted
from downburst_api.overview.memory import OverviewMemory


class Node(Protocol):
    """The api's requests to the node, by way of the agent."""

    @property
    def running(self) -> bool:
        """True if the node is up."""

    @property
    def restarts(self) -> int:
        """The number of its restarts."""

    @property
    def sites_address(self) -> tuple[str, ...]:
        """The address that sites connect to."""

    @property
    def ca_sha256(self) -> str:
        """The certificate's fingerprint for tokens."""

    async def ingest(
        self, path: Path, product: Product, *, remove: bool = True, digest: object = None
    ) -> Acknowledgement:
        """Makes a product of a complete file."""

    async def check_pattern(self, pattern: str) -> None:
        """Raises `BadPattern` unless the node can use the pattern."""

    async def status(self) -> dict[str, Any]:
        """The node's report on its feeds and sessions."""

    async def logs(self) -> list[FeedLog]:
        """The contents of each feed's log; raises `NodeAway`."""

    async def found_deliveries(
        self, name: ProductName, *, feed: str, before: int | None = None, limit: int = 5, site: str | None = None
    ) -> FoundDeliveries:
        """The deliveries of a feed's products that match a name."""

    async def products(self, feed: str, epoch: str, sequences: Sequence[int]) -> list[ProductFacts]:
        """The products with these numbers in a feed's log."""

    async def browse(self, wanted: Browse) -> Browsed:
        """The products of a feed's log that match; raises `BadPattern` for a pattern that the node can't use."""

    async def exported(self, feed: str, epoch: str, sequence: int) -> ExportedFile:
        """A file with the bytes of a product; raises `NotKept` if the log has none."""

    async def tracer(self, wanted: TracerQuestion) -> TracedSite:
        """The node's recording of a site's connections, judged."""

    async def new_token(
        self, site: str, *, lifetime: timedelta, credential_lifetime: timedelta | None = None
    ) -> tuple[str, EnrolmentToken]:
        """An enrolment token, shown only once."""

    async def connect_upstreams(self) -> None:
        """Has the node connect to the ledger's upstreams; raises the reason if it can't."""

    async def apply_tcp_profiles(self) -> None:
        """Has the node apply the ledger's TCP profiles; raises the reason if it refuses one."""

    async def connect_ldm(self) -> tuple[str, ...]:
        """Has the node request from and serve the ledger's LDMs; raises the failure, else returns its address."""

    async def refresh(self) -> None:
        """Sends the ledger's feeds and sites."""


class Desk(Protocol):
    """The topology, and questions to the calendar."""

    async def put_topology(self, wanted: Topology, *, dry_run: bool = False) -> TopologyAnswer:
        """Replaces the topology."""

    async def find_window(self, asked: WindowQuestion) -> WindowAnswer:
        """The first window with room for a circuit."""

    async def find_rate(self, asked: RateQuestion) -> RateAnswer:
        """The most that is free throughout a window."""


class Leaves(Protocol):
    """Sites that join or leave multipoint circuits."""

    async def add_leaf(self, number: int, leaf: CircuitEnd, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Adds a site's end, all or nothing."""

    async def remove_leaf(self, number: int, site: str, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Removes a site's end."""


class Tests(Protocol):
    """Bookings of tests with load."""

    async def book(self, wanted: WantedTest) -> BookingAnswer:
        """Grants a test its rate, or says when to ask again."""

    async def release(self, number: int) -> None:
        """Ends a booking before its time."""

    async def booked(self) -> list[BookedTest]:
        """The running tests and the last of those that are over."""


class Circuits(Protocol):
    """Requests for circuits and ports; refusals are raised with their sentences."""

    @property
    def desk(self) -> Desk:
        """Questions, and the topology."""

    @property
    def leaves(self) -> Leaves:
        """Sites of multipoint circuits."""

    @property
    def tests(self) -> Tests:
        """Tests with load."""

    async def request(self, wanted: Circuit, hold_s: float | None = None, *, dry_run: bool = False) -> CircuitAnswer:
        """Reserves a circuit, or holds it until a commit; the same request again gets the first circuit."""

    async def commit(self, number: int, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Makes a held circuit a reservation."""

    async def create_path(self, number: int, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Has the path of a waiting circuit set up."""

    async def tear_down_path(self, number: int, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Removes the path of a circuit, which waits afterwards."""

    async def override(
        self, number: int, state: CircuitState | None, reason: str = "", *, by: str, dry_run: bool = False
    ) -> CircuitAnswer:
        """Shows a circuit as active or down whatever its probes say; None gives it back to them."""

    async def modify(self, number: int, change: CircuitChange, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Changes a circuit, all or nothing."""

    async def cancel(self, number: int, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Releases a circuit."""

    async def clone(
        self, number: int, *, request_id: str, begin: datetime | None, by: str, dry_run: bool = False
    ) -> CircuitAnswer:
        """Reserves another circuit with the same properties."""

    async def measure(self, number: int) -> Circuit:
        """Starts a measurement of a circuit."""

    async def add_port(self, port: Port) -> Port:
        """Creates a port."""

    async def change_port(self, port: Port) -> Port:
        """Changes a port."""

    async def remove_port(self, name: str) -> None:
        """Removes a port that no circuit uses."""


class AlarmTests(Protocol):
    """Tests of receivers."""

    async def tell_as_a_test(self, receiver: Receiver) -> None:
        """Sends a receiver a test notice; raises the reason if it can't."""


class Planner(Protocol):
    """Questions to the scheduler."""

    async def what_if(self, feed: str, other: OtherConditions, *, search: bool) -> WhatIf:
        """The choice for a feed under other conditions, with its flips if they are searched."""


@dataclass(slots=True)
class Runtime:
    """One running hub, as the api's routes use it."""

    settings: Settings
    ledger: Ledger
    bus: Bus
    live: LiveState
    clock: Clock
    node: Node
    circuits: Circuits
    alarms: AlarmTests
    planner: Planner
    probes: Probes = field(default_factory=lambda: Probes({}))
    """True while the hub works, end to end."""
    local_token: str = field(default="", repr=False)
    """The secret of commands of the hub's own user; empty: there are no such commands."""
    counted: Counted = field(default_factory=Counted)
    """Prometheus' counters since the hub's start."""
    gate: Gate = field(init=False)
    overview: OverviewMemory = field(init=False)
    _feeds: dict[str, Feed] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.overview = OverviewMemory(self.ledger, self.clock)
        self.gate = Gate(
            self.ledger,
            self.clock,
            local_token=self.local_token,
            without_login=self.settings.access.without_login,
            limits=self.settings.limits,
        )

    @property
    def started_at(self) -> datetime:
        """The start of the hub, from which its memory begins."""
        return self.overview.begun_at

    async def feed(self, name: str) -> Feed:
        """The feed, from memory: each upload needs it, and feeds change only through this api."""
        if self._feeds is None:
            self._feeds = {feed.name: feed for feed in await self.ledger.read(lambda tx: tx.feeds.all())}
        found = self._feeds.get(name)
        if found is None:
            raise unknown_feed(name, list(self._feeds))
        return found

    def forget_feeds(self) -> None:
        """Reads the feeds afresh at the next request."""
        self._feeds = None


def runtime_of(request: Request) -> Runtime:
    """The hub of this request."""
    runtime: Runtime = request.app.state.runtime
    return runtime
