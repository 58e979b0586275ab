"""Where is this product, who has it, and why not: the node's facts and the ledger's, judged for every site."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from downburst.access import Caller
from downburst.deliveries import (
    Delivery,
    Known,
    ProductFacts,
    ProductName,
    SiteFacts,
    Whereabouts,
    deliver,
    may_see,
    meanings,
)
from downburst.errors import NotFound
from downburst.events import ActionFailed
from downburst.ledger import Book
from downburst.ledger.feeds import unknown_feed
from downburst.live import LiveState, SiteSession
from downburst.model import Feed, ProductException, Settled, Site, Subscription
from downburst.rights import Limit
from downburst_api.deliveries_out import product_out
from downburst_api.guard import caller_of
from downburst_api.rights import feeds_shown
from downburst_api.runtime import Runtime, runtime_of

router = APIRouter(prefix="/v1", tags=["deliveries"])
Hub = Annotated[Runtime, Depends(runtime_of)]
Asking = Annotated[Caller, Depends(caller_of)]


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
) -> dict[str, Any]:
    """State of a product at every site that subscribes to it, with the reason, the next action and its times."""
    feeds, limits = await hub.ledger.read(lambda book: (_feeds(book, caller, feed, site), _limits(book, caller)))
    for name in meanings(product, feed=feed, feeds=feeds):
        wanted = [name.feed] if name.feed is not None else list(feeds)
        answers = [
            _within(limits, await hub.node.whereabouts(name, feed=one, before=before, limit=limit, site=site))
            for one in wanted
            if one in feeds
        ]
        if any(answer.products for answer in answers):
            return await _answer(hub, product, name, answers, feeds=feeds, site=site, limit=limit)
    raise _unknown(product, feed, list(feeds))


@dataclass(frozen=True, slots=True)
class _Context:
    """What the ledger knows around some products."""

    feeds: dict[str, Feed]
    sites: dict[str, Site]
    enrolled: frozenset[str]
    subscriptions: Sequence[Subscription]
    settled: Sequence[Settled]
    exceptions: Sequence[ProductException]
    objectives_ms: Mapping[tuple[str, str], float]
    """Of feeds at single sites."""

    def known(self, product: ProductFacts, site: str, live: LiveState) -> Known:
        """About one site and one product."""
        registered = self.sites.get(site)
        session = live.session(site)
        connected = session is not None and session.connected
        frontiers = [
            report
            for report in self.settled
            if (report.feed, report.epoch, report.site) == (product.feed, product.epoch, site)
        ]
        return Known(
            allowed=registered is not None and registered.may_take(product.feed),
            allow=() if registered is None else registered.allow,
            limits=() if registered is None else registered.limits_of(product.feed),
            enrolled=site in self.enrolled,
            subscriptions=tuple(self._wishes(product.feed, site)),
            exception=next((one for one in self.exceptions if _is_of(one, product, site)), None),
            settled_to=max((report.settled_to for report in frontiers), default=None),
            connected=connected,
            last_seen_at=_last_seen(live, site, frontiers),
            away_reason=None if session is None or connected else session.reason,
            trouble=_trouble(session, product.feed),
            action_failed=_action_failed(session, product.feed),
            retention_hours=self.feeds[product.feed].retention_hours,
            objective_ms=self.objectives_ms.get((product.feed, site), self.feeds[product.feed].objective_ms),
        )

    def facts(self, product: ProductFacts, told: Iterable[SiteFacts], site: str | None) -> list[SiteFacts]:
        """What the node told, and the sites it can't tell of: those without a right, and one that was asked for."""
        facts = {one.site: one for one in told}
        for name, registered in self.sites.items():
            wishes = self._wishes(product.feed, name)
            refused = bool(wishes) and not registered.may_take(product.feed)
            if name not in facts and site in (None, name) and (refused or site == name):
                facts[name] = SiteFacts(name, active=registered.active)
        return [facts[name] for name in sorted(facts)]

    def _wishes(self, feed: str, site: str) -> list[Subscription]:
        return [wish for wish in self.subscriptions if (wish.feed, wish.site) == (feed, site)]


