"""A runner of probes on a real ledger; node, calendar and sites are in memory."""

from typing import Any

from downburst.bus.local import LocalBus
from downburst.domain.backlog import FeedBacklog
from downburst.domain.circuits import Port
from downburst.domain.events import BacklogSeen, SessionChanged, SiteBacklog
from downburst.domain.feeds import Feed
from downburst.domain.probes import Probe, ProbeRequest
from downburst.domain.probes.signs import PathMeasured, PathsMeasured, ProbeOver
from downburst.domain.sites import Site
from downburst.foundation.clock import FakeClock, to_us
from downburst.ledger import Ledger
from downburst.live.state import LiveState
from downburst_probes.runner import ProbeRunner
from factories import probe_request
from kit.probes import BookingsInMemory, ProbeNodeInMemory, over, step

M = 10**6


class Stage:
    """The sites unl.edu, with a port, and isu.edu, without one; both are connected and take NGRID."""

    def __init__(self, ledger: Ledger, clock: FakeClock) -> None:
        self.ledger = ledger
        self.clock = clock
        self.live = LiveState()
        self.node = ProbeNodeInMemory()
        self.bookings = BookingsInMemory(clock)
        with ledger.transaction() as tx:
            tx.feeds.add(Feed("NGRID", objective_ms=2_000))
            tx.sites.add(Site("unl.edu", access_rate_bps=1_000 * M))
            tx.sites.add(Site("isu.edu"))
            tx.ports.add(Port("hub-eth0", 1_000 * M))
            tx.ports.add(Port("unl-eth1", 1_000 * M, "unl.edu"))
        for site in ("unl.edu", "isu.edu"):
            self.live.apply(SessionChanged(site, "connected", clock.now(), "192.0.2.1:9", software="9.9"))
        self.restart()

    def restart(self) -> None:
        """Another process of the hub."""
        self.bus = LocalBus()
        self.runner = ProbeRunner(
            self.ledger, self.bus, self.live, self.clock, node=self.node, bookings=self.bookings
        )

    def add(self, request: ProbeRequest | None = None) -> Probe:
        with self.ledger.transaction() as tx:
            return tx.measured.probing.probes.add(request or probe_request())

    def kept(self, probe: Probe) -> Probe:
        with self.ledger.transaction(writes=False) as tx:
            return tx.measured.probing.probes.one(probe.id)

    async def work(self, seconds: float = 0) -> None:
        self.clock.advance(seconds)
        await self.runner.guard()
        await self.runner.work()
        await self.runner.settle()

    async def started(self, request: ProbeRequest | None = None) -> Probe:
        probe = self.add(request)
        await self.work()
        return self.kept(probe)

    async def ends(self, probe: Probe, **given: Any) -> Probe:
        self.runner.handle(over(probe.name, step(probe.request.highest_bps), **given))
        await self.work()
        return self.kept(probe)

    def hear(self, event: ProbeOver) -> None:
        self.runner.handle(event)

    def delivers(self, site: str, p99_ms: float, bound_ms: float = 1.0) -> None:
        """A second's products of the feed arrived with this latency."""
        self.runner.handle(PathsMeasured((PathMeasured(site, "NGRID", p99_ms, bound_ms),)))

    def lacks(self, site: str, age_s: float) -> None:
        """The oldest product that the site lacks has this age."""
        oldest_us = to_us(self.clock.now()) - round(age_s * 1e6)
        self.live.apply(BacklogSeen((SiteBacklog(site, (FeedBacklog("NGRID", True, 1, 10, oldest_us),)),)))
