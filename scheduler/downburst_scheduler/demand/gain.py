"""The latency that an ordered circuit gained, from the latencies that the hub has by minute and transport.

Medians of the same feed at the same site are compared: of the products that rode the circuit, and of those that took
the routed path. These are the products of the order's own minutes (of the set-up and after the release), or those of
the hour before it. Without either, the prediction of the plan takes their place, and the sentence says so. Both
measured medians contain the same clock offset, so it cancels; a prediction contains none, so a difference within the
bound of the offset proves nothing. Fewer than `FEWEST` products have no telling median. A latency is counted in the
minute in which the hub stored the product, so neighbouring orders of a feed share a minute at their ends.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from downburst.domain.latency import LatencyKind
from downburst.domain.ordering import DemandOrder
from downburst.domain.plans import Plan, Transport
from downburst.foundation.clock import to_us
from downburst.ledger import Transaction
from downburst.sketches.sketch import LatencySketch


@dataclass(frozen=True, slots=True)
class Gain:
    """A difference of medians."""

    ms: float
    """Positive: the circuit was faster than the routed path."""
    sentence: str


def gain_of(tx: Transaction, order: DemandOrder, plan: Plan | None, *, until: datetime) -> Gain | None:
    """The gain of an order that ended at `until`, under the feed's plan; None: nothing like it is known."""
    if order.times.up_at is None:
        return None
    first, end = _minute(order.times.ordered_at), _minute(until) + 1
    rode = _measured(tx, order, Transport.DYNAMIC_CIRCUIT, (first, end))
    rode_ms = rode.quantile_ms(0.5)
    if rode_ms is None or rode.count < FEWEST:
        return None
    hour = _minute(order.times.ordered_at - LOOKED_BACK)
    for minutes, said in (((first, end), "in the same minutes"), ((hour, first), "in the hour before")):
        routed = _measured(tx, order, Transport.UNICAST, minutes)
        routed_ms = routed.quantile_ms(0.5)
        if routed_ms is not None and routed.count >= FEWEST:
            return _gain(rode, rode_ms, routed_ms, f"that of {routed.count} on the routed path {said}")
    return _against_prediction(rode, rode_ms, _predicted_ms(plan))


def _against_prediction(rode: LatencySketch, rode_ms: float, predicted_ms: float | None) -> Gain | None:
    is_sure = predicted_ms is not None and rode.bound_ms is not None and not rode.negative
    if not is_sure or predicted_ms is None or abs(predicted_ms - rode_ms) <= (rode.bound_ms or 0.0):
        return None
    return _gain(rode, rode_ms, predicted_ms, "predicted for the routed path of the feed, where none was measured")


def _gain(rode: LatencySketch, rode_ms: float, routed_ms: float, compared: str) -> Gain:
    gained_ms = routed_ms - rode_ms
    than = f"{abs(gained_ms):.3g} ms {'less' if gained_ms >= 0 else 'more'} than {compared}"
    return Gain(gained_ms, f"the median latency of {rode.count} products was {rode_ms:.3g} ms, {than}")


def _measured(tx: Transaction, order: DemandOrder, transport: Transport, minutes: tuple[int, int]) -> LatencySketch:
    since, until = minutes
    rows = tx.measured.latency.rows(
        since_minute=since,
        until_minute=until,
        feed=order.feed,
        site=order.site,
        transport=transport,
        kind=LatencyKind.DISTRIBUTION,
    )
    return LatencySketch.of_rows(rows)


def _predicted_ms(plan: Plan | None) -> float | None:
    candidates = plan.candidates if plan is not None else ()
    return next((one.predicted_p50_ms for one in candidates if one.transport is Transport.UNICAST), None)


def _minute(moment: datetime) -> int:
    return to_us(moment) // 60_000_000


FEWEST = 10
LOOKED_BACK = timedelta(hours=1)
