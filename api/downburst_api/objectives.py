"""Routes of objectives: what the latency of a feed at one site has to meet."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from downburst.alarms import Objective
from downburst.ledger import Book
from downburst_api.pages import Paged
from downburst_api.runtime import Runtime, runtime_of
from downburst_api.schemas import Shape

router = APIRouter(prefix="/v1", tags=["alarms"])
Hub = Annotated[Runtime, Depends(runtime_of)]


class ObjectiveWanted(Shape):
    """A latency that a share of deliveries has to meet over some minutes; what is left out is as the settings say."""

    objective_ms: Annotated[float, Field(gt=0, le=86_400_000)]
    quantile: Annotated[float, Field(gt=0, lt=1)] | None = None
    minutes: Annotated[float, Field(gt=0, le=1_440)] | None = None


@router.get("/objectives")
async def list_objectives(
    hub: Hub,
    page: Paged,
    *,
    site: Annotated[str | None, Query(max_length=63)] = None,
    feed: Annotated[str | None, Query(max_length=64)] = None,
) -> list[dict[str, Any]]:
    """Objectives of single sites, by feed and site; elsewhere the feed's own objective applies."""
    found = await hub.ledger.read(lambda book: book.objectives.all())
    wanted = (one for one in found if site in (None, one.site) and feed in (None, one.feed))
    return page.of(map(_out, wanted), "objective")


@router.put("/feeds/{feed}/objectives/{site}")
async def put_objective(hub: Hub, feed: str, site: str, wanted: ObjectiveWanted) -> dict[str, Any]:
    """Sets the objective of a feed at a site."""

    def put(book: Book) -> Objective:
        names = book.feeds.one(feed).name, book.sites.one(site).name
        return book.objectives.put(Objective(*names, **wanted.model_dump()))

    return _out(await hub.ledger.write(put))


@router.delete("/feeds/{feed}/objectives/{site}", status_code=204)
async def remove_objective(hub: Hub, feed: str, site: str) -> None:
    """Removes an objective; the feed's own applies at the site again."""
    await hub.ledger.write(lambda book: book.objectives.remove(feed, site))


def _out(objective: Objective) -> dict[str, Any]:
    return {"objective": f"{objective.feed}/{objective.site}", **asdict(objective)}
