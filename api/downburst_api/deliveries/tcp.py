"""The limits of TCP while a product was on its way to a site, from the tracer's recording."""

from collections import Counter
from datetime import datetime, timedelta

from downburst.deliveries import Delivery, TcpThen
from downburst.domain.plans import Transport
from downburst.foundation.errors import DownburstError
from downburst.live.traced import TracedSite, TracerQuestion
from downburst_api.runtime import Runtime


async def tcp_of(hub: Runtime, delivery: Delivery) -> TcpThen | None:
    """The limits of the connections that carried a product; None if no connection did, or its time is not known."""
    span = _span(delivery)
    if span is None:
        return None
    try:
        traced = await hub.node.tracer(TracerQuestion(delivery.site, *span, points=2))
    except DownburstError as failed:
        return TcpThen(unable=failed.sentence)
    return limits_of(traced)


def limits_of(traced: TracedSite) -> TcpThen:
    """The time of all connections by limit, without that in which there was nothing to send."""
    if traced.unable is not None:
        return TcpThen(unable=traced.unable)
    seconds = Counter[str]()
    for connection in traced.connections:
        verdict = connection.verdict
        for one in () if verdict is None else verdict.shares:
            if verdict is not None and one.limit != IDLE:
                seconds[one.limit] += one.share * verdict.seconds
    whole_s = sum(seconds.values())
    return TcpThen(
        tuple((limit, spent_s / whole_s) for limit, spent_s in seconds.most_common() if whole_s and spent_s)
    )


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
