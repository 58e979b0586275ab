"""Routes that search a feed's log: products by id and time, matches of a pattern, sizes and silences."""

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query

from downburst.deliveries.browsing import Browse
from downburst.domain.access import Caller
from downburst.domain.subscriptions import IdFilter, Limit
from downburst.foundation.moments import moment
from downburst.ledger import Transaction
from downburst_api.border.site_rights import check_feed_shown, check_pattern
from downburst_api.http.pagination import Cursor, Documented, read_cursor, write_cursor
from downburst_api.http.parameters import Asking, Hub
from downburst_api.runtime import Runtime
from downburst_contract import products as shapes
from downburst_contract.base import members

router = APIRouter(prefix="/v1", tags=["deliveries"])


@router.get("/products")
async def list_products(  # noqa: PLR0913
    hub: Hub,
    caller: Asking,
    page: Documented,
    *,
    feed: str,
    contains: Annotated[str | None, Query(max_length=4096, description="A part of the id, as it is.")] = None,
    pattern: Annotated[str | None, Query(max_length=4096, description="A subscription pattern.")] = None,
    since: Annotated[str, Query(max_length=64, description="RFC 3339, or how long ago: `2h`.")] = "1h",
    until: Annotated[str | None, Query(max_length=64, description="The same; now if left out.")] = None,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> shapes.ProductPage:
    """Products of a feed that match, of a period, newest first; `next` leads to the next page."""
    limits = await _limits(hub, caller, feed)
    now = hub.clock.now()
    wanted = Browse(
        feed,
        moment(since, now),
        None if until is None else moment(until, now),
        pattern=pattern,
        contains=contains,
        before=None if cursor is None else read_cursor(cursor, int)[0],
        limit=limit,
        limits=limits,
    )
    found = await hub.node.browse(wanted)
    items = [
        shapes.ProductListed(**members(product, without=("epoch", "feed_class"), size="size_bytes"))
        for product in found.products
    ]
    following = None if found.complete else write_cursor(found.searched_to)
    return shapes.ProductPage(items=items, next=page.lead_to(following))


@router.post("/feeds/{feed}/pattern-test")
async def test_pattern(hub: Hub, caller: Asking, feed: str, wanted: shapes.PatternTest) -> shapes.PatternTested:
    """Effect of a pattern on the last hours: counts, and the newest ids that match and do not."""
    limits = await _limits(hub, caller, feed)
    await check_pattern(hub.node, "pattern", wanted.pattern)
    if wanted.not_pattern is not None:
        await check_pattern(hub.node, "not_pattern", wanted.not_pattern)
    since = hub.clock.now() - timedelta(hours=wanted.hours)
    ids = IdFilter(wanted.pattern, wanted.not_pattern)
    asked = Browse(feed, since, **asdict(ids), limit=IDS_LISTED, count=True, limits=limits)
    found = await hub.node.browse(asked)
    return shapes.PatternTested(
        feed=feed,
        since=since,
        products=found.shown,
        matched=found.matched,
        matched_bytes=found.matched_bytes,
        matched_ids=[product.product_id for product in found.products],
        other_ids=list(found.others),
        complete=found.complete,
    )


@router.get("/feeds/{feed}/distribution")
async def show_distribution(
    hub: Hub,
    caller: Asking,
    feed: str,
    hours: Annotated[float, Query(gt=0, le=24, description="Length of the period.")] = 1,
) -> shapes.Distribution:
    """Product sizes of a feed and gaps between its products, from its log."""
    limits = await _limits(hub, caller, feed)
    since = hub.clock.now() - timedelta(hours=hours)
    found = await hub.node.browse(Browse(feed, since, limit=1, count=True, limits=limits))
    sizes, silences = sorted(found.sizes.items()), sorted(found.silences.items())
    return shapes.Distribution(
        feed=feed,
        since=since,
        products=found.matched,
        bytes=found.matched_bytes,
        sizes=[shapes.SizeBin(up_to_bytes=2**power, products=count) for power, count in sizes],
        silences=[shapes.SilenceBin(up_to_ms=2**power, times=count) for power, count in silences],
        complete=found.complete,
    )


async def _limits(hub: Runtime, caller: Caller, feed: str) -> tuple[Limit, ...]:
    """The caller's limits in the feed; a feed outside its site's rights is answered as one that does not exist."""
    if caller.site is None:
        await hub.feed(feed)
        return ()
    site = caller.site

    def look(tx: Transaction) -> tuple[Limit, ...]:
        check_feed_shown(tx, caller, feed)
        return tx.sites.one(site).limits_of(feed)

    return await hub.ledger.read(look)


IDS_LISTED = 20
