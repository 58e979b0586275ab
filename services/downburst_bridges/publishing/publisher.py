"""A publisher of WIS2 at work: the products of its feed into the outbox, and from there to its broker."""

import asyncio
import hashlib
import logging
import uuid
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import re2

from downburst.domain.bridges import PublisherNow, Standing
from downburst.domain.bridges.datasets import Dataset
from downburst.domain.bridges.exporting import ExportedProduct, Followed
from downburst.domain.bridges.publishers import Outgoing, Place, Step, Wis2Publisher
from downburst.foundation.clock import Clock
from downburst.foundation.errors import DownburstError, NotKept
from downburst.ledger import Ledger, Transaction
from downburst.supervision import attempt, keep, side_by_side
from downburst.wis2.announcing import Announcing, Ready, data_id_of, outgoing_of, record_announced, refused
from downburst.wis2.notifications import LONGEST_INLINE
from downburst.wis2.records import record_of
from downburst_bridges.publishing.broker import NotAnnounced, Outlet
from downburst_bridges.publishing.port import PublishedNode


class PublisherRunner:
    """One publisher. A product is in the outbox before the place in the feed moves, and leaves it once announced."""

    def __init__(
        self,
        publisher: Wis2Publisher,
        ledger: Ledger,
        node: PublishedNode,
        clock: Clock,
        *,
        ca_file: Path | None = None,
    ) -> None:
        self.wanted = publisher
        self._ca_file = ca_file
        self._ledger, self._node, self._clock = ledger, node, clock
        self._pattern = re2.compile(publisher.pattern)
        self._more = asyncio.Event()
        self.now = PublisherNow()

    def look(self) -> None:
        """Has the outbox looked at."""
        self._more.set()

    async def run(self) -> None:
        """Announces products until cancelled."""
        name = self.wanted.name
        client_id = f"downburst-publisher-{name}-{uuid.uuid4().hex[:12]}"
        outlet = Outlet(
            self.wanted.broker,
            client_id=client_id,
            clock=self._clock,
            changed=self._stands,
            ca_file=self._ca_file,
        )
        outlet.start()
        try:
            records = keep("bridges.record", self._announce_record, every_s=RECORD_LOOK_S)
            await side_by_side(self._follow(), self._announce(outlet), records)
        finally:
            await outlet.stop()

    def _stands(self, standing: Standing) -> None:
        self.now.standing = standing
        self._more.set()

    async def _follow(self) -> None:
        while True:
            has_more = await attempt("bridges.follow", self._look, what=self.wanted.name)
            if not has_more:
                await asyncio.sleep(LOOK_S)

    async def _look(self) -> bool:
        """Takes the next products of the feed; true if there are more."""
        publisher = self.wanted
        place = await self._ledger.read(lambda tx: tx.wis2.publishers.place(publisher.name))
        try:
            found = await self._node.follow(publisher.feed, 0 if place is None else place.sequence)
            if place is None:
                # It begins with the products to come; the others were there before anybody asked for them.
                await self._move(Place(found.epoch, found.head), [])
                return False
            if found.epoch != place.epoch:
                await self._move(Place(found.epoch, 0), [])
                return True
            return await self._take(found)
        except DownburstError as error:
            _LOG.warning("publisher %s waits: %s", publisher.name, error.sentence)
            return False

    async def _take(self, found: Followed) -> bool:
        wanted = [one for one in found.products if self._pattern.search(one.product_id)]
        latest = await self._latest(wanted)
        outgoing = []
        for product in wanted:
            data_id = data_id_of(self.wanted, product)
            one = await self._made(product, latest.get(data_id))
            outgoing.append(one)
            if one.step is not Step.REFUSED:
                latest[data_id] = one
        if found.products or outgoing:
            await self._move(Place(found.epoch, found.read_to), outgoing)
        self.now.behind = found.head - found.read_to
        return found.read_to < found.head

    async def _latest(self, wanted: Sequence[ExportedProduct]) -> dict[str, Outgoing]:
        data_ids = {data_id_of(self.wanted, one) for one in wanted}
        return await self._ledger.read(lambda tx: tx.wis2.outbox.latest(self.wanted.name, data_ids))

    async def _made(self, product: ExportedProduct, latest: Outgoing | None) -> Outgoing:
        """An error of this program is one product's end, not that of the publisher."""
        now = Announcing(str(uuid.uuid4()), self._clock.now(), latest)
        try:
            made = await attempt("bridges.announce", partial(self._out, product, now), what=product.product_id)
        except NotKept as error:
            return refused(self.wanted, product, now, error.sentence)
        return made or refused(self.wanted, product, now, "an error of this hub: its faults have it")

    async def _out(self, product: ExportedProduct, now: Announcing) -> Outgoing:
        file = await self._node.exported(product.feed, product.epoch, product.sequence)
        begin = await asyncio.to_thread(_begin, file.path)
        return outgoing_of(self.wanted, Ready(product, file.sha512, begin), now)

    async def _move(self, place: Place, outgoing: Sequence[Outgoing]) -> None:
        await self._ledger.write(partial(_stored, name=self.wanted.name, place=place, outgoing=outgoing))
        if outgoing:
            self._more.set()

    async def _announce_record(self) -> None:
        """Global Brokers drop notifications of datasets without a record, and catalogues forget old ones."""
        if await self._ledger.write(partial(record_due, publisher=self.wanted)):
            self._more.set()

    async def _announce(self, outlet: Outlet) -> None:
        while True:
            await outlet.is_connected()
            self._more.clear()
            waiting = await self._ledger.read(lambda tx: tx.wis2.outbox.waiting(self.wanted.name))
            done = await asyncio.gather(*(self._send(outlet, one) for one in waiting))
            announced = [one for one, is_announced in zip(waiting, done, strict=True) if is_announced]
            if announced:
                await self._ledger.write(partial(_announced, outgoing=announced))
            if not waiting or len(announced) < len(waiting):
                with suppress(TimeoutError):
                    async with asyncio.timeout(AGAIN_S):
                        await self._more.wait()

    async def _send(self, outlet: Outlet, outgoing: Outgoing) -> bool:
        try:
            await outlet.announce(outgoing.topic, outgoing.payload)
        except NotAnnounced as error:
            self.now.refusal = error.sentence
            return False
        self.now.refusal = ""
        return True


