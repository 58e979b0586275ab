"""Routes of plans: decisions, reasons, and costs."""

from fastapi import APIRouter

from downburst.ledger import Transaction
from downburst_api.http.pagination import NewestPage, NewestPaged, Paged
from downburst_api.http.parameters import Hub
from downburst_api.plans.shapes import plan_out
from downburst_contract.feeds import Pin
from downburst_contract.plans import CurrentPlan, Plan, Totals, WhatIf, WhatIfNew

router = APIRouter(prefix="/v1", tags=["plans"])


@router.get("/plans", response_model_exclude_unset=True)
async def list_plans(hub: Hub, page: Paged) -> list[CurrentPlan]:
    """The current plan of every feed that has one."""
    return page.of(await hub.ledger.read(_current_plans), "feed")


@router.get("/feeds/{feed}/plans", response_model_exclude_unset=True)
async def plan_history(hub: Hub, feed: str, page: NewestPaged) -> list[Plan]:
    """The plans of a feed, newest first, each with the bytes that its legs sent."""
    return page.of(await hub.ledger.read(lambda tx: _history(tx, feed, page)), "version")


@router.post("/feeds/{feed}/what-if", responses={409: {"description": "The feed has no sites or no products yet."}})
async def what_if(hub: Hub, feed: str, wanted: WhatIfNew) -> WhatIf:
    """The planner's choice for a feed under other conditions, on the feed's own arrivals; nothing is changed.

    The same functions decide as for the plan in force. More sites than the feed has are taken to be like them.
    """
    known = await hub.feed(feed)
    return WhatIf.model_validate(await hub.planner.what_if(known.name, wanted.to_model(), search=wanted.flips))


@router.get("/totals")
async def totals(hub: Hub) -> Totals:
    """Totals of all legs of all feeds."""
    return Totals.model_validate(await hub.ledger.read(lambda tx: tx.planning.legs.totals()))


def _current_plans(tx: Transaction) -> list[CurrentPlan]:
    known = {feed.name for feed in tx.feeds.all()}
    pins = {feed: Pin.of(pin) for feed, pin in tx.planning.pins.all().items()}
    counters = tx.planning.legs.counters()
    return [
        CurrentPlan(**plan_out(plan, counters), pin=pins.get(plan.feed))
        for plan in tx.planning.plans.all_current()
        if plan.feed in known
    ]


def _history(tx: Transaction, feed: str, page: NewestPage) -> list[Plan]:
    plans = tx.planning.plans.history(tx.feeds.one(feed).name, before=page.before, limit=page.to_read)
    counters = tx.planning.legs.counters(feed)
    return [Plan(**plan_out(plan, counters)) for plan in plans]
