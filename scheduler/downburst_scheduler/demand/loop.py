"""The acting loop of circuits on demand: it orders circuits for trains of products, extends and gives them back.

The scheduler chooses `dynamic-circuit` and its terms, in minutes; this loop acts on them, in tenths of a second. Each
order is stored before it is sent and each step behind it, so that a restart at any moment continues with the order
that is open, and finds its circuit by the request id.
"""

import asyncio
import logging
import random
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from downburst.bus.port import Bus
from downburst.domain.circuits import (
    Circuit,
    CircuitCarriage,
    CircuitChange,
    CircuitDriver,
    CircuitRequest,
)
from downburst.domain.events import (
    CircuitsChanged,
    Event,
    EventsMissed,
    FaultSeen,
    NodeChanged,
    PlanMade,
    SessionChanged,
    SitesChanged,
    TrafficSeen,
)
from downburst.domain.ordering import DemandOrder, OrderStep, OrderTimes
from downburst.domain.ordering.offers import LINUX
from downburst.domain.ordering.signs import FeedSilent, FeedStirred, SilencesWatched
from downburst.domain.plans import Plan
from downburst.foundation.clock import Clock, SystemClock, to_us
from downburst.foundation.errors import DownburstError, Failure
from downburst.ledger import Ledger
from downburst.settings.hub import Settings
from downburst.supervision import attempt
from downburst_scheduler.demand.account import Account
from downburst_scheduler.demand.budgets import midnight, refusal
from downburst_scheduler.demand.cores import Ends
from downburst_scheduler.demand.port import CircuitOrders
from downburst_scheduler.demand.riding import riding
from downburst_scheduler.demand.steps import Act, Facts, Step, next_step
from downburst_scheduler.demand.trains import Trains, held_s
from downburst_scheduler.demand.use import Uses, outcome
from downburst_scheduler.demand.written import terms_of
from downburst_scheduler.models.demand.terms import DemandTerms

Pair = tuple[str, str]
"""A feed and a site."""


@dataclass(slots=True)
class _Pause:
    """The memory of one pair between steps; a restart loses it, which costs time only."""

    failures: int = 0
    order_after: datetime | None = None
    send_after: datetime | None = None
    extend_after: datetime | None = None
    left_at: datetime | None = None
    """The plan that took the feed off its circuit, until the node works by it."""
    would_for_s: float | None = None
    """The train of the last order of a dry run."""


