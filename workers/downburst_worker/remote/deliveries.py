"""Other nodes' facts about deliveries to the sites that they serve."""

import asyncio
import json
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace

from downburst.bus.port import Bus
from downburst.deliveries import FoundDeliveries, ProductFacts, SiteFacts
from downburst.domain.events import DeliveriesAsked, DeliveriesTold
from downburst.foundation.errors import DownburstError
from downburst_worker.messages.delivery_lines import deliveries_of_job, found_deliveries
from downburst_worker.messages.lines import Line

Ask = Callable[..., Awaitable[Line]]
"""Sends the node a job."""
Told = dict[int, list[FoundDeliveries]]
"""Senders' facts by sequence."""


class RemoteDeliveries:
    """Queries the other nodes."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def add(self, found: FoundDeliveries, *, senders: Collection[str], site: str | None) -> FoundDeliveries:
        """This node's facts and those of senders; incomplete, and marked so, if one does not answer in time."""
        sequences = tuple(product.sequence for product, _ in found.products)
        if not senders or not sequences:
            return found
        asked = DeliveriesAsked(uuid.uuid4().hex, found.feed, found.epoch, sequences, site)
        missing = {(sender, sequence) for sender in senders for sequence in sequences}
        told: Told = {}
        with suppress(TimeoutError):
            async with asyncio.timeout(ANSWER_S):
                await self._hear(asked, missing, told)
        products = tuple((product, _merged(product, sites, told)) for product, sites in found.products)
        others = [one for answers in told.values() for one in answers]
        complete = found.receipts_complete and not missing and all(one.receipts_complete for one in others)
        return replace(found, products=products, receipts_complete=complete)

    async def _hear(self, asked: DeliveriesAsked, missing: set[tuple[str, int]], told: Told) -> None:
        with self._bus.subscribe(DeliveriesTold, limit=ANSWERS) as answers:
            self._bus.publish(asked)
            async for one in answers:
                if not isinstance(one, DeliveriesTold) or one.ask != asked.ask:
                    continue
                missing.discard((one.sender, one.sequence))
                if one.answer is not None:
                    told.setdefault(one.sequence, []).append(found_deliveries(json.loads(one.answer)))
                if not missing:
                    return


async def told_deliveries(name: str, ask_node: Ask, asked: DeliveriesAsked) -> AsyncIterator[DeliveriesTold]:
    """The answers of the sender with this name, one for each product."""
    for sequence in asked.sequences:
        yield DeliveriesTold(asked.ask, name, sequence, await _told(ask_node, asked, sequence))


async def _told(ask_node: Ask, asked: DeliveriesAsked, sequence: int) -> str | None:
    try:
        line = await ask_node("deliveries", **deliveries_of_job(asked.feed, asked.epoch, sequence, asked.site))
    except DownburstError as error:
        _LOG.info("the hub's question for %s %d: %s", asked.feed, sequence, error.sentence)
        return None
    answer = json.dumps(line, separators=(",", ":"))
    return answer if len(answer) <= ANSWER_BYTES else None


def _merged(product: ProductFacts, sites: Iterable[SiteFacts], told: Told) -> tuple[SiteFacts, ...]:
    """Merges sites of this node and of senders: each is served by one of them, and may have receipts of several."""
    merged = {one.site: one for one in sites}
    for answer in told.get(product.sequence, []):
        for _, theirs in answer.products:
            for one in theirs:
                known = merged.get(one.site)
                merged[one.site] = one if known is None else _both(known, one)
    return tuple(merged[site] for site in sorted(merged))


def _both(known: SiteFacts, more: SiteFacts) -> SiteFacts:
    return replace(
        known,
        subscriptions=max(known.subscriptions, more.subscriptions),
        matching=known.matching or more.matching,
        session=more.session or known.session,
        receipts=(*known.receipts, *more.receipts),
        sent_before=(*known.sent_before, *more.sent_before),
    )


_LOG = logging.getLogger("downburst.agent")
ANSWER_S = 2.0
"""The longest wait of a trace for a sender."""
ANSWER_BYTES = 800_000
"""Brokers refuse records above 1 MB."""
ANSWERS = 4_096
