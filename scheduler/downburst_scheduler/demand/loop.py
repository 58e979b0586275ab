"""The acting loop of circuits on demand: it orders circuits for trains of products, extends and gives them back.

The scheduler chooses `dynamic-circuit` and its terms, in minutes; this loop acts on them, in tenths of a second. Each
order is stored before it is sent and each step behind it, so that a restart at any moment continues with the order
that is open, and finds its circuit by the request id.
"""

import asyncio
import logging
import random
from contextlib import suppress
from dataclasses import replace
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
from downburst.domain.circuits.signs import CircuitsChanged
from downburst.domain.events import (
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
from downburst.foundation.clock import Clock, SystemClock, from_us, to_us
from downburst.foundation.errors import DownburstError, Failure
from downburst.ledger import Ledger
from downburst.settings.hub import Settings
from downburst.supervision import attempt
from downburst_scheduler.demand.account import Account
from downburst_scheduler.demand.budgets import midnight, refusal
from downburst_scheduler.demand.cores import Ends
from downburst_scheduler.demand.gain import Gains
from downburst_scheduler.demand.pauses import Pause, resumed
from downburst_scheduler.demand.port import CircuitOrders
from downburst_scheduler.demand.riding import riding
from downburst_scheduler.demand.steps import Act, Facts, Step, next_step
from downburst_scheduler.demand.trains import Trains, held_s
from downburst_scheduler.demand.use import Uses, outcome
from downburst_scheduler.demand.written import terms_of
from downburst_scheduler.models.demand.terms import DemandTerms

Pair = tuple[str, str]
"""A feed and a site."""


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
        self._terms: dict[str, dict[str, DemandTerms]] = {}
        """By feed and site."""
        self._trains: dict[str, Trains] = {}
        self._pauses: dict[Pair, Pause] = {}
        self._has_begun = False
        self._uses = Uses()
        self._gains = Gains(ledger)
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
        if not self._has_begun:
            await self._resume()
        for circuit in strays:
            await self._end_stray(circuit)
        self._fresh = True
        self._watch(again=True)

    async def _resume(self) -> None:
        """Continues habits, pauses and trains of the scheduler before this one."""
        learnt = await self._account.trains(self._clock.now())
        self._trains = {feed: Trains.learnt(starts_s) for feed, starts_s in learnt.items()}
        self._pauses = resumed(self._account.orders, self._drawn)
        for order in self._account.open:
            if order.step is not OrderStep.RELEASING:
                self._train(order.feed).resumed(self._now_s())
        self._has_begun = True

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
        self._terms.pop(plan.feed, None)
        if terms := terms_of(plan.figures):
            self._terms[plan.feed] = {one.site: one for one in terms}

    def _traffic(self, event: TrafficSeen) -> None:
        for pause in self._pauses.values():
            # The node reports by a plan that it has had for a moment.
            if pause.left_at is not None and event.to_us >= to_us(pause.left_at + APPLIED):
                pause.left_at = None
        plans = self._account.plans.values()
        riders = {(plan.feed, site): circuit for plan in plans for site, circuit in riding(plan).items()}
        self._uses.seen(event, riders)
        self._uses.seen(*self._account.led.seen(event, plans))
        self._gains.seen(event)

    def _watch(self, *, again: bool = False) -> None:
        """Names the silences that count: of a feed the shortest hold time of its sites.

        `again`: signs may have been missed. A node that forgets its watch first reports the next product of each
        feed, also of one in the middle of a train.
        """
        holds = {feed: min(map(held_s, terms.values())) for feed, terms in self._terms.items()}
        wanted = SilencesWatched(tuple(sorted((feed, max(int(hold * 1e6), 1)) for feed, hold in holds.items())))
        if again and wanted.holds_us:
            self._bus.publish(SilencesWatched(()))
            for train in self._trains.values():
                train.doubted(self._now_s())
        if wanted != (self._watched or SilencesWatched(())) or (again and wanted.holds_us):
            self._bus.publish(wanted)
        self._watched = wanted

    async def _act(self) -> None:
        for pair in self._at_work():
            await attempt("scheduler.order", partial(self._steps, pair, self._terms_of(pair)), what=" to ".join(pair))

    def _at_work(self) -> list[Pair]:
        """The pairs with an open order, and those with a train that needs one; the others have no step to take."""
        pairs, now_s = {(order.feed, order.site) for order in self._account.open}, self._now_s()
        for feed, terms in self._terms.items():
            train = self._train(feed)
            pairs |= {(feed, site) for site, one in terms.items() if train.need(one, now_s) is not None}
        return sorted(pairs)

    def _terms_of(self, pair: Pair) -> DemandTerms | None:
        """The terms of a pair; none without ends: the site's way no longer goes over the ports of the offer."""
        terms, known = self._terms.get(pair[0], {}).get(pair[1]), self._account.terms
        return None if terms is None or known.ends(terms.offer, terms.site) is None else terms

    async def _steps(self, pair: Pair, terms: DemandTerms | None) -> None:
        try:
            for _ in range(STEPS_MOST):
                facts = self._facts(pair, terms)
                if facts.order is not None:
                    await self._gains.look(facts.order, facts.now)
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
                if times.train_at is None:
                    train_at = self._train_at(pair[0], to_us(times.ordered_at) / 1e6)
                    times = replace(times, train_at=train_at)
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
        if self._account.is_taken(self._account.terms.ends(terms.offer, terms.site)):
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
            pause.order_after = facts.now + ORDER_AGAIN
            return False
        step = OrderStep.WOULD if is_dry else OrderStep.ORDERED
        times = OrderTimes(facts.now, until, train_at=self._train_at(pair[0], need.began_s))
        made = DemandOrder(0, offer.name, *pair, terms.rate_bps, need.reason, times, step)
        if is_dry:
            made = replace(made, outcome="dry run: nothing was sent")
            pause.would_for_s = need.began_s
        kept = await self._account.add(made)
        _LOG.info("order %d of %s to %s: %s", kept.number, *pair, kept.reason)
        return not is_dry

    def _train_at(self, feed: str, since_s: float) -> datetime | None:
        """The start of the feed's last train, if it was seen and is no earlier than this."""
        start_s = self._train(feed).start_s
        return None if start_s is None or start_s < since_s else from_us(round(start_s * 1e6))

    def _say_spent(self, offer: str, why: str, now: datetime) -> None:
        """Once a day."""
        if self._spent.get(offer) != midnight(now):
            self._spent[offer] = midnight(now)
            sentence = f"no circuit is ordered under the offer {offer}: {why}; feeds stay on the routed path"
            self._bus.publish(FaultSeen(now, sentence, next_step=f"downburst circuits offers set {offer}"))
            _LOG.warning("%s", sentence)

    async def _send(self, order: DemandOrder, pause: Pause) -> bool:
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

    async def _refused(self, order: DemandOrder, sentence: str, pause: Pause) -> None:
        times = replace(order.times, ended_at=self._clock.now())
        await self._account.save(replace(order, step=OrderStep.REFUSED, times=times, outcome=sentence))
        pause.failed(self._clock.now(), self._drawn)
        _LOG.warning("order %d was refused: %s", order.number, sentence)

    async def _move(self, order: DemandOrder, circuit: Circuit | None) -> None:
        """Stores a step that the scheduler's plans follow, and tells it."""
        number = circuit.number if circuit is not None else order.circuit
        await self._account.save(replace(order, circuit=number))
        self._bus.publish(CircuitsChanged(number))

    async def _extend(self, facts: Facts, pause: Pause, until: datetime | None) -> bool:
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

    async def _end(self, order: DemandOrder, now: datetime, pause: Pause) -> None:
        ended_at = min(now, max(order.times.until, order.times.ordered_at))
        use, failed = self._uses.ended(order, ended_at), bool(order.outcome)
        said = order.outcome or outcome(order, use, ended_at)
        if use is not None:
            plan, others = self._account.plans.get(order.feed), self._account.of_pair(order.feed, order.site)
            gain = await self._gains.of(order, plan, others)
            if gain is not None:
                use, said = replace(use, gained_ms=gain.ms), f"{said}; {gain.sentence}"
        ended = replace(
            order,
            step=OrderStep.FAILED if failed else OrderStep.ENDED,
            times=replace(order.times, ended_at=ended_at),
            outcome=said,
            use=use,
        )
        await self._account.save(ended)
        self._uses.forget(order.circuit)
        self._gains.forget(order)
        if failed:
            pause.failed(self._clock.now(), self._drawn)
        else:
            pause.ended()
        pause.left_at = pause.send_after = pause.extend_after = None
        _LOG.info("order %d %s: %s", ended.number, ended.step, ended.outcome)

    async def _end_stray(self, circuit: Circuit) -> None:
        _LOG.warning(
            "circuit %d of %s has no open order and is cancelled", circuit.number, circuit.request.request_id
        )
        with suppress(DownburstError):
            await self._service.cancel(circuit.number, by=BY)

    def _train(self, feed: str) -> Trains:
        return self._trains.setdefault(feed, Trains())

    def _pause(self, pair: Pair) -> Pause:
        return self._pauses.setdefault(pair, Pause())

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
ORDER_AGAIN = timedelta(seconds=1)
"""A spent budget is read again so often."""
