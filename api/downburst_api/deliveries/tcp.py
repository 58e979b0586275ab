"""The limits of TCP while a product was on its way to a site, from the tracer's recording."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta

from downburst.deliveries import Delivery, TcpThen
from downburst.domain.plans import Transport
from downburst.foundation.errors import DownburstError
from downburst.live.traced import TracedSite, TracerQuestion
from downburst_api.runtime import Runtime


async def tcp_of_newest(hub: Runtime, deliveries: Iterable[Delivery]) -> tuple[Delivery, TcpThen] | None:
    """The first of the deliveries whose time on a connection is known, with the limit of its site's connections then.

    Each question reads the ring of the node: a request asks for one product.
    """
    for delivery in deliveries:
        span = _span(delivery)
        if span is not None:
            return delivery, await _tcp_then(hub, TracerQuestion(delivery.site, *span, points=2))
    return None


async def _tcp_then(hub: Runtime, question: TracerQuestion) -> TcpThen:
    try:
        return leading(await hub.node.tracer(question))
    except DownburstError as failed:
        return TcpThen(unable=failed.sentence)


def leading(traced: TracedSite) -> TcpThen:
    """The limit of most of the time of all connections, without that in which there was nothing to send."""
    if traced.unable is not None:
        return TcpThen(unable=traced.unable)
    spent_s = defaultdict[str, float](float)
    for connection in traced.connections:
        verdict = connection.verdict
        if verdict is not None:
            for one in verdict.shares:
                spent_s[one.limit] += one.share * verdict.seconds
    spent_s.pop(IDLE, None)
    whole_s = sum(spent_s.values())
    if whole_s <= 0:
        return TcpThen()
    limit = max(spent_s, key=lambda one: spent_s[one])
    return TcpThen(limit, spent_s[limit] / whole_s)


def _span(delivery: Delivery) -> tuple[datetime, datetime] | None:
    """From the first byte to the last on the hub's clock, with the samples before and after."""
    receipt = delivery.receipt
    if receipt is None or receipt.transport is Transport.MULTICAST or receipt.first_byte_at is None:
        return None
    if receipt.last_byte_at is None or receipt.clock_offset_us is None:
        return None
    last_at = receipt.last_byte_at - timedelta(microseconds=receipt.clock_offset_us)
    if last_at - receipt.first_byte_at > LONGEST:
        return None
    return receipt.first_byte_at - AROUND, max(last_at, receipt.first_byte_at) + AROUND


IDLE = "application"
AROUND = timedelta(seconds=1.1)
"""A connection is recorded at least once a second, ten times while its counters move."""
LONGEST = timedelta(minutes=10)
"""A product that took longer was interrupted: no single reason holds for all of it."""
