"""The loop's knowledge of each feed and of the configuration, and its pace."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Self

from downburst.domain.circuits import Circuit, Measured
from downburst.domain.feeds import Feed
from downburst.domain.plans import Leg, Pin, Plan, Transport
from downburst.domain.relays import Relay, SiteWay
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Subscription
from downburst.ledger import Transaction
from downburst.live.repairs import Repairs
from downburst.settings.hub import Settings
from downburst_scheduler.calibration import FeedCalibration, Quantiles
from downburst_scheduler.demand.riding import REQUESTS, OnDemand, is_other
from downburst_scheduler.demand.written import terms_of
from downburst_scheduler.figures.traffic import Arrivals, FeedWindow
from downburst_scheduler.models.delays import Latencies
from downburst_scheduler.models.demand.terms import DemandTerms
from downburst_scheduler.models.floors import Floor
from downburst_scheduler.models.lines.trials import TrialRules
from downburst_scheduler.models.offers import CircuitOffers
from downburst_scheduler.planner import BY_FIGURES, FIRST_SPAN_S, Because, Decision, Memory, Question, Rules
from downburst_scheduler.probed import TimedSweep, last_sweeps


@dataclass(frozen=True, slots=True)
class Pace:
    """The settings' times in real seconds."""

    step_s: float
    window_s: float
    review_s: float
    rules: Rules
    trials: TrialRules = field(default_factory=TrialRules)

    @classmethod
    def of(cls, settings: Settings) -> "Pace":
        """The pace from the settings."""
        wanted, scale = settings.scheduler, settings.time_scale
        window_s = max(wanted.window_s / scale, SHORTEST_WINDOW_S)
        rules = Rules(
            wanted.min_gain,
            wanted.agreeing_windows,
            wanted.dwell_s / scale,
            changes_per_day=wanted.changes_per_day,
            day_s=DAY_S / scale,
            first_span_s=FIRST_SPAN_S / scale,
            telling_span_s=min(FIRST_SPAN_S / scale, window_s * NEARLY_FULL),
        )
        retry_s = settings.multicast.retry_minutes * 60 / scale
        trials = TrialRules(retry_s / RETURNS_SOONER, retry_s, enabled=wanted.groups_by_losses)
        return cls(max(wanted.step_s / scale, 1.0), window_s, max(60 / scale, 1.0), rules, trials)

    def window(self) -> FeedWindow:
        """An empty window for the arrivals of a feed."""
        return FeedWindow(self.window_s, self.rules.day_s)


@dataclass(frozen=True, slots=True)
class Known:
    """The configuration from the ledger."""

    feeds: Mapping[str, Feed] = field(default_factory=dict)
    sites: Mapping[str, Site] = field(default_factory=dict)
    subscribers: Mapping[str, Sequence[tuple[Site, list[Subscription]]]] = field(default_factory=dict)
    """By feed: active sites that want it and may take it, with their subscriptions."""
    pins: Mapping[str, Pin] = field(default_factory=dict)
    standing: "Standing" = ((), (), ())
    circuits: CircuitOffers = field(default_factory=CircuitOffers)
    """Of these."""
    demand: OnDemand = field(default_factory=OnDemand)
    relays: Mapping[str, Sequence[Relay]] = field(default_factory=dict)
    """By site, the relays before it that hand out feeds."""
    relay_names: frozenset[str] = frozenset()
    ways: Mapping[str, SiteWay] = field(default_factory=dict)
    """By site, the way that its session is told to go."""
    sweeps: Mapping[str, TimedSweep] = field(default_factory=dict)
    """By site, the last sweep of its path."""
    placed: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """By feed and site, the sender that serves it instead of the hub's own node."""

    @classmethod
    def of(cls, tx: Transaction, demand: OnDemand) -> "Known":
        """The present contents of the ledger; those about circuits on demand depend on the time as well."""
        sites, relays = {site.name: site for site in tx.sites.all()}, tx.fleet.relays.all()
        standing = standing_circuits(tx)
        return cls(
            feeds={feed.name: feed for feed in tx.feeds.all()},
            sites=sites,
            subscribers=_subscribers(sites, tx.subscriptions.all()),
            pins=tx.planning.pins.all(),
            standing=standing,
            circuits=CircuitOffers(*standing),
            demand=demand,
            relays=_before(relays, sites),
            relay_names=frozenset(relay.name for relay in relays),
            ways={way.site: way for way in tx.fleet.ways.all()},
            sweeps=last_sweeps(tx),
            placed=placed(tx),
        )


