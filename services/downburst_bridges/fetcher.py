"""Downloads in groups: one line to the node for many products, and one end for each of them.

The node ends each product by itself. What ends a group before that may be the fault of one product: then the others
are fetched singly.
"""

import logging
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from downburst.domain.bridges import FetchEnd, Notice, WantedProduct, Wis2Source
from downburst.domain.bridges.fetching import GROUP_PRODUCTS
from downburst.domain.bridges.origins import login_for
from downburst.domain.products import Acknowledgement, Product
from downburst.foundation.errors import BadInput, DownburstError, NotFetched
from downburst.supervision import attempt, attempt_now, start
from downburst.wis2.notifications import Notification
from downburst.wis2.properties import properties_of
from downburst.wis2.topics import Topic
from downburst_bridges.intake import notification_of, topic_of
from downburst_bridges.port import ProductNode

Ended = Callable[[Notice, FetchEnd], None]
Fetched = tuple[Notice, WantedProduct]


class Fetcher:
    """Fetches the products of one source; `ended` gets the end of each, in any order."""

    def __init__(self, source: Wis2Source, node: ProductNode, spool: Path, ended: Ended) -> None:
        self._source, self._node, self._spool, self._ended = source, node, spool, ended

    def begin(self, notices: Iterable[Notice]) -> None:
        """Begins downloads, and stores what is within notifications."""
        group: list[Fetched] = []
        for notice in notices:
            try:
                read = attempt_now("bridges.fetch", partial(self._read, notice), what=notice.data_id)
            except DownburstError as refusal:
                self._ended(notice, FetchEnd(0, refusal=refusal))
                continue
            if isinstance(read, WantedProduct):
                group.append((notice, read))
            elif read is not None:
                start("bridges.fetch", self._ingest(notice, read))
            else:
                self._ended(notice, FetchEnd(0, refusal=_fault()))
        for first in range(0, len(group), GROUP_PRODUCTS):
            start("bridges.fetch", self._fetch(group[first : first + GROUP_PRODUCTS]))

    async def _fetch(self, group: Sequence[Fetched]) -> None:
        left = dict(enumerate(group))

        def ended(ends: Sequence[FetchEnd]) -> None:
            for end in ends:
                if (found := left.pop(end.place, None)) is not None:
                    self._ended(found[0], end)

        refusal: DownburstError = _fault()
        try:
            fetch = partial(self._node.fetch, [wanted for _, wanted in group], ended)
            await attempt("bridges.fetch", fetch, what=f"a group with {group[0][0].data_id}")
        except DownburstError as error:
            refusal = error
        if is_of_product(refusal) and len(group) > 1:
            for one in left.values():
                start("bridges.fetch", self._fetch([one]))
            return
        if left and not is_of_product(refusal):
            _LOG.warning("%d products of %s are tried again: %s", len(left), self._source.name, refusal.sentence)
        for place, (notice, _) in left.items():
            self._ended(notice, FetchEnd(place, refusal=refusal))

    async def _ingest(self, notice: Notice, found: "_Inline") -> None:
        refusal: DownburstError = _fault()
        try:
            stored = await attempt("bridges.fetch", partial(self._stored, found), what=notice.data_id)
        except DownburstError as error:
            stored, refusal = None, error
        if stored is None:
            self._ended(notice, FetchEnd(0, refusal=refusal))
            return
        sequence = stored.sequence if stored.sequence is not None else stored.duplicate_of
        self._ended(notice, FetchEnd(0, sequence, stored.size_bytes))

    def _read(self, notice: Notice) -> "WantedProduct | _Inline":
        topic, notification = topic_of(notice.topic), notification_of(notice.payload)
        product = self._product(topic, notification, notice.payload)
        if notification.inline is not None:
            return _Inline(notification.inline, product)
        digest = notification.integrity
        return WantedProduct(
            notification.link.url,
            product,
            notification.link.length_bytes,
            (digest.method, digest.digest.hex()) if digest else None,
            self._source.may_ask_private,
            login_for(notification.link.url, self._source.logins) if self._source.logins else None,
        )

    def _product(self, topic: Topic, notification: Notification, payload: bytes) -> Product:
        return Product(
            self._source.feed,
            notification.data_id,
            created_at=notification.published_at,
            origin=topic.centre,
            properties=properties_of(topic, payload),
        )

    async def _stored(self, found: "_Inline") -> Acknowledgement:
        path = self._spool / secrets.token_hex(8)
        path.write_bytes(found.content)
        return await self._node.ingest(path, found.product)


@dataclass(frozen=True, slots=True)
class _Inline:
    """A product whose bytes are within its notification."""

    content: bytes
    product: Product


def is_of_product(refusal: DownburstError) -> bool:
    """False: nothing is known about the product, as the node is away or its disk is full."""
    return isinstance(refusal, NotFetched | BadInput)


def _fault() -> NotFetched:
    return NotFetched("an error of this hub: its faults have it")


_LOG = logging.getLogger(__name__)
