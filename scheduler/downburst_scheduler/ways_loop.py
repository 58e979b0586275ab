"""Decides the way of each site that is behind relays, and compares the rate that follows with the prediction.

It follows the node's counters and the relays' reports, and looks in the scheduler's steps. The agent sends a site the
stored way. Its memory beyond the stored ways is lost with a restart.
"""

import logging
import math
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from downburst.bus.port import Bus
from downburst.domain.circuits.signs import CircuitsChanged
from downburst.domain.events import (
    Event,
    EventsMissed,
    FeedsChanged,
    RelaySeen,
    SessionChanged,
    SitesChanged,
    SubscriptionsChanged,
    TrafficSeen,
)
from downburst.domain.relays import CoreCircuit, Relay, SiteWay
from downburst.domain.relays.relay import chains_of
from downburst.domain.relays.ways import cores_of
from downburst.domain.sites import Site
from downburst.foundation.clock import Clock, SystemClock
from downburst.foundation.errors import DownburstError
from downburst.ledger import Ledger, Transaction
from downburst.settings.hub import Settings
from downburst.supervision import attempt
from downburst_scheduler.demand.cores import CoreRide, core_rides
from downburst_scheduler.figures.wording import some
from downburst_scheduler.relays import SIGN_OF_LIFE_S, RelayWatch
from downburst_scheduler.states import Pace
from downburst_scheduler.way_sentences import named, way_reason
from downburst_scheduler.ways import DIRECT, Chain, WayBecause, WayDecision, WayMemory, WayQuestion, decide_way