Standing = tuple[tuple[Circuit, ...], tuple[Measured, ...], tuple[tuple[int, str], ...]]
"""Circuits, their measurements, and the senders at which some of them begin, by number."""


def standing_circuits(tx: Transaction) -> Standing:
    """The circuits that people and programs reserved: those on demand are used by the feed they are ordered for."""
    begun = tx.circuits.begun()
    ordered = {circuit.number for circuit in begun if circuit.request.request_id.startswith(REQUESTS)}
    measured = tuple(row for row in tx.circuits.measurements() if row.circuit not in ordered)
    senders = {port.name: port.sender for port in tx.ports.all() if port.sender is not None}
    near = ((circuit.number, senders.get(circuit.ends[0].port)) for circuit in begun)
    standing = tuple(circuit for circuit in begun if circuit.number not in ordered)
    return standing, measured, tuple((number, sender) for number, sender in near if sender is not None)


def placed(tx: Transaction) -> dict[tuple[str, str], str]:
    """The pairs served by senders: they change more often than everything else, and no event reports them."""
    return {(one.feed, one.site): one.sender for one in tx.fleet.assignments.all()}


def _before(relays: Iterable[Relay], sites: Mapping[str, Site]) -> dict[str, list[Relay]]:
    found: dict[str, list[Relay]] = {}
    for relay in relays:
        if relay.fan_out is not None and sites[relay.name].active:
            for site in relay.sites:
                found.setdefault(site, []).append(relay)
    return found


@dataclass(slots=True)
class FeedState:
    """One feed between looks; state that must survive a restart is stored in its plans."""

    window: FeedWindow
    memory: Memory = field(default_factory=Memory)
    plan: Plan | None = None
    because: Because | None = None
    unexplained: tuple[Question, Decision] | None = None
    """The inputs of the plan, until its flip is known."""
    mistrusted: bool = False
    groups: tuple[Leg, ...] = ()
    circuit_leg: int | None = None
    repairs: Repairs = field(default_factory=lambda: Repairs(telling_bytes=TELLING_BYTES))
    """Of its groups."""
    calibration: FeedCalibration = field(default_factory=FeedCalibration)
    predicted: Mapping[Transport, Quantiles] = field(default_factory=dict)
    """The models' predictions for the window's arrivals by transport in use, not calibrated, without floor."""
    floor: Floor = field(default_factory=Floor)
    """The floor of the machines in the plan in force; the last one is kept until a newer one is measured."""
    products_per_s: float = 0.0
    egress_bps: float = 0.0
    """The feed's mean use of the routed port."""
    mean_bps: float = 0.0

    @classmethod
    def resumed(cls, history: Sequence[Plan], *, pace: Pace, now_s: float, age_s: Mapping[int, float]) -> Self:
        """Continues from the plans of an earlier run, newest first; ages are by version."""
        plan = history[0]
        rides = next((leg for leg in plan.legs if leg.transport in _ON_CIRCUITS), None)
        known = _because(plan)
        memory = Memory(
            transport=_chosen(plan),
            chosen_at_s=None if known in (None, *STARTING) else now_s - max(age_s[plan.version], 0.0),
            changed_at_s=tuple(now_s - age_s[one.version] for one in reversed(_changes(history))),
        )
        return cls(
            pace.window(),
            memory,
            plan,
            known,
            mistrusted=plan.figures.get("mistrusted") is True,
            circuit_leg=rides.leg if rides else None,
            calibration=FeedCalibration.resumed(plan.figures),
            floor=Floor.of_figures(plan.figures),
        )

    @property
    def terms(self) -> tuple[DemandTerms, ...]:
        """The terms of circuits on demand in the plan in force, by site; none while it is on another transport."""
        return terms_of(self.plan.figures) if self.plan is not None else ()

    def terms_after(self, decision: Decision) -> tuple[DemandTerms, ...]:
        """Terms stay while only measurements differ, and while there are no arrivals to derive others from."""
        if decision.transport is not Transport.DYNAMIC_CIRCUIT:
            return ()
        wanted, standing, measured = decision.chosen.demand, self.terms, decision.chosen.outcome is not None
        if wanted and (not standing or (measured and is_other(wanted, standing))):
            return tuple(sorted(wanted, key=lambda one: one.site))
        return standing

    def follow(self, plan: Plan) -> Plan:
        """Puts a plan in force. Repairs at other rates are no guide to its groups."""
        before, after = (sorted(leg.rate_bps or 0 for leg in groups_of(one)) for one in (self.plan, plan))
        if before != after:
            self.repairs.forget()
        self.plan = plan
        return plan

    def decided(self, decision: Decision, arrivals: Arrivals) -> None:
        """Records the traffic and latencies of the decision on these arrivals."""
        self.memory = decision.memory
        self.egress_bps, self.mean_bps = decision.chosen.routed_bps, arrivals.mean_bps
        self.products_per_s = len(arrivals.at_s) / arrivals.span_s if arrivals.span_s else 0.0
        by_transport: dict[Transport, list[Latencies]] = {}
        for part in decision.chosen.parts:
            if part.outcome is not None:
                by_transport.setdefault(part.transport, []).append(part.outcome.latencies)
        self.predicted = {
            transport: _quantiles(Latencies.together_of(latencies)) for transport, latencies in by_transport.items()
        }

    def used_bps(self, site: str) -> float:
        """The feed's mean use of the site's circuit; one on demand is used by no other feed."""
        dynamic = Transport.DYNAMIC_CIRCUIT
        legs = [leg for leg in self.plan.legs if leg.circuits and leg.transport is not dynamic] if self.plan else []
        return self.mean_bps if any(site in leg.sites for leg in legs) else 0.0


