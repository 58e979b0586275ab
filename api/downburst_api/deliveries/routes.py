"""Sites' losses: the deliveries that ended without the product, as an exact list."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query

from downburst.deliveries import ProductFacts
from downburst.domain.receipts import ProductException
from downburst.foundation.moments import moment
from downburst.ledger import Transaction
from downburst.ledger.repositories.exceptions import ExceptionsPage, Lost
from downburst_api.border.site_rights import check_feed_shown, feeds_shown
from downburst_api.http.pagination import Documented
from downburst_api.http.parameters import Asking, Hub
from downburst_api.runtime import Runtime
from downburst_contract.products import LostDelivery, LostPage

router = APIRouter(prefix="/v1", tags=["deliveries"])


@router.get("/deliveries")
async def lost_deliveries(  # noqa: PLR0913
    hub: Hub,
    caller: Asking,
    answer: Documented,
    *,
    state: Annotated[
        list[Literal["expired", "rejected"]] | None, Query(description="One or both; both if none.")
    ] = None,
    site: str | None = None,
    feed: str | None = None,
    begin: Annotated[str | None, Query(alias="from", description="RFC 3339, or how long ago: 2h.")] = None,
    end: Annotated[str | None, Query(alias="to")] = None,
    cursor: Annotated[str | None, Query(max_length=500, description="`next` of the previous page.")] = None,
    after: Annotated[str | None, Query(max_length=500, deprecated=True, description="As above.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> LostPage:
    """Products that a site will not get, newest first: rejected there, or expired before delivery."""
    now = hub.clock.now()
    lost = Lost(
        outcomes=tuple(state or ("expired", "rejected")),
        site=site,
        feed=feed,
        begin=None if begin is None else moment(begin, now),
        end=None if end is None else moment(end, now),
    )

    def page(tx: Transaction) -> ExceptionsPage:
        if feed is not None:
            check_feed_shown(tx, caller, feed)
        if site is not None:
            tx.sites.one(site)
        return tx.measured.exceptions.page(lost, after=cursor or after, limit=limit)

    found = await hub.ledger.read(page)
    shown = {one.name for one in await hub.ledger.read(lambda tx: feeds_shown(tx, caller))}
    described = await _described(hub, found, shown)
    items = [_item(one, described) for one in found.items]
    return LostPage(items=items, next=answer.lead_to(found.next))


Key = tuple[str, str, int]


async def _described(hub: Runtime, page: ExceptionsPage, feeds: set[str]) -> dict[Key, ProductFacts]:
    """The products' data from these feeds' logs, if still there; nothing while the node is away."""
    if not hub.node.running:
        return {}
    wanted: dict[tuple[str, str], set[int]] = {}
    for one in page.items:
        wanted.setdefault((one.feed, one.epoch), set()).add(one.sequence)
    described: dict[Key, ProductFacts] = {}
    for (feed, epoch), sequences in wanted.items():
        if feed in feeds:
            for product in await hub.node.products(feed, epoch, sorted(sequences)):
                described[product.feed, product.epoch, product.sequence] = product
    return described


def _item(one: ProductException, described: dict[Key, ProductFacts]) -> LostDelivery:
    product = described.get((one.feed, one.epoch, one.sequence))
    return LostDelivery(
        site=one.site,
        feed=one.feed,
        epoch=one.epoch,
        sequence=one.sequence,
        state=one.outcome,
        at=one.at,
        product_id=None if product is None else product.product_id,
        size=None if product is None else product.size_bytes,
        stored_at=None if product is None else product.stored_at,
        kept=product is not None and product.kept,
    )
