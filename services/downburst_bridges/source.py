"""A source of WIS2 at work: notifications from its brokers, and their products into its feed."""

import asyncio
import hashlib
import logging
import secrets
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date
from functools import partial
from pathlib import Path

from downburst.domain.bridges import Broker, CentreDay, Notice, SourceNow, Standing, State, WantedProduct, Wis2Source
from downburst.domain.products import Acknowledgement, Product
from downburst.foundation.clock import Clock, to_us
from downburst.foundation.errors import BadInput, DigestMismatch, DownburstError, NotFetched
from downburst.ledger import Ledger, Transaction
from downburst.supervision import attempt, keep, side_by_side, start
from downburst.wis2.notifications import Notification, read_notification
from downburst.wis2.properties import properties_of
from downburst.wis2.topics import Topic, read_topic
from downburst_bridges.brokers import Delivered, Session, Subscription
from downburst_bridges.holes import Found, HoleWatch
from downburst_bridges.intake import Heard, release, take
from downburst_bridges.port import ProductNode
from downburst_bridges.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class OfHub:
    """Facts about the hub that a source needs."""

    spool: Path
    """A directory for bytes within notifications."""
    client_id: str
    """The begin of its names at brokers, which keep sessions by them."""
    clock: Clock
    ca_file: Path | None = None
    """Authorities of brokers, besides those of the system."""