def _begin(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(LONGEST_INLINE)


def record_due(tx: Transaction, *, publisher: Wis2Publisher) -> bool:
    """Puts the dataset's record into the outbox, if it was not announced today, or is another one now."""
    latest, now = tx.wis2.outbox.latest_record(publisher.name), tx.clock.now()
    if publisher.dataset is None:
        return False
    if latest is not None and latest.made_at.date() == now.date() and _is_of(publisher, publisher.dataset, latest):
        return False
    record = record_of(publisher, publisher.dataset, now)
    announcing = Announcing(str(uuid.uuid4()), now, None)
    tx.wis2.outbox.put([record_announced(publisher, record, latest, announcing)])
    return True


def _is_of(publisher: Wis2Publisher, dataset: Dataset, latest: Outgoing) -> bool:
    record = record_of(publisher, dataset, latest.made_at)
    return hashlib.sha512(record).hexdigest() == latest.digest


def _stored(tx: Transaction, *, name: str, place: Place, outgoing: Sequence[Outgoing]) -> None:
    tx.wis2.outbox.put(outgoing)
    tx.wis2.publishers.move(name, place)


def _announced(tx: Transaction, *, outgoing: Sequence[Outgoing]) -> None:
    for one in outgoing:
        tx.wis2.outbox.settle(one, Step.ANNOUNCED)


_LOG = logging.getLogger(__name__)
LOOK_S = 1.0
RECORD_LOOK_S = 60.0
AGAIN_S = 5.0
