"""The scheduler at work: follows the traffic, looks at every feed each step, keeps plans and says them.

It runs on events alone: the node's counters come each second, and without them there is nothing to decide. A change
of sites, subscriptions, feeds or pins is answered at once and counts as no look, so it can't hurry a change of
transport. All of its memory beyond the plans is lost with a restart, after which the dwell of a plan goes on from
when the plan was made, and groups get legs of their own again.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from downburst.bus import Bus
from downburst.clock import Clock, SystemClock
from downburst.errors import DownburstError
from downburst.events import (
    CircuitsChanged,
    Event,
    FaultSeen,
    FeedsChanged,
    LegChanged,
    LegTraffic,
    PinChanged,
    PlanMade,
    SitesChanged,
    SubscriptionsChanged,
    TrafficSeen,
)
from downburst.ledger import Book, Ledger
from downburst.model import Feed, Leg, Pin, Plan, Settled, Site, Subscription, Transport
from downburst.settings import Settings
from downburst_scheduler.accuracy import with_measurement
from downburst_scheduler.legs import group_leg, legs_of
from downburst_scheduler.offers import CircuitOffers, without
from downburst_scheduler.options import GROUP_SHARE_OF_EGRESS, HubInput, SiteInput
from downburst_scheduler.paths import OUT_OF_GROUPS, SitePaths
from downburst_scheduler.planner import Because, Decision, Memory, Question, Rules, decide
from downburst_scheduler.sentences import figures, reason
from downburst_scheduler.traffic import FeedWindow


class SchedulerLoop:
    """Decides for every feed of one hub; the only writer of plans."""

    def __init__(self, bus: Bus, ledger: Ledger, settings: Settings, clock: Clock | None = None) -> None:
        self._bus = bus
        self._ledger = ledger
        self._settings = settings
        self._clock = clock or SystemClock()
        self._pace = _Pace.of(settings)
        self._known = _Known()
        self._feeds: dict[str, _FeedState] = {}
        self._paths = SitePaths(timedelta(minutes=settings.multicast.retry_minutes))
        self._caught_up: dict[str, frozenset[tuple[str, str]]] = {}
        self._next_look_s = 0.0
        self._next_review_s = 0.0

    async def run(self) -> None:
        """Works until cancelled."""
        kinds = (
            TrafficSeen,
            LegChanged,
            FeedsChanged,
            SitesChanged,
            SubscriptionsChanged,
            PinChanged,
            CircuitsChanged,
        )
        with self._bus.subscribe(*kinds) as events:
            await self.start()
            async for event in events:
                if events.take_dropped():
                    await self._reload()
                await self.handle(event)

    async def start(self) -> None:
        """Takes up the plans that are in force and makes those that are missing."""
        now_s = self._clock.monotonic_s()
        self._next_look_s = now_s + self._pace.step_s
        self._next_review_s = now_s + self._pace.review_s
        for plan in await self._ledger.read(lambda book: book.plans.all_current()):
            age_s = (self._clock.now() - plan.made_at).total_seconds()
            self._feeds[plan.feed] = _FeedState.resumed(plan, self._pace.window_s, now_s=now_s, age_s=age_s)
        await self._reload()

    async def handle(self, event: Event) -> None:
        """Takes in one event and does what it calls for."""
        try:
            match event:
                case TrafficSeen():
                    await self._traffic(event)
                case LegChanged():
                    self._paths.leg_changed(event)
                    if event.state in OUT_OF_GROUPS:
                        await self._decide_all([event.feed], look=False)
                case _:
                    await self._reload()
        except DownburstError as error:
            _LOG.warning("the scheduler could not finish a look: %s", error.sentence)
            self._bus.publish(
                FaultSeen(self._clock.now(), f"the scheduler could not finish a look: {error.sentence}")
            )

    async def _reload(self) -> None:
        self._known = await self._ledger.read(_Known.of)
        self._paths.keep(self._known.sites)
        self._feeds = {name: state for name, state in self._feeds.items() if name in self._known.feeds}
        await self._decide_all(self._known.feeds, look=False)

    async def _traffic(self, event: TrafficSeen) -> None:
        self._paths.sessions_seen(event.sessions)
        for site in event.gone:
            self._caught_up.pop(site, None)
        for session in event.sessions:
            near = (progress.feed for progress in session.feeds if progress.pending <= NEARLY_CAUGHT_UP)
            self._caught_up[session.site] = frozenset((session.site, feed) for feed in near)
        self._count(event)
        now_s = self._clock.monotonic_s()
        if now_s >= self._next_review_s:
            self._next_review_s = now_s + self._pace.review_s
            await self._review()
        if now_s >= self._next_look_s:
            self._next_look_s = now_s + self._pace.step_s
            await self._decide_all(self._known.feeds, look=True)

    def _count(self, event: TrafficSeen) -> None:
        arrived = {feed.feed: feed for feed in event.feeds}
        for name in self._known.feeds:
            traffic = arrived.get(name)
            window = self._state(name).window
            if traffic is None:
                window.add(seconds=event.seconds, products=0, size_bytes=0, sizes=())
                continue
            window.add(
                seconds=event.seconds, products=traffic.products, size_bytes=traffic.bytes, sizes=traffic.sizes
            )
            self._paths.arrived(name, traffic.bytes)
        for leg in event.legs:
            if leg.feed in self._feeds:
                self._feeds[leg.feed].repairs.add(leg)

    async def _decide_all(self, names: Iterable[str], *, look: bool) -> None:
        for name in list(names):
            if name in self._known.feeds:
                await self._decide(self._known.feeds[name], look=look)

    async def _decide(self, feed: Feed, *, look: bool) -> None:
        state = self._state(feed.name)
        question = self._question(feed, state, look=look)
        decision = await asyncio.to_thread(decide, question)
        state.memory = decision.memory
        state.egress_bps = decision.chosen.prediction.egress_bps if decision.chosen.prediction else 0.0
        plan = await self._plan(feed, state, question, decision)
        if plan is not None:
            state.plan, state.because = plan, decision.because
            _LOG.info("plan %d of %s: %s", plan.version, plan.feed, plan.reason)
            self._bus.publish(PlanMade(plan))

    def _question(self, feed: Feed, state: "_FeedState", *, look: bool) -> Question:
        return Question(
            arrivals=state.window.arrivals(),
            sites=self._sites_of(feed, state.plan),
            hub=self._hub_for(feed.name, state),
            objective_ms=feed.objective_ms,
            now_s=self._clock.monotonic_s(),
            memory=state.memory,
            rules=self._pace.rules,
            pin=self._known.pins.get(feed.name),
            look=look,
        )

    def _sites_of(self, feed: Feed, plan: Plan | None) -> tuple[SiteInput, ...]:
        inside = {site for leg in _groups(plan) for site in leg.sites}
        now = self._clock.now()
        found = (
            self._paths.site(site, feed.name, wishes, now=now, in_group=site.name in inside)
            for site, wishes in self._known.subscribers(feed.name)
        )
        return tuple(self._with_circuit(site, feed.name) for site in found)

    def _with_circuit(self, site: SiteInput, feed: str) -> SiteInput:
        """A site with its circuit, of which feeds that ride on it already leave the rest."""
        offers = self._known.circuits
        offer = offers.to(site.site)
        if offer is None:
            return replace(site, no_circuit=offers.why_not(site.site))
        used_bps = sum(state.used_bps(site.site) for name, state in self._feeds.items() if name != feed)
        return replace(site, circuit=without(offer, used_bps))

    def _hub_for(self, name: str, state: "_FeedState") -> HubInput:
        """What other feeds send on average is not free for this one; a tenth always is."""
        capacity_bps = self._settings.egress_capacity_bps
        others_bps = sum(other.egress_bps for feed, other in self._feeds.items() if feed != name)
        multicast = self._settings.multicast.of(name)
        return HubInput(
            egress_bps=max(capacity_bps - others_bps, capacity_bps * SMALLEST_SHARE_OF_CAPACITY),
            multicast_rate_bps=multicast.rate_bps,
            repair_share=state.repairs.share,
            no_multicast=None if multicast.enabled else "multicast is switched off in this hub's settings",
        )

    async def _plan(self, feed: Feed, state: "_FeedState", question: Question, decision: Decision) -> Plan | None:
        """A stored plan if legs, pin or the kind of reason differ from the one in force."""
        before = state.plan
        legs = await self._legs(feed, state, decision)
        pinned = decision.because in (Because.PINNED, Because.PIN_INFEASIBLE)
        same = before is not None and before.legs == legs and before.pinned == pinned
        if same and (decision.because in QUIETLY or decision.because == state.because):
            return None
        made = Plan(
            feed=feed.name,
            version=0,
            legs=legs,
            reason=reason(question, decision),
            made_at=self._clock.now(),
            candidates=decision.candidates,
            figures=figures(question, decision, state.window.statistics()),
            pinned=pinned,
        )
        return await self._ledger.write(lambda book: book.plans.append(made))

    async def _legs(self, feed: Feed, state: "_FeedState", decision: Decision) -> tuple[Leg, ...]:
        """A group keeps its number as long as the feed stays on multicast; the next one gets another."""
        if feed.unicast_leg is None:
            raise DownburstError(f"the feed {feed.name} has no unicast leg; remove it and add it again")
        if not decision.chosen.multicast_sites:
            state.group = None
        elif state.group is None:
            number = await self._ledger.write(lambda book: book.legs.allocate(feed.name))
            multicast = self._settings.multicast.of(feed.name)
            pace_bps = min(multicast.rate_bps, GROUP_SHARE_OF_EGRESS * self._settings.egress_capacity_bps)
            state.group = group_leg(number, multicast, rate_bps=int(pace_bps))
        if decision.chosen.circuit_sites and state.circuit_leg is None:
            state.circuit_leg = await self._ledger.write(lambda book: book.legs.allocate(feed.name))
        return legs_of(
            decision.chosen, unicast_leg=feed.unicast_leg, group=state.group, circuit_leg=state.circuit_leg
        )

    async def _review(self) -> None:
        """Sets what was measured beside what was predicted, and learns how much of its feeds each site takes."""
        self._paths.settled(await self._ledger.read(_settled), caught_up=frozenset().union(*self._caught_up.values()))
        for name, state in self._feeds.items():
            if state.plan is not None and name in self._known.feeds:
                await self._measure(state, state.plan)

    async def _measure(self, state: "_FeedState", plan: Plan) -> None:
        measured = await self._ledger.read(lambda book: with_measurement(book, plan, now=self._clock.now()))
        if measured is not None:
            await self._ledger.write(lambda book: book.plans.annotate(measured))
            state.plan = measured

    def _state(self, name: str) -> "_FeedState":
        if name not in self._feeds:
            self._feeds[name] = _FeedState(FeedWindow(self._pace.window_s))
        return self._feeds[name]


@dataclass(frozen=True, slots=True)
class _Pace:
    """The settings' times in real seconds."""

    step_s: float
    window_s: float
    review_s: float
    rules: Rules

    @classmethod
    def of(cls, settings: Settings) -> "_Pace":
        wanted, scale = settings.scheduler, settings.time_scale
        rules = Rules(wanted.min_gain, wanted.agreeing_windows, wanted.dwell_s / scale)
        window_s = max(wanted.window_s / scale, SHORTEST_WINDOW_S)
        return cls(max(wanted.step_s / scale, 1.0), window_s, max(60 / scale, 1.0), rules)


