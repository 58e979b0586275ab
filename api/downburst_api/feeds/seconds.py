"""The seconds of feeds with a deadline."""

from datetime import UTC, datetime
from typing import Any

from downburst.domain.receipts import Delays, FeedSecond
from downburst.sketches.sketch import LatencySketch
from downburst_contract import feeds as shapes


def shape_of(second: FeedSecond) -> shapes.FeedSecond:
    """A second for clients."""
    return shapes.FeedSecond(
        site=second.site,
        second=second.second,
        at=datetime.fromtimestamp(second.second, UTC),
        stored=second.stored,
        late_at_hub=second.late_at_hub,
        late_at_site=second.late_at_site,
        lost=second.lost,
        reordered=second.reordered,
        delay=None if second.delays is None else _delay(second.delays),
        jitter_ms=None if second.jitter_us is None else second.jitter_us / 1000,
    )


def row_of(second: shapes.FeedSecond) -> dict[str, Any]:
    """A row of a table."""
    delay = {} if second.delay is None else second.delay.model_dump()
    return second.model_dump(exclude={"delay"}) | {f"delay_{name}": value for name, value in delay.items()}


def _delay(delays: Delays) -> shapes.RecordDelays:
    sketch = LatencySketch()
    sketch.merge(delays)
    return shapes.RecordDelays(
        min_ms=delays.min_ms,
        median_ms=sketch.quantile_ms(0.5) or 0.0,
        p99_ms=sketch.quantile_ms(0.99) or 0.0,
        max_ms=delays.max_ms,
        bound_ms=delays.bound_ms,
        negative=delays.negative,
    )


COLUMNS = (
    *("site", "at", "stored", "late_at_hub", "late_at_site", "lost", "reordered"),
    *("delay_min_ms", "delay_median_ms", "delay_p99_ms", "delay_max_ms", "delay_bound_ms", "delay_negative"),
    "jitter_ms",
)
