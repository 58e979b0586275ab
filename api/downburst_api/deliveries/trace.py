"""The trace of a product: its state at every site with the reason, from the facts of node and ledger."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Annotated

from fastapi import APIRouter, Query

from downburst.deliveries import (
    Delivery,
    Factor,
    FoundDeliveries,
    ProductFacts,
    ProductName,
    SiteFacts,
    TcpThen,
    factors,
    may_see,
    meanings,
)
from downburst.domain.access import Caller
from downburst.domain.feeds import Feed
from downburst.domain.subscriptions import Limit
from downburst.foundation.errors import NotFound
from downburst.ledger import Transaction
from downburst.ledger.repositories.feeds import unknown_feed
from downburst_api.border.site_rights import feeds_shown
from downburst_api.deliveries.bridged import records_of
from downburst_api.deliveries.service import Context, context_of, judged
from downburst_api.deliveries.shapes import product_out
from downburst_api.deliveries.tcp import tcp_of_newest
from downburst_api.http.parameters import Asking, Hub
from downburst_api.runtime import Runtime
from downburst_contract.products import ProductTraced, Trace

router = APIRouter(prefix="/v1", tags=["deliveries"])


@router.get("/products/trace")
async def trace(  # noqa: PLR0913
    hub: Hub,
    caller: Asking,
    *,
    product: Annotated[
        str,
        Query(
            min_length=1,
            max_length=4096,
            description="A product id, FEED:SEQUENCE, the path of a received file, or at least 8 digits of a digest.",
        ),
    ],
    feed: str | None = None,
    site: str | None = None,
    before: Annotated[
        int | None, Query(ge=1, le=2**63 - 1, description="Only products older than this sequence.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=100, description="Maximum number of products.")] = 5,
) -> Trace:
    """State of a product at every site that subscribes to it, with the reason, the next action and its times."""
    feeds, limits = await hub.ledger.read(lambda tx: (_feeds(tx, caller, feed, site), _limits(tx, caller)))
    for name in meanings(product, feed=feed, feeds=feeds):
        wanted = [name.feed] if name.feed is not None else list(feeds)
        answers = [
            _within(limits, await hub.node.found_deliveries(name, feed=one, before=before, limit=limit, site=site))
            for one in wanted
            if one in feeds
        ]
        if any(answer.products for answer in answers):
            return await _answer(hub, product, name, answers, feeds=feeds, site=site, limit=limit)
    raise _unknown(product, feed, list(feeds))


async def _answer(  # noqa: PLR0913
    hub: Runtime,
    asked: str,
    name: ProductName,
    answers: Sequence[FoundDeliveries],
    *,
    feeds: dict[str, Feed],
    site: str | None,
    limit: int,
) -> Trace:
    found = [(product, told) for answer in answers for product, told in answer.products]
    found.sort(key=lambda one: (one[0].stored_at, one[0].sequence), reverse=True)
    found = found[:limit]
    listed = [product for product, _ in found]
    context, records = await hub.ledger.read(lambda tx: (context_of(tx, feeds, listed), records_of(tx, listed)))
    deliveries = [_judged(hub, context, *one, site) for one in found]
    # The tracer is asked about a single site only: a product may have hundreds.
    tcp = await tcp_of_newest(hub, chain.from_iterable(deliveries)) if site is not None else None
    products = [
        product_out(product, way, [(one, _factors(hub, context, product, one, tcp)) for one in its])
        for product, way, its in zip(listed, records, deliveries, strict=True)
    ]
    return Trace(
        asked=asked,
        answered_at=hub.clock.now(),
        read_as=name.meaning.value,
        products=products,
        next_before=_next_before(answers, products, limit),
        notes=_notes(answers),
    )


def _judged(
    hub: Runtime, context: Context, product: ProductFacts, told: Sequence[SiteFacts], site: str | None
) -> list[Delivery]:
    now = hub.clock.now()
    return [
        judged(product, facts, context.known(product, facts.site, hub.live), now)
        for facts in context.facts(product, told, site)
    ]


def _factors(
    hub: Runtime, context: Context, product: ProductFacts, delivery: Delivery, tcp: tuple[Delivery, TcpThen] | None
) -> tuple[Factor, ...]:
    leg = None if delivery.receipt is None else delivery.receipt.leg
    then = tcp[1] if tcp is not None and tcp[0] is delivery else None
    return factors(product, delivery, context.path(delivery.site, leg, hub.live, then))


def _next_before(answers: Sequence[FoundDeliveries], products: Sequence[ProductTraced], limit: int) -> int | None:
    """Begin of the next page; only within one feed, because sequences have an order there."""
    if len(answers) != 1 or answers[0].search_complete:
        return None
    return products[-1].sequence if len(products) == limit else answers[0].searched_to + 1


def _notes(answers: Sequence[FoundDeliveries]) -> list[str]:
    """Notes on the limits of the answer."""
    notes = []
    if len(answers) > 1 and not all(answer.search_complete for answer in answers):
        notes.append("older products may have this name; name the feed to page through them")
    if not all(answer.receipts_complete for answer in answers):
        notes.append("the search for receipts was cut short; a state without times may have some")
    return notes


def _unknown(product: str, feed: str | None, feeds: list[str]) -> NotFound:
    where = f"the log of {feed}" if feed else f"the logs of {len(feeds)} feeds"
    return NotFound(
        f"{where} know{'s' if feed else ''} no product {product[:200]!r}; ids are compared whole, and a log "
        "remembers what it evicted for a week; check the spelling (downburst log tail shows the newest ids)",
        code="unknown-product",
    )


def _feeds(tx: Transaction, caller: Caller, feed: str | None, site: str | None) -> dict[str, Feed]:
    """The feeds to search; neither the question nor an answer may reveal others."""
    feeds = {one.name: one for one in feeds_shown(tx, caller)}
    if feed is not None and feed not in feeds:
        raise unknown_feed(feed, list(feeds))
    if site is not None:
        tx.sites.one(site)
    return feeds


def _limits(tx: Transaction, caller: Caller) -> tuple[Limit, ...]:
    return () if caller.site is None else tx.sites.one(caller.site).limits


def _within(limits: Sequence[Limit], answer: FoundDeliveries) -> FoundDeliveries:
    """Removes products outside the limits of the caller's site: numbers could be tried one by one."""
    kept = tuple(
        (product, told)
        for product, told in answer.products
        if may_see(product.product_id, [limit for limit in limits if limit.feed == product.feed])
    )
    return replace(answer, products=kept)