class DemandLoop:
    """Acts for every feed of one hub; the only writer of orders."""

    def __init__(
        self,
        bus: Bus,
        ledger: Ledger,
        settings: Settings,
        circuits: CircuitOrders,
        clock: Clock | None = None,
        *,
        drawn: random.Random | None = None,
    ) -> None:
        self._bus = bus
        self._settings = settings
        self._service = circuits
        self._clock = clock or SystemClock()
        self._drawn = drawn or random.Random()  # noqa: S311 (jitter)
        self._account = Account(ledger)
        self._terms: dict[str, tuple[DemandTerms, ...]] = {}
        self._trains: dict[str, Trains] = {}
        self._pauses: dict[Pair, _Pause] = {}
        self._uses = Uses()
        self._watched: SilencesWatched | None = None
        self._spent: dict[str, datetime] = {}
        self._fresh = False
        """True if the account was read from the ledger and nothing was missed since."""

    async def run(self) -> None:
        """Works until cancelled."""
        with self._bus.subscribe(*_HEARD) as events:
            while not events.closed:
                event = None
                with suppress(TimeoutError):
                    async with asyncio.timeout(TICK_S):
                        event = await events.next()
                self._fresh = self._fresh and not events.take_dropped()
                await attempt("scheduler.demand", partial(self.handle, event))

    async def handle(self, event: Event | None) -> None:
        """Processes one event, or the passing of time, and takes every step that is due."""
        try:
            if not self._fresh:
                await self._load()
            if event is not None:
                await self._take(event)
            await self._act()
        except DownburstError as error:
            self._fresh = False
            _LOG.warning("circuits on demand wait: %s", error.sentence)

    async def _load(self) -> None:
        """Reads orders, circuits and plans; cancels circuits that no open order wants."""
        strays = await self._account.load(self._clock.now())
        self._terms.clear()
        for plan in self._account.plans.values():
            self._planned(plan)
        for order in self._account.open:
            if order.step is not OrderStep.RELEASING:
                self._train(order.feed).resumed(self._now_s())
        for circuit in strays:
            await self._end_stray(circuit)
        self._fresh = True
        self._watch(again=True)

    async def _take(self, event: Event) -> None:
        self._account.led.heard(event)
        match event:
            case FeedStirred():
                self._train(event.feed).stirred(event.at_us / 1e6)
            case FeedSilent():
                self._train(event.feed).silent(event.since_us / 1e6)
            case CircuitsChanged(circuit=int(number)):
                stray = await self._account.changed(number)
                if stray is not None:
                    await self._end_stray(stray)
            case CircuitsChanged() | SitesChanged():
                await self._account.refresh()
            case PlanMade():
                self._planned(event.plan)
                self._watch()
            case TrafficSeen(sender=""):
                self._traffic(event)
            case NodeChanged(running=True):
                self._watch(again=True)
            case EventsMissed():
                self._fresh = False
            case _:
                pass

    def _planned(self, plan: Plan) -> None:
        before, after = riding(self._account.plans.get(plan.feed)), riding(plan)
        for site in before.keys() - after.keys():
            self._pause((plan.feed, site)).left_at = plan.made_at
        self._account.plans[plan.feed] = plan
        self._terms[plan.feed] = terms_of(plan.figures)
        if not self._terms[plan.feed]:
            del self._terms[plan.feed]

    def _traffic(self, event: TrafficSeen) -> None:
        for pause in self._pauses.values():
            # The node reports by a plan that it has had for a moment.
            if pause.left_at is not None and event.to_us >= to_us(pause.left_at + APPLIED):
                pause.left_at = None
        plans = self._account.plans.values()
        riders = {(plan.feed, site): circuit for plan in plans for site, circuit in riding(plan).items()}
        self._uses.seen(event, riders)
        self._uses.seen(*self._account.led.seen(event, plans))

    def _watch(self, *, again: bool = False) -> None:
        """Names the silences that count: of a feed the shortest hold time of its sites."""
        holds = {feed: min(map(held_s, terms)) for feed, terms in self._terms.items()}
        wanted = SilencesWatched(tuple(sorted((feed, max(int(hold * 1e6), 1)) for feed, hold in holds.items())))
        if wanted != (self._watched or SilencesWatched(())) or (again and wanted.holds_us):
            self._bus.publish(wanted)
        self._watched = wanted

    async def _act(self) -> None:
        known = self._account.terms
        # Without ends, the site's way no longer goes over the ports of the offer.
        every = ((feed, one) for feed, terms in self._terms.items() for one in terms)
        wanted = {(feed, one.site): one for feed, one in every if known.ends(one.offer, one.site) is not None}
        orders = {(order.feed, order.site): order for order in self._account.open}
        for pair in sorted(orders.keys() | wanted.keys()):
            await attempt("scheduler.order", partial(self._steps, pair, wanted.get(pair)), what=" to ".join(pair))

    async def _steps(self, pair: Pair, terms: DemandTerms | None) -> None:
        try:
            for _ in range(STEPS_MOST):
                facts = self._facts(pair, terms)
                step = next_step(facts)
                if step is None or not await self._perform(step, facts, pair):
                    return
        except Failure as error:
            # The service or the ledger is away: every step can be repeated.
            self._fresh = False
            _LOG.warning("the circuit for %s to %s waits: %s", *pair, error.sentence)

    def _facts(self, pair: Pair, terms: DemandTerms | None) -> Facts:
        feed, site = pair
        order = self._account.order_of(feed, site)
        circuit = self._account.circuits.get(order.number) if order is not None else None
        offer = self._account.terms.offers.get(order.offer if order is not None else terms.offer if terms else "")
        rides = circuit is not None and riding(self._account.plans.get(feed)).get(site) == circuit.number
        rides = rides or (circuit is not None and self._account.led.rides(site, circuit))
        return Facts(
            now=self._clock.now(),
            order=order,
            circuit=circuit,
            need=self._train(feed).need(terms, self._now_s()) if terms is not None else None,
            terms=terms,
            setup_s=self._account.terms.setup_s(offer.name) if offer is not None else 0.0,
            least_hold_s=offer.least_hold_s if offer is not None else 0.0,
            rides=rides or self._pause(pair).left_at is not None,
        )

    async def _perform(self, step: Step, facts: Facts, pair: Pair) -> bool:
        """Takes a step; False if there is nothing more to do at this moment."""
        if facts.order is None:
            return step.until is not None and await self._order(facts, pair, step.until)
        match step.act:
            case Act.SEND:
                return await self._send(facts.order, self._pause(pair))
            case Act.RIDE:
                times = replace(facts.order.times, up_at=facts.now)
                await self._move(replace(facts.order, step=OrderStep.UP, times=times), facts.circuit)
            case Act.STAY:
                times = replace(facts.order.times, released_at=None)
                await self._move(replace(facts.order, step=OrderStep.UP, times=times), facts.circuit)
            case Act.LEAVE:
                times = replace(facts.order.times, released_at=facts.now)
                left = replace(facts.order, step=OrderStep.RELEASING, times=times, outcome=step.sentence)
                await self._move(left, facts.circuit)
            case Act.EXTEND:
                return await self._extend(facts, self._pause(pair), step.until)
            case Act.CANCEL:
                return await self._cancel(facts.order, facts.circuit)
            case _:
                await self._end(facts.order, facts.now, self._pause(pair))
        return True

    async def _order(self, facts: Facts, pair: Pair, until: datetime) -> bool:
        terms, pause, need = facts.terms, self._pause(pair), facts.need
        if terms is None or need is None or (pause.order_after is not None and facts.now < pause.order_after):
            return False
        is_dry = self._settings.scheduler.dry_run_of(pair[0])
        if is_dry and pause.would_for_s == need.began_s:
            return False
        await self._account.refresh()
        ends = self._account.terms.ends(terms.offer, terms.site)
        if ends is None or self._account.is_taken(ends):
            return False
        offer = self._account.terms.offers[terms.offer]
        orders = self._account.of_offer(offer.name)
        spent = refusal(offer.budget, orders, begin=facts.now, until=until)
        if spent is not None:
            self._say_spent(offer.name, spent, facts.now)
            return False
        step = OrderStep.WOULD if is_dry else OrderStep.ORDERED
        times = OrderTimes(facts.now, until)
        made = DemandOrder(0, offer.name, *pair, terms.rate_bps, need.reason, times, step)
        if is_dry:
            made = replace(made, outcome="dry run: nothing was sent")
            pause.would_for_s = need.began_s
        kept = await self._account.add(made)
        _LOG.info("order %d of %s to %s: %s", kept.number, *pair, kept.reason)
        return not is_dry

    def _say_spent(self, offer: str, why: str, now: datetime) -> None:
        """Once a day."""
        if self._spent.get(offer) != midnight(now):
            self._spent[offer] = midnight(now)
            sentence = f"no circuit is ordered under the offer {offer}: {why}; feeds stay on the routed path"
            self._bus.publish(FaultSeen(now, sentence, next_step=f"downburst circuits offers set {offer}"))
            _LOG.warning("%s", sentence)

    async def _send(self, order: DemandOrder, pause: _Pause) -> bool:
        now = self._clock.now()
        if pause.send_after is not None and now < pause.send_after:
            return False
        pause.send_after = now + SEND_AGAIN
        offer, ends = self._account.terms.offers.get(order.offer), self._account.terms.ends(order.offer, order.site)
        if offer is None or ends is None:
            await self._refused(order, f"the offer {order.offer} has no port at {order.site} any more", pause)
            return False
        try:
            answer = await self._service.request(_wanted(order, offer.provider, ends, now))
        except Failure:
            raise
        except DownburstError as error:
            await self._refused(order, error.sentence, pause)
            return False
        pause.send_after = None
        self._uses.watch(answer.circuit.number)
        await self._account.save(replace(order, circuit=answer.circuit.number))
        self._account.circuits[order.number] = answer.circuit
        return True

    async def _refused(self, order: DemandOrder, sentence: str, pause: _Pause) -> None:
        times = replace(order.times, ended_at=self._clock.now())
        await self._account.save(replace(order, step=OrderStep.REFUSED, times=times, outcome=sentence))
        self._back_off(pause)
        _LOG.warning("order %d was refused: %s", order.number, sentence)

    async def _move(self, order: DemandOrder, circuit: Circuit | None) -> None:
        """Stores a step that the scheduler's plans follow, and tells it."""
        number = circuit.number if circuit is not None else order.circuit
        await self._account.save(replace(order, circuit=number))
        self._bus.publish(CircuitsChanged(number))

    async def _extend(self, facts: Facts, pause: _Pause, until: datetime | None) -> bool:
        order, circuit = facts.order, facts.circuit
        if order is None or circuit is None or until is None:
            return False
        if pause.extend_after is not None and facts.now < pause.extend_after:
            return False
        pause.extend_after = facts.now + EXTEND_AGAIN
        offer, orders = self._account.terms.offers.get(order.offer), self._account.of_offer(order.offer)
        spent = (
            refusal(offer.budget, orders, begin=order.times.ordered_at, until=until, extends=order.number)
            if offer is not None
            else None
        )
        if spent is not None:
            self._say_spent(order.offer, spent, facts.now)
            return False
        await self._account.save(replace(order, times=replace(order.times, until=until)))
        try:
            answer = await self._service.modify(circuit.number, CircuitChange(end=until), by=BY)
        except Failure:
            raise
        except DownburstError as error:
            await self._account.save(order)
            _LOG.warning("order %d ends at %s: %s", order.number, order.times.until, error.sentence)
            return False
        pause.extend_after = None
        self._account.circuits[order.number] = answer.circuit
        return True

    async def _cancel(self, order: DemandOrder, circuit: Circuit | None) -> bool:
        if circuit is None:
            return False
        try:
            answer = await self._service.cancel(circuit.number, by=BY)
        except Failure:
            raise
        except DownburstError:
            # It ended meanwhile; the ledger knows.
            await self._account.changed(circuit.number)
            return False
        self._account.circuits[order.number] = answer.circuit
        return True

    async def _end(self, order: DemandOrder, now: datetime, pause: _Pause) -> None:
        ended_at = min(now, max(order.times.until, order.times.ordered_at))
        use = self._uses.ended(order, ended_at)
        failed = bool(order.outcome)
        ended = replace(
            order,
            step=OrderStep.FAILED if failed else OrderStep.ENDED,
            times=replace(order.times, ended_at=ended_at),
            outcome=order.outcome or outcome(order, use, ended_at),
            use=use,
        )
        await self._account.save(ended)
        if failed:
            self._back_off(pause)
        else:
            pause.failures, pause.order_after = 0, None
        pause.left_at = pause.send_after = pause.extend_after = None
        _LOG.info("order %d %s: %s", ended.number, ended.step, ended.outcome)

    def _back_off(self, pause: _Pause) -> None:
        """The next order waits, twice as long after each failure, and not at the same moment as others."""
        wait_s = min(BACK_OFF_S * 2**pause.failures, BACK_OFF_MOST_S) * self._drawn.uniform(0.5, 1.0)
        pause.failures = min(pause.failures + 1, FAILURES_COUNTED)
        pause.order_after = self._clock.now() + timedelta(seconds=wait_s)

    async def _end_stray(self, circuit: Circuit) -> None:
        _LOG.warning(
            "circuit %d of %s has no open order and is cancelled", circuit.number, circuit.request.request_id
        )
        with suppress(DownburstError):
            await self._service.cancel(circuit.number, by=BY)

    def _train(self, feed: str) -> Trains:
        return self._trains.setdefault(feed, Trains())

    def _pause(self, pair: Pair) -> _Pause:
        return self._pauses.setdefault(pair, _Pause())

    def _now_s(self) -> float:
        return to_us(self._clock.now()) / 1e6


def _wanted(order: DemandOrder, provider: str, ends: Ends, now: datetime) -> Circuit:
    """The request for an order's circuit; it is the same one whenever it is sent again."""
    driver = CircuitDriver.LINUX if provider == LINUX else CircuitDriver.NSI
    carriage = CircuitCarriage(driver=driver, provider=None if provider == LINUX else provider)
    request = CircuitRequest(order.request_id, f"{order.feed} to {order.site}: {order.reason}", requested_by=BY)
    return Circuit(0, request, ends, order.rate_bps, 0, now, order.times.until, carriage)


_LOG = logging.getLogger(__name__)
_HEARD = (
    *(FeedStirred, FeedSilent, CircuitsChanged, PlanMade, TrafficSeen),
    *(SessionChanged, SitesChanged, NodeChanged, EventsMissed),
)
BY = "scheduler"
TICK_S = 0.1
STEPS_MOST = 8
"""Of one pair at one moment: an order runs through all of its steps in fewer."""
APPLIED = timedelta(seconds=0.5)
SEND_AGAIN, EXTEND_AGAIN = timedelta(seconds=1), timedelta(seconds=5)
BACK_OFF_S, BACK_OFF_MOST_S, FAILURES_COUNTED = 5.0, 600.0, 16