async def _answer(  # noqa: PLR0913
    hub: Runtime,
    asked: str,
    name: ProductName,
    answers: Sequence[Whereabouts],
    *,
    feeds: dict[str, Feed],
    site: str | None,
    limit: int,
) -> dict[str, Any]:
    found = [(product, told) for answer in answers for product, told in answer.products]
    found.sort(key=lambda one: (one[0].stored_at, one[0].sequence), reverse=True)
    found = found[:limit]
    context = await hub.ledger.read(lambda book: _context(book, feeds, [product for product, _ in found]))
    now = hub.clock.now()
    products = []
    for product, told in found:
        deliveries = [
            _judged(product, facts, context.known(product, facts.site, hub.live), now)
            for facts in context.facts(product, told, site)
        ]
        products.append(product_out(product, deliveries))
    return {
        "asked": asked,
        "read_as": name.meaning.value,
        "products": products,
        "next_before": _next_before(answers, products, limit),
        "notes": _notes(answers),
    }


def _judged(product: ProductFacts, facts: SiteFacts, known: Known, now: datetime) -> Delivery:
    # A site that was refused the feed has no subscriptions at the node, but wishes in the ledger.
    if known.subscriptions and not facts.subscriptions and known.allowed:
        facts = replace(facts, subscriptions=len(known.subscriptions))
    return deliver(product, facts, known, now=now)


def _next_before(answers: Sequence[Whereabouts], products: Sequence[dict[str, Any]], limit: int) -> int | None:
    """Where the next page begins; only within one feed, whose sequences have an order."""
    if len(answers) != 1 or answers[0].search_complete:
        return None
    return int(products[-1]["sequence"]) if len(products) == limit else answers[0].searched_to + 1


def _notes(answers: Sequence[Whereabouts]) -> list[str]:
    """What a reader must know about the limits of the answer."""
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


def _feeds(book: Book, caller: Caller, feed: str | None, site: str | None) -> dict[str, Feed]:
    """The feeds that are looked through; of others neither the caller's question nor an answer may tell."""
    feeds = {one.name: one for one in feeds_shown(book, caller)}
    if feed is not None and feed not in feeds:
        raise unknown_feed(feed, list(feeds))
    if site is not None:
        book.sites.one(site)
    return feeds


def _limits(book: Book, caller: Caller) -> tuple[Limit, ...]:
    return () if caller.site is None else book.sites.one(caller.site).limits


def _within(limits: Sequence[Limit], answer: Whereabouts) -> Whereabouts:
    """Without what no limit of the asking site grants: numbers could be asked for one after the other."""
    kept = tuple(
        (product, told)
        for product, told in answer.products
        if may_see(product.product_id, [limit for limit in limits if limit.feed == product.feed])
    )
    return replace(answer, products=kept)


def _context(book: Book, feeds: dict[str, Feed], products: Sequence[ProductFacts]) -> _Context:
    names = {product.feed for product in products}
    return _Context(
        feeds=feeds,
        sites={site.name: site for site in book.sites.all()},
        enrolled=frozenset(credential.site for credential in book.credentials.usable()),
        subscriptions=[wish for name in names for wish in book.subscriptions.of_feed(name)],
        settled=[report for name in names for report in book.settled.of_feed(name)],
        exceptions=[
            exception
            for product in products
            for exception in book.exceptions.of_product(product.feed, product.epoch, product.sequence)
        ],
        objectives_ms={(one.feed, one.site): one.objective_ms for one in book.objectives.all()},
    )


def _trouble(session: SiteSession | None, feed: str) -> str | None:
    if session is None or not session.connected or feed not in session.progress:
        return None
    return session.progress[feed].trouble


def _action_failed(session: SiteSession | None, feed: str) -> ActionFailed | None:
    """What the site said last; it holds while the site is away."""
    if session is None or feed not in session.progress:
        return None
    return session.progress[feed].action_failed


def _is_of(exception: ProductException, product: ProductFacts, site: str) -> bool:
    return (exception.epoch, exception.sequence, exception.site) == (product.epoch, product.sequence, site)


def _last_seen(live: LiveState, site: str, frontiers: Sequence[Settled]) -> datetime | None:
    session = live.session(site)
    if session is not None:
        return session.since
    return max((report.last_receipt_at for report in frontiers if report.last_receipt_at is not None), default=None)
