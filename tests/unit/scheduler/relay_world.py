"""A hub, relays and sites in virtual time: the kernels' counters and the reports of relays, by the ways of sites.

A site follows the stored way after some seconds, as the agent and the node would lead it. A closed relay reports
nothing, and its sites are direct at once.
"""

from dataclasses import dataclass, field

from downburst.bus.local import LocalBus
from downburst.domain.events import RelaySeen, SessionChanged, SessionTraffic, SitesChanged, TrafficSeen
from downburst.domain.feeds import Feed
from downburst.domain.relays import FanOut, Relay, RelayReport, Segment, SiteWay, Tunnel
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Subscription
from downburst.domain.tcp.path import TcpPath
from downburst.foundation.clock import FakeClock, to_us
from downburst.ledger import Ledger
from downburst.settings.hub import Settings
from downburst_scheduler.ways_loop import WaysLoop


@dataclass(frozen=True, slots=True)
class Path:
    """What a kernel says of one connection."""

    round_trip_us: int
    loss: float = 0.0
    rate_bps: int = 6_000_000
    congestion: str = "cubic"
    limited: bool = False
    """True if more products wait than it carries."""


@dataclass
class World:
    """The loop with its surroundings."""

    ledger: Ledger
    settings: Settings
    clock: FakeClock
    bus: LocalBus = field(default_factory=LocalBus)
    direct: dict[str, Path] = field(default_factory=dict)
    """By site or relay, its own way to the hub."""
    edges: dict[str, Path] = field(default_factory=dict)
    """By site, the segment after its relay."""
    over: dict[str, Path] = field(default_factory=dict)
    """By site, the hub's figures of its session on a relay."""
    closed: set[str] = field(default_factory=set)
    """Relays without a session."""
    sent: dict[str, tuple[str, float, float]] = field(default_factory=dict)
    """By site, its carrier, and the segments sent and sent again on this session."""

    def __post_init__(self) -> None:
        self._listening = self.bus.subscribe(SitesChanged)
        self.loop = self._loop()

    async def restart(self) -> None:
        self.loop = self._loop()
        await self.loop.start()

    def add(self, *sites: str, feed: str = "NGRID") -> None:
        with self.ledger.transaction() as tx:
            if tx.feeds.find(feed) is None:
                tx.feeds.add(Feed(feed))
            for site in sites:
                if tx.sites.find(site) is None:
                    tx.sites.add(Site(site))
                tx.subscriptions.add(Subscription(0, site, feed, ".*"))

    def relay(self, name: str, *sites: str, feeds: tuple[str, ...] = ("*",), fan_out: FanOut | None = None) -> None:
        with self.ledger.transaction() as tx:
            tx.fleet.relays.put(Relay(name, f"{name}.example.edu:7379", fan_out, sites, feeds))

    async def changed(self) -> None:
        """An operator's change."""
        await self.loop.handle(SitesChanged())

    async def seconds(self, count: int) -> None:
        for _ in range(count):
            self.clock.advance(1)
            now_s = round(self.clock.monotonic_s())
            await self._follow(now_s)
            if now_s % 10 == 0:
                for name in self.relays() - self.closed:
                    await self.loop.handle(self.report(name))
            await self.loop.handle(self.traffic(now_s))

    async def close(self, relay: str) -> None:
        self.closed.add(relay)
        await self.loop.handle(self.session(relay, "closed"))

    async def open(self, relay: str) -> None:
        self.closed.discard(relay)
        await self.loop.handle(self.session(relay, "connected"))

    def way(self, site: str = "unl.edu") -> SiteWay | None:
        with self.ledger.transaction(writes=False) as tx:
            return tx.fleet.ways.find(site)

    def chain(self, site: str = "unl.edu") -> tuple[str, ...]:
        way = self.way(site)
        return way.chain if way is not None else ()

    async def told(self) -> int:
        """The number of events by which the loop made the agent send sites again."""
        self._listening.close()
        return len([event async for event in self._listening])

    def relays(self) -> set[str]:
        with self.ledger.transaction(writes=False) as tx:
            return {relay.name for relay in tx.fleet.relays.all()}

    def carrier(self, site: str) -> str:
        return self.sent.get(site, ("", 0, 0))[0]

    def session(self, site: str, state: str) -> SessionChanged:
        return SessionChanged(site, state, self.clock.now(), "192.0.2.1:9")  # type: ignore[arg-type]

    def report(self, relay: str) -> RelaySeen:
        """Each carried site's tunnel, with the relay's figures of both segments."""
        tunnels = []
        for site, edge in self.edges.items():
            if self.carrier(site) == relay:
                near = Segment(edge.round_trip_us, int(edge.loss * 1e6), edge.congestion, edge.rate_bps)
                onward = Segment(10_000, 0, "cubic", 10**8)
                tunnels.append(
                    Tunnel(site, "192.0.2.1:9", "192.0.2.2:9", "hub:7370", 10.0, 10**7, 10**4, 10**6, near, onward)
                )
        return RelaySeen(self.clock.now(), RelayReport(relay, tuple(tunnels)))

    def traffic(self, now_s: int) -> TrafficSeen:
        """A second of the node; the kernel is asked every five."""
        connected = [name for name in self.direct if name not in self.closed]
        sessions = [self._session(name) for name in connected] if now_s % 5 == 0 else []
        now_us = to_us(self.clock.now())
        return TrafficSeen(now_us - 1_000_000, now_us, (), (), tuple(sessions), 0)

    def _session(self, name: str) -> SessionTraffic:
        carrier, sent, again = self.sent.get(name, ("", 0.0, 0.0))
        path = self.over[name] if carrier else self.direct[name]
        sent, again = sent + SEGMENTS, again + SEGMENTS * path.loss
        self.sent[name] = (carrier, sent, again)
        tcp = TcpPath(
            path.round_trip_us, int(sent), int(again), path.rate_bps,
            is_lower_bound=not path.limited, congestion=path.congestion,
        )  # fmt: skip
        clock_us = path.round_trip_us + (self.edges[name].round_trip_us if carrier else 0)
        return SessionTraffic(name, 0, 500, clock_us, (), path=tcp)

    async def _follow(self, now_s: int) -> None:
        """A site begins another session on its way."""
        for site in self.edges:
            chain = self.chain(site)
            wanted = chain[-1] if chain and chain[-1] not in self.closed else ""
            due = now_s % FOLLOWS_S == 0 or self.carrier(site) in self.closed
            if wanted != self.carrier(site) and due:
                self.sent[site] = (wanted, 0.0, 0.0)
                await self.loop.handle(self.session(site, "connected"))

    def _loop(self) -> WaysLoop:
        return WaysLoop(self.bus, self.ledger, self.settings, self.clock)


SEGMENTS = 2_000
"""The segments of five seconds."""
FOLLOWS_S = 3