@dataclass(slots=True)
class NextRounds:
    """The times of the next rounds over all feeds, on the monotonic clock."""

    look_s: float = 0.0
    review_s: float = 0.0


def groups_of(plan: Plan | None) -> list[Leg]:
    """The multicast legs of a plan."""
    return [leg for leg in plan.legs if leg.transport is Transport.MULTICAST] if plan else []


def _chosen(plan: Plan) -> Transport:
    """The chosen transport: sites wait on the routed path for circuits on demand, and may be alone there."""
    if terms_of(plan.figures):
        return Transport.DYNAMIC_CIRCUIT
    if any(leg.transport is Transport.STATIC_CIRCUIT for leg in plan.legs):
        return Transport.STATIC_CIRCUIT
    return Transport.MULTICAST if groups_of(plan) else Transport.UNICAST


def _quantiles(latencies: Latencies) -> Quantiles:
    return Quantiles(latencies.quantile_s(0.5) * 1e3, latencies.quantile_s(0.99) * 1e3)


def _subscribers(
    sites: Mapping[str, Site], wishes: Iterable[Subscription]
) -> dict[str, list[tuple[Site, list[Subscription]]]]:
    found: dict[str, dict[str, list[Subscription]]] = {}
    for wish in wishes:
        site = sites.get(wish.site)
        if site is not None and site.active and site.may_take(wish.feed):
            found.setdefault(wish.feed, {}).setdefault(wish.site, []).append(wish)
    return {
        feed: [(sites[name], wanted) for name, wanted in sorted(by_site.items())] for feed, by_site in found.items()
    }


def _because(plan: Plan) -> Because | None:
    because = plan.figures.get("because")
    return Because(because) if because in tuple(Because) else None


def _changes(history: Sequence[Plan]) -> list[Plan]:
    """The plans that changed the transport by figures, newest first; a start is not a change."""
    pairs = pairwise(history)
    return [
        plan
        for plan, before in pairs
        if plan.transport is not before.transport
        and _because(plan) in BY_FIGURES
        and _because(before) not in STARTING
    ]


_ON_CIRCUITS = (Transport.STATIC_CIRCUIT, Transport.DYNAMIC_CIRCUIT)
STARTING = (Because.NO_SITES, Because.NO_TRAFFIC)
SHORTEST_WINDOW_S = 5.0
NEARLY_FULL = 0.9
RETURNS_SOONER = 20.0
"""Disturbances of a line that was faster before are mostly over within minutes."""
DAY_S = 86_400.0
TELLING_BYTES = 1_000_000
"""A repaired packet in fewer would decide the transport."""
