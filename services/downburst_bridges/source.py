"""A source of WIS2 at work: notifications from its brokers, and their products into its feed."""

import asyncio
import hashlib
from collections.abc import Sequence
from functools import partial

from downburst.domain.bridges import Broker, Hole, SourceNow, Standing, Wis2Source
from downburst.foundation.clock import to_us
from downburst.ledger import Ledger
from downburst.supervision import keep, side_by_side, start
from downburst_bridges.brokers import Delivered, Session, Subscription
from downburst_bridges.downloads import Downloads, OfHub
from downburst_bridges.holes import Found, HoleWatch
from downburst_bridges.intake import Heard, Taken, take
from downburst_bridges.port import ProductNode
from downburst_bridges.replay import Replayer
from downburst_bridges.verdicts import Verdict


class SourceRunner:
    """One source. A notification is stored before the broker hears of it; its product comes after that."""

    def __init__(self, source: Wis2Source, ledger: Ledger, node: ProductNode, hub: OfHub) -> None:
        self.wanted = source
        self._ledger, self._hub = ledger, hub
        self._subscriptions: dict[str, Subscription] = {}
        self._holes = HoleWatch(source.name)
        self._replayer = Replayer(source, ledger, hub, self._took)
        self.now = SourceNow()
        self._downloads = Downloads(source, ledger, node, hub, self.now)

    def look(self) -> None:
        """Has the ledger looked at, as failed products may be tried once more."""
        self._downloads.look()

    async def run(self) -> None:
        """Takes products until cancelled; those that were announced and not fetched are fetched by the next run."""
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
            await side_by_side(self._downloads.run(), self._replayer.run(), *listening)
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
            start("bridges.hole", keep("bridges.hole", partial(self._record, found.hole, found.filled_by)))

    async def _record(self, hole: Hole, filled_by: str | None) -> None:
        await self._ledger.write(lambda tx: tx.wis2.holes.add(hole, filled_by=filled_by))
        self._replayer.look()

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
        self._took(taken)
        for broker, published_at in taken.readable:
            self.now.paces[broker].heard(published_at, delivered[-1].at)
            self._note(self._holes.heard(broker, published_at, self._hub.clock.now()))

    def _took(self, taken: Taken) -> None:
        self.now.passed_over.extend(one for one in taken.passed_over if one.verdict != Verdict.COPY)
        if taken.notices or taken.others:
            self._downloads.add(taken)


TOGETHER = 200
