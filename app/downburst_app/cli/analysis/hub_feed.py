"""A feed's own last days, asked of its hub: the products in its log, and their deliveries to sites."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel, ValidationError

from downburst.foundation.clock import to_us
from downburst.foundation.errors import Failure
from downburst.recordings.recording import ProductPiece
from downburst_analyze.transfers.deliveries import Delivery
from downburst_app.cli.analysis.terminal import Share
from downburst_app.cli.client import given
from downburst_client import Hub
from downburst_client.call import path_of
from downburst_contract import products as shapes
from downburst_contract.sites import Path, SiteWhole

S = TypeVar("S", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class SitePath:
    """The state of the path to a site at present."""

    round_trip_ms: float | None
    connections: int | None


class HubFeed:
    """One feed of a hub, through the API."""

    def __init__(self, hub: Hub, feed: str, *, days: float) -> None:
        self._hub = hub
        self._feed = feed
        self._since = f"{days:.3f}d"
        self._paths: dict[str, SitePath] = {}

    def products(self, most: int) -> list[shapes.ProductListed]:
        """The products of the last days, oldest first; of more than `most` the newest."""
        found: list[shapes.ProductListed] = []
        cursor: str | None = None
        for _ in range(MOST_REQUESTS):
            wanted = given(feed=self._feed, since=self._since, limit=PAGE, cursor=cursor)
            page = self._asked(shapes.ProductPage, "v1", "products", params=wanted)
            found += page.items
            cursor = page.next
            if cursor is None or len(found) >= most:
                break
        return found[:most][::-1]

    def deliveries(self, products: list[shapes.ProductListed], share: Share) -> list[Delivery]:
        """The deliveries of some products whose stamps are complete, in order of their start."""
        found: list[Delivery] = []
        for number, product in enumerate(products, start=1):
            found += self._of(product)
            share(number / len(products))
        return sorted(found, key=lambda one: one.start_us)

    def _of(self, product: shapes.ProductListed) -> Iterator[Delivery]:
        wanted = {"product": f"{self._feed}:{product.sequence}", "feed": self._feed, "limit": 1}
        traced = self._asked(shapes.Trace, "v1", "products", "trace", params=wanted)
        for delivery in traced.products[0].deliveries if traced.products else ():
            times = None if delivery.receipt is None else _times(delivery.receipt)
            if times is None:
                continue
            path = self._path(delivery.site)
            yield Delivery(
                feed=self._feed,
                site=delivery.site,
                start_us=to_us(times[0]),
                duration_s=(times[1] - times[0]).total_seconds(),
                size_bytes=product.size,
                connections=path.connections,
                round_trip_ms=path.round_trip_ms,
            )

    def _path(self, site: str) -> SitePath:
        """The hub keeps no state of a path by product; so that of now stands for all."""
        if site not in self._paths:
            session = self._asked(SiteWhole, "v1", "sites", site).session
            path = self._asked(Path, "v1", "sites", site, "path")
            more = session.data_connections
            self._paths[site] = SitePath(path.round_trip_ms, None if more is None else 1 + more.open)
        return self._paths[site]

    def _asked(self, shape: type[S], *path: str, **request: Any) -> S:
        try:
            return shape.model_validate_json(self._hub.request("GET", path_of(*path), **request).content)
        except ValidationError as error:
            raise Failure(
                f"the hub's answer to /{'/'.join(path)} has another form ({error.error_count()} differences); "
                "use the command line of the hub's version"
            ) from None


def piece(products: list[shapes.ProductListed]) -> ProductPiece:
    """Products as a recording, in order of the moment at which the hub stored them."""
    pairs = sorted((to_us(one.stored_at), one.size) for one in products)
    return ProductPiece(
        np.array([at_us for at_us, _ in pairs], dtype=np.int64),
        np.array([size for _, size in pairs], dtype=np.float64),
    )


def _times(receipt: shapes.Receipt) -> tuple[datetime, datetime] | None:
    """First byte at the hub and last byte at the site, both on the hub's clock; None if one is not known."""
    begin, end, offset_us = receipt.first_byte_sent_at, receipt.last_byte_at, receipt.clock_offset_us
    if begin is None or end is None or offset_us is None or abs(offset_us) > MOST_OFFSET_US:
        return None
    end -= timedelta(microseconds=offset_us)
    return (begin, end) if end > begin else None


PAGE = 200
MOST_REQUESTS = 10_000
MOST_OFFSET_US = 366 * 86_400_000_000
"""Of a clock; beyond a year its stamps mean nothing."""
