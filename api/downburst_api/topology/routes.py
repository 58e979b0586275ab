"""Routes of the topology and of the reservation desk's questions."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Response

from downburst.domain.topology.bookings import BookedTest
from downburst.foundation.clock import from_us
from downburst.foundation.errors import PartAway
from downburst.foundation.moments import coming_moment, moment
from downburst.live.circuit_rates import STEP_S, STEPS_KEPT
from downburst_api.http.parameters import Hub, Number
from downburst_api.topology.calendar import calendar_of, check_window
from downburst_contract import topology as shapes
from downburst_contract.desk import calendar

router = APIRouter(prefix="/v1", tags=["topology"])
DryRun = Annotated[bool, Query(description="Dry run: only show the result.")]
_When = Annotated[str, Query(max_length=64)]


@router.get("/topology")
async def show_topology(hub: Hub) -> shapes.Topology:
    """The topology: domains, switches, links, hosts, and windows of maintenance."""
    return shapes.Topology.of(await hub.ledger.read(lambda tx: tx.planning.topology.get()))


@router.put("/topology", responses={409: {"description": "Circuits hold more than it would have."}})
async def put_topology(
    hub: Hub, wanted: shapes.TopologyWanted, *, dry_run: DryRun = False
) -> shapes.TopologyAnswered:
    """Replaces the topology, unless circuits would lose a link or a rate; the answer has the changes."""
    return shapes.TopologyAnswered.answer(await hub.circuits.desk.put_topology(wanted.to_model(), dry_run=dry_run))


@router.post("/topology/window", responses={404: {}})
async def find_window(hub: Hub, asked: shapes.WindowAsked) -> shapes.WindowAnswer:
    """The first window in which a circuit would be admitted, with its path and tags; nothing is reserved."""
    question = asked.to_model(await _ports(hub), hub.clock.now())
    return shapes.WindowAnswer.model_validate(await hub.circuits.desk.find_window(question))


@router.post("/topology/rate", responses={404: {}})
async def find_rate(hub: Hub, asked: shapes.RateAsked) -> shapes.RateAnswer:
    """The rates that are free throughout a window; nothing is reserved."""
    question = asked.to_model(await _ports(hub), hub.clock.now())
    return shapes.RateAnswer.model_validate(await hub.circuits.desk.find_rate(question))


@router.get("/calendar", response_model=calendar.Calendar)
async def show_calendar(hub: Hub, begin: _When = "now", end: _When = "+1d") -> Response:
    """The calendar of a window of at most 400 days: links, hosts and ports with circuits, tests and maintenance.

    `begin` is RFC 3339 or a time ago, `end` RFC 3339 or so long after the begin: `+7d`.
    """
    now = hub.clock.now()
    first = moment(begin, now)
    last = coming_moment(end, first)
    check_window(first, last)
    tests = await _tests(hub)
    body = await hub.ledger.read(lambda tx: calendar_of(tx, now, first, last, tests))
    return Response(body, media_type="application/json")


@router.get("/calendar/circuits/{circuit}")
async def show_circuit_rates(hub: Hub, circuit: Number) -> calendar.CircuitRates:
    """The rates in use through a circuit in the last six hours, as far as this hub has run."""
    sites = (await hub.ledger.read(lambda tx: tx.circuits.one(circuit))).sites
    now, recorded = hub.clock.now(), hub.live.paths.circuits
    steps = [
        calendar.CircuitRate(at=from_us(step.begin_us), out_bps=step.out_bps(sites), in_bps=step.in_bps(sites))
        for step in recorded.steps(circuit)
    ]
    since = now if recorded.since_us is None else max(from_us(recorded.since_us), now - KEPT)
    return calendar.CircuitRates(circuit=circuit, step_s=STEP_S, since=since, until=now, steps=steps)


async def _tests(hub: Hub) -> list[BookedTest] | None:
    """The bookings of tests; None: the part that has them is away, and the calendar is shown without them."""
    with suppress(PartAway, TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            return await hub.circuits.tests.booked()
    return None


async def _ports(hub: Hub) -> set[str]:
    return {port.name for port in await hub.ledger.read(lambda tx: tx.ports.all())}


KEPT = timedelta(seconds=STEP_S * STEPS_KEPT)
PATIENCE_S = 1.0
"""For the tests in a calendar, which is shown without them if another process does not answer."""
