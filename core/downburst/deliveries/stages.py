"""The latency of a product by stage between its stamps, its slowest stage, and the place that caused it."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from downburst.domain.latency import Certainty, certainty_of
from downburst.foundation.sizes import size_text

if TYPE_CHECKING:
    from downburst.deliveries.facts import ProductFacts, ReceiptFacts, SentBytes


@dataclass(frozen=True, slots=True)
class Stage:
    """The time between two successive stamps."""

    name: str
    """origin, queue, transfer, hub-to-last-byte, store or action."""
    ms: float | None
    """None if a missing stamp or a clock that was not compared leaves it unknown. May be negative."""
    across_clocks: bool = False
    """Both ends are on different clocks: the value is known to within the bound."""
    bound_ms: float | None = None
    """None on one clock, and where the clock of a source is not compared."""

    @property
    def certainty(self) -> Certainty | None:
        """None for a value that is not known, or by a clock that is not compared and not shown to be wrong."""
        found = certainty_of(self.ms, self.bound_ms)
        is_open = self.across_clocks and self.bound_ms is None and found is Certainty.KNOWN
        return None if is_open else found


@dataclass(frozen=True, slots=True)
class Timing:
    """A product's time on its way to one site."""

    stages: tuple[Stage, ...] = ()
    distribution_ms: float | None = None
    """From the hub's log to the site's log."""
    end_to_end_ms: float | None = None
    bound_ms: float | None = None
    certainty: Certainty | None = None
    """Of `distribution_ms`."""
    slow: str | None = None
    """The longest stage, if the product was late."""
    sentence: str = ""


def timing(
    product: "ProductFacts",
    receipt: "ReceiptFacts",
    *,
    objective_ms: float | None = None,
    sent_before: "tuple[SentBytes, ...]" = (),
) -> Timing:
    """Splits the latency of a stored product into its stages."""
    stages = _stages(product, receipt)
    stored_at = _at_hub(receipt.site_stored_at, receipt)
    distribution = _ms(product.stored_at, stored_at)
    bound_ms = _bound_ms(receipt)
    timed = Timing(
        stages=stages,
        distribution_ms=distribution,
        end_to_end_ms=_ms(product.created_at, stored_at),
        bound_ms=bound_ms,
        certainty=certainty_of(distribution, bound_ms),
    )
    slowest = _slowest(stages, distribution, objective_ms)
    if slowest is None:
        return timed
    sentence = _sentence(slowest, product, receipt, sent_before)
    return replace(timed, slow=slowest.name, sentence=sentence)


def duration(ms: float) -> str:
    """A time in readable form."""
    size = abs(ms)
    if size >= 7_200_000:
        return f"{ms / 3_600_000:.1f} h"
    if size >= 120_000:
        return f"{ms / 60_000:.1f} min"
    return f"{ms / 1000:.1f} s" if size >= 1000 else f"{ms:.1f} ms"


def measured(ms: float, bound_ms: float | None) -> str:
    """A time across two clocks in readable form, with its bound, and its certainty unless it is known."""
    shown = duration(ms) if bound_ms is None else f"{duration(ms)} ± {duration(bound_ms)}"
    certainty = certainty_of(ms, bound_ms)
    return shown if certainty is Certainty.KNOWN else f"{shown} ({certainty})"


def _stages(product: "ProductFacts", receipt: "ReceiptFacts") -> tuple[Stage, ...]:
    last_byte, bound_ms = _at_hub(receipt.last_byte_at, receipt), _bound_ms(receipt)
    stages = [Stage("origin", _ms(product.created_at, product.stored_at), across_clocks=True)]
    if receipt.first_byte_at is None:
        way_ms = _ms(product.stored_at, last_byte)
        stages.append(Stage("hub-to-last-byte", way_ms, across_clocks=True, bound_ms=bound_ms))
    else:
        stages.append(Stage("queue", _ms(product.stored_at, receipt.first_byte_at)))
        line_ms = _ms(receipt.first_byte_at, last_byte)
        stages.append(Stage("transfer", line_ms, across_clocks=True, bound_ms=bound_ms))
    stages.append(Stage("store", _ms(receipt.last_byte_at, receipt.site_stored_at)))
    stages.append(Stage("action", _ms(receipt.site_stored_at, receipt.action_done_at)))
    return tuple(stages)


def _slowest(stages: tuple[Stage, ...], distribution_ms: float | None, objective_ms: float | None) -> Stage | None:
    """The longest stage, if the product was later than wanted, was old, or waited at the site."""
    limit = NOTICEABLE_MS if objective_ms is None else objective_ms
    known = [stage for stage in stages if stage.ms is not None]
    slowest = max(known, key=lambda stage: stage.ms or 0.0, default=None)
    if slowest is None or slowest.ms is None:
        return None
    late = distribution_ms is not None and distribution_ms > limit
    if not late and slowest.ms <= limit:
        return None
    inside = [stage for stage in known if stage.name != "origin"]
    return max(inside, key=lambda stage: stage.ms or 0.0, default=slowest) if late else slowest


def _sentence(
    slowest: Stage, product: "ProductFacts", receipt: "ReceiptFacts", sent_before: "tuple[SentBytes, ...]"
) -> str:
    ms = slowest.ms or 0.0
    took = measured(ms, slowest.bound_ms)
    again = ", and parts of it had to be sent again" if receipt.repaired else ""
    sentences = {
        "origin": f"it was {took} old when it reached the hub, by the clock of its source: check {product.origin}",
        "queue": f"it waited {took} in the hub's queue for this site{_behind(sent_before)}",
        "transfer": f"it was {took} on the line ({_rate(product, ms)}){again}",
        "hub-to-last-byte": f"{took} passed in the hub's queue and on the line{again}",
        "store": f"the site took {took} to check it and write it to its disk",
        "action": f"it stood in the site's log for {took} before its file did",
    }
    return sentences[slowest.name]


def _behind(sent: "tuple[SentBytes, ...]") -> str:
    if not sent:
        return ""
    largest = sorted(sent, key=lambda one: -one.bytes)[:3]
    return ", behind " + " and ".join(f"{size_text(one.bytes)} of {one.feed}" for one in largest)


def _rate(product: "ProductFacts", ms: float) -> str:
    if ms <= 0 or product.size_bytes == 0:
        return size_text(product.size_bytes)
    bits_per_s = product.size_bytes * 8 / (ms / 1000)
    return f"{size_text(product.size_bytes)} at {bits_per_s / 1e6:.3g} Mb/s"


def _at_hub(instant: datetime | None, receipt: "ReceiptFacts") -> datetime | None:
    """A stamp of the site on the hub's clock; None if the clocks were not compared."""
    if instant is None or receipt.clock_offset_us is None:
        return None
    return instant - timedelta(microseconds=receipt.clock_offset_us)


def _bound_ms(receipt: "ReceiptFacts") -> float | None:
    return None if receipt.clock_bound_us is None else receipt.clock_bound_us / 1000


def _ms(begin: datetime | None, end: datetime | None) -> float | None:
    return None if begin is None or end is None else (end - begin) / timedelta(milliseconds=1)


NOTICEABLE_MS = 1_000.0
"""For a feed without an objective: the delay that a person begins to notice."""
