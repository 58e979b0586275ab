"""Shapes of products and deliveries in answers: names here are promises to clients."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from downburst.deliveries import Delivery, ProductFacts, Timing
from downburst.deliveries.facts import ReceiptFacts


def product_out(product: ProductFacts, deliveries: Sequence[Delivery]) -> dict[str, Any]:
    """A product with its delivery to each site."""
    return {
        "feed": product.feed,
        "epoch": product.epoch,
        "sequence": product.sequence,
        "product_id": product.product_id,
        "origin": product.origin,
        "created_at": product.created_at,
        "stored_at": product.stored_at,
        "size": product.size_bytes,
        "digest": product.digest,
        "class": product.feed_class,
        "kept": product.kept,
        "states": dict(Counter(delivery.state.value for delivery in deliveries)),
        "deliveries": [delivery_out(delivery) for delivery in deliveries],
    }


def delivery_out(delivery: Delivery) -> dict[str, Any]:
    """A product's state for one site."""
    return {
        "site": delivery.site,
        "state": delivery.state,
        "cause": delivery.cause,
        "reason": delivery.reason,
        "next_action": delivery.next_action,
        "receipt": None if delivery.receipt is None else _receipt(delivery.receipt),
        "timing": _timing(delivery.timing),
    }


def _timing(timing: Timing) -> dict[str, Any]:
    return {
        "distribution_ms": timing.distribution_ms,
        "end_to_end_ms": timing.end_to_end_ms,
        "bound_ms": timing.bound_ms,
        "slow": timing.slow,
        "stages": [
            {"stage": stage.name, "ms": stage.ms, "across_clocks": stage.across_clocks} for stage in timing.stages
        ],
    }


def _receipt(receipt: ReceiptFacts) -> dict[str, Any]:
    return {
        "outcome": receipt.outcome,
        "lane": receipt.lane,
        "transport": receipt.transport,
        "leg": receipt.leg,
        "repaired": receipt.repaired,
        "first_byte_sent_at": receipt.first_byte_at,
        "last_byte_at": receipt.last_byte_at,
        "site_stored_at": receipt.site_stored_at,
        "action_done_at": receipt.action_done_at,
        "clock_offset_us": receipt.clock_offset_us,
        "clock_bound_us": receipt.clock_bound_us,
    }
