"""Routes of objectives: the latency that a feed must meet at one site."""

from typing import Annotated

from fastapi import APIRouter, Query

from downburst.domain.alarms import Objective
from downburst.ledger import Transaction
from downburst_api.http.pagination import Paged
from downburst_api.http.parameters import Hub
from downburst_contract import alarms as shapes

router = APIRouter(prefix="/v1", tags=["alarms"])


@router.get("/objectives")
async def list_objectives(
    hub: Hub,
    page: Paged,
    *,
    site: Annotated[str | None, Query(max_length=63)] = None,
    feed: Annotated[str | None, Query(max_length=64)] = None,
) -> list[shapes.Objective]:
    """Objectives of single sites, by feed and site; elsewhere the feed's own objective applies."""
    found = await hub.ledger.read(lambda tx: tx.alerting.objectives.all())
    wanted = (one for one in found if site in (None, one.site) and feed in (None, one.feed))
    return page.of(map(shapes.Objective.of, wanted), "objective")


@router.put("/feeds/{feed}/objectives/{site}")
async def put_objective(hub: Hub, feed: str, site: str, wanted: shapes.ObjectiveWanted) -> shapes.Objective:
    """Sets the objective of a feed at a site."""

    def put(tx: Transaction) -> Objective:
        names = tx.feeds.one(feed).name, tx.sites.one(site).name
        return tx.alerting.objectives.put(Objective(*names, **wanted.model_dump()))

    return shapes.Objective.of(await hub.ledger.write(put))


@router.delete("/feeds/{feed}/objectives/{site}", status_code=204)
async def remove_objective(hub: Hub, feed: str, site: str) -> None:
    """Removes an objective; the feed's own applies at the site again."""
    await hub.ledger.write(lambda tx: tx.alerting.objectives.remove(feed, site))