class SourceRunner:
    """One source. A notification is stored before the broker hears of it; its product comes after that."""

    def __init__(self, source: Wis2Source, ledger: Ledger, node: ProductNode, hub: OfHub) -> None:
        self.wanted = source
        self._ledger, self._node, self._hub = ledger, node, hub
        self._subscriptions: dict[str, Subscription] = {}
        self._more = asyncio.Event()
        self._at_work: dict[str, str] = {}
        """The centres of the products that are being fetched, by data id."""
        self._ended: list[str] = []
        """Those whose end is recorded. A read of the ledger that has begun may still show them as coming."""
        self._released_on: date | None = None
        self._holes = HoleWatch(source.name)
        self.now = SourceNow()

    def look(self) -> None:
        """Has the ledger looked at, as failed products may be tried once more."""
        self._more.set()

    async def run(self) -> None:
        """Takes products until cancelled; those that were announced and not fetched are fetched by the next run."""
        self._hub.spool.mkdir(parents=True, exist_ok=True)
        known_to = await self._ledger.read(lambda tx: tx.wis2.notices.known_to(self.wanted.name))
        self._holes = HoleWatch(self.wanted.name, known_to)
        for broker in self.wanted.brokers:
            self._subscriptions[broker.url] = Subscription(
                broker,
                self._session(broker),
                clock=self._hub.clock,
                changed=partial(self._changed, broker.url),
                ca_file=self._hub.ca_file,
            )
        for subscription in self._subscriptions.values():
            subscription.start()
        listening = (self._listen(url, one) for url, one in self._subscriptions.items())
        try:
            await side_by_side(self._fetch_all(), *listening)
        finally:
            await asyncio.gather(*(one.stop() for one in self._subscriptions.values()))

    def _session(self, broker: Broker) -> Session:
        """That of a source for as long as it exists; other hubs have other ones, also by the same names."""
        source = self.wanted
        made_us = 0 if source.created_at is None else to_us(source.created_at)
        key = hashlib.sha256(f"{made_us} {broker.url} {broker.user}".encode()).hexdigest()[:12]
        return Session(f"{self._hub.client_id}-{source.name}-{key}", source.filters, source.former_filters)

    def _changed(self, url: str, standing: Standing) -> None:
        self.now.standings[url] = standing
        self._note(self._holes.changed(url, standing, self._hub.clock.now()))

    def _note(self, found: Found | None) -> None:
        if found is not None:
            hole, is_filled = found.hole, found.filled_by is not None
            work = partial(self._ledger.write, lambda tx: tx.wis2.holes.add(hole, filled=is_filled))
            start("bridges.hole", keep("bridges.hole", work))

    async def _listen(self, url: str, subscription: Subscription) -> None:
        while True:
            delivered = await subscription.next(TOGETHER)
            await keep("bridges.intake", partial(self._take, url, subscription, delivered))

    async def _take(self, url: str, subscription: Subscription, delivered: Sequence[Delivered]) -> None:
        """Those that are not stored are tried again here, and come again with the next connection."""
        for one in delivered:
            self.now.paces[url].count(one.at)
        heard = [Heard(url, one.topic, one.payload, one.at) for one in delivered]
        judge = partial(take, source=self.wanted, heard=heard)
        taken = await self._ledger.write(judge)
        for one in delivered:
            subscription.acknowledge(one)
        self.now.passed_over.extend(one for one in taken.passed_over if one.verdict != Verdict.COPY)
        for broker, published_at in taken.readable:
            self.now.paces[broker].heard(published_at, delivered[-1].at)
            self._note(self._holes.heard(broker, published_at, self._hub.clock.now()))
        if taken.notices:
            self._more.set()

    async def _fetch_all(self) -> None:
        while True:
            self._more.clear()
            while self._ended:
                del self._at_work[self._ended.pop()]
            await self._release()
            for notice in await self._ledger.read(self._next):
                self._at_work[notice.data_id] = notice.centre
                start("bridges.fetch", self._fetch_one(notice))
            with suppress(TimeoutError):
                async with asyncio.timeout(AGAIN_S):
                    await self._more.wait()

    async def _release(self) -> None:
        """With each day centres have bytes for products that wait."""
        today = self._hub.clock.now().astimezone(UTC).date()
        if today != self._released_on and await self._ledger.write(partial(release, source=self.wanted)) == 0:
            self._released_on = today

    def _next(self, tx: Transaction) -> list[Notice]:
        """The products to begin with. A centre whose servers are slow has no more than its share of downloads."""
        found = dict[str, Notice]()
        busy = Counter(self._at_work.values())
        passed_by = True
        while passed_by and len(self._at_work) + len(found) < AT_ONCE:
            full = {centre for centre, count in busy.items() if count >= AT_ONCE_OF_CENTRE}
            coming = tx.wis2.notices.coming(self.wanted.name, AT_ONCE * 2, without=full)
            # Those of centres that get full by these may hide others, which the next look finds.
            passed_by = False
            for one in coming:
                if one.data_id in self._at_work or one.data_id in found:
                    continue
                if busy[one.centre] >= AT_ONCE_OF_CENTRE:
                    passed_by = True
                elif len(self._at_work) + len(found) < AT_ONCE:
                    found[one.data_id] = one
                    busy[one.centre] += 1
        return list(found.values())

    async def _fetch_one(self, notice: Notice) -> None:
        """A refusal that is none of the product's, as that of a node that is away, is tried again later."""
        try:
            if not await attempt("bridges.fetch", partial(self._fetch, notice), what=notice.data_id):
                reason = "an error of this hub: its faults have it"
                await self._ledger.write(partial(_fail, notice=notice, reason=reason))
        except DownburstError as error:
            _LOG.warning("%s of %s is tried again: %s", notice.data_id, notice.source, error.sentence)
            await asyncio.sleep(AGAIN_S)
        finally:
            self._ended.append(notice.data_id)
            self._more.set()

    async def _fetch(self, notice: Notice) -> bool:
        """True once its end is recorded."""
        try:
            work = partial(_hold, notice=notice, stored=await self._stored(notice))
            self._count(notice)
        except (NotFetched, BadInput) as error:
            self.now.centres[notice.centre].errors += 1
            self.now.centres[notice.centre].differing += isinstance(error, DigestMismatch)
            work = partial(_fail, notice=notice, reason=error.sentence)
        await self._ledger.write(work)
        return True

    def _count(self, notice: Notice) -> None:
        now, centre = self._hub.clock.now(), self.now.centres[notice.centre]
        centre.downloaded += 1
        centre.last_at = now
        self.now.latencies.add((now - notice.last.published_at).total_seconds())

    async def _stored(self, notice: Notice) -> Acknowledgement:
        topic, notification = read_topic(notice.topic), read_notification(notice.payload)
        product = self._product(topic, notification, notice.payload)
        if notification.inline is not None:
            return await self._node.ingest(self._spooled(notification.inline), product)
        digest = notification.integrity
        wanted = WantedProduct(
            notification.link.url,
            product,
            notification.link.length_bytes,
            (digest.method, digest.digest.hex()) if digest else None,
            self.wanted.may_ask_private,
        )
        return (await self._node.fetch(wanted)).acknowledgement

    def _product(self, topic: Topic, notification: Notification, payload: bytes) -> Product:
        return Product(
            self.wanted.feed,
            notification.data_id,
            created_at=notification.published_at,
            origin=topic.centre,
            properties=properties_of(topic, payload),
        )

    def _spooled(self, content: bytes) -> Path:
        path = self._hub.spool / secrets.token_hex(8)
        path.write_bytes(content)
        return path


def _hold(tx: Transaction, *, notice: Notice, stored: Acknowledgement) -> None:
    sequence = stored.sequence if stored.sequence is not None else stored.duplicate_of
    tx.wis2.notices.settle(notice, State.HELD, sequence=sequence)
    if notice.announced_bytes == 0:
        # Without a length in the notification, its centre's account has nothing of it yet.
        tx.wis2.days.add([_day(tx, notice, size_bytes=stored.size_bytes)])


def _fail(tx: Transaction, *, notice: Notice, reason: str) -> None:
    if tx.wis2.notices.settle(notice, State.FAILED, reason=reason):
        tx.wis2.days.add([_day(tx, notice, failed=1)])


def _day(tx: Transaction, notice: Notice, *, size_bytes: int = 0, failed: int = 0) -> CentreDay:
    today = tx.clock.now().astimezone(UTC).date()
    return CentreDay(notice.source, notice.centre, today, bytes=size_bytes, failed=failed)


_LOG = logging.getLogger(__name__)
TOGETHER = 200
AT_ONCE = 32
AT_ONCE_OF_CENTRE = 16
AGAIN_S = 5.0
"""Products that the node could not store for a reason of its own are tried again."""