@dataclass(frozen=True, slots=True)
class _Known:
    """The configuration as the ledger has it."""

    feeds: Mapping[str, Feed] = field(default_factory=dict)
    sites: Mapping[str, Site] = field(default_factory=dict)
    subscriptions: tuple[Subscription, ...] = ()
    pins: Mapping[str, Pin] = field(default_factory=dict)
    circuits: CircuitOffers = field(default_factory=CircuitOffers)

    @classmethod
    def of(cls, book: Book) -> "_Known":
        return cls(
            feeds={feed.name: feed for feed in book.feeds.all()},
            sites={site.name: site for site in book.sites.all()},
            subscriptions=tuple(book.subscriptions.all()),
            pins=book.pins.all(),
            circuits=CircuitOffers(book.circuits.begun(), book.circuits.measurements()),
        )

    def subscribers(self, feed: str) -> list[tuple[Site, list[Subscription]]]:
        """Sites that want the feed, may take it and are active, with what they want."""
        wishes: dict[str, list[Subscription]] = {}
        for wish in self.subscriptions:
            if wish.feed == feed:
                wishes.setdefault(wish.site, []).append(wish)
        sites = [(self.sites[name], wanted) for name, wanted in sorted(wishes.items()) if name in self.sites]
        return [(site, wanted) for site, wanted in sites if site.active and site.may_take(feed)]


