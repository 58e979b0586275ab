"""The latency that an ordered circuit gained, from the sketches of latencies that the ledger has anyway.

Medians of the same feed at the same site are compared. Receipts do not tell copies on a circuit from copies on the
routed path, so the products are told apart by time: the sketches only grow, and their growth between two moments is
that of the receipts in between. On the circuit are those from `SETTLED` after its first use to its release. On the
routed path are those during the set-up, or, if they are too few, those of the minutes of the hour before in which the
pair had no order and the feed no reserved circuit. Without either, the prediction of the plan takes their place, and
the sentence says so.

Both measured medians contain the same clock offset, so it cancels; a prediction contains none, so a difference within
the bound of the offset proves nothing. Fewer than `FEWEST` products have no telling median. A product that was still
under way on the routed path after `SETTLED` counts for the circuit: that makes a gain smaller, never larger.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from downburst.domain.latency import LatencyKind, SketchRow
from downburst.domain.ordering import DemandOrder, OrderStep
from downburst.domain.plans import Plan, Transport
from downburst.foundation.clock import to_us
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
    """The receipts of products on the routed path have come."""
    LEFT = "left"


class Gains:
    """The latencies so far at the moments of open orders; those of an order that was adopted begin in its middle."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._noted: dict[int, dict[Moment, LatencySketch]] = {}
        """By the number of the order."""

    async def look(self, order: DemandOrder, now: datetime) -> None:
        """Notes the latencies so far, once for each moment that an order has come to."""
        noted, moment = self._noted.setdefault(order.number, {}), _moment(order, now)
        if moment is not Moment.LEFT:
            # The train came back before the circuit was cancelled.
            noted.pop(Moment.LEFT, None)
        if moment not in noted:
            noted[moment] = await self._ledger.read(lambda tx: LatencySketch.of_rows(_rows(tx, order)))

    async def of(self, order: DemandOrder, plan: Plan | None, others: Iterable[DemandOrder]) -> Gain | None:
        """The gain of an order that ends, under the feed's plan; `others` are its pair's orders. None: not known."""
        noted = self._noted.get(order.number, {})
        rode, routed = _between(noted, Moment.SETTLED, Moment.LEFT), _between(noted, Moment.ORDERED, Moment.UP)
        rode_ms, routed_ms = _median_ms(rode), _median_ms(routed)
        if rode_ms is None:
            return None
        if routed_ms is not None:
            return _gain(rode, rode_ms, routed_ms, f"that of {routed.count} on the routed path during the set-up")
        routed = await self._ledger.read(lambda tx: _hour_before(tx, order, [one for one in others if one != order]))
        routed_ms = _median_ms(routed)
        if routed_ms is not None:
            return _gain(rode, rode_ms, routed_ms, f"that of {routed.count} on the routed path in the hour before")
        return _against_prediction(rode, rode_ms, _predicted_ms(plan))

    def forget(self, order: DemandOrder) -> None:
        """Ends the notes about an order."""
        self._noted.pop(order.number, None)


def _moment(order: DemandOrder, now: datetime) -> Moment:
    if order.step is OrderStep.ORDERED:
        return Moment.ORDERED
    if order.step is not OrderStep.UP or order.times.up_at is None:
        return Moment.LEFT
    return Moment.UP if now < order.times.up_at + SETTLED else Moment.SETTLED


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
    return _gain(rode, rode_ms, predicted_ms, "predicted for the routed path of the feed, where none was measured")


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
SETTLED = timedelta(seconds=2)
"""The node moves the feed within a second, and receipts are loaded each second."""
