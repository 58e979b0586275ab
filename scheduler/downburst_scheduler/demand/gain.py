"""The latency that an ordered circuit gained, from the sketches of latencies that the ledger has anyway.

Medians of the same feed at the same site are compared. Receipts do not tell copies on a circuit from copies on the
routed path, so the products are told apart by time: the sketches only grow, and their growth between two moments is
that of the receipts in between.

* On the circuit are the products from `Moment.SETTLED` to the release. From there on the site's position is beyond
  each number that the feed had when it was moved, so no product of the routed path is still under way.
* On the routed path are the products of the set-up, if nine of ten took no longer than a quarter of the set-up: of a
  slower path, many would still be under way at its end.
* Otherwise, those of the minutes of the hour before in which the pair had no order, and the feed no reserved circuit.
* Otherwise, the fast products of a slow path give the least gain, and the sentence says so.
* If the train began on the circuit, the prediction of the plan takes their place, and the sentence says so.

Both measured medians contain the same clock offset, so it cancels; a prediction contains none, so a difference within
the bound of the offset proves nothing. Fewer than `FEWEST` products have no telling median.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from downburst.domain.events import TrafficSeen
from downburst.domain.latency import LatencyKind, SketchRow
from downburst.domain.ordering import DemandOrder, OrderStep
from downburst.domain.plans import Plan, Transport
from downburst.foundation.clock import from_us, to_us
from downburst.ledger import Ledger, Transaction
from downburst.sketches.sketch import LatencySketch


@dataclass(frozen=True, slots=True)
class Gain:
    """A difference of medians."""

    ms: float
    """Positive: the circuit was faster than the routed path."""
    sentence: str


class Moment(StrEnum):
    """The moments of an order at which the latencies so far are noted."""

    ORDERED = "ordered"
    UP = "up"
    SETTLED = "settled"
    """All products of the routed path have come."""
    LEFT = "left"


@dataclass(slots=True)
class _Noted:
    """The notes about one order."""

    sketches: dict[Moment, LatencySketch] = field(default_factory=dict)
    moved: tuple[str, int] | None = None
    """Epoch and head of the feed once it was moved."""
    look_after: datetime | None = None


class Gains:
    """The latencies so far at the moments of open orders; those of an order that was adopted begin in its middle."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._noted: dict[int, _Noted] = {}
        """By the number of the order."""
        self._heads: dict[str, tuple[datetime, str, int]] = {}
        """Time, epoch and head of each feed."""

    def seen(self, event: TrafficSeen) -> None:
        """Takes the heads of feeds from a second of counters."""
        at = from_us(event.to_us)
        self._heads |= {feed.feed: (at, feed.epoch, feed.head) for feed in event.feeds}

    async def look(self, order: DemandOrder, now: datetime) -> None:
        """Notes the latencies so far, once for each moment that an order has come to."""
        noted = self._noted.setdefault(order.number, _Noted())
        moment = _moment(order)
        if moment is not Moment.LEFT:
            # The train came back before the circuit was cancelled.
            noted.sketches.pop(Moment.LEFT, None)
        if moment not in noted.sketches:
            noted.sketches[moment] = await self._ledger.read(lambda tx: LatencySketch.of_rows(_rows(tx, order)))
        elif moment is Moment.UP and Moment.SETTLED not in noted.sketches:
            await self._look_for_settled(order, noted, now)

    async def _look_for_settled(self, order: DemandOrder, noted: _Noted, now: datetime) -> None:
        known = self._heads.get(order.feed)
        if noted.moved is None and known is not None and known[0] >= (order.times.up_at or now) + MOVED:
            noted.moved = known[1:]
        if noted.moved is None or (noted.look_after is not None and now < noted.look_after):
            return
        noted.look_after, moved = now + LOOK_AGAIN, noted.moved
        found = await self._ledger.read(lambda tx: _settled(tx, order, moved))
        if found is not None:
            noted.sketches[Moment.SETTLED] = found

    async def of(self, order: DemandOrder, plan: Plan | None, others: Iterable[DemandOrder]) -> Gain | None:
        """The gain of an order that ends, under the feed's plan; `others` are its pair's orders. None: not known."""
        noted = self._noted.get(order.number, _Noted()).sketches
        rode, routed = _between(noted, Moment.SETTLED, Moment.LEFT), _between(noted, Moment.ORDERED, Moment.UP)
        rode_ms, routed_ms = _median_ms(rode), _median_ms(routed)
        if rode_ms is None:
            return None
        if routed_ms is not None and _is_whole(routed, order.setup_s):
            return _gain(rode, rode_ms, routed_ms, f"that of {routed.count} on the routed path during the set-up")
        before = await self._ledger.read(lambda tx: _hour_before(tx, order, [one for one in others if one != order]))
        before_ms = _median_ms(before)
        if before_ms is not None:
            return _gain(rode, rode_ms, before_ms, f"that of {before.count} on the routed path in the hour before")
        if routed_ms is not None:
            fast = f"that of the fastest {routed.count} on the routed path during the set-up"
            return _gain(rode, rode_ms, routed_ms, fast) if routed_ms > rode_ms else None
        return _against_prediction(rode, rode_ms, _predicted_ms(plan)) if _began_up(order) else None

    def forget(self, order: DemandOrder) -> None:
        """Ends the notes about an order."""
        self._noted.pop(order.number, None)


