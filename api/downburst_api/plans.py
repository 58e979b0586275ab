"""Routes of plans: what is decided, why, and what it cost."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from downburst.ledger import Book
from downburst_api.pages import NewestPage, NewestPaged, Paged
from downburst_api.runtime import Runtime, runtime_of
from downburst_api.schemas import pin_out, plan_out

router = APIRouter(prefix="/v1", tags=["plans"])
Hub = Annotated[Runtime, Depends(runtime_of)]


@router.get("/plans")
async def list_plans(hub: Hub, page: Paged) -> list[dict[str, Any]]:
    """The current plan of every feed that has one."""
    return page.of(await hub.ledger.read(_current_plans), "feed")


@router.get("/feeds/{feed}/plans")
async def plan_history(hub: Hub, feed: str, page: NewestPaged) -> list[dict[str, Any]]:
    """The plans of a feed, newest first, each with the bytes that its legs sent."""
    return page.of(await hub.ledger.read(lambda book: _history(book, feed, page)), "version")


@router.get("/totals")
async def totals(hub: Hub) -> dict[str, Any]:
    """Totals of all legs of all feeds."""
    sums = await hub.ledger.read(lambda book: book.legs.totals())
    return {
        "egress_bytes": sums.egress_bytes,
        "unicast_equivalent_bytes": sums.unicast_equivalent_bytes,
        "product_bytes": sums.product_bytes,
        "repair_bytes": sums.repair_bytes,
        "control_bytes": sums.control_bytes,
    }


def _current_plans(book: Book) -> list[dict[str, Any]]:
    known = {feed.name for feed in book.feeds.all()}
    pins = book.pins.all()
    counters = book.legs.counters()
    return [
        plan_out(plan, counters) | {"pin": pin_out(pins[plan.feed]) if plan.feed in pins else None}
        for plan in book.plans.all_current()
        if plan.feed in known
    ]


def _history(book: Book, feed: str, page: NewestPage) -> list[dict[str, Any]]:
    plans = book.plans.history(book.feeds.one(feed).name, before=page.before, limit=page.to_read)
    counters = book.legs.counters(feed)
    return [plan_out(plan, counters) for plan in plans]
