"""Routes of measurements by perfSONAR's test points."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from downburst_api.http.pagination import NewestPaged, Paged
from downburst_api.http.parameters import Hub
from downburst_api.measurements import service
from downburst_contract.measuring.measurements import (
    AddedTestPoint,
    Archived,
    PathMeasurement,
    TestPoint,
    TestPointWanted,
)

router = APIRouter(prefix="/v1", tags=["measurements"])


@router.get("/test-points")
async def list_test_points(hub: Hub, page: Paged) -> list[TestPoint]:
    """All test points, by name; their tokens are not kept."""
    found = await hub.ledger.read(lambda tx: tx.measured.points.all())
    return page.of(map(TestPoint.of, found), "point")


@router.post("/test-points", status_code=201, responses={404: {}, 409: {}})
async def add_test_point(hub: Hub, wanted: TestPointWanted) -> AddedTestPoint:
    """Adds a test point; the answer has its token, which is shown this once."""
    return await service.add(hub, wanted.to_model())


@router.delete("/test-points/{point}", status_code=204, responses={404: {}})
async def remove_test_point(hub: Hub, point: str) -> None:
    """Removes a test point with its measurements; its token is no longer taken."""
    await hub.ledger.write(lambda tx: tx.measured.points.remove(point))


@router.get("/measurements")
async def list_measurements(
    hub: Hub,
    page: NewestPaged,
    point: Annotated[str | None, Query(max_length=63, description="Only those of this test point.")] = None,
) -> list[PathMeasurement]:
    """Measurements of all test points, newest first, with those that were refused."""
    found = await hub.ledger.read(
        lambda tx: tx.measured.measurements.newest(point=point, before=page.before, limit=page.to_read)
    )
    return page.of([PathMeasurement.of(one) for one in found], "number")


@router.get("/sites/{site}/measurements", responses={404: {}})
async def list_site_measurements(hub: Hub, site: str, page: NewestPaged) -> list[PathMeasurement]:
    """Measurements with an end at a site, newest first: an end is at the site whose test point has its address."""
    found = await service.of_site(hub, site, before=page.before, limit=page.to_read)
    return page.of([PathMeasurement.of(one) for one in found], "number")


@router.post("/measurements/archive/{token}", status_code=201, responses={400: {}, 404: {}})
async def archive_measurement(hub: Hub, token: str, request: Request) -> Archived:
    """Takes a result from pScheduler's HTTP archiver; the token names the test point. Up to 1 MiB."""
    return await service.archive(hub, token, request)


@router.put("/measurements/archive/{token}", status_code=201, responses={400: {}, 404: {}})
async def archive_measurement_again(hub: Hub, token: str, request: Request) -> Archived:
    """The same for an archiver with `op` `put`; a run that is stored already stays as it is."""
    return await service.archive(hub, token, request)