class WaysLoop:
    """Decides for every site of one hub; the only writer of ways."""

    def __init__(self, bus: Bus, ledger: Ledger, settings: Settings, clock: Clock | None = None) -> None:
        self._bus = bus
        self._ledger = ledger
        self._settings = settings
        self._clock = clock or SystemClock()
        self._pace = Pace.of(settings)
        self._watch = RelayWatch()
        self._known = _Known()
        self._sites: dict[str, _SiteState] = {}
        self._stale = False
        self._next_look_s = 0.0
        self._sure_s = 0.0
        """The time from which a relay without a report has no session."""

    async def run(self) -> None:
        """Works until cancelled."""
        kinds = (
            *(TrafficSeen, RelaySeen, SessionChanged),
            *(FeedsChanged, SitesChanged, SubscriptionsChanged, CircuitsChanged),
        )
        with self._bus.subscribe(*kinds) as events:
            await self.start()
            async for event in events:
                self._stale = self._stale or bool(events.take_dropped())
                await attempt("scheduler.way", partial(self.handle, event))

    async def start(self) -> None:
        """Loads relays, sites and the ways in force."""
        now_s = self._clock.monotonic_s()
        self._next_look_s, self._sure_s = now_s + self._pace.step_s, now_s + SIGN_OF_LIFE_S
        try:
            await self._reload()
        except DownburstError as error:
            self._away(error)

    async def handle(self, event: Event) -> None:
        """Processes one event and its consequences."""
        now_s = self._clock.monotonic_s()
        try:
            match event:
                case RelaySeen():
                    self._watch.reported(event.report, now_s)
                case SessionChanged():
                    self._watch.session(event, now_s)
                    if event.state == "closed" and event.site in self._known.relays:
                        await self._decide(look=False)
                case TrafficSeen():
                    await self._traffic(event, now_s)
                case CircuitsChanged():
                    await self._circuits()
                case FeedsChanged() | SitesChanged() | SubscriptionsChanged() | EventsMissed():
                    await self._reload()
                case _:
                    pass
        except DownburstError as error:
            self._away(error)

    async def _traffic(self, event: TrafficSeen, now_s: float) -> None:
        if not self._known.relays and not self._sites and not self._stale:
            return
        self._watch.traffic(event, now_s)
        if now_s < self._next_look_s:
            return
        self._next_look_s = now_s + self._pace.step_s
        if self._stale and self._ledger.outage is None:
            await self._reload()
        await self._decide(look=True)

    async def _circuits(self) -> None:
        """A circuit that is up carries the way of its order's site; one that is not carries none from now on."""
        if self._known.relays:
            self._known = replace(self._known, rides=await self._ledger.read(core_rides))
            await self._lead()

    async def _lead(self) -> None:
        ways = {site: state.way for site, state in self._sites.items() if state.way is not None}
        led = {site: replace(way, over=self._known.over(site, way.chain)) for site, way in ways.items()}
        moved = {site: way for site, way in led.items() if way != ways[site]}
        if moved:
            await self._put([*moved.values()], moved=[*moved.values()])
            for site, way in moved.items():
                self._sites[site].way = way

    def _away(self, error: DownburstError) -> None:
        self._stale = True
        _LOG.warning("ways of sites could not be reviewed: %s", error.sentence)

    async def _reload(self) -> None:
        self._known = await self._ledger.read(_Known.of)
        self._stale = False
        now_s, now = self._clock.monotonic_s(), self._clock.now()
        self._keep()
        self._sites = {site: state for site, state in self._sites.items() if site in self._known.sites}
        for name, way in self._known.ways.items():
            if name in self._known.sites and name not in self._sites:
                age_s = max((now - way.decided_at).total_seconds(), 0.0) if way.decided_at else 0.0
                chosen_at_s = now_s - age_s if way.chain != DIRECT else None
                self._sites[name] = _SiteState(
                    WayMemory(way.chain, chosen_at_s, predicted_bps=way.predicted_bps), way
                )
        await self._lead()
        await self._decide(look=False)

    async def _decide(self, *, look: bool) -> None:
        """A change of all sites is one transaction and one event."""
        changed: list[tuple[_SiteState, WayDecision, SiteWay]] = []
        for name in [*self._known.chains, *(name for name in self._sites if name not in self._known.chains)]:
            state = self._sites.setdefault(name, _SiteState())
            if state.memory.chain != DIRECT and self._clock.monotonic_s() < self._sure_s:
                # A site that was led over a relay before a restart stays there until the relay had time to report.
                continue
            question = self._question(self._known.sites[name], state, look=look)
            decision = decide_way(question)
            way = self._way(name, state, question, decision)
            if way is None:
                state.memory = decision.memory
            else:
                changed.append((state, decision, way))
        if changed:
            await self._store(changed)

    async def _store(self, changed: "Sequence[tuple[_SiteState, WayDecision, SiteWay]]") -> None:
        """Stores ways first: what is not in the ledger is decided again."""
        moved = [way for state, decision, way in changed if state.memory.chain != decision.chain]
        await self._put([way for _, _, way in changed], moved=moved)
        for state, decision, way in changed:
            state.memory, state.because, state.way = decision.memory, decision.because, way

    async def _put(self, ways: Sequence[SiteWay], *, moved: Sequence[SiteWay]) -> None:
        await self._ledger.write(partial(_put, ways=ways))
        self._known = replace(self._known, ways=dict(self._known.ways) | {way.site: way for way in ways})
        for way in moved:
            _LOG.info("%s is told to go %s: %s", way.site, named(way.chain, way.over), way.reason)
        if moved:
            self._keep()
            self._bus.publish(SitesChanged())

    def _keep(self) -> None:
        self._watch.keep(self._known.relays, self._known.every, self._known.ways)

    def _question(self, site: Site, state: "_SiteState", *, look: bool) -> WayQuestion:
        now_s, now = self._clock.monotonic_s(), self._clock.now()
        chains = self._known.chains.get(site.name, ())
        refusals = {chain: self._why_shut(site, chain, now_s) for chain in chains}
        direct = self._watch.direct(site, now, now_s, most=self._settings.data_connections)
        carried = self._watch.carrier(site.name, now_s)
        over = carried is not None and state.memory.chain != DIRECT and carried == state.memory.chain[-1]
        return WayQuestion(
            direct,
            [self._watch.way(chain, site.name, direct) for chain, why in refusals.items() if why is None],
            shut="; ".join(_told(refusals)) or (None if chains else "no relay is before the site"),
            measured_bps=self._watch.measured_bps(site, now) if over else None,
            now_s=now_s,
            memory=state.memory,
            rules=replace(self._pace.rules, dry_run=self._settings.scheduler.dry_run),
            look=look,
        )

    def _why_shut(self, site: Site, chain: Chain, now_s: float) -> str | None:
        """The reason why a site may not take a chain now; None: it may."""
        for name in chain:
            relay = self._known.relays[name]
            if not self._watch.is_up(name, now_s) or name not in self._known.active:
                return f"relay {name} has no session with the hub"
            refused = [feed for feed in self._known.feeds.get(site.name, ()) if not _granted(relay, feed)]
            if refused:
                return f"relay {name} is not granted {some(refused)}, which {site.name} takes"
        return None

    def _way(self, site: str, state: "_SiteState", question: WayQuestion, decision: WayDecision) -> SiteWay | None:
        """A row to store if the way, the kind of reason or the measured rate is another one."""
        measured_bps = _whole(question.measured_bps if decision.chain != DIRECT else None)
        stands = state.way
        same = stands is not None and stands.chain == decision.chain
        if same and decision.because in QUIETLY:
            return None
        reason = way_reason(question, decision)
        measured = stands is not None and _alike(stands.measured_bps, measured_bps)
        news = decision.because in WITHOUT_FIGURES and stands is not None and stands.reason != reason
        if same and measured and not news and decision.because is state.because:
            return None
        if stands is None and decision.because is WayBecause.WAITING:
            return None
        return SiteWay(
            site,
            decision.chain,
            reason,
            predicted_bps=_whole(decision.predicted_bps),
            direct_bps=_whole(decision.direct.rate_bps),
            measured_bps=measured_bps,
            decided_at=stands.decided_at if same and stands else self._clock.now(),
            over=self._known.over(site, decision.chain),
        )


