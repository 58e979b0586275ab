"""The loop of the scheduler: follows the traffic, looks at every feed each step, stores and publishes plans.

It runs on events only: the node's counters arrive each second, and without them there is nothing to decide. A change
of sites, subscriptions, feeds or pins is processed immediately and does not count as a look, so it can't hurry a
change of transport. All of its memory beyond the plans is lost with a restart: dwell, the day's changes and the
calibration continue from the plans, and groups get new legs. A new transport is set up before the old one ends: the
node joins sites to a leg one by one and ends a site's old leg where the coverage of the new one begins.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

from downburst.bus.port import Bus
from downburst.domain.circuits.signs import CircuitsChanged
from downburst.domain.events import (
    Event,
    FaultSeen,
    FeedsChanged,
    LegChanged,
    PinChanged,
    PlanMade,
    RelaySeen,
    SessionChanged,
    SitesChanged,
    SubscriptionsChanged,
    TrafficSeen,
)
from downburst.domain.feeds import Feed
from downburst.domain.plans import Leg, Plan
from downburst.domain.probes.signs import ProbesChanged
from downburst.domain.receipts import Settled
from downburst.foundation.clock import Clock, SystemClock, to_us
from downburst.foundation.errors import DownburstError, LedgerAway
from downburst.host.absent_transports import AbsentTransport
from downburst.ledger import Ledger, Transaction
from downburst.ledger.repositories.feeds import unknown_feed
from downburst.settings.hub import Settings
from downburst.supervision import attempt
from downburst_scheduler.accuracy import (
    Watched,
    latencies_by_transport,
    site_floors,
    watched,
    with_floor,
    with_measurement,
)
from downburst_scheduler.demand.cores import led_otherwise
from downburst_scheduler.demand.riding import OnDemand, legs_on_demand, moved
from downburst_scheduler.demand.written import figures_of
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.legs import by_relay, followed, group_leg, legs_of, paced, repair_of
from downburst_scheduler.lines import LineWatch
from downburst_scheduler.models.floors import SiteFloors
from downburst_scheduler.models.parts import GROUP_SHARE_OF_EGRESS, Part
from downburst_scheduler.models.queues import Order
from downburst_scheduler.models.situation import CircuitOffers, Costs, Situation
from downburst_scheduler.models.sizing import Objective
from downburst_scheduler.moving import moving_of
from downburst_scheduler.paths import MINUTE_US, NEARLY_CAUGHT_UP, OUT_OF_GROUPS, Backlogs, Carrier, SitePaths
from downburst_scheduler.planner import BY_FIGURES, Because, Decision, Question, decide, flip_of
from downburst_scheduler.relays import SIGN_OF_LIFE_S, RelayWatch
from downburst_scheduler.sentences import (
    NO_CIRCUITS,
    NONE_ON_DEMAND,
    TELLING_SHARE_OF_OBJECTIVE,
    absent_figures,
    figures,
    flip_figures,
    leg_figures,
    reason,
    swept_rates,
)
from downburst_scheduler.site_facts import SiteView
from downburst_scheduler.states import FeedState, Known, NextRounds, Pace, groups_of, placed, standing_circuits


class SchedulerLoop:
    """Decides for every feed of one hub; the only writer of plans."""

    def __init__(
        self,
        bus: Bus,
        ledger: Ledger,
        settings: Settings,
        clock: Clock | None = None,
        *,
        absent: Sequence[AbsentTransport] = (),
    ) -> None:
        self._bus = bus
        self._ledger = ledger
        self._settings = settings
        self._clock = clock or SystemClock()
        self._pace = Pace.of(settings)
        self._known = Known()
        self._feeds: dict[str, FeedState] = {}
        self._absent = absent_figures(absent)
        self._paths = SitePaths(timedelta(minutes=settings.multicast.retry_minutes))
        self._relays = RelayWatch()
        self._caught_up: dict[str, frozenset[tuple[str, str]]] = {}
        self._backlogs = Backlogs()
        self._stale = False
        """True if something may have changed that could not be read from the ledger."""
        self._next = NextRounds()
        self._view = SiteView(self._paths, self._relays, self._clock, LineWatch(self._pace.trials))

    async def run(self) -> None:
        """Works until cancelled."""
        kinds = (
            TrafficSeen,
            LegChanged,
            RelaySeen,
            SessionChanged,
            FeedsChanged,
            SitesChanged,
            SubscriptionsChanged,
            PinChanged,
            CircuitsChanged,
            ProbesChanged,
        )
        with self._bus.subscribe(*kinds) as events:
            await self.start()
            async for event in events:
                await attempt("scheduler.event", partial(self._take, event, lost=events.take_dropped()))

    async def start(self) -> None:
        """Loads the plans in force and makes missing ones."""
        now_s = self._clock.monotonic_s()
        self._next.look_s = now_s + self._pace.step_s
        self._next.review_s = now_s + self._pace.review_s
        self._view.sure_s = now_s + SIGN_OF_LIFE_S
        now = self._clock.now()
        for history in await self._ledger.read(_histories):
            age_s = {plan.version: (now - plan.made_at).total_seconds() for plan in history}
            recent = [plan for plan in history if plan is history[0] or age_s[plan.version] < self._pace.rules.day_s]
            self._feeds[history[0].feed] = FeedState.resumed(recent, pace=self._pace, now_s=now_s, age_s=age_s)
            self._view.lines.resumed(history[0], now_s)
        await self._reload()

    async def _take(self, event: Event, *, lost: int) -> None:
        if lost:
            await self._reload()
        await self.handle(event)

    async def handle(self, event: Event) -> None:
        """Processes one event and its consequences."""
        try:
            await self._process(event)
        except LedgerAway as error:
            # The hub itself reports the outage; missed changes are read once the ledger is back.
            self._stale = True
            _LOG.warning("the scheduler could not finish a review: %s", error.sentence)
        except DownburstError as error:
            _LOG.warning("the scheduler could not finish a review: %s", error.sentence)
            self._bus.publish(
                FaultSeen(self._clock.now(), f"the scheduler could not finish a review: {error.sentence}")
            )

    async def _process(self, event: Event) -> None:
        match event:
            case TrafficSeen():
                await self._traffic(event)
            case LegChanged():
                self._leg_changed(event)
                if event.state in OUT_OF_GROUPS:
                    await self._decide_all([event.feed], look=False)
            case RelaySeen():
                for site in self._relays.reported(event.report, self._clock.monotonic_s()):
                    self._paths.moved(site)
            case SessionChanged():
                self._relays.session(event, self._clock.monotonic_s())
            case CircuitsChanged():
                await self._circuits_changed()
            case _:
                if isinstance(event, PinChanged) and event.feed in self._feeds:
                    self._feeds[event.feed].calibration.forget()
                await self._reload()

    async def _reload(self) -> None:
        before = self._known.ways
        self._known = await self._ledger.read(lambda tx: Known.of(tx, self._on_demand(tx)))
        self._stale = False
        for site in led_otherwise(before, self._known.ways):
            self._paths.moved(site)
        self._paths.keep(self._known.sites)
        self._view.lines.keep(self._known.feeds, self._known.sites)
        self._view.lines.swept(self._known.sweeps, self._clock.monotonic_s())
        self._relays.keep(self._known.relay_names, self._known.sites, self._known.ways)
        self._feeds = {name: state for name, state in self._feeds.items() if name in self._known.feeds}
        await self._decide_all(self._known.feeds, look=False)

    async def _circuits_changed(self) -> None:
        """Moves feeds onto ordered circuits and off them at once; looks at everything if reserved ones changed."""
        demand, standing = await self._ledger.read(lambda tx: (self._on_demand(tx), standing_circuits(tx)))
        self._known = replace(self._known, demand=demand)
        for name, state in self._feeds.items():
            if state.terms and name in self._known.feeds:
                await attempt("scheduler.feed", partial(self._ride, name, state), what=f"the circuits of {name}")
        if standing != self._known.standing:
            await self._reload()

    async def _ride(self, name: str, state: FeedState) -> None:
        unicast_leg, plan = self._known.feeds[name].unicast_leg, state.plan
        if unicast_leg is None or plan is None:
            return
        leg = await self._circuit_leg(name, state)
        made = moved(plan, self._known.demand, unicast_leg=unicast_leg, circuit_leg=leg, at=self._clock.now())
        if made is not None:
            plan = state.follow(await self._ledger.write(lambda tx: tx.planning.plans.append(made)))
            _LOG.info("plan %d of %s: %s", plan.version, name, made.reason)
            self._bus.publish(PlanMade(plan))

    async def _circuit_leg(self, name: str, state: FeedState) -> int:
        if state.circuit_leg is None:
            state.circuit_leg = await self._ledger.write(lambda tx: tx.planning.legs.allocate(name))
        return state.circuit_leg

    def _on_demand(self, tx: Transaction) -> OnDemand:
        return OnDemand.of(tx, now=self._clock.now(), price=self._settings.scheduler.circuit_cost)

    async def _traffic(self, event: TrafficSeen) -> None:
        self._paths.traffic_seen(event)
        self._relays.traffic(event, self._clock.monotonic_s())
        for site in event.gone:
            self._caught_up.pop(site, None)
        for session in event.sessions:
            near = (progress.feed for progress in session.feeds if progress.pending <= NEARLY_CAUGHT_UP)
            self._caught_up[session.site] = frozenset((session.site, feed) for feed in near)
        self._backlogs.seen(event, lambda feed: self._feeds[feed].products_per_s if feed in self._feeds else 0.0)
        self._count(event)
        if self._stale and self._ledger.outage is None:
            await self._reload()
        await self._explain()
        now_s = self._clock.monotonic_s()
        await self._lines_seen(event, now_s)
        if now_s >= self._next.review_s:
            self._next.review_s = now_s + self._pace.review_s
            await self._review()
        if now_s >= self._next.look_s:
            self._next.look_s = now_s + self._pace.step_s
            pairs, demand = await self._ledger.read(lambda tx: (placed(tx), self._on_demand(tx)))
            self._known = replace(self._known, placed=pairs, demand=demand)
            await self._decide_all(self._known.feeds, look=True)

    def _leg_changed(self, event: LegChanged) -> None:
        carrier = self._carrier(event.feed, event.leg)
        self._paths.leg_changed(event, on=carrier)
        if event.state == "too-slow" and event.feed in self._feeds:
            self._feeds[event.feed].repairs.forget()
        if carrier == "network" and self._view.lines.leg_changed(event, self._clock.monotonic_s()):
            self._paths.may_join(event.site)

    async def _lines_seen(self, event: TrafficSeen, now_s: float) -> None:
        """Regroups the feeds of sites with another usable rate. Repairs of groups of another rate count no longer."""
        changed = self._view.lines.traffic(event, now_s, self._is_network)
        for feed in {*changed, *self._view.lines.judging(now_s)} & self._feeds.keys():
            self._feeds[feed].repairs.forget()
        for site in {site for sites in changed.values() for site in sites}:
            self._paths.may_join(site)
        await self._decide_all(changed, look=False)

    def _is_network(self, feed: str, leg: int) -> bool:
        return self._carrier(feed, leg) == "network"

    def _carrier(self, feed: str, leg: int) -> Carrier:
        state = self._feeds.get(feed)
        legs = [one for one in groups_of(state.plan) if one.leg == leg] if state else []
        if any(one.relay is not None for one in legs):
            return "relay"
        return "circuit" if any(one.circuits for one in legs) else "network"

    def _count(self, event: TrafficSeen) -> None:
        arrived = {feed.feed: feed for feed in event.feeds}
        # Products arrive at the hub's own node: a sender's second is none without products.
        for name in self._known.feeds if not event.sender else ():
            traffic = arrived.get(name)
            window = self._state(name).window
            if traffic is None:
                window.add(seconds=event.seconds, products=0, size_bytes=0, sizes=())
                continue
            window.add(
                seconds=event.seconds, products=traffic.products, size_bytes=traffic.bytes, sizes=traffic.sizes
            )
            self._paths.arrived(name, traffic.bytes)
        for name in {leg.feed for leg in event.legs} & self._feeds.keys():
            self._feeds[name].repairs.add(*(leg for leg in event.legs if leg.feed == name))

    async def _explain(self) -> None:
        """Searches the flip of one plan per second: this takes longer than the decision, and can wait."""
        state = next((one for one in self._feeds.values() if one.unexplained is not None), None)
        if state is None or state.unexplained is None or state.plan is None:
            return
        (question, decision), state.unexplained = state.unexplained, None
        flipped = await asyncio.to_thread(flip_of, question, decision)
        await self._annotate(state, replace(state.plan, figures=dict(state.plan.figures) | flip_figures(flipped)))

    async def _annotate(self, state: FeedState, kept: Plan) -> None:
        if state.plan != kept:
            await self._ledger.write(lambda tx: tx.planning.plans.annotate(kept))
            state.plan = kept

    async def _decide_all(self, names: Iterable[str], *, look: bool) -> None:
        for name in list(names):
            if name in self._known.feeds:
                decide_it = partial(self._decide, self._known.feeds[name], look=look)
                await attempt("scheduler.feed", decide_it, what=f"the plan of {name}")

    async def _decide(self, feed: Feed, *, look: bool) -> None:
        state = self._state(feed.name)
        question = self._question(feed, state, look=look)
        decision = await asyncio.to_thread(decide, question)
        state.decided(decision, question.arrivals)
        plan = await self._plan(feed, state, question, decision)
        if plan is not None:
            state.follow(plan)
            state.because, state.mistrusted = decision.because, question.mistrust is not None
            state.unexplained = (question, decision.outline()) if decision.because in BY_FIGURES else None
            _LOG.info("plan %d of %s: %s", plan.version, plan.feed, plan.reason)
            self._bus.publish(PlanMade(plan))

    def asked_about(self, name: str) -> tuple[Question, tuple[Arrivals, float]]:
        """The inputs of a decision at this moment, with the day's busiest arrivals and their age in seconds."""
        if name not in self._known.feeds:
            raise unknown_feed(name, list(self._known.feeds))
        state = self._state(name)
        return self._question(self._known.feeds[name], state, look=False), state.window.busiest()

    def _question(self, feed: Feed, state: FeedState, *, look: bool) -> Question:
        return Question(
            arrivals=state.window.arrivals(),
            situation=self._situation(feed, state),
            now_s=self._clock.monotonic_s(),
            memory=state.memory,
            rules=replace(self._pace.rules, dry_run=self._settings.scheduler.dry_run_of(feed.name)),
            pin=self._known.pins.get(feed.name),
            look=look,
            mistrust=state.calibration.mistrust(state.memory.transport),
        )

    def _situation(self, feed: Feed, state: FeedState) -> Situation:
        multicast, wanted = self._settings.multicast.of(feed.name), self._settings.scheduler
        return Situation(
            sites=self._view.sites(feed, state.plan, self._known, self._feeds),
            egress_bps=self._free_egress_bps(feed.name),
            no_multicast=None if multicast.enabled else "multicast is switched off in this hub's settings",
            multicast_rate_bps=multicast.rate_bps,
            group_loss=state.repairs.of_products or 0.0,
            headers=True,
            repair=repair_of(feed),
            order=Order.FIRST_COME,
            circuits=CircuitOffers(none=NO_CIRCUITS, not_on_demand=NONE_ON_DEMAND),
            objective=Objective(OBJECTIVE_SHARE, feed.objective_ms / 1e3),
            costs=Costs(wanted.circuit_cost, wanted.unwanted_cost, wanted.tunnel_cost, wanted.miss_cost_bps),
            calibration=state.calibration.factors(),
            floor=state.floor,
        )

    def _free_egress_bps(self, name: str) -> float:
        """Egress free for this feed: capacity minus the average of other feeds, but at least a tenth."""
        capacity_bps = self._settings.egress_capacity_bps
        others_bps = sum(other.egress_bps for feed, other in self._feeds.items() if feed != name)
        return max(capacity_bps - others_bps, capacity_bps * SMALLEST_SHARE_OF_CAPACITY)

    async def _plan(self, feed: Feed, state: FeedState, question: Question, decision: Decision) -> Plan | None:
        """A stored plan if legs, pin, trust or the kind of reason differ from the one in force."""
        before = state.plan
        terms = state.terms_after(decision)
        legs = await self._legs(feed, state, decision, on_demand=bool(terms))
        pinned = decision.because in (Because.PINNED, Because.PIN_INFEASIBLE)
        same = before is not None and before.legs == legs and before.pinned == pinned
        same = same and state.mistrusted == (question.mistrust is not None)
        same = same and state.terms == terms
        if same and (decision.because in QUIETLY or decision.because == state.because):
            return None
        moving = await asyncio.to_thread(moving_of, question, decision)
        made = Plan(
            feed=feed.name,
            version=0,
            legs=legs,
            reason="; ".join(
                [reason(question, decision), *([moving.sentence] if moving else []), *swept_rates(decision)]
            ),
            made_at=self._clock.now(),
            candidates=decision.candidates,
            figures=figures(question, decision, state.window.statistics())
            | state.calibration.figures()
            | figures_of(terms)
            | self._absent
            | (moving.figures if moving else {})
            | leg_figures(decision, state.groups),
            pinned=pinned,
        )
        return await self._ledger.write(lambda tx: tx.planning.plans.append(made))

    async def _legs(self, feed: Feed, state: FeedState, decision: Decision, *, on_demand: bool) -> tuple[Leg, ...]:
        """A group keeps its number while the feed stays on multicast; the next one gets another."""
        if feed.unicast_leg is None:
            raise DownburstError(f"the feed {feed.name} has no unicast leg; remove it and add it again")
        if on_demand:
            sites, state.groups = sorted({site for part in decision.chosen.parts for site in part.sites}), ()
            leg = await self._circuit_leg(feed.name, state)
            known = self._known.demand
            return legs_on_demand(feed.name, sites, known, unicast_leg=feed.unicast_leg, circuit_leg=leg)
        state.groups = await self._groups(feed, state.groups, decision.chosen.groups)
        if decision.chosen.circuit_sites:
            await self._circuit_leg(feed.name, state)
        return legs_of(
            decision.chosen, unicast_leg=feed.unicast_leg, groups=state.groups, circuit_leg=state.circuit_leg
        )

    async def _groups(self, feed: Feed, standing: tuple[Leg, ...], parts: Sequence[Part]) -> tuple[Leg, ...]:
        """A multicast leg for each group: the one that its sites already receive, or a new one."""
        multicast, found = self._settings.multicast.of(feed.name), []
        for part, heard in zip(parts, followed(parts, standing), strict=True):
            pace_bps = min(multicast.rate_bps, GROUP_SHARE_OF_EGRESS * self._settings.egress_capacity_bps)
            if part.circuits:
                pace_bps = self._known.circuits.group_bps(part.circuits[0][1]) or pace_bps
            elif part.limited:
                pace_bps = min(pace_bps, part.rate_bps or pace_bps)
            leg = heard
            if leg is None:
                number = await self._ledger.write(lambda tx: tx.planning.legs.allocate(feed.name))
                leg = group_leg(number, multicast, rate_bps=int(pace_bps))
            # The sites are how the next round finds the leg of each of several groups.
            leg = replace(leg, sites=tuple(sorted(part.sites)), circuits=tuple(sorted(part.circuits)))
            found.append(paced(by_relay(leg, part), int(pace_bps)))
        return tuple(found)

    async def _review(self) -> None:
        """Compares measurements with predictions; updates the sites' shares of feeds, and the machines' floor."""
        self._paths.settled(await self._ledger.read(_settled), caught_up=frozenset().union(*self._caught_up.values()))
        floors = await self._floors()
        for name, state in self._feeds.items():
            if state.plan is not None and name in self._known.feeds:
                await self._measure(state, state.plan, floors)

    async def _floors(self) -> SiteFloors:
        since_minute = to_us(self._clock.now() - timedelta(seconds=self._pace.window_s)) // MINUTE_US
        self._backlogs.forget_before(since_minute)
        states = {name: state for name, state in self._feeds.items() if name in self._known.feeds}
        feeds = [await asyncio.to_thread(self._watched, self._known.feeds[name], states[name]) for name in states]
        was_behind = self._backlogs.was_behind
        return await self._ledger.read(
            lambda tx: site_floors(
                tx, (one for one in feeds if one is not None), since_minute=since_minute, was_behind=was_behind
            )
        )

    def _watched(self, feed: Feed, state: FeedState) -> Watched | None:
        if state.plan is None:
            return None
        return watched(
            state.plan,
            state.window.arrivals(),
            self._view.sites(feed, state.plan, self._known, self._feeds),
            egress_bps=self._free_egress_bps(feed.name),
            repair_share=state.repairs.of_products or 0.0,
        )

    async def _measure(self, state: FeedState, plan: Plan, floors: SiteFloors) -> None:
        now, window_s = self._clock.now(), self._pace.window_s
        seen = await self._ledger.read(lambda tx: latencies_by_transport(tx, plan, now=now, window_s=window_s))
        floor_ms = self._known.feeds[plan.feed].objective_ms * TELLING_SHARE_OF_OBJECTIVE
        for transport, quantiles in seen.items():
            if transport in state.predicted:
                predicted = state.predicted[transport].plus(state.floor.p50_ms, state.floor.p99_ms)
                state.calibration.add(transport, quantiles.over(predicted, floor_ms=floor_ms))
        # This floor is for later predictions: those of these minutes are judged with the floor of their time.
        state.floor = floors.floor(site for leg in plan.legs for site in leg.sites) or state.floor
        floored = with_floor(plan, state.floor)
        measured = await self._ledger.read(lambda tx: with_measurement(tx, floored, now=now)) or floored
        figures = dict(measured.figures) | state.calibration.figures() | self._view.lines.paces(plan)
        await self._annotate(state, replace(measured, figures=figures))

    def _state(self, name: str) -> FeedState:
        if name not in self._feeds:
            self._feeds[name] = FeedState(self._pace.window())
        return self._feeds[name]


def _histories(tx: Transaction) -> list[list[Plan]]:
    """The plans of every feed that may be of the last day, newest first."""
    return [tx.planning.plans.history(plan.feed) for plan in tx.planning.plans.all_current()]


def _settled(tx: Transaction) -> list[Settled]:
    return tx.measured.settled.all()


_LOG = logging.getLogger(__name__)
QUIETLY = (Because.WAITING, Because.QUIET, Because.MISTRUSTED)
"""Transient reasons, which make no plan version on their own."""
SMALLEST_SHARE_OF_CAPACITY = 0.1
OBJECTIVE_SHARE = 0.99
