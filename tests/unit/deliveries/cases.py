"""A product and the facts about its delivery, with defaults for everything that does not matter."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from downburst.deliveries import Delivery, Known, ProductFacts, ReceiptFacts, SessionFacts, SiteFacts, deliver
from downburst.domain.plans import Transport
from downburst.domain.subscriptions import IdFilter

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
STORED = NOW - timedelta(seconds=30)
PRODUCT = ProductFacts(
    feed="NGRID",
    epoch="7",
    sequence=42,
    product_id="nam.grib2",
    origin="ingest.example",
    created_at=STORED - timedelta(milliseconds=200),
    stored_at=STORED,
    size_bytes=12_000_000,
    digest="ab" * 32,
    feed_class="grid",
    kept=True,
)
SITE = SiteFacts("unl.edu", subscriptions=1, matching=(IdFilter(),))


def after(ms: float) -> datetime:
    """The instant that is the given time after the hub stored the product."""
    return STORED + timedelta(milliseconds=ms)


def receipt(outcome: str = "stored", **given: Any) -> ReceiptFacts:
    """A receipt of a site whose clock is right: queue 10 ms, line 60 ms, disk 5 ms, file 3 ms."""
    usual = ReceiptFacts(
        outcome,
        "live",
        Transport.UNICAST,
        1,
        first_byte_at=after(10),
        last_byte_at=after(70),
        site_stored_at=after(75),
        action_done_at=after(78),
        clock_offset_us=0,
        clock_bound_us=2_000,
    )
    return replace(usual, **given)


def session(standing: str, **given: Any) -> SessionFacts:
    """A session in which the product has the given standing."""
    return replace(SessionFacts(standing, Transport.UNICAST, 1), **given)


def judged(facts: SiteFacts = SITE, known: Known | None = None, product: ProductFacts = PRODUCT) -> Delivery:
    """The delivery of the product in this case."""
    return deliver(product, facts, known or Known(), now=NOW)