@dataclass(slots=True)
class _SiteState:
    memory: WayMemory = field(default_factory=WayMemory)
    way: SiteWay | None = None
    """As stored."""
    because: WayBecause | None = None


@dataclass(frozen=True, slots=True)
class _Known:
    """The configuration from the ledger."""

    relays: Mapping[str, Relay] = field(default_factory=dict)
    active: frozenset[str] = frozenset()
    """Relays whose site records are active."""
    every: frozenset[str] = frozenset()
    """The names of all sites and relays."""
    sites: Mapping[str, Site] = field(default_factory=dict)
    """Sites that may be led over relays: relays themselves go direct, and an LDM chooses its own way."""
    chains: Mapping[str, Sequence[Chain]] = field(default_factory=dict)
    """By site, the chains of relays before it."""
    feeds: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By site, the feeds that it takes."""
    ways: Mapping[str, SiteWay] = field(default_factory=dict)
    rides: Mapping[str, CoreRide] = field(default_factory=dict)
    """By site, the ordered circuit that is up for its way."""

    def over(self, site: str, chain: Chain) -> CoreCircuit | None:
        """The circuit over which the site goes by a chain."""
        ride = self.rides.get(site)
        return ride.over if ride is not None and ride.core in cores_of(chain) else None

    @classmethod
    def of(cls, tx: Transaction) -> "_Known":
        relays = {relay.name: relay for relay in tx.fleet.relays.all()}
        ways = {way.site: way for way in tx.fleet.ways.all()}
        if not relays and not ways:
            # Most hubs have none: this saves reading their subscriptions.
            return cls()
        every = {site.name: site for site in tx.sites.all()}
        able = (site for site in every.values() if site.active and site.ldm_host is None)
        sites = {site.name: site for site in able if site.name not in relays}
        feeds: dict[str, set[str]] = {}
        for wish in tx.subscriptions.all():
            if wish.site in sites and sites[wish.site].may_take(wish.feed):
                feeds.setdefault(wish.site, set()).add(wish.feed)
        return cls(
            relays,
            frozenset(name for name in relays if every[name].active),
            frozenset(every),
            sites,
            _chains(relays.values(), sites),
            {site: sorted(names) for site, names in feeds.items()},
            ways,
            core_rides(tx),
        )


def _chains(relays: Collection[Relay], sites: Container[str]) -> dict[str, tuple[Chain, ...]]:
    """The chains before each site: sites behind the same relays have the same."""
    behind: dict[str, list[str]] = {}
    for relay in relays:
        for site in relay.sites:
            behind.setdefault(site, []).append(relay.name)
    alike: dict[tuple[str, ...], tuple[Chain, ...]] = {}
    for site, names in behind.items():
        if tuple(names) not in alike:
            alike[tuple(names)] = chains_of(site, relays)
    found = {site: alike[tuple(names)] for site, names in behind.items() if site in sites}
    return {site: chains for site, chains in found.items() if chains}


def _granted(relay: Relay, feed: str) -> bool:
    return "*" in relay.feeds or feed in relay.feeds


def _told(refusals: Mapping[Chain, str | None]) -> list[str]:
    """Each reason once, in order."""
    return list(dict.fromkeys(why for why in refusals.values() if why is not None))


def _put(tx: Transaction, *, ways: Iterable[SiteWay]) -> None:
    for way in ways:
        tx.fleet.ways.put(way)


def _whole(rate_bps: float | None) -> int | None:
    """A rate as it is stored; None if it is unknown or without a known limit."""
    return int(rate_bps) if rate_bps is not None and math.isfinite(rate_bps) else None


def _alike(before: int | None, now: int | None) -> bool:
    """True if a newly measured rate is no news."""
    if before is None or now is None:
        return now is None
    return abs(now - before) <= before * TELLING_CHANGE


_LOG = logging.getLogger("downburst.ways")
QUIETLY = (WayBecause.WAITING, WayBecause.RESTING)
WITHOUT_FIGURES = (WayBecause.NO_RELAY, WayBecause.UNKNOWN)
"""Reasons that change only if something happens."""
TELLING_CHANGE = 0.25