def _moment(order: DemandOrder) -> Moment:
    match order.step:
        case OrderStep.ORDERED:
            return Moment.ORDERED
        case OrderStep.UP:
            return Moment.UP
        case _:
            return Moment.LEFT


def _settled(tx: Transaction, order: DemandOrder, moved: tuple[str, int]) -> LatencySketch | None:
    """The latencies so far if the site's position is beyond a head of the feed; None if it is not."""
    epoch, head = moved
    positions = [one for one in tx.measured.settled.of_feed(order.feed) if one.site == order.site]
    is_beyond = any(one.epoch == epoch and one.settled_to >= head for one in positions)
    return LatencySketch.of_rows(_rows(tx, order)) if is_beyond else None


def _began_up(order: DemandOrder) -> bool:
    """True if no product of its train took the routed path before the circuit."""
    began, up = order.times.train_at, order.times.up_at
    return began is not None and up is not None and began >= up


def _is_whole(routed: LatencySketch, setup_s: float | None) -> bool:
    """True if few of these products can have been under way when the set-up ended."""
    slow_ms = routed.quantile_ms(0.9)
    return setup_s is not None and slow_ms is not None and slow_ms <= setup_s * 1e3 * WHOLE_SHARE


def _rows(
    tx: Transaction, order: DemandOrder, *, since: datetime | None = None, until_minute: int = 2**31 - 1
) -> Sequence[SketchRow]:
    """The copies of a feed to a site; a latency counts in the minute in which the hub stored the product."""
    return tx.measured.latency.rows(
        since_minute=_minute(since or order.times.ordered_at),
        until_minute=until_minute,
        feed=order.feed,
        site=order.site,
        transport=Transport.UNICAST,
        kind=LatencyKind.DISTRIBUTION,
    )


def _hour_before(tx: Transaction, order: DemandOrder, others: Iterable[DemandOrder]) -> LatencySketch:
    plans = tx.planning.plans.history(order.feed, limit=PLANS)
    if any(_is_reserved(plan) for plan in plans):
        return LatencySketch()
    began = order.times.ordered_at - LOOKED_BACK
    if len(plans) == PLANS:
        began = max(began, plans[-1].made_at)
    spans = [(_minute(one.times.ordered_at), _minute(one.times.ended_at or one.times.until)) for one in others]
    rows = _rows(tx, order, since=began, until_minute=_minute(order.times.ordered_at))
    return LatencySketch.of_rows(row for row in rows if not any(a <= row.minute <= b for a, b in spans))


def _is_reserved(plan: Plan) -> bool:
    return any(leg.transport is Transport.STATIC_CIRCUIT for leg in plan.legs)


def _between(noted: dict[Moment, LatencySketch], first: Moment, last: Moment) -> LatencySketch:
    """The growth from one moment to the other; empty if one of them was not noted."""
    if first not in noted or last not in noted:
        return LatencySketch()
    before, after = noted[first], noted[last]
    grown = LatencySketch(
        count=after.count - before.count,
        sum_ms=after.sum_ms - before.sum_ms,
        min_ms=after.min_ms,
        max_ms=after.max_ms,
        negative=after.negative - before.negative,
        bound_ms=after.bound_ms,
    )
    for bucket, count in after.buckets.items():
        if count > before.buckets.get(bucket, 0):
            grown.buckets[bucket] = count - before.buckets.get(bucket, 0)
    return grown


def _median_ms(sketch: LatencySketch) -> float | None:
    return sketch.quantile_ms(0.5) if sketch.count >= FEWEST else None


def _against_prediction(rode: LatencySketch, rode_ms: float, predicted_ms: float | None) -> Gain | None:
    is_sure = predicted_ms is not None and rode.bound_ms is not None and not rode.negative
    if not is_sure or predicted_ms is None or abs(predicted_ms - rode_ms) <= (rode.bound_ms or 0.0):
        return None
    return _gain(rode, rode_ms, predicted_ms, "predicted for the routed path of the feed, which no product took")


def _gain(rode: LatencySketch, rode_ms: float, routed_ms: float, compared: str) -> Gain:
    gained_ms = routed_ms - rode_ms
    than = f"{abs(gained_ms):.3g} ms {'less' if gained_ms >= 0 else 'more'} than {compared}"
    return Gain(gained_ms, f"the median latency of {rode.count} products was {rode_ms:.3g} ms, {than}")


def _predicted_ms(plan: Plan | None) -> float | None:
    candidates = plan.candidates if plan is not None else ()
    return next((one.predicted_p50_ms for one in candidates if one.transport is Transport.UNICAST), None)


def _minute(moment: datetime) -> int:
    return to_us(moment) // 60_000_000


FEWEST = 10
LOOKED_BACK, PLANS = timedelta(hours=1), 100
"""The minutes on the routed path are looked for so far back, in time and in plans of the feed."""
MOVED, LOOK_AGAIN = timedelta(seconds=1), timedelta(seconds=1)
"""The node moves a feed within this time. Receipts are loaded each second."""
WHOLE_SHARE = 0.25
