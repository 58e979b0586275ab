"""Assigns feeds and sites to live senders; run by one process of a hub, chosen by the ledger."""

import asyncio
import logging
import time
from collections import defaultdict
from dataclasses import dataclass

from downburst.domain.circuits import WANTED
from downburst.domain.plans import Transport
from downburst.domain.senders import DEAD_S, Assignment, Pulse, Sender
from downburst.foundation.clock import Clock, SystemClock, to_us
from downburst.ledger import Ledger, Transaction
from downburst_scheduler.placing import Demand, place


class PlacementLoop:
    """Looks each half second; writes changes only."""

    def __init__(self, ledger: Ledger, clock: Clock | None = None) -> None:
        self._ledger = ledger
        self._clock = clock or SystemClock()
        self._pulse = Pulse(DEAD_S)
        self._known: frozenset[tuple[str, str]] | None = None
        """Names and addresses of the senders that were alive at the last look."""

    async def run(self) -> None:
        """Looks until cancelled; a failed read is repeated at the next look."""
        while True:
            await self.look()
            await asyncio.sleep(EVERY_S)

    async def look(self) -> None:
        """Assigns unserved feeds and sites to live senders, and balances the load."""
        seen = await self._ledger.read(self._see)
        alive = self._pulse.alive(seen.senders, time.monotonic())
        working = frozenset((sender.name, sender.address) for sender in alive)
        takers = [sender.name for sender in alive if not sender.draining and sender.certificate is not None]
        wanted = place(seen.demands, takers, seen.current, seen.homes)
        moved = len(set(wanted) - set(seen.current))
        news = self._known is not None and self._known != working
        if set(wanted) != set(seen.current) or news:
            await self._ledger.write(lambda tx: _keep(tx, wanted))
            who = ", ".join(takers) or "nobody"
            _LOG.info("%d feeds at sites are served by %s; %d were moved", len(wanted), who, moved)
        self._known = working

    def _see(self, tx: Transaction) -> "_Seen":
        senders, current = tx.fleet.senders.all(), tx.fleet.assignments.all()
        if not senders:
            # Most hubs have none: this saves reading their sites' subscriptions twice a second.
            return _Seen([], [], current, {})
        now = to_us(self._clock.now()) // 60_000_000
        arrived: dict[str, float] = defaultdict(float)
        for minute in tx.measured.traffic.minutes(since_minute=now - MINUTES):
            arrived[minute.feed] += minute.bytes * 8
        grouped = {
            plan.feed
            for plan in tx.planning.plans.all_current()
            if any(leg.transport is Transport.MULTICAST for leg in plan.legs)
        }
        sites = {site.name: site for site in tx.sites.all() if site.active}
        wishes: dict[str, set[str]] = defaultdict(set)
        for wish in tx.subscriptions.all():
            if wish.site in sites and sites[wish.site].may_take(wish.feed):
                wishes[wish.feed].add(wish.site)
        demands = [
            Demand(feed, tuple(sorted(wanting)), arrived[feed] / (MINUTES * 60), together=feed in grouped)
            for feed, wanting in sorted(wishes.items())
        ]
        return _Seen(senders, demands, current, _homes(tx))


@dataclass(frozen=True, slots=True)
class _Seen:
    senders: list[Sender]
    demands: list[Demand]
    current: list[Assignment]
    homes: dict[str, frozenset[str]]
    """By site, the senders with a circuit to it."""


def _homes(tx: Transaction) -> dict[str, frozenset[str]]:
    senders = {port.name: port.sender for port in tx.ports.all() if port.sender is not None}
    if not senders:
        return {}
    found: dict[str, set[str]] = defaultdict(set)
    for circuit in tx.circuits.begun():
        near = senders.get(circuit.ends[0].port)
        if near is not None and circuit.state in WANTED:
            for site in circuit.served_sites:
                found[site].add(near)
    return {site: frozenset(names) for site, names in found.items()}


def _keep(tx: Transaction, wanted: list[Assignment]) -> None:
    before = tx.fleet.assignments.version()
    if tx.fleet.assignments.replace(wanted) == before:
        tx.fleet.assignments.touch()


_LOG = logging.getLogger("downburst.placement")
EVERY_S = 0.5
MINUTES = 10
"""The span of arrivals from which the load is measured."""