@dataclass(slots=True)
class _Repairs:
    """Repair over product bytes of a feed's groups; old counts fade."""

    sent_bytes: float = 0.0
    repair_bytes: float = 0.0

    @property
    def share(self) -> float:
        return min(self.repair_bytes / self.sent_bytes, 1.0) if self.sent_bytes >= TELLING_BYTES else 0.0

    def add(self, leg: LegTraffic) -> None:
        if leg.transport is Transport.MULTICAST and (leg.product_bytes or leg.repair_bytes):
            self.sent_bytes = self.sent_bytes * FADING + leg.product_bytes
            self.repair_bytes = self.repair_bytes * FADING + leg.repair_bytes


@dataclass(slots=True)
class _FeedState:
    window: FeedWindow
    memory: Memory = field(default_factory=Memory)
    plan: Plan | None = None
    because: Because | None = None
    group: Leg | None = None
    circuit_leg: int | None = None
    repairs: _Repairs = field(default_factory=_Repairs)
    egress_bps: float = 0.0

    @classmethod
    def resumed(cls, plan: Plan, window_s: float, *, now_s: float, age_s: float) -> "_FeedState":
        """Goes on from a plan of an earlier run."""
        because = plan.figures.get("because")
        rides = next((leg for leg in plan.legs if leg.transport is Transport.STATIC_CIRCUIT), None)
        standing = Transport.MULTICAST if _groups(plan) else Transport.UNICAST
        known = Because(because) if because in tuple(Because) else None
        memory = Memory(
            transport=Transport.STATIC_CIRCUIT if rides else standing,
            chosen_at_s=None if known in (None, *STARTING) else now_s - max(age_s, 0.0),
        )
        return cls(FeedWindow(window_s), memory, plan, known, circuit_leg=rides.leg if rides else None)

    def used_bps(self, site: str) -> float:
        """What the feed takes of the site's circuit on average."""
        legs = [leg for leg in self.plan.legs if leg.transport is Transport.STATIC_CIRCUIT] if self.plan else []
        on_circuit = any(site in leg.sites for leg in legs)
        served = sum(len(leg.sites) for leg in self.plan.legs) if self.plan else 0
        return self.egress_bps / served if on_circuit and served else 0.0


def _groups(plan: Plan | None) -> list[Leg]:
    return [leg for leg in plan.legs if leg.transport is Transport.MULTICAST] if plan else []


def _settled(book: Book) -> list[Settled]:
    return book.settled.all()


_LOG = logging.getLogger(__name__)
QUIETLY = (Because.WAITING, Because.QUIET)
"""Reasons that come and go and alone make no plan version."""
STARTING = (Because.NO_SITES, Because.NO_TRAFFIC)
SMALLEST_SHARE_OF_CAPACITY = 0.1
SHORTEST_WINDOW_S = 5.0
NEARLY_CAUGHT_UP = 8
"""Products on their way to a site that keeps up."""
TELLING_BYTES = 1_000_000
FADING = 0.99
"""Per second with traffic: counts of a minute and a half ago weigh a third."""
