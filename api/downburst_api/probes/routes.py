"""Routes of probes, their seconds, schedules and ceilings."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from downburst.domain.probes import ProbeKind, ProbeState
from downburst.foundation.moments import moment
from downburst.ledger.repositories.probes.probes import ProbeFilter
from downburst_api.http.pagination import NewestPaged, Paged
from downburst_api.http.parameters import Asking, Hub, Number
from downburst_api.http.spreadsheet import Asked, Form, csv_answer
from downburst_api.probes import service
from downburst_api.probes.tables import SECONDS, STEPS, second_row, step_rows
from downburst_contract.paths import probes as shapes

router = APIRouter(prefix="/v1", tags=["probes"])


@router.post("/probes", status_code=201, responses={404: {}, 409: {"description": "Too many of the site wait."}})
async def add_probe(hub: Hub, caller: Asking, wanted: shapes.ProbeNew) -> shapes.Probe:
    """Asks for a probe; it runs when its rate is free, or is refused with the holder of the rate or the ceiling."""
    return shapes.Probe.of(await service.add(hub, wanted, caller))


@router.get("/probes", response_model=list[shapes.Probe])
async def list_probes(  # noqa: PLR0913
    hub: Hub,
    page: NewestPaged,
    *,
    site: str | None = None,
    kind: ProbeKind | None = None,
    state: ProbeState | None = None,
    since: Annotated[
        str | None, Query(max_length=64, description="Requested since: RFC 3339, or how long ago: `7d`.")
    ] = None,
    form: Asked,
) -> list[shapes.Probe] | Response:
    """The newest probes, newest first; as a table, a row for each rate of each."""
    begin = None if since is None else moment(since, hub.clock.now())
    wanted = ProbeFilter(site, kind, state, begin)
    found = await hub.ledger.read(
        lambda tx: tx.measured.probing.probes.newest(wanted, before=page.before, limit=page.to_read)
    )
    listed = page.of([shapes.Probe.of(one) for one in found], "id")
    if form is Form.CSV:
        return csv_answer("probes", [row for one in listed for row in step_rows(one)], STEPS)
    return listed


@router.get("/probes/{probe}", responses={404: {}})
async def show_probe(hub: Hub, probe: Number, site: str | None = None) -> shapes.Probe:
    """One probe with its circumstances and its result; with `site` only if it is one of that site."""
    return shapes.Probe.of(await service.one(hub, probe, site))


@router.get("/probes/{probe}/seconds", response_model=list[shapes.ProbeSecond], responses={404: {}})
async def list_probe_seconds(
    hub: Hub,
    probe: Number,
    *,
    site: str | None = None,
    first: Annotated[int, Query(ge=0, le=2**31, description="The first second to list.")] = 0,
    limit: Annotated[int, Query(ge=1, le=3_600, description="The maximum number of seconds.")] = 3_600,
    form: Asked,
) -> list[shapes.ProbeSecond] | Response:
    """The seconds of a probe at one rate, from one on; a sweep has none."""
    await service.one(hub, probe, site)
    found = await hub.ledger.read(lambda tx: tx.measured.probing.probes.seconds(probe, first=first, limit=limit))
    listed = [shapes.ProbeSecond.model_validate(one) for one in found]
    if form is Form.CSV:
        return csv_answer(f"probe-{probe}", [second_row(one) for one in listed], SECONDS)
    return listed


@router.delete("/probes/{probe}", responses={404: {}})
async def stop_probe(hub: Hub, caller: Asking, probe: Number) -> shapes.Probe:
    """Asks for the end of a probe, which follows within a second; its results until then stay."""
    return shapes.Probe.of(await service.stop(hub, probe, caller))


@router.post("/probe-schedules", status_code=201, responses={404: {}, 409: {"description": "The site has too many."}})
async def add_probe_schedule(hub: Hub, caller: Asking, wanted: shapes.ProbeScheduleNew) -> shapes.ProbeSchedule:
    """Repeats a probe, within hours of the day."""
    return shapes.ProbeSchedule.of(await service.add_schedule(hub, wanted, caller))


@router.get("/probe-schedules")
async def list_probe_schedules(hub: Hub, page: Paged, site: str | None = None) -> list[shapes.ProbeSchedule]:
    """The schedules of probes, by number."""
    found = await hub.ledger.read(lambda tx: tx.measured.probing.schedules.all(site=site))
    return page.of(map(shapes.ProbeSchedule.of, found), "id")


@router.delete("/probe-schedules/{number}", status_code=204, responses={404: {}})
async def remove_probe_schedule(hub: Hub, number: Number) -> None:
    """Removes a schedule; its probes stay."""
    await hub.ledger.write(lambda tx: tx.measured.probing.schedules.remove(number))


@router.get("/sites/{site}/probe-ceiling", responses={404: {}})
async def show_probe_ceiling(hub: Hub, site: str) -> shapes.ProbeCeilings:
    """The ceilings of a site's probes, of both sides, and the bytes of today."""
    return await service.ceilings(hub, site)


@router.put("/sites/{site}/probe-ceiling", responses={404: {}})
async def set_probe_ceiling(
    hub: Hub, caller: Asking, site: str, wanted: shapes.ProbeCeilingWanted
) -> shapes.ProbeCeilings:
    """Sets a ceiling of the site's probes: a site's administrator sets the site's, others the operator's."""
    await service.set_ceiling(hub, site, wanted, caller)
    return await service.ceilings(hub, site)
